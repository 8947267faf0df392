#pragma once

#include "apps/measure/report.hpp"
#include "apps/measure/timing.hpp"
#include "apps/measure/workload.hpp"
#include "papers/collaborating_lanes.hpp"
#include "papers/cuckoo_global.hpp"

// The measurements of Khorasani et al., Stadium Hashing, 2015, section IV: stadium_map, key by key and in one
// region like theirs, and the cuckoo table that they compare with.

namespace roost::bench {

/// A key or a value of some bytes.
template <int Bytes>
struct sized {
  std::uint32_t words[Bytes / 4];
  sized() = default;
  ROOST_FN explicit sized(std::uint32_t number) {
    for (int i = 0; i < Bytes / 4; ++i) words[i] = mix32(number, static_cast<std::uint32_t>(i));
  }
  ROOST_FN friend bool operator==(const sized& a, const sized& b) {
    bool same = true;
    for (int i = 0; i < Bytes / 4; ++i) same &= a.words[i] == b.words[i];
    return same;
  }
};

template <class T>
ROOST_FN T numbered(std::uint32_t number) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mix32(number));  // a bijection of 32 bits: different numbers, different keys
  } else {
    return T(number);
  }
}

/// Equally many inserts and lookups, in groups of 32, so that a warp does one kind. Slice s inserts its own
/// pairs and queries those of slice s - 1; one query in `every` is for a key that is in no slice (0: no query
/// is).
template <class Ref>
struct slice_of_operations {
  using key = typename Ref::key_type;
  using value = typename Ref::value_type;
  Ref table;
  value* answers;       // one for each pair of all slices
  std::uint32_t* lost;  // pairs without room
  std::uint32_t first, pairs, all;
  std::uint32_t every;
  bool inserts, finds;

  ROOST_FN bool is_there(std::uint32_t number) const { return every == 0 || number % every != 0; }
  ROOST_FN void operator()(std::size_t i) const {
    const auto group = static_cast<std::uint32_t>(i / 64), in_group = static_cast<std::uint32_t>(i % 32),
               number = first + group * 32 + in_group;
    if (i % 64 < 32) {
      if (inserts) insert(number);
    } else if (finds && number >= pairs) {
      ask(number - pairs);
    }
  }
  ROOST_FN void insert(std::uint32_t number) const {
    if (!stored(table.insert_new(numbered<key>(number), numbered<value>(number + 1))))
      kernels::fetch_add(*lost, 1u);
  }
  ROOST_FN void ask(std::uint32_t number) const {
    const auto answer = table.find(numbered<key>(is_there(number) ? number : number + all));
    answers[number] = answer ? *answer : value{};
  }
  ROOST_FN static bool stored(insertion what) { return what == insertion::inserted; }
  ROOST_FN static bool stored(bool what) { return what; }
};

template <class Slice>
struct insert_all {
  Slice slice;
  ROOST_FN void operator()(std::size_t i) const { slice.insert(static_cast<std::uint32_t>(i)); }
};
template <class Slice>
struct ask_all {
  Slice slice;
  ROOST_FN void operator()(std::size_t i) const { slice.ask(static_cast<std::uint32_t>(i)); }
};
template <class Slice>
struct erase_all {
  Slice slice;
  ROOST_FN void operator()(std::size_t i) const {
    if (!slice.table.erase(numbered<typename Slice::key>(static_cast<std::uint32_t>(i))))
      kernels::fetch_add(*slice.lost, 1u);
  }
};
template <class Slice>
struct wrong_slice_answer {
  Slice slice;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto number = static_cast<std::uint32_t>(i);
    using value = typename Slice::value;
    return slice.answers[i] == (slice.is_there(number) ? numbered<value>(number + 1) : value{}) ? 0 : 1;
  }
};

template <class Slice>
struct is_answered {
  Slice slice;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return slice.answers[i] == typename Slice::value{} ? 0 : 1;
  }
};

/// The operations of section IV on one table of n pairs, all answers checked.
template <class Table, class Place>
class stadium_trial {
  using ref = decltype(std::declval<Table&>().ref());
  using slice = slice_of_operations<ref>;

 public:
  static constexpr std::uint32_t slice_pairs =
      1u << 16;  // and as many queries: theirs have about 100 000 operations

  stadium_trial(const Place& place, Table& table, std::uint32_t n, int repetitions, const char* what)
      : place_(place),
        table_(table),
        n_(n),
        repetitions_(repetitions),
        what_(what),
        answers_(place, n),
        lost_(place, 1) {}

