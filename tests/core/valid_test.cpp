#include <roost/concurrent_map.hpp>
#include <roost/concurrent_set.hpp>
#include <roost/frozen_multimap.hpp>
#include <roost/frozen_set.hpp>
#include <roost/sorted_map.hpp>
#include <roost/stadium/stadium_map.hpp>
#include <roost/two_way_index.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// valid() says false of tables whose memory was damaged: without that, the tests that end with it would show
// nothing. (The bucketed layout's test is in frozen_map_test.cpp.) Layouts that store of a key only what its
// place does not tell cannot notice a slot that holds another key of the same place: nothing says twice which
// key was meant.

namespace test {
namespace {

constexpr std::size_t state =
    127;  // bytes at most by which a table's block is longer: it ends with its state

// compact

using compact_table = roost::compact::table<place_type, u32, u32>;
using sector = compact_table::sector;
using compact_map_type = roost::frozen_map<u32, u32, place_type, roost::compact>;

/// Sectors of small tables of 4 + 4 bytes: four words (on a host eight) of a tag and a mark, then the values.
struct sectors_of_words {
  static constexpr roost::detail::sector_format format = compact_table::formats[0].format;
  static_assert(format.bytes == 8 * format.slots && format.tag_bits == 31 && format.stride == 32 &&
                format.marks() == format.slots);
  static constexpr u32 empty = 0x7fffffffu, mark = 0x80000000u;

  std::vector<sector>& all;
  u32 region_sectors;
  u32 remainders = static_cast<u32>(roost::detail::remainders_of(all.size(), 32));

