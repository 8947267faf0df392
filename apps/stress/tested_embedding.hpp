#pragma once

#include <algorithm>
#include <optional>

#include "grounds.hpp"
#include "roost/embedding/embedding_table.hpp"
#include "roost/file.hpp"

/// \file
/// An embedding_table beside a twin, which has all its rows in memory, is never refused memory and never
/// comes from a file.

namespace roost::stress {

template <class Place>
class tested_embedding final : public tested_table {
  using table = embedding_table<Place>;
  using ground = on_place<Place>;

 public:
  /// `rich`: where the twin is.
  tested_embedding(ground poor, const Place& rich, const embedding_options& options, const setting& in)
      : ground_(std::move(poor)),
        rich_(rich),
        table_(ground_.where(), options),
        twin_(rich_, without_cache(options)),
        file_(in.folder / "table") {}

  void make(const call& one) override {
    if (one.what == "check") return check();
    if (one.what == "learn") return learn(one);
    if (one.what == "insert") return insert(one);
    if (one.what == "find") return find(one);
    if (one.what == "assign") return assign(one);
    if (one.what == "erase") return erase(one);
    if (one.what == "rates") return set_rates(one);
    if (one.what == "reserve") return reserve(one);
    if (one.what == "load") return load(one);
    if (one.what == "move") return move();
    throw invalid_argument("stress: embedding has no call '" + one.what + "'");
  }

  void check() override {
    expect(contents(ground_.where(), table_) == contents(rich_, twin_),
           "the rows, or what is known of their keys, differ from the twin's");
    const auto is = table_.counts(ground_.where()), should = twin_.counts(rich_);
    expect(is.steps == should.steps && is.updates == should.updates, "other numbers of steps or updates");
  }
  void spoil() override {
    const auto there = twin_.entries(rich_);
    if (there.ids.size() != 0) twin_.erase(rich_, {.ids = there.ids.span().first(1)});
  }
  std::size_t keys() override { return table_.size(ground_.where()); }

  void save(const std::filesystem::path& file) override {
    const auto bytes = contents(ground_.where(), table_);
    file_writer to(file);
    to.write(mark, sizeof(mark));
    to.write(bytes.data(), bytes.size());
    to.finish();
  }
  bool is_in(const std::filesystem::path& file) override { return bytes_in(file) == contents(rich_, twin_); }
  void adopt(const std::filesystem::path& file) override {
    table_ = loaded(ground_.where(), file, table_.options());
    // A file does not have the counts for admission, so that the twin must forget them, too.
    twin_ = loaded(rich_, file, twin_.options());
  }
  const char* change() const override { return "learn"; }

 private:
  static constexpr char mark[8] = {'s', 't', 'r', 'e', 's', 's', ' ', '1'};

  static embedding_options without_cache(embedding_options options) {
    options.cached_rows = 0;
    return options;
  }

  /// The ids of a call, and what belongs to them, on both places.
  struct batch {
    array<std::int64_t, Place> ids, offsets;
    array<std::uint32_t, Place> scores, slots;
    array<float, Place> numbers, out;
    bag_pooling pooling;
    std::uint32_t running;
    embedding_batch get() const {
      return {.ids = ids.span(), .scores = scores.span(), .offsets = offsets.span(), .pooling = pooling};
    }
  };
  batch draw(const call& one, const Place& place, bool bags = true) const {
    draws random(one.seed + 1);
    std::vector<std::int64_t> ids, offsets;
    std::vector<std::uint32_t> scores;
    for (const auto key : keys_of(one)) ids.push_back(static_cast<std::int64_t>(key));
    if (bags && random.below(3) == 0) {
      for (std::size_t at = 0; at < ids.size(); at += random.below(9))
        offsets.push_back(static_cast<std::int64_t>(at));
      if (offsets.empty()) offsets.push_back(0);
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
    }
    const std::size_t rows = offsets.empty() ? ids.size() : offsets.size() - 1;
    for (std::size_t i = 0; i < ids.size(); ++i)
      scores.push_back(static_cast<std::uint32_t>(random.below(100)));
    std::vector<float> numbers;
    for (std::size_t i = 0; i < rows * table_.options().dim; ++i)
      numbers.push_back(static_cast<float>(random.below(2001)) / 1000 - 1);
    const auto pooling = random.below(2) == 0 ? bag_pooling::sum : bag_pooling::mean;
    const bool scored = table_.options().eviction == eviction::least_score;
    batch all{copy_to(place, ids),
              copy_to(place, offsets),
              copy_to(place, scored ? scores : std::vector<std::uint32_t>()),
              array<std::uint32_t, Place>(place, ids.size()),
              copy_to(place, numbers),
              array<float, Place>(place, numbers.size()),
              pooling,
              static_cast<std::uint32_t>(random.below(3))};
    place.fill(all.slots.data(), 0x77, all.slots.bytes());
    place.fill(all.out.data(), 0x77, all.out.bytes());
    return all;
  }

  /// The same call on the table, which may be refused memory, and on the twin. f(place, table, batch).
  template <class F>
  void both(const call& one, bool bags, const F& f) {
    auto mine = draw(one, ground_.where(), bags);
    auto its = draw(one, rich_, bags);
    attempt(
        ground_.memory(), one.refused, refusals_,
        [&] {
          f(ground_.where(), table_, mine);
          ground_.where().synchronize();
        },
        [&] { check(); });
    f(rich_, twin_, its);
    expect(copy_to_host(ground_.where(), mine.slots) == copy_to_host(rich_, its.slots),
           "ids have other slots than in the twin");
    expect(bytes_of(ground_.where(), mine.out) == bytes_of(rich_, its.out),
           "ids have other rows than in the twin");
  }

