#pragma once

#include "roost/out_of_core/detail/memory.hpp"
#include "roost/out_of_core/out_of_core.hpp"
#include "roost/partition.hpp"

// How a call is worked on piece by piece, in memory that is limited, and what waits in host memory.
//
// Budget. A call has device_bytes. A reserve of them is for what kernels take beside the rows (on a host,
// scratch memory for each thread). What remains, divided by the bytes that a row takes at most while it is
// worked on (build_bytes and its like), is the number of rows of a piece. These are estimates; what holds is
// the limit of limited_memory, through which everything on the device is allocated. A piece that it refuses
// is worked on again in smaller pieces. So the result never depends on the limit,
// and an estimate that is wrong costs time only.
//
// Passes. If all rows of a group_by, or one side of a join, fit in a piece, the input is read once. Otherwise
// pass 1 partitions piece after piece, stably, by the leading bits of a hash with a seed of its own: the
// calls in memory use seed 0, and would find all keys of a part in a few of their regions. The parts wait in
// host memory. Pass 2 works on part after part; neighbouring parts that fit together are one.
//
// Parts that do not fit. Right sides of joins are divided by position: each piece is joined with all of the
// left part. Groups are divided again, first by another hash, then by byte after byte of the key, which tells
// all keys apart whatever they are. A part of one key is divided by position, where the calls of group_by's
// function are divided, too: after multiples of a power of reduced_at_once. A sample gives frequent keys
// parts of their own.
//
// Order. A stable partition and pieces in order keep the rows of a key in input order, so values are combined
// as in memory. Pairs of a join are put in order by counting those of each left row; right rows come in
// order. Groups are sorted by their first rows.

namespace roost::detail {

inline std::size_t scratch_reserve(const cuda&) { return std::size_t{22} << 20; }

/// One call: its device with limited memory, and its copies.
template <class Device>
class out_of_core_call {
 public:
  out_of_core_call(const out_of_core<Device>& place, const char* where)
      : where_(where),
        limits_(place.limits()),
        cpu_(place.cpu()),
        memory_(place.device(), limits_.device_bytes),
        device_(memory_.place(place.device())),
        room_(limits_.device_bytes - scratch_reserve(place.device())),
        copies_(cpu_, device_, limits_.pinned_bytes) {}

  const host& cpu() const { return cpu_; }
  const Device& device() const { return device_; }
  const char* where() const { return where_; }
  host_copies<Device>& copies() { return copies_; }

  /// How many rows fit at once if each takes so many bytes.
  std::size_t rows_of(std::size_t bytes_each) const {
    return smaller<std::size_t>(room_ / bytes_each, std::size_t{1} << 31);
  }

  /// Elements of a source, in memory of the device. Asynchronous on cuda.
  template <class T, class Source>
  array<T, Device> load(const Source& source, std::size_t first, std::size_t count) {
    array<T, Device> result(device_, count);
    copies_.in(result.data(), source, first, count);
    return result;
  }
  /// An array of the device, in host memory. Synchronises.
  template <class T>
  array<T, host> store(const array<T, Device>& source) {
    array<T, host> result(cpu_, source.size());
    copies_.out(result.data(), source.data(), source.size());
    return result;
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
          raise<out_of_memory>({where_, ": ", limits_.device_bytes,
                                " bytes of the device are too few for these rows; give more device_bytes"});
      }
    }
  }
  /// work(first, count) for pieces of n rows, in order, each of at most `most` rows. After one that had to be
  /// smaller they grow again: the matches of a few rows may be very many.
  template <class Work>
  void each_piece(std::size_t n, std::size_t most, const Work& work) {
    std::size_t next = most;
    for (std::size_t first = 0; first < n;) {
      const std::size_t done =
          largest(smaller(next, n - first), [&](std::size_t count) { work(first, count); });
      next = smaller(most, 2 * done);
      first += done;
    }
  }

  /// How much of the input will be read.
  void expect(std::size_t bytes) { all_ = bytes; }
  void advance(std::size_t bytes) {
    done_ = smaller(done_ + bytes, all_);
    come_between();
    if (limits_.progress) limits_.progress(done_, all_);
  }
  /// Parts without rows, and the like, may have been left out.
  void finish() {
    if (done_ != all_) advance(all_ - done_);
  }

 private:
  const char* where_;
  const out_of_core_limits& limits_;
  host cpu_;
  limited_memory<Device> memory_;
  Device device_;
  std::size_t room_;
  std::size_t done_ = 0, all_ = 0;
  host_copies<Device> copies_;
};

