"""Options of merge, value_counts and duplicated; nunique, drop_duplicates; methods and notebooks."""

import html
import inspect
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
import roost

pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
import roost.pandas  # noqa: E402
import roost.polars  # noqa: E402

BEYOND = 2**53  # where floats have no odd numbers
KINDS = ("integers", "nullable", "floats", "texts", "categories", "zones", "arrow", "two")


def refused(error, words, call):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value) and str(caught.value).startswith("roost.")


def keys(rng, kind, n, nulls=True):
    """Some keys, few of them distinct."""
    k = rng.integers(0, 6, n)
    none = np.flatnonzero((k == 0) & nulls)
    if kind == "floats":
        return pd.Series(np.where((k == 0) & nulls, np.nan, k / 4))
    if kind in ("texts", "categories"):
        texts = pd.Series([f"t{i}" for i in k], dtype="str")
        return texts if kind == "texts" else texts.astype(pd.CategoricalDtype([f"t{i}" for i in range(6)]))
    if kind == "zones":
        return pd.Series(pd.DatetimeIndex(k * 10**9 + 1).tz_localize("Asia/Tokyo"))
    column = pd.Series(k + BEYOND)
    if kind in ("nullable", "arrow"):
        column = column.astype("Int64" if kind == "nullable" else pd.ArrowDtype(pa.int64()))
        column[none] = pd.NA
    return column


def frames(seed, kind, sizes=None):
    """Two frames with a key `k`, and `j` for two keys, an own column each, and one of the same name."""
    rng = np.random.default_rng(seed)
    made = []
    for name, n in zip("lr", sizes or rng.integers(1, 14, 2)):
        frame = pd.DataFrame({"k": keys(rng, kind, n, kind != "nullable"), name: np.arange(n) + BEYOND})
        if kind == "two":
            frame["j"] = rng.integers(0, 2, n)
        made.append(frame.assign(v=np.arange(n) * 0.5).set_index(pd.Index(rng.integers(0, 99, n), name=name)))
    return made, ["k", "j"] if kind == "two" else "k"


def assert_same(found, wanted, how, by=("v_x", "v_y")):
    """Whether frames are equal, in the order of rows, except of an outer join, which pandas sorts by key."""
    wanted = wanted[list(found.columns)]
    if how in ("outer", "full"):
        indexed = found.index.names != [None] or wanted.index.names != [None]
        found, wanted = (x.sort_values([*by], ignore_index=not indexed) for x in (found, wanted))
    pd.testing.assert_frame_equal(found, wanted)


HOWS = ("inner", "left", "right", "outer", "cross")


@pytest.mark.parametrize("kind", KINDS)
def test_merges_are_those_of_pandas(kind):
    for seed in range(8):
        (left, right), on = frames(seed, kind)
        left, right = left.drop(columns="l"), right.drop(columns="r")  # integers that pandas would round
        for how in HOWS:
            options = {"how": how, "indicator": True, "suffixes": ("_x", "_y"), "sort": False}
            options |= {} if how == "cross" else {"on": on}
            wanted = left.merge(right, **options)
            if kind in ("arrow",):  # pandas lets nulls match
                options["nulls_equal"] = True
            del options["sort"]
            assert_same(roost.merge(left, right, **options), wanted, how)


def test_full_is_outer():
    left, right = pd.DataFrame({"k": ["a", "b", "b"], "l": 1}), pd.DataFrame({"k": ["b", "c"], "r": 2})
    found = roost.merge(left, right, "k", how="full")
    assert found["k"].tolist() == ["a", "b", "b", "c"]
    pd.testing.assert_frame_equal(found, roost.merge(left, right, "k", how="outer"))
    rows = [rows.tolist() for rows in roost.join(left["k"], right["k"], "full")]
    assert rows == [[0, 1, 2, -1], [-1, 0, 0, 1]]
    tables = pl.DataFrame(left), pl.DataFrame(right)
    theirs = tables[0].join(tables[1], on="k", how="full", coalesce=True, maintain_order="left_right")
    assert roost.merge(*tables, "k", how="full").equals(theirs)


