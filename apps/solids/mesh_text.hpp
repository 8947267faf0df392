#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Readers of the mesh files that are lists of numbers: OBJ, STL, OFF and 3DS. All numbers are read as
/// doubles; assimp would read them as floats, which are half a unit apart at 5,400,000.

namespace roost::tools {

/// The contents of a mesh file: corners, and polygons of them.
struct polygons {
  std::vector<std::array<double, 3>> vertices;
  std::vector<std::int64_t> corners;  ///< of all faces: numbers of vertices, not checked
  std::vector<std::size_t> ends;      ///< of each face in `corners`
  bool floats = false;                ///< the file, or its reader, stores coordinates as floats
  double blur = 0;                    ///< how far vertices may be from where the file's author had them
  std::vector<std::string> notes;     ///< what was left out, and what is unusual
};

/// Throws invalid_argument: why a file is not read, without its name.
[[noreturn]] void refuse_because(const std::string& why);

/// A text that begins with the mark of UTF-16, as bytes, with '?' for what is not ASCII; others as they are.
std::string without_utf16(std::string text);

/// Half the distance from |x| to the next float.
double half_step(double x);

/// Each takes the contents of a file, and throws invalid_argument, without the file's name, for an invalid
/// one.
polygons read_obj(std::string_view text);
polygons read_stl(std::string_view bytes);
polygons read_off(std::string_view text);
/// Parts as they stand in the file; keyframes move none of them.
polygons read_3ds(std::string_view bytes);

}  // namespace roost::tools
