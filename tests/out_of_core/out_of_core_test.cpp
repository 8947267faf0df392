#include <roost/out_of_core/out_of_core.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Calls for columns in host memory, with limits from the smallest on, against the same calls for columns in
// memory of the place. On the host, a second host stands for the GPU.

namespace test {
namespace {

using place_out_of_core = roost::out_of_core<place_type>;

template <class... Ranges>
std::string bits_of(const Ranges&... ranges) {
  std::string all;
  const auto add = [&](const auto& elements) {
    const std::span some(elements);
    all.append(std::to_string(some.size()) + ":");
    all.append(reinterpret_cast<const char*>(some.data()), some.size_bytes());
  };
  (add(ranges), ...);
  return all;
}

/// What the calls return, by name.
using results = std::vector<std::pair<std::string, std::string>>;

template <class Key>
struct columns {
  std::vector<Key> left, right;
  std::vector<double> weights;  // of the left rows
  std::vector<u32> counts;
};
template <class Key>
columns<Key> columns_of(std::vector<Key> left, std::vector<Key> right) {
  columns<Key> all{std::move(left), std::move(right), {}, {}};
  for (std::size_t i = 0; i < all.left.size(); ++i) {
    all.weights.push_back(static_cast<double>(static_cast<std::int64_t>(roost::mix64(i))) / 3);
    all.counts.push_back(static_cast<u32>(roost::mix64(i)));
  }
  return all;
}

const std::tuple several{roost::plus(), roost::maximum(), roost::bit_xor()};
const std::tuple ends_of_weights{roost::minimum(), roost::plus()};

/// Groups in the order of the first rows of their keys.
template <class Key, class... Columns>
std::string by_first_row(const std::vector<Key>& keys, const std::vector<Key>& of_groups,
                         const Columns&... columns) {
  oracle_map<Key, std::size_t> first;
  for (std::size_t i = 0; i < keys.size(); ++i) first.emplace(keys[i], i);
  std::vector<std::size_t> order(of_groups.size());
  for (std::size_t g = 0; g < order.size(); ++g) order[g] = g;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return first.at(of_groups[a]) < first.at(of_groups[b]); });
  const auto in_order = [&](auto column) {
    auto sorted = column;
    for (std::size_t g = 0; g < order.size(); ++g) sorted[g] = column[order[g]];
    return sorted;
  };
  return bits_of(in_order(of_groups), in_order(columns)...);
}

/// The calls in memory of the place.
template <class Key>
results in_memory(const columns<Key>& all) {
  const auto& place = test_place();
  const auto left = upload(all.left), right = upload(all.right);
  const auto weights = upload(all.weights);
  const auto counts = upload(all.counts);
  results made;
  const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
  const auto inner = roost::inner_join(place, left, right);
  add("inner_join", bits_of(download(inner.left), download(inner.right)));
  const auto outer = roost::left_join<u64>(place, left, right);
  add("left_join", bits_of(download(outer.left), download(outer.right)));
  const auto semi = download(roost::semi_join<u64>(place, left, right));
  add("semi_join", bits_of(semi));
  add("anti_join", bits_of(download(roost::anti_join(place, left, right))));
  std::vector<char> there(all.left.size());
  for (const u64 row : semi) there[row] = 1;
  add("isin", bits_of(there));
  const auto unique = roost::unique_all(place, left, {.first = true, .inverse = true, .counts = true});
  add("unique_all", bits_of(download(unique.keys), download(unique.first), download(unique.inverse),
                            download(unique.counts)));
  if constexpr (roost::detail::is_integer<Key>) {
    const auto ascending = roost::unique_all(
        place, left, {.order = roost::index_order::by_key, .first = true, .inverse = true, .counts = true});
    add("unique_all by_key", bits_of(download(ascending.keys), download(ascending.first),
                                     download(ascending.inverse), download(ascending.counts)));
  }
  const auto sums = roost::group_by(place, left, weights, roost::plus());
  add("group_by", by_first_row(all.left, download(sums.keys), download(sums.values), download(sums.counts)));
  const auto both = roost::group_by(place, left, weights, ends_of_weights);
  add("group_by of two", by_first_row(all.left, download(both.keys), download(both.values[0]),
                                      download(both.values[1]), download(both.counts)));
  const auto three = roost::group_by(place, left, counts, several);
  add("group_by of integers",
      by_first_row(all.left, download(three.keys), download(three.values[0]), download(three.values[1]),
                   download(three.values[2]), download(three.counts)));
  const auto means = roost::group_means(place, left, counts, {.counts = false});
  add("group_means", by_first_row(all.left, download(means.keys), download(means.values)));
  return made;
}

