#pragma once

#include <cmath>

#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/lanes.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/detail/table/ref.hpp"
#include "roost/functional.hpp"
#include "roost/lanes.hpp"
#include "roost/operation.hpp"
#include "roost/pair.hpp"

/// \file
/// Layout `probing`: open addressing in slots that any number of threads can change at the same time.

namespace roost {

/// Buckets that are read at once: on cuda one 32-byte sector, on the host one 64-byte line. A key's hash
/// determines its region, its home bucket there, and a stride. The probe sequence starts at the home bucket
/// and visits the buckets of the region at this stride; if all are full, it continues in the next region.
/// (Double hashing, not the linear probing of D. Farrell, A simple GPU hash table, 2020: at load 0.8 an
/// absent key costs half as many reads.)
///
/// Under changes of single keys a slot belongs to its key for good, even when erased (a tombstone that only
/// this key can reuse): so two threads that insert a key meet at the same slot, and a value never appears
/// with another key. Bulk inserts, which overlap with nothing else, free the slots of erased keys.
struct probing {
  static constexpr const char* name = "probing";

  static constexpr std::uint32_t sections = 8, log2_sections = 3;

  /// Where a key may be: in two regions, and in the first buckets of its probe sequence through them, up to
  /// this number.
  static constexpr std::uint32_t regions_in_reach = 2;
  static constexpr std::uint32_t buckets_in_reach = 2048;

  template <class Key, class Value>
  struct slot_word;
  template <class Place, class Key, class Value>
  class reader;
  template <class Place, class Key, class Value>
  class table;

  /// The geometry of a table.
  struct plan {
    std::uint32_t regions;         // a multiple of the sections
    std::uint32_t region_buckets;  // a prime, or 1
    std::uint64_t seed;
    ROOST_FN std::uint64_t buckets() const { return std::uint64_t{regions} * region_buckets; }
  };

  /// For at least `slots` slots, of which `n` are expected to be occupied.
  template <class Place, class Key, class Value>
  static plan make_plan(double slots, double n, std::uint64_t seed);
  /// The largest table that fits in `bytes` bytes, or a slightly smaller one.
  template <class Place, class Key, class Value>
  static plan make_plan_within(std::size_t bytes, std::uint64_t seed);
};

/// The word of a slot, which is changed atomically. For keys and values of 4 bytes:
///
///     bit 63    32      31       30     29     28              0
///         | value | taken | erased | mark | 29 bits of a hash |   all zeros: a free slot
///
/// The table has eight sections, and no key leaves its own. So the position of a slot determines three bits
/// of the hash of its key, and these three bits of the word hold the state instead: no key and no value is
/// reserved. A key that passes a full bucket sets the mark of one of its slots, which its hash chooses: a
/// lookup that finds neither its key nor its mark ends there. An erased slot is also taken. Larger keys or
/// values have two words of 8 bytes, the hash with its state and the value; sets have the former alone.
template <class Key, class Value>
struct probing::slot_word {
  static_assert(sizeof(Key) <= 8, "keys of up to 8 bytes");
  static constexpr bool has_value = !std::is_same_v<Value, none>;
  static_assert(!has_value || sizeof(Value) <= 8,
                "values of up to 8 bytes: see layout indexed for larger ones");
  static_assert(std::is_trivially_copyable_v<Value>, "values are copied byte by byte");
  static constexpr bool small = sizeof(Key) <= 4 && (!has_value || sizeof(Value) <= 4);
  using part = std::conditional_t<small, std::uint32_t, std::uint64_t>;  // of a key, of a value
  using word =
      std::conditional_t<!has_value, part, std::conditional_t<small, std::uint64_t, detail::two_words>>;
  using hash = decltype(hash_of(std::declval<Key>()));

  static constexpr part taken = part{1} << (8 * sizeof(part) - 1);
  static constexpr part erased = taken >> 1;  // in addition to taken
  static constexpr part mark = taken >> 2;    // in addition: keys may have passed the bucket
  static constexpr hash kept = static_cast<hash>(~hash{0}) >> log2_sections;  // the bits that a slot stores

