#pragma once

#include <algorithm>

#include "support/place.hpp"

// Calls that change a table and are refused memory.

namespace test {

/// What a call may have done when it throws out_of_memory. `empties`: the elements of the state may all be 0.
/// `part`: some of them are as they are after the call, and it can be made again. `once`: the same, but to
/// make it again would apply the part twice.
enum class refused { changes_nothing, empties, part, once };

/// The bytes of ranges in memory of the place, one after the other.
template <class... Ranges>
std::string bytes_of(const Ranges&... ranges) {
  std::string all;
  const auto add = [&](const auto& elements) {
    all.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(elements[0]));
  };
  (add(download(ranges)), ...);
  return all;
}

/// Makes a table by make(place), and call(place, table) with its allocation 0, 1, ... refused, alone or with
/// all that follow, until none is. Then state(place, table), a range of elements, must be the one before the
/// call, and after the call is made again, once and twice, that of a twin that was never refused.
template <class Make, class Call, class State, class Rich = place_type, class Poor = decltype(&make_place)>
void expect_refusals(refused may, const Make& make, const Call& call, const State& state,
                     const Rich& rich = test_place(), Poor place_with = make_place) {
  auto twin = make(rich);
  const auto before = state(rich, twin);
  call(rich, twin);
  const auto once = state(rich, twin);
  call(rich, twin);
  const auto twice = state(rich, twin);
  watched_memory memory;
  const auto poor = place_with(memory);
  for (const bool alone : {true, false}) {
    for (std::size_t good = 0, refusals = 1; refusals != 0; ++good) {
      ASSERT_LT(good, 1000u);
      SCOPED_TRACE((alone ? "without allocation " : "without all from allocation ") + std::to_string(good));
      auto table = make(poor);
      const std::size_t bytes = memory.live_bytes();
      bool thrown = false;
      memory.refuse_after(good, alone ? 1 : ~std::size_t{0});
      try {
        call(poor, table);
      } catch (const roost::out_of_memory&) {
        thrown = true;
      }
      refusals = memory.refuse_nothing();
      if (thrown) {
        const auto now = state(poor, table);
        const auto fits = [&](std::size_t i) {
          using element = std::remove_cvref_t<decltype(now[i])>;
          return now[i] == before[i] || now[i] == (may == refused::empties ? element{} : once[i]);
        };
        ASSERT_EQ(now.size(), before.size());
        for (std::size_t i = 0; i < now.size(); ++i)
          ASSERT_TRUE(may == refused::changes_nothing ? now[i] == before[i] : fits(i)) << "element " << i;
        if (may == refused::changes_nothing) {
          ASSERT_EQ(memory.live_bytes(), bytes) << "it has kept memory";
        }
        if (may == refused::once) continue;
        call(poor, table);
      }
      ASSERT_TRUE(state(poor, table) == once) << "the call has another result" << (thrown ? " again" : "");
      call(poor, table);
      ASSERT_TRUE(state(poor, table) == twice) << "the next call has another result";
    }
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}

/// The same for call(place), which changes nothing and keeps no memory.
template <class Call>
void expect_refusals(const Call& call) {
  expect_refusals(
      refused::changes_nothing, [](const place_type&) { return 0; },
      [&](const place_type& place, int) { call(place); },
      [](const place_type&, int) { return std::string(); });
}

}  // namespace test
