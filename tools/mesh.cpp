#include "mesh.hpp"

#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <fmt/format.h>

#include <algorithm>
#include <assimp/Importer.hpp>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <roost/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "ply.hpp"

namespace roost::tools {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string why) {
  std::ranges::replace(why, '\n', ' ');  // assimp's messages may have several lines; ours have one
  throw invalid_argument(fmt::format("{}: {}", file.string(), why));
}

/// Opens the file, so that what is wrong with it is said by its name and not by a format's reader.
std::ifstream open(const std::filesystem::path& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) refuse(file, "there is no such file; check the path");
  if (std::filesystem::is_directory(status)) refuse(file, "is a directory; name a mesh file in it");
  if (!std::filesystem::is_regular_file(status))
    refuse(file, "is not a regular file; a mesh cannot be read from it");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, "cannot be opened; check its permissions");
  if (stream.peek() == std::ifstream::traits_type::eof()) refuse(file, "is empty; a mesh file was expected");
  return stream;
}

/// PLY by its name or by its first word, in any case: assimp takes it for one then.
bool is_ply(const std::filesystem::path& file, std::ifstream& stream) {
  char start[3] = {};
  stream.read(start, sizeof(start));
  stream.clear();
  stream.seekg(0);
  const auto lower = [](std::string word) {
    for (auto& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return word;
  };
  return lower(file.extension().string()) == ".ply" || lower(std::string(start, sizeof(start))) == "ply";
}

/// Refuses a PLY file that assimp would stumble over, and renames triangle strips to faces: as such
/// assimp reads them with all their indices. Returns whether there are any.
bool prepare_ply(const std::filesystem::path& file, std::string& text) {
  const auto header = read_ply_header(text);
  if (!header.understood)
    refuse(file, "has no proper PLY header ('ply' ... 'end_header'); it is damaged or cut short");
  if (const auto missing = missing_in_ply(text, header); !missing.empty()) {
    refuse(file, fmt::format("{}; it is damaged or cut short", missing));
  }
  if (header.count("tristrips") == 0) return false;
  if (header.count("face") != 0) refuse(file, "has faces and triangle strips; write it with one of them");
  const auto name = std::ranges::find(header.elements, "tristrips", &ply_element::name)->name;
  text.replace(static_cast<std::size_t>(name.data() - text.data()), name.size(), "face");
  return true;
}

/// Throws for the first vertex that is not finite, and for the first face that is not made of
/// vertices.
void check(const std::filesystem::path& file, const aiMesh& part, bool strips) {
  const auto finite = [](const aiVector3D& v) {
    return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z);
  };
  const std::span vertices(part.mVertices, part.mNumVertices);
  const std::span faces(part.mFaces, part.mFaces == nullptr ? 0 : part.mNumFaces);
  for (std::size_t f = 0; f < faces.size(); ++f) {
    const std::span corners(faces[f].mIndices, faces[f].mNumIndices);
    if (corners.empty())
      refuse(file, fmt::format("face {} has no corners; the file is damaged or cut short", f + 1));
    for (const auto corner : corners) {
      if (strips && corner == strip_end) continue;
      if (corner >= vertices.size()) {
        refuse(file, fmt::format("face {} names vertex {}, but there are {} vertices; the file is damaged",
                                 f + 1, std::uint64_t{corner} + 1, vertices.size()));
      }
      if (const auto& v = vertices[corner]; !finite(v)) {
        refuse(file, fmt::format("vertex ({}, {}, {}) of face {} is not finite; repair the mesh", v.x, v.y,
                                 v.z, f + 1));
      }
    }
  }
  if (const auto bad = std::ranges::find_if_not(vertices, finite); bad != vertices.end()) {
    refuse(file, fmt::format("vertex {} ({}, {}, {}) is not finite; repair the mesh",
                             bad - vertices.begin() + 1, bad->x, bad->y, bad->z));
  }
}

