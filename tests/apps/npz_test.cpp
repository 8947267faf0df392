#ifndef __CUDACC__  // writing files is work of the host

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "apps/shared/npz_file.hpp"
#include "roost/error.hpp"

// Named arrays in a file, which Python's zipfile reads back and whose checksums it checks.

namespace test {
namespace {

namespace tools = roost::tools;

std::string bytes_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The sizes of the four arrays that write_arrays writes.
constexpr std::size_t sizes[] = {0, 1, 300, (std::size_t{1} << 20) + 7};

std::string content(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i >> 3);
  return bytes;
}

/// What Python finds in an archive: names, and the bytes of all members in turn.
void expect_read(const std::filesystem::path& folder, std::uint64_t short_of) {
  const auto file = (folder / "a.npz").string(), found = (folder / "found").string();
  std::filesystem::remove(file);
  {
    tools::npz_file out(file, short_of);
    for (const auto size : sizes)
      out.add(fmt::format("n{}", size), "'|u1'", fmt::format("{},", size), content(size));
    EXPECT_FALSE(std::filesystem::exists(file));
    out.finish();
  }
  const auto program =
      "import sys, zipfile\n"
      "z = zipfile.ZipFile(sys.argv[1])\n"
      "assert z.testzip() is None\n"
      "assert all(i.compress_type == zipfile.ZIP_STORED for i in z.infolist())\n"
      "out = open(sys.argv[2], 'wb')\n"
      "for i in z.infolist(): out.write(i.filename.encode() + b'\\n' + z.read(i))\n";
  std::ofstream(folder / "read.py") << program;
  const auto command = fmt::format("python3 {} {} {}", (folder / "read.py").string(), file, found);
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string expected;
  for (const auto size : sizes) {
    expected += fmt::format("n{}.npy\n", size) + tools::npy_header("'|u1'", fmt::format("{},", size));
    expected += content(size);
  }
  EXPECT_TRUE(bytes_in(found) == expected);
  // The marks of 64 bits are there if, and only if, something needs them.
  const auto bytes = bytes_in(file);
  EXPECT_EQ(bytes.find("PK\6\6") != bytes.npos, short_of < bytes.size() - 200);
}

TEST(npz_file, is_read_by_python_with_sizes_of_32_and_64_bits) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("roost_npz_{}", getpid());
  std::filesystem::create_directories(folder);
  // 129: the first member is short, the second at its end; 428: the third; then the last; then none.
  for (const std::uint64_t short_of : {1ull, 128ull, 129ull, 427ull, 428ull, 429ull, 1ull << 20, 1ull << 21})
    expect_read(folder, short_of);
  expect_read(folder, 0xffffffff);
  EXPECT_THROW(tools::npz_file((folder / "none" / "a.npz").string()), roost::error);
  std::filesystem::remove_all(folder);
}

TEST(npz_file, has_headers_of_a_multiple_of_64_bytes) {
  for (std::size_t i = 0; i < 200; ++i) {
    const auto header = tools::npy_header("'<f8'", std::string(i, '1'));
    ASSERT_EQ(header.size() % 64, 0u);
    ASSERT_EQ(header.back(), '\n');
    ASSERT_EQ(std::size_t{static_cast<unsigned char>(header[8])} +
                  256 * std::size_t{static_cast<unsigned char>(header[9])} + 10,
              header.size());
  }
  EXPECT_EQ(tools::npy_header("'<f8'", "").substr(10, 56),
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), } ");
}

}  // namespace
}  // namespace test

#endif
