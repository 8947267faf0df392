#include "image_file.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <roost/error.hpp>

#include "text_file.hpp"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace roost::tools {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

file_kind kind_of_bytes(const std::string& bytes) {
  if (bytes.starts_with("SIMPLE  =")) return file_kind::fits;
  int width, height, colours;
  return stbi_info_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                               static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 30)), &width,
                               &height, &colours)
             ? file_kind::picture
             : file_kind::other;
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
  if (sides[0] < 1 || sides[1] < 1 || sides[0] > 100000 || sides[1] > 100000)
    refuse(file,
           fmt::format("is a picture of {} x {} pixels; 100000 a side can be read", sides[0], sides[1]));
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

file_kind kind_of_file(const std::string& file) { return kind_of_bytes(read_text(file)); }

grey_image read_image(const std::string& file) {
  std::string bytes = read_text(file);
  if (bytes.empty()) refuse(file, "is empty; a picture was expected");
  const auto kind = kind_of_bytes(bytes);
  if (kind == file_kind::fits) return read_fits(file, std::move(bytes));
  if (bytes.size() > std::numeric_limits<int>::max()) refuse(file, "is larger than 2 GiB");
  const auto* const data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(bytes.size());
  grey_image image;
  int colours = 0;
  const auto take = [&](auto* pixels, float scale) {
    const std::unique_ptr<void, decltype(&stbi_image_free)> owner(pixels, stbi_image_free);
    if (pixels == nullptr) {
      refuse(file, fmt::format("cannot be read as a picture ({}); PNG, JPEG, BMP, PGM and FITS can be read",
                               stbi_failure_reason()));
    }
    const std::size_t n = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
    image.pixels.resize(n);
    for (std::size_t i = 0; i < n; ++i) image.pixels[i] = static_cast<float>(pixels[i]) * scale;
  };
  if (kind == file_kind::picture && stbi_is_16_bit_from_memory(data, size)) {
    take(stbi_load_16_from_memory(data, size, &image.width, &image.height, &colours, 1), 1.f / 257);
  } else {
    take(stbi_load_from_memory(data, size, &image.width, &image.height, &colours, 1), 1.f);
  }
  return image;
}

}  // namespace roost::tools
