#include "mesh.hpp"

#include <assimp/config.h>
#include <assimp/importerdesc.h>
#include <assimp/metadata.h>
#include <assimp/scene.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <assimp/DefaultLogger.hpp>
#include <assimp/Importer.hpp>
#include <assimp/LogStream.hpp>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <roost/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "apps/shared/ply.hpp"
#include "gltf.hpp"
#include "mesh_text.hpp"
#include "model_files.hpp"
#include "placement.hpp"
#include "polygon.hpp"

namespace roost::tools {
namespace {

/// Endings of the files that are read here, and of those that assimp reads; glTF besides.
constexpr std::string_view ours[] = {".3ds", ".3mf", ".amf", ".obj", ".off", ".ply", ".stl"};
constexpr std::string_view assimps[] = {".dae", ".fbx"};

[[noreturn]] void refuse(const std::filesystem::path& file, std::string why) {
  std::ranges::replace(why, '\n', ' ');  // assimp's messages may have several lines, ours have one
  throw invalid_argument(fmt::format("{}: {}", file.string(), why));
}

/// Refuses what is no file that can be read, so that errors do not come from a format's reader.
void expect_file(const std::filesystem::path& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) refuse(file, "there is no such file; check the path");
  if (std::filesystem::is_directory(status)) refuse(file, "is a directory; name a mesh file in it");
  if (!std::filesystem::is_regular_file(status))
    refuse(file, "is not a regular file; a mesh cannot be read from it");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, "cannot be opened; check its permissions");
  if (stream.peek() == std::ifstream::traits_type::eof()) refuse(file, "is empty; a mesh file was expected");
}

