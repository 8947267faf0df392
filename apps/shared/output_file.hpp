#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Output files. Errors are one line that starts with the name of the file.

namespace roost::tools {

/// Writes bytes to a file, which is replaced as a whole in finish() and keeps its contents until then. Pipes,
/// devices and open files (/dev/stdout, /dev/fd/N) get the bytes at once. Throws roost::error if the file
/// cannot be written.
class output_file {
 public:
  /// An empty name is standard output.
  explicit output_file(std::string file);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view bytes) {
    waiting_ += bytes;
    if (waiting_.size() >= piece) flush();
  }

  /// Writes buffered bytes, closes the file and puts it in its place.
  void finish();

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  void flush();
  std::string name_of_part() const;
  void open_part();
  [[noreturn]] void refuse() const;

  std::string file_, waiting_;
  std::string target_, part_;  // the name of the finished file, and its name until then, if any
  int descriptor_ = -1;
};

/// Throws roost::invalid_argument if an output would be written over a file that is read, by whatever name.
/// Empty names are ignored; `-` among the inputs is standard input. Reads the status of each file.
void expect_other_files(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs);

/// Throws roost::invalid_argument if two outputs would be written into one file. Empty names are ignored.
void expect_different_files(std::vector<std::string> outputs);

/// Makes a directory and its missing parents. Throws roost::error if that fails, with `instead` as what the
/// user can give.
void make_folder(const std::filesystem::path& folder, std::string_view instead = "another --out");

}  // namespace roost::tools
