"""unique, factorize, isin, join and related functions."""

import numpy as np

from ._arrays.frames import (
    beside,
    beside_keys,
    columns_named,
    expect_no_own_order,
    frames_of,
    frames_of_column,
    name_of,
    of_capsules,
)
from ._arrays.take import take
from ._arrays.types import BOOL, FLOAT64, INT64, UINT8
from ._device import on_device
from ._keys.arrow import ArrowKind
from ._keys.columns import are_columns
from ._keys.arrow import ArrowKind
from ._keys.columns import are_columns
from ._keys.packing import encode_columns, encode_two_columns
from ._keys.strings import StringKeys
from ._keys.words import encode
from ._options import check_rows, flag, integer, rows_type


def distinct(x, order, rows, index=False, inverse=False, counts=False, missing=None, signs=None):
    """The distinct keys of the Keys x, as its kind decodes them; and, if wanted, where each first occurs, the
    number of each row's key, and how often each occurs. `missing`: the word that stands for no key. `signs`:
    what Kind.signs says; then keys are in ascending order."""
    library, by_rows = x.library, isinstance(x.kind, ArrowKind)
    if isinstance(x, StringKeys):
        first, numbers = x.numbered(rows)
        keys = x.texts[first] if x.kind.column is None else first
        return keys, first, numbers, np.bincount(numbers, minlength=len(first)) if counts else None
    index = index or by_rows
    keys, first, numbers, counted = library.call(
        "unique", x.words, order == "first", index, inverse, counts, rows is INT64, missing, signs
    )
    first = library.adopt(first, rows) if index else None
    if by_rows:
        keys = first if x.kept is None else library.rows(x.kept, first)
    return (
        keys if by_rows else x.kind.decode(keys, library),
        first,
        library.adopt(numbers, rows) if inverse else None,
        library.adopt(counted, INT64) if counts else None,
    )


