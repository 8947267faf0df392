"""ConcurrentMap, Store: tables that change."""

import numpy as np

from .. import _host
from .._arrays.exact import is_python, keeps_every_value, plain_number, plural, whole_floats
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take_values
from .._arrays.types import INT64, UINT8, numpy_dtype
from .._keys.words import encode_like, kind_of
from .._options import (
    library_beside,
    load_factor_of,
    naming_files,
    numpy_type,
    path_of,
    type_name,
    whole_number,
)
from .keyed import is_scalar
from .maps import Mapping
from .values import Values, exactly


class Changing(Mapping):
    """What tables that change have in common."""

    def _queries(self, keys, what):
        return encode_like(keys, self._kind, self._library, what)

    def _column(self, values, keys, what):
        """Values as an array of the map's type, one for each key."""
        dtype, library = self._values.dtype, keys.library
        library.need(dtype)
        own = is_python(values)
        array, other = take_values(values, what)
        if not own:
            same_device(library, other, what)
        shape, tail = tuple(array.shape), self._values.tail
        if shape not in ((), tail, (keys.n, *tail)):
            a_row = f" of shape {tail}" if tail else ""
            raise ValueError(
                f"{what}: {plural(keys.n, 'key')} but values of shape {shape}; give one value{a_row} for "
                "each key"
            )
        mine = numpy_dtype(array) or array.dtype
        if mine != dtype:
            known = isinstance(mine, np.dtype) and isinstance(dtype, np.dtype)
            if known and other is NUMPY and (own or keeps_every_value(mine, dtype)):
                array = exactly(array, values, dtype, what)
            elif known and keeps_every_value(mine, dtype):
                array = other.convert(array, dtype)
            else:
                raise TypeError(
                    f"{what}: values of type {array.dtype}, but those of the map are {dtype}; convert them"
                )
        whole = (keys.n, *tail)
        if other is NUMPY and shape != whole and library.module is _host:  # numpy is fastest here
            array, shape = NUMPY.full(whole, array), whole
        if other is not library:
            array = library.readable(other.to_numpy(array))
            if numpy_dtype(array) != dtype:
                raise TypeError(
                    f"{what}: {library} has no values of type {dtype}; pass keys of another library"
                )
        return array if shape == whole else library.full(whole, array)

    @whole_floats
    def _change(self, keys, values, name):
        what = f"roost.{type(self).__name__}.{name}"
        keys = self._queries(keys, what)
        dtype, library = self._values.dtype, keys.library
        array = self._column(values, keys, what)
        if name == "add" and (dtype.kind in "mM" or (dtype.itemsize < 4 and dtype.kind != "u")):
            raise TypeError(f"{what}: sums of {dtype}; make a map with numbers of 4 or 8 bytes as values")
        words, floating = self._values.words(array, library), name == "add" and dtype.kind == "f"
        inserted, full = self._table.insert(library.place(), keys.words, words, name, floating)
        if full:
            raise MemoryError(f"{what}: {full} keys found no room")
        return inserted

    def insert(self, keys, values):
        """Stores the pairs whose keys are absent; returns how many were absent. Of several pairs with the
        same key any one is stored, not always the same on each run.

        Parameters
        ----------
        keys : array of n keys
            Of the type of the table's keys, or of a type whose values that type can all hold.
        values : array of n values, or one value for all keys
            Of the type of the table's values, or of a type whose values that type can all hold.

        Raises
        ------
        TypeError, ValueError
            Keys or values of another type, or in different numbers.
        MemoryError
            There is no room to grow. The table remains valid, and has part of the batch.
        """
        return self._change(keys, values, "insert")

    def insert_or_assign(self, keys, values):
        """Stores all pairs; present keys get the new value. Returns how many were absent. Of several pairs
        with the same key any one is stored, not always the same on each run."""
        return self._change(keys, values, "insert_or_assign")

    def erase(self, keys):
        """Removes keys; returns how many were present."""
        keys = self._queries(keys, f"roost.{type(self).__name__}.erase")
        return self._table.erase(keys.library.place(), keys.words)

    def __setitem__(self, keys, values):
        if is_scalar(keys):
            keys = [plain_number(keys, f"roost.{type(self).__name__}")]
        self.insert_or_assign(keys, values)

    def __delitem__(self, key):
        """Removes one key, or each key of an array; KeyError, and no change, if one is absent."""
        keys = self._one_there(key) if self._is_one(key) else self._all_there(key, "erase() takes these, too")
        self._table.erase(keys.library.place(), keys.words)

    def reserve(self, n):
        """Makes room for n keys in total, including the present ones."""
        n = whole_number(n, f"roost.{type(self).__name__}.reserve", "n")
        self._table.reserve(self._library.place(), n)

    def clear(self):
        """Removes all keys; keeps the memory."""
        self._table.clear(self._library.place())

    def __len__(self):
        """The number of keys. Reads the whole table."""
        return self._table.size(self._library.place())

    @property
    def capacity(self):
        """The number of slots."""
        return self._table.capacity()

    def _load(self):
        return f", {len(self) / self.capacity:.0%} full" if self.capacity else ""


