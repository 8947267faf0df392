#pragma once

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/groups/key_indices.hpp"
#include "roost/detail/place/look_back.hpp"

// The kernel of index_keys(): see index_keys.hpp. A team inserts the keys of a region into a table whose
// layout does not depend on the order of insertion (team_table::put_in_order): it is in hash order, so the
// index of a key is the count of occupied slots before its own, and nothing is sorted.

namespace roost::detail {

/// odd * odd_inverse(odd) is 1 modulo 2^(bits of a word).
template <class Word>
ROOST_FN constexpr Word odd_inverse(Word odd) {
  Word inverse = odd;  // right in the three lowest bits; each step doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

/// The keys of a region as words in hash order: of 31 bits, or of 63 on the host if the hash is that long. A
/// word identifies a key of at most its length. Two longer keys may have the same word: then other words are
/// tried. The number of regions must be even.
template <class Key, class Place>
class region_words {
  using hash = decltype(hash_of(std::declval<const Key&>()));
  static constexpr std::uint32_t hash_bits = 8 * sizeof(hash);
  static constexpr hash mask = static_cast<hash>(~hash{0} >> 1);
  static constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;

 public:
  using word = std::conditional_t<std::is_same_v<Place, host>, hash, std::uint32_t>;
  static constexpr bool tells_key = sizeof(Key) <= sizeof(word);
  /// For keys of up to 8 bytes, 32 more bits suffice. Longer keys are compared in the input.
  static constexpr bool rest_tells_key = sizeof(Key) <= 8;

  explicit region_words(const leading_bits& region_of)
      : region_of_(region_of),
        shift_(static_cast<std::uint32_t>(std::countr_zero(region_of.regions))),
        inverse_(odd_inverse<hash>(region_of.regions >> shift_)) {}

  struct parts {
    region_words::word word;
    std::uint32_t rest;
  };
  ROOST_FN parts of(const Key& key) const {
    // A hash times the regions is the region and a fraction, whose lowest bit is 0.
    const hash fraction = static_cast<hash>(hash_of(key, region_of_.seed) * region_of_.regions) >> 1;
    const hash inside = static_cast<hash>(fraction * multiplier_) & mask;
    if constexpr (sizeof(word) == sizeof(hash)) {
      return {inside, 0};
    } else {
      return {static_cast<std::uint32_t>(inside >> 32), static_cast<std::uint32_t>(inside)};
    }
  }
  /// The first slot of a word in a table in which `homes` slots are the first ones of words, in word order.
  ROOST_FN static std::uint32_t home(word w, std::uint32_t homes) {
    const auto leading = static_cast<std::uint32_t>(w >> (8 * sizeof(word) - 32));  // 31 bits
    return static_cast<std::uint32_t>(std::uint64_t{leading} * homes >> 31);
  }

  /// The inverse. `region`: of the key.
  ROOST_FN Key key(std::uint32_t region, const parts& source) const
    requires(rest_tells_key)
  {
    hash inside = source.word;
    if constexpr (sizeof(word) < sizeof(hash)) inside = static_cast<hash>(inside << 32) | source.rest;
    const hash fraction = static_cast<hash>(inside * back_ & mask) << 1;
    // Both halves of the product, divided by the regions: by a power of two, and by an odd number.
    const hash product = static_cast<hash>(hash{region} << (hash_bits - shift_)) | fraction >> shift_;
    return key_of_hash<Key>(static_cast<hash>(product * inverse_), region_of_.seed);
  }

  ROOST_FN void try_others() {
    multiplier_ = static_cast<hash>(multiplier_ * odd);
    back_ = odd_inverse(multiplier_);
  }

 private:
  leading_bits region_of_;
  std::uint32_t shift_;             // regions = odd number << shift
  hash inverse_;                    // of the odd number
  hash multiplier_ = 1, back_ = 1;  // and its inverse
};

/// The results that the host reads.
struct indexing_outcome {
  std::uint32_t overflowed;  // the partition ran out of slack
  std::uint32_t failed;      // regions with too many distinct keys
  std::uint32_t copies;      // regions with copies of a key although all keys should be distinct
  std::uint64_t size;        // distinct keys
  std::uint32_t items_of_few, keys_of_few;  // of a few regions, which are counted before any are marked

  /// If keys have few copies, those are marked instead of the first items: fewer marks.
  ROOST_FN bool marks_copies() const { return items_of_few < 2 * std::uint64_t{keys_of_few}; }
};

/// The output of index_keys(). Null: not requested.
template <class Key, class Value>
struct indexing_output {
  Key* keys;
  std::uint64_t* keys_before;  // of each region, counting those of frequent keys: the number of keys in
                               // earlier regions; and of all
  std::uint64_t* counts;       // items of each key
  std::uint64_t* offsets;      // of each key's item, and the end, if all keys are distinct
  Value* first;                // the least value of an item of each key
  std::uint32_t* indices;      // of each item, in the order of the regions
};

/// The number of distinct keys that a team can index.
template <class Place, class Key, class Value>
constexpr std::uint32_t indexing_tile = [] {
  using words = region_words<Key, Place>;
  constexpr std::size_t each_slot =  // of two slots per key
      sizeof(typename words::word) + (std::is_same_v<Place, host> ? sizeof(std::uint32_t) : 0);
  constexpr std::size_t each_key =
      2 * each_slot + (words::tells_key ? 5 : 9) + larger(sizeof(Value), sizeof(std::uint32_t));
  return tile_that_fits(group_tuning<Place>::indexing_bytes, each_key,
                        group_tuning<Place>::indexing_held_most);
}();

template <class Team, class Kernel>
class index_keys_team;

/// Indexes the keys of a region.
template <class Place, class Key, class Value>
struct index_keys_kernel {
  static constexpr bool one_worker = std::is_same_v<Place, host>;
  static constexpr int threads = group_tuning<cuda>::threads;
  static constexpr bool large_scratch = true;
  static constexpr int teams_at_once =
      group_tuning<cuda>::teams_at_once + (sizeof(pair<Key, Value>) <= 4 ? 1 : 0);
  static constexpr std::uint32_t tile = indexing_tile<Place, Key, Value>;
  static constexpr std::uint32_t steps_most = 512;  // of an insertion: more indicate keys with close hashes
  static constexpr std::uint32_t slots = 2 * tile + steps_most;  // the last slots do not wrap around
  using words = region_words<Key, Place>;
  using word = typename words::word;
  using table_type = team_table<word, look::read, false>;
  static constexpr word none_here = table_type::empty;
  using item = pair<Key, Value>;
  using value = Value;

  const item* items;
  const std::uint64_t* begins;
  const std::uint64_t* ends;
  std::uint32_t regions;  // with those of frequent keys
  regions_and_frequent_keys<Key> region_of;
  words words_of;
  bool different;  // stop at duplicates: only their existence matters
  indexing_output<Key, Value> target;
  indexing_outcome* outcome;
  earlier_teams turns;

  struct pieces {
    std::uint64_t* shared;  // two words, one for each call of `turns`
    std::uint32_t* warp_counts;
    word* slot;
    std::uint32_t* taken;   // a bit for each slot, unless there is one worker
    std::uint32_t* before;  // taken slots before each 32, or before each slot
    std::uint32_t* rest;    // of each key, by its index, or at an item that has it; as the next ones
    std::uint32_t* count;
    Value* first;
    std::uint32_t* index;  // of each item, for one worker
  };
  ROOST_FN pieces scratch(scratch_memory& memory) const {
    pieces parts;
    parts.shared = memory.take<std::uint64_t>(2);
    parts.warp_counts = memory.take<std::uint32_t>(32);
    parts.slot = memory.take<word>(slots);
    parts.taken = memory.take<std::uint32_t>(one_worker ? 0 : slots / 32);
    parts.before = memory.take<std::uint32_t>(one_worker ? slots : slots / 32);
    parts.rest = memory.take<std::uint32_t>(words::tells_key ? 0 : tile);
    parts.count = memory.take<std::uint32_t>(target.counts != nullptr ? tile : 0);
    parts.first = memory.take<Value>(target.first != nullptr ? tile : 0);
    parts.index = memory.take<std::uint32_t>(one_worker ? tile : 0);
    return parts;
  }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    if (outcome->overflowed != 0 || (different && team.any(peek(outcome->copies) != 0))) return;
    const pieces parts = scratch_of(*this, memory);
    const std::uint64_t region = turns.turn(team, parts.shared, [&] {
      if (!one_worker) fill_words(team, parts.slot, slots, none_here);
    });
    index_keys_team<Team, index_keys_kernel>(team, *this, parts, region).run();
  }
};

/// The work of one team.
template <class Team, class Kernel>
class index_keys_team {
  static constexpr std::uint32_t tile = Kernel::tile;
  static constexpr int per_worker = static_cast<int>(tile) / Team::size;
  using item = typename Kernel::item;
  using words = typename Kernel::words;
  using word_type = typename words::word;
  using Key = decltype(item::key);
  using Value = typename Kernel::value;
  using tile_items = held_items<per_worker, Team, const item*>;
  static constexpr bool has_least =
      std::is_same_v<Value, std::uint32_t>;  // of several values, if there are duplicates

