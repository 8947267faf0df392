#pragma once

// Joins: see roost/out_of_core/out_of_core.hpp.

#include <optional>

#include "roost/out_of_core/detail/call.hpp"

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
  template <class Call>
  auto load(Call& call, std::size_t first, std::size_t count) const {
    const auto stored = call.template load<key>(host_elements<Sequence>{keys}, first, count);
    return array_of(call.device(), count, numbered_item<key, Row>{stored.data(), first});
  }
};

/// rows[i] = the row of item rows[i]
template <class Item, class Row>
struct row_of_number {
  const Item* items;
  Row* rows;
  ROOST_FN void operator()(std::size_t i) const { rows[i] = items[rows[i]].value; }
};

/// Calls body(left row, first pair, pairs) for the runs of a left row in n pairs, on all threads.
template <class Row, class Body>
void for_each_run(const host& cpu, const Row* left, std::size_t n, const Body& body) {
  constexpr std::size_t tile = 1 << 16;
  cpu.launch(ceil_div(n, tile), 0, [&](const auto&, std::size_t t, std::byte*) {
    for (std::size_t i = t * tile; i < smaller(n, (t + 1) * tile);) {
      const bool begins = i == 0 || left[i - 1] != left[i];
      std::size_t end = i + 1;
      while (end < n && left[end] == left[i] && (begins || end < (t + 1) * tile)) ++end;
      if (begins) body(left[i], i, end - i);
      i = end;
    }
  });
}

template <class Row, class Device, class Left, class Right>
class out_of_core_join {
  using key = element_of<Right>;
  static_assert(std::is_same_v<element_of<Left>, key>, "both sides of a join need keys of the same type");
  static_assert(std::is_unsigned_v<Row>, "rows are numbered by unsigned integers");
  using left_side = whole_side<Row, sequence_of<Left>>;
  template <class Value>
  using right_side = whole_side<Value, sequence_of<Right>>;

  /// What a row of a table takes while it is built, and a row that is looked up. (The table then takes less
  /// than half of the former, and lookups have the rest.)
  template <class Value>
  static constexpr std::size_t build_bytes = 5 * sizeof(pair<key, Value>) + 48;
  static constexpr std::size_t lookup_bytes = 2 * (4 * sizeof(pair<key, Row>) + 4 * sizeof(Row) + 48);

 public:
  out_of_core_join(const out_of_core<Device>& place, const Left& left, const Right& right, const char* where)
      : call_(place, where), left_{as_sequence(left)}, right_keys_(as_sequence(right)) {
    join<Row, host, Left, Right>::check(left_.size(), where);
    join<Row, host, Left, Right>::check(right_keys_.size(), where);
  }

  joined_rows<Row, host> pairs(bool outer) {
    outer_ = outer;
    with_parts<Row>([&](const auto& left, const auto& right, bool whole) { match(left, right, whole); });
    call_.finish();
    return in_order_ ? concatenated() : ordered();
  }

  /// Of each left row, whether its key is on the right side.
  array<bool, host> are_there() {
    found_ = filled<bool>(call_.cpu(), left_.size(), 0);
    with_parts<none>([&](const auto& left, const auto& right, bool) { look_up(left, right); });
    call_.finish();
    return std::move(found_);
  }
  array<Row, host> rows(bool wanted) {
    const auto there = are_there();
    return select_numbers<Row>(call_.cpu(), there.size(), is_value<bool>{there.data(), wanted});
  }

 private:
  /// work(left, right, whole) for both sides, or for both of each part.
  template <class Value, class Work>
  void with_parts(const Work& work) {
    const right_side<Value> right{right_keys_};
    const std::size_t fit = call_.rows_of(build_bytes<Value>), pieces = ceil_div(right.size(), fit);
    const std::size_t rows = left_.size() + right.size(),
                      again = (larger<std::size_t>(pieces, 1) - 1) * left_.size();
    if (again <= 2 * rows) {  // reading the left side once for each piece costs less than a second pass
      call_.expect(rows * sizeof(key));
      return work(left_, right, true);
    }
    call_.expect(2 * rows * sizeof(key));
    const leading_bits part_of{part_seed(0), parts_for(right.size(), fit)};
    const auto left_parts = divide(left_, part_of);
    const auto right_parts = divide(right, part_of);
    for (std::uint32_t p = 0; p < part_of.regions; ++p)
      work(left_parts.of(p, p + 1), right_parts.of(p, p + 1), false);
  }

  template <class Side>
  auto divide(const Side& side, const leading_bits& part_of) {
    using item = typename Side::item_type;
    waiting_parts<item> result(part_of.regions);
    call_.each_piece(side.size(), call_.rows_of(5 * sizeof(item) + 16),
                     [&](std::size_t first, std::size_t count) {
                       result.add(call_, side.load(call_, first, count), part_of);
                       call_.advance(count * sizeof(key));
                     });
    return result;
  }

