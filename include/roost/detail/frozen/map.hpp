#pragma once

// Bodies of roost/frozen_map.hpp.

#include <array>
#include <iterator>
#include <span>

#include "roost/detail/frozen/host_build.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/detail/table/bulk_lookup.hpp"
#include "roost/detail/table/slots.hpp"
#include "roost/frozen_map.hpp"

namespace roost {
namespace detail {

/// The room policies to try, in order. Slack first, since it saves a pass over the keys; data that overflows
/// it (many copies of few keys) is counted. A plan may choose a policy itself.
template <class Plan>
std::span<const room> rooms_of([[maybe_unused]] const Plan& plan) {
  static constexpr std::array<room, 2> both{room::slack, room::exact};
  if constexpr (requires { plan.counted; }) {
    return std::span<const room>(both).subspan(plan.counted ? 1 : 0, 1);
  } else {
    return both;
  }
}

/// Calls f(i) for i in [0, n), if the build of `asked` pairs ended with `when`.
template <class F>
struct for_each_after {
  static constexpr int threads = 512;
  static constexpr std::uint32_t tile = 1 << 14;

  outcome when;
  const build_counts* counts;
  std::uint64_t asked;
  std::uint64_t n;
  F f;

  ROOST_FN bool needed() const {
    return when == outcome::failed ? counts->failed() : !counts->failed() && counts->placed != asked;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    const std::uint64_t first = index * tile;
    for_each_of(team, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, n - first)),
                [&](std::uint32_t i) { f(first + i); });
  }
};

/// Sets the begins of regions with slack, and clears the counts.
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
  static constexpr std::size_t workers = stored ? pieces::count : 1;  // of a slot

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

}  // namespace detail

template <class Key, class Value, class Place, class Layout>
template <class Source>
auto frozen_map<Key, Value, Place, Layout>::build(const Place& place, const Source& source,
                                                  const options& options) -> std::unique_ptr<built> {
  const std::size_t n = source.size();
  for (int attempt = 0; attempt <= options.max_restarts; ++attempt) {
    const auto plan = [&] {
      if constexpr (detail::lies_in_order<Source>) {
        return Layout::template make_plan<Place, Key, placed>(n, options, attempt,
                                                              attempt == 0 ? source.region_of.regions : 0);
      } else {
        return Layout::template make_plan<Place, Key, placed>(n, options, attempt);
      }
    }();
    std::unique_ptr<built> result(
        new built{storage(place, plan), array<detail::build_state, Place>(place, 1), plan, n, n, {}});
    built& b = *result;
    place.fill(b.state.data(), 0, b.state.bytes());
    b.facts.restarts = attempt;
    const auto fill_table = [&](const placed_table& table, const auto& pairs) {
      for (const room room : detail::rooms_of(plan)) {
        b.facts.scratch_bytes = fill(place, pairs, b, table, room);
        counts sum;
        place.copy_to_host(&sum, b.counted(), sizeof(sum));  // the only readback by the host
        if (sum.overflowed != 0 && !detail::comes_in_ranges<Source>) continue;
        if (sum.failed()) break;
        if constexpr (detail::comes_in_ranges<Source>) b.most = b.asked = sum.placed;
        take_over(b, sum);
        if constexpr (!detail::comes_in_ranges<Source> && !std::is_same_v<Value, none>) {
          if (b.facts.duplicates != 0 && !unparted(place, table)) {
            array<std::uint64_t, Place> first(place, b.facts.capacity);
            b.facts.scratch_bytes += first.bytes();
            settle(place, pairs, b, table, first);
            place.synchronize();
          }
        }
        return true;
      }
      return false;
    };
    if constexpr (by_position) {
      const placed_storage positions(place, plan);
      if (!fill_table(positions.ref(), detail::pairs_by_position<Source>{source})) continue;
      copy_values(place, source, positions.ref(), b.memory.ref());
      b.facts.scratch_bytes += positions.bytes();
      place.synchronize();
      return result;
    } else {
      if (fill_table(b.memory.ref(), source)) return result;
    }
  }
  detail::raise<build_error>({"roost::frozen_map: ", n, " pairs found no place in ", options.max_restarts + 1,
                              " attempts; give a lower load factor or more max_restarts"});
}

