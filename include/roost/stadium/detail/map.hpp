#pragma once

#include <numeric>
#include <optional>
#include <vector>

#include "roost/stadium/detail/kernels.hpp"
#include "roost/stadium/detail/streaming.hpp"
#include "roost/stadium/stadium_options.hpp"

// The table of a stadium_map, and what changes it in bulk: inserts, growth, sweeps.

namespace roost::detail {

template <class Key, class Value, class Place>
struct stadium_file;

/// A board of tickets and the bodies of its slots.
template <class Key, class Value, class Place>
class stadium_table {
 public:
  using ref_type = ticket_board::table<Place, Key, Value>;
  using reader_type = ticket_board::reader<Place, Key, Value>;
  using item = typename reader_type::item;
  using head = ticket_board::region_head;

  /// With room for n keys.
  stadium_table(const Place& place, std::size_t n, const stadium_options& options)
      : stadium_table(place, plan_for(n, options), options) {}
  stadium_table(const Place& place, const ticket_board::plan& plan, const stadium_options& options)
      : stadium_table(place, plan, options, {place, plan.slots(), near_slots(place, plan, options)}) {}

  void clear(const Place& place) {
    place.fill(words_.data(), 0xff, words_.bytes());
    place.fill(heads_.data(), 0, heads_.bytes());
    place.fill(guards_.data(), 0, guards_.bytes());
    known_ = slots_in_use();
    unswept_ = 0;
  }

  ref_type ref() const {
    ref_type result(
        {const_cast<std::uint64_t*>(words_.data()), const_cast<head*>(heads_.data()),
         const_cast<std::uint32_t*>(guards_.data()), bodies_.near(), bodies_.far(), bodies_.near_size()},
        plan_);
    result.refer_to(life_);
    return result;
  }
  /// For bulk lookups.
  reader_type reader() const {
    auto where = ref().where();
    where.at_rest = known_.has_value();  // no ref for changes exists
    return {where, plan_};
  }
  /// Refs may change the table from now on.
  void forget() { known_ = std::nullopt; }

  std::size_t capacity() const { return plan_.slots(); }
  std::size_t bytes() const { return board_bytes() + bodies_.bytes(); }
  std::size_t limit() const {
    return static_cast<std::size_t>(options_.load_factor * static_cast<double>(capacity()));
  }

  /// The number of keys, or of slots of erased keys.
  std::size_t count(const Place& place, bool erased = false) const {
    return place.sum(words_.size(), tickets_of_word{words_.data(), plan_.tickets.lowest(), erased});
  }

  stadium_statistics statistics(const Place& place) const {
    const std::size_t size = count(place);
    return {.size = size,
            .erased = count(place, true),
            .capacity = capacity(),
            .regions = plan_.regions,
            .load_factor = static_cast<double>(size) / static_cast<double>(capacity()),
            .board_bytes = board_bytes(),
            .place_bytes = bodies_.near_bytes(),
            .host_bytes = bodies_.far_bytes()};
  }

  template <class Queries>
  lookup_costs costs(const Place& place, const Queries& queries) const {
    auto sums = zeros(place, 4);
    auto most = zeros<std::uint32_t>(place, 1);
    place.for_each(queries.size(), add_cost<reader_type, Queries>{ref(), queries, sums.data(), most.data()});
    const auto sum = copy_to_host(place, sums);
    return {queries.size(), sum[0], sum[1], sum[2], sum[3], read_one(place, most.data())};
  }

  /// Whether no ticket is in a transient state, and none is outside the slots.
  bool good_tickets(const Place& place) const {
    return place.sum(words_.size(), bad_word{words_.data(), plan_, plan_.tickets.lowest()}) == 0;
  }
  bool valid(const Place& place) const {
    return good_tickets(place) && place.sum(guards_.size(), is_odd{guards_.data()}) == 0 &&
           place.sum(capacity(), good_slot<reader_type>{ref()}) == count(place);
  }

