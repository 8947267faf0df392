#pragma once

#include "roost/detail/partition/sort.hpp"
#include "roost/embedding/detail/gather.hpp"
#include "roost/pair.hpp"

// An update: gradients, sorted by slot, are added up in the order of the batch, and the optimizer changes
// each row once. A tile is 32 gradients. If the gradients of a slot end at most one tile after they began,
// that tile computes their sum; otherwise each tile writes a partial sum, and a second kernel adds these.

namespace roost::detail {

/// The slot of an id, and where its gradient is.
using sorted_slot = pair<std::uint32_t, std::uint32_t>;

/// The slot of id i and its bag; no_slot becomes the number after the last slot, so that few bits are sorted.
struct slot_and_bag {
  const std::uint32_t* slots;
  const std::uint32_t* bag_of;  // or null: i
  std::uint32_t absent;

  ROOST_FN sorted_slot operator()(std::size_t i) const {
    return {smaller(slots[i], absent), bag_of != nullptr ? bag_of[i] : static_cast<std::uint32_t>(i)};
  }
};

/// The bag of id i.
struct bag_of_id {
  bags_of_ids bags;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    return static_cast<std::uint32_t>(
        last_at_or_before(std::size_t{0}, bags.count, bags.offsets, static_cast<std::int64_t>(i)));
  }
};

/// Joins: the second kernel. ByRow: for rowwise_adagrad, which needs whole rows.
template <int Width, class Value, bool Joins, bool ByRow>
struct sum_gradients {
  static constexpr int threads = 128, teams_at_once = Joins ? 1 : 6;
  static constexpr std::uint32_t tile = 32;
  static constexpr int at_once = 4;
  template <class Place>
  static constexpr std::size_t tiles_of_team(std::uint32_t lanes) {
    return std::is_same_v<Place, host> ? 16 : threads / lanes;
  }

  const sorted_slot* sorted;
  std::size_t n;
  std::uint32_t absent;
  const Value* gradients;
  bags_of_ids bags;
  embedding_rows<Value> rows;
  optimizer how;
  embedding_state* state;
  std::uint32_t lanes;       // of a row
  float* partial;            // two per tile: of the sum that began before it, and of the one that continues
  std::uint32_t* long_sums;  // tiles where a sum that continues begins
  std::size_t joined;        // how many long sums are joined at a time

  struct pieces {
    float* squares;  // of each group of lanes, run and lane; then the row's sum
    std::uint32_t* slots;
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    const std::size_t n_groups = ByRow ? (lanes == 1 ? 1 : threads / lanes) : 0;  // 1: on a host
    return {memory.take<float>(n_groups * tile * lanes), memory.take<std::uint32_t>(n_groups * tile)};
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    pieces mine = scratch_of(*this, memory);
    const std::uint32_t rank = static_cast<std::uint32_t>(team.rank()), lane = rank % lanes,
                        group = rank / lanes;
    mine.squares += group * tile * lanes;
    mine.slots += group * tile;
    const std::size_t of_team = tiles_of_team<typename Team::place>(lanes);
    for (std::size_t t = 0; t < of_team; t += static_cast<std::size_t>(Team::size) / lanes) {
      const std::size_t number = index * of_team + t + group;
      if constexpr (!Joins) {
        run(team, number, lane, mine);
      } else {
        const std::size_t count = state->long_sums;
        // All lanes of a warp do the same number of rounds, as they wait for each other.
        for (std::size_t k = 0; k < count; k += joined)
          run(team, number < joined && k + number < count ? long_sums[k + number] : no_tile, lane, mine);
      }
    }
  }

 private:
  /// The sorted slots of a group of lanes: [first, last), whose first run may have begun before.
  struct range {
    std::size_t first, last;
    bool began_before, goes_on;
  };

  static constexpr std::size_t no_tile = std::size_t{1} << 40;

  ROOST_FN std::uint32_t slot_at(std::size_t e) const { return e < n ? sorted[e].key : absent; }

