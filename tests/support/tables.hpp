#pragma once

#include <memory>

#include "papers/cuckoo.hpp"
#include "support/keys.hpp"
#include "support/place.hpp"

// frozen_map and frozen_set on the place under test, as calls on host vectors: a test reads the same for
// every place, and the tables are compiled once (tables_bodies.hpp), not once a test file.

/// Sets are checked as maps to nothing.
namespace roost {
inline bool operator==(none, none) { return true; }
}  // namespace roost

namespace test {

/// roost::frozen_map<Key, Value, place_type, Layout>, or frozen_set if Value is roost::none.
template <class Key, class Value, class Layout>
class table {
 public:
  static constexpr bool has_values = !std::is_same_v<Value, roost::none>;
  using key_type = Key;
  using mapped_type = Value;
  using layout = Layout;
  using options = typename Layout::options;

  table(const std::vector<Key>& keys, const std::vector<Value>& values, options options = {},
        const place_type& place = test_place());
  ~table();
  table(table&&) noexcept;
  table& operator=(table&&) noexcept;

  void rebuild(const std::vector<Key>& keys, const std::vector<Value>& values,
               const place_type& place = test_place());
  void rebuild_async(const std::vector<Key>& keys, const std::vector<Value>& values,
                     const place_type& place = test_place());
  void finish(const place_type& place = test_place());
  /// Goes direct and by region, with and without a found mask, and checks that all say the same.
  std::vector<Value> find(const std::vector<Key>& queries, Value missing) const;
  std::vector<Value> find(const std::vector<Key>& queries, Value missing, const roost::bulk_options& how,
                          roost::bulk_report* report) const;
  /// Values, `missing` where there is none, and the mask.
  std::pair<std::vector<Value>, std::vector<char>> find_and_mask(const std::vector<Key>& queries,
                                                                 Value missing,
                                                                 const roost::bulk_options& how) const;
  /// The same by the ref, in place.for_each.
  std::vector<Value> find_by_ref(const std::vector<Key>& queries, Value missing) const;
  std::vector<char> contains(const std::vector<Key>& queries) const;
  std::vector<char> contains(const std::vector<Key>& queries, const roost::bulk_options& how) const;
  std::vector<char> contains_by_ref(const std::vector<Key>& queries) const;
  std::size_t count_found(const std::vector<Key>& queries) const;
  std::size_t retrieve_all(std::vector<Key>& keys, std::vector<Value>& values) const;
  /// How many pairs for_each visits, and a sum over what they are.
  std::pair<std::uint64_t, std::uint64_t> sum_by_for_each() const;
  /// What a host iterates over, in the order of the slots. Empty on cuda.
  std::vector<std::pair<Key, Value>> iterate() const;
  const roost::frozen_statistics& statistics() const;
  std::size_t size() const;
  bool empty() const;
  std::size_t capacity() const;
  std::size_t bytes() const;
  double load_factor() const;
  double mean_probes() const;
  std::uint32_t most_probes(const std::vector<Key>& queries) const;
  bool valid() const;

