#include "lidar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <roost/sparse/kernel_map.hpp>

#include "apps/measure/clouds.hpp"
#include "apps/measure/run.hpp"
#include "apps/shared/numbers.hpp"
#include "apps/shared/output_file.hpp"
#include "apps/shared/picture.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/text_file.hpp"
#include "cloud_output.hpp"
#include "point_cloud.hpp"

namespace {

using json = nlohmann::ordered_json;
using roost::bench::row;
using roost::tools::point_cloud;

constexpr double exact_voxels = 0x1p50;  // below it, numbers of voxels are wrong by a quarter at most

struct lidar_options : roost::bench::settings {
  std::string file;
  unsigned record = 0;
  int sweeps = 0;
  double size = 0.1, within = 0;
  std::string place = "auto", format = "table", picture, output, labels, shift = "none";
  double turn = 30, look_down = 35;
  int pixels = 1200;
};

/// The facts about the voxels of a cloud.
struct cloud_facts {
  std::string name, read_as;
  std::size_t points = 0, not_finite = 0, beyond = 0;
  std::array<double, 3> least{}, greatest{};  ///< coordinates of the points that are used
  std::array<double, 3> corner{};             ///< of the box of voxels: its least coordinates
  std::array<double, 3> shift{};              ///< added to coordinates that are written
  std::vector<roost::coordinate<3>> voxels;   ///< distinct, in the order of the input, moved near 0
  std::vector<std::uint8_t> neighbours;       ///< of each voxel, out of 27
  std::vector<std::uint32_t> voxel_of_point;  ///< of the points that are used
  std::vector<std::uint64_t> rows;            ///< of these points in the file
  std::int64_t box[3] = {};
  std::size_t blocks = 0;
  double voxels_of_block = 0, neighbours_of_27 = 0;
  const char* representation = "";
  std::vector<row> times;
};

point_cloud read_points(const lidar_options& options) {
  if (options.sweeps == 0) return roost::tools::read_point_cloud(options.file, options.record);
  point_cloud cloud;
  cloud.read_as = "simulated";
  roost::bench::street_scanner scanner;
  for (int i = 0; i < options.sweeps; ++i) {
    scanner.sweep(i, [&](const roost::bench::scanned_point& p) {
      cloud.points.push_back({double{p.x}, double{p.y}, double{p.z}});
    });
  }
  return cloud;
}

/// The extent of the points, and the corner of the voxels that hold them.
void measure(const point_cloud& cloud, const lidar_options& options, cloud_facts& facts) {
  facts.least.fill(std::numeric_limits<double>::infinity());
  facts.greatest.fill(-std::numeric_limits<double>::infinity());
  for (const auto& p : cloud.points) {
    const double at[3] = {p.x, p.y, p.z};
    for (std::size_t a = 0; a < 3; ++a) {
      facts.least[a] = std::min(facts.least[a], at[a]);
      facts.greatest[a] = std::max(facts.greatest[a], at[a]);
    }
  }
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1024;
  float farthest = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    const double from = std::floor(facts.least[a] / options.size),
                 to = std::floor(facts.greatest[a] / options.size);
    farthest =
        std::max({farthest, static_cast<float>(-facts.least[a]), static_cast<float>(facts.greatest[a])});
    if (!(std::abs(from) < exact_voxels && std::abs(to) < exact_voxels)) {
      throw roost::invalid_argument(fmt::format(
          "{}: doubles are too coarse for voxels of {} between {} and {}; give a larger --size, or "
          "move the cloud nearer to 0",
          facts.name, options.size, facts.least[a], facts.greatest[a]));
    }
    facts.corner[a] = from * options.size;
    facts.box[a] = static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from) + 1;
    if (facts.box[a] > most) {
      throw roost::invalid_argument(
          fmt::format("{}: the points between {} and {} span {} voxels of {}; the limit is 2^31; give a "
                      "larger --size, or --within",
                      facts.name, facts.least[a], facts.greatest[a], facts.box[a], options.size));
    }
  }
  const double apart = double{std::nextafter(farthest, std::numeric_limits<float>::infinity())} - farthest;
  if (cloud.single && apart > options.size / 10) {
    fmt::print(stderr,
               "roost: {}: floats of 32 bits are {} apart where the points are farthest from 0, too much for "
               "voxels of {}; write doubles, or move the cloud nearer to 0 before it is written\n",
               facts.name, apart, options.size);
  }
}

