#pragma once

#include <cmath>

#include "roost/detail/frozen/layout.hpp"
#include "roost/detail/place/lanes.hpp"

/// \file
/// Layout `bucketed`: buckets of plain slots, for keys and values of any size.

namespace roost {

/// Regions of buckets; a bucket is 4 or 8 slots that are read at once: on cuda one 32-byte sector, on the
/// host one 64-byte line, for pairs of 4 + 4 bytes. A key's hash determines its region and its home bucket
/// there; a key whose home is full goes to the next bucket of the region.
///
/// A lookup reads one bucket, and another one only if the bucket has overflowed. This mark takes no memory:
/// the first two keys of a bucket are in ascending order, or in descending order if the bucket has
/// overflowed. Empty slots hold a key of another region, so no key and no value is reserved.
///
/// A region is built by one team in shared memory: a counter for each bucket assigns its slots, then the
/// region is written once.
struct bucketed {
  using options = frozen_options;
  static constexpr double load_factor_most = 1;
  static constexpr const char* name = "bucketed";
  static constexpr detail::layout_abilities can{.hash_order = true, .builds_in_turn = true};

  template <std::size_t Bytes, class Key, class Value>
  struct bucket_of;
  template <class Place, class Key, class Value>
  class table;
  template <class Place, class Key, class Value, bool Small = false, class Items = const pair<Key, Value>*>
  struct builder;
  template <class Place, class Key, class Value>
  using small_builder = builder<Place, Key, Value>;

  /// The geometry of one build attempt.
  struct plan : detail::layout_plan<> {
    std::uint32_t region_buckets = 0;
    bool small() const { return true; }
  };

  template <class Place, class Key, class Value>
  static plan make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts = 0);
};

/// The slots that are probed at once: keys together, values together. `Bytes`: the wanted size; a bucket has
/// 4 or 8 slots. For 4 + 4 bytes on cuda:
///
///     | key 0 | key 1 | key 2 | key 3 | value 0 | value 1 | value 2 | value 3 |
template <std::size_t Bytes, class Key, class Value>
struct bucketed::bucket_of {
  static constexpr int slots = Bytes / (sizeof(Key) + sizeof(Value)) >= 8 ? 8 : 4;

  struct alignas(detail::larger<std::size_t>(16, alignof(Key))) key_block {
    Key key[slots];
  };
  struct value_block {
    Value value[slots];
  };

  key_block keys;
  value_block values;

  ROOST_FN Value value(int s) const { return values.value[s]; }
  ROOST_FN void set(int s, const pair<Key, Value>& item) {
    keys.key[s] = item.key;
    values.value[s] = item.value;
  }
};

template <std::size_t Bytes, class Key>
struct bucketed::bucket_of<Bytes, Key, none> {
  static constexpr int slots = Bytes / sizeof(Key) >= 8 ? 8 : 4;

  struct alignas(detail::larger<std::size_t>(16, alignof(Key))) key_block {
    Key key[slots];
  };

  key_block keys;

  ROOST_FN none value(int) const { return {}; }
  ROOST_FN void set(int s, const pair<Key, none>& item) { keys.key[s] = item.key; }
};

/// The buckets of a map: see roost::lookups for its operations.
template <class Place, class Key, class Value>
class bucketed::table : public lookups<bucketed::table<Place, Key, Value>, Key, Value> {
 public:
  using typename lookups<table, Key, Value>::hit;
  using bucket = bucket_of<detail::build_tuning<Place>::bucket_bytes, Key, Value>;
  static constexpr int bucket_slots = bucket::slots;
  /// What a probe reads at once: a whole bucket with its values if it has the usual size, otherwise its keys.
  static constexpr bool reads_values = sizeof(bucket) <= detail::build_tuning<Place>::bucket_bytes;
  static constexpr bool on_host = std::is_same_v<Place, host>;  // which needs no copy of data in its cache
  using read_type =
      std::conditional_t<on_host, none, std::conditional_t<reads_values, bucket, typename bucket::key_block>>;

  table(std::byte* memory, const plan& p)
      : buckets_(reinterpret_cast<bucket*>(memory)),
        seed_(p.region_of.seed),
        regions_(p.regions),
        region_buckets_(p.region_buckets),
        empty_(detail::find_empty_keys<Key>(p.region_of)) {}
  static std::size_t bytes_of(const plan& p) {
    return std::size_t{p.regions} * p.region_buckets * sizeof(bucket);
  }

  /// Splits keys by the leading bits of their hash, which is the order of the buckets.
  detail::leading_bits hash_order(std::uint32_t parts) const { return {seed_, parts}; }

