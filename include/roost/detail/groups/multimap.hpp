#pragma once

// Lookups of a frozen_multimap: runs of values, their counts, and the matches of a batch.

#include <limits>
#include <tuple>

#include "roost/detail/groups/grouping.hpp"

namespace roost::detail {

/// Where a query's values are: the first value and the count, in one word, since lookups by region move it
/// several times. A count that is too large for its bits is read from the offsets again. A small single value
/// is stored in the word itself, since its neighbours are in the cache when the lookup reads it.
struct run_word {
  static constexpr int count_bits = 24;
  static constexpr std::uint64_t many = (std::uint64_t{1} << count_bits) - 1;
  static constexpr std::uint64_t pairs_most = std::uint64_t{1} << (64 - count_bits);
  template <class Value>
  static constexpr bool holds = sizeof(Value) <= 4;

  ROOST_FN static std::uint64_t make(std::uint64_t first, std::uint64_t count) {
    return first << count_bits | smaller(count, many);
  }
  ROOST_FN static std::uint64_t first(std::uint64_t word) { return word >> count_bits; }
  template <class Value>
  ROOST_FN static std::uint64_t of_run(const Value* values, std::uint64_t first, std::uint64_t count) {
    if constexpr (holds<Value>) {
      if (count == 1) {
        std::uint64_t bits = 0;
        memcpy(&bits, values + first, sizeof(Value));
        return make(bits, 1);
      }
    }
    return make(first, count);
  }
  /// Value k of a run that is not empty.
  template <class Value>
  ROOST_FN static Value value(std::uint64_t word, const Value* values, std::uint64_t k) {
    if constexpr (holds<Value>) {
      if ((word & many) == 1) {
        const std::uint64_t bits = first(word);
        Value result;
        memcpy(&result, &bits, sizeof(Value));
        return result;
      }
    }
    return values[first(word) + k];
  }
  ROOST_FN static std::uint64_t count(std::uint64_t word, const std::uint64_t* offsets, std::uint64_t keys) {
    const std::uint64_t count = word & many;
    return count != many ? count : many_of(first(word), offsets, keys);
  }
  ROOST_RARE_FN static std::uint64_t many_of(std::uint64_t first, const std::uint64_t* offsets,
                                             std::uint64_t keys) {
    const std::uint64_t run = last_at_or_before(std::uint64_t{0}, keys, offsets,
                                                first);  // no run is empty, so offsets ascend strictly
    return offsets[run + 1] - first;
  }
};

/// Turns the number of a key into an answer about its values: Answer has of_run(first value, count).
/// `offsets` may be null if each key has one value.
template <class Answer>
struct answer_of_run {
  const std::uint64_t* offsets;
  ROOST_FN auto of(const found<std::uint32_t>& number) const {
    const Answer& answer = static_cast<const Answer&>(*this);
    if (!number) return answer.of_run(0, 0);
    if (offsets == nullptr) return answer.of_run(*number, 1);
    return answer.of_run(offsets[*number], offsets[*number + 1] - offsets[*number]);
  }
};

template <class Value>
struct write_run : answer_of_run<write_run<Value>> {
  using result = std::uint64_t;
  const Value* values;
  result* runs;
  std::uint32_t* absent;  // becomes 1 if some query has no values; or null
  ROOST_FN result of_run(std::uint64_t first, std::uint64_t count) const {
    return run_word::of_run(values, first, count);
  }
  ROOST_FN void put(std::size_t i, result answer) const {
    runs[i] = answer;
    if (absent != nullptr && (answer & run_word::many) == 0 && peek(*absent) == 0) fetch_or(*absent, 1u);
  }
};

template <class Count>
struct write_count : answer_of_run<write_count<Count>> {
  using result = Count;
  result* counts;
  ROOST_FN result of_run(std::uint64_t, std::uint64_t count) const {
    constexpr std::uint64_t most = std::numeric_limits<Count>::max();
    return static_cast<Count>(smaller(count, most));
  }
  ROOST_FN void put(std::size_t i, result answer) const { counts[i] = answer; }
};

/// The first value of a key. `offsets` may be null if each key has one value.
template <class Value>
struct write_first_value {
  using result = Value;
  const std::uint64_t* offsets;
  const Value* values;
  Value missing;
  result* results;
  ROOST_FN result of(const found<std::uint32_t>& number) const {
    if (!number) return missing;
    return values[offsets == nullptr ? *number : offsets[*number]];
  }
  ROOST_FN void put(std::size_t i, const result& answer) const { results[i] = answer; }
};

/// results[i] = the first value of the key with numbers[i]: for large values.
template <class Value>
struct copy_first_value {
  write_first_value<Value> answer;
  const std::uint32_t* numbers;
  ROOST_FN void operator()(std::size_t i) const {
    const bool there = numbers[i] != ~0u;
    answer.put(i, answer.of(there ? found<std::uint32_t>(numbers[i]) : found<std::uint32_t>()));
  }
};

/// The number of matches of a query. `least`: the count for a query without matches.
struct count_of_run {
  const std::uint64_t* runs;
  const std::uint64_t* offsets;
  std::uint64_t keys;
  std::uint64_t least;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return larger(run_word::count(runs[i], offsets, keys), least);
  }
};

/// What a worker calls instead of a function that has worker(): an object of its own, which may keep what it
/// has seen.
template <class Put>
ROOST_FN decltype(auto) worker_of(const Put& put) {
  if constexpr (requires { put.worker(); }) {
    return put.worker();
  } else {
    return (put);
  }
}

