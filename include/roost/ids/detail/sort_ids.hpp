#pragma once

#include <bit>

#include "roost/detail/partition/sort.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/pair.hpp"

// Ids that are numbers of groups, sorted stably.

namespace roost::detail {

/// The number of a group, and where its row is. Numbers that are not below that of groups have no row.
using grouped_row = pair<std::uint32_t, std::uint32_t>;

/// Remembers that the id at position i is wrong.
ROOST_FN void note_wrong_id(std::uint64_t* wrong, std::uint64_t i) {
#if ROOST_ON_DEVICE
  *static_cast<volatile std::uint64_t*>(wrong) = ~i;  // may be memory of the host, where atomics are slow
#else
  fetch_max(*wrong, ~i);
#endif
}

/// The id at a position; that of wrong ones is the number of groups. `numbers`: of 4 or 2 bytes, which are
/// kept in place of the position; or null.
template <class Id>
struct group_at {
  const Id* ids;
  std::uint32_t groups;
  std::uint64_t* wrong;
  const void* numbers = nullptr;
  bool short_numbers = false;

  ROOST_FN grouped_row operator()(std::size_t i) const {
    const auto id = static_cast<std::uint64_t>(std::int64_t{ids[i]});
    if (id >= groups) note_wrong_id(wrong, i);
    const std::uint32_t group = id < groups ? static_cast<std::uint32_t>(id) : groups;
    if (numbers == nullptr) return {group, static_cast<std::uint32_t>(i)};
    if (short_numbers) return {group, std::uint32_t{static_cast<const std::uint16_t*>(numbers)[i]}};
    return {group, static_cast<const std::uint32_t*>(numbers)[i]};
  }
};

/// Throws for more ids or groups than can be numbered.
inline void check_ids(const char* where, std::size_t n, std::size_t groups) {
  if (n >> 32 != 0 || groups >= 0xffffffff) {
    detail::raise<invalid_argument>(
        {where, ": ", n, " ids and ", groups, " groups; give fewer than 2^32 - 1 of both"});
  }
}

/// Sorts ids by their groups. Asynchronous on cuda.
template <class Place, class Id>
auto sort_ids(const Place& place, std::size_t n, const group_at<Id>& group) {
  return sort_pairs(place, computed(n, group), static_cast<std::uint32_t>(std::bit_width(group.groups)));
}

}  // namespace roost::detail
