"""What tables have in common."""

import types
from typing import NoReturn

import numpy as np

from .. import _html
from .._arrays.exact import plain_number, whole_floats
from .._arrays.frames import beside
from .._arrays.libraries import NUMPY
from .._arrays.types import BOOL, INT32
from .._keys import strings
from .._keys.arrow import ArrowKind
from .._keys.columns import is_column, take_column, without_tuple
from .._keys.packing import ColumnsKind, only_column
from .._keys.words import encode_like, encode_one, encode_row

ASKED = (ColumnsKind, ArrowKind)  # kinds that make the words of queries themselves


def is_scalar(x):
    if hasattr(x, "ndim"):
        return x.ndim == 0
    return isinstance(x, (str, bytes)) or not (
        hasattr(x, "__len__") or hasattr(x, "__arrow_c_device_array__")
    )


class Table:
    """What all tables have in common, including those of several processes."""

    __class_getitem__ = classmethod(types.GenericAlias)  # the stubs say of what
    _table = None
    _kind = None
    _values = None
    _library = NUMPY

    def _contains(self, keys):
        library = keys.library
        found, target = library.output(keys.n, BOOL)
        self._table.contains(library.place(), keys.words, target)
        return library.finish(found, BOOL)

    def _find(self, keys, missing):
        """`missing`: what `Values.one` makes of the value for absent keys."""
        library, values = keys.library, self._values
        if values.array is None:
            results, target = values.output(keys.n, library)
            self._table.find(library.place(), keys.words, missing, target)
            return values.finish(results, library)
        rows, target = library.output(keys.n, INT32)
        self._table.find_rows(library.place(), keys.words, target)
        return values.rows(library.finish(rows, INT32), library, missing)

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
        """The memory of the table, and of values beside it, in bytes; of objects that of their addresses."""
        return self._table.bytes() + (self._values.nbytes if self._values is not None else 0)

    def valid(self):
        """Checks the table's invariants: looks up every key. For tests."""
        return self._table.valid(self._library.place())


class Keyed(Table):
    """What the tables of one process have in common."""

    _home = None  # the place where it was built; the table needs its stream
    _model = None  # of the column that keys were

    def _queries(self, keys, what):
        kind, home = self._kind, self._library
        if kind.__class__ in ASKED:
            return kind.queries(keys, home, what)
        keys = without_tuple(keys)
        try:
            return encode_like(keys, kind, home, what)
        except (TypeError, ValueError):
            column = only_column(keys, what)
            if column is None and self._table.size():
                raise
            column = take_column(keys, what) if column is None else column
            if column.blank or not self._table.size():  # of any type
                column.array = np.zeros(len(column), kind.dtype)
            elif isinstance(column.array, strings.Texts):
                strings.two_texts(column.array, np.zeros(1, kind.dtype), what)
                if column.valid is None:
                    raise
                column.array = column.array[np.arange(len(column))]  # bytes, as objects
                column.array[~column.there] = b""
        keys = encode_like(column.array, kind, home, what)
        if column.valid is not None:
            keys.words = np.array(keys.words).view(np.uint8).reshape(keys.n, kind.word_bytes)
            keys.words[~column.there] = self._absent_word()
        return keys

    def _absent_word(self):
        """A word that is not a key of the table, which has numbers; nearly every word will do."""
        random = np.random.default_rng(0)
        while True:
            words = random.integers(0, 256, (1024, self._kind.word_bytes), np.uint8)
            found = np.empty(1024, np.bool_)
            self._table.contains(self._library.place(), words, found)
            if not found.all():
                return words[np.argmin(found)]

    def _is_one(self, key):
        """Whether the argument in brackets is one key: a number, or a row as a tuple, an array or a list."""
        if isinstance(key, tuple):
            return not any(map(is_column, key))
        if not getattr(self._kind, "tail", ()) or is_scalar(key):
            return is_scalar(key)
        return bool(key) and all(map(is_scalar, key)) if isinstance(key, list) else np.ndim(key) == 1

    @whole_floats
    def _query(self, key):
        """The Keys of one key."""
        what = f"roost.{type(self).__name__}"
        if self._kind.__class__ in ASKED:
            return self._kind.query(key, self._library, what)
        if isinstance(key, (list, tuple)):
            key = tuple(plain_number(part, what) for part in key)
        elif not is_scalar(key):
            return encode_row(key, self._kind, self._library, what)
        return encode_one(plain_number(key, what), self._kind, self._library, what)

    def contains(self, keys):
        """Whether each key is present: an array of bool; for a column, a column of its library.

        Parameters
        ----------
        keys : array of n keys, or several columns
            Of the type of the table's keys, or of a type whose values that type can all hold; columns as for
            `Index.get_indexer`.
        """
        found = self._contains(self._queries(keys, f"roost.{type(self).__name__}.contains"))
        return beside(keys, found)

    def __contains__(self, key):
        return self._present(key) is not None

    def _present(self, key):
        """The Keys of one key, if it is there."""
        try:
            keys = self._query(key)
        except (OverflowError, TypeError, ValueError):  # no key of this type can equal it
            return None
        return keys if self._contains(keys)[0] else None

    def _one_there(self, key):
        """The Keys of one key; KeyError if it is absent."""
        try:
            keys = self._query(key)
        except OverflowError:  # a number that no key of this type can equal
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

    __reversed__ = None  # otherwise Python would look up the keys 0, 1, ...

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
        library, keys = self._library, self._kind.pickled(keys, self._library)
        keys = keys if self._model is None or type(keys) is not np.ndarray else self._model.like(keys)
        return keys, *(self._values.pickled(array, library) for array in values)

    def _keys(self):
        """The distinct keys, as their kind has them."""
        return self._decode(self._table.items(self._library.place())[0])

    def _given(self, keys):
        """Keys, as their kind has them, for users."""
        return self._kind.result(keys, self._library, self._model)

    def _iterate(self):
        return iter(self._kind.python(self._keys(), self._library))

    def __repr__(self):
        return (
            f"roost.{type(self).__name__}({len(self)} keys of type {self._kind.dtype}, {self.nbytes} bytes)"
        )

    def _repr_html_(self):
        """For notebooks: what it is, and its first rows, if they are soon found."""
        return _html.page(repr(self) + self._load(), self._first_rows() if len(self) <= _html.MOST else [])

    def _load(self):
        """How full the table is, where that is known, as text."""
        return ""

    def _first_rows(self):
        """The first keys, and their values if it has some, by names."""
        if self._values is None:
            return _html.columns_of(self.keys())
        keys, values = self.items()
        return [*_html.columns_of(keys), *_html.columns_of({"value": values})]
