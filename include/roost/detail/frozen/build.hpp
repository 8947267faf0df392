#pragma once

#include <memory>
#include <optional>

#include "roost/detail/frozen/bucketed.hpp"
#include "roost/detail/frozen/compact.hpp"
#include "roost/detail/frozen/host_build.hpp"
#include "roost/detail/partition/sample.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/frozen_options.hpp"

// Builds the table of a frozen_map: partitions the pairs, builds the regions, handles copies of keys,
// retries.

namespace roost::detail {

enum class outcome { copies, failed };  // of a build: it has duplicates; it did not fit

/// Pairs that may need no partition.
template <class Source>
concept lies_in_order = requires(const Source& source) { source.region_of; };

/// Pairs that arrive at this place while the table is built, one range of regions at a time. Their keys must
/// be distinct, or the build fails.
template <class Source>
concept comes_in_ranges = requires { Source::comes_in_ranges; };

/// Calls f(i) for i in [0, n), if the build of `given` pairs ended with `when`.
template <class F>
struct for_each_after {
  static constexpr int threads = 512;
  static constexpr std::uint32_t tile = 1 << 14;

  outcome when;
  const build_counts* counts;
  std::uint64_t given;
  std::uint64_t n;
  F f;

  ROOST_FN bool needed() const {
    return when == outcome::failed ? counts->failed() : !counts->failed() && counts->placed != given;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, n - first)),
                [&](std::uint32_t i) { f(first + i); });
  }
};

/// Sets where regions with slack begin, and clears the counts of an earlier build.
struct begin_build {
  static constexpr int threads = 512;

  build_counts* counts;
  std::uint32_t regions;
  begin_with_slack begin;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte*) const {
    if (team.rank() == 0) *counts = {};
    for_each_of(team, regions, begin);
  }
};

/// Stops a build if an item of a sample has the key of another.
template <class Source>
struct stop_if_repeated {
  is_repeated<Source> repeated;
  build_counts* counts;
  ROOST_FN void operator()(std::size_t i) const {
    if (repeated(i) != 0) fetch_add(counts->copies, 1u);
  }
};

template <class Ref>
struct clear_slot {
  Ref ref;
  ROOST_FN void operator()(std::size_t slot) const { ref.clear(slot); }
};

struct forget_first {
  std::uint64_t* first;
  ROOST_FN void operator()(std::size_t slot) const { first[slot] = ~std::uint64_t{0}; }
};

/// first[slot] = the lowest i whose key is in the slot.
template <class Ref, class Source>
struct find_first {
  Ref ref;
  Source source;
  std::uint64_t* first;
  ROOST_FN void operator()(std::size_t i) const { fetch_min(first[ref.slot_of(source[i].key)], i); }
};

/// Pairs whose values are replaced by their positions.
template <class Source>
struct pairs_by_position {
  Source source;
  std::size_t size() const { return source.size(); }
  ROOST_FN auto operator[](std::size_t i) const {
    return pair<std::remove_cvref_t<decltype(source[0].key)>, std::uint64_t>{source.keys[i], i};
  }
};

/// Copies keys and values to the slots of a table that has their positions; each call copies one piece of a
/// value.
template <class Positions, class Ref, class Source>
struct place_values {
  using value = typename Ref::value_type;
  static constexpr bool stored = requires(const Source& source) {
    { source.values.first } -> std::convertible_to<const value*>;
  };
  using pieces = value_pieces<value>;
  static constexpr std::size_t workers = stored ? pieces::count : 1;  // per slot

  Positions positions;
  Ref target;
  Source source;

  ROOST_FN void operator()(std::size_t number) const {
    const std::size_t slot = number / workers, piece = number % workers;
    if (piece == 0) target.set_key(slot, positions.key_at(slot));
    if (!positions.occupied(slot)) return;
    const std::uint64_t position = positions.value_at(slot);
    if constexpr (stored) {
      pieces::copy(source.values.first + position, target.value_address(slot), piece);
    } else {
      *target.value_address(slot) = source.values[position];
    }
  }
};

