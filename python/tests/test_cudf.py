"""Columns of cuDF: slices, results that go back, work on the default stream. Skipped where there is no cuDF,
or no GPU."""

import numpy as np
import pytest
import roost
from conftest import LIBRARIES

if not {"cupy", "torch-cuda"} & {on.name for on in LIBRARIES}:
    pytest.skip("needs CuPy or torch, and a GPU", allow_module_level=True)
pa = pytest.importorskip("pyarrow")
plc = pytest.importorskip("pylibcudf", exc_type=ImportError)

KINDS = [pa.int8(), pa.int64(), pa.bool_(), pa.float32(), pa.timestamp("us"), pa.string()]
KINDS.append(pa.decimal128(38, 2))


def made(kind, n=210):
    """A column of cuDF, a third of it null, and its values."""
    rng = np.random.default_rng(n)
    numbers = pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.3)
    texts = [None if i is None else "\u00e9" * i for i in numbers.to_pylist()]
    given = pa.array(texts) if kind == pa.string() else numbers.cast(kind)
    return plc.Column.from_arrow(given), given.to_pylist()


def read(column):
    """A column of roost, or an array of CuPy or torch, as a list."""
    return (column.to_pyarrow() if hasattr(column, "to_pyarrow") else column).tolist()


def again(column):
    """A column of cuDF by its distinct keys and their numbers, as a list."""
    keys, inverse = roost.unique(column, return_inverse=True)
    keys = read(keys)
    return [keys[i] for i in read(inverse)]


@pytest.mark.parametrize("first, last", [(0, 70), (3, 9), (8, 72), (37, 200), (64, 128), (199, 201)])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_slices(kind, first, last):
    column, values = made(kind)
    (part,) = plc.copying.slice(column, [first, last])
    (rest,) = plc.copying.slice(part, [1, last - first])
    assert again(part) == values[first:last] and again(rest) == values[first + 1 : last]
    groups = roost.group_by(plc.Column.from_arrow(pa.array(range(last - first))))
    found = dict(zip(read(groups.keys), read(groups.first(part))))
    assert [found[i] for i in range(last - first)] == values[first:last]


def test_tables_of_slices():
    columns, values = zip(*map(made, KINDS))
    (part,) = plc.copying.slice(plc.Table(columns), [37, 190])
    keys, inverse = roost.unique(part, return_inverse=True)
    rows = list(zip(*map(read, keys.columns)))
    assert [rows[i] for i in read(inverse)] == list(zip(*values))[37:190]


def test_series():
    cudf = pytest.importorskip("cudf", exc_type=ImportError)
    values = ["a", None, "bb", "c", None, "bb"] * 20
    assert again(cudf.Series(values).iloc[7:31].to_pylibcudf()[0]) == values[7:31]
    assert sorted(read(roost.unique(cudf.Series([1, 5, 3, 5]).iloc[1:]))) == [3, 5]
    with pytest.raises(TypeError, match="mask"):
        roost.partition(cudf.Series([1, None, 3]), 2)


@pytest.mark.parametrize("n", [1, 5, 8, 9, 64, 511, 513, 1000, 300_000])
def test_results_with_nulls_go_back(n):
    """cuDF copies whole pieces of 64 bytes of a bitmap."""
    bools = [None if i % 3 == 0 else i % 2 == 0 for i in range(n)]
    column, numbers = (plc.Column.from_arrow(pa.array(bools).cast(kind)) for kind in (pa.bool_(), pa.int8()))
    assert set(plc.Column.from_arrow(roost.unique(column)).to_pylist()) == set(bools)
    groups = roost.group_by(plc.Column.from_arrow(pa.array(range(n))))
    order = np.argsort(plc.Column.from_arrow(groups.keys).to_pylist())
    for how in ("any", "max", "first", "sum"):
        result = getattr(groups, how)(numbers if how == "sum" else column)
        found = plc.Column.from_arrow(result).to_pylist()
        assert [found[i] for i in order] == bools, how


def test_work_on_the_default_stream_is_waited_for():
    cupy = pytest.importorskip("cupy")
    column, add = plc.Column.from_arrow(pa.array(np.arange(1_000_000))), plc.binaryop.BinaryOperator.ADD
    for late in (0, 500):
        with cupy.cuda.Stream.null:
            slow = cupy.ones(1 << 20)
            for _ in range(late):
                slow = cupy.sin(slow)
        doubled = plc.binaryop.binary_operation(column, column, add, plc.DataType(plc.TypeId.INT64))
        with cupy.cuda.Stream(non_blocking=True):
            found = np.sort(roost.unique(doubled).to_pyarrow().to_numpy())
        assert np.array_equal(found, 2 * np.arange(1_000_000))