@pytest.mark.parametrize("kind", ("integers", "floats", "texts", "categories", "zones"))
def test_merges_by_an_index_are_those_of_pandas(kind):
    for seed in range(6):
        (left, right), _ = frames(seed, kind)
        left, right = left.drop(columns="l"), right.drop(columns="r")
        by_key = [frame.set_index("k") for frame in (left, right)]
        by_key[1].index.name = "k" if seed % 2 else "other"
        for how in HOWS[:4]:
            for one, two, options in (
                (*by_key, {"left_index": True, "right_index": True}),
                (left, by_key[1], {"left_on": "k", "right_index": True}),
                (by_key[0], right, {"left_index": True, "right_on": "k"}),
            ):
                options |= {"how": how, "indicator": "from"}
                assert_same(roost.merge(one, two, **options), one.merge(two, sort=False, **options), how)


def test_merges_by_levels():
    """Integers of a level in which some are missing pass through no float."""
    levels = [[1, BEYOND, BEYOND + 1], ["a", "b"]]
    one = pd.MultiIndex(levels, [[0, 1, 2, -1], [0, 0, 1, 1]], names=["n", "t"])
    left = pd.DataFrame({"l": [1, 2, 3, 4]}, one)
    right = pd.DataFrame({"r": [5, 6, 7]}, pd.MultiIndex(levels, [[2, 1, -1], [1, 1, 1]], names=["n", "t"]))
    by = {"left_index": True, "right_index": True}
    found = roost.merge(left, right, **by)
    assert found.index.tolist() == [(BEYOND + 1, "b")] and found.index.names == ["n", "t"]
    assert found.to_numpy().tolist() == [[3, 5]]
    found = roost.merge(left, right, **by, how="outer", nulls_equal=True)
    assert found.index.levels[0].dtype == "Int64" and found.index.get_level_values(0)[2] == BEYOND + 1
    assert found[["l", "r"]].fillna(-1).to_numpy().tolist() == [[1, -1], [2, -1], [3, 5], [4, 7], [-1, 6]]
    columns = pd.DataFrame({"x": [BEYOND + 1, 1], "y": ["b", "a"]}, index=["p", "q"])
    found = roost.merge(columns, left, left_on=["x", "y"], right_index=True)
    assert found["l"].to_dict() == {"p": 3, "q": 1} and list(found) == ["x", "y", "l"]
    found = roost.merge(left, columns, left_index=True, right_on=["x", "y"], how="anti")
    assert found["l"].tolist() == [2, 4] and found.index.names == ["n", "t"]
    assert roost.merge(left[[]], right[[]], **by).index.tolist() == [(BEYOND + 1, "b")]
    small = pd.DataFrame({"v": [1, 2]}, pd.MultiIndex([[1, 2], ["a"]], [[0, -1], [0, 0]], names=["n", "t"]))
    assert len(roost.merge(small, small, **by)) == 1  # a null, which is equal to nothing
    swapped = right.reorder_levels(["t", "n"])
    refused(TypeError, r"\['t', 'n'\].*one order", lambda: roost.merge(left, swapped, **by))
    refused(TypeError, "one order", lambda: roost.merge(left, right.droplevel("t"), **by))


def test_an_index_is_of_pandas_and_keys_are_named_once():
    (left, right), _ = frames(1, "integers")
    for make in (pl.DataFrame, pa.Table.from_pandas):
        refused(
            TypeError, "left_index.*none", lambda: roost.merge(make(left), make(right), "k", left_index=True)
        )
    for wrong in (
        {"on": "k", "left_index": True, "right_index": True},
        {"left_index": True},
        {"left_on": "k", "left_index": True, "right_on": "k"},
        {"on": "k", "right_on": "k"},
    ):
        refused(ValueError, "give either `on`", lambda: roost.merge(left, right, **wrong))
    for name in ("left_index", "right_index", "nulls_equal"):
        refused(TypeError, f"{name}=1; give True", lambda: roost.merge(left, right, **{name: 1}))
    left, right = left.set_index("k").assign(w=1), left.rename(columns={"k": "w"})
    found = roost.merge(left, right, left_index=True, right_on="w", suffixes=("_l", "_r"))
    assert list(found) == ["w", "l_l", "v_l", "w_l", "l_r", "v_r"]  # a column has the name of a key


