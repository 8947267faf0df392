#include <roost/sparse/sparse_conv.hpp>

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

/// Gradients of weights and bias.
template <class T>
using sum_of = roost::detail::conv_sum<T>;

double number(double x) { return x; }
double number(float x) { return static_cast<double>(x); }
#if defined(__CUDACC__)
double number(__half x) { return static_cast<double>(__half2float(x)); }
double number(__nv_bfloat16 x) { return static_cast<double>(__bfloat162float(x)); }
#endif

template <class T>
std::vector<double> numbers(const std::vector<T>& all) {
  std::vector<double> result;
  for (const T& each : all) result.push_back(number(each));
  return result;
}

template <class T>
std::vector<T> random_numbers(std::size_t n, u64 seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<T> result(n);
  for (T& each : result) each = static_cast<T>(draw(random));
  return result;
}

/// How far a sum of some hundred products may be from the right one.
template <class T>
double closeness() {
  return std::is_same_v<T, double> ? 1e-11 : sizeof(T) == 4 ? 2e-4 : T(1.0009765625f) == T(1.f) ? 0.15 : 0.02;
}

template <class A, class B>
double dot(const std::vector<A>& a, const std::vector<B>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result += number(a[i]) * number(b[i]);
  return result;
}

template <class T>
std::vector<T> convolved(const roost::kernel_map_view& map, const conv_channels& channels,
                         const std::vector<T>& input, const std::vector<T>& weights,
                         const std::vector<T>& bias = {}, const place_type& place = test_place()) {
  auto result = upload(std::vector<T>(map.outputs * channels.out, T(77.f)));
  const auto from = upload(input), by = upload(weights), added = upload(bias);
  roost::sparse_conv(place, map, channels, from, by, result, added.span());
  return download(result);
}

template <class T>
std::vector<T> input_gradient(const roost::kernel_map_view& reverse, const conv_channels& channels,
                              const std::vector<T>& output_gradient, const std::vector<T>& weights) {
  auto result = upload(std::vector<T>(reverse.outputs * channels.in, T(77.f)));
  roost::sparse_conv_input_gradient(test_place(), reverse, channels, upload(output_gradient), upload(weights),
                                    result);
  return download(result);
}

template <class T>
std::vector<sum_of<T>> weight_gradient(const roost::kernel_map_view& map, const conv_channels& channels,
                                       const std::vector<T>& input, const std::vector<T>& output_gradient,
                                       const place_type& place = test_place()) {
  auto result = upload(std::vector<sum_of<T>>(map.volume * channels.in * channels.out, 77));
  roost::sparse_conv_weight_gradient(place, map, channels, upload(input), upload(output_gradient), result);
  const auto sums = download(result);
  if constexpr (!std::is_same_v<T, sum_of<T>>) {
    auto narrow = upload(std::vector<T>(sums.size(), T(77.f)));
    roost::sparse_conv_weight_gradient(place, map, channels, upload(input), upload(output_gradient), narrow);
    const auto rounded = download(narrow);
    std::size_t others = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) others += number(rounded[i]) != number(T(sums[i]));
    EXPECT_EQ(others, 0) << "are not the sums, rounded";
  }
  return sums;
}

template <class T>
std::vector<sum_of<T>> bias_gradient(const roost::kernel_map_view& map, const conv_channels& channels,
                                     const std::vector<T>& output_gradient) {
  auto result = upload(std::vector<sum_of<T>>(channels.out, 77));
  roost::sparse_conv_bias_gradient(test_place(), map, channels, upload(output_gradient), result);
  return download(result);
}

