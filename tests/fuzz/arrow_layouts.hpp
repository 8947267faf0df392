#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/arrow.hpp"

// Arrays of Arrow out of the bytes of an input: the same values in any layout that Arrow allows.

/// The bytes of an input, one by one; zeros behind its end.
class input {
 public:
  input(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
  bool is_empty() const { return at_ == end_; }
  std::size_t byte() { return is_empty() ? 0 : *at_++; }
  std::size_t below(std::size_t n) { return byte() % n; }
  bool flag() { return below(2) != 0; }

 private:
  const std::uint8_t *at_, *end_;
};

/// Many small choices out of six bytes of an input.
class choices {
 public:
  explicit choices(input& from) {
    for (int i = 0; i < 6; ++i) state_ = state_ << 8 | from.byte();
  }
  std::size_t below(std::size_t n) {
    const std::size_t chosen = state_ % n;
    state_ = state_ / n ^ chosen << 40;  // more choices than bytes repeat the first ones
    return chosen;
  }
  bool flag() { return below(2) != 0; }

 private:
  std::uint64_t state_ = 0;
};

using test::cell;
using values = std::vector<cell>;  // the bytes of each value as arrays have them; nothing for a null

inline bool is_text(const std::string& format) {
  return std::string("uUzZvw").find(format[0]) != std::string::npos;
}

/// A value of a type by its number: small ones, and the type's extremes.
inline std::string value_of(const std::string& format, std::uint32_t number) {
  const std::size_t width = test::width_of(format);
  if (is_text(format)) {
    std::string text = test::random_text(number);
    if (format[0] == 'w') text.resize(width, '\0');
    return text;
  }
  if (format == "b") return {static_cast<char>(number % 2)};
  const auto small = static_cast<std::int64_t>(number % 300) - 100;
  const std::int64_t extremes[] = {INT64_MIN,  INT64_MAX,      -1,    127,       128,     -128,
                                   255,        32768,          65535, INT32_MIN, 1 << 16, 1LL << 32,
                                   UINT32_MAX, (1LL << 53) + 1};
  const double reals[] = {-0.0, NAN, -NAN, INFINITY, -INFINITY, 0.5, 0x1p-1074, 0x1p-140, 0x1p120, 0x1p53};
  const std::uint16_t halves[] = {0,      0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00,
                                  0xFE01, 0x7C01, 1,      0x8001, 0x3800, 0x4000, 0x7BFF};
  const bool is_special = number % 7 == 6;
  const double real = is_special ? reals[number / 7 % std::size(reals)] : static_cast<double>(small) / 4;
  const auto real_4 = static_cast<float>(real);
  std::int64_t words[2] = {is_special ? extremes[number / 7 % std::size(extremes)] : small, 0};
  words[1] = number % 14 == 13 ? small : words[0] < 0 ? -1 : 0;
  const void* from = words;
  if (format == "e") from = &halves[number % std::size(halves)];
  if (format == "f") from = &real_4;
  if (format == "g") from = &real;
  return {static_cast<const char*>(from), width};
}

/// What an array's buffers need: how many bytes each value has, and how its memory is aligned.
struct buffer_maker {
  test::struct_memory<ArrowArray>& memory;
  choices& how;
  char* add(std::size_t bytes, std::size_t unit) {
    const std::size_t skipped = how.flag() ? unit : 0;
    auto& buffer = memory.buffers.emplace_back(std::make_unique<std::vector<char>>(bytes + skipped));
    memory.pointers.push_back(bytes == 0 && how.flag() ? nullptr : buffer->data() + skipped);
    return buffer->data() + skipped;
  }
};

inline void set_bit(char* bits, std::size_t i, bool is) {
  bits[i / 8] = static_cast<char>((bits[i / 8] & ~(1 << i % 8)) | is << i % 8);
}

/// Texts with offsets, or as views in several buffers.
inline void lay_out_texts(const std::string& format, const std::vector<const std::string*>& rows,
                          buffer_maker& make) {
  if (format[0] != 'v') {
    const std::size_t width = format == "u" || format == "z" ? 4 : 8;
    char* const offsets = make.add(rows.empty() && make.how.flag() ? 0 : (rows.size() + 1) * width, width);
    std::string bytes;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bytes += rows[i] == nullptr ? "junk" : *rows[i];
      const std::size_t end = bytes.size();
      std::memcpy(offsets + (i + 1) * width, &end, width);
    }
    std::copy(bytes.begin(), bytes.end(), make.add(bytes.size(), 1));
    return;
  }
  char* const views = make.add(rows.size() * 16, 4);
  std::vector<std::string> buffers(make.how.below(4));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string text = rows[i] == nullptr ? "" : *rows[i];
    std::int32_t view[] = {static_cast<std::int32_t>(text.size()), 0, 0, 0};
    if (rows[i] == nullptr) std::fill_n(view, 4, 0x7FFFFFF7);  // a null's may point anywhere
    std::memcpy(view + 1, text.data(), std::min<std::size_t>(text.size(), text.size() > 12 ? 4 : 12));
    if (text.size() > 12) {
      if (buffers.empty()) buffers.emplace_back();
      std::string& to = buffers[i % buffers.size()];
      view[2] = static_cast<std::int32_t>(i % buffers.size());
      if (to.find(text) == to.npos) to += text;
      view[3] = static_cast<std::int32_t>(to.find(text));
    }
    std::memcpy(views + 16 * i, view, 16);
  }
  for (const std::string& bytes : buffers) std::copy(bytes.begin(), bytes.end(), make.add(bytes.size(), 1));
  char* sizes = make.add(buffers.size() * 8, 8);
  for (const std::string& bytes : buffers) {
    const std::size_t size = bytes.size();
    std::memcpy(std::exchange(sizes, sizes + 8), &size, 8);
  }
}

