#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

// What `roost reproduce` prints.

namespace roost::bench {

/// A table of the report: a title, columns and rows of text.
struct report_table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct reproduction {
  int builds = 1000;  // to count overfull buckets over
  int repetitions = 5;
  int threads = 0;
  std::function<void(const report_table&)> report;
};

inline std::string text(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

}  // namespace roost::bench
