#include "voxels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>

#include "apps/shared/output_file.hpp"
#include "apps/shared/picture.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/plot_script.hpp"
#include "mesh.hpp"
#include "solids.hpp"
#include "voxelize.hpp"
#include "voxels_measure.hpp"

namespace {

using roost::tools::finest_grid;
using roost::tools::voxel_times;

/// The options of a measurement are among those of solids.
struct voxels_options : roost::tools::solids_options {
  bool sweep = false;

  /// The finest grid of a measurement.
  std::uint64_t finest() const { return grid.value_or(finest_grid); }
};

/// Prints measurements at once, and keeps them as CSV: the columns of `roost bench`, and the grid.
class report {
 public:
  explicit report(bool as_csv) : as_csv_(as_csv) {
    csv_ =
        "table,key_bits,value_bits,op,n,load_factor,median_ms,gops,check,hit_rate,bytes,scratch_"
        "bytes,place,grid\n";
    if (as_csv_) {
      fmt::print("{}", csv_);
    } else {
      fmt::print("{:>5} {:>9}  {:<18} {:<8} {:>9} {:>10} {:>9}  {:>9} {:>11} {:>10} {:>8}  {}\n", "grid",
                 "voxels", "table", "place", "build ms", "present ms", "absent ms", "build M/s",
                 "present M/s", "absent M/s", "MiB", "check");
    }
    std::fflush(stdout);
  }

  void add(std::uint64_t grid, const voxel_times& t) {
    const auto check = t.wrong == 0 ? "ok" : fmt::format("{} wrong", t.wrong);
    // Millions per second.
    const auto rate = [&](double ms) { return static_cast<double>(t.n) / ms / 1000; };
    std::string lines;
    const auto add_line = [&](std::string_view op, double ms, double hit_rate) {
      lines += fmt::format("{},32,32,{},{},{:.4f},{:.4f},{:.4f},{},{},{},{},{},{}\n", t.table, op, t.n,
                           t.load_factor, ms, rate(ms) / 1000, check, hit_rate, t.bytes, t.scratch_bytes,
                           t.place, grid);
    };
    add_line("build", t.build, 0);
    add_line("find_hit", t.find_present, 1);
    add_line("find_miss", t.find_absent, 0);
    csv_ += lines;
    if (as_csv_) {
      fmt::print("{}", lines);
    } else {
      fmt::print(
          "{:>5} {:>9}  {:<18} {:<8} {:>9.3f} {:>10.3f} {:>9.3f}  {:>9.1f} {:>11.1f} {:>10.1f} "
          "{:>8}  {}\n",
          grid, t.n, t.table, t.place, t.build, t.find_present, t.find_absent, rate(t.build),
          rate(t.find_present), rate(t.find_absent),
          t.bytes == 0 ? "?" : fmt::format("{:.1f}", static_cast<double>(t.bytes) / (1 << 20)), check);
    }
    std::fflush(stdout);
    wrong_ += t.wrong;
  }

