#pragma once

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

/// Lanes that work on one row, each on pieces of it: a power of two.
template <class Place>
constexpr std::uint32_t lanes_of_row(std::size_t pieces) {
  std::uint32_t lanes = 1;
  if constexpr (!std::is_same_v<Place, host>) {
    while (lanes < 32 && lanes < pieces) lanes *= 2;
  }
  return lanes;
}

/// The initial numbers of an absent key's row.
template <int Width>
ROOST_RARE_FN floats<Width> first_piece(const row_initializer& how, std::uint64_t beginning,
                                        std::size_t piece) {
  floats<Width> numbers;
  for (int i = 0; i < Width; ++i)
    numbers.x[i] = first_number(how, beginning, piece * Width + static_cast<std::size_t>(i));
  return numbers;
}

/// to(k) = from(k) for the rows k below count; other(k, piece) if from(k) is null.
template <int Width, class Team, class From, class Other, class To>
ROOST_FN void copy_rows(const Team& team, std::uint32_t count, std::uint32_t dim, std::uint32_t lanes,
                        const From& from, const Other& other, const To& to) {
  constexpr std::uint32_t at_once = 4;
  const std::uint32_t rank = static_cast<std::uint32_t>(team.rank()),
                      groups = static_cast<std::uint32_t>(Team::size) / lanes;
  for (std::uint32_t first = rank / lanes; first < count; first += groups * at_once) {
    decltype(from(0)) source[at_once];
    ROOST_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) source[k] = from(smaller(first + k * groups, count - 1));
    for (std::uint32_t piece = rank % lanes; piece < dim / Width; piece += lanes) {
      floats<Width> numbers[at_once];
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        numbers[k] = source[k] != nullptr ? load_piece<Width>(source[k], piece)
                                          : other(smaller(first + k * groups, count - 1), piece);
      }
      ROOST_UNROLL
      for (std::uint32_t k = 0; k < at_once; ++k) {
        if (first + k * groups < count) store_piece<Width>(to(first + k * groups), piece, numbers[k]);
      }
    }
  }
}

/// Rows of ids [first, last) of a batch whose slots are known.
template <int Width, class Value>
struct rows_of_ids {
  embedding_rows<Value> rows;
  const std::uint32_t* slots;
  embedding_ids ids;
  row_initializer initializer;
  std::uint32_t lanes;

  ROOST_FN const Value* row(std::size_t i) const {
    return slots[i] != no_slot ? rows.weights(rows.at(slots[i])) : nullptr;
  }
  ROOST_FN floats<Width> first_numbers(std::size_t i, std::uint32_t piece) const {
    return first_piece<Width>(initializer, beginning_of(ids[i], ids.seed), piece);
  }
  ROOST_FN floats<Width> piece_of(std::size_t i, std::uint32_t piece) const {
    const Value* const source = row(i);
    return source != nullptr ? load_piece<Width>(source, piece) : first_numbers(i, piece);
  }
  template <class Team>
  ROOST_FN void copy(const Team& team, std::size_t first, std::size_t last, Value* out) const {
    copy_rows<Width>(
        team, static_cast<std::uint32_t>(last - first), rows.dim, lanes,
        [&](std::uint32_t k) { return row(first + k); },
        [&](std::uint32_t k, std::uint32_t piece) { return first_numbers(first + k, piece); },
        [&](std::uint32_t k) { return out + (first + k) * rows.dim; });
  }
};

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
    if (bags.offsets == nullptr) return of.copy(team, first, last, out);
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
        if (i + k < last) numbers[k] = of.piece_of(i + k, piece);
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
    of.copy(team, index * mine, smaller((index + 1) * mine, find.n), out);
  }
};

/// Writes the slots of ids whose keys were claimed, or no_slot, and writes which keys lost theirs. Then
/// copies rows: given rows, the last one of each key, to the table; otherwise the rows of these ids to `out`.
template <int Width, class Value>
struct settle_claims {
  static constexpr int threads = 256;
  static constexpr std::uint32_t tile = 2048;

