"""Store: large values, growth, files."""

import pickle

import numpy as np
import pytest
import roost
from conftest import keys
from hypothesis import given
from hypothesis import strategies as st

SHAPES = [
    *[("u1", ()), ("f2", 3), ("f4", 4), ("f4", 16)],
    *[("i4", (3, 5)), ("f8", (7, 9)), ("f8", 300), ("c16", 256)],
]


@given(keys(["i4", "u8", "f4", "f8", "?"]), keys(["i4"]), st.sampled_from(SHAPES))
def test_store_is_a_dict(on, x, y, kind):
    if on.name != "numpy" and x.dtype.kind == "b":
        x = x.astype("i4")
    rng = np.random.default_rng(len(x))
    dtype, tail = np.dtype(kind[0]), kind[1] if isinstance(kind[1], tuple) else (kind[1],)
    x = np.unique(x + x.dtype.type(0) if x.dtype.kind == "f" else x)  # of two values either may win
    values = rng.integers(0, 100, (len(x), *tail)).astype(dtype)
    table = roost.Store(x.dtype, *kind, like=on(np.zeros(1)))
    assert table.insert(on(x[::2]), on(values[::2])) == len(x[::2])
    assert table.insert(on(x), on(values + dtype.type(1))) == len(x) - len(x[::2])
    assert len(table) == len(x) and table.valid()
    expected = values + (np.arange(len(x)) % 2).astype(dtype).reshape(-1, *[1] * len(tail))
    queries = np.concatenate([x, y.astype(x.dtype)])
    found, there = on.back(table.find(on(queries), missing=7)), on.back(table.contains(on(queries)))
    assert found.dtype == dtype and found.shape == (len(queries), *tail)
    assert np.array_equal(found[: len(x)], expected) and there[: len(x)].all()
    assert np.array_equal(there, np.isin(queries, x) | (queries != queries) & np.isnan(x.astype("f8")).any())
    assert (found[~there] == dtype.type(7)).all()
    all_keys, all_values = on.back(table.items())
    order = np.argsort(all_keys, kind="stable")
    assert np.array_equal(all_keys[order], x, equal_nan=x.dtype.kind == "f")
    assert np.array_equal(all_values[order], expected)
    assert table.erase(on(x[::3])) == len(x[::3]) and table.valid()
    assert not on.back(table.contains(on(x[::3]))).any()


@pytest.mark.parametrize("size", [1, 8, 16, 32, 64, 128, 256, 300, 512, 1024, 2048, 4096])
def test_values_of_every_size(on, size, tmp_path):
    x = np.arange(2000, dtype="i8") ** 3
    values = np.random.default_rng(size).integers(0, 256, (len(x), size), dtype="u1")
    table = roost.Store("int64", "uint8", size, like=on(np.zeros(1)))
    assert table.insert(on(x), on(values)) == len(x)
    assert np.array_equal(on.back(table.find(on(x[::-1].copy()))), values[::-1])
    assert (on.back(table.find(on(x + 2**40), missing=3)) == 3).all()
    table.save(tmp_path / "store")
    again = roost.Store.load(tmp_path / "store", "int64", "uint8", size)
    assert np.array_equal(again.find(x), values)


def filled(on, n=5000):
    table = roost.Store("int32", "float32", 20, like=on(np.zeros(1)))
    x = np.arange(n, dtype="i4") * 7
    table.insert(on(x), on(np.outer(x, np.ones(20)).astype("f4")))
    return table, x


def test_store_grows_shrinks_and_takes_single_values(on):
    table, x = filled(on)
    more = np.arange(100_000, dtype="i4") * 7 + 1
    row = np.arange(20, dtype="f4")
    assert table.insert_or_assign(on(more), on(row)) == len(more)  # one row for all
    assert len(table) == len(x) + len(more) and table.capacity >= len(table)
    assert np.array_equal(on.back(table[8]), row) and table.get(3) is None and 3 not in table
    table[3] = 2.5
    assert (on.back(table[3]) == 2.5).all()
    table.erase(on(more))
    large = table.nbytes
    table.shrink_to_fit()
    assert table.nbytes < large / 4 and sum(table.memory.values()) <= large
    assert np.array_equal(on.back(table.find(on(x)))[:, 3], x.astype("f4")) and table.valid()
    table.reserve(300_000)
    assert table.capacity >= 300_000
    table.clear()
    assert len(table) == 0 and list(table) == []


def test_store_has_records():
    kind = np.dtype([("name", "S9"), ("born", "i2"), ("height", "f8")])
    table = roost.Store("int64", kind)
    people = np.array([(b"Ada", 1815, 1.65), (b"Alan", 1912, 1.79)], kind)
    table.insert([5, 9], people)
    assert table[9]["name"] == b"Alan" and table.find([5])[0] == people[0]
    assert sorted(table.values()["born"].tolist()) == [1815, 1912]


def test_files(on, tmp_path):
    table, x = filled(on)
    table.erase(on(x[::5]))
    file = tmp_path / "rows \u00e9"
    table.save(file)
    table.save(str(file))  # again, over itself
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    for like in (None, on(np.zeros(1))):
        copy = roost.Store.load(file, "int32", "float32", 20, like=like)
        found = copy.find(x if like is None else on(x), missing=-1)
        found = found if like is None else on.back(found)
        assert len(copy) == len(table) and copy.valid()
        assert np.array_equal(found, on.back(table.find(on(x), missing=-1)))
        copy.insert([1], np.ones((1, 20), "f4") if like is None else on(np.ones((1, 20), "f4")))
        assert len(copy) == len(table) + 1


