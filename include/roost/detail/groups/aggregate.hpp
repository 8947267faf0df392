#pragma once

#include <tuple>

#include "roost/detail/groups/numbering.hpp"
#include "roost/functional.hpp"

// Aggregates without grouping: where the order of a key's values does not matter, a team adds up the values
// of a region in a table in scratch memory. Sums of frequent keys are absorbed by the first pass of the
// partition. The groups are in ascending order of the hashes of their keys, with seed 0, whatever is combined
// and in whatever way: Python's GroupBy relies on it.

namespace roost::detail {

/// How a function combines values as unsigned words, in any order.
enum class word_operation { none, add, add_floats, least, bits_or, bits_xor };

template <class F, class Value>
constexpr word_operation word_operation_of = [] {
  constexpr bool integer = std::is_integral_v<Value> && !std::is_same_v<Value, bool> && sizeof(Value) <= 8;
  constexpr bool fraction = std::is_same_v<Value, float> || std::is_same_v<Value, double>;
  if (std::is_same_v<F, plus>) {
    return integer ? word_operation::add : fraction ? word_operation::add_floats : word_operation::none;
  } else if (std::is_same_v<F, minimum> || std::is_same_v<F, maximum>) {
    return integer || fraction ? word_operation::least : word_operation::none;
  } else if (std::is_same_v<F, bit_and> || std::is_same_v<F, bit_or>) {
    return integer ? word_operation::bits_or : word_operation::none;
  }
  return std::is_same_v<F, bit_xor> && integer ? word_operation::bits_xor : word_operation::none;
}();

/// A value as the word that is combined: in the order of the values where the least one is wanted, and the
/// complement where it is the greatest; bits that all values have are those that no complement has.
template <class F, class Value>
struct value_word {
  using word = std::conditional_t<sizeof(Value) <= 4, std::uint32_t, std::uint64_t>;
  static constexpr word_operation operation = word_operation_of<F, Value>;
  static constexpr bool ordered = operation == word_operation::least;
  static constexpr bool complement = std::is_same_v<F, maximum> || std::is_same_v<F, bit_and>;
  static constexpr word sign = word{1} << (8 * sizeof(word) - 1);
  /// Combined with it, a word stays the same.
  static constexpr word identity = ordered                                   ? static_cast<word>(~word{0})
                                   : operation == word_operation::add_floats ? sign  // -0.0
                                                                             : word{0};

  ROOST_FN static word of(const Value& value) {
    word bits;
    if constexpr (std::is_integral_v<Value>) {
      bits = static_cast<word>(value);
      if (ordered && std::is_signed_v<Value>) bits ^= sign;
    } else {
      memcpy(&bits, &value, sizeof(Value));
      if (ordered) bits ^= (bits & sign) != 0 ? static_cast<word>(~word{0}) : sign;
    }
    return complement ? static_cast<word>(~bits) : bits;
  }
  ROOST_FN static Value value(word bits) {
    if (complement) bits = static_cast<word>(~bits);
    if constexpr (std::is_integral_v<Value>) {
      return static_cast<Value>(ordered && std::is_signed_v<Value> ? bits ^ sign : bits);
    } else {
      if (ordered) bits ^= (bits & sign) != 0 ? sign : static_cast<word>(~word{0});
      Value result;
      memcpy(&result, &bits, sizeof(Value));
      return result;
    }
  }
  /// Values whose extremes depend on their order: NaNs, and a zero that is equal to another one.
  ROOST_FN static bool depends_on_order(const Value& value) {
    if constexpr (std::is_integral_v<Value> || !ordered) {
      return false;
    } else {
      return value != value || (value == 0 && of(value) != of(Value{0}));
    }
  }

