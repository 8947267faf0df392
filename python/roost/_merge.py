"""merge: joins of frames."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _host
from ._arrays.arrow import DeviceColumn
from ._arrays.exact import advice_on, alike, common_type, convert_some
from ._arrays.frames import (
    Device,
    Pandas,
    Rows,
    columns_named,
    frames_of,
    like_axis,
    of_capsules,
    selected,
    with_suffix,
    zone_of,
)
from ._device import on_device
from ._functions import duplicated_as, how_of, isin_as, join_as
from ._keys.columns import ZONED, take_column
from ._keys.strings import Texts
from ._options import MOST_ROWS, flag

_ALONE = 2**17  # rows that take less time than threads do
_VALIDATE = {"1:1": (True, True), "1:m": (True, False), "m:1": (False, True), "m:m": (False, False)}
_VALIDATE |= dict(zip(("one_to_one", "one_to_many", "many_to_one", "many_to_many"), _VALIDATE.values()))
_SIDES = ["left_only", "right_only", "both"]  # as an indicator names them


def _taken(frames, wanted):
    """The values of some rows of columns, by several threads: this takes most of the time of a merge."""
    alone, take = frames is Device or _host.threads() == 1, Pandas.taken if frames is Pandas else frames.take
    if alone or sum(len(rows) for _, rows in wanted) < _ALONE:
        return [take(*each) for each in wanted]
    with ThreadPoolExecutor(_host.threads()) as pool:
        return list(pool.map(lambda each: take(*each), wanted))


def named(frame):
    """Its type, with the library's name: all of them call a frame DataFrame."""
    library, _, _ = type(frame).__module__.partition(".")
    return type(frame).__name__ if library == "builtins" else f"{library}.{type(frame).__name__}"


def suffixes_of(suffixes, what):
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
            made = frames.numbers(*numbers_of_two(a, b, what), one, other)
            return frames.in_zone(made, zone_of(one)) if a.unit else made
    except (MemoryError, OverflowError):
        raise
    except Exception as error:  # each library has its own
        why = " ".join(str(error).split())
        raise TypeError(f"{what}: keys of two types without a common one ({why}); convert one") from None
    values, rows = (other, [-1] * len(one)) if a.blank else (one, range(len(one)))
    rest = range(len(other)) if a.blank else [-1] * len(other)
    return frames.take(values, np.array([*rows, *rest], np.int64))


def numbers_of_two(a, b, what):
    """The values of two Columns of numbers or dates, and which are there, in a type that holds all: the
    common one, or that of one of them."""
    mine, others = a.array.dtype, b.array.dtype
    for dtype in (common_type(mine, others), mine, others):
        if dtype is not None:
            parts, held = zip(*(convert_some(column.array, dtype, what) for column in (a, b)))
            there = [np.ones(len(c), bool) if c.there is None else c.there for c in (a, b)]
            if all((has | ~is_there).all() for has, is_there in zip(held, there)):
                values, there = np.concatenate(parts), np.concatenate(there)
                if values.dtype.kind in "mM":
                    there &= ~np.isnat(values)
                return values, None if there.all() else there
    raise OverflowError(f"{what}: keys that neither {mine} nor {others} holds all; convert one column")


def _name_of_indicator(indicator, how, frames, what):
    """The name of the column that says where a row is from; None: there is none."""
    if not isinstance(indicator, str):
        indicator = "_merge" if flag(indicator, what, "indicator") else None
    if indicator and how in ("semi", "anti"):
        raise ValueError(f"{what}: indicator={indicator!r}, but how={how!r} has rows of `left` alone")
    if indicator and frames is Device:
        raise TypeError(f"{what}: indicator={indicator!r}, but tables of Arrow on a device; leave it out")
    return indicator


class _Keys:
    """What frames are merged by: the keys of both sides, `a` and `b`, and their `columns`. `own`: the names
    of those that are columns of a side; `names`: of those in the result."""

    names, own, columns = [], ([], []), ([], [])

    def __init__(self, left, right, columns, names, by_index, arguments, what):
        frames = frames_of(left)
        self.a = self._side(left, columns[0], names[0], by_index[0], what, arguments[0])
        self.b = self._side(right, columns[1], names[1], by_index[1], what, arguments[1])
        if all(by_index) and left.index.nlevels > 1 and left.index.names != right.index.names:
            raise TypeError(
                f"{what}: indexes of {list(left.index.names)} and {list(right.index.names)}; give their "
                "levels the same names in one order"
            )
        mine, keys, others, other_keys = self.a.names, self.a.columns, self.b.names, self.b.columns
        self.names, self.columns = (others if by_index[0] else mine), (keys, other_keys)
        self.own = [] if by_index[0] else mine, [] if by_index[1] else others
        if len(keys) == len(other_keys):  # keys go by their places, so that names may be in any order
            self.a = selected(frames, self.names, keys) if by_index[0] else self.a
            self.b = selected(frames, self.names, other_keys)

    @staticmethod
    def _side(frame, columns, names, by_index, what, argument):
        if not by_index:
            return columns_named(frame, names, what, argument, columns)
        names = [place if name is None else name for place, name in enumerate(frame.index.names)]
        return selected(Pandas, names, Pandas.levels(frame.index))

    def expect_distinct(self, validate, nulls_equal, what):
        """Raises a ValueError if keys repeat on a side where they must not."""
        for side, keys, is_one in zip(("left", "right"), (self.a, self.b), _VALIDATE[validate]):
            again = duplicated_as(keys, "first", what)[0] if is_one else np.False_
            if again.any():
                again &= isin_as(keys, keys, nulls_equal, what)  # all but nulls, which match nothing
            if again.any():
                raise ValueError(
                    f"{what}: validate={validate!r}, but keys of `{side}` repeat, first in row "
                    f"{again.tolist().index(True)}; drop_duplicates leaves out copies"
                )


