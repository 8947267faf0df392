#include <roost/sparse_conv.hpp>

#include "support/voxels.hpp"

// Sparse convolution against dense convolution, loops over all cells of a grid that know nothing of rows; its
// gradients against what they are the adjoints of.

namespace test {
namespace {

using roost::conv_channels;
using roost::coordinate;
using roost::kernel_shape;

template <int D>
using map_of = roost::kernel_map<D, place_type>;

template <class T>
std::vector<T> random_numbers(std::size_t n, u64 seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<T> result(n);
  for (T& each : result) each = static_cast<T>(draw(random));
  return result;
}

template <class T>
double dot(const std::vector<T>& a, const std::vector<T>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return result;
}

template <class T>
std::vector<T> convolved(const roost::kernel_map_view& map, const conv_channels& channels,
                         const std::vector<T>& input, const std::vector<T>& weights,
                         const std::vector<T>& bias = {}, const place_type& place = test_place()) {
  std::vector<T> result(map.outputs * channels.out, T{77});
  roost::sparse_conv(place, map, channels, input, weights, result, bias);
  return result;
}

/// A grid of `side` cells on each axis, the last fastest, from `corner` on; channels are numbers of a cell.
template <int D>
struct grid {
  i32 corner, side;
  std::size_t channels;
  std::vector<double> numbers;

