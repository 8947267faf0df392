#include <functional>
#include <numeric>
#include <roost/embedding/embedding_table.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// Every call that changes an embedding_table, refused memory.

namespace test {
namespace {

using table = roost::embedding_table<place_type>;
using i64 = std::int64_t;

constexpr u32 dim = 5;

/// Ids of which some come more than once, and what belongs to them.
struct batch {
  explicit batch(i64 first) {
    std::vector<i64> all(700);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = first + static_cast<i64>(i % 401);
    ids = upload(all);
    std::vector<float> numbers(all.size() * dim);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) / 64 - 0.5f;
    rows = upload(numbers);
    bags = upload(std::vector<i64>{0, 3, 3, 500, 700});
  }
  memory_of<i64> ids, bags;
  memory_of<float> rows;
};

/// All that a table knows and what it answers, as bytes.
std::string state_of(const place_type& place, const table& t, const batch& asked) {
  const auto all = t.entries(place);
  memory_of<std::byte> rows(test_place(), all.slots.size() * t.row_bytes());
  t.copy_rows(place, all.slots.span(), rows.span());
  memory_of<u32> slots(test_place(), asked.ids.size());
  memory_of<float> found(test_place(), asked.rows.size());
  t.find(place, {.ids = asked.ids.span()}, slots.span(), found.span());
  const roost::embedding_counts c = t.counts(place);
  const auto counts = upload(std::vector<u64>{c.steps, c.updates, c.evicted, c.unplaced, c.unadmitted,
                                              c.forgotten, t.capacity(), t.bytes(), t.host_bytes()});
  return bytes_of(all.slots, all.ids, all.features, all.steps, all.scores, rows, slots, found, counts);
}

using change = std::function<void(const place_type&, table&)>;

/// The calls, whose batches must outlive them.
std::vector<std::pair<const char*, change>> changes(const batch& known, const batch& fresh) {
  const auto step = [](const auto& call, const batch& b) {
    return [&, call](const place_type& place, table& t) {
      memory_of<u32> slots(test_place(), b.ids.size());
      call(place, t, slots.span(), b);
    };
  };
  using slots_type = std::span<u32>;
  const auto look_up = [](const place_type& place, table& t, slots_type slots, const batch& b) {
    memory_of<float> out(test_place(), b.rows.size());
    t.look_up(place, {.ids = b.ids.span()}, slots, out.span());
  };
  const auto look_up_bags = [](const place_type& place, table& t, slots_type slots, const batch& b) {
    memory_of<float> out(test_place(), (b.bags.size() - 1) * dim);
    t.look_up(place, {.ids = b.ids.span(), .offsets = b.bags.span()}, slots, out.span());
  };
  const auto update = [](const place_type& place, table& t, slots_type slots, const batch& b) {
    t.find(test_place(), {.ids = b.ids.span()}, slots);
    t.update(place, {.ids = b.ids.span()}, slots, b.rows.span());
  };
  const auto update_bags = [](const place_type& place, table& t, slots_type slots, const batch& b) {
    t.find(test_place(), {.ids = b.ids.span()}, slots);
    t.update(place, {.ids = b.ids.span(), .offsets = b.bags.span(), .pooling = roost::bag_pooling::mean},
             slots, b.rows.span().first((b.bags.size() - 1) * dim));
  };
  return {{"look_up", step(look_up, fresh)},
          {"look_up of bags", step(look_up_bags, fresh)},
          {"update", step(update, known)},
          {"update of bags", step(update_bags, known)},
          {"assign",
           [&](auto& place, table& t) { t.assign(place, {.ids = fresh.ids.span()}, fresh.rows.span()); }},
          {"assign, and the evicted",
           [&](auto& place, table& t) {
             memory_of<float> out(test_place(), fresh.rows.size());
             t.assign(place, {.ids = fresh.ids.span()}, fresh.rows.span(), out.span());
           }},
          {"prefetch", [&](auto& place, table& t) { t.prefetch(place, {.ids = known.ids.span()}); }},
          {"erase", [&](auto& place, table& t) { t.erase(place, {.ids = known.ids.span()}); }},
          {"take_evicted", [](auto& place, table& t) { t.take_evicted(place); }},
          {"reserve", [](auto& place, table& t) { t.reserve(place, t.capacity() + 200); }}};
}

void expect_refusals_of(const roost::embedding_options& options) {
  const batch known(0), fresh(250);
  const auto calls = changes(known, fresh), earlier = changes(known, known);
  const auto make = [&](const place_type& place) {
    table t(place, options);
    for (const std::size_t call : {0u, 1u, 2u}) earlier[call].second(test_place(), t);
    return t;
  };
  const auto state = [&](const place_type& place, const table& t) { return state_of(place, t, known); };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    expect_refusals(refused::changes_nothing, make, call, state);
  }
  const table from = make(test_place());
  const auto all = from.entries(test_place());
  memory_of<std::byte> rows(test_place(), all.slots.size() * from.row_bytes());
  from.copy_rows(test_place(), all.slots.span(), rows.span());
  for (const bool same_slots : {false, true}) {
    SCOPED_TRACE(same_slots ? "restore, same slots" : "restore");
    expect_refusals(
        refused::changes_nothing, [&](const place_type& place) { return table(place, options); },
        [&](const place_type& place, table& t) {
          memory_of<u32> slots(test_place(), all.ids.size());
          if (t.size(test_place()) != 0) return;
          t.restore(place, all, same_slots, slots.span());
          t.write_rows(test_place(), slots.span(), rows.span());
        },
        state);
  }
}

TEST(embedding_refusals, of_every_call_change_nothing) {
  using roost::optimizer;
  for (const optimizer how :
       {optimizer::sgd, optimizer::adagrad, optimizer::rowwise_adagrad, optimizer::adam}) {
    for (const std::size_t cached : {0, 64}) {
      SCOPED_TRACE("optimizer " + std::to_string(static_cast<int>(how)) + ", cache of " +
                   std::to_string(cached));
      expect_refusals_of({.dim = dim,
                          .capacity = 500,
                          .cached_rows = cached,
                          .eviction = roost::eviction::least_frequent,
                          .optimizer = how,
                          .admit = how == optimizer::adam ? 2u : 1u,
                          .keep_evicted = 90});
    }
  }
}

}  // namespace
}  // namespace test
