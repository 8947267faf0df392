#include "bench_cuda.hpp"

template void roost::bench::measure_cuda_types<std::uint32_t, std::uint64_t>(const settings&);
