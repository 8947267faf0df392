#pragma once

#include "roost/embedding/detail/copy_rows.hpp"
#include "roost/embedding/detail/placement.hpp"

// Rows of a batch: one for each id, or one for each bag of ids; and how a step ends.

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
  ROOST_FN floats<Width> first_numbers(std::size_t i, std::uint32_t number) const {
    return first_piece<Width>(initializer, ids[i].beginning(ids.seed), number);
  }
  ROOST_FN floats<Width> numbers(std::size_t i, std::uint32_t number) const {
    const Value* const source = row(i);
    return source != nullptr ? load_piece<Width>(source, number) : first_numbers(i, number);
  }
  /// Copies the rows of ids id(k), k below count, to their places in `out`.
  template <class Team, class Id>
  ROOST_FN void copy(const Team& team, std::size_t count, const Id& id, Value* out) const {
    copy_rows<piece>(
        team, static_cast<std::uint32_t>(count), rows.dim / Width, lanes,
        [&](std::uint32_t k) { return row(id(k)); },
        [&](std::uint32_t k, std::uint32_t p) { return rounded<Value>(first_numbers(id(k), p)); },
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

/// Finds the slots of ids and copies their rows. In a step, the rows of ids that are not found are copied
/// later.
template <int Width, class Value>
struct find_and_gather {
  static constexpr int threads = find_embeddings::threads, teams_at_once = 3;

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

/// Writes the slots of ids whose keys were claimed, or no_slot, and writes which keys lost theirs. Then
/// copies rows: given rows, the last one of each key, to the table; otherwise the rows of these ids to `out`.
template <int Width, class Value>
struct settle_claims {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 2048;

  embedding_view<Value> table;
  claimed_keys claimed;
  rows_of_ids<Width, Value> of;
  std::uint32_t* found;
  step_kind<Value> how;

  struct pieces {
    std::uint32_t* counts;     // not placed, not admitted, evictions, ids with rows to copy
    std::uint64_t* kept;       // where these evictions begin: in this call's, and in those remembered
    std::uint32_t* evictions;  // their positions
    std::uint32_t* copied;     // ids whose rows are copied
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    return {memory.take<std::uint32_t>(4), memory.take<std::uint64_t>(2), memory.take<std::uint32_t>(tile),
            memory.take<std::uint32_t>(tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    if (how.given == nullptr && *claimed.any == 0) return;
    scratch_memory all(memory);
    const pieces parts = scratch(all);
    for_each_of(team, 4, [&](std::uint32_t c) { parts.counts[c] = 0; });
    team.sync();
    const std::size_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(tile, of.ids.n - first)),
                [&](std::uint32_t k) { settle(team, first, k, parts); });
    team.sync();
    if (team.rank() == 0) count_all(parts);
    team.sync();
    hand_out(team, parts);
    team.sync();
    const auto id = [&](std::uint32_t k) { return first + parts.copied[k]; };
    if (how.given != nullptr) {
      copy_known(
          team, parts.counts[3], [&](std::uint32_t k) { return how.given + id(k) * of.rows.dim; },
          [&](std::uint32_t k) { return of.row(id(k)); });
    } else if (how.out != nullptr) {
      of.copy(team, parts.counts[3], id, how.out);
    }
  }

 private:
  template <class Team>
  ROOST_FN void settle(const Team& team, std::size_t first, std::uint32_t k, const pieces& parts) const {
    const std::size_t i = first + k;
    if (found[i] == no_slot || (found[i] & is_missing) == 0) return;
    const std::uint32_t position = found[i] & ~is_missing, slot = claimed.slots[position];
    const bool has_row = slot < no_slot - 1;
    const auto claims = [&] { return has_row && claimed.claims[position] == i + 1; };
    found[i] = has_row ? slot & ~is_missing : no_slot;
    if (!has_row) team.fetch_add(parts.counts[no_slot - slot], 1u);
    if ((slot & is_missing) != 0 && claims()) parts.evictions[team.fetch_add(parts.counts[2], 1u)] = position;
    if (how.given != nullptr ? claims() : how.out != nullptr)
      parts.copied[team.fetch_add(parts.counts[3], 1u)] = k;
    if (how.given != nullptr && claims()) of.rows.mark(found[i]);
  }

  ROOST_FN void count_all(const pieces& parts) const {
    const std::uint32_t unplaced = parts.counts[0], unadmitted = parts.counts[1], evictions = parts.counts[2];
    embedding_state& state = *table.state;
    if (unplaced != 0) fetch_add(state.unplaced, std::uint64_t{unplaced});
    if (unadmitted != 0) fetch_add(state.unadmitted, std::uint64_t{unadmitted});
    if (evictions == 0) return;
    if (how.evicted_keys != nullptr) parts.kept[0] = fetch_add(state.evicted_now, evictions);
    if (table.remembered != nullptr) parts.kept[1] = fetch_add(state.remembered, std::uint64_t{evictions});
  }

  /// Writes the keys that lost their rows, and the rows.
  template <class Team>
  ROOST_FN void hand_out(const Team& team, const pieces& parts) const {
    for_each_of(team, parts.counts[2], [&](std::uint32_t k) {
      const embedding_key key = claimed.keys[parts.evictions[k]];
      const std::uint64_t number = parts.kept[1] + k;
      if (how.evicted_keys != nullptr) how.evicted_keys[parts.kept[0] + k] = key;
      if (table.remembered != nullptr && number < table.options.keep_evicted) table.remembered[number] = key;
    });
    if (how.evicted_rows == nullptr) return;
    copy_known(
        team, parts.counts[2],
        [&](std::uint32_t k) {
          return of.rows.weights(of.rows.at(claimed.slots[parts.evictions[k]] & ~is_missing));
        },
        [&](std::uint32_t k) { return how.evicted_rows + (parts.kept[0] + k) * of.rows.dim; });
  }

  template <class Team, class From, class To>
  ROOST_FN void copy_known(const Team& team, std::uint32_t count, const From& from, const To& to) const {
    using piece = stored_numbers<Width, Value>;
    const auto nothing = [](std::uint32_t, std::uint32_t) { return piece(); };
    copy_rows<piece>(team, count, of.rows.dim / Width, of.lanes, from, nothing, to);
  }
};

}  // namespace roost::detail
