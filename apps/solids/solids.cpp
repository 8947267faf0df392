#include "solids.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numbers>
#include <roost/error.hpp>
#include <roost/host.hpp>

#include "apps/shared/output_file.hpp"
#include "apps/shared/picture.hpp"
#include "apps/shared/place_choice.hpp"
#include "grid_choice.hpp"
#include "serve.hpp"
#include "shapes.hpp"
#include "voxel_files.hpp"

namespace roost::tools {
namespace {

using json = nlohmann::ordered_json;

/// What an operation is called in a formula.
std::string_view sign_of(const std::string& op) {
  return op == "union" ? " or " : op == "intersection" ? " and " : op == "difference" ? " - " : " xor ";
}

/// A, B, C ...
char letter(std::size_t i) { return static_cast<char>('A' + i); }

std::string formula(const solids_options& options) {
  if (options.meshes.size() == 1) return "A";
  if (options.op == "surfaces") return "surfaces";
  std::string result = "A";
  for (std::size_t i = 1; i < options.meshes.size(); ++i)
    result += fmt::format("{}{}", sign_of(options.op), letter(i));
  return result;
}

std::string text(const step_times& times) {
  std::string result;
  for (const auto& [step, ms] : times)
    result += fmt::format("{}{} {:.2f}", result.empty() ? "" : ", ", step, ms);
  return result;
}
double total(const step_times& times) {
  double sum = 0;
  for (const auto& [step, ms] : times) sum += ms;
  return sum;
}

json as_json(const step_times& times) {
  json result = json::object();
  for (const auto& [step, ms] : times) result[step] = std::round(ms * 1e4) / 1e4;
  return result;
}
json as_json(const class_counts& classes) {
  return {{"outside", classes.outside}, {"inside", classes.inside}, {"both", classes.both}};
}
json as_json(const solid_facts& facts) {
  return {{"voxels", facts.voxels},
          {"volume_voxels", facts.volume_voxels},
          {"exposed_voxels", facts.exposed},
          {"exposed_sides", facts.sides},
          {"surface_area", std::round(facts.area * 10) / 10},
          {"bytes", facts.bytes},
          {"milliseconds", as_json(facts.milliseconds)}};
}

/// All results, in the order in which they are reported.
struct findings {
  std::vector<mesh_faults> faults;
  std::vector<solid_facts> meshes;
  solid_facts result;
  std::optional<class_counts> classes;
  std::vector<class_counts> classes_of_meshes;
  std::optional<fill_facts> fill;
  std::optional<bit_grid_facts> bits;
  std::vector<std::string> warnings;
};

json as_json(const length_unit& unit) { return unit ? json(unit.name) : json(nullptr); }

void print_json(const solids_options& options, const placed_meshes& all, const frame& grid, const scene& on,
                const findings& found) {
  json out;
  out["grid"] = grid.side;
  out["voxel_side"] = grid.length / grid.side;
  out["unit"] = as_json(all.length);
  out["place"] = on.place_name();
  out["op"] = all.meshes.size() == 1 ? "none" : options.op;
  out["inside"] = options.inside;
  out["meshes"] = json::array();
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    json one{{"file", all.names[i]},
             {"unit", as_json(all.meshes[i].unit)},
             {"triangles", all.meshes[i].triangles.size()},
             {"open_edges", found.faults[i].open_edges},
             {"turned_edges", found.faults[i].turned_edges},
             {"clipped", reaches_out_of(grid, all.placed_boxes[i])}};
    one.update(as_json(found.meshes[i]));
    if (i < found.classes_of_meshes.size()) one["classes"] = as_json(found.classes_of_meshes[i]);
    out["meshes"].push_back(std::move(one));
  }
  out["result"] = as_json(found.result);
  if (found.classes) out["result"]["classes"] = out["classes"] = as_json(*found.classes);
  if (found.fill) {
    out["fill"] = {{"classes", as_json(found.fill->classes)},
                   {"unknown", found.fill->unknown},
                   {"different", found.fill->different},
                   {"seeds", found.fill->seeds},
                   {"cleared", found.fill->cleared},
                   {"rounds", found.fill->rounds},
                   {"bytes", found.fill->bytes},
                   {"milliseconds", as_json(found.fill->milliseconds)}};
  }
  if (found.bits) {
    out["bit_grid"] = {{"volume_voxels", found.bits->volume_voxels},
                       {"exposed_voxels", found.bits->exposed},
                       {"bytes", found.bits->bytes},
                       {"milliseconds", as_json(found.bits->milliseconds)}};
  }
  out["notes"] = found.warnings;
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
}

void print_table(const solids_options& options, const placed_meshes& all, const frame& grid,
                 const findings& found) {
  std::size_t width = 12;
  for (const auto& name : all.names) width = std::max(width, name.size() + 2);
  fmt::print("{:<{}} {:>10} {:>11} {:>14} {:>11} {:>13} {:>9} {:>9}\n", "", width, "triangles", "surface",
             "volume", "exposed", "area", "MiB", "ms");
  const auto row = [&](const std::string& name, const std::string& triangles, const solid_facts& facts) {
    fmt::print("{:<{}} {:>10} {:>11} {:>14} {:>11} {:>13.0f} {:>9.2f} {:>9.2f}\n", name, width, triangles,
               facts.voxels, facts.volume_voxels, facts.exposed, facts.area,
               static_cast<double>(facts.bytes) / (1 << 20), total(facts.milliseconds));
  };
  for (std::size_t i = 0; i < all.meshes.size(); ++i)
    row(fmt::format("{} {}", letter(i), all.names[i]), std::to_string(all.meshes[i].triangles.size()),
        found.meshes[i]);
  row(formula(options), "", found.result);
  fmt::print("surface, volume, exposed and area are counts of voxels; a voxel is {:.6g}{}{} wide\n",
             grid.length / grid.side, all.length ? " " : "", all.length.name);
  const auto classes = [](const char* what, const class_counts& n) {
    fmt::print("{}: {} voxels outside of the other solid, {} inside, {} on both surfaces\n", what, n.outside,
               n.inside, n.both);
  };
  if (found.classes) classes("both surfaces", *found.classes);
  if (found.fill) {
    const auto& f = *found.fill;
    classes("the same by filling", f.classes);
    fmt::print(
        "  {} voxels that no fill has reached, {} of which the columns say otherwise; {} seeds, {} cleared, "
        "{} "
        "rounds; {:.1f} MiB\n  ms: {}\n",
        f.unknown, f.different, f.seeds, f.cleared, f.rounds, static_cast<double>(f.bytes) / (1 << 20),
        text(f.milliseconds));
  }
  for (std::size_t i = 0; i < all.meshes.size(); ++i)
    fmt::print("ms of {}: {}\n", letter(i), text(found.meshes[i].milliseconds));
  fmt::print("ms of {}: {}\n", formula(options), text(found.result.milliseconds));
  if (found.bits) {
    fmt::print("the same in a grid of bits: {} voxels, {} exposed; {:.1f} MiB\n  ms: {}\n",
               found.bits->volume_voxels, found.bits->exposed,
               static_cast<double>(found.bits->bytes) / (1 << 20), text(found.bits->milliseconds));
  }
}

/// Words of at most 30 bits of position for a picture: coarser ones where the grid is finer.
std::vector<std::uint32_t> words_for_picture(scene& on, std::uint32_t grid, voxel_set which) {
  if (grid <= 1024) return on.voxels32(which);
  using wide = voxel_word<std::uint64_t>;
  using narrow = voxel_word<std::uint32_t>;
  const int shift = grid <= 2048 ? 1 : 2;
  std::vector<std::uint32_t> result;
  for (const auto word : on.voxels64(which)) {
    result.push_back(narrow::make(wide::coordinate(word, 0) >> shift, wide::coordinate(word, 1) >> shift,
                                  wide::coordinate(word, 2) >> shift, wide::class_of(word)));
  }
  std::ranges::sort(result, {}, [](std::uint32_t word) { return word << 2 | word >> 30; });
  const auto same = [](std::uint32_t word) { return narrow::position(word); };
  result.erase(std::ranges::unique(result, {}, same).begin(), result.end());
  return result;
}

void check(const solids_options& options, std::uint64_t grid) {
  if (options.serve && grid > finest_view) {
    throw invalid_argument(fmt::format("voxels: a grid of {} voxels a side; give --grid 1 to {} with --serve",
                                       grid, finest_view));
  }
  if (options.serve && (options.baseline || options.inside == "fill" || !options.exports.empty() ||
                        options.frames || options.format != "table"))
    throw invalid_argument(
        "voxels: --serve only shows; leave --export, --format, --frames, --baseline and --inside fill out");
  if (options.frames && (options.baseline || options.inside == "fill" || !options.exports.empty()))
    throw invalid_argument(
        "voxels: --frames only makes frames; leave --export, --baseline and --inside fill out");
  const std::uint64_t most = options.inside == "fill" ? 1024 : finest_scene;
  if (grid == 0 || grid > most) {
    throw invalid_argument(fmt::format("voxels: a grid of {} voxels a side; give --grid 1 to {}{}", grid,
                                       most, options.inside == "fill" ? " with --inside fill" : ""));
  }
  if (!(std::abs(options.turn) <= 360)) {
    throw invalid_argument(
        fmt::format("voxels: a turn of {} degrees; give --turn -360 to 360", options.turn));
  }
  if (options.placements.size() > options.meshes.size()) {
    throw invalid_argument(fmt::format("voxels: --place-{:c} is of a mesh that is not there; {} given",
                                       'a' + options.placements.size() - 1, options.meshes.size()));
  }
  if (options.meshes.size() < 2 && (options.op == "surfaces" || options.inside == "fill"))
    throw invalid_argument("voxels: --op surfaces and --inside fill are of two meshes; name another");
  if (options.meshes.size() > 2 && (options.op == "surfaces" || options.inside == "fill"))
    throw invalid_argument("voxels: --op surfaces and --inside fill are of two meshes; leave the others out");
  for (const auto& name : options.exports) {
    const auto format = format_of(name);
    if ((format == voxel_format::mesh || format == voxel_format::triangles) && options.op == "surfaces")
      throw invalid_argument(fmt::format("{}: surfaces have no sides; export .points.ply or .vox", name));
  }
  if (options.format == "csv")
    throw invalid_argument("voxels: no CSV of solids; take --format table or json");
}

/// Where pictures go.
std::filesystem::path picture_of(const solids_options& options) {
  return options.out / (options.frames ? "frames.png" : "voxels.png");
}

std::vector<std::string> files_to_write(const solids_options& options, std::uint64_t side) {
  if (options.serve) return {};
  std::vector<std::string> files;
  if (!options.no_picture) files.push_back(picture_of(options).string());
  for (const auto& name : options.exports) {
    const auto more = files_of_voxels(name, side);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

/// One line on the units of meshes, if they are not all the same.
std::vector<std::string> remarks_on_units(const placed_meshes& all) {
  std::string each;
  bool differ = false;
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    if (all.is_shape[i]) continue;
    const auto& unit = all.meshes[i].unit;
    differ = differ || unit != all.length;
    each += fmt::format("{}{} {}", each.empty() ? "" : ", ", all.names[i],
                        !unit                ? "has no unit, and is taken for " + all.length.name
                        : unit == all.length ? "is"
                                             : fmt::format("is in {}, and taken times {:.9g}", unit.name,
                                                           unit.metres / all.length.metres));
  }
  if (!differ) return {};
  return {fmt::format("all lengths are in {}: {}", all.length.name, each)};
}

/// What a user should know of meshes that are not surfaces of solids.
std::vector<std::string> remarks(const solids_options& options, const std::string& name,
                                 const mesh_faults& faults) {
  std::vector<std::string> result;
  if (faults.open_edges != 0 && options.inside != "vote") {
    result.push_back(
        fmt::format("{}: {} edges are open: where a column goes through such a hole, all above it counts as "
                    "inside or as outside; --inside vote asks three axes",
                    name, faults.open_edges));
  }
  if (faults.turned_edges != 0 && options.inside != "parity") {
    result.push_back(
        fmt::format("{}: at {} edges, adjacent triangles face opposite ways, so the inside may be "
                    "wrong; use --inside parity",
                    name, faults.turned_edges));
  }
  return result;
}

/// Runs the steps for all meshes and for the result, repeatedly if they are quick.
findings find_out(scene& on, const solids_options& options, const placed_meshes& all, const frame& grid) {
  constexpr auto patience = std::chrono::seconds(2);
  constexpr int usual_repetitions = 5;
  const auto rule = rule_of(options.inside);
  const auto count = all.meshes.size();
  const bool two = count == 2;
  findings found;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < options.repetitions.value_or(usual_repetitions); ++i) {
    if (i != 0 && !options.repetitions && std::chrono::steady_clock::now() - start > patience) break;
    for (std::size_t k = 0; k < count; ++k) {
      on.place_mesh(k, grid.side, to_snapped(grid, all.where[k], all.meshes[k]));
      on.make_solid(k, rule);
      on.make_surface(k, options.conservative);
    }
    on.combine(op_of(options.op));
    on.count_exposed();
    if (two) found.classes = on.classes();
  }
  for (std::size_t k = 0; k < count; ++k) {
    found.faults.push_back(on.faults(k));
    found.meshes.push_back(on.facts_of_mesh(k));
    if (two) found.classes_of_meshes.push_back(on.classes_of_mesh(k));
  }
  found.result = on.facts_of_result();
  if (options.op == "surfaces") found.result.voxels = found.classes->all();
  if (options.inside == "fill") found.fill = on.fill();
  if (options.baseline) found.bits = on.bit_grid(op_of(options.op));
  return found;
}

}  // namespace

