"""Keys as words: what the tables compare.

Tables compare keys byte by byte, in words of 4, 8, 16 or 32 bytes. `encode` turns an array of keys into such
words, and `Kind.decode` turns words back.
"""

import numpy as np

from . import _host, _strings
from ._arrays import as_numpy, is_python_numbers

_SIZES = (4, 8, 16, 32)


class Kind:
    """What keys are: their dtype, and how many numbers a row has (None: keys are no rows)."""

    __slots__ = ("dtype", "columns")

    def __init__(self, dtype, columns):
        self.dtype = dtype
        self.columns = columns

    def __eq__(self, other):
        return self.dtype == other.dtype and self.columns == other.columns

    def __str__(self):
        return str(self.dtype) if self.columns is None else f"rows of {self.columns} {self.dtype}"

    @property
    def key_bytes(self):
        return self.dtype.itemsize * (1 if self.columns is None else self.columns)

    @property
    def word_bytes(self):
        size = self.key_bytes
        if self.dtype.kind == "f" and size == 2:
            size = 4
        return next((s for s in _SIZES if s >= size), None)

    def decode(self, words):
        """Keys from words."""
        n = len(words)
        raw = words.reshape(-1).view(np.uint8).reshape(n, self.word_bytes)
        if self.dtype.kind == "f" and self.dtype.itemsize == 2:
            return words.view(np.float32).astype(np.float16)
        if self.key_bytes != self.word_bytes:
            raw = np.ascontiguousarray(raw[:, : self.key_bytes])
        keys = raw.reshape(-1).view(self.dtype)
        return keys if self.columns is None else keys.reshape(n, self.columns)


def kind_of(array, what):
    """The Kind of an array of keys; TypeError or ValueError if its elements are none."""
    dtype = array.dtype
    if array.ndim == 0:
        raise ValueError(f"{what}: a single number; pass an array of keys")
    if dtype.kind in "UO":
        raise TypeError(
            f"{what}: keys of type {dtype}; strings work in unique, factorize, isin, join, group_by "
            "and value_counts, not here"
        )
    if dtype.kind not in "biufmMSV" or dtype.names or (dtype.kind == "f" and dtype.itemsize > 8):
        raise TypeError(
            f"{what}: keys of type {dtype}; pass integers, bools, floats, dates or fixed-size bytes"
        )
    if array.ndim > 2 or (array.ndim == 2 and dtype.kind not in "iu"):
        raise ValueError(
            f"{what}: keys of shape {array.shape} and type {dtype}; pass one dimension, or rows of integers"
        )
    kind = Kind(dtype.newbyteorder("="), None if array.ndim == 1 else array.shape[1])
    if kind.key_bytes == 0 or kind.word_bytes is None:
        raise ValueError(f"{what}: keys of {kind.key_bytes} bytes; they may have 1 to 32")
    return kind


def aligned(words):
    """Words where a processor wants them: views of bytes may lie anywhere."""
    return words if words.flags.aligned else words.copy()


