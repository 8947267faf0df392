#pragma once

#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/detail/table/team_table.hpp"
#include "roost/partition.hpp"

// Shared by the layouts: the keys of empty slots, claiming slots item by item, and the counts of a build.

namespace roost::detail {

/// Sums over the teams of a build, in memory of the place: all that the host reads afterwards.
struct build_counts {
  std::uint64_t placed = 0;           // pairs that have a slot
  std::uint64_t overfull = 0;         // regions with more distinct keys than slots
  std::uint64_t region_restarts = 0;  // regions that restarted with another seed
  std::uint64_t rounds = 0;           // cuckoo: of the attempts that succeeded, over all regions
  std::uint32_t overflowed = 0;       // the partition overflowed its slack
  std::uint32_t copies = 0;           // the build has stopped at copies of a key: see on_copies

  ROOST_FN bool failed() const { return overfull != 0 || overflowed != 0; }
};

/// The state of a build, in memory of the place.
struct build_state {
  build_counts counts;
  std::uint32_t barrier = 0;  // see launch_in_turn
};

/// A key of another region marks an empty slot, so that no key is reserved: two keys of different regions
/// serve all regions.
template <class Key>
struct empty_keys {
  Key first, second;
  std::uint32_t region_of_first;

  ROOST_FN Key of(std::uint32_t region) const { return region == region_of_first ? second : first; }
};

template <class Key>
Key key_number(std::uint64_t number) {
  Key key;
  std::memset(static_cast<void*>(&key), 0, sizeof(Key));
  std::memcpy(static_cast<void*>(&key), &number, smaller(sizeof(Key), sizeof(number)));
  return key;
}

/// Finds such two keys. They exist for every hash that does not map all keys to one region.
template <class Key, class RegionOf>
empty_keys<Key> find_empty_keys(const RegionOf& region_of) {
  const auto zero = key_number<Key>(0);
  empty_keys<Key> result{zero, zero, region_of(zero)};
  for (std::uint64_t i = 1; i < 1 << 16; ++i) {
    result.second = key_number<Key>(i);
    if (region_of(result.second) != result.region_of_first) return result;
  }
  detail::raise<build_error>(
      {"roost: no two of 65536 keys fall in different regions; is this a constant hash?"});
}

/// Changes the seed until 0 and 1 are such keys, if a key has one byte: a bool has no third value.
template <class Key>
leading_bits regions_of(leading_bits regions) {
  if constexpr (sizeof(Key) == 1)
    while (regions(key_number<Key>(0)) == regions(key_number<Key>(1))) ++regions.seed;
  return regions;
}

enum class claim { made, duplicate, full };

using table_of_owners = team_table<std::uint32_t, look::read, true>;  // numbers of items
inline constexpr std::uint32_t no_owner = table_of_owners::empty;

/// Where the probing for an item begins, and how long it may be.
struct probing_of_item {
  table_of_owners table;
  std::uint32_t home, steps_most;
};

/// Claims a slot for item i unless one of its key has one; of copies, the first item has it in the end. This
/// is slower than counting, but handles any number of copies of a key, and keys of any size. on_pass(slot):
/// see team_table.
template <class Team, class Items, class OnPass>
ROOST_FN claim claim_slot(const Team& team, const probing_of_item& from, const Items& items, std::uint32_t i,
                          const OnPass& on_pass) {
  const auto at = from.table.put(
      team, from.home, i, from.steps_most,
      [&](std::uint32_t other) { return same_key(items[other].key, items[i].key); }, on_pass);
  if (at.full) return claim::full;
  if (at.is_new()) return claim::made;
  if (i < at.before) team.fetch_min(from.table.slot[at.slot], i);
  return claim::duplicate;
}

/// Keys as pairs with their numbers.
template <class Key>
struct indexed_keys {
  const Key* keys = nullptr;
  const std::uint32_t* numbers = nullptr;  // null: they follow each other,
  std::uint32_t first = 0;                 // from this one on

