"""Values of tables as words, and back."""

import numpy as np

from .._arrays.exact import (
    alike,
    convert,
    has_mask,
    is_masked,
    is_python,
    plural,
    shown,
    under_mask,
    whole_floats,
)
from .._arrays.frames import Device, Model, frames_of_column, is_there, name_of, of_capsules
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take_values
from .._arrays.types import INT32, UINT8, numpy_dtype
from .._keys import strings


class Values:
    """Values as words, and back: values of 1 to 16 bytes are in the table, larger ones in an array beside
    it."""

    def __init__(self, values, keys, what, taken=None):
        array, library = take_values(values, what) if taken is None else taken
        same_device(keys.library, library, what)
        if not array.shape or (library is NUMPY and (array.dtype.hasobject or array.dtype.kind in "UT")):
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {tuple(array.shape)}; pass an array of "
                "numbers, dates, fixed-size bytes or records; factorize makes numbers of strings"
            )
        _expect_one_each(keys, array, what)
        self._set(numpy_dtype(array) or array.dtype, tuple(array.shape[1:]), library)
        self.given, self.name = array, name_of(values)

    def _set(self, dtype, tail, library):
        self.dtype = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
        self.tail, self.library = tail, library
        self.array = None  # where values outside the table are
        self.size = self.dtype.itemsize
        for d in tail:
            self.size *= d
        self.bytes = self._in_table()
        self._zero = np.zeros((1, self.bytes or self.size), np.uint8)
        self.name = None  # of the column that they were
        self._last = None, None, None  # the last `missing`: its type, the value, and its array

    def _in_table(self):
        """The bytes that a value has in the table; None: it lies beside it."""
        return {1: 4, 2: 4, 4: 4, 8: 8, 16: 16}.get(self.size)

    @classmethod
    def of_type(cls, dtype, library, tail=()):
        values = cls.__new__(cls)
        values._set(dtype, tail, library)
        return values

    def words(self, array, library):
        """Values as C++ takes them."""
        if self.size == self.bytes:
            return library.aligned_column(array) if self.size > 4 else library.column(array)
        return library.resized(library.column(array), len(array), UINT8, (self.bytes,))[1]

    def keep(self):
        """A copy of the values, for tables that have row numbers instead."""
        library, array = self.library, self.given
        if library is NUMPY:
            array = np.ascontiguousarray(array.astype(self.dtype, copy=True))
        else:
            array = library.copy(array)
        self.array, self.given = array, None

    def take_words(self):
        """The words of the values, which are not needed here any longer."""
        words = self.words(self.given, self.library)
        self.given = None
        return words

    def output(self, n, library):
        """Where C++ writes values: as the library's `output`."""
        library.need(self.dtype)
        if self.size == self.bytes:
            return library.output(n, self.dtype, self.tail)
        return library.output(n, UINT8, (self.bytes,))

    def finish(self, words, library):
        """Values from an output that has been filled."""
        if self.size != self.bytes:
            words, _ = library.resized(library.column(words), len(words), self.dtype, self.tail)
        return library.finish(words, self.dtype, self.tail)

    def decode(self, words, library):
        """Values from words that C++ has made."""
        library.need(self.dtype)
        if self.array is not None:
            return self.rows(library.adopt(words, INT32), library)
        if self.size == self.bytes:
            return library.adopt(words, self.dtype, self.tail)
        return self.finish(library.adopt(words, UINT8, (self.bytes,)), library)

    def python(self, found):
        """The one value that was found, as Python has it."""
        value, dtype = found[0], self.dtype
        keep = self.tail or getattr(dtype, "names", None) or getattr(dtype, "kind", "f") in "mM"
        return value if keep else value.item()

    def pickled(self, array, library):
        """What pickle stores for an array of values."""
        return library.pickled(array)

    @property
    def nbytes(self):
        """The memory of values beside the table."""
        return 0 if self.array is None else self.array.nbytes

    def rows(self, rows, library, missing=(0, 0, 0)):
        """Values that are not in the table, by their row numbers."""
        library.need(self.dtype)
        source = self.library.column(self.array)
        return library.gather(source, self.dtype, self.tail, library.column(rows), len(rows), missing)

    def one(self, value, what):
        """The value for absent keys, by default zero, as an array of one value on the CPU, by its bytes."""
        if value is ... or (value.__class__ is int and value == 0):
            return self._zero
        kind, last, array = self._last
        if value.__class__ is not kind or value != last:
            array = self._one(value, what)
            if value.__class__ is int or (value.__class__ is float and value and value.is_integer()):
                self._last = value.__class__, value, array
        return array

    @whole_floats
    def _one(self, value, what):
        if not isinstance(self.dtype, np.dtype):
            return self._one_of_torch(value, what)
        return self._padded(self._row(value, what).reshape(-1).view(np.uint8))

    @whole_floats
    def _row(self, value, what):
        """A value as an array of numpy of one row."""
        dtype = self.dtype
        try:
            given, library = take_values(value, what)
            array = exactly(library.to_numpy(given), value, dtype, what)
            row = np.empty((1, *self.tail), dtype)
            row[:] = array
            return row
        except OverflowError:
            raise OverflowError(f"{what}: missing={shown(value)} is not a value of type {dtype}") from None
        except (ValueError, TypeError):
            self._refuse(value, what)

    def _refuse(self, value, what):
        dtype = shown(self.dtype, str)
        raise TypeError(f"{what}: missing={shown(value)} is not a value of type {dtype}") from None

    def _one_of_torch(self, value, what):
        torch, dtype = self.library.torch, self.dtype
        try:
            given = torch.as_tensor(
                value, dtype=torch.float64 if type(value) is float else None, device="cpu"
            )
            array = given.to(dtype)
            row = torch.empty((1, *self.tail), dtype=dtype).copy_(array)
        except (RuntimeError, TypeError, ValueError):
            self._refuse(value, what)
        exact = given.is_floating_point() or torch.equal(array.double(), given.double())
        if not exact or not torch.equal(torch.isinf(array), torch.isinf(given)):
            raise OverflowError(f"{what}: missing={value!r} is not a value of type {dtype}")
        return self._padded(row.reshape(-1).view(torch.uint8).numpy())

    def _padded(self, bytes):
        array = self._zero.copy()
        array[0, : self.size] = bytes
        return array