/// Adds what hangs below a node of the scene, put where the scene has it.
void add(const aiScene& scene, const aiNode& node, const aiMatrix4x4& above, bool strips, mesh& result) {
  const auto here = above * node.mTransformation;
  for (const auto index : std::span(node.mMeshes, node.mNumMeshes)) {
    const auto& part = *scene.mMeshes[index];
    const auto first = result.vertices.size();
    if (first + part.mNumVertices > strip_end)
      throw invalid_argument("a mesh has at most 2^32 - 1 vertices; use a smaller one");
    for (auto v : std::span(part.mVertices, part.mNumVertices)) {
      v *= here;
      result.vertices.push_back({v.x, v.y, v.z});
    }
    const auto add_triangle = [&](const triangle& t) {
      const auto base = static_cast<std::uint32_t>(first);
      result.triangles.push_back({base + t[0], base + t[1], base + t[2]});
    };
    for (const auto& face : std::span(part.mFaces, part.mFaces == nullptr ? 0 : part.mNumFaces)) {
      if (strips) {
        std::ranges::for_each(triangles_of_strips({face.mIndices, face.mNumIndices}), add_triangle);
      } else if (face.mNumIndices == 3) {
        add_triangle({face.mIndices[0], face.mIndices[1], face.mIndices[2]});
      }
    }
  }
  for (const auto* child : std::span(node.mChildren, node.mNumChildren))
    add(scene, *child, here, strips, result);
}

}  // namespace

std::vector<triangle> triangles_of_strips(std::span<const std::uint32_t> indices) {
  std::vector<triangle> triangles;
  std::size_t begin = 0;  // of the strip
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == strip_end) {
      begin = i + 1;
    } else if (i >= begin + 2) {
      auto a = indices[i - 2], b = indices[i - 1];
      const auto c = indices[i];
      if (a == b || b == c || c == a) continue;
      if ((i - begin) % 2 != 0) std::swap(a, b);  // every other triangle of a strip is turned over
      triangles.push_back({a, b, c});
    }
  }
  return triangles;
}

mesh read_mesh(const std::filesystem::path& file) {
  auto stream = open(file);
  Assimp::Importer importer;
  const aiScene* scene = nullptr;
  bool strips = false;
  if (is_ply(file, stream)) {
    std::string text(std::istreambuf_iterator<char>(stream), {});
    strips = prepare_ply(file, text);
    scene = importer.ReadFileFromMemory(text.data(), text.size(), 0, "ply");
  } else {
    scene = importer.ReadFile(file.string(), 0);
  }
  const auto explain = [&] {
    refuse(file, fmt::format("cannot be read as a mesh: {}", importer.GetErrorString()));
  };
  if (scene == nullptr) explain();
  for (const auto* part : std::span(scene->mMeshes, scene->mNumMeshes)) check(file, *part, strips);
  if (!strips) scene = importer.ApplyPostProcessing(aiProcess_Triangulate);
  if (scene == nullptr) explain();

  mesh result;
  if (scene->mRootNode != nullptr) add(*scene, *scene->mRootNode, aiMatrix4x4(), strips, result);
  if (result.triangles.empty()) {
    refuse(file, fmt::format("has {} vertices but no triangles; a surface is needed, not a cloud of points",
                             result.vertices.size()));
  }
  for (const auto& v : result.vertices) {
    if (!std::isfinite(v.x) || !std::isfinite(v.y) || !std::isfinite(v.z)) {
      refuse(file, fmt::format("vertex ({}, {}, {}), as the scene places it, is not finite; repair the mesh",
                               v.x, v.y, v.z));
    }
  }
  return result;
}

std::vector<std::filesystem::path> mesh_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const Assimp::Importer importer;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const auto ending = entry.path().extension().string();
    if (!ending.empty() && importer.IsExtensionSupported(ending) && entry.is_regular_file(failure))
      files.push_back(entry.path());
  }
  if (failure) refuse(folder, fmt::format("cannot be read: {}", failure.message()));
  if (files.empty()) refuse(folder, "has no mesh files; name a folder of OBJ, PLY, STL, glTF ... files");
  std::ranges::sort(files, [](const auto& a, const auto& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
  return files;
}

}  // namespace roost::tools
