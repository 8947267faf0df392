#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output_file.hpp"

/// \file
/// Arrays in NumPy's file formats.

namespace roost::tools {

/// The header of an array in a file: `type` is NumPy's descr, with its quotes; `shape` the contents of a
/// tuple (`5, 3`, `5,`, or nothing for a single number). Rows first. Its size is a multiple of 64 bytes.
std::string npy_header(std::string_view type, std::string_view shape);

/// Named arrays in one file (`.npz`), an uncompressed zip archive. The file appears in finish(). Throws
/// roost::error if it cannot be written.
class npz_file {
 public:
  /// Sizes and offsets from `short_of` on are written with 64 bits (zip64).
  explicit npz_file(const std::string& file, std::uint64_t short_of = 0xffffffff)
      : out_(file), short_of_(short_of) {}

  /// Costs two passes over the bytes: their checksum comes before them.
  void add(std::string_view name, std::string_view type, std::string_view shape, std::string_view bytes);

  void finish();

 private:
  void write(std::string_view bytes);

  output_file out_;
  std::uint64_t short_of_, at_ = 0, arrays_ = 0;
  std::string directory_;  // written at the end
};

}  // namespace roost::tools
