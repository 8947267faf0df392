#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <roost/columns/columns.hpp>
#include <roost/frozen_map.hpp>
#include <roost/join.hpp>
#include <string>

#include "support/keys.hpp"
#include "support/place.hpp"

// Keys of several columns against rows of texts in maps of the standard library.

namespace test {
namespace {

using roost::bytes_of;
using roost::column_type;

/// A value as the oracle has it: null, NaN, or bytes that are equal where the values are.
using cell = std::optional<std::string>;
using row = std::vector<cell>;

template <class T>
cell cell_of_float(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  if (std::isnan(value)) return "NaN";
  return std::to_string(value == 0) +
         std::string(reinterpret_cast<const char*>(from), sizeof(T) * (value != 0));
}
cell cell_of(column_type type, const std::byte* from) {
  if (type == column_type::f4) return cell_of_float<float>(from);
  if (type == column_type::f8) return cell_of_float<double>(from);
  return std::string(reinterpret_cast<const char*>(from), bytes_of(type));
}

template <class T>
T random_value(u64 number, u64 range) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T special[] = {T(-0.0),
                             T(0.0),
                             std::numeric_limits<T>::quiet_NaN(),
                             -std::numeric_limits<T>::quiet_NaN(),
                             std::numeric_limits<T>::infinity(),
                             -std::numeric_limits<T>::infinity(),
                             std::numeric_limits<T>::denorm_min()};
    return number % 3 == 0 ? special[number / 3 % 7] : static_cast<T>(number % (range | 1)) / 16 - 5;
  } else if constexpr (std::is_same_v<T, bool>) {
    return number % 2 != 0;
  } else if (range == 0) {  // all there are
    return static_cast<T>(number % 5 == 0   ? std::numeric_limits<T>::min()
                          : number % 5 == 1 ? std::numeric_limits<T>::max()
                                            : static_cast<T>(number));
  } else {
    return static_cast<T>(number % range - (std::is_signed_v<T> ? range / 2 : 0));
  }
}

/// A column of random values, on the host and at the place.
struct random_column {
  column_type type;
  std::vector<std::byte> bytes;
  std::vector<std::uint8_t> bits;  // which are there; none: all
  memory_of<std::byte> bytes_there;
  memory_of<std::uint8_t> bits_there;
  std::size_t rows;

  template <class T>
  static random_column of(std::size_t n, u64 range, unsigned nulls_percent, std::mt19937_64& random) {
    std::vector<std::byte> bytes(n * sizeof(T) + 1);
    std::vector<std::uint8_t> bits(nulls_percent == 0 ? 0 : n / 8 + 1);
    for (std::size_t i = 0; i < n; ++i) {
      const T value = random_value<T>(random(), range);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      if (nulls_percent != 0)
        bits[i / 8] |= static_cast<std::uint8_t>((random() % 100 >= nulls_percent) << i % 8);
    }
    random_column result{roost::column_type_of<T>, bytes, bits, upload(bytes), {}, n};
    if (nulls_percent != 0) result.bits_there = upload(bits);
    return result;
  }

  roost::key_column column() const {
    roost::key_column result;
    result.values = bytes_there.data();
    result.rows = rows;
    result.type = type;
    result.valid = bits.empty() ? nullptr : bits_there.data();
    return result;
  }
  cell at(std::size_t i) const {
    if (!bits.empty() && (bits[i / 8] >> i % 8 & 1) == 0) return std::nullopt;
    return cell_of(type, bytes.data() + i * bytes_of(type));
  }
};

using table = std::vector<random_column>;

