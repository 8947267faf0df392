#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <vector>

#include "roost/detail/groups/choose.hpp"
#include "roost/detail/groups/dense_keys.hpp"
#include "roost/detail/groups/reduce_lists.hpp"
#include "roost/detail/groups/value_words.hpp"
#include "roost/hash.hpp"

// Groups of few distinct keys on the host, without moving rows: tables that stay in the cache, one for each
// chunk of rows, number the keys, and values are combined in place.

namespace roost::detail {

/// Keys or values of rows that are computed one by one.
template <class ValueAt>
struct values_at {
  ValueAt value_at;
  using value = decltype(value_at(std::size_t{}));
  value operator()(std::size_t i) const { return value_at(i); }
  /// The keys or values of n rows, in `buffer` or elsewhere.
  const value* block(std::size_t first, std::size_t n, value* buffer) const {
    for (std::size_t k = 0; k < n; ++k) buffer[k] = value_at(first + k);
    return buffer;
  }
};
template <class ValueAt>
values_at(const ValueAt&) -> values_at<ValueAt>;

/// Distinct keys numbered by first occurrence, and the rows where they first occur.
template <class Key>
struct first_keys {
  std::vector<Key> keys;
  std::vector<std::uint32_t> rows;

  std::uint32_t add(const Key& key, std::uint32_t row) {
    keys.push_back(key);
    rows.push_back(row);
    return static_cast<std::uint32_t>(keys.size() - 1);
  }
};

/// Numbers and counts keys, by linear probing.
template <class Key>
class key_table {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0}, probes_most = 64;

  /// `filler`: an arbitrary key to store in empty slots.
  key_table(const host& cpu, const Key& filler) : cpu_(&cpu) { clear(1 << 10, filler); }

  /// The number of a key, which `row` has; `none` if so many keys collide that they may have been chosen to.
  std::uint32_t insert(const Key& key, std::uint32_t row) { return insert(key, start(key), row); }
  /// Writes the numbers of the keys of n rows; false if one has no number.
  bool insert(const Key* keys, std::size_t first, std::size_t n, std::uint32_t* numbers) {
    constexpr std::size_t batch = 32;  // whose cache misses overlap
    for (std::size_t k = 0; k < n; k += batch) {
      if (!insert_batch(keys + k, first + k, smaller(batch, n - k), numbers + k)) return false;
    }
    return true;
  }
  const first_keys<Key>& distinct() const { return distinct_; }
  /// counts[number of a key] = how often it occurred.
  void write_counts(std::uint64_t* counts) const {
    for (const slot& it : slots_.span()) {
      if (it.number != none) counts[it.number] = it.count;
    }
  }

 private:
  struct slot {
    Key key;
    std::uint32_t number, count;
  };
  bool insert_batch(const Key* keys, std::size_t first, std::size_t n, std::uint32_t* numbers) {
    std::size_t starts[32];
    for (std::size_t k = 0; k < n; ++k) {
      starts[k] = start(keys[k]);
      __builtin_prefetch(&slots_[starts[k]], 1);
    }
    slot* const slots = slots_.data();
    std::size_t k = 0;
    for (; k < n; ++k) {
      slot* it = slots + starts[k];
      it += has(*it, keys[k]) ? 0 : 1;  // without a branch, which would often be mispredicted
      if (!has(*it, keys[k])) break;
      ++it->count;
      numbers[k] = it->number;
    }
    for (; k < n; ++k) {
      const bool grown = slots_.data() != slots;
      numbers[k] = insert(keys[k], grown ? start(keys[k]) : starts[k], static_cast<std::uint32_t>(first + k));
      if (numbers[k] == none) return false;
    }
    return true;
  }
  static bool has(const slot& it, const Key& key) { return same_key(it.key, key) && it.number != none; }

