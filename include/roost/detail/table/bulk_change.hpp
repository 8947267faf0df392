#pragma once

#include <bit>

#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/operation.hpp"

// Bulk changes, the same for every table whose ref has them: pairs are inserted one by one, keys erased,
// mixed batches run.

namespace roost::detail {

/// Sums over the teams of a bulk insert, in memory of the place.
struct put_counts {
  std::uint64_t inserted = 0;
  std::uint64_t left = 0;        // pairs that found no room, including those that did not fit in the list
  std::uint32_t put_off = 0;     // tiles that were not begun, because enough was inserted
  std::uint32_t overflowed = 0;  // the partition overflowed its slack, and nothing was inserted
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
  std::uint32_t* put_off = nullptr;      // null: no tile is
  std::uint64_t most = 0;                // inserted, before tiles are put off
};

/// Inserts the pairs of a tile one by one. Values that add up are first added up in the team's scratch, so
/// that many copies of few keys do not contend for their slots.
template <class Place, class Table, class Source, class Change>
struct put_tiles {
  static constexpr int threads = find_tuning<cuda>::threads;
  static constexpr bool adds_up =
      !Change::repeatable && requires { Table::bucket_slots; };  // copies of a key, first
  static constexpr std::uint32_t small_buckets = adds_up ? change_tuning<Place>::small_buckets : 0;
  static constexpr std::uint32_t all_small_buckets = [] {
    if constexpr (adds_up) return Table::sections * small_buckets;
    return 0u;
  }();
  using bucket = typename Table::bucket;
  using value = typename Table::value_type;

  /// Pairs of a team: fewer for a small batch, so that there are enough teams. Adding up in scratch pays only
  /// with copies.
  static std::uint32_t tile_for(std::size_t n) {
    using tuned = change_tuning<Place>;
    if constexpr (!adds_up && requires { tuned::teams; }) {
      const std::size_t rows = larger<std::size_t>(n / (tuned::teams * std::size_t{threads}), 1);
      return static_cast<std::uint32_t>(smaller<std::size_t>(rows * threads, tuned::tile));
    }
    return tuned::tile;
  }

  Table table;
  Source source;
  Change change;
  std::uint32_t tile;
  tile_list list;
  left_over<pair<typename Table::key_type, value>> left;

  struct pieces {
    std::uint32_t* inserted;
    std::uint32_t* enough;
    bucket* small;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1),
            memory.take<bucket>(all_small_buckets)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    constexpr std::uint32_t ahead = find_tuning<Place>::ahead;
    const pieces parts = scratch_of(*this, memory);
    const std::uint32_t number =
        list.tiles == nullptr ? static_cast<std::uint32_t>(index) : list.tiles[index];
    if (team.rank() == 0) {
      *parts.inserted = 0;
      *parts.enough = list.put_off != nullptr && shared_access::load(&left.counts->inserted) >= list.most;
      if (*parts.enough) list.put_off[fetch_add(left.counts->put_off, 1u)] = number;
    }
    for_each_of(team, all_small_buckets, [&](std::uint32_t b) { parts.small[b] = bucket{}; });
    team.sync();
    if (*parts.enough) return;
    const std::uint64_t first = std::uint64_t{number} * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, source.size() - first));
    std::uint32_t inserted = 0;
    const auto put = [&](const auto& key, const value& v) {
      const insertion what = table.put(key, v, change);
      inserted += what == insertion::inserted;
      if (what == insertion::full) left.add(pair_of(key, v));
    };
    for_each_of(team, n, [&](std::uint32_t i) {
      if constexpr (ahead != 0) {
        if (i + ahead < n) table.prefetch(source[first + i + ahead].key);
      }
      if (!source.wanted(first + i)) return;
      const auto item = source[first + i];
      if constexpr (small_buckets != 0) {
        if (table.template put_in_small<team_access>(parts.small, small_buckets, item.key, value_of(item),
                                                     change) != insertion::full)
          return;
      }
      put(item.key, value_of(item));
    });
    if constexpr (small_buckets != 0) {
      team.sync();
      for_each_of(team, all_small_buckets * Table::bucket_slots, [&](std::uint32_t i) {
        const std::uint32_t b = i / Table::bucket_slots;
        const auto& word = parts.small[b].slots[i % Table::bucket_slots];
        if (Table::slot::is_there(word))
          put(table.key_in_section(word, b / small_buckets), Table::slot::value(word));
      });
    }
    if (inserted != 0) team.fetch_add(*parts.inserted, inserted);
    team.sync();
    if (team.rank() == 0 && *parts.inserted != 0)
      fetch_add(left.counts->inserted, std::uint64_t{*parts.inserted});
  }
};

