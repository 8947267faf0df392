#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "apps/measure/timing.hpp"
#include "bit_grid.hpp"
#include "columns.hpp"
#include "fill.hpp"
#include "roost/kernels.hpp"

/// \file
/// A scene on a place.

namespace roost::tools {

/// A moment in the work of a place. On cuda it is reached when the device has finished earlier work.
template <class Place>
class moment;

template <>
class moment<host> {
 public:
  void mark(const host&) { at_ = std::chrono::steady_clock::now(); }
  double milliseconds_to(const moment& later) const {
    return std::chrono::duration<double, std::milli>(later.at_ - at_).count();
  }

 private:
  std::chrono::steady_clock::time_point at_;
};

#if defined(__CUDACC__)
template <>
class moment<roost::cuda> {
 public:
  void mark(const roost::cuda& place) {
    if (event_ == nullptr) {
      cudaEvent_t made = nullptr;
      kernels::check(cudaEventCreate(&made), "cudaEventCreate");
      event_.reset(made);
    }
    kernels::check(cudaEventRecord(event_.get(), place.stream()), "cudaEventRecord");
  }
  /// Waits until `later` is reached.
  double milliseconds_to(const moment& later) const {
    kernels::check(cudaEventSynchronize(later.event_.get()), "cudaEventSynchronize");
    float result = 0;
    kernels::check(cudaEventElapsedTime(&result, event_.get(), later.event_.get()), "cudaEventElapsedTime");
    return result;
  }

 private:
  struct destroy {
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroy> event_;
};
#endif

/// Times of steps that run once or repeatedly. Waits for a step only when the step runs again, or when all
/// times are requested.
template <class Place>
class stopwatch {
 public:
  template <class F>
  void time(const Place& place, const char* step, const F& f) {
    const auto known = std::ranges::find(steps_, step, &entry::name);
    entry& here = known == steps_.end() ? steps_.emplace_back() : *known;
    here.name = step;
    here.settle();
    here.start.mark(place);
    f();
    here.stop.mark(place);
    here.runs = true;
  }
  step_times medians() {
    step_times result;
    for (auto& step : steps_) {
      step.settle();
      if (!step.times.empty()) result.emplace_back(step.name, bench::median(step.times));
    }
    return result;
  }

 private:
  static constexpr std::size_t most = 1000;  // the most times of a step: the latest
  struct entry {
    std::string name;
    std::vector<double> times;
    moment<Place> start, stop;
    bool runs = false;  // its last time is not known yet

    void settle() {
      if (!runs) return;
      runs = false;
      if (times.size() == most) times.erase(times.begin());
      times.push_back(start.milliseconds_to(stop));
    }
  };
  std::vector<entry> steps_;
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

/// The bytes that are available on a place.
inline std::size_t bytes_there(const host&) { return detail::bytes_available_on_host(); }
#if defined(__CUDACC__)
inline std::size_t bytes_there(const roost::cuda& place) {
  std::size_t free = 0, total = 0;
  kernels::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free + device_memory_pool::of(place.device()).kept();
}
#endif

template <class Place>
class scene_on : public scene {
 public:
  explicit scene_on(const Place& place) : place_(place) {}

  std::string place_name() const override { return bench::place_name(place_); }
  std::size_t expect_room(std::uint32_t grid, std::size_t at_once = 1) const override;
  void set_mesh(std::size_t i, const mesh& surface) override;
  std::size_t meshes() const override { return meshes_.size(); }
  mesh_faults faults(std::size_t i) override;
  void place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) override;
  void make_solid(std::size_t i, inside_rule rule) override;
  void make_surface(std::size_t i, bool all_touched) override;
  void combine(solid_op op) override;
  frame_counts make_frame(const frame_plan& plan) override;
  step_times frame_times() override { return frame_times_.medians(); }
  std::uint64_t count_exposed() override;
  std::uint64_t volume() override { return volume_of(last_pair()); }
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
  using table = column_ref<Place>;
  struct part {
    array<point, Place> vertices;
    array<triangle, Place> triangles;
    array<snapped, Place> snapped_vertices;
    affine to_snapped;
    bounds box;  // of all vertices
    map solid, surface;
    bool in_frame = false;  // instead, both are among the columns of the last frame
    stopwatch<Place> times;

