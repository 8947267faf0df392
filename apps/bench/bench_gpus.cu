#include "apps/shared/cuda_stream.hpp"
#include "roost/kernels.hpp"
#include "sharded.hpp"

namespace roost::bench {
namespace {

/// A stream of each device, and memory that is poisoned when it is freed.
class poisoned_gpus {
 public:
  explicit poisoned_gpus(int count) {
    const int devices = cuda_devices();
    if (count > devices) {
      throw invalid_argument("bench: --gpus " + std::to_string(count) + ", but " + std::to_string(devices) +
                             " CUDA devices can be used here");
    }
    for (int device = 0; device < count; ++device) {
      const kernels::device_guard guard(device);
      streams_.push_back(std::make_unique<owned_stream>());
      memory_.push_back(std::make_unique<poisoned_memory<cuda>>(cuda(streams_.back()->get())));
      places_.emplace_back(streams_.back()->get(), memory_.back().get());
    }
  }
  gpus all() const { return gpus(places_); }

 private:
  std::vector<std::unique_ptr<owned_stream>> streams_;
  std::vector<std::unique_ptr<poisoned_memory<cuda>>> memory_;
  std::vector<cuda> places_;
};

}  // namespace

void measure_gpus(const settings& options) {
  const poisoned_gpus places(options.shards);
  const gpus shards = places.all();
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  if (options.key_bits == 64) {
    measure_sharded<gpus, u64, u64>(shards, options);
  } else if (options.value_bits == 0) {
    measure_sharded<gpus, u32, none>(shards, options);
  } else {
    measure_sharded<gpus, u32, u32>(shards, options);
  }
}

}  // namespace roost::bench
