#include <nanobind/stl/optional.h>

#include "bind.hpp"
#include "columns.hpp"
#include "grouping.hpp"
#include "roost/columns/columns.hpp"

// Keys of several columns, and of columns with nulls.

namespace roost::python {
namespace {

/// A table as passed by Python: for each column an array, its type, and which values are present, or None. A
/// column of more than 8 bytes is several columns of 8 bytes here.
class fields {
 public:
  explicit fields(const nb::sequence& table) {
    for (const nb::handle each : table) {
      const auto field = nb::cast<nb::tuple>(each);
      const auto values = nb::cast<column>(field[0]);
      const auto valid = nb::cast<std::optional<column>>(field[2]);
      if (valid && valid->rows * valid->row_bytes < detail::ceil_div<std::size_t>(values.rows, 8)) {
        detail::raise<invalid_argument>({"roost: fewer bits than rows that they are of"});
      }
      const auto type =
          values.row_bytes > 8 ? column_type::u8 : value_of<column_type>(nb::cast<const char*>(field[1]));
      check(values, type);
      key_column one;
      one.values = values.data;
      one.rows = values.rows;
      one.type = type;
      one.step = detail::larger<std::size_t>(values.row_bytes / 8, 1);
      one.valid = valid ? reinterpret_cast<const std::uint8_t*>(valid->data) : nullptr;
      begins_.push_back(columns_.size());
      for (std::size_t piece = 0; piece < one.step; ++piece) {
        columns_.push_back(one);
        one.values = static_cast<const std::uint64_t*>(one.values) + 1;
      }
    }
  }

  std::span<const key_column> columns() const { return columns_; }
  /// Where the columns of each field begin.
  const std::vector<std::size_t>& begins() const { return begins_; }

 private:
  static void check(const column& values, column_type type) {
    const std::size_t bytes = bytes_of(type);
    const auto address = reinterpret_cast<std::uintptr_t>(values.data);
    if ((values.row_bytes > 8 ? values.row_bytes % 8 != 0 : values.row_bytes != bytes) ||
        address % bytes != 0) {
      detail::raise<invalid_argument>({"roost: a column of ", values.row_bytes, " bytes a row at ", address,
                                       " where numbers of ", bytes, " are expected"});
    }
  }

  std::vector<key_column> columns_;
  std::vector<std::size_t> begins_;
};

template <class Place>
class packing {
 public:
  packing(const call_place<Place>& at, const nb::sequence& tables, bool nulls_equal) {
    std::vector<fields> all;
    for (const nb::handle table : tables) all.emplace_back(nb::cast<nb::sequence>(table));
    std::vector<std::span<const key_column>> columns;
    for (const fields& each : all) columns.push_back(each.columns());
    begins_ = all.empty() ? std::vector<std::size_t>() : all[0].begins();
    begins_.push_back(all.empty() ? 0 : columns[0].size());
    columns_ = without_gil(at, [&](const Place& place) {
      return column_packing(place, columns, static_cast<null_equality>(nulls_equal));
    });
  }

  std::size_t bits() const { return columns_.bits(); }
  std::size_t key_bytes() const { return columns_.key_bytes(); }
  std::uint64_t null_key() const { return columns_.null_key(); }

  void pack(const call_place<Place>& at, std::size_t table, const nb::sequence& rows,
            const column& keys) const {
    const fields all(rows);
    with_keys(keys, [&]<class Key>(Key) {
      Key* const target = span_of<Key>(keys, all.columns().empty() ? 0 : all.columns()[0].rows).data();
      without_gil(at, [&](const Place& place) { columns_.pack(place, all.columns(), target, table); });
      return true;
    });
  }

  /// Groups the rows of a table, whose keys are packed when they are read; null if they are not few.
  std::unique_ptr<grouping<Place>> group(const call_place<Place>& at, const nb::sequence& rows) const {
    const fields all(rows);
    if constexpr (std::is_same_v<Place, host>) {
      return with_bytes<4, 8, 16, 32>(key_bytes(), "keys", [&]<class Key>(Key) {
        return without_gil(at, [&](const host& cpu) {
          const std::size_t n = all.columns().empty() ? 0 : all.columns()[0].rows;
          return group_few<Key>(cpu, n, detail::packed_rows<Key>(columns_, all.columns()), columns_.bits());
        });
      });
    }
    return nullptr;
  }

  void unpack(const call_place<Place>& at, const column& keys, std::size_t field, const column& values,
              const std::optional<column>& valid) const {
    if (field + 1 >= begins_.size()) detail::raise<invalid_argument>({"roost: no field ", field});
    const std::size_t begin = begins_[field], pieces = begins_[field + 1] - begin;
    if (values.rows != keys.rows || (pieces > 1 && values.row_bytes != 8 * pieces)) {
      detail::raise<invalid_argument>(
          {"roost: ", values.rows, " rows of ", values.row_bytes, " bytes for ", keys.rows, " keys"});
    }
    bool* const there = valid ? span_of<bool>(*valid, keys.rows).data() : nullptr;
    with_keys(keys, [&]<class Key>(Key) {
      const Key* const source = span_of<Key>(keys).data();
      without_gil(at, [&](const Place& place) {
        for (std::size_t piece = 0; piece < pieces; ++piece) {
          columns_.unpack(place, source, keys.rows, begin + piece, values.data + 8 * piece,
                          piece == 0 ? there : nullptr, pieces);
        }
      });
      return true;
    });
  }

 private:
  column_packing columns_;
  std::vector<std::size_t> begins_;  // of the columns of each field, and the end
};

}  // namespace

template <class Place>
void bind_packing(nb::module_& m) {
  using all = packing<Place>;
  nb::class_<all>(m, "Packing")
      .def(nb::init<const call_place<Place>&, const nb::sequence&, bool>())
      .def_prop_ro("bits", &all::bits)
      .def_prop_ro("word_bytes", &all::key_bytes)
      .def_prop_ro("null_word", &all::null_key)
      .def("pack", &all::pack)
      .def("group", &all::group)
      .def("unpack", &all::unpack, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

template void bind_packing<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
