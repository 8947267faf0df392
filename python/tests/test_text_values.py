"""Maps of texts, and of any column: what comes out is what went in, against a dict of Python."""

import copy
import datetime
import decimal
import itertools
import pickle

import numpy as np
import pytest
from columns import of_the_day

import roost

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
from test_values import SPELLINGS as COLUMNS  # noqa: E402
from test_values import VALUES, plain, same  # noqa: E402

POOL = [None, "", "a", "a\0", "\0", "é", "\U0001f426", "ab" * 200, *map(str, range(50))]


def _arrow(kind):
    return lambda texts: pa.array(texts, kind)


def _array(dtype, null=""):
    def make(texts):
        return np.array([null if text is None else text for text in texts], dtype)

    return make


def _runs(texts):
    ends = pa.array(range(1, len(texts) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(texts, pa.string()))


def _chunks(kind):
    return lambda texts: pa.chunked_array([texts[:2], texts[2:2], texts[2:]], kind)


def _slice(texts):
    return pa.array([*["x" * 30] * 5, *texts, "y"])[5:-1]


CATEGORIES = [text for text in dict.fromkeys([*POOL, "?"]) if text is not None]
DICTIONARY = pa.dictionary(pa.int16(), pa.string())
FORMS = {
    "pandas": lambda texts: pd.Series(texts, dtype="str", name="v"),
    "pandas with an index": lambda texts: pd.Series(texts, range(len(texts), 0, -1), dtype="str", name="v"),
    "pandas string": lambda texts: pd.Series(texts, dtype="string", name="v"),
    "pandas string of Python": lambda texts: pd.Series(texts, dtype="string[python]", name="v"),
    "pandas objects": lambda texts: pd.Series(texts, dtype=object, name="v"),
    "pandas chunks": lambda texts: pd.concat(
        [pd.Series(part, dtype="str", name="v") for part in (texts[:2], texts[2:])]
    ),
    "pandas categories": lambda texts: pd.Series(pd.Categorical(texts, CATEGORIES), name="v"),
    "pandas Arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string()), name="v"),
    "pandas views": lambda texts: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(texts, pa.string_view())), name="v"
    ),
    "pandas Index": lambda texts: pd.Index(texts, dtype="str", name="v"),
    "pandas array": lambda texts: pd.array(texts, dtype="str"),
    "polars": lambda texts: pl.Series("v", texts, dtype=pl.String),
    "polars chunks": lambda texts: pl.concat(
        [pl.Series("v", part, dtype=pl.String) for part in (texts[:2], texts[2:])], rechunk=False
    ),
    "polars Categorical": lambda texts: pl.Series("v", texts, dtype=pl.Categorical),
    "polars Enum": lambda texts: pl.Series("v", texts, dtype=pl.Enum(CATEGORIES)),
    "arrow": _arrow(pa.string()),
    "arrow large": _arrow(pa.large_string()),
    "arrow views": _arrow(pa.string_view()),
    "arrow dictionary": _arrow(DICTIONARY),
    "arrow slice": _slice,
    "arrow chunks": _chunks(pa.string()),
    "arrow chunks of views": _chunks(pa.string_view()),
    "arrow chunks of dictionaries": _chunks(DICTIONARY),
    "arrow runs": _runs,
    "numpy U": _array("U"),
    "numpy U, swapped": lambda texts: _array("U")(texts).astype(">U400"),
    "numpy U, strided": lambda texts: _array("U")(np.repeat(np.array(texts, object), 2).tolist())[::2],
    "numpy T": _array(np.dtypes.StringDType()),
    "numpy T with a null": _array(np.dtypes.StringDType(na_object=None), None),
    "numpy objects": _array(object, None),
    "masked": lambda texts: np.ma.MaskedArray(_array("U")(texts), [text is None for text in texts]),
    "list": list,
    "tuple": tuple,
}
QUERIES = {
    "list": list,
    "numpy": np.array,
    "pandas": lambda keys: pd.Series(keys, range(len(keys), 0, -1), dtype="int64"),
    "polars": lambda keys: pl.Series(keys, dtype=pl.Int64),
    "arrow": lambda keys: pa.array(keys, pa.int64()),
}


def read(found):
    """A result as a list of Python, with None for nulls."""
    if isinstance(found, pd.Series):
        return [None if pd.isna(value) else value for value in found.tolist()]
    return next(getattr(found, n) for n in ("to_pylist", "to_list", "tolist") if hasattr(found, n))()


