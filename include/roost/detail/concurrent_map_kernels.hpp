#pragma once

#include "roost/concurrent_map.hpp"
#include "roost/detail/bulk.hpp"
#include "roost/detail/slots.hpp"

// What the bulk calls of concurrent_map run on a place.

namespace roost::detail {

/// What the teams of a bulk insert add up, in memory of the place.
struct put_counts {
  std::uint64_t inserted = 0;
  std::uint64_t left = 0;        // pairs that found no room, also those that the list had none for
  std::uint32_t put_off = 0;     // tiles that were not begun, as enough was inserted
  std::uint32_t overflowed = 0;  // the partition ran out of slack, and nothing was inserted
  std::uint64_t freed = 0;       // slots of erased keys that became free
};

/// Pairs that found no room, for another try.
template <class Item>
struct left_over {
  Item* items;
  std::uint64_t room;
  put_counts* counts;

  ROOST_FN void add(const Item& item) const {
    const std::uint64_t i = fetch_add(counts->left, std::uint64_t{1});
    if (i < room) items[i] = item;
  }
};

/// Which tiles of a batch to insert, and which were put off.
struct tile_list {
  const std::uint32_t* tiles = nullptr;  // null: all
  std::uint32_t* put_off = nullptr;      // null: none is
  std::uint64_t most = 0;                // inserted, before tiles are put off
};

/// Inserts the pairs of a tile, each by itself. What adds up is added up in the team's scratch first, so that many copies of few keys do
/// not queue for their slots.
template <class Place, class Table, class Source, class Change>
struct put_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr std::uint32_t tile = tuning<Place>::put_tile;
  static constexpr std::uint32_t small_buckets = Change::repeatable ? 0 : tuning<Place>::put_small_buckets;
  using bucket = typename Table::bucket;
  using value = typename Table::value_type;

  Table table;
  Source source;
  Change change;
  tile_list list;
  left_over<pair<typename Table::key_type, value>> left;

  struct pieces {
    std::uint32_t* inserted;
    std::uint32_t* enough;
    bucket* small;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1), memory.take<bucket>(4 * small_buckets)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    constexpr std::uint32_t ahead = tuning<Place>::find_ahead;
    scratch_memory all(memory);
    const pieces my = scratch(all);
    const std::uint32_t number = list.tiles == nullptr ? static_cast<std::uint32_t>(index) : list.tiles[index];
    if (team.rank() == 0) {
      *my.inserted = 0;
      *my.enough = list.put_off != nullptr && shared_access::load(&left.counts->inserted) >= list.most;
      if (*my.enough) list.put_off[fetch_add(left.counts->put_off, 1u)] = number;
    }
    for_each_of(team, 4 * small_buckets, [&](std::uint32_t b) { my.small[b] = bucket{}; });
    team.sync();
    if (*my.enough) return;
    const std::uint64_t first = std::uint64_t{number} * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, source.size() - first));
    std::uint32_t inserted = 0;
    const auto put = [&](const auto& key, const value& v) {
      const insertion what = table.put(key, v, change);
      inserted += what == insertion::inserted;
      if (what == insertion::full) left.add(make_pair(key, v));
    };
    for_each_of(team, n, [&](std::uint32_t i) {
      if constexpr (ahead != 0) {
        if (i + ahead < n) table.prefetch(source[first + i + ahead].key);
      }
      if (!source.wanted(first + i)) return;
      const auto item = source[first + i];
      if constexpr (small_buckets != 0) {
        if (table.template put_in_small<team_access>(my.small, small_buckets, item.key, value_of(item), change) != insertion::full) return;
      }
      put(item.key, value_of(item));
    });
    if constexpr (small_buckets != 0) {
      team.sync();
      for_each_of(team, 4 * small_buckets * Table::bucket_slots, [&](std::uint32_t i) {
        const std::uint32_t b = i / Table::bucket_slots;
        const auto& word = my.small[b].slots[i % Table::bucket_slots];
        if (Table::slot::is_there(word)) put(table.key_in_quarter(word, b / small_buckets), Table::slot::value(word));
      });
    }
    if (inserted != 0) team.fetch_add(*my.inserted, inserted);
    team.sync();
    if (team.rank() == 0 && *my.inserted != 0) fetch_add(left.counts->inserted, std::uint64_t{*my.inserted});
  }
};

