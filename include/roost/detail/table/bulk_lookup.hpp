#pragma once

#include <span>

#include "roost/bulk.hpp"
#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/detail/table/probe.hpp"
#include "roost/partition.hpp"

// Bulk lookups, the same for every table with a ref: direct, or by region.

namespace roost::detail {

/// The key of a query.
template <class Query>
ROOST_FN const auto& key_of_query(const Query& query) {
  if constexpr (requires { typename Query::operation_value; }) {
    return query.key;
  } else {
    return query;
  }
}

// The answer of a lookup: of() computes it from what was found, put() writes it to the user's memory.
// (Changes have an operator() that takes the table and the query instead of of().) Plain: put() sets
// results[i].

template <class Value>
struct write_value {
  using result = Value;
  static constexpr bool plain = true;
  Value* results;
  Value missing;
  ROOST_FN result of(const found<Value>& answer) const { return answer.value_or(missing); }
  ROOST_FN void put(std::size_t i, const result& answer) const { results[i] = answer; }
};

template <class Value>
struct write_value_and_found {
  using result = found<Value>;
  Value* results;
  bool* here;
  ROOST_FN result of(const found<Value>& answer) const { return answer; }
  ROOST_FN void put(std::size_t i, const result& answer) const {
    here[i] = answer.has_value();
    if (answer) results[i] = *answer;
  }
};

struct write_contained {
  using result = bool;
  static constexpr bool plain = true;
  bool* results;
  template <class Value>
  ROOST_FN result of(const found<Value>& answer) const {
    return answer.has_value();
  }
  ROOST_FN void put(std::size_t i, result answer) const { results[i] = answer; }
};

/// The slot of a key.
struct write_slot {
  using result = std::uint64_t;
  static constexpr bool plain = true;
  std::uint64_t* results;
  template <class Value>
  ROOST_FN result of(const hit<Value>& answer) const {
    return answer.slot;
  }
  ROOST_FN void put(std::size_t i, result slot) const { results[i] = slot; }
};

/// results[i] = the value in slots[i], copied in pieces. For an absent key it is `missing`, or unchanged.
template <class Ref, bool Fills>
struct copy_value_of_slot {
  using value = typename Ref::value_type;
  using pieces = value_pieces<value>;
  Ref ref;
  const std::uint64_t* slots;
  value* results;
  bool* here;
  std::conditional_t<Fills, value, none> missing;

