// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>

std::size_t count(const roost::frozen_set<unsigned>& set, const std::vector<int>& queries) {
  return set.count_found(roost::host(), queries);  // -1 would find 2^32 - 1
}
