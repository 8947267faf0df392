// How often each word of a text comes, in the order in which words come first. A word becomes a key
// of 16 bytes by a hash. Two words with the same hash are not to be expected, but nothing forbids
// them: if it matters compare the words, as is done here and by `roost unique`, which then takes
// another seed.
#include <cstdint>
#include <cstdio>
#include <map>
#include <roost/roost.hpp>
#include <sstream>
#include <string>
#include <vector>

struct word_key {
  std::uint64_t low, high;
};

word_key key_of(const std::string& word, std::uint64_t seed) {
  word_key key{seed, ~seed};
  for (const char c : word) {  // one byte at a time: simple, and no fast hash
    key.low = roost::mix64(key.low + static_cast<unsigned char>(c));
    key.high = roost::mix64(key.high ^ static_cast<unsigned char>(c), 1);
  }
  return key;
}

int main() {
  std::istringstream text(
      "the rooks come back to the elms in march and by the end of the month the elms are full of "
      "rooks and the rooks are full of talk");
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);

  roost::host cpu;
  const roost::computed keys(words.size(), [&](std::size_t i) { return key_of(words[i], 0); });
  const roost::two_way_index index(cpu, keys);
  const std::size_t different = roost::unique_count(cpu, keys);  // if that is all you want to know

  std::vector<std::size_t> first;  // where the word of each index comes first: in order, as indices are
  std::size_t confused = 0;        // different words with equal hashes
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t word = index.indices()[i];
    if (word == first.size()) first.push_back(i);
    confused += words[i] != words[first[word]];
  }
  for (std::size_t w = 0; w < index.size(); ++w) {
    std::printf("%3llu %s\n", static_cast<unsigned long long>(index.counts()[w]), words[first[w]].c_str());
  }

  std::map<std::string, std::uint64_t> expected;
  for (const auto& word : words) ++expected[word];
  bool right = confused == 0 && index.size() == expected.size() && different == index.size() &&
               words[first[1]] == "rooks";
  for (std::size_t w = 0; w < index.size(); ++w) {
    right = right && index.counts()[w] == expected[words[first[w]]];
  }
  std::puts(right ? "words: right" : "words: wrong answers");
  return right ? 0 : 1;
}
