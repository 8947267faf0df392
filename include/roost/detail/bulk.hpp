#pragma once

#include <span>

#include "roost/bulk.hpp"
#include "roost/detail/atomic.hpp"
#include "roost/partition.hpp"

// Bulk lookups, the same for every table with a ref: direct, or by region.

namespace roost::detail {

/// What a batch asks: keys, or operations.
template <class Key, class Queries>
struct query_of {
  using type = Key;
};
template <class Key, class Queries>
requires requires { typename element_of<Queries>::operation_value; }
struct query_of<Key, Queries> {
  using type = element_of<Queries>;
};

/// The key of a query.
template <class Query>
ROOST_FN const auto& key_of_query(const Query& query) {
  if constexpr (requires { typename Query::operation_value; }) {
    return query.key;
  } else {
    return query;
  }
}

// What a lookup answers: operator() asks a table, put() writes to the user's memory.

template <class Value>
struct write_value {
  using result = Value;
  Value* results;
  Value missing;
  template <class Ref, class Key>
  ROOST_FN result operator()(const Ref& ref, const Key& key) const {
    return of(ref.find(key));
  }
  ROOST_FN result of(const found<Value>& answer) const { return answer.value_or(missing); }
  ROOST_FN void put(std::size_t i, const result& answer) const { results[i] = answer; }
};

template <class Value>
struct write_value_and_found {
  using result = found<Value>;
  Value* results;
  bool* here;
  template <class Ref, class Key>
  ROOST_FN result operator()(const Ref& ref, const Key& key) const {
    return ref.find(key);
  }
  ROOST_FN result of(const found<Value>& answer) const { return answer; }
  ROOST_FN void put(std::size_t i, const result& answer) const {
    here[i] = answer.has_value();
    if (answer) results[i] = *answer;
  }
};

struct write_contained {
  using result = bool;
  bool* results;
  template <class Ref, class Key>
  ROOST_FN result operator()(const Ref& ref, const Key& key) const {
    return ref.contains(key);
  }
  template <class Value>
  ROOST_FN result of(const found<Value>& answer) const {
    return answer.has_value();
  }
  ROOST_FN void put(std::size_t i, result answer) const { results[i] = answer; }
};

/// Tables whose lookups read one piece of memory most times.
template <class Ref>
concept has_homes =
    requires(const Ref& ref, const typename Ref::key_type& key, found<typename Ref::value_type>& answer) { ref.find_at_home(key, answer); };

/// What asks a table for values only. (Others change it.)
template <class Answer, class Ref>
concept looks_up = requires(const Answer& answer) { answer.of(found<typename Ref::value_type>()); };

/// Whether teams of a place look up in one loop over all reads of their queries.
template <class Place, class Ref, class Answer>
constexpr bool finds_each = [] {
  if constexpr (looks_up<Answer, Ref> && requires { Ref::reads_whole; }) {
    return Ref::reads_whole && !tuning<Place>::find_waits;
  } else {
    return false;
  }
}();

/// The same for queries in any order, of a table that the cache does not hold.
template <class Place, class Ref, class Answer>
constexpr bool finds_each_directly = [] {
  if constexpr (requires { Ref::reads_in_pairs; }) {
    return Ref::reads_in_pairs && finds_each<Place, Ref, Answer>;
  } else {
    return false;
  }
}();

/// Lookups of a tile that one look did not answer.
struct waiting_queries {
  std::uint32_t* count;
  std::uint16_t* number;  // of each, in the tile

  template <class Place, class Ref, class Answer>
  static constexpr bool useful = tuning<Place>::find_waits && has_homes<Ref> && looks_up<Answer, Ref>;

