"""Index, Map, Set, MultiMap, ConcurrentMap, Store: tables that stay."""

import contextlib
import numbers
import os
from typing import NoReturn

import numpy as np

from . import _host
from ._arrays.exact import (
    alike,
    convert,
    is_python,
    keeps_every_value,
    plain_number,
    plural,
    shown,
    whole_floats,
)
from ._arrays.frames import of_capsules
from ._arrays.libraries import NUMPY, same_device, take, take_values
from ._functions import _check_rows, _integer, _rows_type, _whole_number
from ._keys import strings
from ._keys.arrow import ArrowKind, encode_given_table, given_of
from ._keys.packing import (
    _BOOL,
    _INT32,
    _INT64,
    _UINT8,
    ColumnsKind,
    encode_table,
    is_array,
    only_column,
    pack_table,
    table_columns,
)
from ._keys.words import Keys, encode_like, encode_one, encode_row, kind_of, numpy_dtype

_ASKED = (ColumnsKind, ArrowKind)  # kinds that make the words of queries themselves


class _Values:
    """Values as words, and back: 1 to 16 bytes lie in the table, more in an array beside it."""

    def __init__(self, values, keys, what):
        array, library = take_values(values, what)
        same_device(keys.library, library, what)
        if not array.shape or (library is NUMPY and (array.dtype.hasobject or array.dtype.kind in "UT")):
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {tuple(array.shape)}; pass an array of "
                "numbers, or of fixed-size records"
            )
        if array.shape[0] != keys.n:
            raise ValueError(
                f"{what}: {plural(keys.n, 'key')} but {plural(array.shape[0], 'value')}; give as many"
            )
        self._set(numpy_dtype(array) or array.dtype, tuple(array.shape[1:]), library)
        self.given = array

    def _set(self, dtype, tail, library):
        self.dtype = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
        self.tail, self.library = tail, library
        self.array = None  # where values lie that the table has not
        self.size = self.dtype.itemsize
        for d in tail:
            self.size *= d
        self.bytes = self._in_table()
        self._zero = np.zeros((1, self.bytes or self.size), np.uint8)
        self._last = None, None, None  # the last `missing`: its type, itself, and the array for it

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
        return library.resized(library.column(array), len(array), _UINT8, (self.bytes,))[1]

    def keep(self):
        """A copy of the values, for tables that have row numbers instead."""
        library, array = self.library, self.given
        if library is NUMPY:
            array = np.ascontiguousarray(array.astype(self.dtype, copy=True))
        else:
            array = library.copy(array)
        self.array, self.given = array, None

    def take_words(self):
        """The words of the values, which nobody needs any longer here."""
        words = self.words(self.given, self.library)
        self.given = None
        return words

    def output(self, n, library):
        """Where C++ writes values: as the library's `output`."""
        library.need(self.dtype)
        if self.size == self.bytes:
            return library.output(n, self.dtype, self.tail)
        return library.output(n, _UINT8, (self.bytes,))

    def finish(self, words, library):
        """Values from what was empty."""
        if self.size != self.bytes:
            words, _ = library.resized(library.column(words), len(words), self.dtype, self.tail)
        return library.finish(words, self.dtype, self.tail)

    def decode(self, words, library):
        """Values from words that C++ has made."""
        library.need(self.dtype)
        if self.array is not None:
            return self.rows(library.adopt(words, _INT32), library)
        if self.size == self.bytes:
            return library.adopt(words, self.dtype, self.tail)
        return self.finish(library.adopt(words, _UINT8, (self.bytes,)), library)

    def rows(self, rows, library, missing=(0, 0, 0)):
        """Values that the table has not, by their row numbers."""
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
            array = _exactly(library.to_numpy(given), value, dtype, what)
            row = np.empty((1, *self.tail), dtype)
            row[:] = array
        except OverflowError:
            raise OverflowError(f"{what}: missing={shown(value)} is no value of type {dtype}") from None
        except (ValueError, TypeError):
            raise TypeError(f"{what}: missing={shown(value)} is no value of type {dtype}") from None
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
            raise TypeError(f"{what}: missing={value!r} is no value of type {dtype}") from None
        exact = given.is_floating_point() or torch.equal(array.double(), given.double())
        if not exact or not torch.equal(torch.isinf(array), torch.isinf(given)):
            raise OverflowError(f"{what}: missing={value!r} is no value of type {dtype}")
        return self._padded(row.reshape(-1).view(torch.uint8).numpy())

    def _padded(self, bytes):
        array = self._zero.copy()
        array[0, : self.size] = bytes
        return array


def _exactly(array, given, dtype, what):
    """An array of numpy as values of a type, none of which changes. `given`: what it was made of."""
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


