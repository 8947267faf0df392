#pragma once

// Builds regions of layout compact on a GPU.

#include "roost/detail/frozen/compact.hpp"

namespace roost {

/// Builds one region on a GPU: what detail::region_build needs of a layout. (A host fills sectors in place:
/// detail/frozen/host_build.hpp.) Small: of a table with the first format.
template <class Place, class Key, class Value, bool Small, class Items>
struct compact::builder {
  using item = pair<Key, Value>;
  using table_type = table<Place, Key, Value>;
  using hash_type = typename table_type::hash_type;
  static constexpr bool has_values = table_type::value_bytes != 0;
  static constexpr int threads = detail::build_tuning<cuda>::threads;
  static constexpr int teams_at_once =
      detail::build_tuning<cuda>::compact_teams_at_once(table_type::pair_bytes);

  table_type target;
  detail::region_items<item, Items> source;

  /// The pieces of scratch for one format.
  template <class Format>
  struct pieces : detail::region_pieces {
    static constexpr detail::sector_format format = Format()();
    using tag_type = std::conditional_t<(format.tag_bits <= 16), std::uint16_t, hash_type>;
    static constexpr auto unit_slots = static_cast<std::uint32_t>(format.slots);
    static constexpr int marks_at = 24;  // the marks of a sector are in the highest bits of its count
    static constexpr std::uint32_t count_mask = (1u << marks_at) - 1;

    std::uint32_t sectors;
    std::uint32_t* stash;  // the stash, of numbers of pairs
    tag_type* tag;         // of each slot

    union value_or_owner {
      Value value;
      std::uint32_t owner;  // the number of the item, during claims
    };
    value_or_owner* value;  // of each slot

    /// Where the tags and values of slots are stored. The threads of a block work on neighbouring sectors,
    /// whose accesses must not conflict.
    ROOST_FN std::uint32_t slot(std::uint32_t sector, std::uint32_t s) const { return s * sectors + sector; }
    /// A slot as one number.
    ROOST_FN static std::uint32_t place(std::uint32_t sector, std::uint32_t s) {
      return s << marks_at | sector;
    }
  };

  builder(const table_type& table, const detail::region_items<item, Items>& items)
      : target(table), source(items) {}

  template <class F>
  ROOST_FN void with_format(const F& f) const {
    if constexpr (Small) {
      f(typename table_type::template format_of<0>());
    } else {
      target.with_format(f);
    }
  }

  ROOST_FN void scratch(detail::scratch_memory& memory) const {
    with_format([&](auto format) { static_cast<void>(take<decltype(format)>(memory)); });
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    const std::size_t region = source.from + index;
    if (source.stopped(team)) return;
    with_format([&](auto format) {
      detail::scratch_memory all(memory);
      const auto parts = take<decltype(format)>(all);
      detail::region_build(team, *this, region, parts).run();
    });
  }

  template <class Format>
  ROOST_FN pieces<Format> take(detail::scratch_memory& memory) const {
    using my_pieces = pieces<Format>;
    const std::uint32_t all = target.region_sectors_ * my_pieces::unit_slots;
    my_pieces parts;
    parts.slots = std::uint64_t{all} + target.region_stash_;
    parts.sectors = target.region_sectors_;
    parts.strays_most = all / 6 + 32;
    parts.take(memory, target.region_sectors_);
    parts.stash = memory.take<std::uint32_t>(target.region_stash_);
    parts.tag = memory.take<typename my_pieces::tag_type>(all);
    parts.value = memory.take<typename my_pieces::value_or_owner>(has_values ? all : 0);
    return parts;
  }

  /// Where a pair is in its probe sequence of tries.
  template <class Pieces>
  struct cursor_type {
    static constexpr int log2_marks = Pieces::format.log2_marks;
    std::uint32_t sector;  // of the region
    std::uint64_t tag;
    hash_type remainder;

