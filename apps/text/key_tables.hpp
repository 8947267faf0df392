#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/shared/brought_to.hpp"
#include "apps/shared/host_memory.hpp"
#include "apps/shared/text_column.hpp"
#include "roost/columns/texts.hpp"
#include "roost/frozen_multimap.hpp"
#include "roost/join.hpp"
#include "roost/two_way_index.hpp"

// How `roost join` and `roost unique` use tables; one source for both places, compiled separately.

namespace roost::tools {

/// 128 bits that represent a text.
struct text_key {
  std::uint64_t low, high;
  friend bool operator==(const text_key&, const text_key&) = default;
};

/// Rows that match. `right` is no_row if nothing was found.
struct matches {
  std::vector<std::uint32_t> left, right;
};

/// Takes matches as they are found, some at a time: all matches of a left row together, in order.
using use_matches = std::function<void(matches&)>;

/// Distinct keys with numbers, in the order of their first occurrence.
struct indexed_keys {
  std::vector<std::uint32_t> numbers;  // of each key
  std::vector<std::uint64_t> counts;   // how often the key of each number occurs
};

/// Keys of the right side of a join, in which any number of batches of the left side are looked up.
template <class Key>
class key_matcher {
 public:
  virtual ~key_matcher() = default;
  /// Each left row with each right row of the same key, with no_row if there is none and `outer` is set.
  /// Passes at most `most` pairs of rows at a time, or all pairs of one left row: the memory is that of the
  /// keys and of this many pairs.
  virtual void match(std::span<const Key> left, bool outer, std::size_t most,
                     const use_matches& use) const = 0;
  /// For each left row the first right row of the same key, or no_row.
  virtual std::vector<std::uint32_t> first(std::span<const Key> left) const = 0;
  /// How many left rows a batch should have: each reads the right keys again. 0: any number.
  virtual std::size_t rows_at_once() const { return 0; }
};

template <class Key>
using matcher_pointer = std::unique_ptr<key_matcher<Key>>;

/// Operations on keys in host memory, on some place.
class key_tables {
 public:
  virtual ~key_tables() = default;
  /// Keys with the row of each.
  virtual matcher_pointer<std::uint64_t> matcher(std::span<const std::uint64_t> keys,
                                                 std::span<const std::uint32_t> rows) const = 0;
  virtual matcher_pointer<text_key> matcher(std::span<const text_key> keys,
                                            std::span<const std::uint32_t> rows) const = 0;
  virtual indexed_keys number(std::span<const std::uint64_t> keys) const = 0;
  virtual indexed_keys number(std::span<const text_key> keys) const = 0;
  /// Numbers the texts themselves, exactly; nothing if the place numbers their keys.
  virtual std::optional<indexed_keys> number(const text_column& texts) const = 0;
};

/// How much memory tables may take on a device that holds some of the keys at a time; see
/// roost::out_of_core_limits.
struct table_limits {
  std::size_t device_bytes = 0;
  std::string spill_folder;
  std::size_t host_bytes = ~std::size_t{0};
};

using use_tables_with = std::function<void(const key_tables&)>;

/// Calls use(tables) with tables of the host, or of the current CUDA device.
void use_tables_on_host(int threads, const use_tables_with& use);
void use_tables_on_cuda(const use_tables_with& use);
/// The same with tables within limits, for keys in host memory. On the host, a part of its memory stands for
/// that of a device.
void use_limited_tables_on_host(int threads, const table_limits& limits, const use_tables_with& use);
void use_limited_tables_on_cuda(int threads, const table_limits& limits, const use_tables_with& use);
/// The free memory of the current CUDA device.
std::size_t cuda_bytes_free();

/// Tables for keys that fit in the memory of a device, and others for more keys than that.
class tables_by_size final : public key_tables {
 public:
  /// The tables must live as long as this. `bytes`: what `whole` may take.
  tables_by_size(const key_tables& whole, const key_tables& limited, std::size_t bytes)
      : whole_(whole), limited_(limited), most_(bytes / bytes_of_key) {}

  matcher_pointer<std::uint64_t> matcher(std::span<const std::uint64_t> keys,
                                         std::span<const std::uint32_t> rows) const override {
    return of(keys.size()).matcher(keys, rows);
  }
  matcher_pointer<text_key> matcher(std::span<const text_key> keys,
                                    std::span<const std::uint32_t> rows) const override {
    return of(keys.size()).matcher(keys, rows);
  }
  indexed_keys number(std::span<const std::uint64_t> keys) const override {
    return of(keys.size()).number(keys);
  }
  indexed_keys number(std::span<const text_key> keys) const override { return of(keys.size()).number(keys); }
  std::optional<indexed_keys> number(const text_column& texts) const override {
    return of(texts.size()).number(texts);
  }

