#pragma once

// Bodies of roost/shards/sharded_index.hpp.

#include "roost/shards/sharded_index.hpp"

namespace roost {
namespace detail {

/// A key of a shard, and how often it appears.
template <class Keys>
struct key_with_count {
  Keys keys;
  const std::uint64_t* counts;  // null: once
  std::size_t size() const { return keys.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair<std::remove_cvref_t<decltype(keys[0])>, std::uint64_t>{keys[i],
                                                                       counts == nullptr ? 1 : counts[i]};
  }
};

template <class Item>
struct add_count_of_item {
  const Item* items;
  const std::uint32_t* number;
  std::uint64_t* totals;
  ROOST_FN void operator()(std::size_t i) const { fetch_add(totals[number[i]], items[i].value); }
};

/// results[first[i]] = totals[i]
struct write_total_at_first {
  const std::uint32_t* first;
  const std::uint64_t* totals;
  std::uint64_t* results;
  ROOST_FN void operator()(std::size_t i) const { results[first[i]] = totals[i]; }
};

/// Distinct keys, and how often each appears in all ranges, if requested.
template <class Key, class Total, class Place>
struct counted_keys {
  array<Key, Place> keys;
  array<Total, Place> counts;
};

/// results[first[i]] = true
struct set_at_first {
  const std::uint32_t* first;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[first[i]] = true; }
};

/// The keys that this shard owns among the distinct keys of all shards. `Total` is bool, or std::uint64_t to
/// add up the counts of each shard's keys.
template <class Total, class Me, class Key>
auto share_of_keys(Me& me, const array<Key, typename Me::place_type>& keys,
                   const array<std::uint64_t, typename Me::place_type>& counts, index_order order,
                   std::uint64_t seed) {
  using place_type = typename Me::place_type;
  constexpr bool counted = !std::is_same_v<Total, bool>;
  const place_type& place = me.place();
  const auto mine = [&] {
    if constexpr (counted) {
      return split_by_owner<true>(me, key_with_count<sequence<const Key*>>{as_sequence(keys), counts.data()},
                                  seed);
    } else {
      return split_by_owner<true>(me, alone<sequence<const Key*>>{as_sequence(keys)}, seed);
    }
  }();
  const auto all = deliver(me, mine, me.gather(mine.counts));
  const std::size_t n = all.items.size();
  auto each = unique_all(place, keys_of(all), {.order = index_order::any, .first = true, .inverse = counted});
  array<Total, place_type> totals(place, counted ? each.keys.size() : 0);
  if constexpr (counted) {
    place.fill(totals.data(), 0, totals.bytes());
    using item = std::remove_cvref_t<decltype(*all.items.data())>;
    place.for_each(n, add_count_of_item<item>{all.items.data(), each.inverse.data(), totals.data()});
  }
  counted_keys<Key, Total, place_type> result;
  if (order == index_order::any) {
    place.synchronize();
    result = {std::move(each.keys), std::move(totals)};
    return result;
  }
  array<Total, place_type> of_first(place, n), sent(place, keys.size()), total(place, keys.size());
  place.fill(of_first.data(), 0, of_first.bytes());
  if constexpr (counted) {
    place.for_each(each.keys.size(), write_total_at_first{each.first.data(), totals.data(), of_first.data()});
  } else {
    place.for_each(each.keys.size(), set_at_first{each.first.data(), of_first.data()});
  }
  send_back(me, all, of_first.data(), mine, sent.data());
  mine.parts.restore_each(place, sent.data(), put_to<Total>{total.data()}, nullptr);
  const auto first =
      select_numbers<std::uint32_t>(place, total.size(), is_other_value<Total>{total.data(), Total{}});
  result = {{place, first.size()}, {place, counted ? first.size() : 0}};
  write_numbers(place, first.size(), gather<Key, std::uint32_t>{keys.data(), first.data()},
                result.keys.data());
  if constexpr (counted) {
    write_numbers(place, first.size(), gather<std::uint64_t, std::uint32_t>{total.data(), first.data()},
                  result.counts.data());
  }
  place.synchronize();
  return result;
}

inline void check_order(index_order order, const char* where) {
  if (order != index_order::by_key) return;
  raise<invalid_argument>(
      {where, ": keys of several shards have no order by key; take first_occurrence or any"});
}

template <class Key>
struct number_from {
  Key first;
  ROOST_FN Key operator()(std::size_t i) const { return first + static_cast<Key>(i); }
};

struct is_index_of_key {
  const std::uint32_t* indices;
  std::uint32_t first;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return indices[i] == first + i ? 1 : 0; }
};

}  // namespace detail

