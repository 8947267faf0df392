// says: place_comes_first
#include <roost/roost.hpp>

const std::vector<int> keys{1, 2}, values{3, 4};
roost::frozen_map map(keys, values, roost::host());
