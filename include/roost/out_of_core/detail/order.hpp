#pragma once

#include "roost/detail/groups/sort_keys.hpp"
#include "roost/out_of_core/detail/call.hpp"

// The last pass of a call: its results, which are runs that ascend by row, in order.

namespace roost::detail {

/// The row of an item, counted from that of a block.
template <class Item>
struct row_in_block {
  const Item* items;
  std::size_t first_row;
  ROOST_FN auto operator()(std::size_t i) const {
    return static_cast<decltype(items[i].row())>(items[i].row() - first_row);
  }
};

/// Items in host memory, in runs that ascend by Item::row(): all of them by row, and those of a row by run.
template <class Item, class Device>
class items_by_row {
  using run = std::span<const Item>;

  /// What the runs have of some rows. Blocks in order need no device.
  struct block {
    std::vector<run> pieces;
    std::size_t first_row, end_row, size = 0, position = 0;

    void add(run piece) {
      if (piece.empty()) return;
      pieces.push_back(piece);
      size += piece.size();
    }
    bool is_in_order() const {
      bool result = true;
      for (std::size_t i = 1; i < pieces.size(); ++i)
        result = result && pieces[i - 1].back().row() <= pieces[i].front().row();
      return result;
    }
    /// Half of the rows each.
    std::pair<block, block> halves() const {
      const std::size_t middle = first_row + (end_row - first_row) / 2;
      std::pair<block, block> result{{{}, first_row, middle, 0, position}, {{}, middle, end_row}};
      for (const run& piece : pieces) {
        const std::size_t cut =
            piece.back().row() < middle
                ? piece.size()
                : lower_bound(std::size_t{0}, piece.size(), [&](auto i) { return piece[i].row() < middle; });
        result.first.add(piece.first(cut));
        result.second.add(piece.subspan(cut));
      }
      result.second.position = position + result.first.size;
      return result;
    }
  };

 public:
  /// Rows are below n.
  items_by_row(out_of_core_call<Device>& call, std::size_t n) : call_(call), all_{{}, 0, n} {}

  void add(run items) { all_.add(items); }
  template <class Waiting>
  void add_all(const Waiting& items) {
    for (std::size_t b = 0; b < items.blocks(); ++b) add(items[b]);
  }

  std::size_t size() const { return all_.size; }

  /// Calls put(position, item) for all items, on all threads of the host; but where that would not be in
  /// order, write(worker, items, order, block) for blocks of rows, with the items on the device and the order
  /// that they are to have. There an item takes so many bytes beside its order, and so does a row.
  template <class Write, class Put>
  void each(std::size_t item_bytes, std::size_t row_bytes, const Write& write, const Put& put) {
    constexpr std::size_t sort_bytes = sizeof(Item) + 4 * sizeof(pair<std::uint64_t, std::uint32_t>);
    const auto workers = call_.all();
    workers.share();
    // Half of a worker's room, so that there are blocks for all of them sooner.
    const std::size_t room = workers.first().room() / (workers.size() == 1 ? 1 : 2);
    std::vector<block> blocks;
    const auto fits = [&](const block& of) {
      return of.size * (item_bytes + sort_bytes) + (of.end_row - of.first_row) * row_bytes <= room;
    };
    divide(std::move(all_), fits, blocks, put);
    workers.each(blocks.size(),
                 [&](worker& mine, std::size_t i) { sort(mine, std::move(blocks[i]), write, put); });
  }

 private:
  using worker = out_of_core_worker<Device>;

  /// Blocks that fit, and are not in order.
  template <class Fits, class Put>
  void divide(block of, const Fits& fits, std::vector<block>& blocks, const Put& put) const {
    if (of.is_in_order()) {
      put_all(of, put);
    } else if (fits(of)) {
      blocks.push_back(std::move(of));
    } else {
      auto [first, second] = of.halves();
      of = {};
      divide(std::move(first), fits, blocks, put);
      divide(std::move(second), fits, blocks, put);
    }
  }

  template <class Write, class Put>
  void sort(worker& mine, block of, const Write& write, const Put& put) const {
    if (of.is_in_order()) return put_all(of, put);
    const std::size_t done = mine.largest(of.size, [&](std::size_t some) {
      if (some != of.size) return;
      waiting_items<Item> source;
      for (const run& piece : of.pieces) source.add(piece);
      const auto items = source.load(mine, 0, some);
      const computed rows(some, row_in_block<Item>{items.data(), of.first_row});
      const auto bits = static_cast<std::uint32_t>(std::bit_width(of.end_row - of.first_row - 1));
      const auto sorted = sort_keys(mine.device(), rows, numbers_to<std::uint32_t>(some), bits);
      const auto order = array_of(mine.device(), some, sorted.number());
      write(mine, items, order, of);
    });
    if (done == of.size) return;
    auto [first, second] = of.halves();
    sort(mine, std::move(first), write, put);
    sort(mine, std::move(second), write, put);
  }

  template <class Put>
  void put_all(const block& of, const Put& put) const {
    std::size_t position = of.position;
    for (const run& piece : of.pieces) {
      for_each_tile<Item>(call_.cpu(), piece.size(), [&](std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) put(position + i, piece[i]);
      });
      position += piece.size();
    }
  }

  out_of_core_call<Device>& call_;
  block all_;
};

/// Of items in an order: what `Get` returns of each.
template <class Item, class Get>
struct in_order_of {
  const Item* items;
  const std::uint32_t* order;
  ROOST_FN auto operator[](std::size_t i) const { return Get()(items[order[i]]); }
};

/// Writes a column of a block of items to its place in `target`.
template <class Get, class Device, class Item, class T, class Block>
void store_column(out_of_core_worker<Device>& mine, const array<Item, Device>& items,
                  const array<std::uint32_t, Device>& order, const Block& of, array<T, host>& target) {
  array<T, Device> column(mine.device(), items.size());
  write_numbers(mine.device(), items.size(), element{in_order_of<Item, Get>{items.data(), order.data()}},
                column.data());
  mine.store(column, target.data() + of.position);
}

}  // namespace roost::detail
