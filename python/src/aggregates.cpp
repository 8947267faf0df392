#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <oneapi/tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "grouping.hpp"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#endif

// Aggregates of the values of each group other than sums and extremes: moments, and those that need the
// values in order. Missing values are left out.

namespace roost::python {
namespace {

template <class Place>
using lists_of = typename grouping<Place>::lists;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A number as the sum of two floats. Means that are rounded to one would lose what is far smaller than they
/// are: the deviations from them.
struct twofold {
  double high = 0, low = 0;

  static ROOST_FN twofold sum(double a, double b) {
    const double rounded = a + b, added = rounded - a;
    if (!(rounded - rounded == 0)) return {rounded, 0};  // infinite
    return {rounded, (a - (rounded - added)) + (b - added)};
  }
  template <class T>
  static ROOST_FN twofold of(T value) {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {  // more digits than a float has
      return sum(static_cast<double>(value >> 32) * 4294967296.0, static_cast<double>(value & 0xffffffff));
    } else {
      return {static_cast<double>(value), 0};
    }
  }
  friend ROOST_FN twofold operator+(const twofold& a, double b) {
    const twofold both = sum(a.high, b);
    return {both.high, both.low + a.low};
  }
  friend ROOST_FN double operator-(const twofold& a, const twofold& b) {
    const twofold apart = sum(a.high, -b.high);
    return apart.high + (apart.low + (a.low - b.low));
  }
};

/// n values, represented by their mean and the sum of the squared deviations from it.
struct moments {
  double n = 0;
  twofold mean;
  double squares = 0;

  /// The moments of both (Chan, Golub and LeVeque 1979).
  friend ROOST_FN moments operator+(const moments& a, const moments& b) {
    if (a.n == 0 || b.n == 0) return a.n == 0 ? b : a;
    const double n = a.n + b.n, share = b.n / n, apart = b.mean - a.mean;
    return {n, a.mean + detail::rounded_product(apart, share),
            a.squares + b.squares + detail::rounded_product(apart * apart * share, a.n)};
  }
};

/// The same for pairs, with the sum of the products.
struct comoments {
  double n = 0;
  twofold x, y;  // means
  double x_squares = 0, y_squares = 0, products = 0;

