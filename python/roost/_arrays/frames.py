"""Frames of pandas, polars and Arrow: their columns, rows of these, and frames of other columns."""

import difflib
import functools
import itertools
import sys

import numpy as np

from .arrow import DeviceColumn, DeviceTable, take_device
from .exact import advice_on, convert, has_mask, not_utf8


def _listed(values, there):
    """Texts or objects as a list, with None for nulls; None for numbers and dates."""
    if values.dtype.kind in "biufcmM":
        return None
    values = values.tolist()
    return values if there is None else [v if is_there else None for v, is_there in zip(values, there)]


def _in_unit(values, units):
    """Dates or durations in the first of some units that has them all, the coarsest one first; in the last
    one, or an OverflowError, if none has. Others as they are."""
    kind = values.dtype.kind
    if kind not in "mM":
        return values
    types = [np.dtype(f"{kind}8[{unit}]") for unit in units.split() if kind == "M" or unit != "D"]
    if values.dtype not in types:
        fitting = (t for t in types[:-1] if np.can_cast(values.dtype, t, "safe"))
        values = convert(values, next(fitting, types[-1]), "roost")
    if values.dtype == "M8[D]":  # pyarrow 26.0.1 wraps others around, and polars 2.1.0 makes them null
        days = values.view(np.int64)
        far = (days != days.astype(np.int32)) & ~np.isnat(values)
        if far.any():
            raise OverflowError(
                f"roost: {values[far][0]} is beyond the days of 32 bits that a column of dates has; convert"
                " to datetime64[s]"
            )
    return values


