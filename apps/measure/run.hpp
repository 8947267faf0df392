#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "roost/sparse/coordinate_index.hpp"
#include "tables.hpp"
#include "timing.hpp"
#include "workload.hpp"

namespace roost::bench {

/// How often keys come.
struct key_copies {
  enum kinds { equal, zipf, half };
  kinds kind = equal;
  std::uint32_t each =
      1;  // equal: a power of two or any number, of which the last key may come less often; zipf: the k-th in
          // proportion to 1 / k; half: one has half of all, the others come once

  std::string name() const { return kind == zipf ? "zipf" : kind == half ? "half" : std::to_string(each); }
};

/// The ways of bulk calls, as they are named on command lines and in reports.
inline const std::map<std::string, path> paths{{"automatic", path::automatic},
                                               {"direct", path::direct},
                                               {"regional", path::regional},
                                               {"streamed", path::streamed}};
inline std::string name_of(path way) {
  return std::ranges::find(paths, way, [](const auto& entry) { return entry.second; })->first;
}

/// One line of the report.
struct row {
  std::string table;
  int key_bits = 0;
  int value_bits = 0;
  std::string op;
  std::size_t n = 0;
  double load_factor = 0;
  double median_ms = 0;
  double gops = 0;
  std::string check;  // "ok", or how many answers were wrong
  double hit_rate = 0;
  std::size_t bytes = 0;  // of the table; 0: it does not tell
  std::size_t scratch_bytes = 0;
  std::string path;  // of a lookup, an insert or a mixed batch: direct, regional or streamed
  std::string place;
  std::string copies = "1";  // of each key
  std::string keys;          // what they are, if not the pattern of all rows
};

struct settings {
  std::vector<std::string> tables;  // empty: all
  std::vector<std::string> ops{"build", "find_hit", "find_miss"};
  std::vector<int> log2n{20};
  std::vector<double> load_factors{0.8};
  int key_bits = 32;
  int value_bits = 32;
  key_pattern keys = key_pattern::mixed;
  query_pattern queries = query_pattern::shuffled;
  int repetitions = 5;
  int warm_ups = 2;
  int threads = 0;
  int shards = 0;  // 0: one place
  roost::path path = roost::path::automatic;
  bool with_peers = false;     // tables of others, too (peers/peers.hpp)
  bool in_kernel = false;      // lookups go through ref(), in a kernel with a thread for each, not in bulk
  bool as_neighbours = false;  // and as warp_neighbours where a table takes them
  std::vector<key_copies> copies{{key_copies::equal, 8}};
  std::vector<int> ticket_bits{8};  // of stadium_map
  std::vector<std::pair<std::string, residence>> bodies{{"automatic", residence::automatic}};
  stadium_options stadium;                                         // what else its tables share
  std::vector<std::string> clouds{"shell", "scanner", "uniform"};  // of tables of voxels
  std::vector<std::size_t> channels{32};                           // of their layers
  std::function<void(const row&)> report;
  std::function<void(const std::string&)> progress;   // what is being measured now
  std::function<void(const std::string&)> timeline;   // hears of the steps of lookups on several GPUs
  std::function<void(const std::string&)> has_table;  // hears of every table there is