solid_op op_of(const std::string& name) {
  return name == "intersection" ? solid_op::intersection
         : name == "difference" ? solid_op::difference
         : name == "xor"        ? solid_op::exclusive
                                : solid_op::combined;
}

inside_rule rule_of(const std::string& name) {
  return name == "parity" ? inside_rule::odd : name == "vote" ? inside_rule::vote : inside_rule::nonzero;
}

std::vector<std::string> files_of_meshes(const solids_options& options) {
  std::vector<std::string> files;
  for (const auto& name : options.meshes) {
    std::error_code failure;
    if (!options.frames || !std::filesystem::is_directory(name, failure)) {
      files.push_back(name);
      continue;
    }
    for (const auto& file : mesh_files_in(name)) files.push_back(file.string());
  }
  return files;
}

placed_meshes read_meshes(const solids_options& options) {
  placed_meshes all;
  all.names = options.meshes;
  for (const auto& name : options.meshes) {
    std::error_code failure;
    auto shape = std::filesystem::exists(name, failure) ? std::nullopt : make_shape(name);
    auto& sequence = all.sequences.emplace_back();
    all.is_shape.push_back(shape.has_value());
    if (std::filesystem::is_directory(name, failure)) {
      if (!options.frames) {
        throw invalid_argument(fmt::format(
            "{}: is a folder, whose files can be the frames of a mesh; add --frames N, or name a file",
            name));
      }
      for (const auto& file : mesh_files_in(name)) sequence.push_back(read_mesh(file));
      all.meshes.push_back(sequence.front());
    } else {
      all.meshes.push_back(shape ? *std::move(shape) : read_mesh(name));
    }
  }
  // Lengths are in the first unit that a file has, which is also assumed for files without one; coordinates
  // are relative to a point near the first mesh, so that those of national grids keep their digits.
  for (const auto& one : all.meshes) {
    if (!all.length) all.length = one.unit;
  }
  const auto bring = [&](mesh& one) {
    const double factor = one.unit ? one.unit.metres / all.length.metres : 1;
    one.scale *= factor;
    one.blur *= factor;
    for (std::size_t k = 0; k < 3; ++k) one.origin[k] = one.origin[k] * factor - all.origin[k];
  };
  bring(all.meshes.front());
  all.origin = std::exchange(all.meshes.front().origin, {});
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    if (i != 0) bring(all.meshes[i]);
    for (auto& later : all.sequences[i]) bring(later);
    all.boxes.push_back(bounds_of(all.meshes[i]));
    for (const auto& later : all.sequences[i]) all.boxes[i].add(bounds_of(later));
    all.fitted.push_back(i != 0 && (all.is_shape[i] != 0 || options.fit));
    if (i == 0) {
      all.first = all.boxes[0];
      all.unit = all.first.longest_side();
    }
    all.where.push_back(all.placed(i, options.placement_of(i)));
    all.placed_boxes.push_back(bounds_of(all.meshes[i], all.where[i]));
    all.box.add(all.placed_boxes[i]);
    for (const auto& line : all.meshes[i].notes)
      all.notes.push_back(fmt::format("{}: {}", all.names[i], line));
  }
  for (auto& line : remarks_on_units(all)) all.notes.push_back(std::move(line));
  return all;
}

