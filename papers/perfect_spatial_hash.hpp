#pragma once

#include <chrono>
#include <string>

#include "perfect_spatial_search.hpp"
#include "roost/roost.hpp"

namespace roost::bench {

template <class Ref>
struct find_each_voxel {
  Ref table;
  const std::uint32_t* queries;
  std::uint32_t* results;
  std::uint32_t missing;
  ROOST_FN void operator()(std::size_t i) const { results[i] = table.find(queries[i]).value_or(missing); }
};

/// The table of Lefebvre and Hoppe, Perfect Spatial Hashing, 2006: a key is a point p of three coordinates,
/// of 10 bits each or, if keys reach 2^30, of 11, 11 and 10; its slot is p + offset[p mod r] mod m, where m^3
/// slots hold n keys, and about n / 6 offsets ensure that no two keys share one. A lookup reads one offset
/// and one slot. Built on the host by one thread (`search_milliseconds`), looked up on the place.
///
/// As in the paper, the slot of an absent key holds another key. So slots store their keys: 32 bits each,
/// which `key_bytes` counts. Empty slots hold a key that belongs to a different slot.
template <class Place>
class perfect_spatial_hash {
 public:
  using key_type = std::uint32_t;
  using slot_type = pair<std::uint32_t, std::uint32_t>;

  class ref_type {
   public:
    ROOST_FN ref_type(const perfect_spatial_shape& shape, const std::uint32_t* offsets,
                      const slot_type* slots)
        : offsets_(offsets),
          slots_(slots),
          m_(shape.slots),
          r_(shape.offsets),
          step_(shape.step),
          bits_(shape.bits) {}

    ROOST_FN found<std::uint32_t> find(std::uint32_t key) const {
      if (slots_ == nullptr) return {};
      const std::uint32_t mask = (1u << bits_) - 1;
      const std::uint32_t x = key >> 2 * bits_, y = key >> bits_ & mask, z = key & mask;
      const std::uint32_t offset = offsets_[number(x, y, z, r_)];
      const slot_type slot = slots_[number(x + (offset & 255) * step_, y + (offset >> 8 & 255) * step_,
                                           z + (offset >> 16) * step_, m_)];
      if (slot.key != key) return {};
      return found<std::uint32_t>(slot.value);
    }
    ROOST_FN bool contains(std::uint32_t key) const { return static_cast<bool>(find(key)); }

   private:
    ROOST_FN static std::uint64_t number(std::uint32_t x, std::uint32_t y, std::uint32_t z,
                                         std::uint32_t side) {
      return (std::uint64_t{x % side} * side + y % side) * side + z % side;
    }

    const std::uint32_t* offsets_;
    const slot_type* slots_;
    std::uint32_t m_, r_, step_, bits_;
  };

  static std::string name() { return "perfect_spatial_hash"; }

  /// Throws build_error if no table is found, for example because a key occurs twice. Synchronises.
  perfect_spatial_hash(const Place& place, std::span<const std::uint32_t> keys,
                       std::span<const std::uint32_t> values, double = 0) {
    const auto keys_here = roost::copy_to_host(place, keys);
    const auto values_here = roost::copy_to_host(place, values);
    size_ = keys_here.size();
    if (size_ == 0) return;
    const auto start = std::chrono::steady_clock::now();
    const auto plan = plan_perfect_spatial(keys_here);
    if (!plan) {
      throw build_error("perfect_spatial_hash: no offsets were found for " + std::to_string(size_) +
                        " keys; is one there twice?");
    }
    shape_ = plan->shape;
    std::vector<slot_type> slots(shape_.slot_count(), slot_type{keys_here[0], values_here[0]});
    for (std::size_t i = 0; i < size_; ++i) {
      auto p = shape_.point(keys_here[i]);
      const std::uint32_t offset = plan->offsets[perfect_spatial_shape::number(p, shape_.offsets)];
      for (int a = 0; a < 3; ++a) p[a] += (offset >> 8 * a & 255) * shape_.step;
      slots[perfect_spatial_shape::number(p, shape_.slots)] = {keys_here[i], values_here[i]};
    }
    search_milliseconds_ =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    offsets_ = roost::copy_to(place, plan->offsets);
    slots_ = roost::copy_to(place, slots);
    place.synchronize();
  }

  ref_type ref() const { return {shape_, offsets_.data(), size_ == 0 ? nullptr : slots_.data()}; }
  void find(const Place& place, std::span<const std::uint32_t> queries, std::span<std::uint32_t> results,
            std::uint32_t missing) const {
    place.for_each(queries.size(), find_each_voxel<ref_type>{ref(), queries.data(), results.data(), missing});
  }

  std::size_t size() const { return size_; }
  double load_factor() const {
    return size_ == 0 ? 0 : static_cast<double>(size_) / static_cast<double>(shape_.slot_count());
  }
  /// Entries of both tables per key: 1.16 in Alcantara et al. 2009, section 5.
  double entries() const {
    return static_cast<double>(shape_.slot_count() + shape_.offset_count()) / static_cast<double>(size_);
  }
  std::size_t bytes() const { return offsets_.bytes() + slots_.bytes(); }
  std::size_t key_bytes() const { return slots_.bytes() / 2; }
  std::size_t scratch_bytes() const { return 0; }
  double search_milliseconds() const { return search_milliseconds_; }
  const perfect_spatial_shape& shape() const { return shape_; }

 private:
  perfect_spatial_shape shape_;
  array<std::uint32_t, Place> offsets_;
  array<slot_type, Place> slots_;
  std::size_t size_ = 0;
  double search_milliseconds_ = 0;
};

}  // namespace roost::bench
