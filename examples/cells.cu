// A multimap inside device code: points in the cells of a grid, as in simulations of
// particles. A kernel counts for each point how many others are near it, and looks up
// the points of three cells.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

struct point {
  std::int32_t x, y;
};
struct cell {  // a key: two integers without padding
  std::int32_t x, y;
};

constexpr std::int32_t reach = 16;  // near is up to so far; also the side of a cell

__host__ __device__ bool near(const point& a, const point& b) {
  const std::int32_t dx = a.x - b.x, dy = a.y - b.y;
  return dx * dx + dy * dy <= reach * reach;
}

/// The cell of point i: a key that is computed where it is needed.
struct cell_of {
  const point* points;

  __host__ __device__ cell operator()(std::size_t i) const {
    return {points[i].x / reach, points[i].y / reach};
  }
};

/// A kernel of your own: the ref is passed by value, as a pointer would be.
template <class Ref>
__global__ void count_near(Ref in_cell, const point* points, std::uint32_t n,
                           std::uint32_t* counts) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const cell mine = cell_of{points}(i);
  std::uint32_t count = 0;
  for (std::int32_t y = mine.y - 1; y <= mine.y + 1; ++y) {
    for (std::int32_t x = mine.x - 1; x <= mine.x + 1; ++x) {
      for (const auto& other : in_cell.find({x, y})) count += near(points[i], other);
    }
  }
  counts[i] = count - 1;  // not itself
}

bool check(cudaStream_t stream) {
  const std::uint32_t n = 5000;
  const std::int32_t side = 400;
  std::vector<point> host_points(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint64_t any = roost::mix64(i);
    host_points[i] = {static_cast<std::int32_t>(any % side),
                      static_cast<std::int32_t>((any >> 32) % side)};
  }

  roost::cuda gpu{stream};
  const auto points = roost::copy_to(gpu, host_points);
  const roost::computed cells(n, cell_of{points.data()});
  // a cell's points lie side by side
  const roost::frozen_multimap in_cell(gpu, cells, points);
  roost::array<std::uint32_t, roost::cuda> counts(gpu, n);
  count_near<<<(n + 255) / 256, 256, 0, stream>>>(in_cell.ref(), points.data(), n,
                                                  counts.data());

  // In bulk: the points of some cells, cell after cell. Their number is known before
  // they come.
  const std::vector<cell> host_queries{{3, 4}, {-1, 0}, {10, 10}};
  const auto found = in_cell.match(gpu, roost::copy_to(gpu, host_queries));
  roost::array<point, roost::cuda> members(gpu, found.size());
  found.retrieve(gpu, members);  // asynchronous on the stream

  const auto near_each = roost::copy_to_host(gpu, counts);
  const auto offsets = roost::copy_to_host(gpu, found.offsets());
  const auto of_queries = roost::copy_to_host(gpu, members);
  std::printf(
      "%zu points in %zu cells; point 0 has %u near it; %zu points in three cells\n",
      in_cell.size(), in_cell.key_count(), near_each[0], of_queries.size());

  bool right =
      in_cell.valid(gpu) && in_cell.size() == n && offsets.back() == of_queries.size();
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t expected = 0;
    for (const point& other : host_points) expected += near(host_points[i], other);
    right = right && near_each[i] + 1 == expected;
  }
  std::size_t next = 0;
  // its values have the order of the input
  for (std::size_t q = 0; q < host_queries.size(); ++q) {
    right = right && offsets[q] == next;
    for (std::uint32_t i = 0; i < n; ++i) {
      const cell c = cell_of{host_points.data()}(i);
      if (c.x != host_queries[q].x || c.y != host_queries[q].y) continue;
      right = right && next < of_queries.size() &&
              of_queries[next].x == host_points[i].x &&
              of_queries[next].y == host_points[i].y;
      ++next;
    }
  }
  return right && next == of_queries.size();
}

int main() {
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) {
    std::puts("cells: no CUDA device can be used here");
    return 1;
  }
  const bool right = check(stream);
  cudaStreamDestroy(stream);
  std::puts(right ? "cells: right" : "cells: wrong answers");
  return right ? 0 : 1;
}