  /// How queries are split by region.
  template <class Queries>
  stadium_regions<Place> regions_for(const Place& place, const Queries& queries,
                                     const bulk_options& how) const {
    const auto sequence = sequence_as<Key>(queries);
    const std::size_t n = sequence.size();
    return regions_for(place, n, how, known_.has_value(), {.in = true, .out = false}, [&] {
      const std::size_t sample = smaller(n, stadium_tuning<Place>::far_sample), step = n / sample;
      using looks = may_be_present<reader_type, std::remove_const_t<decltype(sequence)>>;
      return place.sum(sample, looks{reader(), sequence, step}) * step;
    });
  }

  template <class Queries>
  auto lookups(const Place& place, const Queries& queries, const bulk_options& how) const {
    return bulk_lookups(place, reader(), bytes(), how, regions_for(place, queries, how));
  }

  template <class Change, class Source>
  insert_report put_all(const Place& place, const Source& source, const Change& change,
                        const bulk_options& how) {
    insert_report report;
    const std::size_t n = source.size();
    if (n == 0) return report;
    sweep_if_it_pays(place, report);
    constexpr bool all_new = !Change::searches;
    if (all_new && options_.grows) make_room(place, n, report);
    const bool grows = options_.grows && !all_new && room() < n;
    const bool is_empty = known_->live + known_->erased == 0;  // then no body is read
    bulk_options chosen = how;
    if (grows && how.path == path::streamed)
      chosen.path = path::regional;  // since the map may have to grow during the insert
    auto regions = regions_for(place, n, chosen, !grows, {.in = !is_empty, .out = true}, [&] { return n; });
    std::size_t first = 0;
    if (goes_by_region(how.path, regions.template pays<ref_type>(bytes(), n))) {
      report.path = regions.path;
      first = put_by_region(place, source, regions, insert_kind<Change>{change, grows}, how, report);
      if (first < n) report.path = path::direct;
    }
    if (first < n)
      put(place, part_of<Source, all_wanted>{source, {}, first, n - first}, change, grows, report);
    report.present = n - report.inserted - report.full;
    return report;
  }

  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, const bulk_options& how) {
    array<bool, Place> erased(place, keys.size());
    const bulk_lookups erasing(place, ref(), bytes(), how, regions_for(place, keys, how));
    const auto before = std::exchange(known_, std::nullopt);
    erasing.answer(keys, write_erased{erased.data()});
    return note_erased(before, place.sum(keys.size(), is_value<bool>{erased.data(), true}));
  }
  template <class F>
  std::size_t erase_if(const Place& place, const F& f) {
    const auto before = std::exchange(known_, std::nullopt);
    return note_erased(before, place.sum(capacity(), erase_slot_if<ref_type, F>{ref(), f}));
  }

  template <class Operations>
  bulk_report run(const Place& place, const Operations& operations, operation_result<Value>* results,
                  const bulk_options& how) {
    forget();
    // Never streamed, whatever `how` says: inserts could not continue beyond a part.
    auto regions = regions_for(place, operations.size(), {.path = path::regional}, false, {},
                               [] { return std::size_t{0}; });
    return bulk_lookups(place, ref(), bytes(), how, std::move(regions))
        .answer(operations, write_operation_result<Value>{results});
  }

  void rehash(const Place& place, std::size_t n) {
    using plan = ticket_board::plan;
    n = larger(n, count(place));
    const double slots = slots_for(n, options_);
    if (bodies_.can_grow() && plan_.regions % plan::parts_least == 0 &&
        slots > static_cast<double>(capacity())) {
      // More regions, and the same number of parts. Many parts, as long as whole regions exceed the requested
      // slots only slightly.
      const std::uint32_t parts =
          plan_.parts(larger(plan::parts_least, smaller(plan::parts_most, plan_.regions / 8)));
      const auto rounded = [](double x, double of) { return std::ceil(x / of) * of; };
      // A multiple of this many regions can be streamed in the largest possible number of parts.
      const double unit = std::lcm(parts, plan::parts_most);
      double regions = rounded(slots / plan_.region_slots, parts);
      if (regions >= 8 * unit) regions = rounded(regions, unit);
      try {
        return grow(place, plan_.template of_regions<Place>(regions), parts);
      } catch (const out_of_memory&) {  // a second table may take less memory of the place
      }
    }
    stadium_table target(place, n, options_);
    insert_report report;
    target.put(place, pairs_of(ref(), 0, capacity()), typename ref_type::fresh(), false, report);
    *this = std::move(target);
  }

