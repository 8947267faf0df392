#pragma once

// Bodies of roost/stadium/stadium_map.hpp.

#include "roost/stadium/stadium_map.hpp"

namespace roost {

template <class Key, class Value, class Place>
auto stadium_map<Key, Value, Place>::checked(const options& options) -> const stadium_options& {
  if (!(options.load_factor > 0 && options.load_factor <= 1)) {
    detail::raise<invalid_argument>({"roost::stadium_map: load factor ", options.load_factor,
                                     " asked for; give more than 0 and at most 1"});
  }
  return options;
}

template <class Key, class Value, class Place>
ticket_board::plan stadium_map<Key, Value, Place>::plan_for(double n, const options& options) {
  const std::uint32_t region_slots =
      options.region_slots != 0 ? options.region_slots : detail::stadium_tuning<Place>::region_slots;
  return ticket_board::make_plan<Place>(slots_for(n, checked(options)), options.ticket_bits, region_slots,
                                        options.seed);
}

/// The smallest number of slots whose load factor allows n keys.
template <class Key, class Value, class Place>
double stadium_map<Key, Value, Place>::slots_for(double n, const options& options) {
  double slots = std::floor(n / options.load_factor);
  for (int i = 0; i < 2 && std::floor(options.load_factor * slots) < n; ++i)
    ++slots;  // whatever rounding does
  return slots;
}

/// The slots whose bodies are in memory of the place: those of whole parts, so that no part is in both
/// memories, or of whole regions if they are few.
template <class Key, class Value, class Place>
std::size_t stadium_map<Key, Value, Place>::near_slots(const Place& place, const ticket_board::plan& plan,
                                                       const options& options) {
  if (options.bodies == residence::host) return 0;
  if (options.bodies == residence::place) return plan.slots();
  const std::size_t budget =
      options.budget != ~std::size_t{0} ? options.budget : detail::reachable<Place>::free_bytes(place);
  const std::uint64_t part_slots = plan.slots() / plan.parts(ticket_board::plan::parts_least);
  return detail::smaller<std::size_t>(budget / (part_slots * sizeof(item)), plan.slots() / part_slots) *
         part_slots;
}

template <class Key, class Value, class Place>
stadium_map<Key, Value, Place>::stadium_map(const Place& place, const ticket_board::plan& plan,
                                            const options& chosen, detail::body_memory<item, Place>&& bodies)
    : options_(chosen),
      plan_(plan),
      words_(place, plan.words()),
      heads_(place, plan.regions),
      guards_(place, plan.guards),
      bodies_(std::move(bodies)) {
  clear(place);
}

template <class Key, class Value, class Place>
stadium_map<Key, Value, Place>::stadium_map(const Place& place, const ticket_board::plan& plan,
                                            const options& chosen)
    : stadium_map(place, plan, chosen, {place, plan.slots(), near_slots(place, plan, chosen)}) {}

template <class Key, class Value, class Place>
stadium_map<Key, Value, Place>::stadium_map(const Place& place, std::size_t n, options chosen)
    : stadium_map(place, plan_for(static_cast<double>(n), chosen), chosen) {}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::clear(const Place& place) {
  place.fill(words_.data(), 0xff, words_.bytes());
  place.fill(heads_.data(), 0, heads_.bytes());
  place.fill(guards_.data(), 0, guards_.bytes());
  known_ = slots_in_use();
  unswept_ = 0;
}

template <class Key, class Value, class Place>
std::size_t stadium_map<Key, Value, Place>::size(const Place& place) const {
  return place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), false});
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::count_slots(const Place& place) {
  known_ = {size(place),
            place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), true})};
}

