"""Values leave groups as they came: no integer, bool, decimal, date or category passes through a float, and
what lies under a null is not read. Against Python's own numbers."""

import datetime
import decimal
import fractions
import statistics

import numpy as np
import pytest
from columns import of_the_day

import roost

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))

KEYS = [1, 2, 2, 3, 1, 2, 3, 1, 4, 2]  # 3 has nulls alone, 4 a single value
DAY, UTC = datetime.datetime(2026, 3, 29, 0, 30), datetime.timezone.utc
VALUES = {
    "int": [2**53 + 1, None, 2**60 + 1, None, -(2**53) - 1, -(2**63), None, 2**53 + 1, 2**63 - 1, 7],
    "uint": [2**53 + 1, None, 2**63 + 1, None, 0, 2**53 + 1, None, 2**53 + 1, 2**64 - 1, 2**53 + 1],
    "bool": [True, None, False, None, False, False, None, True, True, True],
    "decimal": [
        *map(lambda d: d and decimal.Decimal(d), ("9007199254740993.01", None, "0.10", None, "-0.01"))
    ],
    "date": [DAY.date(), None, DAY.date() + datetime.timedelta(1), None, DAY.date()],
    "time": [DAY.replace(microsecond=1), None, DAY.replace(year=2900), None, DAY],
    "zoned": [
        DAY.replace(tzinfo=UTC),
        None,
        DAY.replace(year=1900, tzinfo=UTC),
        None,
        DAY.replace(tzinfo=UTC),
    ],
    "duration": [
        datetime.timedelta(days=10**5, microseconds=1),
        None,
        datetime.timedelta(1),
        None,
        -datetime.timedelta(3),
    ],
    "text": ["b", None, "", None, "a", "ab", None, "b", "z", "ab"],
}
VALUES = {kind: (values * 2)[:10] if len(values) == 5 else values for kind, values in VALUES.items()}
for values in VALUES.values():
    values[3] = values[6] = None
ARROW = {
    "int": pa.int64(), "uint": pa.uint64(), "bool": pa.bool_(), "decimal": pa.decimal128(38, 2),
    "date": pa.date32(), "time": pa.timestamp("us"), "zoned": pa.timestamp("us", "Europe/Berlin"),
    "duration": pa.duration("us"), "text": pa.string(),
}  # fmt: skip
NULLABLE = {
    "int": "Int64",
    "uint": "UInt64",
    "bool": "boolean",
    "text": "str",
    "time": "M8[us]",
    "duration": "m8[us]",
}
NULLABLE["zoned"] = "datetime64[us, Europe/Berlin]"


def _arrow(values, kind):
    return pa.array(values, ARROW[kind])


def _under_nulls(values, kind):
    """The same; under nulls lie values that are no zeros."""
    whole = pa.array(
        [v if v is not None else next(v for v in values if v is not None) for v in values], ARROW[kind]
    )
    bits = np.packbits([v is not None for v in values], bitorder="little").tobytes()
    return pa.Array.from_buffers(whole.type, len(values), [pa.py_buffer(bits), *whole.buffers()[1:]])


def _runs(values, kind):
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(values) + 1), pa.int32()), _arrow(values, kind)
    )


def _pandas(values, kind):
    return pd.Series(values, dtype=NULLABLE[kind]) if kind in NULLABLE else None


def _categories(values, kind):
    return (
        pd.Series(_arrow(values, kind).to_pandas(), dtype="category")
        if kind == "text"
        else (
            pd.Series(pd.Categorical(pd.array(values, NULLABLE[kind])))
            if kind in ("int", "uint", "bool")
            else None
        )
    )


def _masked(values, kind):
    if kind not in ("int", "uint", "bool", "text"):
        return None
    dtype = {"int": "i8", "uint": "u8", "bool": "?", "text": "U2"}[kind]
    fill = next(v for v in values if v is not None)
    return np.ma.MaskedArray(
        np.array([fill if v is None else v for v in values], dtype), [v is None for v in values]
    )


