"""Texts as keys: in every form that a column of them has, against Python's dict."""

import os

import numpy as np
import pandas as pd
import pytest
import roost
from columns import listed, of_the_day
from roost import _host
from roost._keys import strings

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")


def objects(texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def cut(array, at=(0.3, 0.3, 0.8)):
    """Chunks of an Arrow array, one of them empty, each with an offset."""
    n = len(array)
    ends = [0, *(int(n * f) for f in at), n]
    return pa.chunked_array([array[a:b] for a, b in zip(ends, ends[1:])], array.type)


def of_dictionary(texts, codes=None):
    """A dictionary with values that are not used, and each a null; coded by small or large numbers."""
    distinct = list(dict.fromkeys(texts))
    place = {text: i for i, text in enumerate(distinct)}
    codes = codes or (
        pa.int8() if len(distinct) < 120 else pa.uint16() if len(distinct) < 60000 else pa.int64()
    )
    kind = pa.large_string() if not texts or isinstance(texts[0], str) else pa.large_binary()
    values = pa.array([None, *distinct, None], kind)
    return pa.DictionaryArray.from_arrays(pa.array([place[text] + 1 for text in texts], codes), values)


def dictionaries(texts):
    """Chunks whose dictionaries have different values in different order."""
    third = len(texts) // 3
    parts = texts[:third], texts[third : 2 * third], texts[2 * third :]
    return pa.chunked_array([of_dictionary(part, pa.int32()) for part in parts])


class OnlyArray:
    """A column that has nothing but Arrow's interface."""

    def __init__(self, array):
        self._array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self._array.__arrow_c_array__(requested_schema)


class OnlyStream:
    def __init__(self, array):
        self._array = array

    def __arrow_c_stream__(self, requested_schema=None):
        return self._array.__arrow_c_stream__(requested_schema)


def sliced(make, texts):
    """Between others, one before and two after."""
    return make([texts[0], *texts, *texts[:1] * 2])[1:-2] if texts else make(texts)


FORMS = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "objects strided": lambda texts: np.repeat(objects(texts), 3)[1::3],
    "objects of np.str_": lambda texts: objects([np.str_(text) for text in texts]),
    "U": lambda texts: np.array(texts, "U"),
    "U strided": lambda texts: np.repeat(np.array(texts, "U"), 2)[::2],
    "U swapped": lambda texts: np.array(texts, "U").astype(np.array(texts, "U").dtype.newbyteorder()),
    "StringDType": lambda texts: np.array(texts, np.dtypes.StringDType()),
    "StringDType reversed": lambda texts: np.array(texts[::-1], np.dtypes.StringDType())[::-1],
    "utf8": lambda texts: pa.array(texts, pa.string()),
    "utf8 slice": lambda texts: sliced(lambda t: pa.array(t, pa.string()), texts),
    "utf8 chunks": lambda texts: cut(pa.array(texts, pa.string())),
    "large_utf8 slice": lambda texts: sliced(lambda t: pa.array(t, pa.large_string()), texts),
    "large_utf8 chunks": lambda texts: cut(pa.array(texts, pa.large_string())),
    "utf8_view": lambda texts: pa.array(texts, pa.string_view()),
    "utf8_view slices": lambda texts: cut(sliced(lambda t: pa.array(t, pa.string_view()), texts)),
    "dictionary": of_dictionary,
    "dictionary slice": lambda texts: sliced(of_dictionary, texts),
    "dictionary small slice": lambda texts: of_dictionary([*texts, *map(str, range(40000, 45000))])[
        : len(texts)
    ],
    "dictionary chunks": dictionaries,
    "only an array": lambda texts: OnlyArray(pa.array(texts, pa.string())),
    "only a stream": lambda texts: OnlyStream(cut(pa.array(texts, pa.string_view()))),
    "only a stream of dictionaries": lambda texts: OnlyStream(dictionaries(texts)),
    "polars": lambda texts: pl.Series(texts, dtype=pl.String),
    "polars slices": lambda texts: pl.concat(
        [sliced(lambda t: pl.Series(t, dtype=pl.String), texts[:9]), pl.Series(texts[9:], dtype=pl.String)],
        rechunk=False,
    ),
    "polars gathered": lambda texts: pl.Series(texts[::-1], dtype=pl.String).reverse(),
    "polars Categorical": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "polars Enum": lambda texts: pl.Series(texts, dtype=pl.Enum(pl.Series(texts, dtype=pl.String).unique())),
    "pandas objects": lambda texts: pd.Series(texts, dtype=object),
    "pandas str": lambda texts: pd.Series(texts, dtype="str"),
    "pandas Index": lambda texts: pd.Index(texts, dtype="str"),
    "pandas python strings": lambda texts: pd.Series(texts, dtype=pd.StringDtype("python")),
    "pandas pyarrow strings": lambda texts: pd.Series(texts, dtype=pd.StringDtype("pyarrow")),
    "pandas Arrow": lambda texts: pd.Series(pd.arrays.ArrowExtensionArray(cut(pa.array(texts, pa.string())))),
    "pandas category": lambda texts: pd.Series(pd.Categorical(texts)),
    "pandas category of objects": lambda texts: pd.Categorical(texts, objects(list(dict.fromkeys(texts)))),
}
BYTES = {
    "list of bytes": list,
    "objects of bytes": objects,
    "binary slice": lambda texts: sliced(lambda t: pa.array(t, pa.binary()), texts),
    "large_binary chunks": lambda texts: cut(pa.array(texts, pa.large_binary())),
    "binary_view": lambda texts: pa.array(texts, pa.binary_view()),
    "dictionary of bytes": of_dictionary,
    "polars Binary": lambda texts: pl.Series(texts, dtype=pl.Binary),
}
# On both sides of what a view, a key of 8 and one of 16 bytes hold. Some end in zeros, some are no ASCII.
SHORT = ["", "a", "ab", "a\0", "\0", "é", "abcdefg", "abcdef\0"]
MIDDLE = [
    *SHORT,
    "abcdefgh",
    "abcdefg\0",
    "a" * 12,
    "a" * 13,
    "ß" * 7,
    "a" * 15,
    "a" * 14 + "b",
    "a" * 14 + "\0",
]
LONG = [*MIDDLE, "a" * 16, "a" * 15 + "\0", "ä€😀" * 4, "b" * 300, "b" * 299 + "c"]
SETS = {"short": SHORT, "middle": MIDDLE, "long": LONG}


