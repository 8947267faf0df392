#include <roost/stadium/detail/memory.hpp>
#include <string>

#include "support/place.hpp"

namespace test {
namespace {

TEST(stadium_memory, pages_refuse_more_memory_than_the_machine_has) {
  const std::size_t all = roost::detail::bytes_of_host();
  expect_error<roost::out_of_memory>([&] { roost::detail::pages{all + 1}; },
                                     {std::to_string(all + 1) + " bytes", std::to_string(all)});
  roost::detail::pages grows(4096);
  expect_error<roost::out_of_memory>([&] { grows.resize(all + 1); }, {std::to_string(all)});
  EXPECT_EQ(grows.bytes(), 4096u);
}

}  // namespace
}  // namespace test
