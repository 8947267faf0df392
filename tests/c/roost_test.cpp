#include "roost.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <unordered_map>

#include "support/arrow_oracle.hpp"
#include "support/keys.hpp"

#if defined(ROOST_TEST_CUDA)
#include <cuda_runtime_api.h>
#endif

// libroost.so against maps of the standard library, by the functions of roost.h alone.

namespace test {
namespace {

// Compiled programs have these numbers: new constants come after them.
static_assert(ROOST_OK == 0 && ROOST_INVALID_ARGUMENT == 1 && ROOST_OUT_OF_MEMORY == 2 &&
              ROOST_DEVICE_ERROR == 3 && ROOST_FAILED == 4);
static_assert(ROOST_NULLS_DISTINCT == 0 && ROOST_NULLS_EQUAL == 1);
static_assert(ROOST_NULLS_KEPT == 0 && ROOST_NULLS_DROPPED == 1);
static_assert(ROOST_KEEP_FIRST == 0 && ROOST_KEEP_NONE == 1);
static_assert(ROOST_JOIN_INNER == 0 && ROOST_JOIN_LEFT == 1 && ROOST_JOIN_RIGHT == 2 &&
              ROOST_JOIN_OUTER == 3 && ROOST_JOIN_SEMI == 4 && ROOST_JOIN_ANTI == 5);
static_assert(ROOST_SUM == 0 && ROOST_MEAN == 1 && ROOST_MIN == 2 && ROOST_MAX == 3 && ROOST_PRODUCT == 4 &&
              ROOST_ANY == 5 && ROOST_ALL == 6 && ROOST_COUNT == 7);

struct column_kind {
  std::string format, dictionary = {};
};
const std::vector<column_kind> kinds = {
    {"c"},           {"C"},         {"s"},        {"S"},     {"i"},   {"I"},      {"l"},       {"L"},
    {"b"},           {"e"},         {"f"},        {"g"},     {"tdD"}, {"ttu"},    {"tsu:UTC"}, {"tDn"},
    {"d:9,2,32"},    {"d:18,2,64"}, {"d:38,2"},   {"w:0"},   {"w:5"}, {"w:20"},   {"u"},       {"U"},
    {"z"},           {"Z"},         {"vu"},       {"vz"},    {"n"},   {"c", "u"}, {"C", "vu"}, {"i", "g"},
    {"I", "d:38,2"}, {"L", "b"},    {"s", "w:5"}, {"l", "e"}};

/// Every call must be right, and says why it was not.
#define OK(call) ASSERT_EQ(call, ROOST_OK) << roost_last_error()

struct table_deleter {
  void operator()(roost_table* it) const { roost_table_destroy(it); }
  void operator()(roost_index* it) const { roost_index_destroy(it); }
  void operator()(roost_groups* it) const { roost_groups_destroy(it); }
};
template <class Handle>
using owned = std::unique_ptr<Handle, table_deleter>;

/// Where tables are: the device's number, or -1.
int at_device = -1;

#if defined(ROOST_TEST_CUDA)
std::vector<int> devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? std::vector{-1, 0} : std::vector{-1};
}
std::shared_ptr<void> device_copy(const std::vector<char>& from) {
  void* copy = nullptr;
  EXPECT_EQ(cudaMalloc(&copy, from.size()), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(copy, from.data(), from.size(), cudaMemcpyHostToDevice), cudaSuccess);
  return std::shared_ptr<void>(copy, [](void* it) { cudaFree(it); });
}
void copy_back(char* to, const void* from, std::size_t bytes) {
  EXPECT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), cudaSuccess);
}
#else
std::vector<int> devices() { return {-1}; }
std::shared_ptr<void> device_copy(const std::vector<char>&) { return nullptr; }
void copy_back(char* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

/// Puts an array where tables are.
ArrowDeviceArray placed(ArrowArray array) {
  ArrowDeviceArray result{};
  if (at_device >= 0) move_buffers(array, device_copy);
  result.array = array;
  result.device_type = at_device < 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA;
  result.device_id = at_device;
  return result;
}

/// A copy of an array without an offset, on the host.
struct host_copy {
  ArrowArray it{};
  std::vector<std::vector<char>> buffers;
  std::vector<const void*> pointers;
  std::vector<std::unique_ptr<host_copy>> fields;
  std::vector<ArrowArray*> field_pointers;

  host_copy(const ArrowSchema* type, const std::string& format, const ArrowArray& from) : it(from) {
    const auto n = static_cast<std::size_t>(from.length);
    const std::size_t bits = (n + 7) / 8;
    const std::size_t offset_bytes = format == "u" || format == "z" ? 4 : 8;
    const bool is_text = format == "U" || format == "Z" || offset_bytes == 4;
    EXPECT_EQ(from.offset, 0);
    for (std::int64_t i = 0; i < from.n_buffers; ++i) {
      std::size_t bytes = i == 0 || format == "b" ? bits : width_of(format) * n;
      if (i == 1 && is_text) bytes = (n + 1) * offset_bytes;
      if (i == 2) std::memcpy(&(bytes = 0), buffers[1].data() + n * offset_bytes, offset_bytes);
      const bool is_there = from.buffers[i] != nullptr;
      buffers.emplace_back(is_there ? bytes : 0);
      if (is_there && bytes != 0) copy_back(buffers.back().data(), from.buffers[i], bytes);
      pointers.push_back(is_there ? buffers.back().data() : nullptr);
    }
    for (std::int64_t c = 0; c < from.n_children; ++c) {
      const ArrowSchema& of = *type->children[c];
      fields.push_back(std::make_unique<host_copy>(&of, of.format, *from.children[c]));
      field_pointers.push_back(&fields.back()->it);
    }
    it.buffers = pointers.data();
    it.children = field_pointers.data();
  }
};

/// An array that was written, and is released.
struct output {
  ArrowSchema type{};
  ArrowDeviceArray array{};
  output() = default;
  output(const output&) = delete;
  ~output() {
    roost_release_schema(&type);
    roost_release_array(&array);
  }

  rows_64 numbers() const {
    const host_copy copy(nullptr, "l", array.array);
    const auto* const from = static_cast<const std::int64_t*>(copy.it.buffers[1]);
    EXPECT_EQ(array.array.null_count, 0);
    EXPECT_EQ(array.device_type, at_device < 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA);
    return rows_64(from, from + copy.it.length);
  }
  std::vector<bool> bools() const {
    const host_copy copy(nullptr, "b", array.array);
    std::vector<bool> result;
    for (std::int64_t i = 0; i < copy.it.length; ++i) {
      result.push_back(bit_at(copy.it.buffers[1], static_cast<std::size_t>(i)));
    }
    return result;
  }
  std::vector<row> rows() const { return rows_of(type, host_copy(&type, type.format, array.array).it); }
};

/// A table, and its rows as the oracle has them.
struct both {
  owned<roost_table> table;
  std::vector<row> rows;
};

both table_of(const std::vector<column_kind>& columns, std::size_t n, int nulls, std::uint64_t range,
              random_bits& random, bool is_struct = true) {
  std::vector<ArrowSchema> types;
  std::vector<ArrowArray> arrays;
  const std::size_t skipped = random() % 3 * 5;
  for (const column_kind& kind : columns) {
    types.push_back(make_type(kind.format, kind.dictionary));
    arrays.push_back(make_array(kind.format, n + (is_struct ? skipped : 0), random() % 3 * 4, nulls, range,
                                random, kind.dictionary));
  }
  ArrowSchema type = is_struct ? make_table_type(types) : types[0];
  ArrowArray array = is_struct ? make_table(arrays, skipped) : arrays[0];
  both result{nullptr, rows_of(type, array)};
  roost_table* made = nullptr;
  ArrowDeviceArray there = placed(array);
  EXPECT_EQ(at_device < 0 ? roost_table_of_array(&type, &there.array, &made)
                          : roost_table_of_device_array(&type, &there, &made),
            ROOST_OK)
      << roost_last_error();
  EXPECT_EQ(type.release, nullptr);
  EXPECT_EQ(there.array.release, nullptr);
  result.table.reset(made);
  EXPECT_EQ(roost_table_rows(made), static_cast<std::int64_t>(n));
  return result;
}

std::vector<column_kind> random_kinds(random_bits& random, std::size_t most) {
  std::vector<column_kind> columns(1 + random() % most);
  for (column_kind& kind : columns) kind = kinds[random() % kinds.size()];
  return columns;
}

/// Tests that run on the CPU, and on a GPU where there is one.
struct places : testing::TestWithParam<int> {
  void SetUp() override { at_device = GetParam(); }
  void TearDown() override { at_device = -1; }
};
INSTANTIATE_TEST_SUITE_P(C, places, testing::ValuesIn(devices()));

void check_distinct(const both& made) {
  const roost_table* const table = made.table.get();
  const oracle all(made.rows, false), kept(made.rows, true);
  {
    output first;
    OK(roost_unique(table, &first.array));
    EXPECT_EQ(first.numbers(), all.first);
  }
  for (const bool drops : {false, true}) {
    const oracle& expected = drops ? kept : all;
    output numbers, first, alone;
    OK(roost_factorize(table, drops ? ROOST_NULLS_DROPPED : ROOST_NULLS_KEPT, &numbers.array, &first.array));
    EXPECT_EQ(numbers.numbers(), expected.numbers);
    EXPECT_EQ(first.numbers(), expected.first);
    OK(roost_factorize(table, drops, &alone.array, nullptr));
    EXPECT_EQ(alone.numbers(), expected.numbers);
  }
  {
    output first, counts;
    OK(roost_value_counts(table, &first.array, &counts.array));
    EXPECT_EQ(first.numbers(), all.first);
    EXPECT_EQ(counts.numbers(), all.counts);
  }
  for (const int keep : {ROOST_KEEP_FIRST, ROOST_KEEP_NONE}) {
    output again;
    OK(roost_duplicated(table, keep, &again.array));
    std::vector<bool> expected;
    for (std::size_t i = 0; i < made.rows.size(); ++i) {
      const auto number = static_cast<std::size_t>(all.numbers[i]);
      expected.push_back(keep == ROOST_KEEP_FIRST ? all.first[number] != static_cast<std::int64_t>(i)
                                                  : all.counts[number] > 1);
    }
    EXPECT_EQ(again.bools(), expected);
  }
}

/// A device array of row numbers, with nulls for those below -1.
ArrowDeviceArray rows_array(const rows_64& rows, std::size_t offset) {
  auto* const memory = new struct_memory<ArrowArray>{};
  memory->buffers.push_back(std::make_unique<std::vector<char>>((rows.size() + offset + 7) / 8));
  memory->buffers.push_back(std::make_unique<std::vector<char>>((rows.size() + offset) * 8));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = i + offset;
    if (rows[i] >= -1)
      (*memory->buffers[0])[at / 8] = static_cast<char>((*memory->buffers[0])[at / 8] | 1 << at % 8);
    std::memcpy(memory->buffers[1]->data() + at * 8, &rows[i], 8);
  }
  for (const auto& buffer : memory->buffers) memory->pointers.push_back(buffer->data());
  ArrowArray result{};
  memory->finish(result);
  result.length = static_cast<std::int64_t>(rows.size());
  result.offset = static_cast<std::int64_t>(offset);
  result.null_count = -1;
  result.n_buffers = 2;
  result.buffers = memory->pointers.data();
  return placed(result);
}

