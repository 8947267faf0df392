#include "lidar.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <roost/kernel_map.hpp>

#include "clouds.hpp"
#include "picture.hpp"
#include "place_choice.hpp"
#include "point_cloud.hpp"
#include "run.hpp"

namespace {

using json = nlohmann::ordered_json;
using roost::bench::row;
using roost::tools::point_cloud;

struct lidar_options : roost::bench::settings {
  std::string file;
  int sweeps = 0;
  double size = 0.1, within = 0;
  std::string place = "auto", format = "table", picture;
  double turn = 30, look_down = 35;
  int pixels = 1200;
};

/// All that is found out about the voxels of a cloud.
struct cloud_facts {
  std::string name;
  std::size_t points = 0, not_finite = 0, beyond = 0;
  std::vector<roost::coordinate<3>> voxels;  ///< the different ones, in the order of the input
  std::vector<std::uint8_t> neighbours;      ///< of each, of 27
  std::int64_t box[3] = {};
  std::size_t blocks = 0;
  double voxels_of_block = 0, neighbours_of_27 = 0;
  const char* representation = "";
  std::vector<row> times;
};

point_cloud read_points(const lidar_options& options) {
  if (options.sweeps == 0) return roost::tools::read_point_cloud(options.file);
  point_cloud cloud;
  roost::bench::street_scanner scanner;
  for (int i = 0; i < options.sweeps; ++i) {
    scanner.sweep(i, [&](const roost::bench::scanned_point& p) {
      cloud.points.push_back({double{p.x}, double{p.y}, double{p.z}});
    });
  }
  return cloud;
}

/// Cubes of the size that hold points.
std::vector<roost::coordinate<3>> voxels_of(const point_cloud& cloud, const lidar_options& options,
                                            cloud_facts& facts) {
  constexpr double most = 1 << 20;  // what all tables hold
  std::vector<roost::coordinate<3>> result;
  result.reserve(cloud.points.size());
  for (const auto& p : cloud.points) {
    if (options.within > 0 && std::hypot(p.x, p.y, p.z) > options.within) {
      ++facts.beyond;
      continue;
    }
    roost::coordinate<3> c{};
    const double at[3] = {std::floor(p.x / options.size), std::floor(p.y / options.size),
                          std::floor(p.z / options.size)};
    for (int a = 0; a < 3; ++a) {
      if (!(std::abs(at[a]) < most)) {
        throw roost::invalid_argument(fmt::format(
            "{}: the point ({}, {}, {}) is more than 2^20 voxels of {} m away from 0; give a larger --size, "
            "or --within",
            facts.name, p.x, p.y, p.z, options.size));
      }
      c.at[a] = static_cast<std::int32_t>(at[a]);
    }
    result.push_back(c);
  }
  if (result.empty())
    throw roost::invalid_argument(
        fmt::format("{}: no point is within {} m; give more", facts.name, options.within));
  return result;
}

void look_at(const roost::host& cpu, const std::vector<roost::coordinate<3>>& all, cloud_facts& facts) {
  using index_type = roost::coordinate_index<3>;
  const index_type index(cpu, all, {.order = roost::order::input}),
      blocks(cpu, all, {.representation = roost::representation::blocks, .rows_of_input = false});
  facts.voxels.assign(index.begin(), index.end());
  facts.representation =
      index.statistics().representation == roost::representation::blocks ? "blocks" : "points";
  facts.blocks = blocks.statistics().blocks;
  facts.voxels_of_block = blocks.statistics().occupancy();
  for (int a = 0; a < 3; ++a)
    facts.box[a] = std::int64_t{index.bounds().greatest.at[a]} - index.bounds().least.at[a] + 1;
  const auto map = roost::submanifold(cpu, index);
  std::size_t sum = 0;
  for (const std::uint32_t mask : map.masks()) {
    facts.neighbours.push_back(static_cast<std::uint8_t>(std::popcount(mask)));
    sum += facts.neighbours.back();
  }
  facts.neighbours_of_27 = static_cast<double>(sum) / static_cast<double>(index.size());
}

/// A voxel of the picture is a cube of so many voxels that the longest side has 1024: coloured by the mean of
/// their neighbours.
void draw(const roost::host& cpu, const cloud_facts& facts, const lidar_options& options) {
  const std::int64_t longest = std::max({facts.box[0], facts.box[1], facts.box[2]}),
                     step = (longest + 1023) / 1024;
  std::int32_t least[3];
  for (int a = 0; a < 3; ++a) {
    least[a] = std::ranges::min(facts.voxels, {}, [&](const auto& c) { return c.at[a]; }).at[a];
  }
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> drawn;  // key -> neighbours, voxels
  for (std::size_t i = 0; i < facts.voxels.size(); ++i) {
    std::uint32_t key = 0;
    for (int a = 0; a < 3; ++a)
      key = key << 10 | static_cast<std::uint32_t>((facts.voxels[i].at[a] - std::int64_t{least[a]}) / step);
    auto& [neighbours, voxels] = drawn[key];
    neighbours += facts.neighbours[i];
    ++voxels;
  }
  std::vector<std::uint32_t> keys;
  std::vector<std::uint8_t> shades;
  for (const auto& [key, sums] : drawn) {
    keys.push_back(key);
    // Few surfaces have more than 18 of 27.
    shades.push_back(static_cast<std::uint8_t>(
        std::min(255.0, (static_cast<double>(sums.first) / sums.second - 1) * 255 / 17)));
  }
  roost::tools::picture_options look;
  look.side = options.pixels;
  look.up = roost::tools::axis::z;
  look.turn = options.turn, look.look_down = options.look_down;
  look.shades = shades;
  write_png(draw_voxels(cpu, keys, look), options.picture);
}

/// What a row of a measurement is, for people.
std::string title_of(const row& r) {
  const std::map<std::string, std::string> names{
      {"coordinate_index", "coordinate_index"},    {"kernel_map", "kernel_map"},
      {"document_table", "table of the document"}, {"sorted_voxels", "sorted list, binary search"},
      {"std_voxels", "std::unordered_map"},        {"sparse_conv", "layer"}};
  const std::string what = r.op == "build"       ? "built"
                           : r.op == "map"       ? "27 neighbours"
                           : r.op == "index_map" ? "index and 27 neighbours"
                                                 : r.op;
  return fmt::format("{}: {}", names.at(r.table), what);
}

void print_table(const cloud_facts& facts, const lidar_options& options) {
  fmt::print("{}: {} points, {} not finite, {} beyond --within\n", facts.name, facts.points, facts.not_finite,
             facts.beyond);
  fmt::print("{} voxels of {} m in a box of {} x {} x {}\n", facts.voxels.size(), options.size, facts.box[0],
             facts.box[1], facts.box[2]);
  fmt::print("{} blocks of 4 x 4 x 4 have {:.2f} voxels each; an index keeps {}\n", facts.blocks,
             facts.voxels_of_block, facts.representation);
  fmt::print("{:.2f} of the 27 voxels around each are there\n", facts.neighbours_of_27);
  if (facts.times.empty()) return;
  fmt::print("\n{:<45} {:<8} {:>10} {:>9}  {}\n", "", "place", "ms", "M/s", "check");
  for (const row& r : facts.times) {
    if (r.table == "sparse_conv") {
      fmt::print("{:<45} {:<8} {:>10.3f} {:>9}  {}, {:.1f} GFLOP/s\n", title_of(r), r.place, r.median_ms,
                 fmt::format("{:.2f}", static_cast<double>(r.n) / r.median_ms / 1000), r.check, r.gops);
    } else {
      fmt::print("{:<45} {:<8} {:>10.3f} {:>9.2f}  {}\n", title_of(r), r.place, r.median_ms,
                 static_cast<double>(r.n) / r.median_ms / 1000, r.check);
    }
  }
}

void print_json(const cloud_facts& facts, const lidar_options& options) {
  std::vector<std::size_t> of_neighbours(27);
  for (const auto each : facts.neighbours) ++of_neighbours[each - 1u];
  json out{{"cloud", facts.name},
           {"points", facts.points},
           {"not_finite", facts.not_finite},
           {"beyond", facts.beyond},
           {"size", options.size},
           {"voxels", facts.voxels.size()},
           {"box", facts.box},
           {"blocks", facts.blocks},
           {"voxels_of_block", facts.voxels_of_block},
           {"representation", facts.representation},
           {"neighbours_of_27", facts.neighbours_of_27},
           {"voxels_with_neighbours", of_neighbours},
           {"times", json::array()}};
  for (const row& r : facts.times) {
    out["times"].push_back({{"table", r.table},
                            {"op", r.op},
                            {"place", r.place},
                            {"milliseconds", std::round(r.median_ms * 1e4) / 1e4},
                            {"gops", r.gops},
                            {"check", r.check}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
}

void lidar(lidar_options& options) {
  if (options.file.empty() == (options.sweeps == 0))
    throw roost::invalid_argument("lidar: name a file of points, or give --generate SWEEPS, not both");
  const std::string place = roost::choose_place(options.place);
  const roost::host cpu(options.threads);
  cloud_facts facts;
  facts.name = options.sweeps == 0 ? options.file : fmt::format("street, {} sweeps", options.sweeps);
  {
    const point_cloud cloud = read_points(options);
    facts.points = cloud.points.size() + cloud.not_finite;
    facts.not_finite = cloud.not_finite;
    look_at(cpu, voxels_of(cloud, options, facts), facts);
  }
  bool all_right = true;
  if (options.repetitions != 0) {
    options.tables = {"coordinate_index", "kernel_map", "document_table",
                      "sorted_voxels",    "std_voxels", "sparse_conv"};
    options.ops = {"build", "map", "index_map", "conv"};
    options.report = [&](const row& r) {
      if (r.op == "build_input") return;
      facts.times.push_back(r);
      all_right = all_right && r.check == "ok";
    };
    place == "cuda" ? roost::bench::measure_voxels_cuda(options, facts.name, facts.voxels)
                    : roost::bench::measure_voxels_host(options, facts.name, facts.voxels);
  }
  if (!options.picture.empty()) draw(cpu, facts, options);
  options.format == "json" ? print_json(facts, options) : print_table(facts, options);
  if (!all_right) throw CLI::RuntimeError("lidar: answers were wrong", 2);
}

}  // namespace

#if !ROOST_WITH_CUDA
void roost::bench::measure_voxels_cuda(const settings&, const std::string&,
                                       const std::vector<coordinate<3>>&) {}
#endif

void add_lidar(CLI::App& app) {
  auto options = std::make_shared<lidar_options>();
  CLI::App* const command = app.add_subcommand(
      "lidar", "Turns a cloud of points into voxels, finds their neighbours, and compares tables");
  command->add_option("file", options->file,
                      "Points: PLY, PCD, NPY, BIN (KITTI), or rows of numbers x, y, z; - is standard input");
  command
      ->add_option("--generate", options->sweeps,
                   "Instead of a file: so many turns of a simulated scanner that drives along a street")
      ->check(CLI::Range(1, 1000))
      ->option_text("SWEEPS");
  command->add_option("--size", options->size, "Side of a voxel, in the unit of the points")
      ->check(CLI::Range(1e-9, 1e9))
      ->capture_default_str();
  command->add_option("--within", options->within, "Leaves out points that are farther from (0, 0, 0)")
      ->check(CLI::Range(1e-9, 1e9));
  roost::add_place_options(*command, options->place, options->threads);
  command->add_option("--reps", options->repetitions, "Number of timed runs; the median is reported; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      ->add_option("--channels", options->channels, "Channels of the layer, on the host; separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option(
      "--picture", options->picture,
      "Draws the voxels into this PNG file: dark blue has few neighbours, yellow has 18 or more");
  command->add_option("--turn", options->turn, "Angle of the picture's camera around the cloud, in degrees")
      ->capture_default_str();
  command->add_option("--look-down", options->look_down, "Its angle above the ground, in degrees")
      ->check(CLI::Range(-89, 89))
      ->capture_default_str();
  command->add_option("--pixels", options->pixels, "Side of the picture")
      ->check(CLI::Range(16, 8192))
      ->capture_default_str();
  command->add_option("--format", options->format, "Format of the report")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  roost lidar scan.bin --size 0.05 --within 50 --picture scan.png\n"
      "  roost lidar --generate 10 --format json");
  command->callback([options] { lidar(*options); });
}
