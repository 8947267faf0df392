"""Index, Map, Set, MultiMap, ConcurrentMap, Store: tables that stay."""

from .changing import ConcurrentMap, Store
from .index import Index
from .maps import Map, MultiMap, Set

__all__ = ["ConcurrentMap", "Index", "Map", "MultiMap", "Set", "Store"]
