#pragma once

#include <bit>
#include <optional>

#include "roost/frozen_multimap.hpp"
#include "roost/shards/detail/queries.hpp"
#include "roost/shards/shards.hpp"

// Shared by all sharded tables: a table for each shard of this process.

namespace roost {

/// The handle of a sharded table for kernels and host loops: it reads the tables of all shards in place.
/// Trivially copyable, valid while the table lives and is not rebuilt, for up to 16 shards. On roost::gpus a
/// lookup of another GPU's key reads its memory over the links: 6 * 10^9 sectors a second and GPU on H200s
/// with NVLink, where its own memory gives 38. For small batches and irregular code; large batches go to
/// find().
template <class Ref>
class sharded_ref {
 public:
  using key_type = typename Ref::key_type;
  using value_type = typename Ref::value_type;
  static constexpr std::uint32_t shards_most = 16;

  sharded_ref(std::uint32_t shards, std::uint64_t seed) : owners_{seed, shards} {}
  void set(std::uint32_t shard, const Ref& ref) { tables_[shard].ref = ref; }

  /// The table of the shard that owns a key.
  ROOST_FN const Ref& table_of(const key_type& key) const { return tables_[owners_.owner(key)].ref; }
  /// The answer of the table of one shard.
  ROOST_FN auto find(const key_type& key) const { return table_of(key).find(key); }
  ROOST_FN bool contains(const key_type& key) const { return table_of(key).contains(key); }
  ROOST_PREFETCH_FN void prefetch(const key_type& key) const { table_of(key).prefetch(key); }

