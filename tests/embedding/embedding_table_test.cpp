#include <cmath>
#include <map>
#include <random>
#include <set>

#include "support/embedding.hpp"

// embedding_table against a model that takes one id after the other.

namespace test {
namespace {

/// What a table does, without one: which key has which slot.
class model {
 public:
  using key = std::pair<u64, u16>;  // hash and feature, in the order in which missing keys get rows

  explicit model(const roost::embedding_options& options)
      : options_(options), buckets_((options.capacity + 127) / 128), slots_(buckets_ * 128) {}

  std::vector<u32> insert(const ids_type& ids, const std::vector<u16>& features,
                          const std::vector<u32>& scores, u32 running) {
    ++step_;
    std::map<key, u64> missing;  // and their lookups, or greatest score
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const key k = key_of(ids[i], features.empty() ? u16{0} : features[i]);
      if (const auto it = where_.find(k); it != where_.end()) {
        slot& s = slots_[it->second];
        s.score = scores.empty()    ? s.score + 1
                  : s.step == step_ ? std::max<u64>(s.score, scores[i])
                                    : scores[i];
        s.step = step_;
      } else {
        u64& weight = missing[k];
        weight = scores.empty() ? weight + 1 : std::max<u64>(weight, scores[i]);
      }
    }
    for (const auto& [k, weight] : missing) place(k, weight, running);
    std::vector<u32> result;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto it = where_.find(key_of(ids[i], features.empty() ? u16{0} : features[i]));
      unplaced += it == where_.end();
      result.push_back(it == where_.end() ? none : it->second);
    }
    return result;
  }
  void erase(const ids_type& ids) {
    for (const i64 id : ids) {
      if (const auto it = where_.find(key_of(id, 0)); it != where_.end()) {
        slots_[it->second].taken = false;
        where_.erase(it);
      }
    }
  }

  std::map<key, u32> where_;
  u64 evicted = 0, unplaced = 0;
  std::set<key> lost;

 private:
  struct slot {
    bool taken = false;
    key k;
    u32 step = 0;
    u64 score = 0;
  };

  key key_of(i64 id, u16 feature) const {
    return {roost::mix64(static_cast<u64>(id) ^ feature * 0x9e3779b97f4a7c15ull, options_.seed), feature};
  }

  void place(const key& k, u64 weight, u32 running) {
    const std::size_t first =
        static_cast<std::size_t>(static_cast<roost::detail::uint128>(k.first) * buckets_ >> 64) * 128;
    std::size_t best = slots_.size();
    u64 least = 0;
    for (std::size_t s = first; s < first + 128; ++s) {
      if (!slots_[s].taken) {
        best = s;
        break;
      }
      if (options_.eviction == roost::eviction::none || slots_[s].step + running >= step_) continue;
      const u64 score = options_.eviction == roost::eviction::least_recent ? slots_[s].step : slots_[s].score;
      if (best == slots_.size() || score < least) {
        best = s;
        least = score;
      }
    }
    if (best == slots_.size()) return;
    if (slots_[best].taken) {
      ++evicted;
      lost.insert(slots_[best].k);
      where_.erase(slots_[best].k);
    }
    slots_[best] = {true, k, step_, weight};
    where_[k] = static_cast<u32>(best);
  }

  roost::embedding_options options_;
  std::size_t buckets_;
  std::vector<slot> slots_;
  u32 step_ = 0;
};

ids_type random_ids(std::mt19937_64& random, std::size_t n, u64 most) {
  ids_type ids(n);
  for (i64& id : ids) {
    // A few frequent ones, all numbers of keys, and extreme ones.
    const u64 x = random();
    id = static_cast<i64>(x % 16 == 0 ? x / 16 % 3 : x / 16 % most);
    if (x % 64 == 1) id = std::numeric_limits<i64>::min() + static_cast<i64>(x / 64 % 3);
    if (x % 64 == 2) id = -1 - static_cast<i64>(x / 64 % 3);
  }
  return ids;
}

/// Puts entries and their rows into an empty table; returns how many found no slot.
std::size_t restored(table& t, const roost::embedding_entries<place_type>& all,
                     const roost::array<std::byte, place_type>& rows, bool same_slots) {
  roost::array<u32, place_type> slots(test_place(), all.ids.size());
  const std::size_t lost = t.restore(test_place(), all, same_slots, slots.span());
  t.write_rows(test_place(), slots.span(), rows.span());
  return lost;
}

class slots_of : public testing::TestWithParam<std::tuple<roost::eviction, bool>> {};

