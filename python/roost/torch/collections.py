"""roost.torch.EmbeddingBagCollection and EmbeddingCollection: tables by the names of features."""

import functools
import sys
import zlib

import torch

from .._options import flag
from .sharded import ShardedTable
from .table import Table

_PARTS = "name", "embedding_dim", "num_embeddings", "feature_names", "pooling", "data_type", "init_fn"
_TYPES = {"FP32": torch.float32, "FP16": torch.float16, "BF16": torch.bfloat16}


class _KeyedRows:
    """Pooled rows of several features, side by side, as TorchRec's KeyedTensor has them."""

    def __init__(self, keys, lengths, values):
        self.keys, self.values, self.length_per_key = lambda: keys, lambda: values, lambda: lengths

    def to_dict(self):
        return dict(zip(self.keys(), self.values().split(self.length_per_key(), 1), strict=True))

    def __getitem__(self, key):
        return self.to_dict()[key]


class _JaggedRows:
    """A row for each id of a feature, as TorchRec's JaggedTensor has them."""

    def __init__(self, values, lengths):
        self.values, self.lengths = lambda: values, lambda: lengths

    def offsets(self):
        return _offsets(self.lengths())


class _Features:
    """The parts of a KeyedJaggedTensor, or of something with the same methods, for each feature."""

    def __init__(self, given, what, weighted):
        ends = "offset_per_key" if hasattr(given, "offset_per_key") else "offsets"
        calls = [getattr(given, name, None) for name in ("keys", "values", "lengths", ends)]
        right = not isinstance(given, torch.Tensor) and all(map(callable, calls))
        if not right or not all(isinstance(call(), torch.Tensor) for call in calls[1:3]):
            raise TypeError(
                f"{what}: features of type {type(given).__name__}; pass a KeyedJaggedTensor, or something "
                "with its keys(), values(), lengths() and offsets(), the last three of them tensors"
            )
        for name in ("inverse_indices_or_none", "variable_stride_per_key"):
            value = getattr(given, name, lambda: None)()
            if value is not None and value is not False:
                raise ValueError(f"{what}: {name.removesuffix('_or_none')}, which tables do not take")
        self.what, self._keys, self._values = what, list(given.keys()), given.values()
        self._weights = getattr(given, "weights_or_none", lambda: None)()
        if weighted != (self._weights is not None):
            raise ValueError(
                f"{what}: features with{'out' if weighted else ''} weights, and is_weighted={weighted}"
            )
        if weighted and self._weights.shape != self._values.shape:
            raise ValueError(f"{what}: {len(self._weights)} weights of {len(self._values)} ids")
        self._lengths, n = given.lengths(), len(self._keys)
        if len(set(self._keys)) != n or n == 0 or len(self._lengths) % n:
            raise ValueError(f"{what}: {len(self._lengths)} lengths of features {self._keys}")
        self.stride = len(self._lengths) // n
        if hasattr(given, "offset_per_key"):
            self._starts = list(given.offset_per_key())
        elif self.stride:
            self._starts = given.offsets()[:: self.stride].tolist()
        else:
            self._starts = [0] * (n + 1)
        if len(self._starts) != n + 1 or self._starts[-1] != len(self._values):
            raise ValueError(
                f"{what}: {len(self._values)} ids, and features that begin at {self._starts}; the last of "
                "these must be their number"
            )
        classes = sys.modules.get("torchrec.sparse.jagged_tensor")
        torchrec = classes is not None and isinstance(given, classes.KeyedJaggedTensor)
        self.keyed = classes.KeyedTensor if torchrec else _KeyedRows
        self.jagged = classes.JaggedTensor if torchrec else _JaggedRows

    def of(self, names):
        """The ids of some features, one after the other; how many ids each has; the lengths of all bags; and
        the weights of the ids, or None."""
        absent = [name for name in names if name not in self._keys]
        if absent:
            raise KeyError(f"{self.what}: no feature {absent[0]!r} among {self._keys}")
        at = [self._keys.index(name) for name in names]
        parts, weights = (
            None if all is None else [all[self._starts[k] : self._starts[k + 1]] for k in at]
            for all in (self._values, self._weights)
        )
        lengths = [self._lengths[k * self.stride : (k + 1) * self.stride] for k in at]
        counts = [len(part) for part in parts]
        return torch.cat(parts), counts, torch.cat(lengths), None if weights is None else torch.cat(weights)


