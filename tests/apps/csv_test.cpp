#ifndef __CUDACC__  // reading text is work of the host

#include "apps/shared/csv.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/shared/output_file.hpp"
#include "roost/error.hpp"
#include "support/keys.hpp"

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

row fields_of(std::span<const std::string_view> fields) { return {fields.begin(), fields.end()}; }

/// The header and the rows.
rows rows_of(const tools::csv_file& csv) {
  rows result{csv.names};
  for (std::size_t r = 0; r < csv.rows(); ++r) {
    result.emplace_back();
    for (std::size_t c = 0; c < csv.names.size(); ++c) result.back().emplace_back(csv.fields(c)[r]);
  }
  return result;
}

rows read(const std::string& content) {
  return rows_of(tools::read_csv(file(content).name(), {',', tools::bad_lines::fail}));
}

/// The rows that are left when bad lines are skipped, and how many were.
rows read_skipping(const std::string& content, std::size_t skipped) {
  testing::internal::CaptureStderr();
  const auto result = rows_of(tools::read_csv(file(content).name(), {',', tools::bad_lines::skip}));
  const auto said = testing::internal::GetCapturedStderr();
  const auto expected = skipped == 0 ? "" : "left out " + std::to_string(skipped) + " bad line";
  EXPECT_TRUE(skipped == 0 ? said.empty() : said.find(expected) != said.npos) << content << said;
  return result;
}

/// What a reader gives of rows: the chosen fields and the text.
std::pair<row, row> choose(const std::string& content, const tools::csv_choice& choice,
                           char delimiter = ',') {
  const file f(content);
  const roost::host cpu(2);
  tools::csv_reader reader(cpu, f.name(), {delimiter, tools::bad_lines::fail});
  reader.choose(choice);
  tools::text_rows table;
  EXPECT_FALSE(reader.read(table));
  return {fields_of(table.fields), fields_of(table.texts)};
}

/// The error: one line that begins with the file's name and says all of `parts`.
void expect_refused(const std::string& content, const std::vector<std::string>& parts) {
  const file f(content);
  try {
    tools::read_csv(f.name(), {',', tools::bad_lines::fail});
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
  const auto csv = tools::read_csv(f.name(), {',', tools::bad_lines::fail});
  EXPECT_EQ(csv.rows(), 1u);
  EXPECT_EQ(csv.column("id"), 0u);
  EXPECT_EQ(csv.column(""), 3u);
  EXPECT_EQ(csv.fields(3)[0], "4");
  try {
    csv.column("x\ny");
    ADD_FAILURE();
  } catch (const roost::invalid_argument& e) {
    EXPECT_EQ(e.what(), f.name() + ": has no column 'x?y'; it has 'id', 'name', 'name', ''");
  }
  EXPECT_THROW(csv.column("name"), roost::invalid_argument);
  const file utf16(std::string("i\0d\0\n\0", 6));
  try {
    tools::read_csv(utf16.name(), {',', tools::bad_lines::skip}).column("id");
    ADD_FAILURE();
  } catch (const roost::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("iconv -f UTF-16LE"), std::string::npos) << e.what();
  }
}

TEST(csv, gives_rows_as_they_are_written) {
  using columns = std::vector<std::size_t>;
  const columns all{0, 1, 2}, two{0, 1};
  EXPECT_EQ(choose("a,b,c\n1,2,3\n", {{{0}}, all}), (std::pair{row{"1"}, row{"1,2,3"}}));
  EXPECT_EQ(choose("a,b,c\n1,2,3\n", {{{0}}, columns{1, 2}}), (std::pair{row{"1"}, row{"2,3"}}));
  EXPECT_EQ(choose("a,b,c\n1,2,3\n", {{{1}}, columns{0, 2}}), (std::pair{row{"2"}, row{"1,3"}}));
  EXPECT_EQ(choose("a,b,c\n1,2,3\n", {{{2}, {0}}, columns{1}}), (std::pair{row{"3", "1"}, row{"2"}}));
  EXPECT_EQ(choose("a\n1\n", {{{0}}, columns{}}), (std::pair{row{"1"}, row{""}}));
  EXPECT_EQ(choose("a,b\n\"1\",\"x,\"\"\"\n", {{{0}}, two}), (std::pair{row{"1"}, row{"1,\"x,\"\"\""}}));
  EXPECT_EQ(choose("a,b\n\"1\",\"x,\"\"\"\n", {{}, columns{1}}), (std::pair{row{}, row{"\"x,\"\"\""}}));
  EXPECT_EQ(choose("a;b\n1,2;\"3;4\"\n", {{{1}}, two}, ';'), (std::pair{row{"3;4"}, row{"1,2;\"3;4\""}}));
  EXPECT_EQ(choose("a\tb\n1\t\n", {{{0}, {1}}, {}}, '\t'), (std::pair{row{"1", ""}, row{}}));
  // Several columns as one: what they say together, and can be taken apart.
  const auto keys = choose("a,b,c\n12,,3\n1,,23\n12,,3\n", {{{0, 2}}, {}}).first;
  EXPECT_EQ(keys[0], keys[2]);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(fields_of(tools::split_key(keys[1], 2)), (row{"1", "23"}));
}

