#pragma once

#include <unordered_map>

#include "apps/measure/clouds.hpp"
#include "apps/measure/run.hpp"
#include "papers/document_table.hpp"
#include "roost/sorted_map.hpp"
#include "roost/sparse/kernel_map.hpp"
#include "roost/sparse/sparse_conv.hpp"

// coordinate_index and kernel_map, compared with the document's table and a sorted list; and convolution.

namespace roost::bench {

/// 1 for a coordinate whose row is wrong.
struct wrong_row {
  const coordinate<3>* queries;
  const std::uint32_t* rows;
  const coordinate<3>* coordinates;
  std::uint64_t size;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return rows[i] >= size || !(coordinates[rows[i]] == queries[i]);
  }
};

/// 1 for an answer of a map of 27 offsets that is the wrong voxel, or that misses one.
template <class Ref>
struct wrong_answer {
  Ref index;
  const coordinate<3>* coordinates;  // of the map's rows
  const std::uint32_t* rows;
  std::uint64_t stride, n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t k = i / n, o = i % n;
    const std::uint32_t row = rows[k * stride + o];
    coordinate<3> wanted = coordinates[o];
    wanted.at[0] += static_cast<std::int32_t>(k / 9) - 1;
    wanted.at[1] += static_cast<std::int32_t>(k / 3 % 3) - 1;
    wanted.at[2] += static_cast<std::int32_t>(k % 3) - 1;
    if (row >= n) return row != no_row_of_map || index.contains(wanted);
    return !(coordinates[row] == wanted);
  }
  static constexpr std::uint32_t no_row_of_map = ~std::uint32_t{0};
};

/// 1 for an answer that differs from that of another map with the same row numbers.
struct other_answer {
  const std::uint32_t *rows, *others;
  std::uint64_t stride, n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return rows[i / n * stride + i % n] != others[i]; }
};

struct is_neighbour {
  const std::uint32_t* rows;
  std::uint64_t stride, n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return rows[i / n * stride + i % n] != ~std::uint32_t{0};
  }
};

/// Voxels as numbers of 64 bits in their order, for a sorted list: 21 bits for each axis.
struct voxel_number {
  const coordinate<3>* coordinates;
  ROOST_FN static std::uint64_t of(const coordinate<3>& c) {
    const auto axis = [](std::int32_t x) { return static_cast<std::uint64_t>(x + (1 << 20)); };
    return axis(c.at[0]) << 42 | axis(c.at[1]) << 21 | axis(c.at[2]);
  }
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return of(coordinates[i]); }
};
struct position_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};
template <class Ref>
struct sorted_find {
  Ref map;
  ROOST_FN std::uint32_t operator()(const coordinate<3>& c) const {
    return map.find(voxel_number::of(c)).value_or(~0u);
  }
};

/// A map of the standard library, which one thread fills and all threads query.
class std_voxels {
 public:
  explicit std_voxels(std::span<const coordinate<3>> coordinates) {
    rows_.reserve(coordinates.size());
    for (std::size_t i = 0; i < coordinates.size(); ++i)
      rows_.emplace(voxel_number::of(coordinates[i]), static_cast<std::uint32_t>(i));
  }
  struct finder {
    const std::unordered_map<std::uint64_t, std::uint32_t>* rows;
    std::uint32_t operator()(const coordinate<3>& c) const {
      const auto at = rows->find(voxel_number::of(c));
      return at == rows->end() ? ~0u : at->second;
    }
  };
  finder find() const { return {&rows_}; }
  static constexpr std::size_t bytes() { return 0; }  // unknown

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> rows_;
};

/// The type of a layer's numbers.
template <class Place>
struct layer_type {
  using type = float;
};
#if defined(__CUDACC__)
template <>
struct layer_type<cuda> {
  using type = __half;
};
#endif

/// Numbers of a layer, between -1 and 1: features, weights and gradients.
template <class T>
struct layer_number {
  std::uint64_t seed;
  T* target;
  ROOST_FN void operator()(std::size_t i) const {
    target[i] = static_cast<T>(static_cast<float>(mix64(i, seed) >> 40) / (1 << 23) - 1);
  }
};

