"""group_by, and the results for the values of each group."""

import datetime
import functools
import operator
import threading
import types
from typing import NoReturn

import numpy as np

from . import _host, _html
from ._arrays.arrow import DeviceColumn, pack_bits
from ._arrays.exact import plural, shown, whole_floats
from ._arrays.frames import (
    Arrow,
    Device,
    MaskedModel,
    Pandas,
    Rows,
    Selected,
    beside_keys,
    column_named,
    columns_named,
    expect_no_own_order,
    frames_of,
    frames_of_column,
    has_nulls,
    in_utc,
    is_there,
    like_axis,
    like_rows,
    may_be_device,
    names_of,
    objects_at,
    of_capsules,
    readable,
    take_or_null,
    take_rows,
    with_suffix,
)
from ._arrays.libraries import NUMPY, same_device
from ._arrays.types import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, NUMBERS, UINT8, UINT64, numpy_dtype
from ._device import Groups, on_device, way_of
from ._functions import distinct
from ._group_rows import RANKS, GroupRows
from ._keys.arrow import ArrowKind
from ._keys.columns import Column, bitmap_of, decimal_of, is_quick_column, scale_of, take_column
from ._keys.packing import encode_columns
from ._keys.strings import StringKeys, Texts, listed
from ._keys.words import keys_of
from ._options import check_rows, flag, integer, whole_number
from ._rolling import Order, differences, like_sums, like_values, resampled, rolling_of, wide_values
from ._times import as_numbers, distance_in, numbers_there

_SUMS = {"b": INT64, "i": INT64, "u": UINT64}  # the types of sums, by kind
_FILLS = ("ffill", "bfill")
# Results for any values; for comparable ones; for dates and durations. Numbers have all results.
_OF_ANY = ("count", "first", "last")
_OF_TEXTS = (*_OF_ANY, "min", "max", "nunique", "mode")
_OF_DATES = {"M": (*_OF_TEXTS, "median", "quantile", "nlargest", "nsmallest")}
_OF_DATES["m"] = (*_OF_DATES["M"], "sum", "mean")
# Values are compared.
_BY_ORDER = ("min", "max", "mode", "median", "quantile", "nlargest", "nsmallest", "rank", "top_k")
# They take the same values.
_LIKE = {"shift": "first", "ffill": "first", "bfill": "first", "rank": "min", "cumsum": "sum"}
_LIKE |= {"cumprod": "product", "cummin": "min", "cummax": "max", "diff": "min", "pct_change": "product"}
_LIKE |= {"rolling": "mean", "on": "min", "top_k": "min"}
_OF_COLUMN = ("min", "max", "mode")  # values of the column, in its type
_PAIRS = ("corr", "cov")
_ADVICE = "convert them, or pass one dimension of numbers"
_OPTIONS = {"quantile": "q", "var": "ddof", "std": "ddof", "cov": "ddof"}
_IN_AGG = (*_host.reductions, "first", "last", "var", "std", "median", "quantile", "nunique", "mode", *_PAIRS)


class _Values:
    """A column of values. C++ combines `array`, of type `dtype`; None: only its rows can be picked. `given`:
    the type of the values; `there`: numpy bools, or None. `ranked`: the rows of the values that the numbers
    in `array` stand for, in their order. `kept`: the rows of the `column` that are here; None: all. `zone`:
    that of instants, which `array` has in UTC. `nullable`: whether they are of a type that has nulls."""

    __slots__ = ("column", "array", "library", "dtype", "given", "there", "ranked", "kept", "zone", "scale")
    __slots__ += ("nullable",)

    def __init__(self, column, zone=None):
        self.column, self.array, self.library, self.there = column, column.array, column.library, column.there
        self.dtype = self.given = self.ranked = self.kept = None
        self.zone, self.scale, self.nullable = zone, scale_of(column.unit), has_nulls(column.given)
        if self.array is None or column.unit or isinstance(self.array, Texts):
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

    def keep(self, rows, home):
        """Keeps the values of some rows, an array of the keys' library."""
        self.kept = rows = home.to_numpy(rows)
        if self.there is not None:
            self.there = self.there[rows]
        if self.dtype is not None or self.scale is not None:
            self.array = self.library.rows(self.array, self.library.of_numpy(rows))

    def allowed(self):
        """The methods that take such values; None: all."""
        if self.scale is not None:
            return (*_OF_TEXTS, "sum")
        if self.column.unit or isinstance(self.array, Texts):
            return _OF_TEXTS
        return _OF_ANY if self.dtype is None else _OF_DATES.get(self.given.kind)

    def skip_nans(self):
        if self.dtype is not None and self.dtype.kind == "f":
            self.nullable = self.nullable or self.library is NUMPY  # results of others stay where they are
            has = self.library.to_numpy(self.array == self.array)
            if not has.all():
                self.there = has if self.there is None else has & self.there

    def rank(self, how):
        """Makes numbers of values that are no numbers, or that stand for others: ranks among the distinct
        ones. What lies under a null is none of these."""
        column, array = self.column, self.column.array
        if not (self.dtype is None or (how in _OF_COLUMN and not column.direct)):
            return
        if isinstance(array, Texts):
            first, numbers = StringKeys(array).numbered(INT64)
        else:
            _, first, numbers, _ = distinct(keys_of(array, NUMPY, "roost"), "first", INT64, True, True)
        if self.there is not None:
            rows = np.flatnonzero(self.there)[::-1]
            first = np.full(len(first), -1)
            first[numbers[rows]] = rows  # the first one is written last
        known = np.flatnonzero(first >= 0)
        values = array[first[known]]
        if values.dtype.kind == "V":  # decimals: low and high half
            halves = values.view([("low", np.uint64), ("high", np.int64)])
            order = np.lexsort((halves["low"], halves["high"]))
        else:
            order = NUMPY.argsort(values)
            if how == "min" and values.dtype.kind == "f" and len(values) and np.isnan(values[order[-1]]):
                order = np.roll(order, 1)  # the least value is NaN if one is
        places = np.zeros(len(first), INT64)
        places[known[order]] = np.arange(len(order))
        self.array, self.dtype, self.ranked = places[numbers], INT64, first[known[order]]

    def number(self):
        """Makes numbers for C++ from float16."""
        if self.dtype == FLOAT16:
            self.array, self.dtype = self.library.convert(self.array, FLOAT32), FLOAT32

    def given_column(self):
        """What a user passed."""
        return self.column.given

    def plain(self):
        """Whether results are numbers, which any library has, rather than values that only numpy has."""
        return self.given is not None and self.given.kind not in "mM"

    def of_numbers(self, found, there):
        """The dates or durations of numpy that some numbers stand for."""
        found = found.view(self.given)
        if there is not None:
            found[~there] = "NaT"
        return found, None


class _DeviceValues(_Values):
    """An Arrow column in device memory as values; `there`: bools of the library there."""

    __slots__ = ()

    def __init__(self, column):
        self.column, self.library = column, column.library
        self.ranked = self.zone = self.scale = None
        self.nullable = False  # those with nulls are columns
        self.array, self.there = column.values()
        counted = column.is_number or column.type[0] in "tuUzZvw"
        self.dtype = self.given = numpy_dtype(self.array) if counted else None

    def keep(self, rows, home):
        self.column = self.column.take(rows)
        self.array, self.there = self.column.values()

    def allowed(self):
        kind = self.column.type
        if self.column.is_number:
            return None
        if kind[0] == "t":
            return (*_OF_DATES["M"], "sum") if kind.startswith("tD") else _OF_DATES["M"]
        return _OF_ANY if self.dtype is None else (*_OF_ANY, "nunique")

    def skip_nans(self):
        if self.dtype is not None and self.dtype.kind == "f":
            has = self.array == self.array
            self.there = has if self.there is None else has & self.there

    def rank(self, how):
        """Values are numbers already."""

    def given_column(self):
        return self.column

    def plain(self):
        return self.column.is_number

    def of_numbers(self, found, there):
        found = self.library.convert(found, self.dtype)
        return DeviceColumn.of_array(found, self.library, there, self.column.type), None


