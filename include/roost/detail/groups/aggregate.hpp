#pragma once

#include "roost/detail/groups/aggregate_tables.hpp"
#include "roost/detail/groups/index_keys.hpp"

// Aggregates without grouping: if the order of a key's values does not matter, a team adds up the values of a
// region in a table in scratch memory. Sums of frequent keys are absorbed by the first pass of the partition.
// Every path returns groups in ascending hash order (seed 0); Python's GroupBy relies on this.

namespace roost {
template <class Key, class Value, class Place, std::size_t N>
struct aggregated;
}

namespace roost::detail {

/// The results of function k.
template <class Key, class Value, class Place, std::size_t N>
array<Value, Place>& results_of(aggregated<Key, Value, Place, N>& all, [[maybe_unused]] std::size_t k) {
  if constexpr (N == 1) {
    return all.values;
  } else {
    return all.values[k];
  }
}

/// Aggregates a batch.
template <class Place, class Key, class Value, class... F>
class aggregator {
  using kernel = aggregate_regions<Place, Key, Value, F...>;
  using reduce = typename kernel::reduce;
  using word = typename reduce::word;
  using item = typename kernel::item;
  using tuning = group_tuning<Place>;
  using parts_type = partitioned<item, Place>;

 public:
  using result_type = aggregated<Key, Value, Place, sizeof...(F)>;

  aggregator(const Place& place, std::size_t n, bool counts)
      : place_(place), batch_(facts_of<Key>(place, n)), counts_(counts) {}

  /// Returns nothing if a table was too small, or a value depends on the order, or nearly all keys of a large
  /// batch are distinct: then grouping is faster.
  template <class Source>
  std::optional<result_type> run(const Source& source) {
    const table_room tables{keys_most(), keys_wanted()};
    for (;;) {
      const aggregate_choice next = choose_aggregation(batch_, tables);
      switch (next.step) {
        case aggregate_step::device_tables:
          if constexpr (!std::is_same_v<Place, host>) {
            if (run_in_tables(source)) return std::move(result_);
          }
          batch_.tried.tables = true;
          batch_.hopeless = outcome_.in_order != 0;
          break;
        case aggregate_step::look:
          look_for_frequent(source, absorbed_rows(batch_.rows));
          batch_.tried.look = true;
          break;
        case aggregate_step::sample:
          read_sample(source);
          batch_.tried.slack = false;  // frequent keys are absorbed now, and copies known
          break;
        case aggregate_step::compare:
          if (shows_distinct(count_copies(place_, source, compared_rows(batch_.rows)))) return {};
          batch_.tried.compare = true;
          break;
        case aggregate_step::slack:
          if (attempt(source, next, room::slack)) return std::move(result_);
          batch_.tried.slack = true;
          break;
        case aggregate_step::exact:
          if (attempt(source, next, room::exact)) return std::move(result_);
          batch_.tried.exact = true;
          break;
        case aggregate_step::give_up:
          return {};
      }
    }
  }

 private:
  /// The slots of a table that fits in this many bytes of scratch.
  static std::uint32_t slots_that_fit(std::size_t bytes) {
    const std::size_t slots = (bytes - 1024) / (32 * kernel::slot_bytes) * 32;
    return static_cast<std::uint32_t>(smaller<std::size_t>(slots, 1 << 16));  // 16 bits number them
  }
  std::size_t bytes_most() const { return smaller(place_.scratch_most(), tuning::aggregate_bytes); }
  double keys_most() const { return tuning::aggregate_load * slots_that_fit(bytes_most()); }
  /// The slots for this many keys: twice as many or, if these do not fit, all that two teams at once leave
  /// room for, or one team.
  std::uint32_t slots_for(double keys) const {
    const std::uint32_t half = slots_that_fit(bytes_most() / 2);
    if (2 * keys < half) return smaller(static_cast<std::uint32_t>(keys / 16) * 32 + 96, half);
    return keys <= 0.75 * half ? half : slots_that_fit(bytes_most());
  }
  /// The keys that a region should have: two teams at once are faster than one.
  std::size_t keys_wanted() const {
    return smaller<std::size_t>(tuning::aggregate_keys, slots_that_fit(bytes_most() / 2) * 5 / 9);
  }
  /// Looks for keys with more than `items` items, in memory of the place; the host does not know them yet.
  template <class Source>
  void look_for_frequent(const Source& source, double items) {
    frequent_ = frequent_keys<Key, Place>(leading_bits{0, one_pass_regions(batch_.on_host)});
    sample_ = array<sample_outcome, Place>(place_, 1);
    if (!frequent_->look(place_, source, items, sample_.data())) return frequent_.reset();
    std::uint32_t most = find_frequent_keys<Place, Key, Source>::most;
    while (hot_keys<Key, Value, F...>::bytes(most) > hot_bytes_most()) most /= 2;
    frequent_->take({most, 0, 0});
    take_hot(most);
  }
  template <class Source>
  void read_sample(const Source& source) {
    for (double items = absorbed_rows(batch_.rows); frequent_; look_for_frequent(source, items *= 2)) {
      seen_ = read_one(place_, sample_.data());
      if (hot_keys<Key, Value, F...>::bytes(seen_.frequent) <= hot_bytes_most()) break;
      seen_.frequent = 0;
    }
    sample_ = {};
    if (frequent_) frequent_->take(seen_);
    batch_.sample = frequent_ ? frequent_->seen : sample_facts{};
    take_hot(seen_.frequent);
  }
  std::size_t hot_bytes_most() const {
    const std::size_t most = place_.scratch_most();
    return smaller<std::size_t>(tuning::hot_bytes, most - smaller(most, tuning::scatter_bytes));
  }
  void take_hot(std::uint32_t keys) {
    hot_counts_ = array<std::uint32_t, Place>(place_, keys);
    hot_values_ = array<word, Place>(place_, std::size_t{keys} * reduce::count);
  }
  typename reduce::words hot_words() {
    typename reduce::words result{};
    for (int k = 0; k < reduce::count; ++k)
      result.of[k] = hot_values_.data() + static_cast<std::size_t>(k) * hot_counts_.size();
    return result;
  }

