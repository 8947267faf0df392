#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"
#include "roost/detail/table/ref_life.hpp"
#include "roost/sparse/detail/blocks.hpp"
#include "roost/sparse/sparse_options.hpp"
#include "roost/two_way_index.hpp"

// The table of a coordinate_index, and its builds.

namespace roost {

template <int D, class Place>
class coordinate_index;

namespace detail {
template <int D, class Place>
class neighbour_table;
}

}  // namespace roost

namespace roost::detail {

/// The handle of an index whose representation is blocks.
template <int D>
struct block_rows {
  block_table<D> table;
  const std::uint32_t* row_of;  // null: rows are in the order of blocks

  ROOST_FN std::uint32_t row(std::uint32_t rank) const { return row_of == nullptr ? rank : row_of[rank]; }
  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    const found<std::uint32_t> rank = table.find(c);
    return rank && row_of != nullptr ? found<std::uint32_t>(row_of[*rank]) : rank;
  }
};

/// The same for points: the key is the voxel's position in the order along the curve.
template <int D, class Map>
struct point_rows {
  const index_state<D>* state;
  Map map;

  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    cell position;
    if (!state->grid.locate(c, position)) return {};
    return map.find(state->grid.order_of(position));
  }
};

template <int D, class Source>
struct point_key {
  Source source;
  const index_state<D>* state;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    cell position;
    coordinate<D> c{};
    give(source, i, c);
    state->grid.locate(c, position);
    return state->grid.order_of(position);
  }
};

template <int D>
struct coordinate_of_point {
  const std::uint64_t* keys;
  const index_state<D>* state;
  ROOST_FN coordinate<D> operator()(std::size_t i) const {
    return state->grid.coordinate_of(state->grid.voxel_of_order(keys[i]));
  }
};

/// Whether a source may omit coordinates.
template <int D, class Source>
concept may_skip = requires(const Source& source, coordinate<D>& c) { source.give(0, c); };
/// Whether a source produces the output voxels of a convolution, for which rows_of_input() is not needed.
template <class Source>
concept makes_voxels = requires { Source::makes_voxels; };

template <int D, class Source>
struct given_in {
  Source source;
  ROOST_FN bool operator()(std::size_t i) const {
    coordinate<D> c{};
    return give(source, i, c);
  }
};

/// The first `count` coordinates of a sequence.
template <class Sequence>
struct counted_coordinates {
  Sequence sequence;
  const std::uint32_t* count;  // null: all
  std::size_t size() const { return sequence.size(); }
  template <int D>
  ROOST_FN bool give(std::size_t i, coordinate<D>& result) const {
    if (count != nullptr && i >= *count) return false;
    result = sequence[i];
    return true;
  }
};

template <class F, int D>
struct call_with_row {
  F f;
  const coordinate<D>* coordinates;
  ROOST_FN void operator()(std::size_t row) const { f(coordinates[row], static_cast<std::uint32_t>(row)); }
};

/// Whether a row is correct.
template <class Rows, int D>
struct good_row {
  Rows rows;
  const index_state<D>* state;
  const coordinate<D>* coordinates;
  bool in_order;  // along the curve
  ROOST_FN bool operator()(std::size_t row) const {
    const found<std::uint32_t> there = rows.find(coordinates[row]);
    if (!there || *there != row) return false;
    if (!in_order || row == 0) return true;
    cell mine, before;
    const grid<D>& grid = state->grid;
    grid.locate(coordinates[row], mine);
    grid.locate(coordinates[row - 1], before);
    const std::uint64_t order = grid.order_of(mine.key), order_before = grid.order_of(before.key);
    return order_before < order || (order_before == order && before.code < mine.code);
  }
};

/// Returned by coordinate_index::ref().
template <int D, class Points>
class voxel_ref : public ref_base {
 public:
  using key_type = coordinate<D>;
  using value_type = std::uint32_t;

  template <class Rows>
  voxel_ref(const Rows& rows, const coordinate<D>* coordinates, const std::uint64_t* size)
      : rows_(rows), has_points_(std::is_same_v<Rows, Points>), coordinates_(coordinates), size_(size) {}

