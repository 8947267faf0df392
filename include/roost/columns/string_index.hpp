#pragma once

#include <ranges>
#include <string_view>

#include "roost/columns/texts.hpp"
#include "roost/frozen_map.hpp"

/// \file
/// string_index: numbers texts, exactly. Texts are hashed to keys of 16 bytes, and compared if their
/// hashes are equal. Needs the header xxhash.h.

namespace roost {

/// A hash of 128 bits, which represents a text as a key of any table.
struct string_key {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const string_key&, const string_key&) = default;
};

/// XXH3 of 128 bits, a different function for each seed; it hashes long texts at about the speed of memory.
/// Among 2^32 different texts, two have equal keys with probability 2^-65, unless the texts were chosen to
/// collide.
struct string_hash {
  string_key operator()(std::string_view text, std::uint64_t seed = 0) const {
    const auto hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
    return {hash.low64, hash.high64};
  }
};

/// Numbers the distinct texts of a batch 0, 1, ... m - 1, by first occurrence, as two_way_index does with
/// keys of fixed size. Different texts never get the same number: a build compares each text with the first
/// one that has its key, and restarts with another seed if they differ; a lookup compares its text with the
/// one found. Texts are equal if their bytes are.
///
///     roost::string_index words(cpu, texts);  // vectors of std::string, std::string_view, ...
///     words.size();                           // number of distinct texts
///     words.indices();                        // of each text of the batch, its number
///     if (auto number = words.find("rook")) use(values[*number]);
///
/// The texts are not copied: they must stay where they are while the index lives.
///
/// `Hash`: a function of a text and a seed that returns a string_key. Limits: 2^32 - 2 texts.
///
/// Cost: the texts are read twice, and their keys (16 bytes each) are numbered as by unique_all. A lookup
/// hashes the text, and reads the table and one text: a few cache misses.
///
/// Threads: const members may be called from several threads at once. To look texts up on a GPU, copy
/// `keys()` there, build any table from them, and compare the texts of the answers on the host.
template <class Hash = string_hash>
class string_index {
 public:
  /// What the bulk find() writes for an absent text, unless you pass another number.
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  /// `texts`: a sized random-access range of elements that convert to std::string_view without a copy. Throws
  /// invalid_argument, out_of_memory, and build_error if 16 seeds do not distinguish the texts, which does
  /// not happen by chance with a good hash function.
  template <std::ranges::random_access_range Texts>
    requires std::is_convertible_v<std::ranges::range_reference_t<const Texts>, std::string_view>
  string_index(const host& cpu, const Texts& texts, const Hash& hash = {}) : hash_(hash) {
    static_assert(std::is_lvalue_reference_v<std::ranges::range_reference_t<const Texts>> ||
                      std::is_trivially_copyable_v<std::ranges::range_value_t<const Texts>>,
                  "the texts must outlive the index: pass a range that holds them");
    const std::size_t n = std::ranges::size(texts);
    detail::check_text_rows(n);
    const computed text(
        n, [all = detail::as_sequence(texts)](std::size_t i) { return std::string_view(all[i]); });
    for (; seed_ < detail::text_seeds; ++seed_) {
      const auto key = [&](std::size_t i) { return hash_(text[i], seed_); };
      all_ =
          unique_all(cpu, detail::array_of(cpu, n, key), {index_order::first_occurrence, true, true, true});
      if (!detail::all_same(cpu, all_.first.span(), all_.inverse.span(), text)) continue;
      numbers_ = map(cpu, all_.keys, detail::numbers_to<std::uint32_t>(size()));
      texts_ = detail::array_of(cpu, size(), [&](std::size_t i) { return text[all_.first[i]]; });
      return;
    }
    detail::raise<build_error>({"roost::string_index: ", detail::text_seeds,
                                " seeds of the hash function do not tell ", n,
                                " texts apart; give a better hash function"});
  }

  string_index(string_index&&) noexcept = default;
  string_index& operator=(string_index&&) noexcept = default;

  /// The number of a text, or nothing.
  found<std::uint32_t> find(std::string_view text) const {
    if (empty()) return {};
    const auto ref = numbers_.ref();  // a copy, which the compiler may keep in registers
    const auto number = ref.find(hash_(text, seed_));
    return number && texts_[*number] == text ? number : found<std::uint32_t>{};
  }
  /// True if a text is there.
  bool contains(std::string_view text) const { return find(text).has_value(); }

  /// results[i] = the number of queries[i], or `missing`. Throws invalid_argument if there are fewer results
  /// than queries.
  template <std::ranges::random_access_range Queries>
  void find(const host& cpu, const Queries& queries, std::span<std::uint32_t> results,
            std::uint32_t missing = no_index) const {
    const std::size_t n = std::ranges::size(queries);
    if (results.size() < n) {
      detail::raise<invalid_argument>({"roost::string_index::find: ", n, " queries, but room for ",
                                       results.size(), " results; pass as many"});
    }
    cpu.for_each(n, [&, all = detail::as_sequence(queries)](std::size_t i) {
      results[i] = find(std::string_view(all[i])).value_or(missing);
    });
  }

  /// The number of distinct texts.
  std::size_t size() const { return all_.keys.size(); }
  bool empty() const { return size() == 0; }
  /// The text of a number below size(): its first occurrence in the batch.
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  /// The position in the batch where the text of each number first occurs.
  std::span<const std::uint32_t> first() const { return all_.first.span(); }
  /// How often the text of each number occurs.
  std::span<const std::uint64_t> counts() const { return all_.counts.span(); }
  /// The number of each text of the batch.
  std::span<const std::uint32_t> indices() const { return all_.inverse.span(); }
  /// The key of each number: hash(text, seed()).
  std::span<const string_key> keys() const { return all_.keys.span(); }
  /// The seed of the hash function.
  std::uint64_t seed() const { return seed_; }

  /// Checks the invariants: each text is found under its number. Looks up every distinct text.
  bool valid(const host& cpu) const {
    const auto wrong = [&](std::size_t i) {
      const auto number = static_cast<std::uint32_t>(i);
      return std::uint64_t{find(texts_[i]).value_or(no_index) != number || indices()[first()[i]] != number ||
                           counts()[i] == 0};
    };
    return numbers_.valid(cpu) && numbers_.size() == size() && cpu.sum(size(), wrong) == 0;
  }

 private:
  using map = frozen_map<string_key, std::uint32_t>;

  Hash hash_;
  std::uint64_t seed_ = 0;
  unique_keys<string_key, host> all_;
  map numbers_;
  array<std::string_view, host> texts_;
};

}  // namespace roost
