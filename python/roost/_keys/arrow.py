"""Keys that are columns of Arrow in memory of a device: rows as words, and rows by their numbers."""

import functools

from .._arrays.arrow import DeviceColumn, DeviceTable
from .._arrays.exact import is_python
from .._arrays.frames import Device, may_be_device, of_capsules
from .._arrays.libraries import same_device
from .._arrays.take import take
from .._arrays.types import BOOL, INT64, UINT8
from .strings import ArrayKind
from .words import argsort_by, same_place


def _beside(x, library, what):
    """An argument beside columns of Arrow as one of these."""
    if isinstance(x, DeviceColumn):
        return x
    if is_python(x):
        raise TypeError(
            f"{what}: a {type(x).__name__} beside columns of Arrow on {library.where}; pass a column of "
            "Arrow, or an array, that is there"
        )
    array, other = take(x, what)
    same_device(library, other, what)
    return DeviceColumn.of_array(array if other is library else other.to_numpy(array), library)


class Given:
    """Columns of Arrow on one device; `form`: how results are made of theirs, as `columns_of` has it."""

    def __init__(self, columns, names, form, what):
        self.columns, self.names, self.form, self.library = columns, names, form, columns[0].library
        for column in columns:
            same_device(self.library, column.library, what)
            if len(column) != len(columns[0]):
                raise ValueError(f"{what}: columns of {len(columns[0])} and of {len(column)} rows")
        self.made = [column.made for column in columns]

    def __len__(self):
        return len(self.columns[0])


def given_of(x, what, library=None):
    """The Given of columns of Arrow on a device; None for anything else. `library`: of its arrays, too."""
    if isinstance(x, tuple):
        parts = [of_capsules(each) if may_be_device(each) else each for each in x]
        on_device = [part for part in parts if isinstance(part, DeviceColumn)]
        if not parts or not (on_device or library):
            return None
        library = on_device[0].library if on_device else library
        return Given([_beside(part, library, what) for part in parts], range(len(parts)), "tuple", what)
    x = of_capsules(x) if may_be_device(x) or isinstance(x, (DeviceColumn, DeviceTable)) else x
    if isinstance(x, DeviceTable):
        return Given(x.columns, x.names, Device, what)
    if isinstance(x, DeviceColumn) or library is not None:
        return Given([_beside(x, library, what)], [None], "array", what)
    return None


def two_given(x, y, what):
    """The same of two arguments, of which one may be arrays; (None, None) if neither is of Arrow."""
    a, b = given_of(x, what), given_of(y, what)
    if a is None and b is not None:
        a = given_of(x, what, b.library)
    elif b is None and a is not None:
        b = given_of(y, what, a.library)
    if a is not None:
        same_device(a.library, b.library, what)
    return a, b


class ArrowKeys:
    """Keys of columns of Arrow, as other Keys are."""

    model = None

    def __init__(self, words, given, kind=None, kept=None):
        self.library, self.kind, self.kept, self.given = given.library, kind, kept, len(given)
        self.words = self.library.column(words if kept is None else self.library.rows(words, kept))
        self.n = self.given if kept is None else len(kept)


class ArrowKind(ArrayKind):
    """Keys that are rows of columns of Arrow: `keys` are their numbers until they are results."""

    missing = None

    def __init__(self, given, words, lookup=None):
        self._given, self._words, self._lookup = given, words, lookup
        self._word_bytes = words.shape[1]
        self.names, self.columns = given.names, given.columns
        self.frames = None if isinstance(given.form, str) else given.form
        self.dtype = ", ".join(column.type for column in given.columns)
        self._place = given.library.place()  # the tables need its stream

    @functools.cached_property
    def _finder(self):
        return self._given.library.module.make_index(self._place, self._given.library.column(self._words))

    def keep(self):
        self._words = None  # needed only by `decode`, for tables of keys

    def decode(self, words, library):
        raw = library.adopt(words, UINT8, (self._word_bytes,))
        rows, target = library.output(len(raw), INT64)
        self._finder.find_rows(library.place(), library.column(raw), target)
        return library.finish(rows, INT64)

    def argsort(self, rows, library):
        """Ascending by columns, nulls last."""
        return argsort_by([key for column in self.columns for key in column.take(rows).sort_keys()], library)

    def result(self, rows, library, model=None):
        taken = tuple(column.take(rows) for column in self.columns)
        if self.frames is not None:
            return DeviceTable(list(self.names), list(taken))
        return taken if self._given.form == "tuple" else taken[0]

    def python(self, rows, library):
        columns = [column.take(rows).to_pyarrow().to_pylist() for column in self.columns]
        return columns[0] if self._given.form == "array" else list(zip(*columns))

    def pickled(self, rows, library):
        raise TypeError("roost: tables of columns of Arrow on a device cannot be pickled; pickle the columns")

    def queries(self, x, home, what):
        """The Keys of queries of a table, whose Library is `home`."""
        given = given_of(x, what, home)
        same_place(given.library, home, what)
        library = given.library
        words = library.module.query_words(library.place(), self._lookup, given.made)
        return ArrowKeys(library.adopt(words, UINT8, (self._word_bytes,)), given)

    def query(self, key, home, what):
        raise NotImplementedError(
            f"{what}: one key of Python in a table of columns of Arrow on {home.where}; ask for a "
            "column of keys"
        )


def encode_given(given, drops):
    """The Keys of columns of Arrow. `drops`: whether only rows without null and NaN are keys."""
    library, module, place = given.library, given.library.module, given.library.place()
    words, _, word_bytes = module.pack_arrow(place, given.made, [], True)
    words, kept = library.adopt(words, UINT8, (word_bytes,)), None
    if drops:
        there = library.adopt(module.rows_there(place, given.made), BOOL)
        if not bool(there.all()):
            kept = library.argsort(~there)[: int(there.sum())]
    return ArrowKeys(words, given, ArrowKind(given, words), kept)


def encode_two_given(a, b, nulls_equal):
    """The Keys of two tables that are compared."""
    library = a.library
    *words, word_bytes = library.module.pack_arrow(library.place(), a.made, b.made, nulls_equal)
    return [ArrowKeys(library.adopt(each, UINT8, (word_bytes,)), given) for each, given in zip(words, (a, b))]


def encode_given_table(given):
    """The Keys of a table that never changes. Their kind makes those of queries."""
    library = given.library
    lookup, words, word_bytes = library.module.make_lookup(library.place(), given.made)
    words = library.adopt(words, UINT8, (word_bytes,))
    return ArrowKeys(words, given, ArrowKind(given, words, lookup))