 private:
  union slot {
    Ref ref;
    slot() {}
  };
  detail::owners owners_;
  slot tables_[shards_most];
};

namespace detail {

template <class Item>
struct key_of_item {
  const Item* items;
  ROOST_FN auto operator()(std::size_t i) const { return items[i].key; }
};
template <class Item>
struct value_of_item {
  const Item* items;
  ROOST_FN auto operator()(std::size_t i) const { return items[i].value; }
};

/// Keys and values of items that have arrived at a shard.
template <class Item, class Place>
auto keys_of(const arrived<Item, Place>& all) {
  return computed(all.items.size(), key_of_item<Item>{all.items.data()});
}
template <class Item, class Place>
auto values_of(const arrived<Item, Place>& all) {
  return computed(all.items.size(), value_of_item<Item>{all.items.data()});
}

/// Sends pairs or keys to the owners of their keys.
template <class Me, class Source>
auto bring_items(Me& me, const Source& source, std::uint64_t seed) {
  const auto mine = split_by_owner<false>(me, source, seed);
  return deliver(me, mine, me.gather(mine.counts));
}

/// The first item of each key.
template <class Source>
struct item_at {
  Source source;
  const std::uint32_t* first;
  ROOST_FN auto operator()(std::size_t i) const { return source[first[i]]; }
};

/// Whether some shard would get many more items than the others, because of many copies of few keys.
inline bool is_crowded(const gathered& all, std::uint32_t shards) {
  const std::uint64_t fair_and_more = [&] {
    std::uint64_t sum = 0;
    for (std::uint32_t s = 0; s < shards; ++s) sum += all.sum(s);
    return sum / shards * 3 / 2 + 4096;
  }();
  for (std::uint32_t s = 0; s < shards; ++s) {
    if (all.sum(s) > fair_and_more) return true;
  }
  return false;
}

/// The same; if few keys have many items, sends the result of fewer() instead.
template <class Me, class Source, class Fewer>
auto bring_items_or(Me& me, const Source& source, std::uint64_t seed, const Fewer& fewer) {
  {
    const auto mine = split_by_owner<false>(me, source, seed);
    const gathered all = me.gather(mine.counts);
    if (!is_crowded(all, me.count())) return deliver(me, mine, all);
  }
  return fewer();
}

/// The same for a table in which the first item of a key wins, or any: if few keys have many items, sends
/// only the first item of each key.
template <class Me, class Source>
auto bring_first_items(Me& me, const Source& source, std::uint64_t seed) {
  return bring_items_or(me, source, seed, [&] {
    const auto each =
        unique_all(me.place(), source.keys, {.order = index_order::first_occurrence, .first = true});
    const item_at<Source> first{source, each.first.data()};
    return bring_items(me, computed(each.keys.size(), first), seed);
  });
}

/// An answer to a lookup that has found the slot of a value that is too large to be moved repeatedly.
template <class Ref, class Answer>
struct with_value_of_slot {
  using result = typename Answer::result;
  Ref ref;
  Answer answer;
  template <class Hit>
  ROOST_FN result of(const Hit& there) const {
    using value = typename Ref::value_type;
    return answer.of(there ? found<value>(ref.value_at(there.slot)) : found<value>());
  }
  ROOST_FN void put(std::size_t i, const result& it) const { answer.put(i, it); }
};

/// A table of this shard that all shards query.
template <class Ref>
struct asked_table {
  Ref ref;
  std::size_t bytes;
  std::uint64_t seed;  // of the owners
};

template <class Me, class Ref, class Queries, class Answer>
bulk_report ask_owners(Me& me, const asked_table<Ref>& table, const gathered& all, const Queries& queries,
                       const Answer& answer, const bulk_options& how) {
  return lookup_by_owners<Me, Ref, element_of<Queries>, Answer>(me, table.ref, table.seed, all, answer)
      .run(queries, how);
}

/// Answers a shard's queries from the tables of all shards: by exchanging queries, or by reading the tables
/// in place. `ref_of(shard)`: the ref of each table, if this shard can read them all.
template <class Shards, class Ref, class Queries, class Answer, class RefOf>
bulk_report ask_tables(const Shards& shards, typename Shards::shard_type& me, const asked_table<Ref>& mine,
                       const Queries& queries, const Answer& answer, const bulk_options& how,
                       [[maybe_unused]] const RefOf& ref_of) {
  me.mark("begun");
  const gathered sizes = me.gather({queries.size(), mine.bytes});
  if constexpr (!one_shard_a_process<Shards>) {
    const bool are_few = sizes.most() < shards_tuning<typename Shards::place_type>::queries;
    if (shards.all_readable() && me.count() <= sharded_ref<Ref>::shards_most &&
        (how.path == path::direct || (how.path == path::automatic && are_few))) {
      sharded_ref<Ref> all(me.count(), mine.seed);
      for (std::uint32_t s = 0; s < me.count(); ++s) all.set(s, ref_of(s));
      const bulk_report report = probe_all(me.place(), all, mine.bytes, queries, answer, how);
      me.place().synchronize();
      return report;
    }
  }
  if constexpr (has_large_values<Ref> && !std::is_same_v<Answer, write_contained>) {
    return ask_owners(me, mine, sizes, queries, with_value_of_slot<Ref, Answer>{mine.ref, answer}, how);
  } else {
    return ask_owners(me, mine, sizes, queries, answer, how);
  }
}

/// The handle for lookups of a table.
template <class Table>
using reader_of = std::remove_cvref_t<decltype(std::declval<const Table&>().ref())>;

/// 1 for a key in the table of a shard that does not own it.
template <class Ref>
struct is_strange {
  Ref ref;
  owners order;
  std::uint32_t shard;
  ROOST_FN std::uint64_t operator()(std::size_t slot) const {
    return ref.occupied(slot) && order.owner(ref.key_at(slot)) != shard ? 1 : 0;
  }
};

template <class T>
struct answer_as_number {
  const T* answers;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return static_cast<std::uint64_t>(answers[i]); }
};

/// An ordinary table for each shard of this process.
template <class Table, class Shards>
class tables_of_shards {
 public:
  using shard_type = typename Shards::shard_type;

  /// Whether there are no tables: then only size() and the like, check() and build() may be called.
  bool empty() const { return shards_ == 0; }
  std::uint32_t shards() const { return shards_; }
  std::uint64_t seed() const { return seed_; }
  std::size_t size() const { return size_; }
  std::size_t slots() const { return slots_; }  // of multimaps the number of different keys
  std::size_t bytes() const { return bytes_; }
  double load_factor() const { return load_factor_; }

  const Table& of(const shard_type& me) const { return *of_shard<Shards>(tables_, me); }
  const Table& operator[](std::size_t shard) const {
    if constexpr (one_shard_a_process<Shards>) {
      return *tables_;
    } else {
      return *tables_[shard];
    }
  }

  /// Calls make(me) for each shard: either all tables are replaced, or none.
  template <class Options, class Make>
  void build(const Shards& shards, const Options& options, const char* where, const Make& make) {
    tables_of_shards fresh;
    fresh.seed_ = options.seed;
    fresh.tables_ = make_each<Shards, std::optional<Table>>(shards);
    shards.run([&](shard_type& me) {
      if constexpr (one_shard_a_process<Shards>) check_options(me, options, where);
      const Table& mine = of_shard<Shards>(fresh.tables_, me).emplace(make(me));
      if (me.local() == 0) fresh.shards_ = me.count();
      if constexpr (requires { mine.size(); }) fresh.note_sizes(me, mine);
    });
    *this = std::move(fresh);
  }

