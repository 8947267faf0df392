#pragma once

#include "apps/bench/concurrent.hpp"
#include "apps/bench/groups.hpp"
#include "apps/bench/partition.hpp"
#include "apps/measure/random_voxels.hpp"
#include "apps/measure/report.hpp"
#include "papers/cuckoo_multi.hpp"
#include "stadium_paper.hpp"

// The measurements of the papers, made with the faithful tables: Alcantara et al. 2009, sections 4, 5 and 7
// with Figures 4 to 6, and Wang and Hu, Figures 5 and 6. D. Farrell's measurements are repeated with
// concurrent_map.

namespace roost::bench {

/// Run r's i-th key: keys differ between runs.
struct random_key {
  std::uint32_t first;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    return mix32(first + static_cast<std::uint32_t>(i));
  }
};

/// His load curve of n slots, with room for our times.
inline report_table farrell_curve(std::size_t n, const std::string& slots) {
  constexpr double curve[] = {11.608, 11.751, 11.943, 12.081, 12.243, 12.396,  12.533, 12.703,
                              12.885, 13.033, 13.239, 13.392, 13.624, 13.876,  14.127, 14.399,
                              14.690, 15.039, 15.479, 15.986, 16.669, 17.587,  18.690, 20.279,
                              22.545, 26.053, 31.895, 42.103, 61.849, 105.696, 240.205};  // ms
  report_table result{"D. Farrell, load curve: ms of " + std::to_string(n / 32) + " inserts into " + slots +
                          " at a load factor (his: 4194304 into 2^27)",
                      {"load factor", "document", "roost, key by key", "roost, by region"},
                      {}};
  for (std::size_t i = 0; i < std::size(curve); ++i)
    result.rows.push_back({text(static_cast<double>(i) / 32, 2), text(curve[i], 3)});
  return result;
}

/// D. Farrell, A simple GPU hash table, 2020: 2^27 slots, on the host 2^22. Key by key, like his kernels, and
/// by region. His probe lengths count slots from the home, ours count buckets that a find reads after the
/// home.
template <class Place>
void reproduce_farrell(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  constexpr int log2_slots = std::is_same_v<Place, host> ? 22 : 27;
  constexpr std::size_t n = std::size_t{1} << log2_slots, half = n / 2, quarter = n / 4;
  array<u32, Place> keys(place, n), values(place, n), queries(place, half), results(place, n);
  place.for_each(n, fill_pairs<u32, u32>{keys.data(), values.data(), 0});
  const auto keys_in = std::as_const(keys).span(), values_in = std::as_const(values).span();
  concurrent_map<u32, u32, Place> map(place, n, {.load_factor = 1, .grows = false});
  const std::string slots = "2^" + std::to_string(log2_slots) + " slots";

  report_table facts{
      "D. Farrell, A simple GPU hash table: " + slots + " (his times: GeForce GTX 1060, 2^27 slots)",
      {"fact", "document", "roost, key by key", "roost, by region"},
      {{std::to_string(half) + " inserts, ms", "210"},
       {"then " + std::to_string(quarter) + " deletes of those, ms", "64"},
       {"load 0.50: mean probe length (his in slots, ours in buckets)", "0.4774"},
       {"load 0.50: maximum", "60"},
       {"load 0.97: mean probe length (his in slots, ours in buckets)", "10.1757"},
       {"load 0.97: maximum", "6474"},
       {"load 0.97: keys without room", "0"}}};
  report_table steps = farrell_curve(n, slots);

  for (const path way : {path::direct, path::regional}) {
    const bulk_options how{.path = way};
    const auto insert_half = [&] { map.insert(place, keys_in.first(half), values_in.first(half), how); };
    const auto time = [&](const auto& before, const auto& f) {
      return median_milliseconds(place, 1, options.repetitions, before, f);
    };
    const auto check = [&](const char* what, const stored_keys& stored) {
      check_answers(wrong_keys(place, map, queries, results, make_key<u32>(), stored),
                    std::string("concurrent_map after ") + what);
    };
    const double insert = time([&] { map.clear(place); }, insert_half);
    check("inserts", {half});
    const concurrent_statistics at_half = map.statistics(place);
    const double erase = time(insert_half, [&] { map.erase(place, keys_in.first(quarter), how); });
    check("deletes", {half, 0, quarter});
    const auto all = load_curve(place, map, keys_in, values_in, 1, options.repetitions, how);
    check_answers(wrong_after_load_curve(place, map, keys_in, results, all),
                  "concurrent_map after the load curve");
    const concurrent_statistics at_end = map.statistics(place);
    const std::string told[] = {text(insert, 3),
                                text(erase, 3),
                                text(at_half.mean_probes - 1, 4),
                                std::to_string(at_half.most_probes - 1),
                                text(at_end.mean_probes - 1, 4),
                                std::to_string(at_end.most_probes - 1),
                                std::to_string(all.size() * (n / 32) - at_end.size)};
    for (std::size_t i = 0; i < std::size(told); ++i) facts.rows[i].push_back(told[i]);
    for (std::size_t i = 0; i < all.size(); ++i)
      steps.rows[i].push_back(text(median(all[i].milliseconds), 3));
  }
  options.report(facts);
  options.report(steps);
}

