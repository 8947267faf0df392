#pragma once

#include "roost/detail/groups/index_kernel.hpp"

// Marks where each key of a batch occurs first, for callers that need no numbers: see index_keys.hpp. A team
// inserts the keys of a region into a table, with the least position of each.

namespace roost::detail {

/// How many positions below this one are marked in its word.
ROOST_FN std::uint32_t marks_below(std::uint64_t word, std::size_t position) {
  return count_bits(word & ((std::uint64_t{1} << position % 64) - 1));
}

/// A bitmap of marked positions of a batch, and the number of marks before each 64 positions.
struct marks {
  std::uint64_t* words;
  std::uint64_t* before;

  ROOST_FN void set(std::uint32_t position) const {
    fetch_or(words[position / 64], std::uint64_t{1} << position % 64);
  }
  ROOST_FN std::uint32_t rank(std::size_t position) const {
    return static_cast<std::uint32_t>(before[position / 64]) + marks_below(words[position / 64], position);
  }
};

/// Counts the marks of a word, after inverting it if `flip`.
struct count_marks {
  std::uint64_t* words;
  bool flip;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    if (flip) words[i] = ~words[i];
    return count_bits(words[i]);
  }
};

/// Writes the marked elements of a sequence in order. A worker has several, far apart, and reads whatever it
/// may need of all before it writes.
template <class Sequence, class Key>
struct write_marked {
  static constexpr int at_once = 4;
  Sequence source;
  marks marked;
  Key* target;
  std::size_t n, apart;
  ROOST_FN void operator()(std::size_t first) const {
    std::uint64_t word[at_once], before[at_once];
    Key key[at_once];
    ROOST_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const std::size_t i = smaller(first + j * apart, n - 1);
      word[j] = marked.words[i / 64];
      before[j] = marked.before[i / 64];
      key[j] = source[i];
    }
    ROOST_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const std::size_t i = first + j * apart;
      if (i < n && (word[j] >> i % 64 & 1) != 0) target[before[j] + marks_below(word[j], i)] = key[j];
    }
  }
};
template <class Place, class Sequence, class Key>
void write_marked_elements(const Place& place, const Sequence& source, const marks& marked, Key* target) {
  using write = write_marked<Sequence, Key>;
  const std::size_t n = source.size(), apart = ceil_div<std::size_t>(n, write::at_once);
  place.for_each(apart, write{source, marked, target, n, apart});
}

/// Marks of positions below n, initially none.
template <class Place>
struct marked_positions {
  array<std::uint64_t, Place> words, before;  // the last one counts all marks

  marked_positions(const Place& place, std::size_t n)
      : words(zeros(place, n / 64 + 1)), before(place, words.size() + 1) {}

  marks ref() { return {words.data(), before.data()}; }

  /// Ranks the marked positions or, if `flip`, marks all others instead and ranks these. Asynchronous on
  /// cuda.
  void rank(const Place& place, bool flip) {
    write_offsets(place, words.size(), count_marks{words.data(), flip}, before.data());
  }
};

/// Marks the first items, or the copies, of a region.
template <class Place, class Key>
struct mark_first_items {
  using item = pair<Key, std::uint32_t>;  // with its position
  using words = region_words<Key, host>;
  using word = typename words::word;
  static constexpr int threads = group_tuning<cuda>::threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once = group_tuning<cuda>::teams_at_once;
  static constexpr std::uint32_t few = 16;  // regions that are counted first, if there are many
  static constexpr std::uint32_t steps_most = 256;
  static constexpr std::size_t slot_bytes = sizeof(word) + sizeof(std::uint32_t);
  static constexpr std::uint32_t tile =  // the most keys that a region should have; two slots for each
      tile_that_fits(group_tuning<Place>::indexing_bytes - steps_most * slot_bytes, 2 * slot_bytes,
                     group_tuning<Place>::indexing_held_most);
  static constexpr std::uint32_t slots_most = 2 * tile + steps_most;  // the last slots do not wrap around
  using table_type = team_table<word, look::exchange, false>;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  regions_and_frequent_keys<Key> region_of;
  bool counts_few;  // instead of marking
  marks target;
  indexing_outcome* outcome;

