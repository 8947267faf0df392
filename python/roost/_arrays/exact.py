"""How values enter: each one exactly, or not at all.

`of_python` makes an array from Python's values: numbers, texts, dates, and lists of them. `convert` gives an
array another type. Both keep every value, or raise a TypeError or OverflowError that names the first value
that cannot be kept. Nothing else in the package converts values that a user passes.
"""

import ctypes
import datetime
import functools
import itertools
import math
import numbers
import sys

import numpy as np

_FAMILIES = {"M": "dates", "m": "durations", "S": "bytes"}  # of numpy's kinds; see `_family`
_LONGEST_TEXT = (
    256  # with longer ones, a list becomes an array of objects: numpy makes all texts as wide as the longest
)
_LONGEST_BYTES = 32
_LEAST_NORMAL = sys.float_info.min
_SINGLE = (bool, int, float, complex, str, bytes, np.generic, datetime.date, datetime.timedelta, type(None))


def whole_floats(function):
    """Lets a function see denormal floats as they are on a thread that treats them as 0: after
    `torch.set_flush_denormal(True)`, and if a library was built with -ffast-math."""

    @functools.wraps(function)
    def call(*arguments, **named):
        if _LEAST_NORMAL * 0.5 != 0.0:
            return function(*arguments, **named)
        c, kept = ctypes.PyDLL(None), ctypes.create_string_buffer(64)  # C uses at most 32 bytes of it
        c.fegetenv(kept)
        c.fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV
        try:
            return function(*arguments, **named)
        finally:
            c.fesetenv(kept)

    return call


