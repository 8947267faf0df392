#pragma once

#include "roost/bulk.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/sparse/detail/index.hpp"

/// \file
/// coordinate_index: coordinates of voxels <-> rows 0, 1, ... m - 1.

namespace roost {

/// Numbers the distinct voxels of a batch of coordinates: the basis of sparse convolution, pooling and point
/// clouds. A lookup maps a coordinate to its row, and an array maps a row to its coordinate. Kernel maps
/// (kernel_map.hpp) find the neighbours of all voxels with it.
///
///     roost::coordinate_index index(gpu, coordinates);  // coordinate<3>: batch, x, y, z
///     index.size();                                     // distinct voxels
///     index.coordinates();                              // of each row, its coordinate
///     index.rows_of_input();                            // of each input coordinate, its row
///     index.find(gpu, queries, rows);                   // roost::no_row for absent ones
///     if (auto row = index.ref().find({0, {x, y, z}})) use(*row);  // in kernels too
///
/// D: 2, 3 or 4 axes, besides the batch. Coordinates are any 32-bit integers, including negative ones. They
/// are compared, not only hashed, so two different ones never share a row. The only limit is the bounding
/// box: if it spans 2^b(0) batches and 2^b(i) voxels on each axis, b(0) + the sum of (b(i) - 12 / D) must be
/// at most 63, so three axes may span 2^21 voxels each for 2^12 batches. A wider box is refused
/// (invalid_argument). Limits: 2^32 - 2 coordinates.
///
/// How it works. A hash table of superblocks (16^3 voxels for D = 3) has 64 bits for the blocks of each, and
/// a block has 64 bits for its voxels. The row of a voxel is the first row of its block plus the number of
/// set bits before its own. So a lookup reads two small pieces of memory, which stay in the cache for up to
/// 10^7 voxels of a surface. The table is at most half full, and no key is reserved.
///
/// Cost: a build reads the coordinates three times; the index takes 5 bytes per input coordinate and 16 bytes
/// per block, besides coordinates() and rows_of_input(). Duplicate coordinates cost nothing extra.
///
/// Threads, streams, failure: as in frozen_map.
template <int D, class Place /* = host */>
class coordinate_index {
  static_assert(D >= 2 && D <= 4, "a coordinate_index has 2, 3 or 4 axes besides the batch");
  using table = detail::voxel_table<D, Place>;

 public:
  using key_type = coordinate<D>;
  static constexpr int dimensions = D;

  /// What find() writes for an absent coordinate, unless you pass another value: -1 as a signed number.
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  using options = coordinate_options;

  /// The handle for kernels and host loops. Trivially copyable. It remains valid after rebuild_async(), and
  /// until the index is assigned to or destroyed. Any number of threads may read.
  using ref_type = typename table::ref_type;

  /// Numbers the coordinates of a range in the memory of the place: coordinate<D>, in any order, with any
  /// number of duplicates. Synchronises. Throws invalid_argument for a bounding box that is too wide or more
  /// than 2^32 - 2 coordinates, out_of_memory, device_error; build_error if keys that were chosen to collide
  /// crowd the table with four seeds.
  template <class Coordinates>
    requires std::is_same_v<detail::element_of<Coordinates>, coordinate<D>>
  coordinate_index(const Place& place, const Coordinates& coordinates, options chosen = {}) : table_(chosen) {
    const auto sequence = detail::as_sequence(coordinates);
    table_.build(place, sequence, sequence.size());
  }

  /// An empty index with room for options::capacity coordinates.
  coordinate_index(const Place& place, options chosen) : table_(chosen) {
    table_.build(place, detail::sequence<const coordinate<D>*>{nullptr, 0}, 0);
  }
  /// An empty index without memory; lookups find nothing in it.
  coordinate_index() = default;

  coordinate_index(coordinate_index&&) noexcept = default;
  coordinate_index& operator=(coordinate_index&&) noexcept = default;

