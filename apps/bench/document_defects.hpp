#pragma once

#include "apps/measure/report.hpp"
#include "papers/document_table.hpp"
#include "roost/kernels.hpp"
#include "roost/sparse/kernel_map.hpp"

// Defects of the table in the document on submanifold convolution, compared with coordinate_index and counted
// on a place. tests/apps/document_table_test.cpp tests each.

namespace roost::bench {

/// Inserts one key, then looks it up.
struct document_insert_and_find {
  document_table_ref table;
  std::uint64_t key;
  std::uint32_t value;
  std::uint32_t* answers;  // whether it found a slot, and its value
  ROOST_FN void operator()(std::size_t) const {
    answers[0] = table.insert(key, value);
    answers[1] = table.find(key);
  }
};

/// The i-th of some keys.
struct document_fill {
  document_table_ref table;
  ROOST_FN void operator()(std::size_t i) const { table.insert(i, static_cast<std::uint32_t>(i)); }
};

/// Like document_find, but does not check whether a voxel is in the box, as in the document.
struct document_find_unchecked {
  document_table_ref table;
  document_box<3> box;
  ROOST_FN std::uint32_t operator()(const coordinate<3>& c) const {
    std::uint64_t key = 0;
    box.number(c, key);
    return table.find(key);
  }
};

struct is_a_row {
  const std::uint32_t* rows;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return rows[i] != no_row<std::uint32_t>; }
};
struct differs {
  const std::uint32_t *rows, *others;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return rows[i] != others[i]; }
};

/// Voxel i of an input in which each of n / 4 voxels occurs four times.
struct voxel_of_four {
  std::size_t n;
  ROOST_FN coordinate<3> operator()(std::size_t i) const {
    const auto v = static_cast<std::int32_t>(i * 2654435761u % n / 4);
    return {0, {v / 4096, v / 64 % 64, v % 64}};
  }
};

using defect = std::vector<std::string>;  // what is done, the document's behaviour, and ours

/// Whether a key finds a slot, and its value.
template <class Place>
std::vector<std::uint32_t> insert_and_find(const Place& place, const document_slots<Place>& memory,
                                           std::uint64_t key, std::uint32_t value) {
  array<std::uint32_t, Place> answers(place, 2);
  place.for_each(1, document_insert_and_find{memory.ref(), key, value, answers.data()});
  return copy_to_host(place, answers.span());
}

template <class Place>
defect full_table(const Place& place) {
  constexpr std::uint32_t n = 1024;
  const document_slots<Place> full(place, n);
  place.for_each(n, document_fill{full.ref()});
  const bool fits = insert_and_find(place, full, n, n)[0] != 0;
  std::vector<coordinate<3>> apart;
  for (std::uint32_t i = 0; i <= n; ++i) apart.push_back({0, {1000 * static_cast<std::int32_t>(i), 0, 0}});
  const auto input = copy_to(place, apart);
  typename coordinate_index<3, Place>::options options;
  options.capacity = n + 1;
  coordinate_index<3, Place> fixed(place, options);
  fixed.rebuild_async(place, input);
  bool refused = false;
  try {
    fixed.finish(place);
  } catch (const build_error&) {
    refused = true;
  }
  const std::size_t found = coordinate_index<3, Place>(place, input).count_found(place, input);
  check_answers((refused ? 0 : 1) + (found == n + 1 ? 0 : 1), "a full coordinate_index");
  return {"a key more than the table has room for", fits ? "finds room" : "never ends",
          "with a fixed capacity a build_error, else all " + std::to_string(found) + " are there"};
}

