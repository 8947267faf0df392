#include <memory>
#include <utility>

#include "arrow_layouts.hpp"
#include "arrow_results.hpp"
#include "support/arrow_oracle.hpp"

// Any sequence of calls of roost.h, with tables in any of Arrow's layouts, answers as maps of the standard
// library do. Arrays that are not as Arrow says, and wrong arguments, are refused: in one line, and nothing
// has changed.

namespace {

using test::row;
using test::rows_64;

struct deleter {
  void operator()(roost_table* it) const { roost_table_destroy(it); }
  void operator()(roost_index* it) const { roost_index_destroy(it); }
  void operator()(roost_groups* it) const { roost_groups_destroy(it); }
};
template <class Handle>
using owned = std::unique_ptr<Handle, deleter>;

/// A table, what it was made of, and its rows.
struct table {
  owned<roost_table> it;
  std::vector<column> columns;
  std::vector<row> rows;

  bool is_wrong() const { return !rows.empty() && std::ranges::any_of(columns, &column::wrong_code); }
};
/// Whether two tables can be compared for certain: tables of other types may be refused.
bool are_alike(const std::vector<column>& one, const std::vector<column>& two) {
  const auto meaning = [](const column& of) {
    const std::string& format = of.value_format();
    return format == "U" || format == "vu" ? "u" : format == "Z" || format == "vz" ? "z" : format;
  };
  return std::ranges::equal(one, two, {}, meaning, meaning);
}
/// Whether the right thing happened to a call with two tables.
void expect_compared(bool done, const output& result, bool has_wrong_code, bool alike) {
  expect(done ? !has_wrong_code : result.is_untouched() && (has_wrong_code || !alike),
         "two tables were compared, or not");
}

struct index {
  owned<roost_index> it;
  std::vector<column> columns;
  test::map_of_rows<std::int64_t> first;
};
struct groups {
  owned<roost_groups> it;
  test::oracle expected;
};

/// Numbers the rows that rows of another table may equal.
test::map_of_rows<std::int64_t> first_rows(const std::vector<row>& rows, bool nulls_equal) {
  test::map_of_rows<std::int64_t> first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (nulls_equal || !test::has_null(rows[i])) first.try_emplace(test::row_text(rows[i]), i);
  }
  return first;
}
rows_64 found_rows(const test::map_of_rows<std::int64_t>& first, const std::vector<row>& rows) {
  rows_64 found;
  for (const row& each : rows) {
    const auto at = first.find(test::row_text(each));
    found.push_back(at == first.end() ? -1 : at->second);
  }
  return found;
}

const std::vector<std::string> formats = {
    "l",        "i",         "u",        "g",          "c",         "C",   "s",   "S",   "I",
    "L",        "b",         "e",        "f",          "U",         "z",   "Z",   "vu",  "vz",
    "w:5",      "w:0",       "w:20",     "n",          "tdD",       "tdm", "tts", "ttm", "ttu",
    "ttn",      "tss:",      "tsm:a\nb", "tsu:UTC",    "tsn:",      "tDs", "tDm", "tDu", "tDn",
    "d:9,2,32", "d:18,2,64", "d:38,2",   "d:38,2,128", "d:18,-3,64"};

column plan_column(input& from, std::size_t rows) {
  const char* const names[] = {"a", "", "b\nc\r", "d\t", "a much longer name of a column"};
  const char* const codes[] = {"c", "C", "s", "S", "i", "I", "l", "L"};
  column made;
  const std::size_t chosen = from.byte(), how = from.byte();
  made.format = formats[chosen % formats.size()];
  if (how % 3 == 2) made.dictionary = std::exchange(made.format, codes[how / 3 % 8]);
  made.is_ordered = !made.dictionary.empty() && how / 24 % 4 == 3;
  made.wrong_code = !made.dictionary.empty() && made.dictionary != "n" && how >= 240;
  made.name = names[chosen / formats.size() % 5];
  std::vector<std::uint32_t> pattern(1 + from.below(16));
  for (auto& number : pattern) number = static_cast<std::uint32_t>(from.byte());
  const std::size_t drift = from.below(3), nulls = from.below(4);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t p = i % pattern.size();
    const auto number = static_cast<std::uint32_t>(pattern[p] + i / pattern.size() * drift);
    const bool is_null = pattern[p] % 16 == 15 && nulls != 0;
    made.numbers.push_back(is_null ? std::nullopt
                                   : std::optional(made.dictionary.empty() ? number : number % 50));
  }
  return made;
}

