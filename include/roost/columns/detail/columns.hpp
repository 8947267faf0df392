#pragma once

// Bodies of roost/columns/columns.hpp.

#include "roost/columns/columns.hpp"
#include "roost/detail/groups/value_words.hpp"
#include "roost/detail/place/arrays.hpp"

namespace roost {
namespace detail {

/// Returns what f returns for a value of this type.
template <class F>
ROOST_FN auto with_number(column_type type, const F& f) {
  switch (type) {
    case column_type::i1:
      return f(std::int8_t());
    case column_type::i2:
      return f(std::int16_t());
    case column_type::i4:
      return f(std::int32_t());
    case column_type::i8:
      return f(std::int64_t());
    case column_type::b1:
      return f(bool());
    case column_type::u1:
      return f(std::uint8_t());
    case column_type::u2:
      return f(std::uint16_t());
    case column_type::u4:
      return f(std::uint32_t());
    case column_type::u8:
      return f(std::uint64_t());
    case column_type::f4:
      return f(float());
    case column_type::f8:
      break;
  }
  return f(double());
}

/// Value i of a column, as a word: words compare as the values do, and are equal if these are.
template <class T>
ROOST_FN std::uint64_t ordered_word(const void* values, std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<const std::uint8_t*>(values)[i] != 0;  // numpy, too, takes any other byte for true
  } else {
    T value = static_cast<const T*>(values)[i];
    if constexpr (std::is_floating_point_v<T>) {
      if (value == 0) value = 0;  // also for -0.0
      if (value != value) return value_word<minimum, T>::of(std::numeric_limits<T>::quiet_NaN());
    }
    return value_word<minimum, T>::of(value);
  }
}
/// Holds the words of such values: loops over 4 bytes are faster than over 8.
template <class T>
using word_of_type = typename value_word<minimum, T>::word;
template <class T>
ROOST_FN T value_of_word(std::uint64_t word) {
  if constexpr (std::is_same_v<T, bool>) {
    return word != 0;
  } else {
    using words = value_word<minimum, T>;
    return words::value(static_cast<typename words::word>(word));
  }
}

ROOST_FN bool is_valid(const std::uint8_t* valid, std::size_t i) {
  return valid == nullptr || (valid[i / 8] >> i % 8 & 1) != 0;
}

/// Combines words into a key, from its lowest bit. `high`: bit 64.
template <class Key>
ROOST_FN void put_bits(Key& key, std::uint32_t shift, std::uint64_t low, bool high) {
  if constexpr (std::is_integral_v<Key>) {
    key |= static_cast<Key>(low << shift);
  } else {
    const std::uint32_t w = shift / 64, s = shift % 64;
    key.word[w] |= low << s;
    if (s != 0 && low >> (64 - s) != 0) key.word[w + 1] |= low >> (64 - s);
    if (high) key.word[w + 1] |= std::uint64_t{1} << s;
  }
}
/// Bits of a key, at most 64.
template <class Key>
ROOST_FN std::uint64_t get_bits(const Key& key, std::uint32_t shift, std::uint32_t bits) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  if constexpr (std::is_integral_v<Key>) {
    return std::uint64_t{key} >> shift & mask;
  } else {
    const std::uint32_t w = shift / 64, s = shift % 64;
    const std::uint64_t low = key.word[w] >> s;
    return (s + bits <= 64 ? low : low | key.word[w + 1] << (64 - s)) & mask;
  }
}

/// The least word of each column, and the complement of the greatest: a team reads a tile of one column.
struct column_range_kernel {
  static constexpr int threads = 256;
  static constexpr std::size_t tile = std::size_t{1} << 16;
  key_column columns[column_packing::columns_most];
  std::size_t tiles;     // of each column
  std::uint64_t* least;  // two per column

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t c = index / tiles, first = index % tiles * tile;
    const key_column& column = columns[c];
    const auto count = static_cast<std::uint32_t>(smaller(tile, column.rows - first));
    with_number(column.type, [&]<class T>(T) {
      using word = word_of_type<T>;
      word low = static_cast<word>(~word{0}), high = 0;
      const auto see = [&](std::size_t i) {
        const auto seen = static_cast<word>(ordered_word<T>(column.values, i));
        low = smaller(low, seen);
        high = larger(high, seen);
      };
      if (column.valid == nullptr && column.step == 1) {
        for_each_of(team, count, [&](std::uint32_t i) { see(first + i); });
      } else {
        for_each_of(team, count, [&](std::uint32_t i) {
          if (is_valid(column.valid, first + i)) see((first + i) * column.step);
        });
      }
      if (low > high) return;  // no values
      std::uint64_t* const mine = least + 2 * c;
      if (low < peek(mine[0])) fetch_min(mine[0], std::uint64_t{low});
      if (~std::uint64_t{high} < peek(mine[1])) fetch_min(mine[1], ~std::uint64_t{high});
    });
  }
};

