#include "support/tables_bodies.hpp"

// Layout cuckoo reproduces the facts of Alcantara et al. 2009, and Wang and Hu's variant.

namespace test {

TEST_TABLES_CUCKOO(TEST_DEFINE)

namespace {

TEST(cuckoo, has_the_papers_geometry) {
  const std::size_t n = 409 * 100;
  const cuckoo_map<u32, u32> map(from_numbers<u32>(different_numbers(n, 1)), numbered_values<u32>(n));
  const auto& facts = map.statistics();
  EXPECT_EQ(facts.regions, 100u);
  EXPECT_EQ(facts.capacity, 100u * 576);
  EXPECT_NEAR(facts.load_factor, 0.71, 0.001);
  EXPECT_NEAR(static_cast<double>(facts.bytes) / (n * 8), 1.42, 0.02);  // times the input's
  EXPECT_EQ(map.bytes(), facts.bytes);
  EXPECT_TRUE(map.valid());
}

TEST(cuckoo, splits_by_the_papers_functions_where_they_can_fill_the_regions) {
  const auto way = [](std::size_t n, int attempt) {
    return roost::cuckoo::make_plan<place_type, u32, u32>(n, {}, attempt).region_of.which;
  };
  using kind = roost::cuckoo::first_level::kind;
  for (const std::size_t n : {std::size_t{1000}, std::size_t{1} << 24, std::size_t{1} << 28})
    EXPECT_EQ(way(n, 0), kind::modulo);
  EXPECT_EQ(way(std::size_t{1} << 24, 1), kind::alcantara);
  EXPECT_EQ(way(std::size_t{1} << 24, 5), kind::leading_bits);
  EXPECT_EQ(way(std::size_t{1} << 28, 1), kind::leading_bits)
      << "656000 regions get 2 or 3 of 1900813 values each";
}

TEST(cuckoo, needs_the_papers_rounds_and_probes_large) {
  const std::size_t n = 400000;
  const auto keys = from_numbers<u32>(different_numbers(n, 2));
  const cuckoo_map<u32, u32> map(keys, numbered_values<u32>(n));
  const auto& facts = map.statistics();
  EXPECT_GT(facts.mean_rounds, 4.5);
  EXPECT_LT(facts.mean_rounds, 6.5);  // the paper: 5.5
  EXPECT_LE(facts.restarts, 1);
  EXPECT_LT(facts.region_restarts, facts.regions / 50);
  EXPECT_LE(map.most_probes(keys), 3u);
  EXPECT_GT(map.mean_probes(), 1.0);
  EXPECT_LT(map.mean_probes(), 3.0);
  EXPECT_TRUE(map.valid());
}

TEST(cuckoo, restarts_as_seldom_as_the_papers) {
  if (sanitized) GTEST_SKIP() << "takes too long";
  // The paper (section 7): of 25000 builds of a million keys, 22 had an overfull region, 0.088 %. As many
  // builds have one here, of fewer but fuller regions: a region's keys are binomial (2220, 1 / 5), more than
  // 512 with a chance of 0.0176 %. So of 4000 builds 3.5 restart on average, a Poisson number, which is more
  // than 15 with a chance of 1e-6; at ten times the rate it is 15 or fewer with a chance of 1e-4.
  constexpr std::size_t n = 2220, regions = 5;
  std::mt19937_64 random(1);
  int restarts = 0;
  for (int build = 0; build < 4000; ++build) {
    std::vector<u32> keys(n);
    for (auto& key : keys) key = static_cast<u32>(random() >> 32);
    const cuckoo_set<u32> set(keys, std::vector<roost::none>(n), {.load_factor = (n + 1.0) / regions / 576});
    ASSERT_EQ(set.statistics().regions, regions);
    restarts += set.statistics().restarts != 0;
    ASSERT_TRUE(set.valid());
  }
  EXPECT_LE(restarts, 15);
  EXPECT_GE(restarts, 1) << "which has a chance of 97 %: no region is ever overfull, or nobody counts";
}

TEST(cuckoo, two_kernel_variant_of_sets) {
  using table = cuckoo_set<u32>;
  for (const std::size_t n : {0, 1, 256, 512, 1000, 51200}) {
    const auto facts = check<table>(different_numbers(n, n), {.two_kernel = true});
    EXPECT_EQ(facts.regions, std::max<std::size_t>(2, (n + 255) / 256)) << "256 keys of 512 expected";
  }
  check<table>(multiples(20000, 1), {.two_kernel = true});
  check<table>(multiples(20000, 1 << 16), {.two_kernel = true});
  check<table>(random_numbers(20000, 1, 15000), {.two_kernel = true});
  check<table>(voxels_of_sphere(30), {.two_kernel = true});
  check<cuckoo_map<u32, u32>>(different_numbers(20000, 1), {.two_kernel = true});
}

TEST(cuckoo, two_kernel_variant_takes_copies) {
  check<cuckoo_set<u32>>(numbers(512, 42), {.two_kernel = true});
  check<cuckoo_set<u32>>(numbers(100000, 42), {.two_kernel = true});
  numbers keys = different_numbers(10000, 1);
  keys.insert(keys.end(), 5000, keys[3]);
  check<cuckoo_set<u32>>(keys, {.two_kernel = true});
}

}  // namespace
}  // namespace test
