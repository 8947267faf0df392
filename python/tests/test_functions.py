"""unique, factorize, isin, join, value_counts, duplicated and group_by, beside numpy and pandas."""

import itertools
import math
import os

import numpy as np
import pytest
import roost
from conftest import INTEGERS, LIBRARIES, NUMBERS, keys
from hypothesis import given
from hypothesis import strategies as st


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


@given(keys(), st.booleans())
def test_unique_sorted_is_numpys(on, x, narrow):
    index_dtype = "int32" if narrow else "int64"
    got = on.back(
        roost.unique(
            on(x),
            sorted=True,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            index_dtype=index_dtype,
        )
    )
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    same(got[0], expected[0])
    same(on.back(roost.unique(on(x), sorted=True)), expected[0])
    for a, b, dtype in zip(got[1:], expected[1:], (index_dtype, index_dtype, "int64")):
        same(a, b.astype(dtype))


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("n", [2**17, 2**17 + 1, 2**18 + 1])
def test_large_batches_are_sorted(on, dtype, n):
    """Negative numbers come first, NaN last; on both sides of the sizes from which on C++ sorts otherwise."""
    words = np.random.default_rng(n).integers(0, 256, (n, np.dtype(dtype).itemsize), np.uint8)
    for x in words.view(dtype).ravel(), words.view(dtype).ravel()[:1000].repeat(n // 1000):
        with np.errstate(invalid="ignore"):
            expected = np.unique(x + x.dtype.type(0), return_counts=True)
        keys, counts = on.back(roost.unique(on(x), sorted=True, return_counts=True))
        same(keys + keys.dtype.type(0), expected[0])
        same(counts, expected[1])
        same(on.back(roost.unique(on(x), sorted=True)) + keys.dtype.type(0), expected[0])


@given(keys())
def test_unique_by_first_occurrence(on, x):
    values, index, inverse, counts = on.back(
        roost.unique(on(x), return_index=True, return_inverse=True, return_counts=True)
    )
    assert np.all(np.diff(index) > 0)
    same(values + 0, x[index] + 0)  # -0.0 comes back as 0.0
    same(x[index][inverse], x) if x.dtype.kind != "f" else same(values[inverse], x + x.dtype.type(0))
    assert counts.sum() == len(x)


@given(keys(), st.sampled_from([1, 2, 3, 7, 500, 65536]), st.integers(-1, 2**64))
def test_partition_keeps_equal_keys_together(on, x, parts, seed):
    rows, offsets = on.back(roost.partition(on(x), parts, seed=seed))
    assert len(offsets) == parts + 1 and offsets[0] == 0 and offsets[-1] == len(x)
    assert np.array_equal(np.sort(rows), np.arange(len(x)))
    part = np.repeat(np.arange(parts), np.diff(offsets))
    assert np.all((np.diff(rows) > 0) | (np.diff(part) > 0))  # ascending in each part
    of_row = np.empty(len(x), np.int64)
    of_row[rows] = part
    number = roost.factorize(x, use_na_sentinel=False)[0]
    assert len(np.unique(np.stack([number, of_row]), axis=1).T) == len(np.unique(number))
    again, _ = on.back(roost.partition(on(x), parts, seed=seed, index_dtype="int32"))
    assert again.dtype == np.int32 and np.array_equal(again, rows)


def test_partition_divides_evenly_and_refuses_other_parts():
    x = np.arange(100_000)
    for parts in (2, 10, 1000):
        sizes = np.diff(roost.partition(x, parts)[1])
        assert abs(sizes - len(x) / parts).max() < 6 * (len(x) / parts) ** 0.5
    rows, offsets = roost.partition(x[50_000:], 10)  # the same key goes to the same part
    of_row = {int(x[50_000 + r]): p for p in range(10) for r in rows[offsets[p] : offsets[p + 1]]}
    rows, offsets = roost.partition(x[::-1], 10)
    assert all(
        of_row[int(k)] == p
        for p in range(10)
        for k in x[::-1][rows[offsets[p] : offsets[p + 1]]]
        if int(k) in of_row
    )
    for parts in (0, -1, 65537):
        with pytest.raises(ValueError, match="give 1 to 65536"):
            roost.partition(x, parts)
    with pytest.raises(TypeError):
        roost.partition(x, 2.5)
    with pytest.raises(TypeError, match="strings"):
        roost.partition(np.array(["a"]), 2)


@pytest.mark.parametrize("dtype", ["u4", "i8", "f4", "f8", "S16", "S32"])
def test_keys_may_lie_anywhere(dtype):
    bytes_before = 1
    x = np.arange(300).astype(dtype)
    memory = np.empty(bytes_before + x.nbytes, np.uint8)
    askew = memory[bytes_before:].view(dtype)
    askew[:] = x
    assert not askew.flags.aligned or dtype[0] == "S"
    same(roost.unique(askew, sorted=True), np.unique(x))
    assert roost.isin(askew, x[::2]).sum() == 150
    assert np.array_equal(roost.Map(askew, np.arange(300)).find(askew), np.arange(300))
    if x.dtype.kind in "if":
        same(np.sort(roost.group_by(x).sum(askew)), np.sort(x.astype("i8" if dtype == "i8" else dtype)))


@given(keys(), st.booleans(), st.booleans())
def test_unique_in_any_order(on, x, inverse, counts):
    got = on.back(roost.unique(on(x), return_inverse=inverse, return_counts=counts))
    values = got[0] if isinstance(got, tuple) else got
    same(np.sort(values), np.unique(x))
    same(values, on.back(roost.unique(on(x))))


@given(keys(INTEGERS, min_size=1), st.integers(1, 4))
def test_rows_are_keys(on, x, columns):
    rows = np.ascontiguousarray(x[: len(x) // columns * columns].reshape(-1, columns))
    got = on.back(
        roost.unique(on(rows), sorted=True, return_index=True, return_inverse=True, return_counts=True)
    )
    expected = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
    for a, b in zip(got, expected):
        same(a, b.reshape(a.shape))


@given(
    st.lists(st.binary(max_size=9), min_size=1, max_size=60), st.sampled_from([1, 3, 4, 5, 8, 9, 16, 20, 32])
)
def test_fixed_size_bytes(texts, width):
    x = np.array(texts, f"S{width}")
    got = roost.unique(x, sorted=True, return_inverse=True)
    expected = np.unique(x, return_inverse=True)
    same(got[0], expected[0])
    same(got[1], expected[1])


@given(st.lists(st.text(max_size=5), max_size=60), st.sampled_from(["U", "O"]))
def test_strings(texts, kind):
    x = np.array(texts, dtype=object if kind == "O" else "U5")
    values, inverse, counts = roost.unique(x, return_inverse=True, return_counts=True)
    assert sorted(values.tolist()) == sorted(set(x.tolist()))
    assert values[inverse].tolist() == x.tolist()
    assert counts.tolist() == [x.tolist().count(v) for v in values]
    codes, uniques = roost.factorize(x)
    assert uniques.tolist() == list(dict.fromkeys(x.tolist()))
    assert uniques[codes].tolist() == x.tolist()
    assert roost.isin(x, x[::2]).tolist() == [v in x[::2].tolist() for v in x.tolist()]


@given(keys(), st.booleans())
def test_factorize_is_pandas(on, x, sentinel):
    pandas = pytest.importorskip("pandas")
    codes, uniques = on.back(roost.factorize(on(x), use_na_sentinel=sentinel))
    x = x + x.dtype.type(0) if x.dtype.kind == "f" else x
    if x.dtype == np.float16:  # which pandas does not take
        x, uniques = x.astype("f4"), uniques.astype("f4")
    expected_codes, expected_uniques = pandas.factorize(x, use_na_sentinel=sentinel)
    same(codes, expected_codes)
    same(uniques, expected_uniques)


@given(keys(), keys(), st.booleans())
def test_isin_is_numpys(on, x, y, invert):
    got = on.back(roost.isin(on(x), on(y), invert=invert))
    there = {"nan" if b != b else b for b in y.tolist()}  # Python compares exactly
    expected = np.array([("nan" if a != a else a) in there for a in x.tolist()], bool)
    same(got, expected != invert)


_NUMBERS = {
    "f": [0.0, -0.0, 1.0, -1.0, 1.5, 128.0, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), np.inf, np.nan],
    "i": [0, 1, -1, 127, 128, 255, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)],
}


@pytest.mark.parametrize("a, b", list(itertools.product(["i1", "i8", "u1", "u8", "f4", "f8", "?"], repeat=2)))
def test_isin_compares_numbers_of_two_types_exactly(on, a, b):
    def all_of(dtype):
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return np.array([False, True])
        if dtype.kind == "f":
            return np.array(_NUMBERS["f"], dtype)
        limits = np.iinfo(dtype)
        return np.array([n for n in _NUMBERS["i"] if limits.min <= n <= limits.max], dtype)

    def is_equal(p, q):
        return p == q or (p != p and q != q)

    x, y = all_of(a), all_of(b)
    for some in (y, y[::2], y[1::2], y[:0]):
        expected = [any(is_equal(p, q) for q in some.tolist()) for p in x.tolist()]
        same(on.back(roost.isin(on(x), on(some))), np.array(expected, bool))

    if "f" not in (np.dtype(a).kind, np.dtype(b).kind) and "?" not in (a, b):  # rows of integers
        for width in (1, 2, 3):
            rows, others = (np.stack([np.roll(v, k) for k in range(width)], 1) for v in (x, y))
            there = {tuple(row) for row in others.tolist()}
            expected = [tuple(row) in there for row in rows.tolist()]
            same(on.back(roost.isin(on(rows), on(others))), np.array(expected, bool))
            left, right = (on.back(part) for part in roost.join(on(rows), on(others)))
            assert (rows[left].astype(object) == others[right].astype(object)).all()
            assert len(set(left.tolist())) == sum(expected)


@given(keys(["i4", "f8", "u1"], max_size=80), st.integers(0, 2**32))
def test_joins(on, x, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.concatenate([x[::2], x[::3]])) if len(x) else x
    equal = (x[:, None] == y[None, :]) | ((x != x)[:, None] & (y != y)[None, :])
    left, right = on.back(roost.join(on(x), on(y)))
    l, r = np.nonzero(equal)
    same(left, l)
    same(right, r)
    of_left = [(i, j) for i in range(len(x)) for j in np.flatnonzero(equal[i]).tolist() or [-1]]
    of_right = [(i, j) for j in range(len(y)) for i in np.flatnonzero(equal[:, j]).tolist() or [-1]]
    without = [(-1, j) for j in np.flatnonzero(~equal.any(axis=0)).tolist()]
    for how, expected in (("left", of_left), ("right", of_right), ("outer", of_left + without)):
        left, right = on.back(roost.join(on(x), on(y), how=how, index_dtype="int32"))
        assert list(zip(left.tolist(), right.tolist())) == expected
        assert left.dtype == right.dtype == np.int32
    same(on.back(roost.join(on(x), on(y), how="semi")), np.flatnonzero(equal.any(axis=1)))
    same(on.back(roost.join(on(x), on(y), how="anti")), np.flatnonzero(~equal.any(axis=1)))


@pytest.mark.parametrize("type", ["i4", "i8", "u8", "M8[s]", "U", "O"])
@pytest.mark.parametrize("n, m", [(10, 7), (28_985, 10), (28_985, 28_984), (300_000, 120_000)])
def test_joins_are_pandas_merges(n, m, type):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, n, n + m)  # most keys are in both columns, some of them several times
    if type in "UO":
        x, y = np.split(numbers.astype("U").astype(type), [n])
    else:
        top = {"i4": -(2**31), "i8": -(2**63), "u8": 2**64 - n, "M8[s]": 0}[type]
        x, y = np.split((numbers.astype("u8") + np.uint64(top % 2**64)).astype(type), [n])
    left = pandas.DataFrame({"k": x, "l": np.arange(n)})
    right = pandas.DataFrame({"k": y, "r": np.arange(m)})
    for how in ("inner", "left", "right", "outer"):
        merged = left.merge(right, on="k", how=how)
        l, r = (merged[side].fillna(-1).to_numpy(np.int64) for side in "lr")
        order = np.lexsort((l, r) if how == "right" else (r, l, l < 0))
        got = roost.join(x, y, how)
        same(got[0], l[order])
        same(got[1], r[order])


