"""group_by beside numpy and pandas: one order for all that comes of one object, at every size."""

import datetime
import decimal
import pathlib
import numbers
import pickle
import re
import threading

import numpy as np
import pytest
import roost
from columns import listed
from conftest import On
from roost._arrays.take import take
from roost._keys.columns import Column, bitmap_of

# On both sides of where the CPU or a GPU goes another way: a small batch is tried before anything is known of
# it, larger ones have more regions, samples are taken from 4 * 8192 rows on, a GPU adds up to 2^18 rows to
# tables in its memory, long lists become lists of pieces.
SIZES = [0, 1, 2, 31, 32, 33, 1000, 2**15, 28_984, 28_985, 28_986, 2**15 - 1, 2**16 + 1, 2**18, 2**18 + 1]
KEYS = ["i1", "u2", "i4", "i8", "f2", "f4", "f8", "?", "M8[s]", "S3", "S11", "S32", "U5", "rows16", "rows32"]
VALUES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "f2", "f4", "f8"]
METHODS = ["keys", "len", "count", "sum", "mean", "min", "max", "any", "all", "first", "last"]


def test_c_has_the_same_aggregates_and_joins():
    header = (pathlib.Path(__file__).parents[2] / "c/include/roost.h").read_text()
    names = lambda first: {
        name.lower()
        for enum in re.findall(r"enum \{(.*?)\};", header, re.DOTALL)
        for name in re.findall(r"ROOST_(\w+) = \d+", enum)
        if first in enum
    }
    assert names("ROOST_SUM") == set(roost._host.reductions)
    assert names("ROOST_JOIN_INNER") == {f"join_{how}" for how in roost._functions._HOW if how != "full"}