  template <class Place, class Ref, class Answer>
  ROOST_FN static waiting_queries take(scratch_memory& memory, std::uint32_t tile) {
    if constexpr (!useful<Place, Ref, Answer>) return {};
    return {memory.take<std::uint32_t>(1), memory.take<std::uint16_t>(tile)};
  }
};

/// put(i, answer) for keys[first ... first + n) on a team. Most lookups end where they begin; the others wait until all have begun, while what they
/// read next is on its way. A host thread has the memory of later ones fetched, too.
template <class Place, class Team, class Ref, class Keys, class Answer, class Put>
ROOST_FN void probe_tile(const Team& team, const Ref& ref, const Keys& keys, std::uint64_t first, std::uint32_t n, const Answer& answer,
                         const Put& put, [[maybe_unused]] const waiting_queries& waiting) {
  constexpr std::uint32_t ahead = tuning<Place>::find_ahead;
  constexpr bool waits = waiting_queries::useful<Place, Ref, Answer>;
  if constexpr (waits) {
    if (team.rank() == 0) *waiting.count = 0;
    team.sync();
  }
  for_each_of(team, n, [&](std::uint32_t i) {
    if constexpr (ahead != 0) {
      if (i + ahead < n) ref.prefetch(key_of_query(keys[first + i + ahead]));
    }
    if constexpr (waits) {
      found<typename Ref::value_type> here;
      if (ref.find_at_home(keys[first + i], here)) return put(first + i, answer.of(here));
      waiting.number[team.fetch_add(*waiting.count, 1u)] = static_cast<std::uint16_t>(i);
    } else {
      put(first + i, answer(ref, keys[first + i]));
    }
  });
  if constexpr (waits) {
    team.sync();
    for_each_of(team, *waiting.count, [&](std::uint32_t w) {
      const std::uint64_t i = first + waiting.number[w];
      put(i, answer(ref, keys[i]));
    });
    team.sync();
  }
}

/// Queries [first, first + count) of a batch, and where their answers go.
template <class Query, class Queries, class Answer>
struct chunk_of {
  using query = Query;
  Queries queries;
  Answer answer;
  std::size_t first, count;

  std::size_t size() const { return count; }
  ROOST_FN Query operator[](std::size_t i) const { return queries[first + i]; }
  ROOST_FN void put(std::size_t i, const typename Answer::result& result) const { answer.put(first + i, result); }
};

/// How many teams a multiprocessor should run at once, where an answer says it.
template <class Answer>
constexpr int teams_at_once_for = [] {
  if constexpr (requires { Answer::teams_at_once; }) {
    return Answer::teams_at_once;
  } else {
    return 1;
  }
}();

/// The direct way.
template <class Place, class Ref, class Chunk, bool Each>
struct probe_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr int teams_at_once = teams_at_once_for<decltype(Chunk::answer)>;
  static constexpr std::uint32_t tile = Each ? tuning<Place>::find_pairs_tile : tuning<Place>::find_tile;

  Ref ref;
  Chunk chunk;
  const std::uint32_t* only_if;  // memory of the place that says whether to run, or null
  std::uint64_t tiles_of_team;

  ROOST_FN waiting_queries scratch(scratch_memory& memory) const { return waiting_queries::take<Place, Ref, decltype(Chunk::answer)>(memory, tile); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (only_if != nullptr && *only_if == 0) return;
    for (std::uint64_t t = 0; t < tiles_of_team; ++t) {
      const std::uint64_t first = (index * tiles_of_team + t) * tile;
      if (first >= chunk.count) return;
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, chunk.count - first));
      if constexpr (Each) {
        ref.template find_each<paired_access>(chunk, first + static_cast<std::uint64_t>(team.rank()), first + n, Team::size,
                                              [&](std::uint64_t i, const auto& found) { chunk.put(i, chunk.answer.of(found)); });
      } else {
        scratch_memory pieces(memory);
        probe_tile<Place>(team, ref, chunk, first, n, chunk.answer, [&](std::uint64_t i, const auto& result) { chunk.put(i, result); }, scratch(pieces));
      }
    }
  }
};

template <bool Each = false, class Place, class Ref, class Chunk>
void probe_directly(const Place& place, const Ref& ref, const Chunk& chunk, const std::uint32_t* only_if) {
  using kernel = probe_tiles<Place, Ref, Chunk, Each>;
  const std::size_t tiles_of_team = only_if == nullptr ? 1 : 64;  // teams that do nothing cost time, too
  const kernel run{ref, chunk, only_if, tiles_of_team};
  place.launch(ceil_div<std::size_t>(chunk.count, kernel::tile * tiles_of_team), scratch_bytes_of(run), run);
}

