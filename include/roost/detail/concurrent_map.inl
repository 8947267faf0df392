// Bodies of roost/concurrent_map.hpp.

#include "roost/detail/bulk.hpp"
#include "roost/detail/slots.hpp"

namespace roost {
namespace detail {

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

/// Inserts the pairs of a tile, each by itself. What adds up is added up in the team's scratch first, so that many copies of few keys do not queue for their slots.
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
    for_each_of(team, static_cast<std::uint32_t>(ends[region] - begins[region]), [&](std::uint32_t i) { f(first[i]); });
  }
};

/// The pairs of another table with the same hash, by region of the table `to`. As the regions of both stand in the order of the hash, they are in few regions.
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

/// Fills one region in a team's scratch, and writes it once. Slots of erased keys become free first, in regions that never were full: so no key of theirs lies in the next one.
template <class Place, class Table, class From, class Change>
struct fill_regions {
  static constexpr int threads = tuning<cuda>::build_threads;
  static constexpr int teams_at_once = tuning<cuda>::build_teams_at_once;
  using bucket = typename Table::bucket;
  using item = pair<typename Table::key_type, typename Table::value_type>;

  Table table;
  From from;
  Change change;
  bool empty;  // the table is new; else pairs come to those that are there
  left_over<item> left;

  struct pieces {
    bucket* buckets;
    std::uint32_t* inserted;
    std::uint32_t* freed;
    std::uint32_t* strays;
    item* stray;  // lies, or belongs, outside its home bucket
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<bucket>(table.geometry().region_buckets), memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1),
            memory.take<item>(most_strays())};
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
    bool some_erased = false, some_free = false;
    for_each_of(team, buckets, [&](std::uint32_t b) {
      const bucket mine = empty ? bucket{} : load(there + b);
      my.buckets[b] = mine;
      if (empty) return;
      ROOST_UNROLL
      for (const auto& word : mine.slots) {
        some_erased |= Table::slot::is_erased(word);
        some_free |= Table::slot::is_free(word);
      }
    });
    team.sync();
    if (!empty && team.any(some_erased) && team.any(some_free)) take_out_erased<access>(team, my, region);
    if (std::is_same_v<From, no_pairs> && *my.freed == 0) return;
    std::uint32_t inserted = 0;
    const auto put = [&](const item& mine, std::uint32_t steps) {
      const insertion what = table.template put_in_region<access>(my.buckets, mine.key, value_of(mine), change, steps);
      inserted += what == insertion::inserted;
      return what != insertion::full;
    };
    // On cuda those that find their home full come together first: a loop in which few of a block's neighbours go on is slow.
    const std::uint32_t most = Team::size == 1 ? 0 : most_strays();
    from.for_each(team, region, [&](const item& mine) {
      if (most != 0) {
        if (put(mine, 1)) return;
        const std::uint32_t i = team.fetch_add(*my.strays, 1u);
        if (i < most) {
          my.stray[i] = mine;
          return;
        }
      }
      if (!put(mine, buckets)) left.add(mine);
    });
    team.sync();
    for_each_of(team, smaller(*my.strays, most), [&](std::uint32_t i) {
      if (!put(my.stray[i], buckets)) left.add(my.stray[i]);
    });
    if (inserted != 0) team.fetch_add(*my.inserted, inserted);
    team.sync();
    write_out(team, my.buckets, buckets, there);
    if (team.rank() == 0) {
      fetch_add(left.counts->inserted, std::uint64_t{*my.inserted});
      if (*my.freed != 0) fetch_add(left.counts->freed, std::uint64_t{*my.freed});
    }
  }

  /// Makes slots of erased keys free. Keys outside their home bucket may have passed such slots: they are taken out, and come again. If they are too many, all stays as it is.
  template <class Access, class Team>
  ROOST_FN void take_out_erased(const Team& team, const pieces& my, std::uint32_t region) const {
    using slot = typename Table::slot;
    const std::uint32_t slots = table.geometry().region_buckets * Table::bucket_slots;
    const auto word_at = [&](std::uint32_t s) -> auto& { return my.buckets[s / Table::bucket_slots].slots[s % Table::bucket_slots]; };
    const auto strayed = [&](std::uint32_t s) {
      const auto word = word_at(s);
      return slot::is_there(word) && !table.is_at_home(word, region, s / Table::bucket_slots);
    };
    for_each_of(team, slots, [&](std::uint32_t s) {
      if (!strayed(s)) return;
      const std::uint32_t i = team.fetch_add(*my.strays, 1u);
      const auto word = word_at(s);
      if (i < most_strays()) my.stray[i] = make_pair(table.key_in_quarter(word, region / (table.geometry().regions / 4)), slot::value(word));
    });
    team.sync();
    const std::uint32_t strays = *my.strays;
    team.sync();
    if (team.rank() == 0) *my.strays = 0;
    if (strays <= most_strays()) {
      std::uint32_t freed = 0;
      for_each_of(team, slots, [&](std::uint32_t s) {
        const bool erased = slot::is_erased(word_at(s));
        if (!erased && !strayed(s)) return;
        word_at(s) = {};
        freed += erased;
      });
      if (freed != 0) team.fetch_add(*my.freed, freed);
      team.sync();
      for_each_of(team, strays, [&](std::uint32_t i) {
        table.template put_in_region<Access>(my.buckets, my.stray[i].key, value_of(my.stray[i]), typename Table::keep(), table.geometry().region_buckets);
      });
    }
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
  const bool finds = mine.kind == operation_kind::find, inserts = mine.kind == operation_kind::insert, assigns = mine.kind == operation_kind::insert_or_assign;
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

}  // namespace detail

