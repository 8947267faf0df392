#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

/// \file
/// What `roost stress` does to a table: calls, all of which follow from a seed.

namespace roost::stress {

using numbers = std::vector<std::uint64_t>;

/// Random numbers, the same on every machine.
class draws {
 public:
  explicit draws(std::uint64_t seed) : generator_(seed) {}
  std::uint64_t any() { return generator_(); }
  std::uint64_t below(std::uint64_t n) { return generator_() % n; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::mt19937_64 generator_;
};

/// One call on a table.
struct call {
  std::string what;
  std::uint64_t count = 0;    ///< of keys
  std::uint64_t among = 0;    ///< of how many different keys these are drawn
  std::uint64_t seed = 0;     ///< of keys, values and options
  std::uint64_t refused = 0;  ///< 0: no allocation; 2 * n: the nth one; 2 * n + 1: that and all that follow
};

/// A table, and the calls on it in their order.
struct history {
  std::string kind;
  std::uint64_t seed = 0;  ///< of the table's options
  std::vector<call> calls;
};

/// The kinds of tables.
const std::vector<std::string>& all_kinds();

/// The history of a round, with a table of one of these kinds.
history draw_history(std::uint64_t seed, std::uint64_t round, const std::vector<std::string>& kinds);

/// A text like "map 17: insert 300 40 5 0; erase 3 40 6 0", and a history from it. Throws invalid_argument.
std::string text_of(const call& one);
std::string text_of(const history& all);
history read_history(const std::string& text);

/// The keys of a call: small numbers, and the same from the largest number down.
numbers keys_of(const call& one);

}  // namespace roost::stress
