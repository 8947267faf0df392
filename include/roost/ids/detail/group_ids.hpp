#pragma once

#include "roost/detail/groups/sort_keys.hpp"
#include "roost/detail/table/team_table.hpp"
#include "roost/hash.hpp"
#include "roost/ids/detail/sort_ids.hpp"
#include "roost/ids/group_ids.hpp"

// Bodies of roost/ids/group_ids.hpp.

namespace roost {
namespace detail {

/// The words of a table in memory that all teams see, for team_table.
struct all_teams {
  template <class T>
  ROOST_FN T read(const T& word) const {
    return peek(word);
  }
  template <class T>
  ROOST_FN T compare_exchange(T& word, T expected, T desired) const {
    return shared_access::compare_exchange(&word, expected, desired);
  }
};

/// A table of ids: a slot has the first position of an id in the input. At most half of the slots are taken.
struct table_of_ids {
  using table_type = team_table<std::uint32_t, look::read, true>;
  static constexpr std::uint32_t none_here = table_type::empty;

  const std::int64_t* ids;
  table_type table;

  static std::size_t slots_for(std::size_t n) { return 2 * n + 2; }

  ROOST_FN std::uint32_t home(std::int64_t id) const {
    return static_cast<std::uint32_t>(
        split_hash(hash_of(static_cast<std::uint64_t>(id), 0x2b992ddfu), table.slots).digit);
  }
  /// The slot of the id at a position, which is put there if it is the least.
  ROOST_FN std::uint32_t put(std::uint32_t i) const {
    const std::int64_t id = ids[i];
    const auto at = table.put(all_teams(), home(id), i, table.slots,
                              [&](std::uint32_t position) { return ids[position] == id; });
    if (!at.is_new() && i < at.before) fetch_min(table.slot[at.slot], i);
    return at.slot;
  }
  /// The first position of an id, or none_here.
  ROOST_FN std::uint32_t find(std::int64_t id) const {
    const std::uint32_t slot = table.find(
        home(id), [&](std::uint32_t position) { return position == none_here || ids[position] == id; });
    return table.slot[slot];
  }
};

struct put_ids {
  table_of_ids table;
  std::uint32_t* slot_of;  // each position; or null
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t slot = table.put(static_cast<std::uint32_t>(i));
    if (slot_of != nullptr) slot_of[i] = slot;
  }
};

struct occurs_first {
  const std::uint32_t* first_of_slot;
  const std::uint32_t* slot_of;
  ROOST_FN bool operator()(std::size_t i) const { return first_of_slot[slot_of[i]] == i; }
};

/// Whether a distinct id has room; notes if it has not.
ROOST_FN bool has_room(const distinct_ids& result, std::uint64_t number) {
  if (number == result.limit && result.too_many != nullptr) *result.too_many = 1;  // by one worker
  return number < result.limit;
}

/// Writes the ids that occur first, and the numbers of their slots.
struct put_first {
  distinct_ids result;
  const std::int64_t* ids;
  const std::uint32_t* slot_of;
  std::uint32_t* number_of_slot;
  ROOST_FN void operator()(std::uint64_t number, std::uint64_t i) const {
    number_of_slot[slot_of[i]] = static_cast<std::uint32_t>(number);
    if (!has_room(result, number)) return;
    if (result.keys != nullptr) result.keys[number] = ids[i];
    if (result.first != nullptr) result.first[number] = static_cast<std::int64_t>(i);
  }
};

/// Writes the numbers of all ids, and counts them.
struct write_inverse {
  distinct_ids result;
  const std::uint32_t* slot_of;
  const std::uint32_t* number_of_slot;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t number = number_of_slot[slot_of[i]];
    if (result.inverse != nullptr) result.inverse[i] = number;
    if (result.counts != nullptr && number < result.limit)
      fetch_add(reinterpret_cast<std::uint64_t&>(result.counts[number]), std::uint64_t{1});
  }
};

/// What follows the distinct ids; and their counts, if `starts` has where each begins in the sorted input.
struct finish_distinct {
  distinct_ids result;
  std::size_t n;
  const std::uint32_t* starts;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint64_t size = *result.size;
    if (i < size) {
      if (result.counts == nullptr || starts == nullptr) return;
      result.counts[i] =
          static_cast<std::int64_t>((i + 1 == size ? n : std::size_t{starts[i + 1]}) - starts[i]);
      return;
    }
    if (result.keys != nullptr) result.keys[i] = result.fill;
    if (result.first != nullptr) result.first[i] = static_cast<std::int64_t>(n);
    if (result.counts != nullptr) result.counts[i] = 0;
  }
};

/// Writes the distinct ones of sorted ids, and the number of each id.
template <class At, class Number>
struct put_group {
  static constexpr bool sees_all = true;
  At key;
  Number position;
  distinct_ids result;
  std::uint32_t* starts;
  grouped_row* sorted;

  ROOST_FN void operator()(std::uint64_t number, std::uint64_t i, bool is_first) const {
    const std::uint32_t at = position(i);
    const std::uint64_t mine = number - (is_first ? 0 : 1);
    if (result.inverse != nullptr) result.inverse[at] = static_cast<std::int64_t>(mine);
    if (sorted != nullptr) sorted[i] = {static_cast<std::uint32_t>(mine), at};
    if (!is_first) return;
    if (starts != nullptr) starts[mine] = static_cast<std::uint32_t>(i);
    if (!has_room(result, mine)) return;
    if (result.keys != nullptr) result.keys[mine] = key(i);
    if (result.first != nullptr) result.first[mine] = at;
  }
};