std::vector<std::string> remarks_on_precision(const placed_meshes& all, const frame& grid) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    const auto& row = all.where[i].rows[0];
    const double voxels = all.meshes[i].blur * std::hypot(row[0], row[1], row[2]) / grid.length * grid.side;
    if (!(voxels > 0.1)) continue;
    result.push_back(
        fmt::format("{}: corners may be off by {:.2g} voxels: its numbers are floats, which are too coarse "
                    "so far away from 0; "
                    "write it nearer to 0, or as OBJ, or take a coarser --grid",
                    all.names[i], voxels));
  }
  return result;
}

std::string remark_on_size(const std::string& name, const bounds& box, const frame& grid,
                           std::uint64_t finest) {
  const double side = box.longest_side(), times = grid.length / side;
  if (side == 0 || times <= grid.side) return {};
  const bool reached = times < static_cast<double>(finest);
  return fmt::format(
      "{}: is only {:.2g} voxels wide, because the grid spans {:.3g} times its width; bring the meshes "
      "nearer to each other, or make this one larger{}",
      name, grid.side / times, times,
      reached ? fmt::format(", or take a --grid of more than {:.0f}", std::ceil(times)) : "");
}

std::unique_ptr<scene> make_scene(const std::string& place, int threads) {
  return choose_place(place) == "cuda" ? make_cuda_scene() : make_host_scene(host(threads));
}

