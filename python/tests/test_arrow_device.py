"""Columns of Arrow in memory of a device, by Arrow's C device interface: random ones, against dicts and
against the same columns of pyarrow. A producer of our own copies pyarrow's buffers to the CPU (device type 1)
and, where there is one, to a GPU (type 2); once a struct is released, what was there is overwritten."""

import collections
import ctypes
import decimal
import gc
import itertools
import math
import os
import sys

import numpy as np
import pytest
import roost
from columns import of_the_day
from conftest import LIBRARIES

pa = pytest.importorskip("pyarrow")

SEED = int(os.environ.get("ROOST_SEED", 0))
DEVICES = ["cpu", *(["gpu"] if {"cupy", "torch-cuda"} & {on.name for on in LIBRARIES} else [])]
SIZES = (0, 1, 7, 1000, 30_000)
LARGE = 300_000
LATE = 50_000_000  # cycles

# Arrow's structs.


class ArrowArray(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in "length null_count offset n_buffers n_children".split()),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", ArrowArray),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


class ArrowDeviceArrayStream(ctypes.Structure):
    _fields_ = [
        ("device_type", ctypes.c_int32),
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ArrowDeviceArray))),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
pointer_of_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _drop(capsule):
    """Releases an array that nobody has taken out of its capsule."""
    address = pointer_of_dying(capsule, b"arrow_device_array")
    if (array := ArrowDeviceArray.from_address(address).array).release:
        array.release(ctypes.pointer(array))


_dropped = ctypes.cast(_drop, ctypes.c_void_p)


# Memory.


def library():
    """The one that roost takes for results on a GPU."""
    return sys.modules.get("cupy") or sys.modules["torch"]


class Cpu:
    type, id = 1, -1

    @staticmethod
    def copy(data):
        memory = np.array(data)
        return memory, memory.ctypes.data

    @staticmethod
    def wipe(memory):
        memory.fill(0xA5)

    @staticmethod
    def read(address, n):
        return bytes((ctypes.c_char * n).from_address(address))

    @staticmethod
    def array(array):
        return array

    @staticmethod
    def late(copy):
        """What copy() returns, and an event; None: none that a program waits for."""
        return copy(), ctypes.c_void_p(1)


class _View:
    def __init__(self, address, n):
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (n,), "typestr": "|u1", "version": 3
        }  # fmt: skip


class Gpu:
    type, id = 2, 0

    @staticmethod
    def copy(data):
        if library().__name__ == "torch":
            memory = library().from_numpy(np.array(data)).cuda()
            return memory, memory.data_ptr()
        memory = library().asarray(np.array(data))
        return memory, memory.data.ptr

    @staticmethod
    def wipe(memory):
        """On a stream that waits for none: whoever still reads sees it."""
        if library().__name__ == "torch":
            stream = library().cuda.Stream()
            with library().cuda.stream(stream):
                memory.fill_(0xA5)
            return stream.synchronize()
        with library().cuda.Stream(non_blocking=True) as stream:
            memory.fill(0xA5)
        return stream.synchronize()

    @staticmethod
    def read(address, n):
        view = _View(address, n)
        if library().__name__ == "torch":
            return library().as_tensor(view, device="cuda").cpu().numpy().tobytes()
        return library().asarray(view).get().tobytes()

    @staticmethod
    def array(array):
        return (
            library().from_numpy(array).cuda() if library().__name__ == "torch" else library().asarray(array)
        )

    @staticmethod
    def late(copy):
        """Copies on another stream, where long work comes before."""
        if library().__name__ == "torch":
            torch = library()
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(LATE)
                made, event = copy(), torch.cuda.Event()
                event.record()
            return made, (ctypes.c_void_p(event.cuda_event), event)
        cupy = library()
        with cupy.cuda.Stream(non_blocking=True):
            slow = cupy.ones(1 << 20)
            for _ in range(500):
                slow = cupy.sin(slow)
            made, event = copy(), cupy.cuda.Event(disable_timing=True)
            event.record()
        return made, (ctypes.c_void_p(event.ptr), event, slow)


PLACES = {"cpu": Cpu, "gpu": Gpu}


@pytest.fixture(params=DEVICES)
def place(request):
    return PLACES[request.param]


# The producer.

_exports, _structs = {}, []  # of arrays that are not released; of all, which capsules refer to
_numbers = iter(range(1, 2**62))
released, exported = collections.Counter(), collections.Counter()


@RELEASE
def _release(pointer):
    number = pointer.contents.private_data
    pointer.contents.release = RELEASE()
    released[number] += 1
    place, memory = _exports.pop(number)
    for piece in memory[0]:
        place.wipe(piece)


@pytest.fixture(autouse=True)
def each_is_released_once():
    released.clear()
    exported.clear()
    yield
    gc.collect()
    missing = exported - released
    assert not missing, f"{len(missing)} of {len(exported)} arrays are not released"
    assert max(released.values(), default=1) == 1, "an array is released twice"


