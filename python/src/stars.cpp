#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "apps.hpp"
#include "apps/stars/hot_pixels.hpp"
#include "apps/stars/look.hpp"
#include "apps/stars/patterns.hpp"
#include "apps/stars/solution.hpp"
#include "apps/stars/solve.hpp"
#include "columns.hpp"

// Fields of stars: a database with its solver.

namespace roost::python {
namespace {

using namespace roost::tools;

/// The numbers of a solution, for Python.
struct solution_row {
  double ra, dec, roll, fov, scale;  // degrees, and seconds of arc a pixel
  double axes[9], focal, rms, log10_chance;
  std::int64_t solved, mirrored, hinted, limited, matched;
};

/// A hint from Python. Kind 0: none; 1: ra, dec, roll; 2: nine numbers of axes, and the focal length in
/// widths.
struct hint_row {
  double kind, numbers[10];
};

sky_vector vector_at(const double* numbers) {
  return {static_cast<float>(numbers[0]), static_cast<float>(numbers[1]), static_cast<float>(numbers[2])};
}

pointing_hint hint_of(const hint_row& row) {
  const auto* const n = row.numbers;
  if (row.kind == 1) return {{pointing_of(n[0], n[1], n[2], false), pointing_of(n[0], n[1], n[2], true)}, 2};
  if (row.kind == 2)
    return {{{vector_at(n), vector_at(n + 3), vector_at(n + 6), static_cast<float>(n[9])}}, 1};
  return {};
}

class star_sky {
 public:
  star_sky(const host& place, star_database&& database)
      : database_(std::move(database)), solver_(place, database_) {}

  const star_database& database() const { return database_; }
  const solver_on<host>& solver() const { return solver_; }

 private:
  star_database database_;
  solver_on<host> solver_;
};

std::unique_ptr<star_sky> load_sky(const std::string& file) {
  return without_gil(call_place<host>(), [&](const host& place) {
    return std::make_unique<star_sky>(place, load_star_database(file));
  });
}

/// `stars`: rows of right ascension, declination and magnitude.
std::unique_ptr<star_sky> build_sky(const column& stars, std::vector<std::string> names, double fov_least,
                                    double fov_most, double magnitude_most) {
  struct row {
    double ra, dec, magnitude;
  };
  const auto rows = span_of<row>(stars);
  return without_gil(call_place<host>(), [&](const host& place) {
    star_database database;
    database.limits = {fov_least, fov_most, magnitude_most};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].magnitude > magnitude_most) continue;
      database.stars.push_back(
          {direction_of(rows[i].ra, rows[i].dec), static_cast<float>(rows[i].magnitude)});
      database.names.push_back(names.empty() ? std::string() : std::move(names[i]));
    }
    if (database.stars.size() < 4) {
      detail::raise<invalid_argument>({"roost.stars.Database: ", database.stars.size(),
                                       " stars to magnitude ", magnitude_most, "; a pattern has four"});
    }
    build_patterns_on(place, database);
    if (database.patterns.empty()) {
      detail::raise<invalid_argument>({"roost.stars.Database: no four stars lie in one picture of ", fov_most,
                                       " degrees; give a wider fov or more stars"});
    }
    return std::make_unique<star_sky>(place, std::move(database));
  });
}

solution_row row_of(const field_solution& s, star_fields::size size) {
  if (!s.solved) return {.limited = s.limited};
  const auto at = position_of(s.at, size);
  const auto& [x, y, z, focal] = s.at;
  return {at.ra,     at.dec,      at.roll,
          at.fov,    at.scale,    {x.x, x.y, x.z, y.x, y.y, y.z, z.x, z.y, z.z},
          focal,     s.rms,       s.log10_chance,
          s.solved,  at.mirrored, s.hinted,
          s.limited, s.matched};
}

/// Few fields at once, so that Ctrl-C is noticed between them.
std::vector<field_solution> solve_in_parts(const star_sky& sky, const host& place, const star_fields& fields,
                                           const solve_options& options) {
  std::vector<field_solution> all;
  const auto step = static_cast<std::size_t>(16 * place.threads());
  for (std::size_t begin = 0; begin < fields.count(); begin += step) {
    check_signals();
    star_fields part;
    for (std::size_t i = begin; i < std::min(begin + step, fields.count()); ++i) {
      const std::uint32_t first = fields.first[i];
      part.add(std::span(fields.centroids).subspan(first, fields.first[i + 1] - first), fields.sizes[i]);
      if (!fields.hints.empty()) part.hints.push_back(fields.hints[i]);
    }
    const auto these = sky.solver().solve_on(place, part, options);
    all.insert(all.end(), these.begin(), these.end());
  }
  return all;
}

