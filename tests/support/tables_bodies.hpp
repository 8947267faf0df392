// Bodies of support/tables.hpp. A test file that compiles tables includes this and says TEST_..(TEST_DEFINE)
// in namespace test.

#pragma once

#include "support/tables.hpp"

namespace test {

template <class Key, class Value, class Layout>
struct table<Key, Value, Layout>::body {
  using roost_table = std::conditional_t<has_values, roost::frozen_map<Key, Value, place_type, Layout>,
                                         roost::frozen_set<Key, place_type, Layout>>;
  roost_table made;

  static roost_table make(const place_type& place, const std::vector<Key>& keys,
                          const std::vector<Value>& values, const options& options) {
    const auto keys_there = roost::copy_to(place, keys);
    if constexpr (has_values) {
      return roost_table(place, keys_there, roost::copy_to(place, values), options);
    } else {
      return roost_table(place, keys_there, options);
    }
  }
  body(const place_type& place, const std::vector<Key>& keys, const std::vector<Value>& values,
       const options& options)
      : made(make(place, keys, values, options)) {}
};

template <class Key, class Value, class Layout>
table<Key, Value, Layout>::table(const std::vector<Key>& keys, const std::vector<Value>& values,
                                 options options, const place_type& place)
    : body_(std::make_unique<body>(place, keys, values, options)) {}

template <class Key, class Value, class Layout>
table<Key, Value, Layout>::~table() = default;
template <class Key, class Value, class Layout>
table<Key, Value, Layout>::table(table&&) noexcept = default;
template <class Key, class Value, class Layout>
table<Key, Value, Layout>& table<Key, Value, Layout>::operator=(table&&) noexcept = default;

template <class Key, class Value, class Layout>
void table<Key, Value, Layout>::rebuild(const std::vector<Key>& keys, const std::vector<Value>& values,
                                        const place_type& place) {
  const auto keys_there = roost::copy_to(place, keys);
  if constexpr (has_values) {
    body_->made.rebuild(place, keys_there, roost::copy_to(place, values));
  } else {
    body_->made.rebuild(place, keys_there);
  }
}

template <class Key, class Value, class Layout>
void table<Key, Value, Layout>::rebuild_async(const std::vector<Key>& keys, const std::vector<Value>& values,
                                              const place_type& place) {
  const auto keys_there = roost::copy_to(place, keys);
  if constexpr (has_values) {
    body_->made.rebuild_async(place, keys_there, roost::copy_to(place, values));
  } else {
    body_->made.rebuild_async(place, keys_there);
  }
}

template <class Key, class Value, class Layout>
void table<Key, Value, Layout>::finish(const place_type& place) {
  body_->made.finish(place);
}

template <class Key, class Value, class Layout>
std::vector<Value> table<Key, Value, Layout>::find(const std::vector<Key>& queries, Value missing) const {
  const auto result = find(queries, missing, {}, nullptr);
  const auto same = [&](const std::vector<Value>& other) {
    return result.empty() || std::memcmp(result.data(), other.data(), result.size() * sizeof(Value)) == 0;
  };
  if constexpr (has_values) {
    const auto there = contains(queries, {.path = roost::path::direct});
    for (const roost::path path : {roost::path::direct, roost::path::regional}) {
      EXPECT_TRUE(same(find(queries, missing, {.path = path}, nullptr))) << "path " << static_cast<int>(path);
      const auto [values, mask] = find_and_mask(queries, missing, {.path = path});
      EXPECT_TRUE(same(values)) << "with mask, path " << static_cast<int>(path);
      EXPECT_EQ(mask, there) << "path " << static_cast<int>(path);
    }
  }
  return result;
}

template <class Key, class Value, class Layout>
std::vector<Value> table<Key, Value, Layout>::find(const std::vector<Key>& queries, Value missing,
                                                   const roost::bulk_options& how,
                                                   roost::bulk_report* report) const {
  if constexpr (has_values) {
    memory_of<Value> results(test_place(), queries.size());
    const roost::bulk_report told = body_->made.find(test_place(), upload(queries), results, missing, how);
    if (report != nullptr) *report = told;
    return download(results);
  } else {
    return {};
  }
}

template <class Key, class Value, class Layout>
std::pair<std::vector<Value>, std::vector<char>> table<Key, Value, Layout>::find_and_mask(
    const std::vector<Key>& queries, Value missing, const roost::bulk_options& how) const {
  if constexpr (has_values) {
    auto results = filled<Value>(queries.size(), missing);
    memory_of<bool> mask(test_place(), queries.size());
    body_->made.find(test_place(), upload(queries), results, mask, how);
    return {download(results), download(mask)};
  } else {
    return {};
  }
}

template <class Ref, class Key, class Value>
struct find_one {
  Ref ref;
  const Key* queries;
  Value* results;
  Value missing;
  ROOST_FN void operator()(std::size_t i) const {
    if (const auto value = ref.find(queries[i])) {
      results[i] = *value;
    } else {
      results[i] = missing;
    }
  }
};

template <class Key, class Value, class Layout>
std::vector<Value> table<Key, Value, Layout>::find_by_ref(const std::vector<Key>& queries,
                                                          Value missing) const {
  if constexpr (has_values) {
    const auto queries_there = upload(queries);
    memory_of<Value> results(test_place(), queries.size());
    const auto ref = body_->made.ref();
    static_assert(std::is_trivially_copyable_v<decltype(ref)>);
    test_place().for_each(queries.size(), find_one<std::remove_const_t<decltype(ref)>, Key, Value>{
                                              ref, queries_there.data(), results.data(), missing});
    return download(results);
  } else {
    return {};
  }
}

template <class Key, class Value, class Layout>
std::vector<char> table<Key, Value, Layout>::contains(const std::vector<Key>& queries) const {
  const auto result = contains(queries, {});
  for (const roost::path path : {roost::path::direct, roost::path::regional}) {
    EXPECT_EQ(contains(queries, {.path = path}), result) << "path " << static_cast<int>(path);
  }
  return result;
}

template <class Key, class Value, class Layout>
std::vector<char> table<Key, Value, Layout>::contains(const std::vector<Key>& queries,
                                                      const roost::bulk_options& how) const {
  memory_of<bool> results(test_place(), queries.size());
  body_->made.contains(test_place(), upload(queries), results, how);
  return download(results);
}

template <class Ref, class Key>
struct contains_one {
  Ref ref;
  const Key* queries;
  bool* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = ref.contains(queries[i]); }
};

