#include "sparse_paper.hpp"

#include "apps/measure/clouds.hpp"
#include "apps/measure/run.hpp"

namespace {

using namespace roost::bench;

/// The times measured for a cloud: "table op" -> milliseconds.
std::map<std::string, double> times_of(const cloud& voxels, const reproduction& options, bool on_cuda,
                                       int threads, const std::vector<std::string>& tables) {
  settings what;
  what.tables = tables;
  what.ops = {"build", "map"};
  what.threads = threads;
  what.warm_ups = 1;
  what.repetitions = options.repetitions;
  std::map<std::string, double> result;
  what.report = [&](const row& r) {
    if (r.check != "ok") throw roost::error("roost reproduce: answers of " + r.table + ": " + r.check);
    result[r.table + " " + r.op] = r.median_ms;
  };
  on_cuda ? measure_voxels_cuda(what, "shell", voxels) : measure_voxels_host(what, "shell", voxels);
  return result;
}

}  // namespace

void reproduce_sparse(const reproduction& options, const std::string& place) {
  const bool on_cuda = place == "cuda";
  report_table bulk{
      "The hash table of submanifold convolution: a sphere's surface, ms on one core and in bulk (the "
      "document has no figures)",
      {"voxels", "the document's table, one core: insertions", "27 neighbours of each", "in bulk: insertions",
       "27 neighbours of each", "coordinate_index: build", "kernel_map: 27 neighbours"},
      {}};
  for (const std::size_t n : {100'000, 1'000'000, 10'000'000}) {
    if (n > 1'000'000 && !on_cuda) continue;
    const cloud voxels = scrambled(shell_cloud(options.shared(n)));
    auto one = times_of(voxels, options, false, 1, {"document_table"});
    auto all = times_of(voxels, options, on_cuda, options.threads,
                        {"document_table", "coordinate_index", "kernel_map"});
    std::vector<std::string> line{std::to_string(voxels.size())};
    for (const double ms :
         {one["document_table build"], one["document_table map"], all["document_table build"],
          all["document_table map"], all["coordinate_index build"], all["kernel_map map"]})
      line.push_back(text(ms, 3));
    bulk.rows.push_back(line);
  }
  options.report(bulk);
  options.report(on_cuda ? document_defects_cuda() : document_defects_host(options));
}
