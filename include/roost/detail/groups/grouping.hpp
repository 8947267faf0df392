#pragma once

#include <bit>
#include <cmath>
#include <optional>

#include "roost/detail/groups/group_regions.hpp"
#include "roost/frozen_map.hpp"

// Grouping: items with the same key come together. They are partitioned by region, in order; a team numbers
// the different keys of a region, and puts its items in the order of their keys' numbers. Keys that very many
// items have get regions of their own, which need no more than the partition. So groups come out in the order
// of their keys' hashes.

namespace roost::detail {

/// The number of regions for items: a few more than are needed, so that it can be halved often. Then a table
/// of few different keys takes the groups of several regions as they lie.
inline std::uint32_t group_regions_of(double needed) {
  const auto least = static_cast<std::uint32_t>(larger(2.0, std::ceil(needed)));
  const std::uint32_t unit = std::bit_floor(larger(least / 64, 1u));
  return ceil_div(least, unit) * unit;
}

/// What groups are to tell besides their keys and counts.
struct group_kind {
  bool values_in_order = false;  // of all items, group after group; if not, the first value of each group
  bool numbered_keys = false;
  bool way_back = false;  // of_each_item
};

/// The way back from groups to items.
template <class Key, class Value, class Place>
struct items_of_groups {
  partitioned<pair<Key, Value>, Place> parts;
  frequent_keys<Key, Place> frequent;
  array<std::uint64_t, Place> groups_before;  // in regions before each
  array<std::uint16_t, Place> numbers;        // of each item's group, in its region
};

/// Different keys, in the order of their hashes' leading bits and then of their first items.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<std::uint64_t, Place>
      counts;                  // items of each; with values in order, where its values begin, and the end
  array<Value, Place> values;  // of all items in order, or the first of each group
  array<pair<Key, std::uint32_t>, Place> numbered_keys;  // each with its number, if asked for
  leading_bits region_of{};
  array<std::uint64_t, Place> begins;  // of each region's groups, and the end
  std::optional<items_of_groups<Key, Value, Place>> items;
  std::size_t scratch_bytes = 0;

  std::size_t size() const { return keys.size(); }
};

template <class Key>
struct begin_of_region {
  regions_and_frequent_keys<Key> region_of;
  const std::uint64_t* groups_before;
  ROOST_FN std::uint64_t operator()(std::size_t region) const {
    return groups_before[region_of.number_of(static_cast<std::uint32_t>(region))];
  }
};

/// Groups items, with one seed.
template <group_kind Kind, class Key, class Value, class Place>
class grouper {
  static constexpr bool ordered = Kind.values_in_order;
  static constexpr partition_kind partitioning{.stable = true, .way_back = Kind.way_back};
  using kernel = group_regions<Place, Key, Value, ordered>;
  using result_type = groups<Key, Value, Place>;

 public:
  /// `tighter`: a region has so many times fewer items than it could.
  grouper(const Place& place, std::size_t n, std::uint64_t seed, double tighter)
      : place_(place), n_(n), frequent_({seed, regions_for(n, tighter)}), failed_(place, 1) {}

  /// False if the keys of some region are too many.
  template <class Source>
  bool run(const Source& source) {
    frequent_.sample(place_, source, static_cast<double>(group_tuning<Place>::tiles_most) * kernel::tile);
    partitioner<Place, pair<Key, Value>, partitioning> partitioner(place_, frequent_.regions(), room::exact,
                                                                   nullptr);
    parts_.emplace(partitioner.run(source, frequent_.region_of));
    keys_ = array<Key, Place>(place_, n_);
    values_ = array<Value, Place>(place_, n_);
    counts_ = array<std::uint32_t, Place>(place_, n_);
    sizes_ = array<std::uint64_t, Place>(place_, std::size_t{frequent_.regions()} + 1);
    numbers_ = array<std::uint16_t, Place>(place_, Kind.way_back ? n_ : 0);
    place_.fill(failed_.data(), 0, failed_.bytes());
    place_.fill(sizes_.data(), 0, sizes_.bytes());
    const kernel group{parts_->items(), parts_->begins(), parts_->ends(), frequent_.region_of, output()};
    place_.launch(frequent_.regions(), scratch_bytes_of(group), group);
    if constexpr (ordered) {
      for_each_frequent_item(place_, *parts_, frequent_.region_of, n_,
                             copy_value<Key, Value>{parts_->items(), values_.data()});
    }
    place_.exclusive_scan(sizes_.data(), sizes_.data(), sizes_.size());
    std::uint32_t failed = 0;
    place_.copy_to_host(&failed, failed_.data(), sizeof(failed));
    return failed == 0;
  }

  /// Brings the groups of all regions together.
  result_type pack() {
    std::uint64_t size = 0;
    place_.copy_to_host(&size, sizes_.data() + frequent_.regions(), sizeof(size));
    result_type result;
    result.keys = array<Key, Place>(place_, size);
    result.counts = array<std::uint64_t, Place>(place_, size + (ordered ? 1 : 0));
    if constexpr (!ordered) result.values = array<Value, Place>(place_, size);
    result.numbered_keys = array<pair<Key, std::uint32_t>, Place>(place_, Kind.numbered_keys ? size : 0);
    const pack_groups<Place, Key, Value, ordered> pack{output(),
                                                       parts_->begins(),
                                                       result.keys.data(),
                                                       result.values.data(),
                                                       result.counts.data(),
                                                       result.numbered_keys.data()};
    place_.launch(frequent_.regions(), 0, pack);
    const std::uint64_t end = n_;
    if constexpr (ordered) place_.copy_from_host(result.counts.data() + size, &end, sizeof(end));
    result.region_of = frequent_.region_of.spread;
    result.begins = array<std::uint64_t, Place>(place_, std::size_t{result.region_of.regions} + 1);
    write_numbers(place_, result.begins.size(), begin_of_region<Key>{frequent_.region_of, sizes_.data()},
                  result.begins.data());
    place_.synchronize();
    result.scratch_bytes = parts_->scratch_bytes() + keys_.bytes() + values_.bytes() + counts_.bytes() +
                           sizes_.bytes() + numbers_.bytes() + result.numbered_keys.bytes();
    if constexpr (ordered) result.values = std::move(values_);
    if constexpr (Kind.way_back) {
      result.items.emplace(items_of_groups<Key, Value, Place>{std::move(*parts_), std::move(frequent_),
                                                              std::move(sizes_), std::move(numbers_)});
    }
    return result;
  }