  friend ROOST_FN comoments operator+(const comoments& a, const comoments& b) {
    if (a.n == 0 || b.n == 0) return a.n == 0 ? b : a;
    const double n = a.n + b.n, share = b.n / n, dx = b.x - a.x, dy = b.y - a.y;
    return {n,
            a.x + detail::rounded_product(dx, share),
            a.y + detail::rounded_product(dy, share),
            a.x_squares + b.x_squares + detail::rounded_product(dx * dx * share, a.n),
            a.y_squares + b.y_squares + detail::rounded_product(dy * dy * share, a.n),
            a.products + b.products + detail::rounded_product(dx * dy * share, a.n)};
  }
};

/// The moments of one value; the variance of an infinite one is NaN.
ROOST_FN moments moments_of(const twofold& value) { return {1, value, value.high - value.high}; }

ROOST_FN twofold twofold_at(const values_of_rows& x, std::size_t row) {
  return detail::with_number(x.type, [&]<class T>(T) { return twofold::of(x.get<T>(row)); });
}

struct load_moments {
  values_of_rows x;
  const moments* block(std::size_t first, std::size_t n, moments* buffer) const {
    x.convert(first, n, buffer, [](auto value) { return moments_of(twofold::of(value)); });
    for (std::size_t k = 0; x.valid != nullptr && k < n; ++k) {
      if (!x.has(first + k)) buffer[k] = {};
    }
    return buffer;
  }
  ROOST_FN moments operator()(std::size_t row) const {
    return x.has(row) ? moments_of(twofold_at(x, row)) : moments();
  }
};
struct load_comoments {
  values_of_rows x, y;
  ROOST_FN comoments operator()(std::size_t row) const {
    return x.has(row) ? of(twofold_at(x, row), twofold_at(y, row)) : comoments();
  }
  const comoments* block(std::size_t first, std::size_t n, comoments* buffer) const {
    twofold of_x[detail::few_rows::block], of_y[detail::few_rows::block];
    const auto convert = [](auto value) { return twofold::of(value); };
    x.convert(first, n, of_x, convert);
    y.convert(first, n, of_y, convert);
    for (std::size_t k = 0; k < n; ++k) buffer[k] = x.has(first + k) ? of(of_x[k], of_y[k]) : comoments();
    return buffer;
  }
  /// The spread of an infinite value is NaN.
  static ROOST_FN comoments of(const twofold& x, const twofold& y) {
    const double a = x.high, b = y.high;
    return {1, x, y, a - a, b - b, (a - a) + (b - b)};
  }
};

/// The variance or standard deviation from the moments of a group of n values; NaN for too few.
struct spread {
  double less;  // the divisor is n minus this
  bool root;    // the standard deviation
  ROOST_FN double operator()(const moments& of) const {
    if (!(of.n > less)) return not_a_number;
    const double variance = of.squares / (of.n - less);
    return root ? sqrt(variance) : variance;
  }
};
struct relation {
  double less;
  bool correlation;
  ROOST_FN double operator()(const comoments& of) const {
    if (!(of.n > less)) return not_a_number;
    if (!correlation) return of.products / (of.n - less);
    const double found = of.products / (sqrt(of.x_squares) * sqrt(of.y_squares));
    return found > 1 ? 1 : found < -1 ? -1 : found;
  }
};
ROOST_FN double number_in(const moments& of) { return of.n; }
ROOST_FN double number_in(const comoments& of) { return of.n; }

/// Writes the result of each group's moments, and the number of its values.
template <class Moments, class Made>
struct put_made {
  const Moments* of;
  Made made;
  double* results;
  std::int64_t* counts;
  ROOST_FN void operator()(std::size_t group) const {
    results[group] = made(of[group]);
    counts[group] = static_cast<std::int64_t>(number_in(of[group]));
  }
};

template <class First, class Second>
nb::tuple both(std::pair<First, Second>&& results) {
  nb::object first = results.first.to_python();
  return nb::make_tuple(std::move(first), results.second.to_python());
}

template <class Place, class Load, class Made>
nb::tuple of_moments(grouping<Place>& groups, const call_place<Place>& at, const Load& load,
                     const Made& made) {
  return both(
      groups.with_combined(at, load, plus(), [&](const Place& place, const auto& found, std::size_t n) {
        output<double, Place> results(at, place, n);
        output<std::int64_t, Place> counts(at, place, n);
        place.for_each(n,
                       put_made<decltype(load(0)), Made>{found.data(), made, results.data(), counts.data()});
        return std::pair(std::move(results), std::move(counts));
      }));
}

/// var and std: (float64, the number of values of each).
template <class Place>
nb::tuple spreads(grouping<Place>& groups, const call_place<Place>& at, const column& values,
                  const char* type, const std::optional<column>& valid, double less, bool root) {
  const auto x = values_of(values, type, valid, groups.rows());
  return of_moments(groups, at, load_moments{x}, spread{less, root});
}

/// cov and corr of two columns; `valid`: where both have values.
template <class Place>
nb::tuple relations(grouping<Place>& groups, const call_place<Place>& at, const column& x, const char* x_type,
                    const column& y, const char* y_type, const std::optional<column>& valid, double less,
                    bool correlation) {
  const load_comoments load{values_of(x, x_type, valid, groups.rows()),
                            values_of(y, y_type, valid, groups.rows())};
  return of_moments(groups, at, load, relation{less, correlation});
}

/// Value `row` of a column as a word in order.
struct load_ordered {
  values_of_rows source;
  ordered_words words;
  ROOST_FN std::uint64_t operator()(std::size_t row) const {
    return detail::with_number(source.type,
                               [&]<class T>(T) -> std::uint64_t { return words.word(source.get<T>(row)); });
  }
  const std::uint64_t* block(std::size_t first, std::size_t n, std::uint64_t* buffer) const {
    source.convert(first, n, buffer, [&](auto value) { return std::uint64_t{words.word(value)}; });
    return buffer;
  }
};

struct put_word {
  load_ordered load;
  const std::uint32_t* rows;
  std::uint64_t* target;
  ROOST_FN void operator()(std::uint64_t position, std::uint64_t i) const {
    target[position] = load(rows[i]);
  }
  ROOST_FN void operator()(std::size_t i) const { target[i] = load(rows[i]); }
};
struct row_is_there {
  values_of_rows source;
  const std::uint32_t* rows;
  ROOST_FN bool operator()(std::uint64_t i) const { return source.has(rows[i]); }
  ROOST_FN std::uint64_t operator[](std::uint64_t i) const { return source.has(rows[i]) ? 1 : 0; }
};

/// The words of the present values of each group, group after group.
template <class Place>
struct words_of_lists {
  array<std::uint64_t, Place> words;
  array<std::uint64_t, Place> own_offsets;  // unless they are those of the rows
  const std::uint64_t* offsets;
  std::size_t size;  // the number of groups
};

template <class Place>
words_of_lists<Place> words_of_groups(const Place& place, const lists_of<Place>& lists,
                                      const load_ordered& load) {
  words_of_lists<Place> result{{}, {}, lists.offsets, lists.size};
  if constexpr (std::is_same_v<Place, host>) {
    if (lists.few != nullptr) {
      result.own_offsets = array<std::uint64_t, Place>(place, lists.size + 1);
      result.offsets = result.own_offsets.data();
      result.words = array<std::uint64_t, Place>(place, lists.n);
      detail::list_few(place, *lists.few, load, result.own_offsets.data(), result.words.data());
      return result;
    }
  }
  if (load.source.valid == nullptr) {
    result.words = array<std::uint64_t, Place>(place, lists.n);
    place.for_each(lists.n, put_word{load, lists.rows, result.words.data()});
    return result;
  }
  const row_is_there there{load.source, lists.rows};
  result.own_offsets = array<std::uint64_t, Place>(place, lists.size + 1);
  std::uint64_t* const offsets = result.own_offsets.data();
  place.fill(offsets + lists.size, 0, sizeof(std::uint64_t));
  detail::reduce_lists(place, there, {lists.offsets, lists.size + 1}, plus(), offsets, nullptr);
  place.exclusive_scan(offsets, offsets, lists.size + 1);
  std::uint64_t total = 0;
  place.copy_to_host(&total, offsets + lists.size, sizeof(total));
  result.offsets = offsets;
  result.words = array<std::uint64_t, Place>(place, total);
  detail::select(place, lists.n, there, put_word{load, lists.rows, result.words.data()});
  return result;
}

// How much of the order of a list is needed; NaNs are last. On a GPU, lists are sorted.

struct whole {
  static constexpr bool sorts = true;
  static constexpr std::size_t by_digits_least = 1 << 10;

