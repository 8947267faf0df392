// Bodies of roost/stadium_map.hpp.

#include "roost/detail/stadium_kernels.hpp"

namespace roost {

template <class Key, class Value, class Place>
auto stadium_map<Key, Value, Place>::checked(const options& options) -> const stadium_options& {
  if (!(options.load_factor > 0 && options.load_factor <= 1)) {
    throw invalid_argument("roost::stadium_map: load factor " + detail::text_of(options.load_factor) +
                           " asked for; give more than 0 and at most 1");
  }
  return options;
}

template <class Key, class Value, class Place>
ticket_board::plan stadium_map<Key, Value, Place>::plan_for(double n, const options& options) {
  const std::uint32_t region_slots = options.region_slots != 0 ? options.region_slots : detail::tuning<Place>::board_region_slots;
  return ticket_board::make_plan<Place>(std::ceil(n / checked(options).load_factor), options.ticket_bits, region_slots, options.seed);
}

/// The slots whose bodies lie in memory of the place: of whole regions.
template <class Key, class Value, class Place>
std::size_t stadium_map<Key, Value, Place>::near_slots(const Place& place, const ticket_board::plan& plan, const options& options) {
  if (options.bodies == residence::host) return 0;
  if (options.bodies == residence::place) return plan.slots();
  const std::size_t budget = options.budget != ~std::size_t{0} ? options.budget : detail::reachable<Place>::free_bytes(place);
  return detail::smaller<std::size_t>(budget / (plan.region_slots * sizeof(item)), plan.regions) * plan.region_slots;
}

template <class Key, class Value, class Place>
stadium_map<Key, Value, Place>::stadium_map(const Place& place, const ticket_board::plan& plan, const options& options)
    : options_(options),
      plan_(plan),
      words_(place, plan.words()),
      heads_(place, plan.regions),
      guards_(place, plan.guards),
      bodies_(place, plan.slots(), near_slots(place, plan, options)) {
  clear(place);
}

template <class Key, class Value, class Place>
stadium_map<Key, Value, Place>::stadium_map(const Place& place, std::size_t n, options options)
    : stadium_map(place, plan_for(static_cast<double>(n), options), options) {}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::clear(const Place& place) {
  place.fill(words_.data(), 0xff, words_.bytes());
  place.fill(heads_.data(), 0, heads_.bytes());
  place.fill(guards_.data(), 0, guards_.bytes());
  known_ = slots_in_use();
}

template <class Key, class Value, class Place>
std::size_t stadium_map<Key, Value, Place>::size(const Place& place) const {
  return place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), false});
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::count_slots(const Place& place) {
  known_ = {size(place), place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), true})};
}

/// Batches go by region where random accesses to the host's memory would be slow, whatever else says.
template <class Key, class Value, class Place>
bulk_options stadium_map<Key, Value, Place>::way_of(std::size_t n, const bulk_options& how) const {
  bulk_options result = how;
  if (how.path == path::automatic && bodies_.far_bytes() > detail::tuning<Place>::far_reach && n >= detail::tuning<Place>::far_queries)
    result.path = path::regional;
  return result;
}