namespace {

/// What a user should know of meshes that have few voxels, or none.
std::vector<std::string> remarks_on_voxels(const placed_meshes& all, const frame& grid,
                                           const findings& found) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    const auto& box = all.placed_boxes[i];
    auto line = remark_on_size(all.names[i], box, grid, finest_scene);
    const bool clipped = reaches_out_of(grid, box);
    if (clipped) {
      result.push_back(fmt::format(
          "{}: reaches out of the grid, which encloses all that the result needs: its counts cover only "
          "the part inside",
          all.names[i]));
    }
    if (line.empty() && !clipped && found.meshes[i].volume_voxels == 0 && found.faults[i].open_edges == 0) {
      line = fmt::format(
          "{}: is closed, but no voxel has its centre inside: its walls are thinner than a voxel, or cancel "
          "each other; take a finer --grid",
          all.names[i]);
    }
    if (!line.empty()) result.push_back(std::move(line));
  }
  return result;
}

/// The positions of the meshes at time t of a loop, 0 to 1: the first mesh rotates about the axis that points
/// up, the others rotate about the next one and circle the first. One that is a sequence stays where it was
/// placed.
std::vector<affine> where_at(const solids_options& options, const placed_meshes& all, double t) {
  const auto up = static_cast<std::size_t>(options.up.back() - 'x');
  std::vector<affine> result;
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    vec3 about{}, move{};
    about[i == 0 ? up : (up + 1) % 3] = 1;
    if (i != 0) {
      move[(up + 1) % 3] = 0.3 * std::sin(2 * std::numbers::pi * t);
      move[(up + 2) % 3] = 0.3 * (std::cos(2 * std::numbers::pi * t) - 1);
    }
    std::string words = options.placement_of(i);
    if (all.sequences[i].empty())
      words += fmt::format(" rotate {} {} move {}", fmt::join(about, " "), 360 * t, fmt::join(move, " "));
    result.push_back(all.placed(i, words));
  }
  return result;
}

