#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "place.hpp"

// roost.h: checks arguments, and turns exceptions into statuses.

namespace {

using namespace roost;
using c::operations;

/// The last error of a thread: as text, or as a literal if there was no memory for that.
thread_local std::string last_error;
thread_local const char* last_literal = "";

/// Names of columns and errors of streams may have several lines: ? for line ends and the like.
roost_status fail(roost_status status, const char* why) noexcept {
  try {
    last_error = why;
    std::ranges::replace_if(last_error, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
    last_literal = nullptr;
  } catch (...) {
    last_literal = "roost: out of memory";
  }
  return status;
}

/// Calls f(), and turns its exceptions into statuses.
template <class F>
roost_status guarded(const F& f) noexcept {
  try {
    f();
    return ROOST_OK;
  } catch (const invalid_argument& e) {
    return fail(ROOST_INVALID_ARGUMENT, e.what());
  } catch (const out_of_memory& e) {
    return fail(ROOST_OUT_OF_MEMORY, e.what());
  } catch (const std::bad_alloc&) {
    return fail(ROOST_OUT_OF_MEMORY, "roost: out of memory");
  } catch (const device_error& e) {
    return fail(ROOST_DEVICE_ERROR, e.what());
  } catch (const std::exception& e) {
    return fail(ROOST_FAILED, e.what());
  } catch (...) {
    return fail(ROOST_FAILED, "roost: an error of unknown kind");
  }
}

void expect(bool is_right, const char* what) {
  if (!is_right) detail::raise<invalid_argument>({"roost: ", what});
}
template <class... Pointers>
void expect_given(const Pointers*... pointers) {
  expect((... && (pointers != nullptr)), "an argument is NULL; only those that may be are optional");
}
void expect_choice(int chosen, int last, const char* what) {
  if (chosen < 0 || chosen > last) {
    detail::raise<invalid_argument>(
        {"roost: ", what, " is ", chosen, "; give one of the constants of roost.h"});
  }
}

const operations& at(int device) { return device < 0 ? c::at_host() : c::at_cuda(device); }
const operations& at(const roost_table& table) { return at(table.device); }
const operations& at(const roost_table& one, const roost_table& two) {
  expect(one.device == two.device, "two tables in memory of different devices; copy one of them");
  return at(one);
}

null_equality equality_of(int nulls) {
  expect_choice(nulls, ROOST_NULLS_EQUAL, "nulls");
  return nulls == ROOST_NULLS_EQUAL ? null_equality::equal : null_equality::distinct;
}

/// A table of a schema and an array, which stay with the caller if it throws.
std::unique_ptr<roost_table> table_of(ArrowSchema& schema, ArrowArray& array) {
  arrow_table(schema).add(array);
  auto table = std::make_unique<roost_table>();
  table->chunks.emplace_back();
  table->type = arrow_owner<ArrowSchema>(schema);
  table->chunks[0] = arrow_owner<ArrowArray>(array);
  try {
    table->columns = arrow_table(*table->type.get(), *table->chunks[0].get());
  } catch (...) {
    schema = *table->type.get();
    array = *table->chunks[0].get();
    table->type.get()->release = nullptr;
    table->chunks[0].get()->release = nullptr;
    throw;
  }
  return table;
}

int device_of(const ArrowDeviceArray& array) {
  if (array.device_type == ARROW_DEVICE_CPU || array.device_type == ARROW_DEVICE_CUDA_HOST) return -1;
  if (array.device_type != ARROW_DEVICE_CUDA && array.device_type != ARROW_DEVICE_CUDA_MANAGED) {
    detail::raise<invalid_argument>(
        {"roost: arrays on devices of type ", array.device_type, "; pass those of CPUs and CUDA"});
  }
  expect(array.device_id >= 0 && array.device_id < 1 << 16, "a CUDA device with a negative number");
  return static_cast<int>(array.device_id);
}

void read_stream(ArrowArrayStream& from, roost_table& table) {
  const auto expect_done = [&](int error) {
    if (error == 0) return;
    const char* const why = from.get_last_error(&from);
    detail::raise<invalid_argument>(
        {"roost: a stream of Arrow: ", why == nullptr ? std::strerror(error) : why});
  };
  expect_done(from.get_schema(&from, table.type.get()));
  table.columns = arrow_table(*table.type.get());
  while (true) {
    auto& next = table.chunks.emplace_back();
    expect_done(from.get_next(&from, next.get()));
    if (next.released()) return table.chunks.pop_back();
    table.columns.add(*next.get());
  }
}

}  // namespace

extern "C" {

const char* roost_version(void) { return ROOST_VERSION; }

const char* roost_last_error(void) { return last_literal != nullptr ? last_literal : last_error.c_str(); }

roost_status roost_set_threads(int threads) {
  return guarded([&] { c::set_threads(threads); });
}

roost_status roost_table_of_array(ArrowSchema* schema, ArrowArray* array, roost_table** table) {
  return guarded([&] {
    expect_given(schema, array, table);
    *table = table_of(*schema, *array).release();
  });
}

roost_status roost_table_of_device_array(ArrowSchema* schema, ArrowDeviceArray* array, roost_table** table) {
  return guarded([&] {
    expect_given(schema, array, table);
    const int device = device_of(*array);
    at(device);
    auto result = table_of(*schema, array->array);
    result->device = device;
    result->event = array->sync_event;
    *table = result.release();
  });
}

roost_status roost_table_of_stream(ArrowArrayStream* stream, roost_table** table) {
  return guarded([&] {
    expect_given(stream);
    expect(stream->release != nullptr, "a stream that is released");
    arrow_owner<ArrowArrayStream> owned(*stream);
    expect_given(table);
    auto result = std::make_unique<roost_table>();
    read_stream(*owned.get(), *result);
    *table = result.release();
  });
}

int64_t roost_table_rows(const roost_table* table) {
  return table == nullptr ? -1 : static_cast<int64_t>(table->columns.rows());
}

void roost_table_destroy(roost_table* table) { delete table; }

roost_status roost_unique(const roost_table* table, ArrowDeviceArray* first) {
  return guarded([&] {
    expect_given(table, first);
    at(*table).unique(*table, first);
  });
}

roost_status roost_factorize(const roost_table* table, int nulls, ArrowDeviceArray* numbers,
                             ArrowDeviceArray* first) {
  return guarded([&] {
    expect_given(table, numbers);
    expect_choice(nulls, ROOST_NULLS_DROPPED, "nulls");
    at(*table).factorize(*table, nulls == ROOST_NULLS_DROPPED, numbers, first);
  });
}

roost_status roost_value_counts(const roost_table* table, ArrowDeviceArray* first, ArrowDeviceArray* counts) {
  return guarded([&] {
    expect_given(table, first, counts);
    at(*table).value_counts(*table, first, counts);
  });
}

roost_status roost_duplicated(const roost_table* table, int keep, ArrowDeviceArray* result) {
  return guarded([&] {
    expect_given(table, result);
    expect_choice(keep, ROOST_KEEP_NONE, "keep");
    at(*table).duplicated(*table, keep == ROOST_KEEP_FIRST, result);
  });
}

roost_status roost_isin(const roost_table* table, const roost_table* values, int nulls,
                        ArrowDeviceArray* result) {
  return guarded([&] {
    expect_given(table, values, result);
    at(*table, *values).isin(*table, *values, equality_of(nulls), result);
  });
}

roost_status roost_join(const roost_table* left, const roost_table* right, int how, int nulls,
                        ArrowDeviceArray* left_rows, ArrowDeviceArray* right_rows) {
  return guarded([&] {
    expect_given(left, right, left_rows);
    expect_choice(how, ROOST_JOIN_ANTI, "how");
    expect(right_rows != nullptr || how == ROOST_JOIN_SEMI || how == ROOST_JOIN_ANTI, "right_rows is NULL");
    at(*left, *right).join(*left, *right, how, equality_of(nulls), left_rows, right_rows);
  });
}

roost_status roost_take(const roost_table* table, const ArrowDeviceArray* rows, ArrowSchema* schema,
                        ArrowDeviceArray* result) {
  return guarded([&] {
    expect_given(table, rows, schema, result);
    ArrowSchema type{};
    type.format = "l";
    detail::check_arrow(type, rows->array);
    expect(rows->array.n_buffers == 2, "row numbers that are no int64");
    expect(device_of(*rows) == table->device, "row numbers in memory of another device; copy them");
    at(*table).take(*table, *rows, schema, result);
  });
}

roost_status roost_index_create(const roost_table* table, int nulls, roost_index** index) {
  return guarded([&] {
    expect_given(table, index);
    *index = at(*table).index(*table, equality_of(nulls)).release();
  });
}

roost_status roost_index_find(const roost_index* index, const roost_table* queries, ArrowDeviceArray* rows) {
  return guarded([&] {
    expect_given(index, queries, rows);
    expect(index->device == queries->device, "queries in memory of another device than the index; copy them");
    index->find(*queries, rows);
  });
}

void roost_index_destroy(roost_index* index) { delete index; }

roost_status roost_groups_create(const roost_table* keys, int nulls, roost_groups** groups) {
  return guarded([&] {
    expect_given(keys, groups);
    expect_choice(nulls, ROOST_NULLS_DROPPED, "nulls");
    *groups = at(*keys).groups(*keys, nulls == ROOST_NULLS_DROPPED).release();
  });
}

int64_t roost_groups_size(const roost_groups* groups) {
  return groups == nullptr ? -1 : static_cast<int64_t>(groups->size());
}

roost_status roost_groups_first(const roost_groups* groups, ArrowDeviceArray* rows) {
  return guarded([&] {
    expect_given(groups, rows);
    groups->first(rows);
  });
}

roost_status roost_groups_counts(const roost_groups* groups, ArrowDeviceArray* counts) {
  return guarded([&] {
    expect_given(groups, counts);
    groups->counts(counts);
  });
}

roost_status roost_groups_reduce(const roost_groups* groups, const roost_table* values, int how,
                                 ArrowSchema* schema, ArrowDeviceArray* result) {
  return guarded([&] {
    expect_given(groups, values, schema, result);
    expect(groups->device == values->device, "values in memory of another device than the keys; copy them");
    groups->reduce(*values, how, schema, result);
  });
}

void roost_groups_destroy(roost_groups* groups) { delete groups; }

roost_status roost_schema(const char* format, const char* name, ArrowSchema* schema) {
  return guarded([&] {
    expect_given(format, schema);
    auto made = c::make_schema(format, name);
    c::give(made, schema);
  });
}

void roost_release_schema(ArrowSchema* schema) {
  if (schema != nullptr && schema->release != nullptr) schema->release(schema);
}

void roost_release_array(ArrowDeviceArray* array) {
  if (array != nullptr && array->array.release != nullptr) array->array.release(&array->array);
}

}  // extern "C"
