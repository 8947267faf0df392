"""Results for the rows of groups from the rows around them, in the order of a column: windows, running
products and extremes, sessions. C++ combines the values, on the CPU or a GPU."""

import numbers

import numpy as np

from . import _host
from ._arrays.exact import shown
from ._arrays.libraries import NUMPY
from ._arrays.types import BOOL, FLOAT64, INT64, NUMBERS, UINT64, numpy_dtype
from ._options import flag, integer, whole_number
from ._times import distance_in, number_of


def wide_values(taken, what, library=NUMPY):
    """Values of a library as int64, uint64 or float64, and the name of this type."""
    if taken.dtype is None or taken.ranked is not None:
        raise TypeError(f"{what}: values that are no numbers, dates or durations; convert them")
    taken.number()
    kind = taken.dtype.kind
    wide = FLOAT64 if kind == "f" else UINT64 if kind == "u" else INT64
    if library is NUMPY:
        return np.array(taken.library.to_numpy(taken.array), wide), NUMBERS[wide]
    return library.convert(taken.array, wide), NUMBERS[wide]


def without_nulls(values, there, how, library=NUMPY):
    """The values with others at nulls that change no result."""
    if there is not None:
        values = np.array(library.to_numpy(values))
        dtype = values.dtype
        ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values[~there] = {"sum": 0, "product": 1, "min": ends[1], "max": ends[0]}[how]
        values = library.of_numpy(values)
    return values


def like_values(found, there, taken, library=NUMPY):
    """Numbers as values of the type that was given: a date or duration, or a shorter number."""
    found = library.convert(found, taken.given if taken.given.kind == "f" else taken.dtype)
    if not taken.plain():
        found = found.view(taken.given)
        if there is not None:
            found[~there] = "NaT"
    return found


def like_sums(found, taken, library):
    """Sums or products of each row in the type of those of groups."""
    if taken.given.kind != "f":
        return found
    with np.errstate(over="ignore"):  # as that of `sum`
        return library.convert(found, taken.given)


class Order:
    """Rows by group, in their order or by times, in memory of a library: that of a GPU, or numpy. `times`:
    int64 or float64, with the name of this type, or None."""

    def __init__(self, library, groups, times=None, kind="int64"):
        self.library, self.times, self.kind = library, None if times is None else library.column(times), kind
        groups = getattr(groups, "_listed", groups)  # of keys that went through a device
        self.rows = library.module.order_rows(library.place(), groups, self.times, kind)

    def running(self, taken, how, what):
        """The running result of each row; what lies at nulls has no meaning."""
        library = self.library
        values, kind = wide_values(taken, what, library)
        values, wide = without_nulls(values, taken.there, how, library), numpy_dtype(values)
        found = self.rows.running(library.place(), library.column(values), kind, how)
        return (library.adopt if how in ("min", "max") else library.computed)(found, wide)

    def numbers(self, found):
        """Numbers of C++, as int64."""
        return self.library.adopt(found, INT64)

    def sessions(self, gap):
        """The number of each row's session among those of its group."""
        place = self.library.place()
        return self.numbers(self.rows.session_numbers(place, self.times, self.kind, gap))

    def runs(self, numbers):
        """The number of each row's run of equal numbers, int64, among those of its group."""
        return self.numbers(self.rows.run_numbers(self.library.place(), self.library.column(numbers)))

    def shifted(self, n):
        """The row that comes n rows earlier in the group of each row, or -1."""
        return self.numbers(self.rows.shifted(self.library.place(), n))

    def places(self):
        """How many rows of its group come before each row."""
        return self.numbers(self.rows.positions(self.library.place()))


def differences(values, rows, what):
    """values[i] - values[rows[i]] where rows[i] is not negative: of integers int64, or an OverflowError."""
    has = rows >= 0
    others = values[np.where(has, rows, 0)]
    with np.errstate(all="ignore"):
        found = values - others
    if values.dtype.kind == "u":
        found, wrong = found.view(INT64), (found.view(INT64) >= 0) != (values >= others)
    elif values.dtype.kind == "i":
        wrong = ((values ^ others) & (values ^ found)) < 0
    else:
        return found, has
    if (wrong & has).any():
        raise OverflowError(f"{what}: differences beyond int64; convert the values to floats")
    return found, has


