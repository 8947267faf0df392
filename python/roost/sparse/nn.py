"""Layers of torch over voxels: sparse tensors, submanifold and strided convolution, pooling.

    >>> import torch, roost.sparse.nn as nn
    >>> voxels = torch.tensor([[0, 5, 5, 5], [0, 5, 5, 6], [0, 9, 9, 9]], dtype=torch.int32)
    >>> x = nn.SparseTensor(torch.ones(3, 4), voxels)
    >>> first, down = nn.SubmanifoldConv3d(4, 8), nn.SparseConv3d(8, 16, 2, stride=2)
    >>> net = nn.Sequential(first, torch.nn.ReLU(), down)
    >>> net(x)
    SparseTensor(3 voxels on 3 axes, 16 channels of torch.float32 on cpu)

Voxels have an index (`roost.sparse.CoordinateIndex`), and layers make the kernel maps that they need once for
each index and shape. Padding is such that a kernel is centred, unless it is given. See docs/sparse.md.
"""

import math

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .._arrays.libraries import need_custom_operators
from .._options import whole_number
from . import (
    CoordinateIndex,
    KernelMap,
    _convolve,
    _input_gradient,
    _made_maps,
    _make,
    _no_map,
    _shape,
    _weight_gradient,
)

__all__ = [
    "Sequential",
    "SparseConv2d",
    "SparseConv3d",
    "SparseConvTranspose2d",
    "SparseConvTranspose3d",
    "SparseMaxPool2d",
    "SparseMaxPool3d",
    "SparseTensor",
    "SubmanifoldConv2d",
    "SubmanifoldConv3d",
    "Voxelize",
    "cat",
    "load_spconv",
]


need_custom_operators(torch, "roost.sparse.nn")

# Operators take tensors and numbers: a map by its number, and how many rows there are on the other side.
# A compiled graph keeps no map for its gradients, so that layers are not part of one.


def _map_number(number):
    made = _made_maps.get(number)
    if made is None:
        raise RuntimeError(
            f"roost.sparse.sparse_conv: map {number} is no more; keep its KernelMap until gradients are there"
        )
    return made


@torch.library.custom_op("roost::sparse_conv", mutates_args=())
def _conv(
    features: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor | None,
    map: int,
    transposed: bool,
    rows: int,
) -> torch.Tensor:
    return _convolve(_map_number(map), transposed, features, weights, bias)


@_conv.register_fake
def _(features, weights, bias, map, transposed, rows):
    return features.new_empty((rows, weights.shape[-1]))


@torch.library.custom_op("roost::sparse_conv_input_gradient", mutates_args=())
def _conv_input_gradient(
    gradient: torch.Tensor, weights: torch.Tensor, map: int, transposed: bool, rows: int
) -> torch.Tensor:
    return _input_gradient(_map_number(map), transposed, gradient, weights)


@_conv_input_gradient.register_fake
def _(gradient, weights, map, transposed, rows):
    return gradient.new_empty((rows, weights.shape[-2]))


@torch.library.custom_op("roost::sparse_conv_weight_gradient", mutates_args=())
def _conv_weight_gradient(
    features: torch.Tensor, gradient: torch.Tensor, weights: torch.Tensor, map: int, transposed: bool
) -> torch.Tensor:
    result = _weight_gradient(_map_number(map), transposed, features, gradient, weights)
    return result.to(weights.dtype).view(weights.shape)


@_conv_weight_gradient.register_fake
def _(features, gradient, weights, map, transposed):
    return torch.empty_like(weights, memory_format=torch.contiguous_format)


def _keep(ctx, inputs, output):
    features, weights, _, ctx.number, ctx.transposed, _ = inputs
    ctx.save_for_backward(features, weights)
    # While torch.compile traces, the number may be a symbol.
    ctx.map = _made_maps.get(ctx.number) if type(ctx.number) is int else None


def _backward(ctx, gradient):
    features, weights = ctx.saved_tensors
    given = ctx.needs_input_grad
    of_input = of_weights = of_bias = None
    if given[0]:
        of_input = _conv_input_gradient(gradient, weights, ctx.number, ctx.transposed, features.shape[0])
    if given[1]:
        of_weights = _conv_weight_gradient(features, gradient, weights, ctx.number, ctx.transposed)
    if given[2]:
        of_bias = gradient.sum(0)
    return of_input, of_weights, of_bias, None, None, None