    snapped_triangles all(std::uint32_t grid) const {
      return {snapped_vertices.data(), triangles.data(), grid};
    }
  };

  touched_voxels touched(const part& of) const {
    return {of.vertices.data(), of.triangles.data(), of.to_snapped, grid_};
  }
  map solid_along(part& of, int axis, bool doubts, inside_rule rule);
  /// The solid and the surface of mesh i.
  table solid(std::size_t i) const {
    return meshes_[i].in_frame ? table(frame_.ref(), solid_tag(i)) : table(meshes_[i].solid.ref());
  }
  table surface(std::size_t i) const {
    return meshes_[i].in_frame ? table(frame_.ref(), surface_tag(i)) : table(meshes_[i].surface.ref());
  }
  /// The columns of a frame of one or two meshes, by the directory of a tag.
  column_directory listed(std::uint32_t tag) const {
    return {frame_directories_.data() + (tag >> tag_shift) * (std::size_t{grid_} * grid_),
            frame_.values().data(), grid_};
  }
  /// The directory of a solid, in its own memory: for uses that read each column for its neighbours, too.
  struct listed_solid {
    array<std::uint64_t, Place> words;
    column_directory columns;
  };
  listed_solid list(const table& solid, const map& of) const;
  listed_solid list(std::size_t i) const {
    return list(solid(i), meshes_[i].in_frame ? frame_ : meshes_[i].solid);
  }
  struct listed_pair {
    listed_solid a, b;
    solid_pair<column_directory> columns;
  };
  /// last_pair() by directories.
  listed_pair list_last_pair() const;
  template <class Columns>
  solid_pair<Columns> alone(const Columns& solid) const {
    return {solid, solid, solid_op::first, grid_};
  }
  void snap(part& of, std::uint32_t grid, const affine& to_snapped);
  void expect_within_reach(const part& of, std::uint32_t grid, const affine& to_snapped) const;
  /// Combines all but the last of more than two meshes.
  void combine_before_last(solid_op op);
  /// The result of combine(), as a solid of its own.
  const map& combined();
  frame_counts make_frame_in_steps(const frame_plan& plan);
  void mark_frame(bool surfaces, bool all_touched);
  template <class Columns>
  frame_counts look_at_frame(const solid_pair<Columns>& last,
                             const std::optional<classified_column<Columns>>& surfaces);
  template <class Columns>
  void count_classes_into(const classified_column<Columns>& surfaces, std::uint64_t* counts);
  template <class Columns>
  std::uint64_t volume_of(const solid_pair<Columns>& of) const {
    return place_.sum(std::size_t{grid_} * grid_, volume_of_column<Columns>{{of}});
  }
  /// The operands of the last operation.
  solid_pair<table> last_pair() const;
  classified_column<table> classified() const;
  solid_facts facts(const column_directory& solid, const solid_pair<column_directory>& seen,
                    stopwatch<Place>& times);
  /// The part of a solid's area that belongs to mesh i and to none of the `earlier` meshes before it.
  double area_of(std::size_t i, const table& solid, std::size_t earlier) const;
  template <class Word>
  array<Word, Place> voxels_here(voxel_set which);
  template <class Word>
  std::vector<Word> voxels(voxel_set which) {
    return copy_to_host(place_, voxels_here<Word>(which));
  }
  const std::array<std::uint64_t, 5>& class_numbers();
  part& mesh_at(std::size_t i);
  /// Forgets the results for meshes that will change.
  void forget() {
    class_numbers_.reset();
    frame_exposed_.reset();
  }

  Place place_;
  std::uint32_t grid_ = 0;
  std::vector<part> meshes_;
  std::optional<map> before_last_;  // all but the last of more than two meshes, combined
  std::optional<map> result_;
  solid_op op_ = solid_op::first;
  stopwatch<Place> result_times_, frame_times_;
  std::optional<std::array<std::uint64_t, 5>> class_numbers_;

