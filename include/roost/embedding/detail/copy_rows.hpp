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

/// Copies the pieces from(k) of each row k below count to to(k); if from(k) is null, piece p is other(k, p).
template <class Piece, class Team, class Number, class From, class Other, class To>
ROOST_FN void copy_rows(const Team& team, std::uint32_t count, Number pieces, std::uint32_t lanes,
                        const From& from, const Other& other, const To& to) {
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
