#include "roost/group_by.hpp"

#include <limits>
#include <memory>
#include <mutex>

#include "bind.hpp"
#include "columns.hpp"

// Groups of rows, and what comes of their values. Types and reductions are chosen while it runs: values are
// combined as words.

namespace roost::python {
namespace {

enum class number : int { i1, i2, i4, i8, b1, u1, u2, u4, u8, f4, f8 };
enum class reduction : int { sum, mean, min, max };

/// f of a value of that type.
template <class F>
ROOST_FN auto with_type(number type, const F& f) {
  switch (type) {
    case number::i1:
      return f(std::int8_t());
    case number::i2:
      return f(std::int16_t());
    case number::i4:
      return f(std::int32_t());
    case number::i8:
      return f(std::int64_t());
    case number::b1:
      return f(bool());
    case number::u1:
      return f(std::uint8_t());
    case number::u2:
      return f(std::uint16_t());
    case number::u4:
      return f(std::uint32_t());
    case number::u8:
      return f(std::uint64_t());
    case number::f4:
      return f(float());
    case number::f8:
      break;
  }
  return f(double());
}

template <class T, class Bits>
ROOST_FN Bits bits_of(T value) {
  Bits bits;
  memcpy(&bits, &value, sizeof(Bits));
  return bits;
}
template <class T, class Bits>
ROOST_FN T from_bits(Bits bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

/// Values as words that are combined without knowing their type: integers and floats as they are for sums,
/// floats of 8 bytes for means of these and of large integers; for extremes words in the order of the values,
/// or in the opposite one, of which the least is wanted: 0 is NaN.
struct words_of {
  static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  number type;
  reduction how;

  ROOST_FN bool extreme() const { return how == reduction::min || how == reduction::max; }
  ROOST_FN bool as_double() const { return how == reduction::mean && (type >= number::f4 || is_long()); }
  /// Integers whose sums of 2^32 might wrap around.
  ROOST_FN bool is_long() const { return type == number::i8 || type == number::u8; }
  bool adds_floats() const { return !extreme() && (type >= number::f4 || as_double()); }

  template <class T>
  ROOST_FN std::uint64_t in_order(T value) const {
    std::uint64_t word;
    if constexpr (std::is_integral_v<T>) {
      word = static_cast<std::uint64_t>(value) ^ (std::is_signed_v<T> ? sign : 0);
    } else {
      if (value != value) return 0;
      word = bits_of<double, std::uint64_t>(value);
      word ^= (word & sign) != 0 ? ~std::uint64_t{0} : sign;
    }
    return how == reduction::max ? ~word : word;
  }
  template <class T>
  ROOST_FN T value_of(std::uint64_t word) const {
    if constexpr (!std::is_integral_v<T>) {
      if (word == 0) return std::numeric_limits<T>::quiet_NaN();
    }
    if (how == reduction::max) word = ~word;
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(word ^ (std::is_signed_v<T> ? sign : 0));
    } else {
      return static_cast<T>(from_bits<double>(word ^ ((word & sign) != 0 ? sign : ~std::uint64_t{0})));
    }
  }
};

/// Value i of an array, as a word.
template <class Bits>
struct load_word {
  const void* values;
  words_of words;

