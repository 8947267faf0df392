#pragma once

#include "roost/shards/detail/gpus.hpp"
#include "roost/shards/detail/ranks.hpp"

// Ranks of an NCCL communicator.

#if defined(__CUDACC__)

#include <dlfcn.h>

namespace roost::detail {

/// The required calls of NCCL, from the library that the process has loaded, or else from libnccl.so.2.
class nccl {
 public:
  enum result { success = 0, in_progress = 7 };
  static constexpr int bytes = 0;  // ncclInt8

  /// Throws device_error if there is no NCCL.
  static const nccl& instance() {
    static const nccl all;
    return all;
  }

  /// The identity of a new communicator, which one rank sends to all others.
  struct identity {
    char bytes[128];
  };
  /// The beginning of ncclConfig_t as of version 2.14; later members keep their defaults.
  struct config {
    std::size_t size = sizeof(config);
    unsigned magic = 0xcafebeef, version = 21400;
    int blocking = 0, unused = 0;
  };
  int (*const group_start)() = find("ncclGroupStart");
  int (*const group_end)() = find("ncclGroupEnd");
  int (*const send)(const void*, std::size_t, int type, int peer, ncclComm*, cudaStream_t) = find("ncclSend");
  int (*const receive)(void*, std::size_t, int type, int peer, ncclComm*, cudaStream_t) = find("ncclRecv");
  int (*const async_error)(ncclComm*, int*) = find("ncclCommGetAsyncError");
  int (*const abort)(ncclComm*) = find("ncclCommAbort");
  int (*const count)(const ncclComm*, int*) = find("ncclCommCount");
  int (*const user_rank)(const ncclComm*, int*) = find("ncclCommUserRank");
  int (*const device)(const ncclComm*, int*) = find("ncclCommCuDevice");
  const char* (*const error_string)(int) = find("ncclGetErrorString");
  int (*const new_identity)(identity*) = find("ncclGetUniqueId");
  int (*const new_rank)(ncclComm**, int size, identity, int rank,
                        const config*) = find("ncclCommInitRankConfig");

 private:
  nccl() = default;

  struct symbol {
    void* address;
    template <class F>
    operator F*() const {
      return reinterpret_cast<F*>(address);
    }
  };
  static symbol find(const char* name) {
    void* address = dlsym(RTLD_DEFAULT, name);
    if (address == nullptr) {
      // The loaded one, if any: two libraries would not know each other's communicators.
      static void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) address = dlsym(library, name);
    }
    if (address == nullptr) {
      raise<device_error>({"roost::rank: there is no ", name,
                           " in this process or in libnccl.so.2; link NCCL, or put it on LD_LIBRARY_PATH"});
    }
    return {address};
  }
};

/// A new non-blocking communicator of the current device: for groups without one.
class nccl_communicator {
 public:
  /// All ranks create it at the same time, with the result of new_identity() of one of them. Throws
  /// device_error.
  nccl_communicator(const nccl::identity& identity, std::uint32_t rank, std::uint32_t size,
                    std::chrono::seconds deadline) {
    const nccl& library = nccl::instance();
    const nccl::config config;
    int state = library.new_rank(&all_, static_cast<int>(size), identity, static_cast<int>(rank), &config);
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (state == nccl::in_progress && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      const int status = library.async_error(all_, &state);
      if (status != nccl::success) state = status;
    }
    if (state == nccl::success) return;
    abort();
    raise<device_error>(
        {"roost::rank: rank ", rank, " of ", size, " gets no communicator of NCCL: ",
         state == nccl::in_progress ? "others did not come in time" : library.error_string(state)});
  }
  nccl_communicator(const nccl_communicator&) = delete;

  static nccl::identity new_identity() {
    nccl::identity identity;
    const int status = nccl::instance().new_identity(&identity);
    if (status != nccl::success) {
      raise<device_error>(
          {"roost::rank: NCCL begins no communicator: ", nccl::instance().error_string(status)});
    }
    return identity;
  }
  ncclComm* get() const { return all_; }
  /// Aborts it without waiting for others; must not be called if a rank has already aborted it
  /// (rank::broken()).
  void abort() noexcept {
    if (all_ != nullptr) static_cast<void>(nccl::instance().abort(std::exchange(all_, nullptr)));
  }

 private:
  ncclComm* all_ = nullptr;
};

/// Data is sent on a separate stream. The host waits for it and checks for errors, so that nothing waits for
/// a rank that is gone.
class nccl_transport final : public rank_transport {
  using clock = std::chrono::steady_clock;

