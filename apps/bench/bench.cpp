#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "apps/bench/peers/peers.hpp"
#include "apps/bench/sweep.hpp"
#include "apps/measure/clouds.hpp"
#include "apps/measure/run.hpp"
#include "apps/shared/info.hpp"
#include "apps/shared/place_choice.hpp"
#include "apps/shared/progress_line.hpp"
#include "roost/frozen_map.hpp"

namespace {

using roost::bench::key_copies;
using roost::bench::key_pattern;
using roost::bench::query_pattern;
using roost::bench::row;
using roost::bench::settings;

const std::map<std::string, roost::residence> residences{{"automatic", roost::residence::automatic},
                                                         {"place", roost::residence::place},
                                                         {"host", roost::residence::host}};

const std::map<std::string, key_pattern> key_patterns{{"mixed", key_pattern::mixed},
                                                      {"consecutive", key_pattern::consecutive},
                                                      {"strided", key_pattern::strided},
                                                      {"voxels", key_pattern::voxels}};
const std::map<std::string, query_pattern> query_patterns{
    {"shuffled", query_pattern::shuffled}, {"zipf", query_pattern::zipf}, {"equal", query_pattern::equal}};

struct bench_options : settings {
  std::vector<std::string> copies_names{"8"};
  std::vector<std::string> bodies_names{"automatic"};
  std::string place = "auto";
  std::string format = "table";
  std::string keys_name = "mixed";
  std::string queries_name = "shuffled";
  std::string path_name = "automatic";
  int gpus = 0;
  bool steps = false;
  bool sweep = false;
  bool ops_given = false, copies_given = false;
};

const std::vector<std::string> operations{
    "build",    "rebuild",     "first_build",   "find_hit",  "find_half",  "find_miss",  "partition",
    "insert",   "insert_half", "insert_last",   "erase",     "apply_many", "apply_few",  "mixed",
    "grow",     "load_curve",  "churn",         "group",     "count_hit",  "count_half", "count_miss",
    "retrieve", "join",        "map",           "index_map", "pairs",      "stride_2",   "graph",
    "conv",     "map_conv",    "stride_2_conv", "gradients"};

/// The operations of tables without `build` and lookups.
const std::map<std::string, std::vector<std::string>> operations_of_tables{
    {"partition", {"partition"}},
    {"partition_stable", {"partition"}},
    {"kernel_map", {"map", "index_map", "pairs", "stride_2", "graph"}},
    {"sparse_conv", {"conv", "map_conv", "stride_2_conv", "gradients"}},
    {"frozen_multimap", {"group", "count_hit", "count_half", "count_miss", "retrieve"}},
    {"two_way_index", {"group"}},
    {"group_by", {"group"}},
    {"map_of_copies", {"group"}},
    {"sorted_groups", {"group"}},
    {"std_unordered_multimap", {"group"}},
    {"sharded_multimap", {"group", "count_hit"}},
    {"sharded_join", {"join"}}};

/// The operations if --ops is not given: those of the tables in --table.
void choose_operations(bench_options& options) {
  if (options.ops_given || options.tables.empty()) return;
  std::vector<std::string> chosen;
  const auto add = [&](const std::vector<std::string>& more) {
    for (const auto& op : more) {
      if (std::ranges::find(chosen, op) == chosen.end()) chosen.push_back(op);
    }
  };
  for (const auto& table : options.tables) {
    const auto found = operations_of_tables.find(table);
    add(found != operations_of_tables.end() ? found->second : settings().ops);
  }
  options.ops = std::move(chosen);
}

/// --copies: a number, or a name.
key_copies copies_of(const std::string& name) {
  if (name == "zipf") return {key_copies::zipf, 1};
  if (name == "half") return {key_copies::half, 1};
  std::uint32_t each = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), each);
  const std::string_view rest(end, name.data() + name.size());
  if (error != std::errc() || (!rest.empty() && rest != "_keys") || each == 0) {
    throw roost::invalid_argument(fmt::format(
        "bench: --copies '{}': give a number from 1 to {}, zipf, half, or 10000_keys for 10000 keys in all",
        name, UINT32_MAX));
  }
  return {rest.empty() ? key_copies::equal : key_copies::keys, each};
}