/// Ids by their low bits, which are all that they differ in.
struct low_bits_at {
  const std::int64_t* ids;
  std::uint32_t mask;
  ROOST_FN grouped_row operator()(std::size_t i) const {
    return {static_cast<std::uint32_t>(ids[i]) & mask, static_cast<std::uint32_t>(i)};
  }
};
struct id_of_low_bits {
  grouped_view sorted;
  const std::int64_t* ids;
  std::uint32_t mask;
  ROOST_FN std::int64_t operator()(std::size_t i) const {
    return (ids[0] & ~std::int64_t{mask}) | std::int64_t{sorted.group(i)};
  }
};
struct row_of_sorted {
  grouped_view sorted;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return sorted.row(i); }
};

/// The first position of each query.
struct find_positions {
  table_of_ids table;
  const std::int64_t* queries;
  std::int64_t* positions;
  std::int64_t missing;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t found = table.find(queries[i]);
    positions[i] = found == table_of_ids::none_here ? missing : std::int64_t{found};
  }
};

/// Where the ids of a group begin.
struct begin_of_group {
  grouped_view sorted;
  std::size_t n;
  ROOST_FN std::int64_t operator()(std::size_t group) const {
    return static_cast<std::int64_t>(
        lower_bound(std::size_t{0}, n, [&](std::size_t i) { return sorted.group(i) < group; }));
  }
};

struct write_order {
  grouped_view sorted;
  std::int64_t* order;
  std::int64_t* inverse;  // or null
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t at = sorted.row(i);
    order[i] = at;
    if (inverse != nullptr) inverse[at] = static_cast<std::int64_t>(i);
  }
};

inline void check_keys(const char* where, std::size_t n) {
  if (n >> 31 != 0) detail::raise<invalid_argument>({where, ": ", n, " ids; give fewer than 2^31"});
}

}  // namespace detail

template <class Place>
void unique_ids(const Place& place, std::span<const std::int64_t> ids, const distinct_ids& result) {
  const std::size_t n = ids.size(), slots = detail::table_of_ids::slots_for(n);
  detail::check_keys("roost::unique_ids", n);
  place.fill(result.size, 0, sizeof(*result.size));
  if (result.counts != nullptr) place.fill(result.counts, 0, result.limit * sizeof(*result.counts));
  if (n != 0) {
    auto first = detail::filled<std::uint32_t>(place, slots, 0xff);
    array<std::uint32_t, Place> slot_of(place, n), number_of_slot(place, slots);
    const detail::table_of_ids table{ids.data(), {first.data(), static_cast<std::uint32_t>(slots)}};
    place.for_each(n, detail::put_ids{table, slot_of.data()});
    detail::select(place, n, detail::occurs_first{first.data(), slot_of.data()},
                   detail::put_first{result, ids.data(), slot_of.data(), number_of_slot.data()}, result.size);
    if (result.inverse != nullptr || result.counts != nullptr)
      place.for_each(n, detail::write_inverse{result, slot_of.data(), number_of_slot.data()});
  }
  place.for_each(result.limit, detail::finish_distinct{result, n, nullptr});
}

template <class Place>
void group_keys(const Place& place, std::span<const std::int64_t> ids, const distinct_ids& result,
                grouped_position* sorted, std::uint32_t bits) {
  const std::size_t n = ids.size();
  detail::check_keys("roost::group_keys", n);
  array<std::uint32_t, Place> starts(place, result.counts != nullptr ? n : 0);
  place.fill(result.size, 0, sizeof(*result.size));
  const auto number_keys = [&](auto key, auto position) {
    detail::select(
        place, n, detail::is_first_of_copies{key},
        detail::put_group<decltype(key), decltype(position)>{key, position, result, starts.data(), sorted},
        result.size);
  };
  if (n != 0 && bits <= 32) {
    const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
    const auto in_order = detail::sort_rows(place, n, detail::low_bits_at{ids.data(), mask}, bits);
    number_keys(detail::id_of_low_bits{in_order.view(), ids.data(), mask},
                detail::row_of_sorted{in_order.view()});
  } else if (n != 0) {
    const auto in_order =
        detail::sort_keys(place, detail::as_sequence(ids), detail::numbers_to<std::uint32_t>(n), bits);
    number_keys(in_order.key(), in_order.number());
  }
  place.for_each(result.limit, detail::finish_distinct{result, n, starts.data()});
}

template <class Place>
void find_ids(const Place& place, std::span<const std::int64_t> ids, std::span<const std::int64_t> queries,
              std::span<std::int64_t> positions, std::int64_t missing) {
  const std::size_t n = ids.size(), slots = detail::table_of_ids::slots_for(n);
  detail::check_keys("roost::find_ids", n);
  if (positions.size() != queries.size()) {
    detail::raise<invalid_argument>(
        {"roost::find_ids: ", queries.size(), " queries and room for ", positions.size(), " positions"});
  }
  auto first = detail::filled<std::uint32_t>(place, slots, 0xff);
  const detail::table_of_ids table{ids.data(), {first.data(), static_cast<std::uint32_t>(slots)}};
  place.for_each(n, detail::put_ids{table, nullptr});
  place.for_each(queries.size(), detail::find_positions{table, queries.data(), positions.data(), missing});
}

template <class Place, class Id>
void group_ids(const Place& place, std::span<Id> ids, std::size_t groups, const grouped_ids& result) {
  using number = std::remove_const_t<Id>;
  const std::size_t n = ids.size();
  detail::check_ids("roost::group_ids", n, groups);
  const detail::group_at<number> group{ids.data(), static_cast<std::uint32_t>(groups), result.wrong};
  const auto sorted = detail::sort_ids(place, n, group);
  place.for_each(n, detail::write_order{sorted.view(), result.order, result.inverse});
  detail::write_numbers(place, groups + 1, detail::begin_of_group{sorted.view(), n}, result.offsets);
}

}  // namespace roost
