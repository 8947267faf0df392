#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "roost/concurrent_options.hpp"
#include "roost/detail/concurrent/region_fill.hpp"
#include "roost/detail/place/arrays.hpp"

namespace roost {

namespace detail {

/// The slots of a concurrent_map: their memory, bounds on those in use, and bulk changes, which make room.
template <class Key, class Value, class Place>
class slot_table {
 public:
  using item = pair<Key, Value>;
  using table_type = probing::table<Place, Key, Value>;
  using reader_type = probing::reader<Place, Key, Value>;
  using bucket = typename table_type::bucket;
  using keep = typename table_type::keep;
  using counts = put_counts;

  slot_table(const Place& place, std::size_t n, const concurrent_options& chosen)
      : slot_table(place, plan_for(static_cast<double>(n), chosen), nullptr, chosen) {}

  slot_table(const Place& place, std::span<std::byte> storage, const concurrent_options& chosen)
      : slot_table(place, probing::make_plan_within<Place, Key, Value>(storage.size(), checked(chosen).seed),
                   aligned(storage.data()), chosen) {
    options_.grows = false;
  }

  static std::size_t storage_bytes(std::size_t n, const concurrent_options& options) {
    const auto slots_within = [](std::size_t bytes) {
      return probing::make_plan_within<Place, Key, Value>(bytes, 0).buckets() * table_type::bucket_slots;
    };
    std::size_t bytes = plan_for(static_cast<double>(n), options).buckets() * sizeof(bucket);
    while (static_cast<double>(slots_within(bytes)) * options.load_factor < static_cast<double>(n))
      bytes += larger(bytes / 128, sizeof(bucket));
    return bytes;
  }

  const table_type& table() const { return table_; }
  const reader_type& reader() const { return table_; }
  std::size_t capacity() const { return table().capacity(); }
  std::size_t bytes() const { return plan().buckets() * sizeof(bucket); }

  double load_factor(const Place& place) const {
    return static_cast<double>(place.sum(capacity(), is_taken<table_type>{table()})) /
           static_cast<double>(capacity());
  }

  /// From now on refs may change slots.
  void forget() { most_ = std::nullopt; }
  /// Refs that were taken before are no longer valid.
  void end_refs(const Place& place) {
    life_ = ref_life(place);
    table_.refer_to(life_);
  }

  void clear(const Place& place) {
    place.fill(buckets(), 0, bytes());  // free slots are zeros
    most_ = slots_in_use();
  }

  std::size_t size(const Place& place) const {
    return place.sum(capacity(), is_occupied<table_type>{table()});
  }

  template <class Source, class Wanted, class Change>
  insert_report put_all(const Place& place, const Source& source, const Wanted& wanted, const Change& change,
                        const bulk_options& how) {
    insert_report report;
    const std::size_t n = source.size();
    std::size_t first = 0, expected = n;
    sample_first order;
    const auto put_part = [&](std::size_t count) {
      const part_of<Source, Wanted, sample_first> part{source, wanted, first, count, order};
      put(place, part, change, how, expected, report);
      first += count;
    };
    if (options_.grows && n != 0) {
      if (!most_) count_slots(place);
      const bool by_region = std::is_same_v<Wanted, all_wanted> && goes_by_region(n, how);
      if (!by_region && static_cast<double>(most_->live + n) <= limit()) make_room(place, n, report);
      if (room(by_region) < n) {  // there may be enough room after all: a sample shows how many keys are new
        // A different sample each time: after an interrupted call, the keys of its sample are present.
        order = sample_first::of(n, most_->live);
        if (order.sampled != 0) {
          expected = order.sampled;
          put_part(order.sampled);
          const double share = 1.05 * static_cast<double>(report.inserted) / static_cast<double>(first);
          expected = static_cast<std::size_t>(std::min(share, 1.0) * static_cast<double>(n - first));
          make_room(place, expected, report);
        }
      }
    }
    if (first < n) put_part(n - first);
    std::size_t pairs = n;
    if constexpr (!std::is_same_v<Wanted, all_wanted>) pairs = place.sum(n, wanted);
    report.present = pairs - report.inserted - report.full;
    return report;
  }

