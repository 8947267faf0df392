#pragma once

#include <cmath>

#include "roost/detail/partition/geometry.hpp"
#include "roost/detail/place/atomic.hpp"
#include "roost/detail/place/tuning.hpp"
#include "roost/detail/table/ref_life.hpp"
#include "roost/hash.hpp"
#include "roost/operation.hpp"
#include "roost/pair.hpp"

/// \file
/// Layout `ticket_board`: a ticket of a few bits for each slot; keys and values of any size are stored
/// separately, in slower memory.

namespace roost {

namespace detail {

/// Bytes that other threads may change concurrently, in words as large as alignment and size allow.
template <std::size_t Alignment, std::size_t Bytes>
struct shared_bytes {
  static constexpr std::size_t unit = (Alignment | Bytes) & ~((Alignment | Bytes) - 1);
  using word =
      std::conditional_t<unit >= 8, std::uint64_t,
                         std::conditional_t<unit == 4, std::uint32_t,
                                            std::conditional_t<unit == 2, std::uint16_t, std::uint8_t>>>;
  static constexpr int count = Bytes / sizeof(word);

  /// Acquire: whether loads have acquire order.
  template <bool Acquire>
  ROOST_FN static void load(const void* source, void* target) {
    if constexpr (Bytes > large) {
      for_each_part(
          [&](auto part, std::size_t i) { part.template load<Acquire>(at(source, i), at(target, i)); });
    } else {
      load_pieces<Acquire>(source, target);
    }
  }
  ROOST_FN static void store(void* target, const void* source) {
    if constexpr (Bytes > large) {
      for_each_part([&](auto part, std::size_t i) { part.store(at(target, i), at(source, i)); });
    } else {
      word words[count];
      memcpy(words, source, Bytes);
      ROOST_UNROLL
      for (int i = 0; i < count; ++i) shared_access::store(static_cast<word*>(target) + i, words[i]);
    }
  }

 private:
  /// A GPU loads the 16-byte pieces that contain them, if those are fewer than the words: an access to host
  /// memory costs the same whatever its size. The other bytes of a piece can be read: memory begins and ends
  /// with a whole piece.
  static constexpr std::size_t piece = 16;
  static constexpr int pieces = ceil_div(Bytes + piece - smaller(unit, piece), piece);

  /// Large values are copied part by part: unrolled code would spill registers and take minutes to compile.
  static constexpr std::size_t large = 256, part_bytes = 128, rest_bytes = Bytes % part_bytes;
  template <class F>
  ROOST_FN static void for_each_part(const F& f) {
    for (std::size_t i = 0; i + part_bytes <= Bytes; i += part_bytes)
      f(shared_bytes<Alignment, part_bytes>(), i);
    if constexpr (rest_bytes != 0) f(shared_bytes<Alignment, rest_bytes>(), Bytes - rest_bytes);
  }
  ROOST_FN static void* at(void* memory, std::size_t byte) {
    return static_cast<unsigned char*>(memory) + byte;
  }
  ROOST_FN static const void* at(const void* memory, std::size_t byte) {
    return static_cast<const unsigned char*>(memory) + byte;
  }

  template <bool Acquire>
  ROOST_FN static void load_pieces(const void* source, void* target) {
#if ROOST_ON_DEVICE
    if constexpr (pieces < count) {
      const std::uint32_t skipped =
          unit >= piece ? 0 : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(source) % piece);
      constexpr int words_of_piece = piece / 4, n = pieces * words_of_piece;
      std::uint32_t words[n];
      ROOST_UNROLL
      for (int i = 0; i < pieces; ++i) {
        std::uint64_t both[2] = {};
        load_piece<Acquire>(static_cast<const unsigned char*>(source) - skipped + i * piece,
                            i * piece < skipped + Bytes, both);
        memcpy(words + i * words_of_piece, both, piece);
      }
      // Moved to the front, by half a piece, by a word and by bytes.
      ROOST_UNROLL
      for (int step = 2; step != 0; --step) {
        ROOST_UNROLL
        for (int i = 0; i + step < n; ++i) words[i] = (skipped / 4 & step) != 0 ? words[i + step] : words[i];
      }
      if constexpr (unit < 4) {
        ROOST_UNROLL
        for (int i = 0; i + 1 < n; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (skipped % 4));
      }
      memcpy(target, words, Bytes);
    } else
#endif
    {
      word words[count];
      ROOST_UNROLL
      for (int i = 0; i < count; ++i) {
        const word* const position = static_cast<const word*>(source) + i;
        words[i] = Acquire ? shared_access::load_acquire(position) : shared_access::load(position);
      }
      memcpy(target, words, Bytes);
    }
  }
#if ROOST_ON_DEVICE
  template <bool Acquire>
  ROOST_FN static void load_piece(const void* source, bool wanted, std::uint64_t* target) {
    if constexpr (Acquire) {
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.acquire.gpu.v2.b64 {%0, %1}, [%2]; }"
                   : "+l"(target[0]), "+l"(target[1])
                   : "l"(source), "r"(static_cast<std::uint32_t>(wanted))
                   : "memory");
    } else {
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.relaxed.gpu.v2.b64 {%0, %1}, [%2]; }"
                   : "+l"(target[0]), "+l"(target[1])
                   : "l"(source), "r"(static_cast<std::uint32_t>(wanted))
                   : "memory");
    }
  }
