#pragma once

#include <algorithm>
#include <optional>

#include "bit_grid.hpp"
#include "columns.hpp"
#include "fill.hpp"
#include "timing.hpp"

/// \file
/// A scene on a place.

namespace roost::tools {

/// Times of steps that are taken once or several times.
class stopwatch {
 public:
  template <class Place, class F>
  void time(const Place& place, const char* step, const F& f) {
    place.synchronize();
    const double time = bench::milliseconds(place, f);
    const auto known = std::ranges::find(steps_, step, &entry::first);
    auto& times = (known == steps_.end() ? steps_.emplace_back(step, std::vector<double>()) : *known).second;
    if (times.size() == most) times.erase(times.begin());
    times.push_back(time);
  }
  step_times medians() const {
    step_times result;
    for (const auto& [step, times] : steps_) result.emplace_back(step, bench::median(times));
    return result;
  }

 private:
  static constexpr std::size_t most = 1000;  // times of a step: the latest
  using entry = std::pair<std::string, std::vector<double>>;
  std::vector<entry> steps_;
};

/// The three corners of a vertex as the bits of a key; -0 is 0.
struct vertex_key {
  std::uint32_t at[3];
};
struct vertex_keys {
  const point* vertices;
  ROOST_FN vertex_key operator()(std::size_t i) const {
    const float at[3] = {vertices[i].x + 0.0f, vertices[i].y + 0.0f, vertices[i].z + 0.0f};
    vertex_key result;
    memcpy(result.at, at, sizeof(at));
    return result;
  }
};

/// Side i % 3 of triangle i / 3: which two vertices, by their numbers, and which way it goes.
struct edge_keys {
  const triangle* triangles;
  const std::uint32_t* numbers;  // of the vertices
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint32_t a = from(i), b = to(i);
    return a < b ? std::uint64_t{a} << 32 | b : std::uint64_t{b} << 32 | a;
  }
  ROOST_FN std::uint32_t from(std::size_t i) const { return numbers[triangles[i / 3][i % 3]]; }
  ROOST_FN std::uint32_t to(std::size_t i) const { return numbers[triangles[i / 3][(i + 1) % 3]]; }
};
struct edge_turns {
  edge_keys edges;
  ROOST_FN std::int32_t operator()(std::size_t i) const {
    const std::uint32_t a = edges.from(i), b = edges.to(i);
    return a < b ? 1 : a > b ? -1 : 0;
  }
};
struct is_open_edge {
  const std::uint64_t *edges, *counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return edges[i] >> 32 != (edges[i] & 0xffffffff) && counts[i] % 2 != 0 ? 1 : 0;
  }
};
struct is_turned_edge {
  const std::int32_t* turns;
  const std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return turns[i] != 0 && counts[i] % 2 == 0 ? 1 : 0;
  }
};

/// The bytes that a place still has.
inline std::size_t bytes_there(const host&) { return detail::bytes_available_on_host(); }
#if defined(__CUDACC__)
inline std::size_t bytes_there(const roost::cuda& place) {
  std::size_t free = 0, total = 0;
  detail::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free + device_memory_pool::of(place.device()).kept();
}
#endif

template <class Place>
class scene_on : public scene {
 public:
  explicit scene_on(const Place& place) : place_(place) {}

