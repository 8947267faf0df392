"""merge: joins of frames."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _host
from ._arrays.exact import alike, common_type, convert_some
from ._arrays.frames import Device, Rows, columns_named, frames_of, of_capsules, with_suffix, zone_of
from ._functions import join_as
from ._keys.columns import ZONED, take_column
from ._keys.strings import Texts

_ALONE = 2**17  # rows that take less time than threads do


def _taken(frames, wanted):
    """The values of some rows of columns, by several threads: this takes most of the time of a merge."""
    alone = frames is Device or _host.threads() == 1
    if alone or sum(len(rows) for _, rows in wanted) < _ALONE:
        return [frames.take(*each) for each in wanted]
    with ThreadPoolExecutor(_host.threads()) as pool:
        return list(pool.map(lambda each: frames.take(*each), wanted))


def _named(frame):
    """Its type, with the library's name: all of them call a frame DataFrame."""
    library, _, _ = type(frame).__module__.partition(".")
    return type(frame).__name__ if library == "builtins" else f"{library}.{type(frame).__name__}"


def _suffixes(suffixes, what):
    """Two texts; None, as in pandas, is an empty one."""
    if isinstance(suffixes, (list, tuple)) and len(suffixes) == 2:
        one, other = ("" if suffix is None else suffix for suffix in suffixes)
        if isinstance(one, str) and isinstance(other, str):
            return one, other
    raise TypeError(f"{what}: suffixes={suffixes!r}; give two texts")


def _joined(frames, one, other, what):
    """The values of two columns of keys, one after the other, in a type that has them all."""
    try:
        if frames is Device or frames.are_alike(one, other):
            return frames.joined(one, other)
        a, b = take_column(one, what), take_column(other, what)
        texts = [isinstance(column.array, Texts) for column in (a, b)]
        if a.unit == b.unit and (all(texts) or a.unit not in (None, ZONED)):
            return frames.joined(one, other)
        if a.unit == b.unit and not any(texts) and alike(a.array.dtype, b.array.dtype):
            made = frames.numbers(*_numbers(a, b, what), one, other)
            return frames.in_zone(made, zone_of(one)) if a.unit else made
    except (MemoryError, OverflowError):
        raise
    except Exception as error:  # each library has its own
        why = " ".join(str(error).split())
        raise TypeError(f"{what}: keys of two types without a common one ({why}); convert one") from None
    values, rows = (other, [-1] * len(one)) if a.blank else (one, range(len(one)))
    rest = range(len(other)) if a.blank else [-1] * len(other)
    return frames.take(values, np.array([*rows, *rest], np.int64))


def _numbers(a, b, what):
    """The values of two Columns of numbers or dates, and which are there, in a type that holds all: the
    common one, or that of one of them."""
    mine, others = a.array.dtype, b.array.dtype
    for dtype in (common_type(mine, others), mine, others):
        if dtype is not None:
            parts, held = zip(*(convert_some(column.array, dtype, what) for column in (a, b)))
            there = [np.ones(len(c), bool) if c.there is None else c.there for c in (a, b)]
            if all((has | ~is_there).all() for has, is_there in zip(held, there)):
                there = np.concatenate(there)
                return np.concatenate(parts), None if there.all() else there
    raise OverflowError(f"{what}: keys that neither {mine} nor {others} holds all; convert one column")


