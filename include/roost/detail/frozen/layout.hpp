#pragma once

#include "roost/detail/frozen/region_build.hpp"
#include "roost/detail/table/ref.hpp"
#include "roost/frozen_options.hpp"

// How to write a layout of frozen_map and frozen_set: this file says what it must have, and bucketed.hpp is
// the one to begin with. A layout is a struct of types, without members. A build uses them in this order:
//
//   options    what users choose: load_factor, seed, max_restarts (frozen_options)
//   make_plan  the geometry of a table for n pairs: a `plan`, which is a layout_plan and what else the table
//              needs. `attempt` counts restarts: take seed_of_attempt, and more room. `parts`: of the pairs,
//              if they are in order already (regions_from_parts), or 0. Throws invalid_argument for options
//              that make no sense, and out_of_memory (check_table_bytes).
//   table      memory of bytes_of(plan) bytes as a ref. `lookups` makes find() of its steps: see probe.hpp.
//   builder    a kernel: team `index` builds a region from its pairs (region_items), mostly by region_build,
//              and adds to build_counts how many keys have a slot, or that they do not fit. Of copies of a
//              key the first of the items wins; where that need not be the first of the input, frozen_table
//              finds it.
//   can        what it can do beyond that

namespace roost::detail {

/// What not every layout can do: a layout names what it can. Each asks for further members, and it does not
/// compile if these are not there, or are there and `can` does not name them.
struct layout_abilities {
  /// Regions are in the order of hashes, so that lookups and sorted keys can go region by region: hash_order.
  bool hash_order = false;
  /// Tables with plan.small() are built in one launch, by small_builder: a builder, maybe the same.
  bool builds_in_turn = false;
  /// On a host, a thread inserts a region's pairs one by one in its cache: has_inserts, in place of builder.
  bool inserts_on_host = false;
};

/// What every plan has.
template <class RegionOf = leading_bits>
struct layout_plan {
  std::uint32_t regions = 0;
  RegionOf region_of{};                         // of a key
  std::uint64_t room_for_region = 0;            // in a partition with slack; 0: the usual
  bool tries_slack = true, tries_exact = true;  // room policies of the partition
};

/// The inserts of a table on a host: see unit_fill. A unit is a sector or a bucket.
template <class Table, class Format>
concept has_inserts = requires(const Table& table, Format format, typename Table::sector* units,
                               const typename Table::cursor_type& home, const typename Table::item& item) {
  { table.regions() } -> std::same_as<std::uint32_t>;
  { table.region_units() } -> std::same_as<std::uint32_t>;
  { table.region_begin(0u) } -> std::same_as<typename Table::sector*>;
  { table.with_region_at(0u, units) } -> std::same_as<Table>;
  { table.slots(format) } -> std::same_as<int>;  // of a unit
  table.clear_regions(format, 0u, 1u);
  table.put(format, home, 0, item);
  { table.insert(format, item) } -> std::same_as<claim>;
  { table.has_twice(format, std::uint64_t{0}) } -> std::same_as<bool>;
};

/// Asserts that a table has its steps in a format, and, if so, its inserts.
template <class Table, bool Inserts>
struct check_format {
  template <class Format>
  ROOST_FN void operator()(Format) const {
    static_assert(has_steps_in<Table, Format>);
    static_assert(!Inserts || has_inserts<Table, Format>);
  }
};

/// What a layout must have.
template <class Layout, class Place, class Key, class Value,
          class Table = typename Layout::template table<Place, Key, Value>>
concept frozen_layout =
    std::derived_from<Table, lookups<Table, Key, Value>> && std::is_trivially_copyable_v<Table> &&
    requires(const typename Layout::options& options, typename Layout::plan plan, std::byte* memory,
             const Table& table, std::uint64_t slot, const pair<Key, Value>& item) {
      { options.load_factor } -> std::convertible_to<double>;
      { options.seed } -> std::convertible_to<std::uint64_t>;
      { options.max_restarts } -> std::convertible_to<int>;
      { Layout::template make_plan<Place, Key, Value>(1, options, 0, 0) } -> std::same_as<decltype(plan)>;
      { plan.region_of(item.key) } -> std::same_as<std::uint32_t>;
      requires std::derived_from<decltype(plan), layout_plan<decltype(plan.region_of)>>;

      { Table::bytes_of(plan) } -> std::same_as<std::size_t>;
      Table(memory, plan);
      { table.load_factor(std::size_t{1}) } -> std::same_as<double>;
      // Slots by number, for iteration, checks, and what is done when the regions are built.
      { table.capacity() } -> std::same_as<std::uint64_t>;
      { table.occupied(slot) } -> std::same_as<bool>;
      { table.key_at(slot) } -> std::convertible_to<Key>;
      { table.value_at(slot) } -> std::convertible_to<Value>;
      table.set(slot, item);  // of a key that is there
      table.clear(slot);      // called for all slots, empties the table
      // Large values are copied to their slots after a table of their positions is built.
      requires !is_large_value<Value> || requires {
        { table.value_address(slot) } -> std::same_as<Value*>;
        table.set_key(slot, item.key);
      };

      typename Layout::template builder<Place, Key, Value, false, const pair<Key, Value>*>;
      requires std::same_as<decltype(Layout::can), const layout_abilities>;
      table.with_format(check_format<Table, Layout::can.inserts_on_host && std::is_same_v<Place, host>>());
      requires Layout::can.hash_order == requires {
        { table.hash_order(2u) } -> std::same_as<decltype(plan.region_of)>;
      };
      requires Layout::can.builds_in_turn == requires {
        { plan.small() } -> std::same_as<bool>;
        typename Layout::template small_builder<Place, Key, Value>;
      };
    };

/// A table, and behind it the state of its builds: one allocation, since each takes time.
template <class Place, class Table>
class frozen_storage {
 public:
  template <class Plan>
  frozen_storage(const Place& place, const Plan& plan)
      : state_at_((Table::bytes_of(plan) + 15) / 16 * 16),
        memory_(place, state_at_ + sizeof(build_state)),
        table_(memory_.data(), plan),
        life_(place) {
    table_.refer_to(life_);
  }

  const Table& ref() const { return table_; }
  build_state* state() { return reinterpret_cast<build_state*>(memory_.data() + state_at_); }
  std::size_t bytes() const { return memory_.bytes(); }

 private:
  std::size_t state_at_;
  array<std::byte, Place> memory_;
  Table table_;
  [[no_unique_address]] ref_life<Place> life_;
};

}  // namespace roost::detail
