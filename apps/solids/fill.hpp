#pragma once

#include "columns.hpp"
#include "roost/kernels.hpp"

/// \file
/// Inside and outside by the method of Alcantara et al. 2009, section 6: the surfaces of two meshes as points
/// with normals, hashed to voxels; if both have a voxel, the normals determine on which side its neighbours
/// are; from there the rest is filled.

namespace roost::tools {

/// All voxels that a triangle touches, as if it were an infinitely dense cloud of points: the fill goes
/// through the sides of voxels, and needs a surface without gaps. Key: the voxel; value: the triangle.
struct touched_points {
  touched_voxels voxels;

  class shape : public touched_voxels::shape {
   public:
    ROOST_FN shape(const touched_points& from, std::size_t i)
        : touched_voxels::shape(from.voxels, i), triangle_(static_cast<std::uint32_t>(i)) {}
    template <class Emit>
    ROOST_FN void run(std::uint32_t first, std::uint32_t end, const Emit& emit) const {
      touched_voxels::shape::run(first, end, [&](std::uint32_t column, std::uint16_t z) {
        emit(voxel_word<std::uint32_t>::make(column >> 12, column & 4095, z, 0), triangle_);
      });
    }

   private:
    std::uint32_t triangle_;
  };
};

/// Adds the unit normals of points, in 2^-16, to those of their voxels: integers, so that the order does not
/// matter.
struct add_normals {
  snapped_triangles all;
  const std::uint32_t *triangles, *voxels;  // of each point
  std::uint32_t* sums;                      // three for each voxel
  ROOST_FN void operator()(std::size_t i) const {
    const snapped &a = all.corner(triangles[i], 0), &b = all.corner(triangles[i], 1),
                  &c = all.corner(triangles[i], 2);
    std::int64_t side1[3], side2[3];
    for (int k = 0; k < 3; ++k) {
      side1[k] = b.at[k] - a.at[k];
      side2[k] = c.at[k] - a.at[k];
    }
    double normal[3];
    for (int k = 0; k < 3; ++k) {
      const int u = k == 2 ? 0 : k + 1, v = u == 2 ? 0 : u + 1;
      normal[k] = static_cast<double>(side1[u] * side2[v] - side1[v] * side2[u]);
    }
    const double length =
        sqrt(product(normal[0], normal[0]) + product(normal[1], normal[1]) + product(normal[2], normal[2]));
    if (length == 0) return;
    for (int k = 0; k < 3; ++k) {
      const auto part = static_cast<std::int32_t>(floor(product(normal[k] / length, 65536) + 0.5));
      kernels::fetch_add(sums[3 * std::size_t{voxels[i]} + k], static_cast<std::uint32_t>(part));
    }
  }
};

/// The voxels of one surface, with the method's data.
template <class Place>
struct filled_surface {
  two_way_index<std::uint32_t, Place> index;  // by_key
  array<std::uint32_t, Place> normals;        // three each, in 2^-16
  array<std::uint32_t, Place> neighbours;     // six each: -x +x -y +y -z +z
  array<std::uint64_t, Place> states;

  std::size_t size() const { return index.size(); }
  std::size_t bytes() const { return index.bytes() + normals.bytes() + neighbours.bytes() + states.bytes(); }
};

/// The state of a voxel, in a word: the step of the fill, the kind, and the seed it came from.
struct fill_state {
  enum kinds : std::uint32_t { unknown, inside, outside, both };
  ROOST_FN static std::uint64_t make(std::uint32_t step, std::uint32_t kind, std::uint32_t seed) {
    return std::uint64_t{step} << 34 | std::uint64_t{kind} << 32 | seed;
  }
  ROOST_FN static std::uint32_t step(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 34); }
  ROOST_FN static std::uint32_t kind(std::uint64_t state) {
    return static_cast<std::uint32_t>(state >> 32 & 3);
  }
  ROOST_FN static std::uint32_t seed(std::uint64_t state) { return static_cast<std::uint32_t>(state); }
  ROOST_FN static bool is_filled(std::uint64_t state) {
    return kind(state) == inside || kind(state) == outside;
  }
};

inline constexpr std::uint32_t no_voxel_there = ~std::uint32_t{0};

template <class Ref>
struct find_neighbours {
  Ref index;
  std::uint32_t grid;
  std::uint32_t* neighbours;
  ROOST_FN void operator()(std::size_t i) const {
    const std::uint32_t key = index.key_at(static_cast<std::uint32_t>(i));
    for (int k = 0; k < 6; ++k) {
      const int axis = k / 2;
      const std::uint32_t at = voxel_word<std::uint32_t>::coordinate(key, axis), step = 1u << (2 - axis) * 10;
      const bool there = k % 2 == 0 ? at != 0 : at + 1 != grid;
      neighbours[6 * i + static_cast<std::size_t>(k)] =
          there ? index.find(k % 2 == 0 ? key - step : key + step).value_or(std::uint32_t{no_voxel_there})
                : no_voxel_there;
    }
  }
};