picture_options view_of(const solids_options& options) {
  picture_options view;
  view.up = static_cast<axis>(options.up.back() - 'x');
  view.upside_down = options.up.front() == '-';
  view.turn = options.turn;
  view.classes = true;
  return view;
}

/// Writes the picture, and the requested files.
void write_files(const solids_options& options, const placed_meshes& all, const frame& grid, scene& on,
                 const std::function<void(const std::string&)>& note) {
  const bool surfaces = options.op == "surfaces";
  const auto shown = surfaces ? voxel_set::surfaces : voxel_set::exposed;
  if (!options.no_picture) {
    const auto file = picture_of(options);
    write_png(draw_voxels(host(options.threads), words_for_picture(on, grid.side, shown), view_of(options)),
              file);
    note("picture: " + file.string());
  }
  if (options.exports.empty()) return;
  auto there = grid;
  for (std::size_t k = 0; k < 3; ++k) there.centre[k] += all.origin[k];
  voxel_model model{there, on.columns(), on.voxels64(shown), {}, all.length.metres};
  if (!options.surface.empty()) model.smooth = options.surface == "smooth";
  for (const auto& name : options.exports) {
    write_voxels(model, name);
    note("voxels:  " + name);
  }
}

/// Square pictures of one size, `in_a_row` in each row.
picture film_strip(const std::vector<picture>& frames, std::size_t in_a_row) {
  const auto side = static_cast<std::size_t>(frames.front().width), count = frames.size();
  const std::size_t width = side * std::min(in_a_row, count),
                    height = side * ((count + in_a_row - 1) / in_a_row);
  picture strip{static_cast<int>(width), static_cast<int>(height), 3, {}};
  strip.pixels.assign(width * height * 3, 255);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t row = 0; row < side; ++row) {
      const std::size_t to = ((i / in_a_row * side + row) * width + i % in_a_row * side) * 3;
      std::copy_n(&frames[i].pixels[row * side * 3], side * 3, &strip.pixels[to]);
    }
  }
  return strip;
}