  /// The sorted slots of a tile: without a run that the previous tile completes, and with all of the last run
  /// if that ends in the next tile.
  ROOST_FN range range_of(std::size_t number) const {
    range r{smaller(number * tile, n), smaller((number + 1) * tile, n), false, false};
    if (r.first == r.last) return r;
    const std::uint32_t first = slot_at(r.first), last = slot_at(r.last - 1);
    const std::size_t end = r.last;
    if (last != absent && slot_at(end) == last) {  // continues
      r.goes_on = !began_here(number, last) || slot_at(end + tile) == last;
      while (!r.goes_on && slot_at(r.last) == last) ++r.last;
    }
    if (r.first != 0 && slot_at(r.first - 1) == first) {
      const bool began_in_last = r.first == tile || slot_at(r.first - tile - 1) != first;
      r.began_before = !(began_in_last && slot_at(end) != first);
      while (!r.began_before && r.first != end && slot_at(r.first) == first) ++r.first;
    }
    return r;
  }

  ROOST_FN bool began_here(std::size_t number, std::uint32_t slot) const {
    const std::size_t first = number * tile;
    return slot_at(first) != slot || first == 0 || slot_at(first - 1) != slot;
  }

  template <class Team>
  ROOST_FN void run(const Team& team, std::size_t number, std::uint32_t lane, const pieces& mine) const {
    const range r = range_of(number);
    if (!Joins && r.goes_on && lane == 0 && began_here(number, slot_at(r.last - 1)))
      long_sums[fetch_add(state->long_sums, 1u)] = static_cast<std::uint32_t>(number);
    if constexpr (ByRow) {
      for (std::uint32_t i = 0; i < tile; ++i) mine.squares[i * lanes + lane] = 0;
      for (std::uint32_t i = lane; i < tile; i += lanes) mine.slots[i] = no_slot;
      team.sync_near();
      each_sum(
          number, r, lane,
          [&](std::uint32_t i, std::uint32_t slot, std::uint32_t, const floats<Width>& g, const row_piece&) {
            for (int x = 0; x < Width; ++x) mine.squares[i * lanes + lane] += g.x[x] * g.x[x];
            mine.slots[i] = slot;
          });
      team.sync_near();
      for (std::uint32_t i = lane; i < tile; i += lanes) add_squares(mine.squares + i * lanes, mine.slots[i]);
      team.sync_near();
    }
    each_sum(
        number, r, lane,
        [&](std::uint32_t i, std::uint32_t slot, std::uint32_t piece, const floats<Width>& g,
            const row_piece& row) { learn(slot, piece, g, row, ByRow ? mine.squares[i * lanes] : 0.0f); });
  }

  ROOST_FN void add_squares(float* of_lanes, std::uint32_t slot) const {
    if (slot == no_slot) return;
    float sum = 0;
    for (std::uint32_t l = 0; l < lanes; ++l) sum += of_lanes[l];
    float* const kept = rows.part(rows.at(slot), 0);
    of_lanes[0] = *kept += sum / static_cast<float>(rows.dim);
  }

  /// f(i, slot, piece, sum, row) for this lane's pieces of the i-th sum that is complete here, for every i.
  template <class F>
  ROOST_FN void each_sum(std::size_t number, const range& r, std::uint32_t lane, const F& f) const {
    for (std::uint32_t piece = lane; piece < rows.dim / Width; piece += lanes) {
      if constexpr (Joins) {
        join(number, piece, f);
      } else {
        sum_tile(number, r, piece, f);
      }
    }
  }

