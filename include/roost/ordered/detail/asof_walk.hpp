#pragma once

#include "roost/detail/groups/few_groups.hpp"
#include "roost/ordered/detail/order.hpp"

// As-of joins on a host of sides that are both in the order of time, and have few keys: nothing is moved. A
// walk over both sides keeps the last right row of each key. Threads walk over spans of rows, each from what
// the spans before it leave.

namespace roost::detail {

template <class Word>
struct asof_side {
  Word time;  // of a row
  std::size_t rows;
};

/// A walk from the first time to the last, or back. Rows are counted from where it begins.
template <class LeftWord, class RightWord>
class asof_walk {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// `numbered`: the keys of the right rows, then those of the left ones; empty if all are equal.
  asof_walk(const host& cpu, const asof_side<LeftWord>& left, const asof_side<RightWord>& right,
            const few_rows& numbered, bool exact, bool back)
      : cpu_(cpu),
        left_(left),
        right_(right),
        keys_(std::max<std::size_t>(numbered.size(), 1)),
        numbers_(numbered.numbers.data()),
        exact_(exact),
        back_(back) {}

  /// found(left row, right row or none) for each left row.
  template <class Found>
  void run(const Found& found) const {
    constexpr std::size_t spans_of_thread = 4, worth_it = std::size_t{1} << 15;  // rows
    const std::size_t spans =
        std::clamp<std::size_t>((left_.rows + right_.rows) / (worth_it + keys_), 1,
                                spans_of_thread * static_cast<std::size_t>(cpu_.threads()));
    std::vector<begin> begins(spans + 1, begin{left_.rows, right_.rows});
    for (std::size_t s = 0; s < spans; ++s) begins[s] = begin_of(s, spans);
    array<std::uint32_t, host> last(cpu_, spans * keys_);  // right rows: first of each span, then before it
    cpu_.launch(spans, 0, [&](const auto&, std::size_t s, std::byte*) {
      std::uint32_t* const mine = last.data() + s * keys_;
      std::fill_n(mine, keys_, none);
      for (std::size_t r = begins[s].right; r < begins[s + 1].right; ++r) keep(mine, r);
    });
    cpu_.for_each(keys_, [&](std::size_t key) {
      std::uint32_t before = none;
      for (std::size_t at = key; at < last.size(); at += keys_) {
        const std::uint32_t here = std::exchange(last[at], before);
        if (here != none) before = here;
      }
    });
    cpu_.launch(spans, 0, [&](const auto&, std::size_t s, std::byte*) {
      std::uint32_t* const mine = last.data() + s * keys_;
      std::size_t r = begins[s].right;
      for (std::size_t l = begins[s].left; l < begins[s + 1].left; ++l) {
        for (; r < right_.rows && comes_before(r, l); ++r) keep(mine, r);
        const std::size_t row = row_of(l, left_.rows);
        found(row, mine[number(right_.rows + row)]);
      }
    });
  }

 private:
  struct begin {
    std::size_t left, right;  // rows; all right ones before this one come before the left one
  };

  std::size_t row_of(std::size_t i, std::size_t n) const { return back_ ? n - 1 - i : i; }
  std::uint32_t number(std::size_t i) const { return numbers_ == nullptr ? 0 : numbers_[i]; }
  void keep(std::uint32_t* last, std::size_t r) const {
    const std::size_t row = row_of(r, right_.rows);
    last[number(row)] = static_cast<std::uint32_t>(row);
  }
  bool comes_before(std::size_t r, std::size_t l) const {
    const auto right = right_.time(row_of(r, right_.rows)), left = left_.time(row_of(l, left_.rows));
    return (back_ ? left < right : right < left) || (exact_ && left == right);
  }
  /// Equal parts of the side that has more rows.
  begin begin_of(std::size_t s, std::size_t spans) const {
    if (s == 0) return {0, 0};
    if (left_.rows >= right_.rows) {
      const std::size_t l = left_.rows * s / spans;
      return {l, lower_bound(std::size_t{0}, right_.rows, [&](std::size_t r) { return comes_before(r, l); })};
    }
    const std::size_t r = right_.rows * s / spans;
    const auto is_earlier = [&](std::size_t l) { return !comes_before(r - 1, l); };
    return {r == 0 ? 0 : lower_bound(std::size_t{0}, left_.rows, is_earlier), r};
  }

  const host& cpu_;
  asof_side<LeftWord> left_;
  asof_side<RightWord> right_;
  std::size_t keys_;
  const std::uint32_t* numbers_;
  bool exact_, back_;
};

}  // namespace roost::detail
