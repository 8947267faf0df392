#pragma once

#include <array>
#include <roost/operation.hpp>
#include <set>
#include <sstream>

#include "support/at_once.hpp"
#include "support/keys.hpp"

// What threads of a kernel, or of the host, do to a map at the same time, and what must come of it. T: key,
// value, and the ref of a map.

namespace test {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using roost::insertion;

/// The number that a value was made of.
template <class Value>
ROOST_FN u64 number_of(const Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    return value;
  } else {
    return value.unbroken() ? value.words[0] : ~u64{0};
  }
}

template <class T>
struct insert_few {
  typename T::ref ref;
  u64 keys;
  u32* inserted;  // of each key
  ROOST_FN void operator()(std::size_t i) const {
    const u64 k = dice{1}(i, keys);
    if (ref.insert(static_cast<typename T::key>(k), static_cast<typename T::value>(i)) == insertion::inserted)
      roost::detail::fetch_add(inserted[k], 1u);
  }
};

template <class T>
struct insert_and_erase {
  typename T::ref ref;
  u64 keys;
  u32* inserted;
  u32* erased;
  u32* wrong;
  ROOST_FN void operator()(std::size_t i) const {
    using value = typename T::value;
    const u64 k = dice{2}(i, keys);
    const auto key = static_cast<typename T::key>(k * 0x9e3779b9);
    const auto mine = static_cast<value>(k << 16 | (i & 0xffff));  // says whose it is
    switch (dice{3}(i, 5)) {
      case 0:
        if (ref.insert(key, mine) == insertion::inserted) roost::detail::fetch_add(inserted[k], 1u);
        break;
      case 1:
        if (ref.insert_or_assign(key, mine) == insertion::inserted) roost::detail::fetch_add(inserted[k], 1u);
        break;
      case 2:
        if (ref.erase(key)) roost::detail::fetch_add(erased[k], 1u);
        break;
      case 3: {
        const auto answer = ref.insert_and_find(key, mine);
        if (answer.what == insertion::inserted) roost::detail::fetch_add(inserted[k], 1u);
        if (number_of(answer.value) >> 16 != k) roost::detail::fetch_add(*wrong, 1u);
        break;
      }
      default:
        if (const auto answer = ref.find(key)) {
          if (number_of(*answer) >> 16 != k) roost::detail::fetch_add(*wrong, 1u);
        }
    }
  }
};

// Linearizability: what the operations on one key have answered, and when they began and ended, must fit one
// order of single steps (Herlihy and Wing 1990). A map is linearizable if each of its keys is.

enum class kind : u32 { insert, assign, erase, find };

struct event {
  u64 begin, end;
  u32 key;
  kind what;
  u32 value;   // given
  u32 done;    // inserted, erased, found
  u32 answer;  // found
  u32 unused;  // no byte is left out
};

template <class T>
struct record_history {
  typename T::ref ref;
  u32 operations;  // of a thread, one after the other
  u32 keys;
  u64 seed;
  unsigned long long* clock;
  event* events;

  /// What came before has happened by then, and nothing that follows.
  ROOST_FN unsigned long long now() const {
#if ROOST_ON_DEVICE
    __threadfence();
#endif
    const auto time = roost::detail::fetch_add(*clock, 1ull);
#if ROOST_ON_DEVICE
    __threadfence();
#endif
    return time;
  }

  ROOST_FN void operator()(std::size_t thread) const {
    for (u32 i = 0; i < operations; ++i) record(thread * operations + i);
  }

  ROOST_FN void record(std::size_t i) const {
    event mine{};
    mine.key = static_cast<u32>(dice{seed}(i, keys));
    mine.what = static_cast<kind>(dice{seed + 1}(i, 4));
    mine.value = static_cast<u32>(i) + 1;
    const auto key = static_cast<typename T::key>(mine.key * 0x10001u);
    const auto value = static_cast<typename T::value>(mine.value);
    mine.begin = now();
    switch (mine.what) {
      case kind::insert:
        mine.done = ref.insert(key, value) == insertion::inserted;
        break;
      case kind::assign:
        mine.done = ref.insert_or_assign(key, value) == insertion::inserted;
        break;
      case kind::erase:
        mine.done = ref.erase(key);
        break;
      case kind::find: {
        const auto answer = ref.find(key);
        mine.done = answer.has_value();
        mine.answer = answer ? static_cast<u32>(number_of(*answer)) : 0;
        break;
      }
    }
    mine.end = now();
    events[i] = mine;
  }
};