struct calls {
  input from;
  std::vector<table> tables;
  std::vector<index> indexes;
  std::vector<groups> all_groups;

  const table& some_table() { return tables[from.below(tables.size())]; }

  std::size_t some_rows() {
    const std::size_t small = from.byte();
    return small < 200 ? small % 40 : small < 240 ? small : small * 8;
  }
  table add(const std::vector<column>& columns);
  void add_table();
  void add_other_layout();
  void distinct();
  void two_tables();
  void take();
  void make_index();
  void find();
  void make_groups();
  void reduce();
  void refuse_array();
  void refuse_arguments();
  void refuse_streams();
  void step();
};

/// Makes a table of one array, or of a stream of several.
table calls::add(const std::vector<column>& columns) {
  const std::size_t n = columns[0].numbers.size();
  choices how(from);
  const bool is_struct = columns.size() > 1 || how.flag();
  const std::size_t way = how.below(4);
  std::vector<std::size_t> ends = {n};
  if (way == 3) ends = {n / 3, n / 3, n};
  table made{nullptr, columns, {}};
  const bool is_wrong = std::ranges::any_of(columns, &column::wrong_code);
  if (is_wrong) made.rows.resize(n, row(columns.size()));
  std::vector<ArrowSchema> types;
  for (const column& each : columns) types.push_back(type_of(each));
  auto source = std::make_unique<test::chunk_stream>();
  source->type = is_struct ? test::make_table_type(types) : types[0];
  for (std::size_t begin = 0, c = 0; c < ends.size(); begin = ends[c++]) {
    const std::size_t skipped = is_struct ? how.below(4) * 3 : 0;
    std::vector<ArrowArray> arrays;
    for (const column& each : columns) arrays.push_back(array_of(each, begin, ends[c], skipped, how));
    ArrowArray array = is_struct ? test::make_table(arrays, skipped) : arrays[0];
    array.length = static_cast<std::int64_t>(ends[c] - begin);
    if (is_struct && how.flag()) array.null_count = -1;
    source->chunks.push_back(array);
    if (is_wrong) continue;
    const auto more = test::rows_of(source->type, array);
    made.rows.insert(made.rows.end(), more.begin(), more.end());
  }
  roost_table* result = nullptr;
  if (way == 3) {
    ArrowArrayStream stream = test::chunk_stream::make(source.release());
    expect(is_ok(roost_table_of_stream(&stream, &result)), "a stream was refused");
    expect(stream.release == nullptr, "a stream was not released");
  } else {
    ArrowDeviceArray array{};
    array.array = source->chunks[0];
    array.device_type = how.flag() ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA_HOST;
    expect(is_ok(way == 2 ? roost_table_of_device_array(&source->type, &array, &result)
                          : roost_table_of_array(&source->type, &array.array, &result)),
           "a table was refused");
    expect(source->type.release == nullptr && array.array.release == nullptr, "structs were not moved");
  }
  made.it.reset(result);
  expect(roost_table_rows(result) == static_cast<std::int64_t>(n), "another number of rows");
  return made;
}

void calls::add_table() {
  const std::size_t rows = some_rows();
  std::vector<column> columns;
  for (std::size_t c = 1 + from.below(5); c > 0; --c) columns.push_back(plan_column(from, rows));
  tables.push_back(add(columns));
}

