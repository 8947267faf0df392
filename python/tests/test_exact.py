"""Values that enter are kept exactly, or refused with one clear line."""

import datetime as dt
import decimal
import fractions
import warnings

import numpy as np
import pandas as pd
import pytest
import roost
from columns import ATTOSECONDS, exact, listed
from conftest import LIBRARIES
from roost._arrays import libraries
from roost._arrays.exact import convert

D = np.datetime64


def refused(kinds, call, *words):
    with pytest.raises(kinds) as caught:
        call()
    message = str(caught.value)
    assert message.startswith("roost") and "\n" not in message
    for word in words:
        assert word in message


def values_of(dtype):
    """Edges of a type, as numbers of Python."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind == "f":
        info = np.finfo(dtype)
        return [
            0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            float(info.max),
            float(info.tiny),
            float("inf"),
            float("-inf"),
            2.0**11,
        ]
    info = np.iinfo(dtype)
    return [info.min, info.max, 0, 1, 2, info.max - 1, max(info.min, -1), info.max // 2 + 1]


NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def holds(dtype, value):
    """Whether a type has a number, by arithmetic of Python."""
    if dtype.kind == "f":
        if not np.isfinite(float(value)):
            return True
        with np.errstate(over="ignore"):
            there = float(dtype.type(float(value)))
        return np.isfinite(there) and fractions.Fraction(there) == fractions.Fraction(value)
    if isinstance(value, float) and not value.is_integer():  # infinite ones neither
        return False
    return int(value) in (0, 1) if dtype.kind == "b" else np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("given", NUMBERS)
def test_numbers_are_converted_exactly(given, to):
    for value in np.array(values_of(given), given):
        if holds(np.dtype(to), value.item()):
            converted = convert(np.array([value]), np.dtype(to), "roost.test")
            assert converted.dtype == to and converted.tolist() == [value.item()]
        else:
            refused(
                OverflowError, lambda: convert(np.array([value]), np.dtype(to), "roost.test"), "not a value"
            )


def test_floats_of_python_take_the_nearest_value():
    keys = np.array([0.1, 3.0], "f4")
    assert roost.isin(keys, [0.1]).tolist() == [True, False]
    assert 0.1 in roost.Set(keys) and np.float64(0.1) not in roost.Set(keys)
    assert roost.Index(keys).get_indexer([3, 0.1]).tolist() == [1, 0]
    for much in (1e39, -1e39, 1e-60):
        refused(OverflowError, lambda: roost.Index(keys).get_indexer([much]))
        assert much not in roost.Index(np.array([np.inf, -np.inf, 0.0], "f4"))
    refused(OverflowError, lambda: roost.isin(keys, [0.1, 1e39]))
    changing = roost.ConcurrentMap("i8", "f4")
    changing.insert([1, 2], [0.1, 0.25])
    changing[3] = 0.1
    assert changing[1] == changing[3] == np.float32(0.1) and changing.find([9], missing=0.1)[0] == np.float32(
        0.1
    )
    refused(OverflowError, lambda: changing.insert([1], [1e39]))


def test_integers_beside_floats_of_python_are_exact():
    keys = np.array([0.1, 2048, 16777216], "f4")
    index = roost.Index(keys)
    assert index.get_indexer([0.1, 2048, np.uint8(1)]).tolist() == [0, 1, -1]
    for wrong in (16777217, np.uint32(16777217)):
        refused(OverflowError, lambda: index.get_indexer([0.1, wrong]), "16777217")
        refused(OverflowError, lambda: roost.isin([0.5, wrong], np.array([0.5], "f2")), "16777217")
        refused(OverflowError, lambda: roost.ConcurrentMap("i8", "f4").insert([1, 2], [0.1, wrong]))
    refused(OverflowError, lambda: index.get_indexer([0.1, np.float64(0.1)]), "0.1")


def test_long_durations():
    longest = dt.timedelta.max
    for duration, unit in (
        (longest - dt.timedelta(microseconds=999_999), "s"),
        (longest - dt.timedelta(microseconds=999), "ms"),
        (dt.timedelta(999_999_999), "D"),
        (dt.timedelta(1 - 999_999_999), "m"),
        (dt.timedelta(1, 1, 1), "us"),
    ):
        key = duration // np.timedelta64(1, unit).item()
        index = roost.Index(np.array([7, key], f"m8[{unit}]"))
        assert duration in index and index.get_indexer([duration]).tolist() == [1]
        assert duration - dt.timedelta(seconds=1) not in index
    refused(OverflowError, lambda: roost.Index(np.array([7], "m8[us]")).get_indexer([longest]), "timedelta")
    assert longest not in roost.Index(np.array([7], "m8[us]"))


UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as", "10us", "7D", "3M"]


@pytest.mark.parametrize("to", UNITS)
@pytest.mark.parametrize("given", UNITS)
def test_dates_are_converted_exactly(given, to):
    """Each is the same instant, and none is refused that the other unit has: its instants near are there."""
    for kind in "Mm":
        if kind == "m" and (given[-1] in "YM") != (to[-1] in "YM"):
            continue
        here, there = np.dtype(f"{kind}8[{given}]"), np.dtype(f"{kind}8[{to}]")
        numbers = [0, 1, -1, 17, 24, 60, 10**6, 2**40, -(2**55), 2**62, -(2**63), 2**63 - 1, 1 - 2**63]
        ratio = fractions.Fraction(span_of_one(there), span_of_one(here))
        for edge in (2**31, 2**62, 2**63, 2**64, -(2**31), -(2**63), -(2**64), 7 * 2**60):
            numbers += [int(edge * ratio) + i for i in range(-2, 3)]
        for number in numbers:
            if not -(2**63) <= number < 2**63:
                continue
            date = np.array([number], "i8").view(here)
            try:
                converted = convert(date, there, "roost.test")
            except OverflowError:
                count = round(number / ratio)
                near = [count + i for i in range(-3, 4) if abs(count + i) < 2**63]
                near = np.array(near, "i8").view(there) if near else []
                assert exact(date[0]) not in map(exact, near), (date, there)
            else:
                assert converted.dtype == there and exact(converted[0]) == exact(date[0]), (date, there)


def span_of_one(dtype):
    """About how many attoseconds a unit has."""
    unit, step = np.datetime_data(dtype)
    return step * ({"Y": 12, "M": 1}[unit] * 30436875 * 864 * 10**14 if unit in "YM" else ATTOSECONDS[unit])


def test_dates_beyond_64_bits_are_no_others():
    days = np.array([2**63 - 7, 1 - 2**63], "i8").view("M8[D]")
    month = np.datetime64(303032819133198655, "M")  # which begins 2^64 days after a day of these
    week = np.datetime64((1 - 2**63) // 7, "W")  # and this one on such a day
    assert month not in roost.Index(days) and week in roost.Index(days)
    refused(OverflowError, lambda: roost.isin(np.array([month]), days.astype(">M8[D]")), "datetime64[D]")
    assert roost.isin(np.array([week]), days.astype(">M8[D]")).tolist() == [True]
    assert np.timedelta64(-92233720368547758, "ms") in roost.Index(
        np.array([-9223372036854775800], "i8").view("m8[10us]")
    )


def test_dates_of_two_units():
    far = np.array(["9999-12-31", "2024-05-01", "NaT"], "M8[s]")
    wrapped = np.array(["1816-03-29T05:56:08.066277376", "2024-05-01", "NaT"], "M8[ns]")  # as it would be
    near = np.array(["2024-05-01", "NaT"], "M8[ns]")
    assert roost.isin(far[1:], near).tolist() == [True, True]
    assert roost.isin(near, np.array(["2024-05-01"], "M8[D]")).tolist() == [True, False]
    for call in (
        lambda: roost.isin(far, wrapped),
        lambda: roost.join(wrapped, far),
        lambda: roost.Index(wrapped).get_indexer(far),
        lambda: roost.Map(wrapped, np.arange(3)).find(far),
    ):
        refused(OverflowError, call)
    changing = roost.ConcurrentMap("M8[ns]", "M8[ns]")
    refused(OverflowError, lambda: changing.insert(far, near[[0, 0, 0]]))
    refused(OverflowError, lambda: changing.insert(near, far[:2]))
    changing.insert(near[:1], np.array(["2024-05-02"], "M8[D]"))
    assert changing[near[0]] == D("2024-05-02") and len(changing) == 1
    refused(TypeError, lambda: roost.isin(np.array([5], "m8[s]"), np.array([5])))
    refused(TypeError, lambda: roost.isin(np.array([5], "M8[s]"), np.array([5], "m8[s]")))
    refused(TypeError, lambda: roost.isin(np.array([5], "m8[M]"), np.array([150], "m8[D]")))
    changing = roost.ConcurrentMap("i8", "m8[M]")
    refused(TypeError, lambda: changing.insert([1], np.timedelta64(2629746, "s")))  # a month, on average
    refused(TypeError, lambda: roost.Map([1], np.array([5], "m8[us]")).find([7], np.timedelta64(-1, "M")))
    assert roost.isin(np.array(["NaT"], "M8"), near).tolist() == [True]  # NaT without a unit


def test_one_date():
    days = np.array(["2024-05-01", "2024-05-02"], "M8[D]")
    for table in (roost.Index(days), roost.Set(days), roost.Map(days, np.array([3, 4]))):
        for date in (
            D("2024-05-02"),
            D("2024-05-02T00:00", "ns"),
            dt.date(2024, 5, 2),
            dt.datetime(2024, 5, 2),
            pd.Timestamp("2024-05-02"),
        ):
            assert date in table, date
            assert date not in roost.Set(days[:1]), date
        for date in (
            dt.datetime(2024, 5, 2, 1),
            D("2024-05-02T00:00:00.000000001"),
            pd.NaT,
            "2024-05-02",
            19845,
            pd.Timestamp("2024-05-02", tz="UTC"),
            dt.timedelta(19845),
        ):
            assert date not in table, date
    prices = roost.Map(days, np.array([3, 4]))
    assert prices[dt.date(2024, 5, 2)] == prices.get(pd.Timestamp("2024-05-02")) == 4
    assert prices.get(dt.datetime(2024, 5, 2, 1), "none") == "none"
    with pytest.raises(KeyError):
        prices[dt.datetime(2024, 5, 2, 1)]
    assert roost.isin(days, [dt.date(2024, 5, 2), dt.datetime(2024, 5, 1)]).tolist() == [True, True]
    for unit in ("ps", "fs", "as"):
        fine = roost.Index(np.array([0, 1], f"M8[{unit}]"))
        assert (
            dt.date(1970, 1, 1) in fine and D(0, "h") in fine and D(0, "s") in fine and D(1, "s") not in fine
        )
        assert dt.timedelta(0) in roost.Index(np.array([0], f"m8[{unit}]"))
    assert list(roost.Index(days.astype("M8[ns]"))) == list(days)  # not the numbers of nanoseconds
    spans = roost.Set(np.array([60, 5], "m8[s]"))
    assert (
        dt.timedelta(minutes=1) in spans and pd.Timedelta("5s") in spans and np.timedelta64(1, "m") in spans
    )
    assert 60 not in spans and dt.timedelta(minutes=2) not in spans
    assert roost.Map(days, days.astype("M8[ns]"))[days[1]] == days[1]


def test_signs():
    most, low = 2**64 - 1, -(2**63)
    u8, i8 = np.array([most, 2**63, 5], "u8"), np.array([-1, low, 5], "i8")
    for make in (roost.Index, roost.Set, lambda k: roost.Map(k, np.arange(3))):
        assert -1 not in make(u8) and low not in make(u8) and most in make(u8) and 5 in make(u8)
        assert most not in make(i8) and 2**63 not in make(i8) and low in make(i8)
        refused(OverflowError, lambda: make(u8).contains([-1]))
        refused(OverflowError, lambda: make(i8).contains([most]))
        refused(TypeError, lambda: make(u8).contains(i8))
    assert roost.isin([-1], [most]).tolist() == [False]
    assert roost.isin(i8, [most, 5]).tolist() == [False, False, True]
    assert roost.isin(u8, i8).tolist() == [False, False, True]
    changing = roost.ConcurrentMap("int64")
    changing.insert([-1], [7])
    refused(OverflowError, lambda: changing.erase([most]), str(most))
    assert changing.get(most) is None and changing.get(-1) == 7 and len(changing) == 1
    for narrow, wide in (("i1", "u1"), ("i2", "u2"), ("i4", "u4")):
        a, b = np.array([-1, 5], narrow), np.array([np.iinfo(wide).max, 5], wide)
        assert roost.isin(a, b).tolist() == [False, True]


def test_one_number():
    integers, bools = roost.Set(np.array([1, 2])), roost.Set(np.array([True]))
    for one in (1, 1.0, True, np.int8(1), np.float32(1), fractions.Fraction(1), np.array(1), 1 + 0j):
        assert one in integers and one in bools
    for other in (
        1.5,
        float("nan"),
        2**70,
        "1",
        b"1",
        None,
        fractions.Fraction(1, 2),
        (1,),
        [1],
        np.array([1]),
    ):
        assert other not in integers and other not in bools
    assert np.float32(0.1) not in roost.Set(np.array([0.1]))
    assert decimal.Decimal("NaN") in roost.Set(np.array([np.nan])) and decimal.Decimal(1) in integers
    most = np.finfo("f8").max
    assert int(most) in roost.Set(np.array([most])) and int(most) + 1 not in roost.Set(np.array([most]))
    assert int(most) not in integers and 10**400 not in integers
    assert -(2**63) not in roost.Index(np.array([-np.inf], "f2"))


def test_rows_as_queries():
    rows = np.array([[1, 2], [3, 4]], "i4")
    for table in (roost.Set(rows), roost.Index(rows), roost.Map(rows, np.array([5, 6]))):
        for row in ((1, 2), [1, 2], (1.0, 2), np.array([1, 2]), np.array([1, 2], "i4"), np.array([1.0, 2.0])):
            assert row in table
        for row in (
            np.array([2**32 + 1, 2]),
            (1.7, 2),
            (float("nan"), 2),
            (1, 2, 3),
            (1,),
            1,
            "12",
            (2**70, 2),
        ):
            assert row not in table
        refused(OverflowError, lambda: table.contains([[2**32 + 1, 2]]))
        refused(TypeError, lambda: table.contains([[1, 2, 3]]), "rows of 3")
        assert table.contains([]).tolist() == []
    prices = roost.Map(rows, np.array([5, 6]))
    assert prices[(3, 4)] == 6 and prices.get(np.array([3, 4])) == 6
    with pytest.raises(KeyError):
        prices[(2**32 + 3, 4)]


def test_lists():
    for mixed, *names in (
        ([1, "a"], "int", "str"),
        (["a", float("nan")], "str", "float"),
        (["b", b"a"], "str", "bytes"),
        ([1, None], "missing"),
        ([1, dt.date(2024, 1, 1)], "int", "date"),
        ([True, "x"], "bool", "str"),
        ([1, [2]], "int", "list"),
        ([{}], "dict"),
    ):
        for call in (
            lambda: roost.unique(mixed),
            lambda: roost.isin(np.arange(3), mixed),
            lambda: roost.group_by(mixed),
        ):
            refused(TypeError, call, *names)
    refused(OverflowError, lambda: roost.unique([2**53, 2**53 + 1, 0.5]), str(2**53 + 1))
    refused(OverflowError, lambda: roost.unique([2**63, -1]))
    refused(OverflowError, lambda: roost.unique([2**70]))
    assert sorted(roost.unique([np.int64(-1), np.int64(2**62 + 1), np.uint64(7)]).tolist()) == [
        -1,
        7,
        2**62 + 1,
    ]
    assert roost.unique([np.int8(1), np.int8(2)]).dtype == np.int8
    assert len(roost.unique([True, 2, 1])) == 2
    assert roost.unique([], sorted=True).tolist() == []
    a = np.array([1, 2])
    for arrays in ([a, a], [pd.Series(a), pd.Series(a)]):
        refused(TypeError, lambda: roost.group_by(arrays), "column_stack")
        refused(TypeError, lambda: roost.join(arrays, arrays), "column_stack")
    refused(ValueError, lambda: roost.unique([[1, 2], [3]]), "several lengths")
    refused(TypeError, lambda: roost.unique(c for c in "ab"), "generator")
    refused(TypeError, lambda: roost.unique({1: 2}), "dict")


def test_texts_keep_their_zeros():
    assert len(roost.unique(["a", "a\0", "a\0\0"])) == len(roost.unique([b"a", b"a\0"])) + 1 == 3
    assert roost.isin(["A", "A\0"], ["A"]).tolist() == [True, False]
    assert roost.Index(np.array(["A", "A\0"], object)).get_indexer(["A\0", "A"]).tolist() == [1, 0]
    assert roost.isin("abc", "abc").tolist() == [True]
    assert roost.isin([b"a\0"], np.array([b"a"], object)).tolist() == [False]
    assert b"a\0" not in roost.Set(np.array([b"a"], "S2"))
    refused(OverflowError, lambda: roost.Set(np.array([b"a"], "S2")).contains([b"a\0"]), "NUL")
    index = roost.Index(np.array(["a", "b"]))
    refused(TypeError, lambda: index.get_indexer([b"a"]), "bytes")
    refused(TypeError, lambda: index.get_indexer(np.array([b"a"])), "bytes")
    assert b"a" not in index and "a" in index and 1 not in index and ["a"] not in index
    refused(TypeError, lambda: roost.isin(np.array([1]), np.array([b"1"])))
    refused(TypeError, lambda: roost.isin(["1"], [1]))


@pytest.mark.parametrize("dtype", ["?", "i4", "f2", "S3", "M8[s]", "U2"])
def test_an_empty_list_is_of_any_type(dtype):
    keys = np.zeros(2, dtype)
    assert roost.isin(keys, []).tolist() == [False, False] and roost.isin([], keys).tolist() == []
    assert roost.Index(keys).get_indexer([]).tolist() == []
    if dtype != "U2":
        assert (
            roost.Set(keys).contains([]).tolist() == [] and len(roost.Map(keys, np.arange(2)).find([])) == 0
        )


def test_one_missing_value_after_another():
    ints, floats = (roost.Map(np.arange(2), np.ones(2, dtype)) for dtype in ("int64", "float64"))
    for missing in (-1, -1, 2**40, 0, -1.0, -1, True, 1, 1.0):
        assert ints.find([7], missing=missing)[0] == missing
    for missing in (0.0, -0.0, -1.0, -1, -0.0, 0, 5e-324, 1e-323, 0.5, -1.0, True, 1):
        found = floats.find([7], missing=missing)[0]
        assert found == missing and np.signbit(found) == np.signbit(float(missing))
    assert np.isnan(floats.find([7], missing=float("nan"))[0]) and floats.find([7], missing=0.5)[0] == 0.5


def test_missing_is_kept():
    def find(values, missing):
        return roost.Map(np.arange(2), np.array([values] * 2)).find([7], missing=missing)[0]

    assert (
        find(np.int8(1), -1) == -1 and find(1.5, 3) == 3.0 and find(True, True) and find(b"ab", b"c") == b"c"
    )
    assert find(np.float32(1), 0.1) == np.float32(0.1) and np.isnan(find(np.float16(1), float("nan")))
    assert find(D("2024-01-01"), dt.date(2024, 1, 2)) == D("2024-01-02") and np.isnat(
        find(D("2024-01-01"), D("NaT"))
    )
    for values, missing in (
        (np.int8(1), 300),
        (np.uint8(1), -1),
        (True, 2),
        (np.float32(1), 1e300),
        (b"ab", b"abcdef"),
        (1, 1.5),
        (np.float16(1), 2049),
        (D("2024-01-01", "ns"), D("9999-01-01", "D")),
        (np.uint64(1), -1),
        (1, float("nan")),
    ):
        refused(OverflowError, lambda: find(values, missing), "missing=")
    for values, missing in ((1, "a"), (b"a", 1), (D("2024-01-01"), 5), (1, None), (1.5, "nan"), (1, [1, 2])):
        refused(TypeError, lambda: find(values, missing), "missing=")


def test_values_are_kept():
    changing = roost.ConcurrentMap("i8", "i4")
    for values in ([2**31], [1.5], [float("nan")], np.float64(0.5), 2**40):
        refused(OverflowError, lambda: changing.insert([1], values))
    for values in (["a"], np.array([1], "i8"), np.array([1.0]), np.array([1], "m8[s]"), dt.date(2024, 1, 1)):
        refused(TypeError, lambda: changing.insert([1], values))
    assert len(changing) == 0
    changing.insert([1, 2], [1.0, True])
    assert changing[1] == changing[2] == 1
    refused(TypeError, lambda: roost.Map([1, 2], [1, "a"]))
    refused(OverflowError, lambda: roost.Map([1, 2], [2**53 + 1, 0.5]))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_bools_that_are_other_bytes(library):
    """As programs in C may make them: each that is not 0 is True."""
    keys, known = np.array([2, 1, 0, 255], "u1").view("?"), np.array([True])
    one, two = keys[:1], keys[1:2]
    if library == "torch":
        torch = pytest.importorskip("torch")
        keys, known, one, two = map(torch.from_numpy, (keys, known, one, two))
    assert roost.unique(keys, sorted=True).tolist() == [False, True] and len(roost.group_by(keys)) == 2
    assert roost.factorize(keys)[0].tolist() == [0, 0, 1, 0]
    assert roost.isin(keys, known).tolist() == roost.isin(keys, one).tolist() == [True, True, False, True]
    for table in (roost.Set(one), roost.Index(one), roost.Map(one, one), roost.MultiMap(one, one)):
        assert True in table and table.contains(keys).tolist() == [True, True, False, True]
    changing = roost.ConcurrentMap("?", "i8", like=keys)
    assert changing.insert(one, [5]) == 1 and changing.insert(two, [6]) == 0
    assert roost.isin(keys, [1]).tolist() == [True, True, False, True]
    integers = roost.unique(keys).tolist()
    assert roost.group_by([0] * 4).sum(keys).tolist() == [3] and sorted(integers) == [0, 1]
    for dtype in ("u1", "i4", "f4"):
        numbers = np.array([1], dtype) if library == "numpy" else torch.from_numpy(np.array([1], dtype))
        assert roost.isin(keys, numbers).tolist() == [True, True, False, True]


def test_values_of_other_types():
    refused(OverflowError, lambda: roost.Map([1], np.zeros(1, "c8")).find([9], missing=2**53 + 1), "missing=")
    assert roost.Map([1], np.zeros(1, "c16")).find([9], missing=1 + 2j)[0] == 1 + 2j
    dates = roost.ConcurrentMap("M8", "i8")  # without a unit: NaT alone
    refused(OverflowError, lambda: dates.insert([dt.date(2020, 1, 1)], 1))
    dates.insert([D("NaT")], 1)
    assert len(dates) == 1 and dt.date(2020, 1, 1) not in dates
    refused(TypeError, lambda: dates.find([D("NaT")], missing=dt.date(2020, 1, 1)), "missing=")
    for dtype, amount in (("M8[s]", D(1, "s")), ("m8[s]", np.timedelta64("NaT", "s"))):
        refused(TypeError, lambda: roost.ConcurrentMap("i8", dtype).add([1], amount), "sums")
    long = roost.Map([1, 2], np.array([1.5, 2.5], np.longdouble))
    assert long.find([2, 1]).tolist() == [2.5, 1.5]
    assert roost.group_by([1, 1]).first(np.array([1.5, 2.5], np.longdouble)).tolist() == [1.5]
    refused(TypeError, lambda: roost.Map([1], [1]).find([1], missing=pd.Series([1, 2])), "missing=")
    refused(ValueError, lambda: roost.Store("i8", "f4", (2**32, 2**32)), "4096")
    refused(TypeError, lambda: roost.ConcurrentMap().insert([1, 2, 3], {30, 1, 20}), "set")
    refused(TypeError, lambda: roost.Map([1, 2, 3], {30, 1, 20}), "set")
    for how in ("sum", "mean", "min", "max", "first"):
        refused(TypeError, lambda: getattr(roost.group_by([1, 2]), how)({1, 2}), "set")
    refused(TypeError, lambda: roost.MultiMap([1, 2], {1, 2}), "set")
    refused(TypeError, lambda: roost.Map([1, 2], np.zeros((2, 2))).find([9], missing={1, 2}), "missing=")
    refused(TypeError, lambda: roost.ConcurrentMap(("i4", (2,)), "i8"), "shape")
    for factor in (1e-9, 0, -1, 1.5, float("nan"), float("inf")):
        refused(ValueError, lambda: roost.ConcurrentMap(load_factor=factor), "0.01 to 1")
    for factor in (".5", True, None, [0.5], 1j):
        refused(TypeError, lambda: roost.ConcurrentMap(load_factor=factor), "0.01 to 1")
    refused(TypeError, lambda: roost.ConcurrentMap(capacity=True), "whole number")
    assert roost.ConcurrentMap(load_factor=np.float32(0.5)).insert([1], 1) == 1


def test_columns_of_frames_with_nulls():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    import pyarrow.compute

    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([5, None]))
    runs = pyarrow.compute.run_end_encode(pa.array([5, 5, None]))
    for column in (
        pd.Series([1, None], dtype="category"),
        pd.Categorical([1, None]),
        inner,
        runs,
        pa.chunked_array([inner]),
        pd.array([2**53 + 1, None], dtype="int64[pyarrow]"),
        pd.Series([1, None], dtype="int64[pyarrow]"),
        pa.array([1, None]),
        pa.array(["a", None]).dictionary_encode(),
        pd.array([1, None], dtype="Int64"),
        pl.Series([1, None]),
        pl.Series([[1, None]], dtype=pl.Array(pl.Int64, 2)),
    ):
        refused(ValueError, lambda: roost.partition(column, 2), "null")
    refused(ValueError, lambda: roost.from_arrow(pa.array([1, None])), "1 null;")
    refused(ValueError, lambda: roost.unique(pl.Series([[1, None]], dtype=pl.Array(pl.Int64, 2))), "1 null;")
    assert roost.unique(pa.array(["a", "b"], pa.string_view()).dictionary_encode()).tolist() == ["a", "b"]
    whole = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([2**53 + 1, 7]))
    assert roost.factorize(whole)[1].tolist() == [2**53 + 1, 7]
    assert roost.factorize(pyarrow.compute.run_end_encode(pa.array([2**53 + 1] * 2)))[1].tolist() == [
        2**53 + 1
    ]
    assert roost.factorize(pd.Categorical([2**53 + 1, 7]))[1].tolist() == [2**53 + 1, 7]


def test_dates_that_numpy_takes_for_nat():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    least = pa.array([-(2**63), 5])
    for column in (
        least.cast(pa.timestamp("s")),
        least.cast(pa.duration("ns")),
        least.cast(pa.date64()),
        pa.chunked_array([least.cast(pa.timestamp("s"))] * 2),
        least.cast(pa.timestamp("s")).dictionary_encode(),
        pa.table({"a": least.cast(pa.timestamp("s"))}),
        pd.Series(pd.arrays.ArrowExtensionArray(least.cast(pa.timestamp("us")))),
        pl.Series([-(2**63), 5]).cast(pl.Datetime("us")),
        pl.Series([-(2**63), 5]).cast(pl.Duration("us")),
        pl.DataFrame({"a": pl.Series([-(2**63), 5]).cast(pl.Duration("us"))}),
    ):
        refused(OverflowError, lambda: roost.from_arrow(column), "-2^63")
        if "DataFrame" in str(type(column)) or isinstance(column, pa.Table):
            refused(OverflowError, lambda: roost.Map([1, 2], column), "-2^63")
        else:
            found = roost.Map(range(len(column)), column).find([9, 0, 1])
            found = found.to_arrow() if isinstance(found, pl.Series) else found
            found = pa.array(found, from_pandas=False) if isinstance(found, pd.Series) else found
            assert getattr(found, "dictionary_decode", lambda: found)().cast("int64").to_pylist() == [
                0,
                -(2**63),
                5,
            ]
    assert roost.unique(pa.array([1 - 2**63]).cast(pa.timestamp("s"))).view("i8").tolist() == [1 - 2**63]
    assert np.isnat(roost.unique(pd.Series([pd.NaT, pd.NaT], dtype="M8[s]"))).all()  # pandas means NaT


def test_columns_that_are_not_read():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    from decimal import Decimal

    zone = pd.Series(pd.to_datetime(["2024-05-01T00:00Z"]))
    for column in (
        pl.Series([2**64], dtype=pl.Int128),
        [Decimal(1)],
        pl.Series([{"a": 1}]),
        pl.Series([[1]]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        np.ones(2, np.longdouble),
        np.ones(2, complex),
        pd.Series(pd.period_range("2024", periods=2, freq="M")),
    ):
        refused((TypeError, ValueError), lambda: roost.unique(column))
    for column in (
        pl.Series([Decimal("0.1")]),
        pa.array([Decimal("0.1")]),
        pl.Series([1]).cast(pl.Time),
        pd.DataFrame({"a": [2**53 + 1], "b": [0.5]}),
        pl.DataFrame({"a": [2**53 + 1], "b": [0.5]}),
    ):
        refused((TypeError, ValueError), lambda: roost.partition(column, 2))
    for column in (
        zone,
        zone.array,
        pl.Series(zone),
        pa.array(zone),
        [pd.Timestamp("2024-05-01", tz="UTC")],
        zone.astype("category"),
    ):
        refused(TypeError, lambda: roost.partition(column, 2), "time zone")
        if not isinstance(column, list):
            assert listed(roost.unique(column)) == [pd.Timestamp("2024-05-01", tz="UTC")]
    frame = pd.DataFrame({"a": [1, 1], "b": [2, 2]})
    for rows in (frame, pl.DataFrame(frame), pa.table({"a": [1, 1], "b": [2, 2]})):
        assert type(roost.Set(rows).keys()) is type(rows) and list(roost.Set(rows)) == [(1, 2)]
    refused(TypeError, lambda: roost.Map([1], pd.DataFrame({"a": [2**53 + 1], "b": [0.5]})), "int64")


def test_tensors():
    torch = pytest.importorskip("torch")
    most = 2**64 - 1
    keys = torch.tensor([most, 2**63, 5], dtype=torch.uint64)
    for table in (roost.Set(keys), roost.Index(keys), roost.Map(keys, torch.arange(3))):
        assert table.contains([most, 2**63, 6]).tolist() == [True, True, False]
        assert most in table and 2**63 in table and -1 not in table and keys[1] in table
    assert roost.unique(keys, sorted=True).tolist() == [5, 2**63, most]
    wide, real = torch.tensor([2**53 + 1]), torch.tensor([2.0**53], dtype=torch.float64)
    assert roost.isin(wide, real).tolist() == [False] and roost.isin(wide - 1, real).tolist() == [True]
    assert len(roost.join(real, wide)[0]) == 0 and len(roost.join(real, wide - 1)[0]) == 1
    for table in (roost.Set(real), roost.Index(real), roost.Map(real, real)):
        refused(TypeError, lambda: table.contains(wide), "convert")
    refused(TypeError, lambda: roost.ConcurrentMap("i8", "f8", like=wide).insert(wide, wide), "convert")
    changing = roost.ConcurrentMap("uint64", "int64", like=keys)
    changing.insert([most, 2**63], [1, 2])
    assert changing[most] == 1 and changing[2**63] == 2
    refused(
        TypeError, lambda: roost.unique(torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])), "nested"
    )
    backwards = torch.tensor([1 + 2j, 3 + 4j]).conj().imag  # whose memory has the opposite numbers
    assert roost.unique(backwards, sorted=True).tolist() == [-4.0, -2.0]
    table = roost.Map(torch.arange(2), torch.ones(2, dtype=torch.bfloat16))
    refused(OverflowError, lambda: table.find([7], missing=1e39), "missing=")
    assert table.find([7], missing=2)[0] == 2


JAX = pytest.mark.parametrize("on", [on for on in LIBRARIES if on.name.startswith("jax")], ids=str)


@JAX
@pytest.mark.parametrize("shape, order", [((6, 4), (1, 0)), ((2, 3, 4), (2, 0, 1))])
def test_layouts_of_jax(on, shape, order):
    jax, layout = pytest.importorskip("jax"), pytest.importorskip("jax.experimental.layout")
    x, keys = np.arange(24, dtype="i4").reshape(shape), on(np.arange(shape[0]))
    y = jax.device_put(on(x), layout.Format(layout.Layout(order), on(x).sharding))
    assert tuple(y.format.layout.major_to_minor) == order
    found = [roost.Map(keys, y).find(keys), roost.MultiMap(keys, y).find(keys)[1]]
    found += [roost.unique(y, sorted=True)] if len(shape) == 2 else []
    assert all(np.array_equal(on.back(f), x) for f in found)


@JAX
@pytest.mark.parametrize("name", ["key_data", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_types_of_jax_alone(on, name):
    jax, keys = pytest.importorskip("jax"), on(np.arange(3))
    x = jax.random.split(jax.random.key(0), 3) if name == "key_data" else jax.numpy.zeros(3, name)
    x = jax.device_put(x, *keys.devices())
    for call in (roost.unique, lambda x: roost.Map(keys, x), lambda x: roost.group_by(keys).first(x)):
        refused(TypeError, lambda: call(x), name)


@pytest.mark.parametrize("name", ["float8_e5m2", "float4_e2m1fn", "bfloat16"])
def test_types_of_ml_dtypes(name):
    x = np.arange(3).astype(getattr(pytest.importorskip("ml_dtypes"), name))
    found = roost.Map(np.arange(3), x).find(np.arange(3))
    assert found.dtype == x.dtype and found.tolist() == x.tolist()
    refused(TypeError, lambda: roost.unique(x), name)


@JAX
def test_arrays_of_jax_without_values(on):
    pytest.importorskip("jax")
    keys, x, one = on(np.arange(3)), on(np.arange(3)), on(np.arange(1))[0]
    x.delete()
    one.delete()
    calls = [roost.unique, lambda x: roost.Map(keys, x), lambda x: roost.group_by(keys).first(x)]
    for call in (*calls, roost.Set(keys).contains, lambda x: roost.unique([one, 1])):
        refused(TypeError, lambda: call(x), "deleted")
    refused(TypeError, lambda: roost.Map(keys, keys).find(keys, missing=x), "without a value")


def test_devices_of_jax():
    jax = pytest.importorskip("jax")
    if len(devices := jax.local_devices(backend="cpu")) < 2:
        pytest.skip("needs XLA_FLAGS as in conftest.py")
    x = jax.device_put(np.arange(4, dtype="i4"), devices[1])
    for result in (roost.unique(x), roost.Map(x, x).find(x), roost.group_by(x).max(x), roost.isin(x, x)):
        assert result.devices() == {devices[1]}
    mesh = jax.sharding.Mesh(np.array(devices[:2]), "d")
    for spec in ("d", None):
        spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(spec))
        for call in (roost.unique, lambda y: roost.Map(x, y)):
            refused(ValueError, lambda: call(jax.device_put(x, spread)), "on 2 devices")


class Interface:
    def __init__(self, array, **more):
        self.array, self.__array_interface__ = array, {**array.__array_interface__, **more}


class Metres(np.ndarray):
    """As unyt has them."""

    units, to = "m", None


class Variable:
    """As netCDF4 has them."""

    def __array__(self, dtype=None, copy=None):
        return np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


@pytest.mark.parametrize(
    "x, why",
    [
        (list(Variable().__array__()), "mask"),
        ([1.0, None, np.ma.masked], "mask"),
        (Variable(), "mask"),
        (Interface(np.arange(3.0), mask=np.arange(3) == 1), "mask"),
        (np.arange(3.0).view(Metres), "the unit m"),
        ([np.array(2.0).view(Metres)] * 3, "the unit m"),
    ],
)
def test_what_numpy_leaves_behind(x, why):
    calls = [roost.unique, lambda x: roost.Map(np.arange(3), x), lambda x: roost.Map(x, np.arange(3))]
    for call in (*calls, lambda x: roost.group_by(np.arange(3)).sum(x), roost.Set([0.0, 2.0]).contains):
        refused(TypeError, lambda: call(x), why)


@pytest.mark.parametrize("dtype, values", [("Object", ["a", None, 3j]), ("Int128", [2**100, None, -1])])
def test_first_values_of_columns_that_arrow_has_not(dtype, values):
    pl, groups = pytest.importorskip("polars"), roost.group_by(np.arange(3))
    column = pl.Series(values, dtype=getattr(pl, dtype))
    for how in ("first", "last"):
        found = dict(zip(groups.keys.tolist(), getattr(groups, how)(column)))
        assert [found[i] for i in range(3)] == values


def test_what_of_libraries_is_no_column():
    pl, pa, groups = pytest.importorskip("polars"), pytest.importorskip("pyarrow"), roost.group_by([1])
    sparse, levels = pa.SparseCOOTensor.from_dense_numpy(np.eye(1)), pd.MultiIndex.from_arrays([[1], [2]])
    for x in (pl.LazyFrame({"a": [1]}), pl.col("a"), levels, sparse):
        for call in (roost.unique, groups.first, groups.sum, groups.count, lambda x: roost.Map([1], x)):
            refused(TypeError, lambda: call(x))


def test_masks_of_fields():
    x = np.ma.array([(1, 2), (3, 4)], "i4,i4", mask=[(0, 1), (0, 0)])
    refused(TypeError, lambda: roost.unique(x), "masked")
    assert roost.Map([1, 2], x).find([2, 1, 3]).tolist() == [(3, 4), (1, None), (0, 0)]
    assert roost.Map([1, 2], x[1:].repeat(2)).find([2]).tolist() == [(3, 4)]


def test_operators_of_subclasses_do_not_count():
    spaced = np.array([b"a ", b"a"]).view(np.char.chararray)  # which are equal
    refused(OverflowError, lambda: roost.Set(np.array([b"a"])).contains(spaced), "longer")
    assert len(roost.unique(spaced)) == 2 and type(roost.Map([0, 1], spaced).find([0])) is np.ndarray
    assert roost.unique(Interface(np.arange(6, dtype=">i4")[::2]), sorted=True).tolist() == [0, 2, 4]


def test_misuse_has_clear_messages(tmp_path):
    assert roost.unique([2, 1, 2], sorted=np.True_, return_counts=np.True_)[1].tolist() == [1, 2]
    for flag in (1, None, "yes", np.array([1, 2])):
        refused(TypeError, lambda: roost.unique([1], return_counts=flag), "return_counts=")
    for how in (["inner"], None, 1):
        refused(ValueError, lambda: roost.join([1], [1], how), "how=")
    for keep in (np.array([1, 2]), ["first"], None):
        refused(ValueError, lambda: roost.duplicated([1], keep=keep), "keep=")
    for make in (roost.ConcurrentMap, roost.Store):
        refused(TypeError, lambda: make(None), "None")
        refused(TypeError, lambda: make("i8", None), "None")
        refused(TypeError, lambda: make(like="cuda"), "like=")
    refused(ValueError, lambda: roost.Store.load("a\0b"), "NUL")
    refused(TypeError, lambda: roost.Store.load(5), "int")
    refused(ValueError, lambda: roost.Store().save("a\0b"), "NUL")
    refused(ValueError, lambda: roost.Map([1], [1, 2]), "1 key but 2 values")
    refused(ValueError, lambda: roost.Map([1, 2], [1]), "2 keys but 1 value;")
    for table in (roost.Set(np.arange(2)), roost.Map(np.arange(2), np.arange(2))):
        refused(TypeError, lambda: table.contains(["a"]))
    refused(TypeError, lambda: roost.ConcurrentMap("U1"), "factorize")


def test_a_store_is_not_loaded_with_narrower_keys(tmp_path):
    store = roost.Store("i8", "f4")
    store.insert([1, 2**32 + 1], [1.0, 2.0])
    store.save(tmp_path / "s")
    for narrow in ("i4", "u1"):
        with pytest.raises(OSError, match="has keys of int64"):
            roost.Store.load(tmp_path / "s", narrow, "f4")
    small = roost.Store("i4", "f4")
    small.insert([-1, 5], [1.0, 2.0])
    small.save(tmp_path / "s")
    assert roost.Store.load(tmp_path / "s", "i4", "f4").find([-1, 5]).tolist() == [1.0, 2.0]


def test_floats_become_others_by_their_bits():
    """As on GPUs; XLA on the CPU flushes denormal floats, as CuPy does."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    magnitudes = np.concatenate([np.arange(70), 2 ** np.arange(31), 2**23 + np.arange(-9, 9), [0x7F800000]])
    bits = np.concatenate([magnitudes, magnitudes + 2**31]).astype("u4")
    floats = bits.view("f4")
    here = jax.device_put(floats, jax.local_devices(backend="cpu")[0])
    for xp, given in ((np, floats), (jax.numpy, here)):
        assert np.asarray(libraries._as_float64(given, xp)).tobytes() == floats.astype("f8").tobytes()
    steps = np.concatenate([np.arange(9), 2**23 + np.arange(-9, 9)])
    steps = (steps[:, None] + np.arange(0, 1, 0.125)).ravel()
    doubles = np.concatenate([floats.astype("f8"), steps * 2.0**-149, steps * -(2.0**-149), [np.nan, 5e-324]])
    here = jax.device_put(doubles, jax.local_devices(backend="cpu")[0])
    for xp, given in ((np, doubles), (jax.numpy, here)):
        assert np.asarray(libraries._as_float32(given, xp)).tobytes() == doubles.astype("f4").tobytes()


