#pragma once

#include "roost/shards/detail/groups.hpp"
#include "roost/shards/sharded_map.hpp"

/// \file
/// sharded_index: distinct keys of several shards <-> 0, 1, ... m - 1; and the distinct keys alone.

namespace roost {

/// A two_way_index over several shards: numbers the distinct keys of all ranges 0, 1, ... m - 1.
///
///     roost::sharded_index index(all, ids);  // ids[s]: a range of shard s
///     index.indices(s);                      // of each id of shard s, its index
///     index.keys(s);                         // the ids of index.first(s) and following
///     index.find(all, queries, results);
///
/// The keys of a shard have consecutive indices, those of shard 0 first. With index_order::first_occurrence,
/// the default, a key is on the shard where it occurs first, and all indices are those of a two_way_index of
/// all ranges in the order of the shards. With index_order::any, the fastest, the hash of a key determines
/// its shard. There is no index_order::by_key (invalid_argument).
///
/// Limits: 2^32 - 2 distinct keys, and 2^32 - 2 keys in one range. Cost: a build numbers each range, sends
/// each of its distinct keys once to the owner and back, builds a sharded_map and looks up the distinct keys
/// of each range.
///
/// Threads and failure: shards.hpp.
template <class Key, class Shards = host_shards>
class sharded_index : sharded_map<Key, std::uint32_t, Shards> {
  using map = sharded_map<Key, std::uint32_t, Shards>;

 public:
  using typename map::key_type, typename map::place_type;

  /// What find() writes for an absent key, unless you pass another value.
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  using options = typename two_way_index<Key, place_type>::options;

  /// Numbers the keys of all ranges, one for each shard. Throws invalid_argument, out_of_memory,
  /// device_error, build_error.
  template <class Keys>
    requires(!std::is_same_v<Keys, sharded_index>)
  sharded_index(const Shards& shards, const Keys& keys, options chosen = {})
      : map({.load_factor = chosen.load_factor, .seed = chosen.seed}) {
    index_keys(shards, keys, chosen);
  }

  /// An empty index without memory.
  sharded_index() = default;

  /// results[s][i] = the index of queries[s][i], or `missing`. See sharded_map::find.
  template <class Queries, class Results>
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results,
                   std::uint32_t missing = no_index, bulk_options how = {}) const {
    return map::find(shards, queries, results, missing, how);
  }

  // As in sharded_map; size(): the number of distinct keys of all shards.
  using map::contains, map::count_found, map::size, map::empty;

  /// The keys of a shard of this process, and how often each appeared in all ranges (empty without
  /// options::counts). Memory of the shard. The first has the index first(shard).
  std::span<const Key> keys(std::size_t shard) const { return of(shard).keys.span(); }
  std::span<const std::uint64_t> counts(std::size_t shard) const { return of(shard).counts.span(); }
  std::uint32_t first(std::size_t shard) const { return of(shard).first; }
  /// The index of each key of a shard's range.
  std::span<const std::uint32_t> indices(std::size_t shard) const { return of(shard).indices.span(); }

  /// Of all shards' tables and arrays in this process.
  std::size_t bytes() const {
    std::size_t result = map::bytes();
    const auto add = [&](const part& p) { result += p.keys.bytes() + p.counts.bytes() + p.indices.bytes(); };
    if constexpr (detail::one_shard_a_process<Shards>) {
      add(parts_);
    } else {
      for (const part& p : parts_) add(p);
    }
    return result;
  }

  /// Checks the invariants: each key has its index. Looks up every key.
  bool valid(const Shards& shards) const {
    if (empty()) return true;
    if (!map::valid(shards)) return false;
    const auto keys = detail::collect(shards, [&](auto& me) { return of(me).keys.span(); });
    auto found = detail::collect(shards, [&](auto& me) { return numbers(me.place(), of(me).keys.size()); });
    find(shards, keys, found);
    return this->tables_.sum(shards, "valid", [&](auto& me, const auto&) {
      const part& mine = of(me);
      const detail::is_index_of_key right{detail::of_shard<Shards>(found, me).data(), mine.first};
      return mine.keys.size() - me.place().sum(mine.keys.size(), right);
    }) == 0;
  }