/// Inserts the pairs of a source. If the map grows, it does so when it is as full as it should be.
template <class Key, class Value, class Place>
template <class Change, class Source>
void stadium_map<Key, Value, Place>::put(const Place& place, const Source& source, const Change& change, bool grows,
                                         insert_report& report) {
  using filler = detail::board_filler<ref_type>;
  using kernel = detail::put_tiles<Place, filler, Source, Change>;
  for (;;) {
    array<detail::put_counts, Place> counted(place, 1);
    array<std::uint32_t, Place> tiles(place, 0);
    detail::put_counts sum;
    for (std::size_t n = detail::ceil_div<std::size_t>(source.size(), kernel::tile); n != 0; n = sum.put_off) {
      array<std::uint32_t, Place> put_off(place, grows ? n : 0);
      sum.inserted = sum.put_off = 0;
      place.copy_from_host(counted.data(), &sum, sizeof(sum));
      const kernel run{filler{table()}, source, change, {tiles.data(), put_off.data(), room()}, {nullptr, 0, counted.data()}};
      const auto before = std::exchange(known_, std::nullopt);
      place.launch(n, detail::scratch_bytes_of(run), run);
      place.copy_to_host(&sum, counted.data(), sizeof(sum));
      known_ = {before->live + sum.inserted, before->erased};
      report.inserted += sum.inserted;
      if (sum.put_off != 0) {  // the tiles that were begun tell how many of the others are new
        const std::size_t begun = n - sum.put_off;
        make_room(place,
                  begun == 0
                      ? 1
                      : 1 + static_cast<std::size_t>(1.05 * static_cast<double>(sum.inserted) / static_cast<double>(begun) * sum.put_off),
                  report);
        tiles = std::move(put_off);
      }
    }
    if (sum.left == 0) return;
    if (!grows) {
      report.full += sum.left;
      return;
    }
    make_room(place, sum.left,
              report);  // tiles that begin together can be more than there is room for: all is done again, which changes nothing
  }
}

/// New pairs. The table has room for them, or does not grow.
template <class Key, class Value, class Place>
template <class Part>
void stadium_map<Key, Value, Place>::put_new(const Place& place, const Part& part, path way, insert_report& report) {
  const std::size_t n = part.size(), live = known_->live;
  const auto threshold = static_cast<std::size_t>(detail::tuning<Place>::together_load * static_cast<double>(capacity()));
  std::size_t alone = threshold - detail::smaller(threshold, live);  // pairs
  if (way == path::regional) alone = live + n > threshold ? 0 : n;   // regions are filled one by one
  if (options_.lanes != insert_lanes::automatic) alone = options_.lanes == insert_lanes::alone ? n : 0;
  Part some = part;
  some.count = detail::smaller(alone, n);
  if (some.count != 0) put(place, some, typename ref_type::fresh(), false, report);
  some.first += some.count;
  some.count = n - some.count;
  if (some.count != 0) put(place, some, typename ref_type::fresh_together(), false, report);
}

template <class Key, class Value, class Place>
template <class Change, class Source>
insert_report stadium_map<Key, Value, Place>::put_all(const Place& place, const Source& source, const Change& change,
                                                      const bulk_options& how) {
  insert_report report;
  const std::size_t n = source.size();
  if (n == 0) return report;
  if (!known_) count_slots(place);
  if (known_->erased > (capacity() - known_->live) / 2) {
    count_slots(place);  // to be sure: inserts use such slots
    if (known_->erased > (capacity() - known_->live) / 2) {
      sweep(place);
      ++report.rehashes;
    }
  }
  constexpr bool tells = !Change::searches;  // all keys are new
  if (tells && options_.grows) make_room(place, n, report);
  const bool grows = options_.grows && !tells;
  const path way = way_of(n, how).path;
  const auto put_some = [&](const auto& part) {
    if constexpr (tells) {
      put_new(place, part, report.path, report);
    } else {
      put(place, part, change, grows, report);
    }
  };
  std::size_t first = 0;
  if (way == path::regional || (way == path::automatic && detail::by_region_pays<Place, ref_type>(bytes(), n))) {
    using tuned = detail::tuning<Place>;
    const std::size_t windows = detail::ceil_div(bytes(), tuned::regional_window_bytes);
    const auto regions = static_cast<std::uint32_t>(std::clamp<std::size_t>(windows, 2, tuned::digits_most));
    const std::size_t fit = detail::larger<std::size_t>(how.scratch_bytes_most / (2 * sizeof(item)), tuned::regional_chunk_least);
    const std::size_t most = detail::ceil_div(n, detail::ceil_div(n, fit));
    report.path = path::regional;
    try {
      for (; first < n; first += most) {
        using part = detail::part_of<Source, detail::all_wanted>;
        detail::partitioner<Place, item> partitioner(place, regions, room::exact, false, nullptr);
        const auto parts = partitioner.run(part{source, {}, first, detail::smaller(most, n - first)}, table().hash_order(regions));
        put_some(detail::part_of<const item*, detail::all_wanted>{parts.items(), {}, 0, parts.extent()});
      }
    } catch (const out_of_memory&) {
      // Who leaves the choice to us gets the way that needs no memory, unless what was done cannot be done again.
      if (how.path == path::regional || tells) throw;
      if (!known_) count_slots(place);
      report.path = path::direct;
    }
  }
  if (first < n) put_some(detail::part_of<Source, detail::all_wanted>{source, {}, first, n - first});
  report.present = n - report.inserted - report.full;
  return report;
}

