"""spconv's convolutions."""

import contextlib
import contextvars
import math
import os

import torch

from ...sparse.nn import _map_of, _sparse_conv
from .core import ConvAlgo, IndiceData, SparseConvTensor, _note, _numbers, _sparse
from .modules import SparseModule
from .ops import get_conv_output_size, get_deconv_output_size

_KINDS = ("SubMConv", "SparseConv", "SparseConvTranspose", "SparseInverseConv")
__all__ = [f"{kind}{axes}d" for kind in _KINDS for axes in (1, 2, 3, 4)]
__all__ += ["SparseConvolution", "saved_weight_layout"]

_COUNT = "max_num_voxels_during_training"
_LAYOUTS = ("KRSC", "RSCK", "RSKC")
_layout = contextvars.ContextVar("layout", default=None)


@contextlib.contextmanager
def saved_weight_layout(layout: str):
    """Names the layout of the weights for `load_state_dict`, where their shapes fit several layouts.

    Parameters
    ----------
    layout : "KRSC", "RSCK" or "RSKC"
        (out, k..., in), spconv 2; (k..., in, out), spconv 1; or (k..., out, in), ConvAlgo.Native of spconv
        2.0 and 2.1. The same names as in the environment variable SPCONV_SAVED_WEIGHT_LAYOUT, which counts
        outside of this context.

    Examples
    --------
    >>> import torch, roost.spconv as spconv
    >>> conv = spconv.SubMConv2d(3, 3, 3, bias=False)
    >>> with spconv.saved_weight_layout("RSCK"):
    ...     conv.load_state_dict({"weight": torch.ones(3, 3, 3, 3)})
    <All keys matched successfully>
    """
    if layout not in _LAYOUTS:
        raise ValueError(f"roost.spconv.saved_weight_layout: {layout!r}; give one of {', '.join(_LAYOUTS)}")
    before = _layout.set(layout)
    try:
        yield
    finally:
        _layout.reset(before)


def _border(x, shape):
    """The least and the greatest coordinate of a box, with a unit axis beside one axis."""
    extents = (x.batch_size, *shape, *([1] if len(shape) == 1 else []))
    return (0,) * len(extents), tuple(each - 1 for each in extents)


class _MapLayer(SparseModule):
    """What convolutions and poolings have in common: a shape, and maps."""

    def _set_shape(self, ndim, kernel_size, stride, padding, dilation, subm, indice_key, algo):
        self._what = f"roost.spconv.{type(self).__name__}"
        if ndim not in (1, 2, 3, 4):
            raise ValueError(f"{self._what}: ndim={ndim!r}; give 1 to 4")
        self.ndim, self.subm, self.indice_key, self.algo = ndim, bool(subm), indice_key, algo
        self.kernel_size = _numbers(ndim, kernel_size, "kernel_size", self._what, 1)
        self.stride = _numbers(ndim, stride, "stride", self._what, 1)
        self.padding = _numbers(ndim, padding, "padding", self._what, 0)
        self.dilation = _numbers(ndim, dilation, "dilation", self._what, 1)
        if max(self.kernel_size) > 5:
            raise ValueError(f"{self._what}: kernel_size={kernel_size}; roost has 1 to 5 on each axis")
        if self.subm and any(size % 2 == 0 for size in self.kernel_size):
            raise ValueError(
                f"{self._what}: kernel_size={kernel_size}; give odd sizes to a submanifold layer"
            )
        if algo is not None:
            _note("algo")

    def _record_voxels(self, wanted, device=None):
        self.record_voxel_count = bool(wanted)
        if wanted:
            self.register_buffer(_COUNT, torch.zeros(1, dtype=torch.int32, device=device))

    def get_max_num_voxels(self) -> torch.Tensor | None:
        """The most outputs so far, of a layer with record_voxel_count."""
        return getattr(self, _COUNT, None)

    def _tensor(self, x):
        if len(_sparse(x, self._what).spatial_shape) != self.ndim:
            raise ValueError(f"{self._what}: voxels on {len(x.spatial_shape)} axes; give {self.ndim}")
        return x

    def _out_shape(self, x):
        if self.subm:
            return x.spatial_shape
        numbers = x.spatial_shape, self.kernel_size, self.stride, self.padding, self.dilation
        if getattr(self, "transposed", False):
            shape = get_deconv_output_size(*numbers, self.output_padding)
        else:
            shape = get_conv_output_size(*numbers)
        if min(shape) < 1 or max(shape) >= 2**31:
            raise ValueError(f"{self._what}: outputs of spatial_shape {shape}, from {x.spatial_shape}")
        return shape

    def _map(self, x):
        """The map from the voxels of a tensor, and the box of its outputs."""
        shape, unit = self._out_shape(x), self.ndim == 1
        size, dilation = ((*each, 1) if unit else tuple(each) for each in (self.kernel_size, self.dilation))
        if self.subm:
            numbers = size, (-1,) * len(size), dilation, (-1,) * len(size), "submanifold"
        else:
            stride, padding = (
                (*each, one) if unit else tuple(each) for each, one in ((self.stride, 1), (self.padding, 0))
            )
            kind = "generative" if getattr(self, "transposed", False) else "convolution"
            numbers = size, stride, dilation, padding, kind, _border(x, shape)
        return _map_of(x._voxels(), numbers, None, self._what), shape

    def _finish(self, x, features, map, shape):
        """The output, which leaves the map under the indice_key."""
        out = x._with(features, map.outputs, shape, x.indices if self.subm else None)
        if self.indice_key is not None and (not self.subm or x.find_indice_pair(self.indice_key) is None):
            out.indice_dict = {**x.indice_dict, self.indice_key: IndiceData(self, x, out, map)}
        if _COUNT in self._buffers:
            self._buffers[_COUNT].clamp_(min=len(features))
        return out

    def _check_key(self, x):
        """spconv's rules for an indice_key that exists already: submanifold layers of one shape share it."""
        there = x.find_indice_pair(self.indice_key)
        if there is None:
            return
        key = f"{self._what}: indice_key={self.indice_key!r}"
        if not self.subm or not there.is_subm:
            raise ValueError(f"{key} is there; only submanifold layers share one")
        ours = self.kernel_size, self.dilation, x.spatial_shape, len(x)
        theirs = there.ksize, there.dilation, there.spatial_shape, len(there.indices)
        if ours != theirs:
            raise ValueError(
                f"{key} is there for a kernel, a dilation, a spatial_shape and a number of voxels of "
                f"{theirs}; here they are {ours}: give another indice_key"
            )

    def _shape_repr(self):
        parts = [f"kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding}"] if any(self.padding) else []
        parts += [f"dilation={self.dilation}"] if max(self.dilation) > 1 else []
        return ", ".join(parts + ([f"indice_key={self.indice_key!r}"] if self.indice_key else []))