  template <class F>
  ROOST_FN void sum_tile(std::size_t number, const range& r, std::uint32_t piece, const F& f) const {
    floats<Width> sum{};
    bool began_before = r.began_before;
    std::uint32_t sums = 0;
    for (std::size_t e = r.first; e < r.last; e += at_once) {
      sorted_slot item[at_once + 1];
      floats<Width> gradient[at_once];
      ROOST_UNROLL
      for (int k = 0; k <= at_once; ++k) item[k] = e + k < n ? sorted[e + k] : sorted_slot{absent, 0u};
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (e + k < r.last && item[k].key != absent) gradient[k] = gradient_of(item[k].value, piece);
      }
      // In half of the batches of four, exactly one sum ends: its row is read together with the gradients.
      std::uint32_t early = absent;
      ROOST_UNROLL
      for (int k = at_once - 1; k >= 0; --k) early = item[k + 1].key != item[k].key ? item[k].key : early;
      row_piece row;
      if (early != absent) row = load_row(early, piece);
      ROOST_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (e + k >= r.last || item[k].key == absent) continue;
        add(sum, gradient[k]);
        if (item[k + 1].key == item[k].key) continue;
        if (began_before) {
          store_piece<Width>(partial + 2 * number * rows.dim, piece, sum);
        } else {
          if (item[k].key != early) row = load_row(item[k].key, piece);
          f(sums++, item[k].key, piece, decayed(sum, row), row);
        }
        began_before = false;
        sum = floats<Width>();
      }
    }
    if (r.goes_on) store_piece<Width>(partial + (2 * number + (began_before ? 0 : 1)) * rows.dim, piece, sum);
  }

  /// Adds the partial sums of a long run that begins in this tile.
  template <class F>
  ROOST_FN void join(std::size_t number, std::uint32_t piece, const F& f) const {
    constexpr int at_once_here = 16;
    if (number == no_tile) return;
    const std::uint32_t slot = sorted[(number + 1) * tile - 1].key;
    floats<Width> sum = load_piece<Width>(partial + (2 * number + 1) * rows.dim, piece);
    bool goes_on = true;
    for (std::size_t t = number + 1; goes_on; t += at_once_here) {
      floats<Width> more[at_once_here];
      bool has[at_once_here];
      ROOST_UNROLL
      for (int k = 0; k < at_once_here; ++k) {
        has[k] = slot_at((t + k) * tile) == slot;
        if ((t + k) * tile < n) more[k] = load_piece<Width>(partial + 2 * (t + k) * rows.dim, piece);
      }
      ROOST_UNROLL
      for (int k = 0; k < at_once_here; ++k) {
        if (has[k]) add(sum, more[k]);
      }
      goes_on = has[at_once_here - 1];
    }
    const row_piece row = load_row(slot, piece);
    f(0, slot, piece, decayed(sum, row), row);
  }

  ROOST_FN static void add(floats<Width>& sum, const floats<Width>& more) {
    ROOST_UNROLL
    for (int x = 0; x < Width; ++x) sum.x[x] += more.x[x];
  }

  ROOST_FN floats<Width> gradient_of(std::uint32_t bag, std::uint32_t piece) const {
    floats<Width> g = load_piece<Width>(gradients + std::size_t{bag} * rows.dim, piece);
    if (bags.mean) {
      const float share = bags.share(bag);
      for (int x = 0; x < Width; ++x) g.x[x] *= share;
    }
    return g;
  }

  /// A piece of a row: its weights, and the optimizer's state for them.
  struct row_piece {
    std::byte* row;
    floats<Width> w, first, second;
  };
  ROOST_FN row_piece load_row(std::uint32_t slot, std::uint32_t piece) const {
    std::byte* const at = rows.at(slot);
    row_piece row{at, load_piece<Width>(rows.weights(at), piece), {}, {}};
    if (ByRow || how == optimizer::sgd) return row;
    row.first = load_piece<Width>(rows.part(at, 0), piece);
    if (how == optimizer::adam) row.second = load_piece<Width>(rows.part(at, 1), piece);
    return row;
  }

  ROOST_FN floats<Width> decayed(floats<Width> g, const row_piece& row) const {
    const float rate = state->rates.weight_decay;
    for (int x = 0; x < Width; ++x) g.x[x] += rate * row.w.x[x];
    return g;
  }

  /// `row_sum`: of rowwise_adagrad.
  ROOST_FN void learn(std::uint32_t slot, std::uint32_t piece, const floats<Width>& g, row_piece row,
                      float row_sum) const {
    const optimizer_rates& rates = state->rates;
    if (!ByRow && how == optimizer::adam) {
      ROOST_UNROLL
      for (int x = 0; x < Width; ++x) {
        float &m = row.first.x[x], &v = row.second.x[x];
        m = rates.beta1 * m + (1 - rates.beta1) * g.x[x];
        v = rates.beta2 * v + (1 - rates.beta2) * g.x[x] * g.x[x];
        row.w.x[x] -= state->adam_rate * m / (sqrtf(v) * state->adam_root + rates.epsilon);
      }
      store_piece<Width>(rows.part(row.row, 0), piece, row.first);
      store_piece<Width>(rows.part(row.row, 1), piece, row.second);
    } else if (!ByRow && how == optimizer::adagrad) {
      ROOST_UNROLL
      for (int x = 0; x < Width; ++x) {
        float& s = row.first.x[x];
        s += g.x[x] * g.x[x];
        row.w.x[x] -= rates.learning_rate * g.x[x] / (sqrtf(s) + rates.epsilon);
      }
      store_piece<Width>(rows.part(row.row, 0), piece, row.first);
    } else {
      const float scale = ByRow ? 1 / (sqrtf(row_sum) + rates.epsilon) : 1.0f;
      ROOST_UNROLL
      for (int x = 0; x < Width; ++x) row.w.x[x] -= rates.learning_rate * scale * g.x[x];
    }
    store_piece<Width>(rows.weights(row.row), piece, row.w);
    if (piece == 0) rows.mark(slot);
  }
};

