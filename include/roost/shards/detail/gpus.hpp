#pragma once

// Bodies of roost/shards/gpus.hpp.

#include "roost/shards/gpus.hpp"

namespace roost {
namespace detail {

inline gpu_lanes::gpu_lanes() {
  const auto make = [](cudaEvent_t& event) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  };
  try {
    int low = 0, high = 0;  // a sending kernel must not wait for the blocks of a computing one
    check(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
    for (cudaStream_t& stream : lane) {
      check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high),
            "cudaStreamCreateWithPriority");
    }
    check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    make(turn);
    for (cudaEvent_t& event : ready) make(event);
    for (cudaEvent_t& event : arrived) make(event);
  } catch (...) {
    destroy();
    throw;
  }
}

inline gpu_lanes::~gpu_lanes() { destroy(); }

inline void gpu_lanes::forget_marks() noexcept {
  for (const mark& step : marks) static_cast<void>(cudaEventDestroy(step.done));
  marks.clear();
}

inline void gpu_lanes::destroy() noexcept {
  forget_marks();
  for (const cudaStream_t stream : {lane[0], lane[1], side}) {
    if (stream != nullptr) static_cast<void>(cudaStreamDestroy(stream));
  }
  const auto end = [](cudaEvent_t event) {
    if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
  };
  end(turn);
  for (const cudaEvent_t event : ready) end(event);
  for (const cudaEvent_t event : arrived) end(event);
}

inline void gpu_shard::fork() {
  check(cudaEventRecord(lanes_[number_]->turn, places_[number_].stream()), "cudaEventRecord");
  check(cudaStreamWaitEvent(side_.stream(), lanes_[number_]->turn), "cudaStreamWaitEvent");
}

inline void gpu_shard::join() {
  on_side_ = false;
  check(cudaEventRecord(lanes_[number_]->turn, side_.stream()), "cudaEventRecord");
  check(cudaStreamWaitEvent(place().stream(), lanes_[number_]->turn), "cudaStreamWaitEvent");
}

inline std::uint64_t gpu_shard::exchange(std::span<const piece> out, std::span<const piece> in, int lane) {
  const std::uint64_t turn = (exchanges_ + 1) % 2;
  check(cudaEventRecord(lanes_[number_]->ready[turn], place().stream()), "cudaEventRecord");
  show(in);
  given_ = exchanges_ - 1;
  const cudaStream_t stream = lanes_[number_]->lane[lane];
  const auto after = [&](std::uint32_t s) {
    check(cudaStreamWaitEvent(stream, lanes_[s]->ready[turn]), "cudaStreamWaitEvent");
  };
  after(number_);
  for (std::uint32_t i = 0; i < count(); ++i) {
    const std::uint32_t s = (number_ + i) % count();  // so that not all send to the same one at once
    if (out[s].bytes == 0) continue;
    if (s != number_) after(s);
    check(cudaMemcpyPeerAsync(const_cast<void*>(shown_by(s).memory), places_[s].device(), out[s].memory,
                              place().device(), out[s].bytes, stream),
          "cudaMemcpyPeerAsync");
  }
  check(cudaEventRecord(lanes_[number_]->arrived[exchanges_ % gpu_lanes::tickets], stream),
        "cudaEventRecord");
  last_[lane] = exchanges_;
  return exchanges_;
}

inline void gpu_shard::wait(std::uint64_t ticket) {
  if (ticket > given_) {
    all_->meet();
    given_ = exchanges_;
  }
  for (const auto& theirs : lanes_) {
    check(cudaStreamWaitEvent(place().stream(), theirs->arrived[ticket % gpu_lanes::tickets]),
          "cudaStreamWaitEvent");
  }
}

inline void gpu_shard::settle() {
  const gpu_lanes& mine = *lanes_[number_];
  for (std::size_t lane = 0; lane < gpu_lanes::lanes;
       ++lane) {  // others have received what this one has sent
    if (last_[lane] == 0) continue;
    if (cudaStreamWaitEvent(place().stream(), mine.arrived[last_[lane] % gpu_lanes::tickets]) == cudaSuccess)
      continue;
    static_cast<void>(cudaGetLastError());  // then the host waits; other calls report what has failed there
    static_cast<void>(cudaStreamSynchronize(mine.lane[lane]));
  }
  all_->pass(number_);
}