  ROOST_FN static word combine(word a, word b) {
    if constexpr (operation == word_operation::add) {
      return a + b;
    } else if constexpr (operation == word_operation::add_floats) {
      return of(value(a) + value(b));
    } else if constexpr (operation == word_operation::least) {
      return smaller(a, b);
    } else if constexpr (operation == word_operation::bits_or) {
      return a | b;
    } else {
      return a ^ b;
    }
  }
  /// Combines into a word of scratch.
  template <class Team>
  ROOST_FN static void combine(const Team& team, word& target, word mine) {
    if constexpr (operation == word_operation::add && sizeof(word) == 8 && Team::size > 1) {
      // In shared memory, 8 bytes are added by compare-and-swap; and most numbers are small.
      auto* const half = reinterpret_cast<std::uint32_t*>(&target);
      const auto low = static_cast<std::uint32_t>(mine);
      const std::uint32_t before = team.fetch_add(half[0], low);
      const std::uint32_t high = static_cast<std::uint32_t>(mine >> 32) + (before + low < before ? 1 : 0);
      if (high != 0) team.fetch_add(half[1], high);
    } else if constexpr (operation == word_operation::add) {
      team.fetch_add(target, mine);
    } else if constexpr (ordered) {
      if (team.read(target) > mine) team.fetch_min(target, mine);
    } else {
      word seen = team.read(target), next;
      while ((next = combine(seen, mine)) != seen) {
        const word now = team.compare_exchange(target, seen, next);
        if (now == seen) break;
        seen = now;
      }
    }
  }
  /// Combines into a word that all teams see.
  ROOST_FN static void combine_for_all(word& target, word mine) {
    if constexpr (operation == word_operation::add) {
      fetch_add(target, mine);
    } else {
      word seen = peek(target), next;
      while ((next = combine(seen, mine)) != seen) {
        const word now = shared_access::compare_exchange(&target, seen, next);
        if (now == seen) break;
        seen = now;
      }
    }
  }
};

/// What several functions make of the values of a key.
template <class Value, class... F>
struct reducers {
  static constexpr int count = sizeof...(F);
  using word = typename value_word<plus, Value>::word;
  struct words {
    word* of[count];
  };

  /// body(value_word of function k, k).
  template <class Body>
  ROOST_FN static void each(const Body& body) {
    int k = 0;
    (body(value_word<F, Value>(), k++), ...);
  }
  ROOST_FN static words take(scratch_memory& memory, std::size_t n) {
    words result;
    for (int k = 0; k < count; ++k) result.of[k] = memory.take<word>(n);
    return result;
  }
  ROOST_FN static void clear(const words& target, std::size_t i) {
    each([&](auto f, int k) { target.of[k][i] = decltype(f)::identity; });
  }
  template <class Team>
  ROOST_FN static void clear_all(const Team& team, const words& target, std::uint32_t n) {
    each([&](auto f, int k) { fill_words(team, target.of[k], n, decltype(f)::identity); });
  }
  template <class Team>
  ROOST_FN static void add(const Team& team, const words& target, std::size_t i, const Value& value) {
    each([&](auto f, int k) { f.combine(team, target.of[k][i], f.of(value)); });
  }
  ROOST_FN static bool depends_on_order(const Value& value) {
    bool does = false;
    each([&](auto f, int) { does |= f.depends_on_order(value); });
    return does;
  }
};

/// Chooses regions by the leading bits of the hash. Items of frequent keys are absorbed: a tile of the
/// partition combines their values, and adds them to `values` and `counts`.
template <class Key, class Value, class... F>
struct hot_keys {
  using reduce = reducers<Value, F...>;
  static constexpr std::uint16_t none = 0xffff;

  leading_bits spread;
  regions_and_frequent_keys<Key> found;  // by other regions
  std::uint32_t slots;                   // of a tile's table of these keys, a power of two: slots_for()
  typename reduce::words values;         // of each frequent key, in memory of the place
  std::uint32_t* counts;

  ROOST_FN std::uint32_t operator()(const Key& key) const { return spread(key); }
  ROOST_FN bool absorbs_key(const Key& key) const { return found.is_frequent(key); }
  const leading_bits& after_absorbing() const { return spread; }

  static std::uint32_t slots_for(std::uint32_t keys) {
    return keys == 0 ? 0 : larger(256u, std::bit_ceil(4 * keys));
  }
  /// Scratch bytes of a tile.
  static std::size_t bytes(std::uint32_t keys) {
    return slots_for(keys) * sizeof(std::uint16_t) +
           keys * (sizeof(Key) + sizeof(std::uint32_t) + reduce::count * sizeof(typename reduce::word));
  }

