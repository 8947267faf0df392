// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>

void insert(roost::concurrent_map<int, int>& map, const std::vector<long>& keys,
            const std::vector<int>& values) {
  map.insert(roost::host(), keys, values);
}
