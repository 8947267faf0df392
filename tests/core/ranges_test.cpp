#include <deque>

#include "support/keys.hpp"
#include "support/place.hpp"

#if defined(__CUDACC__)
#include <thrust/device_vector.h>
#endif

// Ranges that users bring: keys, values, queries and results in any memory of the place.

namespace test {
namespace {

#if defined(__CUDACC__)
template <class T>
using vector_of_the_place = thrust::device_vector<T>;
#else
/// What thrust::device_vector looks like: its data() wraps a pointer.
template <class T>
class vector_of_the_place {
 public:
  struct pointer {
    T* raw;
    T* get() const { return raw; }
  };
  struct const_pointer {
    const T* raw;
    const T* get() const { return raw; }
  };

  vector_of_the_place(std::size_t n) : memory_(n) {}
  vector_of_the_place(const std::vector<T>& source) : memory_(source) {}
  pointer data() { return {memory_.data()}; }
  const_pointer data() const { return {memory_.data()}; }
  std::size_t size() const { return memory_.size(); }

 private:
  std::vector<T> memory_;
};
#endif

template <class T>
std::span<const T> span_of(const vector_of_the_place<T>& v) {
  return {v.data().get(), v.size()};
}

TEST(ranges, that_wrap_their_pointers) {
  const std::vector<u32> keys{1, 2, 3, 4}, values{10, 20, 30, 40}, queries{4, 9, 1};
  const vector_of_the_place<u32> key_vector(keys), value_vector(values), query_vector(queries);
  const roost::frozen_map map(test_place(), key_vector, value_vector);
  static_assert(std::is_same_v<std::remove_const_t<decltype(map)>, roost::frozen_map<u32, u32, place_type>>);
  vector_of_the_place<u32> results(queries.size());
  map.find(test_place(), query_vector, results, 7u);
  EXPECT_EQ(download(span_of(results)), (std::vector<u32>{40, 7, 10}));

  roost::concurrent_map<u32, u32, place_type> changing(test_place(), 100);
  EXPECT_EQ(changing.insert(test_place(), key_vector, value_vector).inserted, keys.size());
  changing.find(test_place(), query_vector, results, 8u);
  EXPECT_EQ(download(span_of(results)), (std::vector<u32>{40, 8, 10}));
  EXPECT_EQ(changing.erase(test_place(), query_vector), 2u);
  EXPECT_TRUE(changing.valid(test_place()));
  EXPECT_TRUE(map.valid(test_place()));
}

TEST(ranges, spans_of_pointers) {
  const auto keys = upload(std::vector<u32>{5, 6});
  const u32* const pointer = keys.data();
  const roost::frozen_set set(test_place(), std::span(pointer, keys.size()));
  EXPECT_EQ(set.count_found(test_place(), std::span(pointer, 1)), 1u);
  EXPECT_EQ(set.size(), 2u);
  EXPECT_TRUE(set.valid(test_place()));
}

#if !defined(__CUDACC__)
/// Elements that are no bools or lie in no array: std::vector<bool> and its iterators, deques, constants.
TEST(ranges, of_proxies) {
  const auto& place = test_place();
  std::vector<bool> flags(4000);
  for (std::size_t i = 0; i < flags.size(); i += 3) flags[i] = true;
  const std::ranges::subrange proxies(flags.begin(), flags.end());
  const std::vector<char> expected{1, 0};
  EXPECT_EQ(download(roost::unique(place, flags)), expected);
  EXPECT_EQ(download(roost::unique(place, proxies)), expected);
  EXPECT_EQ(download(roost::copy_to(place, proxies)), std::vector<char>(flags.begin(), flags.end()));
  const auto counts = roost::group_by(place, proxies, flags, roost::bit_or());
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_EQ(roost::semi_join(place, proxies, std::vector<bool>{true}).size(), 1334u);
  const roost::frozen_map map(place, proxies, flags);
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.count_found(place, flags), flags.size());
  const std::vector<u32> keys{7, 8, 7};
  const roost::frozen_multimap multimap(place, std::span<const u32>(keys), std::deque<u32>{1, 2, 3});
  EXPECT_EQ(download(multimap.retrieve(place, std::deque<u32>{7}).values), (std::vector<u32>{1, 3}));
}
#endif

}  // namespace
}  // namespace test