 private:
  using numbers = array<std::uint32_t, place_type>;
  struct part {
    array<Key, place_type> keys;
    array<std::uint64_t, place_type> counts;
    numbers indices;
    std::uint32_t first = 0;
  };

  template <class Shard>  // its number, or itself
  const part& of(const Shard& shard) const {
    return detail::of_shard<Shards>(parts_, shard);
  }

  template <class Keys>
  void index_keys(const Shards& shards, const Keys& keys, const options& chosen) {
    constexpr const char* where = "roost::sharded_index";
    detail::check_order(chosen.order, where);
    detail::check_parts(shards, where, keys);
    parts_ = detail::make_each<Shards, part>(shards);
    auto different = detail::make_each<Shards, array<Key, place_type>>(shards);  // of each range
    auto found = detail::make_each<Shards, numbers>(shards);
    shards.run([&](auto& me) {
      part& mine = detail::of_shard<Shards>(parts_, me);
      const auto sequence = detail::sequence_as<Key>(detail::of_shard<Shards>(keys, me));
      auto all = detail::unique_all(me.place(), sequence,
                                    {.order = chosen.order, .inverse = true, .counts = chosen.counts}, where);
      auto share = detail::share_of_keys<std::uint64_t>(me, all.keys, all.counts, chosen.order, chosen.seed);
      const auto sizes = me.gather({share.keys.size()});
      if (sizes.sum() >= no_index) {
        detail::raise<invalid_argument>(
            {where, ": ", sizes.sum(), " different keys; at most 2^32 - 2 have indices"});
      }
      for (std::uint32_t s = 0; s < me.number(); ++s) mine.first += static_cast<std::uint32_t>(sizes(s));
      mine.keys = std::move(share.keys);
      if (chosen.counts) mine.counts = std::move(share.counts);
      mine.indices = std::move(all.inverse);  // among the distinct keys of the range
      detail::of_shard<Shards>(found, me) = {me.place(), all.keys.size()};
      detail::of_shard<Shards>(different, me) = std::move(all.keys);
    });
    this->build(shards, [&](auto& me) {
      const detail::numbers_from<std::uint32_t> indices{of(me).keys.size(), of(me).first};
      return detail::zip_as<Key, std::uint32_t>(of(me).keys, indices, where);
    });
    find(shards, different, found);
    shards.run([&](auto& me) {
      part& mine = detail::of_shard<Shards>(parts_, me);
      const auto& of_different = detail::of_shard<Shards>(found, me);
      numbers indices =
          detail::array_of(me.place(), mine.indices.size(),
                           detail::gather<std::uint32_t>{of_different.data(), mine.indices.data()});
      me.place().synchronize();
      mine.indices = std::move(indices);
    });
  }

  detail::each_shard<Shards, part> parts_;
};

template <class Shards, class Keys>
sharded_index(
    const Shards&, const Keys&,
    typename two_way_index<detail::element_of_shard<Shards, Keys>, typename Shards::place_type>::options = {})
    -> sharded_index<detail::element_of_shard<Shards, Keys>, Shards>;

/// Returns the distinct keys of the ranges of all shards, each once: an array for each shard. With
/// index_order::first_occurrence a key is on the shard where it occurs first, in that order, so the
/// concatenated arrays are what unique() returns on one place; with index_order::any the hash of a key
/// determines its shard. Throws as sharded_index does.
template <detail::shards_place Shards, class Keys>
auto unique(const Shards& shards, const Keys& keys, index_order order = index_order::first_occurrence) {
  constexpr const char* where = "roost::unique";
  detail::check_order(order, where);
  detail::check_parts(shards, where, keys);
  return detail::collect(shards, [&](auto& me) {
    const auto mine = unique(me.place(), detail::of_shard<Shards>(keys, me), order);
    return std::move(detail::share_of_keys<bool>(me, mine, {}, order, 0).keys);
  });
}

}  // namespace roost
