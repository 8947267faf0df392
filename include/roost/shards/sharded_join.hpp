#pragma once

#include "roost/group_by.hpp"
#include "roost/shards/sharded_map.hpp"
#include "roost/shards/sharded_multimap.hpp"

/// \file
/// Joins and sums of columns of keys that are spread over several shards.

namespace roost {

/// All pairs of a left and a right row with the same key, of columns that are spread over several shards.
///
///     // a column: one range per shard
///     const auto rows = roost::inner_join(all, orders_customer, customer_id);
///     // rows[s].left and rows[s].right are arrays of shard s
///
/// Rows have numbers over all shards: those of shard 0 first. A pair is on the shard of its left row; the
/// pairs of all shards, concatenated, are those of roost::inner_join on one place. `Row`: an unsigned integer
/// type that can number all rows of a side (invalid_argument otherwise). Builds a sharded_map of the right
/// side or, if its keys have duplicates, a sharded_multimap, and looks up the left side in it. Throws as
/// inner_join does.
template <class Row = std::uint32_t, detail::shards_place Shards, class Left, class Right>
detail::each_shard<Shards, joined_rows<Row, typename Shards::place_type>> inner_join(
    const Shards& shards, const Left& left_keys, const Right& right_keys) {
  return detail::sharded_join<Row, Shards, Left, Right>(shards, left_keys, right_keys).run();
}

/// Combines all values of each key into one: see roost::group_by. The hash of a key determines its shard. The
/// values of a key are combined in the order of the input, those of shard 0 first, with the same calls of f
/// as on one place, so floating-point sums are the same to the last bit. Returns an aggregated for each
/// shard. Sends all pairs to the owners of their keys.
template <detail::shards_place Shards, class Keys, class Values, class F>
auto group_by(const Shards& shards, const Keys& keys, const Values& values, const F& f,
              const group_options& options = {}) {
  constexpr const char* where = "roost::group_by";
  detail::check_parts(shards, where, keys, values);
  return detail::collect(shards, [&](auto& me) {
    const auto source =
        detail::zip_checked(detail::of_shard<Shards>(keys, me), detail::of_shard<Shards>(values, me), where);
    const auto items = detail::bring_items(me, source, 0);
    return detail::group_by(me.place(), detail::keys_of(items), detail::values_of(items), f, options, where);
  });
}

}  // namespace roost