def make_keys(rng, kind, n):
    """n keys of a kind, few, some or nearly all of them distinct, and some of them frequent."""
    numbers = rng.integers(0, rng.choice([1, 7, 1000, max(n // 8, 1), 2**40]), n)
    numbers[rng.random(n) < rng.choice([0, 0, 0.4])] = 3
    if kind.startswith("rows"):
        columns = int(kind[4:]) // 8
        return np.stack([numbers >> (3 * c) for c in range(columns)], axis=1)
    if kind == "?":
        return numbers % 2 == 1
    if kind[0] in "SU":
        return (numbers % 1000 if kind == "S3" else numbers % 10**5).astype(kind)
    with np.errstate(over="ignore"):
        return numbers.astype(kind) if kind[0] in "Mf" else numbers.astype("u8").astype(kind)


def make_values(rng, kind, n):
    if kind == "?":
        return rng.random(n) < 0.5
    if kind[0] == "f":
        values = rng.integers(-1000, 1000, n).astype(kind) / 4  # of which sums are exact
        values[rng.random(n) < 0.0001] = np.nan
        return values
    limits = np.iinfo(kind)
    low, high = (limits.min, limits.max) if rng.random() < 0.5 else (0, 100)
    return rng.integers(low, high, n, dtype=kind, endpoint=True)


class Reference:
    """The groups of keys by numpy, in the order of the keys that roost gave."""

    def __init__(self, keys, given):
        n = len(keys)
        words, given_words = (np.ascontiguousarray(a) for a in (keys, given))
        if keys.ndim == 2:
            words, given_words = (a.view([("", a.dtype)] * a.shape[1])[:, 0] for a in (words, given_words))
        distinct, inverse = np.unique(words, return_inverse=True)
        assert len(given) == len(distinct)
        order = np.argsort(given_words, kind="stable")
        assert np.array_equal(given_words[order], distinct, equal_nan=keys.dtype.kind == "f")
        number = np.empty(len(distinct), np.int64)
        number[:] = order
        self.group = number[inverse.reshape(-1)] if n else np.zeros(0, np.int64)
        self.rows = np.argsort(self.group, kind="stable")
        self.counts = np.bincount(self.group, minlength=len(distinct))
        self.starts = np.cumsum(self.counts) - self.counts

    def reduce(self, how, values):
        if how in ("first", "last"):
            return values[self.rows[self.starts if how == "first" else self.starts + self.counts - 1]]
        values = values[self.rows]
        if how in ("any", "all"):
            function = np.logical_or if how == "any" else np.logical_and
            return function.reduceat(values != 0, self.starts) if len(values) else values != 0
        if how in ("min", "max"):
            function = np.minimum if how == "min" else np.maximum
            return function.reduceat(values, self.starts) if len(values) else values
        kind = {"b": "i8", "i": "i8", "u": "u8"}.get(values.dtype.kind, values.dtype)
        wide = values.astype("f8" if how == "mean" or values.dtype.kind == "f" else kind)
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(wide, self.starts) if len(values) else wide
        return sums / self.counts if how == "mean" else sums.astype(kind)


def same(found, expected, close=False):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if close:
        rounded = 1e-12 * np.abs(np.nan_to_num(expected)).max(initial=0)  # where large ones cancel out
        assert np.allclose(found, expected, rtol=1e-12, atol=rounded, equal_nan=True)
    else:
        assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def check(rng, keys, values, methods, times, on=On("numpy")):
    """Calls one object in random order. Nobody looks at the keys before all is done."""
    g = roost.group_by(on(keys))
    done = []
    for method in rng.permutation(np.repeat(methods, times)):
        columns = [values[i] for i in rng.integers(0, len(values), rng.integers(1, 4))]
        if method == "keys":
            found = g.keys
        elif method == "len":
            found = len(g)
        elif method == "count":
            found = g.count()
        else:
            found = getattr(g, method)(*map(on, columns))
        done.append((method, columns, found))
    given = on.back(g.keys)
    assert given.dtype == keys.dtype
    reference = Reference(keys, given)
    for method, columns, found in done:
        if method == "keys":
            same(on.back(found), given)
        elif method == "len":
            assert found == len(reference.counts)
        elif method == "count":
            same(on.back(found), reference.counts)
        else:
            for result, column in zip(found if len(columns) > 1 else [found], columns):
                close = method == "mean" and column.dtype.itemsize == 8
                same(on.back(result), reference.reduce(method, column), close)


def test_ends_of_decimals_and_times_are_objects():
    pa = pytest.importorskip("pyarrow")
    groups = roost.group_by(np.array([1, 1, 2]))
    order = np.argsort(groups.keys)
    D, T = decimal.Decimal, datetime.time
    for values in ([None, D("2.2"), D("3.0")], [T(1), None, T(2)]):
        for column in (pa.array(values), pa.chunked_array([values[:1], values[1:]], pa.array(values).type)):
            assert groups.first(column).take(order).to_pylist() == [values[0], values[2]]
            assert groups.last(column).take(order).to_pylist() == [values[1], values[2]]
    sums = groups.sum(pa.array([D("1.5"), None, D("2.0")]))
    assert sums.take(order).to_pylist() == [D("1.5"), D("2.0")]


@pytest.mark.parametrize("n", SIZES)
def test_one_object_in_any_order(n):
    rng = np.random.default_rng(n)
    kinds = KEYS if n < 50_000 else rng.permutation(KEYS)[:5]
    for kind in kinds:
        values = [make_values(rng, v, n) for v in rng.permutation(VALUES)[:5]]
        check(rng, make_keys(rng, kind, n), values, METHODS, 2)


@pytest.mark.parametrize("kind", KEYS)
def test_values_of_every_type(kind):
    rng = np.random.default_rng(7)
    n = 30_000
    check(rng, make_keys(rng, kind, n), [make_values(rng, v, n) for v in VALUES], METHODS[3:], 4)


@pytest.mark.parametrize("n", [0, 1, 1000, 2**15 - 1, 2**15, 2**17])
def test_one_object_of_every_library(on, n):
    rng = np.random.default_rng(n + 1)
    for kind in ["i4", "i8", "f4", "u2", "rows16"]:
        values = [make_values(rng, v, n) for v in ("i1", "i4", "i8", "f4", "f8", "f2")]
        check(rng, make_keys(rng, kind, n), values, METHODS, 2, on)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_every_pair_of_calls(kind, method, on):
    """The first call numbers the keys, and the others find them numbered; the last ones group the rows."""
    rng = np.random.default_rng(8)
    n = 20_000
    keys, numbers = make_keys(rng, kind, n), np.arange(n, dtype="i4")
    fractions = rng.integers(-9, 9, n) / 4
    for column in (numbers, fractions):
        for other in METHODS:
            g = roost.group_by(on(keys))
            results, calls = [], (method, other, "sum", "max")
            for how in calls:
                if how in ("keys", "len"):
                    results.append(g.keys if how == "keys" else len(g))
                else:
                    results.append(g.count() if how == "count" else getattr(g, how)(on(column)))
            reference = Reference(keys, on.back(g.keys))
            for how, result in zip(calls, results):
                if how == "len":
                    assert result == len(reference.counts)
                elif how == "count":
                    same(on.back(result), reference.counts)
                elif how != "keys":
                    same(on.back(result), reference.reduce(how, column))


@pytest.mark.parametrize("n, kind", [(10**6, "i8"), (10**6, "U5"), (3 * 10**6, "i4")])
def test_millions_of_rows(n, kind):
    rng = np.random.default_rng(n)
    keys = make_keys(rng, "i8", n) if kind == "i8" else rng.integers(0, n // 3, n).astype(kind)
    g = roost.group_by(keys)
    values = {kind: make_values(rng, kind, n) for kind in ("f8", "i2", "f4", "u8")}
    sums = {kind: g.sum(v) for kind, v in values.items()}  # before anybody has seen the keys
    least = g.min(values["i2"])
    reference = Reference(keys, g.keys)
    for kind in values:
        same(sums[kind], reference.reduce("sum", values[kind]))
    same(least, reference.reduce("min", values["i2"]))
    same(g.first(keys), g.keys)
    same(g.count(), reference.counts)


def test_sums_before_and_after_the_keys_are_the_same(on):
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 20_000, 50_000).astype("i4"), rng.normal(size=50_000)
    first = roost.group_by(on(keys))
    sums, distinct = on.back((first.sum(on(values)), first.keys))
    second = roost.group_by(on(keys))
    distinct_2, least, sums_2 = on.back(
        (second.keys, second.min(on(values.astype("f4"))), second.sum(on(values)))
    )
    same(distinct, distinct_2)
    same(sums, sums_2)
    expected = np.bincount(keys, values, minlength=20_000)
    assert np.allclose(sums, expected[distinct])


def test_extremes_and_means_do_not_depend_on_what_was_called_before():
    keys = np.array([1, 1, 2, 2, 3, 3, 4, 4])
    zeros = np.array([0.0, -0.0, -0.0, 0.0, np.nan, 1.0, -np.inf, np.inf])
    large = np.array([2**63 - 1, 1, -(2**63), -1, 2**53 + 1, 1, 3, 4])
    whole = np.full(8, 2**31 - 1, "i4")
    for how in ("min", "max", "mean"):
        for column in (zeros, zeros.astype("f4"), zeros.astype("f2"), large, whole, whole > 0):
            results = []
            for before in ("keys", "count", "first"):
                g = roost.group_by(keys)
                g.first(zeros) if before == "first" else g.keys if before == "keys" else g.count()
                result = getattr(g, how)(column)[np.argsort(g.keys)]
                results.append((result.dtype, np.isnan(result).tolist(), result.tobytes()))
            assert results[0] == results[1] == results[2]
    g = roost.group_by(keys)
    by_key = np.argsort(g.keys)
    assert np.signbit(g.min(zeros)[by_key][:2]).all() and not np.signbit(g.max(zeros)[by_key][:2]).any()


def test_quantiles_of_no_and_of_several_parts():
    g = roost.group_by(np.array([1, 2, 1]))
    values = np.array([1, 2, 3])
    assert g.quantile(values, q=[]).shape == (2, 0)
    assert dict(zip(g.keys.tolist(), g.quantile(values, q=[0, 1]).tolist())) == {1: [1, 3], 2: [2, 2]}
    assert roost.group_by(np.array([], int)).quantile(np.array([], float), q=[0.5, 1]).shape == (0, 2)


@pytest.mark.filterwarnings("error")
def test_sums_beyond_float16_are_infinite():
    assert roost.group_by(np.zeros(70000, int)).sum(np.ones(70000, "f2")).tolist() == [np.inf]


AGGREGATES = {
    **dict.fromkeys("count sum mean min max product any all first last median nunique mode".split(), [None]),
    **dict.fromkeys(("var", "std", "cov"), [0, 1, 3]),
    "quantile": [0.0, 0.9, 0.5, 1.0],
    **dict.fromkeys(("nlargest", "nsmallest"), [0, 1, 2, 1000]),
    "corr": [None],
}


def of_group(how, x, there, y, option):
    """One aggregate of the values of one group by numpy; None for a null."""
    if how in ("first", "last"):
        at = 0 if how == "first" else -1
        return x[at] if there[at] else None
    x, y = x[there], y[there]
    if x.dtype == "f2":  # of which numpy 2.4 does not sort large arrays right on some processors
        x = x.astype("f4")
    if how == "count":
        return len(x)
    if how == "nunique":
        return len(np.unique(x))
    if how in ("nlargest", "nsmallest"):
        ordered, nans = np.sort(x[x == x]), x[x != x]
        return np.append(ordered[::-1] if how == "nlargest" else ordered, nans)[:option]
    if how in ("var", "std", "cov", "corr"):
        less = 1 if how == "corr" else option
        if len(x) <= less:
            return None
        x, y = x.astype("f8"), y.astype("f8")
        if how == "corr":
            if np.ptp(x) == 0 or np.ptp(y) == 0:
                return np.nan
            return np.corrcoef(x, y)[0, 1]
        return np.cov(x, y, ddof=less)[0, 1] if how == "cov" else getattr(np, how)(x, ddof=less)
    if not len(x):
        return None
    if how in ("any", "all"):
        return getattr(np, how)(x != 0)
    if how in ("median", "quantile"):
        return np.quantile(x.astype("f8"), 0.5 if how == "median" else option)
    if how == "mode":
        values, counts = np.unique(x, return_counts=True)
        return values[np.argmax(counts)]
    if how in ("min", "max"):
        return getattr(np, how)(x)
    kind = {"b": "i8", "i": "i8", "u": "u8"}.get(x.dtype.kind, "f8")
    return getattr(np, "prod" if how == "product" else how)(x.astype("f8" if how == "mean" else kind))


def type_of(how, dtype):
    """The type of the results of an aggregate."""
    if how in ("count", "nunique"):
        return np.dtype("i8")
    if how in ("any", "all"):
        return np.dtype("?")
    if how in ("sum", "product"):
        return np.dtype({"b": "i8", "i": "i8", "u": "u8"}.get(dtype.kind, dtype))
    same_type = how in ("min", "max", "first", "last", "mode", "nlargest", "nsmallest")
    return dtype if same_type else np.dtype("f8")


def almost(found, expected, how):
    """Whether a result is right: exactly, where nothing is rounded."""
    if how in ("sum", "mean", "product", "var", "std", "cov", "corr", "median", "quantile"):
        rounded = {"f2": 2e-3, "f4": 1e-5}.get(found.dtype.str[1:], 1e-9)
        with np.errstate(over="ignore"):
            expected = np.asarray(expected, found.dtype)
        return np.allclose(found, expected, rtol=rounded, atol=rounded, equal_nan=True)
    return np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def random_values(rng, kind, n):
    """Values of which float64 has the sums and the squares, and the ends of their type."""
    if kind == "?":
        return rng.random(n) < rng.choice([0.01, 0.5])
    if kind[0] == "f":
        values = (rng.integers(-9, 9, n) / 4).astype(kind)
        values[rng.random(n) < rng.choice([0, 0.01])] = np.nan
        values[rng.random(n) < 0.05] = -0.0
        return values
    limits = np.iinfo(kind)
    if kind[1] != "8" and rng.random() < 0.5:
        return rng.integers(limits.min, limits.max, n, dtype=kind, endpoint=True)
    values = rng.integers(0, rng.choice([3, 100]), n).astype(kind)
    return values if kind[0] == "u" else values - np.asarray(2, kind)


def with_nulls(on, values, there):
    """A column of any library with nulls where not `there`."""
    if there.all():
        return on(values)
    if on.is_numpy:
        return np.ma.MaskedArray(values, ~there)
    array, library = take(on(values), "test")
    return Column(array, library, bitmap_of(there), values)


@pytest.mark.parametrize("n", [0, 1, 2, 33, 1000, 28_985, 2**15, 2**16 + 1, 2**18, 2**18 + 1])
def test_every_aggregate_with_nulls(n, on):
    rng = np.random.default_rng(n + 100)
    for groups in (1, 5, n // 8 + 1, n + 1):
        keys = np.arange(n) if groups == n + 1 else rng.integers(0, groups, n)
        keys[rng.random(n) < rng.choice([0, 0.6])] = 0
        rng.shuffle(keys)
        g, done = roost.group_by(on(keys)), []
        for how in rng.permutation(list(AGGREGATES))[: 20 if n < 50_000 else 8]:
            x, y = (random_values(rng, rng.choice(VALUES), n) for _ in range(2))
            if how == "product" and x.dtype.kind == "f":  # whatever is multiplied first, nothing overflows
                x = np.where(rng.random(n) < 0.001, 2, np.sign(x)).astype(x.dtype)
            parts = [rng.random(n) >= rng.choice([0, 0, 0.05, 0.5, 1]) for _ in range(2)]
            option = rng.choice(AGGREGATES[how])
            column = with_nulls(on, x, parts[0])
            if how in ("corr", "cov"):
                both = column, with_nulls(on, y, parts[1])
                found = g.corr(*both) if how == "corr" else g.cov(*both, ddof=option)
                parts[0] = parts[0] & parts[1]
            elif how in ("nlargest", "nsmallest"):
                found = getattr(g, how)(column, option)
            elif option is None:
                found = getattr(g, how)(column)
            else:
                found = getattr(g, how)(column, **{"q" if how == "quantile" else "ddof": option})
            done.append((how, x, parts[0], y, option, found))
        reference = Reference(keys, on.back(g.keys))
        some = rng.permutation(len(reference.counts))[:100]
        for how, x, there, y, option, found in done:
            offsets = None
            if how in ("nlargest", "nsmallest"):
                found, offsets = on.back(found)
                sizes = np.minimum(np.bincount(reference.group, there, len(reference.counts)), option)
                assert np.array_equal(np.diff(offsets), sizes) and offsets[-1] == len(found)
            elif not isinstance(found, np.ma.MaskedArray):
                found = on.back(found)
            assert found.dtype == type_of(how, x.dtype), how
            for group in some:
                rows = reference.rows[reference.starts[group] :][: reference.counts[group]]
                with np.errstate(over="ignore", invalid="ignore"):
                    expected = of_group(how, x[rows], there[rows], y[rows], option)
                if offsets is not None:
                    mine = found[offsets[group] : offsets[group + 1]]
                else:
                    mine = found[group]
                if expected is None and there.all():
                    assert np.isnan(mine), how
                elif expected is None or mine is np.ma.masked:
                    assert expected is None and mine is np.ma.masked, how
                else:
                    assert almost(mine, expected, how), (how, x.dtype, mine, expected, x[rows], there[rows])


def test_dates_durations_and_texts():
    rng = np.random.default_rng(12)
    n = 30_000
    keys = rng.integers(0, 3000, n)
    seconds = rng.integers(-9, 9, n) * 10**8
    dates, durations = seconds.astype("M8[s]"), seconds.astype("m8[s]")
    dates[rng.random(n) < 0.4] = durations[rng.random(n) < 0.4] = "NaT"
    texts = np.array(["b", "", "ä", "c" * 50, "a\0b"], object)[rng.integers(0, 5, n)]
    g = roost.group_by(keys)
    reference = Reference(keys, g.keys)
    methods = "count first last min max mode nunique".split()
    for values, more in ((texts, ()), (dates, ("median",)), (durations, ("median", "sum", "mean"))):
        results = {how: getattr(g, how)(values).tolist() for how in (*methods, *more)}
        greatest, offsets = g.nlargest(values, 2) if more else (None, None)
        missing = np.isnat(values) if more else np.zeros(n, bool)
        for k in rng.permutation(len(g))[:300]:
            rows = reference.rows[reference.starts[k] :][: reference.counts[k]]
            there = sorted(values[rows[~missing[rows]]].tolist())
            expected = {how: None for how in results}
            expected |= {"first": values[rows[0]].tolist() if more else values[rows[0]]}
            expected |= {"last": values[rows[-1]].tolist() if more else values[rows[-1]]}
            expected |= {"count": len(there), "nunique": len(set(there))}
            if there:
                expected |= {"min": there[0], "max": there[-1], "mode": max(there, key=there.count)}
            if there and more:
                middle = there[(len(there) - 1) // 2], there[len(there) // 2]
                expected["median"] = middle[0] + (middle[1] - middle[0]) // 2
                assert greatest[offsets[k] : offsets[k + 1]].tolist() == there[::-1][:2]
            if there and "sum" in more:
                expected["sum"] = sum(there, datetime.timedelta())
                expected["mean"] = datetime.timedelta(
                    seconds=round(np.mean([t.total_seconds() for t in there]))
                )
            assert {how: results[how][k] for how in results} == expected
    for how, values in (
        ("sum", dates),
        ("mean", dates),
        ("var", durations),
        ("sum", texts),
        ("median", texts),
    ):
        with pytest.raises(TypeError, match=f"roost.GroupBy.{how}: values of type"):
            getattr(g, how)(values)


def nullable(name, values, there):
    """A column of another library with nulls."""
    library = pytest.importorskip(name.split("-")[0])
    if name == "pandas":
        return library.Series(library.arrays.IntegerArray(values, ~there))
    given = [v if t else None for v, t in zip(values.tolist(), there)]
    if name == "pandas-arrow":
        return library.Series(given, dtype="int64[pyarrow]")
    return library.Series(given) if name == "polars" else library.chunked_array([given[:7], given[7:]])


@pytest.mark.parametrize("name", ["pandas", "pandas-arrow", "polars", "pyarrow"])
def test_nullable_columns(name):
    if name == "pandas-arrow":
        pytest.importorskip("pyarrow")
    rng = np.random.default_rng(13)
    keys, values, there = rng.integers(0, 300, 1000), rng.integers(0, 50, 1000), rng.random(1000) < 0.3
    g = roost.group_by(keys)
    column, masked = nullable(name, values, there), np.ma.MaskedArray(values, ~there)
    plain = lambda column: [None if type(v).__name__ == "NAType" else v for v in listed(column)]
    whole = lambda values: [isinstance(value, numbers.Integral) for value in values]
    for how in ("count", "sum", "mean", "max", "last", "std", "median", "nunique", "mode"):
        found, expected = getattr(g, how)(column), getattr(g, how)(masked)
        assert type(found) is type(column)
        found, expected = plain(found), expected.tolist()
        assert found == expected and whole(found) == whole(expected)
        assert (None in found) == (how not in ("count", "nunique"))
    assert repr(plain(g.corr(column, values))) == repr(g.corr(masked, masked).tolist())


def test_agg():
    keys, x, y = np.array([5, 5, 6]), np.array([1.0, 4.0, 7.0]), np.array([2, 0, 3])
    g = roost.group_by(keys)
    found = g.agg(
        n="count", a=(x, "sum"), b=(x, "quantile", 0.25), c=((x, y), "cov", 0), d=(y, "var", 0), e=[y, "std"]
    )
    order = np.argsort(g.keys)
    assert {name: result[order].tolist()[0] for name, result in found.items()} == {
        **{"n": 2, "a": 5.0, "b": 1.75, "c": -1.5, "d": 1.0, "e": 2**0.5}
    }
    assert g.quantile(x, q=[0, 1])[order].tolist() == [[1, 4], [7, 7]]
    assert g.agg() == {}
    for wrong, error, message in (
        ({"a": x}, TypeError, 'a is of type ndarray; give .values, "sum"'),
        ({"a": (x, "total")}, ValueError, "a='total' is no method; give one of sum, "),
        ({"a": (x, "nlargest")}, ValueError, "a='nlargest' is no method; give one of"),
        ({"a": (x, "sum", 1)}, TypeError, "a, which is sum, takes no option, but is given 1"),
        ({"a": (x, "corr")}, ValueError, "a is the corr of 3 columns; give two"),
        ({"a": (x, "quantile", 1.5)}, ValueError, "q=1.5; give numbers from 0 to 1"),
        ({"a": (x, "quantile", "half")}, TypeError, "q='half'; give a number from 0 to 1"),
        ({"a": (x, "var", 0.5)}, TypeError, "ddof=0.5; give a whole number"),
        ({"a": (x[:2], "sum")}, ValueError, "3 keys but 2 values"),
    ):
        with pytest.raises(error, match=message):
            g.agg(**wrong)
    with pytest.raises(ValueError, match="n=-1"):
        g.nlargest(x, -1)


def test_nothing_is_lost_far_from_zero():
    keys = np.arange(100_000) % 10
    values = 1e9 + keys + np.arange(100_000) // 10 % 2  # of each key as many of two numbers side by side
    g = roost.group_by(keys)
    assert np.abs(g.var(values, ddof=0) - 0.25).max() < 1e-9
    assert np.abs(g.cov(values, -values, ddof=0) + 0.25).max() < 1e-9
    assert np.abs(g.corr(values, -values) + 1).max() < 1e-9
    ends = np.array([2**64 - 1, 0, 2**63], "u8")
    g = roost.group_by(np.zeros(3, "i8"))
    assert g.nlargest(ends, 3)[0].tolist() == [2**64 - 1, 2**63, 0] and g.mode(ends).tolist() == [0]
    assert g.nsmallest(ends.view("i8"), 2)[0].tolist() == [-(2**63), -1]
    huge = np.array([-1.7e308, 1.7e308, np.inf])
    assert roost.group_by(np.zeros(2, "i8")).median(huge[:2]).tolist() == [0]
    assert g.median(huge).tolist() == [1.7e308] and g.quantile(huge, q=0.9).tolist() == [np.inf]
    assert np.isnan(g.var(huge)).all() and g.product(ends).tolist() == [0]


def test_threads_call_a_new_object():
    rng = np.random.default_rng(6)
    keys, values = rng.integers(0, 5000, 100_000), rng.integers(0, 100, 100_000)
    for _ in range(10):
        g = roost.group_by(keys)
        calls = [
            lambda: g.sum(values),
            lambda: g.sum(values.astype("f8")),
            lambda: g.first(keys),
            lambda: g.keys,
            lambda: g.count(),
            lambda: g.max(values),
        ]
        results = [None] * len(calls)

        def run(i):
            results[i] = calls[i]()

        threads = [threading.Thread(target=run, args=(i,)) for i in rng.permutation(len(calls))]
        [t.start() for t in threads]
        [t.join() for t in threads]
        reference = Reference(keys, g.keys)
        same(results[0], reference.reduce("sum", values))
        same(results[1], reference.reduce("sum", values).astype("f8"))
        same(results[2], g.keys)
        same(results[3], g.keys)
        same(results[4], reference.counts)
        same(results[5], reference.reduce("max", values))


def test_threads_ask_one_object():
    rng = np.random.default_rng(4)
    keys, values = rng.integers(0, 5000, 100_000), rng.integers(0, 100, 100_000)
    g = roost.group_by(keys)
    expected = np.bincount(keys, values)[g.keys].astype("i8")
    wrong = []

    def ask():
        for _ in range(5):
            if not np.array_equal(g.sum(values), expected) or g.min(values).min() < 0:
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_keys_that_change_later_do_not_count():
    keys = np.arange(40_000) % 100
    g = roost.group_by(keys)
    keys[:] = 0
    assert g.sum(np.ones(40_000, "i8")).tolist() == [400] * 100
    assert g.sum(np.ones(40_000)).tolist() == [400] * 100
    g.count()[:] = 0
    g.keys[:] = 0
    assert g.count().tolist() == [400] * 100
    assert g.first(np.arange(40_000)).max() == 99


def test_floats_do_not_depend_on_threads():
    rng = np.random.default_rng(5)
    keys, values = rng.integers(0, 3, 400_000), rng.normal(size=400_000).astype("f4")
    methods = ("sum", "product", "mean", "var", "median", "mode")
    several = [getattr(roost.group_by(keys), how)(values) for how in methods]
    roost.set_threads(1)
    try:
        for how, found in zip(methods, several):
            same(found, getattr(roost.group_by(keys), how)(values))
    finally:
        roost.set_threads(0)


def test_ends_of_types():
    g = roost.group_by(np.array([5, 5, 6]))
    order = np.argsort(g.keys)
    top = np.array([2**63 - 1, 2**63 - 1, -(2**63)])
    assert g.sum(top)[order].tolist() == [-2, -(2**63)]  # wraps around, as documented
    assert g.mean(top)[order].tolist() == [2.0**63, -(2.0**63)]
    assert g.max(top)[order].tolist() == [2**63 - 1, -(2**63)]
    most = np.array([2**64 - 1, 1, 2**64 - 1], "u8")
    assert g.sum(most)[order].tolist() == [0, 2**64 - 1]
    assert g.min(most)[order].tolist() == [1, 2**64 - 1]
    halves = np.array([40000, 40000, 0.5], "f2")
    with np.errstate(over="ignore"):
        sums = g.sum(halves)
    assert sums[order].tolist() == [np.inf, 0.5] and sums.dtype == np.float16
    assert g.mean(halves)[order].tolist() == [40000, 0.5]
    bools = np.array([False, True, True])
    assert g.min(bools)[order].tolist() == [False, True] and g.min(bools).dtype == np.bool_
    assert g.sum(bools)[order].tolist() == [1, 1]
    odd = np.array([2, 255, 0], "u1").view("?")  # other bytes than 0 and 1, which numpy takes for true
    assert g.sum(odd)[order].tolist() == [2, 0]
    assert g.max(odd)[order].view("u1").tolist() == [1, 0]


def test_nan():
    g = roost.group_by(np.array([np.nan, 1.0, -0.0, np.nan, 0.0]))
    order = np.argsort(g.keys)
    assert len(g) == 3 and g.count()[order].tolist() == [2, 1, 2]
    values = np.array([1.0, 2.0, np.nan, 3.0, 4.0])
    for how in ("sum", "mean", "min", "max"):
        found = getattr(g, how)(values)[order]
        assert np.isnan(found[0]) and found[1] == 2 and not np.isnan(found[2])
    same(g.first(values)[order], np.array([np.nan, 2.0, 1.0]))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6).astype("M8[D]"),
        np.arange(6).astype("m8[s]"),
        np.array(["x", "yy", "", "z", "é", "w"]),
        np.array(["x", "yy", "", "z", "é", "w"], np.dtypes.StringDType()),
        np.array([b"x", b"y\0z", b"", b"z", b"v", b"w"]),
        np.arange(12).reshape(6, 2),
        np.arange(6) * 1j,
        np.array([None, "a", 1, (), {}, 2.5], object),
        np.arange(6, dtype=">i4"),
        np.arange(12)[::2],
        [1, 2, 3, 4, 5, 6],
    ],
    ids=lambda v: str(getattr(v, "dtype", "list")),
)
def test_first_of_any_column(values):
    keys = np.array([9, 8, 9, 7, 8, 7])
    g = roost.group_by(keys)
    found, expected = g.first(values), np.asarray(values)[[0, 1, 3]]
    where = [g.keys.tolist().index(key) for key in (9, 8, 7)]
    assert found[where].tolist() == expected.tolist()


def test_empty():
    g = roost.group_by(np.zeros(0, "f4"))
    assert len(g) == 0 and g.keys.dtype == np.float32 and g.count().tolist() == []
    assert g.sum(np.zeros(0, "i4")).dtype == np.int64 and g.mean(np.zeros(0, "?")).dtype == np.float64
    assert g.first(np.zeros((0, 3))).shape == (0, 3)
    assert roost.group_by(np.zeros(0, "U3")).keys.dtype == np.dtype("U3")


def test_refusals():
    g = roost.group_by(np.array([1, 2]))
    for how in ("sum", "mean", "min", "max", "first", "last", "var", "median", "mode"):
        for values in (np.zeros(1), np.zeros(3), np.zeros((3, 2))[: 1 if how == "first" else 3, 0], []):
            with pytest.raises(ValueError, match=re.escape(f"roost.GroupBy.{how}: 2 keys but")):
                getattr(g, how)(values)
        with pytest.raises(TypeError, match="no values"):
            getattr(g, how)()
        with pytest.raises(TypeError, match="a set of values"):
            getattr(g, how)({1, 2})
    for values in (np.zeros(2, "M8[s]"), np.zeros(2, "c16"), np.array(["a", "b"]), np.zeros((2, 2))):
        with pytest.raises(TypeError, match="one dimension of numbers"):
            g.sum(values)
    with pytest.raises(ValueError, match="2 keys but 3"):  # of all columns, before anything is done
        g.sum(np.zeros(2), np.zeros(3))


def test_as_pandas_has_it():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(11)
    keys, values = (rng.integers(-50, 5000, 200_000), rng.integers(-9, 9, 200_000).astype("f8"))
    g = roost.group_by(keys)
    theirs = pandas.Series(values).groupby(keys)
    order = np.argsort(g.keys)
    for how in ("sum", "mean", "min", "max", "first", "count"):
        found = getattr(g, how)() if how == "count" else getattr(g, how)(pandas.Series(values))
        expected = getattr(theirs, how)()
        assert np.array_equal(g.keys[order], expected.index)
        assert np.allclose(found[order], expected.to_numpy())


def test_types_of_results_depend_on_types_alone():
    """Whether a mask hides a value, a value is NaN, or a row has no key, does not matter."""

    def kinds(results):
        kinds = {(type(found), found.dtype) for found in results}
        assert len(kinds) == 1, kinds
        return kinds.pop()[0]

    keys, values = np.array([1, 1, 2]), np.array([1.5, 2, 3])
    masks = [
        np.ma.array(values),
        *(np.ma.array(values, mask=m) for m in ([0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1])),
    ]
    g = roost.group_by(keys)
    hows = "sum product mean min max any all first last var std median quantile mode".split()
    for how in hows:
        call = getattr(g, how)
        assert (
            kinds([call(x) for x in masks])
            is kinds([g.transform(how, x) for x in masks])
            is np.ma.MaskedArray
        )
        assert kinds([call(x) for x in (values, np.array([np.nan, 1, 2]))]) is np.ndarray
        assert kinds([g.transform(how, x) for x in (values, np.array([np.nan, 1, 2]))]) is np.ndarray
    for call in (g.cumsum, g.rank, g.shift, g.ffill, g.bfill):
        assert kinds(map(call, masks)) is np.ma.MaskedArray
    for how in ("count", "nunique"):
        assert kinds(getattr(g, how)(x) for x in masks) is np.ndarray
    of_objects = [np.array(x, object) for x in (["a", "b", "c"], [None, "b", "c"], [None] * 3)]
    for how in ("first", "shift", "ffill"):
        assert kinds(getattr(g, how)(x) for x in of_objects) is np.ndarray
    assert dict(zip(g.keys.tolist(), g.first(of_objects[1]))) == {1: None, 2: "c"}

    with_nan = [values, np.array([1, np.nan, np.nan]), np.full(3, np.nan)]
    skipping = roost.group_by(keys, skipna=True)
    assert kinds(map(skipping.sum, with_nan)) is kinds(map(g.rank, with_nan)) is np.ma.MaskedArray
    assert kinds(map(skipping.cumsum, with_nan)) is np.ma.MaskedArray
    dates = [np.array(x, "M8[D]") for x in (["2026-01-01"] * 3, ["2026-01-01", "NaT", "NaT"])]
    assert kinds(g.rank(x, method="min") for x in dates) is np.ma.MaskedArray
    assert kinds(map(g.shift, dates)) is kinds(map(g.max, dates)) is np.ndarray
    numbers = np.arange(3)
    assert kinds(g.shift(numbers, n=n) for n in (-5, 0, 1)) is np.ma.MaskedArray
    dropping = [roost.group_by(k, dropna=True) for k in (np.array([1.0, 1, 2]), np.array([1, np.nan, 2]))]
    for call in (lambda d: d.cumcount(), lambda d: d.transform("sum", numbers), lambda d: d.cumsum(numbers)):
        assert kinds(map(call, dropping)) is np.ma.MaskedArray
    assert kinds(pickle.loads(pickle.dumps(d)).cumcount() for d in dropping) is np.ma.MaskedArray
    assert kinds(d.sum(numbers) for d in dropping) is np.ndarray

    for masked in (masks, [np.ma.array(["a", "b", "a"], mask=m) for m in ([0, 0, 0], [0, 1, 0])]):
        assert kinds(map(roost.unique, masked)) is kinds(roost.unique(x, sorted=True) for x in masked)
        assert (
            kinds(map(roost.unique, masked))
            is kinds(roost.group_by(x).keys for x in masked)
            is np.ma.MaskedArray
        )
        assert kinds(roost.value_counts(x)[0] for x in masked) is np.ma.MaskedArray
        assert kinds(roost.drop_duplicates(x) for x in masked) is np.ma.MaskedArray
        assert kinds(roost.Set(x).keys() for x in masked) is np.ma.MaskedArray
        assert kinds(pickle.loads(pickle.dumps(roost.Map(x, np.arange(len(x))))).keys() for x in masked)
        assert kinds(roost.unique((x, np.arange(len(x))))[0] for x in masked) is np.ma.MaskedArray
        assert kinds(roost.factorize(x)[1] for x in masked) is np.ndarray  # nulls are left out
        assert kinds(roost.factorize(x, use_na_sentinel=False)[1] for x in masked) is np.ma.MaskedArray
