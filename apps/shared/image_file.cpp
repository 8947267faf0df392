#include "image_file.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <roost/error.hpp>
#include <span>

#include "still_picture.hpp"
#include "text_file.hpp"

namespace roost::tools {
namespace {

/// `bytes`: the whole file, or its beginning.
file_kind kind_of_bytes(const std::string& bytes) {
  if (bytes.starts_with("SIMPLE  =")) return file_kind::fits;
  return is_still(bytes) ? file_kind::picture : file_kind::other;
}

bool is_gzip(const std::string& bytes) { return bytes.starts_with("\x1f\x8b"); }

/// The contents of a gzip file, in which FITS files are often stored.
std::string unpacked(const std::string& file) {
  constexpr std::size_t most = 8 * pixels_most + (std::size_t{1} << 24);  // pixels, and headers
  text_source source(file);
  std::string bytes;
  for (std::size_t size = 0;;) {
    bytes.resize(std::min(most + 1, std::max<std::size_t>(2 * size, std::size_t{1} << 20)));
    size += source.read(std::span(bytes).subspan(size));
    if (size > most)
      refuse(file, "holds more than the largest picture that can be read; unpack and shrink it");
    if (size < bytes.size()) {
      bytes.resize(size);
      return bytes;
    }
  }
}

std::string fits_reason(int status) {
  char text[FLEN_STATUS] = {};
  fits_get_errstatus(status, text);
  fits_clear_errmsg();
  return text;
}

/// Fills pixels without a number from those around them.
void fill_gaps(grey_image& image, std::vector<std::size_t> gaps) {
  constexpr int rounds = 8;  // reaches the middle of a saturated star; farther pixels get the mean
  const auto w = static_cast<std::size_t>(image.width), h = static_cast<std::size_t>(image.height);
  for (int round = 0; round < rounds && !gaps.empty(); ++round) {
    std::vector<std::size_t> left, filled;
    std::vector<float> values;
    for (const auto gap : gaps) {
      const std::size_t x = gap % w, y = gap / w;
      double sum = 0;
      int n = 0;
      for (std::size_t j = y - (y != 0); j < std::min(y + 2, h); ++j) {
        for (std::size_t i = x - (x != 0); i < std::min(x + 2, w); ++i) {
          if (std::isnan(image.pixels[j * w + i])) continue;
          sum += static_cast<double>(image.pixels[j * w + i]);
          ++n;
        }
      }
      (n == 0 ? left : filled).push_back(gap);
      if (n != 0) values.push_back(static_cast<float>(sum / n));
    }
    for (std::size_t i = 0; i < filled.size(); ++i) image.pixels[filled[i]] = values[i];
    gaps = std::move(left);
  }
  double sum = 0;
  for (const float pixel : image.pixels) sum += std::isnan(pixel) ? 0. : static_cast<double>(pixel);
  const std::size_t known = image.pixels.size() - gaps.size();
  for (const auto gap : gaps)
    image.pixels[gap] = known == 0 ? 0.f : static_cast<float>(sum / static_cast<double>(known));
}

/// Goes to the first part that is a picture. Returns its number of pixels along each axis.
std::vector<long> find_picture(const std::string& file, fitsfile* fits, int& status) {
  int parts = 0;
  fits_get_num_hdus(fits, &parts, &status);
  for (int part = 1; part <= parts && status == 0; ++part) {
    int type = 0, dimensions = 0;
    fits_movabs_hdu(fits, part, &type, &status);
    if (type != IMAGE_HDU || fits_get_img_dim(fits, &dimensions, &status) || dimensions < 2) continue;
    if (dimensions > 9) refuse(file, "is a FITS file with more than 9 axes; write only its picture");
    std::vector<long> sides(static_cast<std::size_t>(dimensions));
    fits_get_img_size(fits, dimensions, sides.data(), &status);
    if (std::ranges::all_of(sides, [](long side) { return side > 0; })) return sides;
  }
  return {};
}

/// The bytes that a part's data need: beyond the end of a truncated file, cfitsio reads zeros.
double bytes_of_data(fitsfile* fits, double pixels, int& status) {
  if (!fits_is_compressed_image(fits, &status)) {
    int bits = 0;
    fits_get_img_type(fits, &bits, &status);
    return pixels * std::abs(bits) / 8;
  }
  LONGLONG width = 0, rows = 0, heap = 0;
  fits_read_key_lnglng(fits, "NAXIS1", &width, nullptr, &status);
  fits_read_key_lnglng(fits, "NAXIS2", &rows, nullptr, &status);
  fits_read_key_lnglng(fits, "PCOUNT", &heap, nullptr, &status);
  return static_cast<double>(width) * static_cast<double>(rows) + static_cast<double>(heap);
}

/// The picture in a FITS file.
class fits_picture {
 public:
  std::size_t width = 0, height = 0;
  std::size_t planes = 1;    // added up
  bool lowest_first = true;  // of its rows

