"""python -m roost.bench --h2o: the fifteen questions of the public database benchmark (db-benchmark).

Ten aggregations by group, by roost (of Arrow tables), DuckDB, polars and pandas, and five joins (roost's of
frames of polars). Each library works in a process of its own, with the data in memory as its own frames and
as many threads as the others; the faster of two runs counts. All answers are compared.

With --categories, texts are categories of few bytes, and each process makes the rows in its memory, of the
columns that its questions need: so 10^9 rows fit in 128 GiB. With --limit, roost sends columns in host memory
through a GPU, within that much of its memory.
"""

import gc
import importlib.util
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

LIBRARIES = {"roost": "roost", "duckdb": "DuckDB", "polars": "polars", "pandas": "pandas"}
_NAMES = {**LIBRARIES, "gpu": "roost on a GPU", "limited": "roost through a GPU"}
_PART = 2**22  # rows that a thread makes or reads at once
_MANY = 2**27  # rows of an answer of which only sums are compared
_MOST_OF_ENUM = 10**5  # texts of a type of DuckDB; with more, a column has the texts themselves
_ZERO_SUMS = {"polars", "pandas"}  # the sum of no values; DuckDB and roost have null, as SQL does

# Columns of the result: (column, aggregate). The range, nlargest and r2 are other calls in each library.
GROUPS = {
    "q1": (["id1"], {"v1": ("v1", "sum")}),
    "q2": (["id1", "id2"], {"v1": ("v1", "sum")}),
    "q3": (["id3"], {"v1": ("v1", "sum"), "v3": ("v3", "mean")}),
    "q4": (["id4"], {v: (v, "mean") for v in ("v1", "v2", "v3")}),
    "q5": (["id6"], {v: (v, "sum") for v in ("v1", "v2", "v3")}),
    "q6": (["id4", "id5"], {"median_v3": ("v3", "median"), "std_v3": ("v3", "std")}),
    "q7": (["id3"], {"range": ("max v1 - min v2", "range")}),
    "q8": (["id6"], {"v3": ("two v3", "largest")}),
    "q9": (["id2", "id4"], {"r2": ("v1 v2", "r2")}),
    "q10": ([f"id{i}" for i in range(1, 7)], {"v3": ("v3", "sum"), "count": ("v1", "count")}),
}
JOINS = {
    "j1": ("small", "id1", "inner"),
    "j2": ("medium", "id2", "inner"),
    "j3": ("medium", "id2", "left"),
    "j4": ("medium", "id5", "inner"),
    "j5": ("big", "id3", "inner"),
}


def _describe(question):
    """What a question wants, in words."""
    if question in JOINS:
        right, on, how = JOINS[question]
        return f"{how} join with {right} on {on}"
    keys, wanted = GROUPS[question]
    by = "id1 to id6" if len(keys) == 6 else ", ".join(keys)
    results = [what if how == "range" else f"{how} {what}" for what, how in wanted.values()]
    return f"{', '.join(results)} by {by}"


def _frames(files, made, read, convert):
    """The tables as a library has them: read from files, or of Arrow's tables that were `made`, which go."""
    if made:
        return {name: convert(made.pop(name)) for name in list(made)}
    return {name: read(file) for name, file in files.items()}


class _Roost:
    """roost, on Arrow tables; joins of files, whose results have many texts, on frames of polars: theirs are
    views. `through`: options of roost for all calls."""

    def __init__(self, files, made, threads, through):
        import pyarrow.parquet

        import roost

        roost.set_threads(threads)
        roost.options(**through)
        self.version, self.roost = roost.__version__, roost
        if "small" in files and importlib.util.find_spec("polars"):
            import polars

            self.frames = {n: polars.read_parquet(f).rechunk() for n, f in files.items()}
        else:
            self.frames = _frames(
                files,
                made,
                lambda file: pyarrow.parquet.read_table(file).combine_chunks(),
                lambda table: table,
            )

    def group(self, keys, wanted):
        return self.roost.group_by(self.frames["x"], keys).agg(**wanted)

    def range(self, keys):
        import pyarrow.compute as pc

        found = self.group(keys, {"high": ("v1", "max"), "low": ("v2", "min")})
        return found.select(keys).append_column("range", pc.subtract(found["high"], found["low"]))

    def largest(self, key):
        groups = self.roost.group_by(self.frames["x"], [key])
        values, ends = groups.nlargest(self.frames["x"]["v3"], 2)
        keys = groups.keys.take(np.repeat(np.arange(len(groups)), np.diff(ends)))
        return keys.append_column("v3", [values])

    def r2(self, keys):
        import pyarrow.compute as pc

        found = self.group(keys, {"r": (("v1", "v2"), "corr")})
        return found.select(keys).append_column("r2", pc.multiply(found["r"], found["r"]))

    def join(self, right, on, how):
        left, right = self.frames["x"], self.frames[right]
        found = self.roost.merge(left, right, on=on, how=how)
        known, given = (getattr(frame, "column_names", frame.columns) for frame in (found, left))
        names = [f"{name}_x" if f"{name}_x" in known else name for name in given]
        return found.select(names + [name for name in known if name not in names])

    def arrow(self, answer):
        return answer.to_arrow() if hasattr(answer, "to_arrow") else answer