  /// The number of slots.
  ROOST_FN std::uint64_t capacity() const { return std::uint64_t{regions_} * region_buckets_ * bucket_slots; }
  double load_factor(std::size_t size) const {
    return static_cast<double>(size) / static_cast<double>(capacity());
  }

  // Slots by number, for iteration and checks.

  ROOST_FN bool occupied(std::uint64_t slot) const { return !same_key(key_at(slot), empty_key_of(slot)); }
  ROOST_FN const Key& key_at(std::uint64_t slot) const {
    return buckets_[slot / bucket_slots].keys.key[slot % bucket_slots];
  }
  ROOST_FN Value value_at(std::uint64_t slot) const {
    return buckets_[slot / bucket_slots].value(static_cast<int>(slot % bucket_slots));
  }
  ROOST_FN Value* value_address(std::uint64_t slot) const
    requires(!std::is_same_v<Value, none>)
  {
    return &buckets_[slot / bucket_slots].values.value[slot % bucket_slots];
  }
  ROOST_FN void set_key(std::uint64_t slot, const Key& key) const {
    buckets_[slot / bucket_slots].keys.key[slot % bucket_slots] = key;
  }
  ROOST_FN void set(std::uint64_t slot, const pair<Key, Value>& item) const {
    buckets_[slot / bucket_slots].set(static_cast<int>(slot % bucket_slots), item);
  }
  /// Empties a slot. A bucket of empty slots has not overflowed.
  ROOST_FN void clear(std::uint64_t slot) const { set(slot, detail::pair_of(empty_key_of(slot), Value{})); }

  // Lookups in steps: see detail/table/probe.hpp. A step reads a bucket; a bucket that has not overflowed is
  // the last one.

  static constexpr detail::bulk_drivers drivers{};

  struct cursor_type {
    Key key;
    std::uint64_t first;  // bucket of the region
    std::uint32_t bucket;
    std::uint32_t steps;  // taken so far
    read_type here;       // of the bucket that was read
  };

  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    return f(none());
  }

  ROOST_FN cursor_type start(const Key& key) const {
    const bucket_of_key first = home(key);
    return {key, std::uint64_t{first.region} * region_buckets_, first.bucket, 0, {}};
  }

  ROOST_FN void read(none, cursor_type& cursor) const {
    if constexpr (on_host) {
    } else if constexpr (reads_values) {
      cursor.here = detail::load(buckets_ + cursor.first + cursor.bucket);
    } else {
      cursor.here = detail::load(&buckets_[cursor.first + cursor.bucket].keys);
    }
  }

  ROOST_FN int match(none, const cursor_type& cursor) const { return slot_in(keys_of(cursor), cursor.key); }

  ROOST_FN void take(none, const cursor_type& cursor, int slot, hit& result) const {
    const std::uint64_t b = cursor.first + cursor.bucket;
    result = {value_in(cursor.here, b, slot), b * bucket_slots + static_cast<unsigned>(slot),
              cursor.steps + 1};
  }

  ROOST_FN bool passed(none, const cursor_type& cursor) const { return overflowed(keys_of(cursor)); }

  ROOST_FN bool goes_on(none format, cursor_type& cursor, hit&) const {
    const bool more = passed(format, cursor), unseen = ++cursor.steps < region_buckets_;
    cursor.bucket = cursor.bucket + 1 == region_buckets_ ? 0 : cursor.bucket + 1;
    return more & unseen;  // & is one branch
  }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] const cursor_type& cursor) const {
#if !ROOST_ON_DEVICE
    const bucket* const next = buckets_ + cursor.first + cursor.bucket;
    __builtin_prefetch(next);
    __builtin_prefetch(next + 1);
#endif
  }

 private:
  template <class P, class K, class V, bool Small, class Items>
  friend struct bucketed::builder;

  /// What a slot holds if it is empty.
  ROOST_FN Key empty_key_of(std::uint64_t slot) const {
    return empty_.of(static_cast<std::uint32_t>(slot / bucket_slots / region_buckets_));
  }

  struct bucket_of_key {
    std::uint32_t region;
    std::uint32_t bucket;  // in the region
  };

  ROOST_FN bucket_of_key home(const Key& key) const {
    const auto region = split_hash(hash_of(key, seed_), regions_);
    return {static_cast<std::uint32_t>(region.digit),
            static_cast<std::uint32_t>(split_hash(region.rest, region_buckets_).digit)};
  }

  ROOST_FN const typename bucket::key_block& keys_of(const cursor_type& cursor) const {
    if constexpr (on_host) {
      return buckets_[cursor.first + cursor.bucket].keys;
    } else if constexpr (reads_values) {
      return cursor.here.keys;
    } else {
      return cursor.here;
    }
  }

  ROOST_FN detail::small_value<Value> value_in([[maybe_unused]] const read_type& here, std::uint64_t b,
                                               int s) const {
    if constexpr (detail::is_large_value<Value>) {
      return {};
    } else {
#if ROOST_ON_DEVICE
      if constexpr (reads_values && !on_host) {
        Value value = here.value(0);
        ROOST_UNROLL
        for (int i = 1; i < bucket_slots; ++i) {  // what was read is in registers, which cannot be indexed
          if (i == s) value = here.value(i);
        }
        return value;
      }
#endif
      return buckets_[b].value(s);
    }
  }

  ROOST_FN static int slot_in(const typename bucket::key_block& keys, const Key& key) {
    if constexpr (on_host && sizeof(Key) == 4) {
      return detail::first_of(detail::equal_lanes<32, bucket_slots>(keys.key, key_bits(key), ~0u));
    }
#if ROOST_LANES
    if constexpr (on_host && sizeof(Key) == 8)
      return detail::first_of(detail::equal_halves<bucket_slots>(keys.key, key_bits(key), ~std::uint64_t{0}));
    if constexpr (on_host && sizeof(Key) == 16)
      return detail::first_of(detail::equal_quads<bucket_slots>(keys.key, &key));
#endif
    int slot = -1;
    ROOST_UNROLL
    for (int s = 0; s < bucket_slots; ++s) {
      if (same_key(keys.key[s], key)) slot = s;
    }
    return slot;
  }

  ROOST_FN static bool overflowed(const typename bucket::key_block& keys) {
    return key_less(keys.key[1], keys.key[0]);
  }

  bucket* buckets_;
  std::uint64_t seed_;
  std::uint32_t regions_;
  std::uint32_t region_buckets_;
  detail::empty_keys<Key> empty_;
};

