#include "bind.hpp"
#include "store_of.hpp"

// Stores of values of 128 and 256 bytes.

template struct roost::python::stores<ROOST_PYTHON_PLACE, 128, 256>;
