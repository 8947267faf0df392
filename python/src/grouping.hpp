#pragma once

#include <nanobind/stl/optional.h>

#include <memory>
#include <mutex>
#include <utility>

#include "roost/group_by.hpp"
#include "roost/two_way_index.hpp"
#include "values.hpp"

// Groups of rows, and the reductions of their values. Types and reductions are chosen at run time: values are
// combined as words.

namespace roost::python {

/// Writes the extremes in the type of the values.
struct store_extreme {
  const std::uint64_t* from;
  void* values;
  words_of words;
  ROOST_FN void operator()(std::size_t i) const {
    detail::with_number(words.type, [&]<class T>(T) {
      static_cast<T*>(values)[i] = words.value_of<T>(from[i]);
      return true;
    });
  }
};

/// Value i of the rows in the order of their groups.
template <class Load>
struct load_row {
  Load load;
  const std::uint32_t* rows;
  ROOST_FN auto operator[](std::size_t i) const { return load(rows[i]); }
};

struct end_of_group {
  const std::uint32_t* rows;
  const std::uint64_t* offsets;
  bool last;
  ROOST_FN std::uint32_t operator()(std::size_t group) const {
    return rows[last ? offsets[group + 1] - 1 : offsets[group]];
  }
};

/// The number of rows of a group: from aggregates, or from grouped rows.
struct count_of_group {
  const std::uint64_t* counts;
  const std::uint64_t* offsets;
  ROOST_FN std::uint64_t operator()(std::size_t group) const {
    return counts != nullptr ? counts[group] : offsets[group + 1] - offsets[group];
  }
};

/// The position of a quantile among n values: after value `low`, a fraction of the way to the next one.
struct place_of_quantile {
  std::uint64_t low;
  double part;
  ROOST_FN place_of_quantile(double q, std::uint64_t n) {
    const double at = detail::rounded_product(q, static_cast<double>(n - 1));
    low = detail::smaller(static_cast<std::uint64_t>(at), n - 1);
    part = low + 1 == n ? 0 : at - static_cast<double>(low);
  }
};
/// The number at a part of the way from one to another.
ROOST_FN double between(double a, double b, double part) {
  const double apart = b - a;
  if (a == b || part == 0) return a;
  if (!(apart - apart == 0))  // too far apart, or infinite
    return detail::rounded_product(a, 1 - part) + detail::rounded_product(b, part);
  return part < 0.5 ? a + detail::rounded_product(apart, part) : b - detail::rounded_product(apart, 1 - part);
}

struct divide {
  std::uint64_t* sums;
  count_of_group counts;
  words_of words;
  ROOST_FN void operator()(std::size_t i) const {
    const double sum = words.as_double() ? std::bit_cast<double>(sums[i])
                       : words.type < column_type::b1
                           ? static_cast<double>(static_cast<std::int64_t>(sums[i]))
                           : static_cast<double>(sums[i]);
    sums[i] = std::bit_cast<std::uint64_t>(sum / static_cast<double>(counts(i)));
  }
};

/// Puts each group's value at its number; without numbers, groups are in order.
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

/// Rows by their keys. The first call that needs the distinct keys numbers them, and all results of an object
/// are in this order. If the order of the values cannot matter, the first calls aggregate them together with
/// the keys, which are then in the order of their hashes, whatever is aggregated. Other calls group the rows;
/// from then on, nothing is aggregated.
template <class Place>
class grouping {
 public:
  using at_place = const call_place<Place>&;
  virtual ~grouping() = default;

  std::size_t size(at_place at) {
    return alone(at, [&](const Place& place) {
      if (!numbered_) number_or_group(place);
      return size_;
    });
  }

  /// The distinct keys. To be called once.
  virtual nb::object keys(at_place at) = 0;

  nb::object counts(at_place at) {
    auto all = alone(at, [&](const Place& place) {
      if (!numbered_) number_or_group(place);
      output<std::int64_t, Place> result(at, place, size_);
      place.for_each(size_, put_by_number<std::int64_t, count_of_group>{count(), nullptr, result.data()});
      return result;
    });
    return all.to_python();
  }