template <class Place>
defect copied_voxels(const Place& place) {
  constexpr std::size_t n = 1 << 20;
  array<coordinate<3>, Place> voxels(place, n);
  kernels::write_numbers(place, n, voxel_of_four{n}, voxels.data());
  const auto input = std::as_const(voxels).span();
  typename coordinate_index<3, Place>::options options;
  options.order = order::input;
  const coordinate_index<3, Place> first(place, input, options), again(place, input, options);
  const auto document = [&](bool last_wins) {
    const document_table<3, Place> made(place, input, first.bounds(), last_wins);
    array<std::uint32_t, Place> rows(place, n);
    place.for_each(n, find_rows_of<document_find<3>>{made.finder(), voxels.data(), rows.data()});
    return rows;
  };
  const auto right = document(false), one = document(true), other = document(true);
  const auto off = [&](const std::uint32_t* a, const std::uint32_t* b) {
    return place.sum(n, differs{a, b});
  };
  check_answers(off(first.rows_of_input().data(), again.rows_of_input().data()) +
                    (first.duplicates() == n - n / 4 ? 0 : 1),
                "coordinate_index with copies");
  return {std::to_string(n) + " voxels, each of them four times",
          std::to_string(off(right.data(), one.data())) + " have not the row of the first, " +
              std::to_string(off(one.data(), other.data())) + " another one in the next run",
          "all have the row of the first; " + std::to_string(first.duplicates()) + " copies are counted"};
}

template <class Place>
defect all_ones(const Place& place) {
  const document_slots<Place> memory(place, 8);
  const auto key = insert_and_find(place, memory, document_table_ref::empty, 3),
             value = insert_and_find(place, memory, 5, no_row<std::uint32_t>);
  const auto input = copy_to(place, std::vector<coordinate<3>>{{-1, {-1, -1, -1}}, {0, {0, 0, 0}}});
  check_answers(2 - coordinate_index<3, Place>(place, input).count_found(place, input),
                "the voxel of all ones");
  return {"a key of all ones; a row of all ones",
          std::string(key[1] == 3 ? "found" : "absent although it was inserted") + "; " +
              (value[1] == no_row<std::uint32_t> ? "as if it was absent" : "there"),
          "found; rows are less than 2^32 - 1"};
}

template <class Place>
defect border_of_box(const Place& place) {
  constexpr std::int32_t side = 64;
  constexpr std::size_t n = std::size_t{side} * side * side;
  constexpr std::uint64_t right = std::uint64_t{3 * side - 2} * (3 * side - 2) * (3 * side - 2);
  std::vector<coordinate<3>> solid;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(n); ++i)
    solid.push_back({0, {i / side / side, i / side % side, i % side}});
  const auto input = copy_to(place, solid);
  const coordinate_index<3, Place> rows(place, input);
  const document_box<3> box(rows.bounds());
  const document_slots<Place> memory(place, 2 * n);
  place.for_each(n, document_insert<3>{memory.ref(), box, input.data()});
  array<std::uint32_t, Place> neighbours(place, 27 * n);
  using find = document_find_unchecked;
  place.for_each(n, neighbours_by_lookups<3, find>{{memory.ref(), box}, input.data(), n, neighbours.data()});
  const auto map = submanifold(place, rows, {}, kernel_map_options<3>{.pairs = true});
  check_answers(map.pairs() == right ? 0 : 1, "kernel_map at the border of a box");
  return {"the 27 neighbours of all voxels of a solid of 64^3: " + std::to_string(right),
          std::to_string(place.sum(27 * n, is_a_row{neighbours.data()})), std::to_string(map.pairs())};
}

template <class Place>
defect wide_box(const Place& place) {
  constexpr std::int32_t n = 4096, side = 1 << 22;
  std::vector<coordinate<3>> line{{0, {side - 1, side - 1, side - 1}}};
  for (std::int32_t i = 0; i < n; ++i) line.push_back({0, {i * (side / n), 0, 0}});
  const auto input = copy_to(place, line);
  const coordinate_index<3, Place> rows(place, input);
  const document_table<3, Place> made(place, input, rows.bounds());
  array<std::uint32_t, Place> found(place, line.size());
  place.for_each(line.size(), find_rows_of<document_find<3>>{made.finder(), input.data(), found.data()});
  auto different = copy_to_host(place, found.span());
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  check_answers(line.size() - rows.size(), "coordinate_index in a wide box");
  return {std::to_string(line.size()) + " voxels in a box of 2^66",
          std::to_string(different.size()) + " rows", std::to_string(rows.size()) + " rows"};
}

/// All defects. Throws error if our behaviour is not as stated.
template <class Place>
report_table document_defects(const Place& place) {
  return {"The hash table of submanifold convolution: its defects, beside coordinate_index",
          {"what is done", "the document's table", "coordinate_index"},
          {full_table(place), copied_voxels(place), all_ones(place), border_of_box(place), wide_box(place)}};
}

}  // namespace roost::bench