  ROOST_FN static part value_part(const Value& value) {
    part bits = 0;
    if constexpr (has_value) memcpy(&bits, &value, sizeof(Value));
    return bits;
  }
  ROOST_FN static word make(part key, part value) {
    if constexpr (!has_value) {
      return key;
    } else if constexpr (small) {
      return std::uint64_t{value} << 32 | key;
    } else {
      return {key, value};
    }
  }
  ROOST_FN static part key_part(const word& w) {
    if constexpr (!has_value || small) {
      return static_cast<part>(w);
    } else {
      return w.low;
    }
  }
  ROOST_FN static Value value(const word& w) {
    Value result{};
    if constexpr (has_value) {
      part bits;
      if constexpr (small) {
        bits = static_cast<part>(w >> 32);
      } else {
        bits = w.high;
      }
      memcpy(&result, &bits, sizeof(Value));
    }
    return result;
  }

  ROOST_FN static bool is_free(const word& w) { return key_part(w) == 0; }
  ROOST_FN static bool is_there(const word& w) { return (key_part(w) & (taken | erased)) == taken; }
  ROOST_FN static bool is_erased(const word& w) { return (key_part(w) & erased) != 0; }
  ROOST_FN static bool is_marked(const word& w) { return (key_part(w) & mark) != 0; }
  /// Whether a slot belongs to a key, erased or not.
  ROOST_FN static bool is_of(const word& w, part key) {
    return (key_part(w) & static_cast<part>(~(erased | mark))) == key;
  }
  /// A word to replace another one, with the mark of the replaced word.
  ROOST_FN static word in_place_of(const word& w, const word& before) {
    const part key = (key_part(w) & static_cast<part>(~mark)) | (key_part(before) & mark);
    if constexpr (!has_value) {
      return key;
    } else if constexpr (small) {
      return (w >> 32 << 32) | key;
    } else {
      return {key, w.high};
    }
  }
};

/// The lookups of a table: see concurrent_reader.
template <class Place, class Key, class Value>
class probing::reader : public lookups<probing::reader<Place, Key, Value>, Key, Value> {
  using base = lookups<reader, Key, Value>;

 public:
  using typename base::hit;
  using slot = slot_word<Key, Value>;
  using word = typename slot::word;
  static constexpr int bucket_slots = detail::build_tuning<Place>::bucket_bytes / sizeof(word);
  static constexpr std::uint32_t sections = probing::sections;

  /// The slots that are read at once.
  struct alignas(16) bucket {
    word slots[bucket_slots];
  };

  ROOST_FN reader(bucket* buckets, const plan& p) : buckets_(buckets), plan_(p) {}

  using base::contains;
  using base::find;
  /// For lanes that share the work: all of them call it with the same key, and get the same answer.
  template <class Lanes>
  ROOST_FN found<Value> find(const Lanes& lanes, const Key& key) const {
    found<Value> result;
    const int leader =
        follow<detail::shared_access>(lanes, cursor_of(key), false, [&](std::uint64_t, const sight& view) {
          result = view.template answer<detail::shared_access>();
          return true;
        });
    return leader == no_lane ? result : lanes.from_lane(static_cast<unsigned>(leader), result);
  }

  /// For a thread whose neighbours look up other keys.
  ROOST_FN found<Value> find(const warp_neighbours&, const Key& key) const {
    return detail::probe(*this, format_of_neighbours(), key);
  }

  template <class Lanes>
  ROOST_FN bool contains(const Lanes& lanes, const Key& key) const {
    return find(lanes, key).has_value();
  }

  /// Splits keys by the leading bits of their hash, which is the order of the buckets.
  detail::leading_bits hash_order(std::uint32_t parts) const { return {plan_.seed, parts}; }

  ROOST_FN std::uint32_t region_index(const Key& key) const {
    return static_cast<std::uint32_t>(split_hash(hash_of(key, plan_.seed), plan_.regions).digit);
  }

  /// The number of slots.
  ROOST_FN std::uint64_t capacity() const { return plan_.buckets() * bucket_slots; }

  // Slots by number, for iteration and checks.

  ROOST_FN bool occupied(std::uint64_t number) const { return slot::is_there(word_at(number)); }
  /// Whether a slot belongs to a key, erased or not.
  ROOST_FN bool taken(std::uint64_t number) const { return !slot::is_free(word_at(number)); }
  ROOST_FN Key key_at(std::uint64_t number) const { return key_of(word_at(number), number / bucket_slots); }
  ROOST_FN Value value_at(std::uint64_t number) const { return slot::value(word_at(number)); }

