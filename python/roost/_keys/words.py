"""Keys as words: what the tables compare.

Tables compare keys byte by byte, in words of 4, 8, 16 or 32 bytes. `encode` turns an array of keys into such
words, and `Kind.decode` turns words back.
"""

import numpy as np

from .._arrays.exact import alike, common_type, convert, is_python, keeps_every_value, of_python, own_floats
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take
from .._arrays.types import NANS, UINT8, UINT32, UINT64, numpy_dtype
from . import strings
from .columns import is_column, is_quick_column

_SIZES = (4, 8, 16, 32)
_NAT = 2**63


class Kind(strings.ArrayKind):
    """What keys are: their dtype, and how many numbers a row has (None: keys are no rows)."""

    __slots__ = ("dtype", "columns", "tail", "key_bytes", "word_bytes", "nan", "missing", "words_are_keys")

    def __init__(self, dtype, columns):
        self.dtype = dtype
        self.columns = columns
        self.tail = () if columns is None else (columns,)
        self.key_bytes = dtype.itemsize * (1 if columns is None else columns)
        self.word_bytes = next((s for s in _SIZES if s >= self.key_bytes), None)
        self.nan = NANS.get(dtype)
        self.words_are_keys = (
            self.nan is None
            and self.key_bytes == self.word_bytes
            and columns is None  # data in pieces smaller than words may be unaligned for words
            and dtype.kind not in "SV"
        )
        self.missing = _NAT if dtype.kind in "mM" else self.nan  # for pandas: the word of NaN and NaT

    def __str__(self):
        return str(self.dtype) if self.columns is None else f"rows of {self.columns} {self.dtype}"

    def decode(self, words, library):
        """Keys from words that C++ has made."""
        if self.key_bytes == self.word_bytes:
            return library.adopt(words, self.dtype, self.tail)
        raw = library.adopt(words, UINT8, (self.word_bytes,))
        keys, _ = library.resized(library.column(raw), len(raw), self.dtype, self.tail)
        return library.finish(keys, self.dtype, self.tail)

    def signs(self):
        """The word of the least negative number, or 0; and whether negative numbers fall as words grow."""
        if self.columns is not None or self.dtype.kind not in "biuf":
            return None
        return 0 if self.dtype.kind in "bu" else 1 << (8 * self.key_bytes - 1), self.dtype.kind == "f"

    def argsort(self, keys, library):
        return (
            super().argsort(keys, library) if self.nan is None else library.argsort_floats(keys, self.dtype)
        )


_kinds = {}


def kind_of(array, what):
    """The Kind of an array of keys; TypeError or ValueError if its elements are none."""
    return _kind(array, array.shape, what)


def _kind(array, shape, what):
    kind = _kinds.get((array.dtype, shape[1:] if len(shape) > 1 else ()))
    if kind is None or not shape:
        return _new_kind(array, tuple(shape[1:]), what)
    return kind


def _new_kind(array, tail, what):
    dtype = numpy_dtype(array)
    if dtype is None:
        raise TypeError(f"{what}: keys of type {array.dtype}; convert them, or view them as integers")
    if array.ndim == 0:
        raise ValueError(f"{what}: a single value; pass an array of keys")
    if dtype.kind in strings.KINDS:
        raise TypeError(
            f"{what}: keys of type {dtype}; pass numbers, dates or fixed-size bytes; factorize makes numbers "
            "of strings"
        )
    if dtype.kind not in "biufmMSV" or dtype.names or (dtype.kind == "f" and dtype.itemsize > 8):
        raise TypeError(
            f"{what}: keys of type {dtype}; pass integers, bools, floats, dates, fixed-size bytes, or "
            "strings where these can be keys"
        )
    if dtype.isbuiltin == 2:  # of ml_dtypes
        raise TypeError(f"{what}: keys of type {dtype}; convert them, or view them as integers")
    if array.ndim > 2 or (array.ndim == 2 and dtype.kind not in "iu"):
        raise ValueError(
            f"{what}: keys of shape {tuple(array.shape)} and type {dtype}; pass one dimension, or rows of "
            "integers"
        )
    dtype = dtype.newbyteorder("=")
    columns = None if array.ndim == 1 else array.shape[1]
    kind = _kinds.get((dtype, tail)) or Kind(dtype, columns)
    if kind.key_bytes == 0 or kind.word_bytes is None:
        raise ValueError(f"{what}: keys of {kind.key_bytes} bytes; they may have 1 to 32")
    kind = _kinds.setdefault((dtype, tail), kind)  # one object for all spellings of a type
    return _kinds.setdefault((array.dtype, tail), kind)


