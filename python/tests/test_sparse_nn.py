"""Layers of roost.sparse.nn against torch's dense ones. Skipped where torch is not installed."""

import copy
import doctest
import gc
import importlib.util
import io
import math
import weakref

import pytest
import roost
from conftest import LIBRARIES

if not importlib.util.find_spec("torch"):
    pytest.skip("needs torch", allow_module_level=True)
import roost.sparse.nn as nn
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

DEVICES = [on.name.partition("-")[2] or "cpu" for on in LIBRARIES if on.name.startswith("torch")]
EXTENT = 8
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def sparse(axes, device, channels=3, n=60, requires_grad=True):
    """Voxels of two batches, from 1 to 6 on each axis, so that no window of 3 needs a border."""
    torch.manual_seed(axes)
    voxels = torch.randint(1, EXTENT - 1, (n, axes + 1), dtype=torch.int32)
    voxels[:, 0] = torch.arange(n) % 2
    index = roost.sparse.CoordinateIndex(voxels.to(device))
    features = torch.randn(len(index), channels, dtype=torch.float64, device=device)
    return nn.SparseTensor(features.requires_grad_(requires_grad), index)


def dense_like(axes, x):
    return x.dense((2,) + (EXTENT,) * axes)


def at_voxels(dense, x):
    """The rows of a dense tensor at the voxels of a sparse one."""
    return dense.movedim(1, -1)[tuple(x.coordinates.long().unbind(1))]


def assert_same(got, expected, inputs):
    """Values, and gradients of what they depend on, for random gradients of the results."""
    assert got.shape == expected.shape and torch.allclose(got, expected)
    gradient = torch.randn_like(got)
    ours, theirs = (
        torch.autograd.grad(each, inputs, gradient, retain_graph=True) for each in (got, expected)
    )
    assert all(torch.allclose(one, other) for one, other in zip(ours, theirs))


