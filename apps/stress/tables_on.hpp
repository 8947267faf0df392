#pragma once

#include "roost/concurrent_map.hpp"
#include "roost/concurrent_set.hpp"
#include "roost/frozen_map.hpp"
#include "roost/shards/sharded_concurrent_map.hpp"
#include "tested_embedding.hpp"
#include "tested_map.hpp"

/// \file
/// The tables of `roost stress`; one source for both places, compiled separately.

namespace roost::stress {

/// A place with memory that refuses, one without, and shards with such memory.
template <class Place, class Shards>
struct surroundings {
  Place poor, rich;
  refusals& memory;
  std::function<Shards(std::size_t)> make_shards;
};

/// A load factor, and a seed of a hash.
struct drawn_options {
  draws random;
  double load_factor;
  std::uint64_t seed;
  bool grows;
  std::size_t n;
  explicit drawn_options(std::uint64_t number) : random(number) {
    load_factor = static_cast<double>(random.one_of<int>({100, 300, 500, 800, 900, 1000})) / 1000;
    seed = random.any();
    grows = random.below(3) != 0;
    n = random.below(4) == 0 ? random.below(20'000) : random.below(200);
  }
};

template <class Key, class Value, class Place>
table_pointer concurrent_table(const on_place<Place>& at, const drawn_options& drawn, const setting& in) {
  const concurrent_options options{drawn.load_factor, drawn.seed, drawn.grows};
  if constexpr (std::is_same_v<Value, none>) {
    using table = concurrent_set<Key, Place>;
    return std::make_unique<tested_map<family::concurrent, on_place<Place>, table, Value>>(
        at, table(at.where(), drawn.n, options), drawn.grows, in);
  } else {
    using table = concurrent_map<Key, Value, Place>;
    return std::make_unique<tested_map<family::concurrent, on_place<Place>, table, Value>>(
        at, table(at.where(), drawn.n, options), drawn.grows, in);
  }
}

template <class Value, class Place>
table_pointer stadium_table(const on_place<Place>& at, drawn_options drawn, const setting& in) {
  using table = stadium_map<std::uint64_t, Value, Place>;
  stadium_options options{.load_factor = drawn.load_factor, .seed = drawn.seed, .grows = drawn.grows};
  options.ticket_bits = drawn.random.one_of({1, 2, 4, 8});
  options.bodies = drawn.random.one_of({residence::automatic, residence::place, residence::host});
  options.region_slots = drawn.random.one_of<std::uint32_t>({0, 100, 1000});
  return std::make_unique<tested_map<family::stadium, on_place<Place>, table, Value>>(
      at, table(at.where(), drawn.n, options), drawn.grows, in);
}

template <class Place>
table_pointer embedding(const on_place<Place>& at, const Place& rich, draws random, const setting& in) {
  embedding_options options;
  options.dim = random.one_of<std::uint32_t>({1, 4, 16, 33});
  options.capacity = random.one_of<std::size_t>({1, 128, 1000, 5000});
  options.cached_rows = random.below(2) * (1 + random.below(options.capacity));
  options.eviction = static_cast<eviction>(random.below(4));
  options.optimizer = static_cast<optimizer>(random.below(4));
  options.admit = random.one_of<std::uint32_t>({1, 1, 2, 3});
  options.keep_evicted = random.one_of<std::size_t>({0, 100});
  options.seed = random.any();
  return std::make_unique<tested_embedding<Place>>(at, rich, options, in);
}

template <class Place, class Shards>
table_pointer make_table(const surroundings<Place, Shards>& around, const history& of, const setting& in) {
  using number = std::uint64_t;
  drawn_options drawn(of.seed);
  const on_place<Place> at(around.poor, around.memory);
  const on_shards<Shards> shards(around.make_shards, of.seed, around.memory);
  const double low_load = std::min(drawn.load_factor, 0.9);
  if (of.kind == "map" && of.seed % 2 == 0)
    return concurrent_table<std::uint32_t, std::uint32_t>(at, drawn, in);
  if (of.kind == "map") return concurrent_table<number, number>(at, drawn, in);
  if (of.kind == "large_values") return concurrent_table<number, large>(at, drawn, in);
  if (of.kind == "set") return concurrent_table<number, none>(at, drawn, in);
  if (of.kind == "stadium") return stadium_table<large>(at, drawn, in);
  if (of.kind == "embedding") return embedding(at, around.rich, drawn.random, in);
  if (of.kind == "sharded") {
    using table = sharded_concurrent_map<number, number, Shards>;
    table made(shards.where(), drawn.n, {drawn.load_factor, drawn.seed, drawn.grows});
    return std::make_unique<tested_map<family::concurrent, on_shards<Shards>, table, number>>(
        shards, std::move(made), drawn.grows, in);
  }
  if (of.kind == "sharded_file") {
    using table = sharded_map<number, number, Shards>;
    auto made = std::make_unique<tested_map<family::frozen, on_shards<Shards>, table, number>>(
        shards, table({.load_factor = low_load, .seed = drawn.seed}), true, in);
    made->make({"clear", 0, 1, 0, 0});  // which builds it
    return made;
  }
  using table = frozen_map<number, number, Place>;
  auto made = std::make_unique<tested_map<family::frozen, on_place<Place>, table, number>>(
      at, table(typename table::options{.load_factor = low_load, .seed = drawn.seed}), true, in);
  made->make({"clear", 0, 1, 0, 0});
  return made;
}

}  // namespace roost::stress