  template <class Keys>
  std::size_t erase(const Place& place, const Keys& keys, bulk_options how) {
    const auto sequence = sequence_as<Key>(keys);
    array<bool, Place> erased(place, sequence.size());
    return noting_erased([&] {
      bulk_lookups(place, table(), bytes(), how).answer(sequence, write_erased{erased.data()});
      return place.sum(sequence.size(), is_value<bool>{erased.data(), true});
    });
  }

  /// `table`: the slots, as users see them.
  template <class Table, class F>
  std::size_t erase_if(const Place& place, const Table& table, const F& f) {
    return noting_erased([&] { return place.sum(capacity(), erase_slot_if<Table, F>{table, f}); });
  }

  /// What moves with the keys: called with their new table, before it replaces this one; it may throw.
  using companion = std::function<void(const table_type&)>;

  void reserve(const Place& place, std::size_t n, const companion& along = {}) {
    count_slots(place);
    if (n <= most_->live || n - most_->live <= room()) return along ? along(table()) : void();
    if (static_cast<double>(n) <= limit() && move(place, {}, false, along)) return;  // without erased keys
    move_to(place, std::max(static_cast<double>(n), limit()), false, along);
  }

  void move_to(const Place& place, double n, bool other_hash = false, const companion& along = {}) {
    if (!move(place, n, other_hash, along)) {
      raise<build_error>({"roost::concurrent_map: the keys found no room in a table for ", n,
                          "; rehash for more, or make the map with another seed"});
    }
  }

  concurrent_statistics statistics(const Place& place) const {
    constexpr std::uint32_t most = probing::buckets_in_reach;
    auto by_probes = zeros(place, most);
    place.for_each(capacity(), count_probes<reader_type>{reader(), by_probes.data(), most});
    concurrent_statistics result;
    result.capacity = capacity();
    result.bytes = bytes();
    std::uint64_t probes = 0, i = 0;
    for (const std::uint64_t keys : copy_to_host(place, by_probes)) {
      ++i;
      result.keys_by_probes.push_back(keys);
      result.size += keys;
      probes += keys * i;
      if (keys != 0) result.most_probes = static_cast<std::uint32_t>(i);
    }
    result.keys_by_probes.resize(result.most_probes);
    result.erased = place.sum(capacity(), is_taken<reader_type>{reader()}) -
                    result.size;  // slots are not freed, so there are no fewer than before
    if (result.size != 0) result.mean_probes = static_cast<double>(probes) / static_cast<double>(result.size);
    result.load_factor =
        static_cast<double>(result.size + result.erased) / static_cast<double>(result.capacity);
    return result;
  }

  bool valid(const Place& place) const {
    return place.sum(capacity(), is_neither_free_nor_taken<reader_type>{reader()}) == 0 &&
           place.sum(capacity(), good_slot<reader_type>{reader()}) == size(place);
  }

 private:
  template <class, class>
  friend struct tile_inserter;

  struct leave_it {
    void operator()(bucket*) const {}
  };
  struct slots_in_use {
    std::size_t live = 0, erased = 0;
  };

  slot_table(const Place& place, const probing::plan& plan, bucket* storage, const concurrent_options& chosen)
      : options_(checked(chosen)),
        owned_(place, storage != nullptr ? 0 : plan.buckets()),
        borrowed_(storage),
        table_(buckets(), plan) {
    end_refs(place);
    clear(place);
  }

  static bucket* aligned(std::byte* storage) {
    if (reinterpret_cast<std::uintptr_t>(storage) % alignof(bucket) == 0)
      return reinterpret_cast<bucket*>(storage);
    raise<invalid_argument>({"roost::concurrent_map: storage at an address that is no multiple of ",
                             alignof(bucket), "; align it"});
  }