  double insert() {
    const double ms =
        time([&] { table_.clear(place_); }, [&] { place_.for_each(n_, insert_all<slice>{of(0, 0)}); });
    check_nothing_lost();
    ask_for_all();
    check(n_, 0);
    return ms;
  }
  double find(std::uint32_t every) {
    const double ms =
        time([&] { poison_answers(); }, [&] { place_.for_each(n_, ask_all<slice>{of(0, every)}); });
    check(n_, every);
    return ms;
  }
  double erase() {
    const double ms = time(
        [&] {
          table_.clear(place_);
          place_.for_each(n_, insert_all<slice>{of(0, 0)});
        },
        [&] { place_.for_each(n_, erase_all<slice>{of(0, 0)}); });
    check_nothing_lost();
    ask_for_all();
    check_answers(place_.sum(n_, is_answered<slice>{of(0, 0)}), what_);
    return ms;
  }
  /// Slice after slice; inserts and lookups of a slice at the same time, or first its inserts.
  double mixed(std::uint32_t every, bool at_the_same_time) {
    const double ms = time(
        [&] {
          table_.clear(place_);
          poison_answers();
        },
        [&] {
          for (std::uint32_t first = 0; first < n_; first += slice_pairs) {
            slice next = of(first, every);
            next.inserts = true;
            next.finds = at_the_same_time;
            place_.for_each(2 * slice_pairs, next);
            if (at_the_same_time) continue;
            std::swap(next.inserts, next.finds);
            place_.for_each(2 * slice_pairs, next);
          }
        });
    check_nothing_lost();
    check(n_ - slice_pairs, every);
    return ms;
  }

 private:
  slice of(std::uint32_t first, std::uint32_t every) {
    return {table_.ref(), answers_.data(), lost_.data(), first, slice_pairs, n_, every, true, true};
  }
  template <class Before, class F>
  double time(const Before& before, const F& f) {
    place_.fill(lost_.data(), 0, lost_.bytes());
    return median_milliseconds(place_, 1, repetitions_, before, f);
  }
  void poison_answers() { place_.fill(answers_.data(), poison, answers_.bytes()); }
  void ask_for_all() {
    poison_answers();
    place_.for_each(n_, ask_all<slice>{of(0, 0)});
  }
  void check_nothing_lost() const {
    std::uint32_t lost = 0;
    place_.copy_to_host(&lost, lost_.data(), sizeof(lost));
    if (lost != 0)
      throw error("roost reproduce: " + std::to_string(lost) + " keys of " + what_ +
                  " found no room, or were not there to be erased");
  }
  void check(std::uint32_t n, std::uint32_t every) {
    check_answers(place_.sum(n, wrong_slice_answer<slice>{of(0, every)}), what_);
  }

  Place place_;
  Table& table_;
  std::uint32_t n_;
  int repetitions_;
  std::string what_;
  array<typename ref::value_type, Place> answers_;
  array<std::uint32_t, Place> lost_;
};

/// A stadium_map in one region, like theirs.
template <class Key, class Value, class Place>
stadium_map<Key, Value, Place> paper_stadium(const Place& place, std::uint32_t n, double load,
                                             int ticket_bits, residence bodies) {
  return stadium_map<Key, Value, Place>(place, n,
                                        {.load_factor = load,
                                         .ticket_bits = ticket_bits,
                                         .bodies = bodies,
                                         .grows = false,
                                         .region_slots = 1u << 31});
}

/// The paper's figures: averages over its inputs, or for each ticket size.
struct claim {
  const char *both, *both_half, *insert, *find, *find_half;
};
inline claim claimed(bool in_host, int bits) {
  if (!in_host) return {"1.04 to 1.19", "1.55 to 1.65", "", "", ""};
  switch (bits) {
    case 8:
      return {"1.25 to 1.75", "1.23 to 2.47", "about 2", "1.59", "3.99"};
    case 4:
      return {"1.25 to 1.75", "1.23 to 2.47", "about 2", "1.50", "3.23"};
    case 2:
      return {"1.25 to 1.75", "1.23 to 2.47", "about 2", "1.14", "1.59"};
    default:
      return {"1.25 to 1.75", "1.23 to 2.47", "about 2", "", ""};
  }
}

