"""Groups as pandas and polars have them: columns of frames, results for rows, iteration, pickling."""

import copy
import datetime
import pickle
import typing

import numpy as np
import pandas as pd
import pytest
import roost

pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")

LIBRARIES = ["pandas", "nullable", "pandas-arrow", "polars", "pyarrow"]
RANKS = ["average", "min", "max", "dense", "first"]
INTEGERS, NUMBERS, OTHERS = ["i", "u", "n"], ["i", "u", "n", "b", "f"], ["t", "c", "d", "z"]
AGGREGATES = "sum mean min max count first last var std median nunique".split()
SIZES = [0, 1, 2, 60]


def frame_of(rng, n, library):
    """A frame of random columns of all kinds, and the same in pandas with types that hold each exactly."""
    missing = lambda *parts: rng.random(n) < rng.choice(parts or [0, 0.3])
    with_nulls = lambda values, *parts: [None if m else v for m, v in zip(missing(*parts), values)]
    some = lambda *texts: np.array(texts)[rng.integers(0, len(texts), n)]
    times = pd.to_datetime(rng.integers(0, 10**10, n) // 100 * 100, unit="s").as_unit("us")
    zoned = times.tz_localize("Europe/Paris", ambiguous=True, nonexistent="shift_forward")
    columns = {
        "k": (with_nulls(some("x", "", "ä", "long text"), 0.3), "str"),
        "j": (rng.integers(-1, 2, n), "Int8"),
        "i": (rng.integers(2**62, 2**62 + 5, n), "Int64"),  # whose sums wrap around
        "u": (rng.integers(2**63, 2**63 + 5, n, dtype="u8"), "UInt64"),
        "n": (with_nulls(rng.integers(2**53, 2**53 + 5, n)), "Int64"),
        "b": (rng.random(n) < 0.5, "boolean"),
        "f": (with_nulls(rng.integers(-9, 9, n) / 4), "Float64"),
        "t": (with_nulls(some("b", "a", "ö")), "str"),
        "c": (pd.Categorical(with_nulls(some("p", "q")), ["q", "p"]), None),
        "d": (pd.Series(times).where(~missing()), None),
        "z": (pd.Series(zoned).where(~missing()), None),
    }
    exact = pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (values, kind) in columns.items()})
    if library == "pandas":
        types = {"j": "int8", "i": "int64", "u": "uint64", "b": "bool", "f": "float64"}
        exact.index = rng.integers(0, 5, n)
        return exact.astype(types), exact
    table = pa.Table.from_pandas(exact, preserve_index=False)
    if library == "nullable":
        exact.index = rng.permutation(n) * 7
        return exact, exact
    if library == "pandas-arrow":
        return table.to_pandas(types_mapper=pd.ArrowDtype), exact
    return (pl.from_arrow(table) if library == "polars" else table), exact


def value_of(value):
    if value is None or value is np.ma.masked or value is pd.NA or value is pd.NaT or value != value:
        return None
    return pd.Timestamp(value) if isinstance(value, datetime.datetime | np.datetime64) else value


def listed(column):
    """Values of Python, None for nulls and NaN."""
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(column, method):
            return [value_of(value) for value in getattr(column, method)()]


def column(frame, name):
    return frame.column(name) if isinstance(frame, pa.Table) else frame[name]


def names_of(frame):
    return frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)


def same(found, wanted, what, like=None):
    """Whether results for rows are the values, of integers exactly; and like a Series of pandas in index and
    name."""
    found_list, wanted = listed(found), listed(wanted)
    assert len(found_list) == len(wanted), what
    for a, b in zip(found_list, wanted):
        if isinstance(b, float) and a is not None:
            assert a == pytest.approx(b, rel=1e-12), what
        else:
            assert a == b, (what, a, b)
    if isinstance(like, pd.Series):
        assert found.index.equals(like.index) and found.name == like.name, what
    elif like is not None:
        assert type(found).__module__.split(".")[0] == type(like).__module__.split(".")[0], what


class Theirs:
    """What pandas has for the rows whose key was not dropped, and nulls for the others."""

    def __init__(self, exact, by, dropna):
        keys = [tuple(row) for row in exact[by].astype(object).where(exact[by].notna(), None).to_numpy()]
        self.kept = np.array([not dropna or None not in key for key in keys], bool)
        self.frame = exact.reset_index(drop=True)
        self.numbers = pd.factorize(pd.Series(keys, dtype=object))[0]

    def groups(self, name, frame=None):
        rows = (self.frame if frame is None else frame)[name][self.kept]
        return rows.groupby(self.numbers[self.kept], sort=False)

    def all(self, found):
        return found.astype(object).reindex(range(len(self.frame)))