    ROOST_FN std::uint32_t unit() const { return sector; }
    ROOST_FN void next(const builder& b) {
      sector += table_type::step_of(remainder, log2_marks);
      if (sector >= b.target.region_sectors_) sector -= b.target.region_sectors_;
      tag += b.target.remainders_;
    }
    ROOST_FN void back(const builder& b) {
      const std::uint32_t step = table_type::step_of(remainder, log2_marks);
      sector += sector < step ? b.target.region_sectors_ - step : 0 - step;
      tag -= b.target.remainders_;
    }
    ROOST_FN std::uint32_t mark() const {
      return 1u << (Pieces::marks_at + table_type::mark_of(remainder, log2_marks));
    }
  };

  /// How far a pair may probe.
  struct tries {
    std::uint32_t most, t;
    ROOST_FN void begin() { t = 1; }
    ROOST_FN bool go_on() { return t++ < most; }
  };
  template <class Pieces>
  ROOST_FN tries tries_of_stray(const Pieces&) const {
    return {target.tries_, 1};
  }

  template <class Pieces>
  ROOST_FN cursor_type<Pieces> home(const Key& key, std::uint32_t region) const {
    const auto home = split_hash(hash_of(key, target.seed_), target.all_sectors_);
    const auto remainder = static_cast<hash_type>(split_hash(home.rest, target.remainders_).digit);
    return {static_cast<std::uint32_t>(home.digit - std::uint64_t{region} * target.region_sectors_),
            remainder, remainder};
  }

  template <class Team, class Pieces>
  ROOST_FN void clear(const Team& team, std::uint32_t, const Pieces& parts) const {
    detail::for_each_of(team, target.region_sectors_, [&](std::uint32_t s) { parts.count[s] = 0; });
    detail::for_each_of(team, target.region_stash_,
                        [&](std::uint32_t i) { parts.stash[i] = detail::no_owner; });
  }

  template <class Pieces>
  ROOST_FN void put(const Pieces& parts, const cursor_type<Pieces>& cursor, std::uint32_t s,
                    const item& mine) const {
    const std::uint32_t slot = parts.slot(cursor.sector, s);
    parts.tag[slot] = static_cast<typename Pieces::tag_type>(cursor.tag);
    if constexpr (has_values) parts.value[slot].value = mine.value;
  }

  /// Records that a pair continues past this sector.
  template <class Team, class Pieces>
  ROOST_FN void pass(const Team& team, const Pieces& parts, const cursor_type<Pieces>& cursor) const {
    team.fetch_or(parts.count[cursor.sector], cursor.mark());
  }

  static constexpr std::uint32_t in_stash = 1u << 31;  // bit of a stray's number: it is in the stash

  /// Puts a stray into the stash; returns false if the stash is full or already holds its key.
  template <class Team, class Pieces>
  ROOST_FN bool put_aside(const Team& team, const Pieces& parts, const Items& items, std::uint32_t i,
                          const cursor_type<Pieces>& cursor) const {
    pass(team, parts, cursor);
    const bool made = claim_stash(team, parts.stash, items, parts.stray[i]) == detail::claim::made;
    parts.stray[i] |= in_stash;
    return made;
  }

  /// Whether a stray has passed a pair with the same key. The sectors that it passed are full.
  template <class Pieces>
  ROOST_FN bool passed_its_key(const Pieces& parts, const Items& items, std::uint32_t place,
                               std::uint32_t region) const {
    cursor_type<Pieces> cursor;
    if ((place & in_stash) != 0) {
      cursor = home<Pieces>(items[place & ~in_stash].key, region);
      for (std::uint32_t t = 0; t < target.tries_; ++t) cursor.next(*this);
    } else {
      cursor.sector = place & Pieces::count_mask;
      cursor.tag = parts.tag[parts.slot(cursor.sector, place >> Pieces::marks_at)];
      cursor.remainder = static_cast<hash_type>(cursor.tag);
      while (cursor.remainder >= target.remainders_)
        cursor.remainder -= target.remainders_;  // a few subtractions take less time than a division
    }
    bool passed = false;
    while (cursor.tag >= target.remainders_) {
      cursor.back(*this);
      for (std::uint32_t s = 0; s < Pieces::unit_slots; ++s)
        passed |= parts.tag[parts.slot(cursor.sector, s)] == cursor.tag;
    }
    return passed;
  }