  std::string place_name() const override { return bench::place_name(place_); }
  std::size_t expect_room(std::uint32_t grid) const override;
  void set_mesh(std::size_t i, const mesh& surface) override;
  std::size_t meshes() const override { return meshes_.size(); }
  mesh_faults faults(std::size_t i) override;
  void place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) override;
  void make_solid(std::size_t i, inside_rule rule) override;
  void make_surface(std::size_t i, bool all_touched) override;
  void combine(solid_op op) override;
  std::uint64_t count_exposed() override;
  std::uint64_t volume() override { return volume_of(place_, result_, grid_); }
  solid_facts facts_of_mesh(std::size_t i) override;
  solid_facts facts_of_result() override;
  class_counts classes() override;
  class_counts classes_of_mesh(std::size_t i) override;
  fill_facts fill() override;
  bit_grid_facts bit_grid(solid_op op) override;
  std::vector<std::uint32_t> voxels32(voxel_set which) override { return voxels<std::uint32_t>(which); }
  std::vector<std::uint64_t> voxels64(voxel_set which) override { return voxels<std::uint64_t>(which); }
  lit_voxels lit(voxel_set which) override;
  solid_columns columns() override;

 private:
  using map = column_map<Place>;
  struct part {
    array<point, Place> vertices;
    array<triangle, Place> triangles;
    array<snapped, Place> snapped_vertices;
    affine to_snapped;
    map solid, surface;
    stopwatch times;

    snapped_triangles all(std::uint32_t grid) const {
      return {snapped_vertices.data(), triangles.data(), grid};
    }
  };

  touched_voxels touched(const part& of) const {
    return {of.vertices.data(), of.triangles.data(), of.to_snapped, grid_};
  }
  map solid_along(part& of, int axis, bool doubts, inside_rule rule);
  solid_pair<Place> pair(const map& a, const map* b, solid_op op) const {
    return {a.ref(), b == nullptr ? a.ref() : b->ref(), op, grid_};
  }
  /// What the last operation is made of.
  solid_pair<Place> last_pair() const;
  classified_column<Place> classified() const;
  solid_facts facts(const map& solid, std::uint64_t exposed, const stopwatch& times);
  template <class Word>
  array<Word, Place> voxels_here(voxel_set which);
  template <class Word>
  std::vector<Word> voxels(voxel_set which) {
    return copy_to_host(place_, voxels_here<Word>(which));
  }
  const std::array<std::uint64_t, 5>& class_numbers();
  part& mesh_at(std::size_t i);

  Place place_;
  std::uint32_t grid_ = 0;
  std::vector<part> meshes_;
  std::optional<map> before_last_;  // of more than two meshes: all but the last, combined
  map result_;
  solid_op op_ = solid_op::first;
  stopwatch result_times_;
  std::optional<std::array<std::uint64_t, 5>> class_numbers_;
};

template <class Place>
std::size_t scene_on<Place>::expect_room(std::uint32_t grid) const {
  // Marks for which raster() has room at once, the scratch memory of their map, and offsets of columns.
  const std::size_t bytes = std::size_t{128} * grid * grid, there = bytes_there(place_);
  if (bytes > there) {
    detail::raise<out_of_memory>({"a grid of ", grid, "^3 voxels takes about ", bytes >> 20, " MiB, and ",
                                  there >> 20, " MiB are free; take a coarser grid"});
  }
  return bytes;
}

template <class Place>
typename scene_on<Place>::part& scene_on<Place>::mesh_at(std::size_t i) {
  if (i >= meshes_.size())
    detail::raise<invalid_argument>({"scene: there is no mesh ", i, " of ", meshes_.size()});
  return meshes_[i];
}

template <class Place>
void scene_on<Place>::set_mesh(std::size_t i, const mesh& surface) {
  if (i > meshes_.size())
    detail::raise<invalid_argument>({"scene: mesh ", i, " cannot be set, there are ", meshes_.size()});
  part fresh;
  stopwatch times;
  times.time(place_, "upload", [&] {
    fresh.vertices = copy_to(place_, surface.vertices);
    fresh.triangles = copy_to(place_, surface.triangles);
  });
  fresh.times = std::move(times);
  if (i == meshes_.size()) {
    meshes_.push_back(std::move(fresh));
  } else {
    meshes_[i] = std::move(fresh);
  }
}

template <class Place>
mesh_faults scene_on<Place>::faults(std::size_t i) {
  const part& of = mesh_at(i);
  const std::size_t sides = 3 * of.triangles.size();
  const auto vertices =
      unique_inverse(place_, computed(of.vertices.size(), vertex_keys{of.vertices.data()}), index_order::any);
  const edge_keys keys{of.triangles.data(), vertices.inverse.data()};
  const auto edges = group_by(place_, computed(sides, keys), computed(sides, edge_turns{keys}), plus());
  return {place_.sum(edges.size(), is_open_edge{edges.keys.data(), edges.counts.data()}),
          place_.sum(edges.size(), is_turned_edge{edges.values.data(), edges.counts.data()})};
}