  const probing::plan& plan() const { return table_.geometry(); }
  bucket* buckets() const {
    return borrowed_ != nullptr ? borrowed_.get() : const_cast<bucket*>(owned_.data());
  }
  double limit() const { return options_.load_factor * static_cast<double>(capacity()); }
  table_type inserter() const { return table(); }

  static const concurrent_options& checked(const concurrent_options& options) {
    if (!(options.load_factor > 0 && options.load_factor <= 1)) {
      raise<invalid_argument>(
          {"roost::concurrent_map: load factor ", options.load_factor, "; give more than 0 and at most 1"});
    }
    return options;
  }

  static probing::plan plan_for(double n, const concurrent_options& options) {
    return probing::make_plan<Place, Key, Value>(n / checked(options).load_factor, n, options.seed);
  }

  /// Inserts a part of a batch. `expected`: an estimate of how many of its keys are new.
  template <class Source, class Change>
  void put(const Place& place, const Source& source, const Change& change, const bulk_options& how,
           std::size_t expected, insert_report& report) {
    const std::size_t n = source.size();
    array<item, Place> left;  // pairs that found no room, if they are known
    std::size_t listed = 0;
    if constexpr (Source::all) {
      if (goes_by_region(n, how) &&
          (asks_for_regions(how.path) || !options_.grows || room(true) >= expected)) {
        if (const auto sum = put_by_region(place, source, change, left, how.path, report)) {
          report.path = path::regional;
          if (sum->left == 0) return;
          if (sum->left <= left.size())
            listed = sum->left;  // else reinsert the batch: safe because non-idempotent changes get a list as
                                 // long as the batch
        }
      }
    }
    if (!options_.grows) make_room(place, listed != 0 ? listed : n, report);
    bool last_try = false;
    for (int hashes = 0;;) {
      array<item, Place> next(place, !Change::repeatable && !last_try ? (listed != 0 ? listed : n) : 0);
      using part = part_of<const item*, all_wanted>;
      const auto put_each = [&](const auto& pairs) {
        return tile_inserter{place, *this, options_.grows, report}.run(pairs, change, next).left;
      };
      const std::size_t full = listed != 0 ? put_each(part{left.data(), {}, 0, listed}) : put_each(source);
      if (full == 0) return;
      if (hashes == 8 || last_try) {
        report.full += full;
        return;
      }
      count_slots(place);
      if (!options_.grows) {  // a part of the table may be full of erased keys
        const bool has_room = static_cast<double>(most_->live + full) <= limit();
        if (most_->erased <= (has_room ? 0 : capacity() / 16) || !move(place, {}, false)) {
          report.full += full;
          return;
        }
        ++report.rehashes;
        last_try = true;
      } else if (room() <
                 full) {  // tiles that begin at the same time can hold more pairs than there is room for
        make_room(place, smaller(full, static_cast<std::size_t>(limit()) + 1), report);
      } else {  // there are free slots, but not on the probe sequences of these keys: another hash function
                // spreads them; if three do not, more slots do
        if (hashes >= 3 || !move(place, {}, true)) move_to(place, 1.25 * limit() + 1, true);
        ++report.rehashes;
        ++hashes;
      }
      if (!Change::repeatable) {
        left = std::move(next);
        listed = full;
      }
    }
  }

  /// Calls insert(), which returns the counts of its teams. If it throws, the counts are unknown.
  template <class Insert>
  counts noting_inserted(insert_report& report, const Insert& insert) {
    const auto before = std::exchange(most_, std::nullopt);
    const counts sum = insert();
    most_ = before;
    if (most_)
      *most_ = {most_->live + sum.inserted, most_->erased - smaller<std::size_t>(most_->erased, sum.freed)};
    report.inserted += sum.inserted;
    return sum;
  }

  /// What a table holds before it is filled.
  enum class contents { none, pairs, pairs_and_erased };

