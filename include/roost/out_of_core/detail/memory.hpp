#pragma once

#include <atomic>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/streams.hpp"
#include "roost/out_of_core/detail/spill.hpp"

// The memory of an out-of-core call: what it may allocate on the device, pinned memory, and copies between
// them.

namespace roost::detail {

/// Bytes of which no more than a limit are taken at the same time.
class byte_limit {
 public:
  explicit byte_limit(std::size_t most) : most_(most) {}

  /// False if that would be more than the limit.
  bool take(std::size_t bytes) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    while (bytes <= most_ - smaller(used, most_)) {
      if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
    }
    was_reached_.store(true, std::memory_order_relaxed);
    return false;
  }
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  /// What may still be taken.
  std::size_t left() const { return most_ - smaller(used(), most_); }
  /// Another limit, while nothing is taken.
  void set_most(std::size_t most) { most_ = most; }

  /// Whether it has refused anything since the last call of this function.
  bool was_reached() { return was_reached_.exchange(false, std::memory_order_relaxed); }

 private:
  std::size_t most_;
  std::atomic<std::size_t> used_ = 0;
  std::atomic<bool> was_reached_ = false;
};

/// The device as one worker of a call has it: with memory up to a limit, and on cuda with a stream of its
/// own.
template <class Device>
class worker_device;

template <>
class worker_device<host> final : public byte_limit, public std::pmr::memory_resource {
 public:
  worker_device(const host& device, std::size_t bytes)
      : byte_limit(bytes), upstream_(device.memory()), place_(device.threads(), this) {}

  const host& place() const { return place_; }

  /// Copies in turns. A copy may still run when the call returns; wait(i) waits for the last one of turn i.
  void copy(int, void* target, const void* source, std::size_t bytes) { std::memcpy(target, source, bytes); }
  void wait(int) {}
  void wait_for_all() {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!take(bytes)) throw std::bad_alloc();
    try {
      return upstream_->allocate(bytes, alignment);
    } catch (...) {
      give_back(bytes);
      throw;
    }
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(memory, bytes, alignment);
    give_back(bytes);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
  host place_;
};

/// Pinned memory of the host; null if the system refuses it.
template <class Device>
struct pinned;

/// If the device is a host, which stands for a GPU in tests.
template <>
struct pinned<host> {
  using memory = array<std::byte, host>;
  static memory make(const host& cpu, std::size_t bytes) { return memory(cpu, bytes); }
  static std::byte* data_of(memory& of) { return of.data(); }
  /// Whether the device can copy this memory of the host without a buffer.
  static bool holds(const void*, std::size_t) { return false; }
};

#if defined(__CUDACC__)

/// make(), with the device of a place as the current one.
template <class Make>
auto on_device(const cuda& place, const Make& make) {
  const device_guard guard(place.device());
  return make();
}

template <>
class worker_device<cuda> final : public byte_limit, public device_memory_resource {
 public:
  /// Its work runs after what the stream of `device` has been given so far.
  worker_device(const cuda& device, std::size_t bytes)
      : byte_limit(bytes),
        upstream_(device.memory()),
        stream_(on_device(device, [] { return make_stream(); })),
        copied_{on_device(device, [] { return make_event(); }),
                on_device(device, [] { return make_event(); })},
        place_(on_device(device, [&] { return cuda(stream_.get(), this); })) {
    run_after(stream_.get(), device.stream(), copied_[0]);
  }

  const cuda& place() const { return place_; }

  void copy(int turn, void* target, const void* source, std::size_t bytes) {
    const device_guard guard(place_.device());
    copy_on(stream_.get(), target, source, bytes);
    record_event(copied_[turn], stream_.get());
  }
  void wait(int turn) { check(cudaEventSynchronize(copied_[turn].get()), "cudaEventSynchronize"); }
  /// Also after an error.
  void wait_for_all() { static_cast<void>(cudaStreamSynchronize(stream_.get())); }

  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    const std::size_t whole = granules(bytes);
    if (!take(whole)) raise<out_of_memory>({"roost: ", bytes, " bytes are more than device_bytes leave"});
    try {
      return upstream_->allocate(bytes, stream);
    } catch (...) {
      give_back(whole);
      throw;
    }
  }
  void deallocate(void* memory, std::size_t bytes, cudaStream_t stream) noexcept override {
    upstream_->deallocate(memory, bytes, stream);
    give_back(granules(bytes));
  }

 private:
  static std::size_t granules(std::size_t bytes) { return ceil_div<std::size_t>(bytes, 512) * 512; }

  device_memory_resource* upstream_;
  owned_stream stream_;
  owned_event copied_[2];
  cuda place_;
};

