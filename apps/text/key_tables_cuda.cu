#include "apps/shared/cuda_stream.hpp"
#include "key_tables.hpp"

void roost::tools::use_tables_on_cuda(const use_tables_with& use) {
  const owned_stream stream;
  use(tables_of(cuda(stream.get())));
}
