#include <roost/concurrent_map.hpp>

#include "support/model.hpp"

// Random sequences of bulk calls on a concurrent_map beside a std::unordered_map. RapidCheck makes a sequence
// short when it fails.

namespace test {
namespace {

/// Sizes that fill no word.
struct three {
  u8 bytes[3];
  friend bool operator==(const three&, const three&) = default;
};
struct five {
  u8 bytes[5];
  friend bool operator==(const five&, const five&) = default;
};

/// The first bytes of a number, and back.
template <class T>
ROOST_FN T cut(u64 number) {
  T result;
  memcpy(&result, &number, sizeof(T));
  return result;
}
template <class T>
ROOST_FN u64 widened(const T& t) {
  u64 result = 0;
  memcpy(&result, &t, sizeof(T));
  return result;
}

template <class T>
std::vector<T> cut_all(const numbers& all) {
  std::vector<T> result;
  for (const u64 number : all) result.push_back(cut<T>(number));
  return result;
}

/// roost::plus, by compare-and-swap, for every type.
struct add {
  template <class V>
  ROOST_FN V operator()(const V& a, const V& b) const {
    return cut<V>(widened(a) + widened(b));
  }
};

struct third {
  template <class K, class V>
  ROOST_FN bool operator()(const K& key, const V& value) const {
    return (widened(key) + widened(value)) % 3 == 0;
  }
};

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::concurrent_map<Key, Value, place_type>;
};

const std::size_t large = sanitized ? 2000 : 20000;

template <class T>
class model : map_and_oracle<T> {
  using base = map_and_oracle<T>;
  using base::grows_, base::held_, base::map_;
  using typename base::batch, typename base::key, typename base::value;

 public:
  model(std::size_t n, const roost::concurrent_options& options) : base(n, options) {}

  /// A random call, and a look at everything.
  void step() {
    const std::size_t capacity = map_.capacity();
    const int what = *rc::gen::weightedElement<int>(
        {{4, 0}, {2, 1}, {3, 2}, {3, 3}, {3, 4}, {4, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 9}, {1, 10}, {4, 11}});
    switch (what) {
      case 0:
        put(change::keep, false);
        break;
      case 1:
        put(change::keep, true);
        break;
      case 2:
        put(change::assign, false);
        break;
      case 3:
        put(change::plus, false);
        break;
      case 4:
        put(change::add, false);
        break;
      case 5:
        base::erase(draw_keys());
        break;
      case 6:
        erase_if();
        break;
      case 7:
        map_.clear(test_place());
        held_.clear();
        break;
      case 8:
        map_.reserve(test_place(), *rc::gen::inRange<std::size_t>(0, 3000));
        RC_ASSERT(map_.capacity() >= capacity);
        break;
      case 9:
        map_.rehash(test_place(), *rc::gen::inRange<std::size_t>(0, 3000));
        break;
      case 10:
        map_.shrink_to_fit(test_place());
        break;
      default:
        run();
    }
    if (!grows_ && (what < 8 || what > 10)) RC_ASSERT(map_.capacity() == capacity);
    check();
  }

  /// All that the map tells.
  void check() const {
    base::check(draw_keys(), cut<value>(77), cut<value>(78));
    const auto statistics = map_.statistics(test_place());
    RC_ASSERT(statistics.bytes == map_.bytes());
    std::size_t keys = 0;
    for (const std::size_t n : statistics.keys_by_probes) keys += n;
    RC_ASSERT(keys == held_.size());
    RC_ASSERT(statistics.keys_by_probes.size() == statistics.most_probes);
  }

 private:
  enum class change { keep, assign, plus, add };

  /// From both ends of what a key can be.
  static std::vector<key> draw_keys() {
    numbers result = draw_numbers(large);
    for (u64& number : result) number = number % 2 == 0 ? number / 2 : ~(number / 2);
    return cut_all<key>(result);
  }