@given(keys(INTEGERS))
def test_value_counts_and_duplicated_are_pandas(on, x):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(x)
    values, counts = on.back(roost.value_counts(on(x)))
    assert counts.tolist() == sorted(counts.tolist(), reverse=True)
    assert dict(zip(values.tolist(), counts.tolist())) == series.value_counts().to_dict()
    same(on.back(roost.duplicated(on(x))), series.duplicated().to_numpy())
    same(on.back(roost.duplicated(on(x), keep=False)), series.duplicated(keep=False).to_numpy())


@given(keys([*INTEGERS, "f4", "f8"], max_size=300), st.sampled_from(NUMBERS), st.integers(0, 2**32))
def test_group_by_is_numpys(on, x, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2 if dtype == "?" else 100, len(x)).astype(dtype)
    g, column = roost.group_by(on(x)), on(values)
    sums, least, most, first, mean = on.back(
        (g.sum(column), g.min(column), g.max(column), g.first(column), g.mean(column))
    )
    distinct, index, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    distinct_keys, key_counts = on.back((g.keys, g.count()))
    order = np.argsort(distinct_keys, kind="stable")
    same(distinct_keys[order], distinct)
    same(key_counts[order], counts)
    assert len(g) == len(distinct)
    wide = np.zeros(len(distinct), np.float64)
    np.add.at(wide, inverse, values.astype(np.float64))
    assert np.allclose(sums[order].astype(np.float64), wide, rtol=1e-3 if dtype == "f2" else 1e-5)
    assert np.allclose(mean[order], wide / counts)
    expected = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(values.dtype.kind, values.dtype)
    assert sums.dtype == expected and least.dtype == most.dtype == first.dtype == values.dtype
    same(first[order], values[index])
    by_group = [values[inverse == i] for i in range(len(distinct))]
    assert least[order].tolist() == [v.min() for v in by_group]
    assert most[order].tolist() == [v.max() for v in by_group]


