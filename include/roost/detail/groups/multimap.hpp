#pragma once

// Bodies of roost/frozen_multimap.hpp.

#include <limits>
#include <tuple>

#include "roost/frozen_multimap.hpp"

namespace roost {
namespace detail {

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
  /// Value k of a run that has some.
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
  ROOST_FN write_run(const std::uint64_t* of_numbers, const Value* of_map, result* target)
      : answer_of_run<write_run>{of_numbers}, values(of_map), runs(target) {}
  ROOST_FN result of_run(std::uint64_t first, std::uint64_t count) const {
    return run_word::of_run(values, first, count);
  }
  ROOST_FN void put(std::size_t i, result answer) const { runs[i] = answer; }
};

template <class Count>
struct write_count : answer_of_run<write_count<Count>> {
  using result = Count;
  result* counts;
  ROOST_FN write_count(const std::uint64_t* of_numbers, result* target)
      : answer_of_run<write_count>{of_numbers}, counts(target) {}
  ROOST_FN result of_run(std::uint64_t, std::uint64_t count) const {
    constexpr std::uint64_t most =
        static_cast<std::make_unsigned_t<Count>>(~Count{0}) >> (std::is_signed_v<Count> ? 1 : 0);
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

/// results[i] = the first value of the key with numbers[i]: of large values.
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

/// put(i, list, k) for element i of all lists together, which is element k of list `list`. List l has
/// elements offsets[l] to offsets[l + 1]. Teams divide the elements evenly, so lists may have any length.
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
    std::uint32_t* start;  // of for the lists between, if they are few: their first elements in this tile
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    scratch_memory all(memory);
    const pieces parts = scratch(all);
    const std::uint64_t first = index * tile;
    const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, total - first));
    for_each_of(team, 2, [&](std::uint32_t e) {
      parts.edge[e] = last_at_or_before(std::uint64_t{0}, lists, offsets, first + e * (n - 1));
    });
    team.sync();
    const std::uint64_t low = parts.edge[0], high = parts.edge[1] + 1;
    if constexpr (Team::size == 1) {
      std::uint64_t list = low;
      for (std::uint64_t i = first; i < first + n; ++i) {
        while (offsets[list + 1] <= i) ++list;
        put(i, list, i - offsets[list]);
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
        put(first + i, low + l, i - parts.start[l] + (l == 0 ? skipped : 0));
      });
    } else {
      for_each_of(team, n, [&](std::uint32_t i) {
        const std::uint64_t list = last_at_or_before(low, high, offsets, first + i);
        put(first + i, list, first + i - offsets[list]);
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
/// there are.
template <class... T, class Place>
std::tuple<array<T, Place>...> room_for_matches(const Place& place, std::uint64_t n, const char* where) {
  constexpr std::size_t bytes = (sizeof(T) + ...);
  try {
    place.expect_room(n <= ~std::size_t{0} / bytes ? n * bytes : ~std::size_t{0});
    return {array<T, Place>(place, n)...};
  } catch (const out_of_memory& why) {
    detail::raise<out_of_memory>({where, ": no memory for ", n, " matches of ", bytes,
                                  " bytes; pass fewer queries at once (", why.what(), ")"});
  }
}

}  // namespace detail

template <class Value, class Place>
template <class Values>
void multimap_matches<Value, Place>::retrieve(const Place& place, Values&& values) const {
  Value* const target = detail::output<Value>(values, size(), "roost::multimap_matches::retrieve");
  const detail::with_value_of_match<Value, detail::write_match<Value>> put{
      runs_.data(), values_, missing_, {target}};
  detail::expand(place, offsets_.data(), queries(), size(), put);
}

template <class Value, class Place>
template <class Queries, class Values>
void multimap_matches<Value, Place>::retrieve_pairs(const Place& place, Queries&& queries,
                                                    Values&& values) const {
  using query = std::remove_cvref_t<decltype(*detail::data_of(queries))>;
  static_assert(std::is_integral_v<query>, "numbers of queries are integers");
  constexpr const char* where = "roost::multimap_matches::retrieve_pairs";
  if (this->queries() != 0 &&
      this->queries() - 1 > static_cast<std::uint64_t>(std::numeric_limits<query>::max())) {
    detail::raise<invalid_argument>({where, ": the numbers of ", this->queries(), " queries do not fit ",
                                     sizeof(query), " bytes; give larger ones"});
  }
  query* const queries_to = detail::output<query>(queries, size(), where);
  Value* const target = detail::output<Value>(values, size(), where);
  using write = detail::write_both<query, Value>;
  const detail::with_value_of_match<Value, write> put{runs_.data(), values_, missing_,
                                                      write{queries_to, target}};
  detail::expand(place, offsets_.data(), this->queries(), size(), put);
}

template <class Value, class Place>
template <class F>
void multimap_matches<Value, Place>::for_each(const Place& place, const F& f) const {
  using call = detail::without_place<F>;
  const detail::with_value_of_match<Value, call> put{runs_.data(), values_, missing_, call{f}};
  detail::expand(place, offsets_.data(), queries(), size(), put);
}

template <class Key, class Value, class Place>
template <class Source>
auto frozen_multimap<Key, Value, Place>::grouped(const Place& place, const Source& source,
                                                 const options& options) -> groups {
  constexpr const char* where = "roost::frozen_multimap";
  const auto refuse = [](std::size_t n, const char* what, const char* most) {
    detail::raise<invalid_argument>({where, ": ", n, what, "; the most are ", most});
  };
  if (source.size() >= detail::run_word::pairs_most) refuse(source.size(), " pairs", "2^40 - 1");
  groups all = detail::group(place, source, options.seed, true, where);
  if (all.size() > ~std::uint32_t{0}) refuse(all.size(), " different keys", "2^32 - 1");
  return all;
}

template <class Key, class Value, class Place>
frozen_multimap<Key, Value, Place>::frozen_multimap(const Place& place, groups&& all, options chosen)
    : options_(chosen),
      numbers_(detail::map_of_keys<map>(place, all, all.numbered_keys, chosen.load_factor)),
      keys_(std::move(all.keys)),
      offsets_(std::move(all.offsets)),
      values_(std::move(all.values)),
      statistics_(numbers_.statistics()) {
  statistics_.scratch_bytes = detail::larger(statistics_.scratch_bytes, all.scratch_bytes);
  statistics_.duplicates = size() - key_count();
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
frozen_multimap<Key, Value, Place>::frozen_multimap(const Place& place, const Keys& keys,
                                                    const Values& values, options chosen)
    : frozen_multimap(
          place, grouped(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_multimap"), chosen),
          chosen) {}

/// results[i] = the answer to queries[i], which is zeros for absent keys.
template <class Key, class Value, class Place>
template <class Sequence, class Answer>
bulk_report frozen_multimap<Key, Value, Place>::look_up(const Place& place, const Sequence& queries,
                                                        const Answer& answer,
                                                        typename Answer::result* results,
                                                        const bulk_options& how) const {
  if (!empty()) return detail::probe_all(place, numbers_.ref(), numbers_.bytes(), queries, answer, how);
  place.fill(results, 0, queries.size() * sizeof(*results));
  return {path::direct, 1, 0};
}

template <class Key, class Value, class Place>
template <class Sequence>
void frozen_multimap<Key, Value, Place>::look_up_runs(const Place& place, const Sequence& queries,
                                                      array<std::uint64_t, Place>& runs,
                                                      const bulk_options& how) const {
  look_up(place, queries, detail::write_run<Value>(offsets_to_read(), values_.data(), runs.data()),
          runs.data(), how);
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report frozen_multimap<Key, Value, Place>::find_first(const Place& place, const Queries& queries,
                                                           Results&& results, const Value& missing,
                                                           bulk_options how) const {
  constexpr const char* where = "roost::frozen_multimap::find_first";
  if (empty()) return detail::find_no_values<Key>(place, queries, results, missing, where);
  const auto sequence = detail::sequence_as<Key>(queries);
  Value* const target = detail::output<Value>(results, sequence.size(), where);
  const detail::write_first_value<Value> answer{offsets_to_read(), values_.data(), missing, target};
  if constexpr (sizeof(Value) <= 8) {
    return look_up(place, sequence, answer, target, how);
  } else {
    array<std::uint32_t, Place> numbers(place, sequence.size());
    const bulk_report report = numbers_.find(place, queries, numbers, ~std::uint32_t{0}, how);
    place.for_each(numbers.size(), detail::copy_first_value<Value>{answer, numbers.data()});
    return report;
  }
}

template <class Key, class Value, class Place>
template <class Queries, class Counts>
bulk_report frozen_multimap<Key, Value, Place>::count(const Place& place, const Queries& queries,
                                                      Counts&& counts, bulk_options how) const {
  using count_type = std::remove_cvref_t<decltype(*detail::data_of(counts))>;
  static_assert(std::is_integral_v<count_type> && !std::is_same_v<count_type, bool>, "counts are integers");
  const auto sequence = detail::sequence_as<Key>(queries);
  count_type* const target =
      detail::output<count_type>(counts, sequence.size(), "roost::frozen_multimap::count");
  return look_up(place, sequence, detail::write_count<count_type>(offsets_to_read(), target), target, how);
}

template <class Key, class Value, class Place>
template <class Queries>
std::uint64_t frozen_multimap<Key, Value, Place>::count_matches(const Place& place, const Queries& queries,
                                                                bulk_options how) const {
  const auto sequence = detail::sequence_as<Key>(queries);
  array<std::uint64_t, Place> runs(place, sequence.size());
  look_up_runs(place, sequence, runs, how);
  return place.sum(runs.size(), detail::count_of_run{runs.data(), offsets_.data(), key_count(), 0});
}

template <class Key, class Value, class Place>
template <class Queries>
auto frozen_multimap<Key, Value, Place>::match(const Place& place, const Queries& queries,
                                               bulk_options how) const -> matches {
  return match_at_least(place, queries, 0, Value{}, how);
}

template <class Key, class Value, class Place>
template <class Queries>
auto frozen_multimap<Key, Value, Place>::match_outer(const Place& place, const Queries& queries,
                                                     const Value& missing, bulk_options how) const
    -> matches {
  return match_at_least(place, queries, 1, missing, how);
}

template <class Key, class Value, class Place>
template <class Queries>
auto frozen_multimap<Key, Value, Place>::match_at_least(const Place& place, const Queries& queries,
                                                        std::uint64_t least, const Value& missing,
                                                        bulk_options how) const -> matches {
  const auto sequence = detail::sequence_as<Key>(queries);
  const std::size_t n = sequence.size();
  matches result(place, n);
  result.values_ = values_.data();
  result.missing_ = missing;
  look_up_runs(place, sequence, result.runs_, how);
  const detail::count_of_run count{result.runs_.data(), offsets_.data(), key_count(), least};
  std::uint64_t* const offsets = result.offsets_.data();
  place.fill(offsets + n, 0, sizeof(*offsets));
  detail::write_numbers(place, n, count, offsets);
  place.exclusive_scan(offsets, offsets, n + 1);
  place.copy_to_host(&result.size_, offsets + n, sizeof(result.size_));
  return result;
}

template <class Key, class Value, class Place>
template <class Queries>
auto frozen_multimap<Key, Value, Place>::retrieve(const Place& place, const Queries& queries,
                                                  bulk_options how) const -> retrieved {
  matches found = match(place, queries, how);
  auto [values] = detail::room_for_matches<Value>(place, found.size(), "roost::frozen_multimap::retrieve");
  found.retrieve(place, values);
  place.synchronize();
  return {std::move(found.offsets_), std::move(values)};
}

template <class Key, class Value, class Place>
template <class Queries>
auto frozen_multimap<Key, Value, Place>::retrieve_pairs(const Place& place, const Queries& queries,
                                                        bulk_options how) const -> retrieved_pairs {
  const matches found = match(place, queries, how);
  constexpr const char* where = "roost::frozen_multimap::retrieve_pairs";
  auto [numbers, values] = detail::room_for_matches<std::uint64_t, Value>(place, found.size(), where);
  found.retrieve_pairs(place, numbers, values);
  place.synchronize();
  return {std::move(numbers), std::move(values)};
}

template <class Key, class Value, class Place>
template <class F>
void frozen_multimap<Key, Value, Place>::for_each(const Place& place, const F& f) const {
  using call = detail::without_place<F>;
  detail::expand(place, offsets_.data(), key_count(), size(),
                 detail::with_pair_of_group<Key, Value, call>{keys_.data(), values_.data(), call{f}});
}

template <class Key, class Value, class Place>
template <class F>
void frozen_multimap<Key, Value, Place>::for_each_key(const Place& place, const F& f) {
  place.for_each(key_count(),
                 detail::with_run<Key, Value, F>{keys_.data(), offsets_.data(), values_.data(), f});
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
std::size_t frozen_multimap<Key, Value, Place>::retrieve_all(const Place& place, Keys&& keys,
                                                             Values&& values) const {
  constexpr const char* where = "roost::frozen_multimap::retrieve_all";
  using write = detail::write_both<Key, Value>;
  const write target{detail::output<Key>(keys, size(), where), detail::output<Value>(values, size(), where)};
  detail::expand(place, offsets_.data(), key_count(), size(),
                 detail::with_pair_of_group<Key, Value, write>{keys_.data(), values_.data(), target});
  return size();
}

template <class Key, class Value, class Place>
bool frozen_multimap<Key, Value, Place>::valid(const Place& place) const {
  if (empty()) return numbers_.empty();
  return numbers_.size() == key_count() &&
         place.sum(key_count(), detail::good_group<typename map::ref_type, Key>{numbers_.ref(), keys_.data(),
                                                                                offsets_.data()}) == size();
}

}  // namespace roost
