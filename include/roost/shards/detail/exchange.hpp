#pragma once

#include "roost/detail/partition/geometry.hpp"
#include "roost/frozen_map.hpp"
#include "roost/partition.hpp"
#include "roost/shards/detail/crew.hpp"

// Which shard owns a key, and how items get to the owners of their keys.

namespace roost::detail {

/// Chooses a key's region among the regions of all shards: those of shard s begin at s * regions. Different
/// bits of the hash determine shard and region, so the table of a shard is like any other: its keys are
/// spread over all its regions. (The factor is the square root of 2: neighbouring hashes alternate between
/// shards.)
struct owners {
  std::uint64_t seed;
  std::uint32_t shards;
  std::uint32_t regions = 1;  // of each shard
  std::uint32_t shift = 0;    // 2^shift neighbouring regions are treated as one

  /// The number of regions of each shard.
  ROOST_FN std::uint32_t parts() const { return ((regions - 1) >> shift) + 1; }

  template <class Hash>
  ROOST_FN static std::uint32_t owner_of_hash(Hash hash, std::uint32_t shards) {
    constexpr auto factor = static_cast<Hash>(sizeof(Hash) == 4 ? 0x6a09e667u : 0x6a09e667f3bcc909u);
    return static_cast<std::uint32_t>(split_hash(static_cast<Hash>(hash * factor), shards).digit);
  }
  template <class Key>
  ROOST_FN std::uint32_t owner(const Key& key) const {
    return owner_of_hash(hash_of(key, seed), shards);
  }
  template <class Key>
  ROOST_FN std::uint32_t operator()(const Key& key) const {
    const auto hash = hash_of(key, seed);
    return owner_of_hash(hash, shards) * parts() +
           (static_cast<std::uint32_t>(split_hash(hash, regions).digit) >> shift);
  }
};

/// Items of a shard, split by the owners of their keys, in order.
template <class Item, class Place>
struct outgoing {
  partitioned<Item, Place> parts;
  std::vector<std::uint64_t> begins;  // of each shard's items, and the end
  gathered counts;                    // how many items each shard sends to each
};

/// Splits items by the owners of their keys and shares their counts: all shards call it.
template <bool WayBack, class Me, class Source>
auto split_by_owner(Me& me, const Source& source, std::uint64_t seed) {
  using place = typename Me::place_type;
  using item = std::remove_cvref_t<decltype(source[0])>;
  constexpr partition_kind kind{.stable = true, .way_back = WayBack, .one_pass = true};
  partitioner<place, item, kind> partitioner(me.place(), me.count());
  auto parts = partitioner.run(source, owners{seed, me.count()});
  std::vector<std::uint64_t> begins(me.count() + 1), counts(me.count());
  me.place().copy_to_host(begins.data(), parts.begins(), me.count() * sizeof(std::uint64_t));
  begins.back() = parts.extent();
  for (std::uint32_t s = 0; s < me.count(); ++s) counts[s] = begins[s + 1] - begins[s];
  return outgoing<item, place>{std::move(parts), std::move(begins), me.gather(counts)};
}

/// Items that have arrived at the owner of their keys, ordered by sending shard, and within a shard in its
/// order.
template <class Item, class Place>
struct arrived {
  array<Item, Place> items;
  std::vector<std::uint64_t> begins;  // of those from each shard, and the end
};

/// The pieces of an array that begin at `begins`.
template <class T>
std::vector<piece> pieces_of(const T* items, const std::vector<std::uint64_t>& begins) {
  std::vector<piece> result;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s)
    result.push_back({items + begins[s], (begins[s + 1] - begins[s]) * sizeof(T)});
  return result;
}

/// Sends pieces and receives others, and waits for them.
template <class Me>
void swap_pieces(Me& me, const std::vector<piece>& out, const std::vector<piece>& in) {
  me.agree();
  const in_use_by_others scope(me);
  me.wait(me.exchange(out, in, 0));
  me.place().synchronize();
}

/// Where the items from each shard begin, and the end. `all`: how much each shard sends to each.
template <class Me>
std::vector<std::uint64_t> begins_of_arrivals(const Me& me, const gathered& all) {
  std::vector<std::uint64_t> begins(me.count() + 1, 0);
  for (std::uint32_t s = 0; s < me.count(); ++s) begins[s + 1] = begins[s] + all(s, me.number());
  return begins;
}