template <class Ref, class Source>
struct write_first {
  Ref ref;
  Source source;
  const std::uint64_t* first;
  ROOST_FN void operator()(std::size_t slot) const {
    if (first[slot] != ~std::uint64_t{0}) ref.set(slot, source[first[slot]]);
  }
};

/// A table that is built at once, and the facts about its last build.
template <class Key, class Value, class Place, class Layout>
class frozen_table {
  static_assert(frozen_layout<Layout, Place, Key, Value>, "how to write a layout: detail/frozen/layout.hpp");
  using counts = build_counts;

 public:
  using options = typename Layout::options;
  using ref_type = typename Layout::template table<Place, Key, Value>;

  /// The geometry of a table of n pairs.
  static auto plan_of(std::size_t n, const options& options) {
    return Layout::template make_plan<Place, Key, placed>(n, options, 0, 0);
  }

  /// Builds with the first seed that succeeds. Synchronises. Throws build_error.
  template <class Source>
  static std::unique_ptr<frozen_table> build(const Place& place, const Source& source,
                                             const options& options) {
    const std::size_t n = source.size();
    for (int attempt = 0; attempt <= options.max_restarts; ++attempt) {
      std::uint32_t parts = 0;
      if constexpr (lies_in_order<Source>) parts = attempt == 0 ? source.region_of.regions : 0;
      const auto plan = Layout::template make_plan<Place, Key, placed>(n, options, attempt, parts);
      std::unique_ptr<frozen_table> result(new frozen_table(place, plan, n));
      result->facts_.restarts = attempt;
      if (result->is_built(place, source)) return result;
    }
    raise<build_error>({"roost::frozen_map: ", n, " pairs found no place in ", options.max_restarts + 1,
                        " attempts; give a lower load factor or more max_restarts"});
  }

  /// For a rebuild_async of n pairs in a map that was built for `most`.
  [[noreturn]] static void refuse(std::size_t n, std::size_t most) {
    raise<invalid_argument>({"roost::frozen_map::rebuild_async: ", n, " pairs, but the map was built for ",
                             most, "; call rebuild"});
  }

  /// frozen_map::rebuild_async.
  template <class Source>
  void rebuild_async(const Place& place, const Source& source) {
    if (source.size() > most_) refuse(source.size(), most_);
    array<std::uint64_t, Place> first(place, has_values ? facts_.capacity : 0);
    const auto fill_table = [&](const placed_table& table, const auto& pairs) {
      const room room = plan_.tries_slack ? room::slack : room::exact;
      facts_.scratch_bytes =
          fill(place, pairs, table, {room, on_copies::keep_one}, memory_.state(), {}) + first.bytes();
      settle(place, pairs, table, first);
    };
    given_ = source.size();
    try {
      if constexpr (by_position) {
        const placed_storage positions(place, plan_);
        fill_table(positions.ref(), pairs_by_position<Source>{source});
        copy_values(place, source, positions.ref());
        facts_.scratch_bytes += positions.bytes();
      } else {
        fill_table(ref(), source);
      }
    } catch (...) {
      given_ = 0;
      place.fill(memory_.state(), 0, sizeof(build_state));
      place.for_each(ref().capacity(), clear_slot<ref_type>{ref()});
      take_over({});
      throw;
    }
  }

  /// frozen_map::finish.
  void finish(const Place& place) {
    counts sum;
    place.copy_to_host(&sum, &memory_.state()->counts, sizeof(sum));
    take_over(sum);
    if (!sum.failed()) return;
    raise<build_error>({"roost::frozen_map::finish: the ", given_,
                        " pairs of the last rebuild_async did not fit the regions that the map has, and it "
                        "is empty; call rebuild"});
  }

  const ref_type& ref() const { return memory_.ref(); }
  const frozen_statistics& facts() const { return facts_; }