/// The same values in other layouts are the same rows.
void calls::add_other_layout() {
  const table& old = some_table();
  std::vector<column> columns = old.columns;
  for (column& each : columns) {
    std::string& format = each.dictionary.empty() ? each.format : each.dictionary;
    const char *const texts[] = {"u", "U", "vu"}, *const bytes[] = {"z", "Z", "vz"};
    if (format == "u" || format == "U" || format == "vu") format = texts[from.below(3)];
    if (format == "z" || format == "Z" || format == "vz") format = bytes[from.below(3)];
    const auto small = [](const auto& number) { return !number || *number < 50; };
    if (each.dictionary.empty() && from.flag() && std::ranges::all_of(each.numbers, small)) {
      each.dictionary = std::exchange(each.format, "c");
    } else if (!each.dictionary.empty() && from.flag() && !each.wrong_code) {
      each.format = std::exchange(each.dictionary, "");
    }
  }
  table made = add(columns);
  expect(made.rows == old.rows, "the fuzzer's own layouts differ");
  tables.push_back(std::move(made));
}

void calls::distinct() {
  const table& of = some_table();
  const test::oracle all(of.rows, false);
  output one, two;
  const std::size_t what = from.below(5);
  const bool drops = from.flag();
  const int keep = what == 3 ? ROOST_KEEP_FIRST : ROOST_KEEP_NONE;
  roost_status status = ROOST_OK;
  if (what == 0) status = roost_unique(of.it.get(), &one.array);
  if (what == 1) status = roost_factorize(of.it.get(), drops, &one.array, from.flag() ? &two.array : nullptr);
  if (what == 2) status = roost_value_counts(of.it.get(), &one.array, &two.array);
  if (what > 2) status = roost_duplicated(of.it.get(), keep, &one.array);
  expect(is_ok(status) == !of.is_wrong(), "distinct rows of a table were refused, or not");
  if (of.is_wrong()) return expect(one.is_untouched() && two.is_untouched(), "a refused call has written");
  const test::oracle kept(of.rows, what == 1 && drops);
  std::vector<bool> again;
  for (std::size_t i = 0; what > 2 && i < of.rows.size(); ++i) {
    const auto number = static_cast<std::size_t>(all.numbers[i]);
    again.push_back(keep == ROOST_KEEP_FIRST ? all.first[number] != static_cast<std::int64_t>(i)
                                             : all.counts[number] > 1);
  }
  if (what > 2) return one.expect_bools(again);
  one.expect_numbers(what == 1 ? kept.numbers : all.first);
  if (!two.is_untouched()) two.expect_numbers(what == 1 ? kept.first : all.counts);
}

void calls::two_tables() {
  const table &left = some_table(), &right = some_table();
  const int how = static_cast<int>(from.below(7)), nulls = static_cast<int>(from.below(2));
  const bool nulls_equal = nulls == ROOST_NULLS_EQUAL;
  const bool is_wrong = left.is_wrong() || right.is_wrong(), alike = are_alike(left.columns, right.columns);
  output l, r;
  if (how > ROOST_JOIN_ANTI || left.rows.size() * right.rows.size() > 20000) {
    const bool done = is_ok(roost_isin(left.it.get(), right.it.get(), nulls, &l.array));
    expect_compared(done, l, is_wrong, alike);
    std::vector<bool> expected;
    for (const auto at : found_rows(first_rows(right.rows, nulls_equal), left.rows))
      expected.push_back(at >= 0);
    if (done) l.expect_bools(expected);
    return;
  }
  const bool has_right = how < ROOST_JOIN_SEMI;
  const bool done =
      is_ok(roost_join(left.it.get(), right.it.get(), how, nulls, &l.array, has_right ? &r.array : nullptr));
  expect_compared(done, l, is_wrong, alike);
  expect(r.is_untouched() == !(done && has_right), "right rows were written, or not");
  if (!done) return;
  rows_64 left_rows, right_rows;
  for (const auto& [a, b] :
       test::pairs_of(test::rows_as_texts(left.rows), test::rows_as_texts(right.rows), how, nulls_equal)) {
    left_rows.push_back(a);
    right_rows.push_back(b);
  }
  l.expect_numbers(left_rows);
  if (has_right) r.expect_numbers(right_rows);
}

