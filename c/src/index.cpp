#include "lookup.hpp"
#include "operations.hpp"

// Indexes.

namespace roost::c {
namespace {

template <class Place>
class index final : public roost_index {
  template <class Key>
  using map_of = frozen_map<Key, std::uint32_t, Place>;
  using key_columns = std::vector<key_column>;

 public:
  index(const Place& place, const roost_table& table, null_equality nulls, int at) {
    device = at;
    check(place, table);
    packing_.emplace(place, table.columns.columns(), nulls,
                     [&](const column_packing& packing, const key_columns& columns) {
                       with_keys(place, packing, columns, 0, [&]<class Key>(const array<Key, Place>& keys) {
                         const auto all = unique_all(place, keys, {index_order::any, true});
                         map_ = map_of<Key>(place, all.keys, all.first);
                         return true;
                       });
                     });
  }

  void find(const roost_table& queries, ArrowDeviceArray* rows) const override {
    const at_place<Place> there(device);
    const Place place = there.get();
    check(place, queries);
    array<std::uint32_t, Place> found(place, queries.columns.rows());
    packing_->with_queries(
        place, queries.columns.columns(), [&](const column_packing& packing, const key_columns& columns) {
          with_keys(place, packing, columns, 1, [&]<class Key>(const array<Key, Place>& keys) {
            std::get<map_of<Key>>(map_).find(place, keys, found, ~std::uint32_t{0});
            return true;
          });
        });
    auto result = rows_of(place, found, device);
    finish_at(place, device, {{&result, rows}});
  }

 private:
  static void check(const Place& place, const roost_table& table) {
    check_rows(table.columns.rows());
    at_place<Place>::wait_for(place, table.event);
  }

  std::optional<lookup_packing<Place>> packing_;
  std::variant<map_of<std::uint32_t>, map_of<std::uint64_t>, map_of<packed_key<2>>, map_of<packed_key<4>>>
      map_;
};

/// Destroys it at the place of its memory.
template <class Place>
class placed_index final : public roost_index {
 public:
  explicit placed_index(std::unique_ptr<index<Place>> it) : it_(std::move(it)) { device = it_->device; }
  ~placed_index() override {
    const at_place<Place> there(device);
    it_.reset();
  }
  void find(const roost_table& queries, ArrowDeviceArray* rows) const override { it_->find(queries, rows); }

 private:
  std::unique_ptr<index<Place>> it_;
};

}  // namespace

template <class Place>
std::unique_ptr<roost_index> on<Place>::index(const roost_table& table, null_equality nulls) const {
  const at_place<Place> there(device_);
  const Place place = there.get();
  auto made = std::make_unique<c::index<Place>>(place, table, nulls, device_);
  place.synchronize();
  return std::make_unique<placed_index<Place>>(std::move(made));
}

template std::unique_ptr<roost_index> on<ROOST_C_PLACE>::index(const roost_table&, null_equality) const;

}  // namespace roost::c
