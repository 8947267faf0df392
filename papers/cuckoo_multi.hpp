#pragma once

#include "cuckoo.hpp"
#include "roost/frozen_multimap.hpp"

// The multi-value and the compacting hash of Alcantara et al. 2009, sections 4.2 and 4.3, for comparison: use
// frozen_multimap and two_way_index instead.

namespace roost::bench {

/// A slot: a key and its run of values.
template <class Key>
struct alignas(16) cuckoo_run {
  Key key;
  std::uint32_t count;  // of values; 0: an empty slot
  std::uint64_t first;  // the first value; in a cuckoo_index, the key's index
};

/// The table of both, for kernels: the sub-tables of layout `cuckoo`, in its order.
template <class Key>
struct cuckoo_runs {
  static_assert(std::is_integral_v<Key> && sizeof(Key) == 4, "keys are integers of 4 bytes, as the paper's");
  cuckoo_run<Key>* slots;
  std::uint32_t* seeds;
  cuckoo::first_level region_of;

  ROOST_FN std::uint64_t slot(std::uint32_t region, std::uint32_t s) const {
    return (std::uint64_t{s / cuckoo::subtable_slots} * region_of.regions + region) * cuckoo::subtable_slots +
           s % cuckoo::subtable_slots;
  }

  /// The slot of a key, or an empty one.
  ROOST_FN cuckoo_run<Key> find(const Key& key) const {
    const std::uint32_t region = region_of(key);
    const std::uint32_t seed = seeds[region];
    for (std::uint32_t i = 0; i < 3; ++i) {
      const cuckoo_run<Key> here = detail::load(
          slots + slot(region, i * cuckoo::subtable_slots + cuckoo::slot_in_subtable(key, i, seed)));
      if (here.count != 0 && here.key == key) return here;
    }
    return {key, 0, 0};
  }
};

/// Phase 2: a region of any number of items, all copies of a key among them. Without values (`none`), keys
/// only get a count of one: section 4.3.
template <class Key, class Value>
struct build_cuckoo_runs {
  static constexpr int threads = cuckoo::region_most;
  static constexpr std::uint32_t seeds_most =
      16;  // the first half are the paper's functions; after all, the region has too many items
  static constexpr bool has_values = !std::is_same_v<Value, none>;
  using item = pair<Key, Value>;

  /// A worker's state of an item.
  struct placed {
    Key key;
    std::uint32_t slot;
    std::uint32_t offset;  // in its key's run
  };

  cuckoo_runs<Key> target;
  detail::region_items<item> source;
  placed* rest;  // one for each item
  Value* values;

