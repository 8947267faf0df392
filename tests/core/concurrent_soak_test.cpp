#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <roost/concurrent_map.hpp>

#include "support/at_once.hpp"
#include "support/keys.hpp"

// Everything at once for as long as one likes: ROOST_SOAK_SECONDS=3600. Rounds of operations of all threads,
// with bulk calls between them, and books of what must have come of it.

namespace test {
namespace {

using roost::insertion;
using roost::path;

/// Of both maps; a GPU has so many threads under way that fewer keys would queue.
const u64 all_keys = !on_host ? 1 << 17 : sanitized ? 1 << 10 : 1 << 14;
const std::size_t operations_of_round = !on_host ? 1 << 22 : sanitized ? 1 << 14 : 1 << 18;

template <class Key>
ROOST_FN Key key_of(u64 k) {
  return static_cast<Key>(k * 0x9e3779b9);  // odd: different ones
}

/// The value of a member says whose it is, and who has put it there.
template <class Value>
ROOST_FN Value value_of(u64 k, u64 writer) {
  return static_cast<Value>(k << 8 | (writer & 0xff));
}

struct add_by_hand {  // no atomic instruction for it
  template <class V>
  ROOST_FN V operator()(const V& a, const V& b) const {
    return static_cast<V>(a + b);
  }
};

template <class Key, class Value>
struct work {
  using ref = typename roost::concurrent_map<Key, Value, place_type>::ref_type;
  ref members, sums;
  u64 seed, keys;  // the first so many
  u32* balance;    // of members, by key: inserts less erases
  Value* added;    // to sums, by key
  u32* wrong;

  ROOST_FN void operator()(std::size_t i) const {
    const u64 k = dice{seed}(i, keys);
    const Key key = key_of<Key>(k);
    const Value mine = value_of<Value>(k, i);
    switch (dice{seed + 1}(i, 10)) {
      case 0:
      case 1:
        note(k, members.insert(key, mine));
        break;
      case 2:
        note(k, members.insert_or_assign(key, mine));
        break;
      case 3: {
        const auto answer = members.insert_and_find(key, mine);
        note(k, answer.what);
        expect_mine(k, answer.value);
        break;
      }
      case 4:
      case 5:
      case 6:
        if (members.erase(key)) roost::detail::fetch_add(balance[k], ~u32{0});
        break;
      case 7:
        if (const auto answer = members.find(key)) expect_mine(k, *answer);
        break;
      case 8:
        note_added(k, i, sums.insert_or_apply(key, static_cast<Value>(i % 5), roost::plus()));
        break;
      default:
        note_added(k, i, sums.insert_or_apply(key, static_cast<Value>(i % 5), add_by_hand()));
    }
  }

  ROOST_FN void note(u64 k, insertion what) const {
    if (what == insertion::inserted) roost::detail::fetch_add(balance[k], 1u);
    if (what == insertion::full) roost::detail::fetch_add(*wrong, 1u);
  }
  ROOST_FN void expect_mine(u64 k, Value value) const {
    if (value >> 8 != static_cast<Value>(k)) roost::detail::fetch_add(*wrong, 1u);
  }
  ROOST_FN void note_added(u64 k, std::size_t i, insertion what) const {
    roost::detail::fetch_add(added[k], static_cast<Value>(i % 5));
    if (what == insertion::full) roost::detail::fetch_add(*wrong, 1u);
  }
};

struct of_odd_number {
  template <class K, class V>
  ROOST_FN bool operator()(const K&, const V& value) const {
    return (value >> 8 & 1) != 0;
  }
};

/// Two maps and their books: keys of `members` come and go, those of `sums` stay and are added to.
template <class Key, class Value>
class soak {
 public:
  void round(u64 number) {
    operate(number);
    check();
    between(number);
    check();
  }

 private:
  using map = roost::concurrent_map<Key, Value, place_type>;

  void operate(u64 number) {
    auto balance = upload(balance_);
    auto added = upload(added_);
    auto wrong = filled<u32>(1, 0);
    // On the host now few keys, which are fought for, now many.
    const u64 keys = on_host ? all_keys >> number % 11 : all_keys >> number % 2;
    at_once(operations_of_round, work<Key, Value>{members_.ref(), sums_.ref(), 2 * number, keys,
                                                  balance.data(), added.data(), wrong.data()});
    EXPECT_EQ(download(wrong)[0], 0u) << "full, or another key's value";
    balance_ = download(balance);
    added_ = download(added);
  }

