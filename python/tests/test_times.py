"""Medians of windows, runs, resampling, the greatest rows of keys and interval joins against loops over rows,
pandas and polars; and all of what is in the order of time on every library and device."""

import datetime
import math
import pickle

import numpy as np
import pytest
from conftest import LIBRARIES

import roost

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
SIZES = [(0, 1), (1, 1), (60, 1), (300, 7), (300, 250), (3000, 40)]


def frame_of(n, keys, seed=1):
    """Ties of times and of values, nulls, and rows in no order of time."""
    rng = np.random.default_rng(seed + n)
    values = rng.integers(-9, 9, n)
    return pd.DataFrame(
        {
            "k": rng.integers(0, keys, n),
            "t": rng.integers(0, 3 * n + 1, n) - n,
            "i": values,
            "f": values * 1e100 + rng.integers(0, 3, n),
            "n": pd.array(np.where(values % 4 == 0, None, values), "Int64"),
            "s": np.array([*"abcde"], object)[values % 5],
        }
    )


def as_library(frame, library):
    if library == "pandas":
        return frame
    frame = pl.from_pandas(frame)
    return frame if library == "polars" else frame.to_arrow()


def listed(x):
    """A column of any library as values of Python, None for nulls."""
    if isinstance(x, (pa.ChunkedArray, pa.Array, np.ndarray)):
        x = x.to_pylist() if not isinstance(x, np.ndarray) else x.tolist()
    return [None if v is pd.NA or (isinstance(v, float) and v != v) or v is pd.NaT else v for v in list(x)]


@pytest.mark.parametrize("n, keys", SIZES)
def test_quantiles_of_windows(n, keys):
    frame = frame_of(n, keys)
    g = roost.group_by(frame, "k")
    for name in ("i", "f", "n"):
        given = frame[name].astype("f8") if name == "n" else frame[name]
        scale = given.abs().max() if n else 0.0
        for window, least in ((1, None), (4, 1), (5, 3), (33, 2), (400, 1)):
            mine = g.rolling(window, min_periods=least)
            others = given.groupby(frame["k"]).rolling(window, min_periods=least)
            for how in INTERPOLATIONS:
                for q in (0, 0.25, 0.5, 0.9, 1):
                    found = mine.quantile(name, q=q, interpolation=how)
                    wanted = others.quantile(q, interpolation=how).droplevel(0).reindex(frame.index)
                    found = found.astype("Float64").to_numpy("f8", na_value=np.nan)
                    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * scale)
            found = mine.median(name).astype("Float64").to_numpy("f8", na_value=np.nan)
            wanted = others.median().droplevel(0).reindex(frame.index)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * scale)
    if n:
        assert g["f"].rolling(3, on="t").quantile(0.25).equals(g.rolling(3, on="t").quantile("f", q=0.25))