/// The plan of n queries or pairs by region. `bodies()` estimates how many bodies they read or write, and is
/// called only if that may matter: streaming copies all bodies in host memory, which pays if a large enough
/// share of them is used. `unchanged`: nothing else changes the map.
template <class Key, class Value, class Place>
template <class Bodies>
detail::stadium_regions<Place> stadium_map<Key, Value, Place>::regions_for(const Place& place, std::size_t n,
                                                                           const bulk_options& how,
                                                                           bool unchanged,
                                                                           detail::staged_copies copies,
                                                                           const Bodies& bodies) const {
  using tuned = detail::stadium_tuning<Place>;
  using regions = detail::stadium_regions<Place>;
  const std::size_t far = bodies_.far_bytes(), parts = plan_.parts(), part_slots = plan_.slots() / parts;
  const bool reaches_far = far > tuned::far_reach && n >= tuned::far_queries;
  const auto pays = [&] {  // for each chunk of the batch
    if (how.path != path::automatic || !reaches_far || !unchanged ||
        part_slots * sizeof(item) > tuned::staged_bytes_most)
      return false;
    const std::size_t chunk = detail::smaller<std::size_t>(
        n, how.scratch_bytes_or(regions::scratch_bytes(place)) / (2 * sizeof(item)));
    const auto least = static_cast<double>(far) / tuned::far_access_bytes;
    return static_cast<double>(chunk) >= least &&
           static_cast<double>(bodies()) * static_cast<double>(chunk) / static_cast<double>(n) >= least;
  };
  try {
    if (far != 0 && n != 0 && parts > 1 && bodies_.near_size() % part_slots == 0 &&
        (how.path == path::streamed || pays()))
      return {place, plan_, bodies_.near_size(), sizeof(item), copies};
  } catch (const out_of_memory&) {
    if (how.path == path::streamed) throw;
  }
  return regions(reaches_far);
}

/// The plan of queries by region.
template <class Key, class Value, class Place>
template <class Queries>
detail::stadium_regions<Place> stadium_map<Key, Value, Place>::regions_for(const Place& place,
                                                                           const Queries& queries,
                                                                           const bulk_options& how) const {
  const auto sequence = detail::sequence_as<Key>(queries);
  const std::size_t n = sequence.size();
  return regions_for(place, n, how, known_.has_value(), {.in = true, .out = false}, [&] {
    const std::size_t sample = detail::smaller(n, detail::stadium_tuning<Place>::far_sample),
                      step = n / sample;
    using looks = detail::seems_to_be_there<reader_type, std::remove_const_t<decltype(sequence)>>;
    return place.sum(sample, looks{lookups(), sequence, step}) * step;
  });
}

/// Inserts the pairs of a source. If the map grows, it does so when it reaches its load factor.
template <class Key, class Value, class Place>
template <class Change, class Source>
void stadium_map<Key, Value, Place>::put(const Place& place, const Source& source, const Change& change,
                                         bool grows, insert_report& report) {
  for (;;) {
    array<item, Place> left(
        place,
        grows && !Change::repeatable ? source.size() : 0);  // changes that must not be repeated
    const auto sum = detail::tile_inserter::run(place, *this, source, change, grows, left, report);
    if (sum.left == 0) return;
    if (!grows) {
      report.full += sum.left;
      return;
    }
    make_room(place, sum.left,
              report);  // tiles that begin at the same time can hold more pairs than there is room for
    if constexpr (!Change::repeatable)
      return put(place, detail::part_of<const item*, detail::all_wanted>{left.data(), {}, 0, sum.left},
                 change, grows, report);
  }
}

/// Launches inserts that add their counts to `counted`, which equals `sum` before and after.
template <class Key, class Value, class Place>
template <class Launch>
void stadium_map<Key, Value, Place>::launch_put(const Place& place, array<detail::put_counts, Place>& counted,
                                                detail::put_counts& sum, insert_report& report,
                                                const Launch& launch) {
  const std::size_t inserted = sum.inserted;
  detail::go_on_counting(place, counted, sum);
  const auto before = std::exchange(known_, std::nullopt);
  launch();
  place.copy_to_host(&sum, counted.data(), sizeof(sum));
  known_ = {before->live + (sum.inserted - inserted), before->erased};
  report.inserted += sum.inserted - inserted;
}

