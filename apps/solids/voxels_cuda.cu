#include "apps/shared/cuda_stream.hpp"
#include "voxels_measure.hpp"

void roost::tools::measure_on_cuda(const voxel_keys& keys, const voxel_run& run) {
  const owned_stream stream;
  measure_tables(cuda(stream.get()), keys, run);
}