template <class Place, class Key, class Value>
bucketed::plan bucketed::make_plan(std::size_t n, const options& options, int attempt, std::uint32_t parts) {
  if (!(options.load_factor > 0 && options.load_factor <= load_factor_most)) {
    detail::raise<invalid_argument>({"roost::bucketed: load factor ", options.load_factor,
                                     "; give more than 0 and at most ", load_factor_most});
  }
  using bucket = typename table<Place, Key, Value>::bucket;
  using tuned = detail::build_tuning<Place>;
  const double slots = static_cast<double>(n) / options.load_factor;
  // The slots of a region should absorb the variation of a random split with no more room than the load
  // factor leaves, so regions must be large at high load factors.
  const double spare = 1 / options.load_factor - 1;
  const double pairs_for_spread = spare > 0 ? 36 / (spare * spare) : 1e18;
  const double bytes =
      std::clamp(pairs_for_spread / options.load_factor * sizeof(bucket) / bucket::slots,
                 static_cast<double>(tuned::region_bytes), static_cast<double>(tuned::region_bytes_most));
  const double regions = std::ceil(slots / bucket::slots * sizeof(bucket) / bytes);
  detail::check_table_bytes(slots / bucket::slots * sizeof(bucket), regions, "roost::bucketed");
  plan p{};
  p.regions = static_cast<std::uint32_t>(detail::regions_from_parts(std::max(2.0, regions), parts));
  const double mean = static_cast<double>(n) / p.regions;
  double region_slots =
      std::max(slots / p.regions, std::min(static_cast<double>(n), mean + 6 * std::sqrt(mean)));
  if (attempt > 1) region_slots *= std::pow(1.25, attempt - 1);
  p.region_buckets = static_cast<std::uint32_t>(std::max(1.0, std::ceil(region_slots / bucket::slots)));
  p.region_of = detail::regions_of<Key>({detail::seed_of_attempt(options.seed, attempt), p.regions});
  return p;
}

/// Builds one region, by detail::region_build.
template <class Place, class Key, class Value, bool Small, class Items>
struct bucketed::builder {
  static constexpr int threads = detail::build_tuning<cuda>::threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = detail::build_tuning<cuda>::teams_at_once;
  using item = pair<Key, Value>;
  using bucket = typename table<Place, Key, Value>::bucket;
  static constexpr int slots_of_bucket = bucket::slots;

  table<Place, Key, Value> target;
  detail::region_items<item, Items> source;

