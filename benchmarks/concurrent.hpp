#pragma once

#include "run.hpp"

#if !defined(__CUDACC__)
#include <oneapi/tbb/concurrent_hash_map.h>
#endif

// Maps that change while they are used: what `build`, `find_hit` and so on do with them, and operations of their own.

namespace roost::bench {

/// concurrent_map with the calls that the workloads make.
template <class Place, class Key, class Value>
struct concurrent_table : concurrent_map<Key, Value, Place> {
  using base = concurrent_map<Key, Value, Place>;
  static std::string name() { return "concurrent_map"; }

  concurrent_table(const Place& place, std::size_t n, double load_factor) : base(place, n, {.load_factor = load_factor, .grows = false}), place_(place) {}
  concurrent_table(const Place& place, std::span<const Key> keys, std::span<const Value> values, double load_factor)
      : concurrent_table(place, keys.size(), load_factor) {
    this->insert(place, keys, values);
  }
  double load_factor() const { return static_cast<double>(this->size(place_)) / static_cast<double>(this->capacity()); }
  std::size_t scratch_bytes() const { return 0; }
  void add(const Place& place, std::span<const Key> keys, std::span<const Value> values, const bulk_options& how) {
    this->insert_or_apply(place, keys, values, plus(), how);
  }

 private:
  Place place_;
};

#if !defined(__CUDACC__)
/// oneTBB's map, with the threads of a place.
template <class Key, class Value>
class tbb_table {
  using map = tbb::concurrent_hash_map<Key, Value>;

 public:
  static std::string name() { return "tbb_concurrent_hash_map"; }

  tbb_table(const host&, std::size_t n, double) : map_(n) {}
  tbb_table(const host& place, std::span<const Key> keys, std::span<const Value> values, double load_factor) : tbb_table(place, keys.size(), load_factor) {
    insert(place, keys, values, {});
  }
  insert_report insert(const host& place, std::span<const Key> keys, std::span<const Value> values, const bulk_options&) {
    const auto inserted = place.sum(keys.size(), [&](std::size_t i) { return std::uint64_t{map_.insert({keys[i], values[i]})}; });
    return {.inserted = inserted, .present = keys.size() - inserted};
  }
  void add(const host& place, std::span<const Key> keys, std::span<const Value> values, const bulk_options&) {
    place.for_each(keys.size(), [&](std::size_t i) {
      typename map::accessor at;
      if (!map_.insert(at, {keys[i], values[i]})) at->second += values[i];
    });
  }
  std::size_t erase(const host& place, std::span<const Key> keys, const bulk_options&) {
    return place.sum(keys.size(), [&](std::size_t i) { return std::uint64_t{map_.erase(keys[i])}; });
  }
  void find(const host& place, std::span<const Key> queries, std::span<Value> results, Value missing, const bulk_options& = {}) const {
    place.for_each(queries.size(), [&](std::size_t i) {
      typename map::const_accessor at;
      results[i] = map_.find(at, queries[i]) ? at->second : missing;
    });
  }
  void clear(const host&) { map_.clear(); }
  double load_factor() const { return static_cast<double>(map_.size()) / static_cast<double>(map_.bucket_count()); }
  std::size_t bytes() const { return 0; }
  std::size_t scratch_bytes() const { return 0; }

 private:
  map map_;
};
#endif

/// Pairs of which each key comes n / distinct times.
template <class Key, class Value>
struct fill_copies {
  Key* keys;
  Value* values;
  std::size_t distinct;
  make_key<Key> key;
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = key(split_hash(mix64(i), distinct).digit);
    values[i] = 1;
  }
};

/// A mixed batch: of five operations two insert, two find, one erases. Finds ask for the first 2/5 of the n stored keys, the next 1/5 are erased, and what is inserted is new.
template <class Key, class Value>
struct fill_mixed {
  operation<Key, Value>* operations;
  std::size_t n;
  make_key<Key> key;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t group = i / 5, kind = i % 5, fifth = n / 5;
    const std::size_t j = kind < 2 ? n + 2 * group + kind : kind < 4 ? 2 * group + kind - 2 : 2 * fifth + group;
    operations[i] = {kind < 2 ? operation_kind::insert : kind < 4 ? operation_kind::find : operation_kind::erase, key(j), make_value<Value>{}(j)};
  }
};

template <class Key, class Value>
struct wrong_mixed {
  const operation<Key, Value>* operations;
  const operation_result<Value>* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return !results[i].done || results[i].full || (operations[i].kind == operation_kind::find && results[i].value != operations[i].value);
  }
};

