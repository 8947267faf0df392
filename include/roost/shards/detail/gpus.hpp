#pragma once

#include <chrono>
#include <memory>

#include "roost/detail/place/streams.hpp"
#include "roost/shards/detail/crew.hpp"

// A shard on each of several GPUs of one process. The copy engines of the sending GPU move the data.

#if defined(__CUDACC__)

namespace roost::detail {

/// The resources of one of several GPUs for exchanges: two lanes (streams that send data to other GPUs), a
/// stream for work concurrent with that of its place, and events.
struct gpu_lanes {
  static constexpr std::size_t tickets = 64;  // more than can be waited for at once
  static constexpr std::size_t lanes = 2;

  /// A step that has been queued on a stream.
  struct mark {
    const char* what;
    std::uint32_t number;
    std::chrono::steady_clock::time_point given;
    owned_event done;
  };

  owned_stream lane[lanes];
  owned_stream side = make_stream();
  owned_event ready[2] = {make_event(), make_event()};  // of data for other shards, alternating as in a crew
  owned_event arrived[tickets];
  owned_event meeting = make_event();  // of the place's stream and the side
  std::vector<mark> marks;
  bool traced = false;

  /// For the current device.
  gpu_lanes() {
    int low = 0, high = 0;  // a sending kernel must not wait for the blocks of a computing one
    check(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
    for (owned_stream& stream : lane) stream = make_stream(high);
    for (owned_event& event : arrived) event = make_event();
  }

  const owned_event& arrival(std::uint64_t ticket) const { return arrived[ticket % tickets]; }
  /// Waits for all streams, whether or not they have failed.
  void finish() const noexcept {
    for (const owned_stream* stream : {&lane[0], &lane[1], &side})
      static_cast<void>(cudaStreamSynchronize(stream->get()));
  }
};

/// One of several GPUs of this process.
class gpu_shard : public crew_shard {
  using all_lanes = std::vector<std::unique_ptr<gpu_lanes>>;

 public:
  using place_type = cuda;

  gpu_shard(crew& all, std::uint32_t number, const std::vector<cuda>& places, const all_lanes& lanes)
      : crew_shard(all, number),
        places_(places),
        lanes_(lanes),
        mine_(*lanes[number]),
        side_(mine_.side.get(), places[number].memory()) {}

  const cuda& place() const { return on_side_ ? side_ : places_[number_]; }

  // Kernels that do not wait for each other: one begins while the last teams of another are still running.

  /// After this, turn(k) makes place() alternate between two streams with the same memory, until join(). Both
  /// run after all work queued on the place so far.
  void fork() { run_after(side_.stream(), places_[number_].stream(), mine_.meeting); }
  void turn(std::uint32_t k) { on_side_ = k % 2 != 0; }
  /// From here on the place's work runs after all work of both streams.
  void join() {
    on_side_ = false;
    run_after(place().stream(), side_.stream(), mine_.meeting);
  }

  /// Sends out[s] to shard s and receives in[s] from it, after the work queued on the place's stream so far.
  /// Data of one lane arrives in order.
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int lane) {
    const std::uint64_t which = (exchanges_ + 1) % 2;
    record_event(mine_.ready[which], place().stream());
    const std::vector<void*> targets = show(in);
    queued_by_all_ = exchanges_ - 1;
    const cudaStream_t stream = mine_.lane[lane].get();
    const auto wait_for_shard = [&](std::uint32_t s) { wait_for_event(stream, lanes_[s]->ready[which]); };
    wait_for_shard(number_);
    for (std::uint32_t i = 0; i < count(); ++i) {
      const std::uint32_t s = (number_ + i) % count();  // so that not all send to the same one at once
      if (out[s].bytes == 0) continue;
      if (s != number_) wait_for_shard(s);
      check(cudaMemcpyPeerAsync(targets[s], places_[s].device(), out[s].memory, place().device(),
                                out[s].bytes, stream),
            "cudaMemcpyPeerAsync");
    }
    record_event(mine_.arrival(exchanges_), stream);
    last_exchange_[lane] = exchanges_;
    return exchanges_;
  }

  /// Lets the place's stream wait for the data of an exchange.
  void wait(std::uint64_t ticket) {
    if (ticket > queued_by_all_) {
      all_->meet();
      queued_by_all_ = exchanges_;
    }
    for (const auto& theirs : lanes_) wait_for_event(place().stream(), theirs->arrival(ticket));
  }

  void settle() {
    for (std::size_t lane = 0; lane < gpu_lanes::lanes; ++lane) {  // others have received what it has sent
      const std::uint64_t last = last_exchange_[lane];
      if (last == 0) continue;
      if (cudaStreamWaitEvent(place().stream(), mine_.arrival(last).get()) == cudaSuccess) continue;
      static_cast<void>(cudaGetLastError());  // then the host waits; other calls report what has failed there
      static_cast<void>(cudaStreamSynchronize(mine_.lane[lane].get()));
    }
    all_->pass(number_);
  }

  void leave(bool failed) {
    if (failed) {
      all_->fail();
    } else if (queued_by_all_ != exchanges_) {  // if others wait for the last exchange, they meet: see wait()
      try {
        all_->meet();
      } catch (const stopped_by_another&) {
      }
    }
    on_side_ = false;
    mine_.finish();
    static_cast<void>(cudaStreamSynchronize(place().stream()));
    all_->leave(number_);
    for (const auto& theirs : lanes_) theirs->finish();  // they may still send
  }

  /// Records that step k has been queued on the place's stream, or on a lane.
  void mark(const char* what, std::uint32_t k = 0, int lane = -1) {
    if (!mine_.traced) return;
    mine_.marks.push_back({what, k, std::chrono::steady_clock::now(), make_event(cudaEventDefault)});
    record_event(mine_.marks.back().done, lane < 0 ? place().stream() : mine_.lane[lane].get());
  }

 private:
  const std::vector<cuda>& places_;
  const all_lanes& lanes_;
  gpu_lanes& mine_;
  const cuda side_;
  bool on_side_ = false;
  std::uint64_t last_exchange_[gpu_lanes::lanes] = {};
  std::uint64_t queued_by_all_ = 0;  // exchanges, on the lanes
};

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

}  // namespace roost::detail

#endif  // __CUDACC__
