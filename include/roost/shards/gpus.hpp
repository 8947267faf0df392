#pragma once

#include <chrono>
#include <string>

#include "roost/shards/shards.hpp"

#if defined(__CUDACC__)

namespace roost {

namespace detail {

/// What a GPU of several has for exchanges: two lanes, streams on which data go to others, a stream for work
/// beside that of its place, and events.
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
  cudaEvent_t ready[2] = {};  // of what others get, in turns as those of a crew
  cudaEvent_t arrived[tickets] = {};
  cudaEvent_t turn = nullptr;  // where the place's stream and the side meet

  /// A step that has been given to a stream.
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

/// A GPU of several of this process. Copy engines of the GPU that sends move the data.
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

  // Kernels that do not wait for each other: one begins while the last teams of another are at work.

  /// After this, turn(k) makes place() one of two with the same memory, in turns, until join(). Both come
  /// after all that the place has to do so far.
  void fork();
  void turn(std::uint32_t k) { on_side_ = k % 2 != 0; }
  /// Now the place comes after all that both have to do.
  void join();

  /// out[s] goes to shard s, in[s] comes from it, after what the place's stream has to do so far. Data of one
  /// lane arrive in order.
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in, int lane);
  /// Lets the place's stream wait for what an exchange brings.
  void wait(std::uint64_t ticket);
  void settle();
  void leave(bool failed);
  /// Number k of some steps has been given to the place's stream, or to a lane.
  void mark(const char* what, std::uint32_t k = 0, int lane = -1);

 private:
  const std::vector<cuda>& places_;
  const std::vector<std::unique_ptr<gpu_lanes>>& lanes_;
  const cuda side_;
  bool on_side_ = false;
  std::uint64_t last_[gpu_lanes::lanes] = {};  // exchange of a lane
  std::uint64_t given_ = 0;                    // exchanges that all shards have given to their lanes
};

}  // namespace detail

/// A step of a lookup on several GPUs: when the host had given it to a GPU, and when the GPU had done it, in
/// milliseconds since the call began there.
struct gpu_step {
  std::string what;
  double given, done;
};

/// Several GPUs of this machine, one process: a shard on each. A thread for each GPU gives it work.
///
///     roost::gpus all;                       // every CUDA device
///     roost::gpus two({0, 1});
///     auto keys = std::vector{roost::copy_to(two[0], half), roost::copy_to(two[1], other_half)};
///     roost::sharded_map map(two, keys, values);
///
/// Data travel between GPUs by their copy engines, over NVLink where there is some. GPUs that cannot access
/// each other's memory exchange data through host memory, which is slower; can_access() tells. Only the
/// memory of a GPU's default pool is made accessible to others: where places have memory resources of their
/// own, those must have seen to it.
///
/// Copies share threads and streams. May be used by several threads at once.
class gpus {
 public:
  using place_type = cuda;
  using shard_type = detail::gpu_shard;

  /// Every CUDA device, each with a stream of its own. Throws device_error if there is none.
  gpus();
  /// These CUDA devices. One device may stand in the list several times, and then has several shards. Throws
  /// invalid_argument, device_error.
  explicit gpus(const std::vector<int>& devices);
  explicit gpus(std::initializer_list<int> devices) : gpus(std::vector<int>(devices)) {}
  /// The devices of these places, with their streams and memory resources: calls come after what the streams
  /// have to do before.
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

  /// From now on bulk lookups note their steps, or do so no longer; forgets those that were noted. For
  /// whoever looks for lost time: `roost bench --timeline` prints them. Not beside other calls. Throws
  /// device_error.
  void trace(bool on) const;
  /// The steps of each GPU since trace(true). Waits for them. Throws device_error.
  std::vector<std::vector<gpu_step>> steps() const;

  /// f(shard) for all shards at once, each by a thread of its own whose current device is the shard's: what
  /// sharded tables stand on.
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
    static constexpr int patience = 100;  // about as long as a thread takes to wake up

    state(std::vector<cuda> all, owned_streams mine);

    owned_streams streams;  // goes last
    std::vector<cuda> places;
    std::vector<char> access;  // of each to each
    std::vector<std::unique_ptr<detail::gpu_lanes>> lanes;
    detail::crew threads;
  };

  static std::vector<int> all_devices();

  std::shared_ptr<state> state_;
};

}  // namespace roost

#include "roost/shards/detail/gpus.hpp"

#endif  // __CUDACC__
