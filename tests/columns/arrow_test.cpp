#include "support/arrow.hpp"

#include <map>
#include <roost/columns/arrow.hpp>
#include <roost/join.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Columns of Arrow as keys, against an own reader of Arrow's layouts, which reads them before they move to
// the place.

namespace test {
namespace {

using roost::arrow_owner;
using roost::arrow_table;
using roost::column_type;

/// A type by its name, "codes:values" for a dictionary; a schema or an array of it.
struct column_kind {
  std::string format, dictionary = {};
};
const std::vector<column_kind> kinds = {
    {"c"},        {"C"},      {"s"},        {"S"},         {"i"},      {"I"},           {"l"},
    {"L"},        {"b"},      {"e"},        {"f"},         {"g"},      {"tdD"},         {"ttu"},
    {"tsu:UTC"},  {"tDn"},    {"d:9,2,32"}, {"d:18,2,64"}, {"d:38,2"}, {"d:38,2,128"},  {"w:0"},
    {"w:5"},      {"w:20"},   {"u"},        {"U"},         {"z"},      {"Z"},           {"vu"},
    {"vz"},       {"n"},      {"c", "u"},   {"C", "vu"},   {"i", "g"}, {"I", "d:38,2"}, {"L", "b"},
    {"s", "w:5"}, {"l", "e"}, {"S", "n"}};

arrow_owner<ArrowSchema> type_of(const column_kind& kind) {
  ArrowSchema made = make_type(kind.format, kind.dictionary);
  return arrow_owner<ArrowSchema>(made);
}
arrow_owner<ArrowArray> array_of(const column_kind& kind, std::size_t n, std::size_t offset, int nulls,
                                 std::uint64_t range, random_bits& random) {
  ArrowArray made = make_array(kind.format, n, offset, nulls, range, random, kind.dictionary);
  return arrow_owner<ArrowArray>(made);
}

/// Puts the buffers of an array into memory of the place.
void to_place(ArrowArray& array) {
  move_buffers(array, [](const std::vector<char>& buffer) {
    auto copy = std::make_shared<memory_of<char>>(upload(buffer));
    return std::shared_ptr<void>(copy, copy->data());
  });
}

/// The numbers of rows by first occurrence.
std::vector<std::uint32_t> numbers_of(const std::vector<row>& rows) {
  std::unordered_map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  for (const row& each : rows)
    numbers.push_back(known.try_emplace(row_text(each), known.size()).first->second);
  return numbers;
}

TEST(Arrow, ColumnsAreKeys) {
  random_bits random(1);
  const place_type& place = test_place();
  for (const column_kind& kind : kinds) {
    for (const std::size_t n : {0, 1, 9, 3000}) {
      for (const int nulls : {-1, 0, 30, 100}) {
        for (const std::size_t offset : {0, 3, 16}) {
          if (sanitized && n == 3000 && offset != 3) continue;
          const auto type = type_of(kind);
          auto array = array_of(kind, n, offset, nulls, 60, random);
          const auto expected = numbers_of(test::rows_of(*type.get(), *array.get()));
          to_place(*array.get());
          const arrow_table table(*type.get(), *array.get());
          ASSERT_EQ(table.rows(), n);
          const roost::arrow_keys keys(place, {&table});
          const auto columns = keys.columns(0);
          const roost::column_packing packing(place, columns);
          const auto numbers = packing.with_keys(place, columns, [&](const auto& words) {
            return roost::copy_to_host(place, roost::unique_all(place, words, {.inverse = true}).inverse);
          });
          EXPECT_EQ(numbers, expected)
              << kind.format << " " << kind.dictionary << " " << n << " " << nulls << " " << offset;
        }
      }
    }
  }
  EXPECT_EQ(live_structs, 0);
}

TEST(Arrow, TwoTablesAreComparedByValue) {
  random_bits random(2);
  const place_type& place = test_place();
  const std::size_t n = sanitized ? 150 : 500;
  std::size_t compared = 0;
  for (const column_kind& left : kinds) {
    for (const column_kind& right : kinds) {
      const auto types = std::array{type_of(left), type_of(right)};
      auto one = array_of(left, n, 2, 20, 40, random), two = array_of(right, n / 2, 8, 20, 40, random);
      std::vector<row> rows = test::rows_of(*types[0].get(), *one.get());
      const auto others = test::rows_of(*types[1].get(), *two.get());
      rows.insert(rows.end(), others.begin(), others.end());
      to_place(*one.get());
      to_place(*two.get());
      const arrow_table a(*types[0].get(), *one.get()), b(*types[1].get(), *two.get());
      bool has_common = true;
      try {
        roost::common_type(a.columns()[0].type, b.columns()[0].type);
      } catch (const roost::invalid_argument&) {
        has_common = false;
        EXPECT_THROW(roost::arrow_keys(place, {&a, &b}), roost::invalid_argument);
      }
      if (!has_common) continue;
      ++compared;
      const roost::arrow_keys keys(place, {&a, &b});
      const std::array tables{keys.columns(0), keys.columns(1)};
      const roost::column_packing packing(place, tables, roost::null_equality::equal);
      std::vector<std::uint32_t> numbers;
      packing.with_keys(place, tables[0], [&]<class Key>(const memory_of<Key>& words) {
        memory_of<Key> all(place, rows.size());
        place.copy(all.data(), words.data(), words.bytes());
        packing.pack(place, tables[1], all.data() + words.size(), 1);
        numbers = roost::copy_to_host(place, roost::unique_all(place, all, {.inverse = true}).inverse);
        return true;
      });
      EXPECT_EQ(numbers, numbers_of(rows))
          << left.format << left.dictionary << " " << right.format << right.dictionary;
    }
  }
  EXPECT_GT(compared, 300U);
}

TEST(Arrow, CommonTypesHoldAllValues) {
  using form = roost::arrow_type::form;
  using enum column_type;
  const auto number = [](column_type type) { return roost::arrow_type{form::number, type, "numbers"}; };
  const auto common = [&](column_type a, column_type b) {
    EXPECT_EQ(roost::common_type(number(a), number(b)), roost::common_type(number(b), number(a)));
    return roost::common_type(number(a), number(b)).number;
  };
  EXPECT_EQ(common(i1, i8), i8);
  EXPECT_EQ(common(u1, i1), i2);
  EXPECT_EQ(common(u2, i1), i4);
  EXPECT_EQ(common(u4, i4), i8);
  EXPECT_EQ(common(u1, i4), i4);
  EXPECT_EQ(common(b1, i1), i1);
  EXPECT_EQ(common(b1, u8), u8);
  EXPECT_EQ(common(b1, f4), f4);
  EXPECT_EQ(common(u2, f4), f4);
  EXPECT_EQ(common(i4, f4), f8);
  EXPECT_EQ(common(i1, f8), f8);
  EXPECT_EQ(common(f4, f8), f8);
  for (const column_type wide : {i8, u8}) {
    EXPECT_THROW(roost::common_type(number(wide), number(f8)), roost::invalid_argument);
    EXPECT_THROW(roost::common_type(number(f4), number(wide)), roost::invalid_argument);
  }
  EXPECT_THROW(roost::common_type(number(i8), number(u8)), roost::invalid_argument);
  EXPECT_THROW(roost::common_type(number(u8), number(i1)), roost::invalid_argument);
}

/// The message of what f throws.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const roost::invalid_argument& e) {
    return e.what();
  }
  return "nothing";
}

