#include "numbers.hpp"
#include "operations.hpp"

// Distinct rows.

namespace roost::c {
namespace {

struct mark_first {
  const std::uint32_t* first;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[first[i]] = false; }
};
struct comes_again {
  const std::uint32_t* numbers;
  const std::uint64_t* counts;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = counts[numbers[i]] > 1; }
};

}  // namespace

template <class Place>
void on<Place>::unique(const roost_table& table, ArrowDeviceArray* first) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  auto rows = rows_of(place, index_rows(place, table, false, false, false).first, device_);
  finish_at(place, device_, {{&rows, first}});
}

template <class Place>
void on<Place>::factorize(const roost_table& table, bool drops_nulls, ArrowDeviceArray* numbers,
                          ArrowDeviceArray* first) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  const auto all = index_rows(place, table, drops_nulls, true, false);
  auto codes = rows_of(place, all.numbers, device_), rows = rows_of(place, all.first, device_);
  finish_at(place, device_, {{&codes, numbers}, {&rows, first}});
}

template <class Place>
void on<Place>::value_counts(const roost_table& table, ArrowDeviceArray* first,
                             ArrowDeviceArray* counts) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  auto all = index_rows(place, table, false, false, true);
  const std::size_t n = all.first.size();
  auto rows = rows_of(place, all.first, device_);
  auto counted = make_array(n, 0, {{}, buffer_of(std::move(all.counts), device_)});
  finish_at(place, device_, {{&rows, first}, {&counted, counts}});
}

template <class Place>
void on<Place>::duplicated(const roost_table& table, bool keeps_first, ArrowDeviceArray* result) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  const auto all = index_rows(place, table, false, !keeps_first, !keeps_first);
  array<bool, Place> again(place, table.columns.rows());
  if (keeps_first) {
    place.fill(again.data(), 1, again.bytes());
    place.for_each(all.first.size(), mark_first{all.first.data(), again.data()});
  } else {
    place.for_each(again.size(), comes_again{all.numbers.data(), all.counts.data(), again.data()});
  }
  auto bits = make_array(again.size(), 0, {{}, buffer_of(bits_of(place, again), device_)});
  finish_at(place, device_, {{&bits, result}});
}

template void on<ROOST_C_PLACE>::unique(const roost_table&, ArrowDeviceArray*) const;
template void on<ROOST_C_PLACE>::factorize(const roost_table&, bool, ArrowDeviceArray*,
                                           ArrowDeviceArray*) const;
template void on<ROOST_C_PLACE>::value_counts(const roost_table&, ArrowDeviceArray*, ArrowDeviceArray*) const;
template void on<ROOST_C_PLACE>::duplicated(const roost_table&, bool, ArrowDeviceArray*) const;

}  // namespace roost::c