def held(form, texts):
    """What a column of texts has, and what is found for absent keys."""
    if form == "masked" and None in texts:
        return [text and text.rstrip("\0") for text in texts], ""
    if form.startswith("numpy U") or form == "masked":
        return [(text or "").rstrip("\0") for text in texts], ""
    if form == "numpy T":
        return ["" if text is None else text for text in texts], ""
    return texts, None if texts or form not in ("list", "tuple") else 0  # as of any empty list


def same_kind(found, column):
    """Whether a result is of the library and the type of a column."""
    if isinstance(column, (pd.Index, pd.api.extensions.ExtensionArray)):
        column = pd.Series(column)
    if isinstance(column, (list, tuple)):
        column = np.empty(0, object if column else float)  # as of any empty list
    if isinstance(column, np.ma.MaskedArray) and not column.mask.any():
        column = np.asarray(column)
    if isinstance(column, pa.RunEndEncodedArray):
        column = column.values
    assert type(found) is type(column)
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        assert found.dtype.kind == "U"
    elif hasattr(column, "dtype"):
        assert found.dtype == column.dtype
    else:
        assert found.type == column.type
    if isinstance(column, (pd.Series, pl.Series)):
        assert found.name == column.name


@pytest.mark.parametrize(
    "form, n",
    of_the_day([*itertools.product(FORMS, (0, 1, 40, 3000)), ("arrow", 300_000), ("list", 70_000)]),
)
def test_a_map_of_texts_is_a_dict(form, n):
    rng = np.random.default_rng(n)
    texts = [POOL[i] for i in rng.integers(0, len(POOL), n)]
    column = FORMS[form](texts)
    texts, absent = held(form, texts)
    keys = rng.integers(0, n + n // 2 + 1, n)
    first, all_of = {}, {}
    for key, text in zip(keys.tolist(), texts):
        first.setdefault(key, text)
        all_of.setdefault(key, []).append(text)
    made = roost.Map(keys, column)
    queries = rng.integers(-5, 2 * n + 5, n + 3).tolist()
    for table in (made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert len(table) == len(first) and table.valid() and table.nbytes > 0
        found = table.find(np.array(queries))
        same_kind(found, column)
        assert read(found) == [first.get(key, absent) for key in queries]
        if n:  # an empty list is one of numbers
            assert read(table.find(np.array(queries), missing="?")) == [
                first.get(key, "?") for key in queries
            ]
        assert read(table.find([])) == []
        got_keys, got = table.items()
        same_kind(got, column)
        assert dict(zip(got_keys.tolist(), read(got), strict=True)) == first and read(table.values()) == read(
            got
        )
        assert sorted(table) == sorted(first)
        for key in queries[:20]:
            assert (key in table) == (key in first) and table.get(key, "?") == first.get(key, "?")
            if key in first:
                assert table[key] == first[key] and type(table[key]) in (str, type(None))
        there = [key for key in queries if key in first]
        if there:
            assert read(table[np.array(there)]) == [first[key] for key in there]
        if len(there) < len(queries):
            with pytest.raises(KeyError):
                table[np.array(queries)]
    several = roost.MultiMap(keys, column)
    for table in (several, pickle.loads(pickle.dumps(several))):
        offsets, found = table.find(queries)
        wanted = [all_of.get(key, []) for key in queries]
        assert read(found) == [text for part in wanted for text in part]
        same_kind(found, column)
        assert np.diff(offsets).tolist() == [*map(len, wanted)]
        assert read(table.find_pairs(queries)[1]) == read(found)
        for key in there[:5]:
            assert read(table[key]) == all_of[key]
        assert sorted(map(repr, read(table.items()[1]))) == sorted(map(repr, texts))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("form", FORMS)
def test_queries_of_any_library(form, query):
    texts = ["a", None, "", "é", "a"]
    column = FORMS[form](texts)
    texts, absent = held(form, texts)
    found = roost.Map([1, 2, 3, 4, 5], column).find(asked := QUERIES[query]([4, 9, 2, 3]))
    assert read(found) == [texts[3], absent, texts[1], texts[2]]
    plain_texts = form.startswith("numpy") or form in ("list", "tuple")
    if plain_texts and query in ("pandas", "polars", "arrow"):
        assert type(found) is type(asked) or (query == "arrow" and isinstance(found, pa.StringArray))
    elif not plain_texts:
        same_kind(found, column)
    if isinstance(found, pd.Series):
        assert found.index.equals(asked.index if query == "pandas" else pd.RangeIndex(4))


def test_keys_of_several_columns_and_frames():
    frame = pd.DataFrame({"k": ["x", None, "y"], "d": [1, 2, 3], "v": ["a", "", None]}, [7, 8, 9])
    for table in (roost.Map(frame[["k", "d"]], frame["v"]), roost.Map((frame["k"], frame["d"]), frame["v"])):
        assert table["x", 1] == "a" and table[None, 2] == "" and table["y", 3] is None
        found = table.find(frame[["k", "d"]][::-1])
        pd.testing.assert_series_equal(found, frame["v"][::-1])
    for given in (
        frame[["d", "v"]],
        pl.DataFrame(frame[["d", "v"]]),
        pa.table({"d": [1, 2, 3], "v": ["a", "", None]}),
    ):
        table = roost.Map(given)
        assert [table[key] for key in (1, 2, 3)] == ["a", "", None]
        same_kind(table.values(), given["v"])
    names = roost.Map(frame.set_index("d")["v"])
    assert names.find(pd.Series([3, 1, 5], name="q")).tolist()[1] == "a" and names[2] == ""
    table = roost.Map({"York": "a", "Bath": None})
    assert table["York"] == "a" and table["Bath"] is None and table.get("Rye", "?") == "?"
    assert table.find(["Rye", "York"]).tolist() == [None, "a"]


def _column(spelling, kind):
    return COLUMNS[spelling](VALUES[kind], kind)


def test_missing_is_of_the_type_of_the_column():
    """polars makes texts of dates and times of one column."""
    days = pl.Series([datetime.date(2020, 1, 1), None])
    noon = datetime.datetime(2021, 1, 1, 12)
    for values, missing in [
        (days, noon), (days, noon.replace(hour=0)), (days, datetime.time(1)), (days, np.datetime64(noon)),
        (pl.Series([datetime.time(1), None]), noon), (pl.Series([noon - noon, None]), noon),
        (pl.Series([noon, None]), noon.replace(tzinfo=datetime.timezone.utc)),
    ]:  # fmt: skip
        table = roost.Map(np.array([1, 2]), values)
        with pytest.raises(TypeError, match="^roost.Map.find: missing=.* is not a value of type "):
            table.find([1, 9], missing=missing)
    assert roost.Map([1, 2], days).find([1, 9], missing=noon.date()).to_list() == [days[0], noon.date()]


def test_values_that_python_has_not():
    """One line for them, and notebooks show the others."""
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    table, keys = roost.Map([1, 2], bad), roost.Map(bad, [1, 2])
    for call in (lambda: table[1], lambda: list(keys), lambda: roost.unique(bad, sorted=True)):
        with pytest.raises(ValueError, match="^roost: a text that is not UTF-8 .*; convert to binary$"):
            call()
    fine = roost.Map([1, 2], pa.array([1, 2], pa.time64("ns")))
    far = roost.Map([1, 2], pa.array([2**53, 1], pa.timestamp("ms", "UTC")))
    for table, kind in ((fine, r"time64\[ns\]"), (far, r"timestamp\[ms, tz=UTC\]")):
        with pytest.raises(OverflowError, match=f"^roost: a value of {kind} that Python has not"):
            table[1]
    for table in (table, keys, fine, far):
        assert "..." in table._repr_html_()


ZEROS = {"int": 0, "uint": 0, "bool": False, "date": datetime.date(1970, 1, 1)}
ZEROS |= {"time": datetime.datetime(1970, 1, 1), "duration": datetime.timedelta(0)}


@pytest.mark.parametrize(
    "spelling, kind", [pair for pair in itertools.product(COLUMNS, VALUES) if _column(*pair) is not None]
)
def test_any_column(spelling, kind):
    """Decimals, times of a zone and nullable numbers, in every library."""
    values = VALUES[kind]
    column = _column(spelling, kind)
    n = len(values)
    table, several = roost.Map(range(n), column), roost.MultiMap([0] * n, column)
    for made in (table, pickle.loads(pickle.dumps(table))):
        same(plain(made.find([*range(n)][::-1])), values[::-1], kind)
        if not isinstance(getattr(column, "dtype", None), np.dtype) or isinstance(column, np.ma.MaskedArray):
            same(plain(made.find([n, 1, 0], missing=None)), [None, None, values[0]], kind)
        assert made[1] is None or np.isnat(made[1])
        null = "" if (spelling, kind) == ("masked", "text") else ZEROS.get(kind)
        same(plain(made.find([n])), [None if spelling == "pandas categories" else null], kind)
        assert len(made) == n and type(made.find([0])) is type(made.values())
    same(plain(several[0]), values, kind)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1, 2**53 + 1], None, []]),
        pl.Series([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]),
        pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int64, 2)),
        pl.Series([2**100, None, -1], dtype=pl.Int128),
        pl.Series([datetime.time(1, 2, 3), None, datetime.time(4)]),
        pl.Series([b"\xff\0", None, b""]),
        pa.array([b"\xff\0", None, b""], pa.binary_view()),
        pa.array([b"\xff\0", None, b"ab"], pa.binary(2)),
        pa.array([[1, 2**53 + 1], None, []]),
        pa.array([["a"], None, []], pa.list_(pa.string_view())),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([decimal.Decimal(10) ** 60, None, decimal.Decimal(1)], pa.decimal256(70)),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.nulls(3),
        pl.Series([None] * 3),
        pd.Series([decimal.Decimal("0.1"), None, "text"], dtype=object),
        pd.Series([{"a": 1}, None, [1]], dtype=object),
        np.array([decimal.Decimal("0.1"), None, {1: 2}], object),
        [b"\xff\0", None, b""],
    ],
    ids=lambda column: str(getattr(column, "type", getattr(column, "dtype", "list"))),
)
def test_what_only_columns_have(column):
    wanted = column if isinstance(column, list) else read(column)
    table = roost.Map([5, 6, 7], column)
    for made in (table, pickle.loads(pickle.dumps(table)), copy.copy(table)):
        assert read(made.find([7, 5, 6, 1])) == [wanted[2], wanted[0], wanted[1], None]
        assert made[5] == wanted[0] and made[6] is None and made.get(1, 2) == 2
        assert len(made) == 3 and sorted(map(repr, read(made.values()))) == sorted(map(repr, wanted))


