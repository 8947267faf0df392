#pragma once

#include <limits>
#include <memory>
#include <span>  // and std::ranges::size: <ranges> takes nvcc a third of a second more

#include "roost/detail/place/config.hpp"

namespace roost {

/// A sized random-access sequence whose element i is f(i): keys and values that are computed where they are
/// used and never stored. `f` is copied to the place; on cuda it must be callable there (a functor or an
/// extended lambda). It may be called more than once for one i, and must then return the same value.
template <class F>
struct computed {
  std::size_t count;
  F f;

  computed(std::size_t n, F function) : count(n), f(function) {}
  std::size_t size() const { return count; }
  ROOST_FN auto operator[](std::size_t i) const { return f(i); }
};

}  // namespace roost

namespace roost::detail {

/// What a kernel holds of a user's range: a pointer or iterator, and the size.
template <class Iterator>
struct sequence {
  Iterator first;
  std::size_t count;

  std::size_t size() const { return count; }
  using value = std::iter_value_t<Iterator>;
  using read = decltype(std::declval<Iterator>()[0]);  // a proxy, as of std::vector<bool>, is no key
  ROOST_FN std::conditional_t<std::is_same_v<std::remove_cvref_t<read>, value>, read, value> operator[](
      std::size_t i) const {
    return first[i];
  }
};

/// Memory of a place whose class wraps the pointer to it, as thrust::device_vector does.
template <class Range>
concept wraps_pointer = requires(Range& range) {
  requires std::is_pointer_v<decltype(range.data().get())>;
  range.size();
};

/// Whether a range's elements are contiguous in memory.
template <class Range>
constexpr bool is_contiguous = wraps_pointer<Range> || std::ranges::contiguous_range<Range>;

/// A pointer to them.
template <class Range>
auto* data_of(Range& range) {
  if constexpr (wraps_pointer<Range>) {
    return range.data().get();
  } else {
    return std::ranges::data(range);
  }
}

template <class Range>
constexpr bool has_a_size() {
  static_assert(!std::is_pointer_v<std::remove_cvref_t<Range>>,
                "a pointer does not tell how many elements there are: pass std::span(pointer, count)");
  return true;
}

template <class Range>
auto as_sequence(const Range& range) {
  static_assert(has_a_size<Range>());
  if constexpr (is_contiguous<const Range>) {
    using element = std::remove_reference_t<decltype(*data_of(range))>;
    return sequence<const element*>{data_of(range), static_cast<std::size_t>(std::ranges::size(range))};
  } else if constexpr (std::ranges::random_access_range<const Range>) {
    return sequence<std::ranges::iterator_t<const Range>>{std::ranges::begin(range),
                                                          static_cast<std::size_t>(std::ranges::size(range))};
  } else {
    return range;  // computed, or anything else with size() and operator[] that can be copied to the place
  }
}

/// Elements [first, first + count) of a sequence. For stored elements, the result has the same type.
template <class Sequence>
struct subsequence {
  Sequence all;
  std::size_t first, count;

  std::size_t size() const { return count; }
  ROOST_FN decltype(auto) operator[](std::size_t i) const { return all[first + i]; }
};

template <class Sequence>
auto slice(const Sequence& all, std::size_t first, std::size_t count) {
  return subsequence<Sequence>{all, first, count};
}
template <class Iterator>
auto slice(const sequence<Iterator>& all, std::size_t first, std::size_t count) {
  return sequence<Iterator>{all.first + static_cast<std::ptrdiff_t>(first), count};
}

template <class Range>
using sequence_of = decltype(as_sequence(std::declval<const Range&>()));

/// The type of the elements of a user's range, or void if it is none.
template <class Range>
using element_of = std::remove_cvref_t<decltype(std::declval<const sequence_of<Range>&>()[0])>;

/// Whether every From is the same as a To: the same type, or a number type with more values.
template <class From, class To>
constexpr bool keeps_every_value = [] {
  if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) {
    using source = std::numeric_limits<From>;
    using target = std::numeric_limits<To>;
    return (source::is_integer || !target::is_integer) && (target::is_signed || !source::is_signed) &&
           source::digits <= target::digits;
  } else {
    return std::is_same_v<From, To>;
  }
}();

/// A sequence of numbers as another type, which keeps their values.
template <class T, class Sequence>
struct converted {
  Sequence source;

  std::size_t size() const { return source.size(); }
  ROOST_FN T operator[](std::size_t i) const { return static_cast<T>(source[i]); }
};