/// The facts that are reported for each frame of an animation.
struct frame_facts {
  std::vector<double> times;  // milliseconds
  std::vector<std::uint64_t> volumes, seen;
};

void print_frames(const solids_options& options, std::size_t meshes, std::uint32_t side, scene& on,
                  frame_facts facts) {
  std::ranges::sort(facts.times);
  const auto& times = facts.times;
  const double median = times[times.size() / 2];
  if (options.format == "json") {
    json out{{"grid", side},
             {"place", on.place_name()},
             {"op", meshes == 1 ? "none" : options.op},
             {"frames", times.size()},
             {"milliseconds", {{"median", median}, {"least", times.front()}, {"most", times.back()}}}};
    out["steps"] = as_json(on.frame_times());
    out["volume_voxels"] = facts.volumes;
    out["voxels"] = facts.seen;
    fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
    return;
  }
  fmt::print("{} frames of {}: {:.2f} ms each, {:.2f} to {:.2f}; {:.0f} a second\n", times.size(),
             formula(options), median, times.front(), times.back(), 1000 / median);
  fmt::print("ms of the steps: {}\n", text(on.frame_times()));
  if (!options.no_picture) fmt::print("pictures: {}\n", picture_of(options).string());
}

/// The grid of the result for the meshes as they are placed.
frame grid_of(const solids_options& options, const placed_meshes& all, std::uint32_t side) {
  // The paper's fill goes from voxel to voxel of whole surfaces.
  const auto op = options.inside == "fill" ? solid_op::combined : op_of(options.op);
  return frame_of_result(all.meshes.size() == 1 ? solid_op::combined : op, all.placed_boxes, side);
}

/// Computes all frames of an animation, each from the triangles on; reports their times and draws some.
void run_frames(const solids_options& options, const placed_meshes& all, std::uint32_t side, scene& on) {
  constexpr std::size_t most_drawn = 8, in_a_row = 4;
  const auto frames = static_cast<std::size_t>(*options.frames), drawn = std::min(frames, most_drawn);
  const auto count = all.meshes.size();
  const bool surfaces = options.op == "surfaces";
  // Sequences repeat if there are more frames.
  const auto mesh_at = [&](std::size_t i, std::size_t f) -> const mesh& {
    const auto& sequence = all.sequences[i];
    return sequence.empty() ? all.meshes[i] : sequence[f % sequence.size()];
  };
  std::vector<std::vector<affine>> where;
  std::vector<bounds> boxes(count);
  for (std::size_t f = 0; f < frames; ++f) {
    where.push_back(where_at(options, all, static_cast<double>(f) / static_cast<double>(frames)));
    for (std::size_t i = 0; i < count; ++i) boxes[i].add(bounds_of(mesh_at(i, f), where[f][i]));
  }
  // Over all frames, an intersection may be anywhere in the first mesh's box, not only where the boxes of all
  // frames intersect.
  const auto op = op_of(options.op);
  const auto grid = frame_of_result(stays_in_first(op) ? solid_op::difference : op, boxes, side);
  for (std::size_t i = 0; i < count; ++i) {
    const auto line = remark_on_size(all.names[i], bounds_of(mesh_at(i, 0), where[0][i]), grid, finest_scene);
    if (!line.empty()) fmt::print(stderr, "{}\n", line);
  }
  auto view = view_of(options);
  view.side = 400;
  view.grid = side <= 1024 ? side : side <= 2048 ? side / 2 : side / 4;
  frame_facts facts;
  std::vector<picture> pictures;
  for (std::size_t f = 0; f < frames; ++f) {
    const auto start = std::chrono::steady_clock::now();
    frame_plan plan{side, {}, op_of(options.op), rule_of(options.inside), options.conservative};
    for (std::size_t i = 0; i < count; ++i) {
      plan.to_snapped.push_back(to_snapped(grid, where[f][i], mesh_at(i, f)));
      if (!all.sequences[i].empty()) on.set_mesh(i, mesh_at(i, f));
    }
    const auto counted = on.make_frame(plan);
    facts.times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    facts.volumes.push_back(on.volume());
    facts.seen.push_back(surfaces ? counted.classes.all() : counted.exposed);
    if (!options.no_picture && f == pictures.size() * frames / drawn && pictures.size() < drawn) {
      const auto words = words_for_picture(on, side, surfaces ? voxel_set::surfaces : voxel_set::exposed);
      pictures.push_back(draw_voxels(host(options.threads), words, view));
    }
  }
  if (!options.no_picture) write_png(film_strip(pictures, in_a_row), picture_of(options));
  print_frames(options, count, side, on, std::move(facts));
}

