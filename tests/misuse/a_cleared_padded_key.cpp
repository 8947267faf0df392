// says: a key has padding, which copies do not keep
#include <roost/roost.hpp>

struct padded {
  int number;
  char letter;
};
template <>
inline constexpr bool roost::is_bitwise_comparable<padded> = true;
roost::concurrent_set<padded> set{roost::host()};
