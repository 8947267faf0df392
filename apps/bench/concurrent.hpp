#pragma once

#include "apps/measure/run.hpp"

#if !defined(__CUDACC__)
#include <oneapi/tbb/concurrent_hash_map.h>

#include "roost/kernels.hpp"
#endif

// Maps that change while they are used: `build`, `find_hit` and so on, and their own operations.

namespace roost::bench {

/// concurrent_map with the calls that the workloads make.
template <class Place, class Key, class Value>
struct concurrent_table : concurrent_map<Key, Value, Place> {
  using base = concurrent_map<Key, Value, Place>;
  static std::string name() { return "concurrent_map"; }

  concurrent_table(const Place& place, std::size_t n, double load_factor)
      : base(place, n, {.load_factor = load_factor, .grows = false}), place_(place) {}
  concurrent_table(const Place& place, std::span<const Key> keys, std::span<const Value> values,
                   double load_factor)
      : concurrent_table(place, keys.size(), load_factor) {
    this->insert(place, keys, values);
  }
  double load_factor() const {
    return static_cast<double>(this->size(place_)) / static_cast<double>(this->capacity());
  }
  std::size_t scratch_bytes() const { return 0; }
  void add(const Place& place, std::span<const Key> keys, std::span<const Value> values,
           const bulk_options& how) {
    this->insert_or_apply(place, keys, values, plus(), how);
  }

 private:
  Place place_;
};

#if !defined(__CUDACC__)
/// oneTBB's map, used by the threads of a place.
template <class Key, class Value>
class tbb_table {
  using map = tbb::concurrent_hash_map<Key, Value>;

 public:
  static std::string name() { return "tbb_concurrent_hash_map"; }

  tbb_table(const host&, std::size_t n, double) : map_(n) {}
  tbb_table(const host& place, std::span<const Key> keys, std::span<const Value> values, double load_factor)
      : tbb_table(place, keys.size(), load_factor) {
    insert(place, keys, values, {});
  }
  insert_report insert(const host& place, std::span<const Key> keys, std::span<const Value> values,
                       const bulk_options&) {
    const auto inserted = place.sum(
        keys.size(), [&](std::size_t i) { return std::uint64_t{map_.insert({keys[i], values[i]})}; });
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
  void find(const host& place, std::span<const Key> queries, std::span<Value> results, Value missing,
            const bulk_options& = {}) const {
    place.for_each(queries.size(), [&](std::size_t i) {
      typename map::const_accessor at;
      results[i] = map_.find(at, queries[i]) ? at->second : missing;
    });
  }
  void clear(const host&) { map_.clear(); }
  double load_factor() const {
    return static_cast<double>(map_.size()) / static_cast<double>(map_.bucket_count());
  }
  std::size_t bytes() const { return 0; }
  std::size_t scratch_bytes() const { return 0; }

 private:
  map map_;
};
#endif

/// Pairs in which each key occurs n / distinct times.
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

/// A mixed batch: of five operations two insert, two find, one erases. Finds query the first 2/5 of the n
/// stored keys, the next 1/5 are erased, and inserted keys are new.
template <class Key, class Value>
struct fill_mixed {
  operation<Key, Value>* operations;
  std::size_t n;
  make_key<Key> key;
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t group = i / 5, kind = i % 5, fifth = n / 5;
    const std::size_t j = kind < 2   ? n + 2 * group + kind
                          : kind < 4 ? 2 * group + kind - 2
                                     : 2 * fifth + group;
    operations[i] = {kind < 2   ? operation_kind::insert
                     : kind < 4 ? operation_kind::find
                                : operation_kind::erase,
                     key(j), make_value<Value>{}(j)};
  }
};

template <class Key, class Value>
struct wrong_mixed {
  const operation<Key, Value>* operations;
  const operation_result<Value>* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return !same_bool(results[i].done, true) || !same_bool(results[i].full, false) ||
           (operations[i].kind != operation_kind::erase && results[i].value != operations[i].value);
  }
};

/// The keys that are present after `done` operations of a mixed batch.
inline stored_keys stored_after_mixed(std::size_t n, std::size_t done) {
  const std::size_t gone = 2 * (n / 5);
  return {n + done / 5 * 2 + std::min<std::size_t>(done % 5, 2), gone, gone + done / 5};
}

