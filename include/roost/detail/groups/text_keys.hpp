#pragma once

#include <atomic>
#include <optional>

#include "roost/detail/groups/few_groups.hpp"
#include "roost/detail/place/xxhash.hpp"
#include "roost/texts.hpp"

// Bodies of roost/texts.hpp. Short texts are keys as they are. For longer ones a hash stands, and texts with
// equal hashes are compared.

namespace roost {
namespace detail {

inline std::uint64_t load_bytes(const char* bytes, std::size_t n) {  // of at most 8
  if (n >= 4) {
    std::uint32_t low, high;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + n - 4, 4);
    return low | std::uint64_t{high} << (8 * (n - 4));
  }
  const auto byte = [&](std::size_t i) {
    return std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << 8 * i;
  };
  return n == 0 ? 0 : byte(0) | byte(n / 2) | byte(n - 1);
}

/// Ends in a number of bytes that no short text has.
inline constexpr std::uint64_t too_long = ~std::uint64_t{0};

struct bytes7_key {
  using type = std::uint64_t;
  type operator()(std::string_view text) const {
    const std::size_t n = text.size();
    return n > 7 ? too_long : load_bytes(text.data(), n) | std::uint64_t{n} << 56;
  }
};
struct bytes15_key {
  using type = packed_key<2>;
  type operator()(std::string_view text) const {
    const std::size_t n = text.size();
    if (n > 15) return {{too_long, too_long}};
    if (n <= 8) return {{load_bytes(text.data(), n), std::uint64_t{n} << 56}};
    return {{load_bytes(text.data(), 8), load_bytes(text.data() + 8, n - 8) | std::uint64_t{n} << 56}};
  }
};
struct hash64_key {
  using type = std::uint64_t;
  std::uint64_t seed;
  type operator()(std::string_view text) const {
    return XXH3_64bits_withSeed(text.data(), text.size(), seed);
  }
};
struct hash128_key {
  using type = packed_key<2>;
  std::uint64_t seed;
  type operator()(std::string_view text) const {
    const auto hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
    return {{hash.low64, hash.high64}};
  }
};

template <class F>
auto with_key_of(text_keys::form form, std::uint64_t seed, const F& f) {
  switch (form) {
    case text_keys::form::bytes7:
      return f(bytes7_key{});
    case text_keys::form::bytes15:
      return f(bytes15_key{});
    case text_keys::form::hash64:
      return f(hash64_key{seed});
    case text_keys::form::hash128:
      break;
  }
  return f(hash128_key{seed});
}

template <class KeyOf>
array<typename KeyOf::type, host> keys_of(const host& cpu, const text_column& all, const KeyOf& key_of) {
  array<typename KeyOf::type, host> keys(cpu, all.size());
  all.for_each_chunk([&](std::size_t begin, std::size_t count, const auto& layout) {
    auto* const target = keys.data() + begin;
    if constexpr (std::is_same_v<std::decay_t<decltype(layout)>, coded_texts>) {
      if (layout.dictionary->size() <= count) {  // which therefore costs no more than the rows
        const auto known = keys_of(cpu, *layout.dictionary, key_of);
        const auto none = key_of({});
        return cpu.for_each(count, [&](std::size_t i) {
          const std::size_t number = layout.code(i);
          target[i] = number < known.size() ? known[number] : none;
        });
      }
    }
    cpu.for_each(count, [&](std::size_t i) { target[i] = key_of(layout[i]); });
  });
  return keys;
}

inline std::size_t slot_of(std::uint64_t key, std::size_t slots) {
  return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> 32) % slots;
}
inline std::size_t slot_of(const packed_key<2>& key, std::size_t slots) {
  return slot_of(key.word[0] + key.word[1] * 0xC2B2AE3D27D4EB4F, slots);
}

/// Texts that are not compared, since their keys are equal only if they are.
struct no_text {};

