#pragma once

#include "roost/shards/detail/nccl.hpp"
#include "roost/shards/detail/ranks.hpp"
#include "roost/shards/shards.hpp"

/// \file
/// roost::rank: one process of several, on one machine or on many, as a place for sharded tables.

namespace roost {

/// How the processes of a group exchange bytes. Derive a class that calls MPI, torch.distributed or whatever
/// has started the processes. (For NCCL this exists: roost::rank takes an ncclComm_t.)
///
/// All ranks call the same members in the same order. If a member throws, the call of roost throws that
/// exception, and the rank can no longer be used. When another process is gone, a member must throw, not wait
/// forever: use the deadlines of the transport.
class communicator {
 public:
  virtual ~communicator() = default;

  /// The number of this process, and how many there are, 1 to 64.
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;

  /// Sets `all` to the bytes `mine` of rank 0, then those of rank 1, and so on: some hundred bytes each, in
  /// host memory. Returns when all have arrived.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  /// Sends out[r] to rank r and receives in[r] from it; in[r] is as long as what that rank sends. Both may be
  /// empty, and out[rank()] and in[rank()] are. The spans are in memory of the place, whose earlier work has
  /// finished. Returns when all data has arrived and `out` may be changed.
  virtual void exchange(std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in) = 0;

  /// Called when this rank has failed while others wait for its data: makes their calls throw, if it can.
  virtual void abort() noexcept {}
};

/// This process as one of several with one shard each, on any number of machines: a place for sharded tables
/// (shards.hpp).
///
///     roost::rank all(communicator, roost::host());  // a roost::communicator
///     roost::rank gpus(nccl, roost::cuda{stream});   // an ncclComm_t: one GPU a process
///     roost::sharded_map map(all, keys, values);     // a range of this process
///     map.find(all, queries, results, 0);            // results: of this process's queries
///
/// Ranges and results are plain ranges of this process. Every process must make the same calls in the same
/// order with the same options; each call waits for all processes. Answers are those of one table that was
/// built from all ranges, that of rank 0 first. There are no refs, and path::direct means path::regional.
///
/// If a rank throws, because memory ran out or arguments are invalid, the call throws on all ranks: that
/// exception there, and on the others a rank_error with its number and message. Tables are unchanged, and the
/// next call works. If a rank terminates, or fails while data is in transit, the others get an exception of
/// the transport within its deadline, and all later calls throw roost::error.
///
/// Copies share the state. Several threads may use it, one call at a time, but all processes must make their
/// calls in the same order.
template <class Place>
class rank {
 public:
  using place_type = Place;
  using shard_type = detail::rank_shard<Place>;
  static constexpr bool one_a_process = true;

  /// `all` must outlive all copies of this. Throws invalid_argument.
  rank(communicator& all, const Place& place) {
    detail::check_rank(all.rank(), all.size());
    state_ = std::make_shared<detail::rank_state<Place>>(
        place, std::make_unique<detail::communicator_transport<communicator, Place>>(all, place));
  }

#if defined(__CUDACC__)
  /// Ranks of an NCCL communicator. You keep its ownership: it must outlive all copies of this, and nothing
  /// else may use it during a call. All ranks call this constructor at the same time, to connect; if one does
  /// not, the others wait forever with a blocking communicator (ncclConfig_t::blocking = 0 makes one that
  /// does not block). `place`: of the communicator's device. `deadline`: how long data from other ranks may
  /// take. After it, or if NCCL reports an error, the communicator is aborted (so you must not destroy it;
  /// see broken()) and the call throws device_error. NCCL is not linked: it is looked up in the process, or
  /// else loaded as libnccl.so.2. Throws invalid_argument, and device_error if there is no NCCL.
  rank(ncclComm* all, const Place& place, std::chrono::seconds deadline = std::chrono::seconds(120))
    requires std::is_same_v<Place, cuda>
  {
    auto transport = std::make_unique<detail::nccl_transport>(all, place, deadline);
    detail::check_rank(transport->rank(), transport->size());
    transport->connect();
    state_ = std::make_shared<detail::rank_state<Place>>(place, std::move(transport));
  }
#endif

  /// The number of this process, and how many there are.
  std::uint32_t number() const { return state_->transport->rank(); }
  std::size_t size() const { return state_->transport->size(); }
  /// The place where this process works and has its memory.
  const Place& place() const { return state_->place; }

  /// Whether a call has failed while data was in transit. The communicator was then aborted, and all later
  /// calls fail.
  bool broken() const { return state_->broken; }

  /// Runs f(shard) on this process, as all others do: the basis of all sharded tables.
  template <class F>
  void run(const F& f) const {
    const std::lock_guard one_at_a_time(state_->running);
    const detail::current_device<Place> guard(place());
    shard_type me(*state_);
    me.run(f);
  }

 private:
  std::shared_ptr<detail::rank_state<Place>> state_;
};

#if defined(__CUDACC__)
rank(ncclComm*, const cuda&) -> rank<cuda>;
rank(ncclComm*, const cuda&, std::chrono::seconds) -> rank<cuda>;
#endif

}  // namespace roost
