#pragma once

#include <string>
#include <string_view>

/// \file
/// Text from files and into files. What goes wrong is one line that starts with the name of the file.

namespace roost::tools {

/// All bytes of a file or a pipe; of standard input for `-`. Throws roost::invalid_argument for what is not
/// there or is none.
std::string read_text(const std::string& file);

/// Text on its way into a file. The file keeps what it had until the first byte is written; one that was made
/// here and is not finished is taken away again. Throws roost::error where the file cannot be written.
class text_writer {
 public:
  /// An empty name is standard output.
  explicit text_writer(std::string file);
  ~text_writer();
  text_writer(const text_writer&) = delete;
  text_writer& operator=(const text_writer&) = delete;

  void write(std::string_view text) {
    waiting_ += text;
    if (waiting_.size() >= piece) flush();
  }

  /// Writes what waits, and closes the file.
  void finish();

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  void flush();
  [[noreturn]] void refuse() const;

  std::string file_, waiting_;
  int descriptor_ = -1;
  bool made_ = false, emptied_ = false;
};

/// Throws roost::invalid_argument if a file would be written over one that is read.
void expect_another_file(const std::string& output, const std::string& input);

}  // namespace roost::tools
