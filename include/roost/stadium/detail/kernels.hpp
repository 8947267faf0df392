#pragma once

#include "roost/detail/table/bulk_change.hpp"
#include "roost/detail/table/slots.hpp"
#include "roost/stadium/detail/ticket_board.hpp"

// The kernels of stadium_map's bulk calls.

namespace roost::detail {

/// The interface that put_tiles needs of a table that only bulk inserts change.
template <class Table>
struct board_filler : Table {
  struct bucket {};

  template <class Change>
  ROOST_FN insertion put(const typename Table::key_type& key, const typename Table::value_type& value,
                         const Change& change) const {
    return Table::template put<ticket_board::among_inserts>(key, value, change);
  }
};

/// The pair of each slot of a table; those of empty slots mean nothing.
template <class Table>
struct pair_of_slot {
  Table table;
  ROOST_FN auto operator[](std::size_t slot) const {
    return pair_of(table.key_at(slot), table.value_at(slot));
  }
};

/// Counts the keys that may find no room when a table grows part by part: those that move to another part, as
/// keys beyond their home region may, and those beyond the slots of their region.
template <class Table>
struct count_left_most {
  Table source, target;
  std::uint64_t source_part_slots;
  std::uint32_t target_part_regions;
  std::uint32_t* keys;  // of each region
  std::uint64_t* left;
  ROOST_FN void operator()(std::size_t slot) const {
    if (!source.occupied(slot)) return;
    const std::uint32_t home = target.first_step(source.key_at(slot)).home;
    const bool is_beyond = fetch_add(keys[home], 1u) >= target.geometry().region_slots;
    if (is_beyond || home / target_part_regions != slot / source_part_slots)
      fetch_add(*left, std::uint64_t{1});
  }
};

/// Counts the tickets of present keys in a word, or those of erased keys.
struct tickets_of_word {
  const std::uint64_t* words;
  std::uint64_t lowest;  // lowest bit of each ticket
  bool erased;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t word = shared_access::load(words + i);
    return count_bits(~(word >> 1) & (erased ? word : ~word) & lowest);
  }
};

/// 1 for a word with a reserved ticket, or with changed bits outside the slots.
struct bad_word {
  const std::uint64_t* words;
  ticket_board::plan plan;
  std::uint64_t lowest;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t word = words[i];
    const auto first = static_cast<std::uint32_t>(i % plan.region_words) * plan.tickets.per_word;
    const std::uint32_t bits = smaller(plan.tickets.per_word, plan.region_slots - first) * plan.tickets.width;
    const std::uint64_t beyond = bits == 64 ? 0 : ~std::uint64_t{0} << bits;
    return (word & beyond) != beyond || (~word & word >> 1 & lowest) != 0 ? 1 : 0;
  }
};

struct is_odd {
  const std::uint32_t* numbers;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return numbers[i] % 2; }
};

/// 1 for a query whose body is read, in a sample of one in `step` queries.
template <class Ref, class Queries>
struct may_be_present {
  Ref ref;
  Queries queries;
  std::size_t step;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return ref.may_contain(queries[i * step]) ? 1 : 0;
  }
};

/// Adds up the costs of lookups.
template <class Ref, class Queries>
struct add_cost {
  Ref ref;
  Queries queries;
  std::uint64_t* sums;  // found, tickets, bodies, without bodies
  std::uint32_t* most;  // tickets
  ROOST_FN void operator()(std::size_t i) const {
    const auto cost = ref.cost_of(queries[i]);
    if (cost.found) fetch_add(sums[0], std::uint64_t{1});
    fetch_add(sums[1], cost.tickets);
    if (cost.bodies != 0) fetch_add(sums[2], cost.bodies);
    if (cost.bodies == 0) fetch_add(sums[3], std::uint64_t{1});
    fetch_max(*most, static_cast<std::uint32_t>(cost.tickets));
  }
};

// A sweep, in steps over the whole table. Nothing else may touch it.

/// The state of a region during a sweep.
struct region_sweep {
  std::uint32_t has_erased;  // slots of erased keys
  std::uint32_t passed;      // keys continued from here to the next region: it stays used up
};

struct find_erased {
  tickets_of_word erased;
  region_sweep* regions;
  std::uint32_t region_words;
  ROOST_FN void operator()(std::size_t i) const {
    if (erased(i) != 0) shared_access::store(&regions[i / region_words].has_erased, 1u);
  }
};

struct reset_heads {
  const region_sweep* regions;
  ticket_board::region_head* heads;
  ROOST_FN void operator()(std::size_t r) const {
    if (regions[r].has_erased == 0) return;
    heads[r].longest = 0;
    if (regions[r].passed == 0) heads[r].flags = 0;
  }
};

/// Moves keys back to slots of erased keys on their probe sequences, and records the slots that they pass.
template <class Table>
struct move_keys_back {
  Table table;
  const region_sweep* regions;
  std::uint32_t* passed_slots;  // a bit for each slot: a key passes it
  ROOST_FN void operator()(std::size_t slot) const {
    const auto cursor = table.cursor_at(slot);
    if (regions[cursor.region].has_erased == 0 || !table.occupied_at(cursor)) return;
    const std::uint32_t passed_by = table.walk_to(cursor, [&](const auto& earlier) {
      if (table.erased_at(earlier) && table.move(cursor, earlier)) return false;
      const std::size_t passed = slot - cursor.slot + earlier.slot;
      const std::uint32_t bit = 1u << passed % 32;
      if ((shared_access::load(passed_slots + passed / 32) & bit) == 0)
        fetch_or(passed_slots[passed / 32], bit);
      return true;
    });
    fetch_max(table.where().heads[cursor.region].longest, passed_by + 1);
  }
};

/// Marks slots of erased keys that no key passes as never used.
template <class Table>
struct free_slots {
  Table table;
  const region_sweep* regions;
  const std::uint32_t* passed_slots;
  ROOST_FN void operator()(std::size_t slot) const {
    const auto cursor = table.cursor_at(slot);
    const region_sweep& region = regions[cursor.region];
    if (region.has_erased != 0 && region.passed == 0 && (passed_slots[slot / 32] >> slot % 32 & 1) == 0 &&
        table.erased_at(cursor))
      table.free(cursor);
  }
};

}  // namespace roost::detail
