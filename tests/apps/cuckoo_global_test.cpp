#include "papers/cuckoo_global.hpp"

#include "support/keys.hpp"
#include "support/place.hpp"

// The table that Stadium hashing is compared with: cuckoo with four functions in one table.

namespace test {
namespace {

using table = roost::bench::cuckoo_global<place_type>;

struct insert_pairs {
  table::ref_type to;
  const u32* keys;
  ROOST_FN u64 operator()(std::size_t i) const {
    return to.insert_new(keys[i], keys[i] ^ 0x5a5a5a5au) ? 0 : 1;
  }
};
struct count_right {
  table::ref_type in;
  const u32* keys;
  u64 there;
  ROOST_FN u64 operator()(std::size_t i) const {
    const auto value = in.find(keys[i]);
    return i < there ? value && *value == (keys[i] ^ 0x5a5a5a5au) : !value;
  }
};

TEST(cuckoo_global, finds_what_was_inserted_and_nothing_else) {
  const auto& place = test_place();
  for (const std::size_t n : {0, 1, 5, 1000, 100000}) {
    const auto there = upload(from_numbers<u32>(different_numbers(2 * n, n)));
    table cuckoo(place, static_cast<u32>(n * 5 / 4 + 8),
                 n % 2 == 0 ? roost::residence::place : roost::residence::host, n);
    EXPECT_EQ(place.sum(n, insert_pairs{cuckoo.ref(), there.data()}), 0u) << "pairs without a slot";
    EXPECT_EQ(place.sum(2 * n, count_right{cuckoo.ref(), there.data(), n}), 2 * n);
    cuckoo.clear(place);
    EXPECT_EQ(place.sum(2 * n, count_right{cuckoo.ref(), there.data(), 0}), 2 * n)
        << "keys of a table that was cleared";
  }
}

TEST(cuckoo_global, says_how_many_pairs_found_no_slot) {
  const auto& place = test_place();
  const auto keys = upload(from_numbers<u32>(different_numbers(3000, 1)));
  table cuckoo(place, 2000);
  const u64 left = place.sum(3000, insert_pairs{cuckoo.ref(), keys.data()});
  EXPECT_GE(left, 1000u);
  u64 found = place.sum(3000, count_right{cuckoo.ref(), keys.data(), 3000});
  EXPECT_EQ(found + left, 3000u);
}

}  // namespace
}  // namespace test
