#pragma once

#include "roost/detail/partition/select.hpp"
#include "roost/detail/place/look_back.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/place.hpp"

/// \file
/// Kernels of your own that run on every place: one function object, which `place.launch` runs with many
/// teams. On cuda a team is a thread block with its shared memory, on the host it is one thread with a buffer
/// of the size of its cache.
///
///     struct count_values {            // how many of a tile's values each bin gets
///       const std::uint32_t* values;
///       std::size_t n;
///       std::uint64_t* bins;           // 64 of them, zeros
///
///       ROOST_FN std::uint32_t* scratch(roost::kernels::scratch_memory& memory) const {
///         return memory.take<std::uint32_t>(64);
///       }
///       template <class Team>
///       ROOST_FN void operator()(const Team& team, std::size_t tile, std::byte* memory) const {
///         using namespace roost::kernels;
///         scratch_memory all(memory);
///         std::uint32_t* const mine = scratch(all);
///         for_each_of(team, 64u, [&](std::uint32_t b) { mine[b] = 0; });
///         team.sync();
///         const std::size_t first = tile * 4096;
///         for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(4096, n - first)),
///                     [&](std::uint32_t i) { team.fetch_add(mine[values[first + i] % 64], 1u); });
///         team.sync();
///         for_each_of(team, 64u, [&](std::uint32_t b) { fetch_add(bins[b], std::uint64_t{mine[b]}); });
///       }
///     };
///     const count_values run{values, n, bins};
///     place.launch(roost::kernels::ceil_div<std::size_t>(n, 4096), roost::kernels::scratch_bytes_of(run),
///     run);
///
/// A team has `rank()`, `size` and `sync()`; `any(bool)`; `exclusive_scan(counts, sums, n)` over its scratch;
/// `fetch_add`, `fetch_min`, `fetch_or`, `exchange` and `compare_exchange` on words of its scratch. All its
/// members must reach the same `sync`, `any` and `exclusive_scan`. `place.for_each(n, f)` is the short form
/// for kernels without a team: f(i) for all i below n. A launch is asynchronous on cuda, in the order of the
/// place's stream; scratch that no device has is an invalid_argument.
///
/// ROOST_FN marks a function that runs on both places; ROOST_ON_DEVICE is 1 in code for a GPU. Mark what a
/// function object calls with ROOST_FN too, and capture no host memory on a cuda place.

namespace roost::kernels {

// Teams.

using detail::for_each_of;       // for_each_of(team, n, body): body(i) for i < n, dealt out to the members
using detail::scratch_bytes_of;  // the bytes that a kernel's `scratch(memory)` takes, for place.launch
using detail::scratch_memory;    // hands out a team's scratch piece by piece: memory.take<T>(n)

/// The sums of the teams that began earlier, so that one pass can both count and write (decoupled look-back:
/// Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
using detail::earlier_teams;

// Relaxed atomics on words of 4 and 8 bytes that other teams may change at the same time. They return the
// previous value; `peek` reads the word.

using detail::exchange;
using detail::fetch_add;
using detail::fetch_min;
using detail::fetch_or;
using detail::peek;

// Whole arrays.

using detail::select_numbers;  // select_numbers<T>(place, n, holds): all i < n that hold, ascending, an array
using detail::write_numbers;   // write_numbers(place, n, f, target): target[i] = f(i)

// Numbers, on both places.

using detail::ceil_div;    // a / b, rounded up
using detail::count_bits;  // of a word
using detail::larger;
using detail::last_at_or_before;  // (first, last, starts, x): the last i with starts[i] <= x
using detail::lower_bound;        // (first, last, before): the first i that is not before
using detail::smaller;

/// Throws Error with one line of these parts, texts and numbers: raise<invalid_argument>({"a grid of ", n}).
using detail::raise;

#if defined(__CUDACC__)
using detail::check;         // check(status, "cudaCall"): throws device_error unless status is cudaSuccess
using detail::device_guard;  // makes a device current while it lives
#endif

}  // namespace roost::kernels
