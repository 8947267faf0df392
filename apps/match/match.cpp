#include "match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <roost/error.hpp>
#include <sstream>

#include "apps/shared/output_file.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/plot_script.hpp"
#include "apps/shared/text_file.hpp"
#include "match_picture.hpp"
#include "matcher.hpp"

namespace {

using json = nlohmann::ordered_json;
namespace tools = roost::tools;
using tools::grey_image;
using tools::match_result;
using tools::match_times;

constexpr int not_read = 1, no_match = 3;   // the exit codes
constexpr int no_opencv = 3, no_video = 4;  // those of scripts/opencv

struct options_of_match {
  std::string reference;
  std::vector<std::string> queries, against;
  std::string votes = "shared", points = "corners", map = "auto", format = "text", place = "auto", truth;
  std::filesystem::path out;
  tools::match_options how;
  int threads = 0, repetitions = 1;
};

/// The frames of a video, in order. Returns why it cannot be read, or an empty text.
std::string each_frame(const std::string& file, const std::function<void(const grey_image&)>& use) {
  std::string waiting;
  std::size_t taken = 0;  // bytes of `waiting` that were used
  const auto take = [&](std::string_view piece) {
    waiting.append(piece);
    while (true) {  // P5\nWIDTH HEIGHT\n255\n, then a byte a pixel
      std::size_t head = taken;
      for (int line = 0; line < 3 && head != waiting.npos; ++line) {
        head = waiting.find('\n', head);
        if (head != waiting.npos) ++head;
      }
      if (head == waiting.npos) break;
      grey_image frame;
      std::istringstream(waiting.substr(taken + 3, head - taken - 3)) >> frame.width >> frame.height;
      const std::size_t n = static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height);
      if (waiting.size() - head < n) break;
      frame.pixels.resize(n);
      for (std::size_t i = 0; i < n; ++i)
        frame.pixels[i] = static_cast<float>(static_cast<unsigned char>(waiting[head + i]));
      taken = head + n;
      use(frame);
    }
    waiting.erase(0, std::exchange(taken, 0));
  };
  const int code = run_script("opencv", {"--frames", file}, take);
  if (code == 0) return {};
  return code == no_video ? fmt::format("{}: is neither a picture nor a video that OpenCV can read", file)
                          : fmt::format(
                                "{}: is not a picture; if it is a video, install python3-opencv, or give a "
                                "folder of frames",
                                file);
}

/// Pictures in a folder, by name.
std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file() && tools::kind_of_file(entry.path().string()) != tools::file_kind::other)
      files.push_back(entry.path().string());
  }
  if (files.empty()) throw roost::invalid_argument(fmt::format("{}: has no pictures", folder));
  std::sort(files.begin(), files.end());
  return files;
}

