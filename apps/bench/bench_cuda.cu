#include "apps/measure/run.hpp"

void roost::bench::measure_cuda(const settings& options) {
  measure_sparse_cuda(options);
  measure_perfect_cuda(options);
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
#if ROOST_ONLY_CHECKED
  if (options.value_bits != options.key_bits && (options.value_bits != 0 || options.key_bits != 32))
    throw error("this roost was built to be checked: it has keys of 32 and 64 bits with values like them");
  options.value_bits == 0    ? measure_cuda_types<u32, none>(options)
  : options.value_bits == 32 ? measure_cuda_types<u32, u32>(options)
                             : measure_cuda_types<u64, u64>(options);
#else
  if (options.key_bits == 32) {
    options.value_bits == 0    ? measure_cuda_types<u32, none>(options)
    : options.value_bits == 32 ? measure_cuda_types<u32, u32>(options)
                               : measure_cuda_types<u32, u64>(options);
  } else {
    options.value_bits == 0    ? measure_cuda_types<u64, none>(options)
    : options.value_bits == 32 ? measure_cuda_types<u64, u32>(options)
                               : measure_cuda_types<u64, u64>(options);
  }
#endif
}
