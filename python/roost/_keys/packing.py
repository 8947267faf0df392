"""Keys of several columns, or of columns with nulls, as words.

C++ packs the numbers of each row into one word, exactly. What is no number of at most 8 bytes, such as a
text, is numbered first. `ColumnsKind` makes columns of words again, in the form that they came in.
"""

import collections
import functools

import numpy as np

from .._arrays.exact import convert_some, is_python, keeps_every_value, plain_number, plural, shown
from .._arrays.frames import Selected, frames_of, model_of, objects_at, of_capsules, take_rows
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take
from .._arrays.types import BOOL, FLOAT16, FLOAT32, INT32, INT64, NUMBERS, UINT8, numpy_dtype
from . import strings
from .arrow import encode_given, encode_given_table, encode_two_given, given_of, two_given
from .columns import (
    Column,
    are_columns,
    bitmap_of,
    is_column,
    is_quick_column,
    kind_of_column,
    of_values,
    one_of_unit,
    take_column,
    without_tuple,
)
from .words import (
    NoCommonType,
    argsort_by,
    encode_strings_too,
    encode_two,
    keys_of,
    keys_of_column,
    keys_of_two,
    kind_of,
    own_column,
    same_place,
    two_arrays,
    widened,
)

_MOST_FIELDS = 32
_ALWAYS_FIT = 3  # columns of any numbers and nulls, in 256 bits


