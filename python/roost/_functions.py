"""unique, factorize, isin, join, group_by and their kin."""

import operator

import numpy as np

from . import _host, _strings
from ._arrays import as_numpy
from ._keys import aligned, encode, encode_two, kind_of, words_of

_ORDERS = {"first": 0, "any": 2}
_MOST_ROWS = 2**32 - 2


def _wide(index_dtype, what):
    index_dtype = np.dtype(index_dtype)
    if index_dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"{what}: index_dtype {index_dtype}; give int32 or int64")
    return index_dtype == np.dtype(np.int64)


def _check_rows(n, wide, what):
    if n > _MOST_ROWS:
        raise OverflowError(f"{what}: {n} rows; at most 2^32 - 2 at once")
    if not wide and n > 2**31 - 1:
        raise OverflowError(f"{what}: {n} rows have no numbers of type int32; give index_dtype='int64'")


def _keys(x, what):
    """Words, Kind and Origin of keys, strings included."""
    array, origin = as_numpy(x, what)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.dtype.kind in "UO":
        return _strings.encode(array, what), _strings.StringKind(array), origin
    kind = kind_of(array, what)
    return words_of(array, kind), kind, origin


def unique(
    x, *, sorted=False, return_index=False, return_inverse=False, return_counts=False, index_dtype="int64"
):
    """The distinct keys of an array, like `numpy.unique` and `torch.unique`, by hashing instead of sorting.

    Parameters
    ----------
    x : array of n keys
        Integers, bools, floats, dates, fixed-size bytes of at most 32, strings; or n rows of a 2-D array of
        integers, of at most 32 bytes a row (unlike numpy's unique, which flattens).
    sorted : bool
        Whether the keys come in ascending order. Otherwise they come in order of first occurrence where
        `return_index` is true, and in no particular order, but the same each time, where it is not. Sorting
        the distinct keys is the slowest part.
    return_index, return_inverse, return_counts : bool
        Whether to return, besides: where each key occurs first, for each element of `x` the number of its
        key, how often each key occurs.
    index_dtype : "int64" or "int32"
        The type of index and inverse. int32 takes half the memory.

    Returns
    -------
    array, or a tuple of arrays
        The keys, then those of index, inverse (shape (n,)) and counts (int64) that were asked for, in this
        order, of the library that `x` is of. All NaNs count as one key, and -0.0 as 0.0, as with numpy.

    Raises
    ------
    TypeError, ValueError
        Keys that are none of the above.
    OverflowError
        More than 2^32 - 2 keys.
    MemoryError

    Notes
    -----
    Takes about four times the memory of `x` while it works. Any number of threads may call it.

    Examples
    --------
    >>> import numpy, roost
    >>> roost.unique(numpy.array([30, 10, 30]), return_index=True, return_counts=True)
    (array([30, 10]), array([0, 1]), array([2, 1]))
    """
    what = "roost.unique"
    wide = _wide(index_dtype, what)
    words, kind, origin = _keys(x, what)
    _check_rows(len(words), wide, what)
    order = _ORDERS["first" if return_index and not sorted else "any"]
    keys, first, inverse, counts = _host.unique(
        0, words, order, return_index, return_inverse, return_counts, wide
    )
    keys = kind.decode(keys)
    if sorted:
        by_key = np.lexsort(keys.T[::-1]) if keys.ndim == 2 else np.argsort(keys, kind="stable")
        keys = keys[by_key]
        first = first[by_key] if return_index else None
        counts = counts[by_key] if return_counts else None
        if return_inverse:
            rank = np.empty(len(by_key), inverse.dtype)
            rank[by_key] = np.arange(len(by_key), dtype=inverse.dtype)
            inverse = rank[inverse]
    results = [origin.wrap(a) for a in (keys, first, inverse, counts) if a is not None]
    return results[0] if len(results) == 1 else tuple(results)


