"""Index, Map, Set, MultiMap and ConcurrentMap, beside dict."""

import datetime
import decimal
import pickle

import numpy as np
import pytest
import roost
from conftest import INTEGERS, keys
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

AWARE = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)


def values_for(x, dtype, tail=()):
    rng = np.random.default_rng(len(x))
    return rng.integers(0, 100, (len(x), *tail)).astype(dtype)


@given(
    keys([*INTEGERS, "f4", "f8"]),
    keys(INTEGERS),
    st.sampled_from(
        [("u1", ()), ("i2", ()), ("f4", ()), ("f8", ()), ("i4", (4,)), ("u1", (5,)), ("f8", (3, 2))]
    ),
)
def test_map_is_a_dict(on, x, y, kind):
    values = values_for(x, *kind)
    table = roost.Map(on(x), on(values))
    first = {}
    for key, value in zip(x.tolist(), values):
        first.setdefault("nan" if key != key else key + 0, value)
    assert len(table) == len(first) and table.valid()
    queries = np.concatenate([x, y.astype(x.dtype)])
    found = on.back(table.find(on(queries), missing=7))
    there = on.back(table.contains(on(queries)))
    for key, here, value in zip(queries.tolist(), there, found):
        key = "nan" if key != key else key + 0
        assert here == (key in first)
        assert np.array_equal(value, first.get(key, np.full(kind[1], 7, kind[0])))
    all_keys, all_values = on.back(table.items())
    assert len(all_keys) == len(all_values) == len(first)
    for key, value in zip(all_keys.tolist(), all_values):
        assert np.array_equal(first["nan" if key != key else key], value)


@given(keys(), keys())
def test_index_is_pandas(on, x, y):
    index = roost.Index(on(x))
    with np.errstate(all="ignore"):
        queries = np.concatenate([x, y.astype(x.dtype)])
    first = {}
    for row, key in enumerate(x.tolist()):
        first.setdefault("nan" if key != key else key + 0, row)
    expected = [first.get("nan" if key != key else key + 0, -1) for key in queries.tolist()]
    for dtype in ("int64", "int32"):
        got = on.back(index.get_indexer(on(queries), index_dtype=dtype))
        assert got.dtype == dtype and got.tolist() == expected
    assert index.is_unique == (len(first) == len(x)) and len(index) == len(list(index)) == len(x)


@pytest.mark.parametrize("type", ["u1", "i8", "u8", "f4", "?", "M8[s]", "S3", "U3", "O"])
def test_index_has_the_key_of_a_row(on, type):
    if not on.is_numpy and np.dtype(type).kind not in "biuf":
        pytest.skip("of numpy alone")
    x = np.array(["1", "0", "1"], object) if type == "O" else np.array([1, 0, 1]).astype(type)
    index = roost.Index(on(x))
    assert [index[0], index[np.uint8(1)], index[2]] == list(index) == [index[i] for i in range(3)]
    if type == "i8":
        rows = roost.Index(on(np.array([[1, 2], [3, 4]])))
        assert rows[1] == [3, 4] and index[on(np.array([0, 1]))[1]] == 0
    for row in (-1, 3, 2**70):
        with pytest.raises(IndexError, match=f"roost.Index: there is no row {row}; .* less than 3"):
            index[row]
    for row in ([0, 1], on(np.array([0])), slice(2), "0", 1.0, True, None):
        with pytest.raises(TypeError, match="roost.Index.*give"):
            index[row]


