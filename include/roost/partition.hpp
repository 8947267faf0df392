#pragma once

#include "roost/detail/partition/tiles.hpp"
#include "roost/place.hpp"

/// \file
/// The partition: items are moved into regions, contiguous runs of items whose keys share leading hash bits.
/// It is the first step of every bulk operation of roost, and of radix joins, group-by and exchanges of your
/// own.

namespace roost {

/// How a partition makes room for its regions.
enum class room {
  exact,  ///< regions are counted first: no spare memory, works for any data, takes one more pass over the
          ///< keys
  slack  ///< each region gets the mean size and some slack, without counting; if a region overflows, the call
         ///< starts again with `exact`
};

/// Options of roost::partition.
struct partition_options {
  std::uint32_t regions = 256;  ///< 2 to 2^16, any number; a power of two is not needed
  roost::room room = roost::room::exact;
  std::uint64_t seed = 0;  ///< of the hash
  bool way_back = false;   ///< keep what restore() needs: 2 bytes an item and pass, and a directory
  /// Items of a region keep the order of the input. Always makes room::exact, and takes scratch memory of 8
  /// bytes for each region of a pass and each 48 KiB (cuda) or 256 KiB (host) of items: at most 1.4 bytes an
  /// item of 16 bytes.
  bool stable = false;
};

namespace detail {

/// What is known of a partition at compile time, so that kernels that it never needs are not instantiated.
struct partition_kind {
  bool stable = false;    ///< items of a region keep their order
  bool way_back = false;  ///< restore() will be called
  bool one_pass = false;  ///< at most tuning::digits_most regions
  bool may_count = true;  ///< room::exact is possible; if stable, nothing else is
};

template <class Place, class Item, partition_kind Kind = partition_kind{}>
class partitioner;

}  // namespace detail

/// Items in regions, as roost::partition leaves them. Region r's items are `items()[begins()[r]] ..
/// items()[ends()[r] - 1]`; all three are memory of the place. Regions follow each other; with room::slack
/// there are gaps between them. Inside a region the order of the items is that of the input if the partition
/// was stable, else not defined.
template <class Item, class Place>
class partitioned {
 public:
  using item_type = Item;

  /// The number of regions.
  std::uint32_t regions() const { return static_cast<std::uint32_t>(begins_.size()); }
  const Item* items() const { return items_.data(); }
  const std::uint64_t* begins() const { return begins_.data(); }
  const std::uint64_t* ends() const { return ends_.data(); }
  /// The number of slots that the items occupy, including gaps: restore() reads one result for each.
  std::size_t extent() const { return items_.size(); }
  /// All bytes that the call allocated, including those already freed.
  std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// Puts results back in input order: target[i] = source[position of input item i in items()]. `source`:
  /// extent() results, in the order of items(). `target`: one result for each input item, in the order of the
  /// input. Both are contiguous memory of the place, of one trivially copyable type. Asynchronous on cuda;
  /// each pass reads and writes each result once. Throws invalid_argument if the partition was made without
  /// way_back or a range is too short.
  template <class From, class To>
  void restore(const Place& place, const From& source, To&& target) const;

  /// The same with to.put(i, result) for each input item; does nothing if *unless, memory of the place, is
  /// not 0. Results are source[j], stored or computed. OnePass: the partition is known to have taken one
  /// pass.
  template <bool OnePass = false, class Source, class To>
  void restore_each(const Place& place, const Source& source, const To& target,
                    const std::uint32_t* unless) const;

 private:
  template <class, class, detail::partition_kind>
  friend class detail::partitioner;

  struct kept_pass {  // what restore() needs of a pass
    std::size_t items, tiles;
    std::uint32_t digits;
    array<std::uint64_t, Place> begin, end, first_tile;  // of the parents; empty: one parent
    array<std::uint32_t, Place> parent;
    array<std::uint16_t, Place> position, start;
    array<std::uint64_t, Place> shift_by;

    detail::tile_map map() const {
      return {items, begin.data(), end.data(), first_tile.data(), parent.data()};
    }
    detail::way_back_of_pass back() { return {position.data(), start.data(), shift_by.data()}; }
  };

  partitioned() = default;

  array<Item, Place> items_;
  array<std::uint64_t, Place> begins_, ends_;
  mutable std::vector<kept_pass> kept_;
  std::size_t scratch_bytes_ = 0;
  std::size_t input_items_ = 0;
};

/// Splits keys into regions by the leading bits of their hash (with the option's seed).
///
/// `keys`: a sized random-access range in the memory of the place, or roost::computed. For every factor of
/// 512 (cuda) or 1024 (host) in the number of regions, one pass reads and writes each item once; with
/// room::exact each pass is preceded by a read of the keys. Takes scratch memory of one or two times the
/// items. Synchronises on cuda with room::slack, not with room::exact. Throws invalid_argument for less than
/// 2 or more than 2^16 regions, out_of_memory.
template <detail::place_comes_first Place, class Keys>
auto partition(const Place& place, const Keys& keys, partition_options options = {});

/// The same for pairs: `values` is as long as `keys`, and values[i] moves with keys[i].
template <detail::place_comes_first Place, class Keys, class Values>
  requires(!std::is_same_v<Values, partition_options>)
auto partition(const Place& place, const Keys& keys, const Values& values, partition_options options = {});

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void partition);

}  // namespace roost

#include "roost/detail/partition/passes.hpp"
