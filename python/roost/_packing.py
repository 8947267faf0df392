"""Keys of several columns, or of columns with nulls, as words.

C++ packs the numbers of each row into one word, exactly. What is no number of at most 8 bytes, such as a
text, is numbered first. `ColumnsKind` makes columns of words again, in the form that they came in.
"""

import functools

import numpy as np

from . import _strings
from ._columns import Column, bitmap_of, kind_of_column, take_column
from ._frames import frames_of, objects_at, of_capsules
from ._keys import (
    encode_strings_too,
    encode_two,
    keys_of,
    keys_of_column,
    keys_of_two,
    kind_of,
    numpy_dtype,
    own_column,
    two_arrays,
)
from ._libraries import NUMPY, same_device

_BOOL, _UINT8, _INT32, _INT64 = map(np.dtype, (np.bool_, np.uint8, np.int32, np.int64))
_TYPES = "int8 int16 int32 int64 bool uint8 uint16 uint32 uint64 float32 float64"
_NUMBERS = {np.dtype(name): i for i, name in enumerate(_TYPES.split())}  # as C++ has them
_FLOAT16, _FLOAT32, _FLOAT64 = map(np.dtype, (np.float16, np.float32, np.float64))
_MOST_FIELDS = 32
_ALWAYS_FIT = 3  # columns of any numbers and nulls, in 256 bits


def _is_array(x):
    return (
        len(getattr(x, "shape", ())) > 0 or kind_of_column(x) == "arrow" or hasattr(x, "__arrow_c_stream__")
    )


def columns_of(x, what):
    """The Columns that an argument is, and how results are made of theirs: "array", "tuple", or a class of
    frames. (None, None): one array that has no nulls."""
    if type(x) is np.ndarray:
        return None, None
    x = of_capsules(x)
    if type(x) is tuple and x and all(map(_is_array, x)):
        return _several(range(len(x)), x, what), "tuple"
    frames = frames_of(x)
    if frames is not None:
        names, columns = frames.columns(x)
        if not columns:
            raise ValueError(f"{what}: a frame without columns")
        return _several(names, columns, what), frames
    name = kind_of_column(x)
    if name is None or _is_quick(name, x):
        return None, None
    column = take_column(x, what)
    return (None, None) if len(column.array.shape) > 1 else ([column], "array")


def _is_quick(name, x):
    """Whether a column, or what may be one, has no nulls, as is soon known."""
    if name == "pandas":
        return isinstance(x.dtype, np.dtype) and x.dtype.kind != "O"
    if name == "polars":
        return (x.dtype.is_integer() or x.dtype.is_float()) and x.null_count() == 0
    return name == "other" and not hasattr(x, "__arrow_c_stream__")


def _several(names, given, what):
    """Columns that belong to one key. `names`: what errors call them."""
    columns = []
    for name, each in zip(names, given, strict=True):
        column = take_column(each, f"{what}: column {name!r}")
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


def _at(what, columns, column):
    """What errors begin with."""
    return what if len(columns) == 1 else f"{what}: column {column.name!r}"


def _is_plain(columns, form):
    return columns is None or (form == "array" and columns[0].valid is None and columns[0].unit is None)


def _is_one_of_texts(columns, form):
    """Whether keys are a frame of one column of texts."""
    column = columns[0]
    return (
        len(columns) == 1
        and not isinstance(form, str)
        and isinstance(column.array, _strings.Texts)
        and column.valid is column.unit is None
    )


