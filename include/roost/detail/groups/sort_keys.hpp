#pragma once

#include "roost/detail/groups/index_keys.hpp"
#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"

#if defined(ROOST_SORT_BY_CUB) && defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#endif

// The distinct keys of a batch of integers by sorting it: by stable partitions, or on cuda by CUB, if all
// files of a program are compiled with ROOST_SORT_BY_CUB. CUB sorts small batches in a quarter of the time,
// but takes nvcc 4 to 6 seconds a file.

namespace roost::detail {

/// Integers in ascending order, with the numbers that came with them, or none.
template <class Key, class Number, class Place>
struct sorted_keys {
  using item = pair<typename in_order<Key>::word, Number>;
  partitioned<item, Place> items;

  struct key_at {
    const item* items;
    ROOST_FN Key operator()(std::size_t i) const { return in_order<Key>::key(items[i].key); }
  };
  struct number_at {
    const item* items;
    ROOST_FN Number operator()(std::size_t i) const { return value_of(items[i]); }
  };
  auto key() const { return key_at{items.items()}; }
  auto number() const { return number_at{items.items()}; }
};

template <class Keys, class Numbers>
struct in_order_with {
  Keys keys;
  Numbers numbers;
  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair_of(in_order<element_of<Keys>>::number(keys[i]), numbers[i]);
  }
};

/// Sorts keys, stably, and their numbers, which may be of type none. Keys must be equal but for so many low
/// bits. Asynchronous on cuda.
template <class Place, class Keys, class Numbers>
auto sort_keys(const Place& place, const Keys& keys, const Numbers& numbers,
               std::uint32_t bits = 8 * sizeof(element_of<Keys>)) {
  return sorted_keys<element_of<Keys>, element_of<Numbers>, Place>{
      sort_pairs(place, in_order_with<Keys, Numbers>{keys, numbers}, bits)};
}

#if defined(ROOST_SORT_BY_CUB) && defined(__CUDACC__)
/// The same as arrays.
template <class Key, class Number>
struct sorted_keys<Key, Number, cuda> {
  array<Key, cuda> keys;
  array<Number, cuda> numbers;

  auto key() const { return element<const Key*>{keys.data()}; }
  auto number() const { return element<const Number*>{numbers.data()}; }
};

/// Elements of a sequence that are stored, or a copy of them.
template <class Sequence>
class stored_elements {
 public:
  using value_type = element_of<Sequence>;
  stored_elements(const cuda& place, const Sequence& all) {
    if constexpr (std::is_same_v<Sequence, sequence<const value_type*>>) {
      data_ = all.first;
    } else {
      copy_ = array_of(place, all.size(), element<Sequence>{all});
      data_ = copy_.data();
    }
  }
  const value_type* data() const { return data_; }

 private:
  array<value_type, cuda> copy_;
  const value_type* data_;
};

template <class Keys, class Numbers>
auto sort_keys(const cuda& place, const Keys& keys, const Numbers& numbers,
               std::uint32_t low_bits = 8 * sizeof(element_of<Keys>)) {
  using Key = element_of<Keys>;
  using Number = element_of<Numbers>;
  const int bits = static_cast<int>(low_bits);
  const std::size_t n = keys.size();
  const device_guard guard(place.device());
  sorted_keys<Key, Number, cuda> result;
  result.keys = array<Key, cuda>(place, n);
  const stored_elements<Keys> from(place, keys);
  const auto* const in = for_cub(from.data());
  auto* const out = for_cub(result.keys.data());
  const auto run = [&](const char* what, const auto& sort) {
    std::size_t bytes = 0;
    check(sort(nullptr, bytes), what);
    const scratch_block scratch(place, bytes);
    check(sort(scratch.get(), bytes), what);
  };
  if constexpr (std::is_same_v<Number, none>) {
    run("cub::DeviceRadixSort::SortKeys", [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n, 0, bits, place.stream());
    });
  } else {
    const stored_elements<Numbers> numbers_in(place, numbers);
    result.numbers = array<Number, cuda>(place, n);
    run("cub::DeviceRadixSort::SortPairs", [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, in, out, numbers_in.data(),
                                             result.numbers.data(), n, 0, bits, place.stream());
    });
  }
  return result;
}
#endif

/// Whether a key is the first of its copies.
template <class Key>
struct is_first_of_copies {
  Key key;
  ROOST_FN bool operator()(std::size_t i) const { return i == 0 || key(i) != key(i - 1); }
};

/// Writes what is wanted of the distinct keys; what is null is not.
template <class At, class Number>
struct put_distinct {
  using key_type = std::remove_cvref_t<decltype(std::declval<const At&>()(0))>;
  static constexpr bool sees_all = true;
  At key;
  Number number;
  key_type* keys;
  std::uint32_t* first;
  std::uint32_t* starts;
  std::uint32_t* inverse;

  ROOST_FN void operator()(std::uint64_t position, std::uint64_t i, bool is_first) const {
    if (is_first) {
      keys[position] = key(i);
      if (starts != nullptr) starts[position] = static_cast<std::uint32_t>(i);
    }
    if constexpr (!std::is_same_v<decltype(number(i)), none>) {
      if (is_first && first != nullptr) first[position] = number(i);
      if (inverse != nullptr) inverse[number(i)] = static_cast<std::uint32_t>(position - (is_first ? 0 : 1));
    }
  }
};

struct rows_of_sorted {
  const std::uint32_t* starts;
  std::size_t size, n;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return (i + 1 == size ? n : std::size_t{starts[i + 1]}) - starts[i];
  }
};

/// The distinct keys of a sequence of integers, ascending, and whatever else is wanted. Synchronises.
template <class Place, class Sequence>
auto unique_by_sorting(const Place& place, const Sequence& keys, const unique_options& wanted) {
  using Key = element_of<Sequence>;
  const std::size_t n = keys.size();
  unique_keys<Key, Place> result;
  result.keys = array<Key, Place>(place, n);
  if (wanted.first) result.first = array<std::uint32_t, Place>(place, n);
  if (wanted.inverse) result.inverse = array<std::uint32_t, Place>(place, n);
  array<std::uint32_t, Place> starts(place, wanted.counts ? n : 0);
  const auto select_distinct = [&](const auto& sorted) {
    const auto key = sorted.key();
    const auto number = sorted.number();
    array<std::uint64_t, Place> size = zeros(place, 1);
    select(place, n, is_first_of_copies{key},
           put_distinct<decltype(sorted.key()), decltype(sorted.number())>{
               key, number, result.keys.data(), result.first.data(), starts.data(), result.inverse.data()},
           size.data());
    return read_one(place, size.data());
  };
  const std::uint64_t size = wanted.first || wanted.inverse
                                 ? select_distinct(sort_keys(place, keys, numbers_to<std::uint32_t>(n)))
                                 : select_distinct(sort_keys(place, keys, computed(n, constant<none>{})));
  if (wanted.counts) result.counts = array_of(place, size, rows_of_sorted{starts.data(), size, n});
  truncate(place, result.keys, size);
  truncate(place, result.first, size);
  place.synchronize();
  return result;
}

/// Different integers, ascending. Synchronises.
template <class Place, class Sequence>
auto sort_distinct(const Place& place, const Sequence& keys) {
  auto sorted = sort_keys(place, keys, computed(keys.size(), constant<none>{}));
  if constexpr (requires { sorted.keys; }) {
    place.synchronize();
    return std::move(sorted.keys);
  } else {
    auto result = array_of(place, keys.size(), sorted.key());
    place.synchronize();
    return result;
  }
}

}  // namespace roost::detail