def words_of(array, kind):
    """The words of an array of keys of this kind. Copies only what must change: see docs/python.md."""
    n = len(array)
    if not array.dtype.isnative:
        array = array.astype(kind.dtype)
    array = np.ascontiguousarray(array)
    if kind.dtype.kind == "f":
        if kind.dtype.itemsize == 2:
            array = array.astype(np.float32)
        words = np.empty(n, np.uint32 if array.dtype.itemsize == 4 else np.uint64)
        _host.canonical_floats(aligned(array), words)
        return words
    size, width = kind.key_bytes, kind.word_bytes
    if size != width:
        if width == 4 and kind.columns is None and kind.dtype.kind in "biu":
            return array.view(f"u{size}").astype(np.uint32)
        padded = np.zeros((n, width), np.uint8)
        padded[:, :size] = array.reshape(-1).view(np.uint8).reshape(n, size)
        array = padded
    if width <= 8:
        return aligned(array.reshape(-1).view(f"u{width}"))
    return aligned(array.reshape(-1).view(np.uint64).reshape(n, width // 8))


def encode(x, what):
    """Words, their Kind, and the Origin of an argument."""
    array, origin = as_numpy(x, what)
    kind = kind_of(array, what)
    return words_of(array, kind), kind, origin


def keeps_every_value(dtype, other):
    """Whether each value of one type is one of another. (numpy calls int64 to float64 safe.)"""
    return np.can_cast(dtype, other, "safe") and not (
        other.kind == "f" and dtype.kind in "iu" and dtype.itemsize == 8
    )


def _as(array, kind, what, chosen_by_numpy):
    """Queries as keys of a table: no conversion changes one."""
    if array.ndim == 0:
        array = array.reshape(1)
    mine = kind_of(array, what)
    if mine == kind:
        return words_of(array, kind)
    if mine.columns == kind.columns and mine.dtype.kind in "biuf" and kind.dtype.kind in "iuf":
        if keeps_every_value(mine.dtype, kind.dtype):
            return words_of(array.astype(kind.dtype), kind)
        if chosen_by_numpy and (array.dtype.kind != "f" or kind.dtype.kind == "f" or not array.size):
            with np.errstate(over="ignore", invalid="ignore"):
                converted = array.astype(
                    kind.dtype
                )  # floats to the nearest one, as numpy does with numbers of Python
                if array.dtype.kind == "f" or np.array_equal(converted.astype(array.dtype), array):
                    return words_of(converted, kind)
            raise OverflowError(f"{what}: numbers that are none of {kind.dtype}, the type of the keys")
    elif mine.columns is None and mine.dtype.kind == kind.dtype.kind == "S" and kind.columns is None:
        if mine.dtype.itemsize <= kind.dtype.itemsize:
            return words_of(array.astype(kind.dtype), kind)
    raise TypeError(
        f"{what}: {mine}, but the keys of the table are {kind}; convert them, so that no key changes silently"
    )


def encode_like(x, kind, what):
    """Words of queries of a table with keys of this kind, and their Origin."""
    array, origin = as_numpy(x, what)
    return _as(array, kind, what, is_python_numbers(x)), origin


def encode_two(x, y, what):
    """Words of two columns of keys that are compared with each other, and the first one's Origin.

    Integers of different types are both converted to one that holds both. Strings become row numbers of the
    distinct ones.
    """
    a, origin = as_numpy(x, what)
    b, _ = as_numpy(y, what)
    if a.size == 0 and is_python_numbers(x):
        a = np.empty(0, b.dtype)
    if b.size == 0 and is_python_numbers(y):
        b = np.empty(0, a.dtype)
    if a.dtype.kind in "UO" or b.dtype.kind in "UO":
        return (*_strings.encode_two(a, b, what), origin)
    one, two = kind_of(a, what), kind_of(b, what)
    if one == two:
        return words_of(a, one), words_of(b, two), origin
    for queries, mine, kind, is_list in (
        (b, a, one, is_python_numbers(y)),
        (a, b, two, is_python_numbers(x)),
    ):
        if is_list:
            try:
                words = _as(queries, kind, what, True)
            except OverflowError:
                continue
            return (
                (words_of(mine, kind), words, origin)
                if queries is b
                else (words, words_of(mine, kind), origin)
            )
    both = np.promote_types(one.dtype, two.dtype) if one.dtype.kind in "biufSmM" else None
    if (
        one.columns != two.columns
        or both is None
        or not keeps_every_value(one.dtype, both)
        or not keeps_every_value(two.dtype, both)
    ):
        raise TypeError(
            f"{what}: {one} and {two} have no common type that keeps every key; convert one of them"
        )
    kind = Kind(both, one.columns)
    return words_of(a.astype(both), kind), words_of(b.astype(both), kind), origin
