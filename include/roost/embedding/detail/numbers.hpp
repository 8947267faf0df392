#pragma once

#include <cmath>
#include <cstring>

#include "roost/detail/place/config.hpp"
#include "roost/embedding/embedding_options.hpp"
#include "roost/hash.hpp"

// Numbers of rows: in pieces of four where their addresses allow it; as floats wherever they are computed.

namespace roost::detail {

ROOST_FN std::uint32_t bits_of_float(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
ROOST_FN float float_of_bits(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

ROOST_FN float to_float(float x) { return x; }
ROOST_FN float to_float(bfloat16 x) { return float_of_bits(std::uint32_t{x.bits} << 16); }
ROOST_FN float to_float(float16 x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
  if (exponent == 0) return float_of_bits(bits_of_float(static_cast<float>(fraction) * 0x1p-24f) | sign);
  return float_of_bits(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

/// The nearest number; of two equally near, the even one.
template <class Value>
ROOST_FN Value from_float(float x) {
  const std::uint32_t bits = bits_of_float(x), size = bits & 0x7fffffff;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if constexpr (std::is_same_v<Value, float>) {
    return x;
  } else if constexpr (std::is_same_v<Value, bfloat16>) {
    if (size > 0x7f800000) return {static_cast<std::uint16_t>(sign | 0x7fc0)};
    return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  } else {
    std::uint32_t half;
    if (size >= 0x47800000) {  // from 2^16 on
      half = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    } else if (size < 0x38800000) {  // below 2^-14: multiples of 2^-24, like floats in [0.5, 1)
      half = bits_of_float(float_of_bits(size) + 0.5f) - bits_of_float(0.5f);
    } else {
      half = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    }
    return {static_cast<std::uint16_t>(sign | half)};
  }
}

/// Adjacent numbers of a row.
template <int Width>
struct floats {
  float x[Width];
};

template <int Width, class Value>
struct alignas(Width * sizeof(Value)) stored_numbers {
  Value x[Width];
};

/// Numbers [Width * piece, Width * (piece + 1)) of a row.
template <int Width, class Value>
ROOST_FN floats<Width> load_piece(const Value* row, std::size_t piece) {
  const auto stored = reinterpret_cast<const stored_numbers<Width, Value>*>(row)[piece];
  floats<Width> result;
  ROOST_UNROLL
  for (int i = 0; i < Width; ++i) result.x[i] = to_float(stored.x[i]);
  return result;
}
template <class Value, int Width>
ROOST_FN stored_numbers<Width, Value> rounded(const floats<Width>& numbers) {
  stored_numbers<Width, Value> stored;
  ROOST_UNROLL
  for (int i = 0; i < Width; ++i) stored.x[i] = from_float<Value>(numbers.x[i]);
  return stored;
}
template <int Width, class Value>
ROOST_FN void store_piece(Value* row, std::size_t piece, const floats<Width>& numbers) {
  reinterpret_cast<stored_numbers<Width, Value>*>(row)[piece] = rounded<Value>(numbers);
}

/// f(4) if rows of `dim` numbers at all these addresses can be read in pieces of four, otherwise f(1).
template <class F, class... Value>
void by_width(std::size_t dim, const F& f, const Value*... numbers) {
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(numbers) % (4 * sizeof(Value)) == 0) && ...);
  if (dim % 4 == 0 && aligned) {
    f(std::integral_constant<int, 4>());
  } else {
    f(std::integral_constant<int, 1>());
  }
}

/// A number of a key's initial row.
ROOST_FN float first_number(const row_initializer& how, std::uint64_t of_key, std::uint64_t column) {
  if (how.is == row_initializer::kind::constant) return how.a;
  const std::uint64_t bits = mix64(of_key + column * 0x9e3779b97f4a7c15ull, 0x5bd1e995u);
  const float u = static_cast<float>(bits >> 40) * 0x1p-24f;  // [0, 1)
  if (how.is == row_initializer::kind::uniform) return smaller(how.a + (how.b - how.a) * u, how.b);
  // Box and Muller, A Note on the Generation of Random Normal Deviates, 1958
  const float v = static_cast<float>(bits & 0xffffffffu) * 0x1p-32f;
  return how.a + how.b * sqrtf(-2 * logf(1 - u)) * cosf(6.2831853f * v);
}

}  // namespace roost::detail