std::string lower(std::string word) {
  for (auto& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

/// The bytes of a file, decompressed if they are of gzip.
std::string content_of(const std::filesystem::path& file) {
  constexpr std::size_t piece = 1 << 20, most = std::size_t{1} << 32;
  auto* const stream = gzopen(file.c_str(), "rb");
  if (stream == nullptr) refuse(file, "cannot be opened; check its permissions");
  std::string content;
  int got = 1;
  while (got > 0 && (content.size() <= most || gzdirect(stream) != 0)) {
    const auto size = content.size();
    content.resize(size + piece);
    got = gzread(stream, content.data() + size, piece);
    content.resize(size + static_cast<std::size_t>(std::max(got, 0)));
  }
  const bool sound = gzclose(stream) == Z_OK;  // also false if the file ends too early
  if (got > 0) refuse(file, "has more than 4 GiB when it is decompressed; use a smaller mesh");
  if (got < 0 || !sound) refuse(file, "cannot be read or decompressed; it is damaged or cut short");
  return content;
}

/// The ending of a name, before that of gzip if there is one.
std::string ending_of(const std::filesystem::path& file) {
  const auto last = lower(file.extension().string());
  return last == ".gz" ? lower(file.stem().extension().string()) : last;
}

/// Whether a file is PLY by its name or by its first word, in upper or lower case: then assimp reads it as
/// PLY.
bool is_ply(const std::string& ending, std::string_view content) {
  return ending == ".ply" || lower(std::string(content.substr(0, 3))) == "ply";
}

polygons from_ply(const std::filesystem::path& file, std::string_view content) {
  auto shape = read_ply(file.string(), content, true);
  polygons result;
  result.vertices = std::move(shape.vertices);
  result.floats = shape.single;
  const std::span corners(shape.corners);
  std::size_t begin = 0;
  const auto add_face = [&](std::span<const std::uint32_t> face) {
    if (face.size() < 3) return;  // a line or a point
    for (const auto corner : face) result.corners.push_back(corner);
    result.ends.push_back(result.corners.size());
  };
  for (const auto size : shape.sizes) {
    const auto face = corners.subspan(begin, size);
    begin += size;
    if (shape.strips) {
      std::ranges::for_each(triangles_of_strips(face), add_face);
    } else {
      add_face(face);
    }
  }
  return result;
}

affine as_affine(const aiMatrix4x4& m) {
  return {{{{m.a1, m.a2, m.a3}, {m.b1, m.b2, m.b3}, {m.c1, m.c2, m.c3}}}, {m.a4, m.b4, m.c4}};
}

aiMatrix4x4 place_of(const aiNode* node) {
  aiMatrix4x4 result;
  for (; node != nullptr; node = node->mParent) result = node->mTransformation * result;
  return result;
}

/// Refuses a part that a skeleton bends: its vertices are not where they are in the scene.
void expect_not_bent(const std::filesystem::path& file, const aiScene& scene, const aiNode& node,
                     const aiMesh& part) {
  const auto here = place_of(&node);
  bounds box;
  for (const auto& v : std::span(part.mVertices, part.mNumVertices)) {
    const auto at = here * v;
    box.add(vec3{at.x, at.y, at.z});
  }
  for (const auto* bone : std::span(part.mBones, part.mNumBones)) {
    const auto bent = place_of(scene.mRootNode->FindNode(bone->mName)) * bone->mOffsetMatrix;
    for (const auto& [vertex, weight] : std::span(bone->mWeights, bone->mNumWeights)) {
      if (vertex >= part.mNumVertices)
        refuse(file, "has a bone of a vertex that is not there; it is damaged");
      const auto& v = part.mVertices[vertex];
      if (weight * (bent * v - here * v).Length() <= 1e-3 * box.longest_side()) continue;
      refuse(file,
             fmt::format("bone '{:.40}' bends it, which is read from glTF only; export that, or apply the "
                         "skeleton",
                         bone->mName.C_Str()));
    }
  }
}

/// Adds the meshes below a node of the scene, at their positions in the scene.
void add(const std::filesystem::path& file, const aiScene& scene, const aiNode& node, const affine& above,
         polygons& result) {
  const auto here = above.after(as_affine(node.mTransformation));
  const bool mirrored = mirrors(here);
  for (const auto index : std::span(node.mMeshes, node.mNumMeshes)) {
    const auto& part = *scene.mMeshes[index];
    const auto first = static_cast<std::int64_t>(result.vertices.size());
    expect_not_bent(file, scene, node, part);
    if (part.mNumAnimMeshes != 0)
      result.notes.push_back(fmt::format("'{:.40}' has shape keys, which were left out", part.mName.C_Str()));
    for (const auto& v : std::span(part.mVertices, part.mNumVertices)) {
      if (!std::isfinite(v.x) || !std::isfinite(v.y) || !std::isfinite(v.z))
        refuse(file, fmt::format("vertex ({}, {}, {}) is not finite; repair the mesh", v.x, v.y, v.z));
      result.vertices.push_back(here({v.x, v.y, v.z}));
    }
    const auto add_face = [&](std::span<const unsigned> corners) {
      for (const auto corner : corners) result.corners.push_back(first + corner);
      if (mirrored) std::reverse(result.corners.end() - std::ssize(corners), result.corners.end());
      result.ends.push_back(result.corners.size());
    };
    const std::span faces(part.mFaces, part.mFaces == nullptr ? 0 : part.mNumFaces);
    for (std::size_t f = 0; f < faces.size(); ++f) {
      const std::span corners(faces[f].mIndices, faces[f].mNumIndices);
      if (corners.empty())
        refuse(file, fmt::format("face {} has no corners; the file is damaged or cut short", f + 1));
      for (const auto corner : corners) {
        if (corner >= part.mNumVertices) {
          refuse(file, fmt::format("face {} names vertex {}, but there are {} vertices; the file is damaged",
                                   f + 1, std::uint64_t{corner} + 1, part.mNumVertices));
        }
      }
      if (corners.size() > 2) add_face(corners);
    }
  }
  for (const auto* child : std::span(node.mChildren, node.mNumChildren))
    add(file, scene, *child, here, result);
}

length_unit unit_named(const std::filesystem::path& file, const std::string& name) {
  static const length_unit known[] = {{"micron", 1e-6},      {"millimeter", 1e-3}, {"centimeter", 1e-2},
                                      {"inch", 0.0254},      {"foot", 0.3048},     {"feet", 0.3048},
                                      {"millimeters", 1e-3}, {"meter", 1}};
  const auto found = std::ranges::find(known, lower(name), &length_unit::name);
  if (found == std::end(known))
    refuse(file, fmt::format("has the unit '{}'; write it in millimeters", name.substr(0, 40)));
  return found->metres == 0.3048 ? length_unit{"foot", 0.3048}
         : found->metres == 1e-3 ? length_unit{"millimeter", 1e-3}
                                 : *found;
}

/// The unit of the coordinates that assimp gives. `endings`: those of the format.
length_unit unit_of(std::string_view endings, const aiScene& scene) {
  const auto is = [&](std::string_view ending) { return endings.find(ending) != endings.npos; };
  if (is("dae")) return {"meter", 1};
  float centimetres = 0;
  if (is("fbx") && scene.mMetaData != nullptr && scene.mMetaData->Get("UnitScaleFactor", centimetres) &&
      std::isfinite(centimetres) && centimetres > 0) {
    const double metres = std::stod(fmt::format("{}", centimetres)) / 100;  // 2.54, not the float next to it
    static const length_unit usual[] = {
        {"millimeter", 1e-3}, {"centimeter", 1e-2}, {"inch", 0.0254}, {"foot", 0.3048}, {"meter", 1}};
    const auto found = std::ranges::find_if(
        usual, [&](const auto& unit) { return std::abs(unit.metres / metres - 1) < 1e-6; });
    return found != std::end(usual) ? *found : length_unit{fmt::format("{} m", metres), metres};
  }
  return {};
}

/// Refuses what assimp passes over in COLLADA, or takes for something else.
void expect_plain_collada(const std::filesystem::path& file, std::string_view xml) {
  static constexpr std::string_view not_read[] = {"trifans", "ph", "skew", "convex_mesh", "spline", "brep"};
  for (auto at = xml.find('<'); at < xml.size(); at = xml.find('<', at + 1)) {
    if (xml.substr(at).starts_with("<!--")) at = std::min(xml.find("-->", at), xml.size());
    const auto tag = xml.substr(std::min(at + 1, xml.size()));
    const auto name = tag.substr(0, tag.find_first_of(" \t\r\n/>"));
    if (std::ranges::find(not_read, name) != std::end(not_read))
      refuse(file, fmt::format("has <{}>, which is not read from COLLADA; export triangles, or glTF", name));
    const auto text = tag.substr(0, tag.find('<'));
    if (name == "p" && text.find('-') != text.npos) refuse(file, "has a negative index; it is damaged");
  }
}

/// Keeps the first thing that assimp says of a part that it leaves out or changes, and goes on.
struct losses : Assimp::LogStream {
  std::string& first;
  explicit losses(std::string& to) : first(to) {}
  void write(const char* message) override {
    static constexpr std::string_view words[] = {
        "find geometry",           "instanced node",     "format of node",        "one vertex position",
        "null geometry",           "RotationMode",       "unrecognized geometry", "zero scale",
        "source object for Model", "additional geometry"};
    const std::string_view said = message;
    if (first.empty() && std::ranges::any_of(words, [&](auto word) { return said.find(word) != said.npos; }))
      first = said.substr(std::min(said.find(": ") + 2, said.size()));
  }
};

/// The parts that the nodes of a scene place.
void count_places(const aiNode& node, std::vector<bool>& placed) {
  for (const auto index : std::span(node.mMeshes, node.mNumMeshes)) placed[index] = true;
  for (const auto* child : std::span(node.mChildren, node.mNumChildren)) count_places(*child, placed);
}

/// Reads COLLADA and FBX. Axes are those of the file: assimp's Y up is undone.
std::pair<polygons, length_unit> from_assimp(const std::filesystem::path& file, std::string_view content) {
  Assimp::Importer importer;
  importer.SetPropertyBool(AI_CONFIG_IMPORT_COLLADA_IGNORE_UP_DIRECTION, true);
  importer.SetPropertyBool(AI_CONFIG_IMPORT_NO_SKELETON_MESHES,
                           true);  // which stand for joints without a mesh
  std::string lost;
  Assimp::DefaultLogger::create("", Assimp::Logger::NORMAL, 0)
      ->attachStream(new losses(lost), Assimp::Logger::Warn | Assimp::Logger::Err);
  const aiScene* const scene = importer.ReadFile(file.string(), 0);
  Assimp::DefaultLogger::kill();  // which deletes the stream
  if (scene == nullptr || scene->mRootNode == nullptr)
    refuse(file, fmt::format("cannot be read as a mesh: {}", importer.GetErrorString()));
  if (!lost.empty()) refuse(file, "cannot be read completely; export glTF. assimp says: " + lost);
  const auto* const format =
      importer.GetImporterInfo(static_cast<std::size_t>(importer.GetPropertyInteger("importerIndex", -1)));
  const std::string_view endings = format == nullptr ? "" : format->mFileExtensions;
  const auto is = [&](std::string_view ending) { return endings.find(ending) != endings.npos; };
  if (is("dae")) expect_plain_collada(file, content);
  std::vector<bool> placed(scene->mNumMeshes);
  count_places(*scene->mRootNode, placed);
  if (const auto lost_parts = std::ranges::count(placed, false); lost_parts != 0)
    refuse(file, fmt::format("{} of its {} parts are nowhere in its scene; export glTF", lost_parts,
                             placed.size()));
  affine above;
  if (is("fbx")) above = as_affine(aiMatrix4x4(scene->mRootNode->mTransformation).Inverse());
  polygons result;
  result.floats = true;
  add(file, *scene, *scene->mRootNode, above, result);
  return {std::move(result), unit_of(endings, *scene)};
}

float as_float(double x) { return static_cast<float>(x); }

/// Moves the vertices near 0, and determines how much precision floats lose.
void move_near_0(const polygons& from, const bounds& box, mesh& result) {
  // Origins are multiples of a power of two that is larger than the mesh: the origin of a mesh near 0 is 0,
  // and differences between coordinates and origins are exact.
  const double side = box.longest_side(), step = std::exp2(std::ceil(std::log2(4 * side)));
  const auto centre = box.centre();
  for (std::size_t k = 0; k < 3; ++k)
    result.origin[k] = side > 0 ? step * std::round(centre[k] / step) : centre[k];
  double largest = 0;
  result.vertices.reserve(from.vertices.size());
  for (const auto& v : from.vertices) {
    std::array<float, 3> near{};
    for (std::size_t k = 0; k < 3; ++k) near[k] = as_float(v[k] - result.origin[k]);
    result.vertices.push_back({near[0], near[1], near[2]});
  }
  for (const auto corner : from.corners) {
    const auto& v = from.vertices[static_cast<std::size_t>(corner)];
    const auto& p = result.vertices[static_cast<std::size_t>(corner)];
    const float near[3] = {p.x, p.y, p.z};
    for (std::size_t k = 0; k < 3; ++k) {
      result.blur = std::max(result.blur, std::abs(static_cast<double>(near[k]) - (v[k] - result.origin[k])));
      largest = std::max(largest, std::abs(v[k]));
    }
  }
  if (from.floats) result.blur = std::max(result.blur, half_step(largest));
}

/// Moves the polygons near 0 and cuts them into triangles.
mesh finish(const std::filesystem::path& file, polygons&& from) {
  const auto finite = [&](const vec3& v) {
    return std::ranges::all_of(v, [&](double x) { return std::isfinite(as_float(x)); });
  };
  const auto said = [&](const vec3& v) {
    return fmt::format("({}, {}, {})", as_float(v[0]), as_float(v[1]), as_float(v[2]));
  };
  if (from.vertices.size() >= strip_end) refuse(file, "has more than 2^32 - 2 vertices; use a smaller mesh");
  mesh result;
  result.notes = std::move(from.notes);
  result.blur = from.blur;
  bounds box;
  std::vector<vec3> at;
  std::vector<triangle> cut;
  std::size_t begin = 0, crossing = 0;
  for (std::size_t f = 0; f < from.ends.size(); begin = from.ends[f], ++f) {
    const auto corners = std::span(from.corners).subspan(begin, from.ends[f] - begin);
    at.clear();
    for (const auto corner : corners) {
      if (corner < 0 || static_cast<std::uint64_t>(corner) >= from.vertices.size()) {
        refuse(file, fmt::format("face {} names vertex {}, but there are {} vertices; the file is damaged",
                                 f + 1, corner + 1, from.vertices.size()));
      }
      at.push_back(from.vertices[static_cast<std::size_t>(corner)]);
      if (!finite(at.back())) {
        refuse(file,
               fmt::format("vertex {} of face {} is not finite; repair the mesh", said(at.back()), f + 1));
      }
      box.add(at.back());
    }
    cut.clear();
    if (!cut_polygon(at, cut)) ++crossing;
    for (const auto& t : cut) {
      const auto vertex = [&](std::uint32_t k) { return static_cast<std::uint32_t>(corners[k]); };
      result.triangles.push_back({vertex(t[0]), vertex(t[1]), vertex(t[2])});
    }
  }
  for (std::size_t i = 0; i < from.vertices.size(); ++i) {
    if (!finite(from.vertices[i]))
      refuse(file, fmt::format("vertex {} {} is not finite; repair the mesh", i + 1, said(from.vertices[i])));
  }
  if (result.triangles.empty()) {
    refuse(file, fmt::format("has {} vertices but no triangles; a surface is needed, not a cloud of points",
                             from.vertices.size()));
  }
  if (crossing != 0)
    result.notes.push_back(
        fmt::format("{} faces cross themselves, and mean no surface; repair the mesh", crossing));
  move_near_0(from, box, result);
  return result;
}

}  // namespace

double half_step(double x) {
  const auto as = as_float(x);
  return static_cast<double>(std::nextafter(as, std::numeric_limits<float>::infinity()) - as) / 2;
}

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
      if ((i - begin) % 2 != 0) std::swap(a, b);  // every other triangle of a strip is reversed
      triangles.push_back({a, b, c});
    }
  }
  return triangles;
}