  struct pieces : detail::region_pieces {
    static constexpr std::uint32_t unit_slots = bucket::slots;
    static constexpr std::uint32_t count_mask = ~0u;

    bucket* buckets;
    std::uint32_t* owner;  // in place of the buckets: the number of each slot's item

    /// A slot as one number.
    ROOST_FN static std::uint32_t place(std::uint32_t b, std::uint32_t s) { return b * unit_slots + s; }
  };

  builder(const table<Place, Key, Value>& table, const detail::region_items<item, Items>& items)
      : target(table), source(items) {}

  ROOST_FN pieces scratch(detail::scratch_memory& memory) const {
    pieces parts;
    parts.slots = std::uint64_t{target.region_buckets_} * slots_of_bucket;
    parts.strays_most = target.region_buckets_ * slots_of_bucket / 2;
    parts.take(memory, target.region_buckets_);
    const std::size_t bytes =
        detail::larger(sizeof(bucket), slots_of_bucket * sizeof(std::uint32_t)) * target.region_buckets_;
    parts.buckets = memory.take<bucket>(detail::ceil_div(bytes, sizeof(bucket)));
    parts.owner = reinterpret_cast<std::uint32_t*>(parts.buckets);
    return parts;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const std::size_t region = source.from + index;
    if (source.stopped(team)) return;
    const pieces parts = detail::scratch_of(*this, memory);
    detail::region_build(team, *this, region, parts).run();
  }

  /// Where a pair is in its probe sequence of buckets.
  struct cursor_type {
    std::uint32_t bucket;
    ROOST_FN std::uint32_t unit() const { return bucket; }
    ROOST_FN void next(const builder& b) { bucket = bucket + 1 == b.target.region_buckets_ ? 0 : bucket + 1; }
  };
  template <class Pieces>
  ROOST_FN cursor_type home(const Key& key, std::uint32_t) const {
    return {target.home(key).bucket};
  }

  // How far a worker may probe on average. Keys that were chosen to share a home probe farther than those of
  // a full table; other hash functions spread them.
  static constexpr std::uint64_t steps_of_stray = 64;   // buckets
  static constexpr std::uint64_t steps_of_claim = 256;  // slots

  struct steps {
    std::uint64_t left;
    ROOST_FN void begin() { left += steps_of_stray; }
    ROOST_FN bool go_on() { return left != 0 && left-- != 0; }
  };
  ROOST_FN steps tries_of_stray(const pieces&) const { return {std::uint64_t{4} * target.region_buckets_}; }

  template <class Team>
  ROOST_FN void clear(const Team& team, std::uint32_t region, const pieces& parts) const {
    const Key empty = target.empty_.of(region);
    detail::for_each_of(team, target.region_buckets_, [&](std::uint32_t b) {
      parts.count[b] = 0;
      clear(parts.buckets[b], empty);
    });
  }
  ROOST_FN static void clear(bucket& b, const Key& empty) {
    ROOST_UNROLL
    for (int s = 0; s < slots_of_bucket; ++s) b.keys.key[s] = empty;
  }

  ROOST_FN void put(const pieces& parts, const cursor_type& cursor, std::uint32_t s, const item& mine) const {
    parts.buckets[cursor.bucket].set(static_cast<int>(s), mine);
  }

  // The count of a bucket shows whether pairs continued past it; there is no stash.
  template <class Team>
  ROOST_FN void pass(const Team&, const pieces&, const cursor_type&) const {}
  template <class Team>
  ROOST_FN bool put_aside(const Team&, const pieces&, const Items&, std::uint32_t, const cursor_type&) const {
    return false;
  }

  /// Whether a stray has passed a pair with the same key.
  ROOST_FN bool passed_its_key(const pieces& parts, const Items&, std::uint32_t place,
                               [[maybe_unused]] std::uint32_t region) const {
    const std::uint32_t last = place / slots_of_bucket;
    const Key key = parts.buckets[last].keys.key[place % slots_of_bucket];
    bool passed = false;
    for (auto cursor = home<pieces>(key, region); cursor.bucket != last; cursor.next(*this)) {
      ROOST_UNROLL
      for (int s = 0; s < slots_of_bucket; ++s)
        passed |= same_key(parts.buckets[cursor.bucket].keys.key[s], key);
    }
    return passed;
  }