def _dtype(dtype, what):
    """numpy's type of what a user calls one: of torch, too."""
    of_torch = str(dtype).startswith("torch.")
    try:
        found = None if dtype is None else np.dtype(str(dtype)[6:] if of_torch else dtype)  # None: float64
    except TypeError:
        found = None
    if found is not None and found.subdtype is not None:
        raise TypeError(f"{what}: a type with a shape, {dtype}; give the type of one number")
    if found is None or (of_torch and found.isbuiltin != 1):  # jax teaches numpy bfloat16
        raise TypeError(f"{what}: numpy has no type {dtype}")
    return found


def _name(dtype):
    """A type's name, for files: equal types have one, whether their fields are said to be aligned or not."""

    def plain(dtype):
        if not dtype.names:
            return dtype
        types, offsets = zip(*(dtype.fields[name][:2] for name in dtype.names), strict=True)
        types = list(map(plain, types))
        return np.dtype(dict(names=dtype.names, formats=types, offsets=offsets, itemsize=dtype.itemsize))

    return str(plain(dtype) if isinstance(dtype, np.dtype) else dtype).removeprefix("torch.")


def _library_of(like, what):
    """The Library of an array beside which a table is to lie."""
    if isinstance(like, (str, bytes)):
        raise TypeError(f"{what}: like={shown(like)}; pass an array that lies there")
    return NUMPY if like is None else take(like, what)[1]


def _path(file, what):
    """A path as C++ takes it: a str of UTF-8."""
    try:
        path = os.fsdecode(file)
        path.encode()
    except TypeError:
        raise TypeError(f"{what}: a file of type {type(file).__name__}; give a path") from None
    except UnicodeError:
        raise ValueError(f"{what}: the path {file!r} is not UTF-8; give another name") from None
    if not path or "\0" in path:
        raise ValueError(f"{what}: the path {path!r} is empty or has a NUL; give another one")
    return path


