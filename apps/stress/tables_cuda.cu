#include "apps/shared/cuda_stream.hpp"
#include "tables_on.hpp"

namespace roost::stress {

table_pointer table_on_cuda(const history& of, const setting& in) {
  static refusing_device_memory memory;
  static const owned_stream streams[5];
  const auto make_shards = [](std::size_t n) {
    std::vector<cuda> places;
    for (std::size_t s = 0; s < n; ++s) places.emplace_back(streams[s].get(), &memory);
    return gpus(places);
  };
  const surroundings<cuda, gpus> around{cuda(streams[0].get(), &memory), cuda(streams[4].get()), memory,
                                        make_shards};
  expect(memory.live() == 0, "the table before this one has kept memory");
  return make_table(around, of, in);
}

}  // namespace roost::stress
