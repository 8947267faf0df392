#pragma once

#include "groups.hpp"

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
/// asks for a key of any shard; each key is asked for once by all shards together.
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

/// Rows of a side of a join: as queries in another order.
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

/// What a measurement of shards stands on.
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
  /// Keys of 2 n keys a shard.
  template <class Key>
  make_key<Key> key() const {
    return {options.keys, std::bit_ceil(n * count)};
  }
  bool asks(const std::string& op) const {
    return std::find(options.ops.begin(), options.ops.end(), op) != options.ops.end();
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
    line.check = bad == 0 ? "ok" : std::to_string(bad) + " wrong";
    line.gops = static_cast<double>(line.n) / line.median_ms / 1e6;
    line.place = place_name(shards);
    options.report(line);
  }

  const Shards& shards;
  const settings& options;
  const std::size_t n;  // of each shard
  const std::uint32_t count;
};

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
  auto keys = bench.template make<Key>(n), queries = bench.template make<Key>(n);
  auto values = bench.template make<result>(is_set ? 0 : n), results = bench.template make<result>(n);
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
  bulk_report taken;
  const auto find = [&] {
    const bulk_options how{.path = options.path};
    if constexpr (is_set) {
      taken = table->contains(shards, queries, results, how);
    } else {
      taken = table->find(shards, queries, results, missing<Value>, how);
    }
  };
  const auto ask = [&](std::uint32_t hits, query_pattern pattern) {
    bench.for_each([&](std::uint32_t s) {
      return fill_shard_queries<Key>{queries[s].data(), key, bench.order(s, hits, pattern)};
    });
    bench.poison_all(results);
  };
  const auto wrong = [&](std::uint32_t hits, query_pattern pattern) {
    return bench.sum([&](std::uint32_t s) {
      return wrong_shard_answer<result>{results[s].data(), bench.order(s, hits, pattern)};
    });
  };
  for (const std::string& op : options.ops) {
    if (op != "build" && !op.starts_with("find")) continue;
    if (options.progress) options.progress(name + (" " + op) + " n=" + std::to_string(n));
    row line;
    line.table = name;
    line.key_bits = static_cast<int>(sizeof(Key)) * 8;
    line.value_bits = is_set ? 0 : static_cast<int>(sizeof(result)) * 8;
    line.op = op;
    line.n = n * bench.count;
    std::uint64_t bad = 0;
    if (op == "build") {
      line.median_ms = median_of_builds(shards, options.warm_ups, options.repetitions, table, build);
      for (const std::uint32_t hits : {64u, 0u}) {
        ask(hits, query_pattern::shuffled);
        find();
        bad += wrong(hits, query_pattern::shuffled);
      }
    } else {
      const std::uint32_t hits = hits_of_64(op);
      if (!table) build();
      line.median_ms = median_milliseconds(
          shards, options.warm_ups, options.repetitions, [&] { ask(hits, options.queries); }, find,
          [&] { bad += wrong(hits, options.queries); });
      line.hit_rate = hits / 64.0;
      line.path = name_of(taken.path);
      line.scratch_bytes = taken.scratch_bytes;
    }
    line.load_factor = table->load_factor();
    line.bytes = table->bytes();
    bench.report(line, bad);
  }
}

/// Counts in a sharded_multimap of which each key has `copies` values on all shards together.
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

/// inner_join of n with n rows a shard, all keys different.
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
      for (const char* name : {"sharded_multimap", "sharded_join"}) {
        if (options.has_table) options.has_table(name);
      }
      if (!options.report) continue;
      const sharded_bench<Shards> bench(shards, options, n);
      for (const key_copies& copies : options.copies) {
        const std::uint32_t each = std::max(copies.each / bench.count, 1u);
        if (options.wants("sharded_multimap") && copies.kind == key_copies::equal && n >= each)
          measure_sharded_counts<Shards, Key>(bench, each, each * bench.count);
      }
      if (options.wants("sharded_join") && bench.asks("join")) measure_sharded_join<Shards, Key>(bench);
    }
  }
}

}  // namespace roost::bench
