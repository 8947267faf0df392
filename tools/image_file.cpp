#include "image_file.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
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

/// A gigabyte of brightness.
constexpr std::size_t pixels_most = std::size_t{1} << 28;

void expect_size(const std::string& file, long width, long height) {
  if (width >= 1 && height >= 1 &&
      static_cast<std::size_t>(width) <= pixels_most / static_cast<std::size_t>(height))
    return;
  refuse(file, fmt::format("is a picture of {} x {} pixels; {} million at most can be read; shrink it", width,
                           height, pixels_most / 1000000));
}

const stbi_uc* data_of(const std::string& bytes) { return reinterpret_cast<const stbi_uc*>(bytes.data()); }
int size_of(const std::string& bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max()));
}

/// `bytes`: all of the file, or how it begins.
file_kind kind_of_bytes(const std::string& bytes) {
  if (bytes.starts_with("SIMPLE  =")) return file_kind::fits;
  int width, height, colours;
  const bool jpeg = bytes.starts_with("\xff\xd8\xff");  // much can stand before the size of one
  return jpeg || stbi_info_from_memory(data_of(bytes), size_of(bytes), &width, &height, &colours)
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
  if (bytes.size() > std::numeric_limits<int>::max()) refuse(file, "is larger than 2 GiB");
  const auto* const data = data_of(bytes);
  const int size = size_of(bytes);
  grey_image image;
  int colours = 0;
  if (stbi_info_from_memory(data, size, &image.width, &image.height, &colours))
    expect_size(file, image.width, image.height);
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