class ColumnValues(Values):
    """Values that have no words: texts, objects, nested values, columns with nulls. The column is beside the
    table, on the CPU. Results are its rows, of its library and type."""

    def __init__(self, column, keys, what):
        _expect_one_each(keys, column, what)
        self.dtype = column.dtype if hasattr(column, "dtype") else column.type
        self.frames, self.tail = frames_of_column(column), getattr(column, "shape", (0,))[1:]
        self.library, self.size, self.bytes, self.array = NUMPY, None, None, None
        self.given, self.name = column, name_of(column)

    def keep(self):
        column, frames, self.given = self.given, self.frames, None
        if frames is None:
            self.array = column.copy()
        else:
            self.array, self._model = frames.kept(column), Model(frames, column)
        self._absent = self._default()

    def _default(self):
        """What is found for absent keys unless a caller says: of types that have words zero, as where there
        are no nulls; of others null, or in plain arrays of texts an empty one."""
        if self.frames is None:
            row = np.zeros((1, *self.tail), self.dtype)
            if self.dtype.kind in "OT":
                row[...] = None if self.dtype.kind == "O" else getattr(self.dtype, "na_object", "")
            return np.ma.array(row) if has_mask(self.array) else row
        try:
            words = take_values(self.array[:0], "")[0]
        except (TypeError, ValueError):
            return None
        texts, nulls = words.dtype.kind in "UOT", str(self.dtype) == "Null"  # a type of polars
        if texts or nulls or words.ndim > 1 or hasattr(self.dtype, "categories"):
            return None
        return self.frames.like(np.zeros(1, words.dtype), None, self.array)

    def decode(self, words, library):
        return self.rows(library.adopt(words, INT32), library, self._absent)

    def rows(self, rows, library, missing):
        rows = library.to_numpy(rows).view(np.uint32).astype(np.int64)
        there = rows != 2**32 - 1
        if self.frames is None:
            missing = np.ma.masked_all((1, *self.tail), self.dtype) if missing is None else missing
            found = missing.repeat(len(rows), axis=0)
            if missing.dtype.kind == "U":  # of the wider type
                found = found.astype(np.promote_types(missing.dtype, self.dtype))
            found[there] = self.array[rows[there]]
            return found
        rows[~there] = -1
        found = self.frames.take(self.array, rows)
        if missing is not None and not there.all():
            rows = np.where(there, np.arange(len(rows)), len(rows))
            found = self.frames.take(self.frames.joined(found, missing), rows)
        if str(self.dtype).startswith(("string_view", "binary_view")):
            found = self.frames.cast(found, self._model)
        return self.frames.named(found, self._model)

    def one(self, value, what):
        """The value for absent keys as a column of one value; None: null."""
        if value is ...:
            return self._absent
        if value is None and (self.frames is not None or has_mask(self.array)):
            return None
        if self.frames is None:
            row = self._row(value, what)
            return np.ma.array(row) if has_mask(self.array) else row
        try:
            row = self.frames.one(value, self.array)
            same = self.frames.are_alike(row, self.array) and bool(self.frames.objects(row)[0] == value)
        except Exception:  # of each library its own
            same = False
        return row if same else self._refuse(value, what)

    def _row(self, value, what):
        kind = self.dtype.kind
        if kind not in "UOT":
            return super()._row(value, what)
        made = np.empty((), object)
        made[()] = value
        if kind != "O":
            made = np.array(value, self.dtype if kind == "T" else None)
            if made.dtype.kind != kind or made.tolist() != value:
                self._refuse(value, what)
        row = np.empty((1, *self.tail), made.dtype)
        row[...] = made
        return row

    def python(self, found):
        if self.frames is not None:
            return self.frames.objects(found)[0] if is_there(found)[0] else None
        value = found[0]
        if value is np.ma.masked:
            return None
        return super().python(found) if isinstance(value, np.generic) and self.dtype.kind != "O" else value

    def pickled(self, array, library):
        return array

    @property
    def nbytes(self):
        return self.array.estimated_size() if hasattr(self.array, "estimated_size") else self.array.nbytes


