"""Measures roost.merge_asof beside DuckDB and polars, on the workloads of DataFusion's suite `asof_join`.

    python apps/bench/asof.py [--threads 2] [--runs 5] [--workloads q1,q6]

DuckDB and polars are measured if Python has them. All join frames of polars or Arrow in memory, and begin
with frames that are in no order of keys; polars sorts both by time first, if they are not, as it must. The
programs take turns; the least time of all runs is printed, and all must find the same rows.
"""

import argparse
import os
import time

WORKLOADS = {
    "q1": "10^6 rows with 10^4, without keys",
    "q2": "10^6 rows with 10^6, 10^4 keys",
    "q3": "250,000 rows with 250,000, 10^4 keys, texts of 256 bytes",
    "q4": "500,000 rows with 500,000, without keys, the next one",
    "q5": "10^5 rows with 10^6, without keys",
    "q6": "10^6 rows with 10^6, one key of 95 % of the rows",
    "q7": "10^5 rows with 10^5, 10^4 keys, sorted by key and time",
}


def frames_of(name):
    """The frames of both sides; whether they have keys; and the direction."""
    import numpy as np
    import polars as pl

    def side(n, keys, times, texts=None):
        columns = {} if keys is None else {"key": keys}
        payload = np.arange(n) if texts is None else pl.repeat(texts * 256, n, eager=True)
        return pl.DataFrame({**columns, "ts": times, "payload": payload})

    def ranges(n, m):
        return side(n, None, np.arange(n)), side(m, None, np.arange(m)), False

    def keyed(n, key_of, ticks, later=1, texts=(None, None)):
        rows = np.arange(n)
        keys, times = key_of(rows), rows // ticks
        return side(n, keys, times + later, texts[0]), side(n, keys, times, texts[1]), True

    def skewed(rows):
        return np.where(rows % 100 < 95, 0, rows % 16 + 1)

    made = {
        "q1": lambda: ranges(10**6, 10**4),
        "q2": lambda: keyed(10**6, lambda rows: rows % 10**4, 10**4),
        "q3": lambda: keyed(250_000, lambda rows: rows % 10**4, 10**4, texts=("x", "y")),
        "q4": lambda: ranges(500_000, 500_000),
        "q5": lambda: ranges(10**5, 10**6),
        "q6": lambda: keyed(10**6, skewed, 100),
        "q7": lambda: keyed(10**5, lambda rows: rows // 10, 1, 0),
    }[name]()
    return *made, "forward" if name == "q4" else "backward"


def with_roost(left, right, keyed, direction):
    import roost

    by = "key" if keyed else None
    return roost.merge_asof(left, right, on="ts", by=by, direction=direction, suffixes=("", "_right"))


def with_polars(left, right, keyed, direction):
    by = "key" if keyed else None
    return left.sort("ts").join_asof(
        right.sort("ts"), on="ts", by=by, strategy=direction, check_sortedness=False
    )


def with_duckdb(left, right, keyed, direction):
    import duckdb

    on = ("left_.key = right_.key and " if keyed else "") + (
        "left_.ts <= right_.ts" if direction == "forward" else "left_.ts >= right_.ts"
    )
    with duckdb.connect(config={"threads": int(os.environ["POLARS_MAX_THREADS"])}) as base:
        base.register("left_", left.to_arrow())
        base.register("right_", right.to_arrow())
        text = f"from left_ asof left join right_ on {on} select left_.*, right_.payload as payload_right"
        return base.sql(text).pl()


def counts_of(found, ticks):
    """How many rows there are, how many have a match, and the sum of the times that they match: of several
    rows with one time, each program takes another one."""
    payload = found["payload_right"]
    payload = payload // ticks if ticks > 1 else payload
    total = payload.sum() if payload.dtype.is_numeric() else None
    return len(found), len(found) - payload.null_count(), total


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    options = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)
    import roost

    roost.set_threads(options.threads)
    programs = {"roost": with_roost}
    try:
        import polars  # noqa: F401

        programs["polars"] = with_polars
    except ImportError:
        parser.error("polars is missing, whose frames are joined: pip install polars")
    try:
        import duckdb  # noqa: F401

        programs["DuckDB"] = with_duckdb
    except ImportError:
        pass
    for name in options.workloads.split(","):
        given, least, found = frames_of(name), {}, {}
        for _ in range(options.runs):
            for program, join in programs.items():
                begin = time.perf_counter()
                result = join(*given)
                taken = time.perf_counter() - begin
                least[program] = min(taken, least.get(program, taken))
                found[program] = counts_of(result, 100 if name == "q6" else 1)
        if len(set(found.values())) > 1:
            raise SystemExit(f"{name}: different rows: {found}")
        times = "  ".join(f"{program} {1000 * taken:8.1f} ms" for program, taken in least.items())
        print(f"{name}  {WORKLOADS[name]:58}  {times}", flush=True)


if __name__ == "__main__":
    main()
