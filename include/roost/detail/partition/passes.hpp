#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "roost/detail/place/arrays.hpp"
#include "roost/partition.hpp"

// The passes of a partition, and the bodies of roost/partition.hpp.

namespace roost {
namespace detail {

/// The room for a region of `mean` items on average: six standard deviations of a random split, so that one
/// in a billion overflows. `copies`: the number of items of most keys.
inline std::uint64_t with_slack(double mean, std::uint64_t most, double copies = 1) {
  const double room = std::ceil(mean + 6 * std::sqrt(mean * copies) + 8);
  const auto rounded = (static_cast<std::uint64_t>(room) + 15) / 16 * 16;
  return smaller<std::uint64_t>(rounded, (larger<std::uint64_t>(most, 1) + 15) / 16 * 16);  // never 0
}

/// The number of copies for which with_slack leaves an eighth more than `mean`, or 1.
inline double copies_in_an_eighth(double mean) { return larger(1.0, mean / (48 * 48)); }

/// Items of a parent's tiles; past the last tile there is no parent.
struct find_parent {
  const std::uint64_t* first_tile;  // of each parent, and of the end
  std::uint32_t parents;
  std::uint32_t* parent;

  ROOST_FN void operator()(std::size_t tile) const {
    if (tile >= first_tile[parents]) {
      parent[tile] = tile_map::no_parent;
      return;
    }
    parent[tile] = last_at_or_before(0u, parents, first_tile, tile);
  }
};

struct count_parent_tiles {
  const std::uint64_t* begin;
  const std::uint64_t* end;
  std::uint64_t parents;
  std::uint32_t tile_items;
  std::uint64_t* tiles;

  ROOST_FN void operator()(std::size_t p) const {
    tiles[p] = p < parents ? ceil_div<std::uint64_t>(end[p] - begin[p], tile_items) : 0;
  }
};

struct begin_with_slack {
  std::uint64_t capacity;
  std::uint64_t* begin;
  std::uint64_t* cursor;

  ROOST_FN void operator()(std::size_t region) const { begin[region] = cursor[region] = region * capacity; }
};

/// With slack, a cursor may have passed the end of its region; the next pass must not read beyond the end.
struct clip_ends {
  std::uint64_t capacity;
  std::uint64_t* end;

  ROOST_FN void operator()(std::size_t region) const {
    end[region] = smaller(end[region], (region + 1) * capacity);
  }
};

/// Children begin where the items of their first tile are written, and end where the next digit begins.
struct begin_in_order {
  const std::uint64_t* cursor;      // of tile_cursors
  const std::uint64_t* first_tile;  // of each parent, and of the end; null: one parent
  std::uint64_t tiles;
  partition_pass pass;
  std::uint64_t* begin;
  std::uint64_t* end;

  ROOST_FN void operator()(std::size_t child) const {
    const std::size_t parent = child >> pass.fan_bits, digit = child - (parent << pass.fan_bits);
    const std::uint64_t first = first_tile == nullptr ? 0 : first_tile[parent];
    const std::uint64_t stride = first_tile == nullptr ? tiles : first_tile[parent + 1] - first;
    const std::uint64_t* const position = cursor + first * pass.digits + digit * stride;
    begin[child] = position[0];
    end[child] = position[stride];
  }
};

/// The room of a partition's regions.
struct room_of_regions {
  roost::room room = roost::room::exact;
  /// Memory of the place that holds 0; it is not 0 afterwards if a region with slack was too small: the
  /// result then lacks items, and the ends of regions are beyond their items.
  std::uint32_t* overflowed = nullptr;
  std::uint64_t capacity = 0;  // of every region with slack; 0: enough for a random split
  double copies = 1;           // of keys with so many copies each
  /// A pass whose regions would have more than so many times their items is counted first.
  double times_most = std::numeric_limits<double>::infinity();
};

/// Splits items by any function of their keys, in the number of passes that the regions require.
template <class Place, class Item, partition_kind Kind>
class partitioner {
 public:
  using result = partitioned<Item, Place>;
  static constexpr std::uint32_t tile = tile_items<Place, Item>;

  /// `unless`: memory of the place; if it is not 0, the items are not split at all.
  partitioner(const Place& place, std::uint32_t regions, const room_of_regions& room = {},
              const std::uint32_t* unless = nullptr)
      : place_(place), regions_(regions), room_(room), unless_(unless) {
    if (counts_tiles) room_.room = room::exact;
  }

