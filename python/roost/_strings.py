"""Strings as keys, on the CPU: numpy's, Python's and Arrow's.

Each string becomes 128 bits by a hash of its bytes. Strings that are equal in these bits are compared, so
that different ones are never taken for the same.
"""

import numpy as np

from . import _host
from ._libraries import NUMPY

KINDS = "UOT"  # of numpy's types that are or may be strings


class Strings:
    """Strings side by side in memory: string i is text[offsets[i]:offsets[i + 1]]."""

    def __init__(self, array, what):
        if array.ndim != 1:
            raise ValueError(
                f"{what}: keys of type {array.dtype} and shape {array.shape}; pass one dimension of strings"
            )
        if array.dtype.kind == "T":
            array = array.astype(object)
        self.array = array
        self.type = str if array.dtype.kind == "U" else None  # or bytes; None: of no strings
        n = len(array)
        if array.dtype.kind == "U":  # equally wide, so equal strings are equal in all bytes
            width = max(array.dtype.itemsize, 4)
            array = np.ascontiguousarray(array.astype(f"=U{width // 4}", copy=False))
            self.text = array.view(np.uint8)
            self.offsets = np.arange(0, (n + 1) * width, width, dtype=np.int64)
        else:
            kinds = {type(s) for s in array.tolist()}
            if kinds <= {str, np.str_}:
                encoded = [s.encode("utf-8", "surrogatepass") for s in array.tolist()]
                self.type = str if kinds else None
            elif kinds <= {bytes, np.bytes_}:
                encoded, self.type = array.tolist(), bytes
            else:
                names = " and ".join(sorted(k.__name__ for k in kinds))
                raise TypeError(
                    f"{what}: an array of objects of {names}; pass numbers, or strings without missing values"
                )
            self.offsets = np.zeros(n + 1, np.int64)
            np.cumsum([len(s) for s in encoded], out=self.offsets[1:])
            self.text = np.frombuffer(b"".join(encoded), np.uint8)
        if not len(self.text):
            self.text = np.zeros(1, np.uint8)

    def tell_apart(self):
        """Hashes, the seed that tells all strings apart, and for each the row of the first equal one."""
        return _host.tell_apart(self.text, self.offsets)


class StringKind:
    """Keys that are strings: their words are rows of an array."""

    missing = None

    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype

    def decode(self, words, library):
        return self.array[words]


class StringKeys:
    """Keys that are strings: of each the row of the first one that is equal."""

    library = NUMPY

    def __init__(self, array, what, words=None):
        self.words = Strings(array, what).tell_apart()[2] if words is None else words
        self.n = len(self.words)
        self.kind = StringKind(array)


def encode_two(a, b, what):
    """The StringKeys of two columns of strings that are compared with each other."""
    for one in (a, b):
        if one.dtype.kind not in KINDS + "S" and one.size:
            raise TypeError(f"{what}: strings are never equal to {one.dtype}; convert one of them")
        if one.ndim != 1:
            raise ValueError(f"{what}: strings of shape {one.shape}; pass one dimension of strings")
    if a.dtype.kind == b.dtype.kind == "U":
        both = np.concatenate([a, b])
    else:
        both = np.concatenate([a.astype(object), b.astype(object)])
    rows = StringKeys(both, what).words
    return StringKeys(a, what, rows[: len(a)]), StringKeys(b, what, rows[len(a) :])