TEST(Arrow, OtherTypesAreRefused) {
  for (const std::string format : {"+l",      "+L",  "+w:3",  "+m",    "+r",
                                   "+ud:0",   "tiM", "tiD",   "tin",   "d:50,2,256",
                                   "d:9,2,8", "q",   "",      "tsx:",  "ts",
                                   "w:",      "w:x", "w:-1",  "w:5x",  "w:99999999999999999999",
                                   "d:",      "d:9", "d:9,x", "d:x,2", "d:9,2,32x"}) {
    const auto type = type_of({format, ""});
    EXPECT_NE(refusal([&] { arrow_table table(*type.get()); }).find("pass numbers"), std::string::npos)
        << format;
  }
  const auto nested = type_of({"g", "u"}), none = type_of({"+s", ""});
  EXPECT_NE(refusal([&] { arrow_table table(*nested.get()); }).find("pass numbers"), std::string::npos);
  EXPECT_NE(refusal([&] { arrow_table table(*none.get()); }).find("without columns"), std::string::npos);
  auto extension = type_of({"w:16", ""});
  const char metadata[] = "\1\0\0\0\24\0\0\0ARROW:extension:name\4\0\0\0uuid";
  extension.get()->metadata = metadata;
  EXPECT_NE(refusal([&] { arrow_table table(*extension.get()); }).find("extension"), std::string::npos);
  EXPECT_FALSE(roost::is_arrow_text(*extension.get()));
}

TEST(Arrow, ReleasedTypesAreRefused) {
  const auto type = type_of({"i", "u"});
  roost::arrow_owner<ArrowSchema> table;
  *table.get() = make_table_type({make_type("i"), make_type("i", "u")});
  for (ArrowSchema* it : {type.get()->dictionary, table->children[0], table->children[1]->dictionary}) {
    const ArrowSchema& all = it == type.get()->dictionary ? *type.get() : *table.get();
    const ArrowSchema before = *it;
    EXPECT_EQ(refusal([&] { arrow_table made(all); }), "nothing");
    it->release = nullptr;  // as of one that was moved
    EXPECT_NE(refusal([&] { arrow_table made(all); }).find("released"), std::string::npos);
    *it = before;
    it->format = nullptr;
    EXPECT_NE(refusal([&] { arrow_table made(all); }).find("released"), std::string::npos);
    *it = before;
  }
}

