"""What comes in comes out: Series and columns of pandas, polars and pyarrow give such, with their types,
nulls, names and index, against Python's values and the libraries themselves."""

import copy
import datetime
import decimal
import pickle

import numpy as np
import pytest
import roost
from columns import listed

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

BIG = 2**53 + 1  # which no float is
INDEX = [7, 7, 9, 8, 5]
D, DAY = decimal.Decimal, datetime.date
INSTANTS = [datetime.datetime(2024, 10, 27, hour, 30, tzinfo=datetime.timezone.utc) for hour in (0, 1)]


def under_null(dtype, of=pd.arrays.IntegerArray):
    """Numbers with another one under the null."""
    values = np.array([BIG, 2, BIG, 77, 2], np.int64)
    return of(values.astype(dtype), np.arange(5) == 3)


def pandas(values, dtype=None):
    return pd.Series(values, INDEX, dtype, "k")


A, B = ["b", "a", "b", None, "a"], [BIG, 2, BIG, None, 2]
ZONED = [INSTANTS[1], INSTANTS[0], INSTANTS[1], None, INSTANTS[0]]
COLUMNS = {
    "pandas int64": pandas([BIG, 2, BIG, 4, 2]),
    "pandas uint8": pandas([9, 2, 9, 4, 2], "uint8"),
    "pandas bool": pandas([True, False, True, True, False]),
    "pandas float32": pandas([0.5, -1.5, 0.5, 0.25, -1.5], "float32"),
    "pandas datetime64[s]": pandas(np.array([3, 1, 3, 2, 1], "M8[s]")),
    "pandas timedelta64[ns]": pandas(np.array([3, 1, 3, 2, 1], "m8[ns]")),
    "pandas Int64": pandas(under_null("i8")),
    "pandas Int64 without nulls": pandas([BIG, 2, BIG, 4, 2], "Int64"),
    "pandas boolean": pandas([True, False, True, None, False], "boolean"),
    "pandas str": pandas(A, "str"),
    "pandas str without nulls": pandas(["b", "a", "b", "c", "a"], "str"),
    "pandas objects": pandas(A, object),
    "pandas int64[pyarrow]": pandas(B, pd.ArrowDtype(pa.int64())),
    "pandas date32[pyarrow]": pandas([DAY(2024, 1, d) for d in (3, 1, 3, 2, 1)], pd.ArrowDtype(pa.date32())),
    "pandas decimal[pyarrow]": pandas(
        [D("9.50"), D("2.25"), D("9.50"), None, D("2.25")], pd.ArrowDtype(pa.decimal128(30, 2))
    ),
    "pandas category": pandas(pd.Categorical(A, ["unused", "b", "a"])),
    "pandas category of integers": pandas(pd.Categorical([BIG, 2, BIG, 4, 2], [4, BIG, 2, 1])),
    "pandas zone": pandas(ZONED, "datetime64[us, Europe/Berlin]"),
    "polars Int64": pl.Series("k", B, pl.Int64),
    "polars UInt64": pl.Series("k", [2**64 - 1, 2, 2**64 - 1, 4, 2], pl.UInt64),
    "polars Boolean": pl.Series("k", [True, False, True, None, False]),
    "polars String": pl.Series("k", A),
    "polars Categorical": pl.Series("k", A, pl.Categorical),
    "polars Date": pl.Series("k", [DAY(2024, 1, 3), DAY(2024, 1, 1), DAY(2024, 1, 3), None, DAY(2024, 1, 1)]),
    "polars zone": pl.Series("k", ZONED, pl.Datetime("us", "Europe/Berlin")),
    "polars Decimal": pl.Series("k", [D("9.5"), D("2.5"), D("9.5"), None, D("2.5")], pl.Decimal(20, 1)),
    "Arrow int64": pa.array(B),
    "Arrow chunks": pa.chunked_array([B[:2], [], B[2:]], pa.int64()),
    "Arrow bool without nulls": pa.array([True, False, True, True, False]),
    "Arrow string_view": pa.array(A, pa.string_view()),
    "Arrow dictionary": pa.array(A).dictionary_encode(),
    "Arrow dictionary of integers": pa.chunked_array([pa.array([BIG, 2, BIG, 4, 2]).dictionary_encode()]),
    "Arrow zone": pa.array(ZONED, pa.timestamp("ms", "Europe/Berlin")),
    "Arrow time": pa.array([datetime.time(3), datetime.time(1), datetime.time(3), None, datetime.time(1)]),
}


