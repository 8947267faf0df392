// says: give the type a default constructor and no const members
#include <roost/stadium/stadium_map.hpp>

struct order {
  const int number;
};
roost::stadium_map<int, order> map{roost::host()};
