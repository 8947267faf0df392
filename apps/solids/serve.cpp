#include "serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <roost/error.hpp>

#include "apps/shared/picture.hpp"
#include "grid_choice.hpp"

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

/// A cube about the centre of the first mesh that encloses what the result can need: that mesh, or all of
/// them. It grows in steps of 2^(1/4) of the first mesh's longest side, so that the mesh's voxels stay the
/// same while another mesh moves a little. `first`: the box of the first mesh in its file.
frame frame_about(const bounds& first, std::span<const bounds> boxes, solid_op op, std::uint32_t side) {
  frame result = frame_around(first, side);
  bounds all;
  for (const bounds& box : boxes) all.add(box);
  const bool only_first = boxes.size() > 1 && stays_in_first(op) && side >= 4;
  const bounds& needed = only_first ? boxes.front() : all;
  double reach = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    reach = std::max(
        {reach, std::abs(needed.high[i] - result.centre[i]), std::abs(needed.low[i] - result.centre[i])});
  }
  const double steps = std::ceil(4 * std::log2(2 * reach / result.length) - 1e-9);
  if (steps > 0) result.length *= std::exp2(steps / 4);
  if (!std::isfinite(result.length))
    throw invalid_argument("voxels: the meshes lie too far from each other; move them less");
  if (only_first && needs_layer(result, boxes)) result = with_layer(result);
  return within_reach(result, all);
}

/// The text of a part of a query: `+` is a blank, and %XX a byte.
std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    if (text[i] != '%') {
      result += text[i] == '+' ? ' ' : text[i];
    } else if (i + 2 < text.size() &&
               std::from_chars(&text[i + 1], &text[i] + 3, byte, 16).ptr == &text[i] + 3) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      throw invalid_argument(fmt::format("{}: a % is not followed by two digits", text));
    }
  }
  return result;
}

view_request request_of(std::string_view query) {
  view_request result;
  const auto number = [](std::string_view name, const std::string& text, auto& to, const std::string& why) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (failure != std::errc() || end != text.data() + text.size())
      throw invalid_argument(fmt::format("{}={}: {}", name, text, why));
  };
  std::vector<std::string> names;
  for (std::size_t at = 0; at < query.size();) {
    const auto part = query.substr(at, query.find('&', at) - at);
    at += part.size() + 1;
    const auto equals = std::min(part.find('='), part.size());
    const auto name = decoded(part.substr(0, equals)),
               value = decoded(part.substr(std::min(equals + 1, part.size())));
    if (std::ranges::find(names, name) != names.end())
      throw invalid_argument(fmt::format("{}: is there twice", name));
    names.push_back(name);
    if (name == "op") {
      result.op = value;
    } else if (name == "inside") {
      result.inside = value;
    } else if (name == "grid") {
      number(name, value, result.grid, fmt::format("no number of voxels; give 1 to {}", finest_view));
    } else if (name == "since") {
      number(name, value, result.since, "no number of an answer; leave it out");
    } else if (name.size() == 7 && name.starts_with("place-") && name[6] >= 'a' && name[6] <= 'z') {
      const auto i = static_cast<std::size_t>(name[6] - 'a');
      result.placements.resize(std::max(result.placements.size(), i + 1));
      result.placements[i] = value;
    }
  }
  return result;
}

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using net::ip::tcp;
using http_request = http::request<http::string_body>;
using http_response = http::response<http::string_body>;

http_response response_of(http::status status, std::string body, const char* type) {
  http_response result(status, 11);
  result.set(http::field::content_type, type);
  result.set(http::field::cache_control, "no-store");
  result.body() = std::move(body);
  return result;
}
/// The response to a wrong request, with the reason.
http_response failure_of(http::status status, const std::string& why) {
  return response_of(status, why + "\n", "text/plain; charset=utf-8");
}

/// Pages of other sites in a browser on this machine cannot send requests under their own names: there must
/// be exactly one Host, and it must be this one.
bool is_for_us(const http_request& request, unsigned short port) {
  if (request.count(http::field::host) != 1) return false;
  const std::string host(request[http::field::host]);
  const auto is = [&](const char* name) { return host == name || host == fmt::format("{}:{}", name, port); };
  return is("127.0.0.1") || is("localhost");
}

http_response voxels_of(view_session& session, std::string_view query) {
  try {
    return response_of(http::status::ok, session.answer(request_of(query)), "application/octet-stream");
  } catch (const invalid_argument& e) {
    return failure_of(http::status::bad_request, e.what());
  } catch (const out_of_memory& e) {
    return failure_of(http::status::service_unavailable, e.what());
  } catch (const std::bad_alloc&) {
    return failure_of(http::status::service_unavailable, "no memory; take a coarser grid");
  } catch (const std::exception& e) {
    return failure_of(http::status::internal_server_error, e.what());
  }
}

