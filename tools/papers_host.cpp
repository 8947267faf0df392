#include "papers.hpp"

void roost::bench::reproduce_host(const reproduction& options) { reproduce_on(host(options.threads), options); }
