#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "roost/place.hpp"

namespace roost::bench {

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
  struct event {
    cudaEvent_t handle = nullptr;
    event() { detail::check(cudaEventCreate(&handle), "cudaEventCreate"); }
    ~event() { static_cast<void>(cudaEventDestroy(handle)); }
  } start, stop;
  detail::check(cudaEventRecord(start.handle, place.stream()), "cudaEventRecord");
  f();
  detail::check(cudaEventRecord(stop.handle, place.stream()), "cudaEventRecord");
  detail::check(cudaEventSynchronize(stop.handle), "cudaEventSynchronize");
  float result = 0;
  detail::check(cudaEventElapsedTime(&result, start.handle, stop.handle), "cudaEventElapsedTime");
  return result;
}
#endif

/// f() as it is without the host's part: on cuda captured once, in a graph that each call launches.
template <class F>
auto replayed(const host&, const F& f) {
  return f;
}

#if defined(__CUDACC__)
/// A capture of a stream, which ends with this if f() has thrown: the stream is used for others.
struct stream_capture {
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  bool open = true;

  explicit stream_capture(cudaStream_t from) : stream(from) {
    detail::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  stream_capture(const stream_capture&) = delete;
  ~stream_capture() {
    if (open && end() != cudaSuccess) static_cast<void>(cudaGetLastError());  // a failed call must not be found again by the next one
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
  detail::check(captured.end(), "cudaStreamEndCapture");
  cudaGraphExec_t ready = nullptr;
  detail::check(cudaGraphInstantiate(&ready, captured.graph, 0), "cudaGraphInstantiate");
  const std::shared_ptr<CUgraphExec_st> owner(ready, [](cudaGraphExec_t exec) { static_cast<void>(cudaGraphExecDestroy(exec)); });
  return [owner, stream = place.stream()] { detail::check(cudaGraphLaunch(owner.get(), stream), "cudaGraphLaunch"); };
}
#endif

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The median of `repetitions` timed runs of f() after `warm_ups` runs that do not count; before() runs untimed before each.
template <class Place, class Before, class F>
double median_milliseconds(const Place& place, int warm_ups, int repetitions, const Before& before, const F& f) {
  std::vector<double> times;
  for (int i = -warm_ups; i < repetitions; ++i) {
    before();
    place.synchronize();
    const double time = milliseconds(place, f);
    if (i >= 0) times.push_back(time);
  }
  return median(times);
}

}  // namespace roost::bench
