#include <roost/stadium/stadium_map.hpp>

#include "support/model.hpp"
#include "support/stadium.hpp"

// Random sequences of bulk calls on a stadium_map beside a std::unordered_map. RapidCheck makes a sequence
// short when it fails.

namespace test {
namespace {

const std::size_t large = sanitized ? 1000 : 8000;

roost::stadium_options draw_options() {
  roost::stadium_options options;
  options.load_factor = *rc::gen::element(0.1, 0.8, 1.0);
  options.ticket_bits = *rc::gen::element(1, 2, 4, 8);
  options.bodies = *rc::gen::element(residence::automatic, residence::place, residence::host);
  options.budget = *rc::gen::element<std::size_t>(0u, 3000u, 100000u);
  options.seed = *rc::gen::inRange<u64>(0, 5);
  options.grows = *rc::gen::arbitrary<bool>();
  options.region_slots = *rc::gen::element<std::uint32_t>(0u, 3u, 17u, 400u, 1u << 30);
  return options;
}

template <class T>
class model : map_and_oracle<T> {
  using base = map_and_oracle<T>;
  using base::grows_, base::held_, base::map_;
  using typename base::batch, typename base::key, typename base::value;

 public:
  model(std::size_t n, const roost::stadium_options& options) : base(n, options) {}

  /// A random call, and a look at everything.
  void step() {
    const std::size_t capacity = map_.capacity();
    const int what = *rc::gen::weightedElement<int>(
        {{4, 0}, {3, 1}, {3, 2}, {4, 3}, {1, 4}, {1, 5}, {2, 6}, {3, 7}, {4, 8}, {3, 9}});
    switch (what) {
      case 0:
      case 1:
      case 9:
        put(what);
        break;
      case 2:
        put_new();
        break;
      case 3:
        base::erase(draw_keys());
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
  static std::vector<key> draw_keys() { return from_numbers<key>(draw_numbers(large)); }
  static std::vector<value> draw_values(std::size_t n) {
    return from_numbers<value>(random_numbers(n, *rc::gen::inRange<u64>(0, 1000)));
  }

  void check() const {
    const auto asked = base::check(draw_keys(), from_number<value>(77), from_number<value>(78));
    const auto costs = map_.costs(test_place(), asked.keys);
    RC_ASSERT(costs.found == asked.hits);
    RC_ASSERT(costs.bodies >= asked.hits);
  }

  /// insert, insert_or_assign, or insert_or_apply the greater value.
  void put(int what) {
    const bool assigns = what == 1, applies = what == 9;
    const auto keys = draw_keys();
    const auto values = draw_values(keys.size());
    batch given;
    for (std::size_t i = 0; i < keys.size(); ++i) given[keys[i]].push_back(values[i]);
    const auto k = upload(keys);
    const auto v = upload(values);
    const roost::bulk_options how{.path = draw_path()};
    const auto report = assigns   ? map_.insert_or_assign(test_place(), k, v, how)
                        : applies ? map_.insert_or_apply(test_place(), k, v, roost::maximum(), how)
                                  : map_.insert(test_place(), k, v, how);
    const auto full = base::after_put(
        given, report, [&](const value* before, const std::vector<value>& copies, const value& after) {
          if (applies) {
            const value most = *std::max_element(copies.begin(), copies.end());
            return after == (before == nullptr ? most : std::max(most, *before));
          }
          return !assigns && before != nullptr ? after == *before : base::one_of(copies, after);
        });
    RC_ASSERT(report.full == full.pairs);
    RC_ASSERT(full.pairs == 0u || held_.size() == map_.capacity());  // every slot can be used
  }

  /// Different keys that are not there.
  void put_new() {
    std::vector<key> keys;
    for (const auto& k : draw_keys()) {
      if (!held_.contains(k)) keys.push_back(k);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const auto values = draw_values(keys.size());
    const std::size_t room = grows_ ? keys.size() : std::min(keys.size(), map_.capacity() - held_.size());
    const auto report = map_.insert_new(test_place(), upload(keys), upload(values), {.path = draw_path()});
    RC_ASSERT(report.inserted == room);
    RC_ASSERT(report.full == keys.size() - room);
    const auto now = base::read();
    for (const auto& [k, v] : held_) RC_ASSERT(now.contains(k));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto after = now.find(keys[i]);
      if (after != now.end()) RC_ASSERT(after->second == values[i]);
    }
    RC_ASSERT(now.size() == held_.size() + room);
    held_ = now;
  }

  void run() {
    auto keys = draw_keys();
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const auto kinds = random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000), 3),
               values = random_numbers(keys.size(), 5);
    std::vector<roost::operation<key, value>> operations;
    for (std::size_t i = 0; i < keys.size(); ++i)
      operations.push_back({static_cast<operation_kind>(kinds[i]), keys[i], from_number<value>(values[i])});
    base::run(operations, roost::bulk_options{.path = draw_path()});
  }
};

template <class T>
class stadium_model : public testing::Test {};
using all_types = axis<stadium_types<packed<5>, packed<13>>, stadium_types<u64, u32>,
                       stadium_types<linked<u64, 8>, linked<u32, 64>>>;
TYPED_TEST_SUITE(stadium_model, all_types);

TYPED_TEST(stadium_model, agrees_with_the_oracle_after_every_call) {
  EXPECT_TRUE(rc::check([] {
    model<TypeParam> all(*rc::gen::inRange<std::size_t>(0, 500), draw_options());
    const int steps = *rc::gen::inRange(1, sanitized ? 8 : 16);
    for (int i = 0; i < steps; ++i) all.step();
  }));
}

}  // namespace
}  // namespace test