  ROOST_FN Bits operator()(std::size_t i) const {
    return with_type(words.type, [&]<class T>(T) -> Bits {
      T value;
      if constexpr (std::is_same_v<T, bool>) {
        value = static_cast<const std::uint8_t*>(values)[i] != 0;  // as numpy takes another byte
      } else {
        value = static_cast<const T*>(values)[i];
      }
      if constexpr (sizeof(Bits) == 8) {
        if (words.extreme()) return words.in_order(value);
        if (words.as_double()) return bits_of<double, Bits>(static_cast<double>(value));
      }
      if constexpr (std::is_integral_v<T>) {
        return static_cast<Bits>(value);
      } else if constexpr (sizeof(T) == sizeof(Bits)) {
        return bits_of<T, Bits>(value);
      } else {
        return 0;
      }
    });
  }
};

/// Writes the extremes in the type of the values.
struct store_extreme {
  const std::uint64_t* from;
  void* values;
  words_of words;
  ROOST_FN void operator()(std::size_t i) const {
    with_type(words.type, [&]<class T>(T) {
      static_cast<T*>(values)[i] = words.value_of<T>(from[i]);
      return true;
    });
  }
};

/// Sums of integers wrap around, as bits without a sign do.
template <class Bits>
struct combine_words {
  using fraction = std::conditional_t<sizeof(Bits) == 4, float, double>;
  bool least, floats;
  ROOST_FN Bits operator()(Bits a, Bits b) const {
    if (least) return detail::smaller(a, b);
    return floats ? bits_of<fraction, Bits>(from_bits<fraction>(a) + from_bits<fraction>(b)) : a + b;
  }
};

/// Value i of the rows in the order of their groups.
template <class Bits>
struct load_row {
  load_word<Bits> load;
  const std::uint32_t* rows;
  ROOST_FN Bits operator[](std::size_t i) const { return load(rows[i]); }
};

struct first_of_group {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  ROOST_FN std::uint32_t operator()(std::size_t group) const { return rows[offsets[group]]; }
};

/// The number of rows of a group: as aggregates have it, or the grouped rows.
struct count_of_group {
  const std::uint64_t* counts;
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return counts != nullptr ? counts[group] : offsets[group + 1] - offsets[group];
  }
};

struct divide {
  std::uint64_t* sums;
  count_of_group counts;
  words_of words;
  ROOST_FN void operator()(std::size_t i) const {
    const double sum = words.as_double()         ? from_bits<double>(sums[i])
                       : words.type < number::b1 ? static_cast<double>(static_cast<std::int64_t>(sums[i]))
                                                 : static_cast<double>(sums[i]);
    sums[i] = bits_of<double, std::uint64_t>(sum / static_cast<double>(counts(i)));
  }
};

/// The number of each group among keys in ascending order of their hashes.
template <class Key>
struct number_by_hash {
  const Key* keys;
  std::size_t size;
  const Key* groups;
  std::uint32_t* numbers;
  ROOST_FN void operator()(std::size_t group) const {
    const auto mine = hash_of(groups[group], 0);
    numbers[group] = static_cast<std::uint32_t>(
        detail::lower_bound(std::size_t{0}, size, [&](std::size_t i) { return hash_of(keys[i], 0) < mine; }));
  }
};

/// Puts what each group has where its number says; without numbers, they are in order.
template <class T, class Source>
struct put_by_number {
  Source source;
  const std::uint32_t* numbers;
  T* target;
  ROOST_FN void operator()(std::size_t group) const {
    target[numbers == nullptr ? group : numbers[group]] = source(group);
  }
};

template <class T>
struct element_of {
  const T* elements;
  ROOST_FN T operator()(std::size_t i) const { return elements[i]; }
};

/// Rows by their keys. The first call that needs the distinct keys numbers them, and all that comes of one
/// object is in this order. Where the order of the values cannot matter, the first calls aggregate them
/// together with the keys, which then are in the order of their hashes, whatever is aggregated. Other calls
/// group the rows; once these are grouped, nothing is aggregated any longer.
template <class Place>
class grouping {
 public:
  using at_place = const call_place<Place>&;
  virtual ~grouping() = default;

  std::size_t size(at_place at) {
    return alone(at, [&](const Place& place) {
      if (!numbered_) group(place);
      return size_;
    });
  }

  /// The distinct keys. Once only.
  virtual nb::object keys(at_place at) = 0;

  nb::object counts(at_place at) {
    auto all = alone(at, [&](const Place& place) {
      if (!numbered_) group(place);
      output<std::int64_t, Place> result(at, place, size_);
      place.for_each(size_, put_by_number<std::int64_t, count_of_group>{count(), nullptr, result.data()});
      return result;
    });
    return all.to_python();
  }

