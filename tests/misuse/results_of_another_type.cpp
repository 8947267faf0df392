// says: results must have exactly the element type that the table returns
#include <roost/roost.hpp>

void ask(const roost::concurrent_map<int, int>& map, const std::vector<int>& keys,
         std::vector<long>& results) {
  map.find(roost::host(), keys, results, 0);
}
