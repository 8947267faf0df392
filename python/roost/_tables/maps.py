"""Map, Set, MultiMap: tables that are built once."""

import numpy as np

from .._arrays.exact import advice_on, plural
from .._arrays.frames import (
    Pandas,
    beside,
    beside_keys,
    frames_of,
    frames_of_column,
    model_of,
    of_capsules,
)
from .._arrays.types import INT64
from .._device import make_multimap, on_device
from .._keys.packing import encode_table
from .._options import check_rows
from .keyed import Keyed
from .values import values_of


class Mapping(Keyed):
    """What tables of keys and values have in common."""

    _name = None  # of the column that the values were

    def find(self, keys, missing=...):
        """The value of each key, `missing` for those that are absent.

        Parameters
        ----------
        keys : array of m keys, or several columns
        missing : a value
            By default 0, which for dates is 1970-01-01, and for bytes and numpy's strings is empty. For
            values that are objects None, and for columns of texts, decimals, lists, times of a zone and the
            like a null, which None gives for other columns with nulls, too. If a stored value can be that,
            pass another value to recognise absent keys, or use `contains`; ``table[keys]`` raises KeyError.

        Returns
        -------
        array of m values
            For a column or frame of keys, a column of its library, in pandas with its index; its name is that
            of the column of values. Values that are a column beside the table give a column of their own
            type.
        """
        what = f"roost.{type(self).__name__}.find"
        found = self._find(self._queries(keys, what), self._values.one(missing, what))
        return beside(keys, found, self._name)

    def get(self, key, default=None):
        """The value of one key, or `default`. A key of several columns is a tuple; None is a null."""
        keys = self._present(key)
        return default if keys is None else self._one_value(keys)

    def __getitem__(self, key):
        """The value of one key, or of each key of an array; KeyError if one is absent."""
        if self._is_one(key):
            return self._one_value(self._one_there(key))
        found = self._find(self._all_there(key, "find() has a value for these"), self._values.one(..., ""))
        return beside(key, found, self._name)

    def _one_value(self, keys):
        return self._values.python(self._find(keys, self._values.one(..., "")))

    def items(self):
        """Two arrays, all keys and all values, rather than pairs: unpack them before a loop.

        Returns
        -------
        keys, values : arrays
            In the same order, which has no meaning. Keys have the form in which they were passed: an array, a
            column, a tuple of these, or a frame. Values are of the library of the keys, and columns
            without words, such as texts, of their own.

        Examples
        --------
        >>> import numpy, roost
        >>> keys, values = roost.Map(numpy.array([7, 8]), numpy.array([1.5, 2.5])).items()
        >>> for key, value in sorted(zip(keys.tolist(), values.tolist())):
        ...     print(key, value)
        7 1.5
        8 2.5
        >>> (shops, days), values = roost.Map((["York", "Bath"], [1, 2]), [30, 20]).items()
        >>> sorted(zip(shops.tolist(), days.tolist(), values.tolist()))
        [('Bath', 2, 20), ('York', 1, 30)]
        """
        keys, values = self._items()
        return self._given(keys), beside_keys(self._model, values, self._name)

    def keys(self):
        """All keys, in the order of `items`."""
        return self._given(self._keys())

    def values(self):
        """All values, in the order of `items`."""
        return self.items()[1]

    def __iter__(self):
        return self._iterate()


def _pairs_of(x, what):
    """The keys and the values of a dict, of a pandas Series with its index, or of a frame of two columns."""
    if isinstance(x, dict):
        return list(x), list(x.values())
    x = of_capsules(x)
    frames = frames_of(x)
    if frames is not None:
        _, columns = frames.columns(x)
        if len(columns) != 2:
            raise TypeError(f"{what}: a frame of {plural(len(columns), 'column')}; pass two, keys and values")
        return columns
    if frames_of_column(x) is Pandas and hasattr(x, "iloc"):
        keys = x.index
        return (keys.to_frame(index=False, allow_duplicates=True) if keys.nlevels > 1 else keys), x
    if frames_of_column(x) is not None:
        raise TypeError(f"{what}: a {type(x).__name__} without an index; pass keys and values, or a frame")
    advice = advice_on(x, "pass an array of them, one for each key, or a dict")
    raise TypeError(f"{what}: no values; {advice}")