  struct pieces {
    std::uint16_t* slot;  // of a table of the keys: their numbers
    Key* key;
    typename reduce::words value;
    std::uint32_t* count;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint16_t>(slots), memory.take<Key>(found.count),
            reduce::take(memory, found.count), memory.take<std::uint32_t>(found.count)};
  }
  template <class Team>
  ROOST_FN void begin(const Team& team, const pieces& parts) const {
    if (found.count == 0) return;
    for_each_of(team, slots, [&](std::uint32_t s) { parts.slot[s] = none; });
    for_each_of(team, found.count, [&](std::uint32_t f) {
      parts.key[f] = found.frequent[f];
      parts.count[f] = 0;
      reduce::clear(parts.value, f);
    });
    team.sync();
    for_each_of(team, found.count, [&](std::uint32_t f) {
      std::uint32_t s = home(parts.key[f]);
      while (team.compare_exchange(parts.slot[s], none, static_cast<std::uint16_t>(f)) != none) s = next(s);
    });
  }
  /// Whether an item is absorbed.
  template <class Team, class Item>
  ROOST_FN bool take(const Team& team, const pieces& parts, const Item& item) const {
    if (found.count == 0) return false;
    for (std::uint32_t s = home(item.key);; s = next(s)) {
      const std::uint16_t f = parts.slot[s];
      if (f == none) return false;
      if (!same_key(parts.key[f], item.key)) continue;
      if (reduce::depends_on_order(item.value)) return false;  // the region reports it
      team.fetch_add(parts.count[f], 1u);
      reduce::add(team, parts.value, f, item.value);
      return true;
    }
  }
  template <class Team>
  ROOST_FN void end(const Team& team, const pieces& parts) const {
    if (found.count == 0) return;
    team.sync();
    for_each_of(team, found.count, [&](std::uint32_t f) {
      if (parts.count[f] == 0) return;
      fetch_add(counts[f], parts.count[f]);
      reduce::each([&](auto of, int k) { of.combine_for_all(values.of[k][f], parts.value.of[k][f]); });
    });
  }

 private:
  ROOST_FN std::uint32_t home(const Key& key) const {  // by the last bits: the first ones are the region's
    return static_cast<std::uint32_t>(hash_of(key, spread.seed)) & (slots - 1);
  }
  ROOST_FN std::uint32_t next(std::uint32_t s) const { return (s + 1) & (slots - 1); }
};

template <class Reduce>
struct clear_hot {
  typename Reduce::words values;
  std::uint32_t* counts;
  ROOST_FN void operator()(std::size_t f) const {
    counts[f] = 0;
    Reduce::clear(values, f);
  }
};

/// What the host reads.
struct aggregation_outcome {
  std::uint32_t overflowed;  // the partition ran out of slack
  std::uint32_t failed;      // regions with too many different keys
  std::uint32_t in_order;    // a value was found that depends on the order
  std::uint32_t most;        // different keys of a region, where they were only counted
  std::uint64_t size;        // different keys
};

/// Combines the values of each key of a region.
template <class Place, class Key, class Value, class... F>
struct aggregate_regions {
  static constexpr int threads = group_tuning<cuda>::aggregate_threads;
  static constexpr int teams_at_once = group_tuning<cuda>::aggregate_teams;
  using item = pair<Key, Value>;
  using reduce = reducers<Value, F...>;
  using words = region_words<Key, host>;  // those of the host identify every key of at most 8 bytes
  using word = typename words::word;
  static constexpr word none_here = static_cast<word>(~word{0});
  static constexpr std::uint32_t steps_most = 2048;
  static constexpr std::size_t slot_bytes = sizeof(word) + reduce::count * sizeof(typename reduce::word) +
                                            sizeof(std::uint32_t) + sizeof(std::uint16_t);

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint32_t regions;
  std::uint32_t shared_by;   // regions that have their items in common: each takes those of its keys
  std::uint32_t count_each;  // if not 0: every so many regions only count their keys
  words words_of;
  hot_keys<Key, Value, F...> hot;
  std::uint32_t slots;
  Key* keys;
  Value* values[reduce::count];
  std::uint64_t* counts;  // or null
  aggregation_outcome* outcome;
  earlier_teams turns;

