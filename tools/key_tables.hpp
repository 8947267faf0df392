#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "roost/frozen_multimap.hpp"
#include "roost/join.hpp"
#include "roost/two_way_index.hpp"

// How `roost join` and `roost unique` use tables; one source for both places, compiled apart.

namespace roost::tools {

/// 128 bits that stand for a text.
struct text_key {
  std::uint64_t low, high;
  friend bool operator==(const text_key&, const text_key&) = default;
};

enum class join_kind { inner, left, semi, anti };

/// Rows that belong together. `right` is no_row where a left join found nothing, and empty for semi and anti.
struct matches {
  std::vector<std::uint32_t> left, right;
};

/// Takes matches as they are found, some at a time: whole left rows, in order.
using use_matches = std::function<void(matches&)>;

/// Different keys with numbers, in the order in which they come first.
struct numbered_keys {
  std::vector<std::uint32_t> numbers;  // of each key
  std::vector<std::uint64_t> counts;   // how often the key of each number comes
};

/// What is done with keys in host memory, on some place.
class key_tables {
 public:
  virtual ~key_tables() = default;
  /// Pairs of rows come at most `most` at a time, or those of one left row: the memory that a join takes is
  /// that of its input and of so many pairs.
  virtual void join(join_kind kind, std::span<const std::uint64_t> left, std::span<const std::uint64_t> right,
                    std::size_t most, const use_matches& use) const = 0;
  virtual void join(join_kind kind, std::span<const text_key> left, std::span<const text_key> right,
                    std::size_t most, const use_matches& use) const = 0;
  virtual numbered_keys number(std::span<const std::uint64_t> keys) const = 0;
  virtual numbered_keys number(std::span<const text_key> keys) const = 0;
};

/// Calls use(tables) with tables of the host, or of the current CUDA device.
void use_tables_on_host(int threads, const std::function<void(const key_tables&)>& use);
void use_tables_on_cuda(const std::function<void(const key_tables&)>& use);

/// The same of `host` or `cuda`.
inline void use_tables(const std::string& place, int threads,
                       const std::function<void(const key_tables&)>& use) {
  place == "cuda" ? use_tables_on_cuda(use) : use_tables_on_host(threads, use);
}

struct row_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};

template <class Place>
class tables_of final : public key_tables {
 public:
  explicit tables_of(const Place& place) : place_(place) {}

  void join(join_kind kind, std::span<const std::uint64_t> left, std::span<const std::uint64_t> right,
            std::size_t most, const use_matches& use) const override {
    join_keys(kind, left, right, most, use);
  }
  void join(join_kind kind, std::span<const text_key> left, std::span<const text_key> right, std::size_t most,
            const use_matches& use) const override {
    join_keys(kind, left, right, most, use);
  }
  numbered_keys number(std::span<const std::uint64_t> keys) const override { return number_keys(keys); }
  numbered_keys number(std::span<const text_key> keys) const override { return number_keys(keys); }

 private:
  template <class Key>
  using rows_of_key = frozen_multimap<Key, std::uint32_t, Place>;

  template <class Key>
  void join_keys(join_kind kind, std::span<const Key> left, std::span<const Key> right, std::size_t most,
                 const use_matches& use) const {
    if (kind == join_kind::semi || kind == join_kind::anti) {
      const auto a = copy_to(place_, left), b = copy_to(place_, right);
      matches found{copy_to_host(place_, kind == join_kind::semi ? semi_join<std::uint32_t>(place_, a, b)
                                                                 : anti_join<std::uint32_t>(place_, a, b)),
                    {}};
      return use(found);
    }
    const rows_of_key<Key> rows(place_, copy_to(place_, right), computed(right.size(), row_number()));
    for (std::size_t first = 0, n; first < left.size(); first += n) {
      n = std::min(most, left.size() - first);
      const auto some = copy_to(place_, left.subspan(first, n));
      join_some(kind, rows, some.span(), first, most, use);
    }
  }

  /// The matches of the left rows from `first` on, which have these keys: of the two halves of them where
  /// there are too many.
  template <class Key>
  void join_some(join_kind kind, const rows_of_key<Key>& rows, std::span<const Key> keys, std::size_t first,
                 std::size_t most, const use_matches& use) const {
    {
      const auto found = kind == join_kind::left ? rows.match_outer(place_, keys, no_row<std::uint32_t>)
                                                 : rows.match(place_, keys);
      if (found.size() <= most || keys.size() == 1) {
        array<std::uint32_t, Place> left(place_, found.size()), right(place_, found.size());
        found.retrieve_pairs(place_, left, right);
        matches some{copy_to_host(place_, left), copy_to_host(place_, right)};
        for (auto& row : some.left) row += static_cast<std::uint32_t>(first);
        return use(some);
      }
    }
    const std::size_t half = keys.size() / 2;
    join_some(kind, rows, keys.first(half), first, most, use);
    join_some(kind, rows, keys.subspan(half), first + half, most, use);
  }

  template <class Key>
  numbered_keys number_keys(std::span<const Key> keys) const {
    const auto all = unique_all(place_, copy_to(place_, keys), {.inverse = true, .counts = true});
    return {copy_to_host(place_, all.inverse), copy_to_host(place_, all.counts)};
  }

  Place place_;
};

}  // namespace roost::tools