  ROOST_FN void operator()(std::size_t number) const {
    const std::size_t i = number / pieces::count, piece = number % pieces::count;
    const bool is_here = slots[i] != Ref::no_slot;
    if (here != nullptr && piece == 0) here[i] = is_here;
    if (is_here) {
      pieces::copy(ref.value_address(slots[i]), results + i, piece);
    } else if constexpr (Fills) {
      pieces::copy(&missing, results + i, piece);
    }
  }
};

/// Whether an answer changes the table that is queried.
template <class Answer>
constexpr bool changes = requires { requires Answer::changes; };

/// The answer to one query.
template <class Table, class Query, class Answer>
ROOST_FN typename Answer::result answer_one(const Table& table, const Query& query, const Answer& answer) {
  if constexpr (changes<Answer>) {
    return answer(table, query);
  } else if constexpr (has_steps<Table>) {
    return answer.of(probe(table, query));
  } else if constexpr (std::is_same_v<Answer, write_contained>) {
    return table.contains(query);
  } else {
    return answer.of(table.find(query));
  }
}

/// The driver for a tile: of queries by region, or of direct queries of a table that does not fit in the
/// cache.
template <class Place, class Table, class Answer, bool ByRegion>
constexpr driver driver_for = [] {
  if constexpr (changes<Answer> || !has_steps<Table>) {
    return driver::one_by_one;
  } else if constexpr (find_tuning<Place>::defers) {
    return Table::drivers.defers ? driver::deferred : driver::one_by_one;
  } else {
    return (ByRegion ? Table::drivers.interleaves_by_region : Table::drivers.interleaves_directly)
               ? driver::interleaved
               : driver::one_by_one;
  }
}();

/// The same for direct lookups in a table that fits in the cache.
template <class Place, class Table, class Answer>
constexpr driver driver_in_cache =
    !changes<Answer> && has_steps<Table> && find_tuning<Place>::defers ? driver::deferred
                                                                       : driver::one_by_one;

/// Whether lookups of a tile use the format that the table chose. Others are the same by region and directly,
/// and are compiled once.
template <driver Driver, bool ByRegion>
constexpr bool takes_format = ByRegion && Driver == driver::interleaved;

/// What the deferred driver needs: room for the queries of a tile, and whether the table is in the cache, so
/// that it need not prefetch. The other drivers need nothing, and get nothing: nvcc 13 would keep it.
template <class Key>
struct deferral {
  deferred_query<Key>* room;
  bool in_cache;
};
template <driver Driver, class Key>
ROOST_FN auto deferral_of([[maybe_unused]] deferred_query<Key>* room, [[maybe_unused]] bool in_cache) {
  if constexpr (Driver == driver::deferred) {
    return deferral<Key>{room, in_cache};
  } else {
    return none();
  }
}

/// put(i, answer) for the queries of a tile, by a team. A host thread prefetches memory for later queries.
template <class Place, driver Driver, bool TakesFormat, class Team, class Table, class Queries, class Answer,
          class Deferral, class Put>
ROOST_FN void answer_tile(const Team& team, const Table& table, const query_tile<Queries>& tile,
                          const Answer& answer, [[maybe_unused]] const Deferral& deferral, const Put& put) {
  constexpr std::uint32_t ahead = find_tuning<Place>::ahead;
  if constexpr (Driver == driver::one_by_one) {
    for_each_of(team, tile.n, [&](std::uint32_t i) {
      if constexpr (ahead != 0) {
        if (i + ahead < tile.n) table.prefetch(key_of_query(tile.queries[tile.first + i + ahead]));
      }
      // A copy: changes might change what a reference shows.
      const std::remove_cvref_t<decltype(tile.queries[0])> query = tile.queries[tile.first + i];
      put(tile.first + i, answer_one(table, query, answer));
    });
  } else {
    const auto put_hit = [&](std::uint64_t i, const auto& hit) { put(i, answer.of(hit)); };
    const auto interleave = [&](auto format) {
      const auto rank = static_cast<std::uint64_t>(team.rank());
      probe_interleaved(table, format, tile.queries, {tile.first + rank, tile.first + tile.n, Team::size},
                        put_hit);
    };
    if constexpr (Driver == driver::deferred) {
      run_on_host(table, [=, queries = tile.queries](auto format) {
        probe_deferred(table, format, query_tile<Queries>{queries, tile.first, tile.n}, deferral.room,
                       deferral.in_cache ? 0 : ahead,
                       [=](std::uint64_t i, const auto& hit) { put(i, answer.of(hit)); });
      });
    } else if constexpr (TakesFormat) {
      table.with_format(interleave);
    } else {
      interleave(typename Table::format_of_neighbours());
    }
  }
}

/// Where the answers to a part of a batch are written; `first`: the number of its first query in the batch.
template <class Answer>
struct answers_from {
  Answer answer;
  std::size_t first;
  ROOST_FN void put(std::size_t i, const typename Answer::result& result) const {
    answer.put(first + i, result);
  }
};

template <class Result>
struct set_result {
  Result* results;
  ROOST_FN void operator()(std::uint64_t i, const Result& result) const { results[i] = result; }
};

/// What answer_tile calls for a part of a batch. Plain answers of the same result type share one type of
/// function.
template <class Answer>
ROOST_FN auto put_for(const answers_from<Answer>& target) {
  if constexpr (requires { requires Answer::plain; }) {
    return set_result<typename Answer::result>{target.answer.results + target.first};
  } else {
    return [target](std::uint64_t i, const auto& result) { target.put(i, result); };
  }
}

/// The direct path.
template <class Place, class Ref, class Queries, class Answer, driver Driver>
struct probe_tiles {
  static constexpr int threads = find_tuning<cuda>::threads;
  static constexpr int teams_at_once = detail::teams_at_once<Answer>;
  static constexpr std::uint32_t tile = find_tuning<Place>::tile(Driver, false);