def test_intervals_are_no_floats():
    column = pd.Series([pd.Interval(2**53 + 1, 2**53 + 3), pd.Interval(1, 2)])
    found = roost.Map([1, 2], column).find([1, 3])
    assert found[0] == column[0] and found[0].left == 2**53 + 1 and pd.isna(found[1])


def test_bytes_of_numpy_are_as_they_were():
    table = roost.Map([1, 2], np.array([b"\xff\xfe", b"a"]))
    assert table.find([2, 3, 1]).tolist() == [b"a", b"", b"\xff\xfe"] and table[1] == b"\xff\xfe"
    table = roost.Map([1, 2], [b"\xff\0", b""])  # whose zeros numpy would drop
    assert table.find([1, 2, 3]).tolist() == [b"\xff\0", b"", None] and table[1] == b"\xff\0"


def test_half_of_a_character_stays():
    for column in (np.array(["\ud800", "b"]), np.array(["\ud800", "b"], object), ["\ud800", "b"]):
        table = roost.Map([1, 2], column)
        for query in QUERIES.values():
            assert read(table.find(query([2, 1]))) == ["b", "\ud800"]


def test_keys_of_any_library_and_device(on):
    """Texts stay on the CPU, in their own library."""
    keys = np.array([3, 1, 2])
    for form, make in FORMS.items():
        column = make(["a", None, "7"])
        texts, absent = held(form, ["a", None, "7"])
        for table in (made := roost.Map(on(keys), column), pickle.loads(pickle.dumps(made))):
            assert read(table.find(on(np.array([2, 1, 7, 3])))) == [texts[2], texts[1], absent, texts[0]]
            assert dict(zip(on.back(table.keys()).tolist(), read(table.values()))) == dict(
                zip(keys.tolist(), texts)
            )
            assert table[3] == "a" and table[1] == texts[1]
        offsets, found = roost.MultiMap(on(keys), column).find(on(np.array([2, 7, 3])))
        assert read(found) == ["7", "a"] and on.back(offsets).tolist() == [0, 1, 1, 2]