template <class Key, class Value, class Place>
auto concurrent_map<Key, Value, Place>::checked(const options& options) -> const concurrent_options& {
  if (!(options.load_factor > 0 && options.load_factor <= 1)) {
    throw invalid_argument("roost::concurrent_map: load factor " + detail::text_of(options.load_factor) + " asked for; give more than 0 and at most 1");
  }
  return options;
}

template <class Key, class Value, class Place>
probing::plan concurrent_map<Key, Value, Place>::plan_for(double n, const options& options) {
  return probing::make_plan<Place, Key, Value>(n / checked(options).load_factor, n, options.seed);
}

template <class Key, class Value, class Place>
concurrent_map<Key, Value, Place>::concurrent_map(const Place& place, std::size_t n, options options)
    : options_(checked(options)), plan_(plan_for(static_cast<double>(n), options)), owned_(place, plan_.buckets()) {
  clear(place);
}

template <class Key, class Value, class Place>
concurrent_map<Key, Value, Place>::concurrent_map(const Place& place, std::span<std::byte> storage, options options)
    : options_(checked(options)),
      plan_(probing::make_plan_within<Place, Key, Value>(storage.size(), options.seed)),
      owned_(place, 0),
      borrowed_(reinterpret_cast<bucket*>(storage.data())) {
  options_.grows = false;
  if (reinterpret_cast<std::uintptr_t>(storage.data()) % alignof(bucket) != 0) {
    throw invalid_argument("roost::concurrent_map: storage at an address that is no multiple of " + std::to_string(alignof(bucket)) + "; align it");
  }
  clear(place);
}

