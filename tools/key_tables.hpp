#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

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

/// Different keys with numbers, in the order in which they come first.
struct numbered_keys {
  std::vector<std::uint32_t> numbers;  // of each key
  std::vector<std::uint64_t> counts;   // how often the key of each number comes
};

/// What is done with keys in host memory, on some place.
class key_tables {
 public:
  virtual ~key_tables() = default;
  virtual matches join(join_kind kind, std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) const = 0;
  virtual matches join(join_kind kind, std::span<const text_key> left, std::span<const text_key> right) const = 0;
  virtual numbered_keys number(std::span<const std::uint64_t> keys) const = 0;
  virtual numbered_keys number(std::span<const text_key> keys) const = 0;
};

/// Calls use(tables) with tables of the host, or of the current CUDA device.
void use_tables_on_host(int threads, const std::function<void(const key_tables&)>& use);
void use_tables_on_cuda(const std::function<void(const key_tables&)>& use);

/// The same of `host` or `cuda`.
inline void use_tables(const std::string& place, int threads, const std::function<void(const key_tables&)>& use) {
  place == "cuda" ? use_tables_on_cuda(use) : use_tables_on_host(threads, use);
}

template <class Place>
class tables_of final : public key_tables {
 public:
  explicit tables_of(const Place& place) : place_(place) {}

  matches join(join_kind kind, std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) const override {
    return join_keys(kind, left, right);
  }
  matches join(join_kind kind, std::span<const text_key> left, std::span<const text_key> right) const override {
    return join_keys(kind, left, right);
  }
  numbered_keys number(std::span<const std::uint64_t> keys) const override { return number_keys(keys); }
  numbered_keys number(std::span<const text_key> keys) const override { return number_keys(keys); }

 private:
  template <class Key>
  matches join_keys(join_kind kind, std::span<const Key> left, std::span<const Key> right) const {
    const auto a = copy_to(place_, left), b = copy_to(place_, right);
    if (kind == join_kind::semi) return {copy_to_host(place_, semi_join<std::uint32_t>(place_, a, b)), {}};
    if (kind == join_kind::anti) return {copy_to_host(place_, anti_join<std::uint32_t>(place_, a, b)), {}};
    const auto rows = kind == join_kind::left ? left_join<std::uint32_t>(place_, a, b) : inner_join<std::uint32_t>(place_, a, b);
    return {copy_to_host(place_, rows.left), copy_to_host(place_, rows.right)};
  }

  template <class Key>
  numbered_keys number_keys(std::span<const Key> keys) const {
    const auto there = copy_to(place_, keys);
    const two_way_index<Key, Place> index(place_, there);
    return {copy_to_host(place_, index.indices()), copy_to_host(place_, index.counts())};
  }

  Place place_;
};

}  // namespace roost::tools
