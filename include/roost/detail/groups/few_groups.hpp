#pragma once

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <vector>

#include "roost/detail/groups/reduce_lists.hpp"
#include "roost/hash.hpp"

// Groups of few distinct keys on the host, without moving rows: these are numbered by a table that stays in
// the cache, and values are combined where they lie.

namespace roost::detail {

/// Distinct keys with numbers, by linear probing.
template <class Key>
class key_table {
 public:
  static constexpr std::uint32_t none = 0xFFFF, probes_most = 64;

  /// For so many keys at first. `any`: one, for slots without.
  key_table(std::size_t keys, const Key& any)
      : keys_(std::bit_ceil(smaller<std::size_t>(16 * keys, 1 << 17) + 64), any) {
    clear(keys_.size());
  }

  /// The number of a key, or none.
  std::uint32_t find(const Key& key) const {
    for (std::size_t s = start(key);; s = (s + 1) & mask_) {
      if (numbers_[s] == none || same_key(keys_[s], key)) return numbers_[s];
    }
  }
  /// The number of a key, which may be new. None if so many collide that somebody may have chosen them.
  std::uint32_t insert(const Key& key) {
    std::size_t s = start(key);
    for (std::uint32_t k = 0; numbers_[s] != none; ++k, s = (s + 1) & mask_) {
      if (same_key(keys_[s], key)) return numbers_[s];
      if (k == probes_most) return none;
    }
    keys_[s] = key;
    numbers_[s] = static_cast<std::uint16_t>(distinct_.size());
    distinct_.push_back(key);
    if (2 * distinct_.size() > numbers_.size()) grow();
    return static_cast<std::uint32_t>(distinct_.size() - 1);
  }
  /// Ascending by number.
  const std::vector<Key>& distinct() const { return distinct_; }

 private:
  std::size_t start(const Key& key) const { return static_cast<std::size_t>(hash_of(key)) & mask_; }
  void clear(std::size_t slots) {
    keys_.resize(slots, keys_[0]);
    numbers_.assign(slots, static_cast<std::uint16_t>(none));
    mask_ = slots - 1;
  }
  void grow() {
    clear(2 * numbers_.size());
    for (std::size_t n = 0; n < distinct_.size(); ++n) {
      std::size_t s = start(distinct_[n]);
      while (numbers_[s] != none) s = (s + 1) & mask_;
      keys_[s] = distinct_[n];
      numbers_[s] = static_cast<std::uint16_t>(n);
    }
  }

  std::vector<Key> keys_, distinct_;
  std::vector<std::uint16_t> numbers_;
  std::size_t mask_ = 0;
};

/// Rows of few groups.
struct few_rows {
  static constexpr std::size_t most = std::size_t{1} << 14;
  static constexpr std::size_t rows_least = std::size_t{1} << 17;

  array<std::uint16_t, host> numbers;  // of each row's group
  std::size_t size = 0;                // of the groups
  std::size_t chunk = 0, chunks = 0;   // into which rows are divided
  std::vector<std::uint64_t> before;   // [chunk][group]: rows of a group in earlier chunks; and in all

  /// The rows of each group.
  const std::uint64_t* counts() const { return before.data() + chunks * size; }
};

/// And their keys.
template <class Key>
struct few_groups {
  array<Key, host> keys;  // distinct, in ascending order of their hashes
  few_rows rows;
};

/// The distinct keys of a sample of rows; nothing if they, or those that it has missed, are many.
template <class Key, class KeyAt>
std::optional<key_table<Key>> sample_few(std::size_t n, const KeyAt& key_at) {
  constexpr std::size_t first_look = 8192;
  const std::size_t sample = std::clamp<std::size_t>(n / 64, first_look, std::size_t{1} << 17);
  key_table<Key> table(few_rows::most / 16, key_at(0));
  std::vector<std::uint32_t> seen;
  for (std::size_t k = 0; k < sample; ++k) {
    const std::uint32_t number = table.insert(key_at(k * (n / sample)));
    if (number == table.none || table.distinct().size() > few_rows::most) return std::nullopt;
    if (number == seen.size()) seen.push_back(0);
    ++seen[number];
    if (k == first_look && seen.size() > first_look / 5 * 4) return std::nullopt;
  }
  // As many rows have a key that the sample has not as it has keys of one row (Good, 1953).
  const auto once = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), 1u));
  if (once > sample / 64) return std::nullopt;
  key_table<Key> small(table.distinct().size(), key_at(0));
  for (const Key& key : table.distinct()) small.insert(key);
  return small;
}