template <class Place>
typename scene_on<Place>::map scene_on<Place>::solid_along(part& of, int axis, bool doubts,
                                                           inside_rule rule) {
  marks<std::uint32_t, std::uint16_t, Place> crossings;
  map result;
  of.times.time(place_, "cross", [&] {
    crossings = raster<std::uint32_t, std::uint16_t>(place_, crossings_along{of.all(grid_), axis},
                                                     of.triangles.size(), 2 * std::size_t{grid_} * grid_);
  });
  of.times.time(place_, "group", [&] { result = map(place_, crossings.keys(), crossings.values()); });
  of.times.time(place_, "order", [&] { result.for_each_key(place_, order_crossings{rule, doubts, grid_}); });
  return result;
}

template <class Place>
void scene_on<Place>::place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) {
  part& of = mesh_at(i);
  if (grid == 0 || grid > finest_scene) {
    detail::raise<invalid_argument>(
        {"a grid of ", grid, " voxels a side cannot be made; ask for 1 to ", finest_scene});
  }
  grid_ = grid;
  class_numbers_.reset();
  of.to_snapped = to_snapped;
  of.times.time(place_, "snap", [&] {
    of.snapped_vertices = array<snapped, Place>(place_, of.vertices.size());
    place_.for_each(of.vertices.size(),
                    snap_vertices{of.vertices.data(), to_snapped, of.snapped_vertices.data()});
  });
}

template <class Place>
void scene_on<Place>::make_solid(std::size_t i, inside_rule rule) {
  part& of = mesh_at(i);
  class_numbers_.reset();
  if (rule != inside_rule::vote) {
    of.solid = solid_along(of, 2, false, rule);
    return;
  }
  const map along[3] = {solid_along(of, 0, true, rule), solid_along(of, 1, true, rule),
                        solid_along(of, 2, true, rule)};
  of.times.time(place_, "vote", [&] {
    const voted_column<Place> column{{along[0].ref(), along[1].ref(), along[2].ref()}, grid_};
    of.solid = solid_of(place_, grid_, column);
  });
}

template <class Place>
void scene_on<Place>::make_surface(std::size_t i, bool all_touched) {
  part& of = mesh_at(i);
  class_numbers_.reset();
  marks<std::uint32_t, std::uint16_t, Place> voxels;
  const std::size_t room = 6 * std::size_t{grid_} * grid_, n = of.triangles.size();
  of.times.time(place_, "surface: cross", [&] {
    const auto make = [&](const auto& shapes) {
      voxels = raster<std::uint32_t, std::uint16_t>(place_, shapes, n, room);
    };
    if (all_touched) {
      make(touched(of));
    } else {
      make(crossed_voxels{of.all(grid_)});
    }
  });
  of.times.time(place_, "surface: group", [&] { of.surface = map(place_, voxels.keys(), voxels.values()); });
  of.times.time(place_, "surface: order", [&] { of.surface.for_each_key(place_, order_voxels()); });
}

template <class Place>
void scene_on<Place>::combine(solid_op op) {
  if (meshes_.empty()) detail::raise<invalid_argument>({"scene: there is no mesh to combine"});
  op_ = meshes_.size() == 1 ? solid_op::first : op;
  result_times_.time(place_, "combine", [&] {
    before_last_.reset();
    for (std::size_t i = 1; i + 1 < meshes_.size(); ++i) {
      const map& before = before_last_ ? *before_last_ : meshes_[0].solid;
      before_last_ = solid_of(place_, grid_, combined_column<Place>{pair(before, &meshes_[i].solid, op)});
    }
    result_ = solid_of(place_, grid_, combined_column<Place>{last_pair()});
  });
}

template <class Place>
solid_pair<Place> scene_on<Place>::last_pair() const {
  return pair(before_last_ ? *before_last_ : meshes_.front().solid,
              meshes_.size() > 1 ? &meshes_.back().solid : nullptr, op_);
}

