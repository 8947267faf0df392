// One table in several parts, here of this machine's memory: visits to a site, logged
// by three servers. With roost::gpus in place of roost::host_shards the parts are on
// GPUs (several_gpus.cu).
#include <cstdint>
#include <cstdio>
#include <map>
#include <roost/roost.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_multimap.hpp>
#include <roost/shards/shards.hpp>
#include <set>
#include <vector>

int main() {
  // Of each server the visitors of a day, and what each visit cost, in cents.
  constexpr std::size_t servers = 3;
  std::vector<std::vector<std::uint64_t>> visitors(servers);
  std::vector<std::vector<float>> costs(servers);
  for (std::uint64_t i = 0; i < 300000; ++i) {
    visitors[i % servers].push_back(i * 7919 % 50021);
    costs[i % servers].push_back(static_cast<float>(i % 100));
  }

  // Each shard has a range: visitors[0], visitors[1], visitors[2].
  roost::host_shards shards(servers);
  const auto distinct = roost::unique(shards, visitors);  // an array for each
  // Sums of all servers together.
  const auto sums = roost::group_by(shards, visitors, costs, roost::plus());
  const roost::sharded_index index(shards, visitors);  // 0, 1, ... for all servers
  const roost::sharded_multimap visits(shards, visitors, costs);
  std::vector<std::vector<std::uint32_t>> counts{{0}, {}, {0, 0}};
  // The queries of each shard, as many as it has.
  const std::vector<std::vector<std::uint64_t>> queries{{7}, {}, {8, 99999}};
  visits.count(shards, queries, counts);

  std::set<std::uint64_t> different;
  std::map<std::uint64_t, double> cost_of;
  for (std::size_t s = 0; s < servers; ++s) {
    for (std::size_t i = 0; i < visitors[s].size(); ++i)
      cost_of[visitors[s][i]] += costs[s][i];
    for (const std::uint64_t v : distinct[s]) different.insert(v);
  }
  std::size_t groups = 0, wrong = 0;
  for (const auto& of_shard : sums) {
    groups += of_shard.size();
    for (std::size_t g = 0; g < of_shard.size(); ++g)
      wrong += of_shard.values[g] != static_cast<float>(cost_of[of_shard.keys[g]]);
  }
  std::printf("%zu visitors; number 7 came %u times, number 8 %u times\n", index.size(),
              counts[0][0], counts[2][0]);

  const bool right = wrong == 0 && groups == cost_of.size() &&
                     different.size() == groups && index.size() == groups &&
                     counts[2][1] == 0 && counts[0][0] > 0 && index.valid(shards);
  std::puts(right ? "shards: right" : "shards: wrong answers");
  return right ? 0 : 1;
}