  /// `bytes`: the file, which must outlive this.
  fits_picture(const std::string& file, std::string& bytes)
      : file_(file), memory_(bytes.data()), size_(bytes.size()) {
    fitsfile* fits = nullptr;
    // In a file name, cfitsio would take brackets and the like for commands.
    fits_open_memfile(&fits, "picture", READONLY, &memory_, &size_, 0, nullptr, &status_);
    expect_good();
    fits_.reset(fits);
    const auto sides = find_picture(file, fits, status_);
    expect_good();
    if (sides.empty()) refuse(file, "is a FITS file without a picture");
    expect_size(file, sides[0], sides[1]);
    width = static_cast<std::size_t>(sides[0]);
    height = static_cast<std::size_t>(sides[1]);
    // Three planes are colours. Otherwise the first plane is the picture.
    if (sides.size() > 2 && sides[2] == 3) planes = 3;
    LONGLONG head = 0, data = 0, end = 0;
    fits_get_hduaddrll(fits, &head, &data, &end, &status_);
    const std::size_t pixels = width * height;
    const double needed = bytes_of_data(fits, static_cast<double>(pixels * planes), status_);
    expect_good();
    // No file is this much smaller than its picture, unless its header is wrong.
    if (static_cast<double>(data) + needed > static_cast<double>(bytes.size()) || pixels / 256 > bytes.size())
      refuse(file, "was cut off: it has fewer pixels than its head says; get the file again");

    char order[FLEN_VALUE] = {};
    if (fits_read_key_str(fits, "ROWORDER", order, nullptr, &status_)) status_ = 0;
    fits_clear_errmsg();
    lowest_first = std::string_view(order) != "TOP-DOWN";
  }

  /// use(pixel, value) for the pixels of each plane, numbered from the top.
  template <class Use>
  void each_pixel(const Use& use) {
    const std::size_t rows_at_once = std::max<std::size_t>(1, 65536 / width);
    std::vector<double> block(std::min(rows_at_once, height) * width);
    for (std::size_t plane = 0; plane < planes; ++plane) {
      for (std::size_t row = 0; row < height; row += rows_at_once) {
        const std::size_t n = std::min(rows_at_once, height - row) * width;
        long first[9] = {1, static_cast<long>(row) + 1, static_cast<long>(plane) + 1, 1, 1, 1, 1, 1, 1};
        double none = std::numeric_limits<double>::quiet_NaN();
        int any_none = 0;  // cfitsio always writes to it
        fits_read_pix(fits_.get(), TDOUBLE, first, static_cast<LONGLONG>(n), &none, block.data(), &any_none,
                      &status_);
        expect_good();
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t from_top = lowest_first ? height - 1 - row - i / width : row + i / width;
          use(from_top * width + i % width, block[i]);
        }
      }
    }
  }

 private:
  struct close {
    void operator()(fitsfile* open) const {
      int ignored = 0;
      fits_close_file(open, &ignored);
      fits_clear_errmsg();
    }
  };

  void expect_good() const {
    if (status_ != 0)
      refuse(file_, fmt::format("cannot be read as FITS ({}); convert it", fits_reason(status_)));
  }

  const std::string& file_;
  void* memory_;
  std::size_t size_;
  int status_ = 0;
  std::unique_ptr<fitsfile, close> fits_;
};

grey_image read_fits(const std::string& file, std::string bytes) {
  fits_picture picture(file, bytes);
  grey_image image{static_cast<int>(picture.width), static_cast<int>(picture.height), {}};
  image.lowest_first = picture.lowest_first;
  double least = std::numeric_limits<double>::max(), most = -least, mean = 0, count = 0;
  picture.each_pixel([&](std::size_t, double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
    mean += (value - mean) / ++count;
  });
  // The mean is subtracted from numbers that a float would round; those beyond its range are scaled.
  const double largest = std::max(std::abs(least), std::abs(most));
  const double zero = count != 0 && largest > 1 << 20 ? mean : 0;
  const double scale = count != 0 && largest > 0 && (largest > 1e30 || largest < 1e-30) ? 1 / largest : 1;
  const double share = scale / static_cast<double>(picture.planes);
  image.pixels.assign(picture.width * picture.height, 0);
  picture.each_pixel([&](std::size_t at, double value) {
    if (value > most) value = most;  // infinite: saturated
    image.pixels[at] += static_cast<float>(value >= least ? (value - zero) * share
                                                          : std::numeric_limits<double>::quiet_NaN());
  });
  std::vector<std::size_t> gaps;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    if (std::isnan(image.pixels[i])) gaps.push_back(i);
  }
  fill_gaps(image, std::move(gaps));
  return image;
}

}  // namespace

file_kind kind_of_file(const std::string& file) {
  std::string head(std::size_t{1} << 20, '\0');
  {
    text_source source(file, text_source::compression::kept);
    if (!std::filesystem::is_regular_file(file)) refuse(file, "is a pipe or a device; give a file");
    head.resize(source.read(head));
  }
  if (is_gzip(head)) {
    head.resize(std::size_t{1} << 20);
    head.resize(text_source(file).read(head));
  }
  return kind_of_bytes(head);
}

grey_image read_image(const std::string& file) {
  std::string bytes = read_text(file);
  if (bytes.empty()) refuse(file, "is empty; a picture was expected");
  if (is_gzip(bytes)) bytes = unpacked(file);
  const auto kind = kind_of_bytes(bytes);
  if (kind == file_kind::fits) return read_fits(file, std::move(bytes));
  return read_still(file, std::move(bytes));
}

}  // namespace roost::tools