/// Partitioned queries.
template <class Query>
struct queries_of_items {
  const pair<Query, none>* items;
  ROOST_FN const Query& operator[](std::size_t i) const { return items[i].key; }
};

/// The regions of queries.
template <class Order>
struct order_of_queries {
  Order order;
  template <class Query>
  ROOST_FN auto operator()(const Query& query) const {
    return order(key_of_query(query));
  }
};

/// The regional way: answers the partitioned queries where they lie, region after region.
template <class Place, class Ref, class Query, class Answer>
struct probe_region_tiles {
  static constexpr int threads = tuning<cuda>::find_threads;
  static constexpr int teams_at_once = teams_at_once_for<Answer>;
  static constexpr std::uint32_t tile = finds_each<Place, Ref, Answer> ? tuning<Place>::find_each_tile : tuning<Place>::find_region_tile;

  Ref ref;
  queries_of_items<Query> queries;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint64_t tiles_of_region;
  Answer answer;
  typename Answer::result* answers;
  const std::uint32_t* unless;

  ROOST_FN waiting_queries scratch(scratch_memory& memory) const { return waiting_queries::take<Place, Ref, Answer>(memory, tile); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (*unless != 0) return;
    const std::size_t region = index / tiles_of_region;
    const std::uint64_t first = begins[region] + index % tiles_of_region * tile;
    if (first >= ends[region]) return;
    const std::uint64_t end = smaller(first + tile, ends[region]);
    if constexpr (finds_each<Place, Ref, Answer>) {
      ref.find_each(queries, first + static_cast<std::uint64_t>(team.rank()), end, Team::size,
                    [&](std::uint64_t i, const auto& found) { answers[i] = answer.of(found); });
    } else {
      scratch_memory pieces(memory);
      probe_tile<Place>(team, ref, queries, first, static_cast<std::uint32_t>(end - first), answer,
                        [&](std::uint64_t i, const auto& result) { answers[i] = result; }, scratch(pieces));
    }
  }
};

/// Tables whose buckets stand in the order of their keys' hashes: the leading bits of a query's hash tell where in memory it will look.
template <class Ref>
concept in_hash_order = requires(const Ref& ref) { ref.hash_order(2u); };

inline bool asks_for_regions(path way) { return way == path::regional || way == path::streamed; }

/// Whether the regional way is the faster one.
template <class Place, class Ref>
bool by_region_pays(std::size_t table_bytes, std::size_t queries) {
  return in_hash_order<Ref> && table_bytes >= tuning<Place>::regional_table_bytes && queries >= tuning<Place>::regional_queries;
}

/// How a batch goes by region: into how many, and how many items at once.
struct regional_plan {
  std::uint32_t regions;
  std::size_t chunk;
};

/// In chunks of equal size.
template <class Place>
regional_plan plan_chunks(std::uint32_t regions, std::size_t n, std::size_t bytes_of_item, std::size_t scratch_bytes_most) {
  const std::size_t fit = larger<std::size_t>(scratch_bytes_most / bytes_of_item, tuning<Place>::regional_chunk_least);
  return {regions, ceil_div(n, ceil_div(n, fit))};
}

/// A batch that goes through all regions of a table at once.
template <class Place>
struct all_regions {
  static constexpr path way = path::regional;

  template <class Ref>
  bool pays(std::size_t table_bytes, std::size_t n) const {
    return by_region_pays<Place, Ref>(table_bytes, n);
  }
  regional_plan plan(std::size_t table_bytes, std::size_t n, std::size_t bytes_of_item, const bulk_options& options) const {
    using tuned = tuning<Place>;
    const std::size_t windows = ceil_div(table_bytes, tuned::regional_window_bytes);
    return plan_chunks<Place>(static_cast<std::uint32_t>(std::clamp<std::size_t>(windows, 2, tuned::digits_most)), n, bytes_of_item,
                              options.scratch_bytes_or(tuned::regional_scratch_bytes));
  }
  /// run(ref, first, count) for regions [first, first + count) of the plan.
  template <class Ref, class Run>
  void run(const Ref& ref, std::uint32_t regions, const Run& run) const {
    run(ref, 0u, regions);
  }
};