  /// region_of(key) must be below `regions`. If it absorbs items, the first pass does. Asynchronous.
  template <class Source, class RegionOf>
  result run(const Source& source, const RegionOf& region_of) {
    return run(source, region_of, 0, [](const result&) { return false; });
  }

  /// The same. `first_bits`: of the first pass, if not 0; stop(regions so far) says whether they suffice.
  template <class Source, class RegionOf, class Stop>
  result run(const Source& source, const RegionOf& region_of, std::uint32_t first_bits, const Stop& stop) {
    std::uint32_t bits = 1;
    while ((std::uint64_t{1} << bits) < regions_) ++bits;
    const std::uint32_t passes =
        Kind.one_pass || regions_ <= partition_tuning<Place>::digits_most ? 1 : ceil_div(bits, digit_bits);
    result_.input_items_ = source.size();
    std::uint32_t shift = bits;
    for (std::uint32_t i = 0; i < passes; ++i) {
      const std::uint32_t fan_bits = i == 0 && first_bits != 0 ? first_bits : ceil_div(shift, passes - i);
      shift -= fan_bits;
      const std::uint64_t children = (std::uint64_t{regions_ - 1} >> shift) + 1;
      const partition_pass pass{shift, fan_bits,
                                static_cast<std::uint32_t>(smaller<std::uint64_t>(children, 1u << fan_bits)),
                                children};
      if (i == 0) {
        split(source, pass, region_of, i + 1 == passes);
      } else if constexpr (!Kind.one_pass) {
        if (stop(result_)) break;
        const array<Item, Place> items = std::move(result_.items_);  // freed after the pass
        const sequence<const Item*> left{items.data(), items.size()};
        if constexpr (absorbs<RegionOf>) {
          split(left, pass, region_of.after_absorbing(), i + 1 == passes);
        } else {
          split(left, pass, region_of, i + 1 == passes);
        }
      }
    }
    return std::move(result_);
  }

 private:
  /// Whether items keep their order because each pass counts the items of each tile first.
  static constexpr bool counts_tiles = Kind.stable && Kind.may_count;
  static constexpr std::uint32_t digit_bits = [] {
    std::uint32_t bits = 0;
    while ((2u << bits) <= partition_tuning<Place>::digits_most) ++bits;
    return bits;
  }();

  template <class T>
  array<T, Place> make(std::size_t n) {
    result_.scratch_bytes_ += n * sizeof(T);
    return {place_, n};
  }

  using kept_pass = typename result::kept_pass;

  /// The tiles of a pass over the regions of the previous one; if there are none, all items are one region.
  kept_pass tiles_of(const partition_pass& pass) {
    const std::size_t n = result_.input_items_, parents = result_.begins_.size();
    kept_pass here;
    here.items = n;
    here.tiles = ceil_div<std::size_t>(n, tile) + parents;
    here.digits = pass.digits;
    here.begin = std::move(result_.begins_);
    here.end = std::move(result_.ends_);
    if constexpr (!Kind.one_pass) {
      if (parents != 0) {
        here.first_tile = make<std::uint64_t>(parents + 1);
        here.parent = make<std::uint32_t>(here.tiles);
        place_.for_each(parents + 1, count_parent_tiles{here.begin.data(), here.end.data(), parents, tile,
                                                        here.first_tile.data()});
        place_.exclusive_scan(here.first_tile.data(), here.first_tile.data(), parents + 1);
        place_.for_each(here.tiles, find_parent{here.first_tile.data(), static_cast<std::uint32_t>(parents),
                                                here.parent.data()});
      }
    }
    return here;
  }

  template <class Source, class RegionOf, class Cursors>
  void count(const Source& source, const RegionOf& region_of, const kept_pass& here,
             const partition_pass& pass, const Cursors& cursors) {
    const count_tiles<Place, Item, Source, RegionOf, Cursors> kernel{source, region_of, here.map(), pass,
                                                                     cursors};
    place_.launch(here.tiles, scratch_bytes_of(kernel), kernel);
  }