  /// The first row of each group.
  nb::object first_rows(at_place at, bool wide) { return end_rows(at, false, wide); }
  nb::object last_rows(at_place at, bool wide) { return end_rows(at, true, wide); }

  /// The reduction of each group's values, and the number of values present; None if all are. Sums and
  /// products of integers and bools, products of floats, means and counts have 8 bytes; results of any and
  /// all are bools; others have the type of the values. If a group has no values, its result is meaningless.
  nb::tuple reduce(at_place at, const column& values, const char* type, const char* how,
                   const std::optional<column>& valid) {
    const auto source = values_of(values, type, valid, n_);
    const words_of words{source.type, value_of<reduction>(how)};
    std::optional<output<std::uint64_t, Place>> there;
    const auto finish = [&](auto&& results) {
      nb::object first = results.to_python();
      return nb::make_tuple(std::move(first), there ? there->to_python() : nb::none());
    };
    const auto count_first = [&](const Place& place) {
      if (source.valid == nullptr) return;
      if (!adds_in_any_order(words)) number_or_group(place);
      there.emplace(
          aggregate_or_reduce(at, place, load_word<std::uint64_t>{source, {words.type, reduction::count}}));
    };
    if (words.how == reduction::sum && words.type == column_type::f4) {
      return finish(alone(at, [&](const Place& place) {
        count_first(place);
        return reduce_groups(at, place, load_word<std::uint32_t>{source, words});
      }));
    }
    const load_word<std::uint64_t> load{source, words};
    if (words.extreme()) {
      const words_of stored{words.of_bools() ? column_type::b1 : words.type, words.how};
      return finish(alone(at, [&](const Place& place) {
        count_first(place);
        const auto least = aggregate_or_reduce(at, place, load);
        output<std::uint8_t, Place> result(at, place, size_ * bytes_of(stored.type));
        place.for_each(size_, store_extreme{least.data(), result.data(), stored});
        return result;
      }));
    }
    return finish(alone(at, [&](const Place& place) {
      if (words.how != reduction::count) count_first(place);
      auto results = aggregate_or_reduce(at, place, load);
      if (words.how == reduction::mean) {
        const count_of_group counts = there ? count_of_group{there->data(), nullptr} : count();
        place.for_each(size_, divide{results.data(), counts, words});
      }
      return results;
    }));
  }

  /// The rows of each group, for other aggregates of their values.
  struct lists {
    const std::uint32_t* rows;
    const std::uint64_t* offsets;
    const std::uint32_t* numbers;  // of the groups, or null
    std::size_t size, n;
    const detail::few_rows* few = nullptr;  // if not null, there are no rows and no offsets
  };

  /// f(place, lists) on the stream of the keys, one call after the other. `lists_few`: whether f needs lists
  /// of rows even for few groups.
  template <class F>
  auto with_lists(at_place at, bool lists_few, const F& f) {
    return alone(at, [&](const Place& place) {
      number_or_group(place);
      if (few_ && !lists_few) return f(place, lists{nullptr, nullptr, nullptr, size_, n_, &*few_});
      return f(place, rows_of_groups(place));
    });
  }

  /// done(place, found, size), where found[k] is f over load(i) for the rows i of key k.
  template <class Load, class F, class Done>
  auto with_combined(at_place at, const Load& load, const F& f, const Done& done) {
    return alone(at, [&](const Place& place) {
      number_or_group(place);
      array<decltype(load(0)), Place> found(place, size_);
      combine(place, load, f, found.data());
      return done(place, found, size_);
    });
  }

  std::size_t rows() const { return n_; }

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

  /// False if that is impossible. The first call numbers the keys.
  virtual bool aggregate(const Place& place, const load_word<std::uint64_t>& load,
                         array<std::uint64_t, Place>& results) = 0;
  /// Groups the rows, in the order of the keys if these are already numbered.
  virtual void group(const Place& place) = 0;
  /// The words of each group combined elsewhere; none: they are to be combined here.
  virtual std::optional<array<std::uint64_t, Place>> elsewhere(const load_word<std::uint64_t>&) { return {}; }
  virtual std::optional<array<std::uint32_t, Place>> elsewhere(const load_word<std::uint32_t>&) { return {}; }