  u32 tag(std::size_t s, int slot) const { return all[s].word[slot] & ~mark; }
  void set_tag(std::size_t s, int slot, u32 tag) { all[s].word[slot] = (all[s].word[slot] & mark) | tag; }
  /// The sector of a tag's try before the one that it tells of.
  std::size_t before(std::size_t s, u32 tag) const {
    const std::size_t step = 1 + (tag % remainders >> format.log2_marks & 31),
                      first = s / region_sectors * region_sectors;
    return first + (s - first + region_sectors - step) % region_sectors;
  }
  u32& mark_word(std::size_t s, u32 tag) { return all[s].word[tag % remainders % format.marks()]; }
  /// The first pair at its second try, or if not displaced, at its first one.
  std::pair<std::size_t, int> find(bool displaced) const {
    for (std::size_t s = 0; s < all.size(); ++s) {
      for (int slot = 0; slot < format.slots; ++slot) {
        const u32 here = tag(s, slot);
        if (here != empty && here / remainders == u32{displaced}) return {s, slot};
      }
    }
    ADD_FAILURE() << "no such pair";
    return {};
  }
};

TEST(valid, of_layout_compact_notices_damage) {
  constexpr std::size_t n = 30000;
  const compact_map_type::options options{.load_factor = 4};  // as full as can be
  const auto plan = roost::compact::make_plan<place_type, u32, u32>(n, options, 0);
  const std::size_t sectors = std::size_t{plan.regions} * plan.region_sectors,
                    stash_slots = std::size_t{plan.regions} * plan.region_stash;
  ASSERT_EQ(plan.format, 0);
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const compact_map_type map(place, roost::copy_to(place, from_numbers<u32>(different_numbers(n, 1))),
                               roost::copy_to(place, numbered_values<u32>(n)), options);
    ASSERT_EQ(map.statistics().restarts, 0) << "there is another plan";
    using item = roost::pair<u32, u32>;
    auto* const all =
        static_cast<sector*>(memory.block_of(sectors * sizeof(sector) + stash_slots * sizeof(item), state));
    ASSERT_NE(all, nullptr);
    auto* const stash = reinterpret_cast<item*>(all + sectors);
    ASSERT_TRUE(map.valid(place));

    const auto damage = [&](const char* what, const auto& f) {
      expect_noticed(what, map, all, sectors,
                     [&](std::vector<sector>& words) { f(sectors_of_words{words, plan.region_sectors}); });
    };
    damage("a pair is gone", [](auto s) {
      const auto [number, slot] = s.find(false);
      s.set_tag(number, slot, s.empty);
    });
    damage("a mark is gone that a lookup needs", [](auto s) {
      const auto [number, slot] = s.find(true);
      const u32 tag = s.tag(number, slot);
      s.mark_word(s.before(number, tag), tag) &= ~s.mark;
    });
    damage("a key twice in its sector", [](auto s) {
      const auto [number, slot] = s.find(false);
      s.set_tag(number, (slot + 1) % s.format.slots, s.tag(number, slot));
    });
    damage("a key twice in reach", [](auto s) {
      const auto [number, slot] = s.find(true);
      const u32 tag = s.tag(number, slot);
      s.set_tag(s.before(number, tag), 0, tag - s.remainders);
    });
    damage("a displaced pair where no mark leads", [&](auto s) {
      const auto [number, slot] = s.find(true);
      const u32 tag = s.tag(number, slot);
      for (std::size_t to = 0; to < sectors; ++to) {
        if ((s.mark_word(s.before(to, tag), tag) & s.mark) != 0 || s.tag(to, 0) == s.empty) continue;
        s.set_tag(to, 0, tag);
        return;
      }
    });
    damage("a tag of more tries than there are", [&](auto s) {
      const auto [number, slot] = s.find(true);
      s.set_tag(number, slot, s.empty - 1);
    });

    const auto damage_stash = [&](const char* what, const auto& f) {
      expect_noticed(what, map, stash, stash_slots, [&](std::vector<item>& items) {
        const auto is_in = [&](std::size_t i) {
          return map.ref().hash_order(plan.regions)(items[i].key) == i / plan.region_stash;
        };
        for (std::size_t i = 0; i < stash_slots; ++i) {  // empty slots hold a key of another region
          if (!is_in(i)) continue;
          if (f(items, i, is_in)) return;
        }
      });
    };
    damage_stash("a pair of the stash is gone", [&](auto& items, std::size_t i, const auto& is_in) {
      for (std::size_t j = i / plan.region_stash * plan.region_stash; j < stash_slots; ++j) {
        if (is_in(j)) continue;
        items[i] = items[j];
        return true;
      }
      return false;
    });
    damage_stash("two pairs in each other's stash", [&](auto& items, std::size_t i, const auto& is_in) {
      for (std::size_t j = (i / plan.region_stash + 1) * plan.region_stash; j < stash_slots; ++j) {
        if (!is_in(j)) continue;
        std::swap(items[i], items[j]);
        return true;
      }
      return false;
    });
    damage_stash("a pair of the stash before its way begins",
                 [&](auto& items, std::size_t i, const auto& is_in) {
                   if (i % plan.region_stash == 0 || is_in(i - 1)) return false;
                   std::swap(items[i], items[i - 1]);
                   return true;
                 });
    damage_stash("a pair of the stash twice", [&](auto& items, std::size_t i, const auto& is_in) {
      if (i + 1 == stash_slots || !is_in(i + 1)) return false;
      items[i + 1] = items[i];
      return true;
    });
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

// concurrent_map

TEST(valid, of_concurrent_map_notices_damage) {
  using map_type = roost::concurrent_map<u32, u32, place_type>;
  using ref_type = map_type::ref_type;
  using slot = ref_type::slot;
  using bucket = ref_type::bucket;
  constexpr int bucket_slots = ref_type::bucket_slots;
  constexpr std::size_t n = 60000;
  auto storage = filled<std::byte>(map_type::storage_bytes(n, {.load_factor = 0.9}), std::byte{});
  map_type map(test_place(), storage.span(), {.load_factor = 0.9});
  const auto keys = upload(from_numbers<u32>(different_numbers(n, 2)));
  ASSERT_EQ(map.insert(test_place(), keys, keys).inserted, n);
  ASSERT_GE(map.statistics(test_place()).most_probes, 2u) << "all keys are at home";
  ASSERT_TRUE(map.valid(test_place()));

  const auto plan = map.ref().geometry();
  const std::size_t buckets = plan.buckets(), section = buckets / roost::probing::sections;
  ASSERT_LE(buckets * sizeof(bucket), storage.size());
  const auto damage = [&](const char* what, const auto& f) {
    expect_noticed(what, map, reinterpret_cast<bucket*>(storage.data()), buckets, f);
  };
  // The first bucket from `from` on with a key in slot 0, and a free last slot or none.
  const auto find = [&](const std::vector<bucket>& all, std::size_t from, bool has_room) {
    for (std::size_t b = from; b < buckets; ++b) {
      if (slot::is_there(all[b].slots[0]) && slot::is_free(all[b].slots[bucket_slots - 1]) == has_room)
        return b;
    }
    ADD_FAILURE() << "no such bucket";
    return std::size_t{0};
  };
  damage("a key twice in its bucket", [&](std::vector<bucket>& all) {
    bucket& b = all[find(all, 0, false)];
    b.slots[1] = b.slots[0];
  });
  damage("an erased key before itself", [&](std::vector<bucket>& all) {
    bucket& b = all[find(all, 0, false)];
    b.slots[0] = b.slots[1] | slot::erased;
  });
  damage("a key in another bucket", [&](std::vector<bucket>& all) {
    const std::size_t from = find(all, 0, true), to = find(all, from + 1, true);
    std::swap(all[from].slots[0], all[to].slots[bucket_slots - 1]);
  });
  damage("a key in another section", [&](std::vector<bucket>& all) {
    const std::size_t from = find(all, 0, true), to = find(all, from + section + 1, true);
    std::swap(all[from].slots[0], all[to].slots[bucket_slots - 1]);
  });
  damage("free slots where keys have passed", [&](std::vector<bucket>& all) {
    for (bucket& b : all) {
      if (std::none_of(b.slots, b.slots + bucket_slots, slot::is_free)) b.slots[0] = {};
    }
  });
  damage("no marks where keys have passed", [&](std::vector<bucket>& all) {
    for (bucket& b : all) {
      for (auto& word : b.slots) word = slot::in_place_of(word, {});
    }
  });
  damage("a mark beside a free slot",
         [&](std::vector<bucket>& all) { all[find(all, 0, true)].slots[0] |= slot::mark; });
  damage("a key whose slot is neither free nor taken", [&](std::vector<bucket>& all) {
    all[find(all, 0, false)].slots[0] &= ~ref_type::word{slot::taken};
  });
  damage("a free slot that an insert cannot take", [&](std::vector<bucket>& all) {
    all[find(all, 0, true)].slots[bucket_slots - 1] = slot::make(0, 1);
  });
}

TEST(valid, of_sets_notices_damage) {
  constexpr std::size_t n = 3000;
  const auto keys = upload(from_numbers<u64>(different_numbers(n, 3)));
  const auto swap_two = [](auto& all) { std::swap(all.front(), all.back()); };
  {
    using set_type = roost::concurrent_set<u64, place_type>;
    using bucket = set_type::ref_type::bucket;
    auto storage = filled<std::byte>(set_type::storage_bytes(n), std::byte{});
    set_type set(test_place(), storage.span());
    EXPECT_EQ(set.insert(test_place(), keys).inserted, n);
    expect_noticed("two buckets of a concurrent_set", set, reinterpret_cast<bucket*>(storage.data()),
                   set.bytes() / sizeof(bucket), swap_two);
  }
  using set_type = roost::frozen_set<u64, place_type, roost::bucketed>;
  using bucket = roost::bucketed::table<place_type, u64, roost::none>::bucket;
  const auto plan = roost::bucketed::make_plan<place_type, u64, roost::none>(n, {}, 0);
  const std::size_t buckets = std::size_t{plan.regions} * plan.region_buckets;
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const set_type set(place, keys);
    auto* const all = static_cast<bucket*>(memory.block_of(buckets * sizeof(bucket), state));
    ASSERT_NE(all, nullptr);
    expect_noticed("two buckets of a frozen_set", set, all, buckets, swap_two);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

struct long_value {
  u64 a, b, c;
};

TEST(valid, of_concurrent_map_notices_values_that_keys_share) {
  using map_type = roost::concurrent_map<u64, long_value, place_type>;
  using slots = roost::concurrent_map<u64, roost::indexed::index<u64>, place_type>;
  constexpr std::size_t n = 1000;
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    map_type map(place, n);
    ASSERT_EQ(map.insert(place, roost::copy_to(place, multiples(n, 3)),
                         roost::copy_to(place, std::vector<long_value>(n)))
                  .inserted,
              n);
    using bucket = slots::ref_type::bucket;
    using slot = slots::ref_type::slot;
    const std::size_t buckets = map.capacity() / slots::ref_type::bucket_slots;
    auto* const all = static_cast<bucket*>(memory.block_of(buckets * sizeof(bucket), state));
    ASSERT_NE(all, nullptr);
    ASSERT_TRUE(map.valid(place));
    expect_noticed("two keys with one entry", map, all, buckets, [](std::vector<bucket>& they) {
      typename slots::ref_type::word* first = nullptr;
      for (bucket& b : they) {
        for (auto& word : b.slots) {
          if (!slot::is_there(word)) continue;
          if (first != nullptr) {
            word = slot::make(slot::key_part(word), slot::value_part(slot::value(*first)));
            return;
          }
          first = &word;
        }
      }
    });
    expect_noticed("an entry that was never given out", map, all, buckets, [](std::vector<bucket>& they) {
      for (bucket& b : they) {
        for (auto& word : b.slots) {
          if (!slot::is_there(word)) continue;
          word = slot::make(slot::key_part(word), slot::value_part(roost::indexed::index<u64>{n}));
          return;
        }
      }
    });
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

// stadium_map

struct stadium_under_test {
  using map_type = roost::stadium_map<u64, u32, place_type>;
  using item = map_type::reader_type::item;
  static constexpr u64 available = roost::ticket_board::shape::available,
                       no_body = roost::ticket_board::shape::no_body;

  explicit stadium_under_test(double load_factor)
      : map(test_place(), n, {.load_factor = load_factor, .grows = false, .region_slots = 61}) {
    // n keys, or more than there are slots.
    const auto keys = upload(from_numbers<u64>(different_numbers(load_factor == 1 ? 2 * n : n, 3)));
    const auto values = filled<u32>(keys.size(), 0);
    EXPECT_EQ(map.insert(test_place(), keys, values).inserted, load_factor == 1 ? map.capacity() : n);
    EXPECT_TRUE(map.valid(test_place()));
  }

  template <class Damage>
  void tickets(const char* what, const Damage& f) const {
    expect_noticed(what, map, where.words, plan.words(), f);
  }
  template <class Damage>
  void heads(const char* what, const Damage& f) const {
    expect_noticed(what, map, where.heads, plan.regions, [&](auto& all) {
      for (auto& head : all) f(head);
    });
  }
  u32 bit(u64 slot) const {
    return static_cast<u32>(slot % plan.region_slots % plan.tickets.per_word) * plan.tickets.width;
  }
  u64 word(u64 slot) const {
    return slot / plan.region_slots * plan.region_words + slot % plan.region_slots / plan.tickets.per_word;
  }
  u64 ticket(const std::vector<u64>& words, u64 slot) const {
    return words[word(slot)] >> bit(slot) & plan.tickets.mask();
  }
  /// The first slot from `from` on with a key, or never used.
  u64 find(const std::vector<u64>& words, u64 from, bool has_key) const {
    for (u64 slot = from; slot < plan.slots(); ++slot) {
      if ((ticket(words, slot) & (available | no_body)) == (has_key ? 0 : available | no_body)) return slot;
    }
    ADD_FAILURE() << "no such slot";
    return 0;
  }

  static constexpr std::size_t n = 5000;
  map_type map;
  const map_type& reading = map;
  map_type::reader_type::memory where = reading.ref().where();
  roost::ticket_board::plan plan = reading.ref().geometry();
};

TEST(valid, of_stadium_map_notices_damage) {
  const stadium_under_test half(0.5), full(1);
  half.tickets("a ticket that does not match its body", [&](std::vector<u64>& words) {
    words[half.word(half.find(words, 0, true))] ^= u64{4} << half.bit(half.find(words, 0, true));
  });
  half.tickets("a key whose slot was reserved and never filled", [&](std::vector<u64>& words) {
    const u64 slot = half.find(words, 0, true);
    words[half.word(slot)] |= half.no_body << half.bit(slot);
  });
  half.tickets("a ticket where there is no slot", [&](std::vector<u64>& words) {
    ASSERT_NE(half.plan.region_slots % half.plan.tickets.per_word, 0u);
    words[half.plan.region_words - 1] &=
        ~(u64{1} << half.plan.region_slots % half.plan.tickets.per_word * half.plan.tickets.width);
  });
  half.tickets("a ticket without a pair", [&](std::vector<u64>& words) {
    const u64 slot = half.find(words, 0, false);
    words[half.word(slot)] &= ~(half.plan.tickets.mask() << half.bit(slot));
  });
  full.tickets("slots where keys have passed that say that they never were used",
               [&](std::vector<u64>& words) {
                 for (u64 slot = 0; slot < full.plan.slots(); slot += 2)
                   words[full.word(slot)] |= full.plan.tickets.mask() << full.bit(slot);
               });

  full.heads("walks in a region that are longer than it says", [](auto& head) { head.longest = 0; });
  full.heads("keys farther from home than it says", [](auto& head) { head.far = 0; });

  const auto words = download(std::span<const u64>(half.where.words, half.plan.words()));
  const u64 one = half.find(words, 0, true), other = half.find(words, half.plan.slots() / 2, true);
  ASSERT_LT(other, half.where.near_slots);
  const auto bodies = [&](const char* what, const auto& f) {
    expect_noticed(what, half.map, half.where.near, half.plan.slots(), f);
  };
  using item = stadium_under_test::item;
  bodies("two bodies in each other's place",
         [&](std::vector<item>& all) { std::swap(all[one], all[other]); });
  bodies("a body that is another key's", [&](std::vector<item>& all) { all[one].key ^= 1; });
  expect_noticed("two pairs in each other's region", half.map, half.where.words, half.plan.words(),
                 [&](std::vector<u64>& all) {
                   const auto put = [&](u64 slot, u64 ticket) {
                     all[half.word(slot)] &= ~(half.plan.tickets.mask() << half.bit(slot));
                     all[half.word(slot)] |= ticket << half.bit(slot);
                   };
                   put(one, half.ticket(words, other));
                   put(other, half.ticket(words, one));
                 });
  expect_noticed("a guard that is held", half.map, half.where.guards, half.plan.guards,
                 [](std::vector<u32>& guards) { ++guards[3]; });
}

/// A promise of insert_new that was broken.
TEST(valid, of_stadium_map_notices_keys_that_came_twice) {
  roost::stadium_map<u64, u32, place_type> map(test_place(), 100);
  const auto keys = upload(multiples(10, 7));
  const auto values = filled<u32>(10, 1);
  map.insert_new(test_place(), keys, values);
  EXPECT_TRUE(map.valid(test_place()));
  map.insert_new(test_place(), keys, values);
  EXPECT_FALSE(map.valid(test_place()));
}

// What stands on sorted or grouped arrays.

TEST(valid, of_arrays_of_keys_notices_damage) {
  constexpr std::size_t n = 999, different = 333;
  numbers key_numbers;
  for (std::size_t i = 0; i < n; ++i) key_numbers.push_back(i % different * 77);
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const auto keys = upload(key_numbers);
    const auto values = filled<u16>(n, 0);
    const auto swap_two = [](auto& all) { std::swap(all[5], all[6]); };
    {
      const roost::sorted_map<u64, u16, place_type> map(place, keys, values);
      auto* const sorted = static_cast<u64*>(memory.block_of(n * sizeof(u64)));
      ASSERT_NE(sorted, nullptr);
      expect_noticed("two keys of a sorted_map out of order", map, sorted, different, swap_two);
      expect_noticed("a key of a sorted_map twice", map, sorted, different,
                     [](auto& all) { all[5] = all[6]; });
    }
    {
      const roost::frozen_multimap<u64, u16, place_type> map(place, keys, values);
      ASSERT_EQ(map.key_count(), different);
      auto* const groups = static_cast<u64*>(memory.block_of(different * sizeof(u64)));
      auto* const offsets = static_cast<u64*>(memory.block_of((different + 1) * sizeof(u64)));
      ASSERT_NE(groups, nullptr);
      ASSERT_NE(offsets, nullptr);
      expect_noticed("two keys of a frozen_multimap in each other's place", map, groups, different, swap_two);
      expect_noticed("a group of a frozen_multimap without values", map, offsets, different + 1,
                     [](auto& all) { all[5] = all[6]; });
      expect_noticed("values of a frozen_multimap that are no key's", map, offsets, different + 1,
                     [](auto& all) { ++all[0]; });
    }
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

}  // namespace
}  // namespace test
