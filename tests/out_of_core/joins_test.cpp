#include "support/out_of_core.hpp"

// Joins of columns in host memory against the same calls for columns in memory of the place.

namespace test {
namespace {

struct join_calls {
  template <class Key>
  static results in_memory(const columns<Key>& all) {
    const auto& place = test_place();
    const auto left = upload(all.left), right = upload(all.right);
    results made;
    const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
    const auto inner = roost::inner_join(place, left, right);
    add("inner_join", bits_of(download(inner.left), download(inner.right)));
    const auto outer = roost::left_join<u64>(place, left, right);
    add("left_join", bits_of(download(outer.left), download(outer.right)));
    const auto semi = download(roost::semi_join<u64>(place, left, right));
    add("semi_join", bits_of(semi));
    add("anti_join", bits_of(download(roost::anti_join(place, left, right))));
    std::vector<char> there(all.left.size());
    for (const u64 row : semi) there[row] = 1;
    add("isin", bits_of(there));
    return made;
  }

  template <class Key>
  static results through(const place_out_of_core& place, const columns<Key>& all) {
    results made;
    const auto add = [&](const char* name, const std::string& bits) { made.emplace_back(name, bits); };
    const auto inner = roost::inner_join(place, all.left, all.right);
    add("inner_join", bits_of(inner.left, inner.right));
    const auto outer = roost::left_join<u64>(place, all.left, all.right);
    add("left_join", bits_of(outer.left, outer.right));
    add("semi_join", bits_of(roost::semi_join<u64>(place, all.left, all.right)));
    add("anti_join", bits_of(roost::anti_join(place, all.left, all.right)));
    add("isin", bits_of(roost::isin(place, all.left, all.right)));
    return made;
  }
};

template <class Key>
class out_of_core_joins : public testing::Test {};
using keys = axis<u64, u32, sixteen>;
TYPED_TEST_SUITE(out_of_core_joins, keys);

TYPED_TEST(out_of_core_joins, any_length) { check_any_length<join_calls, TypeParam>(); }
TYPED_TEST(out_of_core_joins, different_keys) { check_different_keys<join_calls, TypeParam>(); }
TYPED_TEST(out_of_core_joins, skewed_keys) { check_skewed_keys<join_calls, TypeParam>(); }
TYPED_TEST(out_of_core_joins, one_key) { check_one_key<join_calls, TypeParam>(); }
TYPED_TEST(out_of_core_joins, crafted_keys) { check_crafted_keys<join_calls, TypeParam>(); }
TYPED_TEST(out_of_core_joins, random_columns) { check_random_columns<join_calls, TypeParam>(); }

// A left row has more matches than the device has room for those of all rows.
TYPED_TEST(out_of_core_joins, pairs_that_do_not_fit) {
  check<join_calls>(columns_of(std::vector<TypeParam>(1500, from_number<TypeParam>(7)),
                               std::vector<TypeParam>(1000, from_number<TypeParam>(7))));
}

}  // namespace
}  // namespace test
