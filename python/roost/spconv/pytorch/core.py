"""`SparseConvTensor`: features, their voxels, and the box that they lie in."""

import copy
import enum
import math
import operator
import warnings
from collections.abc import Sequence

import torch

from ...sparse import CoordinateIndex
from ...sparse.nn import _described

__all__ = ["ConvAlgo", "IndiceData", "SparseConvTensor"]

_noted = set()


class ConvAlgo(enum.Enum):
    """spconv's algorithms. roost has one, so that layers ignore these."""

    Native = 0
    MaskImplicitGemm = 1
    MaskSplitImplicitGemm = 2


def _note(name):
    """Says once that an argument has no effect."""
    if name not in _noted:
        _noted.add(name)
        warnings.warn(f"roost.spconv: {name} has no effect; roost has one algorithm", stacklevel=4)


class IndiceData:
    """What a layer stores under its indice_key: the voxels on both sides, and the map between them.

    Attributes
    ----------
    indices, out_indices : tensor of n x (1 + axes) int32
    spatial_shape, out_spatial_shape, ksize, stride, dilation, padding : list of int
    is_subm : bool
    """

    def __init__(self, layer, x, out, map):
        self.indices, self.out_indices, self.map = x.indices, out.indices, map
        self.spatial_shape, self.out_spatial_shape = x.spatial_shape, out.spatial_shape
        self.ksize, self.stride = layer.kernel_size, layer.stride
        self.dilation, self.padding = layer.dilation, layer.padding
        self.is_subm, self.algo, self.voxel_num = layer.subm, layer.algo, None


