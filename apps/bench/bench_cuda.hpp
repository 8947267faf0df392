#pragma once

#if ROOST_SMALL_TOOL
#include "few.hpp"
#else
#include "all.hpp"
#endif
#include "apps/shared/cuda_stream.hpp"

namespace roost::bench {

template <class Key, class Value>
void measure_cuda_types(const settings& options) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  measure_all<cuda, Key, Value>(cuda(stream.get(), &memory), options);
}

}  // namespace roost::bench
