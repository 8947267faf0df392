#pragma once

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "roost/columns/arrow.hpp"

// Bodies of roost/columns/arrow.hpp.

namespace roost {
namespace detail {

using arrow_chunk = arrow_table::chunk;

/// How values are stored: texts with offsets of 4 or 8 bytes, as views, or of one width; words of 128 bits,
/// halves, bits, numbers; nothing.
enum class arrow_layout : std::uint8_t { packed, large, views, fixed, wide, half, bits, number, none, other };
struct arrow_format {
  arrow_layout layout = arrow_layout::other;
  column_type number = column_type::u1;
  std::size_t width = 0;
  std::string meaning;

  bool is_text() const { return layout <= arrow_layout::fixed; }
};

/// The numbers behind "w:" or "d:", which commas separate; none if anything else is there.
inline std::vector<std::int32_t> arrow_numbers(std::string_view format) {
  const char *at = format.data() + 2, *const end = format.data() + format.size();
  for (std::vector<std::int32_t> numbers;; ++at) {
    const auto [behind, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (behind != end && *behind != ',')) return {};
    if (behind == end) return numbers;
    at = behind;
  }
}

inline arrow_format arrow_format_of(std::string_view format) {
  using enum arrow_layout;
  using enum column_type;
  constexpr std::string_view letters = "cCsSiIlLfg";
  constexpr column_type types[] = {i1, u1, i2, u2, i4, u4, i8, u8, f4, f8};
  const auto is = [&](auto... names) { return (... || (format == names)); };
  const auto begins = [&](auto... names) { return (... || format.starts_with(names)); };
  if (format.size() == 1 && letters.find(format[0]) != letters.npos) {
    return {number, types[letters.find(format[0])], 0, "numbers"};
  }
  if (is("n")) return {none, i1, 0, {}};
  if (is("b")) return {bits, b1, 0, "numbers"};
  if (is("e")) return {half, f4, 0, "numbers"};
  if (is("tdD", "tts", "ttm")) return {number, i4, 0, std::string(format)};
  if (is("tdm", "ttu", "ttn", "tDs", "tDm", "tDu", "tDn") || begins("tss:", "tsm:", "tsu:", "tsn:")) {
    return {number, i8, 0, std::string(format)};
  }
  if (is("u", "z")) return {packed, u4, 0, is("u") ? "texts" : "bytes"};
  if (is("U", "Z")) return {large, u4, 0, is("U") ? "texts" : "bytes"};
  if (is("vu", "vz")) return {views, u4, 0, is("vu") ? "texts" : "bytes"};
  if (begins("w:", "d:")) {
    const std::vector<std::int32_t> numbers = arrow_numbers(format);
    if (format[0] == 'w') {
      if (numbers.size() != 1 || numbers[0] < 0) return {};
      return {fixed, u4, static_cast<std::size_t>(numbers[0]), "bytes"};
    }
    if (numbers.size() != 2 && numbers.size() != 3) return {};
    const std::int32_t width = numbers.size() == 2 ? 128 : numbers[2];
    const std::string meaning = "decimals of scale " + std::to_string(numbers[1]);
    if (width == 128) return {wide, u8, 0, meaning};
    if (width == 32 || width == 64) return {number, width == 32 ? i4 : i8, 0, meaning};
  }
  return {};
}

/// Whether a type's metadata give its values another meaning.
inline bool is_arrow_extension(const ArrowSchema& type) {
  const char* at = type.metadata;
  const auto number = [&] {
    std::int32_t result;
    std::memcpy(&result, at, 4);
    at += 4;
    return result;
  };
  const auto text = [&] {
    const auto n = static_cast<std::size_t>(number());
    return std::string_view(std::exchange(at, at + n), n);
  };
  for (std::int32_t pairs = at == nullptr ? 0 : number(); pairs > 0; --pairs) {
    if (text() == "ARROW:extension:name") return true;
    text();
  }
  return false;
}

inline std::string arrow_name(const ArrowSchema& type) {
  const bool has_name = type.name != nullptr && type.name[0] != '\0';
  return has_name ? "roost: column \"" + std::string(type.name) + "\"" : "roost: an Arrow column";
}

/// Which rows of a column have values.
inline validity valid_rows(const ArrowArray& from, std::size_t begin) {
  if (from.null_count == 0 || from.n_buffers == 0 || from.buffers == nullptr) return {};
  return {static_cast<const std::uint8_t*>(from.buffers[0]), begin};
}

/// Whether rows of an array may be null.
inline bool has_nulls(const ArrowSchema& type, const ArrowArray& from) {
  return type.format == std::string_view("n") || valid_rows(from, 0).bits != nullptr ||
         (type.dictionary != nullptr && has_nulls(*type.dictionary, *from.dictionary));
}

/// Throws for a type that is released, or whose values are.
inline void check_arrow(const ArrowSchema& type) {
  if (type.release == nullptr || type.format == nullptr) {
    raise<invalid_argument>({"roost: an Arrow schema that is released; export it again"});
  }
  if (type.dictionary != nullptr) check_arrow(*type.dictionary);
}

/// How the values of a type, or the offsets or views of its texts, are aligned.
inline std::size_t alignment_of(const arrow_format& how) {
  using enum arrow_layout;
  if (how.layout == number) return bytes_of(how.number);
  if (how.layout == half) return 2;
  if (how.layout == packed || how.layout == views) return 4;
  return how.layout == large || how.layout == wide ? 8 : 1;
}

/// Throws for an array that lacks what its type requires.
inline void check_arrow(const ArrowSchema& type, const ArrowArray& from) {
  const arrow_format how = arrow_format_of(type.format);
  const auto expect = [&](bool is_right, const char* what) {
    if (!is_right) raise<invalid_argument>({arrow_name(type), ": ", what});
  };
  expect(from.release != nullptr, "an array that is released; export it again");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect(from.length >= 0 && from.offset >= 0, "a negative length or offset");
  expect(from.length <= most - from.offset, "a length and an offset of more than 2^63 rows");
  expect((type.dictionary == nullptr) == (from.dictionary == nullptr), "an array of another type");
  if (type.dictionary != nullptr) check_arrow(*type.dictionary, *from.dictionary);
  if (how.layout == arrow_layout::none) return;
  const bool is_struct = how.layout == arrow_layout::other, is_fixed = how.layout == arrow_layout::fixed;
  const std::int64_t buffers = is_struct ? 1 : how.is_text() && !is_fixed ? 3 : 2;
  expect(from.n_buffers >= buffers && from.buffers != nullptr, "an array without its buffers");
  expect(from.null_count <= 0 || from.buffers[0] != nullptr, "nulls without a bitmap");
  if (is_struct) {
    expect(from.null_count == 0 || from.buffers[0] == nullptr, "rows that are null as a whole; drop them");
    expect(from.n_children == type.n_children, "an array of other columns");
    for (std::int64_t c = 0; c < from.n_children; ++c) {
      check_arrow(*type.children[c], *from.children[c]);
      expect(from.children[c]->length >= from.offset + from.length, "columns of too few rows");
    }
  } else if (from.length > 0 && !(is_fixed && how.width == 0)) {
    expect(from.buffers[1] != nullptr, "an array without its values");
    const auto address = reinterpret_cast<std::uintptr_t>(from.buffers[1]);
    expect(address % alignment_of(how) == 0, "values not aligned; copy them");
  }
}

inline arrow_chunk whole_of(const ArrowArray& from) {
  return {&from, static_cast<std::size_t>(from.offset), static_cast<std::size_t>(from.length)};
}

/// Whether a row has a code without a value.
struct has_no_value {
  coded_texts codes;
  validity valid;
  std::size_t known, most;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return valid[i] && (codes.code(i) >= known || codes.code(i) > most);
  }
};

/// The codes of a dictionary's values. sum(n, f): the sum of f(i) for i < n. Throws for a code that has no
/// value.
template <class Sum>
coded_texts codes_of(const ArrowSchema& type, const arrow_chunk& from, const text_column* texts,
                     const Sum& sum) {
  const column_type number = arrow_format_of(type.format).number;
  const std::size_t bytes = bytes_of(number),
                    known = static_cast<std::size_t>(from.array->dictionary->length);
  const coded_texts codes{static_cast<const char*>(from.array->buffers[1]) + from.begin * bytes, bytes,
                          texts};
  const std::size_t most =
      ~std::size_t{0} >> (64 - 8 * bytes + (number < column_type::b1));  // above: negative
  if (sum(from.rows, has_no_value{codes, valid_rows(*from.array, from.begin), known, most}) != 0) {
    raise<invalid_argument>({arrow_name(type), " with a code of no value; make it anew"});
  }
  return codes;
}

/// f(layout) with the layout of a chunk of texts. `views`: the buffers that views refer to.
template <class F>
void with_text_layout(const arrow_format& how, const arrow_chunk& from, const void* const* views,
                      const F& f) {
  const ArrowArray& array = *from.array;
  const auto* const bytes = array.n_buffers > 2 ? static_cast<const char*>(array.buffers[2]) : nullptr;
  const void* const first = array.buffers[1];
  switch (how.layout) {
    case arrow_layout::packed:
      return f(packed_texts<std::int32_t>{static_cast<const std::int32_t*>(first) + from.begin, bytes});
    case arrow_layout::large:
      return f(packed_texts<std::int64_t>{static_cast<const std::int64_t*>(first) + from.begin, bytes});
    case arrow_layout::views:
      return f(viewed_texts{static_cast<const viewed_texts::view*>(first) + from.begin, views,
                            valid_rows(array, from.begin)});
    default: {
      const auto* const at = how.width == 0 ? "" : static_cast<const char*>(first) + from.begin * how.width;
      return f(fixed_texts{at, how.width, false});
    }
  }
}

inline void add_texts(text_column& to, const ArrowSchema& type, const arrow_chunk& from) {
  const ArrowArray& array = *from.array;
  const std::size_t n = from.rows, begin = from.begin, row = to.size();
  if (n == 0) return;
  const arrow_format how = arrow_format_of(type.format);
  const ArrowSchema& of = type.dictionary == nullptr ? type : *type.dictionary;
  const bool is_none = of.format == std::string_view("n");
  const validity valid = valid_rows(array, begin);
  for (std::size_t i = 0; i < n && (is_none || valid.bits != nullptr); ++i) {
    if (is_none || !valid[i]) to.add_null(row + i);
  }
  if (is_none) return to.add(n, fixed_texts{"", 0, false});
  if (type.dictionary != nullptr) {
    const ArrowArray& values = *array.dictionary;
    auto dictionary = std::make_shared<text_column>();
    add_texts(*dictionary, *type.dictionary, whole_of(values));
    const auto sum = [](std::size_t rows, const has_no_value& f) {
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < rows; ++i) all += f(i);
      return all;
    };
    const coded_texts codes = codes_of(type, from, dictionary.get(), sum);
    const validity known = valid_rows(values, static_cast<std::size_t>(values.offset));
    for (std::size_t i = 0; known.bits != nullptr && i < n; ++i) {
      if (valid[i] && !known[codes.code(i)]) to.add_null(row + i);
    }
    to.keep(std::move(dictionary));
    return to.add(n, codes);
  }
  with_text_layout(how, from, array.buffers + 2, [&](const auto& layout) { to.add(n, layout); });
}