/// The voxels that hold points. Their numbers have 64 bits; relative to the middle of their box, 32 bits are
/// enough.
std::vector<roost::coordinate<3>> voxels_of(point_cloud& cloud, const lidar_options& options,
                                            cloud_facts& facts) {
  std::size_t kept = 0;
  auto left_out = cloud.not_finite.begin();
  for (std::uint64_t row = 0, i = 0; i < cloud.points.size(); ++row) {
    if (left_out != cloud.not_finite.end() && *left_out == row) {
      ++left_out;
      continue;
    }
    const auto p = cloud.points[i++];
    if (options.within > 0 && std::hypot(p.x, p.y, p.z) > options.within) continue;
    cloud.points[kept++] = p;
    facts.rows.push_back(row);
  }
  facts.beyond = cloud.points.size() - kept;
  cloud.points.resize(kept);
  if (options.within > 0) {
    if (cloud.points.empty()) {
      throw roost::invalid_argument(
          fmt::format("{}: no point is within {} of (0, 0, 0); give more", facts.name, options.within));
    }
  }
  measure(cloud, options, facts);
  constexpr std::int64_t step = 64;  // so that blocks stay the same
  std::array<std::int64_t, 3> middle{};
  for (std::size_t a = 0; a < 3; ++a) {
    const auto from = static_cast<std::int64_t>(std::floor(facts.least[a] / options.size));
    middle[a] = (from + facts.box[a] / 2) / step * step;
  }
  std::vector<roost::coordinate<3>> result;
  result.reserve(cloud.points.size());
  for (const auto& p : cloud.points) {
    const double at[3] = {p.x, p.y, p.z};
    roost::coordinate<3> c{};
    for (std::size_t a = 0; a < 3; ++a) {
      const auto voxel = static_cast<std::int64_t>(std::floor(at[a] / options.size));
      c.at[a] = static_cast<std::int32_t>(voxel - middle[a]);
    }
    result.push_back(c);
  }
  return result;
}

void look_at(const roost::host& cpu, const std::vector<roost::coordinate<3>>& all, cloud_facts& facts) try {
  using index_type = roost::coordinate_index<3>;
  const index_type index(cpu, all, {.order = roost::order::input}),
      blocks(cpu, all, {.representation = roost::representation::blocks, .rows_of_input = false});
  facts.voxels.assign(index.begin(), index.end());
  facts.voxel_of_point.assign(index.rows_of_input().begin(), index.rows_of_input().end());
  facts.representation =
      index.statistics().representation == roost::representation::blocks ? "blocks" : "points";
  facts.blocks = blocks.statistics().blocks;
  facts.voxels_of_block = blocks.statistics().occupancy();
  const auto map = roost::submanifold(cpu, index);
  std::size_t sum = 0;
  for (const std::uint32_t mask : map.masks()) {
    facts.neighbours.push_back(static_cast<std::uint8_t>(std::popcount(mask)));
    sum += facts.neighbours.back();
  }
  facts.neighbours_of_27 = static_cast<double>(sum) / static_cast<double>(index.size());
} catch (const roost::invalid_argument&) {
  throw roost::invalid_argument(
      fmt::format("{}: a box of {} x {} x {} voxels is too wide; give a larger --size, or --within",
                  facts.name, facts.box[0], facts.box[1], facts.box[2]));
}

/// The value of `--shift`: `none`, `auto` or X,Y,Z; nothing for any other word.
std::optional<std::array<double, 3>> shift_in(std::string_view word) {
  std::array<double, 3> shift{};
  if (word == "none" || word == "auto") return shift;
  for (std::size_t a = 0; a < 3; ++a) {
    const auto end = word.find(',');
    const auto number = roost::tools::number_of(word.substr(0, end));
    if (!number || !std::isfinite(*number) || (end == word.npos) != (a == 2)) return {};
    shift[a] = *number;
    if (a < 2) word.remove_prefix(end + 1);
  }
  return shift;
}

/// A multiple of 1000, on axes where floats of 32 bits are coarser than a thousandth.
double automatic_shift(double least, double greatest) {
  constexpr double far = 10'000;
  if (std::max(std::abs(least), std::abs(greatest)) < far) return 0;
  return 0.0 - std::round((least / 2 + greatest / 2) / 1000) * 1000;
}