/// How often each key occurs in a batch of fill_copies, added up pair by pair.
struct tally_copies {
  std::uint64_t* copies;  // of each key: zeros before
  std::size_t distinct;
  ROOST_FN void operator()(std::size_t i) const {
    kernels::fetch_add(copies[split_hash(mix64(i), distinct).digit], std::uint64_t{1});
  }
};

template <class Value>
struct wrong_sum {
  const Value* sums;
  const std::uint64_t* copies;
  Value missing;
  ROOST_FN std::uint64_t operator()(std::size_t k) const {
    return sums[k] != (copies[k] == 0 ? missing : static_cast<Value>(copies[k]));
  }
};

/// Looks up keys first .. first + count - 1, using the memory of `keys` and `results`: returns how many are
/// not as `stored` says.
template <class Table, class Place, class Key, class Value>
std::uint64_t wrong_keys_from(const Place& place, Table& table, array<Key, Place>& keys,
                              array<Value, Place>& results, std::size_t first, std::size_t count,
                              const make_key<Key>& key, const stored_keys& stored) {
  place.for_each(count, fill_keys<Key>{keys.data(), key, first});
  place.fill(results.data(), poison, count * sizeof(Value));
  table.find(place, std::as_const(keys).span().first(count), results.span().first(count), missing<Value>);
  return place.sum(count, wrong_stored<Value>{results.data(), first, stored});
}

/// The same for keys 0 .. 2 n - 1, where n is the size of `keys`; also checks the table's size, if it has
/// one.
template <class Table, class Place, class Key, class Value>
std::uint64_t wrong_keys(const Place& place, Table& table, array<Key, Place>& keys,
                         array<Value, Place>& results, const make_key<Key>& key, const stored_keys& stored) {
  const std::size_t n = keys.size();
  std::uint64_t bad = 0;
  for (const std::size_t first : {std::size_t{0}, n})
    bad += wrong_keys_from(place, table, keys, results, first, n, key, stored);
  if constexpr (requires { table.size(place); }) bad += off_by(table.size(place), stored.size());
  return bad;
}

/// A line of the report, before anything is measured.
template <class Table, class Place, class Key, class Value>
row row_of_changes(const Place& place, const settings& options, const std::string& op, std::size_t n) {
  row line = row_of<Key, Value>(place, options, Table::name(), op, n);
  line.path = name_of(options.path);
  return line;
}

/// The data for measuring changes of a map: n pairs, and memory for queries and their results.
template <class Place, class Key, class Value>
struct change_memory {
  const Place& place;
  const settings& options;
  std::size_t n;
  make_key<Key> key{options.keys, n};
  bulk_options how{.path = options.path};
  array<Key, Place> keys{place, n}, queries{place, n};
  array<Value, Place> values{place, n}, results{place, n};

  std::span<const Key> keys_of(std::size_t first, std::size_t count) const {
    return keys.span().subspan(first, count);
  }
  std::span<const Value> values_of(std::size_t first, std::size_t count) const {
    return values.span().subspan(first, count);
  }
  /// Writes the pairs from number `first` on to the beginning of `keys` and `values`.
  void make_pairs(std::size_t first, std::size_t count) {
    place.for_each(count, fill_pairs<Key, Value>{keys.data(), values.data(), first, key});
  }
  void make_queries(const query_order& order) {
    place.for_each(n, fill_queries<Key>{queries.data(), order, key});
  }
  template <class Before, class F, class After = nothing>
  double median(const Before& before, const F& f, const After& after = {}) const {
    return median_milliseconds(place, options.warm_ups, options.repetitions, before, f, after);
  }
};

/// The operations that only such maps have; after each, every key is looked up. `insert`: all pairs into the
/// empty map, clearing included. `insert_half`: the second half of the pairs. `insert_last`: the last
/// twentieth. `erase`: all keys. `apply_many`, `apply_few`: n pairs of 2^20 and 16 keys are added up.
/// `mixed`: n / 8 operations at once, 2/5 inserts, 2/5 finds, 1/5 erases. `grow`: a map that is full with n /
/// 2 keys gets room for n.
template <class Table, class Place, class Key, class Value>
class changes_measurement {
 public:
  changes_measurement(const Place& place, const settings& options, std::size_t n, double load_factor)
      : memory_{place, options, n}, place_(place), n_(n), load_factor_(load_factor) {
    memory_.make_pairs(0, n);
  }