def test_files_that_are_none(tmp_path):
    table, _ = filled(lambda array: array)
    good = tmp_path / "good"
    table.save(good)
    types = ("int32", "float32", 20)
    with pytest.raises(OSError, match=r"has keys of int32 .* shape \(20,\); expected .* shape \(40,\)"):
        roost.Store.load(good, "int32", "float32", 40)
    whole, bad = good.read_bytes(), tmp_path / "bad"
    rng = np.random.default_rng(0)
    for content in (b"", b"x", rng.bytes(100_000), pickle.dumps([1]), whole[:-1], whole + b"x", whole[:1000]):
        bad.write_bytes(content)
        with pytest.raises(OSError, match="bad") as caught:
            roost.Store.load(bad, *types)
        assert str(caught.value).startswith("roost.Store.load: ") and "\n" not in str(caught.value)
    for at in [*range(0, 128, 5), *rng.integers(0, len(whole), 30).tolist(), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        bad.write_bytes(damaged)
        with pytest.raises(OSError):
            roost.Store.load(bad, *types)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(OSError, match="^roost.Store.load: "):
            roost.Store.load(missing, *types)
        with pytest.raises(OSError, match="^roost.Store.save: "):
            table.save(missing / "none" / "file")
    assert np.array_equal(roost.Store.load(good, *types).find([7]), table.find([7]))


def test_types_of_a_file_are_checked(on, tmp_path):
    file = tmp_path / "store"
    like = on(np.zeros(1))
    record = [("a", "i4"), ("b", "i4")]
    for types, others in (
        (
            ("int64", "float32", 3),
            [
                ("uint64", "float32", 3),
                ("int64", "int32", 3),
                ("int64", "float32", 4),
                ("int32", "float32", 3),
            ],
        ),
        (("M8[s]", "float64"), [("M8[ms]", "float64"), ("int64", "float64"), ("M8[s]", "float32", 2)]),
        (("int8", "uint8", (2, 2)), [("int8", "uint8", 4), ("uint8", "uint8", (2, 2)), ("?", "i1", (2, 2))]),
        (
            ("int64", np.dtype(record, align=True)),
            [("int64", "int64"), ("int64", [("a", "i4"), ("c", "i4")])],
        ),
    ):
        here = None if isinstance(types[1], np.dtype) or types[0][0] == "M" else like
        store = roost.Store(*types, like=here)
        store.save(file)
        assert roost.Store.load(file, *types, like=here)._kind is store._kind
        for other in others:
            with pytest.raises(
                OSError, match="^roost.Store.load: .*: has keys of .*; expected keys of "
            ):
                roost.Store.load(file, *other)
    assert len(roost.Store.load(file, "int64", record)) == 0  # aligned or not


def test_files_without_types(tmp_path):
    """As C++ writes them, and earlier versions did."""
    table, x = filled(lambda array: array)
    table._table.save(table._library.place(), str(tmp_path / "store"), "")
    again = roost.Store.load(tmp_path / "store", "int32", "float32", 20)
    assert np.array_equal(again.find(x), table.find(x))
    with pytest.raises(OSError, match="^roost.Store.load: .* has keys of more bytes than int8"):
        roost.Store.load(tmp_path / "store", "int8", "float32", 20)
    with pytest.raises(OSError, match="^roost.Store.load: .*values of 128 bytes; expected 8 and 256"):
        roost.Store.load(tmp_path / "store", "int32", "float32", 40)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: roost.Store("S9"), TypeError, "8 bytes"),
        (lambda: roost.Store("i8", "O"), TypeError, "fixed size"),
        (lambda: roost.Store("i8", "U3"), TypeError, "fixed size"),
        (lambda: roost.Store("i8", "f8", 513), ValueError, "4104 bytes"),
        (lambda: roost.Store("i8", "f8", (3, 0)), ValueError, "above 0"),
        (lambda: roost.Store("i8", "f8", 2.5), ValueError, "above 0"),
        (lambda: roost.Store("i8", "f8", capacity=-1), ValueError, "capacity"),
        (lambda: roost.Store("i8", "f8", capacity=2.5), TypeError, "whole number"),
        (lambda: roost.Store().reserve(-1), ValueError, "n=-1"),
        (lambda: roost.Store().reserve(10**14), MemoryError, "a table of .* bytes"),
        (lambda: roost.Store("i8", "f8", budget=-1), ValueError, "budget"),
        (lambda: roost.Store("i8", "f8", load_factor=0), ValueError, "load factor"),
        (lambda: roost.Store("i8", "bfloat16 of none"), TypeError, "no type"),
        (lambda: roost.Store("i8", "f4", 3).insert([1, 2], np.zeros((2, 4), "f4")), ValueError, "of shape"),
        (lambda: roost.Store("i8", "f4", 3).insert([1, 2], np.zeros((1, 3), "f4")), ValueError, "of shape"),
        (lambda: roost.Store("i8", "i4", 3).insert([1], np.zeros((1, 3), "f4")), TypeError, "convert"),
        (lambda: roost.Store("i8", "f4", 3)[5], KeyError, "5"),
        (lambda: roost.Store("i4").find(np.array([1])), TypeError, "convert"),
        (lambda: roost.Store("i8", "f4", 3).find([5], missing="x"), TypeError, "missing"),
        (lambda: roost.Store("i8", "f8", True), ValueError, "above 0"),
        (lambda: roost.Store("i8", "f8", load_factor=".5"), TypeError, "0.01 to 1"),
        (lambda: roost.Store.load(5), TypeError, "int"),
        (lambda: roost.Store.load(""), ValueError, "empty"),
        (lambda: pickle.dumps(roost.Store()), TypeError, "save"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