  /// The row of a voxel, or nothing.
  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    this->expect_alive();
    return has_points_ ? rows_.points.find(c) : rows_.blocks.find(c);
  }
  /// True if the voxel is present.
  ROOST_FN bool contains(const coordinate<D>& c) const { return find(c).has_value(); }
  /// Prefetches what a lookup of this voxel reads. Does nothing on a GPU: other threads hide the latency.
  ROOST_PREFETCH_FN void prefetch(const coordinate<D>& c) const {
    if (!has_points_) rows_.blocks.table.prefetch(c);
  }
  /// The coordinate of a row below size().
  ROOST_FN const coordinate<D>& coordinate_at(std::uint32_t row) const { return coordinates_[row]; }
  /// The number of distinct voxels. Callable only on the place of the index.
  ROOST_FN std::uint32_t size() const { return static_cast<std::uint32_t>(*size_); }

 private:
  union either {
    block_rows<D> blocks;
    Points points;
    explicit either(const block_rows<D>& rows) : blocks(rows) {}
    explicit either(const Points& rows) : points(rows) {}
  } rows_;
  bool has_points_;
  const coordinate<D>* coordinates_;
  const std::uint64_t* size_;
};

/// The contents of a coordinate_index: blocks or points, and the coordinate of each row.
template <int D, class Place>
class voxel_table {
  using state = index_state<D>;
  using point_map = two_way_index<std::uint64_t, Place>;
  using row_array = array<std::uint32_t, Place>;
  static constexpr const char* where = "roost::coordinate_index";
  static constexpr std::uint32_t no_row = roost::no_row<std::uint32_t>;
  static constexpr std::size_t some = 64;  // additional superblocks and blocks, for a few coordinates

 public:
  using block_handle = block_rows<D>;
  using point_handle = point_rows<D, typename point_map::ref_type>;
  using ref_type = voxel_ref<D, point_handle>;

  voxel_table() = default;
  explicit voxel_table(const coordinate_options& options) : options_(options) {}

  bool has_memory() const { return memory_.size() != 0; }
  std::size_t size() const { return statistics_.size; }

  /// `likely`: the likely number of distinct coordinates of the source.
  template <class Source>
  void build(const Place& place, const Source& source, std::size_t likely) {
    life_ = ref_life(place);
    const std::size_t n = source.size(), room = is_fixed() ? options_.capacity : std::min(likely, n);
    if (room >= no_row)
      raise<invalid_argument>({where, ": ", room, " coordinates; an index takes at most 2^32 - 2"});
    if (is_fixed()) {
      const bool in_order = options_.order == order::input;
      place.expect_room(room * (sizeof(coordinate<D>) + 16 + (in_order ? 8 : 4)));
      make_room(place, room / 12 + some, room / 2 + some);
      make_room_for_blocks(place, blocks_most_);
      coordinates_ = array<coordinate<D>, Place>(place, room);
      rows_of_input_ = row_array(place, in_order || options_.rows_of_input ? room : 0);
      row_of_ = row_array(place, in_order ? room : 0);
      fill(place, source);
      return finish(place);
    }
    place.expect_room(room * (sizeof(coordinate<D>) + 6) + (options_.rows_of_input ? 4 * n : 0));
    if (options_.representation == representation::points || !build_blocks(place, source, room))
      build_points(place, source);
  }

  /// coordinate_index::rebuild_async.
  template <class Source>
  void refill(const Place& place, const Source& source) try {
    fill(place, source);
  } catch (...) {
    clear(place);
    throw;
  }
  void clear(const Place& place) {
    inputs_ = 0;
    place.fill(memory_.data(), 0, memory_.bytes());
    take_over({});
  }

  void finish(const Place& place) {
    if (!is_fixed()) return;
    state counted = look(place);
    if (counted.failed != 0) counted.rows = counted.inputs = 0;
    take_over(counted);
    check(counted, "roost::coordinate_index::rebuild_async");
  }

  /// f(handle of the representation)
  template <class F>
  auto with_rows(const F& f) const {
    if (!has_memory())
      raise<invalid_argument>({"roost::coordinate_index::ref: the index has no memory; build it first"});
    if (points_) return f(point_handle{table().state, points_->ref()});
    return f(block_handle{table(), row_of_.size() == 0 ? nullptr : row_of_.data()});
  }

  /// The number of distinct voxels, on the place.
  const std::uint64_t* device_size() const { return has_memory() ? &table().state->rows : nullptr; }
  ref_type ref() const {
    return with_rows([&](const auto& rows) {
      ref_type result(rows, coordinates_.data(), device_size());
      result.refer_to(life_);
      return result;
    });
  }