def encode_columns(x, what, factorizes=False, drops=None):
    """The Keys of an argument that may be strings, have nulls, or be several columns. `factorizes`: NaN and
    NaT in a column with nulls are nulls, too. `drops`: for group_by, whether only the rows without null, NaN
    and NaT are keys."""
    columns, form = columns_of(x, what)
    if columns is None and not drops:
        return encode_strings_too(x, what)
    if columns is None:
        columns, form = [Column(*own_column(x, what), None, x)], "array"
    there = None
    if drops:
        there = [_is_there(column) for column in columns]
        there = np.logical_and.reduce([bools for bools in there if bools is not None] or [True])
    library = columns[0].library
    kept = None if there is None or there.all() else library.of_numpy(np.flatnonzero(there))
    if drops is not None and kept is None and _is_one_of_texts(columns, form):
        keys = _strings.StringKeys(columns[0].array)
        keys.kind = _strings.StringKind(columns[0].array, columns[0], form)
    elif _is_plain(columns, form):
        array = columns[0].array
        array = array if kept is None else library.rows(array, kept)
        keys = keys_of_column(array, library, what)
    else:
        single = factorizes and len(columns) == 1
        if single:
            is_there = _is_there(columns[0])
            columns[0].valid = None if is_there is None else bitmap_of(is_there)
        (keys,) = _pack([columns], form, True, what, single, kept)
    keys.kept, keys.given = kept, len(columns[0])
    return keys


def encode_two_columns(x, y, what, nulls_equal):
    """The same of two arguments that are compared with each other."""
    (a, _), (b, _) = columns_of(x, what), columns_of(y, what)
    if a is None and b is None:
        return encode_two(x, y, what)
    a, b = (
        [Column(*own_column(given, what), None, given)] if columns is None else columns
        for columns, given in ((a, x), (b, y))
    )
    if len(a) != len(b):
        raise TypeError(f"{what}: {len(a)} and {len(b)} columns as keys; pass as many of both")
    names = [[column.name for column in columns] for columns in (a, b)]
    if names[0] != names[1] and sorted(map(str, names[0])) == sorted(map(str, names[1])):
        raise TypeError(f"{what}: columns {names[0]} and {names[1]}; select them in one order")
    for one, two in zip(a, b, strict=True):
        at = _at(what, a, one)
        if one.unit != two.unit:
            raise TypeError(f"{at}: {one.type} and {two.type} are never equal; convert one of them")
        pair = one.array, one.library, one.given, two.array, two.library, two.given, at
        if len(a) == 1 and one.valid is two.valid is one.unit is None:
            return keys_of_two(*pair)
        (one.array, one.library), (two.array, two.library) = two_arrays(*pair)
        two.move(one.library)
    return _pack([a, b], None, nulls_equal, what)