/// Figures 14 to 17: 32 + 32 bits, load 0.8, compared with the cuckoo table. Speed-ups over it: more is
/// better.
template <class Place>
void reproduce_stadium_beside_cuckoo(const Place& place, const reproduction& options, residence bodies) {
  using u32 = std::uint32_t;
  constexpr bool small = std::is_same_v<Place, host>;
  const bool in_host = bodies == residence::host;
  const u32 n = 1u << (small ? 18 : in_host ? 22 : 24);
  const std::string where = in_host ? "table in host memory"
                            : small ? "table on the host"
                                    : "table in GPU memory";

  struct times {
    double insert, find, find_half, both, both_half;
  };
  const auto measure = [&](auto& table, const char* what, bool at_the_same_time) {
    stadium_trial<std::remove_reference_t<decltype(table)>, Place> trial(place, table, n, options.repetitions,
                                                                         what);
    return times{trial.insert(), trial.find(0), trial.find(2), trial.mixed(0, at_the_same_time),
                 trial.mixed(2, at_the_same_time)};
  };
  times cuckoo;
  {
    cuckoo_global<Place> table(place, static_cast<u32>(n / 0.8), bodies);
    cuckoo = measure(table, "the cuckoo table", false);
  }
  const auto rate = [&](double operations, double ms) { return text(operations / ms / 1e3, 0); };
  const auto efficiency = [](const times& t) { return text(100 * (t.insert + t.find) / t.both, 0) + " %"; };
  report_table speed{
      "Khorasani et al. 2015, Figures 14 to 17: " + std::to_string(n) + " pairs, " + where +
          ", speed-up over cuckoo (in brackets theirs: GeForce GTX 780)",
      {"ticket bits", "slices of inserts and lookups, all there", "half there", "insert", "find, all there",
       "half there", "concurrency efficiency"},
      {{"cuckoo, M/s", rate(2.0 * n, cuckoo.both), rate(2.0 * n, cuckoo.both_half), rate(n, cuckoo.insert),
        rate(n, cuckoo.find), rate(n, cuckoo.find_half), efficiency(cuckoo) + " (61 %)"}}};
  for (const int bits : {8, 4, 2, 1}) {
    auto table = paper_stadium<u32, u32>(place, n, 0.8, bits, bodies);
    const times mine = measure(table, "stadium_map", true);
    const claim theirs = claimed(in_host, bits);
    const auto ratio = [](double other, double own, const char* paper) {
      return text(other / own, 2) + (*paper == 0 ? "" : std::string(" (").append(paper).append(")"));
    };
    speed.rows.push_back({std::to_string(bits), ratio(cuckoo.both, mine.both, theirs.both),
                          ratio(cuckoo.both_half, mine.both_half, theirs.both_half),
                          ratio(cuckoo.insert, mine.insert, theirs.insert),
                          ratio(cuckoo.find, mine.find, theirs.find),
                          ratio(cuckoo.find_half, mine.find_half, theirs.find_half),
                          efficiency(mine) + (in_host ? "" : " (97 %)")});
  }
  options.report(speed);
}

/// Figure 19: sizes of keys and values, load 0.85; and the gain of each ticket size.
template <class Place>
class stadium_sizes {
 public:
  stadium_sizes(const Place& place, const reproduction& options, residence bodies)
      : place_(place), options_(options), bodies_(bodies) {
    constexpr bool small = std::is_same_v<Place, host>;
    in_host_ = bodies == residence::host;
    n_ = 1u << (small ? 17 : in_host_ ? 21 : 25);
    table_ = {"Khorasani et al. 2015, Figure 19: " + std::to_string(n_) + " pairs, table in " +
                  (in_host_ ? "host"
                   : small  ? "the host's"
                            : "GPU") +
                  " memory, load 0.85, M/s",
              {"key bytes", "value bytes", "ticket bits", "insert", "find", "erase"},
              {}};
    measure<std::uint32_t, std::uint32_t>();
    measure<std::uint64_t, std::uint64_t>();
    measure<std::uint32_t, sized<32>>();
    measure<sized<32>, std::uint32_t>();
    measure<sized<16>, sized<16>>();
    options_.report(table_);
  }

 private:
  template <class Key, class Value>
  void measure() {
    for (const int bits : {8, 4, 2, 1}) {
      auto map = paper_stadium<Key, Value>(place_, n_, 0.85, bits, bodies_);
      stadium_trial<decltype(map), Place> trial(place_, map, n_, options_.repetitions, "stadium_map");
      const auto rate = [&](double ms) { return text(n_ / ms / 1e3, 0); };
      const double insert = trial.insert(), find = trial.find(0);
      table_.rows.push_back({std::to_string(sizeof(Key)), std::to_string(sizeof(Value)), std::to_string(bits),
                             rate(insert), rate(find), rate(trial.erase())});
    }
  }

