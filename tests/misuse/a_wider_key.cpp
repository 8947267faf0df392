// says: error: [^;]*this.number.could.become.another.key.*convert.it.to.the.key.type.first
#include <roost/roost.hpp>

bool erase(const roost::concurrent_map<int, int>::ref_type& map, long key) { return map.erase(key); }
