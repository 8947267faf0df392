#pragma once

#include "roost/sparse/coordinate_index.hpp"

// The kernels of kernel maps: which row of the source each offset of a window reads, for each row of the
// target.

namespace roost::detail {

/// The windows of a convolution. Offset k names one position k[a] in [0, size[a]) on each axis, the last axis
/// fastest. Forward, a target t reads the source t * stride - padding + k * dilation. Backward it reads the
/// s for which t = s * stride - padding + k * dilation, if there is one.
template <int D>
struct window {
  int size[D], stride[D], dilation[D], padding[D];
  int shift[D];  // the stride's logarithm, or -1 if that is not an integer

  /// The position that t reads on an axis. False if there is none.
  template <bool Backward>
  ROOST_FN bool source(int axis, std::int32_t t, int k, std::int32_t& result) const {
    const std::int64_t moved =
        Backward ? std::int64_t{t} + padding[axis] - std::int64_t{k} * dilation[axis]
                 : std::int64_t{t} * stride[axis] - padding[axis] + std::int64_t{k} * dilation[axis];
    const std::int64_t s = Backward ? divided(axis, moved) : moved;
    result = static_cast<std::int32_t>(s);
    return result == s && (!Backward || s * stride[axis] == moved);
  }

  /// x / stride, rounded down.
  ROOST_FN std::int64_t divided(int axis, std::int64_t x) const {
    if (shift[axis] >= 0) return x >> shift[axis];
    return x / stride[axis] - (x % stride[axis] < 0 ? 1 : 0);
  }
};

/// The row of an offset without a neighbour. (A constant: device code cannot take its address.)
inline constexpr std::uint32_t row_of_none = no_row<std::uint32_t>;

/// The rows of a map under construction.
struct neighbour_output {
  std::uint32_t* rows;  // [offset][stride]
  std::uint64_t stride;
  std::uint32_t* masks;  // [row][words]: a bit for each offset that has a row
  std::uint32_t words;

  ROOST_FN bool has(std::uint32_t offset, std::uint64_t row) const {
    return (masks[row * words + offset / 32] >> offset % 32 & 1) != 0;
  }
};

/// Writes the answers of a row, offset by offset.
class neighbour_writer {
 public:
  ROOST_FN neighbour_writer(const neighbour_output& target, std::uint64_t row)
      : rows_(target.rows + row), stride_(target.stride), mask_(target.masks + row * target.words) {}

  ROOST_FN void write(std::uint32_t row) {
    *rows_ = row;
    rows_ += stride_;
    bits_ |= (row != row_of_none ? 1u : 0u) << count_;
    if (++count_ == 32) end();
  }
  ROOST_FN void end() {
    if (count_ != 0) *mask_++ = bits_;
    bits_ = count_ = 0;
  }

 private:
  std::uint32_t* rows_;
  std::uint64_t stride_;
  std::uint32_t* mask_;
  std::uint32_t bits_ = 0, count_ = 0;
};

/// Finds the rows of all windows, one lookup for each offset: for any window and any index.
template <class Place, int D, class Rows, bool Backward>
struct look_up_neighbours {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::rows;
  const coordinate<D>* targets;
  const std::uint64_t* count;  // of targets
  Rows source;
  detail::window<D> window;
  neighbour_output target;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t rows = *count;
    if (index * tile >= rows) return;
    for_each_of_tile(team, index, tile, rows, [&](std::uint64_t row) {
      const coordinate<D> target_voxel = targets[row];
      neighbour_writer write(target, row);
      coordinate<D> query{target_voxel.batch, {}};
      walk<0>(target_voxel, query, true, write);
      write.end();
    });
  }

 private:
  template <int Axis>
  ROOST_FN void walk(const coordinate<D>& target_voxel, coordinate<D>& query, bool may_be,
                     neighbour_writer& write) const {
    ROOST_ROLLED
    for (int k = 0; k < window.size[Axis]; ++k) {
      const bool may_exist =
          window.template source<Backward>(Axis, target_voxel.at[Axis], k, query.at[Axis]) && may_be;
      if constexpr (Axis + 1 < D) {
        walk<Axis + 1>(target_voxel, query, may_exist, write);
      } else {
        write.write(may_exist ? source.find(query).value_or(std::uint32_t{row_of_none}) : row_of_none);
      }
    }
  }
};

/// The same for windows that span at most two blocks on each axis: these up to 2^D blocks are looked up once.
/// Size: of the window on all axes; 0: taken from the window. Offsets are less than a block's side apart.
template <class Place, int D, int Size>
struct read_neighbours {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t tile = sparse_tuning<Place>::rows;
  static constexpr std::uint32_t corners = 1u << D;
  using code = morton<D>;
  const coordinate<D>* targets;
  const std::uint64_t* count;
  block_rows<D> source;
  detail::window<D> window;
  neighbour_output target;

