#include <filesystem>
#include <roost/stadium/stadium_file.hpp>

#include "support/kinds.hpp"
#include "support/stadium.hpp"

// Keys of every kind, and values that must lie at multiples of 64 bytes, in maps that lie in two memories and
// in files.

namespace test {
namespace {

template <class Key>
class stadium_kinds : public testing::Test {};
TYPED_TEST_SUITE(stadium_kinds, every_kind<day_axis>);

TYPED_TEST(stadium_kinds, of_a_map_and_its_file) {
  using key = TypeParam;
  using value = aligned_64;
  using map_type = roost::stadium_map<key, value, place_type>;
  for (const std::size_t n : sizes_of_kinds()) {
    const some_keys<key> keys(n);
    const auto there = upload_kinds<key>(keys.all);
    check_concurrent<map_type, key, value>(keys, there);
    map_type map(test_place(), keys.distinct.size(), {.budget = keys.distinct.size() * 64});
    const numbers rows = multiples(keys.distinct.size(), 2);
    map.insert(test_place(), upload_kinds<key>(keys.distinct), upload_kinds<value>(rows));
    const auto file = std::filesystem::temp_directory_path() / ("roost_kinds_" + std::to_string(getpid()));
    roost::save(test_place(), map, file);
    const auto loaded = roost::load_stadium_map<key, value>(test_place(), file);
    std::filesystem::remove(file);
    check_map<map_type, key, value>(loaded, keys, rows);
  }
}

}  // namespace
}  // namespace test
