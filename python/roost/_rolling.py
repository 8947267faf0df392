"""Results for the rows of groups from the rows around them, in the order of a column: windows, running
products and extremes, sessions. C++ combines the values, on the CPU."""

import numpy as np

from . import _host
from ._arrays.exact import shown
from ._arrays.libraries import NUMPY
from ._arrays.types import BOOL, FLOAT64, INT64, NUMBERS, UINT32, UINT64
from ._options import flag, integer, whole_number
from ._times import distance_in


def wide_values(taken, what):
    """Values as int64, uint64 or float64, and the name of this type."""
    if taken.dtype is None or taken.ranked is not None:
        raise TypeError(f"{what}: values that are no numbers, dates or durations; convert them")
    taken.number()
    kind = taken.dtype.kind
    wide = FLOAT64 if kind == "f" else UINT64 if kind in "ub" else INT64
    return np.array(taken.library.to_numpy(taken.array), wide), NUMBERS[wide]


def without_nulls(values, there, how):
    """The values with others at nulls that change no result."""
    if there is not None:
        dtype = values.dtype
        ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values[~there] = {"sum": 0, "product": 1, "min": ends[1], "max": ends[0]}[how]
    return values


def like_values(found, there, taken):
    """Numbers as values of the type that was given: a date or duration, or a shorter number."""
    found = found.astype(taken.dtype)
    if not taken.plain():
        found = found.view(taken.given)
        if there is not None:
            found[~there] = "NaT"
    return found


class Order:
    """Rows by group, in their order or by times: the numbers of the groups of the rows; and times as int64 or
    float64, with the name of this type, or None."""

    def __init__(self, groups, times=None, kind="int64"):
        self.times, self.kind = times, kind
        self.rows = _host.order_rows(NUMPY.place(), groups.astype(UINT32), times, kind)

    def running(self, taken, how, what):
        """The running result of each row; what lies at nulls has no meaning."""
        values, kind = wide_values(taken, what)
        values = without_nulls(values, taken.there, how)
        return NUMPY.adopt(self.rows.running(NUMPY.place(), values, kind, how), values.dtype)

    def sessions(self, gap):
        """For each row a number of its session, ascending in each group."""
        return NUMPY.adopt(self.rows.session_numbers(NUMPY.place(), self.times, self.kind, gap), INT64)


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
    same on every run. Methods may be called from several threads.
    """

    def __init__(self, groups, order, windows, least):
        self._groups, self._rows, self._windows, self._least = groups, order.rows, windows, least

    def __repr__(self):
        return f"roost.Rolling(windows of {self._groups!r})"

    def _combined(self, values, kind, how):
        found = self._rows.combine(NUMPY.place(), self._windows, values, kind, how)
        return NUMPY.adopt(found, values.dtype)

    def _counts(self, there):
        if there is None:
            return NUMPY.adopt(self._rows.window_sizes(NUMPY.place(), self._windows), INT64)
        return self._combined(there.astype(INT64), "int64", "sum")

    def _each(self, how, values, compute, least=1):
        """What compute(values, their counts in windows) returns for each column. `least`: the values that a
        result needs in any case."""
        enough = max(self._least, least)

        def make(given):
            taken = self._groups._taken(given, "rolling")
            counts = self._counts(taken.there)
            found, has = compute(taken, counts), counts >= enough
            return self._groups._of_rows(found, None if has.all() else has, given, True)

        return self._groups._each(f"rolling.{how}", values, make)

    def sum(self, *values):
        """The sums: of integers int64 or uint64, which wrap around, of floats float64."""

        def sums(taken, counts):
            array, kind = wide_values(taken, "roost.GroupBy.rolling.sum")
            found = self._combined(without_nulls(array, taken.there, "sum"), kind, "sum")
            return found if taken.plain() else found.view(taken.given)

        return self._each("sum", values, sums, 0)

    def mean(self, *values):
        """The means, as float64."""

        def means(taken, counts):
            array = wide_values(taken, "roost.GroupBy.rolling.mean")[0].astype(FLOAT64)
            sums = self._combined(without_nulls(array, taken.there, "sum"), "float64", "sum")
            with np.errstate(all="ignore"):
                found = sums / counts
            return found if taken.plain() else _rounded(found, counts).view(taken.given)

        return self._each("mean", values, means)

    def _extremes(self, how, values):
        def extremes(taken, counts):
            array, kind = wide_values(taken, f"roost.GroupBy.rolling.{how}")
            found = self._combined(without_nulls(array, taken.there, how), kind, how)
            return like_values(found, None, taken)

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
            return self._groups._of_rows(counts, sizes >= self._least, given, True)

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
            if not taken.plain():
                raise TypeError(f"{what}: durations; convert them to numbers")
            array = wide_values(taken, what)[0].astype(FLOAT64)
            there = np.ones(len(array), BOOL) if taken.there is None else taken.there
            found = self._rows.moments(NUMPY.place(), self._windows, array, there)
            squares = NUMPY.adopt(found, FLOAT64).reshape(-1, 3)[:, 2]
            with np.errstate(all="ignore"):
                found = squares / (counts - ddof)
                return np.sqrt(found) if how == "std" else found

        return self._each(how, values, spread, ddof + 1)

    def _ends(self, how, values):
        rows = NUMPY.adopt(self._rows.window_ends(NUMPY.place(), self._windows, how == "last"), INT64)

        def make(given):
            taken = self._groups._taken(given, how)
            return self._groups._at_rows(
                taken, np.where(self._counts(taken.there) >= max(self._least, 1), rows, -1), given, True
            )

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
    numbers, center = groups._lists("rolling").groups(), flag(center, what, "center")
    closed = "right" if closed is None else closed
    if not isinstance(closed, str) or closed not in _host.window_ends:
        known = ", ".join(map(repr, _host.window_ends))
        raise ValueError(f"{what}: closed={closed!r}; give one of {known}")
    place = NUMPY.place()
    if on is None:
        if isinstance(window, str) or not hasattr(window, "__index__"):
            raise TypeError(
                f"{what}: window={shown(window)} without `on`; give a number of rows, or on= times"
            )
        rows = integer(window, what, "window")
        if rows < 1:
            raise ValueError(f"{what}: window={rows}; give 1 or more")
        order = groups._order(what)
        last = (rows - 1) // 2 if center else 0
        first, last = last - rows + (closed not in ("left", "both")), last - (closed in ("left", "neither"))
        windows = order.rows.windows_by_rows(place, first, last)
    else:
        order, dtype = groups._ordered_by(on, "rolling", what)
        width, rows = distance_in(window, dtype, what, "window"), 1
        if not width:
            raise ValueError(f"{what}: window={shown(window)}; give more than 0")
        before, after = width, width - width
        if center and dtype.kind == "f":
            before = after = width / 2
        elif center:  # distances d < width / 2 at an open end, and d <= width / 2 at a closed one
            before = width // 2 if closed in ("left", "both") else -(-width // 2)
            after = width // 2 if closed in ("right", "both") else -(-width // 2)
        windows = order.rows.windows_by_time(place, order.times, order.kind, (before, after, closed))
    least = rows if min_periods is None else whole_number(min_periods, what, "min_periods")
    return Rolling(groups, order, windows, least)
