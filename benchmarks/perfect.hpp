#pragma once

#include "perfect_spatial_hash.hpp"
#include "random_voxels.hpp"
#include "report.hpp"
#include "run.hpp"

// perfect_spatial_hash in `roost bench` and `roost reproduce`.

namespace roost::bench {

/// Measures it where it is named: its construction takes minutes for a few million keys.
template <class Place>
void measure_perfect(const Place& place, const settings& options) {
  using u32 = std::uint32_t;
  using table = perfect_spatial_hash<Place>;
  if (options.tables.empty() || options.key_bits != 32 || options.value_bits != 32) {
    if (options.has_table) options.has_table(table::name());
    return;
  }
  for (const int log2n : options.log2n)
    measure<table, Place, u32, u32>(place, options, std::size_t{1} << log2n, options.load_factors.front());
}

/// The i-th of the voxels after the first n.
struct other_voxel {
  std::size_t n;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return random_voxel{}(n + i); }
};
struct is_an_answer {
  const std::uint32_t* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != std::uint32_t{missing<std::uint32_t>};
  }
};

/// The voxels of Figure 4, of which the paper gives perfect spatial hashing up to 4 million. Here up to one:
/// the construction has one thread.
template <class Place>
void reproduce_perfect(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  report_table table{
      "Alcantara et al. 2009, Figure 4: perfect spatial hashing (Lefebvre and Hoppe 2006) of the same voxels",
      {"million voxels", "entries a voxel (paper: 1.16)", "bits a voxel",
       "of which keys, which tell absent voxels", "built on the host, s", "retrieval, ms",
       "retrieval of absent voxels, ms"},
      {}};
  for (const double millions : {0.25, 0.5, 1.0}) {
    const std::size_t n = options.shared(static_cast<std::size_t>(millions * 1e6));
    array<u32, Place> keys(place, n), values(place, n), queries(place, n), results(place, n);
    detail::write_numbers(place, n, random_voxel{}, keys.data());
    place.for_each(n, fill_values<u32>{values.data()});
    const perfect_spatial_hash<Place> map(place, std::as_const(keys).span(), std::as_const(values).span());
    const std::string what = map.name() + " with " + std::to_string(n) + " voxels";
    const auto time_find = [&](const auto& wrong) {
      return median_milliseconds(
          place, 1, options.repetitions, [&] { place.fill(results.data(), poison, results.bytes()); },
          [&] {
            map.find(place, std::as_const(queries).span(), results.span(), std::uint32_t{missing<u32>});
          },
          [&] { check_answers(place.sum(n, wrong), what); });
    };
    const fill_shuffled<random_voxel> present{queries.data(), {}, n, 2654435761u};
    place.for_each(n, present);
    const double find_present = time_find(wrong_shuffled<random_voxel>{results.data(), present});
    place.for_each(n, fill_shuffled<other_voxel>{queries.data(), {n}, n, 2654435761u});
    const double find_absent = time_find(is_an_answer{results.data()});
    const auto bits = [&](std::size_t bytes) {
      return text(8 * static_cast<double>(bytes) / static_cast<double>(n), 1);
    };
    table.rows.push_back({text(millions, 2), text(map.entries(), 2), bits(map.bytes()), bits(map.key_bytes()),
                          text(map.search_milliseconds() / 1000, 1), text(find_present, 3),
                          text(find_absent, 3)});
  }
  options.report(table);
}

}  // namespace roost::bench