random_column any_column(std::size_t n, std::mt19937_64& random) {
  constexpr u64 ranges[] = {1, 2, 9, 100, 0};
  constexpr unsigned nulls[] = {0, 0, 5, 100};
  const u64 range = ranges[random() % 5];
  const unsigned percent = nulls[random() % 4];
  switch (static_cast<column_type>(random() % 11)) {
    case column_type::i1:
      return random_column::of<std::int8_t>(n, range, percent, random);
    case column_type::i2:
      return random_column::of<std::int16_t>(n, range, percent, random);
    case column_type::i4:
      return random_column::of<std::int32_t>(n, range, percent, random);
    case column_type::i8:
      return random_column::of<std::int64_t>(n, range, percent, random);
    case column_type::b1:
      return random_column::of<bool>(n, range, percent, random);
    case column_type::u1:
      return random_column::of<std::uint8_t>(n, range, percent, random);
    case column_type::u2:
      return random_column::of<std::uint16_t>(n, range, percent, random);
    case column_type::u4:
      return random_column::of<std::uint32_t>(n, range, percent, random);
    case column_type::u8:
      return random_column::of<std::uint64_t>(n, range, percent, random);
    case column_type::f4:
      return random_column::of<float>(n, range, percent, random);
    default:
      return random_column::of<double>(n, range, percent, random);
  }
}

std::vector<roost::key_column> columns_of(const table& all) {
  std::vector<roost::key_column> result;
  for (const random_column& column : all) result.push_back(column.column());
  return result;
}
row row_of(const table& all, std::size_t i) {
  row result;
  for (const random_column& column : all) result.push_back(column.at(i));
  return result;
}

/// The rows that keys stand for.
template <class Key>
std::vector<row> unpacked(const roost::column_packing& packing, const memory_of<Key>& keys,
                          const table& all) {
  std::vector<row> rows(keys.size());
  for (std::size_t c = 0; c < all.size(); ++c) {
    const std::size_t bytes = bytes_of(all[c].type);
    memory_of<std::byte> values(test_place(), keys.size() * bytes);
    memory_of<bool> valid(test_place(), keys.size());
    packing.unpack(test_place(), keys.data(), keys.size(), c, values.data(), valid.data());
    const auto values_here = download(values);
    const auto valid_here = download(valid);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back(valid_here[i] ? cell_of(all[c].type, values_here.data() + i * bytes) : std::nullopt);
    }
  }
  return rows;
}

/// Keys are equal where rows are, and come back as these.
void check_rows(std::size_t n, std::size_t columns, std::mt19937_64& random) {
  table all;
  for (std::size_t c = 0; c < columns; ++c) all.push_back(any_column(n, random));
  const auto of = columns_of(all);
  const roost::column_packing packing(test_place(), of);
  if (packing.key_bytes() == 0) {
    EXPECT_GT(packing.bits(), packing.bits_most);
    EXPECT_THROW(packing.with_keys(test_place(), of, [](const auto&) { return 0; }), roost::invalid_argument);
    return;
  }
  packing.with_keys(test_place(), of, [&]<class Key>(const memory_of<Key>& keys) {
    const auto here = download(keys);
    const auto rows = unpacked(packing, keys, all);
    std::map<row, std::string> key_of;
    std::map<std::string, row> row_of_key;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const row expected = row_of(all, i);
      const std::string bytes(reinterpret_cast<const char*>(&here[i]), sizeof(Key));
      wrong += rows[i] != expected || key_of.emplace(expected, bytes).first->second != bytes ||
               row_of_key.emplace(bytes, expected).first->second != expected;
    }
    EXPECT_EQ(wrong, 0u) << n << " rows of " << columns << " columns";
    return 0;
  });
}

TEST(columns, are_equal_where_rows_are) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const std::size_t n : {0, 1, 2, 31, 2047, 2048, 2049, 5000}) {
    for (std::size_t c = 1; c <= 6; ++c) check_rows(n, c, random);
  }
  for (int k = 0; k < 6; ++k) check_rows(100 + random() % 3000, 1 + random() % 8, random);
}