def factorize(x, *, use_na_sentinel=True, index_dtype="int64"):
    """Numbers keys in order of first occurrence, like `pandas.factorize`.

    Parameters
    ----------
    x : array of n keys
        As for `unique`.
    use_na_sentinel : bool
        Whether NaN and NaT get the number -1, and are no key of `uniques`.
    index_dtype : "int64" or "int32"
        The type of `codes`.

    Returns
    -------
    codes : array of n numbers
        ``uniques[codes]`` is `x`.
    uniques : array
        The distinct keys in order of first occurrence.

    See Also
    --------
    unique : with counts, or in another order. Errors, cost and threads are the same.
    """
    what = "roost.factorize"
    wide = _wide(index_dtype, what)
    words, kind, origin = _keys(x, what)
    _check_rows(len(words), wide, what)
    uniques, _, codes, _ = _host.unique(0, words, _ORDERS["first"], False, True, False, wide)
    uniques = kind.decode(uniques)
    if use_na_sentinel and uniques.dtype.kind in "fmM":
        missing = np.flatnonzero(np.isnan(uniques) if uniques.dtype.kind == "f" else np.isnat(uniques))
        if len(missing):  # at most one: all are equal
            m = missing[0]
            codes = np.where(codes == m, -1, codes - (codes > m)).astype(codes.dtype)
            uniques = np.delete(uniques, m)
    return origin.wrap(codes), origin.wrap(uniques)


def isin(x, y, *, assume_unique=False, invert=False):
    """For each element of `x` whether it is one of `y`, like `numpy.isin` and `torch.isin`.

    Parameters
    ----------
    x, y : arrays of keys
        As for `unique`, of one type, or of two of which one holds all values of the other.
    assume_unique : bool
        Accepted, as numpy and torch have it; makes no difference.
    invert : bool
        Whether to tell which elements are not in `y`.

    Returns
    -------
    array of bool, as long as `x`

    Raises
    ------
    TypeError
        The types have no common one that keeps every key: int64 and uint64, integers and floats.

    Notes
    -----
    Builds a hash set of `y`. To ask the same `y` again, make a `Set` once. NaN is in an array with a NaN
    (numpy says it is not).
    """
    a, b, origin = encode_two(x, y, "roost.isin")
    found = np.empty(len(a), np.bool_)
    _host.isin(0, a, b, found)
    if invert:
        np.logical_not(found, out=found)
    return origin.wrap(found)


_JOINS = {"inner": 0, "left": 1, "semi": 2, "anti": 3}


def join(left, right, how="inner", *, index_dtype="int64"):
    """The rows of two columns that have equal keys.

    Parameters
    ----------
    left, right : arrays of keys
        As for `isin`. It is fastest if the keys of `right` are all different, or if it is the shorter one.
    how : "inner", "left", "semi" or "anti"
        inner: all pairs of rows with equal keys. left: besides these each row of `left` without a match, with
        -1. semi: the rows of `left` that have a match. anti: those that have none.
    index_dtype : "int64" or "int32"
        The type of the row numbers.

    Returns
    -------
    (array, array), for semi and anti an array
        Numbers of rows of `left`, ascending, and of the rows of `right` that belong to them, ascending for
        each left row. ``left[l]`` and ``right[r]`` are the joined rows.

    Raises
    ------
    MemoryError
        There are more pairs than there is memory; the message says how many.

    Examples
    --------
    >>> import numpy, roost
    >>> roost.join(numpy.array([1, 2, 2]), numpy.array([2, 3, 2]))
    (array([1, 1, 2, 2]), array([0, 2, 0, 2]))
    """
    what = "roost.join"
    if how not in _JOINS:
        raise ValueError(f"{what}: how={how!r}; give one of {', '.join(map(repr, _JOINS))}")
    wide = _wide(index_dtype, what)
    a, b, origin = encode_two(left, right, what)
    _check_rows(max(len(a), len(b)), wide, what)
    l, r = _host.join(0, a, b, _JOINS[how], wide)
    return origin.wrap(l) if r is None else (origin.wrap(l), origin.wrap(r))


