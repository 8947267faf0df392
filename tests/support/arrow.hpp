#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <roost/columns/arrow.hpp>
#include <string>
#include <vector>

// Arrays of Arrow of random values, and a reader of any array, which shares no code with the library's.

namespace test {

/// A value as oracles have it: nothing for a null; equal where the values are.
using cell = std::optional<std::string>;
using row = std::vector<cell>;

template <class T>
T read_at(const void* from, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
  return value;
}
inline bool bit_at(const void* from, std::size_t i) {
  return (static_cast<const std::uint8_t*>(from)[i / 8] >> i % 8 & 1) != 0;
}

inline std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::abs(value) < 0x1p63 && std::trunc(value) == value)
    return std::to_string(static_cast<long long>(value));
  char text[64];
  std::snprintf(text, sizeof(text), "%a", value);
  return text;
}

inline double half_at(const void* from, std::size_t i) {
  const auto half = read_at<std::uint16_t>(from, i);
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double size = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 != 0 ? -size : size;
}

/// How many bytes a value of a type of numbers has; 0 for other types.
inline std::size_t width_of(const std::string& format) {
  if (format[0] == 'w') return std::stoul(format.substr(2));
  if (format[0] == 'd') return format.ends_with(",32") ? 4 : format.ends_with(",64") ? 8 : 16;
  if (format == "tdD" || format == "tts" || format == "ttm") return 4;
  if (format[0] == 't') return 8;
  const std::string letters = "cCsSeiIflLg";
  const std::size_t widths[] = {1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8};
  const std::size_t at = letters.find(format);
  return at == std::string::npos ? 0 : widths[at];
}

inline std::string number_at(const std::string& format, const void* from, std::size_t i) {
  switch (format[0]) {
    case 'c':
      return std::to_string(read_at<std::int8_t>(from, i));
    case 'C':
      return std::to_string(read_at<std::uint8_t>(from, i));
    case 's':
      return std::to_string(read_at<std::int16_t>(from, i));
    case 'S':
      return std::to_string(read_at<std::uint16_t>(from, i));
    case 'I':
      return std::to_string(read_at<std::uint32_t>(from, i));
    case 'L':
      return std::to_string(read_at<std::uint64_t>(from, i));
    case 'b':
      return std::to_string(bit_at(from, i));
    case 'e':
      return text_of(half_at(from, i));
    case 'f':
      return text_of(read_at<float>(from, i));
    case 'g':
      return text_of(read_at<double>(from, i));
    default:
      break;
  }
  if (width_of(format) == 4) return std::to_string(read_at<std::int32_t>(from, i));
  if (width_of(format) == 8) return std::to_string(read_at<std::int64_t>(from, i));
  const auto low = read_at<std::uint64_t>(from, 2 * i);
  const auto high = read_at<std::int64_t>(from, 2 * i + 1);
  if (high == (low >> 63 != 0 ? -1 : 0)) return std::to_string(static_cast<std::int64_t>(low));
  return std::to_string(high) + ":" + std::to_string(low);
}

/// Value i of an array, counted from its first buffer's begin.
inline cell cell_at(const ArrowSchema& type, const ArrowArray& array, std::size_t i) {
  const std::string format = type.format;
  if (format == "n" ||
      (array.null_count != 0 && array.buffers[0] != nullptr && !bit_at(array.buffers[0], i))) {
    return {};
  }
  const void* const values = array.buffers[1];
  if (array.dictionary != nullptr) {
    const auto code = static_cast<std::size_t>(std::stoull(number_at(format, values, i)));
    return cell_at(*type.dictionary, *array.dictionary,
                   code + static_cast<std::size_t>(array.dictionary->offset));
  }
  const auto text = [&](auto begin, auto end) {
    return std::string(static_cast<const char*>(array.buffers[2]) + begin,
                       static_cast<std::size_t>(end - begin));
  };
  if (format == "u" || format == "z")
    return text(read_at<std::int32_t>(values, i), read_at<std::int32_t>(values, i + 1));
  if (format == "U" || format == "Z")
    return text(read_at<std::int64_t>(values, i), read_at<std::int64_t>(values, i + 1));
  if (format == "vu" || format == "vz") {
    const auto length = static_cast<std::size_t>(read_at<std::int32_t>(values, 4 * i));
    const char* const view = static_cast<const char*>(values) + 16 * i;
    if (length <= 12) return std::string(view + 4, length);
    const auto buffer = static_cast<std::size_t>(read_at<std::int32_t>(values, 4 * i + 2));
    return std::string(
        static_cast<const char*>(array.buffers[2 + buffer]) + read_at<std::int32_t>(values, 4 * i + 3),
        length);
  }
  if (format[0] == 'w') {
    const std::size_t width = width_of(format);
    return std::string(static_cast<const char*>(values) + i * width, width);
  }
  return number_at(format, values, i);
}

/// A row as one text, which is the same for equal rows alone: maps of texts are faster than of rows.
inline std::string row_text(const row& it) {
  std::string text;
  for (const cell& c : it) {
    text += c ? std::to_string(c->size()) + ' ' : "-";
    if (c) text += *c;
  }
  return text;
}