/// A line of the report, before anything is measured.
template <class Table, class Place, class Key, class Value>
row row_of(const Place& place, const settings& options, const std::string& op, std::size_t n) {
  if (options.progress) options.progress(Table::name() + " " + op + " n=" + std::to_string(n));
  row line;
  line.table = Table::name();
  line.key_bits = static_cast<int>(sizeof(Key)) * 8;
  line.value_bits = static_cast<int>(sizeof(Value)) * 8;
  line.op = op;
  line.n = n;
  line.place = place_name(place);
  line.path = name_of(options.path);
  return line;
}

inline std::string verdict(std::uint64_t bad) { return bad == 0 ? "ok" : std::to_string(bad) + " wrong"; }

/// Measures the operations that only such maps have, each checked. `insert`: all pairs into the empty map, clearing included. `insert_half`: the second half of the pairs. `insert_last`: the
/// last twentieth. `erase`: all keys. `apply_many`, `apply_few`: n pairs of 2^20 and 16 keys are added up. `mixed`: n / 8 operations at once, 2/5 inserts, 2/5 finds, 1/5 erases. `grow`: a map that is full with n / 2 keys gets
/// room for n.
template <class Table, class Place, class Key, class Value>
void measure_changes(const Place& place, const settings& options, std::size_t n, double load_factor) {
  if (!options.report || !options.wants(Table::name())) return;
  array<Key, Place> keys(place, n), queries(place, n);
  array<Value, Place> values(place, n), results(place, n);
  const make_key<Key> key(options.keys, n);
  place.for_each(n, fill_keys<Key>{keys.data(), key});
  place.for_each(n, fill_values<Value>{values.data()});
  const query_order order(n, 64);
  place.for_each(n, fill_queries<Key>{queries.data(), order, key});
  const bulk_options how{.path = options.path};
  const auto part_of_keys = [&](std::size_t first, std::size_t count) { return std::span<const Key>(keys.data() + first, count); };
  const auto part_of_values = [&](std::size_t first, std::size_t count) { return std::span<const Value>(values.data() + first, count); };

  for (const std::string& op : options.ops) {
    const bool adds = op == "apply_many" || op == "apply_few";
    if (!adds && op != "insert" && op != "insert_half" && op != "insert_last" && op != "erase" && op != "mixed" && op != "grow") continue;
    row line = row_of<Table, Place, Key, Value>(place, options, op, n);
    const std::size_t distinct = adds ? std::min<std::size_t>(n, op == "apply_few" ? 16 : std::size_t{1} << 20) : n;
    Table table(place, distinct, load_factor);
    std::uint64_t bad = 0;
    insert_report report;
    std::size_t done = n;  // of the batch
    const auto median = [&](const auto& before, const auto& run) { line.median_ms = median_milliseconds(place, options.warm_ups, options.repetitions, before, run); };
    const auto check_all = [&] {  // all n keys are there, with their values
      table.find(place, std::as_const(queries).span(), results.span(), missing<Value>, {});
      return place.sum(n, wrong_value<Value>{results.data(), order});
    };
    if (adds) {
      if constexpr (requires { table.add(place, part_of_keys(0, n), part_of_values(0, n), how); }) {
        array<Key, Place> copies(place, n);
        array<Value, Place> ones(place, n);
        place.for_each(n, fill_copies<Key, Value>{copies.data(), ones.data(), distinct, key});
        median([&] { table.clear(place); }, [&] { table.add(place, std::as_const(copies).span(), std::as_const(ones).span(), how); });
        array<Value, Place> sums(place, distinct);
        table.find(place, part_of_keys(0, distinct), sums.span(), Value{0}, {});
        const Value* const sum = sums.data();
        std::uint64_t total = 0;
        for (const Value of_key : copy_to_host(place, std::span<const Value>(sum, distinct))) total += of_key;
        bad = total > n ? total - n : n - total;
      } else {
        continue;
      }
    } else if (op == "erase") {
      std::size_t erased = 0;
      median([&] { table.insert(place, part_of_keys(0, n), part_of_values(0, n), {}); }, [&] { erased = table.erase(place, std::as_const(queries).span(), how); });
      bad = n - erased;
    } else if (op == "grow") {
      if constexpr (requires { table.reserve(place, n); }) {
        done = n / 2;
        const auto start = [&] {
          table = Table(place, 0, load_factor);  // two need not fit
          table = Table(place, done, load_factor);
          table.insert(place, part_of_keys(0, done), part_of_values(0, done), {});
        };
        median(start, [&] { table.reserve(place, n); });
        table.find(place, part_of_keys(0, done), results.span().first(done), missing<Value>, {});
        bad = place.sum(done, wrong_pair<Value>{results.data()}) + (static_cast<double>(table.capacity()) * load_factor < static_cast<double>(n) ? 1 : 0);
      } else {
        continue;
      }
    } else if (op == "mixed") {
      if constexpr (requires { table.run(place, std::span<operation<Key, Value>>(), std::span<operation_result<Value>>()); }) {
        done = n / 8;  // so that the load does not rise much
        array<operation<Key, Value>, Place> operations(place, done);
        array<operation_result<Value>, Place> answers(place, done);
        place.for_each(done, fill_mixed<Key, Value>{operations.data(), n, key});
        const auto start = [&] {
          table.clear(place);
          table.insert(place, part_of_keys(0, n), part_of_values(0, n), {});
        };
        median(start, [&] {
          if constexpr (requires { table.run(place, std::as_const(operations).span(), answers.span(), how); }) {
            line.path = name_of(table.run(place, std::as_const(operations).span(), answers.span(), how).path);
          } else {
            table.run(place, std::as_const(operations).span(), answers.span());
            line.path = name_of(path::direct);
          }
        });
        bad = place.sum(done, wrong_mixed<Key, Value>{operations.data(), answers.data()});
      } else {
        continue;
      }
    } else {
      const std::size_t before = op == "insert" ? 0 : op == "insert_half" ? n / 2 : n - n / 20;
      done = n - before;
      const auto start = [&] {
        table.clear(place);
        if (before != 0) table.insert(place, part_of_keys(0, before), part_of_values(0, before), {});
      };
      median(start, [&] {
        if (before == 0) table.clear(place);
        report = table.insert(place, part_of_keys(before, done), part_of_values(before, done), how);
      });
      line.path = name_of(report.path);
      bad = done - report.inserted + check_all();
    }
    line.check = verdict(bad);
    line.load_factor = op == "erase" ? load_factor : table.load_factor();
    line.gops = static_cast<double>(done) / line.median_ms / 1e6;
    line.bytes = table.bytes();
    options.report(line);
  }
}

