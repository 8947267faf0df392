#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "roost/group_by.hpp"
#include "roost/join.hpp"
#include "roost/two_way_index.hpp"

/// \file
/// Calls for columns in host memory that a GPU's memory cannot hold. Needs the header xxhash.h.

namespace roost {

/// How much memory the calls of an out_of_core place may take.
struct out_of_core_limits {
  /// Of the device. No call ever has more allocated there.
  std::size_t device_bytes = std::size_t{4} << 30;
  /// Of pinned host memory: buffers through which memory that is not pinned is copied, and then what waits
  /// between two passes. The place keeps it until it ends, since pinning takes long (0.6 s a GiB on some
  /// machines). At least 64 KiB; calls in two passes are fastest if it holds a key and a row number, or a
  /// value and 16 bytes, for each row.
  std::size_t pinned_bytes = std::size_t{64} << 20;
  /// How many pieces are worked on at the same time, so that copies and kernels overlap. They share the
  /// memory. 0: three, or fewer if device_bytes are few.
  int streams = 0;
  /// If not empty, it is called on the calling thread as work goes on, with the bytes of the input that are
  /// done, and all of them; a call in two passes counts each byte twice. It may throw: that ends the call,
  /// which gives back all its memory.
  std::function<void(std::size_t done, std::size_t all)> progress{};
  /// If not empty: a folder for a file in which rows wait between two passes where host memory is short. The
  /// file has no name: it ends with the call, or with the process, however that ends. Pages that are read
  /// have checksums.
  std::filesystem::path spill_folder{};
  /// Of ordinary host memory, if there is a spill_folder: what waits beyond it and pinned_bytes goes to the
  /// file, and so does what would leave less than a GiB of the host's memory. Results are in memory.
  std::size_t host_bytes = ~std::size_t{0};
};

namespace detail {
/// What the kernels of a call need at once beside the rows: on a host, each thread has scratch memory.
inline std::size_t scratch_reserve(const host& device) {
  return static_cast<std::size_t>(device.threads()) * (std::size_t{2} << 20);
}
inline std::size_t scratch_reserve(const cuda&);
template <class Device>
class pinned_blocks;
template <class Device>
class out_of_core_call;
}  // namespace detail

/// A place for columns in host memory that are larger than a GPU's memory: a host with the columns and the
/// results, and a device that works on one piece of them after the other.
///
///     roost::out_of_core place(roost::host(), gpu, {.device_bytes = 4ull << 30});
///     const auto rows = roost::inner_join(place, orders_customer, customer_id);
///     // rows.left and rows.right are arrays of the host
///
/// Ranges are in host memory: contiguous (best pinned or registered with CUDA: then they are copied
/// directly), or any others that the host can read, such as roost::computed. Results are arrays of the host,
/// with the same elements in the same order as those of the same call for ranges in the device's memory,
/// whatever the limits; groups, whose order that call leaves open, are in the order of their first rows. A
/// side of a join that fits is read once. Otherwise rows are first divided into parts by the hashes of their
/// keys, which wait in host memory: a key, a row number and a value for each row. A part that does not fit is
/// divided again; if all its rows have one key, by position. Copies of a place share its pinned memory.
/// Where rows wait in files, all calls throw file_error if the disk is full, or if what they read has
/// changed.
///
/// `Device`: cuda, or a host, which works in the same way and shows in tests what a GPU would do. Several
/// threads may call functions with one place at the same time if they may do so with its device; each call
/// may then take as much memory as the limits say.
template <class Device>
class out_of_core {
 public:
  /// Throws invalid_argument for less than device_bytes_least() for each stream, for less than 64 KiB of
  /// pinned memory, and for a negative number of streams; file_error if the folder takes no file.
  out_of_core(const host& cpu, const Device& device, out_of_core_limits limits = {});

  /// The smallest limit for a device: 24 MiB of a GPU, 2 MiB and 2 MiB for each thread of a host. (Rows are
  /// then worked on ten thousand at a time: give a GPU 1 GiB or more.)
  static std::size_t device_bytes_least(const Device& device) {
    return detail::scratch_reserve(device) + (std::size_t{2} << 20);
  }

  const host& cpu() const { return cpu_; }
  const Device& device() const { return device_; }
  const out_of_core_limits& limits() const { return limits_; }

 private:
  friend class detail::out_of_core_call<Device>;