/// The voxel of pair i: n pairs in a scrambled order, `each` of which share one.
struct copied_voxel {
  std::size_t n;
  std::uint32_t each;

  ROOST_FN std::size_t shuffled(std::size_t i) const { return (i * 2654435761u + 12345) % n; }
  ROOST_FN std::uint32_t number(std::size_t i) const {
    return static_cast<std::uint32_t>(shuffled(i) / each);
  }
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return random_voxel{}(number(i)); }
  /// Query i is for the key of this pair: one query per value of each key.
  ROOST_FN std::size_t query(std::size_t i) const { return shuffled(i); }
  std::size_t different() const { return kernels::ceil_div<std::size_t>(n, each); }
};

struct fill_voxel_queries {
  std::uint32_t* queries;
  copied_voxel voxel;
  ROOST_FN void operator()(std::size_t i) const { queries[i] = voxel(voxel.query(i)); }
};

template <class Ref, class Result>
struct find_each {
  Ref ref;
  const std::uint32_t* queries;
  Result* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = ref.find(queries[i]); }
};

template <class Ref>
struct find_value_each {
  Ref ref;
  const std::uint32_t* queries;
  std::uint32_t* results;
  ROOST_FN void operator()(std::size_t i) const {
    results[i] = ref.find(queries[i]).value_or(std::uint32_t{missing<std::uint32_t>});
  }
};

/// Values are numbers of pairs. The query for a key's r-th pair checks the r-th value of the run that it
/// found: first it writes its own number there; then it checks that the run has the right length, that the
/// value's pair has the key, and that no other query wrote there. So all runs hold all their values, each
/// once.
struct check_runs {
  const value_run<std::uint32_t>* runs;  // of each query
  copied_voxel voxel;
  std::uint32_t* asked_by;  // of each pair

  ROOST_FN std::size_t value(std::size_t i) const {
    const std::size_t rank = voxel.shuffled(voxel.query(i)) % voxel.each;
    return rank < runs[i].size() ? runs[i][rank] : voxel.n;
  }
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t pair = value(i);
    if (pair < voxel.n) asked_by[pair] = static_cast<std::uint32_t>(i);
  }
};
struct wrong_run {
  check_runs of;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const copied_voxel& voxel = of.voxel;
    const std::uint32_t number = voxel.number(voxel.query(i));
    const std::size_t pair = of.value(i), left = voxel.n - std::size_t{number} * voxel.each;
    return of.runs[i].size() != kernels::smaller<std::size_t>(voxel.each, left) || pair >= voxel.n ||
           voxel.number(pair) != number || of.asked_by[pair] != i;
  }
};

/// 1 for an index that does not lead back to its key.
struct wrong_voxel_index {
  const std::uint32_t* queries;
  const found<std::uint32_t>* indices;
  const std::uint32_t* keys;  // of each index
  std::size_t size;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return !indices[i] || *indices[i] >= size || keys[*indices[i]] != queries[i];
  }
};

/// Pairs with repeated keys, and one query per value of each key.
template <class Place>
class copies_trial {
  using u32 = std::uint32_t;

 public:
  struct times {
    double build, find;
  };