void check_take(const both& made, random_bits& random) {
  rows_64 wanted;
  std::vector<row> expected;
  const std::size_t columns = made.rows.empty() ? 0 : made.rows[0].size();
  for (std::size_t i = 0; i < made.rows.size() + 9; ++i) {
    const bool none = made.rows.empty() || random() % 6 == 0;
    wanted.push_back(none ? -1 - static_cast<std::int64_t>(random() % 2)
                          : static_cast<std::int64_t>(random() % made.rows.size()));
    expected.push_back(none ? row(columns) : made.rows[static_cast<std::size_t>(wanted.back())]);
  }
  ArrowDeviceArray rows = rows_array(wanted, random() % 4 * 3);
  output taken;
  OK(roost_take(made.table.get(), &rows, &taken.type, &taken.array));
  roost_release_array(&rows);
  EXPECT_EQ(taken.array.array.length, static_cast<std::int64_t>(wanted.size()));
  if (columns != 0) {
    EXPECT_EQ(taken.rows(), expected);
  }
}

TEST_P(places, OneTableAgreesWithMaps) {
  random_bits random(11);
  for (int round = 0; round < 150; ++round) {
    const std::size_t sizes[] = {0, 1, 7, 8, 100, 2000};
    const bool is_struct = random() % 3 != 0;
    const auto columns = random_kinds(random, is_struct ? 5 : 1);
    const int nulls[] = {-1, 0, 20, 100};
    const both made =
        table_of(columns, sizes[random() % 6], nulls[random() % 4], 1 + random() % 60, random, is_struct);
    check_distinct(made);
    check_take(made, random);
    if (HasFailure()) FAIL() << "round " << round << " " << columns[0].format << columns[0].dictionary;
  }
  for (const column_kind& kind : kinds) {
    const both made = table_of({kind}, 700, 20, 50, random, false);
    check_distinct(made);
    check_take(made, random);
    if (HasFailure()) FAIL() << kind.format << kind.dictionary;
  }
  EXPECT_EQ(live_structs, 0);
}