  grid(i32 corner_, i32 side_, std::size_t channels_)
      : corner(corner_), side(side_), channels(channels_), numbers(cells() * channels_) {}
  std::size_t cells() const {
    std::size_t result = 1;
    for (int a = 0; a < D; ++a) result *= static_cast<std::size_t>(side);
    return result;
  }
  coordinate<D> cell(std::size_t i) const {
    coordinate<D> result{0, {}};
    for (int a = D; a-- != 0; i /= static_cast<std::size_t>(side))
      result.at[a] = corner + static_cast<i32>(i % static_cast<std::size_t>(side));
    return result;
  }
  /// The numbers of a cell; null beyond the grid.
  double* at(const coordinate<D>& c) {
    std::size_t i = 0;
    for (int a = 0; a < D; ++a) {
      if (c.at[a] < corner || c.at[a] >= corner + side) return nullptr;
      i = i * static_cast<std::size_t>(side) + static_cast<std::size_t>(c.at[a] - corner);
    }
    return &numbers[i * channels];
  }
};

/// torch.nn.functional.conv2d or conv3d of a whole grid, with the map's shape.
template <int D>
grid<D> dense_convolution(grid<D>& input, const kernel_shape<D>& shape, const conv_channels& channels,
                          const std::vector<double>& weights) {
  grid<D> result(input.corner - 6, input.side + 12, channels.out);
  for (std::size_t i = 0; i < result.cells(); ++i) {
    for (u32 k = 0; k < shape.volume(); ++k) {
      coordinate<D> from = result.cell(i);
      u32 rest = k;
      for (std::size_t a = D; a-- != 0; rest /= static_cast<u32>(shape.size[a])) {
        from.at[a] = from.at[a] * shape.stride[a] - shape.padding[a] +
                     static_cast<i32>(rest % static_cast<u32>(shape.size[a])) * shape.dilation[a];
      }
      const double* const numbers = input.at(from);
      if (numbers == nullptr) continue;
      for (std::size_t c = 0; c < channels.in; ++c) {
        for (std::size_t to = 0; to < channels.out; ++to) {
          result.numbers[i * channels.out + to] +=
              numbers[c] * weights[(k * channels.in + c) * channels.out + to];
        }
      }
    }
  }
  return result;
}

/// A map of a convolution, and all that is known of its layer.
template <int D, class T>
void check_layer(const index_of<D>& index, const map_of<D>& map, const conv_channels& channels, u64 seed) {
  const std::size_t n = index.size(), weight_size = map.volume() * channels.in * channels.out;
  const bool submanifold = map.output_size() == n && map.shape().stride == kernel_shape<D>::all(1);
  const auto input = random_numbers<T>(n * channels.in, seed),
             weights = random_numbers<T>(weight_size, seed + 1),
             bias = random_numbers<T>(channels.out, seed + 2);
  const auto output = convolved(map.view(), channels, input, weights, bias);
  const double close = std::is_same_v<T, float> ? 2e-4 : 1e-11;

  // Forward.
  grid<D> dense(-6, 12, channels.in);
  const voxels<D> inputs(index.begin(), index.end());
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_NE(dense.at(inputs[i]), nullptr);
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(i * channels.in), channels.in,
                dense.at(inputs[i]));
  }
  grid<D> expected = dense_convolution(dense, map.shape(), channels, {weights.begin(), weights.end()});
  const voxels<D> outputs =
      submanifold ? inputs : voxels<D>(map.made_outputs().begin(), map.made_outputs().end());
  double furthest = 0, left = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    double* const cell = expected.at(outputs[o]);
    ASSERT_NE(cell, nullptr);
    for (std::size_t c = 0; c < channels.out; ++c) {
      furthest = std::max(furthest, std::abs(cell[c] + static_cast<double>(bias[c]) -
                                             static_cast<double>(output[o * channels.out + c])));
      cell[c] = 0;
    }
  }
  EXPECT_LT(furthest, close);
  for (const double number : expected.numbers) left = std::max(left, std::abs(number));
  EXPECT_TRUE(submanifold || left == 0) << "an output is missing";

  // Backward: what is linear has its adjoint as gradient, to the last number.
  const auto gradient = random_numbers<T>(output.size(), seed + 3);
  std::vector<T> of_input(input.size(), T{77}), of_weights(weight_size, T{77}), of_bias(channels.out, T{77});
  roost::sparse_conv_input_gradient(test_place(), map.transposed(), channels, gradient, weights, of_input);
  roost::sparse_conv_weight_gradient(test_place(), map.view(), channels, input, gradient, of_weights);
  roost::sparse_conv_bias_gradient(test_place(), map.view(), channels, gradient, of_bias);
  const double much = close * static_cast<double>(output.size() + 1);
  const auto other_input = random_numbers<T>(input.size(), seed + 4),
             other_weights = random_numbers<T>(weight_size, seed + 5);
  EXPECT_NEAR(dot(gradient, convolved(map.view(), channels, other_input, weights)),
              dot(of_input, other_input), much);
  EXPECT_NEAR(dot(gradient, convolved(map.view(), channels, input, other_weights)),
              dot(of_weights, other_weights), much);
  const auto rows = roost::copy_to_host(test_place(), map.neighbours());
  for (u32 k = 0; k < map.volume(); ++k) {  // and number by number
    for (std::size_t i = 0; i < channels.in; i += 5) {
      const std::size_t c = (i + k) % channels.out;
      double sum = 0;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const u32 row = rows[k * map.neighbour_stride() + o];
        if (row != roost::no_row<u32>)
          sum += static_cast<double>(input[row * channels.in + i]) *
                 static_cast<double>(gradient[o * channels.out + c]);
      }
      EXPECT_NEAR(sum, static_cast<double>(of_weights[(k * channels.in + i) * channels.out + c]), 10 * close);
    }
  }
  for (std::size_t c = 0; c < channels.out; ++c) {
    double sum = 0;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      sum += static_cast<double>(gradient[o * channels.out + c]);
    EXPECT_NEAR(sum, static_cast<double>(of_bias[c]), 10 * close);
  }
}

template <int D>
kernel_shape<D> uneven_shape() {
  auto shape = kernel_shape<D>::cube(2, 3, 2);
  shape.size[0] = 3, shape.dilation[0] = 1, shape.stride[D - 1] = 1;
  return shape;
}

template <class Both>
class sparse_conv : public testing::Test {};
template <int D, class T>
struct both {
  static constexpr int axes = D;
  using type = T;
};
using all_kinds = axis<both<3, float>, both<2, double>, both<3, double>>;
TYPED_TEST_SUITE(sparse_conv, all_kinds);