/// A layer of 3^3 offsets with equally many channels in and out; on cuda with numbers of 16 bits.
template <class Place>
struct layer {
  using type = typename layer_type<Place>::type;
  using sum_type = detail::conv_sum<type>;
  using map_type = kernel_map<3, Place>;
  static constexpr std::uint32_t volume = 27;

  const Place& place;
  std::size_t channels, n;  // rows
  array<type, Place> features = numbers(n * channels, 1);
  array<type, Place> weights = numbers(volume * channels * channels, 2);
  array<type, Place> gradient = numbers(n * channels, 3);
  array<type, Place> output{place, n* channels};
  array<sum_type, Place> of_weights{place, weights.size()};

  array<type, Place> numbers(std::size_t size, std::uint64_t seed) const {
    array<type, Place> made(place, size);
    place.for_each(size, layer_number<type>{seed, made.data()});
    return made;
  }

  void poison_answers() {
    place.fill(output.data(), poison, output.bytes());
    place.fill(of_weights.data(), poison, of_weights.bytes());
  }

  double work_of(const map_type& of) const {
    return 2.0 * static_cast<double>(channels * channels) *
           static_cast<double>(
               place.sum(of.output_size() * volume,
                         is_neighbour{of.neighbours().data(), of.neighbour_stride(), of.output_size()}));
  }

  /// How many numbers in a sample of an output differ from sums in double of the products that a map reads;
  /// `turned`: of an input's gradient.
  std::uint64_t wrong_rows(const map_type& of, const array<type, Place>& memory,
                           const array<type, Place>& written, bool turned = false) const {
    const auto neighbours = copy_to_host(place, of.neighbours());
    const auto read = copy_to_host(place, memory.span()), found = copy_to_host(place, written.span()),
               weights_here = copy_to_host(place, weights.span());
    std::uint64_t wrong = 0;
    for (std::size_t o = 0; o < of.output_size(); o += 1 + of.output_size() / 500) {
      for (std::size_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::uint32_t k = 0; k < volume; ++k) {
          const std::uint64_t row = neighbours[(turned ? volume - 1 - k : k) * of.neighbour_stride() + o];
          if (row == no_row<std::uint32_t>) continue;
          for (std::size_t i = 0; i < channels; ++i) {
            const std::size_t weight = turned ? c * channels + i : i * channels + c;
            sum += double_of(read[row * channels + i]) *
                   double_of(weights_here[k * channels * channels + weight]);
          }
        }
        const double off = std::abs(sum - double_of(found[o * channels + c]));
        wrong += off < (sizeof(type) == 2 ? 1e-3 * std::abs(sum) + 1e-2 : 1e-3) ? 0 : 1;
      }
    }
    return wrong;
  }

  /// The same for a weight's gradient of each offset.
  std::uint64_t wrong_weights(const map_type& map) const {
    const auto neighbours = copy_to_host(place, map.neighbours());
    const auto features_here = copy_to_host(place, features.span()),
               gradient_here = copy_to_host(place, gradient.span());
    const auto found = copy_to_host(place, of_weights.span());
    std::uint64_t wrong = 0;
    for (std::size_t k = 0; k < volume; ++k) {
      const std::size_t i = k % channels, c = k * k % channels;
      double sum = 0;
      for (std::size_t o = 0; o < n; ++o) {
        const std::uint64_t row = neighbours[k * map.neighbour_stride() + o];
        if (row != no_row<std::uint32_t>)
          sum += double_of(features_here[row * channels + i]) * double_of(gradient_here[o * channels + c]);
      }
      const double off = sum - double_of(found[(k * channels + i) * channels + c]);
      wrong += std::abs(off) < 1e-3 * std::sqrt(static_cast<double>(n + 1)) ? 0 : 1;
    }
    return wrong;
  }

  template <class T>
  static double double_of(const T& x) {
    return static_cast<double>(static_cast<sum_type>(x));
  }
};

/// Measures one cloud.
template <class Place>
class sparse_measurement {
  using index_type = coordinate_index<3, Place>;
  using map_type = kernel_map<3, Place>;

