"""Arrow columns in device memory, through Arrow's C device interface.

An object with `__arrow_c_device_array__` or `__arrow_c_device_stream__` becomes a DeviceColumn or a
DeviceTable, and results of these are on the same device. The CPU is a device, too: the code is the same for
all.
"""

import numpy as np

from .. import _host
from .exact import no_nulls
from .libraries import NUMPY, library_of_gpu
from .types import BOOL, FLOAT16, INT64, NANS, NUMBERS, UINT8, numpy_dtype

_FORMATS = {dtype: _host.arrow_format(name) for dtype, name in NUMBERS.items()} | {FLOAT16: "e"}
_CPU, _CUDA = (1, 3), (2, 13)  # Arrow's device types


def pack_bits(bools, library):
    """Bools as a bitmap, as C++ takes it."""
    bits = library.module.pack_bits(library.place(), library.column(bools))
    return library.column(library.adopt(bits, UINT8))


class _OnDevice:
    """What columns and tables have in common."""

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        """The structs of Arrow's C device interface, in capsules, without a copy except for dictionaries and
        several chunks. They may be used at once, on any stream."""
        if wanted := [name for name, value in options.items() if value is not None]:
            raise NotImplementedError(f"roost: __arrow_c_device_array__ with {wanted[0]}")
        library = self.library
        return library.module.export_arrow(library.place(), *self._exported())

    @property
    def device(self):
        """Where the data are: "the CPU", or "cuda:" and the number of a GPU."""
        return self.library.where


class DeviceColumn(_OnDevice):
    """An Arrow column in device memory. Never changes.

    `made`: the column as C++ has it, `library`: that of its device.
    """

    ndim = 1

    def __init__(self, made, library):
        self.made, self.library = made, library

    @classmethod
    def of_array(cls, array, library, there=None, type=None):
        """A column of an array. `there`: bools, for each row whether it has a value. `type`: Arrow's, if
        it is not that of the array."""
        dtype = numpy_dtype(array)
        type = _FORMATS.get(dtype) if type is None else type
        if type is None or array.ndim != 1:
            raise TypeError(
                f"roost: an array of {array.dtype} and shape {tuple(array.shape)} beside columns of Arrow; "
                "pass one dimension of numbers"
            )
        bits, nulls = None, 0
        if there is not None:
            bits, nulls = pack_bits(there, library), int((~there).sum())
        values = pack_bits(array, library) if type == "b" else library.column(array)
        module, place = library.module, library.place()
        return cls(module.from_arrays(place, type, array.shape[0], nulls, [bits, values]), library)

    @property
    def type(self):
        """Arrow's format string, such as "l" for int64 and "u" for utf8; for a dictionary, that of its
        values."""
        return self.made.value_format

    def __len__(self):
        return self.made.rows

    def __repr__(self):
        return f"DeviceColumn({len(self)} rows of Arrow's type {self.type!r} on {self.device})"

    def _exported(self):
        return [self.made], None

    def to_pyarrow(self):
        """A copy on the CPU, as a pyarrow array; text views become large texts, and dictionaries become the
        values that they stand for."""
        import pyarrow

        library = self.library
        return pyarrow.Array._import_from_c_capsule(*library.module.copy_to_cpu(library.place(), self.made))

    def take(self, rows):
        """The rows with these numbers, an array of the library; null where a number is negative."""
        library = self.library
        rows = library.column(library.convert(rows, INT64))
        return DeviceColumn(library.module.take_rows(library.place(), self.made, rows), library)

    def values(self):
        """An array of the values as numbers, and bools that say which are not null, or None. Texts are
        numbered; half floats become floats, and times integers."""
        library = self.library
        values, type, there = library.module.read_values(library.place(), self.made)
        there = None if there is None else library.adopt(there, BOOL)
        return library.adopt(values, np.dtype(type)), there

    def sort_keys(self):
        """Arrays to sort by, the first one first: whether a row is null, and its value."""
        if not (self.is_number or self.type[0] == "t"):
            raise TypeError(
                f"roost: sorted keys of Arrow's type {self.type!r} on {self.device}; sort the result instead"
            )
        (values, there), library = self.values(), self.library
        dtype = numpy_dtype(values)
        if dtype.kind == "f":  # with a single NaN and a single 0
            floats, target = library.output(len(values), dtype)
            library.module.canonical_keys(library.place(), library.column(values), target, NANS[dtype])
            values = library.finish(floats, dtype)
        return [values] if there is None else [~there, values]

    @property
    def is_number(self):
        """Whether values are integers, bools or floats, or all null."""
        return self.type in "csilbCSILfgen"


