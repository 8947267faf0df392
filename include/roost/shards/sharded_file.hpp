#pragma once

#include "roost/shards/detail/file.hpp"
#include "roost/shards/sharded_map.hpp"
#include "roost/shards/sharded_set.hpp"

/// \file
/// Saves a sharded_map or a sharded_set to a folder and loads it, on any number of shards. Needs the header
/// xxhash.h.

namespace roost {

/// Writes a map to a folder, which is created if it does not exist: the pairs of each shard to a separate
/// file, with a checksum for every 16 MiB, and finally a manifest, `manifest.roost`. Until the manifest is on
/// the disk, the folder holds its previous table, whatever happens meanwhile; then the files of the previous
/// table are removed. A call that throws removes what it has written, including a folder that it created.
/// Several processes may save to one folder at the same time: it then holds the table whose manifest was
/// written last. Files left by a killed process are removed by the next call that saves there alone (where
/// the file system has locks). If shards are on several machines, all of them must see the folder. Takes
/// scratch memory of the pairs. Throws file_error, out_of_memory.
template <class Key, class Value, class Shards>
void save(const Shards& shards, const sharded_map<Key, Value, Shards>& map,
          const std::filesystem::path& folder) {
  detail::save_shards<Key, Value>(shards, map, folder);
}
/// The same for a set.
template <class Key, class Shards>
void save(const Shards& shards, const sharded_set<Key, Shards>& set, const std::filesystem::path& folder) {
  detail::save_shards<Key, none>(shards, set, folder);
}

/// Loads a map that save() has written, on any number of shards: it need not be the number that it was saved
/// with. The map is built again, with the load factor and the seed of the saved map. Key and Value must be
/// the types that were saved; their sizes are checked. The byte order must be that of this machine. Throws
/// file_error for a folder without a saved map, and for files that are missing, truncated or damaged, or
/// become so meanwhile; out_of_memory.
template <class Key, class Value, class Shards>
sharded_map<Key, Value, Shards> load_sharded_map(const Shards& shards, const std::filesystem::path& folder) {
  return detail::load_shards<Key, Value>(
      shards, folder, [&](const auto& head, const auto& keys, const auto& values) {
        return sharded_map<Key, Value, Shards>(shards, keys, values,
                                               {.load_factor = head.load_factor, .seed = head.seed});
      });
}
/// The same for a set.
template <class Key, class Shards>
sharded_set<Key, Shards> load_sharded_set(const Shards& shards, const std::filesystem::path& folder) {
  return detail::load_shards<Key, none>(shards, folder, [&](const auto& head, const auto& keys, const auto&) {
    return sharded_set<Key, Shards>(shards, keys, {.load_factor = head.load_factor, .seed = head.seed});
  });
}

}  // namespace roost
