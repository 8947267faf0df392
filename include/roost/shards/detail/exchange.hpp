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
  std::vector<std::uint64_t> counts;

  outgoing(const Place& place, std::uint32_t shards, partitioned<Item, Place>&& all)
      : parts(std::move(all)), begins(shards + 1), counts(shards) {
    place.copy_to_host(begins.data(), parts.begins(), shards * sizeof(std::uint64_t));
    begins.back() = parts.extent();
    for (std::uint32_t s = 0; s < shards; ++s) counts[s] = begins[s + 1] - begins[s];
  }
};

template <bool WayBack, class Me, class Source>
auto split_by_owner(const Me& me, const Source& source, std::uint64_t seed) {
  using place = typename Me::place_type;
  using item = std::remove_cvref_t<decltype(source[0])>;
  constexpr partition_kind kind{.stable = true, .way_back = WayBack, .one_pass = true};
  partitioner<place, item, kind> partitioner(me.place(), me.count(), room::exact, nullptr);
  return outgoing<item, place>(me.place(), me.count(), partitioner.run(source, owners{seed, me.count()}));
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

/// Sends items to the owners of their keys. `all`: the counts of all shards.
template <class Me, class Item, class Place>
arrived<Item, Place> deliver(Me& me, const outgoing<Item, Place>& mine, const gathered& all) {
  std::vector<std::uint64_t> begins(me.count() + 1, 0);
  for (std::uint32_t s = 0; s < me.count(); ++s) begins[s + 1] = begins[s] + all(s, me.number());
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

/// The begins and ends of the queries of each region of all shards, counted from the first region of the
/// shard: for each shard first the begins, then the ends.
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

// Builds from pairs with distinct keys. One pass splits them by owner and by the first digit of their region;
// while ranges of these parts are sent, others are split into regions, and regions are built.

/// The pairs of a shard, split by the shards that own them, and the pairs that arrive at it: the source from
/// which frozen_map is built (comes_in_ranges).
template <class Me, class Item>
class arriving_items {
  using place_type = typename Me::place_type;
  static constexpr std::uint32_t digits_most = partition_tuning<place_type>::digits_most;

 public:
  static constexpr bool comes_in_ranges = true;

  /// The most pairs that arrive at any shard, if owners and regions are random.
  static std::size_t expected(const gathered& sizes, std::uint32_t shards) {
    return with_slack(static_cast<double>(sizes.sum()) / shards, sizes.sum());
  }

  /// The parts into which the regions of such a table are split; nothing if two passes cannot reach them.
  static std::optional<owners> parts_of(std::uint64_t seed, std::uint32_t shards, std::uint32_t regions) {
    owners result{seed, shards, regions};
    while (result.parts() > digits_most / shards) ++result.shift;
    if (std::uint64_t{1} << result.shift > digits_most) return {};
    return result;
  }

  /// Splits a shard's pairs. `sizes`: how many each shard has.
  template <class Source>
  arriving_items(Me& me, const Source& source, const owners& order, const gathered& sizes)
      : me_(me),
        order_(order),
        sizes_(sizes),
        flags_(zeros(me.place(), 1)),
        mine_(partitioner<place_type, Item, partition_kind{.one_pass = true, .may_count = false}>(
                  me.place(), order.shards * order.parts(), room::slack, flag(), room_of(me.number()))
                  .run(source, order)),
        bounds_(me.place(), std::size_t{2} * order.shards * order.parts()) {
    const std::uint32_t parts = order.parts();
    me.place().for_each(std::size_t{order.shards} * parts,
                        write_bounds{mine_.ends(), room_of(me.number()), parts, bounds_.data()});
    for (std::uint32_t s = 0; s < order.shards; ++s) {
      if (s == me.number()) {
        from_.push_back({mine_.items() + s * parts * room_of(s), bounds_.data() + s * 2 * parts, {}, {}});
      } else {
        visitor guest{
            nullptr, nullptr, {me.place(), parts * room_of(s)}, {me.place(), std::size_t{2} * parts}};
        guest.first = guest.items.data();
        guest.edges = guest.bounds.data();
        from_.push_back(std::move(guest));
      }
    }
  }

  /// The number of pairs for which the table is created.
  std::size_t size() const { return expected(sizes_, order_.shards); }

  /// Whether a part had too many pairs, so that some were not sent. Synchronises.
  bool overflowed() const {
    std::uint64_t word = 0;
    me_.place().copy_to_host(&word, flags_.data(), sizeof(word));
    return word != 0;
  }

  /// Splits arriving pairs into the regions of a table, and calls build(items, begins, ends, first region,
  /// number of regions) for complete regions. `overflowed`: as in a partitioner. Returns the bytes of
  /// scratch.
  template <class Plan, class Build>
  std::size_t into_regions(const Plan& plan, std::uint32_t* overflowed, const Build& build) const {
    using tuned = shards_tuning<place_type>;
    const place_type& place = me_.place();
    const std::uint32_t shards = order_.shards, parts = order_.parts(), my = me_.number();
    const std::uint64_t room = plan.room_for_region != 0
                                   ? plan.room_for_region
                                   : with_slack(static_cast<double>(size()) / plan.regions, size());
    array<Item, place_type> items(place, plan.regions * room);
    array<std::uint64_t, place_type> begins(place, plan.regions), ends(place, plan.regions);
    place.for_each(plan.regions, begin_with_slack{room, begins.data(), ends.data()});
    const auto ranges = static_cast<std::uint32_t>(std::clamp<std::size_t>(
        sizes_.most() * sizeof(Item) / shards / tuned::range_bytes, 1, smaller(tuned::ranges_most, parts)));
    const auto first_of = [&](std::uint32_t k) { return parts * k / ranges; };
    std::vector<piece> out(shards), in(shards);
    std::vector<std::uint64_t> arrival(ranges);
    me_.agree();
    in_use_by_others scope(me_);

    const auto exchange = [&](const auto& piece_out, const auto& piece_in) {
      for (std::uint32_t s = 0; s < shards; ++s) {
        if (s == my) continue;
        out[s] = piece_out(s);
        in[s] = piece_in(s);
      }
      return me_.exchange(out, in, 0);
    };
    exchange([&](std::uint32_t s) { return piece{bounds_.data() + s * 2 * parts, 2 * parts * 8}; },
             [&](std::uint32_t s) { return piece{from_[s].bounds.data(), from_[s].bounds.bytes()}; });
    for (std::uint32_t k = 0; k < ranges; ++k) {
      const auto range = [&](const Item* first, std::uint32_t shard) {
        return piece{first + first_of(k) * room_of(shard),
                     (first_of(k + 1) - first_of(k)) * room_of(shard) * sizeof(Item)};
      };
      arrival[k] =
          exchange([&](std::uint32_t s) { return range(mine_.items() + s * parts * room_of(my), my); },
                   [&](std::uint32_t s) { return range(from_[s].items.data(), s); });
    }
    scope.all_sent();

    constexpr std::uint32_t tile = tile_items<place_type, Item>;
    using kernel =
        scatter_tiles<place_type, Item, sequence<const Item*>, leading_bits, shared_cursors, no_way_back>;
    const partition_pass pass{0, order_.shift, smaller(1u << order_.shift, plan.regions), plan.regions};
    const auto split = [&](std::uint32_t s, std::uint32_t first, std::uint32_t end) {
      const auto tiles = static_cast<std::uint32_t>(ceil_div<std::uint64_t>(room_of(s), tile));
      tile_map map;
      map.begin = from_[s].edges;
      map.end = from_[s].edges + parts;
      map.tiles_of_parent = tiles;
      map.first_parent = first;
      const kernel run{{from_[s].first, parts * room_of(s)},
                       plan.region_of,
                       map,
                       pass,
                       {ends.data()},
                       room,
                       items.data(),
                       overflowed,
                       {}};
      place.launch(std::size_t{tiles} * (end - first), scratch_bytes_of(run), run);
    };
    split(my, 0, parts);
    for (std::uint32_t k = 0; k < ranges; ++k) {
      me_.wait(arrival[k]);
      for (std::uint32_t s = 0; s < shards; ++s) {
        if (s != my) split(s, first_of(k), first_of(k + 1));
      }
      const std::uint32_t first = first_of(k) << order_.shift,
                          end = smaller(first_of(k + 1) << order_.shift, plan.regions);
      build(items.data(), begins.data(), ends.data(), first, end - first);
    }
    place.synchronize();
    return mine_.scratch_bytes() + items.bytes() + begins.bytes() + ends.bytes();
  }

 private:
  struct visitor {
    const Item* first;           // of the parts from a shard
    const std::uint64_t* edges;  // their begins, then their ends
    array<Item, place_type> items;
    array<std::uint64_t, place_type> bounds;
  };

  std::uint64_t room_of(std::uint32_t shard) const {
    const std::uint64_t n = larger<std::uint64_t>(sizes_(shard), 16);
    const double part = static_cast<double>(std::uint64_t{1} << order_.shift) / order_.regions;
    return with_slack(static_cast<double>(n) / order_.shards * std::min(part, 1.0), n);
  }
  std::uint32_t* flag() { return reinterpret_cast<std::uint32_t*>(flags_.data()); }

  Me& me_;
  const owners order_;
  const gathered sizes_;
  array<std::uint64_t, place_type> flags_;
  partitioned<Item, place_type> mine_;
  array<std::uint64_t, place_type> bounds_;
  std::vector<visitor> from_;
};

/// Builds a map from pairs with distinct keys while they are sent. Returns nothing, on all shards, if there
/// are duplicates, or too many keys in some region.
template <class Map, class Me, class Source>
std::optional<Map> build_as_they_come(Me& me, const Source& source, const typename Map::options& options) {
  using place_type = typename Me::place_type;
  using items_type = arriving_items<Me, std::remove_cvref_t<decltype(source[0])>>;
  const gathered sizes = me.gather({source.size()});
  if (me.count() == 1 || sizes.sum() < shards_tuning<place_type>::build_pairs) return {};
  const auto plan = frozen_source::plan<Map, place_type>(items_type::expected(sizes, me.count()), options);
  const auto order = items_type::parts_of(options.seed, me.count(), plan.regions);
  if (!order) return {};
  typename Map::options once = options;
  once.max_restarts = 0;
  std::optional<Map> result;
  bool good = true;
  {
    const items_type items(me, source, *order, sizes);
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
