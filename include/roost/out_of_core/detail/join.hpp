#pragma once

// Joins: see roost/out_of_core/out_of_core.hpp.

#include <iterator>
#include <optional>

#include "roost/out_of_core/detail/order.hpp"

namespace roost::detail {

/// Key i and its number, which begin with number `first`.
template <class Key, class Row>
struct numbered_item {
  const Key* keys;
  std::size_t first;
  ROOST_FN auto operator()(std::size_t i) const {
    if constexpr (std::is_same_v<Row, none>) {
      return pair_of(keys[i], none());
    } else {
      return pair_of(keys[i], static_cast<Row>(first + i));
    }
  }
};

/// A side of a join as the caller has it. Row: of its numbers, or none.
template <class Row, class Sequence>
struct whole_side {
  using key = element_of<Sequence>;
  using item_type = pair<key, Row>;
  Sequence keys;

  std::size_t size() const { return keys.size(); }
  template <class Worker>
  auto load(Worker& worker, std::size_t first, std::size_t count) const {
    const auto stored = worker.template load<key>(host_elements<Sequence>{keys}, first, count);
    return array_of(worker.device(), count, numbered_item<key, Row>{stored.data(), first});
  }
};

/// A pair of rows.
template <class Row>
struct row_pair {
  Row left, right;
  ROOST_FN Row row() const { return left; }
};
struct left_of_pair {
  template <class Pair>
  ROOST_FN auto operator()(const Pair& of) const {
    return of.left;
  }
};
struct right_of_pair {
  template <class Pair>
  ROOST_FN auto operator()(const Pair& of) const {
    return of.right;
  }
};
/// Pair i, whose left side is the number of an item.
template <class Item, class Row>
struct pair_of_rows {
  const Item* items;
  const Row* left;
  const Row* right;
  ROOST_FN row_pair<Row> operator()(std::size_t i) const { return {items[left[i]].value, right[i]}; }
};
template <class Row>
struct without_match {
  const Row* rows;
  ROOST_FN row_pair<Row> operator()(std::size_t i) const { return {rows[i], no_row<Row>}; }
};

/// A row alone.
template <class Row>
struct one_row {
  Row number;
  ROOST_FN Row row() const { return number; }
};
template <class Item>
struct one_row_of {
  const Item* items;
  ROOST_FN auto operator()(std::size_t i) const { return one_row<decltype(items[i].value)>{items[i].value}; }
};
/// Whether rows of a block have an item.
template <class Item>
struct mark_row {
  const Item* items;
  std::size_t first_row;
  bool* is_there;
  ROOST_FN void operator()(std::size_t i) const {
    shared_access::store(is_there + (items[i].row() - first_row), true);
  }
};

template <class Row, class Device, class Left, class Right>
class out_of_core_join {
  using key = element_of<Right>;
  static_assert(std::is_same_v<element_of<Left>, key>, "both sides of a join need keys of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");
  using left_side = whole_side<Row, sequence_of<Left>>;
  template <class Value>
  using right_side = whole_side<Value, sequence_of<Right>>;

  using call = out_of_core_call<Device>;
  using worker = typename call::worker;
  using some_workers = typename call::some_workers;

  /// What a row of a table takes while it is built, and a row that is looked up.
  template <class Value>
  static constexpr std::size_t build_bytes = 5 * sizeof(pair<key, Value>) + 48;
  static constexpr std::size_t lookup_bytes = 4 * sizeof(pair<key, Row>) + 6 * sizeof(Row) + 48;

 public:
  out_of_core_join(const out_of_core<Device>& place, const Left& left, const Right& right, const char* where)
      : call_(place, where), left_{as_sequence(left)}, right_keys_(as_sequence(right)) {
    join<Row, host, Left, Right>::check(left_.size(), where);
    join<Row, host, Left, Right>::check(right_keys_.size(), where);
  }

  /// Without `lefts`, result.left is empty.
  joined_rows<Row, host> pairs(bool outer, bool lefts = true) {
    bool has_all_rows = !outer;
    const auto found = with_parts<Row, found_pairs>(
        [&](const auto& workers, const auto& left, const auto& right, bool whole) {
          return match(workers, left, right, outer && whole, has_all_rows);
        });
    call_.finish();
    const host& cpu = call_.cpu();
    array<row_pair<Row>, host> others;
    if (!has_all_rows) {
      const auto there = are_among(found);
      const auto rows = select_numbers<Row>(cpu, there.size(), is_value<bool>{there.data(), false});
      others = array_of(cpu, rows.size(), without_match<Row>{rows.data()});
    }
    auto order = by_row(found);
    order.add({others.data(), others.size()});
    joined_rows<Row, host> result{{cpu, lefts ? order.size() : 0}, {cpu, order.size()}};
    order.each(
        sizeof(Row), 0,
        [&](worker& mine, const auto& items, const auto& positions, const auto& of) {
          if (lefts) store_column<left_of_pair>(mine, items, positions, of, result.left);
          store_column<right_of_pair>(mine, items, positions, of, result.right);
        },
        [&](std::size_t at, const auto& item) {
          if (lefts) result.left[at] = item.left;
          result.right[at] = item.right;
        });
    return result;
  }