/// Shows the meshes in browsers until the program is ended.
void serve_solids(const solids_options& options, const placed_meshes& all, scene& on,
                  std::vector<std::string> notes) {
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    on.set_mesh(i, all.meshes[i]);
    for (auto& line : remarks(options, all.names[i], on.faults(i))) notes.push_back(std::move(line));
  }
  for (const auto& line : notes) fmt::print("{}\n", line);
  view_session session(options, all, on, notes);
  serve(session, *options.serve, [&](const std::string& address) {
    fmt::print("{}  (open this in a browser; Ctrl-C ends it)\n", address);
    std::fflush(stdout);
  });
}

}  // namespace

void run_solids(const solids_options& options) {
  const bool as_json = options.format == "json";
  const auto side = options.grid.value_or(usual_grid);
  check(options, side);
  expect_other_files(files_to_write(options, side), files_of_meshes(options));
  const auto note = [&]<class... A>(fmt::format_string<A...> line, A&&... arguments) {
    fmt::print(as_json ? stderr : stdout, "{}\n", fmt::format(line, std::forward<A>(arguments)...));
    std::fflush(as_json ? stderr : stdout);
  };
  const auto all = read_meshes(options);
  const auto warn = [](const std::vector<std::string>& lines) {
    for (const auto& line : lines) fmt::print(stderr, "{}\n", line);
  };
  const auto on = make_scene(options.place, options.threads);
  const auto grid = grid_of(options, all, static_cast<std::uint32_t>(side));
  auto warnings = all.notes;
  std::ranges::copy(remarks_on_precision(all, grid), std::back_inserter(warnings));
  if (options.place == "auto" && on->place_name() != "cuda")
    note("no CUDA device can be used here: the CPU does it");
  if (options.serve) return serve_solids(options, all, *on, std::move(warnings));
  const auto bytes = on->expect_room(grid.side, options.frames ? all.meshes.size() + 1 : 1);
  if (!as_json) note("a grid of {}^3 on {}: about {} MiB", grid.side, on->place_name(), (bytes >> 20) + 1);
  make_folder(options.out);
  for (std::size_t i = 0; i < all.meshes.size(); ++i) on->set_mesh(i, all.meshes[i]);
  if (options.frames) {
    warn(warnings);
    return run_frames(options, all, grid.side, *on);
  }
  auto found = find_out(*on, options, all, grid);
  std::ranges::copy(remarks_on_voxels(all, grid, found), std::back_inserter(warnings));
  warn(warnings);
  found.warnings = std::move(warnings);
  as_json ? print_json(options, all, grid, *on, found) : print_table(options, all, grid, found);
  for (std::size_t i = 0; i < all.meshes.size(); ++i) {
    for (const auto& line : remarks(options, all.names[i], found.faults[i])) note("{}", line);
  }
  std::fflush(stdout);

  write_files(options, all, grid, *on, [&](const std::string& line) { note("{}", line); });
}

}  // namespace roost::tools