class _Picked:
    """Results that are values of a column: their rows there, an array; and where they are not null."""

    def __init__(self, values, rows, there):
        self.values, self.rows, self.there = values, rows, there


class GroupBy:
    """The result of `group_by`: keys, whose values `sum`, `mean`, `min` and the other methods combine.

    The first call numbers the distinct keys, and all results are in the order of `keys`, in whatever order
    you call the methods. This order is the same on every run for the same calls; another object with the same
    keys may have a different one. Methods take one or several arrays of values, with one value per row, and
    return an array of results for each. Values are integers, bools and floats of 2, 4 or 8 bytes. `count`,
    `first` and `last` also take any other values; `min`, `max`, `nunique` and `mode` also take texts,
    decimals, dates and durations; `median`, `quantile`, `nlargest` and `nsmallest` also dates and durations;
    `sum` also decimals and durations, and `mean` durations.

    Null values are skipped: those of numpy masked arrays, of nullable columns of pandas, Arrow and polars,
    and NaT. If a key has no value, its result is null, in a numpy masked array or as NaT. The types of
    results depend on those of the values alone: of a masked array they are masked arrays (but counts are
    not), whether any value is masked or not, and so are results of `skipna` for floats of numpy, of `dropna`
    for rows, of `shift`, and of `rank` for floats of numpy and dates. Others are plain arrays, unless one of
    torch, CuPy or jax would have a null. Values that are columns of pandas, polars or pyarrow give columns of
    their library, with their name and its nulls, unless the keys are tensors. For Arrow columns in device
    memory, results with nulls are such columns, too. NaN is a value, unless `group_by` skips it: sums, means,
    extremes, medians and quantiles of values with a NaN are NaN. No integer, decimal or date is rounded:
    results of pandas with nulls are of a nullable type, such as `Int64`.

    For the same input, results are the same on every run, floats included: the order of additions depends
    only on the number of values.

    After ``g = group_by(frame, by)``, values are also names of columns, and ``g["v"]`` and ``g[["v", "w"]]``
    are the same groups with columns as values: their methods need no others. `transform`, `cumsum`, `rank`,
    `shift` and `ffill` have results for the rows; ``for key, rows in g`` goes through the groups. Values of a
    frame are read when a method is called, so do not change the frame before that. The keys are kept.

    Any number of threads may use one object; their calls take turns. It keeps a copy of the keys or, once
    rows are grouped, 4 bytes for each row; and 8 to 20 bytes for each distinct key, besides the key itself.
    A GroupBy on the CPU can be pickled, with its frame; in a copy, `keys` may be in another order.
    The first two calls do not need grouped rows if each sums a column of integers or finds its extremes. All
    other calls group the rows, unless they are already grouped.
    """

    _drops = False  # whether rows may be left out, so that results for rows may be null

    __class_getitem__ = classmethod(types.GenericAlias)  # the stub says of what

    def __init__(self, keys, frame=None, skipna=False):
        self._n, self._kind, self._library, self._model = keys.n, keys.kind, keys.library, keys.model
        vars(self)["_frame"], self._kept, self._given = frame, keys.kept, keys.given
        self._skipna = skipna
        self._kind.keep()
        self._of_texts = isinstance(keys, StringKeys)
        way = way_of(keys.library, keys.n)
        if way is not None:
            self._groups = Groups(keys, way)
        else:
            self._groups = keys.grouped() if hasattr(keys, "grouped") else None
        if self._groups is None:
            self._groups = keys.library.module.group(keys.library.place(), keys.words)
        self._columns, self._alone = None, False
        self._known, self._lock = {}, threading.Lock()  # the same of `g["v"]`
        if self._of_texts and (self._kind.frames or isinstance(keys.texts.source, np.ndarray)):
            self._read_keys()  # the array may change

    @property
    def _frame(self):
        """The frame that the keys came from; None: of none."""
        frame = vars(self)["_frame"]
        if frame is not None and len(frame) != self._given:
            raise ValueError(
                f"roost.GroupBy: the frame had {plural(self._given, 'row')} when it was grouped, and has "
                f"{len(frame)} now; call group_by again"
            )
        return frame

    def _read_keys(self):
        """The distinct keys, as their kind has them, and as users get them; those of a frame, Selected."""
        with self._lock:
            if "keys" not in self._known:
                self._known["keys"] = self._keys_of_groups()
        return self._known["keys"]

    def _keys_of_groups(self):
        place = self._library.place()
        if isinstance(self._kind, ArrowKind):
            rows = self._library.adopt(self._groups.first_rows(place, True), INT64)
            rows = rows if self._kept is None else self._library.rows(self._kept, rows)
            return rows, self._kind.result(rows, self._library)
        if self._of_texts:
            made = self._kind.of_rows(self._groups.first_rows(place, True))
            return None, self._model.like(made) if self._model is MaskedModel else made
        keys = self._kind.decode(self._groups.keys(place), self._library)
        if self._kind.frames is not None:
            return keys, self._kind.selected(keys)
        return keys, self._kind.result(keys, self._library, self._model)

    def __len__(self):
        """The number of distinct keys."""
        return self._groups.size(self._library.place())

    def __repr__(self):
        return f"roost.GroupBy({self._n} rows, {len(self)} distinct keys of type {self._kind.dtype})"

    def _repr_html_(self):
        """For notebooks: what it is, and its first keys, unless there are many."""
        return _html.page(repr(self), _html.columns_of(self.keys) if len(self) <= _html.MOST else [])

    @property
    def keys(self):
        """The distinct keys, in an order without meaning that is the same on every run for the same calls."""
        made = self._read_keys()[1]
        return self._known.setdefault("frame", made.frame()) if type(made) is Selected else made

    def __getitem__(self, columns):
        """The same groups with columns of the frame as their values: ``g["v"].sum()``,
        ``g[["v", "w"]].mean()``.

        Parameters
        ----------
        columns : name of a column, or list of names
            Methods without values then take these. For one name they return what they do for its column; for
            a list, a frame like that of `agg`, or, if results are those of rows, of these columns alone.

        Returns
        -------
        GroupBy
            It shares the groups and the frame: this takes no time.

        Raises
        ------
        KeyError
            A name that no column has.
        TypeError
            The keys are of no frame.
        """
        what = "roost.GroupBy[...]"
        if self._frame is None:
            raise TypeError(f"{what}: keys of no frame; pass values to methods, or call group_by(frame, by)")
        columns_named(self._frame, columns, what, "columns")
        names, several = names_of(columns, frames_of(self._frame).names(self._frame))
        if len(names) > len(dict.fromkeys(names)):
            raise KeyError(f"{what}: columns={columns!r} names one twice; give each name once")
        made = object.__new__(type(self))
        vars(made).update(vars(self), _columns=names, _alone=not several)
        return made

    def __iter__(self):
        """A pair for each key, in the order of `keys`: the key, and its rows in their order.

        Yields
        ------
        key : value of Python, or tuple of several
            None for a null.
        rows : frame, column or array
            A part of the frame that the keys came from, as `head` returns it; otherwise row numbers, int64.
            The frame is copied once, group after group. That of pandas has its labels in the index.
        """
        lists, keys = self._lists("__iter__"), self._python_keys()
        frames, rows = None if self._frame is None else frames_of(self._frame), self._rows(lists.rows)
        for key, start, count in zip(keys, lists.starts.tolist(), lists.counts.tolist()):
            if frames is None:
                part = rows[start : start + count]
            else:
                part = frames.part(rows, start, count)
            yield tuple(key) if isinstance(key, list) else key, part

    def __contains__(self, key) -> NoReturn:
        raise TypeError("roost.GroupBy: it contains pairs of key and rows; ask roost.Set(g.keys) for a key")

    __reversed__ = None  # otherwise Python would take numbers for names

    def __reduce__(self):
        """Pickles the key of each row, and the frame: rows are grouped again, so the order of `keys` may
        change."""
        keys = self._keys_at(self._lists("__reduce__").groups())
        if len(group_by(self._keys_at(np.arange(len(self))))) != len(self):
            raise ValueError(
                "roost.GroupBy: keys that were changed so that two are equal; pickle a new GroupBy"
            )
        kept = None if self._kept is None else self._to_numpy(self._kept)
        state = {"_frame": self._frame, "_given": self._given, "_skipna": self._skipna, "_drops": self._drops}
        return _again, (keys, kept, state | {"_columns": self._columns, "_alone": self._alone})

    def _keys_at(self, groups, for_pickle=True):
        """The keys of some groups."""
        (keys, made), library, frames = self._read_keys(), self._library, self._kind.frames
        if not self._of_texts:
            keys = self._kind.rows(keys, library.of_numpy(groups), library)
            return (self._kind.pickled if for_pickle else self._kind.result)(keys, library)
        if frames is None:
            return made[groups] if isinstance(made, np.ndarray) else take_rows(made, groups)
        return frames.frame(made.names, [frames.take(column, groups) for column in made.columns])

    def size(self):
        """The number of rows of each key: int64."""
        return beside_keys(self._model, self._sizes())

    def count(self, *values):
        """The number of rows of each key, or of its values that are not null: int64."""
        return self._all("count", values) if values or self._columns is not None else self.size()

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

        NaN for keys with at most ddof values; null if the values are of a type that has nulls.
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

    def nlargest(self, values=None, n=None):
        """The `n` greatest values of each key, or all if there are fewer. After ``g["v"]``, give `n` alone.

        Returns
        -------
        values, offsets : arrays
            The values of key k are ``values[offsets[k]:offsets[k + 1]]``, descending; NaNs come last.
        """
        return self._outermost("nlargest", values, n)

    def nsmallest(self, values=None, n=None):
        """The `n` least values of each key, ascending; otherwise as `nlargest`."""
        return self._outermost("nsmallest", values, n)

    def corr(self, x, y):
        """Pearson's correlation of two columns, as float64, over the rows in which both have values.

        NaN for keys with fewer than two such rows, or null if a column is of a type that has nulls; NaN if
        one column is constant.
        """
        return self._result("corr", (x, y), None)

    def cov(self, x, y, *, ddof=1):
        """The covariances of two columns, as float64; otherwise as `var`."""
        return self._result("cov", (x, y), whole_number(ddof, "roost.GroupBy.cov", "ddof"))

    def transform(self, how, /, *values, **option):
        """The results of another method, each at the rows of its key: ``g.transform("mean", values)``, or
        ``g["v"].transform("mean")``.

        Parameters
        ----------
        how : name of a method that `agg` takes
            "count" without values counts rows. "corr" and "cov" take two columns and have one result.
        q, ddof
            The option of that method, by its name.

        Returns
        -------
        array or column, or a tuple of several; after ``g[["v", "w"]]`` a frame
            Of n results in the order of the rows; null where `dropna` left a row out. For a column of pandas,
            polars or Arrow they are such a column, that of pandas with the name and the index of its values;
            otherwise they are an array of the library of the keys. The same is true of `cumsum`, `cumcount`,
            `rank`, `shift`, `ffill` and `bfill`. Integers with nulls are of a nullable type.

        Raises
        ------
        TypeError
            Keys on a device: this method, `rank`, `ffill`, `bfill`, `head`, `tail`, `nth`, `top_k` and
            iteration work on the CPU.

        Notes
        -----
        The first of these calls lists the rows of each key, for all that follow: 20 bytes for each row.
        """
        what, pair = "roost.GroupBy.transform", isinstance(how, str) and how in _PAIRS
        if [*option] not in ([], [_OPTIONS.get(str(how))]):
            raise TypeError(
                f"{what}: {', '.join(option)} for {how!r}; give q to quantile, ddof to var and std"
            )
        groups = self._for_all_rows(self._lists("transform").groups())

        def make(*columns):
            asked = (columns if pair else columns[0], how, *option.values()) if columns else how
            asked, given = self._parsed("how", asked, what), columns[0] if columns else self._frame
            frames = frames_of_column(given) or frames_of(given)
            if frames is not None:
                made = self._column(frames, how, *asked, "transform")
                return like_rows(take_or_null(made, groups), given)
            by, taken, q = asked[0], [self._taken(column, asked[0]) for column in asked[1]], asked[2]
            nulls = _may_be_null(by, taken)
            return self._repeated(*self._as_array(*self._made(by, taken, q, nulls)), groups, nulls)

        if not values and (how == "size" or (how == "count" and self._columns is None)):
            return make()
        if pair:
            return make(*self._columns_here("transform", values))
        return self._each("transform", values, make)

    def cumsum(self, *values):
        """The sum of the values up to each row, of the types of `sum`; null where the value is. Floats are
        added as float64, in pieces of 32, and rounded at the end. A sum of durations or decimals that is too
        long is an OverflowError. Form and other errors: see `transform`."""
        order, what = self._order("cumsum"), "roost.GroupBy.cumsum"

        def make(given):
            taken, library = self._taken(given, "cumsum"), order.library
            there, nullable, scale = taken.there, taken.nullable, taken.scale
            if not taken.plain():
                lists, array = self._lists("cumsum"), taken.library.to_numpy(taken.array)
                sums = _whole([lists.running_sums(digits, there) for digits in _digits(array, scale)])
                found, _ = _of_whole(sums, taken, there, "cumsum")
                return self._of_rows(found, there, given, nullable, scale)
            found = like_sums(order.running(taken, "sum", what), taken, library)
            if library is not NUMPY:
                return self._of_library(library, found, there, given)
            return self._of_rows(found, there, given, nullable)

        return self._each("cumsum", values, make)

    def cumprod(self, *values):
        """The product of the values up to each row, of the types of `product`; null where the value is. How
        floats are multiplied depends only on the number of values: in pieces of 32. Form and errors: see
        `transform`."""
        return self._running("cumprod", "product", values)

    def cummin(self, *values):
        """The least value up to each row: numbers, dates or durations; null where the value is. Form and
        errors: see `transform`."""
        return self._running("cummin", "min", values)

    def cummax(self, *values):
        """The greatest value up to each row; otherwise as `cummin`."""
        return self._running("cummax", "max", values)

    def diff(self, *values, n=1):
        """Each value less that `n` rows earlier among those of its key, or later if `n` is negative; null
        where one of them is not there. Integers and bools give int64, or an OverflowError; dates give
        durations; other types stay. After ``g["v"]``, you may give `n` alone. Form and errors: see
        `transform`."""
        return self._changes("diff", values, n)

    def pct_change(self, *values, n=1):
        """Each value divided by that `n` rows earlier among those of its key, less 1: float64. Unlike pandas'
        default in old versions, nulls are not filled. Otherwise as `diff`."""
        return self._changes("pct_change", values, n)

    def sessions(self, times, gap):
        """The number of the session of each row among those of its key: 0, 1, 2 ... A new session begins
        where more than `gap` has passed since the row before, in the order of the times.

        Parameters
        ----------
        times : name of a column, or array
            Numbers, dates, instants or durations without nulls, in any order.
        gap : number or duration
            A number for numbers; for others a `datetime.timedelta` or what pandas and numpy have for it, or a
            text such as "30m" or "1h30m".

        Returns
        -------
        array or column of int64
            In the form of `cumcount`. Group by the keys and this to combine the values of each session.
        """
        what = "roost.GroupBy.sessions"
        order, dtype = self._ordered_by(times, "sessions", what)
        return self._of_library(order.library, order.sessions(distance_in(gap, dtype, what, "gap")))

    def runs(self, *values, on=None):
        """The number of the run of equal values that each row is in, among those of its key: 0, 1, 2 ... A
        new run begins where a value differs from that of the row before, as polars' `rle_id` numbers them.

        Parameters
        ----------
        values : any values
            Nulls are equal, and so are NaNs.
        on : name of a column, or array
            The times of the rows, as for `rolling`; otherwise they are in their order.

        Returns
        -------
        array or column of int64
            In the form of `cumcount`. Group by the keys and this to combine the values of each run.
        """
        what = "roost.GroupBy.runs"
        order = self._order("runs") if on is None else self._ordered_by(on, "runs", what)[0]

        def make(given):
            return self._of_library(order.library, order.runs(self._numbers_of(given, "runs")), None, given)

        return self._each("runs", values, make)

    def resample(self, every, *, on, origin=None, closed="left", label="left"):
        """Groups by the keys and by fixed windows of time, as pandas' `resample` and polars'
        `group_by_dynamic` do.

        Parameters
        ----------
        every : number or duration
            The length of the windows: whole numbers for whole numbers; for dates, instants and durations a
            `datetime.timedelta` or what pandas and numpy have for it, or a text such as "5m" or "1h30m".
        on : name of a column, or array
            The times, without nulls, in any order: whole numbers, dates, instants or durations.
        origin : time, or None
            Where one of the windows begins, with a zone if the times have one: by default at 0, which is
            1970-01-01 for dates and instants (in UTC, if they have a zone).
        closed : "left" or "right"
            Which end of its span a window includes.
        label : "left" or "right"
            Which end is the key of a window.

        Returns
        -------
        GroupBy
            Its keys are those of this one, and last the windows, in the type of the times; in a frame they
            have the name of `on`, or "window" for an array. Only windows with rows are keys. Columns of the
            frame are its values as before.

        Examples
        --------
        >>> import pandas, roost
        >>> frame = pandas.DataFrame({"k": [7, 7, 8], "t": [11, 14, 19], "v": [1, 2, 3]})
        >>> five = roost.group_by(frame, "k").resample(5, on="t").agg(total=("v", "sum"))
        >>> five.sort_values(["k", "t"], ignore_index=True)
           k   t  total
        0  7  10      3
        1  8  15      3
        """
        return resampled(self, every, on, origin, closed, label)

    def rolling(self, window, *, on=None, min_periods=None, center=False, closed=None):
        """Windows of rows, like `pandas.DataFrame.rolling`: for each row some rows up to it, or around it, of
        its key.

        Parameters
        ----------
        window : int, number or duration
            A number of rows; or with `on` a span of time: a number for numbers, for others a
            `datetime.timedelta` or what pandas and numpy have for it, or a text such as "5m" or "1h30m".
        on : name of a column, or array
            Times: numbers, dates, instants or durations without nulls, in any order. The rows of a key are
            taken in the order of their times. A window by time has all rows of its span: also later ones
            with the time of its row, as in polars and SQL (pandas leaves these out).
        min_periods : int
            How many values a result needs; otherwise it is null. By default all rows of a window by rows, and
            one value of a window by time.
        center : bool
            Whether the row is in the middle of its window, rather than at its end.
        closed : "right", "left", "both" or "neither"
            Which ends of its span a window includes: by default the right one, (t - window, t]. As in pandas,
            a window by rows that is closed on the left has one row more there, and one that is open on the
            right has not its own.

        Returns
        -------
        Rolling
            Its methods sum, mean, min, max, count, var, std, median, quantile, first and last take values as
            those of `GroupBy` do, and return results for the rows.

        Examples
        --------
        >>> import pandas, roost
        >>> frame = pandas.DataFrame({"k": [7, 8, 7, 7], "t": [1, 1, 4, 5], "v": [1, 2, 3, 4]})
        >>> roost.group_by(frame, "k")["v"].rolling(3, on="t").sum().tolist()
        [1, 2, 3, 7]
        """
        return rolling_of(self, window, on, min_periods, center, closed)

    def nth(self, n):
        """Row `n` of each key that has so many, from 0 on; -1 is the last row. Otherwise as `head`."""
        return self._rows(self._lists("nth").nth(integer(n, "roost.GroupBy.nth", "n")))

    def cumcount(self):
        """How many rows of its key come before each row: int64. Form and errors: see `transform`."""
        order = self._order("cumcount")
        return self._of_library(order.library, order.places())

    def rank(self, *values, method="average", ascending=True):
        """The rank of each value among those of its key, from 1 on; null where the value is null or NaN.

        Parameters
        ----------
        method : "average", "min", "max", "dense" or "first"
            Equal values have the mean of their ranks (as float64; others are int64), the least, or the
            greatest; all the same, and the next value has the next rank; or ranks in the order of the rows.
        ascending : bool
            Whether the least value has rank 1, or the greatest.

        See Also
        --------
        transform : which describes form and errors.
        """
        what, lists = "roost.GroupBy.rank", self._lists("rank")
        if not isinstance(method, str) or method not in RANKS:
            raise ValueError(f"{what}: method={method!r}; give one of {', '.join(map(repr, RANKS))}")
        ascending = flag(ascending, what, "ascending")

        def make(given):
            taken = self._taken(given, "rank")
            taken.skip_nans()
            taken.number()
            array = taken.library.to_numpy(taken.array)
            ranks = lists.ranks(array, taken.there, method, ascending)
            nullable = taken.nullable or (taken.given is not None and taken.given.kind in "mM")
            return self._of_rows(ranks, taken.there, given, nullable)

        return self._each("rank", values, make)

    def shift(self, *values, n=1):
        """The values `n` rows earlier among those of the key, or later if `n` is negative; null where there
        is no such row. They are of the type of the values, of which there may be any, and integers and bools
        of pandas become nullable. After ``g["v"]``, you may give `n` alone. Form and errors: see
        `transform`."""
        if self._columns is not None and len(values) == 1 and isinstance(values[0], (int, np.integer)):
            values, n = (), values[0]
        rows = self._shifted("shift", n)
        return self._each(
            "shift", values, lambda given: self._at_rows(self._taken(given, "shift"), rows, given, True)
        )

    def ffill(self, *values):
        """Nulls replaced by the last value of their key before them, if there is one: any values. NaN is a
        null if `group_by` skips it. Form and errors: see `transform`."""
        return self._filled("ffill", values)

    def bfill(self, *values):
        """Nulls replaced by the next value of their key; otherwise as `ffill`."""
        return self._filled("bfill", values)

    def head(self, n=5):
        """The first `n` rows of each key, in the order of all rows.

        Returns
        -------
        frame, column or array
            A frame with these rows of the frame that the keys came from; after ``g["v"]`` those of the
            column, after ``g[["v", "w"]]`` of these columns. Otherwise their numbers, int64. Columns keep
            their types, and rows of pandas their labels. Rows left out by `dropna` are in none.
        """
        return self._rows(self._lists("head").ends(whole_number(n, "roost.GroupBy.head", "n"), True))

    def tail(self, n=5):
        """The last `n` rows of each key; otherwise as `head`."""
        return self._rows(self._lists("tail").ends(whole_number(n, "roost.GroupBy.tail", "n"), False))

    def top_k(self, k, by, *, reverse=False):
        """The rows of the `k` greatest values of each key, or all if there are fewer: the rows of a frame,
        as polars' `top_k(k, by=...)`. Nulls and NaN are none of these; of equal values, the first ones are.

        Parameters
        ----------
        k : int
        by : name of a column, or array
            What rows are compared by: values that have ranks.
        reverse : bool
            Whether to take the least values.

        Returns
        -------
        frame, column or array
            As from `head`: in the order of all rows.
        """
        what = "roost.GroupBy.top_k"
        k = whole_number(k, what, "k")
        taken = self._taken(by, "top_k")
        taken.skip_nans()
        taken.number()
        array = taken.library.to_numpy(taken.array)
        ranks = self._lists("top_k").ranks(array, taken.there, "first", flag(reverse, what, "reverse"))
        return self._rows(np.flatnonzero((ranks > 0) & (ranks <= k)))

    def agg(self, columns=None, /, **wanted):
        """Several results at once, each with a name: ``agg(total=("v", "sum"))``, or after
        ``group_by(frame, by)`` ``agg({"v": "sum", "w": ["min", "max"]})``.

        Parameters
        ----------
        columns : dict; of `g["v"]` and `g[["v", "w"]]` also the name of a method, or a list of names
            For columns of the frame, the name of a method, whose results have the name of the column, or a
            list of names, whose results are called v_sum and v_mean: polars and pyarrow have no names of two
            parts, which pandas makes here.
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
        named = [] if columns is None else self._of_columns(columns)
        twice = [name for i, (name, _) in enumerate(named) if name in wanted or name in dict(named[:i])]
        if twice:
            raise ValueError(f"roost.GroupBy.agg: two results with the name {twice[0]!r}; name one otherwise")
        asked = {name: self._parsed(name, of) for name, of in [*named, *wanted.items()]}
        if len(asked) > 1:
            len(self)
        if self._kind.frames is None:
            return {name: self._result(*of) for name, of in asked.items()}
        made = self._framed(asked)
        return like_axis(made, self._frame) if named and not wanted else made

    def _framed(self, asked):
        """A frame of the keys and of results, by name."""
        frames = self._kind.frames
        results = [self._column(frames, name, *of) for name, of in asked.items()]
        made = self._read_keys()[1]
        names, columns = made.names, made.columns
        twice = [name for name in names if name in asked]
        if twice:
            raise ValueError(f"roost.GroupBy.agg: {twice[0]!r} is the name of a key; give the result another")
        return frames.frame([*names, *asked], [*columns, *results])

    def _of_columns(self, columns):
        """Pairs of the name of a result and what `agg` takes for it, of what it takes without names."""
        what, hint = "roost.GroupBy.agg", 'give each result a name: agg(total=("v", "sum"))'
        if not isinstance(columns, dict):
            if self._columns is None or not isinstance(columns, (str, list, tuple)):
                raise TypeError(
                    f'{what}: a {type(columns).__name__} of no columns; {hint}, or agg({{"v": "sum"}})'
                )
            columns = dict.fromkeys(self._columns, columns)
        if self._frame is None:
            raise TypeError(f"{what}: a dict of columns, but keys of no frame; {hint}")
        columns_named(self._frame, [*columns], what, "columns")
        named = []
        for name, hows in columns.items():
            several = isinstance(hows, (list, tuple))
            for how in hows if several else [hows]:
                if isinstance(how, str) and how in _PAIRS:
                    raise ValueError(
                        f"{what}: {name!r} is one column, and {how} takes two; give them by name"
                    )
                named.append((with_suffix(name, f"_{how}") if several else name, (name, how)))
        return named

    def _column(self, frames, name, how, columns, option, what="agg"):
        """A result of `agg`, or of `what`, as a column of a frame."""
        values = self._named(columns[0], what) if columns else None
        given = values.given_column() if isinstance(values, _Values) else values
        mine = given is not None and frames_of_column(given) is frames
        if mine and how in ("first", "last") and given is not columns[0]:  # its type does not matter
            ends = self._end_rows(how)
            return frames.take(given, ends if self._kept is None else self._kept[ends])
        values = [self._taken(column, how) for column in (values, *columns[1:])[: len(columns)]]
        found, there = self._made(how, values, option, nulls=True)
        if isinstance(found, _Picked) and mine:
            rows = self._to_numpy(found.rows)
            rows = (
                rows if found.there is None or how in ("first", "last") else np.where(found.there, rows, -1)
            )
            return frames.take(given, rows)
        found, there = self._as_array(found, there)
        if found.ndim != 1:
            raise TypeError(
                f"roost.GroupBy.{what}: {how} of {option!r} gives more than one value per key; pass a "
                "single q"
            )
        if frames is Device:
            return frames.result(found, there, self._library)
        zone = values[0].zone if values and found.dtype.kind == "M" else None
        scale = values[0].scale if values and found.dtype.kind == "O" else None
        try:
            made = frames.result(np.asarray(found), there, given if mine else None, zone, scale)
            return frames.cast(made, given) if mine and how in _OF_COLUMN else made
        except (MemoryError, OverflowError):
            raise
        except Exception as error:  # each library has its own
            raise TypeError(
                f"roost.GroupBy.{what}: {name}, which is {how}, of type {found.dtype}, is no column of this "
                f"frame's library ({shown(error, str)}); convert the values"
            ) from None

    def _named(self, values, how):
        """Values, or a column of the frame that the keys came from."""
        if self._frame is None or frames_of_column(values) is not None:
            return values
        frames = frames_of(self._frame)
        names = frames.names(self._frame)
        try:
            known = values in dict.fromkeys(names)
        except TypeError:  # no name
            known = False
        if known or isinstance(values, (str, int, float, np.generic, datetime.date)):
            if names.count(values) == 1:
                return frames.column(self._frame, names.index(values))
            return column_named(self._frame, values, f"roost.GroupBy.{how}")
        return values

    def _parsed(self, name, of, what="roost.GroupBy.agg"):
        """The method, the columns, and the option of one result of `agg`."""
        if isinstance(of, str) and of in ("count", "size"):
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
        if not columns and self._columns is not None and not self._alone:
            made = self._framed({name: (how, (name,), option) for name in self._columns})
            return like_axis(made, self._frame)
        columns = [self._taken(column, how) for column in self._given_or_chosen(how, columns)]
        if len(columns) == 1:
            return self._result(how, columns, option)
        len(self)  # groups the rows if this is the first call: faster for several columns
        return tuple(self._result(how, (column,), option) for column in columns)

    def _result(self, how, columns, option):
        """A result for users: a column of the library of the values, with their name; or an array."""
        columns = [self._taken(column, how) for column in columns]
        if not columns:
            return self.size()
        given = columns[0].given_column()
        frames = self._frames_of(given)
        if frames is None or (how == "quantile" and np.ndim(option)):
            nulls = _may_be_null(how, columns)
            return self._finished(*self._made(how, columns, option, nulls), nulls)
        made = self._column(frames, "a result", how, columns, option)
        return frames.named(made, None if how in _PAIRS and frames is not Arrow else given)

    def _frames_of(self, given):
        """Pandas, Polars or Arrow for values that are columns of these beside keys in numpy's memory."""
        frames = None if self._library is not NUMPY else frames_of_column(given)
        return None if frames is Device else frames

    def _lists(self, how):
        """The rows of each key, and of all keys those that `dropna` kept."""
        of_arrow = isinstance(self._kind, ArrowKind)
        if of_arrow or self._library.module is not NUMPY.module:
            where = "of Arrow's device interface" if of_arrow else f"on {self._library.where}"
            raise TypeError(
                f"roost.GroupBy.{how}: keys {where} have only results by key; copy keys and values to the CPU"
            )
        return self._grouped_rows(NUMPY)

    def _grouped_rows(self, library):
        if "rows" not in self._known:
            dtype = INT32 if self._n < 2**31 else INT64
            numbers = library.column(library.of_numpy(np.arange(self._n, dtype=dtype)))
            rows, offsets = self._groups.outermost(
                library.place(), numbers, NUMBERS[dtype], None, self._n, False
            )
            self._known["rows"] = GroupRows(
                library.to_numpy(library.adopt(rows, dtype)), library.to_numpy(library.adopt(offsets, INT64))
            )
        return self._known["rows"]

    def _python_keys(self):
        """The distinct keys as values of Python, or as tuples or lists of them."""
        keys, made = self._read_keys()
        frames = self._kind.frames
        if not self._of_texts:
            keys = self._kind.python(keys, self._library)
        else:
            column = made if frames is None else made.columns[0]
            keys = (
                listed(column) if isinstance(column, np.ndarray) else objects_at(column, np.arange(len(self)))
            )
        return [key[0] if isinstance(key, tuple) and len(key) == 1 else key for key in keys]

    def _for_all_rows(self, numbers):
        """Numbers for the rows that have a key, for all rows: -1 for the others."""
        if self._kept is None:
            return numbers
        made = np.full(self._given, -1)
        made[self._to_numpy(self._kept)] = numbers
        return made

    def _rows(self, rows):
        """Some of the rows that have a key, as `head` returns them."""
        rows = rows if self._kept is None else self._to_numpy(self._kept)[rows]
        if self._frame is None:
            return rows.astype(INT64)
        frames, of = frames_of(self._frame), Rows(rows)
        names, columns = frames.columns(self._frame)
        chosen = names if self._columns is None else self._columns
        if names is not chosen:
            columns = [columns[names.index(name)] for name in chosen]
        taken = [frames.take(column, of) for column in columns]
        return like_rows(taken[0] if self._alone else frames.frame(chosen, taken), self._frame, rows)

    def _columns_here(self, how, values):
        """Values, or the chosen columns, on the CPU."""
        given = [self._named(column, how) for column in self._given_or_chosen(how, values)]
        if any(isinstance(column, DeviceColumn) or may_be_device(column) for column in given):
            raise TypeError(f"roost.GroupBy.{how}: values of Arrow's device interface; copy them to the CPU")
        return given

    def _each(self, how, values, make):
        """What `make` returns for each of some values, or of the chosen columns."""
        found = [make(column) for column in self._columns_here(how, values)]
        if values or self._alone:
            return found[0] if len(found) == 1 else tuple(found)
        return like_rows(frames_of(self._frame).frame(self._columns, found), self._frame)

    def _of_rows(self, found, there, given, nullable=False, scale=None):
        """Numbers for the rows that have a key, and which are not null, as results for the rows of a column,
        an array or a frame. `nullable`: whether they may be null; `scale`: that of decimals."""
        if self._kept is not None:
            kept, numbers, has = self._to_numpy(self._kept), found, True if there is None else there
            found, there = np.zeros(self._given, numbers.dtype), np.zeros(self._given, np.bool_)
            found[kept], there[kept] = numbers, has
            if found.dtype.kind == "m":
                found[~there] = "NaT"
        frames = frames_of_column(given)
        if (made := frames or frames_of(given)) is not None:
            made = made.result(found, there, given if frames else None, scale=scale)
            return like_rows(made, given)
        home = self._library
        if isinstance(found, np.ndarray) and home.has(found.dtype):
            found = home.of_numpy(found)
        return self._finished(found, there, nullable or self._drops)

    def _repeated(self, found, there, groups, nullable):
        """Results by key, arrays, for rows of these groups; negative ones are nulls."""
        library = NUMPY if isinstance(found, np.ndarray) else self._library
        if not len(found):
            library, found = NUMPY, np.zeros((1, *found.shape[1:]), numpy_dtype(found))
        has = groups >= 0
        if there is not None:
            has[has] = self._to_numpy(there)[groups[has]]
        found = self._rows_of(found, library, groups)
        return self._finished(found, None if has.all() else has, nullable or self._drops)

    def _at_rows(self, values, rows, given, nullable=False):
        """The values of these of the rows that have a key, -1 for nulls, as results for all rows.
        `nullable`: whether there may be such."""
        has = rows >= 0
        if values.there is not None:
            has[has] = values.there[rows[has]]
        if self._kept is not None:
            rows, has = np.where(rows < 0, -1, self._to_numpy(self._kept)[rows]), self._for_all_rows(has) > 0
        rows = self._for_all_rows(rows)
        if frames_of_column(given) is not None:
            return like_rows(take_or_null(given, rows), given)
        picked = _Picked(values, rows, None if has.all() else has)
        return self._finished(picked, None, nullable or values.nullable or self._drops)

    def _home(self, how):
        """The library in whose memory there are results for rows: that of the keys on a GPU, or numpy."""
        if isinstance(self._kind, ArrowKind):
            raise TypeError(
                f"roost.GroupBy.{how}: keys of Arrow's device interface have only results by key; copy keys "
                "and values to the CPU"
            )
        return NUMPY if self._library.module is NUMPY.module else self._library

    def _order(self, how):
        """The rows of each key in their order, for C++."""
        library = self._home(how)
        if "order" not in self._known:
            self._known["order"] = Order(library, self._groups)
        return self._known["order"]

    def _ordered_by(self, on, how, what):
        """The rows of each key by times, and the type of the times."""
        library, (times, kind, dtype) = self._home(how), self._times(on, what)
        return Order(library, self._groups, times, kind), dtype

    def _times(self, on, what):
        """Times as int64 or float64, the name of this type, and the type of the times."""
        taken = self._taken(on, "on")
        if taken.dtype is None or taken.ranked is not None:
            raise TypeError(f"{what}: times that are no numbers, dates or durations; convert them")
        taken.number()
        if taken.library.module is not NUMPY.module:
            return *numbers_there(taken.array, taken.library, what, "times"), taken.dtype
        times = taken.library.to_numpy(taken.array).astype(taken.dtype, copy=False)
        times = times if taken.plain() else times.view(taken.given)
        return *as_numbers(times, taken.there, what, "times"), times.dtype

    def _shifted(self, how, n):
        """The row that comes n rows earlier among those of the key of each row, or -1: of numpy."""
        order, n = self._order(how), integer(n, f"roost.GroupBy.{how}", "n")
        return order.library.to_numpy(order.shifted(max(-self._n, min(self._n, n))))

    def _numbers_of(self, values, how):
        """Numbers of 8 bytes that are equal where values are: of the library of results for rows."""
        library = self._home(how)
        distinct_values = encode_columns(self._named(values, how), f"roost.GroupBy.{how}")
        if distinct_values.n != self._given:
            raise ValueError(
                f"roost.GroupBy.{how}: {plural(self._given, 'key')} but "
                f"{plural(distinct_values.n, 'value')}; give one value for each key"
            )
        _, _, numbers, _ = distinct(distinct_values, "first", INT64, inverse=True)
        if self._kept is not None:
            numbers = distinct_values.library.rows(numbers, self._kept)
        if library is NUMPY:
            return distinct_values.library.to_numpy(numbers)
        return numbers

    def _of_library(self, library, found, there=None, given=None):
        """Results for rows in memory of a library, for a column; or without one for the frame. Where keys are
        no arrays of numpy, nulls among floats are NaN."""
        given = self._frame if given is None else given
        is_plain = self._library is not NUMPY and self._kept is None
        if is_plain and there is not None and numpy_dtype(found).kind == "f":
            found, there = library.with_nan(found, ~there), None
        if library is not NUMPY and (there is not None or not is_plain):
            found, there = library.to_numpy(found), None if there is None else library.to_numpy(there)
        return self._of_rows(found, there, given, self._library is NUMPY)

    def _running(self, name, how, values):
        order, what = self._order(name), f"roost.GroupBy.{name}"

        def make(given):
            taken = self._taken(given, name)
            found, there, library = order.running(taken, how, what), taken.there, order.library
            if how == "product":
                found = like_sums(found, taken, library)
            else:
                found = like_values(found, there, taken, library)
            if library is not NUMPY:
                return self._of_library(library, found, there, given)
            return self._of_rows(found, there, given, taken.nullable)

        return self._each(name, values, make)

    def _changes(self, name, values, n):
        what = f"roost.GroupBy.{name}"
        if self._columns is not None and len(values) == 1 and isinstance(values[0], (int, np.integer)):
            values, n = (), values[0]
        rows, home = self._shifted(name, n), self._home(name)

        def make(given):
            taken = self._taken(given, name)
            array, _ = wide_values(taken, what)
            if name == "diff":
                found, has = differences(array, rows, what)
                found = found.astype(taken.dtype) if array.dtype.kind == "f" else found
            else:
                has = rows >= 0
                with np.errstate(all="ignore"):
                    found = array / array[np.where(has, rows, 0)] - 1.0
            if taken.there is not None:
                has &= taken.there & taken.there[rows]
            if not taken.plain():
                found = found.view(f"m8[{'%d%s' % np.datetime_data(taken.given)[::-1]}]")
                found[~has] = "NaT"
            if home is not NUMPY and found.dtype.kind == "f" and self._kept is None:
                found, has = np.where(has, found, np.nan).astype(found.dtype), None
            return self._of_rows(found, has, given, home is NUMPY)

        return self._each(name, values, make)

    def _filled(self, how, values):
        lists = self._lists(how)

        def make(given):
            taken = self._taken(given, how)
            there = np.ones(self._n, np.bool_) if taken.there is None else taken.there
            return self._at_rows(taken, lists.filled(there, how == "ffill"), given)

        return self._each(how, values, make)

    def _given_or_chosen(self, how, values):
        """Values, or if there are none, the columns that were chosen."""
        if not values and self._columns is None:
            raise TypeError(f"roost.GroupBy.{how}: no values; pass one or several arrays")
        if values and self._columns is not None:  # or an option would be the name of another column
            raise TypeError(
                f"roost.GroupBy.{how}: {shown(values[0])} after g[...], whose columns are the values; give "
                "options by name, or values to the groups of all columns"
            )
        return values or self._columns

    def _regrouped(self, column, name, taken, what):
        """The rows that have a key by it and another column, of the type of `taken`, the values of `name`."""
        keys = self._keys_at(self._grouped_rows(self._home("resample")).groups(), for_pickle=False)
        frame = self._frame
        if frame is None:
            if isinstance(column, np.ndarray) and self._library.has(column.dtype):
                column = self._library.of_numpy(column)
            keys = (*keys, column) if isinstance(keys, tuple) else (keys, column)
        else:
            frames, given = self._kind.frames, taken.given_column()
            is_here = frames_of_column(given) is frames
            like = given if is_here and not _has_categories(given) else None  # no window may be one of them
            made = frames.result(column, None, like, taken.zone)
            made = made if like is None else frames.cast(made, like)
            name = name if is_here and given is not name else "window"
            names, columns = frames.columns(keys)
            if name in names:
                raise ValueError(f"{what}: {name!r} is the name of a key; rename one")
            keys = Selected(frames, [*names, name], [*columns, made])
        again = GroupBy(encode_columns(keys, what), frame, self._skipna)
        vars(again).update(
            _kept=self._kept,
            _given=self._given,
            _drops=self._drops,
            _columns=self._columns,
            _alone=self._alone,
        )
        return again

    def _taken(self, values, how, keeps=True):
        """An argument as _Values; `keeps`: only of the rows that have a key."""
        what = f"roost.GroupBy.{how}"
        if isinstance(values, _Values):
            return values
        values = self._named(values, how)
        if isinstance(values, (set, frozenset)):
            raise TypeError(f"{what}: a set of values, which has no order; pass a list or an array")
        values = of_capsules(values) if how in _BY_ORDER or may_be_device(values) else values
        if how in _BY_ORDER:
            expect_no_own_order(values, what)
        if isinstance(values, (Column, DeviceColumn)):
            column, zone = values, None
        else:
            column, zone = self._column_of(values, how, what)
        if column.library is not self._library:
            same_device(self._library, column.library, what)
        if getattr(getattr(column, "array", None), "ndim", 1) == 0:
            raise TypeError(f"{what}: a single value; pass one value for each key")
        values = _DeviceValues(column) if isinstance(column, DeviceColumn) else _Values(column, zone)
        allowed = values.allowed()
        if allowed is not None and _LIKE.get(how, how) not in allowed:
            raise TypeError(
                f"{what}: values of {_described(column)} have only {', '.join(allowed)}; {_ADVICE}"
            )
        if len(column) != self._given:
            raise ValueError(
                f"{what}: {plural(self._given, 'key')} but {plural(len(column), 'value')}; give one value "
                "for each key"
            )
        if how not in ("first", "last", "shift"):
            if self._skipna:
                values.skip_nans()
            if how not in ("count", *_FILLS) and not (_LIKE.get(how, how) == "sum" and values.dtype is None):
                values.rank(how)
        if self._kept is not None and keeps:
            values.keep(self._kept, self._library)
        return values

    def _column_of(self, values, how, what):
        """An argument as a Column, and the time zone of its instants."""
        bare, zone = (values, None) if is_quick_column(values) else in_utc(readable(values))
        try:
            if _LIKE.get(how, how) in _OF_ANY and type(values) is np.ndarray and values.dtype == object:
                raise TypeError  # of any objects
            column = take_column(bare, what)
            if bare is not values:
                column.given, column.direct = values, False
        except (TypeError, ValueError, OverflowError, NotImplementedError):
            there = is_there(values) if _LIKE.get(how, how) in _OF_ANY else None
            if there is None:
                raise
            array = values if type(values) is np.ndarray else None
            column = Column(array, NUMPY, None if how in ("first", "last") else bitmap_of(there), values)
        return column, zone

    def _sizes(self):
        """The number of rows of each key, as an array."""
        return self._library.adopt(self._groups.counts(self._library.place()), INT64)

    def _finished(self, found, there, nullable):
        """A result as an array. If it may have nulls, it is a numpy masked array, whether it has any or not;
        dates have NaT, and objects None."""
        masks_objects = isinstance(found, _Picked) and found.values.nullable
        found, there = self._as_array(found, there)
        if there is None and not nullable:
            return found
        found = self._to_numpy(found)
        missing = np.zeros(len(found), np.bool_) if there is None else ~self._to_numpy(there)
        if found.dtype.kind in "mM" or (found.dtype.kind == "O" and not masks_objects):
            found[missing] = None
            return found
        return np.ma.MaskedArray(
            found, np.broadcast_to(missing.reshape(-1, *[1] * (found.ndim - 1)), found.shape)
        )

    def _as_array(self, found, there):
        """A result as an array, and where it is not null."""
        if not isinstance(found, _Picked):
            return found, there
        values, rows, there = found.values, found.rows, found.there
        column, array, given = values.column, values.column.array, values.given
        if array is None or column.unit:
            return objects_at(column.given, np.maximum(self._to_numpy(rows), 0)), there
        if isinstance(array, Texts):
            return array[np.maximum(self._to_numpy(rows), 0)], there
        if given is not None and given.kind in "mM":
            return values.of_numbers(array[self._to_numpy(rows)].astype(given).view(INT64), there)
        return self._rows_of(array, values.library, rows), there

    def _rows_of(self, array, library, rows):
        """Some rows of an array, if possible as an array of the keys' library."""
        home, kind = self._library, numpy_dtype(array)
        if library is home:
            return home.rows(array, home.of_numpy(rows) if isinstance(rows, np.ndarray) else rows)
        found = library.rows(array, library.of_numpy(self._to_numpy(rows)))
        if kind is None or not home.has(kind.newbyteorder("=")):
            return found
        return home.of_numpy(library.to_numpy(found))

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
            return self._sizes(), None
        columns = [self._taken(column, how) for column in columns]
        if columns[0].scale is not None and how == "sum":
            sums, counts = self._whole_sums(columns[0])
            return _of_whole(sums, columns[0], None if (counts > 0).all() else counts > 0, how)
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
            return self._sizes()
        home = self._library
        _, nothing = home.output(self._n, UINT8)  # not read
        counts, _ = self._groups.reduce(home.place(), nothing, NUMBERS[UINT8], "count", bits)
        return home.adopt(counts, INT64)

    def _end_rows(self, how):
        """The number of each key's first or last row."""
        home, rows = self._library, INT32 if self._n < 2**31 else INT64
        end_rows = self._groups.first_rows if how == "first" else self._groups.last_rows
        return home.adopt(end_rows(home.place(), rows is INT64), rows)

    def _ends(self, values, how):
        """The values of each key's first or last row."""
        home, ends, there = self._library, self._end_rows(how), None
        if isinstance(values, _DeviceValues):
            if values.plain() and values.there is None:
                return self._rows_of(values.array, values.library, ends), None
            return values.column.take(ends), None
        if values.there is not None:
            there = values.there[home.to_numpy(ends)]
            there = None if there.all() else there
        rows = ends if self._kept is None else home.rows(self._kept, ends)
        return _Picked(values, rows, there), None

    def _ranked(self, values, found, there):
        """The values that ranks stand for."""
        found = self._to_numpy(found)
        found = found if there is None else np.where(there, found, 0)
        rows = values.ranked[found] if len(values.ranked) else np.zeros(len(found), INT64)
        return _Picked(values, rows, there), None

    def _reduced(self, values, how):
        home, given = self._library, values.given
        if not values.plain() and values.ranked is None and how in ("sum", "mean"):
            return self._of_durations(values, how)
        column, number, bits = self._input(values)
        found, counts = self._groups.reduce(home.place(), column, number, how, bits)
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
        if values.ranked is not None:
            return self._ranked(values, home.adopt(found, made), there)
        if not values.plain():
            return values.of_numbers(values.library.adopt(found, made), there)
        found = (home.computed if how in ("sum", "mean", "product") else home.adopt)(found, made)
        return self._converted(found, made, result), there

    def _whole_sums(self, values):
        """Exact sums of durations or decimals, as int64 or objects, and how many there are."""
        home, bits, parts = self._library, self._bits(values.there), []
        for array in _digits(values.array, values.scale):
            column = values.library.column(array)
            found, counts = self._groups.reduce(home.place(), column, NUMBERS[INT64], "sum", bits)
            parts.append(self._to_numpy(home.adopt(found, INT64)))
        counts = self._sizes() if counts is None else home.adopt(counts, INT64)
        return _whole(parts), self._to_numpy(counts)

    def _of_durations(self, values, how):
        """Exact sums and means of durations; these are rounded to whole ones, halves to even ones."""
        found, counts = self._whole_sums(values)
        there = None if bool((counts > 0).all()) else counts > 0
        if how == "mean":
            counts = np.maximum(counts, 1)
            found, rest = found // counts, found % counts
            found = found + ((2 * rest > counts) | ((2 * rest == counts) & (found % 2 == 1)))
        there = (
            there if there is None or isinstance(values.array, np.ndarray) else self._library.of_numpy(there)
        )
        return _of_whole(found, values, there, "sum")

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
        if values.ranked is not None:
            return self._ranked(values, home.adopt(found, values.dtype), there)
        if not values.plain():
            return values.of_numbers(values.library.adopt(found, values.dtype), there)
        return self._converted(home.adopt(found, values.dtype), values.dtype, values.given), there

    @whole_floats
    def _outermost(self, how, values, n):
        what = f"roost.GroupBy.{how}"
        if values is None or (n is None and not self._alone):
            raise TypeError(f'{what}: no n; give values and n, or n alone after g["v"]')
        if n is None:
            values, n = self._columns[0], values
        home, values = self._library, self._taken(values, how)
        found, offsets = self._groups.outermost(
            home.place(), *self._input(values), whole_number(n, what, "n"), how == "nlargest"
        )
        offsets = home.adopt(offsets, INT64)
        if values.plain():
            found = self._converted(home.adopt(found, values.dtype), values.dtype, values.given)
        else:
            found, _ = values.of_numbers(values.library.adopt(found, values.dtype), None)
        given = values.given_column()
        frames = self._frames_of(given)
        if frames is None:
            return found, offsets
        made = frames.cast(frames.result(np.asarray(found), None, given, values.zone), given)
        return frames.named(made, given), offsets