  copies_trial(const Place& place, int repetitions, std::size_t n)
      : place_(place),
        repetitions_(repetitions),
        n_(n),
        keys_(place, n),
        values_(place, n),
        queries_(place, n),
        asked_by_(place, n),
        runs_(place, n),
        indices_(place, n) {
    kernels::write_numbers(place, n, detail::number<u32>(), values_.data());
  }

  void set_copies(u32 each) {
    voxel_ = {n_, each};
    kernels::write_numbers(place_, n_, voxel_, keys_.data());
    place_.for_each(n_, fill_voxel_queries{queries_.data(), voxel_});
  }

  /// Measures a table whose lookups, through ref_of(table), return runs of values.
  template <class Table, class RefOf>
  times measure(const char* what, std::optional<Table>& table, const RefOf& ref_of) {
    times t{};
    t.build = time_build(table, [&] { table.emplace(place_, keys(), std::as_const(values_).span()); });
    const auto ref = ref_of(*table);
    using find = find_each<std::remove_const_t<decltype(ref)>, value_run<u32>>;
    t.find = median_milliseconds(
        place_, 1, repetitions_,
        [&] { place_.fill(runs_.data(), 0, runs_.bytes()); },  // empty runs, which are always wrong
        [&] { place_.for_each(n_, find{ref, queries_.data(), runs_.data()}); });
    const check_runs look{runs_.data(), voxel_, asked_by_.data()};
    place_.for_each(n_, look);
    check(what, place_.sum(n_, wrong_run{look}));
    return t;
  }

  /// Returns the time of the build.
  template <class Index>
  double measure_index(const char* what, std::optional<Index>& index) {
    const double build = time_build(index, [&] { index.emplace(place_, keys()); });
    const auto ref = index->ref();
    using find = find_each<std::remove_const_t<decltype(ref)>, found<u32>>;
    place_.fill(indices_.data(), 0, indices_.bytes());
    place_.for_each(n_, find{ref, keys_.data(), indices_.data()});
    const std::uint64_t bad = index->size() == voxel_.different() ? 0 : n_;
    check(what, bad + place_.sum(n_, wrong_voxel_index{keys_.data(), indices_.data(), index->keys().data(),
                                                       index->size()}));
    return build;
  }

 private:
  std::span<const u32> keys() const { return keys_.span(); }
  template <class Made, class F>
  double time_build(std::optional<Made>& made, const F& f) const {
    return median_of_builds(place_, 1, repetitions_, made, f);
  }
  void check(const char* what, std::uint64_t bad) const {
    check_answers(bad, what + (" with " + std::to_string(voxel_.each)) + " values a key");
  }

  const Place& place_;
  int repetitions_;
  std::size_t n_;
  copied_voxel voxel_{};
  array<u32, Place> keys_, values_, queries_, asked_by_;
  array<value_run<u32>, Place> runs_;
  array<found<u32>, Place> indices_;
};

/// Figure 6: a million pairs, more and more of which have the same key.
template <class Place>
void reproduce_copies(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  copies_trial<Place> trial(place, options.repetitions, options.shared(1000000));
  report_table figure6{
      "Alcantara et al. 2009, Figure 6: a million pairs, one query on each key for each of its values, ms",
      {"values a key", "multi-value hash: build", "its rounds", "sort and compaction: build",
       "frozen_multimap: build", "multi-value hash: retrieval", "binary search", "frozen_multimap: retrieval",
       "compacting hash (4.3): build", "two_way_index: build"},
      {}};
  for (u32 each = 1; each <= 1024; each *= 2) {
    trial.set_copies(each);
    const auto ref = [](const auto& table) { return table.ref(); };
    std::optional<cuckoo_multimap<u32, u32, Place>> faithful;
    std::optional<frozen_multimap<u32, u32, Place>> ours;
    std::optional<sorted_groups<Place, u32, u32>> sorted;
    const auto of_faithful = trial.measure("the multi-value hash", faithful, ref);
    const auto of_sorted = trial.measure("binary search", sorted, [](const auto& groups) {
      return sorted_runs<Place>{{groups.keys(), groups.offsets(), groups.size()}, groups.values()};
    });
    const auto of_ours = trial.measure("frozen_multimap", ours, ref);
    std::optional<cuckoo_index<u32, Place>> faithful_index;
    std::optional<two_way_index<u32, Place>> our_index;
    const double of_faithful_index = trial.measure_index("the compacting hash", faithful_index);
    const double of_our_index = trial.measure_index("two_way_index", our_index);
    figure6.rows.push_back({std::to_string(each), text(of_faithful.build, 3),
                            text(faithful->mean_rounds(), 2), text(of_sorted.build, 3),
                            text(of_ours.build, 3), text(of_faithful.find, 3), text(of_sorted.find, 3),
                            text(of_ours.find, 3), text(of_faithful_index, 3), text(of_our_index, 3)});
  }
  options.report(figure6);
}