  /// Fibonacci hashing (Knuth, volume 3, 6.4): cheaper than hash_of, and consecutive keys do not collide.
  std::size_t start(const Key& key) const {
    std::uint64_t bits = 0;
    if constexpr (sizeof(Key) <= 8) {
      bits = key_bits(key);
    } else {
      std::uint64_t word[ceil_div(sizeof(Key), std::size_t{8})] = {};
      std::memcpy(word, &key, sizeof(Key));
      for (const std::uint64_t each : word) bits = bits * 0xC2B2AE3D27D4EB4F + each;
    }
    bits ^= bits >> 32;
    return static_cast<std::size_t>(bits * 0x9E3779B97F4A7C15 >> shift_);
  }
  std::uint32_t insert(const Key& key, std::size_t s, std::uint32_t row) {
    for (std::uint32_t k = 0; k < probes_most; ++k, s = (s + 1) & (slots_.size() - 2)) {
      slot& it = slots_[s];
      if (has(it, key)) {
        ++it.count;
        return it.number;
      }
      if (it.number != none) continue;
      const std::uint32_t number = distinct_.add(key, row);
      it = {key, number, 1};
      if (2 * distinct_.keys.size() >= slots_.size()) grow();
      return number;
    }
    return none;
  }
  void clear(std::size_t slots, const Key& filler) {
    slots_ = array<slot, host>(*cpu_, slots + 1);  // one more, which stays empty
    std::fill_n(slots_.data(), slots + 1, slot{filler, none, 0});
    shift_ = 64 - std::countr_zero(slots);
  }
  void grow() {
    const array<slot, host> before = std::move(slots_);
    clear(4 * (before.size() - 1), before[0].key);
    for (const slot& it : before.span()) {
      if (it.number == none) continue;
      std::size_t s = start(it.key);
      while (slots_[s].number != none) s = (s + 1) & (slots_.size() - 2);
      slots_[s] = it;
    }
  }

  const host* cpu_;
  array<slot, host> slots_;
  int shift_ = 0;
  first_keys<Key> distinct_;
};

/// The same for integers of a small range, without hashing.
template <class Key>
class direct_table {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  explicit direct_table(const key_range<Key>& range) : range_(range), slots_(range.count, slot{none, 0}) {}

  std::uint32_t insert(const Key& key, std::uint32_t row) {
    slot& it = slots_[range_(key)];
    if (it.number == none) it.number = distinct_.add(key, row);
    ++it.count;
    return it.number;
  }
  bool insert(const Key* keys, std::size_t first, std::size_t n, std::uint32_t* numbers) {
    for (std::size_t k = 0; k < n; ++k) numbers[k] = insert(keys[k], static_cast<std::uint32_t>(first + k));
    return true;
  }
  const first_keys<Key>& distinct() const { return distinct_; }
  void write_counts(std::uint64_t* counts) const {
    for (std::size_t i = 0; i < distinct_.keys.size(); ++i)
      counts[i] = slots_[range_(distinct_.keys[i])].count;
  }

 private:
  struct slot {
    std::uint32_t number, count;
  };
  key_range<Key> range_;
  std::vector<slot> slots_;
  first_keys<Key> distinct_;
};

/// Rows of few groups, which are in the order of their first rows.
struct few_rows {
  static constexpr std::size_t block = 512;  // rows whose values are read at once

  array<std::uint32_t, host> numbers;  // of each row's group
  std::vector<std::uint32_t> first;    // row of each group
  std::size_t chunk = 0, chunks = 0;   // into which rows are divided
  std::vector<std::uint64_t> before;   // [chunk][group]: rows in earlier chunks; last, in all chunks

  std::size_t size() const { return first.size(); }
  /// The rows of each group.
  const std::uint64_t* counts() const { return before.data() + chunks * size(); }
  /// Whether there are enough chunks for all threads.
  bool suits(const host& cpu) const { return 2 * chunks >= static_cast<std::size_t>(cpu.threads()); }
};

/// The same rows, and the keys of the groups.
template <class Key>
struct few_groups {
  array<Key, host> keys;
  few_rows rows;
};

/// The number of distinct keys, estimated from a sample of the rows; nothing if there are many.
template <class Key, class Keys>
std::optional<std::size_t> sample_few(const host& cpu, std::size_t n, const Keys& keys) {
  const std::size_t sample = few_sample::rows(n);
  key_table<Key> table(cpu, keys(0));
  std::vector<std::uint32_t> seen;
  std::uint64_t once = 0, twice = 0;  // keys that occur once, and twice, in the sample
  // Includes a lower bound for the keys that the sample has missed (Chao 1984).
  const auto estimate = [&] { return seen.size() + once * once / (2 * twice + 1); };
  for (std::size_t k = 0; k < sample; ++k) {
    const std::uint32_t number = table.insert(keys(k * (n / sample)), 0);
    if (number == table.none) return std::nullopt;
    if (number == seen.size()) seen.push_back(0);
    const std::uint32_t before = seen[number]++;
    once += before == 0 ? 1 : before == 1 ? -1 : 0;
    twice += before == 1 ? 1 : before == 2 ? -1 : 0;
    if (k == few_sample::first_look && few_sample::is_over(n, estimate())) return std::nullopt;
  }
  const std::size_t distinct = estimate();
  return few_sample::shows_few(n, distinct) ? std::optional(distinct) : std::nullopt;
}