/// Looks for an order of one key's events. The state: there or not, and the value.
class order_of {
 public:
  enum class answer { there_is_one, there_is_none, too_many_overlap };

  explicit order_of(std::vector<event> events) : events_(std::move(events)), done_(events_.size(), false) {
    std::sort(events_.begin(), events_.end(),
              [](const event& a, const event& b) { return a.begin < b.begin; });
  }
  answer search() {
    if (go_on(0, 0, false, 0)) return answer::there_is_one;
    return been_.size() > most ? answer::too_many_overlap : answer::there_is_none;
  }
  bool exists() { return search() == answer::there_is_one; }

 private:
  bool go_on(std::size_t first, std::size_t count, bool there, u32 value) {
    while (first < events_.size() && done_[first]) ++first;
    if (first == events_.size()) return true;
    // Where the search has been before: what is done beyond `first`, and the state.
    std::vector<std::size_t> beyond{first, there, value};
    u64 first_end = ~u64{0};
    for (std::size_t i = first; i < events_.size() && events_[i].begin < first_end; ++i) {
      if (!done_[i]) first_end = std::min(first_end, events_[i].end);
    }
    for (std::size_t i = first; i < events_.size(); ++i) {
      if (done_[i]) beyond.push_back(i);
    }
    if (been_.size() > most || !been_.insert(beyond).second) return false;
    for (std::size_t i = first; i < events_.size() && events_[i].begin <= first_end; ++i) {
      const event& e = events_[i];
      if (done_[i]) continue;
      bool fits = false, there_now = there;
      u32 value_now = value;
      switch (e.what) {
        case kind::insert:
          fits = (e.done != 0) == !there;
          if (!there) value_now = e.value;
          there_now = true;
          break;
        case kind::assign:
          fits = (e.done != 0) == !there;
          value_now = e.value;
          there_now = true;
          break;
        case kind::erase:
          fits = (e.done != 0) == there;
          there_now = false;
          break;
        case kind::find:
          fits = (e.done != 0) == there && (!there || e.answer == value);
          break;
      }
      if (!fits) continue;
      done_[i] = true;
      if (go_on(first, count + 1, there_now, there_now ? value_now : 0)) return true;
      done_[i] = false;
    }
    return false;
  }

  static constexpr std::size_t most = 300000;  // steps of a search

  std::vector<event> events_;
  std::vector<bool> done_;
  std::set<std::vector<std::size_t>> been_;
};

inline std::string text_of(std::vector<event> events) {
  std::sort(events.begin(), events.end(), [](const event& a, const event& b) { return a.begin < b.begin; });
  std::ostringstream text;
  for (const event& e : events) {
    text << "\n"
         << e.begin << " to " << e.end << ": "
         << std::array{"insert", "assign", "erase", "find"}[static_cast<std::size_t>(e.what)] << " "
         << e.value << " done " << e.done << " answer " << e.answer;
  }
  return text.str();
}

// Checks of empty maps. T: also the map.

