#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "roost/place.hpp"

/// \file
/// Keys of several columns, and of columns with nulls: each row of columns as one key of 4 to 32 bytes.

namespace roost {

/// The types of numbers in columns: signed integers, bool, unsigned integers, float and double.
enum class column_type : std::uint8_t { i1, i2, i4, i8, b1, u1, u2, u4, u8, f4, f8 };

/// The bytes of a value.
constexpr std::size_t bytes_of(column_type type) {
  constexpr std::uint8_t bytes[] = {1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}

/// The type of columns of T: an integer, bool, float or double.
template <class T>
constexpr column_type column_type_of = [] {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8 && sizeof(T) > std::is_floating_point_v<T> * 2);
  if (std::is_same_v<T, bool>) return column_type::b1;
  const int log2_bytes = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  const column_type first = std::is_floating_point_v<T> ? column_type::u8  // f4 is 2 after u4
                            : std::is_signed_v<T>       ? column_type::i1
                                                        : column_type::u1;
  return static_cast<column_type>(static_cast<int>(first) +
                                  (std::is_floating_point_v<T> ? log2_bytes - 1 : log2_bytes));
}();

/// A column of keys, or of a part of keys, in memory of the place, which must outlive its use.
struct key_column {
  const void* values = nullptr;
  std::size_t rows = 0;
  column_type type = column_type::u8;
  std::size_t step = 1;  ///< from one value to the next, in values
  /// Which values are not null, as in Arrow: bit i % 8 of byte i / 8. A null pointer means all values.
  const std::uint8_t* valid = nullptr;

  key_column() = default;
  /// A column of integers, bools or floating-point numbers: contiguous memory of the place.
  template <class Range>
    requires detail::is_contiguous<const Range>
  explicit key_column(const Range& range, const std::uint8_t* valid_bits = nullptr)
      : values(detail::data_of(range)),
        rows(std::ranges::size(range)),
        type(column_type_of<detail::element_of<Range>>),
        valid(valid_bits) {}
};

/// A key of more than 8 bytes, as column_packing makes it.
template <std::size_t Words>
struct packed_key {
  std::uint64_t word[Words];
  friend bool operator==(const packed_key&, const packed_key&) = default;
};

namespace detail {
template <class Key>
struct pack_columns_kernel;
template <class Key>
class packed_rows;

/// Where the values of a column are in keys.
struct packed_field {
  column_type type = column_type::u8;
  bool wide = false;  // 64 bits do not hold all codes: those that are no values have bit 64
  std::uint32_t shift = 0, bits = 0;
  std::uint64_t least = 0, range = 0;  // of the values, as words in their order

  /// The low bits of the codes that are not values: 0 and 1, nulls of each table; 2, none of the values.
  ROOST_FN std::uint64_t special(std::uint64_t which) const { return (wide ? 0 : range + 1) + which; }
};
}  // namespace detail

/// How nulls in keys of several tables compare.
enum class null_equality : bool {
  distinct,  ///< a null is equal to those of its own table only, so that joins do not match it, as in SQL
  equal      ///< a null is equal to every other one
};

/// Packs rows of columns into keys that are equal exactly if the rows are equal; nothing is hashed. Each
/// column takes the bits that the range of its values needs, and one more value for nulls. Numbers are
/// compared by value: -0.0 equals 0.0, and all NaNs are equal. Keys ascend in the order of the rows, the
/// first column being the most significant; nulls come last, and within a column NaNs come after the numbers.
///
///     const std::array columns{roost::key_column(shops), roost::key_column(days, valid)};
///     const roost::column_packing packing(cpu, columns);
///     packing.with_keys(cpu, columns, [&](const auto& keys) {
///       const auto sums = roost::group_by(cpu, keys, amounts, roost::plus());
///       const auto shop_of = packing.unpack<int>(cpu, sums.keys, 0);
///     });
///
/// To compare the rows of two tables, as a join does, make one packing of both. Rows of other tables can be
/// packed later, for example as queries of a frozen_map: values out of range become a value that no table
/// has.
///
/// Number columns of wider values first (two_way_index; for texts, number_texts of texts.hpp), or split them
/// into words.
///
/// A packing may be copied, and used by several threads.
class column_packing {
 public:
  static constexpr std::size_t bits_most = 256;    ///< of a key
  static constexpr std::size_t columns_most = 32;  ///< of a row
  static constexpr std::size_t tables_most = 2;