/// Numbers each chunk of rows by a table of its own; false if its keys are not few.
template <class Key, class Table, class Keys>
bool index_chunks(const host& cpu, std::vector<Table>& tables, few_rows& rows, const Keys& keys,
                  std::size_t most) {
  const std::size_t n = rows.numbers.size();
  std::atomic<bool> too_many{false};
  cpu.launch(tables.size(), few_rows::block * sizeof(Key),
             [&](const auto&, std::size_t c, std::byte* memory) {
               Table table = std::move(tables[c]);  // local, so that nothing else aliases it
               const std::size_t end = smaller(n, (c + 1) * rows.chunk);
               for (std::size_t first = smaller(n, c * rows.chunk); first < end; first += few_rows::block) {
                 if (too_many.load(std::memory_order_relaxed)) return;
                 const std::size_t count = smaller(few_rows::block, end - first);
                 const Key* const read = keys.block(first, count, reinterpret_cast<Key*>(memory));
                 if (!table.insert(read, first, count, rows.numbers.data() + first) ||
                     table.distinct().keys.size() > most) {
                   return too_many.store(true);
                 }
               }
               tables[c] = std::move(table);
             });
  return !too_many.load();
}

/// Numbers the keys of all chunks together, and counts the rows of each in each chunk. False if they are not
/// few.
template <class Table>
bool merge_tables(const host& cpu, std::vector<Table>& tables, few_rows& rows, std::size_t most) {
  const std::size_t n = rows.numbers.size(), chunks = tables.size();
  std::vector<std::vector<std::uint64_t>> counts(chunks);
  std::vector<std::vector<std::uint32_t>> maps(chunks);  // from the numbers of a chunk to those of all
  Table& all = tables[0];
  for (std::size_t c = 0; c < chunks; ++c) {
    const auto& mine = tables[c].distinct();
    counts[c].resize(mine.keys.size());
    tables[c].write_counts(counts[c].data());
    for (std::size_t i = 0; c != 0 && i < mine.keys.size(); ++i) {
      maps[c].push_back(all.insert(mine.keys[i], mine.rows[i]));
      if (maps[c].back() == all.none) return false;
    }
  }
  const std::size_t size = all.distinct().keys.size();
  if (size > most) return false;
  rows.first = all.distinct().rows;
  rows.before.assign((chunks + 1) * size, 0);
  cpu.for_each(chunks, [&](std::size_t c) {
    std::uint64_t* const before = rows.before.data() + (c + 1) * size;
    for (std::size_t i = 0; i < counts[c].size(); ++i) before[c == 0 ? i : maps[c][i]] = counts[c][i];
  });
  for (std::size_t i = size; i < rows.before.size(); ++i) rows.before[i] += rows.before[i - size];
  cpu.for_each(n - smaller(n, rows.chunk), [&](std::size_t k) {
    std::uint32_t& number = rows.numbers[rows.chunk + k];
    number = maps[(rows.chunk + k) / rows.chunk][number];
  });
  return true;
}

/// Numbers rows by tables that empty() makes; nothing if they have more than `most` keys. `distinct`: about
/// how many they have.
template <class Key, class Empty, class Keys>
std::optional<few_groups<Key>> index_few(const host& cpu, const batch_facts& batch, const Keys& keys,
                                         const Empty& empty, std::size_t distinct, std::size_t most) {
  few_groups<Key> result;
  few_rows& rows = result.rows;
  rows.chunks = chunks_of_few(batch, distinct);
  if (rows.chunks == 0) return std::nullopt;
  rows.chunk = ceil_div(batch.rows, rows.chunks);
  rows.numbers = array<std::uint32_t, host>(cpu, batch.rows);
  std::vector<decltype(empty())> tables;
  for (std::size_t c = 0; c < rows.chunks; ++c) tables.push_back(empty());
  if (!index_chunks<Key>(cpu, tables, rows, keys, most) || !merge_tables(cpu, tables, rows, most))
    return std::nullopt;
  result.keys = copy_to(cpu, tables[0].distinct().keys);
  return result;
}