class _Gpu:
    """roost on columns of CuPy, in memory of a GPU. Texts are numbers there, of a dictionary that the CPU
    made before; times are those of the GPU alone."""

    def __init__(self, files, made, threads):
        import cupy
        import pyarrow as pa
        import pyarrow.parquet

        import roost

        self.version, self.roost, self.cupy = roost.__version__, roost, cupy
        tables = {name: pa.parquet.read_table(file) for name, file in files.items()}
        self.frames, self.texts = {name: {} for name in tables}, {}
        for column in dict.fromkeys(name for table in tables.values() for name in table.column_names):
            parts = {name: table[column] for name, table in tables.items() if column in table.column_names}
            whole = pa.chunked_array([chunk for part in parts.values() for chunk in part.chunks])
            if whole.null_count:
                raise ValueError("columns of CuPy have no nulls")
            if pa.types.is_string(whole.type):  # one dictionary for all tables, which texts join, too
                whole = whole.combine_chunks().dictionary_encode()
                self.texts[column], whole = whole.dictionary, whole.indices
            values = cupy.asarray(whole.to_numpy())
            for name, part in parts.items():
                self.frames[name][column], values = values[: len(part)], values[len(part) :]

    def _grouped(self, keys):
        x = self.frames["x"]
        groups = self.roost.group_by(tuple(x[key] for key in keys))
        return groups, [(key, key, found, None) for key, found in zip(keys, groups.keys)]

    def group(self, keys, wanted):
        groups, found = self._grouped(keys)
        x = self.frames["x"]
        results = groups.agg(**{name: (x[column], how) for name, (column, how) in wanted.items()})
        return [*found, *((name, None, result, None) for name, result in results.items())]

    def range(self, keys):
        groups, found = self._grouped(keys)
        x = self.frames["x"]
        return [*found, ("range", None, groups.max(x["v1"]) - groups.min(x["v2"]), None)]

    def largest(self, key):
        groups, ((_, texts, keys, _),) = self._grouped([key])
        values, ends = groups.nlargest(self.frames["x"]["v3"], 2)
        rows = self.cupy.searchsorted(ends, self.cupy.arange(len(values)), side="right") - 1
        return [(key, texts, keys[rows], None), ("v3", None, values, None)]

    def r2(self, keys):
        groups, found = self._grouped(keys)
        x = self.frames["x"]
        return [*found, ("r2", None, groups.corr(x["v1"], x["v2"]) ** 2, None)]

    def join(self, right, on, how):
        x, y = self.frames["x"], self.frames[right]
        l, r = self.roost.join(x[on], y[on], how, index_dtype="int32")
        there = r >= 0 if how == "left" else None
        return [
            *((name, name, column[l], None) for name, column in x.items()),
            *((f"{name} y", name, column[r], there) for name, column in y.items() if name != on),
        ]

    def finish(self):
        self.cupy.cuda.Device().synchronize()

    def arrow(self, answer):
        import pyarrow as pa

        columns = {}
        for name, source, values, there in answer:
            missing = None if there is None else ~there.get()
            column = pa.array(values.get(), mask=missing, from_pandas=False)
            columns[name] = self.texts[source].take(column) if source in self.texts else column
        return pa.table(columns)


