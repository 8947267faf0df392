"""python -m roost.bench --device cuda: roost beside torch, CuPy and pylibcudf, arrays in memory of the GPU.

Times are from call to result, the device's work included: the best of several runs. All answers are compared.
pylibcudf takes its memory from CUDA's pool of the device, as an application of it would.
"""

import csv
import os
import time

import numpy as np
import torch

import roost

from .._arrays.take import take
from . import spread

try:
    import cupy
except ImportError:
    cupy = None
try:
    import libcudf
    import pylibcudf
    import rmm
except ImportError:
    pylibcudf = None


def _best(function, repeats):
    """The result, and the shortest time. The result of the last run is dropped before the next begins."""
    best, result = float("inf"), None
    for _ in range(repeats + 1):
        result = None
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return result, best


def _tensor(array):
    if pylibcudf and isinstance(array, pylibcudf.Column):
        ids = pylibcudf.TypeId
        types = {ids.INT32: "int32", ids.INT64: "int64", ids.FLOAT32: "float32", ids.FLOAT64: "float64"}
        types[ids.BOOL8] = "bool"
        values = torch.as_tensor(array.data(), device="cuda").view(torch.uint8)
        return values.view(getattr(torch, types[array.type().id()]))[: array.size()]
    return torch.from_dlpack(array) if cupy and isinstance(array, cupy.ndarray) else array


def _cudf(*arrays):
    """{operation: {"pylibcudf": function}} for keys, queries, distinct keys, values and other keys."""
    if not pylibcudf:
        return {}
    equal, nans_equal = pylibcudf.types.NullEquality.EQUAL, pylibcudf.types.NanEquality.ALL_EQUAL
    keys, queries, known, values, others = map(pylibcudf.Column.from_cuda_array_interface, arrays)
    table, asked, distinct, other = (pylibcudf.Table([column]) for column in (keys, queries, known, others))

    def unique():
        keep = pylibcudf.stream_compaction.DuplicateKeepOption.KEEP_ANY
        return pylibcudf.stream_compaction.distinct(table, [0], keep, equal, nans_equal).columns()[0]

    def sums():
        request = pylibcudf.groupby.GroupByRequest(values, [pylibcudf.aggregation.sum()])
        found, (result,) = pylibcudf.groupby.GroupBy(table).aggregate([request])
        return found.columns()[0], result.columns()[0]

    functions = {
        "unique": unique,
        "isin": lambda: pylibcudf.search.contains(known, queries),
        "sum by key": sums,
        "join with distinct keys": lambda: pylibcudf.join.inner_join(asked, distinct, equal),
        "join, copies on both sides": lambda: pylibcudf.join.inner_join(table, other, equal),
    }
    return {operation: {"pylibcudf": function} for operation, function in functions.items()}


