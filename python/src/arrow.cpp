#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "../../c/src/lookup.hpp"
#include "../../c/src/take.hpp"
#include "bind.hpp"
#include "capsules.hpp"
#include "columns.hpp"

// Arrow columns in memory of a place, through Arrow's C device interface, using the functions of the C
// interface. Calls that read a column have finished with it when they return: then it may be released.

namespace roost::python {
namespace {

/// Calls f(), and turns its refusals into TypeErrors.
template <class F>
auto of_types(const F& f) {
  try {
    return f();
  } catch (const invalid_argument& error) {
    throw nb::type_error(error.what());
  }
}

/// Keeps a Python object alive for memory that may be released in any thread.
std::shared_ptr<void> kept(nb::object it) {
  return {it.release().ptr(), [](void* object) {
            if (!nb::is_alive()) return;
            const nb::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(object));
          }};
}

using shared_type = std::shared_ptr<const ArrowSchema>;
using shared_array = std::shared_ptr<const ArrowArray>;

/// A struct, and the owner of its memory.
template <class Struct>
std::shared_ptr<const Struct> shared(arrow_owner<Struct>&& from, std::shared_ptr<void> needed = nullptr) {
  struct memory {
    std::shared_ptr<void> needed;
    arrow_owner<Struct> it;
  };
  auto owner = std::make_shared<memory>(std::move(needed), std::move(from));
  return {owner, owner->it.get()};
}

/// A column in chunks, which may share memory with other columns.
class arrow_column {
 public:
  arrow_column(shared_type type, std::vector<shared_array> chunks)
      : type_(std::move(type)), chunks_(std::move(chunks)), table_(*type_) {
    for (const shared_array& chunk : chunks_) table_.add(*chunk);
  }

  std::size_t rows() const { return table_.rows(); }
  std::string format() const { return type_->format; }
  /// The format of a dictionary's values.
  std::string value_format() const {
    return type_->dictionary == nullptr ? type_->format : type_->dictionary->format;
  }
  const arrow_table& table() const { return table_; }
  const arrow_table::column& column() const { return table_.columns()[0]; }
  const std::vector<shared_array>& chunks() const { return chunks_; }
  bool is_whole() const { return chunks_.size() == 1 && type_->dictionary == nullptr; }
  shared_type type() const { return type_; }

  /// The only chunk, exported.
  arrow_owner<ArrowArray> exported() const {
    const shared_array& from = chunks_[0];
    std::vector<c::result_buffer> buffers;
    for (std::int64_t i = 0; i < from->n_buffers; ++i) {
      buffers.push_back({from->buffers[i], std::const_pointer_cast<ArrowArray>(from)});
    }
    auto result = c::make_array(rows(), 0, std::move(buffers));
    result->null_count = from->null_count;
    result->offset = from->offset;
    return result;
  }

