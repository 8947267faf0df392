"""Random arrays through every function and table of roost, against numpy, pandas and dicts.

    python -m differential --seconds 600 --seed 7
    python -m differential --seed 7 --step 1234        # one step again

A step is one operation (`--only` takes part of a name) with a random generator of its own, which the seed and
the step's number make. Types, layouts, libraries, distributions and sizes are random; sizes lie on both sides
of the thresholds of include/roost/detail/place/tuning.hpp. What is compared is in `codes`: equal keys of all
columns of a step get equal numbers, and the answer follows from the numbers alone.

Queries of another type than a table's keys may be refused, by a TypeError, ValueError or OverflowError of one
line that begins with "roost". A wrong answer never passes.
"""

import argparse
import copy
import datetime
import decimal
import faulthandler
import fractions
import itertools
import math
import pickle
import re
import sys
import tempfile
import time
import traceback

import numpy as np
import pandas as pd
import roost
import roost.sparse
from columns import (
    ATTOSECONDS,
    FLOATS,
    INTEGERS,
    MOST,
    SPELLINGS,
    UNITS,
    Column,
    Known,
    Source,
    Wrong,
    codes,
    cupy,
    draw_codes,
    draw_size,
    exact,
    exact_list,
    expect,
    families,
    listed,
    mix,
    pa,
    pick,
    pl,
    said,
    same_value,
    torch,
)
from test_merge_asof import row_of
from test_values import OF_KIND, SUMMED, VALUES, expected, plain, running, same, wrapped
from test_values import SPELLINGS as VALUE_SPELLINGS


class World:
    """Where a run goes: its random numbers, and what its arrays may be."""

    def __init__(self, rng, device, limit):
        self.rng, self.device, self.limit = rng, device, limit
        self.families, self.now = families(device), ""

    def doing(self, text):
        self.now = text[:500]

    def most(self, type):
        """How many rows of a type a column may have: the oracle takes a second or two for them."""
        return min(self.limit, 200_000 if type in ("text", "bytes") or type[0] in "SVr" else MOST)

    def give(self, truth, home=None):
        """A column in a random form. `home`: a column whose device, on a GPU whose library, it must have."""
        forms = SPELLINGS[self.device]
        if self.device != "cpu" and home is not None:
            forms = [form for form in forms if form[1] == home.library]
        for i in self.rng.permutation(len(forms)):
            name, library, make = forms[i]
            given = make(truth, self.rng)
            if given is not None:
                return Column(truth, given, name, library)
        raise ValueError(f"no form of {truth.dtype}")

    def like(self, column, truth):
        """A column of the same library, so that types go together: lists have other ones."""
        name, library, make = next(s for s in SPELLINGS[self.device] if s[0] == column.form)
        given = make(truth, self.rng)
        return self.give(truth, column) if given is None else Column(truth, given, name, library)

    def type(self, *, single=False):
        """A type of keys; `single`: of at most 8 bytes, and no rows or texts."""
        while True:
            type = pick(self.rng, pick(self.rng, self.families))
            if not single or (
                " " not in type and type not in ("text", "bytes") and np.dtype(type).itemsize <= 8
            ):
                return type

    def other_type(self):
        return pick(self.rng, [t for t in OTHERS if self.device == "cpu" or np.dtype(t).kind in "biuf"])


def back(result, home=None, what="result"):
    """A result as numpy's, which must be of the library that an argument was of."""
    if isinstance(result, tuple):
        return tuple(back(r, home, what) for r in result)
    library = type(result).__module__.split(".")[0].removesuffix("lib")
    if home is not None and home.library != "list":  # lists go where a table is
        mine = {home.library} if home.library in _ARRAYS - {"numpy"} else _COLUMNS
        expect(f"library of {what}, {library}", library in mine, True)
    if library == "torch":
        return result.detach().cpu().numpy()
    if library in _COLUMNS - {"numpy"}:
        try:
            return roost.from_arrow(result)
        except ValueError:  # with nulls, such as a NaT of numpy
            pass
    return cupy.asnumpy(result) if library == "cupy" else np.asarray(result)


_ARRAYS = {"numpy", "torch", "cupy", "jax"}
_COLUMNS = {"numpy", "pandas", "polars", "pyarrow"}  # of any: keys and values may be of two


def masked(result):
    """A result, perhaps a column of Arrow, as a masked array."""
    if not hasattr(result, "to_pylist"):
        return result
    there = np.asarray(result.is_valid())
    return np.ma.MaskedArray(np.asarray(result.fill_null(pa.scalar(0).cast(result.type))), ~there)


def same_type(what, got, column):
    """Whether results have the type of an argument that has one."""
    if column.form.startswith(("numpy", "torch", "cupy", "jax")) and column.truth.dtype.kind != "O":
        expect(f"type of {what}", got.dtype, column.truth.dtype)


def refused(error):
    """Whether an error is one of roost's."""
    kinds = TypeError, ValueError, OverflowError
    text = said(error.args[0], str) if error.args else ""
    return isinstance(error, kinds) and text.startswith("roost") and "\n" not in text


def attempt(what, call):
    """The answer of a call; None if roost refuses it in one line of its own."""
    try:
        return call()
    except Exception as error:
        if refused(error):
            return type(error)
        raise Wrong(f"{what}: {type(error).__name__}: {said(error, str)[:300]!r}") from error


def is_refusal(answer):
    return isinstance(answer, type) and issubclass(answer, Exception)


# Operations: columns of one type, all answers compared.

OPERATIONS = {}


def operation(weight):
    def enrol(function):
        OPERATIONS[function.__name__] = function, weight
        return function

    return enrol


def ascending(keys):
    """Whether keys ascend, NaN and NaT last; none twice."""
    if keys.ndim == 2 or keys.dtype.kind in "OTV":
        rows = keys.tolist() if keys.dtype.kind != "V" else [v.tobytes() for v in keys]
        return all(a < b for a, b in itertools.pairwise(rows))
    if keys.dtype.kind in "fmM":
        keys = keys[keys == keys] if (keys[:-1] == keys[:-1]).all() else keys[:0]
    return bool((keys[1:] > keys[:-1]).all())


@operation(10)
def functions(w):
    """unique, factorize, value_counts, duplicated and partition of one column."""
    rng = w.rng
    type = w.type()
    source = Source(rng, type)
    x = w.give(source(draw_codes(rng, draw_size(rng, w.most(type)))))
    (numbers,) = codes(x.truth)
    known = Known(numbers)
    for use in rng.permutation(["unique", "unique", "factorize", "value_counts", "duplicated", "partition"]):
        w.doing(f"{use}({x})")
        index_dtype = pick(rng, ["int64", "int32", np.int32])
        if use == "unique":
            options = {
                name: bool(rng.integers(2)) for name in ("return_index", "return_inverse", "return_counts")
            }
            in_order = bool(rng.integers(3) == 0)
            got = roost.unique(x.given, sorted=in_order, **options, index_dtype=index_dtype)
            got = list(back(got if isinstance(got, tuple) else (got,), x))
            keys = got.pop(0)
            same_type("keys", keys, x)
            _, of = codes(x.truth, keys)
            expect("distinct keys", np.sort(of), np.arange(known.n))
            if in_order and not ascending(keys):
                raise Wrong("sorted keys do not ascend")
            if options["return_index"]:
                if not in_order:
                    expect("order of first occurrence", of, np.arange(known.n))
                expect("index", got.pop(0), known.first[of])
            if options["return_inverse"]:
                expect("inverse", of[got.pop(0)], numbers)
            if options["return_counts"]:
                expect("counts", got.pop(0), known.counts[of])
        elif use == "factorize":
            sentinel = bool(rng.integers(2))
            got, uniques = back(
                roost.factorize(x.given, use_na_sentinel=sentinel, index_dtype=index_dtype), x
            )
            missing = x.truth != x.truth if x.truth.dtype.kind in "fmM" else np.zeros(len(x.truth), bool)
            if not sentinel:
                missing[:] = False
            expect("codes of NaN", np.flatnonzero(got == -1), np.flatnonzero(missing))
            wanted, of = codes(x.truth[~missing], uniques)
            expect("codes", got[~missing], wanted)
            expect("uniques", of, np.arange(wanted.max(initial=-1) + 1))
        elif use == "value_counts":
            by_count = bool(rng.integers(2))
            shares = bool(rng.integers(2))
            keys, counts = back(roost.value_counts(x.given, sort=by_count, normalize=shares), x)
            same_type("keys", keys, x)
            order = np.argsort(-known.counts, kind="stable") if by_count else np.arange(known.n)
            expect(
                "counts",
                counts,
                known.counts[order] / max(len(numbers), 1) if shares else known.counts[order],
            )
            expect("keys", codes(x.truth, keys)[1], order)
            expect("nunique", roost.nunique(x.given), known.n)
        elif use == "duplicated":
            keep = pick(rng, ["first", "last", False])
            wanted = known.counts[numbers] > 1
            if keep:
                last = known.order[known.begins[1:] - 1] if known.n else known.first
                wanted[known.first if keep == "first" else last] = False
            expect("duplicated", back(roost.duplicated(x.given, keep=keep), x), wanted)
            if x.library in ("numpy", "torch", "cupy", "jax"):
                found = back(roost.drop_duplicates(x.given, keep=keep), x).astype(x.truth.dtype)
                expect("drop_duplicates", codes(x.truth, found)[1], numbers[~wanted])
        elif type not in ("text", "bytes"):
            parts = int(pick(rng, [1, 2, 3, 7, 64, 1000, 1024, 1025, 65536, int(rng.integers(1, 65537))]))
            seed = int(rng.integers(2**62))
            rows, offsets = back(roost.partition(x.given, parts, seed=seed, index_dtype=index_dtype), x)
            expect("rows of parts", np.sort(rows), np.arange(len(numbers)))
            part = np.repeat(np.arange(parts), np.diff(offsets))
            expect(
                "ascending in each part", (np.diff(rows.astype("i8"))[np.diff(part) == 0] > 0).all(), np.True_
            )
            of_key = np.empty(known.n, np.int64)
            of_key[numbers[rows]] = part
            expect("one part of each key", of_key[numbers[rows]], part)
            again = w.give(x.truth[::-1][: min(1000, len(numbers))], x)
            if again.library == x.library and x.library != "list":
                rows, offsets = back(roost.partition(again.given, parts, seed=seed), again)
                other = codes(x.truth, again.truth)[1][rows]
                expect(
                    "parts of another column", np.repeat(np.arange(parts), np.diff(offsets)), of_key[other]
                )


@operation(12)
def groups(w):
    """One GroupBy: everything that it can do, in any order, for values of any types."""
    rng = w.rng
    type = w.type()
    n = draw_size(rng, w.most(type))
    keys = w.give(Source(rng, type)(draw_codes(rng, n)))
    (numbers,) = codes(keys.truth)
    known = Known(numbers)
    w.doing(f"group_by({keys})")
    groups = roost.group_by(keys.given)
    of = None
    for _ in range(int(rng.integers(1, 7 if n > 100000 else 12))):
        use = pick(rng, "keys len count sum mean min max first several".split())
        w.doing(f"group_by({keys}).{use}")
        if use == "len":
            expect("len", len(groups), known.n)
        elif use == "count":
            count = back(groups.count(), keys)
            of = _group_keys(groups, keys, known) if of is None else of
            expect("count", count, known.counts[of])
        elif use == "keys":
            of = _group_keys(groups, keys, known)
        else:
            how = pick(rng, ["sum", "min", "max", "mean"]) if use == "several" else use
            columns = [_group_values(w, how, n, keys) for _ in range(1 + 2 * (use == "several"))]
            w.doing(f"group_by({keys}).{how}({', '.join(map(str, columns))})")
            got = getattr(groups, how)(*(c.given for c in columns))
            got = back(got if use == "several" else (got,), keys if how != "first" else None)
            of = _group_keys(groups, keys, known) if of is None else of
            for column, result in zip(columns, got):
                _check_reduction(how, column, result, known, of)


def _group_keys(groups, keys, known):
    got = back(groups.keys, keys)
    same_type("keys", got, keys)
    of = codes(keys.truth, got)[1]
    expect("distinct keys", np.sort(of), np.arange(known.n))
    return of


def _group_values(w, how, n, keys):
    type = pick(w.rng, [*INTEGERS, *FLOATS, "?"])
    if how == "first" and w.rng.integers(2):
        return w.give(_records(w, n), keys)
    source = Source(w.rng, type)
    values = source(draw_codes(w.rng, n))
    if type in FLOATS and how in ("sum", "mean"):  # so that no order of additions overflows
        values = (values.astype("f8") % 4).astype(type) if w.rng.integers(2) else values % np.array(4, type)
    return w.give(values, keys)


