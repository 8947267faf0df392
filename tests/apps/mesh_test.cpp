#ifndef __CUDACC__  // reading meshes is work of the host

#include "apps/solids/mesh.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "apps/shared/ply.hpp"
#include "apps/solids/mesh_text.hpp"
#include "apps/solids/model_files.hpp"
#include "apps/solids/placement.hpp"
#include "apps/solids/polygon.hpp"
#include "roost/detail/place/config.hpp"
#include "roost/error.hpp"
#include "support/keys.hpp"

// Mesh files become triangles, or one line that says what is wrong with them.

#if ROOST_ASAN
/// assimp leaks what it had read of a bad file, and libsep 1.2 two arrays of each catalogue of stars; that is
/// not ours to find.
extern "C" const char* __lsan_default_suppressions() { return "leak:libassimp\nleak:libsep.so"; }
#endif

namespace test {
namespace {

namespace tools = roost::tools;
using u32 = std::uint32_t;

const std::filesystem::path data = ROOST_TEST_DATA;

/// A file that lives as long as its test.
class file {
 public:
  explicit file(const std::string& ending, const std::string& content = "")
      : path_(std::filesystem::temp_directory_path() / ("roost_mesh_" + std::to_string(getpid()) + ending)) {
    write(content);
  }
  ~file() { std::filesystem::remove(path_); }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  void write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Six times the volume inside: negative or smaller if triangles look inwards or are missing.
double volume6(const tools::mesh& mesh) {
  double sum = 0;
  for (const auto& [i, j, k] : mesh.triangles) {
    const auto &a = mesh.vertices[i], &b = mesh.vertices[j], &c = mesh.vertices[k];
    sum += a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) + a.z * (b.x * c.y - b.y * c.x);
  }
  return sum;
}

void expect_sound(const tools::mesh& mesh) {
  EXPECT_FALSE(mesh.triangles.empty());
  for (const auto& t : mesh.triangles) EXPECT_LT(*std::ranges::max_element(t), mesh.vertices.size());
  for (const auto& v : mesh.vertices)
    EXPECT_TRUE(std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z));
}

/// The error of a file: one line that begins with its name and says all of `parts`.
void expect_refused(const std::filesystem::path& path, const std::vector<std::string>& parts) {
  try {
    tools::read_mesh(path);
    ADD_FAILURE() << path << " was read";
  } catch (const roost::invalid_argument& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}
void expect_refused(const std::string& ending, const std::string& content,
                    const std::vector<std::string>& parts) {
  const file f(ending, content);
  expect_refused(f.path(), parts);
}

TEST(mesh, reads_polygons) {
  const auto cube = tools::read_mesh(data / "cube.obj");
  expect_sound(cube);
  EXPECT_EQ(cube.triangles.size(), 12u);
  EXPECT_EQ(volume6(cube), 6);
}

TEST(mesh, reads_triangle_strips) {
  const auto cube = tools::read_mesh(data / "cube_strips.ply");
  expect_sound(cube);
  EXPECT_EQ(cube.vertices.size(), 8u);
  EXPECT_EQ(cube.triangles.size(), 12u);
  EXPECT_EQ(volume6(cube), 6);
}

TEST(mesh, reads_binary_triangle_strips) {
  std::string text =
      "ply\nformat binary_little_endian 1.0\nelement vertex 4\nproperty float x\nproperty float "
      "y\nproperty float z\n"
      "element tristrips 1\nproperty list int int vertex_indices\nend_header\n";
  const float corners[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}};
  const int strips[] = {8, 0, 1, 2, 3, -1, 3, 2, 1};
  text.append(reinterpret_cast<const char*>(corners), sizeof(corners));
  text.append(reinterpret_cast<const char*>(strips), sizeof(strips));
  const file f(".ply", text);
  const auto square = tools::read_mesh(f.path());
  expect_sound(square);
  EXPECT_EQ(square.triangles, (std::vector<tools::triangle>{{0, 1, 2}, {2, 1, 3}, {3, 2, 1}}));
  for (const std::size_t missing : {1, 20, 60})
    expect_refused(".ply", text.substr(0, text.size() - missing), {});
}

TEST(mesh, reads_several_lists_of_strips_beside_no_faces) {
  std::string text = content_of(data / "cube_strips.ply");
  const std::string one = "element tristrips 1\nproperty list int int vertex_indices\n";
  text.replace(text.find(one), one.size(),
               "element face 0\nproperty list uchar int vertex_indices\nelement tristrips "
               "2\nproperty list int int vertex_indices\n");
  const std::string all = "20 4 0 5 1 6 2 7 3 4 0 -1 0 3 1 2 -1 4 5 7 6\n";
  text.replace(text.find(all), all.size(), "15 4 0 5 1 6 2 7 3 4 0 -1 0 3 1 2\n4 4 5 7 6\n");
  const file f(".ply", text);
  EXPECT_EQ(volume6(tools::read_mesh(f.path())), 6);
}

TEST(mesh, reads_stl) {
  const auto tetrahedron = tools::read_mesh(data / "tetrahedron.stl");
  expect_sound(tetrahedron);
  EXPECT_EQ(tetrahedron.triangles.size(), 4u);
  EXPECT_EQ(volume6(tetrahedron), 1);
}

TEST(mesh, knows_a_format_by_its_content_too) {
  const file f(".unknown", content_of(data / "cube_strips.ply"));
  EXPECT_EQ(tools::read_mesh(f.path()).triangles.size(), 12u);
}

/// Corners and faces of a cube with its lowest corner at `at`.
struct cube_text {
  std::string corners[8];
  const char* faces[6] = {"1 3 4 2", "5 6 8 7", "1 2 6 5", "3 7 8 4", "1 5 7 3", "2 4 8 6"};
  cube_text(double x, double y, double z, double side) {
    for (int i = 0; i < 8; ++i) {
      char text[100];
      std::snprintf(text, sizeof(text), "%.3f %.3f %.3f", x + (i & 1) * side, y + (i >> 1 & 1) * side,
                    z + (i >> 2) * side);
      corners[i] = text;
    }
  }
  std::string obj() const {
    std::string text;
    for (const auto& c : corners) text += "v " + c + "\n";
    for (const auto* f : faces) text += std::string("f ") + f + "\n";
    return text;
  }
  std::string off() const {
    std::string text = "OFF\n8 6 0\n";
    for (const auto& c : corners) text += c + "\n";
    for (std::string f : faces) {
      for (auto& c : f) c = c == ' ' ? ' ' : static_cast<char>(c - 1);
      text += "4 " + f + " 0.5 0.5 0.5\n";
    }
    return text;
  }
  std::string stl() const {
    std::string text = "solid cube\n";
    for (const std::string f : faces) {
      text += " facet normal 0 0 0\n  outer loop\n";
      for (int k = 0; k < 4; ++k)
        text += "   vertex " + corners[f[static_cast<std::size_t>(2 * k)] - '1'] + "\n";
      text += "  endloop\n endfacet\n";
    }
    return text + "endsolid cube\n";
  }
};

/// Floats are half a unit apart where a country's map has its coordinates.
TEST(mesh, keeps_the_digits_of_coordinates_far_away) {
  const cube_text cube(500000.1, 5400000.3, -20, 0.3);
  for (const auto& [ending, text] :
       {std::pair{".obj", cube.obj()}, {".off", cube.off()}, {".stl", cube.stl()}}) {
    const file f(ending, text);
    const auto read = tools::read_mesh(f.path());
    expect_sound(read);
    EXPECT_NEAR(volume6(read), 6 * 0.027, 1e-6) << ending;
    EXPECT_LT(read.blur, 1e-7);
    const auto box = bounds_of(read);
    EXPECT_NEAR(box.low[0], 500000.1, 1e-7);
    EXPECT_NEAR(box.high[1], 5400000.6, 1e-7);
    EXPECT_NEAR(box.low[2], -20, 1e-7);
    // A mesh near 0 has the floats of its file.
    const file near(ending, ending == std::string(".obj")   ? cube_text(-1, 0, 0.25, 2).obj()
                            : ending == std::string(".off") ? cube_text(-1, 0, 0.25, 2).off()
                                                            : cube_text(-1, 0, 0.25, 2).stl());
    const auto kept = tools::read_mesh(near.path());
    EXPECT_EQ(kept.origin, (std::array<double, 3>{}));
    EXPECT_TRUE(std::ranges::find(kept.vertices, tools::point{-1, 0, 0.25f}) != kept.vertices.end());
  }
}

/// Files of floats say how coarse they are.
TEST(mesh, tells_how_coarse_floats_are) {
  std::string bytes(84, ' ');
  bytes[80] = 1;
  bytes[81] = bytes[82] = bytes[83] = 0;
  const float record[12] = {0, 0, 0, 5e6f, 0, 0, 5e6f, 1, 0, 5e6f, 0, 1};
  bytes.append(reinterpret_cast<const char*>(record), 48);
  bytes += std::string(2, '\0');
  const file f(".stl", bytes);
  EXPECT_EQ(tools::read_mesh(f.path()).blur, 0.25);
}

TEST(mesh, reads_dialects_of_obj) {
  const auto triangles = [](const std::string& text) {
    const file f(".obj", text);
    const auto read = tools::read_mesh(f.path());
    expect_sound(read);
    return std::pair{read.triangles.size(), read.notes.size()};
  };
  const std::string corners =
      "\xef\xbb\xbfv 0 0 0\r\nv 1 0 0 0.5 0.5 0.5\rv +1 1e0 0 # a comment\n\tv\t0 1 0\n";
  EXPECT_EQ(triangles(corners + "f 1/1/1 2//2 \\\n 3/3 -1\n"), (std::pair<std::size_t, std::size_t>{2, 0}));
  const file relative(".obj", corners + "f -4 -3 -1\n");
  EXPECT_EQ(tools::read_mesh(relative.path()).triangles, (std::vector<tools::triangle>{{0, 1, 3}}));
  EXPECT_EQ(triangles(corners + "l 1 2\np 1\nf 1 2\nfo 1 2 3 # 4\ng a\ns off\nusemtl b"),
            (std::pair<std::size_t, std::size_t>{1, 0}));
  EXPECT_EQ(triangles("f 1 2 3\nv 2 0 0 2\nv 0 1 0\nv 0 0 0\nsurf 0 1\n"),
            (std::pair<std::size_t, std::size_t>{1, 2}));
  for (const auto& [line, words] : {std::pair{"f 1 2 0", "line 5: '0'"},
                                    {"f 1 2 x", "'x' is not a corner"},
                                    {"f 1 2 -9", "vertex -9, but there are 4 so far"},
                                    {"f 1 2 5", "names vertex 5"},
                                    {"v 1 2", "2 numbers"},
                                    {"v 1,5 2 3", "'1,5' is not a number"},
                                    {"v 1 2 3 4 5", "5 numbers"},
                                    {"v 1 2 3 0", "weight 0"},
                                    {"f 1 2 3.0", "'3.0'"}})
    expect_refused(".obj", corners + line + "\nf 1 2 3\n", {words});
}

TEST(mesh, reads_dialects_of_stl) {
  const cube_text cube(0, 0, 0, 1);
  const auto volume = [](const std::string& text) {
    const file f(".stl", text);
    return volume6(tools::read_mesh(f.path()));
  };
  std::string upper = cube.stl();
  for (auto& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(volume(upper), 6);
  EXPECT_EQ(volume(" \n" + cube.stl() + cube_text(2, 0, 0, 1).stl()), 12);
  std::string binary = "solid facet endsolid";
  binary.resize(80, '\0');
  const auto triangle_soup = tools::read_stl(cube.stl());
  const auto add = [&](std::size_t a, std::size_t b, std::size_t c) {
    float record[12] = {};
    for (std::size_t k = 0; k < 3; ++k) {
      record[3 + k] = static_cast<float>(triangle_soup.vertices[a][k]);
      record[6 + k] = static_cast<float>(triangle_soup.vertices[b][k]);
      record[9 + k] = static_cast<float>(triangle_soup.vertices[c][k]);
    }
    binary.append(reinterpret_cast<const char*>(record), sizeof(record)).append(2, '\0');
  };
  const auto with_count = [&](char n) {
    auto copy = binary;
    copy.insert(80, std::string{n, 0, 0, 0});
    return copy;
  };
  for (std::size_t f = 0; f < 24; f += 4) add(f, f + 1, f + 2), add(f, f + 2, f + 3);
  EXPECT_EQ(volume(with_count(12)), 6);
  const file longer(".stl", with_count(12) + "tail");
  const auto read = tools::read_mesh(longer.path());
  EXPECT_EQ(volume6(read), 6);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_NE(read.notes[0].find("4 bytes behind"), std::string::npos);
  expect_refused(".stl", with_count(13), {"13 triangles", "are 12"});
  expect_refused(".stl", with_count(0), {"0 triangles"});
  expect_refused(".stl", with_count(12).substr(0, 600), {"cut short"});
  expect_refused(".stl", "solid x\nfacet normal 0 0 0\nouter loop\nvertex 0 0 0\n", {"cut short"});
  expect_refused(".stl", "solid x\nfacet\nouter loop\nvertex 0 0\n", {"line 4", "missing"});
  expect_refused(".stl", "solid x\nfacet\nouter loop\nvertex 0 0 0\nendloop\nendfacet\nendsolid",
                 {"1 corners"});
  expect_refused(".stl", "solid x\nvertex 0 0 0\n", {"line 2", "not expected"});
}

TEST(mesh, reads_dialects_of_off) {
  const cube_text cube(0, 0, 0, 1);
  const auto volume = [](const std::string& text) {
    const file f(".off", text);
    return volume6(tools::read_mesh(f.path()));
  };
  const auto body = cube.off().substr(10);
  EXPECT_EQ(volume("OFF 8 6 0\n" + body), 6);
  EXPECT_EQ(volume("# a cube\n8 6\r\n" + body), 6);
  EXPECT_EQ(volume("CNOFF # colours\n\n8 6 12\n" + body), 6);
  EXPECT_EQ(volume("OFF8 6 0\n" + body), 6);  // ModelNet40
  expect_refused(".off", "nOFF\n3\n8 6 0\n" + body, {"'nOFF'"});
  expect_refused(".off", "OFFx 6 0\n" + body, {"not an OFF file"});
  expect_refused(".off", "4OFF\n8 6 0\n" + body, {"'4OFF'"});
  expect_refused(".off", "OFF BINARY\n8 6 0\n" + body, {"binary"});
  expect_refused(".off", "OFF\n9 6 0\n" + body, {"5 faces of 6"});
  expect_refused(".off", "OFF\n8 7 0\n" + body, {"6 faces of 7"});
  expect_refused(".off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", {"names vertex 4"});
  expect_refused(".off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4 0 1 2\n", {"3 corners of 4"});
  expect_refused(".off", "OFF\n3 1 0\n0 0 0\n1 0\n0 1 0\n3 0 1 2\n", {"line 4", "missing"});
}

TEST(mesh, reads_utf16_and_gzip) {
  const auto text = cube_text(0, 0, 0, 1).obj() + "g \n";
  for (const int high : {1, 0}) {
    std::string wide = high == 1 ? "\xff\xfe" : "\xfe\xff";
    for (const char c : text) wide += high == 1 ? std::string{c, '\0'} : std::string{'\0', c};
    const file f(".obj", wide);
    EXPECT_EQ(volume6(tools::read_mesh(f.path())), 6);
  }
  const file packed(".obj.gz");
  const auto write = [&](std::size_t cut) {
    auto* const stream = gzopen(packed.path().c_str(), "wb");
    gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
    gzclose(stream);
    std::filesystem::resize_file(packed.path(), std::filesystem::file_size(packed.path()) - cut);
  };
  write(0);
  EXPECT_EQ(volume6(tools::read_mesh(packed.path())), 6);
  write(9);
  expect_refused(packed.path(), {"cut short"});
}

/// A 3MF package of these parts beside its relationships: a model of `attributes`, `resources` and `build`.
struct threemf {
  static std::string model(const std::string& resources, const std::string& build,
                           const std::string& attributes = "", const std::string& prefix = "") {
    const auto name = prefix.empty() ? prefix : prefix + ":";
    const auto spaced = prefix.empty() ? prefix : ":" + prefix;
    return "<" + name + "model xmlns" + spaced +
           "='http://schemas.microsoft.com/3dmanufacturing/core/2015/02' "
           "xmlns:p='http://schemas.microsoft.com/3dmanufacturing/production/2015/06' " +
           attributes + "><" + name + "resources>" + resources + "</" + name + "resources><" + name +
           "build>" + build + "</" + name + "build></" + name + "model>";
  }
  /// A tetrahedron of volume 1 / 6.
  static std::string tetrahedron(const std::string& id, const std::string& more = "",
                                 const std::string& of = "", const std::string& inside = "") {
    std::string text = "<:object id='" + id + "' " + more +
                       "><:mesh><:vertices><:vertex x='0' y='0' z='0'/>"
                       "<:vertex x='1' y='0' z='0'/><:vertex x='0' y='1' z='0'/><:vertex x='0' y='0' z='1'/>"
                       "</:vertices><:triangles>";
    for (const std::string t : {"021", "013", "123", "032"})
      text += "<:triangle v1='" + t.substr(0, 1) + "' v2='" + t.substr(1, 1) + "' v3='" + t.substr(2) + "'/>";
    text += "</:triangles>" + inside + "</:mesh></:object>";
    for (std::size_t at; (at = text.find(":")) != text.npos;) text.replace(at, 1, of.empty() ? of : of + "|");
    std::ranges::replace(text, '|', ':');
    return text;
  }
  static double volume(std::map<std::string, std::string> parts, tools::model_file* whole = nullptr) {
    parts.try_emplace("_rels/.rels",
                      "<Relationships><Relationship Target='/3D/a%20model.model' Type="
                      "'http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel'/></Relationships>");
    const auto read = tools::read_3mf([&](std::string_view name) -> std::optional<std::string> {
      for (const auto& [part, text] : parts) {
        if (tools::part_name(part) == tools::part_name(name)) return text;
      }
      return {};
    });
    double sum = 0;
    for (std::size_t i = 0; i < read.shape.corners.size(); i += 3) {
      const auto at = [&](std::size_t k) {
        return read.shape.vertices[static_cast<std::size_t>(read.shape.corners[i + k])];
      };
      const auto a = at(0), b = at(1), c = at(2);
      sum += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
             a[2] * (b[0] * c[1] - b[1] * c[0]);
    }
    if (whole != nullptr) *whole = read;
    return sum;
  }
  static double volume(const std::string& resources, const std::string& build,
                       const std::string& attributes = "") {
    return volume({{"3D/A Model.model", model(resources, build, attributes)}});
  }
};

TEST(mesh, reads_3mf) {
  using t = threemf;
  const std::string one = "<item objectid='1'/>", object = t::tetrahedron("1");
  EXPECT_EQ(t::volume(object, one), 1);
  EXPECT_EQ(t::volume({{"3D/A Model.model",
                        t::model(t::tetrahedron("1", "", "m"), "<m:item objectid='1'/>", "", "m")}}),
            1);
  EXPECT_EQ(t::volume(object, "<item objectid='1' transform='-2 0 0 0 1 0 0 0 1 5 0 0'/>" + one), 3);
  EXPECT_EQ(t::volume(object + t::tetrahedron("2", "type='support'"), one + "<item objectid='2'/>"), 1);
  EXPECT_EQ(t::volume(object, one + "<item objectid='1' printable='0'/>"), 1);
  EXPECT_EQ(t::volume(object, one, "requiredextensions='p'"), 1);
  const std::string twice =
      "<components><component objectid='1'/><component objectid='1'/></components></object>";
  EXPECT_EQ(t::volume(object + "<object id='2'>" + twice, "<item objectid='2'/>"), 2);
  // Objects of other parts, with the same number.
  const auto other = t::model(t::tetrahedron("1"), "<item objectid='1'/>");
  const std::string components =
      "<object id='2'><components><component objectid='1' "
      "p:path='/3D/Objects/x.model'/></components></object>";
  tools::model_file whole;
  EXPECT_EQ(t::volume({{"3D/A Model.model", t::model(object + components,
                                                     one + "<item objectid='2' transform="
                                                           "'2 0 0 0 1 0 0 0 1 0 0 0'/>",
                                                     "unit='inch'")},
                       {"3D/objects/X.model", t::model(t::tetrahedron("1"), "", "unit='inch'")}},
                      &whole),
            3);
  EXPECT_EQ(whole.unit, "inch");
}

TEST(mesh, refuses_3mf_that_needs_more) {
  using t = threemf;
  const auto refused = [](const std::string& resources, const std::string& build,
                          const std::string& attributes, const std::string& words) {
    try {
      t::volume(resources, build, attributes);
      ADD_FAILURE() << words;
    } catch (const roost::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  const std::string one = "<item objectid='1'/>", object = t::tetrahedron("1");
  const std::string lattice = "xmlns:b='http://schemas.microsoft.com/3dmanufacturing/beamlattice/2017/02' ";
  refused(object, one, lattice + "requiredextensions='p b'", "requires beam lattices");
  refused(t::tetrahedron("1", "", "", "<b|beamlattice/>"), one, lattice, "has beam lattices");
  refused(object, one, "xmlns:v='urn:x' requiredextensions='v'", "requires an extension ('urn:x')");
  refused(object, one, "requiredextensions='q'", "'q', which has no namespace");
  refused(t::tetrahedron("1", "s|meshresolution='lowres'"), one,
          "xmlns:s='http://schemas.microsoft.com/3dmanufacturing/slice/2015/07'", "'lowres'");
  refused(object + object, one, "", "two objects 1");
  refused(object, "", "", "builds nothing");
  refused(object, "<item objectid='2'/>", "", "object 2, which it does not have");
  refused(object, "<item objectid='1' p:path='/3D/y.model'/>", "", "'3d/y.model' is missing");
  refused(object, "<item objectid='1' transform='1 0 0'/>", "", "3 numbers, and not 12");
  refused(t::tetrahedron("1", "type='void'"), one, "", "'void'");
  refused("<object id='1'><components><component objectid='1'/></components></object>", one, "",
          "a part of itself");
  std::string nested = t::tetrahedron("1");
  for (int i = 2; i < 40; ++i) {
    const auto below = "<component objectid='" + std::to_string(i - 1) + "'/>";
    nested +=
        "<object id='" + std::to_string(i) + "'><components>" + below + below + "</components></object>";
  }
  refused(nested, "<item objectid='39'/>", "", "with all copies");
  auto broken = t::tetrahedron("1");
  refused(broken.replace(broken.find("v1='1'"), 6, "v1='4'"), one, "", "names vertex 4, but there are 4");
  refused("<object", one, "", "is not XML");
  const auto with = [&](std::map<std::string, std::string> more) {
    more["3D/A Model.model"] = t::model(object, one);
    return t::volume(more);
  };
  const std::string settings = "Metadata/model_settings.config";
  EXPECT_EQ(
      with({{settings, "<config><object id='1'><part id='1' subtype='normal_part'/></object></config>"}}), 1);
  EXPECT_THROW(with({{settings, "<config><part id='1' subtype='negative_part'/></config>"}}),
               roost::invalid_argument);
  EXPECT_THROW(with({{"_rels/.rels", "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"}}), roost::invalid_argument);
}

TEST(mesh, reads_amf) {
  const std::string corners =
      "<vertices><vertex><coordinates><x>0</x><y>0</y><z>0</z></coordinates></"
      "vertex><vertex><coordinates><x>1</x>"
      "<y>0</y><z>0</z></coordinates></vertex><vertex><coordinates><x>0</x><y>1</y><z>0</z></coordinates></"
      "vertex>"
      "<vertex><coordinates><x>0</x><y>0</y><z>1</z></coordinates></vertex></vertices>";
  const auto triangle = [](const std::string& t) {
    return "<triangle><v1>" + t.substr(0, 1) + "</v1><v2>" + t.substr(1, 1) + "</v2><v3>" + t.substr(2) +
           "</v3></triangle>";
  };
  const auto half = triangle("021") + triangle("013"), rest = triangle("123") + triangle("032");
  const auto amf = [&](const std::string& volumes, const std::string& more = "") {
    return "<amf><object id='1'><mesh>" + corners + volumes + "</mesh></object>" + more + "</amf>";
  };
  const auto read = [](const std::string& text) {
    const file f(".amf", text);
    return tools::read_mesh(f.path());
  };
  const auto whole = "<volume>" + half + "</volume><volume>" + rest + "</volume>";
  EXPECT_EQ(volume6(read(amf(whole))), 1);
  EXPECT_EQ(volume6(read(amf(whole + "<volume type='support'>" + half + "</volume>"))), 1);
  const auto turned = [&](const std::string& what, const std::string& inside) {
    return amf(whole, what + "<constellation id='2'><instance objectid='1'>" + inside +
                          "</instance></constellation>");
  };
  const auto box = bounds_of(read(turned("", "<deltax>5</deltax><rz>90</rz>")));
  EXPECT_EQ(box.low, (tools::vec3{4, 0, 0}));
  EXPECT_EQ(box.high, (tools::vec3{5, 1, 1}));
  const auto in_radians = bounds_of(read(
      turned("<metadata type='cad'>Slic3r 1</metadata>", "<rz>1.5707963267948966</rz><scalex>2</scalex>")));
  EXPECT_NEAR(in_radians.high[1], 2, 1e-6);
  EXPECT_NEAR(in_radians.low[0], -1, 1e-6);
  expect_refused(".amf", turned("", "<rz>a</rz>"), {"'a' is not a number (rz)"});
  expect_refused(
      ".amf", amf(whole + "<volume><metadata type='slic3r.volume_type'>NegativeVolume</metadata></volume>"),
      {"negative volume"});
  expect_refused(".amf", amf("<volume>" + triangle("014") + "</volume>"), {"names vertex 4"});
  expect_refused(".amf", amf("<edge/>" + whole), {"curved"});
  expect_refused(".amf",
                 amf(whole,
                     "<constellation id='2'><instance objectid='2'/></constellation><constellation "
                     "id='3'><instance objectid='2'/></constellation>"),
                 {"a part of itself"});
  expect_refused(".amf", "PK\3\4", {"no ZIP archive"});
}

/// A tetrahedron of volume 1/6 in glTF, with the transform and more of a node, and what else the file has.
struct gltf {
  static std::string base64(const std::string& bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string result;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 6) {
      const auto word = static_cast<unsigned char>(bytes[bit / 8]) << 8 |
                        (bit / 8 + 1 < bytes.size() ? static_cast<unsigned char>(bytes[bit / 8 + 1]) : 0);
      result += digits[(word >> (10 - bit % 8)) & 63];
    }
    return result + std::string((4 - result.size() % 4) % 4, '=');
  }
  template <class T>
  static std::string bytes(std::initializer_list<T> values) {
    return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
  }
  /// Accessor 0: positions, 1: corners, 2: an identity matrix, 3: joints, 4: weights, 5: two places.
  static std::string text(const std::string& node = "", const std::string& more = "",
                          const std::string& primitive = "") {
    const auto data = bytes<float>({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}) +
                      bytes<std::uint16_t>({0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2}) +
                      bytes<float>({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 7, 0, 0, 1}) + std::string(16, '\0') +
                      bytes<float>({1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}) +
                      bytes<float>({5, 0, 0, 0, 5, 0});
    std::string views, accessors;
    const auto add = [&](int at, int size, int type, int count, const std::string& kind) {
      const auto n = std::to_string(views.empty() ? 0 : std::ranges::count(views, '{'));
      views += (views.empty() ? "" : ",") + std::string("{'buffer':0,'byteOffset':") + std::to_string(at) +
               ",'byteLength':" + std::to_string(size) + "}";
      accessors += (accessors.empty() ? "" : ",") + std::string("{'bufferView':") + n +
                   ",'componentType':" + std::to_string(type) + ",'count':" + std::to_string(count) +
                   ",'type':'" + kind + "'}";
    };
    add(0, 48, 5126, 4, "VEC3");
    add(48, 24, 5123, 12, "SCALAR");
    add(72, 64, 5126, 1, "MAT4");
    add(136, 16, 5121, 4, "VEC4");
    add(152, 64, 5126, 4, "VEC4");
    add(216, 24, 5126, 2, "VEC3");
    auto all = "{'asset':{'version':'2.0'},'scene':0,'scenes':[{'nodes':[0]}],'nodes':[{'mesh':0" + node +
               "}],'meshes':[{'primitives':[{'attributes':{'POSITION':0" +
               (primitive.empty() ? "},'indices':1" : primitive) + "}]}],'accessors':[" + accessors +
               "],'bufferViews':[" + views + "],'buffers':[{'byteLength':" + std::to_string(data.size()) +
               ",'uri':'data:;base64," + base64(data) + "'}]" + more + "}";
    std::ranges::replace(all, '\'', '"');
    return all;
  }
  static tools::mesh read(const std::string& text) {
    const file f(".gltf", text);
    return tools::read_mesh(f.path());
  }
};

TEST(mesh, reads_gltf) {
  using g = gltf;
  const auto whole = g::read(g::text());
  EXPECT_EQ(volume6(whole), 1);
  EXPECT_EQ(whole.unit.name, "meter");
  EXPECT_EQ(volume6(g::read(g::text(",'scale':[2,-1,1]"))), 2) << "mirrored";
  EXPECT_EQ(bounds_of(g::read(g::text(",'translation':[0,0,3],'scale':[1,1,2]"))).high,
            (tools::vec3{1, 1, 5}));
  EXPECT_EQ(bounds_of(g::read(g::text(",'matrix':[0,1,0,0,-1,0,0,0,0,0,1,0,4,0,0,1]"))).low,
            (tools::vec3{3, 0, 0}));
  const auto many =
      g::read(g::text(",'extensions':{'EXT_mesh_gpu_instancing':{'attributes':{'TRANSLATION':5}}}",
                      ",'extensionsRequired':['EXT_mesh_gpu_instancing']"));
  EXPECT_EQ(volume6(many), 2);
  EXPECT_EQ(bounds_of(many).high, (tools::vec3{6, 6, 1}));
  const std::string joints = ",'JOINTS_0':3,'WEIGHTS_0':4},'indices':1";
  EXPECT_EQ(bounds_of(g::read(g::text(",'skin':0,'translation':[100,0,0]",
                                      ",'skins':[{'joints':[0],'inverseBindMatrices':2}]", joints)))
                .low,
            (tools::vec3{107, 0, 0}))
      << "joints place a skin";
  EXPECT_EQ(
      bounds_of(g::read(g::text(",'weights':[2]", "", "},'indices':1,'targets':[{'POSITION':0}]"))).high,
      (tools::vec3{3, 3, 3}));
  EXPECT_EQ(g::read(g::text("", "", "},'mode':5")).triangles.size(), 2u) << "a strip";
  EXPECT_EQ(g::read(g::text("", "", "},'mode':6")).triangles.size(), 2u) << "a fan";
  EXPECT_EQ(g::read(g::text(",'children':[1]},{'mesh':0,'scale':[0,0,0]")).triangles.size(), 4u) << "hidden";
}

TEST(mesh, refuses_gltf_that_needs_more) {
  using g = gltf;
  const auto refused = [](const std::string& text, const std::string& words) {
    expect_refused(".gltf", text, {words});
  };
  const auto with = [](const std::string& node, const std::string& more = "", const std::string& part = "") {
    return g::text(node, more, part);
  };
  const auto edited = [](const std::string& from, const std::string& to) {
    auto text = g::text();
    const auto at = text.find(from);
    return at == text.npos ? "" : text.replace(at, from.size(), to);
  };
  refused(with("", ",'extensionsRequired':['KHR_draco_mesh_compression']"), "KHR_draco_mesh_compression");
  refused(with("", ",'extensionsRequired':['MY_shape']"), "MY_shape, which is not read");
  refused(edited("\"2.0\"", "\"1.0\""), "export glTF 2.0");
  refused(with(",'children':[0]"), "damaged");
  refused(with(",'children':[1]},{'children':[0]"), "damaged");
  refused(with(",'children':[9]"), "nodes[9], but there are 1");
  refused(with(",'mesh':3"), "meshes[3], but there are 1");
  refused(with(",'rotation':[1,1,0,0]"), "rotation");
  refused(with(",'matrix':[1,0,0,1,0,1,0,0,0,0,1,0,0,0,0,1]"), "perspective");
  refused(with(",'skin':0"), "skins[0], but there are 0");
  refused(with(",'weights':[1]"), "0 of 1 targets");
  refused(with("", "", "},'indices':0"), "is of type 5126");
  refused(with("", "", "},'mode':7"), "mode 7");
  refused(edited("\"byteOffset\":48", "\"byteOffset\":0"), "names vertex");
  refused(edited("\"byteLength\":48", "\"byteLength\":44"), "has 4 elements, but 44 bytes");
  refused(edited("\"count\":4", "\"count\":9007199254740991"), "elements, but 48 bytes");
  refused(edited("\"byteLength\":240", "\"byteLength\":241"), "240 bytes of 241");
  refused(edited("\"bufferView\":0,", ""), "has no data");
  refused(edited("{", "["), "is no valid JSON");
  expect_refused(".glb", std::string("glTF\2\0\0\0\x40\0\0\0", 12), {"is cut short"});
}

TEST(mesh, reads_3ds) {
  const auto chunk = [](std::uint16_t kind, const std::string& body) {
    return gltf::bytes<std::uint16_t>({kind}) +
           gltf::bytes<std::uint32_t>({static_cast<std::uint32_t>(6 + body.size())}) + body;
  };
  const auto points =
      gltf::bytes<std::uint16_t>({4}) + gltf::bytes<float>({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9});
  const auto part = [&](const std::string& name, std::uint16_t corner, const std::string& more = "") {
    const auto faces = gltf::bytes<std::uint16_t>({4, 0, 2, 1, 7, 0, 1, corner, 7, 1, 2, 3, 7, 0, 3, 2, 7});
    const auto list = chunk(0x4110, points) + chunk(0x4120, faces) + more;
    return chunk(0x4000, name + std::string(1, '\0') + chunk(0x4100, list));
  };
  const auto all = [&](const std::string& parts, const std::string& keys = "") {
    return chunk(0x4d4d, chunk(0x3d3d, parts) + keys);
  };
  const file f(".3ds", all(part("a", 3) + part("b", 3)));
  EXPECT_EQ(volume6(tools::read_mesh(f.path())), 18);
  EXPECT_EQ(bounds_of(tools::read_mesh(f.path())).high, (tools::vec3{1, 1, 9})) << "its axes stay";
  expect_refused(".3ds", all(part("a", 4)), {"names a vertex that is not there"});
  expect_refused(".3ds", all(part("a", 3)).substr(0, 60), {"wrong length"});
  const auto mirror = chunk(0x4160, gltf::bytes<float>({-1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}));
  expect_refused(".3ds", all(part("a", 3, mirror)), {"mirrored"});
  const auto key = chunk(0xb002, chunk(0xb010, std::string("a\0", 2)));
  expect_refused(".3ds", all(part("a", 3), chunk(0xb000, key + key)), {"placed twice"});
}

/// Faces of what a scene mirrors still look outwards.
TEST(mesh, turns_the_faces_of_what_is_mirrored) {
  const std::string amf =
      "<?xml version=\"1.0\"?><amf unit=\"inch\"><object id=\"0\"><mesh><vertices>"
      "<vertex><coordinates><x>0</x><y>0</y><z>0</z></coordinates></vertex>"
      "<vertex><coordinates><x>1</x><y>0</y><z>0</z></coordinates></vertex>"
      "<vertex><coordinates><x>0</x><y>1</y><z>0</z></coordinates></vertex>"
      "<vertex><coordinates><x>0</x><y>0</y><z>1</z></coordinates></vertex></vertices><volume>"
      "<triangle><v1>0</v1><v2>2</v2><v3>1</v3></triangle><triangle><v1>0</v1><v2>1</v2><v3>3</v3></triangle>"
      "<triangle><v1>1</v1><v2>2</v2><v3>3</v3></triangle><triangle><v1>0</v1><v2>3</v2><v3>2</v3></triangle>"
      "</volume></mesh></object></amf>";
  const file inches(".amf", amf);
  const auto read = tools::read_mesh(inches.path());
  EXPECT_EQ(volume6(read), 1);
  EXPECT_EQ(read.unit, (tools::length_unit{"inch", 0.0254}));
  auto other = amf;
  const file none(".amf", other.replace(other.find(" unit=\"inch\""), 12, ""));
  EXPECT_EQ(tools::read_mesh(none.path()).unit, (tools::length_unit{"millimeter", 1e-3}));

  const std::string dae =
      "<?xml version=\"1.0\"?><COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" "
      "version=\"1.4.1\">"
      "<asset><unit name=\"foot\" "
      "meter=\"0.5\"/><up_axis>Y_UP</up_axis></asset><library_geometries><geometry id=\"g\">"
      "<mesh><source id=\"p\"><float_array id=\"pa\" count=\"12\">0 0 0 1 0 0 0 1 0 0 0 1</float_array>"
      "<technique_common><accessor source=\"#pa\" count=\"4\" stride=\"3\"><param name=\"X\" type=\"float\"/>"
      "<param name=\"Y\" type=\"float\"/><param name=\"Z\" "
      "type=\"float\"/></accessor></technique_common></source>"
      "<vertices id=\"vs\"><input semantic=\"POSITION\" source=\"#p\"/></vertices><triangles count=\"4\">"
      "<input semantic=\"VERTEX\" source=\"#vs\" offset=\"0\"/><p>0 2 1 0 1 3 1 2 3 0 3 "
      "2</p></triangles></mesh>"
      "</geometry></library_geometries><library_visual_scenes><visual_scene id=\"s\"><node id=\"n\">"
      "<matrix>-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix><instance_geometry url=\"#g\"/></node></visual_scene>"
      "</library_visual_scenes><scene><instance_visual_scene url=\"#s\"/></scene></COLLADA>";
  const file mirrored(".dae", dae);
  const auto turned = tools::read_mesh(mirrored.path());
  EXPECT_EQ(turned.unit, (tools::length_unit{"meter", 1}));
  EXPECT_NEAR(volume6(turned), 0.125, 1e-6);
}

/// What a polygon is cut into: as many triangles as must be, of its area, and each side once.
double cut(const std::vector<std::array<double, 3>>& corners, bool simple = true) {
  std::vector<tools::triangle> triangles;
  EXPECT_EQ(tools::cut_polygon(corners, triangles), simple);
  EXPECT_EQ(triangles.size(), corners.size() - 2);
  std::map<std::pair<u32, u32>, int> sides;
  double area = 0;
  for (const auto& t : triangles) {
    const auto &a = corners[t[0]], &b = corners[t[1]], &c = corners[t[2]];
    const double twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    EXPECT_TRUE(twice >= -1e-12 || !simple);
    area += twice / 2;
    for (std::size_t k = 0; k < 3; ++k) ++sides[{t[k], t[(k + 1) % 3]}], --sides[{t[(k + 1) % 3], t[k]}];
  }
  for (const auto& [side, count] : sides) {
    const auto n = static_cast<u32>(corners.size());
    const int expected = side.second == (side.first + 1) % n   ? 1
                         : side.first == (side.second + 1) % n ? -1
                                                               : 0;
    EXPECT_EQ(count, expected) << side.first << " " << side.second;
  }
  return area;
}

TEST(polygon, is_cut_into_triangles) {
  EXPECT_EQ(cut({{0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}}), 4);
  EXPECT_EQ(cut({{0, 0, 0}, {4, 0, 0}, {1, 1, 0}, {0, 4, 0}}), 4);
  EXPECT_EQ(cut({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 1, 0}, {2, 2, 0}, {0, 2, 0}, {0, 1, 0}}), 4);
  // It touches itself at a corner; a hole that a bridge leads to; a corner twice.
  EXPECT_EQ(cut({{0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {4, 2, 0}, {4, 4, 0}, {2, 4, 0}, {2, 2, 0}, {0, 2, 0}}), 8);
  EXPECT_EQ(cut({{0, 0, 0},
                 {3, 0, 0},
                 {3, 3, 0},
                 {0, 3, 0},
                 {0, 0, 0},
                 {1, 1, 0},
                 {1, 2, 0},
                 {2, 2, 0},
                 {2, 1, 0},
                 {1, 1, 0}}),
            8);
  EXPECT_EQ(cut({{0, 0, 0}, {0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {2, 2, 0}, {0, 2, 0}}), 4);
  // A notch whose end touches a corner from inside: that corner is no ear.
  EXPECT_EQ(cut({{0, 0, 0}, {4, 0, 0}, {4, 4, 0}, {2, 4, 0}, {0, 0, 0}, {1, 4, 0}, {0, 4, 0}}), 14);
  cut({{0, 0, 0}, {2, 2, 0}, {2, 0, 0}, {0, 3, 0}}, false);
}

RC_GTEST_PROP(polygon, of_any_star_keeps_its_area, ()) {
  const auto n = *rc::gen::inRange<std::size_t>(4, 200);
  std::vector<std::array<double, 3>> corners;
  double area = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double angle = 6.283185307179586 * static_cast<double>(i) / static_cast<double>(n),
                 far = *rc::gen::inRange(1, 1000);
    corners.push_back({far * std::cos(angle), far * std::sin(angle), 0});
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto &a = corners[i], &b = corners[(i + 1) % n];
    area += (a[0] * b[1] - a[1] * b[0]) / 2;
  }
  if (n == 4 && area < 1) return;
  std::vector<tools::triangle> triangles;
  RC_ASSERT(tools::cut_polygon(corners, triangles));
  double sum = 0;
  for (const auto& t : triangles) {
    const auto &a = corners[t[0]], &b = corners[t[1]], &c = corners[t[2]];
    const double twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    RC_ASSERT(twice > -1e-6);
    sum += twice / 2;
  }
  RC_ASSERT(std::abs(sum - area) < 1e-6 * area);
}

/// A disk, a gear and a comb of 100,000 corners: seconds, where ears that are looked for among all corners
/// take minutes.
TEST(polygon, of_many_corners_takes_no_minutes) {
  const std::size_t n = sanitized ? 20000 : 100000;
  const auto begin = std::chrono::steady_clock::now();
  for (const int kind : {0, 1, 2}) {
    std::vector<std::array<double, 3>> corners;
    for (std::size_t i = 0; i < n; ++i) {
      const double t = static_cast<double>(i) / n, angle = 6.283185307179586 * t,
                   far = kind == 1 && i % 2 != 0 ? 0.5 : 1;
      if (kind == 2) {
        corners.push_back({10 * t, i == 0 || i + 1 == n ? 0.0 : i % 2 == 0 ? 0.5 : 5.0, 0});
      } else {
        corners.push_back({far * std::cos(angle), far * std::sin(angle), 0});
      }
    }
    std::vector<tools::triangle> triangles;
    EXPECT_TRUE(tools::cut_polygon(corners, triangles)) << kind;
    EXPECT_EQ(triangles.size(), n - 2);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(mesh, says_what_is_wrong_with_a_path) {
  expect_refused(data / "nothing.obj", {"no such file"});
  expect_refused(data, {"directory"});
  expect_refused("/dev/null", {"not a regular file"});
}

TEST(mesh, says_what_is_wrong_with_a_file) {
  expect_refused(".obj", "", {"empty"});
  expect_refused(".txt", "no mesh at all, but a text\n", {"cannot be read as a mesh"});
  expect_refused(".obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", {"3 vertices", "no triangles"});
  expect_refused(".obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", {"face 1 names vertex 9", "3 vertices"});
  expect_refused(".stl", "solid a\nendsolid a\n", {});
}

TEST(mesh, names_a_vertex_that_is_not_finite) {
  expect_refused(".obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n", {"(1, nan, 0)", "face 1", "not finite"});
  expect_refused(".obj", "v 0 0 0\nv 1 0 -inf\nv 0 1 0\nf 1 2 3\n", {"(1, 0, -inf)", "not finite"});
  expect_refused(".obj", "v 0 0 0\nv 1e39 0 0\nv 0 1 0\nf 1 2 3\n", {"(inf, 0, 0)", "not finite"});
  std::string ply = content_of(data / "cube_strips.ply");
  ply.replace(ply.find("\n1 1 1\n"), 7, "\n1 1 nan\n");
  expect_refused(".ply", ply, {"(1, 1, nan)", "not finite"});
}

TEST(mesh, refuses_damaged_ply) {
  const std::string good = content_of(data / "cube_strips.ply");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_refused(".ply", good.substr(0, 100), {"header"});
  expect_refused(".ply", with("end_header", "end_headers"), {"header"});
  expect_refused(".ply", with("property float x", "property comment x"), {"header"});
  expect_refused(".ply", with("element tristrips 1", "element tristrips 1\nelement vertex 9"), {"header"});
  expect_refused(".ply", with("element tristrips 1", "element 777777777tristrips 1"), {"header"});
  expect_refused(".ply", with("vertex 8", "vertex 99999999999"), {"of 99999999999"});
  expect_refused(".ply", good.substr(0, good.size() - 60), {"vertex 6 of 8"});
  expect_refused(".ply", with("20 4", "20 9"), {"names vertex 10", "8 vertices"});
  expect_refused(".ply", with("20 4", "20 -2"), {"names vertex"});
  expect_refused(".ply", with("20 4", "21 4"), {"tristrips 1 of 1"});
  expect_refused(".ply", with("20 4", "4000000000 4"), {"tristrips 1 of 1"});
  expect_refused(".ply", with("20 4", "-1 4"), {"tristrips 1 of 1"});
  expect_refused(".ply",
                 with("element tristrips 1",
                      "element face 1\nproperty list uchar int vertex_indices\nelement tristrips 1") +
                     "3 0 1 2\n",
                 {"faces and triangle strips"});
}

TEST(ply, header_is_understood) {
  const std::string good = content_of(data / "cube_strips.ply");
  const auto header = tools::read_ply_header(good);
  EXPECT_TRUE(header.understood);
  EXPECT_TRUE(header.ascii);
  ASSERT_EQ(header.elements.size(), 2u);
  EXPECT_EQ(header.count("vertex"), 8u);
  EXPECT_EQ(header.count("tristrips"), 1u);
  EXPECT_EQ(header.count("face"), 0u);
  EXPECT_EQ(header.elements[0].properties.size(), 3u);
  EXPECT_EQ(header.elements[1].properties[0].count.bytes, 4u);
  EXPECT_EQ(good.substr(header.bytes, 5), "0 0 0");
  EXPECT_EQ(tools::missing_in_ply(good, header), "");
}

TEST(ply, header_with_numbers_that_overflow) {
  const auto understood = [](const std::string& number) {
    return tools::read_ply_header("ply\nelement a " + number + "\nend_header\n").understood;
  };
  EXPECT_TRUE(understood("18446744073709551615"));
  for (const auto* number : {"18446744073709551616", "-1", "1.5", "1e3", "0x1", ""})
    EXPECT_FALSE(understood(number)) << number;
}

/// The longest list of each type of count is as long as its file, or refused; nothing is allocated
/// or read for it.
TEST(ply, lists_that_announce_too_much) {
  for (const std::string order : {"little", "big"}) {
    for (const std::string type : {"char", "uchar", "short", "ushort", "int", "uint"}) {
      const std::string head = "ply\nformat binary_" + order + "_endian 1.0\nelement face 1\nproperty list " +
                               type + " double v\nend_header\n";
      const auto missing = [&](const std::string& body) {
        return tools::missing_in_ply(head + body, tools::read_ply_header(head + body));
      };
      EXPECT_NE(missing(""), "");
      EXPECT_NE(missing("\xff"), "");
      EXPECT_NE(missing("\xff\xff\xff\xff" + std::string(80, 'x')), "");
      const std::size_t bytes = type.ends_with("char") ? 1 : type.ends_with("short") ? 2 : 4;
      std::string two(bytes, '\0');
      (order == "little" ? two.front() : two.back()) = 2;
      EXPECT_EQ(missing(two + std::string(16, 'x')), "");
      EXPECT_NE(missing(two + std::string(15, 'x')), "");
    }
  }
}

RC_GTEST_PROP(ply, survives_any_bytes, (const std::string& bytes, const std::string& body)) {
  tools::read_ply_header(bytes);
  static const std::vector<std::string> heads{"ascii", "binary_little_endian", "binary_big_endian"};
  const auto text = "ply\nformat " + *rc::gen::elementOf(heads) + " 1.0\nelement a " +
                    *rc::gen::elementOf(std::vector<std::string>{"0", "3", "18446744073709551615"}) +
                    "\nproperty list " +
                    *rc::gen::elementOf(std::vector<std::string>{"char", "ushort", "uint"}) +
                    " float b\nproperty short c\nend_header\n" + body;
  const auto header = tools::read_ply_header(text);
  RC_ASSERT(header.understood);
  tools::missing_in_ply(text, header);
}

/// Some characters of the file are replaced, and perhaps it is cut short: it is read or refused,
/// and what is read is sound.
RC_GTEST_PROP(mesh, survives_damage, ()) {
  static const std::vector<std::string> names{"cube.obj", "cube_strips.ply", "tetrahedron.stl"};
  const auto name = *rc::gen::elementOf(names);
  std::string text = content_of(data / name);
  const auto damages = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(rc::gen::pair(
      rc::gen::inRange<std::size_t>(0, text.size()),
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::elementOf(std::string(" \n-.0123456789")))));
  for (std::size_t i = 0; i < std::min<std::size_t>(damages.size(), 3); ++i)
    text[damages[i].first] = damages[i].second;
  if (*rc::gen::inRange(0, 4) == 0) text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
  const file f(std::filesystem::path(name).extension(), text);
  try {
    expect_sound(tools::read_mesh(f.path()));
  } catch (const roost::invalid_argument& e) {
    RC_ASSERT(std::string(e.what()).find('\n') == std::string::npos);
  }
}

/// Strips against their definition: triangle k of a strip has the corners k, k + 1, k + 2, the
/// first two in turn exchanged.
RC_GTEST_PROP(strips, are_what_they_are_defined_to_be, ()) {
  const auto strips = *rc::gen::container<std::vector<std::vector<u32>>>(
      rc::gen::container<std::vector<u32>>(rc::gen::inRange<u32>(0, 6)));
  std::vector<u32> indices;
  std::vector<tools::triangle> expected;
  for (const auto& strip : strips) {
    for (std::size_t k = 0; k + 2 < strip.size(); ++k) {
      const auto a = strip[k + k % 2], b = strip[k + 1 - k % 2], c = strip[k + 2];
      if (a != b && b != c && c != a) expected.push_back({a, b, c});
    }
    indices.insert(indices.end(), strip.begin(), strip.end());
    indices.push_back(tools::strip_end);
  }
  RC_ASSERT(tools::triangles_of_strips(indices) == expected);
  if (!indices.empty()) indices.pop_back();  // the last strip need not be ended
  RC_ASSERT(tools::triangles_of_strips(indices) == expected);
}

}  // namespace
}  // namespace test

#endif