#endif
};

}  // namespace detail

/// Stadium hashing (F. Khorasani, M. Belviranli, R. Gupta, L. Bhuyan, Stadium Hashing: Scalable and Flexible
/// Hashing on GPUs, 2015, section III): the board of tickets answers most lookups. The body of a slot, its
/// pair, is mostly read only if it has the wanted key, and an insert only writes it.
///
/// The table is regions of a prime number of slots. The leading bits of a key's hash choose its home region,
/// the next ones its first slot there, and further bits a stride: double hashing inside the region (III.A; a
/// table of one region is the paper's). A key whose home region is full goes to the next one, cyclically.
///
/// A slot is reserved by an atomic change of its ticket (III.B), then the body is written, then an AND sets
/// the ticket's info bits and announces the body. An erased slot is available again, but keeps its body's
/// key: while threads change single keys, only that key comes back to it. So the key of a body never changes
/// while a reader reads it. Bulk inserts, during which nothing else may run, use such slots for any key.
///
/// Beyond the paper, whose inserts take only new keys, there are `guards`: sequence locks chosen by a key's
/// hash. A thread that inserts a possibly present key, or assigns, holds the key's guard, so that no slot
/// still without a body can belong to this key. A reader that has found the key takes its value if the guard
/// has not changed since. Lookups of absent keys, erase and insert_new never read a guard.
struct ticket_board {
  static constexpr const char* name = "ticket_board";
  using shared = detail::shared_access;

  /// Tickets in words of the board. With ticket_bits = 4, twelve of 5 bits (with 8, seven of 9):
  ///
  ///     bit 63  60          55          5          0
  ///         | - | ticket 11 | ... | ... | ticket 0 |
  ///
  ///     bit 4        2         1           0
  ///         | info bits | no body | available |
  ///         | of a hash |    0    |     0     |   a pair: read if these are the bits of the key
  ///         | of a hash |    0    |     1     |   erased: only the key of the body returns to it
  ///         |    111    |    1    |     0     |   reserved: the body is being written
  ///         |    111    |    1    |     1     |   never used: a lookup ends here
  ///
  /// (`no body` is the inverse of the paper's access bit, so that one AND announces a body.)
  struct shape {
    static constexpr std::uint64_t available = 1, no_body = 2;
    std::uint32_t width;  // of a ticket: the paper's ticket, and the access bit
    std::uint32_t per_word;
    std::uint32_t magic, shift;  // i / per_word == i * magic >> shift for i < 2^31

    static shape of(int ticket_bits) {
      if (ticket_bits != 1 && ticket_bits != 2 && ticket_bits != 4 && ticket_bits != 8) {
        detail::raise<invalid_argument>(
            {"roost::ticket_board: tickets of ", ticket_bits, " bits; give 1, 2, 4 or 8"});
      }
      const auto width = static_cast<std::uint32_t>(ticket_bits) + 1, per_word = 64 / width,
                 shift = 31 + static_cast<std::uint32_t>(std::bit_width(per_word - 1));
      const std::uint64_t magic = detail::ceil_div<std::uint64_t>(std::uint64_t{1} << shift, per_word);
      return {width, per_word, static_cast<std::uint32_t>(magic), shift};
    }
    ROOST_FN std::uint32_t word_of(std::uint32_t i) const {
      return static_cast<std::uint32_t>(std::uint64_t{i} * magic >> shift);
    }
    ROOST_FN std::uint64_t mask() const { return (std::uint64_t{1} << width) - 1; }
    /// The lowest bit of each ticket of a word.
    ROOST_FN std::uint64_t lowest() const {
      std::uint64_t bits = 0;
      for (std::uint32_t t = 0; t < per_word; ++t) bits |= std::uint64_t{1} << t * width;
      return bits;
    }
  };

  /// The geometry of a table.
  struct plan {
    shape tickets;
    std::uint32_t regions;
    std::uint32_t region_slots;  // a prime
    std::uint32_t region_words;  // of the board
    std::uint32_t guards;        // a power of two
    std::uint64_t seed;
    ROOST_FN std::uint64_t slots() const { return std::uint64_t{regions} * region_slots; }
    ROOST_FN std::uint64_t words() const { return std::uint64_t{regions} * region_words; }
    /// The number of parts, with equal numbers of regions, into which a batch splits the table. It is the
    /// same on every place, since files come from other places. If the number of regions is a multiple of
    /// parts_least, so is the result: where a part of a coarser split ends, one of the finer split ends, too.
    std::uint32_t parts(std::uint32_t most = parts_most) const {
      const std::uint32_t unit = regions % parts_least == 0 ? parts_least : 1;
      std::uint32_t result = detail::smaller(regions, most) / unit * unit;
      while (regions % result != 0) result -= unit;
      return result;
    }
    /// The same plan with another number of regions.
    template <class Place>
    plan of_regions(double n) const {
      detail::check_table_bytes(n * region_slots, n, "roost::ticket_board");
      plan p = *this;
      p.regions = static_cast<std::uint32_t>(n);
      p.guards = 64;
      while (p.guards < detail::stadium_tuning<Place>::guards_most && p.guards < p.slots() / 8) p.guards *= 2;
      return p;
    }

