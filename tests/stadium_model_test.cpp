#include <rapidcheck.h>

#include <roost/stadium_map.hpp>

#include "support/stadium.hpp"

// Random sequences of bulk calls on a stadium_map beside a std::map. RapidCheck makes a sequence short when it fails.

namespace test {
namespace {

using roost::operation_kind;

constexpr std::size_t large = sanitized ? 1000 : 8000;

/// Key numbers with copies, out of few or of all.
numbers draw_numbers() {
  const auto n =
      *rc::gen::weightedOneOf<std::size_t>({{9, rc::gen::inRange<std::size_t>(0, 60)}, {1, rc::gen::inRange<std::size_t>(0, large)}});
  const auto most =
      *rc::gen::weightedOneOf<u64>({{4, rc::gen::inRange<u64>(0, 40)}, {1, rc::gen::inRange<u64>(0, large)}, {1, rc::gen::just(~u64{0})}});
  return random_numbers(n, *rc::gen::inRange<u64>(0, 1000), most);
}

path draw_path() { return *rc::gen::element(path::automatic, path::direct, path::regional); }

roost::stadium_options draw_options() {
  roost::stadium_options options;
  options.load_factor = *rc::gen::element(0.1, 0.8, 1.0);
  options.ticket_bits = *rc::gen::element(1, 2, 4, 8);
  options.bodies = *rc::gen::element(residence::automatic, residence::place, residence::host);
  options.budget = *rc::gen::element<std::size_t>(0, 3000, 100000);
  options.seed = *rc::gen::inRange<u64>(0, 5);
  options.grows = *rc::gen::arbitrary<bool>();
  options.region_slots = *rc::gen::element<std::uint32_t>(0, 3, 17, 400, 1u << 30);
  return options;
}

/// A map on the place, and what it must hold.
template <class T>
class model {
 public:
  using key = typename T::key;
  using value = typename T::value;
  using oracle = std::map<key, value>;

  model(std::size_t n, const roost::stadium_options& options) : map_(test_place(), n, options), grows_(options.grows) {}

  /// A random call, and a look at everything.
  void step() {
    const std::size_t capacity = map_.capacity();
    const int what = *rc::gen::weightedElement<int>({{4, 0}, {3, 1}, {3, 2}, {4, 3}, {1, 4}, {1, 5}, {2, 6}, {3, 7}, {4, 8}});
    switch (what) {
      case 0:
        put(false);
        break;
      case 1:
        put(true);
        break;
      case 2:
        put_new();
        break;
      case 3:
        erase();
        break;
      case 4:
        map_.clear(test_place());
        held_.clear();
        break;
      case 5:
        map_.reserve(test_place(), *rc::gen::inRange<std::size_t>(0, 3000));
        RC_ASSERT(map_.capacity() >= capacity);
        break;
      case 6:
        map_.rehash(test_place(), *rc::gen::inRange<std::size_t>(0, 3000));
        break;
      case 7:
        map_.sweep(test_place());
        break;
      default:
        run();
    }
    if (!grows_ && what != 5 && what != 6) RC_ASSERT(map_.capacity() == capacity);
    check();
  }

 private:
  void check() const {
    RC_ASSERT(read() == held_);
    auto queries = from_numbers<key>(draw_numbers());
    for (const auto& [k, v] : held_) queries.push_back(k);
    const auto asked = upload(queries);
    const auto missing = from_number<value>(77), untouched = from_number<value>(78);
    auto results = filled<value>(queries.size(), untouched), masked = filled<value>(queries.size(), untouched);
    auto found = filled<bool>(queries.size(), true), contained = filled<bool>(queries.size(), false);
    const roost::bulk_options how{.path = draw_path()};
    map_.find(test_place(), asked, results, missing, how);
    map_.find(test_place(), asked, masked, found, how);
    map_.contains(test_place(), asked, contained, how);
    const auto values = download(results), masked_values = download(masked);
    const auto there = download(found), also_there = download(contained);
    std::size_t wrong = 0, hits = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const auto known = held_.find(queries[i]);
      const bool here = known != held_.end();
      hits += here;
      wrong += !(values[i] == (here ? known->second : missing)) || !(masked_values[i] == (here ? known->second : untouched));
      wrong += (there[i] != 0) != here || (also_there[i] != 0) != here;
    }
    RC_ASSERT(wrong == 0u);
    RC_ASSERT(map_.count(test_place(), asked) == hits);
    const auto costs = map_.costs(test_place(), asked);
    RC_ASSERT(costs.found == hits);
    RC_ASSERT(costs.bodies >= hits);
    const auto statistics = map_.statistics(test_place());
    RC_ASSERT(statistics.size == held_.size());
    RC_ASSERT(statistics.size + statistics.erased <= statistics.capacity);
    RC_ASSERT(map_.valid(test_place()));
  }

  oracle read() const {
    const std::size_t n = map_.size(test_place());
    auto keys = filled<key>(n, key{});
    auto values = filled<value>(n, value{});
    RC_ASSERT(map_.retrieve_all(test_place(), keys, values) == n);
    oracle result;
    const auto all = download(keys);
    const auto their_values = download(values);
    for (std::size_t i = 0; i < n; ++i) result.emplace(all[i], their_values[i]);
    RC_ASSERT(result.size() == n);
    return result;
  }

