#pragma once

#include <string>

#include "apps/measure/report.hpp"

/// Reports the measurements of Alcantara et al. 2009, section 6, on spatial hashing, on a place, `host` or
/// `cuda`: two animated surfaces that are hashed, intersected and filled anew in each frame, by the paper's
/// method and as columns. Throws roost::error if the volumes of the results do not add up.
void reproduce_solids(const roost::bench::reproduction& options, const std::string& place);
