#include "text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <roost/error.hpp>
#include <system_error>
#include <utility>

namespace roost::tools {
namespace {

std::string last_reason() { return std::generic_category().message(errno); }

[[noreturn]] void refuse_input(const std::string& name, const std::string& why) {
  throw invalid_argument(fmt::format("{}: {}", name, why));
}

constexpr std::string_view gzip_mark = "\x1f\x8b", zstd_mark = "\x28\xb5\x2f\xfd";
constexpr std::size_t head_bytes = 512;  // of a file or a frame: the mark of a tar archive is at its byte 257

bool is_gzip(std::string_view head) { return head.starts_with(gzip_mark); }

/// Whether this begins a frame of Zstandard, including a skippable one or one of its first versions.
bool is_zstd(std::string_view head) {
  if (head.size() < zstd_mark.size()) return false;
  const auto first = static_cast<unsigned char>(head[0]);
  if (head.substr(1, 3) == zstd_mark.substr(1)) return first == 0x1e || (first >= 0x22 && first <= 0x28);
  return first >> 4 == 5 && head.substr(1, 3) == "\x2a\x4d\x18";
}

/// Throws for a table that is not text. `head`: its first bytes; `what`: what they are of.
void expect_no_table(const std::string& file, const char* what, std::string_view head) {
  using namespace std::literals;
  struct binary {
    std::string_view mark, kind, reader;
  };
  // The letters alone may begin a text.
  for (const auto& [mark, kind, reader] : {binary{"PAR1\x15", "a Parquet file", "read_parquet"},
                                           binary{"ARROW1\0\0"sv, "an Arrow file", "read_ipc"}}) {
    if (!head.starts_with(mark)) continue;
    refuse_input(file, fmt::format("{} {}, which is not read here; make text of it first: python -c \"import "
                                   "polars; polars.{}('FILE').write_csv('FILE.csv')\"",
                                   what, kind, reader));
  }
}

/// Throws for text in an unsupported compressed format. `head`: its first bytes; `what`: what they are of.
void expect_text(const std::string& file, const char* what, std::string_view head) {
  using namespace std::literals;
  struct packed {
    std::size_t at;
    std::string_view mark, how, undo;  // ? in a mark stands for any byte
  };
  static constexpr packed all[] = {{0, gzip_mark, "compressed by gzip", "gzip -dc FILE"},
                                   {0, zstd_mark, "compressed by zstd", "zstd -dc FILE"},
                                   {0, "\xfd\x37zXZ\0"sv, "compressed by xz", "xz -dc FILE"},
                                   {0, "\x5d\0\0"sv, "compressed by lzma", "lzma -dc FILE"},
                                   {0, "BZh?1AY&SY", "compressed by bzip2", "bzip2 -dc FILE"},
                                   {0, "BZh?\x17rE8P\x90", "compressed by bzip2", "bzip2 -dc FILE"},
                                   {0, "\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc FILE"},
                                   {0, "\x02\x21\x4c\x18", "compressed by lz4", "lz4 -dc FILE"},
                                   {0, "LZIP\0"sv, "compressed by lzip", "lzip -dc FILE"},
                                   {0, "LZIP\1", "compressed by lzip", "lzip -dc FILE"},
                                   {0, "\x89LZO\0\r\n\x1a\n"sv, "compressed by lzop", "lzop -dc FILE"},
                                   {0, "\xff\x06\0\0sNaPpY"sv, "compressed by snappy", "snzip -dc FILE"},
                                   {0, "\x1f\x9d", "compressed by compress", "gzip -dc FILE"},
                                   {0, "\x1f\xa0", "compressed by compress -H", "gzip -dc FILE"},
                                   {0, "\x1f\x1e", "compressed by pack", "gzip -dc FILE"},
                                   {0, "PK\3\4", "a zip archive", "unzip -p FILE"},
                                   {0, "PK\5\6", "a zip archive", "unzip -p FILE"},
                                   {0, "PK\7\10", "a zip archive", "unzip -p FILE"},
                                   {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so FILE"},
                                   {0, "Rar!\x1a\7", "a rar archive", "unrar p -inul FILE"},
                                   {257, "ustar", "a tar archive", "tar -xOf FILE"}};
  for (const auto& [at, mark, how, undo] : all) {
    const auto here = head.substr(std::min(at, head.size()), mark.size());
    const auto same = [](char a, char b) { return b == '?' || a == b; };
    if (here.size() == mark.size() && std::equal(here.begin(), here.end(), mark.begin(), same))
      refuse_input(file, fmt::format("{} {}; unpack it first: {} | roost ... -", what, how, undo));
  }
}

}  // namespace

/// Decompresses frames, of which a file may contain several in succession.
class text_source::decoder {
 public:
  /// `head`: the part of the source that has been read.
  decoder(text_source& source, std::string_view head) : source_(source) {
    stored_.resize(stored_bytes);
    input_ = {stored_.data(), head.copy(stored_.data(), head.size())};
  }

