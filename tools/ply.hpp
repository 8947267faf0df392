#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// A look at PLY files before assimp reads them. assimp 5.2 loops for ever where it does not
/// understand a header, believes every number in a file, repeats the last line of a text that is
/// cut short, and reads one triangle of a triangle strip.

namespace roost::tools {

struct ply_property {
  unsigned count_bytes = 0;  ///< of a list: the size of the number that says how many values
                             ///< follow; 0: one value, no list
  bool count_signed = false;
  unsigned bytes = 0;  ///< of a value
  bool floating = false;
  std::string_view name;  ///< in the file
};

struct ply_element {
  std::string_view name;  ///< in the file: `vertex`, `face`, `tristrips` ...
  std::uint64_t count = 0;
  std::vector<ply_property> properties;
};

struct ply_header {
  bool understood = false;  ///< all that follows is what the file says, down to `end_header`
  bool ascii = false, big_endian = false;
  std::vector<ply_element> elements;  ///< no two of one name
  std::size_t bytes = 0;              ///< of the header

  /// How many elements of a name there are.
  std::uint64_t count(std::string_view name) const;
};

/// Reads the header of a PLY file. Stops, not understood, at the first line that is no PLY.
ply_header read_ply_header(std::string_view file);

/// Says what is missing in a PLY file whose header was understood: empty if every element that it
/// announces is there.
std::string missing_in_ply(std::string_view file, const ply_header& header);

}  // namespace roost::tools
