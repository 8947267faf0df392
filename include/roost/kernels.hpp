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
///     struct count_values {
///       static constexpr int threads = 256;  // of a team on cuda
///       const std::uint32_t* values;         // what it works on, in memory of the place
///       std::size_t n;
///       std::uint64_t* counts;
///
///       ROOST_FN std::uint32_t* scratch(roost::kernels::scratch_memory& memory) const {
///         return memory.take<std::uint32_t>(64);
///       }
///       template <class Team>
///       ROOST_FN void operator()(const Team& team, std::size_t index,
///                                std::byte* memory) const;
///     };
///     const count_values run{values, n, counts};
///     place.launch(teams, roost::kernels::scratch_bytes_of(run), run);
///
/// examples/bins.cpp has the whole of it. A kernel that takes no scratch is launched with 0 bytes. One that
/// says `static constexpr bool large_scratch = true` gets device memory where its scratch does not fit in
/// shared memory; others throw device_error then.
///
/// A team has `rank()`, `size` and `sync()`; `any(bool)`; `exclusive_scan(counts, sums, n)` over its scratch;
/// `fetch_add`, `fetch_min`, `fetch_or`, `exchange` and `compare_exchange` on words of its scratch. All its
/// members must reach the same `sync`, `any` and `exclusive_scan`. `place.for_each(n, f)` is the short form
/// for kernels without a team: f(i) for all i below n. A launch is asynchronous on cuda, in the order of the
/// place's stream.
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
