#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <thread>

#include "roost/out_of_core/detail/memory.hpp"
#include "roost/out_of_core/out_of_core.hpp"
#include "roost/partition.hpp"

// How a call is worked on piece by piece, in memory that is limited, and what waits in host memory.
//
// Budget. A call has device_bytes, and workers that share them: threads with a stream each, so that one
// worker copies while others compute. A reserve of a worker's bytes is for what kernels take beside the rows
// (on a host, scratch memory for each thread). What remains, divided by the bytes that a row takes at most
// while it is worked on (build_bytes and its like), is the number of rows of a piece. These are estimates;
// what holds is the limit of worker_device, through which everything on the device is allocated. A piece that
// it refuses is worked on again in smaller pieces. So the result never depends on the limit, and an estimate
// that is wrong costs time only.
//
// Passes. If all rows of a group_by, or one side of a join, fit in a piece, the input is read once. Otherwise
// pass 1 partitions piece after piece, stably, by the leading bits of a hash with a seed of its own: the
// calls in memory use seed 0, and would find all keys of a part in a few of their regions. The parts wait in
// host memory, pinned as far as the place may, or in a file (spill.hpp). Pass 2 works on part after part;
// neighbouring parts that fit together are one.
//
// Parts that do not fit. Right sides of joins are divided by position: each piece is joined with all of the
// left part. Groups are divided again, first by another hash, then by byte after byte of the key, which tells
// all keys apart whatever they are. A part of one key is divided by position, where the calls of group_by's
// function are divided, too: after multiples of a power of reduced_at_once. A sample gives frequent keys
// parts of their own.
//
// Order. A stable partition and pieces in order keep the rows of a key in input order, so values are combined
// as in memory. Results are runs that ascend by row: of the left side, or the first of a group. A last pass
// sorts them, block after block of rows (order.hpp). Which worker did a piece shows nowhere.

namespace roost::detail {

inline std::size_t scratch_reserve(const cuda&) { return std::size_t{22} << 20; }

/// Makes a device the current one of this thread, as long as the result lives.
struct no_device_guard {};
inline no_device_guard current_device_guard(const host&) { return {}; }
#if defined(__CUDACC__)
inline device_guard current_device_guard(const cuda& device) { return device_guard(device.device()); }
#endif

/// What one thread of a call works with.
template <class Device>
class out_of_core_worker {
 public:
  out_of_core_worker(const out_of_core<Device>& place, std::size_t number, std::size_t bytes,
                     pinned_blocks<Device>& blocks, const char* where)
      : number_(number),
        device_bytes_(place.limits().device_bytes),
        where_(where),
        cpu_(place.cpu()),
        blocks_(blocks),
        memory_(place.device(), bytes),
        copies_(cpu_, memory_, blocks) {}

  /// 0, 1 and so on, of those of a call.
  std::size_t number() const { return number_; }

  const host& cpu() const { return cpu_; }
  const Device& device() const { return memory_.place(); }
  const char* where() const { return where_; }
  byte_limit& limit() { return memory_; }
  pinned_blocks<Device>& blocks() const { return blocks_; }
  /// Waits for the device, also after an error.
  void wait() { memory_.wait_for_all(); }

  /// Bytes for rows.
  std::size_t room() const {
    const std::size_t left = memory_.left();
    return left - smaller(left, scratch_reserve(device()));
  }
  /// How many rows still fit at once if each takes so many bytes.
  std::size_t rows_of(std::size_t bytes_each) const {
    return std::clamp<std::size_t>(room() / bytes_each, 1, std::size_t{1} << 31);
  }

  /// Elements of a source, in memory of the device. Asynchronous on cuda.
  template <class T, class Source>
  array<T, Device> load(const Source& source, std::size_t first, std::size_t count) {
    array<T, Device> result(device(), count);
    copies_.in(result.data(), source, first, count);
    return result;
  }
  /// Elements of the device, in host memory, or in a file if they `may_spill`. Synchronises.
  template <class T>
  waiting<T, Device> store(const T* source, std::size_t size, bool may_spill = false) {
    waiting<T, Device> result(blocks_, size, may_spill);
    try {
      for (std::size_t b = 0; b < result.blocks(); ++b) {
        copies_.out(result[b].data(), result.spilled(b), source, result[b].size());
        source += result[b].size();
      }
      copies_.flush();
    } catch (...) {
      wait();  // before another call gets the blocks
      throw;
    }
    return result;
  }

  /// The same, to memory of the caller.
  template <class T>
  void store(const array<T, Device>& source, T* target) {
    spilled_bytes no_file;
    copies_.out(target, no_file, source.data(), source.size());
    copies_.flush();
  }