def groups_of(seed, library, dropna):
    for n in SIZES:
        rng = np.random.default_rng([seed, n, dropna])
        for by in (["k"], ["j"], ["k", "j"]):
            frame, exact = frame_of(rng, n, library)
            yield frame, roost.group_by(frame, by, dropna=dropna), Theirs(exact, by, dropna)


every_library = pytest.mark.parametrize("library", LIBRARIES)
dropping = pytest.mark.parametrize("dropna", [False, True])


@dropping
@every_library
def test_values_of_neighbours(library, dropna):
    rng = np.random.default_rng(1)
    for frame, g, theirs in groups_of(1, library, dropna):
        for name in NUMBERS + OTHERS:
            like, n = column(frame, name), int(rng.integers(-3, 4))
            shifted = g[name].shift(n)
            same(shifted, theirs.all(theirs.groups(name).shift(n)), (name, n), like)
            same(g[name].ffill(), theirs.all(theirs.groups(name).ffill()), name, like)
            same(g.bfill(name), theirs.all(theirs.groups(name).bfill()), name, like)
            if library != "pandas" or name in ("n", "f", *OTHERS):
                kind = lambda c: str(getattr(c, "dtype", getattr(c, "type", None)))
                assert kind(shifted) == kind(like) == kind(g[name].ffill())
            else:  # never floats or objects, which pandas makes of them
                assert isinstance(shifted.dtype, np.dtype) == (None not in listed(shifted))
                assert str(shifted.dtype).lower().startswith(str(like.dtype))
        some = g[["t", "i"]].shift(n=-1)
        assert type(some) is type(frame)
        same(column(some, "i"), theirs.all(theirs.groups("i").shift(-1)), "i", column(frame, "i"))
        same(column(some, "t"), theirs.all(theirs.groups("t").shift(-1)), "t", column(frame, "t"))


@dropping
@every_library
def test_running_sums_and_ranks(library, dropna):
    for frame, g, theirs in groups_of(2, library, dropna):
        for name in NUMBERS:
            of = theirs.frame if name != "b" else theirs.frame.astype({"b": "Int64"})
            found = g[name].cumsum()
            same(found, theirs.all(theirs.groups(name, of).cumsum()), name, column(frame, name))
            if name in INTEGERS and library in ("pandas", "nullable"):
                assert found.dtype.kind in "iu"  # also of Int64
        places = g.cumcount()
        same(places, theirs.all(theirs.groups("i").cumcount()), "cumcount")
        assert type(places) is type(g["i"].cumsum())
        assert not isinstance(frame, pd.DataFrame) or places.index.equals(frame.index)
        ranked = theirs.frame.assign(t=pd.factorize(theirs.frame["t"], sort=True)[0]).astype({"t": "Int64"})
        ranked.loc[theirs.frame["t"].isna(), "t"] = pd.NA
        if not len(frame):
            continue
        for name in [*NUMBERS, "t", "z"]:
            for method in RANKS:
                for ascending in (True, False):
                    wanted = theirs.groups(name, ranked).rank(method=method, ascending=ascending)
                    found = g[name].rank(method=method, ascending=ascending)
                    same(found, theirs.all(wanted), (name, method, ascending), column(frame, name))


@dropping
@every_library
def test_transform(library, dropna):
    for frame, g, theirs in groups_of(3, library, dropna):
        if not theirs.kept.any():
            continue
        for how in AGGREGATES:
            for name in ["f"] if how in ("mean", "var", "std", "median") else [*INTEGERS, "f"]:
                groups = theirs.groups(name)
                if how in ("first", "last"):
                    wanted = groups.transform(lambda s: s.iloc[0 if how == "first" else -1])
                else:
                    wanted = groups.transform(how, **({"min_count": 1} if how == "sum" else {}))
                found = g[name].transform(how)
                same(found, theirs.all(wanted), (how, name), column(frame, name))
        same(g.transform("min", "t"), theirs.all(theirs.groups("t").transform(lambda s: s.min())), "t")
        latest = theirs.all(theirs.groups("z").transform("max"))
        same(g["z"].transform("max"), latest, "z", column(frame, "z"))
        sizes = theirs.all(theirs.groups("i").transform("size"))
        same(g.transform("count"), sizes, "size", g.cumcount())
        both = g[["f", "i"]].transform("count")
        same(column(both, "f"), theirs.all(theirs.groups("f").transform("count")), "f", column(frame, "f"))
        same(column(both, "i"), sizes, "i", column(frame, "i"))
        wanted = theirs.groups("f").transform(lambda s: s.quantile(0.25))
        same(g["f"].transform("quantile", q=0.25), theirs.all(wanted), "quantile")