  /// Nothing is lost, and nothing is there that should not.
  void check() const {
    auto found = filled<bool>(all_keys, false);
    auto values = filled<Value>(all_keys, 0), sums = filled<Value>(all_keys, 0);
    members_.find(test_place(), keys_, values, found);
    sums_.find(test_place(), keys_, sums, Value{0});
    const auto there = download(found);
    const auto value = download(values);
    std::size_t live = 0, bad = 0;
    for (u64 k = 0; k < all_keys; ++k) {
      live += there[k] != 0;
      bad += balance_[k] != static_cast<u32>(there[k]) ||
             (there[k] != 0 && value[k] >> 8 != static_cast<Value>(k));
    }
    EXPECT_EQ(bad, 0u) << "members";
    EXPECT_EQ(members_.size(test_place()), live);
    EXPECT_TRUE(download(sums) == added_);
    EXPECT_TRUE(members_.valid(test_place()));
    EXPECT_TRUE(sums_.valid(test_place()));
  }

  /// A bulk call.
  void between(u64 number) {
    const path way = number / 7 % 3 == 0   ? path::automatic
                     : number / 7 % 3 == 1 ? path::direct
                                           : path::regional;
    std::vector<u64> chosen;
    std::size_t absent = 0;
    for (u64 k = 0; k < all_keys; ++k) {
      if (dice{number}(k, 1 + number % 3) != 0) continue;
      chosen.push_back(k);
      absent += balance_[k] == 0;
    }
    if (number % 7 == 5)
      chosen.insert(chosen.end(), chosen.begin(),
                    chosen.begin() + static_cast<std::ptrdiff_t>(chosen.size() / 2));  // copies
    std::vector<Key> keys;
    std::vector<Value> values;
    for (const u64 k : chosen) {
      keys.push_back(key_of<Key>(k));
      values.push_back(value_of<Value>(k, number));
    }
    const auto set_balance = [&](u32 to) {
      for (const u64 k : chosen) balance_[k] = to;
    };
    switch (number % 7) {
      case 0:
        EXPECT_EQ(members_.insert(test_place(), upload(keys), upload(values), {.path = way}).inserted,
                  absent);
        set_balance(1);
        break;
      case 1:
        EXPECT_EQ(members_.erase(test_place(), upload(keys), {.path = way}), keys.size() - absent);
        set_balance(0);
        break;
      case 2:
        members_.rehash(test_place(), all_keys);
        sums_.rehash(test_place(), all_keys);
        break;
      case 3: {
        std::vector<Key> more(3 * all_keys);
        for (u64 k = 0; k < more.size(); ++k) more[k] = key_of<Key>(all_keys + k);
        const auto others = upload(more);
        EXPECT_EQ(members_.insert(test_place(), others, others, {.path = way}).inserted, more.size());
        EXPECT_EQ(members_.erase(test_place(), others, {.path = way}), more.size());
        break;
      }
      case 4: {
        std::size_t odd = 0;
        for (u64 k = 1; k < all_keys; k += 2) odd += std::exchange(balance_[k], 0);
        EXPECT_EQ(members_.erase_if(test_place(), of_odd_number()), odd);
        break;
      }
      case 5:
        for (std::size_t i = 0; i < chosen.size(); ++i) added_[chosen[i]] += values[i];
        EXPECT_EQ(
            sums_.insert_or_apply(test_place(), upload(keys), upload(values), roost::plus(), {.path = way})
                .full,
            0u);
        break;
      default:
        members_.shrink_to_fit(test_place());
    }
    members_.reserve(test_place(), all_keys);  // for the keys of all threads: operations of refs make no room
  }

  memory_of<Key> keys_ = [] {
    std::vector<Key> keys;
    for (u64 k = 0; k < all_keys; ++k) keys.push_back(key_of<Key>(k));
    return upload(keys);
  }();
  map members_{test_place(), all_keys}, sums_{test_place(), all_keys};
  std::vector<u32> balance_ = std::vector<u32>(all_keys);
  std::vector<Value> added_ = std::vector<Value>(all_keys);
};

TEST(concurrent_soak, nothing_is_lost) {
  const char* const wanted = std::getenv("ROOST_SOAK_SECONDS");
  const double seconds = wanted != nullptr ? std::atof(wanted) : sanitized ? 1 : 2;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  soak<u32, u32> small;
  soak<u64, u64> large;
  u64 rounds = 0;
  do {
    small.round(rounds);
    large.round(rounds);
    ++rounds;
    ASSERT_FALSE(HasFailure()) << "in round " << rounds - 1;
  } while (passed() < seconds);
  std::printf("soak: %llu rounds, %.3g operations of refs, %.1f s, nothing lost\n",
              static_cast<unsigned long long>(rounds),
              2.0 * static_cast<double>(rounds) * static_cast<double>(operations_of_round), passed());
}

}  // namespace
}  // namespace test
