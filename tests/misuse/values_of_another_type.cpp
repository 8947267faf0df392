// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>

void build(roost::frozen_map<int, float>& map, const std::vector<int>& keys,
           const std::vector<double>& values) {
  map.rebuild(roost::host(), keys, values);
}
