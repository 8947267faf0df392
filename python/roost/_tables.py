"""Index, Map, Set, MultiMap, ConcurrentMap: tables that stay."""

import numpy as np

from . import _host, _strings
from ._arrays import as_numpy
from ._functions import _check_rows, _wide
from ._keys import aligned, encode, encode_like, keeps_every_value, kind_of

_WORDS = {4: np.uint32, 8: np.uint64}


class _Values:
    """Values as words, and back: 1 to 16 bytes lie in the table, more in an array beside it."""

    def __init__(self, values, n, what):
        array, self.origin = as_numpy(values, what)
        if array.ndim == 0 or array.dtype.hasobject or array.dtype.kind == "U":
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {array.shape}; pass an array of "
                "numbers, or of fixed-size records"
            )
        if len(array) != n:
            raise ValueError(f"{what}: {n} keys but {len(array)} values; give as many")
        self.dtype, self.tail = array.dtype.newbyteorder("="), array.shape[1:]
        self.array = np.ascontiguousarray(array.astype(self.dtype, copy=False))
        self.size = self.dtype.itemsize * int(np.prod(self.tail, dtype=np.int64))
        self.bytes = {1: 4, 2: 4, 4: 4, 8: 8, 16: 16}.get(self.size)  # in the table; None: rows

    def words(self, array=None):
        """The words of values; by default of the table's."""
        array = self.array if array is None else array
        n = len(array)
        flat = array.reshape(-1)
        if self.size < 4:
            return flat.view(f"u{self.size}").astype(np.uint32)
        if self.bytes == 16:
            return aligned(flat.view(np.uint64).reshape(n, 2))
        return aligned(flat.view(_WORDS[self.bytes]))

    def empty_words(self, n):
        return np.empty((n, 2), np.uint64) if self.bytes == 16 else np.empty(n, _WORDS[self.bytes])

    def decode(self, words):
        n = len(words)
        if self.size < 4:
            words = words.astype(f"u{self.size}")
        return words.reshape(-1).view(self.dtype).reshape((n, *self.tail))

    def one(self, value, what):
        """The value for absent keys, as an array of one value."""
        array = np.zeros((1, *self.tail), self.dtype)
        try:
            converted = np.asarray(value).astype(self.dtype)
            array[:] = converted
        except (ValueError, TypeError) as error:
            raise TypeError(f"{what}: missing={value!r} is no value of type {self.dtype}") from error
        if self.dtype.kind in "iu" and np.any(np.asarray(value) != converted):
            raise OverflowError(f"{what}: missing={value!r} is no value of type {self.dtype}")
        return array


def _scalar(x):
    return np.ndim(x) == 0 if not hasattr(x, "ndim") else x.ndim == 0


class _Keyed:
    """What all tables have in common."""

    _table = None
    _kind = None
    _strings = None  # Strings of the keys, and the seed of their hashes

    def _queries(self, keys, what):
        return encode_like(keys, self._kind, what)

    def contains(self, keys):
        """For each key whether it is there: an array of bool.

        Parameters
        ----------
        keys : array of n keys
            Of the type of the table's keys, or one whose every value that type can hold.
        """
        words, origin = self._queries(keys, f"roost.{type(self).__name__}.contains")
        found = np.empty(len(words), np.bool_)
        self._table.contains(0, words, found)
        return origin.wrap(found)

    def __contains__(self, key):
        try:
            return bool(
                self.contains(
                    [key]
                    if _scalar(key) or isinstance(key, (str, bytes))
                    else np.asarray(key, self._kind.dtype)[None]
                )[0]
            )
        except (OverflowError, TypeError):  # a number that no key of this type is
            return False

    def __len__(self):
        return self._table.size()

    @property
    def nbytes(self):
        """The memory of the table, in bytes."""
        return self._table.bytes()

    def valid(self):
        """Checks what must hold: looks up every key. For tests."""
        return self._table.valid(0)

    def __repr__(self):
        return (
            f"roost.{type(self).__name__}({len(self)} keys of type {self._kind.dtype}, {self.nbytes} bytes)"
        )


