#pragma once

#include <cstring>

#include "roost/detail/place/config.hpp"

#if defined(__SSE2__) && !ROOST_ASAN && !ROOST_TSAN
#define ROOST_PAST_CACHE 1
#include <emmintrin.h>
#else
#define ROOST_PAST_CACHE 0
#endif

// Writes to memory that is not read again soon. On a host they bypass the cache, so that the old content is
// not fetched first; elsewhere, and under sanitizers, they are ordinary writes.

namespace roost::detail {

/// Call this before other threads read what was written.
ROOST_FN void past_cache_done() {
#if ROOST_PAST_CACHE && !ROOST_ON_DEVICE
  _mm_sfence();
#endif
}

/// Writes one of many adjacent elements, which together fill cache lines.
template <class T>
ROOST_FN void write_past_cache(T* target, const T& value) {
  static_assert(alignof(T) % 16 == 0);
#if ROOST_PAST_CACHE && !ROOST_ON_DEVICE
  for (std::size_t i = 0; i < sizeof(T) / 16; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(target) + i,
                     _mm_load_si128(reinterpret_cast<const __m128i*>(&value) + i));
  }
#else
  *target = value;
#endif
}

/// Copies bytes. Only whole cache lines bypass the cache, since a line that is shared with other data is
/// written again soon.
ROOST_FN void copy_past_cache(void* target_bytes, const void* source_bytes, std::size_t bytes) {
  if (bytes == 0) return;  // pointers may be null
  auto* target = static_cast<char*>(target_bytes);
  auto* source = static_cast<const char*>(source_bytes);
#if ROOST_PAST_CACHE && !ROOST_ON_DEVICE
  constexpr std::size_t line = 64;
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(target) % line) % line;
  if (head + line <= bytes) {
    memcpy(target, source, head);
    target += head, source += head, bytes -= head;
    for (; bytes >= line; target += line, source += line, bytes -= line) {
      for (std::size_t i = 0; i < line; i += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
      }
    }
  }
#endif
  memcpy(target, source, bytes);
}

}  // namespace roost::detail
