#ifndef __CUDACC__  // reading meshes is work of the host

#include "../tools/mesh.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../tools/ply.hpp"
#include "roost/detail/base/config.hpp"
#include "roost/error.hpp"

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

TEST(mesh, says_what_is_wrong_with_a_path) {
  expect_refused(data / "nothing.obj", {"no such file"});
  expect_refused(data, {"directory"});
  expect_refused("/dev/null", {"not a regular file"});
}

TEST(mesh, says_what_is_wrong_with_a_file) {
  expect_refused(".obj", "", {"empty"});
  expect_refused(".txt", "no mesh at all, but a text\n", {"cannot be read as a mesh"});
  expect_refused(".obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", {"3 vertices", "no triangles"});
  expect_refused(".obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", {"index"});
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
  expect_refused(".ply", with("vertex 8", "vertex 99999999999"), {"vertex 10 of 99999999999"});
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