  /// Returns the largest count of `most`, a half of that, ... for which work(count) is not refused memory by
  /// the limit; it must have changed nothing when it is. Throws out_of_memory if there is none.
  template <class Work>
  std::size_t largest(std::size_t most, const Work& work) {
    for (std::size_t count = most;; count = ceil_div<std::size_t>(count, 2)) {
      static_cast<void>(memory_.was_reached());
      try {
        work(count);
        return count;
      } catch (const out_of_memory&) {
        if (!memory_.was_reached()) throw;
        if (count <= 1)
          raise<out_of_memory>({where_, ": ", device_bytes_,
                                " bytes of the device are too few for these rows; give more device_bytes"});
      }
    }
  }

  /// work(first, count) for pieces of rows [first, end), in order, each of at most `most` rows. After one
  /// that had to be smaller they grow again: the matches of a few rows may be very many.
  template <class Work>
  void each_piece(std::size_t first, std::size_t end, std::size_t most, const Work& work) {
    for (std::size_t next = most; first < end;) {
      const std::size_t done =
          largest(smaller(next, end - first), [&](std::size_t count) { work(first, count); });
      next = smaller(most, 2 * done);
      first += done;
    }
  }

 private:
  std::size_t number_, device_bytes_;
  const char* where_;
  host cpu_;
  pinned_blocks<Device>& blocks_;
  worker_device<Device> memory_;
  host_copies<Device> copies_;
};

/// Ends a worker whose call has ended; not an error.
struct worker_stopped {};
inline thread_local const std::atomic<bool>* stop_of_worker = nullptr;
inline void end_if_stopped() {
  if (stop_of_worker->load(std::memory_order_relaxed)) throw worker_stopped();
}

/// One call. Its workers are threads while they work on tasks; the calling thread then reports progress.
template <class Device>
class out_of_core_call {
 public:
  using worker = out_of_core_worker<Device>;

  out_of_core_call(const out_of_core<Device>& place, const char* where)
      : place_(place), caller_(std::this_thread::get_id()) {
    const std::size_t workers = after_fork != nullptr ? 1 : static_cast<std::size_t>(place.limits_.streams);
    for (std::size_t i = 0; i < workers; ++i)
      workers_.push_back(
          std::make_unique<worker>(place, i, place.limits_.device_bytes / workers, *place.blocks_, where));
  }

  const host& cpu() const { return place_.cpu(); }

  /// How much of the input will be read.
  void expect(std::size_t bytes) { all_ = bytes; }
  void advance(std::size_t bytes) {
    done_ += bytes;
    if (std::this_thread::get_id() == caller_) report();
  }
  /// Parts without rows, and the like, may have been left out.
  void finish() {
    if (done_ < all_) advance(all_ - done_);
  }

  /// Some workers, which share the work and the memory that they have.
  class some_workers {
   public:
    some_workers(out_of_core_call& call, std::span<const std::unique_ptr<worker>> workers)
        : call_(call), workers_(workers) {}

    worker& first() const { return *workers_[0]; }
    std::size_t size() const { return workers_.size(); }

    /// All memory is the first worker's.
    void alone() const {
      if (workers_.size() == 1) return;
      for (const auto& other : workers_.subspan(1)) other->limit().set_most(0);
      first().limit().set_most(all_bytes());
    }
    /// What the first worker does not use is shared in equal parts.
    void share() const {
      if (workers_.size() == 1) return;
      const std::size_t used = first().limit().used(), each = (all_bytes() - used) / workers_.size();
      for (const auto& other : workers_.subspan(1)) other->limit().set_most(each);
      first().limit().set_most(used + each);
    }

    /// work(worker, i) for each i below n, on whichever worker is free.
    template <class Work>
    void each(std::size_t n, const Work& work) const {
      if (workers_.size() == 1) {
        for (std::size_t i = 0; i < n; ++i) work(first(), i);
      } else {
        call_.each_by_threads(n, work);
      }
    }
    /// work(worker, p, first, count) for each piece p of n rows that take so many bytes each. One that did
    /// not fit is several calls.
    template <class Work>
    void each_piece(std::size_t n, std::size_t bytes_each, const Work& work) const {
      std::size_t most = first().rows_of(bytes_each);
      constexpr std::size_t worth_it = std::size_t{1} << 16;  // rows, so that all workers have some
      if (workers_.size() > 1)
        most = smaller(most, larger(worth_it, ceil_div<std::size_t>(n, 3 * workers_.size())));
      each(ceil_div(n, most), [&](worker& mine, std::size_t p) {
        mine.each_piece(p * most, smaller(n, (p + 1) * most), most,
                        [&](std::size_t at, std::size_t count) { work(mine, p, at, count); });
      });
    }

