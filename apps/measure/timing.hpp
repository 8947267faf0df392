#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "poison.hpp"
#include "roost/kernels.hpp"

namespace roost::bench {

/// Whether times on cuda are those of the host's clock, from the call until the device is done.
inline bool wall_clock = false;

/// A place in a report.
template <class Place>
std::string place_name(const Place& place) {
  if constexpr (std::is_same_v<Place, host>) {
    return "host:" + std::to_string(place.threads());
  } else {
    return "cuda";
  }
}

/// Milliseconds that f() takes on a place: device events around it on cuda, the steady clock on the host.
template <class F>
double milliseconds(const host&, const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

#if defined(__CUDACC__)
template <class F>
double milliseconds(const cuda& place, const F& f) {
  if (wall_clock) {
    const auto start = std::chrono::steady_clock::now();
    f();
    if (cudaStreamQuery(place.stream()) != cudaSuccess)
      place.synchronize();  // even waiting for nothing takes time
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  struct event {
    cudaEvent_t handle = nullptr;
    event() { kernels::check(cudaEventCreate(&handle), "cudaEventCreate"); }
    ~event() { static_cast<void>(cudaEventDestroy(handle)); }
  } start, stop;
  kernels::check(cudaEventRecord(start.handle, place.stream()), "cudaEventRecord");
  f();
  kernels::check(cudaEventRecord(stop.handle, place.stream()), "cudaEventRecord");
  kernels::check(cudaEventSynchronize(stop.handle), "cudaEventSynchronize");
  float result = 0;
  kernels::check(cudaEventElapsedTime(&result, start.handle, stop.handle), "cudaEventElapsedTime");
  return result;
}
#endif

/// f() without the host's part: on cuda captured once, in a graph that each call launches.
template <class F>
auto replayed(const host&, const F& f) {
  return f;
}

#if defined(__CUDACC__)
/// A capture of a stream. Its destructor ends the capture if f() has thrown, so that the stream can be used.
struct stream_capture {
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  bool open = true;

  explicit stream_capture(cudaStream_t from) : stream(from) {
    kernels::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture");
  }
  stream_capture(const stream_capture&) = delete;
  ~stream_capture() {
    if (open && end() != cudaSuccess)
      static_cast<void>(cudaGetLastError());  // so that the next call does not report this failure again
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  }
  cudaError_t end() {
    open = false;
    return cudaStreamEndCapture(stream, &graph);
  }
};

template <class F>
auto replayed(const cuda& place, const F& f) {
  stream_capture captured(place.stream());
  f();
  kernels::check(captured.end(), "cudaStreamEndCapture");
  cudaGraphExec_t ready = nullptr;
  kernels::check(cudaGraphInstantiate(&ready, captured.graph, 0), "cudaGraphInstantiate");
  const std::shared_ptr<CUgraphExec_st> owner(
      ready, [](cudaGraphExec_t exec) { static_cast<void>(cudaGraphExecDestroy(exec)); });
  return [owner, stream = place.stream()] {
    kernels::check(cudaGraphLaunch(owner.get(), stream), "cudaGraphLaunch");
  };
}
#endif

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// Whether the last run of each measurement does nothing: then every check must fail.
inline bool skip_last_run = false;

/// milliseconds() of one run of several.
template <class Place, class F>
double milliseconds_of_run(const Place& place, bool last, const F& f) {
  place.synchronize();
  return last && skip_last_run ? milliseconds(place, [] {}) : milliseconds(place, f);
}

struct nothing {
  void operator()() const {}
};

/// The median of `repetitions` timed runs of f() after `warm_ups` runs that do not count; before() and
/// after() run untimed before and after each. Memory that before() frees is poisoned; before() must poison
/// any other memory that f() writes answers to.
template <class Place, class Before, class F, class After = nothing>
double median_milliseconds(const Place& place, int warm_ups, int repetitions, const Before& before,
                           const F& f, const After& after = {}) {
  std::vector<double> times;
  for (int i = -warm_ups; i < repetitions; ++i) {
    {
      const poisoning on;
      before();
    }
    const double time = milliseconds_of_run(place, i + 1 == repetitions, f);
    if (i >= 0) times.push_back(time);
    after();
  }
  return median(times);
}

/// The same for an f() that sets `made`: before each run, `made` is emptied and its memory poisoned, then
/// before() is called. Throws error if `made` is empty after the last run.
template <class Place, class Made, class F, class Before = nothing>
double median_of_builds(const Place& place, int warm_ups, int repetitions, std::optional<Made>& made,
                        const F& f, const Before& before = {}) {
  const auto start = [&] {
    if constexpr (requires { made->clear(place); }) {  // in case its memory is not poisoned
      if (made) made->clear(place);
    }
    made.reset();
    before();
  };
  const double result = median_milliseconds(place, warm_ups, repetitions, start, f);
  if (!made) throw error("roost bench: the last run has made nothing");
  return result;
}

}  // namespace roost::bench