  /// The room of each child with slack; 0: none has.
  std::uint64_t slack_of(const kept_pass& here, const partition_pass& pass, bool last) const {
    if (counts_tiles || room_.room != room::slack) return 0;
    if (last && room_.capacity != 0) return room_.capacity;
    const double mean =
        static_cast<double>(here.items) * static_cast<double>(std::uint64_t{1} << pass.shift) / regions_;
    const std::uint64_t capacity = with_slack(mean, here.items, room_.copies);
    return Kind.may_count && static_cast<double>(capacity) > room_.times_most * mean ? 0 : capacity;
  }

  /// The slack of large batches is rounded up, so that the next one, which needs a little more or less, gets
  /// the memory of this one back: the driver takes 70 ms for another 47 GB.
  static std::size_t rounded(std::size_t room, std::size_t items) {
    const std::size_t step = items < std::size_t{1} << 28 ? 1 : std::bit_floor(items) / 8;
    return ceil_div(room, step) * step;
  }

  /// Finds where each child begins. Returns the room of each child with slack, or 0.
  template <class Source, class RegionOf, class Cursors>
  std::uint64_t begin_children(const Source& source, const RegionOf& region_of, const kept_pass& here,
                               const partition_pass& pass, const Cursors& cursors, bool last) {
    std::uint64_t *const begin = result_.begins_.data(), *const end = result_.ends_.data();
    if constexpr (counts_tiles) {
      const std::size_t counts = here.tiles * pass.digits;
      place_.fill(cursors.cursor + counts, 0, sizeof(std::uint64_t));
      count(source, region_of, here, pass, cursors);
      place_.exclusive_scan(cursors.cursor, cursors.cursor, counts + 1);
      place_.for_each(pass.children,
                      begin_in_order{cursors.cursor, here.first_tile.data(), here.tiles, pass, begin, end});
    } else if (const std::uint64_t capacity = slack_of(here, pass, last); capacity != 0) {
      place_.for_each(pass.children, begin_with_slack{capacity, begin, end});
      return capacity;
    } else if constexpr (Kind.may_count) {
      const std::size_t bytes = pass.children * sizeof(std::uint64_t);
      place_.fill(end, 0, bytes);
      count(source, region_of, here, pass, cursors);
      place_.exclusive_scan(end, begin, pass.children);
      place_.copy(end, begin, bytes);
    }
    return 0;
  }

  template <class Source, class RegionOf>
  void split(const Source& source, const partition_pass& pass, const RegionOf& region_of, bool last) {
    const bool first = result_.begins_.size() == 0;
    kept_pass here = tiles_of(pass);
    result_.begins_ = make<std::uint64_t>(pass.children);
    result_.ends_ = make<std::uint64_t>(pass.children);
    std::uint64_t* const end = result_.ends_.data();
    auto cursor_of_tile = make<std::uint64_t>(Kind.stable ? here.tiles * pass.digits + 1 : 0);
    auto cursors = [&] {
      if constexpr (counts_tiles) {
        return tile_cursors{cursor_of_tile.data(), here.tiles};
      } else if constexpr (Kind.stable) {
        place_.fill(cursor_of_tile.data(), 0, cursor_of_tile.bytes());
        return look_back_cursors{cursor_of_tile.data(), end, here.tiles, 0};
      } else {
        return shared_cursors{end};
      }
    }();
    const std::uint64_t capacity = begin_children(source, region_of, here, pass, cursors, last);
    if constexpr (Kind.stable && !counts_tiles) cursors.capacity = capacity;
    if constexpr (Kind.way_back) {
      here.position = make<std::uint16_t>(first ? here.items : source.size());
      here.start = make<std::uint16_t>(here.tiles * pass.digits);
      here.shift_by = make<std::uint64_t>(here.tiles * pass.digits);
    }
    auto out = make<Item>(capacity == 0 ? here.items : rounded(capacity * pass.children, here.items));
    const auto back = [&] {
      if constexpr (Kind.way_back) {
        return here.back();
      } else {
        return no_way_back{};
      }
    }();
    const scatter_tiles<Place, Item, Source, RegionOf, decltype(cursors), std::remove_const_t<decltype(back)>>
        kernel{.source = source,
               .region_of = region_of,
               .tiles = here.map(),
               .pass = pass,
               .cursors = cursors,
               .capacity = capacity,
               .out = out.data(),
               .overflowed = room_.overflowed,
               .back = back,
               .unless = unless_};
    place_.launch(here.tiles, scratch_bytes_of(kernel), kernel);
    if constexpr (!Kind.one_pass) {
      if (capacity != 0 && !last) place_.for_each(pass.children, clip_ends{capacity, end});
    }
    result_.items_ = std::move(out);
    if (Kind.way_back) result_.kept_.push_back(std::move(here));
  }

