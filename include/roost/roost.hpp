#pragma once

/// \file
/// Includes the pages of the core, except those that need other libraries: roost/sorted_map.hpp (CUB's
/// device-wide sort, which takes longer to compile than all the rest), and roost/file.hpp (xxHash). Include
/// the pages of roost/columns/, roost/ordered/, roost/stadium/, roost/sparse/, roost/embedding/, roost/ids/,
/// roost/shards/ and roost/out_of_core/ by name.

#include "roost/block_map.hpp"
#include "roost/bulk.hpp"
#include "roost/concurrent_map.hpp"
#include "roost/concurrent_options.hpp"
#include "roost/concurrent_set.hpp"
#include "roost/error.hpp"
#include "roost/frozen_map.hpp"
#include "roost/frozen_multimap.hpp"
#include "roost/frozen_options.hpp"
#include "roost/frozen_set.hpp"
#include "roost/functional.hpp"
#include "roost/group_by.hpp"
#include "roost/hash.hpp"
#include "roost/join.hpp"
#include "roost/kernels.hpp"
#include "roost/lanes.hpp"
#include "roost/operation.hpp"
#include "roost/partition.hpp"
#include "roost/place.hpp"
#include "roost/two_way_index.hpp"