  void learn(const call& one) {
    both(one, true, [](const Place& place, table& t, batch& b) {
      t.look_up(place, b.get(), b.slots.span(), b.out.span(), b.running);
    });
    auto mine = draw(one, ground_.where()), its = draw(one, rich_);
    table_.find(ground_.where(), mine.get(), mine.slots.span());
    twin_.find(rich_, its.get(), its.slots.span());
    attempt(
        ground_.memory(), one.refused, refusals_,
        [&] {
          table_.update(ground_.where(), mine.get(), mine.slots.span(), mine.numbers.span());
          ground_.where().synchronize();
        },
        [&] { check(); });
    twin_.update(rich_, its.get(), its.slots.span(), its.numbers.span());
  }
  void insert(const call& one) {
    both(one, true,
         [](const Place& place, table& t, batch& b) { t.insert(place, b.get(), b.slots.span(), b.running); });
  }
  void find(const call& one) {
    both(one, true, [](const Place& place, const table& t, batch& b) {
      t.find(place, b.get(), b.slots.span(), b.out.span());
    });
  }
  void assign(const call& one) {
    std::vector<std::vector<std::int64_t>> lost;
    both(one, false, [&](const Place& place, table& t, batch& b) {
      const auto gone = t.assign(place, b.get(), b.numbers.span(), b.out.span(), b.running);
      lost.push_back(copy_to_host(place, gone.ids));
      std::ranges::sort(lost.back());
      place.fill(b.out.data(), 0, b.out.bytes());  // whose order has no meaning
    });
    expect(lost[0] == lost[1], "other keys lose their rows than in the twin");
  }
  void erase(const call& one) {
    both(one, false, [](const Place& place, table& t, batch& b) { t.erase(place, {.ids = b.ids.span()}); });
  }
  void set_rates(const call& one) {
    auto rates = table_.options().rates;
    rates.learning_rate = static_cast<float>(one.count % 100) / 100;
    rates.weight_decay = static_cast<float>(one.seed % 3) / 10;
    table_.set_rates(ground_.where(), rates);
    twin_.set_rates(rich_, rates);
  }
  void reserve(const call& one) {
    const auto rows = one.count;
    both({}, false, [rows](const Place& place, table& t, batch&) { t.reserve(place, rows); });
  }
  void move() {
    table other = std::move(table_);
    table_ = std::move(other);
  }

  /// Saves the table, and continues with the loaded one.
  void load(const call& one) {
    save(file_);
    auto from = attempt(
        ground_.memory(), one.refused, refusals_,
        [&] { return loaded(ground_.where(), file_, table_.options()); }, [&] { check(); });
    table_ = std::move(from);
    if (table_.options().admit > 1) twin_ = loaded(rich_, file_, twin_.options());
    check();
  }

  template <class T>
  static std::string bytes_of(const Place& place, const array<T, Place>& all) {
    const auto elements = copy_to_host(place, all);
    return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(elements[0])};
  }
  /// What a snapshot has: numbers, then all that is known of keys, then their rows.
  struct head {
    std::uint64_t keys, scores, capacity, steps, updates;
    optimizer_rates rates;
    float unused = 0;  // where the struct would otherwise be padded
  };
  static std::string contents(const Place& place, const table& from) {
    const auto known = from.entries(place);
    const auto counts = from.counts(place);
    array<std::byte, Place> rows(place, known.slots.size() * from.row_bytes());
    from.copy_rows(place, known.slots.span(), rows.span());
    const head begin{known.slots.size(), known.scores.size(), from.capacity(),
                     counts.steps,       counts.updates,      from.options().rates};
    return std::string(reinterpret_cast<const char*>(&begin), sizeof(begin)) + bytes_of(place, known.slots) +
           bytes_of(place, known.ids) + bytes_of(place, known.features) + bytes_of(place, known.steps) +
           bytes_of(place, known.scores) + bytes_of(place, rows);
  }
  static std::string bytes_in(const std::filesystem::path& file) {
    file_reader from(file, {mark, sizeof(mark)});
    std::string bytes(from.size(), '\0');
    from.read(bytes.data(), bytes.size());
    return bytes.substr(sizeof(mark));
  }
  static table loaded(const Place& place, const std::filesystem::path& file, embedding_options options) {
    const auto bytes = bytes_in(file);
    head begin;
    std::memcpy(&begin, bytes.data(), sizeof(begin));
    std::size_t at = sizeof(begin);
    const auto next = [&]<class T>(T, std::size_t n) {
      std::vector<T> elements(n);
      std::memcpy(static_cast<void*>(elements.data()), bytes.data() + at, n * sizeof(T));
      at += n * sizeof(T);
      return copy_to(place, elements);
    };
    embedding_entries<Place> known{next(std::uint32_t{}, begin.keys), next(std::int64_t{}, begin.keys),
                                   next(std::uint16_t{}, begin.keys), next(std::uint32_t{}, begin.keys),
                                   next(std::uint64_t{}, begin.scores)};
    const auto rows = next(std::byte{}, bytes.size() - at);
    options.capacity = begin.capacity;
    options.rates = begin.rates;
    table result(place, options);
    array<std::uint32_t, Place> slots(place, begin.keys);
    expect(result.restore(place, known, true, slots.span()) == 0, "restore finds no rows for some keys");
    result.write_rows(place, slots.span(), rows.span());
    result.set_steps(place, static_cast<std::uint32_t>(begin.steps),
                     static_cast<std::uint32_t>(begin.updates));
    return result;
  }

  ground ground_;
  Place rich_;
  table table_, twin_;
  std::filesystem::path file_;
};

}  // namespace roost::stress