@pytest.mark.parametrize("make", (lambda x: x, pl.DataFrame, lambda x: pa.Table.from_pandas(x)))
def test_validate(make):
    once, twice = make(pd.DataFrame({"k": [1, 2, 3]})), make(pd.DataFrame({"k": [3, 2, 3]}))
    allowed = {"1:1": ["oo"], "1:m": ["oo", "ot"], "m:1": ["oo", "to"], "m:m": ["oo", "ot", "to", "tt"]}
    names = ("one_to_one", "one_to_many", "many_to_one", "many_to_many")
    for validate, fitting in (*allowed.items(), *zip(names, allowed.values())):
        for sides in ("oo", "ot", "to", "tt"):
            one, two = (once if side == "o" else twice for side in sides)

            def call(one=one, two=two, validate=validate):
                return roost.merge(one, two, "k", validate=validate)

            if sides in fitting:
                assert len(call()) == len(roost.merge(one, two, "k"))
            else:
                side = "left" if sides[0] == "t" and validate.startswith(("1", "one")) else "right"
                refused(
                    ValueError, f"validate='{validate}', but keys of `{side}` repeat, first in row 2", call
                )
    nulls = make(pd.DataFrame({"k": pd.array([None, None, BEYOND, BEYOND + 1], "Int64")}))
    assert len(roost.merge(nulls, nulls, "k", validate="1:1")) == 2
    refused(
        ValueError, "`left`.*row 1", lambda: roost.merge(nulls, nulls, "k", validate="1:m", nulls_equal=True)
    )
    refused(ValueError, "give one of '1:1'", lambda: roost.merge(once, once, "k", validate="1:2"))
    refused(ValueError, "validate=1", lambda: roost.merge(once, once, "k", validate=1))


def test_validate_comes_before_any_row():
    many = pd.DataFrame({"k": np.zeros(200_000, "i8")})  # 4 * 10^10 pairs
    refused(ValueError, "`right` repeat", lambda: roost.merge(many, many, "k", validate="m:1"))
    nans = pd.DataFrame({"k": [np.nan, np.nan]})  # a value that matches, in one column
    refused(ValueError, "`left` repeat", lambda: roost.merge(nans, nans, "k", validate="1:1"))


def test_indicator():
    data = {"k": [1, 2]}, {"k": [2, 3]}
    wanted = ["left_only", "both", "right_only"]
    for make, kind in (
        (pd.DataFrame, "category"),
        (pl.DataFrame, pl.Enum(["left_only", "right_only", "both"])),
        (pa.table, pa.dictionary(pa.int32(), pa.string())),
    ):
        left, right = map(make, data)
        for name, indicator in (("_merge", True), ("from", "from")):
            found = roost.merge(left, right, "k", how="outer", indicator=indicator)[name]
            assert getattr(found, "type", None) == kind or found.dtype == kind
            assert (found.to_pylist() if hasattr(found, "to_pylist") else list(found)) == wanted
        assert len(roost.merge(left, right, "k", how="inner", indicator=np.True_)["_merge"]) == 1
        none = left[:0] if make is not pa.table else left.slice(0, 0)
        assert roost.merge(none, none, "k", indicator=True).shape == (0, 2)
        refused(ValueError, "columns k", lambda: roost.merge(left, right, "k", indicator="k"))
        refused(ValueError, "how='semi'", lambda: roost.merge(left, right, "k", how="semi", indicator=True))
        refused(TypeError, "indicator=1", lambda: roost.merge(left, right, "k", indicator=1))
    left, right = map(pd.DataFrame, data)
    pd.testing.assert_frame_equal(
        roost.merge(left, right, how="outer", indicator=True), left.merge(right, how="outer", indicator=True)
    )