 public:
  sparse_measurement(const Place& place, const settings& options, std::string cloud_name, const cloud& voxels)
      : place_(place),
        options_(options),
        name_(std::move(cloud_name)),
        voxels_(copy_to(place, voxels)),
        n_(voxels.size()) {}

  void run() {
    if (options_.wants("coordinate_index")) measure_index();
    if (options_.wants("kernel_map")) measure_map();
    if (options_.wants("document_table")) measure_document();
    if (options_.wants("sorted_voxels")) measure_sorted();
    if (options_.wants("sparse_conv")) {
      for (const std::size_t channels : options_.channels) measure_layer(channels);
    }
    if constexpr (std::is_same_v<Place, host>) {
      if (options_.wants("std_voxels")) measure_std();
    }
  }

 private:
  static constexpr std::uint32_t volume = 27;

  bool wants(const char* op) const { return options_.asks(op); }

  std::span<const coordinate<3>> input() const { return voxels_.span(); }

  template <class F, class Before = nothing>
  double median(const F& f, const Before& before = {}) const {
    return median_milliseconds(place_, options_.warm_ups, options_.repetitions, before, f);
  }

  void report(const char* table, std::string op, double ms, double work, std::uint64_t wrong,
              std::size_t bytes, double hit_rate = 0) const {
    row line;
    line.table = table;
    line.key_bits = 64, line.value_bits = 32;
    line.op = std::move(op);
    line.n = n_;
    line.median_ms = ms;
    line.gops = work / ms / 1e6;
    line.check = verdict(wrong);
    line.hit_rate = hit_rate;
    line.bytes = bytes;
    line.place = place_name(place_);
    line.keys = name_;
    options_.report(line);
  }

  /// How many answers are wrong: of an index in the order of the input, an order that the document's table
  /// does not have.
  std::uint64_t wrong_rows(const index_type& index) const {
    array<std::uint32_t, Place> rows(place_, n_);
    index.find(place_, input(), rows);
    return place_.sum(n_, wrong_row{voxels_.data(), rows.data(), index.coordinates().data(), index.size()}) +
           (index.valid(place_) ? 0 : 1);
  }

  std::uint64_t wrong_in(const index_type& index, const map_type& map) const {
    using wrong = wrong_answer<typename index_type::ref_type>;
    const std::uint64_t m = index.size();
    if (map.output_size() != m || !map.valid(place_)) return 1;
    return place_.sum(m * volume, wrong{index.ref(), index.coordinates().data(), map.neighbours().data(),
                                        map.neighbour_stride(), m});
  }