  /// Throws invalid_argument for a place with a different number of shards than these tables.
  void check(const Shards& shards, const char* where) const {
    if (empty() || shards_ == shards.size()) return;
    raise<invalid_argument>({where, ": a table of ", shards_, " shards on a place of ", shards.size(),
                             "; give the place that it was built on"});
  }

  /// f(me, the table) for each shard; then waits.
  template <class F>
  void each(const Shards& shards, const char* where, const F& f) const {
    check(shards, where);
    if (empty()) return;
    shards.run([&](shard_type& me) {
      f(me, of(me));
      me.place().synchronize();
    });
  }

  /// The same for changes of the tables.
  template <class F>
  void change(const Shards& shards, const char* where, const F& f) {
    each(shards, where, [&](shard_type& me, const Table&) { f(me, *of_shard<Shards>(tables_, me)); });
  }

  /// The sum of f(me, the table) over all shards.
  template <class F>
  std::uint64_t sum(const Shards& shards, const char* where, const F& f) const {
    std::uint64_t result = 0;
    each(shards, where, [&](shard_type& me, const Table& mine) {
      const std::uint64_t all = me.gather({f(me, mine)}).sum();
      if (me.local() == 0) result = all;
    });
    return result;
  }

  /// The answers to a shard's queries; those of a multimap are computed from key numbers, on the shard that
  /// owns the keys.
  template <class Queries, class Answer>
  bulk_report ask(const Shards& shards, shard_type& me, const Queries& queries, const Answer& answer,
                  const bulk_options& how) const {
    const Table& mine = of(me);
    if constexpr (requires { mine.key_count(); }) {
      const auto& numbers = numbers_of_keys::of(mine);
      const gathered sizes = me.gather({queries.size(), numbers.bytes()});
      return ask_owners(me, asked_table{numbers.ref(), numbers.bytes(), seed_}, sizes, queries, answer, how);
    } else {
      return ask_tables(shards, me, asked_table{mine.ref(), mine.bytes(), seed_}, queries, answer, how,
                        [&](std::uint32_t s) -> decltype(auto) { return (*this)[s].ref(); });
    }
  }

  /// A bulk lookup of keys of type Key: answer_of(me, results, n) returns the answer object for a shard's n
  /// queries; none(place, queries, results) is called if there are no tables.
  template <class Key, class Queries, class Results, class AnswerOf, class None>
  bulk_report look_up(const Shards& shards, const char* where, const Queries& queries, Results& results,
                      const bulk_options& how, const AnswerOf& answer_of, const None& none) const {
    check(shards, where);
    check_parts(shards, where, queries, results);
    bulk_report report;
    shards.run([&](shard_type& me) {
      const auto& asked = of_shard<Shards>(queries, me);
      auto& target = of_shard<Shards>(results, me);
      const bulk_report mine = [&] {
        if (empty()) return none(me.place(), asked, target);
        const auto sequence = sequence_as<Key>(asked);
        return ask(shards, me, sequence, answer_of(me, target, sequence.size()), how);
      }();
      me.place().synchronize();
      me.mark("ended");
      if (me.local() == 0) report = mine;
    });
    return report;
  }

  /// The sum of the answers to all queries; answer_of(me, target) returns the answer object.
  template <class Key, class Result, class Queries, class AnswerOf>
  std::uint64_t sum_of_answers(const Shards& shards, const char* where, const Queries& queries,
                               const bulk_options& how, const AnswerOf& answer_of) const {
    check(shards, where);
    check_parts(shards, where, queries);
    std::uint64_t sum = 0;
    each(shards, where, [&](shard_type& me, const Table&) {
      const auto sequence = sequence_as<Key>(of_shard<Shards>(queries, me));
      array<Result, typename Shards::place_type> answers(me.place(), sequence.size());
      ask(shards, me, sequence, answer_of(me, answers.data()), how);
      const std::uint64_t mine = me.place().sum(answers.size(), answer_as_number<Result>{answers.data()});
      const std::uint64_t all = me.gather({mine}).sum();
      if (me.local() == 0) sum = all;
    });
    return sum;
  }