def test_sums_of_floats_are_the_same_each_time():
    rng = np.random.default_rng(1)
    x, values = rng.integers(0, 100, 300_000), rng.normal(size=300_000).astype("f4")
    a = roost.group_by(x).sum(values)
    roost.set_threads(1)
    try:
        same(a, roost.group_by(x).sum(values))
    finally:
        roost.set_threads(0)


def test_nan_spreads_and_several_columns(on):
    g = roost.group_by(on(np.array([1, 1, 2])))
    low, high = on.back(g.min(on(np.array([np.nan, 1, 2])), on(np.array([1, np.nan, 2]))))
    for values in (low, high):
        assert sorted(np.isnan(values).tolist()) == [False, True]


def test_first_takes_any_column(on):
    x = np.array([3, 1, 3, 2, 1])
    g = roost.group_by(on(x))
    order = np.argsort(on.back(g.keys))
    index = np.unique(x, return_index=True)[1]
    rows = np.arange(10, dtype="f8").reshape(5, 2)[::-1]
    same(on.back(g.first(on(rows)))[order], rows[index])
    if on.gpu:
        return  # what follows is numpy's alone
    for values in (
        np.array(["a", "bb", "c", "d", "e"]),
        np.array([1, None, "c", 3.0, ()], object),
        rows[:, 0].astype("M8[s]"),
        rows.astype(">i4"),
        np.zeros(5, [("a", ">i4"), ("b", "u1")]),
        np.zeros((5, 0)),
    ):
        found = g.first(values)
        if values.dtype.kind == "i" or values.size == 0:
            found = on.back(found)
        assert (
            found.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
            and found[order].tolist() == values[index].tolist()
        )
    with pytest.raises(ValueError, match="5 keys but 4 values"):
        g.first(rows[:4])


