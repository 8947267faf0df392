#include "apps/shared/cuda_stream.hpp"
#include "papers.hpp"

void roost::bench::reproduce_cuda(const reproduction& options) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  reproduce_on(cuda(stream.get(), &memory), options);
}