  Ref ref;
  Queries queries;
  std::uint64_t count;
  answers_from<Answer> target;
  const std::uint32_t* only_if;  // memory of the place that says whether to run, or null
  std::uint64_t tiles_of_team;
  bool in_cache;

  ROOST_FN auto* scratch(scratch_memory& memory) const {
    return take_deferred<Driver, typename Ref::key_type>(memory, tile);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (only_if != nullptr && *only_if == 0) return;
    scratch_memory pieces(memory);
    auto* const deferred = scratch(pieces);
    for (std::uint64_t t = 0; t < tiles_of_team; ++t) {
      const std::uint64_t first = (index * tiles_of_team + t) * tile;
      if (first >= count) return;
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count - first));
      answer_tile<Place, Driver, takes_format<Driver, false>>(
          team, ref, query_tile<Queries>{queries, first, n}, target.answer,
          deferral_of<Driver>(deferred, in_cache), put_for(target));
    }
  }
};

template <driver Driver, class Place, class Ref, class Queries, class Answer>
void probe_directly(const Place& place, const Ref& ref, const Queries& queries,
                    const answers_from<Answer>& target, const std::uint32_t* only_if = nullptr,
                    bool in_cache = false) {
  using kernel = probe_tiles<Place, Ref, Queries, Answer, Driver>;
  const std::size_t tiles_of_team = only_if == nullptr ? 1 : 64;  // even idle teams cost time
  const kernel run{.ref = ref,
                   .queries = queries,
                   .count = queries.size(),
                   .target = target,
                   .only_if = only_if,
                   .tiles_of_team = tiles_of_team,
                   .in_cache = in_cache};
  place.launch(ceil_div<std::size_t>(queries.size(), kernel::tile * tiles_of_team), scratch_bytes_of(run),
               run);
}

/// Partitioned queries: pairs without values.
template <class Query>
ROOST_FN sequence<const Query*> queries_of_items(const pair<Query, none>* items) {
  static_assert(sizeof(*items) == sizeof(Query));
  return {reinterpret_cast<const Query*>(items), 0};
}

/// The regions of operations.
template <class Order>
struct order_of_operations {
  Order order;
  template <class Operation>
  ROOST_FN auto operator()(const Operation& operation) const {
    return order(operation.key);
  }
};

/// The regions of queries: those of keys are the same for every batch of keys, so that their partition is
/// compiled once.
template <class Query, class Order>
auto order_of_queries(const Order& order) {
  if constexpr (requires { typename Query::operation_value; }) {
    return order_of_operations<Order>{order};
  } else {
    return order;
  }
}

/// Queries of some regions: their position after a partition, and the target of their answers.
template <class Query, class Result>
struct queries_by_region {
  const pair<Query, none>* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  Result* answers;
};

/// The regional path: answers partitioned queries in place, one region after another. The queries of a region
/// may be in several batches, one from each shard: these are answered consecutively, so that they find the
/// region's part of the table in the cache.
template <class Place, class Ref, class Query, class Answer, std::uint32_t BatchesMost = 1>
struct probe_region_tiles {
  static constexpr driver chosen = driver_for<Place, Ref, Answer, true>;
  static constexpr int threads = find_tuning<cuda>::threads;
  static constexpr int teams_at_once = detail::teams_at_once<Answer>;
  static constexpr std::uint32_t tile = find_tuning<Place>::tile(chosen, true);
  static constexpr std::uint32_t batches_most = BatchesMost;
  using batch = queries_by_region<Query, typename Answer::result>;

  Ref ref;
  Answer answer;
  const std::uint32_t* unless;
  std::uint64_t tiles_of_region;  // of each batch
  std::uint32_t count;            // of batches
  batch batches[BatchesMost];

