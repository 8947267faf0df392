"""merge_asof and interval_join: joins by time."""

from typing import Any, NamedTuple

import numpy as np

from . import _host
from ._arrays.exact import advice_on, alike, shown
from ._arrays.frames import (
    Device,
    Rows,
    columns_named,
    frames_of,
    like_axis,
    names_of,
    of_capsules,
    with_suffix,
)
from ._arrays.libraries import NUMPY, same_device
from ._arrays.types import INT32, INT64, numpy_dtype
from ._keys.columns import ZONED, take_column
from ._keys.packing import encode_two_columns
from ._keys.strings import Texts
from ._merge import framed, named, numbers_of_two, suffixes_of
from ._options import check_rows, flag
from ._times import as_numbers, distance_in, numbers_there


def _times(one, other, names, what):
    """The times of two columns in one type: as numbers, the name of their type, and the type of the times."""
    a, b = take_column(one, what), take_column(other, what)
    if any(isinstance(column.array, Texts) or column.unit not in (None, ZONED) for column in (a, b)) or (
        a.unit != b.unit or not alike(numpy_dtype(a.array), numpy_dtype(b.array))
    ):
        kinds = [getattr(column.given, "dtype", None) or column.given.type for column in (a, b)]
        raise TypeError(
            f"{what}: times of types {kinds[0]} and {kinds[1]}; give two columns of numbers, of dates or of "
            "durations"
        )
    if a.library.module is not NUMPY.module:
        same_device(a.library, b.library, what)
        if numpy_dtype(a.array).kind != numpy_dtype(b.array).kind:
            raise TypeError(
                f"{what}: times of types {a.array.dtype} and {b.array.dtype}; convert one of them"
            )
        mine, kind = numbers_there(a.array, a.library, what, names[0])
        return mine, numbers_there(b.array, b.library, what, names[1])[0], kind, numpy_dtype(a.array)
    for column in (a, b):
        column.move(NUMPY)
    if a.array.dtype == b.array.dtype:
        values, there = (a.array, b.array), (a.there, b.there)
    else:
        all_values, all_there = numbers_of_two(a, b, what)
        values = all_values[: len(a)], all_values[len(a) :]
        there = (None, None) if all_there is None else (all_there[: len(a)], all_there[len(a) :])
    (mine, kind), (others, _) = (
        as_numbers(*side, what, f"column {name!r}") for *side, name in zip(values, there, names)
    )
    return mine, others, kind, values[0].dtype


def _one_name(on, side_on, argument, side_argument, known, what):
    """The name of the column of times of a side."""
    if (on is None) == (side_on is None):
        raise ValueError(f"{what}: give either {argument}, or {side_argument} of both sides")
    names, several = names_of(on if side_on is None else side_on, known)
    if several and len(names) != 1:
        raise ValueError(f"{what}: times of {len(names)} columns; give one")
    return names[0]


class _NoKeys(NamedTuple):
    """The keys of rows that all have one key."""

    n: int
    words: None = None
    library: Any = NUMPY


def _keys(left, right, columns, names, nulls_equal, what):
    """The keys of both sides, without words if they have no names."""
    if names[0] is None and names[1] is None:
        return _NoKeys(len(left)), _NoKeys(len(right)), None
    if names[0] is None or names[1] is None:
        raise ValueError(f"{what}: give either `by`, or left_by and right_by")
    else:
        sides = [
            columns_named(frame, its_names, what, argument, its_columns)
            for frame, its_names, argument, its_columns in zip(
                (left, right), names, ("left_by", "right_by"), columns
            )
        ]
        if len(sides[0].names) != len(sides[1].names):
            raise ValueError(
                f"{what}: {len(sides[0].names)} columns in left_by and {len(sides[1].names)} in right_by; "
                "give the same number"
            )
    return (*encode_two_columns(*sides, what, nulls_equal), sides)


