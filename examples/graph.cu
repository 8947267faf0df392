// A CUDA graph that builds a map and looks it up, captured once and replayed on new
// data: no wait and no look from the host in between, as a simulation or a renderer
// needs it in every step.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <roost/roost.hpp>
#include <vector>

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

int main() {
  const std::uint32_t n = 100000;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  bool right = true;
  {
    roost::cuda gpu(stream);
    roost::array<std::uint32_t, roost::cuda> keys(gpu, n), values(gpu, n),
        answers(gpu, n);
    std::vector<std::uint32_t> host_keys(n), host_values(n);
    const auto step = [&](std::uint32_t number) {  // the data of a step
      for (std::uint32_t i = 0; i < n; ++i) {
        host_keys[i] = roost::mix32(i, number);
        host_values[i] = i + number;
      }
      gpu.copy_from_host(keys.data(), host_keys.data(), keys.bytes());
      gpu.copy_from_host(values.data(), host_values.data(), values.bytes());
    };

    step(0);
    // This one fixes memory and hash function.
    roost::frozen_map map(gpu, keys, values);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    map.rebuild_async(gpu, keys, values);
    map.find(gpu, keys, answers, 0u);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&ready, graph, 0));

    for (std::uint32_t number = 1; number <= 3; ++number) {
      step(number);
      check(cudaGraphLaunch(ready, stream));
      map.finish(gpu);  // waits, and throws if the pairs did not fit
      right =
          right && map.size() == n && roost::copy_to_host(gpu, answers) == host_values;
    }
    check(cudaGraphExecDestroy(ready));
    check(cudaGraphDestroy(graph));
  }
  check(cudaStreamDestroy(stream));
  std::puts(right ? "graph: right" : "graph: wrong answers");
  return right ? 0 : 1;
}