template <class Key, class Value, class Layout>
std::vector<char> table<Key, Value, Layout>::contains_by_ref(const std::vector<Key>& queries) const {
  const auto queries_there = upload(queries);
  memory_of<bool> results(test_place(), queries.size());
  const auto ref = body_->made.ref();
  test_place().for_each(queries.size(), contains_one<std::remove_const_t<decltype(ref)>, Key>{
                                            ref, queries_there.data(), results.data()});
  return download(results);
}

template <class Key, class Value, class Layout>
std::size_t table<Key, Value, Layout>::count_found(const std::vector<Key>& queries) const {
  return body_->made.count_found(test_place(), upload(queries));
}

template <class Key, class Value, class Layout>
std::size_t table<Key, Value, Layout>::retrieve_all(std::vector<Key>& keys,
                                                    std::vector<Value>& values) const {
  memory_of<Key> keys_there(test_place(), size());
  std::size_t n = 0;
  if constexpr (has_values) {
    memory_of<Value> values_there(test_place(), size());
    n = body_->made.retrieve_all(test_place(), keys_there, values_there);
    values = download(values_there);
  } else {
    n = body_->made.retrieve_all(test_place(), keys_there);
    values.assign(size(), {});
  }
  keys = download(keys_there);
  return n;
}

struct add_fingerprint {
  std::uint64_t* count_and_sum;