 private:
  /// What the tables of a device take at most for a key of 128 bits and its row while they are built.
  static constexpr std::size_t bytes_of_key = 160;

  const key_tables& of(std::size_t keys) const { return keys <= most_ ? whole_ : limited_; }

  const key_tables& whole_;
  const key_tables& limited_;
  std::size_t most_;  // keys
};

/// Calls use(tables) with tables of `host` or `cuda`. Limited ones, if there are limits; on `cuda` also for
/// more keys than fit.
inline void use_tables(const std::string& place, int threads, table_limits limits,
                       const use_tables_with& use) {
  const bool cuda = place == "cuda";
  if (limits.device_bytes != 0)
    return cuda ? use_limited_tables_on_cuda(threads, limits, use)
                : use_limited_tables_on_host(threads, limits, use);
  if (!cuda) return use_tables_on_host(threads, use);
  use_tables_on_cuda([&](const key_tables& whole) {
    limits.device_bytes = cuda_bytes_free() / 4 * 3;
    use_limited_tables_on_cuda(threads, limits, [&](const key_tables& limited) {
      use(tables_by_size(whole, limited, limits.device_bytes));
    });
  });
}

template <class Key, class Place>
class matcher_of final : public key_matcher<Key> {
 public:
  matcher_of(const Place& place, std::span<const Key> keys, std::span<const std::uint32_t> rows)
      : place_(place), rows_(place, brought_to(place, keys), brought_to(place, rows)) {}

  void match(std::span<const Key> left, bool outer, std::size_t most, const use_matches& use) const override {
    for (std::size_t first = 0, n; first < left.size(); first += n) {
      n = std::min(most, left.size() - first);
      const auto some = brought_to(place_, left.subspan(first, n));
      match_some(std::span<const Key>(some.data(), n), first, outer, most, use);
    }
  }
  std::vector<std::uint32_t> first(std::span<const Key> left) const override {
    array<std::uint32_t, Place> found(place_, left.size());
    rows_.find_first(place_, brought_to(place_, left), found, no_row<std::uint32_t>);
    return copy_to_host(place_, found);
  }

 private:
  /// The matches of the left rows from `first` on, which have these keys; splits them into halves if there
  /// are too many.
  void match_some(std::span<const Key> keys, std::size_t first, bool outer, std::size_t most,
                  const use_matches& use) const {
    {
      const auto found =
          outer ? rows_.match_outer(place_, keys, no_row<std::uint32_t>) : rows_.match(place_, keys);
      if (found.size() <= most || keys.size() == 1) {
        array<std::uint32_t, Place> left(place_, found.size()), right(place_, found.size());
        found.retrieve_pairs(place_, left, right);
        matches some{copy_to_host(place_, left), copy_to_host(place_, right)};
        for (auto& row : some.left) row += static_cast<std::uint32_t>(first);
        return use(some);
      }
    }
    const std::size_t half = keys.size() / 2;
    match_some(keys.first(half), first, outer, most, use);
    match_some(keys.subspan(half), first + half, outer, most, use);
  }

  Place place_;
  frozen_multimap<Key, std::uint32_t, Place> rows_;
};

template <class Place>
class tables_of final : public key_tables {
 public:
  explicit tables_of(const Place& place) : place_(place) {}

  matcher_pointer<std::uint64_t> matcher(std::span<const std::uint64_t> keys,
                                         std::span<const std::uint32_t> rows) const override {
    return std::make_unique<matcher_of<std::uint64_t, Place>>(place_, keys, rows);
  }
  matcher_pointer<text_key> matcher(std::span<const text_key> keys,
                                    std::span<const std::uint32_t> rows) const override {
    return std::make_unique<matcher_of<text_key, Place>>(place_, keys, rows);
  }
  indexed_keys number(std::span<const std::uint64_t> keys) const override { return index_keys(keys); }
  indexed_keys number(std::span<const text_key> keys) const override { return index_keys(keys); }
  std::optional<indexed_keys> number(const text_column& texts) const override {
    if constexpr (std::is_same_v<Place, host>) {
      roost::text_column all;
      all.add(texts.size(), listed_texts{texts.data(), texts.step()});
      const auto found = number_texts(place_, all);
      indexed_keys result{{found.numbers.begin(), found.numbers.end()},
                          std::vector<std::uint64_t>(found.first.size())};
      for (const auto number : result.numbers) ++result.counts[number];
      return result;
    }
    return std::nullopt;
  }

 private:
  template <class Key>
  indexed_keys index_keys(std::span<const Key> keys) const {
    const auto all = unique_all(place_, brought_to(place_, keys), {.inverse = true, .counts = true});
    return {copy_to_host(place_, all.inverse), copy_to_host(place_, all.counts)};
  }

  Place place_;
};

}  // namespace roost::tools