TYPED_TEST(sparse_conv, is_dense_convolution_and_its_gradients_are_adjoints) {
  constexpr int d = TypeParam::axes;
  using type = typename TypeParam::type;
  const index_of<d> index(test_place(), random_voxels<d>(d == 2 ? 90 : 500, 1, 12, -6));
  u64 seed = 1;
  for (const auto& channels : {conv_channels{1, 1}, {3, 5}, {17, 33}, {16, 4}}) {
    check_layer<d, type>(index, roost::submanifold(test_place(), index), channels, ++seed);
    for (const auto& shape : {kernel_shape<d>::cube(2, 2), uneven_shape<d>()}) {
      check_layer<d, type>(index, roost::convolution(test_place(), index, shape, {.inverse = true}), channels,
                           ++seed);
    }
  }
  const auto wide = kernel_shape<d>::cube(5, 1, 2);
  check_layer<d, type>(index, roost::submanifold(test_place(), index, wide), {2, 3}, 50);
  check_layer<d, type>(index,
                       roost::submanifold(test_place(), index, kernel_shape<d>::cube(2), {.inverse = true}),
                       {2, 3}, 60);
}

TYPED_TEST(sparse_conv, transposed_is_the_adjoint_of_the_convolution_with_turned_weights) {
  constexpr int d = TypeParam::axes;
  using type = typename TypeParam::type;
  const index_of<d> index(test_place(), random_voxels<d>(300, 3, 12, -6));
  const conv_channels up{6, 9}, down{9, 6};
  const auto map = roost::convolution(test_place(), index, kernel_shape<d>::cube(3, 2), {.inverse = true});
  const auto coarse = random_numbers<type>(map.output_size() * up.in, 1),
             fine = random_numbers<type>(map.input_size() * up.out, 2),
             weights = random_numbers<type>(map.volume() * up.in * up.out, 3);
  std::vector<type> turned(weights.size());
  for (std::size_t k = 0; k < map.volume(); ++k) {
    for (std::size_t i = 0; i < up.in * up.out; ++i)
      turned[k * 54 + i % up.out * up.in + i / up.out] = weights[k * 54 + i];
  }
  const auto raised = convolved(map.transposed(), up, coarse, weights);
  EXPECT_NEAR(dot(raised, fine), dot(coarse, convolved(map.view(), down, fine, turned)), 1e-2);
  // It is the same sum, in the same order.
  std::vector<type> gradient(raised.size());
  roost::sparse_conv_input_gradient(test_place(), map.transposed(), down, coarse, turned, gradient);
  EXPECT_EQ(gradient, raised);
  // Generative: conv_transpose3d of ones, where each output counts the inputs that reach it.
  const auto made = roost::generative(test_place(), index, kernel_shape<d>::cube(3, 2));
  const std::vector<type> one(index.size(), 1), all(made.volume(), 1);
  const auto reached = convolved(made.view(), {1, 1}, one, all);
  EXPECT_GE(*std::min_element(reached.begin(), reached.end()), 1);
  EXPECT_EQ(dot(reached, std::vector<type>(reached.size(), 1)),
            static_cast<double>(index.size() * made.volume()));
}

TEST(sparse_conv_results, are_the_same_with_any_threads_order_and_neighbours_of_rows) {
  const voxels<3> input = shell<3>(sanitized ? 7 : 11);
  const conv_channels channels{20, 24};
  const auto weights = random_numbers<float>(27 * 480, 1), bias = random_numbers<float>(24, 2);
  std::map<std::array<i64, 4>, std::vector<float>> first;
  std::vector<float> gradient_of_block;
  for (const auto row_order : {roost::order::block, roost::order::input, roost::order::block}) {
    for (const int threads : {1, 2}) {
      const roost::host place(threads);
      const roost::coordinate_index<3> index(place, input, {.order = row_order});
      const auto map = roost::submanifold(place, index);
      std::vector<float> features;
      for (const auto& c : index) {
        const auto mine =
            random_numbers<float>(20, static_cast<u64>(c.at[0] * 1000 + c.at[1] * 100 + c.at[2]));
        features.insert(features.end(), mine.begin(), mine.end());
      }
      const auto output = convolved(map.view(), channels, features, weights, bias, place);
      for (std::size_t o = 0; o < index.size(); ++o) {
        const auto begin = output.begin() + static_cast<std::ptrdiff_t>(o * 24);
        const std::vector<float> mine(begin, begin + 24);
        const auto [at, fresh] = first.emplace(numbers_of(index.coordinates()[o]), mine);
        ASSERT_EQ(at->second, mine) << fresh;
      }
      if (row_order == roost::order::input) continue;
      std::vector<float> of_weights(weights.size());
      roost::sparse_conv_weight_gradient(place, map.view(), channels, features, output, of_weights);
      if (gradient_of_block.empty()) gradient_of_block = of_weights;
      EXPECT_EQ(of_weights, gradient_of_block);
    }
  }
}