  Place home_;
  std::size_t n_, size_ = 0;
  bool numbered_ = false, grouped_ = false;
  array<std::uint64_t, Place> counts_;   // of aggregates
  array<std::uint32_t, Place> rows_;     // once they are grouped: group after group, ascending in each
  array<std::uint64_t, Place> offsets_;  // where each group begins in rows_, and the end
  array<std::uint32_t, Place> numbers_;  // of the groups, if their keys were numbered before
  std::optional<detail::few_rows> few_;  // on the host, if keys are few: then numbered without grouping

 private:
  /// Each aggregate costs about as much as grouping the rows, and twice as much as a reduction of groups.
  static constexpr int aggregates_most = 2;

  nb::object end_rows(at_place at, bool last, bool wide) {
    auto found = alone(at, [&](const Place& place) {
      if constexpr (std::is_same_v<Place, host>) {
        if (few_ && !last) {
          array<std::uint32_t, Place> rows(place, size_);
          std::copy(few_->first.begin(), few_->first.end(), rows.data());
          return rows;
        }
      }
      const auto lists = rows_of_groups(place);
      array<std::uint32_t, Place> result(place, size_);
      place.for_each(size_, put_by_number<std::uint32_t, end_of_group>{
                                {lists.rows, lists.offsets, last}, lists.numbers, result.data()});
      return result;
    });
    return rows_to_python(at, std::move(found), wide);
  }

  static bool adds_in_any_order(const words_of& words) {
    return !words.floats() && words.how != reduction::product;
  }

  void number_or_group(const Place& place) {
    if (!few_ && !grouped_) group(place);
  }

  lists rows_of_groups(const Place& place) {
    if constexpr (std::is_same_v<Place, host>) {
      if (few_ && !grouped_) {
        rows_ = array<std::uint32_t, Place>(place, n_);
        offsets_ = array<std::uint64_t, Place>(place, size_ + 1);
        const detail::values_at rows{[](std::size_t i) { return static_cast<std::uint32_t>(i); }};
        detail::list_few(place, *few_, rows, offsets_.data(), rows_.data());
        grouped_ = true;
      }
    }
    if (!grouped_) group(place);
    return {rows_.data(), offsets_.data(), numbers_.size() == 0 ? nullptr : numbers_.data(), size_, n_};
  }

  count_of_group count() const { return {counts_.size() == 0 ? nullptr : counts_.data(), offsets_.data()}; }

  output<std::uint64_t, Place> aggregate_or_reduce(at_place at, const Place& place,
                                                   const load_word<std::uint64_t>& load) {
    if (!few_ && !grouped_ && adds_in_any_order(load.words) && aggregates_ < aggregates_most) {
      ++aggregates_;
      array<std::uint64_t, Place> results;
      if (aggregate(place, load, results)) return {at, std::move(results)};
    }
    return reduce_groups(at, place, load);
  }

  template <class Bits>
  output<Bits, Place> reduce_groups(at_place at, const Place& place, const load_word<Bits>& load) {
    if (auto made = elsewhere(load)) return {at, std::move(*made)};
    number_or_group(place);
    output<Bits, Place> results(at, place, size_);
    if constexpr (sizeof(Bits) == 8) {
      if (load.words.how == reduction::product) {
        combine(place, load, combine_words<multiplies, Bits>{false, load.words.floats()}, results.data());
        return results;
      }
    }
    const combine_words<plus, Bits> add{load.words.extreme(), load.words.floats()};
    if constexpr (std::is_same_v<Place, host>) {
      if (few_ && !add.floats) {
        if (add.least) {
          detail::reduce_few(place, *few_, load, minimum(), results.data());
        } else {
          detail::reduce_few(place, *few_, load, plus(), results.data());
        }
        return results;
      }
    }
    combine(place, load, add, results.data());
    return results;
  }

