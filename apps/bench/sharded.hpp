#pragma once

#include "groups.hpp"
#include "roost/shards/gpus.hpp"
#include "roost/shards/sharded_concurrent_map.hpp"
#include "roost/shards/sharded_join.hpp"
#include "roost/shards/sharded_map.hpp"
#include "roost/shards/sharded_multimap.hpp"
#include "roost/shards/sharded_set.hpp"

// Tables over several shards: n keys, queries or rows of each. Every answer is checked on the shard that got
// it.

namespace roost::bench {

inline std::string place_name(const host_shards& shards) {
  return place_name(shards[0]) + "*" + std::to_string(shards.size());
}
template <class F>
double milliseconds(const host_shards& shards, const F& f) {
  return milliseconds(shards[0], f);
}

#if defined(__CUDACC__)
inline std::string place_name(const gpus& all) { return "cuda*" + std::to_string(all.size()); }
/// The host's clock: calls for several GPUs have finished when they return.
template <class F>
double milliseconds(const gpus&, const F& f) {
  return milliseconds(host(1), f);
}
#endif

/// Keys of shard s are numbers s * n to (s + 1) * n - 1 of all; absent ones come after all of them. Query i
/// is for a key of any shard; all shards together query each key once.
struct sharded_order {
  query_order order;  // of a shard
  std::uint32_t shards, shard;

  ROOST_FN bool hit(std::size_t i) const { return order.hit(i); }
  ROOST_FN std::size_t operator()(std::size_t i) const {
    const std::size_t j = order(i), of_shard = (mix64(j) % shards + shard) % shards;
    return j < order.n ? of_shard * order.n + j : (shards + of_shard) * order.n + (j - order.n);
  }
};

template <class Key, class Value>
struct fill_shard_pairs {
  Key* keys;
  Value* values;
  make_key<Key> key;
  std::size_t first;
  ROOST_FN void operator()(std::size_t i) const {
    keys[i] = key(first + i);
    if constexpr (!std::is_same_v<Value, none>) values[i] = make_value<Value>{}(first + i);
  }
};

template <class Key>
struct fill_shard_queries {
  Key* queries;
  make_key<Key> key;
  sharded_order order;
  ROOST_FN void operator()(std::size_t i) const { queries[i] = key(order(i)); }
};

/// 1 for a wrong answer: a value, or a bool.
template <class Result>
struct wrong_shard_answer {
  const Result* results;
  sharded_order order;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    if constexpr (std::is_same_v<Result, bool>) {
      return !same_bool(results[i], order.hit(i));
    } else {
      return results[i] != (order.hit(i) ? make_value<Result>{}(order(i)) : missing<Result>);
    }
  }
};

/// 1 for a wrong pair of rows of a join whose right side has the keys in another order.
struct wrong_shard_join {
  const std::uint32_t* left;
  const std::uint32_t* right;
  sharded_order order;  // of the right side; the key of row r of the left side is r
  std::uint32_t first;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    sharded_order of_row = order;
    of_row.shard = static_cast<std::uint32_t>(right[i] / order.order.n);
    if (of_row.shard >= order.shards) return 1;
    return left[i] != first + i || of_row(right[i] % order.order.n) != left[i];
  }
};

/// The base of the measurements of shards.
template <class Shards>
class sharded_bench {
 public:
  using place_type = typename Shards::place_type;
  template <class T>
  using column = std::vector<array<T, place_type>>;

  sharded_bench(const Shards& places, const settings& chosen, std::size_t keys)
      : shards(places), options(chosen), n(keys), count(static_cast<std::uint32_t>(places.size())) {}

  template <class T>
  column<T> make(std::size_t size) const {
    column<T> result;
    for (std::uint32_t s = 0; s < count; ++s) result.emplace_back(shards[s], size);
    return result;
  }
  template <class T>
  void poison_all(column<T>& all) const {
    for (std::uint32_t s = 0; s < count; ++s) shards[s].fill(all[s].data(), poison, all[s].bytes());
  }
  sharded_order order(std::uint32_t shard, std::uint32_t hits, query_pattern pattern) const {
    return {query_order(n, hits, pattern), count, shard};
  }
  /// The keys, 2 n per shard.
  template <class Key>
  make_key<Key> key() const {
    return {options.keys, std::bit_ceil(n * count)};
  }
  /// The sum of f(shard) over the numbers below n.
  template <class F>
  std::uint64_t sum(const F& f) const {
    std::uint64_t result = 0;
    for (std::uint32_t s = 0; s < count; ++s) result += shards[s].sum(n, f(s));
    return result;
  }
  template <class F>
  void for_each(const F& f) const {
    for (std::uint32_t s = 0; s < count; ++s) shards[s].for_each(n, f(s));
    shards.synchronize();
  }
  void report(row line, std::uint64_t bad) const {
    line.check = verdict(bad);
    line.gops = static_cast<double>(line.n) / line.median_ms / 1e6;
    line.place = place_name(shards);
    options.report(line);
  }

