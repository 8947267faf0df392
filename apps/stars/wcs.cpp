#include "wcs.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <cmath>
#include <roost/error.hpp>

namespace roost::tools {

void write_wcs(const std::filesystem::path& file, const pointing& at, star_fields::size size,
               bool lowest_first) {
  int status = 0;
  fitsfile* fits = nullptr;
  const auto middle = point_of(at.z);
  const compass here(at.z);
  // The second axis of the file points up or down.
  const double scale = degrees / at.focal, up = lowest_first ? -scale : scale;
  // cfitsio reads brackets and the like in a name as commands; "!" replaces an existing file.
  fits_create_diskfile(&fits, file.c_str(), &status);
  if (status == FILE_NOT_CREATED && std::filesystem::is_regular_file(file) && std::filesystem::remove(file)) {
    status = 0;
    fits_clear_errmsg();
    fits_create_diskfile(&fits, file.c_str(), &status);
  }
  fits_create_img(fits, BYTE_IMG, 0, nullptr, &status);
  const auto number = [&](const char* key, double value, const char* says) {
    fits_write_key_dbl(fits, key, value, 15, says, &status);
  };
  const auto text = [&](const char* key, const char* value, const char* says) {
    fits_write_key_str(fits, key, value, says, &status);
  };
  fits_write_key_lng(fits, "WCSAXES", 2, "axes of the coordinates", &status);
  text("CTYPE1", "RA---TAN", "gnomonic projection");
  text("CTYPE2", "DEC--TAN", "gnomonic projection");
  text("CUNIT1", "deg", "");
  text("CUNIT2", "deg", "");
  text("RADESYS", "ICRS", "");
  number("CRVAL1", middle.ra, "right ascension of the middle");
  number("CRVAL2", middle.dec, "declination of the middle");
  number("LONPOLE", 180, "north of the middle; at a pole the default is another");
  number("CRPIX1", size.width / 2 + 0.5, "the middle; the first pixel is 1");
  number("CRPIX2", size.height / 2 + 0.5, "");
  number("CD1_1", dot(at.x, here.east) * scale, "degrees a pixel");
  number("CD1_2", dot(at.y, here.east) * up, "");
  number("CD2_1", dot(at.x, here.north) * scale, "");
  number("CD2_2", dot(at.y, here.north) * up, "");
  text("ROWORDER", lowest_first ? "BOTTOM-UP" : "TOP-DOWN", "where the first row of the file is");
  fits_write_key_lng(fits, "IMAGEW", std::lround(size.width), "pixels", &status);
  fits_write_key_lng(fits, "IMAGEH", std::lround(size.height), "pixels", &status);
  int closed = 0;
  if (fits != nullptr) fits_close_file(fits, &closed);
  if (status == 0) status = closed;
  if (status == 0) return;
  char why[FLEN_STATUS] = {};
  fits_get_errstatus(status, why);
  fits_clear_errmsg();
  throw error(fmt::format("{}: cannot be written ({}); check the directory, its permissions and its space",
                          file.string(), why));
}

}  // namespace roost::tools