/// Whether one thread builds a table directly from the input.
template <class Key, class Value, class Place, class Layout>
bool frozen_map<Key, Value, Place, Layout>::unparted([[maybe_unused]] const Place& place,
                                                     [[maybe_unused]] const placed_table& table) {
  if constexpr (takes_inserts) {
    return table.capacity() * sizeof(placed_item) <=
           detail::build_tuning<Place>::unparted_bytes(place.threads());
  } else {
    return false;
  }
}

/// Partitions the pairs, unless they are already in regions of the plan or arrive in ranges of them, and
/// builds every region; returns the bytes of scratch. Does not wait, unless the pairs arrive in ranges.
template <class Key, class Value, class Place, class Layout>
template <class Source>
std::size_t frozen_map<Key, Value, Place, Layout>::fill(const Place& place, const Source& source, built& b,
                                                        const placed_table& table, room room) {
  using builder = std::conditional_t<takes_inserts, detail::fill_units<placed_table, placed_item>,
                                     typename Layout::template builder<Place, Key, placed>>;
  counts* const sum = b.counted();
  if constexpr (runs_in_turn<Source>) {
    if (const auto scratch_bytes = fill_in_turn(place, source, b, table, room)) return *scratch_bytes;
  }
  place.fill(sum, 0, sizeof(counts));
  constexpr bool comes = detail::comes_in_ranges<Source>;
  if constexpr (takes_inserts && !comes) {
    if (unparted(place, table)) {
      const detail::build_unparted<placed_table, Source> kernel{table, source, sum};
      const std::size_t scratch_bytes = detail::scratch_bytes_of(kernel);
      place.launch(1, scratch_bytes, kernel);
      return scratch_bytes;
    }
  }
  const auto build_regions = [&](const placed_item* items, const std::uint64_t* begins,
                                 const std::uint64_t* ends, std::uint32_t first, std::uint32_t count) {
    const builder kernel{table, {items, begins, ends, sum, first}};
    place.launch(count, detail::scratch_bytes_of(kernel), kernel);
  };
  if constexpr (comes) return source.into_regions(b.plan, &sum->overflowed, build_regions);
  if constexpr (detail::lies_in_order<Source>) {
    const detail::leading_bits& lies = source.region_of;
    if (lies.seed == b.plan.region_of.seed && lies.regions % b.plan.regions == 0) {
      array<std::uint64_t, Place> begins(place, std::size_t{b.plan.regions} + 1);
      detail::write_numbers(place, begins.size(),
                            detail::begin_of_several{source.begins, lies.regions / b.plan.regions},
                            begins.data());
      build_regions(source.items, begins.data(), begins.data() + 1, 0, b.plan.regions);
      return begins.bytes();
    }
  }
  if constexpr (!comes) {
    detail::partitioner<Place, placed_item> partitioner(place, b.plan.regions, room, &sum->overflowed,
                                                        b.plan.room_for_region);
    const auto regions = partitioner.run(source, b.plan.region_of);
    build_regions(regions.items(), regions.begins(), regions.ends(), 0, b.plan.regions);
    return regions.scratch_bytes();
  }
}