/// Prints rows as they are measured.
class printer {
 public:
  explicit printer(const bench_options& options)
      : format_(options.format), keys_(options.keys_name), queries_(options.queries_name) {}

  void print(row r) {
    // The name that the user gave: the table that a user of the library gets.
    if (const auto name = asked_as_.find(r.table); name != asked_as_.end()) r.table = name->second;
    if (rows_++ == 0) print_head(r);
    seen_.insert({r.table, r.op});
    if (format_ == "csv") {
      fmt::print("{},{},{},{},{},{:.4f},{:.4f},{:.4f},{},{},{},{},{},{},{},{},{}\n", r.table, r.key_bits,
                 r.value_bits, r.op, r.n, r.load_factor, r.median_ms, r.gops, r.check, r.hit_rate, r.bytes,
                 r.scratch_bytes, r.path, r.place, keys_of(r), queries_, r.copies);
    } else if (format_ == "json") {
      fmt::print(
          "{}\n {{\"table\": \"{}\", \"key_bits\": {}, \"value_bits\": {}, \"op\": \"{}\", \"n\": {}, "
          "\"load_factor\": {:.4f}, \"median_ms\": {:.4f}, "
          "\"gops\": {:.4f}, \"check\": \"{}\", \"hit_rate\": {}, \"bytes\": {}, \"scratch_bytes\": {}, "
          "\"path\": \"{}\", \"place\": \"{}\", "
          "\"keys\": \"{}\", \"queries\": \"{}\", \"copies\": \"{}\"}}",
          rows_ == 1 ? "" : ",", r.table, r.key_bits, r.value_bits, r.op, r.n, r.load_factor, r.median_ms,
          r.gops, r.check, r.hit_rate, r.bytes, r.scratch_bytes, r.path, r.place, keys_of(r), queries_,
          r.copies);
    } else {
      fmt::print(
          "{:<24} {:>4} {:>5} {:<12} {:>13} {:>6.3f} {:>11.3f} {:>9.{}f} {:>6} {:>5} {:>6} {:<8} {:<8} {}\n",
          r.table, r.key_bits, r.value_bits, r.op, with_commas(r.n), r.load_factor, r.median_ms,
          r.gops * rate_of(r), rate_of(r) == 1 ? 3 : 1,
          r.bytes == 0 ? "?" : fmt::format("{:.2f}", static_cast<double>(r.bytes) / (1 << 30)),
          r.op.ends_with("build") ? "" : fmt::format("{:.0f} %", 100 * r.hit_rate), r.copies, r.path, r.place,
          r.keys.empty() ? r.check : r.check + ", " + r.keys);
    }
    std::fflush(stdout);
  }

  void end() const {
    if (format_ == "json") fmt::print("{}\n]\n", rows_ == 0 ? "[" : "");
  }

  /// The name in the rows of a table.
  void rename(const std::string& table, const std::string& name) { asked_as_[table] = name; }
  bool empty() const { return rows_ == 0; }
  bool has_table(const std::string& name) const {
    return std::ranges::any_of(seen_, [&](const auto& row) { return row.first == name; });
  }
  bool has_op(const std::string& name) const {
    return std::ranges::any_of(seen_, [&](const auto& row) { return row.second.starts_with(name); });
  }

  const std::string& keys_of(const row& r) const { return r.keys.empty() ? keys_ : r.keys; }

 private:
  void print_head(const row& r) const {
    if (format_ == "csv") {
      fmt::print(
          "table,key_bits,value_bits,op,n,load_factor,median_ms,gops,check,hit_rate,bytes,scratch_bytes,path,"
          "place,keys,queries,copies\n");
    }
    if (format_ == "json") fmt::print("[");
    if (format_ == "table") {
      fmt::print("{:<24} {:>4} {:>5} {:<12} {:>13} {:>6} {:>11} {:>9} {:>6} {:>5} {:>6} {:<8} {:<8} {}\n",
                 "table", "key", "value", "op", "n", "load", "median ms", rate_of(r) == 1 ? "G/s" : "M/s",
                 "GiB", "hits", "copies", "path", "place", "check");
    }
  }

  /// Rates of hosts are in millions per second.
  static double rate_of(const row& r) { return r.place.starts_with("host") ? 1000 : 1; }

