#include <cmath>

#include "support/embedding.hpp"

// The sums of gradients of an embedding_table: which gradients belong to a row, and that each row changes
// once.

namespace test {
namespace {

TEST(embedding_update, gradients_of_ids_without_rows_change_nothing) {
  // A power of two of slots, all of them taken. A second change of a row would divide by a larger root.
  roost::embedding_options options{.dim = 1,
                                   .capacity = 256,
                                   .eviction = roost::eviction::none,
                                   .optimizer = roost::optimizer::adagrad,
                                   .initializer = {roost::row_initializer::kind::constant, 0, 0}};
  options.rates.learning_rate = 1;
  table t(test_place(), options);
  const std::size_t n = 500;
  ids_type ids(2 * n);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<i64>(i % n);
  const auto batch = batch_of(ids);
  const auto slots = inserted(t, batch);
  ASSERT_EQ(t.size(test_place()), 256u);
  std::vector<float> gradients(2 * n, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slots[i] == none) gradients[i] = -1000;
  }
  update(t, batch, slots, gradients);
  const auto rows = gathered(t, batch, slots);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], slots[i] == none ? 0 : -1) << slots[i];
}

TEST(embedding_update, runs_of_any_length_that_begin_anywhere_are_summed_once) {
  for (const u32 dim : {1u, 8u}) {
    roost::embedding_options options{.dim = dim,
                                     .capacity = 128,
                                     .optimizer = roost::optimizer::sgd,
                                     .initializer = {roost::row_initializer::kind::constant, 0, 0}};
    options.rates.learning_rate = 1;
    table t(test_place(), options);
    const auto keys = batch_of({1, 2, 3});
    auto slots = inserted(t, keys);
    std::ranges::sort(slots);
    std::vector<float> sums(3);
    for (std::size_t before = 0; before <= 33; before += sanitized ? 3 : 1) {
      for (const std::size_t length :
           {1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 32 * 17, 32 * 18}) {
        const std::size_t counts[] = {before, length, 40};
        std::vector<u32> of_ids;
        for (std::size_t k = 0; k < 3; ++k) {
          of_ids.insert(of_ids.end(), counts[k], slots[k]);
          sums[k] -= static_cast<float>(counts[k]);
        }
        update(t, batch_of(ids_type(of_ids.size())), of_ids, std::vector<float>(of_ids.size() * dim, 1));
        const auto rows = gathered(t, keys, slots);
        for (std::size_t i = 0; i < rows.size(); ++i)
          ASSERT_EQ(rows[i], sums[i / dim]) << length << " from " << before;
      }
    }
  }
}

}  // namespace
}  // namespace test
