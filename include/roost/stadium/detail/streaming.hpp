#pragma once

#include <memory>

#include "roost/detail/place/streams.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/stadium/detail/memory.hpp"
#include "roost/stadium/detail/ticket_board.hpp"

// How a batch is processed over the regions of a stadium_map: at once, or part by part, while host memory is
// staged in memory of the place.

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
  staging(const cuda& place, std::size_t bytes) : staging(place, bytes, device_guard(place.device())) {}

  /// Later work on the stream also waits for the copies of an each() that has thrown.
  ~staging() {
    try {
      const device_guard guard(place_.device());
      for (const owned_stream* const side : {&in_, &out_}) run_after(place_.stream(), side->get(), begun_);
    } catch (const device_error&) {  // which the next call reports
    }
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// Like a host's; work() queues kernels on the place's stream. Asynchronous: later work on the stream waits
  /// for all copies.
  template <class Piece, class Work>
  void each(std::size_t count, const Piece& piece, const Work& work) {
    const device_guard guard(place_.device());
    run_after(in_.get(), place_.stream(), begun_);
    for (std::size_t i = 0; i < count; ++i) {
      const staged_piece mine = piece(i);
      turn& now = turns_[i % buffers];
      std::byte* const buffer = buffers_.data() + i % buffers * bytes_;
      if (i >= buffers) wait_for_event(in_.get(), now.free);
      if (mine.source != nullptr) copy_on(in_.get(), buffer, mine.source, mine.from_bytes);
      run_after(place_.stream(), in_.get(), now.there);
      work(i, buffer);
      run_after(out_.get(), place_.stream(), now.done);
      if (mine.target != nullptr) copy_on(out_.get(), mine.target, buffer + mine.to_at, mine.to_bytes);
      record_event(now.free, out_.get());
    }
    run_after(place_.stream(), out_.get(), begun_);
  }

 private:
  static constexpr std::size_t buffers = 3;  // one is copied in, one is worked on, one is copied out

  struct turn {
    owned_event there = make_event(), done = make_event(), free = make_event();
  };

  staging(const cuda& place, std::size_t bytes, const device_guard&)
      : place_(place), bytes_(bytes + -bytes % alignment_most), buffers_(place, buffers * bytes_) {}

  const cuda place_;
  const std::size_t bytes_;
  array<std::byte, cuda> buffers_;
  owned_stream in_ = make_stream(), out_ = make_stream();
  owned_event begun_ = make_event();
  turn turns_[buffers];
};

#endif

/// A ref to use while the bodies of a part, of this number of slots, are in `memory` of the place.
template <class Ref>
Ref staged(const Ref& ref, std::byte* memory, std::uint64_t part, std::uint64_t part_slots) {
  auto where = ref.where();
  where.staged = reinterpret_cast<typename Ref::item*>(memory);
  where.staged_first = part * part_slots;
  where.staged_slots = part_slots;
  return {where, ref.geometry()};
}

/// Which bodies are copied: to the place before they are read or changed, and back afterwards.
struct staged_copies {
  bool in, out;
};

/// All regions at once, or one part at a time while its bodies are in memory of the place.
template <class Place>
class stadium_regions : public all_regions<Place> {
 public:
  roost::path path = roost::path::regional;

  /// `far`: random accesses would be slow.
  explicit stadium_regions(bool far) : far_(far) {}

  /// One part at a time, of a table with at least one body in host memory. Throws out_of_memory.
  stadium_regions(const Place& place, const ticket_board::plan& plan, std::uint64_t near_slots,
                  std::size_t item_bytes, staged_copies copies)
      : path(roost::path::streamed),
        far_(true),
        parts_(staged_parts(plan, near_slots, item_bytes)),
        part_slots_(plan.slots() / parts_),
        copies_(copies),
        near_parts_(static_cast<std::uint32_t>(near_slots / part_slots_)),
        scratch_bytes_(scratch_bytes(place)),
        staging_(std::make_unique<staging<Place>>(place, part_slots_ * item_bytes)) {}

  /// The default limit of memory that a batch takes at once.
  static std::size_t scratch_bytes(const Place& place) {
    const std::size_t free = free_bytes(place), least = find_tuning<Place>::scratch_bytes;
    return free == ~std::size_t{0} ? least : larger(least, free / 2);
  }

  bool streams() const { return staging_ != nullptr; }
  /// Sets which bodies must be copied from now on.
  void copies(staged_copies copies) { copies_ = copies; }

  template <class Ref>
  bool pays(std::size_t table_bytes, std::size_t n) const {
    return far_ || by_region_pays<Place, Ref>(table_bytes, n);
  }

  regional_plan plan(std::size_t table_bytes, std::size_t n, std::size_t bytes_of_item,
                     const bulk_options& options) const {
    if (!streams()) return all_regions<Place>::plan(table_bytes, n, bytes_of_item, options);
    return plan_chunks<Place>(parts_, n, bytes_of_item, options.scratch_bytes_or(scratch_bytes_));
  }

  template <class Ref, class Run>
  void run(const Ref& ref, std::uint32_t regions, const Run& run) const {
    if (!streams()) return run(ref, 0u, regions);
    const std::size_t bytes = part_slots_ * sizeof(typename Ref::item);
    const auto piece = [&](std::size_t i) {
      auto* const there = reinterpret_cast<std::byte*>(ref.where().far) + i * bytes;
      return staged_piece{copies_.in ? there : nullptr, bytes, copies_.out ? there : nullptr, 0, bytes};
    };
    staging_->each(parts_ - near_parts_, piece, [&](std::size_t i, std::byte* memory) {
      const auto part = near_parts_ + static_cast<std::uint32_t>(i);
      run(staged(ref, memory, part, part_slots_), part, 1u);
    });
    // Last, since keys continue from there to bodies that were copied.
    if (near_parts_ != 0) run(ref, 0u, near_parts_);
  }

 private:
  /// Parts that are large enough to keep a GPU busy, none of which is partly in host memory.
  static std::uint32_t staged_parts(const ticket_board::plan& plan, std::uint64_t near_slots,
                                    std::size_t item_bytes) {
    const std::uint32_t most = plan.parts();
    const std::uint64_t near_of_most = near_slots / (plan.slots() / most);
    std::uint32_t parts = smaller(
        most,
        static_cast<std::uint32_t>(8 + plan.slots() * item_bytes / stadium_tuning<Place>::staged_bytes));
    while (most % parts != 0 || near_of_most % (most / parts) != 0) ++parts;
    return parts;
  }

  bool far_;
  std::uint32_t parts_ = 0;
  std::uint64_t part_slots_ = 0;
  staged_copies copies_{};
  std::uint32_t near_parts_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<staging<Place>> staging_;
};

}  // namespace roost::detail