  /// The least row of each group.
  nb::object first_rows(at_place at, bool wide) {
    auto first = alone(at, [&](const Place& place) {
      if (!grouped_) group(place);
      array<std::uint32_t, Place> result(place, size_);
      const put_by_number<std::uint32_t, first_of_group> put{
          {rows_.data(), offsets_.data()}, numbers_.data(), result.data()};
      place.for_each(size_, put);
      return result;
    });
    return rows_to_python(at, std::move(first), wide);
  }

  /// What comes of the values of each group. Sums of integers and bools, and means, have 8 bytes; other
  /// results have the type of the values.
  nb::object reduce(at_place at, const column& values, int type, int how) {
    if (values.rows != n_) {
      detail::raise<invalid_argument>(
          {"roost.group_by: ", n_, " keys but ", values.rows, " values; give as many"});
    }
    const words_of words{static_cast<number>(type), static_cast<reduction>(how)};
    const load_word<std::uint64_t> load{values.data, words};
    if (words.how == reduction::sum && words.type == number::f4) {
      auto sums = alone(at, [&](const Place& place) {
        return reduce_groups<std::uint32_t>(at, place, {values.data, words});
      });
      return sums.to_python();
    }
    if (words.extreme()) {
      auto extremes = alone(at, [&](const Place& place) {
        const auto least = aggregate_or_reduce(at, place, load);
        output<std::uint8_t, Place> result(at, place, size_ * values.row_bytes);
        place.for_each(size_, store_extreme{least.data(), result.data(), words});
        return result;
      });
      return extremes.to_python();
    }
    auto results = alone(at, [&](const Place& place) {
      auto sums = aggregate_or_reduce(at, place, load);
      if (words.how == reduction::mean) place.for_each(size_, divide{sums.data(), count(), words});
      return sums;
    });
    return results.to_python();
  }

 protected:
  grouping(const Place& home, std::size_t n) : home_(home), n_(n) {}

  /// f(place) on the stream of the keys, one call after the other.
  template <class F>
  auto alone(at_place at, const F& f) {
    return change(at, home_, [&](const Place& place) {
      const std::scoped_lock lock(mutex_);
      return f(place);
    });
  }

  /// False if that is impossible. The first results number the keys.
  virtual bool aggregate(const Place& place, const load_word<std::uint64_t>& load,
                         array<std::uint64_t, Place>& results) = 0;
  /// Groups the rows, in the order of the keys if these have been numbered.
  virtual void group(const Place& place) = 0;

  Place home_;
  std::size_t n_, size_ = 0;
  bool numbered_ = false, grouped_ = false;
  array<std::uint64_t, Place> counts_;   // of aggregates
  array<std::uint32_t, Place> rows_;     // once they are grouped: group after group, ascending in each
  array<std::uint64_t, Place> offsets_;  // where each group begins in rows_, and the end
  array<std::uint32_t, Place> numbers_;  // of the groups, if their keys were numbered before

 private:
  /// Each aggregate costs about as much as to group the rows, and twice a reduction of groups.
  static constexpr int aggregates_most = 2;

  count_of_group count() const { return {counts_.size() == 0 ? nullptr : counts_.data(), offsets_.data()}; }

  output<std::uint64_t, Place> aggregate_or_reduce(at_place at, const Place& place,
                                                   const load_word<std::uint64_t>& load) {
    if (!grouped_ && !load.words.adds_floats() && aggregates_ < aggregates_most) {
      ++aggregates_;
      array<std::uint64_t, Place> results;
      if (aggregate(place, load, results)) return {at, std::move(results)};
    }
    return reduce_groups(at, place, load);
  }

  template <class Bits>
  output<Bits, Place> reduce_groups(at_place at, const Place& place, const load_word<Bits>& load) {
    if (!grouped_) group(place);
    output<Bits, Place> results(at, place, size_);
    array<Bits, Place> of_groups(place, numbers_.size());
    Bits* const target = numbers_.size() == 0 ? results.data() : of_groups.data();
    detail::reduce_lists(place, load_row<Bits>{load, rows_.data()}, offsets_.data(), size_,
                         combine_words<Bits>{load.words.extreme(), load.words.adds_floats()}, target,
                         nullptr);
    place.for_each(numbers_.size(), put_by_number<Bits, element_of<Bits>>{
                                        {of_groups.data()}, numbers_.data(), results.data()});
    return results;
  }