struct all_wanted {
  ROOST_FN bool operator()(std::size_t) const { return true; }
};

struct batch_order {
  ROOST_FN std::size_t operator()(std::size_t i) const { return i; }
};

/// An order of a batch: first a random sixteenth, which shows how many of the other keys are new, then the
/// others in their order. The sample consists of pieces of consecutive pairs, so that reads stay coalesced.
/// Without a sample: the batch in its own order. In words of 32 bits, since a GPU does this for each pair.
struct sample_first {
  static constexpr std::uint32_t share = 16;
  std::uint64_t sampled = 0;  // pairs, a multiple of a piece
  int log2_piece = 0;         // there are fewer than 2^32 pieces
  std::uint32_t seed = 0;

  static sample_first of(std::size_t n, std::uint64_t seed) {
    const int log2_piece =
        n < (std::size_t{1} << 16) ? 0 : larger(5, static_cast<int>(std::bit_width(n)) - 32);
    return {(n / share) >> log2_piece << log2_piece, log2_piece, static_cast<std::uint32_t>(mix64(seed))};
  }

  ROOST_FN std::uint64_t operator()(std::uint64_t i) const {
    if (sampled == 0) return i;
    const auto at = [&](std::uint32_t block, std::uint32_t piece) {
      return (std::uint64_t{block} * share + piece) << log2_piece |
             (i & ((std::uint64_t{1} << log2_piece) - 1));
    };
    const auto of_sample = [&](std::uint32_t block) {
      const std::uint32_t mixed = (block ^ seed) * 0x9e3779b1u;
      return ((mixed ^ mixed >> 15) * 0x85ebca6bu) >> 28;
    };
    const auto piece = static_cast<std::uint32_t>(i >> log2_piece),
               pieces = static_cast<std::uint32_t>(sampled >> log2_piece);
    if (piece < pieces) return at(piece, of_sample(piece));
    const std::uint32_t block = (piece - pieces) / (share - 1), other = (piece - pieces) % (share - 1);
    if (block >= pieces) return i;
    return at(block, other + (other >= of_sample(block) ? 1 : 0));
  }
};

/// Pairs [first, first + count) of a source in some order; is_wanted(i): whether its pair i is inserted.
template <class Source, class Wanted, class Order = batch_order>
struct part_of {
  static constexpr bool all = std::is_same_v<Wanted, all_wanted>;
  Source source;
  Wanted is_wanted;
  std::size_t first, count;
  Order order = {};

  ROOST_FN std::size_t size() const { return count; }
  ROOST_FN bool wanted(std::size_t i) const { return is_wanted(order(first + i)); }
  ROOST_FN auto operator[](std::size_t i) const { return source[order(first + i)]; }
};

/// Inserts pairs one by one into the table of a map: for batches of concurrent_map and stadium_map that are
/// not inserted by region, and for pairs that found no room there.
template <class Place, class Map>
struct tile_inserter {
  const Place& place;
  Map& map;
  bool grows;
  insert_report& report;