 private:
  static constexpr bool has_values = !std::is_same_v<Value, none>;
  // Large values are represented by their positions in the input: a table of positions is built, and then the
  // values are copied to its slots.
  static constexpr bool by_position = has_large_values<ref_type>;
  using placed = std::conditional_t<by_position, std::uint64_t, Value>;  // what is built in place of a value
  using placed_table = typename Layout::template table<Place, Key, placed>;
  using placed_storage = frozen_storage<Place, placed_table>;
  using placed_item = pair<Key, placed>;
  template <class Source>
  static constexpr bool runs_in_turn =  // a small table is built in one launch
      Layout::can.builds_in_turn && !lies_in_order<Source> && !comes_in_ranges<Source> &&
      requires { build_tuning<Place>::in_turn_tile; };
  static constexpr bool inserts = Layout::can.inserts_on_host && std::is_same_v<Place, host>;

  frozen_table(const Place& place, const typename Layout::plan& plan, std::size_t n)
      : memory_(place, plan), plan_(plan), most_(n), given_(n) {}

  template <class Source>
  bool is_built(const Place& place, const Source& source) {
    if constexpr (by_position) {
      const placed_storage positions(place, plan_);
      if (!is_filled(place, positions.ref(), pairs_by_position<Source>{source})) return false;
      copy_values(place, source, positions.ref());
      facts_.scratch_bytes += positions.bytes();
      place.synchronize();
      return true;
    } else {
      return is_filled(place, ref(), source);
    }
  }

  /// How the pairs are partitioned and placed. With room::exact they keep their order if they have values.
  struct way {
    roost::room room;
    on_copies copies;
  };

  /// Fills a table; false if the pairs do not fit. Slack first, since it saves a pass over the keys. Pairs
  /// that overflow it (many copies of few keys), and copies with values, are counted and kept in order.
  template <class Source>
  bool is_filled(const Place& place, const placed_table& table, const Source& pairs) {
    const auto filled = [&](const way& how) {
      const auto launch = [&](build_state* state, const auto& to) {
        facts_.scratch_bytes = fill(place, pairs, table, how, state, to);
      };
      return place.template count<build_state>(launch, memory_.state()).counts;
    };
    counts sum{};
    if constexpr (comes_in_ranges<Source>) {  // which have their own room, and no copies
      sum = filled({room::slack, on_copies::keep_one});
      if (!sum.failed()) most_ = given_ = sum.placed;
    } else {
      const bool in_any_order = !has_values || unparted(place, table);
      if (plan_.tries_slack)
        sum = filled({room::slack, in_any_order ? on_copies::keep_one : on_copies::stop});
      if (!plan_.tries_slack || (sum.copies != 0 && sum.overfull == 0) ||
          (sum.overflowed != 0 && plan_.tries_exact))
        sum = filled({room::exact, on_copies::keep_first});
    }
    if (sum.failed()) return false;
    take_over(sum);
    return true;
  }

  /// Whether one thread builds a table directly from the input.
  static bool unparted([[maybe_unused]] const Place& place, [[maybe_unused]] const placed_table& table) {
    if constexpr (inserts) {
      return table.capacity() * sizeof(placed_item) <= build_tuning<Place>::unparted_bytes(place.threads());
    } else {
      return false;
    }
  }

  /// Builds every region; returns the bytes of scratch. Does not wait, unless the pairs arrive in ranges.
  template <class Source>
  std::size_t fill(const Place& place, const Source& source, const placed_table& table, const way& how,
                   build_state* const state, const typename Place::report& to) {
    if constexpr (runs_in_turn<Source>) {
      if (const auto scratch_bytes = fill_in_turn(place, source, table, how, state, to))
        return *scratch_bytes;
    }
    if (state == memory_.state()) place.fill(&state->counts, 0, sizeof(counts));  // those of an earlier build
    const std::size_t scratch_bytes = fill_in_passes(place, source, table, how, &state->counts);
    place.tell(to);
    return scratch_bytes;
  }

