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
  const auto read_number = [&](const char* name, auto& to, const std::string& why) {
    std::string text = "0";
    read(name, text);
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (failure != std::errc() || end != text.data() + text.size())
      throw invalid_argument(fmt::format("{}={}: {}", name, text, why));
  };
  read("op", result.op);
  read("inside", result.inside);
  read_number("grid", result.grid, fmt::format("no number of voxels; give 1 to {}", finest_view));
  read_number("since", result.since, "no number of an answer; leave it out");
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

std::optional<voxel_changes> changes_between(const lit_voxels& before, const lit_voxels& after) {
  using word = voxel_word<std::uint32_t>;
  const auto &old_words = before.words, &words = after.words;
  voxel_changes result;
  std::size_t i = 0, k = 0;
  while (i < old_words.size() || k < words.size()) {
    if (result.removed.size() + result.changed.words.size() > words.size() / 2) return {};
    constexpr std::uint32_t end = ~std::uint32_t{0};
    const auto here = i < old_words.size() ? word::position(old_words[i]) : end;
    const auto there = k < words.size() ? word::position(words[k]) : end;
    if (here < there) {
      result.removed.push_back(here);
      ++i;
      continue;
    }
    const bool same = here == there && old_words[i] == words[k] && before.around[i] == after.around[k];
    if (!same) {
      result.changed.words.push_back(words[k]);
      result.changed.around.push_back(after.around[k]);
    }
    if (here == there) ++i;
    ++k;
  }
  return result;
}

view_session::view_session(const solids_options& options, placed_meshes all, scene& on,
                           std::vector<std::string> notes)
    : options_(options),
      all_(std::move(all)),
      on_(on),
      notes_(std::move(notes)),
      boxes_(all_.meshes.size()),
      known_(all_.meshes.size()),
      last_id_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count())) {}

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
  answered now{++last_id_, grid.side, grid.length / frame_around(all_.first, 1).length,
               on_.lit(request.op == "surfaces" ? voxel_set::surfaces : voxel_set::exposed)};
  std::uint64_t classes[3] = {};
  for (const auto word : now.seen.words) ++classes[voxel_word<std::uint32_t>::class_of(word)];

  std::optional<voxel_changes> changes;
  const auto before = std::ranges::find(answers_, request.since, &answered::id);
  if (before != answers_.end() && before->grid == now.grid && before->scale == now.scale)
    changes = changes_between(before->seen, now.seen);

  json told{{"id", now.id},
            {"grid", now.grid},
            {"scale", now.scale},
            {"voxels", now.seen.words.size()},
            {"classes", classes},
            {"volume_voxels", on_.volume()},
            {"voxelise_ms", voxelised},
            {"ms", milliseconds_since(start)}};
  if (changes) {
    told["since"] = request.since;
    told["removed"] = changes->removed.size();
    told["changed"] = changes->changed.words.size();
  }
  std::string result(sizeof(std::uint32_t), 0);
  std::string text = told.dump();
  text.resize((text.size() + 3) / 4 * 4, ' ');  // words begin at a multiple of 4 bytes
  const auto length = static_cast<std::uint32_t>(text.size());
  std::memcpy(result.data(), &length, sizeof(length));
  result += text;
  const auto put = [&](const std::vector<std::uint32_t>& words) {
    result.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0]));
  };
  if (changes) put(changes->removed);
  const lit_voxels& sent = changes ? changes->changed : now.seen;
  put(sent.words);
  put(sent.around);
  answers_.push_back(std::move(now));
  if (answers_.size() > kept_answers) answers_.pop_front();
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