def merge(
    left,
    right,
    on=None,
    *,
    left_on=None,
    right_on=None,
    how="inner",
    suffixes=("_x", "_y"),
    nulls_equal=False,
):
    """Joins two frames, like `pandas.merge` and `polars.DataFrame.join`.

    Parameters
    ----------
    left, right : frames of pandas, of polars, or of pyarrow, or tables of Arrow on a device
    on : name of a column, or list of names
        The key columns, which both frames have. By default, all columns that both have.
    left_on, right_on : names, or lists of the same number of names
        The key columns, if their names differ in the two frames. They go by their places: names may be those
        of `on` in another order. In the result they are named as in `left`.
    how : "inner", "left", "right", "outer", "semi" or "anti"
        Which rows the result has, and in which order: see `join`.
    suffixes : two texts
        What is added to the names of other columns that both frames have, even if as a key in `left`; to the
        last part of a name that is a tuple.
    nulls_equal : bool
        Whether keys that are null match each other. Otherwise they have no match, as in SQL. NaN, and NaT of
        numpy's types, are values that match.

    Returns
    -------
    frame
        The keys, once; then the other columns of `left` and those of `right`; for semi and anti the rows of
        `left`. Columns keep their types. If a row has no match, the columns of the other frame are null, or
        what the library has instead: a NaN converts a column of numpy integers to floats, or to Int64 or
        UInt64 if one is beyond 2^53. Keys of two types: see docs/python.md. The index of a pandas frame is
        ignored; the result has a new one.

    Raises
    ------
    TypeError, KeyError, ValueError
        Frames of two libraries; names that no column has; two columns of the result with the same name.
    OverflowError
        how="outer", and keys of two types, of which none holds all of them.

    Examples
    --------
    >>> import pandas, roost
    >>> orders = pandas.DataFrame({"shop": [1, 2, 1], "sum": [5, 6, 7]})
    >>> shops = pandas.DataFrame({"shop": [1, 3], "town": ["Bath", "York"]})
    >>> roost.merge(orders, shops, on="shop")
       shop  sum  town
    0     1    5  Bath
    1     1    7  Bath
    """
    what = "roost.merge"
    left, right = of_capsules(left), of_capsules(right)
    frames = frames_of(left)
    if frames is None or frames is not frames_of(right):
        raise TypeError(
            f"{what}: a {_named(left)} and a {_named(right)}; pass two frames of pandas, of polars "
            "or of pyarrow, or two tables of Arrow on a device"
        )
    suffixes = _suffixes(suffixes, what)
    (left_names, left_columns), (right_names, right_columns) = frames.columns(left), frames.columns(right)
    if (left_on is None) != (right_on is None) or (on is not None and left_on is not None):
        raise ValueError(f"{what}: give either `on`, or both `left_on` and `right_on`")
    if left_on is None:
        left_on = right_on = [name for name in left_names if name in right_names] if on is None else on
        if on is None and not left_on:
            raise ValueError(
                f"{what}: frames without a common column; give `on`, or `left_on` and `right_on`"
            )
    a = columns_named(left, left_on, what, "left_on" if on is None else "on")
    b = columns_named(right, right_on, what, "right_on" if on is None else "on")
    (left_keys, keys), (right_keys, other_keys) = frames.columns(a), frames.columns(b)
    if len(keys) == len(other_keys):  # keys go by their places, so that names may be in any order
        b = frames.frame(left_keys, other_keys)
    narrow = len(left) + len(right) < 2**31
    rows = join_as(a, b, how, "int32" if narrow else "int64", nulls_equal, what)
    if how in ("semi", "anti"):
        rows = Rows(rows)
        return frames.frame(left_names, _taken(frames, [(column, rows) for column in left_columns]))
    l, r = rows
    # Rows of the side that keeps all of its own ascend: as many are all of them, once.
    l_rows = Rows(l, how == "left" and len(l) == len(left))
    r_rows = Rows(r, how == "right" and len(r) == len(right))
    names, wanted = list(left_keys), []
    for key, other in zip(keys, other_keys):
        if how == "outer" or (how == "right" and str(zone_of(key)) != str(zone_of(other))):
            joined = _joined(frames, key, other, f"{what}: column {left_keys[len(wanted)]!r}")
            wanted.append((joined, Rows(l + (l < 0) * (len(key) + r - l))))
        else:
            wanted.append((other, r_rows) if how == "right" else (key, l_rows))
    rest = [name for name in left_names if name not in left_keys]
    other_rest = [name for name in right_names if name not in right_keys]
    for mine, others, suffix in ((rest, other_rest, suffixes[0]), (other_rest, left_names, suffixes[1])):
        names += [with_suffix(name, suffix) if name in others else name for name in mine]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{what}: the result would have two columns {', '.join(twice)}; rename one, or give other "
            "suffixes"
        )
    for known, mine, all_columns, side in (
        (left_names, rest, left_columns, l_rows),
        (right_names, other_rest, right_columns, r_rows),
    ):
        wanted += [(all_columns[known.index(name)], side) for name in mine]
    return frames.frame(names, _taken(frames, wanted))
