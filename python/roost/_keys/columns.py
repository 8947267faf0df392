"""Columns: arrays whose rows may be null, of every library that has such."""

import datetime
import decimal
import fractions
import functools
import numbers
import sys

import numpy as np

from .._arrays.exact import has_mask, shown, under_mask
from .._arrays.frames import Pandas, Polars, decoded, frames_of_column, objects_at, of_capsules, take_rows
from .._arrays.libraries import NUMPY
from .._arrays.take import take, taker_name
from .._arrays.types import numpy_dtype
from . import strings


class Column:
    """A column as arrays, which may have nulls.

    `array`: of its `library`, or Texts. `valid`: None where there are no nulls, else an array of numpy with a
    bit for each row, as in Arrow's bitmaps: the least significant first, 1 for a value. What lies at a null
    is defined, and has no meaning. `given`: what it was made of. `direct`: whether `array` has the values of
    `given` as they are, rather than what its numbers or encodings stand for. `unit`: what the numbers of
    `array` mean beyond its type; columns of two units are never equal. `masked`: whether it was made of an
    array with a mask, as results will be, too.
    """

    __slots__ = ("array", "library", "valid", "given", "name", "direct", "unit", "masked")

    def __init__(self, array, library, valid, given, direct=True, unit=None):
        self.array, self.library, self.valid, self.given = array, library, valid, given
        self.direct, self.unit, self.name, self.masked = direct, unit, None, has_mask(given)

    def __len__(self):
        return len(self.given) if self.array is None else self.array.shape[0]

    @property
    def there(self):
        """For each row whether it has a value; None: all have."""
        return None if self.valid is None else bools_of(self.valid, len(self))

    @property
    def blank(self):
        """Whether it has no value, so that it fits any type."""
        n = len(self)
        if self.valid is None or not n:
            return not n
        return not self.valid[: n >> 3].any() and not bools_of(self.valid[n >> 3 :], n & 7).any()

    def move(self, library):
        """Makes it an array of another library on the CPU."""
        if library is not self.library:
            self.array, self.library = library.readable(self.library.to_numpy(self.array)), library

    def become(self, other):
        """Gives a column without a value the type of another one."""
        n, array = len(self), other.array
        if isinstance(array, strings.Texts):
            empty = np.zeros(n, f"{'S' if array.type is bytes else 'U'}1")
            self.array, self.library = strings.of_numpy(empty, "roost"), NUMPY
        else:
            self.array, self.library = other.library.of_numpy(np.zeros(n, numpy_dtype(array))), other.library
        self.unit = other.unit

    @property
    def frames(self):
        """Pandas, Polars or Arrow, if it was made of a column of these, of which results will be, too."""
        return frames_of_column(self.given)

    @property
    def null_row(self):
        """The number of a row that is null."""
        return int(np.argmin(self.there))

    def at(self, rows):
        """The Column of some rows, and of a null if there is one: as an array, or as its library has it."""
        rows = rows if self.valid is None else np.append(rows, self.null_row)
        valid = None if self.valid is None else bitmap_of(self.there[rows])
        array = given = None
        if self.unit or self.frames is not None:
            given = take_rows(self.given, self.library.to_numpy(rows))
        elif isinstance(self.array, strings.Texts):
            array = self.array[rows]
        else:
            array = self.library.rows(self.array, rows)
        at = Column(array, self.library, valid, given, self.direct, self.unit)
        at.name, at.masked = self.name, self.masked
        return at

    def values(self, rows):
        """The values of some rows, an array of numpy, as Python has them; None for nulls."""
        if self.unit:
            values = objects_at(self.given, rows).tolist()
        elif isinstance(self.array, strings.Texts):
            values = self.array[rows].tolist()
        else:
            taken = self.library.rows(self.array, self.library.of_numpy(rows))
            values = strings.listed(self.library.to_numpy(taken))
        if self.valid is None:
            return values
        there = self.valid[rows >> 3] >> (rows & 7).astype(np.uint8) & 1
        return [value if is_there else None for value, is_there in zip(values, there)]

    @property
    def type(self):
        """What its values are, for people."""
        kind = self.array.type if isinstance(self.array, strings.Texts) else None
        return self.unit or (_shown(self.array.dtype) if kind is None else kind.__name__)