@dropping
@every_library
def test_parts_of_the_frame(library, dropna):
    rows_of = lambda frame: list(zip(*(listed(column(frame, name)) for name in "kjiunbftcdz")))
    for frame, g, theirs in groups_of(4, library, dropna):
        rows, groups = rows_of(frame), theirs.groups("i")
        for n in (0, 1, 3):
            for found, wanted in ((g.head(n), groups.head(n)), (g.tail(n), groups.tail(n))):
                assert type(found) is type(frame)
                assert rows_of(found) == [rows[row] for row in wanted.index]
                if isinstance(frame, pd.DataFrame):
                    assert found.index.equals(frame.index[wanted.index])
                    assert (found.dtypes == frame.dtypes).all()
        assert listed(g["t"].head(1)) == [row[7] for row in rows_of(g.head(1))]
        assert names_of(g[["z", "i"]].tail(2)) == ["z", "i"]
        keys, parts = list(zip(*g)) or ((), ())
        assert len(keys) == len(g)
        for key, part, (_, texts), size in zip(keys, parts, g["t"], listed(g[["t"]].size())):
            key = [value_of(each) for each in (key if isinstance(key, tuple) else [key])]
            assert len(part) == size and listed(texts) == listed(column(part, "t"))
            for name, value in zip(names_of(g.keys), key, strict=True):
                assert listed(column(part, name)) == [value] * len(part)
        made = [listed(column(g.keys, name)) for name in names_of(g.keys)]
        assert list(map(value_of, keys)) == made[0] if len(made) == 1 else list(keys) == list(zip(*made))
        numbers, kept = theirs.numbers[theirs.kept], np.flatnonzero(theirs.kept)
        wanted = [[rows[row] for row in kept[numbers == number]] for number in set(numbers.tolist())]
        assert sorted(map(repr, map(rows_of, parts))) == sorted(map(repr, wanted))


@every_library
def test_columns_and_agg(library):
    """What `g["v"]` has without values, `g` has for the column, and `agg` by name."""
    frame, exact = frame_of(np.random.default_rng(8), 300, library)
    g = roost.group_by(frame, ["k", "j"])
    order = list(zip(listed(column(g.keys, "k")), listed(column(g.keys, "j"))))
    for how in [*AGGREGATES, "product", "any", "all", "mode", "quantile"]:
        alone, all_ = getattr(g["n"], how)(), getattr(g, how)("n")
        assert type(alone) is type(all_) and repr(listed(alone)) == repr(listed(all_))
        made = getattr(g[["n", "f"]], how)()
        wanted = g.agg(n=("n", how), f=("f", how))
        assert type(made) is type(frame) and names_of(made) == ["k", "j", "n", "f"]
        assert made.equals(wanted)
    assert listed(g["f"].var(ddof=0)) == listed(g.var("f", ddof=0))
    assert [*map(listed, g["i"].nlargest(2))] == [*map(listed, g.nlargest("i", 2))]
    for call in (lambda: g["n"].sum("u"), lambda: g["n"].rank("min"), lambda: g["n"].quantile(0.5)):
        with pytest.raises(TypeError, match="options by name"):
            call()
    assert listed(g.size()) == listed(g.count()) == listed(g["n"].size())
    assert listed(g["n"].count()) == listed(g.count("n")) != listed(g.size())

    found = g.agg({"f": ["sum", "mean"], "n": "max", "t": ["first"]}, rows="count")
    assert names_of(found) == ["k", "j", "f_sum", "f_mean", "n", "t_first", "rows"]
    theirs = exact.groupby(["k", "j"], dropna=False)
    wanted = theirs.agg(f_sum=("f", lambda s: s.sum(min_count=1)), f_mean=("f", "mean"), n=("n", "max"))
    wanted = {(value_of(k), j): [*map(value_of, row)] for (k, j), *row in wanted.itertuples()}
    for n, name in enumerate(("f_sum", "f_mean", "n")):
        same(column(found, name), pd.Series([wanted[key][n] for key in order], dtype=object), name)
    assert found.equals(
        g.agg(f_sum=("f", "sum"), f_mean=("f", "mean"), n=("n", "max"), t_first=("t", "first"), rows="count")
    )
    assert g["n"].agg("sum").equals(g.agg(n=("n", "sum")))
    assert g[["n", "f"]].agg(["min", "count"]).equals(g.agg({"n": ["min", "count"], "f": ["min", "count"]}))
    assert g["n"].agg({"i": "sum"}).equals(g.agg(i=("i", "sum")))


