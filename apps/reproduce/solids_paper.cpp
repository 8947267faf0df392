#include "solids_paper.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numbers>

#include "apps/measure/timing.hpp"
#include "apps/solids/shapes.hpp"
#include "apps/solids/solids.hpp"

namespace {

namespace tools = roost::tools;
using roost::bench::text;

/// Two meshes and their path: the first turns, the second goes around it, through its surface.
struct moving_meshes {
  tools::mesh meshes[2];
  tools::bounds boxes[2];

  /// `points`: of both together.
  explicit moving_meshes(std::size_t points) {
    const auto around = std::max(8, static_cast<int>(std::sqrt(static_cast<double>(points))));
    const char* const names[] = {"torus", "sphere"};  // of N^2 / 2 points each
    for (std::size_t i = 0; i < 2; ++i) {
      meshes[i] = *tools::make_shape(fmt::format("{}:{}", names[i], around));
      boxes[i] = tools::bounds_of(meshes[i]);
    }
  }

  /// Where the meshes are at time t of a loop, 0 to 1.
  std::vector<tools::affine> where_at(double t) const {
    const double angle = 2 * std::numbers::pi * t;
    const std::string words[] = {
        fmt::format("rotate 1 2 3 {}", 360 * t),
        fmt::format("scale 0.6 move {} {} 0.1", 0.3 * std::cos(angle), 0.3 * std::sin(angle))};
    std::vector<tools::affine> result;
    for (std::size_t i = 0; i < 2; ++i)
      result.push_back(tools::place_mesh(boxes[i], tools::parse_placement(words[i]), 1));
    return result;
  }

  /// The bounds of all frames of a loop.
  tools::bounds bounds_of_loop(int frames) const {
    tools::bounds box;
    for (int f = 0; f < frames; ++f) {
      const auto where = where_at(static_cast<double>(f) / frames);
      for (std::size_t i = 0; i < 2; ++i) box.add(tools::bounds_of(meshes[i], where[i]));
    }
    return box;
  }
};

/// Throws if the volumes of both solids, their intersection and their union are inconsistent. `plan`: of the
/// current frame.
void check_volumes(tools::scene& on, tools::frame_plan plan, const std::string& what) {
  const std::uint64_t both = on.volume();
  plan.op = tools::solid_op::combined;
  on.make_frame(plan);
  const std::uint64_t any = on.volume(),
                      each = on.facts_of_mesh(0).volume_voxels + on.facts_of_mesh(1).volume_voxels;
  roost::bench::check_answers(each > both + any ? each - both - any : both + any - each, what);
}

}  // namespace

void reproduce_solids(const roost::bench::reproduction& options, const std::string& place) {
  constexpr int frames = 8;
  constexpr std::size_t points = 160000;
  const moving_meshes moving(options.shared(points));
  const auto on = tools::make_scene(place, options.threads);
  for (std::size_t i = 0; i < 2; ++i) on->set_mesh(i, moving.meshes[i]);

  const auto box = moving.bounds_of_loop(frames);
  roost::bench::report_table table{
      "Alcantara et al. 2009, section 6, spatial hashing: two animated surfaces (their times: GeForce GTX "
      "280)",
      {"fact", "paper", "roost"},
      {{"points of both", fmt::format("about {}", points),
        std::to_string(moving.meshes[0].vertices.size() + moving.meshes[1].vertices.size())}}};
  for (const std::uint32_t side : {128u, 256u}) {
    const auto grid = tools::frame_around(box, side);
    std::vector<double> whole, hash, fill;
    std::uint64_t voxels = 0, different = 0, unknown = 0;
    for (int f = 0; f < frames * options.repetitions; ++f) {
      const auto where = moving.where_at(static_cast<double>(f % frames) / frames);
      tools::frame_plan plan{side, {}, tools::solid_op::intersection};
      for (std::size_t i = 0; i < where.size(); ++i)
        plan.to_snapped.push_back(to_snapped(grid, where[i], moving.meshes[i]));
      const auto start = std::chrono::steady_clock::now();
      on->make_frame(plan);
      whole.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      const auto filled = on->fill();
      voxels = std::max(voxels, filled.classes.all() + filled.unknown);
      different += filled.different;
      unknown += filled.unknown;
      for (const auto& [step, milliseconds] : filled.milliseconds)
        (step == "hash" ? hash : fill).push_back(milliseconds);
      if (f < frames) check_volumes(*on, plan, fmt::format("the volumes of frame {} at {}^3", f, side));
    }
    using roost::bench::median;
    const double by_fill = median(hash) + median(fill), by_columns = median(whole);
    const bool usual = side == 128;
    const auto row = [&](const char* fact, const char* paper, const std::string& ours) {
      table.rows.push_back({fmt::format("{}^3: {}", side, fact), usual ? paper : "", ours});
    };
    row("voxels of both surfaces, at most", "", std::to_string(voxels));
    row("the paper's method: hashing of both, ms", "", text(median(hash), 3));
    row("the paper's method: intersection and fill, ms", "15 to 19", text(median(fill), 3));
    row("the paper's method: frames a second", "25 to 29, with drawing", text(1000 / by_fill, 0));
    row("the paper's method: voxels that it misplaces, all frames", "\"good results\"",
        std::to_string(different));
    row("the paper's method: voxels that it does not reach, all frames", "", std::to_string(unknown));
    row("columns, from triangles to classes and exposed voxels, ms", "", text(by_columns, 3));
    row("columns: frames a second", "", text(1000 / by_columns, 0));
  }
  options.report(table);
}
