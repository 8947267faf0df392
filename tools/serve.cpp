#include "serve.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <roost/error.hpp>

#include "picture.hpp"

namespace roost::tools {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

constexpr std::string_view ops[] = {"union", "intersection", "difference", "xor", "surfaces"};
constexpr std::string_view rules[] = {"columns", "parity", "vote"};
constexpr std::uint32_t grids[] = {32, 64, 128, 256, 512, 1024};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// A cube about the centre of the first mesh that holds all meshes. It grows in steps of 2^(1/4) of that
/// mesh's longest side, so that the mesh stays as it is while another moves a little.
frame frame_about(const bounds& first, const bounds& all, std::uint32_t side) {
  frame result = frame_around(first, side);
  double reach = 0;
  for (int i = 0; i < 3; ++i) {
    reach =
        std::max({reach, std::abs(all.high[i] - result.centre[i]), std::abs(all.low[i] - result.centre[i])});
  }
  const double steps = std::ceil(4 * std::log2(2 * reach / result.length) - 1e-9);
  if (steps > 0) result.length *= std::exp2(steps / 4);
  if (!std::isfinite(result.length))
    throw invalid_argument("voxels: the meshes lie too far from each other; move them less");
  return result;
}

/// What is wrong with a request, for the one who asks.
void fail(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain; charset=utf-8");
}

view_request request_of(const httplib::Request& from) {
  view_request result;
  const auto read = [&](const char* name, std::string& to) {
    if (from.has_param(name)) to = from.get_param_value(name);
  };
  read("op", result.op);
  read("inside", result.inside);
  std::string grid = "0";
  read("grid", grid);
  const auto [end, failure] = std::from_chars(grid.data(), grid.data() + grid.size(), result.grid);
  if (failure != std::errc() || end != grid.data() + grid.size())
    throw invalid_argument(fmt::format("grid={}: no number of voxels; give 1 to {}", grid, finest_view));
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const std::string name{'p', 'l', 'a', 'c', 'e', '-', letter};
    if (!from.has_param(name.c_str())) continue;
    result.placements.resize(static_cast<std::size_t>(letter - 'a') + 1);
    result.placements.back() = from.get_param_value(name.c_str());
  }
  return result;
}

/// Another page that a browser of this machine shows cannot ask us under a name of its own.
bool is_this_machine(const httplib::Request& request) {
  const auto host = request.get_header_value("Host");
  const auto name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost";
}

}  // namespace

view_session::view_session(const solids_options& options, placed_meshes all, scene& on,
                           std::vector<std::string> notes)
    : options_(options),
      all_(std::move(all)),
      on_(on),
      notes_(std::move(notes)),
      boxes_(all_.meshes.size()),
      known_(all_.meshes.size()) {}

