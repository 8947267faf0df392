#pragma once

#include "workload.hpp"

// Random voxels as keys of 30 bits, as in Figure 4 of Alcantara et al. 2009.

namespace roost::bench {

/// The i-th of all voxels of a 1024^3 grid in a scrambled order: a bijection of 30 bits.
struct random_voxel {
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    constexpr std::uint32_t mask = (1u << 30) - 1;
    std::uint32_t x = static_cast<std::uint32_t>(i) * 0x2c9277b5u & mask;
    x ^= x >> 15;
    x = x * 0x1b873593u & mask;
    x ^= x >> 13;
    return x * 0x05d9f3bdu & mask;
  }
};

template <class F>
struct fill_shuffled {  // a random order of 0 .. n - 1 for any n: walks a full cycle with a step prime to n
  std::uint32_t* keys;
  F f;
  std::size_t n, step;
  ROOST_FN std::size_t number(std::size_t i) const { return (i * step + 12345) % n; }
  ROOST_FN void operator()(std::size_t i) const { keys[i] = f(number(i)); }
};

template <class F>
struct wrong_shuffled {
  const std::uint32_t* results;
  fill_shuffled<F> queries;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return results[i] != make_value<std::uint32_t>{}(queries.number(i));
  }
};

}  // namespace roost::bench
