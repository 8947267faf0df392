#include "match_paper.hpp"

#include <cmath>

#include "drawn_scene.hpp"

namespace {

namespace tools = roost::tools;
using roost::bench::text;
constexpr int scene_width = 640, scene_height = 480;

struct data_set {
  const char* name;
  double items;               // of the paper
  const char *hash, *sorted;  // ms
};
constexpr data_set data_sets[] = {{"Persepolis (Figure 8)", 3.02e6, "2377", "2858"},
                                  {"Kremlin", 4e6, "3025", "4969"},
                                  {"Taj Mahal", 0.44e6, "1437", "1735"},
                                  {"Easter Island", 0.55e6, "1721", "2095"}};

struct measured {
  tools::match_facts facts;
  tools::match_times build, match;
  tools::match_result result;
};

/// How far a corner is from its correct position, in pixels.
std::string corner_off(const tools::match_result& result, const tools::similarity& truth) {
  if (!result.matched) return "no match";
  double most = 0;
  for (const float x : {0.f, scene_width - 1.f}) {
    for (const float y : {0.f, scene_height - 1.f}) {
      const auto a = result.to_reference({x, y}), b = truth({x, y});
      most = std::max<double>(most, std::hypot(a.x - b.x, a.y - b.y));
    }
  }
  return text(most, 2);
}

measured measure_matching(const tools::grey_image& reference, const tools::grey_image& query,
                          const tools::match_options& how, const roost::bench::reproduction& options,
                          const std::string& place) {
  measured found;
  std::vector<tools::match_times> builds, matches;
  const auto use = [&](const tools::matcher& matcher) {
    builds.push_back(matcher.times());
    found.facts = matcher.facts();
    found.result = matcher.match_once(query);
    matches.push_back(found.result.times);
  };
  for (int i = 0; i < options.repetitions; ++i) {
    place == "cuda" ? tools::with_matcher_on_cuda(reference, how, use)
                    : tools::with_matcher_on_host(options.threads, reference, how, use);
  }
  found.build = tools::median_of(builds);
  found.match = tools::median_of(matches);
  return found;
}

}  // namespace

void reproduce_matching(const roost::bench::reproduction& options, const std::string& place) {
  const tools::drawn_scene world(8, scene_width, scene_height);
  const tools::similarity same,
      seen = tools::around_middle(0.9f, 0.1f, 8, -5, scene_width, scene_height, scene_width, scene_height);
  const auto reference = photograph(world, same, scene_width, scene_height),
             query = photograph(world, seen, scene_width, scene_height, 0.8f, 3);

  const auto measured_as = [&](const tools::match_options& how) {
    return measure_matching(reference, query, how, options, place);
  };
  roost::bench::report_table facts{
      "Alcantara et al. 2009, Table 1: what the tables hold (Figure 8: 18 values a key, 947 at most; "
      "Kremlin: 105, "
      "5813)",
      {"stand-in for", "items, paper", "items", "k", "n", "m", "keys", "values a key", "at most",
       "million votes"},
      {}};
  roost::bench::report_table times{
      "Alcantara et al. 2009, Table 1: a picture found in another, ms (their times: GeForce GTX 280)",
      {"stand-in for", "hash, paper", "sorted, paper", "build", "hash", "sorted: build", "sorted",
       "hash, votes in shared memory", "corners off, pixels"},
      {}};
  for (const auto& set : data_sets) {
    tools::match_options how;
    how.map = tools::map_kind::similarity;
    how.corners = false;  // the points are the strongest edges
    how.longest = 0.7f;
    how.units = 16;
    how.votes = tools::vote_way::global;
    // k points have 0.85 k^2 / 3 bases, each of which sees k - 2 points.
    how.points = static_cast<int>(std::lround(std::cbrt(set.items * options.share * 3 / 0.85)));
    how.query_bases = how.points * how.points / 4;  // about as many as the reference's
    const measured hash = measured_as(how);
    how.sorted = true;
    const measured sorted = measured_as(how);
    how.sorted = false;
    how.votes = tools::vote_way::shared;
    const measured shared = measured_as(how);
    for (const auto* other : {&sorted, &shared})
      roost::bench::check_answers(other->result.best_votes != hash.result.best_votes, "geometric hashing");

    const auto& f = hash.facts;
    facts.rows.push_back({set.name, text(set.items, 0), std::to_string(f.items), std::to_string(f.points),
                          std::to_string(f.bases), std::to_string(hash.result.bases), std::to_string(f.keys),
                          text(static_cast<double>(f.items) / static_cast<double>(f.keys), 1),
                          std::to_string(f.most), text(static_cast<double>(hash.result.votes) / 1e6, 1)});
    times.rows.push_back({set.name, set.hash, set.sorted, text(hash.build.table, 3),
                          text(hash.match.all(), 3), text(sorted.build.table, 3), text(sorted.match.all(), 3),
                          text(shared.match.all(), 3), corner_off(hash.result, seen)});
  }
  options.report(facts);
  options.report(times);
}