  ROOST_FN auto* scratch(scratch_memory& memory) const {
    return take_deferred<chosen, typename Ref::key_type>(memory, tile);
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (*unless != 0) return;
    const std::size_t of_batch = index / tiles_of_region, region = of_batch / count;
    batch mine = batches[0];
    ROOST_UNROLL
    for (std::uint32_t b = 1; b < BatchesMost; ++b) {  // an index would put them all into local memory
      if (of_batch - region * count == b) mine = batches[b];
    }
    const std::uint64_t first = mine.begins[region] + index % tiles_of_region * tile;
    if (first >= mine.ends[region]) return;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, mine.ends[region] - first));
    scratch_memory pieces(memory);
    answer_tile<Place, chosen, takes_format<chosen, true>>(
        team, ref, query_tile<sequence<const Query*>>{queries_of_items(mine.items), first, n}, answer,
        deferral_of<chosen>(scratch(pieces), false), set_result<typename Answer::result>{mine.answers});
  }
};

/// Tables whose buckets are in hash order: the leading bits of a query's hash determine which part of memory
/// it reads.
template <class Ref>
concept in_hash_order = requires(const Ref& ref) { ref.hash_order(2u); };

inline bool asks_for_regions(path wanted) { return wanted == path::regional || wanted == path::streamed; }
/// Whether a batch goes by region. `pays`: that is faster.
inline bool goes_by_region(path wanted, bool pays) {
  return asks_for_regions(wanted) || (wanted == path::automatic && pays);
}

/// Whether the regional path is faster, in chunks of the usual size.
template <class Place, class Ref>
bool by_region_pays(std::size_t table_bytes, std::size_t queries) {
  using tuned = find_tuning<Place>;
  constexpr int sector_bytes = [] {
    if constexpr (requires { Ref::sector_bytes; }) return Ref::sector_bytes;
    return 0;
  }();
  const std::size_t at_once = smaller<std::size_t>(queries, tuned::scratch_bytes / 16);
  return in_hash_order<Ref> && tuned::by_region(table_bytes, at_once, sector_bytes);
}

/// The plan of a batch by region: the number of regions, and the number of items at once.
struct regional_plan {
  std::uint32_t regions;
  std::size_t chunk;
};

/// In chunks of equal size.
template <class Place>
regional_plan plan_chunks(std::uint32_t regions, std::size_t n, std::size_t bytes_of_item,
                          std::size_t scratch_bytes_most) {
  const std::size_t fit =
      larger<std::size_t>(scratch_bytes_most / bytes_of_item, find_tuning<Place>::chunk_least);
  return {regions, ceil_div(n, ceil_div(n, fit))};
}

/// A batch that is processed over all regions of a table at once.
template <class Place>
struct all_regions {
  static constexpr roost::path path = roost::path::regional;
  std::uint32_t arrays = 1;  // that each lookup reads from, one after the other

  template <class Ref>
  bool pays(std::size_t table_bytes, std::size_t n) const {
    return by_region_pays<Place, Ref>(table_bytes, n);
  }
  regional_plan plan(std::size_t table_bytes, std::size_t n, std::size_t bytes_of_item,
                     const bulk_options& options) const {
    using tuned = find_tuning<Place>;
    const std::size_t windows = ceil_div(arrays * table_bytes, tuned::window_bytes);
    return plan_chunks<Place>(
        static_cast<std::uint32_t>(std::clamp<std::size_t>(windows, 2, partition_tuning<Place>::digits_most)),
        n, bytes_of_item, options.scratch_bytes_or(tuned::scratch_bytes));
  }
  /// run(ref, first, count) for regions [first, first + count) of the plan.
  template <class Ref, class Run>
  void run(const Ref& ref, std::uint32_t regions, const Run& run) const {
    run(ref, 0u, regions);
  }
};

template <class Ref, class Queries>
struct is_contained {
  Ref ref;
  Queries queries;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return ref.contains(queries[i]) ? 1 : 0; }
};

/// Memory that a call writes to: contiguous, of elements T, room for n.
template <class T, class Range>
T* output(Range&& range, std::size_t n, const char* where) {
  static_assert(has_a_size<Range>());
  static_assert(is_contiguous<std::remove_reference_t<Range>>,
                "results go to contiguous memory of the place: a span, a vector, a roost::array");
  static_assert(std::is_same_v<T*, decltype(data_of(range))>,
                "results must have exactly the element type that the table returns");
  if (std::ranges::size(range) < n) {
    detail::raise<invalid_argument>(
        {where, ": room for ", std::ranges::size(range), " results, ", n, " needed"});
  }
  return data_of(range);
}