@on_device
def group_by(keys, by=None, *, dropna=False, skipna=None):
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
    skipna : bool or None
        Whether NaNs among values are skipped, as nulls are, by all methods but `first` and `last`. By
        default this is so for frames of pandas, which have NaN for nulls.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

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
    dropna = flag(dropna, what, "dropna")
    encoded = encode_columns(chosen, what, drops=dropna)
    check_rows(encoded.n, INT64, what)
    skips = encoded.kind.frames is Pandas if skipna is None else flag(skipna, what, "skipna")
    made = GroupBy(encoded, None if encoded.kind.frames is None else keys, skips)
    made._drops = dropna
    return made


def _has_categories(column):
    """Whether a column of a frame has values of a list: categories, or a dictionary."""
    kind = str(getattr(column, "type", None) or column.dtype).lower()
    return kind.startswith(("categor", "enum", "dictionary"))


def _again(keys, kept, state):
    """A GroupBy that was pickled: the keys of the rows that it kept, these rows, and attributes."""
    made = group_by(keys, skipna=state["_skipna"])
    vars(made).update(state, _kept=None if kept is None else made._library.of_numpy(kept))
    return made


def _may_be_null(how, columns):
    """Whether results for _Values may be null, by their types."""
    return how not in ("count", "nunique") and any(values.nullable for values in columns)