 public:
  ROOST_FN index_keys_team(const Team& team, const Kernel& kernel, const typename Kernel::pieces& parts,
                           std::uint64_t region)
      : team_(team),
        kernel_(kernel),
        parts_(parts),
        region_(region),
        first_(kernel.begins[region]),
        count_(kernel.ends[region] - first_),
        size_(smaller(
            tile, larger(64u, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count_ + 15)) & ~15u))),
        words_(kernel.words_of),
        mine_(team, kernel.items, first_, static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count_))),
        index_(parts.index) {}

  /// The slots of the table are empty at the start, except if there is one worker.
  ROOST_FN void run() {
    if (count_ > tile && kernel_.region_of.is_frequent(kernel_.items[first_].key)) return write_only_key();
    // If all keys must be distinct, their number is known; an attempt with copies fails anyway.
    if (kernel_.different && count_ <= tile) kernel_.turns.announce(team_, region_, count_);
    std::uint32_t keys = 0;
    bool good = count_ == 0;
    ROOST_ROLLED
    for (int attempt = 0; attempt < 4 && !good; ++attempt) {
      if (attempt != 0) words_.try_others();
      if (Kernel::one_worker || attempt != 0) {
        fill_words(team_, parts_.slot, slots(), Kernel::none_here);
        team_.sync();
      }
      keys = insert();
      if (words::tells_key && keys <= tile && !kernel_.different)
        kernel_.turns.announce(team_, region_, keys);
      good = keys <= tile && index_items(keys);
    }
    const bool copies = good && kernel_.different && keys != count_;
    if (!good || copies) {
      if (team_.rank() == 0) fetch_add(copies ? kernel_.outcome->copies : kernel_.outcome->failed, 1u);
      keys = 0;
    }
    const std::uint64_t base = begin_output(keys);
    if (keys != 0) write(base, keys);
  }

 private:
  /// Calls body(n, done) for each tile of items, which are then loaded.
  template <class Body>
  ROOST_FN void each_tile(const Body& body) {
    ROOST_ROLLED
    for (std::uint64_t done = 0; done < count_; done += tile) {
      const auto n = static_cast<std::uint32_t>(smaller<std::uint64_t>(tile, count_ - done));
      if (count_ > tile) mine_ = tile_items(team_, kernel_.items, first_ + done, n);
      body(n, done);
    }
  }

  /// The number of keys that the table is for: with one worker at most the number of items, since it visits
  /// each slot.
  ROOST_FN std::uint32_t size() const {
    if constexpr (Kernel::one_worker) {
      return size_;
    } else {
      return tile;
    }
  }
  ROOST_FN std::uint32_t slots() const { return 2 * size() + Kernel::steps_most; }
  ROOST_FN typename Kernel::table_type table() const { return {parts_.slot, slots()}; }

  ROOST_FN std::uint32_t home(word_type word) const { return words::home(word, 2 * size()); }

  /// Inserts all keys, and counts occupied slots; returns the number of keys, or a number above `tile`.
  ROOST_FN std::uint32_t insert() {
    bool full = false;
    each_tile([&](std::uint32_t n, std::uint64_t) {
      for_each_held_in_step<per_worker>(team_, n, [&](int held, int i) {
        const word_type word = words_.of(mine_(held, i).key).word;
        keep_word(held, i, word);
        full |= !table().put_in_order(team_, home(word), word, Kernel::steps_most);
      });
    });
    if (team_.any(full)) return ~0u;
    const auto taken = [&](std::uint32_t s) { return parts_.slot[s] != Kernel::none_here; };
    if constexpr (Kernel::one_worker) {
      std::uint32_t keys = 0;
      for (std::uint32_t s = 0; s < slots(); ++s) {
        parts_.before[s] = keys;
        keys += taken(s) ? 1 : 0;
      }
      return keys;
    } else {
      return rank_bits<Kernel::slots / 32>(team_, taken, parts_.taken, parts_.before, parts_.warp_counts);
    }
  }

  /// An item's word; if it is kept until the item has an index, it is not hashed again.
  ROOST_FN void keep_word([[maybe_unused]] int held, [[maybe_unused]] int i, word_type word) {
    if constexpr (sizeof(word) == sizeof(std::uint32_t)) index_(held, i) = word;
  }
  ROOST_FN word_type kept_word(int held, int i) {
    if constexpr (sizeof(word_type) == sizeof(std::uint32_t)) {
      return index_(held, i);
    } else {
      return words_.of(mine_(held, i).key).word;
    }
  }

  ROOST_FN std::uint32_t index_of_slot(std::uint32_t s) const {
    if constexpr (Kernel::one_worker) {
      return parts_.before[s];
    } else {
      return parts_.before[s / 32] + count_bits(parts_.taken[s / 32] & ((1u << s % 32) - 1));
    }
  }

  ROOST_FN std::uint32_t index_of_word(word_type word) const {
    return index_of_slot(table().find(home(word), [&](word_type other) { return other == word; }));
  }

  /// Looks up the indices of a tile's items, unless they are already known.
  ROOST_FN void look_up_again(std::uint32_t n) {
    if (count_ <= tile) return;
    for_each_held<per_worker>(team_, n, [&](int held, int i) {
      index_(held, i) = index_of_word(words_.of(mine_(held, i).key).word);
    });
  }

  /// Finds each item's index, and whatever else is requested of the items. False if two keys have the same
  /// word.
  ROOST_FN bool index_items(std::uint32_t keys) {
    const bool counts = kernel_.target.counts != nullptr && keys != count_,
               first = kernel_.target.first != nullptr;
    if (words::tells_key && !counts && !first && kernel_.target.indices == nullptr) return true;
    if (keys != count_ && (counts || first)) {
      for_each_of(team_, keys, [&](std::uint32_t g) {
        if (counts) parts_.count[g] = 0;
        if constexpr (has_least) {
          if (first) parts_.first[g] = ~Value{0};
        }
      });
      team_.sync();
    }
    each_tile([&](std::uint32_t n, [[maybe_unused]] std::uint64_t done) {
      if (count_ > tile) {
        for_each_held<per_worker>(
            team_, n, [&](int held, int i) { keep_word(held, i, words_.of(mine_(held, i).key).word); });
      }
      for_each_held<per_worker>(team_, n, [&](int held, int i) {
        const std::uint32_t index = index_of_word(kept_word(held, i));
        index_(held, i) = index;
        if constexpr (words::rest_tells_key && !words::tells_key) {
          team_.exchange(parts_.rest[index], words_.of(mine_(held, i).key).rest);
        } else if constexpr (!words::tells_key) {
          team_.exchange(parts_.rest[index],
                         static_cast<std::uint32_t>(done) + static_cast<std::uint32_t>(i));
        }
        if (counts) team_.fetch_add(parts_.count[index], 1u);
        if constexpr (!std::is_same_v<Value, none>) {
          if (!first) return;
          if (keys == count_) {
            parts_.first[index] = mine_(held, i).value;
          } else if constexpr (has_least) {  // otherwise not read
            team_.fetch_min(parts_.first[index], mine_(held, i).value);
          }
        }
      });
    });
    if constexpr (words::tells_key) return true;
    team_.sync();
    bool other = false;
    each_tile([&](std::uint32_t n, std::uint64_t) {
      look_up_again(n);
      for_each_held<per_worker>(team_, n, [&](int held, int i) {
        other |= !has_rest(mine_(held, i).key, parts_.rest[index_(held, i)]);
      });
    });
    return !team_.any(other);
  }

  ROOST_FN bool has_rest(const Key& key, std::uint32_t rest) const {
    if constexpr (words::rest_tells_key) {
      return words_.of(key).rest == rest;
    } else {
      return same_key(kernel_.items[first_ + rest].key, key);
    }
  }

  ROOST_FN Key key_of(std::uint32_t region, std::uint32_t index) const {
    if constexpr (words::tells_key) {
      return words_.key(region, {parts_.slot[index], 0});
    } else if constexpr (words::rest_tells_key) {
      return words_.key(region, {parts_.slot[index], parts_.rest[index]});
    } else {
      return kernel_.items[first_ + parts_.rest[index]].key;
    }
  }

  /// Returns the number of keys in earlier regions.
  ROOST_FN std::uint64_t begin_output(std::uint32_t keys) const {
    const std::uint64_t base = kernel_.turns.sum_before(team_, region_, keys, parts_.shared + 1);
    if (team_.rank() == 0) {
      std::uint64_t* const before = kernel_.target.keys_before + region_;
      if (region_ == 0) before[0] = 0;
      before[1] = base + keys;
      if (region_ + 1 == kernel_.regions) {
        kernel_.outcome->size = base + keys;
        if (kernel_.target.offsets != nullptr) kernel_.target.offsets[base + keys] = base + keys;
      }
    }
    return base;
  }

  ROOST_FN void write(std::uint64_t base, std::uint32_t keys) {
    const auto& target = kernel_.target;
    if (target.indices != nullptr) {
      each_tile([&](std::uint32_t n, std::uint64_t done) {
        look_up_again(n);
        for_each_held<per_worker>(team_, n, [&](int held, int i) {
          target.indices[first_ + done + static_cast<std::uint32_t>(i)] =
              static_cast<std::uint32_t>(base) + index_(held, i);
        });
      });
    }
    const bool with_keys = target.keys != nullptr;
    if (with_keys) collect_words();
    const std::uint32_t region = kernel_.region_of.spread(kernel_.items[first_].key);
    for_each_of(team_, keys, [&](std::uint32_t g) {
      if (with_keys) target.keys[base + g] = key_of(region, g);
      if (target.counts != nullptr) target.counts[base + g] = keys == count_ ? 1 : parts_.count[g];
      if (target.offsets != nullptr) target.offsets[base + g] = base + g;
      if (target.first != nullptr) target.first[base + g] = parts_.first[g];
    });
  }

  /// Moves the words of the keys to the first slots, where each is at its index.
  ROOST_FN void collect_words() const {
    if constexpr (Team::size == 1) {
      for (std::uint32_t s = 0, index = 0; s < slots(); ++s) {
        const word_type word = parts_.slot[s];  // no branch: it would often be mispredicted
        parts_.slot[index] = word;
        index += word != Kernel::none_here ? 1 : 0;
      }
    } else {
      constexpr std::uint32_t each =
          Kernel::slots / static_cast<std::uint32_t>(Team::size);  // groups of a warp
      const std::uint32_t lane = static_cast<std::uint32_t>(team_.rank()) % 32,
                          first = static_cast<std::uint32_t>(team_.rank()) / 32 * each,
                          below = (1u << lane) - 1;
      std::uint32_t word[each];
      ROOST_UNROLL
      for (std::uint32_t g = 0; g < each; ++g) word[g] = parts_.slot[32 * (first + g) + lane];
      team_.sync();
      ROOST_UNROLL
      for (std::uint32_t g = 0; g < each; ++g) {
        const std::uint32_t index = parts_.before[first + g] + count_bits(parts_.taken[first + g] & below);
        if (word[g] != Kernel::none_here) parts_.slot[index] = word[g];
      }
    }
    team_.sync();
  }

  /// The key of a region of one key. for_each_frequent_item does the work for each of its items.
  ROOST_FN void write_only_key() const {
    const std::uint64_t base = begin_output(1);
    if (team_.rank() != 0) return;
    const auto& target = kernel_.target;
    if (target.counts != nullptr) target.counts[base] = count_;
    if constexpr (!std::is_same_v<Value, none>) {
      if (target.first != nullptr) target.first[base] = kernel_.items[first_].value;
    }
    if (target.keys != nullptr) target.keys[base] = kernel_.items[first_].key;
  }

  const Team& team_;
  const Kernel& kernel_;
  const typename Kernel::pieces& parts_;
  std::uint64_t region_;
  std::uint64_t first_, count_;
  std::uint32_t size_;
  words words_;
  tile_items mine_;
  item_indices<per_worker, Team> index_;
};

}  // namespace roost::detail
