// Bodies of roost/two_way_index.hpp.

#include "roost/detail/partition/select.hpp"
#include "roost/detail/partition/sort.hpp"

namespace roost {
namespace detail {

/// source[order[i]]
template <class T>
struct in_order {
  const T* source;
  const std::uint32_t* order;
  ROOST_FN T operator()(std::size_t i) const { return source[order[i]]; }
};

template <class Key>
struct key_with_index {
  const Key* keys;
  const std::uint32_t* indices;
  ROOST_FN auto operator()(std::size_t group) const { return make_pair(keys[group], indices[group]); }
};

/// indices[order[i]] = first + i
struct write_index {
  const std::uint32_t* order;
  std::uint32_t first;
  std::uint32_t* indices;
  ROOST_FN void operator()(std::size_t i) const { indices[order[i]] = first + static_cast<std::uint32_t>(i); }
};

/// Counts the groups whose keys have indices.
struct count_again {
  const std::uint32_t* indices;
  std::uint32_t no_index;
  const std::uint64_t* source;
  std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t g) const {
    if (indices[g] != no_index) counts[indices[g]] += source[g];
  }
};

template <class Place>
array<std::uint32_t, Place> all_numbers(const Place& place, std::size_t n) {
  array<std::uint32_t, Place> result(place, n);
  write_numbers(place, n, number<std::uint32_t>(), result.data());
  return result;
}

/// A group by an unsigned number in whose order groups are to be: integers in theirs, negative ones first.
template <class T>
struct group_by_number {
  const T* numbers;
  const std::uint32_t* groups;
  ROOST_FN auto operator[](std::size_t i) const {
    const auto bits = key_bits(numbers[groups[i]]);
    constexpr auto sign = static_cast<decltype(bits)>(std::is_signed_v<T> ? 1 : 0) << (8 * sizeof(T) - 1);
    return make_pair(bits ^ sign, groups[i]);
  }
};

template <class Item>
struct sorted_group {
  const Item* sorted;
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return sorted[i].value; }
};

/// The numbers of groups that are new, in the order in which they get indices. `items`: of all groups.
template <class Key, class Place>
array<std::uint32_t, Place> order_of_groups(const Place& place,
                                            const groups<Key, std::uint32_t, Place>& source,
                                            array<std::uint32_t, Place>&& fresh, index_order order,
                                            std::size_t items) {
  const auto sort_by = [&](const auto& numbers, std::uint32_t bits) {
    using number = std::remove_cvref_t<decltype(*numbers.data())>;
    const sized<group_by_number<number>> pairs{{numbers.data(), fresh.data()}, fresh.size()};
    const auto sorted = sort_pairs(place, pairs, bits);
    write_numbers(place, fresh.size(),
                  sorted_group<std::remove_cvref_t<decltype(*sorted.items())>>{sorted.items()}, fresh.data());
  };
  if (order == index_order::first_occurrence) {
    sort_by(source.values, static_cast<std::uint32_t>(std::bit_width(items)));
  } else if (order == index_order::by_key) {
    if constexpr (std::is_integral_v<Key>) {
      sort_by(source.keys, 8 * sizeof(Key));
    } else {
      detail::raise<invalid_argument>(
          {"roost::two_way_index: keys that are not integers cannot be put in order by_key; take "
           "first_occurrence or any"});
    }
  }
  return std::move(fresh);
}

/// Groups a batch of keys with their places in it.
template <group_kind Kind = group_kind(), class Place, class Sequence>
auto group_numbered(const Place& place, const Sequence& keys, std::uint64_t seed, const char* where) {
  constexpr std::size_t most = ~std::uint32_t{0} - std::size_t{1};
  const std::size_t n = keys.size();
  if (n > most)
    detail::raise<invalid_argument>({where, ": a batch of ", n, " keys; give at most 2^32 - 2 at once"});
  const auto numbers = numbers_to<std::uint32_t>(n);
  return group<Kind>(place, zipped<Sequence, std::remove_const_t<decltype(numbers)>>{keys, numbers}, seed,
                     where);
}