  /// Claims a slot of a sector for a tag, unless one has it. Looks at all slots, so that the threads of a
  /// warp stay together.
  template <class Team, class Pieces>
  ROOST_FN static detail::claim claim_in(const Team& team, const Pieces& parts, std::uint32_t sector,
                                         typename Pieces::tag_type tag, std::uint32_t i) {
    using tag_type = typename Pieces::tag_type;
    constexpr auto empty = static_cast<tag_type>(Pieces::format.empty_tag());
    while (true) {
      tag_type seen = empty;
      std::uint32_t s = Pieces::unit_slots;  // of the first slot that is empty or the tag's
      for (std::uint32_t back = Pieces::unit_slots; back-- > 0;) {
        const tag_type here = team.read(parts.tag[parts.slot(sector, back)]);
        if (here != empty && here != tag) continue;
        s = back;
        seen = here;
      }
      if (s == Pieces::unit_slots) return detail::claim::full;
      const std::uint32_t slot = parts.slot(sector, s);
      if (seen == empty) seen = team.compare_exchange(parts.tag[slot], empty, tag);
      if (seen != empty && seen != tag) continue;
      if constexpr (has_values) {
        if (i < team.read(parts.value[slot].owner)) team.fetch_min(parts.value[slot].owner, i);
      }
      if (seen == tag) return detail::claim::duplicate;
      team.fetch_add(parts.count[sector], 1u);
      return detail::claim::made;
    }
  }

  /// Returns false if there are too many distinct keys.
  template <class Team, class Pieces>
  ROOST_FN bool place_by_claims(const Team& team, std::uint32_t region, const Items& items,
                                std::uint64_t count, const Pieces& parts) const {
    using tag_type = typename Pieces::tag_type;
    constexpr auto empty = static_cast<tag_type>(Pieces::format.empty_tag());
    const std::uint32_t slots = target.region_sectors_ * Pieces::unit_slots;
    clear(team, region, parts);
    detail::for_each_of(team, slots, [&](std::uint32_t s) {
      parts.tag[s] = empty;
      if constexpr (has_values) parts.value[s].owner = detail::no_owner;
    });
    if (team.rank() == 0) *parts.placed = 0;
    const bool fit =
        detail::claim_each(team, items, count, parts.placed, [&](std::uint32_t i, const Key& key) {
          auto cursor = home<Pieces>(key, region);
          for (std::uint32_t t = 0; t < target.tries_; ++t) {
            const detail::claim outcome =
                claim_in(team, parts, cursor.sector, static_cast<tag_type>(cursor.tag), i);
            if (outcome != detail::claim::full) return outcome;
            pass(team, parts, cursor);
            cursor.next(*this);
          }
          return claim_stash(team, parts.stash, items, i);
        });
    if constexpr (has_values) {
      detail::for_each_of(team, slots, [&](std::uint32_t s) {
        const std::uint32_t owner = parts.value[s].owner;
        if (owner != detail::no_owner) parts.value[s].value = items[owner].value;
      });
      team.sync();
    }
    return fit;
  }

  /// Writes the region; false if `twice`, or if two pairs of a sector have the same tag (which claims
  /// exclude).
  template <class Team, class Pieces>
  ROOST_FN bool seal(const Team& team, std::uint32_t region, const Items& items, const Pieces& parts,
                     bool twice, bool by_counting) const {
    twice |= pack(team, region, parts);
    write_stash(team, region, items, parts.stash);
    return !by_counting || !team.any(twice);
  }

  template <class Team>
  ROOST_FN detail::claim claim_stash(const Team& team, std::uint32_t* stash, const Items& items,
                                     std::uint32_t i) const {
    const std::uint32_t start = target.stash_start(hash_of(items[i].key, target.seed_));
    const std::uint32_t slots = target.region_stash_;
    return detail::claim_slot(team, {{stash, slots}, start, slots}, items, i, [](std::uint32_t) {});
  }