_conv.register_autograd(_backward, setup_context=_keep)


class _Eager(torch.autograd.Function):
    """The same without an operator, the call of which costs as much as a thousand voxels."""

    @staticmethod
    def forward(ctx, features, weights, bias, made, transposed):
        ctx.made, ctx.transposed = made, transposed
        ctx.save_for_backward(features, weights)
        return _convolve(made, transposed, features, weights, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        features, weights = ctx.saved_tensors
        given = ctx.needs_input_grad
        of_input = of_weights = of_bias = None
        if given[0]:
            of_input = _input_gradient(ctx.made, ctx.transposed, gradient, weights)
        if given[1]:
            of_weights = _weight_gradient(ctx.made, ctx.transposed, features, gradient, weights)
            of_weights = of_weights.to(weights.dtype).view(weights.shape)
        if given[2]:
            of_bias = gradient.sum(0)
        return of_input, of_weights, of_bias, None, None


def _wants_operator(*tensors):
    """Whether tensor operations are traced: by a compiler, a mode or a subclass."""
    return (
        torch.compiler.is_compiling()
        or _get_current_dispatch_mode() is not None
        or not all(type(each) in (torch.Tensor, torch.nn.Parameter) for each in tensors if each is not None)
    )


def _sparse_conv(map, features, weights, bias):
    """`roost.sparse.sparse_conv` of tensors."""
    if not isinstance(map, KernelMap):
        raise _no_map(map)
    for name, given in (("weights", weights), ("bias", bias)):
        if not isinstance(given, torch.Tensor) and not (name == "bias" and given is None):
            raise TypeError(
                f"roost.sparse.sparse_conv: features are a tensor of torch, {name} a {type(given).__name__}; "
                "convert one"
            )
    if features.is_cuda and torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        features, weights = features.to(dtype), weights.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    elif features.itemsize == 2 and features.is_cpu and torch.is_autocast_enabled("cpu"):
        features = features.to(weights.dtype)  # the CPU multiplies float32 and float64
    if _wants_operator(features, weights, bias):
        return _conv(features, weights, bias, map._number, map._transposed, map._rows_out)
    return _Eager.apply(features, weights, bias, map._made, map._transposed)


def _described(given):
    return f"{tuple(given.shape)} {given.dtype}" if isinstance(given, torch.Tensor) else type(given).__name__


def _wide(dtype):
    """The type of sums: 16 bits do not hold those of many numbers."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


class SparseTensor:
    """Features of voxels: a tensor with a row for each, and the index that numbers them.

    Parameters
    ----------
    features : tensor of m x c
    index : CoordinateIndex, or tensor of n x 3, n x 4 or n x 5 int32
        The index of the rows; or coordinates (batch, and the position on each axis), which may come several
        times: their features, n x c, are then averaged. Rows are in the order of the index.

    Raises
    ------
    TypeError, ValueError
        Coordinates that are none, other numbers of rows, tensors on two devices.

    Examples
    --------
    >>> import torch, roost.sparse.nn as nn
    >>> twice = torch.tensor([[0, 2, 2], [0, 2, 2]]).int()
    >>> x = nn.SparseTensor(torch.tensor([[1.], [3.]]), twice)
    >>> x.features, x.coordinates
    (tensor([[2.]]), tensor([[0, 2, 2]], dtype=torch.int32))
    """

    def __init__(self, features, index):
        what = "roost.sparse.nn.SparseTensor"
        if not isinstance(features, torch.Tensor) or features.ndim != 2:
            raise ValueError(f"{what}: features are {_described(features)}; give a tensor of rows x channels")
        coordinates = None
        if not isinstance(index, CoordinateIndex):
            coordinates, index = index, CoordinateIndex(index)
        where = str(features.device)
        if index._library.where != ("the CPU" if where == "cpu" else where):
            raise ValueError(f"{what}: features on {where}, but the voxels are on {index._library.where}")
        rows = len(index) if coordinates is None else len(coordinates)
        if len(features) != rows:
            raise ValueError(f"{what}: {len(features)} rows of features for {rows} voxels; give as many")
        if coordinates is not None:
            rows = torch.as_tensor(index.rows_of_input())
            if index.duplicates:
                wide = features.to(_wide(features.dtype))
                sums = wide.new_zeros(len(index), features.shape[1]).index_add(0, rows, wide)
                means = sums / rows.bincount(minlength=len(index))[:, None]
                features = means.to(features.dtype) if features.is_floating_point() else means
            else:
                features = torch.empty_like(features).index_copy(0, rows, features)
        self.features, self.index = features, index

    @property
    def coordinates(self):
        """The coordinate of each row: a tensor of m x (axes + 1) int32."""
        return torch.as_tensor(self.index.coordinates)

    def replace(self, features):
        """The same voxels with other features, a tensor of m x c."""
        return SparseTensor(features, self.index)

    def to(self, *arguments, **named):
        """The same on another device, or of another type: as `torch.Tensor.to`. The index is built anew on
        another device, with the same rows; it forgets its maps."""
        features, index = self.features.to(*arguments, **named), self.index
        if features.device != self.features.device:
            index = CoordinateIndex(self.coordinates.to(features.device), order=index.order)
        return self if features is self.features else SparseTensor(features, index)

    def dense(self, shape=None, origin=None):
        """A tensor of batches x channels x positions, which is 0 where there is no voxel.

        Parameters
        ----------
        shape : tuple of (batches, and the extent of each axis), or None
            None: up to the greatest coordinates.
        origin : tuple of the least position of each axis, or None
            None: zeros.

        Raises
        ------
        ValueError
            A voxel lies outside.
        """
        what = "roost.sparse.nn.SparseTensor.dense"
        axes, bounds = self.index.axes, self.index.bounds
        origin = (0,) * axes if origin is None else origin
        least = (0, *(origin if isinstance(origin, (tuple, list)) else ()))
        if shape is None:
            shape = [high + 1 - low for high, low in zip(bounds[1], least)] if bounds else [0] * (axes + 1)
        if len(least) != axes + 1 or len(shape) != axes + 1:
            raise ValueError(
                f"{what}: shape={tuple(shape)}, origin={origin}; give {axes + 1} and {axes} numbers"
            )
        beyond = [low + extent for low, extent in zip(least, shape)]
        if bounds and not all(
            low <= first and last < end for low, first, last, end in zip(least, *bounds, beyond)
        ):
            raise ValueError(f"{what}: voxels from {bounds[0]} to {bounds[1]}, outside of the tensor")
        where = [column.long() - low for column, low in zip(self.coordinates.unbind(1), least)]
        result = self.features.new_zeros(*shape, self.features.shape[1])
        return result.index_put(tuple(where), self.features).movedim(-1, 1)

    def __add__(self, other):
        """The sum of two tensors with one index."""
        _one_index((self, other), "roost.sparse.nn.SparseTensor")
        return self.replace(self.features + other.features)

    def __len__(self):
        """The number of voxels."""
        return len(self.index)

    def __repr__(self):
        features = self.features
        return (
            f"SparseTensor({len(self)} voxels on {self.index.axes} axes, {features.shape[1]} channels of "
            f"{features.dtype} on {features.device})"
        )


def _one_index(tensors, what):
    for each in tensors:
        if not isinstance(each, SparseTensor):
            raise TypeError(f"{what}: a {type(each).__name__}; give a SparseTensor")
        if each.index is not tensors[0].index:
            raise ValueError(
                f"{what}: tensors with different indices; take the voxels of one for the other, as "
                "SparseConvTranspose3d(...)(x, like) does"
            )


def cat(tensors):
    """The channels of several tensors side by side.

    Parameters
    ----------
    tensors : sequence of SparseTensor
        Of one index.

    Returns
    -------
    SparseTensor
    """
    tensors = list(tensors)
    if not tensors:
        raise ValueError("roost.sparse.nn.cat: no tensors; give one or more")
    _one_index(tensors, "roost.sparse.nn.cat")
    return tensors[0].replace(torch.cat([each.features for each in tensors], 1))


class Sequential(torch.nn.Sequential):
    """Modules in turn: those of torch (activations, norms) take the features, others the SparseTensor.

    Examples
    --------
    >>> import torch, roost.sparse.nn as nn
    >>> conv = nn.SubmanifoldConv3d(4, 8, bias=False)
    >>> block = nn.Sequential(conv, torch.nn.BatchNorm1d(8), torch.nn.ReLU())
    """

    def forward(self, x):
        """The result of the last module."""
        for module in self:
            plain = module._modules.get("_orig_mod", module)  # of torch.compile
            # A parametrized layer is of a class that torch has made.
            of_torch = type(plain).__module__.startswith("torch.") and not isinstance(plain, _Layer)
            if isinstance(x, SparseTensor) and of_torch:
                x = x.replace(module(x.features))
            else:
                x = module(x)
        return x


def _map_of(index, shape, outputs, what):
    """The map of an index and a shape, made if it does not exist; of existing outputs, if given."""
    if outputs is None:
        made = index._maps.get(shape)
        if made is None:
            made = index._maps[shape] = _make(index, shape, None)
        return KernelMap(made, index, made.outputs_of(index), False)
    if index.axes != outputs.axes:
        raise ValueError(f"{what}: voxels on {outputs.axes} axes and outputs on {index.axes}")
    made = index._maps.get(shape)
    if made is None or made.made_outputs is not outputs:
        maps = index._maps_to.setdefault(outputs, {})
        made = maps.get(shape)
        if made is None:
            made = maps[shape] = _make(index, shape, outputs)
    return KernelMap(made, index, outputs, False)


class _Layer(torch.nn.Module):
    """What layers have in common: a shape of each axis."""

    _axes = None
    _kind = None

    def _set_shape(self, size, stride, padding, dilation):
        self._what = f"roost.sparse.nn.{type(self).__name__}"
        *shape, _ = _shape(self._axes, size, stride, dilation, padding, self._kind, self._what)
        self._numbers = tuple(shape)
        self.kernel_size = shape[0]

    def _checked(self, x):
        if not isinstance(x, SparseTensor):
            raise TypeError(f"{self._what}: a {type(x).__name__}; give a SparseTensor")
        if x.index.axes != self._axes:
            raise ValueError(f"{self._what}: voxels on {x.index.axes} axes; give {self._axes}")
        return x

    def _map(self, index, kind, outputs=None):
        return _map_of(index, (*self._numbers, kind), outputs, self._what)

    def extra_repr(self):
        size, stride, dilation, padding = self._numbers
        unset = (-1,) * self._axes
        parts = [f"kernel_size={size}"]
        parts += [f"stride={stride}"] if stride not in (unset, (1,) * self._axes) else []
        parts += [f"padding={padding}"] if padding != unset else []
        parts += [f"dilation={dilation}"] if max(dilation) > 1 else []
        return ", ".join(parts)


class _Conv(_Layer):
    """What convolutions have in common."""

    def _set(self, in_channels, out_channels, size, stride, padding, dilation, bias, device, dtype):
        self._set_shape(size, stride, padding, dilation)
        in_channels = whole_number(in_channels, self._what, "in_channels")
        out_channels = whole_number(out_channels, self._what, "out_channels")
        if in_channels < 1 or out_channels < 1:
            raise ValueError(f"{self._what}: {in_channels} to {out_channels} channels; give 1 or more")
        self.in_channels, self.out_channels = in_channels, out_channels
        shape = (*self.kernel_size, in_channels, out_channels)
        self.weight = torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", None)
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Draws weights and bias as `torch.nn.Conv3d` does."""
        bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
        for each in filter(lambda each: each is not None, (self.weight, self.bias)):
            torch.nn.init.uniform_(each, -bound, bound)

    def _through(self, x, map, outputs):
        return SparseTensor(_sparse_conv(map, x.features, self.weight, self.bias), outputs)

    def extra_repr(self):
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_channels}, {self.out_channels}, {super().extra_repr()}{bias}"