  bool valid(const Place& place) const {
    if (!has_memory()) return size() == 0;
    std::uint64_t rows = 0;
    place.copy_to_host(&rows, device_size(), sizeof(rows));
    if (rows != size() || (points_ && !points_->valid(place))) return false;
    return with_rows([&](const auto& all) {
             using good = good_row<std::remove_cvref_t<decltype(all)>, D>;
             return place.sum(size(),
                              good{all, table().state, coordinates_.data(), options_.order == order::block});
           }) == size();
  }

 private:
  friend class coordinate_index<D, Place>;
  template <int, class>
  friend class neighbour_table;

  static constexpr std::size_t head = ceil_div(sizeof(state), sizeof(superblock));

  bool is_fixed() const { return options_.capacity != 0; }
  block_table<D> table() const {
    auto* const memory = const_cast<superblock*>(memory_.data());
    return {reinterpret_cast<state*>(memory), memory + head, const_cast<block*>(blocks_.data()),
            static_cast<std::uint32_t>(memory_.size() - head), seed_};
  }
  /// The state but for its grid, which the host computes itself: 64 bytes if D is 3.
  state look(const Place& place) const {
    state result{};
    place.copy_to_host(&result, table().state, offsetof(state, grid));
    return result;
  }

  /// Allocates memory for the superblocks and, if their number is not known yet, for a number of blocks.
  void make_room(const Place& place, std::size_t superblocks, std::size_t blocks) {
    constexpr std::size_t most = (std::size_t{1} << 31) - 1;  // so that there are fewer than 2^32 slots
    superblocks_most_ = static_cast<std::uint32_t>(std::min(superblocks, most));
    blocks_most_ = static_cast<std::uint32_t>(std::min<std::size_t>(blocks, no_row - 1));
    memory_ = {};
    memory_ = array<superblock, Place>(place, head + 2 * std::size_t{superblocks_most_} + 1);
  }
  void make_room_for_blocks(const Place& place, std::size_t blocks) {
    const std::size_t words =
        earlier_teams::words(ceil_div<std::size_t>(blocks, index_blocks<Place, D>::tile));
    blocks_most_ = static_cast<std::uint32_t>(blocks);
    blocks_ = {};
    blocks_ = array<block, Place>(place, blocks + ceil_div(words * sizeof(std::uint64_t), sizeof(block)));
  }

  /// Tries to build blocks, with more room each time. False if there are too many for the coordinates.
  template <class Source>
  bool build_blocks(const Place& place, const Source& source, std::size_t room) {
    const std::size_t n = source.size();
    const bool looks = n >= sparse_tuning<Place>::looks_from;
    state counted{};
    for (const std::size_t share : {12, 2, 1}) {  // coordinates per superblock
      const bool all = share == 1;
      if (all && options_.representation == representation::automatic && counted.measured().has_voxel_order())
        return false;
      make_room(place, all ? n : room / share + some, all ? n : room / 2 + some);
      if (!looks) make_room_for_blocks(place, blocks_most_);
      for (int attempt = 0;; ++attempt) {
        seed_ = seed_of_attempt(options_.seed, attempt);
        counted = fill(place, source, looks);
        if (counted.failed == 0) {
          take_over(counted);
          return true;
        }
        if ((counted.failed & too_many) != 0) break;
        if (counted.failed != crowded || attempt == 3) check(counted);
        ++statistics_.restarts;
      }
      ++statistics_.restarts;
    }
    return false;
  }

  template <class Source>
  void measure(const Place& place, const Source& source) {
    using kernel = measure_box<Place, D, Source>;
    std::size_t count = source.size();
    if constexpr (requires { source.has_boxes(); }) count = source.has_boxes() ? source.most : count;
    const std::size_t tiles = ceil_div<std::size_t>(count, kernel::tile),
                      teams = std::min(tiles, sparse_tuning<Place>::box_teams);
    inputs_ = source.size();
    place.fill(memory_.data(), 0, memory_.bytes());
    launch(place, teams, kernel{source, count, table().state, teams});
  }