   private:
    std::size_t all_bytes() const { return call_.place_.limits().device_bytes; }

    out_of_core_call& call_;
    std::span<const std::unique_ptr<worker>> workers_;
  };

  some_workers all() { return some_workers(*this, workers_); }
  some_workers only(const worker& of) {
    return some_workers(*this, std::span(workers_).subspan(of.number(), 1));
  }

 private:
  friend class some_workers;

  void report() {
    come_between();
    if (place_.limits().progress) place_.limits().progress(smaller<std::size_t>(done_, all_), all_);
  }

  /// What workers have done since the last time.
  void report_news() {
    const std::size_t done = done_;
    if (std::exchange(reported_, done) != done) {
      report();
    } else {
      come_between();
    }
  }

  template <class Work>
  void each_by_threads(std::size_t n, const Work& work) {
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> next = 0;
    std::mutex lock;
    std::condition_variable ended;
    const auto count = smaller<std::size_t>(n, workers_.size());
    std::size_t running = count;
    std::exception_ptr error;
    const auto fail = [&] {
      const std::lock_guard hold(lock);
      if (!error) error = std::current_exception();
      stop = true;
    };
    const auto run = [&](worker& mine) {
      try {
        [[maybe_unused]] const auto guard = current_device_guard(mine.device());
        stop_of_worker = &stop;
        const calls_between_pieces ends(end_if_stopped);
        for (std::size_t i; !stop && (i = next++) < n;) work(mine, i);
      } catch (const worker_stopped&) {
      } catch (...) {
        fail();
      }
      mine.wait();  // before what others use is freed
      const std::lock_guard hold(lock);
      --running;
      ended.notify_all();
    };
    std::vector<std::thread> threads;
    threads.reserve(count);
    try {
      for (std::size_t w = 0; w < count; ++w) threads.emplace_back(run, std::ref(*workers_[w]));
    } catch (...) {  // the system has no thread
      fail();
      const std::lock_guard hold(lock);
      running -= count - threads.size();
    }
    {
      std::unique_lock hold(lock);
      const auto all_ended = [&] { return running == 0; };
      while (!ended.wait_for(hold, std::chrono::milliseconds(20), all_ended)) {
        if (stop) continue;
        hold.unlock();
        try {
          report_news();
        } catch (...) {
          fail();
        }
        hold.lock();
      }
    }
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
    report_news();
  }

  const out_of_core<Device>& place_;
  std::thread::id caller_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::atomic<std::size_t> done_ = 0;
  std::size_t all_ = 0, reported_ = 0;
};

}  // namespace roost::detail

namespace roost {

template <class Device>
out_of_core<Device>::out_of_core(const host& cpu, const Device& device, out_of_core_limits limits)
    : cpu_(cpu), device_(device), limits_(std::move(limits)) {
  constexpr std::size_t pinned_least = std::size_t{64} << 10;
  const std::size_t least = device_bytes_least(device);
  if (limits_.streams < 0)
    detail::raise<invalid_argument>(
        {"roost::out_of_core: ", limits_.streams, " streams; give at least 1, or 0 for the default"});
  if (limits_.streams == 0) {
    constexpr std::size_t worth_it = 8;  // for fewer times the least, pieces would be too small
    limits_.streams =
        static_cast<int>(std::clamp<std::size_t>(limits_.device_bytes / (worth_it * least), 1, 3));
  }
  if (limits_.device_bytes / least < static_cast<std::size_t>(limits_.streams))
    detail::raise<invalid_argument>({"roost::out_of_core: ", limits_.device_bytes,
                                     " bytes of the device; give at least ", least, " for each of ",
                                     limits_.streams, " streams"});
  if (limits_.pinned_bytes < pinned_least)
    detail::raise<invalid_argument>(
        {"roost::out_of_core: ", limits_.pinned_bytes, " pinned bytes; give at least ", pinned_least});
  blocks_ = std::make_shared<detail::pinned_blocks<Device>>(cpu_, limits_.pinned_bytes, limits_.host_bytes,
                                                            limits_.spill_folder);
}

}  // namespace roost

