#include "npz_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <bit>

namespace roost::tools {
namespace {

template <class T>
std::string little(T value) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

constexpr std::uint16_t as_it_is = 0, midnight = 0, first_of_1980 = 0x21;  // method, time, date

}  // namespace

std::string npy_header(std::string_view type, std::string_view shape) {
  auto text = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr std::size_t before = 10;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += little(static_cast<std::uint16_t>(text.size()));
  return header + text;
}

void npz_file::write(std::string_view bytes) {
  constexpr std::size_t piece = 1 << 20;  // output_file copies each piece
  for (std::size_t i = 0; i < bytes.size(); i += piece) out_.write(bytes.substr(i, piece));
  at_ += bytes.size();
}

void npz_file::add(std::string_view name, std::string_view type, std::string_view shape,
                   std::string_view bytes) {
  const auto head = npy_header(type, shape), file = fmt::format("{}.npy", name);
  auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  const std::uint64_t size = head.size() + bytes.size(), begin = at_;
  // A reader expects a 64-bit number if all 32 bits are set.
  const bool long_size = size >= short_of_, long_place = begin >= short_of_;
  const auto short_size = long_size ? 0xffffffffu : static_cast<std::uint32_t>(size);
  const auto sizes = long_size ? little(size) + little(size) : std::string();
  const auto extra = [](const std::string& longs) {
    const auto length = static_cast<std::uint16_t>(longs.size());
    return longs.empty() ? longs : little(std::uint16_t{1}) + little(length) + longs;
  };
  const auto place = extra(sizes + (long_place ? little(begin) : std::string()));
  const std::uint16_t version = long_size || long_place ? 45 : 20;
  const auto common = [&](const std::string& more) {
    return little(version) + little(std::uint16_t{0}) + little(as_it_is) + little(midnight) +
           little(first_of_1980) + little(static_cast<std::uint32_t>(sum)) + little(short_size) +
           little(short_size) + little(static_cast<std::uint16_t>(file.size())) +
           little(static_cast<std::uint16_t>(more.size()));
  };
  write("PK\3\4" + common(extra(sizes)) + file + extra(sizes));
  write(head);
  write(bytes);
  directory_ += "PK\1\2" + little(version) + common(place) + std::string(10, '\0') +
                little(long_place ? 0xffffffffu : static_cast<std::uint32_t>(begin)) + file + place;
  ++arrays_;
}

void npz_file::finish() {
  const std::uint64_t begin = at_, size = directory_.size();
  write(directory_);
  const bool is_long = begin >= short_of_ || size >= short_of_;
  if (is_long) {
    const std::uint64_t end = at_;
    constexpr std::uint16_t version = 45;
    write("PK\6\6" + little(std::uint64_t{44}) + little(version) + little(version) + std::string(8, '\0') +
          little(arrays_) + little(arrays_) + little(size) + little(begin));
    write("PK\6\7" + std::string(4, '\0') + little(end) + little(std::uint32_t{1}));
  }
  const auto arrays = little(static_cast<std::uint16_t>(arrays_));
  write("PK\5\6" + std::string(4, '\0') + arrays + arrays +
        little(is_long ? 0xffffffffu : static_cast<std::uint32_t>(size)) +
        little(is_long ? 0xffffffffu : static_cast<std::uint32_t>(begin)) + std::string(2, '\0'));
  out_.finish();
}

}  // namespace roost::tools