  const Shards& shards;
  const settings& options;
  const std::size_t n;  // of each shard
  const std::uint32_t count;
};

/// The queries of all shards, and their answers.
template <class Shards, class Key, class Result>
class sharded_questions {
 public:
  explicit sharded_questions(const sharded_bench<Shards>& all)
      : queries(all.template make<Key>(all.n)), results(all.template make<Result>(all.n)), bench_(all) {}

  void ask(std::uint32_t hits, query_pattern pattern) {
    bench_.for_each([&](std::uint32_t s) {
      return fill_shard_queries<Key>{queries[s].data(), bench_.template key<Key>(),
                                     bench_.order(s, hits, pattern)};
    });
    bench_.poison_all(results);
  }
  std::uint64_t wrong(std::uint32_t hits, query_pattern pattern) const {
    return bench_.sum([&](std::uint32_t s) {
      return wrong_shard_answer<Result>{results[s].data(), bench_.order(s, hits, pattern)};
    });
  }
  /// How many answers of find() are wrong, for all present keys and as many absent ones.
  template <class Find>
  std::uint64_t wrong_in_all(const Find& find) {
    std::uint64_t bad = 0;
    for (const std::uint32_t hits : {64u, 0u}) {
      ask(hits, query_pattern::shuffled);
      find();
      bad += wrong(hits, query_pattern::shuffled);
    }
    return bad;
  }
  /// Measures find() for the queries of an operation; returns how many answers are wrong.
  template <class Find>
  std::uint64_t measure(row& line, const Find& find) {
    const settings& options = bench_.options;
    const std::uint32_t hits = hits_of_64(line.op);
    std::uint64_t bad = 0;
    bulk_report taken;
    line.median_ms = median_milliseconds(
        bench_.shards, options.warm_ups, options.repetitions, [&] { ask(hits, options.queries); },
        [&] { taken = find(); }, [&] { bad += wrong(hits, options.queries); });
    if constexpr (requires { bench_.shards.steps(); }) {
      if (options.timeline) tell_steps(line, find);
    }
    line.hit_rate = hits / 64.0;
    line.path = name_of(taken.path);
    line.scratch_bytes = taken.scratch_bytes;
    return bad;
  }

  typename sharded_bench<Shards>::template column<Key> queries;
  typename sharded_bench<Shards>::template column<Result> results;

 private:
  /// The steps of one more run.
  template <class Find>
  void tell_steps(const row& line, const Find& find) const {
    bench_.shards.trace(true);
    find();
    const auto steps = bench_.shards.steps();
    bench_.shards.trace(false);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (const auto& [what, given, done] : steps[s]) {
        char text[128];
        std::snprintf(text, sizeof(text), "%s %s, GPU %zu: given %8.3f ms, done %8.3f ms: %s",
                      line.table.c_str(), line.op.c_str(), s, given, done, what.c_str());
        bench_.options.timeline(text);
      }
    }
  }

  const sharded_bench<Shards>& bench_;
};

/// A line of the report, before anything is measured.
template <class Shards, class Key>
row row_of_shards(const sharded_bench<Shards>& bench, const char* table, const std::string& op,
                  int value_bits) {
  if (bench.options.progress) bench.options.progress(table + (" " + op) + " n=" + std::to_string(bench.n));
  row line;
  line.table = table;
  line.key_bits = static_cast<int>(sizeof(Key)) * 8;
  line.value_bits = value_bits;
  line.op = op;
  line.n = bench.n * bench.count;
  return line;
}