/// The same calls for host memory.
template <class Key>
results through(const place_out_of_core& place, const columns<Key>& all) {
  results made;
  const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
  const auto inner = roost::inner_join(place, all.left, all.right);
  add("inner_join", bits_of(inner.left, inner.right));
  const auto outer = roost::left_join<u64>(place, all.left, all.right);
  add("left_join", bits_of(outer.left, outer.right));
  add("semi_join", bits_of(roost::semi_join<u64>(place, all.left, all.right)));
  add("anti_join", bits_of(roost::anti_join(place, all.left, all.right)));
  add("isin", bits_of(roost::isin(place, all.left, all.right)));
  const auto unique = roost::unique_all(place, all.left, {.first = true, .inverse = true, .counts = true});
  add("unique_all", bits_of(unique.keys, unique.first, unique.inverse, unique.counts));
  if constexpr (roost::detail::is_integer<Key>) {
    const auto ascending = roost::unique_all(
        place, all.left,
        {.order = roost::index_order::by_key, .first = true, .inverse = true, .counts = true});
    add("unique_all by_key", bits_of(ascending.keys, ascending.first, ascending.inverse, ascending.counts));
  }
  const auto sums = roost::group_by(place, all.left, all.weights, roost::plus());
  add("group_by", bits_of(sums.keys, sums.values, sums.counts));
  const auto both = roost::group_by(place, all.left, all.weights, ends_of_weights);
  add("group_by of two", bits_of(both.keys, both.values[0], both.values[1], both.counts));
  const auto three = roost::group_by(place, all.left, all.counts, several);
  add("group_by of integers",
      bits_of(three.keys, three.values[0], three.values[1], three.values[2], three.counts));
  const auto means = roost::group_means(place, all.left, all.counts, {.counts = false});
  EXPECT_EQ(means.counts.size(), 0u);
  add("group_means", bits_of(means.keys, means.values));
  return made;
}

/// Device memory of which no more than a limit may be in use.
struct watched_device {
  watched_memory memory;
  place_type place = make_place(memory);
};

std::vector<std::size_t> limits() {
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  if (sanitized) return {least};
  return {least, least + (std::size_t{3} << 20), std::size_t{1} << 30};
}

template <class Key>
void check(const columns<Key>& all) {
  const results expected = in_memory(all);
  for (const std::size_t bytes : limits()) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    watched_device device;
    const place_out_of_core place(roost::host(2), device.place,
                                  {.device_bytes = bytes, .pinned_bytes = bytes >> 6});
    const results found = through(place, all);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == expected[i]) << found[i].first << " differs";
    EXPECT_LE(device.memory.most_bytes(), bytes);
    EXPECT_EQ(device.memory.live_blocks(), 0u);
    EXPECT_EQ(device.memory.wrong_returns(), 0u);
  }
}

template <class Key>
class out_of_core : public testing::Test {};
using keys = axis<u64, u32, sixteen>;
TYPED_TEST_SUITE(out_of_core, keys);