  template <class Key, class Value, class Queries, class Results>
  bulk_report find(const Shards& shards, const char* where, const Queries& queries, Results& results,
                   const Value& missing, const bulk_options& how) const {
    return look_up<Key>(
        shards, where, queries, results, how,
        [&](auto&, auto& target, std::size_t n) {
          return write_value<Value>{output<Value>(target, n, where), missing};
        },
        [&](const auto& place, const auto& asked, auto& target) {
          return find_no_values<Key>(place, asked, target, missing, where);
        });
  }
  template <class Key, class Value, class Queries, class Results, class Found>
  bulk_report find_there(const Shards& shards, const char* where, const Queries& queries, Results& results,
                         Found& found, const bulk_options& how) const {
    check_parts(shards, where, results);
    return look_up<Key>(
        shards, where, queries, found, how,
        [&](auto& me, auto& target, std::size_t n) {
          return write_value_and_found<Value>{output<Value>(of_shard<Shards>(results, me), n, where),
                                              output<bool>(target, n, where)};
        },
        [&](const auto& place, const auto& asked, auto& target) {
          return find_nothing<Key>(place, asked, target, where);
        });
  }
  template <class Key, class Queries, class Results>
  bulk_report contains(const Shards& shards, const char* where, const Queries& queries, Results& results,
                       const bulk_options& how) const {
    return look_up<Key>(
        shards, where, queries, results, how,
        [&](auto&, auto& target, std::size_t n) { return write_contained{output<bool>(target, n, where)}; },
        [&](const auto& place, const auto& asked, auto& target) {
          return find_nothing<Key>(place, asked, target, where);
        });
  }
  template <class Key, class Queries>
  std::size_t count_found(const Shards& shards, const char* where, const Queries& queries,
                          const bulk_options& how) const {
    return sum_of_answers<Key, bool>(shards, where, queries, how,
                                     [](auto&, bool* target) { return write_contained{target}; });
  }

  sharded_ref<reader_of<Table>> ref(const char* where) const {
    using ref_type = sharded_ref<reader_of<Table>>;
    if (empty())
      raise<invalid_argument>({where, ": the table is empty and has no memory; call rebuild first"});
    if (shards_ > ref_type::shards_most) {
      raise<invalid_argument>({where, ": ", shards_, " shards; a ref has at most ", ref_type::shards_most});
    }
    ref_type result(shards_, seed_);
    for (std::uint32_t s = 0; s < shards_; ++s) result.set(s, (*this)[s].ref());
    return result;
  }

  bool valid(const Shards& shards, const char* where) const {
    return sum(shards, where, [&](auto& me, const Table& mine) -> std::uint64_t {
             const is_strange<reader_of<Table>> strange{mine.ref(), {seed_, me.count()}, me.number()};
             return mine.valid(me.place()) ? me.place().sum(mine.capacity(), strange) : 1;
           }) == 0;
  }

 private:
  /// Throws invalid_argument on all ranks unless all have the same types and options.
  template <class Options>
  static void check_options(shard_type& me, const Options& options, const char* where) {
    const gathered all = me.gather({options.seed, std::bit_cast<std::uint64_t>(options.load_factor),
                                    sizeof(typename Table::key_type), sizeof(typename Table::mapped_type)});
    constexpr const char* names[] = {"seed", "load factor", "size of keys", "size of values"};
    for (std::uint32_t r = 1; r < me.count(); ++r) {
      for (const std::size_t i : {0, 1, 2, 3}) {
        if (all(r, i) == all(0, i)) continue;
        raise<invalid_argument>(
            {where, ": rank ", r, " has another ", names[i], " than rank 0; all ranks must have the same"});
      }
    }
  }

  /// Of all shards together.
  void note_sizes(shard_type& me, const Table& mine) {
    std::uint64_t slots = 0;
    if constexpr (requires { mine.capacity(); }) {
      slots = mine.capacity();
    } else {
      slots = mine.key_count();
    }
    const auto full = static_cast<std::uint64_t>(mine.load_factor() * static_cast<double>(slots) * 1024);
    const gathered all = me.gather({mine.size(), slots, mine.bytes(), full});
    if (me.local() != 0) return;
    size_ = all.sum(0);
    slots_ = all.sum(1);
    bytes_ = all.sum(2);
    load_factor_ = static_cast<double>(all.sum(3)) / 1024 / std::max(1.0, static_cast<double>(slots_));
  }

  each_shard<Shards, std::optional<Table>> tables_;
  std::uint32_t shards_ = 0;
  std::uint64_t seed_ = 0;
  std::size_t size_ = 0, slots_ = 0, bytes_ = 0;
  double load_factor_ = 0;
};

}  // namespace detail
}  // namespace roost