  /// A map that grows does so when it reaches its load factor: tiles that have not begun by then are
  /// deferred, room is made, and then they are inserted. Pairs that found no room are in `left`, up to its
  /// size.
  template <class Source, class Change, class Item>
  put_counts run(const Source& source, const Change& change, array<Item, Place>& left) const {
    using kernel = put_tiles<Place, std::remove_cvref_t<decltype(map.inserter())>, Source, Change>;
    array<std::uint32_t, Place> tiles;
    put_counts sum;
    const std::uint32_t tile = kernel::tile_for(source.size());
    for (std::size_t n = ceil_div<std::size_t>(source.size(), tile); n != 0; n = sum.put_off) {
      const std::size_t room = map.room();
      array<std::uint32_t, Place> put_off(place, grows && room < source.size() ? n : 0);
      const std::size_t listed = smaller<std::size_t>(sum.left, left.size()), left_before = sum.left;
      sum = map.noting_inserted(report, [&] {
        return place.template count<put_counts>([&](put_counts* counted, const auto& to) {
          const kernel run{map.inserter(),
                           source,
                           change,
                           tile,
                           {tiles.data(), put_off.data(), room},
                           {left.data() + listed, left.size() - listed, counted}};
          place.launch(n, scratch_bytes_of(run), run, to);
        });
      });
      sum.left += left_before;
      if (sum.put_off == 0) break;
      const std::size_t begun = n - sum.put_off;  // these show how many of the others are new
      const double share =
          1.05 * static_cast<double>(sum.inserted) / static_cast<double>(larger<std::size_t>(begun, 1));
      map.make_room(place, 1 + static_cast<std::size_t>(share * sum.put_off), report);
      tiles = std::move(put_off);
    }
    return sum;
  }
};
template <class Place, class Map>
tile_inserter(const Place&, Map&, bool, insert_report&) -> tile_inserter<Place, Map>;

/// The answer of erase to a query.
struct write_erased {
  using result = bool;
  static constexpr bool changes = true;  // not idempotent
  static constexpr bool plain = true;
  bool* results;
  template <class Table, class Key>
  ROOST_FN result operator()(const Table& table, const Key& key) const {
    return table.erase(key);
  }
  ROOST_FN void put(std::size_t i, result answer) const { results[i] = answer; }
};

/// Writes a struct including its padding, so that no sector is written in parts.
template <class T>
ROOST_FN void store_whole(T* target, const T& value) {
#if ROOST_ON_DEVICE
  ROOST_UNROLL
  for (int i = 0; i < static_cast<int>(value_pieces<T>::count); ++i)
    value_pieces<T>::copy(&value, target, static_cast<std::size_t>(i));
#else
  *target = value;
#endif
}

/// One operation of a mixed batch. If the table supports it, all kinds share one probe sequence.
template <class Table, class Key, class Value>
ROOST_FN operation_result<Value> run_operation(const Table& table, const operation<Key, Value>& mine) {
  const bool finds = mine.kind == operation_kind::find, inserts = mine.kind == operation_kind::insert,
             assigns = mine.kind == operation_kind::insert_or_assign;
  if constexpr (requires { typename Table::any; }) {
    const auto did =
        table.run(mine.key, mine.value, {inserts || assigns, assigns, mine.kind == operation_kind::erase});
    const bool present = did.what == insertion::present, full = did.what == insertion::full;
    operation_result<Value> result{inserts ? did.what == insertion::inserted : !full,
                                   full && (inserts || assigns), mine.value};
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

/// The answer to an operation of a mixed batch.
template <class Value>
struct write_operation_result {
  using result = operation_result<Value>;
  static constexpr bool changes = true;
  static constexpr int teams_at_once = find_tuning<cuda>::run_teams_at_once(sizeof(Value));
  result* results;
  template <class Table, class Key>
  ROOST_FN result operator()(const Table& table, const operation<Key, Value>& mine) const {
    return run_operation<Table, Key, Value>(table, mine);
  }
  ROOST_FN void put(std::size_t i, const result& answer) const { store_whole(results + i, answer); }
};

/// Runs a mixed batch on the direct path.
template <class Place, class Table, class Operations, class Value>
void run_all(const Place& place, const Table& table, const Operations& operations,
             operation_result<Value>* results) {
  probe_directly<driver::one_by_one>(place, table, operations,
                                     answers_from<write_operation_result<Value>>{{results}, 0});
}

}  // namespace roost::detail