def _frames_of_two(left, right, what):
    """The library of two frames; None: of two arrays of keys."""
    frames, others = frames_of(left), frames_of(right)
    if frames is None and others is None and left is not None and right is not None:
        return None
    if frames is not others or frames is Device or frames is None:
        advice = advice_on(left, advice_on(right, "pass two frames of pandas, of polars or of pyarrow"))
        raise TypeError(f"{what}: a {named(left)} and a {named(right)}; {advice}")
    return frames


def _keys_of_arrays(left, right, given, nulls_equal, what):
    """The keys of arrays. `given`: arguments that only frames have."""
    if any(argument is not None for argument in given.values()):
        raise TypeError(f"{what}: {', '.join(given)} name columns, but keys are arrays; give arrays of times")
    a, b = encode_two_columns(left, right, what, nulls_equal)
    check_rows(a.n + b.n, INT64, what)
    return a, b


def _column(times, library, what):
    """Times where the keys are."""
    if isinstance(times, np.ndarray):
        same_device(library, NUMPY, what)
        return NUMPY.column(times)
    if library.module is NUMPY.module:
        raise ValueError(f"{what}: keys of {library}, but times on a device; copy them to one place")
    return library.column(times)


def _paired(left, right, sides, once, rows, suffixes, what):
    """The frame of the columns of `left` and of `right` but for those named in `once`, in some rows."""
    frames = frames_of(left)
    (left_names, left_columns), (right_names, right_columns) = sides
    rest = [pair for pair in zip(right_names, right_columns) if pair[0] not in once]
    others = [name for name, _ in rest]
    result = [with_suffix(name, suffixes[0]) if name in others else name for name in left_names]
    result += [with_suffix(name, suffixes[1]) if name in left_names else name for name in others]
    twice = sorted({str(name) for name in result if result.count(name) > 1})
    if len(set(result)) < len(result) and len(set(left_names)) == len(left_names):
        raise ValueError(
            f"{what}: the result would have two columns {', '.join(twice)}; rename one, or give other "
            "suffixes"
        )
    wanted = [(column, rows[0]) for column in left_columns] + [(column, rows[1]) for _, column in rest]
    return like_axis(framed(frames, result, wanted), left, right)


def _common_keys(by, left_by, right_by, what):
    if by is not None and (left_by is not None or right_by is not None):
        raise ValueError(f"{what}: give either `by`, or left_by and right_by")
    return (left_by, right_by) if by is None else (by, by)


def _same_names(by, sides):
    """The keys that both frames name alike, of which the result has one column."""
    if by[0] is None:
        return set()
    return {other for one, other in zip(sides[0].names, sides[1].names) if one == other}


