// says: roost needs CUDA 12.4 or newer
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 3
#include <roost/detail/place/config.hpp>