@on_device
def unique(
    x, *, sorted=False, return_index=False, return_inverse=False, return_counts=False, index_dtype="int64"
):
    """The distinct keys of an array, like `numpy.unique` and `torch.unique`, by hashing instead of sorting.

    Parameters
    ----------
    x : array of n keys, or several columns
        Integers, bools, floats, dates, fixed-size bytes of at most 32, strings; or n rows of a 2-D array of
        integers, of at most 32 bytes a row (unlike numpy's unique, which flattens). Several columns, each
        with or without nulls, are a tuple of arrays or lists, or a frame of pandas, polars or pyarrow; a
        tuple of tuples is refused (TypeError). Columns and tables of Arrow in memory of a device stay there,
        and give such keys (docs/python.md).
    sorted : bool
        Whether keys are in ascending order, by the first column first, nulls last. Otherwise they are in
        order of first occurrence if `return_index` is true; if not, they are in no particular order, but in
        the same order on every run. Sorting the distinct keys is the slowest part. Ordered categories cannot
        be sorted (TypeError): keys are compared by value.
    return_index, return_inverse, return_counts : bool
        Whether to return also: where each key first occurs; the number of the key of each element of `x`; how
        often each key occurs.
    index_dtype : "int64" or "int32"
        The type of index and inverse. int32 takes half the memory.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    array, or a tuple of arrays
        The keys, then the requested ones of index, inverse (shape (n,)) and counts (int64), in this order, of
        the library of `x`: for a column of pandas, polars or pyarrow all but the index are columns, the
        inverse with the index of `x`, and keys have its type and name. All NaNs count as one key, and -0.0 as
        0.0, as with numpy. Nulls are one key, too; keys of a numpy masked array are such an array. If `x` is
        a tuple, the keys are a tuple; if it is a frame, they are a frame with columns of the same types.

    Raises
    ------
    TypeError, ValueError
        `x` is none of the above.
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
    rows = rows_type(index_dtype, what)
    sorted, return_index = flag(sorted, what, "sorted"), flag(return_index, what, "return_index")
    return_inverse = flag(return_inverse, what, "return_inverse")
    return_counts = flag(return_counts, what, "return_counts")
    given = of_capsules(x)
    if sorted:
        expect_no_own_order(given, what)
    x = encode_columns(given, what)
    check_rows(x.n, rows, what)
    library = x.library
    order = "first" if return_index and not sorted else "any"
    signs = x.kind.signs() if sorted else None
    keys, first, inverse, counts = distinct(
        x, order, rows, return_index, return_inverse, return_counts, signs=signs
    )
    if sorted and signs is None:
        by_key = x.kind.argsort(keys, library)
        keys = x.kind.rows(keys, by_key, library)
        first = library.rows(first, by_key) if return_index else None
        counts = library.rows(counts, by_key) if return_counts else None
        if return_inverse:
            rank, target = library.output(len(by_key), rows)
            library.module.invert_rows(library.place(), library.column(by_key), target)
            inverse = library.rows(library.finish(rank, rows), inverse)
    keys = x.kind.result(keys, library, x.model)
    if not (return_index or return_inverse or return_counts):
        return keys
    results = [keys, first] if return_index else [keys]
    results += [beside(given, inverse)] if return_inverse else []
    results += [beside_keys(x.model, counts)] if return_counts else []
    return tuple(results)


@on_device
def factorize(x, *, use_na_sentinel=True, index_dtype="int64"):
    """Numbers keys in order of first occurrence, like `pandas.factorize`.

    Parameters
    ----------
    x : array of n keys, or several columns
        As for `unique`.
    use_na_sentinel : bool
        Whether nulls, NaN and NaT get the number -1, and are left out of `uniques`. Rows of several columns
        are always numbered, as pandas numbers those of a MultiIndex.
    index_dtype : "int64" or "int32"
        The type of `codes`.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    codes : array of n numbers
        ``uniques[codes]`` is `x`; of columns of pandas and pyarrow, ``uniques.take(codes)``.
    uniques : array
        The distinct keys in order of first occurrence. For a column of pandas, polars or pyarrow, both are
        columns, codes with its index.

    See Also
    --------
    unique : with counts, or in another order. Errors, cost and threads are the same.
    """
    what = "roost.factorize"
    rows = rows_type(index_dtype, what)
    use_na_sentinel = flag(use_na_sentinel, what, "use_na_sentinel")
    given = of_capsules(x)
    x = encode_columns(given, what, use_na_sentinel)
    check_rows(x.n, rows, what)
    missing = x.kind.missing if use_na_sentinel else None
    uniques, _, codes, _ = distinct(x, "first", rows, inverse=True, missing=missing)
    if x.kept is not None:
        numbers, codes = codes, x.library.output(x.given, rows)[0]
        codes[:] = -1
        codes[x.kept] = numbers
    uniques = x.kind.result(uniques, x.library, x.model)
    if use_na_sentinel and isinstance(uniques, np.ma.MaskedArray):  # of which none is null
        uniques = np.ma.getdata(uniques)
    return beside(given, codes), uniques


@on_device
def isin(x, y, *, assume_unique=False, invert=False, nulls_equal=False):
    """Whether each element of `x` is in `y`, like `numpy.isin` and `torch.isin`.

    Parameters
    ----------
    x, y : arrays of keys, or several columns
        As for `unique`, with the same number of columns; of one type, or of two types that can be equal:
        numbers of two types are compared exactly (1 equals 1.0, 2**53 + 1 equals no float).
    assume_unique : bool
        Accepted because numpy and torch have it; makes no difference.
    invert : bool
        Whether to return which elements are not in `y`.
    nulls_equal : bool
        Whether a null is in `y` if `y` has one. Otherwise no row with a null is, as in SQL.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    array of bool, as long as `x`; for a column or frame, a column of its library, with its name and index

    Raises
    ------
    TypeError
        Values of these types are never equal: numbers and strings.

    Notes
    -----
    Builds a hash set of `y`. To use the same `y` again, build a `Set` once. NaN is found in an array that has
    a NaN (unlike in numpy).
    """
    invert = flag(invert, "roost.isin", "invert")
    nulls_equal = flag(nulls_equal, "roost.isin", "nulls_equal")
    x = of_capsules(x)
    found = isin_as(x, y, nulls_equal, "roost.isin")
    return beside(x, ~found if invert else found, name_of(x))


def isin_as(x, y, nulls_equal, what):
    """`isin` as an array, for a function of this name."""
    a, b = encode_two_columns(x, y, what, nulls_equal)
    library = a.library
    found, target = library.output(a.n, BOOL)
    library.call("isin", a.words, b.words, target)
    return library.finish(found, BOOL)


_HOW = ("inner", "left", "right", "outer", "full", "semi", "anti")


@on_device
def join(left, right, how="inner", *, index_dtype="int64", nulls_equal=False):
    """The rows of two columns, or of two tables of several columns, that have equal keys.

    Parameters
    ----------
    left, right : arrays of keys, or several columns
        As for `isin`. It is fastest if the keys of `right` are all different, or if it is the shorter one.
    how : "inner", "left", "right", "outer" (or "full"), "semi" or "anti"
        inner: all pairs of rows with equal keys. left: these, and each row of `left` without a match, paired
        with -1. right: the same for the rows of `right`. outer: both. semi: the rows of `left` that have a
        match. anti: the rows of `left` that have none.
    index_dtype : "int64" or "int32"
        The type of the row numbers.
    nulls_equal : bool
        Whether a null is equal to a null. Otherwise no row with a null has a match, as in SQL.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    See Also
    --------
    merge : which returns a frame.

    Returns
    -------
    l, r : arrays; with how="semi" and "anti" only l
        Row numbers of `left`, ascending, and of the matching rows of `right`, ascending for each left row:
        ``left[l]`` and ``right[r]`` are the joined rows, where neither number is -1. With how="right", the
        numbers in r ascend, and those in l for each of them. With how="outer", the rows of `right` without a
        match come last, ascending (pandas sorts them by key). For columns and frames they are arrays of
        numpy, which pandas' `iloc` and `take`, polars' brackets and pyarrow's `take` accept.

    Raises
    ------
    MemoryError
        There is not enough memory for the pairs; the message says how many there are.

    Examples
    --------
    >>> import numpy, roost
    >>> roost.join(numpy.array([1, 2, 2]), numpy.array([2, 3, 2]))
    (array([1, 1, 2, 2]), array([0, 2, 0, 2]))
    """
    return join_as(left, right, how, index_dtype, nulls_equal, "roost.join")


def how_of(how, what, *more):
    """Which rows a join has, by one name for each choice. `more`: others that a function has."""
    known = _HOW + more
    if not isinstance(how, str) or how not in known:
        raise ValueError(f"{what}: how={how!r}; give one of {', '.join(map(repr, known))}")
    return "outer" if how == "full" else how


def join_as(left, right, how, index_dtype, nulls_equal, what):
    """`join`, for a function of this name."""
    how = how_of(how, what)
    rows = rows_type(index_dtype, what)
    a, b = encode_two_columns(left, right, what, flag(nulls_equal, what, "nulls_equal"))
    check_rows(max(a.n, b.n), rows, what)
    library = a.library

    def rows_of(one, other, kind):
        try:
            l, r = library.call("join", one.words, other.words, kind, rows is INT64)
        except MemoryError as error:
            if "limit" in str(error):  # of a device
                raise
            # C++ says who lacks how much; what to do
            lacking = str(error).partition(": ")[2].partition("; ")[0] or "no memory"
            raise MemoryError(f"{what}: {lacking}; pass fewer rows at once") from error
        l = library.adopt(l, rows)
        return l if kind in ("semi", "anti") else (l, library.adopt(r, rows))

    if how == "right":
        return rows_of(b, a, "left")[::-1]
    if how != "outer":
        return rows_of(a, b, how)
    l, r = rows_of(a, b, "left")
    rest = rows_of(b, a, "anti")
    if len(rest) == 0:
        return l, r
    l = library.concatenate(l, library.full((len(rest),), library.of_numpy(np.array(-1, rows))))
    return l, library.concatenate(r, rest)  # the shorter l is gone: memory for both twice may not be there


@on_device
def value_counts(x, *, sort=True, normalize=False):
    """How often each key occurs, like `pandas.Series.value_counts`.

    Parameters
    ----------
    x : array of keys, or several columns
        As for `unique`.
    sort : bool
        Whether keys are sorted by frequency, the most frequent first; equally frequent keys are in order of
        first occurrence. Otherwise all are in this order.
    normalize : bool
        Whether to return the shares of all rows, as float64, instead of counts.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    keys, counts : arrays, or columns
        Unlike pandas, NaN is counted as a key, and so is a null. Of the library of `x`, keys as from
        `unique`; a column of counts is named "count", or "proportion", as that of pandas and polars is.
    """
    what = "roost.value_counts"
    sort, normalize = flag(sort, what, "sort"), flag(normalize, what, "normalize")
    x = encode_columns(x, what)
    check_rows(x.n, INT64, what)
    keys, _, _, counts = distinct(x, "first", INT64, counts=True)
    library = x.library
    if sort:
        by_count = library.argsort(-counts)
        keys, counts = x.kind.rows(keys, by_count, library), library.rows(counts, by_count)
    if normalize:
        counts = library.convert(counts, FLOAT64) / x.n
    counts = beside_keys(x.model, counts, "proportion" if normalize else "count")
    return x.kind.result(keys, library, x.model), counts


@on_device
def nunique(x, *, dropna=False):
    """How many distinct keys there are, like `pandas.Series.nunique` and `polars.Series.n_unique`.

    Parameters
    ----------
    x : array of keys, or several columns
        As for `unique`; the rows of several columns are counted.
    dropna : bool
        Whether to leave out null, NaN and NaT, and rows in which a column has one. pandas does so by default;
        otherwise, as with `unique` and polars, they count.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy, roost
    >>> roost.nunique(numpy.array([1.5, 2.5, 1.5, numpy.nan]))
    3
    """
    what = "roost.nunique"
    x = encode_columns(x, what, drops=flag(dropna, what, "dropna") or None)
    check_rows(x.n, INT64, what)
    if isinstance(x, StringKeys):
        return len(x.numbered(INT64)[0])
    first = x.library.call("unique", x.words, False, True, False, False, True, None, None)[1]
    return len(x.library.adopt(first, INT64))


@on_device
def duplicated(x, *, keep="first"):
    """Whether each element of `x` occurs elsewhere, too, like `pandas.Series.duplicated`.

    Parameters
    ----------
    x : array of keys, or several columns
        As for `unique`.
    keep : "first", "last" or False
        Which occurrence of a key does not count as a duplicate: the first one, the last one, or none.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    array of bool, as long as `x`; for a column or frame, a column of its library, with its name and index
    """
    given = of_capsules(x)
    return beside(given, duplicated_as(given, keep, "roost.duplicated")[0], name_of(given))


def duplicated_as(x, keep, what):
    """`duplicated` as an array, for a function of this name, and the array's Library."""
    if not isinstance(keep, (str, bool, np.bool_)) or keep not in ("first", "last", False):
        raise ValueError(f"{what}: keep={keep!r}; give 'first', 'last' or False")
    x = encode_columns(x, what)
    check_rows(x.n, INT64, what)
    library, words, last = x.library, x.words, keep == "last" and x.n > 1
    if last:
        bytes = words[2] if isinstance(words, tuple) else words.nbytes // x.n
        backwards = library.of_numpy(np.arange(x.n - 1, -1, -1))
        rows = library.column(backwards)
        words = library.column(library.gather(words, UINT8, (bytes,), rows, x.n))
    again, target = library.output(x.n, BOOL)
    library.call("duplicated", words, bool(keep), target)
    again = library.finish(again, BOOL)
    return library.rows(again, backwards) if last else again, library