  std::size_t n;
  std::uint32_t* found;
  claimed_keys claimed;
  embedding_state* state;
  rows_of_ids<Width, Value> of;
  const Value* given;           // or null
  Value* out;                   // or null
  evicted_rows<Value> evicted;  // of this call
  embedding_key* remembered;    // with room for `room`
  std::uint64_t room;

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
    if (given == nullptr && *claimed.any == 0) return;
    scratch_memory all(memory);
    const pieces parts = scratch(all);
    for_each_of(team, 4, [&](std::uint32_t c) { parts.counts[c] = 0; });
    team.sync();
    const std::size_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::size_t>(tile, n - first)),
                [&](std::uint32_t k) { settle(team, first, k, parts); });
    team.sync();
    if (team.rank() == 0) count_all(parts);
    team.sync();
    hand_out(team, parts);
    team.sync();
    const std::uint32_t dim = of.rows.dim;
    const auto nothing = [](std::uint32_t, std::uint32_t) { return floats<Width>(); };
    if (given != nullptr) {
      copy_rows<Width>(
          team, parts.counts[3], dim, of.lanes,
          [&](std::uint32_t k) { return given + (first + parts.copied[k]) * dim; }, nothing,
          [&](std::uint32_t k) {
            const std::uint32_t position = found[first + parts.copied[k]] & ~is_missing;
            return of.rows.weights(of.rows.at(claimed.slots[position] & ~is_missing));
          });
    } else if (out != nullptr) {
      copy_rows<Width>(
          team, parts.counts[3], dim, of.lanes,
          [&](std::uint32_t k) { return of.row(first + parts.copied[k]); },
          [&](std::uint32_t k, std::uint32_t piece) {
            return of.first_numbers(first + parts.copied[k], piece);
          },
          [&](std::uint32_t k) { return out + (first + parts.copied[k]) * dim; });
    }
  }

 private:
  template <class Team>
  ROOST_FN void settle(const Team& team, std::size_t first, std::uint32_t k, const pieces& parts) const {
    const std::size_t i = first + k;
    if (found[i] == no_slot || (found[i] & is_missing) == 0) return;
    const std::uint32_t position = found[i] & ~is_missing, slot = claimed.slots[position];
    const bool has_row = slot < no_slot - 1;
    if (!has_row) team.fetch_add(parts.counts[no_slot - slot], 1u);
    if (has_row && (slot & is_missing) != 0 && claimed.claims[position] == i + 1)
      parts.evictions[team.fetch_add(parts.counts[2], 1u)] = position;
    if (given == nullptr) found[i] = has_row ? slot & ~is_missing : no_slot;
    if (given == nullptr ? out != nullptr : has_row && claimed.claims[position] == i + 1)
      parts.copied[team.fetch_add(parts.counts[3], 1u)] = k;
    if (given != nullptr && has_row && claimed.claims[position] == i + 1) of.rows.mark(slot & ~is_missing);
  }

  ROOST_FN void count_all(const pieces& parts) const {
    if (parts.counts[0] != 0) fetch_add(state->unplaced, std::uint64_t{parts.counts[0]});
    if (parts.counts[1] != 0) fetch_add(state->unadmitted, std::uint64_t{parts.counts[1]});
    const std::uint32_t evictions = parts.counts[2];
    if (evictions == 0) return;
    if (evicted.keys != nullptr) parts.kept[0] = fetch_add(state->evicted_now, evictions);
    if (remembered != nullptr) parts.kept[1] = fetch_add(state->remembered, std::uint64_t{evictions});
  }

  /// Writes the keys that lost their rows, and the rows.
  template <class Team>
  ROOST_FN void hand_out(const Team& team, const pieces& parts) const {
    for_each_of(team, parts.counts[2], [&](std::uint32_t k) {
      const embedding_key key = claimed.keys[parts.evictions[k]];
      if (evicted.keys != nullptr) evicted.keys[parts.kept[0] + k] = key;
      if (remembered != nullptr && parts.kept[1] + k < room) remembered[parts.kept[1] + k] = key;
    });
    if (evicted.rows == nullptr) return;
    copy_rows<Width>(
        team, parts.counts[2], of.rows.dim, of.lanes,
        [&](std::uint32_t k) {
          const std::uint32_t slot = claimed.slots[parts.evictions[k]] & ~is_missing;
          return static_cast<const Value*>(of.rows.weights(of.rows.at(slot)));
        },
        [](std::uint32_t, std::uint32_t) { return floats<Width>(); },
        [&](std::uint32_t k) { return evicted.rows + (parts.kept[0] + k) * of.rows.dim; });
  }
};

}  // namespace roost::detail