  /// In one launch, for small batches. False if it did not succeed, or is not possible.
  template <class Source>
  bool run_in_tables(const Source& source) {
    const std::size_t n = batch_.rows;
    const auto regions = static_cast<std::uint32_t>(ceil_div(n, 2 * tuning::table_keys) * 2);
    const leading_bits spread{0, regions};
    const hot_keys<Key, Value, F...> none{spread, regions_and_frequent_keys<Key>(spread), nullptr, 0, {},
                                          nullptr};
    const std::uint32_t slots =
        slots_for(2 * keys_of_region(static_cast<double>(n) / regions));  // short probes
    take_room(n);
    kernel run = kernel_of(none, regions, slots);
    using add = add_to_tables<kernel, Source>;
    if (!place_.can_run_in_turn(add{run, source, n})) return false;
    const std::size_t turns = (earlier_teams::words(std::size_t{regions}) * 8 + 15) / 16 * 16;
    array<std::byte, Place> memory(place_, turns + regions * run.table_bytes());
    auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
    run.tables = memory.data() + turns;
    run.turns = earlier_teams(words);
    outcome_ = place_.template count<outcome_of_tables>([&](outcome_of_tables* outcome, const auto& to) {
      run.outcome = outcome;
      place_.launch_in_turn(&outcome->barrier, to, stage<clear_tables<kernel>>{regions, {run, words}},
                            stage<add>{ceil_div<std::size_t>(n, add::tile), {run, source, n}},
                            stage<write_tables<kernel>>{regions, {run}});
    });
    if (outcome_.failed + outcome_.in_order != 0) return false;
    truncate_results();
    return true;
  }

  /// The frequent keys of an attempt, without values.
  hot_keys<Key, Value, F...> hot_for(const leading_bits& spread) {
    regions_and_frequent_keys<Key> found(spread);
    if (frequent_) found = frequent_->region_of;
    const hot_keys<Key, Value, F...> hot{spread,         found,
                                         sample_.data(), hot_keys<Key, Value, F...>::slots_for(found.count),
                                         hot_words(),    hot_counts_.data()};
    place_.for_each(found.count, clear_hot<reduce>{hot.values, hot.counts});
    return hot;
  }