  /// Whether this kernel can be used.
  static bool takes(const detail::window<D>& window) {
    for (int a = 0; a < D; ++a) {
      const bool narrow =
          std::int64_t{window.size[a] - 1} * window.dilation[a] <= static_cast<int>(code::block_side(a));
      if (!narrow || (Size != 0 && window.size[a] != Size)) return false;
    }
    return true;
  }

  struct pieces {  // of each corner and worker
    std::uint64_t* voxels;
    std::uint32_t* first_row;
  };
  ROOST_FN static constexpr std::uint32_t workers() {
    return std::is_same_v<Place, host> ? 1 : static_cast<std::uint32_t>(threads);
  }
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(corners * workers()), memory.take<std::uint32_t>(corners * workers())};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const std::uint64_t rows = *count;
    if (index * tile >= rows) return;
    scratch_memory scratch_of_team(memory);
    pieces corner_rows = scratch(scratch_of_team);
    corner_rows.voxels += team.rank(), corner_rows.first_row += team.rank();
    for_each_of_tile(team, index, tile, rows, [&](std::uint64_t row) {
      std::uint32_t inside[D];
      find_corners(targets[row], corner_rows, inside);
      neighbour_writer write(target, row);
      walk<0>(corner_rows, inside, 0, 0, write);
      write.end();
    });
  }

 private:
  ROOST_FN int size(int axis) const {
    if constexpr (Size != 0) {
      return Size;
    } else {
      return window.size[axis];
    }
  }

  /// Looks up the blocks of a target's window; `inside`: where the window begins in the first block.
  ROOST_FN void find_corners(const coordinate<D>& t, const pieces& corner_rows,
                             std::uint32_t (&inside)[D]) const {
    const block_table<D>& table = source.table;
    const grid<D>& grid = table.grid();
    std::int64_t block[D];  // the first on each axis
    std::uint32_t two = 0;  // axes on which there is a second
    ROOST_UNROLL
    for (int a = 0; a < D; ++a) {
      const std::int64_t begin =
          std::int64_t{t.at[a]} * window.stride[a] - window.padding[a] - grid.origin[a + 1];
      block[a] = begin >> code::block_bits(a);
      inside[a] = static_cast<std::uint32_t>(begin) & (code::block_side(a) - 1);
      const std::uint32_t last = inside[a] + static_cast<std::uint32_t>((size(a) - 1) * window.dilation[a]);
      two |= (last >= code::block_side(a) ? 1u : 0u) << a;
    }
    std::uint64_t key = ~std::uint64_t{0};  // of the last superblock looked up
    std::uint64_t blocks = 0;
    std::uint32_t first_block = 0;
    ROOST_ROLLED
    for (std::uint32_t corner = 0; corner < corners; ++corner) {
      if ((corner & ~two) != 0) continue;
      std::uint32_t distances[D + 1] = {grid.distance(0, t.batch)};
      bool inside_box = true;
      ROOST_UNROLL
      for (int a = 0; a < D; ++a) {
        const std::int64_t b = block[a] + (corner >> a & 1);
        inside_box &= b >= 0 && b <= grid.last[a + 1] >> code::block_bits(a);
        distances[a + 1] = static_cast<std::uint32_t>(b << code::block_bits(a));
      }
      cell position;
      inside_box &= grid.locate(distances, position);
      detail::block found{};
      if (inside_box) {
        if (position.key != key) {
          key = position.key;
          const std::uint32_t slot = table.slot_of(key);
          blocks = slot == superblock::none ? 0 : table.superblocks[slot].blocks;
          first_block = slot == superblock::none ? 0 : table.superblocks[slot].first_block;
        }
        if ((blocks >> position.block() & 1) != 0)
          found = load(table.blocks + first_block + bits_before(blocks, position.block()));
      }
      corner_rows.voxels[corner * workers()] = found.voxels;
      corner_rows.first_row[corner * workers()] = found.first_row;
    }
  }

  template <int Axis>
  ROOST_FN void walk(const pieces& corner_rows, const std::uint32_t (&inside)[D], std::uint32_t corner,
                     std::uint32_t voxel, neighbour_writer& write) const {
    if constexpr (Size != 0) {
      ROOST_UNROLL
      for (int k = 0; k < Size; ++k) step<Axis>(k, corner_rows, inside, corner, voxel, write);
    } else {
      ROOST_ROLLED
      for (int k = 0; k < size(Axis); ++k) step<Axis>(k, corner_rows, inside, corner, voxel, write);
    }
  }
  template <int Axis>
  ROOST_FN void step(int k, const pieces& corner_rows, const std::uint32_t (&inside)[D], std::uint32_t corner,
                     std::uint32_t voxel, neighbour_writer& write) const {
    const std::uint32_t position = inside[Axis] + static_cast<std::uint32_t>(k * window.dilation[Axis]);
    corner |= position >> code::block_bits(Axis) << Axis;
    voxel |= code::code(Axis, position & (code::block_side(Axis) - 1));
    if constexpr (Axis + 1 < D) {
      walk<Axis + 1>(corner_rows, inside, corner, voxel, write);
    } else {
      const std::uint64_t voxels = corner_rows.voxels[corner * workers()];
      const std::uint32_t rank = corner_rows.first_row[corner * workers()] + bits_before(voxels, voxel);
      write.write((voxels >> voxel & 1) != 0 ? source.row(rank) : row_of_none);
    }
  }
};

