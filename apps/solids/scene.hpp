#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/shared/voxel.hpp"
#include "placement.hpp"

namespace roost {
class host;
}

/// \file
/// Several meshes in one grid, as solids and as surfaces, and operations on them. One source for both places
/// (scene_on.hpp); this is its interface.

namespace roost::tools {

/// The finest grid of a scene: 4096 voxels a side.
inline constexpr std::uint32_t finest_scene = 4096;

/// How far a corner may be from the low side of a grid along an axis, in 1/256 voxel: 2^21 voxels.
inline constexpr double farthest_steps = 1 << 29;

/// An operation on two solids, as the answers to (a, b) = (no, no), (yes, no), (no, yes), (yes, yes): bits 0
/// to 3. The result of two empty solids is empty. With more than two meshes, each is combined with the result
/// of those before it.
enum class solid_op : std::uint8_t {
  first = 0b1010,
  combined = 0b1110,  ///< union
  intersection = 0b1000,
  difference = 0b0010,
  exclusive = 0b0110  ///< xor
};

/// Which points are inside a mesh.
enum class inside_rule : std::uint8_t {
  nonzero,  ///< those that the surface encloses: shells may overlap, but all faces of a shell must face the
            ///< same way
  odd,      ///< those below an odd number of crossings: faces may face any way, but shells must not overlap
  vote      ///< those that are inside along two of three axes: for open meshes
};

/// Where a voxel of one surface is: outside the other solid, inside it, or on both surfaces.
enum class voxel_class : std::uint8_t { outside, inside, both };

/// A set of voxels that a scene can return.
enum class voxel_set {
  exposed,   ///< voxels of the result with a side to a voxel outside. Class 0: at the surface of the first
             ///< solid, 1: of the second, 2: of both
  surface,   ///< the surface voxels of the first mesh, of class 0
  surfaces,  ///< the surface voxels of the first two meshes; their voxel_class is the class
  solid      ///< all of the result, of class 0
};

/// Milliseconds by the name of the step, in the order in which the steps were taken.
using step_times = std::vector<std::pair<std::string, double>>;

/// How many voxels there are of each class.
struct class_counts {
  std::uint64_t outside = 0, inside = 0, both = 0;
  std::uint64_t all() const { return outside + inside + both; }
};

/// The facts about a mesh in the grid, or about a result.
struct solid_facts {
  std::uint64_t voxels = 0;         ///< of the surface
  std::uint64_t volume_voxels = 0;  ///< those whose centre is inside
  std::uint64_t exposed = 0;        ///< voxels of the solid with a side to a voxel outside
  std::uint64_t sides = 0;          ///< such sides
  double area = 0;                  ///< of the surface, in sides of voxels: see facing_triangles
  std::size_t bytes = 0;            ///< of the columns that hold it
  step_times milliseconds;
};

/// The faults of a mesh as the surface of a solid.
struct mesh_faults {
  std::uint64_t open_edges = 0;    ///< sides of an odd number of triangles
  std::uint64_t turned_edges = 0;  ///< edges between triangles that face opposite ways
};

/// The plan of a frame, from the positions of meshes to their visible voxels.
struct frame_plan {
  std::uint32_t grid = 0;
  std::vector<affine> to_snapped;  ///< of each mesh of the scene: see place_mesh()
  solid_op op = solid_op::combined;
  inside_rule rule = inside_rule::nonzero;
  bool all_touched = false;  ///< see make_surface()
};

/// The counts of a frame.
struct frame_counts {
  std::uint64_t exposed = 0;  ///< voxels of the result with a side to one outside
  class_counts classes;       ///< of the surfaces of two meshes
};

/// A solid as columns on the host: column (x, y) has heights[offsets[x * grid + y]] up to the next offset:
/// where it enters the solid and where it leaves it, alternately.
struct solid_columns {
  std::uint32_t grid = 0;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint16_t> heights;
};

/// The results of the method of Alcantara et al. 2009, section 6, for the surfaces of two meshes.
struct fill_facts {
  class_counts classes;
  std::uint64_t unknown = 0;    ///< voxels that no fill reached
  std::uint64_t different = 0;  ///< voxels in or out of the other solid that its columns place differently
  std::uint64_t seeds = 0;      ///< initial voxels of the fill
  std::uint64_t cleared = 0;    ///< seeds that led to conflicts
  int rounds = 0;               ///< fills until there were no conflicts
  std::size_t bytes = 0;
  step_times milliseconds;
};

/// Voxels to be drawn, ascending, and their neighbours: bit 9 (dx + 1) + 3 (dy + 1) + dz + 1 of the entry in
/// `around` is set if the voxel at (dx, dy, dz) is solid or, for surfaces, in the set.
struct lit_voxels {
  std::vector<std::uint32_t> words, around;
};

/// The same solid made in a dense grid of bits: the baseline.
struct bit_grid_facts {
  std::uint64_t volume_voxels = 0, exposed = 0;
  std::size_t bytes = 0;
  step_times milliseconds;
};

/// Meshes in a grid on a place. Steps are timed; the time of a repeated step is the median. Not thread-safe.
class scene {
 public:
  virtual ~scene() = default;

