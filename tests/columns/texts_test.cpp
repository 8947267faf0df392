#include <random>
#include <roost/columns/texts.hpp>
#include <string>
#include <unordered_map>

#include "support/keys.hpp"
#include "support/place.hpp"

// number_texts against a map of the standard library: of columns in each layout, which are the host's, and of
// views at any place.

namespace test {
namespace {

/// Texts in memory as Arrow has them, in all layouts.
struct stored_texts {
  std::vector<std::string> texts;
  std::string bytes, fixed;
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int64_t> long_offsets{0};
  std::vector<roost::viewed_texts::view> views;
  const void* buffers[1] = {};
  std::size_t width = 0;

  explicit stored_texts(std::vector<std::string> from) : texts(std::move(from)) {
    for (const auto& text : texts) {
      roost::viewed_texts::view view{static_cast<std::int32_t>(text.size()), {}, 0, offsets.back()};
      if (text.size() <= 12) std::memcpy(view.begin, text.data(), text.size());
      views.push_back(view);
      bytes += text;
      offsets.push_back(static_cast<std::int32_t>(bytes.size()));
      long_offsets.push_back(offsets.back());
      width = std::max(width, text.size());
    }
    for (const auto& text : texts) fixed += text + std::string(width - text.size(), '\0');
    buffers[0] = bytes.data();
  }

  roost::packed_texts<std::int32_t> packed(std::size_t from = 0) const {
    return {offsets.data() + from, bytes.data()};
  }
};

std::vector<std::string> some_texts(std::size_t n, std::size_t different, std::size_t longest) {
  std::mt19937_64 random(n + different + longest);
  std::vector<std::string> texts(n);
  for (auto& text : texts) {
    const u64 which = random() % different;
    text = std::to_string(which);
    text.resize(std::max(text.size(), static_cast<std::size_t>(which * 7 % (longest + 1))), 'x');
    if (which == 0) text.clear();
  }
  return texts;
}

void expect_numbered(const roost::text_column& column, const std::vector<std::string>& texts) {
  std::unordered_map<std::string_view, u32> numbers;
  std::vector<u32> first, inverse;
  for (const auto& text : texts) {
    const auto [at, is_new] = numbers.emplace(text, static_cast<u32>(numbers.size()));
    if (is_new) first.push_back(static_cast<u32>(inverse.size()));
    inverse.push_back(at->second);
  }
  for (const int threads : {1, 3}) {
    if (sanitized && threads == 1 && texts.size() > 1000) continue;
    const roost::host cpu(threads);
    const auto found = roost::number_texts(cpu, column);
    ASSERT_TRUE(std::ranges::equal(found.first, first));
    ASSERT_TRUE(std::ranges::equal(found.numbers, inverse));
    const auto keys = roost::keys_of_texts(cpu, column);
    const auto again = roost::keys_of_texts(cpu, column, keys.made_of, keys.seed);
    std::visit(
        [&](const auto& of) {
          const auto& same = std::get<std::decay_t<decltype(of)>>(again.keys);
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < texts.size(); ++i)
            wrong += !(of[i] == of[first[inverse[i]]]) || !(of[i] == same[i]);
          EXPECT_EQ(wrong, 0u);
        },
        keys.keys);
    EXPECT_EQ(keys.numbered.numbers.size(), roost::text_keys::hashes(keys.made_of) ? texts.size() : 0);
  }
}

TEST(texts, are_numbered_by_first_occurrence_in_each_layout) {
  for (const std::size_t n : {0, 1, 1000, (1 << 17) - 1, 150000}) {
    for (const std::size_t longest : {7, 15, 40}) {
      for (const std::size_t different : {3, 5000, 1 << 20}) {
        if (sanitized && n > 1000 && (longest == 15 || different != 5000)) continue;
        SCOPED_TRACE(testing::Message() << n << " texts, " << different << ", up to " << longest);
        const stored_texts stored(some_texts(n, different, longest));
        roost::text_column packed, of_long, viewed, fixed, chunked;
        packed.add(n, stored.packed());
        of_long.add(n, roost::packed_texts<std::int64_t>{stored.long_offsets.data(), stored.bytes.data()});
        viewed.add(n, roost::viewed_texts{stored.views.data(), stored.buffers, {}});
        fixed.add(n, roost::fixed_texts{stored.fixed.data(), stored.width, true});
        chunked.add(n / 3, stored.packed());
        chunked.add(n - n / 3, stored.packed(n / 3));
        for (const auto* column : {&packed, &of_long, &viewed, &fixed, &chunked})
          expect_numbered(*column, stored.texts);
      }
    }
  }
}

void expect_numbered_by_dictionaries(const roost::text_column& column, const std::vector<std::string>& texts,
                                     std::size_t known) {
  expect_numbered(column, texts);
  const auto numbers = roost::numbers_in_dictionaries(roost::host(), column);
  ASSERT_EQ(numbers.has_value(), known < texts.size());  // and one for codes without a text
  if (!numbers) return;
  std::unordered_map<std::string_view, u32> of_texts;
  std::unordered_map<u32, std::string_view> of_numbers;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ASSERT_LE((*numbers)[i], known);
    ASSERT_EQ(of_texts.emplace(texts[i], (*numbers)[i]).first->second, (*numbers)[i]);
    ASSERT_EQ(of_numbers.emplace((*numbers)[i], texts[i]).first->second, texts[i]);
  }
}