template <class Key, class Value, class Place>
std::size_t concurrent_map<Key, Value, Place>::storage_bytes(std::size_t n, const options& options) {
  const auto slots_within = [](std::size_t bytes) { return probing::make_plan_within<Place, Key, Value>(bytes, 0).buckets() * ref_type::bucket_slots; };
  std::size_t bytes = plan_for(static_cast<double>(n), options).buckets() * sizeof(bucket);
  while (static_cast<double>(slots_within(bytes)) * options.load_factor < static_cast<double>(n)) bytes += detail::larger(bytes / 128, sizeof(bucket));
  return bytes;
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::clear(const Place& place) {
  place.fill(buckets(), 0, bytes());  // free slots are zeros
  most_ = {};
}

template <class Key, class Value, class Place>
std::size_t concurrent_map<Key, Value, Place>::size(const Place& place) const {
  return place.sum(capacity(), detail::is_occupied<ref_type>{table()});
}

/// Inserts the pairs of a source one by one, and returns how many found no room: those are in `left`, as many as fit. If the map grows, it does so when it is as full as it
/// should be.
template <class Key, class Value, class Place>
template <class Source, class Change>
std::size_t concurrent_map<Key, Value, Place>::put_each(const Place& place, const Source& source, const Change& change, array<item, Place>& left, insert_report& report) {
  using kernel = detail::put_tiles<Place, ref_type, Source, Change>;
  array<counts, Place> counted(place, 1);
  array<std::uint32_t, Place> tiles(place, 0);
  counts sum;
  for (std::size_t n = detail::ceil_div<std::size_t>(source.size(), kernel::tile); n != 0; n = sum.put_off) {
    array<std::uint32_t, Place> put_off(place, options_.grows ? n : 0);
    sum.inserted = sum.put_off = 0;
    place.copy_from_host(counted.data(), &sum, sizeof(sum));
    const kernel run{table(), source, change, {tiles.data(), put_off.data(), room()}, {left.data(), left.size(), counted.data()}};
    place.launch(n, detail::scratch_bytes_of(run), run);
    place.copy_to_host(&sum, counted.data(), sizeof(sum));
    note_inserted(sum);
    report.inserted += sum.inserted;
    if (sum.put_off != 0) {
      const std::size_t begun = n - sum.put_off;  // which tell how many of the others are new
      make_room(place, begun == 0 ? 1 : 1 + static_cast<std::size_t>(1.05 * static_cast<double>(sum.inserted) / static_cast<double>(begun) * sum.put_off), report);
      tiles = std::move(put_off);
    }
  }
  return sum.left;
}

/// The same by region: pairs of a source that knows which are whose come to an empty table, or to what is there.
template <class Key, class Value, class Place>
template <class From, class Change>
auto concurrent_map<Key, Value, Place>::fill(const Place& place, const ref_type& table, const From& from, const Change& change, bool empty, array<item, Place>& left,
                                             array<counts, Place>& counted) -> counts {
  using kernel = detail::fill_regions<Place, ref_type, From, Change>;
  const kernel run{table, from, change, empty, {left.data(), left.size(), counted.data()}};
  place.launch(table.geometry().regions, detail::scratch_bytes_of(run), run);
  counts sum;
  place.copy_to_host(&sum, counted.data(), sizeof(sum));
  return sum;
}

/// Inserts pairs by region. Nothing, and nothing is done, if there is no memory for that, or if there are too many of one region: copies of few keys, say.
template <class Key, class Value, class Place>
template <class Source, class Change>
auto concurrent_map<Key, Value, Place>::put_by_region(const Place& place, const Source& source, const Change& change, array<item, Place>& left, path way)
    -> std::optional<counts> {
  array<counts, Place> counted(place, 0);
  std::optional<partitioned<item, Place>> parts;
  try {
    const std::size_t n = source.size();
    left = array<item, Place>(place, Change::repeatable ? detail::smaller(n, n / 16 + 4096) : n);
    counted = array<counts, Place>(place, 1);
    place.fill(counted.data(), 0, counted.bytes());
    detail::partitioner<Place, item> partitioner(place, plan_.regions, room::slack, false, &counted.data()->overflowed);
    parts.emplace(partitioner.run(source, table().hash_order(plan_.regions)));
  } catch (const out_of_memory&) {
    if (way == path::regional) throw;
    return {};
  }
  const auto before = std::exchange(most_, std::nullopt);
  const counts sum = fill(place, table(), detail::pairs_of_partition<item>{parts->items(), parts->begins(), parts->ends(), counted.data()}, change, false, left, counted);
  most_ = before;
  if (sum.overflowed != 0) return {};
  return sum;
}

/// Puts a part of a batch into the table. `expected`: how many of its keys are new, as far as is known.
template <class Key, class Value, class Place>
template <class Source, class Change>
void concurrent_map<Key, Value, Place>::put(const Place& place, const Source& source, const Change& change, const bulk_options& how, std::size_t expected, insert_report& report) {
  using tuned = detail::tuning<Place>;
  const std::size_t n = source.size();
  array<item, Place> left(place, 0);  // what found no room, if it is known
  std::size_t listed = 0;
  if constexpr (Source::all) {
    const bool worth_it = static_cast<double>(n) * buckets_read(n) >= static_cast<double>(capacity()) / tuned::put_regional_share && plan_.regions >= tuned::put_regions &&
                          (!options_.grows || room() >= expected);
    if (how.path == path::regional || (how.path == path::automatic && worth_it)) {
      if (const auto sum = put_by_region(place, source, change, left, how.path)) {
        note_inserted(*sum);
        report.inserted += sum->inserted;
        report.path = path::regional;
        if (sum->left == 0) return;
        if (sum->left <= left.size()) listed = sum->left;  // else all is done again, which changes nothing but for what adds up, and then the list is long enough
      }
    }
  }
  for (int hashes = 0;;) {
    array<item, Place> next(place, options_.grows && !Change::repeatable ? (listed != 0 ? listed : n) : 0);
    const std::size_t full = listed != 0 ? put_each(place, detail::part_of<const item*, detail::all_wanted>{left.data(), {}, 0, listed}, change, next, report)
                                         : put_each(place, source, change, next, report);
    if (full == 0) return;
    if (!options_.grows || hashes == 8) {
      report.full += full;
      return;
    }
    count_slots(place);
    if (room() < full) {  // tiles that begin together can be more than there is room for
      make_room(place, detail::smaller(full, static_cast<std::size_t>(limit()) + 1), report);
    } else {  // there are free slots, but not where these keys want to be: another hash spreads them, and at last some more room helps, too
      if (hashes >= 3 || !move(place, {}, true)) move_to(place, 1.25 * limit() + 1, true);
      ++report.rehashes;
      ++hashes;
    }
    if (!Change::repeatable) {
      left = std::move(next);
      listed = full;
    }
  }
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::note_inserted(const counts& sum) {
  if (most_) *most_ = {most_->live + sum.inserted, most_->erased - detail::smaller<std::size_t>(most_->erased, sum.freed)};
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::note_erased(const std::optional<slots_in_use>& before, std::size_t erased) {
  most_ = before;
  if (most_) *most_ = {most_->live - detail::smaller(most_->live, erased), most_->erased + erased};
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::count_slots(const Place& place) {
  const std::size_t live = size(place);
  most_ = {live, place.sum(capacity(), detail::is_taken<ref_type>{table()}) - live};
}

/// How many more keys may come before room is made.
template <class Key, class Value, class Place>
std::size_t concurrent_map<Key, Value, Place>::room() const {
  if (!most_) return 0;
  const double live = static_cast<double>(most_->live), by_slots = (limit() + static_cast<double>(capacity())) / 2 - static_cast<double>(most_->erased);
  return static_cast<std::size_t>(std::max(std::min(limit(), by_slots) - live, 0.0));
}

/// Buckets that an insert of a new key reads, about, if n come.
template <class Key, class Value, class Place>
double concurrent_map<Key, Value, Place>::buckets_read(std::size_t n) const {
  const double taken = most_ ? static_cast<double>(most_->live + most_->erased) + static_cast<double>(n) / 2 : 0;
  return 1 / (1 - std::pow(std::min(taken / static_cast<double>(capacity()), 0.97), ref_type::bucket_slots));
}

/// Makes slots of erased keys free, in place; not in regions that were full.
template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::sweep(const Place& place) {
  array<counts, Place> counted(place, 1);
  array<item, Place> left(place, 0);
  place.fill(counted.data(), 0, counted.bytes());
  const auto before = std::exchange(most_, std::nullopt);
  const counts sum = fill(place, table(), detail::no_pairs(), keep(), false, left, counted);
  most_ = before;
  note_inserted(sum);
}

/// Makes room for more keys if there is less. Only maps that grow get more slots.
template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::make_room(const Place& place, std::size_t more, insert_report& report) {
  if (room() >= more) return;
  if (!options_.grows && most_ && most_->erased <= capacity() / 16) return;  // little to win
  count_slots(place);
  if (room() >= more) return;
  if (most_->erased != 0) {
    sweep(place);
    ++report.rehashes;
    if (room() >= more) return;
  }
  const auto usable = static_cast<std::size_t>(limit());
  if (options_.grows && most_->live + more > usable) {
    move_to(place, static_cast<double>(std::max(most_->live + more, 2 * usable)));
  } else if (most_->erased == 0 || !move(place, {}, false)) {
    return;
  }
  ++report.rehashes;
}

template <class Key, class Value, class Place>
template <class Source, class Wanted, class Change>
insert_report concurrent_map<Key, Value, Place>::put_all(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                                                         const bulk_options& how) {
  insert_report report;
  const std::size_t n = source.size();
  std::size_t first = 0, expected = n;
  if (!options_.grows && n != 0) make_room(place, n, report);
  if (options_.grows && n != 0) {
    if (!most_) count_slots(place);
    if (static_cast<double>(most_->live + n) <= limit()) make_room(place, n, report);
    if (room() < n) {  // there may be room all the same: the first keys tell how many are new
      first = n / 16 + 1;
      put(place, detail::part_of<Source, Wanted>{source, wanted, 0, first}, change, how, first, report);
      const double share = 1.05 * static_cast<double>(report.inserted) / static_cast<double>(first);
      expected = static_cast<std::size_t>(std::min(share, 1.0) * static_cast<double>(n - first));
      make_room(place, expected, report);
    }
  }
  if (first < n) put(place, detail::part_of<Source, Wanted>{source, wanted, first, n - first}, change, how, expected, report);
  std::size_t asked = n;
  if constexpr (!std::is_same_v<Wanted, detail::all_wanted>) asked = place.sum(n, detail::is_wanted<Wanted>{wanted});
  report.present = asked - report.inserted - report.full;
  return report;
}

/// Moves all keys to a table with room for n, or one like this if there is no n: by region if the hash may stay. False: they found no room, or there was no memory for a table like this.
template <class Key, class Value, class Place>
bool concurrent_map<Key, Value, Place>::move(const Place& place, std::optional<double> n, bool other_hash) try {
  const ref_type old = table();
  const std::size_t live = size(place);
  if (borrowed_ != nullptr && n && *n > limit()) {
    throw invalid_argument("roost::concurrent_map: room for " + detail::text_of(*n) + " keys asked for, but the storage has room for " + detail::text_of(limit()) + "; make a map in more storage");
  }
  const bool same_size = !n || borrowed_ != nullptr;
  double more = 1;
  for (int attempt = 0; attempt < 6; ++attempt, more *= 1.25) {
    probing::plan plan = same_size ? plan_ : plan_for(std::max(*n, static_cast<double>(live)) * more, options_);
    plan.seed = other_hash || attempt >= (same_size ? 1 : 3) ? detail::seed_of_attempt(options_.seed, ++hashes_) : plan_.seed;
    array<bucket, Place> to(place, plan.buckets());
    const ref_type target(to.data(), plan);
    bool good;
    if (plan.seed == plan_.seed) {
      array<counts, Place> counted(place, 1);
      place.fill(counted.data(), 0, counted.bytes());
      array<item, Place> left(place, live / 16 + 4096);
      const counts sum = fill(place, target, detail::pairs_of_table<ref_type>{old, target}, keep(), true, left, counted);
      good = sum.left <= left.size() && place.sum(sum.left, detail::insert_item<ref_type>{target, left.data()}) == 0;
    } else {
      place.fill(to.data(), 0, to.bytes());
      good = place.sum(old.capacity(), detail::copy_slot<ref_type>{old, target}) == 0;
    }
    if (!good) continue;
    if (borrowed_ != nullptr) {
      place.copy(borrowed_, to.data(), to.bytes());
    } else {
      owned_ = std::move(to);
    }
    plan_ = plan;
    most_ = {live, 0};
    return true;
  }
  return false;
} catch (const out_of_memory&) {
  if (!n) return false;
  throw;
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::move_to(const Place& place, double n, bool other_hash) {
  if (!move(place, n, other_hash)) {
    throw build_error("roost::concurrent_map: the keys found no room in a table for " + detail::text_of(n) + "; rehash for more, or make the map with another seed");
  }
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report concurrent_map<Key, Value, Place>::insert(const Place& place, const Keys& keys, const Values& values, bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::concurrent_map::insert"), detail::all_wanted(), keep(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values, class Stencil>
insert_report concurrent_map<Key, Value, Place>::insert_if(const Place& place, const Keys& keys, const Values& values, const Stencil& stencil, bulk_options how) {
  const auto source = detail::zip_checked(keys, values, "roost::concurrent_map::insert_if");
  return put_all(place, source, detail::wanted_of(stencil, source.size(), "roost::concurrent_map::insert_if"), keep(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report concurrent_map<Key, Value, Place>::insert_or_assign(const Place& place, const Keys& keys, const Values& values, bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::concurrent_map::insert_or_assign"), detail::all_wanted(), typename ref_type::assign(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values, class F>
insert_report concurrent_map<Key, Value, Place>::insert_or_apply(const Place& place, const Keys& keys, const Values& values, const F& f, bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::concurrent_map::insert_or_apply"), detail::all_wanted(), typename ref_type::template apply<F>{f},
                 how);
}

template <class Key, class Value, class Place>
template <class Keys>
std::size_t concurrent_map<Key, Value, Place>::erase(const Place& place, const Keys& keys, bulk_options how) {
  const auto sequence = detail::as_sequence(keys);
  array<bool, Place> erased(place, sequence.size());
  const auto before = std::exchange(most_, std::nullopt);
  detail::probe_all(place, table(), bytes(), sequence, detail::write_erased{erased.data()}, how);
  const std::size_t count = place.sum(sequence.size(), detail::is_true{erased.data()});
  note_erased(before, count);
  return count;
}

template <class Key, class Value, class Place>
template <class F>
std::size_t concurrent_map<Key, Value, Place>::erase_if(const Place& place, const F& f) {
  const auto before = std::exchange(most_, std::nullopt);
  const std::size_t count = place.sum(capacity(), detail::erase_slot_if<ref_type, F>{table(), f});
  note_erased(before, count);
  return count;
}

template <class Key, class Value, class Place>
template <class Operations, class Results>
void concurrent_map<Key, Value, Place>::run(const Place& place, const Operations& operations, Results&& results) {
  const auto sequence = detail::as_sequence(operations);
  auto* const to = detail::output<operation_result<Value>>(results, sequence.size(), "roost::concurrent_map::run");
  most_ = std::nullopt;
  detail::run_all(place, table(), sequence, to);
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report concurrent_map<Key, Value, Place>::find(const Place& place, const Queries& queries, Results&& results, Value missing, bulk_options how) const {
  return detail::find_values(place, ref(), bytes(), queries, results, missing, how, "roost::concurrent_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report concurrent_map<Key, Value, Place>::find(const Place& place, const Queries& queries, Results&& results, Found&& found, bulk_options how) const {
  return detail::find_values_there(place, ref(), bytes(), queries, results, found, how, "roost::concurrent_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report concurrent_map<Key, Value, Place>::contains(const Place& place, const Queries& queries, Results&& results, bulk_options how) const {
  return detail::find_contained(place, ref(), bytes(), queries, results, how, "roost::concurrent_map::contains");
}

template <class Key, class Value, class Place>
template <class Queries>
std::size_t concurrent_map<Key, Value, Place>::count(const Place& place, const Queries& queries) const {
  return detail::count_all(place, ref(), bytes(), detail::as_sequence(queries));
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
std::size_t concurrent_map<Key, Value, Place>::retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
  const std::size_t n = size(place);
  Key* const keys_to = detail::output<Key>(keys, n, "roost::concurrent_map::retrieve_all");
  Value* const values_to = detail::output<Value>(values, n, "roost::concurrent_map::retrieve_all");
  detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
  return n;
}

template <class Key, class Value, class Place>
template <class F>
void concurrent_map<Key, Value, Place>::for_each(const Place& place, const F& f) const {
  place.for_each(capacity(), detail::visit_slot<reader_type, F>{ref(), f});
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::reserve(const Place& place, std::size_t n) {
  count_slots(place);
  if (n > most_->live && n - most_->live > room()) move_to(place, std::max(static_cast<double>(n), limit()));
}

template <class Key, class Value, class Place>
void concurrent_map<Key, Value, Place>::rehash(const Place& place, std::size_t n) {
  move_to(place, static_cast<double>(n));
}

template <class Key, class Value, class Place>
concurrent_statistics concurrent_map<Key, Value, Place>::statistics(const Place& place) const {
  constexpr std::uint32_t most = probing::buckets_in_reach;
  array<std::uint64_t, Place> by_probes(place, most);
  place.fill(by_probes.data(), 0, by_probes.bytes());
  place.for_each(capacity(), detail::count_probes<reader_type>{ref(), by_probes.data(), most});
  concurrent_statistics result;
  result.capacity = capacity();
  result.bytes = bytes();
  std::uint64_t probes = 0, i = 0;
  for (const std::uint64_t keys : copy_to_host(place, by_probes)) {
    ++i;
    result.keys_by_probes.push_back(keys);
    result.size += keys;
    probes += keys * i;
    if (keys != 0) result.most_probes = static_cast<std::uint32_t>(i);
  }
  result.keys_by_probes.resize(result.most_probes);
  result.erased = place.sum(capacity(), detail::is_taken<reader_type>{ref()}) - result.size;  // slots are not given back, so there are no fewer than before
  if (result.size != 0) result.mean_probes = static_cast<double>(probes) / static_cast<double>(result.size);
  result.load_factor = static_cast<double>(result.size + result.erased) / static_cast<double>(result.capacity);
  return result;
}

template <class Key, class Value, class Place>
bool concurrent_map<Key, Value, Place>::valid(const Place& place) const {
  return place.sum(capacity(), detail::good_slot<reader_type>{ref()}) == size(place);
}

}  // namespace roost
