// A graph whose vertices have ids of 64 bits becomes one with vertices 0, 1, ... m - 1,
// as arrays and matrices want them; and more edges come later, when indices are in use
// already.
#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <vector>

struct edge {
  std::uint64_t from, to;
};

std::vector<edge> some_edges(std::size_t n, std::uint64_t people, std::uint64_t seed) {
  std::vector<edge> edges(n);
  // ids that look like nothing, of so many people
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t a = roost::mix64(2 * i, seed),
                        b = roost::mix64(2 * i + 1, seed);
    edges[i] = {roost::mix64(a % people), roost::mix64(b % people)};
  }
  return edges;
}

int main() {
  const auto edges = some_edges(300000, 50000, 1), later = some_edges(100000, 80000, 2);
  const auto ends_of = [](const std::vector<edge>& all) {  // from, to, from, to, ...
    const auto end = [&all](std::size_t i) {
      return i % 2 == 0 ? all[i / 2].from : all[i / 2].to;
    };
    return roost::computed(2 * all.size(), end);
  };

  roost::host cpu;
  roost::two_way_index vertices(cpu, ends_of(edges));
  // Edge e leads from indices[2 e] to indices[2 e + 1].
  const auto indices = vertices.indices();
  const auto degrees = vertices.counts();  // how often each vertex came: its edges
  const auto id_of = vertices.keys();      // the way back
  const std::size_t before = vertices.size();
  std::printf(
      "%zu edges between %zu vertices; vertex 0 has id %016llx and %llu edges\n",
      edges.size(), before, static_cast<unsigned long long>(id_of[0]),
      static_cast<unsigned long long>(degrees[0]));

  bool right = indices.size() == 2 * edges.size();
  for (std::size_t e = 0; right && e < edges.size(); ++e) {
    right = id_of[indices[2 * e]] == edges[e].from &&
            id_of[indices[2 * e + 1]] == edges[e].to;
  }
  const std::vector<std::uint64_t> old_ids(id_of.begin(), id_of.end());

  // More edges: old vertices keep their indices, new ones get the next.
  const auto added = vertices.add(cpu, ends_of(later));
  std::printf("%zu more edges bring %zu more vertices\n", later.size(),
              vertices.size() - before);

  const auto ids = vertices.keys();  // the span from before add() is void
  const auto more = added.span();
  for (std::size_t v = 0; v < before; ++v) right = right && ids[v] == old_ids[v];
  for (std::size_t e = 0; e < later.size(); ++e) {
    right = right && ids[more[2 * e]] == later[e].from &&
            ids[more[2 * e + 1]] == later[e].to;
  }
  std::uint64_t ends = 0;
  for (const std::uint64_t n : vertices.counts()) ends += n;
  right = right && ends == 2 * (edges.size() + later.size()) &&
          vertices.size() > before &&
          vertices.ref().find(edges[0].from).value_or(1) == 0 && vertices.valid(cpu);
  std::puts(right ? "renumber: right" : "renumber: wrong answers");
  return right ? 0 : 1;
}