  /// Builds blocks. With `looks`, the host reads the counts before it continues; without, nothing waits until
  /// the rows are numbered, or at all if options.capacity is set.
  template <class Source>
  state fill(const Place& place, const Source& source, bool looks = false) {
    using insert = insert_superblocks<Place, D, Source>;
    using mark = mark_voxels<Place, D, Source>;
    using number = index_blocks<Place, D>;
    const std::size_t tiles = ceil_div<std::size_t>(source.size(), insert::tile);
    measure(place, source);
    row_array taken(place, superblocks_most_);
    launch(place, tiles, insert{source, source.size(), table(), taken.data(), superblocks_most_});
    std::optional<state> known;
    if (looks) {
      known = look(place);
      if (known->failed != 0) return *known;
      make_room_for_blocks(place, std::min<std::size_t>(blocks_most_, std::size_t{64} * known->superblocks));
    }
    order_blocks(place, taken, known);
    place.fill(blocks_.data(), 0, blocks_.bytes());
    launch(place, tiles, mark{source, source.size(), table(), blocks_most_});
    const earlier_teams turns(reinterpret_cast<std::uint64_t*>(blocks_.data() + blocks_most_));
    const number rows{table(), blocks_most_, is_fixed() ? coordinates_.size() : ~std::uint64_t{0}, turns};
    launch(place, ceil_div<std::size_t>(blocks_most_, number::tile), rows);
    if (is_fixed()) place.for_each(table().slots, empty_if_failed<D>{table()});
    state counted{};
    if (!is_fixed()) {
      counted = look(place);
      if (counted.rows >= no_row) check(counted);
      if (counted.failed != 0) return counted;
      coordinates_ = array<coordinate<D>, Place>(place, counted.rows);
      if (options_.order == order::input) row_of_ = row_array(place, counted.rows);
    }
    if (options_.order == order::block) {
      using write = write_coordinates<Place, D>;
      place.for_each((is_fixed() ? blocks_most_ : counted.blocks) * write::parts,
                     write{table(), coordinates_.data()});
    }
    if constexpr (!makes_voxels<Source>) {
      if (options_.order == order::input || options_.rows_of_input) write_rows(place, source);
    }
    constexpr std::size_t worthwhile = 1 << 20;
    if (!is_fixed() && blocks_.bytes() > worthwhile && counted.blocks < blocks_.size() / 2)
      truncate(place, blocks_, counted.blocks);  // at last: the host does it while the place works
    return counted;
  }

  /// Finds the first block of each superblock.
  void order_blocks(const Place& place, const row_array& taken, const std::optional<state>& known) {
    using compare = compare_superblocks<Place, D>;
    constexpr std::size_t compared_most = sparse_tuning<Place>::compared_most;
    const std::size_t most = known ? known->superblocks : superblocks_most_;
    if (most <= (known ? compared_most : 4 * compared_most)) {
      const std::size_t tiles = ceil_div<std::size_t>(most, compare::tile);
      // Enough teams for a large device.
      const std::size_t parts =
          std::is_same_v<Place, host> ? 1 : std::clamp<std::size_t>(256 / tiles, 1, tiles);
      launch(place, tiles * parts, compare{table(), taken.data(), static_cast<std::uint32_t>(parts)});
      return;
    }
    const auto sorted = sort_pairs(place, computed(most, superblock_in_order<D>{table(), taken.data()}),
                                   known ? known->measured().order_bits() : 64);
    array<std::uint64_t, Place> before(place, most + 1);
    write_numbers(place, most + 1, blocks_of_sorted<D>{table(), sorted.items()}, before.data());
    place.exclusive_scan(before.data(), before.data(), most + 1);
    place.for_each(most, begin_superblock<D>{table(), sorted.items(), before.data()});
  }

  /// Writes the row of each input coordinate; with order::input, rows are also numbered here.
  template <class Source>
  void write_rows(const Place& place, const Source& source) {
    const std::size_t n = source.size();
    if (rows_of_input_.size() < n) rows_of_input_ = row_array(place, n);
    std::uint32_t* const rows = rows_of_input_.data();
    write_numbers(place, n, rank_of_input<D, Source>{table(), source}, rows);
    if (options_.order == order::block) return;
    row_array first = filled<std::uint32_t>(place, coordinates_.size(), 0xff);
    place.for_each(n, find_first_input{rows, first.data()});
    select(place, n, is_first_input{rows, first.data()},
           put_row<D, Source>{source, rows, row_of_.data(), coordinates_.data()});
    place.for_each(n, rank_to_row{row_of_.data(), rows});
  }

  /// The key of each coordinate that the source has.
  template <class Source>
  array<std::uint64_t, Place> point_keys(const Place& place, const Source& source) const {
    const std::size_t n = source.size();
    const point_key<D, Source> key{source, table().state};
    if constexpr (may_skip<D, Source>) {
      const given_in<D, Source> given{source};
      array<std::uint64_t, Place> keys(place, place.sum(n, given));
      select(place, n, given, put_at_position<point_key<D, Source>, std::uint64_t>{key, keys.data()});
      return keys;
    } else {
      return array_of(place, n, key);
    }
  }

