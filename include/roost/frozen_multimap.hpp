#pragma once

#include "roost/detail/groups/multimap.hpp"
#include "roost/detail/place/numbers.hpp"
#include "roost/frozen_map.hpp"

/// \file
/// frozen_multimap: any number of values per key, built once from a batch, then only read.

namespace roost {

namespace detail {

/// Gives other lookups access to the table in which a multimap finds the number of a key.
struct indices_of_keys {
  template <class Multimap>
  static const auto& of(const Multimap& map) {
    return map.numbers_;
  }
};

}  // namespace detail

/// The values of a key, in memory of the place. It is used like a std::span, and works on both places.
template <class Value>
class value_run {
 public:
  ROOST_FN value_run() : first_(nullptr), size_(0) {}
  ROOST_FN value_run(const Value* first, std::uint64_t size) : first_(first), size_(size) {}
  ROOST_FN const Value* begin() const { return first_; }
  ROOST_FN const Value* end() const { return first_ + size_; }
  ROOST_FN const Value* data() const { return first_; }
  ROOST_FN std::uint64_t size() const { return size_; }
  ROOST_FN bool empty() const { return size_ == 0; }
  ROOST_FN const Value& operator[](std::uint64_t i) const { return first_[i]; }

 private:
  const Value* first_;
  std::uint64_t size_;
};

/// The matches of a batch of queries in a frozen_multimap. The queries have been looked up, so you know how
/// many matches there are before you allocate memory for them. Query i has matches offsets()[i] to
/// offsets()[i + 1] - 1. Matches are ordered by query, and for each query in input order of the map. Valid
/// while the map exists and is not rebuilt. Threads and streams: as the map.
template <class Value, class Place>
class multimap_matches {
 public:
  /// The number of matches of all queries together.
  std::uint64_t size() const { return size_; }
  /// Where the matches of each query begin, and the end: one element more than there are queries, in memory
  /// of the place.
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }

  /// Writes the values of all matches to contiguous memory of the place with room for size()
  /// (invalid_argument otherwise). Asynchronous on cuda.
  template <class Values>
  void retrieve(const Place& place, Values&& values) const {
    Value* const target = detail::output<Value>(values, size(), "roost::multimap_matches::retrieve");
    call_each(place, detail::write_match<Value>{target});
  }

  /// The same, with the number of the query beside each value. The numbers have an integer type that can hold
  /// all of them (invalid_argument otherwise).
  template <class Queries, class Values>
  void retrieve_pairs(const Place& place, Queries&& queries, Values&& values) const {
    using query = std::remove_cvref_t<decltype(*detail::data_of(queries))>;
    static_assert(std::is_integral_v<query>, "numbers of queries are integers");
    constexpr const char* where = "roost::multimap_matches::retrieve_pairs";
    if (this->queries() != 0 &&
        this->queries() - 1 > static_cast<std::uint64_t>(std::numeric_limits<query>::max())) {
      detail::raise<invalid_argument>({where, ": the numbers of ", this->queries(), " queries do not fit ",
                                       sizeof(query), " bytes; give larger ones"});
    }
    query* const queries_to = detail::output<query>(queries, size(), where);
    Value* const target = detail::output<Value>(values, size(), where);
    call_each(place, detail::write_both<query, Value>{queries_to, target});
  }

  /// Calls f(query number, value) for each match, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    call_each(place, detail::without_place<F>{f});
  }

 private:
  template <class K, class V, class P>
  friend class frozen_multimap;
  multimap_matches(const Place& place, std::size_t queries)
      : runs_(place, queries), offsets_(place, queries + 1) {}

  std::size_t queries() const { return runs_.size(); }
  /// f(match, query, value) for each match.
  template <class F>
  void call_each(const Place& place, const F& f) const {
    using put = detail::with_value_of_match<Value, F>;
    const put each{runs_.data(), values_, missing_, f};
    if (!one_at_most_) return detail::expand(place, offsets_.data(), queries(), size(), each);
    place.for_each(queries(),
                   detail::put_only_match<put>{size() == queries() ? nullptr : offsets_.data(), each});
  }

  array<std::uint64_t, Place> runs_;  // of each query
  array<std::uint64_t, Place> offsets_;
  std::uint64_t size_ = 0;
  bool one_at_most_ = false;       // match of each query
  const Value* values_ = nullptr;  // of the map
  Value missing_{};                // of a query that matches nothing, where that counts as a match
};