def _check_reduction(how, column, got, known, of):
    values = column.truth
    kind = values.dtype.kind
    if how == "first":
        if got.dtype.kind != values.dtype.kind or got.dtype.itemsize != values.dtype.itemsize:
            return same_type("first", got, column)
        got = got.astype(values.dtype)
        same = expect if values.dtype.kind in "biufmM" else lambda what, a, b: expect(what, raw(a), raw(b))
        return same("first", got, values[known.first[of]])
    if how in ("min", "max"):
        same_type(how, got, column)
        reduce = np.minimum if how == "min" else np.maximum
        values = values.view("u1") if kind == "b" else values
    else:
        wide = {"b": "i8", "i": "i8", "u": "u8"}.get(kind, "f8")
        reduce, values = np.add, values.astype(wide if how == "sum" else "f8")
    with np.errstate(all="ignore"):
        ordered = values[known.order]
        wanted = reduce.reduceat(ordered, known.begins[:-1]) if known.n else ordered
        if how in ("min", "max") or (how == "sum" and kind in "biu"):
            if how == "sum" and column.library != "list":
                expect("type of sums", got.dtype, wanted.dtype)
            return expect(how, got.astype(wanted.dtype), wanted[of])
        size = np.add.reduceat(np.abs(ordered), known.begins[:-1]) if known.n else ordered
        if how == "mean":
            wanted, size = wanted / known.counts, size / known.counts
            expect("type of means", got.dtype, np.dtype("f8"))
        else:
            same_type("sum", got, column)
        eps = np.finfo(got.dtype).eps * (2.0 + np.log2(known.counts + 1) * 4)
        error = np.abs(got.astype("f8") - wanted[of])
        good = (error <= (eps * size)[of] + np.finfo(got.dtype).tiny) | (got == wanted[of].astype(got.dtype))
        expect(how, good | (np.isnan(got) & np.isnan(wanted[of])), np.ones(len(got), bool))


def raw(array, dtype=None):
    """The bytes of each row of an array. Any NaN is one: other libraries and GPUs make others of them.
    `dtype`: what a column has in another unit, or as objects: bytes have any length there."""
    array = np.ascontiguousarray(
        array if dtype is None or array.dtype.kind not in "mMO" else array.astype(dtype)
    )
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.reshape(-1).view(np.uint8).reshape(len(array), -1) if array.size else np.empty((0, 0))