  struct pieces {
    std::uint64_t* shared;
    std::uint32_t* found;  // keys in the slots of each warp
    std::uint16_t* taken;  // of each warp: its occupied slots
    word* slot;
    typename reduce::words value;
    std::uint32_t* count;
  };
  /// What is used most comes after an array of variable length: nvcc 13 computes constant addresses of shared
  /// memory again in every loop.
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(2),     memory.take<std::uint32_t>(32),
            memory.take<std::uint16_t>(slots),
            memory.take<word>(slots + 32),  // the last ones remain free
            reduce::take(memory, slots),       memory.take<std::uint32_t>(slots)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (outcome->overflowed != 0) return;
    scratch_memory all(memory);
    const pieces parts = scratch(all);
    const auto clear = [&] {
      fill_words(team, parts.slot, slots + 32, none_here);
      fill_words(team, parts.count, slots, 0);
      reduce::clear_all(team, parts.value, slots);
    };
    std::uint64_t region = index * count_each;
    if (count_each == 0) {
      region = turns.turn(team, parts.shared, clear);
    } else {
      clear();
      team.sync();
    }
    bool full = false, in_order = false;
    add_frequent(team, parts, static_cast<std::uint32_t>(region), full);
    const std::uint32_t shared = static_cast<std::uint32_t>(region) / shared_by;
    const std::uint64_t begin = begins[shared], end = ends[shared];
    ROOST_ROLLED
    for (std::uint64_t first = begin; first < end; first += tile<Team>) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile<Team>, end - first));
      add_items(team, parts, static_cast<std::uint32_t>(region), first, n, full, in_order);
    }
    if (in_order && peek(outcome->in_order) == 0) fetch_or(outcome->in_order, 1u);
    full = team.any(full);
    finish(team, parts, region, full);
  }

 private:
  template <class Team>
  static constexpr int per_worker = Team::size == 1 ? 1024 : 4;
  template <class Team>
  static constexpr std::uint32_t tile = per_worker<Team> * static_cast<std::uint32_t>(Team::size);

  /// Keys at home in the last of these slots may take the ones behind.
  ROOST_FN std::uint32_t home_of(word w) const {
    return static_cast<std::uint32_t>(std::uint64_t{words::leading(w)} * (slots - slots / 32 - 48) >> 31);
  }

  /// Adds n items. A thread of a block reads the first slots of all its items before it needs them.
  template <class Team>
  ROOST_FN void add_items(const Team& team, const pieces& parts, std::uint32_t region, std::uint64_t first,
                          std::uint32_t n, bool& full, bool& in_order) const {
    const held_items<per_worker<Team>, Team, const item*> mine(team, items, first, n);
    const auto look = [&](int held, int i, word& wanted) {
      const Key key = mine(held, i).key;
      if (shared_by != 1 && hot(key) != region) return none_here;
      wanted = words_of.of(key).word;
      return static_cast<word>(team.read(parts.slot[home_of(wanted)]));
    };
    const auto add = [&](int held, int i, std::uint32_t s) {
      const Value value = mine(held, i).value;
      in_order |= reduce::depends_on_order(value);
      team.fetch_add(parts.count[s], 1u);
      reduce::add(team, parts.value, s, value);
    };
    if constexpr (Team::size == 1) {
      for_each_held<per_worker<Team>>(team, n, [&](int held, int i) {
        word wanted = none_here;
        const word seen = look(held, i, wanted);
        if (wanted == none_here) return;
        const std::uint32_t s = slot_of(team, parts, wanted, seen, full);
        if (!full) add(held, i, s);
      });
    } else {
      word wanted[per_worker<Team>], seen[per_worker<Team>];
      ROOST_UNROLL
      for (int held = 0; held < per_worker<Team>; ++held) wanted[held] = none_here;
      for_each_held<per_worker<Team>>(team, n,
                                      [&](int held, int i) { seen[held] = look(held, i, wanted[held]); });
      ROOST_UNROLL
      for (int held = 0; held < per_worker<Team>; ++held) {
        const bool some = wanted[held] != none_here;
        const std::uint32_t s = some ? slot_of(team, parts, wanted[held], seen[held], full) : 0;
        team.sync_near();  // they have left the loop one by one
        if (some && !full) add(held, held, s);
      }
    }
  }

  /// The slot of a word, whose home has been read. `full` becomes true if there is none left, or the way to
  /// it is so long that keys must have been chosen to collide.
  template <class Team>
  ROOST_FN std::uint32_t slot_of(const Team& team, const pieces& parts, word mine, word seen,
                                 bool& full) const {
    std::uint32_t s = home_of(mine), left = smaller(slots - s, steps_most);
    while (seen != mine) {
      if (seen == none_here) {
        seen = team.compare_exchange(parts.slot[s], none_here, mine);
        if (seen == none_here) break;
      } else if (--left == 0) {
        full = true;
        break;
      } else {
        seen = team.read(parts.slot[++s]);
      }
    }
    return s;
  }

  /// What the partition has absorbed of a region.
  template <class Team>
  ROOST_FN void add_frequent(const Team& team, const pieces& parts, std::uint32_t region, bool& full) const {
    if (hot.found.count == 0) return;
    std::uint32_t first = 0, end = hot.found.count;
    if constexpr (Team::size == 1) {  // they are in hash order
      first = lower_bound(0u, end, [&](std::uint32_t f) { return hot(hot.found.frequent[f]) < region; });
      end = lower_bound(first, end, [&](std::uint32_t f) { return hot(hot.found.frequent[f]) == region; });
    }
    for_each_of(team, end - first, [&](std::uint32_t i) {
      const std::uint32_t f = first + i;
      const Key key = hot.found.frequent[f];
      if (hot.counts[f] == 0 || hot(key) != region) return;
      const word mine = words_of.of(key).word;
      const std::uint32_t s = slot_of(team, parts, mine, team.read(parts.slot[home_of(mine)]), full);
      if (full) return;
      team.fetch_add(parts.count[s], hot.counts[f]);
      reduce::each([&](auto of, int k) { of.combine(team, parts.value.of[k][s], hot.values.of[k][f]); });
    });
  }

  template <class Team>
  ROOST_FN void finish(const Team& team, const pieces& parts, std::uint64_t region, bool full) const {
    constexpr auto near = static_cast<std::uint32_t>(Team::near_size),
                   warps = static_cast<std::uint32_t>(Team::size) / near;
    const auto rank = static_cast<std::uint32_t>(team.rank());
    const std::uint32_t warp = rank / near, lane = rank % near;
    // Each warp lists the occupied ones of its slots, so that none of its threads is idle afterwards.
    const std::uint32_t of_warp = ceil_div(slots, near * warps) * near,
                        first = smaller(warp * of_warp, slots), end = smaller(first + of_warp, slots);
    std::uint32_t mine = 0;
    ROOST_ROLLED
    for (std::uint32_t s = first + lane; s < end; s += near) {
      const bool occupied = parts.slot[s] != none_here;
      const std::uint32_t taken = team.ballot_near(occupied);
      if (occupied)
        parts.taken[first + mine + count_bits(taken & ((1u << lane) - 1))] = static_cast<std::uint16_t>(s);
      mine += count_bits(taken);
    }
    if (lane == 0) parts.found[warp] = mine;
    team.sync();
    const std::uint32_t last = parts.found[warps - 1];  // the scan writes after a barrier
    team.exclusive_scan(parts.found, parts.found, warps);
    team.sync();
    const std::uint32_t found = full ? 0 : parts.found[warps - 1] + last;
    if (count_each != 0) {
      if (rank == 0) fetch_max(outcome->most, full ? slots : found);
      return;
    }
    if (full && rank == 0) fetch_add(outcome->failed, 1u);
    const std::uint64_t base = turns.sum_before(team, region, found, parts.shared + 1);
    if (region + 1 == regions && rank == 0) outcome->size = base + found;
    if (full) return;
    ROOST_ROLLED
    for (std::uint32_t i = lane; i - lane < mine; i += near) {
      const std::uint32_t s = i < mine ? parts.taken[first + i] : 0;
      const std::uint32_t number = i < mine ? parts.found[warp] + i + steps_in_run(parts, s) : 0;
      team.sync_near();
      if (i < mine) write(parts, s, region, base + number);
    }
  }

  /// How much later the key of a slot comes in the order of the keys than in that of the slots. The slots
  /// from its home on are all occupied, and the lesser keys among these and behind are in the same run.
  ROOST_FN std::uint32_t steps_in_run(const pieces& parts, std::uint32_t s) const {
    const word mine = parts.slot[s];
    const std::uint32_t home = home_of(mine);
    std::uint32_t steps = home - s;  // modulo 2^32
    word other;
    ROOST_ROLLED
    for (std::uint32_t t = home; (other = parts.slot[t]) != none_here; ++t) steps += other < mine ? 1 : 0;
    return steps;
  }

  ROOST_FN void write(const pieces& parts, std::uint32_t s, std::uint64_t region,
                      std::uint64_t number) const {
    const word mine = parts.slot[s];
    keys[number] = words_of.key(static_cast<std::uint32_t>(region), {mine, 0});
    reduce::each([&](auto of, int k) { values[k][number] = of.value(parts.value.of[k][s]); });
    if (counts != nullptr) counts[number] = parts.count[s];
  }
};