ROOST_FN float float_of_half(std::uint16_t half) {
  const std::uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
  const std::uint32_t bits =
      exponent == 31 ? 0x7F800000 | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
  float value;
  memcpy(&value, &bits, sizeof(value));
  if (exponent == 0) value = static_cast<float>(mantissa) * 0x1p-24F;
  return half >> 15 != 0 ? -value : value;
}

/// Writes values of a layout as numbers of a type, or as words of 128 bits.
struct convert_value {
  const void* from;
  std::size_t begin;
  arrow_layout layout;
  column_type number, to_number;
  bool to_wide;
  void* to;

  template <class T>
  ROOST_FN T load(std::size_t i) const {
    if (layout == arrow_layout::bits)
      return static_cast<T>(is_valid(static_cast<const std::uint8_t*>(from), i));
    if (layout == arrow_layout::half) {
      return static_cast<T>(float_of_half(static_cast<const std::uint16_t*>(from)[i]));
    }
    return with_number(number, [&]<class S>(S) { return static_cast<T>(static_cast<const S*>(from)[i]); });
  }
  ROOST_FN void operator()(std::size_t i) const {
    if (to_wide) {
      auto* const words = static_cast<std::uint64_t*>(to) + 2 * i;
      const auto value = load<std::int64_t>(begin + i);
      words[0] = static_cast<std::uint64_t>(value);
      words[1] = value < 0 ? ~std::uint64_t{0} : 0;
      return;
    }
    with_number(to_number, [&]<class T>(T) { static_cast<T*>(to)[i] = load<T>(begin + i); });
  }
};

