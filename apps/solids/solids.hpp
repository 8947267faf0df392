#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scene.hpp"

/// \file
/// `roost voxels A B ...`: solids and what is made of them.

namespace roost::tools {

/// The grid of solids if none is asked for.
inline constexpr std::uint64_t usual_grid = 256;

/// The options of the command as they stand on its line.
struct solids_options {
  std::vector<std::string> meshes;
  std::vector<std::string> placements;  ///< of the meshes, in turn; missing ones are empty
  bool fit = false;
  std::optional<std::uint64_t> grid;
  std::string op = "union";
  std::string inside = "columns";
  bool conservative = false;
  bool baseline = false;
  std::string place = "auto";
  int threads = 0;
  std::optional<int> repetitions;
  std::filesystem::path out = ".";
  std::string format = "table";
  std::string up = "y";
  double turn = 30;
  std::vector<std::string> exports;
  std::string surface;        ///< of exported meshes: smooth or sides; empty: as voxel_model has it
  std::optional<int> serve;   ///< a port
  std::optional<int> frames;  ///< of an animation

  std::string placement_of(std::size_t mesh) const {
    return mesh < placements.size() ? placements[mesh] : std::string();
  }
};

/// Combines the meshes, and reports. Throws what the readers, the place and the files throw, and
/// invalid_argument for options that cannot be.
void run_solids(const solids_options& options);

/// The meshes of a command line in one frame.
struct placed_meshes {
  std::vector<std::string> names;
  std::vector<mesh> meshes;
  std::vector<affine> where;
  std::vector<std::vector<mesh>>
      sequences;                     ///< of each that is a folder: all of them; `meshes` has the first
  std::vector<bounds> placed_boxes;  ///< of each where it is
  bounds box;                        ///< of all where they are
  double unit = 1;                   ///< of moves: the longest side of the first mesh
  bounds first;                      ///< of the first mesh in its file
  std::vector<bounds> boxes;         ///< of each in its file, or in all of its folder
  std::vector<char> fitted;          ///< brought onto the first
  std::vector<char> is_shape;        ///< no file
  length_unit length;                ///< of all lengths; none where no file has a unit
  vec3 origin{};                     ///< what was taken off all coordinates
  std::vector<std::string> notes;    ///< what a user should know of the files

  /// Where words, such as those of --place-a, bring mesh i.
  affine placed(std::size_t i, std::string_view words) const {
    return place_mesh(boxes[i], parse_placement(words), unit, fitted[i] != 0 ? &first : nullptr);
  }
};

/// The files that are read: those of a folder, too.
std::vector<std::string> files_of_meshes(const solids_options& options);

/// Reads files, folders (for frames) or makes shapes where there is no such file, and places them.
placed_meshes read_meshes(const solids_options& options);

/// What a user should know of corners that lie elsewhere than in their file, by more than a tenth of a voxel.
std::vector<std::string> remarks_on_precision(const placed_meshes& all, const frame& grid);

/// What a user should know of a mesh that is narrower than a voxel: how much of the grid it takes. `box`:
/// where it lies; `finest`: the finest grid that may be asked for. Empty if there is nothing.
std::string remark_on_size(const std::string& name, const bounds& box, const frame& grid,
                           std::uint64_t finest);

/// A scene at the place that is asked for; `note` is called with a line if that was not what `auto` hopes
/// for.
std::unique_ptr<scene> make_scene(const std::string& place, int threads);

/// The names of operations and rules on command lines.
solid_op op_of(const std::string& name);
inside_rule rule_of(const std::string& name);

}  // namespace roost::tools