std::array<double, 3> choose_shift(const lidar_options& options, const cloud_facts& facts) {
  auto shift = shift_in(options.shift).value();
  for (std::size_t a = 0; a < 3; ++a) {
    if (options.shift == "auto") shift[a] = automatic_shift(facts.least[a], facts.greatest[a]);
    const double farthest =
        std::max(std::abs(facts.least[a] + shift[a]), std::abs(facts.greatest[a] + shift[a]));
    if (farthest / options.size < exact_voxels) continue;
    throw roost::invalid_argument(fmt::format(
        "{}: doubles are too coarse for voxels of {} where --shift {} moves them; give a smaller one",
        facts.name, options.size, options.shift));
  }
  return shift;
}

/// Writes the mean of the points of each voxel, and the voxel of each point of the file.
void write_found(const point_cloud& cloud, const cloud_facts& facts, const lidar_options& options) {
  std::vector<roost::tools::voxel_of_points> voxels(facts.voxels.size());
  std::vector<std::int64_t> labels(facts.points, -1);
  // Points are summed relative to the corners of their voxels, which loses nothing far from 0.
  const auto corner = [&](double at) { return std::floor(at / options.size) * options.size; };
  for (std::size_t i = 0; i < cloud.points.size(); ++i) {
    const auto& p = cloud.points[i];
    auto& voxel = voxels[facts.voxel_of_point[i]];
    voxel.x += p.x - corner(p.x), voxel.y += p.y - corner(p.y), voxel.z += p.z - corner(p.z);
    ++voxel.points;
    labels[facts.rows[i]] = facts.voxel_of_point[i];
  }
  std::vector<std::uint8_t> done(voxels.size());
  for (std::size_t i = 0; i < cloud.points.size(); ++i) {
    const auto& p = cloud.points[i];
    const auto row = facts.voxel_of_point[i];
    if (std::exchange(done[row], 1) != 0) continue;
    auto& voxel = voxels[row];
    voxel.x = (corner(p.x) + facts.shift[0]) + voxel.x / voxel.points;
    voxel.y = (corner(p.y) + facts.shift[1]) + voxel.y / voxel.points;
    voxel.z = (corner(p.z) + facts.shift[2]) + voxel.z / voxel.points;
    voxel.neighbours = facts.neighbours[row];
  }
  if (!options.output.empty())
    roost::tools::write_voxels(options.output, {voxels, labels, facts.shift, options.size});
  if (!options.labels.empty()) roost::tools::write_labels(options.labels, labels);
}

/// A voxel of the picture is a cube of voxels, large enough that the longest side has at most 1024, coloured
/// by the mean number of their neighbours.
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

/// The title of a row of a measurement, for people.
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
  fmt::print("read as {}: x from {} to {}, y from {} to {}, z from {} to {}\n", facts.read_as, facts.least[0],
             facts.greatest[0], facts.least[1], facts.greatest[1], facts.least[2], facts.greatest[2]);
  fmt::print("{} voxels of side {} in a box of {} x {} x {} with its corner at ({:.12g}, {:.12g}, {:.12g})\n",
             facts.voxels.size(), options.size, facts.box[0], facts.box[1], facts.box[2], facts.corner[0],
             facts.corner[1], facts.corner[2]);
  if (options.shift != "none") {
    fmt::print("({}, {}, {}) is added to the coordinates of --output\n", facts.shift[0], facts.shift[1],
               facts.shift[2]);
  }
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
           {"read_as", facts.read_as},
           {"least", facts.least},
           {"greatest", facts.greatest},
           {"size", options.size},
           {"corner", facts.corner},
           {"shift", facts.shift},
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

/// Like CLI::Range, which accepts NaN.
CLI::Validator between(double least, double most) {
  const auto range = fmt::format("[{} - {}]", least, most);
  return {[=](std::string& word) {
            double value = 0;
            const bool inside = CLI::detail::lexical_cast(word, value) && value >= least && value <= most;
            return inside ? std::string() : fmt::format("Value {} not in range {}", word, range);
          },
          "FLOAT in " + range};
}