class Map(Mapping):
    """A map that is built once from arrays, and then only queried: the fastest table.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`. If a key occurs more than once, its first value counts. Without `values`: a dict, a
        pandas Series, whose index has the keys, or a frame of two columns, keys and values.
    values : array of n values
        Of any fixed-size type, or rows of any shape. Values of 1 to 16 bytes are stored in the table; of
        larger values the map keeps a copy beside it. Also texts, objects, and any column of pandas, polars or
        Arrow, with or without nulls: the map keeps the column beside the table, on the CPU.

    Notes
    -----
    Never changes, so any number of threads may query it.

    Examples
    --------
    >>> import numpy, roost
    >>> prices = roost.Map(numpy.array([7, 8]), numpy.array([1.5, 2.5]))
    >>> prices.find(numpy.array([8, 9]), missing=-1)
    array([ 2.5, -1. ])
    >>> prices[7]
    1.5
    >>> names = roost.Map(numpy.array([7, 8]), ["pear", "fig"])
    >>> names.find([8, 9]), names[7]
    (array(['fig', None], dtype=object), 'pear')
    """

    def __init__(self, keys, values=None):
        what = "roost.Map"
        if values is None:
            keys, values = _pairs_of(keys, what)
        keys = encode_table(keys, what)
        self._kind, self._library, self._model = keys.kind, keys.library, keys.model
        values = self._values = values_of(values, keys, what)
        self._name = values.name
        module, place = keys.library.module, keys.library.place()
        self._home = place
        if values.bytes is None:
            check_rows(keys.n, INT64, what)
            values.keep()
            self._table = module.make_index(place, keys.words)
        else:
            self._table = module.make_map(place, keys.words, values.take_words())

    def __reduce__(self):
        return Map, self._pickled(*self._items()), {"_name": self._name}


class Set(Keyed):
    """A set of keys that is built once: ``Set(y).contains(x)`` is ``isin(x, y)``, with one build for many
    queries.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`.
    """

    def __init__(self, keys):
        keys = encode_table(keys, "roost.Set")
        self._kind, self._library, self._model = keys.kind, keys.library, keys.model
        self._home = keys.library.place()
        self._table = keys.library.module.make_set(self._home, keys.words)

    def keys(self):
        """All keys, each once, in no particular order, in the form in which they were passed."""
        return self._given(self._keys())

    def __iter__(self):
        return self._iterate()

    def __reduce__(self):
        return Set, self._pickled(self._keys())


class MultiMap(Keyed):
    """A map that keeps all values of a key, in the order of the input.

    Parameters
    ----------
    keys : array of n keys, or several columns
        As for `Index`.
    values : array of n values
        As for `Map`. Values of sizes other than 4 and 8 bytes are in an array beside the table.
    device, limit, progress, spill, host_limit
        As for `Index`.

    Examples
    --------
    >>> import numpy, roost
    >>> parcels = roost.MultiMap(numpy.array([1, 2, 1]), numpy.array([10., 20., 30.]))
    >>> parcels.find(numpy.array([1, 5, 2]))
    (array([0, 2, 2, 3]), array([10., 30., 20.]))
    >>> parcels[1]
    array([10., 30.])
    """

    __iter__ = None  # over keys or pairs? `items` has both

    def __init__(self, keys, values):
        what = "roost.MultiMap"
        keys = encode_table(keys, what)
        self._kind, self._library, self._model = keys.kind, keys.library, keys.model
        library = keys.library
        values = self._values = values_of(values, keys, what)
        self._name = values.name
        if values.size in (4, 8):
            words = values.take_words()
        else:
            check_rows(keys.n, INT64, what)
            values.keep()
            words = library.column(library.of_numpy(np.arange(keys.n, dtype=np.uint32)))
        self._home = library.place()
        self._table = make_multimap(library, self._home, keys.words, words)

    __init__ = on_device(__init__, "roost.MultiMap")

    def __len__(self):
        """The number of pairs."""
        return self._table.size()

    @property
    def key_count(self):
        """The number of distinct keys."""
        return self._table.key_count()

    def count(self, keys):
        """How many values each key has: int64; for a column, a column of its library."""
        given, keys = keys, self._queries(keys, "roost.MultiMap.count")
        library = keys.library
        counts, target = library.output(keys.n, INT64)
        self._table.count(library.place(), keys.words, target)
        return beside(given, library.finish(counts, INT64))

    def find(self, keys):
        """All values of m keys.

        Returns
        -------
        offsets : int64 array of m + 1 numbers
        values : array
            The values of ``keys[i]`` are ``values[offsets[i]:offsets[i + 1]]``.
        """
        given, keys = keys, self._queries(keys, "roost.MultiMap.find")
        library = keys.library
        offsets, values = self._table.find(library.place(), keys.words)
        return library.adopt(offsets, INT64), self._found(given, values, library)

    def __getitem__(self, key):
        """All values of one key, in the order of the input; KeyError if it is absent."""
        if not self._is_one(key):
            raise TypeError("roost.MultiMap[key]: give one key; find() has the values of several keys")
        _, values = self._table.find(self._library.place(), self._one_there(key).words)
        return self._values.decode(values, self._library)

    def find_pairs(self, keys):
        """All values of m keys, with the number of each value's key in `keys`: (int64 array, values)."""
        given, keys = keys, self._queries(keys, "roost.MultiMap.find_pairs")
        library = keys.library
        numbers, values = self._table.find_pairs(library.place(), keys.words)
        return library.adopt(numbers, INT64), self._found(given, values, library)

    def _found(self, keys, values, library):
        """Values that C++ has found, in the library of the keys that were asked for."""
        return beside_keys(model_of(keys), self._values.decode(values, library), self._name)

    def items(self):
        """Two arrays, the key of each pair and its value, with the values of a key together; otherwise as
        `Map.items`."""
        keys, values = self._items()
        return self._given(keys), beside_keys(self._model, values, self._name)

    def __reduce__(self):
        return MultiMap, self._pickled(*self._items()), {"_name": self._name}