def test_names_of_values_are_kept():
    for column in (pd.Series([1.5, 2], name="v"), pl.Series("v", [1, 2]), pd.Series(["a", None], name="v")):
        for table in (made := roost.Map([1, 2], column), copy.copy(made), pickle.loads(pickle.dumps(made))):
            assert (
                table.find(pd.Series([2, 1], name="q")).name == table.find(pl.Series("q", [2, 1])).name == "v"
            )
            again = copy.deepcopy(table)
            assert again.find(pd.Series([1])).name == "v"
        several = pickle.loads(pickle.dumps(roost.MultiMap(pd.Series([1, 2]), column)))
        assert several.find(pd.Series([2]))[1].name == several.items()[1].name == "v"
        assert roost.Map(pd.Series([1, 2]), column).values().name == "v"


def test_later_changes_of_the_column_do_not_count():
    for form in ("pandas", "pandas objects", "numpy U", "numpy objects", "masked", "list", "polars"):
        column = FORMS[form](["a", "b"])
        table = roost.Map([1, 2], column)
        column[0] = "z"
        assert table[1] == "a" and read(table.find([1, 2])) == ["a", "b"]


def test_memory_and_notebooks():
    texts, shared = (
        ["a" * 1000] * 100,
        ("objects", "list", "tuple", "Python", "dictionar", "Categorical", " T"),
    )
    for form in [form for form in FORMS if form not in ("pandas categories", "polars Enum")]:
        table = roost.Map(range(100), FORMS[form](texts))
        beside = table.nbytes - roost.Index(range(100)).nbytes
        assert beside > (0 if any(name in form for name in shared) else 10**5 - 1), form
        assert str(table.nbytes) in repr(table) and ">aaaa" in table._repr_html_()
    page = roost.Map([1], pl.Series(["<b>"]))._repr_html_()
    assert "&lt;b&gt;" in page and "value" in page


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: roost.Map([1, 2], pl.Series(["a"])), ValueError, "2 keys but 1 value;"),
        (lambda: roost.Map([1], pa.array([None, 1])), ValueError, "1 key but 2 values;"),
        (lambda: roost.MultiMap([1], pd.Series(["a", "b"])), ValueError, "1 key but 2 values;"),
        (lambda: roost.Map([1, 2], ["a", 1]), TypeError, "int and str"),
        (lambda: roost.Map([1, 2], ["a", b"a"]), TypeError, "bytes and str"),
        (lambda: roost.Map([1, 2], [1, None]), TypeError, "NoneType and int"),
        (lambda: roost.Map([1], {"a"}), TypeError, "a set of values"),
        (lambda: roost.Map([1], pl.LazyFrame({"a": ["b"]})), TypeError, "collect"),
        (lambda: roost.Map([1], [1]).find([1], missing=None), TypeError, "missing=None is not"),
        (lambda: roost.Map([1], pl.Series(["a"])).find([2], missing=5), TypeError, "missing=5 is not"),
        (lambda: roost.Map([1], pd.Series(["a"])).find([2], missing=5), TypeError, "missing=5 is not"),
        (lambda: roost.Map([1], pa.array(["a"])).find([2], missing=5), TypeError, "missing=5 is not"),
        (lambda: roost.Map([1], np.array(["a"])).find([2], missing=5), TypeError, "missing=5 is not"),
        (lambda: roost.Map([1], np.array(["a"])).find([2], missing="a\0"), TypeError, "is not a value"),
        (lambda: roost.Map([1], np.array(["a"], "T")).find([2], missing=5), TypeError, "missing=5 is not"),
        (
            lambda: roost.Map([1], pd.Series(["a"], dtype="category")).find([2], missing="b"),
            TypeError,
            "category",
        ),
        (
            lambda: roost.Map([1], pl.Series(["a"], dtype=pl.Enum(["a"]))).find([2], missing="b"),
            TypeError,
            "Enum",
        ),
        (
            lambda: roost.Map([1], pl.Series(["1.5"]).cast(pl.Decimal(9, 2))).find(
                [2], missing=decimal.Decimal("0.001")
            ),
            TypeError,
            "is not a value of type Decimal",
        ),
        (lambda: roost.Map([1], pa.array([1, None])[:1]).find([2], missing="a"), TypeError, "missing='a'"),
        (lambda: roost.ConcurrentMap("i8", str), TypeError, "no fixed size; build a roost.Map of them"),
        (lambda: roost.ConcurrentMap("i8", object), TypeError, "no fixed size; build a roost.Map of them"),
        (lambda: roost.ConcurrentMap().insert([1], ["a"]), TypeError, "values of type <U1, but those"),
        (lambda: roost.Store("i8", str), TypeError, "values of type <U0; give a type of fixed size"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).startswith("roost") and "\n" not in str(caught.value)
