#include <fstream>
#include <functional>
#include <roost/detail/groups/choose.hpp>
#include <sstream>

#include "support/place.hpp"

// The steps that detail/groups/choose.hpp chooses for a grid of facts, against choices.txt. The choices of
// both places are made on the host.

#ifndef __CUDACC__
namespace test {
namespace {

using namespace roost::detail;

using lines = std::ostringstream;

constexpr std::size_t sizes[] = {
    1,       1 << 10,       1 << 14,       (1 << 15) - 1, 1 << 15, (1 << 17) - 1, 1 << 17,       1 << 18,
    1 << 20, (1 << 23) - 1, (1 << 23) + 1, 1 << 26,       1 << 29, batch_most,    batch_most + 1};

std::string size_name(std::size_t n) {
  for (const std::size_t power : {n - 1, n, n + 1}) {
    if (!std::has_single_bit(power)) continue;
    const char* const rest = power == n ? "" : power < n ? "+1" : "-1";
    return "2^" + std::to_string(std::countr_zero(power)) + rest;
  }
  return n == batch_most ? "2^32-2" : std::to_string(n);
}

batch_facts batch_of(bool host, std::size_t rows, std::size_t key_bytes = 4, bool integers = true) {
  batch_facts batch;
  batch.rows = rows;
  batch.on_host = host;
  batch.threads = 2;
  batch.key_bytes = key_bytes;
  batch.integers = integers;
  return batch;
}

struct seen {
  const char* name;
  sample_facts facts;
};
constexpr seen samples[] = {{"no copy", {0, 0, 0}},
                            {"a few copies", {3, 3, 0}},
                            {"many copies", {2000, 9000, 0}},
                            {"frequent keys", {4000, 100, 20}}};

/// One line for each size and place: the words that steps() gives, without the lines that repeat the last
/// ones.
void each_size(lines& out, const std::string& title, const std::function<std::string(batch_facts)>& steps) {
  for (const bool host : {true, false}) {
    std::string last;
    for (const std::size_t n : sizes) {
      const std::string now = steps(batch_of(host, n));
      if (now != last)
        out << title << (host ? ", host, " : ", cuda, ") << size_name(n) << ": " << now << "\n";
      last = now;
    }
  }
}

void few_groups(lines& out) {
  each_size(out, "few groups", [](const batch_facts& batch) {
    return looks_for_few(batch) ? "direct below " + std::to_string(direct_range_most(batch)) : "no";
  });
  for (const std::size_t n : {std::size_t{1} << 17, std::size_t{1} << 20, std::size_t{1} << 24}) {
    const std::size_t most = few_groups_most(n);
    out << "few groups of " << size_name(n) << " rows: at most " << most << ", a sample of "
        << few_sample::rows(n);
    for (const std::size_t groups : {std::size_t{100}, few_groups_always, few_groups_always + 1, most}) {
      out << "; " << groups << " in chunks (1, 2, 8, 64 threads)";
      for (const std::size_t threads : {1, 2, 8, 64}) {
        batch_facts batch = batch_of(true, n);
        batch.threads = threads;
        out << " " << chunks_of_few(batch, groups);
      }
    }
    out << "\n";
  }
}

void group_by(lines& out) {
  const auto way = [](batch_facts batch, bool any_order) {
    std::string words;
    for (const char* separator = "";; separator = ", then ") {
      const group_by_step step = choose_group_by(batch, any_order);
      words += separator + std::string(std::vector{"few", "aggregate", "group"}[static_cast<int>(step)]);
      if (step == group_by_step::group || step == group_by_step::aggregate) return words;
      batch.tried.few = true;
    }
  };
  each_size(out, "group_by", [&](const batch_facts& batch) { return way(batch, true); });
  each_size(out, "group_by in order", [&](const batch_facts& batch) { return way(batch, false); });
  each_size(out, "group_by, 16-byte keys", [&](batch_facts batch) {
    batch.key_bytes = 16;
    return way(batch, true);
  });
}

/// The steps of a batch whose sample shows `sample`, if each attempt overflows.
std::string aggregation(batch_facts batch, const sample_facts& sample) {
  const table_room room{batch.on_host ? 30000.0 : 9000.0,
                        batch.on_host ? std::size_t{8192} : std::size_t{4096}};
  std::ostringstream words;
  for (const char* separator = "";; separator = ", ") {
    const aggregate_choice next = choose_aggregation(batch, room);
    words << separator;
    switch (next.step) {
      case aggregate_step::device_tables:
        words << "tables";
        batch.tried.tables = true;
        break;
      case aggregate_step::look:
        words << "look";
        batch.tried.look = true;
        break;
      case aggregate_step::sample:
        words << "sample";
        batch.sample = sample;
        batch.tried.slack = false;
        break;
      case aggregate_step::compare:
        words << "compare";
        batch.tried.compare = true;
        break;
      case aggregate_step::slack:
      case aggregate_step::exact: {
        const bool slack = next.step == aggregate_step::slack;
        words << (slack ? "slack " : "exact ") << next.coarse;
        if (next.fine_bits != 0) words << " x 2^" << next.fine_bits;
        if (next.counts_first) words << " counted";
        words << " (" << static_cast<std::size_t>(next.copies) << ")";
        (slack ? batch.tried.slack : batch.tried.exact) = true;
        break;
      }
      case aggregate_step::give_up:
        words << "group";
        return words.str();
    }
  }
}

std::string grouping(batch_facts batch, const sample_facts& sample) {
  std::string words;
  for (const char* separator = "";; separator = ", ") {
    const grouping_step step = choose_grouping(batch);
    words += separator + std::string(std::vector{"sample", "distinct", "slack", "exact",
                                                 "another seed"}[static_cast<int>(step)]);
    if (step == grouping_step::give_up) return words;
    if (step == grouping_step::sample) {
      batch.sample = sample;
      batch.tried.exact = false;
    }
    batch.tried.distinct |= step == grouping_step::distinct;
    batch.tried.slack |= step == grouping_step::slack;
    batch.tried.exact |= step == grouping_step::exact;
  }
}

std::string numbering(batch_facts batch, const sample_facts& sample, bool distinct) {
  std::string words;
  for (const char* separator = "";; separator = ", ") {
    const indexing_step step = choose_indexing(batch, distinct);
    words += separator +
             std::string(std::vector{"sample", "slack", "exact", "another seed"}[static_cast<int>(step)]);
    if (step == indexing_step::give_up) return words;
    if (step == indexing_step::sample) batch.sample = sample;
    batch.tried.slack |= step == indexing_step::slack;
    batch.tried.exact |= step == indexing_step::exact;
  }
}

void attempts(lines& out) {
  for (const seen& sample : samples) {
    const std::string title = std::string(", ") + sample.name;
    each_size(out, "aggregate" + title,
              [&](const batch_facts& batch) { return aggregation(batch, sample.facts); });
    each_size(out, "groups" + title, [&](const batch_facts& batch) { return grouping(batch, sample.facts); });
    each_size(out, "numbers" + title,
              [&](const batch_facts& batch) { return numbering(batch, sample.facts, false); });
  }
  each_size(out, "numbers of distinct keys",
            [&](const batch_facts& batch) { return numbering(batch, {}, true); });
  for (const std::uint32_t regions : {63, 64, 1023, 1024})
    each_size(out, std::to_string(regions) + " regions", [&](const batch_facts& batch) {
      return std::string(counts_few_regions(batch, regions) ? "count a few" : "mark");
    });
}

void unique(lines& out) {
  const auto way = [](batch_facts batch, const unique_facts& wanted, const sample_facts& sample) {
    std::string words;
    for (const char* separator = "";; separator = ", ") {
      const unique_step step = choose_unique(batch, wanted);
      const std::vector names{"few",       "aggregate",       "mark",  "sample", "sort",
                              "sort bits", "number and sort", "number"};
      words += separator + std::string(names[static_cast<int>(step)]);
      if (step == unique_step::few) {
        batch.tried.few = true;
      } else if (step == unique_step::aggregate) {
        batch.tried.tables = true;
      } else if (step == unique_step::sample) {
        batch.sample = sample;
      } else {
        return words;
      }
    }
  };
  const std::pair<const char*, unique_facts> requests[] = {
      {"in any order", {true, false, false, false}},
      {"by first", {true, true, false, true}},
      {"by key", {true, false, true, false}},
      {"by key with first", {true, true, true, false}},
      {"by key with inverse", {false, false, true, false}},
      {"by first with inverse", {false, false, false, true}}};
  for (const auto& [name, wanted] : requests) {
    for (const std::size_t bytes : {4, 8, 16}) {
      for (const int k : {0, 1, 2}) {
        const seen& sample = samples[k];
        const bool samples_it = (wanted.by_key || (wanted.keys_alone && !wanted.by_first)) && bytes <= 8;
        if (k != 0 && !samples_it) continue;
        const std::string title = "unique " + std::string(name) + ", " + std::to_string(bytes) + " bytes";
        each_size(out, samples_it ? title + ", " + sample.name : title, [&](batch_facts batch) {
          batch.key_bytes = bytes;
          batch.integers = bytes <= 8;
          return way(batch, wanted, sample.facts);
        });
      }
    }
  }
}

/// Whoever learns that a step cannot succeed asks for no other of its kind.
TEST(choose, gives_up_without_hope) {
  for (const bool host : {true, false}) {
    batch_facts batch = batch_of(host, 1 << 20);
    batch.hopeless = true;
    EXPECT_EQ(choose_aggregation(batch, {9000, 4096}).step, aggregate_step::give_up);
    EXPECT_EQ(choose_indexing(batch, false), indexing_step::give_up);
  }
}

/// Keys of a table and queries, where rates of both paths cross on one H200: docs/performance.md.
TEST(choose, lookups_by_region_where_that_is_faster) {
  using tuned = roost::detail::find_tuning<roost::cuda>;
  const auto by_region = [](double gib, int log2_queries, int sector_bytes) {
    return tuned::by_region(static_cast<std::size_t>(gib * 0x1p30), std::size_t{1} << log2_queries,
                            sector_bytes);
  };
  EXPECT_FALSE(by_region(0.08, 23, 32));
  EXPECT_TRUE(by_region(0.08, 25, 32));
  EXPECT_FALSE(by_region(0.31, 22, 32));
  EXPECT_TRUE(by_region(0.31, 24, 32));
  EXPECT_FALSE(by_region(2.5, 25, 32));
  EXPECT_TRUE(by_region(2.5, 26, 32));
  EXPECT_FALSE(by_region(20, 28, 32));
  EXPECT_FALSE(by_region(0.12, 25, 64));
  EXPECT_TRUE(by_region(0.12, 28, 64));
  EXPECT_TRUE(by_region(2, 23, 64));
  EXPECT_TRUE(by_region(0.08, 22, 0));
  EXPECT_FALSE(by_region(0.05, 30, 0));
}

TEST(choose, is_as_choices_txt_says) {
  lines out;
  few_groups(out);
  group_by(out);
  attempts(out);
  unique(out);
  for (const std::size_t n : sizes)
    out << "a set of " << size_name(n) << " integers: dense below " << dense_range_most(n) << "\n";
  for (const std::size_t n : sizes)
    out << "join, " << size_name(n) << ": " << join_sample::runs(n) << " runs\n";

  std::ostringstream expected;
  expected << std::ifstream(ROOST_TEST_CHOICES).rdbuf();
  if (out.str() == expected.str()) return;
  std::ofstream("choices.txt") << out.str();
  ADD_FAILURE() << "the choices have changed; if they were meant to, review the difference:\ndiff -u "
                << ROOST_TEST_CHOICES << " choices.txt && cp choices.txt " << ROOST_TEST_CHOICES;
}

}  // namespace
}  // namespace test
#endif