class _Duckdb:
    """DuckDB, on tables of its own in memory. Results are Arrow tables: it makes these in less time."""

    def __init__(self, files, made, threads):
        import duckdb

        self.version, self.database = duckdb.__version__, duckdb.connect()
        self.database.execute(f"set threads to {threads}; set preserve_insertion_order = false")
        for name, file in files.items():
            self.database.execute(f"create table {name} as select * from read_parquet(?)", [str(file)])
        enums = set()
        for name in list(made or ()):
            table, wanted = made.pop(name), []
            for column, kind in zip(table.column_names, table.schema.types):
                known = table[column].chunk(0).dictionary if hasattr(kind, "value_type") else []
                if 0 < len(known) <= _MOST_OF_ENUM and column not in enums:
                    names = ", ".join(f"'{text}'" for text in known.to_pylist())
                    self.database.execute(f"create type {column}_enum as enum ({names})")
                    enums.add(column)
                wanted.append(f"{column}::{column}_enum as {column}" if column in enums else column)
            self.database.register("given", table)
            self.database.execute(f"create table {name} as select {', '.join(wanted)} from given")
            self.database.unregister("given")
        tables = [row[0] for row in self.database.execute("show tables").fetchall()]
        self.columns = {
            name: [row[0] for row in self.database.execute(f"describe {name}").fetchall()] for name in tables
        }

    def _select(self, query):
        return self.database.sql(f"select {query}").to_arrow_table()  # of execute it would be a copy

    def _by(self, keys, values):
        return self._select(f"{', '.join(keys)}, {values} from x group by {', '.join(keys)}")

    def group(self, keys, wanted):
        names = {"mean": "avg", "std": "stddev"}
        values = [f"{names.get(f, f)}({column}) as {name}" for name, (column, f) in wanted.items()]
        return self._by(keys, ", ".join(values))

    def range(self, keys):
        return self._by(keys, "max(v1) - min(v2) as range")

    def largest(self, key):
        return self._by([key], "unnest(max(v3, 2)) as v3")

    def r2(self, keys):
        return self._by(keys, "corr(v1, v2) ^ 2 as r2")

    def join(self, right, on, how):
        rest = [f"{right}.{c} as {c}_y" for c in self.columns[right] if c not in (on, "v2")]
        return self._select(f"{', '.join(['x.*', *rest, 'v2'])} from x {how} join {right} using ({on})")

    def arrow(self, answer):
        return answer


class _Polars:
    """polars, on frames of its own, by lazy queries."""

    def __init__(self, files, made, threads):
        import polars

        self.version, self.polars = polars.__version__, polars
        self.frames = _frames(files, made, lambda f: polars.read_parquet(f).rechunk(), polars.from_arrow)

    def _by(self, keys, *values):
        return self.frames["x"].lazy().group_by(keys).agg(*values).collect()

    def group(self, keys, wanted):
        return self._by(keys, *(getattr(self.polars.col(c), f)().alias(n) for n, (c, f) in wanted.items()))

    def range(self, keys):
        return self._by(keys, (self.polars.max("v1") - self.polars.min("v2")).alias("range"))

    def largest(self, key):
        rows = self.frames["x"].lazy().drop_nulls("v3").group_by(key)
        return rows.agg(self.polars.col("v3").top_k(2)).explode("v3").collect()

    def r2(self, keys):
        return self._by(keys, (self.polars.corr("v1", "v2") ** 2).alias("r2"))

    def join(self, right, on, how):
        return self.frames["x"].lazy().join(self.frames[right].lazy(), on=on, how=how).collect()

    def arrow(self, answer):
        return answer.to_arrow()


class _Pandas:
    """pandas, with its nullable integers where there are nulls."""

    def __init__(self, files, made, threads):
        import pandas
        import pyarrow
        import pyarrow.parquet

        types = {pyarrow.int32(): pandas.Int32Dtype(), pyarrow.int64(): pandas.Int64Dtype()}

        def of_arrow(table):
            nulls = any(column.null_count for column in table.columns)
            return table.to_pandas(types_mapper=types.get if nulls else None, self_destruct=True)

        self.version = pandas.__version__
        self.frames = _frames(files, made, lambda f: of_arrow(pyarrow.parquet.read_table(f)), of_arrow)

    def _by(self, keys, rows=None):
        rows = self.frames["x"] if rows is None else rows
        return rows.groupby(keys, as_index=False, sort=False, observed=True, dropna=False)

    def group(self, keys, wanted):
        return self._by(keys).agg(**wanted)

    def range(self, keys):
        found = self.group(keys, {"high": ("v1", "max"), "low": ("v2", "min")})
        return found.assign(range=found["high"] - found["low"])[[*keys, "range"]]

    def largest(self, key):
        rows = self.frames["x"][[key, "v3"]].dropna(subset="v3").sort_values("v3", ascending=False)
        return self._by([key], rows).head(2)

    def r2(self, keys):
        rows = self.frames["x"][[*keys, "v1", "v2"]]
        found = self._by(keys, rows).apply(lambda group: group["v1"].corr(group["v2"]) ** 2)
        return found.set_axis([*keys, "r2"], axis=1)

    def join(self, right, on, how):
        right = self.frames[right]
        if right[on].hasnans:  # pandas would join nulls with nulls
            right = right[right[on].notna()]
        return self.frames["x"].merge(right, on=on, how=how)

    def arrow(self, answer):
        import pyarrow

        for name, column in answer.items():  # integers that became floats, since rows are without partner
            if name.startswith("id") and column.dtype == np.float64:
                answer[name] = column.astype("Int64")
        return pyarrow.Table.from_pandas(answer, preserve_index=False)