// Delimiters at every place of the words that lines are split by, among bytes that differ from them by a bit.
TEST(csv, splits_lines_at_every_delimiter) {
  for (const char delimiter : {',', '\t', 'x', '\x81'}) {
    for (std::size_t n = 1; n < 40; ++n) {
      row expected(1);
      std::string line;
      for (std::size_t i = 0; i < n; ++i) {
        const char near[] = {'a', static_cast<char>(delimiter ^ 0x80), static_cast<char>(delimiter ^ 1),
                             static_cast<char>(delimiter + 2), '\xff'};
        const bool ends = i * n % 3 == 0 || (i % 16 > 8 && n % 2 == 0);
        const char c = ends ? delimiter : near[(i + n) % 5];
        line += c;
        ends ? static_cast<void>(expected.emplace_back()) : static_cast<void>(expected.back() += c);
      }
      std::string header(expected.size() - 1, delimiter);
      tools::csv_choice choice;
      for (std::size_t c = 0; c < expected.size(); ++c) choice.fields.push_back({c});
      if (expected.size() == 1) header = "h";
      EXPECT_EQ(choose(header + "\n" + line + "\n", choice, delimiter).first, expected) << n;
    }
  }
}

// Rows that lie across the pieces that are parsed by themselves.
TEST(csv, rows_may_be_longer_than_a_piece) {
  const std::string lines(700000, '\n'), plain(700000, 'x');
  rows expected{{"a", "b"}};
  std::string text = "a,b\n";
  const auto add = [&](const std::string& a, const std::string& b, bool quoted) {
    expected.push_back({a, b});
    text += quoted ? '"' + a + "\"," + b + '\n' : a + ',' + b + '\n';
  };
  for (int i = 0; i < (sanitized ? 1 : 2); ++i) {
    add("1" + lines, "2", true);
    add(plain, plain, false);
    add("with \n line" + lines + lines + lines + lines, "", true);
    for (int k = 0; k < 1000; ++k) add(std::to_string(k), "y", k % 7 == 0);
  }
  EXPECT_EQ(read(text), expected);
  // What stands behind a quote that is never closed is read again, however long it is.
  auto more = expected;
  std::string rest;
  for (int k = 0; k < 200000; ++k) {
    rest += "12345,67\n";
    more.push_back({"12345", "67"});
  }
  EXPECT_EQ(read_skipping(text + "\"open,1\n" + rest, 1), more);
}

TEST(csv, reads_compressed_files) {
  const unsigned char gzip[] = {31, 139, 8, 0, 0, 0,  0,   0,   2, 3, 75, 228,
                                50, 228, 2, 0, 0, 36, 193, 137, 4, 0, 0,  0};
  const unsigned char zstd[] = {40, 181, 47, 253, 36, 4, 33, 0, 0, 97, 10, 49, 10, 117, 28, 195, 1};
  const std::string good[] = {{std::begin(gzip), std::end(gzip)}, {std::begin(zstd), std::end(zstd)}};
  for (const auto& bytes : good) {
    EXPECT_EQ(read(bytes), (rows{{"a"}, {"1"}}));
    EXPECT_EQ(read(bytes + bytes), (rows{{"a"}, {"1"}, {"a"}, {"1"}}));  // one behind the other
    expect_refused(bytes.substr(0, bytes.size() - 6), {"cut off"});
    auto damaged = bytes;
    damaged[bytes.size() - (bytes[0] == '\x1f' ? 5 : 1)] ^= 1;  // of the checksum
    expect_refused(damaged, {"decompressed"});
    for (std::size_t size = bytes.size() + 1; size < 2 * bytes.size(); ++size)
      expect_refused((bytes + bytes).substr(0, size), {"cut off"});
  }
  const std::string skipped("\x5a\x2a\x4d\x18\1\0\0\0x", 9), zeros(700000, '\0');
  EXPECT_EQ(read(skipped + good[1] + skipped + good[0] + skipped), (rows{{"a"}, {"1"}, {"a"}, {"1"}}));
  EXPECT_EQ(read(good[0] + zeros), (rows{{"a"}, {"1"}}));
  EXPECT_EQ(read(good[0] + zeros + good[0]), (rows{{"a"}, {"1"}, {"a"}, {"1"}}));
  expect_refused(good[1] + zeros, {"other data after its Zstandard frames"});
  std::string many;
  rows expected;
  for (int i = 0; i < 50000; ++i) many += good[i % 2];
  for (int i = 0; i < 100000; ++i) expected.push_back({i % 2 == 0 ? "a" : "1"});
  EXPECT_EQ(read(many), expected);
}