  void measure_index() {
    const auto each = static_cast<double>(n_);
    for (const auto& [suffix, row_order] : {std::pair{"", order::block}, std::pair{"_input", order::input}}) {
      if (!wants("build")) break;
      std::optional<index_type> index;
      const double ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, index,
                                         [&] { index.emplace(place_, input(), of_order(row_order)); });
      report("coordinate_index", std::string("build") + suffix, ms, each, wrong_rows(*index), index->bytes());
    }
    const index_type index(place_, input());
    if (wants("find_hit")) {
      array<std::uint32_t, Place> rows(place_, n_);
      std::uint64_t bad = 0;
      const double ms = median_milliseconds(
          place_, options_.warm_ups, options_.repetitions,
          [&] { place_.fill(rows.data(), poison, rows.bytes()); }, [&] { index.find(place_, input(), rows); },
          [&] {
            bad += place_.sum(
                n_, wrong_row{voxels_.data(), rows.data(), index.coordinates().data(), index.size()});
          });
      report("coordinate_index", "find_hit", ms, each, bad, index.bytes(), 1);
    }
  }

  static typename index_type::options of_order(order row_order) {
    typename index_type::options result;
    result.order = row_order;
    return result;
  }

  void measure_map() {
    const index_type index(place_, input());
    std::optional<map_type> map;
    std::optional<index_type> made;
    const double answers = static_cast<double>(index.size()) * volume;
    if (wants("map")) {
      const double ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, map,
                                         [&] { map.emplace(submanifold(place_, index)); });
      const double here = static_cast<double>(
          place_.sum(index.size() * volume,
                     is_neighbour{map->neighbours().data(), map->neighbour_stride(), index.size()}));
      report("kernel_map", "map", ms, answers, wrong_in(index, *map), map->bytes(), here / answers);
    }
    if (wants("index_map")) {
      const double ms = median_milliseconds(
          place_, options_.warm_ups, options_.repetitions, [&] { map.reset(), made.reset(); },
          [&] {
            made.emplace(place_, input());
            map.emplace(submanifold(place_, *made));
          });
      if (!made) throw error("roost bench: the last run has made nothing");
      report("kernel_map", "index_map", ms, static_cast<double>(n_), wrong_in(*made, *map),
             map->bytes() + made->bytes());
    }
    if (wants("pairs")) {
      const double ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, map, [&] {
        map.emplace(submanifold(place_, index, {}, kernel_map_options<3>{.pairs = true}));
      });
      report("kernel_map", "pairs", ms, answers, wrong_in(index, *map), map->bytes());
    }
    if (wants("stride_2")) {
      const double ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, map, [&] {
        map.emplace(convolution(place_, index, kernel_shape<3>::cube(3, 2)));
      });
      report("kernel_map", "stride_2", ms, static_cast<double>(n_), map->valid(place_) ? 0 : 1, map->bytes());
    }
    if (wants("graph")) measure_graph();
  }

  /// Index and map in a graph, which is replayed.
  void measure_graph() {
    typename index_type::options fixed;
    fixed.capacity = n_;
    try {
      index_type index(place_, fixed);
      map_type map = submanifold(place_, index);
      const auto build = [&] {
        index.rebuild_async(place_, input());
        map.rebuild_async(place_, index);
      };
      build();
      index.finish(place_);
      const auto others = [&] {  // so that a run that does nothing is detected
        index.rebuild_async(place_, input().first(n_ / 2));
        map.rebuild_async(place_, index);
      };
      const double ms = median(replayed(place_, build), others);
      index.finish(place_);
      map.finish(place_);
      report("kernel_map", "graph", ms, static_cast<double>(n_),
             wrong_in(index, map) + off_by(index.statistics().inputs, n_), map.bytes() + index.bytes());
    } catch (const build_error&) {  // too thin for a fixed capacity
    }
  }

  /// A baseline that looks up every neighbour: build(), and the map with finder().
  template <class Table, class Build, class Finder>
  void measure_baseline(const char* name, const index_type& index, std::optional<Table>& table,
                        const Build& build, const Finder& finder) {
    if (index.duplicates() != 0) return;  // rows would not be those of the input
    const double ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, table, build);
    using find = decltype(finder());
    array<std::uint32_t, Place> rows(place_, n_ * volume);
    const double map_ms = median(
        [&] {
          place_.for_each(n_, neighbours_by_lookups<3, find>{finder(), voxels_.data(), n_, rows.data()});
        },
        [&] { place_.fill(rows.data(), poison, rows.bytes()); });
    const map_type map = submanifold(place_, index);
    const std::uint64_t wrong = place_.sum(
        n_ * volume, other_answer{map.neighbours().data(), rows.data(), map.neighbour_stride(), n_});
    if (wants("build")) report(name, "build", ms, static_cast<double>(n_), wrong, table->bytes());
    if (wants("map")) report(name, "map", map_ms, static_cast<double>(n_) * volume, wrong, table->bytes());
  }

  void measure_document() {
    const index_type index(place_, input(), of_order(order::input));
    std::optional<document_table<3, Place>> table;
    measure_baseline(
        "document_table", index, table, [&] { table.emplace(place_, input(), index.bounds()); },
        [&] { return table->finder(); });
  }

  void measure_sorted() {
    using list = sorted_map<std::uint64_t, std::uint32_t, Place>;
    const index_type index(place_, input(), of_order(order::input));
    std::optional<list> table;
    measure_baseline(
        "sorted_voxels", index, table,
        [&] {
          table.emplace(place_, computed(n_, voxel_number{voxels_.data()}), computed(n_, position_number()));
        },
        [&] { return sorted_find<typename list::ref_type>{table->ref()}; });
  }

  void measure_std() {
    const index_type index(place_, input(), of_order(order::input));
    std::optional<std_voxels> table;
    measure_baseline(
        "std_voxels", index, table, [&] { table.emplace(input()); }, [&] { return table->find(); });
  }

  /// A layer with an existing map, or with one built in the same run.
  void measure_layer(std::size_t channels) {
    const index_type index(place_, input());
    const kernel_map_options<3> by_masks{.by_masks = true};
    const auto make = [&] { return submanifold(place_, index, {}, by_masks); };
    const map_type map = make();
    const kernel_map_view view = map.view(), reverse = map.transposed();
    const conv_channels both{channels, channels};
    layer<Place> of{place_, channels, index.size()};
    const std::string suffix = "_" + std::to_string(channels);
    if (wants("conv")) {
      const double ms = median([&] { sparse_conv(place_, view, both, of.features, of.weights, of.output); },
                               [&] { of.poison_answers(); });
      report("sparse_conv", "conv" + suffix, ms, of.work_of(map), of.wrong_rows(map, of.features, of.output),
             map.bytes());
    }
    if (wants("map_conv")) {
      std::optional<map_type> made;
      const double ms = median(
          [&] {
            made.emplace(make());
            sparse_conv(place_, made->view(), both, of.features, of.weights, of.output);
          },
          [&] { made.reset(), of.poison_answers(); });
      report("sparse_conv", "map_conv" + suffix, ms, of.work_of(map),
             of.wrong_rows(map, of.features, of.output), map.bytes());
    }
    if (wants("stride_2_conv")) {
      std::optional<map_type> made;
      array<typename layer<Place>::type, Place> fewer;
      const double ms = median(
          [&] {
            made.emplace(convolution(place_, index, kernel_shape<3>::cube(3, 2), by_masks));
            fewer = {place_, made->output_size() * channels};
            sparse_conv(place_, made->view(), both, of.features, of.weights, fewer);
          },
          [&] { made.reset(); });
      if (!made) throw error("roost bench: the last run has made nothing");
      report("sparse_conv", "stride_2_conv" + suffix, ms, of.work_of(*made),
             of.wrong_rows(*made, of.features, fewer), made->bytes());
    }
    if (wants("gradients")) {
      const double ms = median(
          [&] {
            sparse_conv_input_gradient(place_, reverse, both, of.gradient, of.weights, of.output);
            sparse_conv_weight_gradient(place_, view, both, of.features, of.gradient, of.of_weights);
          },
          [&] { of.poison_answers(); });
      report("sparse_conv", "gradients" + suffix, ms, 2 * of.work_of(map),
             of.wrong_rows(map, of.gradient, of.output, true) + of.wrong_weights(map), map.bytes());
    }
  }

  const Place& place_;
  const settings& options_;
  std::string name_;
  array<coordinate<3>, Place> voxels_;
  std::size_t n_;
};