  /// Builds the index again in the memory reserved for options::capacity, without waiting. On cuda all work
  /// is queued on the place's stream and can be captured in a graph; a replay uses the coordinates that the
  /// range holds at that time. `count`: null, or a word in memory of the place with the number of
  /// coordinates. Calls that are queued after it see the new index; size(), the spans and statistics()
  /// describe it after finish(). If the coordinates do not fit, the index is empty, and finish() throws.
  /// Throws invalid_argument for more coordinates than options::capacity, out_of_memory: it is then empty.
  template <class Coordinates>
  void rebuild_async(const Place& place, const Coordinates& coordinates,
                     const std::uint32_t* count = nullptr) {
    const auto sequence = detail::sequence_as<coordinate<D>>(coordinates);
    if (sequence.size() > capacity()) {
      detail::raise<invalid_argument>({"roost::coordinate_index::rebuild_async: ", sequence.size(),
                                       " coordinates, and a capacity of ", capacity(),
                                       "; make the index with options.capacity"});
    }
    using counted = detail::counted_coordinates<std::remove_const_t<decltype(sequence)>>;
    table_.refill(place, counted{sequence, count});
  }

  /// Waits for the last rebuild_async, or the last replay of its graph, and updates size(), the spans and
  /// statistics(). Throws build_error if the coordinates did not fit, invalid_argument if their box was too
  /// wide. Synchronises.
  void finish(const Place& place) { table_.finish(place); }

  /// results[i] = the row of queries[i], or `missing`. `results` is contiguous memory of the place, at least
  /// as long as the queries (invalid_argument otherwise). Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results,
                   std::uint32_t missing = no_row) const {
    constexpr const char* where = "roost::coordinate_index::find";
    if (!table_.has_memory())
      return detail::find_no_values<coordinate<D>>(place, queries, results, missing, where);
    return detail::bulk_lookups(place, ref(), bytes()).find_values(queries, results, missing, where);
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results) const {
    constexpr const char* where = "roost::coordinate_index::contains";
    if (!table_.has_memory()) return detail::find_nothing<coordinate<D>>(place, queries, results, where);
    return detail::bulk_lookups(place, ref(), bytes()).find_contained(queries, results, where);
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return table_.has_memory() ? detail::bulk_lookups(place, ref(), bytes()).count(queries) : 0;
  }

  /// Calls f(coordinate, row) for every voxel, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    place.for_each(size(), detail::call_with_row<F, D>{f, table_.coordinates_.data()});
  }

  /// The coordinate of each row, in memory of the place.
  std::span<const coordinate<D>> coordinates() const { return table_.coordinates_.span().first(size()); }
  /// The row of each input coordinate. Empty without options::rows_of_input.
  std::span<const std::uint32_t> rows_of_input() const {
    return table_.rows_of_input_.span().first(detail::smaller(table_.inputs_, table_.rows_of_input_.size()));
  }

  /// An index on the host is also a range of its coordinates, in row order.
  const coordinate<D>* begin() const
    requires std::is_same_v<Place, host>
  {
    return coordinates().data();
  }
  const coordinate<D>* end() const
    requires std::is_same_v<Place, host>
  {
    return coordinates().data() + size();
  }

  ref_type ref() const { return table_.ref(); }

  /// The number of distinct voxels.
  std::size_t size() const { return table_.size(); }
  bool empty() const { return size() == 0; }
  /// The same number in memory of the place, where queued work updates it: for graphs. Null for an index
  /// without memory.
  const std::uint64_t* device_size() const { return table_.device_size(); }
  /// options::capacity.
  std::size_t capacity() const { return table_.options_.capacity; }
  /// The number of input coordinates that are duplicates of earlier ones.
  std::size_t duplicates() const { return statistics().inputs - size(); }
  /// The smallest box that holds all voxels.
  const coordinate_box<D>& bounds() const { return table_.bounds_; }
  std::size_t bytes() const { return statistics().bytes; }
  const coordinate_statistics& statistics() const { return table_.statistics_; }
  roost::order row_order() const { return table_.options_.order; }

  /// Checks the invariants: the coordinate of each row is found at that row, and rows are in order. Looks up
  /// every voxel. Synchronises.
  bool valid(const Place& place) const { return table_.valid(place); }

  /// Calls f with the handle of the index's representation: like ref(), but without a branch on the
  /// representation in each lookup. For kernels over many voxels.
  template <class F>
  auto with_rows(const F& f) const {
    return table_.with_rows(f);
  }

 private:
  template <int, class>
  friend class detail::neighbour_table;

  table table_;
};

template <class Place, class Coordinates>
coordinate_index(const Place&, const Coordinates&, coordinate_options = {})
    -> coordinate_index<detail::element_of<Coordinates>::dimensions, Place>;

}  // namespace roost
