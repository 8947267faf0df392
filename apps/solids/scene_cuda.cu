#include "apps/shared/cuda_stream.hpp"
#include "scene_on.hpp"

namespace roost::tools {
namespace {

/// A scene with a stream of its own.
struct with_stream : owned_stream, scene_on<roost::cuda> {
  with_stream() : scene_on<roost::cuda>(roost::cuda(owned_stream::get())) {}
};

}  // namespace
}  // namespace roost::tools

std::unique_ptr<roost::tools::scene> roost::tools::make_cuda_scene() {
  return std::make_unique<with_stream>();
}
