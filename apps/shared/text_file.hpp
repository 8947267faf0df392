#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Text from files. What goes wrong is one line that starts with the name of the file.

namespace roost::tools {

/// The bytes of a file or a pipe, of standard input for `-`, in their order.
class text_source {
 public:
  enum class compression { kept, undone };

  /// Opens the file. `undone`: one of gzip or of Zstandard gives what was compressed, all frames of it one
  /// after the other, in the memory of a window; what is compressed in other ways is refused. Throws
  /// roost::invalid_argument for what is not there or is no file, and where reading fails.
  explicit text_source(const std::string& file, compression how = compression::undone);
  ~text_source();
  text_source(const text_source&) = delete;
  text_source& operator=(const text_source&) = delete;

  /// Fills `to`. Returns how many bytes there were; fewer than asked for only at the end.
  std::size_t read(std::span<char> to);
  /// The name as messages have it.
  const std::string& name() const { return name_; }
  /// How many bytes the file has from here on, 0 for a pipe; of a compressed file this tells nothing.
  std::size_t expected() const { return expected_; }
  /// How many bytes, as they are stored, have been read.
  std::size_t taken() const { return stored_; }
  /// Whether bytes behind the compressed text that are neither zeros nor compressed were left out, as gzip
  /// does.
  bool ignores_rest() const { return ignores_; }

  class decoder;

 private:
  std::size_t read_stored(std::span<char> to);

  std::string name_;
  int descriptor_ = -1;
  std::size_t expected_ = 0, stored_ = 0;
  bool ignores_ = false;
  std::string head_;  // of the text: what was read to see what it is, and is still to be given out
  std::unique_ptr<decoder> decoder_;
};

/// All bytes of a file or a pipe, as they are stored or with their compression undone; of standard input for
/// `-`. Throws as text_source does.
std::string read_text(const std::string& file, text_source::compression how = text_source::compression::kept);

/// Throws roost::invalid_argument for two files that are one which can be read once only: standard input, a
/// pipe.
void expect_two_files(const std::string& a, const std::string& b);

}  // namespace roost::tools