def plural(n, noun):
    """ "1 null", "2 nulls"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def not_utf8(error):
    """What a text that Python cannot decode raises."""
    return ValueError(f"roost: a text that is not UTF-8 ({error}); convert to binary")


def _family(dtype):
    """What the values of a type are, all of one family being comparable; None: only with their own type."""
    if dtype.kind == "m" and np.datetime_data(dtype)[0] in "YM":  # which are not a fixed number of days
        return "months"
    return "numbers" if dtype.kind in "biuf" and dtype.itemsize <= 8 else _FAMILIES.get(dtype.kind)


def alike(dtype, other):
    """Whether a value of one type can be equal to one of the other."""
    if dtype.kind == other.kind == "m" and "generic" in (np.datetime_data(t)[0] for t in (dtype, other)):
        return True  # NaT, as `convert` finds out
    return dtype == other or (_family(dtype) is not None and _family(dtype) == _family(other))


def keeps_every_value(dtype, other):
    """Whether each value of one type is also a value of another. For dates only the units count: `convert`
    checks the values. (To numpy, int64 to float64 is safe, and so is a number to a text.)"""
    if not alike(dtype, other):
        return False
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
        return True  # NaT, as `convert` finds out
    return np.can_cast(dtype, other, "safe") and not (
        other.kind == "f" and dtype.kind in "iu" and dtype.itemsize == 8
    )


def common_type(dtype, other):
    """The type that holds each value of both; None if there is none."""
    if not alike(dtype, other):
        return None
    try:
        both = np.promote_types(dtype, other)
    except (TypeError, OverflowError):  # for durations in months and in days, or in days and picoseconds
        return None
    return both if keeps_every_value(dtype, both) and keeps_every_value(other, both) else None


@whole_floats
def convert(array, dtype, what, given=None):
    """An array of numpy with another type, every value as it is.

    `given`: what the array was made of, if that was Python's. Its floats, which have no type of their own,
    may become the nearest ones of `dtype`, as in numpy, but not infinite or 0. Raises TypeError where no
    value can be equal, and OverflowError with the first value that `dtype` has not.
    """
    if array.dtype == dtype:
        return array
    converted, kept = convert_some(array, dtype, what, given)
    if not kept.all():
        wrong = array[~kept].ravel()[0] if array.ndim else array[()]
        why = "longer than" if dtype.kind == "S" else "not a value of type"
        name = shown(wrong, str) if array.dtype.kind in "mM" else repr(wrong.item())
        raise OverflowError(f"{what}: {name} is {why} {dtype}")
    return converted


@whole_floats
def convert_some(array, dtype, what, given=None):
    """The same, and for each value whether `dtype` has it; the results of other values have no meaning."""
    if not alike(array.dtype, dtype):
        raise TypeError(f"{what}: {array.dtype} and {dtype} are never equal; convert one of them")
    if dtype.kind in "mM":
        return _dates_as(array, dtype)
    try:
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
            return converted, _kept(array, converted, given)
    except (TypeError, ValueError, OverflowError):
        raise OverflowError(f"{what}: {array.dtype} has values that do not fit {dtype}") from None


def shown(value, text=repr):
    """A value as text, on one line."""
    try:
        return " ".join(text(value).split())[:80]
    except OverflowError:  # for a date that is too far away for numpy to write
        return f"a {type(value).__name__} of {getattr(value, 'dtype', 'dates')}"
    except ValueError:  # for an int that Python does not write either
        return f"a {type(value).__name__} of thousands of digits"
    except RuntimeError:  # for an array of jax that was deleted
        return f"a {type(value).__name__} without a value"


def _kept(array, converted, given):
    """For each value of an array whether it is the converted one."""
    old, new = array.dtype.kind, converted.dtype.kind
    if old == "S":
        return converted == array
    if new == "f" and old == "f":
        kept = (converted.astype(array.dtype) == array) | np.isnan(array)
        if given is not None and is_python(given) and not kept.all():
            nearest = np.isfinite(converted) & (converted != 0)
            kept |= nearest & own_floats(given).reshape(array.shape)
        return kept
    if new == "f":  # integers are compared as integers; those beyond 8 bytes cannot be equal
        if old == "b":
            return np.ones(array.shape, bool)
        low, high = _ends(array.dtype)
        exact = converted.astype(np.float64)
        inside = (exact >= low) & (exact < high)
        return inside & (np.where(inside, exact, 0).astype(array.dtype) == array)
    if old == "f":
        low, high = _ends(converted.dtype)
        exact = array.astype(np.float64)
        inside = (exact >= low) & (exact < high) & (exact == np.trunc(exact))
        return inside & (np.where(inside, exact, 0).astype(converted.dtype) == converted)
    return (converted.astype(array.dtype) == array) & ((converted < 0) == (array < 0))


_ATTOSECONDS = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_ATTOSECONDS = {unit: n * 10**18 for unit, n in _ATTOSECONDS.items()}
_ATTOSECONDS |= {unit: 1000**i for i, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms"))}
_MOST = 2**63 - 1
_ERA_MONTHS, _ERA_DAYS = 4800, 146097  # of 400 years, after which the calendar repeats


@functools.cache
def _days_of_months():
    """The days from the first month of an era to each one."""
    return np.arange(_ERA_MONTHS).astype("M8[M]").astype("M8[D]").astype(np.int64)


def _dates_as(array, dtype):
    """Dates or durations in another unit, and for each whether it is the same there. In whole numbers: beyond
    64 bits some versions of numpy wrap around, and some raise."""
    missing = np.isnat(array)
    if "generic" in (np.datetime_data(t)[0] for t in (array.dtype, dtype)):  # numbers without a unit
        return np.full(array.shape, -_MOST - 1).view(dtype.newbyteorder("=")).astype(dtype), missing
    (months, size), (to_months, to_size) = map(_unit, (array.dtype, dtype))
    counts = np.where(missing, 0, array.astype(array.dtype.newbyteorder("=")).view(np.int64)).reshape(-1)
    if months == to_months:
        counts, kept = _scaled(counts, size, to_size)
    elif months:
        counts = _with_room(_scaled(counts, size, 1)[0], 31)
        counts = counts // _ERA_MONTHS * _ERA_DAYS + _days_of_months()[(counts % _ERA_MONTHS).astype(int)]
        counts, kept = _scaled(counts, _ATTOSECONDS["D"], to_size)
    else:
        days, kept = _scaled(counts, size, _ATTOSECONDS["D"])
        rest = (days % _ERA_DAYS).astype(np.int64)
        month = np.searchsorted(_days_of_months(), rest, "right") - 1
        kept &= _days_of_months()[month] == rest  # the first day of a month
        counts, whole = _scaled(days // _ERA_DAYS * _ERA_MONTHS + month, 1, to_size)
        kept &= whole
    kept &= ((counts >= -_MOST) & (counts <= _MOST)).astype(bool)
    counts, kept = (a.reshape(array.shape) for a in (np.where(kept, counts, 0).astype(np.int64), kept))
    result = np.where(missing, -_MOST - 1, counts).view(dtype.newbyteorder("="))
    return result.astype(dtype, copy=False), kept | missing


def _unit(dtype):
    """Whether a unit of dates is of months, and how many of these, or attoseconds, it has."""
    unit, step = np.datetime_data(dtype)
    return unit in "YM", step * (_ATTOSECONDS[unit] if unit in _ATTOSECONDS else 12 if unit == "Y" else 1)


def _with_room(counts, factor, divisor=1):
    """Whole numbers; as Python's if 64 bits may not hold each number after it is divided and then
    multiplied."""
    if not counts.size or counts.dtype == object:
        return counts
    largest = max(-int(counts.min()), int(counts.max()))
    return counts.astype(object) if max(-(-largest // divisor) * factor, divisor) > _MOST else counts


def _scaled(counts, factor, divisor):
    """Whole numbers multiplied and divided, and for each whether it is whole then."""
    common = math.gcd(factor, divisor)
    factor, divisor = factor // common, divisor // common
    counts = _with_room(counts, factor, divisor)
    if counts.dtype != object and factor > _MOST:  # of zeros
        factor = 1
    return counts // divisor * factor, (counts % divisor == 0).astype(bool)


def _ends(dtype):
    """The least value of a type of integers, and the first one beyond: both are floats."""
    if dtype.kind == "b":
        return 0.0, 2.0
    limits = np.iinfo(dtype)
    return float(limits.min), float(2 ** (limits.bits - (dtype.kind == "i")))


def is_python(x):
    """Whether an argument is Python's own, and has no type: a number, a text, a date, or a list."""
    return isinstance(x, (list, tuple, range, set, frozenset, *_SINGLE))