class _Submanifold(_Conv):
    _kind = "submanifold"

    def __init__(
        self, in_channels, out_channels, kernel_size=3, *, dilation=1, bias=True, device=None, dtype=None
    ):
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, None, None, dilation, bias, device, dtype)

    @torch.compiler.disable
    def forward(self, x):
        """A SparseTensor with the same voxels."""
        map = self._map(self._checked(x).index, "submanifold")
        return self._through(x, map, x.index)


class SubmanifoldConv3d(_Submanifold):
    """A convolution whose outputs are the voxels of its input.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, dilation : int, or a tuple of one int for each axis
        Sizes are 1 to 5.
    bias : bool
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of (k0, k1, k2, in, out)
        torch's (out, in, k0, k1, k2) permuted.
    bias : Parameter of out numbers, or None
    """

    _axes = 3


class SubmanifoldConv2d(_Submanifold):
    """`SubmanifoldConv3d` on two axes."""

    _axes = 2


class _Strided(_Conv):
    _kind = "convolution"

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=3,
        stride=1,
        padding=None,
        *,
        dilation=1,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, bias, device, dtype)

    @torch.compiler.disable
    def forward(self, x):
        """A SparseTensor of all voxels whose window reaches one of `x`."""
        map = self._map(self._checked(x).index, "convolution")
        return self._through(x, map, map.outputs)