 private:
  /// A region of different keys fills its tile nearly: seven standard deviations of a random split are left.
  static std::uint32_t regions_for(std::size_t n, double tighter) {
    const double mean = kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile));
    return group_regions_of(static_cast<double>(n) / mean * tighter);
  }

  group_output<Key, Value> output() {
    return {keys_.data(), values_.data(), counts_.data(), sizes_.data(), numbers_.data(), failed_.data()};
  }

  const Place& place_;
  std::size_t n_;
  frequent_keys<Key, Place> frequent_;
  std::optional<partitioned<pair<Key, Value>, Place>> parts_;
  array<Key, Place> keys_;  // see group_output
  array<Value, Place> values_;
  array<std::uint32_t, Place> counts_, failed_;
  array<std::uint64_t, Place> sizes_;
  array<std::uint16_t, Place> numbers_;
};

/// Groups items by key. Synchronises. Throws out_of_memory, build_error.
template <group_kind Kind, class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  if (source.size() == 0) {
    groups<Key, Value, Place> none;
    none.counts = array<std::uint64_t, Place>(place, 1);
    none.region_of = {seed, 2};
    none.begins = array<std::uint64_t, Place>(place, 3);
    place.fill(none.counts.data(), 0, none.counts.bytes());
    place.fill(none.begins.data(), 0, none.begins.bytes());
    return none;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    grouper<Kind, Key, Value, Place> grouper(place, source.size(), seed_of_attempt(seed, attempt),
                                             1 + attempt / 4.0);
    if (grouper.run(source)) return grouper.pack();
  }
  detail::raise<build_error>(
      {where,
       ": the keys of some region are more than a team can number, with 4 seeds; keys that were "
       "chosen to collide?"});
}

/// A map of pairs of the groups' keys, in the order of the groups: built as they lie.
template <class Map, class Place, class Key, class Value>
Map map_of_groups(const Place& place, const groups<Key, Value, Place>& all,
                  const array<pair<Key, std::uint32_t>, Place>& pairs, double load_factor) {
  const items_in_order<pair<Key, std::uint32_t>> source{pairs.data(), pairs.size(), all.region_of,
                                                        all.begins.data()};
  return frozen_source::build<Map>(place, source, {.load_factor = load_factor, .seed = all.region_of.seed});
}

/// What of_group has of the groups of a region's items; not of a frequent key's.
template <class Place, class Key, class Value, class T>
struct answer_regions {
  static constexpr int threads = 256;
  const pair<Key, Value>* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  const std::uint64_t* groups_before;
  const std::uint16_t* numbers;
  const T* of_group;
  T* target;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte*) const {
    constexpr std::uint32_t tile = group_tile<Place, Key, Value>;
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    const std::uint64_t end = ends[region];
    if (end - begins[region] > tile && region_of.is_frequent(items[begins[region]].key)) return;
    const T* const of_mine = of_group + groups_before[region];
    for (std::uint64_t first = begins[region]; first < end; first += tile) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, end - first));
      const held_items<per_worker, Team, const std::uint16_t*> number(
          team, numbers, first, n);  // all on their way before the first is waited for
      T mine[Team::size == 1 ? 1 : per_worker];
      if constexpr (Team::size > 1)
        for_each_held<per_worker>(team, n, [&](int held, int i) { mine[held] = of_mine[number(held, i)]; });
      for_each_held<per_worker>(team, n, [&](int held, int i) {
        target[first + static_cast<std::uint32_t>(i)] =
            Team::size > 1 ? mine[held] : of_mine[number(held, i)];
      });
    }
  }
};

template <class T>
struct answer_of_only_group {
  const std::uint64_t* groups_before;
  const T* of_group;
  T* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t region) const {
    target[i] = of_group[groups_before[region]];
  }
};

/// target[i] = what of_group has of the group of item i, for groups with the way back.
template <class T, class Key, class Value, class Place>
void write_of_each_item(const Place& place, const groups<Key, Value, Place>& source, const T* of_group,
                        array<T, Place>& target) {
  if (!source.items) return;  // there are none
  const auto& [parts, frequent, groups_before, numbers] = *source.items;
  array<T, Place> in_regions(place, numbers.size());
  using kernel = answer_regions<Place, Key, Value, T>;
  const kernel run{parts.items(),        parts.begins(), parts.ends(), frequent.region_of,
                   groups_before.data(), numbers.data(), of_group,     in_regions.data()};
  place.launch(parts.regions(), 0, run);
  for_each_frequent_item(place, parts, frequent.region_of, numbers.size(),
                         answer_of_only_group<T>{groups_before.data(), of_group, in_regions.data()});
  parts.restore(place, in_regions, target);
}

}  // namespace roost::detail