// Of the smallest limit, 2 MiB are for rows: ten thousand.
TYPED_TEST(out_of_core, columns_of_any_length) {
  for (const auto& [n, m] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 0}, {0, 5}, {5, 0}, {1, 1}, {100, 90000}, {90000, 100}, {90000, 120000}}) {
    SCOPED_TRACE(std::to_string(n) + " and " + std::to_string(m) + " rows");
    check(columns_of(from_numbers<TypeParam>(random_numbers(n, 1, n + m)),
                     from_numbers<TypeParam>(random_numbers(m, 2, n + m))));
  }
}

TYPED_TEST(out_of_core, different_keys) {
  check(columns_of(from_numbers<TypeParam>(different_numbers(120000, 1)),
                   from_numbers<TypeParam>(different_numbers(80000, 1))));
}

TYPED_TEST(out_of_core, skewed_keys) {
  check(columns_of(from_numbers<TypeParam>(skewed_numbers(90000, 1, 50000)),
                   from_numbers<TypeParam>(random_numbers(60000, 2, 100000))));
  check(columns_of(from_numbers<TypeParam>(random_numbers(60000, 1, 100000)),
                   from_numbers<TypeParam>(skewed_numbers(90000, 2, 50000))));
}

TYPED_TEST(out_of_core, one_key) {
  check(columns_of(std::vector<TypeParam>(100000, from_number<TypeParam>(7)),
                   std::vector<TypeParam>(12, from_number<TypeParam>(7))));
  check(columns_of(std::vector<TypeParam>(12, from_number<TypeParam>(7)),
                   std::vector<TypeParam>(90000, from_number<TypeParam>(7))));
  auto some = from_numbers<TypeParam>(random_numbers(60000, 1, 40000));
  some.resize(140000, from_number<TypeParam>(3));
  check(columns_of(shuffled(some, 5), from_numbers<TypeParam>(random_numbers(70000, 2, 60000))));
}

/// Keys that lie in the first of 16 parts, by both hashes.
TYPED_TEST(out_of_core, crafted_keys) {
  std::vector<TypeParam> crafted;
  for (u64 i = 0; crafted.size() < 60000; ++i) {
    const auto key = from_number<TypeParam>(i);
    const auto is_first = [&](int level) {
      return roost::detail::leading_bits{roost::detail::part_seed(level), 16}(key) == 0;
    };
    if (is_first(0) && is_first(1)) crafted.push_back(key);
  }
  auto both = crafted;
  both.insert(both.end(), crafted.begin(), crafted.begin() + 30000);
  check(columns_of(shuffled(both, 1), shuffled(crafted, 2)));
}

// A left row has more matches than the device has room for those of all rows.
TYPED_TEST(out_of_core, pairs_that_do_not_fit) {
  check(columns_of(std::vector<TypeParam>(1500, from_number<TypeParam>(7)),
                   std::vector<TypeParam>(1000, from_number<TypeParam>(7))));
}

TYPED_TEST(out_of_core, random_columns) {
  for (u64 seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto random = random_numbers(4, seed);
    const u64 ends[] = {3000, 50000, ~u64{0}};
    const auto side = [&](u64 n, u64 of) {
      return from_numbers<TypeParam>(random_numbers(n % 50000, n, ends[of % 3]));
    };
    check(columns_of(side(random[0], random[1]), side(random[2], random[3])));
  }
}

// What a call does beside its result.

std::vector<u64> some_keys(u64 seed) { return random_numbers(60000, seed, 40000); }

/// Calls f(call) for each kind of call, with a place; call() makes it.
template <class F>
void each_call(const place_out_of_core& place, const F& f) {
  const auto left = some_keys(1), right = some_keys(2);
  const std::vector<double> values(left.size(), 0.1);
  const std::vector<u32> counts(left.size(), 3);
  f([&] { return roost::left_join(place, left, right).size(); });
  f([&] { return roost::semi_join(place, left, right).size(); });
  f([&] { return roost::unique_inverse(place, left).keys.size(); });
  f([&] { return roost::group_by(place, left, values, roost::plus()).size(); });
  f([&] { return roost::group_by(place, left, counts, several).size(); });
}

