// says: convert_the_key_first
#include <roost/roost.hpp>

bool there(const roost::frozen_set<int>& set) { return set.ref().contains(1.7); }
