"""Paths that frames take for their size, or because nothing has to be copied: beside pandas and polars."""

import numpy as np
import pytest
import roost

pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))

# Around the sizes from which on several threads work: 2^13 rows of a chunk, 2^14 rows of a loop.
SIZES = [0, 1, 1023, 1024, 2**13 - 1, 2**13, 2**14, 2**14 + 1, 2**15 + 1]


def table(n, few):
    rng = np.random.default_rng(n)
    k = rng.integers(0, few, n) * 977
    return {"k": k, "t": [f"id{i:012d}" for i in k], "v": rng.integers(-9, 9, n), "w": rng.normal(size=n)}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("few", [7, 300, 10**6])
@pytest.mark.parametrize("by", ["k", "t", ["k", "t"]])
def test_groups(n, few, by):
    frame = pd.DataFrame(table(n, few)).astype({"t": "str"})
    wanted = frame.groupby(by, as_index=False).agg(v=("v", "sum"), w=("w", "mean"))
    keys = [by] if isinstance(by, str) else by
    found = roost.group_by(frame, by).agg(v=("v", "sum"), w=("w", "mean"))
    assert list(found.columns) == [*keys, "v", "w"] and type(found.index) is pd.RangeIndex
    found = found.sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(found, wanted)
    made = roost.group_by(pl.DataFrame(table(n, few)), by)
    again = made.agg(v=("v", "sum"), w=("w", "mean"))
    assert again.columns == [*keys, "v", "w"] and made.keys.equals(again.select(keys))
    for name in (*keys, "v"):
        assert again.sort(keys)[name].to_list() == found[name].tolist()


@pytest.mark.parametrize("n", SIZES)
def test_functions(n):
    k = np.random.default_rng(n).integers(0, n // 9 + 1, n) * 977
    known = np.unique(k)[::2]
    for column in (pd.Series(k, name="k"), pl.Series("k", k)):
        assert np.array_equal(np.sort(np.asarray(roost.unique(column))), np.unique(k))
        assert np.array_equal(np.asarray(roost.isin(column, type(column)(known))), np.isin(k, known))
        keys, counts = roost.value_counts(column)
        wanted = pd.Series(k).value_counts()
        assert np.asarray(counts).tolist() == wanted.tolist()
        assert (wanted[np.asarray(keys)].to_numpy() == np.asarray(counts)).all()
        again = roost.duplicated(column)
        assert np.array_equal(np.asarray(again), pd.Series(k).duplicated())


@pytest.mark.parametrize("most", [2**16 - 1, 2**16, 2**16 + 1])
def test_counts_are_sorted_by_digits_or_not(most):
    x = np.concatenate([np.full(most, 3), np.repeat(np.arange(10, 40), 2), [1, 5], np.full(7, 4)])
    keys, counts = roost.value_counts(x)
    assert keys.tolist() == [3, 4, *range(10, 40), 1, 5] and counts.tolist() == [most, 7, *[2] * 30, 1, 1]


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_keys_are_sorted_by_digits_or_not(dtype):
    kind = np.dtype(dtype)
    for least in (0, np.iinfo(kind).min, np.iinfo(kind).max - 2**16):
        for width in (0, 1, 2**16 - 1, 2**16):
            x = np.array([least + width, least, least + width // 2], dtype=kind)
            order = roost._arrays.libraries.NUMPY.argsort(x)
            assert order.tolist() == np.argsort(x, kind="stable").tolist()


ALL = pd.DataFrame({"k": [3, 1, 2], "s": ["a", "b", "c"], "o": [1, "x", None], "v": [1, 2, 3]})
ALL["d"], ALL["n"] = pd.to_datetime(["2020", "2021", "2022"]), pd.array([1, None, 3], "Int64")
RIGHTS = {
    "once": [1, 2, 3],  # all rows of the left side stay, once
    "twice": [1, 1, 2],  # as many rows, but others
    "less": [1, 2],
    "none": [],
}


@pytest.mark.parametrize("how", ["inner", "left", "semi", "outer", "right"])
@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize("index", [[0, 1, 2], [7, 7, 5]])
def test_merges_that_keep_all_rows(how, right, index):
    left = ALL.set_axis(index)
    other = pd.DataFrame({"k": np.array(RIGHTS[right], np.int64), "x": np.arange(len(RIGHTS[right]))})
    found = roost.merge(left, other, on="k", how=how)
    wanted = (
        left[left["k"].isin(other["k"])].reset_index(drop=True)
        if how == "semi"
        else left.merge(other, on="k", how=how)
    )
    if how == "outer":
        found, wanted = (
            frame.sort_values("k", kind="stable", ignore_index=True) for frame in (found, wanted)
        )
    pd.testing.assert_frame_equal(found, wanted, check_dtype=how in ("inner", "semi"))
    assert type(found.index) is pd.RangeIndex
    small = pl.DataFrame({"k": [3, 1, 2], "s": ["a", "b", "c"]})
    other = pl.DataFrame({"k": other["k"].to_numpy(), "x": other["x"].to_numpy()})
    theirs = small.join(other, "k", how={"outer": "full"}.get(how, how), coalesce=True, maintain_order="left")
    ours = roost.merge(small, other, on="k", how=how)
    assert ours.columns == theirs.select(ours.columns).columns
    assert ours.sort("k", *ours.columns[2:]).equals(theirs.select(ours.columns).sort("k", *ours.columns[2:]))


def test_columns_that_were_not_copied_change_alone():
    left = ALL.copy()
    found = roost.merge(left, pd.DataFrame({"k": [1, 2, 3]}), on="k")
    kept = found.copy(deep=True)
    left.loc[0, ["v", "s"]] = [99, "z"]
    left.iloc[1, left.columns.get_loc("d")] = pd.Timestamp(0)
    pd.testing.assert_frame_equal(found, kept)
    before = left.copy(deep=True)
    found.loc[2, "v"] = -1
    found["s"] = found["s"].where(found["k"] > 1, "q")
    found.iloc[0, 0] = 5
    pd.testing.assert_frame_equal(left, before)
    found.index.name = "rows"
    assert left.index.name is None


def test_names_of_any_kind():
    rows = np.array([[1, 2, 3], [1, 5, 6]])
    for names in ([0, 1, 2], ["a", 1, None], [("a", 1), ("a", 2), ("b", 1)], [("a", 1), "b", 2]):
        frame = pd.DataFrame(rows)
        frame.columns = pd.Index(names, tupleize_cols=all(isinstance(name, tuple) for name in names))
        found = roost.merge(frame, frame.iloc[:1, :1], on=[names[0]])
        assert list(found.columns) == [*frame.columns] and found.iloc[:, 1].tolist() == [2, 5]


def test_few_rows_of_wide_frames():
    """A column at any place of a frame."""
    for n in (1, 3, 4, 5, 9):
        frame = pd.DataFrame({f"c{i}": [i, i, -i] for i in range(n)})
        for i in range(n):
            found = roost.group_by(frame, f"c{i}").agg(n="count")
            assert found.sort_values(f"c{i}")[f"c{i}"].tolist() == sorted({i, -i})


def test_names_that_polars_would_change():
    frame = pl.DataFrame({"": [1, 1, 2], "k": [1, 1, 2]})
    assert roost.merge(frame, frame, on="k").columns == ["k", "_x", "_y"]
    assert roost.merge(frame, pl.DataFrame({"k": [1]}), on="k").columns == ["k", ""]
    assert roost.group_by(frame, ["k", "k"]).agg(n="count").sort("k").rows() == [(1, 2), (2, 1)]