def column_of(kind, n, different, seed):
    """n texts, of a set and with numbers behind them."""
    rng = np.random.default_rng(seed)
    some = SETS[kind]
    room = {"short": 1, "middle": 10**8, "long": 10**8}[kind]  # numbers would be too long for a short key
    tails = [str(i // len(some)) if i >= len(some) and room > 1 else "" for i in range(different)]
    texts = [(some[i % len(some)][: 15 - len(tail)] if kind == "middle" else some[i % len(some)]) + tail
             for i, tail in enumerate(tails)]  # fmt: skip
    if room == 1:
        texts = [*some, *map(str, range(max(0, different - len(some))))][:different]
    return [texts[i] for i in rng.integers(0, different, n).tolist()]


def check(texts, column, like):
    """Each function on a column of these texts; `like`: another form for what it is compared with."""
    first, numbers, counts = {}, [], []
    for i, text in enumerate(texts):
        number = first.setdefault(text, (len(first), i))[0]
        numbers.append(number)
        counts[number : number + 1] = [counts[number] + 1 if number < len(counts) else 1]
    distinct, rows = list(first), [row for _, row in first.values()]
    codes, uniques = roost.factorize(column)
    codes = np.asarray(codes)
    assert codes.dtype == np.int64 and codes.tolist() == numbers and listed(uniques) == distinct
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    keys, *got = roost.unique(column, **options, index_dtype="int32")
    got = list(map(np.asarray, got))
    assert [listed(keys), *(part.tolist() for part in got)] == [distinct, rows, numbers, counts]
    assert [part.dtype for part in got] == [np.int32, np.int32, np.int64]
    if not str(getattr(column, "dtype", "")).startswith("Enum"):  # whose order is refused
        assert listed(roost.unique(column, sorted=True)) == sorted(distinct)
    keys, often = roost.value_counts(column, sort=False)
    assert listed(keys) == distinct and listed(often) == counts
    assert np.asarray(roost.duplicated(column)).tolist() == [rows[k] != i for i, k in enumerate(numbers)]
    groups = roost.group_by(column)
    sums = np.bincount(numbers, np.arange(len(texts)), len(distinct)) if texts else np.zeros(0)
    assert dict(zip(listed(groups.keys), groups.sum(np.arange(len(texts))).tolist())) == dict(
        zip(distinct, sums.tolist())
    )
    assert len(groups) == len(distinct)
    absent = [text + "~" for text in distinct[:3]] if not texts or isinstance(texts[0], str) else [b"~"]
    asked = [*distinct[::2], *absent, *texts[:5]]
    wanted = [first[text][1] if text in first else -1 for text in asked]
    index = roost.Index(column)
    assert np.asarray(index.get_indexer(like(asked))).tolist() == wanted
    assert index.valid() and len(index) == len(texts)
    assert np.asarray(index.contains(column)).all() and list(index) == list(texts)
    assert all((text in index) == (row >= 0) for text, row in zip(asked[-9:], wanted[-9:]))
    inside = set(asked)
    assert np.asarray(roost.isin(column, like(asked))).tolist() == [text in inside for text in texts]
    left, right = roost.join(like(asked), column, how="left")
    of_text = {}
    for i, text in enumerate(texts):
        of_text.setdefault(text, []).append(i)
    pairs = [(i, row) for i, text in enumerate(asked) for row in of_text.get(text, [-1])]
    assert list(zip(left.tolist(), right.tolist())) == pairs


def is_kept(form, text):
    """Whether a form has a text: numpy's U has no zeros at the end."""
    return not (form.startswith("U") and text.endswith("\0"))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("form", of_the_day(FORMS))
def test_every_form(form, kind):
    forms = list(FORMS)
    for seed, (n, different) in enumerate([(1, 1), (50, 40), (9000, 30), (12000, 9000)]):
        texts = [text for text in column_of(kind, n, different, seed) if is_kept(form, text)]
        like = FORMS[forms[(forms.index(form) + 5 * seed + 1) % len(forms)]]
        if any(not is_kept(form, text) for text in texts) or like in (
            FORMS["U"],
            FORMS["U strided"],
            FORMS["U swapped"],
        ):
            like = FORMS["utf8"]
        if texts:
            check(texts, FORMS[form](texts), like if "Enum" not in str(like) else list)


@pytest.mark.parametrize("form", BYTES)
def test_every_form_of_bytes(form):
    for kind, (n, different) in zip([*SETS, "long"], [(50, 40), (9000, 30), (3000, 2000), (12000, 9000)]):
        texts = [text.encode() + b"\xff" * (i % 2) for i, text in enumerate(column_of(kind, n, different, n))]
        check(texts, BYTES[form](texts), objects)


@pytest.mark.parametrize("different", [3, 5000, 40000, 150000])
def test_blocks_with_few_and_many_copies(different):
    """More than two blocks of rows, which look for copies each on its own; some blocks give up."""
    rng = np.random.default_rng(different)
    rows = rng.integers(0, different, 150000)
    rows[70000:90000] = rng.integers(0, 7, 20000)
    for text in ("{}", "{} and more", "{} and more than fifteen bytes"):
        texts = [text.format(i) for i in rows.tolist()]
        for column in (pa.array(texts), cut(pa.array(texts, pa.string_view()))):
            codes, uniques = map(np.asarray, roost.factorize(column))
            expected, distinct = pd.factorize(rows)
            assert np.array_equal(codes, expected) and uniques.tolist() == [text.format(i) for i in distinct]
            counts = roost.group_by(column).count()
            assert np.array_equal(np.sort(counts), np.sort(np.bincount(expected)))


def test_empty_columns():
    for form, make in FORMS.items():
        column = make([])
        if form not in ("list", "tuple"):
            assert listed(roost.unique(column)) == [] and len(roost.group_by(column)) == 0, form
            assert listed(roost.isin(column, ["a"])) == [] and roost.isin(["a"], column).tolist() == [False]
            assert roost.Index(column).get_indexer(["a"]).tolist() == [-1]
        assert listed(roost.Index(pa.array(["a"])).get_indexer(column)) == [], form
    chunks = pa.chunked_array([pa.array([], pa.string()), pa.array(["a"]), pa.array([], pa.string())])
    assert listed(roost.factorize(chunks)[1]) == ["a"]
    assert listed(roost.unique(pa.chunked_array([], pa.string_view()))) == []


def collision(i):
    """Bytes that all have one hash of 64 bits with the seed 0: where the first 8 are those of XXH3's secret,
    the next 8 are multiplied by 0."""
    return bytes.fromhex("b8fe6c392 3a44bbe".replace(" ", "")) + i.to_bytes(8, "little") + b"the same 16 byte"


@pytest.mark.parametrize("different", [2, 20000])
def test_different_texts_of_one_hash_are_told_apart(different):
    texts = [collision(i % different) for i in range(30000)]
    array = pa.array(texts, pa.binary())
    hashes = np.unique(_host.query_keys(strings.take_keys(array, "roost.test")[0].column, 2, 0))
    assert len(hashes) == 1  # so that the test tests something
    for column in (array, cut(array), pa.array(texts, pa.binary_view()), of_dictionary(texts)):
        check(texts[:300] + texts[-300:], pa.chunked_array([column[:300], column[-300:]])
              if isinstance(column, pa.Array) else objects(texts[:300] + texts[-300:]), objects)  # fmt: skip
        codes, uniques = roost.factorize(column)
        assert listed(codes) == [i % different for i in range(30000)] and len(uniques) == different
    index = roost.Index(pa.array([collision(1)]))  # of one text, whose hash is enough
    assert index.get_indexer([collision(1), collision(2)]).tolist() == [0, -1]
    assert listed(roost.isin(array[:2], [collision(1)])) == [False, True]


def test_lone_surrogates_and_numbers_that_are_no_characters():
    texts = ["\ud800", "\udfff", "a\ud800" * 9, "?", "\ud800"]
    for column in (texts, objects(texts), np.array(texts), pd.Series(texts, dtype=object)):
        check(texts, column, objects)
    wrong = np.array([0x110000, 0xFFFFFFFF, 0x110000, ord("a")], np.uint32).view("U1")
    assert roost.factorize(wrong)[0].tolist() == [0, 1, 0, 2]
    assert roost.isin(wrong, ["a"]).tolist() == [False, False, False, True]


def test_bytes_with_padding():
    fixed = np.array([b"a", b"ab", b"", b"a"])
    assert roost.isin(objects([b"a", b"a\0", b""]), fixed).tolist() == [True, False, True]
    assert roost.Index(objects([b"ab", b"a"])).get_indexer(fixed[::-1]).tolist() == [1, -1, 0, 1]
    padded = pa.array([b"a\0", b"ab", b"a\0"], pa.binary(2))  # which Arrow does not pad
    assert roost.factorize(padded)[1].tolist() == [b"a\0", b"ab"]


def with_null(at, n=20):
    return [None if i == at else str(i) for i in range(n)]


@pytest.mark.parametrize("at", [0, 7, 8, 19])
def test_nulls_in_an_index(at):
    texts = with_null(at)
    array = pa.array(texts)
    inside = pa.DictionaryArray.from_arrays(np.arange(20), array)
    for column in (
        array,
        pa.concat_arrays([pa.array(["x", None]), array]).slice(2),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        cut(array),
        array.dictionary_encode(),
        inside,
        pa.chunked_array([inside[at : at + 1], inside]),
        OnlyStream(cut(array)),
        OnlyArray(array),
        OnlyArray(inside),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
        pd.Series(texts, dtype="str"),
        pd.Series(texts, dtype=pd.StringDtype("python")),
        pd.Series(texts, dtype="category"),
        pd.Series(pd.arrays.ArrowExtensionArray(cut(array))),
    ):
        index = roost.Index(column)
        wanted = list(range(len(index)))
        if len(index) == 21:  # where a null comes first
            wanted[at + 1] = 0
        assert listed(index.get_indexer(column)) == wanted and None in index and "5" in index
        assert index.get_indexer(["x", "3"]).tolist() == [-1, len(index) - 17]
        with pytest.raises((TypeError, ValueError), match=r"^roost[^\n]*( null|Only)"):
            roost.partition(column, 2)
    for column in (texts, objects(texts), np.array(texts, np.dtypes.StringDType(na_object=None))):
        with pytest.raises(TypeError, match=r"^roost[^\n]*(missing|NoneType)"):
            roost.unique(column)
    without = inside[:at] if at else inside[1:]  # whose dictionary has a null that no row means
    assert len(roost.unique(without)) == len(without)


def test_what_is_no_text_is_refused_or_read_as_before():
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    with pytest.raises(TypeError, match="pass its storage"):
        roost.unique(uuid)
    assert roost.unique(OnlyArray(pa.array([3]))).to_pylist() == [3]
    for one, other in (
        (["a"], [b"a"]),
        (pa.array(["a"]), pa.array([b"a"])),
        (np.array(["a"]), np.array([b"a"])),
        (pl.Series(["a"]), [1]),
        (["a"], np.array([1.5])),
    ):
        for call in (roost.isin, roost.join, lambda x, y: roost.Index(x).get_indexer(y)):
            with pytest.raises(TypeError, match=r"^roost[^\n]*$"):
                call(one, other)
    for mixed in (["a", b"a"], objects(["a", 1]), ["a", None], objects(["a", np.nan])):
        with pytest.raises(TypeError, match=r"^roost[^\n]*$"):
            roost.factorize(mixed)
    with pytest.raises(ValueError, match="one dimension"):
        roost.unique(np.array([["a"], ["b"]]))
    with pytest.raises(ValueError, match="code of no value"):
        roost.unique(pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False))


def test_all_codes_of_a_byte():
    """Half of them are negative as int8."""
    values = pa.array([str(i) for i in range(300)])
    codes = np.arange(256, dtype=np.uint8)[::-1]
    column = pa.DictionaryArray.from_arrays(pa.array(codes), values)
    assert roost.factorize(column)[1].tolist() == [str(i) for i in codes]
    with pytest.raises(ValueError, match="code of no value"):
        roost.unique(pa.DictionaryArray.from_arrays(pa.array([-1], pa.int8()), values, safe=False))


def test_columns_may_change_or_go_afterwards():
    array = objects([f"{i} some text that is not short" for i in range(100)])
    index, groups = roost.Index(array), roost.group_by(array)
    keys = array.tolist()
    array[:] = "other"
    assert index.get_indexer(keys).tolist() == list(range(100))
    assert sorted(groups.keys.tolist()) == sorted(keys)
    index = roost.Index(pa.array(keys).slice(10))  # whose buffers nobody else keeps
    junk = [pa.array([f"{i} junk" * 9 for i in range(100)]) for _ in range(50)]
    assert index.get_indexer(keys).tolist() == [-1] * 10 + list(range(90)) and len(junk) == 50
    listed = ["a", "b"]
    index = roost.Index(listed)
    listed[:] = ["c", "d"]
    assert list(index) == ["a", "b"] and index.get_indexer(["b", "c"]).tolist() == [1, -1]
    for index in (index, roost.Index(pa.array(["a", "b"]))):
        again = index.__reduce__()[0](*index.__reduce__()[1])
        assert list(again) == ["a", "b"] and again[1] == "b"


@pytest.mark.parametrize("are_bytes", [False, True])
@pytest.mark.parametrize("of", ["fixed", "list", "pandas", "polars", "pyarrow", "categories", "with nulls"])
def test_nulls_among_queries_are_absent(of, are_bytes):
    """Unless a null is a key: in every form of keys and queries, an empty text is none."""
    made = lambda texts: [None if text is None else text.encode() if are_bytes else text for text in texts]
    keys, asked = (
        made(["ab", "", "c"] + [None] * (of == "with nulls")),
        made(["c", None, "zz", "", None, "ab"]),
    )
    held = {
        "fixed": lambda: np.array(keys),
        "list": lambda: keys,
        "pandas": lambda: pd.Series(keys),
        "polars": lambda: pl.Series(keys),
        "pyarrow": lambda: pa.array(keys),
        "categories": lambda: pd.Series(pd.Categorical(keys)),
        "with nulls": lambda: pa.array(keys),
    }[of]()
    rows = [keys.index(text) if text in keys else -1 for text in asked]
    masked = np.ma.array([text or keys[1] for text in asked], mask=[text is None for text in asked])
    columns = [pd.Series(asked), pl.Series(asked), pa.array(asked), pa.chunked_array([asked[:2], asked[2:]])]
    columns += [pd.Series(pd.Categorical(asked)), pa.array(asked).dictionary_encode(), masked]
    values, missing = np.arange(len(keys)), -1
    for queries in columns:
        assert listed(roost.Index(held).get_indexer(queries)) == rows
        assert listed(roost.Map(held, values).find(queries, missing=missing)) == rows
        for table in (roost.Set(held), roost.MultiMap(held, values), roost.Map(held, values)):
            assert listed(table.contains(queries)) == [row >= 0 for row in rows]
        counts = roost.MultiMap(held, values).count(queries)
        assert listed(counts) == [int(row >= 0) for row in rows]
    others = [text if text is None else text.decode() if are_bytes else text.encode() for text in asked]
    for queries in (pl.Series(others), pa.array(others)):
        with pytest.raises(TypeError, match="never equal|convert them"):
            roost.Map(held, values).find(queries)


@pytest.mark.skipif("ROOST_TEST_LARGE" not in os.environ, reason="takes a minute and 13 GiB")
def test_more_than_1e8_texts_of_more_than_2_31_bytes():
    n, width, different = 120_000_000, 20, 1_000_003
    numbers = np.arange(different)
    digits = numbers[:, None] // 10 ** np.arange(7)[::-1] % 10 + 48
    texts = np.pad(digits.astype(np.uint8), ((0, 0), (width - 7, 0)), constant_values=ord("0"))
    characters = np.resize(texts, (n, width))
    offsets = np.arange(0, (n + 1) * width, width)
    assert characters.nbytes > 2**31
    column = pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(characters))
    labels, distinct = roost.factorize(column)
    assert len(distinct) == different and str(distinct[-1]) == f"{different - 1:020d}"
    for begin in range(0, n, different):
        part = labels[begin : begin + different]
        np.testing.assert_array_equal(part, numbers[: len(part)])