/// The pairs of a partition by region.
template <class Item>
struct pairs_of_partition {
  const Item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  const put_counts* counts;

  ROOST_FN bool lack_some() const { return counts->overflowed != 0; }

  template <class Team, class F>
  ROOST_FN void for_each(const Team& team, std::size_t region, const F& f) const {
    const Item* const first = items + begins[region];
    for_each_in_step(team, static_cast<std::uint32_t>(ends[region] - begins[region]), [&](std::uint32_t i) { f(first[i]); });
  }
};

/// The pairs of another table with the same hash, by region of the table `to`. As the regions of both stand in the order of the hash, they
/// are in few regions.
template <class Table>
struct pairs_of_table {
  Table from, to;

  ROOST_FN bool lack_some() const { return false; }

  template <class Team, class F>
  ROOST_FN void for_each(const Team& team, std::size_t region, const F& f) const {
    const probing::plan& old = from.geometry();
    const std::uint64_t regions = to.geometry().regions, quarter = old.regions / 4, quarter_first = region / (regions / 4) * quarter;
    const std::uint64_t first = region * old.regions / regions, last = ceil_div((region + 1) * old.regions, regions);
    bool some_free = false;
    // A region that is full may have sent keys to the next one, and so on.
    for (std::uint64_t r = first; r < first + quarter && (r < last || (r < last + probing::regions_in_reach - 1 && !some_free)); ++r) {
      const std::uint64_t b0 = (r < quarter_first + quarter ? r : r - quarter) * old.region_buckets;
      bool mine_free = false;
      for_each_of(team, old.region_buckets * Table::bucket_slots, [&](std::uint32_t i) {
        const auto word = from.word_at(b0 * Table::bucket_slots + i);
        mine_free |= Table::slot::is_free(word);
        if (!Table::slot::is_there(word)) return;
        const auto item = make_pair(from.key_of(word, b0 + i / Table::bucket_slots), Table::slot::value(word));
        if (to.region_number(item.key) == region) f(item);
      });
      some_free = team.any(mine_free);
    }
  }
};

/// No pairs: erased keys are taken out, no more.
struct no_pairs {
  ROOST_FN bool lack_some() const { return false; }
  template <class Team, class F>
  ROOST_FN void for_each(const Team&, std::size_t, const F&) const {}
};

/// Fills one region in a team's scratch, and writes the buckets that have changed. Slots of erased keys become free first, in regions that
/// never were full: so no key of theirs lies in the next one.
template <class Place, class Table, class From, class Change>
struct fill_regions {
  static constexpr int threads = tuning<cuda>::fill_threads;
  static constexpr int teams_at_once = tuning<cuda>::fill_teams_at_once;
  static constexpr bool keeps = std::is_same_v<Change, typename Table::keep>;
  using bucket = typename Table::bucket;
  using item = pair<typename Table::key_type, typename Table::value_type>;

  Table table;
  From from;
  Change change;
  bool empty;   // the table is new; else pairs come to those that are there
  bool sweeps;  // there may be erased keys
  left_over<item> left;

