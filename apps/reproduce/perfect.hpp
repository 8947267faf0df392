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

/// Measures it only if it is named: its construction takes minutes for a few million keys.
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

/// The voxels of a sphere's surface, about n in a grid of 1024^3, then as many beside it.
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

/// Present voxels, then as many absent ones, and the tables of them.
template <class Place>
class perfect_trial {
  using u32 = std::uint32_t;

 public:
  perfect_trial(const Place& place, int repetitions, const std::vector<u32>& voxels)
      : place_(place),
        repetitions_(repetitions),
        n_(voxels.size() / 2),
        all_(roost::copy_to(place, voxels)),
        values_(place, n_),
        queries_(place, n_),
        results_(place, n_) {
    place.for_each(n_, fill_values<u32>{values_.data()});
  }

  std::string millions() const { return text(static_cast<double>(n_) / 1e6, 2); }
  /// Bits per voxel.
  std::string bits(std::size_t bytes) const {
    return text(8 * static_cast<double>(bytes) / static_cast<double>(n_), 1);
  }

  std::vector<std::string> measure_paper(const char* kind) {
    const perfect_spatial_hash<Place> map(place_, keys(), std::as_const(values_).span());
    const auto find = times_of(map.name(), map);
    return {kind,
            millions(),
            text(map.entries(), 2),
            bits(map.bytes()),
            bits(map.key_bytes()),
            text(map.search_milliseconds() / 1000, 1),
            find[0],
            find[1]};
  }

  template <class Map>
  std::vector<std::string> measure_ours(const char* kind, const char* name) {
    std::optional<Map> map;
    const double build = median_of_builds(
        place_, 1, repetitions_, map, [&] { map.emplace(place_, keys(), std::as_const(values_).span()); });
    const auto find = times_of(name, *map);
    return {kind, millions(), name, bits(map->bytes()), text(build, 3), find[0], find[1]};
  }

 private:
  std::span<const u32> keys() const { return all_.span().first(n_); }

  /// Times lookups of present and of absent voxels.
  template <class Map>
  std::array<std::string, 2> times_of(const std::string& name, const Map& map) {
    const auto time_find = [&](const listed_voxel& of, const auto& wrong_of) {
      const fill_shuffled<listed_voxel> order{queries_.data(), of, n_, 2654435761u};
      place_.for_each(n_, order);
      const double ms = median_milliseconds(
          place_, 1, repetitions_, [&] { place_.fill(results_.data(), poison, results_.bytes()); },
          [&] {
            map.find(place_, std::as_const(queries_).span(), results_.span(), std::uint32_t{missing<u32>});
          },
          [&] {
            check_answers(place_.sum(n_, wrong_of(order)), name + " with " + millions() + " million voxels");
          });
      return text(ms, 3);
    };
    const auto wrong_present = [&](const auto& order) {
      return wrong_shuffled<listed_voxel>{results_.data(), order};
    };
    return {time_find({all_.data()}, wrong_present),
            time_find({all_.data() + n_}, [&](const auto&) { return is_an_answer{results_.data()}; })};
  }

  const Place& place_;
  int repetitions_;
  std::size_t n_;
  array<u32, Place> all_, values_, queries_, results_;
};

/// The voxels of Figures 3 and 4, for which the paper measures perfect spatial hashing with up to 4 million.
/// Here up to one million: the construction uses one thread.
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
    perfect_trial<Place> trial(place, options.repetitions, voxels);
    perfect.rows.push_back(trial.measure_paper(kind));
    ours.rows.push_back(trial.template measure_ours<frozen_map<u32, u32, Place>>(kind, "`frozen_map`"));
    ours.rows.push_back(trial.template measure_ours<frozen_map<u32, u32, Place, cuckoo>>(
        kind, "`frozen_map`, layout `cuckoo`"));
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