class Exported:
    """A column, a record batch, or a struct of columns in memory of a device. `skip`: rows of the fields
    before the first one; `late`: written after it has been exported, when an event happens."""

    def __init__(self, column, place, skip=0, late=False):
        self.column, self.place, self.skip, self.is_late = column, place, skip, late

    def __len__(self):
        return len(self.column) - self.skip

    def _fill(self, struct, column, memory, skip=0):
        pieces, kept = memory
        kind, struct.length = column.type, len(column)
        struct.offset, struct.null_count = column.offset, -1 if column.null_count else 0
        if pa.types.is_dictionary(kind):
            values = ArrowArray()
            self._fill(values, column.dictionary, memory)
            values.release = _child_release
            struct.dictionary = ctypes.pointer(values)
            column = column.indices
        buffers = [None if b is None else np.frombuffer(b, np.uint8) for b in column.buffers()]
        if pa.types.is_null(kind):
            buffers, struct.null_count = [], len(column)
        if kind in (pa.string_view(), pa.binary_view()):
            buffers.append(np.array([len(b) for b in buffers[2:]], np.int64).view(np.uint8))
        addresses = []
        for data in buffers:
            piece, address = (None, None) if data is None else self.place.copy(data)
            pieces.extend([] if piece is None else [piece])
            addresses.append(address)
        self._set(struct, addresses, kept)
        struct.release = _child_release

    @staticmethod
    def _set(struct, addresses, kept):
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        struct.n_buffers, struct.buffers = len(addresses), pointers
        kept.append((pointers, struct))

    def _made(self, memory):
        array = ArrowArray()
        if not isinstance(self.column, pa.RecordBatch):
            self._fill(array, self.column, memory)
            return array
        fields = [ArrowArray() for _ in self.column.columns]
        for field, column in zip(fields, self.column.columns):
            self._fill(field, column, memory)
        children = (ctypes.POINTER(ArrowArray) * len(fields))(*map(ctypes.pointer, fields))
        memory[1].append((children, fields))
        array.length, array.offset = len(self), self.skip
        array.n_children, array.children = len(fields), children
        self._set(array, [None], memory[1])
        return array

    def device_array(self):
        number, memory = next(_numbers), ([], [])
        array, event = (
            self.place.late(lambda: self._made(memory)) if self.is_late else (self._made(memory), None)
        )
        array.release, array.private_data = _release, number
        result = ArrowDeviceArray(array, self.place.id, self.place.type)
        if event is not None:
            handle = event[0] if isinstance(event, tuple) else event
            memory[1].append((event, handle))
            result.sync_event = ctypes.addressof(handle)
        _exports[number] = self.place, memory
        _structs.append(result)
        exported[number] += 1
        return result

    def schema(self):
        kind = self.column.schema if isinstance(self.column, pa.RecordBatch) else self.column.type
        return kind.__arrow_c_schema__()

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        assert requested_schema is None and not options
        result = self.device_array()
        return self.schema(), new_capsule(ctypes.addressof(result), b"arrow_device_array", _dropped)


@RELEASE
def _child_release(pointer):
    raise AssertionError("a field is released by itself")


class Streamed:
    """Several of these as a stream."""

    def __init__(self, chunks):
        self.chunks, self.released, self.fails = chunks, 0, False

    def __arrow_c_device_stream__(self, requested_schema=None, **options):
        left = iter([chunk.device_array() for chunk in self.chunks])
        fields = dict(ArrowDeviceArrayStream._fields_)

        def get_schema(_, out):
            kind = self.chunks[0].column
            (kind.schema if isinstance(kind, pa.RecordBatch) else kind.type)._export_to_c(out)
            return 0

        def get_next(_, out):
            ctypes.memset(out, 0, ctypes.sizeof(ArrowDeviceArray))
            if (chunk := next(left, None)) is not None:
                ctypes.memmove(out, ctypes.addressof(chunk), ctypes.sizeof(ArrowDeviceArray))
            elif self.fails:
                return 5
            return 0

        def release(stream):
            self.released += 1
            ArrowDeviceArrayStream.from_address(stream).release = fields["release"]()

        self.stream = ArrowDeviceArrayStream(
            self.chunks[0].place.type,
            fields["get_schema"](get_schema),
            fields["get_next"](get_next),
            fields["get_last_error"](lambda _: None),
            fields["release"](release),
        )
        return new_capsule(ctypes.addressof(self.stream), b"arrow_device_array_stream", None)


# The consumer.


def _buffers(kind, array, place):
    n = array.length + array.offset
    bits = (n + 7) // 8
    wide = kind in (pa.large_string(), pa.large_binary())
    result = []
    for i in range(array.n_buffers):
        size = bits
        if i == 1 and (wide or kind in (pa.string(), pa.binary())):
            size = (n + 1) * (8 if wide else 4)
        elif i == 1 and not pa.types.is_boolean(kind):
            size = n * kind.bit_width // 8
        elif i == 2:
            size = int(np.frombuffer(result[1], np.int64 if wide else np.int32)[n])
        address = array.buffers[i]
        result.append(None if address is None else pa.py_buffer(place.read(address, size) if size else b""))
    return result


def column_of(column, place):
    """A DeviceColumn as an array of pyarrow, read where it lies, and released."""
    schema, capsule = column.__arrow_c_device_array__()
    device = ArrowDeviceArray.from_address(pointer_of(capsule, b"arrow_device_array"))
    assert (device.device_type, device.device_id) == (place.type, place.id) and not device.sync_event
    kind, array = pa.DataType._import_from_c_capsule(schema), device.array
    if pa.types.is_null(kind):
        result = pa.nulls(array.length)
    else:
        result = pa.Array.from_buffers(kind, array.length, _buffers(kind, array, place), -1, array.offset)
    result.validate(full=True)
    nulls = result.null_count
    assert array.null_count in (-1, nulls)
    array.release(ctypes.pointer(array))
    assert not array.release
    assert column.to_pyarrow().equals(result) or any(v != v for v in result.to_pylist())
    return result


def exact(value):
    """Something hashable that is equal where keys are."""
    if isinstance(value, (float, np.floating)):
        return "NaN" if math.isnan(value) else float(value) + 0.0
    return value


