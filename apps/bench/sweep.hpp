#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "apps/measure/run.hpp"

// Sweeps over sizes: which sizes, and where the rate falls off.

namespace roost::bench {

/// How often keys occur in a sweep of repeated keys, as --copies takes it.
inline const std::vector<std::string> swept_copies{"1",  "2",  "3",    "4",          "8",
                                                   "16", "64", "1024", "10000_keys", "zipf"};

/// Rates of a sweep, by size.
class swept_rates {
 public:
  void add(const row& r) { rates_[{r.table, r.op, r.copies}][r.n] = r.gops; }

  /// A line for each point below `share` of the mean of its neighbours in size.
  std::vector<std::string> cliffs(double share = 0.7) const {
    std::vector<std::string> result;
    for (const auto& [what, points] : rates_) {
      if (points.size() < 3) continue;
      for (auto before = points.begin(), at = std::next(before), after = std::next(at); after != points.end();
           ++before, ++at, ++after) {
        const double mean = (before->second + after->second) / 2;
        if (at->second >= share * mean) continue;
        const auto& [table, op, copies] = what;
        result.push_back(
            fmt::format("{} {}, copies {}, n = 2^{:.1f}: {:.3g} G/s; its neighbours {:.3g} and {:.3g}", table,
                        op, copies, std::log2(at->first), at->second, before->second, after->second));
      }
    }
    return result;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::map<std::size_t, double>> rates_;
};

}  // namespace roost::bench