class SparseConv3d(_Strided):
    """A convolution whose outputs are all voxels that its window reaches, on a grid that is coarser by the
    stride: where `torch.nn.Conv3d` of a dense grid of ones is not 0. Coordinates are those of the coarser
    grid; there are no borders.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, padding, dilation : int, or a tuple of one int for each axis
        Sizes are 1 to 5. The padding is dilation * (kernel_size - 1) // 2 if None.
    bias : bool
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of (k0, k1, k2, in, out)
        torch's (out, in, k0, k1, k2) permuted.
    bias : Parameter of out numbers, or None
    """

    _axes = 3


class SparseConv2d(_Strided):
    """`SparseConv3d` on two axes."""

    _axes = 2


class _Transposed(_Strided):
    _kind = "generative"

    @torch.compiler.disable
    def forward(self, x, like=None):
        """A SparseTensor on the finer grid.

        Parameters
        ----------
        x : SparseTensor
        like : SparseTensor, or CoordinateIndex
            Whose voxels the outputs are: for example the input voxels of the encoder's SparseConv3d of the
            same shape, which produced those of `x`. None: all voxels that the kernel reaches from `x`.
        """
        self._checked(x)
        if like is None:
            map = self._map(x.index, "generative")
        else:
            finer = like if isinstance(like, CoordinateIndex) else self._checked(like).index
            map = self._map(finer, "convolution", x.index).transposed()
        return self._through(x, map, map.outputs)


