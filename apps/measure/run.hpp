#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "roost/sparse/coordinate_index.hpp"
#include "roost/stadium/stadium_map.hpp"
#include "tables.hpp"
#include "timing.hpp"
#include "workload.hpp"

namespace roost::bench {

/// How often keys occur.
struct key_copies {
  enum kinds {
    equal,  // `number` of each key; of the last key there may be fewer
    keys,   // `number` of keys in all
    zipf,   // the k-th key in proportion to 1 / k
    half    // one key has half of all pairs, the others occur once
  };
  kinds kind = equal;
  std::uint32_t number = 1;

  std::string name() const {
    switch (kind) {
      case zipf:
        return "zipf";
      case half:
        return "half";
      case keys:
        return std::to_string(number) + "_keys";
      default:
        return std::to_string(number);
    }
  }
};

/// The paths of bulk calls, by their names on command lines and in reports.
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
  std::string check;  // "ok", or the number of wrong answers
  double hit_rate = 0;
  std::size_t bytes = 0;  // of the table; 0: unknown
  std::size_t scratch_bytes = 0;
  std::string path;  // of a lookup, an insert or a mixed batch: direct, regional or streamed
  std::string place;
  std::string copies = "1";  // of each key
  std::string keys;          // their kind, if not the pattern of all rows
};

struct settings {
  std::vector<std::string> tables;  // empty: all
  std::vector<std::string> ops{"build", "find_hit", "find_miss"};
  std::vector<int> log2n{20};
  bool half_steps = false;  // also the size half a step below each
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
  bool with_peers = false;     // also tables of other projects (peers/peers.hpp)
  bool in_kernel = false;      // lookups through ref(), in a kernel with a thread for each, not in bulk
  bool as_neighbours = false;  // and as warp_neighbours if a table takes them
  std::vector<key_copies> copies{{key_copies::equal, 8}};
  std::vector<int> ticket_bits{8};  // of stadium_map
  std::vector<std::pair<std::string, residence>> bodies{{"automatic", residence::automatic}};
  stadium_options stadium;                                         // the other options of its tables
  std::vector<std::string> clouds{"shell", "scanner", "uniform"};  // of tables of voxels
  std::vector<std::size_t> channels{32};                           // of their layers
  std::function<void(const row&)> report;
  std::function<void(const std::string&)> progress;   // what is being measured now
  std::function<void(const std::string&)> timeline;   // gets the steps of lookups on several GPUs
  std::function<void(const std::string&)> has_table;  // is called for every table
  std::function<void(const char*)> refused;  // is told what there was no memory for; empty: that is an error

  bool wants(const std::string& table) const {
    return tables.empty() || std::find(tables.begin(), tables.end(), table) != tables.end();
  }
  bool asks(const std::string& op) const { return std::find(ops.begin(), ops.end(), op) != ops.end(); }
  /// The numbers of keys.
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> result;
    for (const int exponent : log2n) {
      // A multiple of 1024, so that most numbers of copies divide it.
      if (half_steps && exponent > 10)
        result.push_back(static_cast<std::size_t>(std::exp2(exponent - 10.5)) << 10);
      result.push_back(std::size_t{1} << exponent);
    }
    return result;
  }
};

/// How many of 64 queries of an operation hit.
inline std::uint32_t hits_of_64(const std::string& op) {
  return op.ends_with("_hit") ? 64 : op.ends_with("_half") ? 32 : 0;
}

/// One lookup through a ref, as in users' kernels. Lanes: the lanes that share it, if it is not alone.
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

/// A line of the report for n items, before anything is measured; calls `progress`.
template <class Key, class Value, class Place>
row row_of(const Place& place, const settings& options, const std::string& table, const std::string& op,
           std::size_t n) {
  if (options.progress) options.progress(table + " " + op + " n=" + std::to_string(n));
  row line;
  line.table = table;
  line.key_bits = static_cast<int>(sizeof(Key)) * 8;
  line.value_bits = std::is_same_v<Value, none> ? 0 : static_cast<int>(sizeof(Value)) * 8;
  line.op = op;
  line.n = n;
  line.place = place_name(place);
  return line;
}

inline std::string verdict(std::uint64_t bad) { return bad == 0 ? "ok" : std::to_string(bad) + " wrong"; }

/// One table at one size, and its queries. Value none: a set.
template <class Table, class Place, class Key, class Value>
class measurement {
  static constexpr bool is_set = std::is_same_v<Value, none>;
  static constexpr bool rebuilds = requires(Table& table, const Place& place) { table.finish(place); };
  static constexpr bool has_ref = requires(Table& table) { table.ref().contains(Key()); };
  static constexpr bool takes_neighbours =
      has_ref && requires(Table& table) { table.ref().find(warp_neighbours(), Key()); };
  using result = std::conditional_t<is_set, bool, Value>;

 public:
  measurement(const Place& place, const settings& options, std::size_t n, double load_factor)
      : place_(place),
        options_(options),
        n_(n),
        load_factor_(load_factor),
        key_(options.keys, n),
        keys_(place, n),
        queries_(place, n),
        values_(place, is_set ? 0 : n),
        results_(place, n) {
    place.for_each(n, fill_keys<Key>{keys_.data(), key_});
    if constexpr (!is_set) place.for_each(n, fill_values<Value>{values_.data()});
  }

  /// Measures an operation, if it is one of these.
  void run(const std::string& op) {
    const bool builds = op.ends_with("build");
    if (!builds && !op.starts_with("find")) return;  // measured elsewhere
    if (op == "rebuild" && !rebuilds) return;
    if (!builds && (options_.as_neighbours ? !takes_neighbours : options_.in_kernel && !has_ref)) return;
    row line = row_of<Key, Value>(place_, options_, Table::name(), op, n_);
    line.check = verdict(builds ? measure_build(line) : measure_find(line));
    line.load_factor = table_->load_factor();
    line.gops = static_cast<double>(n_) / line.median_ms / 1e6;
    line.bytes = table_->bytes();
    line.scratch_bytes = builds ? table_->scratch_bytes() : taken_.scratch_bytes;
    options_.report(line);
  }

