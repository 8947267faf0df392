// A map inside device code: its ref in a kernel of your own, and in a functor that
// for_each runs on either place. The map holds the filled voxels of a ball, and how
// heavy each one is.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

constexpr std::uint32_t side = 64;

__host__ __device__ std::uint32_t voxel(std::uint32_t x, std::uint32_t y,
                                        std::uint32_t z) {
  return (x * side + y) * side + z;
}

/// A kernel of your own: the ref is passed by value, as a pointer would be.
template <class Ref>
__global__ void add_weights(Ref map, std::uint32_t voxels, unsigned long long* sum) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= voxels) return;
  if (auto weight = map.find(i)) atomicAdd(sum, *weight);
}

/// For both places: how many of a voxel's six faces touch an empty voxel.
template <class Ref>
struct count_free_faces {
  Ref map;
  const std::uint32_t* voxels;
  std::uint32_t* faces;

  __host__ __device__ void operator()(std::size_t i) const {
    const std::uint32_t v = voxels[i];
    const std::uint32_t steps[] = {1, side, side * side};
    faces[i] = 0;
    for (const std::uint32_t step : steps) {
      faces[i] += !map.contains(v + step) + !map.contains(v - step);
    }
  }
};

template <class Place>
std::vector<std::uint32_t> free_faces(const Place& place,
                                      const std::vector<std::uint32_t>& voxels,
                                      const std::vector<std::uint32_t>& weights) {
  const auto keys = roost::copy_to(place, voxels);
  const auto values = roost::copy_to(place, weights);
  const roost::frozen_map map(place, keys, values);
  roost::array<std::uint32_t, Place> faces(place, keys.size());
  place.for_each(keys.size(), count_free_faces{map.ref(), keys.data(), faces.data()});
  return roost::copy_to_host(place, faces);
}

bool check(cudaStream_t stream) {
  std::vector<std::uint32_t> voxels, weights;
  unsigned long long expected = 0, sum = 0;
  for (std::uint32_t x = 1; x < side - 1; ++x) {
    for (std::uint32_t y = 1; y < side - 1; ++y) {
      for (std::uint32_t z = 1; z < side - 1; ++z) {
        const int dx = int(x) - 32, dy = int(y) - 32, dz = int(z) - 32;
        if (dx * dx + dy * dy + dz * dz > 30 * 30) continue;
        voxels.push_back(voxel(x, y, z));
        weights.push_back(1 + x % 3);
        expected += weights.back();
      }
    }
  }

  roost::cuda gpu{stream};
  const roost::frozen_map map(gpu, roost::copy_to(gpu, voxels),
                              roost::copy_to(gpu, weights));
  auto total = roost::copy_to(gpu, std::vector<unsigned long long>{0});
  const std::uint32_t all = side * side * side;
  add_weights<<<(all + 255) / 256, 256, 0, stream>>>(map.ref(), all, total.data());
  sum = roost::copy_to_host(gpu, total).front();
  std::printf("%zu voxels weigh %llu\n", voxels.size(), sum);

  return sum == expected &&
         free_faces(gpu, voxels, weights) == free_faces(roost::host(), voxels, weights);
}

int main() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) {
    std::puts("kernel: no CUDA device can be used here");
    return 1;
  }
  const bool right = check(stream);
  cudaStreamDestroy(stream);
  std::puts(right ? "kernel: right" : "kernel: wrong answers");
  return right ? 0 : 1;
}
