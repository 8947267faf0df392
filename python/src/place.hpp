#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <utility>

#include "roost/place.hpp"

// The place of a call, and how a call leaves Python alone while it works.

namespace roost::python {

namespace nb = nanobind;

/// A signal came during a call, and Python has set its exception.
struct interrupted {};

/// Memory of the host place. Large pieces are taken where the parts of a long call begin, so that is where
/// Ctrl-C ends it.
class interruptible_memory final : public std::pmr::memory_resource {
 public:
  static interruptible_memory& instance() {
    static auto* const memory = new interruptible_memory;  // outlives arrays that Python frees at its end
    return *memory;
  }

  /// Throws `interrupted` if a signal has come.
  static void check() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw interrupted();
  }

 private:
  static constexpr std::size_t large = std::size_t{1} << 18;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes >= large) check();
    return host::default_memory()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    host::default_memory()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

template <class Place>
class current;

template <>
class current<host> {
 public:
  static constexpr int device_type = nb::device::cpu::value;
  static int device(const host&) { return 0; }

  /// The place of calls. `stream`: only devices have one.
  static host get(std::uintptr_t = 0) {
    const std::scoped_lock lock(mutex());
    return place();
  }
  static void set_threads(int threads) {
    host next(threads, &interruptible_memory::instance());
    const std::scoped_lock lock(mutex());
    place() = std::move(next);
  }

 private:
  static std::mutex& mutex() {
    static auto* const all = new std::mutex;
    return *all;
  }
  static host& place() {
    static auto* const all = new host(0, &interruptible_memory::instance());
    return *all;
  }
};

/// f() without the GIL; the exception of a signal is Python's.
template <class F>
auto without_gil(const F& f) {
  try {
    const nb::gil_scoped_release released;
    return f();
  } catch (const interrupted&) {
    throw nb::python_error();
  }
}

/// Lookups of very many queries go by parts, between which Ctrl-C ends them.
inline constexpr std::size_t most_queries = std::size_t{1} << 24;

template <class Place, class F>
void in_parts(std::size_t n, const F& f) {
  without_gil([&] {
    if constexpr (std::is_same_v<Place, host>) {
      for (std::size_t first = 0; first < n; first += most_queries) {
        if (first != 0) interruptible_memory::check();
        f(first, std::min(most_queries, n - first));
      }
    } else {
      f(0, n);
    }
  });
}

}  // namespace roost::python