/// Sets the bits of a byte of a bitmap: for those of rows [row, row + n) for which there() is true; other
/// bits stay.
template <class There>
struct set_valid_bits {
  std::uint8_t* to;
  std::size_t row, n;
  There there;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t byte = row / 8 + i;
    std::uint8_t bits = to[byte];
    for (std::size_t k = byte * 8; k < byte * 8 + 8; ++k) {
      if (k >= row && k < row + n && there(k - row)) bits = static_cast<std::uint8_t>(bits | 1U << k % 8);
    }
    to[byte] = bits;
  }
};
template <class Place, class There>
void write_bits(const Place& place, std::uint8_t* to, std::size_t row, std::size_t n, const There& there) {
  if (n != 0) place.for_each((row + n - 1) / 8 - row / 8 + 1, set_valid_bits<There>{to, row, n, there});
}

inline std::size_t key_bytes_of(const arrow_type& type) {
  using form = arrow_type::form;
  return type.made_of == form::wide || type.made_of == form::text ? 16 : bytes_of(type.number);
}

/// The texts of a layout; those of nulls are empty.
template <class Layout>
struct text_or_none {
  Layout from;
  validity valid;
  ROOST_FN std::string_view operator()(std::size_t i) const {
    return valid[i] ? from[i] : std::string_view();
  }
};

