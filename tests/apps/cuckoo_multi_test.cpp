#include "papers/cuckoo_multi.hpp"

#include "support/keys.hpp"
#include "support/place.hpp"

// The multi-value and the compacting hash of Alcantara et al. 2009, sections 4.2 and 4.3, against maps of the
// standard library.

namespace test {
namespace {

using multimap = roost::bench::cuckoo_multimap<u32, u64, place_type>;
using index = roost::bench::cuckoo_index<u32, place_type>;

/// What a query finds: the place and number of its values, and its index.
struct answer {
  u64 first, count, index;
};

struct ask_both {
  multimap::ref_type values;
  index::ref_type indices;
  const u32* queries;
  answer* answers;
  ROOST_FN void operator()(std::size_t i) const {
    const auto run = values.find(queries[i]);
    const auto found = indices.find(queries[i]);
    answers[i] = {static_cast<u64>(run.begin() - values.values), run.size(), found ? *found : ~u64{0}};
  }
};

/// Builds both, compares all answers with an oracle's, and returns how often the builds began again.
int check(const numbers& from, const roost::cuckoo::options& options = {}) {
  const auto& place = test_place();
  const std::vector<u32> keys = from_numbers<u32>(from);
  const std::vector<u64> values = numbered_values<u64>(keys.size());
  oracle_map<u32, std::vector<u64>> oracle;
  for (std::size_t i = 0; i < keys.size(); ++i) oracle[keys[i]].push_back(values[i]);

  const auto keys_there = upload(keys);
  const multimap map(place, keys_there, upload(values), options);
  const index numbering(place, keys_there, options);
  EXPECT_EQ(map.size(), keys.size());
  EXPECT_EQ(map.key_count(), oracle.size());
  EXPECT_EQ(numbering.size(), oracle.size());
  EXPECT_EQ(map.restarts(), numbering.restarts());
  EXPECT_GE(map.mean_rounds(), 1.0);

  std::vector<u32> queries = keys;
  for (const u64 number : random_numbers(keys.size() + 100, 5)) queries.push_back(static_cast<u32>(number));
  for (const u32 edge : {0u, 1u, 0x80000000u, ~0u, ~1u}) queries.push_back(edge);
  const auto asked = upload(queries);
  auto answers_there = filled<answer>(queries.size(), {1, 1, 1});
  place.for_each(queries.size(), ask_both{map.ref(), numbering.ref(), asked.data(), answers_there.data()});
  const auto answers = download(answers_there);
  const auto all_values = download(std::span<const u64>(map.ref().values, map.size()));
  const auto index_keys = download(numbering.keys());

  std::size_t wrong = 0;
  oracle_set<u32> told;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto known = oracle.find(queries[i]);
    const answer& got = answers[i];
    if (known == oracle.end()) {
      wrong += got.count != 0 || got.index != ~u64{0};
      continue;
    }
    wrong += got.index >= index_keys.size() || index_keys[got.index] != queries[i];
    if (got.count != known->second.size() || got.first + got.count > all_values.size()) {
      ++wrong;
    } else if (told.insert(queries[i]).second) {
      const auto begin = all_values.begin() + static_cast<std::ptrdiff_t>(got.first);
      std::vector<u64> run(begin, begin + static_cast<std::ptrdiff_t>(got.count)), expected = known->second;
      std::sort(run.begin(), run.end());
      std::sort(expected.begin(), expected.end());
      wrong += run != expected;
    }
  }
  EXPECT_EQ(wrong, 0u) << "of " << queries.size() << " queries";
  EXPECT_EQ(told.size(), oracle.size());
  return map.restarts();
}

/// `each` copies of so many keys that they are n, shuffled.
numbers copies(std::size_t n, std::size_t each) {
  const numbers different = different_numbers((n + each - 1) / each, each);
  numbers result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = different[i / each];
  return shuffled(result, n);
}

TEST(cuckoo_multi, any_multiplicity) {
  for (const std::size_t each : {1, 2, 3, 16, 100, 1024, 5000}) check(copies(30000, each));
  for (const u64 most : {3, 100, 5000, 40000}) check(random_numbers(30000, most, most));
}

TEST(cuckoo_multi, any_number_of_items) {
  for (const std::size_t n : {0, 1, 2, 5, 408, 409, 410, 512, 513, 2048, 2049}) {
    check(copies(n, 1));
    check(copies(n, 2));
    check(numbers(n, 42));
  }
}

TEST(cuckoo_multi, one_key_with_all_values) {
  check(numbers(100000, 7));
  check(numbers(3000, 0));
  check(numbers(3000, ~u64{0}));  // all ones
}

TEST(cuckoo_multi, a_key_with_half_of_all_values) {
  numbers keys = copies(20000, 1);
  for (std::size_t i = 0; i < keys.size(); i += 2) keys[i] = 0xffffffff;
  check(keys);
}

TEST(cuckoo_multi, edges) { check({0, ~u64{0}, 0, ~u64{0}, 1, 0xfffffffe, 0x80000000, ~u64{0}}); }

TEST(cuckoo_multi, begins_again_where_a_region_holds_too_many_keys) {
  // 2 copies of each of 2000 keys: 10 regions, and all keys are in region 0 of the first attempt.
  numbers keys = multiples(2000, 10);
  keys.insert(keys.end(), keys.begin(), keys.end());
  EXPECT_EQ(check(shuffled(keys, 1)), 1);
}

/// All are equal modulo 1900813 and in one of two regions, so that the paper's functions cannot tell them
/// apart.
numbers hard_keys() { return multiples(753, 2 * 1900813); }

TEST(cuckoo_multi, finds_a_place_for_keys_that_the_papers_functions_cannot_tell_apart) {
  EXPECT_EQ(check(hard_keys()), 5);
  EXPECT_EQ(check(multiples(400, 2 * 1900813)), 0);
}

TEST(cuckoo_multi, gives_up_after_the_last_restart) {
  const auto& place = test_place();
  const auto keys = upload(from_numbers<u32>(hard_keys()));
  const auto values = upload(numbered_values<u64>(keys.size()));
  for (const int most : {0, 4}) {
    const std::string attempts = "each of " + std::to_string(most + 1) + " attempts";
    expect_error<roost::build_error>([&] { multimap(place, keys, values, {.max_restarts = most}); },
                                     {"cuckoo_multimap", "576 slots", attempts, "max_restarts"});
    expect_error<roost::build_error>([&] { index(place, keys, {.max_restarts = most}); },
                                     {"cuckoo_index", "576 slots", attempts, "max_restarts"});
  }
}

TEST(cuckoo_multi, refuses_what_cannot_be_meant) {
  const auto keys = upload(std::vector<u32>(3));
  const auto values = upload(std::vector<u64>(3)), more = upload(std::vector<u64>(4));
  EXPECT_THROW(multimap(test_place(), keys, more), roost::invalid_argument);
  EXPECT_THROW(multimap(test_place(), keys, values, {.load_factor = 0}), roost::invalid_argument);
  EXPECT_THROW(index(test_place(), keys, {.load_factor = 1}), roost::invalid_argument);
}

TEST(cuckoo_multi, takes_the_rounds_of_the_paper_and_fewer_for_copies) {
  const auto rounds = [](std::size_t each) {
    const numbers keys = copies(200000, each);
    return multimap(test_place(), upload(from_numbers<u32>(keys)), upload(numbered_values<u64>(keys.size())))
        .mean_rounds();
  };
  const double one = rounds(1);
  EXPECT_GT(one, 4.5);
  EXPECT_LT(one, 6.5);            // section 4.1: 5.5
  EXPECT_LT(rounds(2), one - 2);  // section 5: fewer
}

}  // namespace
}  // namespace test