/// The pairs of a map, grouped by offset: counts those of each chunk of target rows or, if Writes, writes
/// them. Neighbours of a team process a chunk together.
template <bool Writes>
struct group_pairs {
  static constexpr int threads = sparse_tuning<cuda>::threads;
  static constexpr std::uint32_t rows_of_chunk = 128;
  neighbour_output map;
  std::uint32_t volume;
  const std::uint64_t* count;  // of target rows
  std::uint64_t chunks;
  std::uint64_t* pairs;  // [offset][chunk]: how many, or, if it writes them, where they begin
  std::uint64_t most;
  std::uint32_t *source_rows, *target_rows;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    constexpr int lanes = Team::near_size;
    const std::uint64_t chunk = index * (Team::size / lanes) + static_cast<std::size_t>(team.rank() / lanes);
    ROOST_ROLLED
    for (std::uint32_t k = 0; k < volume; ++k) {
      if constexpr (Writes) {
        const std::uint64_t begin = pairs[k * chunks + smaller(chunk, chunks - 1)];
        for_each_pair(team, chunk, k, [&](std::uint64_t row, std::uint32_t before) {
          if (begin + before >= most) return;
          source_rows[begin + before] = map.rows[k * map.stride + row];
          target_rows[begin + before] = static_cast<std::uint32_t>(row);
        });
      } else {
        const std::uint32_t pairs_of_chunk =
            for_each_pair(team, chunk, k, [](std::uint64_t, std::uint32_t) {});
        if (team.rank() % lanes == 0 && chunk < chunks) pairs[k * chunks + chunk] = pairs_of_chunk;
      }
    }
  }

 private:
  /// Calls body(row, pairs before it) for each pair of an offset in a chunk; returns how many there are.
  template <class Team, class Body>
  ROOST_FN std::uint32_t for_each_pair(const Team& team, std::uint64_t chunk, std::uint32_t offset,
                                       const Body& body) const {
    const auto lane = static_cast<std::uint32_t>(team.rank() % Team::near_size);
    const std::uint64_t rows = *count;
    std::uint32_t before = 0;
    ROOST_ROLLED
    for (std::uint32_t i = lane; i < rows_of_chunk; i += Team::near_size) {
      const std::uint64_t row = chunk * rows_of_chunk + i;
      const bool paired = row < rows && map.has(offset, row);
      const std::uint32_t votes = team.ballot_near(paired);
      if (paired) body(row, before + count_bits(votes & ((1u << lane) - 1)));
      before += count_bits(votes);
    }
    return before;
  }
};

/// Where the pairs of each offset begin, and the end.
struct begin_of_offset {
  const std::uint64_t* begins;
  std::uint64_t chunks;
  ROOST_FN std::uint64_t operator()(std::size_t offset) const { return begins[offset * chunks]; }
};

// The output voxels of a convolution.

template <int D>
ROOST_FN bool contains(const coordinate_box<D>& box, const coordinate<D>& c) {
  bool inside = c.batch >= box.least.batch && c.batch <= box.greatest.batch;
  ROOST_UNROLL
  for (int a = 0; a < D; ++a) inside &= c.at[a] >= box.least.at[a] && c.at[a] <= box.greatest.at[a];
  return inside;
}

/// The voxels whose windows read some source, found from the sources: Backward if windows read forward.
/// Each source has a number of candidates that is a power of two, and at least the number of voxels that may
/// read it.
template <int D, bool Backward>
struct reached_voxels {
  static constexpr bool makes_voxels = true;
  const coordinate<D>* sources;
  const std::uint64_t* count;
  std::uint64_t most;  // sources
  detail::window<D> window;
  std::uint32_t candidates[D];  // on each axis
  int log2_candidates;          // of their product
  coordinate_box<D> bounds;     // of the voxels

  reached_voxels(const coordinate<D>* from, const std::uint64_t* how_many, std::uint64_t room,
                 const detail::window<D>& shape, const coordinate_box<D>& box)
      : sources(from), count(how_many), most(room), window(shape), log2_candidates(0), bounds(box) {
    std::uint32_t product = 1;
    for (int a = 0; a < D; ++a) {
      const int of_stride = ceil_div(window.size[a], window.stride[a]);
      candidates[a] = static_cast<std::uint32_t>(steps(a) ? of_stride : window.size[a]);
      product *= candidates[a];
    }
    while (1u << log2_candidates < product) ++log2_candidates;
  }

