#pragma once

#include <optional>

#include "roost/bulk.hpp"
#include "roost/sparse/detail/blocks.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// coordinate_index: coordinates of voxels <-> rows 0, 1, ... m - 1.

namespace roost {

/// The order in which a coordinate_index numbers its voxels. Rows are the same every time, on every place,
/// with any number of threads.
enum class order {
  /// By batch, then along a space-filling curve (Morton's) from the corner of the bounding box, or row by row
  /// if the box is too wide for a curve of 63 bits. Rows of neighbours are close together, whatever the order
  /// of the input: the fastest order to build and to use.
  block,
  input  ///< by first occurrence in the input
};

/// How a coordinate_index stores its voxels.
enum class representation {
  automatic,  ///< blocks, unless there are more than half as many blocks as input coordinates
  /// Blocks of 64 voxels (8 x 8; 4 x 4 x 4; 2 x 2 x 4 x 4) as words of bits. For surfaces and solids: best
  /// from about two voxels per block.
  blocks,
  points  ///< one entry per voxel in a frozen_map: for thin clouds
};

/// All coordinates from `least` to `greatest`, both included. Empty if `least` exceeds `greatest` on some
/// axis.
template <int D>
struct coordinate_box {
  coordinate<D> least, greatest;
};

/// Facts about an index and its last build.
struct coordinate_statistics {
  std::size_t inputs = 0;       ///< coordinates passed to the build
  std::size_t size = 0;         ///< distinct coordinates
  std::size_t blocks = 0;       ///< blocks with voxels; 0 for points
  std::size_t superblocks = 0;  ///< superblocks (64 blocks) with voxels; 0 for points
  std::size_t bytes = 0;        ///< of the index, including coordinates() and rows_of_input()
  int restarts = 0;             ///< how often the build restarted, with more room or another seed
  roost::representation representation = representation::blocks;

  /// The mean number of voxels per block.
  double occupancy() const {
    return blocks == 0 ? 0 : static_cast<double>(size) / static_cast<double>(blocks);
  }
};

/// Numbers the distinct voxels of a batch of coordinates: the basis of sparse convolution, pooling and point
/// clouds. A lookup maps a coordinate to its row, and an array maps a row to its coordinate. Kernel maps
/// (kernel_map.hpp) find the neighbours of all voxels with it.
///
///     roost::coordinate_index index(gpu, coordinates);    // roost::coordinate<3>: batch, x, y, z
///     index.size();                                       // distinct voxels
///     index.coordinates();                                // of each row, its coordinate
///     index.rows_of_input();                              // of each input coordinate, its row
///     index.find(gpu, queries, rows);                     // no_row<std::uint32_t> for absent ones
///     if (auto row = index.ref().find({0, {x, y, z}})) use(*row);   // in kernels too
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
template <int D, class Place = host>
class coordinate_index {
  static_assert(D >= 2 && D <= 4, "a coordinate_index has 2, 3 or 4 axes besides the batch");
  using state = detail::index_state<D>;
  using facts = detail::index_facts<D>;
  using point_map = two_way_index<std::uint64_t, Place>;

 public:
  using key_type = coordinate<D>;
  static constexpr int dimensions = D;

  /// What find() writes for an absent coordinate, unless you pass another value: -1 as a signed number.
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;

  struct options {
    roost::order order = roost::order::block;
    roost::representation representation = roost::representation::automatic;
    bool rows_of_input = true;  ///< whether to compute rows_of_input()
    /// The number of coordinates to reserve room for, for rebuild_async(); the representation is then
    /// `blocks`. There is room for one superblock in 12 coordinates and one block in 2: give more for thinner
    /// clouds.
    std::size_t capacity = 0;
    std::uint64_t seed = 0;  ///< chooses the hash function; rows do not depend on it
  };

  /// The handle for kernels and host loops. Trivially copyable. It remains valid after rebuild_async(), and
  /// until the index is assigned to or destroyed. Any number of threads may read.
  class ref_type;

  /// Numbers the coordinates of a range in the memory of the place: coordinate<D>, in any order, with any
  /// number of duplicates. Synchronises. Throws invalid_argument for a bounding box that is too wide or more
  /// than 2^32 - 2 coordinates, out_of_memory, device_error; build_error if keys that were chosen to collide
  /// crowd the table with four seeds.
  template <class Coordinates>
    requires std::is_same_v<detail::element_of<Coordinates>, coordinate<D>>
  coordinate_index(const Place& place, const Coordinates& coordinates, options chosen = {});

  /// An empty index with room for options::capacity coordinates.
  coordinate_index(const Place& place, options chosen);
  /// An empty index without memory; lookups find nothing in it.
  coordinate_index() = default;

  coordinate_index(coordinate_index&&) noexcept = default;
  coordinate_index& operator=(coordinate_index&&) noexcept = default;

  /// Builds the index again in the memory reserved for options::capacity, without waiting. On cuda all work
  /// is queued on the place's stream and can be captured in a graph; a replay uses the coordinates that the
  /// range holds at that time. `count`: null, or a word in memory of the place with the number of
  /// coordinates. Calls that are queued after it see the new index; size(), the spans and statistics()
  /// describe it after finish(). If the coordinates do not fit, the index is empty, and finish() throws.
  /// Throws invalid_argument for more coordinates than options::capacity, out_of_memory.
  template <class Coordinates>
  void rebuild_async(const Place& place, const Coordinates& coordinates,
                     const std::uint32_t* count = nullptr);

