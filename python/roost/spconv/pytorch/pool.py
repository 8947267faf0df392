"""spconv's poolings."""

import torch

from ...sparse.nn import _wide
from .conv import _MapLayer
from .core import ConvAlgo, SparseConvTensor, _cast, _sparse
from .modules import SparseModule

__all__ = [f"SparseMaxPool{axes}d" for axes in (1, 2, 3, 4)] + [f"SparseAvgPool{axes}d" for axes in (1, 2, 3)]
__all__ += ["SparseAvgPool", "SparseGlobalAvgPool", "SparseGlobalMaxPool", "SparseMaxPool"]


def _neighbours(map, *values):
    """For each offset of a kernel whether there is a neighbour, as a column, and its row of each tensor."""
    if map._rows_in:
        for rows in torch.as_tensor(map.neighbours()):
            at = rows.clamp_min(0).long()
            yield (rows >= 0)[:, None], *(each[at] for each in values)


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, map):
        best = features.new_zeros(map._rows_out, features.shape[1])
        for there, found in _neighbours(map, features):
            best = torch.where(there & (found > best), found, best)
        ctx.map = map
        ctx.save_for_backward(features, best)
        return best

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        features, best = ctx.saved_tensors
        result = torch.zeros_like(features)
        for there, largest, each in _neighbours(ctx.map.transposed(), best, gradient):
            result += torch.where(there & (features == largest), each, 0)
        return result, None


def _floats(features):
    if not features.is_floating_point():
        raise TypeError(f"roost.spconv: a mean of features of type {features.dtype}; give floats")
    return features


class _Mean(torch.autograd.Function):
    @staticmethod
    def _sum(map, values):
        result = values.new_zeros(map._rows_out, values.shape[1], dtype=_wide(values.dtype))
        for there, each in _neighbours(map, values):
            result += torch.where(there, each, 0)
        return result

    @staticmethod
    def forward(ctx, features, map):
        _floats(features)
        ctx.map, ctx.count = map, (torch.as_tensor(map.neighbours()) >= 0).sum(0)[:, None]
        return (_Mean._sum(map, features) / ctx.count).to(features.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return _Mean._sum(ctx.map.transposed(), gradient / ctx.count).to(gradient.dtype), None


class _Pool(_MapLayer):
    _function = None

    def __init__(
        self,
        ndim: int,
        kernel_size=3,
        stride=1,
        padding=0,
        dilation=1,
        indice_key: str | None = None,
        subm: bool = False,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ):
        super().__init__(name)
        stride = kernel_size if stride is None else stride
        self._set_shape(ndim, kernel_size, stride, padding, dilation, subm, indice_key, algo)
        self._record_voxels(record_voxel_count and not self.subm)

    @torch.compiler.disable
    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        """A tensor of all voxels in the box whose window reaches one of the input."""
        x = self._tensor(input)
        if x.find_indice_pair(self.indice_key) is not None:
            raise ValueError(f"{self._what}: indice_key={self.indice_key!r} is there; give another")
        map, shape = self._map(x)
        return self._finish(x, self._function.apply(_cast(x.features), map), map, shape)

    def extra_repr(self):
        return self._shape_repr()


class SparseMaxPool(_Pool):
    """The largest number of each channel in a window, and at least 0, as in spconv: put it after a ReLU, or
    take `roost.sparse.nn.SparseMaxPool3d`, which considers only existing voxels.

    Parameters
    ----------
    ndim : 1 to 4
    kernel_size, stride, padding, dilation : int, or a sequence of one int for each axis
        Sizes are 1 to 5. The stride is the size if None.
    indice_key : str or None
        For an inverse convolution.
    subm : bool
        Whether outputs are the voxels of the input.
    record_voxel_count : bool
    algo
        Has no effect.

    Notes
    -----
    The gradient goes to all inputs that are equal to the output, as in spconv.
    """

    _function = _Max


class SparseAvgPool(_Pool):
    """The mean of each channel over the existing voxels of a window. Parameters are those of
    `SparseMaxPool`. The gradient is that of the mean; spconv 2.3.8 multiplies by the number of voxels there,
    rather than dividing.
    """

    _function = _Mean


def _of_axes(base, name, axes):
    class Pool(base):
        def __init__(
            self,
            kernel_size,
            stride=None,
            padding=0,
            dilation=1,
            indice_key: str | None = None,
            algo: ConvAlgo | None = None,
            record_voxel_count: bool = False,
            name: str | None = None,
        ):
            shape = kernel_size, stride, padding, dilation, indice_key
            super().__init__(axes, *shape, algo=algo, record_voxel_count=record_voxel_count, name=name)

    Pool.__name__ = Pool.__qualname__ = name
    Pool.__doc__ = f"`{base.__name__}` on {axes} axes, by default with the stride equal to the size."
    return Pool


SparseMaxPool1d = _of_axes(SparseMaxPool, "SparseMaxPool1d", 1)
SparseMaxPool2d = _of_axes(SparseMaxPool, "SparseMaxPool2d", 2)
SparseMaxPool3d = _of_axes(SparseMaxPool, "SparseMaxPool3d", 3)
SparseMaxPool4d = _of_axes(SparseMaxPool, "SparseMaxPool4d", 4)
SparseAvgPool1d = _of_axes(SparseAvgPool, "SparseAvgPool1d", 1)
SparseAvgPool2d = _of_axes(SparseAvgPool, "SparseAvgPool2d", 2)
SparseAvgPool3d = _of_axes(SparseAvgPool, "SparseAvgPool3d", 3)


class _GlobalPool(SparseModule):
    @torch.compiler.disable
    def forward(self, input: SparseConvTensor) -> torch.Tensor:
        """A tensor of batch_size x channels. Raises ValueError for a batch without voxels."""
        what = f"roost.spconv.{type(self).__name__}"
        _sparse(input, what)._voxels()  # checks them
        results = []
        for batch in range(input.batch_size):
            features = input.features[input.indices[:, 0] == batch]
            if not len(features):
                raise ValueError(f"{what}: batch {batch} has no voxels")
            results.append(self._reduced(features))
        return torch.stack(results)


class SparseGlobalMaxPool(_GlobalPool):
    """The largest number of each channel in each batch."""

    @staticmethod
    def _reduced(features):
        return features.max(0)[0]


class SparseGlobalAvgPool(_GlobalPool):
    """The mean of each channel in each batch. (spconv 2.3.8 returns that of the first channel alone.)"""

    @staticmethod
    def _reduced(features):
        return _floats(features).mean(0)