class Index(_Keyed):
    """Maps keys to their rows, like `pandas.Index`.

    Parameters
    ----------
    keys : array of n keys
        As for `unique`, strings included. If a key comes several times, its first row counts.

    Raises
    ------
    TypeError, ValueError
        Keys that are none.
    OverflowError
        More than 2^32 - 2 keys.

    Notes
    -----
    Never changes, so that any number of threads may ask. Takes about ten bytes a key of 4 bytes, besides
    `keys`, which it keeps.

    Examples
    --------
    >>> import numpy, roost
    >>> index = roost.Index(numpy.array([40, 20, 30]))
    >>> index.get_indexer(numpy.array([30, 50]))
    array([ 2, -1])
    >>> 20 in index, len(index)
    (True, 3)
    """

    def __init__(self, keys):
        what = "roost.Index"
        array, self._origin = as_numpy(keys, what)
        self._array = array
        _check_rows(len(array) if array.ndim else 0, True, what)
        if array.dtype.kind in "UO":
            self._kind = _strings.StringKind(array)
            self._strings = _strings.Strings(array, what)
            words, self._seed, _ = self._strings.tell_apart()
        else:
            words, self._kind, _ = encode(array, what)
        self._table = _host.make_index(0, words)

    def get_indexer(self, targets, *, index_dtype="int64"):
        """The row of each target, -1 for those that are absent.

        Parameters
        ----------
        targets : array of m keys
            Of the type of the index's keys, or one whose every value that type can hold.
        index_dtype : "int64" or "int32"
            The type of the rows. int32 is faster.

        Returns
        -------
        array of m numbers
        """
        what = "roost.Index.get_indexer"
        wide = _wide(index_dtype, what)
        _check_rows(len(self._array), wide, what)
        if self._strings is not None:
            return self._find_strings(targets, wide, what)
        words, origin = self._queries(targets, what)
        rows = np.empty(len(words), np.int64 if wide else np.int32)
        self._table.find_rows(0, words, rows)
        return origin.wrap(rows)

    def _find_strings(self, targets, wide, what):
        array, origin = as_numpy(targets, what)
        if array.dtype.kind not in "UO":
            raise TypeError(f"{what}: targets of type {array.dtype}, but the keys are strings; convert them")
        kind, other = self._array.dtype, None
        if kind.kind == "U":  # compared at its width; what is not the same there is no key
            strings = array if array.dtype.kind == "U" else _strings.Strings(array, what).array
            array = strings.astype(kind)
            other = array.astype(object) != strings.astype(object) if strings.dtype != kind else None
        elif array.dtype.kind == "U":
            array = array.astype(object)
        asked = _strings.Strings(array, what)
        rows = np.empty(len(array), np.int64)
        self._table.find_rows(0, _host.hash_strings(asked.text, asked.offsets, self._seed), rows)
        _host.keep_equal(asked.text, asked.offsets, self._strings.text, self._strings.offsets, rows)
        if other is not None:
            rows[other] = -1
        return origin.wrap(rows if wide else rows.astype(np.int32))

    def contains(self, keys):
        if self._strings is None:
            return super().contains(keys)
        rows = self._find_strings(keys, True, "roost.Index.contains")
        return rows >= 0

    contains.__doc__ = _Keyed.contains.__doc__

    @property
    def is_unique(self):
        """Whether no key comes twice."""
        return self._table.duplicates() == 0

    def __iter__(self):
        """The keys, in the order of their rows (with the copies)."""
        return iter(self._array.tolist())

    def __reduce__(self):
        return Index, (self._array,)