  // For frames: the columns of all meshes, and memory that the next frame reuses.
  map frame_;
  marks<std::uint32_t, std::uint16_t, Place> frame_marks_;
  array<std::uint64_t, Place> frame_pieces_, frame_numbers_, frame_directories_, frame_counts_, frame_words_;
  std::optional<std::uint64_t> frame_exposed_;  // words of the last frame, while nothing has changed
};

template <class Place>
std::size_t scene_on<Place>::expect_room(std::uint32_t grid, std::size_t at_once) const {
  // Marks for which raster() has room at once, the scratch memory of their map, and directories and
  // offsets of columns.
  const std::size_t bytes = std::size_t{144} * at_once * grid * grid, there = bytes_there(place_);
  if (bytes > there) {
    kernels::raise<out_of_memory>({"a grid of ", grid, "^3 voxels takes about ", bytes >> 20, " MiB, and ",
                                   there >> 20, " MiB are free; take a coarser grid"});
  }
  return bytes;
}

template <class Place>
typename scene_on<Place>::part& scene_on<Place>::mesh_at(std::size_t i) {
  if (i >= meshes_.size())
    kernels::raise<invalid_argument>({"scene: there is no mesh ", i, " of ", meshes_.size()});
  return meshes_[i];
}

template <class Place>
void scene_on<Place>::set_mesh(std::size_t i, const mesh& surface) {
  if (i > meshes_.size())
    kernels::raise<invalid_argument>({"scene: mesh ", i, " cannot be set, there are ", meshes_.size()});
  part fresh;
  stopwatch<Place> times;
  times.time(place_, "upload", [&] {
    fresh.vertices = copy_to(place_, surface.vertices);
    fresh.triangles = copy_to(place_, surface.triangles);
  });
  fresh.times = std::move(times);
  for (const point& p : surface.vertices) fresh.box.add({p.x, p.y, p.z});
  forget();
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

/// For most meshes, the box shows that they are near enough, without a test of each corner.
template <class Place>
void scene_on<Place>::expect_within_reach(const part& of, std::uint32_t grid,
                                          const affine& to_snapped) const {
  bool within = true;
  for (std::size_t k = 0; k < 3; ++k) {
    double low = to_snapped.shift[k], high = low;
    for (std::size_t i = 0; i < 3; ++i) {
      const double a = to_snapped.rows[k][i] * of.box.low[i], b = to_snapped.rows[k][i] * of.box.high[i];
      low += std::min(a, b);
      high += std::max(a, b);
    }
    within = within && low > -farthest_steps / 2 && high < farthest_steps / 2;
  }
  if (within || of.triangles.size() == 0) return;
  const is_too_far too_far{of.vertices.data(), of.triangles.data(), to_snapped};
  if (place_.sum(3 * of.triangles.size(), too_far) != 0) {
    kernels::raise<invalid_argument>({"a mesh reaches more than ", std::uint64_t{1} << 21,
                                      " voxels out of a grid of ", grid,
                                      "^3; take a grid that covers more, or a coarser one"});
  }
}

template <class Place>
void scene_on<Place>::snap(part& of, std::uint32_t grid, const affine& to_snapped) {
  if (grid == 0 || grid > finest_scene) {
    kernels::raise<invalid_argument>(
        {"a grid of ", grid, " voxels a side cannot be made; ask for 1 to ", finest_scene});
  }
  expect_within_reach(of, grid, to_snapped);
  grid_ = grid;
  forget();
  of.to_snapped = to_snapped;
  if (of.snapped_vertices.size() != of.vertices.size())
    of.snapped_vertices = array<snapped, Place>(place_, of.vertices.size());
  place_.for_each(of.vertices.size(),
                  snap_vertices{of.vertices.data(), to_snapped, of.snapped_vertices.data()});
}

template <class Place>
void scene_on<Place>::place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) {
  part& of = mesh_at(i);
  of.times.time(place_, "snap", [&] { snap(of, grid, to_snapped); });
}

template <class Place>
void scene_on<Place>::make_solid(std::size_t i, inside_rule rule) {
  part& of = mesh_at(i);
  forget();
  of.in_frame = false;
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
  forget();
  of.in_frame = false;
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
  result_times_.time(place_, "combine", [&] {
    combine_before_last(op);
    combined();
  });
}

template <class Place>
void scene_on<Place>::combine_before_last(solid_op op) {
  op_ = meshes_.size() == 1 ? solid_op::first : op;
  result_.reset();
  before_last_.reset();
  frame_exposed_.reset();
  for (std::size_t i = 1; i + 1 < meshes_.size(); ++i) {
    const table before = before_last_ ? table(before_last_->ref()) : solid(0);
    before_last_ = solid_of(place_, grid_, combined_column<table>{{before, solid(i), op, grid_}});
  }
}

template <class Place>
auto scene_on<Place>::combined() -> const map& {
  if (!result_) result_ = solid_of(place_, grid_, combined_column<table>{last_pair()});
  return *result_;
}

template <class Place>
auto scene_on<Place>::last_pair() const -> solid_pair<table> {
  if (meshes_.empty()) kernels::raise<invalid_argument>({"scene: there is no mesh to combine"});
  return {before_last_ ? table(before_last_->ref()) : solid(0), solid(meshes_.size() - 1), op_, grid_};
}

template <class Place>
auto scene_on<Place>::list(const table& solid, const map& of) const -> listed_solid {
  array<std::uint64_t, Place> words(place_, std::size_t{grid_} * grid_);
  const std::uint16_t* const heights = of.values().data();
  place_.for_each(words.size(), list_columns<Place>{solid, heights, grid_, words.data()});
  const column_directory columns(words.data(), heights, grid_);
  return {std::move(words), columns};
}

template <class Place>
auto scene_on<Place>::list_last_pair() const -> listed_pair {
  const auto pair = last_pair();
  auto a = before_last_ ? list(pair.a, *before_last_) : list(0);
  if (pair.op == solid_op::first) return {std::move(a), {{}, a.columns}, alone(a.columns)};
  auto b = list(meshes_.size() - 1);
  const solid_pair<column_directory> columns{a.columns, b.columns, pair.op, grid_};
  return {std::move(a), std::move(b), columns};
}

template <class Place>
frame_counts scene_on<Place>::make_frame(const frame_plan& plan) {
  const std::size_t count = meshes_.size();
  if (count == 0 || plan.to_snapped.size() != count) {
    kernels::raise<invalid_argument>(
        {"scene: a frame of ", plan.to_snapped.size(), " meshes asked for, and there are ", count});
  }
  if (plan.rule == inside_rule::vote) return make_frame_in_steps(plan);
  const bool surfaces = count == 2;
  for (part& of : meshes_) of.in_frame = false;  // in case something fails
  frame_ = map();
  frame_times_.time(place_, "snap", [&] {
    for (std::size_t i = 0; i < count; ++i) snap(meshes_[i], plan.grid, plan.to_snapped[i]);
  });
  frame_times_.time(place_, "cross", [&] { mark_frame(surfaces, plan.all_touched); });
  frame_times_.time(place_, "group",
                    [&] { frame_ = map(place_, frame_marks_.keys(), frame_marks_.values()); });
  const bool listed_all = count <= 2;  // then tags are 0 and 1 ... and what was combined is among them
  const std::size_t columns = std::size_t{grid_} * grid_;
  frame_times_.time(place_, "order", [&] {
    if (listed_all) {
      const std::size_t words = (surfaces ? 4 : 1) * columns;
      if (frame_directories_.size() != words) frame_directories_ = array<std::uint64_t, Place>(place_, words);
      place_.fill(frame_directories_.data(), 0, frame_directories_.bytes());
    }
    frame_.for_each_key(place_, order_tagged{{plan.rule, false, grid_},
                                             frame_.values().data(),
                                             listed_all ? frame_directories_.data() : nullptr});
  });
  for (part& of : meshes_) {
    of.in_frame = true;
    of.solid = map();
    of.surface = map();
  }
  if (count > 2) {
    frame_times_.time(place_, "combine", [&] { combine_before_last(plan.op); });
  } else {
    combine_before_last(plan.op);
  }
  if (!listed_all) return look_at_frame<column_directory>(list_last_pair().columns, {});
  using directory = column_directory;
  const solid_pair<directory> last{listed(solid_tag(0)), listed(solid_tag(count - 1)), op_, grid_};
  std::optional<classified_column<directory>> classified;
  if (surfaces)
    classified = classified_column<directory>{listed(surface_tag(0)), listed(surface_tag(1)), last};
  return look_at_frame(last, classified);
}

template <class Place>
frame_counts scene_on<Place>::make_frame_in_steps(const frame_plan& plan) {
  const std::size_t count = meshes_.size();
  frame_times_.time(place_, "meshes", [&] {
    for (std::size_t i = 0; i < count; ++i) {
      place_mesh(i, plan.grid, plan.to_snapped[i]);
      make_solid(i, plan.rule);
      if (count == 2) make_surface(i, plan.all_touched);
    }
  });
  combine_before_last(plan.op);
  std::optional<classified_column<table>> surfaces;
  if (count == 2) surfaces = classified();
  return look_at_frame(last_pair(), surfaces);
}

/// Marks the crossings of all solids and, if requested, the voxels of all surfaces.
template <class Place>
void scene_on<Place>::mark_frame(bool surfaces, bool all_touched) {
  const std::size_t count = meshes_.size(), pairs = kernels::ceil_div<std::size_t>(count, 2),
                    lists = pairs + (surfaces && all_touched ? count : 0),
                    columns = std::size_t{grid_} * grid_;
  auto& marked = frame_marks_;
  std::size_t room = std::max(marked.keys_room.size(), count * (surfaces ? 8 : 2) * columns),
              entries = std::max<std::size_t>(1024, frame_pieces_.size() / lists);
  if (frame_numbers_.size() != lists + 1) frame_numbers_ = array<std::uint64_t, Place>(place_, lists + 1);
  std::vector<std::uint64_t> counted(lists + 1);
  for (;;) {  // three times at most, like raster()
    if (marked.keys_room.size() < room)
      marked = {array<std::uint32_t, Place>(place_, room), array<std::uint16_t, Place>(place_, room)};
    if (frame_pieces_.size() < lists * entries)
      frame_pieces_ = array<std::uint64_t, Place>(place_, lists * entries);
    place_.fill(frame_numbers_.data(), 0, frame_numbers_.bytes());
    std::size_t list = 0;
    const auto mark = [&](const auto& shapes, std::size_t n) {
      raster_into<std::uint32_t, std::uint16_t>(
          place_, shapes, n,
          {marked.keys_room.data(), marked.values_room.data(), room, frame_numbers_.data()},
          {frame_pieces_.data() + list * entries, entries, frame_numbers_.data() + 1 + list});
      ++list;
    };
    for (std::size_t i = 0; i < count; i += 2) {
      const part &a = meshes_[i], &b = meshes_[std::min(i + 1, count - 1)];
      const std::size_t of_a = a.triangles.size(), of_b = i + 1 < count ? b.triangles.size() : 0;
      mark(tagged_marks{a.all(grid_), b.all(grid_), of_a, solid_tag(i), solid_tag(i + 1),
                        surfaces && !all_touched},
           of_a + of_b);
    }
    for (std::size_t i = 0; i < lists - pairs; ++i) {
      const part& of = meshes_[i];
      mark(tagged_shapes<touched_voxels>{touched(of), surface_tag(i)}, of.triangles.size());
    }
    place_.copy_to_host(counted.data(), frame_numbers_.data(), frame_numbers_.bytes());
    const std::uint64_t pieces = *std::max_element(counted.begin() + 1, counted.end());
    if (counted[0] <= room && pieces <= entries) break;
    const auto with_slack = [](std::uint64_t n) { return n + n / 8; };  // the next frame may have more
    if (counted[0] > room) room = with_slack(counted[0]);
    if (pieces > entries) entries = with_slack(pieces);
  }
  marked.size = counted[0];
}

/// Writes the exposed voxels of the result, and counts them and the classes; the host waits once.
template <class Place>
template <class Columns>
frame_counts scene_on<Place>::look_at_frame(const solid_pair<Columns>& last,
                                            const std::optional<classified_column<Columns>>& surfaces) {
  using kernel = write_words<Place, std::uint64_t, exposed_words<Columns, std::uint64_t>>;
  constexpr std::size_t numbers = std::tuple_size_v<typename decltype(class_numbers_)::value_type>;
  const std::size_t teams = kernel::teams(grid_),
                    words = 1 + numbers + kernels::earlier_teams::words(teams);  // voxels, classes, turns
  if (frame_counts_.size() != words) frame_counts_ = array<std::uint64_t, Place>(place_, words);
  std::uint64_t* const counts = frame_counts_.data();
  const auto write = [&] {
    place_.fill(counts, 0, frame_counts_.bytes());
    const kernel run{{{last}},
                     grid_,
                     {frame_words_.data(), frame_words_.size()},
                     kernels::earlier_teams(counts + 1 + numbers),
                     counts};
    place_.launch(teams, kernels::scratch_bytes_of(run), run);
  };
  std::uint64_t seen[1 + numbers];  // exposed voxels, classes
  frame_times_.time(place_, "exposed", write);
  if (surfaces) {
    frame_times_.time(place_, "classes", [&] { count_classes_into(*surfaces, counts + 1); });
    place_.copy_to_host(seen, counts, sizeof(seen));
    std::copy_n(seen + 1, numbers, class_numbers_.emplace().begin());
  } else {
    place_.copy_to_host(seen, counts, sizeof(seen[0]));
  }
  if (seen[0] > frame_words_.size()) {
    frame_words_ = array<std::uint64_t, Place>(place_, seen[0] + seen[0] / 8);
    write();
    place_.synchronize();
  }
  frame_exposed_ = seen[0];
  return {seen[0], surfaces ? classes() : class_counts()};
}

/// The facts about a solid, and about the exposed voxels of its operands.
template <class Place>
solid_facts scene_on<Place>::facts(const column_directory& solid, const solid_pair<column_directory>& seen,
                                   stopwatch<Place>& times) {
  using columns = column_directory;
  const exposed_words<columns, std::uint64_t> exposed{{seen}};
  solid_facts result;
  result.volume_voxels = volume_of(alone(solid));
  result.exposed = all_columns(place_, grid_, exposed).size();
  result.sides = place_.sum(std::size_t{grid_} * grid_, sides_of_column<columns>{{alone(solid)}});
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
double scene_on<Place>::area_of(std::size_t i, const table& solid, std::size_t earlier) const {
  const part& of = meshes_[i];
  const std::size_t n = of.triangles.size();
  const facing_triangles triangles{of.all(grid_)};
  array<std::uint64_t, Place> offsets(place_, n + 1);
  place_.fill(offsets.data() + n, 0, sizeof(std::uint64_t));
  kernels::write_numbers(place_, n, count_rows{triangles.all}, offsets.data());
  place_.exclusive_scan(offsets.data(), offsets.data(), offsets.size());
  std::uint64_t rows = 0;
  place_.copy_to_host(&rows, offsets.data() + n, sizeof(rows));
  const auto vertices =
      unique_inverse(place_, computed(of.vertices.size(), vertex_keys{of.vertices.data()}), index_order::any);
  const auto same = unique_inverse(
      place_, computed(n, triangle_keys{{of.triangles.data(), vertices.inverse.data()}}), index_order::any);
  array<std::uint32_t, Place> counts(place_, same.keys.size());
  place_.fill(counts.data(), 0, counts.bytes());
  place_.for_each(n, count_same{same.inverse.data(), counts.data()});
  std::vector<table> others;
  for (std::size_t k = 0; k < earlier; ++k) others.push_back(this->solid(k));
  const auto before = copy_to(place_, others);
  const auto sum = place_.sum(rows, area_of_row<table>{triangles, n, offsets.data(), same.inverse.data(),
                                                       counts.data(), solid, before.data(), earlier});
  return static_cast<double>(sum) / facing_triangles::one;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_mesh(std::size_t i) {
  part& of = mesh_at(i);
  const auto listed = list(i);
  auto result = facts(listed.columns, alone(listed.columns), of.times);
  result.area = area_of(i, solid(i), 0);
  result.voxels = place_.sum(std::size_t{grid_} * grid_, voxels_of_column<Place>{surface(i), grid_});
  result.bytes = of.in_frame ? frame_.bytes() : of.solid.bytes() + of.surface.bytes();
  return result;
}

template <class Place>
std::uint64_t scene_on<Place>::count_exposed() {
  std::uint64_t count = 0;
  result_times_.time(place_, "exposed", [&] {
    const auto last = list_last_pair();
    const exposed_words<column_directory, std::uint64_t> exposed{{last.columns}};
    count = words_of<std::uint64_t>(place_, grid_, exposed).size();
  });
  return count;
}

template <class Place>
solid_facts scene_on<Place>::facts_of_result() {
  auto facts_of = facts(list(combined().ref(), combined()).columns, list_last_pair().columns, result_times_);
  for (std::size_t i = 0; i < meshes_.size(); ++i) facts_of.area += area_of(i, combined().ref(), i);
  facts_of.voxels = facts_of.exposed;
  facts_of.bytes = combined().bytes();
  return facts_of;
}

template <class Place>
auto scene_on<Place>::classified() const -> classified_column<table> {
  if (meshes_.size() < 2) kernels::raise<invalid_argument>({"scene: voxels are classified for two meshes"});
  return {surface(0), surface(1), {solid(0), solid(1), solid_op::combined, grid_}};
}

template <class Place>
template <class Columns>
void scene_on<Place>::count_classes_into(const classified_column<Columns>& surfaces, std::uint64_t* counts) {
  using kernel = count_classes<Columns>;
  const kernel count{surfaces, std::uint64_t{grid_} * grid_, counts};
  place_.launch(kernels::ceil_div<std::size_t>(count.n, kernel::tile), kernels::scratch_bytes_of(count),
                count);
}

template <class Place>
const std::array<std::uint64_t, 5>& scene_on<Place>::class_numbers() {
  if (class_numbers_) return *class_numbers_;
  std::array<std::uint64_t, 5> numbers;
  result_times_.time(place_, "classes", [&] {
    array<std::uint64_t, Place> counts(place_, numbers.size());
    place_.fill(counts.data(), 0, counts.bytes());
    count_classes_into(classified(), counts.data());
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
  if (meshes_.size() < 2) kernels::raise<invalid_argument>({"scene: a fill is of two meshes"});
  if (grid_ > 1024) kernels::raise<invalid_argument>({"scene: a fill is of grids of up to 1024^3 voxels"});
  fill_facts result;
  stopwatch<Place> times;
  filled_surface<Place> surfaces[2];
  times.time(place_, "hash", [&] {
    for (std::size_t i = 0; i < 2; ++i)
      surfaces[i] =
          hash_points(place_, touched(meshes_[i]), meshes_[i].all(grid_), meshes_[i].triangles.size());
  });
  times.time(place_, "fill", [&] {
    for (std::size_t i = 0; i < 2; ++i) fill_surface(place_, surfaces[i], surfaces[1 - i], grid_, {}, result);
  });
  for (std::size_t i = 0; i < 2; ++i) add_facts(place_, surfaces[i], solid(1 - i), i == 0, result);
  result.milliseconds = times.medians();
  return result;
}

template <class Place>
bit_grid_facts scene_on<Place>::bit_grid(solid_op op) {
  const bit_rows rows(grid_);
  const std::size_t count = std::min<std::size_t>(meshes_.size(), 2);
  array<std::uint32_t, Place> grids[2], combined;
  bit_grid_facts result;
  stopwatch<Place> times;
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
    kernels::write_numbers(place_, n, count_exposed_row{exposed}, offsets.data());
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
    kernels::raise<invalid_argument>({"scene: voxels of grids above 1024^3 do not fit 32 bits"});
  if (meshes_.empty())
    kernels::raise<invalid_argument>({"scene: there is no mesh whose voxels could be read"});
  array<Word, Place> result;
  const auto read = [&](const char* step, const auto& column) {
    result_times_.time(place_, step, [&] { result = words_of<Word>(place_, grid_, column); });
  };
  switch (which) {
    case voxel_set::exposed:
      if (frame_exposed_) {
        result = array<Word, Place>(place_, *frame_exposed_);
        kernels::write_numbers(place_, result.size(), as_words<Word>{frame_words_.data()}, result.data());
        place_.synchronize();
        break;
      }
      result_times_.time(place_, "exposed", [&] {
        const auto last = list_last_pair();
        result = words_of<Word>(place_, grid_, exposed_words<column_directory, Word>{{last.columns}});
      });
      break;
    case voxel_set::surface:
      read("surface", surface_words<Place, Word>{surface(0), grid_});
      break;
    case voxel_set::surfaces:
      read("classified", classified_words<table, Word>{classified()});
      break;
    case voxel_set::solid:
      read("voxels", inside_words<Place, Word>{combined().ref(), grid_});
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
      place_.for_each(std::size_t{grid_} * grid_, fill_column<Place>{combined().ref(), rows, bits.data()});
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
  const all_columns all(place_, grid_, combined_column<table>{alone(table(combined().ref()))});
  array<std::uint32_t, Place> keys(place_, all.size());
  array<std::uint16_t, Place> heights(place_, all.size());
  all.write(put_heights{keys.data(), heights.data()});
  return {grid_, copy_to_host(place_, all.offsets()), copy_to_host(place_, heights)};
}

}  // namespace roost::tools
