#pragma once

#include "roost/stadium/stadium_map.hpp"

// The cuckoo table that Khorasani et al. compare Stadium hashing with (section II): the one of Alcantara et
// al. 2011, in memory of a GPU or pinned memory of the host.

namespace roost::bench {

/// One table of 64-bit slots, 32 + 32 bits, and four hash functions. An insert swaps its pair into the key's
/// first slot, moves the evicted pair to the next of its slots, and so on; the slot of a pair shows which
/// function put it there. Lookups read up to four slots. They must not run during inserts: an evicted pair is
/// in no slot. Keys must be distinct and new, and not all ones.
template <class Place>
class cuckoo_global {
 public:
  using key_type = std::uint32_t;
  using mapped_type = std::uint32_t;
  static constexpr std::uint32_t functions = 4;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  /// The handle for kernels.
  class ref_type {
   public:
    using key_type = std::uint32_t;
    using value_type = std::uint32_t;

    ref_type(std::uint64_t* slots, std::uint32_t capacity, std::uint32_t most_steps, std::uint64_t seed)
        : slots_(slots), capacity_(capacity), most_steps_(most_steps), seed_(seed) {}

    /// False if no slot was found for the last pair of the chain, which is then lost: build a larger table,
    /// or use another seed.
    ROOST_FN bool insert_new(std::uint32_t key, std::uint32_t value) const {
      std::uint64_t item = std::uint64_t{key} << 32 | value;
      std::uint32_t at = slot_of(key, 0);
      for (std::uint32_t step = 0; step < most_steps_; ++step) {
        item = detail::exchange(slots_[at], item);
        if (item == empty) return true;
        const auto evicted = static_cast<std::uint32_t>(item >> 32);
        std::uint32_t from = 0;
        while (from + 1 < functions && slot_of(evicted, from) != at) ++from;
        at = slot_of(evicted, (from + 1) % functions);
      }
      return false;
    }

    /// The value of a key, or nothing.
    ROOST_FN found<std::uint32_t> find(std::uint32_t key) const {
      for (std::uint32_t i = 0; i < functions; ++i) {
        const std::uint64_t here = detail::load(slots_ + slot_of(key, i));
        if (static_cast<std::uint32_t>(here >> 32) == key)
          return found<std::uint32_t>(static_cast<std::uint32_t>(here));
      }
      return {};
    }

   private:
    ROOST_FN std::uint32_t slot_of(std::uint32_t key, std::uint32_t i) const {
      return static_cast<std::uint32_t>(split_hash(hash_of(key, mix64(seed_, i)), capacity_).digit);
    }

    std::uint64_t* slots_;
    std::uint32_t capacity_, most_steps_;
    std::uint64_t seed_;
  };

  /// `capacity`: slots, fewer than 2^32. They are stored where a stadium_map's bodies would be.
  cuckoo_global(const Place& place, std::uint32_t capacity, residence slots = residence::place,
                std::uint64_t seed = 0)
      : memory_(place, capacity, slots == residence::host ? 0 : capacity), capacity_(capacity), seed_(seed) {
    clear(place);
  }

  ref_type ref() const {
    const auto most_steps = static_cast<std::uint32_t>(7 * std::bit_width(capacity_));  // CUDPP's
    return {slots(), capacity_, detail::larger(most_steps, 100u), seed_};
  }
  std::size_t capacity() const { return capacity_; }
  void clear(const Place& place) { place.fill(slots(), 0xff, capacity_ * sizeof(empty)); }

 private:
  std::uint64_t* slots() const { return memory_.near_size() == 0 ? memory_.far() : memory_.near(); }

  detail::body_memory<std::uint64_t, Place> memory_;
  std::uint32_t capacity_;
  std::uint64_t seed_;
};

}  // namespace roost::bench
