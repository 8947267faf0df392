#ifndef __CUDACC__  // reading text is work of the host

#include "../tools/csv.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "roost/error.hpp"

// CSV files become rows of fields, or one line that says what is wrong with them; what is written is read
// again.

namespace test {
namespace {

namespace tools = roost::tools;
using row = std::vector<std::string>;
using rows = std::vector<row>;

/// A file that lives as long as its test.
class file {
 public:
  explicit file(const std::string& content = "")
      : path_(std::filesystem::temp_directory_path() / ("roost_csv_" + std::to_string(getpid()) + ".csv")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~file() { std::filesystem::remove(path_); }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  std::string name() const { return path_.string(); }
  std::string content() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
};

rows rows_of(const tools::text_table& table) {
  rows result(table.rows(), row(table.columns));
  for (std::size_t r = 0; r < result.size(); ++r) {
    for (std::size_t c = 0; c < table.columns; ++c) result[r][c] = table.field(r, c);
  }
  return result;
}

rows read(const std::string& content) {
  return rows_of(tools::read_csv(file(content).name(), tools::bad_lines::fail).table);
}

/// The rows that are left when bad lines are skipped, and how many were.
rows read_skipping(const std::string& content, std::size_t skipped) {
  const auto csv = tools::read_csv(file(content).name(), tools::bad_lines::skip);
  EXPECT_EQ(csv.skipped, skipped) << content;
  return rows_of(csv.table);
}

/// The error: one line that begins with the file's name and says all of `parts`.
void expect_refused(const std::string& content, const std::vector<std::string>& parts) {
  const file f(content);
  try {
    tools::read_csv(f.name(), tools::bad_lines::fail);
    ADD_FAILURE() << content << " was read";
  } catch (const roost::invalid_argument& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with(f.name() + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(csv, reads_what_rfc_4180_defines) {
  EXPECT_EQ(read("a,b\n1,2\n"), (rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a,b\r\n1,2\r\n"), (rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a,b\r1,2\r"), (rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a,b\n1,2"), (rows{{"a", "b"}, {"1", "2"}}));  // no end of the last line
  EXPECT_EQ(read("a,b\n1,\"2\""), (rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a,b\n1,"), (rows{{"a", "b"}, {"1", ""}}));
  EXPECT_EQ(read("a,b\n,\n\"\",\"\"\n"), (rows{{"a", "b"}, {"", ""}, {"", ""}}));
  EXPECT_EQ(read("a\n\"x,y\"\n"), (rows{{"a"}, {"x,y"}}));
  EXPECT_EQ(read("a\n\"say \"\"hi\"\"\"\n"), (rows{{"a"}, {"say \"hi\""}}));
  EXPECT_EQ(read("a,b\n\"1\n\n2\r\n3\",4\n5,6\n"), (rows{{"a", "b"}, {"1\n\n2\r\n3", "4"}, {"5", "6"}}));
  EXPECT_EQ(read("a,b\n 1 , 2 \n"), (rows{{"a", "b"}, {" 1 ", " 2 "}}));      // blanks count
  EXPECT_EQ(read("\n\na\n\n1\r\n\r\n\n2\n\n"), (rows{{"a"}, {"1"}, {"2"}}));  // empty lines do not
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a\n1\n"),
            (rows{{"a"}, {"1"}}));
  EXPECT_EQ(read("a\n"), (rows{{"a"}}));
  EXPECT_EQ(read(std::string("a\n1\0 2\n", 7)), (rows{{"a"}, {std::string("1\0 2", 4)}}));
  EXPECT_EQ(read("a\n" + std::string(1000000, 'x') + "\n")[1][0].size(), 1000000u);
}

TEST(csv, says_what_is_wrong_with_a_line) {
  expect_refused("", {"is empty"});
  expect_refused("\n\r\n", {"no header"});
  expect_refused(
      "\xff\xfe"
      "a",
      {"UTF-16", "iconv"});
  expect_refused("a,\"b\n", {"line 1 ", "never closed", "names of the columns"});
  expect_refused("\n\na\"\n", {"line 3 ", "inside a field"});
  expect_refused("a,b\n1,2\n1\n", {"line 3 has 1 field and the header 2", "--bad-lines skip"});
  expect_refused("a\n1\n1,2,3\n", {"line 3 has 3 fields and the header 1"});
  expect_refused("a,b\n\"1\n2\n3\",4\n5\n", {"line 5 "});  // rows of several lines count them
  expect_refused("a\n1\"2\n", {"line 2 has a quote inside a field"});
  expect_refused("a\n\"1\"2\n", {"line 2 has text behind a closing quote"});
  expect_refused("a\n\"1\" \n", {"line 2 has text behind a closing quote"});
  expect_refused("a\n1\n\"2\n3\n", {"line 3 has a quote that is never closed"});
  expect_refused("a\r1\r\"2\r3\r", {"line 3 has a quote that is never closed"});
  expect_refused("a\n\"x\ny\"z\n", {"line 2 has text behind"});  // where the row begins
}

TEST(csv, skips_bad_lines_alone) {
  EXPECT_EQ(read_skipping("a,b\n1,2\n3\n4,5,6\n7,8\n", 2), (rows{{"a", "b"}, {"1", "2"}, {"7", "8"}}));
  EXPECT_EQ(read_skipping("a\n1\"2\n\"1\"2\n3\n", 2), (rows{{"a"}, {"3"}}));
  EXPECT_EQ(read_skipping("a\n\"1\n2\n3\n", 1),
            (rows{{"a"}, {"2"}, {"3"}}));  // what an open quote hid is there
  EXPECT_EQ(read_skipping("a\r\"1\r2\r3", 1), (rows{{"a"}, {"2"}, {"3"}}));
  EXPECT_EQ(read_skipping("a\n\"1\n2\n3\"4\n5\n", 2), (rows{{"a"}, {"2"}, {"5"}}));
  EXPECT_EQ(read_skipping("a,b\n\"1\n2\"\n3,4\n", 1),
            (rows{{"a", "b"}, {"3", "4"}}));  // a sound row of too few fields is one
  EXPECT_EQ(read_skipping("a\n1\n\"", 1), (rows{{"a"}, {"1"}}));
  EXPECT_EQ(read_skipping("a\n1\n", 0), (rows{{"a"}, {"1"}}));
}

TEST(csv, finds_columns_by_name) {
  const file f("id,name,name,\n1,2,3,4\n");
  const auto csv = tools::read_csv(f.name(), tools::bad_lines::fail);
  EXPECT_EQ(csv.rows(), 1u);
  EXPECT_EQ(csv.column("id"), 0u);
  EXPECT_EQ(csv.column(""), 3u);
  EXPECT_EQ(csv.fields(3)[0], "4");
  EXPECT_TRUE(csv.has_column("name"));
  EXPECT_FALSE(csv.has_column("nam"));
  try {
    csv.column("x\ny");
    ADD_FAILURE();
  } catch (const roost::invalid_argument& e) {
    EXPECT_EQ(e.what(), f.name() + ": has no column 'x?y'; it has 'id', 'name', 'name', ''");
  }
  EXPECT_THROW(csv.column("name"), roost::invalid_argument);
}

TEST(csv, reads_lines) {
  EXPECT_EQ(rows_of(tools::read_lines(file("").name())), rows{});
  EXPECT_EQ(rows_of(tools::read_lines(file("\n").name())), (rows{{""}}));
  EXPECT_EQ(rows_of(tools::read_lines(file("a\n\n\"b,\r\nc").name())),
            (rows{{"a"}, {""}, {"\"b,\r"}, {"c"}}));
}

TEST(csv, leaves_a_file_alone_until_it_writes) {
  const file f("kept");
  {
    const tools::text_writer out(f.name());
  }
  EXPECT_EQ(f.content(), "kept");
  tools::text_writer out(f.name());
  out.write("new");
  out.finish();
  EXPECT_EQ(f.content(), "new");
  EXPECT_THROW(tools::expect_another_file(f.name(), f.name()), roost::invalid_argument);

  const auto fresh = f.name() + ".fresh";
  {
    tools::text_writer unfinished(fresh);
    unfinished.write("half");
    EXPECT_TRUE(std::filesystem::exists(fresh));
  }
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

RC_GTEST_PROP(csv, reads_what_it_has_written, ()) {
  const auto columns = *rc::gen::inRange<std::size_t>(1, 4);
  const auto field =
      rc::gen::container<std::string>(rc::gen::element('a', ' ', ',', '"', '\n', '\r', '\0', '\xff'));
  auto table = *rc::gen::container<rows>(rc::gen::container<row>(columns, field));
  table.insert(table.begin(), row(columns, "h"));
  const file f;
  tools::text_writer out(f.name());
  for (const auto& r : table) {
    for (std::size_t c = 0; c < columns; ++c) {
      if (c != 0) out.write(",");
      tools::write_field(out, r[c], columns == 1);
    }
    out.write("\r\n");
  }
  out.finish();
  const auto csv = tools::read_csv(f.name(), tools::bad_lines::fail);
  RC_ASSERT(csv.crlf);
  RC_ASSERT(rows_of(csv.table) == table);
}

/// Bad lines, however many, leave the sound ones as they are.
RC_GTEST_PROP(csv, any_bytes_are_read_or_refused, ()) {
  auto text = *rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r'));
  const file f("h,i\n" + text);
  const auto csv = tools::read_csv(f.name(), tools::bad_lines::skip);
  RC_ASSERT(csv.table.columns == 2u);
  RC_ASSERT((csv.table.ends.size() - 1) % 2 == 0u);
  RC_ASSERT(csv.table.ends.back() == csv.table.text.size());
  if (csv.skipped == 0)
    RC_ASSERT(rows_of(tools::read_csv(f.name(), tools::bad_lines::fail).table) == rows_of(csv.table));
}

}  // namespace
}  // namespace test

#endif