TEST_P(places, LargeTablesAgreeWithMaps) {
  random_bits random(12);
  check_distinct(table_of({{"l"}}, 131071, 10, 1000000, random));
  if (!sanitized) check_distinct(table_of({{"i"}, {"c", "u"}}, 131072, 10, 100, random));
  check_distinct(table_of({{"u"}}, 131073, 10, 1000000, random));
  if (!sanitized) check_distinct(table_of({{"d:38,2"}, {"vu"}}, 131073, 10, 1000, random));
}

TEST_P(places, RowsOfManyWideColumns) {
  random_bits random(13);
  for (const std::size_t columns : {3, 4, 5, 33, 70}) {  // more bits, and more columns, than a key has
    for (const std::size_t n : {0, 700}) {
      const both made = table_of(std::vector<column_kind>(columns, {"l"}), n, 3, 2, random);
      const both other = table_of(std::vector<column_kind>(columns, {"g"}), n, 3, 2, random);
      check_distinct(made);
      check_distinct(other);
    }
  }
}

void check_two(const both& left, const both& right) {
  const rows_as_texts left_texts(left.rows), right_texts(right.rows);
  const bool is_large = left.rows.size() > 100000;
  for (const bool equal : {false, true}) {
    const int nulls = equal ? ROOST_NULLS_EQUAL : ROOST_NULLS_DISTINCT;
    for (int how = ROOST_JOIN_INNER; how <= ROOST_JOIN_ANTI; ++how) {
      if (sanitized && is_large && how != ROOST_JOIN_OUTER && how != ROOST_JOIN_SEMI) continue;
      const bool has_right = how < ROOST_JOIN_SEMI;
      output l, r;
      OK(roost_join(left.table.get(), right.table.get(), how, nulls, &l.array,
                    has_right ? &r.array : nullptr));
      const rows_64 left_rows = l.numbers(), right_rows = has_right ? r.numbers() : rows_64(left_rows.size());
      pairs found;
      ASSERT_EQ(left_rows.size(), right_rows.size());
      for (std::size_t i = 0; i < left_rows.size(); ++i) found.emplace_back(left_rows[i], right_rows[i]);
      EXPECT_EQ(found, pairs_of(left_texts, right_texts, how, equal)) << "how " << how;
    }
    map_of_rows<std::int64_t> first;
    for (std::size_t i = 0; i < right_texts.size(); ++i) {
      if (equal || !right_texts.nulls[i])
        first.try_emplace(right_texts.texts[i], static_cast<std::int64_t>(i));
    }
    std::vector<bool> expected;
    rows_64 expected_rows;
    for (const std::string& each : left_texts.texts) {
      const auto found = first.find(each);
      expected.push_back(found != first.end());
      expected_rows.push_back(found != first.end() ? found->second : -1);
    }
    output in;
    OK(roost_isin(left.table.get(), right.table.get(), nulls, &in.array));
    EXPECT_EQ(in.bools(), expected);
    roost_index* made = nullptr;
    OK(roost_index_create(right.table.get(), nulls, &made));
    const owned<roost_index> index(made);
    output rows;
    if (roost_index_find(made, left.table.get(), &rows.array) == ROOST_OK) {
      EXPECT_EQ(rows.numbers(), expected_rows);
    } else {  // where its type has not all values of the queries'
      EXPECT_NE(std::string(roost_last_error()).find("convert one of them"), std::string::npos)
          << roost_last_error();
    }
  }
}

