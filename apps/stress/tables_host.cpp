#include "tables_on.hpp"

namespace roost::stress {

table_pointer table_on_host(const history& of, const setting& in) {
  static refusing_host_memory memory;
  const host poor(in.threads, &memory);
  const surroundings<host, host_shards> around{
      poor, host(1), memory, [poor](std::size_t n) { return host_shards(static_cast<int>(n), poor); }};
  expect(memory.live() == 0, "the table before this one has kept memory");
  return make_table(around, of, in);
}

}  // namespace roost::stress
