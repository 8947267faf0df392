#include <rapidcheck.h>
#include <roost/concurrent_map.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Random sequences of bulk calls on a concurrent_map beside a std::unordered_map. RapidCheck makes a sequence short when it fails.

namespace test {
namespace {

using roost::operation_kind;
using roost::path;

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
  ROOST_FN V operator()(const V& a, const V& b) const { return cut<V>(widened(a) + widened(b)); }
};

struct third {
  template <class K, class V>
  ROOST_FN bool operator()(const K& key, const V& value) const { return (widened(key) + widened(value)) % 3 == 0; }
};

template <class Key, class Value>
struct types {
  using key = Key;
  using value = Value;
  using map = roost::concurrent_map<Key, Value, place_type>;
};

constexpr std::size_t large = sanitized ? 2000 : 20000;

/// Key numbers with copies: out of few or of all, from both ends of what a key can be.
numbers draw_numbers() {
  const auto n = *rc::gen::weightedOneOf<std::size_t>({{9, rc::gen::inRange<std::size_t>(0, 60)}, {1, rc::gen::inRange<std::size_t>(0, large)}});
  const auto most = *rc::gen::weightedOneOf<u64>({{4, rc::gen::inRange<u64>(0, 40)}, {1, rc::gen::inRange<u64>(0, large)}, {1, rc::gen::just(~u64{0})}});
  numbers result = random_numbers(n, *rc::gen::inRange<u64>(0, 1000), most);
  for (u64& number : result) number = number % 2 == 0 ? number / 2 : ~(number / 2);
  return result;
}

path draw_path() { return *rc::gen::element(path::automatic, path::direct, path::regional); }

/// A map on the place, and what it must hold.
template <class T>
class model {
 public:
  using key = typename T::key;
  using value = typename T::value;
  using oracle = oracle_map<key, value>;

  model(std::size_t n, const roost::concurrent_options& options) : map_(test_place(), n, options), grows_(options.grows) {}

  /// A random call, and a look at everything.
  void step() {
    const std::size_t capacity = map_.capacity();
    const int what = *rc::gen::weightedElement<int>({{4, 0}, {2, 1}, {3, 2}, {3, 3}, {3, 4}, {4, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 9}, {1, 10}, {4, 11}});
    switch (what) {
      case 0: put(change::keep, false); break;
      case 1: put(change::keep, true); break;
      case 2: put(change::assign, false); break;
      case 3: put(change::plus, false); break;
      case 4: put(change::add, false); break;
      case 5: erase(); break;
      case 6: erase_if(); break;
      case 7:
        map_.clear(test_place());
        held_.clear();
        break;
      case 8:
        map_.reserve(test_place(), *rc::gen::inRange<std::size_t>(0, 3000));
        RC_ASSERT(map_.capacity() >= capacity);
        break;
      case 9: map_.rehash(test_place(), *rc::gen::inRange<std::size_t>(0, 3000)); break;
      case 10: map_.shrink_to_fit(test_place()); break;
      default: run();
    }
    if (!grows_ && (what < 8 || what > 10)) RC_ASSERT(map_.capacity() == capacity);
    check();
  }

  /// All that the map tells.
  void check() const {
    RC_ASSERT(read() == held_);
    std::vector<key> queries = cut_all<key>(draw_numbers());
    for (const auto& [k, v] : held_) queries.push_back(k);
    const auto asked = upload(queries);
    const auto missing = cut<value>(77), untouched = cut<value>(78);
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
      wrong += values[i] != (here ? known->second : missing) || masked_values[i] != (here ? known->second : untouched);
      wrong += (there[i] != 0) != here || (also_there[i] != 0) != here;
    }
    RC_ASSERT(wrong == 0u);
    RC_ASSERT(map_.count(test_place(), asked) == hits);
    const auto statistics = map_.statistics(test_place());
    RC_ASSERT(statistics.size == held_.size());
    RC_ASSERT(statistics.capacity == map_.capacity());
    RC_ASSERT(statistics.bytes == map_.bytes());
    RC_ASSERT(statistics.size + statistics.erased <= statistics.capacity);
    std::size_t keys = 0;
    for (const std::size_t n : statistics.keys_by_probes) keys += n;
    RC_ASSERT(keys == held_.size());
    RC_ASSERT(statistics.keys_by_probes.size() == statistics.most_probes);
    RC_ASSERT(map_.valid(test_place()));
  }

 private:
  enum class change { keep, assign, plus, add };

  /// All pairs, by retrieve_all.
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