/// What a kernel holds of a user's range of keys, values or operations for a table of T. Every bulk call
/// passes its ranges through here: C++ would silently convert numbers, such as 2^32 + 1 into the key 1.
template <class T, class Range>
auto sequence_as(const Range& range) {
  using element = element_of<Range>;
  static_assert(keeps_every_value<element, T>,
                "keys, values and operations must have exactly the table's types, or be numbers of types "
                "whose every value the table's type can hold: convert them first");
  if constexpr (std::is_same_v<element, T>) {
    return as_sequence(range);
  } else if constexpr (keeps_every_value<element, T>) {
    return converted<T, sequence_of<Range>>{as_sequence(range)};
  } else {
    return sequence<const T*>{};  // so that nothing else is reported
  }
}

template <class T, class Range>
using sequence_as_of = decltype(sequence_as<T>(std::declval<const Range&>()));

template <class Key, class First, class... Rest>
constexpr bool changes_first_key() {
  if constexpr (is_number<First>) {
    return std::is_floating_point_v<First> || sizeof(First) > sizeof(Key);
  } else if constexpr (sizeof...(Rest) != 0 && !std::is_convertible_v<First, Key>) {  // lanes come first
    return changes_first_key<Key, Rest...>();
  } else {
    return false;
  }
}

/// Arguments of a ref's call whose key could silently become another one: a floating-point number or a wider
/// integer for an integer key. Such calls are deleted: convert the key first. (In bulk, a range of ints is
/// also refused for unsigned keys; here ints are allowed, because literals are ints.)
template <class Key, class... Arguments>
concept changes_the_key =
    is_number<Key> && !std::is_floating_point_v<Key> && changes_first_key<Key, Arguments...>();

}  // namespace roost::detail

/// Deletes a function with words that say what to do, where the compiler takes them. (Others, such as g++,
/// print the name of the template parameter.)
#if defined(__clang__) && defined(__cpp_deleted_function)
#define ROOST_DELETE(words)                                                                     \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") = \
      delete (words)_Pragma("clang diagnostic pop")
#else
#define ROOST_DELETE(words) = delete
#endif

/// Declares a deleted overload, for such arguments, of a ref's function that takes a key.
#define ROOST_DELETE_IF_IT_CHANGES_THE_KEY(name)                                             \
  template <class... this_number_could_become_another_key_convert_it_to_the_key_type_first>  \
    requires roost::detail::changes_the_key<                                                 \
        Key, this_number_could_become_another_key_convert_it_to_the_key_type_first...>       \
  void name(const this_number_could_become_another_key_convert_it_to_the_key_type_first&...) \
      const ROOST_DELETE("this number could become another key: convert it to the key type first")
#define ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(one, other) \
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(one);              \
  ROOST_DELETE_IF_IT_CHANGES_THE_KEY(other)

/// The same of a function or an `explicit` constructor, for calls that begin with neither of two places.
#define ROOST_DELETE_WITHOUT_PLACE(Place, Other, function)                                             \
  template <class... the_place_such_as_a_roost_host_comes_first>                                       \
    requires(!roost::detail::begins_with<Place, Other, the_place_such_as_a_roost_host_comes_first...>) \
  function(const the_place_such_as_a_roost_host_comes_first&...)                                       \
      ROOST_DELETE("the place, such as a roost::host, comes first")
/// And of a map's constructor, for a range that has no pairs.
#define ROOST_DELETE_WITHOUT_VALUES(map)                                        \
  template <class give_keys_and_values_or_a_range_of_pairs>                     \
    requires(!detail::range_of_pairs<give_keys_and_values_or_a_range_of_pairs>) \
  map(const Place&, const give_keys_and_values_or_a_range_of_pairs&)            \
      ROOST_DELETE("give keys and values, or a range of pairs")
/// Deduce a table whose constructor is a deleted one.
#define ROOST_GUIDE_WITHOUT_PLACE(table, ...)        \
  template <std::ranges::range First, class... Rest> \
    requires(!detail::place_comes_first<First>)      \
  table(const First&, const Rest&...)->table<__VA_ARGS__>
#define ROOST_GUIDE_WITHOUT_VALUES(map)                  \
  template <detail::place_comes_first Place, class Keys> \
    requires(!detail::range_of_pairs<Keys>)              \
  map(const Place&, const Keys&)->map<int, int, Place>