@pytest.fixture(params=[(name, rows) for name in COLUMNS for rows in (5, 1, 0)], ids=str)
def column(request):
    name, rows = request.param
    column = COLUMNS[name]
    return column.iloc[:rows] if isinstance(column, pd.Series) else column[:rows]


def python(column):
    """The values as Python has them, None for nulls; times of zones in UTC, since Python compares clocks."""
    values = [
        None if value is None or value is pd.NA or value != value else value for value in listed(column)
    ]
    return [v.astimezone(datetime.timezone.utc) if getattr(v, "tzinfo", None) else v for v in values]


def type_of(column):
    return column.dtype if hasattr(column, "dtype") else column.type


def is_like(result, column, name="k"):
    """Whether it is of the library and the type of a column, with a name and an index of its own."""
    assert type(result) is type(column) and type_of(result) == type_of(column)
    return is_new(result, column, name)


def is_new(result, column, name=None):
    if isinstance(column, pd.Series):
        assert type(result) is pd.Series and isinstance(result.index, pd.RangeIndex)
        assert result.index.start == 0 and result.index.step == 1
    return is_of(result, column, name)


def is_beside(result, column, dtype, name=None):
    """Whether it is of the library of a column, of a type, with its index."""
    assert len(result) == len(column)
    if isinstance(column, pd.Series):
        assert result.dtype == dtype and result.index.equals(column.index)
    elif isinstance(column, pl.Series):
        assert result.dtype == {"bool": pl.Boolean, "int64": pl.Int64, "int32": pl.Int32}[dtype]
    else:
        assert result.type == dtype
    return is_of(result, column, name)


def is_of(result, column, name):
    if isinstance(column, pa.Array):
        return isinstance(result, pa.Array)
    if isinstance(column, pa.ChunkedArray):
        return isinstance(result, pa.ChunkedArray)
    return type(result) is type(column) and result.name == (
        name or ("" if type(result) is pl.Series else None)
    )


def is_rows(result, wanted):
    return type(result) is np.ndarray and result.tolist() == wanted


def numbered(values):
    """The number of each value by first occurrence."""
    seen = {}
    return [seen.setdefault(value, len(seen)) for value in values], list(seen)


def test_unique_and_factorize(column):
    values = python(column)
    numbers, distinct = numbered(values)
    keys, first, inverse, counts = roost.unique(
        column, return_index=True, return_inverse=True, return_counts=True, index_dtype="int32"
    )
    assert is_like(keys, column) and python(keys) == distinct
    assert is_rows(first, [values.index(key) for key in distinct])
    assert is_beside(inverse, column, "int32") and listed(inverse) == numbers
    assert is_new(counts, column) and listed(counts) == [values.count(key) for key in distinct]
    ascending = sorted((key for key in distinct if key is not None))
    keys = roost.unique(column, sorted=True)
    assert is_like(keys, column) and python(keys) == ascending + [None] * (None in distinct)
    codes, uniques = roost.factorize(column)
    others = [key for key in distinct if key is not None]
    assert is_beside(codes, column, "int64") and is_like(uniques, column) and python(uniques) == others
    assert listed(codes) == [-1 if value is None else others.index(value) for value in values]
    codes, uniques = roost.factorize(column, use_na_sentinel=False)
    assert listed(codes) == numbers and is_like(uniques, column) and python(uniques) == distinct


def test_isin_duplicated_and_value_counts(column):
    values = python(column)
    some = column.iloc[1:2] if isinstance(column, pd.Series) else column[1:2]
    found = roost.isin(column, some)
    assert is_beside(found, column, "bool", "k")
    assert listed(found) == [value in python(some) and value is not None for value in values]
    found = roost.isin(column, some, invert=True)
    assert is_beside(found, column, "bool", "k") and sum(listed(found)) == len(values) - values.count(
        python(some)[0] if len(some) else ""
    )
    again = roost.duplicated(column)
    assert is_beside(again, column, "bool", "k")
    assert listed(again) == [value in values[:i] for i, value in enumerate(values)]
    keys, counts = roost.value_counts(column)
    assert is_like(keys, column) and is_new(counts, column, "count")
    assert dict(zip(python(keys), listed(counts))) == {key: values.count(key) for key in values}
    assert listed(counts) == sorted(listed(counts), reverse=True)
    rows = range(len(values))
    is_value = str(type_of(column)).startswith("datetime64")  # NaT
    pairs = [
        (i, j) for i in rows for j in rows if values[i] == values[j] and (values[i] is not None or is_value)
    ]
    left, right = roost.join(column, column)
    assert is_rows(left, [i for i, _ in pairs]) and is_rows(right, [j for _, j in pairs])