/// Whether a row's code has a value that is not null.
struct has_value {
  coded_texts codes;
  validity valid;
  const std::uint8_t* known;
  ROOST_FN bool operator()(std::size_t i) const { return valid[i] && is_valid(known, codes.code(i)); }
};
/// Writes the values of codes, zeros for nulls.
struct decode {
  coded_texts codes;
  validity valid;
  const std::byte* values;
  std::size_t bytes;
  std::byte* to;
  ROOST_FN void operator()(std::size_t i) const {
    if (valid[i]) {
      memcpy(to + i * bytes, values + codes.code(i) * bytes, bytes);
    } else {
      memset(to + i * bytes, 0, bytes);
    }
  }
};

/// Writes the values of a chunk from a row on, and marks those present in a bitmap of zeros. Texts become
/// views of their memory.
template <class Place>
void write_values(const Place& place, const ArrowSchema& type, const arrow_chunk& from, const arrow_type& as,
                  std::byte* to, std::uint8_t* valid, std::size_t row) {
  const std::size_t n = from.rows, bytes = key_bytes_of(as);
  const arrow_format how = arrow_format_of(type.format);
  std::byte* const target = to + row * bytes;
  if (n == 0) return;
  if (how.layout == arrow_layout::none) return place.fill(target, 0, n * bytes);
  const validity there = valid_rows(*from.array, from.begin);
  if (type.dictionary == nullptr) {
    if (valid != nullptr) write_bits(place, valid, row, n, element<validity>{there});
    if (how.is_text()) {
      const auto others = static_cast<std::size_t>(
          from.array->n_buffers - (how.layout == arrow_layout::views ? 2 : from.array->n_buffers));
      const auto views = copy_to(place, std::span(from.array->buffers + 2, others));
      return with_text_layout(how, from, views.data(), [&]<class Layout>(const Layout& layout) {
        write_numbers(place, n, text_or_none<Layout>{layout, there},
                      reinterpret_cast<std::string_view*>(target));
      });
    }
    if (how.layout == arrow_layout::wide) {
      return place.copy(target, static_cast<const char*>(from.array->buffers[1]) + from.begin * 16,
                        n * bytes);
    }
    return place.for_each(n, convert_value{.from = from.array->buffers[1],
                                           .begin = from.begin,
                                           .layout = how.layout,
                                           .number = how.number,
                                           .to_number = as.number,
                                           .to_wide = bytes == 16,
                                           .to = target});
  }
  const auto sum = [&](std::size_t rows, const has_no_value& f) { return place.sum(rows, f); };
  const coded_texts codes = codes_of(type, from, nullptr, sum);
  const arrow_chunk whole = whole_of(*from.array->dictionary);
  array<std::byte, Place> values(place, whole.rows * bytes);
  auto known = zeros<std::uint8_t>(place, whole.rows / 8 + 1);
  write_values(place, *type.dictionary, whole, as, values.data(), known.data(), 0);
  if (valid != nullptr) write_bits(place, valid, row, n, has_value{codes, there, known.data()});
  place.for_each(n, decode{codes, there, values.data(), bytes, target});
}

}  // namespace detail