  /// The word of a slot, and the key of a word in bucket b.
  ROOST_FN word word_at(std::uint64_t number) const {
    return detail::shared_access::load(&buckets_[number / bucket_slots].slots[number % bucket_slots]);
  }
  ROOST_FN Key key_of(const word& w, std::uint64_t b) const {
    return key_in_section(w, b / (std::uint64_t{plan_.regions / sections} * plan_.region_buckets));
  }
  ROOST_FN Key key_in_section(const word& w, std::uint64_t section) const {
    return key_of_hash<Key>(hash_in_section(w, section), plan_.seed);
  }

  /// The bucket at which the probe sequence of a word's key enters a region: its home region or the next one.
  ROOST_FN std::uint32_t home_in_region(const word& w, std::uint64_t section) const {
    return static_cast<std::uint32_t>(
        split_hash(split_hash(hash_in_section(w, section), plan_.regions).rest, plan_.region_buckets).digit);
  }
  /// Calls visit(number) for the buckets of that probe sequence before bucket `target`, which holds the key,
  /// as long as visit returns true.
  template <class Visit>
  ROOST_FN void probe_in_region(const word& w, std::uint64_t section, std::uint32_t target,
                                const Visit& visit) const {
    auto cursor = cursor_of_hash(hash_in_section(w, section));
    for (std::uint32_t step = 1; step < cursor.buckets && cursor.number != target && visit(cursor.number);
         ++step)
      cursor.next();
  }

  /// The state of a key's probing: its bucket, and which ones follow.
  struct cursor_type {
    bucket* section;  // the regions to probe
    std::uint32_t regions;
    std::uint32_t region;   // the current one of these
    std::uint32_t buckets;  // of a region
    std::uint32_t number;   // of the bucket in the region; initially the home bucket
    std::uint32_t stride;
    std::uint32_t lap;    // buckets of the region already visited
    std::uint32_t steps;  // the most steps
    typename slot::part key;

    ROOST_FN std::uint64_t bucket_index() const { return std::uint64_t{region} * buckets + number; }
    ROOST_FN void next() {
      number += stride;
      if (number >= buckets) number -= buckets;
      if (++lap < buckets) return;
      lap = 0;
      region = region + 1 == regions ? 0 : region + 1;
    }
  };

  // The words read from a bucket: copies of them. On a host that compares keys with vector instructions they
  // are read in place, each word atomically: 16-byte loads are atomic on every processor with AVX, and so are
  // their halves on all others. (ThreadSanitizer does not know that.) So a second read may see newer words. A
  // lookup may search for the key first: if it finds neither the key nor its mark, the key was absent. An
  // insert must read the free slots first.

#if ROOST_TSAN
  static constexpr bool by_lanes = false;
#else
  static constexpr bool by_lanes = std::is_same_v<Place, host> && sizeof(typename slot::part) == 4;
#endif
  using seen_words = std::conditional_t<by_lanes, const word*, word[bucket_slots]>;

  template <class Access>
  ROOST_FN static void look_at(const bucket& from, seen_words& seen) {
    if constexpr (by_lanes) {
      seen = from.slots;
    } else {
      Access::load(from.slots, seen);
    }
  }

  /// A bit for each slot that belongs to a key.
  template <class Access>
  ROOST_FN static unsigned of_key(const seen_words& seen, const typename slot::part& key) {
    if constexpr (by_lanes) {
      return keys_equal<Access>(seen, key, static_cast<std::uint32_t>(~(slot::erased | slot::mark)));
    } else {
      return bits_of(seen, [&](const word& w) { return slot::is_of(w, key); });
    }
  }
  template <class Access>
  ROOST_FN static unsigned free_in(const seen_words& seen) {
    if constexpr (by_lanes) {
      return keys_equal<Access>(seen, 0, ~0u);
    } else {
      return bits_of(seen, [](const word& w) { return slot::is_free(w); });
    }
  }
  /// The slot whose mark a key sets in the buckets that it passes, and whether that mark is set.
  ROOST_FN static int mark_slot(const typename slot::part& key) {
    return static_cast<int>(key & (bucket_slots - 1));
  }
  template <class Access>
  ROOST_FN static bool marked_in(const seen_words& seen, const typename slot::part& key) {
    if constexpr (by_lanes) {
      return slot::is_marked(Access::load(seen + mark_slot(key)));
    } else {
      return (bits_of(seen, [](const word& w) { return slot::is_marked(w); }) >> mark_slot(key) & 1) != 0;
    }
  }
  template <class Access>
  ROOST_FN static word word_at(const seen_words& seen, int slot) {
    if constexpr (by_lanes) {
      return Access::load(seen + slot);
    } else {
      word result = seen[0];  // the words are in registers, which cannot be indexed
      ROOST_UNROLL
      for (int s = 1; s < bucket_slots; ++s) {
        if (s == slot) result = seen[s];
      }
      return result;
    }
  }

