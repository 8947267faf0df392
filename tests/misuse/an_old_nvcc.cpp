// says: roost needs CUDA 13.0 or newer
#define __CUDACC_VER_MAJOR__ 12
#include <roost/detail/place/config.hpp>