  void operator()(std::uint64_t* first, std::uint64_t* last) const {
    const auto n = static_cast<std::size_t>(last - first);
    if (n < by_digits_least) return std::sort(first, last);
    // Byte by byte from the last one, skipping bytes that are the same in all words.
    std::vector<std::array<std::uint32_t, 256>> places(8);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::uint32_t d = 0; d < 8; ++d) ++places[d][first[i] >> 8 * d & 255];
    }
    std::vector<std::uint64_t> other(n);
    std::uint64_t *from = first, *to = other.data();
    for (std::uint32_t d = 0; d < 8; ++d) {
      auto& place = places[d];
      if (place[from[0] >> 8 * d & 255] == n) continue;
      std::exclusive_scan(place.begin(), place.end(), place.begin(), std::uint32_t{0});
      for (std::size_t i = 0; i < n; ++i) to[place[from[i] >> 8 * d & 255]++] = from[i];
      std::swap(from, to);
    }
    if (from != first) std::copy(from, from + n, first);
  }
};
/// The n least.
struct only_least {
  static constexpr bool sorts = false;
  std::size_t n;
  void operator()(std::uint64_t* first, std::uint64_t* last) const {
    const auto size = static_cast<std::size_t>(last - first);
    std::uint64_t* const middle = first + std::min(n, size);
    if (n < 64 && n < size) return std::partial_sort(first, middle, last);  // most words are only compared
    if (middle != last) std::nth_element(first, middle, last);
    std::sort(first, middle);
  }
};
/// The two values around a quantile, and the last one.
struct around_quantile {
  static constexpr bool sorts = false;
  double q;
  ordered_words words;
  void operator()(std::uint64_t* first, std::uint64_t* last) const {
    const auto n = static_cast<std::size_t>(last - first);
    if (n < 2) return;
    const place_of_quantile at(q, n);
    std::uint64_t* const low = first + at.low;
    std::nth_element(first, low, last);
    if (low + 1 == last) return;
    if (at.part != 0) std::iter_swap(low + 1, std::min_element(low + 1, last));
    if (!words.has_nan()) return;
    std::uint64_t* const nan = std::find(low + 1, last, words.nan());
    if (nan != last) std::iter_swap(nan, last - 1);
  }
};