 private:
  struct body;
  std::unique_ptr<body> body_;
};

/// What sum_by_for_each() adds up for one pair.
template <class Key, class Value>
ROOST_FN std::uint64_t fingerprint(const Key& key, const Value& value) {
  unsigned char bytes[sizeof(Key) + sizeof(Value)];
  std::memcpy(bytes, &key, sizeof(Key));
  std::memcpy(bytes + sizeof(Key), &value, sizeof(Value));
  constexpr std::size_t n = std::is_same_v<Value, roost::none> ? sizeof(Key) : sizeof(bytes);
  std::uint64_t h = 14695981039346656037ull;
  for (std::size_t i = 0; i < n; ++i) h = (h ^ bytes[i]) * 1099511628211ull;
  return h;
}

/// Builds a table and compares every call with the oracle: hits, misses, copies, iteration. Returns what the
/// build reported.
template <class Table>
roost::frozen_statistics check(const std::vector<typename Table::key_type>& keys,
                               const std::vector<typename Table::mapped_type>& values,
                               typename Table::options options = {});

/// The same for numbers, with a value of its own for each.
template <class Table>
roost::frozen_statistics check(const numbers& key_numbers, typename Table::options options = {}) {
  return check<Table>(from_numbers<typename Table::key_type>(key_numbers),
                      numbered_values<typename Table::mapped_type>(key_numbers.size()), options);
}

template <class Key, class Value>
using bucketed_map = table<Key, Value, roost::bucketed>;
template <class Key>
using bucketed_set = table<Key, roost::none, roost::bucketed>;
template <class Key, class Value>
using cuckoo_map = table<Key, Value, roost::cuckoo>;
template <class Key>
using cuckoo_set = table<Key, roost::none, roost::cuckoo>;
template <class Key, class Value>
using compact_map = table<Key, Value, roost::compact>;
template <class Key>
using compact_set = table<Key, roost::none, roost::compact>;

// Every table that is tested, and in which file it is compiled. TEST_MORE(N, ..): only where tests run with
// all their types, or with third N. TEST_DATA: only where tests run whose threads do what those of other
// tests do, with other data (tests/CMakeLists.txt).
#define TEST_MORE(third, ...) TEST_MORE_##third(__VA_ARGS__)
#if !defined(ROOST_TEST_TYPES) || ROOST_TEST_TYPES == 1
#define TEST_MORE_1(...) __VA_ARGS__
#else
#define TEST_MORE_1(...)
#endif
#if !defined(ROOST_TEST_TYPES) || ROOST_TEST_TYPES == 2
#define TEST_MORE_2(...) __VA_ARGS__
#else
#define TEST_MORE_2(...)
#endif
#if defined(ROOST_TEST_ONLY_THREADS)
#define TEST_DATA(...)
#else
#define TEST_DATA(...) __VA_ARGS__
#endif
#define TEST_TABLES_OF_WORDS(TABLE) /* frozen_map_test.cpp */ \
  TABLE(u32, u32, roost::bucketed)                            \
  TABLE(u64, u64, roost::bucketed)                            \
  TEST_MORE(1, TABLE(u32, u64, roost::bucketed))              \
  TEST_DATA(TEST_MORE(2, TABLE(u64, u32, roost::bucketed)))
#define TEST_TABLES_OF_STRUCTS(TABLE) /* struct_keys_test.cpp */      \
  TEST_DATA(TABLE(twelve, twentyfour, roost::bucketed))               \
  TEST_DATA(TEST_MORE(1, TABLE(sixteen, u32, roost::bucketed)))       \
  TEST_DATA(TEST_MORE(2, TABLE(twentyfour, twelve, roost::bucketed))) \
  TEST_DATA(TEST_MORE(1, TABLE(sixteen, twelve, roost::cuckoo)))
#define TEST_TABLES_OF_BYTES(TABLE) /* every_key_test.cpp */ \
  TEST_DATA(TABLE(u8, u8, roost::bucketed))                  \
  TEST_DATA(TEST_MORE(2, TABLE(u16, u32, roost::bucketed)))  \
  TEST_DATA(TEST_MORE(1, TABLE(u16, u16, roost::cuckoo)))
#define TEST_TABLES_CUCKOO(TABLE) /* cuckoo_test.cpp */ \
  TABLE(u32, u32, roost::cuckoo)                        \
  TABLE(u32, roost::none, roost::cuckoo)                \
  TEST_MORE(2, TABLE(u64, u64, roost::cuckoo))
#define TEST_TABLES_COMPACT(TABLE) /* compact_test.cpp */     \
  TABLE(u32, u32, roost::compact)                             \
  TABLE(u64, u64, roost::compact)                             \
  TABLE(u32, roost::none, roost::compact)                     \
  TEST_MORE(1, TABLE(u32, u64, roost::compact))               \
  TEST_DATA(TEST_MORE(2, TABLE(u64, u32, roost::compact)))    \
  TEST_MORE(1, TABLE(u8, u8, roost::compact))                 \
  TEST_DATA(TEST_MORE(2, TABLE(u32, twelve, roost::compact))) \
  TEST_MORE(1, TABLE(u64, roost::none, roost::compact))
#define TEST_SETS(TABLE) /* frozen_set_test.cpp */                  \
  TEST_DATA(TABLE(u64, roost::none, roost::bucketed))               \
  TEST_DATA(TEST_MORE(2, TABLE(u32, roost::none, roost::bucketed))) \
  TEST_DATA(TEST_MORE(1, TABLE(twelve, roost::none, roost::bucketed)))

/// Whether this build compiles a table.
template <class Table>
inline constexpr bool is_compiled = false;

#define TEST_DECLARE(K, V, L)                                                           \
  template <>                                                                           \
  inline constexpr bool is_compiled<table<K, V, L>> = true;                             \
  extern template class table<K, V, L>;                                                 \
  extern template roost::frozen_statistics check<table<K, V, L>>(const std::vector<K>&, \
                                                                 const std::vector<V>&, L::options);
#define TEST_DEFINE(K, V, L)                                                                            \
  template class table<K, V, L>;                                                                        \
  template roost::frozen_statistics check<table<K, V, L>>(const std::vector<K>&, const std::vector<V>&, \
                                                          L::options);

TEST_TABLES_OF_WORDS(TEST_DECLARE)
TEST_TABLES_OF_STRUCTS(TEST_DECLARE)
TEST_TABLES_OF_BYTES(TEST_DECLARE)
TEST_TABLES_CUCKOO(TEST_DECLARE)
TEST_TABLES_COMPACT(TEST_DECLARE)
TEST_SETS(TEST_DECLARE)

/// The tables that a suite runs with: those that this build compiles.
template <class... Tables>
struct compiled_tables;
template <class... Tables>
struct compiled_tables<testing::Types<Tables...>> {
  using type = testing::Types<Tables...>;
};
template <class... Tables, class Next, class... Rest>
struct compiled_tables<testing::Types<Tables...>, Next, Rest...>
    : compiled_tables<
          std::conditional_t<is_compiled<Next>, testing::Types<Tables..., Next>, testing::Types<Tables...>>,
          Rest...> {};
template <class... Tables>
using table_axis = typename compiled_tables<testing::Types<>, Tables...>::type;

}  // namespace test