CONV = {2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOL = {2: F.max_pool2d, 3: F.max_pool3d}


def layer(name, axes, *arguments, device, **named):
    return getattr(nn, f"{name}{axes}d")(*arguments, **named).to(device, torch.float64)


def of_torch(weight):
    """(k..., in, out) as (out, in, k...)."""
    return weight.movedim(-1, 0).movedim(-1, 1)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("size, dilation", [(3, 1), (3, 2), ((1, 3, 5), 1)])
def test_submanifold(device, axes, size, dilation):
    size = size[:axes] if isinstance(size, tuple) else size
    x = sparse(axes, device)
    conv = layer("SubmanifoldConv", axes, 3, 4, size, dilation=dilation, device=device)
    y = conv(x)
    assert y.index is x.index
    weight, same = of_torch(conv.weight), {"padding": "same", "dilation": dilation}
    wide = CONV[axes](dense_like(axes, x), weight, conv.bias, **same)
    assert_same(y.features, at_voxels(wide, y), (x.features, conv.weight, conv.bias))


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("size, stride", [(3, 2), (2, 2), (3, 1)])
def test_strided_and_back(device, axes, size, stride):
    x = sparse(axes, device)
    down = layer("SparseConv", axes, 3, 4, size, stride, bias=False, device=device)
    y = down(x)
    padding = (size - 1) // 2
    wide = CONV[axes](dense_like(axes, x), of_torch(down.weight), stride=stride, padding=padding)
    # No voxel is missing: elsewhere the dense result is 0.
    assert_same(y.dense(wide.shape[:1] + wide.shape[2:]), wide, (x.features, down.weight))
    ones = CONV[axes](
        dense_like(axes, x.replace(torch.ones_like(x.features))),
        torch.ones_like(of_torch(down.weight)),
        stride=stride,
        padding=padding,
    )
    assert len(y) == int((ones[:, 0] != 0).sum())

    up = layer("SparseConvTranspose", axes, 4, 5, size, stride, device=device)
    z = up(y, x)
    assert z.index is x.index
    expected = CONV_TRANSPOSE[axes](
        wide,
        up.weight.movedim(-1, 0).movedim(-1, 0),
        up.bias,
        stride=stride,
        padding=padding,
        output_padding=stride - size + 2 * padding if stride > 1 else 0,
    )
    assert_same(z.features, at_voxels(expected, x), (x.features, down.weight, up.weight, up.bias))
    # The same where the map to the coarser voxels is not one that a layer has made.
    fresh = nn.SparseTensor(x.features, roost.sparse.CoordinateIndex(x.coordinates))
    assert torch.equal(up(y, fresh).features, z.features)
    assert up(y, fresh.index).index is fresh.index


@pytest.mark.parametrize("axes", [2, 3])
def test_generative(device, axes):
    x = sparse(axes, device)
    up = layer("SparseConvTranspose", axes, 3, 4, 2, 2, bias=False, device=device)
    y = up(x)
    wide = CONV_TRANSPOSE[axes](dense_like(axes, x), up.weight.movedim(-1, 0).movedim(-1, 0), stride=2)
    assert_same(y.dense(wide.shape[:1] + wide.shape[2:]), wide, (x.features, up.weight))
    assert len(y) == len(x) * 2**axes


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("size, stride, padding", [(2, None, None), (3, 2, 1)])
def test_max_pool(device, axes, size, stride, padding):
    x = sparse(axes, device)
    y = getattr(nn, f"SparseMaxPool{axes}d")(size, stride, padding)(x)
    there = dense_like(axes, x.replace(torch.ones_like(x.features))) > 0
    wide = torch.where(there, dense_like(axes, x), -torch.inf)
    wide = MAX_POOL[axes](wide, size, stride, padding or 0)
    assert_same(y.features, at_voxels(wide, y), (x.features,))
    assert len(y) == int((wide[:, 0] > -torch.inf).sum())
    nan = x.replace(x.features.detach().index_fill(0, torch.tensor([5], device=device), torch.nan))
    assert bool(getattr(nn, f"SparseMaxPool{axes}d")(size, stride, padding)(nan).features.isnan().any())


def test_gradients(device):
    x = sparse(3, device, channels=2, n=14)
    for map in (
        roost.sparse.kernel_map(x.index),
        roost.sparse.kernel_map(x.index, 2),
        roost.sparse.kernel_map(x.index, 2, 2, kind="convolution"),
        roost.sparse.kernel_map(x.index, 2, 2, kind="convolution").transposed(),
    ):
        features = torch.randn(len(map.inputs), 2, dtype=torch.float64, device=device, requires_grad=True)
        weights = torch.randn(map.volume, 2, 3, dtype=torch.float64, device=device, requires_grad=True)
        bias = torch.randn(3, dtype=torch.float64, device=device, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda f, w, b: roost.sparse.sparse_conv(map, f, w, b), (features, weights, bias)
        )
        wide = weights.movedim(-1, 0).contiguous().movedim(0, -1)  # not contiguous
        assert torch.equal(
            roost.sparse.sparse_conv(map, features, wide), roost.sparse.sparse_conv(map, features, weights)
        )
        result = roost.sparse.sparse_conv(map, features, weights)
        del map
        result.sum().backward()  # though nobody else refers to the map
        assert features.grad.abs().sum() > 0


def test_compiled(device):
    torch.compiler.reset()
    x = sparse(3, device)
    map = roost.sparse.kernel_map(x.index)
    weights = torch.randn(27, 3, 4, dtype=torch.float64, device=device, requires_grad=True)

    def layer(features, weights):
        return roost.sparse.sparse_conv(map, features, weights).relu().pow(2)

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert_same(compiled(x.features, weights), layer(x.features, weights), (x.features, weights))
    result, features, cube = (each.detach() for each in (layer(x.features, weights), x.features, weights))
    operators, number = torch.ops.roost, map._number
    for operator, arguments in (
        (operators.sparse_conv, (x.features, weights, None, number, False, len(x))),
        (operators.sparse_conv_input_gradient, (result, cube, number, False, len(x))),
        (operators.sparse_conv_weight_gradient, (features, result, cube, number, False)),
    ):
        torch.library.opcheck(operator, arguments)


def test_compiled_layers_need_nobody_to_keep_their_maps(device):
    """Gradients of a compiled net where nothing but the loss is left of what went through it."""
    torch.compiler.reset()
    down, up = (each(4, 4, 2, 2).to(device) for each in (nn.SparseConv3d, nn.SparseConvTranspose3d))
    net = nn.Sequential(
        nn.SubmanifoldConv3d(3, 4).to(device), torch.nn.ReLU(), down, nn.SparseMaxPool3d(), up
    )

    def gradients(net, n):
        x = sparse(3, device, n=n).to(torch.float32)
        x = nn.SparseTensor(x.features.detach(), x.coordinates)
        loss = net(x).features.square().sum()
        del x
        gc.collect()
        return torch.autograd.grad(loss, list(down.parameters()))

    compiled = torch.compile(net, backend="aot_eager")
    for n in (60, 70, 80, 90):
        for got, expected in zip(gradients(compiled, n), gradients(net, n)):
            assert torch.allclose(got, expected, rtol=1e-3, atol=1e-4)
    x = sparse(3, device)
    weights = torch.randn(27, 3, 4, dtype=torch.float64, device=device)
    call = (x.features, weights, None, 0, False, len(x))
    with pytest.raises(RuntimeError, match="map 0 is no more; keep its KernelMap"):
        torch.ops.roost.sparse_conv(*call)


class Seen(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_operators_serve_who_follows_them(device):
    x = sparse(3, device)
    map = roost.sparse.kernel_map(x.index)
    weights = torch.randn(27, 3, 4, dtype=torch.float64, device=device, requires_grad=True)

    def loss(features, weights):
        return roost.sparse.sparse_conv(map, features, weights).pow(2).sum()

    def gradients(**named):
        return torch.autograd.grad(loss(x.features, weights), (x.features, weights), **named)

    eager = gradients()
    with Seen() as seen:
        followed = gradients()
    assert [name for name in seen.names if name.startswith("roost::")] == [
        "roost::sparse_conv",
        "roost::sparse_conv_input_gradient",
        "roost::sparse_conv_weight_gradient",
    ]
    assert all(torch.equal(one, other) for one, other in zip(eager, followed))
    with pytest.raises(RuntimeError, match="once_differentiable"):  # no gradients of gradients
        gradients(create_graph=True)[0].sum().backward()


def test_tf32_is_torchs_choice(device):
    x = sparse(3, device, channels=64)
    conv = layer("SubmanifoldConv", 3, 64, 64, device=device)
    exact, errors = conv(x).features.detach(), []
    conv.float()
    for allow in (False, True):
        with torch.backends.cudnn.flags(allow_tf32=allow):
            errors.append(float((conv(x.to(torch.float32)).features.detach() - exact).abs().max()))
    assert errors[0] < 1e-5 and (errors[1] > 10 * errors[0] if device == "cuda" else errors[1] == errors[0])


def test_maps_are_made_once_and_go_with_their_index(device):
    x = sparse(3, device)
    net = nn.Sequential(
        nn.SubmanifoldConv3d(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), nn.SparseConv3d(4, 4, 2, 2)
    ).to(device, torch.float64)
    first, second = net(x), net(x)
    assert first.index is second.index and len(x.index._maps) == 2
    kept = weakref.ref(x.index)
    gc.disable()  # no cycle keeps an index, and the memory of its maps
    try:
        net[0](x)
        del x
        assert kept() is None and first.index.valid()
    finally:
        gc.enable()


def test_tensors(device):
    x = sparse(3, device)
    both = nn.cat([x, x + x])
    assert torch.equal(both.features, torch.cat([x.features, 2 * x.features], 1)) and both.index is x.index
    assert torch.equal(at_voxels(x.dense(), x), x.features)
    least = x.coordinates.amin(0)[1:].tolist()
    near = x.dense(origin=least)
    assert torch.equal(near, x.dense()[(..., *(slice(first, None) for first in least))])
    for same in (x.to("cpu"), copy.deepcopy(x.replace(x.features.detach())), x.to(torch.float32)):
        assert torch.equal(same.coordinates.cpu(), x.coordinates.cpu())
        assert torch.allclose(same.features.cpu().double(), x.features.cpu(), atol=1e-6)
    # Copies of a voxel are averaged.
    voxels = torch.tensor([[0, 5, 5], [1, 5, 5], [0, 5, 5]], dtype=torch.int32, device=device)
    features = torch.tensor([[1.0], [2.0], [5.0]], device=device, requires_grad=True)
    mean = nn.SparseTensor(features, voxels)
    assert mean.features.tolist() == [[3.0], [2.0]]
    mean.features.sum().backward()
    assert features.grad.tolist() == [[0.5], [1.0], [0.5]]


def test_a_batch_that_is_absent_is_nothing(device):
    voxels = torch.tensor([[3, 2, 1], [0, 2, 1], [3, 2, 2]], dtype=torch.int32, device=device)
    x = nn.SparseTensor(torch.ones(3, 1, device=device), voxels)
    y = nn.SubmanifoldConv2d(1, 1, bias=False).to(device)
    torch.nn.init.ones_(y.weight)
    dense = y(x).dense((4, 4, 4))[:, 0]
    assert dense[0].sum() == 1 and dense[3].sum() == 4 and not dense[1:3].any()


def test_one_voxel_goes_through_every_layer(device):
    x = nn.SparseTensor(torch.ones(1, 2, device=device), torch.tensor([[5, -3, -4, -5]]).int().to(device))
    down = nn.SparseConv3d(2, 3, 2, 2).to(device)
    up = nn.SparseConvTranspose3d(3, 4, 2, 2).to(device)
    same = nn.SubmanifoldConv3d(2, 3).to(device)
    coarse = down(x)
    assert coarse.coordinates.tolist() == [[5, -2, -2, -3]]  # negative ones are rounded down
    assert len(up(coarse)) == 8 and up(coarse, x).coordinates.tolist() == x.coordinates.tolist()
    expected = x.features @ same.weight[1, 1, 1] + same.bias
    assert torch.allclose(same(x).features, expected, atol=2e-3)  # a GPU rounds factors to TF32
    assert nn.SparseMaxPool3d()(x).features.tolist() == [[1, 1]]


def test_no_voxels_go_through_every_layer(device):
    empty = nn.SparseTensor(torch.zeros(0, 3, device=device), torch.zeros(0, 4).int().to(device))
    net = nn.Sequential(
        nn.SubmanifoldConv3d(3, 4),
        torch.nn.ReLU(),
        nn.SparseConv3d(4, 4, 2, 2),
        nn.SparseMaxPool3d(),
        nn.SparseConvTranspose3d(4, 5),
    ).to(device)
    y = net(empty)
    assert y.features.shape == (0, 5) and nn.cat([y, y + y]).dense((2, 3, 3, 3)).shape == (2, 10, 3, 3, 3)
    y.features.sum().backward()
    assert net[0].weight.grad.abs().sum() == 0
    odd = nn.SparseTensor(torch.ones(1, 3, device=device), torch.tensor([[0, 1, 1, 1]]).int().to(device))
    assert nn.SparseConv3d(3, 4, 1, 2).to(device)(odd).features.shape == (0, 4)


def test_max_pool_of_integers(device):
    x = sparse(3, device, requires_grad=False)
    x = x.replace((x.features * 100).long())
    y, expected = (nn.SparseMaxPool3d()(each) for each in (x, x.to(torch.float64)))
    assert y.features.dtype == torch.int64 and torch.equal(y.features.double(), expected.features)


def test_sequential_knows_layers_in_what_torch_wraps_around_them(device):
    x = sparse(3, device).to(torch.float32)
    conv, relu = nn.SubmanifoldConv3d(3, 4).to(device), torch.nn.ReLU()
    expected = relu(conv(x).features)
    compiled = [torch.compile(each, backend="eager") for each in (conv, relu)]
    assert torch.allclose(nn.Sequential(*compiled)(x).features, expected)
    weighted = torch.nn.utils.parametrizations.weight_norm(copy.deepcopy(conv))
    assert torch.allclose(nn.Sequential(weighted, relu)(x).features, expected, atol=1e-2)  # TF32


def test_state(device):
    conv = nn.SubmanifoldConv3d(3, 4).to(device)
    file = io.BytesIO()
    torch.save(conv.state_dict(), file)
    file.seek(0)
    other = nn.SubmanifoldConv3d(3, 4).to(device)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = sparse(3, device).to(torch.float32)
    assert torch.equal(conv(x).features, other(x).features)
    assert repr(conv) == "SubmanifoldConv3d(3, 4, kernel_size=(3, 3, 3))"
    like_torchs = torch.nn.Conv3d(3, 4, 3)
    assert conv.weight.abs().max() <= like_torchs.weight.abs().max() * 1.2


def test_spconvs_weights(device):
    """A state as spconv has it, made from torch's layer, whose outputs are known."""
    dense = torch.nn.Conv3d(3, 4, (1, 3, 5), padding="same").to(device, torch.float64)
    state = {
        "0.weight": dense.weight.detach().movedim(1, -1),  # (out, k0, k1, k2, in)
        "0.bias": dense.bias.detach(),
        "1.weight": torch.rand(4, dtype=torch.float64),
        "1.bias": torch.zeros(4, dtype=torch.float64),
    }
    net = nn.Sequential(nn.SubmanifoldConv3d(3, 4, (1, 3, 5)), torch.nn.LayerNorm(4))
    net = net.to(device, torch.float64)
    nn.load_spconv(net, state)
    x = sparse(3, device)
    assert torch.allclose(net[0](x).features, at_voxels(dense(dense_like(3, x)), x))
    assert torch.equal(net[1].weight.cpu(), state["1.weight"].cpu())
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.load_spconv(net, {"0.weight": state["0.weight"]})
    with pytest.raises(
        ValueError, match=r"0.weight has shape \(4, 3, 1, 3, 5\); spconv 2 has \(4, 1, 3, 5, 3\)"
    ):
        nn.load_spconv(net, {"0.weight": dense.weight.detach()})


X = sparse(3, "cpu", requires_grad=False)
OTHER = sparse(3, "cpu", requires_grad=False)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: X + OTHER, ValueError, "different indices"),
        (lambda: nn.cat([X, OTHER]), ValueError, "different indices"),
        (lambda: nn.cat([]), ValueError, "one or more"),
        (lambda: nn.cat([X, X.features]), TypeError, "give a SparseTensor"),
        (lambda: X.replace(X.features[1:]), ValueError, "rows of features"),
        (lambda: nn.SparseTensor(X.features[0], X.index), ValueError, "rows x channels"),
        (lambda: nn.SparseTensor(X.features, X.coordinates.long()), TypeError, "convert them to int32"),
        (lambda: X.dense((1, 8, 8, 8)), ValueError, "outside"),
        (
            lambda: nn.SparseTensor(X.features.to("meta"), X.index),
            ValueError,
            "features on meta, but the voxels are on the CPU",
        ),
        (lambda: X.dense((8, 8)), ValueError, "give 4 and 3 numbers"),
        (lambda: X.dense(origin=3), ValueError, "give 4 and 3 numbers"),
        (lambda: nn.SubmanifoldConv3d(2.5, 4), TypeError, "whole number"),
        (lambda: nn.SparseConvTranspose3d(3, 4)(X, 5), TypeError, "give a SparseTensor"),
        (
            lambda: nn.SparseConvTranspose3d(3, 4).double()(X, sparse(2, "cpu").index),
            ValueError,
            "voxels on 3 axes and outputs on 2",
        ),
        (
            lambda: roost.sparse.sparse_conv(roost.sparse.kernel_map(X.index), X.features, None),
            TypeError,
            "weights a NoneType; convert one",
        ),
        (lambda: X.dense(origin=(3, 3, 3)), ValueError, "outside"),
        (lambda: nn.SubmanifoldConv3d(3, 4)(X.features), TypeError, "give a SparseTensor"),
        (lambda: nn.SubmanifoldConv2d(3, 4)(X), ValueError, "3 axes; give 2"),
        (lambda: nn.SubmanifoldConv3d(3, 4)(X), TypeError, "convert one"),
        (lambda: nn.SubmanifoldConv3d(2, 4).double()(X), ValueError, "3 channels, but weights for 2"),
        (lambda: nn.SubmanifoldConv3d(0, 4), ValueError, "1 or more"),
        (lambda: nn.SubmanifoldConv3d(3, 4, 0), ValueError, "size=0; give 1 or more"),
        (lambda: nn.SparseConv3d(3, 4, 3, (1, 0, 1)), ValueError, "stride=\\(1, 0, 1\\); give 1 or more"),
        (lambda: nn.SparseConv3d(3, 4, dilation=0), ValueError, "dilation=0; give 1 or more"),
        (lambda: nn.SparseTensor([[1.0]], X.index), ValueError, "features are list"),
        (lambda: nn.SparseConv3d(3, 4, (2, 2)), ValueError, "each of 3 axes"),
        (lambda: nn.SparseConv3d(3, 4, 7).double()(X), ValueError, "size 7"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).startswith("roost") and "\n" not in str(caught.value)


def voxels_of(points, batch, size, bounds):
    """The points of each voxel, by a loop."""
    found = {}
    for i, (point, b) in enumerate(zip(points.detach().cpu(), batch.tolist())):
        low = torch.tensor(bounds[: len(size)] if bounds else [0.0] * len(size), dtype=points.dtype)
        at = ((point[: len(size)] - low) / torch.tensor(size, dtype=points.dtype)).floor()
        most = [round((h - w) / s) for w, h, s in zip(bounds, bounds[len(size) :], size)] if bounds else None
        if most is None or all(0 <= n < m for n, m in zip(at.tolist(), most)):
            found.setdefault((b, *map(int, at.tolist())), []).append(i)
    return found


@pytest.mark.parametrize("reduce", ["mean", "sum", "max", "count"])
@pytest.mark.parametrize("axes, bounded", [(2, False), (3, True), (3, False), (4, True)])
def test_voxelize(device, reduce, axes, bounded):
    torch.manual_seed(axes)
    size = [0.5, 0.25, 1.0, 2.0][:axes]
    bounds = [-0.5] * axes + [1.5] * axes if bounded else None
    points = (torch.rand(300, axes + 2, dtype=torch.float64) * 4 - 2).to(device)
    if bounded:
        points[5, 1] = math.nan
    points.requires_grad_()
    batch = torch.randint(-1, 2, (300,), device=device)
    x = nn.Voxelize(size, bounds, reduce, axes)(points, batch)
    found = voxels_of(points, batch, size, bounds)
    assert sorted(map(tuple, x.coordinates.tolist())) == sorted(found)
    groups = [points[found[tuple(c)]] for c in x.coordinates.tolist()]
    if reduce == "count":
        assert x.features.tolist() == [[len(each)] for each in groups]
        return
    of = {"mean": lambda g: g.mean(0), "sum": lambda g: g.sum(0), "max": lambda g: g.amax(0)}[reduce]
    assert_same(x.features, torch.stack([of(each) for each in groups]), [points])


@pytest.mark.parametrize("reduce", ["mean", "sum", "max"])
def test_gradients_of_voxels(device, reduce):
    torch.manual_seed(0)
    fixed, free = torch.rand(12, 3, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
    layer = nn.Voxelize(0.6, reduce=reduce)

    def features(free):  # not those of positions, which choose the voxel
        return layer(torch.cat([fixed.to(device), free], 1)).features[:, 3:]

    assert torch.autograd.gradcheck(features, [free.to(device).requires_grad_()])
    assert len(layer(torch.zeros(0, 4, device=device))) == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 256, 257, 2049, 5000])