 private:
  /// Returns how many answers are wrong.
  std::uint64_t measure_build(row& line) {
    const auto make = [&] { build(); };
    if (line.op == "build") {
      line.median_ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, table_, make);
    } else if (line.op == "first_build") {
      line.median_ms = median_of_builds(place_, options_.warm_ups, options_.repetitions, table_, make,
                                        [&] { trim(place_); });
    } else {
      if (!table_) build();
      ask(query_order(n_, 0));
      line.median_ms = median_milliseconds(
          place_, options_.warm_ups, options_.repetitions,
          [&] { rebuild(queries_); },  // the memory holds different keys
          replayed(place_, [&] { rebuild(keys_); }));
      if constexpr (rebuilds) table_->finish(place_);
    }
    std::uint64_t bad = 0;
    for (const std::uint32_t hits :
         {64u, 0u}) {  // a built table is queried for all its keys and for as many absent ones
      const query_order order(n_, hits);
      ask(order);
      poison_results();
      find();
      bad += wrong(order);
    }
    return bad;
  }

  std::uint64_t measure_find(row& line) {
    const query_order order(n_, hits_of_64(line.op), options_.queries);
    if (!table_) build();
    ask(order);
    std::uint64_t bad = 0;
    line.median_ms = median_milliseconds(
        place_, options_.warm_ups, options_.repetitions, [&] { poison_results(); }, [&] { find(); },
        [&] { bad += wrong(order); });
    line.hit_rate = order.hits_of_64 / 64.0;
    line.path = options_.as_neighbours ? "neighbours" : options_.in_kernel ? "kernel" : name_of(taken_.path);
    return bad;
  }

  void build() {
    if constexpr (is_set) {
      table_.emplace(place_, std::as_const(keys_).span(), load_factor_);
    } else {
      table_.emplace(place_, std::as_const(keys_).span(), std::as_const(values_).span(), load_factor_);
    }
  }

  void rebuild(const array<Key, Place>& of) {
    if constexpr (rebuilds && is_set) {
      table_->rebuild_async(place_, of.span());
    } else if constexpr (rebuilds) {
      table_->rebuild_async(place_, of.span(), std::as_const(values_).span());
    }
  }

  void find() {
    if constexpr (takes_neighbours) {
      if (options_.as_neighbours) return find_in_kernel<warp_neighbours>();
    }
    if constexpr (has_ref) {
      if (options_.in_kernel) return find_in_kernel<>();
    }
    const auto ask_table = [&](const auto&... more) {
      const auto queries = std::as_const(queries_).span();
      if constexpr (is_set) {
        return table_->contains(place_, queries, results_.span(), more...);
      } else {
        return table_->find(place_, queries, results_.span(), missing<Value>, more...);
      }
    };
    // The table chooses the path.
    if constexpr (requires { table_->statistics(); } || requires { table_->statistics(place_); }) {
      taken_ = ask_table(bulk_options{.path = options_.path});
    } else {
      ask_table();
    }
  }

  template <class... Lanes>
  void find_in_kernel() {
    using ref = std::remove_cvref_t<decltype(table_->ref())>;  // a copy, as kernels take it
    using look_up = look_up_one<ref, Key, result, Lanes...>;
    place_.for_each(n_, look_up{table_->ref(), queries_.data(), results_.data()});
  }

  void ask(const query_order& order) { place_.for_each(n_, fill_queries<Key>{queries_.data(), order, key_}); }
  void poison_results() { place_.fill(results_.data(), poison, results_.bytes()); }
  std::uint64_t wrong(const query_order& order) const {
    using wrong_result = std::conditional_t<is_set, wrong_contained, wrong_value<Value>>;
    return place_.sum(n_, wrong_result{results_.data(), order});
  }

  const Place& place_;
  const settings& options_;
  std::size_t n_;
  double load_factor_;
  make_key<Key> key_;
  array<Key, Place> keys_, queries_;
  array<result, Place> values_, results_;
  std::optional<Table> table_;
  bulk_report taken_;
};

/// Measures one table at one size: every requested operation, with every answer checked. Value none: a set.
template <class Table, class Place, class Key, class Value>
void measure(const Place& place, const settings& options, std::size_t n, double load_factor) {
  if (options.has_table) options.has_table(Table::name());
  if (!options.report || !options.wants(Table::name())) return;
  measurement<Table, Place, Key, Value> of_table(place, options, n, load_factor);
  for (const std::string& op : options.ops) of_table.run(op);
}

void measure_host(const settings& options);
void measure_cuda(const settings& options);
void measure_host_shards(const settings& options);
void measure_gpus(const settings& options);

// Tables of voxels, which are also compiled separately.
void measure_sparse_host(const settings& options);
void measure_sparse_cuda(const settings& options);
/// The same for given distinct voxels.
void measure_voxels_host(const settings& options, const std::string& name,
                         const std::vector<coordinate<3>>& voxels);
void measure_voxels_cuda(const settings& options, const std::string& name,
                         const std::vector<coordinate<3>>& voxels);
void measure_perfect_host(const settings& options);
void measure_perfect_cuda(const settings& options);

// One function for each type of keys, or pair of types, so that they are compiled separately.
template <class Key>
void measure_host_keys(const settings& options);
template <class Key, class Value>
void measure_cuda_types(const settings& options);

}  // namespace roost::bench
