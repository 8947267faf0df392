#include "roost/partition.hpp"

#include "bind.hpp"
#include "columns.hpp"

// Rows by the hashes of their keys.

namespace roost::python {
namespace {

template <class Item>
struct row_of_item {
  const Item* items;
  std::uint32_t* rows;
  ROOST_FN void operator()(std::size_t i) const { rows[i] = items[i].value; }
};

struct write_offset {
  const std::uint64_t* begins;
  std::size_t regions;
  std::uint64_t end;
  std::uint64_t* offsets;
  ROOST_FN void operator()(std::size_t region) const {
    offsets[region] = region == regions ? end : begins[region];
  }
};

/// The numbers of the rows, part after part, and where each part begins, and the end.
template <class Place>
nb::tuple partition_rows(const call_place<Place>& at, const column& keys, std::uint32_t parts,
                         std::uint64_t seed, bool wide) {
  return with_keys(keys, [&]<class Key>(Key) {
    const auto column = span_of<Key>(keys);
    const std::size_t n = column.size();
    auto [rows, offsets] = without_gil(at, [&](const Place& place) {
      const auto all = partition(place, column, detail::numbers_to<std::uint32_t>(n),
                                 {.regions = parts, .seed = seed, .stable = true});
      std::pair result(array<std::uint32_t, Place>(place, n),
                       array<std::uint64_t, Place>(place, std::size_t{parts} + 1));
      place.for_each(n, row_of_item<pair<Key, std::uint32_t>>{all.items(), result.first.data()});
      place.for_each(result.second.size(), write_offset{all.begins(), parts, n, result.second.data()});
      return result;
    });
    const nb::object numbers = rows_to_python(at, std::move(rows), wide);
    return nb::make_tuple(numbers, to_python_as<std::int64_t>(at, std::move(offsets)));
  });
}

}  // namespace

template <class Place>
void bind_partition(nb::module_& m) {
  m.def("partition", &partition_rows<Place>);
}

template void bind_partition<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
