"""Columns with nulls, and several columns as keys: random frames of every library, against dicts."""

import collections
import copy
import datetime
import decimal
import enum
import fractions
import gc
import itertools
import math
import os
import pickle
import threading
import weakref

import numpy as np
import pytest
import roost
from columns import listed, of_the_day
from differential import joined_rows

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

SEED = int(os.environ.get("ROOST_SEED", 0))
ROUNDS = int(os.environ.get("ROOST_ROUNDS", 25))
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
SIZES = (0, 1, 2, 7, 64, 300, 300, 2000)
INTEGERS = [getattr(pa, f"{u}int{bits}")() for u in ("", "u") for bits in (8, 16, 32, 64)]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(3)]
TYPES = [
    *INTEGERS,
    pa.bool_(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    *map(pa.timestamp, ("s", "ms", "us", "ns")),
    pa.duration("us"),
    pa.time64("us"),
    pa.decimal128(38, 3),
    pa.decimal128(9, 0),
    pa.dictionary(pa.int8(), pa.string()),
    *TEXTS,
    pa.binary(20),
]


def values_of(rng, kind, n):
    """Random values of a type, with few or many different ones."""
    most = int(rng.choice([1, 3, 20, 10_000]))
    picked = rng.integers(0, most, n)
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        low, high = [(0, 3), (limits.min, limits.max)][int(rng.integers(2))]
        pool = rng.integers(low, high, most, limits.dtype, endpoint=True)
        pool[0] = limits.min
        pool[-1] = limits.max
        return pa.array(pool[picked], kind)
    if pa.types.is_boolean(kind):
        return pa.array(picked % 2 == 0)
    if pa.types.is_floating(kind):
        pool = rng.normal(size=most + 5)
        pool[:5] = [0.0, -0.0, np.nan, -np.inf, 5e-324]
        return pa.array(pool[rng.integers(0, most + 5, n)].astype(kind.to_pandas_dtype()), from_pandas=False)
    if pa.types.is_decimal(kind):
        wide = 10**30 if kind.precision > 18 else 1
        return pa.array([decimal.Decimal(int(i - most // 2) * wide) for i in picked], kind)
    if pa.types.is_dictionary(kind):
        words = [f"word {i}" for i in range(100)]
        return pa.DictionaryArray.from_arrays(pa.array(picked % 100, pa.int8()), pa.array(words))
    if kind in TEXTS or pa.types.is_fixed_size_binary(kind):
        length = int(rng.choice([2, 10, 30]))
        texts = [(str(i % 89) + "é\0xyz" * length)[:length] if i else "" for i in picked]
        if pa.types.is_fixed_size_binary(kind):
            return pa.array([str(i).encode()[:3].ljust(kind.byte_width, b"\0") for i in picked], kind)
        return pa.array(texts, pa.string()).cast(kind)
    if kind == pa.date32():
        return pa.array(picked.astype(np.int32)).cast(kind)
    return pa.array(picked.astype(np.int64)).cast(kind)


def with_nulls(rng, column, part):
    """The same with nulls in a part of the rows, whose values stay below them."""
    missing = rng.random(len(column)) < part
    if part == 0 or not len(column):
        return column
    bits = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    buffers = [bits, *column.buffers()[1:]]
    if pa.types.is_dictionary(column.type):
        indices = pa.array(column.indices.to_numpy(), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary)
    return pa.Array.from_buffers(column.type, len(column), buffers)


def cut(rng, column):
    """A column in pieces, each of which begins somewhere in its buffers."""
    places = np.sort(rng.integers(0, len(column) + 1, int(rng.integers(0, 4))))
    ends = [0, *map(int, places), len(column)]
    pieces = [column[a:b] for a, b in zip(ends, ends[1:])]
    return pa.chunked_array(pieces, column.type)


def take(column, rows):
    """Rows of a column; pyarrow does not take those of all types."""
    return pa.array([column[int(i)].as_py() for i in rows], column.type)


def exact(value):
    """Something hashable that is equal where keys are."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def table_of(rng, n, kinds, part):
    columns = []
    for kind in kinds:
        column = with_nulls(rng, values_of(rng, kind, n + 5), part)[3 : n + 3]
        columns.append(cut(rng, column) if rng.integers(2) else column)
    return pa.table({f"c{i}": column for i, column in enumerate(columns)})


def rows_of(frame):
    """The rows of a frame, a tuple or a column of any library, as tuples of exact values."""
    if isinstance(frame, tuple):
        columns = [list(map(exact, objects(column))) for column in frame]
    elif isinstance(frame, pa.Table):
        columns = [list(map(exact, python_values(column))) for column in frame.columns]
    elif isinstance(frame, pl.DataFrame):
        columns = [list(map(exact, python_values(column.to_arrow()))) for column in frame.get_columns()]
    else:
        columns = [list(map(exact, python_values(pa.array(frame[c])))) for c in frame.columns]
    return list(zip(*columns))


def python_values(column):
    """The values; days or nanoseconds of dates, which Python has not all of."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        scale = NANOSECONDS.get(getattr(kind, "unit", None), 1)
        return [None if value is None else value * scale for value in column.to_pylist()]
    return column.to_pylist()


def objects(column):
    column = column.to_arrow() if isinstance(column, pl.Series) else column
    column = pa.array(column) if isinstance(column, pd.Series) else column
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return python_values(column)
    there = ~np.ma.getmaskarray(column)
    array = np.ma.getdata(column)
    values = array.tolist()
    if array.dtype.kind in "mM":
        scale = NANOSECONDS.get(np.datetime_data(array.dtype)[0], 1)
        values = (array.view(np.int64) * scale).tolist()
    return [python(value) if is_there else None for value, is_there in zip(values, there)]


def python(value):
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    return value


def forms(table):
    """A table in each form that roost takes."""
    yield "arrow", table
    yield "tuple", tuple(table.columns)
    if not any(pa.types.is_fixed_size_binary(c.type) for c in table.columns):
        yield "polars", pl.from_arrow(table)
    yield "pandas", table.to_pandas(types_mapper=pd.ArrowDtype)


def numbered(rows):
    """The number of each row by first occurrence."""
    seen = {}
    return np.array([seen.setdefault(row, len(seen)) for row in rows], np.int64)


def same_types(form, result, table):
    if form == "arrow":
        assert result.schema.types == table.schema.types
        assert result.schema.names == table.schema.names
    elif form == "polars":
        assert result.schema == table.schema
    elif form == "pandas":
        assert list(result.dtypes) == list(table.dtypes)
    else:
        assert isinstance(result, type(table))
        pairs = zip(result, table) if form == "tuple" else [(result, table)]
        assert all(type(a) is type(b) and type_of(a) == type_of(b) for a, b in pairs), form


def type_of(column):
    return column.dtype if hasattr(column, "dtype") else column.type


def check_one(table):
    rows = rows_of(table)
    numbers = numbered(rows)
    n = int(numbers.max(initial=-1)) + 1
    first = np.array([numbers.tolist().index(i) for i in range(n)] if n < 500 else [], np.int64)
    counts = np.bincount(numbers, minlength=n)
    known = dict(zip(rows, numbers.tolist()))
    for form, x in forms(table):
        assert rows_of(x) == rows, form
        keys, index, inverse, times = roost.unique(
            x, return_index=True, return_inverse=True, return_counts=True
        )
        same_types(form, keys, x)
        np.testing.assert_array_equal(inverse, numbers, form)
        np.testing.assert_array_equal(times, counts, form)
        assert [known[row] for row in rows_of(keys)] == list(range(n)), form
        if n < 500:
            np.testing.assert_array_equal(index, first, form)
        keys, inverse = roost.unique(x, sorted=True, return_inverse=True)
        distinct = rows_of(keys)
        assert sorted(known[row] for row in distinct) == list(range(n)), form
        assert [known[distinct[i]] for i in inverse] == numbers.tolist(), form
        assert is_ascending(distinct), form
        codes, keys = roost.factorize(x)
        codes = np.asarray(codes)
        if len(table.columns) > 1:
            np.testing.assert_array_equal(codes, numbers, form)
        else:
            missing = np.array([row[0] is None or row[0] == "NaN" for row in rows], bool)
            np.testing.assert_array_equal(codes == -1, missing, form)
            others = numbered([row for row, gone in zip(rows, missing) if not gone])
            np.testing.assert_array_equal(codes[~missing], others, form)
            assert len(rows_of(keys)) == int(others.max(initial=-1)) + 1
        np.testing.assert_array_equal(roost.duplicated(x, keep=False), counts[numbers] > 1)
        keys, times = roost.value_counts(x)
        assert [counts[known[row]] for row in rows_of(keys)] == listed(times)
        assert (np.diff(times) <= 0).all()
        g = roost.group_by(x)
        sums = g.sum(np.arange(len(rows)))
        wanted = np.bincount(numbers, np.arange(len(rows)), n)
        assert len(g) == n
        assert [wanted[known[row]] for row in rows_of(g.keys)] == sums.tolist(), form
        same_types(form, g.keys, x)


def is_ascending(rows):
    """Nulls last, NaN before them."""

    def place(value):
        if value is None:
            return (2, 0)
        return (1, 0) if value == "NaN" else (0, value)

    places = [tuple(map(place, row)) for row in rows]
    return places == sorted(places)


def pick_kinds(rng, most):
    return [TYPES[i] for i in rng.integers(0, len(TYPES), int(rng.integers(1, most + 1)))]


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_one_table(seed):
    rng = np.random.default_rng(seed)
    n, part = int(rng.choice(SIZES)), float(rng.choice([0, 0.05, 0.5, 1]))
    check_one(table_of(rng, n, pick_kinds(rng, 8), part))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_each_type(kind):
    rng = np.random.default_rng(SEED)
    for part in 0, 0.1, 1:
        check_one(table_of(rng, 150, [kind], part))
        check_one(table_of(rng, 150, [kind, kind, pa.int8()], part))


def wider(rng, kind):
    """A type that a column of `kind` can be compared with, and that has its values."""
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return TEXTS[int(rng.integers(3))]
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_integer(kind) and kind.bit_width < 64:
        return pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns")
    return kind


def check_two(rng, kinds, n, part, nulls_equal):
    left = table_of(rng, n, kinds, part)
    extra = table_of(rng, max(n // 3, 1), kinds, part)
    picked = rng.integers(0, n, n // 2 if n else 0)
    some = pa.table({name: take(left[name], picked) for name in left.schema.names})
    right = pa.concat_tables([some.cast(extra.schema), extra])
    right = right.cast(pa.schema([(f"c{i}", wider(rng, kind)) for i, kind in enumerate(kinds)]))
    a, b = (rows_of(left), rows_of(right))
    places = {}
    for i, row in enumerate(b):
        if nulls_equal or None not in row:
            places.setdefault(row, []).append(i)
    matches = [(i, places.get(row, [])) for i, row in enumerate(a)]
    inner = [(i, j) for i, found in matches for j in found]
    outer = [(i, j) for i, found in matches for j in (found or [-1])]
    used = {j for _, j in inner}
    rest = [(-1, j) for j in range(len(b)) if j not in used]
    for (form, x), (_, y) in zip(forms(left), forms(right)):
        options = {"nulls_equal": nulls_equal}
        is_there = roost.isin(x, y, **options)
        assert listed(is_there) == [bool(found) for _, found in matches], form
        for how, wanted in (
            ("inner", inner),
            ("left", outer),
            ("outer", outer + rest),
            ("semi", [i for i, found in matches if found]),
            ("anti", [i for i, found in matches if not found]),
        ):
            rows = roost.join(x, y, how, **options)
            got = rows.tolist() if how in ("semi", "anti") else list(zip(*(r.tolist() for r in rows)))
            assert got == wanted, (form, how)


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_two_tables(seed):
    rng = np.random.default_rng(seed)
    n, part = int(rng.choice(SIZES)), float(rng.choice([0, 0.05, 0.5, 1]))
    check_two(rng, pick_kinds(rng, 6), n, part, bool(rng.integers(2)))


def merged(left, right, keys, how, nulls_equal):
    """The rows of a merge by the first `keys` columns: what `join` says of the rows, in Python."""
    a, b = rows_of(left), rows_of(right)
    one, two = ([row[:keys] for row in rows] for rows in (a, b))
    pairs = joined_rows(one, two, how, nulls_equal)
    if how in ("semi", "anti"):
        return [a[i] for i, _ in pairs]
    none, other_none = (None,) * (len(left.schema) - keys), (None,) * (len(right.schema) - keys)
    return [
        (two[j] if i is None else one[i])
        + (none if i is None else a[i][keys:])
        + (other_none if j is None else b[j][keys:])
        for i, j in pairs
    ]


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_merge(seed):
    rng = np.random.default_rng(seed)
    n, part = int(rng.choice([0, 1, 5, 40])), float(rng.choice([0, 0.2]))
    keys = [kind for kind in pick_kinds(rng, 3) if not pa.types.is_dictionary(kind)] or [pa.int32()]
    left = table_of(rng, n, [*keys, *pick_kinds(rng, 2)], part)
    right = table_of(rng, max(n // 2, 1), [*keys, *pick_kinds(rng, 2)], part)
    names = [f"c{i}" for i in range(len(keys))]
    nulls_equal = bool(rng.integers(2))
    others = dict(forms(right))
    for form, x in forms(left):
        if form == "tuple" or form not in others:
            continue
        y = others[form]
        for how in ("inner", "left", "right", "outer", "semi", "anti"):
            found = roost.merge(x, y, names, how=how, suffixes=("", "_2"), nulls_equal=nulls_equal)
            assert rows_of(found) == merged(left, right, len(keys), how, nulls_equal), (form, how)
            assert list(found.columns if form != "arrow" else found.column_names)[: len(keys)] == names
            if form != "pandas" and how in ("inner", "semi", "left"):
                wanted = [*left.schema.types, *right.schema.types[len(keys) :]]
                got = found.schema.types if form == "arrow" else found.to_arrow().schema.types
                assert form == "polars" or got == wanted[: len(got)]


def test_merge_of_names():
    a = pd.DataFrame({"k": [1, 2, 2], "v": [1.5, 2.5, 3.5], "t": ["a", "b", None]})
    b = pd.DataFrame({"key": [2, 3], "v": [7, 8]})
    found = roost.merge(a, b, left_on="k", right_on="key", how="outer")
    assert list(found.columns) == ["k", "v_x", "t", "v_y"]
    assert found["k"].tolist() == [1, 2, 2, 3]
    theirs = a.merge(b, left_on="k", right_on="key", how="left").drop(columns="key")
    pd.testing.assert_frame_equal(roost.merge(a, b, left_on="k", right_on="key", how="left"), theirs)
    assert roost.merge(a, b.rename(columns={"key": "k"}), on="k", how="semi")["k"].tolist() == [2, 2]
    assert len(roost.merge(a, a)) == 2  # by all columns, of which a null is equal to none
    assert len(roost.merge(a, a, nulls_equal=True)) == 3
    for wrong, error, words in (
        (lambda: roost.merge(a, pl.DataFrame(b)), TypeError, "two frames"),
        (lambda: roost.merge(a, b, on="k"), KeyError, "'k'"),
        (lambda: roost.merge(a, b, left_on="k"), ValueError, "right_on"),
        (lambda: roost.merge(a, b, left_on="k", right_on="key", how="one"), ValueError, "'inner'"),
        (lambda: roost.merge(a, b, left_on=["k", "v"], right_on="key"), TypeError, "2 and 1 columns"),
        (lambda: roost.merge(a, b, left_on="k", right_on="key", suffixes=("", "")), ValueError, "columns v"),
        (lambda: roost.merge(a, b[["v"]].rename(columns={"v": "w"})), ValueError, "without a common column"),
        (lambda: roost.merge(a, b, left_on="t", right_on="key"), TypeError, "merge: column 't'.*never equal"),
        (lambda: roost.merge(a, a, on=[]), KeyError, "on=\\[\\]"),
        (lambda: roost.merge(a.set_axis(["k", "v", "v"], axis=1), a, on="v"), KeyError, "share a name"),
        (lambda: roost.merge(a, a, on="k", nulls_equal=1), TypeError, "roost.merge: nulls_equal=1"),
    ):
        with pytest.raises(error, match=words) as caught:
            wrong()
        assert "\n" not in str(caught.value)


def test_many_columns():
    """More than C++ packs at once."""
    rng = np.random.default_rng(SEED)
    columns = tuple(rng.integers(0, 2, (40, 300)).astype(np.int8))
    columns = (*columns[:20], np.ma.masked_array(columns[0], columns[1]), *columns[20:])
    rows = rows_of(columns)
    keys, inverse = roost.unique(columns, return_index=True, return_inverse=True)[::2]
    np.testing.assert_array_equal(inverse, numbered(rows))
    assert [rows_of(keys)[i] for i in inverse] == rows
    assert roost.isin(columns, tuple(c[:9] for c in columns)).sum() == 9 - columns[20][:9].mask.sum()


def test_libraries_beside_each_other():
    a, b = np.array([3, 1, 3, 2]), torch_of(np.array([0.5, 0.5, 0.5, 1.5]))
    for x in ((a, b, pa.array([1, None, 1, 2])), (b, pa.array(["x", None, "x", "y"]), a)):
        keys = roost.unique(x, sorted=True)
        assert all(isinstance(key, np.ndarray) for key in keys) and len(keys[0]) == 3
    x, y = (torch_of(a), torch_of(a)), (a, a[::-1])
    assert roost.isin(x, y).tolist() == [False] * 4
    assert roost.isin(y, (torch_of(a), torch_of(a[::-1]))).tolist() == [True] * 4
    assert roost.join(x, (a, a), "semi").tolist() == [0, 1, 2, 3]


def test_a_tuple_is_columns():
    """Of lists as of arrays, in each function and table; and a list is rows."""
    shop, day = [1, 2, 1, 1], ["a", "b", "a", "b"]
    arrays = np.array(shop), np.array(day)
    pair = collections.namedtuple("Pair", "shop day")
    for x in ((shop, day), (arrays[0], day), (shop, arrays[1]), (range(1, 5), day), pair(shop, day)):
        same = (np.array(x[0]), arrays[1])
        rows = list(zip(same[0].tolist(), day))
        for call in (
            lambda x: roost.unique(x, sorted=True),
            lambda x: roost.factorize(x)[1],
            lambda x: roost.value_counts(x)[0],
            lambda x: roost.group_by(x).keys,
            lambda x: roost.Map(x, [5, 6, 7, 8]).keys(),
        ):
            keys, wanted = call(x), call(same)
            assert type(keys) is tuple and all(map(np.array_equal, keys, wanted))
        assert roost.isin(x, same).all() and roost.isin(same, x).all()
        assert roost.join(x, same, "semi").tolist() == roost.join(same, x, "semi").tolist() == [0, 1, 2, 3]
        assert roost.duplicated(x).tolist() == roost.duplicated(same).tolist()
        index, table = roost.Index(x), roost.Map(same, [5, 6, 7, 8])
        assert list(index) == rows and list(pickle.loads(pickle.dumps(index))) == rows
        assert index.get_indexer(x).tolist() == index.get_indexer(rows).tolist()
        assert index.get_indexer(rows).tolist() == [rows.index(row) for row in rows]
        assert table.find(x).tolist() == table[x].tolist() == table[same].tolist()
    assert roost.unique(([1, 2, 1],))[0].tolist() == [1, 2]
    assert [key.shape for key in roost.unique(([], []))] == [(0,), (0,)]
    assert roost.unique([[1, 2], [1, 2]]).tolist() == roost.unique([(1, 2), (1, 2)]).tolist() == [[1, 2]]
    assert roost.unique(("b", "a", "b"), sorted=True).tolist() == ["a", "b"]
    of_rows = roost.Map(np.array([[1, 3], [2, 4]]), [5, 6])
    assert of_rows.find([(2, 4), [1, 3]]).tolist() == [6, 5] and of_rows[2, 4] == 6
    for call in (
        lambda: roost.partition(([1, 2], [3, 4]), 2),
        lambda: of_rows.find(([1, 2], [3, 4])),
        lambda: of_rows[[1, 3], [2, 4]],
        lambda: roost.ConcurrentMap().find(([1], [3])),
        lambda: roost.Store().find((np.array([1]), np.array([3]))),
    ):
        with pytest.raises(TypeError, match="^[^\n]*: keys as a tuple of columns; pass one array[^\n]*$"):
            call()
    for call in (
        lambda: roost.unique(((1, 2), (3, 4))),
        lambda: roost.isin([(1, 2)], ([1, 2], (3, 4))),
        lambda: roost.Index(((1, 2), (3, 4))),
        lambda: roost.Index((shop, day)).get_indexer(((1, "a"), (2, "b"))),
        lambda: of_rows.find(((1, 3), (2, 4))),
        lambda: roost.partition(((1, 3), (2, 4)), 2),
    ):
        with pytest.raises(
            TypeError, match="^[^\n]*: (a tuple in a tuple of keys|keys as a tuple of rows); pass "
        ):
            call()
    with pytest.raises(TypeError, match="pass one key in a list, and columns as a tuple"):
        roost.Index((shop, day)).get_indexer((1, "a"))


def test_a_tuple_of_one_list_is_one_column():
    """As the list is: its numbers take the type of the keys, and an empty one has no type."""
    decimals = pa.array([decimal.Decimal("1.5")])
    for keys, asked in (
        (np.array([1, 2], "i4"), [2, 1]),
        (np.array([1, 2]), [2.0, 1.0]),
        (np.array([1, 2]), range(1, 3)),
        (np.array([0.1, 2], "f4"), [0.1]),
        (np.array([b"a", b"bc"]), [b"bc"]),
        (["a", "b"], ["b"]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (decimals, [decimal.Decimal("1.5")]),
    ):
        for table in (roost.Index(keys), roost.Set(keys)):
            for queries in (asked, []):
                find = table.contains if isinstance(table, roost.Set) else table.get_indexer
                assert find((queries,)).tolist() == find(queries).tolist()


def test_an_empty_list_fits_any_type():
    decimals, numbers = pa.array([decimal.Decimal("1.5"), None]), np.array([1, 2])
    for keys in (decimals, ["a", "b"], numbers, (decimals, numbers), (numbers, ["a", "b"])):
        lists = [[]] if not isinstance(keys, tuple) else [[], ([], [])]
        for none in lists:
            assert roost.isin(none, keys).tolist() == []
            assert roost.isin(keys, none).tolist() == [False, False]
            assert [side.tolist() for side in roost.join(keys, none)] == [[], []]
            assert roost.join(none, keys, "right")[1].tolist() == [0, 1]
            assert roost.Index(keys).get_indexer(none).tolist() == []


def test_bytes_that_are_no_key():
    table = roost.Map(np.array([b"ab"]), np.array([1]))
    for key in (b"abc", b"x" * 40, b"a\0"):
        assert key not in table and table.get(key) is None
        with pytest.raises(KeyError):
            table[key]
    with pytest.raises(OverflowError, match="too long"):
        table.find([b"x" * 40])
    changing = roost.ConcurrentMap(np.int64, np.int64, 10)
    changing[decimal.Decimal(5)] = 7
    assert changing[5] == 7


def test_floats_in_many_bits(on):
    """-0.0 is 0.0 and NaNs are one, sorted and not, where their column is not packed itself."""
    n = 4000
    rng = np.random.default_rng(SEED)
    bits = np.array([0, 1 << 63, 0x7FF8 << 48, 0xFFF8 << 48 | 1, 0x3FF0 << 48, 1], np.uint64)
    floats = bits[rng.integers(0, 6, n)].view(np.float64)
    columns = (floats, *(rng.integers(-(2**62), 2**62, 3)[rng.integers(0, 3, n)] for _ in range(5)))
    rows = list(zip(*([exact(value) for value in c.tolist()] for c in columns)))
    for options in {"sorted": True}, {"return_index": True}:
        keys = roost.unique(tuple(map(on, columns)), **options)
        keys = on.back(keys[0] if "return_index" in options else keys)
        assert not np.signbit(keys[0]).any()
        distinct = list(zip(*([exact(value) for value in key.tolist()] for key in keys)))
        assert set(distinct) == set(rows) and len(distinct) == len(set(rows))
        assert "sorted" not in options or is_ascending(distinct)


def test_columns_with_nulls_beside_lists():
    for numbers in (pl.Series([1, None, 3], dtype=pl.Int8), pa.array([1, None, 3], pa.uint8())):
        assert listed(roost.isin(numbers, [3, 4])) == [False, False, True]
        assert roost.isin([3, 4], numbers).tolist() == [True, False]
        assert listed(roost.isin(numbers, [])) == [False] * 3
        assert roost.join(numbers, np.array([3.0, 1.0]))[1].tolist() == [1, 0]
        with pytest.raises(TypeError, match="never equal"):
            roost.isin(numbers, ["a"])
    for texts in (pl.Series(["a", None, "b"]), pa.array(["a", None, "b"]).dictionary_encode()):
        assert listed(roost.isin(texts, ["b"])) == [False, False, True]
        assert roost.isin(["b", ""], texts).tolist() == [True, False]
        assert listed(roost.isin(texts, [])) == [False] * 3
        with pytest.raises(TypeError, match="never equal"):
            roost.isin(texts, np.arange(3))
    decimals = pa.array([decimal.Decimal("1.5"), None])
    assert listed(roost.isin(decimals, pl.Series([decimal.Decimal("1.5")]))) == [True, False]
    with pytest.raises(TypeError, match="scale 1 and int64"):
        roost.isin(decimals, np.arange(3))
    with pytest.raises(TypeError, match="scale 1 and decimals of scale 2"):
        roost.isin(decimals, pa.array([decimal.Decimal("1.50")]))


def test_types_of_pandas_and_numpy():
    """Nullable types, categories, objects and masked arrays come back as they were."""
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 1, 3, None], dtype="Int16"),
            "f": pd.array([0.5, None, 0.5, 1, None], dtype="Float32"),
            "b": pd.array([True, None, True, False, None], dtype="boolean"),
            "s": pd.array(["x", None, "x", "y", None], dtype="string"),
            "o": np.array(["x", None, "x", "y", np.nan], object),
            "c": pd.Categorical(["x", None, "x", "y", None], ["z", "y", "x"]),
            "n": pd.Categorical([5, None, 5, 7, None]),
            "d": np.array([3, 4, 3, 5, 4], "M8[s]"),
            "h": np.array([0.0, 2, -0.0, 1, 2], np.float16),
        }
    )
    for columns in ([name] for name in frame.columns), [list(frame.columns)]:
        for names in columns:
            keys, index, inverse = roost.unique(frame[names], return_index=True, return_inverse=True)
            pd.testing.assert_frame_equal(keys, frame[names].iloc[[0, 1, 3]].reset_index(drop=True))
            assert index.tolist() == [0, 1, 3] and inverse.tolist() == [0, 1, 0, 2, 1]
            g = roost.group_by(frame, names)
            assert sorted(g.sum(np.arange(5)).tolist()) == [2, 3, 5]
            assert list(g.keys.dtypes) == list(frame[names].dtypes)
            left, right = roost.join(frame[names], frame[names].iloc[::2], nulls_equal=True)
            assert list(zip(left, right))[-1] == (4, 2)
    for name in "ifbson":
        codes, uniques = roost.factorize(frame[name])
        assert codes.tolist() == [0, -1, 0, 1, -1] and len(uniques) == 2
        codes, uniques = roost.factorize(frame[name], use_na_sentinel=False)
        assert codes.tolist() == [0, 1, 0, 2, 1] and uniques.isna().tolist() == [False, True, False]
    rows = pl.Series([[1, 2], [1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2))
    assert roost.unique(rows, sorted=True).tolist() == [[1, 2], [3, 4]]
    assert listed(roost.isin(rows, rows[:1])) == [True, True, False]
    masked = np.ma.masked_array([2**62, 7, -(2**62), 7], [0, 1, 0, 1])
    keys = roost.unique(masked, sorted=True)
    assert keys.mask.tolist() == [False, False, True] and keys[:2].tolist() == [-(2**62), 2**62]
    codes, uniques = roost.factorize(np.ma.masked_array([-(2**63), 7, 2**63 - 1], [0, 1, 0]))
    assert codes.tolist() == [0, -1, 1] and not np.ma.isMaskedArray(uniques)
    floats = pl.Series([0.5, None, float("nan"), 0.5])
    assert listed(roost.factorize(floats)[0]) == [0, -1, -1, 0]
    assert listed(roost.factorize(floats, use_na_sentinel=False)[0]) == [0, 1, 2, 0]


@pytest.mark.parametrize("mask", [[0, 0, 0, 0], [0, 1, 0, 1]])
@pytest.mark.parametrize("values", [[2**62, 7, -(2**62), 7], [0.5, 1, -0.5, 1], ["a", "bc", "", "bc"]])
def test_columns_of_astropy(values, mask):
    """Arrays with masks are what numpy's are; quantities, whose units would be lost, are refused."""
    table, masked, u = (pytest.importorskip(f"astropy.{name}") for name in ("table", "utils.masked", "units"))
    plain = np.ma.masked_array(values, mask)
    for x in (table.MaskedColumn(values, mask=mask, unit="m"), masked.Masked(np.array(values), mask=mask)):
        found, wanted = (roost.unique(each, sorted=True) for each in (x, plain))
        assert found.tolist() == wanted.tolist() and type(found) is type(wanted)
        assert roost.isin(plain, x).tolist() == roost.isin(x, plain).tolist() == [not m for m in mask]
        found, wanted = (roost.group_by(each).max(each).tolist() for each in (x, plain))
        assert set(found) == set(wanted)
    if isinstance(values[0], float):
        assert roost.unique(np.array(values) * u.one, sorted=True).tolist() == sorted(set(values))
        groups = roost.group_by(plain)
        for x in (np.array(values) * u.km, masked.Masked(np.array(values) * u.km, mask=mask)):
            for call in (lambda: roost.unique(x), lambda: roost.isin(x, x), lambda: groups.sum(x)):
                with pytest.raises(TypeError, match="the unit km, which would be lost; pass x.to_value"):
                    call()


def test_rows_without_keys_are_in_no_group():
    frame = pd.DataFrame({"k": ["a", None, "b", "a"], "x": [1.0, 2.0, np.nan, 1.0]})
    values = np.array([1, 20, 300, 4000])
    g = roost.group_by(frame, ["k", "x"], dropna=True)
    assert len(g) == 1 and g.sum(values).tolist() == [4001] and g.count().tolist() == [2]
    assert g.max(pd.array([1, 2, 3, None], dtype="Int64")).tolist() == [1]
    assert g.min(pa.array(["z", None, "y", "x"])).tolist() == ["x"]
    assert g.first(values.astype("M8[s]")).tolist() == values[:1].astype("M8[s]").tolist()
    with pytest.raises(ValueError, match="4 keys but 2 values"):
        g.sum(values[:2])
    g = roost.group_by(frame["k"], dropna=True)
    assert sorted(zip(g.keys, g.sum(values).tolist())) == [("a", 4001), ("b", 300)]
    for x in (frame["x"].to_numpy(), torch_of(frame["x"].to_numpy())):
        g = roost.group_by(x, dropna=True)
        assert sorted(zip(g.keys.tolist(), g.sum(values).tolist())) == [(1.0, 4001), (2.0, 20)]
    assert len(roost.group_by(frame["k"], dropna=False)) == 3
    assert len(roost.group_by([1, 2, 1], dropna=True)) == 2
    with pytest.raises(KeyError, match="'q'"):
        roost.group_by(frame, ["k", "q"])
    with pytest.raises(TypeError, match="not a frame"):
        roost.group_by(values, "k")


def torch_of(array):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array.copy())


def test_tuples_of_each_library(on):
    rng = np.random.default_rng(SEED)
    for n, kinds in (
        (3000, ["i4", "u1", "f4"]),
        (40_000, ["i8", "f8", "f8", "?", "i8", "i8"]),
        (0, ["i2"] * 2),
    ):
        far = 2**62 if kinds[0] == "i8" else 9  # with which columns take more than 256 bits
        pools = [rng.integers(-far if kind == "i8" else -9, 9, 5).astype(kind) for kind in kinds]
        columns = [pool[rng.integers(0, 5, n)] for pool in pools]
        numbers = numbered(list(zip(*(c.tolist() for c in columns))))
        keys, inverse = roost.unique(tuple(map(on, columns)), return_index=True, return_inverse=True)[::2]
        np.testing.assert_array_equal(on.back(inverse), numbers)
        rows = list(zip(*(on.back(key).tolist() for key in keys)))
        assert [rows[i] for i in numbers[:100]] == list(zip(*(c[:100].tolist() for c in columns)))
        keys = roost.unique(tuple(map(on, columns)), sorted=True)
        rows = list(zip(*(on.back(key).tolist() for key in keys)))
        assert rows == sorted(rows) and len(rows) == numbers.max(initial=-1) + 1
        others = tuple(on(c[: n // 3]) for c in columns)
        left, right = map(on.back, roost.join(tuple(map(on, columns)), others, "left"))
        np.testing.assert_array_equal(np.unique(left), np.arange(n))
        hit = right >= 0
        np.testing.assert_array_equal(numbers[left[hit]], numbers[right[hit]])
        found = on.back(roost.isin(tuple(map(on, columns)), others))
        np.testing.assert_array_equal(found, np.isin(numbers, numbers[: n // 3]))
        g = roost.group_by(tuple(map(on, columns)))
        sums = on.back(g.sum(on(np.arange(n))))
        assert sums.sum() == n * (n - 1) // 2 and len(sums) == numbers.max(initial=-1) + 1


@pytest.mark.parametrize("n", [28_984, 28_986, 299_999, 300_001])
def test_sizes_where_tables_change(n):
    """Sizes on both sides of those where tables are built in another way, with few and many keys."""
    for seed in range(3):
        rng = np.random.default_rng([SEED, n, seed])
        most = int(rng.choice([10, 10_000, n]))
        x, y = rng.integers(0, most, n).astype(np.int32), rng.integers(0, 3, n).astype(np.int8)
        words = np.array([None if i % 7 == 0 else f"a longer text {i}" for i in range(1000)], object)
        frame = pl.DataFrame({"x": x, "y": y, "t": words[x % 1000].tolist(), "v": rng.integers(0, 100, n)})
        frame = frame.with_columns(pl.when(frame["x"] % 5 > 0).then(frame["x"]).alias("x"))
        names = ["x", "y", "t"]
        g = roost.group_by(frame, names)
        mine = g.keys.with_columns(pl.Series("v", g.sum(frame["v"])), pl.Series("n", g.count()))
        theirs = frame.group_by(names).agg(pl.col("v").sum(), pl.len().cast(pl.Int64).alias("n"))
        assert mine.sort([*names, "v"]).equals(theirs.sort([*names, "v"]))
        other = frame[: n // 4].unique(names)
        for equal in False, True:
            mine = roost.merge(frame, other, names, nulls_equal=equal)
            theirs = frame.join(other, on=names, nulls_equal=equal, suffix="_y", maintain_order="left")
            assert mine.rename({"v_x": "v"}).equals(theirs)
        assert roost.duplicated(frame[names]).sum() == n - frame.select(names).n_unique()
        assert len(roost.unique(frame[names])) == frame.select(names).n_unique()


def test_aggregates_of_frames():
    """Key columns and results in one frame, of the library and the types that came in."""
    columns = {
        "k": ["a", "b", None, "a"],
        "j": [1, 2, 1, 1],
        "v": [1, None, 3, None],
        "f": [1.5, 2.5, 3.5, 4.5],
        "t": ["x", "y", None, "w"],
        "d": [datetime.date(2024, 1, i) if i < 3 else None for i in (1, 2, 3, 4)],
    }
    table = pa.table(columns).set_column(2, "v", pa.array(columns["v"], pa.int32()))
    wanted = {
        "k": ["a", "b", None],
        "j": [1, 2, 1],
        "n": [2, 1, 1],
        "c": [1, 0, 1],
        "s": [1, None, 3],
        "m": [3.0, 2.5, 3.5],
        "sd": [3 / 2**0.5, None, None],
        "t0": ["w", "y", None],
        "t1": ["x", "y", None],
        "v1": [None, None, 3],
        "d0": [columns["d"][0], columns["d"][1], None],
        "q": [2.25, 2.5, 3.5],
        "x": [3, 2, 1],
    }
    kinds = {"v1": pa.int32(), "d0": pa.date32(), "m": pa.float64(), "s": pa.int64()}
    for x in (
        table,
        pl.from_arrow(table),
        table.to_pandas(types_mapper=pd.ArrowDtype),
        table.to_pandas(date_as_object=False).astype({"v": "Int32"}),
    ):
        g = roost.group_by(x, ["k", "j"])
        found = g.agg(
            n="count",
            c=("v", "count"),
            s=("v", "sum"),
            m=("f", "mean"),
            sd=("f", "std"),
            t0=("t", "min"),
            t1=("t", "first"),
            v1=("v", "last"),
            d0=("d", "min"),
            q=("f", "quantile", 0.25),
            x=(np.array([1, 2, 1, 2]), "sum"),
        )
        assert type(found) is type(x)
        result = pa.Table.from_pandas(found) if isinstance(x, pd.DataFrame) else pa.table(found)
        for name, kind in kinds.items():
            if not isinstance(x, pd.DataFrame) or name != "d0":
                assert result.schema.field(name).type == kind, name
        result = result.to_pydict()
        order = [result["k"].index(key) for key in wanted["k"]]
        assert list(result) == list(wanted)
        for name, values in wanted.items():
            got = [result[name][i] for i in order]
            got = [None if value != value else value for value in got]
            got = [value.date() if isinstance(value, datetime.datetime) else value for value in got]
            assert got == pytest.approx(values), name
        assert [None if sum is pd.NA else sum for sum in listed(g.sum("v"))] == result["s"]
        with pytest.raises(KeyError, match="'z'"):
            g.agg(s=("z", "sum"))
        with pytest.raises(KeyError, match="'z'"):
            g.sum("z")
        with pytest.raises(ValueError, match="'k' is the name of a key"):
            g.agg(k=("v", "sum"))
        with pytest.raises(TypeError, match="a single q"):
            g.agg(q=("f", "quantile", [0.1, 0.2]))
        dropped = roost.group_by(x, ["k", "j"], dropna=True).agg(s=("f", "sum"), t1=("t", "first"))
        rows = rows_of(dropped if not isinstance(dropped, pd.DataFrame) else pa.Table.from_pandas(dropped))
        assert sorted(rows) == [("a", 1, 6.0, "x"), ("b", 2, 2.5, "y")]
    assert sorted(roost.group_by(x[["k"]]).agg(n=("k", "count"))["n"]) == [0, 1, 2]
    arrays = np.array([1, 1, 2]), np.array([3, 3, 3])
    found = roost.group_by(arrays).agg(s=([1, 2, 4], "sum"))
    assert sorted(found["s"].tolist()) == [3, 4]


def test_keys_are_those_of_the_call():
    """Whatever becomes of arrays afterwards, and without keeping them."""
    a, b = np.array([1, 2, 1]), np.array(["x", "y", "x"])
    frame = pd.DataFrame({"a": a.copy(), "b": b.copy(), "c": pd.Categorical(b)})
    wide = tuple(np.array([2**62 * i, -(2**62) * i, 0]) for i in (1, -1, 1, -1, 1))
    groups = [roost.group_by(x) for x in ((a, b), frame, wide)]
    a[:], b[:] = 9, "z"
    frame.loc[:, "a"], frame.loc[:, "b"] = 9, "z"
    for column in wide:
        column[:] = 9
    keys = [roost.group_by((np.array([1, 2, 1]), np.array(["x", "y", "x"]))).keys, groups[0].keys]
    assert rows_of(keys[0]) == rows_of(keys[1])
    assert sorted(zip(*groups[1].keys.astype(str).to_numpy().T)) == [("1", "x", "x"), ("2", "y", "y")]
    assert sorted(rows_of(groups[2].keys)) == sorted(
        [tuple(s * 2**62 for s in (1, -1, 1, -1, 1)), tuple(s * 2**62 for s in (-1, 1, -1, 1, -1)), (0,) * 5]
    )
    column = np.arange(1000)
    kept = weakref.ref(column)
    g = roost.group_by((column, column % 7))
    del column
    gc.collect()
    assert kept() is None and len(g.keys[0]) == 1000


def test_merges_are_exact_or_refused():
    pandas = pytest.importorskip("pandas")
    left = pandas.DataFrame({"a": [1, 2]})
    large = pandas.DataFrame({"a": [1], "v": [2**60 + 1]})
    assert roost.merge(left, large, on="a")["v"].tolist() == [2**60 + 1]
    for each in (large, large.astype({"v": "Int64"})):
        found = roost.merge(left, each, on="a", how="left")["v"]
        assert found.dtype == "Int64" and found.tolist() == [2**60 + 1, pandas.NA]
    assert roost.merge(left, large.assign(v=7), on="a", how="left")["v"].dtype == float
    columns = [pandas.Series([v], dtype=t).astype("category") for v, t in ((1, "i1"), (2**60 + 1, "i8"))]
    found = roost.merge(*(pandas.DataFrame({"a": column}) for column in columns), how="outer")["a"]
    assert found.dtype == "int64" and found.tolist() == [1, 2**60 + 1]
    below = np.ma.array([0.5], mask=[True])  # which lies below a null
    assert len(roost.join(below, pa.array([None], pa.int64()), nulls_equal=True)[0]) == 1
    two = pandas.DataFrame({"a": [2**53 + 1]}), pandas.DataFrame({"a": [0.5]})
    assert len(roost.merge(*two, how="left")) == 1
    with pytest.raises(OverflowError, match="neither int64 nor float64 holds"):
        roost.merge(*two, how="outer")
    frame = pandas.DataFrame({"a": [1, 1], "v": [1, 2]})
    assert [*roost.merge(frame, frame, on="a", suffixes=(None, "_r"))] == ["a", "v", "v_r"]
    objects = frame.astype({"v": str}).astype({"v": object})
    assert (roost.merge(objects, objects, on="v", how="outer").dtypes[["v"]] == object).all()
    for wrong in (("_r",), "_r", (1, 2)):
        with pytest.raises(TypeError, match="give two texts"):
            roost.merge(frame, frame, on="a", suffixes=wrong)
    with pytest.raises(TypeError, match="select them in one order"):
        roost.isin(frame, frame[["v", "a"]])
    assert roost.group_by(frame, pandas.Index(["a"])).agg(self=("v", "sum"))["self"].tolist() == [3]


def test_outer_merges_have_a_type_of_both_sides():
    """Keys of two types, whose values the common type has as they are."""
    for one, other in itertools.permutations(("ms", "us", "ns"), 2):
        wanted = [1 * NANOSECONDS[one], 1500 * NANOSECONDS[one], 0, 1 * NANOSECONDS[other]]
        for kind in (pl.Datetime, pl.Duration):
            frames = [
                pl.DataFrame({"k": pl.Series(values, dtype=kind(unit))})
                for values, unit in (([1, 1500], one), ([0, 1], other))
            ]
            found = roost.merge(*frames, on="k", how="outer")["k"]
            assert (found.to_physical() * NANOSECONDS[found.dtype.time_unit]).to_list() == wanted
    text = pa.array(["a", "b"])
    for left, right, kind, wanted in (
        (pa.array(["a"]).dictionary_encode(), text, pa.string(), ["a", "b"]),
        (text, pa.array(["c"]).dictionary_encode(), pa.string(), ["a", "b", "c"]),
        (pa.array([True]), pa.array([1, 300], pa.int16()), pa.int16(), [1, 300]),
        (pa.array([True]), pa.array([2], pa.uint64()), pa.uint64(), [1, 2]),
    ):
        found = roost.merge(pa.table({"k": left}), pa.table({"k": right}), on="k", how="outer")["k"]
        assert found.type == kind and found.to_pylist() == wanted
    days = pa.table({"k": pa.array([1], pa.date32())})
    times = pa.table({"k": pa.array([86_400_000, 5], pa.timestamp("ms"))})
    for frames in ((days, times), (times, days)):
        found = roost.merge(*frames, on="k", how="outer")["k"]
        assert found.type == pa.timestamp("ms")
        assert sorted(found.cast(pa.int64()).to_pylist()) == [5, 86_400_000]


def test_one_key_of_decimals_is_any_number():
    """As Python compares it: 2.0 is Decimal(2), and 0.1 is not Decimal("0.1")."""
    D, F = decimal.Decimal, fractions.Fraction
    keys = pa.array([D("1.0"), D("2.0"), D("-1.5"), D("0.1")])
    held, mapped = roost.Set(keys), roost.Map(keys, np.arange(4))
    index, copies = roost.Index(keys), roost.MultiMap(keys, np.arange(4))
    two = roost.Set((keys, np.arange(4)))
    for row, equal in enumerate((
        [1, True, np.True_, np.int8(1), np.uint64(1), 1.0, 1 + 0j, np.complex64(1), F(1), D("1.00")],
        [2, np.int64(2), 2.0, np.float32(2), np.longdouble(2), F(4, 2), D(2)],
        [-1.5, np.float16(-1.5), F(-3, 2), -1.5 + 0j, D("-1.50")],
        [F(1, 10), D("0.1")],
    )):  # fmt: skip
        for key in equal:
            assert key in held and key in index and (key, row) in two and (key, 9) not in two, key
            assert mapped[key] == row and mapped.get(key) == row and copies[key].tolist() == [row]
    long = np.longdouble(1) + np.finfo(np.longdouble).eps
    beyond = [2**200, 10**5000, 1e300, np.inf, np.nan, 1j]
    for key in [0.1, np.float32(0.1), 3, F(1, 3), D("1.05"), long, *beyond]:
        assert key not in held and key not in index and mapped.get(key, "absent") == "absent"
        with pytest.raises(KeyError):
            mapped[key]
    for key in ("1", b"1", np.datetime64("2020-01-01")):
        assert key not in held
        with pytest.raises(TypeError, match="decimals of scale 1 are never equal"):
            mapped[key]
    hundreds = roost.Set(pa.array([D(100), D(1200)], pa.decimal128(5, -2)))
    assert 100 in hundreds and 1200.0 in hundreds and np.int8(100) in hundreds and 150 not in hundreds
    times = roost.Set(pa.array([5], pa.time32("s")))
    assert datetime.time(0, 0, 5) in times and 5 not in times


def test_names_and_types_of_results():
    pa, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    assert roost.group_by(polars.DataFrame({"": [1, 1]}), [""]).keys.columns == [""]
    texts = ["b", "a", None]
    types = [pa.large_string(), pa.string_view(), pa.date64(), pa.dictionary(pa.int8(), pa.string())]
    for values, kind in zip((texts, texts, [1, 2, None], texts), types):
        for kept in (values, [None] * 3):
            column = pa.array(kept, pa.string() if pa.types.is_dictionary(kind) else kind).cast(kind)
            groups = roost.group_by(pa.table({"k": [1, 1, 2], "v": column}), ["k"])
            found = groups.agg(low=("v", "min"), most=("v", "mode"), any=("v", "first"))
            assert found.schema.types[1:] == [kind] * 3
    for values in (["x", "y"], [None, None]):
        frame = polars.DataFrame({"k": [1, 1], "v": polars.Series(values, dtype=polars.Categorical)})
        assert roost.group_by(frame, ["k"]).agg(v=("v", "max"))["v"].dtype == polars.Categorical
    assert roost.group_by([1, 1]).min(pandas.Series([b"x", None], dtype=object)).tolist() == [b"x"]
    encoded = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    assert roost.unique(pa.table({"a": encoded}))["a"].to_pylist() == ["a", "b"]
    with pytest.raises(TypeError, match="list<"):
        roost.unique(pa.array([[1], None]))


def test_an_order_of_categories_is_not_ignored():
    """Sizes are not compared as texts; as keys, and for what compares nothing, they are like others."""
    pandas, polars, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    sizes = ["S", "L", "M", "S"]
    ordered = pandas.Series(pandas.Categorical(sizes, ["S", "M", "L"], ordered=True))
    arrow = pa.array(ordered)
    numbers = pandas.Series(pandas.Categorical([10, 9, 9, 10], [10, 9], ordered=True))
    enum = polars.Series(sizes, dtype=polars.Enum(["S", "M", "L"]))
    for column in (ordered, ordered.astype(pandas.ArrowDtype(arrow.type)), arrow, enum, numbers):
        groups = roost.group_by([1, 1, 2, 2])
        for method in (groups.min, groups.max, groups.mode):
            with pytest.raises(TypeError, match="an order of their own"):
                method(column)
        for several in (column, (column, np.arange(4))):
            with pytest.raises(TypeError, match="roost.unique: .*an order of their own"):
                roost.unique(several, sorted=True)
        assert len(roost.unique(column)) == len(
            set(column.to_list() if hasattr(column, "to_list") else sizes)
        )
        assert listed(groups.nunique(column)) == [2, 2]
    for frame in (pandas.DataFrame({"k": [1, 1, 1, 1], "s": ordered}), polars.DataFrame({"k": 1, "s": enum})):
        with pytest.raises(TypeError, match="an order of their own"):
            roost.group_by(frame, "k").agg(m=("s", "max"))
        with pytest.raises(TypeError, match="an order of their own"):
            roost.unique(frame, sorted=True)
        assert [*roost.group_by(frame, "k").agg(n=("s", "count"))["n"]] == [4]
    assert roost.group_by([1] * 4).max(ordered.cat.codes.to_numpy()).tolist() == [2]
    foreign = type(
        "Foreign", (), {"__arrow_c_array__": lambda self, *schema: arrow.__arrow_c_array__(*schema)}
    )
    with pytest.raises(TypeError, match="an order of their own"):
        groups.max(foreign())
    loose = pandas.Series(pandas.Categorical(sizes))
    assert groups.max(loose).tolist() == ["S", "S"]
    assert roost.unique(loose, sorted=True).tolist() == ["L", "M", "S"]


def test_sums_of_durations_do_not_wrap():
    whole = np.array([2**61, 2**61], "m8[ns]")
    assert roost.group_by([1, 1]).sum(whole).view("i8").tolist() == [2**62]
    with pytest.raises(OverflowError, match="durations"):
        roost.group_by([1, 1, 2]).sum(np.array([2**62, 2**62, 5], "m8[ns]"))


FEW = [
    ("short", lambda k: [f"id{i}" for i in k]),
    ("middle", lambda k: [f"customer {i:06}"[:15] for i in k]),
    ("long", lambda k: [f"a customer with the number {i}" for i in k]),
    ("int32", lambda k: k.astype(np.int32)),
    ("int64", lambda k: k * 10**12 - 5),
    ("float64", lambda k: k / 7),
]
MEASURES = {
    "i1": lambda rng, n: rng.integers(-128, 128, n, np.int8),
    "u8": lambda rng, n: rng.integers(0, 2**62, n).astype(np.uint64),
    "b1": lambda rng, n: rng.integers(0, 50, n) == 0,
    "f4": lambda rng, n: rng.uniform(1, 2, n).astype(np.float32),
    "f8": lambda rng, n: rng.normal(100, 1, n),
}


@pytest.mark.parametrize("kind", range(len(FEW)), ids=[name for name, _ in FEW])
@pytest.mark.parametrize(
    "n, distinct, nulls",
    [(131_071, 90, False), (131_072, 90, True), (150_000, 16_000, True), (150_000, 17_000, False)],
)
def test_few_groups_of_many_rows(n, distinct, nulls, kind):
    rng = np.random.default_rng(n + distinct + kind)
    picked = rng.integers(0, distinct, n)
    pool = pd.Series(FEW[kind][1](np.arange(distinct)))
    frame = pd.DataFrame({"key": pool.iloc[picked].reset_index(drop=True), "other": picked % 3})
    for name, make in MEASURES.items():
        frame[name] = pd.array(make(rng, n))
        if nulls:
            frame[name] = frame[name].mask(rng.random(n) < 0.1)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for keys in (["key"], ["key", "other"]):
        by = frame.groupby(keys, sort=False)
        groups = roost.group_by(table, keys)
        order = roost.join(table.select(keys).take(pa.array(by.head(1).index)), groups.keys)[1]
        wanted = {"rows": by.size()}
        found = {"rows": groups.count()}
        for name in MEASURES:
            methods = "sum min max mean count first last" if name != "b1" else "any all count"
            methods += " var median nunique" if name in ("i1", "f8") else ""
            for how in methods.split():
                wanted[f"{name} {how}"] = getattr(by[name], how)()
                found[f"{name} {how}"] = getattr(groups, how)(table[name])
        assert len(groups) == len(wanted["rows"]) == len(order)
        for name, expected in wanted.items():
            got = np.ma.filled(np.ma.asarray(found[name]).astype(float), np.nan)[order]
            if name.endswith((" first", " last")) and nulls:
                continue  # pandas skips nulls there
            expected = expected.astype("Float64").to_numpy(float, na_value=np.nan)
            if nulls and name.endswith((" sum", " any", " all")):  # where pandas has 0 for no values
                expected[wanted[f"{name.split()[0]} count"].to_numpy() == 0] = np.nan
            exact = 3e-5 if "f4" in name else 1e-6 if "var" in name else 1e-9
            np.testing.assert_allclose(got, expected, rtol=exact, err_msg=name)


class Exporter:
    """Some library's array or frame, of which only Arrow's interface is known."""

    def __init__(self, of):
        self._of = of

    def __arrow_c_stream__(self, requested_schema=None):
        return self._of.__arrow_c_stream__(requested_schema)


class ArrayExporter:
    """The same of what is in one piece."""

    def __init__(self, of):
        self._of = of

    def __arrow_c_array__(self, requested_schema=None):
        return self._of.__arrow_c_array__(requested_schema)


def test_other_libraries_by_the_interface_of_arrow():
    rng = np.random.default_rng(1)
    table = table_of(rng, 300, [pa.int16(), pa.string(), pa.float64()], 0.1).combine_chunks()
    frame, values = Exporter(table), Exporter(table["c2"])
    assert roost.unique(frame).equals(roost.unique(table))
    assert roost.unique(table.to_reader()).equals(roost.unique(table))
    assert roost.unique(ArrayExporter(table.to_batches()[0])).equals(roost.unique(table))
    assert roost.merge(frame, table, on="c1").equals(roost.merge(table, table, on="c1"))
    wanted = roost.group_by(table, ["c0"]).agg(sum=("c2", "sum"))
    assert roost.group_by(frame, ["c0"]).agg(sum=(values, "sum")).equals(wanted)
    for column in (table["c0"], table["c1"]):
        for exporter in (Exporter(column), ArrayExporter(column.chunk(0))):
            got, known = roost.factorize(exporter), roost.factorize(column)
            np.testing.assert_array_equal(got[0], known[0])
            np.testing.assert_array_equal(np.ma.getdata(got[1]), np.ma.getdata(known[1]))
    with pytest.raises(TypeError, match="roost.unique: column 'x': an Arrow column of type list"):
        roost.unique(Exporter(pa.table({"x": [[1], [2]]})))
    for keys in (frame, ArrayExporter(table.to_batches()[0]), table.to_reader()):
        index, members = roost.Index(keys), roost.Set(table)
        wanted = roost.Index(table).get_indexer(table)
        for asked in (frame, ArrayExporter(table.to_batches()[0]), table.to_reader()):
            np.testing.assert_array_equal(index.get_indexer(asked), wanted)
        assert pickle.loads(pickle.dumps(index)).contains(frame).all() and members.contains(frame).all()
    plain_index = roost.Index(np.array([1, 2]))
    for exporter in (Exporter(pa.chunked_array([[2, None]])), ArrayExporter(pa.array([2, None]))):
        assert plain_index.get_indexer(exporter).tolist() == [1, -1]


def plain(value):
    """A value that a table has made for Python, as `exact` has it."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        unit = np.datetime_data(value.dtype)[0]
        return int(value.view(np.int64)) * NANOSECONDS.get(unit, 1)
    return exact(python(value))


def keys_of(form, keys):
    """Keys that a table has made for Python, as tuples of exact values."""
    return [tuple(map(plain, [key] if form.startswith("column") else key)) for key in keys]


def rows_of_keys(form, keys):
    return rows_of((keys,) if form.startswith("column") else keys)


def table_forms(table):
    """The forms of `forms`, and a column alone."""
    for form, x in forms(table):
        yield form, x
        if len(table.columns) == 1 and form != "tuple":
            yield f"column of {form}", x[x.columns[0]] if form == "pandas" else x["c0"]


def check_tables(form, x, rows, asked):
    """The four tables of keys `x`, whose rows are `rows`; `asked`: queries, each with their rows."""
    first, all_of, n = {}, {}, len(rows)
    for i, row in enumerate(rows):
        first.setdefault(row, i)
        all_of.setdefault(row, []).append(i)
    values = np.arange(n)
    index, members = roost.Index(x), roost.Set(x)
    map, multi = roost.Map(x, values), roost.MultiMap(x, values)
    tables = index, map, members, multi
    assert all(table.valid() for table in tables)
    assert [len(table) for table in tables] == [n, len(first), len(first), n]
    assert multi.key_count == len(first) and index.is_unique == (len(first) == n)
    for queries, theirs in asked:
        expected = np.array([first.get(row, -1) for row in theirs], np.int64)
        for dtype in "int64", "int32":
            np.testing.assert_array_equal(index.get_indexer(queries, index_dtype=dtype), expected, form)
        for table in tables:
            np.testing.assert_array_equal(table.contains(queries), expected >= 0)
        np.testing.assert_array_equal(map.find(queries, missing=-1), expected)
        lists = [all_of.get(row, []) for row in theirs]
        counts = np.array([len(each) for each in lists], np.int64)
        np.testing.assert_array_equal(multi.count(queries), counts)
        offsets, found = multi.find(queries)
        assert offsets.tolist() == [0, *np.cumsum(counts)] and listed(found) == sum(lists, [])
        numbers, found = multi.find_pairs(queries)
        assert numbers.tolist() == np.repeat(np.arange(len(lists)), counts).tolist()
        assert listed(found) == sum(lists, [])
        absent = int((expected < 0).sum())
        if absent:
            with pytest.raises(KeyError, match=f"{absent} of {len(expected)} keys"):
                map[queries]
        else:
            np.testing.assert_array_equal(map[queries], expected)
    for keys, values in map.items(), multi.items():
        assert [rows[i] for i in listed(values)] == rows_of_keys(form, keys), form
        same_types(form, keys, x)
    assert sorted(listed(multi.items()[1])) == list(range(n)) and len(map.values()) == len(first)
    for table in map, members:
        distinct = rows_of_keys(form, table.keys())
        assert sorted(first[row] for row in distinct) == sorted(first.values())
        assert keys_of(form, table) == distinct
        same_types(form, table.keys(), x)
    assert keys_of(form, index) == rows
    for i in range(0, n, max(n // 3, 1)):
        key = index[i]
        assert all(key in table for table in tables), (form, key)
        assert map[key] == map.get(key) == first[rows[i]] and multi[key].tolist() == all_of[rows[i]]
    for table in tables:
        again = pickle.loads(pickle.dumps(table))
        assert len(again) == len(table) and again.valid()
        for queries, _ in asked[:1]:
            np.testing.assert_array_equal(again.contains(queries), table.contains(queries))
    assert keys_of(form, pickle.loads(pickle.dumps(index))) == rows


def check_tables_of(rng, kinds, n, part):
    """Tables of random columns, asked for some of their rows, for others, and in other forms and types."""
    table, extra = table_of(rng, n, kinds, part), table_of(rng, max(n // 3, 1), kinds, part)
    picked = rng.integers(0, n, n // 2 if n else 0)
    some = pa.table({name: take(table[name], picked) for name in table.schema.names})
    asked = pa.concat_tables([some.cast(extra.schema), extra])
    wide = asked.cast(pa.schema([(f"c{i}", wider(rng, kind)) for i, kind in enumerate(kinds)]))
    rows, theirs = rows_of(table), rows_of(asked)
    others = dict(table_forms(wide))
    for form, x in table_forms(table):
        alike = [dict(table_forms(asked))[form]]
        if form.startswith("column") and not table.column(0).null_count:
            alike.append((asked.column(0),))  # of no other type: it is an array of keys
        else:
            alike += [others[each] for each in (form, "tuple")]
        check_tables(form, x, rows, [*((queries, theirs) for queries in alike), (x, rows)])


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_tables_of_columns(seed):
    rng = np.random.default_rng(seed)
    n, part = int(rng.choice(SIZES[:-1])), float(rng.choice([0, 0.05, 0.5, 1]))
    check_tables_of(rng, pick_kinds(rng, 6), n, part)


@pytest.mark.parametrize("kind", of_the_day(TYPES), ids=str)
def test_tables_of_each_type(kind):
    rng = np.random.default_rng(SEED)
    for part in 0, 0.1, 1:
        check_tables_of(rng, [kind], 40, part)
    check_tables_of(rng, [kind, pa.int8(), kind], 60, 0.1)


NUMBERS = [*INTEGERS, pa.bool_(), pa.float32(), pa.float64(), pa.float16()]


def edges(kind):
    """Values of a type of numbers, those at its ends and those next to the ends of others."""
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype.kind == "b":
        return np.array([True, False])
    ends = [
        sign * (2**bits + more)
        for bits in (0, 7, 8, 15, 24, 31, 32, 53, 63, 64)
        for more in (-1, 0, 1)
        for sign in (1, -1)
    ]
    if dtype.kind == "f":
        floats = [*map(float, ends), 0.5, -0.0, np.nan, np.inf, 5e-324, 1e-45, 65504.0, 1e300]
        with np.errstate(over="ignore"):
            return np.unique(np.array(floats).astype(dtype))
    limits = np.iinfo(dtype)
    return np.unique(np.array([each for each in ends if limits.min <= each <= limits.max], dtype))


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_queries_of_other_numbers(kind):
    """By value, as Python compares numbers: exactly."""
    mine = edges(kind)
    for keys in (mine, mine[::2], mine[1::2], mine[:1]):
        rows = {exact(value): i for i, value in enumerate(keys.tolist())}
        texts = np.array(["a", "b"])[np.arange(len(keys)) % 2]
        first = np.arange(len(keys) + 1) == 0
        masked = roost.Index(np.ma.masked_array(np.append(keys[:1], keys), first))
        table = roost.Index((texts, keys))
        for other in NUMBERS:
            asked = edges(other)
            wanted = np.array([rows.get(exact(value), -1) for value in asked.tolist()])
            assert (masked.get_indexer(asked) == np.where(wanted < 0, -1, wanted + 1)).all(), other
            for with_nulls in False, True:
                gone = (np.arange(len(asked)) % 3 == 0) & with_nulls
                found = table.get_indexer((texts[wanted], np.ma.masked_array(asked, gone)))
                assert (found == np.where(gone, -1, wanted)).all(), other
                found = masked.get_indexer(np.ma.masked_array(asked, gone))
                assert (found == np.where(gone, 0, np.where(wanted < 0, -1, wanted + 1))).all(), other
            if kind in (pa.float16(), pa.float32()):
                continue  # which a float of Python is near
            for value, row in list(zip(asked.tolist(), wanted.tolist()))[::5]:
                assert (value in masked) == ((str(texts[row]), value) in table) == (row >= 0), (other, value)
                assert table.get_indexer([("a", value), ("b", value)]).max() == row


UNITS = ["D", "s", "ms", "us", "ns"]


@pytest.mark.parametrize("family", "Mm")
def test_queries_of_other_units(family):
    days = np.array([0, 1, -1, 20_000, 2**62, -(2**62)], "i8")
    nanoseconds = {unit: NANOSECONDS.get(unit, 86400 * 10**9) for unit in UNITS}
    for mine in UNITS:
        numbers = np.append(days * (86400 * 10**9 // nanoseconds[mine] if mine != "ns" else 1), [5, 10**9])
        numbers = np.unique(numbers)
        keys = numbers.astype(f"{family}8[{mine}]")
        rows = {value * nanoseconds[mine]: i for i, value in enumerate(numbers.tolist())}
        table, masked = roost.Index((keys, keys)), roost.Index(np.ma.masked_array(keys, numbers == 5))
        for other in UNITS:
            asked = np.unique(np.append(numbers, days))
            wanted = np.array([rows.get(value * nanoseconds[other], -1) for value in asked.tolist()])
            dates = asked.astype(f"{family}8[{other}]")
            assert (table.get_indexer((dates, dates)) == wanted).all(), (mine, other)
            assert (
                masked.get_indexer(dates) == np.where(wanted == rows[5 * nanoseconds[mine]], -1, wanted)
            ).all()
            assert [(date, date) in table for date in dates] == (wanted >= 0).tolist()
        with pytest.raises(TypeError, match="never equal"):
            table.get_indexer((dates.astype("mM"["mM".index(family) - 1] + "8"), dates))


def test_many_columns_of_tables():
    """More than C++ packs at once: more columns, or more bits."""
    rng = np.random.default_rng(SEED)
    narrow = tuple(rng.integers(0, 2, (40, 300)).astype(np.int8))
    narrow = (*narrow[:20], np.ma.masked_array(narrow[0], narrow[1]), *narrow[20:])
    far = [2**62, -(2**62), 3]
    wide = tuple(np.array(far)[rng.integers(0, 3, 300)] for _ in range(7))
    wide = (
        np.array(["x", "y", "z"])[wide[0] % 3],
        *wide[1:3],
        np.ma.masked_array(wide[3], wide[4] == 3),
        *wide[4:],
    )
    for columns in (narrow, wide):
        rows = rows_of(columns)
        asked = tuple(c[:50].copy() for c in columns)
        for c in (0, 1, 19 % len(asked), -1):
            asked[c][c % 50 :: 7] = asked[c][(c + 1) % 50]
        theirs = rows_of(asked)
        check_tables("tuple", columns, rows, [(asked, theirs), (columns, rows)])
        table = pa.table({f"c{i}": pa.array(c) for i, c in enumerate(columns)})
        for form, x in forms(table):
            check_tables(form, x, rows, [(asked, theirs), (x, rows)])
        other = tuple(c.astype("i8") if c.dtype.kind == "i" else c for c in asked)
        other[1][:3] = 2**40  # which int8 has not
        found = roost.Index(columns).get_indexer(other)
        assert (found[:3] == -1).all() and (found[3:] == roost.Index(columns).get_indexer(asked)[3:]).all()


@pytest.mark.parametrize("n", [0, 1, 1000, 140_000])
def test_tables_of_sizes(n):
    """Beside the rows' numbers by `unique`, which other tests compare with dicts."""
    rng = np.random.default_rng([SEED, n])
    x, y = rng.integers(0, max(n // 2, 1), n).astype(np.int32), rng.integers(0, 3, n).astype(np.int16)
    texts = pa.array([None if i % 11 == 0 else f"a longer text {i % 977}" for i in x])
    columns = {"x": pa.array(x, mask=x % 5 == 0), "y": y, "t": texts}
    table, asked = pa.table(columns), pa.table({**columns, "y": (y * 2).astype(np.int64)})
    both = pa.concat_tables([table, asked.cast(table.schema)])
    numbers = roost.factorize(both)[0]
    first = np.full(2 * n + 1, -1)
    first[numbers[:n][::-1]] = np.arange(n)[::-1]
    for make in (
        lambda t: t,
        pl.from_arrow,
        lambda t: tuple(t.columns),
        lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    ):
        made = make(table)
        index, mapped, held = roost.Index(made), roost.Map(made, np.arange(n)), roost.Set(made)
        copies = roost.MultiMap(made, np.arange(n))
        for queries, wanted in ((table, first[numbers[:n]]), (asked, first[numbers[n:]])):
            for q in (make(queries), tuple(queries.columns)):
                np.testing.assert_array_equal(index.get_indexer(q), wanted)
                np.testing.assert_array_equal(mapped.find(q, missing=-1), wanted)
                np.testing.assert_array_equal(held.contains(q), wanted >= 0)
                offsets, rows = copies.find(q)
                np.testing.assert_array_equal(
                    np.asarray(rows)[offsets[:-1][wanted >= 0]], wanted[wanted >= 0]
                )


def test_tables_of_tuples_of_each_library(on):
    rng = np.random.default_rng(SEED)
    for n, kinds in (
        (0, ["i4", "i2"]),
        (3000, ["i4", "u1", "f4"]),
        (5000, ["i8", "f8", "f8", "?", "i8", "i8"]),
    ):
        far = 2**62 if kinds[0] == "i8" else 9  # with which columns take more than 256 bits
        pools = [rng.integers(-far if kind == "i8" else -9, 9, 5).astype(kind) for kind in kinds]
        columns = [pool[rng.integers(0, 5, n)] for pool in pools]
        rows = list(zip(*(c.tolist() for c in columns)))
        first = {row: i for i, row in reversed(list(enumerate(rows)))}
        asked = [np.append(c[::3], c[:20]) for c in columns]
        asked[1][: n // 9] = 3
        wanted = [first.get(row, -1) for row in zip(*(c.tolist() for c in asked))]
        x, q = tuple(map(on, columns)), tuple(map(on, asked))
        index, table, members = roost.Index(x), roost.Map(x, on(np.arange(n))), roost.Set(x)
        multi = roost.MultiMap(x, on(np.arange(n)))
        assert index.valid() and on.back(index.get_indexer(q)).tolist() == wanted
        assert on.back(table.find(q, missing=-1)).tolist() == wanted
        assert on.back(members.contains(q)).tolist() == [row >= 0 for row in wanted]
        assert on.back(multi.count(q)).tolist() == [
            rows.count(row) for row in zip(*(c.tolist() for c in asked))
        ]
        keys, values = map(on.back, table.items())
        assert [rows[i] for i in listed(values)] == list(zip(*(key.tolist() for key in keys)))
        assert list(index) == rows and sorted(members) == sorted(first)
        for row in rows[:3]:
            assert row in index and table[row] == first[row] and multi[row][0] == first[row]
            assert (2**40, *row[1:]) not in members and (None, *row[1:]) not in index
        single = [*rows[:2], (None,) * len(kinds)]
        assert on.back(index.get_indexer(single)).tolist() == [first.get(row, -1) for row in single]
        wide = tuple(on(c.astype("i8") if c.dtype.kind == "i" else c) for c in asked)
        assert on.back(index.get_indexer(wide)).tolist() == wanted
        if n and kinds[0] == "i4":
            asked[0] = asked[0].astype("i8")
            asked[0][:5] += 2**33  # which int32 has not
            found = on.back(index.get_indexer(tuple(map(on, asked)))).tolist()
            assert found == [-1] * 5 + wanted[5:]
        for again in (pickle.loads(pickle.dumps(index)), copy.copy(index)):
            assert on.back(again.get_indexer(q)).tolist() == wanted
        for again in (pickle.loads(pickle.dumps(table)), copy.copy(table)):
            assert on.back(again.find(q, missing=-1)).tolist() == wanted
        if not on.gpu:
            assert len(index.get_indexer(tuple(asked))) == len(wanted)
        else:
            with pytest.raises(ValueError, match="put them there"):
                index.get_indexer(tuple(asked))


def test_texts_and_bytes_of_any_width():
    narrow, wide = np.array([b"a", b"bc", b""]), np.array([b"bc", b"a", b"a longer one", b""])
    index = roost.Index((narrow, np.arange(3)))
    for asked in (wide, pa.array(wide.tolist()), wide.tolist(), pl.Series(wide.tolist())):
        assert listed(index.get_indexer((asked, [1, 0, 0, 2]))) == [1, 0, -1, 2]
    assert (b"a", 0) in index and (b"a\0", 0) not in index and ("a", 0) not in index
    assert [type(key) for key in roost.Set((narrow, narrow)).keys()] == [np.ndarray] * 2
    for texts in (
        ["a", "b", "a"],
        np.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"]),
        pl.Series(["a", "b", "a"]),
    ):
        table = roost.Map(texts, [1, 2, 3])
        assert table["a"] == 1 and table.find(["b", "c"], missing=-1).tolist() == [2, -1] and 5 not in table
        assert sorted(table) == ["a", "b"] and sorted(listed(table.keys())) == ["a", "b"]
        assert roost.MultiMap(texts, [1, 2, 3])["a"].tolist() == [1, 3] and None not in roost.Set(texts)
        found = roost.Set(texts).contains(pa.array(["b", None, "x"]))
        assert found.to_pylist() == [True, False, False]
    assert roost.Map({"a": 1, "b": 2}).find(np.array(["b"])).tolist() == [2]
    long = [f"{'a' * 40} {i}" for i in range(3000)]
    table = roost.Map(pl.Series([*long, None]), np.arange(3001))
    assert table[long[7]] == 7 and table[None] == 3000 and long[7] + "x" not in table
    assert roost.Set([b"ab"]).keys().dtype == "S2"


def test_plain_tables_are_asked_for_nulls():
    """Which they have not, whatever they have."""
    for kind in "i1", "u1", "i2", "i4", "i8", "f4", "M8[s]":
        keys = np.arange(256).astype("i2").astype(kind) if kind[1] == "1" else np.arange(300).astype(kind)
        tables = roost.Index(keys), roost.Map(keys, np.arange(len(keys))), roost.Set(keys)
        gone = np.arange(len(keys)) % 3 == 1
        asked = np.ma.masked_array(keys, gone)
        for table in tables:
            assert (table.contains(asked) == ~gone).all() and None not in table
        assert (tables[0].get_indexer(asked) == np.where(gone, -1, np.arange(len(keys)))).all()
        assert (tables[1].find(asked, missing=-1) == np.where(gone, -1, np.arange(len(keys)))).all()
        assert (roost.MultiMap(keys, keys).count(asked) == ~gone).all()
        with pytest.raises(KeyError, match=f"{gone.sum()} of"):
            tables[1][asked]
        with pytest.raises(TypeError, match="masked"):
            roost.ConcurrentMap(kind, "i8").insert(asked, np.arange(len(keys)))
    index = roost.Index(np.array([1, 2]))
    assert index.get_indexer(pd.DataFrame({"a": [2, 7]})).tolist() == [1, -1]
    assert index.get_indexer((pa.array([2, None]),)).tolist() == [1, -1]
    for texts in (
        pd.Series(["b", None], dtype=object),
        pa.array(["b", None]),
        pl.DataFrame({"t": ["b", None]}),
    ):
        assert listed(roost.Index(np.array(["a", "b"])).get_indexer(texts)) == [1, -1]


def test_tables_keep_what_they_need():
    """Arrays may change afterwards, but for those of an Index; and one table may be asked in many ways."""
    a, b = np.array([1, 2, 1]), np.array(["x", "y", "x"])
    frame = pd.DataFrame({"a": a.copy(), "b": b.copy(), "c": pd.Categorical(b), "d": [0.5, None, 0.5]})
    wide = tuple(np.array([2**62 * i, -(2**62) * i, 0]) for i in (1, -1, 1, -1, 1))
    kept = [(x, rows_of(x)) for x in ((a, b), frame, wide)]
    tables = [(roost.Map(x, [5, 6, 7]), roost.Set(x), rows) for x, rows in kept]
    original = [tuple(c.copy() for c in (a, b)), frame.copy(), tuple(c.copy() for c in wide)]
    a[:], b[:] = 9, "z"
    for column in wide:
        column[:] = 9
    frame.loc[:, "a"], frame.loc[:, "b"], frame.loc[:, "d"] = 9, "z", 9.0
    for (table, members, rows), x in zip(tables, original):
        assert table.find(x).tolist() == [5, 6, 5 if rows[0] == rows[2] else 7]
        assert set(rows_of(members.keys())) == set(rows) == set(rows_of(table.keys()))
        assert members.contains(tuple(x.iloc[:, i] for i in range(4)) if x is original[1] else x).all()
    index = roost.Index(original[1])
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append([index.get_indexer(original[1]).tolist() for _ in range(50)])
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[0, 1, 0]] * 50] * 4
    column = np.arange(1000)
    gone = weakref.ref(column)
    table = roost.Map((column, column % 7), column)
    del column
    gc.collect()
    assert gone() is None and table[8, 1] == 8


def test_single_keys():
    frame = pl.DataFrame(
        {
            "n": pl.Series([1, None, 3], dtype=pl.Int8),
            "f": pl.Series([0.5, float("nan"), None], dtype=pl.Float32),
            "t": ["x", None, "y"],
            "d": [datetime.date(2024, 1, 2), None, datetime.date(2024, 1, 3)],
            "m": pl.Series([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], dtype=pl.Decimal(10, 2)),
            "c": pl.Series([datetime.time(1, 2, 3), None, datetime.time(4)]),
        }
    )
    table = roost.Map(frame, [1, 2, 3])
    keys = list(roost.Index(frame))
    assert keys[0][2:3] == ("x",) and keys[2][1] is None and keys[1][0] is keys[1][5] is None
    date, time, D = datetime.date(2024, 1, 2), datetime.time(1, 2, 3), decimal.Decimal
    for n, f, t, d, m, c in (
        (1, 0.5, "x", date, D("1.5"), time),
        (np.int64(1), np.float64(0.5), np.str_("x"), np.datetime64("2024-01-02T00", "h"), D("1.500"), time),
        (True, D("0.5"), "x", datetime.datetime(2024, 1, 2), D("1.5"), time),
        (1 + 0j, 0.5, "x", pd.Timestamp("2024-01-02"), D("1.50"), time),
    ):
        assert (n, f, t, d, m, c) in table and table[n, f, t, d, m, c] == 1 == table.get([n, f, t, d, m, c])
        others = ((2, 300, 1.5, None, pd.NA, "1", 1 + 1j), (2, None, "x"), ("", None, b"x", 1))
        others += (
            (datetime.date(1, 1, 1), None, 5),
            (D("1.51"), D("1.501"), None, 2, 1.51),
            (datetime.time(1), None, 1),
        )
        for i, wrong in enumerate(others):
            for value in wrong:
                key = [n, f, t, d, m, c]
                key[i] = value
                assert tuple(key) not in table and table.get(tuple(key), -1) == -1, key
    assert table[None, float("nan"), None, None, pd.NA, None] == 2 and table[keys[2]] == 3
    assert table.find([keys[2], (None,) * 6, keys[0]], missing=-1).tolist() == [3, -1, 1]
    with pytest.raises(KeyError):
        table[300, 0.5, "x", date, D("1.5"), time]
    with pytest.raises(KeyError):
        table[1, 0.5, "x", date, D("1.501"), time]
    with pytest.raises(KeyError):
        table[1 + 1j, None, "x", date, D("1.5"), time]
    numbers = roost.MultiMap(pa.array([1, None, 1]), [1.5, 2.5, 3.5])
    assert numbers[1].tolist() == [1.5, 3.5] and numbers[None].tolist() == [2.5] and "1" not in numbers
    assert numbers.count([1, None, 7]).tolist() == [2, 1, 0] and numbers.count([None]).tolist() == [1]
    assert numbers.count([]).tolist() == [] and numbers.count({2**70 % 2**40 + 1}).tolist() == [2]
    with pytest.raises(KeyError):
        numbers[2**40]


def test_misuse_of_tables_of_columns():
    a, t = np.array([1, 2], "i4"), np.array(["x", "y"])
    frame = pd.DataFrame({"a": a, "t": t})
    index, nulls = roost.Index(frame), roost.Set(pa.array([1, None]))
    for call, error, words in (
        (lambda: index.get_indexer(a), TypeError, "2 and 1 columns"),
        (lambda: index.get_indexer((a, t, a)), TypeError, "2 and 3 columns"),
        (lambda: index.get_indexer(([1], ["x"], [2])), TypeError, "2 and 3 columns"),
        (lambda: index.get_indexer([1, 2]), TypeError, "tuples of 2 values"),
        (lambda: index.get_indexer([(1, "x", 2)]), TypeError, "tuples of 2 values"),
        (lambda: index.get_indexer(5), TypeError, "tuples of 2 values"),
        (lambda: index.get_indexer((t, a)), TypeError, "column 'a': strings are never equal to int32"),
        (lambda: index.get_indexer((a, a)), TypeError, "column 't': strings are never equal to int32"),
        (
            lambda: index.get_indexer((a, t.astype("S"))),
            TypeError,
            "column 't': str and bytes are never equal",
        ),
        (lambda: index.get_indexer((a.astype("M8[s]"), t)), TypeError, "never equal"),
        (
            lambda: index.get_indexer((pa.array([1, 2], pa.decimal128(5, 1)), t)),
            TypeError,
            "decimals of scale 1",
        ),
        (lambda: index.get_indexer(([1, 2], ["x"])), ValueError, "columns of 2 and of 1 rows"),
        (lambda: index.get_indexer((a[:, None], t)), ValueError, "one dimension"),
        (lambda: index.get_indexer(frame[["t", "a"]]), TypeError, "select them in one order"),
        (lambda: index.get_indexer(frame, index_dtype="f4"), ValueError, "index_dtype"),
        (lambda: index[5], IndexError, "no row 5"),
        (lambda: index["x"], TypeError, "whole number"),
        (lambda: roost.Map(frame, [1, 2])[1], TypeError, "a tuple of 2 values"),
        (lambda: roost.Map(frame, [1, 2])[1, "z"], KeyError, "z"),
        (lambda: roost.Map(frame, [1, 2])[(a, t[::-1])], KeyError, "2 of 2 keys"),
        (lambda: roost.Map(frame, [1]), ValueError, "2 keys but 1 value"),
        (lambda: roost.Map(frame, [1, 2]).__setitem__((1, "x"), 3), TypeError, "never changes"),
        (lambda: nulls.contains(np.array([[1]])), TypeError, "one dimension"),
        (lambda: nulls.contains(["x"]), TypeError, "never equal"),
        (lambda: nulls.contains((a, a)), TypeError, "1 and 2 columns"),
        (lambda: roost.Set(frame.iloc[:, :0]), ValueError, "without columns"),
        (lambda: roost.Set("x"), (TypeError, ValueError), "roost.Set: a single|roost.Set: keys of type"),
        (lambda: roost.Set((a, t[:1])), ValueError, "columns of 2 and of 1 rows"),
        (lambda: roost.Set((a, np.array([{}, 1]))), TypeError, "column 1"),
        (lambda: roost.ConcurrentMap().find((a, a)), TypeError, "a tuple of columns"),
    ):
        with pytest.raises(error, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert 1 not in index and (1,) not in index and (t, a) not in index and "x" not in nulls


@pytest.mark.parametrize("kind", [*TYPES, pa.dictionary(pa.int8(), pa.int32())], ids=str)
def test_what_lies_at_nulls_is_no_key(kind):
    """Rows that were taken may have another value below a null, which others have."""
    for seed in range(25 if pa.types.is_dictionary(kind) else 5):
        rng = np.random.default_rng([SEED, seed])
        if kind == pa.dictionary(pa.int8(), pa.int32()):
            codes = pa.array(rng.integers(0, 5, 40).astype(np.int8), mask=rng.random(40) < 0.3)
            table = pa.table({"c0": pa.DictionaryArray.from_arrays(codes, pa.array(range(5), pa.int32()))})
        else:
            table = table_of(rng, 40, [kind], 0.3)
        numbers = numbered(rows_of(table))
        first = [numbers.tolist().index(i) for i in numbers]
        for form, x in table_forms(table):
            index, mapped = roost.Index(x), roost.Map(x, np.arange(40))
            for _, queries in [("", x)] if form.startswith("column") else forms(table):
                assert listed(index.get_indexer(queries)) == first, form
                assert listed(mapped.find(queries, missing=-1)) == first, form


@pytest.mark.parametrize("values", [["a", None], [b"a", None], [7, None], [0.5, None], [], [None]], ids=str)
def test_nulls_of_no_type_are_nulls_of_any(values):
    other = pa.array(values)
    for frames in (
        lambda column: pa.table({"k": column}),
        lambda column: pl.from_arrow(pa.table({"k": column})),
    ):
        nothing, some = frames(pa.nulls(2)), frames(other)
        has_null = None in values
        np.testing.assert_array_equal(roost.isin(nothing, some), [False, False])
        np.testing.assert_array_equal(roost.isin(nothing, some, nulls_equal=True), [has_null] * 2)
        np.testing.assert_array_equal(
            roost.isin(some, nothing, nulls_equal=True), [value is None for value in values]
        )
        assert len(roost.join(nothing, some, "left")[0]) == 2
        assert roost.merge(some, nothing, on="k", how="outer").shape == (len(values) + 2, 1)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_merges_by_other_names(make):
    """Keys go by their places: edges and their reverses, employees and their managers."""
    edges, back = ({"src": [1, 2, 3], "dst": [2, 1, 9], name: [10, 20, 30]} for name in "wv")
    people = make({"id": [1, 2, 3], "name": ["Ann", "Bo", "Cy"], "boss": [3, 1, 1]})
    on = {"left_on": ["src", "dst"], "right_on": ["dst", "src"]}
    matched = [(1, 2, 10, 20), (2, 1, 20, 10)]
    for found, wanted in (
        (roost.merge(make(edges), make(back), **on), matched),
        (
            roost.merge(make(edges), make(back), how="outer", **on),
            [*matched, (3, 9, 30, None), (9, 3, None, 30)],
        ),
        (roost.merge(make(edges), make(back), how="anti", **on), [(3, 9, 30)]),
        (
            roost.merge(people, people, left_on="boss", right_on="id", suffixes=("", "_of")),
            [(3, 1, "Ann", "Cy", 1), (1, 2, "Bo", "Ann", 3), (1, 3, "Cy", "Ann", 3)],
        ),
    ):
        assert rows_of(found) == [tuple(map(exact, row)) for row in wanted]


@pytest.mark.parametrize("key, value", [(("a", "x"), ("a", "y")), (pd.Timestamp(0), 1.5), (0, ""), ("", 0)])
def test_merges_by_names_that_are_no_text(key, value):
    frame = pd.DataFrame({key: [1, 2], value: [3, 4]})
    for on in (key, [key], pd.Index([key])):
        found = roost.merge(frame, frame, on=on, how="outer")
        assert found[key].tolist() == [1, 2]
        assert found[("a", "y_y") if isinstance(value, tuple) else f"{value}_y"].tolist() == [3, 4]


NOTHING = {
    "objects": pd.Series([], dtype=object), "None": pd.Series([None, None], dtype=object),
    "array": np.array([]),
    "categories": pd.Series([None], dtype="category"), "no categories": pd.Series([], dtype="category"),
    "polars": pl.Series([None], dtype=pl.String), "Arrow": pa.nulls(2), "dates": np.array([], "M8[s]"),
    "masked": np.ma.masked_all(2, "U1"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_a_side_without_a_value_fits_any_type(name):
    nothing, n = NOTHING[name], len(NOTHING[name])
    instants = pd.Series(pd.to_datetime([0, 1], utc=True))
    for keys in (np.array([1, 2]), pd.Series(["a", "b"]), pa.array([1.5, None]), instants):
        assert not any(listed(roost.isin(keys, nothing))) and len(roost.isin(nothing, keys)) == n
        assert len(roost.join(keys, nothing, "outer")[0]) == 2 + n and len(roost.join(nothing, keys)[0]) == 0
        at_null = 1 if isinstance(keys, pa.Array) else -1
        assert listed(roost.Index(keys).get_indexer(nothing)) == [at_null] * n
        assert listed(roost.Map(nothing, np.arange(n)).find(keys, missing=-1))[0] == -1
        assert listed(roost.Index((nothing, nothing)).get_indexer((keys, keys)))[0] == -1
        frames = [pd.DataFrame({"k": pd.Series(column)}) for column in (keys, nothing)]
        rows = {"left": 2, "inner": 0, "semi": 0, "anti": 2, "right": n, "outer": 2 + n}
        assert {how: len(roost.merge(*frames, on="k", how=how)) for how in rows} == rows


def test_times_of_zones_are_instants():
    """The hour that comes twice."""
    instants = pd.Series(pd.to_datetime(["2024-10-27T00:30Z", "2024-10-27T01:30Z", "2024-10-27T00:30Z"]))
    berlin, york = (instants.dt.tz_convert(zone) for zone in ("Europe/Berlin", "America/New_York"))
    forms = [
        pd.Series, pl.Series, pa.array, lambda x: pa.array(x).dictionary_encode(),
        lambda x: x.dt.as_unit("s"), lambda x: x.astype("category"),
        lambda x: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(x))),
    ]  # fmt: skip
    for one, two in itertools.product(forms, forms):
        assert listed(roost.isin(one(berlin), two(york)[:1])) == [True, False, True]
        assert listed(roost.Index(one(berlin)).get_indexer(two(york))) == [0, 1, 0]
    for one in forms:
        keys = roost.Set(one(berlin))
        assert {key.timestamp() for key in keys} == {key.timestamp() for key in instants}
        assert instants[0] in keys and berlin[1].to_pydatetime() in keys
        assert berlin[0] + pd.Timedelta(1, "ns") not in keys and berlin[0].tz_localize(None) not in keys
        assert len(keys) == len(pickle.loads(pickle.dumps(keys))) == 2
        assert type_of(roost.unique(one(berlin))) == type_of(one(berlin))
        with pytest.raises(TypeError, match="never equal"):
            roost.isin(one(berlin), instants.dt.tz_localize(None))


@pytest.mark.parametrize("kind", ["list", "struct", "map", "runs"])
def test_merges_take_what_pyarrow_does_not(kind):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([1, 2]))
    column = {
        "list": pa.array([["a", None], None, ["b"]], pa.list_(pa.string_view())),
        "struct": pa.array([{"x": "a"}, None, {"x": None}], pa.struct([("x", pa.string_view())])),
        "map": pa.array([[("a", b"b")], None, []], pa.map_(pa.string_view(), pa.binary_view())),
        "runs": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), runs),
    }[kind]
    left, right = pa.table({"k": [3, 1, 7]}), pa.table({"k": [1, 2, 3], "v": column})
    for how, rows in (("inner", [2, 0]), ("left", [2, 0, None]), ("outer", [2, 0, None, 1])):
        found = roost.merge(left, right, on="k", how=how)["v"]
        assert found.type == column.type
        assert found.to_pylist() == [None if row is None else column[row].as_py() for row in rows]


def test_decimals_of_39_digits():
    """As DuckDB has 128-bit integers: decimal128(38, 0) beyond its own precision."""
    numbers = [2**127 - 1, -(2**127), 10**38, 5]
    words = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    column = pa.Array.from_buffers(pa.decimal128(38, 0), 4, [None, pa.py_buffer(words)])
    index, held = roost.Index(column), roost.Set(column)
    assert [int(key) for key in index] == numbers and all(key in held for key in [*held, *numbers])
    assert index.get_indexer([*index]).tolist() == [0, 1, 2, 3] and all(listed(roost.isin(column, [*held])))
    assert 2**127 not in held and not held.contains([decimal.Decimal(7)])[0]


def test_times_of_nanoseconds_are_not_rounded():
    for column in (pa.array([1], pa.time64("ns")), pl.Series([1]).cast(pl.Time)):
        with pytest.raises(OverflowError, match=r"a value of time64\[ns\] that Python has not"):
            list(roost.Index(column))
        assert roost.unique(column).equals(column)
        assert listed(roost.Index(column).get_indexer(column)) == [0]


def test_results_have_units_and_masks_that_the_library_knows():
    for make in (pl.DataFrame, pa.table):
        for dtype in ("m8[D]", "M8[h]", "M8[M]"):
            values = np.array([1, 2], dtype)
            found = roost.group_by(make({"k": [1, 1]}), "k").agg(x=(values, "max"))["x"]
            assert found.to_numpy().astype(dtype)[0] == values[1]
    texts = np.ma.array(np.array(["a", "b"]), mask=[0, 1])
    for keys, wanted in (
        ([1, 2], {"max": ["a", None], "nunique": [1, 0]}),
        ([None] * 2, {"max": [], "nunique": []}),
    ):
        for how in wanted:
            groups = roost.group_by(pd.DataFrame({"k": keys}), "k", dropna=True)
            got = groups.agg(x=(texts, how))["x"].tolist()
            assert [None if value != value else value for value in got] == wanted[how]


def test_dictionaries_of_halves_in_chunks():
    """pyarrow 26.0.1 makes one dictionary of their bits."""
    chunks = [pa.array(np.array(values, np.float16)) for values in ([1, 2], [2, 3])]
    chunks = [pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), chunk) for chunk in chunks]
    frame = pa.table({"k": pa.chunked_array(chunks), "v": [1, 2, 3, 4]})
    found = roost.group_by(frame, "k").agg(s=("v", "sum"))
    assert dict(zip(found["k"].to_pylist(), found["s"].to_pylist())) == {1.0: 1, 2.0: 5, 3.0: 4}
    found = roost.group_by(frame, "v").agg(s=("k", "max"))
    assert dict(zip(found["v"].to_pylist(), found["s"].to_pylist())) == {1: 1.0, 2: 2.0, 3: 2.0, 4: 3.0}
    assert sorted(roost.unique(frame.select(["k"]))["k"].to_pylist()) == [1.0, 2.0, 3.0]
    assert roost.merge(frame, pa.table({"v": [4, 1]}), "v")["k"].to_pylist() == [1.0, 3.0]
    assert roost.merge(frame.slice(0, 0), pa.table({"v": [4]}), "v")["k"].to_pylist() == []


def test_subclasses_of_frames_are_frames():
    """Not tables of Arrow, in which NaN would be a null."""

    class Frame(pd.DataFrame):
        pass

    class Column(pd.Series):
        pass

    class Polars(pl.DataFrame):
        pass

    values = {"k": [1.0, math.nan], "v": [1, 2]}
    for make in (Frame, pd.DataFrame):
        found = roost.merge(Frame(values), make(values), "k")
        assert isinstance(found, pd.DataFrame) and len(found) == 2
    assert roost.isin(Column(values["k"]), Column(values["k"])).all()
    assert isinstance(roost.group_by(Frame(values), "k").agg(s=("v", "sum")), pd.DataFrame)
    assert isinstance(roost.group_by(Polars(values), "k").agg(s=("v", "sum")), pl.DataFrame)


def test_expressions_are_no_names():
    frame = pl.DataFrame({"k": [1], "v": [2]})
    for call in (lambda by: roost.group_by(frame, by), lambda by: roost.merge(frame, frame, by)):
        for by in (pl.col("k"), ["v", pl.col("k")]):
            with pytest.raises(TypeError, match="Expr.*give the names of columns"):
                call(by)


def test_texts_of_other_types_are_their_own():
    """numpy takes str(member), cut to the length of the text."""

    class Shop(str, enum.Enum):
        YORK, BATH, ELY = "york", "bath", "ely"

    class Bytes(bytes):
        def __bytes__(self):
            return b"other"

    shops = [Shop.YORK, Shop.BATH, Shop.YORK, Shop.ELY]
    assert sorted(roost.unique(shops)) == ["bath", "ely", "york"]
    assert len(roost.Map({Shop.YORK: 1, Shop.BATH: 2})) == 2
    assert roost.isin(shops, ["york"]).tolist() == [True, False, True, False]
    assert Shop.YORK in roost.Set(["york", "ely"])
    assert (1, Shop.YORK) in roost.Index(([1, 2], ["york", "ely"]))
    assert len(roost.unique(([1, 1, 1], shops[:3]))[0]) == 2
    assert roost.unique([Bytes(b"ab"), b"ab"]).tolist() == [b"ab"]


def test_arrays_of_pandas_without_a_series():
    zone = datetime.timezone.utc
    for kind, value in (
        (pa.decimal128(5, 2), decimal.Decimal("1.50")),
        (pa.time64("us"), datetime.time(1)),
        (pa.timestamp("us", "UTC"), datetime.datetime(2020, 1, 1, tzinfo=zone)),
    ):
        array = pd.array([value, None, value], dtype=pd.ArrowDtype(kind))
        assert list(roost.unique(array)) == list(roost.unique(pd.Series(array)))
        assert [*roost.Index(array)][0] == value and len(roost.group_by(array).keys) == 2
        found = list(roost.group_by([1, 1, 1]).max(array))
        assert found == list(roost.group_by([1, 1, 1]).max(pd.Series(array)))


def test_sparse_columns_of_pandas():
    dense = pd.DataFrame({"k": [1, 1, 2], "v": [math.nan, 1.0, math.nan]})
    sparse = dense.astype({"v": pd.SparseDtype(float)})
    for frame in (dense, sparse):
        assert roost.group_by(frame, "k").agg(t=("v", "sum"))["t"].tolist()[0] == 1.0
        assert np.array_equal(np.sort(roost.unique(frame["v"])), [1.0, math.nan], equal_nan=True)
    assert roost.isin(sparse["v"].array, [1.0]).tolist() == [False, True, False]
    assert len(roost.merge(sparse, sparse, "v")) == len(dense.merge(dense, on="v"))


@pytest.mark.skipif("not os.environ.get('ROOST_TEST_LARGE')", reason="of 5 GiB")
def test_texts_of_more_than_two_gigabytes():
    for kind in (pa.utf8(), pa.string_view()):
        left = pa.table({"k": [1], "s": pa.array(["x" * 2**20], kind)})
        found = roost.merge(left, pa.table({"k": np.ones(2300, int)}), "k")["s"]
        assert len(found) == 2300 and found.type == kind and found[2299].as_py() == "x" * 2**20
