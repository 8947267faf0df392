"""Calls for columns in host memory that go through a GPU, within a limit of its memory."""

import contextlib
import contextvars
import fractions
import functools
import inspect
import operator
import os
import re
import sys
import time
import typing

import numpy as np

from . import _gpu, _host

_LIMIT = 4 * 2**30
# From how many rows on device="auto" takes a GPU: see docs/larger-than-memory.md.
_AUTO_ROWS = {"roost.isin": 2**24, "roost.group_by": 2**28}
_AUTO_ROWS_OF_OTHERS = 2**22
_UNITS = {"B": 1, **{f"{p}B": 1000**i for i, p in enumerate("KMGT", 1)}}
_UNITS |= {f"{p}iB": 1024**i for i, p in enumerate("KMGT", 1)}
_DEVICES = "'cuda', 'cuda:1' and so on, 'auto', 'cpu' or 'simulated'"


class _Options(typing.NamedTuple):
    """Those of a call, as users give them."""

    device: object = None
    limit: object = None
    progress: object = False
    spill: object = None
    host_limit: object = None

    def over(self, others):
        """These, and others where these are left out."""
        return _Options(*(b if a is none else a for a, b, none in zip(self, others, _Options())))


_default = _Options()
_chosen = contextvars.ContextVar("the Way of a call", default=None)


def _bytes_of(limit, what, name="limit"):
    """A limit as a number of bytes."""
    wrong = f"{what}: {name}={limit!r}; give bytes, or a text such as '8GB' or '512MiB'"
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)?\s*", limit, re.ASCII)
        if not found or (found[2] or "B") not in _UNITS:
            raise ValueError(wrong)
        limit = int(fractions.Fraction(found[1]) * _UNITS[found[2] or "B"])
    elif isinstance(limit, (bool, np.bool_)) or not hasattr(limit, "__index__"):
        raise TypeError(wrong)
    limit = operator.index(limit)
    if not 0 <= limit < 2**63:
        raise ValueError(wrong)
    return limit


def _folder_of(spill, what):
    """The name of a folder as C++ takes it."""
    wrong = f"{what}: spill={spill!r}; give the name of a folder"
    try:
        folder = os.fsdecode(spill)
        folder.encode()
    except (TypeError, UnicodeError):
        raise TypeError(wrong) from None
    if not folder or "\0" in folder:
        raise ValueError(wrong)
    return folder


class _Line:
    """A line on a terminal that says how far a call is."""

    APART = 0.2  # seconds

    def __init__(self, what):
        self._what, self._next, self._shown = what, time.monotonic() + self.APART, False

    def __call__(self, done, all):
        if time.monotonic() >= self._next and sys.stderr.isatty():
            self._next, self._shown = time.monotonic() + self.APART, True
            text = f"{self._what}: {done / 1e6:.0f} of {all / 1e6:.0f} MB, {100 * done // max(all, 1)} %"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self):
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _devices():
    """How many GPUs there are for the module; ImportError: there is no module."""
    if _gpu._lost:
        raise RuntimeError("roost: CUDA does not work in a child of fork; start processes by spawn")
    return _gpu.module().devices()


@functools.cache
def _stream(index):
    return _gpu.module().place_with_own_stream(index)


def _home(index):
    """The module, and its place, of a GPU; None: simulated."""
    return (_host, _host.Place()) if index is None else (_gpu.module(), _stream(index))


@functools.lru_cache(8)
def _place(index, limit, threads, spill, host_bytes):
    """A place, which keeps its pinned memory for the next call."""
    module, home = _home(index)
    return module.OutOfCore(home, threads, limit, spill, host_bytes)


def trim():
    """Frees pinned memory that is kept for the next call."""
    _place.cache_clear()


