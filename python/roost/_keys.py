"""Keys as words: what the tables compare.

Tables compare keys byte by byte, in words of 4, 8, 16 or 32 bytes. `encode` turns an array of keys into such
words, and `Kind.decode` turns words back.
"""

import functools

import numpy as np

from . import _strings
from ._libraries import NUMPY, is_python_numbers, same_device, take

_SIZES = (4, 8, 16, 32)
_UINT8, _UINT32, _UINT64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.uint64)
_NANS = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}  # by bytes: the one that stands for all
_NAT = 2**63


class Kind:
    """What keys are: their dtype, and how many numbers a row has (None: keys are no rows)."""

    __slots__ = ("dtype", "columns", "tail", "key_bytes", "word_bytes", "nan", "missing", "words_are_keys")

    def __init__(self, dtype, columns):
        self.dtype = dtype
        self.columns = columns
        self.tail = () if columns is None else (columns,)
        self.key_bytes = dtype.itemsize * (1 if columns is None else columns)
        self.word_bytes = next((s for s in _SIZES if s >= self.key_bytes), None)
        self.nan = _NANS[dtype.itemsize] if dtype.kind == "f" else None
        self.words_are_keys = (
            self.nan is None
            and self.key_bytes == self.word_bytes
            and columns is None  # what has smaller pieces than words may lie between the places for these
            and dtype.kind not in "SV"
        )
        self.missing = _NAT if dtype.kind in "mM" else self.nan  # of pandas: the word of NaN and NaT

    def __str__(self):
        return str(self.dtype) if self.columns is None else f"rows of {self.columns} {self.dtype}"

    def decode(self, words, library):
        """Keys from words that C++ has made."""
        if self.key_bytes == self.word_bytes:
            return library.adopt(words, self.dtype, self.tail)
        raw = library.adopt(words, _UINT8, (self.word_bytes,))
        keys, _ = library.resized(library.column(raw), len(raw), self.dtype, self.tail)
        return library.finish(keys, self.dtype, self.tail)


_kinds = {}


def kind_of(array, what):
    """The Kind of an array of keys; TypeError or ValueError if its elements are none."""
    return _kind(array, array.shape, what)


def _kind(array, shape, what):
    kind = _kinds.get((array.dtype, shape[1:] if len(shape) > 1 else ()))
    if kind is None or not shape:
        return _new_kind(array, tuple(shape[1:]), what)
    return kind


def numpy_dtype(array):
    """numpy's type of an array's elements; None if it has none."""
    dtype = array.dtype
    return dtype if isinstance(dtype, np.dtype) else _of_torch(dtype)


@functools.cache
def _of_torch(dtype):
    try:
        found = np.dtype(str(dtype).split(".")[1])
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None  # jax teaches numpy bfloat16, which torch does not take


def _new_kind(array, tail, what):
    dtype = numpy_dtype(array)
    if dtype is None:
        raise TypeError(f"{what}: keys of type {array.dtype}; convert them, or view them as integers")
    if array.ndim == 0:
        raise ValueError(f"{what}: a single number; pass an array of keys")
    if dtype.kind in _strings.KINDS:
        raise TypeError(
            f"{what}: keys of type {dtype}; pass numbers: strings work in functions and in Index alone, "
            "other objects nowhere"
        )
    if dtype.kind not in "biufmMSV" or dtype.names or (dtype.kind == "f" and dtype.itemsize > 8):
        raise TypeError(
            f"{what}: keys of type {dtype}; pass integers, bools, floats, dates or fixed-size bytes"
        )
    if dtype.name in ("bfloat16", "int4", "uint4", "int2", "uint2") or dtype.name.startswith("float8"):
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
    kind = _kinds.setdefault((dtype, tail), kind)  # one for all spellings of a type
    return _kinds.setdefault((array.dtype, tail), kind)


class Keys:
    """Keys of an argument: the words as C++ takes them, how many, their Kind, and their Library."""

    __slots__ = ("words", "n", "kind", "library")

    def __init__(self, array, n, kind, library):
        self.n, self.kind, self.library = n, kind, library
        if kind.words_are_keys:
            self.words = library.column(array, n, kind.key_bytes)
        else:
            self.words = _words(array, n, kind, library)


def _words(array, n, kind, library):
    """The words of an array of n keys of this kind. Copies only what must change: see docs/python.md."""
    if kind.nan is not None:
        _, words = library.output(n, _UINT64 if kind.key_bytes == 8 else _UINT32)
        library.module.canonical_floats(library.place(), library.column(array), words, kind.nan)
        return words
    if kind.key_bytes != kind.word_bytes:
        return library.resized(library.column(array), n, _UINT8, (kind.word_bytes,))[1]
    return library.aligned_column(array)


def keys_of(array, library, what):
    """The Keys that an array is."""
    shape = array.shape
    kind = _kind(array, shape, what)
    return Keys(array, shape[0], kind, library)


def encode(x, what):
    """The Keys of an argument."""
    array, library = take(x, what)
    return keys_of(array, library, what)


def encode_strings_too(x, what):
    """The Keys of an argument, which may be strings: their words are rows of equal ones."""
    array, library = take(x, what)
    if not array.shape:
        array = array.reshape(1)
    if library is NUMPY and array.dtype.kind in _strings.KINDS:
        return _strings.StringKeys(array, what)
    return keys_of(array, library, what)


