#include "apps/shared/cuda_stream.hpp"
#include "document_defects.hpp"
#include "sparse.hpp"

void roost::bench::measure_voxels_cuda(const settings& options, const std::string& name,
                                       const cloud& voxels) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  const cuda place(stream.get(), &memory);
  sparse_measurement(place, options, name, voxels).run();
}

void roost::bench::measure_sparse_cuda(const settings& options) {
  const owned_stream stream;
  poisoned_memory<cuda> memory(cuda(stream.get()));
  const cuda place(stream.get(), &memory);
  for (const int log2n : options.log2n) measure_sparse(place, options, std::size_t{1} << log2n);
}

roost::bench::report_table roost::bench::document_defects_cuda() {
  const owned_stream stream;
  return document_defects(cuda(stream.get()));
}