TEST_P(places, TwoTablesAgreeWithMaps) {
  random_bits random(14);
  const std::vector<std::vector<column_kind>> same = {
      {{"c"}, {"C"}, {"s"}, {"S"}, {"i"}, {"I"}, {"l"}, {"b"}, {"L", "b"}},
      {{"C"}, {"S"}, {"I"}, {"L"}, {"b"}},
      {{"e"}, {"f"}, {"g"}, {"i"}, {"I"}, {"c"}, {"b"}, {"i", "g"}, {"l", "e"}},
      {{"u"}, {"U"}, {"vu"}, {"c", "u"}, {"C", "vu"}, {"n"}},
      {{"z"}, {"Z"}, {"vz"}, {"w:5"}, {"w:20"}, {"w:0"}, {"s", "w:5"}},
      {{"d:9,2,32"}, {"d:18,2,64"}, {"d:38,2"}, {"I", "d:38,2"}},
      {{"tsu:UTC"}},
      {{"tdD"}}};
  for (int round = 0; round < 120; ++round) {
    const std::size_t sizes[] = {0, 1, 30, 300};
    std::vector<column_kind> one, two;
    for (std::size_t c = 1 + random() % 5; c > 0; --c) {
      const auto& group = same[random() % same.size()];
      one.push_back(group[random() % group.size()]);
      two.push_back(group[random() % group.size()]);
    }
    const std::uint64_t range = 1 + random() % (one.size() > 2 ? 4 : 60);
    const both left = table_of(one, sizes[random() % 4], random() % 2 != 0 ? 15 : -1, range, random);
    const both right = table_of(two, sizes[random() % 4], random() % 2 != 0 ? 15 : -1, range, random);
    check_two(left, right);
    if (HasFailure())
      FAIL() << "round " << round << " " << one[0].format << one[0].dictionary << two[0].format;
  }
  EXPECT_EQ(live_structs, 0);
}

TEST_P(places, LargeTablesAreJoined) {
  random_bits random(15);
  for (const column_kind& kind : std::vector<column_kind>{{"l"}, {"u"}}) {
    if (sanitized && kind.format == "l") continue;
    const std::size_t n = kind.format == "l" ? 131071 : 131073;
    check_two(table_of({kind, {"i"}}, n, 5, 1000000, random),
              table_of({kind, {"l"}}, n / 4, 5, 1000000, random));
  }
  const std::vector<column_kind> wide(6, {"l"});  // more bits than a key has
  check_two(table_of(wide, 3000, 5, 2, random), table_of(wide, 2000, 5, 2, random));
}

TEST_P(places, IndexFindsIntegersOfAnyWidth) {
  random_bits random(16);
  for (const std::string format : {"c", "s", "i", "l"}) {
    for (const std::string other : {"c", "C", "s", "S", "i", "I", "l", "b"}) {
      const both table = table_of({{format}}, 200, -1, 90, random),
                 queries = table_of({{other}}, 200, -1, 90, random);
      roost_index* made = nullptr;
      OK(roost_index_create(table.table.get(), ROOST_NULLS_EQUAL, &made));
      const owned<roost_index> index(made);
      output rows;
      OK(roost_index_find(made, queries.table.get(), &rows.array));
      const rows_64 numbers = rows.numbers();
      const oracle all(table.rows, false);
      for (std::size_t i = 0; i < queries.rows.size(); ++i) {
        const auto found = all.known.find(row_text(queries.rows[i]));
        ASSERT_EQ(numbers[i],
                  found == all.known.end() ? -1 : all.first[static_cast<std::size_t>(found->second)]);
      }
    }
  }
}

