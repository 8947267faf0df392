// says: are an address: hash what lies there to a key of fixed size
#include <roost/stadium/stadium_map.hpp>

roost::stadium_map<std::span<const int>, int> map{roost::host()};