class SparseConvTranspose3d(_Transposed):
    """A transposed convolution: to a grid that is finer by the stride, as `torch.nn.ConvTranspose3d`.

    ``up(x, like)`` makes outputs at the voxels of `like`; ``up(x)`` makes all that are reached.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, padding, dilation : int, or a tuple of one int for each axis
        Sizes are 1 to 5. The padding is dilation * (kernel_size - 1) // 2 if None.
    bias : bool
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of (k0, k1, k2, in, out)
        torch's (in, out, k0, k1, k2) permuted.
    bias : Parameter of out numbers, or None

    Examples
    --------
    >>> import torch, roost.sparse.nn as nn
    >>> voxels = torch.tensor([[0, 5, 5, 5], [0, 9, 9, 9]]).int()
    >>> x = nn.SparseTensor(torch.ones(2, 4), voxels)
    >>> down, up = nn.SparseConv3d(4, 8, 2, 2), nn.SparseConvTranspose3d(8, 4, 2, 2)
    >>> up(down(x), x) + x
    SparseTensor(2 voxels on 3 axes, 4 channels of torch.float32 on cpu)
    """

    _axes = 3


class SparseConvTranspose2d(_Transposed):
    """`SparseConvTranspose3d` on two axes."""

    _axes = 2


class _MaxPool(_Layer):
    _kind = "pooling"

    def __init__(self, kernel_size=2, stride=None, padding=None):
        super().__init__()
        self._set_shape(kernel_size, stride, padding, 1)

    @torch.compiler.disable
    def forward(self, x):
        """A SparseTensor of all voxels whose window reaches one of `x`."""
        map = self._map(self._checked(x).index, "pooling")
        features = x.features
        with torch.no_grad():  # the row where each output's largest number is
            best = torch.zeros(len(map.outputs), features.shape[1], dtype=torch.int64, device=features.device)
            largest = torch.zeros_like(best, dtype=features.dtype)
            there = torch.zeros_like(best, dtype=torch.bool)
            for rows in torch.as_tensor(map.neighbours()).long()[:, :, None]:
                found = features[rows[:, 0].clamp_min(0)] if len(features) else largest
                better = (rows >= 0) & ((found > largest) | ~there | found.isnan())
                best, largest = torch.where(better, rows, best), torch.where(better, found, largest)
                there |= rows >= 0
        return SparseTensor(features.gather(0, best), map.outputs)


