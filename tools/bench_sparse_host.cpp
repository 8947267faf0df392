#include "sparse.hpp"

void roost::bench::measure_sparse_host(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  for (const int log2n : options.log2n) measure_sparse(place, options, std::size_t{1} << log2n);
}
