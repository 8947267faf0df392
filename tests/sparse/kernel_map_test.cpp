#include <roost/sparse/kernel_map.hpp>
#include <set>

#include "apps/measure/clouds.hpp"
#include "support/voxels.hpp"

// Kernel maps against loops over a std::map.

namespace test {
namespace {

using roost::coordinate;
using roost::kernel_map_options;
using roost::kernel_shape;
using roost::output_voxels;
using roost::representation;

constexpr u32 no_row = roost::no_row<u32>;

template <int D>
using map_of = roost::kernel_map<D, place_type>;
template <int D>
using place_of_voxel = std::array<i64, D + 1>;
template <int D>
using position_of = std::type_identity_t<std::array<int, D>>;

i64 floor_div(i64 a, i64 b) { return (a - (a % b + b) % b) / b; }

/// The positions k of all offsets, the last axis fastest.
template <int D>
std::vector<std::array<int, D>> offsets_of(const kernel_shape<D>& shape) {
  std::vector<std::array<int, D>> result(1);
  for (std::size_t a = 0; a < D; ++a) {
    std::vector<std::array<int, D>> longer;
    for (auto k : result) {
      for (k[a] = 0; k[a] < shape.size[a]; ++k[a]) longer.push_back(k);
    }
    result = longer;
  }
  return result;
}

/// What an output reads with an offset.
template <int D>
place_of_voxel<D> input_of(const std::type_identity_t<place_of_voxel<D>>& o, const position_of<D>& k,
                           const kernel_shape<D>& shape) {
  place_of_voxel<D> i = o;
  for (std::size_t a = 0; a < D; ++a)
    i[a + 1] = o[a + 1] * shape.stride[a] - shape.padding[a] + k[a] * shape.dilation[a];
  return i;
}

/// The output that reads an input with an offset, if there is one.
template <int D>
std::optional<place_of_voxel<D>> output_of(const std::type_identity_t<place_of_voxel<D>>& i,
                                           const position_of<D>& k, const kernel_shape<D>& shape) {
  place_of_voxel<D> o = i;
  for (std::size_t a = 0; a < D; ++a)
    o[a + 1] = floor_div(i[a + 1] + shape.padding[a] - k[a] * shape.dilation[a], shape.stride[a]);
  if (input_of(o, k, shape) != i) return {};
  return o;
}

/// All that a view says, compared with expected[k][o].
void expect_view(const roost::kernel_map_view& view, const std::vector<std::vector<u32>>& expected,
                 std::size_t outputs) {
  ASSERT_EQ(view.volume, expected.size());
  if (outputs == 0) return;
  ASSERT_NE(view.neighbours, nullptr);
  const auto rows = download(std::span(view.neighbours, view.volume * view.stride));
  const auto masks = download(std::span(view.masks, outputs * view.words));
  roost::kernel_map_view here = view;
  here.neighbours = rows.data(), here.masks = masks.data();
  std::size_t wrong = 0;
  for (u32 k = 0; k < view.volume; ++k) {
    for (std::size_t o = 0; o < outputs; ++o) {
      wrong += here.neighbour(k, o) != expected[k][o];
      wrong += here.has_neighbour(k, o) != (expected[k][o] != no_row);
    }
  }
  EXPECT_EQ(wrong, 0u);
}

/// A map with all its forms, compared with what an oracle says of inputs and outputs.
template <int D>
void expect_map(const map_of<D>& map, const voxels<D>& inputs, const voxels<D>& outputs, bool generative,
                bool has_inverse) {
  const row_oracle<D> in(inputs), out(outputs);
  const auto& shape = map.shape();
  const auto offsets = offsets_of(shape);
  ASSERT_EQ(map.volume(), offsets.size());
  EXPECT_EQ(map.input_size(), inputs.size());
  EXPECT_EQ(map.output_size(), outputs.size());
  EXPECT_TRUE(map.valid(test_place()));
  std::vector<std::vector<u32>> expected(offsets.size()), inverse(offsets.size());
  std::vector<u32> input_rows, output_rows;
  std::vector<u64> begins;
  for (u32 k = 0; k < offsets.size(); ++k) {
    const auto offset = map.offset(k);
    begins.push_back(input_rows.size());
    for (std::size_t a = 0; a < D; ++a)
      EXPECT_EQ(offset[a], offsets[k][a] * shape.dilation[a] - shape.padding[a]);
    inverse[k].assign(inputs.size(), no_row);
    for (u32 o = 0; o < outputs.size(); ++o) {
      std::optional<place_of_voxel<D>> source;
      const auto target = numbers_of(outputs[o]);
      if (generative) {
        source = output_of(target, offsets[k], shape);
      } else {
        source = input_of(target, offsets[k], shape);
      }
      const u32 i = source ? in.find(*source) : no_row;
      expected[k].push_back(i);
      if (i == no_row) continue;
      inverse[k][i] = o;
      input_rows.push_back(i);
      output_rows.push_back(o);
    }
  }
  begins.push_back(input_rows.size());
  expect_view(map.view(), expected, outputs.size());
  const auto transposed = map.transposed();
  if (has_inverse) expect_view(transposed, inverse, inputs.size());
  if (map.pair_begins().empty()) return;
  EXPECT_EQ(download(map.pair_begins()), begins);
  EXPECT_EQ(map.pairs(), begins.back());
  EXPECT_EQ(download(map.input_rows()), input_rows);
  EXPECT_EQ(download(map.output_rows()), output_rows);
  EXPECT_EQ(transposed.input_rows, map.output_rows().data());
  EXPECT_EQ(transposed.output_rows, map.input_rows().data());
}

template <int D>
kernel_shape<D> shape_of(int first, int others, int stride = 1, int dilation = 1) {
  auto shape = kernel_shape<D>::cube(others, stride, dilation);
  shape.size[0] = first;
  return shape;
}

template <int D>
voxels<D> in_numbers(const std::set<place_of_voxel<D>>& numbers_of_voxels) {
  voxels<D> result;
  for (const auto& n : numbers_of_voxels) {
    coordinate<D> c{static_cast<i32>(n[0]), {}};
    for (std::size_t a = 0; a < D; ++a) c.at[a] = static_cast<i32>(n[a + 1]);
    result.push_back(c);
  }
  return result;
}

template <int D>
void check_submanifold(const index_of<D>& index, const kernel_shape<D>& shape, bool inverse = false) {
  const auto map = roost::submanifold(test_place(), index, shape, {.pairs = true, .inverse = inverse});
  bool odd = true;
  for (std::size_t a = 0; a < D; ++a)
    odd &= 2 * map.shape().padding[a] == shape.dilation[a] * (shape.size[a] - 1);
  const voxels<D> rows = download(index.coordinates());
  expect_map(map, rows, rows, false, odd || inverse);
  EXPECT_THROW(map.made_outputs(), roost::invalid_argument);
}

template <int D>
void check_convolution(const index_of<D>& index, const kernel_shape<D>& shape,
                       const kernel_map_options<D>& options = {.pairs = true, .inverse = true}) {
  const auto map = roost::convolution(test_place(), index, shape, options);
  const voxels<D> rows = download(index.coordinates());
  std::set<place_of_voxel<D>> outputs;
  for (const auto& c : rows) {
    auto n = numbers_of(c);
    const auto take = [&](const place_of_voxel<D>& o) {
      bool inside = true;
      if (options.bounds) {
        const auto least = numbers_of(options.bounds->least), greatest = numbers_of(options.bounds->greatest);
        for (std::size_t a = 0; a <= D; ++a) inside &= o[a] >= least[a] && o[a] <= greatest[a];
      }
      if (inside) outputs.insert(o);
    };
    if (options.outputs == output_voxels::strided) {
      for (std::size_t a = 0; a < D; ++a) n[a + 1] = floor_div(n[a + 1], map.shape().stride[a]);
      take(n);
    } else {
      for (const auto& k : offsets_of(map.shape())) {
        if (const auto o = output_of(n, k, map.shape())) take(*o);
      }
    }
  }
  const voxels<D> made = download(map.made_outputs().coordinates());
  EXPECT_TRUE(made == along_curve(in_numbers<D>(outputs)));
  expect_map(map, rows, made, false, options.inverse);
}

template <int D>
void check_generative(const index_of<D>& index, const kernel_shape<D>& shape) {
  const auto map = roost::generative(test_place(), index, shape, {.pairs = true, .inverse = true});
  const voxels<D> rows = download(index.coordinates());
  std::set<place_of_voxel<D>> outputs;
  for (const auto& c : rows) {
    for (const auto& k : offsets_of(map.shape())) outputs.insert(input_of(numbers_of(c), k, map.shape()));
  }
  const voxels<D> made = download(map.made_outputs().coordinates());
  EXPECT_TRUE(made == along_curve(in_numbers<D>(outputs)));
  expect_map(map, rows, made, true, true);
}

template <class Axes>
class kernel_map : public testing::Test {
 public:
  template <int D>
  static index_of<D> index(const voxels<D>& input, roost::order row_order = roost::order::block,
                           representation kind = representation::automatic) {
    return index_of<D>(test_place(), upload(input), {.order = row_order, .representation = kind});
  }
  inline static const std::size_t some = sanitized ? 500 : 2000;  // more than a team's, and no whole number
  static constexpr i64 side = Axes::value == 2   ? 60
                              : Axes::value == 3 ? 15
                                                 : 8;  // where every second voxel is taken or so
};
template <int D>
using axes = std::integral_constant<int, D>;
using all_axes = axis<axes<3>, axes<4>, axes<2>>;
TYPED_TEST_SUITE(kernel_map, all_axes);

TYPED_TEST(kernel_map, of_submanifolds_of_any_size_and_dilation) {
  constexpr int d = TypeParam::value;
  const auto index = this->index(random_voxels<d>(this->some, 1, this->side, -7, 2));
  for (int size = 1; size <= (d == 4 ? 3 : 5); ++size) check_submanifold(index, kernel_shape<d>::cube(size));
  check_submanifold(index, shape_of<d>(5, 1));
  check_submanifold(index, shape_of<d>(2, 3), true);
  for (const int dilation : {2, 3, 17, 1 << 20})
    check_submanifold(index, shape_of<d>(2, 3, 1, dilation), dilation == 2);
  for (const int dilation : {3, 5, 9})  // a block's side on an axis, and one
    check_submanifold(index, kernel_shape<d>::cube(2, 1, dilation));
  auto moved = kernel_shape<d>::cube(3);
  moved.padding[0] = 0;
  check_submanifold(index, moved);
}

TYPED_TEST(kernel_map, of_any_number_of_voxels_order_and_representation) {
  constexpr int d = TypeParam::value;
  for (const std::size_t n : {0, 1, 2, 255, 257, 1025}) {
    for (const auto row_order : {roost::order::block, roost::order::input}) {
      for (const auto kind : {representation::blocks, representation::points}) {
        const auto index = this->index(random_voxels<d>(n, n, 12, -5), row_order, kind);
        check_submanifold(index, kernel_shape<d>::cube(3));
        check_convolution(index, kernel_shape<d>::cube(2, 2));
      }
    }
  }
}

TYPED_TEST(kernel_map, of_shells_and_stripes) {
  constexpr int d = TypeParam::value;
  for (const auto& input : {shell<d>(d == 2 ? 60 : d == 3 ? 7 : 3.5, -3, 4), stripes<d>(this->some, 3)}) {
    const auto index = this->index(input);
    check_submanifold(index, kernel_shape<d>::cube(3));
    check_convolution(index, kernel_shape<d>::cube(3, 2));
    if (d != 4) check_generative(index, kernel_shape<d>::cube(3, 2));
  }
}

TYPED_TEST(kernel_map, of_voxels_of_one_block_or_of_different_ones_and_of_batches_far_apart) {
  constexpr int d = TypeParam::value;
  voxels<d> different, batches = random_voxels<d>(this->some, 9, this->side, -4);
  for (i32 i = 0; i < 300; ++i) {
    coordinate<d> c{};
    for (int a = 0, rest = i; a < d; ++a, rest /= 5) c.at[a] = 8 * (rest % 5 - 2);
    different.push_back(c);
  }
  for (std::size_t i = 0; i < batches.size(); ++i) batches[i].batch = std::array{-7, 0, 3, 1 << 11}[i % 4];
  for (const auto& input : {random_voxels<d>(40, 8, 2, -2), different, batches}) {
    const auto index = this->index(input);
    check_submanifold(index, kernel_shape<d>::cube(3));
    check_submanifold(index, kernel_shape<d>::cube(3, 1, 8));
    check_convolution(index, kernel_shape<d>::cube(2, 2));
  }
}

TYPED_TEST(kernel_map, of_convolutions_with_any_stride) {
  constexpr int d = TypeParam::value;
  const auto index = this->index(random_voxels<d>(this->some, 2, this->side, -8, 2));
  for (int size = 1; size <= (d == 4 ? 3 : 5); ++size) {
    for (const int stride : {1, 2, 3, 5}) {
      if (d == 4 && size * stride > 9) continue;
      check_convolution(index, kernel_shape<d>::cube(size, stride));
    }
  }
  check_convolution(index, shape_of<d>(3, 2, 2, 2));
  check_convolution(index, shape_of<d>(2, 2, 3, 2));
  auto uneven = kernel_shape<d>::cube(2, 2);
  uneven.stride[0] = 1, uneven.dilation[d - 1] = 3, uneven.padding[1] = 5;
  check_convolution(index, uneven);
  check_convolution(index, kernel_shape<d>::cube(3, 2), {.outputs = output_voxels::strided});
  check_convolution(index, kernel_shape<d>::cube(2, 3), {.outputs = output_voxels::strided});
  roost::coordinate_box<d> bounds{{0, {}}, {0, {}}};
  for (int a = 0; a < d; ++a) bounds.least.at[a] = -2, bounds.greatest.at[a] = 3;
  for (const auto outputs : {output_voxels::reached, output_voxels::strided})
    check_convolution(index, kernel_shape<d>::cube(3, 2),
                      {.inverse = true, .outputs = outputs, .bounds = bounds});
}

TYPED_TEST(kernel_map, of_voxels_that_are_generated) {
  constexpr int d = TypeParam::value;
  const auto index = this->index(random_voxels<d>(d == 4 ? 100 : 600, 3, this->side, -8, 2));
  for (const int size : {1, 2, 3}) {
    for (const int stride : {1, 2, 3}) check_generative(index, kernel_shape<d>::cube(size, stride));
  }
  check_generative(index, shape_of<d>(3, 2, 2, 2));
}

TYPED_TEST(kernel_map, between_indices_that_are_there) {
  constexpr int d = TypeParam::value;
  const auto fine = this->index(random_voxels<d>(this->some, 4, this->side, -8)),
             coarse = this->index(random_voxels<d>(300, 5, 6, -3), roost::order::input);
  const auto shape = kernel_shape<d>::cube(3, 2);
  const auto map = roost::convolution(test_place(), fine, coarse, shape, {.pairs = true, .inverse = true});
  expect_map(map, download(fine.coordinates()), download(coarse.coordinates()), false, true);
  const index_of<d> nothing;
  expect_map(roost::convolution(test_place(), fine, nothing, shape), download(fine.coordinates()), {}, false,
             false);
  expect_map(roost::convolution(test_place(), nothing, coarse, shape, {.pairs = true}), {},
             download(coarse.coordinates()), false, false);
}

TYPED_TEST(kernel_map, of_pooling) {
  constexpr int d = TypeParam::value;
  const auto index = this->index(random_voxels<d>(this->some, 6, this->side, -8));
  const auto map = roost::pooling(test_place(), index, kernel_shape<d>::cube(2), {.pairs = true});
  EXPECT_EQ(map.shape().size, kernel_shape<d>::all(2));
  EXPECT_EQ(map.shape().stride, kernel_shape<d>::all(2));
  expect_map(map, download(index.coordinates()), download(map.made_outputs().coordinates()), false, false);
  EXPECT_EQ(map.pairs(), index.size());  // each voxel is in one window
  const auto three = roost::pooling(test_place(), index, kernel_shape<d>::cube(3, 1));
  EXPECT_EQ(three.shape().stride, kernel_shape<d>::all(1));
  EXPECT_EQ(three.shape().padding, kernel_shape<d>::all(0));
}

TYPED_TEST(kernel_map, at_the_ends_of_all_axes) {
  constexpr int d = TypeParam::value;
  constexpr i32 lowest = std::numeric_limits<i32>::min(), highest = std::numeric_limits<i32>::max();
  for (const i32 end : {lowest, highest}) {
    voxels<d> corner = random_voxels<d>(200, 7, 5, end == lowest ? i64{lowest} : i64{highest} - 4);
    const auto index = this->index(corner);
    check_submanifold(index, kernel_shape<d>::cube(3));
    check_submanifold(index, shape_of<d>(2, 3, 1, 1 << 20));
    check_convolution(index, kernel_shape<d>::cube(2, 2));
    expect_error<roost::invalid_argument>(
        [&] { roost::generative(test_place(), index, kernel_shape<d>::cube(2, 2)); },
        {"roost::generative", "axis 0", "32 bits", "options.bounds"});
    expect_error<roost::invalid_argument>(
        [&] { roost::convolution(test_place(), index, kernel_shape<d>::cube(3)); },
        {"roost::convolution", "axis 0", "32 bits"});
  }
  voxels<d> ends(2);  // which are no neighbours
  ends[0].at[0] = lowest, ends[1].at[0] = highest;
  const auto index = this->index(ends, roost::order::block, representation::blocks);
  check_submanifold(index, kernel_shape<d>::cube(3));
}

TEST(kernel_map_calls, of_a_scan_and_of_keys_that_were_chosen_to_collide) {
  voxels<3> scan;
  roost::bench::street_scanner(16, 400).sweep(0, [&](const roost::bench::scanned_point& p) {
    const auto voxel = [](float x) { return static_cast<i32>(std::floor(x * 5)); };
    scan.push_back({0, {voxel(p.x), voxel(p.y), voxel(p.z)}});
  });
  ASSERT_GT(scan.size(), 4000u);
  const index_of<3> seen(test_place(), upload(scan));
  for (const int dilation : {1, 3}) check_submanifold(seen, kernel_shape<3>::cube(3, 1, dilation));
  check_convolution(seen, kernel_shape<3>::cube(3, 2));
  const index_of<3> crowded(test_place(), upload(crowd(2000)), {.representation = representation::blocks});
  check_submanifold(crowded, kernel_shape<3>::cube(3, 1, 16));  // which asks for other superblocks
  check_convolution(crowded, kernel_shape<3>::cube(2, 16));
}

TEST(kernel_map_calls, refuse_shapes_that_are_none) {
  const index_of<3> index(test_place(), upload(random_voxels<3>(100, 1, 9)));
  const auto refused = [&](const kernel_shape<3>& shape, std::initializer_list<std::string_view> words) {
    expect_error<roost::invalid_argument>([&] { roost::convolution(test_place(), index, shape); }, words);
  };
  refused(kernel_shape<3>::cube(0), {"roost::convolution", "size 0", "axis 0", "1 to 5"});
  refused({.size = {3, 3, 6}}, {"size 6", "axis 2", "1 to 5"});
  refused(kernel_shape<3>::cube(3, 0), {"stride of 0", "1 to 2^20"});
  refused(kernel_shape<3>::cube(3, (1 << 20) + 1), {"stride of 1048577", "1 to 2^20"});
  refused(kernel_shape<3>::cube(3, 1, 0), {"dilation of 0", "1 to 2^20"});
  refused({.padding = {0, -2, 0}}, {"padding of -2", "axis 1"});
  expect_error<roost::invalid_argument>(
      [&] { roost::submanifold(test_place(), index, kernel_shape<3>::cube(3, 2)); },
      {"roost::submanifold", "stride of 2", "give 1"});
}

TEST(kernel_map_calls, are_the_same_every_time) {
  const auto input = random_voxels<3>(5000, 1, 25);
  const index_of<3> index(test_place(), upload(input)), other(test_place(), upload(shuffled(input, 3)));
  const auto map = roost::submanifold(test_place(), index, {}, {.pairs = true}),
             again = roost::submanifold(test_place(), index, {}, {.pairs = true}),
             of_other = roost::submanifold(test_place(), other, {}, {.pairs = true});
  for (const auto* m : {&again, &of_other}) {
    EXPECT_EQ(download(m->masks()), download(map.masks()));
    EXPECT_EQ(download(m->input_rows()), download(map.input_rows()));
    EXPECT_EQ(download(m->output_rows()), download(map.output_rows()));
  }
  const auto down = roost::convolution(test_place(), index, kernel_shape<3>::cube(3, 2)),
             of_scrambled = roost::convolution(test_place(), other, kernel_shape<3>::cube(3, 2));
  EXPECT_TRUE(download(down.made_outputs().coordinates()) ==
              download(of_scrambled.made_outputs().coordinates()));
}

TEST(kernel_map_calls, have_the_centre_of_torchs_kernels) {
  const index_of<3> index(test_place(), upload(random_voxels<3>(100, 1, 9)));
  const auto padding = [&](int size, int dilation) {
    return roost::convolution(test_place(), index, kernel_shape<3>::cube(size, 1, dilation)).shape().padding;
  };
  const std::vector<std::array<int, 3>> expected{{1, 1, 0}, {2, 1, 0}, {3, 1, 1}, {4, 1, 1},
                                                 {5, 1, 2}, {2, 3, 1}, {3, 2, 2}, {4, 3, 4}};
  for (const auto& [size, dilation, before] : expected)
    EXPECT_EQ(padding(size, dilation), kernel_shape<3>::all(before));
}

TEST(kernel_map_calls, valid_notices_damage) {
  const index_of<3> index(test_place(), upload(random_voxels<3>(500, 1, 9)));
  const auto map =
      roost::convolution(test_place(), index, kernel_shape<3>::cube(3, 2), {.pairs = true, .inverse = true});
  const auto damage = [&](const char* what, const auto& part, std::size_t i, auto value) {
    using type = typename std::remove_cvref_t<decltype(part)>::value_type;
    expect_noticed(what, map, const_cast<type*>(part.data()), part.size(),
                   [&](std::vector<type>& all) { all[i] = static_cast<type>(value(all[i])); });
  };
  // Every output is reached by some offset.
  const auto rows = download(map.neighbours());
  std::size_t there = 5;
  while (rows[there] == no_row) there += map.neighbour_stride();
  damage("a row that is none", map.neighbours(), there, [](u32) { return 500u; });
  damage("a row that is another", map.neighbours(), there, [](u32 row) { return row == 3 ? 4 : 3; });
  damage("a row that is missing", map.neighbours(), there, [](u32) { return no_row; });
  damage("a mask", map.masks(), 5, [](u32 bits) { return bits ^ 64; });
  damage("an input of a pair", map.input_rows(), 5, [](u32 row) { return row + 1; });
  damage("an output of a pair", map.output_rows(), 5, [](u32 row) { return row + 1; });
  damage("pairs that are too many", map.pair_begins(), 27, [](u64 end) { return end + 1; });
  const auto view = map.transposed();
  const std::span<const u32> inverse(view.masks, view.outputs);
  damage("a mask of the transposed view", inverse, 5, [](u32 bits) { return bits ^ 64; });
  ASSERT_GE(download(map.pair_begins())[1], 2u);  // of the first offset
  for (const auto& part : {map.input_rows(), map.output_rows()}) {
    auto pairs = download(part);
    std::swap(pairs[0], pairs[1]);
    test_place().copy_from_host(const_cast<u32*>(part.data()), pairs.data(), part.size_bytes());
    test_place().synchronize();
  }
  EXPECT_FALSE(map.valid(test_place()));  // pairs in another order
}

TEST(kernel_map_calls, hold_nothing_that_they_do_not_say) {
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    const index_of<3> index(place, roost::copy_to(place, random_voxels<3>(2000, 1, 18)));
    const std::size_t before = memory.live_bytes();
    const auto map = roost::submanifold(place, index, {}, {.pairs = true});
    EXPECT_EQ(map.bytes(), memory.live_bytes() - before);
    const auto down = roost::convolution(place, index, kernel_shape<3>::cube(3, 2), {.inverse = true});
    EXPECT_EQ(map.bytes() + down.bytes(), memory.live_bytes() - before);
    expect_refusals([&](const place_type& poor) {
      roost::convolution(poor, index, kernel_shape<3>::cube(3, 2), {.pairs = true, .inverse = true});
    });
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

/// The box and the number of the voxels that a window reaches, from its boxes and one by one.
template <bool Backward>
void expect_boxes(std::mt19937_64& random) {
  roost::detail::window<3> window{};
  roost::coordinate_box<3> bounds{{-2, {-9, -9, -9}}, {1, {9, 9, 9}}};
  for (int a = 0; a < 3; ++a) {
    window.size[a] = 1 + static_cast<int>(random() % 4);
    window.stride[a] = 1 + static_cast<int>(random() % 4);
    window.dilation[a] = window.size[a] == 1 ? 1 + static_cast<int>(random() % 3) : 1;
    window.padding[a] = static_cast<int>(random() % 4);
    window.shift[a] = -1;
  }
  voxels<3> sources(random() % 20);
  for (auto& c : sources) {
    c.batch = static_cast<int>(random() % 6) - 3;
    for (int& x : c.at) x = static_cast<int>(random() % 40) - 20;
  }
  const u64 count = sources.size();
  const roost::detail::reached_voxels<3, Backward> reached(sources.data(), &count, count, window, bounds);
  ASSERT_TRUE(reached.has_boxes());
  const auto numbers_of = [](const coordinate<3>& c) {
    return std::array<int, 4>{c.batch, c.at[0], c.at[1], c.at[2]};
  };
  std::array<int, 4> least[2], greatest[2];
  u64 voxels[2] = {0, 0};
  for (int k = 0; k < 2; ++k) least[k].fill(1 << 20), greatest[k].fill(-(1 << 20));
  const auto take = [&](int k, const coordinate<3>& low, const coordinate<3>& high) {
    for (std::size_t a = 0; a < 4; ++a) {
      least[k][a] = std::min(least[k][a], numbers_of(low)[a]);
      greatest[k][a] = std::max(greatest[k][a], numbers_of(high)[a]);
    }
  };
  for (std::size_t i = 0; i < reached.size(); ++i) {
    coordinate<3> c{};
    if (reached.give(i, c)) take(0, c, c), ++voxels[0];
  }
  for (u64 i = 0; i < count; ++i) {
    coordinate<3> low{}, high{};
    const u64 here = reached.box(i, low, high);
    if (here != 0) take(1, low, high);
    voxels[1] += here;
  }
  EXPECT_EQ(voxels[0], voxels[1]);
  EXPECT_EQ(least[0], least[1]);
  EXPECT_EQ(greatest[0], greatest[1]);
}

TEST(kernel_map_calls, know_the_boxes_of_what_they_reach) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 3000; ++i) {
    expect_boxes<true>(random);
    expect_boxes<false>(random);
  }
}

TEST(kernel_map_rebuild, follows_an_index_without_a_wait) {
  index_of<3> index(test_place(), {.capacity = 4000});
  auto map = roost::submanifold(test_place(), index, {}, {.pairs = true});
  auto down = roost::convolution(test_place(), index, kernel_shape<3>::cube(3, 2), {.pairs = true});
  EXPECT_EQ(map.output_size(), 0u);
  for (const std::size_t n : {4000, 0, 1, 1500}) {
    const auto input = upload(random_voxels<3>(n, n, 20, -9, 2));
    index.rebuild_async(test_place(), input);
    map.rebuild_async(test_place(), index);
    down.rebuild_async(test_place(), index);
    index.finish(test_place());
    map.finish(test_place());
    down.finish(test_place());
    const voxels<3> rows = download(index.coordinates());
    expect_map(map, rows, rows, false, true);
    expect_map(down, rows, download(down.made_outputs().coordinates()), false, false);
  }
  const index_of<3> other(test_place(), upload(random_voxels<3>(10, 1, 9)));
  auto fixed_size = roost::submanifold(test_place(), other);
  expect_error<roost::invalid_argument>([&] { fixed_size.rebuild_async(test_place(), other); },
                                        {"kernel_map::rebuild_async", "options.capacity"});
  expect_error<roost::invalid_argument>([&] { map.rebuild_async(test_place(), other); },
                                        {"kernel_map::rebuild_async", "options.capacity"});
}

TEST(kernel_map_rebuild, that_is_refused_memory_leaves_an_empty_map) {
  const auto index_with = [](std::size_t n) {
    return index_of<3>(test_place(), upload(random_voxels<3>(n, n, 20)), {.capacity = 3000});
  };
  const index_of<3> first = index_with(1000), second = index_with(2900);
  const auto expect = [&](const auto& make) {
    expect_refusals(
        refused::empties, make,
        [&](const place_type& place, map_of<3>& map) {
          map.rebuild_async(place, second);
          map.finish(place);
        },
        [](const place_type& place, const map_of<3>& map) {
          std::vector<u64> state{map.input_size(), map.output_size(), map.pairs(), 0, 0};
          for (const u32 row : download(map.input_rows())) state[3] = state[3] * 31 + row;
          for (const u32 row : download(map.output_rows())) state[4] = state[4] * 31 + row;
          EXPECT_TRUE(map.valid(place));
          return state;
        });
  };
  const kernel_map_options<3> chosen{.pairs = true, .inverse = true};
  expect([&](auto& place) { return roost::submanifold(place, first, {}, chosen); });
  expect([&](auto& place) { return roost::convolution(place, first, kernel_shape<3>::cube(3, 2), chosen); });
}

TEST(kernel_map_rebuild, says_what_did_not_fit) {
  index_of<3> index(test_place(), {.capacity = 1000});
  auto map = roost::submanifold(test_place(), index, {}, {.pairs = true, .pairs_capacity = 5000});
  auto wide = roost::generative(test_place(), index, kernel_shape<3>::cube(3), {.capacity = 2000});
  index.rebuild_async(test_place(), upload(random_voxels<3>(1000, 1, 10)));
  map.rebuild_async(test_place(), index);
  wide.rebuild_async(test_place(), index);
  index.finish(test_place());
  expect_error<roost::build_error>([&] { map.finish(test_place()); }, {"kernel_map", "pairs", "5000"});
  wide.finish(test_place());
  EXPECT_GT(wide.output_size(), 1000u);
  voxels<3> apart;
  for (i32 i = 0; i < 1000; ++i) apart.push_back({0, {3 * (i % 10), 3 * (i / 10 % 10), 3 * (i / 100)}});
  index.rebuild_async(test_place(), upload(apart));
  wide.rebuild_async(test_place(), index);
  expect_error<roost::build_error>([&] { wide.finish(test_place()); },
                                   {"more different voxels", "capacity of 2000"});
  EXPECT_TRUE(wide.made_outputs().empty());
}

#if defined(__CUDACC__)
TEST(kernel_map_cuda, is_captured_and_replayed_on_other_coordinates) {
  constexpr std::size_t n = 20000;
  const place_type& gpu = test_place();
  index_of<3> index(gpu, {.capacity = n});
  auto map = roost::submanifold(gpu, index, {}, {.pairs = true});
  auto down = roost::convolution(gpu, index, kernel_shape<3>::cube(2, 2));
  memory_of<coordinate<3>> given(gpu, n);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(gpu.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  index.rebuild_async(gpu, given);
  map.rebuild_async(gpu, index);
  down.rebuild_async(gpu, index);
  ASSERT_EQ(cudaStreamEndCapture(gpu.stream(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  for (u32 r = 0; r < 3; ++r) {
    const voxels<3> input = random_voxels<3>(n, r, 25 + 10 * r, -20 * static_cast<i64>(r), 2);
    gpu.copy_from_host(given.data(), input.data(), given.bytes());
    ASSERT_EQ(cudaGraphLaunch(ready, gpu.stream()), cudaSuccess);
    index.finish(gpu);
    map.finish(gpu);
    down.finish(gpu);
    const voxels<3> rows = download(index.coordinates());
    expect_map(map, rows, rows, false, true);
    expect_map(down, rows, download(down.made_outputs().coordinates()), false, false);
  }
  EXPECT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}
#endif

}  // namespace
}  // namespace test
