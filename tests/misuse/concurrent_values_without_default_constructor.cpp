// says: give the type a default constructor and no const members
#include <roost/concurrent_map.hpp>

struct price {
  explicit price(int euros) : cents(100 * euros) {}
  int cents;
};

void insert(roost::concurrent_map<int, price>& map, const std::vector<int>& keys,
            const std::vector<price>& values) {
  map.insert(roost::host(), keys, values);
}
