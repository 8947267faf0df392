"""group_by, and what comes of the values of each group."""

import threading

import numpy as np

from ._exact import whole_floats
from ._frames import columns_named
from ._functions import _FLOAT32, _INT32, _INT64, _check_rows, _flag
from ._keys import numpy_dtype
from ._libraries import same_device, take_values
from ._packing import encode_columns
from ._strings import StringKeys

_FLOAT16, _FLOAT64 = np.dtype(np.float16), np.dtype(np.float64)

_REDUCTIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3}
_TYPES = "int8 int16 int32 int64 bool uint8 uint16 uint32 uint64 float32 float64"
_NUMBERS = {np.dtype(name): i for i, name in enumerate(_TYPES.split())}  # as C++ has them
_NUMBERS[_FLOAT16] = None  # converted before
_SUMS = {"b": _INT64, "i": _INT64, "u": np.dtype(np.uint64)}  # the types of sums, by kind


class GroupBy:
    """What `group_by` returns: keys, whose values are combined by `sum`, `mean`, `min`, `max`, `count`,
    `first`.

    The first call numbers the distinct keys, and all results are in the order of `keys`, whatever is called
    in which order. It is the same each time for the same calls. Another object of the same keys may have
    another order. Each method takes one or several arrays of values, one value a key (integers, bools, floats
    of 2, 4 or 8 bytes; `first` also any others, and rows), and returns an array of results for each. Results
    are the same for the same input each time, floats included: how additions are nested depends on the number
    of values only.

    Any number of threads may use one; their calls take turns. It keeps a copy of the keys or, once rows are
    grouped, 4 bytes for each row; and 8 to 20 bytes for each distinct key, besides the key itself. The first
    two calls that each sum up a column of integers, or find its extremes, need no grouped rows. All others
    group the rows, unless they are.
    """

    def __init__(self, keys, frame=None):
        self._n, self._kind, self._library = keys.n, keys.kind, keys.library
        self._frame, self._kept = frame, keys.kept
        self._kind.keep()
        self._groups = keys.library.module.group(keys.library.place(), keys.words)
        self._keys, self._lock = None, threading.Lock()
        self._texts = keys.texts if isinstance(keys, StringKeys) else None
        if self._texts is not None and isinstance(self._texts.source, np.ndarray):
            self._keys = self._read_keys()  # the array may change

    def _read_keys(self):
        place = self._library.place()
        if self._texts is None:
            keys = self._kind.decode(self._groups.keys(place), self._library)
            return self._kind.result(keys, self._library)
        texts, self._texts = self._texts, None
        return texts[self._groups.first_rows(place, True)]

    def __len__(self):
        """The number of distinct keys."""
        return self._groups.size(self._library.place())

    def __repr__(self):
        return f"roost.GroupBy({self._n} rows, {len(self)} distinct keys of type {self._kind.dtype})"

    @property
    def keys(self):
        """The distinct keys, in an order without meaning that is the same each time for the same calls."""
        with self._lock:
            if self._keys is None:
                self._keys = self._read_keys()
        return self._keys

    def count(self):
        """How many rows each key has: int64."""
        return self._library.adopt(self._groups.counts(self._library.place()), _INT64)

    def sum(self, *values):
        """Sums: int64 of integers and bools, uint64 of unsigned ones (both wrap around), floats of floats.

        Sums of float16 are made in float32, and rounded at the end.
        """
        return self._all("sum", values)

    def mean(self, *values):
        """Means, as float64. Integers of 8 bytes beyond 2^53 are rounded before they are added."""
        return self._all("mean", values)

    def min(self, *values):
        """The least values, of the type of the values; NaN if one is NaN."""
        return self._all("min", values)

    def max(self, *values):
        """The greatest values, of the type of the values; NaN if one is NaN."""
        return self._all("max", values)

    def first(self, *values):
        """The values of each key's first row: of any type and shape that a column has.

        What the library of the keys has not (torch has no dates) stays in the library of the values.
        """
        return self._all("first", values)

    def _all(self, how, columns):
        if not columns:
            raise TypeError(f"roost.GroupBy.{how}: no values; pass one or several arrays")
        columns = [self._column(column, how) for column in columns]
        combine = self._first if how == "first" else self._reduced
        if len(columns) == 1:
            return combine(*columns[0], how)
        len(self)  # which groups the rows if this is the first call: faster for several columns
        return tuple(combine(*column, how) for column in columns)

    def _column(self, values, how):
        """Values as an array, its Library, and its type; None: one that only `first` takes."""
        what = f"roost.GroupBy.{how}"
        array, library = take_values(values, what)
        if library is not self._library:
            same_device(self._library, library, what)
        dtype = numpy_dtype(array)
        if dtype is not None and not dtype.isnative:
            dtype = dtype.newbyteorder("=")
        if array.ndim != 1 or dtype not in _NUMBERS:
            dtype = None
        if dtype is None and (how != "first" or array.ndim == 0):
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {tuple(array.shape)}; pass one dimension of "
                "numbers"
            )
        if array.shape[0] != self._n:
            raise ValueError(
                f"{what}: {self._n} keys but {array.shape[0]} values; give one value for each key"
            )
        return array, library, dtype

    def _first(self, array, library, dtype, how):
        """The values of each key's first row."""
        home = self._library
        rows = _INT32 if self._n < 2**31 else _INT64
        first = home.adopt(self._groups.first_rows(home.place(), rows is _INT64), rows)
        if library is home:
            return home.rows(array, first)
        found = library.rows(array, library.of_numpy(home.to_numpy(first)))
        kind = numpy_dtype(array)
        if kind is None or not home.has(kind.newbyteorder("=")):
            return found
        return home.of_numpy(library.to_numpy(found))

    @whole_floats
    def _reduced(self, array, library, dtype, how):
        """What comes of a column of numbers."""
        home = self._library
        result = _FLOAT64 if how == "mean" else _SUMS.get(dtype.kind, dtype) if how == "sum" else dtype
        made = result
        if dtype == _FLOAT16:  # of which C++ makes sums in 4 bytes
            array, dtype = library.convert(array, _FLOAT32), _FLOAT32
            made = result if how == "mean" else _FLOAT32
        column = library.column(array, self._n, dtype.itemsize)
        values = self._groups.reduce(home.place(), column, _NUMBERS[dtype], _REDUCTIONS[how])
        found = (home.computed if how in ("sum", "mean") else home.adopt)(values, made)
        if made == result:
            return found
        found = home.convert(found, result)
        return home.of_numpy(found) if isinstance(found, np.ndarray) else found


def group_by(keys, by=None, *, dropna=False):
    """Groups rows by key: ``roost.group_by(customers).sum(amounts)``.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `unique`.
    by : list of names of columns, or one
        If `keys` is a frame: those that are the keys.
    dropna : bool
        Whether rows whose key is null, NaN or NaT, in one of its columns, are in no group. Otherwise these are
        keys as any other.

    Returns
    -------
    GroupBy

    Examples
    --------
    >>> import numpy, roost
    >>> g = roost.group_by(numpy.array([7, 8, 7]))
    >>> sums = g.sum(numpy.array([1.5, 2.0, 3.0]))
    >>> sorted(zip(g.keys.tolist(), sums.tolist()))
    [(7, 4.5), (8, 2.0)]
    """
    what = "roost.group_by"
    chosen = keys if by is None else columns_named(keys, by, what, "by")
    encoded = encode_columns(chosen, what, drops=_flag(dropna, what, "dropna"))
    _check_rows(encoded.n, _INT64, what)
    return GroupBy(encoded, None if by is None else keys)
