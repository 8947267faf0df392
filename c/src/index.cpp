#include "keys.hpp"
#include "operations.hpp"

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

struct same_number {
  ROOST_FN std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i); }
};

/// Texts and their numbers, in memory of its own.
class text_numbers {
 public:
  explicit text_numbers(const host& cpu, const text_column& texts) {
    text_keys keys = keys_of_texts(cpu, texts);
    form_ = keys.made_of, seed_ = keys.seed;
    std::visit([&](auto& all) { build(cpu, texts, all, keys.numbered); }, keys.keys);
  }

  array<std::uint32_t, host> take_numbers() { return std::move(numbers_); }

  array<std::uint32_t, host> find(const host& cpu, const text_column& queries) const {
    array<std::uint32_t, host> numbers(cpu, queries.size());
    const text_keys keys = keys_of_texts(cpu, queries, form_, seed_);
    const auto look_up = [&](const auto& map) {
      using key = typename std::decay_t<decltype(map)>::key_type;
      map.find(cpu, std::get<array<key, host>>(keys.keys), numbers, none);
    };
    std::visit(look_up, map_);
    if (!text_keys::hashes(form_)) return numbers;
    cpu.for_each(numbers.size(), [&](std::size_t i) {
      if (numbers[i] != none && queries[i] != text(numbers[i])) numbers[i] = none;
    });
    return numbers;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  template <class Key>
  using map_of = frozen_map<Key, std::uint32_t, host>;

  template <class Key>
  void build(const host& cpu, const text_column& texts, const array<Key, host>& keys,
             numbered_texts& numbered) {
    if (!text_keys::hashes(form_)) {
      auto all = unique_all(cpu, keys, {index_order::first_occurrence, true, true});
      numbered = {std::move(all.first), std::move(all.inverse)};
    }
    const array<std::uint32_t, host>& first = numbered.first;
    const computed distinct(first.size(), [&](std::size_t i) { return keys[first[i]]; });
    map_ = map_of<Key>(cpu, distinct, computed(first.size(), same_number()));
    numbers_ = std::move(numbered.numbers);
    if (!text_keys::hashes(form_)) return;
    offsets_.push_back(0);
    for (const std::uint32_t row : first) {
      bytes_.append(texts[row]);
      offsets_.push_back(bytes_.size());
    }
  }
  std::string_view text(std::uint32_t number) const {
    return std::string_view(bytes_).substr(offsets_[number], offsets_[number + 1] - offsets_[number]);
  }

  text_keys::form form_ = text_keys::form::bytes7;
  std::uint64_t seed_ = 0;
  std::variant<map_of<std::uint64_t>, map_of<packed_key<2>>> map_;
  array<std::uint32_t, host> numbers_;  // of the table's texts
  std::string bytes_;
  std::vector<std::size_t> offsets_;
};

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
    const auto memory = read_columns(place, table, read, 0, [&](std::size_t c, const text_column& texts) {
      if constexpr (std::is_same_v<Place, host>) {
        texts_[c] = std::make_unique<text_numbers>(place, texts);
        return texts_[c]->take_numbers();
      }
    });
    std::vector<row_columns<Place>> tables(1);
    tables[0].columns.assign(read.columns(0).begin(), read.columns(0).end());
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
    const auto memory = read_columns(place, queries, read, 1, [&](std::size_t c, const text_column& texts) {
      if constexpr (std::is_same_v<Place, host>) return texts_[c]->find(place, texts);
    });
    row_columns<Place> columns;
    columns.columns.assign(read.columns(1).begin(), read.columns(1).end());
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
  std::vector<array<std::uint32_t, Place>> read_columns(const Place& place, const roost_table& table,
                                                        arrow_keys<Place>& read, std::size_t as,
                                                        const Number& number) const {
    check_rows(table.columns.rows());
    at_place<Place>::wait_for(place, table.event);
    const auto columns = table.columns.columns();
    if (columns.size() != types_.size()) {
      detail::raise<invalid_argument>({"roost: queries of ", columns.size(), " columns in an index of ",
                                       types_.size(), "; pass as many"});
    }
    std::vector<array<std::uint32_t, Place>> memory;
    for (std::size_t c = 0; c < types_.size(); ++c) {
      if (widest(common_type(types_[c], columns[c].type, detail::arrow_name(*columns[c].schema))) !=
          types_[c]) {
        detail::raise<invalid_argument>(
            {"roost: an index of other types than column ", c, " of the queries; convert one of them"});
      }
      if (types_[c].made_of != arrow_type::form::text) {
        read.add(place, as, columns[c], types_[c]);
      } else if constexpr (std::is_same_v<Place, host>) {
        const text_column texts = table.columns.texts(c);
        memory.push_back(number(c, texts));
        read.add(place, as, memory.back().span(), texts);
      } else {
        detail::raise<invalid_argument>({"roost: texts on a GPU; number them on the CPU"});
      }
    }
    return memory;
  }

  std::vector<arrow_type> types_;
  std::vector<std::unique_ptr<text_numbers>> texts_;
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
