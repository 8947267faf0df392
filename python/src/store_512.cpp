#include "bind.hpp"
#include "store_of.hpp"

// Stores of values of 512 and 1024 bytes.

template struct roost::python::stores<ROOST_PYTHON_PLACE, 512, 1024>;
