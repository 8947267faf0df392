#include "apps/shared/csv.hpp"

#include "fuzz.hpp"
#include "roost/error.hpp"

// Any bytes are rows or an error, the same wherever pieces of the text end; and rows that are written again
// are the same rows. The first byte of the input chooses how it is read.

namespace {

namespace tools = roost::tools;
using row = std::vector<std::string>;

struct result {
  bool refused = false;
  std::size_t columns = 0;
  row fields, texts;
  bool operator==(const result&) const = default;
};

result read(const std::string& file, const tools::csv_format& format, bool as_one) {
  static const roost::host cpu(1);
  result found;
  try {
    tools::csv_reader reader(cpu, file, format);
    tools::csv_choice choice;
    found.columns = reader.names().size();
    choice.text.emplace(found.columns);
    std::iota(choice.text->begin(), choice.text->end(), std::size_t{0});
    if (as_one) choice.fields.push_back(*choice.text);
    for (std::size_t c = 0; !as_one && c < found.columns; ++c) choice.fields.push_back({c});
    reader.choose(choice);
    tools::text_rows rows;
    reader.read(rows);
    for (const auto field : rows.fields) {
      if (!as_one) {
        found.fields.emplace_back(field);
      } else {
        for (const auto f : tools::split_key(field, found.columns)) found.fields.emplace_back(f);
      }
    }
    found.texts.assign(rows.texts.begin(), rows.texts.end());
  } catch (const roost::error&) {
    found = {};
    found.refused = true;
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzzed_file file(".csv");
  if (size == 0) return 0;
  const auto how = data[0];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  tools::csv_format format;
  format.delimiter = (how & 1) != 0 ? ';' : ',';
  format.on_bad = (how & 2) != 0 ? tools::bad_lines::skip : tools::bad_lines::fail;
  const auto name = file.write(text);
  const auto whole = read(name, format, false);
  expect(whole.fields.size() == whole.texts.size() * whole.columns, "not all fields of all rows");
  format.piece_bytes = std::size_t{1} << (how >> 2 & 7);
  expect(read(name, format, (how & 32) != 0) == whole, "other rows in small pieces");
  if (whole.refused) return 0;

  std::string again;
  for (std::size_t c = 0; c < whole.columns; ++c)
    again += c == 0 ? std::string("h") : format.delimiter + std::string("h");
  for (const auto& row : whole.texts) again += '\n' + (row.empty() ? "\"\"" : row);
  format.on_bad = tools::bad_lines::fail;
  expect(read(file.write(again), format, false) == whole, "written rows are other rows");
  return 0;
}