  void sweep(const Place& place) {
    auto regions = copy_to(place, swept_regions(place));
    auto passed_slots = zeros<std::uint32_t>(place, ceil_div<std::size_t>(capacity(), 32));
    forget();
    const calls_between_pieces none(nullptr);
    const tickets_of_word erased{words_.data(), plan_.tickets.lowest(), true};
    place.for_each(words_.size(), find_erased{erased, regions.data(), plan_.region_words});
    place.for_each(plan_.regions, reset_heads{regions.data(), heads_.data()});
    place.for_each(capacity(), move_keys_back<ref_type>{ref(), regions.data(), passed_slots.data()});
    place.for_each(capacity(), free_slots<ref_type>{ref(), regions.data(), passed_slots.data()});
    count_slots(place);
    unswept_ = known_->erased;
  }

 private:
  friend struct stadium_file<Key, Value, Place>;
  template <class, class>
  friend struct tile_inserter;
  using some_items = part_of<const item*, all_wanted>;

  struct slots_in_use {
    std::size_t live = 0, erased = 0;  // erased: an upper bound
  };

  stadium_table(const Place& place, const ticket_board::plan& plan, const stadium_options& options,
                body_memory<item, Place>&& bodies)
      : options_(options),
        plan_(plan),
        words_(place, plan.words()),
        heads_(place, plan.regions),
        guards_(place, plan.guards),
        bodies_(std::move(bodies)),
        life_(place) {
    clear(place);
  }

  static ticket_board::plan plan_for(std::size_t n, const stadium_options& options) {
    if (!(options.load_factor > 0 && options.load_factor <= 1)) {
      raise<invalid_argument>(
          {"roost::stadium_map: load factor ", options.load_factor, "; give more than 0 and at most 1"});
    }
    const std::uint32_t region_slots =
        options.region_slots != 0 ? options.region_slots : stadium_tuning<Place>::region_slots;
    return ticket_board::make_plan<Place>(slots_for(n, options), options.ticket_bits, region_slots,
                                          options.seed);
  }

  /// The smallest number of slots whose load factor allows n keys.
  static double slots_for(std::size_t n, const stadium_options& options) {
    const auto keys = static_cast<double>(n);
    double slots = std::floor(keys / options.load_factor);  // which rounding may have made too few
    for (int i = 0; i < 2 && std::floor(options.load_factor * slots) < keys; ++i) ++slots;
    return slots;
  }

  /// The slots whose bodies are in memory of the place: those of whole parts, so that no part is in both
  /// memories, or of whole regions if they are few.
  static std::size_t near_slots(const Place& place, const ticket_board::plan& plan,
                                const stadium_options& options) {
    if (options.bodies == residence::host) return 0;
    if (options.bodies == residence::place) return plan.slots();
    const std::size_t budget = options.budget != ~std::size_t{0} ? options.budget : free_bytes(place);
    const std::uint64_t part_slots = plan.slots() / plan.parts(ticket_board::plan::parts_least);
    return smaller<std::size_t>(budget / (part_slots * sizeof(item)), plan.slots() / part_slots) * part_slots;
  }

  std::size_t board_bytes() const { return words_.bytes() + heads_.bytes() + guards_.bytes(); }
  std::size_t room() const { return limit() - smaller(limit(), known_->live); }
  board_filler<ref_type> inserter() const { return {ref()}; }
  /// The pairs of `count` slots from `first` on.
  static auto pairs_of(const ref_type& table, std::uint64_t first, std::uint64_t count) {
    return part_of<pair_of_slot<ref_type>, is_occupied<ref_type>>{{table}, {table}, first, count};
  }