def merge_asof(
    left,
    right,
    on=None,
    *,
    left_on=None,
    right_on=None,
    by=None,
    left_by=None,
    right_by=None,
    direction="backward",
    tolerance=None,
    allow_exact_matches=True,
    suffixes=("_x", "_y"),
    nulls_equal=False,
):
    """Joins each row of a frame to the nearest one in time of another frame with the same key, like
    `pandas.merge_asof` and `polars.DataFrame.join_asof`.

    Parameters
    ----------
    left, right : frames of pandas, of polars, or of pyarrow; or arrays of keys
        In any order: neither need be sorted by time. Beside arrays of keys, also on a GPU, `left_on` and
        `right_on` are arrays of times, and the result is an array of int64: for each row of `left` the row of
        `right`, or -1.
    on : name of a column
        The times, which both frames have: integers, floats, dates, instants or durations.
    left_on, right_on : names of columns
        The times, if their names differ. Then the result has both columns.
    by : name of a column, or list of names
        The keys: rows match only if these are equal. Without, all rows may match.
    left_by, right_by : names, or lists of the same number of names
        The keys, if their names differ. Then the result has both columns.
    direction : "backward", "forward" or "nearest"
        Which row of `right` a row of `left` gets: the last one at or before its time, the first one at or
        after it, or the nearer of these two; if both are equally far, the one before, as in pandas. (Polars
        takes the one after.) Of several rows with the chosen time, it gets the first one in the order of
        `right` with "forward", or if that time is after its own, and else the last one.
    tolerance : number or duration
        The greatest distance of the two times: a number for numbers; for others a `datetime.timedelta`, what
        pandas and numpy have for it, or a text such as "5m" or "1h30m". By default any distance.
    allow_exact_matches : bool
        Whether rows of the same time match.
    suffixes : two texts
        What is added to the names of other columns that both frames have, as in `merge`.
    nulls_equal : bool
        Whether keys that are null match each other, as in pandas. Otherwise they match nothing, as in polars.

    Returns
    -------
    frame, or array
        The rows of `left` in their order: its columns, and those of `right` without `on` and `by`, which are
        null where there is no such row. Types, nulls and index are as from ``merge(how="left")``.

    Raises
    ------
    ValueError
        Times that are null, NaN or NaT; wrong combinations of `on` and `by`; a negative tolerance.
    TypeError, KeyError, OverflowError
        Frames of two libraries; times of two types that no type holds; names that no column has.

    Notes
    -----
    All rows are grouped by key; times are sorted only where they are not in order for each key.

    Examples
    --------
    >>> import pandas, roost
    >>> trades = pandas.DataFrame({"at": [5, 9], "symbol": ["A", "B"], "size": [100, 200]})
    >>> quotes = pandas.DataFrame(
    ...     {"at": [4, 5, 8], "symbol": ["A", "B", "B"], "bid": [1.5, 2.0, 2.25]}
    ... )
    >>> roost.merge_asof(trades, quotes, on="at", by="symbol")
       at symbol  size   bid
    0   5      A   100  1.50
    1   9      B   200  2.25
    """
    what = "roost.merge_asof"
    left, right = of_capsules(left), of_capsules(right)
    frames = _frames_of_two(left, right, what)
    suffixes, nulls_equal = suffixes_of(suffixes, what), flag(nulls_equal, what, "nulls_equal")
    exact = flag(allow_exact_matches, what, "allow_exact_matches")
    if not isinstance(direction, str) or direction not in _host.asof_directions:
        known = ", ".join(map(repr, _host.asof_directions))
        raise ValueError(f"{what}: direction={direction!r}; give one of {known}")
    if frames is None:
        given = {"on": on, "by": by, "left_by": left_by, "right_by": right_by}
        a, b = _keys_of_arrays(left, right, given, nulls_equal, what)
        if left_on is None or right_on is None:
            raise TypeError(f"{what}: arrays of keys without times; give left_on and right_on")
        times, names = (left_on, right_on), ("left_on", "right_on")
    else:
        (left_names, left_columns), (right_names, right_columns) = both = (
            frames.columns(left),
            frames.columns(right),
        )
        names = [
            _one_name(on, side_on, "`on`", "left_on and right_on", known, what)
            for side_on, known in ((left_on, left_names), (right_on, right_names))
        ]
        times = [
            columns_named(frame, [name], what, "on", columns).columns[0]
            for frame, name, columns in ((left, names[0], left_columns), (right, names[1], right_columns))
        ]
        by = _common_keys(by, left_by, right_by, what)
        a, b, sides = _keys(left, right, (left_columns, right_columns), by, nulls_equal, what)
        check_rows(a.n + b.n, INT64, what)
    library = a.library
    l_times, r_times, kind, dtype = _times(*times, names, what)
    most = None if tolerance is None else distance_in(tolerance, dtype, what, "tolerance")
    narrow = b.n < 2**31 and frames is not None
    rows = library.module.asof_join(
        library.place(),
        (a.words, _column(l_times, library, what)),
        (b.words, _column(r_times, library, what)),
        kind,
        (direction, exact, most, not narrow),
    )
    rows = library.adopt(rows, INT32 if narrow else INT64)
    if frames is None:
        return rows
    once = _same_names(by, sides) | ({names[1]} if names[0] == names[1] else set())
    every = Rows(np.arange(len(left)), True)
    return _paired(left, right, both, once, (every, Rows(rows)), suffixes, what)