/// One connection, with one request after the other. All of it runs in the thread that waits for connections,
/// except long computations: so a slow client delays nobody.
class connection : public std::enable_shared_from_this<connection> {
 public:
  struct server {
    view_session& session;
    net::thread_pool& workers;
    unsigned short port;
  };

  connection(tcp::socket&& socket, const server& of) : stream_(std::move(socket)), server_(of) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(most_head);
    parser_->body_limit(most_body);
    stream_.expires_after(patience);  // for a whole request; then the connection ends
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code failure, std::size_t) { self->have_read(failure); });
  }

 private:
  static constexpr std::uint32_t most_head = 16 << 10, most_body = 64 << 10;
  static constexpr std::size_t most_left_over = 1 << 20;
  static constexpr std::chrono::seconds patience{5}, to_write{600};

  void have_read(beast::error_code failure) {
    if (failure == http::error::end_of_stream || failure == beast::error::timeout) return;
    if (failure == http::error::body_limit) {
      last_ = true;
      return write(
          failure_of(http::status::payload_too_large, "a body of more than 64 KiB: ask without one"));
    }
    if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
      last_ = true;
      return write(failure_of(http::status::request_header_fields_too_large, "a head of more than 16 KiB"));
    }
    if (failure.category() == http::make_error_code(http::error::bad_method).category()) {
      last_ = true;
      return write(failure_of(http::status::bad_request, "no request of HTTP: " + failure.message()));
    }
    if (failure) return;
    const auto request = parser_->release();
    last_ = !request.keep_alive();
    bare_ = request.method() == http::verb::head;
    if (!is_for_us(request, server_.port)) {
      return write(
          failure_of(http::status::forbidden,
                     fmt::format("only for browsers of this machine: ask 127.0.0.1:{0} or localhost:{0}",
                                 server_.port)));
    }
    if (request.method() != http::verb::get && !bare_)
      return write(failure_of(http::status::method_not_allowed, "only GET is answered"));
    const std::string target(request.target());
    const auto path = target.substr(0, target.find('?'));
    if (path == "/")
      return write(response_of(http::status::ok, std::string(view_html), "text/html; charset=utf-8"));
    if (path == "/scene")
      return write(response_of(http::status::ok, server_.session.describe(), "application/json"));
    if (path != "/voxels") return write(failure_of(http::status::not_found, "there is no such page"));
    net::post(server_.workers,
              [self = shared_from_this(), query = target.substr(std::min(path.size() + 1, target.size()))] {
                auto response = voxels_of(self->server_.session, query);
                net::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
                  self->write(std::move(response));
                });
              });
  }

  void write(http_response response) {
    response.keep_alive(!last_);
    response.prepare_payload();
    if (bare_) response.body().clear();
    response_ = std::move(response);
    stream_.expires_after(to_write);
    http::async_write(stream_, *response_,
                      [self = shared_from_this()](beast::error_code failure, std::size_t) {
                        self->response_.reset();
                        if (failure) return;
                        self->last_ ? self->end() : self->read();
                      });
  }

  /// Reads a little of what may still arrive: closing the connection earlier would lose the response.
  void end() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(patience);
    leave();
  }
  void leave() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(most_body),
                            [self = shared_from_this()](beast::error_code failure, std::size_t bytes) {
                              self->left_over_ += bytes;
                              if (!failure && self->left_over_ < most_left_over) self->leave();
                            });
  }

  beast::tcp_stream stream_;
  server server_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http_response> response_;
  bool last_ = false, bare_ = false;
  std::size_t left_over_ = 0;
};

/// Accepts connections as long as the program runs.
class listener {
 public:
  listener(tcp::acceptor& on, const connection::server& server)
      : acceptor_(on), again_(on.get_executor()), server_(server) {}
  void accept() {
    acceptor_.async_accept([this](beast::error_code failure, tcp::socket socket) {
      if (failure) {  // too many connections: some will end
        again_.expires_after(std::chrono::milliseconds(50));
        return again_.async_wait([this](beast::error_code) { accept(); });
      }
      socket.set_option(tcp::no_delay(true), failure);
      std::make_shared<connection>(std::move(socket), server_)->read();
      accept();
    });
  }

 private:
  tcp::acceptor& acceptor_;
  net::steady_timer again_;
  connection::server server_;
};

