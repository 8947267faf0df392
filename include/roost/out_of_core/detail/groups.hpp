#pragma once

// group_by and unique: see roost/out_of_core/out_of_core.hpp.

#include "roost/detail/groups/frequent_keys.hpp"
#include "roost/detail/groups/sort_keys.hpp"
#include "roost/out_of_core/detail/join.hpp"

namespace roost::detail {

// What waits for a row, or for all rows of a key in a piece of the input.

/// A row and its value, if values are combined in order.
template <class Row, class Value>
struct row_and_value {
  static constexpr bool combines = false;
  Row row;
  Value value;

  ROOST_FN static row_and_value of(Row row, const Value& value) { return {row, value}; }
  template <std::size_t>
  ROOST_FN const Value& result() const {
    return value;
  }
};

/// The first row, the number of rows, and the result of each function, if the order does not matter.
template <class Row, class Value, std::size_t N>
struct combined_rows {
  static constexpr bool combines = true;
  Row row, count;
  Value values[N];

  ROOST_FN static combined_rows of(Row row, const Value& value) {
    combined_rows made{row, 1, {}};
    for (std::size_t k = 0; k < N; ++k) made.values[k] = value;
    return made;
  }
  template <std::size_t K>
  ROOST_FN const Value& result() const {
    return values[K];
  }
};
template <class Row>
struct combined_rows<Row, none, 0> {
  static constexpr bool combines = true;
  Row row, count;

  ROOST_FN static combined_rows of(Row row, const none&) { return {row, 1}; }
};

/// Groups as columns.
template <class Key, class Row, class Value, std::size_t N, class Place>
struct group_columns {
  array<Key, Place> keys;
  array<Row, Place> rows, counts;  // the first row, and how many there are
  std::array<array<Value, Place>, N> values;

  /// f(column of a, the same of b) for each.
  template <class Other, class F>
  static void each(group_columns& a, Other& b, const F& f) {
    f(a.keys, b.keys), f(a.rows, b.rows), f(a.counts, b.counts);
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (f(a.values[K], b.values[K]), ...);
    }(std::make_index_sequence<N>());
  }
};

template <class Item, std::size_t K>
struct result_of_item {
  const Item* items;
  const std::uint32_t* order;
  ROOST_FN auto operator[](std::size_t i) const { return items[order[i]].value.template result<K>(); }
};
template <class Item>
struct count_of_item {
  const Item* items;
  const std::uint32_t* order;
  ROOST_FN auto operator[](std::size_t i) const { return items[order[i]].value.count; }
};
template <class Item>
struct row_of_group {
  const Item* items;
  const std::uint32_t* order;
  const std::uint64_t* offsets;
  ROOST_FN auto operator()(std::size_t g) const { return items[order[offsets[g]]].value.row; }
};
template <class Row>
struct count_of_group {
  const std::uint64_t* offsets;
  ROOST_FN Row operator()(std::size_t g) const { return static_cast<Row>(offsets[g + 1] - offsets[g]); }
};
template <class Item, class Key, class Value>
struct item_of_row {
  const Key* keys;
  const Value* values;
  std::size_t first;
  ROOST_FN Item operator()(std::size_t i) const {
    using waits = decltype(Item::value);
    using row = decltype(waits::row);
    if constexpr (std::is_same_v<Value, none>) {
      return {keys[i], waits::of(static_cast<row>(first + i), none())};
    } else {
      return {keys[i], waits::of(static_cast<row>(first + i), values[i])};
    }
  }
};
template <class Item, class Key, class Row, class Value, std::size_t N>
struct item_of_group {
  const Key* keys;
  const Row* rows;
  const Row* counts;
  const Value* values[N == 0 ? 1 : N];
  ROOST_FN Item operator()(std::size_t g) const {
    Item item{};
    item.key = keys[g], item.value.row = rows[g], item.value.count = counts[g];
    if constexpr (N != 0) {
      for (std::size_t k = 0; k < N; ++k) item.value.values[k] = values[k][g];
    }
    return item;
  }
};