/// Inserts partitioned pairs part by part, while the bodies of the part are in memory of the place. The table
/// has room for them, or does not grow.
template <class Key, class Value, class Place>
template <class Change, class Parts>
void stadium_map<Key, Value, Place>::put_streamed(const Place& place, const Parts& parts,
                                                  const detail::stadium_regions<Place>& regions,
                                                  const Change& change, insert_report& report, bool& begun) {
  using part = detail::part_of<const item*, detail::all_wanted>;
  using filler = detail::board_filler<ref_type>;
  using kernel = detail::put_tiles<Place, filler, part, Change>;
  std::vector<std::uint64_t> begins(parts.regions()), ends(parts.regions());
  place.copy_to_host(begins.data(), parts.begins(), begins.size() * sizeof(begins[0]));
  place.copy_to_host(ends.data(), parts.ends(), ends.size() * sizeof(ends[0]));
  const detail::calls_between_pieces none(nullptr);  // bodies whose slots are reserved are written later
  // Pairs for which their parts have no room.
  array<item, Place> left(
      place, Change::repeatable ? detail::larger<std::size_t>(4096, parts.extent() / 64) : parts.extent());
  array<detail::put_counts, Place> counted(place, 1);
  detail::put_counts sum;
  begun = true;
  launch_put(place, counted, sum, report, [&] {
    regions.run(table(), parts.regions(),
                [&](const ref_type& here, std::uint32_t first, std::uint32_t count) {
                  const std::uint64_t n = ends[first + count - 1] - begins[first];
                  const std::uint32_t tile = kernel::tile_for(n);
                  const kernel run{filler{here}, part{parts.items(), {}, begins[first], n}, change, tile,
                                   {},           {left.data(), left.size(), counted.data()}};
                  place.launch(detail::ceil_div<std::size_t>(n, tile), detail::scratch_bytes_of(run), run);
                });
  });
  if (sum.left == 0) return;
  if (sum.left <= left.size()) return put(place, part{left.data(), {}, 0, sum.left}, change, false, report);
  // It is not known which ones: all pairs are inserted again, which leaves those already stored as they are.
  using again = std::conditional_t<Change::searches, Change, typename ref_type::keep>;
  put(place, part{parts.items(), {}, 0, parts.extent()}, again(), false, report);
}

template <class Key, class Value, class Place>
template <class Change, class Source>
insert_report stadium_map<Key, Value, Place>::put_all(const Place& place, const Source& source,
                                                      const Change& change, const bulk_options& how) {
  insert_report report;
  const std::size_t n = source.size();
  if (n == 0) return report;
  if (!known_) count_slots(place);
  if (sweep_pays()) {
    count_slots(place);  // to be sure: inserts use such slots
    unswept_ = detail::smaller(unswept_, known_->erased);
    if (sweep_pays()) {
      try {
        sweep(place);
        ++report.rehashes;
      } catch (const out_of_memory&) {  // the insert may not need the room
        if (!known_) count_slots(place);
      }
    }
  }
  constexpr bool tells = !Change::searches;  // all keys are new
  if (tells && options_.grows) make_room(place, n, report);
  const bool grows = options_.grows && !tells && room() < n;
  const auto put_some = [&](const auto& part) {
    if constexpr (tells) {
      put(place, part, typename ref_type::fresh(), false, report);
    } else {
      put(place, part, change, grows, report);
    }
  };
  const bool is_empty = known_->live + known_->erased == 0;  // then no body is read
  bulk_options chosen = how;
  if (grows && how.path == path::streamed)
    chosen.path = path::regional;  // since the map may have to grow meanwhile
  auto regions = regions_for(place, n, chosen, !grows, {.in = !is_empty, .out = true}, [&] { return n; });
  std::size_t first = 0;
  bool begun = false;
  if (detail::asks_for_regions(how.path) ||
      (how.path == path::automatic && regions.template pays<ref_type>(bytes(), n))) {
    const auto plan = regions.plan(bytes(), n, 2 * sizeof(item), how);
    report.path = regions.way;
    try {
      for (; first < n; first += plan.chunk) {
        using part = detail::part_of<Source, detail::all_wanted>;
        begun = false;
        detail::partitioner<Place, item> partitioner(place, plan.regions, room::exact, nullptr);
        const auto parts = partitioner.run(part{source, {}, first, detail::smaller(plan.chunk, n - first)},
                                           table().hash_order(plan.regions));
        if (regions.streams()) {
          put_streamed(place, parts, regions, change, report, begun);
          regions.copies({.in = true, .out = true});
        } else {
          begun = true;
          put_some(detail::part_of<const item*, detail::all_wanted>{parts.items(), {}, 0, parts.extent()});
        }
      }
    } catch (const out_of_memory&) {
      if (how.path != path::automatic || begun)
        throw;  // the automatic choice falls back to the path that needs no memory
      report.path = path::direct;
    }
  }
  if (first < n) put_some(detail::part_of<Source, detail::all_wanted>{source, {}, first, n - first});
  report.present = n - report.inserted - report.full;
  return report;
}