  static std::string with_commas(std::uint64_t n) {
    auto text = std::to_string(n);
    for (auto at = text.size(); at > 3; text.insert(at, ",")) at -= 3;
    return text;
  }

  std::string format_, keys_, queries_;  // patterns of rows without their own
  std::map<std::string, std::string> asked_as_;
  std::set<std::pair<std::string, std::string>> seen_;  // tables and operations
  int rows_ = 0;
};

void measure(const settings& options, const std::string& place) {
  if (options.shards != 0)
    place == "cuda" ? roost::bench::measure_gpus(options) : roost::bench::measure_host_shards(options);
  else
    place == "cuda" ? roost::bench::measure_cuda(options) : roost::bench::measure_host(options);
  if (!options.with_peers) return;
  for (const auto& peer : roost::bench::peer::all()) {
    if (peer.place == place) peer.measure(options);
  }
}

/// The tables of a place: all, or those that take a load factor.
std::set<std::string> tables_of(settings options, const std::string& place, bool all) {
  std::set<std::string> once, twice;
  options.report = nullptr;
  options.log2n = {10};
  options.load_factors = {0.5, 0.8};  // a table that takes them is reported for each
  options.has_table = [&](const std::string& name) {
    (once.insert(name).second ? once : twice).insert(name);
  };
  measure(options, place);
  return all ? once : twice;
}

/// Throws unless every requested name is a table of the place.
void check_tables(const bench_options& options, const std::string& place) {
  const std::set<std::string> known = tables_of(options, place, true);
  for (const std::string& table : options.tables) {
    if (!known.contains(table)) {
      auto names = known;
      names.insert(options.value_bits == 0 ? "frozen_set" : "frozen_map");  // resolve_default_tables
      throw roost::invalid_argument(
          fmt::format("bench: no table '{}' with {}-bit keys and {}-bit values on {}; choose from {}", table,
                      options.key_bits, options.value_bits, place, fmt::join(names, ", ")));
    }
  }
}

/// frozen_map and frozen_set stand for the tables of their default layout: replaces their names.
void resolve_default_tables(bench_options& options, printer& out) {
  const std::string layout = roost::default_layout<std::uint64_t, std::uint64_t>::name;
  for (auto& table : options.tables) {
    if (table != "frozen_map" && table != "frozen_set") continue;
    const auto asked = std::exchange(table, (table == "frozen_map" ? "frozen_" : "frozen_set_") + layout);
    out.rename(table, asked);
  }
}

/// What an operation needs, if nothing could be measured for it.
std::string need_of(const std::string& op) {
  if (op == "join") return "join takes a number of --copies that divides the number of keys";
  if (op == "group" || op == "retrieve" || op.starts_with("count_"))
    return op + " is for tables that group: leave --table out";
  if (op.ends_with("conv") || op == "gradients") return op + " is for --table sparse_conv";
  if (op == "map" || op == "index_map" || op == "pairs" || op == "stride_2" || op == "graph")
    return op + " is for tables of voxels: take --table coordinate_index,kernel_map";
  if (op == "grow" || op == "load_curve" || op == "churn" || op == "mixed" || op == "erase" ||
      op.starts_with("insert") || op.starts_with("apply"))
    return op + " is for tables that change: take --table concurrent_map,stadium_map";
  return op + " is not an operation of these tables with these options; see roost bench --help";
}

/// Reports operations and tables for which nothing was measured; throws if nothing was measured at all.
void check_measured(const bench_options& options, const printer& out, const std::vector<std::string>& asked) {
  std::vector<std::string> missing;
  for (const auto& op : options.ops) {
    if (options.ops_given && !out.has_op(op)) missing.push_back(need_of(op));
  }
  for (const auto& table : asked) {
    if (!out.has_table(table) && table != "stadium_map")
      missing.push_back(table + " has none of these operations, or not with these options");
  }
  if (std::ranges::any_of(options.load_factors, [](double load) { return load > 1; }) && out.empty())
    missing.push_back("--load-factor above 1 works only with frozen_map of layout compact");
  if (missing.empty() && !out.empty()) return;
  if (missing.empty()) missing.emplace_back("nothing matches these options; see roost bench --help");
  const auto text = fmt::format("bench: {} was measured: {}", out.empty() ? "nothing" : "not all",
                                fmt::join(missing, "; "));
  if (out.empty()) throw roost::invalid_argument(text);
  fmt::print(stderr, "roost: {}\n", text);
}