  struct pieces {
    Key* key;              // of each slot; arbitrary if the slot was never written
    std::uint32_t* count;  // of its values
    std::uint32_t* first;
    std::uint32_t* reserved;   // values for which there is room
    std::uint32_t* different;  // keys
  };
  ROOST_FN pieces scratch(detail::scratch_memory& memory) const {
    constexpr std::uint32_t n = cuckoo::region_slots;
    return {memory.take<Key>(n), memory.take<std::uint32_t>(n), memory.take<std::uint32_t>(n),
            memory.take<std::uint32_t>(1), memory.take<std::uint32_t>(1)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region_index, std::byte* memory) const {
    detail::scratch_memory all(memory);
    const pieces parts = scratch(all);
    const auto region = static_cast<std::uint32_t>(region_index);
    const item* const items = source.first(region);
    const std::uint64_t begin = source.begins[region];
    const auto n = static_cast<std::uint32_t>(source.count(region));

    constexpr std::uint32_t per_worker =
        4;  // items that a worker keeps in registers; the state of others is in memory
    placed held[per_worker];
    const auto for_each_item = [&](const auto& body) {
      std::uint32_t i = static_cast<std::uint32_t>(team.rank());
      ROOST_UNROLL
      for (std::uint32_t h = 0; h < per_worker; ++h, i += Team::size) {
        if (i < n) body(i, held[h]);
      }
      ROOST_ROLLED
      for (; i < n; i += Team::size) body(i, rest[begin + i]);
    };
    for_each_item([&](std::uint32_t i, placed& it) { it.key = items[i].key; });

    std::uint32_t seed = 0, attempt = 0;
    int rounds = 0;
    for (; rounds == 0 && attempt < seeds_most; ++attempt) {
      seed = mix32(region, mix32(attempt)) & ~cuckoo::ours;
      if (attempt >= seeds_most / 2) seed |= cuckoo::ours;
      rounds = place(team, for_each_item, seed, parts);
    }
    if (rounds == 0) {
      if (team.rank() == 0) detail::fetch_add(source.counts->overfull, std::uint64_t{1});
      return;
    }

    write_runs(team, for_each_item, region, parts);
    if (team.rank() == 0) {
      target.seeds[region] = seed;
      detail::fetch_add(source.counts->placed, std::uint64_t{*parts.different});
      detail::fetch_add(source.counts->rounds, static_cast<std::uint64_t>(rounds));
      if (attempt > 1) detail::fetch_add(source.counts->region_restarts, std::uint64_t{attempt - 1});
    }
  }

  /// When all items have slots: writes the run of each slot, and the values of all runs.
  template <class Team, class ForEachItem>
  ROOST_FN void write_runs(const Team& team, const ForEachItem& for_each_item, std::uint32_t region,
                           const pieces& parts) const {
    const std::uint64_t begin = source.begins[region];
    detail::for_each_of(team, cuckoo::region_slots, [&](std::uint32_t s) { parts.count[s] = 0; });
    if (team.rank() == 0) *parts.reserved = *parts.different = 0;
    team.sync();
    for_each_item([&](std::uint32_t, placed& it) {
      if constexpr (has_values) {
        it.offset = team.fetch_add(parts.count[it.slot], 1u);
      } else {
        team.exchange(parts.count[it.slot], 1u);
      }
    });
    team.sync();
    std::uint32_t different = 0;
    detail::for_each_of(team, cuckoo::region_slots, [&](std::uint32_t s) {
      const std::uint32_t count = parts.count[s];
      cuckoo_run<Key> run{};
      if (count != 0) {
        ++different;
        if constexpr (has_values) parts.first[s] = team.fetch_add(*parts.reserved, count);
        run = {parts.key[s], count, has_values ? begin + parts.first[s] : 0};
      }
      target.slots[target.slot(region, s)] = run;
    });
    if (different != 0) team.fetch_add(*parts.different, different);
    team.sync();
    if constexpr (has_values) {
      const item* const items = source.first(region);
      for_each_item([&](std::uint32_t i, const placed& it) {
        values[begin + parts.first[it.slot] + it.offset] = items[i].value;
      });
    }
  }

  /// The cuckoo rounds: an item has its slot if its key is there, whichever copy has written it. Copies move
  /// together. Returns the number of rounds, or 0 for too many.
  template <class Team, class ForEachItem>
  ROOST_FN static int place(const Team& team, const ForEachItem& for_each_item, std::uint32_t seed,
                            const pieces& parts) {
    constexpr std::uint32_t nowhere = ~0u;
    for_each_item([&](std::uint32_t, placed& it) { it.slot = nowhere; });
    for (int step = 0; step < 3 * cuckoo::rounds_most; ++step) {
      const auto subtable = static_cast<std::uint32_t>(step % 3);
      for_each_item([&](std::uint32_t, placed& it) {
        if (it.slot != nowhere) return;
        it.slot = subtable * cuckoo::subtable_slots + cuckoo::slot_in_subtable(it.key, subtable, seed);
        team.exchange(parts.key[it.slot], it.key);  // the last key written stays
      });
      team.sync();
      bool homeless = false;
      for_each_item([&](std::uint32_t, placed& it) {
        if (parts.key[it.slot] == it.key) return;
        it.slot = nowhere;
        homeless = true;
      });
      if (!team.any(homeless)) return step / 3 + 1;
    }
    return 0;
  }
};

/// The table, its values and the counts of its build.
template <class Key, class Value, class Place>
struct built_cuckoo_runs {
  array<cuckoo_run<Key>, Place> slots;
  array<std::uint32_t, Place> seeds;
  array<Value, Place> values;
  cuckoo::first_level region_of;
  detail::build_counts counts;
  int restarts;

  cuckoo_runs<Key> ref() const {
    return {const_cast<cuckoo_run<Key>*>(slots.data()), const_cast<std::uint32_t*>(seeds.data()), region_of};
  }