  /// Measures an operation, if it is one of these and the map has it.
  void run(const std::string& op) {
    const bool adds = op == "apply_many" || op == "apply_few";
    if (!adds && op != "insert" && op != "insert_half" && op != "insert_last" && op != "erase" &&
        op != "mixed" && op != "grow")
      return;
    row line = row_of_changes<Table, Place, Key, Value>(place_, memory_.options, op, n_);
    const std::size_t distinct =
        adds ? std::min<std::size_t>(n_, op == "apply_few" ? 16 : std::size_t{1} << 20) : n_;
    Table table(place_, distinct, load_factor_);
    const std::optional<outcome> out = adds            ? add_up(table, distinct, line)
                                       : op == "erase" ? erase(table, line)
                                       : op == "grow"  ? grow(table, line)
                                       : op == "mixed" ? mix(table, line)
                                                       : insert(table, line);
    if (!out) return;
    line.check = verdict(out->bad);
    line.load_factor = op == "erase" ? load_factor_ : table.load_factor();
    line.gops = static_cast<double>(out->done) / line.median_ms / 1e6;
    line.bytes = table.bytes();
    memory_.options.report(line);
  }

 private:
  struct outcome {
    std::size_t done;  // of the batch
    std::uint64_t bad;
  };

  std::optional<outcome> add_up(Table& table, std::size_t distinct, row& line) {
    if constexpr (requires {
                    table.add(place_, memory_.keys_of(0, n_), memory_.values_of(0, n_), memory_.how);
                  }) {
      array<Key, Place> copies(place_, n_);
      array<Value, Place> ones(place_, n_);
      place_.for_each(n_, fill_copies<Key, Value>{copies.data(), ones.data(), distinct, memory_.key});
      line.median_ms = memory_.median(
          [&] { table.clear(place_); },
          [&] { table.add(place_, std::as_const(copies).span(), std::as_const(ones).span(), memory_.how); });
      array<Value, Place> sums(place_, distinct);
      array<std::uint64_t, Place> right(place_, distinct);
      place_.fill(sums.data(), poison, sums.bytes());
      place_.fill(right.data(), 0, right.bytes());
      place_.for_each(n_, tally_copies{right.data(), distinct});
      const auto none = static_cast<Value>(~Value{0});  // no sum
      table.find(place_, memory_.keys_of(0, distinct), sums.span(), none, {});
      return outcome{n_, place_.sum(distinct, wrong_sum<Value>{sums.data(), right.data(), none})};
    } else {
      return std::nullopt;
    }
  }

  outcome erase(Table& table, row& line) {
    std::size_t erased = 0;
    line.median_ms = memory_.median(
        [&] {
          table.insert(place_, memory_.keys_of(0, n_), memory_.values_of(0, n_), {});
          memory_.make_queries({n_, 64});
          erased = 0;
        },
        [&] { erased = table.erase(place_, std::as_const(memory_.queries).span(), memory_.how); });
    return {n_, off_by(erased, n_) + wrong_after(table, {0})};
  }

  std::optional<outcome> grow(Table& table, row& line) {
    if constexpr (requires { table.reserve(place_, n_); }) {
      const std::size_t half = n_ / 2;
      line.median_ms = memory_.median(
          [&] {
            table = Table(place_, 0, load_factor_);  // two might not fit
            table = Table(place_, half, load_factor_);
            table.insert(place_, memory_.keys_of(0, half), memory_.values_of(0, half), {});
          },
          [&] { table.reserve(place_, n_); });
      const bool room = static_cast<double>(table.capacity()) * load_factor_ >= static_cast<double>(n_);
      return outcome{half, wrong_after(table, {half}) + (room ? 0 : 1)};
    } else {
      return std::nullopt;
    }
  }

