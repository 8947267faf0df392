#include <nanobind/stl/vector.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bind.hpp"
#include "capsules.hpp"
#include "columns.hpp"
#include "grouping.hpp"

// Texts on the host: columns of texts from Python, numpy and Arrow, and their keys.

namespace roost::python {
namespace {

/// Texts for Python.
class texts : public text_column {
 public:
  explicit texts(bool are_bytes) : are_bytes_(are_bytes) {}
  /// Whether they are Python's bytes rather than str.
  bool are_bytes() const { return are_bytes_; }

 private:
  bool are_bytes_;
};

text_column all_of(const std::vector<const texts*>& columns) {
  text_column all;
  for (const texts* column : columns) all.add(*column);
  return all;
}

nb::object to_python(const call_place<host>& at, text_keys&& keys) {
  return std::visit([&](auto& words) { return python::to_python(at, std::move(words)); }, keys.keys);
}

/// Keys of the texts of some columns, one column after the other, equal exactly if the texts are; and their
/// form and seed, for query_keys. `numbers_will_do`: numbers may replace them, without a form.
nb::object keys_of_columns(const std::vector<const texts*>& columns, bool numbers_will_do) {
  const call_place<host> at;
  if (numbers_will_do) {
    auto numbers =
        without_gil(at, [&](const host& cpu) { return numbers_in_dictionaries(cpu, all_of(columns)); });
    if (numbers) return nb::make_tuple(python::to_python(at, std::move(*numbers)), 0, 0);
  }
  auto keys = without_gil(at, [&](const host& cpu) { return keys_of_texts(cpu, all_of(columns)); });
  const int form = static_cast<int>(keys.made_of);
  const std::uint64_t seed = keys.seed;
  nb::object result = text_keys::hashes(keys.made_of) && numbers_will_do
                          ? python::to_python(at, std::move(keys.numbered.numbers))
                          : to_python(at, std::move(keys));
  return nb::make_tuple(std::move(result), form, seed);
}

/// For the texts of some columns, one column after the other: the rows where distinct texts first occur,
/// ascending, and the number of each row's text among these.
nb::object number_columns(const std::vector<const texts*>& columns, bool wide) {
  const call_place<host> at;
  auto numbered = without_gil(at, [&](const host& cpu) { return number_texts(cpu, all_of(columns)); });
  const nb::object first = rows_to_python(at, std::move(numbered.first), wide);
  return nb::make_tuple(first, rows_to_python(at, std::move(numbered.numbers), wide));
}

/// Groups the rows of a column; null unless its texts are short, and few.
std::unique_ptr<grouping<host>> group_texts(const texts& column) {
  return without_gil(call_place<host>(), [&](const host& cpu) -> std::unique_ptr<grouping<host>> {
    auto rows = detail::index_few_texts(cpu, column);
    if (!rows) return nullptr;
    return std::make_unique<grouping_of_few<std::uint32_t>>(
        cpu, detail::few_groups<std::uint32_t>{{}, std::move(*rows)});
  });
}

/// The keys of queries, made like those of a table.
nb::object query_keys(const texts& queries, int form, std::uint64_t seed) {
  const call_place<host> at;
  return to_python(at, without_gil(at, [&](const host& cpu) {
                     return keys_of_texts(cpu, queries, static_cast<text_keys::form>(form), seed);
                   }));
}

/// Sets rows[i] to -1 if query i differs from the text of the table's row, since hashes may collide.
void keep_equal(const texts& queries, const texts& table, int form, const column& numbers) {
  if (!text_keys::hashes(static_cast<text_keys::form>(form))) return;
  const auto rows = span_of<std::int64_t>(numbers, queries.size());
  without_gil(call_place<host>(), [&](const host& cpu) {
    queries.for_each_chunk([&](std::size_t begin, std::size_t count, const auto& layout) {
      cpu.for_each(count, [&](std::size_t i) {
        std::int64_t& row = rows[begin + i];
        if (row >= 0 && layout[i] != table[static_cast<std::size_t>(row)]) row = -1;
      });
    });
  });
}

// Texts from Python and numpy, which are copied.

/// Contiguous texts, in the order in which they are added.
class text_buffer {
 public:
  explicit text_buffer(std::size_t n) { offsets_.reserve(n + 1); }
  void add(std::string_view text) {
    bytes_.append(text);
    offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  std::unique_ptr<texts> finish(bool are_bytes) && {
    auto result = std::make_unique<texts>(are_bytes);
    auto memory = std::make_shared<text_buffer>(std::move(*this));
    result->add(memory->offsets_.size() - 1,
                packed_texts<std::int64_t>{memory->offsets_.data(), memory->bytes_.data()});
    result->keep(std::move(memory));
    return result;
  }

 private:
  std::string bytes_;
  std::vector<std::int64_t> offsets_{0};
};

/// The UTF-8 of a str, with lone surrogates encoded like characters. `kept`: keeps it alive.
std::string_view utf8_of(PyObject* text, nb::object& kept) {
  Py_ssize_t n = 0;
  if (const char* bytes = PyUnicode_AsUTF8AndSize(text, &n)) return {bytes, static_cast<std::size_t>(n)};
  PyErr_Clear();
  kept = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
  if (!kept.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(kept.ptr()), static_cast<std::size_t>(PyBytes_Size(kept.ptr()))};
}

std::string_view bytes_of(PyObject* text, nb::object&) {
  char* bytes = nullptr;
  Py_ssize_t n = 0;
  if (PyBytes_AsStringAndSize(text, &bytes, &n) != 0) throw nb::python_error();
  return {bytes, static_cast<std::size_t>(n)};
}

/// Whether an object stands for a null in columns of pandas: None, NaN, or pandas.NA.
bool stands_for_null(PyObject* it) {
  if (it == Py_None) return true;
  if (PyFloat_Check(it)) return std::isnan(PyFloat_AsDouble(it));
  return std::string_view(nb::type_name(nb::handle(it).type()).c_str()).ends_with("NAType");
}

/// The texts of n objects that are all str, or all bytes, or numpy's scalars of these; null if they are not.
/// `nulls_too`: objects may also stand for nulls.
template <class Object>
std::unique_ptr<texts> texts_of(std::size_t n, const Object& object, bool nulls_too = false) {
  if (n == 0) return nullptr;
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object np_str = numpy.attr("str_"), np_bytes = numpy.attr("bytes_");
  text_buffer all(n);
  std::vector<std::size_t> nulls;
  nb::object kept;
  const auto gather = [&](PyTypeObject* own, const nb::object& numpys, auto&& read) {
    for (std::size_t i = 0; i < n; ++i) {
      if (i + 16 < n) __builtin_prefetch(object(i + 16));
      PyObject* const it = object(i);
      if (it == nullptr) return false;
      PyTypeObject* const type = Py_TYPE(it);
      if (type == own || reinterpret_cast<PyObject*>(type) == numpys.ptr()) {
        all.add(read(it, kept));
      } else if (nulls_too && stands_for_null(it)) {
        all.add({});
        nulls.push_back(i);
      } else {
        return false;
      }
      if (i % (1 << 20) == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    return true;
  };
  PyObject* first = object(0);
  for (std::size_t i = 1; nulls_too && i < n && stands_for_null(first); ++i) first = object(i);
  const bool are_bytes = first != nullptr && PyBytes_Check(first);
  const bool done =
      are_bytes ? gather(&PyBytes_Type, np_bytes, bytes_of) : gather(&PyUnicode_Type, np_str, utf8_of);
  if (!done) return nullptr;
  auto result = std::move(all).finish(are_bytes);
  for (const std::size_t row : nulls) result->add_null(row);
  return result;
}

std::unique_ptr<texts> texts_of_list(const nb::handle& list) {
  if (PyTuple_CheckExact(list.ptr())) {
    return texts_of(nb::len(list),
                    [&](std::size_t i) { return PyTuple_GetItem(list.ptr(), static_cast<Py_ssize_t>(i)); });
  }
  const auto n = static_cast<std::size_t>(PyList_Size(list.ptr()));
  return texts_of(n, [&](std::size_t i) -> PyObject* {
    return static_cast<Py_ssize_t>(i) < PyList_Size(list.ptr())
               ? PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i))
               : nullptr;
  });
}

/// The texts of an array of objects, given by address, rows, and bytes from one to the next.
std::unique_ptr<texts> texts_of_objects(std::uintptr_t address, std::size_t n, std::ptrdiff_t stride,
                                        bool nulls_too) {
  const auto object = [&](std::size_t i) {
    return *reinterpret_cast<PyObject* const*>(address + static_cast<std::uintptr_t>(stride) * i);
  };
  return texts_of(n, object, nulls_too);
}

/// numpy's StringDType through numpy's C interface, whose functions have fixed positions in a table. Null if
/// there are missing values. numpy's lock prevents changes of the array during the call.
std::unique_ptr<texts> texts_of_numpy(const nb::handle& functions, const nb::handle& type,
                                      std::uintptr_t address, std::size_t n, std::ptrdiff_t stride) {
  struct unpacked {
    std::size_t size;
    const char* bytes;
  };
  void** const api = static_cast<void**>(PyCapsule_GetPointer(functions.ptr(), nullptr));
  if (api == nullptr) throw nb::python_error();
  const auto load = reinterpret_cast<int (*)(void*, const void*, unpacked*)>(api[313]);
  const auto acquire = reinterpret_cast<void* (*)(PyObject*)>(api[316]);
  const auto release = reinterpret_cast<void (*)(void*)>(api[318]);
  text_buffer all(n);
  const std::unique_ptr<void, void (*)(void*)> allocator(acquire(type.ptr()), release);
  for (std::size_t i = 0; i < n; ++i) {
    unpacked text{};
    const auto* const packed =
        reinterpret_cast<const void*>(address + static_cast<std::uintptr_t>(stride) * i);
    if (load(allocator.get(), packed, &text) != 0) return nullptr;
    all.add({text.bytes, text.size});
  }
  return std::move(all).finish(false);
}

/// numpy's `S`: zeros at the end are not part of a text.
std::unique_ptr<texts> texts_of_fixed(const column& rows) {
  auto result = std::make_unique<texts>(true);
  result->add(rows.rows, fixed_texts{reinterpret_cast<const char*>(rows.data), rows.row_bytes, true});
  return result;
}

/// Writes a character as UTF-8, and returns its number of bytes. Numbers that are not characters, which an
/// array may contain, become bytes that no character has. `target` null: only counts.
std::size_t put_character(std::uint32_t c, char* target) {
  const auto put = [&](auto... bytes) {
    if (target != nullptr) (..., (*target++ = static_cast<char>(bytes)));
    return sizeof...(bytes);
  };
  const auto part = [c](int shift) { return 0x80 | (c >> shift & 0x3F); };
  if (c < 0x80) return put(c);
  if (c < 0x800) return put(0xC0 | c >> 6, part(0));
  if (c < 0x10000) return put(0xE0 | c >> 12, part(6), part(0));
  if (c < 0x110000) return put(0xF0 | c >> 18, part(12), part(6), part(0));
  return put(0xFF, c >> 24, c >> 16 & 0xFF, c >> 8 & 0xFF, c & 0xFF);
}

/// numpy's `U`, rows of characters of 4 bytes: as UTF-8. Zeros at the end are not part of a text.
std::unique_ptr<texts> texts_of_characters(const column& rows) {
  const std::size_t n = rows.rows, width = rows.row_bytes / 4;
  const auto* const characters = reinterpret_cast<const std::uint32_t*>(rows.data);
  struct memory {
    array<std::int64_t, host> offsets;
    array<char, host> bytes;
  };
  auto kept = std::make_shared<memory>();
  without_gil(call_place<host>(), [&](const host& cpu) {
    const auto for_each_character = [&](std::size_t i, const auto& f) {
      const std::uint32_t* const row = characters + i * width;
      std::size_t end = width;
      while (end > 0 && row[end - 1] == 0) --end;
      for (std::size_t c = 0; c < end; ++c) f(row[c]);
    };
    kept->offsets = array<std::int64_t, host>(cpu, n + 1);
    std::int64_t* const offsets = kept->offsets.data();
    cpu.for_each(n, [&](std::size_t i) {
      std::size_t bytes = 0;
      for_each_character(i, [&](std::uint32_t c) { bytes += put_character(c, nullptr); });
      offsets[i + 1] = static_cast<std::int64_t>(bytes);
    });
    offsets[0] = 0;
    std::partial_sum(offsets, offsets + n + 1, offsets);
    kept->bytes = array<char, host>(cpu, static_cast<std::size_t>(offsets[n]));
    cpu.for_each(n, [&](std::size_t i) {
      char* target = kept->bytes.data() + offsets[i];
      for_each_character(i, [&](std::uint32_t c) { target += put_character(c, target); });
    });
  });
  auto result = std::make_unique<texts>(false);
  result->add(n, packed_texts<std::int64_t>{kept->offsets.data(), kept->bytes.data()});
  result->keep(std::move(kept));
  return result;
}

// Texts from Arrow, which are not copied.

bool has_bytes(const ArrowSchema& type) {
  const std::string_view format = type.dictionary == nullptr ? type.format : type.dictionary->format;
  return format != "u" && format != "U" && format != "vu";
}

void add_arrow_and_keep(texts& to, const ArrowSchema& type, arrow_owner<ArrowArray>&& from) {
  auto kept = std::make_shared<arrow_owner<ArrowArray>>(std::move(from));
  add_arrow(to, type, *kept->get());
  to.keep(std::move(kept));
}

/// Whether columns of a type, a result of `__arrow_c_schema__`, are texts.
bool is_arrow_text_type(const nb::handle& schema) {
  return is_arrow_text(from_capsule<ArrowSchema>(schema, "arrow_schema"));
}

/// The result of `__arrow_c_array__` as texts; null for other columns.
std::unique_ptr<texts> texts_of_array(const nb::handle& schema, const nb::handle& array) {
  const auto& type = from_capsule<ArrowSchema>(schema, "arrow_schema");
  if (!is_arrow_text(type)) return nullptr;
  auto result = std::make_unique<texts>(has_bytes(type));
  add_arrow_and_keep(*result, type, arrow_owner<ArrowArray>(from_capsule<ArrowArray>(array, "arrow_array")));
  return result;
}

/// The result of `__arrow_c_stream__` as texts; null for other columns.
std::unique_ptr<texts> texts_of_stream(const nb::handle& capsule) {
  arrow_owner<ArrowArrayStream> from(from_capsule<ArrowArrayStream>(capsule, "arrow_array_stream"));
  arrow_owner<ArrowSchema> type;
  expect_read(from, from->get_schema(from.get(), type.get()));
  if (!is_arrow_text(*type.get())) return nullptr;
  auto result = std::make_unique<texts>(has_bytes(*type.get()));
  while (true) {
    arrow_owner<ArrowArray> next;
    expect_read(from, from->get_next(from.get(), next.get()));
    if (next.released()) return result;
    add_arrow_and_keep(*result, *type.get(), std::move(next));
  }
}

/// Texts by their numbers, int64; negative ones are nulls.
std::unique_ptr<texts> texts_of_codes(const column& codes, const texts& dictionary) {
  auto result = std::make_unique<texts>(dictionary.are_bytes());
  const auto numbers = span_of<std::int64_t>(codes);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) result->add_null(i);
  }
  result->add(numbers.size(), coded_texts{codes.data, sizeof(std::int64_t), &dictionary});
  return result;
}

// Texts as Python objects.

/// Writes the texts of these rows into an array of n objects, at `address`.
void write_objects(const texts& from, const column& numbers, std::uintptr_t address) {
  const auto rows = span_of<std::int64_t>(numbers);
  auto* const target = reinterpret_cast<PyObject**>(address);
  constexpr std::size_t batch = 16;  // whose cache misses overlap
  std::string_view read[batch];
  for (std::size_t begin = 0; begin < rows.size(); begin += batch) {
    const std::size_t count = std::min(batch, rows.size() - begin);
    for (std::size_t k = 0; k < count; ++k) {
      read[k] = from[static_cast<std::size_t>(rows[begin + k])];
      __builtin_prefetch(read[k].data());
    }
    for (std::size_t k = 0; k < count; ++k) {
      const char* const bytes = read[k].data();
      const auto n = static_cast<Py_ssize_t>(read[k].size());
      PyObject* const made = from.are_bytes() ? PyBytes_FromStringAndSize(bytes, n)
                                              : PyUnicode_DecodeUTF8(bytes, n, "surrogatepass");
      if (made == nullptr) throw nb::python_error();
      Py_XDECREF(std::exchange(target[begin + k], made));
    }
    if (begin % (batch << 16) == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// The bitmap of a column with nulls, one byte for 8 rows.
nb::object valid_of(const texts& of) {
  if (of.nulls() == 0) return nb::none();
  array<std::uint8_t, host> bits(call_place<host>::get(), detail::ceil_div(of.size(), std::size_t{8}));
  std::fill_n(bits.data(), bits.size(), std::uint8_t{0xFF});
  std::copy(of.valid().begin(), of.valid().end(), bits.data());
  return to_python(call_place<host>(), std::move(bits));
}

}  // namespace

void bind_strings(nb::module_& m) {
  nb::class_<texts>(m, "Texts")
      .def("__len__", &texts::size)
      .def_prop_ro("nulls", &texts::nulls)
      .def_prop_ro("valid", &valid_of)
      .def_prop_ro("are_bytes", &texts::are_bytes);
  m.def("keys_of_texts", &keys_of_columns);
  m.def("number_texts", &number_columns);
  m.def("group_texts", &group_texts);
  m.def("query_keys", &query_keys);
  m.def("keep_equal", &keep_equal);
  m.def("write_objects", &write_objects);
  m.def("texts_of_list", &texts_of_list);
  m.def("texts_of_objects", &texts_of_objects);
  m.def("texts_of_numpy", &texts_of_numpy);
  m.def("texts_of_fixed", &texts_of_fixed, nb::keep_alive<0, 1>());
  m.def("texts_of_characters", &texts_of_characters);
  m.def("is_arrow_text", &is_arrow_text_type);
  m.def("texts_of_array", &texts_of_array);
  m.def("texts_of_stream", &texts_of_stream);
  m.def("texts_of_codes", &texts_of_codes, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
}

}  // namespace roost::python