  const Place& place_;
  std::uint32_t regions_;
  room_of_regions room_;
  const std::uint32_t* unless_;
  result result_;
};

template <class Item, bool WayBack, class Place, class Source>
auto checked_partition(const Place& place, const Source& source, const partition_options& options) {
  const leading_bits region_of{options.seed, options.regions};
  if (options.stable) {
    constexpr partition_kind kind{.stable = true, .way_back = WayBack};
    return partitioner<Place, Item, kind>(place, options.regions).run(source, region_of);
  }
  constexpr partition_kind kind{.way_back = WayBack};
  if (options.room == room::slack) {
    auto overflowed = zeros<std::uint32_t>(place, 1);
    auto result = partitioner<Place, Item, kind>(place, options.regions, {room::slack, overflowed.data()})
                      .run(source, region_of);
    if (read_one(place, overflowed.data()) == 0) return result;
  }
  return partitioner<Place, Item, kind>(place, options.regions).run(source, region_of);
}

template <class Item, class Place, class Source>
auto checked_partition(const Place& place, const Source& source, const partition_options& options) {
  if (options.regions < 2 || options.regions > 1u << 16) {
    detail::raise<invalid_argument>({"roost::partition: ", options.regions, " regions; give 2 to 65536"});
  }
  return options.way_back ? checked_partition<Item, true>(place, source, options)
                          : checked_partition<Item, false>(place, source, options);
}

}  // namespace detail

template <class Item, class Place>
template <class From, class To>
void partitioned<Item, Place>::restore(const Place& place, const From& source, To&& target) const {
  using Result = detail::element_of<From>;
  if (kept_.empty()) {
    detail::raise<invalid_argument>(
        {"roost::partitioned::restore: the way back was not kept; partition with way_back = true"});
  }
  if (std::ranges::size(source) < extent() || std::ranges::size(target) < input_items_) {
    detail::raise<invalid_argument>({"roost::partitioned::restore: ", std::ranges::size(source),
                                     " results in and room for ", std::ranges::size(target),
                                     " out; needed are ", extent(), " and ", input_items_});
  }
  restore_each(place, detail::data_of(source), detail::put_to<Result>{detail::data_of(target)}, nullptr);
}

template <class Item, class Place>
template <bool OnePass, class Source, class To>
void partitioned<Item, Place>::restore_each(const Place& place, const Source& source, const To& target,
                                            const std::uint32_t* unless) const {
  using Result = std::remove_cvref_t<decltype(source[0])>;
  const auto run = [&](std::size_t i, const auto& results, const auto& to) {
    auto& pass = kept_[i];
    using kernel = detail::restore_tiles<Place, Item, std::remove_cvref_t<decltype(results)>,
                                         std::remove_cvref_t<decltype(to)>>;
    const kernel restore{results, to, pass.map(), pass.digits, pass.back(), unless};
    place.launch(pass.tiles, detail::scratch_bytes_of(restore), restore);
  };
  if (OnePass || kept_.size() == 1) return run(0, source, target);
  if constexpr (!OnePass) {
    array<Result, Place> between;
    for (std::size_t i = kept_.size() - 1; i > 0; --i) {
      array<Result, Place> next(place, kept_[i].position.size());
      const detail::put_to<Result> to{next.data()};
      i + 1 == kept_.size() ? run(i, source, to) : run(i, static_cast<const Result*>(between.data()), to);
      between = std::move(next);
    }
    run(0, static_cast<const Result*>(between.data()), target);
  }
}

template <detail::place_comes_first Place, class Keys>
auto partition(const Place& place, const Keys& keys, partition_options options) {
  using key = detail::element_of<Keys>;
  return detail::checked_partition<pair<key, none>>(place, detail::alone_as<key>(keys), options);
}

template <detail::place_comes_first Place, class Keys, class Values>
  requires(!std::is_same_v<Values, partition_options>)
auto partition(const Place& place, const Keys& keys, const Values& values, partition_options options) {
  using item = pair<detail::element_of<Keys>, detail::element_of<Values>>;
  return detail::checked_partition<item>(place, detail::zip_checked(keys, values, "roost::partition"),
                                         options);
}

}  // namespace roost
