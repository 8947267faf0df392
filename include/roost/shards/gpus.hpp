#pragma once

#include <chrono>
#include <string>

#include "roost/shards/shards.hpp"

#if defined(__CUDACC__)

namespace roost {

namespace detail {

/// The resources of one of several GPUs for exchanges: two lanes (streams that send data to other GPUs), a
/// stream for work concurrent with that of its place, and events.
class gpu_lanes {
 public:
  static constexpr std::size_t tickets = 64;  // more than can be waited for at once
  static constexpr std::size_t lanes = 2;

  /// Of the device that is current.
  gpu_lanes();
  ~gpu_lanes();
  gpu_lanes(const gpu_lanes&) = delete;
  gpu_lanes& operator=(const gpu_lanes&) = delete;

  cudaStream_t lane[lanes] = {};
  cudaStream_t side = nullptr;
  cudaEvent_t ready[2] = {};  // of data for other shards, alternating as those of a crew
  cudaEvent_t arrived[tickets] = {};
  cudaEvent_t turn = nullptr;  // where the place's stream and the side meet

  /// A step that has been queued on a stream.
  struct mark {
    const char* what;
    std::uint32_t number;
    std::chrono::steady_clock::time_point given;
    cudaEvent_t done;
  };
  std::vector<mark> marks;
  bool traced = false;
  void forget_marks() noexcept;

 private:
  void destroy() noexcept;
};

/// One of several GPUs of this process. The copy engines of the sending GPU move the data.
class gpu_shard : public crew_shard {
 public:
  using place_type = cuda;

  gpu_shard(crew& all, std::uint32_t number, const std::vector<cuda>& places,
            const std::vector<std::unique_ptr<gpu_lanes>>& lanes)
      : crew_shard(all, number),
        places_(places),
        lanes_(lanes),
        side_(lanes[number]->side, places[number].memory()) {}

  const cuda& place() const { return on_side_ ? side_ : places_[number_]; }

  // Kernels that do not wait for each other: one begins while the last teams of another are still running.

  /// After this, turn(k) makes place() alternate between two streams with the same memory, until join(). Both
  /// run after all work queued on the place so far.
  void fork();
  void turn(std::uint32_t k) { on_side_ = k % 2 != 0; }
  /// From here on the place's work runs after all work of both streams.
  void join();

  /// Sends out[s] to shard s and receives in[s] from it, after the work queued on the place's stream so far.
  /// Data of one lane arrives in order.
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int lane);
  /// Lets the place's stream wait for the data of an exchange.
  void wait(std::uint64_t ticket);
  void settle();
  void leave(bool failed);
  /// Records that step k has been queued on the place's stream, or on a lane.
  void mark(const char* what, std::uint32_t k = 0, int lane = -1);

 private:
  const std::vector<cuda>& places_;
  const std::vector<std::unique_ptr<gpu_lanes>>& lanes_;
  const cuda side_;
  bool on_side_ = false;
  std::uint64_t last_[gpu_lanes::lanes] = {};  // last exchange of each lane
  std::uint64_t given_ = 0;                    // exchanges that all shards have queued on their lanes
};

}  // namespace detail

/// A step of a lookup on several GPUs: when the host had queued it, and when the GPU had finished it, in
/// milliseconds since the call began on that GPU.
struct gpu_step {
  std::string what;
  double given, done;
};

/// Several GPUs of this machine in one process, with one shard and one host thread for each.
///
///     roost::gpus all;                       // every CUDA device
///     roost::gpus two({0, 1});
///     auto keys = std::vector{roost::copy_to(two[0], half), roost::copy_to(two[1], other_half)};
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
  gpus();
  /// These CUDA devices. A device that is listed several times has several shards. Throws invalid_argument,
  /// device_error.
  explicit gpus(const std::vector<int>& devices);
  explicit gpus(std::initializer_list<int> devices) : gpus(std::vector<int>(devices)) {}
  /// The devices of these places, with their streams and memory resources: calls run after the work already
  /// queued on the streams.
  explicit gpus(std::vector<cuda> places);

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
  void trace(bool on) const;
  /// The steps of each GPU since trace(true). Waits for them. Throws device_error.
  std::vector<std::vector<gpu_step>> steps() const;

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
  struct owned_streams {
    std::vector<cudaStream_t> all;
    owned_streams() = default;
    owned_streams(owned_streams&&) = default;
    ~owned_streams() {
      for (const cudaStream_t stream : all) static_cast<void>(cudaStreamDestroy(stream));
    }
  };
  struct state {
    static constexpr int patience = 100;  // spins for about as long as a thread takes to wake up

    state(std::vector<cuda> all, owned_streams mine);

    owned_streams streams;  // destroyed last
    std::vector<cuda> places;
    std::vector<char> access;  // [from * count + to]
    std::vector<std::unique_ptr<detail::gpu_lanes>> lanes;
    detail::crew threads;
  };

  static std::vector<int> all_devices();

  std::shared_ptr<state> state_;
};

}  // namespace roost

#include "roost/shards/detail/gpus.hpp"

#endif  // __CUDACC__
