#pragma once

#include "roost/detail/partition/geometry.hpp"
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

}  // namespace roost::detail