template <int D>
voxels<D> voxels_of(const index_of<D>& index) {
  return download(index.coordinates());
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
  const double close = closeness<T>();

  // Forward.
  grid<D> dense(-6, 12, channels.in);
  const voxels<D> inputs = voxels_of(index);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_NE(dense.at(inputs[i]), nullptr);
    for (std::size_t c = 0; c < channels.in; ++c) dense.at(inputs[i])[c] = number(input[i * channels.in + c]);
  }
  grid<D> expected = dense_convolution(dense, map.shape(), channels, numbers(weights));
  const voxels<D> outputs = submanifold ? inputs : voxels_of(map.made_outputs());
  double furthest = 0, left = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    double* const cell = expected.at(outputs[o]);
    ASSERT_NE(cell, nullptr);
    for (std::size_t c = 0; c < channels.out; ++c) {
      furthest =
          std::max(furthest, std::abs(cell[c] + number(bias[c]) - number(output[o * channels.out + c])));
      cell[c] = 0;
    }
  }
  EXPECT_LT(furthest, close);
  for (const double number : expected.numbers) left = std::max(left, std::abs(number));
  EXPECT_TRUE(submanifold || left == 0) << "an output is missing";

  // Backward: what is linear has its adjoint as gradient, to the last number.
  const auto gradient = random_numbers<T>(output.size(), seed + 3);
  const auto of_input = input_gradient(map.transposed(), channels, gradient, weights);
  const auto of_weights = weight_gradient(map.view(), channels, input, gradient);
  const auto of_bias = bias_gradient(map.view(), channels, gradient);
  const double much = close * static_cast<double>(output.size() + 1);
  const auto other_input = random_numbers<T>(input.size(), seed + 4),
             other_weights = random_numbers<T>(weight_size, seed + 5);
  EXPECT_NEAR(dot(gradient, convolved(map.view(), channels, other_input, weights)),
              dot(of_input, other_input), much);
  EXPECT_NEAR(dot(gradient, convolved(map.view(), channels, input, other_weights)),
              dot(of_weights, other_weights), much);
  const auto rows = download(map.neighbours());
  const double close_sum = 10 * closeness<sum_of<T>>();
  for (u32 k = 0; k < map.volume(); ++k) {  // and number by number
    for (std::size_t i = 0; i < channels.in; i += 5) {
      const std::size_t c = (i + k) % channels.out;
      double sum = 0;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const u32 row = rows[k * map.neighbour_stride() + o];
        if (row != roost::no_row<u32>)
          sum += number(input[row * channels.in + i]) * number(gradient[o * channels.out + c]);
      }
      EXPECT_NEAR(sum, number(of_weights[(k * channels.in + i) * channels.out + c]), close_sum);
    }
  }
  for (std::size_t c = 0; c < channels.out; ++c) {
    double sum = 0;
    for (std::size_t o = 0; o < outputs.size(); ++o) sum += number(gradient[o * channels.out + c]);
    EXPECT_NEAR(sum, number(of_bias[c]), close_sum);
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
#if defined(__CUDACC__)
using all_kinds = testing::Types<both<3, float>, both<2, double>, both<3, __half>, both<3, __nv_bfloat16>>;
#else
using all_kinds = axis<both<3, float>, both<2, double>, both<3, double>>;
#endif
TYPED_TEST_SUITE(sparse_conv, all_kinds);

TYPED_TEST(sparse_conv, is_dense_convolution_and_its_gradients_are_adjoints) {
  constexpr int d = TypeParam::axes;
  using type = typename TypeParam::type;
  const index_of<d> index(test_place(), upload(random_voxels<d>(d == 2 ? 90 : 500, 1, 12, -6)));
  u64 seed = 1;
  std::vector<conv_channels> layers{{1, 1}, {3, 5}, {17, 33}, {16, 4}};
  if (!on_host) layers.insert(layers.end(), {{32, 32}, {40, 70}, {7, 130}});
  for (const auto& channels : layers) {
    for (const bool by_masks : {false, true}) {
      if (on_host && by_masks) continue;
      check_layer<d, type>(index, roost::submanifold(test_place(), index, {}, {.by_masks = by_masks}),
                           channels, ++seed);
    }
    for (const auto& shape : {kernel_shape<d>::cube(2, 2), uneven_shape<d>()}) {
      check_layer<d, type>(
          index, roost::convolution(test_place(), index, shape, {.inverse = true, .by_masks = true}),
          channels, ++seed);
    }
  }
  const auto wide = kernel_shape<d>::cube(5, 1, 2);
  check_layer<d, type>(index, roost::submanifold(test_place(), index, wide, {.by_masks = true}), {2, 3}, 50);
  check_layer<d, type>(index,
                       roost::submanifold(test_place(), index, kernel_shape<d>::cube(2), {.inverse = true}),
                       {2, 3}, 60);
}

TYPED_TEST(sparse_conv, transposed_is_the_adjoint_of_the_convolution_with_turned_weights) {
  constexpr int d = TypeParam::axes;
  using type = typename TypeParam::type;
  const index_of<d> index(test_place(), upload(random_voxels<d>(300, 3, 12, -6)));
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
  EXPECT_NEAR(dot(raised, fine), dot(coarse, convolved(map.view(), down, fine, turned)),
              closeness<type>() * 100);
  // It is the same sum, in the same order.
  EXPECT_EQ(numbers(input_gradient(map.transposed(), down, coarse, turned)), numbers(raised));
  // Generative: conv_transpose3d of ones, where each output counts the inputs that reach it.
  const auto made = roost::generative(test_place(), index, kernel_shape<d>::cube(3, 2));
  const std::vector<type> one(index.size(), type(1.f)), all(made.volume(), type(1.f));
  const auto reached = numbers(convolved(made.view(), {1, 1}, one, all));
  EXPECT_GE(*std::min_element(reached.begin(), reached.end()), 1);
  EXPECT_EQ(dot(reached, std::vector<double>(reached.size(), 1)),
            static_cast<double>(index.size() * made.volume()));
}

std::vector<place_type> places() {
#if defined(__CUDACC__)
  return {test_place(), test_place()};
#else
  return {roost::host(1), roost::host(2)};
#endif
}

TEST(sparse_conv_results, are_the_same_with_any_threads_order_and_neighbours_of_rows) {
  const voxels<3> input = shell<3>(sanitized ? 7 : 11);
  const conv_channels channels{20, 24};
  const auto weights = random_numbers<float>(27 * 480, 1), bias = random_numbers<float>(24, 2);
  std::map<std::array<i64, 4>, std::vector<float>> first;
  std::vector<float> gradient_of_block;
  bool by_masks = false;
  u64 seed = 0;
  for (const auto row_order : {roost::order::block, roost::order::input, roost::order::block}) {
    for (const auto& place : places()) {
      const index_of<3> index(place, upload(shuffled(input, ++seed)), {.order = row_order});
      const auto map = roost::submanifold(place, index, {}, {.by_masks = by_masks});
      by_masks = !by_masks;
      const voxels<3> coordinates = voxels_of(index);
      std::vector<float> features;
      for (const auto& c : coordinates) {
        const auto mine =
            random_numbers<float>(20, static_cast<u64>(c.at[0] * 1000 + c.at[1] * 100 + c.at[2]));
        features.insert(features.end(), mine.begin(), mine.end());
      }
      const auto output = convolved(map.view(), channels, features, weights, bias, place);
      for (std::size_t o = 0; o < index.size(); ++o) {
        const auto begin = output.begin() + static_cast<std::ptrdiff_t>(o * 24);
        const std::vector<float> mine(begin, begin + 24);
        const auto [at, fresh] = first.emplace(numbers_of(coordinates[o]), mine);
        ASSERT_EQ(at->second, mine) << fresh;
      }
      if (row_order == roost::order::input) continue;
      const auto of_weights = weight_gradient(map.view(), channels, features, output, place);
      if (gradient_of_block.empty()) gradient_of_block = of_weights;
      EXPECT_EQ(of_weights, gradient_of_block);
    }
  }
}

TEST(sparse_conv_results, have_each_row_in_the_gradient_of_the_bias) {
  const index_of<3> index(test_place(), upload(random_voxels<3>(3000, 7, 40)));
  const auto map = roost::submanifold(test_place(), index, kernel_shape<3>::cube(1));
  std::vector<float> gradient(index.size() * 3), expected(3);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(1 + i % 7);  // whole numbers have exact sums
    expected[i % 3] += gradient[i];
  }
  EXPECT_EQ(bias_gradient(map.view(), {1, 3}, gradient), expected);
}

