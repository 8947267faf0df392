#pragma once

#include <map>

#include "roost/columns/texts.hpp"
#include "roost/detail/groups/few_groups.hpp"
#include "roost/detail/place/xxhash.hpp"

// Bodies of roost/columns/texts.hpp. Short texts are keys as they are. A hash represents each longer one, and
// texts with equal hashes are compared.

namespace roost {
namespace detail {

ROOST_FN std::uint64_t load_bytes(const char* bytes, std::size_t n) {  // of at most 8
  if (n >= 4) {
    std::uint32_t low, high;
    memcpy(&low, bytes, 4);
    memcpy(&high, bytes + n - 4, 4);
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
  static constexpr auto form = text_keys::form::bytes7;
  type operator()(std::string_view text) const {
    const std::size_t n = text.size();
    return n > 7 ? too_long : load_bytes(text.data(), n) | std::uint64_t{n} << 56;
  }
};
struct bytes15_key {
  using type = packed_key<2>;
  static constexpr auto form = text_keys::form::bytes15;
  ROOST_FN type operator()(std::string_view text) const {
    const std::size_t n = text.size();
    if (n > 15) return {{too_long, too_long}};
    if (n <= 8) return {{load_bytes(text.data(), n), std::uint64_t{n} << 56}};
    return {{load_bytes(text.data(), 8), load_bytes(text.data() + 8, n - 8) | std::uint64_t{n} << 56}};
  }
};
struct hash64_key {
  using type = std::uint64_t;
  static constexpr auto form = text_keys::form::hash64;
  std::uint64_t seed;
  type operator()(std::string_view text) const {
    return XXH3_64bits_withSeed(text.data(), text.size(), seed);
  }
};
struct hash128_key {
  using type = packed_key<2>;
  static constexpr auto form = text_keys::form::hash128;
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

/// Whether the text of each row is that of the first one that has its key: row first[numbers[i]].
template <class Text>
bool all_same(const host& cpu, std::span<const std::uint32_t> first, std::span<const std::uint32_t> numbers,
              const Text& text) {
  constexpr std::size_t batch = 16;  // whose cache misses overlap
  const std::size_t n = numbers.size();
  return cpu.sum(ceil_div(n, batch), [&](std::size_t b) {
    const std::size_t begin = b * batch, count = std::min(batch, n - begin);
    std::string_view firsts[batch];
    for (std::size_t k = 0; k < count; ++k) {
      firsts[k] = text[first[numbers[begin + k]]];
      __builtin_prefetch(firsts[k].data());
    }
    std::uint64_t different = 0;
    for (std::size_t k = 0; k < count; ++k) different += text[begin + k] != firsts[k];
    return different;
  }) == 0;
}

/// Numbers texts by their keys; nothing if two different texts have the same key.
template <class KeyOf>
std::optional<numbered_texts> index_by_keys(const host& cpu, const text_column& texts, const KeyOf&,
                                            const array<typename KeyOf::type, host>& keys) {
  auto distinct = unique_all(cpu, keys, {index_order::first_occurrence, true, true});
  numbered_texts result{std::move(distinct.first), std::move(distinct.inverse)};
  bool same = true;
  if (text_keys::hashes(KeyOf::form))
    texts.with_layout(
        [&](const auto& text) { same = all_same(cpu, result.first.span(), result.numbers.span(), text); });
  return same ? std::optional(std::move(result)) : std::nullopt;
}

/// Numbers few short texts in place, without an array of their keys; nothing for others.
template <class KeyOf>
std::optional<few_rows> index_few_texts(const host& cpu, const text_column& texts, const KeyOf& key_of) {
  std::optional<few_rows> result;
  texts.with_layout([&](const auto& text) {
    using layout = std::decay_t<decltype(text)>;
    if constexpr (!text_keys::hashes(KeyOf::form) && !std::is_same_v<layout, text_column> &&
                  !std::is_same_v<layout, coded_texts>) {
      auto few = index_few<typename KeyOf::type>(cpu, texts.size(),
                                                 values_at{[&](std::size_t i) { return key_of(text[i]); }});
      if (few) result = std::move(few->rows);
    }
  });
  return result;
}

/// A text as a key of 16 bytes, on any place. No short text has the key of a long one.
struct view_key {
  static constexpr std::size_t exact_most = 15;  ///< bytes; longer texts are hashed
  std::uint64_t seed;
  ROOST_FN packed_key<2> operator()(std::string_view text) const {
    const std::size_t n = text.size();
    if (n <= exact_most) return bytes15_key()(text);
    std::uint64_t low = mix64(n, seed), high = low;
    for (std::size_t at = 0; at < n; at += 8) {  // the last 8 bytes may overlap the previous ones
      const std::uint64_t word = load_bytes(text.data() + smaller(at, n - 8), 8);
      low = mix64(low ^ word, seed);
      high = mix64(high + word, ~seed);
    }
    return {{low, high | std::uint64_t{0xFF} << 56}};
  }
};
struct key_of_view {
  const std::string_view* texts;
  view_key key_of;
  ROOST_FN packed_key<2> operator()(std::size_t i) const { return key_of(texts[i]); }
};

/// Whether two texts with the same key differ.
ROOST_FN bool views_differ(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return true;
  if (a.size() <= view_key::exact_most || a.data() == b.data()) return false;
  for (std::size_t at = 0; at < a.size(); at += 8) {
    const std::size_t begin = smaller(at, a.size() - 8);
    if (load_bytes(a.data() + begin, 8) != load_bytes(b.data() + begin, 8)) return true;
  }
  return false;
}
struct differs_from_first {
  const std::string_view* texts;
  const std::uint32_t *first, *numbers;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return views_differ(texts[i], texts[first[numbers[i]]]);
  }
};

template <class Place>
array<packed_key<2>, Place> keys_of_views(const Place& place, std::span<const std::string_view> texts,
                                          std::uint64_t seed) {
  return array_of(place, texts.size(), key_of_view{texts.data(), {seed}});
}

inline constexpr std::uint64_t text_seeds = 16;  // so many collisions are no accident
inline void check_text_rows(std::size_t rows) {
  if (rows <= batch_most) return;
  raise<invalid_argument>({"roost: ", rows, " strings; at most 2^32 - 2 at once"});
}
[[noreturn]] inline void raise_equal_hashes() {
  raise<build_error>({"roost: 16 hash functions could not tell the strings apart; please report it"});
}

/// The form of keys that is shortest for all texts; hash64 for long ones.
inline text_keys::form shortest_form(const host& cpu, const text_column& all) {
  constexpr std::uint64_t long_one = std::uint64_t{1} << 32;
  std::uint64_t above_7_and_15 = 0;
  all.for_each_chunk([&](std::size_t, std::size_t count, const auto& layout) {
    above_7_and_15 += cpu.sum(count, [&](std::size_t i) {
      const std::size_t n = layout[i].size();
      return std::uint64_t{n > 7} + (n > 15 ? long_one : 0);
    });
  });
  return above_7_and_15 >= long_one ? text_keys::form::hash64
         : above_7_and_15 != 0      ? text_keys::form::bytes15
                                    : text_keys::form::bytes7;
}

/// The same for texts of any length.
inline std::optional<few_rows> index_few_texts(const host& cpu, const text_column& texts) {
  return with_key_of(shortest_form(cpu, texts), 0,
                     [&](const auto& key_of) { return index_few_texts(cpu, texts, key_of); });
}

/// Calls done(key_of, seed) with a function that makes keys of the shortest form from texts; if it returns
/// false, again with the next seed.
template <class Done>
void with_keys_for(const host& cpu, const text_column& all, const Done& done) {
  check_text_rows(all.size());
  const text_keys::form shortest = shortest_form(cpu, all);
  if (!text_keys::hashes(shortest))
    return with_key_of(shortest, 0, [&](const auto& key_of) { static_cast<void>(done(key_of, 0)); });
  // The probability that any two of 2^26 texts have the same 64-bit hash is 2^-13.
  if (all.size() <= std::size_t{1} << 26 && done(hash64_key{0}, 0)) return;
  for (std::uint64_t seed = 1; seed < text_seeds; ++seed) {
    if (done(hash128_key{seed}, seed)) return;
  }
  raise_equal_hashes();
}

}  // namespace detail

inline std::optional<array<std::uint32_t, host>> numbers_in_dictionaries(const host& cpu,
                                                                         const text_column& texts) {
  text_column all;  // the texts of the dictionaries, and that of codes that have none
  all.add(1, fixed_texts{"", 0, false});
  std::map<const text_column*, std::size_t> begins;
  bool coded = true;
  texts.for_each_chunk([&](std::size_t, std::size_t, const auto& layout) {
    if constexpr (std::is_same_v<std::decay_t<decltype(layout)>, coded_texts>) {
      if (begins.try_emplace(layout.dictionary, all.size()).second) all.add(*layout.dictionary);
    } else {
      coded = false;
    }
  });
  if (!coded || all.size() > texts.size()) return std::nullopt;
  const auto known = number_texts(cpu, all).numbers;
  array<std::uint32_t, host> numbers(cpu, texts.size());
  texts.for_each_chunk([&](std::size_t begin, std::size_t count, const auto& layout) {
    if constexpr (std::is_same_v<std::decay_t<decltype(layout)>, coded_texts>) {
      const std::uint32_t* const of_codes = known.data() + begins.at(layout.dictionary);
      const std::size_t codes = layout.dictionary->size();
      cpu.for_each(count, [&](std::size_t i) {
        const std::size_t code = layout.code(i);
        numbers[begin + i] = code < codes ? of_codes[code] : known[0];
      });
    }
  });
  return numbers;
}

inline numbered_texts number_texts(const host& cpu, const text_column& texts) {
  detail::check_text_rows(texts.size());
  if (const auto numbers = numbers_in_dictionaries(cpu, texts)) {
    auto all = unique_all(cpu, *numbers, {index_order::first_occurrence, true, true});
    return {std::move(all.first), std::move(all.inverse)};
  }
  numbered_texts result;
  detail::with_keys_for(cpu, texts, [&](const auto& key_of, std::uint64_t) {
    if (auto few = detail::index_few_texts(cpu, texts, key_of)) {
      result = {copy_to(cpu, few->first), std::move(few->numbers)};
      return true;
    }
    auto numbered = detail::index_by_keys(cpu, texts, key_of, detail::keys_of(cpu, texts, key_of));
    if (numbered) result = std::move(*numbered);
    return numbered.has_value();
  });
  return result;
}

template <class Place>
numbered_views<Place> number_texts(const Place& place, std::span<const std::string_view> texts) {
  detail::check_text_rows(texts.size());
  for (std::uint64_t seed = 0; seed < detail::text_seeds; ++seed) {
    auto all = unique_all(place, detail::keys_of_views(place, texts, seed),
                          {index_order::first_occurrence, true, true});
    const detail::differs_from_first differs{texts.data(), all.first.data(), all.inverse.data()};
    if (place.sum(texts.size(), differs) == 0) return {std::move(all.first), std::move(all.inverse), seed};
  }
  detail::raise_equal_hashes();
}

inline text_keys keys_of_texts(const host& cpu, const text_column& texts) {
  text_keys result;
  detail::with_keys_for(cpu, texts, [&](const auto& key_of, std::uint64_t seed) {
    auto keys = detail::keys_of(cpu, texts, key_of);
    if (text_keys::hashes(key_of.form)) {
      auto numbered = detail::index_by_keys(cpu, texts, key_of, keys);
      if (!numbered) return false;
      result.numbered = std::move(*numbered);
    }
    result.made_of = key_of.form;
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
