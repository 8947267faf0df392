#include <roost/sparse/coordinate_index.hpp>

#include "support/voxels.hpp"

// coordinate_index against a std::map.

namespace test {
namespace {

using roost::coordinate;
using roost::order;
using roost::representation;

constexpr i32 lowest = std::numeric_limits<i32>::min(), highest = std::numeric_limits<i32>::max();

template <class Ref, int D>
struct there_and_back {
  Ref ref;
  const coordinate<D>* queries;
  u32* wrong;
  ROOST_FN void operator()(std::size_t i) const {
    const auto row = ref.find(queries[i]);
    const bool good = ref.contains(queries[i]) == row.has_value() &&
                      (!row || (*row < ref.size() && ref.coordinate_at(*row) == queries[i]));
    if (!good) roost::detail::fetch_add(*wrong, 1u);
  }
};

template <int D>
struct mark_row {
  const coordinate<D>* coordinates;
  u32* seen;
  ROOST_FN void operator()(const coordinate<D>& c, u32 row) const {
    if (c == coordinates[row]) roost::detail::fetch_add(seen[row], 1u);
  }
};

/// All that an index says, compared with the oracle.
template <int D>
void check_index(const index_of<D>& index, const voxels<D>& input, order row_order) {
  const auto& place = test_place();
  const row_oracle<D> oracle(input);
  ASSERT_EQ(index.size(), oracle.coordinates.size());
  EXPECT_EQ(index.duplicates(), input.size() - index.size());
  EXPECT_EQ(index.empty(), input.empty());
  EXPECT_TRUE(index.valid(place));
  const voxels<D> rows = download(index.coordinates());
  EXPECT_TRUE(rows == (row_order == order::block ? along_curve(input) : oracle.coordinates));
  const std::vector<u32> rows_of_input = download(index.rows_of_input());
  ASSERT_EQ(rows_of_input.size(), input.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < input.size(); ++i)
    wrong += rows_of_input[i] >= rows.size() || !(rows[rows_of_input[i]] == input[i]);
  EXPECT_EQ(wrong, 0u);

  voxels<D> queries = input;  // and all that is next to some: absent ones, and places across the borders
  for (std::size_t i = 0; i < std::min<std::size_t>(input.size(), 2000); ++i) {
    for (int a = 0; a <= D; ++a) {
      for (const u32 step : {1u, ~0u, 4u, 16u}) {
        coordinate<D> c = input[i];
        i32& x = a == D ? c.batch : c.at[a];
        x = static_cast<i32>(static_cast<u32>(x) + step);
        queries.push_back(c);
      }
    }
  }
  for (const i32 x : {0, -1, lowest, highest}) {
    coordinate<D> c{x, {}};
    queries.push_back(c);
    for (int a = 0; a < D; ++a) c.at[a] = x;
    queries.push_back(c);
  }
  const auto asked = upload(queries);
  auto results = filled<u32>(queries.size() + 1, 5);
  auto contained = filled<bool>(queries.size(), false);
  index.find(place, asked, results);
  index.contains(place, asked, contained);
  const auto found = download(results);
  const auto there = download(contained);
  std::size_t present = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const bool here = oracle.find(queries[i]) != roost::no_row<u32>;
    present += here ? 1 : 0;
    wrong += (there[i] != 0) != here || (here ? found[i] >= rows.size() || !(rows[found[i]] == queries[i])
                                              : found[i] != index_of<D>::no_row);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(found.back(), 5u);
  EXPECT_EQ(index.count_found(place, asked), present);
  auto bad = filled<u32>(1, 0);
  place.for_each(queries.size(),
                 there_and_back<typename index_of<D>::ref_type, D>{index.ref(), asked.data(), bad.data()});
  EXPECT_EQ(download(bad)[0], 0u);
  auto seen = filled<u32>(rows.size(), 0);
  index.for_each(place, mark_row<D>{index.coordinates().data(), seen.data()});
  EXPECT_EQ(download(seen), std::vector<u32>(rows.size(), 1));

  if (input.empty()) {
    EXPECT_GT(index.bounds().least.batch, index.bounds().greatest.batch);
    return;
  }
  auto least = numbers_of(input[0]), greatest = least;
  for (const auto& c : input) {
    const auto n = numbers_of(c);
    for (std::size_t a = 0; a <= D; ++a) {
      least[a] = std::min(least[a], n[a]);
      greatest[a] = std::max(greatest[a], n[a]);
    }
  }
  EXPECT_TRUE(numbers_of(index.bounds().least) == least && numbers_of(index.bounds().greatest) == greatest);
}

template <int D>
void check(const voxels<D>& input,
           std::initializer_list<representation> kinds = {representation::automatic, representation::blocks,
                                                          representation::points}) {
  for (const order row_order : {order::block, order::input}) {
    for (const representation kind : kinds) {
      const index_of<D> index(test_place(), upload(input), {.order = row_order, .representation = kind});
      if (kind != representation::automatic) {
        EXPECT_EQ(index.statistics().representation, kind);
      }
      check_index(index, input, row_order);
    }
  }
}

template <class Axes>
class coordinate_index : public testing::Test {};
template <int D>
using axes = std::integral_constant<int, D>;
using all_axes = axis<axes<3>, axes<2>, axes<4>>;
TYPED_TEST_SUITE(coordinate_index, all_axes);

const std::size_t some = sanitized ? 2000 : 6000;  // more than a team's

TYPED_TEST(coordinate_index, of_any_number_of_voxels) {
  constexpr int d = TypeParam::value;
  for (const std::size_t n : {0, 1, 2, 63, 64, 65, 1023, 1025, 4097}) check(random_voxels<d>(n, n, 12));
}

TYPED_TEST(coordinate_index, of_boxes_shells_and_stripes) {
  constexpr int d = TypeParam::value;
  check(random_voxels<d>(some, 1, 20, -10, 3));                         // many come several times
  check(random_voxels<d>(some, 2, 1 << 15, -1000));                     // hardly two in a block
  check(random_voxels<d>(some, 3, d == 2 ? 64 : d == 3 ? 16 : 8, 32));  // one superblock
  check(shell<d>(d == 2 ? 300 : d == 3 ? 12 : 5, -3, -7));
  check(stripes<d>(some, 4));
}

TYPED_TEST(coordinate_index, of_voxels_of_one_block_or_all_of_different_ones) {
  constexpr int d = TypeParam::value;
  voxels<d> one, different;
  for (i32 i = 0; i < 1000; ++i) {
    coordinate<d> c{5, {}};
    for (int a = 0; a < d; ++a) c.at[a] = -8 + (i >> a & 1);
    one.push_back(c);
    for (int a = 0; a < d; ++a) c.at[a] = (i % 10 + (a == 0 ? 0 : i)) * 8;
    different.push_back(c);
  }
  check(one);
  check(different);
  check(voxels<d>(3000, one[7]));
}

TYPED_TEST(coordinate_index, of_the_ends_of_all_axes) {
  constexpr int d = TypeParam::value;
  for (const i32 end : {lowest, highest}) {
    voxels<d> corner;
    for (i32 i = 0; i < 500; ++i) {
      coordinate<d> c{end, {}};
      for (int a = 0; a < d; ++a) c.at[a] = end - (end > 0 ? 1 : -1) * (i * (a + 3) % 40);
      corner.push_back(c);
    }
    check(corner);
  }
  voxels<d> wide(2);  // of two axes, or one and the batch
  for (int a = 0; a < 2; ++a) wide[0].at[a] = lowest, wide[1].at[a] = highest;
  check(wide, {representation::automatic, representation::blocks});
  wide = voxels<d>(2);
  wide[0].batch = wide[0].at[d - 1] = lowest, wide[1].batch = wide[1].at[d - 1] = highest;
  check(wide, {representation::automatic, representation::blocks});
}

TYPED_TEST(coordinate_index, of_a_box_too_wide_for_a_curve_is_in_order_row_by_row) {
  constexpr int d = TypeParam::value;
  voxels<d> input = random_voxels<d>(300, 6, 2, 0, 1 << 20), expected;  // each in a superblock of its own
  std::mt19937_64 random(1);
  for (auto& c : input) {
    for (int a = 0; a < d; ++a) c.at[a] <<= 12 / d;
    c.at[0] = static_cast<i32>(random() & ~u64{63});
  }
  expected = input;
  std::ranges::sort(expected, {}, [](const auto& c) { return numbers_of(c); });
  const index_of<d> index(test_place(), upload(input));
  EXPECT_TRUE(download(index.coordinates()) == expected);
  EXPECT_TRUE(index.valid(test_place()));
}

TYPED_TEST(coordinate_index, refuses_a_box_that_is_too_wide) {
  constexpr int d = TypeParam::value;
  const auto across = [](int bits_of_batch, int bits) {
    voxels<d> corners(2);
    corners[1].batch = static_cast<i32>((i64{1} << bits_of_batch) - 1);
    for (int a = 0; a < d; ++a) corners[1].at[a] = static_cast<i32>((i64{1} << bits) - 1);
    return corners;
  };
  constexpr int of_axis = 12 / d, rest = 63 % d, most = 63 / d;  // bits of a key
  check(across(rest, std::min(most + of_axis, 31)), {representation::blocks});
  check(across(rest + most, of_axis + most * (d - 1) / d), {representation::blocks});
  const auto refused = [&](const voxels<d>& corners, representation kind,
                           std::initializer_list<std::string_view> words) {
    expect_error<roost::invalid_argument>(
        [&] { index_of<d>(test_place(), upload(corners), {.representation = kind}); }, words);
  };
  voxels<d> all(2);
  all[0].batch = lowest, all[1].batch = highest;
  for (int a = 0; a < d; ++a) all[0].at[a] = lowest, all[1].at[a] = highest;
  for (const auto kind : {representation::automatic, representation::blocks, representation::points})
    refused(all, kind, {"coordinate_index", "(-2147483648; -2147483648, ", "bits", "63", "fewer batches"});
  if (d == 2) return;  // where no axis has so many bits
  refused(across(rest + 1, most + of_axis), representation::automatic, {"64 bits", "63"});
  refused(across(rest, most + of_axis), representation::points,
          {"too wide for points", "another representation"});
}

TYPED_TEST(coordinate_index, has_the_same_rows_however_it_is_made) {
  constexpr int d = TypeParam::value;
  voxels<d> input = random_voxels<d>(some, 5, 30, -15, 2);
  const index_of<d> index(test_place(), upload(input)), again(test_place(), upload(input)),
      other(test_place(), upload(shuffled(input, 1)), {.seed = 7});
  const index_of<d> points(test_place(), upload(shuffled(input, 2)),
                           {.representation = representation::points});
  const voxels<d> rows = download(index.coordinates());
  EXPECT_TRUE(download(again.coordinates()) == rows);
  EXPECT_TRUE(download(other.coordinates()) == rows);
  EXPECT_TRUE(download(points.coordinates()) == rows);
  EXPECT_EQ(download(again.rows_of_input()), download(index.rows_of_input()));
  for (auto& c : input) {  // moved by whole superblocks
    for (int a = 0; a < d; ++a) c.at[a] += 64 * (a - 1);
  }
  const index_of<d> moved(test_place(), upload(input));
  EXPECT_EQ(download(moved.rows_of_input()), download(index.rows_of_input()));
}

TYPED_TEST(coordinate_index, chooses_its_representation) {
  constexpr int d = TypeParam::value;
  const auto chosen = [](const voxels<d>& input) {
    return index_of<d>(test_place(), upload(input)).statistics();
  };
  const auto dense = chosen(random_voxels<d>(some, 1, d == 4 ? 8 : 20));
  EXPECT_EQ(dense.representation, representation::blocks);
  EXPECT_EQ(dense.restarts, 0);
  EXPECT_GT(dense.occupancy(), 2);
  EXPECT_LT(dense.bytes, some * (sizeof(coordinate<d>) + 4 + 6 + 8) + 30000);
  EXPECT_EQ(chosen(random_voxels<d>(some, 1, 1 << 14)).representation, representation::points);
  const voxels<d> wide = random_voxels<d>(some, 1, i64{1} << (d == 2 ? 31 : d == 3 ? 22 : 17), 0, 8);
  const index_of<d> of_wide(test_place(), upload(wide));
  EXPECT_EQ(of_wide.statistics().representation, representation::blocks);  // too wide for points
  check_index(of_wide, wide, order::block);
}

TEST(coordinate_index_calls, without_memory_it_has_no_voxels) {
  index_of<3> index;
  EXPECT_EQ(index.size(), 0u);
  EXPECT_TRUE(index.valid(test_place()));
  EXPECT_TRUE(index.coordinates().empty() && index.rows_of_input().empty());
  const auto queries = upload(voxels<3>(3));
  auto results = filled<u32>(3, 1);
  index.find(test_place(), queries, results, 9);
  EXPECT_EQ(download(results), (std::vector<u32>{9, 9, 9}));
  EXPECT_EQ(index.count_found(test_place(), queries), 0u);
  EXPECT_EQ(index.device_size(), nullptr);
  expect_error<roost::invalid_argument>([&] { index.ref(); }, {"coordinate_index", "no memory", "build"});
  index = index_of<3>(test_place(), queries);
  EXPECT_EQ(index.size(), 1u);
  expect_error<roost::invalid_argument>(
      [&] {
        auto two = filled<u32>(2, 1);
        index.find(test_place(), queries, two);
      },
      {"coordinate_index::find", "room for 2", "3 needed"});
}

struct diagonal {
  ROOST_FN coordinate<3> operator()(std::size_t i) const {
    const auto x = static_cast<i32>(i);
    return {0, {x, -x, x / 2}};
  }
};
template <int D>
struct zero {
  ROOST_FN coordinate<D> operator()(std::size_t) const { return {}; }
};

TEST(coordinate_index_calls, take_computed_coordinates_and_leave_rows_out) {
  const roost::coordinate_index index(
      test_place(), roost::computed(3000, diagonal()),
      roost::coordinate_index<3, place_type>::options{.rows_of_input = false});
  EXPECT_EQ(index.size(), 3000u);
  EXPECT_TRUE(index.rows_of_input().empty());
  EXPECT_TRUE(index.valid(test_place()));
}

TEST(coordinate_index_calls, valid_notices_damage) {
  const voxels<3> dense = random_voxels<3>(500, 1, 9), thin = random_voxels<3>(500, 1, 2000);
  for (const auto& input : {dense, thin}) {
    const index_of<3> index(test_place(), upload(input)),
        by_input(test_place(), upload(input), {.order = order::input});
    for (const auto* const each : {&index, &by_input}) {
      auto* const memory = const_cast<coordinate<3>*>(each->coordinates().data());
      expect_noticed("a coordinate that is not there", *each, memory, each->size(),
                     [](voxels<3>& all) { all[7].at[1] += 3000; });
      expect_noticed("two rows", *each, memory, each->size(),
                     [](voxels<3>& all) { std::swap(all[7], all[8]); });
    }
  }
}

TEST(coordinate_index_calls, valid_notices_rows_in_another_order) {
  using kernel = roost::detail::index_blocks<place_type, 3>;
  using block = roost::detail::block;
  // As many as there is room for; the host knows that there is one superblock.
  constexpr std::size_t blocks = on_host ? 64 : 64 + 2 / 2,
                        words =
                            roost::detail::earlier_teams::words((blocks + kernel::tile - 1) / kernel::tile);
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const index_of<3> index(place, roost::copy_to(place, voxels<3>{{0, {0, 0, 0}}, {0, {4, 0, 0}}}));
    auto* const all = static_cast<block*>(memory.block_of((blocks + (words + 1) / 2) * sizeof(block)));
    ASSERT_NE(all, nullptr);
    auto rows = roost::copy_to_host(place, index.coordinates());
    auto numbers = roost::copy_to_host(place, std::span<const block>(all, 2));
    std::swap(rows[0], rows[1]);
    std::swap(numbers[0].first_row, numbers[1].first_row);
    EXPECT_TRUE(index.valid(place));
    place.copy_from_host(const_cast<coordinate<3>*>(index.coordinates().data()), rows.data(),
                         rows.size() * sizeof(rows[0]));
    place.copy_from_host(all, numbers.data(), numbers.size() * sizeof(block));
    place.synchronize();
    EXPECT_FALSE(index.valid(place));  // though each is found at its row
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

#if !defined(__CUDACC__)
TEST(coordinate_index_calls, iterate) {
  const index_of<2> index(test_place(), voxels<2>{{0, {3, 3}}, {0, {1, 2}}, {0, {3, 3}}});
  std::vector<i32> x;
  for (const auto& c : index) x.push_back(c.at[0]);
  EXPECT_EQ(x, (std::vector<i32>{1, 3}));
}
#endif

TEST(coordinate_index_calls, say_what_memory_they_hold) {
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const auto input = roost::copy_to(place, random_voxels<3>(some, 1, 25)),
               thin = roost::copy_to(place, random_voxels<3>(some, 1, 2000));
    const std::size_t before = memory.live_bytes();
    for (const auto row_order : {order::block, order::input}) {
      const index_of<3> index(place, input, {.order = row_order});
      EXPECT_EQ(index.bytes(), memory.live_bytes() - before);
    }
    const index_of<3> points(place, thin);
    EXPECT_EQ(points.bytes(), memory.live_bytes() - before);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(coordinate_index_calls, without_memory_for_all_of_it_leave_nothing_behind) {
  for (const i64 side : {25, 2000}) {  // blocks and points
    const auto input = upload(random_voxels<3>(some, 1, side));
    expect_refusals([&](const place_type& place) { index_of<3>(place, input, {.order = order::input}); });
  }
}

#if !defined(__CUDACC__)
TEST(coordinate_index_calls, say_what_memory_is_needed_before_it_is_taken) {
  const std::size_t many = std::min<std::size_t>(roost::detail::bytes_of_host() / 16, 0xfffffff0u);
  const roost::host cpu(2);
  if (many == 0xfffffff0u) GTEST_SKIP() << "this machine has memory for all that an index takes";
  expect_error<roost::out_of_memory>(
      [&] { roost::coordinate_index<3>(cpu, roost::computed(many, zero<3>())); }, {"no memory for", "bytes"});
}
#endif

TEST(coordinate_index_calls, refuse_more_coordinates_than_rows_can_number) {
  expect_error<roost::invalid_argument>(
      [&] { roost::coordinate_index(test_place(), roost::computed(0xffffffffu, zero<2>())); },
      {"coordinate_index", "4294967295", "2^32 - 2"});
}

TEST(coordinate_index_calls, begin_again_where_keys_were_chosen_to_collide) {
  const voxels<3> input = crowd(2000);
  ASSERT_EQ(input.size(), 2000u);
  const index_of<3> index(test_place(), upload(input), {.representation = representation::blocks});
  EXPECT_GT(index.statistics().restarts, 2);  // two for more room
  check_index(index, input, order::block);
}

// Without a wait.

TEST(coordinate_index_rebuild, takes_the_place_of_what_was_there) {
  for (const auto row_order : {order::block, order::input}) {
    index_of<3> index(test_place(), {.order = row_order, .capacity = 5000});
    EXPECT_EQ(index.size(), 0u);
    EXPECT_TRUE(index.valid(test_place()));
    for (const std::size_t n : {5000, 0, 1, 1234}) {
      const voxels<3> input = random_voxels<3>(n, n, 20, -10, 2);
      const auto given = upload(input);
      index.rebuild_async(test_place(), given);
      index.finish(test_place());
      check_index(index, input, row_order);
      voxels<3> fewer(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(n / 2));
      const auto count = upload(std::vector<u32>{static_cast<u32>(fewer.size())});
      index.rebuild_async(test_place(), given, count.data());
      index.finish(test_place());
      EXPECT_EQ(index.size(), row_oracle<3>(fewer).coordinates.size());
      EXPECT_EQ(index.statistics().inputs, fewer.size());
      EXPECT_TRUE(index.valid(test_place()));
      const auto rows = download(index.rows_of_input());
      for (std::size_t i = fewer.size(); i < n; ++i) ASSERT_EQ(rows[i], roost::no_row<u32>);
    }
  }
}

TEST(coordinate_index_rebuild, that_is_refused_memory_leaves_an_empty_index) {
  constexpr std::size_t capacity = on_host ? 5000 : 500000;  // enough to sort superblocks
  const auto first = upload(random_voxels<3>(1500, 1, 20)), second = upload(random_voxels<3>(3000, 2, 20));
  for (const auto row_order : {order::block, order::input}) {
    expect_refusals(
        refused::empties,
        [&](const place_type& place) {
          return index_of<3>(place, first, {.order = row_order, .capacity = capacity});
        },
        [&](const place_type& place, index_of<3>& index) {
          index.rebuild_async(place, second);
          index.finish(place);
        },
        [&](const place_type& place, const index_of<3>& index) {
          auto found = filled<u32>(second.size(), 0);
          index.find(place, second, found, ~u32{0});
          auto rows = download(found);
          for (u32& row : rows) ++row;  // 0: absent
          rows.push_back(static_cast<u32>(index.size()));
          EXPECT_TRUE(index.valid(place));
          return rows;
        });
  }
}

TEST(coordinate_index_rebuild, that_does_not_fit_is_empty_and_says_so) {
  const voxels<3> good = random_voxels<3>(3000, 1, 20);
  index_of<3> index(test_place(), upload(good), {.capacity = 3000});
  check_index(index, good, order::block);
  const auto fails = [&](const voxels<3>& input, const auto& expect) {
    const auto given = upload(input);
    index.rebuild_async(test_place(), given);
    auto rows = filled<u32>(input.size(), 1);
    index.find(test_place(), given, rows);  // queued behind it
    EXPECT_EQ(download(rows), std::vector<u32>(input.size(), roost::no_row<u32>));
    expect([&] { index.finish(test_place()); });
    EXPECT_TRUE(index.empty() && index.coordinates().empty());
    EXPECT_TRUE(index.valid(test_place()));
    index.rebuild_async(test_place(), upload(good));
    index.finish(test_place());
    check_index(index, good, order::block);
  };
  fails(random_voxels<3>(3000, 2, 100000), [](const auto& finish) {
    expect_error<roost::build_error>(finish, {"rebuild_async", "superblocks", "capacity of 3000", "more"});
  });
  voxels<3> no_neighbours;  // few superblocks, but blocks with one voxel each
  for (i32 i = 0; i < 3000; ++i)
    no_neighbours.push_back({0, {4 * (i % 16), 4 * (i / 16 % 16), 4 * (i / 256)}});
  fails(no_neighbours, [](const auto& finish) {
    expect_error<roost::build_error>(finish, {"rebuild_async", "3000 blocks", "capacity of 3000", "more"});
  });
  fails({{0, {lowest, lowest, lowest}}, {highest, {highest, highest, highest}}}, [](const auto& finish) {
    expect_error<roost::invalid_argument>(finish, {"rebuild_async", "bits", "fewer batches"});
  });
  expect_error<roost::invalid_argument>([&] { index.rebuild_async(test_place(), upload(voxels<3>(3001))); },
                                        {"rebuild_async", "3001", "3000", "options.capacity"});
  EXPECT_EQ(index.size(), row_oracle<3>(good).coordinates.size());
}

// What goes wrong in the table of the document on submanifold convolution.

TEST(coordinate_index_defects, no_coordinate_and_no_row_is_reserved) {
  // There a key of all ones stands for an empty slot, and a value of all ones for an absent key.
  const voxels<3> input{{-1, {-1, -1, -1}}, {0, {0, 0, 0}}, {-1, {-1, -1, -2}}};
  check(input);
}

TEST(coordinate_index_defects, a_neighbour_beyond_the_border_is_absent) {
  // There (x, y, z) has the number (x * height + y) * depth + z: what is beyond the end of a line is the next
  // line's beginning.
  voxels<3> box;
  for (i32 i = 0; i < 512; ++i) box.push_back({i / 256, {i / 64 % 4, i / 8 % 8, i % 8}});
  const index_of<3> index(test_place(), upload(box));
  const voxels<3> beyond{{0, {0, 0, 8}}, {0, {0, 8, 0}}, {0, {4, 0, 0}}, {0, {1, 0, -1}}, {1, {-1, 7, 7}}};
  EXPECT_EQ(index.count_found(test_place(), upload(beyond)), 0u);
  EXPECT_EQ(index.count_found(test_place(), upload(box)), 512u);
}

TEST(coordinate_index_defects, numbers_beyond_32_and_64_bits_stay_apart) {
  // There the number of a voxel in its box overflows: these would be one in 32 bits, or in 64 with the sides
  // of their box.
  check(
      voxels<3>{{0, {0, 0, 0}}, {0, {1 << 10, 0, 0}}, {0, {0, 1 << 20, 0}}, {0, {1 << 20, 1 << 20, 1 << 20}}},
      {representation::automatic, representation::blocks});
  check(voxels<3>{{1 << 11, {0, 0, 0}}, {0, {1 << 20, 1 << 20, 1 << 20}}, {0, {0, 0, 0}}},
        {representation::automatic, representation::blocks});
}

TEST(coordinate_index_defects, a_full_table_says_so) {
  // There an insertion into a full table never ends.
  index_of<3> index(test_place(), {.capacity = 100});
  index.rebuild_async(test_place(), upload(random_voxels<3>(100, 1, 1 << 20)));
  EXPECT_THROW(index.finish(test_place()), roost::build_error);
  EXPECT_EQ(index.size(), 0u);
}

TEST(coordinate_index_defects, copies_of_a_coordinate_do_not_race) {
  // There the last thread to write gives the row, whichever it is.
  voxels<3> input(sanitized ? 3000 : 20000);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = {0, {static_cast<i32>(i % 7), 0, 0}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const index_of<3> index(test_place(), upload(input), {.order = order::input});
    const auto rows = download(index.rows_of_input());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) wrong += rows[i] != i % 7;
    EXPECT_EQ(wrong, 0u);
  }
}

// A full cube whose corner is at (-half, -half, -half).

struct cube {
  i32 half;
  ROOST_FN coordinate<3> operator()(std::size_t i) const {
    const auto side = static_cast<std::size_t>(2 * half);
    const auto at = [&](std::size_t n) { return static_cast<i32>(n % side) - half; };
    return {0, {at(i / side / side), at(i / side), at(i)}};
  }
};

template <class Ref>
struct count_row {
  Ref ref;
  cube voxel;
  u32* seen;
  ROOST_FN void operator()(std::size_t i) const {
    if (const auto row = ref.find(voxel(i))) roost::detail::fetch_add(seen[*row], 1u);
  }
};
struct not_one {
  const u32* seen;
  ROOST_FN u64 operator()(std::size_t i) const { return seen[i] == 1 ? 0 : 1; }
};

/// All found, none merged.
void check_cube(i32 half) {
  const cube voxel{half};
  const std::size_t n =
      static_cast<std::size_t>(half) * static_cast<std::size_t>(half) * 8 * static_cast<std::size_t>(half);
  const index_of<3> index(test_place(), roost::computed(n, voxel),
                          index_of<3>::options{.rows_of_input = false});
  ASSERT_EQ(index.size(), n);
  memory_of<u32> seen(test_place(), n);
  test_place().fill(seen.data(), 0, seen.bytes());
  test_place().for_each(n, count_row<index_of<3>::ref_type>{index.ref(), voxel, seen.data()});
  EXPECT_EQ(test_place().sum(n, not_one{seen.data()}), 0u);
  EXPECT_TRUE(index.valid(test_place()));
}

TEST(coordinate_index_defects, no_two_voxels_of_the_box_of_200_are_one) { check_cube(sanitized ? 10 : 100); }
#if defined(__CUDACC__)
TEST(coordinate_index_defects, no_two_voxels_of_100_million_are_one_large) { check_cube(232); }

TEST(coordinate_index_cuda, is_captured_and_replayed_on_other_coordinates) {
  constexpr std::size_t n = 20000;
  const place_type& gpu = test_place();
  for (const auto row_order : {order::block, order::input}) {
    index_of<3> index(gpu, {.order = row_order, .capacity = n});
    memory_of<coordinate<3>> given(gpu, n);
    memory_of<u32> found(gpu, n);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(gpu.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    index.rebuild_async(gpu, given);
    index.find(gpu, given, found);
    ASSERT_EQ(cudaStreamEndCapture(gpu.stream(), &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    for (u32 r = 0; r < 4; ++r) {
      const voxels<3> input = random_voxels<3>(n, r, 25 + 5 * r, -20 * static_cast<i64>(r), 3);
      gpu.copy_from_host(given.data(), input.data(), given.bytes());
      ASSERT_EQ(cudaGraphLaunch(ready, gpu.stream()), cudaSuccess);
      index.finish(gpu);
      check_index(index, input, row_order);
      EXPECT_EQ(download(found), download(index.rows_of_input()));
    }
    EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}
#endif

}  // namespace
}  // namespace test