class SparseConvTensor:
    """Features of voxels in a box.

    Parameters
    ----------
    features : tensor of n x channels
    indices : tensor of n x (1 + axes) int32, on the device of the features
        The batch and the position on 1 to 4 axes of each row; each voxel once.
    spatial_shape : sequence of int
        The box: positions are from 0 to less than these.
    batch_size : int
    grid, voxel_num, indice_dict
        Kept as attributes. Layers put what they leave under their indice_key into `indice_dict`.
    benchmark, permanent_thrust_allocator, enable_timer, force_algo
        Have no effect.

    Raises
    ------
    TypeError, ValueError
        Other types and shapes. Voxels outside of the box, and duplicate voxels (for which spconv's result is
        undefined), are refused where they are first used: by the first layer or `dense`.

    Notes
    -----
    Rows keep their order: those of a submanifold layer are those of its input. Layers with a stride number
    their outputs in the order of `roost.sparse.CoordinateIndex`, the same on every run; spconv's order
    depends on the device and the algorithm. Set `indices`, rather than writing to it.
    """

    def __init__(
        self,
        features: torch.Tensor,
        indices: torch.Tensor,
        spatial_shape: Sequence[int],
        batch_size: int,
        grid: torch.Tensor | None = None,
        voxel_num: torch.Tensor | None = None,
        indice_dict: dict | None = None,
        benchmark: bool = False,
        permanent_thrust_allocator: bool = False,
        enable_timer: bool = False,
        force_algo: ConvAlgo | None = None,
    ):
        self.indices, self.spatial_shape, self.batch_size = indices, spatial_shape, batch_size
        for name, given in {
            "benchmark": benchmark,
            "permanent_thrust_allocator": permanent_thrust_allocator,
            "enable_timer": enable_timer,
            "force_algo": force_algo,
        }.items():
            if given:
                _note(name)
        self._features = _matrix(features)
        self._check()
        self.grid, self.voxel_num, self.benchmark, self.force_algo = grid, voxel_num, benchmark, force_algo
        self.indice_dict = {} if indice_dict is None else indice_dict
        self._made = None  # the indices that an index was made of, their version, the index

    def _check(self):
        """Raises where features, indices and the box do not go together."""
        what, indices, shape = "roost.spconv.SparseConvTensor", self.indices, self.spatial_shape
        is_tensor = isinstance(indices, torch.Tensor) and indices.dtype == torch.int32
        if not is_tensor or indices.ndim != 2:
            raise TypeError(
                f"{what}: indices are {_described(indices)}; give a tensor of n x (1 + axes) int32"
            )
        if len(shape) != indices.shape[1] - 1 or not 1 <= len(shape) <= 4:
            raise ValueError(
                f"{what}: spatial_shape={shape} for indices of {indices.shape[1]} columns; give the batch "
                "and 1 to 4 axes, and the extent of each axis"
            )
        if self._features.shape[0] != indices.shape[0]:
            raise ValueError(
                f"{what}: features are {_described(self._features)}, for {len(indices)} voxels; give a row "
                "of channels for each"
            )

    @property
    def features(self) -> torch.Tensor:
        """The features; `replace_feature` makes a tensor with others."""
        return self._features

    @features.setter
    def features(self, features):
        raise ValueError(
            "roost.spconv.SparseConvTensor: features cannot be set; x = x.replace_feature(features)"
        )

    @property
    def spatial_shape(self) -> list[int]:
        """The extents of the box."""
        return self._spatial_shape

    @spatial_shape.setter
    def spatial_shape(self, spatial_shape):
        self._spatial_shape = _box(spatial_shape)

    @property
    def batch_size(self) -> int:
        """The number of batches."""
        return self._batch_size

    @batch_size.setter
    def batch_size(self, batch_size):
        (self._batch_size,) = _numbers(1, batch_size, "batch_size", "roost.spconv.SparseConvTensor", 1)

    def replace_feature(self, feature: torch.Tensor) -> "SparseConvTensor":
        """The same voxels with other features, a tensor of n x channels. Where n is another number, set
        `indices` of the result, too."""
        result = copy.copy(self)
        result._features = _matrix(feature)
        return result

    def shadow_copy(self) -> "SparseConvTensor":
        """A tensor with the same members, which are not copied."""
        return copy.copy(self)

    def select_by_index(self, valid_indices: torch.Tensor) -> "SparseConvTensor":
        """Some of the rows, by a tensor of row numbers or of bool; nothing is left under any indice_key."""
        result = copy.copy(self)
        result.indices, result._features = self.indices[valid_indices], self.features[valid_indices]
        result.indice_dict = {}
        return result

    def minus(self) -> "SparseConvTensor":
        """The same with features of the other sign."""
        return self.replace_feature(-self.features)

    @classmethod
    def from_dense(cls, x: torch.Tensor) -> "SparseConvTensor":
        """The voxels of a dense tensor (batch, position on each axis, channel) that have a channel other than
        0, by batch and position."""
        indices = x.detach().ne(0).any(-1).nonzero()
        return cls(x[indices.unbind(1)], indices.int(), x.shape[1:-1], x.shape[0])

    @property
    def spatial_size(self) -> int:
        """The number of positions in the box."""
        return math.prod(self.spatial_shape)

    @property
    def is_quantized(self) -> bool:
        """False: there are no quantized features."""
        return False

    def find_indice_pair(self, key: str | None) -> IndiceData | None:
        """What a layer left under an indice_key, or None."""
        return None if key is None else self.indice_dict.get(key)

    def dense(self, channels_first: bool = True) -> torch.Tensor:
        """A tensor of (batch, channel, position on each axis), or with the channels last: 0 where there is no
        voxel."""
        self._voxels()  # checks them
        features = self.features
        result = features.new_zeros(self.batch_size, *self.spatial_shape, features.shape[1])
        result[self.indices.long().unbind(1)] = features
        return result.movedim(-1, 1).contiguous() if channels_first else result

    def __add__(self, other: "SparseConvTensor | torch.Tensor") -> "SparseConvTensor":
        """The sum of features with those of a tensor of the same voxels in the same order."""
        if isinstance(other, SparseConvTensor):
            self._check_same(other, "roost.spconv.SparseConvTensor")
        return self.replace_feature(self.features + getattr(other, "features", other))

    __radd__ = __add__

    def __len__(self) -> int:
        """The number of voxels."""
        return len(self.indices)

    def __repr__(self):
        return f"SparseConvTensor[shape={self._features.shape}]"

    @torch.compiler.disable
    def _check_same(self, other, what):
        if self.indices is not other.indices and not torch.equal(self.indices, other.indices):
            raise ValueError(
                f"{what}: tensors of other voxels, or in another order; use functional.sparse_add"
            )
        if (self.spatial_shape, self.batch_size) != (other.spatial_shape, other.batch_size):
            raise ValueError(
                f"{what}: boxes of {self.spatial_shape} and {other.spatial_shape}, with "
                f"{self.batch_size} and {other.batch_size} batches"
            )

    @torch.compiler.disable
    def _voxels(self):
        """The index of the rows, made if it is not there, after the checks of voxels."""
        self._check()
        what, indices, axes = "roost.spconv.SparseConvTensor", self.indices, len(self.spatial_shape)
        version = None if indices.is_inference() else indices._version
        if self._made is None or self._made[0] is not indices or self._made[1] != version:
            if indices.device != self.features.device:
                raise ValueError(f"{what}: features on {self.features.device}, indices on {indices.device}")
            if axes == 1:  # with an axis of one voxel
                indices = torch.nn.functional.pad(indices, (0, 1))
            index = CoordinateIndex(indices.detach(), order="input")
            if index.duplicates:
                raise ValueError(
                    f"{what}: {index.duplicates} of {len(indices)} voxels are duplicates; pass each once"
                )
            self._made = self.indices, version, index
        index = self._made[2]
        least, greatest = index.bounds or ((0,) * (axes + 1), (-1,) * (axes + 1))
        extents = self.batch_size, *self.spatial_shape
        if min(least) < 0 or any(last >= extent for last, extent in zip(greatest, extents)):
            raise ValueError(
                f"{what}: voxels from {least[: axes + 1]} to {greatest[: axes + 1]}, beyond "
                f"{self.batch_size} batches of spatial_shape {self.spatial_shape}"
            )
        return index

    def _with(self, features, index, spatial_shape, indices=None):
        """A tensor of other voxels, whose index is there."""
        result = copy.copy(self)
        if indices is None:
            indices = torch.as_tensor(index.coordinates)[:, : len(spatial_shape) + 1].contiguous()
        version = None if indices.is_inference() else indices._version
        result.indices, result._spatial_shape, result._features = indices, spatial_shape, features
        result._made = indices, version, index
        return result