class SparseMaxPool3d(_MaxPool):
    """The maximum of each channel over the existing voxels in a window.

    Parameters
    ----------
    kernel_size, stride, padding : int, or a tuple of one int for each axis
        Sizes are 1 to 5. The stride is the size if None, the padding 0 if None.
    """

    _axes = 3


class SparseMaxPool2d(_MaxPool):
    """`SparseMaxPool3d` on two axes."""

    _axes = 2


def _extents(low, high, sizes, what):
    """How many voxels lie in a range, on each axis."""
    extents = [round((end - begin) / size) for begin, end, size in zip(low, high, sizes)]
    if max(extents) > 2**31:
        raise ValueError(f"{what}: a range of {extents} voxels; give at most 2^31 on each axis")
    return extents


def _cells(positions, low, sizes, least, end):
    """The voxels of positions, int32, from `least` on and before `end`; and the rows that are in one."""
    at = ((positions.detach() - positions.new_tensor(low)) / positions.new_tensor(sizes)).floor()
    inside = ((at >= at.new_tensor(least)) & (at < at.new_tensor(end))).all(1).nonzero()[:, 0]
    return at[inside].int(), inside


class Voxelize(torch.nn.Module):
    """Points to voxels: a SparseTensor with the mean, the sum or the largest numbers of each voxel's points.

    Parameters
    ----------
    size : float, or a sequence of one for each axis
        Of a voxel. Position p lies in voxel ``floor((p - low) / size)``, computed in the type of the points.
    range : sequence of floats, or None
        The least position on each axis, then the greatest: points in no voxel of that box (of
        ``round((high - low) / size)`` voxels) are left out, and so are those that are not finite. None: all
        points count, from 0 on in both directions.
    reduce : "mean", "sum", "max" or "count"
        "count": one channel, the number of points, at least in float32, as all sums are.
    axes : 2, 3 or 4
        The first columns of points are positions.

    Examples
    --------
    >>> import torch, roost.sparse.nn as nn
    >>> points = torch.tensor([[0.1, 0.2, 5.0], [0.3, 0.1, 7.0], [3.5, 0.1, 1.0]])
    >>> x = nn.Voxelize(1.0, axes=2)(points)
    >>> x.coordinates.tolist(), x.features[:, 2].tolist()
    ([[0, 0, 0], [0, 3, 0]], [6.0, 1.0])
    """

    def __init__(self, size, range=None, reduce="mean", axes=3):
        super().__init__()
        what = "roost.sparse.nn.Voxelize"
        if axes not in (2, 3, 4) or reduce not in ("mean", "sum", "max", "count"):
            raise ValueError(
                f"{what}: axes={axes!r}, reduce={reduce!r}; give 2 to 4, and mean, sum, max or count"
            )
        sizes = list(size) if hasattr(size, "__len__") else [size] * axes
        bounds = None if range is None else list(range)
        if len(sizes) != axes or not all(0 < each < math.inf for each in sizes):
            raise ValueError(f"{what}: size={size!r}; give a number above 0, or one for each of {axes} axes")
        if bounds is not None:
            pairs = list(zip(bounds[:axes], bounds[axes:]))
            if len(bounds) != 2 * axes or not all(-math.inf < low < high < math.inf for low, high in pairs):
                raise ValueError(
                    f"{what}: range={range!r}; give {axes} least positions, then {axes} greatest"
                )
            _extents(bounds[:axes], bounds[axes:], sizes, what)
        self.size, self.range, self.reduce, self.axes = sizes, bounds, reduce, axes

    def forward(self, points, batch=None):
        """A SparseTensor, which is the same each time. Gradients go to all points of a mean or a sum, and to
        those with the largest numbers, of equal ones in equal parts.

        Parameters
        ----------
        points : tensor of n x (axes + c)
            Positions are features, too.
        batch : tensor of n integers, or None
            Of each point; None: 0.

        Raises
        ------
        ValueError
            Other shapes; without a range points that are not finite, or beyond 2^31 voxels.
        """
        what, axes = "roost.sparse.nn.Voxelize", self.axes
        is_tensor = isinstance(points, torch.Tensor) and points.is_floating_point()
        if not is_tensor or points.ndim != 2 or points.shape[1] < axes:
            raise ValueError(
                f"{what}: points are {_described(points)}; give a tensor of n x {axes} or more floats"
            )
        if batch is None:
            batch = torch.zeros(len(points), dtype=torch.int32, device=points.device)
        is_tensor = isinstance(batch, torch.Tensor) and batch.shape == points.shape[:1]
        if not is_tensor or batch.is_floating_point() or batch.dtype == torch.bool:
            raise ValueError(f"{what}: batches are {_described(batch)}; give a tensor of n integers")
        if self.range:
            low, high = self.range[:axes], self.range[axes:]
            extents = _extents(low, high, self.size, what)
            at, inside = _cells(points[:, :axes], low, self.size, [0] * axes, extents)
            points, batch = points[inside], batch[inside]
        else:
            least, end = [-(2**31)] * axes, [2**31] * axes
            at, inside = _cells(points[:, :axes], [0] * axes, self.size, least, end)
            if len(inside) != len(points):
                raise ValueError(f"{what}: points that are not finite, or beyond 2^31 voxels; give a range")
        if len(batch) and not -(2**31) <= int(batch.min()) <= int(batch.max()) < 2**31:
            raise ValueError(f"{what}: batches beyond 32 bits")
        index = CoordinateIndex(torch.cat([batch.int()[:, None], at], 1))
        rows = torch.as_tensor(index.rows_of_input())
        counts = rows.bincount(minlength=len(index))
        wide = _wide(points.dtype)
        if self.reduce == "count":
            return SparseTensor(counts[:, None].to(wide), index)
        if not len(index):
            return SparseTensor(points, index)  # none
        # Each voxel's points side by side: sums in one order, unlike those of index_add on a GPU.
        grouped = points[rows.argsort(stable=True)].to(wide)
        reduced = torch.segment_reduce(grouped, self.reduce, lengths=counts, axis=0)
        return SparseTensor(reduced.to(points.dtype), index)

    def extra_repr(self):
        return f"{self.size}, range={self.range}, reduce={self.reduce!r}, axes={self.axes}"