  Place place_;
  const reproduction& options_;
  residence bodies_;
  bool in_host_;
  std::uint32_t n_;
  report_table table_;
};

template <class T>
struct fill_numbered {
  T* to;
  std::uint32_t first = 0;
  ROOST_FN void operator()(std::size_t i) const {
    to[i] = numbered<T>(first + static_cast<std::uint32_t>(i));
  }
};

/// Lookups of a stadium_map that compare keys in the table and never read a ticket. Slots without a pair hold
/// a key of all ones.
template <class Ref>
struct without_board : Ref {
  using key_type = typename Ref::key_type;
  using value_type = typename Ref::value_type;

  explicit without_board(const Ref& ref) : Ref(ref) {}
  ROOST_FN static key_type no_key() { return static_cast<key_type>(~key_type{}); }

  ROOST_FN found<value_type> find(const key_type& key) const {
    found<value_type> result;
    for (auto at = this->first_step(key);; this->pass(at)) {
      const auto body = Ref::body_of(this->body_at(at));
      if (body.key == key) result = found<value_type>(body.value);
      if (body.key == key || body.key == no_key()) return result;
    }
  }
  ROOST_FN void operator()(std::size_t slot) const { *this->body_of_slot(slot) = {no_key(), {}}; }
};

/// A map whose ref uses without_board.
template <class Map>
struct asked_without_board {
  Map& map;
  auto ref() { return without_board<typename Map::ref_type>(map.ref()); }
};

/// The tickets and bodies that a lookup reads, for present keys and as many absent ones.
template <class Place>
void reproduce_stadium_costs(const Place& place, const reproduction& options) {
  using u32 = std::uint32_t;
  const u32 n = 1u << (std::is_same_v<Place, host> ? 17 : 24);
  array<u32, Place> keys(place, 2 * std::size_t{n});
  place.for_each(keys.size(), fill_numbered<u32>{keys.data()});
  const auto all = std::as_const(keys).span();
  report_table told{
      "Stadium hashing: what a ticket size buys, " + std::to_string(n) + " pairs of 32 + 32 bits",
      {"load factor", "ticket bits", "a key that is there: tickets", "bodies", "one that is not: tickets",
       "bodies", "without a body"},
      {}};
  for (const double load : {0.8, 0.95}) {
    for (const int bits : {8, 4, 2, 1}) {
      auto map = paper_stadium<u32, u32>(place, n, load, bits, residence::place);
      map.insert_new(place, all.first(n), all.subspan(n));
      const lookup_costs hits = map.costs(place, all.first(n)), misses = map.costs(place, all.subspan(n));
      if (hits.found != n || misses.found != 0)
        throw error("roost reproduce: stadium_map finds " + std::to_string(hits.found) + " of " +
                    std::to_string(n) + " keys, and " + std::to_string(misses.found) + " that are not there");
      const auto each = [&](std::size_t sum) { return text(static_cast<double>(sum) / n, 3); };
      told.rows.push_back({text(load, 2), std::to_string(bits), each(hits.tickets), each(hits.bodies),
                           each(misses.tickets), each(misses.bodies),
                           text(100.0 * static_cast<double>(misses.without_bodies) / n, 1) + " %"});
    }
  }
  options.report(told);
}

/// Inserts new pairs directly, by single or collaborating lanes.
template <class Place, class Key, class Value>
void insert_lanes(const Place& place, stadium_map<Key, Value, Place>& map, std::span<const Key> keys,
                  std::span<const Value> values, bool together) {
  if (together) {
    insert_collaborating(place, map, keys, values);
  } else {
    map.insert_new(place, keys, values, {.path = path::direct});
  }
}