def _operations(rows, copies, dtype, how):
    """Yields (operation, {library: function}, whether a result is right)."""
    generator = torch.Generator("cuda").manual_seed(1)
    distinct = max(rows // copies, 1)

    def keys_of(numbers):
        return spread(numbers, how, str(dtype).removeprefix("torch."), 2 * distinct).to(dtype)

    def random(high, n):
        return torch.randint(high, (n,), device="cuda", generator=generator)

    if copies > 1:
        keys = keys_of(random(distinct, rows))
    else:
        keys = keys_of(torch.randperm(rows, device="cuda", generator=generator))
    queries = keys_of(random(2 * distinct, rows))  # half of them are keys, about
    values = random(1000, rows).to(torch.float64 if dtype is torch.int64 else torch.float32)
    known = torch.unique(keys)
    known = known[torch.randperm(len(known), device="cuda", generator=generator)]
    on_cupy = [cupy.from_dlpack(t) for t in (keys, queries, known)] if cupy else None
    others = keys_of(random(distinct, rows))
    cudf = _cudf(keys, queries, known, values, others)

    expected = torch.unique(keys)
    yield "unique", {
        "roost": lambda: roost.unique(keys),
        "torch": lambda: torch.unique(keys, sorted=False),
        **({"CuPy": lambda: cupy.unique(on_cupy[0])} if cupy else {}),
        **cudf.get("unique", {}),
    }, lambda r: torch.equal(torch.sort(_tensor(r))[0], expected)

    def all_right(result):
        found, inverse, counts = map(_tensor, result)
        return (
            torch.equal(found[inverse], keys)
            and len(found) == len(expected)
            and torch.equal(torch.bincount(inverse, minlength=len(found)), counts)
        )

    yield "unique, inverse and counts", {
        "roost": lambda: roost.unique(keys, return_inverse=True, return_counts=True),
        "torch": lambda: torch.unique(keys, return_inverse=True, return_counts=True),
        **(
            {"CuPy": lambda: cupy.unique(on_cupy[0], return_inverse=True, return_counts=True)}
            if cupy
            else {}
        ),
    }, all_right

    there = torch.isin(queries, known)
    yield "isin", {
        "roost": lambda: roost.isin(queries, known),
        "torch": lambda: torch.isin(queries, known),
        **({"CuPy": lambda: cupy.isin(on_cupy[1], on_cupy[2])} if cupy else {}),
        **cudf.get("isin", {}),
    }, lambda r: torch.equal(_tensor(r), there)

    index = roost.Index(known)
    ascending, order = torch.sort(known)

    def search():
        at = torch.searchsorted(ascending, queries).clamp_(max=len(ascending) - 1)
        return torch.where(ascending[at] == queries, order[at], -1)

    position = search()
    yield "look up (table, or sorted keys, made before)", {
        "roost": lambda: index.get_indexer(queries),
        "roost, int32 rows": lambda: index.get_indexer(queries, index_dtype="int32"),
        "torch": search,
    }, lambda r: torch.equal(r.long(), position)
    table = roost.Map(known, order)
    yield "Map.find (the table, or sorted keys, made before)", {
        "roost": lambda: table.find(queries, missing=-1),
        "torch": lambda: torch.where((at := search()) >= 0, order[at], -1),
    }, lambda r: torch.equal(r, torch.where(position >= 0, order[position], -1))
    yield "the table, or sorting", {
        "roost": lambda: roost.Index(known),
        "torch": lambda: torch.sort(known),
    }, lambda r: True

    def sum_by_torch():
        found, inverse = torch.unique(keys, return_inverse=True)
        sums = torch.zeros(len(found), dtype=values.dtype, device="cuda")
        return found, sums.index_add_(0, inverse, values)

    def sum_by_roost():
        groups = roost.group_by(keys)
        sums = groups.sum(values)
        return groups.keys, sums

    right_keys, right_sums = sum_by_torch()

    def sums_right(result):
        found, sums = map(_tensor, result)
        order = torch.sort(found)[1]
        return torch.equal(found[order], right_keys) and torch.equal(sums[order].to(values), right_sums)

    yield (
        "sum by key",
        {"roost": sum_by_roost, "torch": sum_by_torch, **cudf.get("sum by key", {})},
        sums_right,
    )

    def join_by_torch():
        at = search()
        left = torch.nonzero(at >= 0).squeeze(1)
        return left, at[left]

    right_join = join_by_torch()

    def join_right(result):
        left, right = map(_tensor, result)
        left, order = torch.sort(left.long())  # pylibcudf's rows have no order
        return torch.equal(left, right_join[0]) and torch.equal(right[order].long(), right_join[1])

    yield "join with distinct keys", {
        "roost": lambda: roost.join(queries, known),
        "torch": lambda: (torch.sort(known), join_by_torch())[1],
        **cudf.get("join with distinct keys", {}),
    }, join_right

    if rows * copies > 1 << 27:  # pairs, of which torch needs several arrays of 64 bits
        return

    def pairs_by_torch():
        ascending, order = torch.sort(others)
        first = torch.searchsorted(ascending, keys)
        counts = torch.searchsorted(ascending, keys, right=True) - first
        left = torch.repeat_interleave(counts)
        before = first - (counts.cumsum(0) - counts)
        return left, order[before[left] + torch.arange(len(left), device="cuda")]

    def in_order(pairs):
        left, right = map(_tensor, pairs)
        return torch.sort(left.long() * rows + right)[0]

    right_pairs = in_order(pairs_by_torch())
    yield "join, copies on both sides", {
        "roost": lambda: roost.join(keys, others),
        "roost, int32 rows": lambda: roost.join(keys, others, index_dtype="int32"),
        "torch": pairs_by_torch,
        **cudf.get("join, copies on both sides", {}),
    }, lambda r: torch.equal(in_order(r), right_pairs)


def _overhead():
    """What a call costs beyond that of C++, in microseconds, for ten keys."""

    def best(function, calls=2000):
        least = float("inf")
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                function()
            torch.cuda.synchronize()
            least = min(least, (time.perf_counter() - start) / calls)
        return least * 1e6

    x = torch.arange(10, device="cuda")
    for name, x in [("torch", x), *([("CuPy", cupy.from_dlpack(x))] if cupy else [])]:
        _, library = take(x, "")
        module, place, column = library.module, library.place(), library.column(x)
        index, table = roost.Index(x), roost.Map(x, x)
        rows = library.column(library.empty(10, np.dtype(np.int64)))
        found = library.column(library.empty(10, np.dtype(np.bool_)))
        zero = np.zeros((1, 8), np.uint8)
        for what, call, direct in (
            (
                "Index.get_indexer",
                lambda: index.get_indexer(x),
                lambda: index._table.find_rows(place, column, rows),
            ),
            ("Map.find", lambda: table.find(x), lambda: table._table.find(place, column, zero, rows)),
            ("isin", lambda: roost.isin(x, x), lambda: module.isin(place, column, column, found)),
            (
                "unique",
                lambda: roost.unique(x),
                lambda: module.unique(place, column, False, False, False, False, True, None, None),
            ),
        ):
            whole, inner = best(call), best(direct)
            print(f"| {what}, {name} | {whole:.1f} | {inner:.1f} | {whole - inner:.1f} |", flush=True)


def main(sizes, dtypes, copies, keys, repeats, csv_file=None):
    with open(csv_file or os.devnull, "w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["table", "key_bits", "op", "n", "best_ms", "gops", "check", "copies"])  # like `roost bench`
        return _measure(sizes, dtypes, copies, keys, repeats, write)


def _measure(sizes, dtypes, copies, keys, repeats, write):
    bad = 0
    name = torch.cuda.get_device_name()
    versions = f"torch {torch.__version__}" + (f", CuPy {cupy.__version__}" if cupy else "")
    if pylibcudf:
        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())
        versions += f", pylibcudf {libcudf.__version__}"
    print(f"{name}, roost {roost.__version__}, {versions}; {keys} keys\n")
    for rows in sizes:
        columns = [f"{d}, {c} copies" for d in dtypes for c in copies]
        small = rows < 1 << 20
        unit = "microseconds a call" if small else "billions of rows a second"
        print(f"{rows} rows: {unit}\n\n| operation | library | {' | '.join(columns)} |")
        print("|---|---|" + "---|" * len(columns))
        cells = {}
        for dtype in dtypes:
            for c in copies:
                for operation, functions, right in _operations(rows, c, getattr(torch, dtype), keys):
                    for library, function in functions.items():
                        result, seconds = _best(function, max(repeats, 100) if small else repeats)
                        ok = right(result)
                        bad += not ok
                        del result
                        rates = f"{seconds * 1e3:.6g}", f"{rows / seconds / 1e9:.6g}"
                        write([library, dtype[3:], operation, rows, *rates, "ok" if ok else "WRONG", c])
                        figure = f"{seconds * 1e6:.0f}" if small else f"{rows / seconds / 1e9:.2f}"
                        cells.setdefault((operation, library), []).append(
                            figure + ("" if ok else " (another answer!)")
                        )
                torch.cuda.empty_cache()
                if cupy:
                    cupy.get_default_memory_pool().free_all_blocks()
        for (operation, library), rates in cells.items():
            print(f"| {operation} | {library} | {' | '.join(rates)} |", flush=True)
        print()
    print("| ten keys: microseconds a call | Python | C++ alone | difference |\n|---|---|---|---|")
    _overhead()
    return 1 if bad else 0
