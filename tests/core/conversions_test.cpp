#include <roost/sorted_map.hpp>
#include <roost/stadium/stadium_map.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Keys, values and queries of other number types than the table's: those that keep every value go in; the
// others do not compile (tests/misuse).

namespace test {
namespace {

using roost::detail::changes_the_key;
using roost::detail::keeps_every_value;
using std::int16_t, std::int32_t, std::int64_t, std::int8_t;

TEST(conversions, which_keep_every_value) {
  static_assert(keeps_every_value<u32, u32> && keeps_every_value<twelve, twelve>);
  static_assert(keeps_every_value<u16, u32> && keeps_every_value<int8_t, int64_t>);
  static_assert(keeps_every_value<unsigned long, unsigned long long>);
  static_assert(keeps_every_value<u16, int32_t> && !keeps_every_value<u32, int32_t>);
  static_assert(!keeps_every_value<int32_t, u32> && !keeps_every_value<int8_t, u64>);
  static_assert(!keeps_every_value<int64_t, int32_t> && !keeps_every_value<u64, u32>);
  static_assert(keeps_every_value<bool, int8_t> && !keeps_every_value<u8, bool>);
  static_assert(keeps_every_value<float, double> && !keeps_every_value<double, float>);
  static_assert(!keeps_every_value<float, int64_t> && !keeps_every_value<double, u8>);
  static_assert(keeps_every_value<int32_t, double> && !keeps_every_value<int64_t, double>);
  static_assert(!keeps_every_value<int32_t, float> && keeps_every_value<int16_t, float>);
  static_assert(!keeps_every_value<twelve, sixteen> && !keeps_every_value<int, const int*>);
}

TEST(conversions, of_a_single_key) {
  static_assert(!changes_the_key<u32, u32> && !changes_the_key<u32, int> && !changes_the_key<u64, int>);
  static_assert(changes_the_key<int, long> && changes_the_key<u32, u64> && changes_the_key<u8, int>);
  static_assert(changes_the_key<int, double> && changes_the_key<u64, float>);
  static_assert(!changes_the_key<int, int, double> && changes_the_key<int, double, int>);
  static_assert(!changes_the_key<double, long> && !changes_the_key<twelve, twelve, double>);
  static_assert(!changes_the_key<int, roost::one_lane, int, double>);
  static_assert(changes_the_key<int, roost::one_lane, long, int>);
  static_assert(!changes_the_key<int, std::vector<int>::reference, double>);
}

/// Whether single-key calls of a ref with an int for a key take a K.
template <class K, class Ref>
constexpr bool finds = requires(const Ref& ref, const K& key) { ref.find(key); };
template <class K, class Ref>
constexpr bool asks = requires(const Ref& ref, const K& key) { ref.contains(key); };
template <class K, class Ref>
constexpr bool asks_lower_bound = requires(const Ref& ref, const K& key) { ref.lower_bound(key); };
template <class K, class Ref>
constexpr bool counts = requires(const Ref& ref, const K& key) { ref.count(key); };
template <class K, class Ref>
constexpr bool inserts = requires(const Ref& ref, const K& key) { ref.insert(key, 1); };
template <class K, class Ref>
constexpr bool inserts_new = requires(const Ref& ref, const K& key) { ref.insert_new(key, 1); };
template <class K, class Ref>
constexpr bool inserts_alone = requires(const Ref& ref, const K& key) { ref.insert(key); };
template <class K, class Ref>
constexpr bool assigns = requires(const Ref& ref, const K& key) { ref.insert_or_assign(key, 1); };
template <class K, class Ref>
constexpr bool applies =
    requires(const Ref& ref, const K& key) { ref.insert_or_apply(key, 1, roost::plus()); };
template <class K, class Ref>
constexpr bool inserts_and_finds = requires(const Ref& ref, const K& key) { ref.insert_and_find(key, 1); };
template <class K, class Ref>
constexpr bool replaces = requires(const Ref& ref, const K& key) { ref.replace(key, 1, 2); };
template <class K, class Ref>
constexpr bool erases = requires(const Ref& ref, const K& key) { ref.erase(key); };

// clang-format off
#define TAKES_ONLY_KEYS(call, ...)                                                       \
  static_assert(call<int, __VA_ARGS__> && call<short, __VA_ARGS__>);                     \
  static_assert(!call<long, __VA_ARGS__> && !call<double, __VA_ARGS__> && !call<u64, __VA_ARGS__>)
// clang-format on

template <class Ref>
void check_lookups() {
  TAKES_ONLY_KEYS(finds, Ref);
  TAKES_ONLY_KEYS(asks, Ref);
}
template <class Ref>
void check_changes() {
  TAKES_ONLY_KEYS(inserts, Ref);
  TAKES_ONLY_KEYS(assigns, Ref);
  TAKES_ONLY_KEYS(applies, Ref);
  TAKES_ONLY_KEYS(inserts_and_finds, Ref);
  TAKES_ONLY_KEYS(erases, Ref);
}

struct wide {
  u64 words[2];
  wide() = default;
  ROOST_FN wide(int i) : words{static_cast<u64>(i), 0} {}
};

TEST(conversions, single_keys_that_would_be_changed_do_not_compile) {
  check_lookups<roost::frozen_map<int, int, place_type, roost::compact>::ref_type>();
  check_lookups<roost::frozen_map<int, int, place_type, roost::bucketed>::ref_type>();
  check_lookups<roost::frozen_multimap<int, int, place_type>::ref_type>();
  TAKES_ONLY_KEYS(counts, roost::frozen_multimap<int, int, place_type>::ref_type);
  check_lookups<roost::two_way_index<int, place_type>::ref_type>();
  check_lookups<roost::sorted_map<int, int, place_type>::ref_type>();
  TAKES_ONLY_KEYS(asks_lower_bound, roost::sorted_map<int, int, place_type>::ref_type);
  check_lookups<roost::concurrent_map<int, int, place_type>::reader_type>();
  check_lookups<roost::concurrent_map<int, int, place_type>::ref_type>();
  check_changes<roost::concurrent_map<int, int, place_type>::ref_type>();
  TAKES_ONLY_KEYS(replaces, roost::concurrent_map<int, int, place_type>::ref_type);
  TAKES_ONLY_KEYS(inserts_alone, roost::concurrent_set<int, place_type>::ref_type);
  check_lookups<roost::concurrent_map<int, wide, place_type>::ref_type>();
  check_changes<roost::concurrent_map<int, wide, place_type>::ref_type>();
  check_changes<roost::block_map<int, int, 64, place_type>>();
  check_lookups<roost::stadium_map<int, int, place_type>::reader_type>();
  check_changes<roost::stadium_map<int, int, place_type>::ref_type>();
  TAKES_ONLY_KEYS(inserts_new, roost::stadium_map<int, int, place_type>::ref_type);
}

/// Keys 0, 100, ... as u16; values as floats that are 1 more; queries 0, 50, ... as u8.
struct narrow {
  static constexpr std::size_t n = 600, asked = 5;
  memory_of<u16> keys = upload(from_numbers<u16>(multiples(n, 100)));
  memory_of<float> values = [] {
    std::vector<float> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<float>(100 * i + 1);
    return upload(result);
  }();
  memory_of<u8> queries = upload(from_numbers<u8>(multiples(asked, 50)));
};
const std::vector<double> expected{1, -1, 101, -1, 201};
const std::vector<char> there{1, 0, 1, 0, 1};

template <class Table>
void check_bulk_lookups(const Table& table, const narrow& input) {
  auto results = filled<double>(narrow::asked, 7);
  table.find(test_place(), input.queries, results, -1.0);
  EXPECT_EQ(download(results), expected);
  auto answers = filled<bool>(narrow::asked, false);
  table.contains(test_place(), input.queries, answers);
  EXPECT_EQ(download(answers), there);
  EXPECT_TRUE(table.valid(test_place()));
}

TEST(conversions, of_frozen_tables) {
  const narrow input;
  const roost::frozen_map<int64_t, double, place_type> map(test_place(), input.keys, input.values);
  check_bulk_lookups(map, input);
  EXPECT_EQ(map.count_found(test_place(), input.queries), 3u);
  check_bulk_lookups(roost::sorted_map<int64_t, double, place_type>(test_place(), input.keys, input.values),
                     input);

#if !defined(__CUDACC__)  // conversions are the same on every place, and each table takes nvcc half a minute
  const roost::frozen_multimap<int64_t, double, place_type> multimap(test_place(), input.keys, input.values);
  const auto found = multimap.retrieve(test_place(), input.queries);
  EXPECT_EQ(download(found.values), (std::vector<double>{1, 101, 201}));
  EXPECT_EQ(multimap.count_matches(test_place(), input.queries), 3u);
  auto counts = filled<int>(narrow::asked, 7);
  multimap.count(test_place(), input.queries, counts);
  EXPECT_EQ(download(counts), (std::vector<int>{1, 0, 1, 0, 1}));

  roost::frozen_set<u64, place_type> set(test_place(), input.keys);
  EXPECT_EQ(set.count_found(test_place(), input.queries), 3u);
  set.rebuild(test_place(), input.queries);
  EXPECT_EQ(set.count_found(test_place(), input.keys), 3u);

  roost::two_way_index<u32, place_type> index(test_place(), input.keys);
  EXPECT_EQ(download(index.add(test_place(), input.queries)), (std::vector<u32>{0, 600, 1, 601, 2}));
  auto indices = filled<u32>(narrow::asked, 7);
  index.find(test_place(), input.queries, indices);
  EXPECT_EQ(download(indices), (std::vector<u32>{0, 600, 1, 601, 2}));
#endif
}

#if !defined(__CUDACC__)
template <class Map>
void check_changing_map(const narrow& input) {
  Map map(test_place());
  EXPECT_EQ(map.insert(test_place(), input.keys, input.values).inserted, narrow::n);
  check_bulk_lookups(map, input);
  EXPECT_EQ(map.insert_or_apply(test_place(), input.keys, input.values, roost::plus()).present, narrow::n);
  EXPECT_EQ(map.insert_or_assign(test_place(), input.keys, input.values).present, narrow::n);
  check_bulk_lookups(map, input);
  EXPECT_EQ(map.count_found(test_place(), input.queries), 3u);
  EXPECT_EQ(map.erase(test_place(), input.queries), 3u);
  EXPECT_EQ(map.size(test_place()), narrow::n - 3);
}

TEST(conversions, of_tables_that_change) {
  const narrow input;
  check_changing_map<roost::concurrent_map<int64_t, double, place_type>>(input);
  check_changing_map<roost::stadium_map<int64_t, double, place_type>>(input);
  roost::concurrent_set<int64_t, place_type> set(test_place());
  EXPECT_EQ(set.insert(test_place(), input.keys).inserted, narrow::n);
  EXPECT_EQ(set.erase(test_place(), input.queries), 3u);
}
#endif

struct is_odd {
  ROOST_FN bool operator()(std::size_t i) const { return i % 2 != 0; }
};

TEST(conversions, of_bools_that_are_computed) {
  const auto keys = roost::computed(2, is_odd());
  const roost::frozen_map<int, int, place_type> map(test_place(), keys, keys);
  EXPECT_EQ(map.count_found(test_place(), keys), 2u);
  EXPECT_EQ(map.size(), 2u);
}

}  // namespace
}  // namespace test