  /// A remark for people: printed with a table, not with CSV.
  template <class... Arguments>
  void note(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    fmt::print(as_csv_ ? stderr : stdout, "{}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
    std::fflush(stdout);
  }

  const std::string& csv() const { return csv_; }
  std::size_t wrong() const { return wrong_; }

 private:
  bool as_csv_;
  std::string csv_;
  std::size_t wrong_ = 0;
};

/// As many keys of absent voxels as there are voxels, in random order. If a grid has no empty voxels, they
/// are outside the grid.
std::vector<std::uint32_t> absent_keys(const roost::host& cpu, std::span<const std::uint32_t> voxels,
                                       std::uint64_t grid) {
  const auto number = [&](std::uint32_t key) {  // of a voxel in the order of keys
    const auto v = roost::tools::voxel_of(key);
    return (v.x * grid + v.y) * grid + v.z;
  };
  const auto empty = grid * grid * grid - voxels.size();
  std::vector<std::uint32_t> result(voxels.size());
  cpu.for_each(result.size(), [&](std::size_t i) {
    if (empty == 0) {
      result[i] = voxels[i] | 1u << 30;
      return;
    }
    // The empty voxel of this rank among the empty ones. It comes after all voxels with at most `rank` empty
    // ones before them.
    const auto rank = roost::mix64(i + 1) % empty;
    std::size_t first = 0, last = voxels.size();
    while (first < last) {
      const auto middle = (first + last) / 2;
      if (number(voxels[middle]) - middle <= rank) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    const auto found = rank + first;
    const auto at = [&](std::uint64_t n) { return static_cast<std::uint32_t>(n % grid); };
    result[i] = key_of(roost::tools::voxel{at(found / grid / grid), at(found / grid), at(found)});
  });
  return result;
}

/// Measures all tables with the voxels of one grid.
void measure(const roost::host& cpu, std::span<const std::uint32_t> voxels, std::uint64_t grid,
             const std::string& place, const voxels_options& options, report& out) {
  std::mt19937_64 random(grid);
  std::vector<std::uint32_t> built(voxels.begin(), voxels.end()), present = built;
  std::shuffle(built.begin(), built.end(), random);
  std::shuffle(present.begin(), present.end(), random);
  const auto absent = absent_keys(cpu, voxels, grid);
  const roost::tools::voxel_keys keys{built, present, absent};
  const roost::tools::voxel_run run{options.threads, options.repetitions.value_or(5),
                                    [&](const voxel_times& t) { out.add(grid, t); }};
  place == "cuda" ? measure_on_cuda(keys, run) : measure_on_host(keys, run);
  measure_std(keys, run);
}

void expect_measurable(const voxels_options& options) {
  const auto finest = options.finest();
  if (finest == 0 || finest > finest_grid) {
    throw roost::invalid_argument(
        fmt::format("voxels: a grid of {} voxels a side; give --grid 1 to {}", finest, finest_grid));
  }
  if (!(std::abs(options.turn) <= 360)) {
    throw roost::invalid_argument(
        fmt::format("voxels: a turn of {} degrees; give --turn -360 to 360", options.turn));
  }
}

/// The CSV, and a plot of it.
void write_times(const std::string& csv, const std::string& plot, const report& out) {
  roost::tools::output_file table(csv);
  table.write(out.csv());
  table.finish();
  out.note("times:  {}", csv);
  if (run_plot({csv, plot})) {
    out.note("plot:   {}", plot);
  } else {
    const auto script = script_path("plot");
    out.note("plot:   not drawn; draw it by: {} {} {}", script.empty() ? "scripts/plot" : script, csv, plot);
  }
}

void measure_tables_of(const voxels_options& options) {
  expect_measurable(options);
  const auto finest = options.finest();
  const auto picture = options.out / "voxels.png", csv = options.out / "voxels.csv",
             times = options.out / "voxels-time.png";
  std::vector<std::string> outputs;
  if (!options.no_picture) outputs.push_back(picture.string());
  if (options.sweep) outputs.insert(outputs.end(), {csv.string(), times.string()});
  roost::tools::expect_other_files(outputs, roost::tools::files_of_meshes(options));
  const auto place = roost::choose_place(options.place);
  auto all = roost::tools::read_meshes(options);
  std::ranges::copy(remarks_on_precision(all, frame_around(all.box, static_cast<std::uint32_t>(finest))),
                    std::back_inserter(all.notes));
  for (const auto& line : all.notes) fmt::print(stderr, "{}\n", line);
  const auto mesh = std::move(all.meshes.front());
  roost::tools::make_folder(options.out);

  const roost::host cpu(options.threads);
  std::vector<std::uint64_t> grids;
  if (options.sweep) {
    for (std::uint64_t grid = 32; grid < finest; grid *= 2) grids.push_back(grid);
  }
  grids.push_back(finest);

  report out(options.format == "csv");
  const auto scene = roost::tools::make_scene(place, options.threads);
  std::vector<std::uint32_t> keys;
  double milliseconds = 0;
  for (const auto grid : grids) {
    const auto start = std::chrono::steady_clock::now();
    keys = voxelize(*scene, mesh, grid);
    milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    measure(cpu, keys, grid, place, options, out);
  }

  const auto cells = static_cast<double>(finest * finest * finest);
  out.note("");
  out.note("{}: {} triangles touch {} voxels, {:.3g} % of the grid of {}^3 (found in {:.0f} ms)",
           options.meshes.front(), mesh.triangles.size(), keys.size(),
           100 * static_cast<double>(keys.size()) / cells, finest, milliseconds);
  if (out.wrong() == 0) out.note("every voxel was found, and none that is not there");

  if (!options.no_picture) {
    roost::tools::picture_options view;
    view.up = static_cast<roost::tools::axis>(options.up.back() - 'x');
    view.upside_down = options.up.front() == '-';
    view.turn = options.turn;
    write_png(draw_voxels(cpu, keys, view), picture);
    out.note("voxels: {}", picture.string());
  }
  if (options.sweep) write_times(csv.string(), times.string(), out);
  if (out.wrong() != 0) {
    throw CLI::RuntimeError(fmt::format("voxels: {} answers were wrong", out.wrong()), 2);
  }
}

/// Options: which meshes are read, and what is always done with them.
void add_usual_options(CLI::App* command, voxels_options& options) {
  command
      ->add_option(
          "meshes", options.meshes,
          "Mesh files: OBJ, PLY, STL, glTF, 3MF ...; or box, sphere, torus, sphere:N, torus:N with N faces "
          "around, which are as large as the first mesh and where it is")
      ->required()
      ->expected(1, 26);
  command->add_option("--grid", options.grid,
                      "Voxels per side of the grid, 1 to 1024 (1024); of solids 1 to 4096 (256)");
  roost::add_place_options(*command, options.place, options.threads);
  command
      ->add_option("--reps", options.repetitions,
                   "Number of timed runs; the median is reported (5; of solids fewer if they take 2 seconds)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--out", options.out, "Directory for the pictures and the CSV")->capture_default_str();
  command
      ->add_option("--format", options.format, "Format of the report; json: of solids; csv: of a measurement")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  command
      ->add_option("--up", options.up,
                   "Axis of the mesh that points up in the picture; --up=-z for the negative axis")
      ->check(CLI::IsMember({"x", "y", "z", "-x", "-y", "-z"}))
      ->capture_default_str();
  command->add_option("--turn", options.turn, "Angle of the camera around the mesh, in degrees")
      ->capture_default_str();
  command->add_flag("--no-picture", options.no_picture,
                    "Draws no picture, which takes longer than the voxels of a small mesh");
  command
      ->add_flag(
          "--sweep", options.sweep,
          "Measures grids of 32, 64, 128 ... up to --grid; writes a CSV and a plot of time against voxels")
      ->group("Measuring tables");
}

constexpr const char* solids_group = "Solids";

void add_placements(CLI::App* command, voxels_options& options) {
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const auto number = static_cast<std::size_t>(letter - 'a');
    command
        ->add_option_function<std::string>(
            fmt::format("--place-{}", letter),
            [&options, number](const std::string& words) {
              options.placements.resize(std::max(options.placements.size(), number + 1));
              options.placements[number] = words;
            },
            letter == 'a'
                ? "How the first mesh lies, --place-b the second, and so on: 'rotate X Y Z DEGREES', 'move "
                  "X Y Z' and 'scale S', from left to right; moves in units of the first mesh's longest "
                  "side, turns and sizes about the mesh's own centre"
                : "")
        ->group(letter == 'a' ? solids_group : "");
  }
}

/// Options: how solids are made from meshes.
void add_solid_options(CLI::App* command, voxels_options& options) {
  command->add_option("--op", options.op, "What is made of several meshes, one after the other")
      ->check(CLI::IsMember({"union", "intersection", "difference", "xor", "surfaces"}))
      ->capture_default_str()
      ->group(solids_group);
  add_placements(command, options);
  command
      ->add_flag("--fit", options.fit,
                 "Brings the other meshes to the centre and the size of the first, before "
                 "they are placed")
      ->group(solids_group);
  command
      ->add_option(
          "--inside", options.inside,
          "What is inside of a mesh. columns: what its surface goes around. parity: what is below an odd "
          "number of crossings. vote: what two of three axes say, for open meshes. fill: columns, and the "
          "surfaces of two meshes by the method of Alcantara et al. 2009")
      ->check(CLI::IsMember({"columns", "parity", "vote", "fill"}))
      ->capture_default_str()
      ->group(solids_group);
  command
      ->add_flag(
          "--conservative", options.conservative,
          "Surface voxels are all that a mesh touches, not only those that separate inside from outside")
      ->group(solids_group);
  command
      ->add_flag("--baseline", options.baseline,
                 "Makes the same in a grid of bits (with --inside parity), and measures that")
      ->group(solids_group);
}

/// Options: outputs for solids.
void add_solid_outputs(CLI::App* command, voxels_options& options) {
  auto* const exports =
      command
          ->add_option("--export", options.exports,
                       "Writes the result as NAME.ply (a mesh of its voxels' sides), NAME.obj, NAME.stl or "
                       "NAME.glb (a smooth mesh), NAME.points.ply, NAME.binvox, NAME.vox "
                       "(MagicaVoxel), NAME.vdb (OpenVDB), or as PNG slices into a folder NAME/")
          ->group(solids_group);
  command
      ->add_option(
          "--surface", options.surface,
          "Exported meshes. smooth: closed, without steps. sides: the sides of voxels (smooth; of .ply "
          "sides)")
      ->check(CLI::IsMember({"smooth", "sides"}))
      ->needs(exports)
      ->group(solids_group);
  command
      ->add_option(
          "--frames", options.frames,
          "Computes this many frames, in which the first mesh rotates and the others circle it, from "
          "triangles to classes and voxels that can be seen; reports their times, and draws "
          "frames.png. A mesh that is a folder of files goes through them instead, one a frame")
      ->check(CLI::Range(1, 10000))
      ->group(solids_group);
  command
      ->add_option_function<std::string>(  // for numbers, CLI11 gives 0 if there is none
          "--serve",
          [&options](const std::string& port) { options.serve = port.empty() ? 8421 : std::stoi(port); },
          "Shows the solids in a browser, in which they are combined and moved: a server for this machine "
          "alone, at port PORT (8421; 0: any that is free), until Ctrl-C")
      ->expected(0, 1)
      ->type_name("[PORT]")
      ->check(CLI::Range(0, 65535))
      ->group(solids_group);
}

}  // namespace

#if !ROOST_WITH_CUDA
// Never called.
void roost::tools::measure_on_cuda(const voxel_keys&, const voxel_run&) {}
std::unique_ptr<roost::tools::scene> roost::tools::make_cuda_scene() { return {}; }
#endif

void add_voxels(CLI::App& app) {
  auto options = std::make_shared<voxels_options>();
  CLI::App* const command = app.add_subcommand(
      "voxels",
      "Turns meshes into voxels. One mesh: measures tables with its voxels as keys, and draws them. Several: "
      "combines them as solids. An option for solids treats one mesh as a solid, too");
  add_usual_options(command, *options);
  add_solid_options(command, *options);
  add_solid_outputs(command, *options);
  command->footer(
      "Examples:\n"
      "  roost voxels bunny.obj --grid 256 --up z --out pictures\n"
      "  roost voxels bunny.obj sphere --op difference --place-b 'move 0.3 0 0' --export cut.ply");
  command->callback([options, command] {
    const auto given = [&](const char* option) { return command->count(option) != 0; };
    const bool solid = options->meshes.size() > 1 || options->format == "json" ||
                       !options->placements.empty() || given("--op") || given("--fit") || given("--inside") ||
                       given("--conservative") || given("--baseline") || given("--export") ||
                       given("--serve") || given("--frames");
    if (solid && options->sweep)
      throw roost::invalid_argument(
          "voxels: --sweep measures tables with one mesh; leave the options of solids out");
    solid ? run_solids(*options) : measure_tables_of(*options);
  });
}