  /// Of each left row, whether its key is on the right side.
  array<bool, host> are_there() {
    const auto found =
        with_parts<none, found_rows>([&](const auto& workers, const auto& left, const auto& right, bool) {
          return look_up(workers, left, right);
        });
    call_.finish();
    return are_among(found);
  }
  array<Row, host> rows(bool wanted) {
    const auto there = are_there();
    return select_numbers<Row>(call_.cpu(), there.size(), is_value<bool>{there.data(), wanted});
  }

 private:
  using found_pairs = waiting<row_pair<Row>, Device>;
  using found_rows = waiting<one_row<Row>, Device>;

  template <class Item>
  items_by_row<Item, Device> by_row(const std::vector<waiting<Item, Device>>& found) {
    items_by_row<Item, Device> result(call_, left_.size());
    for (const auto& some : found) result.add_all(some);
    return result;
  }

  /// Of each left row, whether it is among those found.
  template <class Item>
  array<bool, host> are_among(const std::vector<waiting<Item, Device>>& found) {
    array<bool, host> result = filled<bool>(call_.cpu(), left_.size(), 0);
    by_row(found).each(
        0, sizeof(bool),
        [&](worker& mine, const auto& items, const auto&, const auto& of) {
          auto there = filled<bool>(mine.device(), of.end_row - of.first_row, 0);
          mine.device().for_each(items.size(), mark_row<Item>{items.data(), of.first_row, there.data()});
          mine.store(there, result.data() + of.first_row);
        },
        [&](std::size_t, const auto& item) { result[item.row()] = true; });
    return result;
  }

  /// Concatenates what work(workers, left, right, whole) finds for both sides, or for both of each part.
  template <class Value, class Found, class Work>
  std::vector<Found> with_parts(const Work& work) {
    const some_workers all = call_.all();
    const right_side<Value> right{right_keys_};
    all.alone();
    const std::size_t fit = all.first().rows_of(build_bytes<Value>), pieces = ceil_div(right.size(), fit);
    const std::size_t rows = left_.size() + right.size(),
                      again = (larger<std::size_t>(pieces, 1) - 1) * left_.size();
    if (again <= 2 * rows) {  // reading the left side once for each piece costs less than a second pass
      call_.expect(rows * sizeof(key));
      return work(all, left_, right, true);
    }
    call_.expect(2 * rows * sizeof(key));
    all.share();
    const std::size_t fit_each = all.first().rows_of(build_bytes<Value>);
    const leading_bits part_of{part_seed(0), parts_for(right.size(), fit_each)};
    waiting_parts<typename left_side::item_type, Device> left_parts(part_of.regions);
    waiting_parts<typename right_side<Value>::item_type, Device> right_parts(part_of.regions);
    divide(left_, part_of, left_parts);
    divide(right, part_of, right_parts);
    std::vector<std::vector<Found>> found(part_of.regions);
    const auto work_on = [&](const some_workers& workers, std::uint32_t p) {
      found[p] = work(workers, left_parts.of(p, p + 1), right_parts.of(p, p + 1), false);
    };
    // Frequent keys make large parts, on which all work together.
    std::vector<std::uint32_t> small, large;
    for (std::uint32_t p = 0; p < part_of.regions; ++p) {
      const std::size_t size = left_parts.size(p) + right_parts.size(p);
      (size > 4 * (rows / part_of.regions + 1) ? large : small).push_back(p);
    }
    all.each(small.size(), [&](worker& mine, std::size_t i) { work_on(call_.only(mine), small[i]); });
    for (const std::uint32_t p : large) work_on(all, p);
    return joined(std::move(found));
  }

  template <class Found>
  static std::vector<Found> joined(std::vector<std::vector<Found>> found) {
    std::vector<Found> all;
    for (auto& some : found) std::move(some.begin(), some.end(), std::back_inserter(all));
    return all;
  }

  template <class Side, class Parts>
  void divide(const Side& side, const leading_bits& part_of, Parts& parts) {
    using item = typename Side::item_type;
    call_.all().each_piece(side.size(), 5 * sizeof(item) + 16,
                           [&](worker& mine, std::size_t p, std::size_t first, std::size_t count) {
                             parts.add(mine, p, side.load(mine, first, count), part_of);
                             call_.advance(count * sizeof(key));
                           });
  }