 private:
  shared_type type_;
  std::vector<shared_array> chunks_;
  arrow_table table_;
};

using columns_of_table = std::vector<const arrow_column*>;

int device_of(const host&) { return -1; }
#if defined(__CUDACC__)
int device_of(const cuda& gpu) { return gpu.device(); }
#endif

// From Python, and back.

/// Where an array of `__arrow_c_device_array__` is: Arrow's device type, and the number of the device.
nb::tuple arrow_device(const nb::handle& capsule) {
  const auto& array = from_capsule<ArrowDeviceArray>(capsule, "arrow_device_array");
  return nb::make_tuple(array.device_type, array.device_id);
}

/// The result of `__arrow_c_device_stream__`, as capsules of its type and its arrays; and the device type.
nb::tuple arrow_chunks(const nb::handle& capsule) {
  arrow_owner<ArrowDeviceArrayStream> from(
      from_capsule<ArrowDeviceArrayStream>(capsule, "arrow_device_array_stream"));
  ArrowSchema type{};
  expect_read(from, from->get_schema(from.get(), &type));
  const nb::object schema = to_capsule(type, "arrow_schema");
  nb::list chunks;
  while (true) {
    ArrowDeviceArray next{};
    expect_read(from, from->get_next(from.get(), &next));
    if (next.array.release == nullptr) return nb::make_tuple(schema, chunks, from->device_type);
    chunks.append(to_capsule(next, "arrow_device_array"));
  }
}

/// A field of struct arrays, with the rows of these.
arrow_column field_of(const shared_type& type, const std::vector<shared_array>& chunks, std::int64_t field) {
  std::vector<shared_array> fields;
  for (const shared_array& chunk : chunks) {
    ArrowArray part = *chunk->children[field];
    if (part.null_count > 0 && part.length != chunk->length) part.null_count = -1;
    part.offset += chunk->offset;
    part.length = chunk->length;
    fields.emplace_back(new ArrowArray(part), [chunk](const ArrowArray* it) { delete it; });
  }
  return {shared_type(type, type->children[field]), std::move(fields)};
}

/// The columns of arrays in capsules, and their names; None for the names if arrays are not tables.
template <class Place>
nb::tuple import_arrow(const call_place<Place>& at, const nb::handle& schema, const nb::sequence& arrays) {
  const shared_type type = shared(arrow_owner(from_capsule<ArrowSchema>(schema, "arrow_schema")));
  std::vector<shared_array> chunks;
  std::vector<void*> events;
  for (const nb::handle each : arrays) {
    auto& from = from_capsule<ArrowDeviceArray>(each, "arrow_device_array");
    chunks.push_back(shared(arrow_owner(from.array)));
    if (from.sync_event != nullptr) events.push_back(from.sync_event);
    if (from.sync_event != nullptr && from.device_type == ARROW_DEVICE_CUDA_HOST) {
      detail::raise<invalid_argument>({"roost: an array in pinned memory, with an event; wait for it first"});
    }
  }
  arrow_table all = of_types([&] { return arrow_table(*type); });
  for (const shared_array& chunk : chunks) all.add(*chunk);
  if (!events.empty()) {
    without_gil(at, [&](const Place& place) {
      for (void* const event : events) c::at_place<Place>::wait_for(place, event);
      place.synchronize();
    });
  }
  if (std::string_view(type->format) != "+s") {
    return nb::make_tuple(std::vector{arrow_column(type, chunks)}, nb::none());
  }
  std::vector<arrow_column> columns;
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < type->n_children; ++c) {
    const char* const name = type->children[c]->name;
    columns.push_back(field_of(type, chunks, c));
    names.emplace_back(name == nullptr ? "" : name);
  }
  return nb::make_tuple(std::move(columns), std::move(names));
}

struct row_itself {
  std::int64_t* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = static_cast<std::int64_t>(i); }
};

/// Rows of a column. `needed`: keeps the place's memory alive.
template <class Place>
arrow_column rows_of(const Place& place, const arrow_column& from, const c::wanted_row& wanted, std::size_t n,
                     std::shared_ptr<void> needed) {
  const c::taker<Place> take(place, device_of(place), wanted, n);
  take.check(from.rows());
  c::taken made = take.column(from.column());
  place.synchronize();
  return {shared(std::move(made.type)), {shared(std::move(made.values), std::move(needed))}};
}

template <class Place>
arrow_column take_rows(const call_place<Place>& at, const arrow_column& from, const column& rows) {
  const auto numbers = span_of<std::int64_t>(rows);
  auto needed = kept(nb::find(at));
  return without_gil(at, [&](const Place& place) {
    return rows_of(place, from, {numbers.data(), nullptr, 0}, numbers.size(), std::move(needed));
  });
}

/// A column in one chunk, in a layout that does not refer to other memory.
template <class Place>
arrow_column decoded(const call_place<Place>& at, const arrow_column& from) {
  auto needed = kept(nb::find(at));
  return without_gil(at, [&](const Place& place) {
    array<std::int64_t, Place> rows(place, from.rows());
    place.for_each(rows.size(), row_itself{rows.data()});
    return rows_of(place, from, {rows.data(), nullptr, 0}, rows.size(), std::move(needed));
  });
}