  int aggregates_ = 0;
  std::mutex mutex_;
};

template <class Key, class Place>
class grouping_of final : public grouping<Place> {
  static constexpr const char* where = "roost.group_by";

 public:
  using typename grouping<Place>::at_place;

  grouping_of(const Place& place, std::span<const Key> keys)
      : grouping<Place>(place, keys.size()), keys_(place, keys.size()) {
    place.for_each(keys.size(), copy_of(keys.data(), keys_.data()));
  }

  nb::object keys(at_place at) override {
    auto all = this->alone(at, [&](const Place& place) {
      if (!this->numbered_) group(place);
      if (distinct_.size() != this->size_) detail::raise<error>({where, ": the keys were taken before"});
      if (this->grouped_) return output<Key, Place>(at, std::move(distinct_));
      output<Key, Place> result(at, place, this->size_);
      place.for_each(this->size_, copy_of(distinct_.data(), result.data()));
      return result;
    });
    return all.to_python();
  }

 private:
  bool aggregate(const Place& place, const load_word<std::uint64_t>& load,
                 array<std::uint64_t, Place>& results) override {
    if constexpr (sizeof(Key) > 8) {
      return false;
    } else {
      const auto with = [&](auto f) {
        const auto source = detail::zip_checked(keys_.span(), computed(this->n_, load), where);
        auto all =
            detail::aggregator<Place, Key, std::uint64_t, decltype(f)>(place, this->n_, !this->numbered_)
                .run(source);
        if (!all) return false;
        results = std::move(all->values[0]);
        if (this->numbered_) return true;
        distinct_ = std::move(all->keys);
        this->counts_ = std::move(all->counts);
        this->size_ = distinct_.size();
        return this->numbered_ = true;
      };
      if (this->n_ == 0) return false;
      return load.words.extreme() ? with(minimum()) : with(plus());
    }
  }

  void group(const Place& place) override {
    const auto rows = detail::numbers_to<std::uint32_t>(this->n_);
    auto all = detail::group(place, detail::zip_checked(keys_.span(), rows, where), 0, false, where);
    if (this->numbered_) {
      if constexpr (sizeof(Key) <= 8) {
        this->numbers_ = array<std::uint32_t, Place>(place, this->size_);
        place.for_each(this->size_, number_by_hash<Key>{distinct_.data(), this->size_, all.keys.data(),
                                                        this->numbers_.data()});
      }
    } else {
      distinct_ = std::move(all.keys);
      this->size_ = distinct_.size();
    }
    this->rows_ = std::move(all.values);
    this->offsets_ = std::move(all.offsets);
    this->numbered_ = this->grouped_ = true;
    keys_ = {};
  }

  static auto copy_of(const Key* source, Key* target) {
    return put_by_number<Key, element_of<Key>>{{source}, nullptr, target};
  }

  array<Key, Place> keys_;      // of the rows, until these are grouped
  array<Key, Place> distinct_;  // once they are numbered, until they are Python's and rows are grouped
};

template <class Place>
std::unique_ptr<grouping<Place>> group_rows(const call_place<Place>& at, const column& keys) {
  return with_keys(keys, [&]<class Key>(Key) -> std::unique_ptr<grouping<Place>> {
    const auto column = span_of<Key>(keys);
    return without_gil(
        at, [&](const Place& place) { return std::make_unique<grouping_of<Key, Place>>(place, column); });
  });
}

}  // namespace

template <class Place>
void bind_group_by(nb::module_& m) {
  using all = grouping<Place>;
  nb::class_<all>(m, "Grouping")
      .def("size", &all::size)
      .def("keys", &all::keys)
      .def("counts", &all::counts)
      .def("first_rows", &all::first_rows)
      .def("reduce", &all::reduce);
  m.def("group", &group_rows<Place>);
}

template void bind_group_by<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
