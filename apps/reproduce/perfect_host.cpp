#include "perfect.hpp"

void roost::bench::measure_perfect_host(const settings& options) {
  poisoned_memory<host> memory{host()};
  measure_perfect(host(options.threads, &memory), options);
}

void roost::bench::reproduce_perfect_host(const reproduction& options) {
  poisoned_memory<host> memory{host()};
  reproduce_perfect(host(options.threads, &memory), options);
}
