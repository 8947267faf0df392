#pragma once

#include <bit>
#include <cmath>
#include <optional>

#include "roost/detail/groups/first_items.hpp"
#include "roost/frozen_map.hpp"

// Indexing: each distinct key of a batch gets an index, in hash order. The batch is partitioned by the
// leading bits of the hash, and a team indexes the keys of a region.

namespace roost::detail {

/// What a caller requests of a batch.
struct indexing_kind {
  bool keys = false;
  bool counts = false;
  bool first = false;      // values; of several values of a key the lowest, if they are positions
  bool indices = false;    // of items
  bool different = false;  // all keys are distinct, or the result is nothing; also their offsets
  bool marks = false;      // of first items, and nothing else: keys of up to 8 bytes, values are positions
  std::optional<sample_facts> sample{};  // what the caller has seen already
};

/// The facts about a batch. Those that were not requested are empty.
template <class Key, class Value, class Place>
struct indexed_batch {
  std::size_t size = 0;  ///< distinct keys
  array<Key, Place> keys;
  array<std::uint64_t, Place> counts, offsets;
  array<Value, Place> first;
  std::optional<marked_positions<Place>> marked;  // ranked, unless all keys are distinct
  frequent_keys<Key, Place> frequent{leading_bits{}};
  array<std::uint64_t, Place> keys_before;  // see indexing_output

  // of items
  std::optional<partitioned<pair<Key, Value>, Place>> parts;
  array<std::uint32_t, Place> indices;

  /// target[i] = of[the index of item i], or the index if `of` is null.
  void of_each_item(const Place& place, const std::uint32_t* of, std::uint32_t* target) const {
    const put_to<std::uint32_t> to{target};
    if (of == nullptr) return parts->restore_each(place, indices.data(), to, nullptr);
    const computed of_indices(indices.size(), gather<std::uint32_t>{of, indices.data()});
    parts->restore_each(place, of_indices, to, nullptr);
  }
};

template <class Key>
struct first_of_frequent {
  const pair<Key, std::uint32_t>* items;
  const std::uint64_t* keys_before;
  std::uint32_t* first;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t region, std::uint32_t) const {
    fetch_min(first[keys_before[region]], items[i].value);
  }
};

struct index_of_frequent {
  const std::uint64_t* keys_before;
  std::uint32_t* indices;
  ROOST_FN void operator()(std::uint64_t i, std::uint32_t region, std::uint32_t) const {
    indices[i] = static_cast<std::uint32_t>(keys_before[region]);
  }
};

template <class Key>
struct begin_of_region {
  regions_and_frequent_keys<Key> region_of;
  const std::uint64_t* keys_before;
  ROOST_FN std::uint64_t operator()(std::size_t region) const {
    return keys_before[region_of.index_of(static_cast<std::uint32_t>(region))];
  }
};

/// The number of regions for items: a few more than needed, so that the number can be halved often. Then a
/// table of few distinct keys can use the keys of several regions in place.
inline std::uint32_t group_regions_of(double needed) {
  const auto least = static_cast<std::uint32_t>(larger(2.0, std::ceil(needed)));
  const std::uint32_t unit = larger(2u, std::bit_floor(least / 64));
  return ceil_div(least, unit) * unit;
}

/// Where the keys of each region begin, and their end; `keys_before`: of all regions, including those of
/// frequent keys.
template <class Key, class Place>
array<std::uint64_t, Place> begins_of_regions(const Place& place, const frequent_keys<Key, Place>& frequent,
                                              const array<std::uint64_t, Place>& keys_before) {
  return array_of(place, std::size_t{frequent.region_of.spread.regions} + 1,
                  begin_of_region<Key>{frequent.region_of, keys_before.data()});
}

/// The first result of attempt(seed, tighter) that is not nothing; `tighter`: the factor by which regions
/// should have fewer items than they could.
template <class Attempt>
auto with_some_seed(std::uint64_t seed, const char* where, const Attempt& attempt) {
  for (int i = 0; i < 4; ++i) {
    if (auto result = attempt(seed_of_attempt(seed, i), 1 + i / 4.0)) return std::move(*result);
  }
  detail::raise<build_error>(
      {where,
       ": the keys of some region are more than a team can index, with 4 seeds; keys that were "
       "chosen to collide?"});
}

