// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>

void ask(const roost::frozen_map<int, int>& map, const std::vector<long>& queries,
         std::vector<int>& results) {
  map.find(roost::host(), queries, results, 0);  // 2^32 + 1 would find 1
}