def test_lists_and_sets_of_python():
    x = np.array([3, 1, 2])
    assert roost.isin(x, {1, 2}).tolist() == [False, True, True]
    assert sorted(roost.unique(frozenset([5, 7])).tolist()) == [5, 7]
    assert roost.isin([1], []).tolist() == [False] and roost.isin([], [[1, 2]]).tolist() == []
    assert roost.isin([[1, 2]], []).tolist() == [False] and roost.isin(["a"], []).tolist() == [False]


def test_strings_of_numpy_2():
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("needs numpy 2")
    x = np.array(["b", "a", "b", "c" * 20], np.dtypes.StringDType())
    found, inverse = roost.unique(x, return_inverse=True)
    assert found.dtype == x.dtype and found[inverse].tolist() == x.tolist() and len(found) == 3
    assert roost.isin(x, ["a"]).tolist() == [False, True, False, False]
    for index in (roost.Index(x), roost.Index(["b", "a", "b", "c" * 20])):
        assert index.get_indexer(x).tolist() == [0, 1, 0, 3]


def test_columns_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    numbers = arrow.array(np.arange(4))
    assert np.shares_memory(roost.from_arrow(numbers), numbers.to_numpy())
    texts = arrow.array(["a", "b", "a"])
    for column, distinct in (
        (numbers, [0, 1, 2, 3]),
        (arrow.chunked_array([[1, 2], [1]]), [1, 2]),
        (arrow.chunked_array([], arrow.int32()), []),
        (arrow.array([True, False]), [False, True]),
        (arrow.array([1, 1], arrow.date32()), np.array([1], "M8[D]").tolist()),
        (texts, ["a", "b"]),
        (texts.dictionary_encode(), ["a", "b"]),
        (arrow.array([b"ab", b"cd"], arrow.binary(2)), [b"ab", b"cd"]),
    ):
        assert sorted(roost.unique(column).to_pylist()) == distinct
    with pytest.raises(ValueError, match="1 null"):
        roost.partition(arrow.array([1, None]), 2)
    with pytest.raises(TypeError, match="decimal128"):
        roost.partition(arrow.array([1], arrow.decimal128(5, 2)), 2)
    with pytest.raises(TypeError, match="at most 128 bits"):
        roost.unique(arrow.array([1], arrow.decimal256(50, 2)))


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    x = polars.Series([3, 1, 3])
    assert np.shares_memory(roost.from_arrow(x), x.to_numpy())
    assert roost.group_by(x).sum(polars.Series([1.0, 2.0, 3.0])).sum() == 6
    assert roost.Index(polars.Series(["a", "b"])).get_indexer(polars.Series(["b"])).to_list() == [1]
    with pytest.raises(ValueError, match="1 null"):  # numpy would make floats of it
        roost.from_arrow(polars.Series([1, None]))