/// Whether an earlier item of a sample has the key of item i.
template <class Source>
struct is_repeated {
  static constexpr std::uint32_t sample = 1 << 16, slots = 2 * sample;
  item_of_sample<Source> items;
  std::uint64_t* hashes;  // a table of those seen, empty slots are 0

  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t mine = std::uint64_t{hash_of(items[i].key)} << 1 | 1;
    for (auto s = static_cast<std::uint32_t>(mine >> 1) % slots;; s = (s + 1) % slots) {
      const std::uint64_t seen = shared_access::compare_exchange(hashes + s, std::uint64_t{0}, mine);
      if (seen == 0 || seen == mine) return seen == 0 ? 0 : 1;
    }
  }
};

/// The distinct keys in hash order, with what each function makes of their values.
template <class Key, class Value, class Place, std::size_t N>
struct aggregates {
  array<Key, Place> keys;
  std::array<array<Value, Place>, N> values;
  array<std::uint64_t, Place> counts;  // if requested
};

/// Aggregates a batch.
template <class Place, class Key, class Value, class... F>
class aggregator {
  using kernel = aggregate_regions<Place, Key, Value, F...>;
  using reduce = typename kernel::reduce;
  using word = typename reduce::word;
  using item = typename kernel::item;
  using tuning = group_tuning<Place>;
  using parts_type = partitioned<item, Place>;
  static constexpr std::uint32_t sample = group_tuning<cuda>::sample, regions_most = [] {
    std::uint32_t regions = 2;  // of one pass
    while (2 * regions <= partition_tuning<Place>::digits_most) regions *= 2;
    return regions;
  }();