def test_cross():
    one = pd.DataFrame({"a": [BEYOND + 1, 2], "b": pd.array([None, BEYOND + 1], "Int64")})
    two = pd.DataFrame({"a": ["x", None, "z"]})
    for x, y in ((one, two), (one[:0], two), (one, two[:0]), (one[:1], two[:1])):
        pd.testing.assert_frame_equal(roost.merge(x, y, how="cross"), x.merge(y, how="cross"))
        theirs = pl.DataFrame(x).join(pl.DataFrame(y), how="cross", suffix="_y").rename({"a": "a_x"})
        assert roost.merge(pl.DataFrame(x), pl.DataFrame(y), how="cross").equals(theirs)
    found = roost.merge(pa.Table.from_pandas(one), pa.Table.from_pandas(two), how="cross")
    assert found["a_x"].to_pylist() == [BEYOND + 1] * 3 + [2] * 3
    for wrong in ({"on": "a"}, {"left_on": "a", "right_on": "a"}, {"left_index": True, "right_index": True}):
        refused(ValueError, "leave out the keys", lambda: roost.merge(one, two, how="cross", **wrong))
    refused(ValueError, "`left` repeat", lambda: roost.merge(one, two, how="cross", validate="1:m"))
    many = pd.DataFrame({"v": np.zeros(65536, "i1")})
    refused(
        OverflowError, "makes 4294967296; .*at most 2\\^32 - 2", lambda: roost.merge(many, many, how="cross")
    )


def test_suffixes_are_those_of_pandas():
    (left, right), on = frames(2, "integers")
    for suffixes in ((None, "_r"), ("_l", None), ("_l", "_r"), ["_l", ""]):
        wanted = left.merge(right, on=on, suffixes=tuple(suffixes))
        assert list(roost.merge(left, right, on, suffixes=suffixes)) == list(wanted)
    refused(ValueError, "two columns v", lambda: roost.merge(left, right, on, suffixes=(None, None)))
    refused(TypeError, "give two texts", lambda: roost.merge(left, right, on, suffixes=None))
    refused(
        ValueError,
        "two columns _merge",
        lambda: roost.merge(left.assign(_merge=1), right, on, indicator=True),
    )


@pytest.mark.parametrize("how", ("inner", "left", "right", "outer", "cross"))
def test_names_that_a_frame_has_twice(how):
    left = pd.DataFrame([[1, 5, 6, 7.5], [2, 8, 9, 0.5], [1, 0, 3, 1.5]], columns=["k", "l", "l", "v"])
    right = pd.DataFrame([[1, "x", 5], [3, "y", 6]], columns=["k", "v", "l"])
    options = {} if how == "cross" else {"on": "k"}
    wanted = left.merge(right, how=how, **options)
    found = roost.merge(left, right, how=how, **options)
    assert list(found) == list(wanted)
    assert sorted(map(repr, found.astype(object).to_numpy().tolist())) == sorted(
        map(repr, wanted.astype(object).to_numpy().tolist())
    )
    tables = [
        pa.Table.from_arrays([pa.array(f.iloc[:, i]) for i in range(f.shape[1])], list(f))
        for f in (left, right)
    ]
    made = roost.merge(*tables, how=how, **options)
    assert made.column_names == list(wanted) and made.num_rows == len(wanted)
    assert made.column(1).to_pylist() != made.column(2).to_pylist()
    with pytest.raises(KeyError, match="rename those that share a name"):
        roost.merge(left, right, left_on="l", right_on="k")


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("n", (0, 1, 2, 40))
def test_duplicates_and_counts_are_those_of_pandas(kind, n):
    rng = np.random.default_rng(n)
    s = keys(rng, kind, n).set_axis(rng.permutation(n)).rename("k")
    exact = s.astype("Int64") if kind == "arrow" else s  # pandas makes floats of Arrow's integers with nulls
    frame = s.to_frame().assign(j=rng.integers(0, 2, n), v=np.arange(n) + BEYOND)
    for keep in ("first", "last", False):
        again = exact.duplicated(keep=keep)
        assert roost.duplicated(s, keep=keep).tolist() == again.tolist()
        pd.testing.assert_series_equal(roost.drop_duplicates(s, keep=keep), s[~again.to_numpy()])
        for subset in (None, "k", ["k", "j"]):
            again = frame.assign(k=exact).duplicated(subset, keep=keep)
            found = roost.drop_duplicates(frame, subset, keep=keep)
            pd.testing.assert_frame_equal(found, frame[~again.to_numpy()])
            columns = None if subset is None else frame.columns[frame.columns.isin([*subset])].tolist()
            theirs = pl.DataFrame(frame).unique(columns, keep=keep or "none", maintain_order=True)
            assert roost.drop_duplicates(pl.DataFrame(frame), subset, keep=keep).equals(theirs)
    for dropna in (True, False):
        assert roost.nunique(s, dropna=dropna) == exact.nunique(dropna=dropna)
        rows = frame.assign(k=exact)[["k", "j"]]
        rows = (rows.dropna() if dropna else rows).drop_duplicates()
        assert roost.nunique(frame[["k", "j"]], dropna=dropna) == len(rows)
    assert roost.nunique(pl.Series(s)) == pl.Series(s).n_unique()
    wanted = exact.value_counts(normalize=True, dropna=False)
    wanted = wanted[wanted > 0]  # not of categories that do not occur
    counts = roost.value_counts(s, sort=False)[1]
    for sort in (True, False):
        found, shares = roost.value_counts(s, sort=sort, normalize=True)
        assert shares.dtype == np.float64 and len(found) == len(wanted)
        assert (np.sort(shares) == np.sort(wanted)).all()
        assert (shares == (-np.sort(-counts) if sort else counts) / max(n, 1)).all()