template <class Key, class Shards>
template <class Keys>
void sharded_index<Key, Shards>::number_keys(const Shards& shards, const Keys& keys, const options& chosen) {
  constexpr const char* where = "roost::sharded_index";
  using keys_array = array<Key, place_type>;
  detail::check_order(chosen.order, where);
  detail::check_parts(shards, where, keys);
  parts_ = detail::make_each<Shards, part>(shards);
  auto different = detail::make_each<Shards, keys_array>(shards);  // of each range
  auto found = detail::make_each<Shards, array<std::uint32_t, place_type>>(shards);
  shards.run([&](auto& me) {
    part& mine = detail::of_shard<Shards>(parts_, me);
    const auto sequence = detail::sequence_as<Key>(detail::of_shard<Shards>(keys, me));
    auto all = detail::unique_all(me.place(), sequence,
                                  {.order = chosen.order, .inverse = true, .counts = chosen.counts}, where);
    auto share = detail::share_of_keys<std::uint64_t>(me, all.keys, all.counts, chosen.order, chosen.seed);
    const auto sizes = me.gather({share.keys.size()});
    if (sizes.sum() >= no_index) {
      detail::raise<invalid_argument>(
          {where, ": ", sizes.sum(), " different keys; at most 2^32 - 2 have indices"});
    }
    for (std::uint32_t s = 0; s < me.number(); ++s) mine.first += static_cast<std::uint32_t>(sizes(s));
    mine.keys = std::move(share.keys);
    if (chosen.counts) mine.counts = std::move(share.counts);
    mine.indices = std::move(all.inverse);  // among the distinct keys of the range
    detail::of_shard<Shards>(found, me) = {me.place(), all.keys.size()};
    detail::of_shard<Shards>(different, me) = std::move(all.keys);
  });
  indices_.build(shards, [&](auto& me) {
    const part& mine = detail::of_shard<Shards>(parts_, me);
    const computed numbers(mine.keys.size(), detail::number_from<std::uint32_t>{mine.first});
    return detail::zip_as<Key, std::uint32_t>(mine.keys, numbers, where);
  });
  indices_.find(shards, different, found, no_index);
  shards.run([&](auto& me) {
    part& mine = detail::of_shard<Shards>(parts_, me);
    array<std::uint32_t, place_type> indices(me.place(), mine.indices.size());
    detail::write_numbers(me.place(), indices.size(),
                          detail::gather<std::uint32_t, std::uint32_t>{
                              detail::of_shard<Shards>(found, me).data(), mine.indices.data()},
                          indices.data());
    me.place().synchronize();
    mine.indices = std::move(indices);
  });
}

template <class Key, class Shards>
std::size_t sharded_index<Key, Shards>::bytes() const {
  std::size_t result = indices_.bytes();
  const auto add = [&](const part& p) { result += p.keys.bytes() + p.counts.bytes() + p.indices.bytes(); };
  if constexpr (detail::one_shard_a_process<Shards>) {
    add(parts_);
  } else {
    for (const part& p : parts_) add(p);
  }
  return result;
}

template <class Key, class Shards>
bool sharded_index<Key, Shards>::valid(const Shards& shards) const {
  if (empty()) return true;
  if (!indices_.valid(shards)) return false;
  auto keys = detail::make_each<Shards, std::span<const Key>>(shards);
  auto found = detail::make_each<Shards, array<std::uint32_t, place_type>>(shards);
  shards.run([&](auto& me) {
    const part& mine = detail::of_shard<Shards>(parts_, me);
    detail::of_shard<Shards>(keys, me) = mine.keys.span();
    detail::of_shard<Shards>(found, me) = {me.place(), mine.keys.size()};
  });
  find(shards, keys, found);
  bool good = false;
  shards.run([&](auto& me) {
    const part& mine = detail::of_shard<Shards>(parts_, me);
    const detail::is_index_of_key right{detail::of_shard<Shards>(found, me).data(), mine.first};
    const bool all_right = me.gather({mine.keys.size() - me.place().sum(mine.keys.size(), right)}).sum() == 0;
    if (me.local() == 0) good = all_right;
  });
  return good;
}

template <detail::shards_place Shards, class Keys>
auto unique(const Shards& shards, const Keys& keys, index_order order) {
  constexpr const char* where = "roost::unique";
  using key = detail::element_of<detail::range_of_shard<Shards, const Keys>>;
  detail::check_order(order, where);
  detail::check_parts(shards, where, keys);
  auto result = detail::make_each<Shards, array<key, typename Shards::place_type>>(shards);
  shards.run([&](auto& me) {
    const auto mine = unique(me.place(), detail::of_shard<Shards>(keys, me), order);
    detail::of_shard<Shards>(result, me) =
        std::move(detail::share_of_keys<bool>(me, mine, {}, order, 0).keys);
  });
  return result;
}

}  // namespace roost
