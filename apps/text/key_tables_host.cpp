#include "key_tables.hpp"

void roost::tools::use_tables_on_host(int threads, const std::function<void(const key_tables&)>& use) {
  use(tables_of(host(threads)));
}