  struct pieces {
    bucket* buckets;
    std::uint32_t* inserted;
    std::uint32_t* freed;
    std::uint32_t* strays;
    item* stray;            // belongs outside its home bucket
    std::uint8_t* changed;  // of each bucket
    std::uint8_t* erased;   // the same: it had an erased key at first
    std::uint32_t* passed;  // a bit for each bucket: a key passes it
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    const std::uint32_t buckets = table.geometry().region_buckets;
    return {memory.take<bucket>(buckets),       memory.take<std::uint32_t>(1),
            memory.take<std::uint32_t>(1),      memory.take<std::uint32_t>(1),
            memory.take<item>(most_strays()),   memory.take<std::uint8_t>(buckets),
            memory.take<std::uint8_t>(buckets), memory.take<std::uint32_t>(ceil_div(buckets, 32u))};
  }
  ROOST_FN std::uint32_t most_strays() const { return larger(table.geometry().region_buckets * Table::bucket_slots / 4, 4u); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    using access = std::conditional_t<Team::size == 1, sole_access, team_access>;
    if (from.lack_some()) return;
    scratch_memory all(memory);
    const pieces my = scratch(all);
    const auto region = static_cast<std::uint32_t>(index);
    const std::uint32_t buckets = table.geometry().region_buckets;
    bucket* const there = table.region_of(region);
    if (team.rank() == 0) *my.inserted = *my.freed = *my.strays = 0;
    if (!empty) copy_in(team, there, buckets, my.buckets);
    for_each_of(team, buckets, [&](std::uint32_t b) {
      if (empty) my.buckets[b] = bucket{};
      my.changed[b] = empty;
    });
    team.sync();
    if (sweeps) take_out_erased<access>(team, my, region);
    if (std::is_same_v<From, no_pairs> && *my.freed == 0) return;
    std::uint32_t inserted = 0;
    const auto put = [&](const item& mine, std::uint32_t steps) {
      const auto done = table.template put_in_region<access>(my.buckets, mine.key, value_of(mine), change, steps);
      inserted += done.what == insertion::inserted;
      if (done.what == insertion::inserted || (!keeps && done.what == insertion::present)) my.changed[done.bucket] = 1;
      return done.what != insertion::full;
    };
    // On cuda those that find their home full come together first: a loop in which few of a block's neighbours go on is slow.
    from.for_each(team, region, [&](const item& mine) {
      if constexpr (Team::size != 1) {
        if (put(mine, 1)) return;
        const std::uint32_t i = team.fetch_add(*my.strays, 1u);
        if (i < most_strays()) {
          my.stray[i] = mine;
          return;
        }
      }
      if (!put(mine, buckets)) left.add(mine);
    });
    team.sync();
    for_each_of(team, smaller(*my.strays, most_strays()), [&](std::uint32_t i) {
      if (!put(my.stray[i], buckets)) left.add(my.stray[i]);
    });
    team.add_near(*my.inserted, inserted);
    team.sync();
    write_out(team, my.buckets, buckets, there, my.changed);
    if (team.rank() == 0) {
      fetch_add(left.counts->inserted, std::uint64_t{*my.inserted});
      if (*my.freed != 0) fetch_add(left.counts->freed, std::uint64_t{*my.freed});
    }
  }

