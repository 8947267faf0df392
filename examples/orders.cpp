// Two tables that share a column, where a row may match any number of rows: orders and
// the parcels that were sent for them. What each kind of join gives, all parcels of an
// order, and their weight.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

using rows = std::vector<std::uint32_t>;

int main() {
  const std::vector<std::uint64_t> orders{1007, 1003, 1012, 1005};  // their numbers
  // Of each parcel, the number of its order, and its weight:
  const std::vector<std::uint64_t> sent{1005, 1007, 1001, 1005, 1007, 1005};
  const std::vector<std::uint32_t> grams{300, 450, 120, 80, 2000, 500};
  roost::host cpu;

  const auto inner = roost::inner_join(cpu, orders, sent);  // orders with their parcels
  const auto all = roost::left_join(cpu, orders, sent);     // and orders without one
  // Orders with a parcel, each once.
  const auto begun = roost::semi_join(cpu, orders, sent);
  const auto idle = roost::anti_join(cpu, orders, sent);  // orders without one

  const auto order_of = all.left.span(), parcel_of = all.right.span();
  for (std::size_t i = 0; i < order_of.size(); ++i) {  // pair i: two numbers of rows
    const auto order = static_cast<unsigned long long>(orders[order_of[i]]);
    if (parcel_of[i] == roost::no_row<std::uint32_t>) {
      std::printf("order %llu: nothing was sent\n", order);
    } else {
      std::printf("order %llu: %u g\n", order, grams[parcel_of[i]]);
    }
  }

  // For more than one lookup, keep the table that a join makes.
  const roost::frozen_multimap parcels(cpu, sent, grams);
  const auto parcels_of = parcels.ref();
  rows of_1005;
  // In input order.
  for (const std::uint32_t g : parcels_of.find(1005)) of_1005.push_back(g);

  // Many keys at once: how many values they have is known before there must be room for
  // them.
  const auto found = parcels.match(cpu, orders);
  rows weights(found.size());
  found.retrieve(cpu, weights);  // of orders[i] from found.offsets()[i] on

  // One value for all values of a key.
  const auto sums = roost::group_by(cpu, sent, grams, roost::plus());
  std::size_t heaviest = 0;
  for (std::size_t g = 1; g < sums.size(); ++g) {
    if (sums.values.span()[g] > sums.values.span()[heaviest]) heaviest = g;
  }
  const std::uint64_t order = sums.keys.span()[heaviest];
  const std::uint32_t most = sums.values.span()[heaviest];
  std::printf("%zu parcels of %zu orders; the heaviest is order %llu, %u g\n",
              parcels.size(), sums.size(), static_cast<unsigned long long>(order),
              most);

  const auto none = roost::no_row<std::uint32_t>;
  const auto is = [&](const auto& got, const rows& expected) {
    return roost::copy_to_host(cpu, got) == expected;
  };
  const bool right =
      is(inner.left, {0, 0, 3, 3, 3}) && is(inner.right, {1, 4, 0, 3, 5}) &&
      is(all.left, {0, 0, 1, 2, 3, 3, 3}) &&
      is(all.right, {1, 4, none, none, 0, 3, 5}) && is(begun, {0, 3}) &&
      is(idle, {1, 2}) && of_1005 == rows{300, 80, 500} &&
      weights == rows{450, 2000, 300, 80, 500} && order == 1007 && most == 2450 &&
      parcels.key_count() == sums.size() && parcels.valid(cpu);
  std::puts(right ? "orders: right" : "orders: wrong answers");
  return right ? 0 : 1;
}