def _ask(library, question):
    """The answer of a library, as it has it."""
    if question in JOINS:
        return library.join(*JOINS[question])
    keys, wanted = GROUPS[question]
    ((_, how), *_) = wanted.values()
    if how == "range":
        return library.range(keys)
    if how == "largest":
        return library.largest(*keys)
    return library.r2(keys) if how == "r2" else library.group(keys, wanted)


def _mix(words):
    """Words of 64 bits, each bit of which depends on all (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


_NULL = np.uint64(0x9E3779B97F4A7C15)


def _words(column):
    """A word of 64 bits for each value of an Arrow column, the same in all libraries."""
    import pyarrow as pa
    import pyarrow.compute as pc

    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        words = (column.cast(pa.float64()).fill_null(0).to_numpy() + 0.0).view(np.uint64)
    elif pa.types.is_integer(column.type):
        words = column.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    else:
        texts = column.cast(pa.large_string()).fill_null("id0")
        if not pc.all(pc.starts_with(texts, "id")).as_py() and len(texts):
            raise ValueError("a text that is not id and a number")
        numbers = pc.cast(pc.utf8_slice_codeunits(texts, 2), pa.int64()).to_numpy()
        words = (numbers * 64 + pc.binary_length(texts).to_numpy()).view(np.uint64)
    return _mix(np.where(valid, words, _NULL))


def _reader(column):
    """A function of rows (first, count) that returns a word for each."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return lambda first, count: _words(column.slice(first, count))
    column = column.unify_dictionaries() if hasattr(column, "chunks") else pa.chunked_array([column])
    known = _words(column.chunk(0).dictionary if column.num_chunks else pa.array([], pa.string()))
    known = np.append(known, _mix(np.array([_NULL])))  # the last one for nulls

    def words(first, count):
        chunks = column.slice(first, count).chunks
        return np.concatenate(
            [known[chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy()] for chunk in chunks]
        )

    return words