def test_16_bits_hold_no_sums(device, dtype, n):
    points = torch.full((n, 4), 100.0, dtype=dtype, device=device)
    points[:, :3] = 1
    expected = torch.tensor([[1.0, 1, 1, 100]])
    for reduce, each in {"mean": expected, "max": expected, "sum": n * expected}.items():
        got = nn.Voxelize(2, reduce=reduce)(points).features
        assert got.dtype == dtype and torch.equal(got.cpu(), each.to(dtype))
    assert nn.Voxelize(2, reduce="count")(points).features.tolist() == [[n]]
    twice = nn.SparseTensor(points, torch.zeros(n, 4, dtype=torch.int32, device=device))
    assert twice.features.dtype == dtype and torch.equal(twice.features.cpu(), expected.to(dtype))


def test_voxels_of_no_points_have_gradients(device):
    points = torch.ones(3, 4, device=device, requires_grad=True)
    x = nn.Voxelize(1, [2, 2, 2, 3, 3, 3])(points)  # all of them outside
    assert len(x) == 0
    x.features.sum().backward()
    assert not points.grad.any()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: nn.Voxelize(0), "size"),
        (lambda: nn.Voxelize([1, 1]), "size"),
        (lambda: nn.Voxelize(1, [0, 0, 0, 1, 1]), "range"),
        (lambda: nn.Voxelize(1, [0, 0, 0, 1, 1, 0]), "range"),
        (lambda: nn.Voxelize(1, reduce="min"), "reduce"),
        (lambda: nn.Voxelize(1, axes=1), "axes"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 2)), "n x 3"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 3).int()), "floats"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 3), torch.zeros(2).int()), "n integers"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 3), torch.zeros(3)), "n integers"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 3), torch.full((3,), 2**31)), "32 bits"),
        (lambda: nn.Voxelize(1)(torch.full((3, 3), math.inf)), "finite"),
        (lambda: nn.Voxelize(1)(torch.full((3, 3), 3e9)), "2\\^31"),
        (lambda: nn.Voxelize(1, [0, 0, 0, 3e9, 1, 1]), "at most 2\\^31"),
        (lambda: nn.Voxelize(1)([[1.0, 2.0, 3.0]]), "points are list"),
        (lambda: nn.Voxelize(1)(torch.ones(3, 3), [0, 0, 0]), "batches are list"),
    ],
)
def test_wrong_voxelizing(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_examples_in_docstrings():
    failed, tried = doctest.testmod(nn)
    assert tried and not failed


def test_bench(device, capsys):
    from roost import bench

    arguments = ["--voxels", "8", "--channels", "4", "--repeats", "1", "--device", device]
    assert bench.main(arguments) == 0
    assert "| 100 % | 512 | " in capsys.readouterr().out
