#include "apps/shared/ply.hpp"

#include <cmath>

#include "apps/solids/mesh.hpp"
#include "fuzz.hpp"
#include "roost/error.hpp"

// Any bytes are a mesh or an error.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tools = roost::tools;
  static const fuzzed_file file(".ply");
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto header = tools::read_ply_header(text);
  if (header.understood) tools::missing_in_ply(text, header);
  file.write(text);
  try {
    const auto mesh = tools::read_mesh(file.path());
    for (const auto& p : mesh.vertices)
      expect(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z), "a coordinate is not finite");
    for (const auto& corners : mesh.triangles) {
      for (const auto v : corners) expect(v < mesh.vertices.size(), "a vertex that is not there");
    }
  } catch (const roost::error&) {
  }
  return 0;
}