def test_groups(column):
    values = python(column)
    distinct = numbered(values)[1]
    groups = roost.group_by(column)
    keys = groups.keys
    assert is_like(keys, column) and sorted(map(str, python(keys))) == sorted(map(str, distinct))
    assert is_new(groups.count(), column)
    assert listed(groups.count()) == [values.count(key) for key in python(keys)]
    assert is_like(groups.first(column), column) and python(groups.first(column)) == python(keys)
    assert is_like(groups.max(column), column) and python(groups.max(column)) == python(keys)
    assert is_new(groups.nunique(column), column, "k")
    assert listed(groups.nunique(column)) == [int(key is not None) for key in python(keys)]
    sums = groups.sum(np.arange(len(values)))
    assert type(sums) is np.ndarray
    assert sums.tolist() == [sum(i for i, v in enumerate(values) if v == key) for key in python(keys)]
    found = groups.agg(n=(column, "count"), last=(column, "last"))
    assert is_new(found["n"], column, "k") and is_like(found["last"], column)
    kept = roost.group_by(column, dropna=True)
    assert (
        is_like(kept.keys, column)
        and None not in python(kept.keys)
        and len(kept) == len(set(values) - {None})
    )


def again(table):
    return pickle.loads(pickle.dumps(table))


def test_tables(column):
    values = python(column)
    first = [values.index(value) for value in values]
    index, members = roost.Index(column), roost.Set(column)
    found = index.get_indexer(column)
    assert is_beside(found, column, "int64") and listed(found) == first
    for table in (index, members):
        assert is_beside(table.contains(column), column, "bool") and all(listed(table.contains(column)))
    rows = np.arange(len(values)) + BIG
    held, many = roost.Map(column, pd.Series(rows, name="v")), roost.MultiMap(column, pl.Series("v", rows))
    for found in (held.find(column), held[column]):
        assert is_beside(found, column, "int64", "v") and listed(found) == [BIG + i for i in first]
    assert is_beside(many.count(column), column, "int64")
    offsets, found = many.find(column)
    assert is_rows(offsets[:1], [0]) and is_new(found, column, "v")
    assert listed(found) == [BIG + i for value in values for i, v in enumerate(values) if v == value]
    numbers, found = many.find_pairs(column)
    assert type(numbers) is np.ndarray and is_new(found, column, "v") and len(found) == len(numbers)
    copies = [copied(t) for copied in (copy.copy, copy.deepcopy, again) for t in (held, many)]
    assert all(is_beside(table.find(column), column, "int64", "v") for table in copies[::2])
    for table in (held, many, *copies):
        keys, found = table.items()
        assert is_like(keys, column) and is_new(found, column, "v")
        assert [values[i - BIG] for i in listed(found)] == python(keys)
    assert is_new(held.values(), column, "v")
    for keys in (held.keys(), members.keys(), again(members).keys()):
        assert is_like(keys, column) and sorted(map(str, python(keys))) == sorted(map(str, set(values)))


def test_tuples(column):
    numbers = np.arange(len(column))
    keys, of_numpy = roost.unique((column, numbers), return_index=True)[0]
    assert is_like(keys, column) and python(keys) == python(column) and is_rows(of_numpy, numbers.tolist())
    assert is_beside(roost.duplicated((column, numbers)), column, "bool")
    assert type(roost.duplicated((numbers, column))) is np.ndarray
    keys, _ = roost.Set((column, numbers)).keys()
    assert is_like(keys, column) and sorted(map(str, python(keys))) == sorted(map(str, python(column)))