/// sharded_map, or sharded_set if Value is none.
template <class Shards, class Key, class Value>
void measure_sharded_table(const Shards& shards, const settings& options, std::size_t n, double load_factor) {
  constexpr bool is_set = std::is_same_v<Value, none>;
  constexpr const char* name = is_set ? "sharded_set" : "sharded_map";
  if (options.has_table) options.has_table(name);
  if (!options.report || !options.wants(name)) return;
  using result = std::conditional_t<is_set, bool, Value>;
  using table_type = std::conditional_t<is_set, sharded_set<Key, Shards>,
                                        sharded_map<Key, std::conditional_t<is_set, Key, Value>, Shards>>;
  const sharded_bench<Shards> bench(shards, options, n);
  const make_key<Key> key = bench.template key<Key>();
  auto keys = bench.template make<Key>(n);
  auto values = bench.template make<result>(is_set ? 0 : n);
  sharded_questions<Shards, Key, result> questions(bench);
  bench.for_each([&](std::uint32_t s) {
    if constexpr (is_set) {
      return fill_shard_pairs<Key, none>{keys[s].data(), nullptr, key, s * n};
    } else {
      return fill_shard_pairs<Key, Value>{keys[s].data(), values[s].data(), key, s * n};
    }
  });
  std::optional<table_type> table;
  const typename table_type::options chosen{.load_factor = load_factor};
  const auto build = [&] {
    if constexpr (is_set) {
      table.emplace(shards, keys, chosen);
    } else {
      table.emplace(shards, keys, values, chosen);
    }
  };
  const auto find = [&] {
    const bulk_options how{.path = options.path};
    if constexpr (is_set) {
      return table->contains(shards, questions.queries, questions.results, how);
    } else {
      return table->find(shards, questions.queries, questions.results, missing<Value>, how);
    }
  };
  for (const std::string& op : options.ops) {
    if (op != "build" && !op.starts_with("find")) continue;
    row line = row_of_shards<Shards, Key>(bench, name, op, is_set ? 0 : static_cast<int>(sizeof(result)) * 8);
    std::uint64_t bad = 0;
    if (op == "build") {
      line.median_ms = median_of_builds(shards, options.warm_ups, options.repetitions, table, build);
      bad = questions.wrong_in_all(find);
    } else {
      if (!table) build();
      bad = questions.measure(line, find);
    }
    line.load_factor = table->load_factor();
    line.bytes = table->bytes();
    bench.report(line, bad);
  }
}

/// sharded_concurrent_map: `insert`, of all pairs into the empty map; `erase`, of all keys; lookups.
template <class Shards, class Key, class Value>
void measure_sharded_changes(const Shards& shards, const settings& options, std::size_t n,
                             double load_factor) {
  constexpr const char* name = "sharded_concurrent_map";
  if (options.has_table) options.has_table(name);
  if (!options.report || !options.wants(name)) return;
  const sharded_bench<Shards> bench(shards, options, n);
  auto keys = bench.template make<Key>(n);
  auto values = bench.template make<Value>(n);
  bench.for_each([&](std::uint32_t s) {
    return fill_shard_pairs<Key, Value>{keys[s].data(), values[s].data(), bench.template key<Key>(), s * n};
  });
  sharded_questions<Shards, Key, Value> questions(bench);
  sharded_concurrent_map<Key, Value, Shards> table(shards, n * bench.count,
                                                   {.load_factor = load_factor, .grows = false});
  const bulk_options how{.path = options.path};
  const auto insert = [&] { return table.insert(shards, keys, values, how); };
  const auto find = [&] {
    return table.find(shards, questions.queries, questions.results, missing<Value>, how);
  };
  for (const std::string& op : options.ops) {
    if (op != "insert" && op != "erase" && !op.starts_with("find")) continue;
    row line = row_of_shards<Shards, Key>(bench, name, op, static_cast<int>(sizeof(Value)) * 8);
    std::uint64_t bad = 0;
    if (op == "insert") {
      insert_report report;
      line.median_ms = median_milliseconds(
          shards, options.warm_ups, options.repetitions,
          [&] {
            table.clear(shards);
            report = {};
          },
          [&] { report = insert(); });
      line.path = name_of(report.path);
      bad = off_by(report.inserted, line.n) + questions.wrong_in_all(find);
    } else if (op == "erase") {
      std::size_t erased = 0;
      line.median_ms = median_milliseconds(
          shards, options.warm_ups, options.repetitions,
          [&] {
            insert();
            questions.ask(64, query_pattern::shuffled);
            erased = 0;
          },
          [&] { erased = table.erase(shards, questions.queries, how); });
      bad = off_by(erased, line.n) + table.count_found(shards, keys) + table.size(shards);
    } else {
      insert();
      bad = questions.measure(line, find);
    }
    line.load_factor =
        op == "erase" ? load_factor
                      : static_cast<double>(table.size(shards)) / static_cast<double>(table.capacity(shards));
    line.bytes = table.bytes(shards);
    bench.report(line, bad);
  }
}

