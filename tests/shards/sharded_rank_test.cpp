#include <filesystem>
#include <roost/shards/sharded_concurrent_map.hpp>
#include <roost/shards/sharded_file.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_multimap.hpp>
#include <roost/shards/sharded_set.hpp>

#include "support/ranks.hpp"
#include "support/shards.hpp"

// roost::rank: sharded tables of several processes, which are threads here, against tables of one place.

namespace test {
namespace {

namespace fs = std::filesystem;
using roost::index_order;
using roost::path;
using map_type = roost::sharded_map<u32, u32, rank_type>;
using set_type = roost::sharded_set<u32, rank_type>;
using multimap_type = roost::sharded_multimap<u32, u32, rank_type>;
using changing_type = roost::sharded_concurrent_map<u32, u32, rank_type>;

/// What a rank has of a column.
template <class T>
memory_of<T> part_of(const rank_type& all, const std::vector<T>& whole) {
  return upload(split(whole, all.size())[all.number()]);
}
/// The order in which ranks have a column.
template <class T>
std::vector<T> in_order(const rank_type& all, const std::vector<T>& whole) {
  return flat(split(whole, all.size()));
}
/// What this rank should have of answers to a whole column.
template <class T>
std::vector<T> share_of(const rank_type& all, const std::vector<T>& answers) {
  const auto lengths = split(std::vector<char>(answers.size()), all.size());
  auto first = answers.begin();
  for (std::uint32_t r = 0; r < all.number(); ++r) first += static_cast<std::ptrdiff_t>(lengths[r].size());
  return {first, first + static_cast<std::ptrdiff_t>(lengths[all.number()].size())};
}
/// All ranks' results, one after the other, as one place would have them.
template <class T>
class collected {
 public:
  explicit collected(std::size_t ranks) : parts_(ranks) {}
  template <class Range>
  void put(const rank_type& all, const Range& mine) {
    parts_[all.number()] = download(mine);
  }
  std::vector<T> whole() const { return flat(parts_); }

