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
/// kept in place of the position; or null. This reads, and writes nothing, so that several reads are on their
/// way at a time; wrong ids are noted where notice() is called.
template <class Id>
struct group_at {
  const Id* ids;
  std::uint32_t groups;
  std::uint64_t* wrong;
  const void* numbers = nullptr;
  bool short_numbers = false;

  ROOST_FN grouped_row operator()(std::size_t i) const {
    const auto id = static_cast<std::uint64_t>(std::int64_t{ids[i]});
    const std::uint32_t group = id < groups ? static_cast<std::uint32_t>(id) : groups;
    if (numbers == nullptr) return {group, static_cast<std::uint32_t>(i)};
    if (short_numbers) return {group, std::uint32_t{static_cast<const std::uint16_t*>(numbers)[i]}};
    return {group, static_cast<const std::uint32_t*>(numbers)[i]};
  }
  ROOST_FN void notice(std::uint32_t group, std::size_t i) const {
    if (group == groups) note_wrong_id(wrong, i);
  }
};

/// Calls notice() where a row is read, if there is such a function.
template <class RowAt>
struct noticed {
  RowAt row_at;
  ROOST_FN grouped_row operator()(std::size_t i) const {
    const grouped_row mine = row_at(i);
    if constexpr (requires { row_at.notice(mine.key, i); }) row_at.notice(mine.key, i);
    return mine;
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
  ROOST_FN grouped_row item(std::size_t i) const {
    if (apart == 2) return reinterpret_cast<const grouped_row*>(groups)[i];
    return {groups[i], rows[i]};
  }
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

/// Sorts the n rows that row_at(i) returns by their groups, which are below 2^bits, stably. Asynchronous on
/// cuda.
template <class Place, class RowAt>
sorted_ids<Place> sort_rows(const Place& place, std::size_t n, const RowAt& row_at, std::uint32_t bits) {
  return {sort_pairs(place, computed(n, noticed<RowAt>{row_at}), bits)};
}

#if defined(__CUDACC__)
template <>
struct sorted_ids<cuda> {
  array<grouped_row, cuda> items;
#if defined(ROOST_SORT_BY_CUB)
  sorted_keys<std::uint32_t, std::uint32_t, cuda> by_cub;
  grouped_view view() const {
    return items.size() != 0 ? grouped_view(items.data())
                             : grouped_view{by_cub.keys.data(), by_cub.numbers.data()};
  }
#else
  grouped_view view() const { return grouped_view(items.data()); }
#endif
};

template <class RowAt>
struct write_row {
  RowAt row_at;
  std::uint32_t* groups;
  std::uint32_t* rows;
  ROOST_FN void operator()(std::size_t i) const {
    const grouped_row mine = noticed<RowAt>{row_at}(i);
    groups[i] = mine.key;
    rows[i] = mine.value;
  }
};

template <class RowAt>
sorted_ids<cuda> sort_rows(const cuda& place, std::size_t n, const RowAt& row_at, std::uint32_t bits) {
  sorted_ids<cuda> sorted;
  if (n == 0) return sorted;
  bits = larger(1u, bits);
#if defined(ROOST_SORT_BY_CUB)
  if (n < sort_tuning<cuda>::one_look_least) {
    array<std::uint32_t, cuda> groups(place, n), rows(place, n);
    place.for_each(n, write_row<RowAt>{row_at, groups.data(), rows.data()});
    sorted.by_cub =
        sort_keys(place, as_sequence(std::as_const(groups)), as_sequence(std::as_const(rows)), bits);
    return sorted;
  }
#endif
  sorted.items = sort_in_one_look(place, computed(n, row_at), bits);
  return sorted;
}
#endif

/// Sorts ids by their groups.
template <class Place, class Id>
auto sort_ids(const Place& place, std::size_t n, const group_at<Id>& group) {
  return sort_rows(place, n, group, bits_of(group));
}

}  // namespace roost::detail
