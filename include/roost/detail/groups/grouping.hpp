#pragma once

#include "roost/detail/groups/group_regions.hpp"
#include "roost/detail/groups/numbering.hpp"

// Grouping brings items with the same key together. They are partitioned by region, stably; a team numbers
// the distinct keys of a region, and orders its items by these numbers. Frequent keys get their own regions,
// which need only the partition. So groups are in hash order of their keys.

namespace roost::detail {

/// The distinct keys, ordered by the leading bits of their hashes and then by their first items.
template <class Key, class Value, class Place>
struct groups {
  array<Key, Place> keys;
  array<std::uint64_t, Place> offsets;                   // where the values of each key begin, and the end
  array<Value, Place> values;                            // of all items
  array<pair<Key, std::uint32_t>, Place> numbered_keys;  // each with its number, if requested
  leading_bits region_of{};
  array<std::uint64_t, Place> begins;  // of each region's groups, and the end; with numbered_keys
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
  grouper(const Place& place, std::size_t n, std::uint64_t seed, double tighter, bool numbered)
      : place_(place), n_(n), numbered_(numbered), frequent_({seed, regions_for(n, tighter)}) {}

  /// Returns nothing if some region has too many keys.
  template <class Source>
  std::optional<result_type> run(const Source& source) {
    // A small batch is first tried without a sample.
    bool grouped = n_ <= group_tuning<Place>::tried_most && group_regions_of_keys(source, false);
    if (!grouped) {
      frequent_.sample(place_, source, group_tuning<Place>::tiles_most * kernel::tile);
      // Distinct keys need no stable order. The sample may have shown copies; if it has missed some, the
      // first team that finds them ends the attempt.
      if (frequent_.copies == 0 && group_different(source)) return std::move(result_);
      grouped = group_regions_of_keys(source, true);
    }
    if (!grouped) return {};
    pack();
    return std::move(result_);
  }

 private:
  /// A region of distinct keys nearly fills its tile: seven standard deviations of a random split are left.
  static std::uint32_t regions_for(std::size_t n, double tighter) {
    const double mean = kernel::tile - 7 * std::sqrt(static_cast<double>(kernel::tile));
    return group_regions_of(static_cast<double>(n) / mean * tighter);
  }

  /// False if there are duplicate keys.
  template <class Source>
  bool group_different(const Source& source) {
    const leading_bits& spread = frequent_.region_of.spread;
    numberer<Key, Value, Place> numberer(
        place_, n_, spread.seed, 1,
        {.keys = true, .pairs = numbered_, .first = true, .begins = numbered_, .different = true});
    auto all = numberer.run(source);
    if (!all) return false;
    result_.keys = std::move(all->keys);
    result_.numbered_keys = std::move(all->pairs);
    result_.values = std::move(all->first);
    result_.offsets = array<std::uint64_t, Place>(place_, n_ + 1);
    write_numbers(place_, n_ + 1, number<std::uint64_t>(), result_.offsets.data());
    result_.region_of = all->region_of;
    result_.begins = std::move(all->begins);
    result_.scratch_bytes = all->parts->scratch_bytes();
    return true;
  }

  /// False if some region has too many keys or, without a sample, too many items.
  template <class Source>
  bool group_regions_of_keys(const Source& source, bool sampled) {
    const std::uint32_t regions = frequent_.regions();
    partitioner<Place, pair<Key, Value>, partition_kind{.stable = true}> partitioner(place_, regions,
                                                                                     room::exact, nullptr);
    parts_.emplace(partitioner.run(source, frequent_.region_of));
    keys_ = array<Key, Place>(place_, n_);
    starts_ = array<std::uint32_t, Place>(place_, n_);
    sizes_ = zeros(place_, std::size_t{regions} + 2);  // the last one counts failures
    result_.values = array<Value, Place>(place_, n_);
    output_ = {keys_.data(), result_.values.data(), starts_.data(), sizes_.data(),
               sizes_.data() + regions + 1};
    const kernel group{parts_->items(),     parts_->begins(), parts_->ends(),
                       frequent_.region_of, sampled,          output_};
    place_.launch(regions, scratch_bytes_of(group), group);
    for_each_frequent_item(place_, *parts_, frequent_.region_of, n_,
                           copy_value<Key, Value>{parts_->items(), result_.values.data()});
    place_.exclusive_scan(sizes_.data(), sizes_.data(), std::size_t{regions} + 1);
    std::uint64_t seen[2];  // groups, failures: the only readback by the host
    place_.copy_to_host(seen, sizes_.data() + regions, sizeof(seen));
    size_ = seen[0];
    return seen[1] == 0;
  }

  /// Brings the groups of all regions together.
  void pack() {
    result_.keys = array<Key, Place>(place_, size_);
    result_.offsets = array<std::uint64_t, Place>(place_, size_ + 1);
    result_.numbered_keys = array<pair<Key, std::uint32_t>, Place>(place_, numbered_ ? size_ : 0);
    const pack_groups<Place, Key, Value> pack{output_,
                                              parts_->begins(),
                                              result_.keys.data(),
                                              result_.offsets.data(),
                                              result_.numbered_keys.data(),
                                              size_,
                                              n_};
    place_.launch(frequent_.regions(), 0, pack);
    result_.region_of = frequent_.region_of.spread;
    if (numbered_) result_.begins = begins_of_regions(place_, frequent_, sizes_);
    result_.scratch_bytes = parts_->scratch_bytes() + keys_.bytes() + starts_.bytes() + sizes_.bytes() +
                            result_.values.bytes() + result_.numbered_keys.bytes();
  }

  const Place& place_;
  std::size_t n_;
  bool numbered_;
  frequent_keys<Key, Place> frequent_;
  std::optional<partitioned<pair<Key, Value>, Place>> parts_;
  array<Key, Place> keys_;  // see group_output
  array<std::uint32_t, Place> starts_;
  array<std::uint64_t, Place> sizes_;
  std::uint64_t size_ = 0;  // groups
  group_output<Key, Value> output_{};
  result_type result_;
};

/// Groups items by key; `numbered`: also returns the keys with their numbers. Synchronises. Throws
/// out_of_memory, build_error.
template <class Place, class Source>
auto group(const Place& place, const Source& source, std::uint64_t seed, bool numbered, const char* where) {
  using item = std::remove_cvref_t<decltype(source[0])>;
  using Key = decltype(item::key);
  using Value = decltype(item::value);
  if (source.size() == 0) {
    groups<Key, Value, Place> none;
    none.offsets = zeros(place, 1);
    none.region_of = {seed, 2};
    none.begins = zeros(place, 3);
    return none;
  }
  return with_some_seed(seed, where, [&](std::uint64_t some_seed, double tighter) {
    return grouper<Key, Value, Place>(place, source.size(), some_seed, tighter, numbered).run(source);
  });
}

/// A map built in place from keys that were grouped or numbered.
template <class Map, class Place, class Keys, class Key>
Map map_of_keys(const Place& place, const Keys& all, const array<pair<Key, std::uint32_t>, Place>& pairs,
                double load_factor) {
  const items_in_order<pair<Key, std::uint32_t>> source{pairs.data(), pairs.size(), all.region_of,
                                                        all.begins.data()};
  return frozen_source::build<Map>(place, source, {.load_factor = load_factor, .seed = all.region_of.seed});
}

}  // namespace roost::detail