inline arrow_type arrow_type_of(const ArrowSchema& type) {
  using detail::arrow_layout;
  using form = arrow_type::form;
  const ArrowSchema& values = type.dictionary == nullptr ? type : *type.dictionary;
  const detail::arrow_format how = detail::arrow_format_of(values.format);
  const detail::arrow_format codes = detail::arrow_format_of(type.format);
  const bool has_codes =
      codes.layout == arrow_layout::number && codes.meaning == "numbers" && codes.number < column_type::f4;
  if (detail::is_arrow_extension(type) || detail::is_arrow_extension(values)) {
    detail::raise<invalid_argument>({detail::arrow_name(type), ": an extension type; pass its storage"});
  }
  if (how.layout == arrow_layout::other ||
      (&values != &type && (values.dictionary != nullptr || !has_codes))) {
    detail::raise<invalid_argument>({detail::arrow_name(type), ": Arrow's type \"", values.format,
                                     "\"; pass numbers, texts, bytes, dates, times or decimals"});
  }
  if (how.layout == arrow_layout::none) return {};
  const form made_of = how.is_text()                      ? form::text
                       : how.layout == arrow_layout::wide ? form::wide
                                                          : form::number;
  return {made_of, how.number, how.meaning};
}

inline arrow_type common_type(const arrow_type& a, const arrow_type& b, const std::string& where) {
  using form = arrow_type::form;
  using enum column_type;
  if (a.made_of == form::null || a == b) return b;
  if (b.made_of == form::null) return a;
  const auto refuse = [&](const char* why) {
    const auto name = [](const arrow_type& it) {
      constexpr const char* names[] = {"int8",   "int16",  "int32",  "int64", "bool",  "uint8",
                                       "uint16", "uint32", "uint64", "float", "double"};
      return it.meaning == "numbers" ? std::string(names[static_cast<int>(it.number)]) : it.meaning;
    };
    detail::raise<invalid_argument>({where, ": ", name(a), " and ", name(b), why});
  };
  if (a.meaning != b.meaning) refuse(" are never equal; convert one of them");
  if (a.made_of == form::wide || b.made_of == form::wide) return a.made_of == form::wide ? a : b;
  const auto is_float = [](column_type it) { return it >= f4; };
  const auto is_signed = [](column_type it) { return it < b1; };
  const std::size_t bytes = std::max(bytes_of(a.number), bytes_of(b.number));
  arrow_type all = bytes_of(a.number) == bytes ? a : b;
  if (a.number == b1 || b.number == b1) {
    all.number = a.number == b1 ? b.number : a.number;
  } else if (is_float(a.number) != is_float(b.number)) {
    const std::size_t whole = bytes_of(is_float(a.number) ? b.number : a.number);
    if (whole == 8) refuse(" have no common type; convert one of them");
    all.number = bytes == 8 || whole == 4 ? f8 : f4;
  } else if (!is_float(a.number) && is_signed(a.number) != is_signed(b.number)) {
    const std::size_t whole = bytes_of(is_signed(a.number) ? b.number : a.number);
    if (whole == 8) refuse(" have no common type; convert one of them");
    const std::size_t needed = std::max(2 * whole, bytes);
    all.number = needed == 2 ? i2 : needed == 4 ? i4 : i8;
  }
  return all;
}