def test_names_of_two_parts():
    names = pd.MultiIndex.from_tuples([("k", ""), ("v", "a"), ("v", "b")])
    frame = pd.DataFrame([[1, 2, 3], [1, 4, 5]], columns=names)
    g = roost.group_by(frame, [("k", "")])
    assert g["v", "a"].sum().tolist() == [6] and g[("v", "b")].cumsum().tolist() == [3, 8]
    assert list(g.agg({("v", "a"): ["sum"]}).columns) == [("k", ""), ("v", "a_sum")]
    frame = pd.DataFrame({"k": [1, 1], "name": [2, 3], "index": [4, 5], 0: [6, 7]}, index=[8, 8])
    g = roost.group_by(frame, "k")
    assert g.cumcount().index.tolist() == [8, 8] and g.cumcount().name is None
    assert g[0].shift(1).tolist() == [pd.NA, 6] and g["name"].tail(1).index.tolist() == [8]
    assert list(g[[0]].agg(["sum"]).columns) == ["k", "0_sum"]


@pytest.mark.parametrize("seed", range(3))
def test_as_polars_has_it(seed):
    """NaN among values, which is one in polars; ranks leave it out."""
    rng = np.random.default_rng(seed)
    n = 2000
    with_nulls = lambda values: pl.Series(
        [None if rng.random() < 0.2 else value for value in values.tolist()]
    )
    floats, whole = rng.integers(-9, 9, n) / 4, rng.integers(0, 9, n)
    nans = with_nulls(np.where(rng.random(n) < 0.05, np.nan, floats))
    frame = {"k": rng.integers(0, 30, n), "f": with_nulls(floats), "i": with_nulls(whole), "x": nans}
    frame = pl.DataFrame(frame)
    g = roost.group_by(frame, "k")
    over = lambda expression: frame.select(expression.over("k")).to_series()
    for name in ("x", "i"):
        col = pl.col(name)
        for found, wanted in (
            (g[name].shift(2), col.shift(2)),
            (g[name].ffill(), col.forward_fill()),
            (g[name].bfill(), col.backward_fill()),
            (g[name].cumsum(), col.cum_sum()),
            (g[name].transform("sum"), pl.when(col.count() > 0).then(col.sum())),
            (g[name].transform("count"), col.count().cast(pl.Int64)),
        ):
            assert found.equals(over(wanted), null_equal=True) and found.name == name
    for name in ("f", "i"):
        for method in RANKS[:4] + ["ordinal"]:
            for descending in (False, True):
                found = g[name].rank(method=method.replace("ordinal", "first"), ascending=not descending)
                wanted = over(pl.col(name).rank(method.replace("first", "ordinal"), descending=descending))
                assert found.equals(wanted.cast(found.dtype))
    assert g["x"].rank().null_count() == (frame["x"].is_null() | frame["x"].is_nan()).sum()
    parts = {key[0]: rows for key, rows in frame.group_by("k", maintain_order=True)}
    assert all(rows.equals(parts.pop(key)) for key, rows in g) and not parts


