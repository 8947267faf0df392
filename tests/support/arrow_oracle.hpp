#pragma once

#include <algorithm>
#include <unordered_map>

#include "roost.h"
#include "support/arrow.hpp"

// What the functions of roost.h must answer, by maps of the standard library.

namespace test {

using rows_64 = std::vector<std::int64_t>;

inline bool has_null(const row& it) {
  return std::any_of(it.begin(), it.end(), [](const cell& c) { return !c; });
}

template <class Value>
using map_of_rows = std::unordered_map<std::string, Value>;

/// Distinct rows by first occurrence.
struct oracle {
  map_of_rows<std::int64_t> known;
  rows_64 first, numbers, counts;

  oracle(const std::vector<row>& rows, bool drops_nulls) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (drops_nulls && has_null(rows[i])) {
        numbers.push_back(-1);
        continue;
      }
      const auto [at, is_new] = known.try_emplace(row_text(rows[i]), first.size());
      if (is_new) first.push_back(static_cast<std::int64_t>(i)), counts.push_back(0);
      ++counts[static_cast<std::size_t>(at->second)];
      numbers.push_back(at->second);
    }
  }
};

using pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Rows as texts, and which of them have a null.
struct rows_as_texts {
  std::vector<std::string> texts;
  std::vector<bool> nulls;

  explicit rows_as_texts(const std::vector<row>& rows) {
    for (const row& each : rows) texts.push_back(row_text(each)), nulls.push_back(has_null(each));
  }
  std::size_t size() const { return texts.size(); }
};

inline pairs pairs_of(const rows_as_texts& left, const rows_as_texts& right, int how, bool nulls_equal) {
  if (how == ROOST_JOIN_RIGHT) {
    pairs result = pairs_of(right, left, ROOST_JOIN_LEFT, nulls_equal);
    for (auto& each : result) std::swap(each.first, each.second);
    return result;
  }
  map_of_rows<rows_64> rows;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (nulls_equal || !right.nulls[i]) rows[right.texts[i]].push_back(static_cast<std::int64_t>(i));
  }
  std::vector<bool> seen(right.size());
  pairs result;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto l = static_cast<std::int64_t>(i);
    const auto found = rows.find(left.texts[i]);
    const bool is_there = found != rows.end() && (nulls_equal || !left.nulls[i]);
    if (how == ROOST_JOIN_SEMI || how == ROOST_JOIN_ANTI) {
      if (is_there == (how == ROOST_JOIN_SEMI)) result.emplace_back(l, 0);
    } else if (is_there) {
      for (const std::int64_t r : found->second) {
        result.emplace_back(l, r);
        seen[static_cast<std::size_t>(r)] = true;
      }
    } else if (how != ROOST_JOIN_INNER) {
      result.emplace_back(l, -1);
    }
  }
  for (std::size_t i = 0; how == ROOST_JOIN_OUTER && i < right.size(); ++i) {
    if (!seen[i]) result.emplace_back(-1, static_cast<std::int64_t>(i));
  }
  return result;
}

/// A number as the oracle computes with it.
struct number {
  bool is_float = false, is_unsigned = false;
  std::uint64_t bits = 0;
  double real = 0;
};

inline number number_of(const std::string& format, const std::string& text) {
  number result;
  result.is_float = format == "e" || format == "f" || format == "g";
  result.is_unsigned = format == "C" || format == "S" || format == "I" || format == "L";
  result.real = text == "NaN" ? NAN : std::strtod(text.c_str(), nullptr);
  if (!result.is_float)
    result.bits = result.is_unsigned ? std::stoull(text) : static_cast<std::uint64_t>(std::stoll(text));
  return result;
}

inline bool less(const number& a, const number& b) {
  if (a.is_float) return a.real < b.real;
  return a.is_unsigned ? a.bits < b.bits
                       : static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
}
inline std::string text_of(const number& it) {
  if (it.is_float) return test::text_of(it.real);
  return it.is_unsigned ? std::to_string(it.bits) : std::to_string(static_cast<std::int64_t>(it.bits));
}

/// What a reduction of values must be; nothing for a null.
inline std::optional<number> reduced(const std::vector<number>& values, int how) {
  if (values.empty() && how != ROOST_COUNT) return {};
  number result = values.empty() ? number() : values[0];
  if (how == ROOST_COUNT) result = {false, false, values.size(), 0};
  if (how == ROOST_ANY || how == ROOST_ALL) {
    const auto is_set = [](const number& it) { return it.is_float ? it.real != 0 : it.bits != 0; };
    const bool is = how == ROOST_ANY ? std::any_of(values.begin(), values.end(), is_set)
                                     : std::all_of(values.begin(), values.end(), is_set);
    return number{false, false, is, 0};
  }
  if (how == ROOST_MEAN) {
    long double sum = 0;
    for (const number& it : values) sum += it.real;
    return number{true, false, 0, static_cast<double>(sum / static_cast<long double>(values.size()))};
  }
  for (std::size_t i = 1; how != ROOST_COUNT && i < values.size(); ++i) {
    const number& it = values[i];
    if (how == ROOST_SUM) result.bits += it.bits, result.real += it.real;
    if (how == ROOST_PRODUCT) result.bits *= it.bits, result.real *= it.real;
    if (how == ROOST_MIN && (std::isnan(it.real) || less(it, result)))
      result = std::isnan(result.real) ? result : it;
    if (how == ROOST_MAX && (std::isnan(it.real) || less(result, it)))
      result = std::isnan(result.real) ? result : it;
  }
  return result;
}

inline std::string result_format(const std::string& format, int how) {
  const bool is_float = format == "e" || format == "f" || format == "g";
  const bool is_unsigned = format == "C" || format == "S" || format == "I" || format == "L";
  if (how == ROOST_COUNT) return "l";
  if (how == ROOST_MEAN) return "g";
  if (how == ROOST_ANY || how == ROOST_ALL) return "b";
  if (is_float) return format == "g" ? "g" : "f";
  if (how == ROOST_MIN || how == ROOST_MAX || format.starts_with("t")) return format;
  return is_unsigned ? "L" : "l";
}

/// A stream of chunks, which fails at the end if it should.
struct chunk_stream {
  ArrowSchema type;
  std::vector<ArrowArray> chunks;
  std::size_t next = 0;
  bool fails = false;

  static ArrowArrayStream make(chunk_stream* it) {
    ArrowArrayStream stream{};
    stream.get_schema = [](ArrowArrayStream* from, ArrowSchema* to) {
      auto& mine = *static_cast<chunk_stream*>(from->private_data);
      *to = mine.type;
      mine.type.release = nullptr;
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* from, ArrowArray* to) {
      auto& mine = *static_cast<chunk_stream*>(from->private_data);
      *to = {};
      if (mine.next < mine.chunks.size()) {
        *to = mine.chunks[mine.next];
        mine.chunks[mine.next++].release = nullptr;
      } else if (mine.fails) {
        return 5;
      }
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) { return "the disk is on fire"; };
    stream.release = [](ArrowArrayStream* from) {
      auto& mine = *static_cast<chunk_stream*>(from->private_data);
      if (mine.type.release != nullptr) mine.type.release(&mine.type);
      for (ArrowArray& chunk : mine.chunks) {
        if (chunk.release != nullptr) chunk.release(&chunk);
      }
      delete &mine;
      from->release = nullptr;
    };
    stream.private_data = it;
    return stream;
  }
};

}  // namespace test
