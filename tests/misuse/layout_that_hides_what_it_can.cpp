// says: how to write a layout: detail/frozen/layout.hpp
#include <roost/frozen_map.hpp>

// Its tables are in the order of hashes, but bulk lookups would not go by region.
struct without_order : roost::bucketed {
  static constexpr roost::detail::layout_abilities can{.builds_in_turn = true};
};
const roost::frozen_map<int, int, roost::host, without_order> map(roost::host(), std::vector<int>(1),
                                                                  std::vector<int>(1));