TEST_P(places, IndexKeepsNothingOfItsTable) {
  random_bits random(17);
  for (const char* format : {"u", "vu", "w:20"}) {
    both table = table_of({{format}}, 500, 10, 300, random);
    roost_index* made = nullptr;
    OK(roost_index_create(table.table.get(), ROOST_NULLS_EQUAL, &made));
    const owned<roost_index> index(made);
    const std::vector<row> before = table.rows;
    table.table.reset();
    EXPECT_EQ(live_structs, 0);
    const both queries = table_of({{format}}, 500, 10, 300, random);
    output rows;
    OK(roost_index_find(made, queries.table.get(), &rows.array));
    const rows_64 numbers = rows.numbers();
    const oracle all(before, false);
    for (std::size_t i = 0; i < queries.rows.size(); ++i) {
      const auto found = all.known.find(row_text(queries.rows[i]));
      ASSERT_EQ(numbers[i],
                found == all.known.end() ? -1 : all.first[static_cast<std::size_t>(found->second)]);
    }
  }
}

TEST(C, StreamsAreTables) {
  random_bits random(18);
  for (int round = 0; round < 60; ++round) {
    const auto columns = random_kinds(random, 4);
    auto* const source = new chunk_stream{};
    std::vector<ArrowSchema> types;
    for (const column_kind& kind : columns) types.push_back(make_type(kind.format, kind.dictionary));
    source->type = make_table_type(types);
    both made;
    for (std::size_t c = random() % 5; c > 0; --c) {
      std::vector<ArrowArray> arrays;
      const std::size_t n = random() % 200 + 5;
      for (const column_kind& kind : columns) {
        arrays.push_back(make_array(kind.format, n, random() % 10, random() % 2 != 0 ? 20 : -1, 30, random,
                                    kind.dictionary));
      }
      source->chunks.push_back(make_table(arrays, random() % 5));
      const auto more = rows_of(source->type, source->chunks.back());
      made.rows.insert(made.rows.end(), more.begin(), more.end());
    }
    ArrowArrayStream stream = chunk_stream::make(source);
    roost_table* table = nullptr;
    OK(roost_table_of_stream(&stream, &table));
    EXPECT_EQ(stream.release, nullptr);
    made.table.reset(table);
    check_distinct(made);
    check_take(made, random);
    check_two(made, made);
    if (HasFailure()) FAIL() << "round " << round;
  }
  auto* const source = new chunk_stream{};
  source->type = make_type("l");
  source->chunks.push_back(make_array("l", 5, 0, -1, 9, random));
  source->fails = true;
  ArrowArrayStream stream = chunk_stream::make(source);
  roost_table* table = nullptr;
  EXPECT_EQ(roost_table_of_stream(&stream, &table), ROOST_INVALID_ARGUMENT);
  EXPECT_NE(std::string(roost_last_error()).find("the disk is on fire"), std::string::npos);
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(live_structs, 0);
}

// Groups.

void check_reduction(const roost_groups* groups, const oracle& keys, const both& values,
                     const std::string& format, int how) {
  output result;
  OK(roost_groups_reduce(groups, values.table.get(), how, &result.type, &result.array));
  EXPECT_EQ(std::string(result.type.format), result_format(format, how));
  std::vector<std::vector<number>> of_group(keys.first.size());
  for (std::size_t i = 0; i < keys.numbers.size(); ++i) {
    if (keys.numbers[i] < 0 || !values.rows[i][0]) continue;
    of_group[static_cast<std::size_t>(keys.numbers[i])].push_back(number_of(format, *values.rows[i][0]));
  }
  const auto found = result.rows();
  ASSERT_EQ(found.size(), of_group.size());
  for (std::size_t g = 0; g < found.size(); ++g) {
    const std::optional<number> expected = reduced(of_group[g], how);
    ASSERT_EQ(found[g][0].has_value(), expected.has_value()) << "group " << g;
    if (!expected) continue;
    const bool is_exact =
        !expected->is_float || how == ROOST_MIN || how == ROOST_MAX || !std::isfinite(expected->real);
    if (is_exact) {
      ASSERT_EQ(*found[g][0], text_of(*expected)) << format << " how " << how << " group " << g;
    } else {
      const double wide = std::strtod(found[g][0]->c_str(), nullptr), size = std::abs(expected->real);
      const double error = result_format(format, how) == "f" ? 1e-5 : 1e-11;
      if (std::isinf(wide)) continue;  // a product beyond what floats hold
      ASSERT_NEAR(wide, expected->real, error * (size + static_cast<double>(of_group[g].size())));
    }
  }
}

