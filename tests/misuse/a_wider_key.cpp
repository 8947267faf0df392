// says: convert_the_key_first
#include <roost/roost.hpp>

bool erase(const roost::concurrent_map<int, int>::ref_type& map, long key) { return map.erase(key); }
