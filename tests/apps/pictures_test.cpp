#ifndef __CUDACC__  // nothing runs on a place here

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <roost/error.hpp>
#include <string>

#include "apps/shared/image_file.hpp"

// Pictures from files are what viewers show.

namespace test {
namespace {

using roost::tools::grey_image;

std::string kept(const std::string& name) {
  std::ifstream file(std::string(ROOST_TEST_DATA) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

grey_image read(const std::string& bytes) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("roost-picture-" + std::to_string(std::hash<std::string>{}(bytes)));
  std::ofstream(file, std::ios::binary) << bytes;
  struct remover {
    std::filesystem::path file;
    ~remover() { std::filesystem::remove(file); }
  } const later{file};
  return roost::tools::read_image(file.string());
}
void refused(const std::string& bytes, const std::string& why) {
  try {
    read(bytes);
    FAIL() << "read, not refused: " << why;
  } catch (const roost::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

std::string big_endian(std::size_t number, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(number >> (8 * bytes));
  return text;
}
std::string part(const std::string& name, const std::string& content) {
  const std::string sum = name + content;
  return big_endian(content.size(), 4) + sum +
         big_endian(crc32(0, reinterpret_cast<const Bytef*>(sum.data()), static_cast<uInt>(sum.size())), 4);
}
/// A PNG with one row of pixels.
std::string png(int width, int bits, int kind, const std::string& row, const std::string& more = "") {
  const std::string plain = '\0' + row;
  std::string packed(compressBound(plain.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
           plain.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         part("IHDR", big_endian(static_cast<std::size_t>(width), 4) + big_endian(1, 4) +
                          static_cast<char>(bits) + static_cast<char>(kind) + std::string(3, '\0')) +
         more + part("IDAT", packed) + part("IEND", "");
}
void shows(const grey_image& image, const std::vector<float>& shades) {
  ASSERT_EQ(image.pixels.size(), shades.size());
  for (std::size_t i = 0; i < shades.size(); ++i) EXPECT_NEAR(image.pixels[i], shades[i], 0.6) << i;
}

TEST(pictures, are_turned_and_mirrored_as_exif_says) {
  // Shades are 20 + 7 x + 4 y, 24 x 16 pixels.
  std::string jpeg = kept("turned.jpg");
  ASSERT_EQ(jpeg.size(), 242u);
  // Of each orientation, the stored pixels that are shown in the upper left, right and the lower left corner.
  struct corner {
    int x, y;
  };
  constexpr int w = 24, h = 16;
  constexpr corner corners[8][3] = {{{0, 0}, {23, 0}, {0, 15}},   {{23, 0}, {0, 0}, {23, 15}},
                                    {{23, 15}, {0, 15}, {23, 0}}, {{0, 15}, {23, 15}, {0, 0}},
                                    {{0, 0}, {0, 15}, {23, 0}},   {{0, 15}, {0, 0}, {23, 15}},
                                    {{23, 15}, {23, 0}, {0, 15}}, {{23, 0}, {23, 15}, {0, 0}}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    jpeg[49] = static_cast<char>(orientation);
    const auto image = read(jpeg);
    ASSERT_EQ(image.width, orientation < 5 ? w : h) << orientation;
    ASSERT_EQ(image.height, orientation < 5 ? h : w);
    const auto last = static_cast<std::size_t>(image.width) - 1;
    const std::size_t at[] = {0, last, image.pixels.size() - 1 - last};
    for (int i = 0; i < 3; ++i) {
      const auto [x, y] = corners[orientation - 1][i];
      EXPECT_NEAR(image.pixels[at[i]], 20 + 7 * x + 4 * y, 6) << orientation << " corner " << i;
    }
  }
  for (const int none : {0, 9}) {  // is no orientation
    jpeg[49] = static_cast<char>(none);
    EXPECT_EQ(read(jpeg).width, w);
  }
  refused(jpeg.substr(0, jpeg.size() - 4), "was cut off");
}

TEST(pictures, of_png_are_on_white_where_they_are_transparent) {
  const std::string red_blue_white("\xff\0\0\xff\0\0\xff\x80\xff\xff\xff\0", 12);
  shows(read(png(3, 8, 6, red_blue_white)), {76.2f, 255 - 128.f / 255 * (255 - 29.07f), 255});
  shows(read(png(3, 8, 4, std::string("\x14\xff\x14\x80\x14\0", 6))), {20, 255 - 128.f / 255 * 235, 255});
  shows(read(png(2, 16, 0, std::string("\x80\0\0\xff", 4))), {127.5f, 1});
  shows(read(png(2, 16, 4, std::string("\0\0\x80\0\0\0\xff\xff", 8))), {127.5f, 0});
  shows(read(png(9, 1, 0, std::string("\xaa\x80", 2))), {255, 0, 255, 0, 255, 0, 255, 0, 255});
  const auto palette = part("PLTE", std::string("\x0a\x0a\x0a\xc8\xc8\xc8\0\0\0", 9));
  shows(read(png(4, 2, 3, std::string("\x18", 1), palette)), {10, 200, 0, 10});
  shows(read(png(4, 2, 3, std::string("\x18", 1), palette + part("tRNS", std::string("\xff\xff\0", 3)))),
        {10, 200, 255, 10});
  shows(read(png(2, 8, 0, "\x0a\x14", part("tRNS", std::string("\0\x14", 2)))), {10, 255});
  const auto exif = part("eXIf", std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0", 22));
  shows(read(png(2, 8, 0, "\x0a\x14", exif)), {20, 10});
  auto damaged = png(2, 8, 0, "\x0a\x14", exif);
  damaged[damaged.find("eXIf") + 6] ^= 1;
  refused(damaged, "is damaged");
  const auto whole = png(3, 8, 6, red_blue_white);
  refused(whole.substr(0, whole.size() - 20), "cannot be read as a picture");
}

TEST(pictures, of_gif_are_white_where_nothing_is_drawn) {
  // 2 x 1 pixels: colour 1, then colour 2, which is transparent; colour 3 is said to lie behind.
  const std::string gif(
      "GIF89a\2\0\1\0\x91\3\0\0\0\0\x64\x64\x64\x32\x32\x32\x0a\x0a\x0a"
      "\x21\xf9\4\1\0\0\2\0\x2c\0\0\0\0\2\0\1\0\0\2\2\x8c\x0a\0\x3b",
      50);
  const auto image = read(gif);
  shows(image, {100, 255});
}

std::string little_endian(std::size_t number, int bytes) {
  const auto text = big_endian(number, bytes);
  return {text.rbegin(), text.rend()};
}
/// A BMP of 2 x 2 pixels. `rows`: from the top; `more`: behind the header of `size` bytes.
std::string bmp(std::size_t size, std::size_t bits, bool top, const std::string (&rows)[2],
                std::size_t packing = 0, const std::string& masks = "", std::string more = "") {
  std::string header = little_endian(size, 4);
  for (const std::size_t side : {std::size_t{2}, top ? std::size_t{0xfffffffe} : std::size_t{2}})
    header += little_endian(side, size == 12 ? 2 : 4);
  header += little_endian(1, 2) + little_endian(bits, 2);
  if (size != 12) header += little_endian(packing, 4) + std::string(20, '\0') + masks;
  if (header.size() < size) header.resize(size);
  header += more;
  return "BM" + std::string(8, '\0') + little_endian(14 + header.size(), 4) + header + rows[!top] + rows[top];
}

TEST(pictures, of_bmp_have_any_header_and_order_of_rows) {
  const auto grey = [](std::size_t bytes, const std::string& shades, char last) {
    std::string row;
    for (const char shade : shades) row += std::string(3, shade) + (bytes == 4 ? std::string(1, last) : "");
    return row + std::string(bytes == 4 ? 0 : 2, '\0');
  };
  const std::string upper("\x0a\x14"), lower("\x1e\x28"), gap(8, '\0');
  for (const bool top : {false, true}) {
    for (const std::size_t size : {40, 52, 56, 64, 108, 124}) {
      shows(read(bmp(size, 24, top, {grey(3, upper, 0), grey(3, lower, 0)})), {10, 20, 30, 40});
      for (const char fourth : {'\0', '\x7f'}) {
        const std::string rows[] = {grey(4, upper, fourth), grey(4, lower, '\xff')};
        shows(read(bmp(size, 32, top, rows, 0, "", gap)), {10, 20, 30, 40});
      }
      std::string colours(64, '\0');
      for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = static_cast<char>(i / 4 * 10);
      shows(read(bmp(size, 4, top, {std::string("\xf1\0\0\0", 4), std::string("\x2e\0\0\0", 4)}, 0, "",
                     colours)),
            {150, 10, 20, 140});
    }
    const std::string masks("\0\0\0\xff\0\0\xff\0\0\xff\0\0\xff\0\0\0", 16);
    const std::string rows[] = {std::string("\xff\x0a\x0a\x0a\0\x14\x14\x14", 8),
                                std::string("\x7f\0\0\0\xff\x28\x28\x28", 8)};
    for (const std::size_t size : {56, 108, 124})
      shows(read(bmp(size, 32, top, rows, 3, masks)), {10, 255, 128, 40});
    shows(read(bmp(40, 32, top, rows, 6, masks)), {10, 255, 128, 40});
    for (const std::size_t size : {40, 52})
      shows(read(bmp(size, 32, top, rows, 3, masks.substr(0, 12))), {10, 20, 0, 40});
  }
  std::string colours(48, '\0');  // of three bytes
  for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = static_cast<char>(i / 3 * 10);
  const std::string rows[] = {std::string("\xf1\0\0\0", 4), std::string("\x2e\0\0\0", 4)};
  shows(read(bmp(12, 4, false, rows, 0, "", colours)), {150, 10, 20, 140});
  auto tall = bmp(40, 24, true, {grey(3, upper, 0), grey(3, lower, 0)});
  refused(tall.substr(0, tall.size() - 3), "was cut off");
  tall.replace(22, 4, little_endian(0x80000000, 4));
  refused(tall, "is a picture of 2 x 2147483648 pixels");
  refused(bmp(40, 32, false, rows, 3), "cannot be read as a picture");
  refused(bmp(40, 8, false, rows, 1), "cannot be read as a picture (BMP RLE)");
}

TEST(pictures, of_netpbm_are_read_as_text_and_as_bytes) {
  shows(read("P2\n# a comment\n3 1 # another\n15\n0 15 3\n"), {0, 255, 51});
  shows(read("P5 2 1 100\n\x32\x64"), {127.5f, 255});
  shows(read(std::string("P5\n2 1\n1023\n\x03\xff\x02\0", 16)), {255, 127.6f});
  shows(read("P3\n1 2\n255\n255 0 0 0 0 255\n"), {76.2f, 29.1f});
  shows(read("P6\n1 1\n255\n\xff\xff\xff"), {255});
  shows(read("P1\n3 2\n101\n0 1 0\n"), {0, 255, 0, 255, 0, 255});
  shows(read("P4\n9 2\n\xff\x80\x80\x80"),
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 0});
  refused("P5 4 4 255\n123", "was cut off");
  refused("P2\n2 1\n255\n7", "was cut off");
  refused("P2\n2 1\n9\n7 10", "a shade of 10, 9 at most");
  refused("P2\n2 1\n9\n7 x", "a number that cannot be read");
  refused("P5 2 1 0\n12", "shades up to 0");
  refused("P5 -2 1 255\n12", "a number that cannot be read");
}

TEST(pictures, of_other_kinds_are_refused_by_their_names) {
  refused(std::string("II*\0\x08\0\0\0", 8), "has a TIFF picture, which cannot be read; convert it to PNG");
  refused(std::string("RIFF\x10\0\0\0WEBPVP8 ", 16), "has a WebP picture");
  refused(std::string("\0\0\0\x1c"
                      "ftypheic\0\0\0\0",
                      16),
          "has a HEIC picture");
  refused(std::string("\0\0\0\x1c"
                      "ftypavif\0\0\0\0",
                      16),
          "has a AVIF picture");
}

}  // namespace
}  // namespace test

#endif
