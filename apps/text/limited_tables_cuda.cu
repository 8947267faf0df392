#include "apps/shared/cuda_stream.hpp"
#include "limited_tables.hpp"

void roost::tools::use_limited_tables_on_cuda(int threads, const table_limits& limits,
                                              const use_tables_with& use) {
  const owned_stream stream;
  use(limited_tables(threads, cuda(stream.get()), limits));
}

std::size_t roost::tools::cuda_bytes_free() {
  std::size_t left = 0, all = 0;
  kernels::check(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
  return left;
}