def test_columns_of_pandas_that_are_none():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="2 levels"):
        roost.unique(pandas.MultiIndex.from_arrays([[1], [2]]))
    with pytest.raises(ValueError, match="null;"):
        roost.from_arrow(pandas.Series([1, None], dtype="Int64"))


def test_large_batches_take_the_partitioned_way(on):
    x = np.random.default_rng(0).integers(0, 1 << 40, 3_000_000)
    x = np.concatenate([x, x[:1_000_000]])
    got = on.back(roost.unique(on(x), sorted=True, return_inverse=True, return_counts=True))
    expected = np.unique(x, return_inverse=True, return_counts=True)
    for a, b in zip(got, expected):
        same(a, b)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_all_memory_of_a_join_is_counted(how):
    """Rows of 4 bytes would fit; they are wanted as 8, and are there twice for a moment."""
    n = math.isqrt(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 12)
    with pytest.raises(MemoryError, match=f"roost.join: no memory for {n * n} matches of 20 bytes"):
        roost.join(np.zeros(n, np.int32), np.zeros(n, np.int32), how=how)


@pytest.mark.parametrize(
    "view", [lambda x: x[::2], lambda x: x[::-1], lambda x: x[:0], lambda x: x.astype(">i8")]
)
def test_views(view):
    x = view(np.arange(10) % 3)
    x.flags.writeable = False
    same(roost.unique(x, sorted=True), np.unique(x).astype("i8"))