/// Keeps the first n elements of an array that had room for more, and frees the rest if that is most of it
/// and worth a copy.
template <class T, class Place>
void truncate(const Place& place, array<T, Place>& values, std::size_t n) {
  if (!frees_rest(values.bytes(), n, values.size())) return values.shrink(n);
  array<T, Place> kept(place, n);
  place.copy(kept.data(), values.data(), kept.bytes());
  values = std::move(kept);
}

/// Indexes a batch with one seed.
template <class Key, class Value, class Place>
class indexer {
  using kernel = index_keys_kernel<Place, Key, Value>;
  using item = typename kernel::item;
  using result_type = indexed_batch<Key, Value, Place>;
  static constexpr bool can_mark = std::is_same_v<Value, std::uint32_t> && sizeof(Key) <= 8;

 public:
  indexer(const Place& place, std::size_t n, std::uint64_t seed, double tighter, const indexing_kind& kind)
      : place_(place), n_(n), kind_(kind), batch_(facts_of<Key>(place, n)) {
    // Frequent keys must be found again, for regions of their own.
    if (kind.sample && kind.sample->frequent == 0) batch_.sample = kind.sample;
    result_.frequent = frequent_keys<Key, Place>({seed, regions_for(n, tile(), tighter)});
  }

  /// Returns nothing if some region has too many keys.
  template <class Source>
  std::optional<result_type> run(const Source& source) {
    const auto succeeds = [&](room room) {
      const indexing_outcome outcome =
          kind_.indices ? attempt<true>(source, room) : attempt<false>(source, room);
      batch_.hopeless = outcome.failed + outcome.copies != 0;
      if (batch_.hopeless || outcome.overflowed != 0) return false;
      kind_.marks ? finish_marks(outcome) : finish(outcome.size);
      return true;
    };
    for (;;) {
      switch (choose_indexing(batch_, kind_.different)) {
        case indexing_step::sample:
          result_.frequent.sample(place_, source, group_tuning<Place>::tiles_most * tile());
          batch_.sample = result_.frequent.seen;
          break;
        case indexing_step::slack:
          if (succeeds(room::slack)) return std::move(result_);
          batch_.tried.slack = true;
          break;
        case indexing_step::exact:
          if (succeeds(room::exact)) return std::move(result_);
          batch_.tried.exact = true;
          break;
        case indexing_step::give_up:
          return {};
      }
    }
  }

 private:
  std::uint32_t tile() const {
    if constexpr (can_mark) {
      if (kind_.marks) return mark_first_items<Place, Key>::tile;
    }
    return kernel::tile;
  }

  /// The slack for copies fills a tile.
  static std::uint32_t regions_for(std::size_t n, std::uint32_t tile, double tighter) {
    const double half = 3 * std::sqrt(indexing_copies);
    const double root = std::sqrt(half * half + tile - 32) - half;
    return group_regions_of(static_cast<double>(n) / (root * root) * tighter);
  }

  template <bool WayBack, class Source>
  indexing_outcome attempt(const Source& source, room room) {
    const auto& frequent = result_.frequent;
    const std::uint32_t regions = frequent.regions();
    constexpr std::size_t head = ceil_div(sizeof(indexing_outcome), sizeof(std::uint64_t));
    auto state = zeros(place_, head + earlier_teams::words(regions));  // one fill for both
    auto* const outcome = reinterpret_cast<indexing_outcome*>(state.data());
    partitioner<Place, item, partition_kind{.way_back = WayBack}> partitioner(
        place_, regions,
        {.room = room, .overflowed = &outcome->overflowed, .copies = indexing_slack(batch_)});
    result_.parts.emplace(partitioner.run(source, frequent.region_of));
    if constexpr (can_mark && !WayBack) {
      if (kind_.marks) return mark(outcome);
    }
    result_.keys_before = array<std::uint64_t, Place>(place_, std::size_t{regions} + 1);
    result_.keys = array<Key, Place>(place_, kind_.keys ? n_ : 0);
    result_.counts = array<std::uint64_t, Place>(place_, kind_.counts ? n_ : 0);
    result_.offsets = array<std::uint64_t, Place>(place_, kind_.different ? n_ + 1 : 0);
    result_.first = array<Value, Place>(place_, kind_.first ? n_ : 0);
    result_.indices = array<std::uint32_t, Place>(place_, kind_.indices ? result_.parts->extent() : 0);
    const kernel index{.items = result_.parts->items(),
                       .begins = result_.parts->begins(),
                       .ends = result_.parts->ends(),
                       .regions = regions,
                       .region_of = frequent.region_of,
                       .words_of = typename kernel::words(frequent.region_of.spread),
                       .different = kind_.different,
                       .target = {result_.keys.data(), result_.keys_before.data(), result_.counts.data(),
                                  result_.offsets.data(), result_.first.data(), result_.indices.data()},
                       .outcome = outcome,
                       .turns = earlier_teams(state.data() + head)};
    place_.launch(regions, scratch_bytes_of(index), index);
    return read_one(place_, outcome);
  }