TEST(sparse_conv_results, have_what_is_not_finite_only_where_it_was_read) {
  const index_of<3> index(test_place(), upload(random_voxels<3>(800, 5, 12)));
  const auto map = roost::submanifold(test_place(), index);
  auto input = random_numbers<float>(index.size() * 3, 1);
  const auto weights = random_numbers<float>(27 * 12, 2);
  const auto before = convolved(map.view(), {3, 4}, input, weights);
  const u32 bad = 123;
  input[bad * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  const auto after = convolved(map.view(), {3, 4}, input, weights);
  const auto neighbours = download(map.neighbours());
  for (std::size_t o = 0; o < index.size(); ++o) {
    bool reads = false;
    for (u32 k = 0; k < 27; ++k) reads |= neighbours[k * map.neighbour_stride() + o] == bad;
    for (std::size_t c = o * 4; c < o * 4 + 4; ++c) {
      EXPECT_EQ(std::isnan(after[c]), reads);
      EXPECT_TRUE(reads || after[c] == before[c]);
    }
  }
}

#if !defined(__CUDACC__)
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
  const auto view = map.view();
  backend::convolve(narrow(), test_place(),
                    roost::detail::conv_operands<double>{.map = view,
                                                         .outputs = index.size(),
                                                         .depth = 7,
                                                         .columns = 9,
                                                         .turned = false,
                                                         .input = input.data(),
                                                         .weights = weights.data(),
                                                         .bias = nullptr,
                                                         .output = result.data()});
  backend::weight_gradient(narrow(), test_place(),
                           roost::detail::weight_gradient_operands<double, double>{
                               view, index.size(), channels, input.data(), wide.data(), of_weights.data()});
  roost::sparse_conv_weight_gradient(test_place(), map.view(), channels, input, wide, expected);
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(result[i], wide[i], 1e-12);
  for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(of_weights[i], expected[i], 1e-10);
}
#else
/// The convolution of a few channels in other numbers, of a large layer: many groups of rows and parts of
/// sums.
template <class T>
void check_large_layer(const conv_channels& channels, double close) {
  const index_of<3> index(test_place(), upload(shell<3>(sanitized ? 12 : 60)));
  const auto map = roost::submanifold(test_place(), index, {}, {.by_masks = true});
  const std::size_t n = index.size(), weight_size = 27 * channels.in * channels.out;
  const auto input = random_numbers<T>(n * channels.in, 1), weights = random_numbers<T>(weight_size, 2),
             gradient = random_numbers<T>(n * channels.out, 3);
  const auto widened = [](const std::vector<T>& from) { return numbers(from); };
  const conv_channels exact{channels.in, channels.out};
  const auto compare = [&](const auto& found, const std::vector<double>& expected, double allowed) {
    ASSERT_EQ(found.size(), expected.size());
    double furthest = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      furthest = std::max(furthest, std::abs(number(found[i]) - expected[i]));
    EXPECT_LT(furthest, allowed);
  };
  compare(convolved(map.view(), channels, input, weights),
          convolved(map.view(), exact, widened(input), widened(weights)), close);
  compare(input_gradient(map.transposed(), channels, gradient, weights),
          input_gradient(map.transposed(), exact, widened(gradient), widened(weights)), close);
  compare(weight_gradient(map.view(), channels, input, gradient),
          weight_gradient(map.view(), exact, widened(input), widened(gradient)), channels.tf32 ? 0.2 : 0.05);
  compare(bias_gradient(map.view(), channels, gradient), bias_gradient(map.view(), exact, widened(gradient)),
          0.05);
}

