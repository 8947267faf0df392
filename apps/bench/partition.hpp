#pragma once

#include "apps/measure/run.hpp"
#if defined(__CUDACC__)
#include "partition_by_hand.cuh"
#include "roost/kernels.hpp"
#endif

// The partition by itself: one pass that splits pairs into 256 regions with slack, compared with the same
// kernel written by hand for CUDA, to show that teams cost nothing; and the stable partition, to show the
// cost of keeping the order.

namespace roost::bench {

inline constexpr std::uint32_t partition_regions = 256;

/// 1 for an item that is not in its region, is not a pair of the input, was seen before or, in a stable
/// partition, is out of order. 0 for gaps between regions.
template <class Item, class Key>
struct wrong_item {
  const Item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  make_key<Key> key;
  std::size_t n;
  bool stable;
  std::uint32_t* seen;  // of each pair: zeros before
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint32_t r = kernels::last_at_or_before(0u, partition_regions, begins, i);
    if (i < begins[r] || i >= ends[r]) return 0;
    const auto pair = static_cast<std::size_t>(items[i].value / 2);
    if (pair >= n || items[i].value % 2 == 0 || kernels::fetch_add(seen[pair], 1u) != 0) return 1;
    return !same_key(items[i].key, key(pair)) ||
           detail::leading_bits{0, partition_regions}(items[i].key) != r ||
           (stable && i != begins[r] && items[i - 1].value >= items[i].value);
  }
};

struct region_size {
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  ROOST_FN std::uint64_t operator()(std::size_t r) const { return ends[r] - begins[r]; }
};

template <class Key, class Place, class Parts>
std::string check_partition(const Place& place, const Parts& parts, const make_key<Key>& key, std::size_t n,
                            bool stable) {
  array<std::uint32_t, Place> seen(place, n);
  place.fill(seen.data(), 0, seen.bytes());
  const std::uint64_t bad = place.sum(
      parts.extent(), wrong_item<typename Parts::item_type, Key>{parts.items(), parts.begins(), parts.ends(),
                                                                 key, n, stable, seen.data()});
  const std::uint64_t there = place.sum(partition_regions, region_size{parts.begins(), parts.ends()});
  return verdict(bad + off_by(there, n));
}

/// Measures one way to partition: split(keys, values) returns something with items(), extent(), begins() and
/// ends().
template <class Place, class Key, class Value, class Split>
void measure_split(const Place& place, const settings& options, std::size_t n, const std::string& name,
                   bool stable, const Split& split) {
  if (options.has_table) options.has_table(name);
  const bool asked = std::find(options.ops.begin(), options.ops.end(), "partition") != options.ops.end();
  if (!options.report || !asked || !options.wants(name)) return;
  array<Key, Place> keys(place, n);
  array<Value, Place> values(place, n);
  const make_key<Key> key(options.keys, n);
  place.for_each(n, fill_keys<Key>{keys.data(), key});
  place.for_each(n, fill_values<Value>{values.data()});
  std::optional<decltype(split(keys, values))> parts;
  row line;
  line.table = name;
  line.key_bits = static_cast<int>(sizeof(Key)) * 8;
  line.value_bits = static_cast<int>(sizeof(Value)) * 8;
  line.op = "partition";
  line.n = n;
  line.place = place_name(place);
  line.median_ms = median_of_builds(place, options.warm_ups, options.repetitions, parts,
                                    [&] { parts.emplace(split(keys, values)); });
  line.gops = static_cast<double>(n) / line.median_ms / 1e6;
  line.check = check_partition<Key>(place, *parts, key, n, stable);
  options.report(line);
}

template <class Place, class Key, class Value>
void measure_partition(const Place& place, const settings& options, std::size_t n) {
  using item = pair<Key, Value>;
  array<std::uint32_t, Place> overflowed(place, 1);
  place.fill(overflowed.data(), 0, overflowed.bytes());
  measure_split<Place, Key, Value>(
      place, options, n, "partition", false,
      [&](const array<Key, Place>& keys, const array<Value, Place>& values) {
        return detail::partitioner<Place, item>(place, partition_regions, {room::slack, overflowed.data()})
            .run(detail::zip_checked(keys, values, "partition"), detail::leading_bits{0, partition_regions});
      });
  measure_split<Place, Key, Value>(place, options, n, "partition_stable", true,
                                   [&](const array<Key, Place>& keys, const array<Value, Place>& values) {
                                     return roost::partition(place, keys, values,
                                                             {.regions = partition_regions, .stable = true});
                                   });
#if defined(__CUDACC__)
  if constexpr (sizeof(item) == 8) {
    measure_split<Place, Key, Value>(place, options, n, "partition_by_hand", false,
                                     [&](const array<Key, Place>& keys, const array<Value, Place>& values) {
                                       return partition_by_hand(place, keys.data(), values.data(), n);
                                     });
  }
#endif
}

}  // namespace roost::bench
