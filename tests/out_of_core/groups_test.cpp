#include "support/out_of_core.hpp"

// Groups and distinct keys of columns in host memory against the same calls for columns in memory of the
// place.

namespace test {
namespace {

const std::tuple several{roost::plus(), roost::maximum(), roost::bit_xor()};
const std::tuple ends_of_weights{roost::minimum(), roost::plus()};

/// Groups in the order of the first rows of their keys.
template <class Key, class... Columns>
std::string by_first_row(const std::vector<Key>& keys, const std::vector<Key>& of_groups,
                         const Columns&... columns) {
  oracle_map<Key, std::size_t> first;
  for (std::size_t i = 0; i < keys.size(); ++i) first.emplace(keys[i], i);
  std::vector<std::size_t> order(of_groups.size());
  for (std::size_t g = 0; g < order.size(); ++g) order[g] = g;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return first.at(of_groups[a]) < first.at(of_groups[b]); });
  const auto in_order = [&](auto column) {
    auto sorted = column;
    for (std::size_t g = 0; g < order.size(); ++g) sorted[g] = column[order[g]];
    return sorted;
  };
  return bits_of(in_order(of_groups), in_order(columns)...);
}

struct group_calls {
  template <class Key>
  static results in_memory(const columns<Key>& all) {
    const auto& place = test_place();
    const auto left = upload(all.left);
    const auto weights = upload(all.weights);
    const auto counts = upload(all.counts);
    results made;
    const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
    const auto unique = roost::unique_all(place, left, {.first = true, .inverse = true, .counts = true});
    add("unique_all", bits_of(download(unique.keys), download(unique.first), download(unique.inverse),
                              download(unique.counts)));
    if constexpr (roost::detail::is_integer<Key>) {
      const auto ascending = roost::unique_all(
          place, left, {.order = roost::index_order::by_key, .first = true, .inverse = true, .counts = true});
      add("unique_all by_key", bits_of(download(ascending.keys), download(ascending.first),
                                       download(ascending.inverse), download(ascending.counts)));
    }
    const auto sums = roost::group_by(place, left, weights, roost::plus());
    add("group_by",
        by_first_row(all.left, download(sums.keys), download(sums.values), download(sums.counts)));
    const auto both = roost::group_by(place, left, weights, ends_of_weights);
    add("group_by of two", by_first_row(all.left, download(both.keys), download(both.values[0]),
                                        download(both.values[1]), download(both.counts)));
    const auto three = roost::group_by(place, left, counts, several);
    add("group_by of integers",
        by_first_row(all.left, download(three.keys), download(three.values[0]), download(three.values[1]),
                     download(three.values[2]), download(three.counts)));
    const auto means = roost::group_means(place, left, counts, {.counts = false});
    add("group_means", by_first_row(all.left, download(means.keys), download(means.values)));
    return made;
  }

  template <class Key>
  static results through(const place_out_of_core& place, const columns<Key>& all) {
    results made;
    const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
    const auto unique = roost::unique_all(place, all.left, {.first = true, .inverse = true, .counts = true});
    add("unique_all", bits_of(unique.keys, unique.first, unique.inverse, unique.counts));
    if constexpr (roost::detail::is_integer<Key>) {
      const auto ascending = roost::unique_all(
          place, all.left,
          {.order = roost::index_order::by_key, .first = true, .inverse = true, .counts = true});
      add("unique_all by_key", bits_of(ascending.keys, ascending.first, ascending.inverse, ascending.counts));
    }
    const auto sums = roost::group_by(place, all.left, all.weights, roost::plus());
    add("group_by", bits_of(sums.keys, sums.values, sums.counts));
    const auto both = roost::group_by(place, all.left, all.weights, ends_of_weights);
    add("group_by of two", bits_of(both.keys, both.values[0], both.values[1], both.counts));
    const auto three = roost::group_by(place, all.left, all.counts, several);
    add("group_by of integers",
        bits_of(three.keys, three.values[0], three.values[1], three.values[2], three.counts));
    const auto means = roost::group_means(place, all.left, all.counts, {.counts = false});
    EXPECT_EQ(means.counts.size(), 0u);
    add("group_means", bits_of(means.keys, means.values));
    return made;
  }
};

template <class Key>
class out_of_core_groups : public testing::Test {};
using keys = axis<u64, u32, sixteen>;
TYPED_TEST_SUITE(out_of_core_groups, keys);

TYPED_TEST(out_of_core_groups, any_length) { check_any_length<group_calls, TypeParam>(); }
TYPED_TEST(out_of_core_groups, different_keys) { check_different_keys<group_calls, TypeParam>(); }
TYPED_TEST(out_of_core_groups, skewed_keys) { check_skewed_keys<group_calls, TypeParam>(); }
TYPED_TEST(out_of_core_groups, one_key) { check_one_key<group_calls, TypeParam>(); }
TYPED_TEST(out_of_core_groups, crafted_keys) { check_crafted_keys<group_calls, TypeParam>(); }
TYPED_TEST(out_of_core_groups, random_columns) { check_random_columns<group_calls, TypeParam>(); }

// Groups of the first pieces stay on the device until there are too many.
TYPED_TEST(out_of_core_groups, few_keys_before_many) {
  auto numbers = random_numbers(many(60000), 1, 10);
  for (const u64 number : different_numbers(many(60000), 2)) numbers.push_back(number);
  for (const u64 number : random_numbers(many(60000), 3, 10)) numbers.push_back(number);
  check<group_calls>(columns_of(from_numbers<TypeParam>(numbers), std::vector<TypeParam>()));
}

}  // namespace
}  // namespace test
