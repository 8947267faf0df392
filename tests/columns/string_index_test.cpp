#include <deque>
#include <random>
#include <roost/columns/string_index.hpp>
#include <string>
#include <unordered_map>

#include "support/keys.hpp"
#include "support/place.hpp"

// string_index against a map of the standard library, and with hash functions that confuse texts.

namespace test {
namespace {

std::vector<std::string> some_texts(std::size_t n, std::size_t different) {
  std::vector<std::string> texts;
  std::mt19937 random(7);
  for (std::size_t i = 0; i < n; ++i) {
    const auto which = random() % different;
    texts.push_back(which == 0 ? "" : std::string(which % 40, 'x') + '\0' + std::to_string(which));
  }
  return texts;
}

template <class Index, class Texts>
void expect_right(const roost::host& cpu, const Index& index, const Texts& texts) {
  std::unordered_map<std::string_view, u32> numbers;
  std::vector<u32> first;
  std::vector<u64> counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto [at, is_new] = numbers.emplace(texts[i], static_cast<u32>(numbers.size()));
    if (is_new) first.push_back(static_cast<u32>(i)), counts.push_back(0);
    ++counts[at->second];
    ASSERT_EQ(index.indices()[i], at->second);
    ASSERT_EQ(index.find(texts[i]).value_or(~0u), at->second);
    ASSERT_EQ(index[at->second], texts[i]);
  }
  ASSERT_EQ(index.size(), numbers.size());
  EXPECT_TRUE(std::ranges::equal(index.first(), first));
  EXPECT_TRUE(std::ranges::equal(index.counts(), counts));
  EXPECT_TRUE(index.valid(cpu));
}

TEST(string_index, numbers_texts_as_the_standard_library_does) {
  const roost::host cpu;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
    const auto texts = some_texts(n, 700);
    const roost::string_index index(cpu, texts);
    EXPECT_EQ(index.seed(), 0u);
    expect_right(cpu, index, texts);
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    expect_right(cpu, roost::string_index(cpu, views), views);
    const std::deque<const char*> pointers{"rook", "crow", "rook"};
    EXPECT_EQ(roost::string_index(cpu, pointers).size(), 2u);

    EXPECT_FALSE(index.contains("absent"));
    const std::vector<std::string> queries{"absent", n == 0 ? "rook" : texts[0]};
    std::vector<u32> results(2);
    index.find(cpu, queries, results);
    EXPECT_EQ(results[0], index.no_index);
    EXPECT_EQ(results[1], n == 0 ? index.no_index : 0);
    index.find(cpu, queries, results, 7);
    EXPECT_EQ(results[0], 7u);
    EXPECT_THROW(index.find(cpu, queries, std::span(results).first(1)), roost::invalid_argument);
  }
}

/// Tells texts apart by their lengths and first bytes up to a seed, and in earnest from there.
struct confusing_hash {
  std::uint64_t until;
  roost::string_key operator()(std::string_view text, std::uint64_t seed) const {
    if (seed >= until) return roost::string_hash()(text, seed);
    return {text.size(), seed};
  }
};

TEST(string_index, takes_another_seed_until_no_texts_are_confused) {
  const roost::host cpu;
  const auto texts = some_texts(3000, 500);
  const roost::string_index index(cpu, texts, confusing_hash{3});
  EXPECT_EQ(index.seed(), 3u);
  expect_right(cpu, index, texts);
  EXPECT_THROW(roost::string_index(cpu, texts, confusing_hash{16}), roost::build_error);
}

TEST(string_index, compares_what_a_lookup_finds) {
  const roost::host cpu;
  const std::vector<std::string> texts{"a", "bb", "a"};  // of different lengths, so that none is confused
  const roost::string_index index(cpu, texts, confusing_hash{16});
  EXPECT_EQ(index.seed(), 0u);
  expect_right(cpu, index, texts);
  EXPECT_FALSE(index.contains("b"));
  EXPECT_FALSE(index.contains("ba"));
  EXPECT_FALSE(index.contains("ccc"));
}

}  // namespace
}  // namespace test