def test_duplicates_of_arrays(on):
    for x in (np.array([3, 1, 3, 2, 1]), np.array([[1, 2], [1, 2], [0, 2]]), np.array([], "i8")):
        first = on.back(roost.drop_duplicates(on(x)))
        assert first.tolist() == [row for i, row in enumerate(x.tolist()) if row not in x.tolist()[:i]]
        again = on.back(roost.duplicated(on(x), keep="last")).tolist()
        assert again == [row in x.tolist()[i + 1 :] for i, row in enumerate(x.tolist())]
        assert roost.nunique(on(x)) == len(first)
    keys, shares = (on.back(part) for part in roost.value_counts(on(np.array([7, 7, 8])), normalize=True))
    assert (keys.tolist(), shares.tolist()) == ([7, 8], [2 / 3, 1 / 3])


def test_duplicates_keep_what_they_are():
    below = np.ma.masked_array([9, 8, BEYOND + 1, 7], [1, 1, 0, 0])  # what lies under a null is not read
    found = roost.drop_duplicates(below)
    assert found.tolist() == [None, BEYOND + 1, 7] and isinstance(found, np.ma.MaskedArray)
    pair = roost.drop_duplicates(([1, 1, 2], pl.Series(["a", "a", "b"])), keep="last")
    assert pair[0].tolist() == [1, 2] and pair[1].to_list() == ["a", "b"]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, 8]))
    views = pa.array(["a", "b", "a"]).cast(pa.string_view())
    for column in (runs, views, pa.array(["a", "a", None]).dictionary_encode()):
        values = column.to_pylist()
        wanted = [i for i in (0, 1, 2) if values[i] not in values[:i]]
        found = roost.drop_duplicates(pa.table({"k": column, "v": [1, 2, 3]}), "k")
        assert found["v"].to_pylist() == [i + 1 for i in wanted]
        series = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column])), index=[5, 6, 7])
        assert roost.drop_duplicates(series).index.tolist() == [5 + i for i in wanted]
    assert roost.drop_duplicates(pd.Index([2, 2, 1])).tolist() == [2, 1]
    times = pd.DataFrame({("a", 1): [1, 1]}).rename_axis(columns=["p", "q"])
    assert roost.drop_duplicates(times).columns.names == ["p", "q"]
    with pytest.raises(KeyError, match="roost.drop_duplicates: subset="):
        roost.drop_duplicates(times, "x")
    refused(TypeError, "subset= names columns, of which a list", lambda: roost.drop_duplicates([1], "x"))
    for keep in ("any", None, 0):
        refused(ValueError, "drop_duplicates: keep=", lambda: roost.drop_duplicates([1], keep=keep))
    refused(TypeError, "normalize=1", lambda: roost.value_counts([1], normalize=1))
    refused(TypeError, "dropna=1", lambda: roost.nunique([1], dropna=1))


