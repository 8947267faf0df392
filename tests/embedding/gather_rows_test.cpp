#include <random>
#include <roost/embedding/gather_rows.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// gather_rows against a loop.

namespace test {
namespace {

/// Rows of a place's memory, or of the host's, pinned.
struct far_rows {
  explicit far_rows(std::size_t bytes) : size(bytes) {
#if defined(__CUDACC__)
    roost::detail::check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "cudaHostAlloc");
#else
    data = std::malloc(bytes);
#endif
  }
  far_rows(const far_rows&) = delete;
  ~far_rows() {
#if defined(__CUDACC__)
    static_cast<void>(cudaFreeHost(data));
#else
    std::free(data);
#endif
  }
  std::span<const std::byte> all() const { return {static_cast<const std::byte*>(data), size}; }

  void* data = nullptr;
  std::size_t size;
};

void expect_rows(std::span<const std::byte> here, std::span<const std::byte> rows, std::size_t row_bytes,
                 std::size_t n, std::size_t misaligned = 0) {
  std::mt19937_64 random(n + row_bytes);
  const std::size_t n_rows = here.size() / row_bytes;
  std::vector<std::int64_t> ids(n);
  for (auto& id : ids) {
    const u64 x = random();
    id = static_cast<std::int64_t>(n_rows == 0 ? 0 : x / 64 % n_rows);
    if (x % 64 == 0) id = x % 128 == 0 ? -1 : static_cast<std::int64_t>(n_rows);
    if (x % 64 == 1) id = std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(x % 1024);
  }
  roost::array<std::byte, place_type> out(test_place(), n * row_bytes + misaligned);
  roost::gather_rows(test_place(), rows, row_bytes, roost::copy_to(test_place(), ids).span(),
                     out.span().subspan(misaligned));
  const auto got = roost::copy_to_host(test_place(), out);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < row_bytes; ++b) {
      const auto id = static_cast<std::size_t>(ids[i]);
      ASSERT_EQ(got[misaligned + i * row_bytes + b], id < n_rows ? here[id * row_bytes + b] : std::byte{255})
          << n << " rows of " << row_bytes << ", " << i;
    }
  }
}

TEST(gather_rows, rows_are_those_of_a_loop) {
  for (const std::size_t row_bytes : {1, 3, 4, 8, 12, 16, 48, 64, 100, 512, 1040}) {
    for (const std::size_t n_rows : {0, 1, 100, 5000}) {
      std::vector<std::byte> rows(row_bytes * n_rows);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * 7 + i / 251);
      const auto there = roost::copy_to(test_place(), rows);
      for (const std::size_t n : {0, 1, 31, 33, 1000, 1025}) {
        expect_rows(rows, there.span(), row_bytes, n);
        expect_rows(rows, there.span(), row_bytes, n, 4);
      }
    }
  }
}

TEST(gather_rows, many_rows_of_the_host_come_in_the_order_of_pages) {
  constexpr bool is_host = std::is_same_v<place_type, roost::host>;
  for (const std::size_t bytes : {1 << 20, (is_host ? 1 << 26 : 1 << 30) + 1024}) {
    const far_rows rows(bytes);
    auto* const words = static_cast<std::uint32_t*>(rows.data);
    for (std::size_t i = 0; i < bytes / 4; ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761u >> 7);
    for (const std::size_t n : {1000, (1 << 15) - 1, 1 << 15, 40'000}) {
      expect_rows(rows.all(), rows.all(), 64, n);
      expect_rows(rows.all(), rows.all(), 1024, n / 4);
    }
  }
}

TEST(gather_rows, wrong_arguments_are_refused) {
  std::vector<std::byte> rows(100);
  std::vector<std::int64_t> ids(3);
  const auto refuses = [&](std::size_t of_rows, std::size_t row_bytes, std::size_t of_out) {
    roost::array<std::byte, place_type> out(test_place(), of_out), all(test_place(), of_rows);
    EXPECT_THROW(roost::gather_rows(test_place(), all.span(), row_bytes,
                                    roost::copy_to(test_place(), ids).span(), out.span()),
                 roost::invalid_argument);
  };
  refuses(100, 0, 30);
  refuses(100, 3, 9);
  refuses(100, 10, 29);
  refuses(100, 10, 40);
#if defined(__CUDACC__)
  roost::array<std::byte, place_type> out(test_place(), 30);
  EXPECT_THROW(
      roost::gather_rows(test_place(), rows, 10, roost::copy_to(test_place(), ids).span(), out.span()),
      roost::invalid_argument);
#endif
}

}  // namespace
}  // namespace test