TEST(Arrow, BrokenArraysAreRefused) {
  random_bits random(3);
  const auto refused = [&](const char* format, const auto& change, const char* dictionary = "") {
    const auto type = type_of({format, dictionary});
    auto array = array_of({format, dictionary}, 20, 0, 20, 9, random);
    const ArrowArray before = *array.get();
    change(*array.get());
    const std::string says = refusal([&] { arrow_table table(*type.get(), *array.get()); });
    *array.get() = before;
    return says != "nothing";
  };
  EXPECT_FALSE(refused("i", [](ArrowArray&) {}));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.release = nullptr; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.length = -1; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.offset = -1; }));
  EXPECT_TRUE(refused("n", [](ArrowArray& it) { it.length = it.offset = INT64_MAX; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.n_buffers = 1; }));
  EXPECT_TRUE(refused("u", [](ArrowArray& it) { it.n_buffers = 2; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.buffers = nullptr; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.dictionary = &it; }));
  EXPECT_TRUE(refused("i", [](ArrowArray& it) { it.dictionary = nullptr; }, "u"));
  const void* buffers[] = {nullptr, nullptr};
  EXPECT_TRUE(refused("i", [&](ArrowArray& it) { it.buffers = buffers, it.null_count = 0; }));
  alignas(8) const char values[200] = {};
  const void* shifted[] = {nullptr, values + 1};
  EXPECT_TRUE(refused("i", [&](ArrowArray& it) { it.buffers = shifted, it.null_count = 0; }));
  EXPECT_TRUE(refused("i", [&](ArrowArray& it) { it.buffers = shifted, it.null_count = 3; }));
  EXPECT_FALSE(refused("c", [&](ArrowArray& it) { it.buffers = shifted, it.null_count = -1; }));
  for (const char* format : {"e", "s", "l", "d:38,2", "u", "Z", "vu"}) {  // numbers, offsets, views
    const void* others[] = {nullptr, values + 1, values, values};
    EXPECT_TRUE(refused(format, [&](ArrowArray& it) { it.buffers = others, it.null_count = 0; })) << format;
    others[1] = values;
    EXPECT_FALSE(refused(format, [&](ArrowArray& it) { it.buffers = others, it.null_count = 0; })) << format;
  }
}

TEST(Arrow, RowsBeyondWhatIsCountedAreRefused) {
  random_bits random(3);
  const auto type = type_of({"n", ""});
  auto array = array_of({"n", ""}, 1, 0, -1, 9, random);
  array->length = array->null_count = INT64_MAX;
  arrow_table table(*type.get(), *array.get());
  EXPECT_NE(refusal([&] { table.add(*array.get()); }).find("more than 2^63"), std::string::npos);
  EXPECT_EQ(table.rows(), static_cast<std::size_t>(INT64_MAX));
}

TEST(Arrow, CodesWithoutAValueAreRefused) {
  const place_type& place = test_place();
  random_bits random(4);
  for (const column_kind& kind : {column_kind{"c", "u"}, column_kind{"c", "i"}}) {
    for (const char code : {char{3}, char{-1}}) {
      const auto type = type_of(kind);
      auto array = array_of(kind, 4, 0, -1, 52, random);  // of 3 values
      const auto codes = upload(std::vector<char>{0, 1, code, 2});
      to_place(*array.get());
      const void* buffers[] = {nullptr, codes.data()};
      const void** const before = array.get()->buffers;
      array.get()->buffers = buffers;
      const arrow_table table(*type.get(), *array.get());
      EXPECT_NE(refusal([&] { roost::arrow_keys keys(place, {&table}); }).find("code of no value"),
                std::string::npos);
      array.get()->buffers = before;
    }
  }
}

TEST(Arrow, ChunksAreOneColumn) {
  random_bits random(5);
  const place_type& place = test_place();
  for (const column_kind& kind : kinds) {
    const auto type = type_of(kind);
    std::vector<arrow_owner<ArrowArray>> chunks;
    std::vector<row> rows;
    arrow_table table(*type.get());
    for (const std::size_t n : {5, 0, 12, 300}) {
      chunks.push_back(array_of(kind, n, n % 7, n == 12 ? -1 : 25, 30, random));
      const auto more = test::rows_of(*type.get(), *chunks.back().get());
      rows.insert(rows.end(), more.begin(), more.end());
      to_place(*chunks.back().get());
    }
    for (const auto& chunk : chunks) table.add(*chunk.get());
    const roost::arrow_keys keys(place, {&table});
    const auto columns = keys.columns(0);
    roost::column_packing(place, columns).with_keys(place, columns, [&](const auto& words) {
      const auto all = roost::unique_all(place, words, {.inverse = true});
      EXPECT_EQ(roost::copy_to_host(place, all.inverse), numbers_of(rows)) << kind.format << kind.dictionary;
      return true;
    });
  }
}

}  // namespace
}  // namespace test