  template <class Source>
  void build_points(const Place& place, const Source& source) {
    make_room(place, 0, 0);
    measure(place, source);
    state counted = look(place);
    counted.grid = counted.measured();
    if (!counted.grid.fits()) counted.failed = too_wide;
    check(counted);
    if (!counted.grid.has_voxel_order()) {
      raise<invalid_argument>({where, ": the box of the coordinates, ", text_of_box(counted),
                               ", is too wide for points; take another representation"});
    }
    place.copy_from_host(table().state, &counted, sizeof(counted));
    const auto keys = point_keys(place, source);
    const auto index_order =
        options_.order == order::block ? index_order::by_key : index_order::first_occurrence;
    points_.emplace(
        place, keys,
        typename point_map::options{.order = index_order, .seed = options_.seed, .counts = false});
    if (options_.rows_of_input) rows_of_input_ = points_->take_indices();
    counted.rows = points_->size();
    place.copy_from_host(table().state, &counted, sizeof(counted));
    coordinates_ =
        array_of(place, counted.rows, coordinate_of_point<D>{points_->keys().data(), table().state});
    take_over(counted);
  }

  static std::string text_of_box(const state& counted) {
    const auto corner = [&](bool low) {
      std::string result = "(";
      for (int a = 0; a <= D; ++a) {
        if (a != 0) result += a == 1 ? "; " : ", ";
        result += std::to_string(low ? counted.least_at(a) : counted.greatest_at(a));
      }
      return result + ")";
    };
    return corner(true) + " to " + corner(false);
  }

  /// Throws the exception for a failed build.
  void check(const state& counted, const char* call = where) const {
    if ((counted.failed & too_wide) != 0) {
      raise<invalid_argument>({call, ": the box of the coordinates (batch; axes), ", text_of_box(counted),
                               ", takes ", counted.measured().key_bits, " bits, and there are ",
                               grid<D>::key_bits_most,
                               "; take coordinates that are less far apart, or fewer batches at once"});
    }
    if (counted.rows >= no_row)
      raise<invalid_argument>({call, ": ", counted.rows, " voxels; an index takes at most 2^32 - 2"});
    if (counted.failed == 0) return;
    if (is_fixed() && counted.failed == no_rows) {
      raise<build_error>({call, ": there are more different voxels than a capacity of ", options_.capacity,
                          " has rows for; give more capacity"});
    }
    if (is_fixed()) {
      raise<build_error>({call, ": the coordinates make ", counted.superblocks, " superblocks and ",
                          counted.blocks, " blocks, and a capacity of ", options_.capacity, " has room for ",
                          superblocks_most_, " and ", blocks_most_, "; give more capacity, or another seed"});
    }
    raise<build_error>({call,
                        ": coordinates that were chosen to collide? With 4 seeds some keys found "
                        "no slot; give another seed"});
  }

  void take_over(const state& counted) {
    statistics_.inputs = counted.inputs;
    statistics_.size = counted.rows;
    statistics_.representation = points_ ? representation::points : representation::blocks;
    statistics_.blocks = points_ ? 0 : counted.blocks;
    statistics_.superblocks = points_ ? 0 : counted.superblocks;
    statistics_.bytes = memory_.bytes() + blocks_.bytes() + row_of_.bytes() + coordinates_.bytes() +
                        rows_of_input_.bytes() + (points_ ? points_->bytes() : 0);
    bounds_ = {{0, {}}, {-1, {}}};
    if (counted.inputs == 0) return;
    bounds_.least.batch = counted.least_at(0), bounds_.greatest.batch = counted.greatest_at(0);
    for (int a = 0; a < D; ++a)
      bounds_.least.at[a] = counted.least_at(a + 1), bounds_.greatest.at[a] = counted.greatest_at(a + 1);
  }

  coordinate_options options_{};
  array<superblock, Place> memory_;  // `head` for the state, and the table
  array<block, Place> blocks_;       // and what index_blocks needs for its turns
  std::uint32_t superblocks_most_ = 0, blocks_most_ = 0;
  std::uint64_t seed_ = 0;
  row_array row_of_;  // of each rank, a row in the order of blocks; empty: the same
  std::optional<point_map> points_;
  array<coordinate<D>, Place> coordinates_;
  row_array rows_of_input_;
  std::size_t inputs_ = 0;  // of the last build, including those that were skipped
  coordinate_box<D> bounds_{};
  coordinate_statistics statistics_;
  [[no_unique_address]] ref_life<Place> life_;
};

}  // namespace roost::detail