  /// The items of n that show nearly always if each key has two.
  static std::uint32_t sample_for_copies(std::size_t n) {
    return std::bit_ceil(static_cast<std::uint32_t>(4 * std::sqrt(static_cast<double>(n))));
  }

  template <class Items>
  using builder_for = std::conditional_t<inserts, fill_units<placed_table, placed_item, Items>,
                                         typename Layout::template builder<Place, Key, placed, false, Items>>;

  /// Partitions the pairs, unless they are already in regions of the plan or arrive in ranges of them, and
  /// builds the regions.
  template <class Source>
  std::size_t fill_in_passes(const Place& place, const Source& source, const placed_table& table,
                             const way& how, counts* const sum) {
    constexpr bool comes = comes_in_ranges<Source>;
    if constexpr (inserts && !comes) {
      if (unparted(place, table)) {
        const build_unparted<placed_table, Source> kernel{table, source, sum};
        const std::size_t scratch_bytes = scratch_bytes_of(kernel);
        place.launch(1, scratch_bytes, kernel);
        return scratch_bytes;
      }
    }
    const auto build_regions = [&]<class Items>(const Items& items, const std::uint64_t* begins,
                                                const std::uint64_t* ends, std::uint32_t first,
                                                std::uint32_t count) {
      const builder_for<Items> kernel{table, {items, begins, ends, sum, first, how.copies}};
      place.launch(count, scratch_bytes_of(kernel), kernel);
    };
    if constexpr (comes) return source.into_regions(plan_, &sum->overflowed, build_regions);
    if constexpr (lies_in_order<Source>) {
      const leading_bits& lies = source.region_of;
      if (lies.seed == plan_.region_of.seed && lies.regions % plan_.regions == 0) {
        array<std::uint64_t, Place> begins(place, std::size_t{plan_.regions} + 1);
        write_numbers(place, begins.size(), begin_of_several{source.begins, lies.regions / plan_.regions},
                      begins.data());
        build_regions(source.items, begins.data(), begins.data() + 1, 0, plan_.regions);
        return begins.bytes();
      }
    }
    if constexpr (!comes) {
      array<std::uint64_t, Place> hashes;
      if (how.copies == on_copies::stop && source.size() >= build_tuning<Place>::sampled_least) {
        constexpr std::uint32_t log2_run = 6, run = 1 << log2_run;  // runs cost less than single reads
        const std::uint32_t sample = sample_for_copies(source.size());
        hashes = zeros(place, std::size_t{2} * sample);
        place.for_each(
            sample, stop_if_repeated<Source>{
                        {{source, source.size() / sample * run, log2_run}, hashes.data(), 2 * sample}, sum});
      }
      const auto split_and_build = [&]<partition_kind Kind>() {
        partitioner<Place, placed_item, Kind> partitioner(
            place, plan_.regions,
            {.room = how.room, .overflowed = &sum->overflowed, .capacity = plan_.room_for_region},
            &sum->copies);
        const auto regions = partitioner.run(source, plan_.region_of);
        build_regions(regions.items(), regions.begins(), regions.ends(), 0, plan_.regions);
        return hashes.bytes() + regions.scratch_bytes();
      };
      constexpr partition_kind slack{.may_count = false}, exact{.stable = has_values};
      return how.room == room::slack ? split_and_build.template operator()<slack>()
                                     : split_and_build.template operator()<exact>();
    }
  }