class Way:
    """How a call for columns in host memory goes through a device. `explicit`: whether it named one."""

    def __init__(self, what, options, explicit):
        device, limit, progress, spill, host_limit = options
        self.what, self.device, self.explicit = what, device, explicit and device != "auto"
        self._limit, self._bytes = limit, _LIMIT if limit is None else _bytes_of(limit, what)
        self._shows = isinstance(progress, (bool, np.bool_)) and bool(progress)
        self._progress = progress if callable(progress) else None
        if self._progress is None and not isinstance(progress, (bool, np.bool_)):
            raise TypeError(f"{what}: progress={progress!r}; give True, False, or a function of two numbers")
        if spill is None and host_limit is not None:
            raise ValueError(f"{what}: host_limit, but no spill; give spill='/a/folder', too")
        self._spill = "" if spill is None else _folder_of(spill, what)
        self._host_bytes = 2**63 - 1 if host_limit is None else _bytes_of(host_limit, what, "host_limit")
        index = re.fullmatch(r"cuda(?::(\d+))?", device, re.ASCII)
        if index is None and device not in ("auto", "simulated"):
            raise ValueError(f"{what}: device={device!r}; give {_DEVICES}")
        self._index = None if device == "simulated" else int(index[1] or 0) if index else 0
        if device != "auto":
            self._check()
            self._place()

    def _check(self):
        """Raises if there is no such device."""
        if self._index is None:
            return
        try:
            there = _devices()
        except ImportError as error:
            raise NotImplementedError(f"{self.what}: device={self.device!r}, but {error}") from None
        if self._index >= there:
            found = f"{there} GPU{'s' * (there != 1)}" if there else "no GPU"
            raise NotImplementedError(
                f"{self.what}: device={self.device!r}, but this machine has {found}; give device='auto'"
            )

    def _place(self):
        module, home = _home(self._index)
        if self._bytes < (least := module.device_bytes_least(home)):
            raise ValueError(f"{self.what}: limit={self._limit!r}; give at least {least} bytes")
        try:
            return _place(self._index, self._bytes, _host.threads(), self._spill, self._host_bytes)
        except OSError as error:
            raise OSError(f"{self.what}: spill={self._spill!r}: {error}") from None

    def takes(self, rows):
        """Whether a call for so many rows goes this way."""
        if self.device != "auto":
            return True
        try:
            return rows >= _AUTO_ROWS.get(self.what, _AUTO_ROWS_OF_OTHERS) and _devices() > 0
        except (ImportError, RuntimeError):
            return False

    def call(self, name, *arguments):
        """Calls a function of the module for words."""
        module, _ = _home(self._index)
        line = _Line(self.what) if self._shows else None
        before = module.watch(line or self._progress)
        try:
            return getattr(module, name)(self._place(), *arguments)
        except MemoryError as error:
            why = (str(error).partition(": ")[2] or str(error)).replace(
                "more device_bytes", "a greater limit"
            )
            raise MemoryError(f"{self.what}: {why}") from None
        finally:
            module.watch(before)
            if line:
                line.clear()


def way_of(library, rows):
    """The Way of a call for rows of a Library; None: it works where they are."""
    way = _chosen.get()
    if way is None:
        return None
    if library.module is not _host:
        if way.explicit:
            raise ValueError(
                f"{way.what}: device={way.device!r}, but the arrays are on {library.where} already; "
                "leave it out"
            )
        return None
    return way if way.takes(rows) else None


def _rows(column):
    return column[1] if isinstance(column, tuple) else len(column)


def call(library, name, *arguments):
    """Calls a function of the module for words: where these are, or through the device that a user chose."""
    way = _chosen.get()
    if way is not None:
        columns = (c for c in arguments[:2] if isinstance(c, (tuple, np.ndarray)))
        way = way_of(library, max(map(_rows, columns)))
    if way is not None:
        return way.call(name, *arguments)
    return getattr(library.module, name)(library.place(), *arguments)


