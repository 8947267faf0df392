#include "still_picture.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <roost/error.hpp>
#include <string_view>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_PNM
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace roost::tools {
namespace {

const stbi_uc* data_of(const std::string& bytes) { return reinterpret_cast<const stbi_uc*>(bytes.data()); }
int size_of(const std::string& bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max()));
}

/// Pictures that are recognised but not read.
std::string_view foreign_kind(std::string_view bytes) {
  if (bytes.starts_with(std::string_view("II*\0", 4)) || bytes.starts_with(std::string_view("MM\0*", 4)))
    return "TIFF";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "WebP";
  if (bytes.starts_with("\xff\x0a") || bytes.starts_with(std::string_view("\0\0\0\x0cJXL ", 8)))
    return "JPEG XL";
  if (bytes.starts_with(std::string_view("\0\0\0\x0cjP  ", 8))) return "JPEG 2000";
  const auto brand = bytes.size() < 12 || bytes.substr(4, 4) != "ftyp" ? "" : bytes.substr(8, 4);
  if (brand == "avif" || brand == "avis") return "AVIF";
  if (brand == "heic" || brand == "heix" || brand == "mif1" || brand == "msf1") return "HEIC";
  return {};
}

/// Reads numbers from bytes that may be fewer than expected.
class byte_reader {
 public:
  byte_reader(std::string_view bytes, bool little) : bytes_(bytes), little_(little) {}
  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

/// EXIF's orientation, from 1 to 8; 1 if there is none.
int orientation_of(std::string_view tiff) {
  const byte_reader reader(tiff, tiff.starts_with("II"));
  const std::size_t directory = reader.number(4, 4), entries = reader.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (reader.number(entry, 2) != 0x112) continue;
    const auto found = reader.number(entry + 8, reader.number(entry + 2, 2) == 4 ? 4 : 2);
    return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
  }
  return 1;
}

int orientation_of_jpeg(std::string_view bytes) {
  const byte_reader reader(bytes, false);
  for (std::size_t at = 2; reader.number(at, 1) == 0xff;) {
    const auto marker = reader.number(at + 1, 1), size = reader.number(at + 2, 2);
    if (marker == 0xff) {  // fill
      ++at;
      continue;
    }
    if (marker == 0xda || size < 2) break;
    const auto content = bytes.substr(at + 4, size - 2);
    if (marker == 0xe1 && content.starts_with(std::string_view("Exif\0\0", 6)))
      return orientation_of(content.substr(6));
    at += 2 + size;
  }
  return 1;
}

/// Also checks the checksums of a PNG's chunks.
int orientation_of_png(const std::string& file, std::string_view bytes) {
  const byte_reader reader(bytes, false);
  int orientation = 1;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t size = reader.number(at, 4);
    if (size > bytes.size() - at - 12) break;  // cut off: the decoder reports it
    const auto part = bytes.substr(at + 4, 4 + size);
    if (crc32(0, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size())) !=
        reader.number(at + 8 + size, 4))
      refuse(file, "is damaged: a check sum of the PNG is wrong; get the file again");
    if (part.starts_with("eXIf")) orientation = orientation_of(part.substr(4));
    if (part.starts_with("IEND")) break;
    at += 12 + size;
  }
  return orientation;
}

bool is_bmp(std::string_view bytes) {
  return bytes.starts_with("BM") && byte_reader(bytes, true).number(14, 4) - 12 < 244;  // the header's size
}

/// A BMP of any header with one that stb_image reads: it has all masks and all colours. Without masks, the
/// fourth byte of a pixel means nothing.
std::string with_full_header(std::string_view bytes) {
  constexpr std::size_t size_at = 14, masks_at = 54, full = 108;
  const byte_reader reader(bytes, true);
  const std::size_t pixels_at = reader.number(10, 4), size = reader.number(size_at, 4), end = size_at + size;
  const bool old = size == 12, known = old || size >= 40;  // of OS/2: sides of 16 bits, colours of 3 bytes
  const auto bits = reader.number(old ? 24 : 28, 2), packing = old ? 0 : reader.number(30, 4);
  const bool masks = packing == 3 || packing == 6, alpha = packing == 6 || (masks && size >= 56);
  const std::size_t least = std::max(end, masks_at + (masks ? alpha ? 16 : 12 : 0));
  if (!known || pixels_at < (old ? end : least) || pixels_at > bytes.size()) return std::string(bytes);
  std::string head(size_at + full, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, std::size_t n = 4) {
    std::memcpy(&head[at], &value, n);
  };
  const bool wide = bits == 16 || bits == 32;
  put(0, 0x4d42, 2);
  put(14, full);
  put(18, reader.number(18, old ? 2 : 4));
  put(22, reader.number(old ? 20 : 22, old ? 2 : 4));
  put(26, reader.number(old ? 22 : 26, 2), 2);
  put(28, bits, 2);
  put(30, wide && (packing == 0 || masks) ? 3 : packing);
  constexpr std::uint32_t usual[2][3] = {{0xff0000, 0xff00, 0xff}, {0x7c00, 0x3e0, 0x1f}};
  for (std::size_t i = 0; i < 3; ++i)
    put(masks_at + 4 * i, masks ? reader.number(masks_at + 4 * i, 4) : usual[bits == 16][i]);
  if (alpha) put(masks_at + 12, reader.number(masks_at + 12, 4));
  const std::size_t colour = old ? 3 : 4, colours = bits < 16 ? std::size_t{1} << bits : 0;
  for (std::size_t i = 0, at = end; i < colours; ++i, at += colour) {
    const auto value = at + colour <= pixels_at ? reader.number(at, 3) : 0;
    head.append(
        {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16), '\0'});
  }
  put(10, static_cast<std::uint32_t>(head.size()));
  return head += bytes.substr(pixels_at);
}