TEST(sparse_conv_results, have_what_is_not_finite_only_where_it_was_read) {
  const index_of<3> index(test_place(), random_voxels<3>(800, 5, 12));
  const auto map = roost::submanifold(test_place(), index);
  auto input = random_numbers<float>(index.size() * 3, 1);
  const auto weights = random_numbers<float>(27 * 12, 2);
  const auto before = convolved(map.view(), {3, 4}, input, weights);
  const u32 bad = 123;
  input[bad * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  const auto after = convolved(map.view(), {3, 4}, input, weights);
  for (std::size_t o = 0; o < index.size(); ++o) {
    bool reads = false;
    for (u32 k = 0; k < 27; ++k) reads |= map.view().neighbour(k, o) == bad;
    for (std::size_t c = o * 4; c < o * 4 + 4; ++c) {
      EXPECT_EQ(std::isnan(after[c]), reads);
      EXPECT_TRUE(reads || after[c] == before[c]);
    }
  }
}

TEST(sparse_conv_results, are_those_of_processors_with_shorter_vectors) {
  using narrow = roost::detail::conv_product<double, 16>;
  using backend = roost::detail::conv_backend<roost::host>;
  const index_of<3> index(test_place(), random_voxels<3>(400, 6, 12));
  const auto map = roost::submanifold(test_place(), index);
  const conv_channels channels{7, 9};
  const auto input = random_numbers<double>(index.size() * 7, 1),
             weights = random_numbers<double>(27 * 63, 2);
  const auto wide = convolved(map.view(), channels, input, weights);
  std::vector<double> result(wide.size()), of_weights(weights.size()), expected(weights.size());
  const double* const no_bias = nullptr;
  backend::convolve(narrow(), test_place(), map.view(), index.size(), channels, false, input.data(),
                    weights.data(), no_bias, result.data());
  backend::weight_gradient(narrow(), test_place(), map.view(), index.size(), channels, input.data(),
                           wide.data(), of_weights.data());
  roost::sparse_conv_weight_gradient(test_place(), map.view(), channels, input, wide, expected);
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(result[i], wide[i], 1e-12);
  for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(of_weights[i], expected[i], 1e-10);
}

TEST(sparse_conv_sizes, may_be_nothing_one_and_what_a_fixed_capacity_holds) {
  const std::vector<float> nothing;
  const std::vector<float> weights = random_numbers<float>(27 * 2, 1);
  const index_of<3> empty;
  const auto none = roost::submanifold(test_place(), empty);
  EXPECT_TRUE(convolved(none.view(), {1, 2}, nothing, weights).empty());
  std::vector<float> of_weights(54, 1), of_bias(2, 1), of_input;
  roost::sparse_conv_weight_gradient(test_place(), none.view(), {1, 2}, nothing, nothing, of_weights);
  roost::sparse_conv_bias_gradient(test_place(), none.view(), {1, 2}, nothing, of_bias);
  roost::sparse_conv_input_gradient(test_place(), none.transposed(), {1, 2}, nothing, weights, of_input);
  EXPECT_EQ(of_weights, std::vector<float>(54));
  EXPECT_EQ(of_bias, std::vector<float>(2));
  const roost::kernel_map<3> no_map;
  EXPECT_TRUE(convolved(no_map.view(), {1, 2}, nothing, weights).empty());

  const index_of<3> one(test_place(), voxels<3>{{7, {-1, 2, 1 << 30}}});
  const auto alone = roost::submanifold(test_place(), one);
  EXPECT_EQ(convolved(alone.view(), {1, 2}, {3.f}, weights, {1.f, 2.f}),
            (std::vector{1 + 3 * weights[26], 2 + 3 * weights[27]}));  // only the centre

  // Outputs that nothing reaches have the bias.
  const auto lonely = roost::convolution(test_place(), empty, one, kernel_shape<3>::cube(3));
  EXPECT_EQ(convolved(lonely.view(), {1, 2}, nothing, weights, {4.f, 5.f}), (std::vector{4.f, 5.f}));

  index_of<3> fixed(test_place(), {.capacity = 300});
  auto map = roost::submanifold(test_place(), fixed);
  const auto some = random_voxels<3>(200, 9, 8);
  fixed.rebuild_async(test_place(), some);
  map.rebuild_async(test_place(), fixed);
  fixed.finish(test_place());
  const index_of<3> same(test_place(), some);
  const auto features = random_numbers<float>(same.size(), 4);
  std::vector<float> output(same.size() * 2 + 1, 77.f);
  roost::sparse_conv(test_place(), map.view(), {1, 2}, features, weights, output);
  EXPECT_EQ(output.back(), 77.f);
  output.pop_back();
  EXPECT_EQ(output, convolved(roost::submanifold(test_place(), same).view(), {1, 2}, features, weights));
}

TEST(sparse_conv_errors, say_what_is_wrong) {
  using roost::invalid_argument;
  const index_of<3> index(test_place(), random_voxels<3>(50, 1, 100));
  const auto map = roost::submanifold(test_place(), index);
  const std::size_t n = index.size();
  const std::vector<float> input(n * 2), weights(27 * 6), bias(3);
  std::vector<float> output(n * 3);
  const auto run = [&](const auto& view, conv_channels c, const auto& x, const auto& w, auto& y,
                       const std::vector<float>& b) {
    roost::sparse_conv(test_place(), view, c, x, w, y, b);
  };
  run(map.view(), {2, 3}, input, weights, output, bias);
  for (const auto& channels : {conv_channels{0, 3}, {2, 0}, {2, 65537}})
    expect_error<invalid_argument>([&] { run(map.view(), channels, input, weights, output, bias); },
                                   {"roost::sparse_conv", "channels", "1 to 65536"});
  const std::vector<float> few(n * 2 - 1);
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, few, weights, output, bias); },
                                 {"sparse_conv", "99 numbers of input", "50 rows of 2"});
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, few, output, bias); },
                                 {"weights", "27 rows of 6"});
  std::vector<float> small(n * 3 - 1);
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, weights, small, bias); }, {"output"});
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, weights, output, {1.f}); },
                                 {"bias", "1 rows of 3"});
  const auto down = roost::convolution(test_place(), index, kernel_shape<3>::cube(2, 2), {.pairs = true});
  const std::vector<float> coarse(down.output_size() * 2);
  expect_error<invalid_argument>([&] { run(down.transposed(), {2, 3}, coarse, weights, output, bias); },
                                 {"sparse_conv", "no neighbours", "options.inverse"});
  expect_error<invalid_argument>(
      [&] {
        roost::sparse_conv_input_gradient(test_place(), down.transposed(), {3, 2}, coarse, weights, output);
      },
      {"sparse_conv_input_gradient", "no neighbours"});
  expect_error<invalid_argument>(
      [&] { roost::sparse_conv_weight_gradient(test_place(), map.view(), {2, 3}, input, few, output); },
      {"sparse_conv_weight_gradient", "output_gradient"});
  expect_error<invalid_argument>(
      [&] { roost::sparse_conv_bias_gradient(test_place(), map.view(), {2, 3}, few, output); },
      {"sparse_conv_bias_gradient", "output_gradient"});
}

TEST(sparse_conv_errors, of_memory_leave_nothing_behind) {
  watched_memory memory;
  const index_of<3> index(test_place(), random_voxels<3>(500, 1, 10));
  const auto map = roost::submanifold(test_place(), index);
  const std::vector<float> input(index.size() * 32), weights(27 * 1024);
  std::vector<float> output(index.size() * 32), of_weights(weights.size());
  const place_type place = make_place(memory);
  const auto layer = [&] {
    roost::sparse_conv(place, map.view(), {32, 32}, input, weights, output);
    roost::sparse_conv_weight_gradient(place, map.view(), {32, 32}, input, output, of_weights);
  };
  for (std::size_t good = 0;; ++good) {
    ASSERT_LT(good, 10000u);
    memory.refuse_after(good);
    try {
      layer();
      break;
    } catch (const roost::out_of_memory&) {
    }
    memory.refuse_nothing();
    ASSERT_EQ(memory.live_bytes(), 0u);
  }
  memory.refuse_nothing();
  EXPECT_EQ(memory.live_blocks(), 0u);
}

}  // namespace
}  // namespace test