  /// Marks first items or, if a few regions show that these are fewer, all others.
  indexing_outcome mark(indexing_outcome* outcome) {
    using marker = mark_first_items<Place, Key>;
    const auto& frequent = result_.frequent;
    result_.marked.emplace(place_, n_);
    marker mark{.items = result_.parts->items(),
                .begins = result_.parts->begins(),
                .ends = result_.parts->ends(),
                .region_of = frequent.region_of,
                .counts_few = true,
                .target = result_.marked->ref(),
                .outcome = outcome};
    if (counts_few_regions(batch_, frequent.regions()))
      place_.launch(marker::few, scratch_bytes_of(mark), mark);
    mark.counts_few = false;
    place_.launch(frequent.regions(), scratch_bytes_of(mark), mark);
    return read_one(place_, outcome);
  }

  void finish_marks(const indexing_outcome& outcome) {
    if constexpr (can_mark) {
      const auto& region_of = result_.frequent.region_of;
      auto least = filled<std::uint32_t>(place_, region_of.count, 0xff);
      for_each_frequent_item(place_, *result_.parts, region_of, n_,
                             least_position<Key>{result_.parts->items(), least.data()});
      place_.for_each(region_of.count, mark_first{least.data(), nullptr, result_.marked->ref()});
    }
    result_.size = outcome.size;
    if (outcome.size != n_) result_.marked->rank(place_, outcome.marks_copies());
  }

  void finish(std::size_t size) {
    const auto& frequent = result_.frequent;
    const std::uint64_t* const keys_before = result_.keys_before.data();
    if constexpr (std::is_same_v<Value, std::uint32_t>) {
      if (kind_.first) {
        for_each_frequent_item(
            place_, *result_.parts, frequent.region_of, n_,
            first_of_frequent<Key>{result_.parts->items(), keys_before, result_.first.data()});
      }
    }
    if (kind_.indices) {
      for_each_frequent_item(place_, *result_.parts, frequent.region_of, n_,
                             index_of_frequent{keys_before, result_.indices.data()});
    }
    result_.size = size;
    truncate(place_, result_.keys, size);
    truncate(place_, result_.counts, size);
    truncate(place_, result_.first, size);
  }

  const Place& place_;
  std::size_t n_;
  indexing_kind kind_;
  batch_facts batch_;
  result_type result_;
};

inline void check_batch(std::size_t n, const char* where) {
  if (n > batch_most)
    detail::raise<invalid_argument>({where, ": a batch of ", n, " keys; give at most 2^32 - 2 at once"});
}

/// Indexes the distinct keys of a batch in hash order; with their positions, of type Position, if first
/// occurrences are requested. Synchronises. Throws invalid_argument, out_of_memory, build_error.
template <class Position, class Place, class Keys>
auto index_keys(const Place& place, const Keys& keys, std::uint64_t seed, const indexing_kind& kind,
                const char* where) {
  using Key = element_of<Keys>;
  check_batch(keys.size(), where);
  const auto source = [&] {
    if constexpr (std::is_same_v<Position, none>) {
      return alone{keys};
    } else {
      return zipped{keys, numbers_to<Position>(keys.size())};
    }
  }();
  return with_some_seed(seed, where, [&](std::uint64_t some_seed, double tighter) {
    return indexer<Key, Position, Place>(place, keys.size(), some_seed, tighter, kind).run(source);
  });
}

}  // namespace roost::detail