_shown = functools.cache(str)  # numpy takes 3 us


def bools_of(valid, n):
    """A bitmap as bools."""
    return np.unpackbits(valid, count=n, bitorder="little").view(np.bool_)


def bitmap_of(there):
    """Bools as a bitmap; None if all are true."""
    return None if there.all() else np.packbits(there, bitorder="little")


_DECIMALS, _TIMES, ZONED = "decimals of scale ", "times of a day", "times of a zone"  # units


def _of_unit(values, unit, what):
    """Values of Python as a column of a unit."""
    types = {_TIMES: datetime.time, ZONED: datetime.datetime}.get(unit, (decimal.Decimal, int))
    for value in values:
        if unit == ZONED and type(value).__name__ == "NaTType":  # which has no zone
            continue
        if not isinstance(value, types) or (getattr(value, "tzinfo", None) is None) == (unit == ZONED):
            raise TypeError(f"{what}: {shown(value)} and {unit} are never equal; convert one of them")
    if unit == ZONED:
        return _zoned(_plain([_in_utc(value, what) for value in values], what), values)
    pa = sys.modules["pyarrow"]
    if unit == _TIMES:
        return take_column(pa.array(values, pa.time64("ns")), what)
    scale = scale_of(unit)
    try:
        words = [_scaled(value, scale).to_bytes(16, "little", signed=True) for value in values]
    except (OverflowError, ValueError):
        raise OverflowError(f"{what}: Python values that are not {unit}") from None
    return Column(np.array(words, "V16"), NUMPY, None, values, False, unit)


def _in_utc(time, what):
    """A time of a zone as that of UTC."""
    if type(time).__name__ == "NaTType":
        return time
    try:
        return time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    except (OverflowError, ValueError):
        raise OverflowError(f"{what}: {shown(time, str)} is beyond the dates of UTC") from None


def _scaled(number, scale):
    """A number multiplied by a power of ten, which must be whole then: OverflowError if it is not."""
    scaled = fractions.Fraction(*number.as_integer_ratio()) * fractions.Fraction(10) ** scale
    if scaled.denominator != 1:
        raise OverflowError
    return scaled.numerator


def one_of_unit(value, unit, what):
    """One key of a column of a unit: a number as the decimal that Python calls equal to it; OverflowError if
    there is none."""
    known = not isinstance(value, (numbers.Number, np.bool_)) or isinstance(value, decimal.Decimal)
    if known or not unit.startswith(_DECIMALS):
        return value
    scale = scale_of(unit)
    try:
        if isinstance(value, (np.bool_, np.integer)):
            value = int(value)
        scaled = _scaled(value if value.imag else value.real, scale)
    except (AttributeError, OverflowError, ValueError):  # complex, infinity, NaN
        scaled = 2**127
    if not -(2**127) <= scaled < 2**127:
        raise OverflowError(f"{what}: {shown(value)} is none of the {unit}")
    return decimal_of(scaled, scale)


def decimal_of(number, scale):
    """A decimal of a whole number of its least digits; Python's arithmetic would round it."""
    return decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def scale_of(unit):
    """The scale of a unit of decimals; None for others."""
    return int(unit.removeprefix(_DECIMALS)) if unit and unit.startswith(_DECIMALS) else None


def of_values(values, unit, what):
    """The Column of a list of Python, of which None and pandas.NA are nulls. `unit`: that of the column that
    it is compared with. Nulls alone are of no type."""
    there = np.array([value is not None and type(value).__name__ != "NAType" for value in values], np.bool_)
    valid = bitmap_of(there)
    if valid is not None:
        if not there.any():
            return Column(np.zeros(len(values), np.int8), NUMPY, valid, values, True, unit)
        filler = values[int(np.argmax(there))]
        values = [value if is_there else filler for value, is_there in zip(values, there)]
    column = _of_unit(values, unit, what) if unit else _plain(values, what)
    column.given, column.valid = values, valid
    return column