  /// Calls build(load) for the pieces of a right side, each as large as fits, where load() returns its items,
  /// and then work(first, count, is_only) for the pieces of the left side; is_only: the right side has one.
  template <class LeftSide, class RightSide, class Build, class Work>
  void with_each_table(const LeftSide& left, const RightSide& right, const Build& build, const Work& work) {
    using value = decltype(pair_value(std::declval<typename RightSide::item_type>()));
    std::size_t most = call_.rows_of(build_bytes<value>);
    for (std::size_t first = 0; first < right.size();) {
      const std::size_t count = smaller(most, right.size() - first);
      const std::size_t done = call_.largest(
          count, [&](std::size_t some) { build([&] { return right.load(call_, first, some); }); });
      if (done < count) most = done;
      first += done;
      call_.advance(done * sizeof(key));
      const bool is_last = first == right.size();
      call_.each_piece(left.size(), call_.rows_of(lookup_bytes), [&](std::size_t at, std::size_t some) {
        work(at, some, first == done && is_last);
        if (is_last) call_.advance(some * sizeof(key));
      });
    }
  }
  template <class Key, class Value>
  static Value pair_value(const pair<Key, Value>&);

  /// The pairs of two sides. `whole`: they are all rows.
  template <class LeftSide, class RightSide>
  void match(const LeftSide& left, const RightSide& right, bool whole) {
    std::optional<frozen_multimap<key, Row, Device>> rows;
    in_order_ = whole && right.size() != 0;
    with_each_table(
        left, right,
        [&](const auto& load) {
          rows.reset();
          const auto items = load();
          rows.emplace(call_.device(), keys_of_items(items), values_of_items(items));
        },
        [&](std::size_t first, std::size_t count, bool is_only) {
          in_order_ = in_order_ && is_only;
          const auto items = left.load(call_, first, count);
          const auto queries = keys_of_items(items);
          const auto found = in_order_ && outer_ ? rows->match_outer(call_.device(), queries, no_row<Row>)
                                                 : rows->match(call_.device(), queries);
          add_pairs(items, found);
        });
  }

  template <class Items, class Found>
  void add_pairs(const Items& items, const Found& found) {
    if (found.size() == 0) return;
    array<Row, Device> left(call_.device(), found.size()), right(call_.device(), found.size());
    found.retrieve_pairs(call_.device(), left, right);
    call_.device().for_each(left.size(), row_of_number{items.data(), left.data()});
    auto left_rows = call_.store(left);
    pairs_.push_back({std::move(left_rows), call_.store(right)});
  }

  /// Marks the left rows whose keys are on the right side.
  template <class LeftSide, class RightSide>
  void look_up(const LeftSide& left, const RightSide& right) {
    std::optional<column_set<key, Device>> keys;
    with_each_table(
        left, right,
        [&](const auto& load) {
          keys.reset();
          const auto items = load();
          keys.emplace(call_.device(), keys_of_items(items));
        },
        [&](std::size_t first, std::size_t count, bool) {
          const auto items = left.load(call_, first, count);
          array<bool, Device> answers(call_.device(), count);
          keys->contains(call_.device(), keys_of_items(items), answers);
          const auto there = call_.store(select_values(
              call_.device(), count, is_value<bool>{answers.data(), true}, value_of_item{items.data()}));
          call_.cpu().for_each(there.size(), [&](std::size_t i) { found_[there[i]] = true; });
        });
  }

  std::size_t pairs_found() const {
    std::size_t all = 0;
    for (const auto& some : pairs_) all += some.size();
    return all;
  }

  joined_rows<Row, host> concatenated() {
    if (pairs_.size() == 1) return std::move(pairs_[0]);
    joined_rows<Row, host> result{{call_.cpu(), pairs_found()}, {call_.cpu(), pairs_found()}};
    std::size_t done = 0;
    for (auto& some : pairs_) {
      const joined_rows<Row, host> mine = std::move(some);  // freed when it is copied
      copy_elements(call_.cpu(), result.left.data() + done, mine.left.data(), mine.size());
      copy_elements(call_.cpu(), result.right.data() + done, mine.right.data(), mine.size());
      done += mine.size();
    }
    return result;
  }

  /// The pairs by left row; those of a left row come in the order of their right rows.
  joined_rows<Row, host> ordered() {
    const host& cpu = call_.cpu();
    const std::size_t n = left_.size();
    auto next = zeros(cpu, n + 1);  // of each left row: its pairs, then where the next one goes
    for (const auto& some : pairs_)
      for_each_run(cpu, some.left.data(), some.size(),
                   [&](Row row, std::size_t, std::size_t pairs) { next[row] += pairs; });
    if (outer_) cpu.for_each(n, [&](std::size_t row) { next[row] = larger<std::uint64_t>(next[row], 1); });
    cpu.exclusive_scan(next.data(), next.data(), n + 1);
    joined_rows<Row, host> result{{cpu, next[n]}, {cpu, next[n]}};
    if (outer_) {
      cpu.for_each(n, [&](std::size_t row) {
        result.left[next[row]] = static_cast<Row>(row);
        result.right[next[row]] = no_row<Row>;
      });
    }
    for (auto& some : pairs_) {
      const joined_rows<Row, host> mine = std::move(some);
      for_each_run(cpu, mine.left.data(), mine.size(), [&](Row row, std::size_t first, std::size_t pairs) {
        std::fill_n(result.left.data() + next[row], pairs, row);
        std::copy_n(mine.right.data() + first, pairs, result.right.data() + next[row]);
        next[row] += pairs;
      });
    }
    return result;
  }

  out_of_core_call<Device> call_;
  left_side left_;
  sequence_of<Right> right_keys_;
  bool outer_ = false, in_order_ = false;
  std::vector<joined_rows<Row, host>> pairs_;
  array<bool, host> found_;
};

}  // namespace roost::detail
