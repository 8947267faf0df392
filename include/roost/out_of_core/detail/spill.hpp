#pragma once

#include <atomic>
#include <cstdlib>
#include <vector>

#include "roost/detail/place/config.hpp"
#include "roost/file.hpp"

// What waits in a file, where host memory is short.

namespace roost::detail {

/// A file without a name, in a folder: however the process ends, the system removes it. It grows until it is
/// closed. Any thread may use it.
class spill_file {
 public:
  /// Throws file_error.
  explicit spill_file(const std::filesystem::path& folder)
      : folder_(folder), process_(::getpid()), file_(make(folder)) {
    if (file_.get() < 0) refuse("no file can be made there", "give another folder");
  }

  /// False in a child of fork, which must not write behind its parent's back.
  bool is_of_this_process() const { return process_ == ::getpid(); }

  /// Where `bytes` bytes may be written that nobody else writes.
  std::uint64_t append(std::size_t bytes) { return end_.fetch_add(bytes); }

  void write(const std::byte* source, std::uint64_t at, std::size_t bytes) const {
    for (ssize_t n; bytes != 0; source += n, at += static_cast<std::uint64_t>(n), bytes -= size_of(n)) {
      n = ::pwrite(file_.get(), source, bytes, static_cast<off_t>(at));
      if (n == 0) errno = ENOSPC;
      if (n < 0 && errno == EINTR) {
        n = 0;
      } else if (n <= 0) {
        refuse("cannot be written", "make room, or give another folder or more memory for waiting rows");
      }
    }
  }
  void read(std::byte* target, std::uint64_t at, std::size_t bytes) const {
    for (ssize_t n; bytes != 0; target += n, at += static_cast<std::uint64_t>(n), bytes -= size_of(n)) {
      n = ::pread(file_.get(), target, bytes, static_cast<off_t>(at));
      if (n == 0) has_changed(at);
      if (n < 0 && errno == EINTR) n = 0;
      if (n < 0) refuse("cannot be read", "check the disk");
    }
  }
  [[noreturn]] void has_changed(std::uint64_t at) const {
    throw_file_error(folder_, "the file of waiting rows there has changed since it was written, at byte " +
                                  std::to_string(at) + "; check the disk and the memory, and call again");
  }

 private:
  static std::size_t size_of(ssize_t n) { return static_cast<std::size_t>(n); }

  static int make(const std::filesystem::path& folder) {
#if defined(O_TMPFILE)
    const int made = ::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
#endif
    // File systems without such files, as NFS: one that has no name any more. They remove it later.
    std::string name = (folder / "roost-spill-XXXXXX").string();
    const int named = ::mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) static_cast<void>(::unlink(name.c_str()));
    return named;
  }
  [[noreturn]] void refuse(const char* what, const char* help) const {
    throw_file_error(folder_, std::string(what) + ": " + std::strerror(errno) + "; " + help);
  }

  std::filesystem::path folder_;
  ::pid_t process_;
  descriptor file_;
  std::atomic<std::uint64_t> end_ = 0;
};

/// Bytes in a spill_file, with a checksum of each page of them.
class spilled_bytes {
 public:
  static constexpr std::size_t page = std::size_t{64} << 10;

  spilled_bytes() = default;
  spilled_bytes(std::shared_ptr<spill_file> file, std::size_t bytes)
      : file_(std::move(file)), at_(file_->append(bytes)), bytes_(bytes), sums_(ceil_div(bytes, page)) {}

  explicit operator bool() const { return file_ != nullptr; }

  /// Writes bytes from `first` on, a multiple of the page, to the end or to another multiple. Threads may
  /// write different pages at once.
  void write(const std::byte* source, std::size_t first, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += page)
      sums_[(first + done) / page] = checksum(source + done, smaller(page, bytes - done), first + done);
    file_->write(source, at_ + first, bytes);
  }

  /// Any bytes. Throws file_error if a page has changed.
  void read(std::byte* target, std::size_t first, std::size_t bytes) const {
    std::unique_ptr<std::byte[]> other;  // for pages that are read in part
    while (bytes != 0) {
      const std::size_t begin = first / page * page, size = smaller(page, bytes_ - begin);
      const std::size_t some = smaller(bytes, begin + size - first);
      if (some != size && !other) other.reset(new std::byte[page]);
      std::byte* const whole = some == size ? target : other.get();
      file_->read(whole, at_ + begin, size);
      if (checksum(whole, size, begin) != sums_[begin / page]) file_->has_changed(at_ + begin);
      if (some != size) std::memcpy(target, whole + (first - begin), some);
      target += some, first += some, bytes -= some;
    }
  }

 private:
  /// Also of where they are, so that pages that changed places are noticed.
  std::uint64_t checksum(const std::byte* bytes, std::size_t n, std::size_t first) const {
    return XXH3_64bits_withSeed(bytes, n, at_ + first);
  }

  std::shared_ptr<spill_file> file_;
  std::uint64_t at_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::uint64_t> sums_;
};

}  // namespace roost::detail