/// The rows of an array: of a struct array, all fields.
inline std::vector<row> rows_of(const ArrowSchema& type, const ArrowArray& array) {
  std::vector<row> result(static_cast<std::size_t>(array.length));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t at = i + static_cast<std::size_t>(array.offset);
    if (type.format != std::string("+s")) result[i].push_back(cell_at(type, array, at));
    for (std::int64_t c = 0; type.format == std::string("+s") && c < type.n_children; ++c) {
      const ArrowArray& field = *array.children[c];
      result[i].push_back(cell_at(*type.children[c], field, at + static_cast<std::size_t>(field.offset)));
    }
  }
  return result;
}

/// How many arrays and schemas there are that were not released.
inline std::atomic<int> live_structs{0};

/// What a struct points to.
template <class Struct>
struct struct_memory {
  std::string format, name;
  std::vector<std::unique_ptr<std::vector<char>>> buffers;  // of their sizes exactly, for sanitizers
  std::vector<const void*> pointers;
  std::vector<std::unique_ptr<Struct>> fields;
  std::vector<Struct*> field_pointers;
  std::unique_ptr<Struct> dictionary;
  std::vector<std::shared_ptr<void>> elsewhere;  // what move_buffers() points to

  static void release(Struct* it) {
    auto* const memory = static_cast<struct_memory*>(it->private_data);
    for (auto& field : memory->fields) {
      if (field->release != nullptr) field->release(field.get());
    }
    if (memory->dictionary != nullptr) memory->dictionary->release(memory->dictionary.get());
    delete memory;
    it->release = nullptr;
    --live_structs;
  }
  void finish(Struct& to) {
    for (auto& field : fields) field_pointers.push_back(field.get());
    to.n_children = static_cast<std::int64_t>(fields.size());
    to.children = field_pointers.data();
    to.dictionary = dictionary.get();
    to.release = &release;
    to.private_data = this;
    ++live_structs;
  }
};

using random_bits = std::mt19937_64;

inline ArrowSchema make_type(const std::string& format, const std::string& dictionary = "",
                             const std::string& name = "a") {
  auto* const memory = new struct_memory<ArrowSchema>{format, name, {}, {}, {}, {}, {}, {}};
  ArrowSchema type{};
  if (!dictionary.empty()) memory->dictionary = std::make_unique<ArrowSchema>(make_type(dictionary));
  memory->finish(type);
  type.format = memory->format.c_str();
  type.name = memory->name.c_str();
  type.flags = ARROW_FLAG_NULLABLE;
  return type;
}
inline ArrowSchema make_table_type(std::vector<ArrowSchema> fields) {
  auto* const memory = new struct_memory<ArrowSchema>{"+s", "", {}, {}, {}, {}, {}, {}};
  for (const ArrowSchema& field : fields) memory->fields.push_back(std::make_unique<ArrowSchema>(field));
  ArrowSchema type{};
  memory->finish(type);
  type.format = memory->format.c_str();
  type.name = memory->name.c_str();
  return type;
}

/// A text of a number: of all lengths, with zeros, empty ones.
inline std::string random_text(std::uint64_t number) {
  const std::size_t lengths[] = {0, 3, 7, 8, 12, 13, 15, 16, 40};
  std::string text(lengths[number % 9], static_cast<char>('a' + number / 9 % 5));
  if (text.size() >= 3) text[1] = number % 2 != 0 ? '\0' : 'x';
  if (text.size() >= 16) std::memcpy(text.data() + 4, &number, 8);
  return text;
}

/// Bytes of a random number of a type, out of about `range`; few of a type's least and greatest.
inline void put_random(const std::string& format, char* to, std::uint64_t number, std::uint64_t range) {
  const std::size_t width = width_of(format);
  const auto small = static_cast<std::int64_t>(number % range) - static_cast<std::int64_t>(range / 3);
  const double special[] = {-0.0, 0.0, NAN, -NAN, INFINITY, -INFINITY, 0.5};
  const double real = number % 5 == 0 ? special[number / 5 % 7] : static_cast<double>(small) / 4;
  const auto real_4 = static_cast<float>(real);
  std::int64_t words[2] = {number % 11 == 0 ? std::numeric_limits<std::int64_t>::min() : small,
                           small < 0 ? -1 : 0};
  if (number % 13 == 0) words[1] = small;
  if (format == "f") return static_cast<void>(std::memcpy(to, &real_4, 4));
  if (format == "g") return static_cast<void>(std::memcpy(to, &real, 8));
  if (format[0] == 'w') {
    const std::string text = random_text(number % range) + std::string(width, '\0');
    return static_cast<void>(std::memcpy(to, text.data(), width));
  }
  if (number % 11 == 0 && width < 8) words[0] = static_cast<std::int64_t>(number >> 20);
  std::memcpy(to, words, width);
}

