#pragma once

#include "columns.hpp"

// The common base of maps that change.

namespace roost::python {

enum class insertion_kind { keep, assign, add };
template <>
inline constexpr named<insertion_kind> names_of<insertion_kind>[] = {
    {"insert", insertion_kind::keep},
    {"insert_or_assign", insertion_kind::assign},
    {"add", insertion_kind::add}};

/// A map of keys and values of any size.
template <class Place>
class changing {
 public:
  using at_place = const call_place<Place>&;
  virtual ~changing() = default;
  /// Returns how many keys are new, and how many found no room.
  virtual nb::tuple insert(at_place at, const column& keys, const column& values, const char* kind,
                           bool floating) = 0;
  virtual std::size_t erase(at_place at, const column& keys) = 0;
  /// `missing`: one value, in memory of the host.
  virtual void find(at_place at, const column& queries, const column& missing,
                    const column& results) const = 0;
  virtual void contains(at_place at, const column& queries, const column& results) const = 0;
  virtual nb::tuple items(at_place at) const = 0;
  virtual void reserve(at_place at, std::size_t n) = 0;
  virtual void clear(at_place at) = 0;
  virtual std::size_t size(at_place at) const = 0;
  virtual std::size_t capacity() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
};

/// Detects in a forked process that a thread of the parent was changing a map, which is then unusable.
class changes_at_forks {
 public:
  /// Exists during a call that changes the map, or that only reads it. Constructor and destructor need the
  /// GIL.
  class call {
   public:
    call(const changes_at_forks& map, bool changes) : map_(map), changes_(changes) {
      if (map_.fork_ != detail::after_fork) {
        map_.fork_ = detail::after_fork;
        map_.broken_ |= std::exchange(map_.now_, 0) != 0;
      }
      if (map_.broken_) {
        detail::raise<error>(
            {"roost: this process was forked while another thread was changing the table; make a new one"});
      }
      map_.now_ += changes_;
    }
    ~call() { map_.now_ -= changes_; }
    call(const call&) = delete;

   private:
    const changes_at_forks& map_;
    const bool changes_;
  };

 private:
  mutable const detail::memory_after_fork* fork_ = detail::after_fork;
  mutable std::size_t now_ = 0;  // running calls that change it
  mutable bool broken_ = false;
};

/// The operations that are the same for all maps of roost. `Base`: changing<Place>, or a class derived from
/// it.
template <class Map, class Place, class Base = changing<Place>>
class changing_of : public Base {
 public:
  using typename Base::at_place;
  using key = typename Map::key_type;
  using value = typename Map::mapped_type;
  changing_of(const Place& place, Map&& map) : home_(place), map_(std::move(map)) {}

  std::size_t erase(at_place at, const column& keys) final {
    const auto k = span_of<key>(keys);
    return changing_it(at, [&](const Place& place) { return map_.erase(place, k); });
  }
  void contains(at_place at, const column& queries, const column& results) const final {
    const auto keys = span_of<key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    looking(at, [&](const Place& place) { map_.contains(place, keys, found); });
  }
  nb::tuple items(at_place at) const final {
    auto [keys, values] = looking(at, [&](const Place& place) {
      const std::size_t n = map_.size(place);
      std::pair all(array<key, Place>(place, n), array<value, Place>(place, n));
      map_.retrieve_all(place, all.first, all.second);
      return all;
    });
    const nb::object all_keys = to_python(at, std::move(keys));
    return nb::make_tuple(all_keys, to_python(at, std::move(values)));
  }
  void reserve(at_place at, std::size_t n) final {
    changing_it(at, [&](const Place& place) { map_.reserve(place, n); });
  }
  void clear(at_place at) final {
    changing_it(at, [&](const Place& place) { map_.clear(place); });
  }
  std::size_t size(at_place at) const final {
    return looking(at, [&](const Place& place) { return map_.size(place); });
  }
  std::size_t capacity() const final { return map_.capacity(); }
  std::size_t bytes() const final { return map_.bytes(); }
  bool valid(at_place at) const final {
    return looking(at, [&](const Place& place) { return map_.valid(place); });
  }

 protected:
  /// f(place), which changes the map, or reads it.
  template <class F>
  auto changing_it(at_place at, const F& f) const {
    const changes_at_forks::call mine(forks_, true);
    return change(at, home_, f);
  }
  template <class F>
  auto looking(at_place at, const F& f) const {
    const changes_at_forks::call mine(forks_, false);
    return change(at, home_, f);
  }

  Place home_;
  Map map_;

 private:
  changes_at_forks forks_;
};

}  // namespace roost::python