class Groups:
    """Rows by the numbers of their keys, found through a device, as the module's Grouping has them. Sums and
    the like go through it, too. Aggregates that need the rows of each key list these on the CPU."""

    def __init__(self, keys, way):
        self._way = way
        if hasattr(keys, "numbered"):  # texts
            self._first, self._numbers = keys.numbered(np.dtype("i4"))
            # By first occurrence, as the numbers are. numpy would copy them to 8 bytes, with one thread.
            self._counts = way.call("unique", self._numbers, True, False, False, True, False, None, None)[3]
            return
        self._keys, self._first, self._numbers, self._counts = way.call(
            "unique", keys.words, True, True, True, True, False, None, None
        )

    def size(self, place):
        return len(self._first)

    def keys(self, place):
        return self._keys

    def counts(self, place):
        return self._counts.copy()

    def first_rows(self, place, wide):
        return self._first.view("u4").astype("i8") if wide else self._first.copy()

    def reduce(self, place, *values):
        return self._way.call("reduce", self._numbers, self._counts, *values)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._listed, name)

    @functools.cached_property
    def _listed(self):
        return _host.group_numbers(_host.Place(), self._numbers, self._counts)


def _of_column(column):
    """The array of a column of the host."""
    return column if isinstance(column, np.ndarray) else column[3].numpy()


def _by_bytes(words):
    """Words as rows of bytes."""
    words = np.ascontiguousarray(_of_column(words))
    return words.view(np.uint8).reshape(len(words), -1) if len(words) else words


class Keys:
    """Keys of an Index that stay in host memory, with the methods of the module's: each call sends them
    through a device, with those that are asked for."""

    def __init__(self, words, way):
        self._words, self._way = words, way

    @functools.cached_property
    def _distinct(self):
        """The distinct keys, and for each its first row; for each row the number of its key."""
        keys, first, numbers, _ = self._way.call(
            "unique", self._words, True, True, True, True, False, None, None
        )
        if len(first):
            keys = keys.reshape(-1).view(np.uint8).reshape(len(first), -1)
        return keys if len(first) else self._words, first.view("u4"), numbers.view("u4")

    def find_rows(self, place, asked, target):
        keys, first, _ = self._distinct
        rows = np.append(first.astype("i8"), -1)  # the last one of absent keys
        if _rows(asked):
            _of_column(target)[:] = rows[self._way.call("join", asked, keys, "left", False)[1]]

    def contains(self, place, asked, target):
        self._way.call("isin", asked, self._words, target)

    def size(self):
        return len(self._distinct[1])

    def duplicates(self):
        return _rows(self._words) - self.size()

    def bytes(self):
        return sum(array.nbytes for array in self.__dict__.get("_distinct", ()))

    def valid(self, place):
        keys, first, numbers = self._distinct
        mine = _by_bytes(self._words)
        same = (mine[first][numbers] == mine).all() and (_by_bytes(keys) == mine[first]).all()
        return bool(same and (np.diff(first.astype("i8")) > 0).all())


class Pairs(Keys):
    """The same of a MultiMap."""

    def __init__(self, words, values, way):
        super().__init__(words, way)
        self._values = _of_column(values)

    def find_pairs(self, place, asked):
        if not _rows(asked):
            return np.empty(0, "i8"), self._values[:0]
        left, right = self._way.call("join", asked, self._words, "inner", True)
        return left, self._values[right]

    def find(self, place, asked):
        left, values = self.find_pairs(place, asked)
        return np.searchsorted(left, np.arange(_rows(asked) + 1)), values

    def count(self, place, asked, target):
        _of_column(target)[:] = np.diff(self.find(place, asked)[0])

    def items(self, place):
        order = np.argsort(self._distinct[2], kind="stable")
        return _by_bytes(self._words)[order], self._values[order]

    def size(self):
        return len(self._values)

    def key_count(self):
        return super().size()


def make_index(library, place, words):
    """The table of an Index, or Keys if a device is chosen."""
    way = way_of(library, _rows(words))
    return library.module.make_index(place, words) if way is None else Keys(words, way)


def make_multimap(library, place, words, values):
    way = way_of(library, _rows(words))
    return library.module.make_multimap(place, words, values) if way is None else Pairs(words, values, way)


def _way(what, options, explicit=True):
    """The Way that options name; None: calls work where arrays are."""
    device = None if options.device is None else str(options.device)
    return None if device in (None, "cpu") else Way(what, options._replace(device=device), explicit)


