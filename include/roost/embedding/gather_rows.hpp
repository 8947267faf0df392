#pragma once

#include <span>

#include "roost/detail/partition/sort.hpp"
#include "roost/pair.hpp"
#include "roost/place.hpp"

/// \file
/// Rows by number, from memory of the place or of the host: tables too large for a GPU that need no keys.

namespace roost {

namespace detail {

struct alignas(16) sixteen_bytes {
  std::uint64_t low, high;
};

/// The page of host memory where a row is, and the row's position in the batch.
struct page_of_row {
  static constexpr int bits = 21;  // what a GPU knows the address of at a time

  const std::int64_t* ids;
  std::size_t n, row_bytes, bytes;
  std::size_t size() const { return n; }
  ROOST_FN pair<std::uint32_t, std::uint32_t> operator[](std::size_t i) const {
    const std::size_t first = static_cast<std::size_t>(ids[i]) * row_bytes;
    return {static_cast<std::uint32_t>((first < bytes ? first : 0) >> bits), static_cast<std::uint32_t>(i)};
  }
};

template <class Piece>
struct gather_pieces {
  static constexpr int threads = 128;
  static constexpr std::uint32_t at_once = 4;

  const Piece* rows;
  std::size_t n_rows, of_row;  // pieces
  const std::int64_t* ids;
  const pair<std::uint32_t, std::uint32_t>* order;  // or null
  std::size_t n;
  Piece* out;

  /// Lanes that copy a row together.
  ROOST_FN std::uint32_t lanes(std::uint32_t most) const {
    std::uint32_t all = 1;
    while (all < most && all < of_row) all *= 2;
    return all;
  }
  template <class Place>
  std::size_t teams() const {
    const std::size_t of_team = std::is_same_v<Place, host> ? 1024 : at_once * threads / lanes(32);
    return ceil_div(n, of_team);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint32_t of = lanes(Team::near_size), groups = static_cast<std::uint32_t>(Team::size) / of,
                        rank = static_cast<std::uint32_t>(team.rank()),
                        turns = Team::size == 1 ? 1024 / at_once : 1;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      std::size_t to[at_once], from[at_once];
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::size_t i = (index * turns + turn) * at_once * groups + k * groups + rank / of;
        to[k] = i < n && order != nullptr ? order[i].value : i;
        from[k] = i < n ? static_cast<std::size_t>(ids[to[k]]) : 0;
      }
      for (std::size_t p = rank % of; p < of_row; p += of) {
        Piece piece[at_once];
        ROOST_UNROLL
        for (std::uint32_t k = 0; k < at_once; ++k) {
          if (from[k] < n_rows) {
            piece[k] = rows[from[k] * of_row + p];
          } else {
            memset(&piece[k], 255, sizeof(Piece));
          }
        }
        ROOST_UNROLL
        for (std::uint32_t k = 0; k < at_once; ++k) {
          if (to[k] < n) out[to[k] * of_row + p] = piece[k];
        }
      }
    }
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
  gather_pieces<Piece> run{reinterpret_cast<const Piece*>(rows.data()),
                           rows.size() / row_bytes,
                           row_bytes / sizeof(Piece),
                           ids.data(),
                           nullptr,
                           n,
                           reinterpret_cast<Piece*>(out.data())};
  const auto teams = run.template teams<Place>();
  // In the order of pages a GPU translates fewer addresses; rows of 1 KB and more are bound by the link.
  constexpr std::size_t many = std::size_t{1} << 15, wide = 1024, large = std::size_t{1} << 30;
  if (n < many || row_bytes >= wide || rows.size() < large || !far) return place.launch(teams, 0, run);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(rows.size() >> page_of_row::bits));
  const auto sorted = sort_pairs(place, page_of_row{ids.data(), n, row_bytes, rows.size()}, bits);
  run.order = sorted.items();
  place.launch(teams, 0, run);
}

}  // namespace detail

/// out[i] = rows[ids[i]], for rows of `row_bytes` bytes in memory of the place, or in host memory that is
/// pinned for a GPU. Many rows in host memory are read in the order of their pages. If an id is not below the
/// number of rows, its result is all ones, which is NaN for floating-point numbers. Asynchronous on cuda; may
/// be captured in graphs.
///
///     roost::gather_rows(gpu, rows, 512, ids, out);
///
/// `out`: ids.size() * row_bytes bytes, in memory of the place. Throws invalid_argument for sizes that do not
/// match, for 2^32 or more ids, and for host memory that the GPU cannot read; out_of_memory.
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
    detail::gather_pieces_of<detail::sixteen_bytes>(place, rows, row_bytes, ids, out, far);
  } else if (bits % 4 == 0) {
    detail::gather_pieces_of<std::uint32_t>(place, rows, row_bytes, ids, out, far);
  } else {
    detail::gather_pieces_of<std::uint8_t>(place, rows, row_bytes, ids, out, far);
  }
}

}  // namespace roost