/// Counts in a sharded_multimap in which each key has `copies` values on all shards together.
template <class Shards, class Key>
void measure_sharded_counts(const sharded_bench<Shards>& bench, std::uint32_t each, std::uint32_t copies) {
  const auto& [shards, options, n, count] = bench;
  const copied_key<Key> key(options, {key_copies::equal, each}, n);
  auto keys = bench.template make<Key>(n), queries = bench.template make<Key>(n),
       values = bench.template make<Key>(n);
  auto counts = bench.template make<std::uint32_t>(n);
  bench.for_each(
      [&](std::uint32_t s) { return fill_copied_pairs<Key, Key>{keys[s].data(), values[s].data(), key}; });
  std::optional<sharded_multimap<Key, Key, Shards>> map;
  row line;
  line.table = "sharded_multimap";
  line.key_bits = line.value_bits = static_cast<int>(sizeof(Key)) * 8;
  line.n = n * count;
  line.copies = std::to_string(copies);
  const auto build = [&] { map.emplace(shards, keys, values); };
  const auto asked = [&](std::uint32_t hits) {
    bench.for_each([&](std::uint32_t s) { return fill_asked<Key>{queries[s].data(), key, hits}; });
    bench.poison_all(counts);
  };
  const auto ask = [&] { map->count(shards, queries, counts, {.path = options.path}); };
  const auto wrong = [&](std::uint32_t hits) {
    return bench.sum(
        [&](std::uint32_t s) { return wrong_count<std::uint32_t>{counts[s].data(), copies, hits}; });
  };
  for (const std::string& op : options.ops) {
    if (op != "group" && !op.starts_with("count")) continue;
    if (options.progress) options.progress("sharded_multimap " + op + " n=" + std::to_string(n));
    std::uint64_t bad = 0;
    line.op = op;
    const std::uint32_t hits = op == "group" ? 64 : hits_of_64(op);
    if (op == "group") {
      line.median_ms = median_of_builds(shards, options.warm_ups, options.repetitions, map, build);
      asked(hits);
      ask();
      bad = wrong(hits) + off_by(map->size(), line.n);
    } else {
      if (!map) build();
      line.median_ms = median_milliseconds(
          shards, options.warm_ups, options.repetitions, [&] { asked(hits); }, ask,
          [&] { bad += wrong(hits); });
      line.hit_rate = hits / 64.0;
    }
    line.bytes = map->bytes();
    bench.report(line, bad);
  }
}

/// inner_join of n rows per shard with n rows per shard, all keys distinct.
template <class Shards, class Key>
void measure_sharded_join(const sharded_bench<Shards>& bench) {
  const auto& [shards, options, n, count] = bench;
  const make_key<Key> key = bench.template key<Key>();
  auto left = bench.template make<Key>(n), right = bench.template make<Key>(n);
  const auto order = [&](std::uint32_t s) { return bench.order(s, 64, query_pattern::shuffled); };
  bench.for_each(
      [&](std::uint32_t s) { return fill_shard_pairs<Key, none>{left[s].data(), nullptr, key, s * n}; });
  bench.for_each([&](std::uint32_t s) { return fill_shard_queries<Key>{right[s].data(), key, order(s)}; });
  using rows_type = decltype(inner_join(shards, left, right));
  std::optional<rows_type> rows;
  row line;
  line.table = "sharded_join";
  line.key_bits = static_cast<int>(sizeof(Key)) * 8;
  line.op = "join";
  line.n = 2 * n * count;
  line.median_ms = median_of_builds(shards, options.warm_ups, options.repetitions, rows,
                                    [&] { rows.emplace(inner_join(shards, left, right)); });
  std::uint64_t bad = 0;
  for (const auto& mine : *rows) bad += off_by(mine.left.size(), n) + off_by(mine.right.size(), n);
  if (bad == 0) {
    bad = bench.sum([&](std::uint32_t s) {
      return wrong_shard_join{(*rows)[s].left.data(), (*rows)[s].right.data(), order(s),
                              static_cast<std::uint32_t>(s * n)};
    });
  }
  bench.report(line, bad);
}

/// All tables over several shards.
template <class Shards, class Key, class Value>
void measure_sharded(const Shards& shards, const settings& options) {
  for (const int log2n : options.log2n) {
    const std::size_t n = std::size_t{1} << log2n;
    for (const double load_factor : options.load_factors)
      measure_sharded_table<Shards, Key, Value>(shards, options, n, load_factor);
    if constexpr (std::is_same_v<Key, Value>) {
      for (const double load_factor : options.load_factors)
        measure_sharded_changes<Shards, Key, Value>(shards, options, n, load_factor);
      for (const char* name : {"sharded_multimap", "sharded_join"}) {
        if (options.has_table) options.has_table(name);
      }
      if (!options.report) continue;
      const sharded_bench<Shards> bench(shards, options, n);
      for (const key_copies& copies : options.copies) {
        const std::uint32_t each = std::max(copies.number / bench.count, 1u);
        if (options.wants("sharded_multimap") && copies.kind == key_copies::equal && n >= each)
          measure_sharded_counts<Shards, Key>(bench, each, each * bench.count);
      }
      if (options.wants("sharded_join") && options.asks("join")) measure_sharded_join<Shards, Key>(bench);
    }
  }
}

}  // namespace roost::bench