/// Solves fields, whose centroids are contiguous. Returns a row of words for each field, the number of the
/// star of each centroid or -1, and why fields have no solution.
nb::tuple solve_sky(const star_sky& sky, const column& centroids, const column& first, const column& sizes,
                    const column& hints, double fov_least, double fov_most, double chance, double radius,
                    std::uint64_t limit) {
  const auto all = span_of<centroid>(centroids);
  const auto begins = span_of<std::uint32_t>(first);
  const auto pictures = span_of<star_fields::size>(sizes);
  star_fields fields{
      {all.begin(), all.end()}, {begins.begin(), begins.end()}, {pictures.begin(), pictures.end()}};
  for (const auto& row : span_of<hint_row>(hints)) fields.hints.push_back(hint_of(row));
  const solve_options options{.fov_least = fov_least,
                              .fov_most = fov_most,
                              .chance_most = chance,
                              .hint_radius = radius,
                              .patterns_most = limit};
  array<std::uint64_t, host> rows;
  array<std::int64_t, host> star_of;
  std::vector<std::string> reasons(fields.count());
  without_gil(call_place<host>(), [&](const host& place) {
    rows = array<std::uint64_t, host>(place, fields.count() * sizeof(solution_row) / 8);
    star_of = array<std::int64_t, host>(place, all.size());
    std::fill_n(star_of.data(), all.size(), -1);
    const auto [solutions, orders] = solve_crowded(fields, options, [&](const auto& some, const auto& how) {
      return solve_in_parts(sky, place, some, how);
    });
    for (std::size_t i = 0; i < fields.count(); ++i) {
      const auto& s = solutions[i];
      const auto row = row_of(s, fields.sizes[i]);
      std::memcpy(rows.data() + i * sizeof(row) / 8, &row, sizeof(row));
      const std::uint32_t n = begins[i + 1] - begins[i];
      if (!s.solved) reasons[i] = reason_of(s, n, options);
      for (std::uint32_t k = 0; s.solved && k < n && k < centroids_most; ++k) {
        if (s.star_of[k] == no_star) continue;
        star_of.data()[begins[i] + (orders[i].empty() ? k : orders[i][k])] = s.star_of[k];
      }
    }
  });
  const call_place<host> at;
  return nb::make_tuple(to_python(at, std::move(rows)), to_python(at, std::move(star_of)), reasons);
}

/// Right ascension, declination and magnitude of all stars.
nb::object stars_of(const star_sky& sky) {
  const auto& stars = sky.database().stars;
  array<double, host> numbers(call_place<host>::get(), 3 * stars.size());
  for (std::size_t i = 0; i < stars.size(); ++i) {
    const auto at = point_of(stars[i].at);
    numbers.data()[i] = at.ra;
    numbers.data()[stars.size() + i] = at.dec;
    numbers.data()[2 * stars.size() + i] = stars[i].magnitude;
  }
  return to_python(call_place<host>(), std::move(numbers));
}

}  // namespace

void bind_stars(nb::module_& m) {
  nb::class_<star_sky>(m, "Sky")
      .def("save",
           [](const star_sky& sky, const std::string& file) {
             without_gil(call_place<host>(), [&](const host&) { save(sky.database(), file); });
           })
      .def("solve", &solve_sky)
      .def("stars", &stars_of)
      .def_prop_ro("size", [](const star_sky& sky) { return sky.database().stars.size(); })
      .def_prop_ro("patterns", [](const star_sky& sky) { return sky.database().patterns.size(); })
      .def_prop_ro("names", [](const star_sky& sky) { return sky.database().names; })
      .def_prop_ro("limits", [](const star_sky& sky) {
        const auto& limits = sky.database().limits;
        return nb::make_tuple(limits.fov_least, limits.fov_most, limits.magnitude_most);
      });
  m.def("load_sky", &load_sky);
  m.def("build_sky", &build_sky);
  m.def("repair_hot_pixels", [](const column& pixels, float noise) {
    const std::size_t width = pixels.row_bytes / sizeof(float);
    repair_hot_pixels({reinterpret_cast<float*>(pixels.data), pixels.rows * width}, width, noise);
  });
  m.def("look_of", [](const column& positions) {
    std::vector<double> ra, dec;
    for (const auto& [a, d] : span_of<std::array<double, 2>>(positions)) ra.push_back(a), dec.push_back(d);
    return std::string(look_of(ra, dec));
  });
  m.attr("patterns_most") = solve_options().patterns_most;
}

}  // namespace roost::python