  template <class Is>
  ROOST_FN static unsigned bits_of(const seen_words& seen, const Is& is) {
    unsigned bits = 0;
    ROOST_UNROLL
    for (int s = 0; s < bucket_slots; ++s) bits |= is(seen[s]) ? 1u << s : 0;
    return bits;
  }
  template <class Access>
  ROOST_FN static unsigned keys_equal(const word* slots, std::uint32_t wanted, std::uint32_t care) {
#if !defined(__CUDA_ARCH__)
    __atomic_signal_fence(__ATOMIC_ACQUIRE);  // read now: others change the words
#endif
    return detail::equal_lanes_for<Access, 32, bucket_slots, sizeof(word) / 4>(slots, wanted, care);
  }

  // Lookups in steps: see detail/table/probe.hpp. A step reads a bucket; the last one has the key, or lacks
  // its mark.

  static constexpr detail::bulk_drivers drivers{
      .defers = true, .interleaves_by_region = true, .interleaves_directly = true};
  /// The format for direct lookups of many threads: neighbours read their buckets together.
  using format_of_neighbours = detail::paired_access;

  /// With what was read.
  struct reading_cursor : cursor_type {
    std::uint32_t taken;  // steps
    seen_words here;      // of the bucket that was read
  };

  template <class F>
  ROOST_FN auto with_format(const F& f) const {
    return f(detail::shared_access());
  }

  ROOST_FN reading_cursor start(const Key& key) const { return {cursor_of(key), 0, {}}; }

  template <class Access>
  ROOST_FN void read(Access, reading_cursor& cursor) const {
    look_at<Access>(cursor.section[cursor.bucket_index()], cursor.here);
  }

  /// The slot may be that of an erased key.
  template <class Access>
  ROOST_FN int match(Access, const reading_cursor& cursor) const {
    return detail::first_of(of_key<Access>(cursor.here, cursor.key));
  }

  template <class Access>
  ROOST_FN void take(Access, const reading_cursor& cursor, int s, hit& result) const {
    const word there = word_at<Access>(cursor.here, s);
    if (!slot::is_there(there)) return;
    const std::uint64_t b = static_cast<std::uint64_t>(cursor.section - buckets_) + cursor.bucket_index();
    result = {slot::value(there), b * bucket_slots + static_cast<unsigned>(s), cursor.taken + 1};
  }

  template <class Access>
  ROOST_FN bool passed(Access, const reading_cursor& cursor) const {
    return marked_in<Access>(cursor.here, cursor.key);
  }

  template <class Access>
  ROOST_FN bool goes_on(Access access, reading_cursor& cursor, hit&) const {
    const bool ends = !passed(access, cursor), exhausted = ++cursor.taken == cursor.steps;
    if (ends | exhausted) return false;  // | is one branch
    cursor.next();
    return true;
  }

  ROOST_PREFETCH_FN void fetch([[maybe_unused]] const reading_cursor& cursor) const {
#if !ROOST_ON_DEVICE
    __builtin_prefetch(cursor.section + cursor.bucket_index());
#endif
  }

 protected:
  ROOST_FN static typename slot::hash hash_in_section(const word& w, std::uint64_t section) {
    using hash = typename slot::hash;
    return (static_cast<hash>(slot::key_part(w)) & slot::kept) | static_cast<hash>(section)
                                                                     << (8 * sizeof(hash) - log2_sections);
  }

