#include <cmath>

#include "apps/lidar/point_cloud.hpp"
#include "fuzz.hpp"
#include "roost/error.hpp"

// Any bytes are a cloud or an error. The first one chooses between a name that says nothing and a KITTI scan.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzzed_file text(".txt"), floats(".bin");
  if (size == 0) return 0;
  const auto& file = data[0] == 'b' ? floats : text;
  file.write({reinterpret_cast<const char*>(data + 1), size - 1});
  try {
    const auto cloud = roost::tools::read_point_cloud(file.path().string());
    expect(!cloud.points.empty(), "a cloud without points");
    for (const auto& p : cloud.points)
      expect(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z), "a coordinate is not finite");
  } catch (const roost::error& e) {
    expect(std::string_view(e.what()).find('\n') == std::string_view::npos, "an error of several lines");
  }
  return 0;
}