/// Makes room for more keys if there is less and the map grows.
template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::make_room(const Place& place, std::size_t more, insert_report& report) {
  if (room() >= more) return;
  rehash(place, detail::larger(known_->live + more, 2 * limit()));
  ++report.rehashes;
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::rehash(const Place& place, std::size_t n) {
  const std::size_t live = size(place);
  stadium_map to(place, detail::larger(n, live), options_);
  insert_report report;
  to.put(place, detail::pairs_of_slots<ref_type>{table()}, typename ref_type::fresh(), false, report);
  *this = std::move(to);
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::reserve(const Place& place, std::size_t n) {
  if (n > limit()) rehash(place, n);
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::sweep(const Place& place) {
  std::vector<detail::region_sweep> facts(plan_.regions);
  const auto heads = copy_to_host(place, heads_);
  for (std::size_t r = 0; r < heads.size(); ++r) {
    for (std::uint32_t d = 0; d < heads[r].far; ++d) facts[(r + d) % heads.size()].passed = 1;
  }
  auto regions = copy_to(place, facts);
  array<std::uint32_t, Place> on_ways(place, detail::ceil_div<std::size_t>(capacity(), 32));
  place.fill(on_ways.data(), 0, on_ways.bytes());
  known_ = std::nullopt;
  place.for_each(words_.size(),
                 detail::find_dirty_regions{{words_.data(), plan_.tickets.lowest(), true}, regions.data(), plan_.region_words});
  place.for_each(plan_.regions, detail::forget_walks{regions.data(), heads_.data()});
  place.for_each(capacity(), detail::bring_keys_back<ref_type>{table(), regions.data(), on_ways.data()});
  place.for_each(capacity(), detail::free_slots<ref_type>{table(), regions.data(), on_ways.data()});
  count_slots(place);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert_new(const Place& place, const Keys& keys, const Values& values, bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::stadium_map::insert_new"), typename ref_type::fresh(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert(const Place& place, const Keys& keys, const Values& values, bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::stadium_map::insert"), typename ref_type::keep(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert_or_assign(const Place& place, const Keys& keys, const Values& values,
                                                               bulk_options how) {
  return put_all(place, detail::zip_checked(keys, values, "roost::stadium_map::insert_or_assign"), typename ref_type::assign(), how);
}

template <class Key, class Value, class Place>
template <class Keys>
std::size_t stadium_map<Key, Value, Place>::erase(const Place& place, const Keys& keys, bulk_options how) {
  const auto sequence = detail::as_sequence(keys);
  array<bool, Place> erased(place, sequence.size());
  const auto before = std::exchange(known_, std::nullopt);
  detail::probe_all(place, table(), bytes(), sequence, detail::write_erased{erased.data()}, way_of(sequence.size(), how));
  const std::size_t count = place.sum(sequence.size(), detail::is_true{erased.data()});
  if (before) known_ = {before->live - count, before->erased + count};
  return count;
}

template <class Key, class Value, class Place>
template <class Operations, class Results>
void stadium_map<Key, Value, Place>::run(const Place& place, const Operations& operations, Results&& results) {
  const auto sequence = detail::as_sequence(operations);
  auto* const to = detail::output<operation_result<Value>>(results, sequence.size(), "roost::stadium_map::run");
  known_ = std::nullopt;
  detail::run_all(place, table(), sequence, to);
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report stadium_map<Key, Value, Place>::find(const Place& place, const Queries& queries, Results&& results, Value missing,
                                                 bulk_options how) const {
  return detail::find_values(place, ref(), bytes(), queries, results, missing, way_of(detail::as_sequence(queries).size(), how),
                             "roost::stadium_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results, class Found>
requires(!std::is_convertible_v<Found, Value>) bulk_report stadium_map<Key, Value, Place>::find(const Place& place, const Queries& queries,
                                                                                                Results&& results, Found&& found,
                                                                                                bulk_options how)
const {
  return detail::find_values_there(place, ref(), bytes(), queries, results, found, way_of(detail::as_sequence(queries).size(), how),
                                   "roost::stadium_map::find");
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report stadium_map<Key, Value, Place>::contains(const Place& place, const Queries& queries, Results&& results,
                                                     bulk_options how) const {
  return detail::find_contained(place, ref(), bytes(), queries, results, way_of(detail::as_sequence(queries).size(), how),
                                "roost::stadium_map::contains");
}

template <class Key, class Value, class Place>
template <class Queries>
std::size_t stadium_map<Key, Value, Place>::count(const Place& place, const Queries& queries) const {
  return detail::count_all(place, ref(), bytes(), detail::as_sequence(queries));
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
std::size_t stadium_map<Key, Value, Place>::retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
  const std::size_t n = size(place);
  Key* const keys_to = detail::output<Key>(keys, n, "roost::stadium_map::retrieve_all");
  Value* const values_to = detail::output<Value>(values, n, "roost::stadium_map::retrieve_all");
  detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
  return n;
}

template <class Key, class Value, class Place>
template <class F>
void stadium_map<Key, Value, Place>::for_each(const Place& place, const F& f) const {
  place.for_each(capacity(), detail::visit_slot<reader_type, F>{ref(), f});
}

template <class Key, class Value, class Place>
stadium_statistics stadium_map<Key, Value, Place>::statistics(const Place& place) const {
  stadium_statistics result;
  result.size = size(place);
  result.erased = place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), true});
  result.capacity = capacity();
  result.regions = plan_.regions;
  result.load_factor = static_cast<double>(result.size) / static_cast<double>(result.capacity);
  result.board_bytes = board_bytes();
  result.place_bytes = bodies_.near_bytes();
  result.host_bytes = bodies_.far_bytes();
  return result;
}

template <class Key, class Value, class Place>
template <class Queries>
lookup_costs stadium_map<Key, Value, Place>::costs(const Place& place, const Queries& queries) const {
  const auto sequence = detail::as_sequence(queries);
  array<std::uint64_t, Place> sums(place, 4);
  array<std::uint32_t, Place> most(place, 1);
  place.fill(sums.data(), 0, sums.bytes());
  place.fill(most.data(), 0, most.bytes());
  place.for_each(sequence.size(),
                 detail::add_cost<reader_type, std::remove_const_t<decltype(sequence)>>{ref(), sequence, sums.data(), most.data()});
  const auto sum = copy_to_host(place, sums);
  return {sequence.size(), sum[0], sum[1], sum[2], sum[3], copy_to_host(place, most)[0]};
}

template <class Key, class Value, class Place>
bool stadium_map<Key, Value, Place>::valid(const Place& place) const {
  return place.sum(words_.size(), detail::bad_word{words_.data(), plan_, plan_.tickets.lowest()}) == 0 &&
         place.sum(guards_.size(), detail::is_odd{guards_.data()}) == 0 &&
         place.sum(capacity(), detail::good_slot<reader_type>{ref()}) == size(place);
}

}  // namespace roost