def own_floats(x):
    """For each value of a Python argument, whether it is a float without a precision of its own. Beside numpy
    floats, all are of 8 bytes."""
    cells = [x]
    while cells and isinstance(cells[0], (list, tuple, set, frozenset)):
        cells = list(itertools.chain.from_iterable(cells))
    numpys = any(isinstance(cell, np.floating) for cell in cells)
    return np.array([not numpys and type(cell) in (float, complex) for cell in cells], bool)


@whole_floats
def of_python(x, what):
    """A numpy array of Python's values, each exactly.

    Integers become int64, or uint64 if that alone holds them; integers beside floats float64. Texts and bytes
    become numpy's, or objects where these would lose trailing zeros. Raises TypeError for values of several
    kinds, and OverflowError for integers that no type holds.
    """
    if isinstance(x, (set, frozenset, range)):
        x = list(x)
    if isinstance(x, _SINGLE):
        return _of_cells([x], what, "a").reshape(())
    if isinstance(x, (list, tuple)):
        return _of_list(x, what)
    try:
        array = np.asanyarray(x)
    except Exception as error:
        raise TypeError(f"{what}: a {type(x).__name__}, which is not an array: {_one_line(error)}") from None
    expect_bare(x, what)
    expect_bare(array, what)  # of netCDF4, with a mask
    array = np.asarray(array)
    if array.dtype.hasobject and not array.shape:
        advice = advice_on(x, "pass an array, or a list of values of one type")
        raise TypeError(f"{what}: a {type(x).__name__}; {advice}")
    return array