template <class Ref, class Key>
struct good_index {
  Ref indices;
  const Key* keys;
  const std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const found<std::uint32_t> index = indices.find(keys[i]);
    return index && *index == i && counts[i] != 0 ? 1 : 0;
  }
};

}  // namespace detail

template <class Key, class Place>
template <class Keys>
array<std::uint32_t, Place> two_way_index<Key, Place>::add(const Place& place, const Keys& keys) {
  constexpr const char* where = "roost::two_way_index";
  const auto sequence = detail::sequence_as<Key>(keys);
  const std::size_t before = size();
  const auto groups =
      detail::group_numbered<detail::group_kind{.way_back = true}>(place, sequence, options_.seed, where);

  array<std::uint32_t, Place> index_of(place, groups.size());
  auto fresh = [&] {
    if (before == 0) return detail::all_numbers(place, groups.size());
    find(place, groups.keys, index_of);
    return detail::select_numbers<std::uint32_t>(place, groups.size(),
                                                 detail::is_value<std::uint32_t>{index_of.data(), no_index});
  }();
  const auto order =
      detail::order_of_groups(place, groups, std::move(fresh), options_.order, sequence.size());
  const std::size_t after = before + order.size();
  if (after >= no_index)
    detail::raise<invalid_argument>({where, ": ", after, " different keys; at most 2^32 - 2 have indices"});

  array<Key, Place> all_keys(place, after);
  array<std::uint64_t, Place> all_counts(place, after);
  place.copy(all_keys.data(), keys_.data(), keys_.bytes());
  place.copy(all_counts.data(), counts_.data(), counts_.bytes());
  detail::write_numbers(place, order.size(), detail::in_order<Key>{groups.keys.data(), order.data()},
                        all_keys.data() + before);
  detail::write_numbers(place, order.size(),
                        detail::in_order<std::uint64_t>{groups.counts.data(), order.data()},
                        all_counts.data() + before);
  if (before != 0)
    place.for_each(groups.size(),
                   detail::count_again{index_of.data(), no_index, groups.counts.data(), all_counts.data()});
  place.for_each(order.size(),
                 detail::write_index{order.data(), static_cast<std::uint32_t>(before), index_of.data()});
  map indices = [&] {
    if (before != 0)
      return map(place, all_keys, detail::numbers_to<std::uint32_t>(after),
                 {.load_factor = options_.load_factor, .seed = options_.seed});
    array<pair<Key, std::uint32_t>, Place> pairs(place, after);
    detail::write_numbers(place, after, detail::key_with_index<Key>{groups.keys.data(), index_of.data()},
                          pairs.data());
    return detail::map_of_groups<map>(place, groups, pairs, options_.load_factor);
  }();
  array<std::uint32_t, Place> result(place, sequence.size());
  detail::write_of_each_item(place, groups, index_of.data(), result);
  place.synchronize();
  keys_ = std::move(all_keys);
  counts_ = std::move(all_counts);
  indices_ = std::move(indices);
  return result;
}

template <class Key, class Place>
bool two_way_index<Key, Place>::valid(const Place& place) const {
  if (empty()) return indices_.empty();
  return indices_.size() == size() &&
         place.sum(size(), detail::good_index<typename map::ref_type, Key>{indices_.ref(), keys_.data(),
                                                                           counts_.data()}) == size();
}

template <class Place, class Keys>
auto unique(const Place& place, const Keys& keys, index_order order) {
  using key = detail::element_of<Keys>;
  auto groups = detail::group_numbered(place, detail::as_sequence(keys), 0, "roost::unique");
  if (order == index_order::any) return std::move(groups.keys);
  const auto by = detail::order_of_groups(place, groups, detail::all_numbers(place, groups.size()), order,
                                          std::ranges::size(keys));
  array<key, Place> result(place, groups.size());
  detail::write_numbers(place, result.size(), detail::in_order<key>{groups.keys.data(), by.data()},
                        result.data());
  place.synchronize();
  return result;
}

template <class Place, class Keys>
std::size_t unique_count(const Place& place, const Keys& keys) {
  return unique(place, keys, index_order::any).size();
}

}  // namespace roost
