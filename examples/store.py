"""Keeps vectors by their ids in a Store: more than fit in a GPU, and in a file.

    python examples/store.py [--rows 100000] [--device cuda] [--plot store.png]

On a GPU (with torch) the store may use a quarter of the memory that its rows need; the
other rows lie in memory of the CPU, where the GPU reads them. The picture shows how
fast rows go in and come out while the store grows: it doubles where inserts are slow.
"""

import argparse
import pathlib
import tempfile
import time

import numpy as np
import roost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--plot")
    options = parser.parse_args()
    rng = np.random.default_rng(5)
    ids = rng.permutation(options.rows).astype("int64") * 1_000_003
    here, back, budget, wait = np.asarray, np.asarray, None, lambda: None
    if options.device == "cuda":
        import torch

        here, back = (
            (lambda array: torch.from_numpy(array).cuda()),
            (lambda tensor: tensor.cpu().numpy()),
        )
        wait = torch.cuda.synchronize
        budget = options.rows * 64 * 4 // 4

    def vectors(some):  # of each id, what a model would have learned
        return np.sin(some[:, None] * np.arange(1, 65)).astype("float32")

    def seconds(call):
        start = time.perf_counter()
        result = call()
        wait()
        return result, time.perf_counter() - start

    store = roost.Store("int64", "float32", 64, budget=budget, like=here(ids[:1]))
    sizes, puts, gets = [], [], []
    for batch in np.array_split(ids, 20):
        keys, rows = here(batch), here(vectors(batch))
        added, put = seconds(lambda: store.insert(keys, rows))
        assert added == len(batch)
        chosen = rng.choice(ids[: len(store)], len(batch))
        keys = here(chosen)
        found, get = seconds(lambda: store.find(keys))
        assert np.array_equal(back(found), vectors(chosen))
        sizes.append(len(store) / 1e3)
        puts.append(len(batch) / put / 1e6)
        gets.append(len(batch) / get / 1e6)
    memory = store.memory
    print(
        f"{len(store)} rows of 256 bytes: {memory['device'] >> 20} MiB of memory "
        f"of the {options.device.upper()}, {memory['cpu'] >> 20} MiB behind it; "
        f"the last {len(batch)} rows went in "
        f"at {puts[-1]:.1f} and came out at {gets[-1]:.1f} million a second"
    )

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "vectors.roost"
        store.save(file)
        # On the CPU, wherever it came from.
        again = roost.Store.load(file, "int64", "float32", 64)
    assert len(again) == options.rows and np.array_equal(
        again[ids[:100]], vectors(ids[:100])
    )
    assert (again.find(ids[:3] + 1, missing=-1) == -1).all()

    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4), constrained_layout=True)
        axes.plot(sizes, puts, "o-", label="insert")
        axes.plot(sizes, gets, "s-", label="find")
        axes.set(
            xlabel="thousand rows in the store",
            ylabel="million rows a second",
            ylim=(0, None),
        )
        axes.set_title(
            f"rows of 64 float32 on the {options.device.upper()}, "
            f"{len(ids) // 20} at a time"
        )
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