def value_counts(x, *, sort=True):
    """How often each key occurs, like `pandas.Series.value_counts`.

    Parameters
    ----------
    x : array of keys
        As for `unique`.
    sort : bool
        Whether the most frequent key comes first; equally frequent ones in order of first occurrence.

    Returns
    -------
    keys, counts : arrays
        Unlike pandas, NaN is counted as a key.
    """
    words, kind, origin = _keys(x, "roost.value_counts")
    _check_rows(len(words), True, "roost.value_counts")
    keys, _, _, counts = _host.unique(0, words, _ORDERS["first"], False, False, True, True)
    keys = kind.decode(keys)
    if sort:
        by_count = np.argsort(-counts, kind="stable")
        keys, counts = keys[by_count], counts[by_count]
    return origin.wrap(keys), origin.wrap(counts)


def duplicated(x, *, keep="first"):
    """For each element of `x` whether it occurs elsewhere, like `pandas.Series.duplicated`.

    Parameters
    ----------
    x : array of keys
        As for `unique`.
    keep : "first" or False
        Which occurrence of a key is no duplicate: the first one, or none.

    Returns
    -------
    array of bool, as long as `x`
    """
    what = "roost.duplicated"
    if keep not in ("first", False):
        raise ValueError(f"{what}: keep={keep!r}; give 'first' or False")
    words, _, origin = _keys(x, what)
    _check_rows(len(words), True, what)
    _, first, inverse, counts = _host.unique(
        0, words, _ORDERS["first" if keep else "any"], bool(keep), not keep, not keep, True
    )
    if not keep:
        return origin.wrap(counts[inverse] > 1)
    result = np.ones(len(words), np.bool_)
    result[first] = False
    return origin.wrap(result)


def partition(x, parts, *, seed=0, index_dtype="int64"):
    """Divides rows into parts by the hashes of their keys, so that equal keys are in the same part.

    For work that is shared among processes or machines: each gets the rows of a part, of every table.

    Parameters
    ----------
    x : array of n keys
        As for `unique`, without strings.
    parts : int
        1 to 65536. Parts of different keys have about the same size.
    seed : int
        Chooses the hash function. Keys of one type are divided in the same way in each call with these parts
        and this seed.
    index_dtype : "int64" or "int32"
        The type of the row numbers.

    Returns
    -------
    rows : array of n numbers
        Row numbers, part after part, ascending in each.
    offsets : int64 array of parts + 1 numbers
        The rows of part p are ``rows[offsets[p]:offsets[p + 1]]``.

    Raises
    ------
    TypeError, ValueError
        Keys that are none, or another number of parts.
    OverflowError
        More than 2^32 - 2 rows.
    MemoryError

    Notes
    -----
    Reads and writes the keys about twice. Any number of threads may call it.

    Examples
    --------
    >>> import numpy, roost
    >>> customers = numpy.array([7, 3, 7, 5])
    >>> rows, offsets = roost.partition(customers, 2)
    >>> [sorted(set(customers[rows[offsets[p]:offsets[p + 1]]].tolist())) for p in range(2)]
    [[3, 7], [5]]
    """
    what = "roost.partition"
    wide, parts, seed = _wide(index_dtype, what), operator.index(parts), operator.index(seed)
    if not 1 <= parts <= 65536:
        raise ValueError(f"{what}: {parts} parts; give 1 to 65536")
    words, _, origin = encode(x, what)
    _check_rows(len(words), wide, what)
    if parts == 1:
        rows, offsets = np.arange(len(words), dtype=index_dtype), np.array([0, len(words)])
    else:
        rows, offsets = _host.partition(0, words, parts, seed % 2**64, wide)
    return origin.wrap(rows), origin.wrap(offsets)


_REDUCTIONS = {"sum": 0, "min": 1, "max": 2, "first": 3}


