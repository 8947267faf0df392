#pragma once

#include <nanobind/nanobind.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <unordered_map>
#include <utility>

#include "roost/place.hpp"

// The place of a call, and how a call releases Python while it works.

namespace roost::python {

namespace nb = nanobind;

/// Turns roost's exceptions into Python's.
inline void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const out_of_memory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const file_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  } catch (const error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

/// A signal arrived during a call, and Python has set its exception.
struct interrupted {};

/// Throws `interrupted` if a signal has arrived. Ten times a second, between pieces of a call's work, this
/// thread takes the GIL to check; only the main thread receives signals.
inline void check_signals() {
  using clock = std::chrono::steady_clock;
  static thread_local clock::time_point next;
  const auto now = clock::now();
  if (now < next) return;
  next = now + std::chrono::milliseconds(100);
  if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw interrupted();
}

/// The place of a call, as Python passes it: `Place` of the module.
template <class Place>
class call_place;

template <>
class call_place<host> {
 public:
  /// All threads, or the number given to set_threads.
  static host get() {
    const std::scoped_lock lock(mutex());
    return place();
  }
  static void set_threads(int threads) {
    host next(threads);
    const std::scoped_lock lock(mutex());
    place() = std::move(next);
  }

 private:
  static std::mutex& mutex() {
    static auto* const all = new std::mutex;
    return *all;
  }
  static host& place() {
    static auto* const all = new host;
    return *all;
  }
};

/// f(place) without the GIL; a signal's exception is the one that Python has set.
template <class F>
auto without_gil(const call_place<host>& at, const F& f) {
  const host place = at.get();
  try {
    const nb::gil_scoped_release released;
    const detail::calls_between_pieces interrupts(&check_signals);
    return f(place);
  } catch (const interrupted&) {
    throw nb::python_error();
  }
}

/// The same for a table that is only read, or that changes. `home`: the place where it was built.
template <class F>
auto ask(const call_place<host>& at, const host&, const F& f) {
  return without_gil(at, f);
}
template <class F>
auto read(const call_place<host>& at, const host&, const F& f) {
  return without_gil(at, f);
}
template <class F>
auto change(const call_place<host>& at, const host&, const F& f) {
  return without_gil(at, f);
}

/// Lookups of very many queries go by parts, between which Ctrl-C ends them: f(first, n).
inline constexpr std::size_t most_queries = std::size_t{1} << 24;

template <class F>
void in_parts(const host&, std::size_t n, const F& f) {
  for (std::size_t first = 0; first < n; first += most_queries) {
    if (first != 0) check_signals();
    f(first, std::min(most_queries, n - first));
  }
}

#if defined(__CUDACC__)

/// Device memory from a Python library: torch's caching allocator, or CuPy's pool. Calls allocate from it, so
/// that the library and roost share the device's memory, and the library owns results. Small pieces are from
/// the device's pool, which is faster. Never destroyed: arrays are freed late.
class library_memory final : public device_memory_resource {
 public:
  /// `make(bytes)`: returns an object that owns this many bytes, and their address. They may be used on the
  /// library's current stream.
  library_memory(int device, nb::callable make)
      : pool_(device_memory_pool::of(device)), make_(std::move(make)) {}

  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    if (bytes < small) return pool_.allocate(bytes, stream);
    const nb::gil_scoped_acquire gil;
    std::pair<nb::object, void*> piece;
    if (make_.is_valid()) {
      piece = make(bytes);
    } else {
      piece.second = pool_.allocate(bytes, stream);
    }
    const std::scoped_lock lock(mutex_);
    owners_.emplace(piece.second, piece.first.release().ptr());
    return piece.second;
  }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    if (bytes < small) return pool_.deallocate(memory, bytes, stream);
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire gil;
    nb::object given_back;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    const auto found = owners_.find(memory);
    if (found == owners_.end()) return;  // Python owns it
    if (found->second == nullptr) {
      pool_.deallocate(memory, bytes, stream);
    } else {
      given_back = nb::steal(found->second);
    }
    owners_.erase(found);
  }

  /// When Python ends: releases the library, which would otherwise stay alive. Later pieces are from the
  /// device's pool.
  void close() { make_.reset(); }

  /// The owner of a piece, which Python owns from now on; none for a piece of the device's pool.
  nb::object take(void* memory) {
    const std::scoped_lock lock(mutex_);
    const auto found = owners_.find(memory);
    if (found == owners_.end() || found->second == nullptr) return {};
    PyObject* const owner = found->second;
    owners_.erase(found);
    return nb::steal(owner);
  }
  /// A piece that Python owns from the start. Needs the GIL.
  std::pair<nb::object, void*> make(std::size_t bytes) {
    if (!make_.is_valid()) detail::raise<error>({"roost: Python ends; no more results on a GPU"});
    for (bool again = true;; again = false) {
      try {
        const nb::object made = make_(bytes);
        return {nb::object(made[0]), reinterpret_cast<void*>(nb::cast<std::uintptr_t>(made[1]))};
      } catch (const nb::python_error& failed) {
        if (!failed.matches(PyExc_MemoryError) && !failed.matches(PyExc_RuntimeError)) throw;
        if (again) {
          pool_.trim();  // what it keeps may be what the library lacks
          continue;
        }
        std::string why = nb::str(failed.value()).c_str();  // what() begins with the lines of a traceback
        why.resize(std::min(why.find('\n'), why.size()));
        detail::raise<out_of_memory>({"roost: no memory for ", bytes, " bytes: ", why});
      }
    }
  }

 private:
  static constexpr std::size_t small = std::size_t{256} << 10;

  device_memory_pool& pool_;
  nb::callable make_;
  std::mutex mutex_;
  std::unordered_map<void*, PyObject*> owners_;  // of large pieces; null: the device's pool
};

