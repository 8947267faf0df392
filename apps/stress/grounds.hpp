#pragma once

#include "roost/shards/gpus.hpp"
#include "roost/shards/shards.hpp"
#include "tested_table.hpp"

/// \file
/// Where a tested table is: on a place, or on shards of it. Both take columns of the host, and bring them
/// back.

namespace roost::stress {

/// One place.
template <class Place>
class on_place {
 public:
  static constexpr bool sharded = false;
  template <class T>
  using column = array<T, Place>;

  on_place(const Place& place, refusals& memory) : place_(place), memory_(&memory) {}

  /// The first argument of all calls.
  const Place& where() const { return place_; }
  refusals& memory() const { return *memory_; }
  void change(std::uint64_t) {}

  template <class T>
  column<T> bring(const std::vector<T>& all) const {
    return copy_to(place_, all);
  }
  /// As many elements as another column has.
  template <class T, class Column>
  column<T> like(const Column& other) const {
    column<T> result(place_, other.size());
    place_.fill(result.data(), 0x77, result.bytes());
    return result;
  }
  /// For all keys of a table; size_of(table, place): their number.
  template <class T, class Table, class Size>
  column<T> for_all_of(const Table& table, const Size& size_of) const {
    return {place_, size_of(table, place_)};
  }
  template <class T>
  auto back(const column<T>& all) const {
    return copy_to_host(place_, all);
  }

 private:
  Place place_;
  refusals* memory_;
};

/// Several shards, whose number can change.
template <class Shards>
class on_shards {
  using place = typename Shards::place_type;

 public:
  static constexpr bool sharded = true;
  template <class T>
  using column = std::vector<array<T, place>>;
  using maker = std::function<Shards(std::size_t)>;

  on_shards(const maker& make, std::uint64_t seed, refusals& memory)
      : make_(make), shards_(make(1 + seed % 4)), memory_(&memory) {}

  const Shards& where() const { return shards_; }
  refusals& memory() const { return *memory_; }
  void change(std::uint64_t seed) { shards_ = make_(1 + seed % 4); }

  /// Each shard gets more than the one before; the first may get nothing.
  template <class T>
  column<T> bring(const std::vector<T>& all) const {
    column<T> parts;
    const std::size_t n = shards_.size();
    const auto end_of = [&](std::size_t s) {
      return all.begin() + static_cast<std::ptrdiff_t>(all.size() * s * s / (n * n));
    };
    for (std::size_t s = 0; s < n; ++s)
      parts.push_back(copy_to(shards_[s], std::vector<T>(end_of(s), end_of(s + 1))));
    return parts;
  }
  template <class T, class Column>
  column<T> like(const Column& other) const {
    column<T> parts;
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      parts.emplace_back(shards_[s], other[s].size());
      shards_[s].fill(parts[s].data(), 0x77, parts[s].bytes());
    }
    return parts;
  }
  template <class T, class Table, class Size>
  column<T> for_all_of(const Table& table, const Size& size_of) const {
    column<T> parts;
    for (std::size_t s = 0; s < shards_.size(); ++s)
      parts.emplace_back(shards_[s], size_of(table.shard(s), shards_[s]));
    return parts;
  }
  template <class T>
  auto back(const column<T>& parts) const {
    auto all = copy_to_host(shards_[0], parts[0]);
    for (std::size_t s = 1; s < parts.size(); ++s) {
      const auto more = copy_to_host(shards_[s], parts[s]);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

 private:
  maker make_;
  Shards shards_;
  refusals* memory_;
};

}  // namespace roost::stress
