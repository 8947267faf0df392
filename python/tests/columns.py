"""Random columns for tests: keys of every type and distribution, in every form that roost takes, and what
equals what.

`codes` gives the keys of columns numbers, equal for equal keys; what any function of roost answers follows
from the numbers alone.
"""

import datetime
import decimal
import fractions
import importlib
import itertools
import math
import os
import pathlib
import re

import numpy as np
import pandas as pd


def _import(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pa, pl, torch, cupy, jax = map(_import, ("pyarrow", "polars", "torch", "cupy", "jax"))
if jax:
    jax.config.update("jax_enable_x64", True)



def of_the_day(cases):
    """A third of a test's cases, each day another one, as ./scripts/test has it; all if ROOST_TEST_DAY is not
    set."""
    day = os.environ.get("ROOST_TEST_DAY")
    return list(cases) if day is None else list(cases)[int(day) :: 3]


MOST = 3_000_000  # rows
INTEGERS = "i1 i2 i4 i8 u1 u2 u4 u8".split()
FLOATS = "f2 f4 f8".split()
UNITS = "D h m s ms us ns".split()
SECOND = 10**18  # attoseconds
ATTOSECONDS = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
ATTOSECONDS = {unit: n * SECOND for unit, n in ATTOSECONDS.items()}
ATTOSECONDS |= {unit: 1000**i for i, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms"))}


class Wrong(Exception):
    """An answer that is not the oracle's."""


def expect(what, got, wanted):
    """Whether two arrays or objects are equal."""
    if isinstance(wanted, np.ndarray) and isinstance(got, np.ndarray):
        if got.shape == wanted.shape and (same := _same(got, wanted)).all():
            return
        if got.shape == wanted.shape:
            i = int(np.argmin(same.reshape(-1)))
            got, wanted = got.reshape(-1)[i], wanted.reshape(-1)[i]
            differ = f"{int((~same).sum())} of {same.size} differ"
            raise Wrong(f"{what}: {differ}: [{i}] {said(got)}, not {said(wanted)}")
        raise Wrong(f"{what}: shape {got.shape}, not {wanted.shape}")
    if not (got == wanted) or type(got) is np.ndarray:
        raise Wrong(f"{what}: {said(got)}, not {said(wanted)}"[:400])


def _same(a, b):
    if a.dtype.kind == b.dtype.kind == "f":
        return (a == b) | ((a != a) & (b != b))
    if a.dtype.kind in "mM" and a.dtype == b.dtype:
        return a.view("i8") == b.view("i8")
    if a.dtype.kind == b.dtype.kind and a.dtype.kind in "mM":  # pandas has no days
        return (a == b) | (np.isnat(a) & np.isnat(b))
    return np.asarray(a == b)


def said(value, text=repr):
    """A value for people; numpy 2.5 does not write all dates."""
    try:
        return text(value)
    except OverflowError:
        return f"{type(value).__name__} of {getattr(value, 'dtype', '')}"


def listed(column):
    """The values of an array, or of a column of any library, as Python has them."""
    to_list = getattr(column, "to_pylist", None) or getattr(column, "to_list", None) or column.tolist
    return to_list()


def pick(rng, of):
    return of[int(rng.integers(len(of)))]


# What equals what. `exact` makes of any value something hashable; two are equal as values, as texts or as
# instants if and only if these are.


def exact(value):
    if isinstance(value, (str, bytes)):
        return ("text", str(value)) if isinstance(value, str) else ("bytes", bytes(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit, step = np.datetime_data(value.dtype)
        name = "date" if isinstance(value, np.datetime64) else "span"
        return _instant(name, int(value.view("i8")), unit, step)
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if value is pd.NaT:
        return ("date", "NaT")
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        if getattr(value, "tzinfo", None):
            return ("zoned", str(value))
        return exact(value.to_numpy())
    if isinstance(value, datetime.date):
        if getattr(value, "tzinfo", None):
            return ("zoned", value)
        return exact(np.datetime64(value))
    if isinstance(value, datetime.timedelta):
        return ("span", (value // datetime.timedelta(microseconds=1)) * ATTOSECONDS["us"])
    if isinstance(value, float | np.floating | decimal.Decimal):
        if math.isnan(value):
            return "NaN"
        return float(value) if math.isinf(value) else fractions.Fraction(*value.as_integer_ratio())
    if isinstance(value, fractions.Fraction):
        return value
    if isinstance(value, complex | np.complexfloating):
        return exact(value.real) if value.imag == 0 else ("complex", complex(value))
    if isinstance(value, np.void):
        return ("void", value.tobytes())
    if isinstance(value, tuple | list | np.ndarray):
        return ("row", tuple(exact(v) for v in value))
    return ("object", repr(value))


def _instant(name, count, unit, step=1):
    months = count * step * (12 if unit == "Y" else 1)
    if name == "span" and unit in "YM":  # which are no number of seconds
        return ("months", "NaT" if count == -(2**63) else months)
    if count == -(2**63):
        return (name, "NaT")
    if unit in "YM":
        return (name, _days_of_month(months) * ATTOSECONDS["D"])
    return (name, count * step * ATTOSECONDS[unit]) if unit in ATTOSECONDS else ("generic", count)


def _days_of_month(months):
    """The days from 1970-01-01 to the first day of a month, in Python's integers."""
    year, month = 1970 + months // 12, months % 12 + 1
    year -= month <= 2
    day_of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5
    return year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719468


def same_value(a, b):
    """Whether two values of any types are equal: as mathematical values, as texts, as instants."""
    return exact(a) == exact(b)


def exact_list(column):
    """`exact` of each element, fast for numbers."""
    kind = column.dtype.kind
    if column.ndim == 2:
        return [("row", tuple(row)) for row in column.tolist()]
    if kind in "bui":
        return column.tolist()
    if kind == "f" and column.dtype.itemsize <= 8:
        return ["NaN" if v != v else v for v in column.tolist()]
    if kind in "mM":
        name, (unit, step) = "date" if kind == "M" else "span", np.datetime_data(column.dtype)
        return [_instant(name, count, unit, step) for count in column.view("i8").tolist()]
    return [exact(v) for v in column]


def words(column):
    """A column whose equal elements are equal keys, as pandas takes it."""
    kind, size = column.dtype.kind, column.dtype.itemsize
    if kind in "OUT":
        return column.astype(object)
    if kind == "f":
        column = np.where(column == 0, column.dtype.type(0), column)
        column = np.where(column != column, column.dtype.type(np.nan), column)
        return column.view(f"i{size}")
    if column.ndim == 1 and kind not in "SV":
        return np.ascontiguousarray(column).view(f"u{size}")
    if len(column) == 0:
        return np.empty(0, np.int64)
    raw = np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8)
    wide = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), np.uint8)
    wide[:, : raw.shape[1]] = raw
    result = np.zeros(len(raw), np.int64)
    for word in wide.view(np.uint64).reshape(len(raw), wide.shape[1] // 8).T:
        number = pd.factorize(word)[0]
        result = pd.factorize(result * (int(number.max(initial=0)) + 1) + number)[0]
    return result


def codes(*columns):
    """For each column the numbers of its keys: equal for equal keys, in order of first occurrence."""
    ends = np.cumsum([len(column) for column in columns])[:-1]
    same = len({(column.dtype, column.shape[1:]) for column in columns}) == 1
    if same and columns[0].dtype.kind not in "OUT":  # texts with NUL are alike to some versions of pandas
        numbers = pd.factorize(words(np.concatenate(columns)))[0]
    else:
        seen = {}
        values = itertools.chain.from_iterable(map(exact_list, columns))
        numbers = np.array([seen.setdefault(v, len(seen)) for v in values], np.int64)
    return np.split(numbers.astype(np.int64), ends)


class Known:
    """What follows from the numbers of a column's keys."""

    def __init__(self, numbers):
        self.of = numbers
        self.n = int(numbers.max(initial=-1)) + 1
        self.counts = np.bincount(numbers, minlength=self.n).astype(np.int64)
        self.order = np.argsort(numbers, kind="stable")  # key by key, rows ascending
        self.begins = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        self.first = self.order[self.begins[:-1]] if self.n else self.order[:0]

    def rows(self, asked):
        """The first row of each key that is asked for, -1 where it is absent."""
        there = (asked >= 0) & (asked < self.n)
        return np.where(there, np.append(self.first, -1)[np.where(there, asked, self.n)], -1)

    def matches(self, asked):
        """For each key asked for: begins of its rows, and the rows."""
        counts = np.where(asked < self.n, np.append(self.counts, 0)[np.minimum(asked, self.n)], 0)
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        starts = np.append(self.begins, 0)[np.minimum(asked, self.n)]
        rows = self.order[np.arange(begins[-1]) + np.repeat(starts - begins[:-1], counts)]
        return begins, rows


# Random columns.


def thresholds():
    """Numbers of rows at which something else begins: each number of tuning.hpp, as rows and as bytes of
    items of each size."""
    here = pathlib.Path(__file__).resolve()
    text = (here.parents[2] / "include/roost/detail/place/tuning.hpp").read_text()
    text = re.sub(r"std::size_t\{(\d+)u?\}", r"\1", text)
    found = re.findall(r"(?:=|return|\?|:) *(\d+)u?(?: << (\d+))?(?=[ ;:])", text)
    numbers = {int(number) << int(shift or 0) for number, shift in found}
    numbers |= {256 << 10, 1 << 14, 1 << 16, 1 << 17, 1 << 24}
    rows = {number // size for number in numbers for size in (1, 4, 8, 12, 16, 20, 24, 32, 40)}
    return sorted(row for row in rows if 30 < row < MOST)


THRESHOLDS = thresholds()


def draw_size(rng, most=MOST):
    """0 to `most` rows: few, about a threshold, or of any size."""
    how = rng.random()
    if how < 0.03:
        return 0
    if how < 0.3:
        return int(rng.integers(0, min(most, 40) + 1))
    near = [t for t in THRESHOLDS if t < most]
    if near and how < 0.9:
        threshold = math.exp(rng.uniform(math.log(near[0]), math.log(near[-1])))
        threshold = min(near, key=lambda t: abs(math.log(t / threshold)))
        if how < 0.5:
            return min(most, threshold + int(rng.integers(-1, 2)))
        return min(most, int(threshold * rng.uniform(0.85, 1.15)))
    return int(math.exp(rng.uniform(0, math.log(most + 1))))


def draw_codes(rng, n, first=0):
    """n numbers from `first` on, few or many different ones, in several orders."""
    d = int(pick(rng, [1, 2, 20, max(1, math.isqrt(n)), max(1, n // 2), max(1, n), max(1, n)]))
    how = pick(rng, ["uniform", "uniform", "uniform", "zipf", "distinct", "runs"])
    if how == "uniform":
        result = rng.integers(0, d, n)
    elif how == "zipf":
        result = np.minimum(rng.zipf(1.3, n), d) - 1
    elif how == "distinct":
        result = rng.permutation(n)
    else:
        result = np.sort(rng.integers(0, d, n))[:: pick(rng, [1, -1])]
    return result.astype(np.int64) + first


def mix(numbers, salt):
    """64 bits that look random, of each number."""
    x = numbers.astype(np.uint64) + np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


TEXTS = ["", "\0", "a", "a\0", "a\0\0", "\0a", "ab", "nan"]
TEXTS += ["é", "e\u0301", "\ud800", "\U0001f600", "ß" * 40]
TEXTS += ["\udfff", "?", "None", "1", "1.0", "True", "a" * 31, "a" * 32, "a" * 33, "\uffff", " a", "a "]


class Source:
    """Keys of one type: makes of each number a key, so that columns of one source have keys in common.

    `type`: numpy's name of a type, "rows TYPE COLUMNS", "text", or "bytes" (objects of any length).
    """

    def __init__(self, rng, type):
        self.type, self.salt = type, int(rng.integers(2**63))
        self.how = pick(rng, ["next", "apart", "random", "edges"])
        self.start = int(pick(rng, [0, 0, 1, -5, 2**31 - 9, 2**32 - 9, 2**53 - 9, 2**63 - 9, 2**64 - 9]))
        self.shift = int(rng.integers(1, 60)) if rng.integers(2) else 16
        self.alphabet = int(pick(rng, [2, 3, 256]))

    def __call__(self, numbers):
        numbers = np.asarray(numbers, np.int64)
        if self.type in ("text", "bytes"):
            different, back = np.unique(numbers, return_inverse=True)
            made = np.empty(len(different), object)
            made[:] = [self._text(number) for number in different.tolist()]
            return made[back]
        if self.type.startswith("rows"):
            _, of, columns = self.type.split()
            columns = int(columns)
            if self.how == "next":
                base = max(2, self.alphabet)
                digits = [numbers // min(base**c, 2**40) % base for c in range(columns)]
            else:
                digits = [self._integers(numbers // 7 ** min(c, 14), c) for c in range(columns)]
            return np.stack([d.astype(np.uint64).astype(of) for d in digits], 1)
        dtype = np.dtype(self.type)
        if dtype.kind in "SV":
            raw = np.stack([mix(numbers, self.salt + i) for i in range(4)], 1)
            raw = (raw.view(np.uint8).reshape(-1, 32)[:, : dtype.itemsize] % np.uint16(self.alphabet)).astype(
                "u1"
            )
            if self.how == "next":
                raw[:, -4:] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)[:, -dtype.itemsize :]
            return np.ascontiguousarray(raw).reshape(-1).view(dtype)
        if dtype.kind == "b":
            return numbers % 2 == 1
        if dtype.kind == "f":
            return self._floats(numbers, dtype)
        if dtype.kind in "mM":
            return self._integers(numbers, 0, [0, 1, -1, 2**63, 2**63 + 1, 2**63 - 1]).view(dtype)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        edges = [low, high, low + 1, high - 1, 0, 1, 2, 2**53, 2**53 + 1, 2**32, 2**31, 256, high // 2]
        return self._integers(numbers, 0, edges).astype(dtype)

    def _integers(self, numbers, salt, edges=()):
        if self.how == "random":
            return mix(numbers, self.salt + salt)
        start = np.uint64(self.start % 2**64)
        if self.how == "apart":
            return start + (numbers.astype(np.uint64) << np.uint64(self.shift))
        result = start + numbers.astype(np.uint64)
        edges = np.array([edge % 2**64 for edge in edges], np.uint64)
        if self.how == "edges" and len(edges):
            result = np.where(numbers < len(edges), edges[np.minimum(numbers, len(edges) - 1)], result)
        return result

    def _floats(self, numbers, dtype):
        if self.how == "random":
            return mix(numbers, self.salt).astype(f"u{dtype.itemsize}").view(dtype)
        limits = np.finfo(dtype)
        edges = [0.0, -0.0, np.nan, np.inf, -np.inf, limits.max, limits.min, limits.tiny, limits.eps, 0.1]
        with np.errstate(over="ignore"):
            edges = np.array([*edges, 2**24, 2**53, 2048.0, 65504][:14], dtype)
        edges = np.append(edges, (edges[2:3].view(f"u{dtype.itemsize}") + 1).view(dtype))  # another NaN
        result = ((numbers - self.salt % 100) * (0.25 if self.how == "apart" else 1)).astype(dtype)
        if self.how == "edges":
            result = np.where(numbers < len(edges), edges[np.minimum(numbers, len(edges) - 1)], result)
        return result

    def _text(self, number):
        if self.how == "edges" and number < len(TEXTS):
            text = TEXTS[number]
        elif self.how == "random":
            text = f"{mix(np.array([number]), self.salt)[0]:x}"[: self.alphabet]
        else:
            text = f"{number}" * (self.salt % 9 + 1) + "\0" * (number % 3 if self.how == "apart" else 0)
        return text if self.type == "text" else text.encode("utf-8", "surrogatepass")


def families(device):
    """Types of keys, by kind; those of some kinds count twice."""
    rows = [f"rows {t} {c}" for t in INTEGERS for c in range(1, 33) if np.dtype(t).itemsize * c <= 32]
    numbers = [INTEGERS] * 3 + [FLOATS] * 2 + [["?"], rows]
    if device != "cpu":
        return numbers
    dates = [f"{kind}8[{unit}]" for kind in "mM" for unit in [*UNITS, "M", "10us"]]
    sized = [f"{kind}{size}" for kind in "SV" for size in range(1, 33)]
    return [*numbers, dates, sized, ["text", "bytes"]]


# How a column may be given. Each takes an array of numpy and returns what roost gets, or None.


def _strided(a, rng):
    return np.repeat(a, 3, axis=0)[1::3]


def _misaligned(a, rng):
    memory = np.empty(a.nbytes + 1, np.uint8)
    result = memory[1:].view(np.uint8)[: a.nbytes].view(a.dtype).reshape(a.shape)
    result[...] = a
    return result


def _read_only(a, rng):
    a = a.copy()
    a.flags.writeable = False
    return a


def _odd_offset(a, rng):
    return np.concatenate([a[:1], a])[1:] if len(a) else a


def _swapped(a, rng):
    return a.astype(a.dtype.newbyteorder()) if a.dtype.kind in "iufmM" else None


def _broadcast(a, rng):
    same = len(a) and a.ndim == 1 and a.dtype.kind != "c" and (words(a) == words(a)[0]).all()
    return np.broadcast_to(a[:1], a.shape) if same else None


def _subclass(a, rng):
    return a.view(np.char.chararray if a.dtype.kind == "S" else np.memmap)


def _numpy(layout):
    def give(a, rng):
        if a.dtype.kind == "O":
            texts = len(a) > 0 and isinstance(a[0], str)
            form = pick(rng, ["O", "U", "T"]) if texts else "O"
            if form == "U" and not any(t.endswith("\0") for t in a):
                a = a.astype("U")
            elif form == "T" and not any(0xD800 <= ord(c) < 0xE000 for t in a for c in t):
                a = a.astype(np.dtypes.StringDType())
            if layout in (_misaligned, _swapped, _broadcast):
                return a
        return layout(a, rng)

    return give


def _list(a, rng):
    if len(a) == 0 or len(a) > 20000 or a.dtype.kind in "mMV" or a.ndim > 1:
        return None
    if a.dtype.kind == "S":
        return [bytes(v) for v in a] if all(len(v) == a.dtype.itemsize for v in a) else None
    return pick(rng, [list, tuple])(a.tolist())


def _buffer(a, rng):
    return memoryview(np.ascontiguousarray(a)) if a.ndim == 1 and a.dtype.kind in "biuf" else None


def _plain_for_pandas(a):
    unit = np.datetime_data(a.dtype) if a.dtype.kind in "mM" else ("s", 1)
    return a.ndim == 1 and a.dtype.kind not in "SVc" and unit in {(u, 1) for u in ("s", "ms", "us", "ns")}


def _surrogates(a):
    return a.dtype.kind == "O" and any(0xD800 <= ord(c) < 0xE000 for t in a if isinstance(t, str) for c in t)


def _pandas_series(a, rng):
    if not _plain_for_pandas(a):
        return None
    if a.dtype.kind == "O" and len(a) and isinstance(a[0], str) and not _surrogates(a):
        return pd.Series(a, dtype=pick(rng, [object, "str", "string"]))
    return pd.Series(a, index=np.arange(len(a))[::-1] * 3, dtype=object if a.dtype.kind == "O" else None)


def _pandas_index(a, rng):
    if not _plain_for_pandas(a) or a.dtype == np.float16:
        return None
    return pd.Index(a, dtype=object if a.dtype.kind == "O" else None)


def _pandas_nullable(a, rng):
    names = {"b": "boolean", "i": f"Int{a.dtype.itemsize * 8}", "u": f"UInt{a.dtype.itemsize * 8}"}
    if a.ndim > 1 or a.dtype.kind not in names:
        return None
    return pick(rng, [pd.Series, pd.array])(a, dtype=names[a.dtype.kind])


def _pandas_arrow(a, rng):
    array = _arrow(a, rng)
    return None if array is None else pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))


def _pandas_categorical(a, rng):
    numbers = a.dtype.kind in "iu" or (a.dtype.kind == "O" and not _surrogates(a))
    return pd.Series(pd.Categorical(a)) if numbers and a.ndim == 1 else None


def _arrow(a, rng):
    if pa is None or a.ndim > 1 or a.dtype.kind in "SVc" or _surrogates(a):
        return None
    if not _plain_for_pandas(a) and a.dtype.kind in "mM":
        return None
    if a.dtype.kind in "mM":
        if (a.view("i8") == -(2**63)).any():
            return None  # Arrow's null
        kind = pa.timestamp if a.dtype.kind == "M" else pa.duration
        return pa.array(a.view("i8")).cast(pa.int64()).view(kind(np.datetime_data(a.dtype)[0]))
    if a.dtype.kind == "O":
        is_text = len(a) == 0 or isinstance(a[0], str)
        name = "string" if is_text else "binary"
        kind = pick(rng, [name, f"large_{name}", f"{name}_view"])
        return pa.array(a.tolist(), getattr(pa, kind)())
    return pa.array(a)


def _arrow_slice(a, rng):
    array = _arrow(np.concatenate([a[:1], a, a[-1:]]), rng)
    return None if array is None else array.slice(min(len(a), 1), len(a))


def _arrow_chunks(a, rng, make=_arrow):
    cuts = np.sort(rng.integers(0, len(a) + 1, 3))
    state = rng.bit_generator.state
    parts = []
    for part in np.split(a, cuts):
        rng.bit_generator.state = state  # the same type for all
        parts.append(make(part, rng))
    parts = [part for part in parts if part is not None and len(part)]
    if sum(map(len, parts)) != len(a) or not parts:
        return None
    return pa.chunked_array(parts)


def _arrow_dictionary(a, rng):
    array = _arrow(a, rng)
    views = pa.string_view(), pa.binary_view()
    if array is None or array.type in (*views, pa.float16()) or len(a) > 500000:
        return None
    return array.dictionary_encode()


def _arrow_runs(a, rng):
    if pa is None or a.dtype.kind not in "iu" or a.ndim > 1 or len(a) == 0:
        return None
    import pyarrow.compute

    return pyarrow.compute.run_end_encode(pa.array(a))


def _polars(a, rng):
    if pl is None or a.ndim > 1 or a.dtype.kind not in "biufmMO" or _surrogates(a) or a.dtype == np.float16:
        return None
    if a.dtype.kind in "mM":
        if np.datetime_data(a.dtype) not in {("ms", 1), ("us", 1), ("ns", 1)}:
            return None
        if (a.view("i8") == -(2**63)).any():
            return None  # a null
    if a.dtype.kind == "O":
        if len(a) == 0:
            return None
        return pl.Series(a.tolist(), dtype=pl.String if isinstance(a[0], str) else pl.Binary)
    return pl.Series(np.ascontiguousarray(a))


def _polars_chunks(a, rng):
    cut = int(rng.integers(0, len(a) + 1))
    one, two, three = (_polars(part, rng) for part in (a[:cut], a[cut:], a[:2]))
    if one is None or two is None or one.dtype != two.dtype:
        return None
    both = one.append(two)
    return both if three is None else both.append(three).slice(0, len(a))


def _polars_categorical(a, rng):
    texts = a.dtype.kind == "O" and len(a) and isinstance(a[0], str) and not _surrogates(a)
    return pl.Series(a.tolist(), dtype=pl.Categorical) if pl and texts else None


def _torch(layout, device="cpu"):
    def give(a, rng):
        if torch is None or a.dtype.kind not in "biufc":
            return None
        try:
            tensor = torch.from_numpy(np.array(a, order="C", copy=True)).to(device)
            return layout(tensor)
        except (TypeError, RuntimeError, NotImplementedError):
            return None  # not for unsigned numbers

    return give


def _torch_strided(tensor):
    wide = torch.empty((len(tensor), 2, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
    wide[:, 1] = tensor
    return wide[:, 1]


def _torch_negative(tensor):
    if tensor.isnan().any():  # whose bits negation changes
        return None
    if tensor.is_complex():
        return tensor.conj_physical().conj()
    return torch._neg_view(-tensor) if tensor.is_floating_point() else None


def _torch_misaligned(tensor):
    if not tensor.numel():
        return None
    memory = bytearray(3) + tensor.numpy().tobytes()
    return torch.frombuffer(memory, dtype=tensor.dtype, offset=3).view(tensor.shape)


def _cupy(a, rng, layout=lambda a: a):
    return layout(cupy.asarray(np.ascontiguousarray(a))) if cupy and a.dtype.kind in "biuf" else None


def _jax(platform, layout=lambda array: array):
    def give(a, rng):
        if not jax or a.dtype.kind not in "biuf":
            return None
        return layout(jax.device_put(np.ascontiguousarray(a), jax.devices(platform)[0]))

    return give


def _by_columns(array):
    from jax.experimental.layout import Format, Layout

    return jax.device_put(array, Format(Layout((1, 0)), array.sharding)) if array.ndim == 2 else None


SPELLINGS = {  # by device: name, library of results, how
    "cpu": [
        ("numpy", "numpy", _numpy(lambda a, rng: a)),
        ("numpy strided", "numpy", _numpy(_strided)),
        ("numpy reversed", "numpy", _numpy(lambda a, rng: a[::-1].copy()[::-1])),
        ("numpy Fortran", "numpy", _numpy(lambda a, rng: np.asfortranarray(np.stack([a, a], 1)[:, 1]))),
        ("numpy misaligned", "numpy", _numpy(_misaligned)),
        ("numpy swapped", "numpy", _numpy(_swapped)),
        ("numpy read-only", "numpy", _numpy(_read_only)),
        ("numpy broadcast", "numpy", _numpy(_broadcast)),
        ("numpy odd offset", "numpy", _numpy(_odd_offset)),
        ("numpy subclass", "numpy", _numpy(_subclass)),
        ("buffer", "numpy", _buffer),
        ("list", "list", _list),
        ("pandas Series", "pandas", _pandas_series),
        ("pandas Index", "pandas", _pandas_index),
        ("pandas nullable", "pandas", _pandas_nullable),
        ("pandas Arrow", "pandas", _pandas_arrow),
        ("pandas Categorical", "pandas", _pandas_categorical),
        ("arrow", "arrow", _arrow),
        ("arrow slice", "arrow", _arrow_slice),
        ("arrow chunks", "arrow", _arrow_chunks),
        ("arrow dictionary", "arrow", _arrow_dictionary),
        ("arrow dictionary chunks", "arrow", lambda a, rng: _arrow_chunks(a, rng, _arrow_dictionary)),
        ("arrow runs", "arrow", _arrow_runs),
        ("polars", "polars", _polars),
        ("polars chunks", "polars", _polars_chunks),
        ("polars Categorical", "polars", _polars_categorical),
        ("torch", "torch", _torch(lambda t: t)),
        ("torch strided", "torch", _torch(_torch_strided)),
        ("torch negative", "torch", _torch(_torch_negative)),
        ("torch misaligned", "torch", _torch(_torch_misaligned)),
        ("jax", "jax", _jax("cpu")),
        ("jax by columns", "jax", _jax("cpu", _by_columns)),
    ],
    "cuda": [
        ("torch", "torch", _torch(lambda t: t, "cuda")),
        ("torch strided", "torch", _torch(_torch_strided, "cuda")),
        ("torch negative", "torch", _torch(_torch_negative, "cuda")),
        ("cupy", "cupy", _cupy),
        ("cupy strided", "cupy", lambda a, rng: _cupy(np.repeat(a, 2, axis=0), rng, lambda x: x[::2])),
        ("cupy Fortran", "cupy", lambda a, rng: _cupy(a, rng, lambda x: cupy.asfortranarray(x))),
        ("jax", "jax", _jax("gpu")),
        ("jax by columns", "jax", _jax("gpu", _by_columns)),
    ],
}


class Column:
    """An array of numpy, and the same as roost gets it."""

    def __init__(self, truth, given, form, library):
        self.truth, self.given, self.form, self.library = truth, given, form, library

    def __str__(self):
        shape = "x".join(map(str, self.truth.shape))
        return f"{self.form} {getattr(self.given, 'dtype', self.truth.dtype)} ({shape})"