@pytest.mark.parametrize("name", ["Int64", "int64[pyarrow]", "polars", "pyarrow"])
def test_aggregates_are_exact_and_have_nulls(name):
    values, keys = [2**62, None, BIG, None, 2], np.array([1, 2, 1, 2, 3])
    column = (
        pandas(values, name)
        if "64" in name
        else pl.Series("k", values)
        if name == "polars"
        else pa.array(values)
    )
    groups = roost.group_by(keys)
    order = [groups.keys.tolist().index(key) for key in (1, 2, 3)]
    for how, wanted in {
        "sum": [2**62 + BIG, None, 2],
        "min": [BIG, None, 2],
        "last": [BIG, None, 2],
        "mode": [BIG, None, 2],
    }.items():
        found = getattr(groups, how)(column)
        assert is_like(found, column), how
        assert [python(found)[i] for i in order] == wanted, how
    assert [python(groups.mean(column))[i] for i in order] == [(2**62 + BIG) / 2, None, 2]
    assert [python(groups.var(column))[i] is None for i in order] == [False, True, True]
    largest, offsets = groups.nlargest(column, 1)
    assert is_like(largest, column) and sorted(python(largest)) == [2, 2**62] and type(offsets) is np.ndarray
    assert groups.quantile(column, q=[0, 1]).shape == (3, 2)
    plain = pd.Series([2**62, 5, BIG, 7, 2], INDEX, name="k")
    assert groups.sum(plain).dtype == np.int64 and is_new(groups.sum(plain), plain, "k")
    both = groups.sum(plain, np.arange(5))
    assert type(both[0]) is pd.Series and type(both[1]) is np.ndarray
    assert type(groups.corr(plain, plain)) is pd.Series and groups.corr(plain, plain).name is None


def test_frames_have_columns_beside_them():
    frame = pd.DataFrame({"k": [1, 2, 1], "v": [BIG, 5, BIG]}, ["x", "y", "z"])
    for x in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        keys, inverse, counts = roost.unique(x, sorted=True, return_inverse=True, return_counts=True)
        column = x["k"]
        assert type(keys) is type(x) and is_beside(inverse, column, "int64") and is_new(counts, column)
        assert listed(inverse) == [0, 1, 0] and listed(counts) == [2, 1]
        assert is_beside(roost.isin(x, keys), column, "bool") and listed(roost.duplicated(x)) == [
            False,
            False,
            True,
        ]
        assert listed(roost.Map(x, np.arange(3)).find(x)) == [0, 1, 0]
        groups = roost.group_by(x, "k")
        assert is_new(groups.sum("v"), column, "v") and sorted(listed(groups.sum("v"))) == [5, 2 * BIG]
        assert is_new(groups.count(), column)


def test_as_pandas_itself():
    for name, column in COLUMNS.items():
        if not name.startswith("pandas"):
            continue
        same = pd.testing.assert_series_equal
        same(roost.duplicated(column), column.duplicated())
        some = column[column.notna()].iloc[1:]
        same(roost.isin(column, some), column.isin(list(some)).astype(bool))
        same(roost.unique(column, return_index=True)[0], column.drop_duplicates().reset_index(drop=True))
        keys, counts = roost.value_counts(column)
        theirs = column.value_counts(dropna=False)
        assert dict(zip(map(str, keys), counts)).items() <= dict(zip(map(str, theirs.index), theirs)).items()
        assert np.array_equal(roost.factorize(column)[0], column.factorize()[0])


def test_arrays_stay_arrays():
    x, masked = np.array([3, 1, 3]), np.ma.MaskedArray([3, 1, 3], [0, 1, 0])
    for result in (
        roost.isin(x, pd.Series([3])),
        roost.unique(x),
        roost.duplicated(x),
        roost.factorize(x)[0],
    ):
        assert type(result) is np.ndarray
    assert type(roost.unique(masked)) is np.ma.MaskedArray
    assert type(roost.group_by(pd.Series(x)).sum(masked)) is np.ma.MaskedArray
    table = roost.Map(pd.Series(x), np.ones((3, 2)))
    assert type(table.find(pd.Series(x))) is np.ndarray and table.find(pd.Series(x)).shape == (3, 2)
    assert type(table.find([3])) is type(table.contains(x)) is np.ndarray
    changing = roost.ConcurrentMap()
    changing.insert(pd.Series([BIG, 5]), pd.Series([5, BIG]))
    found = changing.find(pl.Series([5, BIG]))
    assert type(found) is pl.Series and found.to_list() == [BIG, 5]
    assert np.asarray(roost.isin(pa.array([1, 2]), [2])).tolist() == [False, True]
    for x in (pd.Index([3, 1, 3], name="i"), pd.array([3, 1, 3])):
        assert roost.unique(x, return_index=True)[0].tolist() == [3, 1]
        assert roost.duplicated(x).index.equals(pd.RangeIndex(3))


