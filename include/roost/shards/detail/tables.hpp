#pragma once

#include <bit>

#include "roost/frozen_multimap.hpp"
#include "roost/shards/detail/queries.hpp"

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

/// Keys and values of items that have arrived at a shard.
template <class Item, class Place>
auto keys_of(const arrived<Item, Place>& arrivals) {
  return computed(arrivals.items.size(), key_of_item<Item>{arrivals.items.data()});
}
template <class Item, class Place>
auto values_of(const arrived<Item, Place>& arrivals) {
  return computed(arrivals.items.size(), value_of_item<Item>{arrivals.items.data()});
}

/// Sends pairs or keys to the owners of their keys.
template <class Me, class Source>
auto bring_items(Me& me, const Source& source, std::uint64_t seed) {
  return deliver(me, split_by_owner<false>(me, source, seed));
}

/// Whether some shard would get many more items than the others, because of many copies of few keys.
inline bool is_crowded(const gathered& counts, std::uint32_t shards) {
  std::uint64_t sum = 0, most = 0;
  for (std::uint32_t s = 0; s < shards; ++s) {
    sum += counts.sum(s);
    most = larger(most, counts.sum(s));
  }
  return most > sum / shards * 3 / 2 + 4096;
}

/// As bring_items, or, if few keys have many items, the result of fewer(), which sends less.
template <class Me, class Source, class Fewer>
auto bring_items_or(Me& me, const Source& source, std::uint64_t seed, const Fewer& fewer) {
  {
    const auto split = split_by_owner<false>(me, source, seed);
    if (!is_crowded(split.counts, me.count())) return deliver(me, split);
  }
  return fewer();
}

/// The first item of each key.
template <class Source>
struct item_at {
  Source source;
  const std::uint32_t* first;
  ROOST_FN auto operator()(std::size_t i) const { return source[first[i]]; }
};

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

/// Whether a table is not a multimap.
template <class Table>
concept has_one_value_a_key = !requires(const Table& table) { table.key_count(); };

/// The table that finds a key: in a multimap, the one of the numbers of its keys.
template <class Table>
const auto& finding(const Table& table) {
  if constexpr (has_one_value_a_key<Table>) {
    return table;
  } else {
    return indices_of_keys::of(table);
  }
}

/// The handle for lookups of a table.
template <class Table>
using reader_of = std::remove_cvref_t<decltype(std::declval<const Table&>().ref())>;

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
  ROOST_FN void put(std::size_t i, const result& answered) const { answer.put(i, answered); }
};

/// The answer to a query of an empty table.
template <class Answer, class Value>
struct put_absent {
  Answer answer;
  ROOST_FN void operator()(std::size_t i) const { answer.put(i, answer.of(found<Value>())); }
};

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

/// An ordinary table for each shard of this process. `call`: the name of the call of the sharded table.
template <class Table, class Shards>
class tables_of_shards {
  using key_type = typename Table::key_type;

 public:
  using shard_type = typename Shards::shard_type;

  /// `name`: of the sharded table, for error messages.
  explicit tables_of_shards(const char* name) : name_(name) {}

