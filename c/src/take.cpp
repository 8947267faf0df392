#include "take.hpp"

#include "operations.hpp"

// Rows of a table, by their numbers.

namespace roost::c {

template <class Place>
void on<Place>::take(const roost_table& table, const ArrowDeviceArray& rows, ArrowSchema* schema,
                     ArrowDeviceArray* result) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  at_place<Place>::wait_for(place, table.event);
  at_place<Place>::wait_for(place, rows.sync_event);
  const ArrowArray& from = rows.array;
  const wanted_row wanted{static_cast<const std::int64_t*>(from.buffers[1]),
                          from.null_count == 0 ? nullptr : static_cast<const std::uint8_t*>(from.buffers[0]),
                          static_cast<std::size_t>(from.offset)};
  const taker<Place> take(place, device_, wanted, static_cast<std::size_t>(from.length));
  take.check(table.columns.rows());
  std::vector<arrow_owner<ArrowSchema>> types;
  std::vector<arrow_owner<ArrowArray>> columns;
  for (const arrow_table::column& column : table.columns.columns()) {
    taken next = take.column(column);
    types.push_back(std::move(next.type));
    columns.push_back(std::move(next.values));
  }
  const bool is_struct = table.type.get()->format == std::string_view("+s");
  auto type = is_struct ? make_schema("+s", table.type.get()->name, std::move(types)) : std::move(types[0]);
  auto all = is_struct ? make_array(static_cast<std::size_t>(from.length), 0, {{}}, std::move(columns))
                       : std::move(columns[0]);
  finish_at(place, device_, {{&all, result}});
  give(type, schema);
}

template void on<ROOST_C_PLACE>::take(const roost_table&, const ArrowDeviceArray&, ArrowSchema*,
                                      ArrowDeviceArray*) const;

}  // namespace roost::c
