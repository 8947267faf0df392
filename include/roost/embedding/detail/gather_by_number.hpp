#pragma once

#include "roost/detail/partition/sort.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/embedding/detail/copy_rows.hpp"
#include "roost/embedding/gather_rows.hpp"
#include "roost/pair.hpp"

// Bodies of roost/embedding/gather_rows.hpp.

namespace roost {

namespace detail {

/// The page of host memory where a row is, and the row's position in the batch.
struct page_of_row {
  static constexpr int bits = 21;  // log2 of the 2 MiB that one GPU TLB entry covers

  const std::int64_t* ids;
  std::size_t row_bytes, bytes;
  ROOST_FN pair<std::uint32_t, std::uint32_t> operator()(std::size_t i) const {
    const std::size_t first = static_cast<std::size_t>(ids[i]) * row_bytes;
    return {static_cast<std::uint32_t>((first < bytes ? first : 0) >> bits), static_cast<std::uint32_t>(i)};
  }
};

template <class Piece>
struct gather_pieces {
  static constexpr int threads = 128;

  const std::byte* rows;
  std::size_t n_rows, row_bytes;
  const std::int64_t* ids;
  std::size_t n;
  std::byte* out;
  std::uint32_t lanes;                                        // of a row
  const pair<std::uint32_t, std::uint32_t>* order = nullptr;  // or null

  /// Rows of a team.
  template <class Place>
  ROOST_FN std::size_t tile() const {
    return std::is_same_v<Place, host> ? 1024 : 4 * threads / lanes;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t mine = tile<typename Team::place>(), first = index * mine;
    const auto position = [&](std::uint32_t k) {
      return order != nullptr ? std::size_t{order[first + k].value} : first + k;
    };
    copy_rows<Piece>(
        team,
        row_batch{static_cast<std::uint32_t>(smaller(mine, n - first)), row_bytes / sizeof(Piece), lanes},
        [&](std::uint32_t k) {
          const auto id = static_cast<std::size_t>(ids[position(k)]);
          return id < n_rows ? rows + id * row_bytes : nullptr;
        },
        [](std::uint32_t, std::size_t) {
          Piece ones;
          memset(&ones, 255, sizeof(Piece));
          return ones;
        },
        [&](std::uint32_t k) { return out + position(k) * row_bytes; });
  }
};

/// Whether rows lie in host memory that a place reads over a link.
inline bool lie_far(const host&, const void*) { return false; }
#if defined(__CUDACC__)
inline bool lie_far(const cuda& place, const void* rows) {
  const device_guard guard(place.device());
  cudaPointerAttributes about{};
  check(cudaPointerGetAttributes(&about, rows), "cudaPointerGetAttributes");
  if (about.type == cudaMemoryTypeUnregistered) {
    detail::raise<invalid_argument>(
        {"roost::gather_rows: the rows lie in host memory that the GPU cannot read; pin it "
         "(cudaHostAlloc, cudaHostRegister; in torch, pin_memory())"});
  }
  return about.type == cudaMemoryTypeHost;
}
#endif

template <class Piece, class Place>
void gather_pieces_of(const Place& place, std::span<const std::byte> rows, std::size_t row_bytes,
                      std::span<const std::int64_t> ids, std::span<std::byte> out, bool far) {
  const std::size_t n = ids.size();
  gather_pieces<Piece> run{.rows = rows.data(),
                           .n_rows = rows.size() / row_bytes,
                           .row_bytes = row_bytes,
                           .ids = ids.data(),
                           .n = n,
                           .out = out.data(),
                           .lanes = lanes_of_row<Place>(row_bytes / sizeof(Piece))};
  const std::size_t teams = ceil_div(n, run.template tile<Place>());
  // In the order of pages a GPU translates fewer addresses; rows of 1 KB and more are bound by the link.
  constexpr std::size_t many = std::size_t{1} << 15, wide = 1024, large = std::size_t{1} << 30;
  if (n < many || row_bytes >= wide || rows.size() < large || !far) return place.launch(teams, 0, run);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(rows.size() >> page_of_row::bits));
  const auto sorted = sort_pairs(place, computed(n, page_of_row{ids.data(), row_bytes, rows.size()}), bits);
  run.order = sorted.items();
  place.launch(teams, 0, run);
}

}  // namespace detail

template <class Place>
void gather_rows(const Place& place, std::span<const std::byte> rows, std::size_t row_bytes,
                 std::span<const std::int64_t> ids, std::span<std::byte> out) {
  if (row_bytes == 0 || rows.size() % row_bytes != 0 || out.size() / row_bytes != ids.size() ||
      out.size() % row_bytes != 0) {
    detail::raise<invalid_argument>({"roost::gather_rows: ", rows.size(), " bytes of rows and ", out.size(),
                                     " of results for ", ids.size(), " rows of ", row_bytes});
  }
  if (ids.size() >> 32 != 0)
    detail::raise<invalid_argument>({"roost::gather_rows: ", ids.size(), " ids; give fewer than 2^32"});
  if (ids.empty()) return;
  const bool far = !rows.empty() && detail::lie_far(place, rows.data());
  const auto bits = reinterpret_cast<std::uintptr_t>(rows.data()) |
                    reinterpret_cast<std::uintptr_t>(out.data()) | row_bytes;
  if (bits % 16 == 0) {
    detail::gather_pieces_of<detail::two_words>(place, rows, row_bytes, ids, out, far);
  } else if (bits % 4 == 0) {
    detail::gather_pieces_of<std::uint32_t>(place, rows, row_bytes, ids, out, far);
  } else {
    detail::gather_pieces_of<std::uint8_t>(place, rows, row_bytes, ids, out, far);
  }
}

}  // namespace roost
