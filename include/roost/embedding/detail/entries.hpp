#pragma once

#include "roost/embedding/detail/memory.hpp"

// Keys and rows of a table that are read, written and removed without a step.

namespace roost::detail {

struct free_slot {
  embedding_slots table;
  const std::uint32_t* slots;
  ROOST_FN void operator()(std::size_t i) const {
    if (slots[i] != no_slot) table.set_tag(slots[i], 0);
  }
};

struct has_row {
  embedding_slots table;
  std::uint32_t since = 0;
  ROOST_FN bool operator()(std::size_t slot) const { return table.has(slot) && table.steps[slot] >= since; }
};

struct keys_of_slots {
  embedding_slots table;
  const std::uint32_t* slots;
  ROOST_FN embedding_key operator[](std::size_t i) const { return table.key(slots[i]); }
};
template <class Keys>
struct read_keys {
  Keys keys;
  std::uint64_t seed;
  std::int64_t* ids;
  std::uint16_t* features;
  ROOST_FN void operator()(std::size_t i) const {
    const embedding_key key = keys[i];
    ids[i] = key.id(seed);
    features[i] = key.feature;
  }
};

template <class Place, class Keys, class Result>
Result keys_of(const Place& place, const embedding_options& options, const Keys& keys, Result result) {
  place.for_each(result.ids.size(),
                 read_keys<Keys>{keys, options.seed, result.ids.data(), result.features.data()});
  return result;
}

/// Writes entries to slots; `puts_keys`: also their keys.
struct write_embeddings {
  embedding_slots table;
  embedding_ids ids;
  const std::uint32_t *slots, *steps;
  const std::uint64_t* scores;
  bool puts_keys;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t slot = slots[i];
    if (slot == no_slot) return;
    table.steps[slot] = steps[i];
    if (table.scores != nullptr) table.scores[slot] = scores[i];
    if (puts_keys) table.put(slot, ids[i]);
  }
};
/// Whether a slot is not in the bucket of its key, or not after the previous slot.
struct is_wrong_slot {
  embedding_slots table;
  embedding_ids ids;
  const std::uint32_t* slots;
  ROOST_FN bool operator()(std::size_t i) const {
    return slots[i] / embedding_slots::of_bucket != table.home_of(ids[i].hash).bucket ||
           (i != 0 && slots[i - 1] >= slots[i]);
  }
};
struct is_elsewhere {
  const std::uint32_t *slots, *others;
  ROOST_FN bool operator()(std::size_t i) const { return slots[i] != others[i]; }
};

/// Copies whole rows from slots to slots, in words of 4 bytes. Slots that are null are 0, 1, 2...; rows with
/// no_slot are left out.
template <class Value>
struct move_rows {
  embedding_rows<Value> from, to;
  const std::uint32_t *from_slots, *to_slots;

  ROOST_FN void operator()(std::size_t j) const {
    const std::size_t words = to.stride / 4, i = j / words, word = j % words;
    const auto source = from_slots != nullptr ? from_slots[i] : static_cast<std::uint32_t>(i),
               target = to_slots != nullptr ? to_slots[i] : static_cast<std::uint32_t>(i);
    if (source == no_slot || target == no_slot) return;
    if (word == 0) to.mark(target);
    reinterpret_cast<std::uint32_t*>(to.at(target))[word] =
        reinterpret_cast<const std::uint32_t*>(from.at(source))[word];
  }
};

}  // namespace roost::detail