/// A hash map from keys to any number of values, built from a batch of pairs and then only read: for joins,
/// for lists of neighbours, for all records of a customer. The values of a key are contiguous, so a key with
/// a million values costs its lookup and a million consecutive reads. With open addressing, every lookup
/// would probe all of them (Alcantara et al. 2009, section 4.2).
///
///     roost::frozen_multimap map(gpu, keys, values);
///     for (const auto& v : map.ref().find(key)) use(v);  // in kernels too
///     auto found = map.match(gpu, queries);              // in bulk: found.size() is known
///     found.retrieve(gpu, results);                      // their values, in query order
///
/// Key: any trivially copyable type that is compared by its bytes; up to 8 bytes are fastest. Value: any
/// trivially copyable type. The values of a key keep input order, on every place and with any number of
/// threads, so two builds from the same data are identical.
///
/// Limits: 2^32 - 1 distinct keys and 2^40 - 1 pairs (invalid_argument otherwise). Cost: a build moves the
/// pairs two or three times, and builds a frozen_map of the distinct keys. It takes scratch memory of about
/// three times the pairs. Skew does not slow it down: a key may have half of all pairs.
///
/// Threads, streams, failure: as in frozen_map.
template <class Key, class Value, class Place /* = host */>
class frozen_multimap : public single_keys<frozen_multimap<Key, Value, Place>, Key, Value, Place> {
  static_assert(detail::check_types<Key, Value>());
  using one = single_keys<frozen_multimap, Key, Value, Place>;
  using map = frozen_map<Key, std::uint32_t, Place>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using matches = multimap_matches<Value, Place>;

  /// Options of a build.
  struct options {
    double load_factor = 0.8;  ///< of the table of distinct keys: see its layout
    std::uint64_t seed = 0;    ///< chooses the hash functions
  };

  /// The handle for kernels and host loops. Trivially copyable, and valid while its map exists and is not
  /// rebuilt. Any number of threads may read.
  class ref_type {
   public:
    using key_type = Key;
    using value_type = Value;

    ref_type(const typename map::ref_type& numbers, const std::uint64_t* offsets, const Value* values)
        : numbers_(numbers), offsets_(offsets), values_(values) {}

    /// The values of a key; an empty range if the key is absent.
    ROOST_FN value_run<Value> find(const Key& key) const {
      const found<std::uint32_t> number = numbers_.find(key);
      if (!number) return {};
      return {values_ + offsets_[*number], offsets_[*number + 1] - offsets_[*number]};
    }
    /// The number of values of a key.
    ROOST_FN std::uint64_t count(const Key& key) const { return find(key).size(); }
    /// True if the key is present.
    ROOST_FN bool contains(const Key& key) const { return numbers_.contains(key); }
    ROOST_DELETE_IF_THEY_CHANGE_THE_KEY(find, count);
    ROOST_DELETE_IF_IT_CHANGES_THE_KEY(contains);

   private:
    typename map::ref_type numbers_;
    const std::uint64_t* offsets_;
    const Value* values_;
  };

  /// Builds a map of keys[i] -> values[i]. Keys and values: sized random-access ranges of equal length in the
  /// memory of the place. Synchronises. Throws invalid_argument, out_of_memory, device_error, build_error.
  template <class Keys, class Values>
  frozen_multimap(const Place& place, const Keys& keys, const Values& values, options chosen = {})
      : frozen_multimap(
            place, grouped(place, detail::zip_as<Key, Value>(keys, values, "roost::frozen_multimap"), chosen),
            chosen) {}
  /// The same from one range of pairs: see frozen_map.
  template <detail::range_of_pairs Pairs>
  explicit frozen_multimap(const Place& place, const Pairs& pairs, options chosen = {})
      : frozen_multimap(place,
                        grouped(place,
                                detail::zip_pairs<Key, Value>(detail::numbered_pairs<Place>(pairs),
                                                              "roost::frozen_multimap"),
                                chosen),
                        chosen) {}