TEST(columns, are_read_in_tiles) {
  std::mt19937_64 random(7);
  for (const std::size_t n : {65535, 65536, 65537, 200000}) {
    table all;
    all.push_back(random_column::of<std::int32_t>(n, 300, 5, random));
    all.push_back(random_column::of<float>(n, 50, 0, random));
    const auto of = columns_of(all);
    const roost::column_packing packing(test_place(), of);
    packing.with_keys(test_place(), of, [&](const auto& keys) {
      const auto rows = unpacked(packing, keys, all);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) wrong += rows[i] != row_of(all, i);
      EXPECT_EQ(wrong, 0u);
      return 0;
    });
  }
}

void check_join(std::size_t n, std::size_t m, roost::null_equality nulls, std::mt19937_64& random) {
  const unsigned percent[] = {0, 20};
  const auto make = [&](std::size_t rows) {
    table all;
    all.push_back(random_column::of<std::int16_t>(rows, 9, percent[random() % 2], random));
    all.push_back(random_column::of<float>(rows, 3, percent[random() % 2], random));
    return all;
  };
  const table left = make(n), right = make(m);
  std::vector<std::pair<u32, u32>> oracle;
  for (u32 l = 0; l < n; ++l) {
    for (u32 r = 0; r < m; ++r) {
      bool match = row_of(left, l) == row_of(right, r);
      for (const cell& of : row_of(left, l)) match &= of.has_value() || nulls == roost::null_equality::equal;
      if (match) oracle.emplace_back(l, r);
    }
  }
  const auto left_columns = columns_of(left), right_columns = columns_of(right);
  const std::span<const roost::key_column> tables[] = {left_columns, right_columns};
  const roost::column_packing packing(test_place(), tables, nulls);
  ASSERT_LE(packing.key_bytes(), 8u);
  packing.with_keys(test_place(), left_columns, [&]<class Key>(const memory_of<Key>& left_keys) {
    if constexpr (sizeof(Key) <= 8) {
      memory_of<Key> right_keys(test_place(), m);
      packing.pack(test_place(), right_columns, right_keys.data(), 1);
      const auto rows = roost::inner_join(test_place(), left_keys, right_keys);
      const auto l = download(rows.left), r = download(rows.right);
      std::vector<std::pair<u32, u32>> found;
      for (std::size_t i = 0; i < l.size(); ++i) found.emplace_back(l[i], r[i]);
      EXPECT_EQ(found, oracle);
    }
    return 0;
  });
}

TEST(columns, of_two_tables_match) {
  std::mt19937_64 random(3);
  for (const auto nulls : {roost::null_equality::distinct, roost::null_equality::equal}) {
    for (const std::size_t n : {0, 1, 40, 300}) {
      for (const std::size_t m : {0, 7, 200}) check_join(n, m, nulls, random);
    }
  }
}

TEST(columns, ascend_as_rows_do) {
  std::mt19937_64 random(5);
  table all;
  all.push_back(random_column::of<std::int8_t>(1000, 9, 10, random));
  all.push_back(random_column::of<float>(1000, 9, 10, random));
  const auto value = [&](std::size_t c, std::size_t i) {  // nulls come last, and NaNs before them
    const cell it = all[c].at(i);
    if (!it) return std::pair(2, 0.0);
    if (*it == "NaN") return std::pair(1, 0.0);
    if (c == 0) return std::pair(0, static_cast<double>(static_cast<std::int8_t>((*it)[0])));
    float number;
    std::memcpy(&number, all[1].bytes.data() + i * 4, 4);
    return std::pair(0, static_cast<double>(number));
  };
  const auto of = columns_of(all);
  const roost::column_packing packing(test_place(), of);
  ASSERT_EQ(packing.key_bytes(), 8u);
  memory_of<u64> keys(test_place(), 1000);
  packing.pack(test_place(), of, keys.data());
  const auto here = download(keys);
  for (std::size_t i = 1; i < 1000; ++i) {
    const auto one = std::pair(value(0, i - 1), value(1, i - 1)), two = std::pair(value(0, i), value(1, i));
    EXPECT_EQ(one < two, here[i - 1] < here[i]);
    EXPECT_EQ(one == two, here[i - 1] == here[i]);
  }
}