/// The input of stb_image, and whether it wanted more.
struct source {
  std::string_view bytes;
  std::size_t at = 0;
  bool past_end = false;
};
constexpr stbi_io_callbacks callbacks{
    [](void* user, char* to, int n) {
      auto& from = *static_cast<source*>(user);
      const auto piece = from.bytes.substr(from.at, static_cast<std::size_t>(n));
      from.past_end |= piece.empty();
      from.at += piece.size();
      std::memcpy(to, piece.data(), piece.size());
      return static_cast<int>(piece.size());
    },
    [](void* user, int n) {
      auto& from = *static_cast<source*>(user);
      const auto to = static_cast<std::int64_t>(from.at) + n,
                 end = static_cast<std::int64_t>(from.bytes.size());
      from.past_end |= to > end;
      from.at = static_cast<std::size_t>(std::clamp<std::int64_t>(to, 0, end));
    },
    [](void* user) {
      const auto& from = *static_cast<source*>(user);
      return from.at == from.bytes.size() ? 1 : 0;
    }};

/// Colours as shades on white. `most`: the greatest value of a colour.
template <class T>
std::vector<float> shades_of(const T* colours, std::size_t pixels, int channels, float most) {
  std::vector<float> shades(pixels);
  const bool transparent = channels % 2 == 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    const T* const c = colours + i * static_cast<std::size_t>(channels);
    const float shade = channels < 3 ? static_cast<float>(c[0])
                                     : 0.299f * static_cast<float>(c[0]) + 0.587f * static_cast<float>(c[1]) +
                                           0.114f * static_cast<float>(c[2]);
    const float share = transparent ? static_cast<float>(c[channels - 1]) / most : 1.f;
    shades[i] = 255 * (share * shade / most + 1 - share);
  }
  return shades;
}

/// A stored picture, rotated and mirrored as it is to be shown.
grey_image shown(grey_image stored, int orientation) {
  if (orientation == 1) return stored;
  const bool swapped = orientation >= 5;
  const bool right_to_left = orientation == 2 || orientation == 3 || orientation >= 7;
  const bool upwards = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto w = static_cast<std::size_t>(stored.width), h = static_cast<std::size_t>(stored.height);
  grey_image result{swapped ? stored.height : stored.width, swapped ? stored.width : stored.height, {}};
  result.pixels.resize(w * h);
  const std::size_t columns = swapped ? h : w;
  for (std::size_t i = 0; i < w * h; ++i) {
    const std::size_t column = i % columns, row = i / columns, x = swapped ? row : column,
                      y = swapped ? column : row;
    result.pixels[i] = stored.pixels[(upwards ? h - 1 - y : y) * w + (right_to_left ? w - 1 - x : x)];
  }
  return result;
}

bool is_netpbm(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
         (std::isspace(static_cast<unsigned char>(bytes[2])) || bytes[2] == '#');
}

/// PBM, PGM and PPM, in text and in bytes.
class netpbm {
 public:
  netpbm(const std::string& file, std::string_view bytes) : file_(file), bytes_(bytes) {}

