#include "image_file.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <roost/error.hpp>

#include "still_picture.hpp"
#include "text_file.hpp"

namespace roost::tools {
namespace {

/// `bytes`: all of the file, or how it begins.
file_kind kind_of_bytes(const std::string& bytes) {
  if (bytes.starts_with("SIMPLE  =")) return file_kind::fits;
  return is_still(bytes) ? file_kind::picture : file_kind::other;
}

std::string fits_reason(int status) {
  char text[FLEN_STATUS] = {};
  fits_get_errstatus(status, text);
  fits_clear_errmsg();
  return text;
}

grey_image read_fits(const std::string& file, std::string bytes) {
  int status = 0, dimensions = 0;
  fitsfile* fits = nullptr;
  void* memory = bytes.data();
  std::size_t size = bytes.size();
  if (fits_open_memfile(&fits, file.c_str(), READONLY, &memory, &size, 0, nullptr, &status))
    refuse(file, fmt::format("cannot be read as FITS ({}); convert it", fits_reason(status)));
  const auto close = [](fitsfile* open) {
    int ignored = 0;
    fits_close_file(open, &ignored);
    fits_clear_errmsg();
  };
  const std::unique_ptr<fitsfile, decltype(close)> opened(fits, close);
  long sides[3] = {};
  int parts = 0;
  fits_get_num_hdus(fits, &parts, &status);
  for (int part = 1; part <= parts && status == 0; ++part) {  // the first part that is a picture
    int type = 0;
    dimensions = 0;
    fits_movabs_hdu(fits, part, &type, &status);
    if (type != IMAGE_HDU) continue;
    fits_get_img_dim(fits, &dimensions, &status);
    if (dimensions >= 2) break;
  }
  if (status != 0) refuse(file, fmt::format("cannot be read as FITS ({}); convert it", fits_reason(status)));
  if (dimensions < 2) refuse(file, "is a FITS file without a picture");
  fits_get_img_size(fits, 3, sides, &status);
  expect_size(file, sides[0], sides[1]);
  grey_image image{static_cast<int>(sides[0]), static_cast<int>(sides[1]), {}};
  const std::size_t pixels = static_cast<std::size_t>(sides[0]) * static_cast<std::size_t>(sides[1]);
  // No file is so much smaller than its picture, unless its head lies.
  if (pixels / 256 > bytes.size()) refuse(file, "was cut off: it has fewer pixels than its head says");
  image.pixels.resize(pixels);
  float none = 0;  // for pixels without a number
  long first[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  fits_read_pix(fits, TFLOAT, first, static_cast<LONGLONG>(pixels), &none, image.pixels.data(), nullptr,
                &status);
  if (status != 0) refuse(file, fmt::format("cannot be read as FITS ({}); convert it", fits_reason(status)));
  for (float& pixel : image.pixels) {
    if (!std::isfinite(pixel)) pixel = 0;
  }
  return image;
}

}  // namespace

file_kind kind_of_file(const std::string& file) {
  text_source source(file, text_source::compression::kept);
  if (!std::filesystem::is_regular_file(file)) refuse(file, "is a pipe or a device; give a file");
  std::string head(std::size_t{1} << 20, '\0');
  head.resize(source.read(head));
  return kind_of_bytes(head);
}

grey_image read_image(const std::string& file) {
  std::string bytes = read_text(file);
  if (bytes.empty()) refuse(file, "is empty; a picture was expected");
  const auto kind = kind_of_bytes(bytes);
  if (kind == file_kind::fits) return read_fits(file, std::move(bytes));
  return read_still(file, bytes);
}

}  // namespace roost::tools
