#pragma once

// Bodies of roost/sparse/coordinate_index.hpp.

#include <algorithm>
#include <string>

#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/sparse/coordinate_index.hpp"

namespace roost {
namespace detail {

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
  static constexpr std::uint32_t order_bits_most = 64 - morton<D>::code_bits;
  const index_state<D>* state;
  Map map;

  ROOST_FN static std::uint64_t key_of(const grid<D>& grid, const cell& place) {
    return grid.order_of(place.key) << morton<D>::code_bits | place.code;
  }
  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    cell place;
    if (!state->grid.locate(c, place)) return {};
    return map.find(key_of(state->grid, place));
  }
};

template <int D, class Source, class Rows>
struct point_key {
  Source source;
  const index_state<D>* state;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    cell place;
    coordinate<D> c{};
    give(source, i, c);
    state->grid.locate(c, place);
    return Rows::key_of(state->grid, place);
  }
};

template <int D>
struct coordinate_of_point {
  const std::uint64_t* keys;
  const index_state<D>* state;
  ROOST_FN coordinate<D> operator()(std::size_t i) const {
    const auto code = static_cast<std::uint32_t>(keys[i]) & ((1u << morton<D>::code_bits) - 1);
    return state->grid.coordinate_of({state->grid.key_of_order(keys[i] >> morton<D>::code_bits), code});
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
template <class Source>
struct chosen_coordinates {
  Source source;
  const std::uint64_t* numbers;
  template <int D>
  ROOST_FN bool give(std::size_t i, coordinate<D>& result) const {
    return source.give(numbers[i], result);
  }
};

/// Finishes the state of an index of points.
template <int D>
struct set_points {
  index_state<D>* state;
  std::uint64_t rows;
  ROOST_FN void operator()(std::size_t) const {
    state->grid = state->measured();
    state->rows = rows;
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

/// 1 for a correct row.
template <class Rows, int D>
struct good_row {
  Rows rows;
  const index_state<D>* state;
  const coordinate<D>* coordinates;
  bool in_order;  // along the curve
  ROOST_FN std::uint64_t operator()(std::size_t row) const {
    const found<std::uint32_t> there = rows.find(coordinates[row]);
    if (!there || *there != row) return 0;
    if (!in_order || row == 0) return 1;
    cell mine, before;
    const grid<D>& grid = state->grid;
    grid.locate(coordinates[row], mine);
    grid.locate(coordinates[row - 1], before);
    const std::uint64_t order = grid.order_of(mine.key), order_before = grid.order_of(before.key);
    return order_before < order || (order_before == order && before.code < mine.code) ? 1 : 0;
  }
};

}  // namespace detail

template <int D, class Place>
class coordinate_index<D, Place>::ref_type {
  using point_map_ref = detail::point_rows<D, typename point_map::ref_type>;

 public:
  using key_type = coordinate<D>;
  using value_type = std::uint32_t;

  /// The row of a voxel, or nothing.
  ROOST_FN found<std::uint32_t> find(const coordinate<D>& c) const {
    return has_points_ ? rows_.points.find(c) : rows_.blocks.find(c);
  }
  /// True if the voxel is present.
  ROOST_FN bool contains(const coordinate<D>& c) const { return find(c).has_value(); }
  /// Prefetches what a lookup of this voxel reads. Does nothing on a GPU, where other threads hide the
  /// latency.
  ROOST_PREFETCH_FN void prefetch(const coordinate<D>& c) const {
    if (!has_points_) rows_.blocks.table.prefetch(c);
  }
  /// The coordinate of a row below size().
  ROOST_FN const coordinate<D>& coordinate_at(std::uint32_t row) const { return coordinates_[row]; }
  /// The number of distinct voxels. Callable only on the place of the index.
  ROOST_FN std::uint32_t size() const { return static_cast<std::uint32_t>(*size_); }

 private:
  friend class coordinate_index;
  ref_type(const detail::block_rows<D>& blocks, const coordinate<D>* coordinates, const std::uint64_t* size)
      : rows_(blocks), has_points_(false), coordinates_(coordinates), size_(size) {}
  ref_type(const point_map_ref& points, const coordinate<D>* coordinates, const std::uint64_t* size)
      : rows_(points), has_points_(true), coordinates_(coordinates), size_(size) {}

  union either {
    detail::block_rows<D> blocks;
    point_map_ref points;
    explicit either(const detail::block_rows<D>& rows) : blocks(rows) {}
    explicit either(const point_map_ref& rows) : points(rows) {}
  } rows_;
  bool has_points_;
  const coordinate<D>* coordinates_;
  const std::uint64_t* size_;
};

template <int D, class Place>
template <class Coordinates>
  requires std::is_same_v<detail::element_of<Coordinates>, coordinate<D>>
coordinate_index<D, Place>::coordinate_index(const Place& place, const Coordinates& coordinates,
                                             options chosen)
    : options_(chosen) {
  const auto sequence = detail::as_sequence(coordinates);
  build(place, sequence, sequence.size());
}

template <int D, class Place>
coordinate_index<D, Place>::coordinate_index(const Place& place, options chosen) : options_(chosen) {
  build(place, detail::sequence<const coordinate<D>*>{nullptr, 0}, 0);
}

template <int D, class Place>
detail::block_table<D> coordinate_index<D, Place>::table() const {
  auto* const memory = const_cast<detail::superblock*>(memory_.data());
  return {reinterpret_cast<state*>(memory), memory + head, const_cast<detail::block*>(blocks_.data()),
          static_cast<std::uint32_t>(memory_.size() - head), seed_};
}

template <int D, class Place>
detail::earlier_teams coordinate_index<D, Place>::turns() const {
  return detail::earlier_teams(
      reinterpret_cast<std::uint64_t*>(const_cast<detail::block*>(blocks_.data()) + blocks_most_));
}

/// Allocates memory for the superblocks and, if their number is not known yet, for a number of blocks.
template <int D, class Place>
void coordinate_index<D, Place>::make_room(const Place& place, std::size_t superblocks, std::size_t blocks) {
  constexpr std::size_t most = (std::size_t{1} << 31) - 1;  // so that there are fewer than 2^32 slots
  superblocks_most_ = static_cast<std::uint32_t>(std::min(superblocks, most));
  blocks_most_ = static_cast<std::uint32_t>(std::min<std::size_t>(blocks, no_row - 1));
  memory_ = {};
  memory_ = array<detail::superblock, Place>(place, head + 2 * std::size_t{superblocks_most_} + 1);
}

template <int D, class Place>
void coordinate_index<D, Place>::make_room_for_blocks(const Place& place, std::size_t blocks) {
  using kernel = detail::number_blocks<Place, D>;
  const std::size_t words = detail::earlier_teams::words(detail::ceil_div<std::size_t>(blocks, kernel::tile));
  blocks_most_ = static_cast<std::uint32_t>(blocks);
  blocks_ = {};
  blocks_ = array<detail::block, Place>(
      place, blocks + detail::ceil_div(words * sizeof(std::uint64_t), sizeof(detail::block)));
}

template <int D, class Place>
template <class Source>
void coordinate_index<D, Place>::build(const Place& place, const Source& source, std::size_t likely) {
  constexpr const char* where = "roost::coordinate_index";
  constexpr std::size_t some = 64;  // additional superblocks and blocks, for a few coordinates
  const bool fixed = options_.capacity != 0;
  const std::size_t n = source.size(), room = fixed ? options_.capacity : std::min(likely, n);
  if (room >= no_row)
    detail::raise<invalid_argument>({where, ": ", room, " coordinates; an index takes at most 2^32 - 2"});
  if (fixed) {
    const bool in_order = options_.order == order::input;
    place.expect_room(room * (sizeof(coordinate<D>) + 16 + (in_order ? 8 : 4)));
    make_room(place, room / 12 + some, room / 2 + some);
    make_room_for_blocks(place, blocks_most_);
    coordinates_ = array<coordinate<D>, Place>(place, room);
    rows_of_input_ = array<std::uint32_t, Place>(place, in_order || options_.rows_of_input ? room : 0);
    row_of_ = array<std::uint32_t, Place>(place, in_order ? room : 0);
    fill(place, source, false);
    return finish(place);
  }
  place.expect_room(room * (sizeof(coordinate<D>) + 6) + (options_.rows_of_input ? 4 * n : 0));
  const bool looks = n >= detail::sparse_tuning<Place>::looks_from;
  facts counted{};
  for (const std::size_t share : {12, 2, 1}) {  // coordinates per superblock
    if (options_.representation == representation::points) break;
    if (options_.representation == representation::automatic && share == 1 && points_hold(counted)) break;
    make_room(place, share == 1 ? n : room / share + some, share == 1 ? n : room / 2 + some);
    if (!looks) make_room_for_blocks(place, blocks_most_);
    for (int attempt = 0;; ++attempt) {
      seed_ = detail::seed_of_attempt(options_.seed, attempt);
      counted = fill(place, source, looks);
      if (counted.failed == 0) return take_over(counted);
      if ((counted.failed & detail::too_many) != 0) break;
      if (counted.failed != detail::crowded || attempt == 3) check(counted, where);
      ++statistics_.restarts;
    }
    ++statistics_.restarts;
  }
  build_points(place, source);
}

template <int D, class Place>
template <class Source>
void coordinate_index<D, Place>::measure(const Place& place, const Source& source) {
  using kernel = detail::measure_box<Place, D, Source>;
  const std::size_t tiles = detail::ceil_div<std::size_t>(source.size(), kernel::tile),
                    teams = std::min(tiles, detail::sparse_tuning<Place>::box_teams);
  const kernel measure{source, source.size(), table().state, teams};
  inputs_ = source.size();
  detail::launch(place, teams, measure);
}

/// Builds blocks. With `looks`, the host reads the counts before it continues; without, nothing waits until
/// the rows are numbered, or at all if options::capacity is set.
template <int D, class Place>
template <class Source>
auto coordinate_index<D, Place>::fill(const Place& place, const Source& source, bool looks) -> facts {
  using insert = detail::insert_superblocks<Place, D, Source>;
  using mark = detail::mark_voxels<Place, D, Source>;
  using number = detail::number_blocks<Place, D>;
  const bool fixed = options_.capacity != 0;
  const std::size_t tiles = detail::ceil_div<std::size_t>(source.size(), insert::tile);
  place.fill(memory_.data(), 0, memory_.bytes());
  measure(place, source);
  array<std::uint32_t, Place> taken(place, superblocks_most_);
  detail::launch(place, tiles, insert{source, source.size(), table(), taken.data(), superblocks_most_});
  std::optional<facts> known;
  if (looks) {
    known = look(place);
    if (known->failed != 0) return *known;
    make_room_for_blocks(place, std::min<std::size_t>(blocks_most_, std::size_t{64} * known->superblocks));
  }
  order_blocks(place, taken, known);
  place.fill(blocks_.data(), 0, blocks_.bytes());
  detail::launch(place, tiles, mark{source, source.size(), table(), blocks_most_});
  const number rows{table(), blocks_most_, fixed ? coordinates_.size() : ~std::uint64_t{0}, turns()};
  detail::launch(place, detail::ceil_div<std::size_t>(blocks_most_, number::tile), rows);
  if (fixed) place.for_each(table().slots, detail::empty_if_failed<D>{table()});
  facts counted{};
  if (!fixed) {
    counted = look(place);
    if (counted.rows >= no_row) check(counted, "roost::coordinate_index");
    if (counted.failed != 0) return counted;
    coordinates_ = array<coordinate<D>, Place>(place, counted.rows);
    if (options_.order == order::input) row_of_ = array<std::uint32_t, Place>(place, counted.rows);
    constexpr std::size_t worthwhile = 1 << 20;
    if (blocks_.bytes() > worthwhile && counted.blocks < blocks_.size() / 2)
      detail::truncate(place, blocks_, counted.blocks);
  }
  if (options_.order == order::block) {
    using write = detail::write_coordinates<Place, D>;
    place.for_each((fixed ? blocks_most_ : counted.blocks) * write::parts,
                   write{table(), coordinates_.data()});
  }
  if constexpr (!detail::makes_voxels<Source>) {
    if (options_.order == order::input || options_.rows_of_input) write_rows(place, source);
  }
  return counted;
}

/// Finds the first block of each superblock.
template <int D, class Place>
void coordinate_index<D, Place>::order_blocks(const Place& place, const array<std::uint32_t, Place>& taken,
                                              const std::optional<facts>& known) {
  using compare = detail::compare_superblocks<Place, D>;
  constexpr std::size_t compared_most = detail::sparse_tuning<Place>::compared_most;
  const std::size_t most = known ? known->superblocks : superblocks_most_;
  if (most <= (known ? compared_most : 4 * compared_most)) {
    const std::size_t tiles = detail::ceil_div<std::size_t>(most, compare::tile);
    // Enough teams for a large device.
    const std::size_t parts =
        std::is_same_v<Place, host> ? 1 : std::clamp<std::size_t>(256 / tiles, 1, tiles);
    detail::launch(place, tiles * parts, compare{table(), taken.data(), static_cast<std::uint32_t>(parts)});
    return;
  }
  const auto sorted = detail::sort_pairs(place, detail::superblock_in_order<D>{table(), taken.data(), most},
                                         known ? known->measured().order_bits() : 64);
  array<std::uint64_t, Place> before(place, most + 1);
  detail::write_numbers(place, most + 1, detail::blocks_of_sorted<D>{table(), sorted.items()}, before.data());
  place.exclusive_scan(before.data(), before.data(), most + 1);
  place.for_each(most, detail::begin_superblock<D>{table(), sorted.items(), before.data()});
}

/// Writes the row of each input coordinate; with order::input, rows are also numbered here.
template <int D, class Place>
template <class Source>
void coordinate_index<D, Place>::write_rows(const Place& place, const Source& source) {
  const std::size_t n = source.size();
  if (rows_of_input_.size() < n) rows_of_input_ = array<std::uint32_t, Place>(place, n);
  std::uint32_t* const rows = rows_of_input_.data();
  using ranks = detail::block_rows<D>;
  place.for_each(n, detail::write_rows<D, ranks, Source>{{table(), nullptr}, source, rows});
  if (options_.order == order::block) return;
  using number = detail::number_inputs<Place, D, Source>;
  array<std::uint32_t, Place> first(place, coordinates_.size());
  place.fill(first.data(), 0xff, first.bytes());
  place.for_each(n, detail::find_first_input{rows, first.data()});
  const std::size_t tiles = detail::ceil_div<std::size_t>(n, number::tile);
  auto words = detail::zeros(place, detail::earlier_teams::words(tiles));
  const number kernel{source,
                      n,
                      rows,
                      first.data(),
                      detail::earlier_teams(words.data()),
                      row_of_.data(),
                      coordinates_.data()};
  detail::launch(place, tiles, kernel);
  place.for_each(n, detail::rank_to_row{row_of_.data(), rows});
}

/// Whether keys of voxels in this box are short enough for points.
template <int D, class Place>
bool coordinate_index<D, Place>::points_hold(const facts& counted) {
  return counted.measured().order_bits() <=
         detail::point_rows<D, typename point_map::ref_type>::order_bits_most;
}

template <int D, class Place>
template <class Source>
void coordinate_index<D, Place>::build_points(const Place& place, const Source& source) {
  using rows = detail::point_rows<D, typename point_map::ref_type>;
  constexpr const char* where = "roost::coordinate_index";
  make_room(place, 0, 0);
  place.fill(memory_.data(), 0, memory_.bytes());
  measure(place, source);
  facts counted = look(place);
  if (!counted.measured().fits()) counted.failed = detail::too_wide;
  check(counted, where);
  if (!points_hold(counted)) {
    detail::raise<invalid_argument>({where, ": the box of the coordinates, ", text_of_box(counted),
                                     ", is too wide for points; take another representation"});
  }
  place.for_each(1, detail::set_points<D>{table().state, 0});
  array<std::uint64_t, Place> keys;
  const auto take_keys = [&](const auto& given, std::size_t n) {
    keys = array<std::uint64_t, Place>(place, n);
    using key = detail::point_key<D, std::remove_cvref_t<decltype(given)>, rows>;
    detail::write_numbers(place, n, key{given, table().state}, keys.data());
  };
  if constexpr (detail::may_skip<D, Source>) {
    const auto given =
        detail::select_numbers<std::uint64_t>(place, source.size(), detail::given_in<D, Source>{source});
    take_keys(detail::chosen_coordinates<Source>{source, given.data()}, given.size());
  } else {
    take_keys(source, source.size());
  }
  const auto index_order =
      options_.order == order::block ? index_order::by_key : index_order::first_occurrence;
  points_.emplace(place, keys,
                  typename point_map::options{.order = index_order, .seed = options_.seed, .counts = false});
  if (options_.rows_of_input) rows_of_input_ = points_->take_indices();
  counted.rows = points_->size();
  place.for_each(1, detail::set_points<D>{table().state, counted.rows});
  coordinates_ = array<coordinate<D>, Place>(place, counted.rows);
  detail::write_numbers(place, counted.rows,
                        detail::coordinate_of_point<D>{points_->keys().data(), table().state},
                        coordinates_.data());
  take_over(counted);
}

template <int D, class Place>
auto coordinate_index<D, Place>::look(const Place& place) const -> facts {
  facts result;
  place.copy_to_host(&result, table().state, sizeof(result));
  return result;
}

template <int D, class Place>
std::string coordinate_index<D, Place>::text_of_box(const facts& counted) {
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
template <int D, class Place>
void coordinate_index<D, Place>::check(const facts& counted, const char* where) const {
  if ((counted.failed & detail::too_wide) != 0) {
    detail::raise<invalid_argument>({where, ": the box of the coordinates (batch; axes), ",
                                     text_of_box(counted), ", takes ", counted.measured().key_bits,
                                     " bits, and there are ", detail::grid<D>::key_bits_most,
                                     "; take coordinates that are less far apart, or fewer batches at once"});
  }
  if (counted.rows >= no_row)
    detail::raise<invalid_argument>({where, ": ", counted.rows, " voxels; an index takes at most 2^32 - 2"});
  if (counted.failed == 0) return;
  if (options_.capacity != 0 && counted.failed == detail::no_rows) {
    detail::raise<build_error>({where, ": there are more different voxels than a capacity of ",
                                options_.capacity, " has rows for; give more capacity"});
  }
  if (options_.capacity != 0) {
    detail::raise<build_error>({where, ": the coordinates make ", counted.superblocks, " superblocks and ",
                                counted.blocks, " blocks, and a capacity of ", options_.capacity,
                                " has room for ", superblocks_most_, " and ", blocks_most_,
                                "; give more capacity, or another seed"});
  }
  detail::raise<build_error>({where,
                              ": coordinates that were chosen to collide? With 4 seeds some keys found "
                              "no slot; give another seed"});
}

template <int D, class Place>
void coordinate_index<D, Place>::take_over(const facts& counted) {
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

template <int D, class Place>
template <class Coordinates>
void coordinate_index<D, Place>::rebuild_async(const Place& place, const Coordinates& coordinates,
                                               const std::uint32_t* count) {
  const auto sequence = detail::sequence_as<coordinate<D>>(coordinates);
  if (sequence.size() > options_.capacity) {
    detail::raise<invalid_argument>({"roost::coordinate_index::rebuild_async: ", sequence.size(),
                                     " coordinates, and a capacity of ", options_.capacity,
                                     "; make the index with options.capacity"});
  }
  fill(place, detail::counted_coordinates<std::remove_const_t<decltype(sequence)>>{sequence, count}, false);
}

template <int D, class Place>
void coordinate_index<D, Place>::finish(const Place& place) {
  if (options_.capacity == 0) return;
  facts counted = look(place);
  const std::uint32_t failed = counted.failed;
  if (failed != 0) counted.rows = counted.inputs = 0;
  take_over(counted);
  counted.failed = failed;
  check(counted, "roost::coordinate_index::rebuild_async");
}

template <int D, class Place>
auto coordinate_index<D, Place>::ref() const -> ref_type {
  return with_rows([&](const auto& rows) { return ref_type(rows, coordinates_.data(), device_size()); });
}

template <int D, class Place>
template <class F>
auto coordinate_index<D, Place>::with_rows(const F& f) const {
  if (memory_.size() == 0)
    detail::raise<invalid_argument>(
        {"roost::coordinate_index::ref: the index has no memory; build it first"});
  if (points_) {
    return f(detail::point_rows<D, typename point_map::ref_type>{table().state, points_->ref()});
  }
  return f(detail::block_rows<D>{table(), row_of_.size() == 0 ? nullptr : row_of_.data()});
}

template <int D, class Place>
template <class Queries, class Results>
bulk_report coordinate_index<D, Place>::find(const Place& place, const Queries& queries, Results&& results,
                                             std::uint32_t missing) const {
  constexpr const char* where = "roost::coordinate_index::find";
  if (memory_.size() == 0)
    return detail::find_no_values<coordinate<D>>(place, queries, results, missing, where);
  return detail::find_values(place, ref(), statistics_.bytes, queries, results, missing, {}, where);
}

template <int D, class Place>
template <class Queries, class Results>
bulk_report coordinate_index<D, Place>::contains(const Place& place, const Queries& queries,
                                                 Results&& results) const {
  constexpr const char* where = "roost::coordinate_index::contains";
  if (memory_.size() == 0) return detail::find_nothing<coordinate<D>>(place, queries, results, where);
  return detail::find_contained(place, ref(), statistics_.bytes, queries, results, {}, where);
}

template <int D, class Place>
template <class Queries>
std::size_t coordinate_index<D, Place>::count_found(const Place& place, const Queries& queries) const {
  return memory_.size() == 0 ? 0 : detail::count_all(place, ref(), statistics_.bytes, queries);
}

template <int D, class Place>
template <class F>
void coordinate_index<D, Place>::for_each(const Place& place, const F& f) const {
  place.for_each(size(), detail::call_with_row<F, D>{f, coordinates_.data()});
}

template <int D, class Place>
bool coordinate_index<D, Place>::valid(const Place& place) const {
  if (memory_.size() == 0) return empty();
  std::uint64_t rows = 0;
  place.copy_to_host(&rows, device_size(), sizeof(rows));
  if (rows != size() || (points_ && !points_->valid(place))) return false;
  return with_rows([&](const auto& all) {
           using good = detail::good_row<std::remove_cvref_t<decltype(all)>, D>;
           return place.sum(size(),
                            good{all, table().state, coordinates_.data(), options_.order == order::block});
         }) == size();
}

}  // namespace roost