  ROOST_FN cursor_type cursor_of(const Key& key) const {
    this->expect_alive();
    return cursor_of_hash(hash_of(key, plan_.seed));
  }
  ROOST_FN cursor_type cursor_of_hash(typename slot::hash h) const {
    const auto region = split_hash(h, plan_.regions);
    const auto home = split_hash(region.rest, plan_.region_buckets);
    const std::uint32_t regions = plan_.regions / sections,
                        section = static_cast<std::uint32_t>(h >> (8 * sizeof(h) - log2_sections));
    const std::uint32_t strides = detail::larger(plan_.region_buckets, 2u) - 1;
    return {.section = buckets_ + std::uint64_t{section} * regions * plan_.region_buckets,
            .regions = regions,
            .region = static_cast<std::uint32_t>(region.digit) - section * regions,
            .buckets = plan_.region_buckets,
            .number = static_cast<std::uint32_t>(home.digit),
            .stride = 1 + static_cast<std::uint32_t>(split_hash(home.rest, strides).digit),
            .lap = 0,
            .steps = detail::smaller(detail::smaller(regions_in_reach, regions) * plan_.region_buckets,
                                     buckets_in_reach),
            .key = static_cast<typename slot::part>(h & slot::kept) | slot::taken};
  }

  /// The result of reading a bucket.
  struct sight {
    unsigned matching = 0;  // a bit for each slot: belongs to the key,
    unsigned free = 0;
    seen_words seen;

    template <class Access>
    ROOST_FN void look(const typename slot::part& key) {
      free = free_in<Access>(
          seen);  // first: if the bucket is read twice, a key that is inserted in between is seen
      matching = of_key<Access>(seen, key);
    }
    template <class Access>
    ROOST_FN found<Value> answer() const {
      if (matching == 0) return found<Value>();
      const word there = matching_word<Access>();
      return slot::is_there(there) ? found<Value>(slot::value(there)) : found<Value>();
    }
    /// The word of the key.
    template <class Access>
    ROOST_FN word matching_word() const {
      return reader::template word_at<Access>(seen, detail::first_of(matching));
    }
  };

  struct mark_in_silence {
    ROOST_FN void operator()(std::uint64_t) const {}
  };
  struct no_marks : mark_in_silence {};  // of a table without concurrent lookups

  /// The one walk along a probe sequence. Each lane reads a bucket. The first lane that sees the key or a
  /// free slot, or, if the key is not to be inserted, a bucket without its mark, acts: settle(bucket, sight)
  /// says whether the walk ends here; if not, it clears what it saw, and the next such lane acts. An insert
  /// sets the key's mark in all earlier buckets, and calls on_mark(bucket). Returns the lane that ended the
  /// walk, or no_lane.
  template <class Access, class Lanes, class Settle, class OnMark = mark_in_silence>
  ROOST_FN static int follow(const Lanes& lanes, const cursor_type& cursor, bool comes, const Settle& settle,
                             const OnMark& on_mark = {}) {
    auto lane_cursor = cursor;
    for (std::uint32_t r = 0; r < lanes.rank(); ++r) lane_cursor.next();
    for (std::uint32_t step = lanes.rank(); step < cursor.steps + lanes.rank(); step += lanes.size()) {
      sight view;
      const std::uint64_t b = lane_cursor.bucket_index();
      look_at<Access>(cursor.section[b], view.seen);
      const bool looks = step < cursor.steps;
      if (looks) view.template look<Access>(cursor.key);
      const bool unmarked = looks && !marked_in<Access>(view.seen, cursor.key);
      // The mark is set before the key and is never cleared, so relaxed order suffices.
      const auto pass = [&] {
        if constexpr (std::is_same_v<OnMark, no_marks>) return;
        if (!comes || !unmarked) return;
        Access::set_key_bits(cursor.section[b].slots + mark_slot(cursor.key),
                             typename slot::part{slot::mark});
        on_mark(b);
      };
      while (const unsigned votes = lanes.ballot((view.matching | view.free) != 0 || (unmarked && !comes))) {
        const int leader = detail::first_of(votes);
        if (lanes.size() > 1) {
          if (static_cast<int>(lanes.rank()) < leader) pass();
          lanes.sync();
        }
        bool done = false;
        if (static_cast<int>(lanes.rank()) == leader) done = settle(b, view);
        if (lanes.from_lane(static_cast<unsigned>(leader), done)) return leader;
      }
      pass();
      for (std::uint32_t l = 0; l < lanes.size(); ++l) lane_cursor.next();
    }
    return no_lane;
  }
  static constexpr int no_lane = -1;

  bucket* buckets_;
  plan plan_;
};

/// Lookups and changes of single keys: see concurrent_ref.
template <class Place, class Key, class Value>
class probing::table : public probing::reader<Place, Key, Value> {
  using base = reader<Place, Key, Value>;

 public:
  using base::base;
  using base::bucket_slots;
  using typename base::bucket;
  using typename base::slot;
  using typename base::word;

