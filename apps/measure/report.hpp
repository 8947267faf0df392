#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "roost/error.hpp"

// The output of `roost reproduce`.

namespace roost::bench {

/// A table of the report: a title, columns and rows of text.
struct report_table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// The parts that `roost reproduce` can repeat, in this order.
inline const std::vector<std::string> reproduced_parts{
    "cuckoo", "copies", "two-kernel", "farrell", "stadium", "perfect", "solids", "matching", "sparse"};

struct reproduction {
  int builds = 1000;  // over which overfull buckets are counted
  int repetitions = 5;
  int threads = 0;
  double share = 1;                // of the papers' numbers of keys, for quick runs
  std::vector<std::string> parts;  // of reproduced_parts; empty: all
  std::function<void(const report_table&)> report;
  std::function<void(const std::string&)> progress;  // what is being measured now

  /// Whether a part was requested; reports that it is measured next.
  bool wants(const std::string& part) const {
    if (!parts.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) return false;
    if (progress) progress(part);
    return true;
  }

  std::size_t shared(std::size_t n) const {
    return std::max<std::size_t>(static_cast<std::size_t>(share * static_cast<double>(n)), 1024);
  }
};

/// Throws error if answers were wrong.
inline void check_answers(std::uint64_t wrong, const std::string& of) {
  if (wrong != 0)
    throw error("roost reproduce: " + std::to_string(wrong) + " answers of " + of + " are wrong");
}

inline std::string text(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

// Perfect spatial hashing, which is compiled separately.
void reproduce_perfect_host(const reproduction& options);
void reproduce_perfect_cuda(const reproduction& options);

// The defects of the document's table of voxels; compiled with the tables of voxels.
report_table document_defects_host(const reproduction& options);
report_table document_defects_cuda();

}  // namespace roost::bench
