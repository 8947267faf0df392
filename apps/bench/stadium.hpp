#pragma once

#include "concurrent.hpp"
#include "roost/stadium/stadium_map.hpp"

// stadium_map of all ticket sizes, with bodies in either memory: the workloads of maps that change.

namespace roost::bench {

/// stadium_map with the calls that the workloads make. `how`: the options of the rows that are measured next.
template <class Place, class Key, class Value>
struct stadium_table : stadium_map<Key, Value, Place> {
  using base = stadium_map<Key, Value, Place>;
  inline static stadium_options how;
  static std::string name() { return "stadium_map"; }

  stadium_table(const Place& place, std::size_t n, double load_factor)
      : base(place, n, options(load_factor)), place_(place) {}
  stadium_table(const Place& place, std::span<const Key> keys, std::span<const Value> values,
                double load_factor)
      : stadium_table(place, keys.size(), load_factor) {
    this->insert_new(place, keys, values);
  }
  double load_factor() const {
    return static_cast<double>(this->size(place_)) / static_cast<double>(this->capacity());
  }
  std::size_t scratch_bytes() const { return 0; }

 private:
  static stadium_options options(double load_factor) {
    stadium_options result = how;
    result.load_factor = load_factor;
    result.grows = false;
    return result;
  }

  Place place_;
};

/// `build`, `find_hit`, `insert`, `mixed` and so on, for each kind in --ticket-bits and --bodies.
template <class Place, class Key, class Value>
void measure_stadium(const Place& place, const settings& options, std::size_t n, double load_factor) {
  using table = stadium_table<Place, Key, Value>;
  for (const int ticket_bits : options.ticket_bits) {
    for (const auto& [name, bodies] : options.bodies) {
      table::how = options.stadium;
      table::how.ticket_bits = ticket_bits;
      table::how.bodies = bodies;
      settings these = options;
      const std::string kind = std::to_string(ticket_bits) + '_' + name;
      if (options.report) {
        these.report = [&](row line) {
          line.table += '_';
          line.table += kind;
          options.report(line);
        };
      }
      const Place own = with_default_memory(place);
      measure<table, Place, Key, Value>(own, these, n, load_factor);
      measure_changes<table, Place, Key, Value>(own, these, n, load_factor);
    }
  }
}

}  // namespace roost::bench