TEST(csv, reads_lines) {
  const auto lines = [](const std::string& content) {
    const file f(content);
    const roost::host cpu(2);
    tools::line_reader reader(cpu, f.name());
    tools::text_rows table;
    EXPECT_FALSE(reader.read(table));
    return fields_of(table.fields);
  };
  EXPECT_EQ(lines(""), row{});
  EXPECT_EQ(lines("\n"), row{""});
  EXPECT_EQ(lines("a\n\n\"b,\r\nc"), (row{"a", "", "\"b,", "c"}));
  EXPECT_EQ(lines("a\r\r\n\rb\n\r"), (row{"a\r", "\rb", ""}));  // one CR before LF is of the end
  EXPECT_EQ(lines("a\r\rb\r"), (row{"a", "", "b"}));            // of old Macs
  EXPECT_EQ(lines("\xef\xbb\xbf"), row{});
  EXPECT_EQ(lines("\xef\xbb\xbf\xef\xbb\xbf\n"), row{"\xef\xbb\xbf"});
  EXPECT_THROW(lines("\xff\xfe"), roost::invalid_argument);
  EXPECT_THROW(lines(std::string("\0\0\xfe\xff", 4)), roost::invalid_argument);
  std::string many;
  row expected;
  for (int i = 0; i < 300000; ++i) many += expected.emplace_back("line " + std::to_string(i)) + '\n';
  EXPECT_EQ(lines(many), expected);
  const std::string piece(tools::text_piece_bytes - 1, 'x');
  EXPECT_EQ(lines(piece + "\na\rb"), (row{piece, "a\rb"}));
  EXPECT_EQ(lines(piece + "\ra\rb"), (row{piece, "a", "b"}));
  std::ranges::replace(many, '\n', '\r');
  EXPECT_EQ(lines(many), expected);
}

/// However short they are, memory is that of so many rows.
TEST(csv, reads_a_few_rows_at_a_time) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string content = "h" + end;
    row expected;
    for (int i = 0; i < 2000; ++i) content += expected.emplace_back(std::to_string(i * i % 1000)) + end;
    const file f(content);
    const roost::host cpu(4);
    tools::csv_reader reader(cpu, f.name(), {',', tools::bad_lines::fail, 16});
    tools::csv_choice choice;
    choice.fields = {{0}};
    reader.choose(choice);
    row all;
    tools::text_rows table;
    for (bool more = true; more; table.clear()) {
      more = reader.read(table, 1000, 20);
      EXPECT_LE(table.fields.size(), 20u);
      for (const auto field : table.fields) all.emplace_back(field);
      ASSERT_LE(all.size(), expected.size());
    }
    EXPECT_EQ(all, expected);
  }
}

TEST(csv, a_file_appears_as_a_whole) {
  const file f("kept");
  {
    tools::output_file out(f.name());
    out.write("half");
  }
  EXPECT_EQ(f.content(), "kept");
  std::filesystem::permissions(f.name(), std::filesystem::perms(0640));
  const auto link = f.name() + ".link";
  std::filesystem::create_symlink(f.name(), link);
  tools::output_file out(link);
  out.write(std::string(5 << 20, 'x'));
  EXPECT_EQ(f.content(), "kept");
  out.finish();
  EXPECT_EQ(f.content(), std::string(5 << 20, 'x'));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::status(f.name()).permissions(), std::filesystem::perms(0640));
  EXPECT_THROW(tools::expect_other_files({f.name()}, {link}), roost::invalid_argument);
  std::filesystem::remove(link);

  const auto fresh = f.name() + ".fresh";
  {
    tools::output_file unfinished(fresh);
    unfinished.write(std::string(5 << 20, 'x'));
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
  tools::output_file out(f.name());
  for (const auto& r : table) {
    for (std::size_t c = 0; c < columns; ++c) {
      std::string field;
      tools::append_field(field, r[c], ',');
      if (columns == 1 && field.empty()) field = "\"\"";
      out.write((c == 0 ? "" : ",") + field);
    }
    out.write("\r\n");
  }
  out.finish();
  const roost::host cpu(1);
  RC_ASSERT(tools::csv_reader(cpu, f.name()).crlf());
  RC_ASSERT(rows_of(tools::read_csv(f.name(), {',', tools::bad_lines::fail})) == table);
}

/// Bad lines, however many, leave the sound ones as they are; and rows are the same wherever pieces of the
/// text end.
RC_GTEST_PROP(csv, any_bytes_are_read_or_refused, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r'));
  const file f("h,i\n" + text);
  const roost::host cpu(2);
  const auto read = [&](std::size_t piece_bytes) {
    tools::csv_reader reader(cpu, f.name(), {',', tools::bad_lines::skip, piece_bytes});
    reader.choose({{{0}, {1}}, std::vector<std::size_t>{0, 1}});
    tools::text_rows rows;
    while (reader.read(rows, rows.bytes + 8)) {
    }
    testing::internal::CaptureStderr();
    reader.report_skipped();
    return std::tuple{fields_of(rows.fields), fields_of(rows.texts), testing::internal::GetCapturedStderr()};
  };
  const auto whole = read(1 << 20);
  RC_ASSERT(std::get<0>(whole).size() == 2 * std::get<1>(whole).size());
  for (const std::size_t bytes : {1, 2, 3, 7, 20}) RC_ASSERT(read(bytes) == whole);
}

}  // namespace
}  // namespace test

#endif