class SparseConvolution(_MapLayer):
    """The base of all convolutions: see `SubMConv3d`, `SparseConv3d` and the others for what they compute.

    Parameters
    ----------
    ndim : 1 to 4
    in_channels, out_channels : int
    kernel_size, stride, padding, dilation, output_padding : int, or a sequence of one int for each axis
        Sizes are 1 to 5.
    groups : 1
    bias, subm, transposed, inverse : bool
    indice_key : str or None
        Submanifold layers with one key must have the same shape; an inverse convolution goes back to the
        voxels of the layer that has its key.
    record_voxel_count : bool
        Whether a buffer holds the most outputs so far.
    algo, fp32_accum, large_kernel_fast_algo
        Have no effect: 16-bit features always have sums in float.
    act_type : None
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of (out, k..., in)
        spconv 2's. `load_state_dict` takes spconv 1's (k..., in, out), too, and refuses weights whose shape
        fits several layouts: `saved_weight_layout` names one. A kernel of one voxel (without a stride)
        multiplies by ``weight.view(in, out)``, as it does in each version of spconv.
    bias : Parameter of out numbers, or None
    """

    _convolves = True

    _version = 2  # of state_dict: spconv's have 1, and (out, k..., in) for sure from here on

    def __init__(
        self,
        ndim: int,
        in_channels: int,
        out_channels: int,
        kernel_size=3,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        subm: bool = False,
        output_padding=0,
        transposed: bool = False,
        inverse: bool = False,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        act_type=None,
        act_alpha: float = 0,
        act_beta: float = 0,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__(name)
        self._set_shape(ndim, kernel_size, stride, padding, dilation, subm, indice_key, algo)
        what = self._what
        (self.in_channels,) = _numbers(1, in_channels, "in_channels", what, 1)
        (self.out_channels,) = _numbers(1, out_channels, "out_channels", what, 1)
        self.output_padding = _numbers(ndim, output_padding, "output_padding", what, 0)
        self.transposed, self.inverse, self.groups = bool(transposed), bool(inverse), groups
        self._native = algo is ConvAlgo.Native or math.prod(self.kernel_size) > 32
        self.conv1x1 = math.prod(self.kernel_size) == 1 and (self.subm or math.prod(self.stride) == 1)
        if groups != 1 or act_type is not None:
            raise ValueError(f"{what}: groups={groups}, act_type={act_type}; give 1 and None")
        if self.conv1x1 and not self.subm and any(self.padding):
            raise ValueError(f"{what}: padding={padding}; a kernel of one voxel without a stride takes none")
        if self.inverse and (self.conv1x1 or indice_key is None):
            raise ValueError(
                f"{what}: kernel_size={kernel_size}, indice_key={indice_key!r}; give more than one "
                "voxel, and the key of the layer to go back from"
            )
        shape = self.out_channels, *self.kernel_size, self.in_channels
        self.weight = torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", None)
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(self.out_channels, device=device, dtype=dtype))
        self._record_voxels(record_voxel_count and not self.subm and not self.inverse, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and bias: after one `torch.manual_seed`, the numbers that spconv draws."""
        fan_in = self.in_channels * math.prod(self.kernel_size)
        bound = math.sqrt(3) * (torch.nn.init.calculate_gain("leaky_relu", math.sqrt(5)) / math.sqrt(fan_in))
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def is_inverseable(self) -> bool:
        """Whether an inverse convolution may have the indice_key of this layer."""
        return self.indice_key is not None and not self.subm

    @torch.compiler.disable
    def forward(self, input: SparseConvTensor, add_input: SparseConvTensor | None = None) -> SparseConvTensor:
        """The convolution; plus the features of `add_input`, a tensor of its voxels."""
        x = self._tensor(input)
        if x.features.shape[1] != self.in_channels:
            raise ValueError(f"{self._what}: {x.features.shape[1]} channels; give {self.in_channels}")
        if self.conv1x1:
            weight = self.weight.reshape(self.in_channels, self.out_channels)
            out = x.replace_feature(
                x.features @ weight if self.bias is None else torch.addmm(self.bias, x.features, weight)
            )
        elif self.inverse:
            out = self._inverse(x)
        else:
            self._check_key(x)
            map, shape = self._map(x)
            out = self._finish(x, self._through(map, x.features), map, shape)
        return out if add_input is None else out + add_input

    def _through(self, map, features):
        weight = self.weight.movedim(0, -1)
        if self.ndim == 1:  # beside an axis of one voxel
            weight = weight.unsqueeze(1)
        return _sparse_conv(map, features, weight, self.bias)

    def _undoes(self, data, x):
        """Whether this layer goes back from x to the inputs of the layer that left `data`."""
        alike = data.ksize == self.kernel_size and data.out_spatial_shape == x.spatial_shape
        return alike and not data.is_subm

    def _inverse(self, x):
        """Back to the voxels of the layer with the indice_key."""
        key, data = f"{self._what}: indice_key={self.indice_key!r}", x.find_indice_pair(self.indice_key)
        if data is None or data.is_subm:
            keys = [each for each, found in x.indice_dict.items() if self._undoes(found, x)]
            advice = f"choose from {keys}" if keys else "give the layer to undo an indice_key"
            kept = "" if data is None else ", but of a submanifold one, whose outputs lie where its inputs do"
            raise ValueError(f"{key} is not that of an earlier layer with a stride{kept}; {advice}")
        if not self._undoes(data, x):
            raise ValueError(
                f"{key} is that of a kernel of {data.ksize} to a spatial_shape of {data.out_spatial_shape}; "
                f"here they are {self.kernel_size} and {x.spatial_shape}"
            )
        map = data.map.transposed()
        features = self._through(map, self._in_rows_of(map.inputs, x, key))
        return x._with(features, map.outputs, data.spatial_shape, data.indices)

    def _in_rows_of(self, index, x, key):
        """Features in the rows of an index of the same voxels."""
        voxels = x._voxels()
        if voxels is index:
            return x.features
        rows = torch.as_tensor(voxels.find(index.coordinates))
        if len(voxels) != len(index) or bool((rows < 0).any()):
            raise ValueError(f"{key} led to other voxels than the {len(x)} here")
        return x.features[rows]

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        key = prefix + "weight"
        if self.record_voxel_count:
            state_dict.setdefault(prefix + _COUNT, torch.zeros(1, dtype=torch.int32))
        if key in state_dict and local_metadata.get("version", 1) < 2:
            try:
                state_dict[key] = self._of_layout(state_dict[key], key)
            except ValueError as wrong:
                errors.append(str(wrong))
                return
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    def _of_layout(self, weight, key):
        """Weights that spconv saved, as (out, k..., in)."""
        kernel, ins, outs = self.kernel_size, self.in_channels, self.out_channels
        shapes = dict(zip(_LAYOUTS, ([outs, *kernel, ins], [*kernel, ins, outs], [*kernel, outs, ins])))
        shape = list(weight.shape)
        fitting = [layout for layout, expected in shapes.items() if expected == shape]
        chosen = _layout.get() or os.environ.get("SPCONV_SAVED_WEIGHT_LAYOUT") or None
        if self.conv1x1 and fitting:  # in each version the same numbers one after the other
            return weight.reshape(shapes["KRSC"])
        if chosen is None and "RSKC" in fitting and not self._native and len(fitting) > 1:
            fitting.remove("RSKC")  # only Native has it
        if chosen is None and (len(fitting) > 1 or (fitting == ["RSKC"] and not self._native)):
            raise ValueError(
                f"{key} of shape {tuple(shape)} may lie as {' or '.join(fitting)}; say which by "
                "roost.spconv.saved_weight_layout"
            )
        if (chosen or (fitting or [None])[0]) not in fitting:
            raise ValueError(
                f"{key} has shape {tuple(shape)}; spconv has {list(shapes.values())} for this layer"
            )
        order = {"KRSC": range(self.ndim + 2), "RSCK": (-1, *range(self.ndim), -2)}
        order["RSKC"] = (-2, *range(self.ndim), -1)
        return weight.permute(*(each % (self.ndim + 2) for each in order[chosen or fitting[0]]))

    def extra_repr(self):
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_channels}, {self.out_channels}, {self._shape_repr()}{bias}"


class _Plain(SparseConvolution):
    _axes, _is = None, {}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ):
        shape = kernel_size, stride, padding, dilation, groups, bias
        named = {
            "indice_key": indice_key,
            "algo": algo,
            "record_voxel_count": record_voxel_count,
            "name": name,
        }
        super().__init__(self._axes, in_channels, out_channels, *shape, **named, **self._is)


class _Inverse(SparseConvolution):
    _axes = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        indice_key: str,
        bias: bool = True,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ):
        named = {"indice_key": indice_key, "algo": algo, "bias": bias, "name": name}
        super().__init__(self._axes, in_channels, out_channels, kernel_size, inverse=True, **named)


class SubMConv3d(_Plain):
    """A convolution whose outputs are the voxels of its input, in the same rows. Padding and stride have no
    effect, as in spconv; sizes are odd."""

    _axes, _is = 3, {"subm": True}


class SubMConv1d(_Plain):
    """`SubMConv3d` on one axis."""

    _axes, _is = 1, {"subm": True}


class SubMConv2d(_Plain):
    """`SubMConv3d` on two axes."""

    _axes, _is = 2, {"subm": True}


class SubMConv4d(_Plain):
    """`SubMConv3d` on four axes."""

    _axes, _is = 4, {"subm": True}


class SparseConv3d(_Plain):
    """A convolution whose outputs are all voxels in the box that its window reaches, where a dense
    convolution of ones is not 0. The box is that of the dense one: `ops.get_conv_output_size`."""

    _axes = 3


class SparseConv1d(_Plain):
    """`SparseConv3d` on one axis."""

    _axes = 1


class SparseConv2d(_Plain):
    """`SparseConv3d` on two axes."""

    _axes = 2


class SparseConv4d(_Plain):
    """`SparseConv3d` on four axes."""

    _axes = 4


class SparseConvTranspose3d(_Plain):
    """A transposed convolution: its outputs are all voxels in the box that the kernel reaches. The box is
    `ops.get_deconv_output_size`."""

    _axes, _is = 3, {"transposed": True}


class SparseConvTranspose1d(_Plain):
    """`SparseConvTranspose3d` on one axis."""

    _axes, _is = 1, {"transposed": True}


class SparseConvTranspose2d(_Plain):
    """`SparseConvTranspose3d` on two axes."""

    _axes, _is = 2, {"transposed": True}


class SparseConvTranspose4d(_Plain):
    """`SparseConvTranspose3d` on four axes."""

    _axes, _is = 4, {"transposed": True}


class SparseInverseConv3d(_Inverse):
    """A transposed convolution back to the voxels of the layer that has its indice_key, in their rows: a
    `SparseConv3d`, a `SparseConvTranspose3d` or a pooling with the same kernel."""

    _axes = 3


class SparseInverseConv1d(_Inverse):
    """`SparseInverseConv3d` on one axis."""

    _axes = 1


class SparseInverseConv2d(_Inverse):
    """`SparseInverseConv3d` on two axes."""

    _axes = 2


class SparseInverseConv4d(_Inverse):
    """`SparseInverseConv3d` on four axes."""

    _axes = 4