def _records(w, n):
    """n values of any fixed-size type and shape."""
    rng = w.rng
    type = pick(rng, [*INTEGERS, *FLOATS, "?", *([] if w.device != "cpu" else ["M8[us]", "m8[s]", "c16"])])
    type = pick(rng, ["S5", "V3", "S16", "V33"]) if w.device == "cpu" and rng.integers(8) == 0 else type
    tail = pick(rng, [(), (), (), (2,), (3,), (2, 2), (7,), (33,)])
    size = np.dtype(type).itemsize * math.prod(tail)
    data = mix(np.arange(max(1, -(-n * size // 8))), int(rng.integers(2**62))).view(np.uint8)[: n * size]
    if type == "?":
        data = data & 1
    return data.view(type).reshape(n, *tail)


def _other_type(w, type):
    """A type that holds each value of another one, often the same."""
    if type not in INTEGERS + FLOATS or w.rng.integers(2):
        return type
    wider = [t for t in INTEGERS + FLOATS if np.can_cast(type, t, "safe")]
    return pick(w.rng, [t for t in wider if not (t == "f8" and type in ("i8", "u8"))])


# Frames: keys of several columns with nulls, and everything that comes of groups.

_OF_GROUPS = {  # pandas' arguments, for null where there is no value
    "sum": {"min_count": 1},
    "product": {"min_count": 1},
    "min": {},
    "max": {},
    "mean": {},
    "var": {},
    "std": {},
    "median": {},
    "nunique": {},
    "count": {},
}
_OF_FRAMES = ["i1", "i4", "i8", "u4", "u8", "f4", "f8", "?", "text", "text", "M8[us]"]


def _row_numbers(columns, nulls_equal=True):
    """For columns of (numbers, which are null): a number for each row, equal where rows are."""
    ids, some = np.zeros(len(columns[0][0]), np.int64), np.zeros(len(columns[0][0]), bool)
    for numbers, missing in columns:
        part = np.where(missing, 0, numbers + 1)
        ids = pd.factorize(ids * (part.max(initial=0) + 1) + part)[0].astype(np.int64)
        some |= missing
    return ids if nulls_equal else np.where(some, -1, ids)


def _of_arrow(truth):
    """Values that columns of Arrow have: UTF-8, and no NaT."""
    if truth.dtype.kind == "M":
        return np.where(np.isnat(truth), np.datetime64(7, "us"), truth)
    if truth.dtype.kind not in "OUT":
        return truth
    made = np.empty(len(truth), object)
    made[:] = [str(text).encode("utf-8", "replace").decode() for text in truth.tolist()]
    return made


def _frames(w, sizes):
    """Frames of the same random columns, with nulls, and for each its columns as (numbers, nulls)."""
    rng, tables, known = w.rng, [{} for _ in sizes], [[] for _ in sizes]
    for i in range(int(rng.integers(1, 5))):
        source = Source(rng, pick(rng, _OF_FRAMES))
        part = float(pick(rng, [0, 0, 0.05, 0.5, 1]))
        first = [0, int(pick(rng, [0, 0, sizes[0] // 3]))]
        truths = [_of_arrow(source(draw_codes(rng, n, start))) for n, start in zip(sizes, first)]
        for table, of, truth, numbers in zip(tables, known, truths, codes(*truths)):
            missing = rng.random(len(truth)) < part
            values = truth.tolist() if source.type == "text" else truth
            column = pa.array(values, mask=missing, from_pandas=False)
            cut = int(rng.integers(0, len(truth) + 1))
            pieces = [column.slice(0, cut), column.slice(cut)] if rng.integers(2) else [column]
            table[f"c{i}"] = pa.chunked_array(pieces, column.type)
            of.append((numbers, missing))
    form = pick(rng, ["arrow", *(["polars"] if pl else []), "pandas", "tuple", "device"])
    return [_in_form(form, pa.table(table)) for table in tables], known, form


class _OnDevice:
    """A table that has no other interface of Arrow than that of devices."""

    def __init__(self, table):
        self.batch = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        return self.batch[0].__arrow_c_device_array__()


def _in_form(form, table):
    if form == "device":
        return _OnDevice(table)
    if form == "polars":
        return pl.from_arrow(table)
    if form == "pandas":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    return tuple(table.columns) if form == "tuple" else table


def _measure(w, n):
    """Numbers, which of them are null, and both as a column."""
    rng = w.rng
    type = pick(rng, ["i1", "i2", "i4", "u1", "u4", "f4", "f8", "i8"])
    values = Source(rng, type)(draw_codes(rng, n))
    if type in FLOATS or type == "i8":  # so that float64 holds all that comes of them closely
        values = (mix(np.arange(n), int(rng.integers(2**62))) % 2000).astype(type) - np.array(1000, type)
    missing = rng.random(n) < float(pick(rng, [0, 0, 0.1, 1]))
    given = pick(rng, [np.ma.MaskedArray(values, missing), pa.array(values, mask=missing)])
    return values, missing, given if missing.any() else pick(rng, [values, given])


def _of_measure(how, values, numbers, n):
    """What pandas makes of the values of each number below n, as float64; NaN for null."""
    exact = values.astype("f8") if values.dtype.kind == "f" or how in ("mean", "var", "std") else values
    by = pd.Series(exact).groupby(numbers)
    with np.errstate(all="ignore"):
        got = getattr(by, "prod" if how == "product" else how)(**_OF_GROUPS[how])
    return got.reindex(range(n), fill_value=0 if how in ("nunique", "count") else np.nan)


@operation(8)
def frames(w):
    """Groups and their aggregates, unique and joins of frames with nulls."""
    rng = w.rng
    if w.device != "cpu":
        return
    n, m = draw_size(rng, w.most("text")), draw_size(rng, w.most("text"))
    (x, y), known, form = _frames(w, [n, m])
    numbers = _row_numbers(known[0])
    of = Known(numbers)
    w.doing(f"unique of {form}, {n} rows, {len(known[0])} columns")
    keys, index, inverse, counts = roost.unique(x, return_index=True, return_inverse=True, return_counts=True)
    expect("index", index, of.first)
    expect("inverse", back(inverse), numbers)
    expect("counts", back(counts), of.counts)
    expect(
        "duplicated",
        back(roost.duplicated(x)),
        np.bincount(of.first, minlength=n) == 0 if n else np.zeros(0, bool),
    )
    groups = roost.group_by(x)
    first = groups.first(np.arange(n))
    expect("groups", np.sort(numbers[first]), np.arange(of.n))
    rows = roost.join(keys, groups.keys, nulls_equal=True)
    expect("keys of groups", numbers[first][rows[1]], rows[0])
    order = np.argsort(numbers[first])
    for _ in range(int(rng.integers(1, 7))):
        _one_aggregate(w, groups, numbers, of.n, order)
    _join_of_frames(w, x, y, known, bool(rng.integers(2)))


def _one_aggregate(w, groups, numbers, n, order):
    rng = w.rng
    how = pick(rng, [*_OF_GROUPS, "any", "all", "quantile", "nlargest", "nsmallest", "last"])
    values, missing, given = _measure(w, len(numbers))
    w.doing(f"{w.now.split('.')[0]}.{how}({values.dtype}, {int(missing.sum())} nulls of {len(values)})")
    there, ids = values[~missing], numbers[~missing]
    counts = np.bincount(ids, minlength=n)
    if how in ("nlargest", "nsmallest"):
        most = int(rng.integers(0, 4))
        got, ends = getattr(groups, how)(given, most)
        got = np.asarray(got)
        by = np.lexsort((-there.astype("f8") if how == "nlargest" else there, ids))
        place = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
        wanted = there[by][place < most]
        sizes = np.minimum(counts, most)
        expect("numbers of values", np.diff(ends)[order], sizes)
        begins = ends[:-1][order]
        picked = np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        return expect(how, got[picked], wanted)
    if how == "last":
        got = masked(groups.last(given))
        last = np.zeros(n, np.int64)
        last[numbers] = np.arange(len(numbers))
        expect("last nulls", np.ma.getmaskarray(got)[order], missing[last])
        return expect(how, np.ma.getdata(got)[order][~missing[last]], values[last][~missing[last]])
    if how == "quantile":
        q = float(pick(rng, [0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1]))
        got, wanted = groups.quantile(given, q=q), pd.Series(there.astype("f8")).groupby(ids).quantile(q)
        wanted = wanted.reindex(range(n))
    elif how in ("any", "all"):
        got, wanted = getattr(groups, how)(given), getattr(pd.Series(there != 0).groupby(ids), how)()
        wanted = wanted.reindex(range(n)).astype("float64")
    else:
        got, wanted = getattr(groups, how)(given), _of_measure(how, there, ids, n)
    got = masked(got)
    if how not in ("count", "nunique", "var", "std"):
        expect(f"nulls of {how}", np.ma.getmaskarray(got)[order], counts == 0)
    data = np.ma.getdata(got)[order]
    if how in ("sum", "product", "min", "max") and there.dtype.kind in "iu":
        kept = counts > 0
        if how == "product":  # which wraps around, as numpy's does
            wide = there.astype("u8" if there.dtype.kind == "u" else "i8")
            ordered = wide[np.argsort(ids, kind="stable")]
            begins = (np.cumsum(counts) - counts)[kept]
            wanted = np.multiply.reduceat(ordered, begins) if len(begins) else ordered
            return expect(how, data[kept].astype(wanted.dtype), wanted)
        return expect(how, data[kept].astype("f8"), wanted.to_numpy("f8")[kept])
    wanted = wanted.to_numpy("f8", na_value=np.nan)
    data = np.where(np.ma.getmaskarray(got)[order], np.nan, data.astype("f8"))
    size = np.abs(there.astype("f8")).max(initial=0) ** (2 if how in ("var", "std") else 1)
    exact = 1e-4 if values.dtype == np.float32 else 1e-9
    close = np.isclose(data, wanted, rtol=exact, atol=1e-9 * size, equal_nan=True)
    if how == "product":
        close |= ~(np.abs(wanted) < 1e30) | np.isnan(data)  # 0 * inf depends on what is multiplied first
    expect(how, close, np.ones(n, bool))


def _join_of_frames(w, x, y, known, nulls_equal):
    both = [tuple(np.concatenate(part) for part in zip(*columns)) for columns in zip(*known)]
    ids = _row_numbers(both, nulls_equal)
    a, b = ids[: len(known[0][0][0])], ids[len(known[0][0][0]) :]
    how = str(pick(w.rng, ["inner", "left", "semi", "anti", "right", "outer"]))
    w.doing(f"join of frames, {len(a)} and {len(b)} rows, {how}, nulls_equal={nulls_equal}")
    left = pd.DataFrame({"k": np.where(a < 0, -1 - np.arange(len(a)), a), "l": np.arange(len(a))})
    right = pd.DataFrame({"k": np.where(b < 0, -1 - len(a) - np.arange(len(b)), b), "r": np.arange(len(b))})
    there = left.k.isin(right.k).to_numpy()
    expect("isin", back(roost.isin(x, y, nulls_equal=nulls_equal)), there)
    if how in ("semi", "anti"):
        return expect(
            how, roost.join(x, y, how, nulls_equal=nulls_equal), np.flatnonzero(there == (how == "semi"))
        )
    if (np.bincount(a[a >= 0], minlength=len(ids)) * np.bincount(b[b >= 0], minlength=len(ids))).sum() > MOST:
        return None
    wanted = left.merge(right, on="k", how=how)[["l", "r"]].fillna(-1).astype("int64")
    got = pd.DataFrame(dict(zip("lr", roost.join(x, y, how, nulls_equal=nulls_equal))))
    by = ["r", "l"] if how == "right" else ["l", "r"]
    if how == "outer":  # rows of the right side alone come last
        wanted = wanted.assign(last=wanted.l < 0)
        by = ["last", "l", "r"]
    wanted = wanted.sort_values(by)[["l", "r"]].reset_index(drop=True)
    for name in "lr":
        expect(f"{how}: {name}", got[name].to_numpy("i8"), wanted[name].to_numpy())
    return None


@operation(10)
def pairs(w):
    """isin and join of two columns with keys in common."""
    rng = w.rng
    type = w.type()
    source = Source(rng, type)
    n, m = draw_size(rng, w.most(type)), draw_size(rng, w.most(type))
    x = w.give(source(draw_codes(rng, n)))
    truth = source(draw_codes(rng, m, int(pick(rng, [0, 0, n // 3]))))
    y = w.give(truth.astype(_other_type(w, type)) if type in INTEGERS + FLOATS else truth, x)
    if rng.integers(2):
        x, y = y, x
    a, b = codes(x.truth, y.truth)
    w.doing(f"isin({x}, {y})")
    there = np.isin(a, b)
    expect("isin", back(roost.isin(x.given, y.given), x), there)
    if rng.integers(3) == 0:
        expect("isin, inverted", back(roost.isin(x.given, y.given, invert=True), x), ~there)
    known = Known(np.append(b, np.arange(max(a.max(initial=-1), b.max(initial=-1)) + 1)))  # numbers of both
    known.counts -= 1
    known.order = np.argsort(b, kind="stable")
    known.begins = np.concatenate([[0], np.cumsum(known.counts)]).astype(np.int64)
    begins, rows = known.matches(a) if known.counts[a].sum() < 8 * MOST else (None, None)
    for how in rng.permutation(["inner", "left", "right", "outer", "semi", "anti"])[:2]:
        w.doing(f"join({x}, {y}, {how!r})")
        if how in ("semi", "anti"):
            got = back(roost.join(x.given, y.given, str(how)), x)
            expect("rows", got.astype("i8"), np.flatnonzero(there == (how == "semi")))
        elif begins is not None:
            got = back(roost.join(x.given, y.given, str(how), index_dtype=pick(rng, ["int64", "int32"])), x)
            counts = np.diff(begins)
            left, right = np.repeat(np.arange(len(a)), counts), rows
            matched = np.bincount(right, minlength=len(b))
            if how in ("left", "outer"):
                left = np.repeat(np.arange(len(a)), np.maximum(counts, 1))
                right = np.full(len(left), -1)
                right[np.repeat(counts > 0, np.maximum(counts, 1))] = rows
            if how in ("right", "outer"):
                rest = np.flatnonzero(matched == 0)
                left, right = np.append(left, np.full(len(rest), -1)), np.append(right, rest)
            if how == "right":
                order = np.lexsort((left, right))
                left, right = left[order], right[order]
            expect("left rows", got[0].astype("i8"), left)
            expect("right rows", got[1].astype("i8"), right)


def _asked(w, keys, source, n):
    """Queries of a table, of its type or one whose values that type holds, and the numbers of their keys."""
    truth = source(draw_codes(w.rng, n, int(pick(w.rng, [0, 0, 0, len(keys.truth) // 2]))))
    if source.type in INTEGERS and w.rng.integers(3) == 0:
        for type in w.rng.permutation(INTEGERS):
            if (
                np.can_cast(type, source.type, "safe")
                and (truth.astype(type).astype(source.type) == truth).all()
            ):
                truth = truth.astype(type)
                break
    asked = w.give(truth, keys if w.rng.integers(3) else None)
    return asked, codes(keys.truth, asked.truth)[1]


@operation(12)
def tables(w):
    """Index, Set, Map, MultiMap: one table used in many ways."""
    rng = w.rng
    type = w.type()
    source = Source(rng, type)
    n = draw_size(rng, w.most(type))
    keys = w.give(source(draw_codes(rng, n)))
    (numbers,) = codes(keys.truth)
    known = Known(numbers)
    name = "Index" if type in ("text", "bytes") else pick(rng, ["Index", "Set", "Map", "MultiMap"])
    values = None
    if name in ("Map", "MultiMap"):
        values = _records(w, n)
        while keys.library in ("torch", "jax") and values.dtype.kind in "mMSV":
            values = _records(w, n)
        values = w.give(values, keys)
        if values.library == "list":  # whose type numpy chooses
            values = Column(values.truth, values.truth, "numpy", "numpy")
    w.doing(f"{name}({keys}{f', {values}' if values else ''})")
    table = getattr(roost, name)(keys.given, *([values.given] if values else []))
    uses = ["contains", "contains", "find", "find", "in", "len", "keys", "pickle", "valid"]
    for _ in range(int(rng.integers(2, 8))):
        use = pick(rng, uses)
        asked, of = _asked(w, keys, source, draw_size(rng, w.most(type)))
        w.doing(f"{name}({keys}{f', {values}' if values else ''}): {use} {asked}")
        if keys.library == "list" and is_refusal(attempt(use, lambda: table.contains(asked.given))):
            continue  # numpy chose another type for the keys
        if (
            use == "find"
            and values
            and values.truth.dtype.kind in "mMSV"
            and asked.library in ("torch", "jax")
        ):
            attempt("find of what a library has not", lambda: table.find(asked.given))
            continue
        rows = known.rows(of)
        if use == "contains":
            expect("contains", back(table.contains(asked.given), asked), rows >= 0)
        elif use == "in":
            for i in rng.integers(0, len(asked.truth), min(5, len(asked.truth))):
                expect(f"{said(asked.truth[i])} in", asked.truth[i] in table, bool(rows[i] >= 0))
        elif use == "len":
            expect("len", len(table), n if name in ("MultiMap", "Index") else known.n)
            if name == "Index":
                expect("is_unique", table.is_unique, known.n == n)
            if name == "MultiMap":
                expect("key_count", table.key_count, known.n)
        elif use == "valid":
            expect("valid", table.valid(), True)
        elif use == "pickle":
            unsigned = keys.library == "torch" and keys.truth.dtype.kind == "u"  # torch pickles none of these
            kept = [copy.copy, copy.deepcopy, *[lambda t: pickle.loads(pickle.dumps(t))] * (not unsigned)]
            table = pick(rng, kept)(table)
            if name == "MultiMap":
                uses = [
                    u for u in uses if u != "find"
                ]  # values come in order of their keys: find_pairs below
        elif name == "Index":
            if use == "find":
                index_dtype = pick(rng, ["int64", "int32"])
                got = back(table.get_indexer(asked.given, index_dtype=index_dtype), asked)
                expect("type of rows", got.dtype, np.dtype(index_dtype))
                expect("rows", got, rows)
                there = rows[rows >= 0][:3]
                listed = keys.truth[there].tolist() if keys.truth.dtype.kind == "V" else keys.truth[there]
                expect("keys of rows", [exact(table[r]) for r in there], [exact(v) for v in listed])
            elif n < 3000:
                expect("keys", codes(keys.truth, _listed(table, keys.truth))[1], numbers)
        elif name == "Set":
            got = back(table.keys(), keys)
            same_type("keys", got, keys)
            expect("keys", np.sort(codes(keys.truth, got)[1]), np.arange(known.n))
        elif name == "Map":
            _use_map(w, table, known, values.truth, use, asked, of, keys)
        else:
            _use_multimap(w, table, known, values.truth, use, asked, of, keys)


def _listed(table, like):
    """What iterating over a table has, as a column of the same type where Python's values have it."""
    listed = list(table)
    if like.dtype.kind in "OT" or like.ndim == 2 or like.dtype.kind in "biuf":
        result = np.empty((len(listed), *like.shape[1:]), like.dtype)
        result[:] = listed if like.ndim == 1 else np.array(listed, like.dtype).reshape(-1, like.shape[1])
        return result
    return np.array(listed, like.dtype) if len(listed) and isinstance(listed[0], bytes) else like


def _use_map(w, table, known, values, use, asked, of, keys):
    rng = w.rng
    if use == "keys":
        got_keys, got = back(table.items(), keys)
        of = codes(keys.truth, got_keys)[1]
        expect("keys", np.sort(of), np.arange(known.n))
        return expect("values", raw(got, values.dtype), raw(values[known.first[of]]))
    rows = known.rows(of)
    missing = np.zeros((), values.dtype) if values.ndim == 1 or len(values) == 0 else np.zeros_like(values[0])
    options = {}
    if rng.integers(2) and values.dtype.kind not in "SV":
        missing = _records_like(w, values)
        options["missing"] = missing.item() if missing.ndim == 0 and missing.dtype.kind in "biu" else missing
    got = back(table.find(asked.given, **options), asked)
    wanted = np.empty((len(rows), *values.shape[1:]), values.dtype)
    wanted[:] = missing
    wanted[rows >= 0] = values[rows[rows >= 0]]
    if got.dtype.kind not in "mMO":
        expect("type of values", got.dtype, values.dtype)
    expect("values", raw(got, values.dtype), raw(wanted))
    for i in rng.integers(0, len(rows), min(3, len(rows))):
        if asked.truth.ndim == 1 and asked.truth.dtype == keys.truth.dtype:
            one = table.get(asked.truth[i], None)
            if rows[i] < 0:
                expect(f"get({said(asked.truth[i])})", one is None, True)
            elif values.ndim == 1 and values.dtype.kind in "biu":
                expect(f"get({said(asked.truth[i])})", one, values[rows[i]].item())


def _records_like(w, values):
    """A value of the same type and shape."""
    data = mix(np.arange(99), int(w.rng.integers(2**62))).view(np.uint8)
    data = data & 1 if values.dtype.kind == "b" else data
    size = math.prod(values.shape[1:])
    return data[: size * values.dtype.itemsize].view(values.dtype).reshape(values.shape[1:])[()]


def _use_multimap(w, table, known, values, use, asked, of, keys):
    if use == "keys":
        got_keys, got = back(table.items(), keys)
        of = codes(keys.truth, got_keys)[1]
        expect("numbers of keys", np.bincount(of, minlength=known.n), known.counts)
        expect("keys side by side", int((np.diff(of) != 0).sum()) + 1 if len(of) else 0, known.n)
        rows = known.matches(of[np.flatnonzero(np.diff(of, prepend=-1))])[1]
        return expect("values", raw(got, values.dtype), raw(values[rows]))
    present = np.where(known.rows(of) >= 0, of, known.n)
    if np.append(known.counts, 0)[present].sum() > 8 * MOST // max(1, values[:1].nbytes // 8):
        return
    begins, rows = known.matches(present)
    expect("count", back(table.count(asked.given), asked), np.diff(begins))
    got_begins, got = back(table.find(asked.given), asked)
    expect("offsets", got_begins, begins)
    expect("values", raw(got, values.dtype), raw(values[rows]))
    if asked.truth.ndim == 1 and asked.truth.dtype == keys.truth.dtype:
        for i in w.rng.permutation(np.flatnonzero(np.diff(begins)))[:3]:
            got = back(table[asked.truth[i]], keys)
            expect(
                f"[{said(asked.truth[i])}]",
                raw(got, values.dtype),
                raw(values[rows[begins[i] : begins[i + 1]]]),
            )
    numbers, got = back(table.find_pairs(asked.given), asked)
    expect("numbers of pairs", numbers, np.repeat(np.arange(len(of)), np.diff(begins)))
    expect("values of pairs", raw(got, values.dtype), raw(values[rows]))


@operation(10)
def changing(w):
    """ConcurrentMap and Store: batches of inserts, sums and erases, against two arrays."""
    rng = w.rng
    name = pick(rng, ["ConcurrentMap", "Store"])
    type = w.type(single=True)
    pool = Source(rng, type)(np.arange(draw_size(rng, w.most(type) // 3)))
    pool = pool[Known(codes(pool)[0]).first]
    d = len(pool)
    value_type = pick(rng, [*INTEGERS, "f4", "f8", "?", *["M8[s]"] * (w.device == "cpu")])
    tail = pick(rng, [(), (), (3,), (64,)]) if name == "Store" and d < 200000 else ()
    home = w.give(pool[:0])
    while home.library not in _ARRAYS or (home.library != "numpy" and value_type[0] == "M"):
        home = w.give(pool[:0])
    options = {"like": home.given, "load_factor": float(pick(rng, [0.3, 0.5, 0.8, 0.8, 0.95, 1.0]))}
    options["capacity"] = int(pick(rng, [0, 0, d // 2, d]))
    table = getattr(roost, name)(type, value_type, *[tail] * (name == "Store"), **options)
    present, value = np.zeros(d, bool), np.zeros((d, *tail), value_type)
    adds = (
        name == "ConcurrentMap" and value_type[0] in "iuf" and (value_type[1] >= "4" or value_type[0] == "u")
    )
    made = Source(rng, "i4")
    for step in range(int(rng.integers(2, 9))):
        use = pick(rng, ["insert", "insert_or_assign", "erase", "set", "reserve"] + ["add"] * 2 * adds)
        use = "clear" if rng.integers(30) == 0 else use
        if d == 0 or use == "clear":
            table.clear()
            present[:] = False
            continue
        batch = np.minimum(draw_codes(rng, draw_size(rng, min(w.most(type), 3 * d + 20))), d - 1)
        keys = w.give(pool[batch], home)
        while keys.library in ("torch", "jax") and value_type[0] == "M":
            keys = w.give(pool[batch], home)
        w.doing(f"{name}({type}, {value_type}, {tail}, {options}): {use} {keys}")
        different = np.unique(batch)
        absent = different[~present[different]]
        of_key = made(np.arange(d) + step * d)
        of_key = (of_key % 4096 if value_type == "f4" else of_key).astype(value_type)
        of_key = np.broadcast_to(of_key.reshape(-1, *[1] * len(tail)), (d, *tail))
        values = w.like(home, np.ascontiguousarray(of_key[batch]))
        if use == "erase":
            if rng.integers(2) or isinstance(keys.given, tuple):  # which in brackets is one key
                expect("erased", table.erase(keys.given), len(different) - len(absent))
                present[batch] = False
            else:
                try:
                    del table[keys.given]
                    present[batch] = False
                except KeyError:
                    expect("keys that are absent", len(absent) > 0, True)
        elif use == "reserve":
            table.reserve(len(batch))
        elif use == "add":
            most = 3 * np.bincount(batch).max(initial=0) + np.abs(value).max(initial=0)
            if value_type == "f4" and most >= 2**24:  # sums depend on the order of additions, which is any
                continue
            small = rng.integers(0, 4, len(batch)).astype(value_type)
            amounts = w.like(home, small).given
            if rng.integers(2):
                small, amounts = np.ones_like(small), 1
            value[absent] = 0
            with np.errstate(all="ignore"):
                np.add.at(value, batch, small)
            expect("added", table.add(keys.given, amounts), len(absent))
            present[batch] = True
        elif use == "insert":
            expect("inserted", table.insert(keys.given, values.given), len(absent))
            value[absent] = of_key[absent]
            present[batch] = True
        else:
            if use == "set":
                table[keys.given] = values.given
            else:
                expect("new", table.insert_or_assign(keys.given, values.given), len(absent))
            value[different] = of_key[different]
            present[batch] = True
        if rng.integers(3) == 0:
            _check_changing(w, table, pool, present, value, home)
    if rng.integers(3) == 0:
        w.doing(f"{name}({type}, {value_type}, {tail}, {options}): kept and read again")
        if name == "Store":
            with tempfile.TemporaryDirectory() as folder:
                table.save(f"{folder}/store")
                table = roost.Store.load(f"{folder}/store", type, value_type, tail, like=home.given)
        else:
            table = copy.deepcopy(table) if home.library == "torch" else pickle.loads(pickle.dumps(table))
    _check_changing(w, table, pool, present, value, home)


def _check_changing(w, table, pool, present, value, home):
    batch = w.rng.permutation(len(pool))
    asked = w.give(pool[batch], home)
    while asked.library in ("torch", "jax") and value.dtype.kind == "M":
        asked = w.give(pool[batch], home)
    expect("len", len(table), int(present.sum()))
    expect("valid", table.valid(), True)
    expect("contains", back(table.contains(asked.given), asked), present[batch])
    wanted = np.where(present.reshape(-1, *[1] * (value.ndim - 1)), value, np.zeros((), value.dtype))
    expect("find", raw(back(table.find(asked.given), asked), value.dtype), raw(wanted[batch]))
    keys, values = back(table.items(), home)
    of = codes(pool, keys)[1]
    expect("keys", np.sort(of), np.flatnonzero(present))
    expect("values", raw(values, value.dtype), raw(value[of]))
    for i in w.rng.integers(0, len(pool), 3 * bool(len(pool))):
        expect(f"{said(pool[i])} in", pool[i] in table, bool(present[i]))


# Operations: values of other types. An answer is right, or it is a refusal.


def wraps_to(count, factor, rng):
    """A 64-bit number that becomes `count` where it is multiplied by `factor` in 64 bits."""
    even = factor & -factor
    if count % even:
        return count // factor
    room = 2**64 // even
    found = count // even * pow(factor // even, -1, room) % room + int(rng.integers(even)) * room
    return (found + 2**63) % 2**64 - 2**63


def near(rng, value):
    """Values that a careless conversion could take for a key."""
    if isinstance(value, (str, bytes)):
        one, nul = (value[:1], "\0") if isinstance(value, str) else (bytes(value[:1]), b"\0")
        other = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value.decode("latin1")
        same = [value, value + nul, value + nul * 2, value[:-1], value + one, value.rstrip(nul), other]
        return [*same, other + other[:0] * 2, 1, 1.0, None, np.str_("1"), value * 2]
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit, step = np.datetime_data(value.dtype)
        count, kind = int(value.view("i8")), type(value)
        after = np.array([min(count + 1, 2**63 - 1)], "i8").view(value.dtype)[0]
        result = [value, count, after, said(value, str), kind("NaT")]
        for other in ("M", *UNITS, "ps", "W"):
            try:
                result.append(value.astype(f"{value.dtype.kind}8[{other}]"))
            except (TypeError, ValueError, OverflowError):
                pass
            if unit in ATTOSECONDS and other in ATTOSECONDS and ATTOSECONDS[other] > ATTOSECONDS[unit] * step:
                factor = ATTOSECONDS[other] // (ATTOSECONDS[unit] * step)
                result.append(np.array(wraps_to(count, factor, rng), f"{value.dtype.kind}8[{other}]")[()])
        result.append(np.array(count, f"{'M' if value.dtype.kind == 'm' else 'm'}8[{unit}]")[()])
        try:
            stamp = pd.Timestamp(value) if kind is np.datetime64 else pd.Timedelta(value)
            result += [stamp, stamp.to_pydatetime() if kind is np.datetime64 else stamp.to_pytimedelta()]
            result += [stamp.to_pydatetime().date(), stamp.tz_localize("UTC")] * (kind is np.datetime64)
        except (ValueError, OverflowError, TypeError, AttributeError):
            pass
        return result
    if isinstance(value, np.void):
        return [value, value.tobytes(), value.tobytes() + b"\0", np.void(value.tobytes() + b"\0")]
    if isinstance(value, np.ndarray):  # a row
        row = value.tolist()
        changed = row[:-1] + [pick(rng, near(rng, value.dtype.type(row[-1])))]
        return [tuple(row), row, value, tuple(row + [0]), tuple(row[:-1]), tuple(changed), changed, row[0]]
    number = value.item()
    result = [number, value]
    if isinstance(number, float):
        result += [float(np.nextafter(value, value.dtype.type(np.inf))), float(np.nextafter(number, np.inf))]
        result += [str(number), decimal.Decimal(number), None, 65520.0, 3.5e38, -1e39, 1e-50, 10**400]
        if not math.isfinite(number):
            return result + [65536.0, 1e39, 1e308, 2**63, -(2**63), 2**64 - 1]
        integer, others = int(number), [number + 0.5, number * (1 + 2**-30), number * (1 + 2**-12)]
        result += [other for other in others if math.isfinite(other)]
    else:
        integer = int(number)
        result += [integer + 0.5, str(integer), str(integer).encode(), fractions.Fraction(2 * integer + 1, 2)]
        result += [decimal.Decimal(integer), complex(integer), math.nan, math.inf, None, not integer]
    shift = int(pick(rng, [8, 16, 32, 64, 64]))
    integers = [integer, integer + 1, integer - 1, -integer, integer + 2**shift, integer - 2**shift]
    integers += [integer * 256, integer ^ 2**31, integer ^ 2**63, 2**64 - 1, 2**63, 2**53 + 1, -1, 0, 1]
    result += integers
    for other in integers:
        for name in ("i8", "u8", "f8", "f4", "f2", "u4", "i1"):
            with np.errstate(all="ignore"):
                made = np.array([other % 2**64], np.uint64).astype(name)[0]
            if name[0] == "f" or made == other:
                result.append(made)
        if abs(other) < 10**300:
            result.append(float(other))
    return result


def as_array(values, type):
    """Those of the values that are values of a type, as an array of it."""
    result = []
    for value in values:
        try:
            with np.errstate(all="ignore"):
                made = np.array([value]).astype(type) if type[0] in "mM" else np.array([value], type)
            if made.shape == (1,) and same_value(made[0], value):
                result.append(made)
        except (TypeError, ValueError, OverflowError):
            pass
    return np.concatenate(result) if result else np.empty(0, type)


OTHERS = [*INTEGERS, *FLOATS, "?", "M8[D]", "M8[ns]", "M8[M]", "m8[s]", "m8[us]", "M8[s]", "S3", "S9", "V4"]


def beside(value, dtype):
    """`exact` of a value beside keys of a type: a float of Python has the precision of these."""
    if type(value) is float and dtype.kind == "f" and dtype.itemsize < 8:
        with np.errstate(all="ignore"):
            nearest = dtype.type(value)
        if np.isinf(nearest) == math.isinf(value) and (nearest == 0) == (value == 0):
            return exact(nearest)
    if isinstance(value, (tuple, list)):
        return ("row", tuple(beside(v, dtype) for v in value))
    generic = isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] == "generic"
    if dtype.kind == "m" and (value is pd.NaT or generic):
        value = value if generic and not np.isnat(value) else np.array("NaT", dtype)[()]
    return exact(value)


def _keys_for_others(w, most):
    rng = w.rng
    type = w.type()
    truth = Source(rng, type)(draw_codes(rng, max(1, draw_size(rng, most))))
    return truth, w.give(truth)


def _queries_near(w, truth):
    rng = w.rng
    chosen = [truth[i] for i in rng.integers(0, len(truth), 6)]
    queries = [q for value in chosen for q in near(rng, value)]
    return [queries[i] for i in rng.permutation(len(queries))]


def _domain_dtype(keys):
    if keys.library == "list" and keys.truth.dtype.kind == "f":  # Python's floats, or numpy's
        return np.asarray(list(keys.given)).dtype
    dtype = getattr(keys.given, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind != "O" else keys.truth.dtype


@operation(14)
def others(w):
    """Arrays and lists of other types against every table, in bulk."""
    rng = w.rng
    truth, keys = _keys_for_others(w, pick(rng, [8, 300, 300, 40000]))
    queries = _queries_near(w, truth)
    if rng.integers(2):
        wide = [q for q in queries if not isinstance(q, (str, bytes, tuple, list))]
        asked = as_array(wide if wide and rng.integers(4) else queries, w.other_type())
        if truth.ndim == 2 and rng.integers(2):
            rows = [q for q in queries if isinstance(q, tuple) and len({np.shape(v) for v in q}) == 1]
            width = pick(rng, [len(q) for q in rows]) if rows else 0
            asked = np.array([q for q in rows if len(q) == width], dtype=object)
            asked = _rows_of_type(asked, pick(rng, [*INTEGERS, "f8"]))
        asked = asked[: int(rng.integers(1, len(asked) + 2))]
        asked = w.give(asked, keys)
        given, values = asked.given, list(asked.truth)
    else:
        values = queries[: int(rng.integers(1, 6))]
        if rng.integers(2):
            values = [q for q in queries if type(q) is type(values[0])][: len(values)]
        given, asked = values, Column(np.empty(len(values), object), values, "list", "list")
    w.doing(f"{keys} asked by {asked.form} of {getattr(given, 'dtype', '')} {said(values[:6])}")
    _check_others(w, keys, given, values)


def _rows_of_type(rows, type):
    result = []
    for row in rows.tolist():
        try:
            made = np.array([row]).astype(type)
            if same_value(made[0], row):
                result.append(made[0])
        except (TypeError, ValueError, OverflowError):
            pass
    return np.array(result, type) if result else np.empty((0, 2), type)


def _rows_known(truth):
    known = {}
    for row, value in enumerate(exact_list(truth)):
        known.setdefault(value, row)
    return known


def _check_others(w, keys, given, values):
    truth = keys.truth
    known = _rows_known(truth)
    dtype = _domain_dtype(keys)
    own = not any(isinstance(v, np.floating) for v in values)  # beside numpy's, Python's floats are float64
    wanted_of = [beside(v, dtype) if own else exact(v) for v in values]
    rows = [known.get(v, -1) for v in wanted_of]
    kinds = {}

    def check(name, call, wanted):
        got = attempt(name, call)
        if is_refusal(got):
            kinds[name] = got.__name__
            return
        kinds[name] = "answer"
        got = back(got)
        if len(got) != len(wanted):
            raise Wrong(f"{name}: {len(got)} answers to {len(wanted)}")
        bad = np.asarray(got) != np.array(wanted)
        if bad.any():
            i = int(np.argmax(bad))
            asked = f"{said(values[i])} ({type(values[i]).__name__})"
            raise Wrong(f"{name}: {asked}: {said(got[i])}, not {said(wanted[i])}")

    there = [row >= 0 for row in rows]
    texts = truth.dtype.kind == "O"
    index = roost.Index(keys.given)
    check("Index.get_indexer", lambda: index.get_indexer(given), rows)
    check("Index.contains", lambda: index.contains(given), there)
    check("isin", lambda: roost.isin(given, keys.given), there)
    if not texts:
        row_numbers = w.like(keys, np.arange(len(truth))).given
        map = roost.Map(keys.given, row_numbers)
        check("Set.contains", lambda: roost.Set(keys.given).contains(given), there)
        check("Map.find", lambda: map.find(given, missing=-1), rows)
        multimap = roost.MultiMap(keys.given, row_numbers)
        counts = np.bincount(codes(truth)[0])[codes(truth)[0]]
        counted = [int(counts[row]) if row >= 0 else 0 for row in rows]
        check("MultiMap.count", lambda: multimap.count(given), counted)
        if truth.ndim == 1 and truth.dtype.itemsize <= 8 and keys.library != "list":
            for name in ("ConcurrentMap", "Store"):
                table = getattr(roost, name)(dtype, "int64", **_like(keys))
                table.insert(keys.given, 7)
                check(f"{name}.contains", lambda: table.contains(given), there)
                before = len(table)
                got = attempt(f"{name}.erase", lambda: table.erase(given))
                if not is_refusal(got):
                    gone = len(set(wanted_of) & set(known))
                    expect(f"{name}.erase of {said(values)}"[:300], (got, len(table)), (gone, before - gone))
    tables = {kind for name, kind in kinds.items() if not name.startswith("isin")}
    # Of bytes that end in NUL, which no numpy array has, Index and isin know that they are not there.
    cut = any(isinstance(value, bytes) and value.endswith(b"\0") for value in values)
    if len(tables) > 1 and len(values) and not cut:
        raise Wrong(f"answers and refusals of one query: {kinds}; {said(values[:5])}"[:500])


def _like(keys):
    return {"like": keys.given} if keys.library in _ARRAYS else {}


@operation(12)
def singles(w):
    """`in`, `get` and `[]`: one value of any type against each table."""
    rng = w.rng
    truth, keys = _keys_for_others(w, 50)
    known = _rows_known(truth)
    dtype = _domain_dtype(keys)
    tables = {"Index": roost.Index(keys.given)}
    if truth.dtype.kind != "O":
        row_numbers = w.like(keys, np.arange(len(truth))).given
        tables |= {"Set": roost.Set(keys.given), "Map": roost.Map(keys.given, row_numbers)}
        if truth.ndim == 1 and truth.dtype.itemsize <= 8:
            for name in ("ConcurrentMap", "Store"):
                tables[name] = getattr(roost, name)(dtype, "int64", **_like(keys))
                firsts = Known(codes(truth)[0]).first
                if keys.library != "list":
                    tables[name].insert(w.like(keys, truth[firsts]).given, w.like(keys, firsts).given)
                else:
                    del tables[name]
    for query in _queries_near(w, truth)[:12]:
        row = known.get(beside(query, dtype), -1)
        for name, table in tables.items():
            w.doing(f"{name} of {keys} {said(truth[:4])}: one {type(query).__name__} {said(query)}")
            got = attempt("in", lambda: query in table)
            if not is_refusal(got):
                expect(f"{said(query)} in", got, row >= 0)
            if not hasattr(table, "get"):
                continue
            got = attempt("get", lambda: table.get(query, "none"))
            if not is_refusal(got):
                expect(f"get({said(query)})", got, row if row >= 0 else "none")
            try:
                got = attempt(f"[{said(query)}]", lambda: _one(table, query))
            except Wrong as error:
                if not (isinstance(error.__cause__, KeyError) and row < 0):
                    raise
            else:
                if not is_refusal(got):
                    expect(f"[{said(query)}]", got, row)


def _one(table, query):
    got = table[query]
    return back(got).reshape(-1)[0].item() if hasattr(got, "shape") else got


@operation(8)
def lists(w):
    """Lists of mixed values as keys and queries."""
    rng = w.rng
    if w.device != "cpu":
        return
    chosen = []
    for _ in range(int(rng.integers(1, 4))):
        truth = Source(rng, w.type())(draw_codes(rng, 4))
        chosen += _queries_near(w, truth)[: int(rng.integers(1, 4))]
    if rng.integers(2):
        chosen = [c for c in chosen if type(c) is type(chosen[0])]
    chosen = [chosen[i] for i in rng.integers(0, len(chosen), int(rng.integers(1, 9)))]
    units = [np.datetime_data(v.dtype)[0] if isinstance(v, np.timedelta64) else "" for v in chosen]
    if {"Y", "M"} & set(units):  # beside months, NaT without a unit is NaT of months
        chosen = [v for v, unit in zip(chosen, units) if unit != "generic"]
    w.doing(f"list {said(chosen)}"[:400])
    form = pick(rng, [list, tuple, lambda v: _objects(v)])(chosen)
    seen = {}
    numbers = np.array([seen.setdefault(exact(v), len(seen)) for v in chosen])
    if any(isinstance(v, (list, tuple, np.ndarray)) for v in chosen) and form is not chosen:
        form = chosen
    got = attempt("factorize", lambda: roost.factorize(form, use_na_sentinel=False))
    if not is_refusal(got):
        expect("factorize", got[0], numbers)
        expect("uniques", [exact(v) for v in got[1]], list(seen))
    got = attempt("unique", lambda: roost.unique(form, return_counts=True))
    if not is_refusal(got):
        counts = dict(zip(map(exact, got[0]), got[1].tolist()))
        expect("unique", counts, {v: int((numbers == i).sum()) for v, i in seen.items()})
    got = attempt("duplicated", lambda: roost.duplicated(form))
    if not is_refusal(got):
        expect("duplicated", got, np.array([n in numbers[:i] for i, n in enumerate(numbers)]))
    got = attempt("Index", lambda: roost.Index(form))
    if not is_refusal(got):
        rows = attempt("get_indexer", lambda: got.get_indexer(form))
        if not is_refusal(rows):
            expect("get_indexer", rows, np.array([numbers.tolist().index(n) for n in numbers]))
    got = attempt("group_by", lambda: roost.group_by(form))
    if not is_refusal(got):
        sums = dict(zip(map(exact, got.keys), got.sum(np.ones(len(chosen), "i4")).tolist()))
        expect("group_by", sums, {v: int((numbers == i).sum()) for v, i in seen.items()})
    half = len(chosen) // 2
    got = attempt("isin", lambda: roost.isin(chosen[:half], chosen[half:]))
    if not is_refusal(got):
        expect("isin", got, np.isin(numbers[:half], numbers[half:]))


def _objects(values):
    result = np.empty(len(values), object)
    result[:] = values
    return result


@operation(8)
def values(w):
    """`missing=` and values of other types: kept exactly, or refused."""
    rng = w.rng
    type = w.type(single=rng.integers(4) > 0)
    if " " in type or type in ("text", "bytes"):
        return
    truth = Source(rng, type)(draw_codes(rng, 5))
    wanted = pick(rng, _queries_near(w, truth))
    home = w.give(np.arange(5))
    if isinstance(wanted, (list, tuple, np.ndarray)) or home.library == "list" or wanted is None:
        return
    if isinstance(wanted, int) and wanted == 0:
        return  # the default: zeros of any type
    w.doing(f"values of {type}: missing={said(wanted)} ({wanted.__class__.__name__})")
    given = w.like(home, truth)
    if given.library == "list" or (home.library in ("torch", "jax") and truth.dtype.kind in "mMSV"):
        return
    for name in ("Map", "ConcurrentMap", "Store"):
        if name == "Map":
            table = roost.Map(home.given, given.given)
        elif truth.dtype.kind in "biufmM":
            table = getattr(roost, name)("int64", type, **_like(home))
        else:
            continue
        held = _domain_dtype(given)
        got = attempt(f"{name}.find", lambda: table.find(w.like(home, np.array([77])).given, missing=wanted))
        if not is_refusal(got) and held == truth.dtype:
            expect(f"{name}: missing={said(wanted)} of {type}", exact(back(got)[0]), beside(wanted, held))
        if name != "Map":
            for put in ("insert", "insert_or_assign", "set"):
                table.clear()
                key = w.like(home, np.array([5])).given
                call = (lambda: table.__setitem__(key, wanted)) if put == "set" else None
                got = attempt(f"{name}.{put}", call or (lambda: getattr(table, put)(key, wanted)))
                if is_refusal(got):
                    expect("len after a refusal", len(table), 0)
                else:
                    stored = exact(back(table.find(key))[0])
                    expect(f"{name}.{put} of {said(wanted)}", stored, beside(wanted, held))


def with_nulls(rng, n, at):
    """Columns with a null, and how they are made."""
    type = pick(rng, INTEGERS)
    numbers = [None if i == at else i for i in range(n)]
    texts = [None if i == at else str(i) for i in range(n)]
    mask = np.arange(n) == at
    values = np.arange(n).astype(type)
    yield "masked", np.ma.array(values, mask=mask)
    name = f"{'UInt' if type[0] == 'u' else 'Int'}{int(type[1]) * 8}"
    yield "pandas nullable", pd.Series(numbers, dtype=name)
    yield "pandas Float64", pd.array(numbers, dtype="Float64")
    yield "pandas boolean", pd.array([None if i == at else True for i in range(n)], dtype="boolean")
    yield "pandas string", pd.Series(texts, dtype="string")
    yield "pandas str", pd.Series(texts, dtype="str")
    yield "pandas Categorical", pd.Series(pd.Categorical(numbers))
    yield "pandas Categorical of texts", pd.Categorical(texts)
    yield "pandas CategoricalIndex", pd.CategoricalIndex(numbers)
    for missing in (None, np.nan, pd.NA, pd.NaT):
        yield f"objects with {missing}", _objects([missing if t is None else t for t in texts])
        yield f"numbers and {missing}", _objects([missing if t is None else t for t in numbers])
    yield "list", numbers
    yield "list of texts", texts
    if pl:
        yield "polars", pl.Series(numbers)
        yield "polars text", pl.Series(texts)
        yield "polars Categorical", pl.Series(texts, dtype=pl.Categorical)
    if pa:
        array = pa.array(numbers, pa.from_numpy_dtype(np.dtype(type)))
        yield "arrow", array
        yield "arrow chunks", pa.chunked_array([array[:1], array[1:]])
        yield "arrow text", pa.array(texts)
        yield "arrow dates", pa.array(numbers, pa.timestamp("ms"))
        yield "arrow dictionary", array.dictionary_encode()
        yield "arrow dictionary chunks", pa.chunked_array([array.dictionary_encode()] * 2)
        inside = pa.DictionaryArray.from_arrays(pa.array(np.arange(n), pa.int8()), array)
        yield "arrow dictionary's values", inside
        yield "arrow dictionary's texts", pa.DictionaryArray.from_arrays(np.arange(n), pa.array(texts))
        runs = pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, n + 1), pa.int32()), array)
        yield "arrow runs", runs
        yield "arrow runs in chunks", pa.chunked_array([runs])
        ends = pa.array(np.arange(1, n + 1), pa.int32())
        for kind in (pa.string(), pa.large_binary(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
            yield f"arrow runs of {kind}", pa.RunEndEncodedArray.from_arrays(ends, pa.array(texts, kind))
        zoned = pa.array(numbers, pa.timestamp("ms", "Europe/Berlin"))
        yield "arrow zone", zoned
        yield "polars zone", pl.Series(zoned) if pl else zoned
        yield "pandas zone in Categorical", zoned.to_pandas().astype("category")
        yield (
            "arrow views in a dictionary",
            pa.DictionaryArray.from_arrays(ends, pa.array(["", *texts], pa.string_view())),
        )
        yield "pandas Arrow", pd.Series(pd.arrays.ArrowExtensionArray(array))
        yield "pandas Arrow dictionary", pd.Series(pd.arrays.ArrowExtensionArray(inside))
        yield "pandas Arrow runs", pd.Series(pd.arrays.ArrowExtensionArray(runs))
        yield "pandas Arrow in Categorical", pd.Series(array.to_pandas()).astype("category")


def _nulls_among(keys):
    if isinstance(keys, np.ma.MaskedArray) or (isinstance(keys, np.ndarray) and keys.dtype != object):
        return len(keys), int(np.ma.count_masked(keys))
    return len(keys), int(pd.isna(np.array([*listed(keys), None], object)[:-1]).sum())


@operation(1)
def nulls(w):
    """Columns with nulls: keys for functions, and for tables that never change; no values."""
    if w.device != "cpu":
        return
    size = int(w.rng.integers(2, 9))
    at = int(w.rng.integers(size))
    for name, column in with_nulls(w.rng, size, at):
        n = len(column)
        ones = np.ones(n, "i8")
        index = roost.Index(np.arange(20))
        copies = 2 if name == "arrow dictionary chunks" else 1
        distinct = 2 if name == "pandas boolean" else n // copies
        rows = [i % (n // copies) for i in range(n)]
        if name == "pandas boolean":
            rows = [i if i == at else int(at == 0) for i in range(n)]
        answers = {
            "unique": (lambda: _nulls_among(roost.unique(column)), (distinct, 1)),
            "value_counts": (lambda: _nulls_among(roost.value_counts(column)[0]), (distinct, 1)),
            "factorize": (lambda: listed(roost.factorize(column)[0]).count(-1), copies),
            "duplicated": (lambda: sum(listed(roost.duplicated(column))), n - distinct),
            "isin": (lambda: sum(listed(roost.isin(column, column))), n - copies),
            "join": (lambda: len(roost.join(column, column, "semi")), n - copies),
            "join, equal": (lambda: len(roost.join(column, column, "anti", nulls_equal=True)), 0),
            "group_by": (lambda: len(roost.group_by(column)), distinct),
            "Index": (lambda: listed(roost.Index(column).get_indexer(column)), rows),
            "Set": (lambda: (len(roost.Set(column)), None in roost.Set(column)), (distinct, True)),
            "Map": (lambda: listed(roost.Map(column, np.arange(n))[column]), rows),
            "MultiMap": (
                lambda: sum(listed(roost.MultiMap(column, ones).count(column))),
                sum(map(rows.count, rows)),
            ),
            "values": (lambda: _nulls_among(roost.Map(np.arange(n), column).values()), (n, copies)),
            "values of several": (lambda: _nulls_among(roost.MultiMap(ones, column)[1]), (n, copies)),
        }
        for what, (call, wanted) in answers.items():
            w.doing(f"{what} of {name} {column!r}".replace("\n", " ")[:300])
            got = attempt(what, call)
            if not (is_refusal(got) and name.startswith(("objects", "numbers and", "list"))):
                expect(what, got, wanted)
        calls = {
            "insert": lambda: roost.ConcurrentMap("int64", "int64").insert(column, 1),
            "inserted values": lambda: roost.ConcurrentMap("int64", "float64").insert(np.arange(n), column),
            "partition": lambda: roost.partition(column, 2),
        }
        for what, call in calls.items():
            w.doing(f"{what} of {name} {column!r}".replace("\n", " ")[:300])
            got = attempt(what, call)
            if not is_refusal(got):
                raise Wrong(f"{what} takes a null: {str(got)[:200]!r}")
        w.doing(f"get_indexer of {name} {column!r}".replace("\n", " ")[:300])
        got = attempt("get_indexer", lambda: index.get_indexer(column))
        if not is_refusal(got):  # because of their type
            values = [1] * n if name == "pandas boolean" else rows
            expect("get_indexer", listed(got), [-1 if r == at else v for r, v in zip(rows, values)])


@operation(5)
def spellings(w):
    """The same two columns in all forms: one answer, or one kind of refusal."""
    rng = w.rng
    truth = Source(rng, w.type())(draw_codes(rng, int(rng.integers(1, 20))))
    wide = [q for q in _queries_near(w, truth) if not isinstance(q, (str, bytes, tuple, list))]
    other = as_array(wide, w.other_type()) if truth.ndim == 1 else truth
    if len(other) == 0:
        other = truth
    answers = {}
    for swap in (False, True):
        for name, library, make in SPELLINGS[w.device]:
            given = make(truth, rng)
            kept = getattr(given, "dtype", None)
            if (
                given is None
                or library == "list"
                or (isinstance(kept, np.dtype) and kept.kind in "mM" and kept != truth.dtype)
            ):
                continue
            beside = (
                other
                if w.device == "cpu" and library in ("numpy", "pandas", "arrow", "polars", "torch")
                else w.like(Column(truth, given, name, library), other).given
            )
            w.doing(f"isin of {name} {truth.dtype} and {other.dtype}, {'swapped' if swap else ''}")
            x, y = (beside, given) if swap else (given, beside)
            got = attempt("isin", lambda: roost.isin(x, y))
            got = got.__name__ if is_refusal(got) else str(back(got).tolist())
            answers.setdefault((swap, got), []).append(name)
    for swap in (False, True):
        if sum(key[0] == swap for key in answers) > 1:
            raise Wrong(f"isin of {truth.dtype} and {other.dtype}, {swap=}: {answers}"[:500])


# Merges: keys of two types, as every library has them, against the values that they are made of.

_NUMBERS = [0, 1, 2, 7, -1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.5, math.nan]
_INSTANTS = [0, 10**9, 1_729_988_999 * 10**9, 1_729_990_800 * 10**9, -(10**18)]
_ZONES = ["UTC", "Europe/Berlin", "America/New_York"]


def _key_column(rng, family, values):
    """Values as a column of Arrow of a random type that has all of them; None if the type has not."""
    if family == "numbers":
        name = pick(rng, [*INTEGERS, "f4", "f8", "?"])
        has = [value is None or as_array([value], name).size == 1 for value in values]
        if not all(has):
            return None
        cell = {"?": bool, "f": float}.get(name[0], int)
        values = [value if value is None else cell(value) for value in values]
        return pa.array(values, pa.from_numpy_dtype(np.dtype(name)), from_pandas=False)
    if family == "texts":
        return pa.array(values, pick(rng, [pa.string(), pa.large_string(), pa.string_view()]))
    unit, step = pick(rng, [("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)])
    return pa.array([v if v is None else v // step for v in values], pa.timestamp(unit, pick(rng, _ZONES)))


def _encoded(rng, column):
    """A column as a dictionary, which may have a null inside, as runs, as both, or as it is."""
    how, n = pick(rng, ["plain", "plain", "dictionary", "runs", "both"]), len(column)
    if how in ("dictionary", "both"):
        column = pa.DictionaryArray.from_arrays(pa.array(np.arange(n), pa.int16()), column)
    if how in ("runs", "both"):
        ends = pa.array(np.arange(2, n + 2), pa.int32())  # of one more row, which is cut off
        column = pa.RunEndEncodedArray.from_arrays(ends, column)[min(n, 1) :]
    return column


def _frame_of_keys(rng, form, columns):
    """A frame of columns of Arrow."""
    if form == "arrow":
        return pa.table({name: _encoded(rng, column) for name, column in columns.items()})
    if form == "polars":
        frame = pl.from_arrow(pa.table(columns))
        texts = [name for name in columns if frame[name].dtype == pl.String and rng.integers(2)]
        kinds = pl.Categorical, pl.Enum(["a", "b", "c", "z"]), pl.Enum(["z", "c", "b", "a"])
        return frame.with_columns([pl.col(name).cast(pick(rng, kinds)) for name in texts])
    made = {}
    for name, column in columns.items():
        nulls = np.array([value is None for value in column.to_pylist()], bool)
        number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if form == "pandas" or (pa.types.is_timestamp(column.type) and nulls.any()):
            column = _encoded(rng, column) if form == "pandas" else column
            series = pd.Series(pd.arrays.ArrowExtensionArray(column))
        elif number and (nulls.any() or rng.integers(3) == 0):
            array = column.fill_null(0).to_numpy()
            series = pd.Series(pd.array(array[:0]).dtype.construct_array_type()(array, nulls))
        elif number or pa.types.is_timestamp(column.type):
            series = column.to_pandas()
        else:
            series = pd.Series(column.to_pylist(), dtype="boolean" if column.type == pa.bool_() else object)
        kept = pa.types.is_floating(column.type) or column.type == pa.bool_() or rng.integers(4)
        made[name] = series if kept or form == "pandas" else series.astype("category")
    return pd.DataFrame(made)


def _values_of(column, family):
    """The values of a column of a result, as those that it was made of."""
    column = column.to_arrow() if pl is not None and isinstance(column, pl.Series) else column
    if isinstance(column, pa.ChunkedArray | pa.Array):
        column = pd.Series(pd.arrays.ArrowExtensionArray(column), name="k")
    made, is_null = [], family != "numbers" or isinstance(column.dtype, pd.CategoricalDtype)
    for value in column.tolist():
        null = value is None or value is pd.NA or value is pd.NaT or (is_null and value != value)
        if not null and family == "zones":
            value = int(pd.Timestamp(value).as_unit("ns").value)
        made.append(None if null else "NaN" if value != value else value)
    return made


def joined_rows(left, right, how, nulls_equal):
    """Pairs of rows of two lists of keys, None where there is none, in the order of `join`."""

    def equal(x, y):
        return x == y and (nulls_equal or None not in x)

    pairs = [(i, j) for i, x in enumerate(left) for j, y in enumerate(right) if equal(x, y)]
    lefts, rights = {i for i, _ in pairs}, {j for _, j in pairs}
    if how in ("semi", "anti"):
        return [(i, None) for i in range(len(left)) if (i in lefts) == (how == "semi")]
    if how in ("left", "outer"):
        pairs = sorted(pairs + [(i, None) for i in range(len(left)) if i not in lefts], key=lambda p: p[0])
    rest = [(None, j) for j in range(len(right)) if j not in rights]
    return sorted(pairs + rest, key=lambda p: p[1]) if how == "right" else pairs + rest * (how == "outer")


@operation(8)
def merges(w):
    """merge by keys of two types: numbers, texts or times of a zone, in every library and encoding, with all
    options."""
    rng = w.rng
    if w.device != "cpu":
        return
    form = pick(rng, ["arrow", "pandas", "numpy", *["polars"] * (pl is not None)])
    names, columns, keys = ["p", "q"][: int(rng.integers(1, 3))], [{}, {}], [[], []]
    families = [pick(rng, ["numbers", "numbers", "texts", "zones"]) for _ in names]
    sizes = [int(pick(rng, [0, 1, 3, 9])) for _ in range(2)]
    for name, family in zip(names, families):
        pool = {"numbers": _NUMBERS, "texts": ["a", "b", "c", "z"], "zones": _INSTANTS}[family]
        for side, size in enumerate(sizes):
            while True:
                some = [pick(rng, pool) for _ in range(int(rng.integers(1, 4)))]
                some += [None] * int(rng.integers(3) == 0) if rng.integers(9) else [None] * 99
                values = [pick(rng, some) for _ in range(size)]
                column = _key_column(rng, family, values)
                if column is not None:
                    break
            columns[side][name] = column
            keys[side].append(["NaN" if v != v else v for v in values])
    swapped = len(names) == 2 and bool(rng.integers(2))  # the right side has the names in another order
    right_on = names[::-1] if swapped else names
    columns[1] = {other: columns[1][name] for name, other in zip(names, right_on)}
    payloads, frames = [], []
    for name, size, each in zip("uv", sizes, columns):
        payloads.append([int(pick(rng, [3, 2**53 + 1, -(2**63), 2**63 - 1])) for _ in range(size)])
        made, column = _frame_of_keys(rng, form, each), np.array(payloads[-1], np.int64)
        for name in (name, "both"):
            if form == "arrow":
                made = made.append_column(name, pa.array(column))
            else:
                known = {name: column}
                made = made.with_columns(**known) if form == "polars" else made.assign(**known)
        frames.append(made)
    how = pick(rng, ["inner", "left", "right", "outer", "full", "semi", "anti", "cross"])
    options = {"how": how, "nulls_equal": bool(rng.integers(2))}
    suffixes = pick(rng, [("_x", "_y"), ("_l", None), ("", "_r")])
    if rng.integers(2):
        options["suffixes"] = suffixes
    else:
        suffixes = "_x", "_y"
    by_index = [False, False]
    if how == "cross":
        names, right_on, families = [], [], []
    elif form in ("pandas", "numpy") and not swapped:
        by_index = [bool(rng.integers(4) == 0) for _ in frames]
    for side, (on, by) in enumerate(zip((names, right_on), by_index)):
        if by:
            try:
                frames[side] = frames[side].set_index(on)
                options[("left_index", "right_index")[side]] = True
            except (NotImplementedError, ValueError):  # pandas has no such index
                by_index[side] = False
        if how != "cross" and not by_index[side]:
            options[("left_on", "right_on")[side]] = on
    with_sides = how not in ("semi", "anti") and bool(rng.integers(2))
    if with_sides:
        options["indicator"] = pick(rng, [True, "side"])
    if rng.integers(2):
        options["validate"] = pick(rng, ["1:1", "1:m", "m:1", "m:m", "one_to_many"])
    types = [[c.type for c in each.values()] for each in columns]
    w.doing(f"merge of {form} {types} {keys}, {options} {swapped=}")
    got = attempt("merge", lambda: roost.merge(*frames, **options))
    rows = [list(zip(*side)) for side in keys] if how != "cross" else [[()] * size for size in sizes]
    nulls_equal = options["nulls_equal"]
    counted = [[row for row in side if nulls_equal or None not in row] for side in rows]
    repeat = [len(set(side)) < len(side) for side in counted]
    one = {"1:1": (1, 1), "1:m": (1, 0), "one_to_many": (1, 0), "m:1": (0, 1)}.get(
        options.get("validate"), (0, 0)
    )
    if any(a and b for a, b in zip(one, repeat)):
        return expect("refusal of keys that repeat", got, ValueError)
    if is_refusal(got) and how in ("outer", "full") and "numbers" in families and types[0] != types[1]:
        return None  # neither type has all the keys
    if is_refusal(got):
        raise Wrong(f"refused: {got.__name__}")
    if all(by_index) or (by_index[0] and how in ("semi", "anti")):
        got = got.reset_index()
    pairs = joined_rows(*rows, "outer" if how == "full" else "inner" if how == "cross" else how, nulls_equal)
    for place, (name, family) in enumerate(zip(names, families)):
        wanted = [rows[0][i][place] if i is not None else rows[1][j][place] for i, j in pairs]
        expect(f"keys {name}", _values_of(got[name], family), wanted)
    mine, others = (
        ("both", None) if how in ("semi", "anti") else [f"both{suffix or ''}" for suffix in suffixes]
    )
    for side, name in enumerate("u" if how in ("semi", "anti") else "uv"):
        wanted = [None if pair[side] is None else payloads[side][pair[side]] for pair in pairs]
        for name in (name, (mine, others)[side]):
            expect(f"payload {name}", _values_of(got[name], "payload"), wanted)
    if with_sides:
        wanted = ["right_only" if i is None else "left_only" if j is None else "both" for i, j in pairs]
        name = "_merge" if options["indicator"] is True else "side"
        expect("indicator", _values_of(got[name], "texts"), wanted)
    return None


# Voxels, and torch.


@operation(6)
def voxels(w):
    """roost.sparse: rows of coordinates, and the neighbours of a kernel."""
    rng = w.rng
    axes = int(rng.integers(2, 5))
    n = draw_size(rng, w.most("rows"))
    side = int(pick(rng, [2, 3, 20, 100, 2**12, 2**15 if axes == 4 else 2**20]))
    corner = int(pick(rng, [0, 0, -side // 2, -(2**31), 2**31 - side, -7]))
    truth = rng.integers(0, side, (n, axes + 1)) + corner
    truth[:, 0] = rng.integers(0, pick(rng, [1, 2, 64]), n) + pick(rng, [0, 0, -3])
    if rng.integers(3) == 0 and n:
        truth[:, 1:] = truth[rng.integers(0, n, n), 1:]
    truth = truth.astype(np.int32)
    forms = [s for s in SPELLINGS[w.device] if s[1] in _ARRAYS and "swapped" not in s[0]]
    while True:
        name, library, make = pick(rng, forms)
        given = make(truth, rng)
        if given is not None:
            break
    x = Column(truth, given, name, library)
    order = pick(rng, ["block", "input"])
    w.doing(f"CoordinateIndex({x}, order={order!r}), {side=} {corner=}")
    index = attempt("CoordinateIndex", lambda: roost.sparse.CoordinateIndex(x.given, order=order))
    if is_refusal(index):
        if side**axes * 64 < 2**60:
            raise Wrong(f"CoordinateIndex: refused: {index.__name__}")
        return
    if rng.integers(4) == 0 and w.device == "cpu":
        index = pickle.loads(pickle.dumps(index))
    (numbers,) = codes(truth)
    known = Known(numbers)
    expect("len", len(index), known.n)
    expect("valid", index.valid(), True)
    coordinates = back(index.coordinates, x)
    of = codes(truth, coordinates)[1]
    expect(
        "coordinates",
        np.arange(known.n) if order == "input" else np.sort(of),
        of if order == "input" else np.arange(known.n),
    )
    row_of = np.empty(known.n, np.int64)
    row_of[of] = np.arange(known.n)
    if index.duplicates:
        expect("rows of the input", back(index.rows_of_input()), row_of[numbers])
        expect("duplicates", index.duplicates, n - known.n)
    if n:
        expect("bounds", index.bounds, (tuple(truth.min(0).tolist()), tuple(truth.max(0).tolist())))
    asked = np.concatenate(
        [truth[: len(truth) // 2], truth[:1000] + np.int32(1), np.zeros((1, axes + 1), "i4")]
    )
    asked = w.like(x, np.ascontiguousarray(rng.permutation(asked)))
    of = codes(truth, asked.truth)[1]
    rows = np.where(of < known.n, np.append(row_of, -1)[np.minimum(of, known.n)], -1)
    w.doing(f"CoordinateIndex({x}).find({asked})")
    if asked.library == x.library:
        expect("find", back(index.find(asked.given)), rows)
        expect("contains", back(index.contains(asked.given)), rows >= 0)
    if n > 300000 or abs(corner) > 2**30:
        return
    size, dilation = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    w.doing(f"kernel_map of {x}, {size=} {dilation=}")
    table = back(roost.sparse.kernel_map(index, size, dilation=dilation).neighbours(), x)
    for k in rng.permutation(size**axes)[:5]:
        offset = np.array(np.unravel_index(k, (size,) * axes)) * dilation - dilation * (size - 1) // 2
        moved = coordinates.copy()
        moved[:, 1:] += offset.astype(np.int32)
        of = codes(truth, moved)[1]
        rows = np.where(of < known.n, np.append(row_of, -1)[np.minimum(of, known.n)], -1)
        expect(f"neighbours at {offset.tolist()}", table[k].astype("i8"), rows)


@operation(4)
def modules(w):
    """roost.torch: unique, isin, Map and Embedding."""
    if torch is None:
        return
    import roost.torch

    rng = w.rng
    device = "cuda" if w.device == "cuda" else "cpu"
    type = pick(rng, ["i1", "i2", "i4", "i8", "u1", "f4", "f8", "f2"])
    source = Source(rng, type)
    n, m = draw_size(rng, w.most(type)), draw_size(rng, w.most(type))
    x, y = source(draw_codes(rng, n)), source(draw_codes(rng, m, int(pick(rng, [0, n // 2]))))
    a, b = codes(x, y)
    known = Known(codes(x)[0])
    one, two = (torch.from_numpy(np.ascontiguousarray(t)).to(device) for t in (x, y))
    w.doing(f"roost.torch of {n} and {m} {type}")
    keys, inverse, counts = (back(t) for t in roost.torch.unique(one, sorted=bool(rng.integers(2))))
    of = codes(x, keys)[1]
    expect("unique", np.sort(of), np.arange(known.n))
    expect("inverse", of[inverse], a)
    expect("counts", counts, known.counts[of])
    if n % 2 == 0 and n:
        expect("isin", back(roost.torch.isin(one.reshape(2, -1), two)), np.isin(a, b).reshape(2, -1))
    values = rng.integers(-(2**31), 2**31, n)
    module = roost.torch.Map(one, torch.from_numpy(values).to(device))
    rows = known.rows(b)
    expect("Map", back(module(two)), np.where(rows >= 0, np.append(values, 0)[rows], 0))
    if np.dtype(type).kind == "i" and n:
        embedding = roost.torch.Embedding(2, key_dtype=getattr(torch, np.dtype(type).name)).to(device)
        with torch.no_grad():
            embedding.insert(one)
            expect("len", len(embedding), known.n)
            rows = back(embedding.rows(one))
            expect("rows of equal keys", codes(rows)[0], a)
            expect("rows of absent keys", back(embedding.rows(two)) >= 0, np.isin(b, a))


def _is_long(duration):
    """Whether some unit of durations may have no room for it."""
    return duration is not None and abs(duration // datetime.timedelta(microseconds=1)) * 1000 >= 2**63


def random_values(rng, most):
    """Values of a kind with nulls, how they are spelled, a column of them, or None, and keys."""
    kind, spelling, n = pick(rng, [*VALUES]), pick(rng, [*VALUE_SPELLINGS]), draw_size(rng, most)
    pool = [value for value in VALUES[kind] if value is not None]
    values = [pick(rng, pool) for _ in range(n)]
    for row in np.flatnonzero(rng.random(n) < pick(rng, [0, 0.2, 0.9]))[1:]:
        values[row] = None
    column = VALUE_SPELLINGS[spelling](values, kind) if n else None
    keys = None if column is None else rng.integers(0, int(pick(rng, [1, 7, 1 + n // 3, n])), n)
    return kind, spelling, values, column, keys


@operation(4)
def columns_of_groups(w):
    """Aggregates of columns of every library, with nulls, as Python's own numbers."""
    rng = w.rng
    if w.device != "cpu":
        return
    kind, spelling, values, column, keys = random_values(rng, 20_000)
    if column is None:
        return
    n = len(values)
    frames = pick(
        rng,
        [lambda keys: keys, *(lambda keys, of=of: of({"k": keys}) for of in (pd.DataFrame, pl.DataFrame))],
    )
    given = frames(keys)
    groups = roost.group_by(given) if given is keys else roost.group_by(given, "k")
    for how in rng.permutation(OF_KIND[kind])[:3]:
        w.doing(
            f"{how} of {n} values, {kind} as {spelling}, of {keys.max() + 1} keys, a {type(given).__name__}"
        )
        wanted = wrapped(expected(keys.tolist(), values, how), kind, how)
        try:
            if given is keys:
                found, order = getattr(groups, how)(column), groups.keys
            else:
                made = groups.agg(v=(column, how))
                found, order = made["v"], made["k"]
        except OverflowError:
            if (kind, how) != ("duration", "sum") or not any(map(_is_long, wanted.values())):
                raise
            continue
        try:
            same(plain(found), [wanted[key] for key in plain(order)], kind)
        except AssertionError as error:
            raise Wrong(f"{w.now}: {str(error)[:300]}") from None


def _frame_of(keys, column):
    """A frame of keys and a column, of its library; None for numpy's."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"k": keys, "v": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"k": keys, "v": column})
    return None if isinstance(column, np.ndarray) else pa.table({"k": keys, "v": column})


def _rank(ranks, values, rows, method, descends):
    """Sets the ranks of some rows among each other."""
    there = [row for row in rows if values[row] is not None]
    distinct = sorted({values[row] for row in there}, reverse=descends)
    before = 0
    for number, value in enumerate(distinct, 1):
        mine = [row for row in there if values[row] == value]
        least, most = before + 1, before + len(mine)
        one = {"average": (least + most) / 2, "min": least, "max": most, "dense": number}.get(method)
        for place, row in enumerate(mine):
            ranks[row] = least + place if one is None else one
        before = most


def _check_columns(frame, kind, keys, values, by, most):
    """Columns of groups, and agg of a dict of these."""
    groups = roost.group_by(frame, "k")
    head, seen = groups.head(most), {}
    rows = [
        row for row, key in enumerate(keys) if seen.setdefault(key, []).append(row) or len(seen[key]) <= most
    ]
    same(plain(head["v"]), [values[row] for row in rows], kind)
    assert plain(head["k"]) == [keys[row] for row in rows] and plain(groups["k"].head(most)) == plain(
        head["k"]
    )
    wanted = wrapped(expected(keys, values, by), kind, by)
    try:
        made = groups.agg({"v": [by, *["count"] * (by != "count")]})
        same(plain(made[f"v_{by}"]), [wanted[key] for key in plain(made["k"])], kind)
        assert [*map(int, plain(made["v_count"]))] == [
            sum(values[row] is not None for row in seen[key]) for key in plain(made["k"])
        ]
        few = getattr(groups[["v"]], by)()
        same(plain(few["v"]), [wanted[key] for key in plain(few["k"])], kind)
    except OverflowError:
        if (kind, by) != ("duration", "sum") or not any(map(_is_long, wanted.values())):
            raise


@operation(4)
def rows_of_groups(w):
    """Results for rows and parts, of columns of every library with nulls, as Python's own lists give them; of
    arrays, of groups of a frame, and of its columns."""
    rng = w.rng
    if w.device != "cpu":
        return
    kind, spelling, values, column, keys = random_values(rng, 5_000)
    if column is None:
        return
    n = len(values)
    rows = {}
    for row, key in enumerate(keys.tolist()):
        rows.setdefault(key, []).append(row)
    groups, wanted, away = roost.group_by(keys), [None] * n, int(pick(rng, [-n, -2, -1, 0, 1, 3]))
    how = pick(rng, ["shift", "ffill", "bfill", "transform", "rank", *["cumsum"] * (kind in SUMMED)])
    method, descends = pick(rng, ["average", "min", "max", "dense", "first"]), bool(rng.integers(2))
    by, made = pick(rng, OF_KIND[kind]), _frame_of(keys, column)
    form = pick(rng, ["array", *["frame", "column"] * (made is not None)])
    w.doing(
        f"{how} ({away}, {method}, {by}) of {n} values, {kind} as {spelling}, {keys.max() + 1} keys, {form}"
    )
    if how == "transform":
        results = wrapped(expected(keys.tolist(), values, by), kind, by)
        wanted = [results[key] for key in keys.tolist()]
    elif how == "cumsum":
        wanted = running(keys.tolist(), values, kind)
    elif how == "rank":
        for mine in rows.values():
            _rank(wanted, values, mine, method, descends)
    else:
        for mine in rows.values():
            last = None
            for at, row in enumerate(mine) if how != "bfill" else [*enumerate(mine)][::-1]:
                if how == "shift":
                    wanted[row] = values[mine[at - away]] if 0 <= at - away < len(mine) else None
                else:
                    wanted[row] = last = last if values[row] is None else values[row]
    of = groups if form == "array" else roost.group_by(made, "k")
    of, given = (of["v"], ()) if form == "column" else (of, ("v" if form == "frame" else column,))
    options = {"shift": {"n": away}, "rank": {"method": method, "ascending": not descends}}.get(how, {})
    try:
        found = getattr(of, how)(*[by] * (how == "transform"), *given, **options)
    except OverflowError:
        if kind != "duration" or how not in ("cumsum", "transform") or not any(map(_is_long, wanted)):
            raise
        return
    places = [0] * n
    for mine in rows.values():
        for at, row in enumerate(mine):
            places[row] = at
    most = int(rng.integers(4))
    try:
        if how == "rank":
            assert [None if pd.isna(v) else v for v in plain(found)] == wanted
        else:
            same(plain(found), wanted, kind)
        assert np.asarray(groups.cumcount()).tolist() == places, "cumcount"
        if made is not None:
            _check_columns(made, kind, keys.tolist(), values, by, most)
        ends = sorted(row for mine in rows.values() for row in mine[max(len(mine) - most, 0) :])
        assert np.asarray(groups.tail(most)).tolist() == ends, f"tail({most})"
        for key, mine in groups:
            assert mine.tolist() == rows.pop(key), f"rows of {key}"
        assert not rows, "keys without rows"
    except AssertionError as error:
        raise Wrong(f"{w.now}: {str(error)[:300]}") from None


@operation(3)
def times_of_groups(w):
    """merge_asof, rolling and sessions of frames of every library, in any order of times, against loops over
    all rows."""
    rng = w.rng
    if w.device != "cpu" or not (pd and pl and pa):
        return
    n, m, span = (int(rng.integers(0, most)) for most in (250, 250, 400))
    kind = pick(rng, ["int64", "int8", "uint64", "float64", "datetime64[ms]"])
    keys, times = (rng.integers(0, 8, n + m), rng.integers(0, span + 1, n + m))
    typed = (times % 120 if kind == "int8" else times).astype(kind)
    make = pick(rng, [pd.DataFrame, pl.DataFrame, pa.table])
    frames = [
        make({"k": keys[part], "t": typed[part], "v": np.arange(n + m)[part]})
        for part in (slice(n), slice(n, None))
    ]
    direction, exact = pick(rng, ["backward", "forward", "nearest"]), bool(rng.integers(2))
    closed, width = pick(rng, ["right", "left", "both", "neither"]), int(rng.integers(1, span + 2))
    w.doing(f"times {kind} of {n} and {m} rows, {make.__name__}, {direction}, {exact=}, {closed}, {width}")
    distance = f"{width}ms" if kind == "datetime64[ms]" else width
    found = roost.merge_asof(
        *frames, on="t", by="k", direction=direction, tolerance=distance, allow_exact_matches=exact
    )
    numbers = typed.astype("int64")
    right = list(zip(numbers[n:].tolist(), keys[n:].tolist()))
    wanted = [
        row_of(t, k, right, direction, width, exact) for t, k in zip(numbers[:n].tolist(), keys[:n].tolist())
    ]
    groups = roost.group_by(frames[0], "k")
    sums = groups.rolling(distance, on="t", closed=closed).sum("v")
    numbered = groups.sessions("t", distance)
    try:
        took = [None if row is None or pd.isna(row) else int(row) - n for row in plain(found["v_y"])]
        assert took == wanted, "merge_asof"
        left, right_end = closed in ("left", "both"), closed in ("right", "both")
        sessions, totals = [0] * n, [None] * n
        for key in set(keys[:n].tolist()):
            mine = sorted(np.flatnonzero(keys[:n] == key).tolist(), key=lambda row: numbers[row])
            for before, row in itertools.pairwise(mine):
                sessions[row] = sessions[before] + (numbers[row] - numbers[before] > width)
            for row in mine:
                apart = [(other, numbers[row] - numbers[other]) for other in mine]
                inside = [
                    other
                    for other, d in apart
                    if (d <= width if left else d < width) and (d >= 0 if right_end else d > 0)
                ]
                totals[row] = sum(inside) if inside else None
        assert [None if pd.isna(total) else int(total) for total in plain(sums)] == totals, "rolling"
        assert plain(numbered) == sessions, "sessions"
    except AssertionError as error:
        raise Wrong(f"{w.now}: {str(error)[:300]}") from None


@operation(4)
def maps_of_columns(w):
    """Maps of columns of every library, with nulls, as dicts."""
    rng = w.rng
    if w.device != "cpu":
        return
    kind, spelling, values, column, keys = random_values(rng, 20_000)
    if column is None:
        return
    first, of_key = {}, {}
    for key, value in zip(keys.tolist(), values):
        first.setdefault(key, value)
        of_key.setdefault(key, []).append(value)
    asked = rng.integers(0, keys.max() + 1 + len(first) // 4, int(rng.integers(1, 2000)))
    known = asked[np.isin(asked, keys)]
    copied = pick(rng, [copy.copy, lambda table: pickle.loads(pickle.dumps(table)), lambda table: table])
    w.doing(f"a map of {len(values)} values, {kind} as {spelling}, of {len(first)} keys")
    table, several = copied(roost.Map(keys, column)), copied(roost.MultiMap(keys, column))
    asks = pick(rng, [np.array, list, pd.Series, pl.Series, pa.array] if pl and pa else [np.array, list])
    default = pick(rng, [value for value in VALUES[kind] if value is not None])
    found = attempt("find", lambda: table.find(asks(asked), missing=default))
    try:
        assert table.valid() and len(table) == len(first) and len(several) == len(values)
        assert np.array_equal(table.contains(asked), np.isin(asked, keys))
        if not is_refusal(found):
            same(plain(found), [first.get(key, default) for key in asked.tolist()], kind)
        if len(known):
            same(plain(table[asks(known)]), [first[key] for key in known.tolist()], kind)
            found = several.find(asks(known[:3]))[1]
            same(plain(found), [value for key in known[:3].tolist() for value in of_key[key]], kind)
            same(plain(several[known[0]]), of_key[known[0].item()], kind)
        got_keys, got = table.items()
        same(plain(got), [first.pop(key) for key in got_keys.tolist()], kind)
    except AssertionError as error:
        raise Wrong(f"{w.now}: {str(error)[:300]}") from None


# The run.


class Run:
    """Steps of a seed, and what was wrong."""

    def __init__(self, seed, device="cpu", only="", verbose=False, most=MOST):
        self.seed, self.device, self.only, self.verbose, self.most = seed, device, only, verbose, most
        chosen = {name: each for name, each in OPERATIONS.items() if only in name}
        if not chosen:
            raise SystemExit(f"differential: no operation has {only!r} in its name: {', '.join(OPERATIONS)}")
        weights = np.array([weight for _, weight in chosen.values()], float)
        self.names, self.chances = list(chosen), weights / weights.sum()
        self.failures, self.kinds, self.count, self.seconds = (
            [],
            set(),
            dict.fromkeys(chosen, 0),
            dict.fromkeys(chosen, 0.0),
        )

    def step(self, number):
        """One operation; a failure is noted."""
        rng = np.random.default_rng([self.seed, number])
        name = self.names[int(rng.choice(len(self.names), p=self.chances))]
        world = World(rng, self.device, min(pick(rng, [2000, 50_000, 50_000, 300_000, MOST]), self.most))
        if self.verbose:
            print(f"step {number}: {name}", flush=True)
        roost.set_threads(int(pick(rng, [0, 0, 1, 2, 3])))
        faulthandler.dump_traceback_later(180, exit=True)
        began = time.perf_counter()
        way, own = {}, np.random.default_rng([self.seed, number, 1])
        if self.device == "cpu" and not own.integers(4):  # piece by piece
            way = {"device": "simulated", "limit": int(own.integers(16, 64)) * 2**20}
        try:
            with roost.options(**way):
                OPERATIONS[name][0](world)
        except Exception as error:
            text = str(error) if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"
            only = f" --only {self.only}" if self.only else ""
            on = f" --device {self.device}" if self.device != "cpu" else ""
            again = f"python -m differential --seed {self.seed}{on}{only} --step {number}"
            if not isinstance(error, Wrong) and self.verbose:
                traceback.print_exc()
            kind = name, re.sub(r"[^a-zA-Z ]|['\"].*?['\"]", "", text)[:60]
            if kind not in self.kinds:  # each kind of failure once
                self.kinds.add(kind)
                self.failures.append(f"{again}: {name}: {world.now}: {text}".replace("\n", "\\n"))
                print(self.failures[-1], flush=True)
        faulthandler.cancel_dump_traceback_later()
        self.count[name] += 1
        self.seconds[name] += time.perf_counter() - began

    def run(self, seconds, failures=20):
        began, number = time.monotonic(), 0
        while time.monotonic() - began < seconds and len(self.failures) < failures:
            self.step(number)
            number += 1
        steps = ", ".join(f"{name} {self.count[name]} in {self.seconds[name]:.0f} s" for name in self.names)
        print(f"seed {self.seed}: {number} steps ({steps}), {len(self.failures)} failures", flush=True)
        return self.failures


def main():
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="by default the time")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="", metavar="NAME", help=f"one of {', '.join(OPERATIONS)}")
    parser.add_argument("--step", type=int, help="this step alone")
    parser.add_argument("--most", type=int, default=MOST, help="rows of a column")
    parser.add_argument("--failures", type=int, default=20, help="after how many to end")
    parser.add_argument("--verbose", action="store_true", help="name each step before it begins")
    given = parser.parse_args()
    faulthandler.enable()
    seed = int(time.time()) if given.seed is None else given.seed
    run = Run(seed, given.device, given.only, given.verbose, given.most)
    print(f"seed {seed}, {given.device}", flush=True)
    if given.step is not None:
        run.step(given.step)
    else:
        run.run(given.seconds, given.failures)
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
