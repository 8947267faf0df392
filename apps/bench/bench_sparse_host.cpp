#include "document_defects.hpp"
#include "sparse.hpp"

void roost::bench::measure_voxels_host(const settings& options, const std::string& name,
                                       const cloud& voxels) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  sparse_measurement(place, options, name, voxels).run();
}

void roost::bench::measure_sparse_host(const settings& options) {
  poisoned_memory<host> memory{host()};
  const host place(options.threads, &memory);
  for (const int log2n : options.log2n) measure_sparse(place, options, std::size_t{1} << log2n);
}

roost::bench::report_table roost::bench::document_defects_host(const reproduction& options) {
  return document_defects(host(options.threads));
}
