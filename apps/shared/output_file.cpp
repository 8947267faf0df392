#include "output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <roost/error.hpp>
#include <set>
#include <system_error>
#include <utility>

namespace roost::tools {

namespace {

/// The open file that a name such as /dev/stdout stands for, or -1. To replace what that name leads to would
/// lose what others write there.
int named_descriptor(std::filesystem::path name) {
  std::error_code failure;
  const auto ours = std::filesystem::canonical("/proc/self/fd", failure);
  for (int links = 0; links < 40 && !failure; ++links) {
    const auto parent =
        std::filesystem::canonical(name.has_parent_path() ? name.parent_path() : ".", failure);
    if (failure) return -1;
    const std::string last = name.filename().string();
    if (int number = -1; parent == ours) {
      const auto read = std::from_chars(last.data(), last.data() + last.size(), number);
      return read.ptr == last.data() + last.size() ? number : -1;
    }
    const auto target = std::filesystem::read_symlink(parent / last, failure);
    name = parent / target;  // which is `target` if that is absolute
  }
  return -1;
}

}  // namespace

output_file::output_file(std::string file) : file_(std::move(file)) {
  if (file_.empty()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  if (const int number = named_descriptor(file_); number >= 0) {
    descriptor_ = fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) refuse();
    return;
  }
  // An existing file must be writable.
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0 && errno != ENOENT) refuse();
  struct stat facts = {};
  if (descriptor_ >= 0 && fstat(descriptor_, &facts) != 0) refuse();
  if (descriptor_ >= 0 && !S_ISREG(facts.st_mode)) return;
  const bool there = descriptor_ >= 0;
  if (there) close(std::exchange(descriptor_, -1));
  std::error_code failure;
  const auto real = std::filesystem::canonical(file_, failure);
  target_ = failure ? file_ : real.string();
  open_part();
  if (there && fchmod(descriptor_, facts.st_mode & 07777) != 0) refuse();
}

/// No other running program uses this name; an existing file is left from a program that was killed.
std::string output_file::name_of_part() const {
  auto name = fmt::format("{}.{}.part", target_, getpid());
  unlink(name.c_str());
  return name;
}

/// A file without a name is best: it disappears however the program ends. Some file systems do not support
/// it.
void output_file::open_part() {
  const auto parent = std::filesystem::path(target_).parent_path();
  descriptor_ = open(parent.empty() ? "." : parent.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  part_ = name_of_part();
  descriptor_ = open(part_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  part_.clear();
  refuse();
}

output_file::~output_file() {
  if (file_.empty() || descriptor_ < 0) return;
  close(descriptor_);
  if (!part_.empty()) unlink(part_.c_str());
}

void output_file::refuse() const {
  throw error(fmt::format("{}: cannot be written ({}); check the directory, its permissions and its space",
                          file_.empty() ? "standard output" : file_, std::generic_category().message(errno)));
}

void output_file::flush() {
  for (std::string_view rest = waiting_; !rest.empty();) {
    const auto bytes = ::write(descriptor_, rest.data(), rest.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) refuse();
    rest.remove_prefix(static_cast<std::size_t>(bytes));
  }
  waiting_.clear();
}

void output_file::finish() {
  flush();
  if (file_.empty()) return;
  if (!target_.empty() && part_.empty()) {  // the file gets a name
    const auto from = fmt::format("/proc/self/fd/{}", descriptor_);
    const auto name = name_of_part();
    if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) refuse();
    part_ = name;
  }
  const bool closed = close(std::exchange(descriptor_, -1)) == 0;
  if (closed && (target_.empty() || rename(part_.c_str(), target_.c_str()) == 0)) return;
  const int reason = errno;
  if (!part_.empty()) unlink(part_.c_str());
  errno = reason;
  refuse();
}

namespace {

using file_number = std::pair<dev_t, ino_t>;

/// The identity of a file, whatever its name; nothing if it does not exist or is not a file.
std::optional<file_number> number_of(bool found, const struct stat& facts) {
  if (!found || !S_ISREG(facts.st_mode)) return {};
  return file_number{facts.st_dev, facts.st_ino};
}

}  // namespace

void expect_other_files(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  std::set<file_number> read;
  struct stat facts = {};
  for (const auto& input : inputs) {
    const int looked = input == "-" ? fstat(STDIN_FILENO, &facts) : stat(input.c_str(), &facts);
    if (const auto number = number_of(looked == 0, facts)) read.insert(*number);
  }
  for (const auto& output : outputs) {
    const auto number = number_of(stat(output.c_str(), &facts) == 0, facts);
    if (number && read.contains(*number)) {
      throw invalid_argument(
          fmt::format("{}: is also an input and would be overwritten; name a different output", output));
    }
  }
}

void expect_different_files(std::vector<std::string> outputs) {
  std::erase(outputs, "");
  std::ranges::sort(outputs);
  const auto twice = std::ranges::adjacent_find(outputs);
  if (twice == outputs.end()) return;
  throw invalid_argument(fmt::format("{}: would be written twice; give it two names", *twice));
}

void make_folder(const std::filesystem::path& folder, std::string_view instead) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (!std::filesystem::is_directory(folder, failure))
    throw error(
        fmt::format("{}: is not a directory and cannot be made one; give {}", folder.string(), instead));
}

}  // namespace roost::tools
