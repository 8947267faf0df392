"""spconv's names over `roost.sparse`: one import to change, the same checkpoints.

`roost.spconv.pytorch` has the same names as this module, and is laid out as spconv's.

    >>> import torch, roost.spconv as spconv
    >>> voxels = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 2], [0, 4, 4, 4]], dtype=torch.int32)
    >>> x = spconv.SparseConvTensor(torch.ones(3, 16), voxels, [5, 5, 5], batch_size=1)
    >>> net = spconv.SparseSequential(
    ...     spconv.SubMConv3d(16, 32, 3, indice_key="subm1"),
    ...     torch.nn.ReLU(),
    ...     spconv.SparseConv3d(32, 64, 3, stride=2, padding=1, indice_key="down"),
    ... )
    >>> net(x).dense().shape
    torch.Size([1, 64, 3, 3, 3])

What differs from spconv is in docs/coming-from.md.
"""

from . import pytorch
from .pytorch import *
from .pytorch import conv, core, functional, modules, ops, pool, tables, utils

# fmt: off
__all__ = [
    "AddTable", "AddTableMisaligned", "ConcatTable", "ConvAlgo", "Identity", "JoinTable", "RemoveGrid",
    "SparseAvgPool", "SparseAvgPool1d", "SparseAvgPool2d", "SparseAvgPool3d", "SparseBatchNorm",
    "SparseConv1d", "SparseConv2d", "SparseConv3d", "SparseConv4d", "SparseConvTensor",
    "SparseConvTranspose1d", "SparseConvTranspose2d", "SparseConvTranspose3d", "SparseConvTranspose4d",
    "SparseConvolution", "SparseGlobalAvgPool", "SparseGlobalMaxPool", "SparseIdentity",
    "SparseInverseConv1d", "SparseInverseConv2d", "SparseInverseConv3d", "SparseInverseConv4d",
    "SparseMaxPool", "SparseMaxPool1d", "SparseMaxPool2d", "SparseMaxPool3d", "SparseMaxPool4d",
    "SparseModule", "SparseReLU", "SparseSequential", "SparseSyncBatchNorm", "SubMConv1d", "SubMConv2d",
    "SubMConv3d", "SubMConv4d", "ToDense", "assign_name_for_sparse_modules", "conv", "core", "functional",
    "is_sparse_conv", "is_spconv_module", "modules", "ops", "pool", "pytorch", "saved_weight_layout",
    "tables", "utils",
]
# fmt: on
