#include "database.hpp"

#include <charconv>
#include <roost/file.hpp>

namespace roost::tools {
namespace {

constexpr std::string_view mark = "roost stars\n";

struct header {
  char mark[16];
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  double fov_least, fov_most, magnitude_most, epoch;
  std::uint64_t stars, patterns, name_bytes;
};

bool makes_sense(const star_database& database) {
  for (const auto& s : database.stars) {
    if (!(std::abs(dot(s.at, s.at) - 1) < 1e-3f) || !std::isfinite(s.magnitude)) return false;
  }
  for (const auto& p : database.patterns) {
    for (const auto s : p.star) {
      if (s >= database.stars.size()) return false;
    }
    if (!(p.shape.longest > 0 && p.shape.longest <= 2)) return false;
  }
  return true;
}

}  // namespace

void save(const star_database& database, const std::filesystem::path& file) {
  std::string names;  // a line for each star that has one: number, blank, name
  for (std::size_t i = 0; i < database.names.size(); ++i) {
    if (database.names[i].find('\n') != std::string::npos)
      throw_file_error(file, "the name of a star has a line break; give it another one");
    if (!database.names[i].empty()) names += std::to_string(i) + ' ' + database.names[i] + '\n';
  }
  header first{};
  std::memcpy(first.mark, mark.data(), mark.size());
  first.fov_least = database.limits.fov_least;
  first.fov_most = database.limits.fov_most;
  first.magnitude_most = database.limits.magnitude_most;
  first.epoch = database.epoch;
  first.stars = database.stars.size();
  first.patterns = database.patterns.size();
  first.name_bytes = names.size();
  file_writer target(file);
  target.write(&first, sizeof(first));
  target.write(database.stars.data(), database.stars.size() * sizeof(star));
  target.write(database.patterns.data(), database.patterns.size() * sizeof(star_pattern));
  target.write(names.data(), names.size());
  target.finish();
}

star_database load_star_database(const std::filesystem::path& file) {
  using roost::throw_file_error;
  file_reader source(file, mark, "a database of `roost stars build`");
  header first;
  if (source.size() < sizeof(first)) throw_file_error(file, "is not a star database: it is too short");
  source.read(&first, sizeof(first));
  const header own{};
  if (first.byte_order != own.byte_order)
    throw_file_error(file, "was built by a machine with another order of bytes; build it again");
  if (first.version != own.version) {
    throw_file_error(file, "is a star database of version " + std::to_string(first.version) +
                               ", this program reads version " + std::to_string(own.version) +
                               "; build it again");
  }
  // Each part is compared before they are added: numbers that are too large would make a small sum.
  const std::size_t parts = source.size() - sizeof(first);
  if (first.stars > parts / sizeof(star) || first.patterns > parts / sizeof(star_pattern) ||
      first.name_bytes > parts ||
      parts != first.stars * sizeof(star) + first.patterns * sizeof(star_pattern) + first.name_bytes)
    throw_file_error(file, "is not a star database: its parts have other sizes than its head says");
  star_database result;
  result.limits = {first.fov_least, first.fov_most, first.magnitude_most};
  result.epoch = first.epoch;
  result.stars.resize(first.stars);
  source.read(result.stars.data(), first.stars * sizeof(star));
  result.patterns.resize(first.patterns);
  source.read(result.patterns.data(), first.patterns * sizeof(star_pattern));
  result.names.resize(first.stars);
  std::string all_names(first.name_bytes, '\0');
  source.read(all_names.data(), all_names.size());
  std::string_view names = all_names;
  bool good = first.fov_least > 0 && first.fov_most >= first.fov_least && first.fov_most < 120;
  while (!names.empty() && good) {
    const auto line = names.substr(0, names.find('\n'));
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    good = error == std::errc() && number < result.names.size() && line.size() != names.size();
    if (!good) break;
    const auto blank = static_cast<std::size_t>(end - line.data());
    result.names[number] = line.substr(std::min(blank + 1, line.size()));
    names.remove_prefix(line.size() + 1);
  }
  if (!good || !makes_sense(result))
    throw_file_error(file, "is not a star database: what it says of stars does not make sense");
  return result;
}

}  // namespace roost::tools
