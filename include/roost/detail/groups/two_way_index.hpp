#pragma once

// Bodies of roost/two_way_index.hpp.

#include "roost/detail/groups/aggregate.hpp"
#include "roost/detail/groups/few_groups.hpp"
#include "roost/detail/groups/sort_bits.hpp"
#include "roost/detail/groups/sort_keys.hpp"
#include "roost/group_by.hpp"
#include "roost/two_way_index.hpp"

namespace roost {
namespace detail {

/// counts[indices[i]] += source[i], or = source[i] for keys that had no index: indices from `before` on.
struct add_counts {
  const std::uint32_t* indices;
  const std::uint64_t* source;
  std::uint32_t before;
  std::uint64_t* counts;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t index = indices[i];
    counts[index] = (index < before ? counts[index] : 0) + source[i];
  }
};

/// Throws for keys without an order.
template <class Key>
void check_order(index_order order, const char* where) {
  if (order == index_order::by_key && !is_integer<Key>)
    detail::raise<invalid_argument>({where,
                                     ": keys that are not integers cannot be put in order by_key; take "
                                     "first_occurrence or any"});
}

/// Orders the numbers of keys by the keys, and returns these. Asynchronous on cuda.
template <class Key, class Place>
array<Key, Place> sort_by_key(const Place& place, const array<Key, Place>& keys,
                              array<std::uint32_t, Place>& numbers) {
  const std::size_t n = numbers.size();
  const auto sorted = sort_keys(place, computed(n, gather<Key>{keys.data(), numbers.data()}),
                                as_sequence(std::as_const(numbers)));
  numbers = array_of(place, n, sorted.number());
  return array_of(place, n, sorted.key());
}

/// The index of a new key is its rank by first occurrence, after all existing indices.
struct index_by_rank {
  const std::uint32_t* first;
  marks source;
  std::uint32_t before;
  std::uint32_t* indices;
  bool all;  // no key has an index
  ROOST_FN void operator()(std::size_t number) const {
    if (all || indices[number] == ~0u) indices[number] = before + source.rank(first[number]);
  }
};

/// The distinct keys of a batch by first occurrence and, if requested, where these are.
template <class Place, class Sequence>
auto distinct_by_first(const Place& place, const Sequence& sequence, bool first, const char* where) {
  using Key = element_of<Sequence>;
  const std::size_t n = sequence.size();
  unique_keys<Key, Place> result;
  auto found = index_keys<std::uint32_t>(place, sequence, 0, {.marks = true}, where);
  const auto write = [&]<class Source>(const Source& source, auto& target) {
    target = std::remove_cvref_t<decltype(target)>(place, found.size);
    if (found.size != n) {
      write_marked_elements(place, source, found.marked->ref(), target.data());
    } else if constexpr (std::is_same_v<Source, roost::detail::sequence<const Key*>>) {
      place.copy(target.data(), source.first, target.bytes());
    } else {
      write_numbers(place, n, element<Source>{source}, target.data());
    }
  };
  write(sequence, result.keys);
  if (first) write(numbers_to<std::uint32_t>(n), result.first);
  place.synchronize();
  return result;
}

/// The new keys of a batch, in the order of their indices.
template <class Key, class Place>
struct new_keys {
  array<Key, Place> keys;
  array<std::uint32_t, Place> index_of;  // of each of the batch's keys, by its number; empty: that
  bool each_item = false;                // of the batch is a new key: its index is its position
};

/// The indices that a batch's keys have before it is added, no_index for a new key; empty if all are new. New
/// keys get the indices from `before` on.
template <class Place>
struct known_indices {
  array<std::uint32_t, Place> of_keys;
  std::size_t before = 0;
};

/// Asynchronous on cuda.
template <class Place, class Sequence, class Batch>
auto order_new_keys(const Place& place, const Sequence& sequence, Batch& batch, index_order order,
                    known_indices<Place>&& known, const char* where) {
  using Key = element_of<Sequence>;
  auto& indices = known.of_keys;
  const std::size_t before = known.before;
  const bool all = indices.size() == 0;
  const auto from_before = static_cast<std::uint32_t>(before);
  new_keys<Key, Place> result;
  const auto check = [&](std::size_t count) {
    if (before + count >= ~std::uint32_t{0})
      detail::raise<invalid_argument>(
          {where, ": ", before + count, " different keys; at most 2^32 - 2 have indices"});
  };
  if (order == index_order::any && all) {
    result.keys = std::move(batch.keys);
  } else if (order != index_order::first_occurrence) {
    using is_new = is_value<std::uint32_t>;
    auto fresh = all ? array_of(place, batch.size, number<std::uint32_t>())
                     : select_numbers<std::uint32_t>(place, batch.size, is_new{indices.data(), ~0u});
    check(fresh.size());
    result.index_of = all ? array<std::uint32_t, Place>(place, batch.size) : std::move(indices);
    if constexpr (is_integer<Key>) {
      if (order == index_order::by_key) result.keys = sort_by_key(place, batch.keys, fresh);
    }
    if (order == index_order::any)
      result.keys = array_of(place, fresh.size(), gather<Key>{batch.keys.data(), fresh.data()});
    place.for_each(fresh.size(),
                   scatter{fresh.data(), number<std::uint32_t>{from_before}, result.index_of.data()});
  } else if constexpr (std::is_same_v<decltype(batch.first), array<std::uint32_t, Place>>) {
    if (all && batch.size == sequence.size()) {  // all are distinct: they are in order
      result.keys = array_of(place, batch.size, element<Sequence>{sequence});
      result.index_of = std::move(batch.first);
      result.each_item = true;
      return result;
    }
    marked_positions<Place> marked(place, sequence.size());
    place.for_each(batch.size, mark_first{batch.first.data(), all ? nullptr : indices.data(), marked.ref()});
    marked.rank(place, false);
    const std::uint64_t count = read_one(place, marked.before.data() + marked.words.size());
    check(count);
    result.index_of = all ? array<std::uint32_t, Place>(place, batch.size) : std::move(indices);
    place.for_each(batch.size,
                   index_by_rank{batch.first.data(), marked.ref(), from_before, result.index_of.data(), all});
    result.keys = array<Key, Place>(place, count);
    write_marked_elements(place, sequence, marked.ref(), result.keys.data());
  }
  return result;
}

/// The index of each of n items of a batch.
template <class Place, class Batch, class Key>
array<std::uint32_t, Place> indices_of_items(const Place& place, const Batch& batch, std::size_t n,
                                             const new_keys<Key, Place>& fresh) {
  if (fresh.each_item) return array_of(place, n, number<std::uint32_t>());
  array<std::uint32_t, Place> result(place, n);
  batch.of_each_item(place, fresh.index_of.data(), result.data());
  return result;
}

/// The counts of all indices: the previous counts plus how often each key appears in the batch.
template <class Place, class Batch, class Key>
array<std::uint64_t, Place> counts_by_index(const Place& place, const array<std::uint64_t, Place>& before,
                                            Batch& batch, const new_keys<Key, Place>& fresh) {
  if (fresh.index_of.size() == 0 || fresh.each_item)  // in order, or all are 1
    return std::move(batch.counts);
  array<std::uint64_t, Place> counts(place, before.size() + fresh.keys.size());
  place.copy(counts.data(), before.data(), before.bytes());
  place.for_each(batch.size, add_counts{fresh.index_of.data(), batch.counts.data(),
                                        static_cast<std::uint32_t>(before.size()), counts.data()});
  return counts;
}

/// Where the key of each index first occurs, for a batch whose keys are all new.
template <class Place, class Batch, class Key>
array<std::uint32_t, Place> first_by_index(const Place& place, Batch& batch,
                                           const new_keys<Key, Place>& fresh) {
  if (fresh.index_of.size() == 0) return std::move(batch.first);
  if (fresh.each_item) return array_of(place, batch.size, number<std::uint32_t>());
  array<std::uint32_t, Place> result(place, batch.size);
  place.for_each(batch.size, scatter{fresh.index_of.data(), element<const std::uint32_t*>{batch.first.data()},
                                     result.data()});
  return result;
}

/// Calls f with a batch that is numbered.
template <class Place, class Sequence, class F>
auto with_indexed(const Place& place, const Sequence& sequence, std::uint64_t seed, const indexing_kind& kind,
                  const char* where, const F& f) {
  if (!kind.first) return f(index_keys<none>(place, sequence, seed, kind, where));
  return f(index_keys<std::uint32_t>(place, sequence, seed, kind, where));
}

/// The result of unique_all for few keys: in the order of first occurrence, unless they are sorted.
template <class Key>
auto unique_few(const host& cpu, few_groups<Key>&& few, const unique_options& wanted) {
  const std::size_t size = few.rows.size(), n = few.rows.numbers.size();
  const bool sorts = wanted.order == index_order::by_key;
  auto order = array_of(cpu, size, number<std::uint32_t>());
  unique_keys<Key, host> result;
  if constexpr (is_integer<Key>) {
    if (sorts) result.keys = sort_by_key(cpu, few.keys, order);
  }
  if (!sorts) result.keys = std::move(few.keys);
  const auto in_order = [&]<class T>(const T* source) {
    return array_of(cpu, size, gather<T>{source, order.data()});
  };
  if (wanted.first) result.first = in_order(few.rows.first.data());
  if (wanted.counts) result.counts = in_order(few.rows.counts());
  if (!wanted.inverse) return result;
  result.inverse = std::move(few.rows.numbers);
  if (!sorts) return result;
  array<std::uint32_t, host> position(cpu, size);
  cpu.for_each(size, scatter{order.data(), number<std::uint32_t>(), position.data()});
  cpu.for_each(n, [&](std::size_t i) { result.inverse[i] = position[result.inverse[i]]; });
  return result;
}

/// The distinct keys, and whatever else is wanted of them, from their numbers.
template <class Place, class Sequence>
auto unique_by_index(const Place& place, const Sequence& sequence, const unique_options& wanted,
                     const char* where, const std::optional<sample_facts>& sample) {
  using key = element_of<Sequence>;
  const indexing_kind kind{.keys = true,
                           .counts = wanted.counts,
                           .first = wanted.first || wanted.order == index_order::first_occurrence,
                           .indices = wanted.inverse,
                           .sample = sample};
  return with_indexed(place, sequence, 0, kind, where, [&](auto batch) {
    auto ordered = order_new_keys(place, sequence, batch, wanted.order, known_indices<Place>(), where);
    unique_keys<key, Place> result;
    if (wanted.inverse) result.inverse = indices_of_items(place, batch, sequence.size(), ordered);
    if (wanted.counts) result.counts = counts_by_index(place, array<std::uint64_t, Place>(), batch, ordered);
    if constexpr (std::is_same_v<decltype(batch.first), array<std::uint32_t, Place>>) {
      if (wanted.first) result.first = first_by_index(place, batch, ordered);
    }
    result.keys = std::move(ordered.keys);
    place.synchronize();
    return result;
  });
}

/// The copies that a sample of a batch shows. `least`: see looks_closer.
template <class Place, class Sequence>
sample_facts sample_of_keys(const Place& place, const Sequence& sequence, std::uint32_t least) {
  frequent_keys<element_of<Sequence>, Place> keys(leading_bits{0, 2});
  keys.sample(place, alone{sequence}, 1 << 16, least);
  return keys.seen;
}

/// roost::unique_all, for the call `where`.
template <class Place, class Keys>
unique_keys<element_of<Keys>, Place> unique_all(const Place& place, const Keys& keys,
                                                const unique_options& wanted, const char* where) {
  using key = element_of<Keys>;
  const auto sequence = as_sequence(keys);
  check_order<key>(wanted.order, where);
  batch_facts batch = facts_of<key>(place, sequence.size());
  const unique_facts facts{.keys_alone = !wanted.inverse && !wanted.counts,
                           .first = wanted.first,
                           .by_key = wanted.order == index_order::by_key,
                           .by_first = wanted.order == index_order::first_occurrence};
  for (;;) {
    switch (choose_unique(batch, facts)) {
      case unique_step::few:
        if constexpr (std::is_same_v<Place, host>) {
          const auto key_at = values_at{[&](std::size_t i) { return sequence[i]; }};
          if (auto few = index_few<key>(place, batch.rows, key_at))
            return unique_few(place, std::move(*few), wanted);
        }
        batch.tried.few = true;
        continue;
      case unique_step::aggregate:
        if constexpr (!std::is_same_v<Place, host> && sizeof(key) <= 8) {
          if (auto all = aggregator<Place, key, none>(place, batch.rows, false).run(alone{sequence})) {
            if constexpr (is_integer<key>) {
              if (facts.by_key)
                return {sort_distinct(place, as_sequence(std::as_const(all->keys))), {}, {}, {}};
            }
            return {std::move(all->keys), {}, {}, {}};
          }
        }
        batch.tried.tables = true;
        continue;
      case unique_step::mark:
        if constexpr (sizeof(key) <= 8) return distinct_by_first(place, sequence, wanted.first, where);
        break;
      case unique_step::sample:
        batch.sample = sample_of_keys(place, sequence, facts.by_key ? copies_least : 0);
        continue;
      case unique_step::sort:
        check_batch(batch.rows, where);
        if constexpr (is_integer<key>) return unique_by_sorting(place, sequence, wanted);
        break;
      case unique_step::sort_bits:
        check_batch(batch.rows, where);
        if constexpr (is_integer<key> && sizeof(key) == 4 && !std::is_same_v<Place, host>)
          return {sort_bits(place, sequence), {}, {}, {}};
        break;
      case unique_step::index_and_sort:
        if constexpr (is_integer<key>) {
          const auto numbered =
              index_keys<none>(place, sequence, 0, {.keys = true, .sample = batch.sample}, where);
          return {sort_distinct(place, as_sequence(numbered.keys)), {}, {}, {}};
        }
        break;
      case unique_step::number:
        break;
    }
    return unique_by_index(place, sequence, wanted, where, batch.sample);
  }
}

template <class Ref, class Key>
struct good_index {
  Ref indices;
  const Key* keys;
  const std::uint64_t* counts;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const found<std::uint32_t> index = indices.find(keys[i]);
    return index && *index == i && (counts == nullptr || counts[i] != 0) ? 1 : 0;
  }
};

}  // namespace detail

