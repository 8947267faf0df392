#include "text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <roost/error.hpp>
#include <system_error>
#include <utility>

namespace roost::tools {
namespace {

std::string last_reason() { return std::generic_category().message(errno); }

[[noreturn]] void refuse_input(const std::string& file, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", file == "-" ? "standard input" : file, why));
}

/// Closes what it holds.
struct open_file {
  int descriptor;
  explicit open_file(int d) : descriptor(d) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() {
    if (descriptor > STDERR_FILENO) close(descriptor);
  }
};

}  // namespace

std::string read_text(const std::string& file) {
  const open_file input(file == "-" ? STDIN_FILENO : open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (input.descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) refuse_input(file, "there is no such file; check the path");
    if (errno == EACCES) refuse_input(file, "cannot be opened; check its permissions");
    refuse_input(file, fmt::format("cannot be opened ({}); check the path", last_reason()));
  }
  struct stat facts = {};
  if (fstat(input.descriptor, &facts) != 0)
    refuse_input(file, fmt::format("cannot be read ({}); check the path", last_reason()));
  if (S_ISDIR(facts.st_mode)) refuse_input(file, "is a directory; name a file in it");
  if (file != "-" && (S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)))
    refuse_input(file, "is a device; name a file or a pipe");

  const off_t first = S_ISREG(facts.st_mode) ? std::max<off_t>(lseek(input.descriptor, 0, SEEK_CUR), 0)
                                             : 0;  // who reads standard input before us leaves the rest
  const auto expected =
      static_cast<std::size_t>(S_ISREG(facts.st_mode) ? std::max<off_t>(facts.st_size - first, 0) : 0);
  std::string text(expected + 4096, '\0');  // with room, so that the end is seen without another piece
  std::size_t size = 0;
  for (;;) {
    if (size == text.size()) text.resize(2 * size);
    const auto bytes = read(input.descriptor, text.data() + size, text.size() - size);
    if (bytes == 0) break;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0)
      refuse_input(file, fmt::format("cannot be read ({}); check the disk, or copy the file to another one",
                                     last_reason()));
    size += static_cast<std::size_t>(bytes);
  }
  if (size < expected)
    refuse_input(file, "became shorter while it was read; wait until it is written, and try again");
  text.resize(size);
  return text;
}

text_writer::text_writer(std::string file) : file_(std::move(file)) {
  if (file_.empty()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  constexpr int how = O_WRONLY | O_CREAT | O_CLOEXEC;
  descriptor_ = open(file_.c_str(), how | O_EXCL, 0666);
  made_ = descriptor_ >= 0;
  if (!made_) descriptor_ = open(file_.c_str(), how, 0666);
  if (descriptor_ < 0) refuse();
}

text_writer::~text_writer() {
  if (file_.empty() || descriptor_ < 0) return;
  close(descriptor_);
  if (made_) unlink(file_.c_str());
}

void text_writer::refuse() const {
  throw error(fmt::format("{}: cannot be written ({}); check the directory, its permissions and its space",
                          file_.empty() ? "standard output" : file_, last_reason()));
}

void text_writer::flush() {
  if (!emptied_ && !file_.empty()) {
    struct stat facts = {};
    if (fstat(descriptor_, &facts) != 0 || (S_ISREG(facts.st_mode) && ftruncate(descriptor_, 0) != 0))
      refuse();
  }
  emptied_ = true;
  for (std::string_view rest = waiting_; !rest.empty();) {
    const auto bytes = ::write(descriptor_, rest.data(), rest.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) refuse();
    rest.remove_prefix(static_cast<std::size_t>(bytes));
  }
  waiting_.clear();
}

void text_writer::finish() {
  flush();
  if (file_.empty()) return;
  const int status = close(std::exchange(descriptor_, -1));
  if (status == 0) return;
  const int reason = errno;
  if (made_) unlink(file_.c_str());
  errno = reason;
  refuse();
}

void expect_another_file(const std::string& output, const std::string& input) {
  std::error_code failure;
  if (!output.empty() && input != "-" && std::filesystem::equivalent(output, input, failure)) {
    throw invalid_argument(
        fmt::format("{}: is read, and would be written over; name another file with --output", output));
  }
}

}  // namespace roost::tools
