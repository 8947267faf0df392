"""Options of functions and tables: checks of the arguments other than data."""

import contextlib
import numbers
import operator
import os

import numpy as np

from ._arrays.exact import shown
from ._arrays.libraries import NUMPY
from ._arrays.take import take
from ._arrays.types import INT32, INT64

MOST_ROWS = 2**32 - 2


def rows_type(index_dtype, what):
    """The type of row numbers that `index_dtype` names."""
    if index_dtype == "int64":
        return INT64
    name = index_dtype if isinstance(index_dtype, type) else str(index_dtype).replace("torch.", "")
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = None
    if dtype is not INT32 and dtype is not INT64:
        raise ValueError(f"{what}: index_dtype={index_dtype!r}; give int32 or int64")
    return dtype


def integer(n, what, name):
    """A whole number of Python, numpy or another library as an int."""
    try:
        if getattr(n, "ndim", None) == 0 and hasattr(n, "item"):  # of CuPy, which is no index
            n = n.item()
        if not isinstance(n, bool):
            return operator.index(n)
    except TypeError:
        pass
    raise TypeError(f"{what}: {name}={n!r}; give a whole number")


def flag(x, what, name):
    """True or False, of Python or numpy, as a bool."""
    if not isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{what}: {name}={x!r}; give True or False")
    return bool(x)


def whole_number(n, what, name):
    """A whole number from 0 to 2^63 - 1 as an int."""
    n = integer(n, what, name)
    if not 0 <= n < 2**63:
        raise ValueError(f"{what}: {name}={n}; give 0 or more, and less than 2^63")
    return n


def check_rows(n, rows, what):
    """Raises an OverflowError if there are too many rows, or too many for a type of row numbers."""
    if n > MOST_ROWS:
        raise OverflowError(f"{what}: {n} rows; at most 2^32 - 2 at once")
    if rows is INT32 and n > 2**31 - 1:
        raise OverflowError(f"{what}: {n} rows have no numbers of type int32; give index_dtype='int64'")


def numpy_type(dtype, what):
    """The numpy type that a user names, also by a type of torch."""
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


def type_name(dtype):
    """A type's name, for files: equal types have the same name, whether or not their fields are declared as
    aligned."""

    def plain(dtype):
        if not dtype.names:
            return dtype
        types, offsets = zip(*(dtype.fields[name][:2] for name in dtype.names), strict=True)
        types = list(map(plain, types))
        return np.dtype(dict(names=dtype.names, formats=types, offsets=offsets, itemsize=dtype.itemsize))

    return str(plain(dtype) if isinstance(dtype, np.dtype) else dtype).removeprefix("torch.")


def library_beside(like, what):
    """The Library of the array that a table is to be beside."""
    if isinstance(like, (str, bytes)):
        raise TypeError(f"{what}: like={shown(like)}; pass an array that lies there")
    return NUMPY if like is None else take(like, what)[1]


def path_of(file, what):
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
def naming_files(what):
    """Lets an OSError begin with what was called."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{what}: {error}") from None


def load_factor_of(x, what):
    """A load factor as a float."""
    if not isinstance(x, numbers.Real) or isinstance(x, bool):
        raise TypeError(f"{what}: load_factor={shown(x)}; give a load factor from 0.01 to 1")
    if not 0.01 <= x <= 1:
        raise ValueError(f"{what}: load_factor={x}; give a load factor from 0.01 to 1")
    return float(x)
