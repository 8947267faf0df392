#include "bind.hpp"
#include "store_of.hpp"

// Stores of values of 8 to 64 bytes.

template struct roost::python::stores<ROOST_PYTHON_PLACE, 8, 16, 32, 64>;
