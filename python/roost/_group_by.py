"""group_by, and the results for the values of each group."""

import functools
import operator
import threading

import numpy as np

from ._arrays.arrow import DeviceColumn, pack_bits
from ._arrays.exact import plural, whole_floats
from ._arrays.frames import (
    Device,
    column_named,
    columns_named,
    expect_no_own_order,
    may_be_device,
    of_capsules,
)
from ._arrays.libraries import NUMPY, same_device
from ._arrays.types import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, NUMBERS, UINT8, UINT64, numpy_dtype
from ._keys.arrow import ArrowKind
from ._keys.columns import Column, bitmap_of, take_column
from ._keys.packing import encode_columns
from ._keys.strings import StringKeys, Texts, of_numpy
from ._options import check_rows, flag, whole_number

_REDUCTIONS = {name: i for i, name in enumerate("sum mean min max product any all count".split())}
_SUMS = {"b": INT64, "i": INT64, "u": UINT64}  # the types of sums, by kind
# Results for any values; for comparable ones; for dates and durations. Numbers have all results.
_OF_ANY = ("count", "first", "last")
_OF_TEXTS = (*_OF_ANY, "min", "max", "nunique", "mode")
_OF_DATES = {"M": (*_OF_TEXTS, "median", "quantile", "nlargest", "nsmallest")}
_OF_DATES["m"] = (*_OF_DATES["M"], "sum", "mean")
_BY_ORDER = ("min", "max", "mode", "median", "quantile", "nlargest", "nsmallest")  # values are compared
_OF_COLUMN = ("min", "max", "mode")  # values of the column, in its type
_PAIRS = ("corr", "cov")
_OPTIONS = {"quantile": "q", "var": "ddof", "std": "ddof", "cov": "ddof"}
_IN_AGG = (*_REDUCTIONS, *_OF_ANY[1:], "var", "std", "median", "quantile", "nunique", "mode", *_PAIRS)


class _Values:
    """A column of values. C++ combines `array`, of type `dtype`; None: only its rows can be picked. `given`:
    the type of the values; `texts`: those that the numbers stand for; `there`: numpy bools, or None."""

    __slots__ = ("array", "library", "dtype", "given", "texts", "there")

    def __init__(self, column):
        self.array, self.library, self.there = column.array, column.library, column.there
        self.dtype = self.given = self.texts = None
        if isinstance(self.array, Texts):
            return
        dtype = numpy_dtype(self.array)
        if dtype is None or self.array.ndim != 1:
            return
        dtype = dtype if dtype.isnative else dtype.newbyteorder("=")
        if dtype in NUMBERS or dtype == FLOAT16:
            self.dtype = self.given = dtype
        elif dtype.kind in "mM":
            missing = np.isnat(self.array)
            if missing.any():
                self.there = ~missing if self.there is None else self.there & ~missing
            self.array = self.array.astype(dtype, copy=False).view(INT64)
            self.dtype, self.given = INT64, dtype

    def keep(self, rows, home, what):
        """Keeps the values of some rows, an array of the keys' library."""
        rows = home.to_numpy(rows)
        if self.there is not None:
            self.there = self.there[rows]
        if isinstance(self.array, Texts):
            self.array = of_numpy(self.array[rows], what, True)
        else:
            self.array = self.library.rows(self.array, self.library.of_numpy(rows))

    def allowed(self):
        """The methods that take such values; None: all."""
        if isinstance(self.array, Texts):
            return _OF_TEXTS
        return _OF_ANY if self.dtype is None else _OF_DATES.get(self.given.kind)

    def number(self):
        """Makes numbers for C++ from texts (their places in order) and from float16."""
        if isinstance(self.array, Texts):
            first, numbers = StringKeys(self.array).numbered(INT64)
            distinct = self.array[first]
            if self.there is not None:
                distinct = np.where(self.there[first], distinct, (self.array.type or str)())
            by_text = NUMPY.argsort(distinct)
            places = np.empty(len(by_text), np.int64)
            places[by_text] = np.arange(len(by_text))
            self.array, self.dtype, self.texts = places[numbers], INT64, distinct[by_text]
        elif self.dtype == FLOAT16:
            self.array, self.dtype = self.library.convert(self.array, FLOAT32), FLOAT32

    def plain(self):
        """Whether results are numbers, which any library has, rather than values that only numpy has."""
        return self.texts is None and self.given.kind not in "mM"

    def of_numbers(self, found, there):
        """The values of numpy that some numbers stand for."""
        if self.texts is not None:
            found = found if there is None else np.where(there, found, 0)
            return self.texts[found], there
        found = found.view(self.given)
        if there is not None:
            found[~there] = "NaT"
        return found, None


