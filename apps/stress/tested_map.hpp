#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "grounds.hpp"
#include "roost/operation.hpp"
#include "roost/shards/sharded_file.hpp"
#include "roost/stadium/stadium_file.hpp"

/// \file
/// Maps and sets beside a std::unordered_map.

namespace roost::stress {

/// A value of more than 8 bytes.
struct large {
  std::uint64_t words[3];
  friend bool operator==(const large&, const large&) = default;
};

/// A value from a number. That of a sum is the sum of the values.
template <class Value>
ROOST_FN Value value_of(std::uint64_t number) {
  if constexpr (std::is_same_v<Value, large>) {
    return {{number, 3 * number, 5 * number}};
  } else {
    return static_cast<Value>(number);
  }
}
template <class Value>
ROOST_FN std::uint64_t number_of(const Value& value) {
  if constexpr (std::is_same_v<Value, large>) {
    return value.words[0];
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

struct add {
  template <class Value>
  ROOST_FN Value operator()(const Value& a, const Value& b) const {
    return value_of<Value>(number_of(a) + number_of(b));
  }
};

/// Every third pair, or key of a set.
struct third {
  std::uint64_t seed;
  template <class Key, class Value>
  ROOST_FN bool operator()(const Key& key, const Value& value) const {
    return (key + number_of(value) + seed) % 3 == 0;
  }
  template <class Key>
  ROOST_FN bool operator()(const Key& key) const {
    return (key + seed) % 3 == 0;
  }
};

/// What single calls of many threads return: they change most keys, find a third and, with `erases`, erase
/// some.
template <bool is_set, class Ref, class Key, class Value>
struct use_ref {
  static constexpr std::uint8_t inserted = 0, present = 1, full = 2, found = 3, absent = 4, erased = 5;
  Ref ref;
  const Key* keys;
  const Value* values;
  std::uint8_t* what;
  Value* seen;
  bool erases;

  ROOST_FN void operator()(std::size_t i) const {
    Ref mine = ref;
    if (erases && i % 8 == 1) {
      what[i] = mine.erase(keys[i]) ? erased : absent;
    } else if (i % 3 == 2) {
      if constexpr (is_set) {
        what[i] = mine.contains(keys[i]) ? found : absent;
      } else {
        const auto value = mine.find(keys[i]);
        what[i] = value ? found : absent;
        if (value) seen[i] = *value;
      }
    } else {
      if constexpr (is_set)
        what[i] = static_cast<std::uint8_t>(mine.insert(keys[i]));
      else
        what[i] = static_cast<std::uint8_t>(mine.insert_or_apply(keys[i], values[i], add()));
    }
  }
};

/// Which calls a table has: those of concurrent_map, of stadium_map, or of frozen_map.
enum class family { concurrent, stadium, frozen };

/// `Value`: none for a set.
template <family Is, class Ground, class Table, class Value>
class tested_map final : public tested_table {
  using key = typename Table::key_type;
  static constexpr bool is_set = std::is_same_v<Value, none>, is_built = Is == family::frozen;
  static constexpr bool has_files = Is == family::stadium || (is_built && Ground::sharded);
  static constexpr bool has_insert_if = Is == family::concurrent && !Ground::sharded;
  using value = std::conditional_t<is_set, std::uint8_t, Value>;  // of a set: 0
  using pairs = std::unordered_map<key, value>;
  template <class T>
  using column = typename Ground::template column<T>;

 public:
  /// `grows`: whether inserts always find room.
  tested_map(Ground ground, Table table, bool grows, const setting& in)
      : ground_(std::move(ground)), table_(std::move(table)), grows_(grows), file_(in.folder / "table") {}

  void make(const call& one) override {
    if (one.what == "check") return check();
    if (one.what == "find") return find(one);
    if (one.what == "move") return move();
    if (one.what == "clear") return clear(one);
    if constexpr (has_files) {
      if (one.what == "load") return load(one);
    }
    if constexpr (is_built) {
      if (one.what == "rebuild") return rebuild(one);
    } else {
      if (make_change(one)) return;
    }
    throw invalid_argument("stress: this kind of table has no call '" + one.what + "'");
  }

  void check() override {
    expect(table_.valid(ground_.where()), "valid() is false");
    same(read(table_, ground_), held_, "the table");
  }

  void spoil() override {
    if (held_.empty()) return;
    if constexpr (is_set)
      held_.erase(held_.begin());
    else
      held_.begin()->second = value_of<value>(number_of(held_.begin()->second) + 1);
  }

  std::size_t keys() override { return held_.size(); }

  void save(const std::filesystem::path& file) override {
    if constexpr (has_files) roost::save(ground_.where(), table_, file);
  }
  bool is_in(const std::filesystem::path& file) override {
    if constexpr (has_files) {
      const auto loaded = load_from(ground_, file);
      return loaded.valid(ground_.where()) && read(loaded, ground_) == held_;
    }
    return true;
  }
  void adopt(const std::filesystem::path& file) override {
    if constexpr (has_files) {
      table_ = load_from(ground_, file);
      held_ = read(table_, ground_);
    }
  }
  /// Without growth, it is not defined which pairs find room.
  const char* change() const override {
    if (!has_files) return "";
    return is_built ? "rebuild" : grows_ ? "assign" : "erase";
  }

 private:
  enum class effect { keep, assign, add };

  /// Calls that change a table that was not built at once.
  bool make_change(const call& one) {
    const auto& at = ground_.where();
    const auto nothing = [&] { check(); };
    const auto no_effect = [&](const auto& f) {
      attempt(ground_.memory(), one.refused, refusals_, f, nothing);
    };
    if (one.what == "insert") return put(one, effect::keep), true;
    if (one.what == "assign") return put(one, effect::assign), true;
    if (one.what == "add") return put(one, effect::add), true;
    if (one.what == "erase") return erase(one), true;
    if (one.what == "erase_if") return erase_if(one), true;
    if (one.what == "reserve") return no_effect([&] { table_.reserve(at, one.count); }), true;
    if (one.what == "shrink") return no_effect([&] { table_.shrink_to_fit(at); }), true;
    if constexpr (!Ground::sharded) {
      if (has_insert_if && one.what == "insert_if") return put(one, effect::keep, true), true;
      if (one.what == "rehash") return no_effect([&] { table_.rehash(at, one.count); }), true;
      if (one.what == "refs") return use_refs(one), true;
    }
    if constexpr (Is == family::stadium) {
      if (one.what == "sweep") return no_effect([&] { table_.sweep(at); }), true;
    }
    if constexpr (!is_set && !Ground::sharded) {
      if (one.what == "run") return run(one), true;
    }
    return false;
  }

  static std::vector<key> draw_keys(const call& one) {
    const auto drawn = keys_of(one);
    return {drawn.begin(), drawn.end()};  // the lower bits of each
  }
  /// A value for each key of a call: copies of a key have the same.
  static value value_for(const call& one, key k) {
    return is_set ? value{} : value_of<value>(mix64(k + 0x9e3779b97f4a7c15 * one.seed));
  }
  static std::vector<value> values_for(const call& one, const std::vector<key>& keys) {
    std::vector<value> values;
    values.reserve(keys.size());
    for (const key k : keys) values.push_back(value_for(one, k));
    return values;
  }
  static bool wanted(const call& one, key k) { return mix64(k + one.seed) % 2 == 0; }
  static bulk_options how(const call& one) {
    draws random(one.seed + 1);
    bulk_options options{.path =
                             random.one_of({path::automatic, path::direct, path::regional, path::streamed})};
    if (random.below(4) == 0) options.scratch_bytes_most = 1 << 16;
    return options;
  }

  /// All pairs of a table.
  static pairs read(const Table& table, const Ground& ground) {
    const auto size_of = [](const auto& one, const auto& place) {
      if constexpr (is_built)
        return one.size();
      else
        return one.size(place);
    };
    auto keys = ground.template for_all_of<key>(table, size_of);
    std::vector<value> their_values;
    std::size_t n = 0;
    if constexpr (is_set) {
      n = table.retrieve_all(ground.where(), keys);
    } else {
      auto values = ground.template for_all_of<value>(table, size_of);
      n = table.retrieve_all(ground.where(), keys, values);
      their_values = ground.template back<value>(values);
    }
    const auto all = ground.template back<key>(keys);
    their_values.resize(all.size());
    pairs result;
    for (std::size_t i = 0; i < all.size(); ++i) result.emplace(all[i], their_values[i]);
    expect(n == all.size() && result.size() == n, "retrieve_all returns a key twice, or another number");
    return result;
  }
  static std::optional<value> of(const pairs& all, key k) {
    const auto there = all.find(k);
    return there == all.end() ? std::nullopt : std::optional(there->second);
  }
  static void same(std::optional<value> is, std::optional<value> should, key k, const char* what) {
    if (is == should) return;
    const auto number = [](const std::optional<value>& v) {
      return v ? std::optional(number_of(*v)) : std::nullopt;
    };
    throw_difference(what, k, number(is), number(should));
  }
  static void same(const pairs& is, const pairs& should, const char* what) {
    for (const auto& [k, v] : should) same(of(is, k), v, k, what);
    for (const auto& [k, v] : is) same(v, of(should, k), k, what);
  }
  /// The table has what it should have for these keys.
  void check_keys(const std::vector<key>& keys, const call& one) {
    const auto queries = ground_.bring(keys);
    auto there = ground_.template like<bool>(queries);
    std::vector<value> values(keys.size());
    if constexpr (is_set) {
      table_.contains(ground_.where(), queries, there, how(one));
    } else {
      auto results = ground_.template like<value>(queries);
      table_.find(ground_.where(), queries, results, there, how(one));
      values = ground_.template back<value>(results);
    }
    const auto found = ground_.template back<bool>(there);
    for (std::size_t i = 0; i < keys.size(); ++i)
      same(found[i] ? std::optional(values[i]) : std::nullopt, of(held_, keys[i]), keys[i], "find");
  }

  /// How often each key comes.
  using copies = std::unordered_map<key, std::uint64_t>;
  static copies count(const call& one, const std::vector<key>& keys, bool some) {
    copies all;
    for (const key k : keys)
      if (!some || wanted(one, k)) ++all[k];
    return all;
  }
  /// What a key has after `times` of its pairs.
  static value after(const call& one, effect what, std::optional<value> before, key k, std::uint64_t times) {
    const value v = value_for(one, k);
    if (!before) return what == effect::add ? value_of<value>(times * number_of(v)) : v;
    if (what == effect::keep) return *before;
    return what == effect::assign ? v : value_of<value>(number_of(*before) + times * number_of(v));
  }

  /// After a call that threw: each of its pairs may be there or not.
  void accept_part(const call& one, effect what, const copies& batch) {
    auto now = read(table_, ground_);
    expect(table_.valid(ground_.where()), "valid() is false after out_of_memory");
    for (const auto& [k, v] : held_)
      if (!batch.contains(k) || !now.contains(k)) same(of(now, k), v, k, "after out_of_memory");
    for (const auto& [k, v] : now) {
      const auto given = batch.find(k);
      bool good = of(held_, k) == v;
      for (std::uint64_t j = 1; !good && given != batch.end() && j <= given->second; ++j)
        good = after(one, what, of(held_, k), k, j) == v;
      if (!good) same(v, of(held_, k), k, "after out_of_memory");
    }
    held_ = std::move(now);
  }

  insert_report call_insert(const call& one, effect what, const column<key>& keys,
                            const column<value>& values, const column<std::uint8_t>* stencil) {
    const auto& at = ground_.where();
    if constexpr (!Ground::sharded) {
      if constexpr (is_set) {
        return stencil != nullptr ? table_.insert_if(at, keys, *stencil, how(one))
                                  : table_.insert(at, keys, how(one));
      } else if constexpr (has_insert_if) {
        if (stencil != nullptr) return table_.insert_if(at, keys, values, *stencil, how(one));
      }
    }
    if constexpr (!is_set) {
      if (what == effect::assign) return table_.insert_or_assign(at, keys, values, how(one));
      if (what == effect::add) return table_.insert_or_apply(at, keys, values, add(), how(one));
      return table_.insert(at, keys, values, how(one));
    }
  }

  void put(const call& one, effect what, bool some = false) {
    const auto keys = draw_keys(one);
    const auto batch = count(one, keys, some);
    std::vector<std::uint8_t> chosen;
    for (const key k : keys) chosen.push_back(wanted(one, k));
    const auto k = ground_.bring(keys);
    const auto v = ground_.bring(values_for(one, keys));
    const auto stencil = ground_.bring(chosen);
    const auto report = attempt(
        ground_.memory(), one.refused, refusals_,
        [&] { return call_insert(one, what, k, v, some ? &stencil : nullptr); },
        [&] { accept_part(one, what, batch); });
    const auto now = report.full == 0 ? std::optional<pairs>() : read(table_, ground_);
    std::size_t given = 0, fresh = 0, full_keys = 0, full = 0;
    for (const auto& [key, times] : batch) {
      given += times;
      const auto before = of(held_, key);
      if (now && !before && !now->contains(key)) {
        ++full_keys;
        full += times;
        continue;
      }
      fresh += !before;
      held_.insert_or_assign(key, after(one, what, before, key, times));
    }
    if (now) same(*now, held_, "after an insert without room");
    expect(!grows_ || report.full == 0, "a table that grows had no room");
    expect(report.full >= full_keys && report.full <= full, "the report has another number of full");
    expect(report.inserted == fresh, "the report has another number of inserted");
    expect(report.inserted + report.present + report.full == given, "the report does not count all pairs");
    check_keys(keys, one);
  }

  void erase(const call& one) {
    const auto keys = draw_keys(one);
    const auto batch = count(one, keys, false);
    const auto k = ground_.bring(keys);
    const auto refused = [&] {
      auto now = read(table_, ground_);
      for (const auto& [key, v] : held_)
        if (!batch.contains(key) || now.contains(key)) same(of(now, key), v, key, "after out_of_memory");
      for (const auto& [key, v] : now) same(v, of(held_, key), key, "after out_of_memory");
      held_ = std::move(now);
    };
    const auto erased = attempt(
        ground_.memory(), one.refused, refusals_, [&] { return table_.erase(ground_.where(), k, how(one)); },
        refused);
    std::size_t there = 0;
    for (const auto& [key, times] : batch) there += held_.erase(key);
    expect(erased == there, "erase returns another number");
    check_keys(keys, one);
  }

  void erase_if(const call& one) {
    const third gone{one.seed};
    const auto goes = [&](const auto& pair) {
      if constexpr (is_set)
        return gone(pair.first);
      else
        return gone(pair.first, pair.second);
    };
    const auto refused = [&] {
      const auto now = read(table_, ground_);
      std::erase_if(held_, [&](const auto& pair) { return goes(pair) && !now.contains(pair.first); });
      same(now, held_, "after out_of_memory");
    };
    const auto erased = attempt(
        ground_.memory(), one.refused, refusals_, [&] { return table_.erase_if(ground_.where(), gone); },
        refused);
    expect(erased == std::erase_if(held_, goes), "erase_if returns another number");
    check();
  }

  void clear(const call& one) {
    if constexpr (is_built) {
      const auto k = ground_.bring(std::vector<key>());
      const auto v = ground_.bring(std::vector<value>());
      attempt(
          ground_.memory(), one.refused, refusals_, [&] { table_.rebuild(ground_.where(), k, v); },
          [&] { check(); });
    } else {
      attempt(
          ground_.memory(), one.refused, refusals_, [&] { table_.clear(ground_.where()); }, [&] { check(); });
    }
    held_.clear();
  }

  /// The pairs of the call come first, and win.
  void rebuild(const call& one) {
    auto keys = draw_keys(one);
    auto values = values_for(one, keys);
    pairs next(held_);
    for (std::size_t i = 0; i < keys.size(); ++i) next.insert_or_assign(keys[i], values[i]);
    for (const auto& [k, v] : held_) {
      keys.push_back(k);
      values.push_back(v);
    }
    const auto k = ground_.bring(keys);
    const auto v = ground_.bring(values);
    attempt(
        ground_.memory(), one.refused, refusals_, [&] { table_.rebuild(ground_.where(), k, v); },
        [&] { check(); });
    held_ = std::move(next);
    check();
  }

  void find(const call& one) {
    auto keys = draw_keys(one);
    std::size_t left = one.seed % 100;
    for (auto it = held_.begin(); it != held_.end() && left != 0; ++it, --left) keys.push_back(it->first);
    const auto queries = ground_.bring(keys);
    std::size_t there = 0;
    for (const key k : keys) there += held_.count(k);
    const auto found = attempt(
        ground_.memory(), one.refused, refusals_,
        [&] { return table_.count_found(ground_.where(), queries); }, [&] { check(); });
    expect(found == there, "count_found returns another number");
    check_keys(keys, one);
  }

  void move() {
    Table other = std::move(table_);
    table_ = std::move(other);
  }

  /// A mixed batch, of one operation a key, so that its order does not matter.
  void run(const call& one) {
    std::vector<operation<key, value>> operations;
    for (const auto& [k, times] : count(one, draw_keys(one), false)) {
      const auto kind = static_cast<operation_kind>(mix64(k ^ one.seed) % 4);
      operations.push_back({kind, k, value_for(one, k)});
    }
    const auto sent = ground_.bring(operations);
    auto results = ground_.template like<operation_result<value>>(sent);
    table_.run(ground_.where(), sent, results);
    const auto answers = ground_.template back<operation_result<value>>(results);
    for (std::size_t i = 0; i < operations.size(); ++i) expect_answer(operations[i], answers[i]);
    check();
  }
  /// The operation has the result that it should have; makes it on the expected state, too.
  void expect_answer(const operation<key, value>& asked, const operation_result<value>& answer) {
    const auto before = of(held_, asked.key);
    const bool puts = asked.kind == operation_kind::insert || asked.kind == operation_kind::insert_or_assign;
    if (answer.full) return expect(puts && !answer.done, "run: full, although nothing is inserted");
    if (asked.kind == operation_kind::find) {
      same(answer.done ? std::optional(answer.value) : std::nullopt, before, asked.key, "run: find");
    } else if (asked.kind == operation_kind::erase) {
      expect(answer.done == before.has_value(), "run: erase returns something else");
      held_.erase(asked.key);
    } else if (asked.kind == operation_kind::insert) {
      expect(answer.done == !before, "run: insert returns something else");
      same(answer.value, before ? before : asked.value, asked.key, "run: insert");
      held_.emplace(asked.key, asked.value);
    } else {
      expect(answer.done, "run: insert_or_assign returns something else");
      held_.insert_or_assign(asked.key, asked.value);
    }
  }

  /// Single calls from many threads at the same time.
  void use_refs(const call& one) {
    const auto keys = draw_keys(one);
    const auto k = ground_.bring(keys);
    const auto v = ground_.bring(values_for(one, keys));
    auto what = ground_.template like<std::uint8_t>(k);
    auto seen = ground_.template like<value>(k);
    using use = use_ref<is_set, typename Table::ref_type, key, value>;
    const use each{table_.ref(), k.data(), v.data(), what.data(), seen.data(), one.seed % 2 == 0};
    ground_.where().for_each(keys.size(), each);
    ground_.where().synchronize();
    const auto answers = ground_.template back<std::uint8_t>(what);
    const auto values = ground_.template back<value>(seen);
    const auto now = read(table_, ground_);
    std::unordered_map<key, std::array<std::uint64_t, 6>> counts;
    for (std::size_t i = 0; i < keys.size(); ++i) ++counts[keys[i]].at(answers[i]);
    std::unordered_map<key, std::unordered_set<std::uint64_t>> possible;  // numbers of values that a key had
    for (const auto& [key, n] : counts) {
      const auto before = of(held_, key), later = of(now, key);
      const auto changes = n[use::inserted] + n[use::present];
      const bool always_there = before && n[use::erased] == 0;
      expect(n[use::inserted] + before.has_value() == n[use::erased] + later.has_value(),
             "refs: a key is inserted or erased too often or too rarely");
      expect(!before || n[use::full] == 0 || sizeof(value) > 8, "refs: full, although the key has a slot");
      expect(!always_there || n[use::absent] == 0, "refs: a key that is present is not found");
      auto& numbers = possible[key];
      for (std::uint64_t j = 0; j <= changes; ++j) {
        if (before) numbers.insert(number_of(after(one, effect::add, before, key, j)));
        if (j != 0 && !always_there) numbers.insert(number_of(after(one, effect::add, {}, key, j)));
      }
      if (n[use::erased] == 0 && changes != 0)
        same(later, after(one, effect::add, before, key, changes), key, "refs");
      expect_one_of(later, numbers, key);
      later ? static_cast<void>(held_.insert_or_assign(key, *later)) : static_cast<void>(held_.erase(key));
    }
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (answers[i] == use::found && !is_set) expect_one_of(values[i], possible[keys[i]], keys[i]);
    check();
  }
  static void expect_one_of(std::optional<value> is, const std::unordered_set<std::uint64_t>& numbers,
                            key k) {
    if (!is || (*is == value_of<value>(number_of(*is)) && numbers.contains(number_of(*is)))) return;
    throw_difference("refs, a value that the key never had", k, number_of(*is), {});
  }

  /// Saves the table, and continues with the loaded one, of another number of shards.
  void load(const call& one) {
    if constexpr (has_files) {
      attempt(ground_.memory(), one.refused, refusals_, [&] { save(file_); }, [&] { check(); });
      auto other = ground_;
      other.change(one.seed);
      auto loaded = attempt(
          ground_.memory(), one.refused, refusals_, [&] { return load_from(other, file_); },
          [&] { check(); });
      table_ = std::move(loaded);
      ground_ = other;
      check();
    }
  }
  static Table load_from(const Ground& ground, const std::filesystem::path& file) {
    if constexpr (Ground::sharded)
      return load_sharded_map<key, value>(ground.where(), file);
    else
      return load_stadium_map<key, value>(ground.where(), file);
  }

  Ground ground_;
  Table table_;
  bool grows_;
  pairs held_;
  std::filesystem::path file_;
};

}  // namespace roost::stress