place_out_of_core smallest(const place_type& device, roost::out_of_core_limits limits = {}) {
  limits.device_bytes = place_out_of_core::device_bytes_least(device);
  return place_out_of_core(roost::host(2), device, limits);
}

TEST(out_of_core_calls, refuse_limits_that_are_too_small) {
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  const auto make = [&](std::size_t device_bytes, std::size_t pinned_bytes) {
    place_out_of_core(roost::host(2), test_place(),
                      {.device_bytes = device_bytes, .pinned_bytes = pinned_bytes});
  };
  make(least, 64 << 10);
  const std::string bytes = std::to_string(least);
  expect_error<roost::invalid_argument>([&] { make(least - 1, 64 << 10); }, {"of the device", bytes});
  expect_error<roost::invalid_argument>([&] { make(least, (64 << 10) - 1); }, {"pinned bytes", "65536"});
}

TEST(out_of_core_calls, refuse_wrong_arguments) {
  const auto place = smallest(test_place());
  const std::vector<u32> keys(300, 1), values(299, 1);
  expect_error<roost::invalid_argument>([&] { roost::group_by(place, keys, values, roost::plus()); },
                                        {"roost::group_by", "300 keys", "299 values"});
  expect_error<roost::invalid_argument>([&] { roost::inner_join<u8>(place, keys, values); },
                                        {"roost::inner_join", "300 rows", "1 bytes"});
  const std::vector<sixteen> pairs(5);
  expect_error<roost::invalid_argument>([&] { roost::unique(place, pairs, roost::index_order::by_key); },
                                        {"roost::unique", "by_key"});
}

TEST(out_of_core_calls, read_ranges_that_are_computed) {
  const std::size_t n = 70000;
  const auto place = smallest(test_place());
  const roost::computed keys(n, [](std::size_t i) { return static_cast<u32>(i * 2); });
  const roost::computed others(n, [](std::size_t i) { return static_cast<u32>(i * 3); });
  const auto rows = roost::inner_join(place, keys, others);
  ASSERT_EQ(rows.size(), (n + 2) / 3);
  for (u32 i = 0; i < rows.size(); ++i) ASSERT_TRUE(rows.left[i] == 3 * i && rows.right[i] == 2 * i);
  EXPECT_EQ(roost::unique_count(place, keys), n);
  const auto counts = roost::unique_counts(place, roost::computed(n, [](std::size_t i) { return i / 7; }));
  EXPECT_EQ(counts.counts[0], 7u);
}

TEST(out_of_core_calls, report_progress) {
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  const auto place = smallest(
      test_place(), {.progress = [&](std::size_t done, std::size_t all) { seen.emplace_back(done, all); }});
  each_call(place, [&](const auto& call) {
    seen.clear();
    call();
    ASSERT_GT(seen.size(), 4u);
    EXPECT_EQ(seen.back().first, seen.back().second);
    for (std::size_t i = 1; i < seen.size(); ++i) {
      const bool begins_again = seen[i - 1].first == seen[i - 1].second;  // the join that makes the inverse
      EXPECT_TRUE(begins_again ||
                  (seen[i].first >= seen[i - 1].first && seen[i].second == seen[i - 1].second));
    }
  });
}

struct stopped {};

TEST(out_of_core_calls, end_where_progress_throws) {
  watched_device device;
  for (std::size_t good = 0; good < 40; good += sanitized ? 13 : 3) {
    std::size_t left = good;
    const auto place = smallest(device.place, {.progress = [&](std::size_t, std::size_t) {
                                  if (left-- == 0) throw stopped();
                                }});
    each_call(place, [&](const auto& call) {
      left = good;
      if (good < 5) {
        EXPECT_THROW(call(), stopped);
      } else {
        try {
          call();
        } catch (const stopped&) {
        }
      }
      EXPECT_EQ(device.memory.live_blocks(), 0u);
    });
  }
}

