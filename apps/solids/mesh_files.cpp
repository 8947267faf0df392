#include "mesh_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <roost/error.hpp>

#include "apps/shared/output_file.hpp"

namespace roost::tools {
namespace {

template <class T>
void put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

using float3 = std::array<float, 3>;

float3 as_floats(const vec3& p) {
  return {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])};
}

std::string as_ply(const surface_mesh& mesh, bool doubles) {
  const char* const type = doubles ? "double" : "float";
  std::string result = fmt::format(
      "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty {} x\nproperty {} y\nproperty {} z\n"
      "element face {}\nproperty list uchar int vertex_indices\nend_header\n",
      mesh.vertices.size(), type, type, type, mesh.triangles.size());
  for (const auto& v : mesh.vertices) doubles ? put(result, v) : put(result, as_floats(v));
  for (const auto& t : mesh.triangles) {
    put(result, std::uint8_t{3});
    put(result, t);
  }
  return result;
}

std::string as_obj(const surface_mesh& mesh, bool doubles) {
  std::string result;
  const auto to = std::back_inserter(result);
  for (const auto& v : mesh.vertices) {
    const auto f = as_floats(v);
    doubles ? fmt::format_to(to, "v {} {} {}\n", v[0], v[1], v[2])
            : fmt::format_to(to, "v {} {} {}\n", f[0], f[1], f[2]);
  }
  for (const auto& t : mesh.triangles) fmt::format_to(to, "f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1);
  return result;
}

std::string as_stl(const surface_mesh& mesh) {
  std::string result(80, ' ');
  put(result, static_cast<std::uint32_t>(mesh.triangles.size()));
  for (const auto& t : mesh.triangles) {
    const auto &a = mesh.vertices[t[0]], &b = mesh.vertices[t[1]], &c = mesh.vertices[t[2]];
    vec3 normal;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t u = (k + 1) % 3, v = (k + 2) % 3;
      normal[k] = (b[u] - a[u]) * (c[v] - a[v]) - (b[v] - a[v]) * (c[u] - a[u]);
    }
    const double length = std::hypot(normal[0], normal[1], normal[2]);
    for (auto& n : normal) n = length == 0 ? 0 : n / length;
    for (const auto& p : {normal, a, b, c}) put(result, as_floats(p));
    put(result, std::uint16_t{0});
  }
  return result;
}

std::string as_glb(const surface_mesh& mesh, double metres) {
  using json = nlohmann::ordered_json;
  constexpr std::uint32_t float_type = 5126, index_type = 5125, points = 34962, indices = 34963;
  std::string data;
  float3 low, high;
  low.fill(std::numeric_limits<float>::infinity());
  high.fill(-std::numeric_limits<float>::infinity());
  for (const auto& v : mesh.vertices) {
    const auto p = as_floats(v);
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], p[k]);
      high[k] = std::max(high[k], p[k]);
    }
    put(data, p);
  }
  const std::size_t first = data.size();
  for (const auto& t : mesh.triangles) put(data, t);
  json node{{"mesh", 0}};
  if (metres != 0 && metres != 1) node["scale"] = {metres, metres, metres};
  const json told{
      {"asset", {{"version", "2.0"}, {"generator", "roost voxels"}}},
      {"scene", 0},
      {"scenes", {{{"nodes", {0}}}}},
      {"nodes", json::array({node})},
      {"meshes", {{{"primitives", {{{"attributes", {{"POSITION", 0}}}, {"indices", 1}}}}}}},
      {"accessors",
       {{{"bufferView", 0},
         {"componentType", float_type},
         {"count", mesh.vertices.size()},
         {"type", "VEC3"},
         {"min", low},
         {"max", high}},
        {{"bufferView", 1},
         {"componentType", index_type},
         {"count", 3 * mesh.triangles.size()},
         {"type", "SCALAR"}}}},
      {"bufferViews",
       {{{"buffer", 0}, {"byteOffset", 0}, {"byteLength", first}, {"target", points}},
        {{"buffer", 0}, {"byteOffset", first}, {"byteLength", data.size() - first}, {"target", indices}}}},
      {"buffers", {{{"byteLength", data.size()}}}}};
  std::string text = told.dump();
  text.resize((text.size() + 3) / 4 * 4, ' ');
  const std::size_t size = 12 + 8 + text.size() + 8 + data.size();
  if (size > std::numeric_limits<std::uint32_t>::max())
    throw invalid_argument("a .glb file holds at most 4 GiB; take a coarser grid, or .ply");
  std::string result = "glTF";
  put(result, std::uint32_t{2});
  put(result, static_cast<std::uint32_t>(size));
  put(result, static_cast<std::uint32_t>(text.size()));
  result += "JSON" + text;
  put(result, static_cast<std::uint32_t>(data.size()));
  result += std::string("BIN\0", 4) + data;
  return result;
}

}  // namespace

void write_triangles(const surface_mesh& mesh, bool doubles, double metres,
                     const std::filesystem::path& file) {
  const auto name = file.string();
  const bool floats = name.ends_with(".stl") || name.ends_with(".glb");
  if (floats && doubles) {
    throw invalid_argument(
        fmt::format("{}: holds floats, which are too coarse so far away from 0; export .ply or .obj", name));
  }
  output_file to(name);
  to.write(name.ends_with(".obj")   ? as_obj(mesh, doubles)
           : name.ends_with(".stl") ? as_stl(mesh)
           : name.ends_with(".glb") ? as_glb(mesh, metres)
                                    : as_ply(mesh, doubles));
  to.finish();
}

}  // namespace roost::tools