class NoCommonType(TypeError):
    """Numbers of two types, of which none holds all values of both."""


class Keys:
    """Keys of an argument: the words as C++ takes them, how many, their Kind, and their Library; and `kept`,
    the rows of the argument that they are of, None: all, of `given` ones; and the Model of results, if the
    argument is of a library that has columns."""

    __slots__ = ("words", "n", "kind", "library", "kept", "given", "model")

    def __init__(self, array, n, kind, library):
        self.n, self.kind, self.library, self.kept, self.given = n, kind, library, None, n
        self.model = None
        if kind.words_are_keys:
            self.words = library.column(array, n, kind.key_bytes)
        else:
            self.words = _words(array, n, kind, library)


def _words(array, n, kind, library):
    """The words of an array of n keys of this kind. Copies only what must change: see docs/python.md."""
    if kind.nan is not None or kind.dtype.kind == "b":
        _, words = library.output(n, UINT64 if kind.key_bytes == 8 else UINT32)
        library.module.canonical_keys(library.place(), library.column(array), words, kind.nan or 0)
        return words
    if kind.key_bytes != kind.word_bytes:
        return library.resized(library.column(array), n, UINT8, (kind.word_bytes,))[1]
    return library.aligned_column(array)


def keys_of(array, library, what):
    """The Keys that an array is."""
    shape = array.shape
    kind = _kind(array, shape, what)
    return Keys(array, shape[0], kind, library)


def _expect_one(x, what):
    """Raises a TypeError for columns or rows in a tuple where keys are one array."""
    if isinstance(x, tuple) and x and all(is_column(each) or isinstance(each, tuple) for each in x):
        raise TypeError(
            f"{what}: keys as a tuple of {'rows' if isinstance(x[0], tuple) else 'columns'}; pass one array: "
            "np.column_stack([a, b]) has rows of integers"
        )


def encode(x, what):
    """The Keys of an argument."""
    _expect_one(x, what)
    array, library = take(x, what)
    return keys_of(array, library, what)


def encode_strings_too(x, what):
    """The Keys of an argument, which may be strings."""
    return keys_of_column(*own_column(x, what), what)


def keys_of_column(array, library, what):
    """The Keys that an array is, or Texts."""
    if isinstance(array, strings.Texts):
        return strings.StringKeys(array)
    return keys_of(array, library, what)


def widened(array, dtype, library, what):
    """An array with a type that holds each of its values."""
    return convert(array, dtype, what) if library is NUMPY else library.convert(array, dtype)


def _as(array, kind, library, what, given=None):
    """Queries as keys of a table, so that no conversion changes one. `given`: what they were made of, if that
    was Python's; they have the type of the keys if that has their values."""
    own = given is not None
    if not array.shape:
        array = array.reshape(1)
    tail = tuple(array.shape[1:])
    if not len(array) and library.has(kind.dtype):  # no keys fit any type
        return library.of_numpy(np.empty((0, *kind.tail), kind.dtype))
    if own and tail == kind.tail and alike(array.dtype, kind.dtype):
        return convert(array, kind.dtype, what, given)
    if kind.dtype.kind == "S" and array.dtype == object and isinstance(array.flat[0], bytes):
        raise OverflowError(f"{what}: bytes that end in NUL, or are too long, do not fit {kind}")
    if library is NUMPY and array.dtype.kind in strings.KINDS and array.ndim == 1 and len(array):
        mine = strings.of_numpy(array, what).type.__name__
    else:
        mine = kind_of(array, what)
        if mine is kind:
            return array
        if tail == kind.tail:
            if keeps_every_value(mine.dtype, kind.dtype):
                return widened(array, kind.dtype, library, what)
            if mine.dtype.kind == kind.dtype.kind == "S":  # numpy has made them as wide as the longest
                return convert(array, kind.dtype, what)
    raise TypeError(
        f"{what}: keys are {mine}, but those of the table are {kind}; convert them, so that no key changes "
        "silently"
    )


def same_place(library, home, what):
    """Raises a ValueError if queries lie elsewhere than a table, whose Library is `home`."""
    if library.where != home.where:
        raise ValueError(f"{what}: keys of {library}, but the table is on {home.where}; put them there")


def encode_like(x, kind, home, what):
    """The Keys of queries of a table whose keys are of this kind; `home`: its Library."""
    _expect_one(x, what)
    array, library = take(x, what)
    if library is NUMPY and array.dtype == object and kind.dtype.kind == "S":  # Arrow's and pandas' bytes
        array = of_python(array.tolist(), what)
    if library is not home:
        if is_python(x):
            return _own_keys(array, x, kind, home, what)
        same_place(library, home, what)
    shape = array.shape
    if not shape or _kinds.get((array.dtype, shape[1:] if len(shape) > 1 else ())) is not kind:
        array = _as(array, kind, library, what, x if is_python(x) else None)
        shape = array.shape
    return Keys(array, shape[0], kind, library)