def on_device(function, what=None):
    """Gives a function of the package the options of a device. `what`: its name, if not its own."""
    what = what or f"roost.{function.__name__}"

    @functools.wraps(function)
    def called(*arguments, device=None, limit=None, progress=False, spill=None, host_limit=None, **options):
        given = _Options(device, limit, progress, spill, host_limit)
        mine = any(a is not none for a, none in zip(given[1:], _Options()[1:]))
        if device is None and not mine and _default.device is None:
            return function(*arguments, **options)
        way = _way(what, given.over(_default), device is not None)
        if way is None and mine:
            raise ValueError(f"{what}: limit, progress or spill, but no device; give device='cuda'")
        token = _chosen.set(way)
        try:
            return function(*arguments, **options)
        finally:
            _chosen.reset(token)

    mine = inspect.signature(called, follow_wrapped=False).parameters
    added = [mine[name] for name in _Options._fields]
    given = inspect.signature(function)
    called.__signature__ = given.replace(parameters=[*given.parameters.values(), *added])
    return called


def options(*, device=None, limit=None, progress=False, spill=None, host_limit=None):
    """Sets whether functions for columns in host memory go through a GPU, if a call does not say so.

    Parameters
    ----------
    device : "cuda", "cuda:1" and so on, "auto", "cpu", "simulated" or None
        The GPU that calls go through, piece by piece, however large the columns are; results are the same, in
        host memory. auto: the first GPU for 2^22 rows or more, in isin for 2^24, in group_by for 2^28; fewer
        rows, and all where there is no GPU, stay on the CPU. cpu, and None, the default: calls work where
        their arrays are. simulated: works in the same way in a part of the host's memory, for tests.
    limit : int, or a text such as "8GB" or "512MiB"
        The most memory of the device that a call may have, in bytes: by default 4 GiB, at least 24 MiB, and
        on a GPU better 1 GiB. For simulated, at least 2 MiB, and 2 MiB for each thread.
    progress : bool or callable
        True: a line on the terminal says how far a call is, five times a second. A function is called as
        ``progress(done, all)`` after each piece, with bytes of the input; a call in several steps counts each
        of them from 0. If it raises, the call ends with this exception.
    spill : str or path
        A folder. Where host memory is short, rows that wait there between two passes go to a file in it. The
        file has no name, so that nothing remains of it, however the call or the process ends; what is read
        has checksums. Results stay in memory.
    host_limit : int, or a text such as "64GB"
        How much of the host's memory rows may wait in, beside a sixteenth of `limit`, before they go to
        `spill`. By default all but one GiB of what is free.

    Returns
    -------
    context manager
        After ``with roost.options(device="cuda"): ...`` the options are what they were before. They are the
        same for all threads.

    Raises
    ------
    NotImplementedError
        There is no such GPU, or no module for GPUs; not for auto.
    OSError
        In a call: no file can be made in the folder, the disk is full, or what was read has changed.
    TypeError, ValueError
        Other devices; a limit that is no number of bytes, or less than the least; host_limit without spill.

    Notes
    -----
    These options, which `unique`, `nunique`, `factorize`, `isin`, `join`, `merge`, `value_counts`,
    `duplicated`, `drop_duplicates` and `group_by` take by name, too, are for arrays and columns in host
    memory: with arrays of a GPU, `device` in a call is a ValueError, and that of `options` has no effect.
    Without `sorted` or `return_index`, keys are in order of first occurrence. Columns become words on the
    CPU, and texts numbers. The keys of a `group_by` get numbers through the device, and count, sum, mean,
    product, min, max, any and all of values go through it, too; what needs the rows of each key, such as var
    and median, works on the CPU. Tables stay where their keys are.

    Examples
    --------
    >>> import numpy, roost
    >>> with roost.options(device="simulated", limit="1GB"):
    ...     print(roost.unique(numpy.array([30, 10, 30])))
    [30 10]
    """
    global _default
    before = _default
    given = _Options(device, limit, progress, spill, host_limit)
    Way("roost.options", given._replace(device="auto"), False)  # raises
    way = _way("roost.options", given)
    _default = given if way is not None else given._replace(device=None)
    restored = contextlib.ExitStack()
    restored.callback(_set_default, before)
    return restored


def _set_default(options):
    global _default
    _default = options