/// Numbers n rows by their keys; nothing if they are not few. `keys`: like values_at. `bits`: of the greatest
/// one, if it is known that they are so small.
template <class Key, class Keys>
std::optional<few_groups<Key>> index_few(const host& cpu, std::size_t n, const Keys& keys,
                                         std::size_t bits = 64) {
  const batch_facts batch = facts_of<Key>(cpu, n);
  if (!looks_for_few(batch)) return std::nullopt;
  if constexpr (is_integer<Key>) {
    const std::uint64_t most = direct_range_most(batch);
    std::optional<key_range<Key>> range;
    if (bits == 64) range = range_of<Key>(cpu, n, keys, most);
    if (bits < 64 && std::uint64_t{1} << bits <= most) range = {0, std::uint64_t{1} << bits};
    if (range) {
      const auto empty = [&] { return direct_table<Key>(*range); };
      return index_few<Key>(cpu, batch, keys, empty, range->count, range->count);
    }
  }
  const auto distinct = sample_few<Key>(cpu, n, keys);
  if (!distinct) return std::nullopt;
  const auto empty = [&] { return key_table<Key>(cpu, keys(0)); };
  return index_few<Key>(cpu, batch, keys, empty, *distinct, 2 * few_groups_most(n));
}

/// body(group, value) for the rows from `first` to `end` - 1.
template <class Values, class Value, class Body>
void for_each_of_few(const few_rows& groups, const Values& values, std::size_t first, std::size_t end,
                     Value* buffer, const Body& body) {
  for (; first < end; first += few_rows::block) {
    const std::size_t n = smaller(few_rows::block, end - first);
    const Value* const read = values.block(first, n, buffer);
    const std::uint32_t* const numbers = groups.numbers.data() + first;
    for (std::size_t k = 0; k < n; ++k) body(numbers[k], read[k]);
  }
}

/// Whether f gives the same result for such values in any order.
template <class F, class Value>
inline constexpr bool combines_in_any_order =
    std::is_integral_v<Value> && word_operation_of<F, Value> != word_operation::none;

/// results[g] = f over the values of group g, in any order.
template <class Values, class Value, class F>
void accumulate_few(const host& cpu, const few_rows& groups, const Values& values, const F&, Value* results) {
  using words = value_word<F, Value>;
  using word = typename words::word;
  const std::size_t n = groups.numbers.size(), size = groups.size();
  const std::size_t chunks = chunks_of_sums(n, static_cast<std::size_t>(cpu.threads()), size);
  const std::size_t chunk = ceil_div(n, chunks);
  array<word, host> all(cpu, chunks * size);
  cpu.launch(chunks, few_rows::block * sizeof(Value), [&](const auto&, std::size_t c, std::byte* memory) {
    word* const mine = all.data() + c * size;
    std::fill_n(mine, size, words::identity);
    for_each_of_few(groups, values, smaller(n, c * chunk), smaller(n, (c + 1) * chunk),
                    reinterpret_cast<Value*>(memory), [&](std::uint32_t group, const Value& value) {
                      mine[group] = words::combine(mine[group], words::of(value));
                    });
  });
  cpu.for_each(size, [&](std::size_t g) {
    word found = all[g];
    for (std::size_t c = 1; c < chunks; ++c) found = words::combine(found, all[c * size + g]);
    results[g] = words::value(found);
  });
}

/// The pieces of each group's values, each of which is combined in sequence, and the values with which a
/// chunk of rows continues a piece that began in an earlier chunk.
template <class Value>
class pieces_of_few {
  struct state {
    std::uint32_t next, head_end;  // rows of the group: those below head_end are heads
    std::uint32_t pieces;          // the group's first cell
    std::uint32_t heads;           // and the cell of its row 0, if that were a head
  };