template <class Arrange>
struct arrange_list {
  std::uint64_t* words;
  const std::uint64_t* offsets;
  std::uint64_t most;  // longer ones are sorted by all threads
  Arrange arrange;
  template <class Team>
  void operator()(const Team&, std::size_t list, std::byte*) const {
    if (offsets[list + 1] - offsets[list] <= most) arrange(words + offsets[list], words + offsets[list + 1]);
  }
};

/// Puts the words of each list in order, as far as needed. On the host, a thread takes a list; all threads
/// together sort one that is more than a thread's share, if there are enough of them to be faster than one.
template <class Arrange>
void put_in_order(const host& place, words_of_lists<host>& all, const ordered_words&,
                  const Arrange& arrange) {
  const auto threads = static_cast<std::uint64_t>(place.threads());
  std::uint64_t most = ~std::uint64_t{0};
  if (threads >= (Arrange::sorts ? 4 : 16)) most = std::max(all.words.size() / threads, std::size_t{1} << 16);
  std::uint64_t* const words = all.words.data();
  for (std::size_t list = 0; list < all.size && most < all.words.size(); ++list) {
    std::uint64_t *const first = words + all.offsets[list], *const last = words + all.offsets[list + 1];
    if (static_cast<std::uint64_t>(last - first) <= most) continue;
    detail::come_between();
    place.execute([&] { tbb::parallel_sort(first, last); });
  }
  place.launch(all.size, 0, arrange_list<Arrange>{words, all.offsets, most, arrange});
}

#if defined(__CUDACC__)

struct put_list {
  std::uint32_t* target;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t list, std::uint64_t) const {
    target[i] = static_cast<std::uint32_t>(list);
  }
};

template <class From, class To>
void sort_pairs(const cuda& place, const From* keys, From* to_keys, const To* values, To* to_values,
                std::size_t n, std::size_t bits) {
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    detail::check(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, to_keys, values, to_values, n, 0,
                                                  static_cast<int>(bits), place.stream()),
                  "cub::DeviceRadixSort::SortPairs");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  const detail::scratch_block scratch(place, bytes);
  sort(scratch.get(), bytes);
}

/// Sorts by word, and then stably by list (radix sort), so lists may have any length.
template <class Arrange>
void put_in_order(const cuda& place, words_of_lists<cuda>& all, const ordered_words& order, const Arrange&) {
  const std::size_t n = all.words.size();
  if (n == 0) return;
  array<std::uint32_t, cuda> lists(place, n), lists_between(place, n);
  array<std::uint64_t, cuda> between(place, n);
  detail::expand(place, all.offsets, all.size, n, put_list{lists.data()});
  sort_pairs(place, all.words.data(), between.data(), lists.data(), lists_between.data(), n, order.bits());
  std::size_t bits = 1;
  while (all.size >> bits != 0) ++bits;
  sort_pairs(place, lists_between.data(), lists.data(), between.data(), all.words.data(), n, bits);
}

#endif

/// Puts the size of each list at its number.
struct size_of_list {
  const std::uint64_t* offsets;
  ROOST_FN std::int64_t operator()(std::size_t list) const {
    return static_cast<std::int64_t>(offsets[list + 1] - offsets[list]);
  }
};

template <class Place>
output<std::int64_t, Place> counts_of(const call_place<Place>& at, const Place& place,
                                      const lists_of<Place>& lists, const words_of_lists<Place>& all) {
  output<std::int64_t, Place> counts(at, place, lists.size);
  place.for_each(lists.size,
                 put_by_number<std::int64_t, size_of_list>{{all.offsets}, lists.numbers, counts.data()});
  return counts;
}

/// Quantile i % count of list i / count.
struct put_quantile {
  ordered_words words;
  const std::uint64_t* in_order;
  const std::uint64_t* offsets;
  const std::uint32_t* numbers;
  const double* wanted;
  std::size_t count;
  std::uint64_t* results;

