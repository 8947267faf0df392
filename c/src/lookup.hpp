#pragma once

#include "keys.hpp"
#include "texts.hpp"

// Rows of a table, and of later queries, as keys that are equal exactly if the rows are.

namespace roost::c {

/// The type in which a table stores a column, so that queries of any width find their row.
inline arrow_type widest(arrow_type type) {
  if (type.meaning != "numbers") return type;
  if (type.number >= column_type::f4) {
    type.number = column_type::f8;
  } else if (type.number != column_type::u8) {
    type.number = column_type::i8;
  }
  return type;
}

/// Packs rows of a table, and keeps the packing for the rows of queries.
template <class Place>
class lookup_packing {
 public:
  using columns = std::span<const arrow_table::column>;

  /// f(packing, columns) for the rows of the table.
  template <class F>
  lookup_packing(const Place& place, columns table, null_equality nulls, const F& f) {
    for (const auto& column : table) types_.push_back(widest(column.type));
    texts_.resize(types_.size());
    arrow_keys<Place> read;
    std::vector<row_columns<Place>> tables;
    tables.push_back(read_columns(place, table, read, [&](std::size_t c, auto texts) {
      texts_[c] = std::make_unique<text_numbers<Place>>(place, texts);
      return texts_[c]->take_numbers();
    }));
    packing_.emplace(place, std::span(tables), nulls);
    f(packing_->packing(), tables[0].columns);
  }

  lookup_packing(const lookup_packing&) = delete;

  /// The same for the rows of queries, of table 1. Throws invalid_argument for queries of other types.
  template <class F>
  void with_queries(const Place& place, columns queries, const F& f) const {
    arrow_keys<Place> read;
    row_columns<Place> rows = read_columns(
        place, queries, read, [&](std::size_t c, auto texts) { return texts_[c]->find(place, texts); });
    packing_->replace_queries(place, rows);
    f(packing_->packing(), rows.columns);
  }

 private:
  /// Reads columns like those of the table. number(column, texts): the numbers of texts.
  template <class Number>
  row_columns<Place> read_columns(const Place& place, columns from, arrow_keys<Place>& read,
                                  const Number& number) const {
    if (from.size() != types_.size()) {
      detail::raise<invalid_argument>(
          {"roost: queries of ", from.size(), " columns in a table of ", types_.size(), "; pass as many"});
    }
    row_columns<Place> result;
    for (std::size_t c = 0; c < types_.size(); ++c) {
      if (widest(common_type(types_[c], from[c].type, detail::arrow_name(*from[c].schema))) != types_[c]) {
        detail::raise<invalid_argument>(
            {"roost: a table of other types than column ", c, " of the queries; convert one of them"});
      }
      read.add(place, 0, from[c], types_[c]);
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
};

}  // namespace roost::c
