#include "voxels_measure.hpp"

void roost::tools::measure_on_host(const voxel_keys& keys, const voxel_run& run) {
  measure_tables(host(run.threads), keys, run);
}

void roost::tools::measure_std(const voxel_keys& keys, const voxel_run& run) {
  measure_table<bench::std_table<std::uint32_t, std::uint32_t>>(host(run.threads), keys, run);
}
