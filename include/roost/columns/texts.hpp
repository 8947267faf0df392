#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "roost/columns/columns.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// Columns of texts, read where they lie, and numbered exactly. Needs the header xxhash.h.

namespace roost {

/// A bitmap as in Arrow, which says whether each row has a value; null: all rows have one.
struct validity {
  const std::uint8_t* bits = nullptr;
  std::size_t offset = 0;
  ROOST_FN bool operator[](std::size_t i) const { return detail::is_valid(bits, offset + i); }
};

// The layouts of texts in memory of the host or of a GPU. Each is a column whose element i is a text; the
// element of a null is any text.

/// Bytes side by side: text i is those from offsets[i] to offsets[i + 1] - 1. Arrow's utf8 and large_utf8.
template <class Offset>
struct packed_texts {
  const Offset* offsets;
  const char* bytes;
  ROOST_FN std::string_view operator[](std::size_t i) const {
    return {bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
  }
};

/// Arrow's views: a short text is stored in its view, and a longer one in one of several buffers.
struct viewed_texts {
  struct view {
    std::int32_t length;
    char begin[4];
    std::int32_t buffer, offset;
  };
  static_assert(sizeof(view) == 16);
  const view* views;
  const void* const* buffers;
  validity valid;  ///< a null's view may point anywhere
  ROOST_FN std::string_view operator[](std::size_t i) const {
    if (!valid[i]) return {};
    const view& it = views[i];
    const auto length = static_cast<std::size_t>(it.length);
    if (length <= 12) return {it.begin, length};
    return {static_cast<const char*>(buffers[it.buffer]) + it.offset, length};
  }
};

/// Texts of one width.
struct fixed_texts {
  const char* bytes;
  std::size_t width;
  bool padded;  ///< zeros at the end are no part of a text
  ROOST_FN std::string_view operator[](std::size_t i) const {
    const char* const text = bytes + i * width;
    std::size_t n = width;
    while (padded && n > 0 && text[n - 1] == '\0') --n;
    return {text, n};
  }
};

/// A list of texts, `step` apart.
struct listed_texts {
  const std::string_view* texts;
  std::size_t step = 1;
  ROOST_FN std::string_view operator[](std::size_t i) const { return texts[i * step]; }
};

class text_column;

/// Numbers of texts in a dictionary. The number of a null may be out of range.
struct coded_texts {
  const void* codes;
  std::size_t code_bytes;  ///< 1, 2, 4 or 8
  const text_column* dictionary;
  /// The number of row i.
  ROOST_FN std::size_t code(std::size_t i) const {
    switch (code_bytes) {
      case 1:
        return static_cast<const std::uint8_t*>(codes)[i];
      case 2:
        return static_cast<const std::uint16_t*>(codes)[i];
      case 4:
        return static_cast<const std::uint32_t*>(codes)[i];
      default:
        return static_cast<const std::uint64_t*>(codes)[i];
    }
  }
  inline std::string_view operator[](std::size_t i) const;
};

/// A column of texts in chunks, each with its own layout, in memory of its own or of others. Only one thread
/// at a time may add to it.
class text_column {
  struct chunk {
    std::size_t begin, count;  // rows of the column
    std::variant<packed_texts<std::int32_t>, packed_texts<std::int64_t>, viewed_texts, fixed_texts,
                 listed_texts, coded_texts>
        layout;
  };

 public:
  /// Adds `count` rows, whose memory must outlive the column; see keep().
  template <class Layout>
  void add(std::size_t count, const Layout& layout) {
    if (count != 0) chunks_.push_back({size_, count, layout});
    size_ += count;
  }
  /// Adds the rows of another column, but not its nulls; see keep().
  void add(const text_column& other) {
    for (const chunk& part : other.chunks_) add(part.count, part.layout);
  }
  /// Marks a row as null, before or after it is added.
  void add_null(std::size_t row) {
    if (valid_.size() <= row / 8) valid_.resize(row / 8 + 1, 0xFF);
    valid_[row / 8] &= static_cast<std::uint8_t>(~(1U << row % 8));
    ++nulls_;
  }
  /// Keeps memory alive as long as this column.
  void keep(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }

  std::size_t size() const { return size_; }
  /// The number of rows that add_null marked.
  std::size_t nulls() const { return nulls_; }
  /// A bitmap as in Arrow, if there are nulls; its last bytes may be missing if no nulls are there.
  std::span<const std::uint8_t> valid() const { return valid_; }

  std::string_view operator[](std::size_t i) const {
    auto part = chunks_.begin();
    if (chunks_.size() > 1) {
      part = std::upper_bound(chunks_.begin(), chunks_.end(), i,
                              [](std::size_t row, const chunk& it) { return row < it.begin; }) -
             1;
    }
    return std::visit([&](const auto& layout) { return layout[i - part->begin]; }, part->layout);
  }

  /// Calls f with a column of these texts: the only chunk, or this.
  template <class F>
  void with_layout(const F& f) const {
    if (chunks_.size() != 1) return f(*this);
    std::visit(f, chunks_[0].layout);
  }

  /// Calls f(begin, count, layout) for each chunk; `begin` is its first row.
  template <class F>
  void for_each_chunk(const F& f) const {
    for (const chunk& part : chunks_) {
      std::visit([&](const auto& layout) { f(part.begin, part.count, layout); }, part.layout);
    }
  }

 private:
  std::vector<chunk> chunks_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<std::uint8_t> valid_;
  std::size_t size_ = 0, nulls_ = 0;
};

std::string_view coded_texts::operator[](std::size_t i) const {
  const std::size_t number = code(i);
  return number < dictionary->size() ? (*dictionary)[number] : std::string_view();
}

/// Texts numbered by first occurrence.
struct numbered_texts {
  array<std::uint32_t, host> first;    ///< the row where each distinct text comes first, ascending
  array<std::uint32_t, host> numbers;  ///< of each row's text
};

/// Numbers the texts of a column, exactly: texts with equal hashes are compared. A null gets the number of
/// some text. Throws invalid_argument for more than 2^32 - 2 rows, out_of_memory, and build_error if 16 hash
/// functions do not distinguish the texts.
inline numbered_texts number_texts(const host& cpu, const text_column& texts);

/// For a column whose chunks are all coded, by dictionaries that have no more texts than the column has rows:
/// for each row a number below that of the dictionaries' texts, equal where texts are. Nothing for others.
/// Throws as number_texts.
inline std::optional<array<std::uint32_t, host>> numbers_in_dictionaries(const host& cpu,
                                                                         const text_column& texts);

/// Texts in memory of a place, numbered by first occurrence. A text of at most 15 bytes is its own key; a
/// longer one is represented by a hash.
template <class Place>
struct numbered_views {
  array<std::uint32_t, Place> first;    ///< the row where each distinct text comes first, ascending
  array<std::uint32_t, Place> numbers;  ///< of each row's text
  std::uint64_t seed = 0;               ///< of the hashes, under which different texts have different keys
};

/// The same for texts anywhere in memory of the place, also on a GPU. Synchronises. Throws as the function
/// above, and device_error.
template <class Place>
numbered_views<Place> number_texts(const Place& place, std::span<const std::string_view> texts);

/// Keys that are equal where texts are.
struct text_keys {
  /// What keys consist of: the text itself and its size, or a hash.
  enum class form : std::uint8_t { bytes7, bytes15, hash64, hash128 };

  form made_of = form::bytes7;
  std::uint64_t seed = 0;
  std::variant<array<std::uint64_t, host>, array<packed_key<2>, host>> keys;
  numbered_texts numbered;  ///< of hashes, which were compared; otherwise empty

  /// Whether two texts may have equal keys if one of them was not among the texts that the keys were made
  /// from.
  static constexpr bool hashes(form of) { return of > form::bytes15; }
};

/// The keys of texts, in the shortest form that suits them. Throws as number_texts does.
inline text_keys keys_of_texts(const host& cpu, const text_column& texts);
/// The keys of other texts, in the same form: queries, which are compared where keys are hashes.
inline text_keys keys_of_texts(const host& cpu, const text_column& texts, text_keys::form made_of,
                               std::uint64_t seed);

}  // namespace roost

#include "roost/columns/detail/text_keys.hpp"
