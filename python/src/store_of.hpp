#pragma once

#include "roost/stadium/stadium_file.hpp"
#include "store.hpp"

// The template that the files store_*.cpp instantiate.

namespace roost::python {

/// The rows of absent keys, by words.
struct fill_row {
  const bool* found;
  const std::uint64_t* missing;
  std::uint64_t* target;
  std::uint32_t words;  // of a row
  ROOST_FN void operator()(std::size_t i) const {
    if (!found[i / words]) target[i] = missing[i % words];
  }
};

template <class Value, class Place>
class store_of final : public changing_of<stadium_map<std::uint64_t, Value, Place>, Place, store<Place>> {
  using base = changing_of<stadium_map<std::uint64_t, Value, Place>, Place, store<Place>>;
  using base::map_;

 public:
  using base::base;
  using typename base::at_place, typename base::key;

  nb::tuple insert(at_place at, const column& keys, const column& values, const char* kind, bool) override {
    const auto k = span_of<key>(keys);
    const auto v = span_of<Value>(values);
    std::size_t inserted = 0, full = 0;
    this->changing_it(at, [&](const Place& place) {
      in_parts(place, k.size(), [&](std::size_t first, std::size_t n) {
        const auto some = k.subspan(first, n);
        const auto theirs = v.subspan(first, n);
        const auto report = value_of<insertion_kind>(kind) == insertion_kind::assign
                                ? map_.insert_or_assign(place, some, theirs)
                                : map_.insert(place, some, theirs);
        inserted += report.inserted;
        full += report.full;
      });
    });
    return nb::make_tuple(inserted, full);
  }
  void find(at_place at, const column& queries, const column& missing, const column& results) const override {
    const auto keys = span_of<key>(queries);
    const auto values = span_of<Value>(results, keys.size());
    constexpr std::size_t words = sizeof(Value) / sizeof(std::uint64_t);
    const auto other = span_of<Value>(missing);
    this->looking(at, [&](const Place& place) {
      array<std::uint64_t, Place> row(place, words);
      place.copy_from_host(row.data(), other.data(), sizeof(Value));
      in_parts(place, keys.size(), [&](std::size_t first, std::size_t n) {
        array<bool, Place> found(place, n);
        map_.find(place, keys.subspan(first, n), values.subspan(first, n), found);
        place.for_each(n * words, fill_row{found.data(), row.data(),
                                           reinterpret_cast<std::uint64_t*>(values.data() + first), words});
      });
    });
  }
  void shrink_to_fit(at_place at) override {
    this->changing_it(at, [&](const Place& place) { map_.shrink_to_fit(place); });
  }
  void save(at_place at, const std::filesystem::path& file, const std::string& types) const override {
    this->looking(at, [&](const Place& place) { roost::save(place, map_, file, types); });
  }
  nb::tuple where(at_place at) const override {
    const auto facts = this->looking(at, [&](const Place& place) { return map_.statistics(place); });
    return nb::make_tuple(facts.board_bytes + facts.place_bytes, facts.host_bytes);
  }
};

template <class Place, std::size_t... Bytes>
std::unique_ptr<store<Place>> stores<Place, Bytes...>::make(at_place at, std::size_t value_bytes,
                                                            std::size_t n, const stadium_options& options) {
  return with_bytes<Bytes...>(value_bytes, "values of a Store", [&]<class Value>(Value) {
    return without_gil(at, [&](const Place& place) -> std::unique_ptr<store<Place>> {
      return std::make_unique<store_of<Value, Place>>(
          place, stadium_map<std::uint64_t, Value, Place>(place, n, options));
    });
  });
}

template <class Place, std::size_t... Bytes>
std::unique_ptr<store<Place>> stores<Place, Bytes...>::load(at_place at, std::size_t value_bytes,
                                                            const std::filesystem::path& file,
                                                            std::size_t budget, std::string& types) {
  return with_bytes<Bytes...>(value_bytes, "values of a Store", [&]<class Value>(Value) {
    return without_gil(at, [&](const Place& place) -> std::unique_ptr<store<Place>> {
      return std::make_unique<store_of<Value, Place>>(
          place, load_stadium_map<std::uint64_t, Value>(place, file, residence::automatic, budget, &types));
    });
  });
}

}  // namespace roost::python