class _Collection(torch.nn.Module):
    """Tables, each with the names of its features."""

    _pools = _weighted = False

    def __init__(self, configs, *, table=Table, **options):
        super().__init__()
        what = f"roost.torch.{type(self).__name__}"
        tables, self._about, features = torch.nn.ModuleDict(), [], []
        for config in _listed(configs, what):
            config = _Config(config, what, self._pools)
            if hasattr(tables, config.name):
                raise ValueError(
                    f"{what}: the name {config.name!r} is taken; give names that a ModuleDict takes"
                )
            try:
                tables[config.name] = table(config.dim, config.rows, **config.options(options))
            except (TypeError, ValueError, OverflowError, RuntimeError) as error:
                kinds = TypeError, ValueError, OverflowError, RuntimeError
                if type(error) not in kinds:  # such as torch's, of memory
                    raise
                raise type(error)(f"{config.what}: {error}") from error
            self._about.append((config.name, config.features, config.pooling))
            features += config.features
        # The names of TorchRec.
        self._names = [
            [f"{f}@{name}" if features.count(f) > 1 else f for f in names] for name, names, _ in self._about
        ]
        setattr(self, self._attribute, tables)

    @property
    def lr(self):
        """The learning rate of all tables, or that of the first one; set it between steps."""
        return next(iter(getattr(self, self._attribute).values())).lr

    @lr.setter
    def lr(self, rate):
        for table in getattr(self, self._attribute).values():
            table.lr = rate

    def _each(self, given):
        """For each table: the table, the names of its results, its pooling, and what it looks up."""
        tables = list(getattr(self, self._attribute).values())

        def read():
            features = _Features(given, f"roost.torch.{type(self).__name__}", self._weighted)
            return features, [features.of(names) for _, names, _ in self._about]

        # Reads all features before a table changes; no rank waits for one that has failed.
        ranks = [table._ranks for table in tables if isinstance(table, ShardedTable)]
        features, asked = ranks[0].together("forward of a collection", read)[0] if ranks else read()
        about = zip(tables, self._names, self._about, asked, strict=True)
        return features, [(table, names, pooling, *ids) for table, names, (_, _, pooling), ids in about]


class EmbeddingBagCollection(_Collection):
    """Pooled rows of several features, from a `Table` for each config, with the calls of TorchRec's module.

    Parameters
    ----------
    configs : list
        TorchRec's `EmbeddingBagConfig`, other objects that have its attributes, or dicts: `name`,
        `embedding_dim`, `num_embeddings` (the capacity), `feature_names` (by default the name) and `pooling`
        ("sum" or "mean", or TorchRec's). Features of one table share its rows. Other items of a dict are
        options of its table; policy "score" is refused, because features have no scores.
    table : callable
        Makes the table of a config from its dim, capacity and options: `Table`, or `ShardedTable` for several
        ranks.
    is_weighted : bool
        Whether ids have weights, by which their rows are multiplied; all poolings are then "sum".
    **options
        For all tables. `initializer` is by default that of TorchRec: uniform numbers up to
        ``num_embeddings ** -0.5``, or within the limits of the config. `seed`: each table adds a number that
        depends on its name.

    Attributes
    ----------
    embedding_bags : ModuleDict
        The tables by name.

    Notes
    -----
    The optimizer is part of the tables: `backward` changes the rows, and the module has no parameters.
    Ids may be any numbers. There is one lookup for each table. TorchRec is not needed.
    """

    _pools, _attribute = True, "embedding_bags"

    def __init__(self, configs, *, table=Table, is_weighted=False, **options):
        what = f"roost.torch.{type(self).__name__}"
        weighted = flag(is_weighted, what, "is_weighted")
        super().__init__(configs, table=table, **options)
        self._weighted = weighted
        if weighted and any(pooling == "mean" for *_, pooling in self._about):
            raise ValueError(f"{what}: is_weighted=True, and a table of pooling 'mean'; give 'sum'")

    def forward(self, features):
        """The pooled rows of each feature.

        Parameters
        ----------
        features : KeyedJaggedTensor of TorchRec
            Or anything with the methods `keys()`, `values()`, `lengths()` and `offsets()`, and, with
            `is_weighted`, `weights_or_none()`.

        Returns
        -------
        KeyedTensor of TorchRec, if `features` are TorchRec's
            Else an object with the same `keys()`, `values()`, `length_per_key()`, `to_dict()` and ``[key]``.
            Numbers are float32.
        """
        features, each = self._each(features)
        keys, dims, pooled = [], [], []
        for table, names, pooling, ids, _, lengths, weights in each:
            options = {} if weights is None else {"per_sample_weights": weights}
            rows = table(ids, _offsets(lengths), mode=pooling, include_last_offset=True, **options).float()
            keys += names
            dims += [rows.shape[1]] * len(names)
            pooled += rows.split(features.stride) if features.stride else [rows] * len(names)
        return features.keyed(keys, dims, torch.cat(pooled, 1))


