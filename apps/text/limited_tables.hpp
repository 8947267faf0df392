#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "key_tables.hpp"
#include "roost/out_of_core/out_of_core.hpp"

// How `roost join` and `roost unique` use a device that holds some of the keys at a time. All keys have 128
// bits, since a compiler takes a minute or two for each type; one source for both devices.

namespace roost::tools {

inline std::span<const text_key> as_text_keys(std::span<const text_key> keys) { return keys; }
inline big_vector<text_key> as_text_keys(std::span<const std::uint64_t> keys) {
  big_vector<text_key> wide(keys.size());
  std::ranges::transform(keys, wide.begin(), [](std::uint64_t key) { return text_key{key, 0}; });
  return wide;
}

/// The rows of each key are listed on the host: what a call returns is as long as its batch, however many
/// pairs of rows there are.
template <class Key, class Device>
class limited_matcher final : public key_matcher<Key> {
 public:
  limited_matcher(const out_of_core<Device>& place, std::span<const Key> keys,
                  std::span<const std::uint32_t> rows)
      : place_(place), rows_(rows.size()) {
    auto all =
        unique_all(place_, std::span<const text_key>(as_text_keys(keys)), {.inverse = true, .counts = true});
    keys_ = std::move(all.keys);
    ends_.resize(all.counts.size());
    for (std::size_t k = 1; k < ends_.size(); ++k) ends_[k] = ends_[k - 1] + all.counts[k - 1];
    for (std::size_t i = 0; i < rows.size(); ++i) rows_[ends_[all.inverse[i]]++] = rows[i];
  }

  void match(std::span<const Key> left, bool outer, std::size_t most, const use_matches& use) const override {
    const auto found = numbers_of(left);
    matches some;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto rows = rows_of(found[i]);
      if (!some.left.empty() && some.left.size() + rows.size() > most) {
        use(some);
        some = {};
      }
      some.right.insert(some.right.end(), rows.begin(), rows.end());
      if (rows.empty() && outer) some.right.push_back(no_row<std::uint32_t>);
      some.left.resize(some.right.size(), static_cast<std::uint32_t>(i));
    }
    use(some);
  }
  std::vector<std::uint32_t> first(std::span<const Key> left) const override {
    const auto found = numbers_of(left);
    std::vector<std::uint32_t> result(left.size(), no_row<std::uint32_t>);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (const auto rows = rows_of(found[i]); !rows.empty()) result[i] = rows[0];
    }
    return result;
  }
  std::size_t rows_at_once() const override { return rows_.size(); }

 private:
  /// The number of each left key among the different ones, or no_row.
  array<std::uint32_t, host> numbers_of(std::span<const Key> left) const {
    return left_join(place_, std::span<const text_key>(as_text_keys(left)), keys_).right;
  }
  std::span<const std::uint32_t> rows_of(std::uint32_t number) const {
    if (number == no_row<std::uint32_t>) return {};
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span<const std::uint32_t>(rows_).subspan(begin, ends_[number] - begin);
  }

  out_of_core<Device> place_;
  array<text_key, host> keys_;      // different ones
  big_vector<std::uint64_t> ends_;  // of the rows of each
  big_vector<std::uint32_t> rows_;
};

template <class Device>
class limited_tables final : public key_tables {
 public:
  limited_tables(int threads, const Device& device, const table_limits& limits)
      : place_(host(threads), device, limits_of(device, limits)) {}

  matcher_pointer<std::uint64_t> matcher(std::span<const std::uint64_t> keys,
                                         std::span<const std::uint32_t> rows) const override {
    return std::make_unique<limited_matcher<std::uint64_t, Device>>(place_, keys, rows);
  }
  matcher_pointer<text_key> matcher(std::span<const text_key> keys,
                                    std::span<const std::uint32_t> rows) const override {
    return std::make_unique<limited_matcher<text_key, Device>>(place_, keys, rows);
  }
  indexed_keys number(std::span<const std::uint64_t> keys) const override {
    return number(std::span<const text_key>(as_text_keys(keys)));
  }
  indexed_keys number(std::span<const text_key> keys) const override {
    const auto all = unique_all(place_, keys, {.inverse = true, .counts = true});
    return {copy_to_host(place_.cpu(), all.inverse), copy_to_host(place_.cpu(), all.counts)};
  }
  std::optional<indexed_keys> number(const text_column&) const override { return std::nullopt; }

 private:
  static out_of_core_limits limits_of(const Device& device, const table_limits& limits) {
    const std::size_t least = out_of_core<Device>::device_bytes_least(device);
    if (limits.device_bytes < least)
      throw invalid_argument("--limit: " + std::to_string(limits.device_bytes) + " bytes; give at least " +
                             std::to_string(least));
    return {
        .device_bytes = limits.device_bytes,
        .pinned_bytes = std::clamp(limits.device_bytes / 16, std::size_t{64} << 10, std::size_t{512} << 20),
        .spill_folder = limits.spill_folder,
        .host_bytes = limits.host_bytes};
  }

  out_of_core<Device> place_;
};

}  // namespace roost::tools
