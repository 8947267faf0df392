#pragma once

#include <array>
#include <map>
#include <set>

#include "support/keys.hpp"
#include "support/place.hpp"

// Keys of every kind that the pages allow. Each stands for a number, so that oracles need no key.

namespace test {

enum class small_enum : std::int8_t {};
enum class wide_enum : std::uint64_t {};
enum class yes_or_no : bool {};
template <std::size_t N>
using bytes = std::array<unsigned char, N>;
struct alignas(16) aligned_16 {
  std::uint64_t word[2];
};
struct alignas(32) aligned_32 {
  std::uint32_t word[8];
};
struct alignas(64) aligned_64 {
  std::uint64_t word[8];
};
/// Its owner has no -0.0.
struct with_float {
  float a;
  std::uint32_t b[3];
};
}  // namespace test

template <>
inline constexpr bool roost::is_bitwise_comparable<test::with_float> = true;

namespace test {

__extension__ typedef __int128 signed_128;
__extension__ typedef unsigned __int128 unsigned_128;

/// The types, in thirds that cost about the same: a row has one of each.
template <template <class...> class List>
using every_kind = List<yes_or_no, bool, char8_t,             //
                        aligned_64, aligned_32, aligned_16,   //
                        unsigned_128, signed_128, bytes<16>,  //
                        std::byte, bytes<7>, small_enum,      //
                        bytes<12>, bytes<3>, bytes<9>,        //
                        wide_enum, std::int64_t, char16_t,    //
                        with_float, wchar_t, bytes<5>>;

template <class T>
constexpr bool is_bool = sizeof(T) == 1 && (std::is_same_v<T, bool> || std::is_same_v<T, yes_or_no>);
/// Numbers have so many bytes in a kind.
template <class T>
constexpr std::size_t number_bytes = std::min<std::size_t>(sizeof(T), 3);
template <class T>
constexpr u64 kinds_of = is_bool<T> ? 2 : u64{1} << 8 * number_bytes<T>;

/// The key that stands for a number: in the last bytes or, where there are six, in the first ones if it is
/// even.
template <class T>
T kind_from(u64 number) {
  T result;
  std::memset(static_cast<void*>(&result), 0, sizeof(T));
  number %= kinds_of<T>;
  if constexpr (is_bool<T>) {
    result = static_cast<T>(number != 0);
  } else {
    const std::size_t at = sizeof(T) < 6 || number % 2 != 0 ? sizeof(T) - number_bytes<T> : 0;
    std::memcpy(reinterpret_cast<char*>(&result) + at, &number, number_bytes<T>);
  }
  return result;
}
template <class T>
u64 number_from(const T& key) {
  u64 first = 0, last = 0;
  std::memcpy(&first, &key, number_bytes<T>);
  std::memcpy(&last, reinterpret_cast<const char*>(&key) + sizeof(T) - number_bytes<T>, number_bytes<T>);
  return sizeof(T) < 6 ? last : first | last;
}

template <class T>
std::vector<T> kinds_from(const numbers& all) {
  std::vector<T> result;
  for (const u64 number : all) result.push_back(kind_from<T>(number));
  return result;
}
/// The same in memory of the place.
template <class T>
memory_of<T> upload_kinds(const numbers& all) {
  return upload(kinds_from<T>(all));
}
/// Keys or values of the place as numbers.
template <class Range>
numbers download_numbers(const Range& source) {
  numbers result;
  for (const auto& each : download(source)) result.push_back(number_from(each));
  return result;
}

/// n numbers of keys, some of them more than once, and what is true of them.
template <class Key>
struct some_keys {
  numbers all, distinct;            // in the order of their first rows
  std::vector<u32> first, inverse;  // rows of `distinct`, and numbers of rows there
  std::vector<u64> counts;          // of `distinct`
  std::map<u64, u32> index;         // of each number in `distinct`

