#pragma once

#include <roost/shards/gpus.hpp>
#include <roost/shards/shards.hpp>

#include "support/keys.hpp"
#include "support/refusals.hpp"

// Shards of the place under test. On cuda they are on all devices in turn, or several on one.

namespace test {

#if defined(__CUDACC__)
using shards_type = roost::gpus;

inline shards_type make_shards(std::size_t count) {
  std::vector<roost::cuda> places;
  for (std::size_t s = 0; s < count; ++s) {
    static std::vector<cudaStream_t> streams;  // of shard 0, 1 ...
    const int device = static_cast<int>(s) % roost::cuda_devices();
    const roost::detail::device_guard guard(device);
    if (streams.size() == s) {
      streams.push_back(nullptr);
      roost::detail::check(cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking),
                           "cudaStreamCreateWithFlags");
    }
    places.emplace_back(streams[s], device == 0 ? &test_memory() : nullptr);
  }
  return shards_type(std::move(places));
}
#else
using shards_type = roost::host_shards;

inline shards_type make_shards(std::size_t count) {
  return shards_type(std::vector<roost::host>(count, test_place()));
}
#endif

/// The same shards for all tests.
inline const shards_type& test_shards(std::size_t count) {
  static std::vector<std::unique_ptr<shards_type>> all(65);
  if (!all[count]) all[count] = std::make_unique<shards_type>(make_shards(count));
  return *all[count];
}

/// Three shards of which number 1 has this memory.
inline shards_type three_shards(watched_memory& memory) {
  const auto& rich = test_shards(3);
#if defined(__CUDACC__)
  return shards_type({rich[0], roost::cuda(test_stream(), &memory), rich[2]});
#else
  return shards_type({rich[0], make_place(memory), rich[2]});
#endif
}

/// A column: a vector for each shard.
template <class T>
using column = std::vector<std::vector<T>>;
template <class T>
using column_of_shards = std::vector<memory_of<T>>;

template <class T>
column_of_shards<T> upload(const shards_type& shards, const column<T>& source) {
  column_of_shards<T> result;
  for (std::size_t s = 0; s < source.size(); ++s) result.push_back(roost::copy_to(shards[s], source[s]));
  return result;
}

/// As many elements as each of a column has, all of them `value`.
template <class T, class Column>
column_of_shards<T> filled_like(const shards_type& shards, const Column& like, T value) {
  using stored = std::conditional_t<std::is_same_v<T, bool>, char, T>;
  column_of_shards<T> result;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const std::vector<stored> source(std::ranges::size(like[s]), value);
    result.emplace_back(shards[s], source.size());
    shards[s].copy_from_host(result.back().data(), source.data(), source.size() * sizeof(T));
    shards[s].synchronize();
  }
  return result;
}

/// All shards' elements, one after the other.
template <class T>
auto flat(const shards_type& shards, const column_of_shards<T>& source) {
  auto result = roost::copy_to_host(shards[0], source[0]);
  for (std::size_t s = 1; s < source.size(); ++s) {
    const auto more = roost::copy_to_host(shards[s], source[s]);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}
template <class T>
std::vector<T> flat(const column<T>& source) {
  std::vector<T> result;
  for (const auto& part : source) result.insert(result.end(), part.begin(), part.end());
  return result;
}

/// Splits a vector into parts of unequal lengths, one for each shard; the second one is empty.
template <class T>
column<T> split(const std::vector<T>& all, std::size_t shards) {
  column<T> result(shards);
  const std::size_t weights = shards * (shards + 1) / 2 - (shards > 1 ? 2 : 0);
  std::size_t first = 0, weight = 0;
  for (std::size_t s = 0; s < shards; ++s) {
    if (s == 1) continue;
    weight += s + 1;
    const std::size_t end = all.size() * weight / weights;
    result[s].assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                     all.begin() + static_cast<std::ptrdiff_t>(end));
    first = end;
  }
  return result;
}

}  // namespace test
