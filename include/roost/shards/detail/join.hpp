#pragma once

// Bodies of roost/shards/sharded_join.hpp.

#include "roost/shards/sharded_join.hpp"

namespace roost {
namespace detail {

/// The numbers of a shard's rows among those of all.
template <class Row>
struct rows_of_shard {
  std::size_t count = 0;
  Row first = 0;
  std::size_t size() const { return count; }
  ROOST_FN Row operator[](std::size_t i) const { return first + static_cast<Row>(i); }
};

template <class Row>
struct add_to_row {
  Row* rows;
  Row first;
  ROOST_FN void operator()(std::size_t i) const { rows[i] += first; }
};

template <class Row>
struct write_row_of_match {
  Row* rows;
  Row first;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t row, std::uint64_t) const {
    rows[i] = first + static_cast<Row>(row);
  }
};

/// inner_join on several shards.
template <class Row, class Shards, class Left, class Right>
class sharded_join {
  static constexpr const char* where = "roost::inner_join";
  using place_type = typename Shards::place_type;
  using shard_type = typename Shards::shard_type;
  using key = element_of<range_of_shard<Shards, const Right>>;
  using on_one_place =
      join<Row, place_type, range_of_shard<Shards, const Left>, range_of_shard<Shards, const Right>>;
  using result_type = each_shard<Shards, joined_rows<Row, place_type>>;

 public:
  sharded_join(const Shards& shards, const Left& left, const Right& right)
      : shards_(shards),
        left_(left),
        right_(right),
        left_rows_(make_each<Shards, rows_of_shard<Row>>(shards)),
        right_rows_(left_rows_),
        result_(make_each<Shards, joined_rows<Row, place_type>>(shards)) {
    check_parts(shards, where, left, right);
  }

  result_type run() {
    if (!number_rows() && join_different_keys()) return std::move(result_);
    const sharded_multimap<key, Row, Shards> map(shards_, right_, right_rows_);
    auto found = map.retrieve(shards_, left_);
    shards_.run([&](shard_type& me) {
      const place_type& place = me.place();
      auto& mine = of_shard<Shards>(found, me);
      array<Row, place_type> left(place, mine.values.size());
      expand(place, mine.offsets.data(), mine.offsets.size() - 1, left.size(),
             write_row_of_match<Row>{left.data(), of_shard<Shards>(left_rows_, me).first});
      place.synchronize();
      of_shard<Shards>(result_, me) = {std::move(left), std::move(mine.values)};
    });
    return std::move(result_);
  }

 private:
  /// Returns whether samples show duplicate keys on the right side.
  bool number_rows() {
    bool copies = false;
    shards_.run([&](shard_type& me) {
      const auto left = as_sequence(of_shard<Shards>(left_, me));
      const auto right = as_sequence(of_shard<Shards>(right_, me));
      const bool has_copies = seems_to_have_copies(me.place(), right, [&](const auto& some) {
        return frozen_map<key, Row, place_type>(me.place(), some, numbers_to<Row>(some.size()));
      });
      // A shard with few rows takes no sample: its keys count as duplicates.
      const gathered all =
          me.gather({left.size(), right.size(), has_copies && right.size() > 4096 ? 1u : 0u});
      for (const std::size_t side : {0, 1}) {
        if (all.sum(side) > no_row<Row>) {
          raise<invalid_argument>({where, ": ", all.sum(side), " rows of all shards cannot be numbered by ",
                                   sizeof(Row), " bytes; give a larger type"});
        }
        auto& rows = of_shard<Shards>(side == 0 ? left_rows_ : right_rows_, me);
        rows.count = all(me.number(), side);
        for (std::uint32_t s = 0; s < me.number(); ++s) rows.first += static_cast<Row>(all(s, side));
      }
      if (me.local() == 0) copies = all.sum(2) != 0, right_size_ = all.sum(1);
    });
    return copies;
  }

  /// False if the right side has duplicate keys.
  bool join_different_keys() {
    const sharded_map<key, Row, Shards> map(shards_, right_, right_rows_);
    if (map.size() != right_size_) return false;
    auto found = make_each<Shards, array<Row, place_type>>(shards_);
    shards_.run([&](shard_type& me) {
      of_shard<Shards>(found, me) = {me.place(), of_shard<Shards>(left_rows_, me).count};
    });
    map.find(shards_, left_, found, no_row<Row>);
    shards_.run([&](shard_type& me) {
      const auto [n, first] = of_shard<Shards>(left_rows_, me);
      auto& mine = of_shard<Shards>(result_, me);
      mine = on_one_place::pairs_of_unique(me.place(), n, false, [&](array<Row, place_type>& rows) {
        rows = std::move(of_shard<Shards>(found, me));
      });
      me.place().for_each(mine.left.size(), add_to_row<Row>{mine.left.data(), first});
      me.place().synchronize();
    });
    return true;
  }

  const Shards& shards_;
  const Left& left_;
  const Right& right_;
  each_shard<Shards, rows_of_shard<Row>> left_rows_, right_rows_;
  std::uint64_t right_size_ = 0;
  result_type result_;
};

}  // namespace detail

template <class Row, detail::shards_place Shards, class Left, class Right>
detail::each_shard<Shards, joined_rows<Row, typename Shards::place_type>> inner_join(
    const Shards& shards, const Left& left_keys, const Right& right_keys) {
  return detail::sharded_join<Row, Shards, Left, Right>(shards, left_keys, right_keys).run();
}

template <detail::shards_place Shards, class Keys, class Values, class F>
auto group_by(const Shards& shards, const Keys& keys, const Values& values, const F& f) {
  constexpr const char* where = "roost::group_by";
  using key = detail::element_of<detail::range_of_shard<Shards, const Keys>>;
  using value = detail::element_of<detail::range_of_shard<Shards, const Values>>;
  detail::check_parts(shards, where, keys, values);
  auto result = detail::make_each<Shards, aggregated<key, value, typename Shards::place_type>>(shards);
  shards.run([&](auto& me) {
    const auto source =
        detail::zip_checked(detail::of_shard<Shards>(keys, me), detail::of_shard<Shards>(values, me), where);
    const auto items = detail::bring_items(me, source, 0);
    detail::of_shard<Shards>(result, me) =
        detail::group_by(me.place(), detail::keys_of(items), detail::values_of(items), f, where);
  });
  return result;
}

}  // namespace roost