def values_in(x, place):
    """A result, an array or a column, as a list of Python."""
    if hasattr(x, "__arrow_c_device_array__"):
        return list(map(exact, column_of(x, place).to_pylist()))
    if place is Gpu:
        assert type(x).__module__.split(".")[0] == library().__name__ and "cuda" in str(x.device).lower()
        x = x.cpu().numpy() if library().__name__ == "torch" else x.get()
    assert type(x) is np.ndarray
    return list(map(exact, x.tolist()))


def rows_in(x, place):
    """A table, a tuple of columns or a column as a list of tuples."""
    columns = x if isinstance(x, tuple) else getattr(x, "columns", [x])
    return list(zip(*(values_in(column, place) for column in columns)))


def rows_of(columns):
    """The rows of columns of pyarrow."""
    return list(zip(*([exact(value) for value in column.to_pylist()] for column in columns)))


# What is tried.

INTEGERS = [getattr(pa, f"{u}int{bits}")() for u in ("", "u") for bits in (8, 16, 32, 64)]
TEXTS = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.binary(3), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.string_view()),
]  # fmt: skip
TIMES = [
    pa.date32(), pa.date64(), pa.timestamp("us", "UTC"), pa.time32("s"), pa.time64("us"), pa.duration("ms")
]  # fmt: skip
NUMBERS = [*INTEGERS, pa.bool_(), pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal128(38, 3), pa.decimal128(9, 0)]
OTHERS = [pa.dictionary(pa.int16(), pa.int64()), pa.dictionary(pa.int8(), pa.bool_()), pa.null()]
TYPES = [*NUMBERS, *TIMES, *DECIMALS, *TEXTS, *OTHERS]
MANY = [pa.int64(), pa.float64(), pa.decimal128(38, 3), pa.string(), pa.dictionary(pa.int8(), pa.string())]