class Map(_Keyed):
    """A map that is built once from arrays, and then only asked: the fastest table.

    Parameters
    ----------
    keys : array of n keys
        Integers, bools, floats, dates, fixed-size bytes of at most 32, or rows of integers of at most 32
        bytes. If a key comes several times, its first value counts.
    values : array of n values
        Of any fixed-size type, or rows of any shape. Values of 1 to 16 bytes lie in the table; of larger ones
        the map keeps a copy beside it.

    Notes
    -----
    Never changes, so that any number of threads may ask.

    Examples
    --------
    >>> import numpy, roost
    >>> prices = roost.Map(numpy.array([7, 8]), numpy.array([1.5, 2.5]))
    >>> prices.find(numpy.array([8, 9]), missing=-1)
    array([ 2.5, -1. ])
    >>> prices[7]
    1.5
    """

    def __init__(self, keys, values):
        what = "roost.Map"
        words, self._kind, self._origin = encode(keys, what)
        self._values = _Values(values, len(words), what)
        if self._values.bytes is None:
            _check_rows(len(words), True, what)
            self._values.array = self._values.array.copy()
            self._table = _host.make_index(0, words)
        else:
            self._table = _host.make_map(0, words, self._values.words())
            self._values.array = None  # the table has them

    def find(self, keys, missing=0):
        """The value of each key, `missing` for those that are absent.

        Parameters
        ----------
        keys : array of m keys
        missing : a value

        Returns
        -------
        array of m values
        """
        what = "roost.Map.find"
        words, origin = self._queries(keys, what)
        other = self._values.one(missing, what)
        if self._values.bytes is not None:
            results = self._values.empty_words(len(words))
            self._table.find(0, words, self._values.words(other), results)
            return origin.wrap(self._values.decode(results))
        rows = np.empty(len(words), np.int64)
        self._table.find_rows(0, words, rows)
        if not len(self._values.array):
            return origin.wrap(np.repeat(other, len(rows), axis=0))
        results = self._values.array[rows]
        results[rows < 0] = other
        return origin.wrap(results)

    def get(self, key, default=None):
        """The value of one key, or `default`."""
        return self[key] if key in self else default

    def __getitem__(self, key):
        """The value of one key, or of each of an array of keys; KeyError if one is absent."""
        single = _scalar(key) or isinstance(key, (bytes, tuple))
        keys = (
            ([key] if self._kind.columns is None else np.asarray(key, self._kind.dtype)[None])
            if single
            else key
        )
        found = np.asarray(self.contains(keys))
        if not found.all():
            raise KeyError(
                key
                if single
                else f"{int((~found).sum())} of {len(found)} keys are absent; find() has a value for these"
            )
        values = self.find(keys)
        return (
            values[0].item()
            if single and not self._values.tail and not self._values.dtype.names
            else values[0] if single else values
        )

    def items(self):
        """Two arrays: all keys, and their values, in no particular order."""
        keys, words = self._table.items(0)
        values = self._values.decode(words) if self._values.bytes is not None else self._values.array[words]
        return self._origin.wrap(self._kind.decode(keys)), self._values.origin.wrap(values)

    def keys(self):
        """All keys, in the order of `items`."""
        return self.items()[0]

    def values(self):
        """All values, in the order of `items`."""
        return self.items()[1]

    def __iter__(self):
        return iter(np.asarray(self.keys()).tolist())

    def __reduce__(self):
        return Map, self.items()


class Set(_Keyed):
    """A set of keys that is built once: ``Set(y).contains(x)`` is ``isin(x, y)``, with one build for many
    questions.

    Parameters
    ----------
    keys : array of n keys
        As for `Map`.
    """

    def __init__(self, keys):
        words, self._kind, self._origin = encode(keys, "roost.Set")
        self._table = _host.make_set(0, words)

    def keys(self):
        """All keys, each once, in no particular order."""
        return self._origin.wrap(self._kind.decode(self._table.items(0)[0]))

    def __iter__(self):
        return iter(np.asarray(self.keys()).tolist())

    def __reduce__(self):
        return Set, (self.keys(),)


