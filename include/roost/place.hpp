#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "roost/cuda.hpp"
#include "roost/detail/place/sequence.hpp"
#include "roost/host.hpp"

/// \file
/// Places: where work runs and memory lives. `roost::host` is always there, `roost::cuda` when nvcc compiles.
/// The place comes first in every call, as an execution policy does.

namespace roost {

/// An owning array of n uninitialised elements in the memory of a place: a std::unique_ptr<T[]> that also
/// holds its place. The memory is freed in the order of the place's stream. An array can be moved, but not
/// copied, since copying would hide a transfer. A default-constructed array has no memory and no place.
///
///     roost::array<int, roost::cuda> a(gpu, 1000);
///
/// Throws out_of_memory, also for more elements than an address can name.
template <class T, class Place>
class array {
  static_assert(std::is_trivially_copyable_v<T>, "memory of a place holds trivially copyable types");
  static_assert(alignof(T) <= detail::alignment_most,
                "memory of a place is aligned to 64 bytes, not to more");

 public:
  array() = default;
  array(const Place& place, std::size_t n) : place_(place), size_(n), room_(n) {
    if (n > std::size_t(-1) / 2 / sizeof(T)) {
      detail::raise<out_of_memory>(
          {"roost::array: ", n, " elements of ", sizeof(T), " bytes are more than any memory holds"});
    }
    if (n != 0) data_ = static_cast<T*>(place_->allocate(n * sizeof(T)));
  }
  array(array&& other) noexcept { *this = std::move(other); }
  array& operator=(array&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  array(const array&) = delete;  // use roost::copy_to_host or Place::copy
  array& operator=(const array&) = delete;
  ~array() {
    if (data_ != nullptr && place_) place_->deallocate(data_, room_ * sizeof(T));  // g++ asks for the latter
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  /// An element, where a host can read it.
  T& operator[](std::size_t i)
    requires std::is_same_v<Place, host>
  {
    return data_[i];
  }
  const T& operator[](std::size_t i) const
    requires std::is_same_v<Place, host>
  {
    return data_[i];
  }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  /// Keeps at most the first n elements, in the same memory.
  void shrink(std::size_t n) { size_ = n < size_ ? n : size_; }
  /// Whether its memory has room for more elements than it has.
  bool has_room() const { return room_ != size_; }
  /// The place; the array must have one.
  const Place& place() const { return *place_; }

 private:
  std::optional<Place> place_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

namespace detail {
/// A vector whose elements are contiguous: of chars in place of bools.
template <class T>
using vector_of = std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>>;

/// copy_to, of such a vector, too.
template <class T, class Place, class Range>
array<T, Place> copy_of(const Place& place, const Range& source) {
  array<T, Place> result(place, std::ranges::size(source));
  if constexpr (is_contiguous<const Range>) {
    place.copy_from_host(result.data(), data_of(source), result.bytes());
  } else {  // std::vector<bool>, std::deque
    const vector_of<T> elements(std::ranges::begin(source), std::ranges::end(source));
    place.copy_from_host(result.data(), elements.data(), result.bytes());
  }
  place.synchronize();
  return result;
}
}  // namespace detail

/// Copies host memory to a new array of a place. Synchronises, so the source may be freed afterwards.
template <detail::place_comes_first Place, class Range>
auto copy_to(const Place& place, const Range& source) {
  return detail::copy_of<detail::element_of<Range>>(place, source);
}

/// Copies memory of a place to a new vector. Synchronises. Bools arrive as chars, since std::vector<bool> has
/// no contiguous elements to copy to.
template <detail::place_comes_first Place, class Range>
auto copy_to_host(const Place& place, const Range& source) {
  detail::vector_of<detail::element_of<Range>> result(std::ranges::size(source));
  place.copy_to_host(result.data(), detail::data_of(source), result.size() * sizeof(result[0]));
  return result;
}

ROOST_DELETE_WITHOUT_PLACE(host, cuda, void copy_to);
ROOST_DELETE_WITHOUT_PLACE(host, cuda, void copy_to_host);

}  // namespace roost
