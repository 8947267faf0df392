"""python -m roost.bench --frames: frames of pandas and polars in, frames out, beside those libraries.

Times are the best of several runs, from call to result. Each call is made on a frame of pandas and one of
polars; both libraries do the same to their own. All answers are compared.
"""

import os
import time

import numpy as np

import roost

MOST_SECONDS, MOST_RUNS = 1.0, 300


def _best(function):
    """The result, and the shortest time of as many runs as take a second, three at least."""
    best, end, runs = float("inf"), time.perf_counter() + MOST_SECONDS, 0
    while runs < 3 or (runs < MOST_RUNS and time.perf_counter() < end):
        start = time.perf_counter()
        result = function()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return result, best


def _data(rows, rng):
    """Columns of a table, and of one to join it with: keys of three kinds, as numbers and as texts."""
    many = max(rows // 10, 1)
    table = {
        "few": rng.integers(100, size=rows),
        "id": rng.integers(many, size=rows) * 977,
        "v": rng.integers(1000, size=rows),
        "w": rng.normal(size=rows),
    }
    table["name"] = np.array([f"id{n:010d}" for n in table["id"]])
    other = {"id": rng.permutation(many) * 977}
    other["name"] = np.array([f"id{n:010d}" for n in other["id"]])
    other["x"] = np.arange(many)
    return table, other, {"few": np.arange(100), "y": np.arange(100)}


def _calls(frame, other, few):
    """Yields (call, roost's, that of pandas, that of polars, what makes results comparable); frames of the
    library at hand."""

    def grouped(by):
        keys = [by] if isinstance(by, str) else by
        return (
            lambda: roost.group_by(frame, by).agg(v=("v", "sum"), w=("w", "mean")),
            lambda: frame.groupby(by, sort=False, as_index=False).agg(v=("v", "sum"), w=("w", "mean")),
            lambda pl: frame.group_by(keys).agg(pl.col("v").sum(), pl.col("w").mean()),
            lambda r: (len(r), int(r["v"].sum())),
        )

    def merged(right, on, how, column):
        return (
            lambda: roost.merge(frame, right, on=on, how=how),
            lambda: frame.merge(right, on=on, how=how),
            lambda pl: frame.join(right, on=on, how=how),
            lambda r: (len(r), int(r[column].sum()), sorted(r.columns)),
        )

    yield "group_by of 100 keys", *grouped("few")
    yield "group_by of n / 10 keys", *grouped("id")
    yield "group_by of texts", *grouped("name")
    yield "group_by of two columns", *grouped(["few", "id"])
    yield "merge, each key once", *merged(other[["id", "x"]], "id", "inner", "x")
    yield "merge of 100 keys", *merged(few, "few", "inner", "y")
    yield "merge of texts", *merged(other[["name", "x"]], "name", "left", "x")
    key, text, known = frame["id"], frame["name"], other["id"][: len(other["id"]) // 2]
    yield "unique", lambda: roost.unique(key), key.unique, lambda pl: key.unique(), len
    yield (
        "value_counts",
        lambda: roost.value_counts(key)[1],
        key.value_counts,
        lambda pl: key.value_counts(sort=True)["count"],
        lambda r: (len(r), int(r.max())),
    )
    yield (
        "value_counts of texts",
        lambda: roost.value_counts(text)[1],
        text.value_counts,
        lambda pl: text.value_counts(sort=True)["count"],
        lambda r: (len(r), int(r.max())),
    )
    yield (
        "isin",
        lambda: roost.isin(key, known),
        lambda: key.isin(known),
        lambda pl: key.is_in(known.implode()),
        lambda r: int(r.sum()),
    )
    yield (
        "duplicated, two columns",
        lambda: roost.duplicated(frame[["few", "id"]], keep=False),
        lambda: frame.duplicated(["few", "id"], keep=False),
        lambda pl: frame[["few", "id"]].is_duplicated(),
        lambda r: int(r.sum()),
    )


def main(sizes, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import pandas
    import polars

    roost.set_threads(threads)
    bad = 0
    print(
        f"roost {roost.__version__}, pandas {pandas.__version__}, polars {polars.__version__},"
        f" {threads} threads; milliseconds a call; the ratio is the better of the libraries"
        " over the better of roost's two"
    )
    for rows in sizes:
        tables = _data(rows, np.random.default_rng(1))
        print(f"\n{rows} rows\n")
        print("| call | roost, pandas' frame | pandas | roost, polars' frame | polars | ratio |")
        print("|---|---|---|---|---|---|")
        on_pandas = _calls(*map(pandas.DataFrame, tables))
        on_polars = _calls(*map(polars.DataFrame, tables))
        for (call, ours_pd, theirs_pd, _, same), (_, ours_pl, _, theirs_pl, _) in zip(on_pandas, on_polars):
            made, times = zip(*map(_best, (ours_pd, theirs_pd, ours_pl, lambda: theirs_pl(polars))))
            answers = [same(each) for each in made]
            wrong = "" if all(answer == answers[0] for answer in answers) else " (another answer!)"
            bad += bool(wrong)
            ratio = min(times[1], times[3]) / min(times[0], times[2])
            figures = " | ".join(f"{1e3 * t:.3g}" for t in times)
            print(f"| {call} | {figures} | {ratio:.2f}{wrong} |", flush=True)
    return 1 if bad else 0
