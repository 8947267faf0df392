#pragma once

#include <bit>

#include "roost/detail/partition/sort.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/pair.hpp"
#if defined(ROOST_SORT_BY_CUB) && defined(__CUDACC__)
#include "roost/two_way_index.hpp"  // and sort_keys
#endif

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
  if (n >= 0xffffffff || groups >= 0xffffffff) {
    detail::raise<invalid_argument>(
        {where, ": ", n, " ids and ", groups, " groups; give fewer than 2^32 - 1 of both"});
  }
}

/// Grouped rows as pairs, or as two arrays.
struct grouped_view {
  const std::uint32_t* groups;
  const std::uint32_t* rows;
  std::uint32_t apart;  // words from one to the next

  grouped_view(const std::uint32_t* its_groups, const std::uint32_t* its_rows)
      : groups(its_groups), rows(its_rows), apart(1) {}
  explicit grouped_view(const grouped_row* pairs)
      : groups(reinterpret_cast<const std::uint32_t*>(pairs)), rows(groups + 1), apart(2) {
    static_assert(sizeof(grouped_row) == 2 * sizeof(std::uint32_t));
  }
  ROOST_FN std::uint32_t group(std::size_t i) const { return groups[i * apart]; }
  ROOST_FN std::uint32_t row(std::size_t i) const { return rows[i * apart]; }
};

template <class Place>
struct sorted_ids {
  partitioned<grouped_row, Place> items;
  grouped_view view() const { return grouped_view(items.items()); }
};

template <class Id>
std::uint32_t bits_of(const group_at<Id>& group) {
  return static_cast<std::uint32_t>(std::bit_width(group.groups));
}

/// Sorts ids by their groups. Asynchronous on cuda.
template <class Place, class Id>
auto sort_ids(const Place& place, std::size_t n, const group_at<Id>& group) {
  return sorted_ids<Place>{sort_pairs(place, computed(n, group), bits_of(group))};
}

#if defined(ROOST_SORT_BY_CUB) && defined(__CUDACC__)
/// The same by CUB, which reads each pass once.
template <>
struct sorted_ids<cuda> {
  sorted_keys<std::uint32_t, std::uint32_t, cuda> items;
  grouped_view view() const { return {items.keys.data(), items.numbers.data()}; }
};

template <class Id>
struct write_group {
  group_at<Id> group;
  std::uint32_t* groups;
  std::uint32_t* rows;  // or null
  ROOST_FN void operator()(std::size_t i) const {
    const grouped_row mine = group(i);
    groups[i] = mine.key;
    if (rows != nullptr) rows[i] = mine.value;
  }
};

template <class Id>
auto sort_ids(const cuda& place, std::size_t n, const group_at<Id>& group) {
  if (n == 0) return sorted_ids<cuda>();
  const bool has_rows = group.numbers != nullptr && !group.short_numbers;
  array<std::uint32_t, cuda> groups(place, n), rows(place, has_rows ? 0 : n);
  place.for_each(n, write_group<Id>{group, groups.data(), rows.data()});
  const auto* const numbers = has_rows ? static_cast<const std::uint32_t*>(group.numbers) : rows.data();
  return sorted_ids<cuda>{sort_keys(place, as_sequence(std::as_const(groups)),
                                    sequence<const std::uint32_t*>{numbers, n}, larger(1u, bits_of(group)))};
}
#endif

}  // namespace roost::detail