def test_a_dict_is_a_map():
    table = roost.Map({7: 2.5, 8: 3.5})
    assert table[8] == 3.5 and table.find([7, 9], missing=-1).tolist() == [2.5, -1] and len(table) == 2
    assert roost.Map({(1, 2): [3, 4]})[1, 2].tolist() == [3, 4] and len(roost.Map({})) == 0
    date = np.datetime64("2024-05-01")
    assert roost.Map({date: date})[date] == date
    assert roost.Map({"a": 2, "b": 3})["b"] == 3
    for call, words in (
        (lambda: roost.Map([1]), "roost.Map: no values; "),
        (lambda: roost.Map({1: 2}, [3]), "roost.Map: a dict; "),
        (lambda: roost.Map({"a": 2, 1: 3}), "int and str"),
        (lambda: roost.Map({1: "a", 2: 3}), "int and str"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_what_never_changes_says_so(on):
    x = on(np.arange(3))
    for table in (roost.Index(x), roost.Set(x), roost.Map(x, x), roost.MultiMap(x, x)):
        with pytest.raises(TypeError, match=r"roost.\w+: it never changes; .* ConcurrentMap"):
            table[1] = 2
        with pytest.raises(TypeError, match=r"roost.\w+: it never changes; .* ConcurrentMap"):
            del table[1]
        with pytest.raises(TypeError, match="reversible"):
            reversed(table)
        assert 1 in table and 3 not in table


def test_multimap_in_brackets(on):
    table = roost.MultiMap(on(np.array([5, 6, 5])), on(np.array([1, 2, 3])))
    assert on.back(table[5]).tolist() == [1, 3]
    for key in (7, 2**70, 5.5):
        with pytest.raises(KeyError):
            table[key]
    with pytest.raises(TypeError, match="give one key; find"):
        table[on(np.array([5]))]
    with pytest.raises(TypeError, match="not iterable"):
        list(table)


@given(
    st.lists(st.text(max_size=4), max_size=40),
    st.lists(st.text(max_size=4), max_size=40),
    st.sampled_from(["U4", "O"]),
    st.sampled_from(["U4", "O", "U7"]),
)
def test_index_of_strings(x, y, kind, other):
    index = roost.Index(np.array(x, kind))
    x, y = np.array(x, kind).tolist(), np.array([*x[::2], *y], other)
    assert index.get_indexer(y).tolist() == [x.index(s) if s in x else -1 for s in y.tolist()]
    assert index.contains(y).tolist() == [s in x for s in y.tolist()]


@given(keys(), keys())
def test_set(on, x, y):
    table = roost.Set(on(x))
    assert np.array_equal(np.sort(on.back(table.keys())), np.unique(x), equal_nan=x.dtype.kind == "f")
    if {x.dtype.kind, y.dtype.kind} <= set("iub"):
        y = y.astype(x.dtype)
        assert np.array_equal(on.back(table.contains(on(y))), np.isin(y, x))


@given(keys(INTEGERS), st.sampled_from(["u1", "i4", "f8"]), st.sampled_from([(), (3,)]))
def test_multimap(on, x, dtype, tail):
    values = values_for(x, dtype, tail)
    table = roost.MultiMap(on(x), on(values))
    queries = np.concatenate([x[::3], np.zeros(1, x.dtype)])
    asked = on(queries)
    offsets, found = on.back(table.find(asked))
    numbers, pairs = on.back(table.find_pairs(asked))
    assert np.array_equal(found, pairs)
    assert np.array_equal(np.repeat(np.arange(len(queries)), np.diff(offsets)), numbers)
    assert np.array_equal(on.back(table.count(asked)), np.diff(offsets))
    for i, key in enumerate(queries):
        assert np.array_equal(found[offsets[i] : offsets[i + 1]], values[x == key])
        if i < 3 and offsets[i] < offsets[i + 1]:
            one = on.back(table[key])
            assert one.dtype == dtype and np.array_equal(one, values[x == key])
    assert len(table) == len(x) and table.key_count == len(set(x.tolist())) and table.valid()
    all_keys, all_values = on.back(table.items())
    for key in set(x.tolist()):
        assert np.array_equal(all_values[all_keys == key], values[x == key])


def machine(on, make, *types):
    """A table that changes does what a dict does."""

    class Changing(RuleBasedStateMachine):
        batch = st.lists(
            st.tuples(st.integers(-40, 40), st.integers(-1000, 1000)),
            max_size=60,
            unique_by=lambda pair: pair[0],
        )

        def __init__(self):
            super().__init__()
            self.table = make(*types, like=on(np.zeros(1)))
            self.model = {}

        def arrays(self, batch):
            return (
                on(np.array([k for k, _ in batch], types[0])),
                on(np.array([v for _, v in batch], types[1])),
            )

        @rule(batch=batch)
        def insert(self, batch):
            new = sum(k not in self.model for k, _ in batch)
            assert self.table.insert(*self.arrays(batch)) == new
            for k, v in batch:
                self.model.setdefault(k, v)

        @rule(batch=batch)
        def assign(self, batch):
            new = sum(k not in self.model for k, _ in batch)
            assert self.table.insert_or_assign(*self.arrays(batch)) == new
            self.model.update(batch)

        @precondition(lambda self: hasattr(self.table, "add"))
        @rule(batch=batch)
        def add(self, batch):
            self.table.add(*self.arrays(batch))
            for k, v in batch:
                self.model[k] = self.model.get(k, 0) + v

        @rule(batch=batch)
        def erase(self, batch):
            there = sum(k in self.model for k, _ in batch)
            assert self.table.erase(self.arrays(batch)[0]) == there
            for k, _ in batch:
                self.model.pop(k, None)

        @rule(batch=batch, one=st.integers(-45, 45))
        def delete(self, batch, one):
            if one in self.model:
                del self.table[one], self.model[one]
            else:
                with pytest.raises(KeyError, match=str(one)):
                    del self.table[one]
            absent = sum(k not in self.model for k, _ in batch)
            if absent:
                with pytest.raises(KeyError, match=f"{absent} of {len(batch)} keys are absent; erase"):
                    del self.table[self.arrays(batch)[0]]
                return
            del self.table[self.arrays(batch)[0]]
            for k, _ in batch:
                del self.model[k]

        @rule()
        def clear(self):
            self.table.clear()
            self.model.clear()

        @invariant()
        def is_the_model(self):
            assert len(self.table) == len(self.model) and self.table.valid()
            k, v = on.back(self.table.items())
            assert dict(zip(k.tolist(), v.tolist())) == self.model
            queries = np.arange(-45, 45, dtype=types[0])
            assert on.back(self.table.find(on(queries), missing=-7)).tolist() == [
                self.model.get(q, -7) for q in queries.tolist()
            ]

    return Changing


def test_keys_of_rows_are_those_of_an_iteration():
    """One row in brackets may be a tuple, a list or an array, also where several may stand."""
    rows = np.array([[1, 2], [3, 4]], np.int32)
    table, copies = roost.Map(rows, [10, 20]), roost.MultiMap(rows, [10, 20])
    for key in table:
        for form in (key, tuple(key), np.array(key, np.int32)):
            value = {1: 10, 3: 20}[key[0]]
            assert table[form] == value == table.get(form) and form in table
            assert copies[form].tolist() == [value]
    for several in (rows[::-1], rows[::-1].tolist(), [(3, 4), (1, 2)]):
        assert table[several].tolist() == [20, 10]
    assert table[[]].tolist() == []
    for absent in ([5, 5], np.array([2, 1], np.int32), (2**40, 1)):
        with pytest.raises(KeyError):
            table[absent]


@pytest.mark.parametrize("make", [roost.ConcurrentMap, roost.Store])
@pytest.mark.parametrize("types", [("int64", "int32"), ("int16", "float64")])
def test_tables_that_change_are_dicts(on, make, types):
    examples = min(settings().max_examples, 15)
    run_state_machine_as_test(
        machine(on, make, *types),
        settings=settings(max_examples=examples, stateful_step_count=12, deadline=None),
    )


def index_of_strings(keys, _):
    return roost.Index(keys.astype("U"))


@pytest.mark.parametrize(
    "make",
    [
        lambda k, v: roost.Index(k),
        index_of_strings,
        lambda k, v: roost.Set(k),
        lambda k, v: roost.Map(k, v),
        lambda k, v: roost.Map(k, v.repeat(5).reshape(-1, 5)[:1000]),
        lambda k, v: roost.MultiMap(k, v),
    ],
)
def test_pickles(on, make):
    if make is index_of_strings and not on.is_numpy:
        pytest.skip("strings are numpy's")
    rng = np.random.default_rng(0)
    table = make(on(rng.integers(0, 500, 1000)), on(rng.random(1000)))
    copy = pickle.loads(pickle.dumps(table))
    assert type(copy) is type(table) and len(copy) == len(table) and copy.valid()
    queries = on(np.arange(600).astype("U" if make is index_of_strings else "i8"))
    for call in ("find", "get_indexer", "contains"):
        if hasattr(table, call):
            both = getattr(table, call)(queries), getattr(copy, call)(queries)
            for a, b in zip(*both) if isinstance(both[0], tuple) else [both]:
                assert np.array_equal(on.back(a), on.back(b))


def test_concurrent_map_pickles(on):
    table = roost.ConcurrentMap("i4", "f4", 100, load_factor=0.5, like=on(np.zeros(1)))
    table.insert(on(np.arange(1000, dtype="i4")), on(np.arange(1000, dtype="f4")))
    copy = pickle.loads(pickle.dumps(table))
    assert len(copy) == 1000 and copy[7] == 7 and copy.valid()


def test_concurrent_map_grows_and_sums(on):
    table = roost.ConcurrentMap("uint32", "float32", capacity=10, like=on(np.zeros(1)))
    x = np.random.default_rng(0).integers(0, 50_000, 400_000, dtype=np.uint32)
    assert table.add(on(x), 1.0) == len(np.unique(x))
    counts = on.back(table.find(on(np.arange(50_000, dtype=np.uint32))))
    assert np.array_equal(counts, np.bincount(x, minlength=50_000))
    table[7] = 3
    assert table[7] == 3 and table.get(10**7) is None and 7 in table
    table.reserve(10**6)
    assert table.capacity >= 10**6


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: roost.Map([1, 2], [1]), ValueError, "2 keys but 1 value;"),
        (lambda: roost.Map(["a", 1], [1, 2]), TypeError, "int and str"),
        (lambda: roost.ConcurrentMap("U1"), TypeError, "factorize makes numbers of strings"),
        (lambda: roost.Map([1], ["a", "b"]), ValueError, "1 key but 2 values;"),
        (lambda: roost.Map([1], 5), TypeError, "values of type int64 and shape"),
        (lambda: roost.ConcurrentMap("i8", str), TypeError, "no fixed size; build a roost.Map"),
        (lambda: roost.Map(5, [1]), ValueError, "single value"),
        (lambda: roost.Map([1], [1]).find(np.array([1.0])), TypeError, "convert"),
        (lambda: roost.Map(np.array([1], "i4"), [1]).find(np.array([1])), TypeError, "convert"),
        (lambda: roost.Map(np.array([1], "i4"), [1]).find([2**40]), OverflowError, "int32"),
        (lambda: roost.unique([2**70, 1]), OverflowError, "roost.unique: integers that neither"),
        (lambda: roost.unique([2**63 + 1, 2**63, -1]), OverflowError, "neither"),
        (lambda: roost.unique(10**5000), OverflowError, "neither"),
        (lambda: roost.isin([1], [[2**70]]), OverflowError, "neither"),
        (lambda: roost.group_by([1]).sum([2**70]), OverflowError, "neither"),
        (lambda: roost.ConcurrentMap().insert([-(2**70)], [1]), OverflowError, "neither"),
        (lambda: roost.ConcurrentMap().insert([1], [2**70]), OverflowError, "neither"),
        (lambda: roost.Map([1], [1]).find([1], missing=2**70), OverflowError, "missing"),
        (lambda: roost.unique([2**70, None]), TypeError, "NoneType and int"),
        (lambda: roost.Map([1], [1]).find([1], missing="x"), TypeError, "missing"),
        (lambda: roost.Map([1], np.array([1], "u1")).find([1], missing=300), OverflowError, "missing"),
        (lambda: roost.Map([1], [1])[5], KeyError, "5"),
        (lambda: roost.Map([1], [1])[np.array([1, 5])], KeyError, "1 of 2"),
        (lambda: roost.ConcurrentMap("S9"), TypeError, "8 bytes"),
        (lambda: roost.ConcurrentMap("i8", "S3"), TypeError, "values of type"),
        (lambda: roost.ConcurrentMap(capacity=-1), ValueError, "capacity"),
        (lambda: roost.ConcurrentMap(load_factor=2.0), ValueError, "load factor"),
        (lambda: roost.ConcurrentMap().insert([1], [1.5]), OverflowError, "1.5 is not a value"),
        (lambda: roost.ConcurrentMap().insert([1, 2], [1]), ValueError, "2 keys"),
        (lambda: roost.ConcurrentMap("i8", "i2").add([1], [1]), TypeError, "sums"),
        (lambda: roost.Index(["a"]).get_indexer([1]), TypeError, "strings"),
        (lambda: roost.Index([1]).get_indexer(["a"]), TypeError, "are str, but those of the table are int64"),
        (lambda: roost.Map([1], [1])["a"], TypeError, "keys are str, but those of the table are int64"),
        (lambda: roost.Set([1]).contains(np.array([b"a" * 40], "O")), TypeError, "keys are bytes, but"),
        (lambda: roost.ConcurrentMap().insert(np.array(["a"], "O"), 1), TypeError, "keys are str, but"),
        (lambda: roost.Set([1]).contains(np.array([1, "a"], "O")), TypeError, "objects of int and str"),
        (lambda: roost.Set([1]).contains([decimal.Decimal(1)]), TypeError, "list of Decimal; convert them"),
        (lambda: roost.Set([1]).contains([AWARE]), TypeError, "time zone; pass them in UTC"),
        (lambda: roost.Map([1], [1])[decimal.Decimal("0.1")], KeyError, "0.1"),
        (lambda: roost.Map([1], [1]).find(None), TypeError, "NoneType"),
        (lambda: roost.Index(None), TypeError, "NoneType"),
        (lambda: roost.ConcurrentMap(load_factor="a"), TypeError, "load_factor='a'"),
        (lambda: roost.Store(load_factor=None), TypeError, "load_factor=None"),
        (lambda: roost.Set([b"ab"]).contains([b"abc"]), OverflowError, "longer than"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_queries_by_bytes_may_be_of_a_wider_type():
    index = roost.Index(np.array([b"ab", b"c"]))
    assert index.get_indexer(np.array([b"c", b"ab"], "S9")).tolist() == [1, 0]
    assert b"c" in index and b"abc" not in index


def test_integers_that_no_float_has_are_no_queries():
    table = roost.Map(np.array([2.0**53]), [1])
    assert table.find([2**53]).tolist() == [1]
    with pytest.raises(OverflowError):
        table.find([2**53 + 1])
    with pytest.raises(TypeError):
        table.find(np.array([2**53 + 1]))
    assert roost.isin(np.array([2**53 + 1, 2**53]), np.array([2.0**53])).tolist() == [False, True]


def test_large_integers_of_lists_become_no_floats():
    keys = roost.unique([2**64 - 1, 2**64 - 2, 1], sorted=True)
    assert keys.dtype == np.uint64 and keys.tolist() == [1, 2**64 - 2, 2**64 - 1]
    assert roost.unique([2.0**63, -1, 2.0**63], sorted=True).tolist() == [-1.0, 2.0**63]
    assert 2**70 not in roost.Index([1, 2])


def test_keys_of_another_type_are_in_no_table():
    table = roost.Map(np.array([1, 2], "i4"), [10, 20])
    assert 2**32 + 1 not in table and 1.5 not in table and "1" not in table
    assert decimal.Decimal(2) in table and decimal.Decimal("0.1") not in table and 2j not in table
    assert table[decimal.Decimal(2)] == 20 and table.get(10**400, 5) == table.get(AWARE, 5) == 5
    dates = roost.Index(np.array([AWARE.replace(tzinfo=None)], "M8[ns]"))
    assert AWARE not in dates and AWARE.replace(tzinfo=None) in dates
    assert table.find(np.array([1], "i2")).tolist() == [10]  # which every int32 can hold