  explicit some_keys(std::size_t n, u64 seed = 1) : all(random_numbers(n, seed, kinds_of<Key> - 1)) {
    for (u64& number : all) number %= n / 2 + 1;
    for (u32 i = 0; i < n; ++i) {
      const auto [at, added] = index.emplace(all[i], static_cast<u32>(distinct.size()));
      if (added) {
        distinct.push_back(all[i]);
        first.push_back(i);
        counts.push_back(0);
      }
      inverse.push_back(at->second);
      ++counts[at->second];
    }
  }
  /// Numbers of which half have keys.
  numbers queries() const {
    numbers result = distinct;
    for (const u64 number : distinct) result.push_back((number + all.size() / 2 + 1) % kinds_of<Key>);
    return result;
  }
  /// Where queries are in `distinct`, or no_index.
  std::vector<u32> find(const numbers& queries) const {
    std::vector<u32> result;
    for (const u64 number : queries) {
      const auto at = index.find(number);
      result.push_back(at == index.end() ? ~u32{0} : at->second);
    }
    return result;
  }
};

/// On both sides of the numbers from which on tables are built in another way, and groups are found so.
inline std::vector<std::size_t> sizes_of_kinds() {
  return sanitized ? std::vector<std::size_t>{1, 600, 7000} : std::vector<std::size_t>{1, 600, 7000, 150'000};
}

/// What frozen tables, sorted ones and multimaps have in common. Values stand for the first rows of keys.
template <class Map, class Key, class Value>
void check_map(const Map& map, const some_keys<Key>& keys, const numbers& first) {
  const auto& place = test_place();
  const auto queries = keys.queries();
  const auto there = upload_kinds<Key>(queries);
  memory_of<Value> results(place, queries.size());
  map.find(place, there, results, kind_from<Value>(77));
  const auto found = keys.find(queries);
  const auto got = download_numbers(results);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < queries.size(); ++i)
    wrong += got[i] != (found[i] == ~u32{0} ? 77 : first[found[i]]) % kinds_of<Value>;
  EXPECT_EQ(wrong, 0u) << keys.all.size() << " pairs";
  EXPECT_EQ(map.count_found(place, there), static_cast<std::size_t>(std::ranges::count_if(
                                               found, [](u32 index) { return index != ~u32{0}; })));
  EXPECT_EQ(map.size(place), keys.distinct.size());
  EXPECT_TRUE(map.valid(place));
}

/// The pairs that a table writes, each with its key's value.
template <class Key, class Value, class Map>
void check_pairs(const Map& map, const some_keys<Key>& keys, const numbers& first) {
  const std::size_t size = keys.distinct.size();
  memory_of<Key> keys_out(test_place(), size);
  memory_of<Value> values_out(test_place(), size);
  EXPECT_EQ(map.retrieve_all(test_place(), keys_out, values_out), size);
  const auto got = download_numbers(keys_out), values = download_numbers(values_out);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += values[i] != first[keys.index.at(got[i])] % kinds_of<Value>;
  EXPECT_EQ(wrong, 0u) << keys.all.size() << " pairs";
  EXPECT_EQ(std::set<u64>(got.begin(), got.end()).size(), size);
}

template <class Map, class Key, class Value>
void check_concurrent(const some_keys<Key>& keys, const memory_of<Key>& there) {
  const auto& place = test_place();
  const std::size_t n = keys.all.size();
  Map map(place, 10);
  const auto distinct = upload_kinds<Key>(keys.distinct);
  const numbers rows = multiples(keys.distinct.size(), 3);
  map.insert(place, distinct, upload_kinds<Value>(rows));
  map.insert(place, there, upload_kinds<Value>(numbers(n, 5)));  // all are there
  check_map<Map, Key, Value>(map, keys, rows);
  check_pairs<Key, Value>(map, keys, rows);
  map.insert_or_assign(place, there, upload_kinds<Value>(numbers(n, 6)));
  check_map<Map, Key, Value>(map, keys, numbers(n, 6));
  EXPECT_EQ(map.erase(place, there), keys.distinct.size());
  map.insert(place, distinct, upload_kinds<Value>(rows));
  check_map<Map, Key, Value>(map, keys, rows);
}

}  // namespace test