TEST(sparse_conv_results, are_those_of_doubles) {
  for (const std::size_t channels : {16, 64, 128, 144}) {
    check_large_layer<__half>({channels, channels}, 0.05);
    check_large_layer<__nv_bfloat16>({channels, channels}, 0.4);
    check_large_layer<float>({channels, channels}, 1e-3);
    check_large_layer<float>({channels, channels, true}, 0.05);
  }
}
#endif

TEST(sparse_conv_sizes, may_be_nothing_one_and_what_a_fixed_capacity_holds) {
  const std::vector<float> nothing;
  const std::vector<float> weights = random_numbers<float>(27 * 2, 1);
  const index_of<3> empty;
  const auto none = roost::submanifold(test_place(), empty);
  EXPECT_TRUE(convolved(none.view(), {1, 2}, nothing, weights).empty());
  EXPECT_EQ(weight_gradient(none.view(), {1, 2}, nothing, nothing), std::vector<float>(54));
  EXPECT_EQ(bias_gradient(none.view(), {1, 2}, nothing), std::vector<float>(2));
  EXPECT_TRUE(input_gradient(none.transposed(), {1, 2}, nothing, weights).empty());
  const roost::kernel_map<3> no_map;
  EXPECT_TRUE(convolved(no_map.view(), {1, 2}, nothing, weights).empty());

  const index_of<3> one(test_place(), upload(voxels<3>{{7, {-1, 2, 1 << 30}}}));
  const auto alone = roost::submanifold(test_place(), one);
  EXPECT_EQ(convolved(alone.view(), {1, 2}, {3.f}, weights, {1.f, 2.f}),
            (std::vector{1 + 3 * weights[26], 2 + 3 * weights[27]}));  // only the centre

  // Outputs that nothing reaches have the bias.
  const auto lonely = roost::convolution(test_place(), empty, one, kernel_shape<3>::cube(3));
  EXPECT_EQ(convolved(lonely.view(), {1, 2}, nothing, weights, {4.f, 5.f}), (std::vector{4.f, 5.f}));

  index_of<3> fixed(test_place(), {.capacity = 300});
  auto map = roost::submanifold(test_place(), fixed, {}, {.by_masks = true});
  const auto some = upload(random_voxels<3>(200, 9, 8));
  fixed.rebuild_async(test_place(), some);
  map.rebuild_async(test_place(), fixed);
  fixed.finish(test_place());
  const index_of<3> same(test_place(), some);
  const auto features = random_numbers<float>(same.size(), 4);
  std::vector<float> padded = features;
  padded.resize(on_host ? features.size() : 300);  // cuda wants room for the most
  auto memory = upload(std::vector<float>(on_host ? same.size() * 2 + 1 : 601, 77.f));
  roost::sparse_conv(test_place(), map.view(), {1, 2}, upload(padded), upload(weights), memory);
  auto output = download(memory);
  for (std::size_t i = same.size() * 2; i < output.size(); ++i) EXPECT_EQ(output[i], 77.f);
  output.resize(same.size() * 2);
  EXPECT_EQ(output, convolved(roost::submanifold(test_place(), same).view(), {1, 2}, features, weights));
}

