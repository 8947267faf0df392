#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <roost/roost.hpp>
#include <string_view>
#include <vector>

#include "support/memory.hpp"

// The place under test. Every *_test.cpp is compiled twice: by g++, where this is roost::host, and by nvcc,
// where it is roost::cuda.

namespace test {

#if defined(__CUDACC__)

using place_type = roost::cuda;

/// A stream of our own, so that work that slips into the default stream is not ordered with ours.
inline cudaStream_t test_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    roost::detail::check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
                         "cudaStreamCreateWithFlags");
    return made;
  }();
  return stream;
}

inline place_type make_place(watched_memory& memory) { return place_type(test_stream(), &memory); }

/// Without a device there is nothing to test.
class needs_device : public testing::Environment {
  void SetUp() override {
    if (!roost::cuda_available()) GTEST_SKIP() << "no CUDA device";
  }
};
inline testing::Environment* const device_environment = testing::AddGlobalTestEnvironment(new needs_device);

#else

using place_type = roost::host;

inline place_type make_place(watched_memory& memory) { return place_type(2, &memory); }

#endif

inline constexpr bool on_host = std::is_same_v<place_type, roost::host>;

/// The memory of test_place().
inline watched_memory& test_memory() {
  static watched_memory memory;
  return memory;
}

inline const place_type& test_place() {
  static const place_type place = make_place(test_memory());
  return place;
}

/// What all tests have allocated must be back at the end.
class leak_check : public testing::Environment {
  void TearDown() override {
    EXPECT_EQ(test_memory().live_blocks(), 0u) << "memory of the place was not given back";
    EXPECT_EQ(test_memory().wrong_returns(), 0u) << "memory was given back twice, or with another size";
  }
};
inline testing::Environment* const leak_environment = testing::AddGlobalTestEnvironment(new leak_check);

template <class T>
using memory_of = roost::array<T, place_type>;

/// Host memory -> place.
template <class T>
memory_of<T> upload(const std::vector<T>& source) {
  return roost::copy_to(test_place(), source);
}

/// Memory of the place -> a vector; bools arrive as chars.
template <class Range>
auto download(const Range& source) {
  return roost::copy_to_host(test_place(), source);
}

/// The items of a partition as they lie, and where each region begins and ends.
template <class Item>
struct regions_on_host {
  std::vector<Item> items;
  std::vector<std::uint64_t> begins, ends;
};

/// Brings a partition to the host. What lies between regions is nobody's, so nobody reads it.
template <class Item>
regions_on_host<Item> download(const roost::partitioned<Item, place_type>& source) {
  const auto list = [&](const std::uint64_t* from) {
    return download(std::span<const std::uint64_t>(from, source.regions()));
  };
  regions_on_host<Item> result{std::vector<Item>(source.extent()), list(source.begins()),
                               list(source.ends())};
  const bool no_gaps = result.ends.back() == source.extent() &&
                       std::equal(result.ends.begin(), result.ends.end() - 1, result.begins.begin() + 1);
  for (std::size_t r = 0; r < (no_gaps ? 1 : source.regions()); ++r) {
    const std::uint64_t begin = no_gaps ? 0 : result.begins[r],
                        end = no_gaps ? source.extent() : result.ends[r];
    test_place().copy_to_host(result.items.data() + begin, source.items() + begin,
                              (end - begin) * sizeof(Item));
  }
  return result;
}

/// n elements of the place, all set to `value`.
template <class T>
memory_of<T> filled(std::size_t n, T value) {
  const std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>> source(n, value);
  memory_of<T> result(test_place(), n);
  test_place().copy_from_host(result.data(), source.data(), n * sizeof(T));
  test_place().synchronize();
  return result;
}

/// EXPECTs that `statement` throws a Type whose message holds every one of the `words`: what, where, what to
/// do.
template <class Type, class F>
void expect_error(const F& statement, std::initializer_list<std::string_view> words) {
  try {
    statement();
  } catch (const Type& caught) {
    const std::string_view message = caught.what();
    EXPECT_EQ(message.find('\n'), message.npos) << "more than one line: " << message;
    for (const std::string_view word : words) {
      EXPECT_NE(message.find(word), message.npos) << "'" << word << "' is not in: " << message;
    }
    return;
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another exception was thrown: " << other.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

/// Damages n elements of a table's memory, which its valid() must notice, and mends them.
template <class Map, class T, class Damage>
void expect_noticed(const char* what, const Map& map, T* memory, std::size_t n, const Damage& damage) {
  SCOPED_TRACE(what);
  const auto write = [&](const std::vector<T>& elements) {
    test_place().copy_from_host(memory, elements.data(), n * sizeof(T));
    test_place().synchronize();
  };
  const auto good = download(std::span<const T>(memory, n));
  auto bad = good;
  damage(bad);
  ASSERT_NE(std::memcmp(good.data(), bad.data(), n * sizeof(T)), 0) << "this test has damaged nothing";
  write(bad);
  EXPECT_FALSE(map.valid(test_place()));
  write(good);
  EXPECT_TRUE(map.valid(test_place()));
}

}  // namespace test
