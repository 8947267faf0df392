#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roost/detail/place/xxhash.hpp"
#include "roost/error.hpp"
#include "roost/host.hpp"

/// \file
/// The files that tables are saved to: the data, then a checksum of each block of it, then a trailer with its
/// length. A file is replaced completely or not at all, and data is only accepted if its checksum agrees.

namespace roost {
namespace detail {

struct file_end {
  char mark[8];
  std::uint64_t bytes;         // of the data before the checksums
  std::uint64_t checksum;      // of the checksums
  std::uint64_t own_checksum;  // of the members above
  static constexpr char its_mark[8] = {'r', 'o', 'o', 's', 't', 'e', 'n', 'd'};
  static constexpr std::size_t block = std::size_t{16} << 20;

  std::uint64_t checksum_of_this() const { return XXH3_64bits(this, offsetof(file_end, own_checksum)); }
};

/// An open file, closed by the destructor.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) static_cast<void>(::close(number_));
  }
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace detail

/// Throws a file_error that says what is wrong with a file.
[[noreturn]] inline void throw_file_error(const std::filesystem::path& file, const std::string& what) {
  std::string name = file.string();
  for (char& letter : name)
    if (static_cast<unsigned char>(letter) < ' ') letter = '?';  // a message is one line
  detail::raise<file_error>({name, ": ", what});
}

/// Writes to FILE.partial, and renames that to FILE when all of it is on disk: whatever happens meanwhile,
/// FILE has either its previous contents or all of the new ones. FILE keeps its permissions.
class file_writer {
 public:
  explicit file_writer(const std::filesystem::path& file)
      : file_(file),
        partial_(file.string() + ".partial"),
        permissions_(permissions_of(file)),
        to_(open_beside(file, partial_, permissions_ ? owner_alone : 0666)) {
    struct stat opened, named;
    // The partial file of a process that was killed can be taken over; a process that is still writing has
    // locked its file.
    if (::flock(to_.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(to_.get(), &opened) != 0 ||
        ::lstat(partial_.c_str(), &named) != 0 || opened.st_ino != named.st_ino) {
      throw_file_error(partial_, "somebody else is saving to " + file.string());
    }
    if (permissions_)
      static_cast<void>(allow(owner_alone));  // a partial file that was left behind may have others
    if (::ftruncate(to_.get(), 0) != 0) refuse(partial_, "cannot be written");
    ours_ = true;
  }
  file_writer(const file_writer&) = delete;
  ~file_writer() {
    if (ours_) static_cast<void>(::unlink(partial_.c_str()));
  }

  /// Appends bytes. Throws file_error, as on a full disk.
  void write(const void* source, std::size_t bytes) {
    const char* position = static_cast<const char*>(source);
    while (bytes != 0) {
      const std::size_t piece =
          std::min<std::size_t>(bytes, detail::file_end::block - bytes_ % detail::file_end::block);
      if (bytes_ % detail::file_end::block == 0) XXH3_64bits_reset(&hash_);
      XXH3_64bits_update(&hash_, position, piece);
      put(position, piece);
      detail::come_between();
      position += piece;
      bytes -= piece;
      bytes_ += piece;
      if (bytes_ % detail::file_end::block == 0) checksums_.push_back(XXH3_64bits_digest(&hash_));
    }
  }

  /// Moves the new file into place. Until then FILE is unchanged.
  void finish() {
    if (bytes_ % detail::file_end::block != 0) checksums_.push_back(XXH3_64bits_digest(&hash_));
    const std::size_t bytes = checksums_.size() * sizeof(std::uint64_t);
    detail::file_end end{{}, bytes_, XXH3_64bits(checksums_.data(), bytes), 0};
    std::memcpy(end.mark, detail::file_end::its_mark, sizeof(end.mark));
    end.own_checksum = end.checksum_of_this();
    put(checksums_.data(), bytes);
    put(&end, sizeof(end));
    if (::fsync(to_.get()) != 0) refuse(partial_, "cannot be written");
    if (permissions_ && !allow(*permissions_)) refuse(partial_, "cannot be given its permissions");
    const detail::descriptor folder(::open(file_.has_parent_path() ? file_.parent_path().c_str() : ".",
                                           O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (::rename(partial_.c_str(), file_.c_str()) != 0) refuse(file_, "cannot be replaced");
    ours_ = false;
    if (folder.get() >= 0) static_cast<void>(::fsync(folder.get()));
  }

 private:
  static constexpr mode_t owner_alone = 0600;  // until all is written: the contents may be private

  /// Of an existing file.
  static std::optional<mode_t> permissions_of(const std::filesystem::path& file) {
    struct stat facts;
    if (::stat(file.c_str(), &facts) != 0) return {};
    if (!S_ISREG(facts.st_mode)) throw_file_error(file, "is not a regular file, and is not replaced by one");
    return facts.st_mode & 0777;
  }
  static int open_beside(const std::filesystem::path& file, const std::filesystem::path& partial,
                         mode_t permissions) {
    const int result = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                              permissions);  // a symbolic link there could lead to another file
    if (result < 0)
      throw_file_error(partial, std::string("cannot be written: ") + std::strerror(errno) + "; " +
                                    file.string() + " is as it was");
    return result;
  }
  bool allow(mode_t permissions) const {
    struct stat facts;
    if (::fstat(to_.get(), &facts) != 0) return false;
    if ((facts.st_mode & 0777) == permissions)
      return true;  // file systems without permissions refuse all calls
    return ::fchmod(to_.get(), permissions) == 0;
  }
  void put(const void* source, std::size_t bytes) {
    const char* position = static_cast<const char*>(source);
    while (bytes != 0) {
      const ssize_t written = ::write(to_.get(), position, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) refuse(partial_, "cannot be written");
      position += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }
  [[noreturn]] void refuse(const std::filesystem::path& what, const char* why) const {
    const int error = errno;
    throw_file_error(
        what, std::string(why) + ": " + std::strerror(error) + "; " + file_.string() + " is as it was");
  }

  std::filesystem::path file_, partial_;
  std::optional<mode_t> permissions_;  // of the file to be replaced
  detail::descriptor to_;
  bool ours_ = false;
  XXH3_state_t hash_{};
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> checksums_;
};

/// Reads a file that a file_writer has written, from beginning to end, and checks every block. The file is
/// not mapped into memory: another process could truncate it, and reads of the lost pages would kill this
/// one.
class file_reader {
 public:
  /// `mark`: what the file must begin with; otherwise the error says that the file is not `kind`. The first
  /// block is checked at once.
  file_reader(const std::filesystem::path& file, std::string_view mark,
              const std::string& kind = "a saved table of this kind")
      : file_(file),
        from_(::open(file.c_str(), O_RDONLY | O_CLOEXEC |
                                       O_NONBLOCK)) {  // opening a pipe would otherwise wait for a writer
    struct stat facts;
    if (from_.get() < 0 || ::fstat(from_.get(), &facts) != 0) unreadable();
    if (!S_ISREG(facts.st_mode)) throw_file_error(file, "is not a regular file");
    static_cast<void>(::posix_fadvise(from_.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
    const auto all = static_cast<std::size_t>(facts.st_size);
    std::string begin(std::min(all, mark.size()), '\0');
    fetch(begin.data(), begin.size(), 0);
    if (begin != mark) throw_file_error(file_, "is not " + kind);
    read_end(all);
    first_bytes_ = std::min(size_, detail::file_end::block);
    first_.reset(new char[first_bytes_]);
    fetch(first_.get(), first_bytes_, 0);
    if (first_bytes_ != 0) check(0, XXH3_64bits(first_.get(), first_bytes_));
  }

  std::size_t size() const { return size_; }

  /// Reads the next `bytes` bytes, which must exist. Throws file_error. The bytes of a block are verified
  /// only once the last of them has been read without an exception.
  void read(void* target, std::size_t bytes) {
    constexpr std::size_t in_cache = std::size_t{256} << 10;  // read and then hashed
    char* to = static_cast<char*>(target);
    for (std::size_t n; bytes != 0; to += n, at_ += n, bytes -= n) {
      if (at_ < first_bytes_) {
        n = std::min(bytes, first_bytes_ - at_);
        std::memcpy(to, first_.get() + at_, n);
        continue;
      }
      const std::size_t in_block = at_ % detail::file_end::block;
      n = std::min({bytes, in_cache, detail::file_end::block - in_block});
      if (in_block == 0) XXH3_64bits_reset(&hash_);
      fetch(to, n, at_);
      XXH3_64bits_update(&hash_, to, n);
      if (in_block + n == detail::file_end::block || at_ + n == size_)
        check(at_ / detail::file_end::block, XXH3_64bits_digest(&hash_));
    }
  }

 private:
  void fetch(void* target, std::size_t bytes, std::size_t at) const {
    char* to = static_cast<char*>(target);
    for (ssize_t n; bytes != 0;
         to += n, at += static_cast<std::size_t>(n), bytes -= static_cast<std::size_t>(n)) {
      n = ::pread(from_.get(), to, bytes, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) {
        n = 0;
      } else if (n < 0) {
        unreadable();
      } else if (n == 0) {
        throw_file_error(file_, "was cut off while it was read; save the table again");
      }
    }
  }
  /// Reads the checksums and the length of the data; `all`: the size of the file.
  void read_end(std::size_t all) {
    detail::file_end end;
    if (all < sizeof(end)) cut_off();
    const std::size_t before_end = all - sizeof(end);
    fetch(&end, sizeof(end), before_end);
    if (std::memcmp(end.mark, detail::file_end::its_mark, sizeof(end.mark)) != 0) cut_off();
    if (end.own_checksum != end.checksum_of_this() || end.bytes > before_end) damaged(before_end, all);
    size_ = end.bytes;
    const std::size_t blocks = (size_ + detail::file_end::block - 1) / detail::file_end::block;
    if (size_ + blocks * sizeof(std::uint64_t) != before_end) damaged(size_, before_end);
    checksums_.resize(blocks);
    fetch(checksums_.data(), before_end - size_, size_);
    if (XXH3_64bits(checksums_.data(), before_end - size_) != end.checksum) damaged(size_, before_end);
  }
  void check(std::size_t block, std::uint64_t checksum) const {
    const std::size_t first = block * detail::file_end::block;
    if (checksum != checksums_[block]) damaged(first, std::min(first + detail::file_end::block, size_));
    detail::come_between();
  }
  [[noreturn]] void unreadable() const {
    throw_file_error(file_, std::string("cannot be read: ") + std::strerror(errno));
  }
  [[noreturn]] void cut_off() const {
    throw_file_error(file_, "was cut off, or has more behind its end; save the table again");
  }
  [[noreturn]] void damaged(std::size_t first, std::size_t last) const {
    throw_file_error(file_, "is damaged between bytes " + std::to_string(first) + " and " +
                                std::to_string(last) + "; save the table again");
  }

  std::filesystem::path file_;
  detail::descriptor from_;
  std::size_t size_ = 0, at_ = 0, first_bytes_ = 0;
  std::vector<std::uint64_t> checksums_;
  std::unique_ptr<char[]> first_;  // block
  XXH3_state_t hash_{};
};

}  // namespace roost