  /// Both phases; starts again with another function if a region has more distinct keys than room, which only
  /// its build can find out.
  template <class Source>
  static built_cuckoo_runs build(const Place& place, const Source& source, const cuckoo::options& options,
                                 const char* where) {
    using kernel = build_cuckoo_runs<Key, Value>;
    const std::size_t n = source.size();
    if (n >= std::size_t{1} << 31)
      throw invalid_argument(std::string(where) + ": " + std::to_string(n) + " items; give less than 2^31");
    array<typename kernel::placed, Place> rest(place, n);
    array<detail::build_counts, Place> counted(place, 1);
    for (int attempt = 0; attempt <= options.max_restarts; ++attempt) {
      const auto plan = cuckoo::make_plan<Place, Key, Value>(n, options, attempt);
      built_cuckoo_runs b{{place, std::size_t{plan.regions} * cuckoo::region_slots},
                          {place, plan.regions},
                          {place, kernel::has_values ? n : 0},
                          plan.region_of,
                          {},
                          attempt};
      place.fill(counted.data(), 0, counted.bytes());
      const auto regions =
          detail::partitioner<Place, pair<Key, Value>>(place, plan.regions).run(source, plan.region_of);
      const kernel fill{b.ref(),
                        {regions.items(), regions.begins(), regions.ends(), counted.data()},
                        rest.data(),
                        b.values.data()};
      place.launch(plan.regions, detail::scratch_bytes_of(fill), fill);
      place.copy_to_host(&b.counts, counted.data(), sizeof(b.counts));
      if (!b.counts.failed()) return b;
    }
    throw build_error(std::string(where) + ": a region held more different keys than its " +
                      std::to_string(cuckoo::region_slots) + " slots take in each of " +
                      std::to_string(options.max_restarts + 1) +
                      " attempts; give a lower load factor or more max_restarts");
  }
};

/// Section 4.2: keys with any number of values. The values of a key are contiguous, in no particular order.
/// Synchronises.
template <class Key, class Value, class Place>
class cuckoo_multimap {
 public:
  struct ref_type {
    cuckoo_runs<Key> table;
    const Value* values;
    /// The values of a key; empty if it is absent.
    ROOST_FN value_run<Value> find(const Key& key) const {
      const cuckoo_run<Key> run = table.find(key);
      return {values + run.first, run.count};
    }
  };

  template <class Keys, class Values>
  cuckoo_multimap(const Place& place, const Keys& keys, const Values& values,
                  const cuckoo::options& options = {})
      : built_(built_cuckoo_runs<Key, Value, Place>::build(
            place, detail::zip_checked(keys, values, "cuckoo_multimap"), options, "cuckoo_multimap")) {}

  ref_type ref() const { return {built_.ref(), built_.values.data()}; }
  std::size_t size() const { return built_.values.size(); }
  std::size_t key_count() const { return built_.counts.placed; }
  int restarts() const { return built_.restarts; }
  std::size_t region_restarts() const { return built_.counts.region_restarts; }
  /// The mean number of rounds per region.
  double mean_rounds() const { return static_cast<double>(built_.counts.rounds) / built_.region_of.regions; }

 private:
  built_cuckoo_runs<Key, Value, Place> built_;
};

/// 1 for an occupied slot, 0 for an empty one, to be added up.
template <class Key>
struct read_occupied {
  const cuckoo_run<Key>* slots;
  std::size_t n;
  std::uint64_t* occupied;  // one more
  ROOST_FN void operator()(std::size_t s) const { occupied[s] = s < n ? slots[s].count : 0; }
};

template <class Key>
struct index_keys {
  cuckoo_run<Key>* slots;
  const std::uint64_t* before;  // occupied slots before each
  Key* keys;
  ROOST_FN void operator()(std::size_t s) const {
    if (slots[s].count == 0) return;
    slots[s].first = before[s];
    keys[before[s]] = slots[s].key;
  }
};

/// Section 4.3: distinct keys <-> 0, 1, ... size() - 1, in the order of their slots. Synchronises.
template <class Key, class Place>
class cuckoo_index {
 public:
  struct ref_type {
    cuckoo_runs<Key> table;
    /// The index of a key, or nothing.
    ROOST_FN found<std::uint32_t> find(const Key& key) const {
      const cuckoo_run<Key> run = table.find(key);
      return run.count == 0 ? found<std::uint32_t>()
                            : found<std::uint32_t>(static_cast<std::uint32_t>(run.first));
    }
  };

  template <class Keys>
  cuckoo_index(const Place& place, const Keys& keys, const cuckoo::options& options = {})
      : built_(built_cuckoo_runs<Key, none, Place>::build(
            place, detail::alone<detail::sequence_of<Keys>>{detail::as_sequence(keys)}, options,
            "cuckoo_index")),
        keys_(place, 0) {
    const std::size_t capacity = built_.slots.size();
    array<std::uint64_t, Place> before(place, capacity + 1);
    place.for_each(capacity + 1, read_occupied<Key>{built_.slots.data(), capacity, before.data()});
    place.exclusive_scan(before.data(), before.data(), before.size());
    std::uint64_t size = 0;
    place.copy_to_host(&size, before.data() + capacity, sizeof(size));
    keys_ = array<Key, Place>(place, size);
    place.for_each(capacity, index_keys<Key>{built_.slots.data(), before.data(), keys_.data()});
    place.synchronize();
  }

  ref_type ref() const { return {built_.ref()}; }
  std::size_t size() const { return keys_.size(); }
  /// The key of each index, in memory of the place.
  std::span<const Key> keys() const { return keys_.span(); }
  int restarts() const { return built_.restarts; }

 private:
  built_cuckoo_runs<Key, none, Place> built_;
  array<Key, Place> keys_;
};

}  // namespace roost::bench
