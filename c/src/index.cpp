#include "keys.hpp"
#include "operations.hpp"
#include "texts.hpp"

// Indexes.

namespace roost::c {
namespace {

/// The type in which an index has a column, so that queries of any width find their row.
arrow_type widest(arrow_type type) {
  if (type.meaning != "numbers") return type;
  if (type.number >= column_type::f4) {
    type.number = column_type::f8;
  } else if (type.number != column_type::u8) {
    type.number = column_type::i8;
  }
  return type;
}

template <class Place>
class index final : public roost_index {
  template <class Key>
  using map_of = frozen_map<Key, std::uint32_t, Place>;

 public:
  index(const Place& place, const roost_table& table, null_equality nulls, int at) {
    device = at;
    for (const auto& column : table.columns.columns()) types_.push_back(widest(column.type));
    texts_.resize(types_.size());
    arrow_keys<Place> read;
    std::vector<row_columns<Place>> tables;
    tables.push_back(read_columns(place, table, read, [&](std::size_t c, auto texts) {
      texts_[c] = std::make_unique<text_numbers<Place>>(place, texts);
      return texts_[c]->take_numbers();
    }));
    packing_.emplace(place, std::span(tables), nulls);
    with_keys(place, packing_->packing(), tables[0].columns, 0,
              [&]<class Key>(const array<Key, Place>& keys) {
                const auto all = unique_all(place, keys, {index_order::any, true});
                map_ = map_of<Key>(place, all.keys, all.first);
                return true;
              });
  }

  void find(const roost_table& queries, ArrowDeviceArray* rows) const override {
    const at_place<Place> there(device);
    const Place place = there.get();
    arrow_keys<Place> read;
    row_columns<Place> columns = read_columns(
        place, queries, read, [&](std::size_t c, auto texts) { return texts_[c]->find(place, texts); });
    packing_->replace_queries(place, columns);
    array<std::uint32_t, Place> found(place, queries.columns.rows());
    with_keys(place, packing_->packing(), columns.columns, 1, [&]<class Key>(const array<Key, Place>& keys) {
      std::get<map_of<Key>>(map_).find(place, keys, found, ~std::uint32_t{0});
      return true;
    });
    auto result = rows_of(place, found, device);
    finish_at(place, device, {{&result, rows}});
  }

 private:
  /// Reads the columns of a table as those of the index. number(column, texts): the numbers of texts.
  template <class Number>
  row_columns<Place> read_columns(const Place& place, const roost_table& table, arrow_keys<Place>& read,
                                  const Number& number) const {
    check_rows(table.columns.rows());
    at_place<Place>::wait_for(place, table.event);
    const auto columns = table.columns.columns();
    if (columns.size() != types_.size()) {
      detail::raise<invalid_argument>({"roost: queries of ", columns.size(), " columns in an index of ",
                                       types_.size(), "; pass as many"});
    }
    row_columns<Place> result;
    for (std::size_t c = 0; c < types_.size(); ++c) {
      if (widest(common_type(types_[c], columns[c].type, detail::arrow_name(*columns[c].schema))) !=
          types_[c]) {
        detail::raise<invalid_argument>(
            {"roost: an index of other types than column ", c, " of the queries; convert one of them"});
      }
      read.add(place, 0, columns[c], types_[c]);
      const auto added = read.columns(0).subspan(result.columns.size());
      result.columns.insert(result.columns.end(), added.begin(), added.end());
      if (types_[c].made_of != arrow_type::form::text) continue;
      result.kept.push_back(number(c, texts_of(added[0])));
      result.columns.back().values = result.kept.back().data();
    }
    return result;
  }

  std::vector<arrow_type> types_;
  std::vector<std::unique_ptr<text_numbers<Place>>> texts_;
  std::optional<row_packing<Place>> packing_;
  std::variant<map_of<std::uint32_t>, map_of<std::uint64_t>, map_of<packed_key<2>>, map_of<packed_key<4>>>
      map_;
};

/// Destroys it where its memory is.
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