    static constexpr std::uint32_t parts_least = 64, parts_most = detail::partition_tuning<cuda>::digits_most;
  };

  /// The state of a region.
  struct region_head {
    enum : std::uint32_t { used_up = 1, packed = 2 };
    std::uint32_t flags;    // used_up: no slot is unused, so keys may have continued to the next region;
                            // packed: nor is one of an erased key available
    std::uint32_t longest;  // slots of this region that a key stored here may have probed, its own included,
                            // if they are more than `patience`
    std::uint32_t far;      // regions beyond this one that keys with their home here may have reached
    std::uint32_t unused;
  };

  /// For at least `slots` slots in regions of about `region_slots`. Throws invalid_argument, out_of_memory.
  template <class Place>
  static plan make_plan(double slots, int ticket_bits, std::uint32_t region_slots, std::uint64_t seed) {
    plan p{};
    p.tickets = shape::of(ticket_bits);
    constexpr std::uint32_t region_slots_most = (1u << 31) - 1;  // slots have numbers of 31 bits
    double regions = std::max(1.0, std::ceil(slots / detail::smaller(region_slots, region_slots_most)));
    for (const double parts : {plan::parts_least, plan::parts_most}) {
      if (regions > parts) regions = std::ceil(regions / parts) * parts;
    }
    p.region_slots =
        detail::prime_from(static_cast<std::uint32_t>(std::max(3.0, std::ceil(slots / regions))));
    p.region_words = detail::ceil_div(p.region_slots, p.tickets.per_word);
    p.seed = seed;
    return p.template of_regions<Place>(regions);
  }

  /// Any other threads may run.
  struct among_all {
    static constexpr bool reuses = false;
    static constexpr std::uint32_t no_room = region_head::used_up;
  };
  /// Only threads of the same bulk insert run; they may reuse slots of erased keys.
  struct among_inserts {
    static constexpr bool reuses = true;
    static constexpr std::uint32_t no_room = region_head::packed;
  };

  template <class Place, class Key, class Value>
  class reader;
  template <class Place, class Key, class Value>
  class table;
};

/// The lookups of a table: see stadium_reader.
template <class Place, class Key, class Value>
class ticket_board::reader : public detail::ref_base {
 public:
  using key_type = Key;
  using value_type = Value;
  using item = pair<Key, Value>;
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  /// The memory of a table.
  struct memory {
    std::uint64_t* words;
    region_head* heads;
    std::uint32_t* guards;
    item* near;  // bodies of the first regions, in memory of the place
    item* far;   // of the others, in memory of the host
    std::uint64_t near_slots;
    // Bodies of some whole regions, while they are staged in other memory of the place. Then bulk inserts
    // touch no other regions: keys that would go there find no room.
    item* staged = nullptr;
    std::uint64_t staged_first = 0, staged_slots = 0;
    bool at_rest = false;  // nothing changes the table, so lookups need not read twice
  };

  ROOST_FN reader(const memory& m, const plan& p) : memory_(m), plan_(p) {}

  /// The value of a key, or nothing.
  ROOST_FN found<Value> find(const Key& key) const {
    found<Value> result;
    const hashes hash = hashes_of(key);
    follow(cursor_of(hash), [&](const cursor_type& cursor, std::uint64_t ticket) {
      if (never_used(ticket)) return true;
      return ticket == hash.ticket && read(cursor, key, hash, result);
    });
    return result;
  }

  /// True if the key is present.
  ROOST_FN bool contains(const Key& key) const { return slot_of(key) != no_slot; }
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(find, contains);

  /// Splits keys by the leading bits of their hash, which is the order of the regions.
  detail::leading_bits hash_order(std::uint32_t parts) const { return {plan_.seed, parts}; }

  /// Prefetches a key's first ticket and body. Does nothing on a GPU, where other threads hide the latency.
  ROOST_PREFETCH_FN void prefetch([[maybe_unused]] const Key& key) const {
#if !ROOST_ON_DEVICE
    const auto cursor = cursor_of(hashes_of(key));
    __builtin_prefetch(word_at(cursor));
    __builtin_prefetch(body_at(cursor));
#endif
  }

  /// The number of slots.
  ROOST_FN std::uint64_t capacity() const { return plan_.slots(); }

  // Slots by number, for iteration and checks.

  /// The slot of a key, or no_slot.
  ROOST_FN std::uint64_t slot_of(const Key& key) const {
    std::uint64_t result = no_slot;
    look(key, [&](const cursor_type& cursor) { result = slot_at(cursor); });
    return result;
  }