inline constexpr const char* sparse_tables[] = {"coordinate_index", "kernel_map", "document_table",
                                                "sorted_voxels",    "std_voxels", "sparse_conv"};

/// Measures the clouds of the settings with about n voxels, scrambled and row by row. Only if the user names
/// the tables: keys of the others are not voxels.
template <class Place>
void measure_sparse(const Place& place, const settings& options, std::size_t n) {
  bool any = false;
  for (const char* table : sparse_tables) {
    const bool of_host = std::string_view(table) == "std_voxels";
    if (of_host && !std::is_same_v<Place, host>) continue;
    if (options.has_table) options.has_table(table);
    any |= !options.tables.empty() && options.wants(table);
  }
  if (!options.report || !any) return;
  for (const std::string& name : options.clouds) {
    cloud voxels = make_cloud(cloud_kinds.at(name), n);
    for (const bool mixed : {true, false}) {
      const std::string full = name + (mixed ? " scrambled" : " sorted");
      if (options.progress) options.progress("voxels, " + full + ", n=" + std::to_string(n));
      if (mixed) {
        voxels = scrambled(std::move(voxels));
      } else {
        std::sort(voxels.begin(), voxels.end(), row_by_row);
      }
      sparse_measurement<Place>(place, options, full, voxels).run();
    }
  }
}

}  // namespace roost::bench