def test_results_are_of_the_library_of_the_argument(on):
    x = on(np.array([3, 1, 3], np.int32))
    for result in (
        *roost.unique(x, return_inverse=True, index_dtype="int32"),
        *roost.factorize(x),
        *roost.value_counts(x),
        *roost.partition(x, 1),
        *roost.join(x, x),
        roost.isin(x, x),
        roost.isin([1], x),
        roost.group_by(x).sum(x),
        roost.Map(x, x).find(x),
        roost.Map(x, x).find([3]),
        roost.Set(x).keys(),
    ):
        assert type(result) is type(x)
        on.back(result)  # which asks for the device


@pytest.mark.parametrize("other", [each for each in LIBRARIES if not each.gpu], ids=str)
@pytest.mark.parametrize("dtype", ["i4", "u8", "f2", "f8", "?", "c8"])
def test_results_of_two_libraries(on, other, dtype):
    """Of the one of the keys of a `group_by`, and of the queries of a table."""
    if on.gpu:
        pytest.skip("see test_arrays_of_two_devices_do_not_mix")
    x = np.array([3, 1, 3], "i4")
    for tail in ((), (2,), (3, 3)):
        values = np.arange(3 * 3 * 3).reshape(3, -1)[:, : int(np.prod(tail))].reshape(3, *tail).astype(dtype)
        grouped = roost.group_by(on(x))
        order = np.argsort(on.back(grouped.keys))
        same(on.back(grouped.first(other(values)))[order], values[[1, 0]])
        for table in (roost.Map(on(x), other(values)), roost.Map(other(x), on(values))):
            same(on.back(table.find(on(x))), values[[0, 1, 0]])
            same(other.back(table.find(other(x))), values[[0, 1, 0]])
        same(on.back(roost.MultiMap(on(x), other(values)).find(on(x[:1]))[1]), values[[0, 2]])
        store = roost.Store("i4", dtype, tail, like=on(x))
        store.insert(other(x[:2]), on(values[:2]))
        store.insert_or_assign(on(x[:2]), other(values[:2]))
        same(on.back(store.find(on(x))), values[[0, 1, 0]])
        same(other.back(store.find(other(x))), values[[0, 1, 0]])
        assert all(type(result) is type(on(x)) for result in store.items())
    if dtype != "c8":
        numbers = other(np.arange(3).astype(dtype))
        for how in ("sum", "mean", "min", "max"):
            on.back(getattr(roost.group_by(on(x)), how)(numbers))
    for result in (
        roost.Index(on(x)).get_indexer(other(x)),
        roost.Set(on(x)).contains(other(x)),
        roost.MultiMap(on(x), on(x)).count(other(x)),
        roost.isin(other(x), on(x)),
        *roost.join(other(x), on(x)),
    ):
        other.back(result)


def test_views_of_tensors(on):
    if on.is_numpy or on.name.startswith("jax"):
        pytest.skip("numpy has a test of its own, and jax no views")
    x = on(np.arange(40, dtype=np.int32) % 6)
    for view in (x[::2], x[1:], x.reshape(8, 5)[:, 1], x[:0], x[1:33].reshape(-1, 2), x[1:37].reshape(9, 4)):
        expected = np.unique(on.back(view), axis=0)
        same(on.back(roost.unique(view, sorted=True)), expected)
        assert on.back(roost.Set(view).contains(view)).all()