  void count_slots(const Place& place) { known_ = {count(place), count(place, true)}; }
  std::size_t note_erased(const std::optional<slots_in_use>& before, std::size_t n) {
    if (before) known_ = {before->live - n, before->erased + n};
    return n;
  }

  /// The plan of n queries or pairs by region. `bodies()` estimates how many bodies they read or write, and
  /// is called only if that may matter: streaming copies all bodies in host memory, which pays if a large
  /// enough share of them is used. `unchanged`: nothing else changes the map.
  template <class Bodies>
  stadium_regions<Place> regions_for(const Place& place, std::size_t n, const bulk_options& how,
                                     bool unchanged, staged_copies copies, const Bodies& bodies) const {
    using tuned = stadium_tuning<Place>;
    using regions = stadium_regions<Place>;
    const std::size_t far = bodies_.far_bytes(), parts = plan_.parts(), part_slots = plan_.slots() / parts;
    const bool reaches_far = far > tuned::far_reach && n >= tuned::far_queries;
    const auto pays = [&] {  // for each chunk of the batch
      if (how.path != path::automatic || !reaches_far || !unchanged ||
          part_slots * sizeof(item) > tuned::staged_bytes_most)
        return false;
      const std::size_t chunk =
          smaller<std::size_t>(n, how.scratch_bytes_or(regions::scratch_bytes(place)) / (2 * sizeof(item)));
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

  /// Queues kernels that insert all pairs of a source; pairs that find no room go to `left`.
  template <class Source, class Change>
  static void launch_tiles(const Place& place, const ref_type& table, const Source& source,
                           const Change& change, const left_over<item>& left, std::size_t teams_least = 0) {
    using kernel = put_tiles<Place, board_filler<ref_type>, Source, Change>;
    const std::uint32_t tile = kernel::tile_for(source.size());
    const kernel run{{table}, source, change, tile, {}, left};
    place.launch(larger(teams_least, ceil_div<std::size_t>(source.size(), tile)), scratch_bytes_of(run), run);
  }

  /// Calls insert(), which returns the counts of its teams. If it throws, the counts are unknown.
  template <class Insert>
  put_counts noting_inserted(insert_report& report, const Insert& insert) {
    const auto before = std::exchange(known_, std::nullopt);
    const put_counts sum = insert();
    known_ = {before->live + sum.inserted, before->erased};
    report.inserted += sum.inserted;
    return sum;
  }

  /// Inserts the pairs of a source. If the map grows, it does so when it reaches its load factor.
  template <class Change, class Source>
  void put(const Place& place, const Source& source, const Change& change, bool grows,
           insert_report& report) {
    for (;;) {
      const bool once = grows && !Change::repeatable;  // changes that must not be repeated
      array<item, Place> left(place, once ? source.size() : 0);
      const auto sum = tile_inserter{place, *this, grows, report}.run(source, change, left);
      if (sum.left == 0) return;
      if (!grows) {
        report.full += sum.left;
        return;
      }
      // Tiles that begin at the same time can hold more pairs than there is room for.
      make_room(place, sum.left, report);
      if constexpr (!Change::repeatable)
        return put(place, some_items{left.data(), {}, 0, sum.left}, change, grows, report);
    }
  }

  /// What an insert does to present keys, and whether the map grows meanwhile.
  template <class Change>
  struct insert_kind {
    const Change& change;
    bool grows;
  };

  /// Inserts the pairs of a source, region by region. Returns how many of its first pairs it has inserted:
  /// not all if memory ran out for a path that was chosen automatically; then the direct path, which needs
  /// none, continues.
  template <class Change, class Source>
  std::size_t put_by_region(const Place& place, const Source& source, stadium_regions<Place>& regions,
                            const insert_kind<Change>& kind, const bulk_options& how, insert_report& report) {
    const std::size_t n = source.size();
    const auto plan = regions.plan(bytes(), n, 2 * sizeof(item), how);
    std::size_t first = 0;
    bool begun = false;
    try {
      for (; first < n; first += plan.chunk) {
        begun = false;
        partitioner<Place, item> partitioner(place, plan.regions);
        const auto parts =
            partitioner.run(part_of<Source, all_wanted>{source, {}, first, smaller(plan.chunk, n - first)},
                            ref().hash_order(plan.regions));
        if (regions.streams()) {
          put_streamed(place, parts, regions, kind.change, report, begun);
          regions.copies({.in = true, .out = true});
        } else {
          begun = true;
          put(place, some_items{parts.items(), {}, 0, parts.extent()}, kind.change, kind.grows, report);
        }
      }
    } catch (const out_of_memory&) {
      if (how.path != path::automatic || begun) throw;
    }
    return first;
  }

  /// Inserts partitioned pairs part by part, while the bodies of the part are in memory of the place. The
  /// table has room for them, or does not grow.
  template <class Change, class Parts>
  void put_streamed(const Place& place, const Parts& parts, const stadium_regions<Place>& regions,
                    const Change& change, insert_report& report, bool& begun) {
    const auto begins = copy_to_host(place, std::span(parts.begins(), parts.regions())),
               ends = copy_to_host(place, std::span(parts.ends(), parts.regions()));
    const calls_between_pieces none(nullptr);  // bodies whose slots are reserved are written later
    // Pairs for which their parts have no room.
    array<item, Place> left(
        place, Change::repeatable ? larger<std::size_t>(4096, parts.extent() / 64) : parts.extent());
    auto counted = zeros<put_counts>(place, 1);
    begun = true;
    const put_counts sum = noting_inserted(report, [&] {
      regions.run(ref(), parts.regions(),
                  [&](const ref_type& here, std::uint32_t first, std::uint32_t count) {
                    const std::uint64_t begin = begins[first], n = ends[first + count - 1] - begin;
                    launch_tiles(place, here, some_items{parts.items(), {}, begin, n}, change,
                                 {left.data(), left.size(), counted.data()});
                  });
      return read_one(place, counted.data());
    });
    if (sum.left == 0) return;
    if (sum.left <= left.size())
      return put(place, some_items{left.data(), {}, 0, sum.left}, change, false, report);
    // Which pairs these are is unknown: all are inserted again, which does not change those already stored.
    using again = std::conditional_t<Change::searches, Change, typename ref_type::keep>;
    put(place, some_items{parts.items(), {}, 0, parts.extent()}, again(), false, report);
  }

  /// Makes room for `more` keys if there is less and the map grows.
  void make_room(const Place& place, std::size_t more, insert_report& report) {
    if (room() >= more) return;
    const std::size_t least = known_->live + more;
    for (const std::size_t spare : {limit(), limit() / 8, std::size_t{0}}) {
      try {
        rehash(place, larger(least, limit() + spare));
        break;
      } catch (const out_of_memory&) {  // try less room
        if (limit() + spare <= least) throw;
      }
    }
    ++report.rehashes;
  }

  bool sweep_pays() const {
    return known_->erased - smaller(known_->erased, unswept_) > (capacity() - known_->live) / 2;
  }
  void sweep_if_it_pays(const Place& place, insert_report& report) {
    if (!known_) count_slots(place);
    if (!sweep_pays()) return;
    count_slots(place);  // inserts may have used such slots
    unswept_ = smaller(unswept_, known_->erased);
    if (!sweep_pays()) return;
    try {
      sweep(place);
      ++report.rehashes;
    } catch (const out_of_memory&) {  // the insert may not need the room
      if (!known_) count_slots(place);
    }
  }

  /// For each region, whether keys with their home before it have passed it.
  std::vector<region_sweep> swept_regions(const Place& place) const {
    const auto heads = copy_to_host(place, heads_);
    std::vector<region_sweep> result(heads.size());
    // How many runs of regions, each passed by the keys of one home, begin at a region, less those that end.
    std::vector<std::int64_t> begin_less_end(heads.size() + 1);
    for (std::size_t r = 0; r < heads.size(); ++r) {
      const std::size_t end = r + heads[r].far, in_line = smaller(end, heads.size());
      ++begin_less_end[r], --begin_less_end[in_line];
      ++begin_less_end[0], --begin_less_end[end - in_line];
    }
    std::int64_t runs = 0;
    for (std::size_t r = 0; r < heads.size(); ++r) result[r].passed = (runs += begin_less_end[r]) != 0;
    return result;
  }

  /// How many keys may find no room in their part of a larger table.
  std::size_t left_most(const Place& place, const stadium_table& target, std::uint32_t parts) const {
    auto keys = zeros<std::uint32_t>(place, target.plan_.regions);
    auto left = zeros(place, 1);
    place.for_each(capacity(),
                   count_left_most<ref_type>{ref(), target.ref(), capacity() / parts,
                                             target.plan_.regions / parts, keys.data(), left.data()});
    return read_one(place, left.data());
  }

  /// Grows in place: moves the keys to more regions of the same number of slots. The host memory of the
  /// bodies is extended, and the parts of the table are moved in order, the last one first, so that no body
  /// is overwritten before it has moved. Takes memory of the place for the board and for some parts. Throws
  /// out_of_memory, and then nothing has changed.
  void grow(const Place& place, const ticket_board::plan& plan, std::uint32_t parts) {
    const std::uint64_t from_slots = plan_.slots() / parts, to_slots = plan.slots() / parts;
    const std::uint64_t unit = plan.slots() / plan.parts(ticket_board::plan::parts_least);
    const std::uint64_t near = bodies_.near_size() / unit * unit;
    const std::size_t from_bytes = from_slots * sizeof(item), to_bytes = to_slots * sizeof(item);

    stadium_table target(place, plan, options_, body_memory<item, Place>(place, 0, 0));
    array<item, Place> left(place, left_most(place, target, parts));
    auto counted = zeros<put_counts>(place, 1);
    staging<Place> staging(place, from_bytes + to_bytes);
    const auto put_some = [&](const ref_type& there, const auto& source) {
      launch_tiles(place, there, source, typename ref_type::fresh(),
                   {left.data(), left.size(), counted.data()}, 1);
    };
    // So that the kernels are loaded, which takes memory, too.
    put_some(target.ref(), pairs_of(ref(), 0, 0));
    put_some(target.ref(), some_items{left.data(), {}, 0, 0});
    place.synchronize();
    const calls_between_pieces none(nullptr);
    bodies_.make_room(plan.slots(), near);  // nothing can fail after it

    const auto bytes_at = [&](std::uint64_t slot, std::uint64_t near_slots) {
      return reinterpret_cast<std::byte*>(slot < near_slots ? bodies_.near() + slot
                                                            : bodies_.far() + (slot - near_slots));
    };
    const auto piece = [&](std::size_t i) {
      const std::uint64_t part = parts - 1 - i;
      return staged_piece{bytes_at(part * from_slots, bodies_.near_size()), from_bytes,
                          bytes_at(part * to_slots, near), from_bytes, to_bytes};
    };
    staging.each(parts, piece, [&](std::size_t i, std::byte* buffer) {
      const std::uint64_t part = parts - 1 - i;
      const ref_type source = staged(ref(), buffer, part, from_slots);
      put_some(staged(target.ref(), buffer + from_bytes, part, to_slots),
               pairs_of(source, part * from_slots, from_slots));
    });
    std::swap(bodies_, target.bodies_);
    target.bodies_.resize(plan.slots(), near);
    target.forget();
    *this = std::move(target);
    put_counts sum = read_one(place, counted.data());
    if (sum.left != 0) {
      put_some(ref(), some_items{left.data(), {}, 0, sum.left});
      sum = read_one(place, counted.data());
    }
    known_ = {sum.inserted, 0};
  }

  stadium_options options_;
  ticket_board::plan plan_;
  array<std::uint64_t, Place> words_;
  array<head, Place> heads_;
  array<std::uint32_t, Place> guards_;
  body_memory<item, Place> bodies_;
  std::optional<slots_in_use> known_ = slots_in_use();
  std::size_t unswept_ = 0;  // slots of erased keys that the last sweep could not free
  [[no_unique_address]] ref_life<Place> life_;
};

}  // namespace roost::detail