  /// The cost of a lookup of a key.
  struct cost {
    std::uint64_t tickets = 0;
    std::uint64_t bodies = 0;
    bool found = false;
  };
  ROOST_FN cost cost_of(const Key& key) const {
    cost result;
    look(key, [&](const cursor_type&) { result.found = true; }, &result);
    return result;
  }
  /// True if the key is present, and sometimes if it is absent: the answer of the tickets alone.
  ROOST_FN bool may_contain(const Key& key) const {
    const hashes hash = hashes_of(key);
    bool result = false;
    follow(cursor_of(hash), [&](const cursor_type&, std::uint64_t ticket) {
      result = ticket == hash.ticket;
      return result || never_used(ticket);
    });
    return result;
  }
  /// How many tickets a lookup of this key reads; 0 if the key is absent.
  ROOST_FN std::uint32_t probes_of(const Key& key) const {
    const cost lookup_cost = cost_of(key);
    return lookup_cost.found ? static_cast<std::uint32_t>(lookup_cost.tickets) : 0;
  }

  ROOST_FN bool occupied(std::uint64_t slot) const { return occupied_at(cursor_at(slot)); }
  ROOST_FN bool erased(std::uint64_t slot) const { return erased_at(cursor_at(slot)); }
  ROOST_FN Key key_at(std::uint64_t slot) const { return key_of(body_of_slot(slot)); }
  ROOST_FN Value value_at(std::uint64_t slot) const { return value_of(body_of_slot(slot)); }
  /// Calls f(key, value) with the pair of a slot, if there is one; the pair is consistent, whatever other
  /// threads change concurrently.
  template <class F>
  ROOST_FN void visit(std::uint64_t slot, const F& f) const {
    const auto cursor = cursor_at(slot);
    if (!is_there(ticket_at(cursor))) return;
    observe(cursor);
    const Key key = key_of(body_at(cursor));
    found<Value> value;
    if (read(cursor, key, hashes_of(key), value) && value) f(key, *value);
  }
  ROOST_FN const plan& geometry() const { return plan_; }
  ROOST_FN const memory& where() const { return memory_; }

 protected:
  /// The parts of a key's hash.
  struct hashes {
    decltype(hash_of(std::declval<Key>())) first;  // home region and slot
    std::uint64_t second;                          // stride, guard, info bits
    std::uint64_t ticket;                          // if the key is present
  };
  ROOST_FN hashes hashes_of(const Key& key) const {
    expect_alive();
    const auto first = hash_of(key, plan_.seed);
    const std::uint64_t second = mix64(first, plan_.seed + 0x9e3779b97f4a7c15ull);
    return {first, second, second << 2 & plan_.tickets.mask()};
  }

  /// The state of a key's probing.
  struct cursor_type {
    std::uint32_t home, region;
    std::uint32_t distance;       // from home, in regions
    std::uint32_t start, stride;  // in a region
    std::uint32_t slot;           // in the region
    std::uint32_t step;           // slots passed in this region
  };
  ROOST_FN cursor_type cursor_of(const hashes& hash) const {
    const auto region = split_hash(hash.first, plan_.regions);
    const auto home = static_cast<std::uint32_t>(region.digit);
    const auto start = static_cast<std::uint32_t>(split_hash(region.rest, plan_.region_slots).digit);
    const auto stride = static_cast<std::uint32_t>(split_hash(hash.second, plan_.region_slots - 1).digit) + 1;
    return {.home = home,
            .region = home,
            .distance = 0,
            .start = start,
            .stride = stride,
            .slot = start,
            .step = 0};
  }
  ROOST_FN void pass(cursor_type& cursor) const {
    cursor.slot += cursor.stride;
    if (cursor.slot >= plan_.region_slots) cursor.slot -= plan_.region_slots;
    ++cursor.step;
  }
  ROOST_FN void leave_region(cursor_type& cursor) const {
    cursor.region = cursor.region + 1 == plan_.regions ? 0 : cursor.region + 1;
    ++cursor.distance;
    cursor.slot = cursor.start;
    cursor.step = 0;
  }

  /// Slots of a region that are probed before a check whether more can follow.
  static constexpr std::uint32_t patience = 16;

  /// Follows a key's probe sequence until see(cursor, ticket) returns true, or the key cannot be further
  /// along.
  template <class See>
  ROOST_FN void follow(cursor_type cursor, const See& see) const {
    for (;;) {
      std::uint32_t bound = detail::smaller(patience, plan_.region_slots);
      for (;
           cursor.step < bound || cursor.step < (bound = shared::load(&memory_.heads[cursor.region].longest));
           pass(cursor)) {
        if (see(cursor, ticket_at(cursor))) return;
      }
      if (cursor.distance >= shared::load(&memory_.heads[cursor.home].far)) return;
      leave_region(cursor);
    }
  }

  /// Calls on_hit(cursor) where a key is.
  template <class OnHit>
  ROOST_FN void look(const Key& key, const OnHit& on_hit, cost* counted = nullptr) const {
    const hashes hash = hashes_of(key);
    follow(cursor_of(hash), [&](const cursor_type& cursor, std::uint64_t ticket) {
      if (counted != nullptr) ++counted->tickets;
      if (never_used(ticket)) return true;
      if (ticket != hash.ticket) return false;
      if (counted != nullptr) ++counted->bodies;
      if (!holds(cursor, key)) return false;
      on_hit(cursor);
      return true;
    });
  }