@pytest.fixture
def flushed():
    """A thread that takes denormal floats for 0."""
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not")
    yield torch
    torch.set_flush_denormal(False)


LEAST = {dtype: np.array([1], f"u{dtype[1]}").view(dtype) for dtype in ("f2", "f4", "f8")}


def test_denormal_floats_are_not_0(on):
    """CuPy takes them for 0 in its kernels, and so does XLA on the CPU; roost does not."""
    for dtype, least in LEAST.items():
        zeros, x = np.zeros(1, dtype), np.concatenate([-least, least, np.zeros(1, dtype), least * 3, -least])
        assert on.back(roost.isin(on(x), on(zeros))).tolist() == [False, False, True, False, False]
        keys = on.back(roost.unique(on(x), sorted=True))
        assert keys.tobytes() == np.concatenate([-least, zeros, least, least * 3]).tobytes()
        for wide in {"f2": ("f4", "f8"), "f4": ("f8",)}.get(dtype, ()):
            for a, b in ((x, x.astype(wide)), (x.astype(wide), x)):
                assert on.back(roost.isin(on(a), on(b[:2]))).tolist() == [True, True, False, False, True]
            table = roost.ConcurrentMap("i8", wide, like=on(np.zeros(0, "i8")))
            table.insert(on(np.arange(5)), on(x))
            assert on.back(table.find(on(np.arange(5)))).tobytes() == x.astype(wide).tobytes()
            assert on.back(roost.Set(on(x.astype(wide))).contains(on(x))).all()
        assert not on.back(roost.isin(on(x[:2]), on(np.zeros(1, "u1")))).any()
        everything = np.arange(2**16, dtype="u2").view("f2").astype(dtype)
        everything = np.concatenate([everything, -least, least * 5, np.array([np.inf, -np.inf], dtype)])
        everything = everything[everything == everything]
        wide = on.back(roost.isin(on(everything.astype("f8")), on(everything)))
        assert wide.all()


