// Includes every public header and uses every table, for compilers that are told to warn: includes of ours
// are no system headers, so what they warn of would be the users' to read.
#include <roost/block_map.hpp>
#include <roost/bulk.hpp>
#include <roost/columns/arrow.hpp>
#include <roost/columns/columns.hpp>
#include <roost/columns/string_index.hpp>
#include <roost/columns/texts.hpp>
#include <roost/concurrent_map.hpp>
#include <roost/concurrent_set.hpp>
#include <roost/cuda.hpp>
#include <roost/embedding/embedding_table.hpp>
#include <roost/error.hpp>
#include <roost/frozen_map.hpp>
#include <roost/frozen_multimap.hpp>
#include <roost/frozen_set.hpp>
#include <roost/functional.hpp>
#include <roost/group_by.hpp>
#include <roost/hash.hpp>
#include <roost/host.hpp>
#include <roost/ids/group_ids.hpp>
#include <roost/ids/reduce_rows.hpp>
#include <roost/join.hpp>
#include <roost/operation.hpp>
#include <roost/ordered/asof_join.hpp>
#include <roost/ordered/grouped_rows.hpp>
#include <roost/ordered/interval_join.hpp>
#include <roost/ordered/rolling.hpp>
#include <roost/ordered/running.hpp>
#include <roost/ordered/sessions.hpp>
#include <roost/pair.hpp>
#include <roost/partition.hpp>
#include <roost/place.hpp>
#include <roost/roost.hpp>
#include <roost/shards/gpus.hpp>
#include <roost/shards/sharded_concurrent_map.hpp>
#include <roost/shards/sharded_file.hpp>
#include <roost/shards/sharded_index.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_map.hpp>
#include <roost/shards/sharded_multimap.hpp>
#include <roost/shards/sharded_set.hpp>
#include <roost/shards/shards.hpp>
#include <roost/sorted_map.hpp>
#include <roost/sparse/coordinate_index.hpp>
#include <roost/sparse/kernel_map.hpp>
#include <roost/sparse/sparse_conv.hpp>
#include <roost/stadium/stadium_file.hpp>
#include <roost/stadium/stadium_map.hpp>
#include <roost/two_way_index.hpp>