  ROOST_FN static bool never_used(std::uint64_t ticket) {
    return (ticket & 3) == (shape::available | shape::no_body);
  }
  ROOST_FN static bool is_there(std::uint64_t ticket) { return (ticket & 3) == 0; }
  ROOST_FN static bool is_erased(std::uint64_t ticket) { return (ticket & 3) == shape::available; }

  ROOST_FN std::uint64_t* word_at(const cursor_type& cursor) const {
    return memory_.words + std::uint64_t{cursor.region} * plan_.region_words +
           plan_.tickets.word_of(cursor.slot);
  }
  /// The lowest bit of a ticket in its word.
  ROOST_FN std::uint32_t bit_of(const cursor_type& cursor) const {
    return (cursor.slot - plan_.tickets.word_of(cursor.slot) * plan_.tickets.per_word) * plan_.tickets.width;
  }
  ROOST_FN std::uint64_t ticket_at(const cursor_type& cursor) const {
    return shared::load(word_at(cursor)) >> bit_of(cursor) & plan_.tickets.mask();
  }
  ROOST_FN std::uint64_t slot_at(const cursor_type& cursor) const {
    return std::uint64_t{cursor.region} * plan_.region_slots + cursor.slot;
  }
  ROOST_FN bool occupied_at(const cursor_type& cursor) const { return is_there(ticket_at(cursor)); }
  ROOST_FN bool erased_at(const cursor_type& cursor) const { return is_erased(ticket_at(cursor)); }
  ROOST_FN cursor_type cursor_at(std::uint64_t slot) const {
    const auto region = static_cast<std::uint32_t>(slot / plan_.region_slots);
    const auto rest = static_cast<std::uint32_t>(slot - std::uint64_t{region} * plan_.region_slots);
    return {.home = 0, .region = region, .distance = 0, .start = 0, .stride = 0, .slot = rest, .step = 0};
  }
  ROOST_FN item* body_of_slot(std::uint64_t slot) const {
    if (slot - memory_.staged_first < memory_.staged_slots)
      return memory_.staged + (slot - memory_.staged_first);
    return slot < memory_.near_slots ? memory_.near + slot : memory_.far + (slot - memory_.near_slots);
  }
  ROOST_FN item* body_at(const cursor_type& cursor) const { return body_of_slot(slot_at(cursor)); }
  ROOST_FN std::uint32_t* guard_of(const hashes& hash) const {
    return memory_.guards + (static_cast<std::uint32_t>(hash.second >> 8) & (plan_.guards - 1));
  }

  // Bodies. During a read, other threads may write only to the value.

  static constexpr bool small = sizeof(item) <= 32;  // read at once
  static constexpr std::size_t key_bytes =
      small ? sizeof(item) : detail::ceil_div(sizeof(Key), alignof(item)) * alignof(item);  // in whole words
  static constexpr std::size_t value_at_byte = detail::ceil_div(sizeof(Key), alignof(Value)) * alignof(Value);
  static constexpr std::size_t value_alignment = alignof(item) | value_at_byte;  // as shared_bytes expects it
  ROOST_FN static const unsigned char* value_bytes(const item* position) {
    return reinterpret_cast<const unsigned char*>(position) + value_at_byte;
  }
  template <bool Acquire = false>
  ROOST_FN static item body_of(const item* position) {
    item body;
    detail::shared_bytes<alignof(item), sizeof(item)>::template load<Acquire>(position, &body);
    return body;
  }
  ROOST_FN static Key key_of(const item* position) {
    unsigned char bytes[key_bytes];
    detail::shared_bytes<alignof(item), key_bytes>::template load<false>(position, bytes);
    Key key;
    memcpy(&key, bytes, sizeof(Key));
    return key;
  }
  template <bool Acquire = false>
  ROOST_FN static Value value_of(const item* position) {
    Value value;
    detail::shared_bytes<value_alignment, sizeof(Value)>::template load<Acquire>(value_bytes(position),
                                                                                 &value);
    return value;
  }

  /// Loads the value of a body if the body has a given key; for a large body the key is read first.
  template <bool Acquire = false>
  ROOST_FN static bool load_if_of(const item* position, const Key& key, Value& value) {
    if constexpr (small) {
      const item body = body_of<Acquire>(position);
      value = body.value;
      return same_key(body.key, key);
    } else {
      if (!same_key(key_of(position), key)) return false;
      value = value_of<Acquire>(position);
      return true;
    }
  }

  /// Whether the body of a slot that has one has a given key.
  ROOST_FN bool holds(const cursor_type& cursor, const Key& key) const {
    observe(cursor);
    return same_key(key_of(body_at(cursor)), key);
  }

  /// Orders reading a ticket before reading its body. A second load with acquire order is cheaper than
  /// acquire loads of every ticket, or a fence.
  ROOST_FN void observe(const cursor_type& cursor) const {
    if (!memory_.at_rest) static_cast<void>(shared::load_acquire(word_at(cursor)));
  }

