#pragma once

#include <numeric>
#include <string>

#include "roost/shards/detail/gpus.hpp"
#include "roost/shards/shards.hpp"

#if defined(__CUDACC__)

namespace roost {

/// A step of a lookup on several GPUs: when the host had queued it, and when the GPU had finished it, in
/// milliseconds since the call began on that GPU.
struct gpu_step {
  std::string what;
  double given, done;
};

/// Several GPUs of this machine in one process, with one shard and one host thread for each.
///
///     roost::gpus all;  // every CUDA device
///     roost::gpus two({0, 1});
///     std::array keys{roost::copy_to(two[0], half), roost::copy_to(two[1], other_half)};
///     roost::sharded_map map(two, keys, values);
///
/// The copy engines of the GPUs move data between them, over NVLink where it is present. GPUs that cannot
/// access each other's memory (see can_access()) exchange data through host memory, which is slower. Only the
/// default pool of a GPU is made accessible to the others: memory resources of your own must do this
/// themselves.
///
/// Copies share threads and streams. May be used by several threads at once.
class gpus {
 public:
  using place_type = cuda;
  using shard_type = detail::gpu_shard;

  /// Every CUDA device, each with a stream of its own. Throws device_error if there is none.
  gpus() : gpus(all_devices()) {}
  /// These CUDA devices. A device that is listed more than once has several shards. Throws invalid_argument,
  /// device_error.
  explicit gpus(const std::vector<int>& devices) {
    std::vector<cuda> places;
    std::vector<detail::owned_stream> streams;
    for (const int device : devices) {
      if (device < 0 || device >= cuda_devices()) {
        detail::raise<invalid_argument>(
            {"roost::gpus: there is no CUDA device ", device, "; devices are 0 to ", cuda_devices() - 1});
      }
      const detail::device_guard guard(device);
      streams.push_back(detail::make_stream());
      places.emplace_back(streams.back().get());
    }
    state_ = std::make_shared<state>(std::move(places), std::move(streams));
  }
  explicit gpus(std::initializer_list<int> devices) : gpus(std::vector<int>(devices)) {}
  /// The devices of these places, with their streams and memory resources: calls run after the work already
  /// queued on the streams.
  explicit gpus(std::vector<cuda> places)
      : state_(std::make_shared<state>(std::move(places), std::vector<detail::owned_stream>())) {}

  /// How many GPUs there are.
  std::size_t size() const { return state_->places.size(); }
  /// The place of a shard: its device, and a stream of it.
  const cuda& operator[](std::size_t shard) const { return state_->places[shard]; }

  /// Whether one shard's GPU can read and write memory of another's directly.
  bool can_access(std::size_t shard, std::size_t other) const {
    return state_->access[shard * size() + other] != 0;
  }
  /// Whether all can access each other.
  bool all_readable() const {
    return std::find(state_->access.begin(), state_->access.end(), 0) == state_->access.end();
  }

  /// Waits for the streams of all shards.
  void synchronize() const {
    for (const cuda& place : state_->places) place.synchronize();
  }

  /// Starts or stops recording the steps of bulk lookups, and clears those recorded so far. For finding lost
  /// time: `roost bench --timeline` prints them. Must not overlap with other calls. Throws device_error.
  void trace(bool on) const {
    synchronize();
    for (const auto& lanes : state_->lanes) {
      lanes->marks.clear();
      lanes->traced = on;
    }
  }
  /// The steps of each GPU since trace(true). Waits for them. Throws device_error.
  std::vector<std::vector<gpu_step>> steps() const {
    std::vector<std::vector<gpu_step>> result(size());
    for (std::size_t s = 0; s < size(); ++s) {
      const detail::device_guard guard(state_->places[s].device());
      const auto& marks = state_->lanes[s]->marks;
      for (const auto& step : marks) {
        float done = 0;
        detail::check(cudaEventSynchronize(step.done.get()), "cudaEventSynchronize");
        detail::check(cudaEventElapsedTime(&done, marks[0].done.get(), step.done.get()),
                      "cudaEventElapsedTime");
        const std::chrono::duration<double, std::milli> given = step.given - marks[0].given;
        result[s].push_back({step.what + (" " + std::to_string(step.number)), given.count(), done});
      }
    }
    return result;
  }

  /// Runs f(shard) for all shards at once, each in its own thread, with the shard's device current: the basis
  /// of all sharded tables.
  template <class F>
  void run(const F& f) const {
    state_->threads.run([&](std::uint32_t number) {
      const detail::device_guard guard(state_->places[number].device());
      detail::gpu_shard me(state_->threads, number, state_->places, state_->lanes);
      f(me);
    });
  }

 private:
  struct state {
    static constexpr int patience = 100;  // spins for about as long as a thread takes to wake up

    state(std::vector<cuda> all, std::vector<detail::owned_stream> mine)
        : streams(std::move(mine)),
          places(std::move(all)),
          threads(static_cast<std::uint32_t>(detail::check_shards(places.size(), "roost::gpus")), patience) {
      for (const cuda& place : places) {
        for (const cuda& other : places)
          access.push_back(detail::enable_access(place.device(), other.device()) ? 1 : 0);
        const detail::device_guard guard(place.device());
        lanes.push_back(std::make_unique<detail::gpu_lanes>());
      }
    }

    std::vector<detail::owned_stream> streams;  // destroyed last
    std::vector<cuda> places;
    std::vector<char> access;  // [from * count + to]
    std::vector<std::unique_ptr<detail::gpu_lanes>> lanes;
    detail::crew threads;
  };

  static std::vector<int> all_devices() {
    std::vector<int> result(static_cast<std::size_t>(cuda_devices()));
    std::iota(result.begin(), result.end(), 0);
    if (result.empty()) {
      detail::raise<device_error>(
          {"roost::gpus: no CUDA device can be used here; use roost::host_shards, or check the driver with "
           "nvidia-smi"});
    }
    return result;
  }

  std::shared_ptr<state> state_;
};

}  // namespace roost

#endif  // __CUDACC__
