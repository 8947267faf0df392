#pragma once

#include <span>

#include "roost/embedding/detail/checks.hpp"
#include "roost/embedding/detail/entries.hpp"
#include "roost/embedding/detail/step.hpp"
#include "roost/embedding/detail/update.hpp"
#include "roost/embedding/embedding_options.hpp"
#include "roost/place.hpp"

/// \file
/// Learned rows by key: a table with a fixed number of rows, in which new keys take the rows of others.

namespace roost {

/// Keys that have rows, with all that a table knows about them, in memory of the place.
template <class Place>
struct embedding_entries {
  array<std::uint32_t, Place> slots;  ///< ascending
  array<std::int64_t, Place> ids;
  array<std::uint16_t, Place> features;
  array<std::uint32_t, Place> steps;   ///< that looked each key up last
  array<std::uint64_t, Place> scores;  ///< lookups, or a step and a score; empty for other kinds of eviction
};

/// A table of learned rows by key: an id, or an id and a feature. It has a fixed number of rows. A new key
/// gets a free row of its bucket of 128, or the row of another key, which the kind of eviction chooses; keys
/// of the current step are never evicted. A key that finds no row is counted, and its lookup returns the
/// row that it would begin with. The same calls give the same table, bit for bit, on any number of threads.
///
///     roost::embedding_table<roost::cuda> table(gpu, {.dim = 64, .capacity = 1'000'000});
///     table.look_up(gpu, {.ids = ids}, slots, rows);  // a training step
///     table.update(gpu, {.ids = ids}, slots, gradients);
///     table.find(gpu, {.ids = ids}, slots, rows);     // an evaluation
///
/// `Value`: float, bfloat16 or float16, the type of weights; the optimizer's state is floats. Calls are
/// asynchronous on cuda unless they say otherwise, and can be captured in graphs. A call that throws
/// invalid_argument or out_of_memory has changed nothing. Only const calls may overlap. A table allows up to
/// 2^32 - 1 steps. A slot is the number of a row; it belongs to its key until insert, assign, erase or
/// restore give it to another one.
///
/// With options.cached_rows, there may be more rows than fit in memory of the place.
///
/// Memory: for each row its weights and the optimizer's state (nothing, 4, 4 * dim or 8 * dim bytes), rounded
/// up to 16 bytes, and 13 to 23 bytes more. The ideas come from Stadium hashing (Khorasani et al. 2015),
/// small tickets beside large bodies, and from HierarchicalKV (arXiv 2603.17168), eviction inside a bucket
/// of 128.
template <class Place, class Value = float>
class embedding_table {
  static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, bfloat16> ||
                    std::is_same_v<Value, float16>,
                "rows are of float, roost::bfloat16 or roost::float16");

 public:
  using place_type = Place;
  using value_type = Value;

  /// Throws invalid_argument for options that are out of range, out_of_memory.
  embedding_table(const Place& place, const embedding_options& options)
      : memory_(place, detail::checked(options)) {}

  /// A training step: writes the slot of each id, ~0 for an id without a row; new keys get rows. `slots`: one
  /// for each id, in memory of the place. `running`: how many steps before this one still expect an update;
  /// their keys keep their rows, too. Throws invalid_argument for spans of wrong sizes, and out_of_memory.
  void insert(const Place& place, const embedding_batch& batch, std::span<std::uint32_t> slots,
              std::uint32_t running = 0) {
    step(place, batch, slots, {.running = running});
  }

  /// `insert` and `gather` at once, which takes less time.
  void look_up(const Place& place, const embedding_batch& batch, std::span<std::uint32_t> slots,
               std::span<Value> out, std::uint32_t running = 0);

  /// Writes the slot of each id, ~0 for ids without a row, and, if `out` is not empty, what `gather` writes.
  /// Changes nothing.
  void find(const Place& place, const embedding_batch& batch, std::span<std::uint32_t> slots,
            std::span<Value> out = {}) const;

  /// Writes the rows of ids, or of bags of ids, whose slots `insert` or `find` wrote. For an id without a
  /// row, it writes the row that the id would begin with. `out`: batch.rows() * dim numbers.
  void gather(const Place& place, const embedding_batch& batch, std::span<const std::uint32_t> slots,
              std::span<Value> out) const {
    const auto ids = detail::ids_of(options(), batch, slots.size(), "::gather");
    const auto bags = detail::bags_of(options(), batch, out.size(), "::gather");
    detail::run_gather(place, view(), ids, slots.data(), bags, out.data());
  }

  /// Brings the rows of the next step's ids to the cache (embedding_options::cached_rows). On another stream,
  /// this may overlap with `update`, but with no other call. `running`: how many steps before the last one
  /// still expect an update; the last step always counts.
  void prefetch(const Place& place, const embedding_batch& batch, std::uint32_t running = 0);

