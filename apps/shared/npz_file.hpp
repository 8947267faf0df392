#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output_file.hpp"

/// \file
/// Arrays as NumPy's files have them.

namespace roost::tools {

/// What an array begins with in a file: `type` is what NumPy calls descr, with its quotes; `shape` the sides
/// between the brackets of a tuple (`5, 3`, `5,`, or nothing for a single number). Rows first. A multiple of
/// 64 bytes.
std::string npy_header(std::string_view type, std::string_view shape);

/// Named arrays in one file (`.npz`), an archive of zip that does not compress. The file appears in finish().
/// Throws roost::error where it cannot be written.
class npz_file {
 public:
  /// Sizes and places from `short_of` on are written with 64 bits (zip64).
  explicit npz_file(const std::string& file, std::uint64_t short_of = 0xffffffff)
      : out_(file), short_of_(short_of) {}

  /// Costs two passes over the bytes: their checksum comes before them.
  void add(std::string_view name, std::string_view type, std::string_view shape, std::string_view bytes);

  void finish();

 private:
  void write(std::string_view bytes);

  output_file out_;
  std::uint64_t short_of_, at_ = 0, arrays_ = 0;
  std::string directory_;  // what comes at the end
};

}  // namespace roost::tools