  template <class Key>
  ROOST_FN void operator()(const Key& key) const {
    (*this)(key, roost::none{});
  }
  template <class Key, class Value>
  ROOST_FN void operator()(const Key& key, const Value& value) const {
    roost::detail::fetch_add(count_and_sum[0], std::uint64_t{1});
    roost::detail::fetch_add(count_and_sum[1], fingerprint(key, value));
  }
};

template <class Key, class Value, class Layout>
std::pair<std::uint64_t, std::uint64_t> table<Key, Value, Layout>::sum_by_for_each() const {
  const auto sums = filled<std::uint64_t>(2, 0);
  body_->made.for_each(test_place(), add_fingerprint{const_cast<std::uint64_t*>(sums.data())});
  const auto result = download(sums);
  return {result[0], result[1]};
}

template <class Key, class Value, class Layout>
std::vector<std::pair<Key, Value>> table<Key, Value, Layout>::iterate() const {
  std::vector<std::pair<Key, Value>> result;
  if constexpr (on_host && has_values) {
    for (const auto& [key, value] : body_->made) result.emplace_back(key, value);
  }
  return result;
}

template <class Key, class Value, class Layout>
const roost::frozen_statistics& table<Key, Value, Layout>::statistics() const {
  return body_->made.statistics();
}
template <class Key, class Value, class Layout>
std::size_t table<Key, Value, Layout>::size() const {
  return body_->made.size();
}
template <class Key, class Value, class Layout>
bool table<Key, Value, Layout>::empty() const {
  return body_->made.empty();
}
template <class Key, class Value, class Layout>
std::size_t table<Key, Value, Layout>::capacity() const {
  return body_->made.capacity();
}
template <class Key, class Value, class Layout>
std::size_t table<Key, Value, Layout>::bytes() const {
  return body_->made.bytes();
}
template <class Key, class Value, class Layout>
double table<Key, Value, Layout>::load_factor() const {
  return body_->made.load_factor();
}
template <class Key, class Value, class Layout>
double table<Key, Value, Layout>::mean_probes() const {
  return body_->made.mean_probes(test_place());
}
template <class Key, class Value, class Layout>
bool table<Key, Value, Layout>::valid() const {
  return body_->made.valid(test_place());
}

template <class Ref, class Key>
struct probes_of_one {
  Ref ref;
  const Key* queries;
  std::uint32_t* results;
  ROOST_FN void operator()(std::size_t i) const { results[i] = ref.probes_of(queries[i]); }
};

template <class Key, class Value, class Layout>
std::uint32_t table<Key, Value, Layout>::most_probes(const std::vector<Key>& queries) const {
  const auto queries_there = upload(queries);
  memory_of<std::uint32_t> results(test_place(), queries.size());
  const auto ref = body_->made.ref();
  test_place().for_each(queries.size(), probes_of_one<std::remove_const_t<decltype(ref)>, Key>{
                                            ref, queries_there.data(), results.data()});
  std::uint32_t most = 0;
  for (const std::uint32_t probes : download(results)) most = std::max(most, probes);
  return most;
}

/// Queries for a table: each key, its neighbours in bits and value, and as many numbers at random.
template <class Key>
std::vector<Key> queries_for(const std::vector<Key>& keys) {
  std::vector<Key> queries = keys;
  std::mt19937_64 random(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Key near = keys[i];
    auto* const bytes = reinterpret_cast<unsigned char*>(&near);
    bytes[random() % sizeof(Key)] ^= static_cast<unsigned char>(1u << random() % 8);
    queries.push_back(near);
    queries.push_back(from_number<Key>(random()));
  }
  for (const std::uint64_t edge : {0ull, 1ull, 2ull, ~0ull, ~1ull, 0x80000000ull, 0xffffffffull})
    queries.push_back(from_number<Key>(edge));
  queries.push_back(all_ones<Key>());
  std::shuffle(queries.begin(), queries.end(), random);
  return queries;
}

