#pragma once

/// \file
/// Includes all public headers of roost except those that need other libraries: roost/sorted_map.hpp (CUB's
/// device-wide sort, which takes longer to compile than all the rest), and roost/string_index.hpp,
/// roost/file.hpp, roost/stadium/stadium_file.hpp and roost/shards/sharded_file.hpp (xxHash). The header of
/// kernel_map includes CUB's block-wide sort.

#include "roost/block_map.hpp"
#include "roost/bulk.hpp"
#include "roost/concurrent_map.hpp"
#include "roost/concurrent_options.hpp"
#include "roost/concurrent_set.hpp"
#include "roost/error.hpp"
#include "roost/frozen_map.hpp"
#include "roost/frozen_multimap.hpp"
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
#include "roost/shards/gpus.hpp"
#include "roost/shards/rank.hpp"
#include "roost/shards/sharded_concurrent_map.hpp"
#include "roost/shards/sharded_index.hpp"
#include "roost/shards/sharded_join.hpp"
#include "roost/shards/sharded_map.hpp"
#include "roost/shards/sharded_multimap.hpp"
#include "roost/shards/sharded_set.hpp"
#include "roost/shards/sharded_table.hpp"
#include "roost/shards/shards.hpp"
#include "roost/sparse/coordinate_index.hpp"
#include "roost/sparse/kernel_map.hpp"
#include "roost/sparse/sparse_conv.hpp"
#include "roost/stadium/stadium_map.hpp"
#include "roost/two_way_index.hpp"