/// Writes the number of each row's key, and adds keys that the table has not; false if these are many.
template <class Key, class KeyAt>
bool write_numbers_of_few(const host& cpu, key_table<Key>& table, std::size_t n, const KeyAt& key_at,
                          std::uint16_t* numbers) {
  constexpr std::size_t block = 1 << 14;
  const std::size_t blocks = ceil_div(n, block);
  std::vector<std::uint32_t> missed(blocks);
  std::atomic<std::size_t> all_missed{0};
  cpu.for_each(blocks, [&](std::size_t b) {
    if (all_missed.load(std::memory_order_relaxed) > n / 32) return;
    std::uint32_t here = 0;
    for (std::size_t i = b * block, end = smaller(n, i + block); i < end; ++i) {
      const std::uint32_t number = table.find(key_at(i));
      numbers[i] = static_cast<std::uint16_t>(number);
      here += number == table.none;
    }
    missed[b] = here;
    all_missed.fetch_add(here, std::memory_order_relaxed);
  });
  if (all_missed.load() > n / 32) return false;
  for (std::size_t b = 0; b < blocks; ++b) {
    if (missed[b] == 0) continue;
    for (std::size_t i = b * block, end = smaller(n, i + block); i < end; ++i) {
      if (numbers[i] != table.none) continue;
      const std::uint32_t number = table.insert(key_at(i));
      if (number == table.none || table.distinct().size() > few_rows::most) return false;
      numbers[i] = static_cast<std::uint16_t>(number);
    }
  }
  return true;
}

/// Numbers keys anew, in the order of their hashes, and counts the rows of each in each chunk.
template <class Key>
void finish_few(const host& cpu, const std::vector<Key>& distinct, few_groups<Key>& groups) {
  const std::size_t n = groups.rows.numbers.size(), size = distinct.size();
  std::vector<std::uint16_t> order(size), rank(size);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return hash_of(distinct[a]) < hash_of(distinct[b]);
  });
  groups.keys = array<Key, host>(cpu, size);
  for (std::size_t g = 0; g < size; ++g) {
    groups.keys[g] = distinct[order[g]];
    rank[order[g]] = static_cast<std::uint16_t>(g);
  }
  // At least 64 rows a group and chunk, so that what chunks keep of each group is less than the values.
  const auto threads = static_cast<std::size_t>(cpu.threads());
  few_rows& rows = groups.rows;
  rows.size = size;
  rows.chunks = std::clamp<std::size_t>(n / 64 / size, 1, threads == 1 ? 1 : 4 * threads);
  rows.chunk = ceil_div(n, rows.chunks);
  rows.before.assign((rows.chunks + 1) * size, 0);
  std::uint16_t* const numbers = rows.numbers.data();
  cpu.for_each(rows.chunks, [&](std::size_t c) {
    std::uint64_t* const counts = rows.before.data() + (c + 1) * size;
    const std::size_t end = smaller(n, (c + 1) * rows.chunk);
    for (std::size_t i = smaller(n, c * rows.chunk); i < end; ++i) ++counts[numbers[i] = rank[numbers[i]]];
  });
  for (std::size_t i = size; i < rows.before.size(); ++i) rows.before[i] += rows.before[i - size];
}

/// Numbers rows by their keys; nothing if these are many.
template <class Key, class KeyAt>
std::optional<few_groups<Key>> number_few(const host& cpu, std::size_t n, const KeyAt& key_at) {
  if (n < few_rows::rows_least || n >= ~std::uint32_t{0}) return std::nullopt;  // row numbers have 32 bits
  auto table = sample_few<Key>(n, key_at);
  if (!table) return std::nullopt;
  few_groups<Key> result;
  result.rows.numbers = array<std::uint16_t, host>(cpu, n);
  if (!write_numbers_of_few(cpu, *table, n, key_at, result.rows.numbers.data())) return std::nullopt;
  finish_few(cpu, table->distinct(), result);
  return result;
}

