#include "papers.hpp"

void roost::bench::reproduce_host(const reproduction& options) {
  poisoned_memory<host> memory{host()};
  reproduce_on(host(options.threads, &memory), options);
}