@contextlib.contextmanager
def _files(what):
    """Lets an OSError begin with what was called."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{what}: {error}") from None


def _load_factor(x, what):
    if not isinstance(x, numbers.Real) or isinstance(x, bool):
        raise TypeError(f"{what}: load_factor={shown(x)}; give a load factor from 0.01 to 1")
    if not 0.01 <= x <= 1:
        raise ValueError(f"{what}: load_factor={x}; give a load factor from 0.01 to 1")
    return float(x)


def _scalar(x):
    if hasattr(x, "ndim"):
        return x.ndim == 0
    return isinstance(x, (str, bytes)) or not (
        hasattr(x, "__len__") or hasattr(x, "__arrow_c_device_array__")
    )


def _is_one(key):
    """Whether what stands in brackets is one key: a number, or a row as a tuple."""
    return _scalar(key) or (isinstance(key, tuple) and not any(map(is_array, key)))


class _Table:
    """What all tables have in common, those of several processes too."""

    _table = None
    _kind = None
    _values = None
    _library = NUMPY

    def _contains(self, keys):
        library = keys.library
        found, target = library.output(keys.n, _BOOL)
        self._table.contains(library.place(), keys.words, target)
        return library.finish(found, _BOOL)

    def _find(self, keys, missing):
        """`missing`: what `_Values.one` makes of the value for absent keys."""
        library, values = keys.library, self._values
        if values.array is None:
            results, target = values.output(keys.n, library)
            self._table.find(library.place(), keys.words, missing, target)
            return values.finish(results, library)
        rows, target = library.output(keys.n, _INT32)
        self._table.find_rows(library.place(), keys.words, target)
        return values.rows(library.finish(rows, _INT32), library, missing)

    def _items(self):
        """Keys, as their kind has them, and values."""
        keys, values = self._table.items(self._library.place())
        return self._decode(keys), self._values.decode(values, self._library)

    def _decode(self, words):
        """Keys from words of the table."""
        return self._kind.decode(words, self._library)

    def __len__(self):
        return self._table.size()

    @property
    def nbytes(self):
        """The memory of the table, in bytes."""
        return self._table.bytes()

    def valid(self):
        """Checks what must hold: looks up every key. For tests."""
        return self._table.valid(self._library.place())


class _Keyed(_Table):
    """What the tables of one process have in common."""

    _home = None  # the place where it was built, whose stream it needs

    def _queries(self, keys, what):
        kind, home = self._kind, self._library
        if kind.__class__ in _ASKED:
            return kind.queries(keys, home, what)
        try:
            return encode_like(keys, kind, home, what)
        except (TypeError, ValueError):
            column = only_column(keys, what)
            if column is None or isinstance(column.array, strings.Texts):
                raise
        keys = encode_like(column.array, kind, home, what)
        if column.valid is not None:
            keys.words = np.array(keys.words).view(np.uint8).reshape(keys.n, kind.word_bytes)
            keys.words[~column.there] = self._absent_word()
        return keys

    def _absent_word(self):
        """A word that no key of a table of numbers is, as nearly all are."""
        random = np.random.default_rng(0)
        while True:
            words = random.integers(0, 256, (1024, self._kind.word_bytes), np.uint8)
            found = np.empty(1024, np.bool_)
            self._table.contains(self._library.place(), words, found)
            if not found.all():
                return words[np.argmin(found)]

    @whole_floats
    def _query(self, key):
        """The Keys of one key."""
        what = f"roost.{type(self).__name__}"
        if self._kind.__class__ in _ASKED:
            return self._kind.query(key, self._library, what)
        if isinstance(key, (list, tuple)):
            key = tuple(map(plain_number, key))
        elif not _scalar(key):
            return encode_row(key, self._kind, self._library, what)
        return encode_one(plain_number(key), self._kind, self._library, what)

    def contains(self, keys):
        """For each key whether it is there: an array of bool.

        Parameters
        ----------
        keys : array of n keys, or several columns
            Of the type of the table's keys, or one whose every value that type can hold; columns as those of
            `Index.get_indexer`.
        """
        return self._contains(self._queries(keys, f"roost.{type(self).__name__}.contains"))

    def __contains__(self, key):
        return self._present(key) is not None

    def _present(self, key):
        """The Keys of one key, if it is there."""
        try:
            keys = self._query(key)
        except (OverflowError, TypeError, ValueError):  # what no key of this type is
            return None
        return keys if self._contains(keys)[0] else None

    def _one_there(self, key):
        """The Keys of one key; KeyError if it is absent."""
        try:
            keys = self._query(key)
        except OverflowError:  # a number that no key of this type is
            raise KeyError(key) from None
        if not self._contains(keys)[0]:
            raise KeyError(key)
        return keys

    def _all_there(self, keys, instead):
        """The Keys of an array of keys; KeyError if one is absent. `instead`: what takes absent keys."""
        keys = self._queries(keys, f"roost.{type(self).__name__}")
        found = self._contains(keys)
        if not found.all():
            raise KeyError(f"{int((~found).sum())} of {len(found)} keys are absent; {instead}")
        return keys

    __reversed__ = None  # or Python would look up the keys 0, 1, ...

    def __setitem__(self, key, value) -> NoReturn:
        self._never_changes()

    def __delitem__(self, key) -> NoReturn:
        self._never_changes()

    def _never_changes(self):
        raise TypeError(
            f"roost.{type(self).__name__}: it never changes; build another, or use a ConcurrentMap or Store"
        )

    def _pickled(self, keys, *values):
        """What pickle stores for keys, as their kind has them, and values."""
        library = self._library
        return self._kind.pickled(keys, library), *(library.pickled(array) for array in values)

    def _keys(self):
        """The distinct keys, as their kind has them."""
        return self._decode(self._table.items(self._library.place())[0])

    def _iterate(self):
        return iter(self._kind.python(self._keys(), self._library))

    def __repr__(self):
        return (
            f"roost.{type(self).__name__}({len(self)} keys of type {self._kind.dtype}, {self.nbytes} bytes)"
        )


class Index(_Keyed):
    """Maps keys to their rows, like `pandas.Index`: `len`, and iterating, count a key as often as it comes.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `unique`: strings, columns with nulls, tuples of columns and frames included. If a key comes
        several times, its first row counts. A null is a key, equal to the other nulls of its column.

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
    >>> shops = roost.Index((numpy.array([1, 1, 2]), numpy.array(["a", "b", "a"])))
    >>> shops.get_indexer([(2, "a"), (2, "b")]).tolist(), (1, "b") in shops, shops[0]
    ([2, -1], True, (1, 'a'))
    """

    _strings = None  # the TextRows of keys that are texts
    _columns = None  # of keys that are columns

    def __init__(self, keys):
        what = "roost.Index"
        if type(keys) is np.ndarray or type(keys) is list:
            columns, form = None, strings.take_keys(keys, what)
        else:
            keys = of_capsules(keys)
            given = given_of(keys, what)
            columns, form = table_columns(keys, what) if given is None else (given.columns, None)
        if columns is None:
            array, library = self._array, self._library = form
            _check_rows(array.shape[0] if array.shape else 0, _INT64, what)
            if isinstance(array, strings.Texts):
                self._kind, self._strings = strings.StringKind(array), strings.TextRows(array)
                self._table = self._strings.table
                return
            self._kind = kind_of(array, what)
            words = Keys(array, array.shape[0], self._kind, library).words
        else:
            _check_rows(len(columns[0]), _INT64, what)
            coded = pack_table(columns, form, what) if given is None else encode_given_table(given)
            self._array, self._columns, words = keys, columns, coded.words
            self._kind, self._library = coded.kind, coded.library
        self._home = self._library.place()
        self._table = self._library.module.make_index(self._home, words)
        if isinstance(self._kind, ArrowKind):
            self._kind.keep()

    def get_indexer(self, targets, *, index_dtype="int64"):
        """The row of each target, -1 for those that are absent.

        Parameters
        ----------
        targets : array of m keys, or several columns
            Of the type of the index's keys, or one whose every value that type can hold. As many columns as
            the index has, or a list of tuples: these are compared by value, and may be of any type whose
            values can be equal.
        index_dtype : "int64" or "int32"
            The type of the rows. int32 is faster.

        Returns
        -------
        array of m numbers
        """
        what = "roost.Index.get_indexer"
        dtype = _rows_type(index_dtype, what)
        if dtype is _INT32:
            _check_rows(len(self), dtype, what)
        if self._strings is not None:
            return self._find_strings(targets, dtype, what)
        keys = self._queries(targets, what)
        library = keys.library
        rows, target = library.output(keys.n, dtype)
        self._table.find_rows(library.place(), keys.words, target)
        return library.finish(rows, dtype)

    def _find_strings(self, targets, dtype, what):
        there = None
        try:
            asked, library = strings.take_keys(targets, what)
        except (TypeError, ValueError):
            column = only_column(targets, what)
            if column is None:
                raise
            asked, library, there = column.array, column.library, column.there
        if is_python(targets) and asked.shape == (0,):
            asked = np.empty(0, object)
        if library is NUMPY and asked.dtype.kind in strings.KINDS + "S":
            asked = strings.compared(asked, what)
        else:
            raise TypeError(f"{what}: targets of type {asked.dtype}, but the keys are strings; convert them")
        mine = self._strings.texts.type
        if asked.type and mine and asked.type is not mine:
            raise TypeError(
                f"{what}: targets are {asked.type.__name__}, but the keys are {mine.__name__}; convert them"
            )
        rows = self._strings.find(asked)
        if there is not None:
            rows[~there] = -1
        return rows.astype(dtype, copy=False)

    def contains(self, keys):
        if self._strings is None:
            return super().contains(keys)
        return self._find_strings(keys, _INT64, "roost.Index.contains") >= 0

    contains.__doc__ = _Keyed.contains.__doc__

    def __contains__(self, key):
        if self._strings is None:
            return super().__contains__(key)
        return isinstance(key, self._strings.texts.type or ()) and bool(self.contains([key])[0])

    @property
    def is_unique(self):
        """Whether no key comes twice."""
        return self._table.duplicates() == 0

    def __len__(self):
        """The number of rows, copies of keys included."""
        return self._array.shape[0] if self._columns is None else len(self._columns[0])

    def __iter__(self):
        """The key of each row, copies included."""
        return iter(self._python(0, len(self)))

    def _python(self, first, end):
        """The keys of some rows as Python has them."""
        if self._columns is None:
            return self._kind.python(self._array[first:end], self._library)
        rows = np.arange(first, end)
        if isinstance(self._kind, ArrowKind):
            return self._kind.python(self._library.of_numpy(rows), self._library)
        return self._kind.rows_of([column.values(rows) for column in self._columns])

    def __getitem__(self, row):
        """The key of one row; IndexError if there is no such row. Rows begin at 0, and -1 is no row, since
        `get_indexer` has it for absent keys."""
        if not _scalar(row) or isinstance(row, slice):
            raise TypeError(
                "roost.Index[row]: give one row number; for several rows, index the array of keys itself"
            )
        row = _integer(row, "roost.Index", "row")
        if not 0 <= row < len(self):
            raise IndexError(f"roost.Index: there is no row {row}; give 0 or more, and less than {len(self)}")
        return self._python(row, row + 1)[0]

    def __reduce__(self):
        if self._columns is None:
            return Index, self._pickled(self._array[:])
        if isinstance(self._kind, ArrowKind):
            return Index, self._pickled(None)
        if type(self._array) is not tuple:
            return Index, (self._array,)
        given = (c.given if c.library is NUMPY else c.library.pickled(c.array) for c in self._columns)
        return Index, (tuple(given),)


class _Mapping(_Keyed):
    """What tables of keys and values have in common."""

    def find(self, keys, missing=0):
        """The value of each key, `missing` for those that are absent.

        Parameters
        ----------
        keys : array of m keys, or several columns
        missing : a value
            By default 0, which for dates is 1970-01-01, and for bytes is empty. If a stored value can be 0,
            pass another one to tell absent keys apart, or use `contains`; ``table[keys]`` raises KeyError.

        Returns
        -------
        array of m values
        """
        what = f"roost.{type(self).__name__}.find"
        return self._find(self._queries(keys, what), self._values.one(missing, what))

    def get(self, key, default=None):
        """The value of one key, or `default`. A key of several columns is a tuple; None is a null."""
        keys = self._present(key)
        return default if keys is None else self._one_value(keys)

    def __getitem__(self, key):
        """The value of one key, or of each of an array of keys; KeyError if one is absent."""
        if _is_one(key):
            return self._one_value(self._one_there(key))
        return self._find(self._all_there(key, "find() has a value for these"), self._values.one(0, ""))

    def _one_value(self, keys):
        value, values = self._find(keys, self._values.one(0, ""))[0], self._values
        keep = values.tail or self._records or getattr(values.dtype, "kind", "f") in "mM"
        return value if keep else value.item()

    @property
    def _records(self):
        return getattr(self._values.dtype, "names", None)

    def items(self):
        """Two arrays: all keys, and their values, in no particular order. Keys of several columns come in the
        form that they came in: a tuple of arrays, or a frame."""
        keys, values = self._items()
        return self._kind.result(keys, self._library), values

    def keys(self):
        """All keys, in the order of `items`."""
        return self._kind.result(self._keys(), self._library)

    def values(self):
        """All values, in the order of `items`."""
        return self.items()[1]

    def __iter__(self):
        return self._iterate()


class Map(_Mapping):
    """A map that is built once from arrays, and then only asked: the fastest table.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`. If a key comes several times, its first value counts. Or a dict, which has the values,
        too.
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

    def __init__(self, keys, values=None):
        what = "roost.Map"
        if values is None:
            if not isinstance(keys, dict):
                raise TypeError(f"{what}: no values; pass an array of them, one for each key, or a dict")
            keys, values = list(keys), list(keys.values())
        keys = encode_table(keys, what)
        self._kind, self._library = keys.kind, keys.library
        values = self._values = _Values(values, keys, what)
        module, place = keys.library.module, keys.library.place()
        self._home = place
        if values.bytes is None:
            _check_rows(keys.n, _INT64, what)
            values.keep()
            self._table = module.make_index(place, keys.words)
        else:
            self._table = module.make_map(place, keys.words, values.take_words())

    def __reduce__(self):
        return Map, self._pickled(*self._items())


class Set(_Keyed):
    """A set of keys that is built once: ``Set(y).contains(x)`` is ``isin(x, y)``, with one build for many
    questions.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`.
    """

    def __init__(self, keys):
        keys = encode_table(keys, "roost.Set")
        self._kind, self._library = keys.kind, keys.library
        self._home = keys.library.place()
        self._table = keys.library.module.make_set(self._home, keys.words)

    def keys(self):
        """All keys, each once, in no particular order, in the form that they came in."""
        return self._kind.result(self._keys(), self._library)

    def __iter__(self):
        return self._iterate()

    def __reduce__(self):
        return Set, self._pickled(self._keys())


class MultiMap(_Keyed):
    """A map that has all values of a key, in the order of the input.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`.
    values : array of n values
        As for `Map`. Those of other sizes than 4 and 8 bytes lie in an array beside the table.

    Examples
    --------
    >>> import numpy, roost
    >>> parcels = roost.MultiMap(numpy.array([1, 2, 1]), numpy.array([10., 20., 30.]))
    >>> parcels.find(numpy.array([1, 5, 2]))
    (array([0, 2, 2, 3]), array([10., 30., 20.]))
    >>> parcels[1]
    array([10., 30.])
    """

    __iter__ = None  # of keys or of pairs? `items` has both

    def __init__(self, keys, values):
        what = "roost.MultiMap"
        keys = encode_table(keys, what)
        self._kind, self._library = keys.kind, library = keys.kind, keys.library
        values = self._values = _Values(values, keys, what)
        if values.size in (4, 8):
            words = values.take_words()
        else:
            _check_rows(keys.n, _INT64, what)
            values.keep()
            words = library.column(library.of_numpy(np.arange(keys.n, dtype=np.uint32)))
        self._home = library.place()
        self._table = library.module.make_multimap(self._home, keys.words, words)

    def __len__(self):
        """The number of pairs."""
        return self._table.size()

    @property
    def key_count(self):
        """The number of distinct keys."""
        return self._table.key_count()

    def count(self, keys):
        """How many values each key has: int64."""
        keys = self._queries(keys, "roost.MultiMap.count")
        library = keys.library
        counts, target = library.output(keys.n, _INT64)
        self._table.count(library.place(), keys.words, target)
        return library.finish(counts, _INT64)

    def find(self, keys):
        """All values of m keys.

        Returns
        -------
        offsets : int64 array of m + 1 numbers
        values : array
            Those of ``keys[i]`` are ``values[offsets[i]:offsets[i + 1]]``.
        """
        keys = self._queries(keys, "roost.MultiMap.find")
        library = keys.library
        offsets, values = self._table.find(library.place(), keys.words)
        return library.adopt(offsets, _INT64), self._values.decode(values, library)

    def __getitem__(self, key):
        """All values of one key, in the order of the input; KeyError if it is absent."""
        if not _is_one(key):
            raise TypeError("roost.MultiMap[key]: give one key; find() has the values of several keys")
        _, values = self._table.find(self._library.place(), self._one_there(key).words)
        return self._values.decode(values, self._library)

    def find_pairs(self, keys):
        """All values of m keys, beside the number of each one's key in `keys`: (int64 array, values)."""
        keys = self._queries(keys, "roost.MultiMap.find_pairs")
        library = keys.library
        numbers, values = self._table.find_pairs(library.place(), keys.words)
        return library.adopt(numbers, _INT64), self._values.decode(values, library)

    def items(self):
        """Two arrays: the key and the value of each pair; the values of a key side by side. Keys of several
        columns come in the form that they came in: a tuple of arrays, or a frame."""
        keys, values = self._items()
        return self._kind.result(keys, self._library), values

    def __reduce__(self):
        return MultiMap, self._pickled(*self._items())


class _Changing(_Mapping):
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
                f"{what}: {plural(keys.n, 'key')} but values of shape {shape}; give as many{a_row}"
            )
        mine = numpy_dtype(array) or array.dtype
        if mine != dtype:
            known = isinstance(mine, np.dtype) and isinstance(dtype, np.dtype)
            if known and other is NUMPY and (own or keeps_every_value(mine, dtype)):
                array = _exactly(array, values, dtype, what)
            elif known and keeps_every_value(mine, dtype):
                array = other.convert(array, dtype)
            else:
                raise TypeError(
                    f"{what}: values of type {array.dtype}, but those of the map are {dtype}; convert them"
                )
        whole = (keys.n, *tail)
        if other is NUMPY and shape != whole and library.module is _host:  # numpy takes the least time for it
            array, shape = NUMPY.full(whole, array), whole
        if other is not library:
            array = library.readable(other.to_numpy(array))
            if numpy_dtype(array) != dtype:
                raise TypeError(
                    f"{what}: {library} has no values of type {dtype}; pass keys of another library"
                )
        return array if shape == whole else library.full(whole, array)

    @whole_floats
    def _change(self, keys, values, how, name):
        what = f"roost.{type(self).__name__}.{name}"
        keys = self._queries(keys, what)
        dtype, library = self._values.dtype, keys.library
        array = self._column(values, keys, what)
        if how == 2 and (dtype.kind in "mM" or (dtype.itemsize < 4 and dtype.kind != "u")):
            raise TypeError(f"{what}: sums of {dtype}; make a map with numbers of 4 or 8 bytes as values")
        words, floating = self._values.words(array, library), how == 2 and dtype.kind == "f"
        inserted, full = self._table.insert(library.place(), keys.words, words, how, floating)
        if full:
            raise MemoryError(f"{what}: {full} keys found no room")
        return inserted

    def insert(self, keys, values):
        """Stores the pairs whose keys are absent; returns how many were.

        Parameters
        ----------
        keys : array of n keys
            Of the type of the table's keys, or one whose every value that type can hold.
        values : array of n values, or one value for all keys
            Of the type of the table's values, or one whose every value that type can hold.

        Raises
        ------
        TypeError, ValueError
            Keys or values of another type, or not as many.
        MemoryError
            There is no room to grow. The table is valid, and has some of the batch.
        """
        return self._change(keys, values, 0, "insert")

    def insert_or_assign(self, keys, values):
        """Stores all pairs; keys that are there get the new value. Returns how many were absent."""
        return self._change(keys, values, 1, "insert_or_assign")

    def erase(self, keys):
        """Takes keys out; returns how many were there."""
        keys = self._queries(keys, f"roost.{type(self).__name__}.erase")
        return self._table.erase(keys.library.place(), keys.words)

    def __setitem__(self, keys, values):
        self.insert_or_assign([keys] if _scalar(keys) else keys, values)

    def __delitem__(self, key):
        """Takes out one key, or each of an array of keys; KeyError, and no change, if one is absent."""
        keys = self._one_there(key) if _is_one(key) else self._all_there(key, "erase() takes these, too")
        self._table.erase(keys.library.place(), keys.words)

    def reserve(self, n):
        """Makes room for n keys, those included that are there."""
        n = _whole_number(n, f"roost.{type(self).__name__}.reserve", "n")
        self._table.reserve(self._library.place(), n)

    def clear(self):
        """Takes all keys out; keeps the memory."""
        self._table.clear(self._library.place())

    def __len__(self):
        """The number of keys. Reads the whole table."""
        return self._table.size(self._library.place())

    @property
    def capacity(self):
        """The number of slots."""
        return self._table.capacity()


class ConcurrentMap(_Changing):
    """A map that changes: keys come and go in bulk, and it grows.

    Parameters
    ----------
    key_dtype, value_dtype : dtypes
        Keys: integers, bools, floats, dates of at most 8 bytes. Values: the same.
    capacity : int
        How many keys are expected; it grows beyond.
    load_factor : float
        How full the table may be, in (0, 1].
    like : array
        The map lies where this array does, for instance on a GPU; by default on the CPU.

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

    def __init__(self, key_dtype="int64", value_dtype="int64", capacity=0, *, load_factor=0.8, like=None):
        what = "roost.ConcurrentMap"
        key, value = _dtype(key_dtype, what), _dtype(value_dtype, what)
        self._kind = kind_of(np.empty(0, key), what)
        if value.kind not in "biufmM" or value.itemsize > 8:
            raise TypeError(f"{what}: values of type {value}; give a type of numbers of at most 8 bytes")
        if self._kind.word_bytes > 8:
            raise TypeError(f"{what}: keys of type {key}; give a type of at most 8 bytes")
        capacity = _whole_number(capacity, what, "capacity")
        self._load_factor = _load_factor(load_factor, what)
        self._library = library = _library_of(like, what)
        library.need(value)
        self._values = _Values.of_type(value, library)
        self._home = library.place()
        self._table = library.module.make_concurrent_map(
            self._home, self._kind.word_bytes, self._values.bytes, capacity, self._load_factor, True
        )

    def add(self, keys, values=1):
        """Adds a value to that of each key, absent ones having 0; returns how many were absent.

        Floats are added in no defined order; integers wrap around.
        """
        return self._change(keys, values, 2, "add")

    def __reduce__(self):
        items = self._pickled(*self._items())
        return _concurrent_map_of, (self._kind.dtype, self._values.dtype, self._load_factor, *items)


class _Bodies(_Values):
    """Values as a Store has them: each has the next power of two of bytes."""

    def _in_table(self):
        if not 0 < self.size <= 4096:
            raise ValueError(f"roost.Store: values of {self.size} bytes; they may have 1 to 4096")
        return max(8, 1 << (self.size - 1).bit_length())


class Store(_Changing):
    """A map of large values that changes and grows, that may be larger than the memory of a GPU, and that a
    file keeps: embedding rows by their ids.

    Parameters
    ----------
    key_dtype : dtype
        Integers, bools, floats, dates of at most 8 bytes.
    value_dtype : dtype
        Any type of fixed size, records included.
    value_shape : tuple, or int
        The shape of one value: 64 for rows of 64 numbers; () for single ones. A value may have 4096 bytes.
    capacity : int
        How many keys are expected; it grows beyond.
    load_factor : float
        How full the table may be, in (0, 1].
    budget : int
        How many bytes of a GPU's memory keys and values may take; the others lie in pinned memory of the CPU,
        where the GPU reads them. By default three quarters of what is free. Means nothing on the CPU.
    like : array
        The store works where this array does, for instance on a GPU; by default on the CPU.

    Raises
    ------
    TypeError, ValueError
        Types of keys or values that are none, values of more than 4096 bytes.
    MemoryError

    Notes
    -----
    It is Stadium hashing (Khorasani et al., 2015): about nine bits a key of a GPU's memory tell where a key
    is, or that it is absent; a value is read only where its key is. A value takes the next power of two of
    bytes, 8 at least, and its key 8. For values of up to 8 bytes that all fit in the memory of a GPU, a
    `ConcurrentMap` is faster.

    `items`, `keys` and `values` need room for all pairs where the store works; `save` does not.

    Reading methods may be called from several threads at once; one that changes the store needs it for
    itself. If a key comes several times in one batch, any of its values may win.

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
        capacity = _whole_number(capacity, what, "capacity")
        self._table = self._library.module.make_store(
            self._home, self._values.bytes, capacity, _load_factor(load_factor, what), budget
        )

    def _prepare(self, key_dtype, value_dtype, value_shape, budget, like, what):
        self._library = library = _library_of(like, what)
        self._kind = kind_of(np.empty(0, _dtype(key_dtype, what)), what)
        if self._kind.word_bytes > 8:
            raise TypeError(f"{what}: keys of type {self._kind}; give a type of at most 8 bytes")
        try:
            value = _dtype(value_dtype, what)
        except TypeError:
            if not isinstance(value_dtype, getattr(getattr(library, "torch", None), "dtype", ())):
                raise
            value = value_dtype  # that only torch has
        if isinstance(value, np.dtype) and (value.hasobject or value.kind in "UO"):
            raise TypeError(f"{what}: values of type {value}; give a type of fixed size")
        tail = value_shape if isinstance(value_shape, (tuple, list)) else (value_shape,)
        if not all(isinstance(d, (int, np.integer)) and not isinstance(d, bool) and d > 0 for d in tail):
            raise ValueError(f"{what}: value_shape {value_shape}; give one or several numbers above 0")
        tail = tuple(map(int, tail))
        library.need(value)
        if budget is not None:
            _whole_number(budget, what, "budget")
        self._values = _Bodies.of_type(value, library, tail)
        self._types = f"keys of {self._kind} and values of {_name(self._values.dtype)}"
        self._types += f" of shape {tail}" if tail else ""
        self._home = library.place()

    @classmethod
    def load(cls, file, key_dtype="int64", value_dtype="float32", value_shape=(), *, budget=None, like=None):
        """A store that `save` has written, on the CPU or on a GPU, from either.

        Parameters
        ----------
        file : str or path
        key_dtype, value_dtype, value_shape, budget, like
            As for `Store`. Give the types and the shape that were saved: it is checked that they are the
            same. Of a file that C++ has saved, or a version before types were kept, it is checked that
            keys fit, and that values have the same next power of two of bytes.

        Raises
        ------
        OSError
            There is no such file; it is damaged, truncated, or no saved store; its keys and values have other
            types.
        MemoryError
        """
        what = "roost.Store.load"
        self = cls.__new__(cls)
        self._prepare(key_dtype, value_dtype, value_shape, budget, like, what)
        path = _path(file, what)
        with _files(what):
            self._table, types = self._library.module.load_store(
                self._home, self._values.bytes, path, budget, self._types
            )
        if not types and self._kind.key_bytes < 8:
            words, _ = self._table.items(self._home)
            wide = self._library.to_numpy(self._library.adopt(words, _INT64)).view(np.uint64)
            if wide.size and wide.max() >> (8 * self._kind.key_bytes):
                raise OSError(f"{what}: {path} has keys of more bytes than {self._kind}; give their type")
        return self

    def save(self, file):
        """Writes all pairs and their types to a file, with checksums; returns nothing.

        A file of this name is replaced once the new one is on the disk, so that one of the two is there
        whatever happens. C++ reads it as a `stadium_map` of 8-byte keys. Must not overlap with changes.

        Raises
        ------
        OSError
            The file cannot be written; what was there before is unchanged.
        """
        what = "roost.Store.save"
        path = _path(file, what)
        with _files(what):
            self._table.save(self._library.place(), path, self._types)

    def _queries(self, keys, what):
        return self._widened(super()._queries(keys, what))

    def _query(self, key):
        return self._widened(super()._query(key))

    def _widened(self, keys):
        if self._kind.word_bytes < 8:
            library = keys.library
            keys.words = library.resized(keys.words, keys.n, _UINT8, (8,))[1]
        return keys

    def _decode(self, words):
        library, kind = self._library, self._kind
        if kind.key_bytes == 8:
            return kind.decode(words, library)
        raw = library.adopt(words, _UINT8, (8,))
        keys, _ = library.resized(library.column(raw), len(raw), kind.dtype)
        return library.finish(keys, kind.dtype)

    def shrink_to_fit(self):
        """Moves the keys to the smallest table that has room for them."""
        self._table.shrink_to_fit(self._library.place())

    @property
    def memory(self):
        """Where the store lies: bytes of memory of its device, and of memory of the CPU."""
        device, cpu = self._table.where(self._library.place())
        return {"device": device, "cpu": cpu}

    def __reduce__(self):
        raise TypeError("roost.Store: it does not pickle; save() it, and load() it there")


def _concurrent_map_of(key_dtype, value_dtype, load_factor, keys, values):
    """What pickle makes of a ConcurrentMap."""
    result = ConcurrentMap(key_dtype, value_dtype, len(keys), load_factor=load_factor, like=keys)
    result.insert(keys, values)
    return result
