"""Calls with tensors, and the types of their results: see typed_calls.py."""

# mypy: disallow-untyped-defs, disallow-untyped-calls

from typing import Any, assert_type

import numpy as np
import roost
import roost.sparse
import roost.torch
import torch
from numpy.typing import NDArray
from roost.sparse import nn
from torch import Tensor

Int64 = NDArray[np.int64]
x: Int64 = np.array([3, 1, 3])
t = torch.tensor([3, 1, 3])

assert_type(roost.unique(t), Tensor)
assert_type(roost.unique(t, return_index=True, return_counts=True), tuple[Tensor, Tensor, Tensor])
assert_type(roost.factorize(t), tuple[Tensor, Tensor])
assert_type(roost.value_counts(t, normalize=True), tuple[Tensor, Tensor])
assert_type(roost.isin(t, x), Tensor)
assert_type(roost.isin([1, 2], t), Tensor)
assert_type(roost.isin(x, t), NDArray[np.bool_])
assert_type(roost.duplicated((t, t)), Tensor)
assert_type(roost.join(t, x), tuple[Tensor, Tensor])
assert_type(roost.join([1], t, "semi"), Tensor)
assert_type(roost.join(x, t), tuple[Int64, Int64])
assert_type(roost.partition(t, 2), tuple[Tensor, Tensor])
assert_type(roost.gather(t, t - 1), Tensor)
groups = roost.group_by(t)
assert_type(groups.keys, Tensor)
assert_type(groups.sum(t), Tensor)
assert_type(groups.mean(x), Tensor)
assert_type(groups.count(), Tensor)
assert_type(groups.cumcount(), Tensor)
assert_type(groups.head(1), Int64)
assert_type(groups.transform("sum", t), Tensor)
assert_type(groups.nlargest(t, 1), tuple[Tensor, Tensor])
assert_type(groups.agg(n="count"), dict[str, Any])
assert_type(roost.Index(t).get_indexer([1, 2]), Tensor)
assert_type(roost.Index(t).contains(x), NDArray[np.bool_])
assert_type(roost.Index(x).contains(t), Tensor)
assert_type(roost.Set(t).keys(), Tensor)
assert_type(roost.Map(t, x).items(), tuple[Tensor, Tensor])
assert_type(roost.Map(t, x).find([3]), Tensor)
assert_type(roost.MultiMap(t, x).find(t), tuple[Tensor, Tensor])
assert_type(roost.MultiMap(t, x)[3], Tensor)
assert_type(roost.ConcurrentMap(like=t).keys(), Tensor)
voxels = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32)
assert_type(roost.sparse.CoordinateIndex(voxels).coordinates, Tensor)
assert_type(nn.SparseTensor(torch.ones(2, 1), voxels).index.rows_of_input(), Tensor)
assert_type(roost.torch.Map(t, t).forward(t), Tensor)
assert_type(roost.torch.unique(t), tuple[Tensor, Tensor, Tensor])
assert_type(roost.torch.unique(t, size=3), tuple[Tensor, ...])
assert_type(roost.torch.unique(t, return_inverse=False, return_counts=False), Tensor)
assert_type(roost.torch.index_add(t, 0, t - 1, t, alpha=2), Tensor)
assert_type(roost.torch.scatter_reduce(t, 0, t - 1, t, "amax", include_self=False), Tensor)
assert_type(roost.torch.scatter(t, t, reduce="mean"), Tensor)
assert_type(roost.torch.scatter_max(t, t), tuple[Tensor, Tensor])
assert_type(roost.torch.relabel(t, t), tuple[Tensor, tuple[Tensor, ...]])
assert_type(roost.torch.relabel(t, size=3), tuple[Tensor, tuple[Tensor, ...], Tensor])
assert_type(roost.torch.coalesce(torch.stack([t, t]), t, (4, 4)), tuple[Tensor, Tensor])
assert_type(roost.torch.moe_permute(t.view(3, 1), t, 4)[1].offsets, Tensor)
with roost.torch.patch():
    pass
