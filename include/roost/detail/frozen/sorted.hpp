#pragma once

// Bodies of roost/sorted_map.hpp.

#include <oneapi/tbb/parallel_sort.h>

#include "roost/sorted_map.hpp"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#endif

namespace roost {
namespace detail {

template <class Key>
struct not_ascending {
  const Key* keys;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return keys[i] < keys[i + 1] ? 0 : 1; }
};

/// Sorts by key and keeps the first pair of each key; returns how many pairs are left.
template <class Source, class Key, class Value>
std::size_t sort_unique(const host& place, const Source& source, Key* keys, Value* values) {
  struct numbered {
    Key key;
    std::size_t position;
  };
  const std::size_t n = source.size();
  array<numbered, host> order(place, n);
  place.for_each(n, [&](std::size_t i) { order[i] = {source.keys[i], i}; });
  const auto less = [](const numbered& a, const numbered& b) {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  };
  if (ROOST_TSAN || place.threads() == 1) {  // ThreadSanitizer does not see how oneTBB orders its tasks
    std::sort(order.begin(), order.end(), less);
  } else {
    place.execute([&] { tbb::parallel_sort(order.begin(), order.end(), less); });
  }
  const auto last = std::unique(order.begin(), order.end(),
                                [](const numbered& a, const numbered& b) { return a.key == b.key; });
  const auto size = static_cast<std::size_t>(last - order.begin());
  place.for_each(size, [&](std::size_t i) {
    keys[i] = order[i].key;
    values[i] = source.values[order[i].position];
  });
  return size;
}

#if defined(__CUDACC__)
template <class Source, class Key, class Value>
std::size_t sort_unique(const cuda& place, const Source& source, Key* keys, Value* values) {
  const std::size_t n = source.size();
  const device_guard guard(place.device());
  array<Key, cuda> keys_between(place, n);
  array<Value, cuda> values_between(place, n);
  const Key* keys_in = keys_between.data();
  const Value* values_in = values_between.data();
  if constexpr (requires {
                  keys_in = source.keys.first;
                  values_in = source.values.first;
                }) {  // plain arrays are sorted directly from the input
    keys_in = source.keys.first;
    values_in = source.values.first;
  } else {
    write_numbers(place, n, element<decltype(source.keys)>{source.keys}, keys_between.data());
    write_numbers(place, n, element<decltype(source.values)>{source.values}, values_between.data());
  }
  const auto sort = [&](void* scratch, std::size_t& bytes, const Key* from_keys, Key* to_keys,
                        const Value* from_values, Value* to_values) {
    check(cub::DeviceRadixSort::SortPairs(scratch, bytes, for_cub(from_keys), for_cub(to_keys),
                                          for_cub(from_values), for_cub(to_values), n, 0, sizeof(Key) * 8,
                                          place.stream()),
          "cub::DeviceRadixSort::SortPairs");
  };
  {
    // CUB must not write to the input, so a computed input is first written to a second buffer of the target.
    const bool copied = keys_in == keys_between.data();
    array<Key, cuda> keys_sorted(place, copied ? n : 0);
    array<Value, cuda> values_sorted(place, copied ? n : 0);
    Key* const to_keys = copied ? keys_sorted.data() : keys;
    Value* const to_values = copied ? values_sorted.data() : values;
    std::size_t bytes = 0;
    sort(nullptr, bytes, keys_in, to_keys, values_in, to_values);
    const scratch_block scratch(place, bytes);
    sort(scratch.get(), bytes, keys_in, to_keys, values_in, to_values);
    if (copied) {
      place.copy(keys, to_keys, n * sizeof(Key));
      place.copy(values, to_values, n * sizeof(Value));
    }
  }
  const std::uint64_t twice = n > 1 ? place.sum(n - 1, not_ascending<Key>{keys}) : 0;
  if (twice == 0) return n;

  array<std::uint64_t, cuda> size(place, 1);
  const auto keep_first = [&](void* scratch, std::size_t& bytes) {
    check(cub::DeviceSelect::UniqueByKey(scratch, bytes, for_cub(keys), for_cub(values),
                                         for_cub(keys_between.data()), for_cub(values_between.data()),
                                         size.data(), n, place.stream()),
          "cub::DeviceSelect::UniqueByKey");
  };
  std::size_t bytes = 0;
  keep_first(nullptr, bytes);
  const scratch_block scratch(place, bytes);
  keep_first(scratch.get(), bytes);
  place.copy(keys, keys_between.data(), (n - twice) * sizeof(Key));
  place.copy(values, values_between.data(), (n - twice) * sizeof(Value));
  return n - twice;
}
#endif

}  // namespace detail

template <class Key, class Value, class Place>
template <class Keys, class Values>
sorted_map<Key, Value, Place>::sorted_map(const Place& place, const Keys& keys, const Values& values) {
  const auto source = detail::zip_as<Key, Value>(keys, values, "roost::sorted_map");
  if (source.size() == 0) return;
  keys_ = array<Key, Place>(place, source.size());
  values_ = array<Value, Place>(place, source.size());
  life_ = detail::ref_life(place);
  size_ = detail::sort_unique(place, source, keys_.data(), values_.data());
}

template <class Key, class Value, class Place>
bool sorted_map<Key, Value, Place>::valid(const Place& place) const {
  return size() < 2 || place.sum(size() - 1, detail::not_ascending<Key>{keys_.data()}) == 0;
}

}  // namespace roost
