#pragma once

#include <string>
#include <tuple>
#include <vector>

// Names that examples in docstrings do not declare. Nothing here is linked.

extern const roost::host cpu, gpu, place;
extern int stream;
extern std::vector<int> keys, values, queries, results, ids, customers, amounts, orders_customer, customer_id,
    shops, days;
extern roost::array<bool, roost::host> answers;
extern const std::uint8_t* valid;
extern const int missing_value, key, k, v;
extern roost::frozen_map<int, int>::ref_type ref;
extern const std::size_t teams, n, s;
template <class... T>
void use(const T&...);

namespace page_arrow {
extern const ArrowSchema schema;
extern const ArrowArray array;
}  // namespace page_arrow

namespace page_block_map {
#define __shared__ static
struct write_values {
  void operator()(int key, int value) const;
};
extern const write_values write_out;
void __syncthreads();
}  // namespace page_block_map
namespace cooperative_groups {
struct thread_block {
  unsigned thread_rank() const;
  unsigned size() const;
  void sync() const;
};
thread_block this_thread_block();
}  // namespace cooperative_groups

namespace page_embedding_table {
extern const std::vector<std::int64_t> ids;
extern std::vector<std::uint32_t> slots;
extern std::vector<float> rows, gradients;
}  // namespace page_embedding_table

namespace page_gather_rows {
extern const std::vector<std::byte> rows;
extern const std::vector<std::int64_t> ids;
extern std::vector<std::byte> out;
}  // namespace page_gather_rows

namespace page_group_ids {
extern const std::span<const std::int64_t> ids;
extern std::int64_t* const keys;
extern std::uint64_t* const size;
}  // namespace page_group_ids

namespace page_reduce_rows {
extern const std::span<const std::int64_t> ids;
extern const std::span<const float> rows;
extern const std::span<float> out;
extern std::uint64_t* const word;
}  // namespace page_reduce_rows
namespace page_grouped_rows {
extern const std::vector<int> symbols, volumes;
}  // namespace page_grouped_rows
namespace page_running {
extern const std::vector<int> accounts;
extern const std::vector<std::int64_t> times;
}  // namespace page_running
namespace page_rolling {
extern const std::vector<int> sensors;
extern const std::vector<std::int64_t> times;
extern const std::vector<double> values;
extern const roost::grouped_rows<roost::host> rows;
}  // namespace page_rolling
namespace page_sessions {
extern const std::vector<int> users;
extern const std::vector<std::int64_t> times;
extern const roost::grouped_rows<roost::host> rows;
}  // namespace page_sessions
namespace page_asof_join {
extern const std::vector<int> traded, quoted;
extern const std::vector<std::int64_t> times, quote_times;
}  // namespace page_asof_join
namespace page_interval_join {
extern const std::vector<int> rooms, alarm_rooms;
extern const std::vector<std::int64_t> from, to, alarm_times;
}  // namespace page_interval_join

namespace page_kernels {
extern const std::uint32_t* values;
extern std::uint64_t* counts;
}  // namespace page_kernels

// Columns: a range for each shard.
#define COLUMNS(page, result)                                                                             \
  namespace page_##page {                                                                                 \
    extern const roost::host_shards all;                                                                  \
    extern std::vector<std::vector<int>> keys, values, queries, ids, orders_customer, customer_id, words, \
        counts;                                                                                           \
    extern std::vector<std::vector<result>> results;                                                      \
    extern std::vector<roost::array<bool, roost::host>> answers;                                          \
  }
COLUMNS(gpus, int)
COLUMNS(sharded_concurrent_map, int)
COLUMNS(sharded_index, std::uint32_t)
COLUMNS(sharded_join, int)
COLUMNS(sharded_map, int)
COLUMNS(sharded_multimap, std::uint64_t)
COLUMNS(sharded_set, int)
COLUMNS(shards, int)
namespace page_gpus {
extern const std::vector<int> half, other_half;
}
namespace page_rank {
extern roost::communicator &communicator, &nccl;
}

namespace page_coordinate_index {
extern const std::vector<roost::coordinate<3>> coordinates, queries;
extern std::vector<std::uint32_t> rows;
extern const int x, y, z;
}  // namespace page_coordinate_index
namespace page_kernel_map {
extern const roost::coordinate_index<3> index;
extern const std::uint32_t k, row;
}  // namespace page_kernel_map
namespace page_sparse_conv {
using page_kernel_map::index;
extern const std::vector<float> weights, turned, bias;
extern std::vector<float> features, outputs;
}  // namespace page_sparse_conv

namespace page_stadium_map {
struct record {
  double numbers[4];
};
extern const std::vector<std::uint64_t> keys, queries;
extern std::vector<record> records, results;
extern const record missing, v;
extern const std::uint64_t k;
}  // namespace page_stadium_map

namespace page_string_index {
extern const std::vector<std::string> texts;
}
namespace page_two_way_index {
extern std::vector<std::uint32_t> results;
}