/// Marks the voxels that both surfaces have.
template <class Ref>
struct mark_both {
  Ref mine, other;
  std::uint64_t* states;
  ROOST_FN void operator()(std::size_t i) const {
    const bool both = other.contains(mine.key_at(static_cast<std::uint32_t>(i)));
    states[i] = fill_state::make(0, both ? fill_state::both : fill_state::unknown, 0);
  }
};

/// Classifies a voxel beside one that both surfaces have, by its direction relative to the other surface's
/// normal there. The paper does not say what counts if several such voxels disagree: here, the surest one.
template <class Ref>
struct sow {
  Ref mine, other;
  const std::uint32_t *neighbours, *other_normals;
  double inside_below, outside_above;
  std::uint64_t* states;
  ROOST_FN void operator()(std::size_t i) const {
    if (fill_state::kind(states[i]) != fill_state::unknown) return;
    double surest = 0;
    for (int k = 0; k < 6; ++k) {
      const std::uint32_t x = neighbours[6 * i + static_cast<std::size_t>(k)];
      if (x == no_voxel_there || fill_state::kind(kernels::peek(states[x])) != fill_state::both) continue;
      const found<std::uint32_t> there = other.find(mine.key_at(x));
      if (!there) continue;
      double normal[3];
      for (int axis = 0; axis < 3; ++axis)
        normal[axis] = static_cast<std::int32_t>(other_normals[3 * std::size_t{*there} + axis]);
      const double length =
          sqrt(product(normal[0], normal[0]) + product(normal[1], normal[1]) + product(normal[2], normal[2]));
      if (length == 0) continue;
      const double along = (k % 2 == 0 ? normal[k / 2] : -normal[k / 2]) / length;  // from x to this voxel
      if (fabs(along) > fabs(surest)) surest = along;
    }
    const std::uint32_t kind = surest < inside_below    ? fill_state::inside
                               : surest > outside_above ? fill_state::outside
                                                        : fill_state::unknown;
    if (kind != fill_state::unknown)
      kernels::exchange(states[i], fill_state::make(0, kind, static_cast<std::uint32_t>(i)));
  }
};

/// A step of the fill: a voxel takes the kind that a neighbour had before this step, of several neighbours
/// that of the least seed. So the result does not depend on the order.
struct fill_step {
  const std::uint32_t* neighbours;
  std::uint64_t* states;
  std::uint32_t step;     // from 1
  std::uint32_t* filled;  // whether this step fills a voxel; before, whether the previous one did
  ROOST_FN void operator()(std::size_t i) const {
    if (kernels::peek(filled[-1]) == 0) return;
    if (fill_state::kind(states[i]) != fill_state::unknown) return;
    std::uint64_t best = 0;
    for (int k = 0; k < 6; ++k) {
      const std::uint32_t x = neighbours[6 * i + static_cast<std::size_t>(k)];
      if (x == no_voxel_there) continue;
      const std::uint64_t state = kernels::peek(states[x]);
      if (!fill_state::is_filled(state) || fill_state::step(state) >= step) continue;
      if (best == 0 || fill_state::seed(state) < fill_state::seed(best)) best = state;
    }
    if (best == 0) return;
    kernels::exchange(states[i], fill_state::make(step, fill_state::kind(best), fill_state::seed(best)));
    if (kernels::peek(filled[0]) == 0) kernels::exchange(filled[0], 1u);
  }
};

/// Where inside meets outside, neither seed is trusted any longer.
struct find_conflicts {
  const std::uint32_t* neighbours;
  const std::uint64_t* states;
  std::uint32_t* distrusted;  // of each voxel
  ROOST_FN void operator()(std::size_t i) const {
    if (fill_state::kind(states[i]) != fill_state::inside) return;
    for (int k = 0; k < 6; ++k) {
      const std::uint32_t x = neighbours[6 * i + static_cast<std::size_t>(k)];
      if (x == no_voxel_there || fill_state::kind(states[x]) != fill_state::outside) continue;
      kernels::exchange(distrusted[fill_state::seed(states[i])], 1u);
      kernels::exchange(distrusted[fill_state::seed(states[x])], 1u);
    }
  }
};

/// Resets filled voxels, and untrusted seeds.
struct clear_fill {
  const std::uint32_t* distrusted;
  std::uint64_t* states;
  ROOST_FN void operator()(std::size_t i) const {
    if (!fill_state::is_filled(states[i])) return;
    const bool seed = fill_state::step(states[i]) == 0;
    if (!seed || distrusted[i] != 0) states[i] = fill_state::make(0, fill_state::unknown, 0);
  }
};

struct is_kind {
  const std::uint64_t* states;
  std::uint32_t kind;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    return fill_state::kind(states[i]) == kind ? 1 : 0;
  }
};
struct is_distrusted {
  const std::uint32_t* distrusted;
  ROOST_FN std::uint64_t operator()(std::size_t i) const { return distrusted[i] != 0 ? 1 : 0; }
};

