#pragma once

#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <string>
#include <utility>

#include "apps/shared/output_file.hpp"
#include "apps/shared/text_file.hpp"
#include "roost/host.hpp"

namespace roost::tools {

/// Makes the text of n rows with several threads, calling add(text, i) for each, and writes it in order.
/// `row_bytes`: about how long a row is, so that only a few long rows are made at a time.
template <class Add>
void write_rows(const host& cpu, output_file& out, std::size_t n, const Add& add, std::size_t row_bytes = 0) {
  constexpr std::size_t most_rows = 8192, bytes_at_once = std::size_t{4} << 20;
  const auto rows_at_once =
      std::clamp<std::size_t>(bytes_at_once / std::max<std::size_t>(row_bytes, 1), 1, most_rows);
  std::size_t next = 0;
  const auto first = [&](tbb::flow_control& control) {
    if (next >= n) control.stop();
    return std::exchange(next, next + rows_at_once);
  };
  const auto make = [&](std::size_t begin) {
    std::string text;
    for (auto i = begin; i < std::min(n, begin + rows_at_once); ++i) add(text, i);
    return text;
  };
  const auto write = [&](const std::string& text) { out.write(text); };
  using tbb::filter_mode;
  cpu.execute([&] {
    tbb::parallel_pipeline(static_cast<std::size_t>(2 * cpu.threads() + 1),
                           tbb::make_filter<void, std::size_t>(filter_mode::serial_in_order, first) &
                               tbb::make_filter<std::size_t, std::string>(filter_mode::parallel, make) &
                               tbb::make_filter<std::string, void>(filter_mode::serial_in_order, write));
  });
}

}  // namespace roost::tools