TEST(columns, are_queries_of_another_table) {
  // 15 - 10 + 3 is a power of two: the code of other days has one bit more than the codes of these.
  constexpr std::int64_t never = std::int64_t{1} << 62;
  const std::vector<std::uint8_t> shops{1, 2, 255}, other_shops{0, 1, 1, 2, 255, 255};
  const std::vector<std::int64_t> days{10, 10, 15}, other_days{10, 10, never, 10, 15, never};
  const auto a = upload(shops), c = upload(other_shops);
  const auto b = upload(days), d = upload(other_days);
  const std::vector<roost::key_column> rows{roost::key_column(a), roost::key_column(b)};
  const std::vector<roost::key_column> queries{roost::key_column(c), roost::key_column(d)};
  const roost::column_packing packing(test_place(), rows);
  ASSERT_EQ(packing.key_bytes(), 4u);
  memory_of<u32> keys(test_place(), 3), query_keys(test_place(), 6), results(test_place(), 6);
  packing.pack(test_place(), rows, keys.data());
  packing.pack(test_place(), queries, query_keys.data());
  const roost::frozen_map map(test_place(), keys, upload(std::vector<u32>{100, 200, 300}));
  map.find(test_place(), query_keys, results, 7);
  EXPECT_EQ(download(results), (std::vector<u32>{7, 100, 7, 200, 300, 7}));
}

TEST(columns, of_wide_values_are_several) {
  struct wide {
    u64 low, high;
  };
  const std::vector<wide> values{{1, 2}, {2, 1}, {1, 2}, {~u64{0}, 0}};
  const auto there = upload(values);
  std::vector<roost::key_column> columns(2);
  for (std::size_t c = 0; c < 2; ++c) {
    columns[c].values = reinterpret_cast<const u64*>(there.data()) + c;
    columns[c].rows = values.size();
    columns[c].step = 2;
  }
  const roost::column_packing packing(test_place(), columns);
  const auto back = packing.with_keys(test_place(), columns, [&](const auto& keys) {
    memory_of<wide> result(test_place(), values.size());
    auto* const words = reinterpret_cast<u64*>(result.data());
    for (std::size_t c = 0; c < 2; ++c)
      packing.unpack(test_place(), keys.data(), keys.size(), c, words + c, nullptr, 2);
    return download(result);
  });
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(back[i].low, values[i].low);
    EXPECT_EQ(back[i].high, values[i].high);
  }
}

TEST(columns, that_do_not_fit_are_refused) {
  const auto ints = upload(std::vector<std::int32_t>{1, 2, 3});
  const auto doubles = upload(std::vector<double>{1, 2});
  const auto& place = test_place();
  const std::vector<roost::key_column> none, one{roost::key_column(ints)},
      two{roost::key_column(ints), roost::key_column(doubles)}, other{roost::key_column(doubles)},
      many(33, roost::key_column(ints));
  EXPECT_THROW(roost::column_packing(place, none), roost::invalid_argument);
  EXPECT_THROW(roost::column_packing(place, two), roost::invalid_argument);  // of other numbers of rows
  EXPECT_THROW(roost::column_packing(place, many), roost::invalid_argument);
  const roost::column_packing packing(place, one);
  memory_of<u32> keys(place, 3);
  memory_of<u64> long_keys(place, 3);
  EXPECT_THROW(packing.pack(place, other, keys.data()), roost::invalid_argument);
  EXPECT_THROW(packing.pack(place, one, long_keys.data()), roost::invalid_argument);
  EXPECT_THROW(packing.pack(place, one, keys.data(), 2), roost::invalid_argument);
  packing.pack(place, one, keys.data());
  EXPECT_THROW(packing.unpack<double>(place, keys, 0), roost::invalid_argument);
  EXPECT_THROW(packing.valid(place, keys, 1), roost::invalid_argument);
  EXPECT_EQ(download(packing.unpack<std::int32_t>(place, keys, 0)), (std::vector<std::int32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace test