struct curve_step {
  std::size_t before, inserted;      // keys
  std::vector<double> milliseconds;  // of each repetition
};

/// The load curve of D. Farrell, A simple GPU hash table, 2020: a map with slots for n keys is filled by n / 32 of them a step, 31 times.
template <class Map, class Place, class Key, class Value>
std::vector<curve_step> load_curve(const Place& place, Map& map, std::span<const Key> keys, std::span<const Value> values, int warm_ups, int repetitions,
                                   const bulk_options& how) {
  const std::size_t n = keys.size(), step = std::max<std::size_t>(1, n / 32);
  std::vector<curve_step> steps;
  for (std::size_t first = 0; first + step < n; first += step) steps.push_back({});
  for (int repetition = -warm_ups; repetition < repetitions; ++repetition) {
    map.clear(place);
    std::size_t first = 0, inserted = 0;
    for (curve_step& s : steps) {
      s.before = inserted;
      place.synchronize();
      const double time = milliseconds(place, [&] { s.inserted = map.insert(place, keys.subspan(first, step), values.subspan(first, step), how).inserted; });
      if (repetition >= 0) s.milliseconds.push_back(time);
      first += step;
      inserted += s.inserted;
    }
  }
  return steps;
}

/// `load_curve`: the rows of a load curve, each with the keys that were inserted and the load before.
template <class Table, class Place, class Key, class Value>
void measure_load_curve(const Place& place, const settings& options, std::size_t n) {
  Table table(place, n, 1);
  array<Key, Place> keys(place, n);
  array<Value, Place> values(place, n), results(place, n);
  place.for_each(n, fill_pairs<Key, Value>{keys.data(), values.data(), 0, {options.keys, n}});
  row line = row_of<Table, Place, Key, Value>(place, options, "load_curve", n);
  const auto steps = load_curve(place, table, std::as_const(keys).span(), std::as_const(values).span(), options.warm_ups, options.repetitions,
                                {.path = options.path});
  if (steps.empty()) return;
  // As many as were inserted are there, with their values. Were a key without room, its step would have fewer.
  table.find(place, std::as_const(keys).span(), results.span(), missing<Value>);
  const std::uint64_t right = n - place.sum(n, wrong_pair<Value>{results.data()});
  const std::uint64_t all = steps.back().before + steps.back().inserted;
  line.check = verdict(right > all ? right - all : all - right);
  line.bytes = table.bytes();
  for (const curve_step& s : steps) {
    line.n = s.inserted;
    line.load_factor = static_cast<double>(s.before) / static_cast<double>(table.capacity());
    line.median_ms = median(s.milliseconds);
    line.gops = static_cast<double>(s.inserted) / line.median_ms / 1e6;
    options.report(line);
  }
}