/// Bulk lookups in a table of `table_bytes` bytes. Each chooses its path, and takes it. `where`: the call,
/// for what it throws.
template <class Place, class Ref, class Regions = all_regions<Place>>
class bulk_lookups {
 public:
  bulk_lookups(const Place& place, const Ref& ref, std::size_t table_bytes, const bulk_options& how = {},
               Regions regions = {})
      : place_(place), ref_(ref), table_bytes_(table_bytes), how_(how), regions_(std::move(regions)) {}

  /// Gives every query its answer.
  template <class Queries, class Answer>
  bulk_report answer(const Queries& queries, const Answer& answer) const {
    using query = element_of<Queries>;
    const std::size_t n = queries.size();
    if constexpr (in_hash_order<Ref>) {
      if (n != 0 && goes_by_region(how_.path, regions_.template pays<Ref>(table_bytes_, n))) {
        // Two bytes more to restore the input order, and two of slack.
        constexpr std::size_t bytes_of_query = sizeof(query) + sizeof(typename Answer::result) + 4;
        const regional_plan plan = regions_.plan(table_bytes_, n, bytes_of_query, how_);
        bulk_report report{regions_.path};
        std::size_t first = 0;
        bool begun = false;
        try {
          for (; first < n; first += plan.chunk, ++report.chunks) {
            begun = false;
            const std::size_t bytes =
                answer_by_region(plan.regions, slice(queries, first, smaller(plan.chunk, n - first)),
                                 answers_from<Answer>{answer, first}, begun);
            report.scratch_bytes = larger(report.scratch_bytes, bytes);
          }
          return report;
        } catch (const out_of_memory&) {
          // The automatic choice falls back to the direct path, which needs no memory, if no change has
          // begun.
          if (asks_for_regions(how_.path) || (changes<Answer> && begun)) throw;
          answer_directly(slice(queries, first, n - first), answers_from<Answer>{answer, first});
          return {path::direct, report.chunks + 1, report.scratch_bytes};
        }
      }
    }
    answer_directly(slice(queries, 0, n), answers_from<Answer>{answer, 0});
    return {path::direct, 1, 0};
  }

  template <class Queries, class Results, class Value>
  bulk_report find_values(const Queries& queries, Results&& results, const Value& missing,
                          const char* where) const {
    const auto sequence = sequence_as<typename Ref::key_type>(queries);
    Value* const target = output<Value>(results, sequence.size(), where);
    if constexpr (has_large_values<Ref>) {
      return find_large_values(sequence,
                               copy_value_of_slot<Ref, true>{ref_, nullptr, target, nullptr, missing});
    } else {
      return answer(sequence, write_value<Value>{target, missing});
    }
  }

  template <class Queries, class Results, class Found>
  bulk_report find_values_there(const Queries& queries, Results&& results, Found&& found,
                                const char* where) const {
    using value = typename Ref::value_type;
    const auto sequence = sequence_as<typename Ref::key_type>(queries);
    value* const target = output<value>(results, sequence.size(), where);
    bool* const here = output<bool>(found, sequence.size(), where);
    if constexpr (has_large_values<Ref>) {
      return find_large_values(sequence, copy_value_of_slot<Ref, false>{ref_, nullptr, target, here, {}});
    } else {
      return answer(sequence, write_value_and_found<value>{target, here});
    }
  }

  template <class Queries, class Results>
  bulk_report find_contained(const Queries& queries, Results&& results, const char* where) const {
    const auto sequence = sequence_as<typename Ref::key_type>(queries);
    return answer(sequence, write_contained{output<bool>(results, sequence.size(), where)});
  }

  /// The number of queries whose key is present. By region it needs memory for each answer; without such
  /// memory it takes the direct path.
  template <class Queries>
  std::size_t count(const Queries& queries) const {
    const auto sequence = sequence_as<typename Ref::key_type>(queries);
    const std::size_t n = sequence.size();
    if (goes_by_region(how_.path, regions_.template pays<Ref>(table_bytes_, n))) {
      try {
        array<bool, Place> answers(place_, n);
        answer(sequence, write_contained{answers.data()});
        return place_.sum(n, is_value<bool>{answers.data(), true});
      } catch (const out_of_memory&) {
      }
    }
    return place_.sum(n, is_contained<Ref, std::remove_const_t<decltype(sequence)>>{ref_, sequence});
  }