  /// Stores a pair unless the key is present.
  ROOST_FN insertion insert(const Key& key, const Value& value) const {
    return insert(one_lane(), key, value);
  }
  ROOST_FN insertion insert(const Key& key) const
    requires(!slot::has_value)
  {
    return insert(one_lane(), key, Value{});
  }
  template <class Lanes>
  ROOST_FN insertion insert(const Lanes& lanes, const Key& key, const Value& value) const {
    return put_on<detail::shared_access>(lanes, this->cursor_of(key), value, keep()).what;
  }

  /// Stores a pair, or gives a present key another value.
  ROOST_FN insertion insert_or_assign(const Key& key, const Value& value) const {
    return insert_or_assign(one_lane(), key, value);
  }
  template <class Lanes>
  ROOST_FN insertion insert_or_assign(const Lanes& lanes, const Key& key, const Value& value) const {
    return put_on<detail::shared_access>(lanes, this->cursor_of(key), value, assign()).what;
  }

  /// Stores a pair; if the key is present with value v0, the value becomes f(v0, value). `f` may be called
  /// more than once for one change.
  template <class F>
  ROOST_FN insertion insert_or_apply(const Key& key, const Value& value, const F& f) const {
    return insert_or_apply(one_lane(), key, value, f);
  }
  template <class Lanes, class F>
  ROOST_FN insertion insert_or_apply(const Lanes& lanes, const Key& key, const Value& value,
                                     const F& f) const {
    return put_on<detail::shared_access>(lanes, this->cursor_of(key), value, apply<F>{f}).what;
  }

  using inserted_or_found = roost::inserted_or_found<Value>;
  /// Stores a pair unless the key is present, and returns the value that the key has afterwards.
  ROOST_FN inserted_or_found insert_and_find(const Key& key, const Value& value) const {
    return insert_and_find(one_lane(), key, value);
  }
  template <class Lanes>
  ROOST_FN inserted_or_found insert_and_find(const Lanes& lanes, const Key& key, const Value& value) const {
    const put_result done = put_on<detail::shared_access>(lanes, this->cursor_of(key), value, keep());
    return {done.what, done.what == insertion::present ? slot::value(done.seen) : value};
  }

  /// Replaces the value of a key by `desired` if it is `expected`, byte for byte; false if the key is absent
  /// or has another value.
  ROOST_FN bool replace(const Key& key, const Value& expected, const Value& desired) const
    requires(slot::has_value)
  {
    return replace(one_lane(), key, expected, desired);
  }
  template <class Lanes>
  ROOST_FN bool replace(const Lanes& lanes, const Key& key, const Value& expected, const Value& desired) const
    requires(slot::has_value)
  {
    bool result = false;
    const auto cursor = this->cursor_of(key);
    const auto wanted = slot::value_part(expected);
    const int leader = base::template follow<detail::shared_access>(
        lanes, cursor, false, [&](std::uint64_t b, const typename base::sight& view) {
          if (view.matching == 0) return true;
          // The unused bytes beside a short value may hold a carry of plus.
          for (word seen = view.template matching_word<detail::shared_access>();
               !result && slot::is_there(seen) && slot::value_part(slot::value(seen)) == wanted;) {
            const word before = detail::shared_access::compare_exchange(
                &cursor.section[b].slots[detail::first_of(view.matching)], seen,
                slot::make(slot::key_part(seen), slot::value_part(desired)));
            result = before == seen;
            seen = before;
          }
          return true;
        });
    return leader == base::no_lane ? false : lanes.from_lane(static_cast<unsigned>(leader), result);
  }