def load_spconv(module, state, strict=True):
    """Loads what a model with layers of spconv has saved into the same model with layers of this module.

    Parameters
    ----------
    module : torch.nn.Module
        Whose modules have the names of the former: SubMConv3d becomes SubmanifoldConv3d, SparseConv3d and
        SparseConvTranspose3d keep their names, and SparseInverseConv3d becomes SparseConvTranspose3d, called
        with the finer voxels.
    state : dict
        The `state_dict` of a model of spconv 2, whose weights are (out, k0, k1, k2, in).
    strict : bool
        As for `torch.nn.Module.load_state_dict`.

    Returns
    -------
    What `load_state_dict` returns.

    Raises
    ------
    ValueError
        A weight of another shape.
    RuntimeError
        Names that do not go together, if strict.

    Notes
    -----
    Coordinates have the same columns: the batch, then positions in the order of the kernel's axes. spconv's
    strided layers have no padding unless it is given: pass padding=0 where they had none.
    """
    state = dict(state)
    for name, layer in module.named_modules():
        key = f"{name}.weight" if name else "weight"
        if isinstance(layer, _Conv) and key in state:
            shape = (layer.out_channels, *layer.kernel_size, layer.in_channels)
            if tuple(state[key].shape) != shape:
                raise ValueError(
                    f"roost.sparse.nn.load_spconv: {key} has shape {tuple(state[key].shape)}; spconv 2 has "
                    f"{shape} for this layer"
                )
            one = math.prod(layer.kernel_size) == 1 and max(layer._numbers[1]) <= 1
            # A kernel of one voxel without a stride multiplies by weight.view(in, out) in spconv.
            state[key] = state[key].reshape(layer.weight.shape) if one else state[key].movedim(0, -1)
    return module.load_state_dict(state, strict)