TEST(texts, of_a_dictionary_are_compared_as_texts) {
  const stored_texts words({"rook", "crow", "rook", "a text of more than fifteen bytes", ""});
  roost::text_column dictionary, column;
  dictionary.add(5, words.packed());
  const std::vector<std::uint8_t> codes{0, 1, 2, 3, 4, 0, 200};  // the last one is of no text
  column.add(codes.size(), roost::coded_texts{codes.data(), 1, &dictionary});
  std::vector<std::string> texts;
  for (const auto code : codes) texts.push_back(code < 5 ? words.texts[code] : "");
  expect_numbered_by_dictionaries(column, texts, 5);
  roost::text_column more;  // with a chunk that has no codes
  more.add(column);
  more.add(2, words.packed());
  texts.insert(texts.end(), {"rook", "crow"});
  expect_numbered(more, texts);
  EXPECT_FALSE(roost::numbers_in_dictionaries(roost::host(), more));
}

TEST(texts, of_dictionaries_are_numbered_by_codes) {
  for (const std::size_t n : {1, 10, 1000, sanitized ? 5000 : 150'000}) {
    for (const std::size_t known : {std::size_t{0}, n / 20, n - 1, n, 3 * n}) {
      SCOPED_TRACE(testing::Message() << n << " codes of " << known << " texts");
      const stored_texts words(some_texts(known, known + 1, 40));  // some are equal
      roost::text_column one, other, column;
      const std::size_t here = known / 3;
      one.add(here, words.packed());
      other.add(known - here, words.packed(here));
      std::mt19937_64 random(n + known);
      std::vector<std::string> texts;
      std::vector<std::uint64_t> codes;
      const auto add = [&](std::size_t from, std::size_t count) {
        for (std::size_t i = 0; i < n / 2; ++i) {
          codes.push_back(random() % 50 == 0 ? ~std::uint64_t{i} : random() % (count + 1));
          texts.push_back(codes.back() < count ? words.texts[from + codes.back()] : "");
        }
      };
      add(0, here), add(here, known - here), add(0, here);
      for (std::size_t chunk = 0; chunk < 3; ++chunk)
        column.add(n / 2, roost::coded_texts{codes.data() + chunk * (n / 2), 8, chunk == 1 ? &other : &one});
      expect_numbered_by_dictionaries(column, texts, known);
    }
  }
}

/// Views of texts in memory of the place, and the numbers that these have.
void expect_views_numbered(const std::vector<std::string>& texts, std::uint64_t seed) {
  const stored_texts stored(texts);
  const auto bytes = upload(std::vector<char>(stored.bytes.begin(), stored.bytes.end()));
  std::vector<std::string_view> views;
  std::vector<u32> first, numbers;
  std::unordered_map<std::string_view, u32> known;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    views.emplace_back(bytes.data() + stored.offsets[i], texts[i].size());
    const auto [at, is_new] = known.emplace(texts[i], static_cast<u32>(known.size()));
    if (is_new) first.push_back(static_cast<u32>(i));
    numbers.push_back(at->second);
  }
  const auto placed = upload(views);
  const auto found = roost::number_texts(test_place(), placed.span());
  EXPECT_EQ(roost::copy_to_host(test_place(), found.first), first);
  EXPECT_EQ(roost::copy_to_host(test_place(), found.numbers), numbers);
  EXPECT_EQ(found.seed, seed);
}

TEST(texts, are_numbered_at_any_place) {
  for (const std::size_t n : {0, 1, 1000, 150000}) {
    for (const std::size_t longest : {7, 15, 16, 40}) {
      for (const std::size_t different : {3, 5000, 1 << 20}) {
        if (sanitized && n > 1000 && different != 5000) continue;
        expect_views_numbered(some_texts(n, different, longest), 0);
      }
    }
  }
  std::vector<std::string> prefixes;  // which differ in their last bytes, and in their lengths
  for (std::size_t n = 0; n < 70; ++n) {
    prefixes.emplace_back(n, 'a');
    if (n > 0) prefixes.push_back(std::string(n - 1, 'a') + 'b');
    prefixes.push_back(std::string(n, 'a') + '\0');
  }
  expect_views_numbered(prefixes, 0);
}

TEST(texts, with_one_hash_are_hashed_anew) {
  // Found by trying first words: the second ones follow.
  const u64 words[2][2] = {{1, 0xd09480a0642105}, {0x6aa4ff7, 0xd82c006750829a78}};
  std::vector<std::string> texts;
  for (const auto& text : words) texts.emplace_back(reinterpret_cast<const char*>(text), sizeof(text));
  const roost::detail::view_key before{0}, after{1};
  ASSERT_EQ(before(texts[0]), before(texts[1]));
  ASSERT_NE(after(texts[0]), after(texts[1]));
  expect_views_numbered({"rook", texts[0], texts[1], texts[0], "rook"}, 1);
}

TEST(texts, remember_nulls) {
  const stored_texts words({"rook", "crow"});
  roost::text_column column;
  column.add_null(9);
  column.add(2, words.packed());
  EXPECT_EQ(column.nulls(), 1u);
  ASSERT_EQ(column.valid().size(), 2u);
  EXPECT_EQ(column.valid()[0], 0xFF);
  EXPECT_EQ(column.valid()[1], 0xFD);
}

}  // namespace
}  // namespace test
