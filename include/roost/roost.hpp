#pragma once

/// \file
/// All public pages of roost but those that bring other libraries along: roost/sorted_map.hpp (CUB's sort of
/// a device, which takes longer to compile than the rest), and roost/string_index.hpp, roost/stadium_file.hpp
/// and roost/sharded_file.hpp (xxHash). The page of kernel_map includes CUB's sort of a block.

#include "roost/block_map.hpp"
#include "roost/bulk.hpp"
#include "roost/concurrent_map.hpp"
#include "roost/concurrent_set.hpp"
#include "roost/coordinate_index.hpp"
#include "roost/error.hpp"
#include "roost/frozen_map.hpp"
#include "roost/frozen_multimap.hpp"
#include "roost/frozen_set.hpp"
#include "roost/functional.hpp"
#include "roost/gpus.hpp"
#include "roost/group_by.hpp"
#include "roost/hash.hpp"
#include "roost/join.hpp"
#include "roost/kernel_map.hpp"
#include "roost/operation.hpp"
#include "roost/partition.hpp"
#include "roost/place.hpp"
#include "roost/rank.hpp"
#include "roost/sharded_concurrent_map.hpp"
#include "roost/sharded_index.hpp"
#include "roost/sharded_join.hpp"
#include "roost/sharded_map.hpp"
#include "roost/sharded_multimap.hpp"
#include "roost/sharded_set.hpp"
#include "roost/shards.hpp"
#include "roost/sparse_conv.hpp"
#include "roost/stadium_map.hpp"
#include "roost/two_way_index.hpp"
