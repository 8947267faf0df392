"""Calls of Python for columns of N rows in ordinary host memory, through a GPU and on the CPU.

    python3 apps/bench/larger_than_memory.py N LIBRARY[,LIBRARY...]    # cuda, cpu, polars, duckdb

cuda and cpu are roost. Each library works in a process of its own, with keys that are made again by torch on
the GPU, or by numpy. unique: N rows of N / 4 numbers at random. join: N rows with N rows, each key once on
both sides. sums: N rows, 10^6 keys. All answers are compared: by sums of mixed words of all rows, and the
rows of roost's joins one by one. QUESTIONS=unique,join,sums chooses; DEVICE and LIMIT are options of roost.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

THREADS = len(os.sched_getaffinity(0))
PART = 2**25
LIMIT, DEVICE = os.environ.get("LIMIT", "8GB"), os.environ.get("DEVICE", "cuda")


def child(name, n, question):
    """Answers a question with one library, and prints its times and checksums, a line of JSON each."""
    try:
        import torch

        at = "cuda" if torch.cuda.is_available() else "cpu"
    except ImportError:
        torch, at = None, None

    if torch is not None:

        def mixed(x):
            x = x * -7046029254386353131
            x = (x ^ (x >> 29)) * -4658895280553007687
            return x ^ (x >> 32)

        def made(number, first, count):  # of positions
            return number(torch.arange(first, first + count, device=at)).cpu().numpy()

        def tensor(a):
            return torch.from_numpy(np.ascontiguousarray(a)).to(at)

        def total(x):
            return int(x.sum())
    else:

        def mixed(x):
            with np.errstate(over="ignore"):
                x = x * np.int64(-7046029254386353131)
                x = (x ^ (x >> 29)) * np.int64(-4658895280553007687)
                return x ^ (x >> 32)

        def made(number, first, count):
            return number(np.arange(first, first + count))

        def tensor(a):
            return np.asarray(a)

        def total(x):
            return int(x.sum(dtype=np.int64))

    def column(number):
        result = np.empty(n, np.int64)
        for first in range(0, n, PART):
            count = min(PART, n - first)
            result[first : first + count] = made(number, first, count)
        return result

    def checksum(*columns):
        """A sum over rows, which may be in any order, and their number."""
        result, size = 0, len(columns[0])
        for first in range(0, size, PART):
            words = 0
            for c in columns:
                part = np.asarray(c[first : first + PART])
                words = mixed(words + mixed(tensor(part.astype(np.int64, copy=False))))
            result += total(words)
        return result % 2**64, size

    def peak():
        """The most memory so far, in GiB."""
        with open("/proc/self/status") as f:
            return next(int(l.split()[1]) for l in f if l.startswith("VmHWM")) / 2**20

    def said(**facts):
        print(json.dumps({"library": name, "question": question, "n": n, **facts}), flush=True)

    def timed(call, check, calls=1):
        for i in range(calls):
            answer = None
            begin = time.perf_counter()
            answer = call()
            seconds = time.perf_counter() - begin
            said(call=i + 1, seconds=round(seconds, 3), peak=round(peak(), 1))
        begin = time.perf_counter()
        said(check=list(check(answer)))
        print(f"# {name} {question}: checked in {time.perf_counter() - begin:.1f} s", flush=True)

    begin = time.perf_counter()
    a = 618033989  # without a common factor with powers of 10
    if question == "unique":
        keys = column(lambda i: mixed(mixed(i + 1) % (n // 4 if n >= 4 else 1)))
    elif question == "join":
        keys, right = column(lambda i: mixed(i)), column(lambda i: mixed(i * a % n))
    else:
        keys = column(lambda i: mixed(mixed(i + 1) % 1_000_000))
        values = column(lambda i: mixed(i + 7) % 1000)
    if at == "cuda":
        torch.cuda.empty_cache()
    print(f"# {name} {question}: made in {time.perf_counter() - begin:.1f} s, {peak():.0f} GiB", flush=True)

    if name in ("cuda", "cpu"):
        import roost

        through = dict(device=DEVICE, limit=LIMIT) if name == "cuda" else {}
        roost.set_threads(THREADS)
        with roost.options(**through):
            calls = 2 if name == "cuda" else 1
            if question == "unique":
                timed(lambda: roost.unique(keys), checksum, calls)
            elif question == "join":

                def check(pair):
                    l, r = pair
                    wrong = 0  # row i on the left has one match, r: keys are mixed(i), and mixed(r * a % n)
                    for first in range(0, n, PART):
                        mine = tensor(l[first : first + PART].astype(np.int64))
                        other = tensor(r[first : first + PART].astype(np.int64))
                        rows = tensor(np.arange(first, first + len(mine)))
                        wrong += total((mine != rows) | (other * a % n != rows))
                    return *checksum(l, r), len(l) == n and wrong == 0

                timed(lambda: roost.join(keys, right, index_dtype="int32"), check, calls)
            else:

                def sums():
                    groups = roost.group_by(keys)
                    return groups.keys, groups.sum(values)

                timed(sums, lambda x: checksum(*x), calls)
    elif name == "polars":
        import polars as pl

        if question == "unique":
            k = pl.Series("k", keys)
            timed(lambda: k.unique(), lambda x: checksum(x.to_numpy()))
        elif question == "join":
            rows = pl.Series("r", np.arange(n, dtype=np.int32))
            l = pl.DataFrame({"k": keys, "l": rows}).lazy()
            r = pl.DataFrame({"k": right, "r": rows}).lazy()
            timed(
                lambda: l.join(r, on="k").select("l", "r").collect(),
                lambda x: (*checksum(x["l"].to_numpy(), x["r"].to_numpy()), True),
            )
        else:
            frame = pl.DataFrame({"k": keys, "v": values}).lazy()
            timed(
                lambda: frame.group_by("k").agg(pl.col("v").sum()).collect(),
                lambda x: checksum(x["k"].to_numpy(), x["v"].to_numpy()),
            )
    else:
        import duckdb
        import pyarrow as pa

        db = duckdb.connect()
        db.execute(f"set threads to {THREADS}; set preserve_insertion_order = false")
        if question == "join":
            rows = np.arange(n, dtype=np.int32)
            db.register("a", pa.table({"k": keys, "l": rows}))
            db.register("b", pa.table({"k": right, "r": rows}))
            timed(
                lambda: db.sql("select l, r from a join b using (k)").to_arrow_table(),
                lambda x: (*checksum(*both(x, "l", "r")), True),
            )
        else:
            table = pa.table({"k": keys} if question == "unique" else {"k": keys, "v": values})
            db.register("a", table)
            if question == "unique":
                timed(
                    lambda: db.sql("select distinct k from a").to_arrow_table(),
                    lambda x: checksum(*both(x, "k")),
                )
            else:
                timed(
                    lambda: db.sql("select k, sum(v)::bigint as v from a group by k").to_arrow_table(),
                    lambda x: checksum(*both(x, "k", "v")),
                )


def both(table, *names):
    """Columns of an Arrow table as arrays."""
    return [table[name].to_numpy() for name in names]


def main():
    """Asks each library in turn; returns whether answers differ."""
    n, libraries = int(float(sys.argv[1])), sys.argv[2].split(",")
    checks, times, wrong = {}, {}, []
    for question in os.environ.get("QUESTIONS", "unique,join,sums").split(","):
        for name in libraries:
            env = {**os.environ, "POLARS_MAX_THREADS": str(THREADS)}
            process = subprocess.Popen(
                [sys.executable, __file__, "child", name, str(n), question],
                env=env,
                stdout=subprocess.PIPE,
                text=True,
            )
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith("{"):
                    said = json.loads(line)
                    if "check" in said:
                        checks.setdefault(question, {})[name] = said["check"]
                    else:
                        times.setdefault(question, {}).setdefault(name, []).append(
                            (said["seconds"], said["peak"])
                        )
            if process.wait():
                print(f"# {name} {question}: ended with {process.returncode}", flush=True)
        found = checks.get(question, {})
        if len({tuple(c[:2]) for c in found.values()}) > 1 or any(
            len(c) > 2 and not c[2] for c in found.values()
        ):
            wrong.append(f"{question}: DIFFERENT {found}")
    print(f"\n{n} rows: seconds of the last call (of all calls), GiB at most; {THREADS} threads")
    for question, each in times.items():
        print(
            f"{question}: "
            + "; ".join(
                f"{name} {t[-1][0]} ({', '.join(str(s) for s, _ in t)}), {t[-1][1]:.0f} GiB"
                + ("" if name in checks.get(question, {}) else " NOT CHECKED")
                for name, t in each.items()
            )
        )
    print("\n".join(wrong) or "all answers are the same", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(child(sys.argv[2], int(sys.argv[3]), sys.argv[4]) if sys.argv[1] == "child" else main())