namespace {

const roost::host cpu;

struct three_words {
  std::uint64_t words[3];
};

template <class Map, class Key, class Value>
void look_up(const Map& map, const std::vector<Key>& keys, std::vector<Value>& values,
             roost::array<bool, roost::host>& answers) {
  map.find(cpu, keys, values, Value{});
  map.find(cpu, keys, values, answers);
  map.contains(cpu, keys, answers);
  static_cast<void>(map.ref().find(keys[0]).has_value() && map.ref().contains(keys[0]));
}

// The names of what ref() returns, as parameters.
static_assert(sizeof(roost::frozen_ref<int, int>) + sizeof(roost::concurrent_reader<int, three_words>) +
                  sizeof(roost::concurrent_ref<int, roost::none>) + sizeof(roost::stadium_reader<int, int>) +
                  sizeof(roost::stadium_ref<int, int>) !=
              0);

template <class Key, class Value, class Layout = roost::default_layout<Key, Value>>
void use_frozen() {
  std::vector<Key> keys(1);
  std::vector<Value> values(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  roost::frozen_map<Key, Value, roost::host, Layout> map(cpu, keys, values);
  map.rebuild(cpu, keys, values);
  map.rebuild_async(cpu, keys, values);
  map.finish(cpu);
  look_up(map, keys, values, answers);
  map.count_found(cpu, keys);
  map.retrieve_all(cpu, keys, values);
  map.for_each(cpu, [](const Key&, const Value&) {});
  for (const auto& pair : map) values[0] = pair.value;
  static_cast<void>(map.mean_probes(cpu) > 0 && map.valid(cpu));
  roost::frozen_set<Key, roost::host, Layout> set(cpu, keys);
  set.rebuild(cpu, keys);
  set.rebuild_async(cpu, keys);
  set.finish(cpu);
  set.contains(cpu, keys, answers);
  set.count_found(cpu, keys);
  set.retrieve_all(cpu, keys);
  set.for_each(cpu, [](const Key&) {});
  static_cast<void>(set.mean_probes(cpu) > 0 && set.valid(cpu));
}

struct add_first {
  template <class Value>
  Value operator()(const Value& a, const Value& b) const {
    if constexpr (std::is_arithmetic_v<Value>) {
      return roost::plus()(a, b);
    } else {
      Value sum = a;
      sum.words[0] += b.words[0];
      return sum;
    }
  }
};

template <class Map, class Key, class Value>
void use_changes(Map& map) {
  std::vector<Key> keys(1);
  std::vector<Value> values(1);
  const std::vector<char> stencil(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  const std::vector<roost::operation<Key, Value>> operations(1);
  std::vector<roost::operation_result<Value>> results(1);
  map.insert(cpu, keys, values);
  if constexpr (requires { map.insert_if(cpu, keys, values, stencil); }) {
    map.insert_if(cpu, keys, values, stencil);
  } else {
    map.insert_new(cpu, keys, values);
    map.sweep(cpu);
    map.costs(cpu, keys);
  }
  map.insert_or_assign(cpu, keys, values);
  map.insert_or_apply(cpu, keys, values, add_first());
  map.run(cpu, operations, results);
  look_up(std::as_const(map), keys, values, answers);
  map.count_found(cpu, keys);
  map.retrieve_all(cpu, keys, values);
  map.for_each(cpu, [](const Key&, const Value&) {});
  const auto ref = map.ref();
  (void)ref.insert(keys[0], values[0]);
  (void)ref.insert_or_assign(keys[0], values[0]);
  (void)ref.insert_or_apply(keys[0], values[0], add_first());
  ref.insert_and_find(keys[0], values[0]);
  ref.erase(keys[0]);
  map.reserve(cpu, 1);
  map.rehash(cpu, 1);
  map.shrink_to_fit(cpu);
  map.erase(cpu, keys);
  map.erase_if(cpu, [](const Key&, const Value&) { return true; });
  map.clear(cpu);
  static_cast<void>(map.statistics(cpu).size + map.size(cpu) != 0 && map.valid(cpu));
}

template <class Key, class Value>
void use_concurrent() {
  roost::concurrent_map<Key, Value> map(cpu);
  use_changes<roost::concurrent_map<Key, Value>, Key, Value>(map);
}

template <class Key, class Value>
void use_stadium() {
  roost::stadium_map<Key, Value> map(cpu);
  use_changes<roost::stadium_map<Key, Value>, Key, Value>(map);
  roost::save(cpu, map, "file");
  map = roost::load_stadium_map<Key, Value>(cpu, "file");
}

template <class Key>
void use_set() {
  std::vector<Key> keys(1);
  const std::vector<char> stencil(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  roost::concurrent_set<Key> set(cpu);
  set.insert(cpu, keys);
  set.insert_if(cpu, keys, stencil);
  set.contains(cpu, keys, answers);
  set.count_found(cpu, keys);
  set.retrieve_all(cpu, keys);
  set.for_each(cpu, [](const Key&) {});
  (void)set.ref().insert(keys[0]);
  set.erase(cpu, keys);
  set.erase_if(cpu, [](const Key&) { return true; });
  static_cast<void>(set.size(cpu) != 0 && set.valid(cpu));
}

template <class Key, class Value>
void use_groups() {
  std::vector<Key> keys(1);
  std::vector<Value> values(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  std::vector<unsigned> counts(1);
  roost::frozen_multimap<Key, Value> map(cpu, keys, values);
  map.rebuild(cpu, keys, values);
  map.count(cpu, keys, counts);
  map.count_matches(cpu, keys);
  map.contains(cpu, keys, answers);
  map.match_outer(cpu, keys, Value{}).retrieve(cpu, values);
  map.retrieve(cpu, keys);
  map.retrieve_pairs(cpu, keys);
  map.for_each_match(cpu, keys, [](std::uint64_t, const Value&) {});
  map.for_each(cpu, [](const Key&, const Value&) {});
  map.retrieve_all(cpu, keys, values);
  for (const Value& value : map.ref().find(keys[0])) values[0] = value;
  static_cast<void>(map.valid(cpu));
  roost::group_by(cpu, keys, values, add_first());
  if constexpr (std::is_arithmetic_v<Value>) roost::group_means(cpu, keys, values);

  roost::two_way_index index(cpu, keys);
  index.add(cpu, keys);
  index.find(cpu, keys, counts);
  index.contains(cpu, keys, answers);
  static_cast<void>(index.valid(cpu));
  roost::unique(cpu, keys, roost::index_order::any);
  roost::unique_count(cpu, keys);
  roost::inner_join(cpu, keys, keys);
  roost::left_join(cpu, keys, keys);
  roost::semi_join(cpu, keys, keys);
  roost::anti_join(cpu, keys, keys);
  const auto in_order = roost::group_rows(cpu, keys, keys, roost::row_order::descending);
  roost::asof_join(cpu, keys, keys, keys, keys, {.direction = roost::asof_direction::nearest});
  roost::interval_join(cpu, keys, roost::intervals{keys, keys}, keys, keys);
  roost::running(cpu, in_order, keys, roost::plus());
  roost::filled_rows(cpu, in_order, keys);
  roost::ranks_in_groups(cpu, in_order, keys, roost::rank_method::dense);
  roost::combine_groups(cpu, roost::first_rows(cpu, in_order, 2), keys, roost::plus());
  roost::shifted_rows(cpu, in_order, 1);
  roost::nth_rows(cpu, in_order, -1);
  const auto by_time = roost::group_rows(cpu, keys, keys);
  const auto windows = roost::windows_by_time(cpu, by_time, keys, {.before = 3});
  roost::combine_windows(cpu, by_time, windows, keys, roost::plus(), 0u);
  roost::window_ends(cpu, by_time, roost::windows_by_rows(cpu, by_time, {-2, 0}), true);
  roost::sessions(cpu, by_time, keys, 5);
  roost::runs_of_values(cpu, by_time, keys);

  const auto parts = roost::partition(cpu, keys, values, {.regions = 4, .way_back = true, .stable = true});
  const std::vector<Value> results(parts.extent());
  parts.restore(cpu, results, values);
  roost::partition(cpu, keys, {.regions = 4});
}

template <class Key, class Value>
void use_sorted() {
  std::vector<Key> keys(1);
  std::vector<Value> values(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  roost::sorted_map map(cpu, keys, values);
  map.rebuild(cpu, keys, values);
  map.find(cpu, keys, values, Value{});
  map.contains(cpu, keys, answers);
  map.count_found(cpu, keys);
  static_cast<void>(map.ref().find(keys[0]).has_value() && map.load_factor() > 0 && map.valid(cpu));
}

template <int D>
void use_voxels() {
  std::vector<roost::coordinate<D>> voxels(1);
  std::vector<unsigned> rows(1);
  roost::array<bool, roost::host> answers(cpu, 1);
  roost::coordinate_index index(cpu, voxels);
  index.find(cpu, voxels, rows);
  index.contains(cpu, voxels, answers);
  index.for_each(cpu, [](const roost::coordinate<D>&, unsigned) {});
  static_cast<void>(index.count_found(cpu, voxels) + index.ref().size());
  roost::coordinate_index<D> fixed(cpu, {.order = roost::order::input, .capacity = 1});
  fixed.rebuild_async(cpu, voxels);
  fixed.finish(cpu);
  auto map = roost::submanifold(cpu, fixed, {}, {.pairs = true});
  map.rebuild_async(cpu, fixed);
  map.finish(cpu);
  const auto down = roost::pooling(cpu, index),
             up = roost::generative(cpu, index, roost::kernel_shape<D>::cube(2, 2)),
             given = roost::convolution(cpu, index, index, roost::kernel_shape<D>::cube(3));
  static_cast<void>(map.valid(cpu) && down.transposed().volume != 0 && up.made_outputs().valid(cpu) &&
                    given.view().has_neighbour(0, 0));
  if constexpr (D == 3) {
    std::vector<float> numbers(1);
    roost::sparse_conv(cpu, map.view(), {1, 1}, numbers, numbers, numbers, numbers);
    roost::sparse_conv_input_gradient(cpu, map.transposed(), {1, 1}, numbers, numbers, numbers);
    roost::sparse_conv_weight_gradient(cpu, map.view(), {1, 1}, numbers, numbers, numbers);
    roost::sparse_conv_bias_gradient(cpu, map.view(), {1, 1}, numbers, numbers);
  }
}

struct group_of_one {
  static unsigned thread_rank() { return 0; }
  static unsigned size() { return 1; }
  static void sync() {}
};

void use_block_map() {
  using map_type = roost::block_map<unsigned, int, 100, roost::host>;
  map_type::storage memory;
  const map_type map(memory);
  map.clear(group_of_one());
  (void)map.insert_or_apply(1, 1, roost::plus());
  map.for_each(group_of_one(), [](unsigned, int) {});
}

template <class Key, class Value>
void use_sharded() {
  const roost::host_shards shards(2);
  std::vector<std::vector<Key>> keys(2);
  std::vector<std::vector<Value>> values(2);
  std::vector<std::span<bool>> answers(2);
  std::vector<std::vector<std::uint32_t>> counts(2);
  roost::sharded_map map(shards, keys, values);
  map.find(shards, keys, values, Value{});
  map.find(shards, keys, values, answers);
  map.count_found(shards, keys);
  map.retrieve_all(shards, keys, values);
  map.for_each(shards, [](const Key&, const Value&) {});
  roost::save(shards, map, "folder");
  map = roost::load_sharded_map<Key, Value>(shards, "folder");
  roost::sharded_concurrent_map<Key, Value> changing(shards, 100);
  changing.insert(shards, keys, values);
  changing.insert_or_apply(shards, keys, values, roost::plus());
  changing.erase(shards, keys);
  changing.find(shards, keys, values, Value{});
  static_cast<void>(changing.size(shards) + changing.bytes(shards) + changing.ref().contains(Key{}));
  const roost::sharded_set set(shards, keys);
  set.contains(shards, keys, answers);
  set.retrieve_all(shards, keys);
  const roost::sharded_multimap all(shards, keys, values);
  all.find_first(shards, keys, values, Value{});
  all.count(shards, keys, counts);
  static_cast<void>(all.count_matches(shards, keys) + all.retrieve_pairs(shards, keys).size());
  const roost::sharded_index index(shards, keys);
  index.find(shards, keys, counts);
  static_cast<void>(map.valid(shards) && set.valid(shards) && all.valid(shards) && index.valid(shards));
  static_cast<void>(roost::unique(shards, keys).size() + roost::inner_join(shards, keys, keys).size() +
                    roost::group_by(shards, keys, values, roost::plus()).size());
}

template <class Value>
void use_embeddings() {
  const std::vector<std::int64_t> ids(1);
  std::vector<std::uint32_t> slots(1);
  std::vector<Value> rows(4);
  roost::embedding_table<roost::host, Value> table(cpu, {.dim = 4, .capacity = 1, .cached_rows = 1});
  table.prefetch(cpu, {.ids = ids});
  table.look_up(cpu, {.ids = ids}, slots, rows);
  table.update(cpu, {.ids = ids}, slots, rows);
  table.find(cpu, {.ids = ids}, slots, rows);
  table.assign(cpu, {.ids = ids}, rows, rows);
  table.erase(cpu, {.ids = ids});
  table.reserve(cpu, 200);
  std::vector<std::byte> bytes(table.row_bytes() * table.size(cpu));
  const auto entries = table.entries(cpu);
  table.copy_rows(cpu, entries.slots.span(), bytes);
  table.restore(cpu, entries, true, slots);
  table.write_rows(cpu, slots, bytes);
  static_cast<void>(table.counts(cpu).steps + table.take_evicted(cpu).ids.size() + table.bytes() +
                    table.host_bytes());
}

template <class Value, class Id>
void use_ids() {
  const std::vector<Id> groups(3);
  const std::vector<std::int64_t> ids(3);
  const std::vector<Value> rows(3);
  std::vector<Value> out(1);
  std::vector<std::int64_t> order(3), offsets(2);
  std::vector<roost::grouped_position> sorted(3);
  std::uint64_t wrong = 0, size = 0;
  roost::reduce_rows(cpu, std::span(groups), rows, 1, std::span(out), {.wrong = &wrong});
  roost::group_keys(cpu, ids, {.size = &size}, sorted.data());
  roost::reduce_grouped_rows(cpu, sorted, rows, 1, std::span(out), {});
  roost::unique_ids(cpu, ids, {.size = &size});
  roost::find_ids(cpu, ids, ids, order, -1);
  roost::group_ids(cpu, std::span(groups), 1, {order.data(), offsets.data(), nullptr, &wrong});
}

void use_string_index() {
  const std::vector<std::string> texts(1);
  std::vector<std::uint32_t> numbers(1);
  const roost::string_index index(cpu, texts);
  index.find(cpu, texts, numbers);
  static_cast<void>(index.contains(index[0]) && index.valid(cpu));
}

}  // namespace

int main() {
  use_frozen<std::uint16_t, std::uint8_t>();
  use_frozen<std::uint64_t, three_words, roost::bucketed>();
  use_concurrent<std::int16_t, double>();
  use_concurrent<std::uint64_t, three_words>();
  use_stadium<std::int16_t, float>();
  use_set<std::uint32_t>();
  use_groups<std::int32_t, float>();
  use_sorted<std::int16_t, float>();
  use_block_map();
  use_string_index();
  use_ids<float, std::int32_t>();
  use_ids<roost::bfloat16, std::int64_t>();
  use_ids<std::int64_t, std::int64_t>();
  use_embeddings<float>();
  use_embeddings<roost::bfloat16>();
  use_embeddings<roost::float16>();
  use_voxels<2>();
  use_voxels<3>();
  use_voxels<4>();
  use_sharded<std::int32_t, float>();
}
