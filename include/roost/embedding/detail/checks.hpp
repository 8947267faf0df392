#pragma once

#include "roost/embedding/detail/gather.hpp"
#include "roost/error.hpp"

// Arguments of calls: what kernels see of them, if they are right.

namespace roost::detail {

/// Throws unless `right` holds; `what`: the function, after two colons.
template <class... Parts>
void expect(bool right, const char* what, const Parts&... parts) {
  if (!right) raise<invalid_argument>({"roost::embedding_table", what, ": ", parts...});
}

inline const embedding_options& checked(const embedding_options& options) {
  constexpr std::size_t most = (std::size_t{1} << 31) - (1 << 12);
  expect(options.dim >= 1 && options.dim <= 65536, "", "rows of ", options.dim, " numbers; give 1 to 65536");
  expect(options.capacity >= 1 && options.capacity <= most, "", "a capacity of ", options.capacity,
         " rows; give 1 to ", most);
  expect(options.admit >= 1, "", "keys are admitted at lookup 0; give admit = 1 or more");
  return options;
}

inline embedding_ids ids_of(const embedding_options& options, const embedding_batch& batch, std::size_t slots,
                            const char* what) {
  const std::size_t n = batch.ids.size(), features = batch.features.size(), scores = batch.scores.size();
  expect(slots == n, what, slots, " slots for ", n, " ids");
  expect(n < std::size_t{1} << 30, what, n, " ids at a time; give fewer than 2^30");
  expect(features == 0 || features == n, what, features, " features for ", n, " ids");
  expect(options.features || (batch.feature == 0 && features == 0), what,
         "a table without features; make it with options.features");
  expect(scores == 0 || scores == n, what, scores, " scores for ", n, " ids");
  return {.ids = batch.ids.data(),
          .n = n,
          .features = features == 0 ? nullptr : batch.features.data(),
          .feature = batch.feature,
          .scores = scores == 0 ? nullptr : batch.scores.data(),
          .seed = options.seed};
}

inline bags_of_ids bags_of(const embedding_options& options, const embedding_batch& batch,
                           std::size_t numbers, const char* what) {
  expect(numbers == batch.rows() * options.dim, what, numbers, " numbers for ", batch.rows(), " rows of ",
         options.dim);
  const bool in_bags = !batch.offsets.empty();
  return {in_bags ? batch.offsets.data() : nullptr, batch.rows(),
          in_bags && batch.pooling == bag_pooling::mean};
}

/// Whole rows, one after the other.
template <class Value>
embedding_rows<Value> rows_in(const embedding_rows<Value>& like, std::span<const std::byte> bytes,
                              std::size_t n, const char* what) {
  expect(bytes.size() == n * like.stride, what, bytes.size(), " bytes for ", n, " rows of ", like.stride);
  return {.data = const_cast<std::byte*>(bytes.data()), .stride = like.stride};
}

}  // namespace roost::detail