class _AllPairs(_Keys):
    """Keys that are all equal, for how="cross"."""

    def __init__(self, left, right, what):
        n, m = len(left), len(right)
        if n * m > MOST_ROWS:
            raise OverflowError(
                f"{what}: how='cross' of {n} and {m} rows makes {n * m}; pass fewer, for at most 2^32 - 2"
            )
        self.a, self.b = np.zeros(n, np.uint8), np.zeros(m, np.uint8)
        if frames_of(left) is Device:
            self.a, self.b = (
                DeviceColumn.of_array(left.library.of_numpy(each), left.library) for each in (self.a, self.b)
            )


def _keys_of(left, right, known, columns, ways, how, what):
    """The _Keys that arguments name. `known`: the names of both sides' `columns`; `ways`: pairs of `on`, of
    names and of indexes, None where it was not given."""
    given = [sum(way[side] is not None for way in ways) for side in (0, 1)]
    if how == "cross":
        if given != [0, 0]:
            raise ValueError(f"{what}: how='cross' pairs all rows; leave out the keys")
        return _AllPairs(left, right, what)
    if given not in ([0, 0], [1, 1]):
        raise ValueError(
            f"{what}: give either `on`, or `left_on` or left_index, and with it `right_on` or right_index"
        )
    on, names, by_index = ways
    if on[0] is not None:
        return _Keys(left, right, columns, on, (False, False), ("on", "on"), what)
    if given == [0, 0]:
        common = [name for name in known[0] if name in known[1]]
        if not common:
            raise ValueError(
                f"{what}: frames without a common column; give `on`, or `left_on` and `right_on`"
            )
        names = common, common
    by_index = [by is not None for by in by_index]
    return _Keys(left, right, columns, names, by_index, ("left_on", "right_on"), what)


def framed(frames, names, wanted, index=(), index_names=None):
    """A frame of some rows of columns, and of levels of an index, if it has one."""
    taken = _taken(frames, [*index, *wanted])
    frame = frames.frame(names, taken[len(index) :])
    return Pandas.indexed(frame, taken[: len(index)], index_names) if index else frame