  ROOST_FN pair<Key, std::uint32_t> operator[](std::size_t i) const {
    return {keys[i], numbers == nullptr ? first + static_cast<std::uint32_t>(i) : numbers[i]};
  }
  ROOST_FN indexed_keys operator+(std::uint64_t n) const {
    return {keys + n, numbers == nullptr ? nullptr : numbers + n, first + static_cast<std::uint32_t>(n)};
  }
};

/// Distinct keys in hash order: those of region r begin at begins[r], and the last region ends at
/// begins[region_of.regions].
template <class Key>
struct keys_in_order {
  indexed_keys<Key> items;
  std::size_t count;
  leading_bits region_of;
  const std::uint64_t* begins;

  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const { return items[i]; }
};

/// The begins of the items of regions that each consist of `each` smaller regions.
struct begin_of_several {
  const std::uint64_t* begins;
  std::uint32_t each;
  ROOST_FN std::uint64_t operator()(std::size_t region) const { return begins[region * each]; }
};

/// What a build does about copies of a key.
enum class on_copies {
  keep_one,   // any of them
  stop,       // build_counts::copies is not 0, and the table is not complete
  keep_first  // of the region's items; there are copies, it seems
};

/// The input of a region's builder.
template <class Item, class Items = const Item*>
struct region_items {
  Items items{};
  const std::uint64_t* begins = nullptr;
  const std::uint64_t* ends = nullptr;
  build_counts* counts = nullptr;
  std::size_t from = 0;  // the first region that is built
  on_copies copies = on_copies::keep_one;

  /// Whether the build has failed, for all workers alike: if the partition overflowed, ends may be beyond the
  /// items; and other teams may be finding copies now.
  template <class Team>
  ROOST_FN bool stopped(const Team& team) const {
    return counts->overflowed != 0 ||
           (copies == on_copies::stop && team.any(shared_access::load(&counts->copies) != 0));
  }
  /// Adds what a team has built of `count` items: `placed` pairs, or a region that was overfull.
  ROOST_FN void add(bool built, std::uint64_t placed, std::uint64_t count) const {
    if (!built) {
      fetch_add(counts->overfull, std::uint64_t{1});
    } else {
      fetch_add(counts->placed, placed);
      if (copies == on_copies::stop && placed != count) fetch_add(counts->copies, 1u);
    }
  }
  ROOST_FN Items first(std::size_t region) const { return items + begins[region]; }
  ROOST_FN std::uint64_t count(std::size_t region) const { return ends[region] - begins[region]; }
};

/// The pieces of scratch that region_build uses; those of a layout have more. A unit is a sector or a bucket.
struct region_pieces {
  std::uint64_t slots;  // of the region
  std::uint32_t strays_most;
  std::uint32_t* count;   // of each unit: pairs that have tried it
  std::uint32_t* placed;  // of the region
  std::uint32_t* strays;  // how many pairs found their home full,
  std::uint32_t* stray;   // and which

  ROOST_FN void take(scratch_memory& memory, std::uint32_t units) {
    count = memory.take<std::uint32_t>(units);
    placed = memory.take<std::uint32_t>(1);
    strays = memory.take<std::uint32_t>(1);
    stray = memory.take<std::uint32_t>(strays_most);
  }
};

/// Builds a region in a team's scratch memory. The fast algorithm is for distinct keys: a counter for each
/// unit (a sector, a bucket) assigns its slots, and pairs whose home is full (strays) probe further. If that
/// fails, keys claim slots one by one, which handles any number of copies of a key.
///
/// `layout`, a builder, has what differs (bucketed::builder has the least of it): clear() empties `parts`,
/// its pieces of scratch. home() is the cursor of a key's probe sequence, with unit() and next(). put()
/// stores a pair. A stray takes tries_of_stray() steps; pass() records that it leaves a unit, and put_aside()
/// that it found no slot. passed_its_key(): two pairs have one key. place_by_claims() is the slower
/// algorithm, and seal() writes the region.
template <class Team, class Layout, class Pieces>
class region_build {
  using items = std::remove_cvref_t<decltype(std::declval<const Layout&>().source.items)>;
  using item = typename Layout::item;
  static constexpr std::uint32_t unit_slots = Pieces::unit_slots;

 public:
  ROOST_FN region_build(const Team& team, const Layout& layout, std::size_t region, const Pieces& parts)
      : team_(team),
        layout_(layout),
        my_(parts),
        region_(static_cast<std::uint32_t>(region)),
        items_(layout.source.first(region)),
        count_(layout.source.count(region)) {}

