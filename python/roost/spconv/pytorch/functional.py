"""Sums of tensors with different voxels."""

import functools

import torch

from ...sparse import CoordinateIndex
from .core import SparseConvTensor

__all__ = ["sparse_add", "sparse_add_hash_based"]


@torch.compiler.disable
def _union(tensors, what):
    """The sum over all voxels of some tensor, in the order of an index."""
    if not tensors or not all(isinstance(each, SparseConvTensor) for each in tensors):
        raise TypeError(f"{what}: {[type(each).__name__ for each in tensors]}; give SparseConvTensors")
    first = tensors[0]
    boxes = [(each.spatial_shape, each.batch_size, each.features.shape[1]) for each in tensors]
    if any(each != boxes[0] for each in boxes):
        raise ValueError(f"{what}: tensors of (spatial_shape, batch_size, channels) {boxes}; give equal ones")
    wide = [torch.as_tensor(each._voxels().coordinates) for each in tensors]
    index = CoordinateIndex(torch.cat(wide))
    dtype = functools.reduce(torch.promote_types, (each.features.dtype for each in tensors))
    sums = first.features.new_zeros(len(index), first.features.shape[1], dtype=dtype)
    for each, rows in zip(tensors, torch.as_tensor(index.rows_of_input()).split([len(t) for t in tensors])):
        # Each row once, so the sums are deterministic.
        sums = sums.index_add(0, rows, each.features.to(dtype))
    result = first._with(sums, index, first.spatial_shape)
    most = max(tensors, key=len)
    result.indice_dict = most.indice_dict if len(most) == len(result) else {}
    return result


def sparse_add(*tens: SparseConvTensor) -> SparseConvTensor:
    """The sum of tensors with different voxels: at all voxels of one or more of them, by batch and position.

    What layers left under an indice_key stays if one of the tensors has all voxels.
    """
    result = _union(tens, "roost.spconv.functional.sparse_add")
    order = torch.arange(len(result), device=result.indices.device)
    for column in reversed(result.indices.unbind(1)):
        order = order[torch.argsort(column[order], stable=True)]
    result.indices, result._features = result.indices[order], result._features[order]
    return result


def sparse_add_hash_based(*tens: SparseConvTensor) -> SparseConvTensor:
    """`sparse_add` with its voxels in the order of an index, the same each time: faster."""
    return _union(tens, "roost.spconv.functional.sparse_add_hash_based")
