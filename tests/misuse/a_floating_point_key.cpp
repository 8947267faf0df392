// says: error: [^;]*this.number.could.become.another.key.*convert.it.to.the.key.type.first
#include <roost/roost.hpp>

bool there(const roost::frozen_set<int>& set) { return set.ref().contains(1.7); }