  void put(bool assigns) {
    const auto keys = from_numbers<key>(draw_numbers());
    const auto values = from_numbers<value>(random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000)));
    const auto k = upload(keys);
    const auto v = upload(values);
    const roost::bulk_options how{.path = draw_path()};
    const auto report = assigns ? map_.insert_or_assign(test_place(), k, v, how) : map_.insert(test_place(), k, v, how);
    std::map<key, std::vector<value>> given;
    for (std::size_t i = 0; i < keys.size(); ++i) given[keys[i]].push_back(values[i]);
    const oracle now = read();
    std::size_t fresh = 0, full = 0;
    for (const auto& [k_, of_key] : given) {
      const auto before = held_.find(k_);
      const auto after = now.find(k_);
      if (after == now.end()) {
        RC_ASSERT(before == held_.end());  // no key is lost
        full += of_key.size();
        continue;
      }
      fresh += before == held_.end();
      if (!assigns && before != held_.end()) {
        RC_ASSERT(after->second == before->second);
      } else {
        RC_ASSERT(std::find(of_key.begin(), of_key.end(), after->second) != of_key.end());
      }
    }
    for (const auto& [k_, v_] : held_) {
      const auto after = now.find(k_);
      RC_ASSERT(after != now.end());
      if (!given.contains(k_)) RC_ASSERT(after->second == v_);
    }
    RC_ASSERT(now.size() == held_.size() + fresh);
    RC_ASSERT(report.inserted == fresh);
    RC_ASSERT(report.full == full);
    RC_ASSERT(report.inserted + report.present + report.full == keys.size());
    RC_ASSERT(full == 0u || (!grows_ && now.size() == map_.capacity()));  // every slot can be used
    held_ = now;
  }

  /// Different keys that are not there.
  void put_new() {
    std::vector<key> keys;
    for (const auto& k : from_numbers<key>(draw_numbers())) {
      if (!held_.contains(k)) keys.push_back(k);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const auto values = from_numbers<value>(random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000)));
    const std::size_t room = grows_ ? keys.size() : std::min(keys.size(), map_.capacity() - held_.size());
    const auto report = map_.insert_new(test_place(), upload(keys), upload(values), {.path = draw_path()});
    RC_ASSERT(report.inserted == room);
    RC_ASSERT(report.full == keys.size() - room);
    const oracle now = read();
    for (const auto& [k, v] : held_) RC_ASSERT(now.contains(k));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto after = now.find(keys[i]);
      if (after != now.end()) RC_ASSERT(after->second == values[i]);
    }
    RC_ASSERT(now.size() == held_.size() + room);
    held_ = now;
  }

  void erase() {
    const auto keys = from_numbers<key>(draw_numbers());
    std::size_t there = 0;
    for (const key& k : keys) there += held_.erase(k);
    RC_ASSERT(map_.erase(test_place(), upload(keys), {.path = draw_path()}) == there);
  }

  /// A mixed batch of one operation a key, so that its order does not matter.
  void run() {
    auto keys = from_numbers<key>(draw_numbers());
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const auto kinds = random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000), 3), values = random_numbers(keys.size(), 5);
    std::vector<roost::operation<key, value>> batch;
    for (std::size_t i = 0; i < keys.size(); ++i)
      batch.push_back({static_cast<operation_kind>(kinds[i]), keys[i], from_number<value>(values[i])});
    const auto batch_there = upload(batch);
    roost::array<roost::operation_result<value>, place_type> results_there(test_place(), batch.size());
    map_.run(test_place(), batch_there, results_there);
    const auto results = download(results_there);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto known = held_.find(keys[i]);
      const bool here = known != held_.end();
      RC_ASSERT(!results[i].full || (!here && (kinds[i] == 1 || kinds[i] == 2)));
      if (results[i].full) continue;
      switch (batch[i].kind) {
        case operation_kind::find:
          RC_ASSERT(results[i].done == here);
          if (here) RC_ASSERT(results[i].value == known->second);
          break;
        case operation_kind::insert:
          RC_ASSERT(results[i].done != here);
          RC_ASSERT(results[i].value == (here ? known->second : batch[i].value));
          held_.emplace(keys[i], batch[i].value);
          break;
        case operation_kind::insert_or_assign:
          RC_ASSERT(results[i].done);
          held_[keys[i]] = batch[i].value;
          break;
        case operation_kind::erase:
          RC_ASSERT(results[i].done == here);
          held_.erase(keys[i]);
          break;
      }
    }
  }

  typename T::map map_;
  bool grows_;
  oracle held_;
};

template <class T>
void check_sequences(const char* what) {
  EXPECT_TRUE(rc::check(what, [] {
    model<T> all(*rc::gen::inRange<std::size_t>(0, 500), draw_options());
    const int steps = *rc::gen::inRange(1, sanitized ? 8 : 16);
    for (int i = 0; i < steps; ++i) all.step();
  }));
}

TEST(stadium_model, keys_and_values_of_words) { check_sequences<stadium_types<u64, u32>>("8 and 4 bytes"); }
TEST(stadium_model, keys_and_values_of_odd_sizes) { check_sequences<stadium_types<packed<5>, packed<13>>>("5 and 13 bytes"); }
TEST(stadium_model, large_keys_and_values) { check_sequences<stadium_types<linked<u64, 8>, linked<u32, 64>>>("64 and 256 bytes"); }

}  // namespace
}  // namespace test
