"""Texts as keys, on the CPU: numpy's, Python's, and those of Arrow, pandas and polars.

C++ reads them in place, without a Python object for each. Short texts are themselves keys; longer ones are
represented by a hash, and texts with equal hashes are compared, so different texts are never mistaken for
each other.
"""

import functools

import numpy as np

from .. import _host
from .._arrays.exact import no_nulls, not_utf8, of_python
from .._arrays.frames import Selected, shallow_copy, take_rows
from .._arrays.libraries import NUMPY
from .._arrays.take import take, taker_name

KINDS = "UOT"  # kinds of numpy's types that are, or may be, texts


class Texts:
    """A column of texts, in the place of an array of numpy.

    `column`: what C++ has of it. `source`: the array or the column that it was made of; elements of an array
    are those of the result, too. Of others, C++ makes objects, of which `is_list` makes numpy's `U`, as of
    any list. `valid`: a bitmap as Arrow has it, where there are nulls; what is read of a null has no meaning.
    """

    ndim = 1

    def __init__(self, column, source=None, is_list=False):
        self.column, self.source, self.is_list = column, source, is_list
        self.valid = column.valid
        self.shape = (len(column),)
        self.size = len(column)
        numpys = isinstance(source, np.ndarray)
        self.dtype = source.dtype if numpys else np.dtype(str if is_list else object)
        self.type = bytes if column.are_bytes else str
        if not self.size and self.dtype.kind != "U":
            self.type = None  # no texts

    def __len__(self):
        return self.size

    def __getitem__(self, rows):
        """The texts of these rows, a slice or an array of numbers, as an array of numpy."""
        if isinstance(self.source, np.ndarray):
            return self.source[rows]
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.size))
        made = np.empty(len(rows), object)
        address = made.__array_interface__["data"][0]
        try:
            _host.write_objects(self.column, np.ascontiguousarray(rows, np.int64), address)
        except UnicodeDecodeError as error:
            raise not_utf8(error) from None
        return of_python(made.tolist(), "roost") if self.is_list else made


def _address(array):
    return array.__array_interface__["data"][0], len(array), array.strides[0]


def of_numpy(array, what, nulls_too=False):
    """The Texts of an array of numpy of one of the KINDS, or of fixed-size bytes. `nulls_too`: None, NaN and
    pandas.NA among objects are nulls."""
    if array.ndim != 1:
        raise ValueError(
            f"{what}: keys of type {array.dtype} and shape {array.shape}; pass one dimension of strings"
        )
    kind = array.dtype.kind
    if kind == "U":
        wide = np.ascontiguousarray(array.astype(f"=U{max(array.dtype.itemsize // 4, 1)}", copy=False))
        column = _host.texts_of_characters(NUMPY.column(wide))
    elif kind == "S" or not len(array):
        column = _host.texts_of_fixed(NUMPY.column(array if kind == "S" else np.empty(0, "S1")))
    elif kind == "T":
        functions = np._core._multiarray_umath._ARRAY_API
        column = _host.texts_of_numpy(functions, array.dtype, *_address(array))
    else:
        column = _host.texts_of_objects(*_address(array), nulls_too)
    if column is None:
        names = " and ".join(sorted({type(s).__name__ for s in array.tolist()}))
        raise TypeError(
            f"{what}: an array of objects of {names}; pass numbers, or strings without missing values"
        )
    return Texts(column, array)


def _of_arrow(x):
    """The Texts of what has Arrow's interface; None for other columns."""
    kind = getattr(x, "type", x)  # in pyarrow, the type has the interface
    if hasattr(kind, "__arrow_c_schema__") and not _host.is_arrow_text(kind.__arrow_c_schema__()):
        return None
    if hasattr(x, "__arrow_c_stream__"):
        column = _host.texts_of_stream(x.__arrow_c_stream__())
    elif hasattr(x, "__arrow_c_array__"):
        column = _host.texts_of_array(*x.__arrow_c_array__())
    else:
        return None
    return None if column is None else Texts(column)


_NAMES = {"pandas": "the column", "polars": "the polars column"}
_OF_POLARS = ("String", "Binary", "Categorical", "Enum")


def _of_pandas(x, what):
    """The Texts of a column of pandas; None for other columns, and for arrays of numpy in it."""
    if getattr(x, "nlevels", 1) > 1:
        return None
    column = getattr(x, "array", x)
    if getattr(column, "_pa_array", None) is not None:
        return _of_arrow(column._pa_array)
    categories = getattr(x.dtype, "categories", None)
    if categories is not None:
        codes = np.asarray(column.codes, np.int64)
        try:
            known, _ = take_keys(categories, what) if len(categories) else (None, None)
        except TypeError:  # of decimals, say, of which columns.py knows more
            known = None
        if not isinstance(known, Texts):
            return None
        return Texts(_host.texts_of_codes(codes, known.column), (codes, known))
    if getattr(x.dtype, "storage", None) == "python":  # objects in a numpy array
        array = np.asarray(column, object)
        found = _host.texts_of_objects(*_address(array), True) if len(array) else None
        return None if found is None else Texts(found, array)
    return None


def of_column(x, what):
    """The Texts of a column of another library, which may have nulls, or of a list; None for anything
    else."""
    if type(x) in (list, tuple):
        column = _host.texts_of_list(x)
        return None if column is None else Texts(column, is_list=True)
    name = taker_name(x)
    if name == "pandas":
        return _of_pandas(x, what)
    if name == "polars":
        known = x.dtype.base_type().__name__ in _OF_POLARS
        return _of_arrow(x) if known else None
    return _of_arrow(x) if name in ("arrow", "other") else None