  /// The same in one launch, for small tables; returns nothing if that is not possible.
  template <class Source>
  std::optional<std::size_t> fill_in_turn(const Place& place, const Source& source, const placed_table& table,
                                          const way& how, build_state* const state,
                                          const typename Place::report& to) {
    using tuned = build_tuning<Place>;
    using builder = typename Layout::template small_builder<Place, Key, placed>;
    using scatter = scatter_tiles<Place, placed_item, Source, leading_bits, shared_cursors, no_way_back,
                                  tuned::in_turn_tile>;
    const std::uint32_t regions = plan_.regions;
    if (how.room != room::slack || !plan_.small() || memory_.bytes() > tuned::in_turn_bytes ||
        regions > partition_tuning<Place>::digits_most)
      return {};
    const std::size_t n = source.size();
    const std::uint64_t room_for_region =
        plan_.room_for_region != 0 ? plan_.room_for_region : with_slack(static_cast<double>(n) / regions, n);
    std::uint64_t *begins, *ends;
    placed_item* items;
    const auto take = [&](scratch_memory memory) {
      begins = memory.take<std::uint64_t>(regions);
      ends = memory.take<std::uint64_t>(regions);
      items = memory.take<placed_item>(regions * room_for_region);
      return memory.used();
    };
    array<std::byte, Place> memory(place, take(scratch_memory(nullptr)));
    take(scratch_memory(memory.data()));
    counts* const sum = &state->counts;
    const scatter split{.source = source,
                        .region_of = plan_.region_of,
                        .tiles = {n},
                        .pass = {0, static_cast<std::uint32_t>(std::bit_width(regions)), regions, regions},
                        .cursors = {ends},
                        .capacity = room_for_region,
                        .out = items,
                        .overflowed = &sum->overflowed,
                        .back = {}};
    const builder build(table, {items, begins, ends, sum, 0, how.copies});
    if (!place.can_run_in_turn(split) || !place.can_run_in_turn(build)) return {};
    place.launch_in_turn(
        &state->barrier, to, stage<begin_build>{1, {sum, regions, {room_for_region, begins, ends}}},
        stage<scatter>{ceil_div<std::size_t>(n, tuned::in_turn_tile), split}, stage<builder>{regions, build});
    return memory.bytes();
  }

  /// Finishes an asynchronous build: empties a table whose build failed, and makes the first copy of each key
  /// win, since its items are in no fixed order. `first`: a word for each slot.
  template <class Source>
  void settle(const Place& place, const Source& source, const placed_table& table,
              array<std::uint64_t, Place>& first) {
    const auto after = [&](outcome when, std::size_t n, const auto& f) {
      using kernel = for_each_after<std::remove_cvref_t<decltype(f)>>;
      return stage<kernel>{ceil_div<std::size_t>(n, kernel::tile),
                           {when, &memory_.state()->counts, given_, n, f}};
    };
    const std::size_t slots = table.capacity();
    const auto empty = after(outcome::failed, slots, clear_slot<placed_table>{table});
    if constexpr (!has_values) {
      place.launch_in_turn(&memory_.state()->barrier, {}, empty);
    } else {
      place.launch_in_turn(
          &memory_.state()->barrier, {}, empty, after(outcome::copies, slots, forget_first{first.data()}),
          after(outcome::copies, source.size(),
                find_first<placed_table, Source>{table, source, first.data()}),
          after(outcome::copies, slots, write_first<placed_table, Source>{table, source, first.data()}));
    }
  }

  /// Copies large values to their slots from the positions in the source that a table holds.
  template <class Source>
  void copy_values(const Place& place, const Source& source, const placed_table& positions) {
    using copy = place_values<placed_table, ref_type, Source>;
    place.for_each(ref().capacity() * copy::workers, copy{positions, ref(), source});
  }

  void take_over(const counts& sum) {
    facts_.size = sum.failed() ? 0 : sum.placed;
    facts_.capacity = ref().capacity();
    facts_.load_factor = ref().load_factor(facts_.size);
    facts_.bytes = memory_.bytes();
    facts_.regions = plan_.regions;
    facts_.duplicates = sum.failed() ? 0 : given_ - sum.placed;
    facts_.region_restarts = sum.region_restarts;
    facts_.mean_rounds = static_cast<double>(sum.rounds) / plan_.regions;
  }

  frozen_storage<Place, ref_type> memory_;
  typename Layout::plan plan_;
  std::size_t most_;   // pairs that it has room for
  std::size_t given_;  // pairs that the last build was given
  frozen_statistics facts_{};
};

}  // namespace roost::detail
