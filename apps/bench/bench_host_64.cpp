#include "bench_host.hpp"

template void roost::bench::measure_host_keys<std::uint64_t>(const settings&);
