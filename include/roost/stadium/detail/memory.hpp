#pragma once

#include "roost/detail/place/reachable.hpp"
#include "roost/detail/place/tuning.hpp"

// Memory for the bodies of a table: of the place as far as a budget goes, then of the host.

namespace roost::detail {

/// Bytes of a place's memory that bodies may take.
inline std::size_t free_bytes(const host&) { return ~std::size_t{0}; }
#if defined(__CUDACC__)
inline std::size_t free_bytes(const cuda& place) {
  const device_guard guard(place.device());
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const device_memory_pool& pool = device_memory_pool::of(place.device());
  if (place.memory() == &pool) free += pool.kept();
  return static_cast<std::size_t>(stadium_tuning<cuda>::bodies_share * static_cast<double>(free));
}
#endif

/// n uninitialised elements: the first `near` in memory of the place, the others in host memory. Movable.
template <class T, class Place>
class body_memory {
 public:
  body_memory(const Place& place, std::size_t n, std::size_t near)
      : near_(place, bytes_of(near)), near_size_(near), far_(place, bytes_of(n - near)), size_(n) {}

  T* near() const { return reinterpret_cast<T*>(const_cast<std::byte*>(near_.data())); }
  T* far() const { return static_cast<T*>(far_.data()); }
  std::size_t near_size() const { return near_size_; }
  std::size_t near_bytes() const { return near_.bytes(); }
  std::size_t far_bytes() const { return (size_ - near_size_) * sizeof(T); }
  /// All its memory, including memory that is no longer used.
  std::size_t bytes() const { return near_.bytes() + far_bytes(); }

  /// Whether make_room() can be called.
  bool can_grow() const { return far_.can_grow(); }
  /// Makes room in host memory for all but `near` of n elements, which are more than before. Changes only
  /// what far() returns. Throws out_of_memory.
  void make_room(std::size_t n, std::size_t near) { far_.grow(bytes_of(n - near)); }
  /// Sets the number of elements to the available room. The first `near` are in memory of the place: as many
  /// as before, or fewer.
  void resize(std::size_t n, std::size_t near) {
    size_ = n;
    near_size_ = near;
    if (near == 0) near_ = array<std::byte, Place>(near_.place(), 0);
  }

 private:
  /// A GPU reads whole pieces of 16 bytes, even at the end.
  static std::size_t bytes_of(std::size_t n) { return ceil_div<std::size_t>(n * sizeof(T), 16) * 16; }

  array<std::byte, Place> near_;
  std::size_t near_size_;
  reachable<Place> far_;
  std::size_t size_;
};

}  // namespace roost::detail
