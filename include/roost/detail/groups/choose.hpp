#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "roost/detail/place/sequence.hpp"
#include "roost/detail/place/tuning.hpp"

// Every choice of an algorithm by group_by, unique, two_way_index, frozen_multimap and the joins. A caller
// states its facts, takes the step that is chosen, adds what it has learnt and asks again, until a step
// succeeds. No step is chosen again after it has failed, so each such loop ends. tests/core/choose_test.cpp
// walks a grid of facts and compares the steps with choices.txt.
//
// Figures are medians of calls on one H200 or H100, on the host those of two threads of a shared AMD EPYC,
// all of 2026-11-23 to 2026-11-26; docs/performance.md has the tables and the commands.

namespace roost::detail {

/// The most keys of a batch: 32 bits number them, and one number is none.
inline constexpr std::size_t batch_most = ~std::uint32_t{0} - std::size_t{1};

/// What a sample of group_tuning::sample rows has shown.
struct sample_facts {
  std::uint32_t copies = 0;                             // rows whose key an earlier row has
  std::uint32_t pairs = 0;                              // of rows with the same key, which is not frequent
  std::uint32_t frequent = 0;                           // keys
  std::uint32_t compared = group_tuning<cuda>::sample;  // rows, among which are the copies
};

/// What is known of a batch when the next step is chosen.
struct batch_facts {
  std::size_t rows = 0;
  bool on_host = false;
  std::size_t threads = 1;  // of the host
  std::size_t key_bytes = 0;
  bool integers = false;  // keys
  std::optional<sample_facts> sample{};