class GroupBy:
    """What `group_by` returns: keys, whose values are combined by `sum`, `mean`, `min`, `max`, `count`,
    `first`.

    Each method takes one or several arrays of values, one value a key (integers, bools, floats of 4 or 8
    bytes), and returns an array of results for each, in the order of `keys`. Results are the same for the
    same input each time, floats included: how additions are nested depends on the number of values only.
    """

    def __init__(self, words, kind, origin):
        self._words, self._kind, self._origin = words, kind, origin
        self._keys = self._counts = None

    def __len__(self):
        """The number of distinct keys."""
        return len(self.keys)

    def __repr__(self):
        return f"roost.GroupBy({len(self._words)} rows, keys of type {self._kind.dtype})"

    @property
    def keys(self):
        """The distinct keys, in an order without meaning that is the same each time."""
        if self._keys is None:
            self._reduce(np.zeros(len(self._words), np.int32), "first", "roost.GroupBy.keys")
        return self._keys

    def count(self):
        """How many rows each key has: int64."""
        if self._keys is None:
            self.keys  # counts come with them
        return self._counts

    def sum(self, *values):
        """Sums: int64 of integers and bools, uint64 of unsigned ones (both wrap around), floats of floats."""
        return self._all("sum", values)

    def mean(self, *values):
        """Means, as float64."""

        def mean(column):
            column, origin = self._column(column, "roost.GroupBy.mean")
            sums = self._reduce(column.astype(np.float64, copy=False), "sum", "roost.GroupBy.mean")
            return origin.wrap(sums / as_numpy(self._counts, "")[0])

        return self._each(mean, values, "mean")

    def min(self, *values):
        """The least values, of the type of the values; NaN if one is NaN."""
        return self._all("min", values)

    def max(self, *values):
        """The greatest values, of the type of the values; NaN if one is NaN."""
        return self._all("max", values)

    def first(self, *values):
        """The values of each key's first row."""
        return self._all("first", values)

    def _each(self, function, columns, name):
        if not columns:
            raise TypeError(f"roost.GroupBy.{name}: no values; pass one or several arrays")
        results = tuple(function(column) for column in columns)
        return results[0] if len(results) == 1 else results

    def _all(self, how, columns):
        what = f"roost.GroupBy.{how}"

        def one(column):
            column, origin = self._column(column, what)
            return origin.wrap(self._reduce(column, how, what))

        return self._each(one, columns, how)

    def _column(self, values, what):
        array, origin = as_numpy(values, what)
        if array.ndim != 1 or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise TypeError(
                f"{what}: values of type {array.dtype} and shape {array.shape}; pass one dimension of numbers"
            )
        if len(array) != len(self._words):
            raise ValueError(f"{what}: {len(self._words)} keys but {len(array)} values; give as many")
        return array, origin

    def _reduce(self, column, how, what):
        dtype = column.dtype.newbyteorder("=")
        small = {"b": np.int32, "i": np.int32, "u": np.uint32, "f": np.float32}
        wide = column.astype(small[dtype.kind] if dtype.itemsize < 4 else dtype, copy=False)
        keys, values, counts = _host.reduce(
            0, self._words, aligned(np.ascontiguousarray(wide)), _REDUCTIONS[how]
        )
        if self._keys is None:
            keys = self._kind.decode(keys)
            self._keys = self._origin.wrap(keys)
            self._counts = self._origin.wrap(counts)
        return values if how == "sum" and dtype.kind != "f" else values.astype(dtype, copy=False)


def group_by(keys):
    """Groups rows by key: ``roost.group_by(customers).sum(amounts)``.

    Parameters
    ----------
    keys : array of n keys
        As for `unique`.

    Returns
    -------
    GroupBy

    Examples
    --------
    >>> import numpy, roost
    >>> g = roost.group_by(numpy.array([7, 8, 7]))
    >>> dict(zip(g.keys.tolist(), g.sum(numpy.array([1.5, 2.0, 3.0])).tolist())) == {7: 4.5, 8: 2.0}
    True
    """
    words, kind, origin = _keys(keys, "roost.group_by")
    _check_rows(len(words), True, "roost.group_by")
    return GroupBy(words, kind, origin)
