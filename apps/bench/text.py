"""Measures `roost join` and `roost unique` beside DuckDB and polars, on files that it makes.

    python apps/bench/text.py ROOST [--threads 2] [--runs 5] [--folder FOLDER]

ROOST is the command, as `cmake --preset tool` builds it; DuckDB and polars are measured if Python has them.
Each run is a process of its own, from files to a file, and the programs take turns. The least time of all
runs is printed: that of the processors, and from begin to end. What Python and its packages take to start is
left out of the seconds, but not of the most memory that a process had. All must write the same rows, in any
order.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

SCRIPT = os.path.realpath(__file__)

TASKS = {
    "join": "join of 3 M rows with 1 M",
    "lines": "unique, 3 M lines, all different",
    "column": "unique, a column with 1.3 M different keys",
    "wide": "unique, one of 30 columns, 430 k different keys",
}


def make_files(rows=3_000_000, others=1_000_000, keys=1_500_000):
    """a.csv, of which two of three rows have a match, b.csv, in which each key comes once, and wide.csv."""
    draw = random.Random(1).randrange
    with open("a.csv", "w") as file:
        file.write("id,customer,amount,note\n")
        file.writelines(f"{i},{draw(keys)},{draw(100000)},note{i:07d}\n" for i in range(rows))
    with open("b.csv", "w") as file:
        file.write("customer,name\n")
        chosen = random.Random(2).sample(range(keys), others)
        file.writelines(f"{key},customer name {key % 10000:04d}\n" for key in chosen)
    with open("wide.csv", "w") as file:
        file.write(",".join(["id", "customer", *(f"amount{i}" for i in range(26)), "note", "kind"]) + "\n")
        for i in range(others):
            amounts = ",".join(str(draw(others)) for _ in range(26))
            file.write(f"{i},{draw(keys // 3)},{amounts},note{i:07d},x\n")


def with_roost(task, threads, roost):
    return (
        [roost]
        + {
            "join": ["join", "a.csv", "b.csv", "--on", "customer", "--kind", "left"],
            "lines": ["unique", "a.csv", "--format", "csv"],
            "column": ["unique", "a.csv", "--column", "customer", "--format", "csv"],
            "wide": ["unique", "wide.csv", "--column", "customer", "--format", "csv"],
        }[task]
        + ["--place", "host", "--threads", str(threads), "--output", "roost.csv"]
    )


def with_duckdb(task, threads):
    import duckdb

    # a separator that no line has makes lines of rows
    lines = "read_csv('a.csv', header = false, delim = '\x01', columns = {'line': 'VARCHAR'}, quote = '')"
    query = {
        "join": "SELECT a.*, name FROM 'a.csv' a LEFT JOIN 'b.csv' b ON a.customer = b.customer",
        "lines": f"SELECT line, count(*) AS count FROM {lines} GROUP BY line",
        "column": "SELECT customer, count(*) AS count FROM 'a.csv' GROUP BY customer",
        "wide": "SELECT customer, count(*) AS count FROM 'wide.csv' GROUP BY customer",
    }[task]
    yield
    duckdb.execute(f"SET threads = {threads}")
    duckdb.execute(f"COPY ({query}) TO 'DuckDB.csv' (HEADER)")


def with_polars(task, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    yield
    if task == "lines":
        table = polars.scan_csv(
            "a.csv", has_header=False, separator="\x01", quote_char=None, new_columns=["line"]
        )
        table = table.group_by("line").agg(polars.len().alias("count"))
    elif task != "join":
        file = "wide.csv" if task == "wide" else "a.csv"
        table = polars.scan_csv(file).group_by("customer").agg(polars.len().alias("count"))
    else:
        table = polars.scan_csv("a.csv").join(polars.scan_csv("b.csv"), on="customer", how="left")
    table.sink_csv("polars.csv")


PACKAGES = {"DuckDB": with_duckdb, "polars": with_polars}


def run_package(name, task, threads):
    """In a process of its own: what is before `yield` is not measured."""
    steps = PACKAGES[name](task, threads)
    next(steps)
    begin, cpu = time.perf_counter(), time.process_time()
    next(steps, None)
    seconds = time.process_time() - cpu, time.perf_counter() - begin
    print(json.dumps([*seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))


def measure(name, task, options):
    """Seconds of the processors, and from begin to end; MB."""
    if name != "roost":
        command = [sys.executable, SCRIPT, "--package", name, task, "--threads", str(options.threads)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    begin = time.perf_counter()
    process = subprocess.Popen(with_roost(task, options.threads, options.roost))
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{options.roost}: failed")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1000


def rows_of(name):
    """What tells files with other rows apart, whatever their order and their quotes."""
    with open(f"{name}.csv", "rb") as file:
        next(file)
        lines = sorted(line.replace(b'"', b"") for line in file)
    return hash(tuple(lines))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roost", metavar="ROOST", nargs="?")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", help="where the files are made, and found again; default: temporary")
    parser.add_argument("--package", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.package:
        return run_package(*options.package, options.threads)
    if options.roost is None:
        parser.error("name the command roost")
    options.roost = os.path.realpath(options.roost)
    present = [name for name in PACKAGES if importlib.util.find_spec(name.lower())]
    version = subprocess.run([options.roost, "-V"], check=True, capture_output=True, text=True).stdout
    names = {"roost": version.strip()}
    names |= {name: importlib.metadata.version(name.lower()) for name in present}
    with (
        tempfile.TemporaryDirectory() as temporary,
        multiprocessing.get_context("spawn").Pool(1, os.chdir, (options.folder or temporary,)) as small,
    ):
        os.chdir(options.folder or temporary)
        if not os.path.exists("wide.csv"):
            make_files()
        heads = (f"{name} {version}" for name, version in names.items())
        print("seconds of the processors (from begin to end), MB | " + " | ".join(heads))
        for task, title in TASKS.items():
            runs = {name: [] for name in names}
            for _ in range(options.runs):
                for name in names:
                    # by a process that stays small: a new one begins with the memory of its parent
                    runs[name].append(small.apply(measure, (name, task, options)))
            if len({rows_of(name) for name in names}) != 1:
                sys.exit(f"{title}: the programs wrote different rows")
            cells = ("{:.2f} ({:.2f}), {:.0f}".format(*map(min, zip(*runs[name]))) for name in names)
            print(f"{title} | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