TEST_P(slots_of, keys_are_those_of_the_model) {
  const auto [eviction, features] = GetParam();
  std::mt19937_64 random(static_cast<u64>(eviction) + 7);
  for (const std::size_t capacity : {1, 128, 129, 1000, 20000}) {
    roost::embedding_options options{.dim = 3, .capacity = capacity, .eviction = eviction};
    options.features = features;
    options.keep_evicted = 1 << 20;
    options.seed = capacity;
    table t(test_place(), options);
    model m(options);
    for (u32 step = 0; step < 25; ++step) {
      const std::size_t n = std::vector<std::size_t>{0, 1, 7, 300, 3000, 9000}[random() % 6];
      const ids_type ids = random_ids(random, n, 2 * capacity);
      std::vector<u16> of_feature(features ? n : 0);
      for (u16& f : of_feature) f = static_cast<u16>(random() % 3 * 32767);
      std::vector<u32> scores(eviction == roost::eviction::least_score ? n : 0);
      for (u32& s : scores) s = static_cast<u32>(random() % 50);
      const u32 running = static_cast<u32>(random() % 2);
      ASSERT_EQ(inserted(t, batch_of(ids, of_feature, scores), running),
                m.insert(ids, of_feature, scores, running))
          << capacity << " rows, step " << step;
      if (step % 5 == 4 && !features) {
        const ids_type gone = random_ids(random, 50, 2 * capacity);
        t.erase(test_place(), batch_of(gone).get());
        m.erase(gone);
      }
      ASSERT_EQ(t.size(test_place()), m.where_.size());
    }
    const auto counts = t.counts(test_place());
    EXPECT_EQ(counts.steps, 25);
    EXPECT_EQ(counts.evicted, m.evicted);
    EXPECT_EQ(counts.unplaced, m.unplaced);
    EXPECT_EQ(counts.forgotten, 0);
    const auto lost = t.take_evicted(test_place());
    std::set<model::key> keys;
    const auto lost_ids = roost::copy_to_host(test_place(), lost.ids);
    const auto lost_features = roost::copy_to_host(test_place(), lost.features);
    for (std::size_t i = 0; i < lost_ids.size(); ++i) {
      const u16 f = lost_features[i];
      keys.insert({roost::mix64(static_cast<u64>(lost_ids[i]) ^ f * 0x9e3779b97f4a7c15ull, options.seed), f});
    }
    EXPECT_EQ(lost_ids.size(), m.evicted);
    EXPECT_EQ(keys, m.lost);
    EXPECT_EQ(t.take_evicted(test_place()).ids.size(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    every_kind, slots_of,
    testing::Combine(testing::Values(roost::eviction::none, roost::eviction::least_recent,
                                     roost::eviction::least_frequent, roost::eviction::least_score),
                     testing::Bool()));

/// Rows by key, in double.
struct learned {
  std::vector<double> w, m, v;
};

class learning : public testing::TestWithParam<std::tuple<roost::optimizer, u32, bool>> {};

TEST_P(learning, rows_are_those_of_the_formula) {
  const auto [how, dim, decays] = GetParam();
  std::mt19937_64 random(dim);
  roost::embedding_options options{.dim = dim, .capacity = 4000, .optimizer = how};
  options.rates = {.learning_rate = 0.05f, .epsilon = 1e-6f, .weight_decay = decays ? 0.1f : 0.0f};
  table t(test_place(), options);
  std::map<i64, learned> rows;
  int updates = 0;
  for (const std::size_t n : {1, 31, 32, 33, 64, 1000, 3, 5000, 0, 32}) {
    // Runs of one key that are shorter than a tile, and that fill many.
    ids_type ids = random_ids(random, n, 1 + random() % 2000);
    if (n == 1000) std::fill(ids.begin(), ids.end(), 5);
    const auto batch = batch_of(ids);
    const auto slots = inserted(t, batch);
    const auto before = gathered(t, batch, slots);
    std::vector<float> g(n * dim);
    for (float& x : g) x = std::uniform_real_distribution<float>(-1, 1)(random);
    for (std::size_t i = 0; i < n; ++i) {
      learned& row = rows[ids[i]];
      if (row.w.empty())
        row = {std::vector<double>(before.begin() + i * dim, before.begin() + (i + 1) * dim),
               std::vector<double>(dim), std::vector<double>(dim)};
      for (u32 c = 0; c < dim; ++c) ASSERT_NEAR(before[i * dim + c], row.w[c], 2e-4) << n << " " << i;
    }
    update(t, batch, slots, g);
    ++updates;
    std::map<i64, std::vector<double>> sums;
    for (std::size_t i = 0; i < n; ++i) {
      auto& sum = sums[ids[i]];
      sum.resize(dim);
      for (u32 c = 0; c < dim; ++c) sum[c] += g[i * dim + c];
    }
    for (auto& [id, sum] : sums) {
      learned& row = rows[id];
      double squares = 0;
      for (u32 c = 0; c < dim; ++c) {
        sum[c] += (decays ? 0.1 : 0) * row.w[c];
        squares += sum[c] * sum[c] / dim;
      }
      row.v[0] += how == roost::optimizer::rowwise_adagrad ? squares : 0;
      for (u32 c = 0; c < dim; ++c) {
        if (how == roost::optimizer::adam) {
          row.m[c] = 0.9 * row.m[c] + 0.1 * sum[c];
          row.v[c] = 0.999 * row.v[c] + 0.001 * sum[c] * sum[c];
          row.w[c] -= 0.05 * row.m[c] / (1 - std::pow(0.9, updates)) /
                      (std::sqrt(row.v[c] / (1 - std::pow(0.999, updates))) + 1e-6);
        } else {
          if (how == roost::optimizer::adagrad) row.v[c] += sum[c] * sum[c];
          const double root = std::sqrt(row.v[how == roost::optimizer::adagrad ? c : 0]) + 1e-6;
          row.w[c] -= 0.05 * sum[c] / (how == roost::optimizer::sgd ? 1 : root);
        }
      }
    }
  }
  EXPECT_EQ(t.counts(test_place()).updates, updates);
}

INSTANTIATE_TEST_SUITE_P(
    every_kind, learning,
    testing::Combine(testing::Values(roost::optimizer::sgd, roost::optimizer::adagrad,
                                     roost::optimizer::rowwise_adagrad, roost::optimizer::adam),
                     testing::ValuesIn(only_threads ? std::vector<u32>{1, 33, 132}
                                                    : std::vector<u32>{1, 2, 4, 12, 33, 128, 132}),
                     testing::Bool()));

TEST(embedding_table, bags_are_sums_and_means) {
  std::mt19937_64 random(3);
  for (const u32 dim : {3u, 8u, 128u}) {
    for (const roost::bag_pooling pooling : {roost::bag_pooling::sum, roost::bag_pooling::mean}) {
      roost::embedding_options options{.dim = dim, .capacity = 1000, .optimizer = roost::optimizer::sgd};
      options.rates.learning_rate = 1;
      table t(test_place(), options), same(test_place(), options);
      const ids_type ids = random_ids(random, 2000, 300);
      ids_type offsets{0};
      while (offsets.back() != 2000)
        offsets.push_back(
            std::min<i64>(2000, offsets.back() + static_cast<i64>(random() % 4 * (random() % 9))));
      offsets.push_back(2000);
      const std::size_t bags = offsets.size() - 1;
      auto batch = batch_of(ids, {}, {}, offsets);
      auto in_bags = batch.get();
      in_bags.pooling = pooling;
      const auto slots = inserted(t, batch);
      roost::array<float, place_type> out(test_place(), bags * dim);
      t.gather(test_place(), in_bags, here(slots).span(), out.span());
      const auto sums = roost::copy_to_host(test_place(), out);
      const auto alone = batch_of(ids);
      const auto rows = gathered(t, alone, slots);
      std::vector<float> g(bags * dim), of_ids(2000 * dim);
      for (float& x : g) x = std::uniform_real_distribution<float>(-1, 1)(random);
      for (std::size_t b = 0; b < bags; ++b) {
        const double share = pooling == roost::bag_pooling::mean && offsets[b + 1] != offsets[b]
                                 ? 1.0 / static_cast<double>(offsets[b + 1] - offsets[b])
                                 : 1.0;
        for (u32 c = 0; c < dim; ++c) {
          double sum = 0;
          for (i64 i = offsets[b]; i < offsets[b + 1]; ++i) {
            sum += rows[static_cast<std::size_t>(i) * dim + c] * share;
            of_ids[static_cast<std::size_t>(i) * dim + c] = static_cast<float>(g[b * dim + c] * share);
          }
          ASSERT_NEAR(sums[b * dim + c], sum, 1e-4);
        }
      }
      t.update(test_place(), in_bags, here(slots).span(), here(g).span());
      ASSERT_EQ(inserted(same, alone), slots);
      update(same, alone, slots, of_ids);
      const auto one = gathered(t, alone, slots), other = gathered(same, alone, slots);
      for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], other[i], 1e-4);
    }
  }
}

TEST(embedding_table, look_up_is_insert_and_gather) {
  std::mt19937_64 random(4);
  for (const u32 dim : {3u, 16u, 200u}) {
    roost::embedding_options options{.dim = dim, .capacity = 300};
    options.admit = 2;
    table t(test_place(), options), same(test_place(), options);
    for (const std::size_t n : {0, 1, 200, 3000, 3000, 5}) {
      const ids_type ids = random_ids(random, n, 1000);
      const bool in_bags = random() % 3 == 0 && n != 0;
      const auto batch =
          in_bags ? batch_of(ids, {}, {}, {0, static_cast<i64>(n / 2), static_cast<i64>(n)}) : batch_of(ids);
      const std::size_t numbers = batch.get().rows() * dim;
      roost::array<u32, place_type> slots(test_place(), n);
      roost::array<float, place_type> out(test_place(), numbers), known(test_place(), numbers);
      t.look_up(test_place(), batch.get(), slots.span(), out.span());
      const auto expected = inserted(same, batch);
      ASSERT_EQ(roost::copy_to_host(test_place(), slots), expected) << n;
      ASSERT_EQ(roost::copy_to_host(test_place(), out), gathered(same, batch, expected)) << n;
      t.find(test_place(), batch.get(), slots.span(), known.span());
      ASSERT_EQ(roost::copy_to_host(test_place(), slots), expected) << n;
      ASSERT_EQ(roost::copy_to_host(test_place(), known), gathered(same, batch, expected)) << n;
    }
    EXPECT_GT(t.counts(test_place()).unadmitted, 0);
    EXPECT_GT(t.counts(test_place()).unplaced, 0);
  }
}

TEST(embedding_table, an_absent_key_has_the_row_that_it_would_begin_with) {
  for (const auto is : {roost::row_initializer::kind::normal, roost::row_initializer::kind::uniform,
                        roost::row_initializer::kind::constant}) {
    roost::embedding_options options{.dim = 64, .capacity = 5000, .initializer = {is, -2, 3}, .seed = 99};
    options.features = true;
    table t(test_place(), options);
    ids_type ids(4000);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<i64>(i * i);
    auto batch = batch_of(ids, std::vector<u16>(4000, 65535));
    const auto absent = found(t, batch);
    EXPECT_EQ(absent, std::vector<u32>(4000, none));
    const auto before = gathered(t, batch, absent), after = gathered(t, batch, inserted(t, batch));
    EXPECT_EQ(before, after);
    double sum = 0, squares = 0;
    for (const float x : after) {
      sum += x;
      squares += double{x} * x;
      if (is == roost::row_initializer::kind::uniform) {
        ASSERT_TRUE(x >= -2 && x <= 3);
      }
      if (is == roost::row_initializer::kind::constant) {
        ASSERT_EQ(x, -2);
      }
    }
    const double mean = sum / static_cast<double>(after.size()),
                 deviation = std::sqrt(squares / static_cast<double>(after.size()) - mean * mean);
    if (is == roost::row_initializer::kind::normal) {
      EXPECT_NEAR(mean, -2, 0.02);
      EXPECT_NEAR(deviation, 3, 0.02);
    } else if (is == roost::row_initializer::kind::uniform) {
      EXPECT_NEAR(mean, 0.5, 0.02);
      EXPECT_NEAR(deviation, 5 / std::sqrt(12.0), 0.02);
    }
    if (is == roost::row_initializer::kind::constant) continue;
    EXPECT_NE(gathered(t, batch_of({1, 4}, {65535, 65535}), {none, none}),
              gathered(t, batch_of({1, 4}, {0, 0}), {none, none}));
  }
}

TEST(embedding_table, a_key_is_admitted_after_so_many_lookups) {
  roost::embedding_options options{.dim = 4, .capacity = 100'000};
  options.admit = 3;
  table t(test_place(), options);
  ids_type ids(1000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<i64>(i);
  EXPECT_EQ(inserted(t, batch_of(ids)), std::vector<u32>(1000, none));
  EXPECT_EQ(t.counts(test_place()).unadmitted, 1000);
  update(t, batch_of(ids), std::vector<u32>(1000, none), std::vector<float>(4000, 1.0f));
  const auto twice = inserted(t, batch_of({7, 7, 5'000'000}));  // the third lookup of 7 comes in a batch
  EXPECT_NE(twice[0], none);
  EXPECT_EQ(twice[0], twice[1]);
  EXPECT_EQ(twice[2], none);
  EXPECT_EQ(t.size(test_place()), 1);
  EXPECT_EQ(t.counts(test_place()).unplaced, 0);
}

TEST(embedding_table, assign_sets_rows_and_returns_those_of_others) {
  std::mt19937_64 random(8);
  for (const u32 dim : {1u, 5u, 8u, 64u}) {
    roost::embedding_options options{.dim = dim, .capacity = 500};
    options.features = true;
    table t(test_place(), options);
    std::map<std::pair<i64, u16>, std::vector<float>> rows;
    for (int step = 0; step < 20; ++step) {
      const std::size_t n = 200;
      const ids_type ids = random_ids(random, n, 3000);
      std::vector<u16> features(n);
      for (u16& f : features) f = static_cast<u16>(random() % 2);
      std::vector<float> values(n * dim);
      for (float& x : values) x = static_cast<float>(random() % 1000);
      roost::array<float, place_type> evicted(test_place(), n * dim);
      const auto keys =
          t.assign(test_place(), batch_of(ids, features).get(), here(values).span(), evicted.span());
      const auto lost_ids = roost::copy_to_host(test_place(), keys.ids);
      const auto lost_features = roost::copy_to_host(test_place(), keys.features);
      const auto lost_rows = roost::copy_to_host(test_place(), evicted);
      for (std::size_t i = 0; i < lost_ids.size(); ++i) {
        const auto it = rows.find({lost_ids[i], lost_features[i]});
        ASSERT_NE(it, rows.end());
        ASSERT_EQ(std::vector<float>(lost_rows.begin() + i * dim, lost_rows.begin() + (i + 1) * dim),
                  it->second);
        rows.erase(it);
      }
      for (std::size_t i = 0; i < n; ++i)
        rows[{ids[i], features[i]}] = {values.begin() + i * dim, values.begin() + (i + 1) * dim};
      const auto slots = found(t, batch_of(ids, features));
      const auto got = gathered(t, batch_of(ids, features), slots);
      for (std::size_t i = 0; i < n; ++i) {
        const auto& row = rows[{ids[i], features[i]}];
        if (slots[i] != none) {
          ASSERT_TRUE(std::equal(row.begin(), row.end(), got.begin() + i * dim));
        }
      }
      std::erase_if(rows, [&](const auto& row) {  // those that found no place are counted, not kept
        for (std::size_t i = 0; i < n; ++i) {
          if (ids[i] == row.first.first && features[i] == row.first.second) return slots[i] == none;
        }
        return false;
      });
      ASSERT_EQ(t.size(test_place()), rows.size());
    }
    EXPECT_GT(t.counts(test_place()).evicted, 100);
  }
}

TEST(embedding_table, what_is_restored_goes_on_as_before) {
  std::mt19937_64 random(9);
  for (const auto eviction : {roost::eviction::least_recent, roost::eviction::least_frequent}) {
    roost::embedding_options options{.dim = 6, .capacity = 700, .eviction = eviction};
    options.seed = 5;
    table t(test_place(), options);
    const auto step = [&](table& of, const ids_type& ids) {
      const auto batch = batch_of(ids);
      const auto slots = inserted(of, batch);
      update(of, batch, slots, std::vector<float>(ids.size() * 6, 0.25f));
      return gathered(of, batch, slots);
    };
    for (int i = 0; i < 10; ++i) step(t, random_ids(random, 400, 2000));

    const auto all = t.entries(test_place());
    EXPECT_EQ(all.ids.size(), t.size(test_place()));
    roost::array<std::byte, place_type> rows(test_place(), all.ids.size() * t.row_bytes());
    t.copy_rows(test_place(), all.slots.span(), rows.span());
    table same(test_place(), options), larger(test_place(), [&] {
      auto more = options;
      more.capacity = 5000;
      return more;
    }());
    EXPECT_EQ(restored(same, all, rows, true), 0);
    EXPECT_EQ(restored(larger, all, rows, false), 0);
    EXPECT_THROW(restored(larger, all, rows, false), roost::invalid_argument);
    table twice(test_place(), options);
    auto damaged = t.entries(test_place());
    auto ids_of_two = roost::copy_to_host(test_place(), damaged.ids);
    for (std::size_t i = 0; i + 1 < ids_of_two.size(); ++i) {
      if (roost::copy_to_host(test_place(), damaged.slots)[i] / 128 !=
          roost::copy_to_host(test_place(), damaged.slots)[i + 1] / 128)
        continue;
      ids_of_two[i] = ids_of_two[i + 1];
      break;
    }
    damaged.ids = here(ids_of_two);
    EXPECT_THROW(restored(twice, damaged, rows, true), roost::invalid_argument);
    EXPECT_EQ(twice.size(test_place()), 0);
    table other(test_place(), larger.options());
    EXPECT_THROW(restored(other, all, rows, true), roost::invalid_argument);
    const auto counts = t.counts(test_place());
    for (table* one : {&same, &larger}) {
      one->set_steps(test_place(), static_cast<u32>(counts.steps), static_cast<u32>(counts.updates));
      EXPECT_EQ(one->size(test_place()), all.ids.size());
    }
    const auto ids = roost::copy_to_host(test_place(), all.ids);
    const auto batch = batch_of(ids);
    EXPECT_EQ(gathered(larger, batch, found(larger, batch)), gathered(t, batch, found(t, batch)));
    for (int i = 0; i < 5; ++i) {
      const auto next = random_ids(random, 300, 2000);
      ASSERT_EQ(step(t, next), step(same, next));  // bit by bit
    }
    // Only what later steps looked up.
    const auto late = roost::copy_to_host(test_place(), t.entries(test_place(), 15).steps);
    EXPECT_GT(late.size(), 0);
    EXPECT_LT(late.size(), t.size(test_place()));
    for (const u32 when : late) EXPECT_EQ(when, 15);
  }
}

/// Capacity, rows in the cache, and the optimizer.
class cached : public testing::TestWithParam<std::tuple<u32, u32, roost::optimizer>> {};

TEST_P(cached, rows_are_those_of_a_table_without_a_cache) {
  const auto [capacity, rows, how] = GetParam();
  constexpr u32 dim = 12;
  std::mt19937_64 random(capacity + rows);
  roost::embedding_options options{.dim = dim, .capacity = capacity, .optimizer = how};
  table plain(test_place(), options);
  options.cached_rows = rows;
  table t(test_place(), options);
  EXPECT_EQ(t.host_bytes(), rows < capacity ? t.capacity() * t.row_bytes() : 0);
  EXPECT_EQ(plain.host_bytes(), 0);
  // One table may be a step ahead of its updates.
  std::vector<std::pair<batch_here, std::vector<u32>>> waiting;
  const int steps = capacity > 10'000 ? 16 : 40;
  for (int i = 0; i < steps; ++i) {
    const std::size_t n = random() % 3 == 0 ? random() % 8 : random() % (capacity / 2);
    const auto batch = batch_of(random_ids(random, n, 1 + random() % (2 * capacity)));
    const auto running = static_cast<u32>(waiting.size());
    if (random() % 2) t.prefetch(test_place(), batch.get(), running);
    const auto rows_of_batch = [&](table& of) {
      roost::array<u32, place_type> slots(test_place(), n);
      roost::array<float, place_type> out(test_place(), n * dim);
      of.look_up(test_place(), batch.get(), slots.span(), out.span(), running);
      return std::pair(roost::copy_to_host(test_place(), slots), roost::copy_to_host(test_place(), out));
    };
    const auto [slots, out] = rows_of_batch(t);
    ASSERT_EQ(rows_of_batch(plain), std::pair(slots, out)) << i;
    waiting.emplace_back(batch_of(roost::copy_to_host(test_place(), batch.ids)), slots);
    while (waiting.size() > random() % 3) {
      const auto& [ids, of_ids] = waiting.front();
      if (random() % 2 == 0) {  // rows that came to the cache and did not change
        waiting.erase(waiting.begin());
        continue;
      }
      std::vector<float> g(of_ids.size() * dim);
      for (float& x : g) x = std::uniform_real_distribution<float>(-1, 1)(random);
      update(t, ids, of_ids, g);
      update(plain, ids, of_ids, g);
      waiting.erase(waiting.begin());
    }
    if (i % 4 == 1 && waiting.empty()) {  // what moves keys, or sets their rows
      const auto other = batch_of(random_ids(random, 1 + random() % 100, 2 * capacity));
      std::vector<float> given(other.ids.size() * dim);
      for (float& x : given) x = std::uniform_real_distribution<float>(-1, 1)(random);
      roost::array<float, place_type> lost(test_place(), given.size()),
          lost_of_plain(test_place(), given.size());
      const auto a = t.assign(test_place(), other.get(), here(given).span(), lost.span());
      const auto b = plain.assign(test_place(), other.get(), here(given).span(), lost_of_plain.span());
      std::map<i64, std::vector<float>> rows_of_lost[2];
      const auto read = [&](const auto& keys, const auto& from, auto& into) {
        const auto ids = roost::copy_to_host(test_place(), keys.ids);
        const auto numbers = roost::copy_to_host(test_place(), from);
        for (std::size_t k = 0; k < ids.size(); ++k)
          into[ids[k]] = {numbers.begin() + k * dim, numbers.begin() + (k + 1) * dim};
      };
      read(a, lost, rows_of_lost[0]);
      read(b, lost_of_plain, rows_of_lost[1]);
      ASSERT_EQ(rows_of_lost[0], rows_of_lost[1]);
      const auto gone = batch_of(random_ids(random, random() % 20, capacity));
      t.erase(test_place(), gone.get());
      plain.erase(test_place(), gone.get());
    }
    if (i == steps / 2) {
      waiting.clear();
      t.reserve(test_place(), capacity + capacity / 2);
      plain.reserve(test_place(), capacity + capacity / 2);
    }
  }
  const auto all = t.entries(test_place());
  const auto bytes_of = [&](const table& of, const auto& entries) {
    roost::array<std::byte, place_type> bytes(test_place(), entries.ids.size() * of.row_bytes());
    of.copy_rows(test_place(), entries.slots.span(), bytes.span());
    return bytes;
  };
  const auto bytes = bytes_of(t, all);
  EXPECT_EQ(roost::copy_to_host(test_place(), bytes),
            roost::copy_to_host(test_place(), bytes_of(plain, plain.entries(test_place()))));
  options.capacity = t.capacity();
  table again(test_place(), options);
  EXPECT_EQ(restored(again, all, bytes, true), 0);
  EXPECT_EQ(roost::copy_to_host(test_place(), bytes),
            roost::copy_to_host(test_place(), bytes_of(again, again.entries(test_place()))));
}

INSTANTIATE_TEST_SUITE_P(
    sizes, cached,
    testing::Combine(testing::Values(300, 2000, 30'000), testing::Values(1, 100, 9000),
                     testing::ValuesIn(only_threads ? std::vector{roost::optimizer::adam}
                                                    : std::vector{roost::optimizer::adam,
                                                                  roost::optimizer::rowwise_adagrad})));

TEST(embedding_table, rows_that_take_slots_of_cached_ones_are_kept) {
  constexpr u32 dim = 4;
  roost::embedding_options options{.dim = dim, .capacity = 1000, .cached_rows = 64};
  const auto batch_from = [](i64 first) {
    ids_type ids(200);
    std::iota(ids.begin(), ids.end(), first);
    return batch_of(ids);
  };
  const auto batch = batch_from(0), fresh = batch_from(500), others = batch_from(1000);
  const auto rows_of = [](table& t, const batch_here& ids) { return gathered(t, ids, found(t, ids)); };
  table from(test_place(), options);
  update(from, batch, inserted(from, batch), std::vector<float>(200 * dim, 1.0f));
  for (const bool restores : {false, true}) {
    table t(test_place(), options);
    inserted(t, batch);
    t.erase(test_place(), batch.get());  // the rows stay in the cache
    if (restores) {
      const auto all = from.entries(test_place());
      roost::array<std::byte, place_type> rows(test_place(), all.ids.size() * from.row_bytes());
      from.copy_rows(test_place(), all.slots.span(), rows.span());
      EXPECT_EQ(restored(t, all, rows, true), 0);
    } else {
      inserted(t, fresh);
    }
    const auto before = restores ? rows_of(from, batch) : rows_of(t, fresh);
    for (int i = 0; i < 3; ++i) inserted(t, others);  // which take their places in the cache
    EXPECT_EQ(rows_of(t, restores ? batch : fresh), before);
  }
}

TEST(embedding_table, reserve_keeps_all_rows) {
  std::mt19937_64 random(10);
  roost::embedding_options options{.dim = 5, .capacity = 100, .eviction = roost::eviction::none};
  options.keep_evicted = 10;
  table t(test_place(), options);
  ids_type ids(20'000);
  for (i64& id : ids) id = static_cast<i64>(random());
  std::size_t grown = 0;
  for (std::size_t n = 50; n <= ids.size(); n *= 2) {
    const auto batch = batch_of({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)});
    auto slots = inserted(t, batch);
    while (std::find(slots.begin(), slots.end(), none) != slots.end()) {
      const auto rows = gathered(t, batch, slots);
      t.reserve(test_place(), t.capacity() * 3 / 2);
      ++grown;
      slots = inserted(t, batch);
      EXPECT_EQ(gathered(t, batch, slots), rows);
    }
    update(t, batch, slots, std::vector<float>(n * 5, 1.0f));
    EXPECT_EQ(t.size(test_place()), n);
  }
  EXPECT_GT(grown, 5);
}

TEST(embedding_table, numbers_of_16_bits_are_rounded_to_the_nearest) {
  for (u32 bits = 0; bits < 65536; ++bits) {
    const roost::float16 half{static_cast<u16>(bits)};
    const float x = roost::detail::to_float(half);
    if (!std::isnan(x)) {
      ASSERT_EQ(roost::detail::from_float<roost::float16>(x).bits, bits);
      ASSERT_EQ(std::abs(x), (bits >> 10 & 31) == 31  ? INFINITY
                             : (bits >> 10 & 31) == 0 ? std::ldexp(static_cast<float>(bits & 1023), -24)
                                                      : std::ldexp(static_cast<float>(1024 + (bits & 1023)),
                                                                   static_cast<int>(bits >> 10 & 31) - 25));
    } else {
      ASSERT_TRUE(std::isnan(roost::detail::to_float(roost::detail::from_float<roost::float16>(x))));
    }
    const roost::bfloat16 brain{static_cast<u16>(bits)};
    const float y = roost::detail::to_float(brain);
    if (!std::isnan(y)) {
      ASSERT_EQ(roost::detail::from_float<roost::bfloat16>(y).bits, bits);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = static_cast<u32>(random());
    float x;
    std::memcpy(&x, &bits, 4);
    if (i % 2 == 0)
      x = std::ldexp(1 + static_cast<float>(bits % 1024) / 512, static_cast<int>(bits >> 27) - 26);
    if (std::isnan(x)) continue;
    const auto nearest = [&](auto number, u16 from, u16 to) {  // no neighbour is nearer
      const double mine = std::abs(double{roost::detail::to_float(number)} - x);
      for (const u16 other : {from, to}) {
        const float y = roost::detail::to_float(decltype(number){other});
        if (std::isfinite(y) && std::isfinite(roost::detail::to_float(number))) {
          ASSERT_LE(mine, std::abs(double{y} - x)) << x;
        }
      }
    };
    const auto half = roost::detail::from_float<roost::float16>(x);
    nearest(half, static_cast<u16>(half.bits + 1), static_cast<u16>(half.bits - 1));
    if (std::abs(x) >= 65520) {
      ASSERT_TRUE(std::isinf(roost::detail::to_float(half)));
    }
    const auto brain = roost::detail::from_float<roost::bfloat16>(x);
    nearest(brain, static_cast<u16>(brain.bits + 1), static_cast<u16>(brain.bits - 1));
  }
}

template <class Value>
void keeps_bits() {
  constexpr u32 dim = 64;
  roost::embedding_table<place_type, Value> t(test_place(), {.dim = dim, .capacity = 8192});
  ids_type ids(65536 / dim);
  std::iota(ids.begin(), ids.end(), i64{0});
  std::vector<Value> rows(65536);
  for (u32 bits = 0; bits < 65536; ++bits) rows[bits].bits = static_cast<u16>(bits);
  const auto batch = batch_of(ids);
  t.assign(test_place(), batch.get(), here(rows).span());
  roost::array<u32, place_type> slots(test_place(), ids.size());
  roost::array<Value, place_type> out(test_place(), rows.size());
  const auto expect_rows = [&] {
    const auto got = roost::copy_to_host(test_place(), out);
    for (u32 bits = 0; bits < 65536; ++bits) ASSERT_EQ(got[bits].bits, bits);
  };
  t.find(test_place(), batch.get(), slots.span(), out.span());
  expect_rows();
  t.gather(test_place(), batch.get(), slots.span(), out.span());
  expect_rows();
}

TEST(embedding_table, rows_of_16_bits_are_copied_bit_by_bit) {
  keeps_bits<roost::bfloat16>();
  keeps_bits<roost::float16>();
}

/// A bag adds up what a lookup of each id gives, also if no id has a row.
template <class Value>
void adds_rounded_rows() {
  for (const u32 dim : {1u, 8u}) {
    const roost::embedding_options options{.dim = dim, .capacity = 300, .seed = 3};
    const roost::embedding_table<place_type, Value> t(test_place(), options);
    const auto ids = here(ids_type{5, -7, 5, 1'000'000'000'000});
    const auto offsets = here(ids_type{0, 4});
    roost::array<u32, place_type> slots(test_place(), 4);
    roost::array<Value, place_type> rows(test_place(), 4 * dim), bag(test_place(), dim);
    t.find(test_place(), {.ids = ids.span()}, slots.span(), rows.span());
    t.find(test_place(), {.ids = ids.span(), .offsets = offsets.span()}, slots.span(), bag.span());
    const auto each = roost::copy_to_host(test_place(), rows), sum = roost::copy_to_host(test_place(), bag);
    for (u32 c = 0; c < dim; ++c) {
      float expected = 0;
      for (u32 i = 0; i < 4; ++i) expected += roost::detail::to_float(each[i * dim + c]);
      EXPECT_EQ(sum[c].bits, roost::detail::from_float<Value>(expected).bits) << dim << " " << c;
    }
  }
}

TEST(embedding_table, bags_of_absent_keys_add_rows_of_16_bits) {
  adds_rounded_rows<roost::bfloat16>();
  adds_rounded_rows<roost::float16>();
}

template <class Value>
void learns_in(const roost::optimizer how, double near) {
  roost::embedding_options options{.dim = 8, .capacity = 300, .optimizer = how};
  options.rates.learning_rate = 0.05f;
  roost::embedding_table<place_type, Value> t(test_place(), options);
  table wide(test_place(), options);
  const ids_type ids = {1, 2, 3, 2, 1};
  std::vector<Value> g(40);
  std::vector<float> wide_g(40);
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = roost::detail::from_float<Value>(static_cast<float>(i) / 64 - 0.25f);
    wide_g[i] = roost::detail::to_float(g[i]);
  }
  const auto batch = batch_of(ids);
  std::vector<float> rows, narrow;
  for (int step = 0; step < 5; ++step) {
    const auto slots = inserted(wide, batch);
    roost::array<u32, place_type> here_too(test_place(), 5);
    t.insert(test_place(), batch.get(), here_too.span());
    ASSERT_EQ(roost::copy_to_host(test_place(), here_too), slots);
    roost::array<Value, place_type> out(test_place(), 40);
    t.gather(test_place(), batch.get(), here_too.span(), out.span());
    rows = gathered(wide, batch, slots);
    for (const Value x : roost::copy_to_host(test_place(), out)) narrow.push_back(roost::detail::to_float(x));
    for (std::size_t i = 0; i < 40; ++i) ASSERT_NEAR(narrow[i], rows[i], near * (step + 1));
    narrow.clear();
    t.update(test_place(), batch.get(), here_too.span(), here(g).span());
    update(wide, batch, slots, wide_g);
  }
}

TEST(embedding_table, rows_of_16_bits_learn) {
  for (const auto how : {roost::optimizer::sgd, roost::optimizer::adagrad, roost::optimizer::rowwise_adagrad,
                         roost::optimizer::adam}) {
    learns_in<roost::bfloat16>(how, 0.01);
    learns_in<roost::float16>(how, 0.002);
  }
}

TEST(embedding_table, a_key_in_all_lookups_of_a_large_batch_is_one_row) {
  table t(test_place(), {.dim = 4,
                         .capacity = 1000,
                         .optimizer = roost::optimizer::sgd,
                         .initializer = {roost::row_initializer::kind::constant, 0, 0}});
  const std::size_t n = 300'000;
  const auto batch = batch_of(ids_type(n, -1));
  const auto slots = inserted(t, batch);
  EXPECT_EQ(std::count(slots.begin(), slots.end(), slots[0]), static_cast<std::ptrdiff_t>(n));
  update(t, batch, slots, std::vector<float>(n * 4, 1.0f / 1024));
  EXPECT_EQ(gathered(t, batch, slots)[7], -0.01f * (static_cast<float>(n) / 1024));
}

TEST(embedding_table, thousands_of_keys_fill_more_than_a_tile) {
  table t(test_place(), {.dim = 2,
                         .capacity = 20'000,
                         .optimizer = roost::optimizer::sgd,
                         .initializer = {roost::row_initializer::kind::constant, 0, 0}});
  const std::size_t keys = 5000, times = 70;  // more sums than are joined at a time
  ids_type ids(keys * times);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<i64>(i % keys);
  const auto batch = batch_of(ids);
  const auto slots = inserted(t, batch);
  update(t, batch, slots, std::vector<float>(ids.size() * 2, 0.5f));
  const auto rows = gathered(t, batch, slots);
  for (const float x : rows) ASSERT_EQ(x, -0.01f * (0.5f * times));
}

/// A table of one bucket: what finds no slot must not be looked at again and again.
TEST(embedding_table, the_least_of_very_many_keys_get_the_slots_of_a_bucket) {
  const std::size_t n = sanitized ? 100'000 : 500'000;
  table t(test_place(), {.dim = 1, .capacity = 128, .seed = 5});
  ids_type ids(n);
  std::vector<u64> hashes(n);
  for (std::size_t i = 0; i < n; ++i) {
    ids[i] = static_cast<i64>(i);
    hashes[i] = roost::mix64(i, 5);
  }
  std::vector<u64> sorted = hashes;
  std::ranges::nth_element(sorted, sorted.begin() + 128);
  const auto slots = inserted(t, batch_of(ids));
  std::set<u32> given;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(slots[i] != none, hashes[i] < sorted[128]) << i;
    if (slots[i] != none) given.insert(slots[i]);
  }
  EXPECT_EQ(given.size(), 128);
  EXPECT_EQ(*given.rbegin(), 127);
  EXPECT_EQ(t.counts(test_place()).unplaced, n - 128);
}

TEST(embedding_table, wrong_arguments_are_refused) {
  const auto& place = test_place();
  EXPECT_THROW(table(place, {.dim = 0, .capacity = 5}), roost::invalid_argument);
  EXPECT_THROW(table(place, {.dim = 65537, .capacity = 5}), roost::invalid_argument);
  EXPECT_THROW(table(place, {.dim = 1, .capacity = 0}), roost::invalid_argument);
  EXPECT_THROW(table(place, {.dim = 1, .capacity = u64{1} << 31}), roost::invalid_argument);
  EXPECT_THROW(table(place, {.dim = 1, .capacity = 1, .admit = 0}), roost::invalid_argument);
  table t(place, {.dim = 2, .capacity = 5});
  EXPECT_EQ(t.capacity(), 128);
  auto batch = batch_of({1, 2, 3});
  roost::array<u32, place_type> slots(place, 2);
  roost::array<float, place_type> rows(place, 5);
  EXPECT_THROW(t.insert(place, batch.get(), slots.span()), roost::invalid_argument);
  EXPECT_THROW(t.find(place, batch.get(), slots.span()), roost::invalid_argument);
  slots = roost::array<u32, place_type>(place, 3);
  EXPECT_THROW(t.gather(place, batch.get(), slots.span(), rows.span()), roost::invalid_argument);
  EXPECT_THROW(t.update(place, batch.get(), slots.span(), rows.span()), roost::invalid_argument);
  EXPECT_THROW(t.assign(place, batch.get(), rows.span()), roost::invalid_argument);
  EXPECT_THROW(t.insert(place, batch_of({1, 2, 3}, {0, 0, 0}).get(), slots.span()), roost::invalid_argument);
  EXPECT_THROW(t.insert(place, batch_of({1, 2, 3}, {}, {0, 0, 0}).get(), slots.span()),
               roost::invalid_argument);
  EXPECT_EQ(t.size(place), 0);
  EXPECT_EQ(t.counts(place).steps, 0);
}

}  // namespace
}  // namespace test