def test_methods_are_the_functions():
    frame = pd.DataFrame({"k": [2, 1, 2], "v": [1, 2, 2]})
    for make in (lambda x: x, pl.DataFrame):
        df = make(frame)
        chain = df.roost.merge(df, on="k", how="full").roost.drop_duplicates("k", keep="last")
        assert chain.equals(roost.drop_duplicates(roost.merge(df, df, on="k", how="full"), "k", keep="last"))
        assert list(df.roost.duplicated(keep=False)) == [False] * 3
        assert df.roost.group_by("k").agg(n="count").shape == (2, 2)
        s = df["k"]
        assert list(s.roost.unique(sorted=True)) == [1, 2] and s.roost.nunique() == 2
        assert list(s.roost.isin([1])) == [False, True, False] and list(s.roost.factorize()[0]) == [0, 1, 0]
        assert list(s.roost.value_counts(normalize=True)[1]) == [2 / 3, 1 / 3]
        assert list(s.roost.drop_duplicates()) == [2, 1] and list(s.roost.duplicated()) == [
            False,
            False,
            True,
        ]
    for cls in (roost.pandas.FrameMethods, roost.pandas.SeriesMethods):
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if name[0] != "_":
                mine, its = (list(inspect.signature(f).parameters) for f in (method, getattr(roost, name)))
                assert mine == ["self", *its[1:]] and method.__doc__ == getattr(roost, name).__doc__
    code = "import roost.pandas, roost.polars, pandas, polars, roost._merge as m; "
    code += "assert pandas.DataFrame({'k': [1]}).roost.merge(pandas.DataFrame({'k': [1]})).shape == (1, 1); "
    code += "print(m.__name__, pandas.__name__, roost.pandas.__name__, 'sys' in dir(roost))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == [
        "roost._merge", "pandas", "roost.pandas", "False"]  # fmt: skip


def test_a_lazy_frame_is_refused():
    frame = pl.DataFrame({"k": [1]})
    lazy = frame.lazy()
    for call in (
        *(lambda f=f: f(lazy) for f in (roost.unique, roost.factorize, roost.nunique, roost.value_counts)),
        *(lambda f=f: f(lazy) for f in (roost.duplicated, roost.drop_duplicates, roost.Set, roost.Index)),
        *(
            lambda f=f: f(frame, lazy)
            for f in (roost.isin, roost.join, roost.merge, roost.Map, roost.MultiMap)
        ),
        *(lambda f=f: f(lazy, frame) for f in (roost.isin, roost.join, roost.merge, roost.gather)),
        lambda: roost.group_by(lazy, "k"),
        lambda: roost.group_by(frame, "k").sum(lazy),
        lambda: roost.partition(lazy, 2),
        lambda: roost.from_arrow(lazy),
        lambda: roost.unique((lazy, lazy)),
        lambda: roost.drop_duplicates(lazy, "k"),
        lambda: roost.ConcurrentMap().add(lazy),
        lambda: lazy.roost.merge(frame),
        lambda: lazy.roost.group_by("k"),
    ):
        refused(TypeError, r'LazyFrame.*; call \.collect\(engine="streaming"\) first', call)


def test_notebooks_show_tables():
    changing, store = roost.ConcurrentMap("i8", "i8", 100), roost.Store("i8", "f4", 2)
    changing.add(np.arange(20))
    store.insert([5], np.ones((1, 2), "f4"))
    keys = pd.DataFrame({"<k>": pd.array([1, None], "Int64"), "b": ["<script>", "&"]})
    for table, rows, texts in (
        (roost.Map(["<b>", "c"], [1.5, 2.5]), 2, ["<b>", "1.5"]),
        (roost.Set(keys), 2, ["<k>", "<script>", "<NA>"]),
        (roost.Index((["a" * 99], [2])), 1, ["('" + "a" * 78 + "…", "row"]),
        (roost.Index(np.arange(20)), 10, ["9"]),
        (roost.Set(pl.DataFrame({"k": range(20)})), 10, ["int64"]),
        (roost.MultiMap(np.array([1, 1, BEYOND + 1]), [1, 2, 3]), 3, [str(BEYOND + 1)]),
        (changing, 10, ["value", "% full"]),
        (store, 1, ["[1.0, 1.0]"]),
        (roost.group_by(keys, "b"), 2, ["<script>"]),
        (roost.group_by((np.array([1, 2]), ["x", "y"])), 2, ["key 0", "key 1", "x"]),
        (roost.Map(np.array([], "i8"), np.array([], "i8")), 0, ["key"]),
    ):
        made = table._repr_html_()
        assert made.count("<tr>") == rows + 1, made
        for text in (repr(table), *texts):
            assert html.escape(text) in made
        assert re.fullmatch(
            r"<div><p>[^<]*</p><table border=\"1\">(</?(thead|tbody|tr|td|th)>|[^<])*</table></div>", made
        )
    large = roost.Set(np.arange(2**20 + 1))
    assert "<table" not in large._repr_html_() and repr(large) in large._repr_html_()
    assert "<table" not in roost.group_by(np.arange(2**20 + 1))._repr_html_()