/// `churn`: a map of n keys that grows; a thousand rounds erase the oldest tenth and insert as many new ones. `churn_insert`: the mean call of the last hundred rounds,
/// room that is made included; `churn_hit`, `churn_miss`: all keys that are there then, and as many that are not. `fresh_insert`, `fresh_hit`, `fresh_miss`: the same of a map that has been given
/// nine tenths of n keys, and then gets the rest.
template <class Table, class Place, class Key, class Value>
void measure_churn(const Place& place, const settings& options, std::size_t n, double load_factor) {
  constexpr int rounds = 1000, measured = 100;
  const std::size_t part = (n + 9) / 10;
  const make_key<Key> key(options.keys, n);
  const bulk_options how{.path = options.path};
  array<Key, Place> keys(place, n), queries(place, n);
  array<Value, Place> values(place, n), results(place, n);
  const auto pairs_from = [&](std::size_t first, std::size_t count) { place.for_each(count, fill_pairs<Key, Value>{keys.data(), values.data(), first, key}); };
  const auto first_keys = [&](std::size_t count) { return std::as_const(keys).span().first(count); };
  const auto first_values = [&](std::size_t count) { return std::as_const(values).span().first(count); };
  concurrent_map<Key, Value, Place> map(place, n, {.load_factor = load_factor});

  const auto report = [&](const std::string& op, std::size_t done, double ms, double hit_rate, std::uint64_t bad) {
    row line = row_of<Table, Place, Key, Value>(place, options, op, done);
    line.load_factor = static_cast<double>(n) / static_cast<double>(map.capacity());
    line.median_ms = ms;
    line.gops = static_cast<double>(done) / ms / 1e6;
    line.hit_rate = hit_rate;
    line.check = verdict(bad);
    line.bytes = map.bytes();
    options.report(line);
  };
  // Finds of all n keys from `first` on, which must be all there are, and of the n after those.
  const auto report_finds = [&](const std::string& of, std::size_t first) {
    for (const std::uint32_t hits : {64u, 0u}) {
      query_order order(n, hits, options.queries);
      order.first = first;
      place.for_each(n, fill_queries<Key>{queries.data(), order, key});
      const double ms = median_milliseconds(place, options.warm_ups, options.repetitions, [] {}, [&] {
        map.find(place, std::as_const(queries).span(), results.span(), missing<Value>, how);
      });
      const std::size_t live = map.size(place);
      report(of + (hits == 0 ? "_miss" : "_hit"), n, ms, hits / 64.0, place.sum(n, wrong_value<Value>{results.data(), order}) + (live > n ? live - n : n - live));
    }
  };

  std::uint64_t bad = 0;
  double ms = median_milliseconds(place, options.warm_ups, options.repetitions,
                                  [&] {
                                    map.clear(place);
                                    pairs_from(0, n - part);
                                    map.insert(place, first_keys(n - part), first_values(n - part));
                                    pairs_from(n - part, part);
                                  },
                                  [&] { bad = part - map.insert(place, first_keys(part), first_values(part), how).inserted; });
  report("fresh_insert", part, ms, 0, bad);
  report_finds("fresh", 0);

  bad = 0;
  ms = 0;
  std::size_t oldest = 0;
  int grown = 0;
  for (int round = 0; round < rounds; ++round) {
    pairs_from(oldest, part);
    bad += part - map.erase(place, first_keys(part), how);
    pairs_from(oldest + n, part);
    oldest += part;
    place.synchronize();
    const std::size_t capacity = map.capacity();
    const double time = milliseconds(place, [&] { bad += part - map.insert(place, first_keys(part), first_values(part), how).inserted; });
    if (round >= rounds - measured) ms += time / measured;
    grown += map.capacity() > capacity;
  }
  report("churn_insert", part, ms, 0, bad + (grown > 1 ? 1 : 0));  // old slots must not make it grow on and on
  report_finds("churn", oldest);
}

/// The workloads of all tables, and those.
template <class Table, class Place, class Key, class Value>
void measure_concurrent(const Place& place, const settings& options, std::size_t n, double load_factor) {
  measure<Table, Place, Key, Value>(place, options, n, load_factor);
  measure_changes<Table, Place, Key, Value>(place, options, n, load_factor);
  if constexpr (requires(Table table) { table.capacity(); }) {
    if (!options.report || !options.wants(Table::name())) return;
    const auto asked = [&](const char* op) { return std::find(options.ops.begin(), options.ops.end(), op) != options.ops.end(); };
    if (asked("load_curve") && load_factor == options.load_factors.front()) measure_load_curve<Table, Place, Key, Value>(place, options, n);
    if (asked("churn")) measure_churn<Table, Place, Key, Value>(place, options, n, load_factor);
  }
}

}  // namespace roost::bench