template <class Place>
solid_facts scene_on<Place>::facts(const map& solid, std::uint64_t exposed, const stopwatch& times) {
  const solid_pair<Place> alone = pair(solid, nullptr, solid_op::first);
  solid_facts result;
  result.volume_voxels = volume_of(place_, solid, grid_);
  result.exposed = exposed;
  result.sides = place_.sum(std::size_t{grid_} * grid_, sides_of_column<Place>{{alone}});
  const auto area = place_.sum(area_of_column<Place>::columns(grid_), area_of_column<Place>{alone});
  result.area = static_cast<double>(area) / (1 << 20);
  result.bytes = solid.bytes();
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_mesh(std::size_t i) {
  const part& of = mesh_at(i);
  const exposed_words<Place, std::uint64_t> exposed{{pair(of.solid, nullptr, solid_op::first)}};
  auto result = facts(of.solid, all_columns(place_, grid_, exposed).size(), of.times);
  result.voxels = voxels_of(place_, of.surface);
  result.bytes += of.surface.bytes();
  return result;
}

template <class Place>
std::uint64_t scene_on<Place>::count_exposed() {
  std::uint64_t count = 0;
  result_times_.time(place_, "exposed", [&] {
    const exposed_words<Place, std::uint64_t> exposed{{last_pair()}};
    count = words_of<std::uint64_t>(place_, grid_, exposed).size();
  });
  return count;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_result() {
  const exposed_words<Place, std::uint64_t> exposed{{last_pair()}};
  auto result = facts(result_, all_columns(place_, grid_, exposed).size(), result_times_);
  result.voxels = result.exposed;
  return result;
}

template <class Place>
classified_column<Place> scene_on<Place>::classified() const {
  if (meshes_.size() < 2) detail::raise<invalid_argument>({"scene: voxels are classified for two meshes"});
  return {meshes_[0].surface.ref(), meshes_[1].surface.ref(),
          pair(meshes_[0].solid, &meshes_[1].solid, solid_op::combined)};
}

template <class Place>
const std::array<std::uint64_t, 5>& scene_on<Place>::class_numbers() {
  if (class_numbers_) return *class_numbers_;
  using kernel = count_classes<Place>;
  std::array<std::uint64_t, 5> numbers;
  result_times_.time(place_, "classes", [&] {
    array<std::uint64_t, Place> counts(place_, numbers.size());
    place_.fill(counts.data(), 0, counts.bytes());
    const kernel count{classified(), std::uint64_t{grid_} * grid_, counts.data()};
    place_.launch(detail::ceil_div<std::size_t>(count.n, kernel::tile), detail::scratch_bytes_of(count),
                  count);
    place_.copy_to_host(numbers.data(), counts.data(), counts.bytes());
  });
  return class_numbers_.emplace(numbers);
}

template <class Place>
class_counts scene_on<Place>::classes() {
  const auto& n = class_numbers();
  return {n[0] + n[2], n[1] + n[3], n[4]};
}

template <class Place>
class_counts scene_on<Place>::classes_of_mesh(std::size_t i) {
  const auto& n = class_numbers();
  return {n[2 * i], n[2 * i + 1], n[4]};
}

template <class Place>
fill_facts scene_on<Place>::fill() {
  if (meshes_.size() < 2) detail::raise<invalid_argument>({"scene: a fill is of two meshes"});
  if (grid_ > 1024) detail::raise<invalid_argument>({"scene: a fill is of grids of up to 1024^3 voxels"});
  fill_facts result;
  stopwatch times;
  filled_surface<Place> surface[2];
  times.time(place_, "hash", [&] {
    for (std::size_t i = 0; i < 2; ++i)
      surface[i] =
          hash_points(place_, touched(meshes_[i]), meshes_[i].all(grid_), meshes_[i].triangles.size());
  });
  times.time(place_, "fill", [&] {
    for (int i = 0; i < 2; ++i) fill_surface(place_, surface[i], surface[1 - i], grid_, {}, result);
  });
  for (int i = 0; i < 2; ++i) add_facts(place_, surface[i], meshes_[1 - i].solid, i == 0, result);
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
bit_grid_facts scene_on<Place>::bit_grid(solid_op op) {
  const bit_rows rows(grid_);
  const std::size_t count = std::min<std::size_t>(meshes_.size(), 2);
  array<std::uint32_t, Place> grids[2], combined;
  bit_grid_facts result;
  stopwatch times;
  for (std::size_t i = 0; i < count; ++i) {
    auto& bits = grids[i];
    times.time(place_, i == 0 ? "fill first" : "fill second", [&] {
      const auto crossings =
          raster<std::uint32_t, std::uint16_t>(place_, crossings_along{meshes_[i].all(grid_), 2},
                                               meshes_[i].triangles.size(), 2 * std::size_t{grid_} * grid_);
      bits = array<std::uint32_t, Place>(place_, rows.size());
      place_.fill(bits.data(), 0, bits.bytes());
      place_.for_each(crossings.size,
                      flip_crossings{crossings.keys().data(), crossings.values().data(), rows, bits.data()});
      place_.for_each(std::size_t{grid_} * grid_, fill_row{rows, bits.data()});
    });
  }
  times.time(place_, "combine", [&] {
    combined = array<std::uint32_t, Place>(place_, rows.size());
    place_.for_each(rows.size(), combine_words{count == 1 ? solid_op::first : op, grids[0].data(),
                                               count == 1 ? nullptr : grids[1].data(), combined.data()});
  });
  const exposed_bits exposed{rows, combined.data()};
  times.time(place_, "exposed", [&] {
    const std::size_t n = std::size_t{grid_} * grid_;
    array<std::uint64_t, Place> offsets(place_, n + 1);
    place_.fill(offsets.data() + n, 0, sizeof(std::uint64_t));
    detail::write_numbers(place_, n, count_exposed_row{exposed}, offsets.data());
    place_.exclusive_scan(offsets.data(), offsets.data(), offsets.size());
    place_.copy_to_host(&result.exposed, offsets.data() + n, sizeof(std::uint64_t));
    array<std::uint64_t, Place> words(place_, result.exposed);
    place_.for_each(n, write_exposed_row<std::uint64_t>{exposed, offsets.data(), words.data()});
  });
  result.volume_voxels = place_.sum(rows.size(), count_word{combined.data()});
  result.bytes = (count + 1) * rows.size() * sizeof(std::uint32_t);
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
template <class Word>
array<Word, Place> scene_on<Place>::voxels_here(voxel_set which) {
  if (sizeof(Word) == 4 && grid_ > 1024)
    detail::raise<invalid_argument>({"scene: voxels of grids above 1024^3 do not fit 32 bits"});
  array<Word, Place> result;
  const auto read = [&](const char* step, const auto& column) {
    result_times_.time(place_, step, [&] { result = words_of<Word>(place_, grid_, column); });
  };
  switch (which) {
    case voxel_set::exposed:
      read("exposed", exposed_words<Place, Word>{{last_pair()}});
      break;
    case voxel_set::surface:
      read("surface", surface_words<Place, Word>{mesh_at(0).surface.ref(), grid_});
      break;
    case voxel_set::surfaces:
      read("classified", classified_words<Place, Word>{classified()});
      break;
    case voxel_set::solid:
      read("voxels", inside_words<Place, Word>{result_.ref(), grid_});
      break;
  }
  return result;
}

template <class Place>
lit_voxels scene_on<Place>::lit(voxel_set which) {
  const auto words = voxels_here<std::uint32_t>(which);
  array<std::uint32_t, Place> around(place_, words.size());
  result_times_.time(place_, "around", [&] {
    const bit_rows rows(grid_);
    array<std::uint32_t, Place> bits(place_, rows.size());
    place_.fill(bits.data(), 0, bits.bytes());
    if (which == voxel_set::exposed || which == voxel_set::solid) {
      place_.for_each(std::size_t{grid_} * grid_, fill_column<Place>{result_.ref(), rows, bits.data()});
    } else {
      place_.for_each(words.size(), set_voxel{words.data(), rows, bits.data()});
    }
    place_.for_each(words.size(), look_around{words.data(), rows, bits.data(), around.data()});
    place_.synchronize();  // before the bits go
  });
  return {copy_to_host(place_, words), copy_to_host(place_, around)};
}

template <class Place>
solid_columns scene_on<Place>::columns() {
  const all_columns all(place_, grid_, combined_column<Place>{pair(result_, nullptr, solid_op::first)});
  array<std::uint32_t, Place> keys(place_, all.size());
  array<std::uint16_t, Place> heights(place_, all.size());
  all.write(put_heights{keys.data(), heights.data()});
  return {grid_, copy_to_host(place_, all.offsets()), copy_to_host(place_, heights)};
}

}  // namespace roost::tools