class EmbeddingCollection(_Collection):
    """A row for each id of several features, from a `Table` for each config, with the calls of TorchRec's
    module. Parameters and notes are those of `EmbeddingBagCollection`, except that a config with a `pooling`
    is refused.

    Attributes
    ----------
    embeddings : ModuleDict
        The tables by name.
    """

    _attribute = "embeddings"

    def forward(self, features):
        """The rows of each feature.

        Parameters
        ----------
        features : KeyedJaggedTensor of TorchRec
            Or anything with the same methods, as for `EmbeddingBagCollection`.

        Returns
        -------
        dict
            For the name of each feature, a JaggedTensor of TorchRec if `features` are TorchRec's; otherwise
            an object with the same `values()`, `lengths()` and `offsets()`. Numbers are float32.
        """
        features, each = self._each(features)
        result = {}
        for table, names, _, ids, counts, lengths, _ in each:
            rows = table(ids).float().split(counts)
            parts = lengths.split(features.stride) if features.stride else [lengths] * len(names)
            for name, values, its in zip(names, rows, parts, strict=True):
                result[name] = features.jagged(values, lengths=its)
        return result


def _offsets(lengths):
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int64)


def _listed(configs, what):
    try:
        configs = None if isinstance(configs, (dict, str)) else list(configs)
    except TypeError:
        configs = None
    if not configs:
        raise TypeError(f"{what}: configs must be a list with a config for each table")
    return configs


class _Config:
    """A config, checked."""

    def __init__(self, given, what, pools):
        if not isinstance(given, dict):
            given = {part: getattr(given, part) for part in _PARTS if hasattr(given, part)}
        self.name = given.get("name")
        if not isinstance(self.name, str) or not self.name or "." in self.name:
            raise ValueError(
                f"{what}: a config of the name {self.name!r}; give names that a ModuleDict takes"
            )
        self._given, self.what = given, f"{what}: the table {self.name!r}"
        for part in ("embedding_dim", "num_embeddings"):
            if part not in given:
                raise ValueError(f"{self.what}: a config without {part}")
        self.dim, self.rows = given["embedding_dim"], given["num_embeddings"]
        self.features = self._names()
        pooling = given.get("pooling", "SUM")
        self.pooling = str(getattr(pooling, "name", pooling)).lower()
        if not pools and "pooling" in given:
            raise ValueError(f"{self.what}: rows of ids have no pooling; use EmbeddingBagCollection")
        if self.pooling not in ("sum", "mean"):
            raise ValueError(f"{self.what}: pooling {self.pooling!r}; give 'sum' or 'mean'")

    def _names(self):
        names = self._given.get("feature_names") or [self.name]
        right = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        if not right or len(set(names)) != len(names):
            raise ValueError(f"{self.what}: feature_names={names!r}; give a list of names, each once")
        return list(names)

    def options(self, of_all):
        """Options of the table, including those that TorchRec has in its configs."""
        options = of_all | {part: value for part, value in self._given.items() if part not in _PARTS}
        if options.get("policy") == "score":
            raise ValueError(
                "policy 'score' needs scores, which a collection does not have; use 'lru' or 'lfu'"
            )
        kind = self._given.get("data_type", "FP32")
        kind = str(getattr(kind, "name", kind))
        if kind not in _TYPES:
            raise ValueError(f"data_type {kind}; give FP32, FP16 or BF16")
        options.setdefault("dtype", _TYPES[kind])
        if "initializer" not in options:
            bound = max(self.rows, 1) ** -0.5
            ends, first = {"a": -bound, "b": bound}, self._given.get("init_fn")
            if first is not None:  # TorchRec's own, with the limits of the config
                if not isinstance(first, functools.partial) or first.func is not torch.nn.init.uniform_:
                    raise ValueError("an init_fn; rows are made by the table, so give initializer=")
                ends |= first.keywords
            options["initializer"] = ("uniform", float(ends["a"]), float(ends["b"]))
        # So that an id does not get the same initial row in all tables.
        options["seed"] = (options.get("seed", 0) + zlib.crc32(self.name.encode())) % 2**63
        return options