/// Answers a chunk by region; returns the bytes of scratch. `begun`: set when the first query is. Queries of few keys may overflow the room
/// that their regions have: the device sees it, and goes direct.
template <class Place, class Ref, class Chunk, class Way>
std::size_t probe_by_region(const Place& place, const Ref& ref, std::uint32_t regions, const Chunk& chunk, const Way& way,
                            bool& begun) {
  using answer = decltype(chunk.answer);
  using query = typename Chunk::query;
  array<std::uint32_t, Place> overflowed(place, 1);
  place.fill(overflowed.data(), 0, overflowed.bytes());
  partitioner<Place, pair<query, none>> partitioner(place, regions, room::slack, true, overflowed.data());
  const auto parts = partitioner.run(alone<Chunk>{chunk}, order_of_queries<decltype(ref.hash_order(regions))>{ref.hash_order(regions)});
  array<typename answer::result, Place> answers(place, parts.extent());
  using kernel = probe_region_tiles<Place, Ref, query, answer>;
  const std::size_t tiles = ceil_div<std::size_t>(parts.extent() / regions, kernel::tile);
  begun = true;
  way.run(ref, regions, [&](const Ref& here, std::uint32_t first, std::uint32_t count) {
    const kernel run{here,  {parts.items()}, parts.begins() + first, parts.ends() + first, tiles, chunk.answer, answers.data(), overflowed.data()};
    place.launch(tiles * count, scratch_bytes_of(run), run);
  });
  parts.restore_each(place, answers.data(), chunk, overflowed.data());
  probe_directly(place, ref, chunk, overflowed.data());
  return parts.scratch_bytes() + answers.bytes();
}

/// The direct way for a table of so many bytes.
template <class Place, class Ref, class Chunk>
void probe_directly(const Place& place, const Ref& ref, std::size_t table_bytes, const Chunk& chunk) {
  if constexpr (finds_each_directly<Place, Ref, decltype(chunk.answer)>) {
    if (table_bytes >= tuning<Place>::regional_table_bytes) return probe_directly<true>(place, ref, chunk, nullptr);
  }
  probe_directly(place, ref, chunk, nullptr);
}

/// Every bulk lookup: chooses the way, and goes it.
template <class Place, class Ref, class Queries, class Answer, class Way = all_regions<Place>>
bulk_report probe_all(const Place& place, const Ref& ref, std::size_t table_bytes, const Queries& queries, const Answer& answer,
                      const bulk_options& options, const Way& way = {}) {
  using query = typename query_of<typename Ref::key_type, Queries>::type;
  using chunk = chunk_of<query, Queries, Answer>;
  const std::size_t n = queries.size();
  if constexpr (in_hash_order<Ref>) {
    if (n != 0 && (asks_for_regions(options.path) || (options.path == path::automatic && way.template pays<Ref>(table_bytes, n)))) {
      constexpr std::size_t bytes_of_query = sizeof(query) + sizeof(typename Answer::result) + 4;  // 2 for the way back, and slack
      const regional_plan plan = way.plan(table_bytes, n, bytes_of_query, options);
      bulk_report report{way.way};
      constexpr bool changes = requires { requires Answer::changes; };
      std::size_t first = 0;
      bool begun = false;
      try {
        for (; first < n; first += plan.chunk, ++report.chunks) {
          begun = false;
          const std::size_t bytes =
              probe_by_region(place, ref, plan.regions, chunk{queries, answer, first, smaller(plan.chunk, n - first)}, way, begun);
          report.scratch_bytes = larger(report.scratch_bytes, bytes);
        }
        return report;
      } catch (const out_of_memory&) {
        if (asks_for_regions(options.path) || (changes && begun)) throw;  // who leaves the choice to us gets the way that needs no memory
        probe_directly(place, ref, table_bytes, chunk{queries, answer, first, n - first});
        return {path::direct, report.chunks + 1, report.scratch_bytes};
      }
    }
  }
  probe_directly(place, ref, table_bytes, chunk{queries, answer, 0, n});
  return {path::direct, 1, 0};
}

