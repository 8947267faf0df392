#pragma once

#include "roost/detail/place/team.hpp"

// How a team copies rows: several lanes work on one row, and each lane on several rows at a time.

namespace roost::detail {

/// Lanes that work on one row, each on pieces of it: a power of two.
template <class Place>
constexpr std::uint32_t lanes_of_row(std::size_t pieces) {
  std::uint32_t lanes = 1;
  if constexpr (!std::is_same_v<Place, host>) {
    while (lanes < 32 && lanes < pieces) lanes *= 2;
  }
  return lanes;
}

/// Rows of some pieces, each copied by some lanes.
template <class Number>
struct row_batch {
  std::uint32_t rows;
  Number pieces;
  std::uint32_t lanes;
};
template <class Number>
row_batch(std::uint32_t, Number, std::uint32_t) -> row_batch<Number>;

/// Copies the pieces from(k) of each row k of a batch to to(k); if from(k) is null, piece p is other(k, p).
template <class Piece, class Team, class Number, class From, class Other, class To>
ROOST_FN void copy_rows(const Team& team, const row_batch<Number>& batch, const From& from,
                        const Other& other, const To& to) {
  const std::uint32_t count = batch.rows, lanes = batch.lanes;
  const Number pieces = batch.pieces;
  constexpr std::uint32_t at_once = 4;
  const std::uint32_t rank = static_cast<std::uint32_t>(team.rank()),
                      groups = static_cast<std::uint32_t>(Team::size) / lanes;
  for (std::uint32_t first = rank / lanes; first < count; first += groups * at_once) {
    const Piece* source[at_once];
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k)
      source[k] = reinterpret_cast<const Piece*>(from(smaller(first + k * groups, count - 1)));
    for (Number p = rank % lanes; p < pieces; p += lanes) {
      Piece piece[at_once];
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k)
        piece[k] = source[k] != nullptr ? source[k][p] : other(smaller(first + k * groups, count - 1), p);
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        if (first + k * groups < count) reinterpret_cast<Piece*>(to(first + k * groups))[p] = piece[k];
      }
    }
  }
}

}  // namespace roost::detail
