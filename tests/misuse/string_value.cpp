// says: values are copied byte by byte
#include <roost/stadium/stadium_map.hpp>
#include <string>

roost::stadium_map<int, std::string> map{roost::host()};
