// Voxels of a sphere as rows, a convolution over them, the way down to a coarser grid
// and up again; and weights that are learned from what another convolution has made.
#include <cmath>
#include <cstdio>
#include <random>
#include <roost/roost.hpp>
#include <roost/sparse/coordinate_index.hpp>
#include <roost/sparse/sparse_conv.hpp>
#include <vector>

std::vector<roost::coordinate<3>> sphere(int radius) {
  std::vector<roost::coordinate<3>> voxels;
  for (int x = -radius; x <= radius; ++x) {
    for (int y = -radius; y <= radius; ++y) {
      for (int z = -radius; z <= radius; ++z) {
        if (std::abs(std::sqrt(x * x + y * y + z * z) - (radius - 1)) < 0.87)
          voxels.push_back({0, {x, y, z}});
      }
    }
  }
  return voxels;
}

std::vector<float> random_numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> numbers(n);
  for (float& number : numbers) number = draw(random);
  return numbers;
}

int main() {
  const auto voxels = sphere(12);
  roost::host cpu;
  roost::coordinate_index index(cpu, voxels);  // different voxels are rows 0 .. m - 1
  const std::size_t rows = index.size();
  if (auto row = index.ref().find({0, {11, 0, 0}}))
    std::printf("(11, 0, 0) is row %u\n", *row);

  const auto map = roost::submanifold(cpu, index);  // 3 x 3 x 3 neighbours of each
  const auto features = random_numbers(rows * 4, 1),
             weights = random_numbers(27 * 4 * 8, 2);
  std::vector<float> output(rows * 8);
  roost::sparse_conv(cpu, map.view(), {.in = 4, .out = 8}, features, weights, output);

  // Down to voxels of twice the side, and up again.
  const auto down = roost::convolution(cpu, index, roost::kernel_shape<3>::cube(2, 2),
                                       {.inverse = true});
  const std::vector<float> one(rows, 1), ones(8, 1);
  std::vector<float> coarse(down.output_size()), fine(rows);
  // The number of voxels in each coarse one, then the same at each of these voxels.
  roost::sparse_conv(cpu, down.view(), {1, 1}, one, ones, coarse);
  roost::sparse_conv(cpu, down.transposed(), {1, 1}, coarse, ones, fine);
  double squares = 0, sum = 0;
  for (const float n : coarse) squares += n * n;
  for (const float n : fine) sum += n;
  std::printf("%zu voxels are %zu of twice the side\n", rows, coarse.size());

  // Weights from examples: gradient descent on the squared difference.
  std::vector<float> learned(weights.size()), made(output.size()),
      gradient(weights.size());
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    roost::sparse_conv(cpu, map.view(), {4, 8}, features, learned, made);
    last = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] -= output[i];
      last += made[i] * made[i];
    }
    if (step == 0) first = last;
    roost::sparse_conv_weight_gradient(cpu, map.view(), {4, 8}, features, made,
                                       gradient);
    for (std::size_t i = 0; i < learned.size(); ++i)
      learned[i] -= 2.0f / static_cast<float>(rows) * gradient[i];
  }
  std::printf("the squared difference went from %.0f to %.2g\n", first, last);

  const bool right = index.size() == voxels.size() && map.valid(cpu) &&
                     sum == squares && coarse.size() > 100 && last < 1e-3 * first;
  std::puts(right ? "sparse_conv: right" : "sparse_conv: wrong answers");
  return right ? 0 : 1;
}