def _expect_one_each(keys, values, what):
    if len(values) != keys.n:
        raise ValueError(
            f"{what}: {plural(keys.n, 'key')} but {plural(len(values), 'value')}; give one value for each key"
        )


def _is_list_of_texts(x):
    """Whether it is a list of texts, of which some may be None; bytes without None have words."""
    kinds = set(map(type, x)) if isinstance(x, (list, tuple)) else ()
    family = bytes if any(issubclass(kind, bytes) for kind in kinds) else str
    listed = bool(kinds) and kinds != {bytes}
    return listed and all(issubclass(kind, (family, type(None))) for kind in kinds)


def values_of(values, keys, what):
    """Values as words if they have any, otherwise as a column."""
    column = of_capsules(values)
    frames = frames_of_column(column)
    if _is_list_of_texts(column):
        column, given = np.empty(len(column), object), column
        column[:] = given
    elif has_mask(column) and is_masked(column):
        column = np.ma.MaskedArray(under_mask(column), np.ma.getmaskarray(column))
    elif frames in (None, Device) or strings.of_column(column, what) is None:
        try:
            array, library = taken = take_values(column, what)
        except (TypeError, ValueError, OverflowError):  # nulls, decimals, zones, nested values
            if frames in (None, Device):
                raise
        else:
            if library is not NUMPY or array.dtype.kind not in "UOT" or not array.shape:
                return Values(column, keys, what, taken)
            column = array if frames is None else column
    return ColumnValues(column, keys, what)


def exactly(array, given, dtype, what):
    """A numpy array as values of a type, none of which changes. `given`: what the array was made from."""
    if array.dtype == dtype:
        return array
    given = given if is_python(given) else None
    if alike(array.dtype, dtype):
        return convert(array, dtype, what, given)
    if dtype.kind == "c" and array.dtype.kind in "biufc":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        result = np.zeros(array.shape, dtype)
        result.real = convert(np.asarray(array.real), part, what, given)
        if array.dtype.kind == "c":
            result.imag = convert(np.asarray(array.imag), part, what, given)
        return result
    raise TypeError(f"{what}: values of type {array.dtype}, but those of the map are {dtype}; convert them")