namespace roost::detail {

/// The keys, and the values, of items on a device.
template <class Item, class Device>
auto keys_of_items(const array<Item, Device>& items) {
  return computed(items.size(), key_of_item<Item>{items.data()});
}
template <class Item, class Device>
auto values_of_items(const array<Item, Device>& items) {
  return computed(items.size(), value_of_item<Item>{items.data()});
}

/// A pair as it waits and is copied: without padding, which would be a quarter of a key and a row number.
template <class Item>
struct packed {
  using type = Item;
};
template <class Key, class Value>
inline constexpr bool is_padded_pair = sizeof(pair<Key, Value>) > sizeof(Key) + sizeof(Value) &&
                                       sizeof(Key) % 4 == 0 && sizeof(Value) == 4;
template <class Key, class Value>
  requires is_padded_pair<Key, Value>
struct packed<pair<Key, Value>> {
  struct type {
    std::uint32_t words[sizeof(Key) / 4 + 1];
  };
  const pair<Key, Value>* items;
  ROOST_FN type operator()(std::size_t i) const {
    type result;
    memcpy(result.words, &items[i].key, sizeof(Key));
    memcpy(result.words + sizeof(Key) / 4, &items[i].value, 4);
    return result;
  }
};
template <class Item>
struct unpack {
  const typename packed<Item>::type* from;
  ROOST_FN Item operator()(std::size_t i) const {
    Item item;
    memcpy(&item.key, from[i].words, sizeof(item.key));
    memcpy(&item.value, from[i].words + sizeof(item.key) / 4, 4);
    return item;
  }
};

/// Items of some parts, in order: pieces of host memory or of a file.
template <class As>
class waiting_items {
  using Item = typename packed<As>::type;

 public:
  using item_type = As;

  void add(std::span<const Item> items) {
    pieces_.push_back({items.data(), nullptr, 0, size_});
    size_ += items.size();
  }
  /// Items first, first + 1, ... of a block.
  template <class Block>
  void add(const Block& block, std::size_t first, std::size_t count) {
    if (count == 0) return;
    const auto* const items = reinterpret_cast<const Item*>(block.data());
    pieces_.push_back({items == nullptr ? nullptr : items + first, &block.spilled(), first, size_});
    size_ += count;
  }
  std::size_t size() const { return size_; }

  /// Calls body(items, count) for the pieces of [first, first + count), in order. Items are null if they are
  /// in a file.
  template <class Body>
  void each(std::size_t first, std::size_t count, const Body& body) const {
    each_piece(first, count, [&](const piece& of, std::size_t at, std::size_t some) {
      body(of.items == nullptr ? nullptr : of.items + at, some);
    });
  }
  /// The same, with those of a file read, a few at a time.
  template <class Body>
  void each_read(std::size_t first, std::size_t count, const Body& body) const {
    constexpr std::size_t few = larger<std::size_t>(spilled_bytes::page / sizeof(Item), 1);
    std::vector<Item> items;
    each_piece(first, count, [&](const piece& of, std::size_t at, std::size_t some) {
      if (of.items != nullptr) return body(of.items + at, some);
      items.resize(few);
      for (std::size_t done = 0; done < some; done += few) {
        of.read(items.data(), at + done, smaller(few, some - done));
        body(items.data(), smaller(few, some - done));
      }
    });
  }

  void write(Item* target, std::size_t first, std::size_t count) const {
    each_piece(first, count, [&](const piece& of, std::size_t at, std::size_t some) {
      of.read(target, at, some);
      target += some;
    });
  }

  As front() const {
    Item one;
    write(&one, 0, 1);
    return item(&one, 0);
  }

  template <class Device>
  array<As, Device> load(out_of_core_worker<Device>& mine, std::size_t first, std::size_t count) const {
    auto items = mine.template load<Item>(*this, first, count);
    if constexpr (std::is_same_v<As, Item>) {
      return items;
    } else {
      return array_of(mine.device(), count, unpack<As>{items.data()});
    }
  }

  /// Whether all items have the same key.
  bool have_one_key(const host& cpu) const {
    Item one;
    write(&one, 0, 1);
    const auto key = item(&one, 0).key;
    const auto others = [&](const Item* items, std::size_t n) {
      return cpu.sum(n, [&](std::size_t i) { return same_key(item(items, i).key, key) ? 0u : 1u; });
    };
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      write(&one, end_of(p) - 1, 1);
      if (others(&one, 1) != 0) return false;  // so that most are not read
      std::uint64_t found = 0;
      each_read(pieces_[p].begin, end_of(p) - pieces_[p].begin,
                [&](const Item* items, std::size_t n) { found += others(items, n); });
      if (found != 0) return false;
    }
    return true;
  }