/// An array of values: behind others and before others, with a bitmap if there are nulls or by chance.
inline ArrowArray lay_out(const std::string& format, const values& from, choices& how) {
  auto* const memory = new test::struct_memory<ArrowArray>{};
  buffer_maker make{*memory, how};
  ArrowArray array{};
  const std::size_t offset = how.flag() ? how.below(20) : 0, width = test::width_of(format);
  const std::size_t rows = offset + from.size() + (how.flag() ? how.below(9) : 0);
  std::vector<const std::string*> of_rows(rows);  // none: a null, or outside
  for (std::size_t i = 0; i < from.size(); ++i) of_rows[offset + i] = from[i] ? &*from[i] : nullptr;
  const auto nulls = static_cast<std::int64_t>(std::ranges::count(from, cell()));
  if (format != "n") {
    const bool has_bits = nulls != 0 || how.flag();
    char* const bits = make.add(has_bits ? (rows + 7) / 8 : 0, 1);
    if (!has_bits) memory->pointers[0] = nullptr;
    for (std::size_t i = 0; has_bits && i < rows; ++i) set_bit(bits, i, of_rows[i] != nullptr);
    array.null_count = how.flag() ? -1 : nulls;
  }
  if (format == "b") {
    char* const bits = make.add((rows + 7) / 8, 1);
    for (std::size_t i = 0; i < rows; ++i) set_bit(bits, i, of_rows[i] == nullptr || (*of_rows[i])[0] != 0);
  } else if (is_text(format) && format[0] != 'w') {
    lay_out_texts(format, of_rows, make);
  } else if (format != "n") {
    char* const to = make.add(rows * width, format[0] == 'w' ? 1 : std::min<std::size_t>(width, 8));
    for (std::size_t i = 0; i < rows && width != 0; ++i) {
      if (of_rows[i] == nullptr) std::memset(to + i * width, 0xEE, width);
      if (of_rows[i] != nullptr) std::memcpy(to + i * width, of_rows[i]->data(), width);
    }
  }
  memory->finish(array);
  array.length = static_cast<std::int64_t>(from.size());
  array.offset = static_cast<std::int64_t>(offset);
  if (format == "n") array.null_count = array.length;
  array.n_buffers = static_cast<std::int64_t>(memory->pointers.size());
  array.buffers = memory->pointers.data();
  return array;
}

/// A column: its type, and the number of each value. `wrong_code`: a row has a code without a value.
struct column {
  std::string format, dictionary, name;
  bool is_ordered = false, wrong_code = false;
  std::vector<std::optional<std::uint32_t>> numbers;

  const std::string& value_format() const { return dictionary.empty() ? format : dictionary; }
};

/// An array of codes, whose dictionary has values twice, unused ones, and nulls. `wrong`: the row whose code
/// is to have no value; none behind the end.
inline ArrowArray lay_out_codes(const column& of, const values& from, std::size_t wrong, choices& how) {
  const std::size_t width = test::width_of(of.format);
  const auto code_of = [&](std::uint64_t code) {
    return std::string(reinterpret_cast<const char*>(&code), width);
  };
  values known, codes;
  if (how.flag()) known.push_back(value_of(of.dictionary, 77));
  const bool has_null = how.flag(), repeats = how.flag();
  if (has_null) known.emplace_back();
  std::map<cell, std::size_t> places;
  for (const cell& value : from) {
    if (!value && !(has_null && how.flag())) {
      codes.emplace_back();
      continue;
    }
    const auto [at, is_new] = places.try_emplace(value, known.size());
    if (is_new || (repeats && known.size() < 100 && how.below(5) == 0)) {
      at->second = known.size();
      known.push_back(value);
    }
    codes.push_back(code_of(at->second));
  }
  if (wrong < codes.size()) codes[wrong] = code_of(how.flag() ? ~std::uint64_t{0} : known.size());
  ArrowArray array = lay_out(of.format, codes, how);
  auto& memory = *static_cast<test::struct_memory<ArrowArray>*>(array.private_data);
  memory.dictionary = std::make_unique<ArrowArray>(lay_out(of.dictionary, known, how));
  array.dictionary = memory.dictionary.get();
  return array;
}

/// Rows [begin, end) of a column, between rows that are in its array, but not in the table's.
inline ArrowArray array_of(const column& of, std::size_t begin, std::size_t end, std::size_t before,
                           choices& how) {
  values all;
  const auto add = [&](std::optional<std::uint32_t> number) {
    all.push_back(number ? cell(value_of(of.value_format(), *number)) : cell());
  };
  for (std::size_t i = 0; i < before; ++i) add(static_cast<std::uint32_t>(i));
  for (std::size_t i = begin; i < end; ++i) add(of.numbers[i]);
  for (std::size_t i = before == 0 ? 0 : how.below(3); i > 0; --i) add({});
  if (of.dictionary.empty()) return lay_out(of.format, all, how);
  return lay_out_codes(of, all, of.wrong_code && begin == 0 && end > 0 ? before : all.size(), how);
}

inline ArrowSchema type_of(const column& of) {
  ArrowSchema type = test::make_type(of.format, of.dictionary, of.name);
  if (of.is_ordered) type.flags |= ARROW_FLAG_DICTIONARY_ORDERED;
  return type;
}