inline bool is_arrow_text(const ArrowSchema& type) {
  const ArrowSchema& values = type.dictionary == nullptr ? type : *type.dictionary;
  return detail::arrow_format_of(values.format).is_text() && values.dictionary == nullptr &&
         !detail::is_arrow_extension(type) && !detail::is_arrow_extension(values);
}

inline void add_arrow(text_column& to, const ArrowSchema& type, const ArrowArray& from) {
  detail::check_arrow(type, from);
  detail::add_texts(to, type, detail::whole_of(from));
}

inline arrow_table::arrow_table(const ArrowSchema& type) : schema_(&type) {
  const auto add = [this](const ArrowSchema& of) {
    detail::check_arrow(of);
    columns_.push_back({&of, arrow_type_of(of), {}});
  };
  detail::check_arrow(type);
  const bool is_struct = type.format == std::string_view("+s") && type.dictionary == nullptr;
  if (!is_struct) add(type);
  for (std::int64_t c = 0; is_struct && c < type.n_children; ++c) add(*type.children[c]);
  if (columns_.empty()) detail::raise<invalid_argument>({"roost: an Arrow table without columns"});
}

inline void arrow_table::add(const ArrowArray& rows) {
  if (schema_ == nullptr) detail::raise<invalid_argument>({"roost: rows of an Arrow table without a type"});
  detail::check_arrow(*schema_, rows);
  const bool is_struct = columns_[0].schema != schema_;
  const detail::arrow_chunk whole = detail::whole_of(rows);
  if (whole.rows > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) - rows_) {
    detail::raise<invalid_argument>({"roost: an Arrow table of more than 2^63 rows"});
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ArrowArray& from = is_struct ? *rows.children[c] : rows;
    const std::size_t begin = is_struct ? static_cast<std::size_t>(from.offset) : 0;
    columns_[c].chunks.push_back({&from, begin + whole.begin, whole.rows});
  }
  rows_ += whole.rows;
}

inline text_column arrow_table::texts(std::size_t index) const {
  text_column all;
  for (const chunk& part : columns_[index].chunks) detail::add_texts(all, *columns_[index].schema, part);
  return all;
}

template <class Place>
key_column arrow_keys<Place>::read(const Place& place, const arrow_table::column& from, const arrow_type& as,
                                   std::byte* values) {
  key_column column;
  column.type = as.number;
  column.values = values;
  bool has_nulls = false;
  for (const detail::arrow_chunk& part : from.chunks) {
    column.rows += part.rows;
    has_nulls = has_nulls || detail::has_nulls(*from.schema, *part.array);
  }
  std::uint8_t* valid = nullptr;
  if (has_nulls) {
    column.valid = valid = keep(detail::zeros<std::uint8_t>(place, column.rows / 8 + 1));
  }
  std::size_t row = 0;
  for (const detail::arrow_chunk& part : from.chunks) {
    detail::write_values(place, *from.schema, part, as, values, valid, row);
    row += part.rows;
  }
  return column;
}

