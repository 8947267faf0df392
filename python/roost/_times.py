"""Times as numbers: those of columns, and durations that a user gives."""

import datetime
import math
import numbers
import re

import numpy as np

from ._arrays.exact import shown
from ._arrays.types import FLOAT64, INT64, NUMBERS, UINT64, numpy_dtype
from ._options import integer

_SECOND = 10**18  # attoseconds, the least unit of numpy
_UNITS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": _SECOND}
_UNITS |= {"m": 60 * _SECOND, "h": 3600 * _SECOND, "D": 86400 * _SECOND, "W": 7 * 86400 * _SECOND}
_IN_TEXTS = {"min": _UNITS["m"], "d": _UNITS["D"], "w": _UNITS["W"], **_UNITS}
_TEXT = re.compile(r"(?:\d+[a-zA-Z]+)+")


def _attoseconds(x, what, name):
    """A duration of Python, numpy or pandas, or a text, in attoseconds; None: it is none of these."""
    if isinstance(x, str):
        parts = re.findall(r"(\d+)([a-zA-Z]+)", x) if _TEXT.fullmatch(x) else []
        if not parts or any(unit not in _IN_TEXTS for _, unit in parts):
            known = ", ".join(_IN_TEXTS)
            raise ValueError(f"{what}: {name}={x!r}; give numbers with units, such as '1h30m', of {known}")
        return sum(int(number) * _IN_TEXTS[unit] for number, unit in parts)
    x = x.to_timedelta64() if hasattr(x, "to_timedelta64") else x
    if isinstance(x, np.timedelta64):
        unit, step = np.datetime_data(x.dtype)
        if np.isnat(x) or unit not in _UNITS:
            raise ValueError(f"{what}: {name}={x!r}; give a duration of weeks, days, hours or less")
        return int(x.astype(np.int64)) * step * _UNITS[unit]
    if isinstance(x, datetime.timedelta):
        return (x // datetime.timedelta(microseconds=1)) * _UNITS["us"]
    return None


def distance_in(x, dtype, what, name):
    """A distance between times of a numpy type, from 0 on, in their unit: an int, or of floats a float."""
    found = _attoseconds(x, what, name)
    if (found is None) == (dtype.kind in "mM") or isinstance(x, (bool, np.bool_)):
        wanted = (
            "a duration, such as '5m' or a timedelta" if dtype.kind in "mM" else "a number, as of the times"
        )
        raise TypeError(f"{what}: {name}={shown(x)}, but times are {dtype}; give {wanted}")
    if found is not None:
        unit, step = np.datetime_data(dtype)
        if unit not in _UNITS:
            raise TypeError(f"{what}: times in the unit {unit}, which has no fixed length; convert them")
        found, rest = divmod(found, step * _UNITS[unit])
        if rest:
            raise ValueError(f"{what}: {name}={shown(x)} is no multiple of {dtype}'s unit; convert the times")
    elif not isinstance(x, numbers.Real) or x != x:
        raise TypeError(f"{what}: {name}={shown(x)}; give a number")
    elif dtype.kind == "f":
        found = float(x)
    else:
        found = 2**64 - 1 if x == math.inf else math.floor(x)
        if found != x and name != "tolerance" and x != math.inf:
            raise ValueError(f"{what}: {name}={shown(x)}, but times are {dtype}; give a whole number")
    if found < 0:
        raise ValueError(f"{what}: {name}={shown(x)}; give 0 or more")
    return found if dtype.kind == "f" else min(found, 2**64 - 1)


def as_numbers(values, there, what, name):
    """Times of numpy as int64 or float64 in the same order and with the same distances, and the name of this
    type. `there`: which are no nulls; None: all."""
    kind = values.dtype.kind
    if kind not in "iufmM" or values.ndim != 1:
        raise TypeError(f"{what}: {name} of type {values.dtype}; give numbers, dates or durations")
    missing = np.isnan(values) if kind == "f" else np.isnat(values) if kind in "mM" else None
    missing = 0 if missing is None else np.count_nonzero(missing)
    missing = missing if there is None else max(missing, np.count_nonzero(~there))
    if missing:
        raise ValueError(f"{what}: {name} has {missing} nulls or NaN; leave out these rows")
    if kind == "f":
        found = values.astype(FLOAT64, copy=False)
    elif kind == "u":  # the sign bit flipped keeps order and distances
        found = (values.astype(UINT64) ^ np.uint64(2**63)).view(INT64)
    elif kind == "i":
        found = values.astype(INT64, copy=False)
    else:
        found = values.astype(values.dtype.newbyteorder("="), copy=False).view(INT64)
    return np.ascontiguousarray(found), NUMBERS[found.dtype]


def numbers_there(array, library, what, name):
    """The same of an array on a GPU."""
    dtype = numpy_dtype(array)
    if dtype is None or dtype.kind not in "iuf" or array.ndim != 1:
        raise TypeError(f"{what}: {name} of type {array.dtype}; give numbers")
    if dtype.kind == "f" and bool((array != array).any()):
        raise ValueError(f"{what}: {name} has NaN; leave out these rows")
    if dtype == UINT64:
        found = library.view(array, INT64)
    else:
        found = library.convert(array, FLOAT64 if dtype.kind == "f" else INT64)
    return found ^ -(2**63) if dtype.kind == "u" else found, NUMBERS[numpy_dtype(found)]


def number_of(time, dtype, what, name):
    """A time as a whole number of the unit of a numpy type."""
    if dtype.kind in "iu":
        return integer(time, what, name)
    if getattr(time, "tzinfo", None) is not None:
        time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    try:
        given = np.timedelta64(time) if dtype.kind == "m" else np.datetime64(time)
        found = given.astype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: {name}={shown(time)}, but times are {dtype}; give one of them") from None
    if np.isnat(found) or found != given:
        raise ValueError(f"{what}: {name}={shown(time)} is none of {dtype}; convert the times")
    return int(found.view(INT64))
