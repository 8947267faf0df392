"""Columns of cuDF: slices, results that go back, work on the default stream. Skipped where there is no cuDF,
or no GPU."""

import decimal

import numpy as np
import pytest
import roost
from conftest import LIBRARIES

if not {"cupy", "torch-cuda"} & {on.name for on in LIBRARIES}:
    pytest.skip("needs CuPy or torch, and a GPU", allow_module_level=True)
pa = pytest.importorskip("pyarrow")
plc = pytest.importorskip("pylibcudf", exc_type=ImportError)

KINDS = [pa.int8(), pa.int64(), pa.bool_(), pa.float32(), pa.string(), pa.timestamp("us")]
KINDS.append(pa.decimal128(38, 2))
SLICES = [(0, 200), (0, 70), (3, 9), (8, 72), (37, 200), (64, 128), (199, 200)]


def made(kind, n=210, seed=5):
    """A column of cuDF, a third of it null, and its values."""
    rng = np.random.default_rng(seed)
    numbers = [None if rng.random() < 0.3 else int(rng.integers(0, 9)) for _ in range(n)]
    if pa.types.is_string(kind):
        given = pa.array([None if i is None else "é" * i for i in numbers], kind)
    elif pa.types.is_decimal(kind):
        given = pa.array([None if i is None else decimal.Decimal(i) / 4 for i in numbers], kind)
    else:
        given = pa.array(numbers, pa.int64()).cast(kind)
    return plc.Column.from_arrow(given), given.to_pylist()


def read(column):
    """A column of roost, or an array of CuPy or torch, as a list."""
    return (column.to_pyarrow() if hasattr(column, "to_pyarrow") else column).tolist()


def again(column):
    """A column of cuDF by its distinct keys and their numbers, as a list."""
    keys, inverse = roost.unique(column, return_inverse=True)
    keys = read(keys)
    return [keys[i] for i in read(inverse)]


@pytest.mark.parametrize("first, last", SLICES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_slices(kind, first, last):
    column, values = made(kind)
    (part,) = plc.copying.slice(column, [first, last])
    wanted = values[first:last]
    assert again(part) == wanted
    index = roost.Index(part)
    assert [wanted[i] for i in read(index.get_indexer(part))] == wanted
    groups = roost.group_by(plc.Column.from_arrow(pa.array(range(last - first))))
    found = dict(zip(read(groups.keys), read(groups.first(part))))
    assert [found[i] for i in range(last - first)] == wanted
    if last - first > 1:
        (rest,) = plc.copying.slice(part, [1, last - first])
        assert again(rest) == wanted[1:]


def test_tables_of_slices():
    columns, values = zip(*(made(kind, seed=i) for i, kind in enumerate(KINDS)))
    (part,) = plc.copying.slice(plc.Table(columns), [37, 190])
    keys, inverse = roost.unique(part, return_inverse=True)
    rows = list(zip(*map(read, keys.columns)))
    assert [rows[i] for i in read(inverse)] == list(zip(*values))[37:190]


def test_slices_of_series():
    cudf = pytest.importorskip("cudf", exc_type=ImportError)
    values = ["a", None, "bb", "c", None, "bb"] * 20
    column, _ = cudf.Series(values).iloc[7:31].to_pylibcudf()
    assert again(column) == values[7:31]
    with pytest.raises(TypeError, match="mask"):
        roost.partition(cudf.Series([1, None, 3]), 2)
    assert len(roost.unique(cudf.Series([1, 5, 3, 5]).iloc[1:])) == 2


@pytest.mark.parametrize("n", [1, 5, 8, 9, 64, 511, 513, 1000, 300_000])
def test_results_with_nulls_go_back(n):
    """cuDF copies whole pieces of 64 bytes of a bitmap."""
    bools = [None if i % 3 == 0 else i % 2 == 0 for i in range(n)]
    column = plc.Column.from_arrow(pa.array(bools, pa.bool_()))
    keys = roost.unique(column)
    assert set(plc.Column.from_arrow(keys).to_pylist()) == set(bools)
    groups = roost.group_by(plc.Column.from_arrow(pa.array(range(n))))
    order = np.argsort(plc.Column.from_arrow(groups.keys).to_pylist())
    for how in ("any", "all", "max", "first", "last"):
        found = plc.Column.from_arrow(getattr(groups, how)(column)).to_pylist()
        assert [found[i] for i in order] == bools, how
    numbers = plc.Column.from_arrow(pa.array([None if b is None else int(b) for b in bools], pa.int8()))
    found = plc.Column.from_arrow(groups.sum(numbers)).to_pylist()
    assert [found[i] for i in order] == bools


def test_work_on_the_default_stream_is_waited_for():
    cupy = pytest.importorskip("cupy")
    n = 1_000_000
    column = plc.Column.from_arrow(pa.array(np.arange(n)))
    add, wide = plc.binaryop.BinaryOperator.ADD, plc.DataType(plc.TypeId.INT64)
    plc.binaryop.binary_operation(column, column, add, wide)
    roost.unique(column)
    with cupy.cuda.Stream.null:
        slow = cupy.ones(1 << 20)
        for _ in range(500):
            slow = cupy.sin(slow)
    doubled = plc.binaryop.binary_operation(column, column, add, wide)
    with cupy.cuda.Stream(non_blocking=True):
        found = np.sort(roost.unique(doubled).to_pyarrow().to_numpy())
    assert np.array_equal(found, 2 * np.arange(n))
