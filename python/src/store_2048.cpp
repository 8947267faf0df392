#include "bind.hpp"
#include "store_of.hpp"

// Stores of values of 2048 bytes.

template struct roost::python::stores<ROOST_PYTHON_PLACE, 2048>;