 public:
  nccl_transport(ncclComm* all, const cuda& place, std::chrono::seconds deadline)
      : nccl_(nccl::instance()), all_(all), place_(place), deadline_(deadline) {
    const device_guard guard(place.device());
    int device = 0;
    check_call(nccl_.count(all, &size_), "ncclCommCount");
    check_call(nccl_.user_rank(all, &rank_), "ncclCommUserRank");
    check_call(nccl_.device(all, &device), "ncclCommCuDevice");
    if (device != place.device()) {
      raise<invalid_argument>({"roost::rank: a communicator of CUDA device ", device,
                               " with a place on device ", place.device(), "; give a place on its device"});
    }
    lanes_ = std::make_unique<gpu_lanes>();
    words_ = {place, rank_words(size()) * (size() + 1)};
    place.synchronize();
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, words_.bytes(), cudaHostAllocDefault), "cudaHostAlloc");
    pinned_ = static_cast<std::uint64_t*>(memory);
  }
  nccl_transport(const nccl_transport&) = delete;
  ~nccl_transport() override {
    if (pinned_ != nullptr) static_cast<void>(cudaFreeHost(pinned_));
  }

  /// Connects the ranks, which would otherwise happen at the first send: a blocking communicator has no
  /// deadline there.
  void connect() {
    std::vector<std::uint64_t> all(size());
    all_gather(std::span(all.data(), 1), all);
  }

  std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(size_); }

  void all_gather(std::span<const std::uint64_t> mine, std::span<std::uint64_t> all) override {
    std::uint64_t* const theirs = words_.data() + mine.size();
    std::copy(mine.begin(), mine.end(), pinned_);
    copy_on(stream(), words_.data(), pinned_, mine.size_bytes());
    std::vector<piece> out(size(), {words_.data(), mine.size_bytes()}), in(size());
    for (std::uint32_t r = 0; r < size(); ++r) in[r] = {theirs + r * mine.size(), mine.size_bytes()};
    start(out, in);
    copy_on(stream(), pinned_, theirs, all.size_bytes());
    wait_for(record());
    std::copy_n(pinned_, all.size(), all.begin());
  }

  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in) override {
    run_after(stream(), place_.stream(), lanes_->ready[0]);
    start(out, in);
    return record();
  }
  void wait(std::uint64_t ticket) override {
    wait_for(ticket);
    wait_for_event(place_.stream(), lanes_->arrival(ticket));
  }
  void finish() override {
    if (all_ != nullptr) wait_for(record());
  }
  void abort() noexcept override {
    if (all_ != nullptr) static_cast<void>(nccl_.abort(std::exchange(all_, nullptr)));
  }

 private:
  cudaStream_t stream() const { return lanes_->lane[0].get(); }
  std::uint64_t record() {
    record_event(lanes_->arrival(++tickets_), stream());
    return tickets_;
  }

  /// One group of sends and receives.
  void start(std::span<const piece> out, std::span<const piece> in) {
    const auto my = static_cast<std::uint32_t>(rank_);
    if (in[my].bytes != 0) copy_on(stream(), in[my].target(), out[my].memory, in[my].bytes);
    check_call(nccl_.group_start(), "ncclGroupStart");
    int status = nccl::success;
    const auto note = [&](int result) {
      if (status == nccl::success && result != nccl::in_progress) status = result;
    };
    for (std::uint32_t i = 1; i < size(); ++i) {
      const std::uint32_t to = (my + i) % size(), from = (my + size() - i) % size();
      if (out[to].bytes != 0) {
        note(nccl_.send(out[to].memory, out[to].bytes, nccl::bytes, static_cast<int>(to), all_, stream()));
      }
      if (in[from].bytes != 0) {
        note(nccl_.receive(in[from].target(), in[from].bytes, nccl::bytes, static_cast<int>(from), all_,
                           stream()));
      }
    }
    note(nccl_.group_end());
    check_call(status, "ncclSend and ncclRecv");
    const auto end = clock::now() + deadline_;  // a non-blocking communicator starts later
    while (asynchronous_error() == nccl::in_progress) pause_until(end);
  }

  /// The state of the communicator; an error ends it.
  int asynchronous_error() {
    int state = nccl::success;
    check_call(nccl_.async_error(all_, &state), "ncclCommGetAsyncError");
    if (state != nccl::in_progress) check_call(state, "what it has begun");
    return state;
  }
  void wait_for(std::uint64_t ticket) {
    const auto end = clock::now() + deadline_;
    for (std::uint32_t looks = 1;; ++looks) {
      const cudaError_t state = cudaEventQuery(lanes_->arrival(ticket).get());
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) check(state, "cudaEventQuery");
      if (looks % 64 != 0) continue;
      asynchronous_error();
      pause_until(end);
    }
  }
  void pause_until(clock::time_point end) {
    if (clock::now() < end) return std::this_thread::yield();
    abort();
    raise<device_error>({"roost::rank: rank ", rank_, " of ", size_, " has waited ",
                         static_cast<long long>(deadline_.count()),
                         " s for data of others; one of them has ended, or makes another call"});
  }
  void check_call(int result, const char* what) {
    if (result == nccl::success) return;
    abort();
    raise<device_error>({"roost::rank: rank ", rank_, " of ", size_, ": NCCL says of ", what, ": ",
                         nccl_.error_string(result)});
  }

  const nccl& nccl_;
  ncclComm* all_;
  const cuda place_;
  const std::chrono::seconds deadline_;
  int rank_ = 0, size_ = 0;
  std::unique_ptr<gpu_lanes> lanes_;
  std::uint64_t tickets_ = 0;
  array<std::uint64_t, cuda> words_;  // shared with all ranks
  std::uint64_t* pinned_ = nullptr;   // the same in memory of the host
};

}  // namespace roost::detail

#endif  // __CUDACC__