/// The result of `__arrow_c_device_array__` for a table or, without names, for a column.
template <class Place>
nb::tuple export_arrow(const call_place<Place>& at, const columns_of_table& columns,
                       const std::optional<std::vector<std::string>>& names) {
  std::vector<arrow_owner<ArrowSchema>> types;
  std::vector<arrow_owner<ArrowArray>> fields;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const arrow_column it = columns[i]->is_whole() ? *columns[i] : decoded(at, *columns[i]);
    types.push_back(c::make_schema(it.format(), names ? (*names)[i].c_str() : ""));
    fields.push_back(it.exported());
  }
  const std::size_t rows = columns.at(0)->rows();
  auto type = names ? c::make_schema("+s", "", std::move(types)) : std::move(types[0]);
  auto all = names ? c::make_array(rows, 0, {{}}, std::move(fields)) : std::move(fields[0]);
  ArrowSchema schema;
  ArrowDeviceArray result;
  c::give(type, &schema);
  const nb::object first = to_capsule(schema, "arrow_schema");
  c::give(all, &result, c::at_place<Place>::type, device_of(at.get()));
  return nb::make_tuple(first, to_capsule(result, "arrow_device_array"));
}

/// The result of `__arrow_c_array__` for a copy in host memory.
template <class Place>
nb::tuple copy_to_cpu(const call_place<Place>& at, const arrow_column& column) {
  const arrow_column from = decoded(at, column);
  const ArrowArray& array = *from.chunks()[0];
  const detail::arrow_format how = detail::arrow_format_of(from.format());
  const std::size_t n = from.rows(), bits = detail::ceil_div<std::size_t>(n, 8);
  using memory = std::vector<std::byte>;
  std::vector<std::shared_ptr<memory>> copies;
  without_gil(at, [&](const Place& place) {
    for (std::int64_t i = 0; i < array.n_buffers; ++i) {
      std::size_t bytes = bits;
      if (i == 1 && how.layout == detail::arrow_layout::packed) bytes = (n + 1) * 4;
      if (i == 1 && how.layout == detail::arrow_layout::large) bytes = (n + 1) * 8;
      if (i == 1 && how.layout == detail::arrow_layout::fixed) bytes = n * how.width;
      if (i == 1 && how.layout == detail::arrow_layout::wide) bytes = n * 16;
      if (i == 1 && how.layout == detail::arrow_layout::half) bytes = n * 2;
      if (i == 1 && how.layout == detail::arrow_layout::number) bytes = n * bytes_of(how.number);
      if (i == 2) {  // as many as the last offset says
        const std::size_t width = how.layout == detail::arrow_layout::packed ? 4 : 8;
        std::memcpy(&(bytes = 0), copies[1]->data() + n * width, width);
      }
      const bool is_there = array.buffers[i] != nullptr;
      copies.push_back(is_there ? std::make_shared<memory>(bytes) : nullptr);
      if (is_there && bytes != 0) place.copy_to_host(copies.back()->data(), array.buffers[i], bytes);
    }
  });
  std::vector<c::result_buffer> buffers;
  for (auto& copy : copies) buffers.push_back({copy == nullptr ? nullptr : copy->data(), copy});
  auto type = c::make_schema(from.format(), "");
  auto result = c::make_array(n, static_cast<std::size_t>(array.null_count), std::move(buffers));
  ArrowSchema schema;
  c::give(type, &schema);
  const nb::object first = to_capsule(schema, "arrow_schema");
  const ArrowArray given = *result.get();
  result.get()->release = nullptr;
  return nb::make_tuple(first, to_capsule(given, "arrow_array"));
}

/// A column from Python arrays: a bitmap or None, then the buffers of the format.
template <class Place>
arrow_column from_arrays(const call_place<Place>& at, const std::string& format, std::size_t n,
                         std::size_t nulls, const nb::list& arrays) {
  const std::shared_ptr<void> needed = kept(arrays);
  std::vector<c::result_buffer> buffers;
  for (const nb::handle each : arrays) {
    const auto buffer = nb::cast<std::optional<column>>(each);
    buffers.push_back({buffer ? buffer->data : nullptr, needed});
  }
  without_gil(at, [](const Place& place) { place.synchronize(); });
  return {shared(c::make_schema(format, "")), {shared(c::make_array(n, nulls, std::move(buffers)))}};
}

