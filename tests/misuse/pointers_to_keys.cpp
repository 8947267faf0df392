// says: a pointer does not tell how many elements there are: pass std::span
#include <roost/frozen_map.hpp>

void ask(const roost::frozen_map<int, int>& map, const int* keys, std::vector<int>& results) {
  map.find(roost::host(), keys, results, 0);
}
