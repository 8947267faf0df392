"""Rolling windows, running results and sessions of groups against loops, pandas and polars."""

import math

import numpy as np
import pytest

import roost

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CLOSED = ("right", "left", "both", "neither")
HOW = ("sum", "mean", "min", "max", "count", "var", "std", "first", "last")


def frame_of(n, keys, seed, spread=3):
    """A frame with ties of times, nulls, and rows in no order of time."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-50, 50, n)
    return pd.DataFrame(
        {
            "k": rng.integers(0, keys, n),
            "t": rng.integers(0, n // spread + 1, n) - 10,
            "i": values,
            "f": rng.normal(size=n) * 10.0 ** rng.integers(-3, 8, n),
            "n": pd.array(np.where(values % 4 == 0, None, values), "Int64"),
        }
    )


def result_of(values, how):
    """What a window of values has."""
    there = [v for v in values if v is not None]
    n = len(there)
    if how in ("first", "last"):
        return values[0 if how == "first" else -1] if n else None
    if how == "count":
        return n
    if how == "sum":
        return sum(there)
    if not n or (how in ("var", "std") and n < 2):
        return None
    if how in ("min", "max"):
        return min(there) if how == "min" else max(there)
    mean = math.fsum(there) / n
    if how == "mean":
        return mean
    spread = math.fsum((v - mean) ** 2 for v in there) / (n - 1)
    return math.sqrt(spread) if how == "std" else spread


def same(found, wanted, how, scale=0.0):
    for a, b in zip(found, wanted, strict=True):
        a = None if a is pd.NA or (isinstance(a, float) and a != a) else a
        if how in ("first", "last", "min", "max", "count") or a is None or b is None:
            assert a == b
        else:
            assert a == pytest.approx(b, rel=1e-9, abs=scale * 1e-9)


def windows_of(frame, of_row):
    """The rows of the window of each row, in order: of_row(rows of the group, position, frame)."""
    wanted = [None] * len(frame)
    for _, rows in frame.groupby("k").indices.items():
        rows = rows[np.argsort(frame["t"].to_numpy()[rows], kind="stable")]
        for k, row in enumerate(rows):
            wanted[row] = of_row(rows, k)
    return wanted


def check(frame, rolling, windows, least):
    for name in ("i", "f", "n"):
        values = [None if v is pd.NA else v for v in frame[name]]
        scale = max(map(abs, filter(None, values)), default=1)
        for how in HOW:
            wanted = []
            for rows in windows:
                window = [values[row] for row in rows]
                counts = sum(v is not None for v in window)
                counts = len(window) if how == "count" else counts
                wanted.append(result_of(window, how) if counts >= least else None)
            same(
                getattr(rolling, how)(frame[name]), wanted, how, scale**2 if how in ("var", "std") else scale
            )


@pytest.mark.parametrize("n, keys", [(0, 1), (1, 1), (80, 1), (120, 7), (60, 50)])
def test_by_time(n, keys):
    frame = frame_of(n, keys, n)
    times = frame["t"].to_numpy()
    g = roost.group_by(frame, "k")
    for closed in CLOSED:
        for width, center, least in (
            (1, False, None),
            (9, False, 3),
            (8, True, None),
            (9, True, 0),
            (500, False, 1),
        ):
            left, right = closed in ("left", "both"), closed in ("right", "both")
            low, high = (width / 2, width / 2) if center else (width, 0)

            def of_row(rows, k):
                apart = times[rows] - times[rows[k]]
                start = apart >= -low if left else apart > -low
                return rows[start & (apart <= high if right else apart < high)]

            windows = windows_of(frame, of_row)
            rolling = g.rolling(width, on="t", center=center, closed=closed, min_periods=least)
            check(frame, rolling, windows, 1 if least is None else least)


@pytest.mark.parametrize("n, keys", [(0, 1), (1, 1), (80, 1), (120, 7), (60, 50)])
def test_by_rows(n, keys):
    frame = frame_of(n, keys, n)
    frame["t"] = np.arange(n)
    g = roost.group_by(frame, "k")
    for closed in CLOSED:
        for width, center, least in (
            (1, False, 1),
            (5, False, None),
            (4, True, 2),
            (70, False, 3),
            (33, True, 0),
        ):
            offset = (width - 1) // 2 if center else 0

            def of_row(rows, k):
                end = k + offset + (closed in ("right", "both"))
                start = k + offset + 1 - width - (closed in ("left", "both"))
                return rows[max(start, 0) : max(end, 0)]

            rolling = g.rolling(width, center=center, closed=closed, min_periods=least)
            check(frame, rolling, windows_of(frame, of_row), width if least is None else least)
            if closed in ("right", "both") or not center:  # what pandas makes of them
                theirs = frame.groupby("k")["f"].rolling(
                    width, center=center, closed=closed, min_periods=least
                )
                for how in ("sum", "min", "count"):
                    wanted = getattr(theirs, how)().droplevel(0).sort_index()
                    found = getattr(rolling, how)("f").astype("f8")
                    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-1)


def test_against_pandas_and_polars():
    rng = np.random.default_rng(3)
    n = 5000
    start = np.datetime64("2026-11-30", "ns")
    seconds = np.sort(rng.choice(40 * n, n, replace=False))  # no ties, in which these two differ
    frame = pd.DataFrame(
        {"k": rng.integers(0, 9, n), "t": start + seconds.astype("m8[s]"), "v": rng.random(n)}
    )
    g = roost.group_by(frame, "k")
    for closed in CLOSED:
        theirs = frame.groupby("k").rolling("5min", on="t", closed=closed)["v"]
        found = g["v"].rolling("5m", on="t", closed=closed)
        polars = pl.from_pandas(frame).with_columns(row=pl.int_range(n))
        name = "none" if closed == "neither" else closed
        by_time = polars.rolling("t", period="5m", group_by="k", closed=name)
        for how in ("sum", "mean", "min", "max", "count", "std"):
            order = frame.assign(row=np.arange(n)).sort_values(["k", "row"], kind="stable")["row"].to_numpy()
            wanted = np.empty(n)
            wanted[order] = getattr(theirs, how)().to_numpy()
            mine = getattr(found, how)().astype("f8").to_numpy()
            np.testing.assert_allclose(mine, wanted, rtol=1e-9)
        wanted = by_time.agg(pl.col("v").sum(), counts=pl.col("row").len()).sort("k", "t")
        for mine, name in ((found.count(), "counts"), (found.sum(), "v")):
            theirs = np.empty(n)
            theirs[order] = wanted[name].to_numpy()
            np.testing.assert_allclose(mine.astype("Float64").fillna(0).to_numpy(), theirs, rtol=1e-9)


def test_no_drift():
    values = np.array([1e300, -1e300, 1.0, 2.0, 3.0, np.inf, 1.0, 2.0, 3.0, np.nan, 4.0, 5.0, 6.0])
    found = roost.group_by(np.zeros(len(values), int)).rolling(3).sum(values)
    assert found[4:5].tolist() == [6.0] and found[8:9].tolist() == [6.0] and found[12:].tolist() == [15.0]
    assert np.isnan(found[9:12]).all() and found[2] == 1.0
    long = np.random.default_rng(1).normal(size=100_000) * 1e8
    sums = roost.group_by(np.zeros(len(long), int)).rolling(1000).sum(long)
    for row in range(999, len(long), 7919):
        assert sums[row] == pytest.approx(math.fsum(long[row - 999 : row + 1]), abs=1e-4)


def test_running_results():
    frame = frame_of(3000, 20, 5)
    frame["d"] = np.datetime64("2026-11-30", "s") + frame["t"].to_numpy().astype("m8[s]")
    frame["b"] = frame["i"] % 2 == 0
    g, theirs = roost.group_by(frame, "k"), frame.groupby("k")
    for name in ("i", "f", "n", "d"):
        for how in ("cummin", "cummax"):
            found, wanted = getattr(g[name], how)(), getattr(theirs[name], how)()
            assert found.dtype == frame[name].dtype
            assert found.isna().tolist() == wanted.isna().tolist()
            assert found.dropna().tolist() == wanted.dropna().tolist()
        assert g[name].nth(2).tolist() == theirs[name].nth(2).tolist()
        assert g[name].nth(-1).tolist() == theirs[name].nth(-1).tolist()
    small = frame.assign(i=frame["i"] % 3 - 1, f=1 + frame["f"] % 0.01)
    g, theirs = roost.group_by(small, "k"), small.groupby("k")
    assert g["i"].cumprod().tolist() == theirs["i"].cumprod().tolist()
    np.testing.assert_allclose(g["f"].cumprod(), theirs["f"].cumprod())
    for n in (1, -2, 500):
        for name in ("i", "f", "n"):
            found, wanted = g[name].diff(n), theirs[name].diff(n)
            assert found.isna().tolist() == wanted.isna().tolist()
            assert found.dropna().tolist() == wanted.dropna().tolist()
        found, wanted = g["f"].pct_change(n), theirs["f"].pct_change(n, fill_method=None)
        np.testing.assert_allclose(found.astype("f8"), wanted)
    found = g["d"].diff()
    assert found.dtype.kind == "m" and found.dropna().tolist() == theirs["d"].diff().dropna().tolist()


def test_arrays():
    keys = np.array([1, 2, 1, 1, 2])
    g = roost.group_by(keys)
    assert g.cummin(np.array([3.0, 1, np.nan, 2, 0]))[[0, 1, 4]].tolist() == [3, 1, 0]
    assert np.isnan(g.cummin(np.array([3.0, 1, np.nan, 2, 0]))[[2, 3]]).all()  # a NaN is a value
    assert g.cummax(np.array([True, False, False, True, True])).tolist() == [True, False, True, True, True]
    assert g.cumprod(np.array([2, 3, 4, 5, 6], "i1")).tolist() == [2, 3, 8, 40, 18]
    big = np.array([2**64 - 1, 0, 2**64 - 2, 2**64 - 1, 5], np.uint64)
    assert g.diff(big).tolist() == [None, None, -1, 1, 5] and g.cummin(big).dtype == np.uint64
    with pytest.raises(OverflowError, match="roost.GroupBy.diff: differences beyond int64"):
        g.diff(np.array([0, 1, 2**64 - 1, 0, 1], np.uint64))
    with pytest.raises(OverflowError, match="roost.GroupBy.diff: differences beyond int64"):
        g.diff(np.array([-(2**63), 1, 2**63 - 1, 0, 1]))
    masked = np.ma.MaskedArray([1, 2, 3, 4, 5], [0, 0, 1, 0, 0])
    assert g.cummax(masked).tolist() == [1, 2, None, 4, 5]
    assert g.rolling(2, min_periods=1).sum(masked).tolist() == [1, 2, 1, 4, 7]
    dropped = roost.group_by(np.array([1.0, np.nan, 1.0]), dropna=True)
    assert dropped.cummax([1, 2, 3]).tolist() == [1, None, 3]
    assert dropped.rolling(2).sum([1, 2, 3]).tolist() == [None, None, 4]
    assert dropped.sessions(np.array([1, 2, 9]), 5).tolist() == [0, None, 1]


@pytest.mark.parametrize("n, keys", [(0, 1), (1, 1), (3000, 40), (3000, 2500)])
def test_sessions(n, keys):
    frame = frame_of(n, keys, 9, 1)
    frame["t"] = frame["t"] * 7
    frame["d"] = np.datetime64("2026-11-30", "s") + frame["t"].to_numpy().astype("m8[s]")
    g = roost.group_by(frame, "k")
    for gap in (0, 7, 300):
        order = frame.sort_values("t", kind="stable")
        begins = (order.groupby("k")["t"].diff() > gap).astype(int)
        wanted = begins.groupby(order["k"]).cumsum().sort_index()
        assert g.sessions("t", gap).tolist() == wanted.tolist()
        assert g.sessions("d", f"{gap}s").tolist() == wanted.tolist()
    assert g.sessions(frame["t"].to_numpy() / 2, 3.5).tolist() == g.sessions("t", 7).tolist()


def test_refusals():
    frame = frame_of(9, 3, 1)
    frame["x"] = [*"abcdefghi"]
    frame["d"] = pd.to_datetime([None] * 9)
    g = roost.group_by(frame, "k")
    for call, error, words in (
        (lambda: g.rolling("5m"), TypeError, "without `on`"),
        (lambda: g.rolling(0), ValueError, "give 1 or more"),
        (lambda: g.rolling(2.5), TypeError, "without `on`"),
        (lambda: g.rolling(0, on="t"), ValueError, "give more than 0"),
        (lambda: g.rolling(-3, on="t"), ValueError, "give 0 or more"),
        (lambda: g.rolling(2.5, on="t"), ValueError, "give a whole number"),
        (lambda: g.rolling("5m", on="t"), TypeError, "give a number"),
        (lambda: g.rolling(5, on="x"), TypeError, "convert them"),
        (lambda: g.rolling("5m", on="d"), ValueError, "9 nulls"),
        (lambda: g.rolling(5, closed="no"), ValueError, "'right', 'left'"),
        (lambda: g.rolling(5, center=1), TypeError, "True or False"),
        (lambda: g.rolling(5, min_periods=-1), ValueError, "give 0 or more"),
        (lambda: g.rolling(5).sum("x"), TypeError, "have only"),
        (lambda: g.rolling(5).sum(), TypeError, "no values"),
        (lambda: g.cummin("x"), TypeError, "no numbers"),
        (lambda: g.cumprod("x"), TypeError, "have only"),
        (lambda: g.sessions("t", -1), ValueError, "give 0 or more"),
        (lambda: g.sessions("x", 1), TypeError, "convert them"),
        (lambda: g.nth(0.5), TypeError, "give a whole number"),
    ):
        with pytest.raises(error, match="roost.GroupBy") as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value)
