#pragma once

#include "roost/detail/groups/group_regions.hpp"
#include "roost/detail/groups/numbering.hpp"

// Grouping: items with the same key come together. They are partitioned by region, in order; a team numbers
// the different keys of a region, and puts its items in the order of their keys' numbers. Keys that very many
// items have get regions of their own, which need no more than the partition. So groups come out in the order
// of their keys' hashes.

namespace roost::detail {

/// Different keys, in the order of their hashes' leading bits and then of their first items.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<std::uint64_t, Place> offsets;                   // where each one's values begin, and the end
  array<Value, Place> values;                            // of all items
  array<pair<Key, std::uint32_t>, Place> numbered_keys;  // each with its number, if asked for
  leading_bits region_of{};
  array<std::uint64_t, Place> begins;  // of each region's groups, and the end
  std::size_t scratch_bytes = 0;

  std::size_t size() const { return keys.size(); }
};

/// Groups items, with one seed.
template <class Key, class Value, class Place>
class grouper {
  using kernel = group_regions<Place, Key, Value>;
  using result_type = groups<Key, Value, Place>;

 public:
  /// `tighter`: a region has so many times fewer items than it could.
  grouper(const Place& place, std::size_t n, std::uint64_t seed, double tighter)
      : place_(place), n_(n), frequent_({seed, regions_for(n, tighter)}), failed_(place, 1) {}

  /// False if the keys of some region are too many.
  template <class Source>
  bool run(const Source& source) {
    frequent_.sample(place_, source, static_cast<double>(group_tuning<Place>::tiles_most) * kernel::tile);
    partitioner<Place, pair<Key, Value>, partition_kind{.stable = true}> partitioner(
        place_, frequent_.regions(), room::exact, nullptr);
    parts_.emplace(partitioner.run(source, frequent_.region_of));
    keys_ = array<Key, Place>(place_, n_);
    values_ = array<Value, Place>(place_, n_);
    counts_ = array<std::uint32_t, Place>(place_, n_);
    sizes_ = array<std::uint64_t, Place>(place_, std::size_t{frequent_.regions()} + 1);
    place_.fill(failed_.data(), 0, failed_.bytes());
    place_.fill(sizes_.data(), 0, sizes_.bytes());
    const kernel group{parts_->items(), parts_->begins(), parts_->ends(), frequent_.region_of, output()};
    place_.launch(frequent_.regions(), scratch_bytes_of(group), group);
    for_each_frequent_item(place_, *parts_, frequent_.region_of, n_,
                           copy_value<Key, Value>{parts_->items(), values_.data()});
    place_.exclusive_scan(sizes_.data(), sizes_.data(), sizes_.size());
    std::uint32_t failed = 0;
    place_.copy_to_host(&failed, failed_.data(), sizeof(failed));
    return failed == 0;
  }

  /// Brings the groups of all regions together.
  result_type pack(bool numbered) {
    std::uint64_t size = 0;
    place_.copy_to_host(&size, sizes_.data() + frequent_.regions(), sizeof(size));
    result_type result;
    result.keys = array<Key, Place>(place_, size);
    result.offsets = array<std::uint64_t, Place>(place_, size + 1);
    result.numbered_keys = array<pair<Key, std::uint32_t>, Place>(place_, numbered ? size : 0);
    const pack_groups<Place, Key, Value> pack{output(), parts_->begins(), result.keys.data(),
                                              result.offsets.data(), result.numbered_keys.data()};
    place_.launch(frequent_.regions(), 0, pack);
    const std::uint64_t end = n_;
    place_.copy_from_host(result.offsets.data() + size, &end, sizeof(end));
    result.region_of = frequent_.region_of.spread;
    result.begins = array<std::uint64_t, Place>(place_, std::size_t{result.region_of.regions} + 1);
    write_numbers(place_, result.begins.size(), begin_of_region<Key>{frequent_.region_of, sizes_.data()},
                  result.begins.data());
    place_.synchronize();
    result.scratch_bytes = parts_->scratch_bytes() + keys_.bytes() + values_.bytes() + counts_.bytes() +
                           sizes_.bytes() + result.numbered_keys.bytes();
    result.values = std::move(values_);
    return result;
  }

 private:
  /// A region of different keys fills its tile nearly: seven standard deviations of a random split are left.
  static std::uint32_t regions_for(std::size_t n, double tighter) {
    const double mean = kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile));
    return group_regions_of(static_cast<double>(n) / mean * tighter);
  }

  group_output<Key, Value> output() {
    return {keys_.data(), values_.data(), counts_.data(), sizes_.data(), failed_.data()};
  }

  const Place& place_;
  std::size_t n_;
  frequent_keys<Key, Place> frequent_;
  std::optional<partitioned<pair<Key, Value>, Place>> parts_;
  array<Key, Place> keys_;  // see group_output
  array<Value, Place> values_;
  array<std::uint32_t, Place> counts_, failed_;
  array<std::uint64_t, Place> sizes_;
};

/// Groups items by key; `numbered`: tells the keys with their numbers, too. Synchronises. Throws
/// out_of_memory, build_error.
template <class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, bool numbered, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  if (source.size() == 0) {
    groups<Key, Value, Place> none;
    none.offsets = array<std::uint64_t, Place>(place, 1);
    none.region_of = {seed, 2};
    none.begins = array<std::uint64_t, Place>(place, 3);
    place.fill(none.offsets.data(), 0, none.offsets.bytes());
    place.fill(none.begins.data(), 0, none.begins.bytes());
    return none;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    grouper<Key, Value, Place> grouper(place, source.size(), seed_of_attempt(seed, attempt),
                                       1 + attempt / 4.0);
    if (grouper.run(source)) return grouper.pack(numbered);
  }
  detail::raise<build_error>(
      {where,
       ": the keys of some region are more than a team can number, with 4 seeds; keys that were "
       "chosen to collide?"});
}

/// A map of keys that were grouped or numbered, as they lie.
template <class Map, class Place, class Keys, class Key>
Map map_of_keys(const Place& place, const Keys& all, const array<pair<Key, std::uint32_t>, Place>& pairs,
                double load_factor) {
  const items_in_order<pair<Key, std::uint32_t>> source{pairs.data(), pairs.size(), all.region_of,
                                                        all.begins.data()};
  return frozen_source::build<Map>(place, source, {.load_factor = load_factor, .seed = all.region_of.seed});
}

}  // namespace roost::detail