  /// An empty map without memory: see frozen_map.
  frozen_multimap() = default;
  explicit frozen_multimap(options chosen) : options_(chosen) {}
  ROOST_DELETE_WITHOUT_PLACE(Place, frozen_multimap, explicit frozen_multimap);
  ROOST_DELETE_WITHOUT_VALUES(frozen_multimap);

  frozen_multimap(frozen_multimap&&) noexcept = default;
  frozen_multimap& operator=(frozen_multimap&&) noexcept = default;

  /// Builds the map again. Both maps exist until the build succeeds. If it throws, the map is unchanged.
  /// Synchronises.
  template <class Keys, class Values>
  void rebuild(const Place& place, const Keys& keys, const Values& values) {
    *this = frozen_multimap(place, keys, values, options_);
  }
  /// The same from one range of pairs.
  template <detail::range_of_pairs Pairs>
  void rebuild(const Place& place, const Pairs& pairs) {
    *this = frozen_multimap(place, pairs, options_);
  }

  // One key at a time, on the host: see single_keys.
  using one::find, one::contains, one::count;

  /// results[i] = the first value of queries[i], or `missing`. `results` is contiguous memory of the place,
  /// at least as long as the queries (invalid_argument otherwise). Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report find_first(const Place& place, const Queries& queries, Results&& results, const Value& missing,
                         bulk_options how = {}) const {
    constexpr const char* where = "roost::frozen_multimap::find_first";
    if (empty()) return detail::find_no_values<Key>(place, queries, results, missing, where);
    const auto sequence = detail::sequence_as<Key>(queries);
    Value* const target = detail::output<Value>(results, sequence.size(), where);
    const detail::write_first_value<Value> answer{offsets_to_read(), values_.data(), missing, target};
    if constexpr (sizeof(Value) <= 8) {
      return look_up(place, sequence, answer, target, how);
    } else {
      array<std::uint32_t, Place> numbers(place, sequence.size());
      const bulk_report report = numbers_.find(place, queries, numbers, ~std::uint32_t{0}, how);
      place.for_each(numbers.size(), detail::copy_first_value<Value>{answer, numbers.data()});
      return report;
    }
  }

  /// counts[i] = the number of values of queries[i]. `counts` is contiguous memory of the place, at least as
  /// long as the queries (invalid_argument otherwise), of an integer type. A count that the type cannot hold
  /// is stored as the largest value of the type. Asynchronous on cuda.
  template <class Queries, class Counts>
  bulk_report count(const Place& place, const Queries& queries, Counts&& counts,
                    bulk_options how = {}) const {
    using count_type = std::remove_cvref_t<decltype(*detail::data_of(counts))>;
    static_assert(std::is_integral_v<count_type> && !std::is_same_v<count_type, bool>, "counts are integers");
    const auto sequence = detail::sequence_as<Key>(queries);
    count_type* const target =
        detail::output<count_type>(counts, sequence.size(), "roost::frozen_multimap::count");
    return look_up(place, sequence, detail::write_count<count_type>{{offsets_to_read()}, target}, target,
                   how);
  }

  /// Returns the number of values of all queries together. Takes eight bytes of scratch memory per query.
  /// Synchronises.
  template <class Queries>
  std::uint64_t count_matches(const Place& place, const Queries& queries, bulk_options how = {}) const {
    array<std::uint64_t, Place> counts(place, detail::sequence_as<Key>(queries).size());
    count(place, queries, counts, how);
    return place.sum(counts.size(), detail::element<const std::uint64_t*>{counts.data()});
  }

  /// Returns how many of the queries are present. Synchronises.
  template <class Queries>
  std::size_t count_found(const Place& place, const Queries& queries) const {
    return numbers_.count_found(place, queries);
  }

  /// results[i] = whether queries[i] is present, as bool. Asynchronous on cuda.
  template <class Queries, class Results>
  bulk_report contains(const Place& place, const Queries& queries, Results&& results,
                       bulk_options how = {}) const {
    detail::output<bool>(results, detail::sequence_as<Key>(queries).size(),
                         "roost::frozen_multimap::contains");
    return numbers_.contains(place, queries, results, how);
  }

  /// Looks up all queries, so that you can retrieve their matches. The result holds sixteen bytes of memory
  /// per query. Synchronises.
  template <class Queries>
  matches match(const Place& place, const Queries& queries, bulk_options how = {}) const {
    return match_at_least(place, queries, 0, Value{}, how);
  }

  /// The same, but a query that matches nothing gets one match with the value `missing`: a left join.
  template <class Queries>
  matches match_outer(const Place& place, const Queries& queries, const Value& missing,
                      bulk_options how = {}) const {
    return match_at_least(place, queries, 1, missing, how);
  }

  /// The result of retrieve.
  struct retrieved {
    array<std::uint64_t, Place> offsets;  ///< of each query's values, and the end
    array<Value, Place> values;
  };
  /// The result of retrieve_pairs.
  struct retrieved_pairs {
    array<std::uint64_t, Place> queries;  ///< the number of each value's query
    array<Value, Place> values;
  };
  /// Returns the values of all queries, in query order. Call match() instead if you first want to know how
  /// many there are. Synchronises. Throws out_of_memory, whose message says how many there are.
  template <class Queries>
  retrieved retrieve(const Place& place, const Queries& queries, bulk_options how = {}) const {
    matches found = match(place, queries, how);
    auto [values] = detail::room_for_matches<Value>(place, found.size(), "roost::frozen_multimap::retrieve");
    found.retrieve(place, values);
    place.synchronize();
    return {std::move(found.offsets_), std::move(values)};
  }
  /// The same, with the number of the query beside each value.
  template <class Queries>
  retrieved_pairs retrieve_pairs(const Place& place, const Queries& queries, bulk_options how = {}) const {
    const matches found = match(place, queries, how);
    constexpr const char* where = "roost::frozen_multimap::retrieve_pairs";
    auto [numbers, values] = detail::room_for_matches<std::uint64_t, Value>(place, found.size(), where);
    found.retrieve_pairs(place, numbers, values);
    place.synchronize();
    return {std::move(numbers), std::move(values)};
  }

  /// Calls f(query number, value) for all values of all queries, in parallel on the place. Synchronises.
  template <class Queries, class F>
  void for_each_match(const Place& place, const Queries& queries, const F& f, bulk_options how = {}) const {
    match(place, queries, how).for_each(place, f);
    place.synchronize();
  }

  /// Calls f(key, value) for every pair, in parallel on the place. Asynchronous on cuda.
  template <class F>
  void for_each(const Place& place, const F& f) const {
    using call = detail::without_place<F>;
    detail::expand(place, offsets_.data(), key_count(), size(),
                   detail::with_pair_of_group<Key, Value, call>{keys_.data(), values_.data(), call{f}});
  }

  /// Calls f(key, values, count) once for every key, in parallel on the place: `values` points to its
  /// `count` values, which f may change, for example to sort them. Asynchronous on cuda. Must not overlap
  /// with any other call.
  template <class F>
  void for_each_key(const Place& place, const F& f) {
    place.for_each(key_count(),
                   detail::with_run<Key, Value, F>{keys_.data(), offsets_.data(), values_.data(), f});
  }

  /// Writes all pairs, the values of a key together, to memory of the place with room for size() keys and
  /// values (invalid_argument otherwise). Returns size(). Asynchronous on cuda.
  template <class Keys, class Values>
  std::size_t retrieve_all(const Place& place, Keys&& keys, Values&& values) const {
    constexpr const char* where = "roost::frozen_multimap::retrieve_all";
    using write = detail::write_both<Key, Value>;
    const write target{detail::output<Key>(keys, size(), where),
                       detail::output<Value>(values, size(), where)};
    detail::expand(place, offsets_.data(), key_count(), size(),
                   detail::with_pair_of_group<Key, Value, write>{keys_.data(), values_.data(), target});
    return size();
  }

  /// The distinct keys, in an order without meaning. On one place it is the same every time for values of one
  /// size; with values of another size, the same keys may be in another order. The values of keys()[g] are
  /// values()[offsets()[g]] to values()[offsets()[g + 1] - 1]. All in memory of the place.
  std::span<const Key> keys() const { return keys_.span(); }
  std::span<const std::uint64_t> offsets() const { return offsets_.span(); }
  std::span<const Value> values() const { return values_.span(); }

  ref_type ref() const { return {numbers_.ref(), offsets_.data(), values_.data()}; }

  /// Iterates over the distinct keys of a map on the host, and their values:
  /// `for (auto [key, values] : map) for (auto value : values) ...`
  auto begin() const
    requires std::is_same_v<Place, host>
  {
    return detail::numbered_iterator(of_number{this}, 0);
  }
  auto end() const
    requires std::is_same_v<Place, host>
  {
    return detail::numbered_iterator(of_number{this}, key_count());
  }

  /// The number of pairs.
  std::size_t size() const { return values_.size(); }
  std::size_t size(const Place&) const { return size(); }
  bool empty() const { return size() == 0; }
  /// The number of distinct keys.
  std::size_t key_count() const { return keys_.size(); }
  /// True if each key has one value.
  bool has_unique_keys() const { return key_count() == size(); }
  std::size_t bytes() const { return numbers_.bytes() + keys_.bytes() + offsets_.bytes() + values_.bytes(); }
  /// Statistics of the table of distinct keys; scratch_bytes and duplicates are those of the whole build.
  const frozen_statistics& statistics() const { return statistics_; }
  const frozen_statistics& statistics(const Place&) const { return statistics_; }
  /// Of the table of distinct keys.
  double load_factor() const { return numbers_.load_factor(); }
  double load_factor(const Place&) const { return load_factor(); }

  /// Checks the invariants: a lookup of every key finds its values, and together they are size(). Looks up
  /// every key. Synchronises.
  bool valid(const Place& place) const {
    if (empty()) return numbers_.empty();
    return numbers_.size() == key_count() &&
           place.sum(key_count(), detail::good_group<typename map::ref_type, Key>{
                                      numbers_.ref(), keys_.data(), offsets_.data()}) == size();
  }

 private:
  friend struct detail::indices_of_keys;
  using groups = detail::groups<Key, Value, Place>;

  struct key_and_values {
    Key key;
    value_run<Value> values;
  };
  struct of_number {
    const frozen_multimap* map;
    key_and_values operator()(std::size_t g) const {
      const std::uint64_t first = map->offsets()[g];
      return {map->keys()[g], {map->values().data() + first, map->offsets()[g + 1] - first}};
    }
  };

  template <class Source>
  static groups grouped(const Place& place, const Source& source, const options& options) {
    constexpr const char* where = "roost::frozen_multimap";
    const auto refuse = [](std::size_t n, const char* what, const char* most) {
      detail::raise<invalid_argument>({where, ": ", n, what, "; the most are ", most});
    };
    if (source.size() >= detail::run_word::pairs_most) refuse(source.size(), " pairs", "2^40 - 1");
    groups all = detail::group(place, source, options.seed, where);
    if (all.size() > ~std::uint32_t{0}) refuse(all.size(), " different keys", "2^32 - 1");
    return all;
  }

  frozen_multimap(const Place& place, groups&& all, options chosen)
      : options_(chosen),
        numbers_(detail::map_of_keys<map>(place, all, detail::indexed_keys<Key>{all.keys.data()}, all.size(),
                                          chosen.load_factor)),
        keys_(std::move(all.keys)),
        offsets_(std::move(all.offsets)),
        values_(std::move(all.values)),
        statistics_(numbers_.statistics()) {
    statistics_.scratch_bytes = detail::larger(statistics_.scratch_bytes, all.scratch_bytes);
    statistics_.duplicates = size() - key_count();
  }

  /// results[i] = the answer to queries[i], which is zeros for absent keys.
  template <class Sequence, class Answer>
  bulk_report look_up(const Place& place, const Sequence& queries, const Answer& answer,
                      typename Answer::result* results, const bulk_options& how) const {
    if (!empty()) {
      // A lookup may also read where the values of its key begin, or the only one.
      constexpr bool reads_value = requires { answer.values; };
      const std::size_t others = !has_unique_keys() ? offsets_.bytes()
                                 : reads_value      ? values_.bytes()
                                                    : std::size_t{0};
      return detail::bulk_lookups(place, numbers_.ref(), numbers_.bytes() + others, how,
                                  detail::all_regions<Place>{.arrays = others == 0 ? 1u : 2u})
          .answer(queries, answer);
    }
    place.fill(results, 0, queries.size() * sizeof(*results));
    return {path::direct, 1, 0};
  }

  /// Null if each key has one value: then nothing is to be read there.
  const std::uint64_t* offsets_to_read() const { return has_unique_keys() ? nullptr : offsets_.data(); }

  template <class Queries>
  matches match_at_least(const Place& place, const Queries& queries, std::uint64_t least,
                         const Value& missing, bulk_options how) const {
    const auto sequence = detail::sequence_as<Key>(queries);
    const std::size_t n = sequence.size();
    matches result(place, n);
    result.values_ = values_.data();
    result.missing_ = missing;
    std::uint64_t* const offsets = result.offsets_.data();
    result.one_at_most_ = !empty() && has_unique_keys();
    auto absent = detail::zeros<std::uint32_t>(place, result.one_at_most_ ? 1 : 0);
    std::uint64_t* const runs = result.runs_.data();
    look_up(place, sequence,
            detail::write_run<Value>{{offsets_to_read()}, values_.data(), runs, absent.data()}, runs, how);
    if (result.one_at_most_ && (detail::read_one(place, absent.data()) == 0 || least == 1)) {
      result.size_ = n;  // each query has one match
      detail::write_numbers(place, n + 1, detail::number<std::uint64_t>(), offsets);
      return result;
    }
    const detail::count_of_run count{result.runs_.data(), offsets_.data(), key_count(), least};
    detail::write_offsets(place, n, count, offsets);
    result.size_ = detail::read_one(place, offsets + n);
    return result;
  }

  options options_{};
  map numbers_;
  array<Key, Place> keys_;
  array<std::uint64_t, Place> offsets_;
  array<Value, Place> values_;
  frozen_statistics statistics_;
};

template <detail::place_comes_first Place, detail::range_of_pairs Pairs>
frozen_multimap(const Place&, const Pairs&)
    -> frozen_multimap<detail::key_in<Place, Pairs>, detail::value_in<Place, Pairs>, Place>;
template <detail::place_comes_first Place, detail::range_of_pairs Pairs>
frozen_multimap(
    const Place&, const Pairs&,
    typename frozen_multimap<detail::key_in<Place, Pairs>, detail::value_in<Place, Pairs>, Place>::options)
    -> frozen_multimap<detail::key_in<Place, Pairs>, detail::value_in<Place, Pairs>, Place>;
template <detail::place_comes_first Place, class Keys, class Values>
frozen_multimap(const Place&, const Keys&, const Values&)
    -> frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>;
template <detail::place_comes_first Place, class Keys, class Values>
frozen_multimap(
    const Place&, const Keys&, const Values&,
    typename frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>::options)
    -> frozen_multimap<detail::element_of<Keys>, detail::element_of<Values>, Place>;
ROOST_GUIDE_WITHOUT_PLACE(frozen_multimap, int, int);
ROOST_GUIDE_WITHOUT_VALUES(frozen_multimap);

}  // namespace roost
