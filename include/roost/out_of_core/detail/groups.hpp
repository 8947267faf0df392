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
template <class Row>
struct row_and_value<Row, none> {
  static constexpr bool combines = false;
  Row row;

  ROOST_FN static row_and_value of(Row row, const none&) { return {row}; }
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
  template <std::size_t>
  ROOST_FN none result() const {  // nvcc looks for it
    return {};
  }
};

/// Groups as columns.
template <class Key, class Row, class Count, class Value, std::size_t N, class Place>
struct group_columns {
  array<Key, Place> keys;
  array<Row, Place> rows;      // the first ones
  array<Count, Place> counts;  // of rows
  std::array<array<Value, Place>, N> values;
};

// What items, and groups, have.
struct key_of {
  template <class Item>
  ROOST_FN auto operator()(const Item& of) const {
    return of.key;
  }
};
struct first_row_of {
  template <class Item>
  ROOST_FN auto operator()(const Item& of) const {
    return of.value.row;
  }
};
struct count_of {
  template <class Item>
  ROOST_FN auto operator()(const Item& of) const {
    return of.value.count;
  }
};
template <std::size_t K>
struct result_of {
  template <class Item>
  ROOST_FN auto operator()(const Item& of) const {
    return of.value.template result<K>();
  }
};

/// Of rows in input order.
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
/// Group order[g], or g if `order` is null.
template <class Item, class Key, class Row, class Value, std::size_t N>
struct item_of_group {
  const Key* keys;
  const Row* rows;
  const Row* counts;
  const Value* values[N == 0 ? 1 : N];
  const std::uint32_t* order;
  ROOST_FN Item operator()(std::size_t i) const {
    const std::size_t g = order == nullptr ? i : order[i];
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
  template <class Worker>
  auto load(Worker& worker, std::size_t first, std::size_t count) const {
    const auto stored = worker.template load<key>(host_elements<Keys>{keys}, first, count);
    if constexpr (std::is_same_v<Values, none>) {
      return array_of(worker.device(), count, item_of_row<Item, key, none>{stored.data(), nullptr, first});
    } else {
      using value = element_of<Values>;
      const auto of_keys = worker.template load<value>(host_elements<Values>{values}, first, count);
      return array_of(worker.device(), count,
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
    items.each_read(first, count, [&](const auto* from, std::size_t some) {
      for (std::size_t i = 0; i < some; ++i) *target++ = from[i].value.value;
    });
  }
  template <class Body>
  void each(std::size_t, std::size_t count, const Body& body) const {
    body(static_cast<const decltype(Item::value.value)*>(nullptr), count);
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

/// A group as it waits for its place.
template <class Key, class Row, class Value, std::size_t N>
struct found_group : pair<Key, combined_rows<Row, Value, N>> {
  ROOST_FN Row row() const { return this->value.row; }
};

/// The groups of rows, with N functions. `Wait`: what waits for a row.
template <class Device, class Key, class Row, class Value, class Wait, class... F>
class out_of_core_groups {
  static constexpr std::size_t functions = sizeof...(F);
  using item = pair<Key, Wait>;
  using group_item = found_group<Key, Row, Value, functions>;
  using found = group_columns<Key, Row, Row, Value, functions, Device>;
  using result = group_columns<Key, Row, std::uint64_t, Value, functions, host>;
  using call = out_of_core_call<Device>;
  using worker = typename call::worker;

  /// What a row takes while it is grouped, and while it is partitioned, before which it may be grouped.
  static constexpr std::size_t group_bytes = sizeof(item) + 3 * sizeof(pair<Key, std::uint32_t>) +
                                             2 * sizeof(Key) + functions * (sizeof(Value) + 2) + 40;
  static constexpr std::size_t partition_bytes =
      larger<std::size_t>(Wait::combines ? group_bytes : 0, 5 * sizeof(item) + 16);

 public:
  /// What is wanted of groups beside their keys and the results of functions.
  struct wanted {
    bool rows, counts;
  };
  out_of_core_groups(call& of, wanted columns_wanted, const F&... f)
      : call_(of), wanted_(columns_wanted), f_(f...) {}

  /// The groups in the order of their first rows. `bytes`: of the ranges.
  template <class Keys, class Values>
  result run(const Keys& keys, const Values& values, std::size_t bytes) {
    const whole_rows<item, Keys, Values> all{keys, values};
    const std::size_t n = all.size();
    bytes_each_ = static_cast<double>(bytes) / static_cast<double>(larger<std::size_t>(n, 1));
    call_.all().alone();
    worker& first = call_.all().first();
    call_.expect(n <= first.rows_of(group_bytes) ? bytes : 2 * bytes);
    if (n != 0 && !take_whole(first, all)) {
      call_.all().share();
      divide_all(all);
    }
    call_.finish();
    return ordered(n);
  }

 private:
  /// Finds the groups of all rows of a source, if it fits.
  template <class Source>
  bool take_whole(worker& mine, const Source& source) {
    const std::size_t n = source.size();
    if (n > mine.rows_of(group_bytes)) return false;
    const std::size_t done = mine.largest(n, [&](std::size_t some) {
      if (some == n) add(mine, groups_of(mine, source.load(mine, 0, n)));
    });
    if (done == n) advance(n);
    return done == n;
  }

  /// Finds the groups of parts, which have been divided `level` times.
  void take(worker& mine, const waiting_items<item>& source, int level) {
    const std::size_t n = source.size();
    if (take_whole(mine, source)) return;
    if constexpr (!Wait::combines) {
      if (source.have_one_key(mine.cpu())) {
        add_one_key(mine, source);
        return advance(n);
      }
    }
    if (level > 2 + static_cast<int>(sizeof(Key)))
      raise<out_of_memory>({mine.where(), ": ", n, " rows do not fit on the device; give more device_bytes"});
    const std::uint32_t hashed = level < 2 ? parts_for(n, mine.rows_of(group_bytes)) : 256;
    const part_of_key<Key> part_of{regions_and_frequent_keys<Key>({part_seed(level), hashed}),
                                   level < 2 ? -1 : level - 2};
    waiting_parts<item, Device> parts(hashed);
    mine.each_piece(0, n, mine.rows_of(partition_bytes), [&](std::size_t first, std::size_t count) {
      auto items = source.load(mine, first, count);
      if constexpr (Wait::combines) items = combined(mine, std::move(items));
      parts.add(mine, 0, items, part_of);
    });
    for (const auto& [p, end] : that_fit(parts, mine.rows_of(group_bytes)))
      take(mine, parts.of(p, end), level + 1);
  }

  /// Items that wait count by what they are of all rows.
  void advance(std::size_t rows) {
    call_.advance(static_cast<std::size_t>(static_cast<double>(rows) * bytes_each_));
  }

  /// Divides all rows, and finds the groups of the parts.
  template <class Source>
  void divide_all(const Source& source) {
    const auto workers = call_.all();
    const std::size_t n = source.size(), fit = workers.first().rows_of(group_bytes);
    const std::uint32_t hashed = parts_for(n, fit);
    part_of_key<Key> part_of{regions_and_frequent_keys<Key>({part_seed(0), hashed}), -1};
    array<Key, Device> frequent;
    array<std::uint16_t, Device> begins;
    if constexpr (!Wait::combines) {
      frequent_keys<Key, host> seen(part_of.hashed.spread);
      seen.sample(call_.cpu(), alone{source.keys}, static_cast<double>(n) / hashed);
      if (seen.region_of.count != 0) {
        frequent = copy_to(workers.first().device(), seen.keys);
        begins = copy_to(workers.first().device(), seen.begins);
        part_of.hashed = seen.region_of;
        part_of.hashed.frequent = frequent.data();
        part_of.hashed.begins = begins.data();
      }
    }
    waiting_parts<item, Device> parts(hashed + part_of.hashed.count);
    std::vector<array<item, Device>> kept(workers.size());  // of each worker
    workers.each_piece(n, partition_bytes,
                       [&](worker& mine, std::size_t p, std::size_t first, std::size_t count) {
                         auto items = source.load(mine, first, count);
                         if constexpr (Wait::combines) {
                           items = combined(mine, std::move(items), kept[mine.number()]);
                           if (items.size() <= smaller(count, mine.rows_of(partition_bytes)) / 8) {
                             kept[mine.number()] = std::move(items);
                             return advance(count);
                           }
                         }
                         parts.add(mine, p, items, part_of);
                         kept[mine.number()] = {};
                         advance(count);
                       });
    workers.each(Wait::combines ? 1 : 0, [&](worker& mine, std::size_t) {
      for (auto& items : kept) parts.add(mine, n, std::exchange(items, {}), part_of);
    });
    const auto together = that_fit(parts, fit);
    workers.each(together.size(), [&](worker& mine, std::size_t i) {
      take(mine, parts.of(together[i].first, together[i].second), 1);
    });
  }

  /// Neighbouring parts that fit together, without those that are empty.
  static auto that_fit(const waiting_parts<item, Device>& parts, std::size_t fit) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> together;
    for (std::uint32_t p = 0, end = 0; p < parts.parts(); p = end) {
      std::size_t size = parts.size(end++);
      while (end < parts.parts() && size + parts.size(end) <= fit) size += parts.size(end++);
      if (size != 0) together.emplace_back(p, end);
    }
    return together;
  }

  found groups_of(worker& mine, array<item, Device> items) {
    const Device& device = mine.device();
    const item* const from = items.data();
    const auto keys = keys_of_items(items);
    auto grouped = group(device, zipped{keys, numbers_to<std::uint32_t>(items.size())}, 0, mine.where());
    const std::size_t n = grouped.size();
    const std::uint32_t* const order = grouped.values.data();
    const std::span<const std::uint64_t> offsets(grouped.offsets.data(), n + 1);
    found result;
    if constexpr (Wait::combines) {
      result.rows = array<Row, Device>(device, n);
      reduce_lists(device, in_order_of<item, first_row_of>{from, order}, offsets, minimum(),
                   result.rows.data(), nullptr);
      result.counts = array<Row, Device>(device, n);
      reduce_lists(device, in_order_of<item, count_of>{from, order}, offsets, plus(), result.counts.data(),
                   nullptr);
    } else {
      result.rows = array_of(device, n, row_of_group<item>{from, order, offsets.data()});
      result.counts = array_of(device, n, count_of_group<Row>{offsets.data()});
    }
    each_function([&]<std::size_t K>(const auto& f) {
      result.values[K] = array<Value, Device>(device, n);
      reduce_lists(device, in_order_of<item, result_of<K>>{from, order}, offsets, f, result.values[K].data(),
                   nullptr);
    });
    result.keys = std::move(grouped.keys);
    device.synchronize();
    return result;
  }
  array<item, Device> combined(worker& mine, array<item, Device> items) {
    return items_of<item>(mine, groups_of(mine, std::move(items)), nullptr);
  }
  /// The same, with items that were combined before.
  array<item, Device> combined(worker& mine, array<item, Device> items, const array<item, Device>& before) {
    if (before.size() == 0) return combined(mine, std::move(items));
    array<item, Device> both(mine.device(), before.size() + items.size());
    mine.device().copy(both.data(), before.data(), before.bytes());
    mine.device().copy(both.data() + before.size(), items.data(), items.bytes());
    items = {};
    return combined(mine, std::move(both));
  }

  template <class Item>
  array<Item, Device> items_of(worker& mine, const found& groups, const std::uint32_t* order) {
    item_of_group<Item, Key, Row, Value, functions> make{
        groups.keys.data(), groups.rows.data(), groups.counts.data(), {}, order};
    each_function([&]<std::size_t K>(const auto&) { make.values[K] = groups.values[K].data(); });
    auto result = array_of(mine.device(), groups.rows.size(), make);
    mine.device().synchronize();
    return result;
  }

  /// Adds groups, by first row.
  void add(worker& mine, const found& groups) {
    const Device& device = mine.device();
    const auto sorted =
        sort_keys(device, as_sequence(groups.rows), numbers_to<std::uint32_t>(groups.rows.size()));
    const auto order = array_of(device, groups.rows.size(), sorted.number());
    const auto items = items_of<group_item>(mine, groups, order.data());
    keep(mine.store(items.data(), items.size()));
  }
  void keep(waiting<group_item, Device> groups) {
    const std::lock_guard hold(lock_);
    groups_.push_back(std::move(groups));
  }

  /// The group of rows with one key, of which there are too many to be combined at once.
  void add_one_key(worker& mine, const waiting_items<item>& source) {
    const item first = source.front();
    group_item group{};
    group.key = first.key;
    group.value.row = first.value.row;
    group.value.count = static_cast<Row>(source.size());
    if constexpr (functions != 0) {
      each_function([&]<std::size_t K>(const auto& f) {
        group.value.values[K] = combine_list(mine, waiting_values<item>{source}, source.size(), f);
      });
    }
    waiting<group_item, Device> one(mine.blocks(), 1);
    one[0][0] = group;
    keep(std::move(one));
  }

  /// f over a list of n values, nested as in reduce_lists: a run of reduced_at_once^k values that begins at a
  /// multiple of that is combined by itself.
  template <class Source, class Function>
  Value combine_list(worker& mine, const Source& source, std::size_t n, const Function& f) {
    const std::size_t room = mine.rows_of(4 * sizeof(Value) + 32);
    std::size_t run = reduced_at_once;
    while (run * reduced_at_once <= room) run *= reduced_at_once;
    array<Value, host> results(mine.cpu(), ceil_div(n, run));
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::size_t count = smaller(run, n - r * run);
      const auto values = mine.template load<Value>(source, r * run, count);
      const auto ends = array_of(mine.device(), 2, multiple{count});
      array<Value, Device> result(mine.device(), 1);
      reduce_lists(mine.device(), values.data(), ends.span(), f, result.data(), nullptr);
      results[r] = read_one(mine.device(), result.data());
    }
    if (results.size() == 1) return results[0];
    return combine_list(mine, host_elements{as_sequence(results)}, results.size(), f);
  }

  /// body<K>(function K) for each.
  template <class Body>
  void each_function(const Body& body) const {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (body.template operator()<K>(std::get<K>(f_)), ...);
    }(std::index_sequence_for<F...>());
  }

  /// All groups of n rows, by first row.
  result ordered(std::size_t n) {
    const host& cpu = call_.cpu();
    items_by_row<group_item, Device> order(call_, n);
    for (const auto& some : groups_) order.add_all(some);
    const std::size_t size = order.size();
    result all;
    all.keys = array<Key, host>(cpu, size);
    if (wanted_.rows) all.rows = array<Row, host>(cpu, size);
    if (wanted_.counts) all.counts = array<std::uint64_t, host>(cpu, size);
    each_function([&]<std::size_t K>(const auto&) { all.values[K] = array<Value, host>(cpu, size); });
    order.each(
        larger(sizeof(std::uint64_t), larger(sizeof(Key), sizeof(Value))), 0,
        [&](worker& mine, const auto& groups, const auto& positions, const auto& of) {
          store_column<key_of>(mine, groups, positions, of, all.keys);
          if (wanted_.rows) store_column<first_row_of>(mine, groups, positions, of, all.rows);
          if (wanted_.counts) store_column<count_of>(mine, groups, positions, of, all.counts);
          each_function([&]<std::size_t K>(const auto&) {
            store_column<result_of<K>>(mine, groups, positions, of, all.values[K]);
          });
        },
        [&](std::size_t at, const group_item& group) {
          all.keys[at] = group.key;
          if (wanted_.rows) all.rows[at] = group.row();
          if (wanted_.counts) all.counts[at] = group.value.count;
          each_function(
              [&]<std::size_t K>(const auto&) { all.values[K][at] = group.value.template result<K>(); });
        });
    return all;
  }

  call& call_;
  wanted wanted_;
  double bytes_each_ = 0;
  std::tuple<F...> f_;
  std::mutex lock_;
  std::vector<waiting<group_item, Device>> groups_;  // of the parts, in any order
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
  auto groups = out_of_core_groups<Device, key, row, value, waits, F...>(call, {false, counts}, f...)
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

/// Whether nearly all keys of a piece are different, so that there is nothing to combine before they wait.
template <class Device, class Keys>
bool repeats_little(const out_of_core<Device>& place, const Keys& keys) {
  const std::size_t sample = std::bit_floor(smaller(keys.size(), std::size_t{1} << 18));
  if (sample == 0) return true;
  constexpr std::size_t row_bytes = 128;  // about what a row takes while it is grouped
  const auto piece = static_cast<double>(place.limits().device_bytes / place.limits().streams / row_bytes);
  return static_cast<double>(count_copies(place.cpu(), alone{keys}, static_cast<std::uint32_t>(sample))) <
         static_cast<double>(sample) * static_cast<double>(sample) / (2 * piece);
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
  const auto groups_of = [&]<class Wait>(std::type_identity<Wait>) {
    out_of_core_call<Device> call(place, where);
    auto groups = out_of_core_groups<Device, key, row, none, Wait>(call, {wanted.first, wanted.counts})
                      .run(sequence, none(), sequence.size() * sizeof(key));
    return unique_keys<key, host>{
        std::move(groups.keys), std::move(groups.rows), {}, std::move(groups.counts)};
  };
  unique_keys<key, host> result = repeats_little(place, sequence)
                                      ? groups_of(std::type_identity<row_and_value<row, none>>())
                                      : groups_of(std::type_identity<combined_rows<row, none, 0>>());
  if constexpr (is_integer<key>) {
    if (wanted.order == index_order::by_key) {
      const std::size_t n = result.keys.size();
      auto order = array_of(cpu, n, number<row>());
      result.keys = sort_by_key(cpu, result.keys, order);
      if (wanted.first) result.first = array_of(cpu, n, gather{result.first.data(), order.data()});
      if (wanted.counts) result.counts = array_of(cpu, n, gather{result.counts.data(), order.data()});
    }
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
