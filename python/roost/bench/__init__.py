"""python -m roost.bench: roost beside numpy, pandas, polars, DuckDB; on a GPU torch, CuPy and pylibcudf.

Prints tables in Markdown: rows a second, the best of several runs, all answers compared. Libraries that are
not installed are left out. Under torchrun: roost.distributed, with --rows rows in each process.

    torchrun --nproc-per-node 2 -m roost.bench --device cuda

With --frames: frames of pandas and polars in, frames out, at 10^4 and 10^6 rows.
With --voxels: a layer of roost.sparse beside torch's dense convolution.
With --h2o: the fifteen questions of the public database benchmark, each library in a process of its own.
"""

import argparse
import importlib
import os
import platform
import time

import numpy as np

import roost


def _library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _best(function, repeats):
    """The result of a function, and the shortest time that it took."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return result, best


SPREADS = ["random", "multiples", "dense"]


def spread(numbers, how, dtype, most):
    """Different keys for different numbers below `most`: an array of numpy or torch, of int64 like `numbers`.

    "random": over the whole type; "multiples": of 977 if they fit; "dense": the numbers.
    """
    room = 2**31 if dtype == "int32" else 2**63
    if most > room:
        raise ValueError(f"{dtype} has no room for {most} keys; give fewer rows, or more copies")
    if how == "dense":
        return numbers
    if how == "multiples":
        return numbers * min(room // most, 977)
    if dtype == "int64":
        mixed = numbers * -7046029254386353131
        return mixed ^ (mixed >> 32 & 0xFFFFFFFF)
    mixed = numbers * 0x9E3779B1 % 2**32
    return (mixed ^ (mixed >> 15)) - 2**31


class Workload:
    """Columns: keys that occur `copies` times on average, values, and queries of which half are keys."""

    def __init__(self, rows, copies, dtype, keys, seed=1):
        rng = np.random.default_rng(seed)
        distinct = max(rows // copies, 1)
        pool = spread(rng.permutation(np.arange(2 * distinct, dtype=np.int64)), keys, dtype, 2 * distinct)
        self.keys = (
            rng.choice(pool[:distinct], rows).astype(dtype) if copies > 1 else pool[:rows].astype(dtype)
        )
        self.queries = rng.choice(pool, rows).astype(dtype)
        self.values = rng.normal(size=rows)
        self.distinct = np.unique(self.keys) if copies > 1 else self.keys


def _operations(work, libraries, threads):
    """Yields (operation, library, function, what makes its result comparable)."""
    keys, queries, values = work.keys, work.queries, work.values
    pandas, polars, duckdb = (libraries.get(n) for n in ("pandas", "polars", "duckdb"))
    if polars:
        k, q, v = polars.Series("k", keys), polars.Series("k", queries), polars.Series("v", values)
        frame, asked = polars.DataFrame({"k": k, "v": v}), polars.DataFrame({"k": q})
        right = polars.DataFrame({"k": work.distinct, "row": np.arange(len(work.distinct))})
    if duckdb:
        db = duckdb.connect()
        db.execute(f"set threads to {threads}; set preserve_insertion_order = false")
        table = pandas.DataFrame({"k": keys, "v": values})
        other = pandas.DataFrame({"k": queries})
        unique_rows = pandas.DataFrame({"k": work.distinct, "row": np.arange(len(work.distinct))})
        db.execute(
            "create table t as from table; create table o as from other; create table u as from unique_rows"
            .replace("from table", 'from "table"')
        )

    def count(result):
        return len(result)

    yield "unique", "roost", lambda: roost.unique(keys), count
    yield "unique", "numpy", lambda: np.unique(keys), count
    if pandas:
        yield "unique", "pandas", lambda: pandas.unique(keys), count
    if polars:
        yield "unique", "polars", lambda: k.unique(), count
    if duckdb:
        yield "unique", "duckdb", lambda: db.execute("select distinct k from t").fetchnumpy()["k"], count

    def total(codes):
        return int(codes.sum())

    yield "factorize", "roost", lambda: roost.factorize(keys)[0], total
    if pandas:
        yield "factorize", "pandas", lambda: pandas.factorize(keys)[0], total

    yield "isin", "roost", lambda: roost.isin(queries, keys), total
    yield "isin", "numpy", lambda: np.isin(queries, keys), total
    if pandas:
        yield "isin", "pandas", lambda: pandas.Series(queries).isin(keys).to_numpy(), total
    if polars:
        yield "isin", "polars", lambda: q.is_in(k.implode()).to_numpy(), total
    if duckdb:
        yield (
            "isin",
            "duckdb",
            lambda: db.execute("select k in (select k from t) as b from o").fetchnumpy()["b"],
            total,
        )

    def sums(result):
        return len(result), round(float(result.sum()), 3)

    yield "sum by key", "roost", lambda: roost.group_by(keys).sum(values), sums
    if pandas:
        series, by = pandas.Series(values), pandas.Series(keys)
        yield "sum by key", "pandas", lambda: series.groupby(by, sort=False).sum().to_numpy(), sums
    if polars:
        yield (
            "sum by key",
            "polars",
            lambda: frame.group_by("k").agg(v=polars.col("v").sum())["v"].to_numpy(),
            sums,
        )
    if duckdb:
        yield (
            "sum by key",
            "duckdb",
            lambda: db.execute("select k, sum(v) as v from t group by k").fetchnumpy()["v"],
            sums,
        )

    if len(work.distinct) == len(keys):  # pandas has no values of keys that come several times
        yield from _map_operations(work, libraries, count)

    yield (
        "get_indexer",
        "roost (Index made before)",
        (lambda index: lambda: index.get_indexer(queries))(roost.Index(work.distinct)),
        total,
    )
    if pandas:
        index = pandas.Index(work.distinct)
        index.get_indexer(queries[:1])  # builds its table
        yield "get_indexer", "pandas", lambda: index.get_indexer(queries), total

    def joined(rows):
        return int(np.asarray(rows).sum())

    yield "join with distinct keys", "roost", lambda: roost.join(queries, work.distinct)[1], joined
    if pandas:
        a, b = pandas.DataFrame({"k": queries}), pandas.DataFrame(
            {"k": work.distinct, "row": np.arange(len(work.distinct))}
        )
        yield "join with distinct keys", "pandas", lambda: a.merge(b, on="k")["row"].to_numpy(), joined
    if polars:
        yield "join with distinct keys", "polars", lambda: asked.join(right, on="k")["row"].to_numpy(), joined
    if duckdb:
        yield (
            "join with distinct keys",
            "duckdb",
            lambda: db.execute("select row from o join u using (k)").fetchnumpy()["row"],
            joined,
        )


def _map_operations(work, libraries, count):
    """The same of a map from keys to values."""
    keys, queries, values = work.keys, work.queries, work.values
    pandas = libraries.get("pandas")

    def series():
        result = pandas.Series(values, pandas.Index(keys))
        result.index.get_indexer(queries[:1])  # builds its table
        return result

    def total(result):
        return round(float(np.nansum(result)), 3)

    yield "Map", "roost", lambda: roost.Map(keys, values), count
    if pandas:
        yield "Map", "pandas", series, count
    ours = roost.Map(keys, values)
    yield "Map.find", "roost (Map made before)", lambda: ours.find(queries), total
    if pandas:
        theirs = series()
        yield "Map.find", "pandas", lambda: theirs.reindex(queries).to_numpy(), total


def _from(least):
    """The type of an option that takes a whole number from `least` on."""

    def number(text):
        if not text.lstrip("+-").isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}; give a whole number from {least} on")
        return int(text)

    return number


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m roost.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "simulated"])
    parser.add_argument(
        "--rows",
        type=_from(1),
        nargs="+",
        help="default: 10^7; on a GPU 2^12, 2^16, 2^20, 2^26; under torchrun 10^6, 2^27; several with"
        " --frames or on a GPU",
    )
    parser.add_argument(
        "--copies", type=_from(1), help="how often a key occurs on average; default: 8; on a GPU 1, then 8"
    )
    parser.add_argument(
        "--keys",
        choices=SPREADS,
        default="random",
        help="over the whole type (the default), multiples of 977, or 0, 1, 2, ..., in random order",
    )
    parser.add_argument("--dtype", choices=["int32", "int64"], help="default: int64; on a GPU both")
    parser.add_argument("--threads", type=_from(0), default=0, help="0: all cores")
    parser.add_argument("--repeats", type=_from(1), help="default: 3; with --h2o 2")
    parser.add_argument("--voxels", type=_from(1), metavar="GRID", help="a layer on GRID^3 voxels instead")
    parser.add_argument("--channels", type=_from(1), default=32, help="of that layer")
    parser.add_argument("--frames", action="store_true", help="calls on frames; of 10^4 and 10^6 rows")
    parser.add_argument("--csv", metavar="FILE", help="on a GPU: also writes what scripts/plot --peers draws")
    h2o = parser.add_argument_group("the public database benchmark")
    h2o.add_argument("--h2o", action="store_true", help="its fifteen questions instead; on a GPU, too")
    h2o.add_argument("--data", metavar="DIR", help="where its files are, or will be kept (default: nowhere)")
    h2o.add_argument("--nulls", type=_from(0), default=0, help="percent of its values; default: 0")
    h2o.add_argument("--sorted", action="store_true", help="its rows are in the order of their keys")
    h2o.add_argument("--questions", metavar="q1,j1,...", help="only these of q1 to q10 and j1 to j5")
    h2o.add_argument("--only", metavar="LIBRARY,...", help="only these of roost, duckdb, polars and pandas")
    h2o.add_argument(
        "--categories",
        action="store_true",
        help="texts are categories, and each process makes its rows in memory, of the columns that are asked"
        " for: for 10^9 rows",
    )
    h2o.add_argument(
        "--limit",
        metavar="BYTES",
        help="with --device: roost sends columns in host memory through the GPU, within such a limit (8GB)",
    )
    options = parser.parse_args(arguments)
    given = (options.data, options.nulls, options.sorted, options.questions, options.only)
    if not options.h2o and any((*given, options.categories, options.limit)):
        parser.error(
            "--data, --nulls, --sorted, --questions, --only, --categories and --limit are options of --h2o"
        )
    if options.categories and any(given[:3]):
        parser.error("--categories makes rows in memory; leave out --data, --nulls and --sorted")
    if (options.limit and options.device == "cpu") or (options.device == "simulated" and not options.limit):
        parser.error("--limit is an option of --device cuda, or simulated; give both")
    on_gpu = options.device == "cuda" and not (
        options.h2o or options.voxels or options.frames or _under_torchrun()
    )
    if options.csv and not on_gpu:
        parser.error("--csv is an option of --device cuda")
    if options.rows and len(options.rows) > 1 and not (on_gpu or options.frames):
        parser.error("several numbers of --rows are for --frames and --device cuda; give one")
    try:
        return _run(options)
    except ModuleNotFoundError as missing:
        parser.error(f"this needs {missing.name}; install it: pip install {missing.name}")


def _under_torchrun():
    return "TORCHELASTIC_RUN_ID" in os.environ


def _run(options):
    if options.h2o:
        from . import h2o

        return h2o.main(options, options.threads or os.cpu_count())
    if options.frames:
        from . import frames

        return frames.main(options.rows or [10_000, 1_000_000], options.threads or os.cpu_count())
    options.repeats = options.repeats or 3
    if _under_torchrun():
        from . import distributed

        on_gpus = options.device == "cuda"
        rows = options.rows[0] if options.rows else 1 << 27 if on_gpus else 1_000_000
        return distributed.main(rows, options.dtype or "int32", options.repeats, on_gpus)
    if options.voxels:
        from . import voxels

        if options.threads:
            roost.set_threads(options.threads)
            voxels.torch.set_num_threads(options.threads)
        return voxels.main(options.device, options.voxels, options.channels, options.repeats)
    if options.device == "cuda":
        from . import cuda

        return cuda.main(
            options.rows or [1 << 12, 1 << 16, 1 << 20, 1 << 26],
            [options.dtype] if options.dtype else ["int32", "int64"],
            [options.copies] if options.copies else [1, 8],
            options.keys,
            options.repeats,
            options.csv,
        )
    options.rows, options.copies = (options.rows or [10_000_000])[0], options.copies or 8
    options.dtype = options.dtype or "int64"
    threads = options.threads or os.cpu_count()
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    roost.set_threads(options.threads)
    libraries = {name: _library(name) for name in ("pandas", "polars", "duckdb")}
    if not libraries["pandas"]:
        libraries["duckdb"] = None
    versions = ", ".join(f"{n} {m.__version__}" for n, m in [("numpy", np), *libraries.items()] if m)
    print(
        f"{options.rows} rows of {options.dtype}, {options.keys} keys, {options.copies} copies,"
        f" {threads} threads, {platform.machine()}, Python {platform.python_version()},"
        f" roost {roost.__version__}, {versions};"
        " millions of rows a second\n"
    )
    print("| operation | library | rate | roost's rate / its rate |")
    print("|---|---|---|---|")
    ours, expected, bad = 0.0, None, 0
    for operation, name, function, comparable in _operations(
        Workload(options.rows, options.copies, options.dtype, options.keys), libraries, threads
    ):
        result, seconds = _best(function, options.repeats)
        answer = comparable(result)
        if name.startswith("roost"):
            ours, expected = seconds, answer
        wrong = "" if np.allclose(answer, expected) else " (another answer!)"
        bad += bool(wrong)
        print(
            f"| {operation} | {name} | {options.rows / seconds / 1e6:.1f} | {seconds / ours:.1f}{wrong} |",
            flush=True,
        )
    return 1 if bad else 0