template <class Ref, class Queries>
struct is_contained {
  Ref ref;
  Queries queries;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return ref.contains(queries[i]) ? 1 : 0; }
};

struct is_true {
  const bool* answers;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return answers[i] ? 1 : 0; }
};

/// How many of the queries are there. By region it needs a place for each answer; without memory for them it goes direct.
template <class Place, class Ref, class Queries, class Way = all_regions<Place>>
std::size_t count_all(const Place& place, const Ref& ref, std::size_t table_bytes, const Queries& queries, path asked = path::automatic,
                      const Way& way = {}) {
  const std::size_t n = queries.size();
  if (asks_for_regions(asked) || (asked == path::automatic && way.template pays<Ref>(table_bytes, n))) {
    try {
      array<bool, Place> answers(place, n);
      probe_all(place, ref, table_bytes, queries, write_contained{answers.data()}, {asked}, way);
      return place.sum(n, is_true{answers.data()});
    } catch (const out_of_memory&) {
    }
  }
  return place.sum(n, is_contained<Ref, Queries>{ref, queries});
}

/// Memory that a call writes to: contiguous, of elements T, room for n.
template <class T, class Range>
T* output(Range&& range, std::size_t n, const char* where) {
  static_assert(std::ranges::contiguous_range<Range>, "results go to contiguous memory of the place: a span, a vector, a roost::array");
  static_assert(std::is_same_v<T*, decltype(std::ranges::data(range))>, "results must have exactly the element type that the table returns");
  if (std::ranges::size(range) < n) {
    throw invalid_argument(std::string(where) + ": room for " + std::to_string(std::ranges::size(range)) + " results, " +
                           std::to_string(n) + " needed");
  }
  return std::ranges::data(range);
}

// The lookups of every map. `where`: the call, for what it throws.

template <class Place, class Ref, class Queries, class Results, class Value, class Way = all_regions<Place>>
bulk_report find_values(const Place& place, const Ref& ref, std::size_t table_bytes, const Queries& queries, Results&& results, const Value& missing,
                        const bulk_options& options, const char* where, const Way& way = {}) {
  const auto sequence = as_sequence(queries);
  Value* const to = output<Value>(results, sequence.size(), where);
  return probe_all(place, ref, table_bytes, sequence, write_value<Value>{to, missing}, options, way);
}

template <class Place, class Ref, class Queries, class Results, class Found, class Way = all_regions<Place>>
bulk_report find_values_there(const Place& place, const Ref& ref, std::size_t table_bytes, const Queries& queries, Results&& results, Found&& found,
                              const bulk_options& options, const char* where, const Way& way = {}) {
  using value = typename Ref::value_type;
  const auto sequence = as_sequence(queries);
  value* const to = output<value>(results, sequence.size(), where);
  bool* const here = output<bool>(found, sequence.size(), where);
  return probe_all(place, ref, table_bytes, sequence, write_value_and_found<value>{to, here}, options, way);
}

template <class Place, class Ref, class Queries, class Results, class Way = all_regions<Place>>
bulk_report find_contained(const Place& place, const Ref& ref, std::size_t table_bytes, const Queries& queries, Results&& results,
                           const bulk_options& options, const char* where, const Way& way = {}) {
  const auto sequence = as_sequence(queries);
  bool* const to = output<bool>(results, sequence.size(), where);
  return probe_all(place, ref, table_bytes, sequence, write_contained{to}, options, way);
}

/// The keys of a range, as pairs without values.
template <class Keys>
auto alone_of(const Keys& keys) {
  return alone<sequence_of<Keys>>{as_sequence(keys)};
}

/// The pairs of two ranges that are equally long.
template <class Keys, class Values>
auto zip_checked(const Keys& keys, const Values& values, const char* where) {
  const zipped<sequence_of<Keys>, sequence_of<Values>> source{as_sequence(keys), as_sequence(values)};
  if (source.keys.size() != source.values.size()) {
    throw invalid_argument(std::string(where) + ": " + std::to_string(source.keys.size()) + " keys but " + std::to_string(source.values.size()) +
                           " values; give one value a key");
  }
  return source;
}

}  // namespace roost::detail