 private:
  template <class Queries, class Answer>
  void answer_directly(const Queries& queries, const answers_from<Answer>& target) const {
    constexpr driver large = driver_for<Place, Ref, Answer, false>,
                     small = driver_in_cache<Place, Ref, Answer>;
    const bool in_cache = table_bytes_ < find_tuning<Place>::cache_bytes;
    if constexpr (small != large) {
      if (in_cache) return probe_directly<small>(place_, ref_, queries, target, nullptr, true);
    }
    probe_directly<large>(place_, ref_, queries, target, nullptr, in_cache);
  }

  /// Returns the bytes of scratch. `begun`: set when the first query is answered. Many queries of a few keys
  /// may overflow the room of their regions: the device detects this, and takes the direct path.
  template <class Queries, class Answer>
  std::size_t answer_by_region(std::uint32_t regions, const Queries& queries,
                               const answers_from<Answer>& target, bool& begun) const {
    using query = element_of<Queries>;
    constexpr partition_kind kind{.way_back = true, .one_pass = true, .may_count = false};
    auto overflowed = zeros<std::uint32_t>(place_, 1);
    const double mean = static_cast<double>(queries.size()) / regions;
    partitioner<Place, pair<query, none>, kind> partitioner(
        place_, regions,
        {.room = room::slack, .overflowed = overflowed.data(), .copies = copies_in_an_eighth(mean)});
    const auto parts =
        partitioner.run(alone<Queries>{queries}, order_of_queries<query>(ref_.hash_order(regions)));
    array<typename Answer::result, Place> answers(place_, parts.extent());
    using kernel = probe_region_tiles<Place, Ref, query, Answer>;
    const std::size_t tiles = ceil_div<std::size_t>(parts.extent() / regions, kernel::tile);
    begun = true;
    regions_.run(ref_, regions, [&](const Ref& here, std::uint32_t first, std::uint32_t count) {
      const kernel run{here,
                       target.answer,
                       overflowed.data(),
                       tiles,
                       1,
                       {{parts.items(), parts.begins() + first, parts.ends() + first, answers.data()}}};
      place_.launch(tiles * count, scratch_bytes_of(run), run);
    });
    parts.template restore_each<true>(place_, answers.data(), target, overflowed.data());
    probe_directly<find_tuning<Place>::defers ? driver_for<Place, Ref, Answer, false> : driver::one_by_one>(
        place_, ref_, queries, target, overflowed.data());
    return parts.scratch_bytes() + answers.bytes();
  }

  /// Finds slots, then copies their values.
  template <class Queries, class Copy>
  bulk_report find_large_values(const Queries& queries, Copy copy) const {
    array<std::uint64_t, Place> slots(place_, queries.size());
    bulk_report report = answer(queries, write_slot{slots.data()});
    copy.slots = slots.data();
    place_.for_each(queries.size() * Copy::pieces::count, copy);
    report.scratch_bytes += slots.bytes();
    return report;
  }

  const Place& place_;
  const Ref ref_;
  std::size_t table_bytes_;
  bulk_options how_;
  Regions regions_;
};

// Lookups in an empty table.

template <class Key, class Place, class Queries, class Results, class Value>
bulk_report find_no_values(const Place& place, const Queries& queries, Results&& results,
                           const Value& missing, const char* where) {
  const std::size_t n = sequence_as<Key>(queries).size();
  write_numbers(place, n, constant<Value>{missing}, output<Value>(results, n, where));
  return {path::direct, 1, 0};
}

template <class Key, class Place, class Queries, class Found>
bulk_report find_nothing(const Place& place, const Queries& queries, Found&& found, const char* where) {
  const std::size_t n = sequence_as<Key>(queries).size();
  place.fill(output<bool>(found, n, where), 0, n);
  return {path::direct, 1, 0};
}

}  // namespace roost::detail