  /// Makes slots of erased keys free. A key outside its home bucket first goes back to the first bucket on its way that has such a slot.
  /// Then those become free that lie in buckets which no key passes; the others stay for another time. If too many keys are outside, all
  /// stays as it is.
  template <class Access, class Team>
  ROOST_FN void take_out_erased(const Team& team, const pieces& my, std::uint32_t region) const {
    using slot = typename Table::slot;
    constexpr std::uint32_t bucket_slots = Table::bucket_slots;
    const std::uint32_t quarter = region / (table.geometry().regions / 4), buckets = table.geometry().region_buckets;
    auto* const strays = reinterpret_cast<std::uint32_t*>(my.stray);  // slots
    const auto most = static_cast<std::uint32_t>(most_strays() * sizeof(item) / sizeof(std::uint32_t));
    bool some_erased = false, some_free = false;
    for_each_of(team, buckets, [&](std::uint32_t b) {
      const bucket here = load(my.buckets + b);
      bool erased = false;
      ROOST_UNROLL
      for (std::uint32_t s = 0; s < bucket_slots; ++s) {
        const auto word = here.slots[s];
        erased |= slot::is_erased(word);
        some_free |= slot::is_free(word);
        if (!slot::is_there(word) || table.home_in_region(word, quarter) == b) continue;
        const std::uint32_t i = team.fetch_add(*my.strays, 1u);
        if (i < most) strays[i] = b * bucket_slots + s;
      }
      my.erased[b] = erased;
      if (b % 32 == 0) my.passed[b / 32] = 0;
      some_erased |= erased;
    });
    const bool sensible = team.any(some_erased) && team.any(some_free);
    const std::uint32_t count = *my.strays;
    team.sync();
    if (team.rank() == 0) *my.strays = 0;
    team.sync();
    if (!sensible || count > most) return;
    for_each_of(team, count, [&](std::uint32_t i) {
      const std::uint32_t own = strays[i] / bucket_slots;
      auto& mine = my.buckets[own].slots[strays[i] % bucket_slots];  // nobody else changes it
      const auto moved = mine;
      table.walk_in_region(moved, quarter, own, [&](std::uint32_t b) {
        std::uint32_t& word = my.passed[b / 32];
        const std::uint32_t bit = 1u << b % 32;
        const bool passed = (team.read(word) & bit) != 0;
        if (my.erased[b] && !passed) {
          for (auto& there : my.buckets[b].slots) {
            const auto seen = Access::load(&there);
            if (!slot::is_erased(seen) || !(Access::compare_exchange(&there, seen, moved) == seen)) continue;
            Access::set_key_bits(&mine, slot::erased);
            my.changed[b] = my.changed[own] = 1;
            return false;
          }
        }
        if (!passed) team.fetch_or(word, bit);
        return true;
      });
    });
    team.sync();
    std::uint32_t freed = 0;
    for_each_of(team, buckets, [&](std::uint32_t b) {
      if ((my.passed[b / 32] >> b % 32 & 1) != 0) return;
      for (auto& word : my.buckets[b].slots) {
        if (!slot::is_erased(word)) continue;
        word = {};
        my.changed[b] = 1;
        ++freed;
      }
    });
    team.add_near(*my.freed, freed);
    team.sync();
  }
};

struct all_wanted {
  ROOST_FN bool operator()(std::size_t) const { return true; }
};

/// Pairs [first, first + count) of a source, of which is_wanted(i) tells whether pair i takes part.
template <class Source, class Wanted>
struct part_of {
  static constexpr bool all = std::is_same_v<Wanted, all_wanted>;
  Source source;
  Wanted is_wanted;
  std::size_t first, count;

  ROOST_FN std::size_t size() const { return count; }
  ROOST_FN bool wanted(std::size_t i) const { return is_wanted(first + i); }
  ROOST_FN auto operator[](std::size_t i) const { return source[first + i]; }
};

template <class Stencil>
struct wanted_by {
  Stencil stencil;
  ROOST_FN bool operator()(std::size_t i) const { return static_cast<bool>(stencil[i]); }
};

/// A stencil for n pairs.
template <class Stencil>
auto wanted_of(const Stencil& stencil, std::size_t n, const char* where) {
  const auto sequence = as_sequence(stencil);
  if (sequence.size() != n) {
    throw invalid_argument(std::string(where) + ": " + std::to_string(n) + " keys but a stencil of " + std::to_string(sequence.size()) +
                           "; give one element a key");
  }
  return wanted_by<std::remove_const_t<decltype(sequence)>>{sequence};
}

template <class Wanted>
struct is_wanted {
  Wanted wanted;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return wanted(i) ? 1 : 0; }
};

template <class Table>
struct is_taken {
  Table table;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const { return table.taken(slot) ? 1 : 0; }
};

template <class Table>
struct is_occupied {
  Table table;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const { return table.occupied(slot) ? 1 : 0; }
};

/// What erase answers a query.
struct write_erased {
  using result = bool;
  bool* results;
  template <class Table, class Key>
  ROOST_FN result operator()(const Table& table, const Key& key) const {
    return table.erase(key);
  }
  ROOST_FN void put(std::size_t i, result answer) const { results[i] = answer; }
};

template <class Table, class F>
struct erase_slot_if {
  Table table;
  F f;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    if (!table.occupied(slot)) return 0;
    return call_with_slot(f, table, slot) && table.erase(table.key_at(slot)) ? 1 : 0;
  }
};