/// Sends items to the owners of their keys.
template <class Me, class Item, class Place>
arrived<Item, Place> deliver(Me& me, const outgoing<Item, Place>& mine) {
  auto begins = begins_of_arrivals(me, mine.counts);
  arrived<Item, Place> result{{me.place(), begins.back()}, std::move(begins)};
  swap_pieces(me, pieces_of(mine.parts.items(), mine.begins), pieces_of(result.items.data(), result.begins));
  return result;
}

/// Sends results back, one for each arrived item, in their order; received results are in the order in which
/// the items were sent.
template <class Me, class Item, class Place, class Result>
void send_back(Me& me, const arrived<Item, Place>& items, const Result* results,
               const outgoing<Item, Place>& mine, Result* target) {
  swap_pieces(me, pieces_of(results, items.begins), pieces_of(target, mine.begins));
}

/// The begins and ends of each region of all shards in partitioned items, counted from the first region of
/// the shard: for each shard first the begins, then the ends.
struct write_bounds {
  const std::uint64_t* ends;
  std::uint64_t room;  // of a region
  std::uint32_t regions;
  std::uint64_t* bounds;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t shard = i / regions, region = i % regions;
    std::uint64_t* const mine = bounds + shard * 2 * regions;
    mine[region] = region * room;
    // A cursor may have passed the end of its region.
    mine[regions + region] = region * room + smaller(ends[i] - i * room, room);
  }
};

/// The items that all shards send at once.
struct sharded_batch {
  static constexpr std::uint64_t room_for_all = ~std::uint64_t{0};
  owners order;
  std::uint64_t copies = 1;            // of most items, for which regions have room; or room_for_all
  std::vector<std::uint64_t> sizes{};  // how many items each shard has
  std::uint64_t most = 0;              // of these

  /// Sets the sizes for a part of the items, whose numbers all shards have shared.
  void take(const gathered& all, std::size_t first = 0, std::size_t count = ~std::size_t{0}) {
    sizes.clear();
    for (std::uint32_t s = 0; s < order.shards; ++s)
      sizes.push_back(smaller(all(s) - smaller(all(s), first), count));
    most = *std::max_element(sizes.begin(), sizes.end());
  }
  /// The room of a part of the regions, for the items of each shard.
  std::vector<std::uint64_t> rooms() const {
    const double part = static_cast<double>(std::uint64_t{1} << order.shift) / order.regions;
    std::vector<std::uint64_t> result;
    for (const std::uint64_t size : sizes) {
      const std::uint64_t n = larger<std::uint64_t>(size, 16);
      const double mean = static_cast<double>(n) / order.shards * std::min(part, 1.0);
      result.push_back(copies == room_for_all ? n : with_slack(mean, n, static_cast<double>(copies)));
    }
    return result;
  }
};

/// Neighbouring regions, which are sent at once.
struct region_range {
  std::uint32_t first, count;
  std::uint32_t end() const { return first + count; }
};

/// Items of a shard, split by the shards that own them and by region, each with the same room; and the items
/// that arrive from other shards, for the regions of this one. Asynchronous.
template <class Me, class Item, partition_kind Kind>
class items_by_region {
  using place_type = typename Me::place_type;
  using tuned = shards_tuning<place_type>;

  Me& me_;
  const std::vector<std::uint64_t> rooms_;  // of a region, for the items of each shard
  array<std::uint64_t, place_type> flags_;

 public:
  /// `unless`: as in a partitioner.
  template <class Source>
  items_by_region(Me& me, const Source& source, const sharded_batch& batch,
                  const std::uint32_t* unless = nullptr)
      : me_(me),
        rooms_(batch.rooms()),
        flags_(zeros(me.place(), 1)),
        regions(batch.order.parts()),
        ranges(static_cast<std::uint32_t>(
            std::clamp<std::size_t>(batch.most * sizeof(Item) / me.count() / tuned::range_bytes, 1,
                                    smaller(tuned::ranges_most, regions)))),
        parts(partitioner<place_type, Item, Kind>(
                  me.place(), me.count() * regions,
                  {.room = room::slack,
                   .overflowed = reinterpret_cast<std::uint32_t*>(flags_.data()),
                   .capacity = rooms_[me.number()]},
                  unless)
                  .run(source, batch.order)),
        bounds_(me.place(), std::size_t{2} * me.count() * regions),
        arriving_(me.count()),
        arrivals_(ranges),
        out_(me.count()),
        in_(me.count()) {
    const std::uint32_t my = me.number();
    me.place().for_each(std::size_t{me.count()} * regions,
                        write_bounds{parts.ends(), rooms_[my], regions, bounds_.data()});
    scratch_bytes = parts.scratch_bytes() + bounds_.bytes();
    for (std::uint32_t s = 0; s < me.count(); ++s) {
      const std::uint64_t slots = regions * rooms_[s];
      const Item* items = parts.items() + s * slots;
      const std::uint64_t* bounds = bounds_.data() + s * 2 * regions;
      if (s != my) {
        arriving_[s] = {{me.place(), slots}, {me.place(), std::size_t{2} * regions}};
        items = arriving_[s].items.data();
        bounds = arriving_[s].bounds.data();
        scratch_bytes += arriving_[s].items.bytes() + arriving_[s].bounds.bytes();
      }
      from.push_back({items, bounds, bounds + regions, rooms_[s], slots});
    }
  }