def test_arrays_of_two_devices_do_not_mix(on):
    if not on.gpu:
        pytest.skip("for devices")
    x, y = np.arange(4), on(np.arange(4))
    for call in (
        lambda: roost.isin(x, y),
        lambda: roost.join(y, x),
        lambda: roost.Map(y, x),
        lambda: roost.Map(y, y).find(x),
        lambda: roost.Index(x).get_indexer(y),
        lambda: roost.group_by(y).sum(x),
    ):
        with pytest.raises(ValueError, match="the CPU") as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: roost.unique(np.array([1j])), TypeError, "complex.* or strings where"),
        (lambda: roost.unique(np.array([object()])), TypeError, "objects"),
        (lambda: roost.partition(np.ma.masked_array([1], [True]), 2), TypeError, "masked"),
        (lambda: roost.unique(np.ma.masked_array([[1]], [[True]])), TypeError, "one dimension"),
        (lambda: roost.unique((np.arange(2), np.arange(3))), ValueError, "of 2 and of 3 rows"),
        (lambda: roost.unique((np.zeros((2, 2)), np.arange(2))), ValueError, r"column 0 of shape \(2, 2\)"),
        (lambda: roost.unique((np.arange(2), np.zeros(2, "c16"))), TypeError, "column 1: .*complex"),
        (lambda: roost.isin((np.arange(2),) * 2, (np.arange(2), ["a", "b"])), TypeError, "column 1: "),
        (lambda: roost.join((np.arange(2),) * 2, np.arange(2)), TypeError, "2 and 1 columns"),
        (lambda: roost.join((np.arange(2),) * 2, (np.arange(2), ["a"])), ValueError, "of 2 and of 1 rows"),
        (lambda: roost.unique(np.zeros((2, 2, 2))), ValueError, "shape"),
        (lambda: roost.unique(np.zeros((2, 9), np.int32)), ValueError, "36 bytes"),
        (lambda: roost.unique(np.array(["x"] * 2, "S40")), ValueError, "40 bytes"),
        (lambda: roost.unique([1], index_dtype="int16"), ValueError, "int32 or int64"),
        (lambda: roost.isin(np.array([1]), np.array([1], "M8[s]")), TypeError, "never equal; convert one"),
        (lambda: roost.isin(np.array(["1"]), np.array([1])), TypeError, "never equal"),
        (lambda: roost.join(*[np.zeros(10**6, "i1")] * 2), MemoryError, "roost.join: no memory for 10{12} m"),
        (lambda: roost.join([1], [1], how="cross"), ValueError, "'inner'.*'outer'"),
        (lambda: roost.group_by([1, 2]).sum([1]), ValueError, "2 keys but 1 value;"),
        (lambda: roost.group_by([1, 2]).sum(), TypeError, "no values"),
        (lambda: roost.group_by([1]).sum(["a"]), TypeError, "values of type str have only .*max.*numbers"),
        (lambda: roost.group_by([1]).agg({"v": "sum"}), TypeError, 'a dict .*total=."v", "sum"'),
        (
            lambda: roost.group_by([1]).agg(n=([1], "size")),
            ValueError,
            "'size' is no method; give one of sum.*\"count\" alone",
        ),
        (lambda: roost.duplicated([1], keep="any"), ValueError, "keep"),
        (lambda: roost.factorize([1], index_dtype=None), ValueError, "roost.factorize: index_dtype=None"),
        (lambda: roost.partition([1], 1.5), TypeError, "parts=1.5"),
        (lambda: roost.partition([1], 2, seed="a"), TypeError, "seed='a'"),
        (lambda: roost.unique([[1, 2], [3]]), ValueError, "roost.unique: "),
        (lambda: roost.isin(np.zeros((2, 3), int), [1]), TypeError, "rows of 3"),
        (lambda: roost.isin(np.zeros((2, 3), int), np.array([1])), TypeError, r"ravel\(\)"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