mesh read_mesh(const std::filesystem::path& file) {
  expect_file(file);
  const auto ending = ending_of(file);
  auto content = content_of(file);
  if (ending == ".obj" || ending == ".off") content = without_utf16(std::move(content));
  const auto read = [&](auto reader) {
    try {
      return finish(file, reader(content));
    } catch (const invalid_argument& e) {
      const std::string why = e.what();
      if (why.starts_with(file.string())) throw;
      refuse(file, why);
    }
  };
  length_unit unit;
  const auto read_model = [&](std::string_view bytes) {
    std::optional<zip_archive> archive;
    if (ending == ".3mf" || bytes.starts_with("PK")) archive.emplace(bytes);
    auto model = ending == ".3mf" ? read_3mf([&](std::string_view part) { return archive->read(part); })
                                  : read_amf(archive ? archive->read_only_one(".amf") : std::string(bytes));
    unit = unit_named(file, model.unit);
    return std::move(model.shape);
  };
  if (ending == ".obj") return read(read_obj);
  if (ending == ".stl") return read(read_stl);
  if (ending == ".off") return read(read_off);
  if (ending == ".3ds") return read(read_3ds);
  if (ending == ".3mf" || ending == ".amf") {
    auto result = read(read_model);
    result.unit = unit;
    return result;
  }
  if (is_gltf(ending, content)) {
    auto result = read([&](std::string_view text) { return read_gltf(text, file.parent_path()); });
    result.unit = {"meter", 1};
    return result;
  }

  if (is_ply(ending, content)) return finish(file, from_ply(file, content));

  if (std::ranges::find(assimps, ending) == std::end(assimps))
    refuse(file,
           "cannot be read as a mesh: its name has no ending of a format that is read; make a glTF, OBJ, PLY "
           "or STL file of it, for example with Blender");
  if (lower(file.extension().string()) == ".gz")
    refuse(file, "is of a format that is not read compressed; decompress it first: gzip -d");
  auto [shape, own_unit] = from_assimp(file, content);
  auto result = finish(file, std::move(shape));
  result.unit = own_unit;
  return result;
}

std::vector<std::filesystem::path> mesh_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const auto ending = ending_of(entry.path());
    const bool read = std::ranges::find(ours, ending) != std::end(ours) || is_gltf(ending, {}) ||
                      std::ranges::find(assimps, ending) != std::end(assimps);
    if (read && entry.is_regular_file(failure)) files.push_back(entry.path());
  }
  if (failure) refuse(folder, fmt::format("cannot be read: {}", failure.message()));
  if (files.empty()) refuse(folder, "has no mesh files; name a folder of OBJ, PLY, STL, glTF ... files");
  std::ranges::sort(files, [](const auto& a, const auto& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
  return files;
}

}  // namespace roost::tools