void calls::take() {
  const table& of = some_table();
  values wanted;
  std::vector<row> expected;
  bool is_right = !of.is_wrong();
  for (std::size_t i = 0, n = some_rows(); i < n; ++i) {
    const std::size_t byte = from.byte();
    std::int64_t number =
        of.rows.empty() || byte > 250 ? -1 : static_cast<std::int64_t>((byte + i) % of.rows.size());
    if (byte == 253) number = static_cast<std::int64_t>(of.rows.size());
    if (byte == 254) number = INT64_MIN;
    is_right = is_right && byte != 253 && byte != 254;
    const char* const bytes = reinterpret_cast<const char*>(&number);
    wanted.push_back(byte == 255 ? cell() : cell(std::string(bytes, 8)));
    expected.push_back(number < 0 || !is_right ? row(of.columns.size())
                                               : of.rows[static_cast<std::size_t>(number)]);
  }
  choices how(from);
  ArrowDeviceArray rows{};
  rows.array = lay_out("l", wanted, how);
  rows.device_type = ARROW_DEVICE_CPU;
  output taken;
  const bool done = is_ok(roost_take(of.it.get(), &rows, &taken.type, &taken.array));
  rows.array.release(&rows.array);
  expect(done == is_right && (done || taken.is_untouched()), "rows were refused, or not");
  if (!done) return;
  taken.expect_rows(expected);
  if (taken.array.array.n_children != 0) {  // a field outlives its table
    expect(taken.type.children[0]->name == of.columns[0].name, "another name");
    ArrowArray field = std::exchange(*taken.array.array.children[0], ArrowArray{});
    roost_release_array(&taken.array);
    const auto kept = test::rows_of(*taken.type.children[0], field);
    for (std::size_t i = 0; i < kept.size(); ++i)
      expect(kept[i][0] == expected[i][0], "a field did not stay");
    return field.release(&field);
  }
  roost_table* again = nullptr;
  expect(is_ok(roost_table_of_device_array(&taken.type, &taken.array, &again)), "a result is no table");
  const owned<roost_table> keep(again);
  output first;
  expect(is_ok(roost_unique(again, &first.array)), "a result has no distinct rows");
  first.expect_numbers(test::oracle(expected, false).first);
}

void calls::make_index() {
  const table& of = some_table();
  const int nulls = static_cast<int>(from.below(2));
  roost_index* made = nullptr;
  const bool done = is_ok(roost_index_create(of.it.get(), nulls, &made));
  expect(done == !of.is_wrong() && done == (made != nullptr), "an index was refused, or not");
  if (done)
    indexes.push_back(
        {owned<roost_index>(made), of.columns, first_rows(of.rows, nulls == ROOST_NULLS_EQUAL)});
}

void calls::find() {
  if (indexes.empty()) return make_index();
  const index& in = indexes[from.below(indexes.size())];
  const table& queries = some_table();
  output rows;
  const bool done = is_ok(roost_index_find(in.it.get(), queries.it.get(), &rows.array));
  expect_compared(done, rows, queries.is_wrong(), are_alike(in.columns, queries.columns));
  if (done) rows.expect_numbers(found_rows(in.first, queries.rows));
}

void calls::make_groups() {
  const table& of = some_table();
  const bool drops = from.flag();
  roost_groups* made = nullptr;
  const bool done = is_ok(roost_groups_create(of.it.get(), drops, &made));
  expect(done == !of.is_wrong() && done == (made != nullptr), "groups were refused, or not");
  if (!done) return;
  all_groups.push_back({owned<roost_groups>(made), test::oracle(of.rows, drops)});
  output first, counts;
  const auto& expected = all_groups.back().expected;
  expect(roost_groups_size(made) == static_cast<std::int64_t>(expected.first.size()), "other groups");
  expect(is_ok(roost_groups_first(made, &first.array)) && is_ok(roost_groups_counts(made, &counts.array)),
         "groups were refused");
  first.expect_numbers(expected.first);
  counts.expect_numbers(expected.counts);
}