class Rolling:
    """The windows of the rows of a GroupBy, whose values its methods combine: what `GroupBy.rolling` returns.

    Results are for the rows, in their order, in the form of `transform`. A window has the values that are not
    null; if there are less than `min_periods`, its result is null. Nothing is subtracted from sums, so they
    do not drift, and floats are added in an order that depends on the window alone, so that results are the
    same on every run, on the CPU and on a GPU. For tensors of torch and arrays of CuPy and jax, results are
    such; what would be null is NaN among floats. Methods may be called from several threads.
    """

    def __init__(self, groups, order, windows, least):
        self._groups, self._rows, self._windows, self._least = groups, order.rows, windows, least
        self._library = order.library

    def __repr__(self):
        return f"roost.Rolling(windows of {self._groups!r})"

    def _combined(self, values, kind, how):
        library = self._library
        found = self._rows.combine(library.place(), self._windows, library.column(values), kind, how)
        return (library.computed if how == "sum" else library.adopt)(found, numpy_dtype(values))

    def _counts(self, there):
        library = self._library
        if there is None:
            return library.adopt(self._rows.window_sizes(library.place(), self._windows), INT64)
        return self._combined(library.of_numpy(there.astype(INT64)), "int64", "sum")

    def _floats(self, taken, what):
        """Values as float64."""
        if not taken.plain():
            raise TypeError(f"{what}: dates or durations; convert them to numbers")
        return self._library.convert(wide_values(taken, what, self._library)[0], FLOAT64)

    def _made(self, found, has, given):
        """Results of rows, of which some are null."""
        return self._groups._of_library(self._library, found, None if bool(has.all()) else has, given)

    def _each(self, how, values, compute, least=1):
        """What compute(values, their counts in windows) returns for each column. `least`: the values that a
        result needs in any case."""
        enough = max(self._least, least)

        def make(given):
            taken = self._groups._taken(given, "rolling")
            counts = self._counts(taken.there)
            return self._made(compute(taken, counts), counts >= enough, given)

        return self._groups._each(f"rolling.{how}", values, make)

    def sum(self, *values):
        """The sums: of integers int64 or uint64, which wrap around, of floats float64."""

        def sums(taken, counts):
            array, kind = wide_values(taken, "roost.GroupBy.rolling.sum", self._library)
            found = self._combined(without_nulls(array, taken.there, "sum", self._library), kind, "sum")
            return found if taken.plain() else found.view(taken.given)

        return self._each("sum", values, sums, 0)

    def mean(self, *values):
        """The means, as float64."""

        def means(taken, counts):
            library = self._library
            array, _ = wide_values(taken, "roost.GroupBy.rolling.mean", library)
            array = without_nulls(library.convert(array, FLOAT64), taken.there, "sum", library)
            sums = self._combined(array, "float64", "sum")
            with np.errstate(all="ignore"):
                found = sums / counts
            return found if taken.plain() else _rounded(found, counts).view(taken.given)

        return self._each("mean", values, means)

    def _extremes(self, how, values):
        def extremes(taken, counts):
            array, kind = wide_values(taken, f"roost.GroupBy.rolling.{how}", self._library)
            found = self._combined(without_nulls(array, taken.there, how, self._library), kind, how)
            return like_values(found, None, taken, self._library)

        return self._each(how, values, extremes)

    def min(self, *values):
        """The least values, of their type; NaN if one is."""
        return self._extremes("min", values)

    def max(self, *values):
        """The greatest values, of their type; NaN if one is."""
        return self._extremes("max", values)

    def count(self, *values):
        """How many values there are, int64. As in pandas, `min_periods` is about rows here, null or not."""
        sizes = self._counts(None)

        def make(given):
            counts = self._counts(self._groups._taken(given, "count").there)
            return self._made(counts, sizes >= self._least, given)

        return self._groups._each("rolling.count", values, make)

    def var(self, *values, ddof=1):
        """The variances, divided by the number of values less `ddof`, as float64; null if there are not more
        values than that."""
        return self._spread("var", values, ddof)

    def std(self, *values, ddof=1):
        """The standard deviations: the roots of `var`."""
        return self._spread("std", values, ddof)

    def _spread(self, how, values, ddof):
        what = f"roost.GroupBy.rolling.{how}"
        ddof = whole_number(ddof, what, "ddof")

        def spread(taken, counts):
            array, library = self._floats(taken, what), self._library
            there = np.ones(len(array), BOOL) if taken.there is None else taken.there
            there = library.column(library.of_numpy(there))
            array = library.column(array)
            found = self._rows.spreads(
                library.place(), self._windows, array, there, float(ddof), how == "std"
            )
            return library.computed(found, FLOAT64)

        return self._each(how, values, spread, ddof + 1)

    def median(self, *values):
        """The medians: `quantile` of 0.5."""
        return self.quantile(*values)

    def quantile(self, *values, q=0.5, interpolation="linear"):
        """The quantiles, as float64; NaN if a value is.

        Parameters
        ----------
        q : number from 0 to 1
            After ``g["v"]``, you may give it alone.
        interpolation : "linear", "lower", "higher", "midpoint" or "nearest"
            What a quantile between two values is, as in pandas; "nearest" of the middle between them is the
            one whose place is even.

        Notes
        -----
        How long it takes does not depend on the length of the windows, but on the logarithm of the greatest
        number of rows of a key.
        """
        what, library = "roost.GroupBy.rolling.quantile", self._library
        if self._groups._columns is not None and len(values) == 1 and isinstance(values[0], (int, float)):
            values, q = (), values[0]
        if isinstance(q, (bool, np.bool_)) or not isinstance(q, numbers.Real):
            raise TypeError(f"{what}: q={shown(q)}; give a number from 0 to 1")
        if not 0 <= q <= 1:
            raise ValueError(f"{what}: q={shown(q)}; give a number from 0 to 1")
        if not isinstance(interpolation, str) or interpolation not in _host.interpolations:
            known = ", ".join(map(repr, _host.interpolations))
            raise ValueError(f"{what}: interpolation={interpolation!r}; give one of {known}")

        def quantiles(taken, counts):
            array, column = library.column(self._floats(taken, what)), library.column
            there = None if taken.there is None else column(library.of_numpy(taken.there))
            found = self._rows.quantiles(
                library.place(), self._windows, array, there, column(counts), float(q), interpolation
            )
            return library.computed(found, FLOAT64)

        return self._each("quantile", values, quantiles)

    def _ends(self, how, values):
        library = self._library
        ends = self._rows.window_ends(library.place(), self._windows, how == "last")
        rows = library.to_numpy(library.adopt(ends, INT64))

        def make(given):
            taken = self._groups._taken(given, how)
            has = library.to_numpy(self._counts(taken.there)) >= max(self._least, 1)
            return self._groups._at_rows(taken, np.where(has, rows, -1), given, True)

        return self._groups._each(f"rolling.{how}", values, make)

    def first(self, *values):
        """The value of the first row of each window, null or not: any values."""
        return self._ends("first", values)

    def last(self, *values):
        """The value of the last row of each window, null or not: any values."""
        return self._ends("last", values)


