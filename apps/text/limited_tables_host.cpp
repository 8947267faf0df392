#include "limited_tables.hpp"

void roost::tools::use_limited_tables_on_host(int threads, const table_limits& limits,
                                              const use_tables_with& use) {
  use(limited_tables(threads, host(threads), limits));
}