  bool wants(const std::string& table) const {
    return tables.empty() || std::find(tables.begin(), tables.end(), table) != tables.end();
  }
};

/// Queries of which a share hits, for one operation.
inline std::uint32_t hits_of_64(const std::string& op) {
  return op.ends_with("_hit") ? 64 : op.ends_with("_half") ? 32 : 0;
}

/// One lookup through a ref, as kernels of users do it. Lanes: as what it takes part, if not alone.
template <class Ref, class Key, class Result, class... Lanes>
struct look_up_one {
  Ref table;
  const Key* queries;
  Result* results;
  ROOST_FN void operator()(std::size_t i) const {
    if constexpr (std::is_same_v<Result, bool>) {
      results[i] = table.contains(Lanes()..., queries[i]);
    } else {
      const auto value = table.find(Lanes()..., queries[i]);
      results[i] = value ? *value : missing<Result>;
    }
  }
};

/// Measures one table at one size: each operation asked for, every answer checked. Value none: a set.
template <class Table, class Place, class Key, class Value>
void measure(const Place& place, const settings& options, std::size_t n, double load_factor) {
  if (options.has_table) options.has_table(Table::name());
  if (!options.report || !options.wants(Table::name())) return;
  constexpr bool is_set = std::is_same_v<Value, none>;
  using result = std::conditional_t<is_set, bool, Value>;

  array<Key, Place> keys(place, n), queries(place, n);
  array<result, Place> values(place, is_set ? 0 : n), results(place, n);
  const make_key<Key> key(options.keys, n);
  place.for_each(n, fill_keys<Key>{keys.data(), key});
  if constexpr (!is_set) place.for_each(n, fill_values<Value>{values.data()});

  std::optional<Table> table;
  const auto build = [&] {
    if constexpr (is_set) {
      table.emplace(place, std::as_const(keys).span(), load_factor);
    } else {
      table.emplace(place, std::as_const(keys).span(), std::as_const(values).span(), load_factor);
    }
  };
  constexpr bool rebuilds = requires { table->finish(place); };
  const auto rebuild = [&](const array<Key, Place>& of) {
    if constexpr (rebuilds) {
      if constexpr (is_set) {
        table->rebuild_async(place, of.span());
      } else {
        table->rebuild_async(place, of.span(), std::as_const(values).span());
      }
    }
  };
  bulk_report taken;
  constexpr bool has_ref = requires { table->ref().contains(Key()); };
  constexpr bool takes_neighbours = requires { table->ref().find(warp_neighbours(), Key()); };
  const auto find = [&] {
    if constexpr (has_ref) {
      using ref = std::remove_cvref_t<decltype(table->ref())>;  // a copy, as kernels take it
      if constexpr (takes_neighbours) {
        if (options.as_neighbours) {
          using look_up = look_up_one<ref, Key, result, warp_neighbours>;
          return place.for_each(n, look_up{table->ref(), queries.data(), results.data()});
        }
      }
      if (options.in_kernel) {
        using look_up = look_up_one<ref, Key, result>;
        return place.for_each(n, look_up{table->ref(), queries.data(), results.data()});
      }
    }
    const auto ask_table = [&](const auto&... more) {
      if constexpr (is_set) {
        return table->contains(place, std::as_const(queries).span(), results.span(), more...);
      } else {
        return table->find(place, std::as_const(queries).span(), results.span(), missing<Value>, more...);
      }
    };
    const bulk_options choice{.path = options.path};
    // It chooses.
    if constexpr (requires { table->statistics(); } || requires { table->statistics(place); }) {
      taken = ask_table(choice);
    } else {
      ask_table();
    }
  };
  const auto ask = [&](const query_order& order) {
    place.for_each(n, fill_queries<Key>{queries.data(), order, key});
  };
  const auto poison_results = [&] { place.fill(results.data(), poison, results.bytes()); };
  const auto wrong = [&](const query_order& order) {
    if constexpr (is_set) {
      return place.sum(n, wrong_contained{results.data(), order});
    } else {
      return place.sum(n, wrong_value<Value>{results.data(), order});
    }
  };

  for (const std::string& op : options.ops) {
    const bool builds = op.ends_with("build");
    if (!builds && !op.starts_with("find")) continue;  // measured elsewhere
    if (op == "rebuild" && !rebuilds) continue;
    if (!builds && (options.as_neighbours ? !takes_neighbours : options.in_kernel && !has_ref)) continue;
    if (options.progress) options.progress(Table::name() + " " + op + " n=" + std::to_string(n));
    row line;
    line.table = Table::name();
    line.key_bits = static_cast<int>(sizeof(Key)) * 8;
    line.value_bits = is_set ? 0 : static_cast<int>(sizeof(result)) * 8;
    line.op = op;
    line.n = n;
    std::uint64_t bad = 0;
    if (builds) {
      if (op == "build") {
        line.median_ms = median_of_builds(place, options.warm_ups, options.repetitions, table, build);
      } else if (op == "first_build") {
        line.median_ms = median_of_builds(place, options.warm_ups, options.repetitions, table, build,
                                          [&] { trim(place); });
      } else {
        if (!table) build();
        ask(query_order(n, 0));
        line.median_ms = median_milliseconds(
            place, options.warm_ups, options.repetitions,
            [&] { rebuild(queries); },  // the memory holds other keys
            replayed(place, [&] { rebuild(keys); }));
        if constexpr (rebuilds) table->finish(place);
      }
      for (const std::uint32_t hits :
           {64u, 0u}) {  // what was built is asked for all its keys, and for as many that are not there
        const query_order order(n, hits);
        ask(order);
        poison_results();
        find();
        bad += wrong(order);
      }
    } else {
      const query_order order(n, hits_of_64(op), options.queries);
      if (!table) build();
      ask(order);
      line.median_ms = median_milliseconds(place, options.warm_ups, options.repetitions, poison_results, find,
                                           [&] { bad += wrong(order); });
      line.hit_rate = order.hits_of_64 / 64.0;
      line.path = options.as_neighbours ? "neighbours" : options.in_kernel ? "kernel" : name_of(taken.path);
    }
    line.check = bad == 0 ? "ok" : std::to_string(bad) + " wrong";
    line.load_factor = table->load_factor();
    line.gops = static_cast<double>(n) / line.median_ms / 1e6;
    line.bytes = table->bytes();
    line.scratch_bytes = builds ? table->scratch_bytes() : taken.scratch_bytes;
    line.place = place_name(place);
    options.report(line);
  }
}

void measure_host(const settings& options);
void measure_cuda(const settings& options);
void measure_host_shards(const settings& options);
void measure_gpus(const settings& options);

// Tables of voxels, which compile apart, too.
void measure_sparse_host(const settings& options);
void measure_sparse_cuda(const settings& options);
/// The same of different voxels that are given.
void measure_voxels_host(const settings& options, const std::string& name,
                         const std::vector<coordinate<3>>& voxels);
void measure_voxels_cuda(const settings& options, const std::string& name,
                         const std::vector<coordinate<3>>& voxels);
void measure_perfect_host(const settings& options);
void measure_perfect_cuda(const settings& options);

// One function for each type of keys, or pair of types, so that they compile apart.
template <class Key>
void measure_host_keys(const settings& options);
template <class Key, class Value>
void measure_cuda_types(const settings& options);

}  // namespace roost::bench