@on_device
def drop_duplicates(x, subset=None, *, keep="first"):
    """`x` without its duplicates, like `pandas.DataFrame.drop_duplicates`.

    Parameters
    ----------
    x : array of keys, or several columns
        As for `unique`.
    subset : name of a column, or list of names
        The columns of a frame that are compared; by default all.
    keep : "first", "last" or False
        Which row of equal ones stays: the first one, the last one, or none.
    device, limit, progress, spill, host_limit
        Whether and how columns in host memory go through a GPU: see `options`.

    Returns
    -------
    as `x`
        The rows that stay, in their order, as they are: a frame, a column, a tuple of columns, or an array of
        the library of `x`. Those of pandas keep their index. `unique` returns keys instead.

    Examples
    --------
    >>> import pandas, roost
    >>> visits = pandas.DataFrame({"shop": [1, 2, 1], "day": [7, 7, 9]})
    >>> roost.drop_duplicates(visits, "shop", keep="last")
       shop  day
    1     2    7
    2     1    9
    """
    what = "roost.drop_duplicates"
    x = of_capsules(x)
    keys = x if subset is None else columns_named(x, subset, what, "subset")
    again, library = duplicated_as(keys, keep, what)
    rows = np.flatnonzero(~library.to_numpy(again))

    def picked(x):
        if frames := frames_of(x) or frames_of_column(x):
            return frames.pick(x, rows)
        if isinstance(x, np.ndarray):  # with its mask, too
            return x[rows]
        array, own = take(x, what)
        return own.rows(array, own.of_numpy(rows))

    return tuple(picked(of_capsules(each)) for each in x) if are_columns(x, what) else picked(x)


