"""Index: keys and their rows."""

import numpy as np

from .. import _html
from .._arrays.frames import beside, of_capsules
from .._arrays.libraries import NUMPY
from .._arrays.types import INT32, INT64
from .._device import make_index, on_device
from .._keys import strings
from .._keys.arrow import ArrowKind, encode_given_table, given_of
from .._keys.columns import without_tuple
from .._keys.packing import only_column, pack_table, table_columns
from .._keys.words import Keys, kind_of
from .._options import check_rows, integer, rows_type
from .keyed import Keyed, is_scalar


class Index(Keyed):
    """Maps keys to their rows, like `pandas.Index`. `len` and iteration include every copy of a key.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `unique`, including strings, columns with nulls, tuples of columns and frames. If a key occurs
        more than once, its first row counts. A null is a key, equal to the other nulls of its column.
    device, limit, progress, spill, host_limit
        Whether and how keys in host memory go through a GPU: see `options`. Then they stay in host memory,
        and each call sends them and those that are asked for through it: ask for many at once. Texts stay on
        the CPU.

    Raises
    ------
    TypeError, ValueError
        `keys` are not of a type that can be keys.
    OverflowError
        More than 2^32 - 2 keys.

    Notes
    -----
    Never changes, so any number of threads may query it. Takes about ten bytes per key of 4 bytes, besides
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
            check_rows(array.shape[0] if array.shape else 0, INT64, what)
            if isinstance(array, strings.Texts):
                self._kind, self._strings = strings.StringKind(array), strings.TextRows(array)
                self._table = self._strings.table
                return
            self._kind = kind_of(array, what)
            words = Keys(array, array.shape[0], self._kind, library).words
        else:
            check_rows(len(columns[0]), INT64, what)
            coded = pack_table(columns, form, what) if given is None else encode_given_table(given)
            self._array, self._columns, words = keys, columns, coded.words
            self._kind, self._library = coded.kind, coded.library
        self._home = self._library.place()
        self._table = make_index(self._library, self._home, words)
        if isinstance(self._kind, ArrowKind):
            self._kind.keep()

    __init__ = on_device(__init__, "roost.Index")

    def get_indexer(self, targets, *, index_dtype="int64"):
        """The row of each target, -1 for those that are absent.

        Parameters
        ----------
        targets : array of m keys, or several columns
            Of the type of the index's keys, or of a type whose values that type can all hold. For several
            columns, the same number of columns as the index, or a list of tuples: these are compared by
            value, and may have any type whose values can be equal.
        index_dtype : "int64" or "int32"
            The type of the rows. int32 is faster.

        Returns
        -------
        array of m numbers; for a column or frame, a column of its library, in pandas with its index
        """
        what = "roost.Index.get_indexer"
        dtype = rows_type(index_dtype, what)
        if dtype is INT32:
            check_rows(len(self), dtype, what)
        if self._strings is not None:
            return beside(targets, self._find_strings(targets, dtype, what))
        keys = self._queries(targets, what)
        library = keys.library
        rows, target = library.output(keys.n, dtype)
        self._table.find_rows(library.place(), keys.words, target)
        return beside(targets, library.finish(rows, dtype))

    def _find_strings(self, targets, dtype, what):
        there, targets = None, without_tuple(targets)
        try:
            asked, library = strings.take_keys(targets, what)
        except (TypeError, ValueError):
            column = only_column(targets, what)
            if column is None:
                raise
            asked, library, there = column.array, column.library, column.there
        if there is not None and not there.any() or self._strings.texts.type is None:
            return np.full(len(asked), -1, dtype)
        if library is NUMPY and (not len(asked) or asked.dtype.kind in strings.KINDS + "S"):
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
        return beside(keys, self._find_strings(keys, INT64, "roost.Index.contains") >= 0)

    contains.__doc__ = Keyed.contains.__doc__

    def __contains__(self, key):
        if self._strings is None:
            return super().__contains__(key)
        return isinstance(key, self._strings.texts.type or ()) and bool(self.contains([key])[0])

    @property
    def is_unique(self):
        """Whether no key occurs twice."""
        return self._table.duplicates() == 0

    def __len__(self):
        """The number of rows, including copies of keys."""
        return self._array.shape[0] if self._columns is None else len(self._columns[0])

    def __iter__(self):
        """The key of each row, including copies."""
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
        """The key of one row; IndexError if there is no such row. Rows begin at 0, and -1 is not a row,
        because `get_indexer` returns it for absent keys."""
        if not is_scalar(row) or isinstance(row, slice):
            raise TypeError(
                "roost.Index[row]: give one row number; for several rows, index the array of keys itself"
            )
        row = integer(row, "roost.Index", "row")
        if not 0 <= row < len(self):
            raise IndexError(f"roost.Index: there is no row {row}; give 0 or more, and less than {len(self)}")
        return self._python(row, row + 1)[0]

    def _repr_html_(self):
        end = min(_html.ROWS, len(self))
        return _html.page(repr(self), [("row", range(end)), ("key", self._python(0, end))])

    def __reduce__(self):
        if self._columns is None:
            return Index, self._pickled(self._array[:])
        if isinstance(self._kind, ArrowKind):
            return Index, self._pickled(None)
        if not isinstance(self._array, tuple):
            return Index, (self._array,)
        given = (c.given if c.library is NUMPY else c.library.pickled(c.array) for c in self._columns)
        return Index, (tuple(given),)