def _rounded(found, counts):
    """Means of durations as integers."""
    return np.where(counts > 0, np.rint(found), 0).astype(INT64)


def rolling_of(groups, window, on, min_periods, center, closed):
    """The Rolling of a GroupBy."""
    what = "roost.GroupBy.rolling"
    center = flag(center, what, "center")
    closed = "right" if closed is None else closed
    if not isinstance(closed, str) or closed not in _host.window_ends:
        known = ", ".join(map(repr, _host.window_ends))
        raise ValueError(f"{what}: closed={closed!r}; give one of {known}")
    place = groups._home("rolling").place()
    if on is None:
        if isinstance(window, str) or not hasattr(window, "__index__"):
            raise TypeError(
                f"{what}: window={shown(window)} without `on`; give a number of rows, or on= times"
            )
        rows = integer(window, what, "window")
        if not 1 <= rows < 2**63:
            raise ValueError(f"{what}: window={rows}; give 1 or more, and less than 2^63")
        order = groups._order(what)
        last = (rows - 1) // 2 if center else 0
        first, last = last - rows + (closed not in ("left", "both")), last - (closed in ("left", "neither"))
        windows = order.rows.windows_by_rows(place, first, last)
    else:
        order, dtype = groups._ordered_by(on, "rolling", what)
        width, rows = distance_in(window, dtype, what, "window"), 1
        if not width:
            raise ValueError(f"{what}: window={shown(window)}; give more than 0")
        before, after = width, type(width)(0)
        if center and dtype.kind == "f":
            before = after = width / 2
        elif center:  # distances d < width / 2 at an open end, and d <= width / 2 at a closed one
            before = width // 2 if closed in ("left", "both") else -(-width // 2)
            after = width // 2 if closed in ("right", "both") else -(-width // 2)
        windows = order.rows.windows_by_time(place, order.times, order.kind, (before, after, closed))
    least = rows if min_periods is None else whole_number(min_periods, what, "min_periods")
    return Rolling(groups, order, windows, least)