  grey_image read() {
    const int kind = bytes_[1] - '0';
    const bool text = kind <= 3, bits = kind % 3 == 1, colours = kind % 3 == 0;
    grey_image image;
    image.width = static_cast<int>(number());
    image.height = static_cast<int>(number());
    const std::size_t most = bits ? 1 : number();
    if (most < 1 || most > 65535) bad("shades up to " + std::to_string(most));
    expect_size(file_, image.width, image.height);
    if (!text) ++at_;  // one blank
    const auto w = static_cast<std::size_t>(image.width), h = static_cast<std::size_t>(image.height);
    const std::size_t channels = colours ? 3 : 1,
                      row = bits ? (w + 7) / 8 : w * channels * (most > 255 ? 2 : 1);
    // In text, each number has at least one digit.
    if (at_ > bytes_.size() || (text ? w * channels : row) > (bytes_.size() - at_) / h) cut();
    image.pixels.reserve(w * h);
    const byte_reader reader(bytes_, false);
    const auto value = [&](std::size_t i) -> std::size_t {
      if (text) return bits ? bit() : number();
      if (bits) return reader.number(at_ + i / 8, 1) >> (7 - i % 8) & 1;
      return most > 255 ? reader.number(at_ + 2 * i, 2) : reader.number(at_ + i, 1);
    };
    std::vector<std::uint16_t> found(w * channels);
    for (std::size_t y = 0; y < h; ++y) {
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::size_t v = value(i);
        if (v > most) bad(fmt::format("a shade of {}, {} at most", v, most));
        found[i] = static_cast<std::uint16_t>(bits ? 1 - v : v);
      }
      if (!text) at_ += row;
      const auto shades = shades_of(found.data(), w, static_cast<int>(channels), static_cast<float>(most));
      image.pixels.insert(image.pixels.end(), shades.begin(), shades.end());
    }
    return image;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    refuse(file_, fmt::format("cannot be read as a picture ({} in a {}); convert it to PNG", what,
                              bytes_.substr(0, 2)));
  }
  [[noreturn]] void cut() const { refuse(file_, "was cut off; get the file again"); }

  void skip_blanks() {
    while (at_ < bytes_.size()) {
      if (bytes_[at_] == '#') {
        at_ = std::min(bytes_.find('\n', at_), bytes_.size());
      } else if (std::isspace(static_cast<unsigned char>(bytes_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
    cut();
  }
  std::size_t number() {
    skip_blanks();
    std::uint32_t value = 0;
    const char* const begin = bytes_.data() + at_;
    const auto [end, failure] = std::from_chars(begin, bytes_.data() + bytes_.size(), value);
    if (failure != std::errc{} || value > 1u << 28) bad("a number that cannot be read");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  std::size_t bit() {
    skip_blanks();
    const char c = bytes_[at_++];
    if (c != '0' && c != '1') bad("no bit");
    return c == '1' ? 1 : 0;
  }

  const std::string& file_;
  std::string_view bytes_;
  std::size_t at_ = 2;
};

}  // namespace

void refuse(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file, why));
}

void expect_size(const std::string& file, long width, long height) {
  if (width >= 1 && height >= 1 &&
      static_cast<std::size_t>(width) <= pixels_most / static_cast<std::size_t>(height))
    return;
  refuse(file, fmt::format("is a picture of {} x {} pixels; {} million at most can be read; shrink it", width,
                           height, pixels_most / 1000000));
}

bool is_still(const std::string& bytes) {
  int width, height, colours;
  const bool jpeg = bytes.starts_with("\xff\xd8\xff");  // much may precede the size of a JPEG
  return jpeg || is_netpbm(bytes) || is_bmp(bytes) || !foreign_kind(bytes).empty() ||
         stbi_info_from_memory(data_of(bytes), size_of(bytes), &width, &height, &colours);
}

grey_image read_still(const std::string& file, std::string bytes) {
  if (const auto kind = foreign_kind(bytes); !kind.empty())
    refuse(file, fmt::format("has a {} picture, which cannot be read; convert it to PNG", kind));
  if (is_netpbm(bytes)) return netpbm(file, bytes).read();
  if (is_bmp(bytes)) bytes = with_full_header(bytes);
  // Pixels that the first frame does not cover are transparent, whatever background colour the file gives.
  const bool frames = bytes.starts_with("GIF8");
  if (frames && bytes.size() > 11) bytes[11] = 0;
  if (bytes.size() > std::numeric_limits<int>::max()) refuse(file, "is larger than 2 GiB");
  const auto* const data = data_of(bytes);
  const int size = size_of(bytes);
  grey_image image;
  int channels = 0;
  if (stbi_info_from_memory(data, size, &image.width, &image.height, &channels))
    expect_size(file, image.width, std::abs(long{image.height}));  // negative: a BMP from the top
  int orientation = 1;
  if (bytes.starts_with("\xff\xd8")) orientation = orientation_of_jpeg(bytes);
  if (bytes.starts_with("\x89PNG")) orientation = orientation_of_png(file, bytes);
  source from{bytes};
  const auto take = [&](auto* colours, float most) {
    const std::unique_ptr<void, decltype(&stbi_image_free)> owner(colours, stbi_image_free);
    if (from.past_end) refuse(file, "cannot be read as a picture: it was cut off; get the file again");
    if (colours == nullptr) {
      refuse(file,
             fmt::format("cannot be read as a picture ({}); PNG, JPEG, GIF, BMP, PGM and FITS can be read",
                         stbi_failure_reason()));
    }
    image.pixels =
        shades_of(colours, static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height),
                  channels, most);
  };
  if (stbi_is_16_bit_from_memory(data, size)) {
    take(stbi_load_16_from_callbacks(&callbacks, &from, &image.width, &image.height, &channels, 0), 65535);
  } else {
    take(stbi_load_from_callbacks(&callbacks, &from, &image.width, &image.height, &channels, frames ? 4 : 0),
         255);
  }
  return shown(std::move(image), orientation);
}

}  // namespace roost::tools
