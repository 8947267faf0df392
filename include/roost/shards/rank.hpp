#pragma once

#include "roost/shards/detail/rank_shard.hpp"
#include "roost/shards/shards.hpp"

/// \file
/// roost::rank: one process of several, on one machine or on many, as a place for sharded tables.

namespace roost {

/// How the processes of a group exchange bytes. roost has no transport of its own: derive a class from this
/// one that calls MPI, torch.distributed or whatever has started the processes. (For NCCL there is one:
/// roost::rank takes an ncclComm_t.)
///
/// All ranks call the same members in the same order. A member that throws ends the call of roost that it
/// belongs to with that exception, and the rank is of no use any more. So a member shall throw, not wait for
/// ever, when another process is gone: use the deadlines of what it stands on.
class communicator {
 public:
  virtual ~communicator() = default;

  /// The number of this process, and how many there are, 1 to 64.
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;

  /// all = what rank 0 gives, then what rank 1 gives, and so on: some hundred bytes each, in memory of the
  /// host. Returns when all have come.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  /// Sends out[r] to rank r and receives in[r] from it, which is as long as what that rank sends; both may be
  /// empty, and out[rank()] and in[rank()] are. In memory of the place, for which it has nothing else to do.
  /// Returns when all has come and `out` may change.
  virtual void exchange(std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in) = 0;

  /// This rank has failed where others wait for its data: makes theirs throw, if it can.
  virtual void abort() noexcept {}
};

/// This process as one of several that have a shard each: a place for sharded tables (shards.hpp) of any
/// number of machines.
///
///     roost::rank all(communicator, roost::host());        // a roost::communicator, of any transport
///     roost::rank all(nccl, roost::cuda{stream});          // an ncclComm_t: one GPU a process
///     roost::sharded_map map(all, keys, values);           // keys: a range, in memory of this process
///     map.find(all, queries, results, 0);                  // results: of this process's queries
///
/// Ranges and results are plain ones, of this process. Every process must make the same calls in the same
/// order with the same options; each call waits for all. Answers are those of one table that was given all
/// ranges, that of rank 0 first. There are no refs, and path::direct is path::regional.
///
/// If a rank throws, because memory is out or arguments make no sense, the call throws on all ranks: there
/// that exception, and rank_error, with its number and message, on the others. Tables are as they were, and
/// the next call works. Where a rank ends, or fails while data are on their way, others get an exception of
/// the transport, within its deadline, and all later calls throw roost::error.
///
/// Copies share the state. May be used by several threads, one call after the other, but all processes must
/// make their calls in the same order.
template <class Place>
class rank {
 public:
  using place_type = Place;
  using shard_type = detail::rank_shard<Place>;
  static constexpr bool one_a_process = true;

  /// `all` must outlive all copies of this. Throws invalid_argument.
  rank(communicator& all, const Place& place);

#if defined(__CUDACC__)
  /// Ranks of an NCCL communicator, which stays the user's: it must outlive all copies of this, and nobody
  /// else may use it during a call. All ranks make this at once, to connect; if one does not come, those of a
  /// communicator that blocks wait for ever (ncclConfig_t::blocking = 0 makes one that does not). `place`: of
  /// the communicator's device. `deadline`: how long data may take that others send; after it, or if NCCL
  /// reports an error, the communicator is aborted (so that you must not destroy it; see broken()) and the
  /// call throws device_error. NCCL is not linked, but looked for in the process, and else loaded as
  /// libnccl.so.2. Throws invalid_argument, and device_error if there is no NCCL.
  rank(ncclComm* all, const Place& place, std::chrono::seconds deadline = std::chrono::seconds(120))
    requires std::is_same_v<Place, cuda>;
#endif

  /// The number of this process, and how many there are.
  std::uint32_t number() const { return state_->transport->rank(); }
  std::size_t size() const { return state_->transport->size(); }
  /// Where this process works and has its memory.
  const Place& place() const { return state_->place; }

  /// Whether a call has failed while data were on their way, so that no later one works. The communicator was
  /// aborted.
  bool broken() const { return state_->broken; }

  /// f(shard) on this process, as on all others: what sharded tables stand on.
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

#include "roost/shards/detail/rank.hpp"
