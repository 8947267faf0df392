#include <set>

#include "support/embedding.hpp"

// Which keys of an embedding_table get rows, and what it remembers of those that lost theirs.

namespace test {
namespace {

TEST(embedding_admission, counts_of_lookups_are_halved_once_every_1024_steps) {
  roost::embedding_options options{.dim = 1, .capacity = 1000};
  options.admit = 3;
  table t(test_place(), options);
  const auto rare = batch_of({7}), often = batch_of({1});
  const auto steps = [&](int n) {
    for (int i = 0; i < n; ++i) inserted(t, often);
  };
  EXPECT_EQ(inserted(t, batch_of({7, 7}))[0], none);  // 2 lookups
  steps(1024);                                        // 1
  EXPECT_EQ(inserted(t, rare)[0], none);              // 2
  EXPECT_NE(inserted(t, rare)[0], none);              // 3

  // The other key has been looked up all the time, but without a row only three times.
  EXPECT_NE(found(t, often)[0], none);
  steps(1024);
  t.erase(test_place(), often.get());
  EXPECT_EQ(inserted(t, often)[0], none);
}

TEST(embedding_admission, few_keys_are_admitted_too_early) {
  roost::embedding_options options{.dim = 1, .capacity = 12'800};
  options.admit = 2;
  table t(test_place(), options);
  ids_type ids(2560);
  std::iota(ids.begin(), ids.end(), i64{0});
  inserted(t, batch_of(ids));
  // One of a key's two counters is also another key's with a probability of 0.18, and both are with 0.033.
  EXPECT_LT(t.size(test_place()), ids.size() / 20);
}

TEST(embedding_admission, as_many_evicted_keys_are_remembered_as_there_is_room_for) {
  roost::embedding_options options{.dim = 1, .capacity = 128};
  options.keep_evicted = 5;
  table t(test_place(), options);
  const auto insert_from = [&](i64 first, std::size_t n) {
    ids_type ids(n);
    std::iota(ids.begin(), ids.end(), first);
    inserted(t, batch_of(ids));
  };
  insert_from(0, 128);
  u64 forgotten = 0;
  i64 next = 128;
  for (const std::size_t evicted : {3, 5, 6, 20}) {
    insert_from(next, evicted);
    next += static_cast<i64>(evicted);
    const std::size_t kept = std::min<std::size_t>(evicted, 5);
    forgotten += evicted - kept;
    const auto lost = roost::copy_to_host(test_place(), t.take_evicted(test_place()).ids);
    EXPECT_EQ(lost.size(), kept);
    EXPECT_EQ(std::set<i64>(lost.begin(), lost.end()).size(), kept);
    const auto slots = found(t, batch_of(lost));
    for (std::size_t i = 0; i < lost.size(); ++i) {
      EXPECT_TRUE(lost[i] >= 0 && lost[i] < next) << lost[i];
      EXPECT_EQ(slots[i], none);
    }
    EXPECT_EQ(t.counts(test_place()).forgotten, forgotten);
  }
}

}  // namespace
}  // namespace test