struct begin_update {
  embedding_state* state;
  ROOST_FN void operator()(std::size_t) const {
    state->long_sums = 0;
    const auto t = static_cast<double>(++state->updates);
    const optimizer_rates& rates = state->rates;
    state->adam_rate = static_cast<float>(rates.learning_rate / (1 - pow(double{rates.beta1}, t)));
    state->adam_root = static_cast<float>(1 / sqrt(1 - pow(double{rates.beta2}, t)));
  }
};

/// Both kernels.
template <int Width, bool ByRow, class Place, class Value>
void sum_sorted(const Place& place, const embedding_view<Value>& table, const sorted_slot* sorted,
                std::size_t n, const bags_of_ids& bags, const Value* gradients) {
  std::uint32_t lanes = lanes_of_row<Place>(table.rows.dim / Width);
  if (ByRow && !std::is_same_v<Place, host>) lanes = larger(lanes, 4u);  // less scratch memory
  const auto absent = static_cast<std::uint32_t>(table.capacity());
  const std::size_t tiles = ceil_div<std::size_t>(n, sum_gradients<Width, Value, false, ByRow>::tile);
  array<float, Place> partial(place, tiles * 2 * table.rows.dim);
  array<std::uint32_t, Place> long_sums(place, tiles);
  place.for_each(1, begin_update{table.state});  // after all that may be refused
  const auto run = [&](auto joins, std::size_t of_tiles) {
    using kernel = sum_gradients<Width, Value, joins(), ByRow>;
    const kernel sums{.sorted = sorted,
                      .n = n,
                      .absent = absent,
                      .gradients = gradients,
                      .bags = bags,
                      .rows = table.rows,
                      .how = table.options.optimizer,
                      .state = table.state,
                      .lanes = lanes,
                      .partial = partial.data(),
                      .long_sums = long_sums.data(),
                      .joined = of_tiles};
    place.launch(ceil_div(of_tiles, kernel::template tiles_of_team<Place>(lanes)), scratch_bytes_of(sums),
                 sums);
  };
  run(std::false_type(), tiles);
  run(std::true_type(), smaller<std::size_t>(tiles, 4096));
}

/// A step of the optimizer: `slots` of n ids, and a gradient for each bag.
template <class Place, class Value>
void run_update(const Place& place, const embedding_view<Value>& table, const std::uint32_t* slots,
                std::size_t n, const bags_of_ids& bags, const Value* gradients) {
  const calls_between_pieces none(nullptr);  // all rows learn, or none
  if (n == 0) return place.for_each(1, begin_update{table.state});
  array<std::uint32_t, Place> bag_of(place, bags.offsets != nullptr ? n : 0);
  write_numbers(place, bag_of.size(), bag_of_id{bags}, bag_of.data());
  const auto absent = static_cast<std::uint32_t>(table.capacity());
  const auto sorted = sort_pairs(place, computed(n, slot_and_bag{slots, bag_of.data(), absent}),
                                 static_cast<std::uint32_t>(std::bit_width(absent)));
  const auto run = [&](auto width) {
    if (table.options.optimizer == optimizer::rowwise_adagrad) {
      sum_sorted<width(), true>(place, table, sorted.items(), n, bags, gradients);
    } else {
      sum_sorted<width(), false>(place, table, sorted.items(), n, bags, gradients);
    }
  };
  by_width(table.rows.dim, run, gradients);
}

}  // namespace roost::detail