class DeviceTable(_OnDevice):
    """An Arrow table in device memory. Never changes."""

    def __init__(self, names, columns):
        self.names, self.columns, self.library = names, columns, columns[0].library

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, name):
        """The column with this name; KeyError if there is none, or more than one."""
        if self.names.count(name) != 1:
            raise KeyError(name)
        return self.columns[self.names.index(name)]

    def __repr__(self):
        return f"DeviceTable({len(self)} rows of {', '.join(self.names)} on {self.device})"

    def _exported(self):
        return [column.made for column in self.columns], self.names

    def to_pyarrow(self):
        """A copy on the CPU, as a pyarrow table, with columns as from `DeviceColumn.to_pyarrow`."""
        import pyarrow

        return pyarrow.table([column.to_pyarrow() for column in self.columns], names=self.names)


def _is_slice(column):
    """Whether a column of pylibcudf, or one in it, is a part of another."""
    return column.offset() != 0 or any(_is_slice(column.child(i)) for i in range(column.num_children()))


def _whole(x):
    """Columns and tables of pylibcudf, copied if they are slices: it exports the bitmap of such a column, and
    its offsets of texts, as they are of the whole one, so the rows would get values of others."""
    if type(x).__module__.partition(".")[0] != "pylibcudf":
        return x
    columns = [x] if hasattr(x, "num_children") else x.columns() if hasattr(x, "columns") else []
    return x.copy() if any(map(_is_slice, columns)) else x


def take_device(x):
    """An object with Arrow's device interface as a DeviceColumn or DeviceTable; None if it is on the CPU and
    also has the interface for the CPU."""
    on_cpu_too = hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__")
    x = _whole(x)
    try:
        if hasattr(x, "__arrow_c_device_array__"):
            schema, array = x.__arrow_c_device_array__()
            arrays, kind = [array], None
        else:
            schema, arrays, kind = _host.arrow_chunks(x.__arrow_c_device_stream__())
    except (NotImplementedError, ValueError):  # a column of several chunks
        if on_cpu_too:
            return None
        raise
    places = {_host.arrow_device(array) for array in arrays} or {(kind, 0)}
    if len(places) > 1:
        raise ValueError("roost: chunks of Arrow on several devices; pass them one by one")
    kind, index = places.pop()
    if kind in _CPU and on_cpu_too:
        return None
    if kind not in (*_CPU, *_CUDA):
        raise TypeError(
            f"roost: columns on a device of Arrow's type {kind}; pass those on the CPU or on CUDA"
        )
    library = NUMPY if kind in _CPU else library_of_gpu(index, "columns of Arrow")
    columns, names = library.module.import_arrow(library.place(), schema, arrays)
    columns = [DeviceColumn(column, library) for column in columns]
    return columns[0] if names is None else DeviceTable(names, columns)


def array_of(x, what):
    """The array that a column of numbers without nulls is, and its Library."""
    column = x if isinstance(x, _OnDevice) else take_device(x)
    if not isinstance(column, DeviceColumn) or not column.is_number:
        given = "a table" if isinstance(column, DeviceTable) else f"a column of Arrow's type {column.type!r}"
        raise TypeError(f"{what}: {given} on {column.device}; pass a column of numbers")
    array, there = column.values()
    if there is not None:
        no_nulls("the Arrow column", int((~there).sum()), what)
    return array, column.library