/// Whether the text of each row is that of the first one that has its key: row rows[first[inverse[i]]].
template <class Text>
bool all_same(const host& cpu, std::span<const std::uint32_t> rows, std::span<const std::uint32_t> first,
              std::span<const std::uint32_t> inverse, const Text& text) {
  constexpr std::size_t batch = 16;  // whose cache misses overlap
  const std::size_t n = rows.size();
  return cpu.sum(ceil_div(n, batch), [&](std::size_t b) {
    const std::size_t begin = b * batch, count = std::min(batch, n - begin);
    std::string_view firsts[batch];
    for (std::size_t k = 0; k < count; ++k) {
      firsts[k] = text[rows[first[inverse[begin + k]]]];
      __builtin_prefetch(firsts[k].data());
    }
    std::uint64_t different = 0;
    for (std::size_t k = 0; k < count; ++k) different += text[rows[begin + k]] != firsts[k];
    return different;
  }) == 0;
}

/// Numbers texts by their keys; nothing if two different ones have one key.
///
/// In each block of rows a small table of the keys that came last finds most copies of a text where there
/// are few different ones, and only the other rows, the leaders, are numbered by hashing. A block that has
/// few copies in its first rows looks for no more.
template <class Key, class Text>
std::optional<numbered_texts> number_by_keys(const host& cpu, const array<Key, host>& keys,
                                             const Text& text) {
  constexpr bool compares = !std::is_same_v<Text, no_text>;
  constexpr std::size_t block = std::size_t{1} << 16, sample = block / 8, slots = std::size_t{1} << 12;
  struct entry {
    Key key;
    std::uint32_t row;
  };
  const std::size_t n = keys.size(), blocks = ceil_div(n, block);
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::atomic<bool> apart{true};
  array<std::uint32_t, host> numbers(cpu, n);
  array<std::uint64_t, host> begins(cpu, blocks + 1);  // of each block's leaders
  cpu.launch(blocks, slots * sizeof(entry), [&](const auto&, std::size_t b, std::byte* scratch) {
    auto* const seen = reinterpret_cast<entry*>(scratch);
    for (std::size_t s = 0; s < slots; ++s) seen[s].row = none;
    std::size_t leaders = 0;
    const std::size_t begin = b * block, end = std::min(n, begin + block);
    for (std::size_t i = begin; i < end; ++i) {
      if (i - begin >= sample && leaders > sample / 2) {
        numbers[i] = static_cast<std::uint32_t>(i);
        ++leaders;
        continue;
      }
      entry* const two = seen + 2 * slot_of(keys[i], slots / 2);
      const auto has = [&](const entry& it) { return it.row != none && it.key == keys[i]; };
      const entry& last = has(two[1]) ? two[1] : two[0];
      if (!has(last)) {
        two[1] = two[0];
        two[0] = {keys[i], static_cast<std::uint32_t>(i)};
        ++leaders;
      } else if constexpr (compares) {
        if (text[i] != text[last.row]) apart.store(false, std::memory_order_relaxed);
      }
      numbers[i] = last.row;
    }
    begins[b] = leaders;
  });
  begins[blocks] = 0;
  cpu.exclusive_scan(begins.data(), begins.data(), blocks + 1);
  array<Key, host> leader_keys(cpu, begins[blocks]);
  array<std::uint32_t, host> leader_rows(cpu, begins[blocks]);
  cpu.launch(blocks, 0, [&](const auto&, std::size_t b, std::byte*) {
    auto next = static_cast<std::uint32_t>(begins[b]);
    for (std::size_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
      if (numbers[i] != i) {
        numbers[i] = numbers[numbers[i]];
        continue;
      }
      leader_keys[next] = keys[i];
      leader_rows[next] = static_cast<std::uint32_t>(i);
      numbers[i] = next++;
    }
  });
  auto distinct = unique_all(cpu, leader_keys, {index_order::first_occurrence, true, true});
  if constexpr (compares) {
    if (!all_same(cpu, leader_rows.span(), distinct.first.span(), distinct.inverse.span(), text))
      apart = false;
  }
  if (!apart) return std::nullopt;
  cpu.for_each(n, [&](std::size_t i) { numbers[i] = distinct.inverse[numbers[i]]; });
  auto& first = distinct.first;
  cpu.for_each(first.size(), [&](std::size_t i) { first[i] = leader_rows[first[i]]; });
  return numbered_texts{std::move(first), std::move(numbers)};
}