/// The same in one launch, for small tables; returns nothing if that is not possible.
template <class Key, class Value, class Place, class Layout>
template <class Source>
std::optional<std::size_t> frozen_map<Key, Value, Place, Layout>::fill_in_turn(
    const Place& place, const Source& source, const built& b, const placed_table& table, room room) {
  using tuned = detail::build_tuning<Place>;
  using builder = typename Layout::template small_builder<Place, Key, placed>;
  using scatter = detail::scatter_tiles<Place, placed_item, Source, detail::leading_bits,
                                        detail::shared_cursors, detail::no_way_back, tuned::in_turn_tile>;
  const std::uint32_t regions = b.plan.regions;
  if (room != room::slack || !b.plan.small() || b.memory.bytes() > tuned::in_turn_bytes ||
      regions > detail::partition_tuning<Place>::digits_most)
    return {};
  const std::size_t n = source.size();
  const std::uint64_t room_for_region = b.plan.room_for_region != 0
                                            ? b.plan.room_for_region
                                            : detail::with_slack(static_cast<double>(n) / regions, n);
  std::uint64_t *begins, *ends;
  placed_item* items;
  const auto take = [&](detail::scratch_memory memory) {
    begins = memory.take<std::uint64_t>(regions);
    ends = memory.take<std::uint64_t>(regions);
    items = memory.take<placed_item>(regions * room_for_region);
    return memory.used();
  };
  array<std::byte, Place> memory(place, take(detail::scratch_memory(nullptr)));
  take(detail::scratch_memory(memory.data()));
  counts* const sum = b.counted();
  const scatter split{source, b.plan.region_of,
                      {n},    {0, static_cast<std::uint32_t>(std::bit_width(regions)), regions, regions},
                      {ends}, room_for_region,
                      items,  &sum->overflowed,
                      {}};
  const builder build(table, {items, begins, ends, sum});
  if (!place.can_run_in_turn(split) || !place.can_run_in_turn(build)) return {};
  place.launch_in_turn(b.barrier(),
                       detail::stage<detail::begin_build>{1, {sum, regions, {room_for_region, begins, ends}}},
                       detail::stage<scatter>{detail::ceil_div<std::size_t>(n, tuned::in_turn_tile), split},
                       detail::stage<builder>{regions, build});
  return memory.bytes();
}

/// Finishes an asynchronous build: empties a table whose build failed, and makes the first copy of each key
/// win, since teams place copies in no fixed order. `first`: a word for each slot.
template <class Key, class Value, class Place, class Layout>
template <class Source>
void frozen_map<Key, Value, Place, Layout>::settle(const Place& place, const Source& source, const built& b,
                                                   const placed_table& table,
                                                   array<std::uint64_t, Place>& first) {
  using detail::outcome;
  const auto after = [&](outcome when, std::size_t n, const auto& f) {
    using kernel = detail::for_each_after<std::remove_cvref_t<decltype(f)>>;
    return detail::stage<kernel>{detail::ceil_div<std::size_t>(n, kernel::tile),
                                 {when, b.counted(), b.asked, n, f}};
  };
  const std::size_t slots = table.capacity();
  const auto empty = after(outcome::failed, slots, detail::clear_slot<placed_table>{table});
  if constexpr (std::is_same_v<Value, none>) {
    place.launch_in_turn(b.barrier(), empty);
  } else {
    place.launch_in_turn(b.barrier(), empty,
                         after(outcome::copies, slots, detail::forget_first{first.data()}),
                         after(outcome::copies, source.size(),
                               detail::find_first<placed_table, Source>{table, source, first.data()}),
                         after(outcome::copies, slots,
                               detail::write_first<placed_table, Source>{table, source, first.data()}));
  }
}

/// Copies large values to their slots from the positions in the source that a table holds.
template <class Key, class Value, class Place, class Layout>
template <class Source>
void frozen_map<Key, Value, Place, Layout>::copy_values(const Place& place, const Source& source,
                                                        const placed_table& positions,
                                                        const ref_type& target) {
  using copy = detail::place_values<placed_table, ref_type, Source>;
  place.for_each(target.capacity() * copy::workers, copy{positions, target, source});
}

template <class Key, class Value, class Place, class Layout>
void frozen_map<Key, Value, Place, Layout>::take_over(built& b, const counts& sum) {
  b.facts.size = sum.failed() ? 0 : sum.placed;
  b.facts.capacity = b.memory.ref().capacity();
  b.facts.load_factor = b.memory.load_factor(b.facts.size);
  b.facts.bytes = b.memory.bytes() + b.state.bytes();
  b.facts.regions = b.plan.regions;
  b.facts.duplicates = sum.failed() ? 0 : b.asked - sum.placed;
  b.facts.region_restarts = sum.region_restarts;
  b.facts.mean_rounds = static_cast<double>(sum.rounds) / b.plan.regions;
}