/// An array of `length` random values behind `offset` others. `nulls`: in percent; -1: without a bitmap.
/// `range`: of different values, about.
inline ArrowArray make_array(const std::string& format, std::size_t length, std::size_t offset, int nulls,
                             std::uint64_t range, random_bits& random, const std::string& dictionary = "") {
  auto* const memory = new struct_memory<ArrowArray>{};
  const std::size_t n = length + offset, width = width_of(format);
  const auto add = [&](std::size_t bytes) -> std::vector<char>& {
    memory->buffers.push_back(std::make_unique<std::vector<char>>(bytes));
    memory->pointers.push_back(memory->buffers.back()->data());
    return *memory->buffers.back();
  };
  ArrowArray array{};
  std::size_t known = 0;
  if (!dictionary.empty()) {
    known = 1 + range % 50;
    memory->dictionary = std::make_unique<ArrowArray>(
        make_array(dictionary, known, random() % 9, nulls < 0 ? -1 : nulls / 4, range, random));
  }
  if (format != "n") {
    if (nulls >= 0) {
      std::vector<char>& bits = add((n + 7) / 8);
      for (std::size_t i = 0; i < n; ++i) {
        const bool there = random() % 100 >= static_cast<unsigned>(nulls);
        if (i >= offset) array.null_count += !there;
        bits[i / 8] = static_cast<char>(bits[i / 8] | there << i % 8);
      }
      if (random() % 2 != 0) array.null_count = -1;
    } else {
      memory->pointers.push_back(nullptr);
    }
    if (format == "b") {
      for (char& byte : add((n + 7) / 8)) byte = static_cast<char>(random());
    } else if (width != 0) {
      std::vector<char>& values = add(n * width);
      for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t number = random();
        if (known != 0) {
          const bool there = nulls < 0 || bit_at(memory->pointers[0], i);
          number = there ? number % known : number;  // of a null, any
          std::memcpy(values.data() + i * width, &number, width);
        } else {
          put_random(format, values.data() + i * width, number, range);
        }
      }
    } else if (format == "w:0") {
      add(1);
    } else {
      const std::size_t offset_bytes = format[0] == 'v' ? 16 : std::isupper(format[0]) ? 8 : 4;
      std::vector<char>& offsets = add(offset_bytes * (n + (format[0] != 'v')));
      std::vector<char>& bytes = add(0);
      for (std::size_t i = 0; i < n; ++i) {
        const std::string text = random_text(random() % range);
        if (format[0] == 'v') {
          const std::int32_t view[] = {static_cast<std::int32_t>(text.size()), 0, 0,
                                       static_cast<std::int32_t>(bytes.size())};
          char* const to = offsets.data() + 16 * i;
          std::memcpy(to, view, 16);
          if (text.size() <= 12) {
            std::memset(to + 4, 0, 12);
            std::memcpy(to + 4, text.data(), text.size());
            continue;
          }
          std::memcpy(to + 4, text.data(), 4);
        }
        bytes.insert(bytes.end(), text.begin(), text.end());
        const auto end = static_cast<std::int64_t>(bytes.size());
        if (format[0] != 'v') std::memcpy(offsets.data() + (i + 1) * offset_bytes, &end, offset_bytes);
      }
      bytes.shrink_to_fit();
      memory->pointers.back() = bytes.data();
      if (format[0] == 'v') {
        const auto size = static_cast<std::int64_t>(bytes.size());
        std::memcpy(add(8).data(), &size, 8);
      }
    }
  }
  memory->finish(array);
  array.length = static_cast<std::int64_t>(length);
  array.offset = static_cast<std::int64_t>(offset);
  if (format == "n") array.null_count = array.length;
  array.n_buffers = static_cast<std::int64_t>(memory->pointers.size());
  array.buffers = memory->pointers.data();
  return array;
}

/// A struct array of columns, `offset` rows of which are skipped.
inline ArrowArray make_table(std::vector<ArrowArray> columns, std::size_t offset = 0) {
  auto* const memory = new struct_memory<ArrowArray>{};
  memory->pointers.push_back(nullptr);
  ArrowArray array{};
  array.length = columns[0].length - static_cast<std::int64_t>(offset);
  array.offset = static_cast<std::int64_t>(offset);
  for (const ArrowArray& column : columns) memory->fields.push_back(std::make_unique<ArrowArray>(column));
  memory->finish(array);
  array.n_buffers = 1;
  array.buffers = memory->pointers.data();
  return array;
}

/// Puts the buffers of an array elsewhere. copy(buffer): a std::shared_ptr<void> to a copy.
template <class Copy>
void move_buffers(ArrowArray& array, const Copy& copy) {
  auto& memory = *static_cast<struct_memory<ArrowArray>*>(array.private_data);
  for (const auto& buffer : memory.buffers) {
    for (const void*& pointer : memory.pointers) {
      if (pointer == nullptr || pointer != buffer->data()) continue;
      memory.elsewhere.push_back(copy(*buffer));
      pointer = memory.elsewhere.back().get();
    }
  }
  for (const auto& field : memory.fields) move_buffers(*field, copy);
  if (memory.dictionary != nullptr) move_buffers(*memory.dictionary, copy);
}

}  // namespace test