/// The same with the texts at hand, which are compared where keys are hashes.
template <class Key>
std::optional<numbered_texts> number_by_keys(const host& cpu, const text_column& all,
                                             const array<Key, host>& keys, text_keys::form form) {
  if (!text_keys::hashes(form)) return number_by_keys(cpu, keys, no_text());
  std::optional<numbered_texts> result;
  all.with_layout([&](const auto& text) { result = number_by_keys(cpu, keys, text); });
  return result;
}

/// done(key_of, form, seed) with a function that makes keys of texts, of the shortest form; where it returns
/// false, again with that of the next seed.
template <class Done>
void with_keys_for(const host& cpu, const text_column& all, const Done& done) {
  if (all.size() >= ~std::uint32_t{0}) {
    raise<invalid_argument>({"roost: ", all.size(), " strings; at most 2^32 - 2 at once"});
  }
  constexpr std::uint64_t long_one = std::uint64_t{1} << 32;
  std::uint64_t above_7_and_15 = 0;
  all.for_each_chunk([&](std::size_t, std::size_t count, const auto& layout) {
    above_7_and_15 += cpu.sum(count, [&](std::size_t i) {
      const std::size_t n = layout[i].size();
      return std::uint64_t{n > 7} + (n > 15 ? long_one : 0);
    });
  });
  using form = text_keys::form;
  if (above_7_and_15 < long_one) {
    if (above_7_and_15 == 0) {
      done(bytes7_key{}, form::bytes7, 0);
    } else {
      done(bytes15_key{}, form::bytes15, 0);
    }
    return;
  }
  // Two of 2^26 texts have one hash of 64 bits with a probability of 2^-13.
  if (all.size() <= std::size_t{1} << 26 && done(hash64_key{0}, form::hash64, 0)) return;
  for (std::uint64_t seed = 1; seed < 16; ++seed) {  // no accident under so many
    if (done(hash128_key{seed}, form::hash128, seed)) return;
  }
  raise<build_error>({"roost: 16 hash functions could not tell the strings apart; please report it"});
}

}  // namespace detail

inline numbered_texts number_texts(const host& cpu, const text_column& texts) {
  numbered_texts result;
  detail::with_keys_for(cpu, texts, [&](const auto& key_of, text_keys::form form, std::uint64_t) {
    auto numbered = detail::number_by_keys(cpu, texts, detail::keys_of(cpu, texts, key_of), form);
    if (numbered) result = std::move(*numbered);
    return numbered.has_value();
  });
  return result;
}

inline text_keys keys_of_texts(const host& cpu, const text_column& texts) {
  text_keys result;
  detail::with_keys_for(cpu, texts, [&](const auto& key_of, text_keys::form form, std::uint64_t seed) {
    auto keys = detail::keys_of(cpu, texts, key_of);
    if (text_keys::hashes(form)) {
      auto numbered = detail::number_by_keys(cpu, texts, keys, form);
      if (!numbered) return false;
      result.numbered = std::move(*numbered);
    }
    result.made_of = form;
    result.seed = seed;
    result.keys = std::move(keys);
    return true;
  });
  return result;
}

inline text_keys keys_of_texts(const host& cpu, const text_column& texts, text_keys::form made_of,
                               std::uint64_t seed) {
  text_keys result{made_of, seed, {}, {}};
  detail::with_key_of(made_of, seed,
                      [&](const auto& key_of) { result.keys = detail::keys_of(cpu, texts, key_of); });
  return result;
}

}  // namespace roost