template <class Key, class Value, class Place, class Layout>
auto frozen_map<Key, Value, Place, Layout>::ref() const -> const ref_type& {
  if (!built_) {
    detail::raise<invalid_argument>(
        {"roost::frozen_map::ref: the map is empty and has no memory; call rebuild first"});
  }
  return built_->memory.ref();
}

template <class Key, class Value, class Place, class Layout>
const frozen_statistics& frozen_map<Key, Value, Place, Layout>::statistics() const {
  static const frozen_statistics none;
  return built_ ? built_->facts : none;
}

/// rebuild_async, for pairs and for keys alone.
template <class Key, class Value, class Place, class Layout>
template <class Source>
void frozen_map<Key, Value, Place, Layout>::refill(const Place& place, const Source& source) {
  const std::size_t most = built_ ? built_->most : 0;
  if (!built_ || source.size() > most) {
    detail::raise<invalid_argument>({"roost::frozen_map::rebuild_async: ", source.size(),
                                     " pairs, but the map was built for ", most, "; call rebuild"});
  }
  constexpr bool has_values = !std::is_same_v<Value, none>;
  array<std::uint64_t, Place> first(place, has_values ? built_->facts.capacity : 0);
  const detail::clear_slot<ref_type> clear{ref()};
  const auto fill_table = [&](const placed_table& table, const auto& pairs) {
    built_->facts.scratch_bytes =
        fill(place, pairs, *built_, table, detail::rooms_of(built_->plan).front()) + first.bytes();
    settle(place, pairs, *built_, table, first);
  };
  built_->asked = source.size();
  try {
    if constexpr (by_position) {
      const placed_storage positions(place, built_->plan);
      fill_table(positions.ref(), detail::pairs_by_position<Source>{source});
      copy_values(place, source, positions.ref(), ref());
      built_->facts.scratch_bytes += positions.bytes();
    } else {
      fill_table(ref(), source);
    }
  } catch (...) {
    built_->asked = 0;
    place.fill(built_->counted(), 0, sizeof(counts));
    place.for_each(capacity(), clear);
    take_over(*built_, {});
    throw;
  }
}

template <class Key, class Value, class Place, class Layout>
void frozen_map<Key, Value, Place, Layout>::finish(const Place& place) {
  if (!built_) return;
  counts sum;
  place.copy_to_host(&sum, built_->counted(), sizeof(sum));
  take_over(*built_, sum);
  if (!sum.failed()) return;
  detail::raise<build_error>(
      {"roost::frozen_map::finish: the ", built_->asked,
       " pairs of the last rebuild_async did not fit the regions that the map has, and it is "
       "empty; call rebuild"});
}