/// 1 for a voxel that the other solid's columns classify differently.
struct is_different {
  const std::uint64_t* states;
  const std::uint32_t* keys;
  column_directory other;
  ROOST_FN std::uint64_t operator()(std::size_t i) const {
    using word = voxel_word<std::uint32_t>;
    if (!fill_state::is_filled(states[i])) return 0;
    const std::uint32_t x = word::coordinate(keys[i], 0), y = word::coordinate(keys[i], 1);
    const bool inside = is_inside(other.find(x, y), word::coordinate(keys[i], 2));
    return inside != (fill_state::kind(states[i]) == fill_state::inside) ? 1 : 0;
  }
};

/// The thresholds of a dot product of unit vectors: how surely a direction leads in or out. The paper does
/// not give its values; these misclassify the fewest voxels of spheres, tori and scans.
struct fill_options {
  double inside_below = -0.3, outside_above = 0.3;
};

/// The points of a mesh in its voxels. Synchronises.
template <class Place>
filled_surface<Place> hash_points(const Place& place, const touched_voxels& voxels,
                                  const snapped_triangles& all, std::size_t triangles) {
  const auto points = raster<std::uint32_t, std::uint32_t>(place, touched_points{voxels}, triangles,
                                                           6 * std::size_t{all.grid} * all.grid);
  filled_surface<Place> result;
  result.index = two_way_index<std::uint32_t, Place>(place, points.keys(),
                                                     {.order = index_order::by_key, .counts = false});
  result.normals = array<std::uint32_t, Place>(place, 3 * result.size());
  place.fill(result.normals.data(), 0, result.normals.bytes());
  place.for_each(points.size, add_normals{all, points.values().data(), result.index.indices().data(),
                                          result.normals.data()});
  result.index.take_indices();
  result.states = array<std::uint64_t, Place>(place, result.size());
  result.neighbours = array<std::uint32_t, Place>(place, 6 * result.size());
  place.synchronize();
  return result;
}

/// Classifies the voxels of `mine` relative to the other surface. Adds to `facts`. Synchronises.
template <class Place>
void fill_surface(const Place& place, filled_surface<Place>& mine, const filled_surface<Place>& other,
                  std::uint32_t grid, const fill_options& options, fill_facts& facts) {
  using ref = typename two_way_index<std::uint32_t, Place>::ref_type;
  constexpr int rounds_most = 64;
  constexpr std::uint32_t steps_at_once = 32;
  const std::size_t n = mine.size();
  if (n == 0) return;
  place.for_each(n, find_neighbours<ref>{mine.index.ref(), grid, mine.neighbours.data()});
  if (other.size() == 0) {
    place.fill(mine.states.data(), 0, mine.states.bytes());
    place.synchronize();
    return;
  }
  place.for_each(n, mark_both<ref>{mine.index.ref(), other.index.ref(), mine.states.data()});
  place.for_each(n,
                 sow<ref>{mine.index.ref(), other.index.ref(), mine.neighbours.data(), other.normals.data(),
                          options.inside_below, options.outside_above, mine.states.data()});
  const auto count = [&](std::uint32_t kind) { return place.sum(n, is_kind{mine.states.data(), kind}); };
  facts.seeds += count(fill_state::inside) + count(fill_state::outside);

  array<std::uint32_t, Place> distrusted(place, n), filled(place, steps_at_once + 1);
  for (int round = 1; round <= rounds_most; ++round) {
    facts.rounds = std::max(facts.rounds, round);
    std::uint32_t step = 1, went_on = 1;
    while (went_on != 0) {  // n steps at most
      place.fill(filled.data(), 0, filled.bytes());
      place.fill(filled.data(), 1, 1);
      for (std::uint32_t k = 1; k <= steps_at_once; ++k, ++step)
        place.for_each(n, fill_step{mine.neighbours.data(), mine.states.data(), step, filled.data() + k});
      place.copy_to_host(&went_on, filled.data() + steps_at_once, sizeof(went_on));
    }
    place.fill(distrusted.data(), 0, distrusted.bytes());
    place.for_each(n, find_conflicts{mine.neighbours.data(), mine.states.data(), distrusted.data()});
    const std::uint64_t bad = place.sum(n, is_distrusted{distrusted.data()});
    if (bad == 0) return;
    facts.cleared += bad;
    place.for_each(n, clear_fill{distrusted.data(), mine.states.data()});
  }
}

/// Adds the counts of one surface's voxels. `first`: also counts voxels on both.
template <class Place>
void add_facts(const Place& place, const filled_surface<Place>& mine, const column_directory& other,
               bool first, fill_facts& facts) {
  const auto count = [&](std::uint32_t kind) {
    return place.sum(mine.size(), is_kind{mine.states.data(), kind});
  };
  facts.classes.inside += count(fill_state::inside);
  facts.classes.outside += count(fill_state::outside);
  if (first) facts.classes.both += count(fill_state::both);
  facts.unknown += count(fill_state::unknown);
  facts.different +=
      place.sum(mine.size(), is_different{mine.states.data(), mine.index.keys().data(), other});
  facts.bytes += mine.bytes();
}

}  // namespace roost::tools
