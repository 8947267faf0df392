// says: give the type a default constructor and no const members
#include <roost/frozen_map.hpp>

struct price {
  explicit price(int euros) : cents(100 * euros) {}
  int cents;
};

void build(const std::vector<int>& keys, const std::vector<price>& values) {
  const roost::frozen_map map(roost::host(), keys, values);
}
