// Keys of several columns: sums by shop and day, where some days are not known, and a
// join on both.
#include <array>
#include <cstdint>
#include <cstdio>
#include <roost/columns/columns.hpp>
#include <roost/group_by.hpp>
#include <roost/join.hpp>
#include <vector>

int main() {
  const roost::host cpu;
  const std::vector<std::int16_t> shop{7, 7, 9, 7, 9, 7};
  const std::vector<std::int32_t> day{20781, 20782, 20781, 20781, 0, 0};
  const std::vector<std::uint8_t> day_known{0b00'1111};  // a bit a row, as Arrow has it
  const std::vector<double> amount{10, 20, 30, 40, 50, 60};

  const std::array sales{roost::key_column(shop),
                         roost::key_column(day, day_known.data())};
  const roost::column_packing packing(cpu, sales);
  const std::size_t groups = packing.with_keys(cpu, sales, [&](const auto& keys) {
    const auto sums = roost::group_by(cpu, keys, amount, roost::plus());
    const auto shop_of = packing.unpack<std::int16_t>(cpu, sums.keys, 0);
    const auto day_of = packing.unpack<std::int32_t>(cpu, sums.keys, 1);
    const auto known = packing.valid(cpu, sums.keys, 1);
    for (std::size_t g = 0; g < sums.size(); ++g) {
      std::printf("shop %d, day %d%s: %g\n", shop_of[g], day_of[g],
                  known[g] ? "" : " (not known)", sums.values[g]);
    }
    return sums.size();
  });

  // The rows of two tables become comparable keys by one packing of both.
  const std::vector<std::int16_t> open_shop{9, 7};
  const std::vector<std::int32_t> open_day{20781, 20782};
  const std::array open{roost::key_column(open_shop), roost::key_column(open_day)};
  const std::array<std::span<const roost::key_column>, 2> tables{sales, open};
  const roost::column_packing both(cpu, tables, roost::null_equality::distinct);
  const std::size_t matches =
      both.with_keys(cpu, sales, [&]<class Keys>(const Keys& keys) {
        Keys open_keys(cpu, open_shop.size());
        both.pack(cpu, open, open_keys.data(), 1);
        return roost::inner_join(cpu, keys, open_keys).left.size();
      });

  const bool right = groups == 5 && matches == 2;
  std::puts(right ? "columns: right" : "columns: wrong answers");
  return right ? 0 : 1;
}