def keeps_every_value(dtype, other):
    """Whether each value of one type is one of another. (numpy calls int64 to float64 safe.)"""
    return np.can_cast(dtype, other, "safe") and not (
        other.kind == "f" and dtype.kind in "iu" and dtype.itemsize == 8
    )


def _as(array, kind, library, what, chosen_by_numpy):
    """Queries as keys of a table, so that no conversion changes one."""
    if not array.shape:
        array = array.reshape(1)
    mine = kind_of(array, what)
    if mine is kind:
        return array
    if mine.columns == kind.columns and mine.dtype.kind in "biuf" and kind.dtype.kind in "iuf":
        if keeps_every_value(mine.dtype, kind.dtype):
            return library.convert(array, kind.dtype)
        if chosen_by_numpy and (array.dtype.kind != "f" or kind.dtype.kind == "f" or not array.size):
            with np.errstate(over="ignore", invalid="ignore"):
                converted = array.astype(
                    kind.dtype
                )  # floats to the nearest one, as numpy does with numbers of Python
                if array.dtype.kind == "f" or np.array_equal(converted.astype(array.dtype), array):
                    return converted
            raise OverflowError(f"{what}: numbers that are none of {kind.dtype}, the type of the keys")
    elif mine.dtype.kind == kind.dtype.kind == "S":  # numpy has made them as wide as the longest
        converted = array.astype(kind.dtype)
        if mine.dtype.itemsize <= kind.dtype.itemsize or np.array_equal(converted, array):
            return converted
        raise OverflowError(f"{what}: texts that are longer than {kind.dtype}, the type of the keys")
    raise TypeError(
        f"{what}: {mine}, but the keys of the table are {kind}; convert them, so that no key changes silently"
    )


def encode_like(x, kind, home, what):
    """The Keys of queries of a table whose keys are of this kind; `home`: its Library."""
    array, library = take(x, what)
    if library is not home:
        if is_python_numbers(x):
            array = _as(array, kind, library, what, True)
            return Keys(home.of_numpy(array), len(array), kind, home)
        if library.where != home.where:
            raise ValueError(f"{what}: keys of {library}, but the table is on {home.where}; put them there")
    shape = array.shape
    if not shape or _kind(array, shape, what) is not kind:
        array = _as(array, kind, library, what, is_python_numbers(x))
        shape = array.shape
    return Keys(array, shape[0], kind, library)


def encode_two(x, y, what):
    """The Keys of two columns that are compared with each other.

    Integers of different types are both converted to one that holds both. Strings become row numbers of the
    distinct ones.
    """
    a, library = take(x, what)
    b, other = take(y, what)
    if library is NUMPY or other is NUMPY:
        lists = is_python_numbers(x), is_python_numbers(y)
        if library is other:
            if lists[0] and not a.size:  # numpy calls them floats
                a = np.empty((0, *b.shape[1:]), b.dtype)
            if lists[1] and not b.size:
                b = np.empty((0, *a.shape[1:]), a.dtype)
            if a.dtype.kind in _strings.KINDS or b.dtype.kind in _strings.KINDS:
                return _strings.encode_two(a, b, what)
        if lists[0] != lists[1]:
            return _array_and_list(a, library, b, other, lists[0], what)
    if library is not other:
        same_device(library, other, what)
    a_shape, b_shape = a.shape, b.shape
    one, two = _kind(a, a_shape, what), _kind(b, b_shape, what)
    if one is two:
        return Keys(a, a_shape[0], one, library), Keys(b, b_shape[0], one, other)
    both = np.promote_types(one.dtype, two.dtype) if one.dtype.kind in "biufSmM" else None
    if (
        one.columns != two.columns
        or both is None
        or not keeps_every_value(one.dtype, both)
        or not keeps_every_value(two.dtype, both)
    ):
        raise _no_common_type(one, two, what)
    a, b = library.convert(a, both), other.convert(b, both)
    return keys_of(a, library, what), keys_of(b, other, what)


def _no_common_type(one, two, what):
    if one.columns != two.columns:
        return TypeError(f"{what}: {one} and {two} are never equal; ravel() makes single keys of rows")
    return TypeError(f"{what}: {one} and {two} have no common type that keeps every key; convert one of them")


def _array_and_list(a, library, b, other, first_is_list, what):
    """An array and a list of Python, whose numbers take the type of the array if it holds them."""
    if first_is_list:
        return _array_and_list(b, other, a, library, False, what)[::-1]
    one = kind_of(a, what)
    if b.size == 0:
        b = np.empty((0, *one.tail), one.dtype)
    try:
        b = _as(b, one, NUMPY, what, True)
    except OverflowError:
        two = kind_of(b, what)
        both = np.promote_types(one.dtype, two.dtype)
        if one.columns != two.columns or not keeps_every_value(one.dtype, both):
            raise _no_common_type(one, two, what) from None
        if not keeps_every_value(two.dtype, both):
            raise _no_common_type(one, two, what) from None
        a, b = library.convert(a, both), b.astype(both)
        one = kind_of(a, what)
    return Keys(a, a.shape[0], one, library), Keys(library.of_numpy(b), len(b), one, library)