  std::size_t size() const { return most << log2_candidates; }

  ROOST_FN bool give(std::size_t i, coordinate<D>& result) const {
    const std::uint64_t number = i >> log2_candidates;
    if (number >= *count) return false;
    const coordinate<D> source = sources[number];
    auto rest = static_cast<std::uint32_t>(i) & ((1u << log2_candidates) - 1);
    result.batch = source.batch;
    bool is_reached = true;
    ROOST_UNROLL
    for (int a = 0; a < D; ++a) {
      int k = static_cast<int>(rest % candidates[a]);
      rest /= candidates[a];
      if (steps(a)) {
        const std::int64_t x = std::int64_t{source.at[a]} + window.padding[a];
        k = static_cast<int>(x - window.divided(a, x) * window.stride[a]) + k * window.stride[a];
      }
      is_reached &= k < window.size[a] && window.template source<Backward>(a, source.at[a], k, result.at[a]);
    }
    return is_reached && rest == 0 && contains(bounds, result);
  }

  /// Whether the voxels that read a source fill a box, which its corners determine.
  ROOST_FN bool has_boxes() const {
    bool fill_boxes = true;
    for (int a = 0; a < D; ++a) fill_boxes &= window.dilation[a] == 1 || window.size[a] == 1;
    return fill_boxes;
  }
  /// The box of the voxels that read source `number`; returns how many there are.
  ROOST_FN std::uint64_t box(std::uint64_t number, coordinate<D>& least, coordinate<D>& greatest) const {
    if (number >= *count) return 0;
    const coordinate<D> source = sources[number];
    if (source.batch < bounds.least.batch || source.batch > bounds.greatest.batch) return 0;
    least.batch = greatest.batch = source.batch;
    std::uint64_t voxels = 1;
    ROOST_UNROLL
    for (int a = 0; a < D; ++a) {
      const std::int64_t at = source.at[a], last = window.size[a] - 1, stride = window.stride[a];
      const std::int64_t first = Backward ? at + window.padding[a] : at * stride - window.padding[a];
      std::int64_t low = Backward ? window.divided(a, first - last + stride - 1) : first;
      std::int64_t high = Backward ? window.divided(a, first) : first + last;
      low = larger(low, std::int64_t{bounds.least.at[a]});
      high = smaller(high, std::int64_t{bounds.greatest.at[a]});
      least.at[a] = static_cast<std::int32_t>(low);
      greatest.at[a] = static_cast<std::int32_t>(high);
      voxels *= low <= high ? static_cast<std::uint64_t>(high - low + 1) : 0;
    }
    return voxels;
  }

 private:
  /// Whether only every stride-th offset is possible.
  ROOST_FN bool steps(int a) const { return Backward && window.dilation[a] == 1; }
};

/// The sources' coordinates divided by the stride, rounded down.
template <int D>
struct strided_voxels {
  static constexpr bool makes_voxels = true;
  const coordinate<D>* sources;
  const std::uint64_t* count;
  std::uint64_t most;
  detail::window<D> window;
  coordinate_box<D> bounds;  // of the results

  std::size_t size() const { return most; }
  ROOST_FN bool give(std::size_t i, coordinate<D>& result) const {
    if (i >= *count) return false;
    result = sources[i];
    ROOST_UNROLL
    for (int a = 0; a < D; ++a) result.at[a] = static_cast<std::int32_t>(window.divided(a, result.at[a]));
    return contains(bounds, result);
  }
};

/// Whether an answer of a map is impossible.
struct wrong_neighbour {
  neighbour_output map;
  std::uint64_t rows, sources;
  ROOST_FN bool operator()(std::size_t i) const {
    const std::uint64_t offset = i / rows, row = i % rows;
    const std::uint32_t source = map.rows[offset * map.stride + row];
    const bool exists = source != row_of_none;
    return exists != map.has(static_cast<std::uint32_t>(offset), row) || (exists && source >= sources);
  }
};

/// Whether a pair does not belong to the map, or is not after the previous pair.
struct wrong_pair {
  neighbour_output map;
  std::uint32_t volume;
  const std::uint64_t* begins;
  const std::uint32_t *source_rows, *target_rows;
  std::uint64_t rows;
  ROOST_FN bool operator()(std::size_t i) const {
    const std::uint32_t offset = last_at_or_before(0u, volume, begins, i), row = target_rows[i];
    return row >= rows || map.rows[offset * map.stride + row] != source_rows[i] ||
           (i != begins[offset] && target_rows[i - 1] >= row);
  }
};

}  // namespace roost::detail