  /// Inserts by region the pairs of a source that is already split by region.
  template <class From, class Change>
  static counts fill(const Place& place, const table_type& table, contents held, const From& source,
                     const Change& change, const left_over<item>& left) {
    using kernel = fill_regions<Place, table_type, From, Change>;
    const kernel run{.table = table,
                     .source = source,
                     .change = change,
                     .empty = held == contents::none,
                     .sweeps = held == contents::pairs_and_erased,
                     .left = left};
    place.launch(table.geometry().regions, scratch_bytes_of(run), run);
    return read_one(place, left.counts);
  }

  /// Inserts pairs by region. Returns nothing, and inserts nothing, if there is no memory for that, or if one
  /// region has too many pairs, as with many copies of few keys.
  template <class Source, class Change>
  std::optional<counts> put_by_region(const Place& place, const Source& source, const Change& change,
                                      array<item, Place>& left, path wanted, insert_report& report) {
    array<counts, Place> counted;
    std::optional<partitioned<item, Place>> parts;
    try {
      const std::size_t n = source.size();
      left = array<item, Place>(place, Change::repeatable ? smaller(n, n / 16 + 4096) : n);
      counted = zeros<counts>(place, 1);
      constexpr partition_kind kind{.may_count = false};
      partitioner<Place, item, kind> partitioner(place, plan().regions,
                                                 {room::slack, &counted.data()->overflowed});
      parts.emplace(partitioner.run(source, table().hash_order(plan().regions)));
    } catch (const out_of_memory&) {
      if (asks_for_regions(wanted)) throw;
      return {};
    }
    const auto held = !most_ || most_->erased != 0 ? contents::pairs_and_erased : contents::pairs;
    const pairs_of_partition<item> pairs{parts->items(), parts->begins(), parts->ends(), counted.data()};
    const counts sum = noting_inserted(report, [&] {
      return fill(place, table(), held, pairs, change, {left.data(), left.size(), counted.data()});
    });
    if (sum.overflowed != 0) return {};
    return sum;
  }

  /// Calls erase(), which returns how many keys it has erased. If it throws, the counts are unknown.
  template <class Erase>
  std::size_t noting_erased(const Erase& erase) {
    const auto before = std::exchange(most_, std::nullopt);
    const std::size_t erased = erase();
    most_ = before;
    if (most_) *most_ = {most_->live - smaller(most_->live, erased), most_->erased + erased};
    return erased;
  }

  void count_slots(const Place& place) {
    const std::size_t live = size(place);
    most_ = {live, place.sum(capacity(), is_taken<table_type>{table()}) - live};
  }

  /// How many keys can be inserted before room must be made. By region: that frees slots of erased keys.
  std::size_t room(bool by_region = false) const {
    if (!most_) return 0;
    const double by_slots = (limit() + static_cast<double>(capacity())) / 2 -
                            (by_region ? 0 : static_cast<double>(most_->erased));
    return static_cast<std::size_t>(
        std::max(std::min(limit(), by_slots) - static_cast<double>(most_->live), 0.0));
  }

  /// The approximate number of buckets that an insert of a new key reads while n keys are inserted.
  double buckets_read(std::size_t n) const {
    const double taken =
        most_ ? static_cast<double>(most_->live + most_->erased) + static_cast<double>(n) / 2 : 0;
    return 1 /
           (1 - std::pow(std::min(taken / static_cast<double>(capacity()), 0.97), table_type::bucket_slots));
  }

  /// Whether a batch is inserted by region, if there is memory for that.
  bool goes_by_region(std::size_t n, const bulk_options& how) const {
    using tuned = change_tuning<Place>;
    const bool pays =
        plan().regions >= tuned::regions &&
        static_cast<double>(n) * buckets_read(n) >= static_cast<double>(capacity()) / tuned::regional_share;
    return detail::goes_by_region(how.path, pays);
  }