  /// Writes the n tags of a sector bit by bit; true if two are equal.
  template <class Pieces>
  ROOST_FN bool put_by_bits(const Pieces& parts, std::uint32_t number, std::uint32_t n,
                            std::uint32_t* words) const {
    constexpr detail::sector_format f = Pieces::format;
    std::uint32_t bits[f.tag_bits];  // one bit of each tag
    ROOST_UNROLL
    for (int bit = 0; bit < f.tag_bits; ++bit) bits[bit] = (1u << f.slots) - 1;
    typename Pieces::tag_type tag[f.slots];
    bool twice = false;
    ROOST_UNROLL
    for (int s = 0; s < f.slots; ++s) {
      if (static_cast<std::uint32_t>(s) >= n) break;  // often n is much less than f.slots
      tag[s] = parts.tag[parts.slot(number, static_cast<std::uint32_t>(s))];
      ROOST_UNROLL
      for (int other = 0; other < s; ++other) twice |= tag[other] == tag[s];
      const std::uint32_t zeros = ~static_cast<std::uint32_t>(tag[s]);
      ROOST_UNROLL
      for (int bit = 0; bit < f.tag_bits; ++bit) bits[bit] ^= (zeros >> bit & 1) << s;
    }
    ROOST_UNROLL
    for (int bit = 0; bit < f.tag_bits; ++bit) detail::put_bits(words, bit * f.slots, f.slots, bits[bit]);
    return twice;
  }

  /// Writes the sectors of a region; true if two pairs of a sector have the same tag.
  template <class Team, class Pieces>
  ROOST_FN bool pack(const Team& team, std::uint32_t region, const Pieces& parts) const {
    using tag_type = typename Pieces::tag_type;
    const std::uint32_t sectors = target.region_sectors_;
    bool twice = false;
    detail::write_each(
        team, sectors, target.sectors_ + std::uint64_t{region} * sectors, [&](std::uint32_t number) {
          constexpr detail::sector_format f = Pieces::format;
          const std::uint32_t n =
              detail::smaller<std::uint32_t>(parts.count[number] & Pieces::count_mask, f.slots);
          const std::uint32_t marks = parts.count[number] >> Pieces::marks_at;
          typename table_type::sector out{};
          if constexpr (f.by_bits()) {
            twice |= put_by_bits(parts, number, n, out.word);
          } else {
            tag_type tag[f.slots];
            ROOST_UNROLL
            for (int s = 0; s < f.slots; ++s) {
              const auto slot = static_cast<std::uint32_t>(s);
              const bool taken = slot < n;
              tag[s] = taken ? parts.tag[parts.slot(number, slot)] : static_cast<tag_type>(f.empty_tag());
              ROOST_UNROLL
              for (int other = 0; other < s; ++other) twice |= taken & (tag[other] == tag[s]);
              detail::put_bits(out.word, s * f.stride, f.tag_bits, tag[s]);
            }
          }
          if constexpr (has_values) {
            ROOST_UNROLL
            for (int s = 0; s < f.slots; ++s) {
              const auto slot = static_cast<std::uint32_t>(s);
              const Value mine = slot < n ? parts.value[parts.slot(number, slot)].value : Value{};
              memcpy(reinterpret_cast<char*>(out.word) + f.head_words() * 4 + s * f.value_bytes, &mine,
                     sizeof(Value));
            }
          }
          ROOST_UNROLL
          for (int m = 0; m < f.marks(); ++m) detail::put_bits(out.word, f.mark_at(m), 1, marks >> m & 1);
          return out;
        });
    return twice;
  }

  template <class Team>
  ROOST_FN void write_stash(const Team& team, std::uint32_t region, const Items& items,
                            const std::uint32_t* owner) const {
    item empty{};
    empty.key = target.empty_.of(region);
    detail::for_each_of(team, target.region_stash_, [&](std::uint32_t i) {
      target.stash_[std::uint64_t{region} * target.region_stash_ + i] =
          owner[i] != detail::no_owner ? items[owner[i]] : empty;
    });
  }
};

}  // namespace roost