/// Figure 13: a table is filled to a load of 0.95 in 50 steps, by single and by collaborating lanes.
template <class Place>
void reproduce_stadium_lanes(const Place& place, const reproduction& options) {
  using u64 = std::uint64_t;
  constexpr int steps = 50;
  const std::size_t n = std::size_t{1} << (std::is_same_v<Place, host> ? 18 : 26), step = n / steps;
  array<u64, Place> keys(place, n), values(place, n), results(place, n);
  place.for_each(n, fill_pairs<u64, u64>{keys.data(), values.data(), 0});
  report_table told{"Khorasani et al. 2015, Figure 13: " + std::to_string(step) +
                        " inserts at a load factor, ms (theirs: the two are equally fast at some load)",
                    {"load factor", "alone", "together"},
                    {}};
  for (int s = 0; s < steps; ++s) told.rows.push_back({text(0.95 * s / steps, 2)});
  for (const bool together : {false, true}) {
    stadium_map<u64, u64, Place> map(place, n,
                                     {.load_factor = 0.95,
                                      .ticket_bits = 4,
                                      .bodies = residence::place,
                                      .grows = false,
                                      .region_slots = 1u << 31});
    std::vector<std::vector<double>> times(steps);
    for (int repetition = -1; repetition < options.repetitions; ++repetition) {
      map.clear(place);
      for (int s = 0; s < steps; ++s) {
        const auto part = [&](const auto& all) {
          return std::as_const(all).span().subspan(static_cast<std::size_t>(s) * step, step);
        };
        place.synchronize();
        const double ms =
            milliseconds(place, [&] { insert_lanes(place, map, part(keys), part(values), together); });
        if (repetition >= 0) times[static_cast<std::size_t>(s)].push_back(ms);
      }
      if (map.size(place) != step * steps) throw error("roost reproduce: stadium_map has lost keys");
    }
    place.fill(results.data(), poison, results.bytes());
    map.find(place, std::as_const(keys).span(), results.span(), missing<u64>);
    check_answers(place.sum(n, wrong_stored<u64>{results.data(), 0, {step * steps}}), "stadium_map");
    for (int s = 0; s < steps; ++s)
      told.rows[static_cast<std::size_t>(s)].push_back(text(median(times[static_cast<std::size_t>(s)]), 3));
  }
  options.report(told);
}

/// Figure 18: 8 + 8 bytes, load 0.85: lookups with tickets and without, and inserts by single and by
/// collaborating lanes.
template <class Place>
void reproduce_stadium_parts(const Place& place, const reproduction& options, residence bodies) {
  using u64 = std::uint64_t;
  using map_type = stadium_map<u64, u64, Place>;
  using ref = typename map_type::ref_type;
  const bool in_host = bodies == residence::host;
  const std::uint32_t n = 1u << (std::is_same_v<Place, host> ? 17 : in_host ? 21 : 26);
  const auto rate = [&](double ms) { return text(n / ms / 1e3, 0); };
  report_table told{"Khorasani et al. 2015, Figure 18: " + std::to_string(n) + " pairs, bodies in " +
                        (in_host ? "host" : "the place's") + " memory, load 0.85, M/s",
                    {"ticket bits", "insert, alone", "together", "find, all there", "half there"},
                    {}};
  array<u64, Place> keys(place, n), values(place, n);
  place.for_each(n, fill_numbered<u64>{keys.data()});
  place.for_each(n, fill_numbered<u64>{values.data(), 1});
  {
    auto map = paper_stadium<u64, u64, Place>(place, n, 0.85, 1, bodies);
    place.for_each(map.capacity(), without_board<ref>(map.ref()));
    map.insert_new(place, std::as_const(keys).span(), std::as_const(values).span());
    asked_without_board<map_type> table{map};
    stadium_trial<asked_without_board<map_type>, Place> trial(place, table, n, options.repetitions,
                                                              "stadium_map");
    const double all = trial.find(0), half = trial.find(2);
    told.rows.push_back({"no board", "", "", rate(all), rate(half)});
  }
  for (const int bits : {1, 2, 4, 8}) {
    std::vector<std::string> row{std::to_string(bits)};
    for (const bool together : {false, true}) {
      map_type map(place, n,
                   {.load_factor = 0.85,
                    .ticket_bits = bits,
                    .bodies = bodies,
                    .grows = false,
                    .region_slots = 1u << 31});
      row.push_back(rate(median_milliseconds(
          place, 1, options.repetitions, [&] { map.clear(place); },
          [&] {
            insert_lanes(place, map, std::as_const(keys).span(), std::as_const(values).span(), together);
          })));
      stadium_trial<map_type, Place> trial(place, map, n, options.repetitions, "stadium_map");
      const double find = trial.find(0);  // which also checks the inserts
      if (!together) continue;
      row.push_back(rate(find));
      row.push_back(rate(trial.find(2)));
    }
    told.rows.push_back(row);
  }
  options.report(told);
}

template <class Place>
void reproduce_stadium(const Place& place, const reproduction& options) {
  reproduce_stadium_costs(place, options);
  reproduce_stadium_lanes(place, options);
  for (const residence bodies : {residence::place, residence::host}) {
    if (std::is_same_v<Place, host> && bodies == residence::host) break;  // the same memory
    reproduce_stadium_beside_cuckoo(place, options, bodies);
    reproduce_stadium_parts(place, options, bodies);
    stadium_sizes<Place>(place, options, bodies);
  }
}

}  // namespace roost::bench