class ConcurrentMap(Changing):
    """A map that changes: keys come and go in bulk, and it grows.

    Parameters
    ----------
    key_dtype, value_dtype : dtypes
        Keys: integers, bools, floats, dates of at most 8 bytes. Values: the same.
    capacity : int
        How many keys are expected; the map grows if there are more.
    load_factor : float
        How full the table may be, in (0, 1].
    like : array
        The map is created on the device of this array, for instance on a GPU; by default on the CPU.

    Notes
    -----
    Several threads may call reading methods at once; a call that changes the map must not overlap with any
    other call. If a key occurs more than once in a batch, any of its values may win.

    Examples
    --------
    >>> import numpy, roost
    >>> seen = roost.ConcurrentMap("int64", "int32")
    >>> seen.add(numpy.array([5, 6, 5]), numpy.array([1, 1, 1], "int32"))
    2
    >>> seen[5]
    2
    """

    def __init__(self, key_dtype="int64", value_dtype="int64", capacity=0, *, load_factor=0.8, like=None):
        what = "roost.ConcurrentMap"
        key, value = numpy_type(key_dtype, what), numpy_type(value_dtype, what)
        self._kind = kind_of(np.empty(0, key), what)
        if value.kind in "UOT":
            raise TypeError(
                f"{what}: texts or objects as values, which have no fixed size; build a roost.Map of them, "
                "or keep them in a list, and their numbers here"
            )
        if value.kind not in "biufmM" or value.itemsize > 8:
            raise TypeError(f"{what}: values of type {value}; give a type of numbers of at most 8 bytes")
        if self._kind.word_bytes > 8:
            raise TypeError(f"{what}: keys of type {key}; give a type of at most 8 bytes")
        capacity = whole_number(capacity, what, "capacity")
        self._load_factor = load_factor_of(load_factor, what)
        self._library = library = library_beside(like, what)
        library.need(value)
        self._values = Values.of_type(value, library)
        self._home = library.place()
        self._table = library.module.make_concurrent_map(
            self._home, self._kind.word_bytes, self._values.bytes, capacity, self._load_factor, True
        )

    def add(self, keys, values=1):
        """Adds a value to that of each key; absent keys start with 0. Returns how many were absent.

        Floats are added in no defined order; integers wrap around.
        """
        return self._change(keys, values, "add")

    def __reduce__(self):
        items = self._pickled(*self._items())
        return _concurrent_map_of, (self._kind.dtype, self._values.dtype, self._load_factor, *items)


class _Bodies(Values):
    """Values as a Store has them: the size of each is rounded up to a power of two bytes."""

    def _in_table(self):
        if not 0 < self.size <= 4096:
            raise ValueError(f"roost.Store: values of {self.size} bytes; they may have 1 to 4096")
        return max(8, 1 << (self.size - 1).bit_length())


