// How often each word of a text comes, in the order in which words come first.
#include <cstdint>
#include <cstdio>
#include <map>
#include <roost/columns/string_index.hpp>
#include <sstream>
#include <string>
#include <vector>

int main() {
  std::istringstream text(
      "the rooks come back to the elms in march and by the end of the month the elms "
      "are full of "
      "rooks and the rooks are full of talk");
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);

  roost::host cpu;
  const roost::string_index index(cpu, words);  // the words must stay where they are
  for (std::uint32_t w = 0; w < index.size(); ++w) {
    const std::string word(index[w]);
    std::printf("%3llu %s\n", static_cast<unsigned long long>(index.counts()[w]),
                word.c_str());
  }
  std::uint64_t of_rooks = 0;
  if (auto number = index.find("rooks")) of_rooks = index.counts()[*number];

  std::map<std::string, std::uint64_t> expected;
  for (const auto& word : words) ++expected[word];
  bool right = index.size() == expected.size() && index[1] == "rooks" &&
               of_rooks == 3 && !index.contains("crows") && index.valid(cpu);
  for (std::uint32_t w = 0; w < index.size(); ++w) {
    right = right && index.counts()[w] == expected[std::string(index[w])];
  }
  std::puts(right ? "words: right" : "words: wrong answers");
  return right ? 0 : 1;
}
