#pragma once

#include <string>

#include "apps/measure/report.hpp"

/// Reports the document on submanifold convolution on a place, `host` or `cuda`: its table in bulk, compared
/// with the same on one core and with coordinate_index and kernel_map, and its defects. Throws roost::error
/// if answers are wrong.
void reproduce_sparse(const roost::bench::reproduction& options, const std::string& place);
