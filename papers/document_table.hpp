#pragma once

#include <optional>

#include "roost/kernels.hpp"
#include "roost/sparse/coordinate_index.hpp"

// The table of the document on submanifold convolution: a voxel's number in its bounding box, hashed by the
// finalizer of MurmurHash3, in 2 n slots with linear probing; all ones is an empty slot.

namespace roost::bench {

/// The handle for kernels. Its two functions are the document's, with two differences that the comparison
/// needs: loops end after one pass over the slots, and of copies of a key the first in the input wins, except
/// with `last_wins`. Keys have 64 bits.
class document_table_ref {
 public:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  ROOST_FN document_table_ref(std::uint64_t* keys, std::uint32_t* values, std::uint64_t slots)
      : keys_(keys), values_(values), slots_(slots) {}

  /// False after one pass over the slots. `last_wins`: the value is stored as in the document.
  ROOST_FN bool insert(std::uint64_t key, std::uint32_t value, bool last_wins = false) const {
    std::uint64_t slot = home(key);
    for (std::uint64_t step = 0; step < slots_; ++step) {
      const std::uint64_t before =
          detail::shared_access::compare_exchange(&keys_[slot], std::uint64_t{empty}, key);
      if (before == empty || before == key) {
        if (last_wins) {
          detail::shared_access::store(&values_[slot], value);
        } else {
          kernels::fetch_min(values_[slot], value);
        }
        return true;
      }
      slot = (slot + 1) % slots_;
    }
    return false;
  }

  ROOST_FN std::uint32_t find(std::uint64_t key) const {
    std::uint64_t slot = home(key);
    for (std::uint64_t step = 0; step < slots_; ++step) {
      const std::uint64_t here = keys_[slot];
      if (here == empty) return ~0u;
      if (here == key) return values_[slot];
      slot = slot + 1;
      if (slot >= slots_) slot = 0;
    }
    return ~0u;
  }

 private:
  ROOST_FN std::uint64_t home(std::uint64_t key) const { return mix64(key) % slots_; }

  std::uint64_t* keys_;
  std::uint32_t* values_;
  std::uint64_t slots_;
};

/// Numbers of voxels in a box, batch first. The document's kernels do not check whether a neighbour is beyond
/// the border, where its number is that of another voxel.
template <int D>
struct document_box {
  std::int32_t least[D + 1];
  std::uint64_t side[D + 1];

  explicit document_box(const coordinate_box<D>& bounds) {
    least[0] = bounds.least.batch;
    side[0] = static_cast<std::uint64_t>(std::int64_t{bounds.greatest.batch} - least[0] + 1);
    for (int a = 0; a < D; ++a) {
      least[a + 1] = bounds.least.at[a];
      side[a + 1] = static_cast<std::uint64_t>(std::int64_t{bounds.greatest.at[a]} - least[a + 1] + 1);
    }
  }

  /// False if it is not in the box.
  ROOST_FN bool number(const coordinate<D>& c, std::uint64_t& result) const {
    result = 0;
    bool inside = true;
    ROOST_UNROLL
    for (int a = 0; a <= D; ++a) {
      const auto x = static_cast<std::uint64_t>(
          std::int64_t{a == 0 ? c.batch : c.at[kernels::larger(a, 1) - 1]} - least[a]);
      inside &= x < side[a];
      result = result * side[a] + x;
    }
    return inside;
  }
};

/// Inserts the numbers of voxels as keys, and their positions in the input as values: the document's kernels
/// in two and three dimensions.
template <int D>
struct document_insert {
  document_table_ref table;
  document_box<D> box;
  const coordinate<D>* coordinates;
  bool last_wins = false;
  ROOST_FN void operator()(std::size_t i) const {
    std::uint64_t key = 0;
    if (box.number(coordinates[i], key)) table.insert(key, static_cast<std::uint32_t>(i), last_wins);
  }
};

/// rows[k * n + i] = the voxel at the k-th of 3^D offsets from voxel i.
template <int D, class Find>
struct neighbours_by_lookups {
  Find find;
  const coordinate<D>* coordinates;
  std::uint64_t n;
  std::uint32_t* rows;
  ROOST_FN void operator()(std::size_t i) const {
    const coordinate<D> c = coordinates[i];
    constexpr std::uint32_t volume = D == 2 ? 9 : D == 3 ? 27 : 81;
    for (std::uint32_t k = 0; k < volume; ++k) {
      coordinate<D> other = c;
      std::uint32_t rest = k;
      for (int a = D; a-- != 0; rest /= 3) other.at[a] += static_cast<std::int32_t>(rest % 3) - 1;
      rows[k * n + i] = find(other);
    }
  }
};

template <int D>
struct document_find {
  document_table_ref table;
  document_box<D> box;
  ROOST_FN std::uint32_t operator()(const coordinate<D>& c) const {
    std::uint64_t key = 0;
    return box.number(c, key) ? table.find(key) : ~0u;
  }
};

/// rows[i] = the answer for the i-th voxel.
template <class Find>
struct find_rows_of {
  Find find;
  const coordinate<3>* coordinates;
  std::uint32_t* rows;
  ROOST_FN void operator()(std::size_t i) const { rows[i] = find(coordinates[i]); }
};

/// Empty slots in memory of a place.
template <class Place>
class document_slots {
 public:
  document_slots(const Place& place, std::size_t slots) : keys_(place, slots), values_(place, slots) {
    place.fill(keys_.data(), 0xff, keys_.bytes());
    place.fill(values_.data(), 0xff, values_.bytes());
  }
  document_table_ref ref() const {
    return {const_cast<std::uint64_t*>(keys_.data()), const_cast<std::uint32_t*>(values_.data()),
            keys_.size()};
  }
  std::size_t bytes() const { return keys_.bytes() + values_.bytes(); }

 private:
  array<std::uint64_t, Place> keys_;
  array<std::uint32_t, Place> values_;
};

/// The table of a batch of voxels.
template <int D, class Place>
class document_table {
 public:
  document_table(const Place& place, std::span<const coordinate<D>> coordinates,
                 const coordinate_box<D>& bounds, bool last_wins = false)
      : box_(bounds), slots_(place, 2 * coordinates.size()) {
    place.for_each(coordinates.size(), document_insert<D>{slots_.ref(), box_, coordinates.data(), last_wins});
  }
  document_find<D> finder() const { return {slots_.ref(), box_}; }
  std::size_t bytes() const { return slots_.bytes(); }

 private:
  document_box<D> box_;
  document_slots<Place> slots_;
};

}  // namespace roost::bench