/// The keys, and the values, of items on a device.
template <class Item, class Device>
auto keys_of_items(const array<Item, Device>& items) {
  return computed(items.size(), key_of_item<Item>{items.data()});
}
template <class Item, class Device>
auto values_of_items(const array<Item, Device>& items) {
  return computed(items.size(), value_of_item<Item>{items.data()});
}

/// Items of some parts, in order: pieces of host memory.
template <class Item>
class waiting_items {
 public:
  using item_type = Item;

  void add(const Item* items, std::size_t count) {
    if (count == 0) return;
    pieces_.push_back({items, size_});
    size_ += count;
  }
  std::size_t size() const { return size_; }

  /// Calls body(items, count) for the pieces of [first, first + count), in order.
  template <class Body>
  void each(std::size_t first, std::size_t count, const Body& body) const {
    if (count == 0) return;
    const auto begins = computed(pieces_.size(), [&](std::size_t i) { return pieces_[i].begin; });
    for (std::size_t p = last_at_or_before<std::size_t>(0, pieces_.size(), begins, first); count != 0; ++p) {
      const std::size_t end = p + 1 == pieces_.size() ? size_ : pieces_[p + 1].begin;
      const std::size_t some = smaller(end - first, count);
      body(pieces_[p].items + (first - pieces_[p].begin), some);
      first += some, count -= some;
    }
  }

  void write(Item* target, std::size_t first, std::size_t count) const {
    each(first, count, [&](const Item* items, std::size_t some) {
      std::memcpy(static_cast<void*>(target), items, some * sizeof(Item));
      target += some;
    });
  }

  template <class Call>
  auto load(Call& call, std::size_t first, std::size_t count) const {
    return call.template load<Item>(*this, first, count);
  }

  /// Whether all items have the same key.
  bool have_one_key(const host& cpu) const {
    const auto& key = pieces_[0].items->key;
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const Item* const items = pieces_[p].items;
      const std::size_t n = (p + 1 == pieces_.size() ? size_ : pieces_[p + 1].begin) - pieces_[p].begin;
      if (!same_key(items[n - 1].key, key)) return false;  // so that most are not read
      if (cpu.sum(n, [&](std::size_t i) { return same_key(items[i].key, key) ? 0u : 1u; }) != 0) return false;
    }
    return true;
  }

 private:
  struct piece {
    const Item* items;
    std::size_t begin;  // in all
  };
  std::vector<piece> pieces_;
  std::size_t size_ = 0;
};

/// Items that wait in host memory, by part.
template <class Item>
class waiting_parts {
 public:
  explicit waiting_parts(std::uint32_t parts) : sizes_(parts) {}

  std::uint32_t parts() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::size_t size(std::uint32_t part) const { return sizes_[part]; }

  /// Partitions items and appends them to the parts. Synchronises.
  template <class Device, class PartOf>
  void add(out_of_core_call<Device>& call, const array<Item, Device>& items, const PartOf& part_of) {
    constexpr partition_kind kind{.stable = true};
    if (items.size() == 0) return;
    chunk more{{}, std::vector<std::uint64_t>(parts() + 1)};
    const auto divided = partitioner<Device, Item, kind>(call.device(), parts())
                             .run(sequence<const Item*>{items.data(), items.size()}, part_of);
    call.device().copy_to_host(more.begins.data(), divided.begins(), parts() * sizeof(std::uint64_t));
    more.begins.back() = items.size();
    more.items = array<Item, host>(call.cpu(), items.size());
    call.copies().out(more.items.data(), divided.items(), items.size());
    chunks_.push_back(std::move(more));
    for (std::uint32_t p = 0; p < parts(); ++p)
      sizes_[p] += chunks_.back().begins[p + 1] - chunks_.back().begins[p];
  }

  /// The items of parts [first, end), in the order in which they were added.
  waiting_items<Item> of(std::uint32_t first, std::uint32_t end) const {
    waiting_items<Item> result;
    for (const chunk& c : chunks_)
      result.add(c.items.data() + c.begins[first], c.begins[end] - c.begins[first]);
    return result;
  }

 private:
  struct chunk {
    array<Item, host> items;
    std::vector<std::uint64_t> begins;  // of each part, and the end
  };
  std::vector<chunk> chunks_;
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