/// Writes a struct with the bytes between its members, so that no sector is written in parts.
template <class T>
ROOST_FN void store_whole(T* to, const T& value) {
#if ROOST_ON_DEVICE
  using word = std::conditional_t<alignof(T) == 8, std::uint64_t, std::conditional_t<alignof(T) == 4, std::uint32_t, std::uint8_t>>;
  constexpr int words = sizeof(T) / sizeof(word);
  word bits[words];
  memcpy(bits, &value, sizeof(T));
  ROOST_UNROLL
  for (int i = 0; i < words; ++i) reinterpret_cast<word*>(to)[i] = bits[i];
#else
  *to = value;
#endif
}

/// One operation of a mixed batch. Where the table can, all kinds go the one way.
template <class Table, class Key, class Value>
ROOST_FN operation_result<Value> run_operation(const Table& table, const operation<Key, Value>& mine) {
  const bool finds = mine.kind == operation_kind::find, inserts = mine.kind == operation_kind::insert,
             assigns = mine.kind == operation_kind::insert_or_assign;
  if constexpr (requires { typename Table::any; }) {
    const auto did = table.run(mine.key, mine.value, {inserts || assigns, assigns, mine.kind == operation_kind::erase});
    const bool present = did.what == insertion::present, full = did.what == insertion::full;
    operation_result<Value> result{inserts ? did.what == insertion::inserted : !full, full && (inserts || assigns), mine.value};
    if (present && (finds || inserts)) result.value = Table::slot::value(did.seen);
    if (full && finds) result.value = Value{};
    return result;
  } else {
    if (finds) {
      const auto answer = table.find(mine.key);
      return {answer.has_value(), false, answer.value_or(Value{})};
    }
    if (inserts) {
      const auto answer = table.insert_and_find(mine.key, mine.value);
      return {answer.what == insertion::inserted, answer.what == insertion::full, answer.value};
    }
    if (assigns) {
      const bool full = table.insert_or_assign(mine.key, mine.value) == insertion::full;
      return {!full, full, mine.value};
    }
    return {table.erase(mine.key), false, mine.value};
  }
}

/// Runs a mixed batch.
template <class Place, class Table, class Operations, class Value>
struct run_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr int teams_at_once = tuning<cuda>::run_teams_at_once(sizeof(Value));
  static constexpr std::uint32_t tile = tuning<Place>::find_tile;

  Table table;
  Operations operations;
  operation_result<Value>* results;
  std::size_t count;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t first = std::uint64_t{index} * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - first)), [&](std::uint32_t i) {
      store_whole(results + first + i, run_operation<Table, typename Table::key_type, Value>(table, operations[first + i]));
    });
  }
};

template <class Place, class Table, class Operations, class Value>
void run_all(const Place& place, const Table& table, const Operations& operations, operation_result<Value>* results) {
  using kernel = run_tiles<Place, Table, Operations, Value>;
  place.launch(ceil_div<std::size_t>(operations.size(), kernel::tile), 0, kernel{table, operations, results, operations.size()});
}

/// Inserts a pair; 1 if there is no room.
template <class Table>
struct insert_item {
  Table to;
  const pair<typename Table::key_type, typename Table::value_type>* items;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return to.insert(items[i].key, value_of(items[i])) == insertion::full ? 1 : 0; }
};

/// Inserts the pair of a slot into another table.
template <class Table>
struct copy_slot {
  Table from, to;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    return from.occupied(slot) && to.insert(from.key_at(slot), from.value_at(slot)) == insertion::full ? 1 : 0;
  }
};

template <class Table>
struct count_probes {
  Table table;
  std::uint64_t* keys;  // by probes - 1
  std::uint32_t most;
  ROOST_FN void operator()(std::size_t slot) const {
    const std::uint32_t probes = table.occupied(slot) ? table.probes_of(table.key_at(slot)) : 0;
    if (probes != 0) fetch_add(keys[smaller(probes, most) - 1], std::uint64_t{1});  // 0: erased meanwhile
  }
};

}  // namespace roost::detail