std::string view_session::describe() const {
  json out;
  out["place"] = on_.place_name();
  out["op"] = options_.op;
  out["inside"] = is_one_of(options_.inside, rules) ? options_.inside : "columns";
  out["grid"] = options_.grid.value_or(usual_grid);
  out["grids"] = grids;
  out["up"] = options_.up;
  out["turn"] = options_.turn;
  out["colours"] = class_colours;
  out["meshes"] = json::array();
  for (std::size_t i = 0; i < all_.meshes.size(); ++i) {
    out["meshes"].push_back({{"name", all_.names[i]}, {"triangles", all_.meshes[i].triangles.size()}});
  }
  out["notes"] = notes_;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

void view_session::bring_up(const view_request& request, const frame& grid,
                            const std::vector<affine>& where) {
  const bool surfaces = request.op == "surfaces";
  for (std::size_t i = 0; i < known_.size(); ++i) {
    known now{to_snapped(grid, where[i]), grid.side, request.inside, false};
    auto& last = known_[i];
    const bool same = last.to_snapped == now.to_snapped && last.grid == now.grid && last.inside == now.inside;
    if (!same) {
      last = {};  // if what follows throws
      on_.place_mesh(i, grid.side, now.to_snapped);
      on_.make_solid(i, rule_of(request.inside));
      last = now;
    }
    if (surfaces && !last.has_surface) {
      on_.make_surface(i, options_.conservative);
      last.has_surface = true;
    }
  }
}

std::string view_session::answer(const view_request& request) {
  const auto count = all_.meshes.size();
  const auto side = request.grid == 0 ? options_.grid.value_or(usual_grid) : request.grid;
  if (side == 0 || side > finest_view)
    throw invalid_argument(fmt::format("grid={}: give 1 to {}", side, finest_view));
  if (!is_one_of(request.op, ops))
    throw invalid_argument(fmt::format("op={}: no such operation", request.op));
  if (!is_one_of(request.inside, rules))
    throw invalid_argument(fmt::format("inside={}: no such rule", request.inside));
  if (request.op == "surfaces" && count != 2)
    throw invalid_argument(fmt::format("op=surfaces: is of two meshes, and there are {}", count));
  if (request.placements.size() > count) {
    throw invalid_argument(fmt::format("place-{:c}: there is no such mesh, there are {}",
                                       'a' + request.placements.size() - 1, count));
  }

  const std::lock_guard lock(one_at_a_time_);
  const auto start = clock::now();
  std::vector<affine> where;
  bounds box;
  for (std::size_t i = 0; i < count; ++i) {
    std::string words = i < options_.placements.size() ? options_.placements[i] : "";
    if (i < request.placements.size()) words += ' ' + request.placements[i];
    where.push_back(place_mesh(all_.boxes[i], parse_placement(words), all_.unit,
                               all_.fitted[i] != 0 ? &all_.first : nullptr));
    auto& last = boxes_[i];
    if (!last || last->first != where[i]) last.emplace(where[i], bounds_of(all_.meshes[i], where[i]));
    box.add(last->second);
  }
  const auto grid = frame_about(all_.first, box, static_cast<std::uint32_t>(side));
  on_.expect_room(grid.side);
  bring_up(request, grid, where);
  const double voxelised = milliseconds_since(start);
  on_.combine(op_of(request.op));
  const auto seen = on_.lit(request.op == "surfaces" ? voxel_set::surfaces : voxel_set::exposed);
  std::uint64_t classes[3] = {};
  for (const auto word : seen.words) ++classes[voxel_word<std::uint32_t>::class_of(word)];

  json told{{"grid", grid.side},
            {"scale", grid.length / frame_around(all_.first, 1).length},
            {"voxels", seen.words.size()},
            {"classes", classes},
            {"volume_voxels", on_.volume()},
            {"voxelise_ms", voxelised},
            {"ms", milliseconds_since(start)}};
  std::string text = told.dump();
  text.resize((text.size() + 3) / 4 * 4, ' ');  // words begin at a multiple of 4 bytes
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string result(sizeof(length) + length + 2 * seen.words.size() * sizeof(std::uint32_t), 0);
  char* to = result.data();
  const auto put = [&](const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    to += bytes;
  };
  put(&length, sizeof(length));
  put(text.data(), text.size());
  put(seen.words.data(), seen.words.size() * sizeof(std::uint32_t));
  put(seen.around.data(), seen.around.size() * sizeof(std::uint32_t));
  return result;
}

void serve(view_session& session, int port, const std::function<void(const std::string& address)>& ready) {
  httplib::Server server;
  // Many idle connections of browsers each keep a thread for a while.
  server.new_task_queue = [] { return new httplib::ThreadPool(32); };  // the server deletes it
  server.set_keep_alive_max_count(1000000);
  server.set_tcp_nodelay(true);
  // The library would share a port with another server that is already there.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (is_this_machine(request)) return httplib::Server::HandlerResponse::Unhandled;
    fail(response, 403, "only for browsers of this machine: ask 127.0.0.1 or localhost");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_default_headers({{"Cache-Control", "no-store"}});
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(view_html.data(), view_html.size(), "text/html; charset=utf-8");
  });
  server.Get("/scene", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(session.describe(), "application/json");
  });
  server.Get("/voxels", [&](const httplib::Request& request, httplib::Response& response) {
    try {
      response.set_content(session.answer(request_of(request)), "application/octet-stream");
    } catch (const invalid_argument& e) {
      fail(response, 400, e.what());
    } catch (const out_of_memory& e) {
      fail(response, 503, e.what());
    } catch (const std::bad_alloc&) {
      fail(response, 503, "no memory; take a coarser grid");
    } catch (const std::exception& e) {
      fail(response, 500, e.what());
    }
  });

  const char* const here = "127.0.0.1";
  const bool bound = port == 0 ? (port = server.bind_to_any_port(here)) > 0 : server.bind_to_port(here, port);
  if (!bound) {
    throw error(fmt::format(
        "voxels: port {} of {} cannot be had; end what uses it, or take --serve 0 for any", port, here));
  }
  ready(fmt::format("http://{}:{}/", here, port));
  if (!server.listen_after_bind()) throw error(fmt::format("voxels: the server on port {} has failed", port));
}

}  // namespace roost::tools
