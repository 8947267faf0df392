#pragma once

#include <type_traits>

/// \file
/// The names of the tables and what their parameters are by default, for headers that only pass tables on:
/// this one includes nothing of the library.

namespace roost {

class host;
class cuda;
template <class T, class Place>
class array;

/// The value type of sets: empty, and takes no memory.
struct none {};

struct compact;
struct bucketed;
/// The default layout of frozen_map and frozen_set: compact for keys of up to 8 bytes and values of up to 24,
/// otherwise bucketed.
template <class Key, class Value>
using default_layout =
    std::conditional_t<sizeof(Key) <= 8 && sizeof(Value) <= 24 && alignof(Value) <= 16, compact, bucketed>;

template <class Key, class Value, class Place = host, class Layout = default_layout<Key, Value>>
class frozen_map;
template <class Key, class Place = host, class Layout = default_layout<Key, none>>
class frozen_set;
template <class Key, class Value, class Place = host>
class frozen_multimap;
template <class Key, class Place = host>
class two_way_index;
template <class Key, class Value, class Place = host>
class sorted_map;
template <class Key, class Value, class Place = host>
class concurrent_map;
template <class Key, class Place = host>
class concurrent_set;
template <class Key, class Value, class Place = host>
class stadium_map;
template <int D, class Place = host>
class coordinate_index;
template <int D, class Place = host>
class kernel_map;

}  // namespace roost