class _DeviceValues(_Values):
    """An Arrow column in device memory as values; `there`: bools of the library there."""

    __slots__ = ("column",)

    def __init__(self, column):
        self.column, self.library, self.texts = column, column.library, None
        self.array, self.there = column.values()
        counted = column.is_number or column.type[0] in "tuUzZvw"
        self.dtype = self.given = numpy_dtype(self.array) if counted else None

    def keep(self, rows, home, what):
        self.column = self.column.take(rows)
        self.array, self.there = self.column.values()

    def allowed(self):
        kind = self.column.type
        if self.column.is_number:
            return None
        if kind[0] == "t":
            return (*_OF_DATES["M"], "sum") if kind.startswith("tD") else _OF_DATES["M"]
        return _OF_ANY if self.dtype is None else (*_OF_ANY, "nunique")

    def number(self):
        """Values are numbers already."""

    def plain(self):
        return self.column.is_number

    def of_numbers(self, found, there):
        found = self.library.convert(found, self.dtype)
        return DeviceColumn.of_array(found, self.library, there, self.column.type), None


class GroupBy:
    """The result of `group_by`: keys, whose values `sum`, `mean`, `min` and the other methods combine.

    The first call numbers the distinct keys, and all results are in the order of `keys`, in whatever order
    you call the methods. This order is the same on every run for the same calls; another object with the same
    keys may have a different one. Methods take one or several arrays of values, with one value per row, and
    return an array of results for each. Values are integers, bools and floats of 2, 4 or 8 bytes. `count`,
    `first` and `last` also take any other values; `min`, `max`, `nunique` and `mode` also take texts, dates
    and durations; `median`, `quantile`, `nlargest` and `nsmallest` also dates and durations; `sum` and `mean`
    also durations.

    Null values are skipped: those of numpy masked arrays, of nullable columns of pandas, Arrow and polars,
    and NaT. If a key has no value, its result is null, in a numpy masked array or as NaT. If the values have
    no nulls, results are plain arrays. For Arrow columns in device memory, results with nulls are such
    columns, too. NaN is a value: sums, means, extremes, medians and quantiles of values with a NaN are NaN.

    For the same input, results are the same on every run, floats included: the order of additions depends
    only on the number of values.

    Values of a frame are read when a method is called, so do not change the frame before that. The keys are
    kept.

    Any number of threads may use one object; their calls take turns. It keeps a copy of the keys or, once
    rows are grouped, 4 bytes for each row; and 8 to 20 bytes for each distinct key, besides the key itself.
    The first two calls do not need grouped rows if each sums a column of integers or finds its extremes. All
    other calls group the rows, unless they are already grouped.
    """

    def __init__(self, keys, frame=None):
        self._n, self._kind, self._library = keys.n, keys.kind, keys.library
        self._frame, self._kept, self._given = frame, keys.kept, keys.given
        self._kind.keep()
        self._of_texts = isinstance(keys, StringKeys)
        self._groups = keys.grouped() if hasattr(keys, "grouped") else None
        if self._groups is None:
            self._groups = keys.library.module.group(keys.library.place(), keys.words)
        self._keys, self._lock = None, threading.Lock()
        if self._of_texts and (self._kind.frames or isinstance(keys.texts.source, np.ndarray)):
            self._keys = self._read_keys()  # the array may change

    def _read_keys(self):
        place = self._library.place()
        if isinstance(self._kind, ArrowKind):
            rows = self._library.adopt(self._groups.first_rows(place, True), INT64)
            rows = rows if self._kept is None else self._library.rows(self._kept, rows)
            return self._kind.result(rows, self._library)
        if self._of_texts:
            return self._kind.of_rows(self._groups.first_rows(place, True))
        keys = self._kind.decode(self._groups.keys(place), self._library)
        return self._kind.result(keys, self._library)

    def __len__(self):
        """The number of distinct keys."""
        return self._groups.size(self._library.place())

    def __repr__(self):
        return f"roost.GroupBy({self._n} rows, {len(self)} distinct keys of type {self._kind.dtype})"

    @property
    def keys(self):
        """The distinct keys, in an order without meaning that is the same on every run for the same calls."""
        with self._lock:
            if self._keys is None:
                self._keys = self._read_keys()
        return self._keys

    def count(self, *values):
        """The number of rows of each key, or of its values that are not null: int64."""
        if values:
            return self._all("count", values)
        return self._library.adopt(self._groups.counts(self._library.place()), INT64)

    def sum(self, *values):
        """Sums: int64 for integers and bools, uint64 for unsigned integers (both wrap around), floats for
        floats.

        Sums of float16 are computed in float32, and rounded at the end. If a sum of durations is too long,
        this is an OverflowError.
        """
        return self._all("sum", values)

    def product(self, *values):
        """Products, of the same types as sums; those of floats are computed in float64 and rounded at the
        end."""
        return self._all("product", values)

    def mean(self, *values):
        """Means, as float64. Integers of 8 bytes beyond 2^53 are rounded before they are added.

        Means of durations are rounded to their unit; beyond 2^53 units they are rounded to 53 bits.
        """
        return self._all("mean", values)

    def min(self, *values):
        """The least values, of the type of the values; NaN if one is NaN. Ordered categories are refused with
        a TypeError, here and by other methods that compare values."""
        return self._all("min", values)

    def max(self, *values):
        """The greatest values, of the type of the values; NaN if one is NaN."""
        return self._all("max", values)

    def any(self, *values):
        """Whether any value is not 0: bools. NaN is not 0."""
        return self._all("any", values)

    def all(self, *values):
        """Whether no value is 0: bools."""
        return self._all("all", values)

    def first(self, *values):
        """The values in each key's first row, of any type and shape that a column may have; null if it is
        null.

        If the library of the keys lacks the type (torch has no dates), results are of the library of the
        values.
        """
        return self._all("first", values)

    def last(self, *values):
        """The values in each key's last row; otherwise as `first`."""
        return self._all("last", values)

    def var(self, *values, ddof=1):
        """Variances, as float64: the sum of squared deviations from the mean, divided by n - ddof.

        NaN for keys with at most ddof values; null if there are nulls.
        """
        return self._all("var", values, whole_number(ddof, "roost.GroupBy.var", "ddof"))

    def std(self, *values, ddof=1):
        """Standard deviations: the square roots of `var`."""
        return self._all("std", values, whole_number(ddof, "roost.GroupBy.std", "ddof"))

    def median(self, *values):
        """Medians: `quantile` of 0.5."""
        return self._all("median", values)

    def quantile(self, *values, q=0.5):
        """Quantiles, as float64; interpolated between two values, as by numpy's `linear`.

        `q`: a number from 0 to 1, or several, for results of shape (keys, len(q)). Quantiles of dates and
        durations are of their type, rounded down to its unit.
        """
        return self._all("quantile", values, q)

    def nunique(self, *values):
        """The number of distinct values of each key: int64. All NaNs are one value, and -0.0 is 0.0."""
        return self._all("nunique", values)

    def mode(self, *values):
        """The most frequent values; of several equally frequent ones, the least. NaN counts as the
        greatest."""
        return self._all("mode", values)

    def nlargest(self, values, n):
        """The `n` greatest values of each key, or all if there are fewer.

        Returns
        -------
        values, offsets : arrays
            The values of key k are ``values[offsets[k]:offsets[k + 1]]``, descending; NaNs come last.
        """
        return self._outermost("nlargest", values, n)

    def nsmallest(self, values, n):
        """The `n` least values of each key, ascending; otherwise as `nlargest`."""
        return self._outermost("nsmallest", values, n)

    def corr(self, x, y):
        """Pearson's correlation of two columns, as float64, over the rows in which both have values.

        NaN for keys with fewer than two such rows, or null if there are nulls; NaN if one column is constant.
        """
        return self._finished(*self._made("corr", (x, y), None))

    def cov(self, x, y, *, ddof=1):
        """The covariances of two columns, as float64; otherwise as `var`."""
        return self._finished(*self._made("cov", (x, y), whole_number(ddof, "roost.GroupBy.cov", "ddof")))

    def agg(self, /, *unnamed, **wanted):
        """Several results at once, each with a name: ``agg(total=("v", "sum"))``, not ``agg({"v": "sum"})``.

        Parameters
        ----------
        **wanted : (values, "sum"), (values, "quantile", 0.9), ((x, y), "corr"), "count"
            For the name of each result: values, the name of a method, and the q of `quantile` or the ddof of
            `var`, `std` and `cov`. "count" alone counts rows. As in all methods, values are an array or,
            after ``group_by(frame, by)``, the name of a column of the frame.

        Returns
        -------
        frame or dict
            If the keys are a frame, a frame of the same library: `keys`, and a column with each result under
            its name. Otherwise a dict of the results by name, in the order of `keys`.

        Examples
        --------
        >>> import numpy, roost
        >>> g = roost.group_by(numpy.array([7, 7, 7]))
        >>> grams = numpy.array([1, 2, 6])
        >>> g.agg(n="count", total=(grams, "sum"), m=(grams, "median"))
        {'n': array([3]), 'total': array([9]), 'm': array([2.])}
        """
        if unnamed:
            raise TypeError(
                f"roost.GroupBy.agg: a {type(unnamed[0]).__name__} without a name for the result; give one "
                'to each: agg(total=("v", "sum"))'
            )
        asked = {name: self._parsed(name, of) for name, of in wanted.items()}
        if len(asked) > 1:
            len(self)
        if self._kind.frames is None:
            return {name: self._finished(*self._made(*of)) for name, of in asked.items()}
        frames = self._kind.frames
        results = [self._column(frames, *of) for of in asked.values()]
        names, columns = frames.columns(self.keys)
        twice = [name for name in names if name in asked]
        if twice:
            raise ValueError(f"roost.GroupBy.agg: {twice[0]!r} is the name of a key; give the result another")
        return frames.frame([*names, *asked], [*columns, *results])

    def _column(self, frames, how, columns, option):
        """A result of `agg` as a column of a frame."""
        given = self._named(columns[0], "agg") if columns else None
        if how in ("first", "last") and given is not columns[0]:  # its type does not matter
            ends = self._end_rows(how)
            return frames.take(given, ends if self._kept is None else self._kept[ends])
        found, there = self._made(how, columns, option, nulls=True)
        if found.ndim != 1:
            raise TypeError(
                f"roost.GroupBy.agg: {how} of {option!r} gives more than one value per key; pass a single q"
            )
        if frames is Device:
            return frames.result(found, there, self._library)
        result = frames.result(np.asarray(found), there, given)
        return frames.cast(result, given) if how in _OF_COLUMN and given is not columns[0] else result

    def _named(self, values, how):
        """Values, or a column of the frame that the keys came from."""
        if self._frame is None or not isinstance(values, (str, int)):
            return values
        return column_named(self._frame, values, f"roost.GroupBy.{how}")

    def _parsed(self, name, of):
        """The method, the columns, and the option of one result of `agg`."""
        what = "roost.GroupBy.agg"
        if isinstance(of, str) and of == "count":
            return "count", (), None
        if not isinstance(of, (tuple, list)) or not 2 <= len(of) <= 3:
            raise TypeError(
                f'{what}: {name} is of type {type(of).__name__}; give (values, "sum"), or another method and '
                'its option, or "count" for the number of rows'
            )
        columns, how, *option = of
        if not isinstance(how, str) or how not in _IN_AGG:
            raise ValueError(
                f"{what}: {name}={how!r} is no method; give one of {', '.join(_IN_AGG)} (and for the number "
                'of rows "count" alone)'
            )
        columns = tuple(columns) if how in _PAIRS else (columns,)
        if how in _PAIRS and len(columns) != 2:
            raise ValueError(f"{what}: {name} is the {how} of {len(columns)} columns; give two")
        if option and how not in _OPTIONS:
            raise TypeError(f"{what}: {name}, which is {how}, takes no option, but is given {option[0]!r}")
        default = {"q": 0.5, "ddof": 1}.get(_OPTIONS.get(how))
        option = option[0] if option else default
        if _OPTIONS.get(how) == "ddof":
            option = whole_number(option, what, "ddof")
        return how, columns, option

    def _all(self, how, columns, option=None):
        if not columns:
            raise TypeError(f"roost.GroupBy.{how}: no values; pass one or several arrays")
        columns = [self._taken(column, how) for column in columns]
        if len(columns) == 1:
            return self._finished(*self._made(how, columns, option))
        len(self)  # groups the rows if this is the first call: faster for several columns
        return tuple(self._finished(*self._made(how, (column,), option)) for column in columns)

    def _taken(self, values, how):
        """An argument as _Values."""
        what = f"roost.GroupBy.{how}"
        if isinstance(values, _Values):
            return values
        values = self._named(values, how)
        if isinstance(values, (set, frozenset)):
            raise TypeError(f"{what}: a set of values, which has no order; pass a list or an array")
        values = of_capsules(values) if how in _BY_ORDER or may_be_device(values) else values
        if how in _BY_ORDER:
            expect_no_own_order(values, what)
        if isinstance(values, np.ndarray) and values.dtype == object and how in ("first", "last"):
            column = Column(values, NUMPY, None, values)  # of any objects
        elif isinstance(values, (Column, DeviceColumn)):
            column = values
        else:
            column = take_column(values, what)
            if column.unit is not None and how in ("first", "last"):  # as Python has them
                objects = np.array([*column.values(np.arange(len(column.given))), None], object)[:-1]
                column = Column(objects, NUMPY, None, objects)
        if column.library is not self._library:
            same_device(self._library, column.library, what)
        values = self._numbers_of(column, how, what)
        array = values.array
        if array.shape[0] != self._given:
            raise ValueError(
                f"{what}: {plural(self._given, 'key')} but {plural(array.shape[0], 'value')}; give one value "
                "for each key"
            )
        if self._kept is not None:
            values.keep(self._kept, self._library, what)
        return values

    def _numbers_of(self, column, how, what):
        """A column as _Values that the method takes."""
        if isinstance(column, DeviceColumn):
            values = _DeviceValues(column)
            if (allowed := values.allowed()) is not None and how not in allowed:
                raise TypeError(
                    f"{what}: values of Arrow's type {column.type!r} on {column.device} have only "
                    f"{', '.join(allowed)}; convert them to numbers"
                )
            return values
        array = column.array
        if column.unit is not None and how != "count":
            raise TypeError(f"{what}: values that are {column.unit}; convert them to numbers")
        if array.ndim == 0:
            raise TypeError(f"{what}: a single value; pass one value for each key")
        values = _Values(column)
        allowed = values.allowed()
        if allowed is not None and how not in allowed:
            shape = f" and shape {tuple(array.shape)}" if array.ndim > 1 else ""
            raise TypeError(
                f"{what}: values of type {column.type}{shape} have only {', '.join(allowed)}; pass one "
                "dimension of numbers"
            )
        return values

    def _finished(self, found, there):
        """A result for users: with nulls it is a numpy masked array."""
        if there is None:
            return found
        return np.ma.MaskedArray(self._to_numpy(found), ~self._to_numpy(there))

    def _bits(self, there):
        """Bools as C++ takes them."""
        if there is not None and not isinstance(there, np.ndarray):
            return pack_bits(there, self._library)
        bits = None if there is None else bitmap_of(there)
        if bits is None:
            return None
        return self._library.column(self._library.of_numpy(bits))

    def _there(self, counts, least=1):
        """Which keys have at least `least` values, as bools (on the CPU, numpy's); None: all have."""
        home = self._library
        there = home.adopt(counts, INT64) >= least
        if home.module is NUMPY.module:
            there = home.to_numpy(there)
        return None if bool(there.all()) else there

    def _to_numpy(self, array):
        return array if isinstance(array, np.ndarray) else self._library.to_numpy(array)

    def _input(self, values):
        """What C++ takes of values: column, type, bits."""
        values.number()
        column = values.library.column(values.array, self._n, values.dtype.itemsize)
        return column, NUMBERS[values.dtype], self._bits(values.there)

    @whole_floats
    def _made(self, how, columns, option, nulls=False):
        """A result, and where it is not null, as bools; None: everywhere. `nulls`: whether the NaNs of too
        few values are null, too. For Arrow values on a device, a result with nulls is such a column."""
        if not columns:
            return self.count(), None
        columns = [self._taken(column, how) for column in columns]
        found, there = self._made_of(columns, how, option, nulls)
        if there is None or not isinstance(columns[0], _DeviceValues):
            return found, there
        if found.ndim != 1:
            raise TypeError(
                f"roost.GroupBy.{how}: more than one value per key, some of them null; pass a single q"
            )
        return DeviceColumn.of_array(found, self._library, there), None

    def _made_of(self, columns, how, option, nulls):
        values = columns[0]
        if how == "count":
            return self._counted(values), None
        if how in ("first", "last"):
            return self._ends(values, how)
        if how in ("var", "std", *_PAIRS):
            return self._spread(how, columns, option, nulls)
        if how in ("median", "quantile"):
            return self._quantiles(values, 0.5 if how == "median" else option)
        if how in ("nunique", "mode"):
            return self._modes(values, how)
        return self._reduced(values, how)

    def _counted(self, values):
        bits = self._bits(values.there)
        if bits is None:
            return self.count()
        home = self._library
        _, nothing = home.output(self._n, UINT8)  # not read
        counts, _ = self._groups.reduce(home.place(), nothing, NUMBERS[UINT8], _REDUCTIONS["count"], bits)
        return home.adopt(counts, INT64)

    def _end_rows(self, how):
        """The number of each key's first or last row."""
        home, rows = self._library, INT32 if self._n < 2**31 else INT64
        end_rows = self._groups.first_rows if how == "first" else self._groups.last_rows
        return home.adopt(end_rows(home.place(), rows is INT64), rows)

    def _ends(self, values, how):
        """The values of each key's first or last row."""
        home, library, array = self._library, values.library, values.array
        ends, there = self._end_rows(how), None
        if isinstance(values, _DeviceValues) and not (values.plain() and values.there is None):
            return values.column.take(ends), None
        if values.there is not None:
            there = values.there[home.to_numpy(ends)]
            there = None if there.all() else there
        if isinstance(array, Texts):
            return array[home.to_numpy(ends)], there
        if values.given is not None and not values.plain():
            return values.of_numbers(array[home.to_numpy(ends)], there)
        if library is home:
            return home.rows(array, ends), there
        found = library.rows(array, library.of_numpy(home.to_numpy(ends)))
        kind = numpy_dtype(array)
        if kind is None or not home.has(kind.newbyteorder("=")):
            return found, there
        return home.of_numpy(library.to_numpy(found)), there

    def _reduced(self, values, how):
        home, given = self._library, values.given
        column, number, bits = self._input(values)
        found, counts = self._groups.reduce(home.place(), column, number, _REDUCTIONS[how], bits)
        there = None if counts is None else self._there(counts)
        result = made = values.dtype
        if how in ("any", "all"):
            result = made = BOOL
        elif how == "mean":
            result = made = FLOAT64
        elif how in ("sum", "product"):
            made = _SUMS.get(made.kind, FLOAT64 if how == "product" else made)
            result = _SUMS.get(made.kind, given)
        else:
            result = given
        if not values.plain():
            found = values.library.adopt(found, made)
            if how == "sum":
                self._expect_durations(found, column, number, bits, counts)
            if how == "mean":
                found = np.rint(found if there is None else np.where(there, found, 0)).astype(INT64)
            return values.of_numbers(found, there)
        found = (home.computed if how in ("sum", "mean", "product") else home.adopt)(found, made)
        return self._converted(found, made, result), there

    def _expect_durations(self, sums, column, number, bits, counts):
        """Raises an OverflowError if sums of durations have wrapped around."""
        home = self._library
        means, _ = self._groups.reduce(home.place(), column, number, _REDUCTIONS["mean"], bits)
        counts = self.count() if counts is None else home.adopt(counts, INT64)
        means, counts, sums = map(self._to_numpy, (home.adopt(means, FLOAT64), counts, sums))
        apart = np.abs(means * counts - sums)
        if (apart > 2.0**62).any() or (sums == -(2**63)).any():
            raise OverflowError("roost.GroupBy.sum: a sum of durations beyond 2^63 of their unit")

    def _converted(self, found, made, result):
        """Numbers that C++ made, converted to the type of the result."""
        if made == result:
            return found
        with np.errstate(over="ignore"):  # a sum beyond the range of its type is infinite
            found = self._library.convert(found, result)
        return self._library.of_numpy(found) if isinstance(found, np.ndarray) else found

    def _spread(self, how, columns, ddof, nulls):
        home, place = self._library, self._library.place()
        if how in _PAIRS:
            there = [v.there for v in columns if v.there is not None]
            x, y = columns
            for values in columns:
                values.there = functools.reduce(operator.and_, there) if there else None
            (x, x_type, bits), (y, y_type, _) = self._input(x), self._input(y)
            less = 1 if how == "corr" else ddof
            found, counts = self._groups.relations(place, x, x_type, y, y_type, bits, less, how == "corr")
        else:
            less = ddof
            column, number, bits = self._input(columns[0])
            found, counts = self._groups.spreads(place, column, number, bits, less, how == "std")
        there = self._there(counts, less + 1) if nulls or bits is not None else None
        return home.computed(found, FLOAT64), there

    def _quantiles(self, values, q):
        what = "roost.GroupBy.quantile"
        wanted = np.asarray(q)
        if wanted.dtype.kind not in "iuf" or wanted.ndim > 1:
            raise TypeError(f"{what}: q={q!r}; give a number from 0 to 1, or several")
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"{what}: q={q!r}; give numbers from 0 to 1")
        home = self._library
        column, number, bits = self._input(values)
        dates = not values.plain()
        found, counts = self._groups.quantiles(
            home.place(), column, number, bits, wanted.reshape(-1).astype(float).tolist(), dates
        )
        there = None if bits is None else self._there(counts)
        found = values.library.adopt(found, INT64) if dates else home.computed(found, FLOAT64)
        if wanted.ndim:
            found = found.reshape(len(self), len(wanted))
        return values.of_numbers(found, there) if dates else (found, there)

    def _modes(self, values, how):
        home = self._library
        found, distinct = self._groups.modes(home.place(), *self._input(values))
        if how == "nunique":
            return home.adopt(distinct, INT64), None
        there = None if values.there is None else self._there(distinct)
        if not values.plain():
            return values.of_numbers(values.library.adopt(found, values.dtype), there)
        return self._converted(home.adopt(found, values.dtype), values.dtype, values.given), there

    @whole_floats
    def _outermost(self, how, values, n):
        what = f"roost.GroupBy.{how}"
        home, values = self._library, self._taken(values, how)
        found, offsets = self._groups.outermost(
            home.place(), *self._input(values), whole_number(n, what, "n"), how == "nlargest"
        )
        offsets = home.adopt(offsets, INT64)
        if not values.plain():
            return values.of_numbers(values.library.adopt(found, values.dtype), None)[0], offsets
        return self._converted(home.adopt(found, values.dtype), values.dtype, values.given), offsets


def group_by(keys, by=None, *, dropna=False):
    """Groups rows by key: ``roost.group_by(customers).sum(amounts)``.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `unique`.
    by : list of names of columns, or one
        If `keys` is a frame: the columns that are the keys.
    dropna : bool
        Whether to leave out rows whose key is null, NaN or NaT in any of its columns. Otherwise these are
        keys like any others.

    Returns
    -------
    GroupBy

    Examples
    --------
    >>> import numpy, roost
    >>> g = roost.group_by(numpy.array([7, 8, 7]))
    >>> sums = g.sum(numpy.array([1.5, 2.0, 3.0]))
    >>> sorted(zip(g.keys.tolist(), sums.tolist()))
    [(7, 4.5), (8, 2.0)]
    """
    what = "roost.group_by"
    keys = of_capsules(keys)
    chosen = keys if by is None else columns_named(keys, by, what, "by")
    encoded = encode_columns(chosen, what, drops=flag(dropna, what, "dropna"))
    check_rows(encoded.n, INT64, what)
    return GroupBy(encoded, None if encoded.kind.frames is None else keys)