def advice_on(x, usual):
    """What to do with an argument that is refused: a query of polars has no values yet."""
    is_query = type(x).__name__ == "LazyFrame" and type(x).__module__.startswith("polars")
    return 'call .collect(engine="streaming") first' if is_query else usual


def has_mask(x):
    """Whether an array is one of numpy.ma, or one of astropy, whose masks numpy.ma finds, too."""
    return isinstance(x, np.ndarray) and hasattr(x, "_mask")


def is_masked(x):
    """Whether any value of an array with a mask, or a field of one, is masked."""
    return np.ma.getmaskarray(x).reshape(-1).view(np.bool_).any()


def under_mask(x):
    """The values of an array with a mask, all of them."""
    return x.unmasked if hasattr(x, "unmasked") else np.ma.getdata(x, subok=False)


def expect_bare(x, what, interface="__array_interface__"):
    """Raises a TypeError for an array with a mask, or a unit of pint or unyt, which numpy leaves behind."""
    if hasattr(x, "units") and hasattr(x, "to"):
        raise TypeError(f"{what}: numbers with the unit {x.units}, which would be lost; pass them without it")
    given = None if isinstance(x, np.ndarray) else getattr(x, interface, None)
    if is_masked(x) if has_mask(x) else given and given.get("mask") is not None:
        raise TypeError(f"{what}: a {type(x).__name__} with a mask; drop or fill what is masked")


def has_unit(x):
    """Whether numbers have a unit of astropy, or are a list of such."""
    if isinstance(x, (list, tuple)):
        return any(map(has_unit, x))
    return hasattr(getattr(x, "unit", None), "to")


def real_numbers(x, what, finite=True, unit=None):
    """An array of real numbers as float64, each as it is. `finite`: without NaN and infinity. `unit`: what
    numbers with a unit of astropy are converted to."""
    own = x.unit if unit and not isinstance(x, (list, tuple)) and has_unit(x) else None
    if unit and own is None and has_unit(x):
        x = [real_numbers(each, what, finite, unit).tolist() for each in x]
    if has_mask(x):
        if is_masked(x):
            raise TypeError(f"{what}: a masked array; pass its values without those that are masked")
        x = under_mask(x)
    array = of_python(x, what)
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(f"{what}: {array.dtype} where numbers are expected")
    array = convert(array, np.dtype(np.float64), what, x) if array.size else array.astype(np.float64)
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{what}: {array[~np.isfinite(array)].ravel()[0]}; leave out what is not a number")
    try:
        return array if own is None else np.asarray(own.to(unit, array))
    except Exception:  # of astropy
        raise TypeError(f"{what}: numbers of the unit {own}, which are no {unit}; convert them") from None


def real_number(x, what, low, high, advice, unit=None):
    """One number above `low`, `high` at most."""
    number = real_numbers(x, what, unit=unit)
    if number.shape or not low < number <= high:
        raise ValueError(f"{what}: {shown(x)}; {advice}")
    return float(number)


def expect_shades(image, what):
    """Refuses PIL images whose numbers are not shades: indices of a palette, inks, hues."""
    mode = getattr(image, "mode", None)
    if mode in ("P", "PA", "CMYK", "YCbCr", "HSV", "LAB"):
        raise TypeError(f"{what}: an image of mode {mode}, whose numbers are not shades; give convert('RGB')")


def _one_line(error):
    return " ".join(str(error).split())


def _of_list(x, what):
    cells, shape = [x], ()
    while cells and all(isinstance(cell, (list, tuple)) for cell in cells):
        lengths = {len(cell) for cell in cells}
        if len(lengths) > 1:
            raise ValueError(f"{what}: rows of several lengths; give all as many numbers")
        shape += tuple(lengths)
        cells = list(itertools.chain.from_iterable(cells))
    return _of_cells(cells, what).reshape(shape)