 public:
  using result_type = aggregates<Key, Value, Place, sizeof...(F)>;

  aggregator(const Place& place, std::size_t n, bool counts) : place_(place), n_(n), counts_(counts) {}

  /// Returns nothing if a table was too small, or a value depends on the order, or nearly all keys of a large
  /// batch are distinct: these are grouped faster.
  template <class Source>
  std::optional<result_type> run(const Source& source) {
    const bool one_pass = keys_of(static_cast<double>(n_) / regions_most) <= keys_most();
    plan wanted{.coarse = regions_most};
    if (one_pass) wanted.coarse = regions_of_one_pass();
    const bool samples = n_ >= 4 * sample;
    // A small batch is first tried without a sample.
    if (one_pass && (n_ <= tuning::tried_most || !samples)) {
      if (attempt(source, wanted, room::slack)) return finish();
      if (!samples) attempt(source, wanted, room::exact);
    }
    if (samples && outcome_.failed + outcome_.in_order == 0 && outcome_.size == 0) {
      look_for_frequent(source);
      const double pairs = seen_.pairs, most = static_cast<double>(n_);
      wanted.copies = larger(8.0, 4 * pairs * most / sample / sample);
      if (!one_pass) {
        while ((n_ >> wanted.fine_bits) / wanted.coarse > keys_wanted()) ++wanted.fine_bits;
        wanted.counts_first = pairs > 0;
        if (pairs == 0 && seen_.frequent == 0 && are_different(source)) return {};
      }
      if (!attempt(source, wanted, room::slack) && outcome_.overflowed != 0)
        attempt(source, wanted, room::exact);
    }
    return finish();
  }

