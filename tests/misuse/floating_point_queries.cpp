// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>

void erase(roost::concurrent_map<int, int>& map, const std::vector<double>& queries) {
  map.erase(roost::host(), queries);  // 1.7 would erase 1
}
