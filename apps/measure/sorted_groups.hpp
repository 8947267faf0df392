#pragma once

#include <oneapi/tbb/parallel_sort.h>

#include <string>
#include <vector>

#include "roost/frozen_multimap.hpp"
#include "roost/kernels.hpp"
#include "roost/sorted_map.hpp"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#endif

// Groups by sorting, the baseline for tables of groups.

namespace roost::bench {

/// Pairs sorted by key: a multimap without hashing. The values of a key keep their order.
template <class Place, class Key, class Value>
class sorted_groups;

template <class Key, class Value>
class sorted_groups<host, Key, Value> {
 public:
  static std::string name() { return "sorted_groups"; }
  sorted_groups(const host& place, std::span<const Key> keys, std::span<const Value> values)
      : keys_(place, 0), offsets_(place, 0), values_(place, values.size()) {
    array<pair<Key, Value>, host> pairs(place, keys.size());
    place.for_each(keys.size(), [&](std::size_t i) { pairs.data()[i] = {keys[i], values[i]}; });
    // Values ascend in this workload, so that comparing them makes the sort stable.
    place.execute([&] {
      tbb::parallel_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
        return a.key != b.key ? a.key < b.key : a.value < b.value;
      });
    });
    std::vector<Key> different;
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i == 0 || pairs.data()[i].key != pairs.data()[i - 1].key) {
        different.push_back(pairs.data()[i].key);
        offsets.push_back(i);
      }
    }
    offsets.push_back(pairs.size());
    place.for_each(pairs.size(), [&](std::size_t i) { values_.data()[i] = pairs.data()[i].value; });
    keys_ = copy_to(place, different);
    offsets_ = copy_to(place, offsets);
  }
  std::size_t size() const { return keys_.size(); }
  const Key* keys() const { return keys_.data(); }
  const std::uint64_t* offsets() const { return offsets_.data(); }
  const Value* values() const { return values_.data(); }

 private:
  array<Key, host> keys_;
  array<std::uint64_t, host> offsets_;
  array<Value, host> values_;
};

#if defined(__CUDACC__)
/// CUB: radix sort, run-length encoding, and a scan of the lengths.
template <class Key, class Value>
class sorted_groups<cuda, Key, Value> {
 public:
  static std::string name() { return "sorted_groups"; }
  sorted_groups(const cuda& place, std::span<const Key> keys, std::span<const Value> values)
      : keys_(place, keys.size()),
        sorted_(place, keys.size()),
        offsets_(place, keys.size() + 1),
        values_(place, keys.size()),
        count_(place, 1) {
    const std::size_t n = keys.size();
    const auto with_scratch = [&](const auto& call) {
      std::size_t bytes = 0;
      kernels::check(call(nullptr, bytes), "cub");
      const detail::scratch_block scratch(place, bytes);
      kernels::check(call(scratch.get(), bytes), "cub");
    };
    place.fill(offsets_.data(), 0, offsets_.bytes());
    with_scratch([&](void* memory, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, keys.data(), sorted_.data(), values.data(),
                                             values_.data(), n, 0, sizeof(Key) * 8, place.stream());
    });
    with_scratch([&](void* memory, std::size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(memory, bytes, sorted_.data(), keys_.data(), offsets_.data(),
                                                count_.data(), n, place.stream());
    });
    place.copy_to_host(&size_, count_.data(), sizeof(size_));
    place.exclusive_scan(offsets_.data(), offsets_.data(), size_ + 1);
  }
  std::size_t size() const { return size_; }
  const Key* keys() const { return keys_.data(); }
  const std::uint64_t* offsets() const { return offsets_.data(); }
  const Value* values() const { return values_.data(); }

 private:
  array<Key, cuda> keys_, sorted_;
  array<std::uint64_t, cuda> offsets_;
  array<Value, cuda> values_;
  array<std::uint64_t, cuda> count_;
  std::uint64_t size_ = 0;
};
#endif

/// A sorted list of keys, and where the values of each begin.
template <class Place>
struct sorted_runs {
  using list = typename sorted_map<std::uint32_t, std::uint64_t, Place>::ref_type;
  list offsets;  // and the end
  const std::uint32_t* values;
  ROOST_FN value_run<std::uint32_t> find(std::uint32_t key) const {
    const std::size_t i = offsets.lower_bound(key);
    if (i == offsets.size() || offsets.key_at(i) != key) return {};
    return {values + offsets.value_at(i), offsets.value_at(i + 1) - offsets.value_at(i)};
  }
};

}  // namespace roost::bench