  /// results[k] = f over load(i) for the rows i of key k, in order.
  template <class T, class Load, class F>
  void combine(const Place& place, const Load& load, const F& f, T* results) {
    if constexpr (std::is_same_v<Place, host>) {
      if (few_ && few_->suits(place)) return detail::reduce_few(place, *few_, load, f, results);
      rows_of_groups(place);
    }
    array<T, Place> of_groups(place, numbers_.size());
    T* const target = numbers_.size() == 0 ? results : of_groups.data();
    detail::reduce_lists(place, load_row<Load>{load, rows_.data()}, {offsets_.data(), size_ + 1}, f, target,
                         nullptr);
    place.for_each(numbers_.size(),
                   put_by_number<T, element_of<T>>{{of_groups.data()}, numbers_.data(), results});
  }

  int aggregates_ = 0;
  std::mutex mutex_;
};

/// Rows of few keys, on the host; or of texts, which can be read from the first rows.
template <class Key>
class grouping_of_few final : public grouping<host> {
 public:
  grouping_of_few(const host& cpu, detail::few_groups<Key>&& few)
      : grouping<host>(cpu, few.rows.numbers.size()), keys_(std::move(few.keys)) {
    size_ = few.rows.size();
    counts_ = array<std::uint64_t, host>(cpu, size_);
    std::copy(few.rows.counts(), few.rows.counts() + size_, counts_.data());
    few_ = std::move(few.rows);
    numbered_ = true;
  }
  nb::object keys(at_place at) override {
    if (keys_.size() != size_) detail::raise<error>({"roost.group_by: the keys were taken before"});
    return to_python(at, std::move(keys_));
  }

 private:
  bool aggregate(const host&, const load_word<std::uint64_t>&, array<std::uint64_t, host>&) override {
    return false;
  }
  void group(const host&) override {}  // rows_of_groups does

  array<Key, host> keys_;
};

/// Rows by the numbers of their groups, which are known. Python keeps the numbers.
class grouping_of_numbers : public grouping<host> {
 public:
  grouping_of_numbers(const host& cpu, const column& numbers, const column& counts)
      : grouping<host>(cpu, numbers.rows), group_of_row_(span_of<std::uint32_t>(numbers)) {
    size_ = counts.rows;
    counts_ = array<std::uint64_t, host>(cpu, size_);
    std::ranges::copy(span_of<std::uint64_t>(counts), counts_.data());
    numbered_ = true;
  }
  nb::object keys(at_place) override { detail::raise<error>({"roost.group_by: only numbers of keys"}); }

 protected:
  bool aggregate(const host&, const load_word<std::uint64_t>&, array<std::uint64_t, host>&) override {
    return false;
  }

  std::span<const std::uint32_t> group_of_row_;

 private:
  void group(const host& cpu) override {
    array<std::uint64_t, host> offsets(cpu, size_ + 1);
    std::copy(counts_.data(), counts_.data() + size_, offsets.data());
    offsets[size_] = 0;
    cpu.exclusive_scan(offsets.data(), offsets.data(), size_ + 1);
    const auto sorted =
        detail::sort_keys(cpu, detail::as_sequence(group_of_row_), detail::numbers_to<std::uint32_t>(n_));
    rows_ = detail::array_of(cpu, n_, sorted.number());
    offsets_ = std::move(offsets);
    grouped_ = true;
  }
};

/// Groups the rows of keys like detail::index_few; null if they are not few.
template <class Key, class Keys>
std::unique_ptr<grouping<host>> group_few(const host& cpu, std::size_t n, const Keys& keys,
                                          std::size_t bits = 64) {
  auto few = detail::index_few<Key>(cpu, n, keys, bits);
  if (!few) return nullptr;
  return std::make_unique<grouping_of_few<Key>>(cpu, std::move(*few));
}

/// Aggregates that are not reductions: aggregates.cpp.
template <class Place>
void bind_aggregates(nb::class_<grouping<Place>>& bound);

}  // namespace roost::python