def take_keys(x, what):
    """As `take`, but texts are Texts."""
    texts = of_column(x, what)
    if texts is not None:
        no_nulls(_NAMES.get(taker_name(x), "the Arrow column"), texts.column.nulls, what)
        return texts, NUMPY
    array, library = take(x, what)
    if library is NUMPY and array.dtype.kind in KINDS:
        return of_numpy(array if array.shape else array.reshape(1), what), library
    return array, library


def listed(array):
    """The values of an array of numpy as Python has them; of dates in nanoseconds it would make numbers."""
    return list(array) if array.dtype.kind in "mM" else array.tolist()


class ArrayKind:
    """Keys that are an array. `frames`: which library's frames they are."""

    __slots__ = ()
    frames = None

    def rows(self, keys, rows, library):
        """Some of the keys."""
        return library.rows(keys, rows)

    def signs(self):
        """What C++ needs to sort keys; None: it cannot sort these."""
        return None

    def argsort(self, keys, library):
        """The row numbers of keys in ascending order; equal ones stay in order."""
        return library.argsort(keys)

    def result(self, keys, library, model=None):
        """Keys as users get them. `model`: the Model of the column that they came from, or None."""
        return keys if model is None else model.like(keys)

    def keep(self):
        """Keeps no more than `decode` needs besides words."""

    def python(self, keys, library):
        """Keys as values of Python."""
        return listed(library.to_numpy(keys))

    def pickled(self, keys, library):
        """What pickle stores for keys."""
        return library.pickled(keys)


class StringKind(ArrayKind):
    """Keys that are texts: words without a meaning, and rows that have them. `column`: the Column of another
    library that has the texts; then keys are its rows until they are results."""

    missing = None

    def __init__(self, texts, column=None, frames=None):
        self.texts, self.column, self.frames = texts, column, frames

    @property
    def dtype(self):
        return self.texts[:].dtype if self.texts.is_list else self.texts.dtype

    def of_rows(self, rows):
        """The keys of these rows: an array, rows of the `column`, or Selected rows of a frame."""
        if self.column is None:
            return self.texts[rows]
        taken = take_rows(self.column.given, rows)
        return taken if self.frames is None else Selected(self.frames, [self.column.name], [taken])

    def argsort(self, keys, library):
        return library.argsort(keys if self.column is None else self.texts[keys])

    def keep(self):
        if self.column is not None:  # which may change
            self.column.given = shallow_copy(self.column.given)

    def result(self, keys, library, model=None):
        made = keys if self.column is None else self.of_rows(keys)
        if self.frames is not None:
            return made.frame()
        return made if self.column is not None or model is None else model.like(made)


class TextRows:
    """Finds the rows of a column where texts come first."""

    def __init__(self, texts):
        self.texts = texts
        words, *self._how = _host.keys_of_texts([texts.column], False)
        self.table = _host.make_index(NUMPY.place(), words)

    def find(self, asked):
        """For each text of a column the row, int64; -1: there is none. Any number of threads may call it."""
        rows = np.empty(len(asked), np.int64)
        self.table.find_rows(NUMPY.place(), _host.query_keys(asked.column, *self._how), rows)
        _host.keep_equal(asked.column, self.texts.column, self._how[0], rows)
        return rows


class StringKeys:
    """Keys that are texts, by words that are equal where the texts are."""

    library, kept, model = NUMPY, None, None

    def __init__(self, texts, words=None):
        self.texts, self.n, self.kind = texts, len(texts), StringKind(texts)
        self.given = self.n
        if words is not None:
            self.words = words

    @functools.cached_property
    def words(self):
        return _host.keys_of_texts([self.texts.column], True)[0]

    def grouped(self):
        """The rows by their texts, if these are few and short; otherwise None."""
        return _host.group_texts(self.texts.column)

    def numbered(self, dtype):
        """The rows where distinct texts come first, ascending, and for each row the number of its text."""
        return numbers_of([self.texts.column], dtype)


def numbers_of(columns, dtype):
    """For the texts of some columns, one after the other, what `numbered` returns."""
    found = _host.number_texts(columns, dtype.itemsize == 8)
    return tuple(NUMPY.adopt(array, dtype) for array in found)


def compared(x, what):
    """Keys that are compared with texts, as Texts; TypeError if they can never be equal to any."""
    if isinstance(x, Texts):
        return x
    if getattr(x.dtype, "kind", "") != "S" and x.shape != (0,):  # a dtype of torch has no kind
        raise TypeError(f"{what}: strings are never equal to {x.dtype}; convert one of them")
    if x.ndim != 1:
        raise ValueError(f"{what}: strings of shape {x.shape}; pass one dimension of strings")
    return of_numpy(x if len(x) else np.empty(0, object), what)


def two_texts(a, b, what):
    """Two columns of texts that are compared with each other, as Texts."""
    a, b = compared(a, what), compared(b, what)
    if a.size and b.size and a.type is not b.type:
        raise TypeError(f"{what}: {a.type.__name__} and {b.type.__name__} are never equal; convert one")
    return a, b


def two_keys(a, b):
    """The StringKeys of two columns of texts."""
    words = _host.keys_of_texts([a.column, b.column], True)[0]
    return StringKeys(a, words[: len(a)]), StringKeys(b, words[len(a) :])
