#include <cstdio>
#include <random>
#include <roost/embedding/embedding_table.hpp>
#include <unordered_map>

#include "support/keys.hpp"
#include "support/place.hpp"

// embedding_table against a model that takes one id after the other: slots, rows, victims, and all that is
// counted. ROOST_ORACLE_OPERATIONS says how many ids it takes (1e8: some minutes), ROOST_ORACLE_SEED where
// their numbers begin.

namespace test {
namespace {

using table = roost::embedding_table<place_type>;
using i64 = std::int64_t;

constexpr u32 no_row = ~0u;
constexpr float fresh = 7;  // what new rows are

/// Ids of a call.
struct ids_of_call {
  std::vector<i64> ids;
  std::vector<u16> features;  // or empty: all are of `feature`
  u16 feature = 0;
  std::vector<u32> scores;  // or empty

  u16 feature_of(std::size_t i) const { return features.empty() ? feature : features[i]; }
};

struct key_of_id {
  i64 id;
  u16 feature;
  friend bool operator==(const key_of_id& a, const key_of_id& b) {
    return a.id == b.id && a.feature == b.feature;
  }
  friend bool operator<(const key_of_id& a, const key_of_id& b) {
    return a.id != b.id ? a.id < b.id : a.feature < b.feature;
  }
};
struct hash_of_id {
  std::size_t operator()(const key_of_id& k) const {
    return std::hash<u64>()((static_cast<u64>(k.id) + k.feature * 0x1234567u) * 0x9e3779b97f4a7c15u >> 7);
  }
};

/// What a table does, one id after the other.
class oracle {
 public:
  explicit oracle(const roost::embedding_options& options)
      : options_(options), buckets_((options.capacity + 127) / 128), slots_(buckets_ * 128) {}

  struct slot {
    bool taken = false;
    key_of_id key = {};
    u32 step = 0;
    u64 score = 0;  // lookups, or your score
    float row = 0;
  };

  /// A training step; `rows`: or one that sets the row of each id. Returns slots.
  std::vector<u32> take(const ids_of_call& call, u32 running, const std::vector<float>* rows = nullptr) {
    ++steps;
    lost.clear();
    std::unordered_map<key_of_id, u64, hash_of_id> missing;  // and their lookups, or greatest score
    for (std::size_t i = 0; i < call.ids.size(); ++i) {
      const key_of_id key{call.ids[i], call.feature_of(i)};
      if (const auto it = where_.find(key); it != where_.end()) {
        look_up(slots_[it->second], call, i);
      } else {
        u64& weight = missing[key];
        weight = call.scores.empty() ? weight + 1 : std::max<u64>(weight, call.scores[i]);
      }
    }
    std::vector<std::pair<std::pair<u64, u16>, std::pair<key_of_id, u64>>> in_order;
    for (const auto& [key, weight] : missing)
      in_order.push_back({{hash_of(key), key.feature}, {key, weight}});
    std::sort(in_order.begin(), in_order.end());
    for (const auto& [hash, one] : in_order) place(hash.first, one.first, one.second, running);

    std::vector<u32> result = find(call);
    for (std::size_t i = 0; i < result.size(); ++i) {
      unplaced += result[i] == no_row;
      if (rows != nullptr && result[i] != no_row) slots_[result[i]].row = (*rows)[i];
    }
    return result;
  }
  std::vector<u32> find(const ids_of_call& call) const {
    std::vector<u32> result(call.ids.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto it = where_.find({call.ids[i], call.feature_of(i)});
      result[i] = it == where_.end() ? no_row : it->second;
    }
    return result;
  }
  void erase(const ids_of_call& call) {
    for (std::size_t i = 0; i < call.ids.size(); ++i) {
      const auto it = where_.find({call.ids[i], call.feature_of(i)});
      if (it == where_.end()) continue;
      slots_[it->second].taken = false;
      where_.erase(it);
    }
  }
  float row(u32 number) const { return number == no_row ? fresh : slots_[number].row; }
  std::size_t size() const { return where_.size(); }
  const std::vector<slot>& slots() const { return slots_; }

  u64 steps = 0, evicted = 0, unplaced = 0;
  std::vector<key_of_id> lost;  // in the last step

 private:
  u64 hash_of(const key_of_id& key) const {
    return roost::mix64(static_cast<u64>(key.id) ^ key.feature * 0x9e3779b97f4a7c15ull, options_.seed);
  }
  void look_up(slot& s, const ids_of_call& call, std::size_t i) const {
    if (call.scores.empty()) {
      ++s.score;
    } else {
      s.score = s.step == steps ? std::max<u64>(s.score, call.scores[i]) : call.scores[i];
    }
    s.step = static_cast<u32>(steps);
  }
  void place(u64 hash, const key_of_id& key, u64 weight, u32 running) {
    const std::size_t first =
        static_cast<std::size_t>(static_cast<roost::detail::uint128>(hash) * buckets_ >> 64) * 128;
    slot* best = nullptr;
    for (slot* s = &slots_[first]; s != &slots_[first] + 128; ++s) {
      if (!s->taken) {
        best = s;
        break;
      }
      if (u64{s->step} + running >= steps) continue;
      const bool recent = options_.eviction == roost::eviction::least_recent;
      if (best == nullptr || (recent ? s->step < best->step : s->score < best->score)) best = s;
    }
    if (best == nullptr) return;
    if (best->taken) {
      ++evicted;
      lost.push_back(best->key);
      where_.erase(best->key);
    }
    *best = {true, key, static_cast<u32>(steps), weight, fresh};
    where_[key] = static_cast<u32>(best - slots_.data());
  }