SPELLINGS = {
    "arrow": _arrow,
    "under nulls": _under_nulls,
    "chunks": lambda values, kind: pa.chunked_array([_arrow(values[:4], kind), _arrow(values[4:], kind)]),
    "dictionary": lambda values, kind: _arrow(values, kind).dictionary_encode(),
    "null in a dictionary": lambda values, kind: pa.DictionaryArray.from_arrays(
        pa.array(range(len(values)), pa.int32()), _arrow(values, kind)
    ),
    "runs": _runs,
    "view": lambda values, kind: pa.array(values, pa.string_view()) if kind == "text" else None,
    "polars": lambda values, kind: pl.Series(_arrow(values, kind)),
    "polars categories": lambda values, kind: (
        pl.Series(values, dtype=pl.Categorical) if kind == "text" else None
    ),
    "pandas": _pandas,
    "pandas arrow": lambda values, kind: pd.Series(_arrow(values, kind), dtype=pd.ArrowDtype(ARROW[kind])),
    "pandas categories": _categories,
    "masked": _masked,
}


def _mode(values):
    return min(statistics.multimode(values))


FUNCTIONS = {
    "first": None,
    "last": None,
    "count": len,
    "nunique": lambda v: len(set(v)),
    "min": min,
    "max": max,
}
FUNCTIONS |= {"mode": _mode, "any": any, "all": all}
OF_KIND = dict.fromkeys(VALUES, ("first", "last", "count", "nunique", "min", "max", "mode"))
OF_KIND |= {kind: (*OF_KIND[kind], "sum") for kind in ("int", "uint", "bool", "decimal", "duration")}
OF_KIND |= {kind: (*OF_KIND[kind], "any", "all") for kind in ("int", "uint", "bool")}


def expected(keys, values, how):
    """The result of each key, by key."""
    found, by_key = {}, {}
    for key, value in zip(keys, values):
        by_key.setdefault(key, []).append(value)
    for key, rows in by_key.items():
        there = [v for v in rows if v is not None]
        if how in ("first", "last"):
            found[key] = rows[0 if how == "first" else -1]
        elif how == "sum" and there:
            found[key] = sum(there[1:], +there[0])
        elif how in ("count", "nunique") or there:
            found[key] = FUNCTIONS[how](there)
        else:
            found[key] = None
    return found


def wrapped(wanted, kind, how):
    """Sums wrap around."""
    if how != "sum" or kind not in ("int", "uint"):
        return wanted
    least = -(2**63) if kind == "int" else 0
    return {k: v if v is None else (v - least) % 2**64 + least for k, v in wanted.items()}


SUMMED = ("int", "uint", "bool", "decimal", "duration")


def running(keys, values, kind):
    """For each row the sum of the values of its key so far; None where the value is None."""
    sums, made = {}, []
    for key, value in zip(keys, values):
        if value is not None:
            sums[key] = value + sums[key] if key in sums else +value
        made.append(None if value is None else wrapped({key: sums[key]}, kind, "sum")[key])
    return made