  static ROOST_FN double between(double a, double b, double part) { return python::between(a, b, part); }
  /// Exactly, rounded down: the product has 128 bits.
  static ROOST_FN std::int64_t between(std::int64_t a, std::int64_t b, double part) {
    const auto apart = static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
    const auto bits = std::bit_cast<std::uint64_t>(part), shift = 1075 - (bits >> 52);  // at least 53
    const auto product = split_hash(apart, (bits & 0xfffffffffffff) | 1ull << 52);
    const std::uint64_t step = shift < 64    ? product.digit << (64 - shift) | product.rest >> shift
                               : shift < 128 ? product.digit >> (shift - 64)
                                             : 0;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + step);
  }
  template <class Result, class T>
  ROOST_FN Result of_list(std::size_t list, std::size_t which) const {
    const std::uint64_t first = offsets[list], n = offsets[list + 1] - first;
    if (n == 0) return Result(0);
    const auto value = [&](std::uint64_t i) {
      return static_cast<Result>(words.value<T>(in_order[first + i]));
    };
    if constexpr (!std::is_integral_v<T>) {
      const Result last = value(n - 1);
      if (last != last) return last;
    }
    const place_of_quantile at(wanted[which], n);
    const Result low = value(at.low);
    return at.part == 0 ? low : between(low, value(at.low + 1), at.part);
  }
};
template <class Result>
struct put_quantile_as : put_quantile {
  ROOST_FN void operator()(std::size_t i) const {
    const std::size_t list = i / count, which = i % count;
    const Result found =
        detail::with_number(words.type, [&]<class T>(T) { return of_list<Result, T>(list, which); });
    results[(numbers == nullptr ? list : numbers[list]) * count + which] =
        std::bit_cast<std::uint64_t>(found);
  }
};

/// Several quantiles of each group, side by side: float64, or with `whole_ones` int64 for integers; and the
/// number of values of each group.
template <class Place>
nb::tuple quantiles(grouping<Place>& groups, const call_place<Place>& at, const column& values,
                    const char* type, const std::optional<column>& valid, const std::vector<double>& wanted,
                    bool whole_ones) {
  const auto source = values_of(values, type, valid, groups.rows());
  const ordered_words words{source.type};
  return both(groups.with_lists(at, valid.has_value(), [&](const Place& place, const lists_of<Place>& lists) {
    auto all = words_of_groups(place, lists, {source, words});
    if (wanted.size() == 1) {
      put_in_order(place, all, words, around_quantile{wanted[0], words});
    } else {
      put_in_order(place, all, words, whole());
    }
    array<double, Place> there(place, wanted.size());
    place.copy_from_host(there.data(), wanted.data(), there.bytes());
    output<std::uint64_t, Place> results(at, place, lists.size * wanted.size());
    const put_quantile put{words,        all.words.data(), all.offsets,   lists.numbers,
                           there.data(), wanted.size(),    results.data()};
    if (whole_ones) {
      place.for_each(lists.size * wanted.size(), put_quantile_as<std::int64_t>{put});
    } else {
      place.for_each(lists.size * wanted.size(), put_quantile_as<double>{put});
    }
    place.synchronize();  // `wanted` is the host's
    return std::pair(std::move(results), counts_of(at, place, lists, all));
  }));
}

/// The runs of equal adjacent words in a sequence.
struct runs {
  std::uint64_t first, last, best, distinct;
  std::uint64_t first_length, last_length, best_length;

  friend ROOST_FN runs operator+(const runs& a, const runs& b) {
    const bool joins = a.last == b.first;
    const std::uint64_t joined = a.last_length + b.first_length;
    runs all = a;
    all.last = b.last;
    all.distinct = a.distinct + b.distinct - (joins ? 1 : 0);
    if (joins && a.distinct == 1) all.first_length = joined;
    all.last_length = joins && b.distinct == 1 ? joined : b.last_length;
    if (joins && joined > all.best_length) {  // of equally long runs, the first has the least word
      all.best = b.first;
      all.best_length = joined;
    }
    if (b.best_length > all.best_length) {
      all.best = b.best;
      all.best_length = b.best_length;
    }
    return all;
  }
};
struct load_run {
  const std::uint64_t* words;
  ROOST_FN runs operator[](std::size_t i) const { return {words[i], words[i], words[i], 1, 1, 1, 1}; }
};
struct distinct_of_list {
  const runs* found;
  const std::uint64_t* offsets;
  ROOST_FN std::int64_t operator()(std::size_t list) const {
    return offsets[list + 1] == offsets[list] ? 0 : static_cast<std::int64_t>(found[list].distinct);
  }
};
struct put_mode {
  const runs* found;
  const std::uint64_t* offsets;
  const std::uint32_t* numbers;
  ordered_words words;
  void* results;
  ROOST_FN void operator()(std::size_t list) const {
    const std::uint64_t word = offsets[list + 1] == offsets[list] ? 0 : found[list].best;
    detail::with_number(words.type, [&]<class T>(T) {
      static_cast<T*>(results)[numbers == nullptr ? list : numbers[list]] = words.value<T>(word);
      return true;
    });
  }
};