  roost::embedding_options options_;
  std::size_t buckets_;
  std::vector<slot> slots_;
  std::unordered_map<key_of_id, u32, hash_of_id> where_;
};

/// The ids in memory of the place.
struct call_here {
  roost::array<i64, place_type> ids;
  roost::array<u16, place_type> features;
  roost::array<u32, place_type> scores;
  roost::embedding_batch batch;

  explicit call_here(const ids_of_call& call)
      : ids(roost::copy_to(test_place(), call.ids)),
        features(roost::copy_to(test_place(), call.features)),
        scores(roost::copy_to(test_place(), call.scores)),
        batch{.ids = ids.span(),
              .features = features.span(),
              .feature = call.feature,
              .scores = scores.span()} {}
};

/// A table and its model, which do the same.
class both {
 public:
  both(const roost::embedding_options& options, u64 seed)
      : options_(options), table_(test_place(), options), oracle_(options), random_(seed) {}

  /// Some random calls; returns how many ids they had.
  u64 run(int calls) {
    u64 ids = 0;
    for (int c = 0; c < calls && !testing::Test::HasFatalFailure(); ++c) {
      const u64 kind = random_() % 16;
      const ids_of_call call = some_ids(kind < 2 ? 500 : 40'000, kind != 0);
      ids += call.ids.size();
      if (kind == 0) {
        oracle_.erase(call);
        table_.erase(test_place(), call_here(call).batch);
      } else {
        step(call, kind == 1);
        compare_victims();
      }
      compare_counts();
    }
    compare_entries();
    return ids;
  }
  u64 evicted() const { return oracle_.evicted; }
  u64 unplaced() const { return oracle_.unplaced; }

 private:
  ids_of_call some_ids(std::size_t most, bool scored) {
    static constexpr std::size_t sizes[] = {0, 1, 7, 33, 300, 3000, 9000, 40'000};
    ids_of_call call;
    call.ids.resize(std::min(most, sizes[random_() % std::size(sizes)]));
    const u64 range = 1 + 2 * options_.capacity / (1 + random_() % 4), shift = random_() % (2 * range);
    for (i64& id : call.ids) {
      // A few frequent ones, a window of the others that moves, and extreme ones.
      const u64 x = random_();
      id = static_cast<i64>(x % 16 == 0 ? x / 16 % 3 : shift + x / 16 % range);
      if (x % 64 == 1) id = std::numeric_limits<i64>::min() + static_cast<i64>(x / 64 % 3);
      if (x % 64 == 2) id = -1 - static_cast<i64>(x / 64 % range);
    }
    if (options_.features) {
      call.feature = static_cast<u16>(random_() % 3 * 32767);
      if (random_() % 4 != 0) call.features.resize(call.ids.size());
      for (u16& f : call.features) f = static_cast<u16>(random_() % 3 * 32767);
    }
    if (scored && options_.eviction == roost::eviction::least_score) {
      call.scores.resize(call.ids.size());
      const bool close = random_() % 2 == 0;
      for (u32& s : call.scores) s = static_cast<u32>(close ? random_() % 50 : random_() >> 32);
    }
    return call;
  }

  /// A lookup, or an assignment of rows.
  void step(const ids_of_call& call, bool assigns) {
    const std::size_t n = call.ids.size();
    const u32 running = static_cast<u32>(random_() % 3 == 0 ? random_() % 5 : 0);
    std::vector<float> given(assigns ? n * options_.dim : 0), of_id(n);
    for (std::size_t i = 0; i < given.size(); ++i) {
      given[i] = i % options_.dim == 0 ? static_cast<float>(random_() % 1000) : given[i - 1];
      of_id[i / options_.dim] = given[i];
    }
    const auto expected = oracle_.take(call, running, assigns ? &of_id : nullptr);
    const call_here here(call);
    roost::array<u32, place_type> slots(test_place(), n);
    roost::array<float, place_type> out(test_place(), n * options_.dim);
    if (assigns) {
      table_.assign(test_place(), here.batch, roost::copy_to(test_place(), given).span(), {}, running);
      table_.find(test_place(), here.batch, slots.span(), out.span());
    } else {
      table_.look_up(test_place(), here.batch, slots.span(), out.span(), running);
    }
    ASSERT_EQ(roost::copy_to_host(test_place(), slots), expected) << "step " << oracle_.steps;
    const auto rows = roost::copy_to_host(test_place(), out);
    for (std::size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(rows[i], oracle_.row(expected[i / options_.dim])) << i;
  }

  void compare_victims() {
    const auto lost = table_.take_evicted(test_place());
    const auto ids = roost::copy_to_host(test_place(), lost.ids);
    const auto features = roost::copy_to_host(test_place(), lost.features);
    std::vector<key_of_id> keys(ids.size()), expected = oracle_.lost;
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = {ids[i], features[i]};
    std::sort(keys.begin(), keys.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_TRUE(keys == expected) << "step " << oracle_.steps << ": " << keys.size()
                                  << " keys lost their rows, not " << expected.size() << ", or others";
  }

  void compare_counts() {
    const auto counts = table_.counts(test_place());
    ASSERT_EQ(counts.steps, oracle_.steps);
    ASSERT_EQ(counts.evicted, oracle_.evicted);
    ASSERT_EQ(counts.unplaced, oracle_.unplaced);
    ASSERT_EQ(counts.forgotten, 0);
    ASSERT_EQ(counts.unadmitted, 0);
    ASSERT_EQ(table_.size(test_place()), oracle_.size());
  }

  /// All that the table knows of its keys.
  void compare_entries() {
    const auto all = table_.entries(test_place());
    const auto slots = roost::copy_to_host(test_place(), all.slots);
    const auto ids = roost::copy_to_host(test_place(), all.ids);
    const auto features = roost::copy_to_host(test_place(), all.features);
    const auto steps = roost::copy_to_host(test_place(), all.steps);
    const auto scores = roost::copy_to_host(test_place(), all.scores);
    ASSERT_EQ(slots.size(), oracle_.size());
    const bool counts = options_.eviction == roost::eviction::least_frequent;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto& expected = oracle_.slots()[slots[i]];
      ASSERT_TRUE(expected.taken && expected.key == (key_of_id{ids[i], features[i]})) << slots[i];
      ASSERT_EQ(steps[i], expected.step);
      if (!scores.empty()) {
        ASSERT_EQ(scores[i], counts ? expected.score : u64{steps[i]} << 32 | expected.score);
      }
    }
    ASSERT_EQ(scores.empty(), options_.eviction == roost::eviction::least_recent);
  }

  roost::embedding_options options_;
  table table_;
  oracle oracle_;
  std::mt19937_64 random_;
};

u64 number_of(const char* name, double otherwise) {
  const char* const wanted = std::getenv(name);
  return static_cast<u64>(wanted != nullptr ? std::atof(wanted) : otherwise);
}

TEST(embedding_oracle, slots_victims_and_counts_are_those_of_a_model) {
  const u64 wanted = number_of("ROOST_ORACLE_OPERATIONS", sanitized ? 5e4 : 5e5);
  const u64 seed = number_of("ROOST_ORACLE_SEED", 1);
  std::mt19937_64 random(seed);
  u64 done = 0, tables = 0, evicted = 0, unplaced = 0;
  u64 of_kind[3][2] = {};
  for (; done < wanted || tables % 6 != 0; ++tables) {
    static constexpr std::size_t capacities[] = {1, 128, 129, 1000, 20'000, 300'000};
    const u64 policy = tables % 3, features = tables / 3 % 2;
    roost::embedding_options options;
    options.dim = random() % 2 == 0 ? 1 : 4;
    options.capacity = capacities[random() % (wanted < 10'000'000 ? 5 : 6)];
    options.eviction = policy == 0   ? roost::eviction::least_recent
                       : policy == 1 ? roost::eviction::least_frequent
                                     : roost::eviction::least_score;
    options.optimizer = roost::optimizer::sgd;
    options.initializer = {roost::row_initializer::kind::constant, fresh, 0};
    options.features = features != 0;
    options.keep_evicted = 1 << 16;
    options.seed = random();
    both pair(options, random());
    const u64 ids = pair.run(wanted < 10'000'000 ? 15 : 250);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", table " << tables;
    done += ids;
    of_kind[policy][features] += ids;
    evicted += pair.evicted();
    unplaced += pair.unplaced();
  }
  std::printf("seed %llu: %llu ids in %llu tables, %llu evicted, %llu unplaced\n",
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(tables), static_cast<unsigned long long>(evicted),
              static_cast<unsigned long long>(unplaced));
  const char* const names[] = {"LRU", "LFU", "score"};
  for (int p = 0; p < 3; ++p) {
    std::printf("%s: %llu ids without features, %llu with\n", names[p],
                static_cast<unsigned long long>(of_kind[p][0]),
                static_cast<unsigned long long>(of_kind[p][1]));
  }
  EXPECT_GT(evicted, done / 50);
  EXPECT_GT(unplaced, 0);
}

}  // namespace
}  // namespace test