void lidar(lidar_options& options) {
  if (options.file.empty() == (options.sweeps == 0))
    throw roost::invalid_argument("lidar: name a file of points, or give --generate SWEEPS, not both");
  roost::tools::expect_other_files({options.picture, options.output, options.labels}, {options.file});
  roost::tools::expect_different_files({options.picture, options.output, options.labels});
  if (const auto ending = std::filesystem::path(options.picture).extension();
      !ending.empty() && ending != ".png")
    throw roost::invalid_argument(fmt::format(
        "lidar: --picture {}: the picture is a PNG file; give a name that ends in .png", options.picture));
  const std::string place = roost::choose_place(options.place);
  const roost::host cpu(options.threads);
  cloud_facts facts;
  facts.name = options.sweeps == 0 ? options.file : fmt::format("street, {} sweeps", options.sweeps);
  {
    point_cloud cloud = read_points(options);
    facts.points = cloud.points.size() + cloud.not_finite.size();
    facts.not_finite = cloud.not_finite.size();
    facts.read_as = cloud.read_as;
    look_at(cpu, voxels_of(cloud, options, facts), facts);
    facts.shift = choose_shift(options, facts);
    write_found(cloud, facts, options);
  }
  bool all_right = true;
  constexpr std::int64_t widest = (1 << 21) - 256;  // keys have 64 bits, 21 for each axis
  const bool comparable = std::ranges::max(facts.box) <= widest;
  if (!comparable && options.repetitions != 0) {
    fmt::print(stderr,
               "roost: {}: the box is too wide for the other tables (2^21 voxels); nothing is timed\n",
               facts.name);
  }
  if (options.repetitions != 0 && comparable) {
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

/// The options that name files to write.
void add_outputs(CLI::App& command, lidar_options& options) {
  const auto file_of = [](const char* endings) {
    return CLI::Validator(
        [endings](std::string& name) {
          const auto ending = roost::tools::cloud_ending(name);
          const bool is_known =
              !ending.empty() && std::string_view(endings).find(ending) != std::string_view::npos;
          return is_known ? std::string() : fmt::format("give a name that ends in {}", endings);
        },
        "FILE");
  };
  command
      .add_option(
          "-o,--output", options.output,
          "Writes the voxels: for each, the mean and the number of its points, and how many of its "
          "27 neighbours are present; as .ply, .csv or .npy, or with the labels of the points as arrays in "
          ".npz")
      ->check(file_of(".ply, .csv, .npy or .npz"));
  command
      .add_option("--labels", options.labels,
                  "Writes for each point of the file the number of its voxel in --output, -1 for none; as "
                  ".npy or .csv")
      ->check(file_of(".npy or .csv"));
  const auto is_shift = [](std::string& word) {
    return shift_in(word) ? std::string() : fmt::format("{} is neither auto, none nor X,Y,Z", word);
  };
  command
      .add_option(
          "--shift", options.shift,
          "Is added to the coordinates of --output, for programs that keep them as floats; auto: whole "
          "thousands that bring coordinates of 10000 and more near 0")
      ->check(CLI::Validator(is_shift, "auto, none or X,Y,Z"))
      ->capture_default_str();
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
  command->add_option(
      "file", options->file,
      "Points: PLY, PCD, LAS, NPY, BIN (KITTI), or rows of numbers x, y, z, also of gzip or Zstandard; - "
      "is standard input");
  command
      ->add_option("--record", options->record,
                   "The file has only records of this many little-endian 32-bit floats, the first "
                   "three of which are x, y and z; a KITTI scan (.bin) has 4, nuScenes' have 5")
      ->check(CLI::Range(3, 1024))
      ->option_text("FLOATS");
  command
      ->add_option("--generate", options->sweeps,
                   "Instead of a file: this many revolutions of a simulated scanner moving along a street")
      ->check(CLI::Range(1, 1000))
      ->option_text("SWEEPS");
  command->add_option("--size", options->size, "Side of a voxel, in the unit of the points")
      ->check(between(1e-9, 1e9))
      ->capture_default_str();
  command->add_option("--within", options->within, "Leaves out points that are farther from (0, 0, 0)")
      ->check(between(1e-9, 1e9));
  add_outputs(*command, *options);
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
      ->check(between(-3600, 3600))
      ->capture_default_str();
  command->add_option("--look-down", options->look_down, "Its angle above the ground, in degrees")
      ->check(between(-89, 89))
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
      "  roost lidar survey.las --size 0.25 --reps 0 --output fewer.ply\n"
      "  roost lidar --generate 10 --format json");
  command->callback([options] { lidar(*options); });
}