/// The rows of two columns of one type, one after the other.
template <class Place>
arrow_column join_columns(const call_place<Place>& at, const arrow_column& one, const arrow_column& other) {
  const arrow_column first = decoded(at, one), last = decoded(at, other);
  if (first.format() != last.format()) {
    throw nb::type_error(("Arrow's types " + first.format() + " and " + last.format()).c_str());
  }
  return {first.type(), {first.chunks()[0], last.chunks()[0]}};
}

/// Bools as bits.
template <class Place>
nb::object pack_bits(const call_place<Place>& at, const column& bools) {
  const auto there = span_of<bool>(bools);
  return to_python(at, without_gil(at, [&](const Place& place) { return c::bits_of(place, there); }));
}

// Keys and values.

/// Clears the bools of rows in which a column has no value; `nan_too`: or NaN.
struct clear_missing {
  key_column from;
  bool nan_too;
  bool* there;
  ROOST_FN void operator()(std::size_t i) const {
    if (!detail::is_valid(from.valid, i)) {
      there[i] = false;
    } else if (nan_too && from.type == column_type::f4) {
      there[i] = there[i] && !isnan_at<float>(i);
    } else if (nan_too && from.type == column_type::f8) {
      there[i] = there[i] && !isnan_at<double>(i);
    }
  }
  template <class T>
  ROOST_FN bool isnan_at(std::size_t i) const {
    const T value = static_cast<const T*>(from.values)[i];
    return value != value;
  }
};

/// Bools: for each row, whether all columns have a value other than NaN.
template <class Place>
nb::object rows_there(const call_place<Place>& at, const columns_of_table& columns) {
  auto result = without_gil(at, [&](const Place& place) {
    const std::size_t n = columns.at(0)->rows();
    output<bool, Place> there(at, place, n);
    place.fill(there.data(), 1, n);
    arrow_keys<Place> read;
    for (const arrow_column* const each : columns) {
      read.add(place, 0, each->column(), each->column().type);
      place.for_each(n, clear_missing{read.columns(0).back(), true, there.data()});
    }
    place.synchronize();
    return there;
  });
  return result.to_python();
}

/// A copy of a column's values as numbers, their type, and bools for the present ones; None: all. Texts
/// become numbers of distinct texts; decimals of 128 bits are not supported.
template <class Place>
nb::tuple read_values(const call_place<Place>& at, const arrow_column& from) {
  std::optional<output<bool, Place>> there;
  column_type type{};
  auto values = without_gil(at, [&](const Place& place) {
    const arrow_keys<Place> read(place, {&from.table()});
    const key_column column = read.columns(0)[0];
    type = column.type;
    const std::size_t bytes = column.step == 1 ? column.rows * bytes_of(type) : 0;
    output<std::uint8_t, Place> copy(at, place, bytes);
    if (bytes != 0) place.copy(copy.data(), column.values, bytes);
    if (column.valid != nullptr) {
      there.emplace(at, place, column.rows);
      place.fill(there->data(), 1, column.rows);
      place.for_each(column.rows, clear_missing{column, false, there->data()});
    }
    place.synchronize();
    return copy;
  });
  nb::object bytes = values.to_python();
  return nb::make_tuple(std::move(bytes), name_of(type), there ? there->to_python() : nb::none());
}

template <class Place>
output<std::uint8_t, Place> packed(const call_place<Place>& at, const Place& place,
                                   const column_packing& packing, const std::vector<key_column>& columns,
                                   std::size_t table) {
  output<std::uint8_t, Place> words(at, place, columns[0].rows * packing.key_bytes());
  with_bytes<4, 8, 16, 32>(packing.key_bytes(), "keys", [&]<class Key>(Key) {
    packing.pack(place, columns, reinterpret_cast<Key*>(words.data()), table);
    return true;
  });
  return words;
}

