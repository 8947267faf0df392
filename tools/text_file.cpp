#include "text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <new>
#include <roost/error.hpp>
#include <set>
#include <system_error>
#include <utility>

namespace roost::tools {
namespace {

std::string last_reason() { return std::generic_category().message(errno); }

[[noreturn]] void refuse_input(const std::string& name, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", name, why));
}

constexpr const char* read_too = "is read, and would be written over; name another output";

constexpr std::string_view gzip_mark = "\x1f\x8b", zstd_mark = "\x28\xb5\x2f\xfd";
constexpr std::size_t longest_mark = 10;

/// Throws for text that is packed in a way that is not undone here. `head`: its first bytes.
void expect_text(const std::string& file, std::string_view head) {
  struct packed {
    std::size_t at;
    std::string_view mark, how, undo;
  };
  constexpr packed all[] = {{0, "\xfd\x37zXZ", "compressed by xz", "xz -dc"},
                            {4, "1AY&SY", "compressed by bzip2", "bzip2 -dc"},
                            {0, "\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc"},
                            {0, "PK\x03\x04", "a zip archive", "unzip -p"}};
  for (const auto& [at, mark, how, undo] : all) {
    if (head.substr(std::min(at, head.size())).starts_with(mark)) {
      refuse_input(file, fmt::format("is {}; unpack it first: {} FILE | roost ... -", how, undo));
    }
  }
}

}  // namespace

/// Undoes a compression. Files may be written one after the other into one.
class text_source::decoder {
 public:
  explicit decoder(text_source& source) : source_(source), stored_(std::size_t{1} << 18, '\0') {}
  virtual ~decoder() = default;

  std::size_t read(std::span<char> to) {
    std::size_t size = 0;
    while (size < to.size()) {
      const auto decoded = decode(to.subspan(size));  // also without input: some may wait inside
      size += decoded;
      if (decoded != 0 || !input_.empty()) continue;
      input_ = {stored_.data(), source_.read_stored(stored_)};
      if (input_.empty() && inside_) refuse_input(source_.name(), "is cut off; get the file again");
      if (input_.empty()) break;
    }
    return size;
  }

 protected:
  /// Takes bytes of input_, puts what they stand for into `to`, sets inside_, and returns how much it was.
  virtual std::size_t decode(std::span<char> to) = 0;

  [[noreturn]] void refuse(const char* why) const {
    refuse_input(source_.name(), fmt::format("cannot be decompressed ({}); get the file again", why));
  }

  std::string_view input_;
  bool inside_ = false;  // a file has begun that has not ended

 private:
  text_source& source_;
  std::string stored_;
};

namespace {

class gzip_decoder final : public text_source::decoder {
 public:
  explicit gzip_decoder(text_source& source) : decoder(source) {
    constexpr int only_gzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + only_gzip) != Z_OK) throw std::bad_alloc();
  }
  ~gzip_decoder() override { inflateEnd(&stream_); }

 private:
  std::size_t decode(std::span<char> to) override {
    const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), UINT_MAX));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));  // which is only read
    stream_.avail_in = static_cast<uInt>(input_.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR) return 0;  // nothing could be done
    input_.remove_prefix(input_.size() - stream_.avail_in);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END)
      refuse(stream_.msg == nullptr ? "the data are damaged" : stream_.msg);
    inside_ = status != Z_STREAM_END;
    if (!inside_) inflateReset(&stream_);
    return room - stream_.avail_out;
  }

  z_stream stream_ = {};
};

class zstd_decoder final : public text_source::decoder {
 public:
  explicit zstd_decoder(text_source& source) : decoder(source), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~zstd_decoder() override { ZSTD_freeDStream(stream_); }

 private:
  std::size_t decode(std::span<char> to) override {
    ZSTD_inBuffer in{input_.data(), input_.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    const auto status = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(status)) refuse(ZSTD_getErrorName(status));
    input_.remove_prefix(in.pos);
    if (in.pos != 0 || out.pos != 0) inside_ = status != 0;
    return out.pos;
  }

  ZSTD_DStream* stream_;
};

}  // namespace

