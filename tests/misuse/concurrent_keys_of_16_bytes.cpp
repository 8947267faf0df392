// says: a roost::stadium_map takes any
#include <array>
#include <roost/roost.hpp>

roost::concurrent_set<std::array<int, 4>> set{roost::host()};
