#include "scene_on.hpp"

std::unique_ptr<roost::tools::scene> roost::tools::make_host_scene(const host& place) {
  return std::make_unique<scene_on<host>>(place);
}