  roost::insert_report call(change what, const std::vector<key>& keys, const std::vector<value>& values,
                            const std::vector<char>* stencil) {
    const roost::bulk_options how{.path = draw_path()};
    const auto k = upload(keys);
    const auto v = upload(values);
    if (stencil != nullptr) return map_.insert_if(test_place(), k, v, upload(*stencil), how);
    if (what == change::keep) return map_.insert(test_place(), k, v, how);
    if (what == change::assign) return map_.insert_or_assign(test_place(), k, v, how);
    if constexpr (std::is_integral_v<value>) {
      if (what == change::plus) return map_.insert_or_apply(test_place(), k, v, roost::plus(), how);
    }
    return map_.insert_or_apply(test_place(), k, v, add(), how);
  }

  void put(change what, bool some) {
    const auto keys = draw_keys();
    const auto values = cut_all<value>(random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000),
                                                      *rc::gen::element<u64>(u64{3}, ~u64{0})));
    std::vector<char> stencil(keys.size(), 1);
    if (some) {
      for (std::size_t i = 0; i < stencil.size(); ++i) stencil[i] = widened(values[i]) % 2 == 0;
    }
    batch given;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (stencil[i] != 0) given[keys[i]].push_back(values[i]);
    }
    const roost::insert_report report = call(what, keys, values, some ? &stencil : nullptr);
    const bool adds = what == change::plus || what == change::add;
    const auto full = base::after_put(
        given, report, [&](const value* before, const std::vector<value>& copies, const value& after) {
          if (!adds)
            return what == change::keep && before != nullptr ? after == *before : base::one_of(copies, after);
          u64 sum = before == nullptr ? 0 : widened(*before);
          for (const value& v : copies) sum += widened(v);
          return after == cut<value>(sum);
        });
    if (adds && !on_host) {  // copies that were added up first count as one
      RC_ASSERT(report.full >= full.keys);
      RC_ASSERT(report.full <= full.pairs);
    } else {
      RC_ASSERT(report.full == full.pairs);
    }
  }

  void erase_if() {
    const std::size_t there =
        std::erase_if(held_, [](const auto& pair) { return third()(pair.first, pair.second); });
    RC_ASSERT(map_.erase_if(test_place(), third()) == there);
  }

  void run() {
    std::vector<roost::operation<key, value>> operations;
    oracle_set<key> seen;
    u64 i = *rc::gen::inRange<u64>(0, 1000);
    for (const key& k : draw_keys()) {
      if (seen.insert(k).second)
        operations.push_back(
            {static_cast<operation_kind>(std::mt19937_64(++i)() % 4), k, cut<value>(i * 0x9e3779b97f4a7c15)});
    }
    base::run(operations);
  }
};

template <class T>
class concurrent_model : public testing::Test {};
using all_types = axis<types<u32, u32>, types<u32, u64>, types<u8, u8>, types<u64, u64>, types<three, five>>;
TYPED_TEST_SUITE(concurrent_model, all_types);

TYPED_TEST(concurrent_model, agrees_with_the_oracle_after_every_call) {
  EXPECT_TRUE(rc::check([] {
    roost::concurrent_options options;
    options.load_factor = *rc::gen::inRange(100, 1001) / 1000.0;
    options.seed = *rc::gen::arbitrary<u64>();
    options.grows = *rc::gen::arbitrary<bool>();
    // Tables of one bucket a section, of some, and of several regions.
    const auto slots = *rc::gen::weightedOneOf<std::size_t>(
        {{8, rc::gen::inRange<std::size_t>(0, 200)}, {1, rc::gen::inRange<std::size_t>(0, 10 * large)}});
    model<TypeParam> both(static_cast<std::size_t>(options.load_factor * static_cast<double>(slots)),
                          options);
    both.check();
    const int steps = *rc::gen::inRange(1, 20);
    for (int i = 0; i < steps; ++i) both.step();
  }));
}

}  // namespace
}  // namespace test
