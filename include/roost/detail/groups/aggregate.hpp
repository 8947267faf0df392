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

/// Whether an earlier item of a sample has the key of item i.
template <class Source>
struct is_repeated {
  static constexpr std::uint32_t sample = 1 << 16, slots = 2 * sample;
  item_of_sample<Source> items;
  std::uint64_t* hashes;  // a table of the hashes seen; 0: an empty slot

  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t mine = std::uint64_t{hash_of(items[i].key)} << 1 | 1;
    for (auto s = static_cast<std::uint32_t>(mine >> 1) % slots;; s = (s + 1) % slots) {
      const std::uint64_t seen = shared_access::compare_exchange(hashes + s, std::uint64_t{0}, mine);
      if (seen == 0 || seen == mine) return seen == 0 ? 0 : 1;
    }
  }
};

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
            if (run_in_tables(source)) return finish();
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
          if (are_distinct(source)) return {};
          batch_.tried.compare = true;
          break;
        case aggregate_step::slack:
          if (attempt(source, next, room::slack)) return finish();
          batch_.tried.slack = true;
          break;
        case aggregate_step::exact:
          if (attempt(source, next, room::exact)) return finish();
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
  double keys_most() const { return 0.8 * slots_that_fit(bytes_most()); }
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
  template <class Source>
  bool are_distinct(const Source& source) const {
    using repeated = is_repeated<Source>;
    auto hashes = zeros(place_, repeated::slots);
    return shows_distinct(
        place_.sum(repeated::sample, repeated{{source, batch_.rows / repeated::sample}, hashes.data()}));
  }
  typename reduce::words hot_words() {
    typename reduce::words result;
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
    const hot_keys<Key, Value, F...> none{spread, regions_and_frequent_keys<Key>(spread)};
    const std::uint32_t slots =
        slots_for(2 * keys_of_region(static_cast<double>(n) / regions));  // short probes
    take_room(n);
    const kernel run = kernel_of(none, regions, slots);
    tables_of_all<kernel> tables{run, nullptr, tables_of_all<kernel>::bytes_of(run)};
    using add = add_to_tables<kernel, Source>;
    if (!place_.can_run_in_turn(add{tables, source, n})) return false;
    const std::size_t turns = (earlier_teams::words(std::size_t{regions}) * 8 + 15) / 16 * 16;
    array<std::byte, Place> memory(place_, turns + regions * tables.bytes);
    auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
    tables.memory = memory.data() + turns;
    tables.run.turns = earlier_teams(words);
    outcome_ = place_.template count<outcome_of_tables>([&](outcome_of_tables* outcome, const auto& to) {
      tables.run.outcome = outcome;
      place_.launch_in_turn(&outcome->barrier, to, stage<clear_tables<kernel>>{regions, {tables, words}},
                            stage<add>{ceil_div<std::size_t>(n, add::tile), {tables, source, n}},
                            stage<write_tables<kernel>>{regions, {tables}});
    });
    return outcome_.failed + outcome_.in_order == 0;
  }

  /// False if it did not succeed: outcome_ says why.
  template <class Source>
  bool attempt(const Source& source, const aggregate_choice& wanted, room room) {
    leading_bits spread{0, wanted.coarse << wanted.fine_bits};
    regions_and_frequent_keys<Key> found(spread);
    if (frequent_) found = frequent_->region_of;
    const hot_keys<Key, Value, F...> hot{spread,         found,
                                         sample_.data(), hot_keys<Key, Value, F...>::slots_for(found.count),
                                         hot_words(),    hot_counts_.data()};
    place_.for_each(found.count, clear_hot<reduce>{hot.values, hot.counts});
    constexpr std::size_t head = ceil_div(sizeof(aggregation_outcome), sizeof(std::uint64_t));
    auto state = zeros(place_, head + earlier_teams::words(std::size_t{spread.regions}));
    auto* const outcome = reinterpret_cast<aggregation_outcome*>(state.data());
    const auto launch = [&](kernel run, const parts_type& parts, std::uint32_t teams) {
      run.items = parts.items();
      run.begins = parts.begins();
      run.ends = parts.ends();
      run.outcome = outcome;
      run.turns = earlier_teams(state.data() + head);
      place_.launch(teams, scratch_bytes_of(run), run);
      outcome_ = read_one(place_, outcome);
    };
    std::uint32_t shared_by = 1, regions = spread.regions;
    double keys = keys_of_region(static_cast<double>(batch_.rows) / regions);
    partitioner<Place, item, partition_kind{}> partitioner(
        place_, spread.regions, {.room = room, .overflowed = &outcome->overflowed, .copies = wanted.copies});
    const auto stop = [&](const parts_type& parts) {
      if (!wanted.counts_first || parts.regions() != wanted.coarse) return false;
      constexpr std::uint32_t counted = 8, part = 8;
      kernel count = kernel_of(hot, wanted.coarse * part, slots_that_fit(bytes_most()));
      count.shared_by = part;
      count.count_each = count.regions / counted;
      launch(count, parts, counted);
      const double most = double{part} * outcome_.most + 6 * std::sqrt(double{part} * outcome_.most) + 64;
      while (shared_by <= wanted.shared_most && most / shared_by > keys_most()) shared_by *= 2;
      if (outcome_.overflowed == 0 && shared_by > wanted.shared_most) {
        shared_by = 1;
        keys = smaller(keys, keys_of_region(most / (1 << wanted.fine_bits)));
        return false;
      }
      regions = wanted.coarse * shared_by;
      keys = most / shared_by;
      return true;
    };
    const auto parts = partitioner.run(
        source, hot, wanted.counts_first ? static_cast<std::uint32_t>(std::countr_zero(wanted.coarse)) : 0,
        stop);
    if (wanted.counts_first && outcome_.overflowed != 0) return false;
    const std::uint32_t slots = slots_for(keys);
    const std::size_t room_for = smaller<std::size_t>(batch_.rows, std::size_t{regions} * slots);
    take_room(room_for);
    kernel run = kernel_of(hot, regions, slots);
    run.shared_by = shared_by;
    launch(run, parts, regions);
    batch_.hopeless = outcome_.failed + outcome_.in_order != 0;
    return !batch_.hopeless && outcome_.overflowed == 0;
  }

  void take_room(std::size_t keys) {
    result_.keys = array<Key, Place>(place_, keys);
    for (std::size_t k = 0; k < sizeof...(F); ++k) results_of(result_, k) = array<Value, Place>(place_, keys);
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
    for (std::size_t k = 0; k < sizeof...(F); ++k) run.values[k] = results_of(result_, k).data();
    return run;
  }

  result_type finish() {
    truncate(place_, result_.keys, outcome_.size);
    for (std::size_t k = 0; k < sizeof...(F); ++k) truncate(place_, results_of(result_, k), outcome_.size);
    truncate(place_, result_.counts, outcome_.size);
    return std::move(result_);
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