/// Whether values of a column can be combined.
bool may_combine(const column& of, int how) {
  const std::string& format = of.value_format();
  const bool is_extreme = how == ROOST_MIN || how == ROOST_MAX, is_time = format[0] == 't';
  if (how == ROOST_COUNT) return true;
  if (is_extreme && of.is_ordered) return false;
  return std::string("cCsSiIlLefgbn").find(format) != std::string::npos || (is_time && is_extreme) ||
         (format.starts_with("tD") && how == ROOST_SUM);
}

/// A sum or product of floats, in pieces of 32 as roost.h says.
double combined(std::vector<double> values, int how) {
  while (values.size() > 1) {
    std::vector<double> pieces;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 32 == 0) {
        pieces.push_back(values[i]);
      } else {
        pieces.back() = how == ROOST_PRODUCT ? pieces.back() * values[i] : pieces.back() + values[i];
      }
    }
    values = std::move(pieces);
  }
  return values[0];
}

void calls::reduce() {
  if (all_groups.empty()) make_groups();
  if (all_groups.empty()) return;
  const groups& by = all_groups[from.below(all_groups.size())];
  const rows_64& numbers = by.expected.numbers;
  const int how = static_cast<int>(from.below(8));
  const table of = add({plan_column(from, numbers.size() + (from.byte() == 255))});
  const std::string format = of.columns[0].value_format() == "n" ? "c" : of.columns[0].value_format();
  output result;
  const bool done = is_ok(roost_groups_reduce(by.it.get(), of.it.get(), how, &result.type, &result.array));
  expect(done == (may_combine(of.columns[0], how) && !of.is_wrong() && of.rows.size() == numbers.size()) &&
             (done || result.is_untouched()),
         "values were refused, or not");
  if (!done) return;
  std::vector<std::vector<test::number>> of_group(by.expected.first.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || !of.rows[i][0]) continue;
    const bool counts = how == ROOST_COUNT;
    of_group[static_cast<std::size_t>(numbers[i])].push_back(
        counts ? test::number() : test::number_of(format, *of.rows[i][0]));
  }
  const std::string as = test::result_format(format, how);
  expect(result.type.format == as && result.type.name == of.columns[0].name, "another type");
  std::vector<row> expected;
  for (const auto& group : of_group) {
    auto value = test::reduced(group, how);
    if (value && (how == ROOST_SUM || how == ROOST_PRODUCT || how == ROOST_MEAN)) {
      std::vector<double> reals;
      for (const auto& each : group) reals.push_back(each.real);
      value->real = combined(reals, how) / (how == ROOST_MEAN ? static_cast<double>(group.size()) : 1);
    }
    if (value && as == "f") value->real = static_cast<double>(static_cast<float>(value->real));
    expected.push_back({value ? cell(test::text_of(*value)) : cell()});
  }
  result.expect_rows(expected);
}

