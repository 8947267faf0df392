#pragma once

#include <vector>

#include "roost/detail/place/arrays.hpp"
#include "roost/detail/place/reachable.hpp"
#include "roost/embedding/detail/rows.hpp"

// The memory of a table: who owns it, and what kernels see of it.

namespace roost::detail {

/// The counters of a table, in memory of its place, so that a step can be replayed without the host.
struct embedding_state {
  optimizer_rates rates = {};
  float adam_rate = 0, adam_root = 0;  // for adam: replace its rate, and scale the root of v
  std::uint32_t step = 0, updates = 0;
  std::uint32_t any_missing = 0;  // in the running call
  std::uint32_t evicted_now = 0;  // by the running call
  std::uint32_t long_sums = 0;    // of the running update
  std::uint64_t evicted = 0, unplaced = 0, unadmitted = 0, remembered = 0, forgotten = 0;
};

/// What kernels see of a table.
template <class Value>
struct embedding_view {
  embedding_options options;
  embedding_slots slots = {};
  embedding_rows<Value> rows = {};
  row_cache cache = {};
  lookup_sketch sketch = {};
  std::uint32_t* heads = nullptr;       // claimed_keys::heads
  embedding_key* remembered = nullptr;  // the last keys that lost their rows: options.keep_evicted
  embedding_state* state = nullptr;

  std::size_t capacity() const { return slots.buckets * embedding_slots::of_bucket; }
};

template <class Place, class Value>
class embedding_memory {
 public:
  embedding_view<Value> view;

  embedding_memory(const Place& place, const embedding_options& options)
      : view{.options = options}, far_(place, 0) {
    constexpr std::size_t of_bucket = embedding_slots::of_bucket;
    const std::size_t buckets = ceil_div(options.capacity, of_bucket), n = buckets * of_bucket;
    const bool scored =
        options.eviction == eviction::least_frequent || options.eviction == eviction::least_score;
    allocate_rows(place, n);
    view.slots = {buckets,
                  zeros(place, n / 4),
                  take<std::uint64_t>(place, n),
                  take<std::uint16_t>(place, options.features ? n : 0),
                  zeros(place, n),
                  take<std::uint64_t>(place, scored ? n : 0)};
    view.sketch = {zeros(place, options.admit > 1 ? 2 * n : 0), n};
    view.heads = zeros(place, buckets);
    view.remembered = take<embedding_key>(place, options.keep_evicted);
    view.state = take<embedding_state>(place, 1);
    view.cache.step = &view.state->step;
    write_one(place, view.state, embedding_state{.rates = options.rates});
  }

  std::size_t bytes() const {
    std::size_t all = 0;
    for (const auto& piece : pieces_) all += piece.bytes();
    return all;
  }

 private:
  template <class T>
  T* take(const Place& place, std::size_t n) {
    pieces_.emplace_back(place, n * sizeof(T));
    return reinterpret_cast<T*>(pieces_.back().data());
  }
  std::uint32_t* zeros(const Place& place, std::size_t n) {
    auto* const result = take<std::uint32_t>(place, n);
    place.fill(result, 0, n * sizeof(*result));
    return result;
  }

  void allocate_rows(const Place& place, std::size_t n) {
    const auto up = [](std::size_t x, std::size_t to) { return ceil_div(x, to) * to; };
    const auto& [dim, how] = std::pair(view.options.dim, view.options.optimizer);
    const std::size_t of_part = how == optimizer::rowwise_adagrad ? 4 : up(dim, 4),
                      parts = how == optimizer::sgd    ? 0
                              : how == optimizer::adam ? 2
                                                       : 1;
    embedding_rows<Value>& rows = view.rows;
    rows.dim = dim;
    rows.kept_at = static_cast<std::uint32_t>(up(dim * sizeof(Value), 16));
    rows.kept_of = static_cast<std::uint32_t>(of_part);
    rows.kept = static_cast<std::uint32_t>(of_part * parts);
    rows.stride = rows.kept_at + rows.kept * sizeof(float);

    const std::size_t near = up(view.options.cached_rows, row_cache::line);
    const bool all = near == 0 || near >= n;
    rows.data = take<std::byte>(place, (all ? n : near) * rows.stride);
    if (all) return;
    far_ = reachable<Place>(place, n * rows.stride);
    rows.far = static_cast<std::byte*>(far_.data());
    rows.where = zeros(place, n);
    rows.owners = zeros(place, near);
    const auto lines = static_cast<std::uint32_t>(near / row_cache::line);
    view.cache = {n, lines, larger(smaller(lines / row_cache::lines_of_region, row_cache::regions_most), 1u),
                  zeros(place, near), zeros(place, near)};
  }

  std::vector<array<std::byte, Place>> pieces_;
  reachable<Place> far_;
};

}  // namespace roost::detail