/// Throws if peers were requested and none were built in.
void check_peers(const bench_options& options, const std::string& place) {
  if (!options.with_peers) return;
  if (options.shards != 0)
    throw roost::invalid_argument("bench: --with-peers is for one place; leave out --shards and --gpus");
  if (std::ranges::none_of(roost::bench::peer::all(),
                           [&](const auto& peer) { return peer.place == place; })) {
    throw roost::invalid_argument(
        fmt::format("bench: no peers of {} were built in; give the path of one, such as cmake -D {}, "
                    "as apps/bench/peers/README.md says, and build again",
                    place, place == "cuda" ? "ROOST_PEER_CUCO=CHECKOUT" : "ROOST_PEER_ABSL=/usr"));
  }
}

/// Throws if requested types or shards are not in the small command.
void check_small([[maybe_unused]] const bench_options& options) {
#if ROOST_SMALL_TOOL
  if (options.key_bits != 32 || options.value_bits != 32 || options.shards + options.gpus != 0) {
    throw roost::invalid_argument(
        "bench: this command is what ./scripts/demo shows: keys and values of 32 bits in one place; "
        "./scripts/demo --whole builds the whole one");
  }
#endif
}

/// Throws if the place does not have the requested shards, or if sharded tables are not measured with the
/// requested types.
void check_shards(bench_options& options, const std::string& place) {
  if (options.gpus != 0 && place != "cuda")
    throw roost::invalid_argument("bench: --gpus needs --place cuda; on the host take --shards");
  if (options.shards != 0 && place != "host")
    throw roost::invalid_argument("bench: --shards needs --place host; on cuda take --gpus");
  if (options.steps && options.gpus == 0)
    throw roost::invalid_argument("bench: --timeline is for lookups on several GPUs: take --gpus");
  if (options.steps) options.timeline = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  options.shards = std::max(options.shards, options.gpus);
  if (options.shards == 0) return;
  const bool same =
      options.value_bits == options.key_bits || (options.value_bits == 0 && options.key_bits == 32);
  if (!same || (place == "host" && options.key_bits == 64)) {
    throw roost::invalid_argument(fmt::format(
        "bench: tables of several shards are measured with keys and values of 32 bits{}, or sets of "
        "32 bits",
        place == "cuda" ? " or of 64" : ""));
  }
  if (options.sweep)
    throw roost::invalid_argument("bench: --sweep is for one place; leave out --shards and --gpus");
}

int most_log2n(const settings& options) {
  return *std::max_element(options.log2n.begin(), options.log2n.end());
}

/// Throws if keys would repeat.
void check_keys(const bench_options& options) {
  const auto shards = static_cast<unsigned>(std::max(options.shards, 1));  // with n keys each
  const int most = roost::bench::log2_most_keys(options.keys, options.key_bits) -
                   (static_cast<int>(std::bit_width(shards - 1)));
  if (most_log2n(options) > most) {
    throw roost::invalid_argument(
        fmt::format("bench: {}-bit keys ({}) are unique (half are queried as absent keys) up to --log2n {}; "
                    "use --key-bits 64",
                    options.key_bits, options.keys_name, most));
  }
}

/// Keys, queries, results, values, and about four times the pairs for table and build.
double bytes_needed(const settings& options, int log2n) {
  return std::ldexp(1.0, log2n) * std::max(options.shards, 1) * (options.key_bits + options.value_bits) / 8 *
         6;
}

