// says: are an address: hash what lies there to a key of fixed size
#include <roost/frozen_map.hpp>

// Equal texts at other addresses would not be found.
roost::frozen_map<const char*, int> build(const std::vector<const char*>& names,
                                          const std::vector<int>& values) {
  return {roost::host(), names, values};
}