 private:
  static As item(const Item* items, std::size_t i) {
    if constexpr (std::is_same_v<As, Item>) {
      return items[i];
    } else {
      return unpack<As>{items}(i);
    }
  }
  std::size_t end_of(std::size_t p) const { return p + 1 == pieces_.size() ? size_ : pieces_[p + 1].begin; }

  struct piece {
    const Item* items;  // or null
    const spilled_bytes* file;
    std::size_t first;  // in the file
    std::size_t begin;  // in all

    void read(Item* target, std::size_t at, std::size_t count) const {
      if (items != nullptr) {
        std::memcpy(static_cast<void*>(target), items + at, count * sizeof(Item));
      } else {
        file->read(reinterpret_cast<std::byte*>(target), (first + at) * sizeof(Item), count * sizeof(Item));
      }
    }
  };
  /// body(piece, first, count) for those of [first, first + count), in order.
  template <class Body>
  void each_piece(std::size_t first, std::size_t count, const Body& body) const {
    if (count == 0) return;
    const auto begins = computed(pieces_.size(), [&](std::size_t i) { return pieces_[i].begin; });
    for (std::size_t p = last_at_or_before<std::size_t>(0, pieces_.size(), begins, first); count != 0; ++p) {
      const std::size_t some = smaller(end_of(p) - first, count);
      body(pieces_[p], first - pieces_[p].begin, some);
      first += some, count -= some;
    }
  }
  std::vector<piece> pieces_;
  std::size_t size_ = 0;
};

/// Items that wait in host memory or a file, by part.
template <class Item, class Device>
class waiting_parts {
 public:
  explicit waiting_parts(std::uint32_t parts) : sizes_(parts) {}

  std::uint32_t parts() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::size_t size(std::uint32_t part) const { return sizes_[part]; }

  /// Partitions items and appends them to the parts, after those of all pieces before `piece`. Any worker may
  /// call it. Synchronises.
  template <class PartOf>
  void add(out_of_core_worker<Device>& worker, std::size_t piece, const array<Item, Device>& items,
           const PartOf& part_of) {
    constexpr partition_kind kind{.stable = true};
    if (items.size() == 0) return;
    std::vector<std::uint64_t> begins(parts() + 1);
    const auto divided = partitioner<Device, Item, kind>(worker.device(), parts())
                             .run(sequence<const Item*>{items.data(), items.size()}, part_of);
    worker.device().copy_to_host(begins.data(), divided.begins(), parts() * sizeof(std::uint64_t));
    begins.back() = items.size();
    chunk more{stored(worker, divided.items(), items.size()), std::move(begins)};
    const std::lock_guard hold(lock_);
    for (std::uint32_t p = 0; p < parts(); ++p) sizes_[p] += more.begins[p + 1] - more.begins[p];
    chunks_[piece].push_back(std::move(more));
  }

  /// The items of parts [first, end), in the order of the pieces.
  waiting_items<Item> of(std::uint32_t first, std::uint32_t end) const {
    waiting_items<Item> result;
    for (const auto& [piece, chunks] : chunks_)
      for (const chunk& c : chunks)
        c.items.each(
            c.begins[first], c.begins[end],
            [&](const auto& block, std::size_t at, std::size_t count) { result.add(block, at, count); });
    return result;
  }

 private:
  using waits = typename packed<Item>::type;
  static waiting<waits, Device> stored(out_of_core_worker<Device>& worker, const Item* items,
                                       std::size_t count) {
    if constexpr (std::is_same_v<Item, waits>) {
      return worker.store(items, count, true);
    } else {
      const auto without_padding = array_of(worker.device(), count, packed<Item>{items});
      return worker.store(without_padding.data(), count, true);
    }
  }

  struct chunk {
    waiting<waits, Device> items;
    std::vector<std::uint64_t> begins;  // of each part, and the end
  };
  std::mutex lock_;
  std::map<std::size_t, std::vector<chunk>> chunks_;  // by piece
  std::vector<std::size_t> sizes_;
};

/// The seeds of the hashes by which rows are divided: not those of the calls in memory.
inline constexpr std::uint64_t part_seed(int level) { return level == 0 ? 0x6f7574 : 0x636f7265; }
inline constexpr std::uint32_t parts_most = 256;

/// How many parts, so that even the largest fit, unless keys are frequent.
inline std::uint32_t parts_for(std::size_t rows, std::size_t rows_that_fit) {
  const std::size_t wanted = ceil_div<std::size_t>(rows + rows / 2, larger<std::size_t>(rows_that_fit, 1));
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, 2, parts_most));
}

}  // namespace roost::detail