  /// Steps that have been taken without a result.
  struct {
    bool few = false, tables = false, look = false, compare = false, distinct = false, slack = false,
         exact = false;
  } tried{};
  bool hopeless = false;  // the last step failed for a reason that later ones cannot help
};

template <class Key, class Place>
batch_facts facts_of(const Place& place, std::size_t rows) {
  batch_facts batch{.rows = rows, .key_bytes = sizeof(Key), .integers = is_integer<Key>};
  if constexpr (std::is_same_v<Place, host>) {
    batch.on_host = true;
    batch.threads = static_cast<std::size_t>(place.threads());
  }
  return batch;
}

/// The largest batches that are first tried without a sample: unique of 2^20 keys 154 -> 71 us (64 bits: 229
/// -> 90), of 2^22 keys 264 -> 149.
constexpr std::size_t unsampled_most(bool on_host) { return on_host ? 0 : std::size_t{1} << 23; }
constexpr bool tries_unsampled(const batch_facts& batch) {
  return !batch.sample && batch.rows <= unsampled_most(batch.on_host);
}

inline constexpr std::uint32_t copies_least = 8;  // in the sample: fewer are not significant

/// Whether a sample indicates that keys of `rows` rows have more than twice `copies` copies.
constexpr bool has_many_copies(const sample_facts& sample, std::size_t rows, double copies) {
  return sample.copies >= copies_least &&
         sample.copies * static_cast<double>(rows) > copies * sample.compared * sample.compared;
}

/// The rows that are compared where few copies matter, a power of two: 32 of them are copies if each key has
/// two.
constexpr std::uint32_t compared_rows(std::size_t rows) {
  std::uint32_t result = 1 << 16;
  while (std::size_t{result} * result < 64 * rows) result *= 2;
  return result;
}
/// Whether so many are compared after a smaller sample, whose chance made cliffs; fewer copies than `least`
/// mean nothing to the caller. (64 copies, 2^29 keys: unique 31 -> 46 G/s; 2 copies, 2^28 pairs: multimap 16
/// -> 21. It takes 50 us: of 2^26 distinct keys 33 -> 30.)
constexpr bool looks_closer(const sample_facts& sample, std::size_t rows, std::uint32_t least) {
  return rows >= std::size_t{1} << 27 ? sample.copies < 64
                                      : rows >= std::size_t{1} << 24 && sample.copies < least;
}

/// Whether the end of an array is freed by copying the rest: small results stay in their room.
constexpr bool frees_rest(std::size_t bytes, std::size_t used, std::size_t size) {
  return used < size / 2 && bytes > std::size_t{1} << 20;
}

// Few groups, on the host (few_groups.hpp): sums of 10^7 rows by 100 keys 84 -> 42 ms, by 10^4 keys 181 ->
// 80; of doubles, which are grouped otherwise, by 100 keys 369 -> 45. Sums of 10^4 doubles by 100 keys 290 ->
// 65 us, unique 110 -> 41, if all are different 120 -> 127; 2^16 rows by 10^4 keys, unique 465 -> 680.

inline constexpr std::size_t few_groups_rows = std::size_t{1} << 10;  // from which on they are looked for
inline constexpr std::size_t few_groups_always = std::size_t{1}
                                                 << 14;  // that are few for any number of threads
/// In small batches, so many that each has eight rows.
constexpr std::size_t few_groups_most(std::size_t rows) {
  return std::clamp<std::size_t>(rows / 64, std::min(rows / 8, few_groups_always), std::size_t{1} << 18);
}

constexpr bool looks_for_few(const batch_facts& batch) {
  return batch.on_host && !batch.tried.few && batch.rows >= few_groups_rows && batch.rows <= batch_most;
}

/// Integers of a range of so many need no hashing, nor a sample: they address a table. (10^7 rows, unique and
/// sums in ms, hashed -> direct: 2^18 keys 64 -> 41, 103 -> 48; 2^19 55 -> 58, 88 -> 65; 10^6 59 -> 81, 100
/// -> 99.)
constexpr std::uint64_t direct_range_most(const batch_facts& batch) {
  return std::min(std::uint64_t{batch.rows} / 8, std::uint64_t{1} << 19);
}

/// A sample that estimates the number of groups, and whether that many are few.
struct few_sample {
  static constexpr std::size_t first_look = 8192;
  static constexpr std::size_t rows(std::size_t of) {
    return std::clamp<std::size_t>(of / 256, std::min(of / 32, first_look), std::size_t{1} << 15);
  }
  static constexpr bool is_over(std::size_t rows, std::size_t groups) {
    return groups > 2 * few_groups_most(rows);
  }
  static constexpr bool shows_few(std::size_t rows, std::size_t groups) {
    return groups <= few_groups_most(rows) / 4 * 5;
  }
};

/// Into how many chunks so many rows are divided for their groups. At least 32 rows per group and chunk, so
/// that chunks store less per group than its values. 0: many threads group faster.
constexpr std::size_t chunks_of_few(const batch_facts& batch, std::size_t groups) {
  const std::size_t chunks = std::clamp<std::size_t>(batch.rows / 32 / (groups + 1), 1, batch.threads);
  return groups > few_groups_always && 2 * chunks < batch.threads ? 0 : chunks;
}

/// The same where values are combined in any order: each chunk has a value for each group.
constexpr std::size_t chunks_of_sums(std::size_t rows, std::size_t threads, std::size_t groups) {
  return std::clamp<std::size_t>(rows / 4 / groups, 1, threads);
}

// Groups: frozen_multimap, and values that are combined in order.

enum class grouping_step {
  sample,
  distinct,  // numbers the keys, without a stable partition: 1 copy 20.2 -> 27 G/s
  slack,     // partitions without counting first: 8 copies 24.5 -> 26.4 G/s
  exact,
  give_up
};

/// Copies of most keys: more overflow the slack of their region.
inline constexpr double grouping_copies = 32;

constexpr grouping_step choose_grouping(const batch_facts& batch) {
  if (!batch.sample)
    return tries_unsampled(batch) && !batch.tried.exact ? grouping_step::exact : grouping_step::sample;
  // If the sample has missed copies, the first team that finds one ends the attempt.
  if (batch.sample->copies == 0 && !batch.tried.distinct) return grouping_step::distinct;
  if (!batch.on_host && !batch.tried.slack && batch.sample->frequent == 0 &&
      !has_many_copies(*batch.sample, batch.rows, grouping_copies / 2))
    return grouping_step::slack;
  return batch.tried.exact ? grouping_step::give_up : grouping_step::exact;
}

// Indices of distinct keys: two_way_index, and unique.

enum class indexing_step { sample, slack, exact, give_up };

inline constexpr double indexing_copies = 8;  // like grouping_copies; their slack fills a team's tile
/// What the partition has room for: in small batches up to three times the items. (2^20 keys, 64 copies:
/// unique 8 -> 21 G/s.)
inline constexpr double sampled_slack = 24;
inline double indexing_slack(const batch_facts& batch) {
  return batch.sample ? sampled_slack
                      : std::clamp(0x1p30 / static_cast<double>(batch.rows), sampled_slack, 256.0);
}

/// `distinct`: there is no result if keys have copies.
constexpr indexing_step choose_indexing(const batch_facts& batch, bool distinct) {
  if (batch.hopeless || batch.tried.exact || (distinct && batch.tried.slack)) return indexing_step::give_up;
  if (distinct) return indexing_step::slack;
  if (!batch.sample && (!tries_unsampled(batch) || batch.tried.slack)) return indexing_step::sample;
  if (batch.tried.slack) return indexing_step::exact;
  // Many copies are counted first, not after an overflow: 1024 copies 33.2 -> 46.7 G/s.
  const bool crowds = batch.sample && (batch.sample->frequent != 0 ||
                                       has_many_copies(*batch.sample, batch.rows, sampled_slack / 2));
  return crowds ? indexing_step::exact : indexing_step::slack;
}

/// Whether a few regions are counted before any are marked, to mark first items or else copies. (Marking:
/// 2^26 keys with 1 copy 447 -> 351 us, with 2 copies 308 -> 180.)
constexpr std::uint32_t counted_regions_least(bool on_host) { return on_host ? 64 : 1024; }
constexpr bool counts_few_regions(const batch_facts& batch, std::uint32_t regions) {
  return (!batch.sample || batch.sample->frequent == 0) && regions >= counted_regions_least(batch.on_host);
}

// group_by

enum class group_by_step { few, aggregate, group };

/// `any_order`: values can be combined in words of scratch memory, in any order: then tables add them up
/// (2^26 pairs, 2 copies 16.9 -> 28.8 G/s, 1024 copies 22.3 -> 56.9).
constexpr group_by_step choose_group_by(const batch_facts& batch, bool any_order) {
  if (looks_for_few(batch)) return group_by_step::few;
  const bool fits = batch.key_bytes <= 8 && batch.rows != 0;
  return any_order && fits && !batch.tried.tables ? group_by_step::aggregate : group_by_step::group;
}

/// The rows that are aggregated at once.
inline constexpr std::size_t aggregated_most = std::size_t{1} << 31;

enum class aggregate_step {
  device_tables,  // in its memory, by one launch
  look,           // for frequent keys; the host does not wait
  sample,         // waits for what was seen
  compare,        // more rows, to find batches of distinct keys
  slack,          // partitions, with slack for the sizes of regions
  exact,          // the same after counting
  give_up         // for groups
};

/// The partition of a step.
struct aggregate_choice {
  aggregate_step step;
  std::uint32_t coarse = 2;     // regions of the first pass
  std::uint32_t fine_bits = 0;  // of the second pass; 0: none
  bool counts_first = false;    // counts keys before the second pass, which few keys do not need
  bool skewed = false;          // some regions have many more items than most
  double copies = 8;            // like grouping_copies
  double times_most = std::numeric_limits<double>::infinity();  // room_of_regions
};

/// What fits in the tables of an aggregation.
struct table_room {
  double keys_most;         // in a table that has all scratch memory,
  std::size_t keys_wanted;  // and in one that lets two teams run at once, which is faster
};

/// The most keys of any of many regions that have `mean` keys on average.
inline double keys_of_region(double mean) { return mean + 6 * std::sqrt(mean) + 16; }

/// A key with more rows than this is absorbed by the first pass of a partition.
constexpr double absorbed_rows(std::size_t rows) { return static_cast<double>(rows) / 2048; }
constexpr bool samples_aggregation(const batch_facts& batch) {
  return batch.rows >= 4 * group_tuning<cuda>::sample;
}

/// The regions of one pass of an aggregation, at most: a power of two.
constexpr std::uint32_t one_pass_regions(bool on_host) {
  return std::bit_floor(on_host ? partition_tuning<host>::digits_most : partition_tuning<cuda>::digits_most);
}

/// Among compared_rows(); so few copies are left to groups. (1 copy: tables 23.0 G/s, groups 25.0.)
constexpr bool shows_distinct(std::uint64_t copies) { return copies < 4; }

inline bool needs_one_pass(const batch_facts& batch, const table_room& room) {
  const double mean = static_cast<double>(batch.rows) / one_pass_regions(batch.on_host);
  return keys_of_region(mean) <= room.keys_most;
}

/// The partition, for what is known.
inline aggregate_choice plan_aggregation(const batch_facts& batch, const table_room& room) {
  constexpr double sample = group_tuning<cuda>::sample;
  const auto rows = static_cast<double>(batch.rows);
  const std::uint32_t most = one_pass_regions(batch.on_host);
  aggregate_choice plan{.step = aggregate_step::slack, .coarse = most};
  if (batch.sample) {
    plan.copies = larger(8.0, 4 * batch.sample->pairs * rows / sample / sample);
  } else if (samples_aggregation(batch)) {  // much slack costs little: 2^20 pairs of 100 keys 200 -> 73 us
    plan.copies = larger(8.0, 0x1p32 / rows);
  }
  if (!tries_unsampled(batch)) plan.times_most = 3;
  if (needs_one_pass(batch, room)) {
    const std::size_t regions = ceil_div(batch.rows, room.keys_wanted);
    plan.coarse = static_cast<std::uint32_t>(std::clamp<std::size_t>(regions + regions % 2, 2, most));
    return plan;
  }
  while ((batch.rows >> plan.fine_bits) / plan.coarse > room.keys_wanted) ++plan.fine_bits;
  plan.counts_first = batch.sample && batch.sample->pairs > 0;
  plan.skewed = batch.sample && batch.sample->frequent > 0;
  return plan;
}

/// 2^18 pairs: 3.8 to 5.0 G/s, CUB's sort 3.0. Of 2^19 pairs tables make 4.3 to 6.3, partitions 5.2 to 6.3.
inline constexpr std::size_t device_tables_most = 1 << 18;

inline aggregate_choice choose_aggregation(const batch_facts& batch, const table_room& room) {
  if (batch.hopeless) return {aggregate_step::give_up};
  if (!batch.on_host && batch.rows <= device_tables_most && !batch.tried.tables)
    return {aggregate_step::device_tables};
  const bool samples = samples_aggregation(batch);
  if (samples && !batch.tried.look) return {aggregate_step::look};

  aggregate_choice next = plan_aggregation(batch, room);
  const bool one_pass = needs_one_pass(batch, room);
  const bool waits = !one_pass || !tries_unsampled(batch) || batch.tried.slack;
  if (samples && !batch.sample && waits) {
    next.step = aggregate_step::sample;
  } else if (batch.sample && !one_pass && batch.sample->pairs + batch.sample->frequent == 0 &&
             !batch.tried.compare) {
    next.step = aggregate_step::compare;
  } else if (batch.tried.slack) {
    next.step = batch.tried.exact ? aggregate_step::give_up : aggregate_step::exact;
  }
  return next;
}

// unique

/// What unique returns besides the keys, and their order.
struct unique_facts {
  bool keys_alone = false;                // neither inverse nor counts
  bool first = false;                     // where each key occurs first
  bool by_key = false, by_first = false;  // else in any order
};

enum class unique_step {
  few,
  aggregate,  // like values of group_by, without values
  mark,       // first items, or copies: 2^26 keys, 1, 8, 1024 copies 33.6, 32.6, 23.2 -> 47.0, 47.5, 36.4 G/s
  sample,     // for copies
  sort,       // all rows
  sort_bits,  // the same of integers of 32 bits
  index_and_sort,  // the distinct ones alone
  number
};

/// The largest batches that are sorted, whatever their copies, by CUB, us: 2^12, 2^16, 2^20 keys of 32 bits,
/// indexed and sorted 51, 102, 143, sorted 40, 86, 118; with inverse 126, 182, 218 -> 63, 120, 153; 64 bits,
/// 2^20 keys 266
/// -> 210. (But 16 copies: 2^22 keys of 32 bits 194 -> 229, 2^21 of 64 bits 259 -> 302.)
constexpr std::size_t sorted_most(const batch_facts& batch) {
  return std::size_t{1} << (batch.on_host ? 17 : batch.key_bytes == 8 ? 21 : 23);
}

/// Whether integers of 32 bits are sorted as bits. (2^26 keys, 1, 8, 1024 copies 5.7, 33.5, 31.1 -> 54.8,
/// 58.1, 64.1 G/s.)
constexpr bool sorts_bits(const batch_facts& batch) {
  return !batch.on_host && batch.key_bytes == 4 && batch.rows >= std::size_t{1} << 24;
}

/// Whether the keys are aggregated. (2^10 to 2^17 keys 50 -> 34 to 40 us. 2^26 keys of 64 bits, 64, 1024
/// copies, 10^4 keys 2.2, 2.7, 4.1 -> 1.2, 1.1, 1.8 ms; but 8 copies 1.8 -> 2.1.)
inline bool aggregates_keys(const batch_facts& batch) {
  constexpr double copies = 16;
  return !batch.tried.tables && batch.rows != 0 &&
         (batch.rows <= device_tables_most ||
          (batch.sample && has_many_copies(*batch.sample, batch.rows, copies)));
}

/// Copies, as has_many_copies compares them, from which on larger batches are not sorted with them: where the
/// two are level. (cuda, sorted and indexed: with inverse, 2^26 keys of 32 bits, 1, 2 copies 6.6, 6.6
/// and 9.0, 5.0 ms; 64 bits alone 4.8, 4.8 and 6.2, 3.8. Host, 2^22 keys, 1, 2, 4 copies: 32 bits 28, 35, 34
/// and 69, 52, 41; 64 bits 68, 78, 77 and 110, 72, 54.)
constexpr double sorted_copies(const batch_facts& batch) {
  return !batch.on_host ? 0.6 : batch.key_bytes == 8 ? 0.9 : 2.5;
}

constexpr unique_step choose_unique(const batch_facts& batch, const unique_facts& wanted) {
  const bool sorts = wanted.by_key && batch.integers, alone = wanted.keys_alone && !wanted.first;
  if (looks_for_few(batch)) return unique_step::few;
  if (wanted.keys_alone && wanted.by_first && batch.key_bytes <= 8) return unique_step::mark;
  if (sorts && alone && sorts_bits(batch)) return unique_step::sort_bits;
  if (sorts && (alone || !batch.on_host) && batch.rows <= sorted_most(batch)) return unique_step::sort;
  if (!batch.on_host && alone && batch.key_bytes <= 8 && batch.rows <= batch_most) {
    if (aggregates_keys(batch)) return unique_step::aggregate;
    if (!batch.sample && (sorts || !tries_unsampled(batch))) return unique_step::sample;
  }
  if (!sorts || (batch.on_host && !alone)) return unique_step::number;
  if (!batch.sample) return unique_step::sample;
  if (!has_many_copies(*batch.sample, batch.rows, sorted_copies(batch))) return unique_step::sort;
  return alone ? unique_step::index_and_sort : unique_step::number;
}

// Joins

/// The range of integers, on the host, for which a bit each takes the place of a set of so many keys.
constexpr std::uint64_t dense_range_most(std::size_t keys) {
  return std::min(std::uint64_t{32} * keys, std::uint64_t{1} << 28);
}

/// The rows of a side that are looked at for copies before a table is chosen; 0: all of them are, by a table
/// for copies. If half of a side's keys have copies, the sample misses all of them once in a million times.
/// (2^26 with 2^26 different keys 16.2 -> 53.8 G rows/s; on the host 10^7 rows of 64 bits 668 -> 312 ms.)
struct join_sample {
  static constexpr std::size_t run = 64;  // neighbours
  /// A set of fewer keys is built with their copies, which cost less than the sample.
  static constexpr bool pays_for_set(std::size_t keys) { return keys > 1 << 16; }
  static std::size_t runs(std::size_t rows) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::sqrt(64.0 * static_cast<double>(rows))) / run + 1;
    return rows / wanted < run ? 0 : wanted;
  }
};

}  // namespace roost::detail