def _digits(array, scale):
    """Durations, or decimals if there is a `scale`, as arrays of 32 bits of each as int64, the least ones
    first, of which only the last are signed."""
    if scale is None:
        return [array & 0xFFFFFFFF, array >> 32]
    halves = array.view(INT64).reshape(-1, 2)
    digits = [np.ascontiguousarray(halves[:, i // 2] >> 32 * (i % 2)) for i in range(4)]
    return [*(each & 0xFFFFFFFF for each in digits[:3]), digits[3]]


def _whole(sums):
    """Whole numbers, as int64 or objects, of sums of their `_digits`."""
    parts = [*(each.view(UINT64) for each in sums[:-1]), sums[-1].view(INT64)]
    if len(parts) == 2:
        low, high = parts
        high = high + (low >> np.uint64(32)).view(INT64)
        if ((high >= -(2**31)) & (high < 2**31)).all():
            return (high << 32) | (low & np.uint64(2**32 - 1)).view(INT64)
    return sum(part.astype(object) * 2 ** (32 * i) for i, part in enumerate(parts))


def _of_whole(sums, values, there, how):
    """Whole numbers as durations or decimals of the type of values, and which are not null."""
    if values.scale is not None:
        if any(abs(each) >= 10**38 for each in sums):
            raise OverflowError(f"roost.GroupBy.{how}: a sum of decimals of more than 38 digits")
        return np.array([*(decimal_of(int(each), values.scale) for each in sums), None], object)[:-1], there
    if sums.dtype == object and not all(abs(each) < 2**63 for each in sums) or (sums == -(2**63)).any():
        raise OverflowError(f"roost.GroupBy.{how}: a sum of durations beyond 2^63 of their unit")
    return values.of_numbers(values.library.of_numpy(sums.astype(INT64)), there)


def _described(column):
    """The type of a column of values, and its shape."""
    if isinstance(column, DeviceColumn):
        return f"Arrow's type {column.type!r} on {column.device}"
    if column.unit or column.array is None:
        return column.unit or "this type"
    shape = tuple(column.array.shape)
    return f"type {column.type}" + (f" and shape {shape}" if len(shape) > 1 else "")