def columns_of(x, what):
    """The Columns that an argument is, and how results are made of theirs: "array", "tuple", or a class of
    frames. (None, None): one array that has no nulls."""
    if type(x) is np.ndarray:
        return None, None
    if type(x) is Selected:
        return _several(x.names, x.columns, what), x.frames
    x = of_capsules(x)
    if are_columns(x, what):
        return _several(range(len(x)), x, what), "tuple"
    frames = frames_of(x)
    if frames is not None:
        names, columns = frames.columns(x)
        if not columns:
            raise ValueError(f"{what}: a frame without columns")
        return _several(names, columns, what), frames
    name = kind_of_column(x)
    bare = name == "other" and not (hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__"))
    if name is None or bare or is_quick_column(x):
        return None, None
    column = take_column(x, what)
    return (None, None) if len(column.array.shape) > 1 else ([column], "array")


def _several(names, given, what):
    """Columns that belong to one key. `names`: what errors call them."""
    columns = []
    for name, each in zip(names, given, strict=True):
        column = each if type(each) is Column else take_column(each, f"{what}: column {name!r}")
        if len(column.array.shape) != 1:
            raise ValueError(
                f"{what}: column {name!r} of shape {tuple(column.array.shape)}; pass columns of one dimension"
            )
        column.name = name
        columns.append(column)
        if len(column) != len(columns[0]):
            raise ValueError(f"{what}: columns of {len(columns[0])} and of {len(column)} rows")
        if column.library is not columns[0].library:
            same_device(columns[0].library, column.library, what)
    if any(column.library is not columns[0].library for column in columns):  # on the CPU
        for column in columns:
            column.move(NUMPY)
    return columns


def _at(what, column):
    """What errors begin with."""
    return what if column.name is None else f"{what}: column {column.name!r}"


def _is_plain(columns, form):
    return columns is None or (form == "array" and columns[0].valid is None and columns[0].unit is None)


def _is_one_of_texts(columns, form):
    """Whether keys are a frame of one column of texts."""
    column = columns[0]
    return (
        len(columns) == 1
        and not isinstance(form, str)
        and isinstance(column.array, strings.Texts)
        and column.valid is column.unit is None
    )


def encode_columns(x, what, factorizes=False, drops=None):
    """The Keys of an argument that may be strings, have nulls, or be several columns. `factorizes`: NaN and
    NaT in a column with nulls are nulls, too. `drops`: for group_by, whether only the rows without null, NaN
    and NaT are keys."""
    if (given := given_of(x, what)) is not None:
        return encode_given(given, drops or (factorizes and len(given.columns) == 1))
    x = of_capsules(x)
    if not drops and is_quick_column(x):
        keys = keys_of(*take(x, what), what)
        keys.model = model_of(x)
        return keys
    columns, form = columns_of(x, what)
    if columns is None and not drops:
        keys = encode_strings_too(x, what)
        keys.model = model_of(x)
        return keys
    if columns is None:
        columns, form = [Column(*own_column(x, what), None, x)], "array"
    there = None
    if drops:
        there = [_is_there(column) for column in columns]
        there = np.logical_and.reduce([bools for bools in there if bools is not None] or [True])
    library = columns[0].library
    kept = None if there is None or there.all() else library.of_numpy(np.flatnonzero(there))
    if drops is not None and kept is None and _is_one_of_texts(columns, form):
        keys = strings.StringKeys(columns[0].array)
        keys.kind = strings.StringKind(columns[0].array, columns[0], form)
    elif _is_plain(columns, form):
        array = columns[0].array
        array = array if kept is None else library.rows(array, kept)
        keys = keys_of_column(array, library, what)
        if isinstance(keys, strings.StringKeys):
            keys.kind = strings.StringKind(array, columns[0] if columns[0].frames is not None else None)
    else:
        single = factorizes and len(columns) == 1
        if single:
            is_there = _is_there(columns[0])
            columns[0].valid = None if is_there is None else bitmap_of(is_there)
        (keys,) = _pack([columns], form, True, what, single, kept)
    keys.kept, keys.given = kept, len(columns[0])
    keys.model = model_of(columns[0].given if form == "array" else x)
    return keys


def encode_two_columns(x, y, what, nulls_equal):
    """The same of two arguments that are compared with each other, numbers by value."""
    if is_quick_column(x) and is_quick_column(y):
        (one, library), (two, other) = take(x, what), take(y, what)
        if one.dtype == two.dtype and len(one) and len(two):
            return keys_of(one, library, what), keys_of(two, other, what)
        try:
            return keys_of_two(one, library, x, two, other, y, what)
        except NoCommonType:  # which Columns may have
            pass
    a, b = two_given(x, y, what)
    if a is not None:
        _check_two(_described(a), _described(b), what)
        return encode_two_given(a, b, nulls_equal)
    (a, _), (b, _) = columns_of(x, what), columns_of(y, what)
    if a is None and b is None:
        try:
            return encode_two(x, y, what)
        except NoCommonType:
            a, b = [_single_column(x, what)], [_single_column(y, what)]
    a, b = _columns_beside(b, a, x, what), _columns_beside(a, b, y, what)
    for one, two in zip(a, b):
        if one.blank and (one.unit or one.type != two.type):
            one.become(two)
        elif two.blank and (two.unit or one.type != two.type):
            two.become(one)
    _check_two(a, b, what)
    pairs = []
    for one, two in zip(a, b, strict=True):
        at = _at(what, one)
        pair = one.array, one.library, one.given, two.array, two.library, two.given, at
        pairs.append((one, two))
        try:
            if len(a) == 1 and one.valid is two.valid is one.unit is None:
                return keys_of_two(*pair)
            (one.array, one.library), (two.array, two.library) = two_arrays(*pair)
        except NoCommonType:
            pairs.append(_of_one_type(one, two, at))
        for column in (*pairs[-1], two):
            column.move(one.library)
    return _pack(list(zip(*pairs)), None, nulls_equal, what)


def _of_one_type(one, two, what):
    """Gives numbers that have no common type that of integers, and returns two Columns that say which values
    it does not hold: these are equal to none."""
    kinds = [numpy_dtype(column.array).kind for column in (one, two)]
    kept, other = (one, two) if kinds[0] == "i" or kinds[1] == "f" else (two, one)
    array, held = convert_some(other.library.to_numpy(other.array), numpy_dtype(kept.array), what)
    held = held.all(axis=1) if held.ndim == 2 else held  # of whole rows
    array[~held] = np.zeros((), array.dtype)
    if is_python(other.given):
        other.library = kept.library
    elif is_python(kept.given):
        kept.array, kept.library = other.library.readable(kept.array), other.library
    other.array = other.library.readable(array)
    beyond = ~held if other.valid is None else ~held & other.there
    pair = [Column(flags, NUMPY, None, flags) for flags in (np.zeros(len(kept), bool), beyond)]
    return pair if kept is one else pair[::-1]


def _is_empty(x):
    """Whether x is a list without values, which fits any type."""
    return isinstance(x, (list, tuple, range, set, frozenset)) and not x


def _columns_beside(others, columns, x, what):
    """The Columns of an argument x, None for one array: of an empty list as many as of the others."""
    if columns is not None:
        return columns
    if is_python(x) and len(others) == 1 and others[0].unit:
        return [of_values(list(x), others[0].unit, what)]
    return [_single_column(x, what) for _ in range(len(others) if _is_empty(x) else 1)]


def _single_column(x, what):
    """The Column of an argument that is one array without nulls."""
    return Column(*own_column(x, what), None, x)


def _described(given):
    """Columns of Arrow on a device, as errors describe them."""
    return [_Described(name, None, column.type, False) for name, column in zip(given.names, given.columns)]


def _check_two(a, b, what):
    """Raises a TypeError for columns that cannot be compared with others."""
    if len(a) != len(b):
        raise TypeError(f"{what}: {len(a)} and {len(b)} columns as keys; pass as many of both")
    names = [[column.name for column in columns] for columns in (a, b)]
    if len(a) > 1 and names[0] != names[1] and sorted(map(str, names[0])) == sorted(map(str, names[1])):
        raise TypeError(f"{what}: columns {names[0]} and {names[1]}; select them in one order")
    for one, two in zip(a, b, strict=True):
        if one.unit != two.unit and not one.blank and not two.blank:
            raise TypeError(
                f"{_at(what, one)}: {one.type} and {two.type} are never equal; convert one of them"
            )


def table_columns(x, what):
    """The Columns of keys of a table, and their form, as `columns_of` has them. For one column without nulls
    None, and the array or Texts that it is, with its Library."""
    columns, form = columns_of(x, what)
    if columns is None:
        return None, strings.take_keys(x, what)
    return (None, (columns[0].array, columns[0].library)) if _is_plain(columns, form) else (columns, form)


def encode_table(x, what):
    """The Keys of a table that never changes."""
    if type(x) is np.ndarray and x.dtype.kind not in strings.KINDS:
        return keys_of(x, NUMPY, what)
    if type(x) is not list and (given := given_of(x, what)) is not None:
        return encode_given_table(given)
    x = x if type(x) is list else of_capsules(x)
    columns, form = (None, None) if type(x) is list else columns_of(x, what)
    if columns is None or _is_plain(columns, form):
        array, library = take(x, what) if columns is None else (columns[0].array, columns[0].library)
        if library is not NUMPY or array.dtype.kind not in strings.KINDS or not array.shape:
            keys = keys_of(array, library, what)
            keys.model = model_of(x if columns is None else columns[0].given)
            return keys
        columns, form = [take_column(x, what)] if columns is None else columns, "array"
    keys = pack_table(columns, form, what)
    keys.model = model_of(x)
    return keys


def pack_table(columns, form, what):
    """The Keys of a table whose keys are these columns. Their kind makes those of queries."""
    for column in columns:
        if isinstance(column.array, np.ndarray) and column.array.dtype.kind == "S":
            column.array = strings.of_numpy(column.array, what)  # queries may be wider
    (keys,) = _pack([columns], form, True, what, later=True)
    keys.keep(what)
    return keys


def only_column(x, what):
    """The Column of queries that are one, with nulls or in a tuple or frame; None for any others."""
    columns, _ = columns_of(x, what)
    return columns[0] if columns is not None and len(columns) == 1 and columns[0].unit is None else None


def _values_as(column, dtype, library, what):
    """The values of a column of queries as those of a table have them, an array of the `library`, and for
    each whether it is one of these; None: all are."""
    array, own, some = column.array, is_python(column.given), None
    if isinstance(array, strings.Texts):
        strings.compared(np.zeros(1, dtype), what)  # raises
    if own and not len(array):
        array = np.empty(0, dtype)
    kind = kind_of(array, what)
    if kind.columns is not None:
        raise TypeError(f"{what}: {kind} and {dtype} are never equal; pass columns of one dimension")
    if kind.dtype != dtype and dtype.kind not in "mM" and keeps_every_value(kind.dtype, dtype):
        array = widened(array, dtype, column.library, what)
    elif kind.dtype != dtype:
        host, given = column.library.to_numpy(array), column.given if own else None
        array, some = convert_some(host, dtype, what, given)
    if library is not NUMPY and isinstance(array, np.ndarray):
        array = library.readable(array)
    return array, some


def _is_there(column):
    """For each row whether it has a value that is neither null nor NaN nor NaT; None: all have."""
    there, array, library = column.there, column.array, column.library
    if isinstance(array, strings.Texts) or array.ndim != 1:
        return there
    kind = numpy_dtype(array).kind
    if kind in "mM":
        has = ~np.isnat(array)
    elif kind == "f":
        has = library.to_numpy(array == array)
    else:
        return there
    return has if there is None else has & there


class _Field:
    """A part of keys: numbers, as C++ packs them.

    `numbers`: an array of its `library` for each table, and `valid` the bitmaps. `columns`: those of the
    first table that it stands for; `first`: the rows where each number of it comes first in these, None: its
    numbers are the values of the only one, of type `dtype`. `head`: the _Packed of several columns.
    """

    finder = None  # of a table: the TextRows of its texts, or the index of its words
    blank = False  # of a table: whether it has no value
    given_numbers = None  # the number of each row that it finds, then -1; None: the row's position

    def __init__(self, library, numbers, valid, columns, dtype=None, first=None, head=None):
        self.library, self.numbers, self.valid, self.columns = library, numbers, valid, columns
        self.dtype, self.first, self.head, self.has_nulls = dtype, first, head, valid[0] is not None
        self.packed = (
            FLOAT32 if dtype == FLOAT16 else INT64 if dtype is not None and dtype.kind in "mM" else dtype
        )
        self.packed = self.packed or np.dtype(np.uint32)

    def of(self, table):
        """What C++ takes of the field of a table."""
        return self._of(self.numbers[table], self.valid[table], self.library)

    def _of(self, numbers, valid, library):
        return library.column(numbers, len(numbers), self.packed.itemsize), NUMBERS[self.packed], valid

    def asked(self, columns, library, what):
        """The same of columns of queries, in the place of `columns`, and for each row whether its values may
        be here; None: all may."""
        column, some = columns[0], None
        if self.head is not None:
            words = self.head.asked(columns, library, what)
            return self._of(self._found(library.column(words), len(column), library), None, library), None
        what = _at(what, self.columns[0])
        if self.blank or column.blank:  # of any type
            numbers = library.readable(np.zeros(len(column), f"i{self.packed.itemsize}"))
            some = None if column.blank else np.zeros(len(column), bool)
        elif isinstance(self.finder, strings.TextRows):
            _, texts = strings.two_texts(self.finder.texts, column.array, what)
            found = self.finder.find(texts)
            found = found.astype(INT32) if self.given_numbers is None else self.given_numbers[found]
            numbers = library.readable(found)
        else:
            array, some = _values_as(column, self.dtype, library, what)
            if self.finder is None:
                numbers = _packable(array, self.dtype, library)
            else:
                numbers = self._found(keys_of(array, library, what).words, len(column), library)
        if column.valid is None or not self.has_nulls:
            return self._of(numbers, None, library), _both(some, column.there)
        return self._of(numbers, column.valid, library), None if some is None else some | ~column.there

    def _found(self, words, n, library):
        """The numbers of n words, -1 for those that are not here."""
        rows, target = library.output(n, INT32)
        self.finder.find_rows(library.place(), words, target)
        rows = library.finish(rows, INT32)
        if self.given_numbers is None:
            return rows
        return library.readable(self.given_numbers[library.to_numpy(rows)])

    def _distinct(self, what):
        """The values that the numbers stand for, in their order. What lies at a null is none: rows that were
        taken may have another value there."""
        column = self.columns[0]
        array, given = column.array, column.given
        if column.valid is not None:
            rows = np.flatnonzero(column.there)
            self.given_numbers = np.append(rows, -1).astype(INT32)
            array, given = (None, take_rows(given, rows)) if array is None else (array[rows], None)
        return take_column(given, what).array if array is None else array

    def of_words(self, values, there):
        """The Decoded columns of unpacked numbers."""
        if self.first is None:
            values = self.library.finish(values, self.packed)
            if self.dtype.kind in "mM":
                values = values.view(self.dtype)
            elif self.dtype == FLOAT16:
                values = self.library.convert(values, self.dtype)
            return [_Decoded(self.columns[0], values, None, there)]
        rows = self.library.finish(values, INT32)
        rows = self.library.rows(self.first, rows)
        return [_Decoded(column, None, rows, there) for column in self.columns]

    def keep(self, what=None):
        """Keeps only the rows where numbers come first, or none, for `keys` that are made later. `what`: of
        a table, which finds the numbers of other rows later."""
        library, first, head = self.library, self.first, self.head
        texts = isinstance(self.columns[0].array, strings.Texts)
        rows = library.of_numpy(np.empty(0, INT32)) if first is None else first
        self.blank = what is not None and self.columns[0].blank
        self.columns = [column.at(rows) for column in self.columns]
        self.numbers = self.valid = None
        if first is None:
            return
        self.first = library.of_numpy(np.arange(len(rows), dtype=INT32))
        if what is None:
            self.head = None
        elif head is not None:
            words = library.column(library.rows(head.words(0), first))
            head.keep(what)
        else:
            array = self._distinct(what)
            if texts:
                texts = array if isinstance(array, strings.Texts) else strings.of_numpy(array, what)
                self.finder = strings.TextRows(texts)
                return
            keys = keys_of(array, library, what)
            words, self.dtype = keys.words, keys.kind.dtype
        if what is not None:
            self.place = library.place()
            self.finder = library.module.make_index(self.place, words)


class _Decoded:
    """A column of distinct keys: values, or the `rows` of a column that have them; `there`: of nulls False,
    or None."""

    __slots__ = ("column", "values", "rows", "there")

    def __init__(self, column, values, rows, there):
        if rows is not None and column.valid is not None:
            there = column.there[rows] if there is None else there
            rows = np.where(there, rows, column.null_row)
        self.column, self.values, self.rows, self.there = column, values, rows, there

    def at(self, rows, library):
        """Some of the keys."""
        mine, host = self.column.library, rows
        if mine is not library or self.there is not None:
            host = library.to_numpy(rows)
            rows = mine.of_numpy(host)
        return _Decoded(
            self.column,
            None if self.values is None else mine.rows(self.values, rows),
            None if self.rows is None else mine.rows(self.rows, rows),
            None if self.there is None else self.there[host],
        )

    def _array(self):
        column = self.column
        if self.rows is None:
            return self.values
        if isinstance(column.array, strings.Texts):
            return column.array[self.rows]
        library, array = column.library, column.library.rows(column.array, self.rows)
        dtype = numpy_dtype(array)
        if dtype.kind != "f" or dtype == FLOAT16:
            return array
        made, target = library.output(len(array), dtype)  # with one NaN and one 0, like unpacked values
        nan = kind_of(array, "roost").nan
        library.module.canonical_keys(library.place(), library.column(array), target, nan)
        return library.finish(made, dtype)

    def sort_keys(self):
        """Arrays to sort by, the first one first."""
        array = self._array()
        if self.column.unit and array.dtype.kind == "V":  # decimals of 16 bytes
            words = np.ascontiguousarray(array).view(np.uint64).reshape(-1, 2)
            keys = [words[:, 1].astype(np.int64), words[:, 0].copy()]
        elif self.there is not None and isinstance(self.column.array, strings.Texts):
            keys = [np.where(self.there, array, self.column.array.type())]
        else:
            keys = [array]
        return keys if self.there is None else [~self.there, *keys]

    def array(self):
        """As an array for users."""
        array = objects_at(self.column.given, self.rows) if self.column.unit else self._array()
        if not self.column.masked and (self.there is None or self.there.all()):
            return array
        return np.ma.MaskedArray(array, False if self.there is None else ~self.there)

    def python(self):
        """As a list of values of Python, of which None are nulls."""
        column = self.column
        if self.rows is not None:
            column = take_column(column.given, "roost") if column.array is None else column
            return column.values(column.library.to_numpy(self.rows))
        values = strings.listed(column.library.to_numpy(self.values))
        if self.there is None:
            return values
        return [value if is_there else None for value, is_there in zip(values, self.there)]

    def own(self):
        """As a column of the library that it came from, or as an array."""
        frames = self.column.frames
        return self.array() if frames is None else self.given(frames)

    def pickled(self):
        """As pickle stores it: something that roost takes as this column."""
        if self.column.frames is not None:
            return self.own()
        if self.column.unit:
            return take_rows(self.column.given, self.rows)
        return self.column.library.pickled(self.array())

    def given(self, frames):
        """As a column of a frame."""
        if self.rows is not None:
            return frames.take(self.column.given, self.rows)
        return frames.like(self.values, self.there, self.column.given)


def _field(parts, what, numbered=False):
    """The field of a column of each table."""
    library, arrays, valid = parts[0].library, [c.array for c in parts], [c.valid for c in parts]
    if isinstance(arrays[0], strings.Texts):
        first, numbers = strings.numbers_of([texts.column for texts in arrays], INT32)
    else:
        kind = kind_of(arrays[0], what)
        dtype = kind.dtype
        as_given = len(parts) == 2 or parts[0].direct or (parts[0].frames is None and parts[0].unit is None)
        if as_given and not numbered and kind.columns is None and dtype.kind in "biufmM":
            arrays = [_packable(array, dtype, library) for array in arrays]
            return _Field(library, arrays, valid, [parts[0]], dtype)
        words = keys_of(_joined(library, arrays), library, what).words
        first, numbers = _numbered(library, words)
    if valid[0] is not None and len(parts) == 1:
        _skip_nulls(first, numbers, parts[0].there)
    return _Field(library, _split(numbers, arrays), valid, [parts[0]], first=first)


def _packable(array, dtype, library):
    """An array of that type as C++ packs it."""
    if dtype.kind in "mM":
        return array.astype(dtype, copy=False).view(np.int64)
    return library.convert(array, FLOAT32) if dtype == FLOAT16 else array


def _both(some, others):
    """Which rows two say; None: all."""
    return others if some is None else some if others is None else some & others


def _skip_nulls(first, numbers, there):
    """Makes `first` the rows where each number comes first with a value."""
    wrong = ~there[first]
    if wrong.any():
        rows = np.flatnonzero(wrong[numbers] & there)[::-1]
        first[numbers[rows]] = rows


def _joined(library, arrays):
    return arrays[0] if len(arrays) == 1 else library.concatenate(*arrays)


def _split(numbers, arrays):
    n = arrays[0].shape[0]
    return [numbers] if len(arrays) == 1 else [numbers[:n], numbers[n:]]


def _numbered(library, words):
    """The rows where distinct words come first, and the number of each row's word."""
    _, first, numbers, _ = library.call("unique", words, True, True, True, False, False, None, None)
    return library.adopt(first, INT32), library.adopt(numbers, INT32)


class _Packed:
    """Fields as words, of one table or two."""

    def __init__(self, fields, tables, nulls_equal):
        self.fields, self.library = fields, fields[0].library
        library, place = self.library, self.library.place()
        self.packing = None
        if len(fields) <= _MOST_FIELDS:
            self.tables = [[field.of(table) for field in fields] for table in range(tables)]
            self.packing = library.module.Packing(place, self.tables, nulls_equal)
        if self.packing is None or not self.packing.word_bytes:  # then the first columns become one
            head = _Packed(fields[:_ALWAYS_FIT], tables, nulls_equal)
            words = [head.words(table) for table in range(tables)]
            first, numbers = _numbered(library, library.column(_joined(library, words)))
            columns = [column for field in head.fields for column in field.columns]
            one = _Field(library, _split(numbers, words), [None] * tables, columns, None, first, head)
            self.__init__([one, *fields[_ALWAYS_FIT:]], tables, nulls_equal)
            return
        self.word_bytes = self.packing.word_bytes
        self.rows = [len(numbers) for numbers in fields[0].numbers]

    def words(self, table):
        """The words of a table's rows."""
        return self._words(table, self.tables[table], self.rows[table], self.library)

    def _words(self, table, columns, n, library):
        words, target = library.output(n, UINT8, (self.word_bytes,))
        self.packing.pack(library.place(), table, columns, target)
        return library.finish(words, UINT8, (self.word_bytes,))

    def asked(self, columns, library, what):
        """The words of queries, which are columns of that library. A row that no row of the table can equal
        has a word that none has."""
        n, parts, some, column = len(columns[0]), [], None, 0
        for field in self.fields:
            part, here = field.asked(columns[column : column + len(field.columns)], library, what)
            parts.append(part)
            some = _both(some, here)
            column += len(field.columns)
        words = self._words(0, parts, n, library)
        if some is None or some.all():
            return words
        rows = library.readable(np.where(some, np.arange(n), -1))
        words, rows, tail = library.column(words), library.column(rows), (self.word_bytes,)
        return library.gather(words, UINT8, tail, rows, n, np.full((1, *tail), 255, np.uint8))

    def keep(self, what):
        """Keeps what `asked` needs, as each _Field does, and nothing of the rows."""
        for field in self.fields:
            field.keep(what)
        self.tables = None


class ColumnsKeys:
    """Keys of columns, as other Keys are. Words are made when they are needed."""

    model = None

    def __init__(self, packed, table, kind, kept):
        self.kind, self.library, self.kept = kind, packed.library, kept
        self._packed, self._table, self.given = packed, table, packed.rows[table]
        self.n = self.given if kept is None else len(kept)

    @functools.cached_property
    def words(self):
        words = self._packed.words(self._table)
        return self.library.column(words if self.kept is None else self.library.rows(words, self.kept))

    def keep(self, what):
        """Keeps the words, and of the columns what keys and queries of a table will be made of."""
        self.words  # noqa: B018
        self.kind.keep_packing(self._packed, what)

    def grouped(self):
        """The rows by their keys, if these are few and on the CPU; otherwise None."""
        if self.kept is not None or self.library.module is not NUMPY.module:
            return None
        return self._packed.packing.group(self.library.place(), self._packed.tables[self._table])


def _pack(tables, form, nulls_equal, what, single=False, kept=None, later=False):
    """The Keys of the columns of one table or two. `single`: of one column, whose null must have a word of at
    most 8 bytes. `kept`: only those of these rows. `later`: the rows of other tables will be asked for."""
    fields = [_field(parts, _at(what, parts[0])) for parts in zip(*tables, strict=True)]
    packed = _Packed(fields, len(tables), nulls_equal)
    if single and packed.word_bytes > 8:
        packed = _Packed([_field((tables[0][0],), what, True)], 1, nulls_equal)
    for field in packed.fields:
        field.numbers, field.valid, field.head = None, None, field.head if later else None
    kind = ColumnsKind(packed, tables[0], form, later)
    if single and tables[0][0].valid is not None:
        kind.missing = packed.packing.null_word
    return [ColumnsKeys(packed, table, kind, kept) for table in range(len(tables))]


_Asked = collections.namedtuple("_Asked", "words n library")  # what tables need of the Keys of queries
_Described = collections.namedtuple("_Described", "name unit type blank")  # what queries are compared with


class ColumnsKind:
    """Keys that are columns. `decode` makes of words a list of Decoded, one for each column."""

    missing = None

    def __init__(self, packed, columns, form, later=False):
        self.packing, self.fields, self.word_bytes = packed.packing, packed.fields, packed.word_bytes
        self.form, self.frames = form, None if form is None or isinstance(form, str) else form
        self._columns = [_Described(c.name, c.unit, c.type, later and c.blank) for c in columns]

    @property
    def dtype(self):
        return ", ".join(column.type for column in self._columns)

    def decode(self, words, library):
        raw = library.column(library.adopt(words, UINT8, (self.word_bytes,)))
        result, place = [], library.place()
        for i, field in enumerate(self.fields):
            n = raw[1] if isinstance(raw, tuple) else len(raw)
            values, target = field.library.output(n, field.packed)
            there, valid = library.output(n, BOOL) if field.has_nulls else (None, None)
            self.packing.unpack(place, raw, i, target, valid)
            there = None if there is None else library.to_numpy(library.finish(there, BOOL))
            result += field.of_words(values, there)
        return result

    def rows(self, keys, rows, library):
        return [key.at(rows, library) for key in keys]

    def signs(self):
        """None: C++ cannot sort these."""

    def argsort(self, keys, library):
        """Ascending by columns, nulls last."""
        return argsort_by([part for column in keys for part in column.sort_keys()], library)

    def result(self, keys, library, model=None):
        if self.frames is None:
            columns = tuple(key.own() for key in keys)
            return columns if self.form == "tuple" else columns[0]
        return self.selected(keys).frame()

    def selected(self, keys):
        """The columns of keys that are a frame."""
        names = [key.column.name for key in keys]
        return Selected(self.form, names, [key.given(self.form) for key in keys])

    def keep(self):
        """Keeps no more than keys will be made of: columns may change, and take memory."""
        for field in self.fields:
            field.keep()

    def keep_packing(self, packed, what):
        """The same of a table, which has queries later."""
        self._packed = packed
        packed.keep(what)

    def queries(self, x, home, what):
        """The Keys of queries of a table, whose Library is `home`."""
        columns = self._asked(x, what)
        _check_two(self._columns, columns, what)
        library = next((c.library for c in columns if not is_python(c.given)), home)
        same_place(library, home, what)
        words = self._packed.asked(columns, library, what)
        return _Asked(library.column(words), len(words), library)

    def query(self, key, home, what):
        """The same of one key: a tuple, or a value of the only column."""
        single = self.form == "array"
        if not single and not isinstance(key, (tuple, list)):
            raise TypeError(f"{what}: one key is a tuple of {plural(len(self._columns), 'value')}")
        values = list((key,) if single else key)
        for i, (value, column) in enumerate(zip(values, self._columns)):
            values[i] = one_of_unit(value, column.unit, what) if column.unit else plain_number(value, what)
        return self.queries(values if single else [values], home, what)

    def _asked(self, x, what):
        """The Columns of queries."""
        if self.form == "array":
            x = without_tuple(x)
        if not is_python(x) or (are_columns(x, what) and not any(map(is_python, x))):
            columns, _ = columns_of(x, what)
            return [_single_column(x, what)] if columns is None else columns
        given = list(x) if isinstance(x, (list, tuple, set, frozenset, range)) else [x]
        names, units = [c.name for c in self._columns], [c.unit for c in self._columns]
        if self.form == "array" and not are_columns(x, what):
            return [of_values(given, units[0], what)]
        if isinstance(x, tuple):
            if not all(map(is_column, x)):
                raise TypeError(
                    f"{what}: {shown(x)}; pass one key in a list, and columns as a tuple of arrays or lists"
                )
        else:  # a list of tuples
            if not all(isinstance(row, (tuple, list)) and len(row) == len(names) for row in given):
                raise TypeError(f"{what}: give columns, or tuples of {plural(len(names), 'value')}")
            given = [list(column) for column in zip(*given)] or [[] for _ in names]
        if len(given) != len(names):
            raise TypeError(f"{what}: {len(names)} and {len(given)} columns as keys; pass as many of both")
        columns = [
            of_values(list(each), unit, f"{what}: column {name!r}") if is_python(each) else each
            for each, name, unit in zip(given, names, units, strict=True)
        ]
        return _several(names, columns, what)

    def python(self, keys, library):
        """Keys as tuples of Python, those of one column as values; nulls are None."""
        return self.rows_of([key.python() for key in keys])

    def rows_of(self, columns):
        """Lists of the values of each column as keys."""
        return columns[0] if self.form == "array" else list(zip(*columns))

    def pickled(self, keys, library):
        """What pickle stores for keys."""
        if self.frames is not None:
            return self.result(keys, library)
        columns = tuple(key.pickled() for key in keys)
        return columns if self.form == "tuple" else columns[0]