 private:
  struct plan {
    std::uint32_t coarse = 2;     // regions of the first pass
    std::uint32_t fine_bits = 0;  // of the second pass; 0: none
    bool counts_first = false;    // whether the second pass is needed: keys may be few
    double copies = 8;
  };

  /// The slots of a table in scratch of that many bytes.
  static std::uint32_t slots_that_fit(std::size_t bytes) {
    const std::size_t slots = (bytes - 1024) / (32 * kernel::slot_bytes) * 32;
    return static_cast<std::uint32_t>(smaller<std::size_t>(slots, 1 << 16));  // 16 bits number them
  }
  std::size_t bytes_most() const { return smaller(place_.scratch_most(), tuning::aggregate_bytes); }
  /// The most keys of one of many regions with a mean of `mean`.
  static double keys_of(double mean) { return mean + 6 * std::sqrt(mean) + 16; }
  double keys_most() const { return 0.8 * slots_that_fit(bytes_most()); }
  /// The slots for that many keys: twice as many, or what is left if two teams run at once, or one does.
  std::uint32_t slots_for(double keys) const {
    const std::uint32_t half = slots_that_fit(bytes_most() / 2);
    if (2 * keys < half) return smaller(static_cast<std::uint32_t>(keys / 16) * 32 + 96, half);
    return keys <= 0.75 * half ? half : slots_that_fit(bytes_most());
  }
  /// The keys that a region should have: two teams at once are faster than one.
  std::size_t keys_wanted() const {
    return smaller<std::size_t>(tuning::aggregate_keys, slots_that_fit(bytes_most() / 2) * 5 / 9);
  }
  std::uint32_t regions_of_one_pass() const {
    const std::size_t regions = ceil_div(n_, keys_wanted());
    return static_cast<std::uint32_t>(
        smaller<std::size_t>(larger<std::size_t>(regions + regions % 2, 2), regions_most));
  }

  template <class Source>
  void look_for_frequent(const Source& source) {
    const auto fit = static_cast<std::size_t>(smaller<std::size_t>(
        tuning::hot_bytes, place_.scratch_most() - smaller(place_.scratch_most(), tuning::scatter_bytes)));
    for (double items = static_cast<double>(n_) / 2048;; items *= 2) {
      frequent_ = frequent_keys<Key, Place>(leading_bits{0, regions_most});
      array<sample_outcome, Place> outcome(place_, 1);
      seen_ = {};
      if (!frequent_->look(place_, source, items, outcome.data())) break;
      place_.copy_to_host(&seen_, outcome.data(), sizeof(seen_));
      frequent_->take(seen_);
      if (hot_keys<Key, Value, F...>::bytes(seen_.frequent) <= fit) break;
      seen_.frequent = 0;
      frequent_->take(seen_);
    }
    const std::size_t keys = frequent_->region_of.count;
    hot_counts_ = array<std::uint32_t, Place>(place_, keys);
    hot_values_ = array<word, Place>(place_, keys * reduce::count);
  }
  template <class Source>
  bool are_different(const Source& source) const {
    using repeated = is_repeated<Source>;
    auto hashes = zeros(place_, repeated::slots);
    return place_.sum(repeated::sample, repeated{{source, n_ / repeated::sample}, hashes.data()}) < 4;
  }
  typename reduce::words hot_words() {
    typename reduce::words result;
    for (int k = 0; k < reduce::count; ++k)
      result.of[k] = hot_values_.data() + static_cast<std::size_t>(k) * hot_counts_.size();
    return result;
  }