def _of_cells(cells, what, a="a list of"):
    """A one-dimensional array of single values of one kind; `a` names them in errors."""
    types = set(map(type, cells))
    if types == {float}:
        return np.array(cells, np.float64)
    if types == {int}:
        return _integers(cells, types, what)
    if not all(issubclass(t, _SINGLE) for t in types):
        cells = [_single(cell, what) for cell in cells]
        types = set(map(type, cells))
    kinds = {_kind(t) for t in types} - {"NaT"}
    if not cells:
        return np.empty(0)
    if kinds <= {"bool"} and "NaT" not in map(_kind, types):
        return np.array(cells, np.bool_)
    if kinds <= {"bool", "int"} and kinds:
        return _integers(cells, types, what)
    if kinds <= {"bool", "int", "float"} and kinds:
        return _floats(cells, types, what)
    if kinds == {"str"}:
        return _texts(_own(cells, types, str), "\0", _LONGEST_TEXT, np.str_)
    if kinds == {"bytes"}:
        return _texts(_own(cells, types, bytes), b"\0", _LONGEST_BYTES, np.bytes_)
    if kinds <= {"date"}:
        return _dates(cells, np.datetime64, what)
    if kinds == {"duration"}:
        return _dates(cells, np.timedelta64, what)
    if len(types) == 1 and (kinds == {"complex"} or issubclass(*types, np.generic)):
        return np.array(cells)
    names = " and ".join(sorted(t.__name__ for t in types))
    if any(t.__name__ in ("NoneType", "NAType") for t in types):
        raise TypeError(f"{what}: {a} {names}, with missing values; drop or fill them")
    advice = "pass them all as" if len(types) > 1 else "convert them to"
    advice = advice_on(cells[0], f"{advice} integers, floats, strings, bytes or dates")
    raise TypeError(f"{what}: {a} {names}; {advice}")


def _own(cells, types, of):
    """Texts or bytes without what their types make of them: numpy takes str(cell), cut to len(cell)."""
    return cells if types == {of} else [of.__add__(cell, of()) for cell in cells]


def _single(cell, what):
    """An element of a list that is an array without dimensions, as its value."""
    if getattr(cell, "shape", None) == () and hasattr(cell, "item"):
        if isinstance(cell, np.ndarray):
            expect_bare(cell, what)
        try:
            return cell.item()
        except Exception as error:  # of torch on meta, of jax where it traces
            name = type(cell).__name__
            raise TypeError(f"{what}: a {name} without a value: {_one_line(error)[:80]}") from None
    if hasattr(cell, "as_py"):  # of Arrow
        return cell.as_py()
    if hasattr(cell, "__array__") or hasattr(cell, "__dlpack__") or hasattr(cell, "__cuda_array_interface__"):
        raise TypeError(
            f"{what}: a list of arrays; pass one: np.column_stack([a, b]) has rows of integers as keys"
        )
    return cell


@functools.cache
def _kind(t):
    """What values of a type are, all of one kind being comparable."""
    if t.__name__ == "NaTType":
        return "NaT"
    for kind, types in (
        ("bool", (bool, np.bool_)),
        ("duration", (np.timedelta64, datetime.timedelta)),
        ("int", (int, np.integer)),
        ("float", (float, np.floating)),
        ("str", str),
        ("bytes", bytes),
        ("date", (np.datetime64, datetime.date)),
        ("complex", (complex, np.complexfloating)),
    ):
        if issubclass(t, types):
            return kind
    return t.__name__


def _integers(cells, types, what):
    if len(types) == 1 and issubclass(*types, np.integer):
        return np.array(cells)
    if types != {int}:
        cells = list(map(int, cells))
    low, high = min(cells), max(cells)
    if low >= -(2**63) and high < 2**63:
        return np.array(cells, np.int64)
    if low >= 0 and high < 2**64:
        return np.array(cells, np.uint64)
    raise OverflowError(
        f"{what}: integers that neither int64 nor uint64 holds; pass rows of integers, or floats"
    )