struct cuckoo_times {
  double build, find, sort, search, partition, cuckoo_hashing;
};

/// As many random voxels as in the paper, in the cuckoo table and in a sorted one.
template <class Place>
class voxels_trial {
  using u32 = std::uint32_t;
  using cuckoo_map = frozen_map<u32, u32, Place, cuckoo>;

 public:
  voxels_trial(const Place& place, const reproduction& options, std::size_t of_the_paper)
      : place_(place),
        repetitions_(options.repetitions),
        n_(options.shared(of_the_paper)),
        keys_(place, n_),
        values_(place, n_),
        queries_(place, n_),
        results_(place, n_) {
    kernels::write_numbers(place, n_, random_voxel{}, keys_.data());
    place.for_each(n_, fill_values<u32>{values_.data()});
    place.for_each(n_, shuffled());
  }

  cuckoo_times run() {
    const auto queries = std::as_const(queries_).span();
    cuckoo_times t{};
    std::optional<cuckoo_map> map;
    std::optional<sorted_map<u32, u32, Place>> sorted;
    t.build = time_build(map, [&] { map.emplace(place_, keys(), values()); });
    t.find = time_find("the cuckoo table", [&] { map->find(place_, queries, results_.span(), 0u); });
    t.sort = time_build(sorted, [&] { sorted.emplace(place_, keys(), values()); });
    t.search = time_find("binary search", [&] { sorted->find(place_, queries, results_.span(), 0u); });
    time_phases(map->statistics().restarts, t);
    return t;
  }

 private:
  /// Times the two phases separately, for the attempt with which the build succeeded.
  void time_phases(int attempt, cuckoo_times& t) {
    const auto plan = cuckoo::make_plan<Place, u32, u32>(n_, {}, attempt);
    std::optional<partitioned<pair<u32, u32>, Place>> regions;
    t.partition = time_build(regions, [&] {
      detail::partitioner<Place, pair<u32, u32>> split(place_, plan.regions);
      regions.emplace(split.run(detail::zip_checked(keys(), values(), "partition"), plan.region_of));
    });
    using builder = cuckoo::builder<Place, u32, u32>;
    std::optional<detail::frozen_storage<Place, cuckoo::table<Place, u32, u32>>> table;
    array<detail::build_counts, Place> counted(place_, 1);
    const auto make_table = [&] {
      table.reset();
      table.emplace(place_, plan);
      place_.fill(counted.data(), 0, counted.bytes());
    };
    t.cuckoo_hashing = median_milliseconds(place_, 1, repetitions_, make_table, [&] {
      const builder kernel(table->ref(),
                           {regions->items(), regions->begins(), regions->ends(), counted.data()});
      place_.launch(plan.regions, kernels::scratch_bytes_of(kernel), kernel);
    });
    poison_results();
    using ref = cuckoo::table<Place, u32, u32>;
    place_.for_each(n_, find_value_each<ref>{table->ref(), queries_.data(), results_.data()});
    check_results("the two phases");
  }

  template <class Made, class F>
  double time_build(std::optional<Made>& made, const F& f) const {
    return median_of_builds(place_, 1, repetitions_, made, f);
  }
  template <class Find>
  double time_find(const char* what, const Find& find) {
    return median_milliseconds(
        place_, 1, repetitions_, [&] { poison_results(); }, find, [&] { check_results(what); });
  }
  void poison_results() { place_.fill(results_.data(), poison, results_.bytes()); }
  void check_results(const char* what) {
    check_answers(place_.sum(n_, wrong_shuffled<random_voxel>{results_.data(), shuffled()}),
                  what + (" with " + std::to_string(n_)) + " voxels");
  }
  fill_shuffled<random_voxel> shuffled() { return {queries_.data(), {}, n_, 2654435761u}; }
  std::span<const u32> keys() const { return keys_.span(); }
  std::span<const u32> values() const { return values_.span(); }