  /// False if it did not succeed: outcome_ says why.
  template <class Source>
  bool attempt(const Source& source, const plan& wanted, room room) {
    leading_bits spread{0, wanted.coarse << wanted.fine_bits};
    regions_and_frequent_keys<Key> found(spread);
    if (frequent_) found = frequent_->region_of;
    const hot_keys<Key, Value, F...> hot{spread, found, hot_keys<Key, Value, F...>::slots_for(found.count),
                                         hot_words(), hot_counts_.data()};
    place_.for_each(found.count, clear_hot<reduce>{hot.values, hot.counts});
    constexpr std::size_t head = ceil_div(sizeof(aggregation_outcome), sizeof(std::uint64_t));
    auto state = zeros(place_, head + earlier_teams::words(std::size_t{spread.regions}));
    auto* const outcome = reinterpret_cast<aggregation_outcome*>(state.data());
    std::uint32_t shared_by = 1, regions = spread.regions;
    double keys = keys_of(static_cast<double>(n_) / regions);
    partitioner<Place, item, partition_kind{}> partitioner(place_, spread.regions, room, &outcome->overflowed,
                                                           0, wanted.copies);
    const auto stop = [&](const parts_type& parts) {
      if (!wanted.counts_first || parts.regions() != wanted.coarse) return false;
      constexpr std::uint32_t counted = 8, part = 8;
      const std::uint32_t shared_most = wanted.copies > 64 ? 4 : 1;  // skewed keys fit no smaller regions
      run_kernel(parts, hot, wanted.coarse * part, part, wanted.coarse * part / counted,
                 slots_that_fit(bytes_most()), outcome, state.data() + head, counted);
      place_.copy_to_host(&outcome_, outcome, sizeof(outcome_));
      const double most = double{part} * outcome_.most + 6 * std::sqrt(double{part} * outcome_.most) + 64;
      while (shared_by <= shared_most && most / shared_by > keys_most()) shared_by *= 2;
      if (outcome_.overflowed == 0 && shared_by > shared_most) {
        shared_by = 1;
        keys = smaller(keys, keys_of(most / (1 << wanted.fine_bits)));
        return false;
      }
      regions = wanted.coarse * shared_by;
      keys = most / shared_by;
      return true;
    };
    const auto parts = partitioner.run(
        source, hot, wanted.counts_first ? static_cast<std::uint32_t>(std::countr_zero(wanted.coarse)) : 0,
        stop);
    if (wanted.counts_first && outcome_.overflowed != 0) return false;
    const std::uint32_t slots = slots_for(keys);
    const std::size_t room_for = smaller<std::size_t>(n_, std::size_t{regions} * slots);
    result_.keys = array<Key, Place>(place_, room_for);
    for (auto& values : result_.values) values = array<Value, Place>(place_, room_for);
    result_.counts = array<std::uint64_t, Place>(place_, counts_ ? room_for : 0);
    run_kernel(parts, hot, regions, shared_by, 0, slots, outcome, state.data() + head, regions);
    place_.copy_to_host(&outcome_, outcome, sizeof(outcome_));
    return outcome_.overflowed + outcome_.failed + outcome_.in_order == 0;
  }

  void run_kernel(const parts_type& parts, hot_keys<Key, Value, F...> hot, std::uint32_t regions,
                  std::uint32_t shared_by, std::uint32_t count_each, std::uint32_t slots,
                  aggregation_outcome* outcome, std::uint64_t* turns, std::uint32_t teams) {
    hot.spread.regions = regions;
    kernel run{parts.items(),
               parts.begins(),
               parts.ends(),
               regions,
               shared_by,
               count_each,
               typename kernel::words(hot.spread),
               hot,
               slots,
               result_.keys.data(),
               {},
               result_.counts.data(),
               outcome,
               earlier_teams(turns)};
    for (int k = 0; k < reduce::count; ++k)
      run.values[k] = result_.values[static_cast<std::size_t>(k)].data();
    place_.launch(teams, scratch_bytes_of(run), run);
  }

  std::optional<result_type> finish() {
    if (outcome_.overflowed + outcome_.failed + outcome_.in_order != 0) return {};
    truncate(place_, result_.keys, outcome_.size);
    for (auto& values : result_.values) truncate(place_, values, outcome_.size);
    truncate(place_, result_.counts, outcome_.size);
    return std::move(result_);
  }

  const Place& place_;
  std::size_t n_;
  bool counts_;
  std::optional<frequent_keys<Key, Place>> frequent_;
  sample_outcome seen_{};
  array<std::uint32_t, Place> hot_counts_;
  array<word, Place> hot_values_;
  aggregation_outcome outcome_{};
  result_type result_;
};

/// Whether the values of these keys are aggregated without grouping.
template <class Key, class Value, class... F>
constexpr bool has_words = sizeof(Key) <= 8 && ((word_operation_of<F, Value> != word_operation::none) && ...);
template <class Value, class... F>
constexpr bool sums_floats = ((word_operation_of<F, Value> == word_operation::add_floats) || ...);

}  // namespace roost::detail