/// Makes values, or their type, what Arrow does not allow. Returns false where that cannot be.
bool spoil(std::size_t how, ArrowSchema& type, ArrowArray& array, std::vector<const void*>& buffers) {
  static const char extension[] = "\1\0\0\0\24\0\0\0ARROW:extension:name\1\0\0\0x";
  static const char* const no_types[] = {"+l",   "+r", "+s",      "+ud:0",    "tiM",  "d:40,2,256",   "",
                                         "x",    "w:", "w:x",     "w:-1",     "w:5x", "w:9999999999", "d:9",
                                         "tsx:", "d:", "d:9,2,x", "d:9,2,16", "d:x,2"};
  const std::string format = type.format;
  const bool is_packed = is_text(format) && format[0] != 'w',
             has_values = format != "w:0" && array.length > 0;
  if (format == "n" && how >= 4 && how <= 8) return false;
  switch (how) {
    case 0:
      array.length = -1;
      break;
    case 1:
      array.offset = INT64_MIN;
      break;
    case 2:
      array.length = array.offset = INT64_MAX;
      break;
    case 3:
      array.release = nullptr;  // as that of a child which was moved
      break;
    case 4:
      array.n_buffers = is_packed ? 2 : 1;
      break;
    case 5:
      array.buffers = nullptr;
      break;
    case 6:
      array.null_count = 1;
      buffers[0] = nullptr;
      break;
    case 7:
      buffers[1] = nullptr;
      return has_values;
    case 8:
      buffers[1] = static_cast<const char*>(buffers[1]) + 1;
      return has_values && (is_packed || (test::width_of(format) > 1 && format[0] != 'w'));
    case 9:
      type.release = nullptr;
      break;
    case 10:
      type.format = nullptr;
      break;
    case 11:
      type.metadata = extension;
      break;
    default:
      type.format = no_types[(how - 12) % std::size(no_types)];
  }
  return true;
}

/// The same of a struct array of one field.
void spoil_struct(std::size_t how, ArrowArray& array) {
  if (how == 0) array.n_children = 0;
  if (how == 1) array.n_children = 2;
  if (how == 2) array.length += 100;
  if (how == 3) array.null_count = 1;
  if (how == 4) array.offset = INT64_MAX;
}

/// Arrays and types that are not as Arrow says are refused, and stay with the caller.
void calls::refuse_array() {
  const std::size_t rows = from.below(20), wrong = from.below(64);
  column plan = plan_column(from, rows);
  choices how(from);
  const bool is_struct = how.flag();
  ArrowSchema type = type_of(plan);
  ArrowArray array = array_of(plan, 0, rows, 0, how);
  if (is_struct) type = test::make_table_type({type}), array = test::make_table({array});
  ArrowSchema& field_type = is_struct ? *type.children[0] : type;
  ArrowArray& field = is_struct ? *array.children[0] : array;
  const bool has_codes = !plan.dictionary.empty(), in_dictionary = has_codes && how.flag();
  ArrowSchema& value_type = in_dictionary ? *field_type.dictionary : field_type;
  ArrowArray& value = in_dictionary ? *field.dictionary : field;
  const ArrowSchema kept_type[] = {type, field_type, value_type};
  const ArrowArray kept[] = {array, field, value};
  std::vector<const void*> buffers(value.buffers, value.buffers + value.n_buffers);
  value.buffers = buffers.data();
  bool is_wrong = true;
  if (is_struct && wrong < 5) {
    spoil_struct(wrong, array);
  } else if (has_codes && (wrong == 5 || wrong == 6)) {
    if (wrong == 5) field.dictionary = nullptr;
    if (wrong == 6) field_type.dictionary = nullptr;
  } else {
    is_wrong = spoil(wrong % 31, value_type, value, buffers);
  }
  const ArrowSchema given_type = type;
  const ArrowArray given = array;
  auto* const none = reinterpret_cast<roost_table*>(&from);
  roost_table* made = none;
  expect(!is_wrong || !is_ok(roost_table_of_array(&type, &array, &made)), "a wrong array was taken");
  expect(made == none && std::memcmp(&given, &array, sizeof(array)) == 0 &&
             std::memcmp(&given_type, &type, sizeof(type)) == 0,
         "a refused array was changed");
  value_type = kept_type[2], field_type = kept_type[1], type = kept_type[0];
  value = kept[2], field = kept[1], array = kept[0];
  type.release(&type);
  array.release(&array);
}