TEST(sparse_conv_errors, say_what_is_wrong) {
  using roost::invalid_argument;
  const index_of<3> index(test_place(), upload(random_voxels<3>(50, 1, 100)));
  const auto map = roost::submanifold(test_place(), index);
  const std::size_t n = index.size();
  const auto zeros = [](std::size_t count) { return upload(std::vector<float>(count)); };
  const auto input = zeros(n * 2), weights = zeros(27 * 6), bias = zeros(3);
  auto output = zeros(n * 3);
  const auto run = [&](const auto& view, conv_channels c, const auto& x, const auto& w, auto& y,
                       const memory_of<float>& b) {
    roost::sparse_conv(test_place(), view, c, x, w, y, b.span());
  };
  run(map.view(), {2, 3}, input, weights, output, bias);
  for (const conv_channels channels : {conv_channels{0, 3}, conv_channels{2, 0}, conv_channels{2, 65537}})
    expect_error<invalid_argument>([&] { run(map.view(), channels, input, weights, output, bias); },
                                   {"roost::sparse_conv", "channels", "1 to 65536"});
  const auto few = zeros(n * 2 - 1);
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, few, weights, output, bias); },
                                 {"sparse_conv", "99 numbers of input", "50 rows of 2"});
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, few, output, bias); },
                                 {"weights", "27 rows of 6"});
  auto small = zeros(n * 3 - 1);
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, weights, small, bias); }, {"output"});
  expect_error<invalid_argument>([&] { run(map.view(), {2, 3}, input, weights, output, zeros(1)); },
                                 {"bias", "1 rows of 3"});
  const auto down = roost::convolution(test_place(), index, kernel_shape<3>::cube(2, 2), {.pairs = true});
  const auto coarse = zeros(down.output_size() * 2);
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
  const index_of<3> index(test_place(), upload(random_voxels<3>(500, 1, 10)));
  const auto map = roost::submanifold(test_place(), index);
  const auto input = upload(std::vector<float>(index.size() * 32)),
             weights = upload(std::vector<float>(27 * 1024));
  auto output = upload(std::vector<float>(index.size() * 32)),
       of_weights = upload(std::vector<float>(weights.size()));
  expect_refusals([&](const place_type& place) {
    roost::sparse_conv(place, map.view(), {32, 32}, input, weights, output);
    roost::sparse_conv_weight_gradient(place, map.view(), {32, 32}, input, output, of_weights);
  });
}

}  // namespace
}  // namespace test