/// The words of a table's rows; those of the table that it is compared with, unless that has no columns; and
/// the bytes of a word.
template <class Place>
nb::tuple pack_arrow(const call_place<Place>& at, const columns_of_table& one, const columns_of_table& other,
                     bool nulls_equal) {
  of_types([&] {
    for (std::size_t c = 0; c < other.size(); ++c)
      common_type(one[c]->column().type, other[c]->column().type);
  });
  std::vector<output<std::uint8_t, Place>> words;
  std::size_t bytes = 0;
  without_gil(at, [&](const Place& place) {
    std::vector<arrow_keys<Place>> read;
    std::vector<c::row_columns<Place>> tables(other.empty() ? 1 : 2);
    for (std::size_t c = 0; c < one.size(); ++c) {
      const arrow_table& first = one[c]->table();
      read.push_back(other.empty() ? arrow_keys<Place>(place, {&first})
                                   : arrow_keys<Place>(place, {&first, &other[c]->table()}));
      for (std::size_t t = 0; t < tables.size(); ++t) {
        const auto added = read.back().columns(t);
        tables[t].columns.insert(tables[t].columns.end(), added.begin(), added.end());
      }
    }
    const c::row_packing<Place> rows(place, std::span(tables), static_cast<null_equality>(nulls_equal));
    for (std::size_t t = 0; t < tables.size(); ++t) {
      words.push_back(packed(at, place, rows.packing(), tables[t].columns, t));
    }
    bytes = rows.packing().key_bytes();
    place.synchronize();
  });
  nb::object first = words[0].to_python();
  nb::object last = words.size() == 1 ? nb::none() : words[1].to_python();
  return nb::make_tuple(std::move(first), std::move(last), bytes);
}

std::vector<arrow_table::column> all_of(const columns_of_table& columns) {
  std::vector<arrow_table::column> result;
  for (const arrow_column* const each : columns) result.push_back(each->column());
  return result;
}

/// A packing of queries like the rows of a table; the words of the table's rows; and the bytes of a word.
template <class Place>
nb::tuple make_lookup(const call_place<Place>& at, const columns_of_table& table) {
  std::optional<output<std::uint8_t, Place>> words;
  std::size_t bytes = 0;
  auto made = without_gil(at, [&](const Place& place) {
    const auto pack = [&](const column_packing& packing, const std::vector<key_column>& columns) {
      words.emplace(packed(at, place, packing, columns, 0));
      bytes = packing.key_bytes();
    };
    auto lookup =
        std::make_unique<c::lookup_packing<Place>>(place, all_of(table), null_equality::equal, pack);
    place.synchronize();
    return lookup;
  });
  nb::object all = words->to_python();
  return nb::make_tuple(std::move(made), std::move(all), bytes);
}

template <class Place>
nb::object query_words(const call_place<Place>& at, const c::lookup_packing<Place>& lookup,
                       const columns_of_table& queries) {
  std::optional<output<std::uint8_t, Place>> words;
  of_types([&] {
    without_gil(at, [&](const Place& place) {
      const auto pack = [&](const column_packing& packing, const std::vector<key_column>& columns) {
        words.emplace(packed(at, place, packing, columns, 1));
      };
      lookup.with_queries(place, all_of(queries), pack);
      place.synchronize();
    });
  });
  return words->to_python();
}

}  // namespace

template <class Place>
void bind_arrow(nb::module_& m) {
  nb::class_<arrow_column>(m, "ArrowColumn")
      .def_prop_ro("rows", &arrow_column::rows)
      .def_prop_ro("format", &arrow_column::format)
      .def_prop_ro("value_format", &arrow_column::value_format);
  nb::class_<c::lookup_packing<Place>>(m, "ArrowLookup");
  m.def("arrow_format", [](const char* type) { return c::format_of(value_of<column_type>(type)); });
  m.def("arrow_device", &arrow_device);
  m.def("arrow_chunks", &arrow_chunks);
  m.def("import_arrow", &import_arrow<Place>);
  m.def("export_arrow", &export_arrow<Place>, nb::arg(), nb::arg(), nb::arg().none());
  m.def("copy_to_cpu", &copy_to_cpu<Place>);
  m.def("take_rows", &take_rows<Place>);
  m.def("from_arrays", &from_arrays<Place>);
  m.def("join_columns", &join_columns<Place>);
  m.def("pack_bits", &pack_bits<Place>);
  m.def("rows_there", &rows_there<Place>);
  m.def("read_values", &read_values<Place>);
  m.def("pack_arrow", &pack_arrow<Place>);
  m.def("make_lookup", &make_lookup<Place>);
  m.def("query_words", &query_words<Place>);
}

template void bind_arrow<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