/// Of many inserts of few keys one of each key succeeds.
template <class T>
void check_inserts_of_few(typename T::map& map, u64 keys, std::size_t inserts) {
  auto inserted = filled<u32>(keys, 0);
  at_once(inserts, insert_few<T>{map.ref(), keys, inserted.data()});
  std::size_t wrong = 0, there = 0;
  for (const u32 times : download(inserted)) {
    wrong += times > 1;
    there += times;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(map.size(test_place()), there);
  EXPECT_GE(there, keys - keys / 10);
  EXPECT_TRUE(map.valid(test_place()));
}

/// Keys are there that were inserted once more often than erased, and no reader sees another key's value.
template <class T>
void check_inserts_and_erases(typename T::map& map, u64 keys, std::size_t changes) {
  SCOPED_TRACE(std::to_string(keys) + " keys");
  auto inserted = filled<u32>(keys, 0), erased = filled<u32>(keys, 0), wrong = filled<u32>(1, 0);
  at_once(changes, insert_and_erase<T>{map.ref(), keys, inserted.data(), erased.data(), wrong.data()});
  EXPECT_EQ(download(wrong)[0], 0u);
  std::vector<typename T::key> all(keys);
  for (u64 k = 0; k < keys; ++k) all[k] = static_cast<typename T::key>(k * 0x9e3779b9);
  auto found = filled<bool>(keys, false);
  map.contains(test_place(), upload(all), found);
  const auto there = download(found);
  const auto in = download(inserted), out = download(erased);
  std::size_t bad = 0;
  for (u64 k = 0; k < keys; ++k) bad += in[k] - out[k] != static_cast<u32>(there[k]);
  EXPECT_EQ(bad, 0u);
  EXPECT_TRUE(map.valid(test_place()));
}

/// Histories are linearizable. map_of(round, keys, changes): a map for one.
template <class T, class MapOf>
void check_histories(u64 rounds, const MapOf& map_of) {
  // So many threads and keys that a few operations on a key overlap; with many, there would be more orders
  // than can be looked through.
  const std::size_t threads = on_host ? 4 : 1024;
  const u32 keys = on_host ? 40 : 400, operations = on_host ? 1000 : 16;
  u64 unknown = 0;
  for (u64 round = 0; round < rounds; ++round) {
    typename T::map map = map_of(round, keys, threads * operations);
    auto clock = filled<unsigned long long>(1, 0);
    roost::array<event, place_type> recorded(test_place(), threads * operations);
    at_once(threads,
            record_history<T>{map.ref(), operations, keys, 10 * round, clock.data(), recorded.data()});
    std::vector<std::vector<event>> of_key(keys);
    for (const event& e : download(recorded)) of_key[e.key].push_back(e);
    for (u32 key = 0; key < keys; ++key) {
      const auto answer = order_of(of_key[key]).search();
      unknown += answer == order_of::answer::too_many_overlap;
      ASSERT_NE(answer, order_of::answer::there_is_none)
          << "key " << key << " in round " << round << text_of(of_key[key]);
    }
    EXPECT_TRUE(map.valid(test_place()));
  }
  EXPECT_LE(unknown, rounds * keys / 100) << "histories that say nothing";
}

#if !defined(__CUDACC__)
/// What const members say of a map from u32 to u32 with room for `most` keys is right while others change it.
/// also(map): more to ask then.
template <class Map, class Also>
void check_const_members_beside_changes(Map& map, u32 most, const Also& also) {
  const u32 stable = most / 2, changing = most - stable;
  std::vector<u32> keys(stable);
  for (u32 i = 0; i < stable; ++i) keys[i] = i;
  map.insert(test_place(), keys, keys);
  const auto ref = map.ref();
  {
    const changes_meanwhile changes([=](u64 i) {
      const u32 key = stable + static_cast<u32>(i % changing);
      i / changing % 2 == 0 ? void(ref.insert(key, key)) : void(ref.erase(key));
    });
    const Map& reading = map;
    for (int round = 0; round < (sanitized ? 5 : 30); ++round) {
      changes.wait_for_one();
      std::vector<u32> results(stable);
      reading.find(test_place(), keys, results, 7u);
      EXPECT_TRUE(results == keys);
      EXPECT_EQ(reading.count_found(test_place(), keys), stable);
      EXPECT_GE(reading.size(test_place()), stable);
      const std::size_t size = reading.statistics(test_place()).size;
      EXPECT_GE(size, stable);
      EXPECT_LE(size, most);
      also(reading);
    }
  }
  EXPECT_TRUE(map.valid(test_place()));
}
#endif

}  // namespace test