def partition(x, parts, *, seed=0, index_dtype="int64"):
    """Divides rows into parts by the hashes of their keys, so that equal keys are in the same part.

    Use it to share work among processes or machines: each gets the rows of one part of every table.

    Parameters
    ----------
    x : array of n keys
        As for `unique`, without strings; several columns only as the rows of an array or of a frame of one
        type.
    parts : int
        1 to 65536. Parts of different keys have about the same size.
    seed : int
        Chooses the hash function. Keys of one type are divided in the same way by every call with the same
        `parts` and `seed`.
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
        `x` is not of keys, or the number of parts is out of range.
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
    rows = rows_type(index_dtype, what)
    parts, seed = integer(parts, what, "parts"), integer(seed, what, "seed")
    if not 1 <= parts <= 65536:
        raise ValueError(f"{what}: {parts} parts; give 1 to 65536")
    x = encode(x, what)
    check_rows(x.n, rows, what)
    library = x.library
    if parts == 1:
        numbers = library.of_numpy(np.arange(x.n, dtype=rows))
        return numbers, library.of_numpy(np.array([0, x.n]))
    numbers, offsets = library.module.partition(library.place(), x.words, parts, seed % 2**64, rows is INT64)
    return library.adopt(numbers, rows), library.adopt(offsets, INT64)