template <class Key, class Place>
template <class Keys>
array<std::uint32_t, Place> two_way_index<Key, Place>::add(const Place& place, const Keys& keys) {
  constexpr const char* where = "roost::two_way_index";
  const auto sequence = detail::sequence_as<Key>(keys);
  detail::check_order<Key>(options_.order, where);
  const std::size_t before = size();
  if (before != 0 && sequence.size() == 0) return {};
  const detail::indexing_kind kind{.keys = true,
                                   .counts = options_.counts,
                                   .first = options_.order == index_order::first_occurrence,
                                   .indices = true};
  return detail::with_indexed(place, sequence, options_.seed, kind, where, [&](auto batch) {
    array<std::uint32_t, Place> known(place, before == 0 ? 0 : batch.size);
    if (before != 0) find(place, batch.keys, known);
    auto fresh =
        detail::order_new_keys(place, sequence, batch, options_.order, {std::move(known), before}, where);
    const array<std::uint32_t, Place>& index_of = fresh.index_of;
    const std::size_t after = before + fresh.keys.size();
    array<std::uint64_t, Place> all_counts;
    if (options_.counts) all_counts = detail::counts_by_index(place, counts_, batch, fresh);
    array<Key, Place> all_keys = std::move(fresh.keys);
    if (before != 0) {
      array<Key, Place> both(place, after);
      place.copy(both.data(), keys_.data(), keys_.bytes());
      place.copy(both.data() + before, all_keys.data(), all_keys.bytes());
      all_keys = std::move(both);
    }
    map indices = [&] {
      if (before != 0)
        return map(place, all_keys, detail::numbers_to<std::uint32_t>(after),
                   {.load_factor = options_.load_factor, .seed = options_.seed});
      const bool in_hash_order = index_of.size() == 0;
      const detail::indexed_keys<Key> numbered{in_hash_order ? all_keys.data() : batch.keys.data(),
                                               index_of.data()};
      return detail::map_of_keys<map>(place, batch, numbered, after, options_.load_factor);
    }();
    auto result = detail::indices_of_items(place, batch, sequence.size(), fresh);
    place.synchronize();
    keys_ = std::move(all_keys);
    counts_ = std::move(all_counts);
    indices_ = std::move(indices);
    return result;
  });
}

template <class Key, class Place>
bool two_way_index<Key, Place>::valid(const Place& place) const {
  if (empty()) return indices_.empty();
  return indices_.size() == size() &&
         place.sum(size(), detail::good_index<typename map::ref_type, Key>{indices_.ref(), keys_.data(),
                                                                           counts_.data()}) == size();
}

template <detail::place_comes_first Place, class Keys>
std::size_t unique_count(const Place& place, const Keys& keys) {
  return detail::index_keys<none>(place, detail::as_sequence(keys), 0, {}, "roost::unique_count").size;
}

}  // namespace roost
