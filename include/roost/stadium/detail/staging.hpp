#pragma once

#include <memory>

#include "roost/place.hpp"

// Stages host memory in memory of a place, piece by piece, while work of the place uses it.

namespace roost::detail {

/// The copies of a piece: to the front of its buffer before the work, and from the buffer after it. Null: no
/// copy.
struct staged_piece {
  const std::byte* source;
  std::size_t from_bytes;
  std::byte* target;
  std::size_t to_at, to_bytes;  // to_at: where in the buffer
};

template <class Place>
class staging;

/// On a host, one piece at a time.
template <>
class staging<host> {
 public:
  /// For pieces of this number of bytes. Throws out_of_memory.
  staging(const host& place, std::size_t bytes) : buffer_(place, bytes) {}

  /// work(i, buffer) for each of `count` pieces; piece(i) says what is copied. No piece may be copied to the
  /// source of a later one.
  template <class Piece, class Work>
  void each(std::size_t count, const Piece& piece, const Work& work) {
    for (std::size_t i = 0; i < count; ++i) {
      const staged_piece mine = piece(i);
      if (mine.source != nullptr) std::memcpy(buffer_.data(), mine.source, mine.from_bytes);
      work(i, buffer_.data());
      if (mine.target != nullptr) std::memcpy(mine.target, buffer_.data() + mine.to_at, mine.to_bytes);
    }
  }

 private:
  array<std::byte, host> buffer_;
};

#if defined(__CUDACC__)

/// On a GPU, the copy engines move pieces in and out while another piece is worked on. For memory of the GPU,
/// or pinned memory.
template <>
class staging<cuda> {
 public:
  /// A buffer can be read 16 bytes at a time.
  staging(const cuda& place, std::size_t bytes)
      : place_(place),
        bytes_(ceil_div<std::size_t>(bytes, 16) * 16),
        buffers_(place, buffers * bytes_),
        in_(make_stream(place)),
        out_(make_stream(place)),
        begun_(make_event(place)) {
    for (turn& each : turns_) each = {make_event(place), make_event(place), make_event(place)};
  }

  /// Later work on the stream also waits for the copies of an each() that has thrown.
  ~staging() {
    try {
      const device_guard guard(place_.device());
      for (const side_stream* const side : {&in_, &out_}) after(side->get(), begun_, place_.stream());
    } catch (const device_error&) {  // which the next call reports
    }
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// As for a host; work() queues kernels on the place's stream. Asynchronous: later work on the stream waits
  /// for all copies.
  template <class Piece, class Work>
  void each(std::size_t count, const Piece& piece, const Work& work) {
    const device_guard guard(place_.device());
    after(place_.stream(), begun_, in_.get());
    for (std::size_t i = 0; i < count; ++i) {
      const staged_piece mine = piece(i);
      turn& now = turns_[i % buffers];
      std::byte* const buffer = buffers_.data() + i % buffers * bytes_;
      if (i >= buffers) check(cudaStreamWaitEvent(in_.get(), now.free.get(), 0), "cudaStreamWaitEvent");
      if (mine.source != nullptr) copy(buffer, mine.source, mine.from_bytes, in_.get());
      after(in_.get(), now.there, place_.stream());
      work(i, buffer);
      after(place_.stream(), now.done, out_.get());
      if (mine.target != nullptr) copy(mine.target, buffer + mine.to_at, mine.to_bytes, out_.get());
      check(cudaEventRecord(now.free.get(), out_.get()), "cudaEventRecord");
    }
    after(out_.get(), begun_, place_.stream());
  }

 private:
  static constexpr std::size_t buffers = 3;  // one is copied in, one is worked on, one is copied out

  struct destroy {
    void operator()(cudaStream_t stream) const {
      static_cast<void>(cudaStreamDestroy(stream));
    }  // its queued work still completes
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

  /// Later work on `second` waits for all work queued on `first`.
  static void after(cudaStream_t first, const event& mark, cudaStream_t second) {
    check(cudaEventRecord(mark.get(), first), "cudaEventRecord");
    check(cudaStreamWaitEvent(second, mark.get(), 0), "cudaStreamWaitEvent");
  }

  static void copy(void* target, const void* source, std::size_t bytes, cudaStream_t stream) {
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
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