/// The files, including those in folders.
std::vector<std::string> files_of(const std::vector<std::string>& queries) {
  std::vector<std::string> files;
  for (const auto& query : queries) {
    if (!std::filesystem::is_directory(query)) {
      // Missing or empty files are reported before anything else.
      if (tools::kind_of_file(query) == tools::file_kind::other && std::filesystem::file_size(query) == 0)
        tools::read_image(query);
      files.push_back(query);
      continue;
    }
    const auto inside = pictures_in(query);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

using use_query = std::function<void(const std::string& name, const grey_image&)>;
/// `unreadable` gets the name of a file that cannot be read, and why.
void each_query(const std::vector<std::string>& files, const use_query& use,
                const std::function<void(const std::string& name, const std::string& why)>& unreadable) {
  for (const auto& file : files) {
    const auto stem = std::filesystem::path(file).stem().string();
    std::string why;
    if (tools::kind_of_file(file) != tools::file_kind::other) {
      std::optional<grey_image> image;
      try {
        image = tools::read_image(file);
      } catch (const roost::error& e) {
        why = e.what();
      }
      if (image) use(stem, *image);
    } else {
      int number = 0;
      why = each_frame(file, [&](const auto& frame) { use(fmt::format("{}:{}", stem, number++), frame); });
    }
    if (!why.empty()) unreadable(stem, why);
  }
}

/// A known homography from query to reference.
using truth_matrix = std::array<double, 9>;
truth_matrix read_truth(const std::string& file) {
  std::istringstream text(tools::read_text(file));
  truth_matrix h{};
  std::string more;
  for (double& number : h) text >> number;
  if (!text || (text >> more)) {
    throw roost::invalid_argument(fmt::format(
        "{}: should have the nine numbers of a homography from query to reference, row by row", file));
  }
  if (h[0] * (h[4] * h[8] - h[5] * h[7]) - h[1] * (h[3] * h[8] - h[5] * h[6]) +
          h[2] * (h[3] * h[7] - h[4] * h[6]) ==
      0)
    throw roost::invalid_argument(fmt::format("{}: is not a homography: its determinant is 0", file));
  return h;
}

std::vector<tools::image_point> corners_of(const grey_image& image) {
  const auto right = static_cast<float>(image.width - 1), down = static_cast<float>(image.height - 1);
  return {{0, 0}, {right, 0}, {right, down}, {0, down}};
}
/// The mean error of the query's corners, in pixels of the reference.
double corners_off(const tools::plane_map& s, const truth_matrix& h, const grey_image& query) {
  double sum = 0;
  for (const auto& p : corners_of(query)) {
    const auto at = s(p);
    const double w = h[6] * p.x + h[7] * p.y + h[8];
    sum +=
        std::hypot(at.x - (h[0] * p.x + h[1] * p.y + h[2]) / w, at.y - (h[3] * p.x + h[4] * p.y + h[5]) / w);
  }
  return sum / 4;
}
truth_matrix matrix_of(const tools::plane_map& map) {
  truth_matrix h;
  std::copy(std::begin(map.m), std::end(map.m), h.begin());
  return h;
}

constexpr const char* map_names[] = {"similarity", "affine", "perspective"};
const char* name_of(tools::map_kind kind) { return map_names[static_cast<std::size_t>(kind)]; }

/// The results of OpenCV's SIFT, a line for the reference and one for each query.
std::vector<json> run_sift(const options_of_match& options, const std::vector<std::string>& files) {
  std::vector<std::string> arguments{"--sift", std::to_string(options.threads == 0 ? -1 : options.threads),
                                     options.reference};
  arguments.insert(arguments.end(), files.begin(), files.end());
  std::string text;
  const int code = run_script("opencv", arguments, [&](std::string_view piece) { text += piece; });
  if (code == no_video)
    throw roost::invalid_argument("match: OpenCV cannot read one of the files; --against sift takes no FITS");
  if (code != 0) {
    throw roost::error("match: --against sift needs OpenCV; install python3-opencv");
  }
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}
std::optional<tools::similarity> similarity_of_sift(const json& line) {
  if (!line.at("matched").get<bool>()) return std::nullopt;
  return tools::similarity{line.at("a"), line.at("b"), line.at("x"), line.at("y")};
}

double rounded(double number, double digits) { return std::round(number * digits) / digits; }

json as_json(const match_times& t, bool table) {
  json result{{"points", rounded(t.points, 1e4)}, {"bases", rounded(t.bases, 1e4)}};
  if (table) {
    result["table"] = rounded(t.table, 1e4);
  } else {
    result["votes"] = rounded(t.votes, 1e4);
    result["verify"] = rounded(t.verify, 1e4);
  }
  result["all"] = rounded(t.all(), 1e4);
  return result;
}
std::string as_text(const match_times& t, bool table) {
  return fmt::format("points {:.3f}, bases {:.3f}, {}: {:.3f} ms", t.points, t.bases,
                     table ? fmt::format("table {:.3f}", t.table)
                           : fmt::format("votes {:.3f}, verification {:.3f}", t.votes, t.verify),
                     t.all());
}
double votes_a_second(const match_result& r) {
  return r.times.votes > 0 ? static_cast<double>(r.votes) / r.times.votes * 1e3 : 0;
}
double turn_of(const tools::similarity& s) { return std::atan2(s.b, s.a) * 57.29577951308232; }

/// Makes matchers of the reference, with a hash table or with a sorted list.
class matchers {
 public:
  explicit matchers(const options_of_match& options)
      : options_(options), place_(roost::choose_place(options.place)) {}

  const std::string& place() const { return place_; }

  /// The times are medians of several builds.
  void with(const grey_image& reference, bool sorted,
            const std::function<void(const tools::matcher&, const match_times&)>& use) const {
    tools::match_options how = options_.how;
    how.sorted = sorted;
    std::vector<match_times> runs;
    for (int i = 1; i < options_.repetitions; ++i)
      make(reference, how, [&](const tools::matcher& m) { runs.push_back(m.times()); });
    make(reference, how, [&](const tools::matcher& m) {
      runs.push_back(m.times());
      use(m, tools::median_of(runs));
    });
  }

 private:
  void make(const grey_image& reference, const tools::match_options& how,
            const tools::use_matcher& use) const {
    place_ == "cuda" ? tools::with_matcher_on_cuda(reference, how, use)
                     : tools::with_matcher_on_host(options_.threads, reference, how, use);
  }
  const options_of_match& options_;
  std::string place_;
};

/// Small pictures of queries, evenly spaced among all queries, however many there are.
class samples {
 public:
  template <class Draw>
  void offer(const Draw& draw) {
    if (seen_++ % apart_ != 0) return;
    if (pictures_.size() == most) {
      for (std::size_t i = 1; i < most / 2; ++i) pictures_[i] = std::move(pictures_[2 * i]);
      pictures_.resize(most / 2);
      apart_ *= 2;
      if ((seen_ - 1) % apart_ != 0) return;
    }
    pictures_.push_back(draw());
  }
  const std::vector<tools::picture>& pictures() const { return pictures_; }

 private:
  static constexpr std::size_t most = 64;
  std::size_t seen_ = 0, apart_ = 1;
  std::vector<tools::picture> pictures_;
};

/// Matches every query, and reports the results.
class match_run {
 public:
  explicit match_run(const options_of_match& options)
      : options_(options),
        as_json_(options.format == "json"),
        files_(files_of(options.queries)),
        reference_(tools::read_image(options.reference)) {
    if (!options.truth.empty()) truth_ = read_truth(options.truth);
    for (const auto& other : options.against) (other == "sift" ? sift_ : sorted_) = true;
    if (options.out.empty()) return;
    tools::make_folder(options.out);
    std::vector<std::string> inputs = files_, outputs{(options.out / "sheet.png").string()};
    inputs.insert(inputs.end(), {options.reference, options.truth});
    one_picture_ = files_.size() == 1 && tools::kind_of_file(files_[0]) != tools::file_kind::other;
    if (one_picture_) {
      const auto name = (options.out / std::filesystem::path(files_[0]).stem()).string();
      outputs = {name + ".png", name + ".votes.csv", name + ".votes.png"};
    }
    tools::expect_other_files(outputs, inputs);
  }

  /// Returns the exit code.
  int run() {
    const matchers all(options_);
    all.with(reference_, false, [&](const tools::matcher& table, const match_times& times) {
      if (table.facts().bases == 0) {
        throw roost::invalid_argument(fmt::format(
            "{}: has {} points on its edges and no bases; take a picture with more contrast or a smaller "
            "--threshold",
            options_.reference, table.facts().points));
      }
      tell_reference(table, times, all.place());
      if (sift_) sift_lines_ = run_sift(options_, files_);
      if (!sorted_) return each(table, nullptr);
      all.with(reference_, true, [&](const tools::matcher& list, const match_times& list_times) {
        tell_sorted(list_times);
        each(table, &list);
      });
    });
    return wrong_ != 0 ? 2 : unread_ != 0 ? not_read : matched_ != queries_ ? no_match : 0;
  }

 private:
  template <class... A>
  void say(fmt::format_string<A...> text, A&&... arguments) const {
    if (as_json_) return;
    fmt::print("{}\n", fmt::format(text, std::forward<A>(arguments)...));
    std::fflush(stdout);
  }

  void tell_reference(const tools::matcher& table, const match_times& times, const std::string& place) {
    const auto& f = table.facts();
    const double mean = static_cast<double>(f.items) / static_cast<double>(f.keys);
    out_["reference"] = {{"file", options_.reference},
                         {"width", reference_.width},
                         {"height", reference_.height},
                         {"points", f.points},
                         {"bases", f.bases},
                         {"items", f.items},
                         {"keys", f.keys},
                         {"values_a_key", rounded(mean, 100)},
                         {"most_values", f.most},
                         {"bytes", f.bytes},
                         {"milliseconds", as_json(times, true)}};
    out_["place"] = place;
    out_["votes"] = options_.votes;
    out_["queries"] = json::array();
    say("{}: {} x {}; k = {} points, n = {} bases, {} items, {} keys, {:.1f} values a key, {} at most; "
        "{:.1f} "
        "MiB",
        options_.reference, reference_.width, reference_.height, f.points, f.bases, f.items, f.keys, mean,
        f.most, static_cast<double>(f.bytes) / (1 << 20));
    say("  built on {}: {}", place, as_text(times, true));
  }

  void tell_sorted(const match_times& times) {
    out_["sorted"] = {{"milliseconds", as_json(times, true)}};
    say("  sorted list: {}", as_text(times, true));
  }

  void each(const tools::matcher& table, const tools::matcher* list) {
    if (sift_) {
      const auto& own = sift_lines_.at(0);
      out_["sift"] = {{"points", own["points"]}, {"milliseconds", rounded(own["points_ms"], 1e4)}};
      say("  SIFT: {} points: {:.3f} ms", own["points"].get<int>(), own["points_ms"].get<double>());
    }
    const auto start = std::chrono::steady_clock::now();
    const auto match_one = [&](const std::string& name, const grey_image& query) {
      const match_result result = repeated(table, query);
      json facts = tell(name, query, result);
      if (list != nullptr) {
        const match_result other = repeated(*list, query);
        facts["sorted"] = {{"milliseconds", as_json(other.times, false)}};
        all_sorted_ += other.times.all();
        if (other.votes != result.votes || other.best_votes != result.best_votes) {
          ++wrong_;
          fmt::print(stderr, "roost: {}: the sorted list has other votes than the table\n", name);
        }
        say("  sorted list: {}", as_text(other.times, false));
      }
      if (sift_) tell_sift(sift_lines_.at(1 + queries_ + unread_), query, result, facts);
      out_["queries"].push_back(std::move(facts));
      if (!options_.out.empty()) draw(name, query, result);
      ++queries_;
      matched_ += result.matched ? 1 : 0;
      all_ += result.times.all();
    };
    each_query(files_, match_one, [&](const std::string& name, const std::string& why) {
      if (files_.size() == 1) throw roost::invalid_argument(why);
      ++unread_;
      fmt::print(stderr, "roost: {}\n", why);
      out_["queries"].push_back({{"name", name}, {"matched", false}, {"error", why}});
    });
    if (queries_ != 0 && queries_ + unread_ > 1) {
      const auto n = static_cast<double>(queries_);
      const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
      json summary{{"queries", queries_},
                   {"matched", matched_},
                   {"milliseconds_a_query", rounded(all_ / n, 1e4)},
                   {"seconds_with_files", rounded(whole.count(), 1e4)}};
      say("{} of {} queries match; {:.3f} ms a query, {:.1f} a second; {:.1f} a second with reading and "
          "writing files",
          matched_, queries_, all_ / n, n / all_ * 1e3, n / whole.count());
      if (list != nullptr) {
        summary["milliseconds_a_query_sorted"] = rounded(all_sorted_ / n, 1e4);
        say("sorted list: {:.3f} ms a query", all_sorted_ / n);
      }
      if (sift_) {
        summary["matched_by_sift"] = sift_matched_;
        summary["milliseconds_a_query_sift"] = rounded(all_sift_ / n, 1e4);
        say("SIFT: {} of {} queries match; {:.3f} ms a query", sift_matched_, queries_, all_sift_ / n);
      }
      out_["summary"] = std::move(summary);
      if (!options_.out.empty())
        tools::write_png(tools::contact_sheet(sheet_.pictures()), options_.out / "sheet.png");
    }
    if (as_json_) fmt::print("{}\n", out_.dump(2, ' ', false, json::error_handler_t::replace));
  }

  match_result repeated(const tools::matcher& matcher, const grey_image& query) const {
    std::vector<match_times> runs;
    for (int i = 1; i < options_.repetitions; ++i) runs.push_back(matcher.match(query).times);
    match_result result = matcher.match(query);
    runs.push_back(result.times);
    result.times = tools::median_of(runs);
    return result;
  }

  static tools::similarity similarity_of(const match_result& r) {
    const auto& m = r.to_reference.m;
    return {m[0], m[3], m[2], m[5]};
  }
  static json map_facts(const grey_image& query, const match_result& r) {
    json facts{{"map", name_of(r.map)}, {"matrix", r.to_reference.m}, {"corners", json::array()}};
    for (const auto& p : corners_of(query)) {
      const auto at = r.to_reference(p);
      facts["corners"].push_back({at.x, at.y});
    }
    if (r.map != tools::map_kind::similarity) return facts;
    const auto s = similarity_of(r);
    facts.update(json{{"a", s.a},
                      {"b", s.b},
                      {"x", s.x},
                      {"y", s.y},
                      {"scale", std::hypot(s.a, s.b)},
                      {"turn_degrees", turn_of(s)}});
    return facts;
  }
  static std::string map_text(const grey_image& query, const match_result& r) {
    std::string text = name_of(r.map);
    if (r.map == tools::map_kind::similarity) {
      const auto s = similarity_of(r);
      text = fmt::format("scale {:.4f}, turn {:.2f} degrees, shift {:.1f} {:.1f}", std::hypot(s.a, s.b),
                         turn_of(s), s.x, s.y);
    }
    text += "; corners at";
    for (const auto& p : corners_of(query)) {
      const auto at = r.to_reference(p);
      text += fmt::format(" ({:.1f}, {:.1f})", at.x, at.y);
    }
    return text;
  }

  json tell(const std::string& name, const grey_image& query, const match_result& r) const {
    json facts{{"name", name},
               {"width", query.width},
               {"height", query.height},
               {"points", r.points},
               {"bases", r.bases},
               {"looks", r.looks},
               {"votes", r.votes},
               {"most_votes", r.most_votes},
               {"votes_a_second", std::round(votes_a_second(r))},
               {"matched", r.matched},
               {"placements", r.matched || r.placements > 1 ? r.placements : 0}};
    std::string found =
        r.placements > 1 ? fmt::format("no match: {} placements are equally good", r.placements) : "no match";
    if (r.matched) {
      facts.update(map_facts(query, r));
      facts.update(json{{"inliers", r.inliers},
                        {"covered", r.covered},
                        {"alike", r.alike},
                        {"compared", r.compared},
                        {"rms_px", rounded(r.rms, 1e3)},
                        {"log10_chance", rounded(r.log10_chance, 10)}});
      found = fmt::format(
          "{}; {} of {} points fit, {:.2f} pixels off (RMS); {} of {} look alike; chance 10^{:.0f}",
          map_text(query, r), r.inliers, r.covered, r.rms, r.alike, r.compared, r.log10_chance);
      if (truth_) {
        const double off = corners_off(r.to_reference, *truth_, query);
        facts["corners_off_px"] = rounded(off, 1e3);
        found += fmt::format("; corners {:.2f} pixels off", off);
      }
    }
    facts["milliseconds"] = as_json(r.times, false);
    say("{}: {}", name, found);
    say("  {} points, m = {} bases, {} looks; {:.1f} million votes, {} at most; {}; {:.2f} G votes a second",
        r.points, r.bases, r.looks, static_cast<double>(r.votes) / 1e6, r.most_votes, as_text(r.times, false),
        votes_a_second(r) / 1e9);
    return facts;
  }

  void tell_sift(const json& line, const grey_image& query, const match_result& result, json& facts) {
    const auto found = similarity_of_sift(line);
    const double ms = line["points_ms"].get<double>() + line["match_ms"].get<double>();
    all_sift_ += ms;
    sift_matched_ += found ? 1 : 0;
    auto& told = facts["sift"] = {{"matched", found.has_value()},
                                  {"points", line["points"]},
                                  {"inliers", line["inliers"]},
                                  {"milliseconds", rounded(ms, 1e4)}};
    std::string text = "no match";
    if (found) {
      text = fmt::format(
          "scale {:.4f}, turn {:.2f} degrees, shift {:.1f} {:.1f}; {} points fit, {:.2f} pixels off (RMS)",
          std::hypot(found->a, found->b), turn_of(*found), found->x, found->y, line["inliers"].get<int>(),
          line["rms"].get<double>());
      told["rms_px"] = rounded(line["rms"], 1e3);
      if (truth_) {
        told["corners_off_px"] = rounded(corners_off(*found, *truth_, query), 1e3);
        text += fmt::format("; corners {:.2f} pixels off", corners_off(*found, *truth_, query));
      }
      if (result.matched) {
        const double apart = corners_off(result.to_reference, matrix_of(*found), query);
        told["corners_apart_px"] = rounded(apart, 1e3);
        text += fmt::format("; corners {:.2f} pixels from ours", apart);
      }
    }
    say("  SIFT: {}; {:.3f} ms", text, ms);
  }

  void draw(const std::string& name, const grey_image& query, const match_result& result) {
    sheet_.offer([&] { return tools::draw_found(reference_, query, result, 240); });
    if (!one_picture_) return;
    tools::write_png(tools::draw_match(reference_, query, result), options_.out / (name + ".png"));
    const auto votes = (options_.out / (name + ".votes.csv")).string();
    tools::output_file csv(votes);
    csv.write("basis,votes\n");
    for (std::size_t i = 0; i < result.best_votes.size(); ++i)
      csv.write(fmt::format("{},{}\n", i, result.best_votes[i]));
    csv.finish();
    if (result.best_votes.empty()) return;  // nothing to draw
    run_plot({"--votes", votes, (options_.out / (name + ".votes.png")).string()});
  }

  const options_of_match& options_;
  bool as_json_, sift_ = false, sorted_ = false, one_picture_ = false;
  std::vector<std::string> files_;
  grey_image reference_;
  std::optional<truth_matrix> truth_;
  std::vector<json> sift_lines_;
  json out_;
  samples sheet_;
  std::size_t queries_ = 0, matched_ = 0, sift_matched_ = 0, unread_ = 0, wrong_ = 0;
  double all_ = 0, all_sorted_ = 0, all_sift_ = 0;
};

void match(options_of_match& options) {
  options.how.votes = options.votes == "global" ? tools::vote_way::global : tools::vote_way::shared;
  options.how.corners = options.points == "corners";
  const auto kind = std::find(std::begin(map_names), std::end(map_names), options.map);
  if (kind != std::end(map_names)) options.how.map = static_cast<tools::map_kind>(kind - map_names);
  // A validator of CLI11 would accept nan.
  const auto expect = [](const char* name, double value, double least, double most) {
    if (value >= least && value <= most) return;
    throw roost::invalid_argument(
        fmt::format("match: {} is {:.6g}; give a number from {} to {}", name, value, least, most));
  };
  expect("--share", options.how.share, 1e-6, 1);
  expect("--threshold", static_cast<double>(options.how.threshold), 0, 255);
  expect("--longest", static_cast<double>(options.how.longest), 0.13, 1);
  expect("--units", static_cast<double>(options.how.units), 4, static_cast<double>(tools::units_most));
  const int code = match_run(options).run();
  if (code != 0) throw CLI::RuntimeError(code);
}

/// Options for how queries are matched.
void add_ways(CLI::App& command, options_of_match& options) {
  command
      .add_option(
          "--votes", options.votes,
          "How bases vote: into one array in global memory, as the paper does, or each in shared memory")
      ->check(CLI::IsMember({"global", "shared"}))
      ->capture_default_str();
  command
      .add_option(
          "--against", options.against,
          "Does the same by a sorted list (the paper's competitor), or by OpenCV's SIFT, and prints both")
      ->check(CLI::IsMember({"sorted", "sift"}))
      ->allow_extra_args(false);  // the following arguments are pictures
  command
      .add_option("--points", options.points,
                  "Which points of edges: those where an edge turns, or the strongest, as in the paper")
      ->check(CLI::IsMember({"corners", "edges"}))
      ->capture_default_str();
  command
      .add_option("--map", options.map,
                  "How a query maps to the reference: rotation, scale and shift, as in the paper; an affine "
                  "map; a homography; or the simplest of these that fits")
      ->check(CLI::IsMember({"auto", "similarity", "affine", "perspective"}))
      ->capture_default_str();
  command.add_option("--k", options.how.points, "Number of points of a picture, at most")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  command.add_option("--m", options.how.query_bases, "Number of the query's bases that vote, about")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command.add_option("--share", options.how.share, "Share of the reference's pairs that become bases")
      ->capture_default_str();
  command
      .add_option("--longest", options.how.longest,
                  "Length of the longest bases, as a part of the picture's diagonal; the shortest have 0.12")
      ->capture_default_str();
  command
      .add_option("--units", options.how.units,
                  "Length of a basis, in the units to which coordinates are rounded")
      ->capture_default_str();
  command
      .add_option("--threshold", options.how.threshold,
                  "Least gradient of an edge, in shades (of 256) a pixel; 0: 1")
      ->capture_default_str();
  command.add_option("--seed", options.how.seed, "Which pairs of points become bases")->capture_default_str();
}

}  // namespace

#if !ROOST_WITH_CUDA
void roost::tools::with_matcher_on_cuda(const grey_image&, const match_options&, const use_matcher&) {
}  // never called
#endif

void add_match(CLI::App& app) {
  auto options = std::make_shared<options_of_match>();
  CLI::App* const command = app.add_subcommand("match",
                                               "Finds pictures in a reference picture by geometric hashing: "
                                               "rotated, scaled, shifted, or seen obliquely; exit code 3 if "
                                               "one does not match, 1 if one cannot be read");
  command->add_option("reference", options->reference, "Picture: PNG, JPEG, PGM, FITS ...")->required();
  command
      ->add_option("queries", options->queries,
                   "Pictures, folders of pictures, and videos (these through OpenCV, where it is installed)")
      ->required();
  add_ways(*command, *options);
  command->add_option("--truth", options->truth,
                      "File with the nine numbers of the homography from query to reference, if it is known: "
                      "prints how far corners are off");
  command->add_option("--out", options->out,
                      "Directory for pictures: NAME.png (the query on the reference) and NAME.votes.png; of "
                      "several queries sheet.png");
  command->add_option("--reps", options->repetitions, "Number of timed runs; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--format", options->format, "Format of the report")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  roost::add_place_options(*command, options->place, options->threads);
  command->footer(
      "Examples:\n"
      "  roost match wall.jpg photographs --out found\n"
      "  roost match wall.jpg film.mp4 --format json\n"
      "  roost match wall.jpg photograph.jpg --points edges --longest 0.7 --units 16 --votes global");
  command->callback([options] { match(*options); });
}
