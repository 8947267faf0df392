#pragma once

#include <span>

#include "roost/place.hpp"

/// \file
/// Rows by number, from memory of the place or of the host: tables too large for a GPU that need no keys.

namespace roost {

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
                 std::span<const std::int64_t> ids, std::span<std::byte> out);

}  // namespace roost

#include "roost/embedding/detail/gather_by_number.hpp"
