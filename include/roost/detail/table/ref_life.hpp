#pragma once

#include "roost/detail/place/config.hpp"

#if ROOST_CHECK_REFS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "roost/place.hpp"
#endif

// Refs that have outlived what they refer to: with ROOST_CHECK_REFS (config.hpp) they end the program with a
// line, else these classes are empty. A table has a ref_life for each memory that it moves to: a number of
// its own, in a word that the place can read. A ref has the same number and the word's address. The word
// gets a larger number when the life ends, a still larger one when another life takes it, and is never freed.
// It only grows, so that streams may write to it in any order.

namespace roost::detail {

template <class Place>
class ref_life;

/// The base of all refs.
class ref_base {
#if ROOST_CHECK_REFS
 public:
  /// Ends the program, or the kernel, if the life has ended.
  ROOST_FN void expect_alive() const {
    if (word_ == nullptr) return;
#if ROOST_ON_DEVICE
    const std::uint64_t number = *const_cast<const volatile std::uint64_t*>(word_);
#else
    const std::uint64_t number = __atomic_load_n(word_, __ATOMIC_RELAXED);
#endif
    if (number != number_) end();
  }
  template <class Place>
  void refer_to(const ref_life<Place>& life) {
    word_ = life.word_;
    number_ = life.number_;
  }

 private:
  ROOST_RARE_FN static void end() {
    constexpr char line[] = "roost: a ref was used after its table grew, was rebuilt or ended: take another";
#if ROOST_ON_DEVICE
    printf("%s\n", line);
    __trap();
#else
    std::fprintf(stderr, "%s\n", line);
    std::abort();
#endif
  }
  const std::uint64_t* word_ = nullptr;
  std::uint64_t number_ = 0;
#else
 public:
  ROOST_FN void expect_alive() const {}
  template <class Place>
  void refer_to(const ref_life<Place>&) {}
#endif
};

#if ROOST_CHECK_REFS

inline std::uint64_t* lasting_words(const host&, std::size_t n) { return new std::uint64_t[n](); }
inline void set_word(const host&, std::uint64_t* word, std::uint64_t number) {
  __atomic_store_n(word, number, __ATOMIC_RELAXED);
}
#if defined(__CUDACC__)
inline std::uint64_t* lasting_words(const cuda&, std::size_t n) {
  void* words = nullptr;  // not of the place's resource, which need not last
  if (cudaMalloc(&words, n * sizeof(std::uint64_t)) == cudaSuccess) return static_cast<std::uint64_t*>(words);
  static_cast<void>(cudaGetLastError());
  return nullptr;
}
struct write_word {
  std::uint64_t* word;
  std::uint64_t number;
  __device__ void operator()(std::size_t) const {
    atomicMax(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(number));
  }
};
inline void set_word(const cuda& place, std::uint64_t* word, std::uint64_t number) try {
  place.for_each(1, write_word{word, number});
} catch (const error&) {  // the next call says what failed
}
#endif

/// The words of a device, or of the host, that no life has.
class spare_words {
 public:
  template <class Place>
  static spare_words& of(const Place& place) {
    static std::mutex mutex;
    static auto& all = *new std::vector<spare_words*>();  // lives as long as any table
    std::size_t device = 0;
    if constexpr (requires { place.device(); }) device = static_cast<std::size_t>(place.device());
    const std::lock_guard lock(mutex);
    while (all.size() <= device) all.push_back(new spare_words());
    return *all[device];
  }
  /// Null if there is no memory.
  template <class Place>
  std::uint64_t* take(const Place& place) try {
    const std::lock_guard lock(mutex_);
    constexpr std::size_t n = 512;
    if (words_.empty()) {
      std::uint64_t* const more = lasting_words(place, n);
      for (std::size_t i = 0; more != nullptr && i < n; ++i) words_.push_back(more + i);
    }
    if (words_.empty()) return nullptr;
    std::uint64_t* const word = words_.back();
    words_.pop_back();
    return word;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  void give_back(std::uint64_t* word) try {
    const std::lock_guard lock(mutex_);
    words_.push_back(word);
  } catch (const std::bad_alloc&) {  // one word less
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t*> words_;
};

/// How long the refs of a table are valid. Moved and swapped like the memory of the table.
template <class Place>
class ref_life {
 public:
  ref_life() = default;
  explicit ref_life(const Place& place) : place_(place), word_(spare_words::of(place).take(place)) {
    static std::atomic<std::uint64_t> last{0};
    number_ = 2 * ++last;
    if (word_ != nullptr) set_word(*place_, word_, number_);
  }
  ref_life(ref_life&& other) noexcept { *this = std::move(other); }
  ref_life& operator=(ref_life&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(word_, other.word_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~ref_life() {
    if (word_ == nullptr) return;
    set_word(*place_, word_, number_ + 1);
    spare_words::of(*place_).give_back(word_);
  }

 private:
  friend class ref_base;
  std::optional<Place> place_;
  std::uint64_t* word_ = nullptr;
  std::uint64_t number_ = 0;
};

#else

template <class Place>
class ref_life {
 public:
  ref_life() = default;
  explicit ref_life(const Place&) {}
};

#endif

}  // namespace roost::detail