  host cpu_;
  Device device_;
  out_of_core_limits limits_;
  std::shared_ptr<detail::pinned_blocks<Device>> blocks_;
};

namespace detail {
template <class Row, class Device, class Left, class Right>
class out_of_core_join;
template <class Device, class Keys>
unique_keys<element_of<Keys>, host> unique_out_of_core(const out_of_core<Device>& place, const Keys& keys,
                                                       const unique_options& wanted, const char* where);
}  // namespace detail

/// All pairs of a left and a right row with the same key: see roost::inner_join. Of two sides that do not fit
/// on the device, pass the shorter one as the right side. Host memory: for the pairs twice; unless the right
/// side fits, 8 bytes for each left row; unless either fits, a key and a row number for each row. Throws as
/// that call does, and out_of_memory if the host or the device itself has no memory.
template <class Row = std::uint32_t, class Device, class Left, class Right>
joined_rows<Row, host> inner_join(const out_of_core<Device>& place, const Left& left_keys,
                                  const Right& right_keys) {
  constexpr const char* where = "roost::inner_join";
  return detail::out_of_core_join<Row, Device, Left, Right>(place, left_keys, right_keys, where).pairs(false);
}

/// The same, plus each left row without a match, paired with no_row.
template <class Row = std::uint32_t, class Device, class Left, class Right>
joined_rows<Row, host> left_join(const out_of_core<Device>& place, const Left& left_keys,
                                 const Right& right_keys) {
  constexpr const char* where = "roost::left_join";
  return detail::out_of_core_join<Row, Device, Left, Right>(place, left_keys, right_keys, where).pairs(true);
}

/// The rows of the left side whose key is present on the right side, in order. Host memory: a byte for each
/// left row, and what inner_join takes for two sides that do not fit. Either side may have any number of rows
/// that Row can number.
template <class Row = std::uint32_t, class Device, class Left, class Right>
array<Row, host> semi_join(const out_of_core<Device>& place, const Left& left_keys, const Right& right_keys) {
  constexpr const char* where = "roost::semi_join";
  return detail::out_of_core_join<Row, Device, Left, Right>(place, left_keys, right_keys, where).rows(true);
}

/// The rows of the left side whose key is absent on the right side, in order. Otherwise as semi_join.
template <class Row = std::uint32_t, class Device, class Left, class Right>
array<Row, host> anti_join(const out_of_core<Device>& place, const Left& left_keys, const Right& right_keys) {
  constexpr const char* where = "roost::anti_join";
  return detail::out_of_core_join<Row, Device, Left, Right>(place, left_keys, right_keys, where).rows(false);
}

/// Of each key, whether it is one of `others`. Otherwise as semi_join.
template <class Device, class Keys, class Others>
array<bool, host> isin(const out_of_core<Device>& place, const Keys& keys, const Others& others) {
  using join = detail::out_of_core_join<std::uint64_t, Device, Keys, Others>;
  return join(place, keys, others, "roost::isin").are_there();
}

/// The distinct keys of a range and the other requested arrays: see roost::unique_all. (A two_way_index of
/// the range would have these keys, and as indices() the inverse.) index_order::any is that of the first
/// occurrences; ascending keys are sorted by the host. `inverse` takes a join of the range and the distinct
/// keys. Throws as that call does: the range has at most 2^32 - 2 keys.
template <class Device, class Keys>
unique_keys<detail::element_of<Keys>, host> unique_all(const out_of_core<Device>& place, const Keys& keys,
                                                       const unique_options& wanted) {
  return detail::unique_out_of_core(place, keys, wanted, "roost::unique_all");
}

/// Returns the distinct keys of a range, each once.
template <class Device, class Keys>
auto unique(const out_of_core<Device>& place, const Keys& keys,
            index_order order = index_order::first_occurrence) {
  return std::move(detail::unique_out_of_core(place, keys, {.order = order}, "roost::unique").keys);
}

/// The same, and for each key of the range its position among them.
template <class Device, class Keys>
auto unique_inverse(const out_of_core<Device>& place, const Keys& keys,
                    index_order order = index_order::first_occurrence) {
  auto all =
      detail::unique_out_of_core(place, keys, {.order = order, .inverse = true}, "roost::unique_inverse");
  return unique_keys_inverse<detail::element_of<Keys>, host>{std::move(all.keys), std::move(all.inverse)};
}

/// Returns the distinct keys of a range, and how often each appears.
template <class Device, class Keys>
auto unique_counts(const out_of_core<Device>& place, const Keys& keys,
                   index_order order = index_order::first_occurrence) {
  auto all =
      detail::unique_out_of_core(place, keys, {.order = order, .counts = true}, "roost::unique_counts");
  return unique_keys_counts<detail::element_of<Keys>, host>{std::move(all.keys), std::move(all.counts)};
}

/// Returns the number of distinct keys of a range.
template <class Device, class Keys>
std::size_t unique_count(const out_of_core<Device>& place, const Keys& keys) {
  return detail::unique_out_of_core(place, keys, {}, "roost::unique_count").keys.size();
}

/// Combines the values of each key, with the same calls of `f` as roost::group_by: sums of floating-point
/// numbers have the same bits. Groups are in the order of their first rows. If all functions are those named
/// there except multiplies, of integers, a piece of the input is combined before it waits in host memory, so
/// that few groups take little of it; otherwise a key, a value and 8 bytes wait for each row.
/// value_order::any makes nothing faster. Throws as that call does.
template <class Device, class Keys, class Values, class F>
auto group_by(const out_of_core<Device>& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options = {});

/// The mean of each key's values, in double precision. Otherwise as group_by.
template <class Device, class Keys, class Values>
auto group_means(const out_of_core<Device>& place, const Keys& keys, const Values& values,
                 const group_options& options = {});

}  // namespace roost

#include "roost/out_of_core/detail/groups.hpp"
#include "roost/out_of_core/detail/join.hpp"