  const Place& place_;
  int repetitions_;
  std::size_t n_;
  array<u32, Place> keys_, values_, queries_, results_;
};

/// Restarts over many builds of different keys.
struct cuckoo_counts {
  int overfull = 0;
  double rounds = 0, ms = 0, ms_overfull = 0, load = 0, bytes = 0;
  std::size_t region_restarts = 0, regions = 0;
};
template <class Place>
cuckoo_counts build_many(const Place& place, const reproduction& options, std::size_t of_the_paper,
                         int builds) {
  using u32 = std::uint32_t;
  const std::size_t n = options.shared(of_the_paper);
  array<u32, Place> keys(place, n), values(place, n), results(place, n);
  place.for_each(n, fill_values<u32>{values.data()});
  std::optional<frozen_map<u32, u32, Place, cuckoo>> map;
  cuckoo_counts c;
  for (int b = 0; b < builds; ++b) {
    kernels::write_numbers(place, n, random_key{static_cast<u32>(b) * static_cast<u32>(n)}, keys.data());
    {
      const poisoning on;
      map.reset();
    }
    place.synchronize();
    const double ms = milliseconds(
        place, [&] { map.emplace(place, std::as_const(keys).span(), std::as_const(values).span()); });
    place.fill(results.data(), poison, results.bytes());
    map->find(place, std::as_const(keys).span(), results.span(), 0u);
    check_answers(place.sum(n, wrong_pair<u32>{results.data()}), "the cuckoo table of random keys");
    const frozen_statistics& s = map->statistics();
    c.overfull += s.restarts > 0;
    (s.restarts > 0 ? c.ms_overfull : c.ms) += ms;
    c.rounds += s.mean_rounds / builds;
    c.region_restarts += s.region_restarts;
    c.regions += s.regions;
    c.load = static_cast<double>(n) / static_cast<double>(s.capacity);
    c.bytes = static_cast<double>(s.bytes) / static_cast<double>(n * 8);
  }
  c.ms /= std::max(1, builds - c.overfull);
  c.ms_overfull /= std::max(1, c.overfull);
  return c;
}