  ROOST_FN void run() const {
    bool twice = false;  // this worker has seen a duplicate key
    bool good = layout_.source.copies != on_copies::keep_first && count_ <= my_.slots && count_in(twice) &&
                layout_.seal(team_, region_, items_, my_, twice, true);
    std::uint64_t placed = count_;
    if (!good) {
      good = place_by_claims();
      placed = *my_.placed;
    }
    if (team_.rank() == 0) layout_.source.add(good, placed, count_);
  }

 private:
  ROOST_FN bool place_by_claims() const {
    return layout_.place_by_claims(team_, region_, items_, count_, my_) &&
           layout_.seal(team_, region_, items_, my_, false, false);
  }

  /// Returns false if too many pairs found no slot.
  ROOST_FN bool count_in(bool& twice) const {
    constexpr int per_worker = build_tuning<typename Team::place>::held;
    constexpr std::uint32_t at_once = per_worker * Team::size;
    const auto count = static_cast<std::uint32_t>(count_);
    layout_.clear(team_, region_, my_);
    if (team_.rank() == 0) *my_.strays = 0;
    team_.sync();
    ROOST_ROLLED
    for (std::uint32_t first = 0; first < count; first += at_once) {
      const std::uint32_t n = smaller(at_once, count - first);
      const held_items<per_worker, Team, items> held_item(team_, items_, first, n);
      for_each_held<per_worker>(team_, n, [&](int held, int i) {
        const auto cursor = layout_.template home<Pieces>(held_item(held, i).key, region_);
        const std::uint32_t s = team_.fetch_add(my_.count[cursor.unit()], 1u);
        if (s < unit_slots) {
          layout_.put(my_, cursor, s, held_item(held, i));
        } else {
          const std::uint32_t number = team_.fetch_add(*my_.strays, 1u);
          if (number < my_.strays_most) my_.stray[number] = first + static_cast<std::uint32_t>(i);
        }
      });
    }
    team_.sync();  // pairs at home stay there
    const std::uint32_t strays = *my_.strays;
    if (strays > my_.strays_most) return false;
    bool lost = false;
    auto tries = layout_.tries_of_stray(my_);
    for_each_of(team_, strays, [&](std::uint32_t i) {
      const item mine = items_[my_.stray[i]];
      auto cursor = layout_.template home<Pieces>(mine.key, region_);
      for (tries.begin(); tries.go_on();) {
        layout_.pass(team_, my_, cursor);
        cursor.next(layout_);
        const std::uint32_t s = team_.fetch_add(my_.count[cursor.unit()], 1u) & Pieces::count_mask;
        if (s >= unit_slots) continue;
        layout_.put(my_, cursor, s, mine);
        my_.stray[i] = my_.place(cursor.unit(), s);  // from now on the slot that it found
        return;
      }
      lost |= !layout_.put_aside(team_, my_, items_, i, cursor);
    });
    if (team_.any(lost)) return false;
    for_each_of(team_, strays, [&](std::uint32_t i) {
      twice |= layout_.passed_its_key(my_, items_, my_.stray[i], region_);
    });
    return true;
  }

  const Team& team_;
  const Layout& layout_;
  const Pieces& my_;
  std::uint32_t region_;
  items items_;
  std::uint64_t count_;
};

/// Calls claim_item(i, items[i].key) for every item, and adds the number of successful claims to *all_placed,
/// which one worker may set just before. False if some item found no slot. Neighbours begin each item
/// together, since some take longer than others.
template <class Team, class Items, class ClaimItem>
ROOST_FN bool claim_each(const Team& team, const Items& items, std::uint64_t count, std::uint32_t* all_placed,
                         const ClaimItem& claim_item) {
  team.sync();
  std::uint32_t placed = 0;
  bool full = count >= no_owner;  // items have 32-bit numbers here
  auto i = static_cast<std::uint64_t>(team.rank());
  std::remove_cvref_t<decltype(items[i].key)> next{};
  if (i < count) next = items[i].key;
  ROOST_ROLLED
  for (std::uint64_t first = 0; first < count; first += Team::size, i += Team::size) {
    const auto key = next;
    if (i + Team::size < count) next = items[i + Team::size].key;  // on its way meanwhile
    if (i < count && !full) {
      const claim outcome = claim_item(static_cast<std::uint32_t>(i), key);
      placed += outcome == claim::made;
      full = outcome == claim::full;
    }
    team.sync_near();
  }
  if (placed != 0) team.fetch_add(*all_placed, placed);
  return !team.any(full);
}

}  // namespace roost::detail