  column_packing() = default;
  /// For the rows of one table. Reads the columns once. Synchronises. Throws invalid_argument for no columns,
  /// more than columns_most columns, or different numbers of rows; out_of_memory, device_error.
  template <class Place>
  column_packing(const Place& place, std::span<const key_column> table)
      : column_packing(place, {&table, 1}, null_equality::equal) {}
  /// For the rows of up to tables_most tables, whose columns have the same types.
  template <class Place>
  column_packing(const Place& place, std::span<const std::span<const key_column>> tables,
                 null_equality nulls);

  /// How many bits a key takes.
  std::size_t bits() const { return bits_; }
  /// The bytes of a key: 4, 8, 16 or 32; 0 if there are more than bits_most bits. Then number the rows of
  /// some columns first (unique_all with `inverse`), and pack the numbers.
  std::size_t key_bytes() const {
    return bits_ <= 32 ? 4 : bits_ <= 64 ? 8 : bits_ <= 128 ? 16 : bits_ <= bits_most ? 32 : 0;
  }
  std::size_t columns() const { return fields_.size(); }

  /// Writes the keys of a table's rows. `Key`: of key_bytes() bytes. `table`: its number, which matters for
  /// nulls only. Asynchronous on cuda. Throws invalid_argument for columns of other types.
  template <class Place, class Key>
  void pack(const Place& place, std::span<const key_column> columns, Key* keys, std::size_t table = 0) const {
    const auto run = kernel(columns, keys, table);
    if (run.rows != 0) place.launch(detail::ceil_div(run.rows, run.tile), 0, run);
  }

  /// Calls f(keys) with an array of the keys of a table's rows, of std::uint32_t, std::uint64_t or
  /// packed_key. Returns what f returns, which must have the same type for all of these. Throws as pack does,
  /// and out_of_memory.
  template <class Place, class F>
  auto with_keys(const Place& place, std::span<const key_column> columns, const F& f) const;

  /// Writes the values of a column of n keys, in its type, `step` apart, with 0 for nulls; and to `valid`,
  /// unless that is a null pointer, which values are not null. -0.0 becomes 0.0. Asynchronous on cuda.
  template <class Place, class Key>
  void unpack(const Place& place, const Key* keys, std::size_t n, std::size_t column, void* values,
              bool* valid, std::size_t step = 1) const;

  /// The values of a column of keys; nulls are 0. Throws invalid_argument if T is not its type.
  template <class T, class Place, class Key>
  array<T, Place> unpack(const Place& place, const array<Key, Place>& keys, std::size_t column) const {
    if (column < fields_.size() && fields_[column].type != column_type_of<T>) {
      detail::raise<invalid_argument>(
          {"roost::column_packing: column ", column, " has another type; unpack it as that"});
    }
    array<T, Place> values(place, keys.size());
    unpack(place, keys.data(), keys.size(), column, values.data(), nullptr);
    return values;
  }

  /// Which values of a column of keys are not null.
  template <class Place, class Key>
  array<bool, Place> valid(const Place& place, const array<Key, Place>& keys, std::size_t column) const {
    array<bool, Place> result(place, keys.size());
    unpack(place, keys.data(), keys.size(), column, nullptr, result.data());
    return result;
  }

  /// The low 64 bits of the key whose only column is null.
  std::uint64_t null_key() const { return fields_[0].special(0); }

 private:
  template <class Key>
  friend class detail::packed_rows;
  void check(std::span<const key_column> columns) const;
  template <class Key>
  detail::pack_columns_kernel<Key> kernel(std::span<const key_column> columns, Key* keys,
                                          std::size_t table) const;

  std::vector<detail::packed_field> fields_;
  std::size_t bits_ = 0;
  null_equality nulls_ = null_equality::equal;
};

}  // namespace roost

#include "roost/columns/detail/columns.hpp"
