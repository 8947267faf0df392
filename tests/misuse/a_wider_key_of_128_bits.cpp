// says: error: [^;]*this.number.could.become.another.key.*convert.it.to.the.key.type.first
#include <roost/roost.hpp>

__extension__ typedef __int128 wide;
bool there(const roost::concurrent_map<std::uint64_t, int>& map, wide key) { return map.ref().contains(key); }