def _each_part(n, work):
    """work(first, count) for parts of n rows, by all threads."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda first: work(first, min(_PART, n - first)), range(0, n, _PART)))


def digest(table, exact):
    """What is compared of an answer: a checksum of each of its columns in `exact`, the sorted hashes of its
    rows over these, and the other columns in this order, as floats, NaN for null. Of many rows only sums."""
    import pyarrow as pa

    n, readers = table.num_rows, {name: _reader(table[name]) for name in exact}
    others = [name for name in table.column_names if name not in exact]

    def read(first, count):
        rows, sums = np.zeros(count, np.uint64), []
        for words in readers.values():
            mine = words(first, count)
            sums.append(mine.sum(dtype=np.uint64))
            rows = _mix(rows + mine)
        values = [table[name].slice(first, count).cast(pa.float64()) for name in others]
        values = [column.to_numpy(zero_copy_only=False) for column in values]
        if n > _MANY:
            rows = rows.sum(dtype=np.uint64, keepdims=True)
            values = [np.nansum(column, keepdims=True) for column in values]
        return rows, np.array(sums, np.uint64), values

    parts = _each_part(n, read) or [read(0, 0)]
    sums = dict(zip((f"sum {name}" for name in exact), sum(part[1] for part in parts)))
    rows = np.concatenate([part[0] for part in parts])
    values = {name: np.concatenate([part[2][i] for part in parts]) for i, name in enumerate(others)}
    if n > _MANY:
        rows = np.array([n, rows.sum(dtype=np.uint64)], np.uint64)
        return {"rows": rows, **sums, **{name: column.sum(keepdims=True) for name, column in values.items()}}
    order = np.argsort(rows)
    return {"rows": rows[order], **sums, **{name: column[order] for name, column in values.items()}}


def difference(a, b, zero_sums=()):
    """What differs between two digests, as text, or None. Nulls are 0 in columns of `zero_sums`."""
    if len(a["rows"]) != len(b["rows"]):
        return f"{len(a['rows'])} rows and {len(b['rows'])}"
    if wrong := [name[4:] for name in a if name.startswith("sum ") and a[name] != b[name]]:
        return f"other values of {', '.join(wrong)}"
    if not np.array_equal(a["rows"], b["rows"]):
        return "the values of other rows stand together"
    for name in a:
        if name == "rows" or name.startswith("sum "):
            continue
        x, y = (np.nan_to_num(v[name]) if name in zero_sums else v[name] for v in (a, b))
        if wrong := int((~np.isclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True)).sum()):
            return f"{wrong} of {len(x)} values of {name}"
    return None


def _columns(question, tables):
    """The columns of an answer, and those among them that are equal to the last bit."""
    if question in JOINS:
        right, on, _ = JOINS[question]
        left = tables["x"]
        names = left + [f"{c}_y" if c in left else c for c in tables[right] if c != on]
        return names, names
    keys, wanted = GROUPS[question]
    names = [*keys, *wanted]
    return names, names if question == "q8" else keys


def _peak(reset=False):
    """The most memory that this process has had since it was reset, in bytes."""
    if reset:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _child(name, questions, files, options, threads, out):
    """Answers questions with one library, in this process; leaves times and digests in the folder `out`.
    `options`: those of the command that matter here; without files, tables are made."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.set_cpu_count(threads)
    made = None if files else _made(questions, options["rows"])
    tables = {n: t.column_names for n, t in made.items()} if made else {}
    tables |= {n: pyarrow.parquet.read_schema(f).names for n, f in files.items()}
    if name in ("roost", "limited"):
        through = {} if name == "roost" else {"device": options["device"], "limit": options["limit"]}
        library = _Roost(files, made, threads, through)
    else:
        library = globals()[f"_{name.capitalize()}"](files, made, threads)
    peak, found = 0, {}
    for question in questions:
        try:
            best, most = float("inf"), 0
            for _ in range(options["repeats"]):
                answer = None
                gc.collect()
                _peak(reset=True)
                start = time.perf_counter()
                answer = _ask(library, question)
                if name == "gpu":
                    library.finish()
                best = min(best, time.perf_counter() - start)
                most = max(most, _peak())
            names, exact = _columns(question, tables)
            answer = library.arrow(answer).rename_columns(names)
            np.savez(pathlib.Path(out, f"{name} {question}.npz"), **digest(answer, exact))
            found[question] = {"seconds": best, "rows": answer.num_rows}
            known = f"{best:.3f} s, {answer.num_rows} rows, {most / 2**30:.1f} GiB"
            peak = max(peak, most)
        except Exception as error:  # noqa: BLE001 (other questions may work)
            known = f"{type(error).__name__}: {error}".splitlines()[0]
            found[question] = {"error": known}
        if made is not None:  # a run of many rows may be ended before the others
            print(f"{question}: {_NAMES[name]}: {known}", flush=True)
    results = {"version": library.version, "peak": peak, "questions": found}
    pathlib.Path(out, f"{name}.json").write_text(json.dumps(results))


