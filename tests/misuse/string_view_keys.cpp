// says: are an address: hash what lies there to a key of fixed size
#include <roost/roost.hpp>

std::size_t count(const std::vector<std::string_view>& words) {
  return roost::unique_count(roost::host(), words);
}
