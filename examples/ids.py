"""Deduplicates the ids of a batch, so that each embedding row is fetched once, beside
numpy and torch.

    python examples/ids.py [--rows 1000000] [--device cuda] [--plot ids.png]

Ids come as in logs: a few of them very often. Each library returns the distinct ids
and, for each id of the batch, which of them it is. Libraries that are not installed are
left out; with `--device cuda` (and torch) torch and roost work on the GPU, where 10^8
rows fit. All answers must agree.
"""

import argparse
import time

import numpy as np
import roost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--plot")
    options = parser.parse_args()
    rng = np.random.default_rng(9)
    # The k-th id comes about n / k times.
    rank = (options.rows ** rng.random(options.rows)).astype(np.int64)
    ids = (rank.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)
    try:
        import torch
    except ImportError:
        torch = None
    there = ids if torch is None else torch.from_numpy(ids).to(options.device)

    def wait():
        if options.device == "cuda":
            torch.cuda.synchronize()

    runs = {"roost": lambda: roost.unique(there, return_inverse=True)}
    if options.device == "cpu":
        runs["numpy"] = lambda: np.unique(ids, return_inverse=True)
    if torch is not None:
        runs["torch"] = lambda: torch.unique(there, return_inverse=True)

    seconds, distinct = {}, None
    for name, run in runs.items():
        run()  # once, so that all is loaded
        wait()
        start = time.perf_counter()
        values, inverse = run()
        wait()
        seconds[name] = time.perf_counter() - start
        mine = ids if name == "numpy" else there
        assert bool((values[inverse] == mine).all()) and distinct in (None, len(values))
        distinct = len(values)
    print(
        f"{options.rows} ids, {distinct} distinct: "
        f"{1 - distinct / options.rows:.0%} of the fetches saved"
    )
    for name, took in seconds.items():
        print(f"{name:7} {options.rows / took / 1e6:8.1f} million ids a second")

    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(6, 2.5), constrained_layout=True)
        bars = axes.barh(
            list(seconds), [options.rows / s / 1e6 for s in seconds.values()]
        )
        axes.bar_label(bars, fmt="%.1f", padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.set(xlabel="million ids a second")
        axes.set_title(
            f"distinct ids and inverse of {options.rows} ids "
            f"on the {options.device.upper()}"
        )
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