def _is_there(column):
    """For each row whether it has a value that is neither null nor NaN nor NaT; None: all have."""
    there, array, library = column.there, column.array, column.library
    if isinstance(array, _strings.Texts) or array.ndim != 1:
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
    numbers are the values of the only one, of type `dtype`.
    """

    def __init__(self, library, numbers, valid, columns, dtype=None, first=None):
        self.library, self.numbers, self.valid, self.columns = library, numbers, valid, columns
        self.dtype, self.first = dtype, first
        self.packed = (
            _FLOAT32 if dtype == _FLOAT16 else _INT64 if dtype is not None and dtype.kind in "mM" else dtype
        )
        self.packed = self.packed or np.dtype(np.uint32)

    def of(self, table):
        """What C++ takes of the field of a table."""
        numbers = self.numbers[table]
        column = self.library.column(numbers, len(numbers), self.packed.itemsize)
        return column, _NUMBERS[self.packed], self.valid[table]

    def of_words(self, values, there):
        """The Decoded columns of unpacked numbers."""
        if self.first is None:
            values = self.library.finish(values, self.packed)
            if self.dtype.kind in "mM":
                values = values.view(self.dtype)
            elif self.dtype == _FLOAT16:
                values = self.library.convert(values, self.dtype)
            return [_Decoded(self.columns[0], values, None, there)]
        rows = self.library.finish(values, _INT32)
        rows = self.library.rows(self.first, rows)
        return [_Decoded(column, None, rows, there) for column in self.columns]

    def keep(self, form):
        """Keeps only the rows where numbers come first, or none, for `keys` that are made later."""
        rows = self.library.of_numpy(np.empty(0, _INT32)) if self.first is None else self.first
        self.columns = [column.at(rows, form) for column in self.columns]
        if self.first is not None:
            self.first = self.library.of_numpy(np.arange(len(rows), dtype=_INT32))


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
        if isinstance(column.array, _strings.Texts):
            return column.array[self.rows]
        library, array = column.library, column.library.rows(column.array, self.rows)
        dtype = numpy_dtype(array)
        if dtype.kind != "f" or dtype == _FLOAT16:
            return array
        made, target = library.output(len(array), dtype)  # with one NaN and one 0, as unpacked values have
        nan = kind_of(array, "roost").nan
        library.module.canonical_keys(library.place(), library.column(array), target, nan)
        return library.finish(made, dtype)

    def sort_keys(self):
        """Arrays to sort by, the first one first."""
        array = self._array()
        if self.column.unit and array.dtype.kind == "V":  # decimals of 16 bytes
            words = np.ascontiguousarray(array).view(np.uint64).reshape(-1, 2)
            keys = [words[:, 1].astype(np.int64), words[:, 0].copy()]
        elif self.there is not None and isinstance(self.column.array, _strings.Texts):
            keys = [np.where(self.there, array, self.column.array.type())]
        else:
            keys = [array]
        return keys if self.there is None else [~self.there, *keys]

    def array(self):
        """As an array for users."""
        array = objects_at(self.column.given, self.rows) if self.column.unit else self._array()
        if self.there is None or self.there.all():
            return array
        return np.ma.MaskedArray(array, ~self.there)

    def given(self, frames):
        """As a column of a frame."""
        if self.rows is not None:
            return frames.take(self.column.given, self.rows)
        return frames.like(self.values, self.there, self.column.given)


def _field(parts, form, what, numbered=False):
    """The field of a column of each table."""
    library, arrays, valid = parts[0].library, [c.array for c in parts], [c.valid for c in parts]
    if isinstance(arrays[0], _strings.Texts):
        first, numbers = _strings.numbers_of([texts.column for texts in arrays], _INT32)
    else:
        kind = kind_of(arrays[0], what)
        dtype = kind.dtype
        as_given = len(parts) == 2 or parts[0].direct or (isinstance(form, str) and parts[0].unit is None)
        if as_given and not numbered and kind.columns is None and dtype.kind in "biufmM":
            if dtype.kind in "mM":
                arrays = [array.astype(dtype, copy=False).view(np.int64) for array in arrays]
            elif dtype == _FLOAT16:
                arrays = [c.library.convert(c.array, _FLOAT32) for c in parts]
            return _Field(library, arrays, valid, [parts[0]], dtype)
        words = keys_of(_joined(library, arrays), library, what).words
        first, numbers = _numbered(library, words)
    if valid[0] is not None and len(parts) == 1:
        _skip_nulls(first, numbers, parts[0].there)
    return _Field(library, _split(numbers, arrays), valid, [parts[0]], first=first)


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
    _, first, numbers, _ = library.module.unique(library.place(), words, 0, True, True, False, False, None)
    return library.adopt(first, _INT32), library.adopt(numbers, _INT32)


class _Packed:
    """Fields as words, of one table or two."""

    def __init__(self, fields, tables, nulls_equal):
        self.fields, self.library = fields, fields[0].library
        library, place = self.library, self.library.place()
        self.packing = None
        if len(fields) <= _MOST_FIELDS:
            self.tables = [[field.of(table) for field in fields] for table in range(tables)]
            self.packing = library.module.Packing(place, self.tables, nulls_equal)
        if self.packing is None or not self.packing.word_bytes:  # then the first ones become one
            head = _Packed(fields[:_ALWAYS_FIT], tables, nulls_equal)
            words = [head.words(table) for table in range(tables)]
            first, numbers = _numbered(library, library.column(_joined(library, words)))
            columns = [column for field in head.fields for column in field.columns]
            one = _Field(library, _split(numbers, words), [None] * tables, columns, first=first)
            self.__init__([one, *fields[_ALWAYS_FIT:]], tables, nulls_equal)
            return
        self.word_bytes = self.packing.word_bytes
        self.rows = [len(numbers) for numbers in fields[0].numbers]

    def words(self, table):
        """The words of a table's rows."""
        library, tail = self.library, (self.word_bytes,)
        words, target = library.output(self.rows[table], _UINT8, tail)
        self.packing.pack(library.place(), table, self.tables[table], target)
        return library.finish(words, _UINT8, tail)