/// results[g] = f over the values of group g, with calls nested as reduce_lists nests them. `value_at(i)`: of
/// row i.
///
/// Values are combined in pieces of `reduced_at_once`, in order. A piece may begin in one chunk of rows and
/// end in a later one: each chunk keeps the values of pieces that began before it, and what comes of the last
/// one.
template <class ValueAt, class Value, class F>
void reduce_few(const host& cpu, const few_rows& groups, const ValueAt& value_at, const F& f,
                Value* results) {
  const std::size_t n = groups.numbers.size(), size = groups.size, chunks = groups.chunks;
  array<std::uint64_t, host> begins(cpu, size + 1);  // of the pieces of each group
  begins[0] = 0;
  for (std::size_t g = 0; g < size; ++g)
    begins[g + 1] = begins[g] + ceil_div(groups.counts()[g], reduced_at_once);
  array<Value, host> pieces(cpu, begins[size]);
  array<Value, host> heads(cpu, chunks * size * (reduced_at_once - 1));
  array<Value, host> tails(cpu, chunks * size);
  struct state {
    Value all;
    std::uint64_t next, first_piece;  // rows of the group
  };
  const auto ends_piece = [](std::uint64_t row) { return row % reduced_at_once == reduced_at_once - 1; };
  cpu.launch(chunks, size * sizeof(state), [&](const auto&, std::size_t c, std::byte* memory) {
    auto* const states = reinterpret_cast<state*>(memory);
    const std::uint64_t* const before = groups.before.data() + c * size;
    for (std::size_t g = 0; g < size; ++g) {
      states[g].next = before[g];
      states[g].first_piece = ceil_div(before[g], reduced_at_once) * reduced_at_once;
    }
    Value* const head = heads.data() + c * size * (reduced_at_once - 1);
    for (std::size_t i = smaller(n, c * groups.chunk), end = smaller(n, (c + 1) * groups.chunk); i < end;
         ++i) {
      const std::size_t g = groups.numbers[i];
      state& it = states[g];
      const std::uint64_t row = it.next++;
      if (row < it.first_piece) {
        head[g * (reduced_at_once - 1) + row - before[g]] = value_at(i);
        continue;
      }
      it.all = row % reduced_at_once == 0 ? value_at(i) : f(it.all, value_at(i));
      if (ends_piece(row)) pieces[begins[g] + row / reduced_at_once] = it.all;
    }
    for (std::size_t g = 0; g < size; ++g) {
      if (states[g].next > states[g].first_piece) tails[c * size + g] = states[g].all;
    }
  });
  cpu.for_each(size, [&](std::size_t g) {
    std::optional<Value> all;
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::uint64_t first = groups.before[c * size + g], end = groups.before[(c + 1) * size + g];
      const std::uint64_t first_piece = ceil_div(first, reduced_at_once) * reduced_at_once;
      const Value* const head = heads.data() + (c * size + g) * (reduced_at_once - 1);
      for (std::uint64_t row = first; row < smaller(end, first_piece); ++row) {
        all = f(*all, head[row - first]);
        if (ends_piece(row)) pieces[begins[g] + row / reduced_at_once] = *all;
      }
      if (end > first_piece) all = tails[c * size + g];
    }
    if (groups.counts()[g] % reduced_at_once != 0) pieces[begins[g + 1] - 1] = *all;
  });
  reduce_lists(cpu, pieces.data(), begins.data(), size, f, results, nullptr);
}

/// put(p, i) for each row i, where p is its place among the rows of all groups, group after group and
/// ascending in each: those of group g are from offsets[g] to offsets[g + 1] - 1, which this writes.
template <class Put>
void list_few(const host& cpu, const few_rows& groups, std::uint64_t* offsets, const Put& put) {
  offsets[0] = 0;
  for (std::size_t g = 0; g < groups.size; ++g) offsets[g + 1] = offsets[g] + groups.counts()[g];
  const std::size_t n = groups.numbers.size();
  cpu.launch(groups.chunks, groups.size * sizeof(std::uint64_t),
             [&](const auto&, std::size_t c, std::byte* memory) {
               auto* const next = reinterpret_cast<std::uint64_t*>(memory);
               const std::uint64_t* const before = groups.before.data() + c * groups.size;
               for (std::size_t g = 0; g < groups.size; ++g) next[g] = offsets[g] + before[g];
               const std::size_t end = smaller(n, (c + 1) * groups.chunk);
               for (std::size_t i = smaller(n, c * groups.chunk); i < end; ++i) {
                 put(next[groups.numbers[i]]++, i);
               }
             });
}

/// The first row of each group.
inline std::vector<std::uint32_t> first_rows_of_few(const few_rows& groups) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> first(groups.size, none);
  std::size_t missing = groups.size;
  for (std::uint32_t i = 0; missing != 0; ++i) {
    std::uint32_t& mine = first[groups.numbers[i]];
    if (mine != none) continue;
    mine = i;
    --missing;
  }
  return first;
}

}  // namespace roost::detail
