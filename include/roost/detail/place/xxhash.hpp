#pragma once

// xxHash, compiled where it is used.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#define XXH_NO_INLINE_HINTS 1  // which g++ -Og cannot follow, and refuses; as fast without
#endif
#if defined(__has_include)
#if !__has_include(<xxhash.h>)
#error "roost needs xxHash: install it (Debian: apt-get install libxxhash-dev)"
#endif
#endif
#include <xxhash.h>
