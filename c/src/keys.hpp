#pragma once

#include <variant>

#include "place.hpp"
#include "roost/two_way_index.hpp"

// Rows of tables as keys of tables of roost.

namespace roost::c {

/// Columns of a table, and the memory of some.
template <class Place>
struct row_columns {
  std::vector<key_column> columns;
  std::vector<array<std::uint32_t, Place>> kept;
};

/// f(keys) with the keys of a table's rows.
template <class Place, class F>
auto with_keys(const Place& place, const column_packing& packing, std::span<const key_column> columns,
               std::size_t table, const F& f) {
  const auto with = [&]<class Key>(Key) {
    array<Key, Place> keys(place, columns[0].rows);
    packing.pack(place, columns, keys.data(), table);
    return f(keys);
  };
  switch (packing.key_bytes()) {
    case 4:
      return with(std::uint32_t());
    case 8:
      return with(std::uint64_t());
    case 16:
      return with(packed_key<2>());
    default:
      return with(packed_key<4>());
  }
}

/// Packs rows of any number of columns. If 256 bits are not enough, the first columns are numbered, and their
/// number replaces them.
template <class Place>
class row_packing {
  template <class Key>
  using index_of = two_way_index<Key, Place>;
  struct step {
    column_packing packing;
    std::variant<index_of<std::uint32_t>, index_of<std::uint64_t>, index_of<packed_key<2>>,
                 index_of<packed_key<4>>>
        numbers;
  };

 public:
  /// For one table, or two that are compared; replaces their first columns.
  row_packing(const Place& place, std::span<row_columns<Place>> tables, null_equality nulls) {
    while (true) {
      std::vector<std::span<const key_column>> columns;
      for (const auto& table : tables) columns.emplace_back(table.columns);
      if (columns[0].size() <= column_packing::columns_most) {
        packing_ = column_packing(place, columns, nulls);
        if (packing_.key_bytes() != 0) return;
      }
      for (auto& table : columns) table = table.first(always_fit);
      step next{column_packing(place, columns, nulls), {}};
      for (std::size_t t = 0; t < tables.size(); ++t) {
        replace(tables[t],
                with_keys(place, next.packing, columns[t], t, [&]<class Key>(const array<Key, Place>& keys) {
                  using index = index_of<Key>;
                  if (t == 0)
                    next.numbers = index(typename index::options{.order = index_order::any, .counts = false});
                  return std::get<index>(next.numbers).add(place, keys);
                }));
      }
      steps_.push_back(std::move(next));
    }
  }

  /// Replaces the first columns of queries in the same way.
  void replace_queries(const Place& place, row_columns<Place>& queries) const {
    for (const step& each : steps_) {
      const auto columns = std::span<const key_column>(queries.columns).first(always_fit);
      replace(queries,
              with_keys(place, each.packing, columns, 1, [&]<class Key>(const array<Key, Place>& keys) {
                array<std::uint32_t, Place> numbers(place, keys.size());
                std::get<index_of<Key>>(each.numbers).find(place, keys, numbers);
                return numbers;
              }));
    }
  }

  const column_packing& packing() const { return packing_; }

 private:
  static constexpr std::size_t always_fit = 3;  // columns of any numbers and nulls

  static void replace(row_columns<Place>& table, array<std::uint32_t, Place>&& numbers) {
    auto& columns = table.columns;
    columns.erase(columns.begin() + 1, columns.begin() + always_fit);
    columns[0] = key_column(numbers);
    table.kept.push_back(std::move(numbers));
  }

  std::vector<step> steps_;
  column_packing packing_;
};

inline void check_rows(std::size_t rows) {
  if (rows < ~std::uint32_t{0}) return;
  detail::raise<invalid_argument>({"roost: a table of ", rows, " rows; at most 2^32 - 2 at once"});
}

/// The keys of one table, or of two that are compared.
template <class Place>
class table_keys {
 public:
  table_keys(const Place& place, std::initializer_list<const roost_table*> tables, null_equality nulls) {
    check_rows((*tables.begin())->columns.rows());
    check_rows((*(tables.end() - 1))->columns.rows());
    for (const roost_table* table : tables) at_place<Place>::wait_for(place, table->event);
    const arrow_table& first = (*tables.begin())->columns;
    read_ = tables.size() == 1 ? arrow_keys<Place>(place, {&first})
                               : arrow_keys<Place>(place, {&first, &(*(tables.end() - 1))->columns});
    for (std::size_t t = 0; t < tables.size(); ++t) {
      tables_.emplace_back().columns.assign(read_.columns(t).begin(), read_.columns(t).end());
    }
    packing_.emplace(place, std::span(tables_), nulls);
  }

  /// f(keys)
  template <class F>
  auto with(const Place& place, const F& f) const {
    return with_keys(place, packing_->packing(), tables_[0].columns, 0, f);
  }
  /// f(keys, keys of the other table), of one type.
  template <class F>
  auto with_both(const Place& place, const F& f) const {
    return with(place, [&]<class Key>(const array<Key, Place>& keys) {
      array<Key, Place> others(place, tables_[1].columns[0].rows);
      packing_->packing().pack(place, tables_[1].columns, others.data(), 1);
      return f(keys, others);
    });
  }

  /// The bitmaps of columns that have nulls, before some were numbered.
  std::vector<const std::uint8_t*> bitmaps() const {
    std::vector<const std::uint8_t*> result;
    for (const key_column& column : read_.columns(0)) {
      if (column.valid != nullptr) result.push_back(column.valid);
    }
    return result;
  }

 private:
  arrow_keys<Place> read_;
  std::vector<row_columns<Place>> tables_;
  std::optional<row_packing<Place>> packing_;
};

}  // namespace roost::c
