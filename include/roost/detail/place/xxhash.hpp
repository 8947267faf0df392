#pragma once

// xxHash, compiled where it is used.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#define XXH_NO_INLINE_HINTS 1  // which g++ -Og cannot follow, and refuses; as fast without
#endif
#include <xxhash.h>
