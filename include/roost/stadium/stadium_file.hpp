#pragma once

#include "roost/stadium/detail/file.hpp"
#include "roost/stadium/stadium_map.hpp"

/// \file
/// Saves a stadium_map to a file and loads it: built once, loaded many times, on either place. Needs the
/// header xxhash.h.

namespace roost {

/// Writes a map to a file: tickets and bodies in their layout in memory, with a checksum for every 16 MiB.
/// The data are first written to FILE.partial, so there must be room for both files. FILE keeps its previous
/// contents until all new data are on the disk, whatever happens meanwhile. A replaced file keeps its
/// permissions. `types`: a description of the types of keys and values, in your words, on one line; the file
/// stores it. Must not overlap with changes of the map. Synchronises. Throws file_error; the map and the file
/// are then unchanged.
template <class Key, class Value, class Place>
void save(const Place& place, const stadium_map<Key, Value, Place>& map, const std::filesystem::path& file,
          std::string_view types = {}) {
  detail::stadium_file<Key, Value, Place>::save(place, map, file, types);
}

/// Loads a map that save() has written, on any place. Key and Value must be the types that were saved. Their
/// sizes are checked, and so is `types`, unless it is empty in the file or here; it is then set to that of
/// the file. The byte order must be that of this machine. `bodies` and `budget` are as in stadium_options;
/// the other options are those of the saved map. Synchronises. Throws file_error for a file that does not
/// exist, is not a saved map, has other types, is truncated or damaged, or is modified while being read.
/// Throws out_of_memory.
template <class Key, class Value, class Place>
stadium_map<Key, Value, Place> load_stadium_map(const Place& place, const std::filesystem::path& file,
                                                residence bodies = residence::automatic,
                                                std::size_t budget = ~std::size_t{0},
                                                std::string* types = nullptr) {
  return detail::stadium_file<Key, Value, Place>::load(place, file, bodies, budget, types);
}

}  // namespace roost