def _floats(cells, types, what):
    for cell in cells:
        if isinstance(cell, (int, np.integer)):
            try:
                exact = int(float(cell)) == int(cell)
            except OverflowError:
                exact = False
            if not exact:
                raise OverflowError(
                    f"{what}: {cell} among floats cannot be represented as a float; pass all as integers "
                    "or as floats"
                )
    if all(issubclass(t, np.floating) for t in types):
        return np.array(cells)
    if any(issubclass(t, np.longdouble) for t in types):
        return np.array(cells, np.longdouble)
    return np.array(cells, np.float64)


def _texts(cells, zero, longest, dtype):
    """Texts or bytes. numpy takes trailing zeros off."""
    if max(map(len, cells)) <= longest and not any(cell.endswith(zero) for cell in cells):
        return np.array(cells, dtype)
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def _dates(cells, of_numpy, what):
    """Dates or durations, in the finest of their units."""
    single = [_date(cell, of_numpy, what) for cell in cells]
    unit = next((cell.dtype for cell in single if cell is not None), of_numpy(0, "s").dtype)
    single = [np.array("NaT", unit)[()] if cell is None else cell for cell in single]
    dtypes = {cell.dtype for cell in single}
    if len(dtypes) == 1:
        return np.array(single)
    finest = None
    for dtype in dtypes:
        finest = dtype if finest is None else common_type(finest, dtype)
        if finest is None:
            raise TypeError(
                f"{what}: {of_numpy.__name__} of units without a common one; pass all in one unit"
            )
    return np.array([convert(np.asarray(cell), finest, what)[()] for cell in single])


def _date(cell, of_numpy, what):
    """A date or duration of numpy; None for NaT of pandas, which has no unit."""
    if isinstance(cell, of_numpy):
        return cell
    if type(cell).__name__ == "NaTType":
        return None
    if getattr(cell, "tzinfo", None) is not None:
        raise TypeError(f"{what}: {NO_TIME_ZONES}")
    if hasattr(cell, "to_numpy"):  # a pandas value, which has nanoseconds
        return cell.to_numpy()
    if of_numpy is np.datetime64:
        return of_numpy(cell)
    count = cell // datetime.timedelta(microseconds=1)  # Python allows more than int64
    for unit, step in ("D", 86400 * 10**6), ("us", 1), ("ms", 10**3), ("s", 10**6):
        if count % step == 0 and abs(count // step) < 2**63:
            return np.timedelta64(count // step, unit)
    raise OverflowError(f"{what}: {cell!r} does not fit timedelta64 in any unit")


def plain_number(key, what):
    """A complex number, fraction, decimal or large int as a float or an int of 64 bits; OverflowError if it
    is none."""
    if isinstance(key, int):
        plain = -(2**63) <= key < 2**64
    else:
        plain = isinstance(key, (float, np.integer, np.bool_, np.float16, np.float32))
    if plain or not isinstance(key, numbers.Number):
        return key
    is_complex = isinstance(key, (complex, np.complexfloating))
    if is_complex and key.imag == 0:
        return key.real
    for number in () if is_complex else (float, int):
        try:
            if number(key) == key or (number is float and np.isnan(float(key))):
                return np.float64(key) if number is float else int(key)  # compared exactly
        except (TypeError, ValueError, OverflowError):
            pass
    raise OverflowError(f"{what}: {shown(key)} is not a 64-bit number")


NO_TIME_ZONES = "dates of a time zone; pass them in UTC, without one"


def no_nulls(column, nulls, what):
    """Raises a ValueError for a column with nulls."""
    if nulls:
        raise ValueError(f"{what}: {column} has {plural(nulls, 'null')}; drop or fill them")