@pytest.mark.parametrize("unit", ["ns", "us"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
def test_no_date_beside_those_of_arrow(unit, zone):
    """NaT of numpy is a null of Arrow in outer merges, and no date of -2^63."""
    dates = pd.Series(pd.to_datetime(["2020", None]))
    mine = pd.DataFrame({"k": dates if zone is None else dates.dt.tz_localize(zone), "l": [1, 2]})
    of_arrow = pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array([None], pa.timestamp(unit, zone))]))
    other = pd.DataFrame({"k": pd.Series(of_arrow), "r": [5]})
    for left, right in ((mine, other), (other, mine)):
        keys = roost.merge(left, right, on="k", how="outer")["k"]
        assert sorted(keys.isna()) == [False, True, True] and roost.nunique(keys) == 2


def test_indexes_without_names_stay_so():
    frame = pd.DataFrame({"a": [1, 2]})
    for how in ("inner", "left", "right", "outer"):
        other = frame.rename(columns={"a": "b"})
        assert roost.merge(frame, other, left_index=True, right_index=True, how=how).index.name is None


def test_keys_of_arrow_in_pandas_as_python_has_them():
    def column(values, kind, dictionary=False):
        values = pa.array(values, kind)
        values = values.dictionary_encode() if dictionary else values
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([values])))

    with pytest.raises(OverflowError, match=r"a value of time64\[ns\] that Python has not"):
        list(roost.Set(column([1, 2], pa.time64("ns"))))
    times = roost.Set(column([5000, 6000], pa.timestamp("ns", "UTC"), True))
    assert all(time.tzinfo is not None and time in times for time in times)
    assert roost.Set(["\ud800"])._repr_html_().encode()


@pytest.mark.parametrize("how", ("outer", "left", "right", "inner"))
def test_categories_of_floats_and_integers_are_never_rounded(how):
    kinds = [
        pd.Series(pd.Categorical([1.5, 2.0, None, 2.0**53])),
        pd.Series(pd.Categorical([1.0, 2.0**53])),
        pd.Series(pd.Categorical([BEYOND + 1, 2])),
        pd.Series([BEYOND + 1, 2, BEYOND]),
        pd.Series([2**63 + 1, 2], dtype="u8"),
        pd.Series([BEYOND + 1, None, 2], dtype="Int64"),
        pd.Series([0.5, 2.0]),
    ]
    for one, two in itertools.product(kinds, kinds):
        known = [[None if pd.isna(key) else key for key in column.tolist()] for column in (one, two)]
        a, b = known
        wanted = [
            key for key in (b if how == "right" else a) if how != "inner" or (key is not None and key in b)
        ]
        wanted += [key for key in b if key is None or key not in a] if how == "outer" else []
        frames = [pd.DataFrame({"k": column, name: 1}) for column, name in ((one, "x"), (two, "y"))]
        try:
            found = roost.merge(*frames, on="k", how=how)["k"].tolist()
        except OverflowError as error:
            assert how == "outer" and "convert one column" in str(error)
            assert any(key and key > BEYOND for key in a + b) and any(key and key % 1 for key in a + b)
            continue
        assert [None if pd.isna(key) else key for key in found] == wanted, (one, two)