  roost::insert_report call(change what, const std::vector<key>& keys, const std::vector<value>& values, const std::vector<char>* stencil) {
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

  /// An insert: what may come of it is known but for which of a key's copies is first, and which keys find no room if the map does not grow.
  void put(change what, bool some) {
    const auto keys = cut_all<key>(draw_numbers());
    const auto values = cut_all<value>(random_numbers(keys.size(), *rc::gen::inRange<u64>(0, 1000), *rc::gen::element<u64>(3, ~u64{0})));
    std::vector<char> stencil(keys.size(), 1);
    if (some) {
      for (std::size_t i = 0; i < stencil.size(); ++i) stencil[i] = widened(values[i]) % 2 == 0;
    }
    oracle_map<key, std::vector<value>> given;
    std::size_t asked = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (stencil[i] == 0) continue;
      given[keys[i]].push_back(values[i]);
      ++asked;
    }
    const std::size_t capacity = map_.capacity();
    const roost::insert_report report = call(what, keys, values, some ? &stencil : nullptr);
    const oracle now = read();
    const bool adds = what == change::plus || what == change::add;
    std::size_t fresh = 0, full_keys = 0, full_pairs = 0;
    for (const auto& [k, of_key] : given) {
      const auto before = held_.find(k);
      const auto after = now.find(k);
      if (after == now.end()) {
        RC_ASSERT(before == held_.end());  // no key is lost
        ++full_keys;
        full_pairs += of_key.size();
        continue;
      }
      fresh += before == held_.end();
      if (adds) {
        u64 sum = before == held_.end() ? 0 : widened(before->second);
        for (const value& v : of_key) sum += widened(v);
        RC_ASSERT(after->second == cut<value>(sum));
      } else if (what == change::keep && before != held_.end()) {
        RC_ASSERT(after->second == before->second);
      } else {
        RC_ASSERT(std::find(of_key.begin(), of_key.end(), after->second) != of_key.end());
      }
    }
    for (const auto& [k, v] : held_) {
      if (given.contains(k)) continue;
      const auto after = now.find(k);
      RC_ASSERT(after != now.end());
      RC_ASSERT(after->second == v);
    }
    RC_ASSERT(now.size() == held_.size() + fresh);
    RC_ASSERT(report.inserted == fresh);
    RC_ASSERT(report.inserted + report.present + report.full == asked);
    if (grows_) {
      RC_ASSERT(report.full == 0u);
    } else {
      RC_ASSERT(map_.capacity() == capacity);
    }
    if (adds && !on_host) {  // copies that were added up first count as one
      RC_ASSERT(report.full >= full_keys);
      RC_ASSERT(report.full <= full_pairs);
    } else {
      RC_ASSERT(report.full == full_pairs);
    }
    held_ = now;
  }

  void erase() {
    const auto keys = cut_all<key>(draw_numbers());
    std::size_t there = 0;
    for (const key& k : keys) there += held_.erase(k);
    RC_ASSERT(map_.erase(test_place(), upload(keys), {.path = draw_path()}) == there);
  }

  void erase_if() {
    const std::size_t there = std::erase_if(held_, [](const auto& pair) { return third()(pair.first, pair.second); });
    RC_ASSERT(map_.erase_if(test_place(), third()) == there);
  }

  /// A mixed batch of one operation a key, so that its order does not matter.
  void run() {
    std::vector<roost::operation<key, value>> operations;
    oracle_set<key> seen;
    u64 i = *rc::gen::inRange<u64>(0, 1000);
    for (const key& k : cut_all<key>(draw_numbers())) {
      if (seen.insert(k).second) operations.push_back({static_cast<operation_kind>(std::mt19937_64(++i)() % 4), k, cut<value>(i * 0x9e3779b97f4a7c15)});
    }
    roost::array<roost::operation_result<value>, place_type> results(test_place(), operations.size());
    map_.run(test_place(), upload(operations), results);
    const auto answers = download(results);
    for (i = 0; i < operations.size(); ++i) {
      const auto& [kind, k, v] = operations[i];
      const auto& answer = answers[i];
      const auto known = held_.find(k);
      const bool there = known != held_.end();
      if (answer.full) {
        RC_ASSERT(!there);
        RC_ASSERT(!answer.done);
        RC_ASSERT((kind == operation_kind::insert || kind == operation_kind::insert_or_assign));
        continue;
      }
      switch (kind) {
        case operation_kind::find:
          RC_ASSERT(answer.done == there);
          if (there) RC_ASSERT(answer.value == known->second);
          break;
        case operation_kind::insert:
          RC_ASSERT(answer.done == !there);
          RC_ASSERT(answer.value == (there ? known->second : v));
          held_.emplace(k, v);
          break;
        case operation_kind::insert_or_assign:
          RC_ASSERT(answer.done);
          held_[k] = v;
          break;
        case operation_kind::erase:
          RC_ASSERT(answer.done == there);
          held_.erase(k);
          break;
      }
    }
  }

  typename T::map map_;
  bool grows_;
  oracle held_;
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
    // Tables of one bucket a quarter, of some, and of several regions.
    const auto slots = *rc::gen::weightedOneOf<std::size_t>({{8, rc::gen::inRange<std::size_t>(0, 200)}, {1, rc::gen::inRange<std::size_t>(0, 10 * large)}});
    model<TypeParam> both(static_cast<std::size_t>(options.load_factor * static_cast<double>(slots)), options);
    both.check();
    const int steps = *rc::gen::inRange(1, 20);
    for (int i = 0; i < steps; ++i) both.step();
  }));
}

}  // namespace
}  // namespace test
