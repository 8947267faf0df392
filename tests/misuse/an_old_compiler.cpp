// says: roost needs g\+\+ 12 or newer, or clang 16 or newer
#undef __GNUC__
#define __GNUC__ 11
#undef __clang_major__
#define __clang_major__ 15
#include <roost/detail/place/config.hpp>
