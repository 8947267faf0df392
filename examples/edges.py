"""Renumbers the edges of a graph and samples neighbours.

    python examples/edges.py [--edges FILE]

A file has an edge a line, two ids. Without one, a random graph is made, with ids that are anything but 0, 1,
2.
"""

import argparse

import numpy as np
import roost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges")
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
    batch = rng.choice(len(nodes), 512, replace=False)
    degree = out.count(batch)
    offsets, neighbours = out.find(batch)
    some = degree > 0
    sample = np.full((len(batch), 10), -1)  # ten of each node, drawn with replacement
    sample[some] = neighbours[
        offsets[:-1][some, None] + (rng.random((some.sum(), 10)) * degree[some, None]).astype(int)
    ]

    # Every sampled pair is an edge.
    pairs = np.column_stack([np.repeat(batch[some], 10), sample[some].ravel()])
    assert roost.isin(pairs, np.column_stack([source, target])).all()
    print(
        f"{len(edges)} edges, {len(nodes)} nodes, {degree.mean():.1f} neighbours a node of the batch, "
        f"{len(roost.unique(sample[some].ravel()))} nodes sampled from {int(some.sum())}"
    )


if __name__ == "__main__":
    main()