/// Alcantara et al. 2009: the cuckoo table's facts, and Figures 4 and 5.
template <class Place>
void reproduce_cuckoo(const Place& place, const reproduction& options) {
  const auto voxels = [&](std::size_t of_the_paper) {
    return voxels_trial<Place>(place, options, of_the_paper).run();
  };
  const cuckoo_counts one = build_many(place, options, 1000000, options.builds);
  const int builds_of_five = std::max(1, options.builds / 5);
  const cuckoo_counts five = build_many(place, options, 5000000, builds_of_five);
  const cuckoo_times five_million = voxels(5000000);
  const auto share = [](int part, int all) {
    return text(100.0 * part / all, 3) + " % (" + std::to_string(part) + " of " + std::to_string(all) + ")";
  };
  options.report(
      {"Alcantara et al. 2009, sections 4.1, 5 and 7 (their times: GeForce GTX 280)",
       {"fact", "paper", "roost"},
       {{"load factor", "71 %", text(100 * one.load, 1) + " %"},
        {"table bytes over input bytes", "1.42", text(one.bytes, 2)},
        {"rounds until a bucket is built, mean", "5.5", text(one.rounds, 2)},
        {"buckets that began again with other functions", "only a few",
         text(100.0 * static_cast<double>(one.region_restarts) / static_cast<double>(one.regions), 4) + " %"},
        {"1 million keys: builds with an overfull bucket", "0.088 % (22 of 25000)",
         share(one.overfull, options.builds)},
        {"5 million keys: builds with an overfull bucket", "0.5 % (125 of 25000)",
         share(five.overfull, builds_of_five)},
        {"1 million keys: build, ms", "9.78", text(one.ms, 3)},
        {"1 million keys: build with a restart, ms", "14.7",
         one.overfull ? text(one.ms_overfull, 3) : "none seen"},
        {"5 million keys: build, ms", "35.7", text(five_million.build, 3)},
        {"5 million keys: retrieve all, ms", "15.3", text(five_million.find, 3)},
        {"5 million keys: radix sort, ms", "36.6", text(five_million.sort, 3)},
        {"5 million keys: binary search of all, ms", "79.5", text(five_million.search, 3)}}});

  report_table figure4{"Alcantara et al. 2009, Figure 4: random voxels of a 1024^3 grid, ms",
                       {"million voxels", "cuckoo build", "radix sort", "cuckoo retrieval", "binary search"},
                       {}};
  report_table figure5{
      "Alcantara et al. 2009, Figure 5: steps of the construction, ms",
      {"million voxels", "phase 1: assign, scan, shuffle", "phase 2: cuckoo hashing", "whole"},
      {}};
  for (const double millions : {0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
    const cuckoo_times t = voxels(static_cast<std::size_t>(millions * 1e6));
    figure4.rows.push_back(
        {text(millions, 2), text(t.build, 3), text(t.sort, 3), text(t.find, 3), text(t.search, 3)});
    figure5.rows.push_back(
        {text(millions, 2), text(t.partition, 3), text(t.cuckoo_hashing, 3), text(t.build, 3)});
  }
  options.report(figure4);
  options.report(figure5);
}

/// Wang and Hu: sets that are built without a scan.
template <class Place>
void reproduce_two_kernel(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  report_table two_kernel{
      "Wang and Hu, Figures 5 and 6: 2^s keys into a table of 2^(s+1), half of the lookups present, million "
      "keys/s",
      {"s", "two-kernel build", "build with scan", "lookup"},
      {}};
  for (const int s : {16, 18, 20, 22, 24}) {
    const std::size_t n = options.shared(std::size_t{1} << s);
    array<u32, Place> keys(place, n), queries(place, n);
    array<bool, Place> results(place, n);
    place.for_each(n, fill_keys<u32>{keys.data()});
    std::optional<frozen_set<u32, Place, cuckoo>> set;
    const auto keys_in = std::as_const(keys).span();
    const auto poison_results = [&] { place.fill(results.data(), poison, results.bytes()); };
    const auto find = [&] { set->contains(place, std::as_const(queries).span(), results.span()); };
    const auto check = [&](const query_order& order) {
      check_answers(place.sum(n, wrong_contained{results.data(), order}),
                    "the set of 2^" + std::to_string(s) + " keys");
    };
    const auto time_set = [&](const auto& how) {
      const double ms =
          median_of_builds(place, 1, options.repetitions, set, [&] { set.emplace(place, keys_in, how); });
      for (const std::uint32_t hits : {64u, 0u}) {
        const query_order order(n, hits);
        place.for_each(n, fill_queries<u32>{queries.data(), order});
        poison_results();
        find();
        check(order);
      }
      return ms;
    };
    using set_options = typename frozen_set<u32, Place, cuckoo>::options;
    const double scan = time_set(set_options{});
    const double fixed = time_set(set_options{.two_kernel = true});
    const query_order half(n, 32);
    place.for_each(n, fill_queries<u32>{queries.data(), half});
    const double lookup =
        median_milliseconds(place, 1, options.repetitions, poison_results, find, [&] { check(half); });
    const auto rate = [n](double ms) { return text(static_cast<double>(n) / ms / 1e3, 0); };
    two_kernel.rows.push_back({std::to_string(s), rate(fixed), rate(scan), rate(lookup)});
  }
  options.report(two_kernel);
}

template <class Place>
void reproduce_on(const Place& place, const reproduction& options) {
  if (options.wants("cuckoo")) reproduce_cuckoo(place, options);
  if (options.wants("copies")) reproduce_copies(place, options);
  if (options.wants("two-kernel")) reproduce_two_kernel(place, options);
  if (options.wants("farrell")) reproduce_farrell(place, options);
  if (options.wants("stadium")) reproduce_stadium(with_default_memory(place), options);
}

void reproduce_host(const reproduction& options);
void reproduce_cuda(const reproduction& options);

}  // namespace roost::bench
