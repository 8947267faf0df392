#pragma once

#include "roost/detail/groups/group_regions.hpp"
#include "roost/detail/groups/index_keys.hpp"

// Grouping brings items with the same key together. They are partitioned by region, stably; a team indexes
// the distinct keys of a region, and orders its items by these indices. Frequent keys get their own regions,
// which need only the partition. So groups are in hash order of their keys.

namespace roost::detail {

/// The distinct keys, ordered by the leading bits of their hashes and then by their first items.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<std::uint64_t, Place> offsets;  // where the values of each key begin, and the end
  array<Value, Place> values;           // of all items
  frequent_keys<Key, Place> frequent{leading_bits{}};
  array<std::uint64_t, Place> keys_before;  // see indexing_output
  std::size_t scratch_bytes = 0;

  std::size_t size() const { return keys.size(); }
};

/// Groups items, with one seed.
template <class Key, class Value, class Place>
class grouper {
  using kernel = group_regions<Place, Key, Value>;
  using result_type = groups<Key, Value, Place>;

 public:
  /// `tighter`: the factor by which regions have fewer items than they could.
  grouper(const Place& place, std::size_t n, std::uint64_t seed, double tighter)
      : place_(place), n_(n), frequent_({seed, regions_for(n, tighter)}) {}

  /// Returns nothing if some region has too many keys.
  template <class Source>
  std::optional<result_type> run(const Source& source) {
    batch_facts batch = facts_of<Key>(place_, n_);
    for (;;) {
      switch (choose_grouping(batch)) {
        case grouping_step::sample:
          frequent_.sample(place_, source, group_tuning<Place>::tiles_most * kernel::tile, 1);
          batch.sample = frequent_.seen;
          batch.tried.exact = false;  // frequent keys have their own regions now
          break;
        case grouping_step::distinct:
          if (group_distinct(source)) return std::move(result_);
          batch.tried.distinct = true;
          break;
        case grouping_step::slack:
          if constexpr (!std::is_same_v<Place, host>) {
            if (group_regions_of_keys<false>(source, true)) return pack();
          }
          batch.tried.slack = true;
          break;
        case grouping_step::exact:
          if (group_regions_of_keys(source, batch.sample.has_value())) return pack();
          batch.tried.exact = true;
          break;
        case grouping_step::give_up:
          return {};
      }
    }
  }

 private:
  /// A region of distinct keys nearly fills its tile: leaves seven standard deviations of free space.
  static std::uint32_t regions_for(std::size_t n, double tighter) {
    const double mean = kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile));
    return group_regions_of(static_cast<double>(n) / mean * tighter);
  }

  /// False if there are duplicate keys.
  template <class Source>
  bool group_distinct(const Source& source) {
    const leading_bits& spread = frequent_.region_of.spread;
    indexer<Key, Value, Place> indexer(place_, n_, spread.seed, 1,
                                       {.keys = true, .first = true, .different = true});
    auto all = indexer.run(source);
    if (!all) return false;
    result_.keys = std::move(all->keys);
    result_.values = std::move(all->first);
    result_.offsets = std::move(all->offsets);
    result_.frequent = std::move(all->frequent);
    result_.keys_before = std::move(all->keys_before);
    result_.scratch_bytes = all->parts->scratch_bytes();
    return true;
  }

  /// False if some region has too many keys or, without a sample, too many items; or, unless tiles are
  /// counted, more than the slack for copies.
  template <bool Counts = true, class Source>
  bool group_regions_of_keys(const Source& source, bool sampled) {
    const std::uint32_t regions = frequent_.regions();
    sizes_ = zeros(place_, std::size_t{regions} + 3);  // the last ones count failures
    std::uint64_t* const failed = sizes_.data() + regions + 1;
    auto* const overflowed = reinterpret_cast<std::uint32_t*>(failed + 1);
    partitioner<Place, pair<Key, Value>, partition_kind{.stable = true, .may_count = Counts}> partitioner(
        place_, regions,
        {.room = Counts ? room::exact : room::slack, .overflowed = overflowed, .copies = grouping_copies});
    parts_.emplace(partitioner.run(source, frequent_.region_of));
    if constexpr (!Counts) {
      firsts_ = array_of(place_, regions, length_of{parts_->begins(), parts_->ends()});
      place_.exclusive_scan(firsts_.data(), firsts_.data(), regions);
    }
    keys_ = array<Key, Place>(place_, n_);
    starts_ = array<std::uint32_t, Place>(place_, n_);
    result_.values = array<Value, Place>(place_, n_);
    output_ = {keys_.data(),   result_.values.data(), Counts ? parts_->begins() : firsts_.data(),
               starts_.data(), sizes_.data(),         failed};
    const kernel group{.items = parts_->items(),
                       .begins = parts_->begins(),
                       .ends = parts_->ends(),
                       .overflowed = overflowed,
                       .region_of = frequent_.region_of,
                       .sampled = sampled,
                       .target = output_};
    place_.launch(regions, scratch_bytes_of(group), group);
    for_each_frequent_item(place_, *parts_, frequent_.region_of, n_,
                           copy_value<Key, Value>{parts_->items(), result_.values.data()});
    place_.exclusive_scan(sizes_.data(), sizes_.data(), std::size_t{regions} + 1);
    std::uint64_t seen[3];  // groups, failures: the only readback by the host
    place_.copy_to_host(seen, sizes_.data() + regions, sizeof(seen));
    size_ = seen[0];
    return seen[1] + seen[2] == 0;
  }

  /// Brings the groups of all regions together.
  result_type pack() {
    result_.keys = array<Key, Place>(place_, size_);
    result_.offsets = array<std::uint64_t, Place>(place_, size_ + 1);
    const pack_groups<Place, Key, Value> pack{output_, result_.keys.data(), result_.offsets.data(), size_,
                                              n_};
    place_.launch(frequent_.regions(), 0, pack);
    result_.scratch_bytes = parts_->scratch_bytes() + keys_.bytes() + starts_.bytes() + sizes_.bytes() +
                            firsts_.bytes() + result_.values.bytes();
    result_.frequent = std::move(frequent_);
    result_.keys_before = std::move(sizes_);
    return std::move(result_);
  }

  const Place& place_;
  std::size_t n_;
  frequent_keys<Key, Place> frequent_;
  std::optional<partitioned<pair<Key, Value>, Place>> parts_;
  array<Key, Place> keys_;  // see group_output
  array<std::uint32_t, Place> starts_;
  array<std::uint64_t, Place> sizes_, firsts_;
  std::uint64_t size_ = 0;  // groups
  group_output<Key, Value> output_{};
  result_type result_;
};

/// Groups items by key. Synchronises. Throws out_of_memory, build_error.
template <class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  return with_some_seed(seed, where, [&](std::uint64_t some_seed, double tighter) {
    return grouper<Key, Value, Place>(place, source.size(), some_seed, tighter).run(source);
  });
}

/// A map of keys to indices, built in place from the n keys that were grouped or indexed.
template <class Map, class Place, class Keys, class Key>
Map map_of_keys(const Place& place, const Keys& all, const indexed_keys<Key>& indexed, std::size_t n,
                double load_factor) {
  const leading_bits& spread = all.frequent.region_of.spread;
  const auto begins = begins_of_regions(place, all.frequent, all.keys_before);
  const keys_in_order<Key> source{indexed, n, spread, begins.data()};
  return frozen_source::build<Map>(place, source, {.load_factor = load_factor, .seed = spread.seed});
}

}  // namespace roost::detail