class MultiMap(_Keyed):
    """A map that has all values of a key, in the order of the input.

    Parameters
    ----------
    keys : array of n keys
        As for `Map`.
    values : array of n values
        As for `Map`. Those of other sizes than 4 and 8 bytes lie in an array beside the table.

    Examples
    --------
    >>> import numpy, roost
    >>> parcels = roost.MultiMap(numpy.array([1, 2, 1]), numpy.array([10., 20., 30.]))
    >>> parcels.find(numpy.array([1, 5, 2]))
    (array([0, 2, 2, 3]), array([10., 30., 20.]))
    """

    def __init__(self, keys, values):
        what = "roost.MultiMap"
        words, self._kind, self._origin = encode(keys, what)
        self._values = _Values(values, len(words), what)
        if self._values.size in (4, 8):
            self._table = _host.make_multimap(0, words, self._values.words())
            self._values.array = None
        else:
            _check_rows(len(words), True, what)
            self._values.array = self._values.array.copy()
            self._table = _host.make_multimap(0, words, np.arange(len(words), dtype=np.uint32))

    def _decode(self, words):
        values = self._values
        return values.origin.wrap(values.decode(words) if values.array is None else values.array[words])

    def __len__(self):
        """The number of pairs."""
        return self._table.size()

    @property
    def key_count(self):
        """The number of distinct keys."""
        return self._table.key_count()

    def count(self, keys):
        """How many values each key has: int64."""
        words, origin = self._queries(keys, "roost.MultiMap.count")
        counts = np.empty(len(words), np.int64)
        self._table.count(0, words, counts)
        return origin.wrap(counts)

    def find(self, keys):
        """All values of m keys.

        Returns
        -------
        offsets : int64 array of m + 1 numbers
        values : array
            Those of ``keys[i]`` are ``values[offsets[i]:offsets[i + 1]]``.
        """
        words, origin = self._queries(keys, "roost.MultiMap.find")
        offsets, values = self._table.find(0, words)
        return origin.wrap(offsets), self._decode(values)

    def find_pairs(self, keys):
        """All values of m keys, beside the number of each one's key in `keys`: (int64 array, values)."""
        words, origin = self._queries(keys, "roost.MultiMap.find_pairs")
        numbers, values = self._table.find_pairs(0, words)
        return origin.wrap(numbers), self._decode(values)

    def items(self):
        """Two arrays: the key and the value of each pair; the values of a key side by side."""
        keys, values = self._table.items(0)
        return self._origin.wrap(self._kind.decode(keys)), self._decode(values)

    def __reduce__(self):
        return MultiMap, self.items()


_NUMBERS = "biuf"