  std::optional<outcome> mix(Table& table, row& line) {
    if constexpr (requires {
                    table.run(place_, std::span<operation<Key, Value>>(),
                              std::span<operation_result<Value>>());
                  }) {
      const std::size_t done = n_ / 8;  // so that the load does not rise much
      array<operation<Key, Value>, Place> operations(place_, done);
      array<operation_result<Value>, Place> answers(place_, done);
      place_.for_each(done, fill_mixed<Key, Value>{operations.data(), n_, memory_.key});
      std::uint64_t bad = 0;
      const auto start = [&] {
        table.clear(place_);
        table.insert(place_, memory_.keys_of(0, n_), memory_.values_of(0, n_), {});
        place_.fill(answers.data(), poison, answers.bytes());
      };
      const auto run_all = [&] {
        const auto all = std::as_const(operations).span();
        if constexpr (requires { table.run(place_, all, answers.span(), memory_.how); }) {
          line.path = name_of(table.run(place_, all, answers.span(), memory_.how).path);
        } else {
          table.run(place_, all, answers.span());
          line.path = name_of(path::direct);
        }
      };
      line.median_ms = memory_.median(start, run_all, [&] {
        bad += place_.sum(done, wrong_mixed<Key, Value>{operations.data(), answers.data()});
      });
      return outcome{done, bad + wrong_after(table, stored_after_mixed(n_, done))};
    } else {
      return std::nullopt;
    }
  }

  outcome insert(Table& table, row& line) {
    const std::size_t before = line.op == "insert" ? 0 : line.op == "insert_half" ? n_ / 2 : n_ - n_ / 20;
    const std::size_t done = n_ - before;
    insert_report report;
    line.median_ms = memory_.median(
        [&] {
          table.clear(place_);
          if (before != 0) table.insert(place_, memory_.keys_of(0, before), memory_.values_of(0, before), {});
          report = {};
        },
        [&] {
          if (before == 0) table.clear(place_);
          report = table.insert(place_, memory_.keys_of(before, done), memory_.values_of(before, done),
                                memory_.how);
        });
    line.path = name_of(report.path);
    return {done, off_by(report.inserted, done) + wrong_after(table, {n_})};
  }

  std::uint64_t wrong_after(Table& table, const stored_keys& stored) {
    return wrong_keys(place_, table, memory_.queries, memory_.results, memory_.key, stored);
  }

  change_memory<Place, Key, Value> memory_;
  const Place& place_;
  std::size_t n_;
  double load_factor_;
};

template <class Table, class Place, class Key, class Value>
void measure_changes(const Place& place, const settings& options, std::size_t n, double load_factor) {
  if (!options.report || !options.wants(Table::name())) return;
  changes_measurement<Table, Place, Key, Value> changes(place, options, n, load_factor);
  for (const std::string& op : options.ops) changes.run(op);
}

struct curve_step {
  std::size_t before, inserted;      // keys
  std::size_t full;                  // keys that found no room
  std::vector<double> milliseconds;  // of each repetition
};

/// The load curve of D. Farrell, A simple GPU hash table, 2020: a map with slots for n keys is filled by n /
/// 32 of them a step, 31 times.
template <class Map, class Place, class Key, class Value>
std::vector<curve_step> load_curve(const Place& place, Map& map, std::span<const Key> keys,
                                   std::span<const Value> values, int warm_ups, int repetitions,
                                   const bulk_options& how) {
  const std::size_t n = keys.size(), step = std::max<std::size_t>(1, n / 32);
  std::vector<curve_step> steps;
  for (std::size_t first = 0; first + step < n; first += step) steps.push_back({});
  for (int repetition = -warm_ups; repetition < repetitions; ++repetition) {
    map.clear(place);
    std::size_t first = 0, inserted = 0;
    for (curve_step& s : steps) {
      s.before = inserted;
      insert_report report;
      const double time = milliseconds_of_run(place, repetition + 1 == repetitions, [&] {
        report = map.insert(place, keys.subspan(first, step), values.subspan(first, step), how);
      });
      s.inserted = report.inserted;
      s.full = report.full;
      if (repetition >= 0) s.milliseconds.push_back(time);
      first += step;
      inserted += s.inserted;
    }
  }
  return steps;
}