/// The rows of a caller's ranges; Values: a sequence, or none.
template <class Item, class Keys, class Values>
struct whole_rows {
  using item_type = Item;
  using key = element_of<Keys>;
  Keys keys;
  Values values;

  std::size_t size() const { return keys.size(); }
  template <class Call>
  auto load(Call& call, std::size_t first, std::size_t count) const {
    const auto stored = call.template load<key>(host_elements<Keys>{keys}, first, count);
    if constexpr (std::is_same_v<Values, none>) {
      return array_of(call.device(), count, item_of_row<Item, key, none>{stored.data(), nullptr, first});
    } else {
      using value = element_of<Values>;
      const auto of_keys = call.template load<value>(host_elements<Values>{values}, first, count);
      return array_of(call.device(), count,
                      item_of_row<Item, key, value>{stored.data(), of_keys.data(), first});
    }
  }
};

/// i * of
struct multiple {
  std::uint64_t of;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return i * of; }
};

/// The values of items that wait, as a source of copies.
template <class Item>
struct waiting_values {
  const waiting_items<Item>& items;

  template <class Value>
  void write(Value* target, std::size_t first, std::size_t count) const {
    items.each(first, count, [&](const Item* from, std::size_t some) {
      for (std::size_t i = 0; i < some; ++i) *target++ = from[i].value.value;
    });
  }
};

/// The part of a key: by a hash, with parts for frequent keys, or by one of its bytes.
template <class Key>
struct part_of_key {
  regions_and_frequent_keys<Key> hashed;
  int byte;  // or -1

  ROOST_FN std::uint32_t operator()(const Key& key) const {
    if (byte < 0) return hashed(key);
    return reinterpret_cast<const unsigned char*>(&key)[byte];
  }
};

/// The groups of rows, with N functions. `Wait`: what waits for a row.
template <class Device, class Key, class Row, class Value, class Wait, class... F>
class out_of_core_groups {
  static constexpr std::size_t functions = sizeof...(F);
  using item = pair<Key, Wait>;
  template <class Place>
  using columns = group_columns<Key, Row, Value, functions, Place>;

  /// What a row takes while it is grouped, and while it is partitioned, before which it may be grouped.
  static constexpr std::size_t group_bytes = sizeof(item) + 3 * sizeof(pair<Key, std::uint32_t>) +
                                             2 * sizeof(Key) + functions * (sizeof(Value) + 2) + 40;
  static constexpr std::size_t partition_bytes =
      larger<std::size_t>(Wait::combines ? group_bytes : 0, 5 * sizeof(item) + 16);

 public:
  explicit out_of_core_groups(out_of_core_call<Device>& call, const F&... f)
      : call_(call), fit_(call.rows_of(group_bytes)), f_(f...) {}

  /// The groups in the order of their first rows. `bytes`: of the ranges.
  template <class Keys, class Values>
  columns<host> run(const Keys& keys, const Values& values, std::size_t bytes) {
    const whole_rows<item, Keys, Values> all{keys, values};
    passes_ = all.size() <= fit_ ? 1 : 2;
    bytes_each_ = static_cast<double>(bytes) / static_cast<double>(larger<std::size_t>(all.size(), 1));
    call_.expect(passes_ * bytes);
    if (all.size() != 0) take(all, 0);
    call_.finish();
    return ordered();
  }

 private:
  /// Finds the groups of all rows of a source, which have been divided `level` times.
  template <class Source>
  void take(const Source& source, int level) {
    const std::size_t n = source.size();
    if (n <= fit_) {
      const std::size_t done = call_.largest(n, [&](std::size_t some) {
        if (some == n) add(groups_of(source.load(call_, 0, n)));
      });
      if (done == n) return advance(source, n);
      fit_ = done;
    }
    if constexpr (!Wait::combines && std::is_same_v<Source, waiting_items<item>>) {
      if (source.have_one_key(call_.cpu())) {
        add_one_key(source);
        return advance(source, n);
      }
    }
    if (level > 2 + static_cast<int>(sizeof(Key)))
      raise<out_of_memory>(
          {call_.where(), ": ", n, " rows do not fit on the device; give more device_bytes"});
    divide(source, level);
  }