void calls::refuse_arguments() {
  const table& of = some_table();
  const roost_table* const t = of.it.get();
  const int wrong = from.flag() ? -1 : 100;
  output o;
  roost_table* made = nullptr;
  roost_index* in = nullptr;
  roost_groups* by = nullptr;
  const auto refused = [&](roost_status status) {
    expect(!is_ok(status) && o.is_untouched() && !made && !in && !by, "wrong arguments were taken");
  };
  refused(roost_unique(nullptr, &o.array));
  refused(roost_unique(t, nullptr));
  refused(roost_factorize(t, wrong, &o.array, nullptr));
  refused(roost_value_counts(t, nullptr, &o.array));
  refused(roost_duplicated(t, wrong, &o.array));
  refused(roost_isin(t, t, wrong, &o.array));
  refused(roost_join(t, t, wrong, ROOST_NULLS_EQUAL, &o.array, &o.array));
  refused(roost_join(t, t, ROOST_JOIN_INNER, ROOST_NULLS_EQUAL, &o.array, nullptr));
  refused(roost_take(t, nullptr, &o.type, &o.array));
  refused(roost_index_create(t, wrong, &in));
  refused(roost_index_find(nullptr, t, &o.array));
  refused(roost_groups_create(t, wrong, &by));
  refused(roost_groups_reduce(nullptr, t, ROOST_SUM, &o.type, &o.array));
  refused(roost_schema(nullptr, nullptr, &o.type));
  refused(roost_set_threads(-1));
  output made_type;
  expect(is_ok(roost_schema("b", "a\nb", &made_type.type)), "a schema was refused");
  expect(made_type.type.format == std::string("b") && made_type.type.name == std::string("a\nb"),
         "another schema");
  for (const groups& each : all_groups)
    refused(roost_groups_reduce(each.it.get(), t, wrong, &o.type, &o.array));
  refuse_streams();
}

/// Streams that fail, and rows that no memory is needed for, but that cannot be counted.
void calls::refuse_streams() {
  auto* source = new test::chunk_stream{};
  source->type = test::make_type("l");
  source->fails = true;
  ArrowArrayStream stream = test::chunk_stream::make(source);
  stream.get_last_error = [](ArrowArrayStream*) { return "a disk\nis on fire"; };
  roost_table* made = nullptr;
  expect(!is_ok(roost_table_of_stream(&stream, &made)) && stream.release == nullptr,
         "a stream was not released");
  source = new test::chunk_stream{};
  source->type = test::make_type("n");
  for (std::size_t c = 1 + from.below(2); c > 0; --c) {
    choices how(from);
    source->chunks.push_back(lay_out("n", {}, how));
    source->chunks.back().length = INT64_MAX - source->chunks.back().offset;
  }
  const bool is_one = source->chunks.size() == 1;
  stream = test::chunk_stream::make(source);
  expect(is_ok(roost_table_of_stream(&stream, &made)) == is_one, "too many rows were taken");
  if (!is_one) return;
  const owned<roost_table> large(made);
  output first;
  expect(!is_ok(roost_unique(made, &first.array)) && first.is_untouched(), "too many rows were numbered");
}

void calls::step() {
  switch (from.below(14)) {
    case 0:
    case 1:
      return add_table();
    case 2:
      return add_other_layout();
    case 3:
      return distinct();
    case 4:
    case 5:
      return two_tables();
    case 6:
      return take();
    case 7:
      return make_index();
    case 8:
      return find();
    case 9:
      return make_groups();
    case 10:
      return reduce();
    case 11:
      return refuse_array();
    case 12:
      return refuse_arguments();
    default:
      expect(is_ok(roost_set_threads(1 + static_cast<int>(from.below(2)))),
             "a number of threads was refused");
  }
}

template <class Handles>
void keep_last(Handles& all) {
  if (all.size() > 4) all.erase(all.begin());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  {
    calls all{input(data, size), {}, {}, {}};
    expect(is_ok(roost_set_threads(1)), "one thread was refused");
    all.add_table();
    for (int i = 0; i < 30 && !all.from.is_empty(); ++i) {
      all.step();
      keep_last(all.tables);
      keep_last(all.indexes);
      keep_last(all.all_groups);
    }
  }
  expect(test::live_structs == 0, "structs were not released");
  return 0;
}