def test_denormal_floats_are_not_0_where_the_thread_takes_them_for_it(flushed):
    least, zeros = LEAST["f4"], np.zeros(1, "f4")
    least_as_f8 = np.array([0x36A0000000000000], "u8").view("f8")
    assert (zeros == least).all() and (least.astype("f8") == 0).all()  # as numpy has it here
    for on in (lambda x: x, flushed.from_numpy):
        assert roost.isin(on(least), on(np.zeros(1, "i2"))).tolist() == [False]
        assert roost.isin(on(least_as_f8), on(least)).tolist() == [True]
        assert roost.Set(on(least_as_f8)).contains(on(least)).tolist() == [True]
        both = roost.unique(on(np.concatenate([least, zeros])), sorted=True)
        assert np.asarray(both).view("u4").tolist() == [0, 1]
        table = roost.ConcurrentMap("i8", "f8", like=on(np.zeros(0, "i8")))
        table.insert(on(np.arange(1)), on(least))
        assert np.asarray(table.find(on(np.arange(1)))).tobytes() == least_as_f8.tobytes()
    tiny = LEAST["f8"].item()
    assert tiny not in roost.Set(np.zeros(1)) and tiny in roost.Set(LEAST["f8"])
    assert complex(0, tiny) not in roost.Set(np.zeros(1))
    refused(OverflowError, lambda: roost.Index(zeros).get_indexer([tiny]), "float32")
    refused(OverflowError, lambda: roost.isin([tiny], zeros), "float32")
    refused(OverflowError, lambda: roost.Map([1], zeros).find([1], missing=tiny), "missing")
    assert (zeros == least).all()  # roost leaves the thread as it was


def test_dates_that_numpy_does_not_write_are_refused_in_one_line():
    far = np.array([2**62], "i8").view("M8[10us]")  # numpy 2.5 raises for their texts
    days = roost.Index(np.array([0], "i8").view("M8[D]"))
    refused(OverflowError, lambda: days.get_indexer([far[0]]), "datetime64[D]")
    numbers = roost.Map(np.array([1]), np.array([1]))
    refused(TypeError, lambda: numbers.find([1], missing=far[0]), "missing=")
    refused(TypeError, lambda: numbers.find([1], missing=[far[0]]), "missing=")


def test_complex_keys_have_no_imaginary_part():
    nan = float("nan")
    of_nan = roost.Set(np.array([1, nan]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of each imaginary part that is dropped
        for make in (complex, lambda *parts: np.complex128(complex(*parts))):
            assert make(nan, 5) not in of_nan and make(1, 5) not in of_nan and make(1, nan) not in of_nan
            assert make(nan) in of_nan and make(1) in of_nan
