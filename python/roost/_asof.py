"""merge_asof: joins of frames by the nearest time."""

import numpy as np

from . import _host
from ._arrays.exact import advice_on, alike
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
from ._arrays.libraries import NUMPY
from ._arrays.types import INT32, INT64
from ._keys.columns import ZONED, take_column
from ._keys.packing import encode_two_columns
from ._keys.strings import Texts
from ._merge import framed, named, numbers_of_two, suffixes_of
from ._options import check_rows, flag
from ._times import as_numbers, distance_in


def _times(one, other, names, what):
    """The times of two columns in one type: as numbers, the name of their type, and the type of the times."""
    a, b = take_column(one, what), take_column(other, what)
    if any(isinstance(column.array, Texts) or column.unit not in (None, ZONED) for column in (a, b)) or (
        a.unit != b.unit or not alike(a.array.dtype, b.array.dtype)
    ):
        kinds = [getattr(column.given, "dtype", None) or column.given.type for column in (a, b)]
        raise TypeError(
            f"{what}: times of types {kinds[0]} and {kinds[1]}; give two columns of numbers, of dates or of "
            "durations"
        )
    values, there = numbers_of_two(a, b, what)
    n, parts = len(a), []
    for name, rows in zip(names, (slice(None, n), slice(n, None))):
        found = as_numbers(values[rows], None if there is None else there[rows], what, f"column {name!r}")
        parts.append(found)
    return parts[0][0], parts[1][0], parts[0][1], values.dtype


def _one_name(on, side_on, argument, side_argument, known, what):
    """The name of the column of times of a side."""
    if (on is None) == (side_on is None):
        raise ValueError(f"{what}: give either {argument}, or {side_argument} of both sides")
    names, several = names_of(on if side_on is None else side_on, known)
    if several and len(names) != 1:
        raise ValueError(f"{what}: times of {len(names)} columns; give one")
    return names[0]


def _keys(left, right, columns, names, nulls_equal, what):
    """The keys of both sides, which are all equal without names."""
    if names[0] is None and names[1] is None:
        sides = [np.zeros(len(frame), np.uint8) for frame in (left, right)]
    elif names[0] is None or names[1] is None:
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
    left, right : frames of pandas, of polars, or of pyarrow
        In any order: neither need be sorted by time.
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
        takes the one after.) Of several rows with the chosen time, it gets the last one in the order of
        `right` if that time is not after its own, and else the first one.
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
    frame
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
    frames = frames_of(left)
    if frames is None or frames is not frames_of(right) or frames is Device:
        advice = advice_on(left, advice_on(right, "pass two frames of pandas, of polars or of pyarrow"))
        raise TypeError(f"{what}: a {named(left)} and a {named(right)}; {advice}")
    suffixes, nulls_equal = suffixes_of(suffixes, what), flag(nulls_equal, what, "nulls_equal")
    exact = flag(allow_exact_matches, what, "allow_exact_matches")
    if not isinstance(direction, str) or direction not in _host.asof_directions:
        known = ", ".join(map(repr, _host.asof_directions))
        raise ValueError(f"{what}: direction={direction!r}; give one of {known}")
    (left_names, left_columns), (right_names, right_columns) = frames.columns(left), frames.columns(right)
    names = [
        _one_name(on, side_on, "`on`", "left_on and right_on", known, what)
        for side_on, known in ((left_on, left_names), (right_on, right_names))
    ]
    times = [
        columns_named(frame, [name], what, "on", columns).columns[0]
        for frame, name, columns in ((left, names[0], left_columns), (right, names[1], right_columns))
    ]
    if by is not None and (left_by is not None or right_by is not None):
        raise ValueError(f"{what}: give either `by`, or left_by and right_by")
    by = (left_by, right_by) if by is None else (by, by)
    a, b, sides = _keys(left, right, (left_columns, right_columns), by, nulls_equal, what)
    check_rows(a.n + b.n, INT64, what)
    l_times, r_times, kind, dtype = _times(*times, names, what)
    most = None if tolerance is None else distance_in(tolerance, dtype, what, "tolerance")
    narrow = len(right) < 2**31
    rows = _host.asof_join(
        NUMPY.place(), (a.words, l_times), (b.words, r_times), kind, (direction, exact, most, not narrow)
    )
    rows = Rows(NUMPY.adopt(rows, INT32 if narrow else INT64))
    once = {names[1]} if names[0] == names[1] else set()  # columns that only `left` gives
    if by[0] is not None:
        once |= {other for one, other in zip(sides[0].names, sides[1].names) if one == other}
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
    every = Rows(np.arange(len(left)), True)
    wanted = [(column, every) for column in left_columns] + [(column, rows) for _, column in rest]
    return like_axis(framed(frames, result, wanted), left, right)