template <class Table>
roost::frozen_statistics check(const std::vector<typename Table::key_type>& keys,
                               const std::vector<typename Table::mapped_type>& values,
                               typename Table::options options) {
  using key = typename Table::key_type;
  using value = typename Table::mapped_type;
  SCOPED_TRACE("n = " + std::to_string(keys.size()) + ", load factor " + std::to_string(options.load_factor));

  oracle_map<key, value> oracle;
  for (std::size_t i = 0; i < keys.size(); ++i) oracle.emplace(keys[i], values[i]);

  const Table table(keys, values, options);
  EXPECT_EQ(table.size(), oracle.size());
  EXPECT_EQ(table.empty(), oracle.empty());
  EXPECT_EQ(table.statistics().size, oracle.size());
  EXPECT_EQ(table.statistics().duplicates, keys.size() - oracle.size());
  EXPECT_GE(table.capacity(), table.size());

  const std::vector<key> queries = queries_for(keys);
  const std::vector<char> there = table.contains(queries), there_by_ref = table.contains_by_ref(queries);
  std::size_t found = 0, wrong = 0, wrong_by_ref = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const bool expected = oracle.count(queries[i]) != 0;
    found += expected;
    wrong += (there[i] != 0) != expected;
    wrong_by_ref += (there_by_ref[i] != 0) != expected;
  }
  EXPECT_EQ(wrong, 0u) << "answers of contains, of " << queries.size();
  EXPECT_EQ(wrong_by_ref, 0u) << "answers of ref().contains, of " << queries.size();
  EXPECT_EQ(table.count_found(queries), found);

  if constexpr (Table::has_values) {
    // Two values for `missing`: no found value can be mistaken for both.
    for (const value missing : {from_number<value>(0), all_ones<value>()}) {
      const std::vector<value> results = table.find(queries, missing),
                               by_ref = table.find_by_ref(queries, missing);
      std::size_t wrong_values = 0, wrong_values_by_ref = 0;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto known = oracle.find(queries[i]);
        const value expected = known == oracle.end() ? missing : known->second;
        wrong_values += !(results[i] == expected);
        wrong_values_by_ref += !(by_ref[i] == expected);
      }
      EXPECT_EQ(wrong_values, 0u) << "answers of find, of " << queries.size();
      EXPECT_EQ(wrong_values_by_ref, 0u) << "answers of ref().find, of " << queries.size();
    }
  }

  std::vector<key> all_keys;
  std::vector<value> all_values;
  EXPECT_EQ(table.retrieve_all(all_keys, all_values), oracle.size());
  oracle_set<key> seen;
  std::size_t strangers = 0;
  for (std::size_t i = 0; i < all_keys.size(); ++i) {
    const auto known = oracle.find(all_keys[i]);
    strangers += known == oracle.end() || !(known->second == all_values[i]);
    seen.insert(all_keys[i]);
  }
  EXPECT_EQ(strangers, 0u) << "pairs of retrieve_all that are not in the input";
  EXPECT_EQ(seen.size(), oracle.size()) << "different keys of retrieve_all";

  std::uint64_t sum = 0;
  for (const auto& [k, v] : oracle) sum += fingerprint(k, v);
  EXPECT_EQ(table.sum_by_for_each(), std::make_pair(std::uint64_t{oracle.size()}, sum))
      << "pairs of for_each";

  if constexpr (on_host && Table::has_values) {
    const auto pairs = table.iterate();
    EXPECT_EQ(pairs.size(), oracle.size());
    std::uint64_t sum_of_pairs = 0;
    for (const auto& [k, v] : pairs) sum_of_pairs += fingerprint(k, v);
    EXPECT_EQ(sum_of_pairs, sum) << "pairs of begin() to end()";
  }

  EXPECT_TRUE(table.valid());
  return table.statistics();
}

}  // namespace test