class ColumnsKeys:
    """Keys of columns, as other Keys are. Words are made when they are needed."""

    def __init__(self, packed, table, kind, kept):
        self.kind, self.library, self.kept = kind, packed.library, kept
        self._packed, self._table, self.given = packed, table, packed.rows[table]
        self.n = self.given if kept is None else len(kept)

    @functools.cached_property
    def words(self):
        words = self._packed.words(self._table)
        return self.library.column(words if self.kept is None else self.library.rows(words, self.kept))

    def grouped(self):
        """The rows by their keys, if these are few and on the CPU; otherwise None."""
        if self.kept is not None or self.library.module is not NUMPY.module:
            return None
        return self._packed.packing.group(self.library.place(), self._packed.tables[self._table])


def _pack(tables, form, nulls_equal, what, single=False, kept=None):
    """The Keys of the columns of one table or two. `single`: of one column, whose null must have a word of at
    most 8 bytes. `kept`: only those of these rows."""
    fields = [_field(parts, form, _at(what, tables[0], parts[0])) for parts in zip(*tables, strict=True)]
    packed = _Packed(fields, len(tables), nulls_equal)
    if single and packed.word_bytes > 8:
        packed = _Packed([_field((tables[0][0],), form, what, True)], 1, nulls_equal)
    kind = ColumnsKind(packed, tables[0], form)
    if single and tables[0][0].valid is not None:
        kind.missing = packed.packing.null_word
    return [ColumnsKeys(packed, table, kind, kept) for table in range(len(tables))]


class ColumnsKind:
    """Keys that are columns. `decode` makes of words a list of Decoded, one for each column."""

    missing = None

    def __init__(self, packed, columns, form):
        self.packing, self.fields, self.word_bytes = packed.packing, packed.fields, packed.word_bytes
        for field in self.fields:
            field.has_nulls = field.valid[0] is not None
            field.numbers = field.valid = None
        self.form, self.frames = form, None if form is None or isinstance(form, str) else form
        self.dtype = ", ".join(column.type for column in columns)

    def decode(self, words, library):
        raw = library.column(library.adopt(words, _UINT8, (self.word_bytes,)))
        result, place = [], library.place()
        for i, field in enumerate(self.fields):
            n = raw[1] if isinstance(raw, tuple) else len(raw)
            values, target = field.library.output(n, field.packed)
            there, valid = library.output(n, _BOOL) if field.has_nulls else (None, None)
            self.packing.unpack(place, raw, i, target, valid)
            there = None if there is None else library.to_numpy(library.finish(there, _BOOL))
            result += field.of_words(values, there)
        return result

    def rows(self, keys, rows, library):
        return [key.at(rows, library) for key in keys]

    def argsort(self, keys, library):
        """Ascending by columns, nulls last."""
        order = None
        for key in [part for column in keys for part in column.sort_keys()][::-1]:
            key = key if order is None else library.rows(key, order)
            dtype = numpy_dtype(key)
            by = library.argsort_floats(key, dtype) if dtype.kind == "f" else library.argsort(key)
            order = by if order is None else library.rows(order, by)
        return order

    def result(self, keys, library):
        if self.frames is None:
            columns = tuple(key.array() for key in keys)
            return columns if self.form == "tuple" else columns[0]
        return self.form.frame([key.column.name for key in keys], [key.given(self.form) for key in keys])

    def keep(self):
        """Keeps no more than keys will be made of: columns may change, and take memory."""
        for field in self.fields:
            field.keep(self.form)