  /// Erases a key; false if it is absent. Its slot stays reserved for the key until a bulk insert frees it.
  ROOST_FN bool erase(const Key& key) const { return erase(one_lane(), key); }
  template <class Lanes>
  ROOST_FN bool erase(const Lanes& lanes, const Key& key) const {
    bool result = false;
    const auto cursor = this->cursor_of(key);
    const int leader = base::template follow<detail::shared_access>(
        lanes, cursor, false, [&](std::uint64_t b, const typename base::sight& view) {
          if (view.matching != 0) {
            word* const there = cursor.section[b].slots + detail::first_of(view.matching);
            result = (detail::shared_access::set_key_bits(there, slot::erased) & slot::erased) == 0;
          }
          return true;
        });
    return leader == base::no_lane ? false : lanes.from_lane(static_cast<unsigned>(leader), result);
  }

  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert, insert_or_assign);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert_or_apply, insert_and_find);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(replace, erase);

  // The basis of concurrent_map's bulk calls.

  /// insert with any change: keep, assign, apply.
  template <class Change>
  ROOST_FN insertion put(const Key& key, const Value& value, const Change& change) const {
    return put_on<detail::shared_access>(one_lane(), this->cursor_of(key), value, change).what;
  }
  struct put_result {
    insertion what;        // also full if a change that does not insert does not find the key
    word seen;             // of a present key, before the change
    std::uint32_t bucket;  // where the key is in a copy of its region
  };
  /// The buckets [first, last) of a probe sequence; first is 0 or 1.
  struct bucket_range {
    std::uint32_t first, last;
  };
  /// The same in some buckets of a copy of the key's region that only one team uses. on_mark(bucket) is
  /// called for the buckets that the key may be the first to mark.
  template <class Access, class Change, class OnMark>
  ROOST_FN put_result put_in_region(bucket* copy, const Key& key, const Value& value, const Change& change,
                                    const bucket_range& tried, const OnMark& on_mark) const {
    auto cursor = this->cursor_of(key);
    cursor.section = copy;
    cursor.region = 0;
    cursor.steps = detail::smaller(tried.last, detail::smaller(cursor.steps, cursor.buckets)) - tried.first;
    if (tried.first != 0) cursor.next();
    return put_on<Access>(one_lane(), cursor, value, change, on_mark);
  }
  /// The same in a small table with the same number of sections that only one team uses.
  template <class Access, class Change>
  ROOST_FN insertion put_in_small(bucket* small, std::uint32_t section_buckets, const Key& key,
                                  const Value& value, const Change& change) const {
    auto cursor = this->cursor_of(key);
    cursor.section = small + (cursor.section - this->buckets_) /
                                 (std::uint64_t{cursor.regions} * cursor.buckets) * section_buckets;
    cursor.region = 0;
    cursor.buckets = section_buckets;
    cursor.number = cursor.key % section_buckets;
    cursor.stride = 1;
    cursor.steps = 2;
    return put_on<Access>(one_lane(), cursor, value, change, typename base::no_marks()).what;
  }
  ROOST_FN bucket* region_of(std::uint32_t region) const {
    return this->buckets_ + std::uint64_t{region} * this->plan_.region_buckets;
  }
  ROOST_FN const plan& geometry() const { return this->plan_; }

  // What to do about a present key. True: done; false: another thread has changed the slot, and `seen` is its
  // new word.

  struct keep {
    static constexpr bool repeatable = true;
    ROOST_FN static constexpr bool inserts() { return true; }
    template <class Access>
    ROOST_FN bool change(word*, word&, const Value&) const {
      return true;
    }
  };
  struct assign {
    static constexpr bool repeatable = true;
    ROOST_FN static constexpr bool inserts() { return true; }
    template <class Access>
    ROOST_FN bool change(word* position, word&, const Value& value) const {
      if constexpr (slot::has_value) Access::set_value(position, slot::value_part(value));
      return true;
    }
  };
  template <class F>
  struct apply {
    static constexpr bool repeatable = false;
    ROOST_FN static constexpr bool inserts() { return true; }
    F f;
    template <class Access>
    ROOST_FN bool change(word* position, word& seen, const Value& value) const {
      if constexpr (std::is_same_v<F, plus> && std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
        Access::add_to_value(position, slot::value_part(value));
        return true;
      } else {
        const Value wanted = f(slot::value(seen), value);
        const word before = Access::compare_exchange(
            position, seen, slot::make(slot::key_part(seen), slot::value_part(wanted)));
        const bool done = before == seen;
        seen = before;
        return done;
      }
    }
  };

  /// One of these changes, a lookup or an erase, chosen by the operation. The threads of a warp diverge only
  /// after they have found their slots.
  struct any {
    static constexpr bool repeatable = true;
    bool stores, assigns, erases;
    ROOST_FN bool inserts() const { return stores; }
    template <class Access>
    ROOST_FN bool change(word* position, word& seen, const Value& value) const {
      if (assigns) return assign().template change<Access>(position, seen, value);
      if (!erases) return true;
      const auto part = Access::set_key_bits(position, slot::erased);
      if ((part & slot::erased) == 0) return true;
      seen = slot::make(part, 0);
      return false;
    }
  };

  ROOST_FN put_result run(const Key& key, const Value& value, const any& change) const {
    return put_on<detail::shared_access>(one_lane(), this->cursor_of(key), value, change);
  }

 private:
  /// The one insert. A key takes the first free slot of its probe sequence. Since occupied slots never become
  /// free again, all threads that insert the key meet at that slot.
  template <class Access, class Lanes, class Change, class OnMark = typename base::mark_in_silence>
  ROOST_FN static put_result put_on(const Lanes& lanes, const typename base::cursor_type& cursor,
                                    const Value& value, const Change& change, const OnMark& on_mark = {}) {
    const word fresh = slot::make(cursor.key, slot::value_part(value));
    put_result result{insertion::full, word{}, 0};
    const auto meet = [&](word* position, word seen) {  // the slot is the key's
      for (;;) {
        result.what = insertion::present;
        result.seen = seen;
        if (slot::is_there(seen)) {
          if (change.template change<Access>(position, seen, value)) return;
        } else if (!change.inserts()) {
          result.what = insertion::full;
          return;
        } else {
          const word before = Access::compare_exchange(position, seen, slot::in_place_of(fresh, seen));
          if (before == seen) {
            result.what = insertion::inserted;
            return;
          }
          seen = before;
        }
      }
    };
    const int leader = base::template follow<Access>(
        lanes, cursor, change.inserts(),
        [&](std::uint64_t b, typename base::sight& view) {
          word* const slots = cursor.section[b].slots;
          result.bucket = static_cast<std::uint32_t>(b);
          if (view.matching != 0) {
            meet(slots + detail::first_of(view.matching), view.template matching_word<Access>());
            return true;
          }
          if (!change.inserts()) return true;
          const int s = detail::first_of(view.free);
          const word before = Access::template claim<Change::repeatable>(slots + s, fresh);
          if (slot::is_free(before)) {
            result.what = insertion::inserted;
            return true;
          }
          view.free &= ~(1u << s);
          if (!slot::is_of(before, cursor.key)) return false;
          meet(slots + s, before);
          return true;
        },
        on_mark);
    if (leader == base::no_lane) return result;
    return {lanes.from_lane(static_cast<unsigned>(leader), result.what),
            lanes.from_lane(static_cast<unsigned>(leader), result.seen), result.bucket};
  }
};