def _spans(times, dtype, zero, width, right, at_end, what):
    """The end, the first or the last one, of the span of each of some times, int64. They have this width, one
    of them begins at `zero`, and they have their end on the right, or that on the left."""
    if not len(times):
        return times
    offset, past = 2**63 if dtype.kind == "u" else 0, int(right)  # see as_numbers
    zero = (zero - offset) % width
    low, high = int(times.min()) - past, int(times.max()) - past
    least, greatest = (t - (t - zero) % width + width * at_end + offset for t in (low, high))
    limits = np.iinfo(dtype if dtype.kind in "iu" else INT64)
    if least < limits.min + (dtype.kind in "mM") or greatest > limits.max or low < -(2**63):
        raise OverflowError(f"{what}: windows from {least} to {greatest}, which {dtype} does not hold")
    times = times - past
    starts = times - (times % width - zero) % width  # which may wrap around, and back
    return starts + width if at_end else starts


def resampled(groups, every, on, origin, closed, label):
    """The GroupBy of the keys of another one and of spans of time."""
    what = "roost.GroupBy.resample"
    for name, side in (("closed", closed), ("label", label)):
        if side not in ("left", "right"):
            raise ValueError(f"{what}: {name}={side!r}; give 'left' or 'right'")
    home, taken = groups._home("resample"), groups._taken(on, "on")
    times, _, dtype = groups._times(taken, what)
    if dtype.kind == "f":
        raise TypeError(f"{what}: times of type {dtype}; give whole numbers, dates or durations")
    width = distance_in(every, dtype, what, "every")
    if not 0 < width < 2**63:
        raise ValueError(f"{what}: every={shown(every)}; give more than 0, and less than 2^63 of {dtype}")
    if dtype.kind == "M" and origin is not None:
        if (getattr(origin, "tzinfo", None) is None) != (taken.zone is None):
            raise TypeError(
                f"{what}: origin={shown(origin)}, and times {'with' if taken.zone else 'without'} a zone; "
                "give both with a zone, or both without"
            )
    zero = 0 if origin is None else number_of(origin, dtype, what, "origin")
    found = _spans(times, dtype, zero, width, closed == "right", label == "right", what)
    if dtype.kind == "u":
        found = home.view(found ^ -(2**63), UINT64)
    found = found.view(dtype) if dtype.kind in "mM" else home.convert(found, dtype)
    return groups._regrouped(found, on, taken, what)