/// A text preceded by its length and followed by lists of words.
std::string message(const json& told, std::initializer_list<std::span<const std::uint32_t>> lists) {
  std::string text = told.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 3) / 4 * 4, ' ');  // words begin at a multiple of 4 bytes
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string result(sizeof(length), 0);
  std::memcpy(result.data(), &length, sizeof(length));
  result += text;
  for (const auto words : lists)
    result.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  return result;
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
    out["meshes"].push_back({{"name", all_.names[i]},
                             {"triangles", all_.meshes[i].triangles.size()},
                             {"at", options_.placement_of(i)}});
  }
  out["notes"] = notes_;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::array<double, 6> view_session::box_in_page(const bounds& box, const frame& grid) const {
  std::array<double, 6> result{};
  const double unit = frame_around(all_.first, 1).length;
  for (std::size_t k = 0; k < 3; ++k) {
    result[k] = (box.low[k] - grid.centre[k]) / unit;
    result[3 + k] = (box.high[k] - grid.centre[k]) / unit;
  }
  return result;
}

std::vector<std::size_t> view_session::bring_up(const view_request& request, const frame& grid,
                                                const std::vector<affine>& where) {
  std::vector<std::size_t> rebuilt;
  const bool surfaces = request.op == "surfaces";
  for (std::size_t i = 0; i < known_.size(); ++i) {
    known now{to_snapped(grid, where[i], all_.meshes[i]), grid.side, request.inside, false};
    auto& last = known_[i];
    const bool same = last.to_snapped == now.to_snapped && last.grid == now.grid && last.inside == now.inside;
    const bool lacks_surface = surfaces && !(same && last.has_surface);
    if (!same || lacks_surface) rebuilt.push_back(i);
    if (!same) {
      last = {};  // in case the following throws
      on_.place_mesh(i, grid.side, now.to_snapped);
      on_.make_solid(i, rule_of(request.inside));
      last = now;
    }
    if (lacks_surface) {
      on_.make_surface(i, options_.conservative);
      last.has_surface = true;
    }
  }
  return rebuilt;
}

std::uint32_t view_session::expect_valid(const view_request& request) const {
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
  return static_cast<std::uint32_t>(side);
}

std::string view_session::answer(const view_request& request) {
  const auto side = expect_valid(request);
  const std::lock_guard lock(one_at_a_time_);
  const auto start = clock::now();
  std::vector<affine> where;
  std::vector<bounds> boxes;
  for (std::size_t i = 0; i < all_.meshes.size(); ++i) {
    std::string words = options_.placement_of(i);
    if (i < request.placements.size()) words += ' ' + request.placements[i];
    where.push_back(all_.placed(i, words));
    auto& last = boxes_[i];
    if (!last || last->first != where[i]) last.emplace(where[i], bounds_of(all_.meshes[i], where[i]));
    boxes.push_back(last->second);
  }
  const auto grid = frame_about(all_.first, boxes, op_of(request.op), side);
  on_.expect_room(grid.side);
  const auto rebuilt = bring_up(request, grid, where);
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
            {"rebuilt", rebuilt},
            {"voxelise_ms", voxelised},
            {"ms", milliseconds_since(start)},
            {"boxes", json::array()},
            {"notes", json::array()}};
  for (std::size_t i = 0; i < all_.meshes.size(); ++i) {
    told["boxes"].push_back(box_in_page(boxes[i], grid));
    const auto line = remark_on_size(all_.names[i], boxes_[i]->second, grid, finest_view);
    if (!line.empty()) told["notes"].push_back(line);
  }
  if (changes) {
    told["since"] = request.since;
    told["removed"] = changes->removed.size();
    told["changed"] = changes->changed.words.size();
  }
  using words = std::span<const std::uint32_t>;
  const lit_voxels& sent = changes ? changes->changed : now.seen;
  std::string result = message(told, {changes ? words(changes->removed) : words(), sent.words, sent.around});
  answers_.push_back(std::move(now));
  if (answers_.size() > kept_answers) answers_.pop_front();
  return result;
}

void serve(view_session& session, int port, const std::function<void(const std::string& address)>& ready) {
  net::io_context context(1);
  net::thread_pool workers(1);  // a session answers one at a time
  tcp::acceptor acceptor(context);
  const tcp::endpoint here(net::ip::address_v4::loopback(), static_cast<unsigned short>(port));
  try {
    acceptor.open(here.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(here);
    acceptor.listen();
  } catch (const boost::system::system_error&) {
    throw error(fmt::format(
        "voxels: port {} of 127.0.0.1 cannot be had; end what uses it, or take --serve 0 for any", port));
  }
  const auto taken = acceptor.local_endpoint().port();
  ready(fmt::format("http://127.0.0.1:{}/", taken));
  listener connections(acceptor, {session, workers, taken});
  connections.accept();
  context.run();
}

}  // namespace roost::tools
