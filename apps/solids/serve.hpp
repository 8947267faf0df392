#pragma once

#include <array>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "solids.hpp"

/// \file
/// `roost voxels --serve`: solids in a browser of this machine.

namespace roost::tools {

/// The finest grid that is drawn: positions have 30 bits.
inline constexpr std::uint32_t finest_view = 1024;

/// The page: apps/solids/view.html.
extern const std::string_view view_html;

/// A page's request.
struct view_request {
  std::string op = "union", inside = "columns";
  std::uint32_t grid = 0;
  std::vector<std::string> placements;  ///< of the meshes, after those of the command line; may be fewer
  std::uint64_t since = 0;              ///< the number of the answer that the page has; 0: none
};

/// The changes from one list of voxels to another: removed positions, and new or changed voxels, all
/// ascending.
struct voxel_changes {
  std::vector<std::uint32_t> removed;
  lit_voxels changed;
};

/// The changes from one list to another; nothing if they are more than half of the new list.
std::optional<voxel_changes> changes_between(const lit_voxels& before, const lit_voxels& after);

/// Meshes in a scene that many pages view. Keeps results that have not changed since the last request, and
/// answers one request at a time.
class view_session {
 public:
  /// All meshes of the scene are set. `notes`: lines that a page shows.
  view_session(const solids_options& options, placed_meshes all, scene& on, std::vector<std::string> notes);

  /// What a page must know before its first request, as JSON.
  std::string describe() const;

  /// The voxels of a request: n (32 bits), n bytes of JSON, then the number of words and neighbours that its
  /// `voxels` gives, as in lit_voxels. Or, if the JSON has `since`, the changes since the answer with that
  /// number: positions `removed`, then words and neighbours `changed`. Throws invalid_argument for an invalid
  /// request, and what the scene throws.
  std::string answer(const view_request& request);

 private:
  /// Returns the side of the grid.
  std::uint32_t expect_valid(const view_request& request) const;
  /// The low and the high corner of a box, from the middle of the grid, in longest sides of the first mesh.
  std::array<double, 6> box_in_page(const bounds& box, const frame& grid) const;
  /// Brings the tables up to date; returns the numbers of the meshes whose tables were made again.
  std::vector<std::size_t> bring_up(const view_request& request, const frame& grid,
                                    const std::vector<affine>& where);

  solids_options options_;
  placed_meshes all_;
  scene& on_;
  std::vector<std::string> notes_;
  std::mutex one_at_a_time_;
  // The last request: the position of each mesh and its box there, and what the scene has of it.
  std::vector<std::optional<std::pair<affine, bounds>>> boxes_;
  struct known {
    affine to_snapped;
    std::uint32_t grid = 0;
    std::string inside;
    bool has_surface = false;
  };
  std::vector<known> known_;
  // The last answers: the base of the changes for pages that ask again.
  struct answered {
    std::uint64_t id;
    std::uint32_t grid;
    double scale;
    lit_voxels seen;
  };
  static constexpr std::size_t kept_answers = 4;
  std::deque<answered> answers_;
  std::uint64_t last_id_;  // differs from the numbers of an earlier server on this port
};

/// Serves the page and its answers on 127.0.0.1 until the program is ended; calls `ready` with the address.
/// Port 0: any that is free. Throws roost::error if the port cannot be had.
void serve(view_session& session, int port, const std::function<void(const std::string& address)>& ready);

}  // namespace roost::tools