/// The least of the most frequent values of each group, and the number of its distinct values.
template <class Place>
nb::tuple modes(grouping<Place>& groups, const call_place<Place>& at, const column& values, const char* type,
                const std::optional<column>& valid) {
  const auto source = values_of(values, type, valid, groups.rows());
  const ordered_words words{source.type, false, true};
  return both(groups.with_lists(at, valid.has_value(), [&](const Place& place, const lists_of<Place>& lists) {
    auto all = words_of_groups(place, lists, {source, words});
    put_in_order(place, all, words, whole());
    array<runs, Place> found(place, lists.size);
    detail::reduce_lists(place, load_run{all.words.data()}, {all.offsets, lists.size + 1}, plus(),
                         found.data(), nullptr);
    output<std::uint8_t, Place> results(at, place, lists.size * bytes_of(words.type));
    place.for_each(lists.size, put_mode{found.data(), all.offsets, lists.numbers, words, results.data()});
    output<std::int64_t, Place> distinct(at, place, lists.size);
    place.for_each(lists.size, put_by_number<std::int64_t, distinct_of_list>{
                                   {found.data(), all.offsets}, lists.numbers, distinct.data()});
    return std::pair(std::move(results), std::move(distinct));
  }));
}

/// Puts where each group's values begin, and how many of them are wanted, at its number.
struct put_part {
  const std::uint64_t* offsets;
  const std::uint32_t* numbers;
  std::uint64_t most;
  std::uint64_t* begins;
  std::uint64_t* sizes;
  ROOST_FN void operator()(std::size_t list) const {
    const std::size_t number = numbers == nullptr ? list : numbers[list];
    begins[number] = offsets[list];
    sizes[number] = detail::smaller(offsets[list + 1] - offsets[list], most);
  }
};
struct put_value_of_part {
  const std::uint64_t* in_order;
  const std::uint64_t* begins;
  ordered_words words;
  void* results;
  ROOST_FN void operator()(std::uint64_t i, std::uint64_t number, std::uint64_t k) const {
    detail::with_number(words.type, [&]<class T>(T) {
      static_cast<T*>(results)[i] = words.value<T>(in_order[begins[number] + k]);
      return true;
    });
  }
};

/// The n least values of each group, ascending, or the n greatest, descending; and where each group's values
/// begin.
template <class Place>
nb::tuple outermost(grouping<Place>& groups, const call_place<Place>& at, const column& values,
                    const char* type, const std::optional<column>& valid, std::uint64_t n, bool greatest) {
  const auto source = values_of(values, type, valid, groups.rows());
  const ordered_words words{source.type, greatest};
  return both(groups.with_lists(at, valid.has_value(), [&](const Place& place, const lists_of<Place>& lists) {
    auto all = words_of_groups(place, lists, {source, words});
    put_in_order(place, all, words, only_least{n});
    array<std::uint64_t, Place> begins(place, lists.size);
    output<std::uint64_t, Place> offsets(at, place, lists.size + 1);
    place.fill(offsets.data() + lists.size, 0, sizeof(std::uint64_t));
    place.for_each(lists.size, put_part{all.offsets, lists.numbers, n, begins.data(), offsets.data()});
    place.exclusive_scan(offsets.data(), offsets.data(), lists.size + 1);
    std::uint64_t total = 0;
    place.copy_to_host(&total, offsets.data() + lists.size, sizeof(total));
    output<std::uint8_t, Place> results(at, place, total * bytes_of(words.type));
    detail::expand(place, offsets.data(), lists.size, total,
                   put_value_of_part{all.words.data(), begins.data(), words, results.data()});
    return std::pair(std::move(results), std::move(offsets));
  }));
}

}  // namespace

template <class Place>
void bind_aggregates(nb::class_<grouping<Place>>& bound) {
  bound
      .def("spreads", &spreads<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg("valid").none(), nb::arg(),
           nb::arg())
      .def("relations", &relations<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg("valid").none(), nb::arg(), nb::arg())
      .def("quantiles", &quantiles<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg("valid").none(),
           nb::arg(), nb::arg())
      .def("modes", &modes<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg("valid").none())
      .def("outermost", &outermost<Place>, nb::arg(), nb::arg(), nb::arg(), nb::arg("valid").none(),
           nb::arg(), nb::arg());
}

template void bind_aggregates<ROOST_PYTHON_PLACE>(nb::class_<grouping<ROOST_PYTHON_PLACE>>&);

}  // namespace roost::python
