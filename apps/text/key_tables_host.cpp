#include "key_tables.hpp"

void roost::tools::use_tables_on_host(int threads, const use_tables_with& use) {
  use(tables_of(host(threads)));
}
