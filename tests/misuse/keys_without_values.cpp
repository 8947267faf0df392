// says: ^[^ ]*: error: [^;]* deleted [^;]*give.keys.and.values,?.or.a.range.of.pairs
#include <roost/roost.hpp>

roost::frozen_map map(roost::host(), std::vector<int>(1));
roost::frozen_multimap<int, int> multimap(roost::host(), std::vector<int>(1));
