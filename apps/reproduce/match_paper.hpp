#pragma once

#include <string>

#include "apps/measure/report.hpp"

/// Reports Table 1 and Figure 8 of Alcantara et al. 2009 on a place, `host` or `cuda`: a picture found in
/// another by geometric hashing, with a hash table and with a sorted list. Throws roost::error if their votes
/// differ.
void reproduce_matching(const roost::bench::reproduction& options, const std::string& place);
