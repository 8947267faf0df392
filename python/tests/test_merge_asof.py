"""merge_asof against a loop over rows, pandas and polars."""

import datetime

import numpy as np
import pytest

import roost

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

DIRECTIONS = ("backward", "forward", "nearest")


def row_of(t, key, right, direction, most, exact):
    """The row that a left row gets, of right rows (time, key), or None."""
    before = after = None
    for row, (time, its_key) in enumerate(right):
        if its_key != key or its_key is None or (time == t and not exact):
            continue
        if time <= t and (before is None or time >= right[before][0]):
            before = row
        if time >= t and (after is None or time < right[after][0]):
            after = row
    found = after if direction == "forward" else before
    if direction == "nearest" and (
        before is None or (after is not None and right[after][0] - t < t - right[before][0])
    ):
        found = after
    if found is not None and most is not None and abs(right[found][0] - t) > most:
        return None
    return found


def random_side(rng, n, keys, times):
    names = np.array([None, *"abcdefgh"], object)
    return {"k": names[rng.integers(0, keys + 1, n)], "t": rng.integers(0, times, n) - times // 3}


@pytest.mark.parametrize("n, m", [(0, 0), (0, 5), (5, 0), (1, 1), (40, 60), (300, 200)])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_against_a_loop(n, m, library):
    rng = np.random.default_rng(n + m)
    left, right = random_side(rng, n, 5, 40), random_side(rng, m, 6, 40)
    right["v"] = np.arange(m)
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    text = {"polars": lambda x: {**x, "k": pl.Series(x["k"].tolist(), dtype=pl.String)}}
    text["pyarrow"] = lambda x: {**x, "k": pa.array(x["k"].tolist(), pa.string())}
    frames = [make(text.get(library, dict)(side)) for side in (left, right)]
    rows = list(zip(right["t"].tolist(), right["k"].tolist()))
    for direction in DIRECTIONS:
        for most in (None, 0, 3):
            for exact in (True, False):
                found = roost.merge_asof(
                    *frames, on="t", by="k", direction=direction, tolerance=most, allow_exact_matches=exact
                )
                wanted = [
                    row_of(t, k, rows, direction, most, exact) for t, k in zip(left["t"].tolist(), left["k"])
                ]
                values = found["v"].to_pylist() if library == "pyarrow" else found["v"].to_list()
                assert [None if v is None or v is pd.NA or v != v else int(v) for v in values] == wanted
                names = found.column_names if library == "pyarrow" else list(found.columns)
                assert names == ["k", "t", "v"]
                assert type(found) is type(frames[0]) and len(found) == n


@pytest.mark.parametrize("dtype", ["i1", "i8", "u1", "u8", "f4", "f8", "M8[ns]", "M8[s]", "m8[ms]"])
def test_against_pandas(dtype):
    rng = np.random.default_rng(7)
    if dtype in ("M8[ns]", "M8[s]", "m8[ms]"):
        start = np.datetime64("2026-11-30") if dtype[0] == "M" else np.timedelta64(0, "s")
        times = [(start + rng.integers(0, 90, n).astype("m8[s]")).astype(dtype) for n in (200, 300)]
    else:
        times = [rng.integers(0, 90, n).astype(dtype) for n in (200, 300)]
    if dtype == "u8":
        times = [x + np.uint64(2**63 - 40) for x in times]
    left = pd.DataFrame({"t": np.sort(times[0]), "k": rng.integers(0, 9, 200), "v": rng.random(200)})
    right = pd.DataFrame({"t": np.sort(times[1]), "k": rng.integers(0, 9, 300), "v": rng.random(300)})
    number = dtype[0] in "iuf"
    for most in (None, 0 if number else pd.Timedelta(0), 4 if number else pd.Timedelta("4s")):
        for direction in DIRECTIONS:
            for exact in (True, False):
                options = {"direction": direction, "tolerance": most, "allow_exact_matches": exact}
                if dtype[0] != "f" and most is not None and number:
                    options["tolerance"] = int(most)
                found = roost.merge_asof(left, right, on="t", by="k", **options)
                try:
                    wanted = pd.merge_asof(left, right, on="t", by="k", **options)
                except Exception:  # some types of times it does not take
                    assert dtype in ("i1", "u1", "f4")
                    continue
                pd.testing.assert_frame_equal(found, wanted)
    shuffled = right.sample(frac=1, random_state=3)
    again = roost.merge_asof(left, shuffled.sort_values("t", kind="stable"), on="t", by="k")
    pd.testing.assert_frame_equal(roost.merge_asof(left, shuffled, on="t", by="k"), again)


def test_against_polars():
    rng = np.random.default_rng(8)
    left = pl.DataFrame({"t": np.sort(rng.integers(0, 90, 200)), "k": rng.integers(0, 9, 200)})
    right = pl.DataFrame(
        {"t": np.sort(rng.integers(0, 90, 300)), "k": rng.integers(0, 9, 300), "v": rng.random(300)}
    )
    for direction in ("backward", "forward"):  # of two equally near ones it takes the later one
        for most in (None, 0, 3):
            wanted = left.join_asof(
                right, on="t", by="k", strategy=direction, tolerance=most, check_sortedness=False
            )
            found = roost.merge_asof(left, right, on="t", by="k", direction=direction, tolerance=most)
            assert found.equals(wanted)


def test_names():
    left = pd.DataFrame({"at": [5, 1], "id": [1, 2], "v": [1, 2]}, index=[7, 8])
    right = pd.DataFrame({"time": [4, 0], "key": [1, 2], "v": [3, 4]})
    found = roost.merge_asof(left, right, left_on="at", right_on="time", left_by="id", right_by="key")
    wanted = pd.merge_asof(
        left.sort_values("at"),
        right.sort_values("time"),
        left_on="at",
        right_on="time",
        left_by="id",
        right_by="key",
    )
    pd.testing.assert_frame_equal(found, wanted.iloc[::-1].reset_index(drop=True))
    assert list(found.columns) == ["at", "id", "v_x", "time", "key", "v_y"]
    found = roost.merge_asof(left, right.rename(columns={"time": "at"}), on="at", suffixes=("", "_r"))
    assert list(found.columns) == ["at", "id", "v", "key", "v_r"] and found["v_r"].tolist() == [3, 4]


def test_two_keys_nulls_and_zones():
    zone = "Europe/Berlin"
    at = pd.to_datetime(["2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"], utc=True).tz_convert(
        zone
    )
    left = pd.DataFrame({"at": at, "a": [1, 1, 2], "b": ["x", None, "y"]})
    right = pd.DataFrame(
        {"at": at - pd.Timedelta("10min"), "a": [1, 1, 2], "b": ["x", None, "z"], "v": [1, 2, 3]}
    )
    found = roost.merge_asof(left, right, on="at", by=["a", "b"])
    assert found["v"].isna().tolist() == [False, True, True] and str(found["at"].dtype) == str(
        left["at"].dtype
    )
    found = roost.merge_asof(left, right, on="at", by=["a", "b"], nulls_equal=True)
    assert found["v"].isna().tolist() == [False, False, True]
    for most, there in (
        ("10m", True),
        ("9m", False),
        (datetime.timedelta(minutes=10), True),
        ("10min", True),
    ):
        found = roost.merge_asof(left, right, on="at", by="a", tolerance=most)
        assert found["v"].notna().all() == there


def test_large_sides():
    rng = np.random.default_rng(1)
    n = 200_000
    frames = [
        pd.DataFrame({"t": np.sort(rng.integers(0, n, n)), "k": rng.integers(0, 3000, n), name: np.arange(n)})
        for name in ("l", "r")
    ]
    wanted = pd.merge_asof(*frames, on="t", by="k")
    pd.testing.assert_frame_equal(roost.merge_asof(*frames, on="t", by="k"), wanted)
    mixed = frames[1].sample(frac=1, random_state=1).sort_values("k", kind="stable")
    found = roost.merge_asof(frames[0], mixed, on="t", by="k")
    later = mixed.sort_values("t", kind="stable")
    pd.testing.assert_frame_equal(found, pd.merge_asof(frames[0], later, on="t", by="k"))


def test_refusals():
    left, right = pd.DataFrame({"t": [1, 2], "k": [1, 2]}), pd.DataFrame({"t": [1, 2], "k": [1, 2]})
    floats = pd.DataFrame({"t": [1.0, np.nan], "k": [1, 2]})
    dates = pd.DataFrame({"t": pd.to_datetime(["2026-01-01", None]), "k": [1, 2]})
    texts = pd.DataFrame({"t": ["a", "b"]})
    for call, error, words in (
        (lambda: roost.merge_asof(left, pl.DataFrame({"t": [1]}), on="t"), TypeError, "pass two frames"),
        (lambda: roost.merge_asof(left, right), ValueError, "give either `on`"),
        (lambda: roost.merge_asof(left, right, on="t", left_on="t"), ValueError, "give either `on`"),
        (lambda: roost.merge_asof(left, right, on=["t", "k"]), ValueError, "times of 2 columns"),
        (lambda: roost.merge_asof(left, right, on="x"), KeyError, "x"),
        (lambda: roost.merge_asof(left, right, on="t", left_by="k"), ValueError, "left_by and right_by"),
        (lambda: roost.merge_asof(left, right, on="t", by="k", left_by="k"), ValueError, "give either `by`"),
        (
            lambda: roost.merge_asof(left, right, on="t", direction="back"),
            ValueError,
            "'backward', 'forward'",
        ),
        (
            lambda: roost.merge_asof(floats, floats, on="t", by="k"),
            ValueError,
            "column 't' has 1 nulls or NaN",
        ),
        (lambda: roost.merge_asof(dates, dates, on="t", by="k"), ValueError, "column 't' has 1 nulls or NaN"),
        (lambda: roost.merge_asof(left, dates, on="t", by="k"), TypeError, "times of types"),
        (lambda: roost.merge_asof(texts, texts, on="t"), TypeError, "times of types"),
        (lambda: roost.merge_asof(left, right, on="t", tolerance=-1), ValueError, "give 0 or more"),
        (lambda: roost.merge_asof(left, right, on="t", tolerance="5m"), TypeError, "give a number"),
        (lambda: roost.merge_asof(left, right, on="t", tolerance=True), TypeError, "give a number"),
        (lambda: roost.merge_asof(dates[:1], dates[:1], on="t", tolerance=5), TypeError, "give a duration"),
        (lambda: roost.merge_asof(dates[:1], dates[:1], on="t", tolerance="5x"), ValueError, "with units"),
        (lambda: roost.merge_asof(left, right, on="t", allow_exact_matches=1), TypeError, "True or False"),
    ):
        with pytest.raises(error, match="roost.merge_asof") as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value)