class ConcurrentMap(_Keyed):
    """A map that changes: keys come and go in bulk, and it grows.

    Parameters
    ----------
    key_dtype, value_dtype : dtypes
        Keys: integers, bools, floats, dates of at most 8 bytes. Values: the same.
    capacity : int
        How many keys are expected; it grows beyond.
    load_factor : float
        How full the table may be, in (0, 1].

    Notes
    -----
    Reading methods may be called from several threads at once; one that changes the map needs it for itself.
    If a key comes several times in one batch, any of its values may win.

    Examples
    --------
    >>> import numpy, roost
    >>> seen = roost.ConcurrentMap("int64", "int32")
    >>> seen.add(numpy.array([5, 6, 5]), numpy.array([1, 1, 1], "int32"))
    2
    >>> seen[5]
    2
    """

    def __init__(self, key_dtype="int64", value_dtype="int64", capacity=0, *, load_factor=0.8):
        what = "roost.ConcurrentMap"
        key, value = np.dtype(key_dtype), np.dtype(value_dtype)
        self._kind = kind_of(np.empty(0, key), what)
        if value.kind not in _NUMBERS + "mM" or value.itemsize > 8:
            raise TypeError(f"{what}: values of type {value}; give a type of numbers of at most 8 bytes")
        if self._kind.word_bytes > 8:
            raise TypeError(f"{what}: keys of type {key}; give a type of at most 8 bytes")
        if capacity < 0:
            raise ValueError(f"{what}: capacity {capacity}; give 0 or more")
        self._load_factor = load_factor
        self._values = _Values(np.empty(0, value), 0, what)
        self._table = _host.make_concurrent_map(
            0, self._kind.word_bytes, self._values.bytes, capacity, load_factor, True
        )

    def _change(self, keys, values, how, name):
        what = f"roost.ConcurrentMap.{name}"
        words, _ = self._queries(keys, what)
        array, _ = as_numpy(values, what)
        dtype = self._values.dtype
        if array.ndim == 0:
            array = np.broadcast_to(array, len(words))
        if array.shape != (len(words),):
            raise ValueError(f"{what}: {len(words)} keys but values of shape {array.shape}; give as many")
        if array.dtype != dtype:
            numbers = not hasattr(values, "dtype") and array.dtype.kind in "biuf"
            converted = array.astype(dtype) if numbers or keeps_every_value(array.dtype, dtype) else None
            if converted is None or (numbers and dtype.kind in "biu" and np.any(converted != array)):
                raise TypeError(
                    f"{what}: values of type {array.dtype}, but those of the map are {dtype}; convert them"
                )
            array = converted
        if how == 2 and dtype.itemsize < 4 and dtype.kind != "u":
            raise TypeError(f"{what}: sums of {dtype}; make a map with values of 4 or 8 bytes")
        column = np.ascontiguousarray(array)
        inserted, full = self._table.insert(0, words, self._values.words(column), how, dtype.kind == "f")
        if full:
            raise MemoryError(f"{what}: {full} keys found no room")
        return inserted

    def insert(self, keys, values):
        """Stores the pairs whose keys are absent; returns how many were."""
        return self._change(keys, values, 0, "insert")

    def insert_or_assign(self, keys, values):
        """Stores all pairs; keys that are there get the new value. Returns how many were absent."""
        return self._change(keys, values, 1, "insert_or_assign")

    def add(self, keys, values=1):
        """Adds a value to that of each key, absent ones having 0; returns how many were absent.

        Floats are added in no defined order; integers wrap around.
        """
        return self._change(keys, values, 2, "add")

    def erase(self, keys):
        """Takes keys out; returns how many were there."""
        words, _ = self._queries(keys, "roost.ConcurrentMap.erase")
        return self._table.erase(0, words)

    def find(self, keys, missing=0):
        """The value of each key, `missing` for those that are absent."""
        what = "roost.ConcurrentMap.find"
        words, origin = self._queries(keys, what)
        results = self._values.empty_words(len(words))
        self._table.find(0, words, self._values.words(self._values.one(missing, what)), results)
        return origin.wrap(self._values.decode(results))

    __getitem__ = Map.__getitem__
    get = Map.get

    def __setitem__(self, keys, values):
        if _scalar(keys):
            keys, values = [keys], [values]
        self.insert_or_assign(keys, values)

    def items(self):
        """Two arrays: all keys, and their values, in no particular order."""
        keys, values = self._table.items(0)
        return self._kind.decode(keys), self._values.decode(values)

    keys = Map.keys
    values = Map.values
    __iter__ = Map.__iter__

    def reserve(self, n):
        """Makes room for n keys, those included that are there."""
        self._table.reserve(0, n)

    def clear(self):
        """Takes all keys out; keeps the memory."""
        self._table.clear(0)

    def __len__(self):
        """The number of keys. Reads the whole table."""
        return self._table.size(0)

    @property
    def capacity(self):
        """The number of slots."""
        return self._table.capacity()

    def __reduce__(self):
        return _concurrent_map_of, (self._kind.dtype, self._values.dtype, self._load_factor, *self.items())


def _concurrent_map_of(key_dtype, value_dtype, load_factor, keys, values):
    """What pickle makes of a ConcurrentMap."""
    result = ConcurrentMap(key_dtype, value_dtype, len(keys), load_factor=load_factor)
    result.insert(keys, values)
    return result
