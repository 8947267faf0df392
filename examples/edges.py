"""Renumbers the edges of a graph and samples neighbours.

    python examples/edges.py [--edges FILE] [--plot edges.png]

A file has an edge a line, two ids. Without one, a random graph is made, with ids that
are anything but 0, 1, 2. The picture shows some nodes with neighbours that were sampled
in two steps, as graph networks take them.
"""

import argparse

import numpy as np
import roost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges")
    parser.add_argument("--plot")
    options = parser.parse_args()
    rng = np.random.default_rng(7)
    if options.edges:
        edges = np.loadtxt(options.edges, dtype=np.int64, ndmin=2)[:, :2]
    else:
        names = rng.integers(0, 1 << 62, 20_000)
        edges = names[(rng.random((200_000, 2)) ** 2 * len(names)).astype(int)]

    # Ids as rows 0, 1, ... of a feature matrix, and back: nodes[rows] == edges.
    rows, nodes = roost.factorize(edges.ravel())
    source, target = rows.reshape(-1, 2).T
    assert np.array_equal(nodes[rows].reshape(-1, 2), edges)

    # Neighbours: all targets of a source, side by side.
    out = roost.MultiMap(source, target)

    def sample(nodes, n):
        """Pairs: n neighbours of each node that has some, drawn with replacement."""
        offsets, neighbours = out.find(nodes)
        degree = np.diff(offsets)
        some = degree > 0
        nodes, first, degree = nodes[some], offsets[:-1][some], degree[some]
        which = (rng.random((len(nodes), n)) * degree[:, None]).astype(int)
        drawn = first[:, None] + which
        return np.column_stack([np.repeat(nodes, n), neighbours[drawn].ravel()])

    batch = rng.choice(len(nodes), min(512, len(nodes)), replace=False)
    degree = out.count(batch)
    pairs = sample(batch, 10)

    # Every sampled pair is an edge.
    assert roost.isin(pairs, np.column_stack([source, target])).all()
    print(
        f"{len(edges)} edges, {len(nodes)} nodes, {degree.mean():.1f} neighbours "
        "a node of the batch, "
        f"{len(roost.unique(pairs[:, 1]))} nodes sampled from {int((degree > 0).sum())}"
    )
    if options.plot:
        draw(options.plot, batch[degree > 0][:6], sample)


def draw(file, seeds, sample):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    first = sample(seeds, 5)
    # In the order of the first.
    second = sample(roost.unique(first[:, 1], return_index=True)[0], 3)
    nodes = np.concatenate([seeds, first[:, 1], second[:, 1]])
    each = [len(seeds), len(first), len(second)]
    circle = np.repeat([1.0, 2.0, 3.0], each)
    angle = np.concatenate([(np.arange(n) + 0.5) * 2 * np.pi / n for n in each])
    # A node lies where it came first.
    named, row = roost.unique(nodes, return_index=True)
    x, y = circle * np.cos(angle), circle * np.sin(angle)

    figure, axes = pyplot.subplots(figsize=(6, 6), constrained_layout=True)
    place = roost.Index(named)
    for pairs, colour in ((second, "C7"), (first, "C0")):
        a, b = (row[place.get_indexer(side)] for side in pairs.T)
        axes.plot([x[a], x[b]], [y[a], y[b]], color=colour, linewidth=0.6, zorder=1)
    axes.scatter(
        x[row],
        y[row],
        s=160 / circle[row] ** 2,
        c=circle[row],
        cmap="viridis",
        zorder=2,
    )
    axes.set_title(
        f"{len(seeds)} nodes, 5 neighbours of each, 3 of each of these: "
        f"{len(named)} nodes"
    )
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