def column_made(rng, kind, n, part, distinct=20):
    """A random column that begins somewhere in its buffers, a part of whose rows are null."""
    n, begin = n + 11, int(rng.integers(0, 11))
    picked, missing = rng.integers(0, distinct, n), rng.random(n) < part
    if pa.types.is_null(kind):
        return pa.nulls(n)[begin : n - 11 + begin]
    if pa.types.is_dictionary(kind):
        values = column_made(rng, kind.value_type, 100, part / 2)
        codes = pa.array(picked % 100, kind.index_type, mask=missing)
        return pa.DictionaryArray.from_arrays(codes, values)[begin : n - 11 + begin]
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        pool = rng.integers(limits.min, limits.max, distinct, limits.dtype, endpoint=True)
        column = pa.array(pool[picked], kind, mask=missing)
    elif pa.types.is_boolean(kind):
        column = pa.array(picked % 2 == 0, mask=missing)
    elif pa.types.is_floating(kind):
        pool = rng.normal(size=distinct + 4)
        pool[:4] = [0.0, -0.0, np.nan, -np.inf]
        floats = pool[picked].astype(kind.to_pandas_dtype())
        column = pa.array(floats, kind, mask=missing, from_pandas=False)
    elif pa.types.is_decimal(kind):
        scale = 10**30 if kind.precision > 18 else 1
        values = [decimal.Decimal(int(i - distinct // 2) * scale) for i in picked]
        column = pa.array([None if m else v for v, m in zip(values, missing)], kind)
    elif kind in TEXTS:
        texts = [f"{i * 7}é\0 and so on, and on"[: 1 + i * 5 % 30] if i else "" for i in range(distinct)]
        if kind == pa.binary(3):
            texts = [str(i).encode()[:3].ljust(3, b"\0") for i in range(distinct)]
        column = pa.array(
            [None if m else texts[i] for i, m in zip(picked, missing)],
            pa.binary(3) if kind == pa.binary(3) else pa.string(),
        ).cast(kind)
    else:
        day = 86_400_000 if kind == pa.date64() else 1
        small = kind.bit_width == 32
        numbers = picked.astype(np.int32 if small else np.int64) * day
        column = pa.array(numbers, mask=missing).cast(kind)
    return column[begin : n - 11 + begin]


def sliced(columns):
    """Columns of one table whose fields have rows before the first one, and how many."""
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


class Oracle:
    """Distinct rows by first occurrence."""

    def __init__(self, rows, drops=False):
        self.first, self.numbers, self.counts, known = [], [], [], {}
        for i, row in enumerate(rows):
            if drops and row[0] in (None, "NaN"):
                self.numbers.append(-1)
                continue
            number = known.setdefault(row, len(known))
            if number == len(self.first):
                self.first.append(i)
                self.counts.append(0)
            self.counts[number] += 1
            self.numbers.append(number)


def check_distinct(made, rows, place, single):
    wanted = Oracle(rows)
    keys, index, inverse, counts = roost.unique(
        made, return_index=True, return_inverse=True, return_counts=True
    )
    assert values_in(index, place) == wanted.first
    assert values_in(inverse, place) == wanted.numbers
    assert values_in(counts, place) == wanted.counts
    assert rows_in(keys, place) == [rows[i] for i in wanted.first]
    keys = rows_in(roost.unique(made), place)
    assert len(keys) == len(wanted.first) and set(keys) == {rows[i] for i in wanted.first}
    for drops in (False, True):
        expected = Oracle(rows, drops and single)
        codes, keys = roost.factorize(made, use_na_sentinel=drops, index_dtype="int32")
        assert values_in(codes, place) == expected.numbers
        assert rows_in(keys, place) == [rows[i] for i in expected.first]
    keys, counts = roost.value_counts(made)
    pairs = sorted(zip(wanted.counts, wanted.first), key=lambda pair: -pair[0])
    assert values_in(counts, place) == [count for count, _ in pairs]
    assert rows_in(keys, place) == [rows[i] for _, i in pairs]
    first = set(wanted.first)
    assert values_in(roost.duplicated(made), place) == [i not in first for i in range(len(rows))]
    alone = [wanted.counts[number] > 1 for number in wanted.numbers]
    assert values_in(roost.duplicated(made, keep=False), place) == alone
    last = {number: row for row, number in enumerate(wanted.numbers)}.values()
    assert values_in(roost.duplicated(made, keep="last"), place) == [i not in last for i in range(len(rows))]
    assert rows_in(roost.drop_duplicates(made), place) == [rows[i] for i in wanted.first]
    assert roost.nunique(made) == len(wanted.first)
    groups = roost.group_by(made)
    counts, keys = values_in(groups.count(), place), rows_in(groups.keys, place)
    assert dict(zip(keys, counts, strict=True)) == {rows[i]: c for i, c in zip(wanted.first, wanted.counts)}
    kept = roost.group_by(made, dropna=True)
    expected = {rows[i]: c for i, c in zip(wanted.first, wanted.counts) if not {None, "NaN"} & set(rows[i])}
    counts, keys = values_in(kept.count(), place), rows_in(kept.keys, place)
    assert dict(zip(keys, counts, strict=True)) == expected


@pytest.mark.parametrize("kind", of_the_day(TYPES), ids=str)
def test_one_column(kind, place):
    rng = np.random.default_rng(SEED)
    for n in (*SIZES, *([LARGE] if kind in (pa.string(), pa.int64()) else [])):
        for part in (0, 0.2, 1) if n < 10_000 else (0.05,):
            column = column_made(rng, kind, n, part, int(rng.choice([3, 20, 100, 5000])) if n > 100 else 20)
            check_distinct(Exported(column, place, late=n == 1000), rows_of([column]), place, True)


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_several_columns(seed, place):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([*SIZES[:4], 5000]))
    kinds = [TYPES[int(rng.integers(len(TYPES)))] for _ in range(int(rng.integers(2, 9)))]
    part = float(rng.choice([0, 0.2, 1]))
    columns = [column_made(rng, kind, n, part, 3) for kind in kinds]
    rows = rows_of(columns)
    skip = min(n, 5)
    check_distinct(Exported(sliced(columns), place), rows, place, False)
    check_distinct(Exported(sliced(columns), place, skip), rows[skip:], place, False)
    check_distinct(tuple(Exported(column, place) for column in columns), rows, place, False)


@pytest.mark.parametrize("kind", [*NUMBERS[:8], pa.bool_(), pa.float32(), pa.float64(), *TIMES], ids=str)
def test_sorted(kind, place):
    rng = np.random.default_rng(SEED)
    for n in (0, 1, 1000):
        columns = [column_made(rng, kind, n, 0.1), column_made(rng, pa.int16(), n, 0.1, 3)]
        for taken in ([columns[0]], columns, [*columns, column_made(rng, pa.float64(), n, 0.2)] * 2):
            made = Exported(sliced(taken), place)
            keys, counts = roost.unique(made, sorted=True, return_counts=True)
            wanted = collections.Counter(rows_of(taken))

            def order(row):
                return [(2, 0) if v is None else (1, 0) if v == "NaN" else (0, v) for v in row]

            assert rows_in(keys, place) == sorted(wanted, key=order)
            assert values_in(counts, place) == [wanted[row] for row in sorted(wanted, key=order)]


PAIRS = [(kind, kind) for kind in TYPES] + [
    (pa.int8(), pa.int64()), (pa.uint16(), pa.int16()), (pa.bool_(), pa.int32()), (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()), (pa.string(), pa.large_string()), (pa.dictionary(pa.int8(), pa.string()),
    pa.string_view()), (pa.null(), pa.string()), (pa.null(), pa.int32()), (pa.float16(), pa.float32()),
]  # fmt: skip


def pairs_of(left, right, how, nulls_equal):
    """The row numbers of a join."""
    rows = collections.defaultdict(list)
    for i, row in enumerate(right):
        if nulls_equal or None not in row:
            rows[row].append(i)
    found = [rows[row] if nulls_equal or None not in row else [] for row in left]
    if how == "semi":
        return [i for i, each in enumerate(found) if each]
    if how == "anti":
        return [i for i, each in enumerate(found) if not each]
    empty = [-1] if how in ("left", "outer") else []
    l, r = [], []
    for i, each in enumerate(found):
        l += [i] * len(each or empty)
        r += each or empty
    if how == "outer":
        rest = sorted(set(range(len(right))) - set(r))
        l, r = l + [-1] * len(rest), r + rest
    return l, r


def check_two(left, right, a, b, place):
    for nulls_equal in (False, True):
        semi = set(pairs_of(a, b, "semi", nulls_equal))
        found = roost.isin(left, right, nulls_equal=nulls_equal)
        assert values_in(found, place) == [i in semi for i in range(len(a))]
        for how in ("inner", "left", "outer", "semi", "anti"):
            found, wanted = (
                roost.join(left, right, how, nulls_equal=nulls_equal),
                pairs_of(a, b, how, nulls_equal),
            )
            found = (
                tuple(values_in(each, place) for each in found)
                if type(found) is tuple
                else values_in(found, place)
            )
            assert found == wanted
        l, r = pairs_of(b, a, "left", nulls_equal)
        found = roost.join(left, right, "right", nulls_equal=nulls_equal)
        assert tuple(values_in(each, place) for each in found) == (r, l)


@pytest.mark.parametrize("kinds", PAIRS, ids=str)
def test_two_columns(kinds, place):
    for n, m in ((0, 3), (3, 0), (7, 30), (1000, 200)):
        for part in (0, 0.3):
            # One pool of values for both, as far as both types have them.
            columns = [
                column_made(np.random.default_rng(SEED), kind, size, part, 40)
                for kind, size in zip(kinds, (n, m))
            ]
            if kinds[0] != kinds[1] and pa.types.is_integer(kinds[0]):
                columns = [
                    pa.array([int(v) if v is not None else None for v in rng.integers(0, 30, size)], kind)
                    for kind, size, rng in zip(
                        kinds, (n, m), (np.random.default_rng(1), np.random.default_rng(2))
                    )
                ]
            left, right = (Exported(column, place) for column in columns)
            check_two(left, right, *(rows_of([column]) for column in columns), place)


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_two_tables(seed, place):
    rng = np.random.default_rng(seed)
    n, m = (int(rng.choice([1, 7, 900])) for _ in range(2))
    kinds = [TYPES[int(rng.integers(len(TYPES)))] for _ in range(int(rng.integers(2, 6)))]
    pools = [column_made(rng, kind, 40, 0.1, 3) for kind in kinds]
    picked = [rng.integers(0, 40, size) for size in (n, m)]
    tables = [
        [pa.concat_arrays([pool[int(i) : int(i) + 1] for i in rows]) if not pa.types.is_dictionary(pool.type)
         else pool.take(pa.array(rows)) for pool in pools]
        for rows in picked
    ]  # fmt: skip
    left, right = (Exported(sliced(columns), place) for columns in tables)
    check_two(left, right, *map(rows_of, tables), place)


VALUES = [
    *NUMBERS[:9],
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.duration("us"),
    pa.string(),
]
AGGREGATES = "sum mean min max product any all var std median nunique mode first last count".split()


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)
    return a == b


def aggregates_of(kind):
    if kind == pa.string():
        return "nunique first last count".split()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "min max median nunique mode first last count".split()
    if pa.types.is_duration(kind):
        return "sum min max median nunique mode first last count".split()
    return AGGREGATES


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_groups(kind, place):
    """Against the same columns of pyarrow, by key."""
    rng = np.random.default_rng(SEED)
    for n in (*SIZES[1:4], *((SIZES[4], LARGE) if kind in MANY else ())):
        for part in (0, 0.3, 1) if n < 10_000 else (0.1,):
            keys = column_made(rng, pa.string(), n, 0.1, 20 if n < 10_000 else 2000)
            values = column_made(rng, kind, n, part)
            if pa.types.is_floating(kind):  # infinite sums and NaN have tests of their own
                finite = values.to_numpy(zero_copy_only=False)
                values = pa.array(
                    np.where(np.isfinite(finite), finite, 1), kind, mask=values.is_null().to_numpy(False)
                )
            hows = {how: ("v", how) for how in aggregates_of(kind)} | {"n": "count"}
            if kind not in (pa.string(), pa.date32()):
                hows["q"] = ("v", "quantile", 0.3)
            wanted = roost.group_by(pa.table({"k": keys, "v": values}), "k").agg(**hows)
            made = Exported(pa.RecordBatch.from_arrays([keys, values], ["k", "v"]), place)
            found = roost.group_by(made, "k").agg(**hows)
            assert found.names == wanted.column_names and len(found) == len(wanted)
            columns = {name: values_in(found[name], place) for name in found.names}
            wanted = {name: list(map(exact, wanted[name].to_pylist())) for name in wanted.column_names}
            row_of = {key: i for i, key in enumerate(wanted["k"])}
            rows = [row_of[key] for key in columns["k"]]
            for name, column in columns.items():
                for got, row in zip(column, rows):
                    assert same(got, wanted[name][row]), (n, part, name, got, wanted[name][row])
            # The methods, of arrays and of columns.
            groups = roost.group_by(Exported(keys, place))
            order = [row_of[key] for key in values_in(groups.keys, place)]
            for name in hows.keys() - {"n", "q", "count", "nunique", "var", "std"}:
                result = getattr(groups, name)(Exported(values, place))
                if not values.null_count and kind in NUMBERS:
                    assert not hasattr(result, "__arrow_c_device_array__")
                for got, row in zip(values_in(result, place), order):
                    assert same(got, wanted[name][row]), (n, part, name, got, wanted[name][row])


def test_pairs_of_values_and_outermost(place):
    rng = np.random.default_rng(SEED)
    for part in (0, 0.3):
        keys = column_made(rng, pa.int32(), 3000, 0.1)
        x, y = (pa.array(rng.normal(size=3000), mask=rng.random(3000) < part) for _ in range(2))
        table = pa.table({"k": keys, "x": x, "y": y})
        hows = {"r": (("x", "y"), "corr"), "c": (("x", "y"), "cov")}
        wanted = {r[0]: r[1:] for r in rows_of(roost.group_by(table, "k").agg(**hows).columns)}
        found = roost.group_by(
            Exported(pa.RecordBatch.from_arrays([keys, x, y], ["k", "x", "y"]), place), "k"
        )
        for key, *numbers in rows_in(found.agg(**hows), place):
            assert all(map(same, numbers, wanted[key])), (key, numbers, wanted[key])
        groups, expected = roost.group_by(Exported(keys, place)), collections.defaultdict(list)
        for key, value in zip(keys.to_pylist(), x.to_pylist()):
            if value is not None:
                expected[key].append(value)
        values, offsets = groups.nlargest(Exported(x, place), 3)
        values, offsets = values_in(values, place), values_in(offsets, place)
        for i, key in enumerate(values_in(groups.keys, place)):
            assert values[offsets[i] : offsets[i + 1]] == sorted(expected[key], reverse=True)[:3]


def test_dropped_rows_leave_their_values(place):
    keys = pa.array(["a", None, "b", "a", None, "b"])
    values = pa.array([1, 2, None, 4, 5, None])
    groups = roost.group_by(Exported(keys, place), dropna=True)
    assert rows_in((groups.keys, groups.sum(Exported(values, place))), place) == [("a", 5), ("b", None)]
    assert values_in(groups.first(Exported(keys, place)), place) == ["a", "b"]
    found = roost.group_by(
        Exported(pa.RecordBatch.from_arrays([keys, values], ["k", "v"]), place), "k", dropna=True
    )
    assert rows_in(found.agg(s=("v", "sum"), f=("v", "first"), n="count"), place) == [
        ("a", 5, 1, 2),
        ("b", None, None, 2),
    ]


@pytest.mark.parametrize("kind", [k for k in TYPES if not pa.types.is_null(k)], ids=str)
def test_tables(kind, place):
    rng = np.random.default_rng(SEED)
    for n in SIZES if kind in MANY else SIZES[:4]:
        part = 0.1 if n != 7 else 1
        keys = column_made(rng, kind, n, part, 20 if n < 10_000 else 4000)
        asked = (
            pa.concat_arrays([keys[: n // 2], column_made(np.random.default_rng(9), kind, 200, 0.1, 300)])
            if not pa.types.is_dictionary(kind)
            else column_made(np.random.default_rng(SEED), kind, 300, 0.2)
        )
        rows, queries = (rows_of([column]) for column in (keys, asked))
        first, every = {}, collections.defaultdict(list)
        for i, row in enumerate(rows):
            first.setdefault(row, i)
            every[row].append(i)
        made, ask = Exported(keys, place), Exported(asked, place)
        index = roost.Index(made)
        assert len(index) == n
        assert values_in(index.get_indexer(ask), place) == [first.get(row, -1) for row in queries]
        assert values_in(index.contains(ask), place) == [row in first for row in queries]
        numbers = place.array(np.arange(n))
        table = roost.Map(made, numbers)
        assert values_in(table.find(ask, missing=-1), place) == [first.get(row, -1) for row in queries]
        found, values = table.items()
        assert dict(zip(rows_in(found, place), values_in(values, place), strict=True)) == first
        keys_of_set = roost.Set(made)
        assert values_in(keys_of_set.contains(ask), place) == [row in first for row in queries]
        assert set(rows_in(keys_of_set.keys(), place)) == set(first) and len(keys_of_set) == len(first)
        assert list(map(exact, keys_of_set)) == [row for (row,) in rows_in(keys_of_set.keys(), place)]
        if n:
            assert exact(index[n - 1]) == rows[n - 1][0]
        if n <= 1000:
            offsets, values = roost.MultiMap(made, numbers).find(ask)
            offsets, values = values_in(offsets, place), values_in(values, place)
            found = [values[a:b] for a, b in itertools.pairwise(offsets)]
            assert found == [every.get(row, []) for row in queries]


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_tables_of_several_columns(seed, place):
    rng = np.random.default_rng(seed)
    kinds = [k for k in TYPES if not pa.types.is_null(k)]
    kinds = [kinds[int(rng.integers(len(kinds)))] for _ in range(int(rng.integers(2, 9)))]
    n = int(rng.choice([7, 2000]))
    columns = [column_made(rng, kind, n, 0.2, 3) for kind in kinds]
    asked = [column_made(rng, kind, 300, 0.2, 4) for kind in kinds]
    asked = [
        a if pa.types.is_dictionary(a.type) else pa.concat_arrays([a, c]) for a, c in zip(asked, columns)
    ]
    length = min(map(len, asked))
    asked = [a[len(a) - length :] for a in asked]
    rows, queries = rows_of(columns), rows_of(asked)
    first = {row: i for i, row in reversed(list(enumerate(rows)))}
    made, ask = Exported(sliced(columns), place), Exported(sliced(asked), place)
    wanted = [first.get(row, -1) for row in queries]
    index = roost.Index(made)
    assert values_in(index.get_indexer(ask), place) == wanted
    assert values_in(index.get_indexer(tuple(Exported(a, place) for a in asked)), place) == wanted
    assert values_in(roost.Map(made, place.array(np.arange(n))).find(ask, missing=-1), place) == wanted
    assert set(rows_in(roost.Set(made).keys(), place)) == set(first)
    assert [tuple(map(exact, row)) for row in index] == rows


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer", "semi", "anti"])
def test_merge(how, place):
    rng = np.random.default_rng(SEED)
    for n, m in ((0, 5), (5, 0), (100, 30), (40_000, 3000)):
        frames = []
        for size, other in ((n, "v"), (m, "w")):
            columns = [
                column_made(rng, pa.int32(), size, 0.1, 2 if size < 1000 else 400),
                column_made(np.random.default_rng(size), pa.string(), size, 0.1, 20 if size < 1000 else 3000),
                column_made(rng, pa.float64(), size, 0.1),
            ]
            pool = np.random.default_rng(5).integers(0, 50, size)
            columns[0] = pa.array(pool, pa.int32(), mask=rng.random(size) < 0.1)
            frames.append(pa.RecordBatch.from_arrays(columns, ["a", "b", other]))
        for on in ("a", ["a", "b"]):
            if on == "a" and n > 1000:
                continue
            for nulls_equal in (False, True):
                wanted = roost.merge(
                    *map(pa.Table.from_batches, ([f] for f in frames)), on, how=how, nulls_equal=nulls_equal
                )
                found = roost.merge(
                    *(Exported(f, place) for f in frames), on, how=how, nulls_equal=nulls_equal
                )
                assert found.names == wanted.column_names
                assert rows_in(found, place) == rows_of(wanted.columns) or not len(wanted)
                assert len(found) == len(wanted)


def test_merge_has_the_options_that_tables_on_a_device_can_have(place):
    batch = pa.RecordBatch.from_pydict({"k": [2, 1, None, 2], "t": ["a", "b", "c", None]})
    made = Exported(batch, place)
    found = roost.merge(made, made, how="cross")
    assert found.names == ["k_x", "t_x", "k_y", "t_y"]
    assert rows_in(found, place) == [a + b for a in rows_of(batch.columns) for b in rows_of(batch.columns)]
    assert len(roost.merge(made, made, "t", validate="1:1")) == 3
    for options, words in (
        ({"validate": "m:1"}, "keys of `right` repeat, first in row 3"),
        ({"indicator": True}, "indicator='_merge', but tables of Arrow on a device"),
        ({"left_index": True}, "left_index"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            roost.merge(made, made, "k", **options)


def test_streams(place):
    rng = np.random.default_rng(SEED)
    for kind in (pa.string(), pa.int32(), pa.dictionary(pa.int8(), pa.string()), pa.bool_()):
        columns = [column_made(rng, kind, n, 0.2) for n in (7, 0, 900, 33)]
        rows = [row for column in columns for row in rows_of([column])]
        stream = Streamed([Exported(column, place) for column in columns])
        check_distinct(stream, rows, place, True)
        table = Streamed([Exported(sliced([column, column]), place) for column in columns])
        assert rows_in(roost.unique(table, return_index=True)[0], place) == [
            2 * rows[i] for i in Oracle(rows).first
        ]
        assert stream.released > 0 and table.released == 1
    broken = Streamed([Exported(pa.array([1, 2]), place)])
    broken.fails = True
    with pytest.raises(RuntimeError, match="an Arrow column: Input/output error"):
        roost.unique(broken)


def test_results_are_arguments(place):
    keys = pa.array(["b", "a", None, "b", "a long text, and another one"])
    distinct = roost.unique(Exported(keys, place), return_index=True)[0]
    for _ in range(3):
        distinct = roost.unique(distinct, return_index=True)[0]
    assert values_in(distinct, place) == ["b", "a", None, "a long text, and another one"]
    assert values_in(roost.isin(Exported(keys, place), distinct), place) == [True, True, False, True, True]
    table = roost.merge(*[Exported(sliced([keys]), place)] * 2, on="c0", how="semi")
    again = roost.unique(table, return_counts=True)
    assert rows_in(again[0], place) and values_in(again[1], place) == [2, 1, 1]
    copies = [column.to_pyarrow() for column in (distinct, table["c0"])]
    del distinct, table, again
    gc.collect()
    assert copies[0].to_pylist() == ["b", "a", None, "a long text, and another one"]
    assert copies[1].to_pylist() == ["b", "a", "b", "a long text, and another one"]


def test_exports_outlive_columns(place):
    column = roost.unique(Exported(pa.array(["x" * 300_000, "y", None]), place), return_index=True)[0]
    schema, capsule = column.__arrow_c_device_array__()
    del column
    gc.collect()
    device = ArrowDeviceArray.from_address(pointer_of(capsule, b"arrow_device_array"))
    kind = pa.DataType._import_from_c_capsule(schema)
    buffers = _buffers(kind, device.array, place)
    assert pa.Array.from_buffers(kind, 3, buffers).to_pylist() == ["x" * 300_000, "y", None]
    assert roost.unique(Exported(pa.array([1, None, 1]), place)).device == (
        "the CPU" if place is Cpu else "cuda:0"
    )


def test_bitmaps_end_with_zeros(place):
    """At a multiple of 64 bytes, as Arrow recommends, and cuDF expects."""
    bools = Exported(pa.array([None, True, False] * 400), place)
    groups = roost.group_by(Exported(pa.array(range(1200)), place))
    for found in (roost.unique(bools), groups.any(bools), groups.first(bools)):
        _, capsule = found.__arrow_c_device_array__()
        array = ArrowDeviceArray.from_address(pointer_of(capsule, b"arrow_device_array")).array
        used = (len(found) + 7) // 8
        assert not any(any(place.read(bits, -used // 64 * -64)[used:]) for bits in array.buffers[:2])


class Slice(Exported):
    """As pylibcudf has parts of columns, and tables of them: its structs do not say where these begin."""

    __module__ = "pylibcudf"

    def __init__(self, column, place, *parts):
        super().__init__(column, place)
        self.offset, self.num_children, self.child = lambda: column.offset, parts.__len__, parts.__getitem__

    def copy(self):
        return Exported(self.column.take(pa.array(range(len(self.column)))), self.place)

    def _fill(self, struct, column, memory):
        super()._fill(struct, column, memory)
        struct.offset = 0


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.string()], ids=str)
def test_slices_of_cudf(kind, place):
    column = column_made(np.random.default_rng(8), kind, 500, 0.3).slice(3, 400)
    whole = column.take(pa.array(range(400)))
    for given in (Slice(column, place), Slice(whole, place, Slice(column, place)), Slice(whole, place)):
        keys, inverse = roost.unique(given, return_inverse=True)
        keys = values_in(keys, place)
        assert [keys[i] for i in values_in(inverse, place)] == list(map(exact, column.to_pylist()))


def test_arrays_beside_columns(place):
    numbers = place.array(np.array([5, 7, 5, 9]))
    column = Exported(pa.array([7, None, 5], pa.int32()), place)
    assert values_in(roost.isin(column, numbers), place) == [True, False, True]
    assert values_in(roost.isin(numbers, column), place) == [True, True, True, False]
    assert values_in(roost.Index(column).get_indexer(numbers), place) == [2, 0, 2, -1]
    texts = Exported(pa.array(["a", "a", "b", None]), place)
    keys = roost.unique((texts, numbers), return_index=True)[0]
    assert rows_in(keys, place) == [("a", 5), ("a", 7), ("b", 5), (None, 9)]
    groups = roost.group_by(texts)
    sums = dict(zip(values_in(groups.keys, place), values_in(groups.sum(numbers), place)))
    assert sums == {"a": 12, "b": 5, None: 9}
    sums = roost.group_by(numbers).sum(Exported(pa.array([1, None, 2, None]), place))
    assert sorted(values_in(sums, place), key=str) == [3, None, None]
    plain = Exported(pa.array([5, 9]), place)  # columns of numbers without nulls are arrays
    assert values_in(roost.Map(numbers, numbers).find(plain), place) == [5, 9]
    assert values_in(roost.Map(plain, plain).find(numbers), place) == [5, 0, 5, 9]
    rows, _ = roost.partition(plain, 2)
    assert sorted(values_in(rows, place)) == [0, 1]
    with pytest.raises(ValueError, match="has 1 null; drop or fill"):
        roost.partition(column, 2)
    with pytest.raises(TypeError, match="pass a column of numbers"):
        roost.partition(texts, 2)


def test_what_is_refused(place):
    texts, numbers = Exported(pa.array(["a", "b"]), place), Exported(pa.array([1, 2]), place)
    one, where = Exported(pa.array([1]), place), "the CPU" if place is Cpu else "cuda:0"
    for call, error, says in (
        (lambda: roost.isin(texts, numbers), TypeError, "never equal"),
        (lambda: roost.isin(texts, ["a"]), TypeError, f"list beside columns of Arrow on {where}"),
        (lambda: "a" in roost.Index(texts), NotImplementedError, f"on {where}; ask for a column of keys"),
        (lambda: roost.Map(texts, numbers)["a"], NotImplementedError, "ask for a column of keys"),
        (lambda: roost.Index(texts).get_indexer(numbers), TypeError, "never equal"),
        (lambda: roost.unique(texts, sorted=True), TypeError, "sort the result"),
        (lambda: roost.group_by(texts).sum(texts), TypeError, "count, first, last, nunique; convert"),
        (lambda: roost.group_by(texts).sum(one), ValueError, "2 keys but 1 value;"),
        (lambda: roost.join(texts, (texts, numbers)), TypeError, "1 and 2 columns as keys"),
        (lambda: roost.unique((texts, one)), ValueError, "of 2 and of 1 rows"),
        (lambda: roost.unique(Exported(pa.array([[1], [2]]), place)), TypeError, "Arrow's type"),
        (lambda: roost.group_by(Exported(sliced([pa.array([1])]), place), "x"), KeyError, "x"),
        (lambda: roost.Set(texts).__reduce__(), TypeError, "cannot be pickled"),
        (lambda: roost.unique(texts).__arrow_c_device_array__(stream=5), NotImplementedError, "with stream"),
        (lambda: roost.join(one, Exported(pa.array([1], pa.uint64()), place)), TypeError, "no common type"),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            call()


def test_unknown_devices():
    class Elsewhere(Cpu):
        type = 7

    class Pinned(Cpu):
        type = 3

    with pytest.raises(TypeError, match="Arrow's type 7"):
        roost.unique(Exported(pa.array([1]), Elsewhere))
    assert values_in(
        roost.unique(Exported(pa.array(["a", None, "a"]), Pinned), return_counts=True)[1], Cpu
    ) == [2, 1]
    with pytest.raises(ValueError, match="pinned memory, with an event; wait for it"):
        roost.unique(Exported(pa.array([1]), Pinned, late=True))


def test_columns_of_libraries_stay_what_they_were():
    """pyarrow, polars and others have the interface of devices for memory of the CPU, too."""
    column = pa.array(["a", None, "a"])
    assert isinstance(roost.unique(column), pa.Array)
    assert isinstance(roost.unique(pa.table({"a": column})), pa.Table)
    assert roost.group_by(np.array([1, 1, 2])).shift(column).to_pylist() == [None, "a", None]

    class Both(Exported):
        def __arrow_c_array__(self, requested_schema=None):
            return self.column.__arrow_c_array__()

    assert isinstance(roost.unique(Both(column, Cpu)), pa.Array)

    class Chunked(Both):
        def __arrow_c_device_array__(self, requested_schema=None, **options):
            raise ValueError("several chunks")

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([self.column, self.column]).__arrow_c_stream__()

    assert isinstance(roost.unique(Chunked(column, Cpu)), pa.ChunkedArray)


def test_many_calls_keep_nothing(place):
    column = Exported(column_made(np.random.default_rng(SEED), pa.string(), 2000, 0.2), place)
    index = roost.Index(column)
    for _ in range(20):
        roost.unique(column)
        index.get_indexer(column)
        roost.group_by(column).count(column)
    gc.collect()
    assert len(exported) - len(released) == 1  # which the index keeps


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-x", "-q", *sys.argv[1:]]))