  /// `host:THREADS` or `cuda`.
  virtual std::string place_name() const = 0;
  /// The approximate bytes that a grid takes, without the meshes; `at_once`: the meshes that are voxelised
  /// together. Throws out_of_memory if the place does not have them.
  virtual std::size_t expect_room(std::uint32_t grid, std::size_t at_once = 1) const = 0;

  /// Copies a mesh to the place as mesh number i, replacing one or adding the next. Its position must be set
  /// again.
  virtual void set_mesh(std::size_t i, const mesh& surface) = 0;
  virtual std::size_t meshes() const = 0;
  virtual mesh_faults faults(std::size_t i) = 0;

  /// Puts mesh i into a grid. `to_snapped`: maps its vertices to units of 1/256 voxel. Throws
  /// invalid_argument for a grid of 0 or above finest_scene, and for a mesh with a corner farther away than
  /// farthest_steps. Meshes may extend beyond the grid on all sides: the part in the grid is as in a larger
  /// one.
  virtual void place_mesh(std::size_t i, std::uint32_t grid, const affine& to_snapped) = 0;
  /// Makes its solid.
  virtual void make_solid(std::size_t i, inside_rule rule) = 0;
  /// Makes its surface: the voxels in which it crosses a line through their centre along an axis, or all that
  /// it touches.
  virtual void make_surface(std::size_t i, bool all_touched) = 0;

  /// Combines all meshes, which must be in the same grid. With one mesh: `first`.
  virtual void combine(solid_op op) = 0;

  /// All steps from the triangles of all meshes to the exposed voxels and the classes of two surfaces, with
  /// the same results as place_mesh(), make_solid(), make_surface() of two meshes, combine(), count_exposed()
  /// and classes(). Memory is kept for the next frame. A following request for voxels `exposed` returns those
  /// that the frame has written. On cuda it waits for the device once; up to three times more for a frame
  /// with more voxels than the last one, and once more for each mesh beyond two. (Rule `vote`: as often as
  /// those calls.)
  virtual frame_counts make_frame(const frame_plan& plan) = 0;
  /// The times of the steps of frames.
  virtual step_times frame_times() = 0;

  /// The number of voxels of the result with a side to one outside.
  virtual std::uint64_t count_exposed() = 0;
  /// The number of voxels of the result.
  virtual std::uint64_t volume() = 0;

  /// The facts about mesh i, and about the result of combine().
  virtual solid_facts facts_of_mesh(std::size_t i) = 0;
  virtual solid_facts facts_of_result() = 0;
  /// The classes of the surfaces of two meshes: of both, and of each.
  virtual class_counts classes() = 0;
  virtual class_counts classes_of_mesh(std::size_t i) = 0;
  /// Classifies the surfaces by the paper's method, and compares.
  virtual fill_facts fill() = 0;
  /// Computes the result of combine() for at most two meshes in a grid of bits.
  virtual bit_grid_facts bit_grid(solid_op op) = 0;

  /// Voxels, ascending, as voxel_word: 32 bits for grids of up to 1024, otherwise 64. fill: their classes are
  /// those of the last fill(); for `surfaces`.
  virtual std::vector<std::uint32_t> voxels32(voxel_set which) = 0;
  virtual std::vector<std::uint64_t> voxels64(voxel_set which) = 0;
  /// Voxels and their neighbours, for grids of up to 1024. Takes one bit per voxel of the grid on the place.
  virtual lit_voxels lit(voxel_set which) = 0;
  /// The result on the host.
  virtual solid_columns columns() = 0;
};

/// A scene on the host, or on the current CUDA device. Throws device_error if there is none.
std::unique_ptr<scene> make_host_scene(const host& place);
std::unique_ptr<scene> make_cuda_scene();

}  // namespace roost::tools
