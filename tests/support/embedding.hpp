#pragma once

#include <roost/embedding/embedding_table.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// What the tests of embedding_table share: its calls, with columns of the host.

namespace test {

using table = roost::embedding_table<place_type>;
using i64 = std::int64_t;
using ids_type = std::vector<i64>;

inline constexpr u32 none = ~0u;

template <class T>
auto here(const std::vector<T>& all) {
  return roost::copy_to(test_place(), all);
}

/// A batch in memory of the place.
struct batch_here {
  roost::array<i64, place_type> ids;
  roost::array<u16, place_type> features;
  roost::array<u32, place_type> scores;
  roost::array<i64, place_type> offsets;
  roost::embedding_batch get() const {
    return {
        .ids = ids.span(), .features = features.span(), .scores = scores.span(), .offsets = offsets.span()};
  }
};
inline batch_here batch_of(const ids_type& ids, const std::vector<u16>& features = {},
                           const std::vector<u32>& scores = {}, const ids_type& offsets = {}) {
  return {here(ids), here(features), here(scores), here(offsets)};
}

inline std::vector<u32> inserted(table& t, const batch_here& batch, u32 running = 0) {
  roost::array<u32, place_type> slots(test_place(), batch.ids.size());
  t.insert(test_place(), batch.get(), slots.span(), running);
  return roost::copy_to_host(test_place(), slots);
}
inline std::vector<u32> found(const table& t, const batch_here& batch) {
  roost::array<u32, place_type> slots(test_place(), batch.ids.size());
  t.find(test_place(), batch.get(), slots.span());
  return roost::copy_to_host(test_place(), slots);
}
inline std::vector<float> gathered(const table& t, const batch_here& batch, const std::vector<u32>& slots) {
  roost::array<float, place_type> out(test_place(), batch.get().rows() * t.options().dim);
  t.gather(test_place(), batch.get(), here(slots).span(), out.span());
  return roost::copy_to_host(test_place(), out);
}
inline void update(table& t, const batch_here& batch, const std::vector<u32>& slots,
                   const std::vector<float>& g) {
  t.update(test_place(), batch.get(), here(slots).span(), here(g).span());
}

}  // namespace test