  /// Returns false if there are too many distinct keys, or too many of them share a home.
  template <class Team>
  ROOST_FN bool place_by_claims(const Team& team, std::uint32_t, const Items& items, std::uint64_t count,
                                const pieces& parts) const {
    const std::uint32_t slots = target.region_buckets_ * slots_of_bucket;
    detail::for_each_of(team, slots, [&](std::uint32_t s) { parts.owner[s] = detail::no_owner; });
    detail::for_each_of(team, target.region_buckets_, [&](std::uint32_t b) { parts.count[b] = 0; });
    if (team.rank() == 0) *parts.placed = 0;
    std::uint64_t steps_left = slots;
    return detail::claim_each(team, items, count, parts.placed, [&](std::uint32_t i, const Key& key) {
      steps_left += steps_of_claim;
      const auto on_pass = [&](std::uint32_t slot) {
        --steps_left;
        if (slot % slots_of_bucket == slots_of_bucket - 1)
          team.exchange(parts.count[slot / slots_of_bucket], 1u);
      };
      const detail::probing_of_item from{
          .table = {parts.owner, slots},
          .home = target.home(key).bucket * slots_of_bucket,
          .steps_most = static_cast<std::uint32_t>(detail::smaller<std::uint64_t>(slots, steps_left))};
      return detail::claim_slot(team, from, items, i, on_pass);
    });
  }

  /// Writes the region; false if `twice`, or if two pairs of a bucket have the same key (which claims
  /// exclude).
  template <class Team>
  ROOST_FN bool seal(const Team& team, std::uint32_t region, const Items& items, const pieces& parts,
                     bool twice, bool by_counting) const {
    bucket* const out = target.buckets_ + std::uint64_t{region} * target.region_buckets_;
    if (by_counting) {
      if (team.any(twice))
        return false;  // from here on buckets change, and are no longer searched for copies
      detail::for_each_of(team, target.region_buckets_, [&](std::uint32_t b) {
        const std::uint32_t n = detail::smaller<std::uint32_t>(parts.count[b], slots_of_bucket);
        twice |= finish(parts.buckets[b], n, parts.count[b] > slots_of_bucket);
      });
      if (team.any(twice)) return false;
      detail::write_out(team, parts.buckets, target.region_buckets_, out);
      return true;
    }
    const Key empty = target.empty_.of(region);
    detail::for_each_of(team, target.region_buckets_, [&](std::uint32_t b) {
      bucket mine;
      clear(mine, empty);
      for (int s = 0; s < 2; ++s) mine.set(s, detail::pair_of(empty, Value{}));  // finish() reads both
      std::uint32_t n = 0;
      for (; n < slots_of_bucket && parts.owner[b * slots_of_bucket + n] != detail::no_owner; ++n) {
        mine.set(static_cast<int>(n), items[parts.owner[b * slots_of_bucket + n]]);
      }
      static_cast<void>(finish(mine, n, parts.count[b] != 0));
      out[b] = mine;
    });
    return true;
  }

  /// Marks a bucket if it overflowed; returns whether two of its n keys are equal.
  ROOST_FN static bool finish(bucket& b, std::uint32_t n, bool overflowed) {
    const std::uint32_t empties = slots_of_bucket - n;
    const bool twice = equal_pairs(b.keys) != empties * (empties - 1) / 2;
    const item first = detail::pair_of(b.keys.key[0], b.value(0));
    const item second = detail::pair_of(b.keys.key[1], b.value(1));
    const bool less = key_less(second.key, first.key), same = same_key(first.key, second.key);
    const bool swap = (less != overflowed) & !same;
    b.set(0, swap ? second : first);  // no branch: half of the buckets swap
    b.set(1, swap ? first : second);
    return twice;
  }

  /// How many pairs of a bucket's slots hold the same key: compares slots r apart, for every r, in an order
  /// that can be vectorised.
  ROOST_VECTOR_FN static std::uint32_t equal_pairs(const typename bucket::key_block& keys) {
    constexpr int half = slots_of_bucket / 2;
    Key around[2 * slots_of_bucket];
    std::uint32_t equal[slots_of_bucket] = {};
    ROOST_UNROLL
    for (int s = 0; s < slots_of_bucket; ++s) around[s] = around[s + slots_of_bucket] = keys.key[s];
    ROOST_UNROLL
    for (int r = 1; r < half; ++r) {
      ROOST_UNROLL
      for (int s = 0; s < slots_of_bucket; ++s) equal[s] += same_key(keys.key[s], around[s + r]);
    }
    ROOST_UNROLL
    for (int s = 0; s < half; ++s) equal[s] += same_key(keys.key[s], keys.key[s + half]);
    std::uint32_t sum = 0;
    ROOST_UNROLL
    for (int s = 0; s < slots_of_bucket; ++s) sum += equal[s];
    return sum;
  }
};

}  // namespace roost