  /// Waits for the last rebuild_async, or the last replay of its graph, and updates size(), the spans and
  /// statistics(). Throws build_error if the coordinates did not fit, invalid_argument if their box was too
  /// wide. Synchronises.
  void finish(const Place& place);

  /// results[i] = the row of queries[i], or `missing`. `results` is contiguous memory of the place, at least
  /// as long as the queries (invalid_argument otherwise). Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find(const Place& place, const Queries& queries, Results&& results,
                   std::uint32_t missing = no_row) const;

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results) const;

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const;

  /// Calls f(coordinate, row) for every voxel, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const;

  /// The coordinate of each row, in memory of the place.
  std::span<const coordinate<D>> coordinates() const { return coordinates_.span().first(size()); }
  /// The row of each input coordinate. Empty without options::rows_of_input.
  std::span<const std::uint32_t> rows_of_input() const {
    return rows_of_input_.span().first(detail::smaller(inputs_, rows_of_input_.size()));
  }

  /// An index on the host is also a range of its coordinates, in row order.
  const coordinate<D>* begin() const
    requires std::is_same_v<Place, host>
  {
    return coordinates_.data();
  }
  const coordinate<D>* end() const
    requires std::is_same_v<Place, host>
  {
    return coordinates_.data() + size();
  }

  ref_type ref() const;

  /// The number of distinct voxels.
  std::size_t size() const { return statistics_.size; }
  bool empty() const { return size() == 0; }
  /// The same number in memory of the place, where queued work updates it: for graphs. Null for an index
  /// without memory.
  const std::uint64_t* device_size() const { return memory_.size() == 0 ? nullptr : &table().state->rows; }
  /// options::capacity.
  std::size_t capacity() const { return options_.capacity; }
  /// The number of input coordinates that are duplicates of earlier ones.
  std::size_t duplicates() const { return statistics_.inputs - statistics_.size; }
  /// The smallest box that holds all voxels.
  const coordinate_box<D>& bounds() const { return bounds_; }
  std::size_t bytes() const { return statistics_.bytes; }
  const coordinate_statistics& statistics() const { return statistics_; }
  roost::order row_order() const { return options_.order; }

  /// Checks the invariants: the coordinate of each row is found at that row, and rows are in order. Looks up
  /// every voxel. Synchronises.
  bool valid(const Place& place) const;

  /// Calls f with the handle of the index's representation: like ref(), but without a branch on the
  /// representation in each lookup. For kernels over many voxels.
  template <class F>
  auto with_rows(const F& f) const;

 private:
  template <int, class>
  friend class kernel_map;

  // `likely`: the likely number of distinct coordinates of the source.
  template <class Source>
  void build(const Place& place, const Source& source, std::size_t likely);
  template <class Source>
  void build_points(const Place& place, const Source& source);
  void make_room(const Place& place, std::size_t superblocks, std::size_t blocks);
  void make_room_for_blocks(const Place& place, std::size_t blocks);
  template <class Source>
  void measure(const Place& place, const Source& source);
  template <class Source>
  facts fill(const Place& place, const Source& source, bool looks);
  void order_blocks(const Place& place, const array<std::uint32_t, Place>& taken,
                    const std::optional<facts>& known);
  template <class Source>
  void write_rows(const Place& place, const Source& source);
  facts look(const Place& place) const;
  void take_over(const facts& counted);
  void check(const facts& counted, const char* where) const;
  static bool points_hold(const facts& counted);
  static std::string text_of_box(const facts& counted);

  static constexpr std::size_t head = detail::ceil_div(sizeof(state), sizeof(detail::superblock));
  detail::block_table<D> table() const;
  detail::earlier_teams turns() const;

  options options_{};
  array<detail::superblock, Place> memory_;  // `head` for the state, and the table
  array<detail::block, Place> blocks_;       // and what number_blocks needs for its turns
  std::uint32_t superblocks_most_ = 0, blocks_most_ = 0;
  std::uint64_t seed_ = 0;
  array<std::uint32_t, Place> row_of_;  // of each rank, a row in the order of blocks; empty: the same
  std::optional<point_map> points_;
  array<coordinate<D>, Place> coordinates_;
  array<std::uint32_t, Place> rows_of_input_;
  std::size_t inputs_ = 0;  // of the last build, including those that were skipped
  coordinate_box<D> bounds_{};
  coordinate_statistics statistics_;
};

namespace detail {
template <class T>
inline constexpr int axes_of = 0;
template <int D>
inline constexpr int axes_of<coordinate<D>> = D;
}  // namespace detail

template <class Place, class Coordinates>
coordinate_index(const Place&, const Coordinates&)
    -> coordinate_index<detail::axes_of<detail::element_of<Coordinates>>, Place>;
template <class Place, class Coordinates>
coordinate_index(const Place&, const Coordinates&,
                 typename coordinate_index<detail::axes_of<detail::element_of<Coordinates>>, Place>::options)
    -> coordinate_index<detail::axes_of<detail::element_of<Coordinates>>, Place>;

}  // namespace roost

#include "roost/sparse/detail/index.hpp"