text_source::text_source(const std::string& file, compression how)
    : name_(file == "-" ? "standard input" : file) {
  const int descriptor = file == "-" ? STDIN_FILENO : open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) refuse_input(name_, "there is no such file; check the path");
    if (errno == EACCES) refuse_input(name_, "cannot be opened; check its permissions");
    refuse_input(name_, fmt::format("cannot be opened ({}); check the path", last_reason()));
  }
  descriptor_ = descriptor;
  try {
    struct stat facts = {};
    if (fstat(descriptor_, &facts) != 0)
      refuse_input(name_, fmt::format("cannot be read ({}); check the path", last_reason()));
    if (S_ISDIR(facts.st_mode)) refuse_input(name_, "is a directory; name a file in it");
    if (file != "-" && (S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)))
      refuse_input(name_, "is a device; name a file or a pipe");
    if (S_ISREG(facts.st_mode)) {
      // who reads standard input before us leaves the rest
      const off_t first = std::max<off_t>(lseek(descriptor_, 0, SEEK_CUR), 0);
      expected_ = static_cast<std::size_t>(std::max<off_t>(facts.st_size - first, 0));
    }
    if (how == compression::undone) {
      std::string head(longest_mark, '\0');
      head.resize(read_stored(head));
      head_ = std::move(head);
      expect_text(name_, head_);
      if (head_.starts_with(gzip_mark)) decoder_ = std::make_unique<gzip_decoder>(*this);
      if (head_.starts_with(zstd_mark)) decoder_ = std::make_unique<zstd_decoder>(*this);
    }
  } catch (...) {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
    throw;
  }
}

text_source::~text_source() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

std::size_t text_source::read(std::span<char> to) { return decoder_ ? decoder_->read(to) : read_stored(to); }

std::size_t text_source::read_stored(std::span<char> to) {
  std::size_t size = std::min(head_.size(), to.size());
  std::memcpy(to.data(), head_.data(), size);
  head_.erase(0, size);
  while (size < to.size()) {
    const auto bytes = ::read(descriptor_, to.data() + size, to.size() - size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      refuse_input(name_, fmt::format("cannot be read ({}); check the disk, or copy the file to another one",
                                      last_reason()));
    }
    if (bytes == 0) {
      if (stored_ < expected_)
        refuse_input(name_, "became shorter while it was read; wait until it is written, and try again");
      break;
    }
    size += static_cast<std::size_t>(bytes);
    stored_ += static_cast<std::size_t>(bytes);
  }
  return size;
}

std::string read_text(const std::string& file, text_source::compression how) {
  text_source source(file, how);
  std::string text(source.expected() + 4096, '\0');  // with room, so that the end is seen at once
  std::size_t size = 0;
  for (;;) {
    size += source.read(std::span(text).subspan(size));
    if (size < text.size()) break;
    text.resize(2 * size);
  }
  text.resize(size);
  return text;
}

text_writer::text_writer(std::string file) : file_(std::move(file)) {
  if (file_.empty()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  // One that is there must be one that may be written.
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
  mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor_, there ? facts.st_mode & 07777 : 0666 & ~mask) != 0) refuse();
}

/// A file without a name is the best: whatever ends the program takes it away. Some file systems have none.
void text_writer::open_part() {
  const auto parent = std::filesystem::path(target_).parent_path();
  descriptor_ = open(parent.empty() ? "." : parent.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  part_ = target_ + ".XXXXXX";
  descriptor_ = mkostemp(part_.data(), O_CLOEXEC);
  if (descriptor_ >= 0) return;
  part_.clear();
  refuse();
}

text_writer::~text_writer() {
  if (file_.empty() || descriptor_ < 0) return;
  close(descriptor_);
  if (!part_.empty()) unlink(part_.c_str());
}

void text_writer::refuse() const {
  throw error(fmt::format("{}: cannot be written ({}); check the directory, its permissions and its space",
                          file_.empty() ? "standard output" : file_, last_reason()));
}

void text_writer::flush() {
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
  if (!target_.empty() && part_.empty()) {  // the file gets a name
    const auto from = fmt::format("/proc/self/fd/{}", descriptor_);
    const auto name = fmt::format("{}.{}.part", target_, getpid());
    unlink(name.c_str());
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

void expect_another_file(const std::string& output, const std::string& input) {
  std::error_code failure;
  if (!output.empty() && input != "-" && std::filesystem::equivalent(output, input, failure)) {
    refuse_input(output, read_too);
  }
}

void expect_other_files(std::vector<std::string> outputs, const std::vector<std::string>& inputs) {
  const auto place_of = [](const std::string& file) {
    std::error_code failure;
    return std::filesystem::canonical(file, failure);  // empty for a file that is not there
  };
  std::set<std::filesystem::path> read;
  for (const auto& input : inputs) read.insert(place_of(input));
  for (const auto& output : outputs) {
    const auto place = place_of(output);
    if (!place.empty() && read.contains(place)) refuse_input(output, read_too);
  }
  std::sort(outputs.begin(), outputs.end());
  const auto twice = std::adjacent_find(outputs.begin(), outputs.end());
  if (twice != outputs.end()) refuse_input(*twice, "would be written for two inputs; rename one of them");
}

}  // namespace roost::tools