 private:
  column<T> parts_;
};

struct input {
  std::uint32_t ranks;
  std::size_t n;
  u64 below;
  std::vector<u32> keys() const { return from_numbers<u32>(random_numbers(n, n + 1, below - 1)); }
  std::vector<u32> queries() const {
    return from_numbers<u32>(random_numbers(n / 2 + 3, n + 2, below + below / 2));
  }
};

class ranks : public testing::TestWithParam<input> {};
INSTANTIATE_TEST_SUITE_P(inputs, ranks,
                         testing::Values(input{1, 2000, 1000}, input{2, 0, 10}, input{2, 1, 10},
                                         input{2, 9000, u64{1} << 31}, input{3, 5000, 600}, input{5, 4000, 7},
                                         input{7, 20, u64{1} << 31}, input{7, 9000, u64{1} << 31},
                                         input{2, 20000, 2}));

TEST_P(ranks, answer_as_one_map) {
  const auto keys = GetParam().keys(), queries = GetParam().queries();
  on_ranks(GetParam().ranks, [&](const rank_type& all) {
    const auto values = numbered_values<u32>(keys.size());
    const auto mine = part_of(all, keys), queried = part_of(all, queries);
    const roost::frozen_map one(test_place(), upload(in_order(all, keys)), upload(in_order(all, values)));
    const auto whole = upload(in_order(all, queries));
    auto wanted = filled<u32>(whole.size(), 0);
    one.find(test_place(), whole, wanted, 7);

    map_type map(all, mine, part_of(all, values), {.load_factor = 0.7});
    EXPECT_EQ(map.size(), one.size());
    EXPECT_TRUE(map.valid(all));
    for (const path way : {path::automatic, path::direct, path::regional}) {
      auto results = filled<u32>(queried.size(), 0);
      map.find(all, queried, results, 7, {.path = way, .scratch_bytes_most = 1});
      EXPECT_TRUE(download(results) == share_of(all, download(wanted)));
    }
    EXPECT_EQ(map.count_found(all, queried), one.count_found(test_place(), whole));
    auto found = filled<bool>(queried.size(), true);
    map.contains(all, queried, found);
    memory_of<u32> out_keys(test_place(), map.shard(0).size()), out_values(test_place(), out_keys.size());
    EXPECT_EQ(map.retrieve_all(all, out_keys, out_values), one.size());
    map.rebuild(all, out_keys, out_values);
    auto again = filled<bool>(queried.size(), false);
    auto results = filled<u32>(queried.size(), 7);
    map.find(all, queried, results, again);
    EXPECT_TRUE(download(results) == share_of(all, download(wanted)));
    EXPECT_TRUE(download(found) == download(again));
    const map_type none;
    none.find(all, queried, results, 3);
    EXPECT_TRUE(download(results) == std::vector<u32>(queried.size(), 3));
  });
}

TEST_P(ranks, answer_as_one_multimap_and_join) {
  const auto keys = GetParam().keys();
  auto queries = GetParam().queries();
  if (GetParam().below < 5) queries.resize(300);
  collected<u32> values(GetParam().ranks), left(GetParam().ranks), right(GetParam().ranks);
  std::vector<u32> all_keys, all_queries, all_numbers;
  on_ranks(GetParam().ranks, [&](const rank_type& all) {
    const auto numbers = numbered_values<u32>(keys.size());
    if (all.number() == 0) {
      all_keys = in_order(all, keys), all_queries = in_order(all, queries);
      all_numbers = in_order(all, numbers);
    }
    const auto mine = part_of(all, keys), queried = part_of(all, queries);
    const multimap_type map(all, mine, part_of(all, numbers));
    EXPECT_TRUE(map.valid(all));
    values.put(all, map.retrieve(all, queried).values);
    const auto rows = roost::inner_join(all, queried, mine);
    left.put(all, rows.left);
    right.put(all, rows.right);
  });
  const auto whole = upload(all_keys), queried = upload(all_queries);
  const roost::frozen_multimap one(test_place(), whole, upload(all_numbers));
  EXPECT_TRUE(values.whole() == download(one.retrieve(test_place(), queried).values));
  const auto rows = roost::inner_join(test_place(), queried, whole);
  EXPECT_TRUE(left.whole() == download(rows.left));
  EXPECT_TRUE(right.whole() == download(rows.right));
}

TEST_P(ranks, number_and_sum_as_one_place) {
  const auto keys = GetParam().keys();
  collected<u32> distinct(GetParam().ranks), indices(GetParam().ranks), sum_keys(GetParam().ranks);
  collected<float> sums(GetParam().ranks);
  std::vector<u32> all_keys;
  on_ranks(GetParam().ranks, [&](const rank_type& all) {
    if (all.number() == 0) all_keys = in_order(all, keys);
    const auto mine = part_of(all, keys);
    distinct.put(all, roost::unique(all, mine));
    const roost::sharded_index index(all, mine);
    EXPECT_TRUE(index.valid(all));
    indices.put(all, index.indices(0));
    const set_type set(all, mine);
    EXPECT_EQ(set.size(), index.size());
    EXPECT_EQ(set.count_found(all, mine), keys.size());
    std::vector<float> fractions(mine.size());
    for (std::size_t i = 0; i < fractions.size(); ++i) fractions[i] = 1.0f / static_cast<float>(i + 3);
    const auto sum = roost::group_by(all, mine, upload(fractions), roost::plus());
    sum_keys.put(all, sum.keys);
    sums.put(all, sum.values);
  });
  const auto whole = upload(all_keys);
  EXPECT_TRUE(distinct.whole() == download(roost::unique(test_place(), whole)));
  EXPECT_TRUE(indices.whole() == download(roost::two_way_index(test_place(), whole).indices()));
  std::vector<float> fractions;
  for (const auto& part : split(keys, GetParam().ranks)) {
    for (std::size_t i = 0; i < part.size(); ++i) fractions.push_back(1.0f / static_cast<float>(i + 3));
  }
  const auto one = roost::group_by(test_place(), whole, upload(fractions), roost::plus());
  std::unordered_map<u32, float> wanted;
  const auto one_keys = download(one.keys);
  const auto one_sums = download(one.values);
  for (std::size_t i = 0; i < one_keys.size(); ++i) wanted[one_keys[i]] = one_sums[i];
  const auto some_keys = sum_keys.whole();
  const auto some_sums = sums.whole();
  EXPECT_EQ(some_keys.size(), wanted.size());
  for (std::size_t i = 0; i < some_keys.size(); ++i) EXPECT_EQ(some_sums[i], wanted.at(some_keys[i]));
}

/// Queries of frequent keys are answered where they are.
TEST(rank_class, frequent_keys_do_not_travel) {
  const auto numbers = multiples(3000, 7);
  const auto keys = from_numbers<u32>(numbers);
  constexpr std::size_t n = 30000;  // of a rank
  for (const std::uint32_t count : {2u, 3u, 7u}) {
    thread_group group(count);
    on_ranks(group, [&](const rank_type& all) {
      const auto mine = part_of(all, keys);
      const map_type map(all, mine, mine);
      const multimap_type multimap(all, mine, mine);
      const auto queried = filled<u32>(n, 70);
      auto results = filled<u32>(n, 0);
      const std::size_t before = group.carried();
      map.find(all, queried, results, 1);
      EXPECT_TRUE(download(results) == std::vector<u32>(n, 70));
      multimap.count(all, queried, results);
      EXPECT_TRUE(download(results) == std::vector<u32>(n, 1));
      EXPECT_EQ(map.count_found(all, queried), n * count);
      // A GPU looks for frequent keys in larger batches.
      if (std::is_same_v<place_type, roost::host>) {
        EXPECT_LT(group.carried() - before, n);
      }

      std::vector<u32> others = from_numbers<u32>(skewed_numbers(n, all.number(), 30000));
      map.find(all, upload(others), results, 1);
      for (u32& other : others) other = other % 7 == 0 && other < 21000 ? other : 1;
      EXPECT_TRUE(download(results) == others);
    });
  }
}

TEST(rank_class, tables_change_together) {
  const auto keys = from_numbers<u32>(multiples(3000, 7));
  on_ranks(3, [&](const rank_type& all) {
    changing_type map(all, 100, {.grows = true});
    const auto mine = part_of(all, keys);
    const auto report = map.insert_or_apply(all, mine, mine, roost::plus());
    EXPECT_EQ(report.inserted, 3000u);
    EXPECT_EQ(map.insert(all, mine, mine).present, 3000u);
    EXPECT_EQ(map.size(all), 3000u);
    EXPECT_EQ(map.erase(all, memory_of<u32>(test_place(), 0)), 0u);
    EXPECT_TRUE(map.valid(all));
    EXPECT_EQ(map.erase(all, all.number() == 2 ? upload(keys) : memory_of<u32>()), 3000u);
    EXPECT_EQ(map.count_found(all, mine), 0u);
  });
}

TEST(rank_class, files_of_another_number_of_ranks) {
  std::string folder = (fs::temp_directory_path() / "roost_test_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto keys = from_numbers<u32>(multiples(3000, 7));
  on_ranks(3, [&](const rank_type& all) {
    const auto mine = part_of(all, keys);
    roost::save(all, map_type(all, mine, mine), folder);
  });
  on_ranks(2, [&](const rank_type& all) {
    const auto map = roost::load_sharded_map<u32, u32>(all, folder);
    EXPECT_EQ(map.size(), keys.size());
    EXPECT_EQ(map.count_found(all, part_of(all, keys)), keys.size());
  });
  fs::remove_all(folder);
}

/// EXPECTs that the call throws Type on one rank, and rank_error with its number and message on the others.
template <class Type, class F>
void expect_failure_of(const rank_type& all, std::uint32_t bad, std::string_view message, const F& call) {
  if (all.number() == bad) {
    expect_error<Type>(call, {message});
    return;
  }
  try {
    call();
    ADD_FAILURE() << "rank " << all.number() << " has not heard of a failure";
  } catch (const roost::rank_error& caught) {
    EXPECT_EQ(caught.rank(), bad);
    EXPECT_NE(std::string(caught.what()).find(message), std::string::npos) << caught.what();
  }
}

TEST(rank_class, all_end_with_the_exception_of_one) {
  for (const std::uint32_t count : {2u, 3u, 5u}) {
    for (std::uint32_t bad = 0; bad < count; ++bad) {
      on_ranks(count, [&](const rank_type& all) {
        const auto keys = part_of(all, from_numbers<u32>(multiples(3000, 7)));
        map_type map(all, keys, keys);
        for (int meetings : {0, 1, 2}) {
          expect_failure_of<roost::error>(all, bad, "as it should", [&] {
            all.run([&](auto& me) {
              for (int i = 0; i < meetings; ++i) EXPECT_EQ(me.gather({1}).sum(), count);
              if (me.number() == bad) throw roost::error("as it should");
              if (meetings == 1) me.agree();
            });
          });
        }
        auto results = filled<u32>(keys.size() - (all.number() == bad && keys.size() > 0), 0);
        if (split(std::vector<char>(3000), count)[bad].size() > 0) {
          expect_failure_of<roost::invalid_argument>(all, bad, "room for",
                                                     [&] { map.find(all, keys, results, 0); });
        }
        EXPECT_EQ(map.count_found(all, keys), 3000u) << "and goes on to work";
      });
    }
  }
}

TEST(rank_class, other_options_and_other_calls) {
  on_ranks(3, [](const rank_type& all) {
    const auto keys = part_of(all, from_numbers<u32>(multiples(300, 7)));
    const bool odd = all.number() == 1;
    expect_error<roost::invalid_argument>([&] { map_type(all, keys, keys, {.seed = odd ? 5u : 0u}); },
                                          {"sharded_map", "rank 1 has another seed"});
    expect_error<roost::invalid_argument>(
        [&] { map_type(all, keys, keys, {.load_factor = odd ? 0.5 : 0.8}); },
        {"rank 1 has another load factor"});
    try {
      all.run([&](auto& me) { odd ? me.gather({1, 2}) : me.gather({1}); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const roost::rank_error& caught) {
      EXPECT_EQ(caught.rank(), 1u);
      EXPECT_NE(std::string(caught.what()).find("another call"), std::string::npos);
    }
    EXPECT_EQ(map_type(all, keys, keys).size(), 300u);
  });
}

/// A rank that throws while others wait for its data, and one that ends.
TEST(rank_class, a_rank_that_is_gone) {
  for (const bool in_the_middle : {true, false}) {
    thread_group group(4);
    const auto thrown = thrown_by_ranks(group, [&](const rank_type& all) {
      const auto keys = part_of(all, from_numbers<u32>(multiples(3000, 7)));
      const map_type map(all, keys, keys);
      if (!in_the_middle && all.number() == 2) throw std::runtime_error("the end");
      const auto run = [&] {
        all.run([&](auto& me) {
          const auto mine = roost::detail::split_by_owner<false>(me, roost::detail::alone_as<u32>(keys), 0);
          me.agree();
          const roost::detail::in_use_by_others scope(me);
          if (me.number() == 2) throw std::runtime_error("the end");
          std::vector<roost::detail::piece> none(4);
          me.wait(me.exchange(none, none, 0));
        });
      };
      EXPECT_ANY_THROW(run());
      expect_error<roost::error>(run, {"rank " + std::to_string(all.number()) + " cannot go on"});
      throw std::runtime_error("the end");
    });
    for (const auto& each : thrown) EXPECT_THROW(std::rethrow_exception(each), std::runtime_error);
  }
}

TEST(rank_class, refuses_groups_that_there_are_not) {
  struct strange : roost::communicator {
    std::uint32_t number, count;
    strange(std::uint32_t n, std::uint32_t c) : number(n), count(c) {}
    std::uint32_t rank() const override { return number; }
    std::uint32_t size() const override { return count; }
    void all_gather(std::span<const std::byte>, std::span<std::byte>) override {}
    void exchange(std::span<const std::span<const std::byte>>,
                  std::span<const std::span<std::byte>>) override {}
  };
  strange none(0, 0), many(0, 65), beyond(3, 3);
  expect_error<roost::invalid_argument>([&] { roost::rank(none, test_place()); },
                                        {"roost::rank", "0 shards"});
  expect_error<roost::invalid_argument>([&] { roost::rank(many, test_place()); }, {"65 shards"});
  expect_error<roost::invalid_argument>([&] { roost::rank(beyond, test_place()); }, {"rank 3 of 3"});
}

/// Refuses the k-th allocation of one rank, for each k: every call throws on all ranks, changes nothing, and
/// works when it is made again.
TEST(rank_class, memory_that_is_refused) {
  watched_memory memory;
  // Copies of few keys, many keys, and so many of one that it is answered where it is queried.
  const auto numbers = from_numbers<u32>(multiples(9000, 3)), few = from_numbers<u32>(multiples(90, 7));
  auto skewed = from_numbers<u32>(skewed_numbers(60000, 5, 9000));
  for (u32& key : skewed) key *= 3;
  const auto run = [&](const rank_type& all) {
    const auto part = [&](const std::vector<u32>& whole) {  // as long on all ranks: split() gives rank 1 none
      const auto each = static_cast<std::ptrdiff_t>(whole.size() / all.size()), first = all.number() * each;
      return upload(std::vector<u32>(whole.begin() + first, whole.begin() + first + each));
    };
    const auto keys = part(numbers), others = part(few), crowd = part(skewed);
    map_type map(all, others, others);
    const map_type large(all, keys, keys);
    const set_type set(all, keys);
    multimap_type multimap(all, keys, keys);
    changing_type changing(all, 100, {.grows = true});
    const auto every_time = [&](const char* what, const auto& call) {
      SCOPED_TRACE(what);
      std::size_t good = 0;
      for (bool thrown = true; thrown; good += sanitized && good > 8 ? 5 : 1) {
        ASSERT_LT(good, 1000u);
        thrown = false;
        if (all.number() == 1) memory.refuse_after(good);
        try {
          call();
        } catch (const roost::out_of_memory&) {
          thrown = all.number() == 1;
          EXPECT_TRUE(thrown);
        } catch (const roost::rank_error& caught) {
          thrown = caught.rank() == 1 && all.number() != 1;
          EXPECT_TRUE(thrown) << caught.what();
        }
        if (all.number() == 1) memory.refuse_nothing();
        ASSERT_FALSE(all.broken()) << "the group is broken where allocation " << good << " is refused";
      }
      EXPECT_GT(good, 3u);
    };
    for (const auto* queries : {&keys, &crowd}) {
      auto results = filled<u32>(queries->size(), 0);
      auto found = filled<bool>(queries->size(), false);
      const std::vector<char> yes(queries->size(), 1);
      for (const path way : {path::automatic, path::regional}) {
        const roost::bulk_options how{.path = way};
        every_time("find", [&] { large.find(all, *queries, results, 1, how); });
        EXPECT_TRUE(download(results) == download(*queries));
        every_time("find with found", [&] { large.find(all, *queries, results, found, how); });
        EXPECT_TRUE(download(found) == yes);
        every_time("contains", [&] { set.contains(all, *queries, found, how); });
        EXPECT_TRUE(download(found) == yes);
        every_time("count_found", [&] { set.count_found(all, *queries, how); });
        every_time("count of a multimap", [&] { multimap.count(all, *queries, results, how); });
        EXPECT_TRUE(download(results) == std::vector<u32>(queries->size(), 1));
        every_time("contains of a multimap", [&] { multimap.contains(all, *queries, found, how); });
        EXPECT_TRUE(download(found) == yes);
        every_time("count_matches", [&] { multimap.count_matches(all, *queries, how); });
      }
    }
    every_time("find in parts", [&] {
      auto results = filled<u32>(crowd.size(), 0);
      large.find(all, crowd, results, 1, {.scratch_bytes_most = 1});
    });
    every_time("retrieve", [&] { multimap.retrieve(all, keys); });
    every_time("retrieve_pairs", [&] { multimap.retrieve_pairs(all, keys); });
    every_time("inner_join", [&] { roost::inner_join(all, keys, others); });
    every_time("unique", [&] { roost::unique(all, keys); });
    every_time("index", [&] { roost::sharded_index(all, keys).indices(0); });
    every_time("group_by", [&] { roost::group_by(all, keys, keys, roost::plus()); });
    every_time("insert", [&] { changing.insert_or_assign(all, keys, keys); });
    every_time("find in a changing map", [&] {
      auto results = filled<u32>(keys.size(), 0);
      changing.find(all, keys, results, 1);
      EXPECT_TRUE(download(results) == download(keys));
    });
    every_time("erase", [&] { changing.erase(all, keys); });
    EXPECT_TRUE(large.valid(all) && multimap.valid(all) && changing.valid(all));
    every_time("rebuild of a multimap", [&] { multimap = multimap_type(all, keys, keys); });
    every_time("rebuild", [&] {
      EXPECT_EQ(map.size(), 90u);
      map.rebuild(all, keys, keys);
    });
    auto results = filled<u32>(keys.size(), 0);
    map.find(all, keys, results, 1);
    EXPECT_TRUE(download(results) == download(keys));
  };
  on_ranks(3, run, make_place(memory));
  EXPECT_EQ(memory.live_blocks(), 0u);
}

}  // namespace
}  // namespace test