@pytest.mark.parametrize("n, keys", SIZES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_quantiles_of_windows_by_time(n, keys, library):
    frame = frame_of(n, keys)
    g = roost.group_by(as_library(frame, library), "k")
    times, k = frame["t"].to_numpy(), frame["k"].to_numpy()
    for name in ("f", "n"):
        values = listed(frame[name])
        found = listed(g[name].rolling(50, on="t", min_periods=2).quantile(0.3))
        for row in range(n):
            rows = np.flatnonzero((k == k[row]) & (times <= times[row]) & (times > times[row] - 50))
            there = [values[r] for r in rows if values[r] is not None]
            wanted = np.quantile(np.array(there, "f8"), 0.3) if len(there) > 1 else None
            near = (
                None if wanted is None else pytest.approx(wanted, rel=1e-12, abs=1e-12 * max(map(abs, there)))
            )
            assert found[row] == near


def test_quantiles_with_nan():
    keys = np.zeros(6, int)
    values = np.array([1.0, np.nan, 3.0, np.inf, -np.inf, 2.0])
    found = roost.group_by(keys).rolling(3, min_periods=1).median(values)
    assert listed(found) == [1.0, None, None, None, 3.0, 2.0] and np.isnan(found.data[1:4]).all()
    skipped = roost.group_by(keys, skipna=True).rolling(3, min_periods=1).median(values)
    assert listed(skipped) == [1.0, 1.0, 2.0, math.inf, 3.0, 2.0]
    apart = np.array([1e308, -1e308, -1.5e308])
    found = roost.group_by(keys[:3]).rolling(2, min_periods=1).quantile(apart, q=0.75)
    assert found.tolist() == [1e308, 5e307, -1.125e308]


@pytest.mark.parametrize("n, keys", SIZES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_runs(n, keys, library):
    frame = frame_of(n, keys)
    frame["i"] //= 4
    frame["n"] //= 4
    g = roost.group_by(as_library(frame, library), "k")
    for name in ("i", "n", "s"):
        for on in (None, "t"):
            order = frame if on is None else frame.sort_values("t", kind="stable")
            wanted = pd.Series(0, frame.index)
            for _, rows in order.groupby("k").groups.items():
                values = listed(frame[name].loc[rows])
                wanted[rows] = np.cumsum([0, *(a != b for a, b in zip(values, values[1:]))])
            assert listed(g[name].runs(on=on)) == wanted.tolist()
    if n:
        polars = pl.from_pandas(frame).select(pl.col("i").rle_id().over("k"))["i"]
        assert listed(g["i"].runs()) == polars.to_list()


def test_runs_of_nan_and_dropped_rows():
    g = roost.group_by(np.array([1.0, 1, np.nan, 1, 1, 1]), dropna=True)
    assert listed(g.runs(np.array([np.nan, np.nan, 5, 0.0, -0.0, 1]))) == [0, 0, None, 1, 1, 2]
    frame = pd.DataFrame({"k": [1, 1, 1], "v": ["x", None, None]})
    assert roost.group_by(frame, "k")["v"].runs().tolist() == [0, 1, 1]


@pytest.mark.parametrize("n, keys", SIZES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_resample(n, keys, library):
    frame = frame_of(n, keys)
    start = np.datetime64("2026-11-30T01:00", "s")
    frame["d"] = start + frame["t"].to_numpy().astype("m8[s]")
    frame["h"] = frame["t"].astype("i2")
    g = roost.group_by(as_library(frame, library), ["k", "s"])
    for closed in ("left", "right"):
        for label in ("left", "right"):
            for on, every, width, origin in (("t", 7, 7, 3), ("h", 10, 10, None), ("d", "1m30s", 90, None)):
                times = frame[on].to_numpy()
                times = times.view("i8") if times.dtype.kind == "M" else times.astype("i8")
                zero = 0 if origin is None else origin
                wanted = {}
                for key, s, t, v in zip(frame["k"], frame["s"], times.tolist(), frame["i"]):
                    begin = (t - zero) // width * width + zero
                    if closed == "right" and t == begin:
                        begin -= width
                    window = begin + width * (label == "right")
                    count, total = wanted.get((key, s, window), (0, 0))
                    wanted[key, s, window] = count + 1, total + v
                made = g.resample(every, on=on, origin=origin, closed=closed, label=label)
                found = made.agg(n="count", total=("i", "sum"))
                assert type(found) is type(as_library(frame, library))
                found = pl.from_pandas(found) if library == "pandas" else pl.DataFrame(found)
                assert found.columns == ["k", "s", on, "n", "total"]
                kept = pl.from_pandas(frame)[on].dtype
                assert found[on].dtype == kept
                windows = found[on].dt.epoch("s") if on == "d" else found[on]
                rows = zip(found["k"], found["s"], windows, found["n"], found["total"])
                assert {(k, s, w): (n, v) for k, s, w, n, v in rows} == wanted


def test_resample_as_pandas_and_polars():
    rng = np.random.default_rng(5)
    frame = frame_of(3000, 9)
    frame["d"] = pd.Timestamp("2026-11-29", tz="Europe/Berlin") + pd.to_timedelta(
        rng.integers(0, 10**6, 3000), unit="s"
    )
    found = roost.group_by(frame, "k").resample("15m", on="d").agg(v=("i", "sum"))
    assert found["d"].dtype == frame["d"].dtype
    wanted = frame.groupby("k").resample("15min", on="d")["i"].agg(["sum", "count"])
    wanted = wanted[wanted["count"] > 0]["sum"]
    pd.testing.assert_series_equal(found.set_index(["k", "d"])["v"].sort_index(), wanted, check_names=False)
    polars = pl.from_pandas(frame).sort("d")
    found = roost.group_by(polars, "k").resample("15m", on="d").agg(v=("i", "sum")).sort("k", "d")
    wanted = polars.group_by_dynamic("d", every="15m", group_by="k").agg(v=pl.col("i").sum()).sort("k", "d")
    assert found.equals(wanted.select("k", "d", "v"))


def test_resample_of_arrays_and_columns():
    keys, times = np.array([1, 2, 1, 1]), np.array([0, 3, 4, 12])
    made = roost.group_by(keys).resample(5, on=times)
    assert sorted(zip(*(k.tolist() for k in made.keys), made.sum(times).tolist())) == [
        (1, 0, 4),
        (1, 10, 12),
        (2, 0, 3),
    ]
    changed = keys.copy()
    g = roost.group_by(changed)
    copy = pickle.loads(pickle.dumps(g))
    changed[:] = 9
    for one in (g.resample(5, on=times), copy.resample(5, on=times)):
        assert [sorted(k.tolist()) for k in one.keys] == [sorted(k.tolist()) for k in made.keys]
    made = roost.group_by((keys, keys > 1)).resample(5, on=times)
    assert len(made) == 3 and len(made.keys) == 3
    frame = frame_of(300, 4)
    g = roost.group_by(frame, "k")
    one = g["i"].resample(20, on="t").sum()
    assert one.sum() == frame["i"].sum() and len(one) == len(frame.groupby(["k", frame["t"] // 20]))
    twice = g.resample(20, on="t").resample(40, on=frame["t"].to_numpy(), origin=datetime_free(7))
    assert twice.keys.columns.tolist() == ["k", "t", "window"]
    for dtype in ("u8", "u1", "i1", "u2"):
        limits = np.iinfo(dtype)
        times = np.array([limits.min, limits.max, limits.max // 2, 7], dtype)
        if int(limits.min) % 5 == 0:
            starts = roost.group_by(np.zeros(4, int)).resample(5, on=times).keys[1]
            assert starts.dtype == times.dtype
            assert sorted(starts.tolist()) == sorted({int(t) // 5 * 5 for t in times})
        else:
            with pytest.raises(OverflowError, match="roost.GroupBy.resample: windows from"):
                roost.group_by(np.zeros(4, int)).resample(5, on=times)
    dropped = roost.group_by(pd.DataFrame({"k": [1.0, None, 1], "t": [1, 2, 3]}), "k", dropna=True)
    assert dropped.resample(2, on="t").size().sum() == 2


def datetime_free(x):
    """A whole number of numpy."""
    return np.int32(x)


@pytest.mark.parametrize("n, keys", SIZES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_top_k(n, keys, library):
    frame = frame_of(n, keys)
    frame["row"] = np.arange(n)
    given = as_library(frame, library)
    g = roost.group_by(given, "k")
    for name in ("i", "n", "s"):
        for k in (0, 1, 3, 10**6):
            for reverse in (False, True):
                order = frame[frame[name].notna()]
                order = order.sort_values(name, kind="stable", ascending=reverse)
                wanted = sorted(order.groupby("k").head(k)["row"])
                found = g.top_k(k, name, reverse=reverse)
                assert type(found) is type(given) and listed(found["row"]) == wanted
    if n:
        best = g["i"].nlargest(2)[0]
        assert sorted(listed(best)) == sorted(listed(g["i"].top_k(2, "i")))


@pytest.mark.parametrize("n, m", [(0, 0), (0, 9), (9, 0), (1, 1), (300, 200), (40, 1500)])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_interval_join(n, m, library):
    rng = np.random.default_rng(n + m)
    names = np.array([None, "a", "b", "c"], object)
    begin = rng.integers(-20, 60, n)
    left = {"k": names[rng.integers(0, 4, n)], "begin": begin, "end": begin + rng.integers(-5, 30, n)}
    right = {"k": names[rng.integers(0, 4, m)], "at": rng.integers(-30, 80, m), "v": np.arange(m)}
    frames = [as_library(pd.DataFrame(side).astype({"k": "str"}), library) for side in (left, right)]
    for closed in ("left", "right", "both", "neither"):
        for nulls_equal in (False, True):
            wanted = []
            for row, (k, a, b) in enumerate(zip(*left.values())):
                rows = [
                    r
                    for r, (other, t) in enumerate(zip(right["k"], right["at"]))
                    if k == other
                    and (k is not None or nulls_equal)
                    and (a <= t if closed in ("left", "both") else a < t)
                    and (t <= b if closed in ("right", "both") else t < b)
                ]
                wanted += [(row, r) for r in sorted(rows, key=lambda r: (right["at"][r], r))]
            found = roost.interval_join(
                *frames, "at", ("begin", "end"), by="k", closed=closed, nulls_equal=nulls_equal
            )
            assert type(found) is type(frames[0])
            assert listed(found["v"]) == [right["v"][r] for _, r in wanted]
            assert listed(found["end"]) == [left["end"][row] for row, _ in wanted]
    names = ["k", "begin", "end", "at", "v"]
    assert list(getattr(found, "column_names", found.columns)) == names


def test_interval_join_of_dates_and_arrays():
    start = datetime.datetime(2026, 11, 30)
    minutes = [start + datetime.timedelta(minutes=m) for m in range(10)]
    stays = pl.DataFrame({"begin": minutes[:3], "end": minutes[2:5]})
    alarms = pl.DataFrame({"at": minutes, "begin": range(10)})
    found = roost.interval_join(stays, alarms, "at", ("begin", "end"))
    assert found.columns == ["begin_x", "end", "at", "begin_y"] and found["begin_y"].to_list() == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]
    rows = roost.interval_join(
        np.array([1, 2]), np.array([2, 1, 1]), np.array([5, 6, 7.5]), ([6, 0.5], [8, 5])
    )
    assert [r.tolist() for r in rows] == [[0, 0], [1, 2]]
    n = 2**19
    with pytest.raises(MemoryError, match=rf"roost.interval_join: .*{n * n} matches.*pass fewer"):
        roost.interval_join(np.zeros(n, int), np.zeros(n, int), np.ones(n), (np.zeros(n), np.full(n, 2.0)))


def test_refusals():
    frame = frame_of(9, 3)
    frame["d"] = np.datetime64("2026-11-30", "s")
    g = roost.group_by(frame, "k")
    join = roost.interval_join
    for call, error, words in (
        (lambda: g.rolling(3).quantile("i", q=2), ValueError, "from 0 to 1"),
        (lambda: g.rolling(3).quantile("i", q="a"), TypeError, "from 0 to 1"),
        (lambda: g.rolling(3).quantile("i", q=math.nan), ValueError, "from 0 to 1"),
        (lambda: g.rolling(3).quantile("i", interpolation="no"), ValueError, "'linear', 'lower'"),
        (lambda: g.rolling(3).median("d"), TypeError, "have only"),
        (lambda: g.rolling(3).median("s"), TypeError, "have only"),
        (lambda: g.resample(0, on="t"), ValueError, "more than 0"),
        (lambda: g.resample("5m", on="t"), TypeError, "give a number"),
        (lambda: g.resample(5, on="f"), TypeError, "whole numbers"),
        (lambda: g.resample(5, on="k"), ValueError, "name of a key"),
        (lambda: g.resample(5, on="t", closed="both"), ValueError, "'left' or 'right'"),
        (lambda: g.resample("5m", on="d", origin=5), TypeError, "give one of them"),
        (lambda: g.resample("5m", on="d", origin=np.datetime64("NaT")), ValueError, "none of"),
        (lambda: g.resample(5, on="t", origin=0.5), TypeError, "whole number"),
        (lambda: g.top_k(-1, "i"), ValueError, "0 or more"),
        (lambda: g.runs(), TypeError, "no values"),
        (lambda: g.runs([1, 2]), ValueError, "9 keys but 2 values"),
        (lambda: join(frame, frame, "t", "t"), TypeError, "where intervals begin"),
        (lambda: join(frame, frame, "t", ("t", "d")), TypeError, "times of types"),
        (lambda: join(frame, frame, "t", ("t", "f"), by="k"), TypeError, "convert one"),
        (lambda: join(frame, frame, "t", ("t", "x")), KeyError, "the columns are"),
        (lambda: join(frame, frame, "t", ("t", "t"), closed="no"), ValueError, "'right', 'left'"),
        (lambda: join(frame, [1], "t", ("t", "t")), TypeError, "two frames"),
        (lambda: join([1], [1], [1], ([1], [2]), by="k"), TypeError, "keys are arrays"),
        (lambda: join([1], [1], [1], ([1, 2], [2])), ValueError, "roost::interval_join"),
        (lambda: roost.merge_asof([1], [1]), TypeError, "give left_on and right_on"),
        (lambda: roost.merge_asof([1], [1], on="t"), TypeError, "keys are arrays"),
    ):
        with pytest.raises(error, match="roost") as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value)


# On every library and device: the same bits as numpy's.


def same(on, found, wanted):
    """A result of a library equals numpy's, of which nulls of floats may be NaN."""
    if isinstance(found, np.ma.MaskedArray) or on.is_numpy:
        assert found.tolist() == wanted.tolist() or wanted.dtype.kind == "f"
        found, wanted = np.ma.filled(found.astype("f8"), np.nan), np.ma.filled(wanted.astype("f8"), np.nan)
    else:
        found = on.back(found)
        wanted = np.ma.filled(wanted, np.nan) if wanted.dtype.kind == "f" else np.ma.getdata(wanted)
    assert (
        found.dtype == wanted.dtype
        and found.tobytes() == wanted.tobytes()
        or (
            np.array_equal(found, wanted, equal_nan=True)
            and (np.signbit(found) == np.signbit(wanted))[~np.isnan(found)].all()
        )
    )


@pytest.mark.parametrize("n, keys", [(0, 1), (1, 1), (300, 7), (20_000, 300), (20_000, 2)])
def test_rows_on(on, n, keys):
    rng = np.random.default_rng(n)
    k, t = rng.integers(0, keys, n), rng.integers(0, n + 1, n)
    values = {
        "f8": rng.normal(size=n) * 10.0 ** rng.integers(-3, 8, n),
        "f4": rng.normal(size=n).astype("f4"),
        "i4": rng.integers(-99, 99, n, dtype="i4"),
        "u1": rng.integers(0, 9, n, dtype="u1"),
    }
    theirs, mine = roost.group_by(k), roost.group_by(on(k))
    for name, x in values.items():
        y = on(x)
        for how in ("cumsum", "cumprod", "cummin", "cummax", "shift", "diff", "runs"):
            with np.errstate(all="ignore"):
                same(on, getattr(mine, how)(y), getattr(theirs, how)(x))
        for make in (
            lambda g, t: g.rolling(40, on=t, min_periods=1),
            lambda g, t: g.rolling(3),
            lambda g, t: g.rolling(100, min_periods=0, center=True),
        ):
            a, b = make(mine, on(t)), make(theirs, t)
            for how in ("sum", "mean", "min", "max", "count", "var", "std", "median", "first", "last"):
                same(on, getattr(a, how)(y), getattr(b, how)(x))
            same(on, a.quantile(y, q=0.3, interpolation="lower"), b.quantile(x, q=0.3, interpolation="lower"))
    same(on, mine.cumcount(), theirs.cumcount())
    same(on, mine.sessions(on(t), 3), theirs.sessions(t, 3))
    same(on, mine.sessions(on(t / 2), 1.5), theirs.sessions(t, 3))
    sums = mine.resample(50, on=on(t)).sum(on(values["i4"]))
    wanted = theirs.resample(50, on=t).sum(values["i4"])
    assert sorted(on.back(sums).tolist()) == sorted(wanted.tolist())


@pytest.mark.parametrize("n, m, keys", [(0, 5, 1), (5, 0, 1), (1, 1, 1), (400, 300, 20), (20_000, 9000, 300)])
def test_joins_on(on, n, m, keys):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, keys, n), rng.integers(0, keys, m)
    s, t = rng.integers(0, n + 9, n), rng.integers(0, n + 9, m)
    for direction in ("backward", "forward", "nearest"):
        options = {"direction": direction, "tolerance": 40}
        found = roost.merge_asof(on(a), on(b), left_on=on(s), right_on=on(t), **options)
        wanted = roost.merge_asof(a, b, left_on=s, right_on=t, **options)
        assert on.back(found).tolist() == wanted.tolist()
        floats = roost.merge_asof(
            on(a), on(b), left_on=on(s / 2), right_on=on(t / 2), direction=direction, tolerance=20
        )
        assert on.back(floats).tolist() == wanted.tolist()
        frame = roost.merge_asof(
            pd.DataFrame({"k": a, "t": s}),
            pd.DataFrame({"k": b, "t": t, "row": np.arange(m)}),
            on="t",
            by="k",
            **options,
        )
        assert np.where(frame["row"].isna(), -1, frame["row"]).tolist() == wanted.tolist()
    found = roost.interval_join(on(a), on(b), on(t), (on(s), on(s + 20)), closed="both")
    wanted = roost.interval_join(a, b, t, (s, s + 20), closed="both")
    assert [on.back(each).tolist() for each in found] == [each.tolist() for each in wanted]
    if n < 1000:
        pairs = [(i, j) for i in range(n) for j in range(m) if a[i] == b[j] and s[i] <= t[j] <= s[i] + 20]
        assert sorted(zip(*(each.tolist() for each in wanted))) == pairs


def test_libraries():
    assert LIBRARIES


def test_windows_of_categories():
    """No window need be one of them."""
    days = pd.to_datetime(["2020-01-01 05:00", "2020-01-02 07:00", "2020-01-01 09:00"])
    for times, every, wanted in (([30, 10, 31], 7, [7, 28]), (days, "1d", list(days.floor("D")[:2]))):
        frame = pd.DataFrame({"k": [1, 1, 1], "t": pd.Categorical(times)})
        made = roost.group_by(frame, "k").resample(every, on="t").agg(n="count").sort_values("t")
        assert made["t"].tolist() == wanted and made["n"].sum() == 3
    table = pa.table({"k": [1, 1], "t": pa.array([30, 10]).dictionary_encode()})
    assert sorted(roost.group_by(table, "k").resample(7, on="t").keys["t"].to_pylist()) == [7, 28]


def test_origins_have_zones_as_times():
    free = pd.to_datetime(["2020-06-01 12:00"])
    for times, origin in ((free.tz_localize("Europe/Berlin"), free[0]), (free, free[0].tz_localize("UTC"))):
        g = roost.group_by(pd.DataFrame({"k": [1], "t": times}), "k")
        with pytest.raises(TypeError, match="give both with a zone, or both without"):
            g.resample("1d", on="t", origin=origin)
    zoned = pd.DataFrame({"k": [1], "t": free.tz_localize("Europe/Berlin")})
    midnight = pd.Timestamp("2020-06-01", tz="Europe/Berlin")
    assert roost.group_by(zoned, "k").resample("1d", on="t", origin=midnight).keys["t"][0] == midnight


def test_spreads_of_infinite_values():
    g = roost.group_by(np.zeros(3, int))
    for values in ([1, np.inf, 2], [np.inf, 1, 2], [1, 2, np.inf], [1, 2, -np.inf]):
        for how in ("var", "std"):
            assert np.isnan(getattr(g.rolling(3), how)(np.array(values, float))[-1])


def test_types_of_running_results():
    g = roost.group_by(np.zeros(3, int))
    for dtype in ("?", "u1", "i2", "f2", "f4", "f8"):
        x = np.array([1, 0, 1], dtype)
        assert g.cumsum(x).dtype == g.sum(x).dtype and g.cumprod(x).dtype == g.product(x).dtype
        for how in ("min", "max"):
            wanted = getattr(g, how)(x).dtype
            assert getattr(g, "cum" + how)(x).dtype == getattr(g.rolling(1), how)(x).dtype == wanted
    assert g.rolling(2).sum(np.array([True, True, False])).dtype == np.int64
    assert g.rolling(np.inf, on=np.array([1.0, 2, 3])).sum(np.ones(3)).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="less than 2.63"):
        g.rolling(2**64)


def test_many_pairs_of_intervals_are_refused():
    zeros = np.zeros(200_000, int)
    with pytest.raises(MemoryError, match="join: no memory for 40000000000 matches of 16 bytes"):
        roost.interval_join(zeros, zeros, on=zeros, between=(zeros, zeros + 1))
