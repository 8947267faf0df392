#include "numbers.hpp"
#include "operations.hpp"
#include "roost/group_by.hpp"
#include "take.hpp"

// Groups, and values combined by group.

namespace roost::c {
namespace {

/// NaN if there is one.
struct least {
  ROOST_FN double operator()(const double& a, const double& b) const { return a != a || a < b ? a : b; }
};
struct greatest {
  ROOST_FN double operator()(const double& a, const double& b) const { return a != a || b < a ? a : b; }
};

/// The group of each row; `none` if the row is in no group or its value is null.
struct group_of_row {
  const std::uint32_t* numbers;
  const std::uint8_t* valid;  // or null
  std::uint32_t none;
  ROOST_FN std::uint32_t operator()(std::size_t i) const {
    const bool there = numbers[i] < none && detail::is_valid(valid, i);
    return there ? numbers[i] : none;
  }
};

/// A value as the number of 8 bytes that is combined, with the order and the sums of the values.
struct value_of_row {
  enum class as : std::uint8_t { same, unsigned_order, not_zero, one };
  const void* values;
  column_type type;
  as how;
  template <class T>
  ROOST_FN T get(std::size_t i) const {
    if (how == as::one) return 1;
    const T value = detail::with_number(type, [&]<class S>(S) {
      if (how == as::not_zero) return static_cast<T>(static_cast<const S*>(values)[i] != S(0));
      return static_cast<T>(static_cast<const S*>(values)[i]);
    });
    if constexpr (std::is_integral_v<T>) {
      if (how == as::unsigned_order) return value ^ std::numeric_limits<T>::min();
    }
    return value;
  }
};
template <class T>
struct value_as {
  value_of_row from;
  ROOST_FN T operator()(std::size_t i) const { return from.get<T>(i); }
};

/// Puts the results of groups in their place, as values of a type.
template <class T>
struct put_result {
  const std::uint32_t* groups;
  const T* from;
  const std::uint64_t* counts;
  std::size_t n;  // groups; numbers above: no group
  column_type type;
  value_of_row::as how;
  bool divides;
  void* to;
  bool* valid;

  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t group = groups[i];
    if (group >= n) return;
    valid[group] = true;
    T value = from[i];
    if constexpr (std::is_integral_v<T>) {
      if (how == value_of_row::as::unsigned_order) value ^= std::numeric_limits<T>::min();
    } else {
      if (divides) value /= static_cast<T>(counts[i]);
    }
    detail::with_number(type, [&]<class S>(S) {
      static_cast<S*>(to)[group] = static_cast<S>(value);
      return true;
    });
  }
};

/// How a column's values are combined.
struct reduction {
  column_type read;    // the type in which values are read
  column_type result;  // the type of results
  std::string format;
  value_of_row::as how = value_of_row::as::same;
  bool is_float = false;
  bool divides = false;  // sums by counts
};

reduction reduction_of(const ArrowSchema& schema, const arrow_type& type, int how) {
  using enum column_type;
  using as = value_of_row::as;
  if (how < ROOST_SUM || how > ROOST_COUNT) {
    detail::raise<invalid_argument>({"roost: how is ", how, "; give one of the constants of roost.h"});
  }
  if (how == ROOST_COUNT) return {i8, i8, "l", as::one};
  const bool is_time = type.meaning.starts_with("t") && type.meaning != "texts";
  const bool is_length = type.meaning.starts_with("tD");
  const bool is_extreme = how == ROOST_MIN || how == ROOST_MAX;
  const bool is_number = type.meaning == "numbers" || type.made_of == arrow_type::form::null;
  if (!is_number && !(is_time && is_extreme) && !(is_length && how == ROOST_SUM)) {
    detail::raise<invalid_argument>({detail::arrow_name(schema), ": values of Arrow's type \"", schema.format,
                                     "\"; pass numbers, for extremes also times, for sums durations"});
  }
  if (is_extreme && schema.dictionary != nullptr && (schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0) {
    detail::raise<invalid_argument>({detail::arrow_name(schema), ": a dictionary with an order of its own, ",
                                     "which extremes of values would ignore; pass its codes"});
  }
  const bool is_float = type.number >= f4, is_unsigned = type.number > b1 && !is_float;
  if (how == ROOST_ANY || how == ROOST_ALL) return {type.number, b1, "b", as::not_zero};
  if (how == ROOST_MEAN) return {f8, f8, "g", as::same, true, true};
  const std::string format = is_time ? type.meaning : format_of(type.number);
  const as order = type.number == u8 && is_extreme ? as::unsigned_order : as::same;
  if (is_extreme || is_float) return {type.number, type.number, format, order, is_float};
  if (is_time) return {i8, i8, format};
  return {type.number, is_unsigned ? u8 : i8, is_unsigned ? "L" : "l"};
}

template <class Place>
class groups final : public roost_groups {
 public:
  groups(const Place& place, const roost_table& keys, bool drops_nulls, int at)
      : rows_(index_rows(place, keys, drops_nulls, true, true)) {
    device = at;
  }

  std::size_t size() const override { return rows_.first.size(); }
  void first(ArrowDeviceArray* rows) const override {
    const at_place<Place> there(device);
    const Place place = there.get();
    auto result = rows_of(place, rows_.first, device);
    finish_at(place, device, {{&result, rows}});
  }
  void counts(ArrowDeviceArray* counts) const override {
    const at_place<Place> there(device);
    const Place place = there.get();
    array<std::uint64_t, Place> copy(place, size());
    place.copy(copy.data(), rows_.counts.data(), copy.bytes());
    auto result = make_array(size(), 0, {{}, buffer_of(std::move(copy), device)});
    finish_at(place, device, {{&result, counts}});
  }
  void reduce(const roost_table& values, int how, ArrowSchema* schema,
              ArrowDeviceArray* result) const override;

 private:
  template <class T, class F>
  void combine(const Place& place, const key_column& values, const reduction& what, const F& f, void* to,
               bool* valid) const {
    const auto none = static_cast<std::uint32_t>(size());
    const computed keys(rows_.numbers.size(), group_of_row{rows_.numbers.data(), values.valid, none});
    const computed from(rows_.numbers.size(), value_as<T>{{values.values, values.type, what.how}});
    const auto all = group_by(place, keys, from, f, {.counts = what.divides});
    place.for_each(all.size(), put_result<T>{.groups = all.keys.data(),
                                             .from = all.values.data(),
                                             .counts = all.counts.data(),
                                             .n = size(),
                                             .type = what.result,
                                             .how = what.how,
                                             .divides = what.divides,
                                             .to = to,
                                             .valid = valid});
    place.synchronize();
  }
  void combine(const Place& place, const key_column& values, const reduction& what, int how, void* to,
               bool* valid) const;
  arrow_owner<ArrowArray> result_of(const Place& place, const reduction& what, bool has_nulls,
                                    array<std::byte, Place>&& values, array<bool, Place>&& valid) const;

  numbered_rows<Place> rows_;
};

template <class Place>
void groups<Place>::combine(const Place& place, const key_column& values, const reduction& what, int how,
                            void* to, bool* valid) const {
  using word = std::int64_t;
  const bool is_least = how == ROOST_MIN || how == ROOST_ALL,
             is_greatest = how == ROOST_MAX || how == ROOST_ANY;
  if (what.is_float) {
    if (is_least) return combine<double>(place, values, what, least(), to, valid);
    if (is_greatest) return combine<double>(place, values, what, greatest(), to, valid);
    if (how == ROOST_PRODUCT) return combine<double>(place, values, what, multiplies(), to, valid);
    return combine<double>(place, values, what, plus(), to, valid);
  }
  if (is_least) return combine<word>(place, values, what, minimum(), to, valid);
  if (is_greatest) return combine<word>(place, values, what, maximum(), to, valid);
  if (how == ROOST_PRODUCT) return combine<word>(place, values, what, multiplies(), to, valid);
  combine<word>(place, values, what, plus(), to, valid);
}

template <class Place>
arrow_owner<ArrowArray> groups<Place>::result_of(const Place& place, const reduction& what, bool has_nulls,
                                                 array<std::byte, Place>&& values,
                                                 array<bool, Place>&& valid) const {
  const std::size_t nulls = has_nulls ? place.sum(valid.size(), count_missing{valid.data()}) : 0;
  result_buffer bits = nulls == 0 ? result_buffer() : buffer_of(bits_of(place, valid), device);
  if (what.result != column_type::b1) {
    return make_array(size(), nulls, {bits, buffer_of(std::move(values), device)});
  }
  array<bool, Place> bools(place, size());
  place.copy(bools.data(), values.data(), size());
  return make_array(size(), nulls, {bits, buffer_of(bits_of(place, bools), device)});
}

template <class Place>
void groups<Place>::reduce(const roost_table& table, int how, ArrowSchema* schema,
                           ArrowDeviceArray* result) const {
  const at_place<Place> there(device);
  const Place place = there.get();
  at_place<Place>::wait_for(place, table.event);
  const std::size_t rows = table.columns.rows();
  if (table.columns.columns().size() != 1 || rows != rows_.numbers.size()) {
    detail::raise<invalid_argument>({"roost: values of ", table.columns.columns().size(), " columns and ",
                                     rows, " rows for keys of ", rows_.numbers.size(),
                                     " rows; pass one column"});
  }
  const arrow_table::column& column = table.columns.columns()[0];
  const reduction what = reduction_of(*column.schema, column.type, how);
  arrow_keys<Place> read;
  arrow_type as = column.type;
  if (how != ROOST_COUNT) as.number = what.read;
  read.add(place, 0, column, as);
  const key_column values = read.columns(0)[0];
  array<std::byte, Place> results(place, size() * bytes_of(what.result));
  array<bool, Place> valid(place, size());
  place.fill(results.data(), 0, results.bytes());
  place.fill(valid.data(), 0, valid.bytes());
  if (column.type.made_of != arrow_type::form::null)
    combine(place, values, what, how, results.data(), valid.data());
  auto combined = result_of(place, what, how != ROOST_COUNT, std::move(results), std::move(valid));
  auto type = make_schema(what.format, column.schema->name);
  finish_at(place, device, {{&combined, result}});
  give(type, schema);
}

/// Destroys it at the place of its memory.
template <class Place>
class placed_groups final : public roost_groups {
 public:
  explicit placed_groups(std::unique_ptr<groups<Place>> it) : it_(std::move(it)) { device = it_->device; }
  ~placed_groups() override {
    const at_place<Place> there(device);
    it_.reset();
  }
  std::size_t size() const override { return it_->size(); }
  void first(ArrowDeviceArray* rows) const override { it_->first(rows); }
  void counts(ArrowDeviceArray* counts) const override { it_->counts(counts); }
  void reduce(const roost_table& values, int how, ArrowSchema* schema,
              ArrowDeviceArray* result) const override {
    it_->reduce(values, how, schema, result);
  }

 private:
  std::unique_ptr<groups<Place>> it_;
};

}  // namespace

template <class Place>
std::unique_ptr<roost_groups> on<Place>::groups(const roost_table& keys, bool drops_nulls) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  auto made = std::make_unique<c::groups<Place>>(place, keys, drops_nulls, device_);
  place.synchronize();
  return std::make_unique<placed_groups<Place>>(std::move(made));
}

template std::unique_ptr<roost_groups> on<ROOST_C_PLACE>::groups(const roost_table&, bool) const;

}  // namespace roost::c
