#include "apps/solids/mesh.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "apps/solids/model_files.hpp"
#include "fuzz.hpp"
#include "roost/error.hpp"

// Any bytes are a mesh or an error: as a file with the ending that the first byte chooses, or as the parts of
// a 3MF package, which 0 bytes separate.

namespace {

namespace tools = roost::tools;

void read_package(std::string_view rest) {
  static constexpr std::string_view names[] = {"_rels/.rels", "3d/3dmodel.model", "3d/a.model",
                                               "metadata/model_settings.config"};
  std::array<std::optional<std::string>, std::size(names)> parts;
  for (auto& part : parts) {
    const auto end = std::min(rest.find('\0'), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto model = tools::read_3mf([&](std::string_view name) -> std::optional<std::string> {
    const auto found = std::ranges::find(names, tools::part_name(name));
    if (found == std::end(names)) return {};
    return parts[static_cast<std::size_t>(found - std::begin(names))];
  });
  for (const auto corner : model.shape.corners)
    expect(corner >= 0 && static_cast<std::size_t>(corner) < model.shape.vertices.size(), "a vertex");
}

void read_file(const std::filesystem::path& file) {
  const auto mesh = tools::read_mesh(file);
  for (const auto& p : mesh.vertices)
    expect(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z), "a coordinate is not finite");
  for (const auto& corners : mesh.triangles) {
    for (const auto v : corners) expect(v < mesh.vertices.size(), "a vertex that is not there");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<fuzzed_file, 9> files{
      fuzzed_file(".obj"),    fuzzed_file(".off"),  fuzzed_file(".stl"),
      fuzzed_file(".amf"),    fuzzed_file(".3mf"),  fuzzed_file(".3ds"),
      fuzzed_file(".obj.gz"), fuzzed_file(".gltf"), fuzzed_file(".glb")};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kind = text.empty() ? 0 : static_cast<std::size_t>(data[0]) % (files.size() + 1);
  const auto rest = text.substr(std::min<std::size_t>(1, size));
  try {
    if (kind == files.size()) {
      read_package(rest);
    } else {
      files[kind].write(rest);
      read_file(files[kind].path());
    }
  } catch (const roost::error&) {
  }
  return 0;
}