TEST_P(places, GroupsAgreeWithMaps) {
  random_bits random(19);
  for (const std::size_t n : {0, 1, 50, 3000, 131071, 131073}) {
    for (const std::string format :
         {"c", "C", "s", "S", "i", "I", "l", "L", "b", "e", "f", "g", "tdD", "tsu:UTC", "tDn"}) {
      if (n > 3000 && format != "i" && (sanitized || (format != "L" && format != "g"))) continue;
      const bool drops = random() % 2 != 0;
      const both keys = table_of({{"i"}, {"u"}}, n, 10, n > 3000 ? 300 : 12, random);
      const both values =
          table_of({{format}}, n, random() % 3 == 0 ? -1 : 30, 200, random, random() % 2 != 0);
      const oracle expected(keys.rows, drops);
      roost_groups* made = nullptr;
      OK(roost_groups_create(keys.table.get(), drops ? ROOST_NULLS_DROPPED : ROOST_NULLS_KEPT, &made));
      const owned<roost_groups> groups(made);
      EXPECT_EQ(roost_groups_size(made), static_cast<std::int64_t>(expected.first.size()));
      output first, counts;
      OK(roost_groups_first(made, &first.array));
      OK(roost_groups_counts(made, &counts.array));
      EXPECT_EQ(first.numbers(), expected.first);
      EXPECT_EQ(counts.numbers(), expected.counts);
      for (int how = ROOST_SUM; how <= ROOST_COUNT; ++how) {
        if (sanitized && n > 3000 && how != ROOST_SUM && how != ROOST_MIN) continue;
        const bool is_extreme = how == ROOST_MIN || how == ROOST_MAX || how == ROOST_COUNT;
        if (format[0] == 't' && !is_extreme && !(format == "tDn" && how == ROOST_SUM)) {
          output result;
          EXPECT_EQ(roost_groups_reduce(made, values.table.get(), how, &result.type, &result.array),
                    ROOST_INVALID_ARGUMENT);
          continue;
        }
        check_reduction(made, expected, values, format, how);
        if (HasFailure()) FAIL() << n << " " << format << " how " << how;
      }
    }
  }
}

TEST_P(places, AnOrderOfADictionaryIsNotIgnored) {
  random_bits random(23);
  const both keys = table_of({{"i"}}, 100, -1, 5, random);
  roost_groups* made = nullptr;
  OK(roost_groups_create(keys.table.get(), ROOST_NULLS_KEPT, &made));
  const owned<roost_groups> groups(made);
  for (const bool ordered : {false, true}) {
    ArrowSchema type = make_type("i", "l");
    if (ordered) type.flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    ArrowDeviceArray array = placed(make_array("i", 100, 0, -1, 5, random, "l"));
    both values{nullptr, {}};
    roost_table* table = nullptr;
    OK(at_device < 0 ? roost_table_of_array(&type, &array.array, &table)
                     : roost_table_of_device_array(&type, &array, &table));
    values.table.reset(table);
    for (const int how : {ROOST_MIN, ROOST_MAX, ROOST_SUM, ROOST_COUNT}) {
      output result;
      const bool is_refused = ordered && (how == ROOST_MIN || how == ROOST_MAX);
      EXPECT_EQ(roost_groups_reduce(made, table, how, &result.type, &result.array),
                is_refused ? ROOST_INVALID_ARGUMENT : ROOST_OK)
          << how;
      if (is_refused) {
        EXPECT_NE(std::string(roost_last_error()).find("an order of its own"), std::string::npos);
      }
    }
  }
}

TEST_P(places, ValuesOfAnyTypeAreCounted) {
  random_bits random(20);
  for (const column_kind& kind : kinds) {
    const both keys = table_of({{"c"}}, 400, 10, 12, random), values = table_of({kind}, 400, 30, 20, random);
    roost_groups* made = nullptr;
    OK(roost_groups_create(keys.table.get(), ROOST_NULLS_KEPT, &made));
    const owned<roost_groups> groups(made);
    output result;
    OK(roost_groups_reduce(made, values.table.get(), ROOST_COUNT, &result.type, &result.array));
    const oracle expected(keys.rows, false);
    rows_64 counts(expected.first.size());
    for (std::size_t i = 0; i < 400; ++i)
      counts[static_cast<std::size_t>(expected.numbers[i])] += values.rows[i][0].has_value();
    EXPECT_EQ(result.numbers(), counts) << kind.format << kind.dictionary;
    output sum;
    const bool is_number = width_of(kind.format) != 0 && kind.dictionary.empty() && kind.format[0] != 'w' &&
                           kind.format[0] != 't' && kind.format[0] != 'd';
    const bool may_sum = is_number || kind.format == "b" || kind.format == "n" || kind.format == "tDn" ||
                         kind.dictionary == "g" || kind.dictionary == "b" || kind.dictionary == "e";
    EXPECT_EQ(roost_groups_reduce(made, values.table.get(), ROOST_SUM, &sum.type, &sum.array),
              may_sum ? ROOST_OK : ROOST_INVALID_ARGUMENT)
        << kind.format << kind.dictionary;
  }
}

// Misuse.

struct misuse : testing::Test {
  random_bits random{21};
  both table = table_of({{"l"}}, 10, -1, 5, random);
  roost_table* t = table.table.get();
  ArrowDeviceArray out{};
  ArrowSchema type{};

  void refused(int status, const char* says) {
    EXPECT_EQ(status, ROOST_INVALID_ARGUMENT);
    EXPECT_NE(std::string(roost_last_error()).find(says), std::string::npos) << roost_last_error();
    EXPECT_EQ(out.array.release, nullptr);
    EXPECT_EQ(type.release, nullptr);
  }
};

