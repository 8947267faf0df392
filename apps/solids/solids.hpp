#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scene.hpp"

/// \file
/// `roost voxels A B ...`: solids, and operations on them.

namespace roost::tools {

/// The default grid of solids.
inline constexpr std::uint64_t usual_grid = 256;

/// The options of the command, as given.
struct solids_options {
  std::vector<std::string> meshes;
  std::vector<std::string> placements;  ///< of the meshes, in order; missing ones are empty
  bool fit = false;
  std::optional<std::uint64_t> grid;
  std::string op = "union";
  std::string inside = "columns";
  bool conservative = false;
  bool baseline = false;
  std::string place = "auto";
  int threads = 0;
  std::optional<int> repetitions;
  bool no_picture = false;
  std::filesystem::path out = ".";
  std::string format = "table";
  std::string up = "y";
  double turn = 30;
  std::vector<std::string> exports;
  std::string surface;        ///< of exported meshes: smooth or sides; empty: as in voxel_model
  std::optional<int> serve;   ///< a port
  std::optional<int> frames;  ///< of an animation

  std::string placement_of(std::size_t mesh) const {
    return mesh < placements.size() ? placements[mesh] : std::string();
  }
};

/// Combines the meshes, and reports. Throws what the readers, the place and the files throw, and
/// invalid_argument for impossible options.
void run_solids(const solids_options& options);

/// The meshes of a command line in one frame.
struct placed_meshes {
  std::vector<std::string> names;
  std::vector<mesh> meshes;
  std::vector<affine> where;
  std::vector<std::vector<mesh>>
      sequences;                     ///< of each that is a folder: all its meshes; `meshes` has the first
  std::vector<bounds> placed_boxes;  ///< of each mesh in its position
  bounds box;                        ///< of all meshes in their positions
  double unit = 1;                   ///< of moves: the longest side of the first mesh
  bounds first;                      ///< of the first mesh in its file
  std::vector<bounds> boxes;         ///< of each in its file, or in all files of its folder
  std::vector<char> fitted;          ///< fitted to the first
  std::vector<char> is_shape;        ///< no file
  length_unit length;                ///< of all lengths; none if no file has a unit
  vec3 origin{};                     ///< was subtracted from all coordinates
  std::vector<std::string> notes;    ///< what a user should know of the files

  /// The position of mesh i with words such as those of --place-a.
  affine placed(std::size_t i, std::string_view words) const {
    return place_mesh(boxes[i], parse_placement(words), unit, fitted[i] != 0 ? &first : nullptr);
  }
};

/// The files that are read: those of a folder, too.
std::vector<std::string> files_of_meshes(const solids_options& options);

/// Reads files or folders (for frames), or makes shapes if there is no such file, and places them.
placed_meshes read_meshes(const solids_options& options);

/// What a user should know of corners that are more than a tenth of a voxel from their position in the file.
std::vector<std::string> remarks_on_precision(const placed_meshes& all, const frame& grid);

/// What a user should know of a mesh that is narrower than a voxel: how much of the grid it takes. `box`: its
/// position; `finest`: the finest grid that can be requested. Empty if there is nothing to say.
std::string remark_on_size(const std::string& name, const bounds& box, const frame& grid,
                           std::uint64_t finest);

/// A scene at the requested place.
std::unique_ptr<scene> make_scene(const std::string& place, int threads);

/// The names of operations and rules on command lines.
solid_op op_of(const std::string& name);
inside_rule rule_of(const std::string& name);

}  // namespace roost::tools