  /// Whether a slot belongs to the key; if so, also its value, or nothing if the key has been erased since. A
  /// value of one word is right as read if the key is still present then; larger values need the guard.
  ROOST_FN bool read(const cursor_type& cursor, const Key& key, const hashes& hash,
                     found<Value>& result) const {
    Value value;
    if (memory_.at_rest) {
      if (!load_if_of(body_at(cursor), key, value)) return false;
      result = found<Value>(value);
      return true;
    }
    if constexpr (sizeof(Value) == alignof(Value) && sizeof(Value) <= 8) {
      observe(cursor);
      if (!load_if_of<true>(body_at(cursor), key, value)) return false;
      if (ticket_at(cursor) == hash.ticket) result = found<Value>(value);
      return true;
    }
    std::uint32_t* const guard = guard_of(hash);
    const item* const stored = body_at(cursor);
    for (unsigned pause = 32;; pause = detail::smaller(2 * pause, 32768u)) {
      const std::uint32_t before = shared::load(guard);
      detail::observe(stored);  // the body to which ticket and guard refer
      if (!load_if_of(stored, key, value)) return false;
      detail::observe(stored);  // later reads are after it
      if (before % 2 == 0 && shared::load(guard) == before) {
        result = found<Value>(value);
        return true;
      }
      // If writers leave no gap, a reader waits for its turn like a writer.
      const auto take_value = [&] {
        if (ticket_at(cursor) == hash.ticket) result = found<Value>(value_of(stored));
      };
      if (pause > 4096 && hold(guard, take_value)) return true;
      shared::wait(pause);
      if (ticket_at(cursor) != hash.ticket) return true;
    }
  }

  /// Calls f() while holding the guard; false if another thread holds it.
  template <class F>
  ROOST_FN static bool hold(std::uint32_t* guard, const F& f) {
    std::uint32_t before = 0;
    const auto take = [&] {
      before = shared::load(guard);
      return before % 2 == 0 && shared::compare_exchange_acquire(guard, before, before + 1) == before;
    };
    return shared::in_turn(guard, take, f, [&] { shared::store_release(guard, before + 2); });
  }

  memory memory_;
  plan plan_;
};

/// Lookups and changes of single keys: see stadium_ref.
template <class Place, class Key, class Value>
class ticket_board::table : public ticket_board::reader<Place, Key, Value> {
  using base = reader<Place, Key, Value>;
  using typename base::hashes;

 public:
  using base::base;
  using typename base::cursor_type, typename base::item;

  /// Stores a pair whose key is absent and not inserted by any other thread; the caller guarantees both. The
  /// paper's insert: it reads no body.
  ROOST_FN insertion insert_new(const Key& key, const Value& value) const {
    return put<among_all>(key, value, fresh());
  }

  /// Stores a pair unless the key is present.
  ROOST_FN insertion insert(const Key& key, const Value& value) const {
    return put<among_all>(key, value, keep());
  }

  /// Stores a pair, or gives a present key another value.
  ROOST_FN insertion insert_or_assign(const Key& key, const Value& value) const {
    return put<among_all>(key, value, assign());
  }

  /// Stores a pair; if the key is present with value v0, the value becomes f(v0, value). Other threads wait
  /// for f, which must not throw or use the map.
  template <class F>
  ROOST_FN insertion insert_or_apply(const Key& key, const Value& value, const F& f) const {
    return put<among_all>(key, value, apply<F>{f});
  }

  using inserted_or_found = roost::inserted_or_found<Value>;
  /// Stores a pair unless the key is present, and returns the value that the key has afterwards.
  ROOST_FN inserted_or_found insert_and_find(const Key& key, const Value& value) const {
    inserted_or_found result{insertion::full, value};
    result.what = put<among_all>(key, value, keep_and_tell{&result.value});
    return result;
  }

