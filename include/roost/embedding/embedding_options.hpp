#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// \file
/// Options, batches and statistics of embedding_table, and its 16-bit numbers.

namespace roost {

/// A number of 16 bits: the upper half of a float. Its bits are those of __nv_bfloat16 and torch.bfloat16.
struct bfloat16 {
  std::uint16_t bits;
};

/// An IEEE number of 16 bits. Its bits are those of __half and torch.float16.
struct float16 {
  std::uint16_t bits;
};

/// Which key loses its row when a new key finds no free row in its bucket. Keys of the running step never do.
enum class eviction : std::uint8_t {
  none,          ///< no key: the new one gets no row (embedding_counts::unplaced), until reserve() makes room
  least_recent,  ///< the one whose last step is longest ago (LRU)
  least_frequent,  ///< the one with the fewest lookups since it got its row (LFU), counted exactly
  least_score      ///< the one with the least score of yours
};

/// How rows learn. The optimizer's state for a row is stored beside it, as floats. The gradients of a key are
/// first added up in the order of the batch.
enum class optimizer : std::uint8_t {
  sgd,              ///< w -= rate * g
  adagrad,          ///< s += g * g; w -= rate * g / (sqrt(s) + epsilon)
  rowwise_adagrad,  ///< the same with one s for a row, to which the mean of g * g is added
  adam              ///< as torch.optim.Adam; its number of steps is that of the table's updates
};

/// The parameters of optimizers. They may change between steps (embedding_table::set_rates).
struct optimizer_rates {
  float learning_rate = 0.01f;
  float beta1 = 0.9f, beta2 = 0.999f;  ///< adam
  float epsilon = 1e-8f;               ///< adam, adagrad
  float weight_decay = 0;              ///< g += weight_decay * w
};

/// The numbers of a new row: a function of the seed, the key and the column, so that a key that lost its row
/// and returns begins as it did before.
struct row_initializer {
  /// A normal distribution, a uniform one, or one constant.
  enum class kind : std::uint8_t { normal, uniform, constant };
  kind is = kind::normal;
  float a = 0;  ///< the mean, the least number, or the constant
  float b = 1;  ///< the standard deviation, or the greatest number
};

/// Options of embedding_table.
struct embedding_options {
  std::uint32_t dim = 0;     ///< numbers in a row, 1 to 65,536
  std::size_t capacity = 0;  ///< rows, 1 to 2^31 - 2^12; rounded up to whole buckets of 128
  /// The number of rows in memory of the place, if not all: a cache of the rows used last, while all rows are
  /// in host memory, pinned for a GPU. Rows that a step looks up enter the cache; rows for which it has no
  /// room are read and changed in host memory. Results are the same as without it. 0: all. Rounded up to 32.
  std::size_t cached_rows = 0;
  roost::eviction eviction = eviction::least_recent;
  roost::optimizer optimizer = optimizer::adam;
  optimizer_rates rates = {};
  row_initializer initializer = {};
  /// A key gets a row once it has been looked up this many times without one; before that it is looked up as
  /// an absent key. Lookups are counted in a sketch (two counters of 4 bytes for each row), which may count
  /// too many, and which halves each counter once every 1024 steps.
  std::uint32_t admit = 1;
  /// Whether a key is an id and the number of a feature below 2^16, for several features in one table. Takes
  /// 2 bytes for each row.
  bool features = false;
  /// How many keys that lost their rows are remembered until take_evicted() is called.
  std::size_t keep_evicted = 0;
  std::uint64_t seed = 0;  ///< of the hash, and of new rows
};

/// What an embedding_table has counted since it was made.
struct embedding_counts {
  std::uint64_t steps = 0;       ///< training lookups
  std::uint64_t updates = 0;     ///< of the optimizer
  std::uint64_t evicted = 0;     ///< keys that lost their rows to others
  std::uint64_t unplaced = 0;    ///< lookups of keys that got no row, as their bucket had none to give
  std::uint64_t unadmitted = 0;  ///< lookups of keys that were not admitted yet
  std::uint64_t forgotten = 0;   ///< evicted keys for which keep_evicted had no room
};

/// How the rows of a bag become one.
enum class bag_pooling : std::uint8_t { sum, mean };

/// The ids of a call, in memory of the place. Ids may be any numbers; none is reserved.
struct embedding_batch {
  std::span<const std::int64_t> ids = {};
  /// The feature of each id. If it is empty, all ids are of `feature`.
  std::span<const std::uint16_t> features = {};
  std::uint16_t feature = 0;
  /// The score of each id, for eviction::least_score. The greatest score of a key in the batch counts.
  std::span<const std::uint32_t> scores = {};
  /// Bags of ids: bag b has ids [offsets[b], offsets[b + 1]); the first offset is 0, the last the number of
  /// ids. Each bag has one row in the results. Without offsets, each id has one.
  std::span<const std::int64_t> offsets = {};
  bag_pooling pooling = bag_pooling::sum;

  /// The number of rows in the results.
  std::size_t rows() const { return offsets.empty() ? ids.size() : offsets.size() - 1; }
};

}  // namespace roost