  /// Items that wait count by what they are of all rows.
  template <class Source>
  void advance(const Source&, std::size_t rows) {
    call_.advance(static_cast<std::size_t>(static_cast<double>(rows) * bytes_each_));
  }

  template <class Source>
  void divide(const Source& source, int level) {
    constexpr bool is_whole = !std::is_same_v<Source, waiting_items<item>>;
    const Device& device = call_.device();
    const std::uint32_t hashed = level < 2 ? parts_for(source.size(), fit_) : 256;
    part_of_key<Key> part_of{regions_and_frequent_keys<Key>({part_seed(level), hashed}),
                             level < 2 ? -1 : level - 2};
    array<Key, Device> frequent;
    array<std::uint16_t, Device> begins;
    if constexpr (is_whole && !Wait::combines) {
      frequent_keys<Key, host> seen(part_of.hashed.spread);
      seen.sample(call_.cpu(), alone{source.keys}, static_cast<double>(source.size()) / hashed);
      if (seen.region_of.count != 0) {
        frequent = copy_to(device, seen.keys);
        begins = copy_to(device, seen.begins);
        part_of.hashed = seen.region_of;
        part_of.hashed.frequent = frequent.data();
        part_of.hashed.begins = begins.data();
      }
    }
    waiting_parts<item> parts(hashed + part_of.hashed.count);
    call_.each_piece(source.size(), call_.rows_of(partition_bytes),
                     [&](std::size_t first, std::size_t count) {
                       auto items = source.load(call_, first, count);
                       if constexpr (Wait::combines) items = items_of(groups_of(std::move(items)));
                       parts.add(call_, items, part_of);
                       if (is_whole) advance(source, count);
                     });
    for (std::uint32_t p = 0, end = 0; p < parts.parts(); p = end) {
      std::size_t size = parts.size(end++);
      while (end < parts.parts() && size + parts.size(end) <= fit_) size += parts.size(end++);
      if (size != 0) take(parts.of(p, end), level + 1);
    }
  }

  columns<Device> groups_of(array<item, Device> items) {
    const Device& device = call_.device();
    const item* const from = items.data();
    const auto keys = keys_of_items(items);
    auto grouped = group(device, zipped{keys, numbers_to<std::uint32_t>(items.size())}, 0, call_.where());
    const std::size_t n = grouped.size();
    const std::uint32_t* const order = grouped.values.data();
    const std::span<const std::uint64_t> offsets(grouped.offsets.data(), n + 1);
    columns<Device> result;
    result.rows = array_of(device, n, row_of_group<item>{from, order, offsets.data()});
    if constexpr (Wait::combines) {
      result.counts = array<Row, Device>(device, n);
      reduce_lists(device, count_of_item<item>{from, order}, offsets, plus(), result.counts.data(), nullptr);
    } else {
      result.counts = array_of(device, n, count_of_group<Row>{offsets.data()});
    }
    each_function([&]<std::size_t K>(const auto& f) {
      result.values[K] = array<Value, Device>(device, n);
      reduce_lists(device, result_of_item<item, K>{from, order}, offsets, f, result.values[K].data(),
                   nullptr);
    });
    result.keys = std::move(grouped.keys);
    device.synchronize();
    return result;
  }

  array<item, Device> items_of(const columns<Device>& groups) {
    item_of_group<item, Key, Row, Value, functions> make{
        groups.keys.data(), groups.rows.data(), groups.counts.data(), {}};
    each_function([&]<std::size_t K>(const auto&) { make.values[K] = groups.values[K].data(); });
    auto result = array_of(call_.device(), groups.rows.size(), make);
    call_.device().synchronize();
    return result;
  }