def interval_join(
    left,
    right,
    on,
    between,
    *,
    by=None,
    left_by=None,
    right_by=None,
    closed="left",
    suffixes=("_x", "_y"),
    nulls_equal=False,
):
    """All pairs of a row with an interval of time and a row of another frame with the same key and a time in
    it.

    Parameters
    ----------
    left, right : frames of pandas, of polars, or of pyarrow; or arrays of keys
        In any order.
    on : name of a column of `right`; or array
        The times: integers, floats, dates, instants or durations without nulls.
    between : two names of columns of `left`; or two arrays
        Where the interval of each row begins, and where it ends: times of the type of `on`. An interval that
        ends before it begins has no times.
    by, left_by, right_by, suffixes, nulls_equal
        As for `merge_asof`.
    closed : "left", "right", "both" or "neither"
        Which ends an interval includes.

    Returns
    -------
    frame, or two arrays of int64
        The columns of `left`, and those of `right` without keys of the same name: a row for each pair,
        ordered by the row of `left`, and then by time. For arrays of keys, the rows of `left` and those of
        `right`.

    Raises
    ------
    MemoryError
        There is no memory for the row numbers of all pairs. These are counted first, so the error says how
        many there are, before any memory is taken for them.
    ValueError, TypeError, KeyError
        As for `merge_asof`.

    Examples
    --------
    >>> import pandas, roost
    >>> stays = pandas.DataFrame({"room": [1, 2], "begin": [10, 20], "end": [30, 25]})
    >>> alarms = pandas.DataFrame({"room": [1, 2, 1], "at": [30, 20, 12]})
    >>> roost.interval_join(stays, alarms, on="at", between=("begin", "end"), by="room")
       room  begin  end  at
    0     1     10   30  12
    1     2     20   25  20
    """
    what = "roost.interval_join"
    left, right = of_capsules(left), of_capsules(right)
    frames = _frames_of_two(left, right, what)
    suffixes, nulls_equal = suffixes_of(suffixes, what), flag(nulls_equal, what, "nulls_equal")
    if not isinstance(closed, str) or closed not in _host.window_ends:
        known = ", ".join(map(repr, _host.window_ends))
        raise ValueError(f"{what}: closed={closed!r}; give one of {known}")
    if not isinstance(between, (list, tuple)) or len(between) != 2:
        raise TypeError(
            f"{what}: between={shown(between)}; give two: where intervals begin, and where they end"
        )
    names = ("between", "between", "on")
    if frames is None:
        given = {"by": by, "left_by": left_by, "right_by": right_by}
        a, b = _keys_of_arrays(left, right, given, nulls_equal, what)
        begins, ends, times = *between, on
    else:
        both = (_, left_columns), (right_names, right_columns) = frames.columns(left), frames.columns(right)
        names = *between, on
        begins, ends = (
            columns_named(left, [name], what, "between", left_columns).columns[0] for name in between
        )
        times = columns_named(right, [on], what, "on", right_columns).columns[0]
        by = _common_keys(by, left_by, right_by, what)
        a, b, sides = _keys(left, right, (left_columns, right_columns), by, nulls_equal, what)
        check_rows(a.n + b.n, INT64, what)
    library = a.library
    begins, r_times, kind, dtype = _times(begins, times, (names[0], names[2]), what)
    ends, _, _, other = _times(ends, times, names[1:], what)
    if dtype != other:
        raise TypeError(f"{what}: intervals that begin at times of {dtype} and end at {other}; convert one")
    try:
        rows = library.module.interval_join(
            library.place(),
            (a.words, *(_column(each, library, what) for each in (begins, ends))),
            (b.words, _column(r_times, library, what)),
            kind,
            closed,
        )
    except MemoryError as error:
        lacking = str(error).partition(": ")[2].partition("; ")[0] or "no memory"
        raise MemoryError(f"{what}: {lacking}; pass fewer rows, or shorter intervals") from error
    rows = tuple(library.adopt(each, INT64) for each in rows)
    if frames is None:
        return rows
    return _paired(left, right, both, _same_names(by, sides), tuple(map(Rows, rows)), suffixes, what)