  /// Erases a key; false if it is absent. Its slot is available to this key only, until the next bulk insert.
  ROOST_FN bool erase(const Key& key) const {
    bool result = false;
    look(key, [&](const cursor_type& cursor) {
      const std::uint32_t bit = bit_of(cursor);
      result = (detail::fetch_or(*word_at(cursor), shape::available << bit) >> bit & shape::available) == 0;
      auto& flags = memory_.heads[cursor.region].flags;
      if (result && (shared::load(&flags) & region_head::packed) != 0)
        detail::fetch_and(flags, ~std::uint32_t{region_head::packed});
    });
    return result;
  }

  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert_new, insert);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert_or_assign, insert_or_apply);
  ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(insert_and_find, erase);

  // What to do about a present key, while its guard is held. (repeatable: idempotent.)

  struct fresh {  // insert_new
    static constexpr bool repeatable = true, searches = false, keeps = false;
  };
  struct keep {
    static constexpr bool repeatable = true, searches = true, keeps = true;
    ROOST_FN void change(item*, const Value&) const {}
  };
  struct assign {
    static constexpr bool repeatable = true, searches = true, keeps = false;
    ROOST_FN void change(item* position, const Value& value) const { store_value(position, value); }
  };
  template <class F>
  struct apply {
    static constexpr bool repeatable = false, searches = true, keeps = false;
    F f;
    ROOST_FN void change(item* position, const Value& value) const {
      store_value(position, f(base::value_of(position), value));
    }
  };
  struct keep_and_tell {
    static constexpr bool repeatable = true, searches = true, keeps = false;
    Value* seen;
    ROOST_FN void change(item* position, const Value&) const { *seen = base::value_of(position); }
  };

  /// The one insert.
  template <class Mode, class Change>
  ROOST_FN insertion put(const Key& key, const Value& value, const Change& change) const {
    const hashes hash = hashes_of(key);
    if (stays<Mode>() && !is_staged(cursor_of(hash).home)) return insertion::full;
    if constexpr (!Change::searches) {  // reads no body
      return settle<Mode, Mode::reuses>(cursor_of(hash), hash, key, value);
    } else {
      std::uint32_t* const guard = guard_of(hash);
      insertion what = insertion::full;
      if (stays<Mode>() && shared::load(&memory_.heads[cursor_of(hash).home].far) != 0) return what;
      for (unsigned pause = 32;; pause = detail::smaller(2 * pause, 32768u)) {
        if (base::hold(guard, [&] { what = put_guarded<Mode>(key, value, hash, change); })) return what;
        if (Change::keeps && this->contains(key)) return insertion::present;  // copies of a key need not wait
        shared::wait(pause);
      }
    }
  }

  // An insert of a new key in steps, for callers that do other work between the steps.

  ROOST_FN cursor_type first_step(const Key& key) const { return cursor_of(hashes_of(key)); }
  /// Tries the next slot of a probe sequence: true if it is now reserved, or if the whole table has no slot.
  template <class Mode>
  ROOST_FN bool reserve(cursor_type& cursor) const {
    return reserve<Mode>(cursor, reserved());
  }
  /// Stores the pair in the slot that reserve() has found.
  ROOST_FN insertion fill(const cursor_type& cursor, const Key& key, const Value& value) const {
    return fill(cursor, hashes_of(key), key, value);
  }

  // The building blocks of a sweep, during which nothing else may run.

  using base::cursor_at, base::erased_at, base::occupied_at;
  /// The probe sequence of a slot's key in the slot's region, up to the slot: calls visit(cursor) for the
  /// earlier slots as long as visit returns true. Returns the number of slots passed.
  template <class Visit>
  ROOST_FN std::uint32_t walk_to(const cursor_type& last, const Visit& visit) const {
    observe(last);
    auto cursor = cursor_of(hashes_of(base::key_of(body_at(last))));
    cursor.region = last.region;
    while (cursor.slot != last.slot && cursor.step < plan_.region_slots && visit(cursor)) pass(cursor);
    return cursor.step;
  }
  /// Moves the body of a slot to the slot of an erased key; false if another thread was faster.
  ROOST_FN bool move(const cursor_type& source, const cursor_type& target) const {
    for (taking now{}; !now.is_done;) {
      now = take<among_inserts>(target, reserved());
      if (!now.is_available) return false;
    }
    const item body = base::body_of(body_at(source));
    item* const to_body = body_at(target);
    write_body(to_body, body);
    announce(target, hashes_of(body.key).ticket);
    detail::publish(to_body);  // a thread that takes the slot writes to it only after this read
    detail::fetch_or(*word_at(source), shape::available << bit_of(source));
    return true;
  }
  ROOST_FN void free(const cursor_type& slot) const {
    detail::fetch_or(*word_at(slot), plan_.tickets.mask() << bit_of(slot));
  }

 protected:
  using base::bit_of, base::body_at, base::cursor_of, base::follow, base::guard_of, base::hashes_of;
  using base::holds, base::leave_region, base::look, base::memory_, base::observe, base::pass, base::plan_;
  using base::ticket_at, base::word_at;

 private:
  /// The value of a body that others may read, while its guard is held.
  ROOST_FN static void store_value(item* position, const Value& value) {
    detail::publish(position);  // readers see the guard's odd number first
    detail::shared_bytes<base::value_alignment, sizeof(Value)>::store(
        const_cast<unsigned char*>(base::value_bytes(position)), &value);
  }

  template <class Mode, class Change>
  ROOST_FN insertion put_guarded(const Key& key, const Value& value, const hashes& hash,
                                 const Change& change) const {
    bool present = false, own = false, room = false;
    cursor_type target = cursor_of(hash);
    follow(target, [&](const cursor_type& cursor, std::uint64_t ticket) {
      if (base::never_used(ticket)) {
        if (!room) target = cursor;
        room = true;
        return true;
      }
      if (ticket == hash.ticket && holds(cursor, key)) {
        change.change(body_at(cursor), value);
        present = true;
        return true;
      }
      if (!room && base::is_erased(ticket)) {
        own = !Mode::reuses && ticket == (hash.ticket | shape::available) && holds(cursor, key);
        room = own || Mode::reuses;
        if (room) target = cursor;
      }
      return false;
    });
    if (present) return insertion::present;
    if (!own) {
      const insertion what = settle<Mode>(room ? target : cursor_of(hash), hash, key, value);
      // If other threads were faster, earlier slots may be available that were skipped: then start again.
      return what == insertion::full && room ? settle<Mode>(cursor_of(hash), hash, key, value) : what;
    }
    item* const body = body_at(target);
    store_value(body, value);
    shared::clear_release(word_at(target), shape::available << bit_of(target));
    return insertion::inserted;
  }

  /// Stores a pair in the first available slot of its key's probe sequence, from `cursor` on. At once: the
  /// ticket announces the body before it is written, since no thread reads bodies.
  template <class Mode, bool AtOnce = false>
  ROOST_FN insertion settle(cursor_type cursor, const hashes& hash, const Key& key,
                            const Value& value) const {
    while (!reserve<Mode>(cursor, AtOnce ? hash.ticket : reserved())) {
    }
    return fill<AtOnce>(cursor, hash, key, value);
  }

  /// A ticket that has no body and info bits yet; announce() clears its bits.
  ROOST_FN std::uint64_t reserved() const { return plan_.tickets.mask() & ~shape::available; }

  /// Whether only regions whose bodies are staged may be touched.
  template <class Mode>
  ROOST_FN bool stays() const {
    return Mode::reuses && memory_.staged_slots != 0;
  }
  ROOST_FN bool is_staged(std::uint32_t region) const {
    return std::uint64_t{region} * plan_.region_slots - memory_.staged_first < memory_.staged_slots;
  }

  template <class Mode>
  ROOST_FN bool reserve(cursor_type& cursor, std::uint64_t ticket) const {
    if (cursor.distance == plan_.regions) return true;
    const taking now = take<Mode>(cursor, ticket);
    if (now.is_available) return now.is_done;
    pass(cursor);
    const bool all_seen = cursor.step == plan_.region_slots;
    if (!all_seen && cursor.step % base::patience != 0) return false;
    auto& flags = memory_.heads[cursor.region].flags;
    if (all_seen) detail::fetch_or(flags, Mode::no_room | region_head::used_up);
    if (all_seen || (shared::load(&flags) & Mode::no_room) != 0) {
      do {
        stays<Mode>() ? static_cast<void>(cursor.distance = plan_.regions) : leave_region(cursor);
      } while (cursor.distance < plan_.regions &&
               (shared::load(&memory_.heads[cursor.region].flags) & Mode::no_room) != 0);
    }
    return false;
  }

  /// One attempt to change the ticket of an available slot. By compare-and-swap, not by the paper's AND,
  /// which would also take a slot that was used and erased since it was read.
  struct taking {
    bool is_available;
    bool is_done;  // if false although the slot is available: another ticket in the same word has changed
  };
  template <class Mode>
  ROOST_FN taking take(const cursor_type& cursor, std::uint64_t ticket) const {
    std::uint64_t* const word = word_at(cursor);
    const std::uint32_t bit = bit_of(cursor);
    const std::uint64_t seen = shared::load(word);
    const std::uint64_t next = (seen & ~(plan_.tickets.mask() << bit)) | ticket << bit;
    const bool is_available =
        Mode::reuses ? (seen >> bit & shape::available) != 0 : base::never_used(seen >> bit);
    return {is_available, is_available && shared::compare_exchange(word, seen, next) == seen};
  }

  template <bool Announced = false>
  ROOST_FN insertion fill(const cursor_type& cursor, const hashes& hash, const Key& key,
                          const Value& value) const {
    if (cursor.distance == plan_.regions) return insertion::full;
    item* const target = body_at(cursor);
    write_body(target, item{key, value});
    if (cursor.step >= base::patience)
      detail::fetch_max(memory_.heads[cursor.region].longest, cursor.step + 1);
    if (cursor.distance != 0) detail::fetch_max(memory_.heads[cursor.home].far, cursor.distance);
    if (!Announced) announce(cursor, hash.ticket);
    return insertion::inserted;
  }

  /// Announces the body of a reserved slot.
  ROOST_FN void announce(const cursor_type& cursor, std::uint64_t ticket) const {
    const std::uint64_t cleared = ~ticket & plan_.tickets.mask() & ~shape::available;
    shared::clear_release(word_at(cursor), cleared << bit_of(cursor));
  }

  /// Writes a body that no other thread sees yet. 16 bytes at a time if the type allows it: a write to host
  /// memory is expensive, whatever its size.
  ROOST_FN static void write_body(item* target, const item& body) {
#if ROOST_ON_DEVICE
    if constexpr (alignof(item) % 16 == 0) {
      uint4 pieces[sizeof(item) / 16];
      memcpy(pieces, &body, sizeof(item));
      ROOST_UNROLL
      for (int i = 0; i < static_cast<int>(sizeof(item) / 16); ++i)
        reinterpret_cast<uint4*>(target)[i] = pieces[i];
      return;
    }
#endif
    detail::shared_bytes<alignof(item), sizeof(item)>::store(target, &body);
  }
};

}  // namespace roost
