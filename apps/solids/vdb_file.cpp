#include <fmt/format.h>

#include "roost/error.hpp"
#include "voxel_files.hpp"

#if ROOST_WITH_OPENVDB

#include <openvdb/openvdb.h>

bool roost::tools::has_vdb() { return true; }

void roost::tools::write_vdb(const voxel_model& model, const std::filesystem::path& file) {
  openvdb::initialize();
  const auto grid = openvdb::FloatGrid::create(0);
  grid->setName("density");
  grid->setGridClass(openvdb::GRID_FOG_VOLUME);
  const double voxel = model.grid.length / model.grid.side;
  auto matrix = openvdb::Mat4R::identity();
  matrix.setToScale(openvdb::Vec3R(voxel, voxel, voxel));
  // Voxel 0 of OpenVDB is centred at 0.
  matrix.postTranslate(openvdb::Vec3R(model.grid.centre[0] - model.grid.length / 2 + voxel / 2,
                                      model.grid.centre[1] - model.grid.length / 2 + voxel / 2,
                                      model.grid.centre[2] - model.grid.length / 2 + voxel / 2));
  grid->setTransform(openvdb::math::Transform::createLinearTransform(matrix));
  const auto& solid = model.columns;
  auto at = grid->getAccessor();
  for (std::uint32_t x = 0, column = 0; x < solid.grid; ++x) {
    for (std::uint32_t y = 0; y < solid.grid; ++y, ++column) {
      for (auto i = solid.offsets[column]; i < solid.offsets[column + 1]; i += 2) {
        const std::uint32_t end = i + 1 < solid.offsets[column + 1] ? solid.heights[i + 1] : solid.grid;
        for (std::uint32_t z = solid.heights[i]; z < end; ++z)
          at.setValue(openvdb::Coord(static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)), 1);
      }
    }
  }
  grid->pruneGrid();
  const std::filesystem::path part = file.string() + ".part";
  try {
    openvdb::io::File to(part.string());
    to.write({grid});
    to.close();
    std::filesystem::rename(part, file);
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw error(fmt::format("{}: cannot be written; check the directory, its permissions and its space",
                            file.string()));
  }
}

#else

bool roost::tools::has_vdb() { return false; }
void roost::tools::write_vdb(const voxel_model&, const std::filesystem::path&) {}  // never called

#endif