  struct pieces {
    table_type table;
    std::uint32_t* first;  // position of each slot's key
    std::uint32_t* distinct;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {{memory.take<word>(slots_most), slots_most},
            memory.take<std::uint32_t>(slots_most),
            memory.take<std::uint32_t>(1)};
  }

  /// A word that identifies a key of a region: the fraction that its hash times the regions leaves, without
  /// the lowest bit, which is 0 since the number of regions is even.
  ROOST_FN word word_of(const Key& key) const {
    const leading_bits& spread = region_of.spread;
    return static_cast<word>(split_hash(hash_of(key, spread.seed), spread.regions).rest >> 1);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t region, std::byte* memory) const {
    if (outcome->overflowed != 0) return;
    pieces parts = scratch_of(*this, memory);
    const std::uint64_t begin = begins[region], count = ends[region] - begin;
    if (count == 0) return;
    if (count > tile && region_of.is_frequent(items[begin].key)) {  // indexer::finish_marks() does the rest
      if (team.rank() == 0) fetch_add(outcome->size, std::uint64_t{1});
      return;
    }
    const std::uint32_t homes =
        2 * static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, (count + 15) / 16 * 16));
    parts.table.slots = homes + steps_most;
    parts.table.clear(team);
    fill_words(team, parts.first, parts.table.slots, ~0u);
    if (team.rank() == 0) *parts.distinct = 0;
    team.sync();
    const bool marks_copies = !counts_few && outcome->marks_copies();
    constexpr int per_worker = static_cast<int>(tile) / Team::size;
    std::uint32_t distinct = 0;
    bool full = false;
    ROOST_ROLLED
    for (std::uint64_t done = 0; done < count; done += tile) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - done));
      const held_items<per_worker, Team, const item*> mine(team, items, begin + done, n);
      for_each_held<per_worker>(team, n, [&](int held, int i) {
        const std::uint32_t position = mine(held, i).value;
        const word wanted = word_of(mine(held, i).key);
        const auto at = parts.table.put(team, words::home(wanted, homes), wanted, steps_most,
                                        [&](word other) { return other == wanted; });
        full |= at.full;
        if (at.full) return;
        distinct += at.is_new() ? 1 : 0;
        const std::uint32_t before = team.fetch_min(parts.first[at.slot], position);
        if (marks_copies && before != ~0u) target.set(larger(before, position));
      });
    }
    team.add_near(*parts.distinct, distinct);
    if (team.any(full)) {
      if (team.rank() == 0) fetch_add(outcome->failed, 1u);
      return;
    }
    if (counts_few) {
      if (team.rank() != 0) return;
      fetch_add(outcome->items_of_few, static_cast<std::uint32_t>(count));
      fetch_add(outcome->keys_of_few, *parts.distinct);
      return;
    }
    if (team.rank() == 0) fetch_add(outcome->size, std::uint64_t{*parts.distinct});
    if (marks_copies) return;
    for_each_of(team, parts.table.slots, [&](std::uint32_t s) {
      if (parts.first[s] != ~0u) target.set(parts.first[s]);
    });
  }
};

/// The least position of each frequent key.
template <class Key>
struct least_position {
  const pair<Key, std::uint32_t>* items;
  std::uint32_t* least;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t, std::uint32_t f) const {
    fetch_min(least[f], items[i].value);
  }
};

/// Marks where keys occur first: all keys, or those without an index.
struct mark_first {
  const std::uint32_t* first;
  const std::uint32_t* indices;
  marks target;
  ROOST_FN void operator()(std::size_t number) const {
    if (indices == nullptr || indices[number] == ~0u) target.set(first[number]);
  }
};

}  // namespace roost::detail