def _run(name, questions, files, options, threads, out):
    """The results of a library, from a process of its own; its digests are in the folder `out`."""
    rest = {
        "rows": options.rows[0] if options.rows else 0,
        "repeats": options.repeats or 2,
        "device": options.device,
        "limit": options.limit,
    }
    arguments = [name, questions, {n: str(f) for n, f in files.items()}, rest, threads, str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "roost.bench.h2o", json.dumps(arguments)],
        env={**os.environ, "POLARS_MAX_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        error = f"ended with {done.returncode}" + (f": {last}" if last else "")
        return {"version": "", "peak": 0, "error": error, "questions": {q: {"error": ""} for q in questions}}
    return json.loads(pathlib.Path(out, f"{name}.json").read_text())


def _short(n):
    """Numbers as the benchmark's files have them: 1e7."""
    power = len(str(n)) - 1
    return f"{n // 10**power}e{power}" if n % 10**power == 0 else str(n)


def _with_nulls(column, share, rng, whole_values):
    """An Arrow column with nulls: `share` of its rows, or all rows of that share of its distinct values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.to_numpy(zero_copy_only=False)
    if whole_values:
        distinct = np.unique(values)
        missing = np.isin(values, rng.choice(distinct, int(len(distinct) * share), replace=False))
    else:
        missing = np.zeros(len(values), bool)
        missing[rng.choice(len(values), int(len(values) * share), replace=False)] = True
    return pc.if_else(pa.array(~missing), column, pa.scalar(None, column.type))


def _texts(numbers, width=0):
    """id and a number, with leading zeros up to a width."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise("id", pc.utf8_lpad(numbers.cast(pa.string()), width, "0"), "")


def _make_groups(rows, nulls, in_order):
    """The table of the aggregations: 100 values of id1, id2, id4 and id5, rows / 100 of id3 and id6."""
    import pyarrow as pa

    rng = np.random.default_rng(rows + nulls)
    many = max(rows // 100, 1)
    ranges = {"id1": 100, "id2": 100, "id3": many, "id4": 100, "id5": 100, "id6": many, "v1": 5, "v2": 15}
    columns = {
        name: pa.array(rng.integers(1, most, rows, dtype=np.int32, endpoint=True))
        for name, most in ranges.items()
    }
    columns["v3"] = pa.array(np.round(rng.random(rows) * 100, 6))
    if nulls:
        for name, column in columns.items():
            columns[name] = _with_nulls(column, nulls / 100, rng, whole_values=name.startswith("id"))
    for name, width in (("id1", 3), ("id2", 3), ("id3", 10)):
        columns[name] = _texts(columns[name], width)
    table = pa.table(columns)
    return {"x": table.sort_by([(f"id{i}", "ascending") for i in range(1, 7)]) if in_order else table}


def _make_joins(rows, nulls, in_order):
    """The left table of the joins and the three right ones. A tenth of the keys of each side is only there;
    id4, id5 and id6 are id1, id2 and id3 as texts."""
    import pyarrow as pa

    rng = np.random.default_rng(rows + nulls)
    sizes = {"small": max(rows // 10**6, 10), "medium": max(rows // 1000, 10), "big": rows}
    left, right = [], []  # the keys of id1, id2, id3
    for n in sizes.values():
        keys = rng.permutation(n * 11 // 10).astype(np.int32) + 1
        common = n * 9 // 10
        left.append(keys[:n])
        right.append(np.concatenate([keys[:common], keys[n:]]))

    def table(n, pools, value, order):
        columns = {}
        for i, pool in enumerate(pools, 1):  # each key at least once, in random order
            drawn = np.concatenate([pool, rng.choice(pool, max(n - len(pool), 0))])[:n]
            columns[f"id{i}"] = pa.array(rng.permutation(drawn))
        made = pa.table(columns)
        if in_order:
            made = made.sort_by([(name, "ascending") for name in order])
        columns = {
            name: _with_nulls(made[name].combine_chunks(), nulls / 100, rng, False) if nulls else made[name]
            for name in columns
        }
        columns |= {f"id{i + 3}": _texts(columns[f"id{i}"]) for i in range(1, len(pools) + 1)}
        return pa.table({**columns, value: pa.array(np.round(rng.random(n) * 100, 6))})

    tables = {"x": table(rows, left, "v1", ["id1", "id2", "id3"])}
    for i, (name, n) in enumerate(sizes.items(), 1):
        tables[name] = table(n, right[:i], "v2", [f"id{i}"])
    return tables


def _filled(n, dtype, values):
    """An array whose parts are values(first, count), made by all threads."""
    made = np.empty(n, dtype)

    def fill(first, count):
        made[first : first + count] = values(first, count)

    _each_part(n, fill)
    return made


def _made(questions, rows):
    """The tables of questions, in memory: what the files have, but texts are categories, of codes as narrow
    as they can be, only columns that the questions name are there, and of joins all but id6, whose
    categories would be as many as rows. Keys of joins are in the order of multiples, not a random one."""
    import pyarrow as pa

    def random(n, column, most):
        dtype = np.int32 if most else np.float64

        def values(first, count):
            rng = np.random.default_rng([rows, column, first])
            if most:
                return rng.integers(1, most, count, dtype, endpoint=True)
            return np.round(rng.random(count) * 100, 6)

        return _filled(n, dtype, values)

    def categories(numbers, most, width=0):
        code = next(t for t in (np.int8, np.int16, np.int32) if most <= np.iinfo(t).max)
        codes = _filled(len(numbers), code, lambda first, count: numbers[first : first + count] - 1)
        texts = _texts(pa.array(np.arange(1, most + 1)), width)
        return pa.DictionaryArray.from_arrays(pa.array(codes), texts, safe=False)

    tables, many = {}, max(rows // 100, 1)
    if asked := [GROUPS[question] for question in questions if question in GROUPS]:
        words = {word for keys, wanted in asked for text, _ in wanted.values() for word in text.split()}
        words.update(key for keys, _ in asked for key in keys)
        columns, most = {}, {"id3": many, "id6": many, "v1": 5, "v2": 15, "v3": 0}
        for i, name in enumerate(["id1", "id2", "id3", "id4", "id5", "id6", "v1", "v2", "v3"]):
            if name in words or (name == "v1" and "q10" in questions):
                column = random(rows, i, most.get(name, 100))
                width = {"id1": 3, "id2": 3, "id3": 10}.get(name)
                columns[name] = categories(column, most.get(name, 100), width) if width else pa.array(column)
        tables["x"] = pa.table(columns)
    if asked := {JOINS[question][0] for question in questions if question in JOINS}:
        sizes = {"small": max(rows // 10**6, 10), "medium": max(rows // 1000, 10), "big": rows}
        for table, (name, n) in enumerate({"x": rows, **sizes}.items()):
            columns = {}
            for i, size in enumerate(sizes.values()):
                if name not in ("x", *asked) or i > {"x": 2, "small": 0, "medium": 1, "big": 2}[name]:
                    continue
                common, pool = size * 9 // 10, size * 11 // 10  # keys of both sides, and of either

                def key(first, count, size=size, common=common, pool=pool, column=10 * table + i, n=n):
                    if n == size:  # each key once
                        at = np.arange(first, first + count) * _coprime(size, table) % size
                    else:
                        at = np.random.default_rng([rows, column, first]).integers(0, size, count)
                    at = np.where((at >= common) & (table > 0), at + size - common, at)
                    return at * _coprime(pool, 0) % pool + 1

                columns[f"id{i + 1}"] = _filled(n, np.int32, key)
                if i < 2:
                    columns[f"id{i + 4}"] = categories(columns[f"id{i + 1}"], pool)
            if columns:
                columns = {column: columns[column] for column in sorted(columns)}
                value = "v2" if table else "v1"
                tables[name] = pa.table({**columns, value: random(n, 10 * table + 3, 0)})
    return tables


def _coprime(n, which):
    """A number without a common factor with n, of about 0.6 n."""
    made = int(n * 0.6180339887) + 7 * which + 1
    while math.gcd(made, n) != 1:
        made += 1
    return made


def _files(folder, joins, rows, nulls, in_order):
    """The parquet files of the tables; made if there are neither these nor files of the benchmark (CSV)."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    end = f"{nulls}_{int(in_order)}"
    if joins:
        sizes = {"x": "NA", "small": max(rows // 10**6, 10), "medium": max(rows // 1000, 10), "big": rows}
        names = {
            name: f"J1_{_short(rows)}_{_short(n) if n != 'NA' else n}_{end}" for name, n in sizes.items()
        }
    else:
        names = {"x": f"G1_{_short(rows)}_1e2_{end}"}
    files = {name: folder / f"{file}.parquet" for name, file in names.items()}
    if all(file.exists() for file in files.values()):
        return files
    from_csv = {name: file.with_suffix(".csv") for name, file in files.items()}
    there = [file.exists() for file in from_csv.values()]
    if any(there) and not all(there):
        missing = ", ".join(file.name for file, here in zip(from_csv.values(), there) if not here)
        raise SystemExit(f"roost.bench: {folder} has only some files of the joins; {missing} are missing")
    if all(there):
        integers = dict.fromkeys(["v1", "v2"] if not joins else [], pa.int32())
        integers |= dict.fromkeys(["id1", "id2", "id3"] if joins else ["id4", "id5", "id6"], pa.int32())
        options = pyarrow.csv.ConvertOptions(column_types=integers, strings_can_be_null=True)
        tables = {n: pyarrow.csv.read_csv(f, convert_options=options) for n, f in from_csv.items()}
    else:
        tables = (_make_joins if joins else _make_groups)(rows, nulls, in_order)
    for name, table in tables.items():
        unfinished = files[name].with_suffix(".tmp")
        pq.write_table(table, unfinished)
        unfinished.rename(files[name])
    return files


def _ask_all(libraries, questions, files, options, threads):
    """Prints a table of what the libraries take for these questions; returns how many answers are wrong."""
    with tempfile.TemporaryDirectory() as out:
        results = {n: _run(n, questions, files, options, threads, out) for n in libraries}
        names = [f"{_NAMES[n]} {r['version']}".strip() for n, r in results.items()]
        print(f"| question, seconds | rows of the answer | {' | '.join(names)} |")
        print("|---|---|" + "---|" * len(names))
        wrong = [f"{_NAMES[n]} {r['error']}" for n, r in results.items() if "error" in r]
        for question in questions:
            cells, first, count = [], None, ""
            # DuckDB first: it has null for the sum of no values, as roost does
            for name in sorted(results, key=["duckdb", "polars", "pandas", "roost", "gpu", "limited"].index):
                answer = results[name]["questions"][question]
                if "error" in answer:
                    if answer["error"]:
                        wrong.append(f"{question}, {_NAMES[name]}: {answer['error']}")
                    continue
                count = count or answer["rows"]
                with np.load(pathlib.Path(out, f"{name} {question}.npz")) as saved:
                    digested = dict(saved)
                if first is None:
                    first = name, digested
                    continue
                sums = GROUPS[question][1] if question in GROUPS and {name, first[0]} & _ZERO_SUMS else {}
                sums = [column for column, (_, how) in sums.items() if how == "sum"]
                if what := difference(first[1], digested, sums):
                    answer["other"] = True
                    pair = f"{_NAMES[first[0]]} and {_NAMES[name]}"
                    wrong.append(f"{question}: {pair} have different answers: {what}")
            for result in results.values():
                answer = result["questions"][question]
                seconds = "failed" if "error" in answer else f"{answer['seconds']:.3f}"
                cells.append(seconds + (" (another answer!)" if "other" in answer else ""))
            print(f"| {question}: {_describe(question)} | {count} | {' | '.join(cells)} |")
        peaks = " | ".join(f"{r['peak'] / 2**30:.2f}" for r in results.values())
        print(f"| the most memory, GiB | | {peaks} |\n", flush=True)
    for line in wrong:
        print(line)
    return len(wrong)


def main(options, threads):
    """Runs what the options of roost.bench ask for; 1 if answers differ or a question failed."""
    wanted = options.questions.split(",") if options.questions else [*GROUPS, *JOINS]
    if unknown := [q for q in wanted if q not in GROUPS and q not in JOINS]:
        raise SystemExit(f"roost.bench: no question {', '.join(unknown)}; choose from q1 to q10 and j1 to j5")
    libraries = options.only.split(",") if options.only else list(LIBRARIES)
    if options.device != "cpu":
        mine = "limited" if options.limit else "gpu"
        libraries = [mine, *(name for name in libraries if name != mine)]
        if options.nulls and mine == "gpu":
            raise SystemExit("roost.bench: columns on a GPU have no nulls; leave out --nulls or --device")
    if unknown := [name for name in libraries if name not in _NAMES]:
        raise SystemExit(f"roost.bench: no library {', '.join(unknown)}; choose from {', '.join(LIBRARIES)}")
    options.rows = options.rows or [10_000_000]
    (rows,) = options.rows
    if options.nulls >= 100:
        raise SystemExit("roost.bench: give less than 100 percent of nulls")
    for name in ("pyarrow", *libraries):
        module = {"gpu": "cupy", "limited": "roost"}.get(name, name)
        if importlib.util.find_spec(module) is None:
            if name == "pyarrow":
                raise SystemExit("roost.bench: --h2o needs pyarrow (pip install pyarrow)")
            print(f"{_NAMES[name]} is not installed, and left out")
            libraries.remove(name)
    print(
        f"{rows} rows, {options.nulls} % nulls, {'sorted' if options.sorted else 'in random order'},"
        f" {threads} threads, {platform.machine()}, Python {platform.python_version()};"
        f" the faster of {options.repeats or 2} runs\n",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder, wrong = pathlib.Path(options.data or temporary), 0
        folder.mkdir(parents=True, exist_ok=True)
        for joins, questions in enumerate((GROUPS, JOINS)):
            if asked := [q for q in wanted if q in questions]:
                files = {}
                if not options.categories:
                    files = _files(folder, bool(joins), rows, options.nulls, options.sorted)
                wrong += _ask_all(libraries, asked, files, options, threads)
    return 1 if wrong else 0


if __name__ == "__main__":
    _child(*json.loads(sys.argv[1]))