TEST_F(misuse, NullPointersAreRefused) {
  const char* const says = "NULL";
  roost_table* made = nullptr;
  roost_index* index = nullptr;
  roost_groups* groups = nullptr;
  ArrowArray array{};
  refused(roost_table_of_array(nullptr, &array, &made), says);
  refused(roost_table_of_array(&type, nullptr, &made), says);
  refused(roost_table_of_array(&type, &array, nullptr), says);
  refused(roost_table_of_device_array(nullptr, &out, &made), says);
  refused(roost_table_of_stream(nullptr, &made), says);
  refused(roost_unique(nullptr, &out), says);
  refused(roost_unique(t, nullptr), says);
  refused(roost_factorize(t, 0, nullptr, &out), says);
  refused(roost_value_counts(t, &out, nullptr), says);
  refused(roost_duplicated(nullptr, 0, &out), says);
  refused(roost_isin(t, nullptr, 0, &out), says);
  refused(roost_join(t, t, ROOST_JOIN_INNER, 0, &out, nullptr), says);
  refused(roost_join(t, t, ROOST_JOIN_SEMI, 0, nullptr, nullptr), says);
  refused(roost_take(t, nullptr, &type, &out), says);
  refused(roost_index_create(t, 0, nullptr), says);
  refused(roost_index_create(nullptr, 0, &index), says);
  refused(roost_index_find(nullptr, t, &out), says);
  refused(roost_groups_create(nullptr, 0, &groups), says);
  refused(roost_groups_first(nullptr, &out), says);
  refused(roost_groups_counts(nullptr, &out), says);
  refused(roost_groups_reduce(nullptr, t, 0, &type, &out), says);
  refused(roost_schema(nullptr, "a", &type), says);
  EXPECT_EQ(roost_table_rows(nullptr), -1);
  EXPECT_EQ(roost_groups_size(nullptr), -1);
  roost_table_destroy(nullptr);
  roost_index_destroy(nullptr);
  roost_groups_destroy(nullptr);
  roost_release_schema(nullptr);
  roost_release_array(nullptr);
}

TEST_F(misuse, ReleasedStructsAreRefused) {
  roost_table* made = nullptr;
  ArrowSchema fine = make_type("l");
  ArrowArray released{};
  refused(roost_table_of_array(&type, &released, &made), "released");
  refused(roost_table_of_array(&fine, &released, &made), "released");
  EXPECT_NE(fine.release, nullptr);  // it stays
  ArrowArrayStream stream{};
  refused(roost_table_of_stream(&stream, &made), "released");
  refused(roost_take(t, &out, &type, &out), "released");
  ArrowArray array = make_array("u", 3, 0, -1, 5, random);
  ArrowSchema nested = make_type("+l");
  refused(roost_table_of_array(&nested, &array, &made), "pass numbers");
  EXPECT_NE(array.release, nullptr);
  array.release(&array);
  roost_release_schema(&nested);
  roost_release_schema(&fine);
  EXPECT_EQ(made, nullptr);
}

TEST_F(misuse, WrongChoicesAndTypesAreRefused) {
  for (const int wrong : {-1, 2}) {
    refused(roost_factorize(t, wrong, &out, nullptr), "nulls");
    refused(roost_duplicated(t, wrong, &out), "keep");
    refused(roost_isin(t, t, wrong, &out), "nulls");
    roost_index* index = nullptr;
    refused(roost_index_create(t, wrong, &index), "nulls");
  }
  refused(roost_join(t, t, 6, 0, &out, &out), "how");
  refused(roost_join(t, t, -1, 0, &out, &out), "how");
  EXPECT_EQ(roost_set_threads(-1), ROOST_INVALID_ARGUMENT);
  const both texts = table_of({{"u"}}, 10, -1, 5, random), two = table_of({{"l"}, {"l"}}, 10, -1, 5, random);
  const both unsigned_ones = table_of({{"L"}}, 10, -1, 5, random),
             floats = table_of({{"g"}}, 10, -1, 5, random);
  refused(roost_isin(t, texts.table.get(), 0, &out), "never equal");
  refused(roost_isin(t, unsigned_ones.table.get(), 0, &out), "no common type");
  refused(roost_isin(t, floats.table.get(), 0, &out), "no common type");
  refused(roost_isin(t, two.table.get(), 0, &out), "as many");
  const std::vector<std::pair<const char*, const char*>> never = {
      {"tsu:UTC", "tsu:"},  {"tsu:", "tsn:"}, {"tdD", "tdm"}, {"d:9,2,32", "d:9,3,32"},
      {"d:38,2", "d:38,3"}, {"u", "z"},       {"i", "tdD"},   {"i", "d:9,0,32"}};
  for (const auto& [a, b] : never) {
    const both one = table_of({{a}}, 5, -1, 5, random), other = table_of({{b}}, 5, -1, 5, random);
    refused(roost_join(one.table.get(), other.table.get(), 0, 0, &out, &out), "never equal");
    roost_index* index = nullptr;
    OK(roost_index_create(one.table.get(), 0, &index));
    refused(roost_index_find(index, other.table.get(), &out), "never equal");
    roost_index_destroy(index);
  }
  roost_groups* groups = nullptr;
  OK(roost_groups_create(t, 0, &groups));
  refused(roost_groups_reduce(groups, texts.table.get(), ROOST_SUM, &type, &out), "pass numbers");
  refused(roost_groups_reduce(groups, two.table.get(), ROOST_SUM, &type, &out), "one column");
  refused(roost_groups_reduce(groups, t, 8, &type, &out), "how");
  const both shorter = table_of({{"l"}}, 9, -1, 5, random);
  refused(roost_groups_reduce(groups, shorter.table.get(), ROOST_SUM, &type, &out), "9 rows");
  roost_groups_destroy(groups);
}