template <>
class call_place<cuda> {
 public:
  /// `stream`: a stream of the library; 0 is a stream, too. `memory`: null for the device's pool. `waits`:
  /// whether calls have finished when they return, for libraries that do not expose their stream.
  call_place(int device, std::uintptr_t stream, library_memory* memory, bool waits)
      : place_(on(device, reinterpret_cast<cudaStream_t>(stream), memory)), memory_(memory), waits_(waits) {}

  /// A place with a stream of its own, which lives as long as the process.
  static std::unique_ptr<call_place> with_own_stream(int device) {
    const detail::device_guard guard(device);
    cudaStream_t stream = nullptr;
    detail::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return std::make_unique<call_place>(device, reinterpret_cast<std::uintptr_t>(stream), nullptr, true);
  }

  const cuda& get() const { return place_; }
  library_memory* memory() const { return memory_; }
  bool waits() const { return waits_; }

 private:
  static cuda on(int device, cudaStream_t stream, library_memory* memory) {
    const detail::device_guard guard(device);
    return cuda(stream, memory);
  }

  cuda place_;
  library_memory* memory_;
  bool waits_;
};

/// Makes a stream of the current device wait for all work queued on another one so far. If no event can be
/// created, the host waits.
inline void wait_for(cudaStream_t stream, cudaStream_t other) noexcept {
  cudaEvent_t event = nullptr;
  const bool done = cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess &&
                    cudaEventRecord(event, other) == cudaSuccess &&
                    cudaStreamWaitEvent(stream, event, 0) == cudaSuccess;
  if (event != nullptr) static_cast<void>(cudaEventDestroy(event));  // destroyed once it has happened
  if (!done) static_cast<void>(cudaStreamSynchronize(other));
}

inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  detail::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

template <class F>
auto without_gil(const call_place<cuda>& at, const F& f) {
  const nb::gil_scoped_release released;
  const cuda& place = at.get();
  const detail::device_guard guard(place.device());
  if (!at.waits()) return f(place);
  try {
    if constexpr (std::is_void_v<decltype(f(place))>) {
      f(place);
      place.synchronize();
    } else {
      auto result = f(place);
      place.synchronize();
      return result;
    }
  } catch (...) {
    static_cast<void>(cudaStreamSynchronize(place.stream()));
    throw;
  }
}

/// Its destructor makes a stream wait for another one.
struct follow {
  cudaStream_t stream, other;
  ~follow() {
    if (stream != other) wait_for(stream, other);
  }
};

/// A table is read on the stream of the call. Its memory is freed in the order of its own stream, which
/// therefore waits, except while the call's stream is captured into a graph.
template <class F>
auto ask(const call_place<cuda>& at, const cuda& home, const F& f) {
  return without_gil(at, [&](const cuda& place) {
    const bool same = home.stream() == place.stream() || is_capturing(place.stream());
    const follow after{same ? place.stream() : home.stream(), place.stream()};
    return f(place);
  });
}

/// The same for a table whose own stream may still be changing it.
template <class F>
auto read(const call_place<cuda>& at, const cuda& home, const F& f) {
  if (home.stream() != at.get().stream() && !is_capturing(at.get().stream())) {
    const detail::device_guard guard(at.get().device());
    wait_for(at.get().stream(), home.stream());
  }
  return ask(at, home, f);
}

/// A table changes on its own stream, and the call's stream waits. If the call's stream is captured into a
/// graph, the table changes there.
template <class F>
auto change(const call_place<cuda>& at, const cuda& home, const F& f) {
  return without_gil(at, [&](const cuda& place) {
    if (home.stream() == place.stream() || is_capturing(place.stream())) return f(place);
    wait_for(home.stream(), place.stream());
    const follow after{place.stream(), home.stream()};
    return f(home);
  });
}

template <class F>
void in_parts(const cuda&, std::size_t n, const F& f) {
  f(std::size_t{0}, n);
}

#endif

}  // namespace roost::python
