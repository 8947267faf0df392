"""spconv's names over `roost.sparse`: one import to change, the same checkpoints.

`roost.spconv.pytorch` has the same names as this module, and is laid out as spconv's.

    >>> import torch, roost.spconv as spconv
    >>> voxels = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 2], [0, 4, 4, 4]], dtype=torch.int32)
    >>> x = spconv.SparseConvTensor(torch.ones(3, 16), voxels, spatial_shape=[5, 5, 5], batch_size=1)
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
from .pytorch import __all__ as _names

__all__ = ["pytorch"]
__all__ += _names