TEST_F(misuse, RowsThatAreNoneAreRefused) {
  for (const rows_64& rows : {rows_64{0, 10}, rows_64{INT64_MAX}}) {
    ArrowDeviceArray wrong = rows_array(rows, 0);
    refused(roost_take(t, &wrong, &type, &out), "does not have");
    roost_release_array(&wrong);
  }
  ArrowDeviceArray below = rows_array({-2}, 0);
  const void* buffers[] = {nullptr, below.array.buffers[1]};
  const void** const before = below.array.buffers;
  below.array.buffers = buffers;
  refused(roost_take(t, &below, &type, &out), "does not have");
  below.array.buffers = before;
  roost_release_array(&below);
}

TEST_F(misuse, DevicesThatAreNotThereAreRefused) {
  ArrowSchema schema = make_type("l");
  ArrowDeviceArray array{};
  array.array = make_array("l", 3, 0, -1, 5, random);
  roost_table* made = nullptr;
  array.device_type = ARROW_DEVICE_CUDA;
  array.device_id = 60000;
  EXPECT_EQ(roost_table_of_device_array(&schema, &array, &made), ROOST_DEVICE_ERROR);
  array.device_type = 7;
  refused(roost_table_of_device_array(&schema, &array, &made), "devices of type 7");
  array.device_type = ARROW_DEVICE_CPU;
  OK(roost_table_of_device_array(&schema, &array, &made));
  EXPECT_EQ(array.array.release, nullptr);
  roost_table_destroy(made);
}

TEST(C, ErrorsHaveOneLine) {
  random_bits random(24);
  ArrowSchema type = make_type("+l", "", "two\nlines\x7F");
  ArrowArray array = make_array("l", 5, 0, -1, 9, random);
  roost_table* table = nullptr;
  EXPECT_EQ(roost_table_of_array(&type, &array, &table), ROOST_INVALID_ARGUMENT);
  EXPECT_NE(std::string(roost_last_error()).find("\"two?lines?\""), std::string::npos) << roost_last_error();
  auto* const source = new chunk_stream{};
  source->type = type;
  source->chunks.push_back(array);
  source->fails = true;
  ArrowArrayStream stream = chunk_stream::make(source);
  stream.get_schema = [](ArrowArrayStream*, ArrowSchema*) { return 5; };
  stream.get_last_error = [](ArrowArrayStream*) { return "the disk\r\nis on fire"; };
  EXPECT_EQ(roost_table_of_stream(&stream, &table), ROOST_INVALID_ARGUMENT);
  EXPECT_NE(std::string(roost_last_error()).find("the disk??is on fire"), std::string::npos);
  EXPECT_EQ(live_structs, 0);
}

TEST(C, ErrorsBelongToThreads) {
  ArrowDeviceArray out{};
  EXPECT_EQ(roost_unique(nullptr, &out), ROOST_INVALID_ARGUMENT);
  const std::string mine = roost_last_error();
  std::thread([] { EXPECT_STREQ(roost_last_error(), ""); }).join();
  EXPECT_EQ(roost_last_error(), mine);
  EXPECT_STREQ(roost_version(), ROOST_VERSION);
}

TEST_P(places, ManyThreadsUseOneTable) {
  random_bits random(22);
  const both table = table_of({{"u"}, {"i"}}, 20000, 5, 500, random);
  const oracle expected(table.rows, false);
  roost_index* made = nullptr;
  OK(roost_index_create(table.table.get(), ROOST_NULLS_EQUAL, &made));
  const owned<roost_index> index(made);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(roost_set_threads(i % 3), ROOST_OK);
      output first, rows;
      EXPECT_EQ(roost_unique(table.table.get(), &first.array), ROOST_OK);
      EXPECT_EQ(roost_index_find(made, table.table.get(), &rows.array), ROOST_OK);
      right += first.numbers() == expected.first && rows.numbers().size() == table.rows.size();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(roost_set_threads(0), ROOST_OK);
}

TEST_P(places, ResultsAreTables) {
  random_bits random(23);
  const both table = table_of({{"u"}, {"i"}}, 300, 5, 10, random);
  output first, keys;
  OK(roost_unique(table.table.get(), &first.array));
  OK(roost_take(table.table.get(), &first.array, &keys.type, &keys.array));
  EXPECT_STREQ(keys.type.children[0]->name, "a");
  roost_table* made = nullptr;
  OK(roost_table_of_device_array(&keys.type, &keys.array, &made));
  const owned<roost_table> distinct(made);
  output numbers;
  OK(roost_factorize(made, ROOST_NULLS_KEPT, &numbers.array, nullptr));
  rows_64 counted(oracle(table.rows, false).first.size());
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(numbers.numbers(), counted);
  ArrowSchema rows_type{};
  OK(roost_schema("l", "rows", &rows_type));
  EXPECT_STREQ(rows_type.format, "l");
  EXPECT_STREQ(rows_type.name, "rows");
  roost_table* rows = nullptr;
  OK(roost_table_of_device_array(&rows_type, &first.array, &rows));
  EXPECT_EQ(roost_table_rows(rows), roost_table_rows(made));
  roost_table_destroy(rows);
}

}  // namespace
}  // namespace test
