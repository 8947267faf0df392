#pragma once

#include "roost/embedding/detail/copy_rows.hpp"
#include "roost/embedding/detail/memory.hpp"

// Rows of a batch: one for each id, or one for each bag of ids.

namespace roost::detail {

/// Bags of ids: bag b has ids [offsets[b], offsets[b + 1]). Without offsets each id is a bag.
struct bags_of_ids {
  const std::int64_t* offsets = nullptr;
  std::size_t count = 0;
  bool mean = false;

  /// The factor of a bag's gradient for each of its ids.
  ROOST_FN float share(std::size_t bag) const {
    return mean ? 1 / static_cast<float>(offsets[bag + 1] - offsets[bag]) : 1.0f;
  }
};

/// The initial numbers of an absent key's row.
template <int Width>
ROOST_RARE_FN floats<Width> first_piece(const row_initializer& how, std::uint64_t beginning,
                                        std::size_t piece) {
  floats<Width> numbers;
  for (int i = 0; i < Width; ++i)
    numbers.x[i] = first_number(how, beginning, piece * Width + static_cast<std::size_t>(i));
  return numbers;
}

/// Rows of the ids of a batch whose slots are known.
template <int Width, class Value>
struct rows_of_ids {
  using piece = stored_numbers<Width, Value>;

  embedding_rows<Value> rows;
  const std::uint32_t* slots;
  embedding_ids ids;
  row_initializer initializer;
  std::uint32_t lanes;

  ROOST_FN Value* row(std::size_t i) const {
    return slots[i] != no_slot ? rows.weights(rows.at(slots[i])) : nullptr;
  }
  /// As a row would store them.
  ROOST_FN stored_numbers<Width, Value> first_numbers(std::size_t i, std::uint32_t number) const {
    return rounded<Value>(first_piece<Width>(initializer, ids[i].beginning(ids.seed), number));
  }
  ROOST_FN floats<Width> numbers(std::size_t i, std::uint32_t number) const {
    const Value* const source = row(i);
    if (source != nullptr) return load_piece<Width>(source, number);
    return load_piece<Width>(first_numbers(i, number).x, 0);
  }
  /// Copies the rows of ids id(k), k below count, to their places in `out`.
  template <class Team, class Id>
  ROOST_FN void copy(const Team& team, std::size_t count, const Id& id, Value* out) const {
    copy_rows<piece>(
        team, row_batch{static_cast<std::uint32_t>(count), rows.dim / Width, lanes},
        [&](std::uint32_t k) { return row(id(k)); },
        [&](std::uint32_t k, std::uint32_t p) { return first_numbers(id(k), p); },
        [&](std::uint32_t k) { return out + id(k) * rows.dim; });
  }
};

template <int Width, class Place, class Value>
auto rows_of(const Place&, const embedding_view<Value>& table, const embedding_ids& ids,
             const std::uint32_t* slots) {
  return rows_of_ids<Width, Value>{table.rows, slots, ids, table.options.initializer,
                                   lanes_of_row<Place>(table.rows.dim / Width)};
}

template <int Width, class Value>
struct gather_rows {
  static constexpr int threads = 128, teams_at_once = 6;
  static constexpr std::size_t tile = 128;  // bags of a team

  rows_of_ids<Width, Value> of;
  bags_of_ids bags;
  Value* out;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::size_t first = index * tile, last = smaller(first + tile, bags.count);
    if (bags.offsets == nullptr) {
      return of.copy(team, last - first, [&](std::uint32_t k) { return first + k; }, out);
    }
    const std::uint32_t rank = static_cast<std::uint32_t>(team.rank()), dim = of.rows.dim;
    for (std::size_t bag = first + rank / of.lanes; bag < last; bag += Team::size / of.lanes) {
      for (std::uint32_t piece = rank % of.lanes; piece < dim / Width; piece += of.lanes)
        store_piece<Width>(out + bag * dim, piece, sum_of(bag, piece));
    }
  }

 private:
  ROOST_FN floats<Width> sum_of(std::size_t bag, std::uint32_t piece) const {
    constexpr int at_once = 4;
    floats<Width> sum{};
    const auto first = static_cast<std::size_t>(bags.offsets[bag]),
               last = static_cast<std::size_t>(bags.offsets[bag + 1]);
    for (std::size_t i = first; i < last; i += at_once) {
      floats<Width> numbers[at_once];
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (i + k < last) numbers[k] = of.numbers(i + k, piece);
      }
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        for (int x = 0; x < Width && i + k < last; ++x) sum.x[x] += numbers[k].x[x];
      }
    }
    if (bags.mean && last > first) {
      for (int x = 0; x < Width; ++x) sum.x[x] /= static_cast<float>(last - first);
    }
    return sum;
  }
};

/// Copies the rows of ids, or the sums of bags, whose slots are known.
template <class Place, class Value>
void run_gather(const Place& place, const embedding_view<Value>& table, const embedding_ids& ids,
                const std::uint32_t* slots, const bags_of_ids& bags, Value* out) {
  const auto run = [&](auto width) {
    using kernel = gather_rows<width(), Value>;
    const auto of = rows_of<width()>(place, table, ids, slots);
    place.launch(ceil_div(bags.count, kernel::tile), 0, kernel{of, bags, out});
  };
  by_width(table.rows.dim, run, out);
}

/// Finds the slots of ids and copies their rows; in a step, those of ids that are not found are copied later.
template <int Width, class Value>
struct find_and_gather {
  static constexpr int threads = find_embeddings::threads, teams_at_once = 4;

  find_embeddings find;
  rows_of_ids<Width, Value> of;
  Value* out;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    constexpr std::size_t mine = find_embeddings::tile<typename Team::place>;
    find(team, index, memory);
    team.sync();
    const std::size_t first = index * mine;
    of.copy(team, smaller(mine, find.ids.n - first), [&](std::uint32_t k) { return first + k; }, out);
  }
};

/// Finds slots, and copies the rows of the keys that are found to `out`, unless that is null.
template <class Place, class Value>
void find_rows(const Place& place, const embedding_view<Value>& table, const find_embeddings& find,
               Value* out) {
  const std::size_t teams = ceil_div(find.ids.n, find_embeddings::tile<Place>);
  if (out == nullptr) return place.launch(teams, 0, find);
  const auto run = [&](auto width) {
    const auto of = rows_of<width()>(place, table, find.ids, find.found);
    place.launch(teams, 0, find_and_gather<width(), Value>{find, of, out});
  };
  by_width(table.rows.dim, run, out);
}

}  // namespace roost::detail