def encode_one(key, kind, home, what):
    """The Keys of one query of Python's or numpy's: a number, a date, bytes, or a row as a tuple."""
    return _own_keys(of_python([key], what), [key], kind, home, what)


def encode_row(row, kind, home, what):
    """The Keys of one query that is a row, as an array."""
    array, library = take(row, what)
    return _own_keys(library.to_numpy(array)[None], row, kind, home, what)


def _own_keys(array, x, kind, home, what):
    array = _as(array, kind, NUMPY, what, x)
    return Keys(home.readable(array), len(array), kind, home)


def encode_two(x, y, what):
    """The Keys of two columns that are compared with each other.

    Two types become one that holds both; a list of Python has the type of the other column if that has its
    values.
    """
    return keys_of_two(*own_column(x, what), x, *own_column(y, what), y, what)


def keys_of_two(a, library, x, b, other, y, what):
    """The same of arrays or Texts, as `two_arrays` takes them."""
    (a, library), (b, other) = two_arrays(a, library, x, b, other, y, what)
    if isinstance(a, strings.Texts):
        return strings.two_keys(a, b)
    return keys_of(a, library, what), keys_of(b, other, what)


def two_arrays(a, library, x, b, other, y, what):
    """Two columns that are compared, as arrays of one type or as Texts, each with its Library. `x`, `y`: what
    they were made of."""
    own = is_python(x), is_python(y)
    if not len(a):
        a = _empty_like(b, a, library)
    elif not len(b):
        b = _empty_like(a, b, other)
    if library is other is NUMPY and (isinstance(a, strings.Texts) or isinstance(b, strings.Texts)):
        a, b = strings.two_texts(a, b, what)
        return (a, library), (b, other)
    if not any(own) and library is not other:
        same_device(library, other, what)
    one, two = kind_of(a, what), kind_of(b, what)
    if one is not two:
        common = _common(a, x if own[0] else None, b, y if own[1] else None, what)
        if one.columns != two.columns:
            raise TypeError(f"{what}: {one} and {two} are never equal; ravel() makes single keys of rows")
        if not alike(one.dtype, two.dtype):
            raise TypeError(f"{what}: {one} and {two} are never equal; convert one of them")
        if common is None:
            kinds = one.dtype.kind + two.dtype.kind
            how = {"f": ": integers up to 2^53 to float64", "u": ": those below 2^63 to int64"}
            how = next((text for kind, text in how.items() if kind in kinds), "")
            raise NoCommonType(
                f"{what}: {one} and {two} have no common type that keeps every key; convert one of them{how}"
            )
        a = convert(a, common, what, x) if own[0] else widened(a, common, library, what)
        b = convert(b, common, what, y) if own[1] else widened(b, common, other, what)
    if own[0] and not own[1]:
        a, library = other.readable(a), other
    elif own[1] and not own[0]:
        b, other = library.readable(b), library
    return (a, library), (b, other)


def _empty_like(array, empty, library):
    """What has no keys, with the type of another column, since it fits any."""
    dtype = numpy_dtype(array)
    if dtype is None or dtype.kind in strings.KINDS or not library.has(dtype):
        return empty
    return library.of_numpy(np.empty((0, *array.shape[1:]), dtype))


def own_column(x, what):
    """The array of keys that an argument is, or Texts, and its Library."""
    if is_quick_column(x):
        return take(x, what)
    _expect_one(x, what)
    array, library = strings.take_keys(x, what)
    return array if array.shape else array.reshape(1), library


def _common(a, x, b, y, what):
    """The type that two columns are compared in; None if there is none. x, y: what Python had, or None."""
    for array, own, other in ((b, y, a), (a, x, b)):
        dtype = numpy_dtype(other)
        if own is not None and alike(array.dtype, dtype):
            try:
                convert(array, dtype, what, own)
                return dtype
            except OverflowError:
                if dtype.kind == "f" and own_floats(own).any():  # in a wider type, all would differ
                    raise
    return common_type(numpy_dtype(a), numpy_dtype(b))


def argsort_by(keys, library):
    """The order of rows by several arrays, the first one first: a stable sort by each, from the last one."""
    order = None
    for key in keys[::-1]:
        key = key if order is None else library.rows(key, order)
        dtype = numpy_dtype(key)
        by = library.argsort_floats(key, dtype) if dtype.kind == "f" else library.argsort(key)
        order = by if order is None else library.rows(order, by)
    return order