/// Makes room for `more` keys if there is less and the map grows.
template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::make_room(const Place& place, std::size_t more, insert_report& report) {
  if (room() >= more) return;
  const std::size_t least = known_->live + more;
  for (const std::size_t spare : {limit(), limit() / 8, std::size_t{0}}) {
    try {
      rehash(place, detail::larger(least, limit() + spare));
      break;
    } catch (const out_of_memory&) {  // try less room
      if (limit() + spare <= least) throw;
    }
  }
  ++report.rehashes;
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::rehash(const Place& place, std::size_t n) {
  using plan = ticket_board::plan;
  n = detail::larger(n, size(place));
  const double slots = slots_for(static_cast<double>(n), options_);
  if (bodies_.can_grow() && plan_.regions % plan::parts_least == 0 &&
      slots > static_cast<double>(capacity())) {
    // More regions, and the same number of parts. Many parts, as long as whole regions exceed the requested
    // slots only slightly.
    const std::uint32_t parts =
        plan_.parts(detail::larger(plan::parts_least, detail::smaller(plan::parts_most, plan_.regions / 8)));
    const auto rounded = [](double x, double of) { return std::ceil(x / of) * of; };
    const double unit = std::lcm(parts, plan::parts_most);
    double regions = rounded(slots / plan_.region_slots, parts);
    if (regions >= 8 * unit)
      regions =
          rounded(regions, unit);  // so that batches can be streamed in the largest possible number of parts
    try {
      return grow(place, plan_.template of_regions<Place>(regions), parts);
    } catch (const out_of_memory&) {  // a second table may take less memory of the place
    }
  }
  stadium_map target(place, n, options_);
  insert_report report;
  target.put(place, detail::pairs_of_slots<ref_type>{table()}, typename ref_type::fresh(), false, report);
  *this = std::move(target);
}

/// Grows in place: moves the keys to more regions of the same number of slots. The host memory of the bodies
/// is extended, and the parts of the table are moved in order, the last one first, so that no body is
/// overwritten before it has moved. Takes memory of the place for the board and for some parts. Throws
/// out_of_memory, and then nothing has changed.
template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::grow(const Place& place, const ticket_board::plan& target,
                                          std::uint32_t parts) {
  using filler = detail::board_filler<ref_type>;
  using pairs = detail::part_of<detail::pairs_of_slots<ref_type>, detail::is_occupied<ref_type>>;
  using some = detail::part_of<const item*, detail::all_wanted>;
  using fresh = typename ref_type::fresh;
  const std::uint64_t from_slots = plan_.slots() / parts, to_slots = target.slots() / parts;
  const std::uint64_t unit = target.slots() / target.parts(ticket_board::plan::parts_least);
  const std::uint64_t near = bodies_.near_size() / unit * unit;
  const std::size_t from_bytes = from_slots * sizeof(item), to_bytes = to_slots * sizeof(item);

  // Keys that find no room in their part are recorded, so their maximum number must be known.
  stadium_map larger(place, target, options_, detail::body_memory<item, Place>(place, 0, 0));
  array<std::uint32_t, Place> keys(place, target.regions);
  array<std::uint64_t, Place> strays(place, 1);
  place.fill(keys.data(), 0, keys.bytes());
  place.fill(strays.data(), 0, strays.bytes());
  place.for_each(capacity(),
                 detail::count_homes<ref_type>{table(), larger.table(), from_slots, target.regions / parts,
                                               keys.data(), strays.data()});
  const std::uint64_t too_many =
      place.sum(target.regions, detail::keys_too_many{keys.data(), target.region_slots});
  array<item, Place> left(place, copy_to_host(place, strays)[0] + too_many);
  array<detail::put_counts, Place> counted(place, 1);
  detail::put_counts sum;
  detail::go_on_counting(place, counted, sum);
  detail::staging<Place> staging(place, from_bytes + to_bytes);
  const auto put_some = [&](const ref_type& there, const auto& source) {
    using kernel = detail::put_tiles<Place, filler, std::remove_cvref_t<decltype(source)>, fresh>;
    const std::uint32_t tile = kernel::tile_for(source.size());
    const kernel run{filler{there}, source, {}, tile, {}, {left.data(), left.size(), counted.data()}};
    place.launch(detail::larger<std::size_t>(1, detail::ceil_div<std::size_t>(source.size(), tile)),
                 detail::scratch_bytes_of(run), run);
  };
  put_some(larger.table(),
           pairs{{table()}, {table()}, 0, 0});  // so that the kernels are loaded, which takes memory, too
  put_some(larger.table(), some{left.data(), {}, 0, 0});
  place.synchronize();
  const detail::calls_between_pieces none(nullptr);
  bodies_.make_room(target.slots(), near);  // nothing can fail after it

  const auto bytes_at = [&](std::uint64_t slot, std::uint64_t near_slots) {
    return reinterpret_cast<std::byte*>(slot < near_slots ? bodies_.near() + slot
                                                          : bodies_.far() + (slot - near_slots));
  };
  const auto piece = [&](std::size_t i) {
    const std::uint64_t part = parts - 1 - i;
    return detail::staged_piece{bytes_at(part * from_slots, bodies_.near_size()), from_bytes,
                                bytes_at(part * to_slots, near), from_bytes, to_bytes};
  };
  staging.each(parts, piece, [&](std::size_t i, std::byte* buffer) {
    const std::uint64_t part = parts - 1 - i;
    const ref_type source = detail::staged(table(), buffer, part, from_slots);
    put_some(detail::staged(larger.table(), buffer + from_bytes, part, to_slots),
             pairs{{source}, {source}, part * from_slots, from_slots});
  });
  std::swap(bodies_, larger.bodies_);
  larger.bodies_.resize(target.slots(), near);
  larger.known_ = std::nullopt;
  *this = std::move(larger);
  place.copy_to_host(&sum, counted.data(), sizeof(sum));
  if (sum.left != 0) {
    put_some(table(), some{left.data(), {}, 0, sum.left});
    place.copy_to_host(&sum, counted.data(), sizeof(sum));
  }
  known_ = {sum.inserted, 0};
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::reserve(const Place& place, std::size_t n) {
  if (n > limit()) rehash(place, n);
}

template <class Key, class Value, class Place>
void stadium_map<Key, Value, Place>::sweep(const Place& place) {
  std::vector<detail::region_sweep> facts(plan_.regions);
  const auto heads = copy_to_host(place, heads_);
  std::vector<std::int64_t> begin_less_end(
      heads.size() + 1);  // of the runs of regions that keys with the same home have passed
  for (std::size_t r = 0; r < heads.size(); ++r) {
    const std::size_t end = r + heads[r].far, in_line = detail::smaller(end, heads.size());
    ++begin_less_end[r], --begin_less_end[in_line];
    ++begin_less_end[0], --begin_less_end[end - in_line];
  }
  std::int64_t runs = 0;
  for (std::size_t r = 0; r < heads.size(); ++r) facts[r].passed = (runs += begin_less_end[r]) != 0;
  auto regions = copy_to(place, facts);
  array<std::uint32_t, Place> on_ways(place, detail::ceil_div<std::size_t>(capacity(), 32));
  place.fill(on_ways.data(), 0, on_ways.bytes());
  known_ = std::nullopt;
  const detail::calls_between_pieces none(nullptr);
  place.for_each(words_.size(),
                 detail::find_dirty_regions{
                     {words_.data(), plan_.tickets.lowest(), true}, regions.data(), plan_.region_words});
  place.for_each(plan_.regions, detail::forget_walks{regions.data(), heads_.data()});
  place.for_each(capacity(), detail::bring_keys_back<ref_type>{table(), regions.data(), on_ways.data()});
  place.for_each(capacity(), detail::free_slots<ref_type>{table(), regions.data(), on_ways.data()});
  count_slots(place);
  unswept_ = known_->erased;
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert_new(const Place& place, const Keys& keys,
                                                         const Values& values, bulk_options how) {
  return put_all(place, detail::zip_as<Key, Value>(keys, values, "roost::stadium_map::insert_new"),
                 typename ref_type::fresh(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert(const Place& place, const Keys& keys,
                                                     const Values& values, bulk_options how) {
  return put_all(place, detail::zip_as<Key, Value>(keys, values, "roost::stadium_map::insert"),
                 typename ref_type::keep(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
insert_report stadium_map<Key, Value, Place>::insert_or_assign(const Place& place, const Keys& keys,
                                                               const Values& values, bulk_options how) {
  return put_all(place, detail::zip_as<Key, Value>(keys, values, "roost::stadium_map::insert_or_assign"),
                 typename ref_type::assign(), how);
}

template <class Key, class Value, class Place>
template <class Keys, class Values, class F>
insert_report stadium_map<Key, Value, Place>::insert_or_apply(const Place& place, const Keys& keys,
                                                              const Values& values, const F& f,
                                                              bulk_options how) {
  return put_all(place, detail::zip_as<Key, Value>(keys, values, "roost::stadium_map::insert_or_apply"),
                 typename ref_type::template apply<F>{f}, how);
}

template <class Key, class Value, class Place>
template <class F>
std::size_t stadium_map<Key, Value, Place>::erase_if(const Place& place, const F& f) {
  const auto before = std::exchange(known_, std::nullopt);
  const std::size_t count = place.sum(capacity(), detail::erase_slot_if<ref_type, F>{table(), f});
  if (before) known_ = {before->live - count, before->erased + count};
  return count;
}

template <class Key, class Value, class Place>
template <class Keys>
std::size_t stadium_map<Key, Value, Place>::erase(const Place& place, const Keys& keys, bulk_options how) {
  const auto sequence = detail::sequence_as<Key>(keys);
  array<bool, Place> erased(place, sequence.size());
  const auto regions = regions_for(place, sequence, how);
  const auto before = std::exchange(known_, std::nullopt);
  detail::probe_all(place, table(), bytes(), sequence, detail::write_erased{erased.data()}, how, regions);
  const std::size_t count = place.sum(sequence.size(), detail::is_true{erased.data()});
  if (before) known_ = {before->live - count, before->erased + count};
  return count;
}

template <class Key, class Value, class Place>
template <class Operations, class Results>
bulk_report stadium_map<Key, Value, Place>::run(const Place& place, const Operations& operations,
                                                Results&& results, bulk_options how) {
  const auto sequence = detail::sequence_as<operation<Key, Value>>(operations);
  auto* const target =
      detail::output<operation_result<Value>>(results, sequence.size(), "roost::stadium_map::run");
  known_ = std::nullopt;
  // Never streamed, whatever `how` says: inserts could not continue beyond a part.
  const auto regions =
      regions_for(place, sequence.size(), {.path = path::regional}, false, {}, [] { return std::size_t{0}; });
  return detail::probe_all(place, table(), bytes(), sequence, detail::write_operation_result<Value>{target},
                           how, regions);
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report stadium_map<Key, Value, Place>::find(const Place& place, const Queries& queries,
                                                 Results&& results, Value missing, bulk_options how) const {
  return detail::find_values(place, lookups(), bytes(), queries, results, missing, how,
                             "roost::stadium_map::find", regions_for(place, queries, how));
}

template <class Key, class Value, class Place>
template <class Queries, class Results, class Found>
  requires(!std::is_convertible_v<Found, Value>)
bulk_report stadium_map<Key, Value, Place>::find(const Place& place, const Queries& queries,
                                                 Results&& results, Found&& found, bulk_options how) const {
  return detail::find_values_there(place, lookups(), bytes(), queries, results, found, how,
                                   "roost::stadium_map::find", regions_for(place, queries, how));
}

template <class Key, class Value, class Place>
template <class Queries, class Results>
bulk_report stadium_map<Key, Value, Place>::contains(const Place& place, const Queries& queries,
                                                     Results&& results, bulk_options how) const {
  return detail::find_contained(place, lookups(), bytes(), queries, results, how,
                                "roost::stadium_map::contains", regions_for(place, queries, how));
}

template <class Key, class Value, class Place>
template <class Queries>
std::size_t stadium_map<Key, Value, Place>::count_found(const Place& place, const Queries& queries) const {
  return detail::count_all(place, lookups(), bytes(), queries, path::automatic,
                           regions_for(place, queries, {}));
}

template <class Key, class Value, class Place>
template <class Keys, class Values>
std::size_t stadium_map<Key, Value, Place>::retrieve_all(const Place& place, Keys&& keys,
                                                         Values&& values) const {
  const std::size_t n = size(place);
  Key* const keys_to = detail::output<Key>(keys, n, "roost::stadium_map::retrieve_all");
  Value* const values_to = detail::output<Value>(values, n, "roost::stadium_map::retrieve_all");
  detail::retrieve_pairs(place, ref(), keys_to, values_to, n);
  return n;
}

template <class Key, class Value, class Place>
template <class F>
void stadium_map<Key, Value, Place>::for_each(const Place& place, const F& f) const {
  place.for_each(capacity(), detail::visit_slot<reader_type, F>{lookups(), f});
}

template <class Key, class Value, class Place>
stadium_statistics stadium_map<Key, Value, Place>::statistics(const Place& place) const {
  stadium_statistics result;
  result.size = size(place);
  result.erased =
      place.sum(words_.size(), detail::tickets_of_word{words_.data(), plan_.tickets.lowest(), true});
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
  const auto sequence = detail::sequence_as<Key>(queries);
  array<std::uint64_t, Place> sums(place, 4);
  array<std::uint32_t, Place> most(place, 1);
  place.fill(sums.data(), 0, sums.bytes());
  place.fill(most.data(), 0, most.bytes());
  place.for_each(sequence.size(), detail::add_cost<reader_type, std::remove_const_t<decltype(sequence)>>{
                                      ref(), sequence, sums.data(), most.data()});
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