/// Keys that were inserted, or found no room: present keys must have their values.
template <class Value>
struct wrong_or_missing {
  const Value* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != missing<Value> && results[i] != make_value<Value>{}(i);
  }
};
template <class Value>
struct is_missing {
  const Value* results;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return results[i] == missing<Value>; }
};

/// How many keys are wrong after a load curve: each must have its value or be missing, as many must be
/// present as were inserted, and no others.
template <class Map, class Place, class Key, class Value>
std::uint64_t wrong_after_load_curve(const Place& place, const Map& map, std::span<const Key> keys,
                                     array<Value, Place>& results, const std::vector<curve_step>& steps) {
  const std::size_t n = keys.size(), tried = steps.size() * std::max<std::size_t>(1, n / 32);
  std::size_t inserted = 0, full = 0;
  for (const curve_step& s : steps) {
    inserted += s.inserted;
    full += s.full;
  }
  place.fill(results.data(), poison, results.bytes());
  map.find(place, keys, results.span(), missing<Value>);
  const std::uint64_t there = tried - place.sum(tried, is_missing<Value>{results.data()});
  const std::uint64_t late = n - tried - place.sum(n - tried, is_missing<Value>{results.data() + tried});
  return place.sum(tried, wrong_or_missing<Value>{results.data()}) + off_by(there, inserted) +
         off_by(inserted + full, tried) + late;
}

/// `load_curve`: the rows of a load curve, each with the keys that were inserted and the load before them.
template <class Table, class Place, class Key, class Value>
void measure_load_curve(const Place& place, const settings& options, std::size_t n) {
  Table table(place, n, 1);
  array<Key, Place> keys(place, n);
  array<Value, Place> values(place, n), results(place, n);
  place.for_each(n, fill_pairs<Key, Value>{keys.data(), values.data(), 0, {options.keys, n}});
  row line = row_of_changes<Table, Place, Key, Value>(place, options, "load_curve", n);
  const auto steps = load_curve(place, table, std::as_const(keys).span(), std::as_const(values).span(),
                                options.warm_ups, options.repetitions, {.path = options.path});
  if (steps.empty()) return;
  line.check = verdict(wrong_after_load_curve(place, table, std::as_const(keys).span(), results, steps));
  line.bytes = table.bytes();
  for (const curve_step& s : steps) {
    line.n = s.inserted;
    line.load_factor = static_cast<double>(s.before) / static_cast<double>(table.capacity());
    line.median_ms = median(s.milliseconds);
    line.gops = static_cast<double>(s.inserted) / line.median_ms / 1e6;
    options.report(line);
  }
}

/// `churn`: a map of n keys that grows; a thousand rounds erase the oldest tenth and insert as many new ones.
/// `churn_insert`: the mean call of the last hundred rounds, including the time to make room; `churn_hit`,
/// `churn_miss`: all keys that are then present, and as many absent ones. `fresh_insert`, `fresh_hit`,
/// `fresh_miss`: the same for a map with nine tenths of n keys that then gets the rest.
template <class Table, class Place, class Key, class Value>
class churn_measurement {
 public:
  churn_measurement(const Place& place, const settings& options, std::size_t n, double load_factor)
      : memory_{place, options, n},
        place_(place),
        n_(n),
        part_((n + 9) / 10),
        map_(place, n, {.load_factor = load_factor}) {}

  void run() {
    measure_fresh();
    measure_rounds();
  }

 private:
  void measure_fresh() {
    std::uint64_t bad = 0;
    std::size_t inserted = 0;
    const double ms = memory_.median(
        [&] {
          map_.clear(place_);
          memory_.make_pairs(0, n_ - part_);
          map_.insert(place_, memory_.keys_of(0, n_ - part_), memory_.values_of(0, n_ - part_));
          memory_.make_pairs(n_ - part_, part_);
          inserted = 0;
        },
        [&] { inserted = insert_part(); }, [&] { bad += off_by(inserted, part_); });
    report("fresh_insert", part_, ms, 0, bad + wrong_part(0, n_, true) + wrong_part(n_, n_, false));
    report_finds("fresh", 0);
  }