def plain(found):
    """A result, an array or a column, as a list of Python's values."""
    if isinstance(found, pd.Series):
        floats = found.dtype.kind == "f"
        found = [None if not floats and pd.isna(v) else v for v in found]
    elif isinstance(found, np.ndarray) and found.dtype.kind in "mM":
        found = pa.array(found)
    read = next(
        (getattr(found, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(found, name)), None
    )
    found = found if read is None else read()
    readers = {pd.Timestamp: pd.Timestamp.to_pydatetime, pd.Timedelta: pd.Timedelta.to_pytimedelta}
    found = [readers.get(type(v), lambda v: v)(v) for v in found]
    return [v.item() if isinstance(v, np.generic) else v for v in found]


def same(found, wanted, kind):
    if kind == "zoned":  # arrays have instants of UTC
        found = [
            v if v is None or not isinstance(v, datetime.datetime) or v.tzinfo else v.replace(tzinfo=UTC)
            for v in found
        ]
    if kind == "date":
        found = [v.date() if isinstance(v, datetime.datetime) else v for v in found]
    assert found == wanted
    assert [type(v) is bool for v in found] == [type(v) is bool for v in wanted]
    assert not any(isinstance(v, float) for v in found)


@pytest.mark.parametrize("copies", [1, 700])
@pytest.mark.parametrize("empty", [True, False], ids=["empty groups", "no empty group"])
@pytest.mark.parametrize("kind", of_the_day(VALUES))
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values_leave_as_they_came(spelling, kind, empty, copies):
    rows = [i for i, k in enumerate(KEYS) if empty or k != 3] * copies
    keys, values = [KEYS[i] for i in rows], [VALUES[kind][i] for i in rows]
    column = SPELLINGS[spelling](values, kind)
    if column is None:
        pytest.skip("there is no such column")
    groups = roost.group_by(np.array(keys))
    for how in OF_KIND[kind]:
        wanted = wrapped(expected(keys, values, how), kind, how)
        same(plain(getattr(groups, how)(column)), [wanted[k] for k in groups.keys.tolist()], kind)
        for frames in (pd.DataFrame, pl.DataFrame, pa.table):
            made = roost.group_by(frames({"k": keys}), ["k"]).agg(v=(column, how))
            same(plain(made["v"]), [wanted[k] for k in plain(made["k"])], kind)


@pytest.mark.parametrize("kind", SUMMED)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_running_sums_are_exact(spelling, kind):
    column = SPELLINGS[spelling](VALUES[kind], kind)
    if column is None:
        pytest.skip("there is no such column")
    wanted = running(KEYS, VALUES[kind], kind)
    same(plain(roost.group_by(np.array(KEYS)).cumsum(column)), wanted, kind)
    keys = [None if key == 2 else key for key in KEYS]
    left = running([0 if key is None else key for key in keys], VALUES[kind], kind)
    left = [None if key is None else total for key, total in zip(keys, left)]
    for frame in (
        pd.DataFrame({"k": pd.array(keys, "Int64")}),
        pl.DataFrame({"k": keys}),
        pa.table({"k": keys}),
    ):
        groups = roost.group_by(frame, "k", dropna=True)
        same(plain(groups.cumsum(column)), left, kind)
    if isinstance(column, pl.Series) and kind not in ("int", "uint"):  # whose sums polars does not wrap
        theirs = pl.DataFrame({"k": KEYS, "v": column}).select(pl.col("v").cum_sum().over("k"))["v"]
        made = roost.group_by(pl.DataFrame({"k": KEYS, "v": column}), "k")["v"].cumsum()
        assert made.to_list() == theirs.to_list()
        assert made.dtype.base_type() == theirs.dtype.base_type() or kind == "bool"


def test_running_sums_that_are_too_long():
    long = np.array([2**62, 2**62, -(2**62), 5], "m8[s]")
    assert roost.group_by([1, 2, 1, 1]).cumsum(long).astype(int).tolist() == [2**62, 2**62, 0, 5]
    with pytest.raises(OverflowError, match="roost.GroupBy.cumsum: a sum of durations beyond 2.63"):
        roost.group_by([1, 1, 1, 1]).cumsum(long)
    nines = pa.array(
        [decimal.Decimal("9" * 38), decimal.Decimal(-1), decimal.Decimal(1)], pa.decimal128(38, 0)
    )
    assert roost.group_by([1, 1, 1]).cumsum(nines).to_pylist()[2] == decimal.Decimal("9" * 38)
    with pytest.raises(OverflowError, match="roost.GroupBy.cumsum: a sum of decimals of more than 38 digits"):
        roost.group_by([1, 2, 1]).cumsum(nines)
    for frame in (pd.DataFrame({"k": [1], "v": long[:1]}), pl.DataFrame({"k": [1], "v": nines[:1]})):
        assert len(roost.group_by(frame[:0], "k")["v"].cumsum()) == 0


@pytest.mark.parametrize("mean", [0, 10**9, 2**53 + 1, 2**62 + 1])
@pytest.mark.parametrize("n", [10, 3000])
def test_variances_where_the_mean_is_large(mean, n):
    rng = np.random.default_rng(n)
    keys, spread = rng.integers(0, 5, n), rng.integers(-1000, 1000, (2, n))
    for columns in (mean + spread, float(mean) + spread / 1024 if mean < 2**53 else mean + spread):
        groups = roost.group_by(keys)
        var, cov = groups.var(columns[0]), groups.cov(*columns)
        for i, key in enumerate(groups.keys):
            x, y = ([int(1024 * v) for v in column[keys == key].tolist()] for column in columns)  # exact
            if len(x) < 2:
                assert np.isnan(var[i]) and np.isnan(cov[i])
                continue
            about_x, about_y = ([len(of) * v - sum(of) for v in of] for of in (x, y))
            parts = (len(x) - 1) * (1024 * len(x)) ** 2
            wanted = sum(a * b for a, b in zip(about_x, about_y)) / parts
            size = sum(abs(a * b) for a, b in zip(about_x, about_y)) / parts
            assert abs(cov[i] - wanted) <= 1e-14 * size
            assert np.isclose(var[i], sum(a * a for a in about_x) / parts, rtol=1e-14, atol=0)


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_quantiles_of_distant_dates(unit):
    """Rounded down to the unit, exactly: the gaps have more digits than a float."""
    far = np.array([-(2**62) - 1, 2**62 + 3, 7, 2**60 + 1], np.int64)
    for values in (far.view(f"M8[{unit}]"), far.view(f"m8[{unit}]")):
        for q in (0, 0.1, 1 / 3, 0.5, 0.999, 1):
            found = roost.group_by(np.ones(4, int)).quantile(values, q=q)[0].view(np.int64)
            ordered, at = sorted(far.tolist()), fractions.Fraction(float(q) * 3)
            low = int(at)
            wanted = ordered[low] + (at - low) * (ordered[min(low + 1, 3)] - ordered[low])
            assert found == wanted.__floor__()


def test_nans_are_skipped_in_frames_of_pandas():
    frame = pd.DataFrame({"k": [1, 1, 2, 3], "x": [1.0, np.nan, np.nan, 5.0]})
    how = ("sum", "mean", "min", "max", "median", "count", "nunique", "mode")
    made = roost.group_by(frame, "k").agg(**{name: ("x", name) for name in how}).set_index("k").sort_index()
    of_pandas = frame.groupby("k")["x"].agg([*how[:-1]])
    of_pandas["sum"] = of_pandas["sum"].where(of_pandas["count"] > 0)  # pandas has 0, roost a null
    pd.testing.assert_frame_equal(made[[*how[:-1]]], of_pandas, check_dtype=False)
    assert made["mode"].tolist()[::2] == [1, 5]
    for groups in (roost.group_by(frame, "k", skipna=False), roost.group_by(frame["k"].to_numpy())):
        found = dict(zip(groups.agg(s=(frame["x"], "sum"))["s"], [0] * 3))
        assert sum(np.isnan(value) for value in found) == 2 and 5.0 in found
    skipped = roost.group_by(frame["k"].to_numpy(), skipna=True).count(frame["x"].to_numpy())
    assert sorted(skipped.tolist()) == [0, 1, 1]


@pytest.mark.parametrize("unit", ["M", "D"])
def test_dates_beyond_those_of_columns_are_not_wrapped_around(unit):
    """Days of 32 bits: pyarrow 26.0.1 makes other dates of the rest, and polars 2.1.0 nulls."""
    near, far = np.datetime64("2026-07", unit), np.datetime64("178958940-07", unit)
    table = roost.ConcurrentMap("int64", f"M8[{unit}]")
    table.insert([1, 2], np.array([near, far]))
    for query in (pl.Series([1]), pa.array([1]), pd.Series([1])):
        assert not isinstance(table.find(query), np.ndarray)
    for query in (pl.Series([1, 2]), pa.array([1, 2])):
        assert np.array_equal(table.find(query), np.array([near, far]))  # an array, as of types they lack
    assert table.find(pd.Series([2])).to_numpy()[0] == far
