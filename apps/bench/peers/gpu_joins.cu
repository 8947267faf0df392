// The partitioned hash joins of GPU-Joins-Evaluation (Wu, Koutsoukos and Alonso, "Efficiently Processing
// Large Relational Joins on GPUs"): PHJ-UM and PHJ-OM. They run on the default stream, and print as they go.
#include <thrust/device_ptr.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <bit>
#include <cub/cub.cuh>
#include <iostream>
#include <memory>

// CCCL 3 has no such iterators, but these joins name them.
#if CCCL_VERSION >= 3000000
namespace cub {
template <class T>
using CountingInputIterator = thrust::counting_iterator<T>;
template <class Value, class Operation, class Iterator>
using TransformInputIterator = thrust::transform_iterator<Operation, Iterator, Value>;
}  // namespace cub
#endif

constexpr int sm_counts = 132;  // of an H100 or H200: the joins know those of two older GPUs

#include <join_base.hpp>
#include <partitioned_hash_join.cuh>
#include <sort_hash_join.cuh>

#include "apps/bench/groups.hpp"
#include "peers.hpp"

namespace roost::bench {
namespace {

using side = Chunk<int, int>;  // a key, and the number of its row
using joined = Chunk<int, int, int>;

/// Whether a joined row is wrong: its left row is unknown or was seen before, or the keys differ.
struct wrong_joined {
  const int *keys, *right, *left;
  copied_key<std::uint32_t> key;
  std::size_t right_n;
  std::uint32_t* seen;  // of each left row: zeros before
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const auto of = static_cast<std::uint32_t>(keys[i]);
    const auto l = static_cast<std::size_t>(left[i]), r = static_cast<std::size_t>(right[i]);
    return l >= key.n || kernels::fetch_add(seen[l], 1u) != 0 || key(l) != of || r >= right_n ||
           key.distinct(r) != of;
  }
};

struct quiet {
  std::streambuf* output = std::cout.rdbuf(nullptr);
  ~quiet() { std::cout.rdbuf(output); }
};

/// n rows of the left with a key of each on the right. Only join() is timed: not the memory of its results
/// and scratch, nor clearing it.
template <class Make>
void measure_join(const cuda& place, const settings& options, const char* name, const key_copies& copies,
                  std::size_t n, const Make& make) {
  using number = std::uint32_t;
  const copied_key<number> key(options, copies, n);
  const std::size_t right_n = key.distinct_keys();
  array<number, cuda> keys(place, n), rows(place, n), right(place, right_n), seen(place, n);
  place.for_each(n, fill_copied_pairs<number, number>{keys.data(), rows.data(), key});
  place.for_each(right_n, fill_distinct<number>{right.data(), key});
  const auto side_of = [&](const array<number, cuda>& of) {
    side result;
    result.add_column(const_cast<number*>(of.data()));
    result.add_column(rows.data());
    result.set_num_items(static_cast<int>(of.size()));
    return result;
  };
  std::unique_ptr<JoinBase<joined>> join;
  joined result;
  std::uint64_t bad = 0;
  row line = row_of<number, number>(place, options, name, "join", n);
  line.n = n + right_n;
  line.copies = copies.name();
  const quiet no_output;
  line.median_ms = median_milliseconds(
      place, options.warm_ups, options.repetitions,
      [&] {
        place.fill(seen.data(), 0, seen.bytes());
        join = make(side_of(right), side_of(keys), n);
        kernels::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      },
      [&] { result = join->join(); },
      [&] {
        kernels::check(cudaGetLastError(), name);  // they check nothing
        bad += static_cast<std::size_t>(result.num_items) != n
                   ? n
                   : place.sum(n, wrong_joined{COL(result, 0), COL(result, 1), COL(result, 2), key, right_n,
                                               seen.data()});
        result.free_mem();
        join.reset();
      });
  line.gops = static_cast<double>(line.n) / line.median_ms / 1e6;
  line.check = verdict(bad);
  options.report(line);
}

/// Parts of 2048 keys on average, which fit in shared memory.
int bits_of(std::size_t keys) { return std::clamp(static_cast<int>(std::bit_width(keys)) - 12, 2, 16); }

const peer::registration gpu_joins("cuda", [](const settings& options) {
  if (options.key_bits != 32 || options.value_bits != 32) return;
  constexpr const char *um = "phj_um", *om = "phj_om";
  for (const char* name : {um, om}) {
    if (options.has_table) options.has_table(name);
    if (!options.report || !options.asks("join") || !options.wants(name)) continue;
    const owned_stream stream;
    const cuda place(stream.get());
    for (const std::size_t n : options.sizes()) {
      for (const key_copies& copies : options.copies) {
        if (copies.kind != key_copies::equal || n % copies.number != 0 || n >> 31 != 0) continue;
        if (name == om && copies.number != 1) continue;  // it ended with an illegal instruction
        const int bits = bits_of(n / copies.number);
        measure_join(place, options, name, copies, n,
                     [&](side right, side left, std::size_t most) -> std::unique_ptr<JoinBase<joined>> {
                       const int room = static_cast<int>(most);
                       if (name == om)
                         return std::make_unique<SortHashJoin<side, side, joined>>(right, left, 0, bits,
                                                                                   room);
                       return std::make_unique<PartitionHashJoin<side, side, joined>>(
                           right, left, bits - bits / 2, bits / 2, 0, room);
                     });
      }
    }
  }
});

}  // namespace
}  // namespace roost::bench