@pytest.mark.parametrize("name", ["pandas str", "pandas str without nulls", "pandas category of integers"])
def test_keys_of_groups_are_those_of_the_call(name):
    column = COLUMNS[name].copy()
    groups = roost.group_by(column)
    wanted = set(python(column))
    column.iloc[:] = column.iloc[1]
    assert set(python(groups.keys)) == wanted


def test_maps_of_series_and_frames():
    series = pd.Series([BIG, 5, 7], pd.Index(["a", None, "a"], name="town"), name="size")
    table = roost.Map(series)
    assert table["a"] == BIG and table[None] == 5 and len(table) == 2
    found = table.find(pd.Series(["a", "z"], [4, 4]), missing=-1)
    pd.testing.assert_series_equal(found, pd.Series([BIG, -1], [4, 4], name="size"))
    assert table.keys().name == "town" and table.keys().dtype == series.index.dtype
    several = pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["x", "y"])
    table = roost.Map(pd.Series([5, BIG], several))
    assert table[2, "b"] == BIG and list(table.keys().columns) == ["x", "y"]
    frame = pd.DataFrame({"k": ["a", "b", "a"], "v": [BIG, 5, 6]}, [8, 8, 8])
    for x in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        table = roost.Map(x)
        assert (table["a"], table["b"], len(table)) == (BIG, 5, 2) and type(table.keys()) is type(x["k"])
    assert len(roost.Map(pd.Series([], dtype="int64"))) == 0
    for x, message in (
        (pl.Series([1]), "a Series without an index; pass keys and values"),
        (pa.array([1]), "a Int64Array without an index"),
        (pa.chunked_array([[1]]), "without an index"),
        (pd.Index([1]), "without an index"),
        (frame[["k"]], "a frame of 1 column; pass two"),
        (pl.DataFrame({"a": [1], "b": [1], "c": [1]}), "a frame of 3 columns"),
        (np.array([1]), "no values"),
    ):
        with pytest.raises(TypeError, match=f"^roost.Map: {message}|^roost.Map: .*{message}"):
            roost.Map(x)


def test_no_time_of_a_zone_is_a_key():
    times = pd.Series(pd.to_datetime(["2020", None]).tz_localize("UTC"))
    table = roost.Map(times, [1, 2])
    assert [table[key] for key in table] == [1, 2] and table[pd.NaT] == 2 and pd.NaT in table
    assert roost.Index((times, [1, 2])).get_indexer([(pd.NaT, 2)]).tolist() == [1]
    assert pd.NaT not in roost.Map(times[:1], [1])


@pytest.mark.parametrize("column", [pa.nulls(0), pa.chunked_array([], pa.null()), pa.nulls(3)])
def test_columns_of_type_null(column):
    keys, counts = roost.unique(column, return_counts=True)
    assert keys.type == pa.null() and counts.to_pylist() == [3] * (len(column) > 0)
    assert roost.factorize(column)[0].to_pylist() == [-1] * len(column)
    assert roost.value_counts(column)[1].to_pylist() == counts.to_pylist()


def test_names_are_those_of_polars():
    """A column without a name is "" there; counts have the names that value_counts gives them."""
    values, keys = [3, 1, 3], np.array([1, 1, 2])
    for name in ("v", ""):
        column = pl.Series(name, values)
        for normalize in (False, True):
            theirs = column.value_counts(sort=True, normalize=normalize)
            ours = roost.value_counts(column, normalize=normalize)
            assert [one.name for one in ours] == theirs.columns
            assert all(one.equals(theirs[one.name]) for one in ours)
            counts = roost.value_counts(pd.Series(values), normalize=normalize)[1]
            assert counts.name == pd.Series(values).value_counts(normalize=normalize).name
        g, found = roost.group_by(keys), roost.Map(column.unique(), column.unique()).find(column)
        results = [g.sum(column), g.first(column), g.shift(column), g.cumsum(column), g.rank(column), found]
        results += [g.transform("max", column), roost.isin(column, column), roost.unique(column)]
        assert {one.name for one in results} == {(column + column).name} == {name}