 public:
  pieces_of_few(const host& cpu, const few_rows& groups)
      : groups_(groups), begins_(cpu, groups.size() + 1), states_(cpu, groups.chunks * groups.size()) {
    const std::size_t size = groups.size();
    begins_[0] = 0;
    for (std::size_t g = 0; g < size; ++g)
      begins_[g + 1] = begins_[g] + ceil_div(groups.counts()[g], reduced_at_once);
    std::uint64_t cells = begins_[size];
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const std::uint64_t first = groups.before[i], end = groups.before[i + size];
      const std::uint64_t head_end = smaller(ceil_div(first, reduced_at_once) * reduced_at_once, end);
      states_[i] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(head_end),
                    static_cast<std::uint32_t>(begins_[i % size]), static_cast<std::uint32_t>(cells - first)};
      cells += head_end - first;
    }
    cells_ = array<Value, host>(cpu, cells);
    if constexpr (std::is_arithmetic_v<Value>) std::fill_n(cells_.data(), cells, Value());
  }

  /// Combines the values of a chunk's rows. `buffer`: for a block of values.
  template <class Values, class F>
  void add_chunk(std::size_t c, const Values& values, const F& f, Value* buffer) {
    const std::size_t n = groups_.numbers.size(), end = smaller(n, (c + 1) * groups_.chunk);
    for (std::size_t first = smaller(n, c * groups_.chunk); first < end; first += few_rows::block) {
      const std::size_t rows = smaller(few_rows::block, end - first);
      std::uint32_t cells[few_rows::block];
      bool begins[few_rows::block];
      find_cells(c, first, rows, cells, begins);
      const Value* const read = values.block(first, rows, buffer);
      for (std::size_t k = 0; k < rows; ++k) {
        Value& cell = cells_[cells[k]];
        if constexpr (std::is_arithmetic_v<Value>) {  // without a branch
          const Value both = f(cell, read[k]);
          cell = begins[k] ? read[k] : both;
        } else {
          cell = begins[k] ? read[k] : f(cell, read[k]);
        }
      }
    }
  }

  /// Adds the heads of all chunks to the pieces of a group.
  template <class F>
  void add_heads(std::size_t g, const F& f) {
    for (std::size_t i = groups_.size() + g; i < states_.size(); i += groups_.size()) {
      const state& it = states_[i];
      for (auto row = static_cast<std::uint32_t>(groups_.before[i]); row < it.head_end; ++row) {
        Value& cell = cells_[it.pieces + row / reduced_at_once];
        cell = f(cell, cells_[it.heads + row]);
      }
    }
  }

  const Value* pieces() const { return cells_.data(); }
  /// Where the pieces of each group begin.
  const std::uint64_t* begins() const { return begins_.data(); }

 private:
  /// The cells of some rows of a chunk, and whether a row is the first of its cell. Called before cells are
  /// read, so that cache misses overlap.
  void find_cells(std::size_t c, std::size_t first, std::size_t rows, std::uint32_t* cells, bool* begins) {
    state* const states = states_.data() + c * groups_.size();
    for (std::size_t k = 0; k < rows; ++k) {
      state& it = states[groups_.numbers[first + k]];
      const std::uint32_t row = it.next++;
      const bool head = row < it.head_end;
      begins[k] = head | (row % reduced_at_once == 0);
      cells[k] = head ? it.heads + row : it.pieces + row / static_cast<std::uint32_t>(reduced_at_once);
      __builtin_prefetch(&cells_[cells[k]], 1);
    }
  }

  const few_rows& groups_;
  array<std::uint64_t, host> begins_;
  array<state, host> states_;
  array<Value, host> cells_;
};

/// results[g] = f over the values of group g, with calls nested as reduce_lists nests them: values are
/// combined in pieces of `reduced_at_once`, in order. A piece may begin in one chunk of rows and end in a
/// later one. `values`: like values_at.
template <class Values, class Value, class F>
void reduce_few(const host& cpu, const few_rows& groups, const Values& values, const F& f, Value* results) {
  if constexpr (combines_in_any_order<F, Value>) {
    accumulate_few(cpu, groups, values, f, results);
  } else {
    pieces_of_few<Value> all(cpu, groups);
    cpu.launch(groups.chunks, few_rows::block * sizeof(Value),
               [&](const auto&, std::size_t c, std::byte* memory) {
                 all.add_chunk(c, values, f, reinterpret_cast<Value*>(memory));
               });
    cpu.for_each(groups.size(), [&](std::size_t g) { all.add_heads(g, f); });
    reduce_lists(cpu, all.pieces(), {all.begins(), groups.size() + 1}, f, results, nullptr);
  }
}

/// Puts the values of each group side by side, group after group, in the order of the rows. Those of group g
/// are at offsets[g] to offsets[g + 1] - 1; the offsets are written, too.
template <class Values, class Value>
void list_few(const host& cpu, const few_rows& groups, const Values& values, std::uint64_t* offsets,
              Value* target) {
  offsets[0] = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) offsets[g + 1] = offsets[g] + groups.counts()[g];
  const std::size_t n = groups.numbers.size(), size = groups.size();
  cpu.launch(groups.chunks, few_rows::block * sizeof(Value) + size * sizeof(std::uint64_t),
             [&](const auto&, std::size_t c, std::byte* memory) {
               auto* const next = reinterpret_cast<std::uint64_t*>(memory + few_rows::block * sizeof(Value));
               const std::uint64_t* const before = groups.before.data() + c * size;
               for (std::size_t g = 0; g < size; ++g) next[g] = offsets[g] + before[g];
               for_each_of_few(groups, values, smaller(n, c * groups.chunk),
                               smaller(n, (c + 1) * groups.chunk), reinterpret_cast<Value*>(memory),
                               [&](std::uint32_t g, const Value& value) { target[next[g]++] = value; });
             });
}

}  // namespace roost::detail
