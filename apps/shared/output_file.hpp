#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Files that are written. What goes wrong is one line that starts with the name of the file.

namespace roost::tools {

/// Bytes on their way into a file, which appears as a whole in finish() and keeps what it had until then.
/// Pipes and devices get them as they come. Throws roost::error where the file cannot be written.
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

  /// Writes what waits, closes the file and puts it in its place.
  void finish();

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  void flush();
  std::string name_of_part() const;
  void open_part();
  [[noreturn]] void refuse() const;

  std::string file_, waiting_;
  std::string target_, part_;  // where the finished file goes, and what it is called until then, if anything
  int descriptor_ = -1;
};

/// Throws roost::invalid_argument if an output would be written over a file that is read, by whatever name.
/// Empty names are none; `-` among the inputs is standard input. Costs a look at each file.
void expect_other_files(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs);

/// Throws roost::invalid_argument if two outputs would be written into one file. Empty names are none.
void expect_different_files(std::vector<std::string> outputs);

/// Makes a directory, and those that it is in, where they are missing. Throws roost::error where that fails:
/// `instead` is what the user can give.
void make_folder(const std::filesystem::path& folder, std::string_view instead = "another --out");

}  // namespace roost::tools