template <class Place, class Key, class Value>
probing::plan probing::make_plan_within(std::size_t bytes, std::uint64_t seed) {
  using bucket = typename probing::table<Place, Key, Value>::bucket;
  const std::size_t buckets = bytes / sizeof(bucket);
  if (buckets < sections)
    detail::raise<invalid_argument>({"roost::concurrent_map: ", bytes, " bytes of storage; give ",
                                     sections * sizeof(bucket), " at least"});
  plan p{};
  p.regions = sections * static_cast<std::uint32_t>(detail::ceil_div(
                             buckets * sizeof(bucket) / sections, detail::build_tuning<Place>::region_bytes));
  detail::check_table_bytes(static_cast<double>(bytes), p.regions, "roost::concurrent_map");
  p.region_buckets = static_cast<std::uint32_t>(buckets / p.regions);
  while (!detail::is_prime_or_1(p.region_buckets)) --p.region_buckets;
  p.seed = seed;
  return p;
}

template <class Place, class Key, class Value>
probing::plan probing::make_plan(double slots, double n, std::uint64_t seed) {
  using table = probing::table<Place, Key, Value>;
  constexpr double bucket_slots = table::bucket_slots;
  const double buckets = slots / bucket_slots;
  const double regions = std::ceil(buckets * sizeof(typename table::bucket) / sections /
                                   detail::build_tuning<Place>::region_bytes);
  detail::check_table_bytes(buckets * sizeof(typename table::bucket), sections * regions,
                            "roost::concurrent_map");
  plan p{};
  p.regions = sections * static_cast<std::uint32_t>(std::max(1.0, regions));
  p.seed = seed;
  // Each section has room for the variation of a random split.
  const double mean = n / sections;
  const double section_slots = std::max(slots / sections, std::min(n, mean + 6 * std::sqrt(mean)));
  p.region_buckets = detail::prime_from(static_cast<std::uint32_t>(
      std::max(1.0, std::ceil(section_slots / (p.regions / sections) / bucket_slots))));
  return p;
}

}  // namespace roost
