#pragma once

// Bodies of roost/shards/rank.hpp.

#include "roost/shards/rank.hpp"

#if defined(__CUDACC__)
#include "roost/shards/detail/nccl.hpp"
#endif

namespace roost {
namespace detail {

/// A user's communicator.
template <class Place>
class communicator_transport final : public rank_transport {
 public:
  communicator_transport(communicator& all, const Place& place)
      : all_(all), place_(place), out_(all.size()), in_(all.size()) {}

  std::uint32_t rank() const override { return all_.rank(); }
  std::uint32_t size() const override { return all_.size(); }
  void all_gather(std::span<const std::uint64_t> mine, std::span<std::uint64_t> all) override {
    all_.all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  }
  std::uint64_t exchange(std::span<const piece> out, std::span<const piece> in) override {
    const std::uint32_t my = rank();
    for (std::uint32_t r = 0; r < size(); ++r) {
      if (r == my) continue;
      out_[r] = {static_cast<const std::byte*>(out[r].memory), out[r].bytes};
      in_[r] = {static_cast<std::byte*>(const_cast<void*>(in[r].memory)), in[r].bytes};
    }
    if (in[my].bytes != 0) place_.copy(const_cast<void*>(in[my].memory), out[my].memory, in[my].bytes);
    place_.synchronize();
    all_.exchange(out_, in_);
    return 0;
  }
  void wait(std::uint64_t) override {}
  void finish() override {}
  void abort() noexcept override { all_.abort(); }

 private:
  communicator& all_;
  const Place place_;
  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
};

inline void check_rank(std::uint32_t rank, std::uint32_t size) {
  check_shards(size, "roost::rank");
  if (rank < size) return;
  raise<invalid_argument>({"roost::rank: rank ", rank, " of ", size, " asked for; they count from 0"});
}

}  // namespace detail

template <class Place>
rank<Place>::rank(communicator& all, const Place& place) {
  detail::check_rank(all.rank(), all.size());
  state_ = std::make_shared<detail::rank_state<Place>>(
      place, std::make_unique<detail::communicator_transport<Place>>(all, place));
}

#if defined(__CUDACC__)
template <class Place>
rank<Place>::rank(ncclComm* all, const Place& place, std::chrono::seconds deadline)
  requires std::is_same_v<Place, cuda>
{
  auto transport = std::make_unique<detail::nccl_transport>(all, place, deadline);
  detail::check_rank(transport->rank(), transport->size());
  transport->connect();
  state_ = std::make_shared<detail::rank_state<Place>>(place, std::move(transport));
}
#endif

}  // namespace roost
