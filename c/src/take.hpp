#pragma once

#include <string>

#include "texts.hpp"

// Rows of columns, by their numbers.

namespace roost::c {

/// Arrow's format of a type of numbers.
inline std::string format_of(column_type type) {
  constexpr std::string_view letters = "bcsilCSILfg";
  const auto is_of = [&](const char& letter) { return detail::arrow_format_of({&letter, 1}).number == type; };
  return {*std::ranges::find_if(letters, is_of)};
}

/// The wanted row; -1: none.
struct wanted_row {
  const std::int64_t* rows;
  const std::uint8_t* valid;  // or null
  std::size_t begin;
  ROOST_FN std::int64_t operator()(std::size_t i) const {
    return detail::is_valid(valid, begin + i) ? rows[begin + i] : -1;
  }
};
struct is_no_row {
  wanted_row wanted;
  std::int64_t rows;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return wanted(i) < -1 || wanted(i) >= rows; }
};
struct take_validity {
  wanted_row wanted;
  const std::uint8_t* valid;  // of the column, or null
  bool* to;
  ROOST_FN void operator()(std::size_t i) const {
    const std::int64_t row = wanted(i);
    to[i] = row >= 0 && detail::is_valid(valid, static_cast<std::size_t>(row));
  }
};
template <class Word>
struct take_word {
  wanted_row wanted;
  const bool* valid;
  const Word* from;
  Word* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = valid[i] ? from[wanted(i)] : Word{}; }
};

/// Texts of one width; zeros for nulls.
struct write_fixed {
  const std::string_view* texts;
  std::size_t width;
  char* to;
  ROOST_FN void operator()(std::size_t i) const {
    if (width != 0 && texts[i].size() == width) {
      memcpy(to + i * width, texts[i].data(), width);
    } else {
      memset(to + i * width, 0, width);
    }
  }
};

/// A column of an output, and its type.
struct taken {
  arrow_owner<ArrowSchema> type;
  arrow_owner<ArrowArray> values;
};

template <class Place>
class taker {
 public:
  taker(const Place& place, int device, const wanted_row& wanted, std::size_t count)
      : place_(place), device_(device), count_(count), wanted_(wanted) {}

  void check(std::size_t rows) const {
    const std::size_t wrong = place_.sum(count_, is_no_row{wanted_, static_cast<std::int64_t>(rows)});
    if (wrong == 0) return;
    detail::raise<invalid_argument>(
        {"roost: ", wrong, " row numbers that a table of ", rows, " rows does not have"});
  }

  taken column(const arrow_table::column& from) const {
    const ArrowSchema& values = from.schema->dictionary == nullptr ? *from.schema : *from.schema->dictionary;
    const std::string format = values.format;
    if (from.type.made_of == arrow_type::form::null) {
      return {make_schema("n", from.schema->name), make_array(count_, count_, {})};
    }
    if (from.type.made_of != arrow_type::form::text) {
      return {make_schema(format, from.schema->name),
              format == "e" ? halves(from) : numbers(from, from.type)};
    }
    const std::string as = format[0] != 'v' ? format : format == "vu" ? "U" : "Z";
    return {make_schema(as, from.schema->name), texts(from, as)};
  }

 private:
  array<bool, Place> validity_of(const std::uint8_t* bits) const {
    array<bool, Place> valid(place_, count_);
    place_.for_each(count_, take_validity{wanted_, bits, valid.data()});
    return valid;
  }
  /// An array of the bitmap and further buffers.
  arrow_owner<ArrowArray> finished(const array<bool, Place>& valid,
                                   std::vector<result_buffer> buffers) const {
    const std::size_t nulls = place_.sum(count_, count_missing{valid.data()});
    buffers.insert(buffers.begin(),
                   nulls == 0 ? result_buffer() : buffer_of(bits_of(place_, valid), device_));
    return make_array(count_, nulls, std::move(buffers));
  }

  template <class Word>
  arrow_owner<ArrowArray> words(const key_column& from) const {
    const auto valid = validity_of(from.valid);
    array<Word, Place> to(place_, count_);
    place_.for_each(count_,
                    take_word<Word>{wanted_, valid.data(), static_cast<const Word*>(from.values), to.data()});
    if constexpr (std::is_same_v<Word, bool>) {
      return finished(valid, {buffer_of(bits_of(place_, to), device_)});
    } else {
      return finished(valid, {buffer_of(std::move(to), device_)});
    }
  }

  arrow_owner<ArrowArray> numbers(const arrow_table::column& from, const arrow_type& type) const {
    arrow_keys<Place> read;
    read.add(place_, 0, from, type);
    const key_column column = read.columns(0)[0];
    if (type.made_of == arrow_type::form::wide) return words<packed_key<2>>(column);
    if (type.number == column_type::b1) return words<bool>(column);
    switch (bytes_of(type.number)) {
      case 1:
        return words<std::uint8_t>(column);
      case 2:
        return words<std::uint16_t>(column);
      case 4:
        return words<std::uint32_t>(column);
      default:
        return words<std::uint64_t>(column);
    }
  }
  /// Halves as integers of 2 bytes, without conversion.
  arrow_owner<ArrowArray> halves(const arrow_table::column& from) const {
    ArrowSchema type = *from.schema, values;
    if (type.dictionary == nullptr) {
      type.format = "S";
    } else {
      values = *type.dictionary;
      values.format = "S";
      type.dictionary = &values;
    }
    const arrow_table::column column{&type, arrow_type_of(type), from.chunks};
    return numbers(column, column.type);
  }

  arrow_owner<ArrowArray> texts(const arrow_table::column& from, const std::string& format) const {
    arrow_keys<Place> read;
    read.add(place_, 0, from, from.type);
    const key_column column = read.columns(0)[0];
    const auto valid = validity_of(column.valid);
    array<std::string_view, Place> taken(place_, count_);
    place_.for_each(
        count_, take_word<std::string_view>{wanted_, valid.data(), texts_of(column).data(), taken.data()});
    if (format == "u" || format == "z") return packed<std::int32_t>(valid, taken);
    if (format == "U" || format == "Z") return packed<std::int64_t>(valid, taken);
    const std::size_t width = std::stoul(format.substr(2));
    array<char, Place> bytes(place_, std::max<std::size_t>(1, count_ * width));
    place_.for_each(count_, write_fixed{taken.data(), width, bytes.data()});
    return finished(valid, {buffer_of(std::move(bytes), device_)});
  }
  template <class Offset>
  arrow_owner<ArrowArray> packed(const array<bool, Place>& valid,
                                 const array<std::string_view, Place>& texts) const {
    packed_copy<Offset, Place> copy(place_, texts);
    return finished(valid,
                    {buffer_of(std::move(copy.offsets), device_), buffer_of(std::move(copy.bytes), device_)});
  }

  const Place& place_;
  int device_;
  std::size_t count_;
  wanted_row wanted_;
};

}  // namespace roost::c