def _masked(x, what):
    if x.ndim != 1 or x.dtype.names:
        advice = "one of its fields" if x.dtype.names else "one dimension"
        raise TypeError(f"{what}: a masked array of shape {x.shape}, type {x.dtype}; pass {advice}")
    there, values = ~np.ma.getmaskarray(x), under_mask(x)
    if x.dtype.kind != "O":
        return _plain(values, what, bitmap_of(there), x)
    texts = strings.of_numpy(values, what, True)  # under masks, values may be None
    if texts.valid is not None:
        there &= bools_of(texts.valid, len(x))
    return Column(texts, NUMPY, bitmap_of(there), x)


def _plain(x, what, valid=None, given=None, **more):
    array, library = strings.take_keys(x, what)
    return Column(array, library, valid, x if given is None else given, **more)


def _arrow_bitmap(column):
    """The bitmap of an array of Arrow; None if it has no nulls."""
    buffer = column.buffers()[0]
    if column.null_count == 0 or buffer is None:
        return None
    first, shift = divmod(column.offset, 8)
    bits = np.frombuffer(buffer, np.uint8)[first : first + (shift + len(column) + 7) // 8]
    if shift:
        bits = np.packbits(
            np.unpackbits(bits, bitorder="little")[shift : shift + len(column)], bitorder="little"
        )
    return bits


def _of_no_type(n, given):
    """n nulls."""
    return Column(np.zeros(n, np.int8), NUMPY, bitmap_of(np.zeros(n, bool)), given, False)


def _arrow(column, what, given=None, direct=True):
    """A column of Arrow that is no text."""
    pa = sys.modules["pyarrow"]
    kind = column.type
    given = column if given is None else given
    if pa.types.is_null(kind):
        return _of_no_type(len(column), given)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        column = take_column(decoded(column), what)
        column.given, column.direct = given, False
        return column
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _zoned(_arrow(column.cast(pa.timestamp(kind.unit)), what), given)
    if pa.types.is_nested(kind):
        raise TypeError(f"{what}: an Arrow column of type {kind}; pass numbers, strings, bytes or dates")
    unit = None
    if pa.types.is_decimal(kind):
        unit, direct = _DECIMALS + str(kind.scale), False
        if kind.bit_width > 128:
            raise TypeError(f"{what}: an Arrow column of type {kind}; pass decimals of at most 128 bits")
        kind = pa.decimal128(38, kind.scale)
    elif pa.types.is_time(kind):
        unit, direct, kind = _TIMES, False, pa.time64("ns")
    if unit is None and column.null_count == 0:
        return _plain(column, what, given=given, direct=direct)
    if column.type != kind:
        column = column.cast(kind)
    if hasattr(column, "chunks"):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    valid, values = _arrow_bitmap(column), column.buffers()[1]
    if unit is not None:
        bytes = kind.bit_width // 8
        dtype = np.dtype(np.int64 if bytes == 8 else f"V{bytes}")
        array = (
            np.frombuffer(values, dtype, len(column), column.offset * bytes) if values else np.empty(0, dtype)
        )
        return Column(array, NUMPY, valid, given, direct, unit)
    bare = pa.Array.from_buffers(kind, len(column), [None, values], 0, column.offset)
    try:
        return _plain(bare, what, valid, given, direct=direct)
    except OverflowError:  # for a NaT under a null
        array = bare.to_numpy(zero_copy_only=False)
        if (np.isnat(array) & bools_of(valid, len(array))).any():
            raise
        return Column(array, NUMPY, valid, given, direct)


def _zoned(column, given):
    """Times of UTC as those of `given`, which has a zone: instants, whatever the zone."""
    column.given, column.unit, column.direct = given, ZONED, False
    return column


def _polars(x, what):
    name = x.dtype.base_type().__name__
    if name in ("Decimal", "Time"):
        return _arrow(x.to_arrow(), what, x, False)
    if name == "Null":
        return _of_no_type(len(x), x)
    if getattr(x.dtype, "time_zone", None) is not None:
        return _zoned(_polars(x.dt.convert_time_zone("UTC").dt.replace_time_zone(None), what), x)
    is_read = (x.dtype.is_numeric() or x.dtype.is_temporal() or name == "Boolean") and "128" not in name
    if x.null_count() == 0 or not is_read:
        return _plain(x, what)
    valid = np.packbits(x.is_not_null().to_numpy(), bitorder="little")
    filled = x.to_physical().fill_null(False if name == "Boolean" else 0)
    return _plain(filled.cast(x.dtype), what, valid, x)


def _pandas(x, what):
    if getattr(x, "nlevels", 1) > 1:
        return _plain(x, what)
    column = getattr(x, "array", x)
    arrow = getattr(column, "_pa_array", None)
    if arrow is not None:
        return _arrow(arrow, what, x)
    dtype = x.dtype
    if hasattr(column, "sp_values"):
        return _pandas(x.astype(dtype.subtype), what)
    if isinstance(dtype, np.dtype):
        if dtype.kind != "O":
            return _plain(x, what)
        texts = strings.of_numpy(x.to_numpy(), what, True)
        return Column(texts, NUMPY, texts.valid, x, False)
    categories = getattr(dtype, "categories", None)
    if categories is not None and hasattr(column, "codes"):
        codes = np.asarray(column.codes)
        known = take_column(categories, what)
        if not len(known):
            dtype = np.int8 if isinstance(known.array, strings.Texts) else known.array.dtype
            known.array = np.zeros(int(len(x) > 0), dtype)
        return Column(known.array[np.maximum(codes, 0)], NUMPY, bitmap_of(codes >= 0), x, False, known.unit)
    if getattr(dtype, "tz", None) is not None:
        return _zoned(_plain(np.asarray(column.tz_convert(None)), what), x)
    numbers = getattr(dtype, "numpy_dtype", None)
    if numbers is None:
        return _plain(x, what, direct=False)
    there = ~np.asarray(x.isna())
    return Column(x.to_numpy(dtype=numbers, na_value=numbers.type(0)), NUMPY, bitmap_of(there), x)


_TAKERS = {"arrow": _arrow, "polars": _polars, "pandas": _pandas, "masked": _masked, None: _plain}


def kind_of_column(x):
    """ "pandas", "polars" or "arrow" for their columns, "masked" for numpy's masked arrays, "other" for what
    may have Arrow's interface; None: no column that may have nulls."""
    if type(x) is np.ndarray:
        return None
    return "masked" if has_mask(x) else taker_name(x)


def is_column(x):
    """Whether an element of a tuple is a column: an array, or a list of Python."""
    return (
        isinstance(x, (list, range))
        or len(getattr(x, "shape", ())) > 0
        or kind_of_column(x) == "arrow"
        or hasattr(x, "__arrow_c_stream__")
        or hasattr(x, "__arrow_c_device_array__")
    )


def are_columns(x, what):
    """Whether keys are several columns, in a tuple. Tuples in a tuple, which could as well be rows, are
    refused."""
    if not isinstance(x, tuple) or not x:
        return False
    if any(isinstance(each, tuple) for each in x):
        raise TypeError(
            f"{what}: a tuple in a tuple of keys; pass columns as a tuple of lists, and rows of integers as "
            "a list of tuples"
        )
    return all(map(is_column, x))


def without_tuple(x):
    """Queries of one column; where they are a tuple of one list, the list."""
    return x[0] if isinstance(x, tuple) and len(x) == 1 and isinstance(x[0], (list, range)) else x


def is_quick_column(x):
    """Whether an argument is a column of pandas or polars of numbers without nulls, as is soon known."""
    frames = frames_of_column(x)
    if frames is Pandas:
        return isinstance(x.dtype, np.dtype) and x.dtype.kind not in strings.KINDS
    if frames is not Polars or x.null_count():
        return False
    kind = x.dtype
    return kind.is_integer() or kind.is_float()


def take_column(x, what):
    """The Column that an argument is. `what` names the argument in errors."""
    if is_quick_column(x):
        return Column(*take(x, what), None, x)
    x = of_capsules(x)
    name = kind_of_column(x)
    if name in (None, "masked"):
        column = _TAKERS[name](x, what)
    else:
        texts = strings.of_column(x, what)
        if texts is not None:
            column = Column(texts, NUMPY, texts.valid, x, False)
        else:
            column = _TAKERS.get(name, _plain)(x, what)
    return column
