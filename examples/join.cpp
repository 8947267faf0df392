// A join: orders find their customers. Keys are computed from the records where they
// are needed; no array of keys is made. The key is a struct: a customer's number counts
// within his country.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

struct customer_key {
  std::uint32_t country;
  std::uint32_t number;
};
struct customer {
  customer_key key;
  int discount;  // in percent
};
struct order {
  std::uint64_t number;
  customer_key who;
  int cents;
};

constexpr std::uint32_t nobody = ~0u;

int main() {
  // 50 countries with 2000 customers each. Every fifth order is from someone we do not
  // know.
  std::vector<customer> customers;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    customers.push_back({{i / 2000, i % 2000}, static_cast<int>(i % 10)});
  }
  std::vector<order> orders;
  for (std::uint32_t i = 0; i < 500000; ++i) {
    const std::uint32_t c = (i * 7919u) % 100000, stranger = i % 5 == 0 ? 1000 : 0;
    orders.push_back({i, {c / 2000 + stranger, c % 2000}, 1000});
  }

  roost::host cpu;
  const auto key_of = [&](std::size_t i) { return customers[i].key; };
  const auto row = [](std::size_t i) { return static_cast<std::uint32_t>(i); };
  const auto who_ordered = [&](std::size_t i) { return orders[i].who; };

  roost::frozen_map row_of(cpu, roost::computed(customers.size(), key_of),
                           roost::computed(customers.size(), row));
  const auto queries = roost::computed(orders.size(), who_ordered);
  std::vector<std::uint32_t> rows(orders.size());
  row_of.find(cpu, queries, rows, nobody);
  const std::size_t known = row_of.count_found(cpu, queries);

  std::size_t joined = 0, wrong = 0;
  long long cents = 0;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (rows[i] == nobody) continue;
    const customer& c = customers[rows[i]];
    wrong +=
        c.key.country != orders[i].who.country || c.key.number != orders[i].who.number;
    cents += orders[i].cents * (100 - c.discount) / 100;
    ++joined;
  }
  std::printf("%zu of %zu orders have a known customer; they pay %lld.%02lld\n", known,
              orders.size(), cents / 100, cents % 100);

  const bool right =
      wrong == 0 && joined == known && known == 400000 && row_of.valid(cpu);
  std::puts(right ? "join: right" : "join: wrong answers");
  return right ? 0 : 1;
}
