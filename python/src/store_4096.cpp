#include "bind.hpp"
#include "store_of.hpp"

// Stores of values of 4096 bytes.

template struct roost::python::stores<ROOST_PYTHON_PLACE, 4096>;
