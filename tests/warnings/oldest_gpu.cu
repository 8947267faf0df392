// Compiled for the oldest GPUs that nvcc knows, sm_75: every header, and products that their tensor cores
// lack.
#include <roost/roost.hpp>
#include <roost/shards/gpus.hpp>
#include <roost/shards/rank.hpp>
#include <roost/shards/sharded_concurrent_map.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_set.hpp>
#include <roost/sparse/sparse_conv.hpp>
#include <roost/stadium/stadium_map.hpp>

template <class T>
__global__ void multiply(const T* numbers, float* sums) {
  using namespace roost::detail;
  typename block_product<T, 32, 32, conv_slice<T>, false, true, 64, 2>::product product;
  product.add(numbers, numbers);
  product.store(sums, 32);
}

template __global__ void multiply(const float*, float*);
template __global__ void multiply(const __half*, float*);
template __global__ void multiply(const __nv_bfloat16*, float*);
