// says: keys are compared by their bytes: use a type without padding
#include <roost/stadium/stadium_map.hpp>

struct padded {
  char letter;
  int number;
};
roost::stadium_map<padded, int> map{roost::host()};