/// put(i, list, k) for element i of all lists together, which is element k of list `list`. List l has
/// elements offsets[l] to offsets[l + 1]. Teams divide the elements evenly, so lists may have any length. A
/// worker calls in ascending order of i.
template <class Place, class Put>
struct expand_tiles {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = group_tuning<Place>::expand_tile;

  const std::uint64_t* offsets;
  std::uint64_t lists;
  std::uint64_t total;
  Put put;

  struct pieces {
    std::uint64_t* edge;   // the lists of the first element and of the last
    std::uint32_t* start;  // of lists edge[0] to edge[1], if few: their first elements in this tile
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const pieces parts = scratch_of(*this, memory);
    const std::uint64_t first = index * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, total - first));
    for_each_of(team, 2, [&](std::uint32_t e) {
      parts.edge[e] = last_at_or_before(std::uint64_t{0}, lists, offsets, first + e * (n - 1));
    });
    team.sync();
    decltype(auto) call = worker_of(put);
    const std::uint64_t low = parts.edge[0], high = parts.edge[1] + 1;
    if constexpr (Team::size == 1) {
      std::uint64_t list = low;
      for (std::uint64_t i = first; i < first + n; ++i) {
        while (offsets[list + 1] <= i) ++list;
        call(i, list, i - offsets[list]);
      }
    } else if (high - low <= tile) {
      const auto count = static_cast<std::uint32_t>(high - low);
      for_each_of(team, count, [&](std::uint32_t l) {
        parts.start[l] = l == 0 ? 0 : static_cast<std::uint32_t>(offsets[low + l] - first);
      });
      const std::uint64_t skipped = first - offsets[low];  // of the first list
      team.sync();
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint32_t l = last_at_or_before(0u, count, parts.start, i);
        call(first + i, low + l, i - parts.start[l] + (l == 0 ? skipped : 0));
      });
    } else {
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint64_t list = last_at_or_before(low, high, offsets, first + i);
        call(first + i, list, first + i - offsets[list]);
      });
    }
  }
};

template <class Place, class Put>
void expand(const Place& place, const std::uint64_t* offsets, std::uint64_t lists, std::uint64_t total,
            const Put& put) {
  using kernel = expand_tiles<Place, Put>;
  const kernel run{offsets, lists, total, put};
  place.launch(ceil_div<std::size_t>(total, kernel::tile), scratch_bytes_of(run), run);
}

/// f(i, query, value) for match i. A query without matches that counts as one has the value `missing`.
template <class Value, class F>
struct with_value_of_match {
  const std::uint64_t* runs;
  const Value* values;
  Value missing;
  F f;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t query, std::uint64_t k) const {
    const std::uint64_t run = runs[query];
    f(i, query, (run & run_word::many) != 0 ? run_word::value(run, values, k) : missing);
  }
};

/// put(match, query, 0) for queries with at most one match. `offsets` may be null if each has one.
template <class Put>
struct put_only_match {
  const std::uint64_t* offsets;
  Put put;
  ROOST_FN void operator()(std::size_t query) const {
    if (offsets == nullptr) return put(query, query, 0);
    if (offsets[query + 1] != offsets[query]) put(offsets[query], query, 0);
  }
};

template <class Value>
struct write_match {
  Value* values;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t, const Value& value) const { values[i] = value; }
};
template <class First, class Second>
struct write_both {
  First* firsts;
  Second* seconds;
  template <class T>
  ROOST_FN void operator()(std::uint64_t i, const T& first, const Second& second) const {
    firsts[i] = static_cast<First>(first);
    seconds[i] = second;
  }
};
template <class F>
struct without_place {
  F f;
  template <class First, class Second>
  ROOST_FN void operator()(std::uint64_t, const First& first, const Second& second) const {
    f(first, second);
  }
};

/// f(i, key, value) for pair i of groups.
template <class Key, class Value, class F>
struct with_pair_of_group {
  const Key* keys;
  const Value* values;
  F f;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t group, std::uint64_t) const {
    f(i, keys[group], values[i]);
  }
};
/// f(key, values, count) for key i.
template <class Key, class Value, class F>
struct with_run {
  const Key* keys;
  const std::uint64_t* offsets;
  Value* values;
  F f;
  ROOST_FN void operator()(std::size_t i) const {
    f(keys[i], values + offsets[i], offsets[i + 1] - offsets[i]);
  }
};

/// For a key whose number is its position, returns the number of its values; for any other key, a number that
/// no sum can hide.
template <class Ref, class Key>
struct good_group {
  Ref numbers;
  const Key* keys;
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t g) const {
    const found<std::uint32_t> number = numbers.find(keys[g]);
    return number && *number == g && offsets[g] < offsets[g + 1] ? offsets[g + 1] - offsets[g]
                                                                 : std::uint64_t{1} << 48;
  }
};

/// Allocates arrays for matches, one of each type; if there is no memory, the exception says how many matches
/// there are. `more`: the bytes of each match that the caller will take besides.
template <class... T, class Place>
std::tuple<array<T, Place>...> room_for_matches(const Place& place, std::uint64_t n, const char* where,
                                                std::size_t more = 0) {
  const std::size_t bytes = (sizeof(T) + ...) + more;
  try {
    place.expect_room(n <= ~std::size_t{0} / bytes ? n * bytes : ~std::size_t{0});
    return {array<T, Place>(place, n)...};
  } catch (const out_of_memory& why) {
    detail::raise<out_of_memory>({where, ": no memory for ", n, " matches of ", bytes,
                                  " bytes; pass fewer queries at once (", why.what(), ")"});
  }
}

}  // namespace roost::detail
