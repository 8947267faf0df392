"""roost for torch: modules with arbitrary keys, and operators for torch.compile.

    >>> import torch, roost.torch
    >>> users = roost.torch.Embedding(4)
    >>> users(torch.tensor([70, 8_000_000_000])).shape
    torch.Size([2, 4])

`unique` and `isin` are torch operators (`torch.ops.roost`) with fake kernels, so that `torch.compile` takes
them with `fullgraph=True`; so are the lookups of `Map` and `Embedding`. Outside compiled code, `roost.unique`
and `roost.isin` do the same and have more options. See docs/python.md.
"""

import torch

from .._arrays.libraries import need_custom_operators

need_custom_operators(torch, "roost.torch")

from ._launch import check
from .collections import EmbeddingBagCollection, EmbeddingCollection
from .embedding import Embedding, Map, isin
from .experts import Routes, moe_permute, moe_unpermute
from .ids import bincount, coalesce, group_ids, index_of, jagged_unique, relabel, to_csr, unique
from .patches import patch
from .reductions import (
    index_add,
    index_reduce,
    scatter,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_reduce,
    scatter_sum,
    segment_reduce,
)
from .sharded import ShardedTable
from .table import Table

__all__ = [
    "Embedding",
    "EmbeddingBagCollection",
    "EmbeddingCollection",
    "Map",
    "Routes",
    "ShardedTable",
    "Table",
    "bincount",
    "check",
    "coalesce",
    "group_ids",
    "index_add",
    "index_of",
    "index_reduce",
    "isin",
    "jagged_unique",
    "moe_permute",
    "moe_unpermute",
    "patch",
    "relabel",
    "scatter",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_mul",
    "scatter_reduce",
    "scatter_sum",
    "segment_reduce",
    "to_csr",
    "unique",
]

for _name in __all__:
    globals()[_name].__module__ = "roost.torch"