template <>
struct pinned<cuda> {
  struct unpin {
    void operator()(std::byte* memory) const { static_cast<void>(cudaFreeHost(memory)); }
  };
  using memory = std::unique_ptr<std::byte, unpin>;

  static memory make(const host&, std::size_t bytes) {
    void* made = nullptr;
    if (cudaHostAlloc(&made, bytes, cudaHostAllocPortable) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      made = nullptr;
    }
    return memory(static_cast<std::byte*>(made));
  }
  static std::byte* data_of(memory& of) { return of.get(); }
  static bool holds(const void* memory, std::size_t bytes) {
    const auto is_pinned = [](const void* at) {
      cudaPointerAttributes facts{};
      const bool known = cudaPointerGetAttributes(&facts, at) == cudaSuccess;
      if (!known) static_cast<void>(cudaGetLastError());
      return known && facts.type == cudaMemoryTypeHost;
    };
    return bytes != 0 && is_pinned(memory) && is_pinned(static_cast<const std::byte*>(memory) + bytes - 1);
  }
};

#endif

/// Blocks of pinned memory: the buffers of copies, and what waits in host memory. They are kept until the
/// place ends, since to pin memory takes longer than to work on it. Any thread may use them.
template <class Device>
class pinned_blocks {
 public:
  pinned_blocks(const host& cpu, std::size_t bytes, std::size_t host_bytes,
                const std::filesystem::path& spill_folder)
      : cpu_(cpu), host_bytes_(host_bytes), folder_(spill_folder) {
    constexpr std::size_t largest_block = std::size_t{8} << 20;
    block_bytes_ = smaller(largest_block, bytes / 8 / alignment_most * alignment_most);
    most_ = bytes / block_bytes_;
    if (!folder_.empty()) spill_file{folder_};  // throws if none can be made there
  }
  pinned_blocks(const pinned_blocks&) = delete;

  std::size_t block_bytes() const { return block_bytes_; }

  /// A block, or, beyond the limit, ordinary memory or bytes of a file: then copies take longer.
  class block {
   public:
    block() = default;
    block(block&& other) noexcept { *this = std::move(other); }
    block& operator=(block&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(pinned_, other.pinned_);
      std::swap(counted_, other.counted_);
      std::swap(spilled_, other.spilled_);
      ordinary_ = std::move(other.ordinary_);  // swaps
      return *this;
    }
    ~block() {
      if (pinned_ != nullptr) {
        from_->give_back(pinned_);
      } else if (from_ != nullptr) {
        from_->ordinary_bytes_ -= counted_;
      }
    }
    std::byte* data() { return pinned_ != nullptr ? pinned_ : ordinary_.data(); }
    const std::byte* data() const { return pinned_ != nullptr ? pinned_ : ordinary_.data(); }
    /// Where the bytes are if they are not in memory; data() is null then.
    spilled_bytes& spilled() { return spilled_; }
    const spilled_bytes& spilled() const { return spilled_; }

   private:
    friend class pinned_blocks;
    pinned_blocks* from_ = nullptr;
    std::byte* pinned_ = nullptr;
    std::size_t counted_ = 0;  // of ordinary memory
    array<std::byte, host> ordinary_;
    spilled_bytes spilled_;
  };
  /// At least `bytes` bytes, of at most block_bytes(). For few of them a block would be a waste. They may be
  /// in a file if they `may_spill`.
  block take(std::size_t bytes, bool may_spill = false) {
    block result;
    result.from_ = this;
    if (bytes >= block_bytes_ / 4) result.pinned_ = pinned_memory();
    if (result.pinned_ != nullptr) return result;
    const std::size_t before = ordinary_bytes_.fetch_add(bytes);
    result.counted_ = bytes;
    if (may_spill && !folder_.empty() && is_short(before, bytes)) {
      ordinary_bytes_ -= std::exchange(result.counted_, 0);
      result.spilled_ = spilled_bytes(file(), bytes);
    } else {
      expect_room(before, bytes);
      result.ordinary_ = array<std::byte, host>(cpu_, bytes);
    }
    return result;
  }

