// says: numbers of types whose every value the table.s type can hold
#include <roost/roost.hpp>
#include <roost/stadium/stadium_map.hpp>

void run(roost::stadium_map<int, int>& map, const std::vector<roost::operation<long, int>>& operations,
         std::vector<roost::operation_result<int>>& results) {
  map.run(roost::host(), operations, results);
}