/// Writes the keys of a tile of rows, one column after the other.
template <class Key>
struct pack_columns_kernel {
  static constexpr int threads = 256;
  static constexpr std::size_t tile = 2048;
  packed_field fields[column_packing::columns_most];
  key_column columns[column_packing::columns_most];
  std::uint32_t count;
  std::size_t rows;
  std::uint64_t null;  // which of the codes that are no values
  Key* keys;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t first = index * tile;
    pack(team, first, static_cast<std::uint32_t>(smaller(tile, rows - first)), keys + first);
  }

  /// The keys of some rows.
  template <class Team>
  ROOST_FN void pack(const Team& team, std::size_t first, std::uint32_t here, Key* target) const {
    for (std::uint32_t c = 0; c < count; ++c) {
      const packed_field how = fields[c];
      const key_column column = columns[c];
      with_number(how.type, [&]<class T>(T) {
        if constexpr (std::is_integral_v<Key>) {
          if (column.valid == nullptr && column.step == 1) {
            using word = word_of_type<T>;
            const auto least = static_cast<word>(how.least), range = static_cast<word>(how.range);
            const auto other = static_cast<Key>(how.special(2));
            for_each_of(team, here, [&](std::uint32_t i) {
              const std::size_t row = first + i;
              const auto code =
                  static_cast<word>(static_cast<word>(ordered_word<T>(column.values, row)) - least);
              const Key mine = (code > range ? other : static_cast<Key>(code)) << how.shift;
              target[i] = c == 0 ? mine : target[i] | mine;
            });
            return;
          }
        }
        for_each_of(team, here, [&](std::uint32_t i) {
          const std::size_t row = first + i;
          Key key = c == 0 ? Key{} : target[i];
          const bool there = is_valid(column.valid, row);
          std::uint64_t code = there ? ordered_word<T>(column.values, row * column.step) - how.least : 0;
          const bool special = !there || code > how.range;
          if (special) code = how.special(there ? 2 : null);
          put_bits(key, how.shift, code, special && how.wide);
          target[i] = key;
        });
      });
    }
  }
};

/// The keys of rows, packed when they are read: like the values of values_at.
template <class Key>
class packed_rows {
 public:
  packed_rows(const column_packing& packing, std::span<const key_column> columns)
      : kernel_(packing.kernel<Key>(columns, nullptr, 0)) {}
  Key operator()(std::size_t i) const {
    Key key;
    return *block(i, 1, &key);
  }
  const Key* block(std::size_t first, std::size_t n, Key* buffer) const {
    kernel_.pack(serial_team(), first, static_cast<std::uint32_t>(n), buffer);
    return buffer;
  }

 private:
  pack_columns_kernel<Key> kernel_;
};

template <class Key>
struct unpack_row {
  packed_field how;
  const Key* keys;
  void* values;  // or null
  bool* valid;   // or null
  std::size_t step;

  ROOST_FN void operator()(std::size_t i) const {
    std::uint64_t code = get_bits(keys[i], how.shift, how.wide ? 64 : how.bits);
    const bool there = how.wide ? get_bits(keys[i], how.shift + 64, 1) == 0 : code <= how.range;
    if (!there) code = 0;
    if (valid != nullptr) valid[i] = there;
    if (values == nullptr) return;
    with_number(how.type, [&]<class T>(T) {
      static_cast<T*>(values)[i * step] = there ? value_of_word<T>(code + how.least) : T();
    });
  }
};

}  // namespace detail