template <class Key, class Value, class Place, class Layout>
template <class Keys, class Values>
frozen_map<Key, Value, Place, Layout>::frozen_map(const Place& place, const Keys& keys, const Values& values,
                                                  options chosen)
    : frozen_map(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"), chosen, nullptr) {}

template <class Key, class Value, class Place, class Layout>
template <class Keys, class Values>
void frozen_map<Key, Value, Place, Layout>::rebuild(const Place& place, const Keys& keys,
                                                    const Values& values) {
  built_ = build(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"), options_);
}

template <class Key, class Value, class Place, class Layout>
template <class Keys, class Values>
void frozen_map<Key, Value, Place, Layout>::rebuild_async(const Place& place, const Keys& keys,
                                                          const Values& values) {
  refill(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_map"));
}

template <class Key, class Value, class Place, class Layout>
template <class Queries, class Results>
bulk_report frozen_map<Key, Value, Place, Layout>::find(const Place& place, const Queries& queries,
                                                        Results&& results, Value missing,
                                                        bulk_options how) const {
  constexpr const char* where = "roost::frozen_map::find";
  if (!built_) return detail::find_no_values<Key>(place, queries, results, missing, where);
  return detail::find_values(place, ref(), bytes(), queries, results, missing, how, where);
}

template <class Key, class Value, class Place, class Layout>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report frozen_map<Key, Value, Place, Layout>::find(const Place& place, const Queries& queries,
                                                        Results&& results, Found&& found,
                                                        bulk_options how) const {
  constexpr const char* where = "roost::frozen_map::find";
  if (!built_) return detail::find_nothing<Key>(place, queries, found, where);
  return detail::find_values_there(place, ref(), bytes(), queries, results, found, how, where);
}

template <class Key, class Value, class Place, class Layout>
template <class Queries, class Results>
bulk_report frozen_map<Key, Value, Place, Layout>::contains(const Place& place, const Queries& queries,
                                                            Results&& results, bulk_options how) const {
  constexpr const char* where = "roost::frozen_map::contains";
  if (!built_) return detail::find_nothing<Key>(place, queries, results, where);
  return detail::find_contained(place, ref(), bytes(), queries, results, how, where);
}

template <class Key, class Value, class Place, class Layout>
template <class Queries>
std::size_t frozen_map<Key, Value, Place, Layout>::count_found(const Place& place,
                                                               const Queries& queries) const {
  return built_ ? detail::count_all(place, ref(), bytes(), queries) : 0;
}

template <class Key, class Value, class Place, class Layout>
template <class Keys, class Values>
std::size_t frozen_map<Key, Value, Place, Layout>::retrieve_all(const Place& place, Keys&& keys,
                                                                Values&& values) const {
  Key* const keys_to = detail::output<Key>(keys, size(), "roost::frozen_map::retrieve_all");
  Value* const values_to = detail::output<Value>(values, size(), "roost::frozen_map::retrieve_all");
  if (built_) detail::retrieve_pairs(place, ref(), keys_to, values_to, size());
  return size();
}

template <class Key, class Value, class Place, class Layout>
template <class F>
void frozen_map<Key, Value, Place, Layout>::for_each(const Place& place, const F& f) const {
  if (built_) place.for_each(capacity(), detail::visit_slot<ref_type, F>{ref(), f});
}

template <class Key, class Value, class Place, class Layout>
double frozen_map<Key, Value, Place, Layout>::mean_probes(const Place& place) const {
  if (empty()) return 0;
  return static_cast<double>(place.sum(capacity(), detail::probes_of_slot<ref_type>{ref()})) /
         static_cast<double>(size());
}

template <class Key, class Value, class Place, class Layout>
bool frozen_map<Key, Value, Place, Layout>::valid(const Place& place) const {
  return !built_ || (capacity() == ref().capacity() &&
                     place.sum(capacity(), detail::good_slot<ref_type>{ref()}) == size());
}

template <class Key, class Value, class Place, class Layout>
class frozen_map<Key, Value, Place, Layout>::iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = pair<Key, Value>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  iterator(const ref_type* table, std::uint64_t slot) : table_(table), slot_(slot) { skip(); }
  value_type operator*() const { return detail::make_pair(table_->key_at(slot_), table_->value_at(slot_)); }
  iterator& operator++() {
    ++slot_;
    skip();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& a, const iterator& b) { return a.slot_ == b.slot_; }

 private:
  void skip() {
    while (table_ != nullptr && slot_ < table_->capacity() && !table_->occupied(slot_)) ++slot_;
  }
  const ref_type* table_;
  std::uint64_t slot_;
};

template <class Key, class Value, class Place, class Layout>
auto frozen_map<Key, Value, Place, Layout>::begin() const -> iterator
  requires std::is_same_v<Place, host>
{
  return built_ ? iterator(&ref(), 0) : iterator(nullptr, 0);
}

template <class Key, class Value, class Place, class Layout>
auto frozen_map<Key, Value, Place, Layout>::end() const -> iterator
  requires std::is_same_v<Place, host>
{
  return built_ ? iterator(&ref(), capacity()) : iterator(nullptr, 0);
}

}  // namespace roost
