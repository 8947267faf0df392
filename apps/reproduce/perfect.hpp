#pragma once

#include <array>
#include <optional>

#include "apps/measure/clouds.hpp"
#include "apps/measure/random_voxels.hpp"
#include "apps/measure/report.hpp"
#include "apps/measure/run.hpp"
#include "papers/perfect_spatial_hash.hpp"

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

struct is_an_answer {
  const std::uint32_t* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != std::uint32_t{missing<std::uint32_t>};
  }
};

/// The i-th voxel of a list.
struct listed_voxel {
  const std::uint32_t* voxels;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return voxels[i]; }
};

/// The voxels of a sphere's surface, about n of a grid of 1024^3, then as many that are beside it.
inline std::vector<std::uint32_t> shell_voxels(std::size_t n) {
  std::vector<std::uint32_t> result, beside;
  for (const auto& voxel : shell_cloud(n)) {
    const auto key = [&](int further) {
      std::uint32_t all = 0;
      for (const int c : voxel.at)
        all = all << 10 | static_cast<std::uint32_t>(512 + c + (c < 0 ? -further : further));
      return all;
    };
    result.push_back(key(0));
    beside.push_back(key(3));
  }
  result.insert(result.end(), beside.begin(), beside.end());
  return result;
}

/// The voxels of Figures 3 and 4, of which the paper gives perfect spatial hashing up to 4 million. Here up
/// to one: the construction has one thread.
template <class Place>
void reproduce_perfect(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  report_table perfect{
      "Alcantara et al. 2009, Figures 3 and 4: perfect spatial hashing (Lefebvre and Hoppe 2006)",
      {"voxels", "million", "entries a voxel (paper: 1.16)", "bits a voxel",
       "of which keys, which tell absent voxels", "built on the host, s", "retrieval, ms",
       "retrieval of absent voxels, ms"},
      {}},
      ours{"Alcantara et al. 2009, Figures 3 and 4: tables of roost with the same voxels",
           {"voxels", "million", "table", "bits a voxel", "build, ms", "retrieval, ms",
            "retrieval of absent voxels, ms"},
           {}};
  const auto measure = [&](const char* kind, const std::vector<u32>& voxels) {
    const std::size_t n = voxels.size() / 2;  // those that are there, then those that are not
    const auto all = roost::copy_to(place, voxels);
    array<u32, Place> values(place, n), queries(place, n), results(place, n);
    place.for_each(n, fill_values<u32>{values.data()});
    const auto keys_in = all.span().first(n);
    const auto values_in = std::as_const(values).span(), queries_in = std::as_const(queries).span();
    const auto bits = [&](std::size_t bytes) {
      return text(8 * static_cast<double>(bytes) / static_cast<double>(n), 1);
    };
    const auto millions = text(static_cast<double>(n) / 1e6, 2);
    const auto times_of = [&](const std::string& name, const auto& map) {
      const auto time_find = [&](const listed_voxel& of, const auto& wrong_of) {
        const fill_shuffled<listed_voxel> order{queries.data(), of, n, 2654435761u};
        place.for_each(n, order);
        const double ms = median_milliseconds(
            place, 1, options.repetitions, [&] { place.fill(results.data(), poison, results.bytes()); },
            [&] { map.find(place, queries_in, results.span(), std::uint32_t{missing<u32>}); },
            [&] {
              check_answers(place.sum(n, wrong_of(order)), name + " with " + millions + " million voxels");
            });
        return text(ms, 3);
      };
      return std::array<std::string, 2>{
          time_find({all.data()},
                    [&](const auto& order) { return wrong_shuffled<listed_voxel>{results.data(), order}; }),
          time_find({all.data() + n}, [&](const auto&) { return is_an_answer{results.data()}; })};
    };
    {
      const perfect_spatial_hash<Place> map(place, keys_in, values_in);
      const auto find = times_of(map.name(), map);
      perfect.rows.push_back({kind, millions, text(map.entries(), 2), bits(map.bytes()),
                              bits(map.key_bytes()), text(map.search_milliseconds() / 1000, 1), find[0],
                              find[1]});
    }
    const auto measure_ours = [&]<class Map>(const char* name, std::optional<Map> map) {
      const double build = median_of_builds(place, 1, options.repetitions, map,
                                            [&] { map.emplace(place, keys_in, values_in); });
      const auto find = times_of(name, *map);
      ours.rows.push_back({kind, millions, name, bits(map->bytes()), text(build, 3), find[0], find[1]});
    };
    measure_ours("`frozen_map`", std::optional<frozen_map<u32, u32, Place>>());
    measure_ours("`frozen_map`, layout `cuckoo`", std::optional<frozen_map<u32, u32, Place, cuckoo>>());
  };
  for (const double millions : {0.25, 0.5, 1.0}) {
    const std::size_t n = options.shared(static_cast<std::size_t>(millions * 1e6));
    measure("of a surface", shell_voxels(n));
    std::vector<u32> random(2 * n);
    for (std::size_t i = 0; i < random.size(); ++i) random[i] = random_voxel{}(i);
    measure("random", random);
  }
  options.report(perfect);
  options.report(ours);
}

}  // namespace roost::bench