  /// Calls build(worker, load) for the pieces of a right side, each as large as fits, where load() returns
  /// its items, and then work(worker, items, is_only) for the pieces of the left side; is_only: the right
  /// side has one. Concatenates what work returns, which may be null.
  template <class Found, class LeftSide, class RightSide, class Build, class Work>
  std::vector<Found> with_each_table(const some_workers& workers, const LeftSide& left,
                                     const RightSide& right, const Build& build, const Work& work) {
    using value = decltype(pair_value(std::declval<typename RightSide::item_type>()));
    std::vector<std::vector<Found>> found;
    for (std::size_t first = 0, most = 0; first < right.size();) {
      workers.alone();
      worker& builder = workers.first();
      if (first == 0) most = builder.rows_of(build_bytes<value>);
      const std::size_t count = smaller(most, right.size() - first);
      const std::size_t done = builder.largest(
          count, [&](std::size_t some) { build(builder, [&] { return right.load(builder, first, some); }); });
      if (done < count) most = done;
      first += done;
      call_.advance(done * sizeof(key));
      const bool is_last = first == right.size();
      workers.share();
      std::mutex lock;
      std::map<std::size_t, std::vector<Found>> by_piece;
      workers.each_piece(left.size(), lookup_bytes,
                         [&](worker& mine, std::size_t p, std::size_t at, std::size_t some) {
                           auto answer = work(mine, left.load(mine, at, some), first == done && is_last);
                           if (is_last) call_.advance(some * sizeof(key));
                           if (!answer) return;
                           const std::lock_guard hold(lock);
                           by_piece[p].push_back(std::move(*answer));
                         });
      for (auto& [piece, some] : by_piece) found.push_back(std::move(some));
    }
    return joined(std::move(found));
  }
  template <class Key, class Value>
  static Value pair_value(const pair<Key, Value>&);

  /// The pairs of two sides; with those of rows without a match if `outer` and the right side fits at once.
  template <class LeftSide, class RightSide>
  std::vector<found_pairs> match(const some_workers& workers, const LeftSide& left, const RightSide& right,
                                 bool outer, bool& has_all_rows) {
    std::optional<frozen_multimap<key, Row, Device>> rows;
    std::atomic<bool> was_only = outer && right.size() != 0;
    auto found = with_each_table<found_pairs>(
        workers, left, right,
        [&](worker& builder, const auto& load) {
          rows.reset();
          const auto items = load();
          rows.emplace(builder.device(), keys_of_items(items), values_of_items(items));
          builder.device().synchronize();
        },
        [&](worker& mine, const auto& items, bool is_only) -> std::optional<found_pairs> {
          if (!is_only) was_only = false;
          const auto queries = keys_of_items(items);
          const auto pairs = outer && is_only ? rows->match_outer(mine.device(), queries, no_row<Row>)
                                              : rows->match(mine.device(), queries);
          return pairs_of(mine, items, pairs);
        });
    if (was_only) has_all_rows = true;
    return found;
  }

  template <class Items, class Pairs>
  static std::optional<found_pairs> pairs_of(worker& mine, const Items& items, const Pairs& pairs) {
    if (pairs.size() == 0) return {};
    array<Row, Device> left(mine.device(), pairs.size()), right(mine.device(), pairs.size());
    pairs.retrieve_pairs(mine.device(), left, right);
    const auto of_rows =
        array_of(mine.device(), pairs.size(), pair_of_rows{items.data(), left.data(), right.data()});
    return mine.store(of_rows.data(), of_rows.size());
  }

  /// The left rows whose keys are on the right side.
  template <class LeftSide, class RightSide>
  std::vector<found_rows> look_up(const some_workers& workers, const LeftSide& left, const RightSide& right) {
    std::optional<column_set<key, Device>> keys;
    return with_each_table<found_rows>(
        workers, left, right,
        [&](worker& builder, const auto& load) {
          keys.reset();
          const auto items = load();
          keys.emplace(builder.device(), keys_of_items(items));
          builder.device().synchronize();
        },
        [&](worker& mine, const auto& items, bool) -> std::optional<found_rows> {
          array<bool, Device> answers(mine.device(), items.size());
          keys->contains(mine.device(), keys_of_items(items), answers);
          const auto there = select_values(mine.device(), items.size(), is_value<bool>{answers.data(), true},
                                           one_row_of{items.data()});
          return mine.store(there.data(), there.size());
        });
  }

  call call_;
  left_side left_;
  sequence_of<Right> right_keys_;
};

}  // namespace roost::detail
