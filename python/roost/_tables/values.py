"""Values of tables as words, and back."""

import numpy as np

from .._arrays.exact import alike, convert, is_python, plural, shown, whole_floats
from .._arrays.frames import name_of
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take_values
from .._arrays.types import INT32, UINT8, numpy_dtype


class Values:
    """Values as words, and back: values of 1 to 16 bytes are in the table, larger ones in an array beside
    it."""

    def __init__(self, values, keys, what):
        array, library = take_values(values, what)
        same_device(keys.library, library, what)
        if not array.shape or (library is NUMPY and (array.dtype.hasobject or array.dtype.kind in "UT")):
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {tuple(array.shape)}; pass an array of "
                "numbers, dates, fixed-size bytes or records; factorize makes numbers of strings"
            )
        if array.shape[0] != keys.n:
            raise ValueError(
                f"{what}: {plural(keys.n, 'key')} but {plural(array.shape[0], 'value')}; give one value for "
                "each key"
            )
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

    def rows(self, rows, library, missing=(0, 0, 0)):
        """Values that are not in the table, by their row numbers."""
        library.need(self.dtype)
        source = self.library.column(self.array)
        return library.gather(source, self.dtype, self.tail, library.column(rows), len(rows), missing)

    def one(self, value, what):
        """The value for absent keys, as an array of one value on the CPU, by its bytes."""
        if value.__class__ is int and value == 0:
            return self._zero
        kind, last, array = self._last
        if value.__class__ is not kind or value != last:
            array = self._one(value, what)
            if value.__class__ is int or (value.__class__ is float and value and value.is_integer()):
                self._last = value.__class__, value, array
        return array

    @whole_floats
    def _one(self, value, what):
        dtype = self.dtype
        if not isinstance(dtype, np.dtype):
            return self._one_of_torch(value, what)
        try:
            given, library = take_values(value, what)
            array = exactly(library.to_numpy(given), value, dtype, what)
            row = np.empty((1, *self.tail), dtype)
            row[:] = array
        except OverflowError:
            raise OverflowError(f"{what}: missing={shown(value)} is not a value of type {dtype}") from None
        except (ValueError, TypeError):
            raise TypeError(f"{what}: missing={shown(value)} is not a value of type {dtype}") from None
        return self._padded(row.reshape(-1).view(np.uint8))

    def _one_of_torch(self, value, what):
        torch, dtype = self.library.torch, self.dtype
        try:
            given = torch.as_tensor(
                value, dtype=torch.float64 if type(value) is float else None, device="cpu"
            )
            array = given.to(dtype)
            row = torch.empty((1, *self.tail), dtype=dtype).copy_(array)
        except (RuntimeError, TypeError, ValueError):
            raise TypeError(f"{what}: missing={value!r} is not a value of type {dtype}") from None
        exact = given.is_floating_point() or torch.equal(array.double(), given.double())
        if not exact or not torch.equal(torch.isinf(array), torch.isinf(given)):
            raise OverflowError(f"{what}: missing={value!r} is not a value of type {dtype}")
        return self._padded(row.reshape(-1).view(torch.uint8).numpy())

    def _padded(self, bytes):
        array = self._zero.copy()
        array[0, : self.size] = bytes
        return array


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
