// says: has_inserts
#include <roost/frozen_map.hpp>

// No table of layout bucketed has inserts, or has them under another name.
struct with_inserts : roost::bucketed {
  static constexpr roost::detail::layout_abilities can{
      .hash_order = true, .builds_in_turn = true, .inserts_on_host = true};
};
const roost::frozen_map<int, int, roost::host, with_inserts> map(roost::host(), std::vector<int>(1),
                                                                 std::vector<int>(1));