// Whichever allocation the device refuses, alone or with all that follow: the call throws, keeps nothing, and
// can be made again.
TEST(out_of_core_calls, end_where_memory_is_refused) {
  watched_device device;
  const auto place = smallest(device.place);
  each_call(place, [&](const auto& call) {
    const auto expected = call();
    std::size_t refusals = 1, thrown = 0;
    for (std::size_t good = 0; refusals != 0; good += 1 + good / (sanitized ? 2 : 8)) {
      device.memory.refuse_after(good, good % 2 == 0 ? 1 : ~std::size_t{0});
      bool threw = false;
      try {
        call();
      } catch (const roost::out_of_memory&) {
        threw = true;
      }
      refusals = device.memory.refuse_nothing();
      ASSERT_EQ(threw, refusals != 0);
      thrown += threw;
      ASSERT_EQ(device.memory.live_blocks(), 0u);
    }
    EXPECT_GT(thrown, 8u);
    EXPECT_EQ(call(), expected);
  });
}

#if !defined(__CUDACC__)
// The host's memory, with the buffers that stand for pinned ones.
TEST(out_of_core_calls, end_where_the_host_has_no_memory) {
  watched_memory of_host;
  place_out_of_core place(roost::host(2, &of_host), test_place(),
                          {.device_bytes = place_out_of_core::device_bytes_least(test_place())});
  each_call(place, [&](const auto& call) {
    const auto expected = call();
    std::size_t refusals = 1;
    for (std::size_t good = 0; refusals != 0; good += 1 + good / (sanitized ? 1 : 2)) {
      of_host.refuse_after(good);
      bool threw = false;
      try {
        call();
      } catch (const roost::out_of_memory&) {
        threw = true;
      }
      refusals = of_host.refuse_nothing();
      ASSERT_EQ(threw, refusals != 0);
      ASSERT_EQ(of_host.live_blocks(), 0u);
    }
    EXPECT_EQ(call(), expected);
  });
}

TEST(out_of_core_calls, copy_through_two_buffers_of_the_pinned_bytes) {
  watched_memory of_host;
  bool seen = false;
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  const place_out_of_core place(
      roost::host(2, &of_host), test_place(),
      {.device_bytes = least, .pinned_bytes = 100000, .progress = [&](std::size_t, std::size_t) {
         seen = seen || of_host.block_of(2 * (50000 / 64 * 64)) != nullptr;
       }});
  static_cast<void>(roost::unique(place, some_keys(1)));
  EXPECT_TRUE(seen);
}

TEST(out_of_core_calls, call_what_comes_between_pieces) {
  static int calls;
  calls = 0;
  const roost::detail::calls_between_pieces count([] {
    if (++calls == 30) throw stopped();
  });
  watched_device device;
  const auto place = smallest(device.place);
  each_call(place, [&](const auto& call) {
    calls = 0;
    EXPECT_THROW(call(), stopped);
    EXPECT_EQ(device.memory.live_blocks(), 0u);
  });
}
#else
// Memory that the GPU can read is not staged.
TEST(out_of_core_calls, copy_registered_memory_directly) {
  auto left = some_keys(1), right = some_keys(2);
  const auto place = smallest(test_place());
  const auto expected = roost::inner_join(place, left, right);
  for (auto* const side : {&left, &right}) {
    const std::size_t bytes = side->size() * sizeof(u64);
    EXPECT_FALSE(roost::detail::pinned_buffers<roost::cuda>::is_pinned(side->data(), bytes));
    roost::detail::check(cudaHostRegister(side->data(), bytes, cudaHostRegisterDefault), "cudaHostRegister");
    EXPECT_TRUE(roost::detail::pinned_buffers<roost::cuda>::is_pinned(side->data(), bytes));
  }
  const auto found = roost::inner_join(place, left, right);
  EXPECT_TRUE(bits_of(found.left, found.right) == bits_of(expected.left, expected.right));
  for (auto* const side : {&left, &right})
    roost::detail::check(cudaHostUnregister(side->data()), "cudaHostUnregister");
}
#endif

}  // namespace
}  // namespace test