  /// Where the items from a shard are: `room` slots for each region.
  struct part {
    const Item* items;
    const std::uint64_t* begins;
    const std::uint64_t* ends;
    std::uint64_t room, slots;
  };

  const std::uint32_t regions, ranges;        // items are sent in `ranges` ranges of regions
  const partitioned<Item, place_type> parts;  // the items of this shard, for all
  std::vector<part> from;                     // each shard
  std::size_t scratch_bytes = 0;

  region_range range(std::uint32_t k) const {
    const std::uint32_t first = regions * k / ranges;
    return {first, regions * (k + 1) / ranges - first};
  }
  /// On the place: whether a region had too many items, so that some are missing; then a word that is 0.
  const std::uint32_t* overflowed() const { return reinterpret_cast<const std::uint32_t*>(flags_.data()); }

  /// Sends the items to their owners: wait_for(range) lets the place wait for those of a range.
  void send() const {
    const std::uint32_t my = me_.number();
    exchange([&](std::uint32_t s) { return piece{bounds_.data() + s * 2 * regions, 2 * regions * 8}; },
             [&](std::uint32_t s) { return piece{arriving_[s].bounds.data(), arriving_[s].bounds.bytes()}; },
             0);
    for (std::uint32_t k = 0; k < ranges; ++k) {
      arrivals_[k] = exchange(
          [&](std::uint32_t s) { return piece_of(parts.items() + s * from[my].slots, my, range(k)); },
          [&](std::uint32_t s) { return piece_of(from[s].items, s, range(k)); }, 0);
      me_.mark("items have come", k, 0);
    }
  }
  void wait_for(std::uint32_t k) const { me_.wait(arrivals_[k]); }

  /// Sends out(s) to each other shard s and receives in(s) from it.
  template <class Out, class In>
  std::uint64_t exchange(const Out& out, const In& in, int lane) const {
    for (std::uint32_t s = 0; s < me_.count(); ++s) {
      if (s == me_.number()) continue;
      out_[s] = out(s);
      in_[s] = in(s);
    }
    return me_.exchange(out_, in_, lane);
  }
  /// The regions of a range, in slots like those for the items of shard s.
  template <class Slot>
  piece piece_of(const Slot* slots, std::uint32_t s, const region_range& r) const {
    return {slots + r.first * rooms_[s], r.count * rooms_[s] * sizeof(Slot)};
  }

 private:
  struct arriving {
    array<Item, place_type> items;
    array<std::uint64_t, place_type> bounds;
  };

  array<std::uint64_t, place_type> bounds_;
  std::vector<arriving> arriving_;               // from each other shard
  mutable std::vector<std::uint64_t> arrivals_;  // of each range
  mutable std::vector<piece> out_, in_;          // of an exchange
};

// Builds from pairs with distinct keys. One pass splits them by owner and by the first digit of their region;
// while ranges of these parts are sent, others are split into regions, and regions are built.

/// The pairs of a shard, split by the shards that own them, and the pairs that arrive at it: the source from
/// which frozen_map is built (comes_in_ranges).
template <class Me, class Item>
class arriving_items {
  using place_type = typename Me::place_type;

 public:
  static constexpr bool comes_in_ranges = true;

  /// Splits a shard's pairs. `size`: for which the table is created.
  template <class Source>
  arriving_items(Me& me, const Source& source, const sharded_batch& batch, std::size_t size)
      : me_(me), shift_(batch.order.shift), size_(size), items_(me, source, batch) {}

  std::size_t size() const { return size_; }

  /// Whether a part had too many pairs, so that some were not sent. Synchronises.
  bool overflowed() const { return read_one(me_.place(), items_.overflowed()) != 0; }