  std::size_t read(std::span<char> to) {
    std::size_t size = 0;
    while (size < to.size() && (inside_ || begin_frame())) {
      const auto decoded = (*frame_)(to.subspan(size));  // also without input: output may be buffered inside
      size += decoded;
      if (decoded != 0 || !input_.empty() || !inside_) continue;
      if (!fill(1)) refuse_input(source_.name(), cut_off);
    }
    return size;
  }

 private:
  static constexpr std::size_t stored_bytes = std::size_t{1} << 18;  // read at once
  static constexpr const char* cut_off = "is cut off; get the file again";

  /// Decodes some of input_ into `to`, and reports the end of the frame.
  struct frame {
    explicit frame(decoder& of) : of(of) {}
    virtual ~frame() = default;
    virtual void begin() = 0;
    virtual std::size_t operator()(std::span<char> to) = 0;
    [[noreturn]] void refuse(const char* why) const {
      refuse_input(of.source_.name(), fmt::format("cannot be decompressed ({}); get the file again", why));
    }
    decoder& of;
  };

  struct gzip_frame final : frame {
    explicit gzip_frame(decoder& of) : frame(of) {
      constexpr int only_gzip = 16;
      if (inflateInit2(&stream, MAX_WBITS + only_gzip) != Z_OK) throw std::bad_alloc();
    }
    ~gzip_frame() override { inflateEnd(&stream); }
    void begin() override { inflateReset(&stream); }
    std::size_t operator()(std::span<char> to) override {
      auto& input = of.input_;
      const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), UINT_MAX));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));  // only read
      stream.avail_in = static_cast<uInt>(input.size());
      stream.next_out = reinterpret_cast<Bytef*>(to.data());
      stream.avail_out = room;
      const int status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_BUF_ERROR) return 0;  // no progress was possible
      input.remove_prefix(input.size() - stream.avail_in);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END)
        refuse(stream.msg == nullptr ? "the data are damaged" : stream.msg);
      of.inside_ = status != Z_STREAM_END;
      return room - stream.avail_out;
    }
    z_stream stream = {};
  };

  struct zstd_frame final : frame {
    explicit zstd_frame(decoder& of) : frame(of), stream(ZSTD_createDStream()) {
      if (stream == nullptr) throw std::bad_alloc();
      const auto window = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
      ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, window.upperBound);  // for zstd --long=31
    }
    ~zstd_frame() override { ZSTD_freeDStream(stream); }
    void begin() override { ZSTD_DCtx_reset(stream, ZSTD_reset_session_only); }
    std::size_t operator()(std::span<char> to) override {
      auto& input = of.input_;
      ZSTD_inBuffer in{input.data(), input.size(), 0};
      ZSTD_outBuffer out{to.data(), to.size(), 0};
      const auto status = ZSTD_decompressStream(stream, &out, &in);
      const auto& name = of.source_.name();
      switch (ZSTD_getErrorCode(status)) {
        case ZSTD_error_no_error:
          break;
        case ZSTD_error_memory_allocation:
          refuse_input(name,
                       "needs more memory than there is to be decompressed, 2 GiB if it was compressed "
                       "with zstd --long=31; compress it again without --long");
        case ZSTD_error_frameParameter_windowTooLarge:
          refuse_input(name,
                       "needs a larger window than can be decompressed here; compress it again without "
                       "--long");
        case ZSTD_error_dictionary_wrong:
          refuse_input(name,
                       "was compressed with a dictionary; decompress it first: zstd -dc -D DICTIONARY "
                       "FILE | roost ... -");
        default:
          refuse(ZSTD_getErrorName(status));
      }
      input.remove_prefix(in.pos);
      of.inside_ = status != 0;
      return out.pos;
    }
    ZSTD_DStream* stream;
  };

  /// Makes sure that `size` bytes of input are available. False at the end, where there may be fewer.
  bool fill(std::size_t size) {
    if (input_.size() >= size) return true;
    std::memmove(stored_.data(), input_.data(), input_.size());
    const auto more = source_.read_stored(std::span(stored_).subspan(input_.size()));
    input_ = {stored_.data(), input_.size() + more};
    return input_.size() >= size;
  }

  /// False if no frame follows.
  bool begin_frame() {
    if (source_.ignores_) return false;
    fill(head_bytes);
    while (behind_gzip() && input_.starts_with('\0')) {  // padding of tape blocks
      input_.remove_prefix(std::min(input_.find_first_not_of('\0'), input_.size()));
      fill(head_bytes);
    }
    if (input_.empty()) return false;
    if (gzip_mark.starts_with(input_) || zstd_mark.substr(0, 3).starts_with(input_))
      refuse_input(source_.name(), cut_off);
    if (is_gzip(input_)) {
      frame_ = &made(gzip_);
    } else if (is_zstd(input_)) {
      frame_ = &made(zstd_);
    } else {
      expect_text(source_.name(), "has data after its compressed text that is", input_);
      if (!behind_gzip())
        refuse_input(source_.name(), "has other data after its Zstandard frames; get the file again");
      source_.ignores_ = true;
      return false;
    }
    frame_->begin();
    return inside_ = true;
  }

  bool behind_gzip() const { return frame_ != nullptr && frame_ == gzip_.get(); }

  template <class Frame>
  frame& made(std::unique_ptr<Frame>& one) {
    if (!one) one = std::make_unique<Frame>(*this);
    return *one;
  }

  text_source& source_;
  std::string stored_;
  std::string_view input_;  // of the compressed bytes
  std::unique_ptr<gzip_frame> gzip_;
  std::unique_ptr<zstd_frame> zstd_;
  frame* frame_ = nullptr;  // the current or last one
  bool inside_ = false;     // the frame has not ended
};

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
      // a program that has read standard input before leaves the rest
      const off_t first = std::max<off_t>(lseek(descriptor_, 0, SEEK_CUR), 0);
      expected_ = static_cast<std::size_t>(std::max<off_t>(facts.st_size - first, 0));
    }
    if (how == compression::undone) {
      std::string head(head_bytes, '\0');
      head.resize(read_stored(head));
      if (is_gzip(head) || is_zstd(head)) {
        decoder_ = std::make_unique<decoder>(*this, head);
        head.resize(head_bytes);
        head.resize(decoder_->read(head));
      }
      const char* const what = decoder_ ? "is compressed, and the text inside is" : "is";
      expect_no_table(name_, what, head);
      expect_text(name_, what, head);
      head_ = std::move(head);
    }
  } catch (...) {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
    throw;
  }
}

text_source::~text_source() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

std::size_t text_source::read(std::span<char> to) {
  const auto size = head_.copy(to.data(), to.size());
  head_.erase(0, size);
  const auto rest = to.subspan(size);
  return size + (decoder_ ? decoder_->read(rest) : read_stored(rest));
}

std::size_t text_source::read_stored(std::span<char> to) {
  std::size_t size = 0;
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

void expect_two_files(const std::string& a, const std::string& b) {
  if (a == "-" && b == "-")
    throw invalid_argument("standard input can be one of the two files only; name the other one");
  struct stat of_a = {}, of_b = {};
  const auto look = [](const std::string& file, struct stat& facts) {
    return (file == "-" ? fstat(STDIN_FILENO, &facts) : stat(file.c_str(), &facts)) == 0;
  };
  if (!look(a, of_a) || !look(b, of_b) || S_ISREG(of_a.st_mode) || S_ISDIR(of_a.st_mode)) return;
  if (of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino)
    refuse_input(b, "is a pipe, which can be one of the two files only; name the other one");
}

}  // namespace roost::tools
