// Bodies of roost/two_way_index.hpp.

#include "roost/detail/select.hpp"
#include "roost/sorted_map.hpp"

namespace roost {
namespace detail {

/// from[order[i]]
template <class T>
struct in_order {
  const T* from;
  const std::uint32_t* order;
  ROOST_FN T operator()(std::size_t i) const { return from[order[i]]; }
};

/// Counts the groups whose keys have indices.
struct count_again {
  const std::uint32_t* indices;
  std::uint32_t no_index;
  const std::uint64_t* from;
  std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t g) const {
    if (indices[g] != no_index) counts[indices[g]] += from[g];
  }
};

/// The numbers of groups that are new, in the order in which they get indices.
template <class Key, class Place>
array<std::uint32_t, Place> order_of_groups(const Place& place, const groups<Key, std::uint32_t, Place>& from, array<std::uint32_t, Place>&& fresh, index_order order) {
  const auto sorted = [&](const auto& by) {
    const computed keys(fresh.size(), in_order<std::remove_cvref_t<decltype(*by.data())>>{by.data(), fresh.data()});
    const sorted_map map(place, keys, fresh);
    array<std::uint32_t, Place> result(place, fresh.size());
    place.copy(result.data(), map.values().data(), result.bytes());
    place.synchronize();
    return result;
  };
  if (order == index_order::first_occurrence) return sorted(from.firsts);
  if (order == index_order::by_key) {
    if constexpr (std::is_integral_v<Key>) {
      return sorted(from.keys);
    } else {
      throw invalid_argument("roost::two_way_index: keys that are not integers cannot be put in order by_key; take first_occurrence or any");
    }
  }
  return std::move(fresh);
}

/// Groups a batch of keys with their places in it.
template <class Place, class Sequence>
auto group_numbered(const Place& place, const Sequence& keys, std::uint64_t seed, const char* where) {
  constexpr std::size_t most = ~std::uint32_t{0} - std::size_t{1};
  const std::size_t n = keys.size();
  if (n > most) throw invalid_argument(std::string(where) + ": a batch of " + std::to_string(n) + " keys; give at most 2^32 - 2 at once");
  const auto numbers = numbers_to<std::uint32_t>(n);
  return group<false>(place, zipped<Sequence, std::remove_const_t<decltype(numbers)>>{keys, numbers}, seed, where);
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
  requires(!std::is_same_v<Keys, two_way_index<Key, Place>>)
two_way_index<Key, Place>::two_way_index(const Place& place, const Keys& keys, options options)
    : options_(options),
      keys_(place, 0),
      counts_(place, 0),
      indices_(place, keys_, detail::numbers_to<std::uint32_t>(0), {.load_factor = options.load_factor, .seed = options.seed}),
      input_(place, 0) {
  input_ = add(place, keys);
}

template <class Key, class Place>
template <class Keys>
array<std::uint32_t, Place> two_way_index<Key, Place>::add(const Place& place, const Keys& keys) {
  constexpr const char* where = "roost::two_way_index";
  const auto sequence = detail::as_sequence(keys);
  const std::size_t n = sequence.size(), before = size();
  const auto groups = detail::group_numbered(place, sequence, options_.seed, where);

  array<std::uint32_t, Place> known(place, groups.size());
  find(place, groups.keys, known);
  const auto order = detail::order_of_groups(
      place, groups, detail::select_numbers<std::uint32_t>(place, groups.size(), detail::is_value<std::uint32_t>{known.data(), no_index}), options_.order);
  const std::size_t after = before + order.size();
  if (after >= no_index) throw invalid_argument(std::string(where) + ": " + std::to_string(after) + " different keys; at most 2^32 - 2 have indices");

  array<Key, Place> all_keys(place, after);
  array<std::uint64_t, Place> all_counts(place, after);
  place.copy(all_keys.data(), keys_.data(), keys_.bytes());
  place.copy(all_counts.data(), counts_.data(), counts_.bytes());
  detail::write_numbers(place, order.size(), detail::in_order<Key>{groups.keys.data(), order.data()}, all_keys.data() + before);
  detail::write_numbers(place, order.size(), detail::in_order<std::uint64_t>{groups.counts.data(), order.data()}, all_counts.data() + before);
  if (before != 0) place.for_each(groups.size(), detail::count_again{known.data(), no_index, groups.counts.data(), all_counts.data()});
  map indices(place, all_keys, detail::numbers_to<std::uint32_t>(after), {.load_factor = options_.load_factor, .seed = options_.seed});
  array<std::uint32_t, Place> result(place, n);
  indices.find(place, sequence, result, no_index);
  place.synchronize();
  keys_ = std::move(all_keys);
  counts_ = std::move(all_counts);
  indices_ = std::move(indices);
  return result;
}

template <class Key, class Place>
bool two_way_index<Key, Place>::valid(const Place& place) const {
  return indices_.size() == size() && place.sum(size(), detail::good_index<typename map::ref_type, Key>{indices_.ref(), keys_.data(), counts_.data()}) == size();
}

template <class Place, class Keys>
auto unique(const Place& place, const Keys& keys, index_order order) {
  using key = detail::element_of<Keys>;
  auto groups = detail::group_numbered(place, detail::as_sequence(keys), 0, "roost::unique");
  if (order == index_order::any) return std::move(groups.keys);
  array<std::uint32_t, Place> all(place, groups.size());
  detail::write_numbers(place, all.size(), detail::number<std::uint32_t>(), all.data());
  const auto by = detail::order_of_groups(place, groups, std::move(all), order);
  array<key, Place> result(place, groups.size());
  detail::write_numbers(place, result.size(), detail::in_order<key>{groups.keys.data(), by.data()}, result.data());
  place.synchronize();
  return result;
}

template <class Place, class Keys>
std::size_t unique_count(const Place& place, const Keys& keys) {
  return unique(place, keys, index_order::any).size();
}

}  // namespace roost