  void measure_rounds() {
    constexpr int rounds = 1000, measured = 100;
    std::uint64_t bad = 0;
    double ms = 0;
    std::size_t oldest = 0;
    int grown = 0;
    for (int round = 0; round < rounds; ++round) {
      const bool counts = round >= rounds - measured;
      memory_.make_pairs(oldest, part_);
      bad += off_by(map_.erase(place_, memory_.keys_of(0, part_), memory_.how), part_);
      if (counts) bad += wrong_part(oldest, part_, false);
      memory_.make_pairs(oldest + n_, part_);
      const std::size_t capacity = map_.capacity();
      std::size_t inserted = 0;
      const double time = milliseconds_of_run(place_, round + 1 == rounds, [&] { inserted = insert_part(); });
      bad += off_by(inserted, part_);
      if (counts) {
        ms += time / measured;
        bad += wrong_part(oldest + n_, part_, true);
      }
      oldest += part_;
      grown += map_.capacity() > capacity;
    }
    bad += wrong_part(oldest, n_, true) + wrong_part(oldest - n_, n_, false);  // live, and erased last
    report("churn_insert", part_, ms, 0,
           bad + (grown > 1 ? 1 : 0));  // old slots must not make it grow on and on
    report_finds("churn", oldest);
  }

  std::size_t insert_part() {
    return map_.insert(place_, memory_.keys_of(0, part_), memory_.values_of(0, part_), memory_.how).inserted;
  }

  /// Finds all n keys from `first` on, which must be all keys present, and the n keys after those.
  void report_finds(const std::string& of, std::size_t first) {
    for (const std::uint32_t hits : {64u, 0u}) {
      query_order order(n_, hits, memory_.options.queries);
      order.first = first;
      memory_.make_queries(order);
      auto& results = memory_.results;
      std::uint64_t bad = 0;
      const double ms =
          memory_.median([&] { place_.fill(results.data(), poison, results.bytes()); },
                         [&] {
                           map_.find(place_, std::as_const(memory_.queries).span(), results.span(),
                                     missing<Value>, memory_.how);
                         },
                         [&] { bad += place_.sum(n_, wrong_value<Value>{results.data(), order}); });
      report(of + (hits == 0 ? "_miss" : "_hit"), n_, ms, hits / 64.0, bad + off_by(map_.size(place_), n_));
    }
  }

  /// How many of `count` keys from `first` on are not present with their values or, if they were erased, are
  /// present.
  std::uint64_t wrong_part(std::size_t first, std::size_t count, bool stored) {
    return wrong_keys_from(place_, map_, memory_.queries, memory_.results, first, count, memory_.key,
                           {stored ? first + count : 0});
  }

  void report(const std::string& op, std::size_t done, double ms, double hit_rate, std::uint64_t bad) const {
    row line = row_of_changes<Table, Place, Key, Value>(place_, memory_.options, op, done);
    line.load_factor = static_cast<double>(n_) / static_cast<double>(map_.capacity());
    line.median_ms = ms;
    line.gops = static_cast<double>(done) / ms / 1e6;
    line.hit_rate = hit_rate;
    line.check = verdict(bad);
    line.bytes = map_.bytes();
    memory_.options.report(line);
  }

  change_memory<Place, Key, Value> memory_;
  const Place& place_;
  std::size_t n_, part_;
  concurrent_map<Key, Value, Place> map_;
};

/// The workloads of all tables, and the ones above.
template <class Table, class Place, class Key, class Value>
void measure_concurrent(const Place& place, const settings& options, std::size_t n, double load_factor) {
  measure<Table, Place, Key, Value>(place, options, n, load_factor);
  measure_changes<Table, Place, Key, Value>(place, options, n, load_factor);
  if constexpr (requires(Table table) { table.capacity(); }) {
    if (!options.report || !options.wants(Table::name())) return;
    if (options.asks("load_curve") && load_factor == options.load_factors.front())
      measure_load_curve<Table, Place, Key, Value>(place, options, n);
    if (options.asks("churn"))
      churn_measurement<Table, Place, Key, Value>(place, options, n, load_factor).run();
  }
}

}  // namespace roost::bench
