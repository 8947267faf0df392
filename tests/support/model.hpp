#pragma once

#include <rapidcheck.h>

#include "support/concurrent.hpp"

// What random sequences of bulk calls on a map share: what is drawn, what the map must hold, and what its
// calls must answer.

namespace test {

using roost::operation_kind;

/// Key numbers with copies: out of few, of `large`, or of all.
inline numbers draw_numbers(std::size_t large) {
  const auto n = *rc::gen::weightedOneOf<std::size_t>(
      {{9, rc::gen::inRange<std::size_t>(0, 60)}, {1, rc::gen::inRange<std::size_t>(0, large)}});
  const auto most = *rc::gen::weightedOneOf<std::uint64_t>({{4, rc::gen::inRange<std::uint64_t>(0, 40)},
                                                            {1, rc::gen::inRange<std::uint64_t>(0, large)},
                                                            {1, rc::gen::just(~std::uint64_t{0})}});
  return random_numbers(n, *rc::gen::inRange<std::uint64_t>(0, 1000), most);
}

inline path draw_path() {
  return *rc::gen::element(path::automatic, path::direct, path::regional, path::streamed);
}

/// A map on the place, and what it must hold.
template <class T>
class map_and_oracle {
 public:
  using key = typename T::key;
  using value = typename T::value;
  using oracle = oracle_map<key, value>;

 protected:
  map_and_oracle(std::size_t n, const typename T::map::options& options)
      : map_(test_place(), n, options), grows_(options.grows) {}

  struct asked_keys {
    roost::array<key, place_type> keys;
    std::size_t hits;
  };
  /// All that the map tells of its keys and others; returns what it was asked.
  asked_keys check(std::vector<key> queries, const value& missing, const value& untouched) const {
    RC_ASSERT(read() == held_);
    for (const auto& [k, v] : held_) queries.push_back(k);
    asked_keys asked{upload(queries), 0};
    for (const key& k : queries) asked.hits += held_.count(k);
    RC_ASSERT(wrong_answers(map_, held_, queries, missing, untouched, {.path = draw_path()}) == 0u);
    RC_ASSERT(map_.count_found(test_place(), asked.keys) == asked.hits);
    const auto statistics = map_.statistics(test_place());
    RC_ASSERT(statistics.size == held_.size());
    RC_ASSERT(statistics.capacity == map_.capacity());
    RC_ASSERT(statistics.size + statistics.erased <= statistics.capacity);
    RC_ASSERT(map_.valid(test_place()));
    return asked;
  }

  /// All pairs, by retrieve_all.
  oracle read() const {
    const std::size_t n = map_.size(test_place());
    auto keys = filled<key>(n, key{});
    auto values = filled<value>(n, value{});
    RC_ASSERT(map_.retrieve_all(test_place(), keys, values) == n);
    oracle result;
    const auto all = download(keys);
    const auto their_values = download(values);
    for (std::size_t i = 0; i < n; ++i) result.emplace(all[i], their_values[i]);
    RC_ASSERT(result.size() == n);
    return result;
  }

  /// The values that a batch has for each key.
  using batch = oracle_map<key, std::vector<value>>;
  struct not_put {
    std::size_t keys = 0, pairs = 0;
  };
  /// After a bulk call that inserts: what may come of it is known but for which of a key's copies is first,
  /// and which keys find no room if the map does not grow. fits(before, copies, after): whether a key may
  /// have a value now; `before`: what it had, or null.
  template <class Fits>
  not_put after_put(const batch& given, const roost::insert_report& report, const Fits& fits) {
    const oracle now = read();
    std::size_t pairs = 0, fresh = 0;
    not_put full;
    for (const auto& [k, copies] : given) {
      pairs += copies.size();
      const auto before = held_.find(k);
      const auto after = now.find(k);
      if (after == now.end()) {
        RC_ASSERT(before == held_.end());  // no key is lost
        ++full.keys;
        full.pairs += copies.size();
        continue;
      }
      fresh += before == held_.end();
      RC_ASSERT(fits(before == held_.end() ? nullptr : &before->second, copies, after->second));
    }
    for (const auto& [k, v] : held_) {
      if (given.contains(k)) continue;
      const auto after = now.find(k);
      RC_ASSERT(after != now.end());
      RC_ASSERT(after->second == v);
    }
    RC_ASSERT(now.size() == held_.size() + fresh);
    RC_ASSERT(report.inserted == fresh);
    RC_ASSERT(report.inserted + report.present + report.full == pairs);
    RC_ASSERT(!grows_ || report.full == 0u);
    held_ = now;
    return full;
  }
  static bool one_of(const std::vector<value>& copies, const value& v) {
    return std::find(copies.begin(), copies.end(), v) != copies.end();
  }

  void erase(const std::vector<key>& keys) {
    std::size_t there = 0;
    for (const key& k : keys) there += held_.erase(k);
    RC_ASSERT(map_.erase(test_place(), upload(keys), {.path = draw_path()}) == there);
  }

  /// A mixed batch of one operation a key, so that its order does not matter.
  template <class... How>
  void run(const std::vector<roost::operation<key, value>>& operations, const How&... how) {
    const auto operations_there = upload(operations);
    roost::array<roost::operation_result<value>, place_type> results(test_place(), operations.size());
    map_.run(test_place(), operations_there, results, how...);
    const auto answers = download(results);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto& [kind, k, v] = operations[i];
      const auto& answer = answers[i];
      const auto known = held_.find(k);
      const bool there = known != held_.end();
      if (answer.full) {
        RC_ASSERT(!there);
        RC_ASSERT(!answer.done);
        RC_ASSERT((kind == operation_kind::insert || kind == operation_kind::insert_or_assign));
        continue;
      }
      switch (kind) {
        case operation_kind::find:
          RC_ASSERT(answer.done == there);
          if (there) RC_ASSERT(answer.value == known->second);
          break;
        case operation_kind::insert:
          RC_ASSERT(answer.done == !there);
          RC_ASSERT(answer.value == (there ? known->second : v));
          held_.emplace(k, v);
          break;
        case operation_kind::insert_or_assign:
          RC_ASSERT(answer.done);
          held_[k] = v;
          break;
        case operation_kind::erase:
          RC_ASSERT(answer.done == there);
          held_.erase(k);
          break;
      }
    }
  }

  typename T::map map_;
  bool grows_;
  oracle held_;
};

}  // namespace test