  /// Splits arriving pairs into the regions of a table, and calls build(items, begins, ends, first region,
  /// number of regions) for complete regions. `overflowed`: as in a partitioner. Returns the bytes of
  /// scratch.
  template <class Plan, class Build>
  std::size_t into_regions(const Plan& plan, std::uint32_t* overflowed, const Build& build) const {
    constexpr std::uint32_t tile = tile_items<place_type, Item>;
    using kernel =
        scatter_tiles<place_type, Item, sequence<const Item*>, leading_bits, shared_cursors, no_way_back>;
    const place_type& place = me_.place();
    const std::uint64_t room = plan.room_for_region != 0
                                   ? plan.room_for_region
                                   : with_slack(static_cast<double>(size()) / plan.regions, size());
    array<Item, place_type> items(place, plan.regions * room);
    array<std::uint64_t, place_type> begins(place, plan.regions), ends(place, plan.regions);
    place.for_each(plan.regions, begin_with_slack{room, begins.data(), ends.data()});
    me_.agree();
    in_use_by_others scope(me_);
    items_.send();
    scope.all_sent();
    const partition_pass pass{0, shift_, smaller(1u << shift_, plan.regions), plan.regions};
    const auto split = [&](std::uint32_t s, const region_range& parts) {
      const auto& from = items_.from[s];
      const auto tiles = static_cast<std::uint32_t>(ceil_div<std::uint64_t>(from.room, tile));
      tile_map map;
      map.begin = from.begins;
      map.end = from.ends;
      map.tiles_of_parent = tiles;
      map.first_parent = parts.first;
      const kernel run{.source = {from.items, from.slots},
                       .region_of = plan.region_of,
                       .tiles = map,
                       .pass = pass,
                       .cursors = {ends.data()},
                       .capacity = room,
                       .out = items.data(),
                       .overflowed = overflowed,
                       .back = {}};
      place.launch(std::size_t{tiles} * parts.count, scratch_bytes_of(run), run);
    };
    split(me_.number(), {0, items_.regions});
    for (std::uint32_t k = 0; k < items_.ranges; ++k) {
      const region_range parts = items_.range(k);
      items_.wait_for(k);
      for (std::uint32_t s = 0; s < me_.count(); ++s) {
        if (s != me_.number()) split(s, parts);
      }
      const std::uint32_t first = parts.first << shift_, end = smaller(parts.end() << shift_, plan.regions);
      build(items.data(), begins.data(), ends.data(), first, end - first);
    }
    place.synchronize();
    return items_.scratch_bytes + items.bytes() + begins.bytes() + ends.bytes();
  }

 private:
  Me& me_;
  const std::uint32_t shift_;
  const std::size_t size_;
  items_by_region<Me, Item, partition_kind{.one_pass = true, .may_count = false}> items_;
};

/// Builds a map from pairs with distinct keys while they are sent. Returns nothing, on all shards, if there
/// are duplicates, or too many keys in some region.
template <class Map, class Me, class Source>
std::optional<Map> build_as_they_come(Me& me, const Source& source, const typename Map::options& options) {
  using place_type = typename Me::place_type;
  constexpr std::uint32_t digits_most = partition_tuning<place_type>::digits_most;
  const gathered sizes = me.gather({source.size()});
  if (me.count() == 1 || sizes.sum() < shards_tuning<place_type>::build_pairs) return {};
  // The most pairs that arrive at any shard, if owners and regions are random.
  const std::size_t expected = with_slack(static_cast<double>(sizes.sum()) / me.count(), sizes.sum());
  const auto plan = frozen_source::plan<Map>(expected, options);
  sharded_batch batch{{options.seed, me.count(), plan.regions}};
  std::uint32_t& shift = batch.order.shift;
  while (batch.order.parts() > digits_most / me.count()) ++shift;
  if (std::uint64_t{1} << shift > digits_most) return {};  // two passes cannot reach all regions
  batch.take(sizes);
  typename Map::options once = options;
  once.max_restarts = 0;
  std::optional<Map> result;
  bool good = true;
  {
    using item = std::remove_cvref_t<decltype(source[0])>;
    const arriving_items<Me, item> items(me, source, batch, expected);
    try {
      result.emplace(frozen_source::build<Map>(me.place(), items, once));
    } catch (const build_error&) {
      good = false;
    }
    good = good && !items.overflowed();
  }
  const gathered all = me.gather({good ? result->size() : 0, good ? 0u : 1u});
  if (all.sum(1) != 0 || all.sum(0) != sizes.sum()) return {};
  return result;
}

}  // namespace roost::detail