 private:
  std::byte* pinned_memory() {
    const std::lock_guard hold(lock_);
    if (free_.empty()) {
      if (all_.size() == most_) return nullptr;
      free_.reserve(all_.size() + 1);  // so that give_back cannot fail
      auto memory = pinned<Device>::make(cpu_, block_bytes_);
      if (pinned<Device>::data_of(memory) == nullptr) return nullptr;
      all_.push_back(std::move(memory));
      return pinned<Device>::data_of(all_.back());
    }
    std::byte* const memory = free_.back();
    free_.pop_back();
    return memory;
  }
  void give_back(std::byte* memory) noexcept {
    const std::lock_guard hold(lock_);
    free_.push_back(memory);
  }
  /// Throws out_of_memory where what waits would leave the host less than a GiB: the system grants a block,
  /// and would end the process when it is written. Looks at each 256 MiB.
  void expect_room(std::size_t before, std::size_t bytes) const {
    if ((before + bytes) >> 28 != before >> 28) cpu_.expect_room(std::size_t{1} << 30);
  }
  /// Whether the host has no more ordinary memory for what may spill.
  bool is_short(std::size_t before, std::size_t bytes) const {
    if (bytes > host_bytes_ || before > host_bytes_ - bytes) return true;
    try {
      expect_room(before, bytes);
      return false;
    } catch (const out_of_memory&) {
      return true;
    }
  }
  /// The file of all that waits now. The next call has another, so that the disk's space is freed.
  std::shared_ptr<spill_file> file() {
    const std::lock_guard hold(lock_);
    auto file = file_.lock();
    if (!file || !file->is_of_this_process()) file_ = file = std::make_shared<spill_file>(folder_);
    return file;
  }

  host cpu_;
  std::size_t block_bytes_, most_, host_bytes_;
  std::filesystem::path folder_;
  std::weak_ptr<spill_file> file_;
  std::mutex lock_;
  std::vector<typename pinned<Device>::memory> all_;
  std::vector<std::byte*> free_;
  std::atomic<std::size_t> ordinary_bytes_ = 0;
};

/// Elements that wait in host memory, in blocks.
template <class T, class Device>
class waiting {
  static_assert(sizeof(T) <= 4096, "rows of an out-of-core call have at most 4 KiB");

 public:
  using block = typename pinned_blocks<Device>::block;

  waiting(pinned_blocks<Device>& blocks, std::size_t size, bool may_spill = false)
      : size_(size), of_block_(blocks.block_bytes() / sizeof(T)) {
    blocks_.reserve(ceil_div(size, of_block_));
    for (std::size_t first = 0; first < size; first += of_block_)
      blocks_.push_back(blocks.take(smaller(of_block_, size - first) * sizeof(T), may_spill));
  }

  std::size_t size() const { return size_; }
  std::size_t blocks() const { return blocks_.size(); }
  /// The elements of a block; null if they are in a file.
  std::span<T> operator[](std::size_t b) {
    return {reinterpret_cast<T*>(blocks_[b].data()), smaller(of_block_, size_ - b * of_block_)};
  }
  std::span<const T> operator[](std::size_t b) const {
    return {reinterpret_cast<const T*>(blocks_[b].data()), smaller(of_block_, size_ - b * of_block_)};
  }
  spilled_bytes& spilled(std::size_t b) { return blocks_[b].spilled(); }
  /// Calls body(block, first, count) for the pieces of [first, end), in order; a block's elements begin with
  /// its number 0.
  template <class Body>
  void each(std::size_t first, std::size_t end, const Body& body) const {
    for (std::size_t b = first / of_block_; first < end; ++b) {
      const std::size_t some = smaller((b + 1) * of_block_, end) - first;
      body(blocks_[b], first - b * of_block_, some);
      first += some;
    }
  }

 private:
  std::size_t size_, of_block_;
  std::vector<block> blocks_;
};

// Sources of copies. write(target, first, count) copies elements; each(first, count, body) calls
// body(elements, n) for the pieces of memory that hold them, or with null for elements that must be written.

/// The elements of a user's range in host memory.
template <class Sequence>
struct host_elements {
  using value_type = element_of<Sequence>;
  static constexpr bool is_stored = std::is_same_v<Sequence, sequence<const value_type*>>;
  Sequence all;

  void write(value_type* target, std::size_t first, std::size_t count) const {
    if constexpr (is_stored) {
      std::memcpy(static_cast<void*>(target), all.first + first, count * sizeof(value_type));
    } else {
      for (std::size_t i = 0; i < count; ++i) target[i] = all[first + i];
    }
  }
  template <class Body>
  void each(std::size_t first, std::size_t count, const Body& body) const {
    if constexpr (is_stored) {
      body(all.first + first, count);
    } else {
      body(static_cast<const value_type*>(nullptr), count);
    }
  }
};
template <class Sequence>
host_elements(Sequence) -> host_elements<Sequence>;

/// body(first, count) for tiles of n elements of a T, on all threads of a host.
template <class T, class Body>
void for_each_tile(const host& cpu, std::size_t n, const Body& body) {
  constexpr std::size_t tile = larger<std::size_t>((std::size_t{256} << 10) / sizeof(T), 1);
  cpu.launch(ceil_div(n, tile), 0,
             [&](const auto&, std::size_t i, std::byte*) { body(i * tile, smaller(tile, n - i * tile)); });
}