  void add(const columns<Device>& groups) {
    columns<host> more;
    columns<host>::each(more, groups,
                        [&](auto& target, const auto& source) { target = call_.store(source); });
    groups_.push_back(std::move(more));
  }

  /// The group of rows with one key, of which there are too many to be combined at once.
  void add_one_key(const waiting_items<item>& source) {
    const host& cpu = call_.cpu();
    item first;
    source.write(&first, 0, 1);
    columns<host> more{array<Key, host>(cpu, 1), array<Row, host>(cpu, 1), array<Row, host>(cpu, 1), {}};
    more.keys[0] = first.key;
    more.rows[0] = first.value.row;
    more.counts[0] = static_cast<Row>(source.size());
    each_function([&]<std::size_t K>(const auto& f) {
      more.values[K] = array<Value, host>(cpu, 1);
      more.values[K][0] = combine_list(waiting_values<item>{source}, source.size(), f);
    });
    groups_.push_back(std::move(more));
  }

  /// f over a list of n values, nested as in reduce_lists: a run of reduced_at_once^k values that begins at a
  /// multiple of that is combined by itself.
  template <class Source, class Function>
  Value combine_list(const Source& source, std::size_t n, const Function& f) {
    const std::size_t room = call_.rows_of(4 * sizeof(Value) + 32);
    std::size_t run = reduced_at_once;
    while (run * reduced_at_once <= room) run *= reduced_at_once;
    array<Value, host> results(call_.cpu(), ceil_div(n, run));
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::size_t count = smaller(run, n - r * run);
      const auto values = call_.template load<Value>(source, r * run, count);
      const auto ends = array_of(call_.device(), 2, multiple{count});
      array<Value, Device> result(call_.device(), 1);
      reduce_lists(call_.device(), values.data(), ends.span(), f, result.data(), nullptr);
      results[r] = read_one(call_.device(), result.data());
    }
    if (results.size() == 1) return results[0];
    return combine_list(host_elements{as_sequence(results)}, results.size(), f);
  }

  /// body<K>(function K) for each.
  template <class Body>
  void each_function(const Body& body) const {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (body.template operator()<K>(std::get<K>(f_)), ...);
    }(std::index_sequence_for<F...>());
  }

  /// All groups, by first row.
  columns<host> ordered() {
    const host& cpu = call_.cpu();
    columns<host> all = joined();
    const std::size_t n = all.rows.size();
    const auto sorted = sort_keys(cpu, as_sequence(std::as_const(all.rows)), numbers_to<Row>(n));
    const auto order = array_of(cpu, n, sorted.number());
    columns<host> result;
    columns<host>::each(result, all, [&]<class T>(array<T, host>& target, array<T, host>& source) {
      target = array_of(cpu, n, gather<T, Row>{source.data(), order.data()});
      source = {};
    });
    return result;
  }
  columns<host> joined() {
    if (groups_.size() == 1) return std::move(groups_[0]);
    std::size_t n = 0, done = 0;
    for (const auto& some : groups_) n += some.rows.size();
    columns<host> result;
    columns<host>::each(result, result, [&]<class T>(array<T, host>& target, const auto&) {
      target = array<T, host>(call_.cpu(), n);
    });
    for (auto& some : groups_) {
      const std::size_t count = some.rows.size();
      columns<host>::each(result, some, [&]<class T>(array<T, host>& target, array<T, host>& source) {
        copy_elements(call_.cpu(), target.data() + done, std::as_const(source).data(), count);
        source = {};
      });
      done += count;
    }
    return result;
  }

  out_of_core_call<Device>& call_;
  std::size_t fit_;  // rows that can be grouped at once
  int passes_ = 1;
  double bytes_each_ = 0;
  std::tuple<F...> f_;
  std::vector<columns<host>> groups_;
};