class Store(Changing):
    """A map of large values that changes and grows, may be larger than GPU memory, and can be saved to a
    file. For example: embedding rows by their ids.

    Parameters
    ----------
    key_dtype : dtype
        Integers, bools, floats, dates of at most 8 bytes.
    value_dtype : dtype
        Any type of fixed size, records included.
    value_shape : tuple, or int
        The shape of one value: 64 for rows of 64 numbers; () for single numbers. A value may have up to 4096
        bytes.
    capacity : int
        How many keys are expected; the store grows if there are more.
    load_factor : float
        How full the table may be, in (0, 1].
    budget : int
        How many bytes of GPU memory keys and values may take; the rest are in pinned memory of the CPU, where
        the GPU reads them. By default three quarters of the free memory. Has no effect on the CPU.
    like : array
        The store is created on the device of this array, for instance on a GPU; by default on the CPU.

    Raises
    ------
    TypeError, ValueError
        Types that cannot be keys or values; values of more than 4096 bytes.
    MemoryError

    Notes
    -----
    The method is Stadium hashing (Khorasani et al., 2015): about nine bits per key in GPU memory say where a
    key is, or that it is absent; a value is read only where its key is. The size of a value is rounded up to
    a power of two bytes, at least 8; its key takes 8. For values of up to 8 bytes that all fit in GPU memory,
    a `ConcurrentMap` is faster.

    `items`, `keys` and `values` need room for all pairs on the device of the store; `save` does not.

    Several threads may call reading methods at once; a call that changes the store must not overlap with any
    other call. If a key occurs more than once in a batch, any of its values may win.

    Examples
    --------
    >>> import numpy, roost
    >>> rows = roost.Store("int64", "float32", 3)
    >>> values = numpy.array([[1, 2, 3], [4, 5, 6]], "float32")
    >>> rows.insert_or_assign(numpy.array([70, 8]), values)
    2
    >>> rows.find(numpy.array([8, 9]), missing=-1)
    array([[ 4.,  5.,  6.],
           [-1., -1., -1.]], dtype=float32)
    """

    def __init__(
        self,
        key_dtype="int64",
        value_dtype="float32",
        value_shape=(),
        capacity=0,
        *,
        load_factor=0.8,
        budget=None,
        like=None,
    ):
        what = "roost.Store"
        self._prepare(key_dtype, value_dtype, value_shape, budget, like, what)
        capacity = whole_number(capacity, what, "capacity")
        self._table = self._library.module.make_store(
            self._home, self._values.bytes, capacity, load_factor_of(load_factor, what), budget
        )

    def _prepare(self, key_dtype, value_dtype, value_shape, budget, like, what):
        self._library = library = library_beside(like, what)
        self._kind = kind_of(np.empty(0, numpy_type(key_dtype, what)), what)
        if self._kind.word_bytes > 8:
            raise TypeError(f"{what}: keys of type {self._kind}; give a type of at most 8 bytes")
        try:
            value = numpy_type(value_dtype, what)
        except TypeError:
            if not isinstance(value_dtype, getattr(getattr(library, "torch", None), "dtype", ())):
                raise
            value = value_dtype  # a type that only torch has
        if isinstance(value, np.dtype) and (value.hasobject or value.kind in "UO"):
            raise TypeError(f"{what}: values of type {value}; give a type of fixed size")
        tail = value_shape if isinstance(value_shape, (tuple, list)) else (value_shape,)
        if not all(isinstance(d, (int, np.integer)) and not isinstance(d, bool) and d > 0 for d in tail):
            raise ValueError(f"{what}: value_shape {value_shape}; give one or several numbers above 0")
        tail = tuple(map(int, tail))
        library.need(value)
        if budget is not None:
            whole_number(budget, what, "budget")
        self._values = _Bodies.of_type(value, library, tail)
        self._types = f"keys of {self._kind} and values of {type_name(self._values.dtype)}"
        self._types += f" of shape {tail}" if tail else ""
        self._home = library.place()

    @classmethod
    def load(cls, file, key_dtype="int64", value_dtype="float32", value_shape=(), *, budget=None, like=None):
        """A store that `save` has written, on the CPU or on a GPU, from either.

        Parameters
        ----------
        file : str or path
        key_dtype, value_dtype, value_shape, budget, like
            As for `Store`. Give the types and the shape that were saved; others are refused. For a file saved
            by C++, or by a version that did not yet store types, only these are checked: that keys fit, and
            that the size of values rounds up to the same power of two.

        Raises
        ------
        OSError
            The file does not exist, is damaged or truncated, or is not a saved store; or its keys and values
            have other types.
        MemoryError
        """
        what = "roost.Store.load"
        self = cls.__new__(cls)
        self._prepare(key_dtype, value_dtype, value_shape, budget, like, what)
        path = path_of(file, what)
        with naming_files(what):
            self._table, types = self._library.module.load_store(
                self._home, self._values.bytes, path, budget, self._types
            )
        if not types and self._kind.key_bytes < 8:
            words, _ = self._table.items(self._home)
            wide = self._library.to_numpy(self._library.adopt(words, INT64)).view(np.uint64)
            if wide.size and wide.max() >> (8 * self._kind.key_bytes):
                raise OSError(f"{what}: {path} has keys of more bytes than {self._kind}; give their type")
        return self

    def save(self, file):
        """Writes all pairs and their types to a file, with checksums; returns nothing.

        An existing file of this name is replaced once the new one is on disk, so one of the two exists at any
        time. C++ reads the file as a `stadium_map` with 8-byte keys. Must not overlap with changes.

        Raises
        ------
        OSError
            The file cannot be written; an existing file is unchanged.
        """
        what = "roost.Store.save"
        path = path_of(file, what)
        with naming_files(what):
            self._table.save(self._library.place(), path, self._types)

    def _queries(self, keys, what):
        return self._widened(super()._queries(keys, what))

    def _query(self, key):
        return self._widened(super()._query(key))

    def _widened(self, keys):
        if self._kind.word_bytes < 8:
            library = keys.library
            keys.words = library.resized(keys.words, keys.n, UINT8, (8,))[1]
        return keys

    def _decode(self, words):
        library, kind = self._library, self._kind
        if kind.key_bytes == 8:
            return kind.decode(words, library)
        raw = library.adopt(words, UINT8, (8,))
        keys, _ = library.resized(library.column(raw), len(raw), kind.dtype)
        return library.finish(keys, kind.dtype)

    def shrink_to_fit(self):
        """Moves the keys to the smallest table that has room for them."""
        self._table.shrink_to_fit(self._library.place())

    @property
    def memory(self):
        """Where the store is: bytes of memory of its device, and of memory of the CPU."""
        device, cpu = self._table.where(self._library.place())
        return {"device": device, "cpu": cpu}

    def __reduce__(self):
        raise TypeError("roost.Store: it does not pickle; save() it, and load() it there")


def _concurrent_map_of(key_dtype, value_dtype, load_factor, keys, values):
    """What pickle makes of a ConcurrentMap."""
    result = ConcurrentMap(key_dtype, value_dtype, len(keys), load_factor=load_factor, like=keys)
    result.insert(keys, values)
    return result
