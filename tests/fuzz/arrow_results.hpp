#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.hpp"
#include "support/arrow_oracle.hpp"

// What calls of roost.h answer: statuses, and arrays that are as Arrow says.

/// Whether a call succeeded. One that was refused must say why, in one line.
inline bool is_ok(roost_status status) {
  if (status == ROOST_OK) return true;
  const std::string_view why = roost_last_error();
  if (status != ROOST_INVALID_ARGUMENT)
    std::fprintf(stderr, "%.*s\n", static_cast<int>(why.size()), why.data());
  expect(status == ROOST_INVALID_ARGUMENT, "a call did not refuse its arguments, but failed");
  expect(why.starts_with("roost"), "an error that does not say whose it is");
  expect(std::ranges::none_of(why, [](unsigned char c) { return c < ' '; }), "an error of several lines");
  return false;
}

/// Structs to be written, and filled with what no call writes.
struct output {
  ArrowSchema type;
  ArrowDeviceArray array;

  output() {
    std::memset(&type, 0xA5, sizeof(type));
    std::memset(&array, 0xA5, sizeof(array));
  }
  output(const output&) = delete;
  ~output() {
    if (!is_untouched(type)) roost_release_schema(&type);
    if (!is_untouched(array)) roost_release_array(&array);
  }
  template <class Struct>
  static bool is_untouched(const Struct& it) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&it);
    return std::all_of(bytes, bytes + sizeof(it), [](unsigned char byte) { return byte == 0xA5; });
  }
  bool is_untouched() const { return is_untouched(type) && is_untouched(array); }

  const ArrowArray& of(const std::string& format) const {
    expect(array.device_type == ARROW_DEVICE_CPU && array.sync_event == nullptr,
           "a result that is elsewhere");
    check(format, nullptr, array.array);
    return array.array;
  }
  /// Row numbers or counts.
  void expect_numbers(const test::rows_64& expected) const {
    const ArrowArray& it = of("l");
    expect(it.null_count == 0 &&
               std::ranges::equal(expected, std::span(static_cast<const std::int64_t*>(it.buffers[1]),
                                                      static_cast<std::size_t>(it.length))),
           "other row numbers or counts");
  }
  void expect_bools(const std::vector<bool>& expected) const {
    const ArrowArray& it = of("b");
    expect(it.null_count == 0 && static_cast<std::size_t>(it.length) == expected.size(), "other bools");
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect(test::bit_at(it.buffers[1], i) == expected[i], "other bools");
  }
  void expect_rows(const std::vector<test::row>& expected) const {
    of(type.format);
    check(type.format, &type, array.array);
    expect(type.release != nullptr && test::rows_of(type, array.array) == expected, "other rows");
  }

 private:
  /// An array is as Arrow says.
  static void check(const std::string& format, const ArrowSchema* type, const ArrowArray& it) {
    const auto n = static_cast<std::size_t>(it.length);
    const bool is_packed = format == "u" || format == "z" || format == "U" || format == "Z";
    expect(it.release != nullptr && it.offset == 0 && it.dictionary == nullptr, "a result that is no array");
    expect(it.n_buffers == (format == "n" ? 0 : format == "+s" ? 1 : is_packed ? 3 : 2), "wrong buffers");
    const void* const bits = format == "n" ? nullptr : it.buffers[0];
    std::int64_t nulls = format == "n" ? it.length : 0;
    for (std::size_t i = 0; bits != nullptr && i < (n + 511) / 512 * 512; ++i) {
      nulls += i < n && !test::bit_at(bits, i);
      expect(i < n || !test::bit_at(bits, i), "bits behind the end");
    }
    expect(nulls == it.null_count, "a wrong number of nulls");
    const std::size_t width = format == "U" || format == "Z" ? 8 : is_packed ? 4 : test::width_of(format);
    for (std::size_t b = 1; b < static_cast<std::size_t>(it.n_buffers); ++b)
      expect(reinterpret_cast<std::uintptr_t>(it.buffers[b]) % 8 == 0 || n * width == 0, "not aligned");
    std::int64_t last = 0;
    for (std::size_t i = 0; is_packed && i <= n; ++i) {
      std::int64_t next = 0;
      std::memcpy(&next, static_cast<const char*>(it.buffers[1]) + i * width, width);
      expect(i == 0 ? next == 0 : next >= last, "offsets that do not ascend from 0");
      last = next;
    }
    for (std::int64_t c = 0; type != nullptr && c < it.n_children; ++c) {
      expect(it.n_children == type->n_children && it.children[c]->length == it.length, "other columns");
      check(type->children[c]->format, nullptr, *it.children[c]);
    }
  }
};