template <class Place>
void arrow_keys<Place>::add(const Place& place, std::size_t table, const arrow_table::column& from,
                            const arrow_type& as) {
  const detail::arrow_layout layout = detail::arrow_format_of(from.schema->format).layout;
  const std::size_t bytes = detail::key_bytes_of(as);
  key_column column;
  if (from.chunks.size() == 1 && from.schema->dictionary == nullptr && from.type == as &&
      (layout == detail::arrow_layout::number || layout == detail::arrow_layout::wide)) {  // used in place
    const detail::arrow_chunk& only = from.chunks[0];
    const std::uint8_t* const bits = detail::valid_rows(*only.array, 0).bits;
    column.type = as.number;
    column.rows = only.rows;
    column.values = static_cast<const char*>(only.array->buffers[1]) + only.begin * bytes;
    if (bits != nullptr && only.begin % 8 == 0) {
      column.valid = bits + only.begin / 8;
    } else if (bits != nullptr) {
      std::uint8_t* const valid = keep(detail::zeros<std::uint8_t>(place, column.rows / 8 + 1));
      detail::write_bits(place, valid, 0, column.rows, detail::element<validity>{{bits, only.begin}});
      column.valid = valid;
    }
  } else {
    std::size_t rows = 0;
    for (const detail::arrow_chunk& part : from.chunks) rows += part.rows;
    column = read(place, from, as, keep(array<std::byte, Place>(place, rows * bytes)));
  }
  if (as.made_of == arrow_type::form::wide) {  // the low words, then the high ones
    column.step = 2, column.type = column_type::u8;
    columns_[table].push_back(column);
    if (column.values != nullptr) column.values = static_cast<const std::uint64_t*>(column.values) + 1;
    column.type = column_type::i8;
  }
  columns_[table].push_back(column);
}

template <class Place>
void arrow_keys<Place>::index_texts_of(const Place& place, std::initializer_list<const arrow_table*> tables,
                                       std::size_t c, const arrow_type& as) {
  std::size_t rows = 0;
  for (const arrow_table* table : tables) rows += table->rows();
  array<std::string_view, Place> texts(place, rows);
  rows = 0;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto* const from = reinterpret_cast<std::byte*>(texts.data() + rows);
    columns_[t].push_back(read(place, tables.begin()[t]->columns()[c], as, from));
    rows += columns_[t].back().rows;
  }
  const std::uint32_t* numbers = keep(number_texts(place, texts.span()).numbers);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    columns_[t].back().values = numbers;
    numbers += columns_[t].back().rows;
  }
}

template <class Place>
void arrow_keys<Place>::add(const Place& place, std::size_t table, std::span<const std::uint32_t> numbers,
                            const text_column& texts) {
  key_column column(numbers);
  if (texts.nulls() != 0) {
    const std::size_t bytes = numbers.size() / 8 + 1;
    std::uint8_t* const valid = keep(detail::filled<std::uint8_t>(place, bytes, 0xFF));
    place.copy_from_host(valid, texts.valid().data(), std::min(bytes, texts.valid().size()));
    column.valid = valid;
  }
  columns_[table].push_back(column);
}

template <class Place>
arrow_keys<Place>::arrow_keys(const Place& place, std::initializer_list<const arrow_table*> tables)
    : arrow_keys() {
  const arrow_table& first = **tables.begin();
  const arrow_table& last = **(tables.end() - 1);
  if (first.columns().size() != last.columns().size() || tables.size() > columns_.size()) {
    detail::raise<invalid_argument>({"roost: tables of ", first.columns().size(), " and of ",
                                     last.columns().size(), " columns as keys; pass as many of both"});
  }
  for (std::size_t c = 0; c < first.columns().size(); ++c) {
    const arrow_table::column &one = first.columns()[c], &other = last.columns()[c];
    const arrow_type as = common_type(one.type, other.type, detail::arrow_name(*one.schema));
    if (as.made_of != arrow_type::form::text) {
      for (std::size_t t = 0; t < tables.size(); ++t) add(place, t, tables.begin()[t]->columns()[c], as);
    } else if constexpr (std::is_same_v<Place, host>) {
      text_column all;
      std::vector<text_column> each;
      for (const arrow_table* table : tables) all.add(each.emplace_back(table->texts(c)));
      array<std::uint32_t, host> numbers = number_texts(place, all).numbers;
      const std::span<const std::uint32_t> of_all(keep(std::move(numbers)), all.size());
      std::size_t row = 0;
      for (std::size_t t = 0; t < each.size(); ++t) {
        add(place, t, of_all.subspan(std::exchange(row, row + each[t].size()), each[t].size()), each[t]);
      }
    } else {
      index_texts_of(place, tables, c, as);
    }
  }
}

}  // namespace roost