/// Groups by several functions of one column.
template <class Device, class Keys, class Values, class... F>
auto group_by_out_of_core(const out_of_core<Device>& place, const Keys& keys, const Values& values,
                          bool counts, const char* where, const F&... f) {
  using key = element_of<Keys>;
  using value = element_of<Values>;
  using row = std::uint64_t;
  constexpr std::size_t n = sizeof...(F);
  using waits = std::conditional_t<(combines_in_any_order<F, value> && ...), combined_rows<row, value, n>,
                                   row_and_value<row, value>>;
  const auto source = zip_checked(keys, values, where);
  out_of_core_call<Device> call(place, where);
  auto groups = out_of_core_groups<Device, key, row, value, waits, F...>(call, f...)
                    .run(source.keys, source.values, source.size() * (sizeof(key) + sizeof(value)));
  aggregated<key, value, host, n> result;
  result.keys = std::move(groups.keys);
  if (counts) result.counts = std::move(groups.counts);
  for (std::size_t k = 0; k < n; ++k) results_of(result, k) = std::move(groups.values[k]);
  return result;
}
template <class Device, class Keys, class Values, class... F>
auto group_by_out_of_core(const out_of_core<Device>& place, const Keys& keys, const Values& values,
                          bool counts, const char* where, const std::tuple<F...>& functions) {
  static_assert(sizeof...(F) != 0, "give at least one function");
  return std::apply(
      [&](const auto&... f) { return group_by_out_of_core(place, keys, values, counts, where, f...); },
      functions);
}

template <class Device, class Keys>
unique_keys<element_of<Keys>, host> unique_out_of_core(const out_of_core<Device>& place, const Keys& keys,
                                                       const unique_options& wanted, const char* where) {
  using key = element_of<Keys>;
  using row = std::uint32_t;
  const auto sequence = as_sequence(keys);
  check_order<key>(wanted.order, where);
  check_batch(sequence.size(), where);
  const host& cpu = place.cpu();
  unique_keys<key, host> result;
  {
    out_of_core_call<Device> call(place, where);
    auto groups = out_of_core_groups<Device, key, row, none, combined_rows<row, none, 0>>(call).run(
        sequence, none(), sequence.size() * sizeof(key));
    auto order = array_of(cpu, groups.keys.size(), number<row>());
    if constexpr (is_integer<key>) {
      if (wanted.order == index_order::by_key) groups.keys = sort_by_key(cpu, groups.keys, order);
    }
    if (wanted.first)
      result.first = array_of(cpu, order.size(), gather<row>{groups.rows.data(), order.data()});
    if (wanted.counts) {
      result.counts = array<std::uint64_t, host>(cpu, order.size());
      write_numbers(cpu, order.size(), gather<row>{groups.counts.data(), order.data()}, result.counts.data());
    }
    result.keys = std::move(groups.keys);
  }
  if (wanted.inverse) {
    out_of_core_join<row, Device, Keys, array<key, host>> join(place, keys, result.keys, where);
    result.inverse = std::move(join.pairs(false).right);
  }
  return result;
}

}  // namespace roost::detail

namespace roost {

template <class Device, class Keys, class Values, class F>
auto group_by(const out_of_core<Device>& place, const Keys& keys, const Values& values, const F& f,
              const group_options& options) {
  return detail::group_by_out_of_core(place, keys, values, options.counts, "roost::group_by", f);
}

template <class Device, class Keys, class Values>
auto group_means(const out_of_core<Device>& place, const Keys& keys, const Values& values,
                 const group_options& options) {
  const detail::converted<double, detail::sequence_of<Values>> doubles{detail::as_sequence(values)};
  auto result = detail::group_by_out_of_core(place, keys, doubles, true, "roost::group_means", plus());
  place.cpu().for_each(result.keys.size(),
                       detail::divide_by_count{result.values.data(), result.counts.data()});
  if (!options.counts) result.counts = {};
  return result;
}

}  // namespace roost