def _float_has(values):
    """Whether float64 holds integers as they are."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return True
    return not ((values > 2**53) | (values < -(2**53) if values.dtype.kind == "i" else False)).any()


class Rows:
    """Row numbers, an array of numpy, in the form of each library, for several columns. Negative ones are
    nulls. `every`: whether these are all rows in order."""

    def __init__(self, numbers, every=False):
        self.numbers, self.every = numbers, every

    @staticmethod
    def of(rows):
        """Rows of numbers that may be Rows."""
        return rows if isinstance(rows, Rows) else Rows(rows)

    def __len__(self):
        return len(self.numbers)

    @functools.cached_property
    def missing(self):
        """Which are negative; None if none is."""
        return self.numbers < 0 if len(self) and self.numbers.min() < 0 else None

    @functools.cached_property
    def arrow(self):
        return sys.modules["pyarrow"].array(self.numbers, mask=self.missing)

    @functools.cached_property
    def polars(self):
        """In the type in which polars takes rows without looking at them first."""
        polars, numbers = sys.modules["polars"], self.numbers
        if self.missing is None and numbers.itemsize == 4:
            numbers = numbers.view(np.uint32)
        rows = polars.Series(numbers)
        if rows.dtype == polars.get_index_type():
            return rows
        return (rows if self.missing is None else rows.set(rows < 0, None)).cast(polars.get_index_type())


def _arrow_of(column):
    """What a Series or an array of pandas keeps in Arrow."""
    return getattr(column, "array", column)._pa_array


def _in_pandas(column, name=None):
    """A column of Arrow as one of pandas."""
    pandas = sys.modules["pandas"]
    return pandas.Series(pandas.arrays.ArrowExtensionArray(column), name=name, copy=False)


class Pandas:
    """What roost does with frames and columns of pandas; the other classes have the same functions."""

    @staticmethod
    def columns(frame):
        """The names and the columns."""
        return list(frame.columns), [column for _, column in frame.items()]  # a third of the time of `iloc`

    names = staticmethod(lambda frame: list(frame.columns))

    @staticmethod
    def column(frame, i):
        """The column at a place. `items` takes less than `iloc` up to the fourth."""
        return next(itertools.islice(frame.items(), i, None))[1] if i < 4 else frame.iloc[:, i]

    @staticmethod
    def frame(names, columns):
        """A frame of columns."""
        pandas = sys.modules["pandas"]
        index = getattr(columns[0], "index", None) if columns else None  # else pandas unites all
        if names and all(type(name) is str for name in names) and len({*names}) == len(names):
            return pandas.DataFrame(dict(zip(names, columns)), index, copy=False)  # a third of the time
        frame = pandas.DataFrame(dict(enumerate(columns)), index, copy=False)
        lengths = {len(name) if isinstance(name, tuple) else 0 for name in names}
        frame.columns = pandas.Index(names, tupleize_cols=len(lengths) == 1)
        return frame

    @staticmethod
    def take(column, rows):
        """The values of some rows; a null where a number is negative."""
        taken, name = Pandas.taken(column, rows), getattr(column, "name", None)
        if hasattr(taken, "index"):
            return Pandas.named(taken, column)
        return sys.modules["pandas"].Series(taken, name=name, copy=False)

    @staticmethod
    def taken(column, rows):
        """The same for `frame`: without an index, if that keeps the type."""
        pandas, rows = sys.modules["pandas"], Rows.of(rows)
        if rows.every and hasattr(column, "iloc") and not pandas.__version__.startswith(("1.", "2.")):
            made = column.copy(deep=False)  # since pandas 3, whoever writes copies
            made.index = pandas.RangeIndex(len(made))
            return made
        if isinstance(column.dtype, pandas.ArrowDtype):
            return pandas.arrays.ArrowExtensionArray(Arrow.take(_arrow_of(column), rows))
        values = column.to_numpy() if isinstance(column.dtype, np.dtype) else getattr(column, "array", column)
        rows, missing = rows.numbers, rows.missing is not None
        if missing and isinstance(column.dtype, pandas.SparseDtype):  # which would make floats of integers
            values = values.to_dense()
        elif missing and getattr(getattr(column.dtype, "subtype", None), "kind", "f") in "iu":  # intervals
            values = values.astype(object)  # whose ends would become floats, too
        if missing and isinstance(values, np.ndarray):
            if not _float_has(values[rows[rows >= 0]]):  # pandas would convert them to floats
                values = pandas.array(values)
            taken = pandas.api.extensions.take(values, rows, allow_fill=True)
        else:
            taken = values.take(rows, allow_fill=True) if missing else values.take(rows)
        of_objects = taken.dtype == object  # would become str
        return pandas.Series(taken, dtype=taken.dtype, copy=False) if of_objects else taken

    @staticmethod
    def like(values, there, column):
        """Numbers or dates as a column of the type of another one."""
        pandas, dtype, name = sys.modules["pandas"], column.dtype, getattr(column, "name", None)
        if isinstance(dtype, np.dtype):
            return pandas.Series(values, name=name, copy=False)
        if isinstance(dtype, pandas.ArrowDtype):
            return _in_pandas(Arrow.of_type(values, there, dtype.pyarrow_dtype), name)
        if not hasattr(dtype, "numpy_dtype"):  # categories
            return pandas.Series(values, name=name, copy=False).astype(dtype)
        mask = np.zeros(len(values), np.bool_) if there is None else ~there
        return pandas.Series(dtype.construct_array_type()(values, mask), name=name, copy=False)

    @staticmethod
    def are_alike(one, other):
        """Whether columns have one type, which that of `joined` is."""
        known = [getattr(getattr(c.dtype, "categories", None), "dtype", None) for c in (one, other)]
        both = all(kind is not None for kind in known)  # to numpy None is float64
        return one.dtype == other.dtype or (both and known[0] == known[1])

    @staticmethod
    def joined(one, other):
        """The values of two columns that are alike, or of texts, one after the other."""
        pandas, parts = sys.modules["pandas"], [one, other]
        if one.dtype != other.dtype and all(hasattr(c.dtype, "categories") for c in parts):
            if Pandas.are_alike(one, other):
                return pandas.Series(pandas.api.types.union_categoricals(parts, ignore_order=True))
            parts = [column.astype(column.dtype.categories.dtype) for column in parts]
        if one.dtype != other.dtype:
            arrow = [isinstance(column.dtype, pandas.ArrowDtype) for column in parts]
            if all(arrow):
                return _in_pandas(Arrow.joined(*map(_arrow_of, parts)))
            parts = [_in_pandas(_large(_arrow_of(c))) if of_arrow else c for c, of_arrow in zip(parts, arrow)]
        return pandas.concat(parts, ignore_index=True)

    @staticmethod
    def numbers(values, there, one, other):
        """Numbers or dates of any type as a column beside two others."""
        pandas = sys.modules["pandas"]
        for given in (one, other):
            if isinstance(given.dtype, pandas.ArrowDtype):
                return Pandas.result(values, there, given)
        if there is not None and values.dtype.kind in "mM":
            values[~there] = "NaT"
        elif there is not None or any(hasattr(given.dtype, "numpy_dtype") for given in (one, other)):
            mask = np.zeros(len(values), np.bool_) if there is None else ~there
            values = pandas.array(values[:0]).dtype.construct_array_type()(values, mask)
        return pandas.Series(values, copy=False)

    @staticmethod
    def in_zone(times, zone):
        """Times of UTC as times of a zone."""
        return times.dt.tz_localize("UTC").dt.tz_convert(zone)

    @staticmethod
    def result(values, there, given, zone=None, scale=None):
        """What was computed as a column. `given`: of which column of the library, or None; `zone`: that of
        instants, `scale`: that of decimals. Where numpy's types have no null, pandas' types that have one."""
        pandas, dtype = sys.modules["pandas"], getattr(given, "dtype", None)
        if isinstance(dtype, pandas.ArrowDtype):
            return _in_pandas(Arrow.result(values, there, None, zone, scale))
        listed, values = _listed(values, there), _in_unit(values, "s ms us ns")
        if listed is not None:
            return pandas.Series(listed, dtype=object if scale is not None else None)
        kind = values.dtype.kind
        nullable = getattr(dtype, "numpy_dtype", None) is not None
        if kind in "biuf" and (nullable or (there is not None and kind != "f")):
            mask = np.zeros(len(values), np.bool_) if there is None else ~there
            made = pandas.array(values[:0]).dtype.construct_array_type()
            return pandas.Series(made(values, mask), copy=False)
        if kind in "fc" and there is not None:
            values = np.where(there, values, np.nan)
        made = pandas.Series(values, copy=False)
        return made if zone is None else Pandas.in_zone(made, zone)

    @staticmethod
    def cast(made, column):
        """Values of a column as a column of its type."""
        if isinstance(column.dtype, np.dtype) or made.dtype == column.dtype:
            return made
        return made.astype(column.dtype)

    @staticmethod
    def made(values, x, name, aligned):
        """An array that was computed for a column or a frame, as a column beside it. `aligned`: with its
        index."""
        values = _in_unit(values.astype(object) if values.dtype.kind in "ST" else values, "s ms us ns")
        index = getattr(x, "index", None) if aligned else None
        return sys.modules["pandas"].Series(values, index=index, name=name, copy=False)

    @staticmethod
    def named(made, given):
        """A new column with the name of another one."""
        made.name = getattr(given, "name", None)
        return made

    part = staticmethod(lambda rows, start, count: rows.iloc[start : start + count])

    @staticmethod
    def kept(column):
        """A column that does not change when the given one does, and whose rows are soon taken."""
        pandas, array = sys.modules["pandas"], getattr(column, "array", column)
        kept, name = getattr(array, "_pa_array", None), getattr(column, "name", None)
        if kept is None and hasattr(column, "iloc"):
            return column.reset_index(drop=True)
        if kept is None:
            return pandas.Series(column.copy(), name=name, dtype=column.dtype)
        kept = Arrow.kept(kept)
        if isinstance(column.dtype, pandas.ArrowDtype):
            return _in_pandas(kept, name)
        return pandas.Series(pandas.array(kept, dtype=column.dtype), name=name, copy=False)

    @staticmethod
    def one(value, column):
        """A column of one value, of the type of another column, or of what is nearest to it."""
        if value not in getattr(column.dtype, "categories", [value]):
            raise ValueError
        return sys.modules["pandas"].Series([value], dtype=column.dtype)

    @staticmethod
    def objects(column):
        of_arrow = isinstance(column.dtype, sys.modules["pandas"].ArrowDtype)
        return Arrow.objects(_arrow_of(column)) if of_arrow else column.to_numpy(object)

    @staticmethod
    def categories(names):
        """Names as a column of categories of the library."""
        pandas = sys.modules["pandas"]
        return pandas.Series(pandas.Categorical(names, names))

    @staticmethod
    def levels(index):
        """The levels of an index as columns. Of several, what is missing is null: pandas itself would make
        floats of integers."""
        pandas = sys.modules["pandas"]
        if index.nlevels == 1:
            return [pandas.Series(index, dtype=index.dtype, copy=False)]
        columns = []
        for level, codes in zip(index.levels, map(np.asarray, index.codes)):
            if isinstance(level.dtype, np.dtype) and level.dtype.kind in "biu" and (codes < 0).any():
                level = pandas.Series(pandas.array(level.to_numpy()))
            columns.append(Pandas.take(level, codes))
        return columns

    @staticmethod
    def indexed(frame, columns, names):
        """A frame with an index of columns."""
        pandas = sys.modules["pandas"]
        if len(columns) == 1:
            index = pandas.Index(columns[0], dtype=columns[0].dtype)
            index.name = names[0]  # None, too
        else:
            index = pandas.MultiIndex.from_arrays(columns, names=names)
        frame.index = index
        return frame

    @staticmethod
    def pick(x, rows):
        """Some rows of a frame or a column, with their index."""
        if not hasattr(x, "iloc"):
            return x[rows]
        if x.ndim == 1:
            return Pandas.take(x, rows).set_axis(x.index[rows])
        made = Pandas.frame(list(x.columns), [Pandas.take(column, rows) for column in Pandas.columns(x)[1]])
        made.index, made.columns = x.index[rows], x.columns
        return made


class Polars:
    """The same for polars."""

    @staticmethod
    def columns(frame):
        return frame.columns, frame.get_columns()

    names = staticmethod(lambda frame: frame.columns)
    column = staticmethod(lambda frame, i: frame.to_series(i))

    @staticmethod
    def frame(names, columns):
        made = sys.modules["polars"].DataFrame
        if "" in names or len({*names}) < len(names):  # of a list, polars would change or refuse these
            return made(dict(zip(names, columns)))
        return made([c if c.name == name else c.alias(name) for name, c in zip(names, columns)])

    @staticmethod
    def take(column, rows):
        rows = Rows.of(rows)
        if rows.every:
            return column
        if not len(rows):
            return column.clear()
        if rows.missing is not None and not len(column):
            return column.extend_constant(None, len(rows))
        return column[rows.polars]  # a fifth of the time of `gather`, which is a query

    @staticmethod
    def like(values, there, column):
        polars = sys.modules["polars"]
        made = Polars.cast(polars.Series(column.name, values), column)
        if there is None or there.all():
            return made
        made = polars.select(polars.when(polars.Series(there)).then(made)).to_series()
        return made.alias(column.name)

    @staticmethod
    def joined(one, other):
        polars, parts = sys.modules["polars"], [one, other]
        if one.dtype != other.dtype and not isinstance(one.dtype, polars.Decimal):
            parts = [
                part.cast(polars.Binary if part.dtype == polars.Binary else polars.String) for part in parts
            ]
        return polars.concat([part.to_frame("k") for part in parts], how="vertical_relaxed").to_series()

    @staticmethod
    def result(values, there, given, zone=None, scale=None):
        polars, listed = sys.modules["polars"], _listed(values, there)
        if listed is not None:
            return polars.Series(listed, dtype=None if scale is None else polars.Decimal(38, scale))
        made = polars.Series(_in_unit(values, "D ms us ns"))
        made = made if zone is None else Polars.in_zone(made, str(zone))
        if there is None:
            return made
        return polars.select(polars.when(polars.Series(there)).then(made)).to_series()

    @staticmethod
    def cast(made, column):
        return made if made.dtype == column.dtype else made.cast(column.dtype)

    @staticmethod
    def made(values, x, name, aligned):
        listed = _listed(values, None)
        values = _in_unit(values, "D ms us ns") if listed is None else listed
        return sys.modules["polars"].Series(name if isinstance(name, str) else "", values)

    named = staticmethod(lambda made, given: made.alias(getattr(given, "name", "")))
    are_alike = staticmethod(lambda one, other: one.dtype == other.dtype)
    part = staticmethod(lambda rows, start, count: rows.slice(start, count))
    numbers = staticmethod(lambda values, there, one, other: Polars.result(values, there, one))
    in_zone = staticmethod(lambda times, zone: times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
    pick = staticmethod(lambda x, rows: x[rows])
    kept = staticmethod(lambda column: column.rechunk())
    one = staticmethod(lambda value, column: sys.modules["polars"].Series([value], dtype=column.dtype))

    @staticmethod
    def categories(names):
        polars = sys.modules["polars"]
        return polars.Series(names, dtype=polars.Enum(names))

    @staticmethod
    def objects(column):
        if column.dtype.base_type().__name__ in ("Object", "Int128", "UInt128"):  # Arrow has not
            return np.array([*column.to_list(), None], object)[:-1]
        return Arrow.objects(column.to_arrow())


_LARGE = dict.fromkeys(("string", "large_string", "string_view"), "large_string")  # by names of Arrow's types
_LARGE |= dict.fromkeys(("binary", "large_binary", "binary_view"), "large_binary")


def _large(column):
    """Texts of Arrow in the layout that has room for all; other columns as they are."""
    column = decoded(column)
    return column.cast(_LARGE.get(str(column.type), column.type))


def _taken_texts(column, rows, kind):
    """Some rows of a column of large texts as texts of another type, in chunks of less than 2 GiB."""
    pa, taken = sys.modules["pyarrow"], column.take(rows)
    try:
        return taken.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        if len(rows) < 2 or not hasattr(taken, "chunks"):
            raise OverflowError(f"over 2 GiB of texts in one array; cast it to large_{kind}") from None
    half = len(rows) // 2
    parts = (_taken_texts(column, part, kind) for part in (rows[:half], rows[half:]))
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], kind)


def _taken(column, rows):
    """Some rows of a column of Arrow. pyarrow does not take views (of slices that came by a stream, 26.0.1
    reads beyond the end), what has views or runs inside, and chunks whose dictionaries have nulls, or too
    many values for one. Of several dictionaries of float16 it makes one of their bits (26.0.1)."""
    pa, kind = sys.modules["pyarrow"], column.type
    halves = pa.types.is_dictionary(kind) and pa.types.is_float16(kind.value_type)
    try:
        if not (halves and hasattr(column, "chunks")) and not str(kind).endswith("_view"):
            return column.take(rows)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pass
    if str(kind) in _LARGE:
        return _taken_texts(_large(column), rows, kind)
    if pa.types.is_dictionary(kind):
        first, *others = chunks = column.chunks or [pa.array([], kind)]
        if all(chunk.dictionary.equals(first.dictionary) for chunk in others):
            numbers, known = pa.chunked_array([c.indices for c in chunks]).take(rows), first.dictionary
        else:
            made = _taken(decoded(column), rows).combine_chunks().dictionary_encode()
            numbers, known = made.indices, made.dictionary
            if len(known) <= 2 ** (kind.index_type.bit_width - 1):
                numbers = numbers.cast(kind.index_type)
        numbers = numbers.combine_chunks() if hasattr(numbers, "chunks") else numbers
        return pa.DictionaryArray.from_arrays(numbers, known, ordered=kind.ordered)
    whole, null = column.combine_chunks() if hasattr(column, "chunks") else column, pa.nulls(1, kind)
    pieces = [null if row is None else whole.slice(row, 1) for row in rows.to_pylist()]
    return pa.concat_arrays(pieces or [whole[:0]])


def decoded(column, dictionaries=True):
    """A column of Arrow with values in the place of runs, and of dictionaries."""
    pa, kind = sys.modules["pyarrow"], column.type
    runs = pa.types.is_run_end_encoded(kind)
    if not runs and not (dictionaries and pa.types.is_dictionary(kind)):
        return column
    parts = []
    for chunk in getattr(column, "chunks", [column]):
        if runs:
            rows = np.arange(len(chunk)) + chunk.offset
            rows = pa.array(np.searchsorted(chunk.run_ends.to_numpy(), rows, "right"))
        parts.append(_taken(chunk.values, rows) if runs else _taken(chunk.dictionary, chunk.indices))
    made = pa.chunked_array(parts, kind.value_type) if hasattr(column, "chunks") else parts[0]
    return decoded(made, dictionaries)


def _in_chunks(made, beside):
    """A column of Arrow in chunks if another column, or the columns of a table, are such; otherwise in one
    array."""
    pa = sys.modules["pyarrow"]
    if isinstance(beside, (pa.ChunkedArray, pa.Table)) or getattr(beside, "chunked", False):
        return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _encoded(made, kind):
    """An array of values in a type of dictionaries; of runs, as it is."""
    pa = sys.modules["pyarrow"]
    if not pa.types.is_dictionary(kind):
        return made
    made = made.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        made.indices.cast(kind.index_type), made.dictionary, ordered=kind.ordered
    )


class Arrow:
    """The same for tables of pyarrow."""

    @staticmethod
    def columns(frame):
        return frame.schema.names, frame.columns

    names = staticmethod(lambda frame: frame.schema.names)
    column = staticmethod(lambda frame, i: frame.column(i))

    @staticmethod
    def frame(names, columns):
        return sys.modules["pyarrow"].table(columns, names=names)

    @staticmethod
    def take(column, rows):
        rows = Rows.of(rows)
        return column if rows.every else _in_chunks(_taken(decoded(column, False), rows.arrow), column)

    @staticmethod
    def of_type(values, there, kind):
        if hasattr(kind, "value_type"):
            return _encoded(Arrow.of_type(values, there, kind.value_type), kind)
        if str(kind) == "null":  # which pyarrow makes of no array of numpy
            return sys.modules["pyarrow"].nulls(len(values))
        values, mask = _in_unit(values, "D s ms us ns"), None if there is None else ~there
        return sys.modules["pyarrow"].array(values, type=kind, mask=mask, from_pandas=False)

    @staticmethod
    def like(values, there, column):
        return _in_chunks(Arrow.of_type(values, there, column.type), column)

    @staticmethod
    def joined(one, other):
        pa, parts = sys.modules["pyarrow"], [one, other]
        if one.type != other.type:
            parts = [decoded(column) for column in parts]
        if parts[0].type != parts[1].type:
            parts = [_large(column) for column in parts]
        tables = [pa.table({"k": c}) for c in parts]
        return pa.concat_tables(tables, promote_options="permissive").column(0)

    are_alike = staticmethod(lambda one, other: one.type == other.type)
    part = Polars.part
    numbers = staticmethod(lambda values, there, one, other: Arrow.of_type(values, there, None))

    @staticmethod
    def in_zone(times, zone):
        return times.cast(sys.modules["pyarrow"].timestamp(times.type.unit, zone))

    @staticmethod
    def result(values, there, given, zone=None, scale=None):
        pa, listed = sys.modules["pyarrow"], _listed(values, there)
        if listed is not None:
            return pa.array(listed, None if scale is None else pa.decimal128(38, scale))
        made = Arrow.of_type(values, there, None)
        return made if zone is None else Arrow.in_zone(made, str(zone))

    @staticmethod
    def cast(made, column):
        return made.cast(column.type)

    @staticmethod
    def categories(names):
        return sys.modules["pyarrow"].array(names).dictionary_encode()

    @staticmethod
    def pick(x, rows):
        return _of_columns(Arrow, x, rows) if hasattr(x, "schema") else Arrow.take(x, rows)

    @staticmethod
    def made(values, x, name, aligned):
        return _in_chunks(Arrow.result(values, None, None), x)

    named = staticmethod(_in_chunks)
    one = staticmethod(lambda value, column: sys.modules["pyarrow"].array([value], column.type))

    @staticmethod
    def kept(column):
        """In one array if that has room for all, without runs, and views as large texts."""
        pa, column = sys.modules["pyarrow"], decoded(column, False)
        column = _large(column) if str(column.type) in ("string_view", "binary_view") else column
        try:
            return column.combine_chunks() if getattr(column, "num_chunks", 1) != 1 else column
        except pa.ArrowInvalid:  # for dictionaries with nulls, or with too many values for one
            return column

    @staticmethod
    def objects(column):
        pa, column = sys.modules["pyarrow"], decoded(column)
        fine = column.type == pa.time64("ns")  # which pyarrow would round
        try:
            if fine and (column.cast(pa.int64()).fill_null(0).to_numpy() % 1000).any():
                raise OverflowError("nanoseconds")
            return np.array([*column.to_pylist(), None], object)[:-1]
        except UnicodeDecodeError as error:
            raise not_utf8(error) from None
        except (ValueError, OverflowError) as error:  # also of years and zones that Python has not
            raise OverflowError(
                f"roost: a value of {column.type} that Python has not ({error}); pass a frame"
            ) from None


class Device:
    """The same for tables of Arrow in memory of a device."""

    @staticmethod
    def columns(frame):
        return frame.names, frame.columns

    names = staticmethod(lambda frame: frame.names)
    column = staticmethod(lambda frame, i: frame.columns[i])

    @staticmethod
    def frame(names, columns):
        return DeviceTable(list(names), columns)

    @staticmethod
    def take(column, rows):
        rows = Rows.of(rows)
        return column if rows.every else column.take(rows.numbers)

    @staticmethod
    def joined(one, other):
        library = one.library
        made = library.module.join_columns(library.place(), one.made, other.made)
        return DeviceColumn(made, library)

    @staticmethod
    def result(values, there, library):
        """What was computed, an array of the library, as a column."""
        return values if isinstance(values, DeviceColumn) else DeviceColumn.of_array(values, library, there)

    @staticmethod
    def pick(x, rows):
        if isinstance(x, DeviceTable):
            return _of_columns(Device, x, rows)
        return x.take(x.library.of_numpy(rows))


class Selected:
    """Some columns of a frame, as keys: a frame of them would take as long as a small call. `frames`: Pandas,
    Polars or Arrow."""

    __slots__ = ("frames", "names", "columns")

    def __init__(self, frames, names, columns):
        self.frames, self.names, self.columns = frames, names, columns

    def frame(self):
        return self.frames.frame(self.names, self.columns)


def selected(frames, names, columns):
    """Columns as keys; on a device as a table."""
    return frames.frame(names, columns) if frames is Device else Selected(frames, names, columns)


def _of_columns(frames, x, rows):
    """Some rows of a frame."""
    names, columns = frames.columns(x)
    return frames.frame(names, [frames.pick(column, rows) for column in columns])


_FRAMES = (("pandas", "DataFrame", Pandas), ("polars", "DataFrame", Polars))
_FRAMES += (("pyarrow", "Table", Arrow), ("pyarrow", "RecordBatch", Arrow))
_COLUMNS = (("pandas", "MultiIndex", None), ("pandas", "Series", Pandas), ("pandas", "Index", Pandas))
_COLUMNS += (("pandas.api.extensions", "ExtensionArray", Pandas), ("polars", "Series", Polars))
_COLUMNS += (("pyarrow", "Array", Arrow), ("pyarrow", "ChunkedArray", Arrow))

_frames, _columns = {DeviceTable: Device}, {DeviceColumn: Device}  # by type
_libraries = dict.fromkeys((DeviceTable, DeviceColumn, np.ndarray))


def _fitting(x, classes, known):
    kind = type(x)
    if kind not in known:
        modules = [(sys.modules.get(module), name, frames) for module, name, frames in classes]
        fitting = (
            frames for module, name, frames in modules if module and isinstance(x, getattr(module, name))
        )
        known[kind] = next(fitting, None)
    return known[kind]


def frames_of(x):
    """Pandas, Polars, Arrow or Device for frames of these; None for anything else."""
    return _fitting(x, _FRAMES, _frames)


def expect_no_own_order(x, what):
    """Raises a TypeError for ordered categories, in a frame or a tuple too: roost compares their values."""
    frames = frames_of(x)
    for column in frames.columns(x)[1] if frames else x if isinstance(x, tuple) else (x,):
        kind = getattr(column, "dtype", getattr(column, "type", None))
        kind = getattr(kind, "pyarrow_dtype", kind)
        if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":
            raise TypeError(
                f"{what}: a column of categories with an order of their own; pass the codes of the "
                "categories, or convert them to strings or numbers"
            )


_has_capsules = {}  # by type: whether it has Arrow's interface, and whether it may be on a device
_ON_DEVICES = ("__arrow_c_device_array__", "__arrow_c_device_stream__")


def _capsules_of(x):
    kind = type(x)
    if kind not in _has_capsules:
        has = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")
        on_device = any(hasattr(kind, name) for name in _ON_DEVICES)
        bases = {(base.__module__.split(".")[0], base.__name__) for base in kind.__mro__}
        libraries = {library for library, _ in bases}
        if libraries & {"numpy", "pandas", "polars", "pyarrow"}:
            has = has and ("pyarrow", "RecordBatchReader") in bases
            on_device = "not is_cpu" if on_device and hasattr(kind, "is_cpu") else False
        _has_capsules[kind] = has, False if "roost" in libraries else on_device
    return _has_capsules[kind]


def may_be_device(x):
    """Whether an argument may be a column or a table of Arrow in memory of a device."""
    on_device = _capsules_of(x)[1]
    return not x.is_cpu if on_device == "not is_cpu" else on_device


def of_capsules(x):
    """An object that has Arrow's C interface, but is of no library that roost knows, as a pyarrow table or
    column, or as a DeviceTable or DeviceColumn; anything else as it is."""
    if may_be_device(x) and (found := take_device(x)) is not None:
        return found
    if not _capsules_of(x)[0]:
        return x
    try:
        import pyarrow as pa
    except ImportError:
        return x
    column = pa.chunked_array(x) if hasattr(x, "__arrow_c_stream__") else pa.array(x)
    return pa.Table.from_struct_array(column) if pa.types.is_struct(column.type) else column


def frames_of_column(column):
    """Pandas, Polars, Arrow or Device for columns of these; None for anything else."""
    return _fitting(column, _COLUMNS, _columns)


class Model:
    """What results beside a column or a frame are made like: its library, and the type and name of a column.
    Nothing of its memory."""

    __slots__ = ("frames", "dtype", "type", "name", "chunked")

    def __init__(self, frames, x):
        self.frames, self.dtype, self.type, self.name = frames, None, None, None
        if frames is Arrow:
            self.chunked = hasattr(x, "chunks") or hasattr(x, "to_batches") or type(x) is Selected
        if frames_of(x) is None and type(x) is not Selected:
            if frames is Arrow:
                self.type = x.type
            else:
                self.dtype, self.name = x.dtype, getattr(x, "name", None)

    def like(self, values):
        """Values of the column, as arrays have them, in its type."""
        return self.frames.like(values, None, self) if values.ndim == 1 else values

    def beside(self, values, name=None):
        """What was computed, an array, as a column with an index of its own."""
        return _beside(self.frames, values, self, name, False)


class MaskedModel:
    """The same of a masked array: its values are one, too, whether one of them is masked or not."""

    like = staticmethod(lambda values: np.ma.MaskedArray(values, False))
    beside = staticmethod(lambda values, name=None: values)


def _library_of(x):
    """Pandas, Polars or Arrow for a column or a frame; None for anything else, and on a device."""
    if type(x) is Selected:
        return x.frames
    return _fitting(x, _FRAMES + _COLUMNS, _libraries)


def _first_of(x):
    """A column, or the first one of a tuple."""
    return x[0] if isinstance(x, tuple) and x else x


def model_of(x):
    """The Model of keys: of a column, a frame or a masked array, or of the first one of a tuple; None for
    others."""
    x = _first_of(x)
    if has_mask(x):
        return MaskedModel
    frames = _library_of(x)
    return None if frames is None else Model(frames, x)


_NONE = type(None)


def _beside(frames, values, x, name, aligned):
    kind = values.dtype.kind
    spans = kind == "m" and np.datetime_data(values.dtype)[0] in ("Y", "M", "generic")
    texts = kind == "O" and set(map(type, values.flat)) in ({str}, {bytes}, {str, _NONE}, {bytes, _NONE})
    if values.ndim != 1 or (kind not in "biufmMSTU" and not texts) or spans:
        return values  # rows, records and the like, which columns do not have
    try:
        return frames.made(values, x, name, aligned)
    except (OverflowError, UnicodeError):  # for dates beyond the library's units, or half of a character
        return values


def beside(x, values, name=None):
    """An array with a value for each row of an argument, as a column of its library, with its index; as it is
    if the argument is of another library. Columns stay of their own library."""
    x = _first_of(x)
    frames = _library_of(x)
    if frames is Pandas and frames_of_column(values) is Pandas and hasattr(x, "index"):
        values.index = x.index
    if frames is None or type(values) is not np.ndarray:
        return values
    return _beside(frames, values, x, name, True)


def beside_keys(model, values, name=None):
    """The same of a value for each key, with an index of its own. `model`: that of the keys, or None."""
    return values if model is None or type(values) is not np.ndarray else model.beside(values, name)


def name_of(x):
    """The name of a column; None for anything else."""
    return getattr(x, "name", None) if frames_of_column(x) is not None else None


def readable(x):
    """A column of Arrow, or of Arrow in pandas, without run ends, and without dictionaries of views or
    instants: pyarrow reads some types only. Anything else as it is."""
    frames = frames_of_column(x)
    if frames not in (Arrow, Pandas):
        return x
    column = x if frames is Arrow else getattr(getattr(x, "array", x), "_pa_array", None)
    if column is None:
        return x
    known = getattr(column.type, "value_type", None)
    made = decoded(column, str(known).endswith("_view") or getattr(known, "tz", None) is not None)
    return x if made is column else made


def is_there(x):
    """For each value of a column, or of an array of objects, whether it is not null; None: x is neither."""
    frames = frames_of_column(x)
    if type(x) is np.ndarray and x.dtype == object:
        missing = [v is None or type(v).__name__ == "NAType" or (v != v) is True for v in x]
        return ~np.array(missing, np.bool_)
    if frames is Pandas:
        return ~np.asarray(x.isna(), np.bool_)
    if frames is Polars:
        return x.is_not_null().to_numpy()
    return np.asarray(decoded(x).is_valid(), np.bool_) if frames is Arrow else None


def has_nulls(x):
    """Whether a column or an array is of a type that has nulls, if it has any or not."""
    if frames_of_column(x) is Pandas:
        return not isinstance(x.dtype, np.dtype) or x.dtype.kind == "O"
    return frames_of_column(x) in (Polars, Arrow) or has_mask(x)


def in_utc(x):
    """A column of instants of a time zone as one without a zone, in UTC, and the zone; others and None."""
    frames, kind = frames_of_column(x), getattr(x, "dtype", getattr(x, "type", None))
    kind = getattr(kind, "pyarrow_dtype", kind)
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    known = getattr(getattr(kind, "categories", None), "tz", None)
    if frames is Pandas and known is not None:
        return sys.modules["pandas"].Series(x).cat.rename_categories(
            x.dtype.categories.tz_convert(None)
        ), known
    if zone is None or frames is None:
        return x, None
    if frames is Polars:
        return x.dt.convert_time_zone("UTC").dt.replace_time_zone(None), zone
    if frames is Pandas and kind is x.dtype:
        return sys.modules["pandas"].Series(x).dt.tz_convert(None), zone
    column = x if frames is Arrow else _arrow_of(x)
    return column.cast(sys.modules["pyarrow"].timestamp(kind.unit)), zone


def take_rows(column, rows):
    """The values of some rows of a column, as its library has them."""
    return frames_of_column(column).take(column, rows)


def take_or_null(column, rows):
    """The same, where negative numbers are nulls: integers and bools of numpy in pandas become nullable, and
    no floats."""
    kind = getattr(column.dtype, "kind", None) if frames_of_column(column) is Pandas else None
    pandas = sys.modules.get("pandas")
    plain = kind in ("b", "i", "u") and isinstance(column.dtype, (np.dtype, pandas.SparseDtype))
    if plain and rows.min(initial=0) < 0:
        column = pandas.Series(pandas.array(column.to_numpy()), name=getattr(column, "name", None))
    return take_rows(column, rows)


def like_axis(made, *given):
    """A frame that was made of columns of others. That of pandas gets the labels of their columns as they
    were, or the name of these, if they agree on it."""
    if frames_of(made) is Pandas and frames_of(given[0]) is Pandas:
        known, *others = (frame.columns for frame in given)
        if not others and list(made.columns) == list(known):
            made.columns = known  # of its own type
        elif made.columns.nlevels == known.nlevels and all(known.names == other.names for other in others):
            made.columns = made.columns.set_names(known.names)
    return made


def like_rows(made, given, rows=None):
    """A frame or a column of the rows of another one, or of some, with their labels in pandas; a column also
    with the name of the other one, and in chunks if that is."""
    frames = frames_of_column(made)
    if frames is Arrow:
        return _in_chunks(made, given)
    if (frames or frames_of(made)) is Pandas and (index := getattr(given, "index", None)) is not None:
        made.index = index if rows is None else index.take(rows)
        made = made if frames else like_axis(made, given)
    if frames is Pandas and frames_of_column(given) is Pandas:
        made.name = getattr(given, "name", None)
    return made.alias(given.name) if frames is Polars and frames_of_column(given) is Polars else made


def shallow_copy(column):
    """A column that does not change when the given one does, if possible without a copy of its values."""
    if frames_of_column(column) is Polars:
        return column.clone()
    if frames_of_column(column) is Pandas:
        return column.copy(deep=False) if hasattr(column, "iloc") else column.copy()
    return column


def zone_of(column):
    """The time zone of a column; None if it has none."""
    kind = column.dtype if hasattr(column, "dtype") else column.type
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    kind = getattr(kind, "pyarrow_dtype", kind)
    while hasattr(kind, "value_type"):  # of dictionaries and runs
        kind = kind.value_type
    return getattr(kind, "tz", None) or getattr(kind, "time_zone", None)


def objects_at(column, rows):
    """The same as objects of Python."""
    return frames_of_column(column).objects(take_rows(column, rows))


def _near(names, known):
    """What else may have been meant by names that no column has, for errors."""
    known = {str(name): name for name in known}
    near = [known[n] for name in names for n in difflib.get_close_matches(str(name), known, 2)]
    return f"; did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""


def column_named(frame, name, what):
    """A column of a frame."""
    frames = frames_of(frame)
    names = frames.names(frame)
    if names.count(name) != 1:
        one, near = ("not one", _near([name], names)) if name not in names else ("more than one", "")
        raise KeyError(f"{what}: {name!r} is {one} of the columns {names!r}{near}")
    return frames.column(frame, names.index(name))


def with_suffix(name, suffix):
    """The name of a column with a suffix: a tuple, as pandas has it, with one in its last part."""
    return (*name[:-1], f"{name[-1]}{suffix}") if isinstance(name, tuple) else f"{name}{suffix}"


def names_of(names, known):
    """Names of columns as a list, and whether they are several: not one text, or a tuple that is known."""
    several = not isinstance(names, (str, bytes)) and hasattr(names, "__iter__")
    several = several and not (isinstance(names, tuple) and names in known)
    return list(names) if several else [names], several


def columns_named(frame, names, what, argument, columns=None):
    """Some columns of a frame, Selected. `argument` has the names, or one; `columns`: all, if known."""
    frames = frames_of(frame)
    if frames is None:
        advice = advice_on(frame, "give a frame of pandas, polars or Arrow")
        kind = type(frame).__name__
        raise TypeError(f"{what}: {argument}= names columns, of which a {kind} has none; {advice}")
    known = frames.names(frame)
    names, _ = names_of(names, known)
    try:
        wrong = [name for name in names if known.count(name) != 1]
    except Exception:  # expressions of polars and others have no truth value
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(f"{what}: {argument} of type {', '.join(kinds)}; give the names of columns") from None
    if not names:
        raise KeyError(f"{what}: {argument}={names!r} names no column; the columns are {known!r}")
    if wrong:
        twice = any(name in known for name in wrong)
        hint = "; rename those that share a name" if twice else _near(wrong, known)
        raise KeyError(f"{what}: {argument}={names!r}, but the columns are {known!r}{hint}")
    rows = map(known.index, names)
    return selected(frames, names, [columns[i] if columns else frames.column(frame, i) for i in rows])