template <class Place>
column_packing::column_packing(const Place& place, std::span<const std::span<const key_column>> tables,
                               null_equality nulls)
    : nulls_(nulls) {
  constexpr const char* where = "roost::column_packing: ";
  const std::size_t count = tables.empty() ? 0 : tables[0].size();
  if (count == 0 || count > columns_most || tables.size() > tables_most) {
    detail::raise<invalid_argument>({where, tables.size(), " tables with ", count, " columns; give 1 to ",
                                     tables_most, " tables with 1 to ", columns_most, " columns"});
  }
  fields_.resize(count);
  for (std::size_t c = 0; c < count; ++c) fields_[c].type = tables[0][c].type;
  auto least = detail::filled<std::uint64_t>(place, 2 * count, 0xFF);
  for (const auto& table : tables) {
    check(table);
    const std::size_t tiles = detail::ceil_div(table[0].rows, detail::column_range_kernel::tile);
    detail::column_range_kernel run{{}, tiles, least.data()};
    std::copy(table.begin(), table.end(), run.columns);
    if (tiles != 0) place.launch(tiles * count, 0, run);
  }
  const std::vector<std::uint64_t> found = copy_to_host(place, least);
  for (std::size_t c = count; c-- > 0;) {  // the first column has the highest bits
    detail::packed_field& how = fields_[c];
    const std::uint64_t greatest = ~found[2 * c + 1];
    if (found[2 * c] <= greatest) how.least = found[2 * c], how.range = greatest - found[2 * c];
    how.wide = how.range > ~std::uint64_t{0} - 4;
    how.bits = how.wide ? 65 : static_cast<std::uint32_t>(std::bit_width(how.range + 3));
    how.shift = static_cast<std::uint32_t>(bits_);
    bits_ += how.bits;
  }
}

inline void column_packing::check(std::span<const key_column> columns) const {
  constexpr const char* where = "roost::column_packing: ";
  if (columns.size() != fields_.size()) {
    detail::raise<invalid_argument>(
        {where, columns.size(), " columns where there were ", fields_.size(), "; give as many"});
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].type != fields_[c].type) {
      detail::raise<invalid_argument>({where, "column ", c, " has another type than before; convert it"});
    }
    if (columns[c].rows != columns[0].rows) {
      detail::raise<invalid_argument>({where, "column ", c, " has ", columns[c].rows,
                                       " rows, and column 0 has ", columns[0].rows, "; give as many"});
    }
  }
}

template <class Key>
detail::pack_columns_kernel<Key> column_packing::kernel(std::span<const key_column> columns, Key* keys,
                                                        std::size_t table) const {
  check(columns);
  if (sizeof(Key) != key_bytes() || table >= tables_most) {
    detail::raise<invalid_argument>({"roost::column_packing: keys of ", sizeof(Key), " bytes of table ",
                                     table, " where they have ", key_bytes(), " bytes, of tables 0 and 1"});
  }
  detail::pack_columns_kernel<Key> run{{},
                                       {},
                                       static_cast<std::uint32_t>(columns.size()),
                                       columns[0].rows,
                                       nulls_ == null_equality::equal ? 0 : table,
                                       keys};
  std::copy(fields_.begin(), fields_.end(), run.fields);
  std::copy(columns.begin(), columns.end(), run.columns);
  return run;
}

template <class Place, class F>
auto column_packing::with_keys(const Place& place, std::span<const key_column> columns, const F& f) const {
  const auto with = [&]<class Key>(Key) {
    array<Key, Place> keys(place, columns.empty() ? 0 : columns[0].rows);
    pack(place, columns, keys.data());
    return f(keys);
  };
  switch (key_bytes()) {
    case 4:
      return with(std::uint32_t());
    case 8:
      return with(std::uint64_t());
    case 16:
      return with(packed_key<2>());
    case 32:
      return with(packed_key<4>());
    default:
      detail::raise<invalid_argument>({"roost::column_packing: rows of ", bits_, " bits; at most ", bits_most,
                                       ": number the rows of some columns first"});
  }
}

template <class Place, class Key>
void column_packing::unpack(const Place& place, const Key* keys, std::size_t n, std::size_t column,
                            void* values, bool* valid, std::size_t step) const {
  if (sizeof(Key) != key_bytes() || column >= fields_.size()) {
    detail::raise<invalid_argument>({"roost::column_packing: column ", column, " of keys of ", sizeof(Key),
                                     " bytes; there are ", fields_.size(), " in ", key_bytes(), " bytes"});
  }
  place.for_each(n, detail::unpack_row<Key>{fields_[column], keys, values, valid, step});
}

}  // namespace roost
