#pragma once

#include "cuda_stream.hpp"
#include "all.hpp"

namespace roost::bench {

template <class Key, class Value>
void measure_cuda_types(const settings& options) {
  const owned_stream stream;
  measure_all<cuda, Key, Value>(cuda(stream.get()), options);
}

}  // namespace roost::bench
