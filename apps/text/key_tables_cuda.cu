#include "apps/shared/cuda_stream.hpp"
#include "key_tables.hpp"

void roost::tools::use_tables_on_cuda(const std::function<void(const key_tables&)>& use) {
  const owned_stream stream;
  use(tables_of(cuda(stream.get())));
}
