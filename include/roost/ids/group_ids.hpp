#pragma once

#include <span>

#include "roost/ids/reduce_rows.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// Ids in memory of sizes that are known before: distinct ones, their numbers, and the order that groups
/// equal ones. No call here waits for a GPU, and all may be captured in CUDA graphs. two_way_index and
/// group_by do more, and wait.

namespace roost {

/// Where the results of unique_ids and group_keys are written, in memory of the place. What is null is not.
struct distinct_ids {
  std::int64_t* keys = nullptr;  ///< `limit` distinct ids, and then `fill`
  std::size_t limit = 0;
  std::int64_t fill = 0;
  /// How many distinct ids there are; that may be more than `limit`: then the last ones are not written.
  std::uint64_t* size = nullptr;
  /// Becomes 1 if there are more than `limit`: memory of the place, or pinned memory of the host.
  std::uint64_t* too_many = nullptr;
  std::int64_t* inverse = nullptr;  ///< of each id of the input, its number, also if that is above the limit
  std::int64_t* first = nullptr;    ///< of `limit` ids, where each occurs first; then the number of all ids
  std::int64_t* counts = nullptr;   ///< of `limit` ids, how often each occurs; then 0
};

/// Numbers the distinct ids by first occurrence: a table in memory of the place, whose slots are positions of
/// the input. `result.size` is needed. Cost: about four random accesses an id; 20 bytes of scratch memory an
/// id. Asynchronous on cuda. Throws invalid_argument for 2^31 or more ids, out_of_memory.
///
///     roost::unique_ids(gpu, ids, {.keys = keys, .limit = 1000, .size = size});
template <class Place>
void unique_ids(const Place& place, std::span<const std::int64_t> ids, const distinct_ids& result);

/// Numbers the distinct ids in ascending order. `sorted`: null, or gets positions in the order of their
/// numbers, for reduce_grouped_rows; of equal ids in the order of the input. `bits`: ids are equal but for so
/// many low bits, such as 20 for ids in [0, 2^20): fewer bits are sorted sooner. Asynchronous on cuda. Throws
/// invalid_argument for 2^31 or more ids, out_of_memory.
template <class Place>
void group_keys(const Place& place, std::span<const std::int64_t> ids, const distinct_ids& result,
                grouped_position* sorted = nullptr, std::uint32_t bits = 64);

/// positions[j] = where queries[j] occurs first in `ids`, or `missing`. Cost: as unique_ids, and two random
/// accesses a query. Asynchronous on cuda. Throws invalid_argument for sizes that do not match and for 2^31
/// or more ids, out_of_memory.
template <class Place>
void find_ids(const Place& place, std::span<const std::int64_t> ids, std::span<const std::int64_t> queries,
              std::span<std::int64_t> positions, std::int64_t missing);

/// Where the results of group_ids are written, in memory of the place.
struct grouped_ids {
  std::int64_t* order = nullptr;    ///< a position for each id
  std::int64_t* offsets = nullptr;  ///< where each group begins, and the end
  std::int64_t* inverse = nullptr;  ///< of each id, where it comes in the order; or null
  /// As of reduction_options; positions of wrong ids come last.
  std::uint64_t* wrong = nullptr;
};

/// Groups ids that are below `groups`: ids order[offsets[k]] to order[offsets[k + 1] - 1] of the input are k,
/// in the order of the input. `order` has ids.size() numbers, `offsets` groups + 1. All but `inverse` are
/// needed. Asynchronous on cuda. Throws invalid_argument for 2^32 - 1 or more ids or groups, out_of_memory.
template <class Place, class Id>
void group_ids(const Place& place, std::span<Id> ids, std::size_t groups, const grouped_ids& result);

}  // namespace roost

#include "roost/ids/detail/group_ids.hpp"