inline void gpu_shard::leave(bool failed) {
  if (failed) {
    all_->fail();
  } else if (given_ != exchanges_) {  // if others wait for the last exchange, they meet: see wait()
    try {
      all_->meet();
    } catch (const stopped_by_another&) {
    }
  }
  on_side_ = false;
  const auto finish = [](const gpu_lanes& lanes) {
    for (const cudaStream_t stream : {lanes.lane[0], lanes.lane[1], lanes.side})
      static_cast<void>(cudaStreamSynchronize(stream));
  };
  finish(*lanes_[number_]);
  static_cast<void>(cudaStreamSynchronize(place().stream()));
  all_->leave(number_);
  for (const auto& theirs : lanes_) finish(*theirs);  // they may still send
}

inline void gpu_shard::mark(const char* what, std::uint32_t k, int lane) {
  gpu_lanes& mine = *lanes_[number_];
  if (!mine.traced) return;
  mine.marks.push_back({what, k, std::chrono::steady_clock::now(), nullptr});
  cudaEvent_t& done = mine.marks.back().done;
  check(cudaEventCreate(&done), "cudaEventCreate");
  check(cudaEventRecord(done, lane < 0 ? place().stream() : mine.lane[lane]), "cudaEventRecord");
}

/// Gives a device access to the memory of another one; false if that is not possible.
inline bool enable_access(int device, int other) {
  if (device == other) return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const device_guard guard(device);
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorPeerAccessAlreadyEnabled) check(status, "cudaDeviceEnablePeerAccess");
  device_memory_pool::of(other).share_with(device);
  return true;
}

}  // namespace detail

inline gpus::state::state(std::vector<cuda> all, owned_streams mine)
    : streams(std::move(mine)),
      places(std::move(all)),
      threads(static_cast<std::uint32_t>(places.size()), patience) {
  for (const cuda& place : places) {
    for (const cuda& other : places)
      access.push_back(detail::enable_access(place.device(), other.device()) ? 1 : 0);
    const detail::device_guard guard(place.device());
    lanes.push_back(std::make_unique<detail::gpu_lanes>());
  }
}

inline std::vector<int> gpus::all_devices() {
  std::vector<int> result(static_cast<std::size_t>(cuda_devices()));
  std::iota(result.begin(), result.end(), 0);
  if (result.empty()) {
    detail::raise<device_error>(
        {"roost::gpus: no CUDA device can be used here; use roost::host_shards, or check the driver with "
         "nvidia-smi"});
  }
  return result;
}

inline void gpus::trace(bool on) const {
  synchronize();
  for (const auto& lanes : state_->lanes) {
    lanes->forget_marks();
    lanes->traced = on;
  }
}

inline std::vector<std::vector<gpu_step>> gpus::steps() const {
  std::vector<std::vector<gpu_step>> result(size());
  for (std::size_t s = 0; s < size(); ++s) {
    const detail::device_guard guard(state_->places[s].device());
    const auto& marks = state_->lanes[s]->marks;
    for (const auto& step : marks) {
      float done = 0;
      detail::check(cudaEventSynchronize(step.done), "cudaEventSynchronize");
      detail::check(cudaEventElapsedTime(&done, marks[0].done, step.done), "cudaEventElapsedTime");
      const std::chrono::duration<double, std::milli> given = step.given - marks[0].given;
      result[s].push_back({step.what + (" " + std::to_string(step.number)), given.count(), done});
    }
  }
  return result;
}

inline gpus::gpus() : gpus(all_devices()) {}

inline gpus::gpus(const std::vector<int>& devices) {
  std::vector<cuda> places;
  owned_streams streams;
  for (const int device : devices) {
    if (device < 0 || device >= cuda_devices()) {
      detail::raise<invalid_argument>(
          {"roost::gpus: there is no CUDA device ", device, "; devices are 0 to ", cuda_devices() - 1});
    }
    const detail::device_guard guard(device);
    streams.all.push_back(nullptr);
    detail::check(cudaStreamCreateWithFlags(&streams.all.back(), cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags");
    places.emplace_back(streams.all.back());
  }
  detail::check_shards(places.size(), "roost::gpus");
  state_ = std::make_shared<state>(std::move(places), std::move(streams));
}

inline gpus::gpus(std::vector<cuda> places) {
  detail::check_shards(places.size(), "roost::gpus");
  state_ = std::make_shared<state>(std::move(places), owned_streams());
}

}  // namespace roost