@on_device
def merge(
    left,
    right,
    on=None,
    *,
    left_on=None,
    right_on=None,
    left_index=False,
    right_index=False,
    how="inner",
    suffixes=("_x", "_y"),
    indicator=False,
    validate=None,
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
    left_index, right_index : bool
        Whether the keys of a frame of pandas are the levels of its index, instead of columns. If both are,
        the result has them as its index. If one is, the result has the key columns of the other frame, and
        its index, as in pandas.
    how : "inner", "left", "right", "outer" (or "full"), "semi", "anti" or "cross"
        Which rows the result has, and in which order: see `join`. These are the rows of `pandas.merge` in the
        same order, except that pandas sorts those of "outer" by key, also with sort=False. cross: each row of
        `left` with all rows of `right`, without keys.
    suffixes : two texts
        What is added to the names of other columns that both frames have, even if as a key in `left`; to the
        last part of a name that is a tuple. None adds nothing.
    indicator : bool, or a name
        Whether the last column, `_merge` or of that name, says where a row is from: "left_only", "right_only"
        or "both", as categories of pandas, an Enum of polars, or a dictionary of Arrow.
    validate : "1:1", "1:m", "m:1" or "m:m"; or "one_to_one" and so on
        Which sides, those with a 1, must not have a key twice; otherwise this is a ValueError. Nulls may
        repeat if they match nothing; pandas counts them.
    nulls_equal : bool
        Whether keys that are null match each other. Otherwise they have no match, as in SQL. NaN, and NaT of
        numpy's types, are values that match.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    frame
        The keys, once; then the other columns of `left` and those of `right`; for semi and anti the rows of
        `left`. Columns keep their types. If a row has no match, the columns of the other frame are null, or
        what the library has instead: a NaN converts a column of numpy integers to floats, or to Int64 or
        UInt64 if one is beyond 2^53. Keys of two types: see docs/python.md. The index of a pandas frame is
        ignored, unless `left_index` or `right_index` is true; the result has a new one.

    Raises
    ------
    TypeError, KeyError, ValueError
        Frames of two libraries; names that no column has; columns of two frames that get the same name; keys
        that repeat, with `validate`; the index of a frame of another library than pandas.
    OverflowError
        how="outer", and keys of two types, of which none holds all of them; how="cross", and more than
        2^32 - 2 rows of the result.

    Examples
    --------
    >>> import pandas, roost
    >>> orders = pandas.DataFrame({"shop": [1, 2, 1], "sum": [5, 6, 7]})
    >>> shops = pandas.DataFrame({"shop": [1, 3], "town": ["Bath", "York"]})
    >>> roost.merge(orders, shops, on="shop", validate="m:1")
       shop  sum  town
    0     1    5  Bath
    1     1    7  Bath
    """
    what = "roost.merge"
    left, right = of_capsules(left), of_capsules(right)
    frames = frames_of(left)
    if frames is None or frames is not frames_of(right):
        advice = "pass two frames of pandas, of polars or of pyarrow, or two tables of Arrow on a device"
        advice = advice_on(left, advice_on(right, advice))
        raise TypeError(f"{what}: a {named(left)} and a {named(right)}; {advice}")
    how, suffixes = how_of(how, what, "cross"), suffixes_of(suffixes, what)
    nulls_equal = flag(nulls_equal, what, "nulls_equal")
    by_index = flag(left_index, what, "left_index"), flag(right_index, what, "right_index")
    indicator = _name_of_indicator(indicator, how, frames, what)
    if validate is not None and (not isinstance(validate, str) or validate not in _VALIDATE):
        raise ValueError(f"{what}: validate={validate!r}; give one of {', '.join(map(repr, _VALIDATE))}")
    if any(by_index) and frames is not Pandas:
        raise TypeError(f"{what}: left_index or right_index, but a {named(left)} has none; name columns")
    (left_names, left_columns), (right_names, right_columns) = frames.columns(left), frames.columns(right)
    ways = (on, on), (left_on, right_on), tuple(by or None for by in by_index)
    columns = left_columns, right_columns
    keys = _keys_of(left, right, (left_names, right_names), columns, ways, how, what)
    if validate is not None:
        keys.expect_distinct(validate, nulls_equal, what)
    narrow = len(left) + len(right) < 2**31
    how = "inner" if how == "cross" else how
    rows = join_as(keys.a, keys.b, how, "int32" if narrow else "int64", nulls_equal, what)
    index, index_names = (), None
    if how in ("semi", "anti"):
        rows = Rows(rows, len(rows) == len(left))
        if any(by_index):
            index, index_names = [(level, rows) for level in Pandas.levels(left.index)], left.index.names
        wanted = [(column, rows) for column in left_columns]
        return like_axis(framed(frames, left_names, wanted, index, index_names), left)
    l, r = rows
    # Rows of a side that keeps all of its own ascend: as many are all of them, once.
    kept = how in ("left", "outer") or (how == "inner" and frames is not Device and len(l) == len(left))
    l_rows = Rows(l, kept and len(l) == len(left) and (how != "inner" or bool((l[1:] != l[:-1]).all())))
    r_rows = Rows(r, how == "right" and len(r) == len(right))
    names, wanted = list(keys.names), []
    for name, key, other in zip(names, *keys.columns):
        if how == "outer" or (how == "right" and str(zone_of(key)) != str(zone_of(other))):
            joined = _joined(frames, key, other, f"{what}: column {name!r}")
            wanted.append((joined, Rows(l + (l < 0) * (len(key) + r - l))))
        else:
            wanted.append((other, r_rows) if how == "right" else (key, l_rows))
    if all(by_index):
        index, index_names = wanted, (right if how == "right" else left).index.names
        names, wanted = [], []
    elif any(by_index):
        other, its_rows = (right, r_rows) if by_index[0] else (left, l_rows)
        index, index_names = [(level, its_rows) for level in Pandas.levels(other.index)], other.index.names
    rest = [pair for pair in zip(left_names, left_columns) if pair[0] not in keys.own[0]]
    other_rest = [pair for pair in zip(right_names, right_columns) if pair[0] not in keys.own[1]]
    origins = list(enumerate(names))
    for side, mine, others, suffix, its_rows in (
        ("left", rest, [*(name for name, _ in other_rest), *names], suffixes[0], l_rows),
        ("right", other_rest, left_names, suffixes[1], r_rows),
    ):
        origins += [(side, name) for name, _ in mine]
        names += [with_suffix(name, suffix) if name in others else name for name, _ in mine]
        wanted += [(column, its_rows) for _, column in mine]
    if indicator:
        names.append(indicator)
        origins.append((None, indicator))
        wanted.append((frames.categories(_SIDES), Rows(np.where(r < 0, 0, np.where(l < 0, 1, 2)))))
    of = {}  # a frame of pandas or Arrow may itself have several columns of a name
    pairs = zip(names, origins)
    twice = sorted({str(name) for name, origin in pairs if of.setdefault(name, origin) != origin})
    if twice:
        raise ValueError(
            f"{what}: the result would have two columns {', '.join(twice)}; rename one, or give other "
            "suffixes"
        )
    return like_axis(framed(frames, names, wanted, index, index_names), left, right)
