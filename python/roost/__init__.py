"""Hash tables for arrays: unique, isin, group by, joins and maps.

    >>> import numpy as np, roost
    >>> ids = np.array([30, 10, 30, 20])
    >>> roost.unique(ids, return_counts=True, sorted=True)
    (array([10, 20, 30]), array([1, 1, 2]))
    >>> roost.Index(ids).get_indexer(np.array([20, 99]))
    array([ 3, -1])

Functions: unique, nunique, factorize, isin, join, merge, merge_asof, interval_join, group_by, value_counts,
duplicated, drop_duplicates, partition, gather. Tables: Index, Map, Set, MultiMap, ConcurrentMap, Store.

Arguments are arrays of numpy, torch, CuPy and jax, on the CPU or on a GPU, columns and frames of pandas,
polars and Arrow, or anything that numpy.asarray takes. What comes in comes out: results are arrays of the
library of the (first) argument, on its device, and for columns and frames they are columns and frames of that
library, with its types, nulls, names and (pandas) index. Row numbers to select by are arrays. See
docs/python.md.
"""

import importlib as _importlib
import sys as _sys

try:
    from . import _gpu, _host
except ImportError as _why:
    raise ImportError(
        f"roost: the compiled module cannot be imported ({_why}); in the source tree, install the package "
        "(pip install .) and start Python in another folder"
    ) from _why
from ._arrays.take import from_arrow
from ._asof import interval_join, merge_asof
from ._device import options
from ._device import trim as _trim_device
from ._functions import (
    drop_duplicates,
    duplicated,
    factorize,
    isin,
    join,
    nunique,
    partition,
    unique,
    value_counts,
)
from ._gather import gather
from ._group_by import GroupBy, group_by
from ._merge import merge
from ._options import whole_number as _whole_number
from ._rolling import Rolling
from ._tables import ConcurrentMap, Index, Map, MultiMap, Set, Store

__version__ = "0.2.0"

__all__ = [
    "ConcurrentMap",
    "GroupBy",
    "Index",
    "Map",
    "MultiMap",
    "Rolling",
    "Set",
    "Store",
    "drop_duplicates",
    "duplicated",
    "factorize",
    "from_arrow",
    "gather",
    "group_by",
    "info",
    "interval_join",
    "isin",
    "join",
    "merge",
    "merge_asof",
    "nunique",
    "options",
    "partition",
    "set_threads",
    "trim",
    "unique",
    "value_counts",
]

_MODULES = ("distributed", "match", "pandas", "polars", "solids", "sparse", "spconv", "stars", "torch")


def __getattr__(name):
    """A module of the package that was not imported yet."""
    if name not in _MODULES:
        raise AttributeError(f"module 'roost' has no attribute {name!r}")
    try:
        return _importlib.import_module(f"roost.{name}")
    except ImportError as why:
        raise AttributeError(f"roost.{name} cannot be imported: {why}") from why


def __dir__():
    return sorted([*__all__, *_MODULES, "__doc__", "__version__"])


def set_threads(threads):
    """Sets how many threads calls on the CPU use: 1 to 4096, but never more than the number of cores; or 0
    for all cores, the default."""
    what = "roost.set_threads"
    threads = _whole_number(threads, what, "threads")
    if threads > 4096:
        raise ValueError(f"{what}: threads={threads}; give at most 4096, or 0 for all cores")
    _host.set_threads(threads)


def trim():
    """Returns memory that roost keeps for its next call to the system."""
    _host.trim()
    _trim_device()
    _gpu.trim()
    if "roost._apps" in _sys.modules:
        _sys.modules["roost._apps"].trim()


def info():
    """A dict that describes this build: version, threads, whether it has CUDA, and how many devices there
    are."""
    try:
        devices = _gpu.module().devices()
    except ImportError:
        devices = None
    return {
        "version": __version__,
        "threads": _host.threads(),
        "cuda": devices is not None,
        "devices": devices or 0,
    }