  /// A step of the optimizer. `gradients`: batch.rows() * dim numbers; those of ids without rows are dropped.
  void update(const Place& place, const embedding_batch& batch, std::span<const std::uint32_t> slots,
              std::span<const Value> gradients) {
    const auto ids = detail::ids_of(options(), batch, slots.size(), "::update");
    const auto bags = detail::bags_of(options(), batch, gradients.size(), "::update");
    detail::run_update(place, view(), slots.data(), ids.n, bags, gradients.data());
  }

  /// Keys that lost their rows, and their features.
  struct evicted_keys {
    array<std::int64_t, Place> ids;
    array<std::uint16_t, Place> features;
    explicit evicted_keys(const Place& place, std::size_t n) : ids(place, n), features(place, n) {}
  };
  /// Gives rows to keys and sets their weights: `rows`, dim numbers for each id. If a key has several rows,
  /// the last one counts. Only for new keys, the optimizer's state starts again. This is a step, like
  /// `insert`. `evicted`: empty, or room for dim numbers per id, for the weights of the keys that lost their
  /// rows. Returns these keys in the same order, which has no meaning. Synchronises if `evicted` is not
  /// empty.
  evicted_keys assign(const Place& place, const embedding_batch& batch, std::span<const Value> rows,
                      std::span<Value> evicted = {}, std::uint32_t running = 0);

  /// Removes the rows of keys. Ids without a row are ignored.
  void erase(const Place& place, const embedding_batch& batch) {
    array<std::uint32_t, Place> slots(place, batch.ids.size());
    find(place, batch, slots.span());
    place.for_each(slots.size(), detail::free_slot{view().slots, slots.data()});
  }

  /// The keys that lost their rows since the last such call, at most options().keep_evicted, in no defined
  /// order. Synchronises.
  evicted_keys take_evicted(const Place& place);

  /// Keys with rows that were looked up in step `since` or later; 0: all. Synchronises.
  embedding_entries<Place> entries(const Place& place, std::uint32_t since = 0) const;

  /// Copies all bytes of rows, row_bytes() each: weights, then the optimizer's state.
  void copy_rows(const Place& place, std::span<const std::uint32_t> slots, std::span<std::byte> out) const {
    const auto there = detail::rows_in(view().rows, out, slots.size(), "::copy_rows");
    place.for_each(out.size() / 4, detail::move_rows<Value>{view().rows, there, slots.data(), nullptr});
  }

  /// Restores the entries of a table with the same dim, Value, optimizer and seed; write_rows restores their
  /// rows. The table must be empty. If `same_slots` is true, which needs the same number of buckets, each key
  /// gets its former slot; otherwise keys get slots as in `insert`. `slots`: receives these, ~0 for a key
  /// that found none. Returns how many keys found none. Synchronises.
  std::size_t restore(const Place& place, const embedding_entries<Place>& entries, bool same_slots,
                      std::span<std::uint32_t> slots);

  /// Writes rows that copy_rows has copied, to distinct slots; rows with slot ~0 are left out.
  void write_rows(const Place& place, std::span<const std::uint32_t> slots, std::span<const std::byte> rows) {
    const auto there = detail::rows_in(view().rows, rows, slots.size(), "::write_rows");
    place.for_each(rows.size() / 4, detail::move_rows<Value>{there, view().rows, nullptr, slots.data()});
  }

  /// Makes room for `capacity` rows by moving all keys to a larger table, which needs memory for both tables.
  /// Slots change, and the counts for admission start again. Does nothing if there is room. Synchronises.
  void reserve(const Place& place, std::size_t capacity);

  /// Sets the rates of the next updates.
  void set_rates(const Place& place, const optimizer_rates& rates) {
    memory_.view.options.rates = rates;
    detail::write_one(place, &view().state->rates, rates);
  }

  /// What has been counted. Synchronises.
  embedding_counts counts(const Place& place) const;
  /// Sets the numbers of steps and updates, for a table that continues from a file.
  void set_steps(const Place& place, std::uint32_t steps, std::uint32_t updates) {
    detail::write_one(place, &view().state->step, steps);
    detail::write_one(place, &view().state->updates, updates);
  }
  /// The number of keys that have rows. Synchronises.
  std::size_t size(const Place& place) const { return place.sum(capacity(), detail::has_row{view().slots}); }

  /// The options that it was made with.
  const embedding_options& options() const { return view().options; }
  /// The number of rows.
  std::size_t capacity() const { return view().capacity(); }
  /// The bytes of a row: its weights and its optimizer's state.
  std::size_t row_bytes() const { return view().rows.stride; }
  /// Bytes of memory of the place.
  std::size_t bytes() const { return memory_.bytes(); }
  /// Bytes of rows in host memory.
  std::size_t host_bytes() const { return view().rows.far != nullptr ? capacity() * row_bytes() : 0; }

 private:
  const detail::embedding_view<Value>& view() const { return memory_.view; }
  detail::embedding_state state(const Place& place) const { return detail::read_one(place, view().state); }
  void step(const Place& place, const embedding_batch& batch, std::span<std::uint32_t> slots,
            detail::step_kind<Value> how);

  detail::embedding_memory<Place, Value> memory_;
};

}  // namespace roost

#include "roost/embedding/detail/table.hpp"