double bytes_there(const std::string& place) {
  if (place == "cuda") return static_cast<double>(cuda_device_facts().front().free);
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Throws before the system runs out of memory.
void check_memory(const bench_options& options, const std::string& place) {
  if (place != "host") return;  // device allocations fail by themselves
  const double needed = bytes_needed(options, most_log2n(options)), there = bytes_there(place);
  if (needed > there) {
    throw roost::out_of_memory(fmt::format(
        "bench: {:.0f} keys need about {:.1f} GiB, this machine has {:.1f}; take a smaller --log2n",
        std::ldexp(1.0, most_log2n(options)), needed / (1 << 30), there / (1 << 30)));
  }
}

/// Whether all operations are those of repeated keys.
bool groups(const settings& options) {
  const auto& of_groups = operations_of_tables.at("frozen_multimap");
  return std::ranges::all_of(options.ops, [&](const std::string& op) {
    return op == "join" || std::ranges::find(of_groups, op) != of_groups.end();
  });
}

/// Repeated keys: sizes in half steps, each with several numbers of copies; then the sizes at which the rate
/// falls off.
void sweep_copies(settings options, const std::string& place, int most) {
  options.half_steps = true;
  options.log2n.clear();
  for (int log2n = std::min(place == "cuda" ? 20 : 16, most); log2n <= most; ++log2n)
    options.log2n.push_back(log2n);
  options.refused = [](const char* why) { fmt::print(stderr, "roost: not measured: {}\n", why); };
  roost::bench::swept_rates rates;
  options.report = [&rates, print = options.report](const row& r) {
    print(r);
    rates.add(r);
  };
  measure(options, place);
  for (const std::string& cliff : rates.cliffs()) fmt::print(stderr, "roost: falls off: {}\n", cliff);
}

/// The workload of `scripts/plot --rate`: all load factors at one large size, for the tables that take them;
/// then all sizes, up to what fits, at one load factor. Or that of repeated keys.
void sweep(settings options, const std::string& place) {
  int most = std::min(most_log2n(options), roost::bench::log2_most_keys(options.keys, options.key_bits));
  while (most > 0 && bytes_needed(options, most) > bytes_there(place)) --most;
  if (groups(options)) return sweep_copies(options, place, most);

  settings loads = options;
  loads.log2n = {std::min(most, place == "cuda" ? 27 : 22)};
  loads.load_factors = {0.3, 0.5, 0.7, 0.9, 0.95, 1.0, 1.1, 1.2};  // 0.8 is measured with the sizes
  loads.tables.clear();
  for (const std::string& table : tables_of(options, place, false)) {
    if (options.wants(table)) loads.tables.push_back(table);
  }
  if (!loads.tables.empty()) measure(loads, place);

  options.load_factors = {0.8};
  options.log2n.clear();
  for (int log2n = std::min(10, most); log2n <= most; ++log2n) options.log2n.push_back(log2n);
  measure(options, place);
}

void bench(bench_options& options) {
  options.keys = key_patterns.at(options.keys_name);
  options.queries = query_patterns.at(options.queries_name);
  options.as_neighbours = options.path_name == "neighbours";
  options.in_kernel = options.as_neighbours || options.path_name == "kernel";
  options.path = options.in_kernel ? roost::path::automatic : roost::bench::paths.at(options.path_name);
  options.copies.clear();
  if (options.sweep && !options.copies_given) options.copies_names = roost::bench::swept_copies;
  for (const std::string& name : options.copies_names) options.copies.push_back(copies_of(name));
  options.bodies.clear();
  for (const std::string& name : options.bodies_names) options.bodies.push_back(*residences.find(name));
  for (const double load_factor : options.load_factors) {
    if (!(load_factor > 0 && load_factor <= 4)) {
      throw roost::invalid_argument(fmt::format(
          "bench: load factor {}; give more than 0 and at most 1 (frozen_compact: 4)", load_factor));
    }
  }
  if (!options.sweep) check_keys(options);
  if (options.place == "auto" && options.gpus + options.shards != 0)
    options.place = options.gpus != 0 ? "cuda" : "host";
  const std::string place = roost::choose_place(options.place);
  check_small(options);
  check_shards(options, place);
  check_peers(options, place);
  if (!options.sweep) check_memory(options, place);
  printer out(options);
  const auto asked = options.tables;
  resolve_default_tables(options, out);
  choose_operations(options);
  check_tables(options, place);
  const roost::tools::progress_line line;
  bool all_right = true;
  options.progress = [&](const std::string& what) { line.show(what); };
  options.report = [&](const row& r) {
    line.clear();
    out.print(r);
    all_right = all_right && r.check == "ok";
  };
  options.sweep ? sweep(options, place) : measure(options, place);
  line.clear();
  if (!options.sweep) check_measured(options, out, asked);
  out.end();
  if (!all_right) throw CLI::RuntimeError("bench: answers were wrong", 2);
}

/// Options: which tables and operations are measured, and at which sizes.
void add_tables(CLI::App* command, bench_options& options) {
  roost::add_place_options(*command, options.place, options.threads);
  command
      ->add_option(
          "-t,--table", options.tables,
          "Tables to measure, separated by commas; frozen_map and frozen_set: of the default layout; "
          "default: all tables of the place but those of voxels (coordinate_index, kernel_map, "
          "document_table, sorted_voxels, sparse_conv)")
      ->delimiter(',');
  command
      ->add_option("--ops", options.ops,
                   "Operations, separated by commas; default: those of the tables in --table")
      ->delimiter(',')
      ->check(CLI::IsMember(operations))
      ->capture_default_str();
  command
      ->add_option("-n,--log2n", options.log2n,
                   "Binary logarithms of the number of keys, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(0, 36))
      ->capture_default_str();
  command
      ->add_option("-l,--load-factor", options.load_factors,
                   "Keys over slots (frozen_compact: bytes of the pairs over bytes of the table), for tables "
                   "that take it; separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--key-bits", options.key_bits, "Size of a key")
      ->check(CLI::IsMember({32, 64}))
      ->capture_default_str();
  command->add_option("--value-bits", options.value_bits, "Size of a value; 0 measures sets")
      ->check(CLI::IsMember({0, 32, 64}))
      ->capture_default_str();
}

/// Options for keys, voxels and queries.
void add_inputs(CLI::App* command, bench_options& options) {
  command
      ->add_option(
          "--keys", options.keys_name,
          "Pattern of the keys, which are unique: consecutive numbers, the same hashed, multiples of "
          "a power of two, or packed x, y, z of a full box")
      ->check(CLI::IsMember(key_patterns))
      ->capture_default_str();
  command
      ->add_option("--queries", options.queries_name,
                   "How often each key is queried: always the same key, each key once, or the k-th most "
                   "frequent in proportion to 1 / k")
      ->check(CLI::IsMember(query_patterns))
      ->capture_default_str();
  command
      ->add_option(
          "--voxels", options.clouds,
          "coordinate_index, kernel_map ...: clouds of voxels, separated by commas: a sphere's surface, "
          "what a laser scanner sees along a street, thin noise; each scrambled and sorted")
      ->delimiter(',')
      ->check(CLI::IsMember(roost::bench::cloud_kinds))
      ->capture_default_str();
  command->add_option("--channels", options.channels, "sparse_conv: channels of a layer, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--copies", options.copies_names,
                   "group, count_hit, retrieve ...: how often each key appears; zipf: the k-th most frequent "
                   "in proportion to 1 / k; half: one key has half of all pairs; 10000_keys: there are so "
                   "many keys; separated by commas")
      ->delimiter(',')
      ->capture_default_str();
}

/// Options of stadium_map.
void add_stadium(CLI::App* command, bench_options& options) {
  command
      ->add_option("--ticket-bits", options.ticket_bits, "stadium_map: size of a ticket; separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember({1, 2, 4, 8}))
      ->capture_default_str();
  command
      ->add_option("--bodies", options.bodies_names,
                   "stadium_map: which memory holds keys and values; separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(residences))
      ->capture_default_str();
  command
      ->add_option("--budget", options.stadium.budget,
                   "stadium_map with --bodies automatic: bytes of the place's memory for keys and values, "
                   "such as 8GiB; the rest goes to host memory")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("BYTES");
  command
      ->add_option("--region-slots", options.stadium.region_slots,
                   "stadium_map: approximate slots per region; 4000000000 makes one region, as in the paper")
      ->option_text("SLOTS");
}

/// Options: how batches are processed, and on how many devices.
void add_ways(CLI::App* command, bench_options& options) {
  command
      ->add_option(
          "--path", options.path_name,
          "How batches are processed: query by query (direct), region by region (regional), region by "
          "region with data in host memory copied to the GPU (streamed), or lookups through ref() in a "
          "kernel with a thread for each, alone (kernel) or as warp_neighbours (neighbours)")
      ->check(CLI::IsMember({"automatic", "direct", "regional", "streamed", "kernel", "neighbours"}))
      ->capture_default_str();
  command
      ->add_option("--gpus", options.gpus,
                   "Measures tables that are spread over this many CUDA devices, with --log2n keys on each "
                   "(sharded_map, sharded_concurrent_map, sharded_multimap, sharded_join; with "
                   "--value-bits 0 sharded_set)")
      ->check(CLI::Range(1, 64));
  command->add_flag(
      "--timeline", options.steps,
      "With --gpus: prints to stderr, for each lookup, when each of its steps was given to each "
      "GPU, and when it was done");
  command
      ->add_option("--shards", options.shards,
                   "The same on the host, with this many parts of its memory and --log2n keys each")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--clock", roost::bench::wall_clock,
                   "How cuda is timed: by events on the device, or by the host's clock from the call until "
                   "the device is done (wall)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"events", false}, {"wall", true}}))
      ->option_text("{events,wall}=events");
}

/// Options: how tables are measured and results reported.
void add_report(CLI::App* command, bench_options& options) {
  command->add_option("-r,--reps", options.repetitions, "Number of timed runs; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--skip-last-run", roost::bench::skip_last_run,
                    "Skip the last run of each measurement, to test that every check notices it");
  command->add_flag("--with-peers", options.with_peers,
                    "Measures tables of other libraries beside ours, those that were built in "
                    "(apps/bench/peers/README.md)");
  command->add_option("-f,--format", options.format, "Format of the report")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  command
      ->add_flag(
          "--sweep", options.sweep,
          "Prints CSV for scripts/plot --rate: from 2^10 to 2^30 keys (or to --log2n, or to what memory "
          "holds) at load 0.8, and 2^27 keys (host: 2^22) at loads from 0.3 to 1.2. With --ops group, "
          "count_hit, retrieve, join ...: from 2^20 keys (host: 2^16) in half steps, with 1 to 1024 copies, "
          "10000 keys in all and zipf (or --copies); then, to stderr, each size at which a rate is below "
          "0.7 of the mean of its neighbours")
      ->excludes(command->get_option("--load-factor"));
}

}  // namespace

#if ROOST_SMALL_TOOL
void roost::bench::measure_host(const settings& options) { measure_host_keys<std::uint32_t>(options); }
#if ROOST_WITH_CUDA
void roost::bench::measure_cuda(const settings& options) {
  measure_cuda_types<std::uint32_t, std::uint32_t>(options);
}
#endif
// Never called.
void roost::bench::measure_host_shards(const settings&) {}
void roost::bench::measure_gpus(const settings&) {}
#else
void roost::bench::measure_host(const settings& options) {
  measure_sparse_host(options);
  measure_perfect_host(options);
  options.key_bits == 32 ? measure_host_keys<std::uint32_t>(options)
                         : measure_host_keys<std::uint64_t>(options);
}

#if !ROOST_WITH_CUDA
void roost::bench::measure_gpus(const settings&) {}
#endif
#endif

#if !ROOST_WITH_CUDA
void roost::bench::measure_cuda(const settings&) {}
#endif

void add_bench(CLI::App& app) {
  auto options = std::make_shared<bench_options>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measures tables, compares them, and checks every answer");
  add_tables(command, *options);
  add_inputs(command, *options);
  add_stadium(command, *options);
  add_ways(command, *options);
  add_report(command, *options);
  command->footer(
      "Examples:\n"
      "  roost bench --table frozen_map,boost_flat_map --log2n 20,24\n"
      "  roost bench --place cuda --log2n 27 --load-factor 0.8 --reps 7\n"
      "  roost bench --ops join --copies 1 --format csv");
  command->callback([options, command] {
    options->ops_given = command->count("--ops") != 0;
    options->copies_given = command->count("--copies") != 0;
    if (options->sweep) {
      if (command->count("--format") > 0 && options->format != "csv")
        throw roost::invalid_argument("bench: --sweep prints CSV; leave out --format");
      options->format = "csv";
      if (command->count("--log2n") == 0) options->log2n = {30};
    }
    bench(*options);
  });
}
