#include "apps/shared/cuda_stream.hpp"
#include "perfect.hpp"

void roost::bench::measure_perfect_cuda(const settings& options) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  measure_perfect(cuda(stream.get(), &memory), options);
}

void roost::bench::reproduce_perfect_cuda(const reproduction& options) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  reproduce_perfect(cuda(stream.get(), &memory), options);
}