  /// Whether there are no tables: then only size() and the like, check() and build() may be called.
  bool empty() const { return shards_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t slots() const { return slots_; }  // for multimaps, the number of distinct keys
  std::size_t bytes() const { return bytes_; }
  double load_factor() const { return load_factor_; }

  /// The table of a shard, which the sharded table's const members must not change.
  Table& of(const shard_type& me) const { return *of_shard<Shards>(tables_, me); }
  const Table& operator[](std::size_t shard) const { return *of_shard<Shards>(tables_, shard); }

  const char* name() const { return name_; }
  /// "roost::sharded_map::find"
  std::string name_of(const char* call) const { return std::string(name_) + "::" + call; }

  /// Calls make(me) for each shard: either all tables are replaced, or none.
  template <class Options, class Make>
  void build(const Shards& shards, const Options& options, const Make& make) {
    tables_of_shards fresh(name_);
    fresh.seed_ = options.seed;
    fresh.tables_ = collect(shards, [&](shard_type& me) {
      if constexpr (one_shard_a_process<Shards>) check_options(me, options);
      auto table = std::make_unique<Table>(make(me));
      if (me.local() == 0) fresh.shards_ = me.count();
      if constexpr (requires { table->size(); }) fresh.note_sizes(me, *table);
      return table;
    });
    *this = std::move(fresh);
  }

  /// Throws invalid_argument for a place with a different number of shards than these tables, and unless
  /// there is a range for each shard.
  template <class... Ranges>
  void check(const Shards& shards, const char* call, const Ranges&... ranges) const {
    if (!empty() && shards_ != shards.size()) {
      raise<invalid_argument>({name_of(call), ": a table of ", shards_, " shards on a place of ",
                               shards.size(), "; give the place that it was built on"});
    }
    check_parts(shards, name_of(call).c_str(), ranges...);
  }

  /// f(me, the table) for each shard; then waits.
  template <class F>
  void each(const Shards& shards, const char* call, const F& f) const {
    check(shards, call);
    if (empty()) return;
    shards.run([&](shard_type& me) {
      f(me, of(me));
      me.place().synchronize();
    });
  }

  /// The sum of f(me, the table) over all shards.
  template <class F>
  std::uint64_t sum(const Shards& shards, const char* call, const F& f) const {
    std::uint64_t result = 0;
    each(shards, call, [&](shard_type& me, Table& table) {
      const std::uint64_t total = me.gather({f(me, table)}).sum();
      if (me.local() == 0) result = total;
    });
    return result;
  }

  /// A bulk lookup: answer_of(me, n, where, results of the shard...) returns the answer object for a shard's
  /// n queries.
  template <class AnswerOf, class Queries, class... Results>
  bulk_report look_up(const Shards& shards, const char* call, const bulk_options& how,
                      const AnswerOf& answer_of, const Queries& queries, Results&... results) const {
    check(shards, call, queries, results...);
    const std::string where = name_of(call);
    bulk_report report;
    shards.run([&](shard_type& me) {
      const auto own_queries = sequence_as<key_type>(of_shard<Shards>(queries, me));
      const bulk_report of_mine =
          answer(shards, me, own_queries,
                 answer_of(me, own_queries.size(), where.c_str(), of_shard<Shards>(results, me)...), how);
      me.place().synchronize();
      me.mark("ended");
      if (me.local() == 0) report = of_mine;
    });
    return report;
  }

  /// The sum of the answers to all queries; answer_of(me, target) returns the answer object.
  template <class Result, class Queries, class AnswerOf>
  std::uint64_t sum_of_answers(const Shards& shards, const char* call, const Queries& queries,
                               const bulk_options& how, const AnswerOf& answer_of) const {
    check(shards, call, queries);
    return sum(shards, call, [&](shard_type& me, const Table&) {
      const auto own_queries = sequence_as<key_type>(of_shard<Shards>(queries, me));
      array<Result, typename Shards::place_type> answers(me.place(), own_queries.size());
      answer(shards, me, own_queries, answer_of(me, answers.data()), how);
      return me.place().sum(answers.size(), element<const Result*>{answers.data()});
    });
  }

  sharded_ref<reader_of<Table>> ref() const {
    if (empty())
      raise<invalid_argument>({name_of("ref"), ": the table is empty and has no memory; call rebuild first"});
    constexpr std::uint32_t most = sharded_ref<reader_of<Table>>::shards_most;
    if (shards_ > most)
      raise<invalid_argument>({name_of("ref"), ": ", shards_, " shards; a ref has at most ", most});
    return refs();
  }

  bool valid(const Shards& shards) const {
    return sum(shards, "valid", [&](shard_type& me, const Table& table) -> std::uint64_t {
             const auto& keys = finding(table);
             const is_strange<reader_of<std::remove_cvref_t<decltype(keys)>>> strange{
                 keys.ref(), {seed_, me.count()}, me.number()};
             return table.valid(me.place()) ? me.place().sum(keys.capacity(), strange) : 1;
           }) == 0;
  }

 private:
  /// Throws invalid_argument on all ranks unless all have the same types and options.
  template <class Options>
  void check_options(shard_type& me, const Options& options) const {
    const gathered of_ranks = me.gather({options.seed, std::bit_cast<std::uint64_t>(options.load_factor),
                                         sizeof(key_type), sizeof(typename Table::mapped_type)});
    constexpr const char* names[] = {"seed", "load factor", "size of keys", "size of values"};
    for (std::uint32_t r = 1; r < me.count(); ++r) {
      for (const std::size_t i : {0, 1, 2, 3}) {
        if (of_ranks(r, i) == of_ranks(0, i)) continue;
        raise<invalid_argument>(
            {name_, ": rank ", r, " has another ", names[i], " than rank 0; all ranks must have the same"});
      }
    }
  }

  /// Adds up the sizes of all shards.
  void note_sizes(shard_type& me, const Table& table) {
    std::uint64_t slots = 0;
    if constexpr (has_one_value_a_key<Table>) {
      slots = table.capacity();
    } else {
      slots = table.key_count();
    }
    const auto full = static_cast<std::uint64_t>(table.load_factor() * static_cast<double>(slots) * 1024);
    const gathered sizes = me.gather({table.size(), slots, table.bytes(), full});
    if (me.local() != 0) return;
    size_ = sizes.sum(0);
    slots_ = sizes.sum(1);
    bytes_ = sizes.sum(2);
    load_factor_ = static_cast<double>(sizes.sum(3)) / 1024 / std::max(1.0, static_cast<double>(slots_));
  }

  sharded_ref<reader_of<Table>> refs() const {
    sharded_ref<reader_of<Table>> result(shards_, seed_);
    for (std::uint32_t s = 0; s < shards_; ++s) result.set(s, (*this)[s].ref());
    return result;
  }

  /// Answers a shard's queries from the tables of all shards: by exchanging queries, or by reading the tables
  /// in place. (Answers of a multimap are computed from the numbers of keys, on the shard that owns these.)
  template <class Queries, class Answer>
  bulk_report answer(const Shards& shards, shard_type& me, const Queries& queries, const Answer& answer,
                     const bulk_options& how) const {
    using table = std::remove_cvref_t<decltype(finding(of(me)))>;
    if (empty()) {
      me.place().for_each(queries.size(), put_absent<Answer, typename table::mapped_type>{answer});
      return {path::direct, 1, 0};
    }
    const table& own_table = finding(of(me));
    me.mark("begun");
    const gathered sizes = me.gather({queries.size(), own_table.bytes()});
    if constexpr (!one_shard_a_process<Shards> && has_one_value_a_key<Table>) {
      const bool are_few = sizes.most() < shards_tuning<typename Shards::place_type>::queries;
      if (shards.all_readable() && shards_ <= sharded_ref<reader_of<Table>>::shards_most &&
          (how.path == path::direct || (how.path == path::automatic && are_few))) {
        const bulk_report report =
            bulk_lookups(me.place(), refs(), own_table.bytes(), how).answer(queries, answer);
        me.place().synchronize();
        return report;
      }
    }
    const auto ref = own_table.ref();
    using ref_type = reader_of<table>;
    const auto send = [&]<class Sent>(const Sent& sent) {
      return lookup_by_owners<shard_type, ref_type, element_of<Queries>, Sent>(me, ref, seed_, sizes, sent)
          .run(queries, how);
    };
    if constexpr (has_large_values<ref_type> && !std::is_same_v<Answer, write_contained>) {
      return send(with_value_of_slot<ref_type, Answer>{ref, answer});
    } else {
      return send(answer);
    }
  }

  const char* name_;
  each_shard<Shards, std::unique_ptr<Table>> tables_;
  std::uint32_t shards_ = 0;
  std::uint64_t seed_ = 0;
  std::size_t size_ = 0, slots_ = 0, bytes_ = 0;
  double load_factor_ = 0;
};

}  // namespace detail
}  // namespace roost
