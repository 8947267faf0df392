#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "apps/measure/run.hpp"

// How `roost voxels` measures tables; one source for both places, compiled separately.

namespace roost::tools {

/// The keys of one grid, in host memory, in the order in which the tables get them.
struct voxel_keys {
  std::span<const std::uint32_t> built;    // every voxel once
  std::span<const std::uint32_t> present;  // the same in another order
  std::span<const std::uint32_t> absent;   // as many absent voxels
};

/// The results of a table: the medians of the timed runs in milliseconds, and the number of wrong answers.
struct voxel_times {
  std::string table, place;
  std::size_t n = 0;
  double load_factor = 0;
  std::size_t bytes = 0, scratch_bytes = 0;  // 0: unknown
  double build = 0, find_present = 0, find_absent = 0;
  std::size_t wrong = 0;
};

struct voxel_run {
  int threads = 0;
  int repetitions = 5;
  std::function<void(const voxel_times&)> report;  // called for each table when it is done
};

/// frozen_map and sorted_map, on the host or on the current CUDA device.
void measure_on_host(const voxel_keys& keys, const voxel_run& run);
void measure_on_cuda(const voxel_keys& keys, const voxel_run& run);

/// std::unordered_map, filled by one thread and queried by all.
void measure_std(const voxel_keys& keys, const voxel_run& run);

/// The value that the tables store for a voxel. No voxel has the value `no_voxel`, since mix32 is a
/// bijection.
struct voxel_value {
  ROOST_FN std::uint32_t operator()(std::uint32_t key) const { return mix32(key); }
};
inline constexpr std::uint32_t no_voxel = mix32(0xffffffff);

/// values[i] = the value of keys[i].
struct fill_voxel_values {
  const std::uint32_t* keys;
  std::uint32_t* values;
  ROOST_FN void operator()(std::size_t i) const { values[i] = voxel_value{}(keys[i]); }
};

/// 1 for a wrong answer.
struct wrong_voxel {
  const std::uint32_t *queries, *results;
  bool present;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != (present ? voxel_value{}(queries[i]) : no_voxel);
  }
};

template <class Table, class Place>
void measure_table(const Place& place, const voxel_keys& keys, const voxel_run& run) {
  constexpr int warm_ups = 1;
  voxel_times times;
  times.table = Table::name();
  times.place = bench::place_name(place);
  times.n = keys.built.size();

  std::optional<Table> table;
  {
    const auto built = copy_to(place, keys.built);
    array<std::uint32_t, Place> values(place, built.size());
    place.for_each(built.size(), fill_voxel_values{built.data(), values.data()});
    times.build = bench::median_milliseconds(
        place, warm_ups, run.repetitions, [&] { table.reset(); },
        [&] { table.emplace(place, built.span(), std::as_const(values).span(), 0.8); });
  }
  array<std::uint32_t, Place> results(place, keys.built.size());
  const auto ask = [&](std::span<const std::uint32_t> questions, bool present) {
    const auto queries = copy_to(place, questions);
    const auto time = bench::median_milliseconds(
        place, warm_ups, run.repetitions, [&] { place.fill(results.data(), 0x5a, results.bytes()); },
        [&] { table->find(place, queries.span(), results.span(), no_voxel); });
    times.wrong += place.sum(queries.size(), wrong_voxel{queries.data(), results.data(), present});
    return time;
  };
  times.find_present = ask(keys.present, true);
  times.find_absent = ask(keys.absent, false);
  times.load_factor = table->load_factor();
  times.bytes = table->bytes();
  times.scratch_bytes = table->scratch_bytes();
  run.report(times);
}

/// frozen_map with its default layout.
template <class Place, class Key, class Value>
struct default_table : bench::frozen_table<Place, Key, Value, default_layout<Key, Value>> {
  using bench::frozen_table<Place, Key, Value, default_layout<Key, Value>>::frozen_table;
  static std::string name() { return "frozen_map"; }
};

template <class Place>
void measure_tables(const Place& place, const voxel_keys& keys, const voxel_run& run) {
  using key = std::uint32_t;
  measure_table<default_table<Place, key, key>>(place, keys, run);
  measure_table<bench::sorted_table<Place, key, key>>(place, keys, run);
}

}  // namespace roost::tools