  /// Frees slots of erased keys, in place; not in regions that were full.
  void sweep(const Place& place, insert_report& report) {
    auto counted = zeros<counts>(place, 1);
    noting_inserted(report, [&] {
      return fill(place, table(), contents::pairs_and_erased, no_pairs(), keep(),
                  {nullptr, 0, counted.data()});
    });
    ++report.rehashes;
  }

  /// Makes room for `more` keys if there is less. Only maps that grow get more slots.
  void make_room(const Place& place, std::size_t more, insert_report& report) {
    if (!most_) count_slots(place);
    if (room() >= more) return;
    if (!options_.grows && most_->erased <= capacity() / 16) return;  // little to gain
    if (most_->erased != 0) {
      sweep(place, report);
      if (room() >= more) return;
    }
    count_slots(place);  // the bounds may be too high
    if (room() >= more) return;
    const auto usable = static_cast<std::size_t>(limit());
    if (!options_.grows) {
      if (most_->erased == 0 || !move(place, {}, false)) return;
    } else if (most_->live + more > usable ||
               !move(place, {}, false)) {  // a map that grows has room after this, or throws
      move_to(place, static_cast<double>(std::max(most_->live + more, 2 * usable)));
    }
    ++report.rehashes;
  }

  /// Moves all keys to a table with room for n keys or, without n, to one of the same size; by region if the
  /// hash function may stay the same. Without n, refs of a map that does not grow stay valid. Returns false
  /// if the keys found no room, or if there was no memory for a table of the same size.
  bool move(const Place& place, std::optional<double> n, bool other_hash, const companion& along = {}) try {
    const table_type old = table();
    const std::size_t live = size(place);
    if (borrowed_ != nullptr && n && *n > limit()) {
      raise<invalid_argument>({"roost::concurrent_map: room for ", *n,
                               " keys was requested, but the storage has room for ", limit(),
                               "; make a map in more storage"});
    }
    const bool same_size = !n || borrowed_ != nullptr;
    const bool refs_stay = !n && !options_.grows;
    double more = 1;
    for (int attempt = 0; attempt < (refs_stay ? 1 : 6); ++attempt, more *= 1.25) {
      probing::plan plan =
          same_size ? this->plan() : plan_for(std::max(*n, static_cast<double>(live)) * more, options_);
      plan.seed = other_hash || attempt >= (same_size ? 1 : 3) ? seed_of_attempt(options_.seed, ++hashes_)
                                                               : this->plan().seed;
      array<bucket, Place> memory(place, plan.buckets());
      const table_type target(memory.data(), plan);
      bool good;
      if (plan.seed == this->plan().seed) {
        auto counted = zeros<counts>(place, 1);
        array<item, Place> left(place, live / 16 + 4096);
        const counts sum = fill(place, target, contents::none, pairs_of_table<table_type>{old, target},
                                keep(), {left.data(), left.size(), counted.data()});
        good =
            sum.left <= left.size() && place.sum(sum.left, insert_item<table_type>{target, left.data()}) == 0;
      } else {
        place.fill(memory.data(), 0, memory.bytes());
        good = place.sum(old.capacity(), copy_slot<table_type>{old, target}) == 0;
      }
      if (!good) continue;
      if (along) along(target);
      if (borrowed_ != nullptr || refs_stay) {
        place.copy(buckets(), memory.data(), memory.bytes());
      } else {
        owned_ = std::move(memory);
      }
      table_ = table_type(buckets(), plan);
      if (!refs_stay) life_ = ref_life(place);
      table_.refer_to(life_);
      most_ = {live, 0};
      return true;
    }
    return false;
  } catch (const out_of_memory&) {
    if (!n) return false;
    throw;
  }

  concurrent_options options_;
  array<bucket, Place> owned_;
  std::unique_ptr<bucket, leave_it> borrowed_;  // storage provided by the user
  table_type table_;
  std::optional<slots_in_use> most_ = slots_in_use();  // upper bound of used slots, if known
  int hashes_ = 0;                                     // hash functions that were abandoned
  [[no_unique_address]] ref_life<Place> life_;
};

}  // namespace detail
}  // namespace roost
