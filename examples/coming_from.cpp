// What others do, and the same with roost: std::unordered_map and its relatives
// (boost::unordered_flat_map and absl::flat_hash_map are used alike), and calls of
// cuCollections and thrust, whose sides are in docs/coming-from.md alone. A place of
// GPUs takes the host's place there.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <roost/sorted_map.hpp>
#include <unordered_map>
#include <vector>

using column = std::vector<std::uint32_t>;

column look_up_std(const column& keys, const column& values, const column& queries) {
  std::unordered_map<std::uint32_t, std::uint32_t> map;
  // A key's first value stays.
  for (std::size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], values[i]);

  column results;
  for (const auto q : queries) {
    const auto found = map.find(q);
    results.push_back(found == map.end() ? 0 : found->second);
  }
  return results;
}

column look_up(const column& keys, const column& values, const column& queries) {
  roost::host cpu;
  roost::frozen_map map(cpu, keys, values);  // a key's first value stays

  column results(queries.size());
  map.find(cpu, queries, results, 0);
  return results;
}

column count_std(const column& keys) {
  std::unordered_map<std::uint32_t, std::uint32_t> counts;
  for (const auto k : keys) ++counts[k];
  counts.erase(9);
  return {counts[3], counts[7], static_cast<std::uint32_t>(counts.size())};
}

column count(const column& keys) {
  roost::host cpu;
  roost::concurrent_map<std::uint32_t, std::uint32_t> counts(cpu);
  const auto one =
      roost::computed(keys.size(), [](std::size_t) { return std::uint32_t{1}; });
  counts.insert_or_apply(cpu, keys, one, roost::plus());  // by all threads at once
  auto ref = counts.ref();
  ref.erase(9);
  return {ref.find(3).value_or(0), ref.find(7).value_or(0),
          static_cast<std::uint32_t>(counts.size(cpu))};
}

column values_of_three_std(const column& keys, const column& values) {
  std::unordered_multimap<std::uint32_t, std::uint32_t> map;
  for (std::size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], values[i]);
  column found;
  const auto [first, last] = map.equal_range(3);
  for (auto pair = first; pair != last; ++pair) found.push_back(pair->second);
  std::sort(found.begin(), found.end());  // they come in no defined order
  return found;
}

column values_of_three(const column& keys, const column& values) {
  roost::host cpu;
  roost::frozen_multimap map(cpu, keys, values);
  const auto found = map.find(3);  // side by side, in input order
  return {found.begin(), found.end()};
}

column distinct_std(const column& keys) {
  column distinct = keys;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

column distinct(const column& keys) {
  roost::host cpu;
  // Without an order it would be faster.
  const auto found = roost::unique(cpu, keys, roost::index_order::by_key);
  return {found.begin(), found.end()};
}

/// cuCollections: static_map, static_set, static_multimap.
template <class Place>
bool as_with_cucollections(const Place& gpu, const column& k, const column& v,
                           const column& q) {
  const auto keys = roost::copy_to(gpu, k), values = roost::copy_to(gpu, v);
  const auto queries = roost::copy_to(gpu, q);
  roost::array<std::uint32_t, Place> results(gpu, queries.size());
  roost::array<bool, Place> there(gpu, queries.size());

  // All pairs are known before the first lookup: no capacity, no reserved key, no
  // reserved value.
  const roost::frozen_map map(gpu, keys, values);
  map.find(gpu, queries, results, ~0u);
  map.contains(gpu, queries, there);
  bool right = roost::copy_to_host(gpu, results) == column{90, ~0u, 30} &&
               roost::copy_to_host(gpu, there) == std::vector<char>{1, 0, 1};

  // Pairs come and go.
  roost::concurrent_map<std::uint32_t, std::uint32_t, Place> live(gpu);
  live.insert(gpu, keys, values);
  live.insert_or_apply(gpu, keys, values, roost::plus());
  live.erase(gpu, queries);
  roost::array<std::uint32_t, Place> left(gpu, keys.size());
  live.find(gpu, keys, left, 0);
  right = right && roost::copy_to_host(gpu, left) == column{140, 0, 0, 0};

  // All values of each query.
  const roost::frozen_multimap all(gpu, keys, values);
  const auto found = all.match(gpu, queries);
  roost::array<std::uint32_t, Place> of_all(gpu, found.size());
  found.retrieve(gpu, of_all);
  return right && roost::copy_to_host(gpu, of_all) == column{90, 30, 31};
}

/// thrust: sort, and what goes with it.
template <class Place>
bool as_with_thrust(const Place& gpu, const column& k, const column& v) {
  const auto keys = roost::copy_to(gpu, k), values = roost::copy_to(gpu, v);

  const auto sums = roost::group_by(gpu, keys, values, roost::plus());
  const auto distinct = roost::unique(gpu, keys);  // in order of first occurrence
  const auto rows = roost::unique_inverse(gpu, keys);
  const roost::sorted_map ordered(gpu, keys, values);  // for order: CUB's radix sort

  std::uint32_t total = 0;
  for (const auto sum : roost::copy_to_host(gpu, sums.values)) total += sum;
  return total == 221 && roost::copy_to_host(gpu, distinct) == column{7, 3, 9} &&
         roost::copy_to_host(gpu, rows.inverse) == column{0, 1, 2, 1} &&
         ordered.size() == 3;
}

int main() {
  const column keys{7, 3, 9, 3}, values{70, 30, 90, 31}, queries{9, 8, 3};
  const bool right =
      look_up_std(keys, values, queries) == look_up(keys, values, queries) &&
      look_up(keys, values, queries) == column{90, 0, 30} &&
      count_std(keys) == count(keys) && count(keys) == column{2, 1, 2} &&
      values_of_three_std(keys, values) == values_of_three(keys, values) &&
      values_of_three(keys, values) == column{30, 31} &&
      distinct_std(keys) == distinct(keys) && distinct(keys) == column{3, 7, 9} &&
      as_with_cucollections(roost::host(), keys, values, queries) &&
      as_with_thrust(roost::host(), keys, values);
  std::puts(right ? "coming_from: right" : "coming_from: wrong answers");
  return right ? 0 : 1;
}