def test_arrays():
    keys = np.array([5, 6, 5, 5, 6])
    g = roost.group_by(keys)
    top = np.array([2**63 - 1, 2**53 + 1, 1, 2**53 + 1, 1])
    assert g.cumsum(top).tolist() == [2**63 - 1, 2**53 + 1, -(2**63), -(2**63) + 2**53 + 1, 2**53 + 2]
    assert g.cumsum(top.view("u8")).dtype == np.uint64 and g.cumsum(top > 1).tolist() == [1, 1, 1, 2, 1]
    assert g.cumsum(np.array([60000, 1, 60000, 0, 1], "f2")).tolist() == [60000, 1, np.inf, np.inf, 2]
    assert g.cumcount().tolist() == [0, 0, 1, 2, 1] and g.transform("count").tolist() == [3, 2, 3, 3, 2]
    assert g.shift(top).tolist() == [None, None, 2**63 - 1, 1, 2**53 + 1]
    for n in (10**30, -(10**30), 2**63 - 1):
        assert g.shift(top, n=n).mask.all()
    assert g.shift(top, n=0).tolist() == top.tolist()
    masked = np.ma.MaskedArray([1, 2, 3, 4, 5], [0, 0, 1, 0, 1])
    assert g.ffill(masked).tolist() == [1, 2, 1, 4, 2] and g.bfill(masked).tolist() == [1, 2, 4, 4, None]
    assert g.shift(masked).tolist() == [None, None, 1, None, 2]
    assert g.cumsum(masked).tolist() == [1, 2, None, 5, None]
    assert g.rank(masked).tolist() == [1, 1, None, 2, None]
    dates = np.array(["2024-01-03", "NaT", "2024-01-01", "2024-01-03", "2024-01-02"], "M8[D]")
    assert str(g.shift(dates).tolist()) == str([None, None, *dates[[0, 2]].tolist(), None])
    assert g.rank(dates, method="min").tolist() == [2, None, 1, 2, 1]
    assert g.transform("max", dates).tolist() == dates[[0, 4, 0, 0, 4]].tolist()
    half = np.ma.MaskedArray(np.arange(5), keys == 6)
    assert g.transform("sum", half).tolist() == [5, None, 5, 5, None]
    texts = np.array(["b", "a", None, "b", "c"], object)
    assert g.ffill(texts).tolist() == ["b", "a", "b", "b", "c"] and g.head(1).tolist() == [0, 1]
    assert g.rank(["b", "a", "c", "b", "c"], ascending=False).tolist() == [2.5, 2, 1, 2.5, 1]
    assert g.tail(2).tolist() == [1, 2, 3, 4] and g.tail(2).dtype == np.int64
    assert {key: rows.tolist() for key, rows in g} == {5: [0, 2, 3], 6: [1, 4]}
    assert g.transform("first", np.arange(10).reshape(5, 2))[:, 1].tolist() == [1, 3, 1, 1, 3]
    assert g.transform("cov", keys, top, ddof=0).tolist() == [0] * 5
    one, other = g.cumsum(keys, keys)
    assert one.tolist() == other.tolist() == [5, 6, 10, 15, 12]
    found = g.cumsum(pd.Series([1, 2, 3, 4, 5], index=[1, 1, 0, 2, 3], name="v"))
    assert found.index.tolist() == [1, 1, 0, 2, 3] and found.tolist() == [1, 2, 4, 8, 7] and found.name == "v"
    dropped = roost.group_by(np.array([np.nan, 1.0, np.nan, 1.0]), dropna=True)
    assert dropped.cumsum([1, 2, 3, 4]).tolist() == [None, 2, None, 6]
    assert dropped.transform("max", [1, 2, 3, 4]).tolist() == [None, 4, None, 4]
    found = dropped.transform("max", dates[1:])
    assert not np.ma.isMA(found) and found.astype(str).tolist() == ["NaT", "2024-01-02"] * 2
    assert dropped.shift(["a", "b", "c", "d"]).tolist() == [None, None, None, "b"]
    assert dropped.tail(1).tolist() == [3] and [rows.tolist() for _, rows in dropped] == [[1, 3]]
    none = roost.group_by(np.full(2, np.nan), dropna=True)
    assert none.transform("min", ["a", "b"]).tolist() == none.shift(["a", "b"]).tolist() == [None, None]
    skipping = roost.group_by(np.zeros(3), skipna=True)
    assert skipping.cumsum([1.0, np.nan, 2]).tolist() == [1, None, 3]
    assert skipping.ffill(np.array([1.0, np.nan, 2])).tolist() == [1, 1, 2]


def test_arrays_of_every_library(on):
    if on.gpu:
        with pytest.raises(TypeError, match="roost.GroupBy.rank: keys on .*; copy keys and values to"):
            roost.group_by(on(np.arange(3))).rank(on(np.arange(3)))
        return
    keys, values = np.array([3, 1, 3, 1], "i4"), np.array([4, 3, 2, 1], "i8")
    g = roost.group_by(on(keys))
    assert on.back(g.cumsum(on(values))).tolist() == [4, 3, 6, 4]
    assert on.back(g.rank(on(values), method="min")).tolist() == [2, 2, 1, 1]
    assert on.back(g.transform("max", on(values))).tolist() == [4, 3, 4, 3]
    assert g.shift(on(values)).tolist() == [None, None, 4, 3]
    again = pickle.loads(pickle.dumps(g))
    assert on.back(again.sum(on(values)))[np.argsort(on.back(again.keys))].tolist() == [4, 6]


