#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Text from files. Errors are one line that starts with the name of the file.

namespace roost::tools {

/// The bytes of a file or a pipe, or of standard input for `-`, in order.
class text_source {
 public:
  enum class compression { kept, undone };

  /// Opens the file. `undone`: gzip and Zstandard are decompressed, all frames one after the other, using the
  /// memory of a window; other compressed formats are refused. Throws roost::invalid_argument if it does not
  /// exist, is not a file, or cannot be read.
  explicit text_source(const std::string& file, compression how = compression::undone);
  ~text_source();
  text_source(const text_source&) = delete;
  text_source& operator=(const text_source&) = delete;

  /// Fills `to`. Returns how many bytes there were; fewer than requested only at the end.
  std::size_t read(std::span<char> to);
  /// The name used in messages.
  const std::string& name() const { return name_; }
  /// How many bytes remain in the file; 0 for a pipe. Meaningless for a compressed file.
  std::size_t expected() const { return expected_; }
  /// How many stored bytes have been read.
  std::size_t taken() const { return stored_; }
  /// Whether bytes after the compressed text that are neither zeros nor compressed were ignored, as gzip
  /// does.
  bool ignores_rest() const { return ignores_; }

  class decoder;

 private:
  std::size_t read_stored(std::span<char> to);

  std::string name_;
  int descriptor_ = -1;
  std::size_t expected_ = 0, stored_ = 0;
  bool ignores_ = false;
  std::string head_;  // of the text: read to determine its kind, and not yet returned
  std::unique_ptr<decoder> decoder_;
};

/// All bytes of a file or a pipe, as stored or decompressed; of standard input for `-`. Throws as text_source
/// does.
std::string read_text(const std::string& file, text_source::compression how = text_source::compression::kept);

/// Throws roost::invalid_argument if both files are the same one and it can be read only once: standard
/// input, a pipe.
void expect_two_files(const std::string& a, const std::string& b);

}  // namespace roost::tools