/// Copies between host memory and a device. Memory that is not pinned goes through two pinned buffers: the
/// threads of the host fill or empty one while the device copies the other.
template <class Device>
class host_copies {
 public:
  host_copies(const host& cpu, worker_device<Device>& device, pinned_blocks<Device>& blocks)
      : cpu_(cpu),
        device_(device),
        bytes_(blocks.block_bytes()),
        buffers_{blocks.take(bytes_), blocks.take(bytes_)} {}
  /// Waits for all copies, those of a call that has thrown, too.
  ~host_copies() { device_.wait_for_all(); }
  host_copies(const host_copies&) = delete;

  /// target[i] = element first + i of the source. Asynchronous on cuda.
  template <class T, class Source>
  void in(T* target, const Source& source, std::size_t first, std::size_t count) {
    constexpr std::size_t worth_it = std::size_t{64} << 10;  // a copy of fewer bytes takes as long
    std::size_t staged = 0, done = 0;                        // elements that go through buffers; all before
    const auto stage = [&] {
      in_stages(target + done - staged, source, first + done - staged, staged);
      staged = 0;
    };
    source.each(first, count, [&](const T* from, std::size_t n) {
      if (n * sizeof(T) < worth_it || !pinned<Device>::holds(from, n * sizeof(T))) {
        staged += n;
      } else {
        stage();
        each_buffer<T>(n, [&](int turn, std::size_t i, std::size_t some) {
          device_.copy(turn, target + done + i, from + i, some * sizeof(T));
        });
      }
      done += n;
    });
    stage();
  }

  /// Copies memory of the device to the host, where it is after flush(): to `target`, or to `file`, which has
  /// at most the bytes of a buffer.
  template <class T>
  void out(T* target, spilled_bytes& file, const T* source, std::size_t count) {
    const bool direct = pinned<Device>::holds(target, count * sizeof(T));
    each_buffer<T>(count, [&](int turn, std::size_t done, std::size_t n) {
      const full copied{turn, direct || file ? nullptr : target + done, n * sizeof(T),
                        file ? &file : nullptr};
      device_.copy(turn, direct ? target + done : static_cast<void*>(buffers_[turn].data()), source + done,
                   copied.bytes);
      empty();
      full_ = copied;
    });
  }
  void flush() {
    empty();
    device_.place().synchronize();
  }

 private:
  /// What a buffer has, and where that goes.
  struct full {
    int turn = 0;
    void* target = nullptr;
    std::size_t bytes = 0;
    spilled_bytes* file = nullptr;
  };

  template <class T, class Source>
  void in_stages(T* target, const Source& source, std::size_t first, std::size_t count) {
    each_buffer<T>(count, [&](int turn, std::size_t done, std::size_t n) {
      device_.wait(turn);
      T* const buffer = reinterpret_cast<T*>(buffers_[turn].data());
      for_each_tile<T>(cpu_, n, [&](std::size_t i, std::size_t some) {
        source.write(buffer + i, first + done + i, some);
      });
      device_.copy(turn, target + done, buffer, n * sizeof(T));
    });
  }

  void empty() {
    const full copied = std::exchange(full_, {});
    if (copied.target == nullptr && copied.file == nullptr) return;
    device_.wait(copied.turn);
    const std::byte* const from = buffers_[copied.turn].data();
    static_assert((std::size_t{256} << 10) % spilled_bytes::page == 0, "tiles are whole pages");
    for_each_tile<std::byte>(cpu_, copied.bytes, [&](std::size_t first, std::size_t some) {
      if (copied.file != nullptr) {
        copied.file->write(from + first, first, some);
      } else {
        std::memcpy(static_cast<std::byte*>(copied.target) + first, from + first, some);
      }
    });
  }

  /// body(buffer, first, count) for the elements of each buffer.
  template <class T, class Body>
  void each_buffer(std::size_t count, const Body& body) {
    static_assert(sizeof(T) <= 4096, "values of an out-of-core call have at most 4 KiB");
    const std::size_t most = bytes_ / sizeof(T);
    for (std::size_t done = 0; done < count; done += most, turn_ = 1 - turn_) {
      come_between();
      body(turn_, done, smaller(most, count - done));
    }
  }

  const host& cpu_;
  worker_device<Device>& device_;
  std::size_t bytes_;  // of a buffer
  int turn_ = 0;
  full full_;
  typename pinned_blocks<Device>::block buffers_[2];
};

}  // namespace roost::detail