  /// False if it did not succeed: outcome_ says why.
  template <class Source>
  bool attempt(const Source& source, const aggregate_choice& wanted, room room) {
    leading_bits spread{0, wanted.coarse << wanted.fine_bits};
    const auto hot = hot_for(spread);
    constexpr std::size_t head = ceil_div(sizeof(aggregation_outcome), sizeof(std::uint64_t));
    auto state = zeros(place_, head + earlier_teams::words(std::size_t{spread.regions}));
    auto* const outcome = reinterpret_cast<aggregation_outcome*>(state.data());
    const auto give = [&](kernel& run, const parts_type& parts) {
      run.items = parts.items();
      run.begins = parts.begins();
      run.ends = parts.ends();
      run.outcome = outcome;
      run.turns = earlier_teams(state.data() + head);
    };
    const auto launch = [&](const kernel& run, std::uint32_t teams) {
      place_.launch(teams, scratch_bytes_of(run), run);
      outcome_ = read_one(place_, outcome);
    };
    std::uint32_t regions = spread.regions;
    double keys = keys_of_region(static_cast<double>(batch_.rows) / regions);
    partitioner<Place, item, partition_kind{}> partitioner(place_, spread.regions,
                                                           {.room = room,
                                                            .overflowed = &outcome->overflowed,
                                                            .copies = wanted.copies,
                                                            .times_most = wanted.times_most});
    // Whether tables for the keys of the first pass's regions are enough.
    const auto stop = [&](const parts_type& parts) {
      if (!wanted.counts_first || parts.regions() != wanted.coarse) return false;
      constexpr std::uint32_t counted = 8;
      kernel count = kernel_of(hot, wanted.coarse * kernel::part, slots_that_fit(bytes_most()));
      count.count_each = count.regions / counted;
      count.steps_most = 256;  // a table is as good as full then
      give(count, parts);
      launch(count, counted);
      if (outcome_.overflowed != 0) return true;
      if (outcome_.most >= count.slots) return false;  // a full table has not counted all of its keys
      const double seen = double{kernel::part} * outcome_.most, most = seen + 6 * std::sqrt(seen) + 64;
      if (seen > keys_most() || most > 0.85 * count.slots) {
        keys = smaller(keys, keys_of_region(most / (1 << wanted.fine_bits)));
        return false;
      }
      regions = wanted.coarse;
      keys = most;
      return true;
    };
    const auto parts = partitioner.run(
        source, hot, wanted.counts_first ? static_cast<std::uint32_t>(std::countr_zero(wanted.coarse)) : 0,
        stop);
    if (wanted.counts_first && outcome_.overflowed != 0) return false;
    const std::uint32_t slots = slots_for(keys);
    take_room(smaller<std::size_t>(batch_.rows, std::size_t{regions} * slots));
    kernel run = kernel_of(hot, regions, slots);
    give(run, parts);
    crowded_tables kept;
    if (wanted.skewed) fill_crowded_tables(run, kept);
    launch(run, regions);
    batch_.hopeless = outcome_.failed + outcome_.in_order != 0;
    if (batch_.hopeless || outcome_.overflowed != 0) return false;
    truncate_results();  // before the partition is freed: the next chunk of rows finds its memory whole
    return true;
  }

  struct crowded_tables {
    array<std::uint32_t, Place> table_of;  // of each region
    array<std::byte, Place> memory;
  };
  /// Fills the tables of regions with more than twice the usual items, and gives them to `run`, if teams run
  /// at the same time.
  void fill_crowded_tables(kernel& run, crowded_tables& all) const {
    if constexpr (!std::is_same_v<Place, host>) {
      all.table_of = filled<std::uint32_t>(place_, run.regions, 0xff);
      array<std::uint32_t, Place> crowded(place_, run.regions);
      auto count = zeros<std::uint32_t>(place_, 1);
      const std::size_t most = 2 * ceil_div<std::size_t>(batch_.rows, run.regions);
      place_.for_each(run.regions, number_crowded{run.begins, run.ends, most, all.table_of.data(),
                                                  crowded.data(), count.data()});
      const std::uint32_t n = read_one(place_, count.data());
      const std::size_t bytes = n * run.table_bytes();
      if (bytes > batch_.rows * sizeof(item)) return;  // then too many are crowded for others to wait
      all.memory = array<std::byte, Place>(place_, bytes);
      run.tables = all.memory.data();
      kernel fill = run;
      fill.crowded = crowded.data();
      place_.launch(n, scratch_bytes_of(fill), fill);
      run.table_of = all.table_of.data();
    }
  }

  /// f(the results of function k, k) for each.
  template <class Body>
  void each_result(const Body& body) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (body(results_of(result_, K), K), ...);
    }(std::index_sequence_for<F...>());
  }

  void take_room(std::size_t keys) {
    result_.keys = array<Key, Place>(place_, keys);
    each_result([&](auto& results, std::size_t) { results = array<Value, Place>(place_, keys); });
    result_.counts = array<std::uint64_t, Place>(place_, counts_ ? keys : 0);
  }

  /// A kernel for so many regions, without its items and its outcome.
  kernel kernel_of(hot_keys<Key, Value, F...> hot, std::uint32_t regions, std::uint32_t slots) {
    hot.spread.regions = regions;
    kernel run{.regions = regions,
               .words_of = typename kernel::words(hot.spread),
               .hot = hot,
               .slots = slots,
               .keys = result_.keys.data(),
               .counts = result_.counts.data()};
    each_result([&](auto& results, std::size_t k) { run.values[k] = results.data(); });
    return run;
  }

  void truncate_results() {
    truncate(place_, result_.keys, outcome_.size);
    each_result([&](auto& results, std::size_t) { truncate(place_, results, outcome_.size); });
    truncate(place_, result_.counts, outcome_.size);
  }

  const Place& place_;
  batch_facts batch_;
  bool counts_;
  std::optional<frequent_keys<Key, Place>> frequent_;
  array<sample_outcome, Place> sample_;  // until the host has read it
  sample_outcome seen_{};
  array<std::uint32_t, Place> hot_counts_;
  array<word, Place> hot_values_;
  aggregation_outcome outcome_{};
  result_type result_;
};

/// Whether the values of these keys are aggregated without grouping.
template <class Key, class Value, class... F>
constexpr bool has_words = sizeof(Key) <= 8 && ((word_operation_of<F, Value> != word_operation::none) && ...);
template <class Value, class... F>
constexpr bool sums_floats = ((word_operation_of<F, Value> == word_operation::add_floats) || ...);

}  // namespace roost::detail
