#pragma once

#include <roost/out_of_core/out_of_core.hpp>

#include "support/keys.hpp"
#include "support/place.hpp"

// Columns in host memory, and limits from the smallest on. On the host, a second host stands for the GPU.

namespace test {

using place_out_of_core = roost::out_of_core<place_type>;

template <class... Ranges>
std::string bits_of(const Ranges&... ranges) {
  std::string all;
  const auto add = [&](const auto& elements) {
    const std::span some(elements);
    all.append(std::to_string(some.size()) + ":");
    all.append(reinterpret_cast<const char*>(some.data()), some.size_bytes());
  };
  (add(ranges), ...);
  return all;
}

/// What the calls return, by name.
using results = std::vector<std::pair<std::string, std::string>>;

template <class Key>
struct columns {
  std::vector<Key> left, right;
  std::vector<double> weights;  // of the left rows
  std::vector<u32> counts;
};
template <class Key>
columns<Key> columns_of(std::vector<Key> left, std::vector<Key> right) {
  columns<Key> all{std::move(left), std::move(right), {}, {}};
  for (std::size_t i = 0; i < all.left.size(); ++i) {
    all.weights.push_back(static_cast<double>(static_cast<std::int64_t>(roost::mix64(i))) / 3);
    all.counts.push_back(static_cast<u32>(roost::mix64(i)));
  }
  return all;
}

/// Device memory of which no more than a limit may be in use.
struct watched_device {
  watched_memory memory;
  place_type place = make_place(memory);
};

inline std::vector<roost::out_of_core_limits> limits() {
  const std::size_t least = place_out_of_core::device_bytes_least(test_place());
  const auto limit = [](std::size_t device_bytes, std::size_t pinned_bytes, int streams) {
    return roost::out_of_core_limits{
        .device_bytes = device_bytes, .pinned_bytes = pinned_bytes, .streams = streams, .progress = {}};
  };
  const auto spilling = [](roost::out_of_core_limits of) {
    of.spill_folder = std::filesystem::temp_directory_path();
    of.host_bytes = 0;
    return of;
  };
  const std::size_t few_pinned = least >> 6, many_pinned = std::size_t{1} << 20;
  if (sanitized) return {limit(least, few_pinned, 1), spilling(limit(3 * least, many_pinned, 3))};
  return {limit(least, few_pinned, 1), limit(least + (std::size_t{3} << 20), many_pinned, 1),
          spilling(limit(3 * least, few_pinned, 3)),
          limit(3 * least + (std::size_t{1} << 20), many_pinned, 2),
          limit(std::size_t{1} << 30, many_pinned, 0)};
}

/// Whether Calls::through(place, columns) returns what Calls::in_memory(columns) does, with each limit.
template <class Calls, class Key>
void check(const columns<Key>& all) {
  const results expected = Calls::in_memory(all);
  for (const auto& limit : limits()) {
    SCOPED_TRACE(std::to_string(limit.device_bytes) + " bytes, " + std::to_string(limit.pinned_bytes) +
                 " pinned, " + std::to_string(limit.streams) + " streams, files in '" +
                 limit.spill_folder.string() + "'");
    watched_device device;
    const place_out_of_core place(roost::host(2), device.place, limit);
    const results found = Calls::through(place, all);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == expected[i]) << found[i].first << " differs";
    EXPECT_LE(device.memory.most_bytes(), limit.device_bytes);
    EXPECT_EQ(device.memory.live_blocks(), 0u);
    EXPECT_EQ(device.memory.wrong_returns(), 0u);
  }
}

// Of the smallest limit, 2 MiB are for rows: ten thousand.

inline std::size_t many(std::size_t rows) { return sanitized ? rows / 3 : rows; }

template <class Calls, class Key>
void check_any_length() {
  for (const auto& [n, m] : std::vector<std::pair<std::size_t, std::size_t>>{{0, 0},
                                                                             {0, 5},
                                                                             {5, 0},
                                                                             {1, 1},
                                                                             {100, many(90000)},
                                                                             {many(90000), 100},
                                                                             {many(90000), many(120000)}}) {
    SCOPED_TRACE(std::to_string(n) + " and " + std::to_string(m) + " rows");
    check<Calls>(columns_of(from_numbers<Key>(random_numbers(n, 1, n + m)),
                            from_numbers<Key>(random_numbers(m, 2, n + m))));
  }
}

template <class Calls, class Key>
void check_different_keys() {
  check<Calls>(columns_of(from_numbers<Key>(different_numbers(many(120000), 1)),
                          from_numbers<Key>(different_numbers(many(80000), 1))));
}

template <class Calls, class Key>
void check_skewed_keys() {
  check<Calls>(columns_of(from_numbers<Key>(skewed_numbers(many(90000), 1, 50000)),
                          from_numbers<Key>(random_numbers(many(60000), 2, 100000))));
  check<Calls>(columns_of(from_numbers<Key>(random_numbers(many(60000), 1, 100000)),
                          from_numbers<Key>(skewed_numbers(many(90000), 2, 50000))));
}

template <class Calls, class Key>
void check_one_key() {
  check<Calls>(
      columns_of(std::vector<Key>(100000, from_number<Key>(7)), std::vector<Key>(12, from_number<Key>(7))));
  check<Calls>(
      columns_of(std::vector<Key>(12, from_number<Key>(7)), std::vector<Key>(90000, from_number<Key>(7))));
  auto some = from_numbers<Key>(random_numbers(60000, 1, 40000));
  some.resize(140000, from_number<Key>(3));
  check<Calls>(columns_of(shuffled(some, 5), from_numbers<Key>(random_numbers(70000, 2, 60000))));
}

/// Keys that lie in the first of 16 parts, by both hashes.
template <class Calls, class Key>
void check_crafted_keys() {
  std::vector<Key> crafted;
  for (u64 i = 0; crafted.size() < many(60000); ++i) {
    const auto key = from_number<Key>(i);
    const auto is_first = [&](int level) {
      return roost::detail::leading_bits{roost::detail::part_seed(level), 16}(key) == 0;
    };
    if (is_first(0) && is_first(1)) crafted.push_back(key);
  }
  auto both = crafted;
  both.insert(both.end(), crafted.begin(), crafted.begin() + static_cast<std::ptrdiff_t>(crafted.size() / 2));
  check<Calls>(columns_of(shuffled(both, 1), shuffled(crafted, 2)));
}

template <class Calls, class Key>
void check_random_columns() {
  for (u64 seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto random = random_numbers(4, seed);
    const u64 ends[] = {3000, 50000, ~u64{0}};
    const auto side = [&](u64 n, u64 of) {
      return from_numbers<Key>(random_numbers(n % 50000, n, ends[of % 3]));
    };
    check<Calls>(columns_of(side(random[0], random[1]), side(random[2], random[3])));
  }
}

}  // namespace test
