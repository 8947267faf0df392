#pragma once

#include "roost/shards/detail/tables.hpp"
#include "roost/shards/shards.hpp"

/// \file
/// sharded_table: the calls that all tables over several shards have.

namespace roost {

/// What sharded_map, sharded_set, sharded_multimap and sharded_concurrent_map have in common. `Table`: the
/// ordinary table of a shard, with the keys that the shard owns; the hash of a key determines its owner.
///
/// Small batches of queries read the tables of other shards in place, if possible; larger ones are sent to
/// the owners of their keys. Threads and failure: shards.hpp.
template <class Table, class Shards>
class sharded_table {
 public:
  using key_type = typename Table::key_type;
  using mapped_type = typename Table::mapped_type;
  using place_type = typename Shards::place_type;
  using table_type = Table;  ///< of a shard
  using options = typename Table::options;
  using ref_type = sharded_ref<detail::reader_of<Table>>;

  /// results[s][i] = the value of queries[s][i], or `missing`. `results`: contiguous memory of each shard, at
  /// least as long as its queries (invalid_argument otherwise). With path::direct, the tables of other shards
  /// are read in place, if possible; with path::regional, all queries are sent. (A sharded_multimap has
  /// find_first() instead.)
  template <class Queries, class Results>
    requires(detail::has_one_value_a_key<Table>)
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, mapped_type missing,
                   bulk_options how = {}) const {
    return tables_.look_up(
        shards, "find", how,
        [&](const auto&, std::size_t n, const char* where, auto& target) {
          return detail::write_value<mapped_type>{detail::output<mapped_type>(target, n, where), missing};
        },
        queries, results);
  }

  /// found[s][i] = whether queries[s][i] is present, as bool; if so, results[s][i] = its value. Other results
  /// are unchanged.
  template <class Queries, class Results, class Found>
    requires(detail::has_one_value_a_key<Table> && !std::is_convertible_v<Found, mapped_type>)
  bulk_report find(const Shards& shards, const Queries& queries, Results&& results, Found&& found,
                   bulk_options how = {}) const {
    return tables_.look_up(
        shards, "find", how,
        [&](const auto&, std::size_t n, const char* where, auto& target, auto& here) {
          return detail::write_value_and_found<mapped_type>{detail::output<mapped_type>(target, n, where),
                                                            detail::output<bool>(here, n, where)};
        },
        queries, results, found);
  }

  /// results[s][i] = whether queries[s][i] is present, as bool.
  template <class Queries, class Results>
  bulk_report contains(const Shards& shards, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    return tables_.look_up(
        shards, "contains", how,
        [](const auto&, std::size_t n, const char* where, auto& target) {
          return detail::write_contained{detail::output<bool>(target, n, where)};
        },
        queries, results);
  }

  /// Returns how many of the queries of all shards are present. Takes one byte of scratch memory per query
  /// more than contains().
  template <class Queries>
  std::size_t count_found(const Shards& shards, const Queries& queries, bulk_options how = {}) const {
    return tables_.template sum_of_answers<bool>(
        shards, "count_found", queries, how,
        [](const auto&, bool* target) { return detail::write_contained{target}; });
  }

  /// Writes the pairs that each shard owns to its memory, with room for all that the shard has
  /// (invalid_argument otherwise): in no defined order, but with the values of a key together. Returns how
  /// many all shards have.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Shards& shards, Keys&& keys, Values&& values) const {
    tables_.check(shards, "retrieve_all", keys, values);
    return tables_.sum(shards, "retrieve_all", [&](auto& me, const Table& mine) {
      return mine.retrieve_all(me.place(), detail::of_shard<Shards>(keys, me),
                               detail::of_shard<Shards>(values, me));
    });
  }

  /// Calls f(key, value) for every pair, in parallel on the shard that owns it, in no defined order.
  template <class F>
  void for_each(const Shards& shards, const F& f) const {
    tables_.each(shards, "for_each", [&](auto& me, const Table& mine) { mine.for_each(me.place(), f); });
  }

  /// The handle for kernels and host loops, which reads the tables of all shards in place. (Of a
  /// sharded_multimap, its find() returns the values in place.) Throws invalid_argument if there are no
  /// tables yet, or more than 16 shards. (Needs roost::gpus that can read each other's memory. A roost::rank
  /// has no refs.)
  ref_type ref() const
    requires(!detail::one_shard_a_process<Shards>)
  {
    return tables_.ref();
  }

  /// The ordinary table of a shard of this process, with the pairs that it owns: its statistics, size, ref.
  const Table& shard(std::size_t number) const { return tables_[number]; }

  /// Checks the invariants: the table of each shard is valid, and has only keys that the shard owns.
  bool valid(const Shards& shards) const { return tables_.valid(shards); }

 protected:
  sharded_table(const char* name, const options& chosen) : options_(chosen), tables_(name) {}

  options options_;
  detail::tables_of_shards<Table, Shards> tables_;
};

}  // namespace roost
