"""The names of `spconv.pytorch`, over `roost.sparse`: see `roost.spconv`."""

from . import conv, core, functional, modules, ops, pool, tables, utils
from .conv import *
from .core import ConvAlgo, SparseConvTensor
from .modules import *
from .pool import *
from .tables import AddTable, AddTableMisaligned, ConcatTable, JoinTable

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
    "is_sparse_conv", "is_spconv_module", "modules", "ops", "pool", "saved_weight_layout", "tables", "utils",
]
# fmt: on