def _sparse(x, what):
    """`x`, which is a SparseConvTensor."""
    if not isinstance(x, SparseConvTensor):
        raise TypeError(f"{what}: a {type(x).__name__}; give a SparseConvTensor")
    return x


def _matrix(features):
    if not isinstance(features, torch.Tensor) or features.ndim != 2:
        what = "roost.spconv.SparseConvTensor"
        raise ValueError(f"{what}: features are {_described(features)}; give a tensor of n x channels")
    return features


def _box(spatial_shape):
    """The extents of a box; spconv takes whole floats, too."""
    try:
        shape = [int(each) for each in spatial_shape]
    except (TypeError, ValueError, OverflowError):
        shape = []
    if not shape or any(each != given or not 0 < each < 2**31 for each, given in zip(shape, spatial_shape)):
        raise ValueError(
            f"roost.spconv.SparseConvTensor: spatial_shape={spatial_shape}; give a whole number from 1 to "
            "2^31 - 1 for each axis"
        )
    return shape


def _numbers(axes, given, name, what, least):
    """A whole number for each axis."""
    try:
        numbers = list(given)
    except TypeError:
        numbers = [given] * axes
    try:
        numbers = [operator.index(each) for each in numbers]
    except TypeError:
        numbers = []
    if len(numbers) != axes or not all(least <= each < 2**31 for each in numbers):
        each = ", or one for each axis" if axes > 1 else ""
        raise ValueError(f"{what}: {name}={given!r}; give a whole number from {least} on{each}")
    return numbers


def _cast(features):
    """Features as autocast on a GPU has them."""
    if features.is_cuda and torch.is_autocast_enabled("cuda"):
        return features.to(torch.get_autocast_dtype("cuda"))
    return features
