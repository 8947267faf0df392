#pragma once

#include <memory>

#include "roost/place.hpp"

// Memory of the host that work of a place has in the place's memory for a while, piece by piece.

namespace roost::detail {

/// What is copied of a piece: to the place before the work, back after it.
struct staged_copies {
  bool in, out;
};

template <class Place>
class staging;

/// On a host one piece after the other.
template <>
class staging<host> {
 public:
  /// For pieces of so many bytes. Throws out_of_memory.
  staging(const host& place, std::size_t bytes) : buffer_(place, bytes) {}

  /// work(i, memory) for each of `count` pieces that lie one after the other, with the piece in `memory`.
  template <class Work>
  void each(std::byte* pieces, std::size_t count, staged_copies copies, const Work& work) {
    const std::size_t bytes = buffer_.bytes();
    for (std::size_t i = 0; i < count; ++i) {
      if (copies.in) std::memcpy(buffer_.data(), pieces + i * bytes, bytes);
      work(i, buffer_.data());
      if (copies.out) std::memcpy(pieces + i * bytes, buffer_.data(), bytes);
    }
  }

 private:
  array<std::byte, host> buffer_;
};

#if defined(__CUDACC__)

/// On a GPU pieces come and go, by its copy engines, while there is work on another. Pinned memory only.
template <>
class staging<cuda> {
 public:
  staging(const cuda& place, std::size_t bytes)
      : place_(place), bytes_(bytes), buffers_(place, buffers * bytes), in_(make_stream(place)), out_(make_stream(place)),
        begun_(make_event(place)) {
    for (turn& each : turns_) each = {make_event(place), make_event(place), make_event(place)};
  }

  /// What comes on the stream later waits for the copies of an each() that has thrown, too.
  ~staging() {
    try {
      const device_guard guard(place_.device());
      for (const side_stream* const side : {&in_, &out_}) after(side->get(), begun_, place_.stream());
    } catch (const device_error&) {  // which the next call tells
    }
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// As for a host; work() sends kernels to the place's stream. Asynchronous: what comes on the stream later waits for all copies.
  template <class Work>
  void each(std::byte* pieces, std::size_t count, staged_copies copies, const Work& work) {
    const device_guard guard(place_.device());
    after(place_.stream(), begun_, in_.get());
    for (std::size_t i = 0; i < count; ++i) {
      turn& mine = turns_[i % buffers];
      std::byte* const buffer = buffers_.data() + i % buffers * bytes_;
      if (i >= buffers) check(cudaStreamWaitEvent(in_.get(), mine.free.get(), 0), "cudaStreamWaitEvent");
      if (copies.in) copy(buffer, pieces + i * bytes_, cudaMemcpyHostToDevice, in_.get());
      after(in_.get(), mine.there, place_.stream());
      work(i, buffer);
      after(place_.stream(), mine.done, out_.get());
      if (copies.out) copy(pieces + i * bytes_, buffer, cudaMemcpyDeviceToHost, out_.get());
      check(cudaEventRecord(mine.free.get(), out_.get()), "cudaEventRecord");
    }
    after(out_.get(), begun_, place_.stream());
  }

 private:
  static constexpr std::size_t buffers = 3;  // one comes, one is worked on, one goes

  struct destroy {
    void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }  // what is in it still happens
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  using side_stream = std::unique_ptr<CUstream_st, destroy>;
  using event = std::unique_ptr<CUevent_st, destroy>;

  static side_stream make_stream(const cuda& place) {
    const device_guard guard(place.device());
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return side_stream(stream);
  }
  static event make_event(const cuda& place) {
    const device_guard guard(place.device());
    cudaEvent_t event_made = nullptr;
    check(cudaEventCreateWithFlags(&event_made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event(event_made);
  }

  struct turn {
    event there, done, free;
  };

  /// What comes on `second` waits for all that is on `first`.
  static void after(cudaStream_t first, const event& mark, cudaStream_t second) {
    check(cudaEventRecord(mark.get(), first), "cudaEventRecord");
    check(cudaStreamWaitEvent(second, mark.get(), 0), "cudaStreamWaitEvent");
  }

  void copy(void* to, const void* from, cudaMemcpyKind kind, cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, bytes_, kind, stream), "cudaMemcpyAsync");
  }

  const cuda place_;
  const std::size_t bytes_;
  array<std::byte, cuda> buffers_;
  side_stream in_, out_;
  event begun_;
  turn turns_[buffers];
};

#endif

}  // namespace roost::detail