def sums_so_far(values):
    """Running sums in pieces of 32, whose sums are added in the same way."""
    levels, sums = [], values
    while True:
        pieces = np.zeros((-(-len(sums) // 32), 32))
        pieces.reshape(-1)[: len(sums)] = sums
        levels.append(np.cumsum(pieces, axis=1).reshape(-1))
        if len(sums) <= 32:
            break
        sums = levels[-1][31::32]
    found, at = levels[0][: len(values)].copy(), np.arange(len(values))
    for level in levels[1:]:
        at = at // 32
        inner = at % 32 != 0
        found[inner] = level[at[inner] - 1] + found[inner]
    return found


def test_sums_of_long_and_of_short_groups():
    """Each in the order of its rows, in pieces of 32, and none is near the others."""
    rng = np.random.default_rng(8)
    sizes = np.concatenate([rng.integers(1, 4, 5000), [150, 151, 152, 3000, 40_000]])
    keys = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    values = rng.normal(size=len(keys)) * 10.0 ** rng.integers(-12, 12, len(keys))
    values[rng.integers(0, len(keys), 3)] = [np.inf, -np.inf, np.nan]
    g = roost.group_by(keys)
    found = {dtype: g.cumsum(values.astype(dtype)) for dtype in ("f4", "f8")}
    for key, rows in g:
        for dtype, sums in found.items():
            wanted = sums_so_far(values[rows].astype(dtype).astype("f8")).astype(dtype)
            assert np.array_equal(sums[rows], wanted, equal_nan=True)
            assert sums.dtype == dtype and (keys[rows] == key).all()


@pytest.mark.parametrize(
    "keys",
    [
        np.array([3, 1, 3]),
        np.array([1.5, np.nan, 1.5]),
        np.array([[1, 2], [3, 4], [1, 2]]),
        np.array(["2024-01-01", "NaT", "2024-01-01"], "M8[ns]"),
        np.array(["a", "b", "a"]),
        ["a", "b\0", "a"],
        (["a", "b", "a"], np.ma.MaskedArray([1, 2, 1], [0, 1, 0])),
        pa.array([datetime.time(1), None, datetime.time(1)]),
        pd.DataFrame({"k": ["a", None, "a"], "j": [1, 2, 1]}, index=[5, 5, 6]),
        pd.DataFrame({"k": ["a", "b", "a"]}),
        pl.DataFrame({"k": ["a", None, "a"]}),
        pa.table({"k": pa.array(["a", "b", "a"]).dictionary_encode(), "j": [1, None, 1]}),
        np.zeros(0),
    ],
    ids=lambda keys: type(keys).__name__,
)
@dropping
def test_pickled_and_copied(keys, dropna):
    g = roost.group_by(keys, dropna=dropna)
    values = np.arange(3 if len(keys) else 0) + 2**60
    parts = lambda groups: {repr(key): repr(rows) for key, rows in groups}
    for made in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert parts(made) == parts(g) and type(made.keys) is type(g.keys)
        assert made.cumsum(values).tolist() == g.cumsum(values).tolist()
        assert sorted(made.sum(values).tolist()) == sorted(g.sum(values).tolist())
    if g._frame is not None:
        again = pickle.loads(pickle.dumps(g["k"]))
        assert listed(again.shift()) == listed(g["k"].shift())


def test_pickled_keys_that_were_changed():
    g = roost.group_by(np.array([1, 2, 1]))
    g.keys[:] = 0
    with pytest.raises(ValueError, match="roost.GroupBy: keys that were changed"):
        pickle.dumps(g)


def test_refusals():
    frame = pd.DataFrame({"key": ["a", "b"], "amount": [1, 2], "text": ["x", "y"]})
    g, arrays = roost.group_by(frame, "key"), roost.group_by(np.array([1, 2]))
    ordered = pd.Categorical(["p", "q"], ordered=True)
    for call, error, message in (
        (lambda: g["amonut"], KeyError, r"roost.GroupBy\[...\]: columns=.*did you mean 'amount'\?"),
        (lambda: g[["amount", "txt"]], KeyError, "did you mean 'text'"),
        (lambda: g["zzz"], KeyError, "the columns are .'key', 'amount', 'text'.\"$"),
        (lambda: g[["amount", "amount"]], KeyError, "give each name once"),
        (lambda: g.sum("amonut"), KeyError, "did you mean 'amount'"),
        (lambda: g[pl.col("amount")], TypeError, "give the names of columns"),
        (lambda: arrays["amount"], TypeError, r"keys of no frame; .*group_by\(frame, by\)"),
        (lambda: "a" in g, TypeError, r"roost.Set\(g.keys\)"),
        (lambda: g.agg({"amonut": "sum"}), KeyError, "roost.GroupBy.agg: columns=.*did you mean 'amount'"),
        (lambda: g.agg({"amount": "total"}), ValueError, "amount='total' is no method; give one of sum"),
        (lambda: g.agg({"amount": "corr"}), ValueError, "'amount' is one column, and corr takes two"),
        (lambda: g.agg({"amount": ["sum", "sum"]}), ValueError, "two results with the name 'amount_sum'"),
        (lambda: g.agg({"amount": "sum"}, amount="count"), ValueError, "two results with the name 'amount'"),
        (lambda: g.agg({"key": "count"}), ValueError, "'key' is the name of a key"),
        (lambda: g.agg("sum"), TypeError, "a str of no columns; give each result a name"),
        (lambda: g.transform("sum"), TypeError, "roost.GroupBy.transform: no values"),
        (lambda: g["amount"].transform("total"), ValueError, "transform: how='total' is no method"),
        (lambda: g["amount"].transform("sum", q=1), TypeError, "q for 'sum'; give q to quantile"),
        (lambda: g["amount"].transform("corr"), ValueError, "corr of 1 columns; give two"),
        (lambda: g["amount"].transform("quantile", q=[0, 1]), TypeError, "transform: quantile of .*single q"),
        (lambda: g["amount"].rank(method="best"), ValueError, "method='best'; give one of 'average', 'min'"),
        (lambda: g["amount"].rank(ascending=1), TypeError, "ascending=1; give True or False"),
        (lambda: arrays.rank(pd.Series(ordered)), TypeError, "rank: .*categories with an order"),
        (lambda: arrays.rank([1, 2, 3]), ValueError, "roost.GroupBy.rank: 2 keys but 3 values"),
        (lambda: g["text"].cumsum(), TypeError, "roost.GroupBy.cumsum: values of type str have only"),
        (lambda: g["amount"].shift(n=1.5), TypeError, "roost.GroupBy.shift: n=1.5; give a whole number"),
        (lambda: g.head(-1), ValueError, "roost.GroupBy.head: n=-1"),
        (lambda: g.nlargest("amount"), TypeError, "roost.GroupBy.nlargest: no n"),
    ):
        with pytest.raises(error, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert arrays.shift(pd.Series(ordered)).dtype == ordered.dtype


def test_rows_of_keys_on_a_device_are_refused():
    g = roost.group_by(np.array([1, 2]))
    g._library = type("Elsewhere", (), {"module": None, "where": "cuda:0"})()
    for call in (lambda: g.head(), lambda: next(iter(g)), lambda: pickle.dumps(g)):
        with pytest.raises(TypeError, match="keys on cuda:0 have only .*; copy keys and values to the CPU"):
            call()


def test_rows_of_columns_of_arrow_on_a_device_are_refused():
    from test_arrow_device import Cpu, Exported

    numbers = Exported(pa.array([1, 2, 1]), Cpu)
    calls = [
        lambda g: g.cumsum(numbers),
        lambda g: g.transform("corr", numbers, numbers),
        lambda g: g.shift(numbers),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="values of Arrow's device interface; copy them to the CPU"):
            call(roost.group_by(np.array([1, 2, 1])))
        with pytest.raises(TypeError, match="keys of Arrow's device interface have only results by key"):
            call(roost.group_by(numbers))


def test_integers_of_sparse_columns_stay_integers():
    sparse = pd.arrays.SparseArray(np.array([2**53 + 1, 7, 0]))
    frame = pd.DataFrame({"k": [1, 1, 2], "s": sparse})
    shifted = roost.group_by(frame, "k")["s"].shift(1)
    assert shifted.dtype == "Int64" and shifted.tolist() == [pd.NA, 2**53 + 1, pd.NA]
    merged = roost.merge(pd.DataFrame({"k": [1, 3]}), frame, on="k", how="left")["s"]
    assert merged.dtype == "Int64" and merged.tolist() == [2**53 + 1, 7, pd.NA]


def test_size_is_a_method_of_agg_and_transform():
    g = roost.group_by(pd.DataFrame({"k": [2, 1, 2], "v": [1.0, None, 3.0]}), "k")
    assert g.agg(n="size")["n"].tolist() == g.size().tolist()
    assert g.transform("size").tolist() == g["v"].transform("size").tolist() == [2, 1, 2]


def test_labels_of_the_axis_of_columns_are_those_of_pandas():
    base = pd.DataFrame(
        {"k": [1, 1, 2], "v": [1.5, 2, 3], "w": [1, 2, 3]}, index=pd.Index([5, 6, 5], name="i")
    )
    wide = base.set_axis(
        pd.MultiIndex.from_tuples([("a", "k"), ("a", "v"), ("b", "w")], names=["x", "y"]), axis=1
    )
    days = base.set_axis(pd.date_range("2026", periods=3, name="day"), axis=1)
    codes = base.set_axis(pd.CategoricalIndex(list("kvw"), name="c"), axis=1)
    for frame in (base, base.rename_axis(columns="axis"), wide, days, codes):
        k, v, w = frame.columns
        g, by = roost.group_by(frame, [k]), frame.groupby([k])
        alone = frame.groupby([k], as_index=False)
        pairs = [
            (g.head(1), by.head(1)),
            (g.tail(1), by.tail(1)),
            (g[[v]].sum(), alone[[v]].sum()),
        ]
        pairs += [
            (getattr(g[[v, w]], how)(), getattr(by[[v, w]], how)()) for how in ("cumsum", "ffill", "rank")
        ]
        pairs += [(g[[v, w]].transform("max"), by[[v, w]].transform("max"))]
        pairs += [(g[[v, w]].shift(1), by[[v, w]].shift(1)), (g[[v, w]].head(1), by[[v, w]].head(1))]
        pairs += [(g.agg({v: "max"}), alone.agg({v: "max"})), (g.agg(n=(v, "max")), alone.agg(n=(v, "max")))]
        pairs += [(next(iter(g))[1], frame[frame[k] == next(iter(g))[0]])]
        pairs += [
            (roost.merge(frame, frame, on=[k], how=how), frame.merge(frame, on=[k], how=how))
            for how in ("inner", "left")
        ]
        pairs += [(roost.merge(frame, frame, on=[k], how="semi"), frame)]
        for found, wanted in pairs:
            assert found.columns.names == wanted.columns.names
            assert found.columns.dtype == wanted.columns.dtype or frame is codes or found.columns.nlevels > 1
        assert type(g.head(1).columns) is type(frame.columns)
    other = base.rename_axis(columns="other")
    assert roost.merge(base.rename_axis(columns="axis"), other, on="k").columns.name is None


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_frames_that_got_more_or_fewer_rows_are_refused():
    def longer(frame):
        frame.loc[9] = [1, 4.0, "z"]

    def shorter(frame):
        frame.drop(index=frame.index[0], inplace=True)

    calls = [
        lambda g: g.sum("v"), lambda g: g["v"].sum(), lambda g: g.agg(t=("t", "first")), lambda g: g.head(1),
        lambda g: g.tail(1), lambda g: g.cumcount(), lambda g: g.transform("count"), lambda g: list(g),
        lambda g: g["v"].transform("sum"), lambda g: g["t"].shift(1), lambda g: g.ffill("t"),
        lambda g: g[["v"]].cumsum(), lambda g: pickle.dumps(g), lambda g: g.agg({"v": "max"}),
    ]  # fmt: skip
    data = {"k": [1, 1, 2], "v": [1.5, 2, 3], "t": ["a", "b", "c"]}
    kinds = [(pd.DataFrame, longer, 4), (pd.DataFrame, shorter, 2)]
    kinds += [(pl.DataFrame, lambda frame: frame.extend(frame.clone()), 6)]
    for made, change, n in kinds:
        for call in calls:
            frame = made(data)
            g = roost.group_by(frame, "k")
            change(frame)
            with pytest.raises(
                ValueError, match=f"^roost.GroupBy: .* had 3 rows .* has {n} now; call group_by again$"
            ):
                call(g)
            assert sorted(listed(g.size())) == [1, 2]


@pytest.mark.parametrize("frame, column", [(pa.table, pa.ChunkedArray), (pa.record_batch, pa.Array)])
def test_results_for_rows_are_in_chunks_as_the_frame(frame, column):
    g = roost.group_by(frame({"k": [2, 1, 2], "v": [1, 2, 3]}), "k")
    for found in (g.cumcount(), g["v"].cumsum(), g["v"].shift(1), g["v"].transform("sum"), g.corr("v", "v")):
        assert isinstance(found, column)
    assert g["v"].cumsum().to_pylist() == [1, 2, 4]


def test_tables_and_groups_take_parameters():
    for kind in (roost.GroupBy, roost.Map, roost.Index, roost.ConcurrentMap):
        assert typing.get_origin(kind[np.ndarray]) is kind


def test_what_is_left_out_is_named():
    g = roost.group_by(pd.DataFrame({"k": [1, 2], "v": [3, 4]}), "k")
    for call in (g["v"].nlargest, g["v"].nsmallest, g.nlargest):
        with pytest.raises(TypeError, match="no n; give values and n, or n alone"):
            call()
    with pytest.raises(TypeError, match="^roost.group_by: by= names columns, of which a ndarray has none;"):
        roost.group_by(np.arange(3), ["a"])
