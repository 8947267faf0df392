"""roost.spconv against dense layers of torch, and against spconv itself where that is installed."""

import copy
import doctest
import importlib.util
import itertools
import math
import pathlib
import pickle
import types
import warnings

import numpy as np
import pytest
from conftest import LIBRARIES

if not importlib.util.find_spec("torch"):
    pytest.skip("needs torch", allow_module_level=True)
import roost.sparse.nn as nn
import roost.spconv as ours
import torch
from torch.nn import functional as F

DEVICES = [on.name.partition("-")[2] or "cpu" for on in LIBRARIES if on.name.startswith("torch")]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Sparse invariant")
needs_spconv = pytest.mark.skipif(not importlib.util.find_spec("spconv"), reason="needs spconv")


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def theirs(monkeypatch):
    """spconv on the CPU. Its backward asks for a stream of CUDA; its threads race for the sums of rows, so
    that there must be one. (And its `empty_mean` has another mean, so that nothing compares it.)"""
    spconv = importlib.import_module("spconv.pytorch")
    monkeypatch.setattr(importlib.import_module("spconv.pytorch.ops"), "get_current_stream", lambda: 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield spconv
    torch.set_num_threads(threads)


def voxels(shape, batches, n, seed=0):
    """Different voxels in a box, in any order, some of them at its borders."""
    generator = torch.Generator().manual_seed(seed)
    extents = torch.tensor([batches, *shape])
    rows = torch.randperm(int(extents.prod()), generator=generator)[:n]
    return torch.stack(torch.unravel_index(rows, tuple(extents.tolist())), 1).int()


def tensor(shape, batches=2, n=40, channels=3, seed=0, device="cpu", dtype=torch.float64, module=ours):
    generator = torch.Generator().manual_seed(seed)
    coordinates = voxels(shape, batches, n, seed).to(device)
    features = torch.randn(len(coordinates), channels, dtype=torch.float64, generator=generator)
    features = features.to(device, dtype).requires_grad_()
    return module.SparseConvTensor(features, coordinates, list(shape), batches)


def occupied(x):
    """1 in a dense tensor where there is a voxel."""
    return x.replace_feature(torch.ones_like(x.features[:, :1]).detach()).dense()


def at(dense, indices):
    return dense.movedim(1, -1)[tuple(indices.long().unbind(1))]


def same(got, expected, inputs):
    """Values, and gradients of all inputs for one random gradient of the results."""
    torch.testing.assert_close(got, expected)
    gradient = torch.randn_like(got)
    pairs = [torch.autograd.grad(each, inputs, gradient, retain_graph=True) for each in (got, expected)]
    for one, other in zip(*pairs):
        torch.testing.assert_close(one, other)


def dense_conv(x, weight, stride, padding, dilation):
    """torch's convolution on 1 to 4 axes; weights are (out, k..., in), numbers a list for each axis."""
    weight = weight.movedim(-1, 1)
    if len(stride) < 4:
        return getattr(F, f"conv{len(stride)}d")(x, weight, None, stride, padding, dilation)
    x = F.pad(x, (0,) * 6 + (padding[0],) * 2)  # the first axis: a sum of convolutions over the others
    extent = (x.shape[2] - dilation[0] * (weight.shape[2] - 1) - 1) // stride[0] + 1
    slices = []
    for o in range(extent):
        parts = [
            F.conv3d(
                x[:, :, o * stride[0] + k * dilation[0]],
                weight[:, :, k],
                None,
                stride[1:],
                padding[1:],
                dilation[1:],
            )
            for k in range(weight.shape[2])
        ]
        slices.append(sum(parts))
    return torch.stack(slices, 2)


def changed(x, **members):
    for name, value in members.items():
        setattr(x, name, value)
    return x.dense()


def layer(name, *arguments, device="cpu", **named):
    torch.manual_seed(1)
    return getattr(ours, name)(*arguments, **named).to(device, torch.float64)


SHAPES = {1: (23,), 2: (7, 9), 3: (5, 7, 6), 4: (3, 5, 4, 4)}
CONVS = [(3, 2, 1, 1), (3, 1, 0, 1), (2, 2, 0, 1), (3, 2, 0, 1), (1, 2, 0, 1), (3, 1, 2, 2), (5, 3, 2, 1)]


def strided(axes, size, stride, padding, dilation):
    shape = SHAPES[axes]
    return size if min(shape) + 2 * padding > dilation * (size - 1) else None


def all_axes(cases):
    cases = [(axes, *case) for axes, case in itertools.product((1, 2, 3, 4), cases)]
    return [case for case in cases if strided(*case)]


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("size, dilation", [(3, 1), (3, 2), (5, 1)])
def test_submanifold(device, axes, size, dilation):
    x = tensor(SHAPES[axes], device=device, n=20 if axes == 1 else 60)
    # Stride and padding have no effect.
    conv = layer(f"SubMConv{axes}d", 3, 4, size, 2, 5, dilation, device=device)
    y = conv(x)
    assert y.indices is x.indices and y.spatial_shape == x.spatial_shape
    padding = [dilation * (size // 2)] * axes
    dense = dense_conv(x.dense(), conv.weight, [1] * axes, padding, [dilation] * axes)
    same(y.features, at(dense, y.indices) + conv.bias, [x.features, conv.weight, conv.bias])


def check_strided(x, y, conv, numbers):
    """A convolution with a stride, and back, against dense ones."""
    dense = dense_conv(x.dense(), conv.weight, *numbers)
    reached = dense_conv(occupied(x), torch.ones_like(conv.weight[:1, ..., :1]), *numbers) > 0
    assert y.spatial_shape == list(dense.shape[2:])
    assert torch.equal(occupied(y) > 0, reached) and len(y) == int(reached.sum())
    same(y.features, at(dense, y.indices) + conv.bias, [x.features, conv.weight, conv.bias])


@pytest.mark.parametrize("axes, size, stride, padding, dilation", all_axes(CONVS))
def test_strided_in_a_box(device, axes, size, stride, padding, dilation):
    x = tensor(SHAPES[axes], device=device, n=12)
    named = {"indice_key": "down", "record_voxel_count": True}
    conv = layer(f"SparseConv{axes}d", 3, 4, size, stride, padding, dilation, device=device, **named)
    y = conv(x)
    check_strided(x, y, conv, [[each] * axes for each in (stride, padding, dilation)])
    assert conv.get_max_num_voxels() == len(y) and "down" not in x.indice_dict

    if size == 1:
        return
    back = layer(f"SparseInverseConv{axes}d", 4, 2, size, "down", device=device)
    z = back(y)
    assert z.indices is x.indices and z.spatial_shape == x.spatial_shape
    weight = back.weight.movedim(-1, 0)  # (in, out, k...)
    if axes < 4:
        up = getattr(F, f"conv_transpose{axes}d")
        numbers = zip(x.spatial_shape, y.spatial_shape)
        rest = [have + 2 * padding - dilation * (size - 1) - 1 - (n - 1) * stride for have, n in numbers]
        dense = up(y.dense(), weight, None, stride, padding, rest, 1, dilation)
        same(z.features, at(dense, z.indices) + back.bias, [x.features, back.weight, back.bias])
    # Another order of the rows is no other tensor.
    turned = y.select_by_index(torch.arange(len(y) - 1, -1, -1, device=device))
    turned.indice_dict = y.indice_dict
    torch.testing.assert_close(back(turned).features, z.features)


def test_sizes_of_each_axis(device):
    x = tensor((6, 7, 8), device=device, n=50)
    numbers = [np.array([2, 1, 3]), (0, 1, 2), [1, 2, 1]]
    conv = layer("SparseConv3d", 3, 4, (3, 2, 5), *numbers, device=device)
    check_strided(x, conv(x), conv, [list(each) for each in numbers])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("size, stride, padding", [(3, 2, 1), (2, 2, 0), (3, 1, 0), (5, 3, 2)])
def test_transposed(device, axes, size, stride, padding):
    x = tensor(SHAPES[axes], device=device, n=12)
    size = np.array(size)  # a number, too
    conv = layer(f"SparseConvTranspose{axes}d", 3, 4, size, stride, padding, device=device)
    y = conv(x)
    up = getattr(F, f"conv_transpose{axes}d")
    weight = conv.weight.movedim(0, -1).movedim(-2, 0).movedim(-1, 1)
    dense = up(x.dense(), weight, None, stride, padding)
    reached = up(occupied(x), torch.ones_like(weight[:1, :1]), None, stride, padding) > 0
    assert y.spatial_shape == list(dense.shape[2:]) and torch.equal(occupied(y) > 0, reached)
    same(y.features, at(dense, y.indices) + conv.bias, [x.features, conv.weight, conv.bias])


def windows(x, size, stride, padding):
    """Each output position's rows of input features, by brute force."""
    rows = {tuple(c): i for i, c in enumerate(x.indices.tolist())}
    shape = ours.ops.get_conv_output_size(x.spatial_shape, *([n] * 3 for n in (size, stride, padding, 1)))
    found = {}
    for b, *o in itertools.product(range(x.batch_size), *map(range, shape)):
        window = itertools.product(*(range(n * stride - padding, n * stride - padding + size) for n in o))
        inside = [rows[b, *i] for i in window if (b, *i) in rows]
        if inside:
            found[b, *o] = inside
    return found


@pytest.mark.parametrize("size, stride, padding", [(2, None, 0), (3, 2, 1), (3, 1, 0)])
@pytest.mark.parametrize("mean", [False, True])
def test_pooling(device, size, stride, padding, mean):
    x = tensor((5, 7, 6), device=device, n=50)
    pool = (ours.SparseAvgPool3d if mean else ours.SparseMaxPool3d)(size, stride, padding, indice_key="pool")
    y = pool(x)
    found = windows(x, size, stride or size, padding)
    assert {tuple(c) for c in y.indices.tolist()} == set(found) and len(y) == len(found)
    groups = [x.features[found[tuple(c)]] for c in y.indices.tolist()]
    expected = [each.mean(0) if mean else each.amax(0).clamp_min(0) for each in groups]
    same(y.features, torch.stack(expected), [x.features])
    back = layer("SparseInverseConv3d", 3, 2, size, "pool", device=device)
    assert back(y).indices is x.indices


def test_pooling_as_spconv_has_it():
    features = torch.tensor([[1.0, -1.0], [1.0, -2.0], [0.5, 0.0]], requires_grad=True)
    x = ours.SparseConvTensor(features, voxels((2, 2), 1, 3), [2, 2], 1)
    y = ours.SparseMaxPool2d(2)(x)
    assert y.features.tolist() == [[1, 0]]  # at least 0
    y.features.sum().backward()
    assert features.grad.tolist() == [[1, 0], [1, 0], [0, 1]]  # to all that are equal
    sub = ours.SparseMaxPool(2, 3, subm=True)(x)
    assert sub.indices is x.indices and sub.features.tolist() == [[1, 0]] * 3


def test_global_pooling(device):
    x = tensor((4, 5), device=device, n=20)
    batches = [x.features[x.indices[:, 0] == b] for b in range(2)]
    same(ours.SparseGlobalMaxPool()(x), torch.stack([each.amax(0) for each in batches]), [x.features])
    same(ours.SparseGlobalAvgPool()(x), torch.stack([each.mean(0) for each in batches]), [x.features])
    with pytest.raises(ValueError, match="batch 1 has no voxels"):
        ours.SparseGlobalAvgPool()(x.select_by_index(x.indices[:, 0] == 0))


def test_one_voxel_of_a_kernel_multiplies_as_in_spconv(device):
    x = tensor((5, 7, 6), device=device)
    for conv in (layer("SubMConv3d", 3, 4, 1, device=device), layer("SparseConv3d", 3, 4, 1, device=device)):
        y = conv(x)
        expected = x.features @ conv.weight.flatten().view(3, 4) + conv.bias
        same(y.features, expected, [x.features, conv.weight, conv.bias])
        assert y.indices is x.indices
        last = conv.to(memory_format=torch.channels_last_3d)(x)
        assert torch.equal(last.features, y.features)


def test_tensors(device):
    x = tensor((4, 5, 6), device=device, n=30)
    where = tuple(x.indices.long().unbind(1))
    dense = x.features.new_zeros(2, 4, 5, 6, 3).index_put(where, x.features)
    same(x.dense(channels_first=False), dense, [x.features])
    same(x.dense(), dense.movedim(-1, 1), [x.features])
    assert x.dense().is_contiguous() and x.spatial_size == 120 and len(x) == 30
    again = ours.SparseConvTensor.from_dense(dense)
    assert again.spatial_shape == [4, 5, 6] and again.batch_size == 2
    assert again.indices.tolist() == sorted(x.indices.tolist())
    torch.testing.assert_close(again.dense(), x.dense())
    assert torch.equal(x.minus().features, -x.features)
    assert torch.equal((x + x).features, 2 * x.features) and torch.equal((1 + x).features, 1 + x.features)
    some = x.select_by_index(x.indices[:, 0] == 1)
    assert len(some) == int((x.indices[:, 0] == 1).sum()) and x.shadow_copy().indices is x.indices
    with pytest.raises(ValueError, match="replace_feature"):
        x.features = x.features
    with pytest.raises(ValueError, match="other voxels"):
        x + tensor((4, 5, 6), device=device, n=30, seed=1)


def test_changed_indices_make_another_index(device):
    x = tensor((4, 5), device=device, n=6)
    conv = layer("SubMConv2d", 3, 4, 3, device=device)
    conv(x)
    x.indices = x.indices.flip(0)
    turned = conv(x).features
    fresh = ours.SparseConvTensor(x.features, x.indices.clone(), [4, 5], 2)
    assert torch.equal(turned, conv(fresh).features)
    x.indices[:, 0] = 1 - x.indices[:, 0]
    fresh = ours.SparseConvTensor(x.features, x.indices.clone(), [4, 5], 2)
    assert torch.equal(conv(x).features, conv(fresh).features)


def test_levels_side_by_side(device):
    """More features first and their indices after that, as VoxelNeXt does."""
    x, y = (tensor((4, 5), device=device, n=6, seed=seed) for seed in (0, 1))
    whole = x.replace_feature(torch.cat([x.features, y.features]))
    whole.indices = torch.cat([x.indices, y.indices + 4 * (torch.arange(3, device=device) == 1).int()])
    whole.spatial_shape = np.array([8, 5])
    assert whole.spatial_shape == [8, 5]
    conv = layer("SubMConv2d", 3, 4, 3, device=device)
    fresh = ours.SparseConvTensor(whole.features, whole.indices, [8, 5], 2)
    assert torch.equal(conv(whole).features, conv(fresh).features)


@pytest.mark.parametrize("add", [ours.functional.sparse_add, ours.functional.sparse_add_hash_based])
def test_sums_of_other_voxels(device, add):
    tensors = [tensor((4, 5, 6), device=device, n=30, seed=seed) for seed in range(3)]
    total = add(*tensors)
    expected = sum(each.dense() for each in tensors)
    same(total.dense(), expected, [each.features for each in tensors])
    union = {tuple(c) for each in tensors for c in each.indices.tolist()}
    assert len(total) == len(union) and total.indice_dict == {}
    if add is ours.functional.sparse_add:
        assert [tuple(c) for c in total.indices.tolist()] == sorted(union)

    # One that has all voxels keeps the way back.
    whole = layer("SparseConv3d", 3, 3, 3, 2, 1, indice_key="down", device=device)(tensors[0])
    total = add(whole, whole.select_by_index(torch.arange(len(whole) // 2, device=device)))
    back = layer("SparseInverseConv3d", 3, 2, 3, "down", device=device)
    twice = whole.features.clone()
    twice[: len(whole) // 2] *= 2
    torch.testing.assert_close(back(total).features, back(whole.replace_feature(twice)).features)


def test_sequential_and_tables(device):
    x = tensor((4, 5, 6), device=device)
    relu = torch.nn.ReLU()
    net = ours.SparseSequential(ours.SubMConv3d(3, 3, 3), relu, last=ours.SparseBatchNorm(3)).to(x.features)
    assert len(net) == 3 and net[1] is relu and list(net._modules) == ["0", "1", "last"] and net[-1].training
    expected = net[2](torch.relu(net[0](x).features))
    torch.testing.assert_close(net(x).features, expected)
    net.add(ours.ToDense())
    assert net(x).shape == (2, 3, 4, 5, 6)
    both = ours.ConcatTable().add(ours.SparseReLU()).add(ours.Identity())
    assert torch.equal(ours.AddTable()(both(x)).features, x.features.relu() + x.features)
    assert torch.equal(ours.JoinTable()(both(x)).features, torch.cat([x.features.relu(), x.features], 1))
    assert torch.equal(ours.AddTableMisaligned()(both(x)).dense(), ours.AddTable()(both(x)).dense())
    assert ours.RemoveGrid()(x).grid is None
    ours.assign_name_for_sparse_modules(net)
    assert net[0]._sparse_unique_name == "0" and ours.is_sparse_conv(net[0])
    assert ours.is_spconv_module(net[0]) and not ours.is_spconv_module(relu)


@pytest.mark.parametrize("n", [0, 1])
def test_few_voxels_go_through_every_layer(device, n):
    x = tensor((5, 5, 5), n=n, device=device)
    net = ours.SparseSequential(
        ours.SubMConv3d(3, 4, 3, indice_key="a"),
        torch.nn.ReLU(),
        ours.SparseConv3d(4, 4, 3, 2, 1, indice_key="b"),
        ours.SparseMaxPool3d(2, 1, indice_key="c"),
        ours.SparseInverseConv3d(4, 4, 2, "c"),
        ours.SparseInverseConv3d(4, 4, 3, "b"),
        ours.SparseConvTranspose3d(4, 2, 2, 2),
        ours.SparseAvgPool3d(2),
        ours.ToDense(),
    ).to(x.features)
    y = net(x)
    assert y.shape == (2, 2, 5, 5, 5)
    y.sum().backward()
    assert x.features.grad.shape == (n, 3)


def test_outputs_beyond_the_box_are_none(device):
    # The only window is before this voxel.
    x = ours.SparseConvTensor(
        torch.ones(1, 3, device=device, requires_grad=True),
        torch.tensor([[0, 3, 3]], dtype=torch.int32, device=device),
        [4, 4],
        1,
    )
    for conv in (ours.SparseConv2d(3, 4, 2, 4), ours.SparseMaxPool2d(2, 4), ours.SparseAvgPool2d(2, 4)):
        y = conv.to(device)(x)
        assert len(y) == 0 and y.spatial_shape == [1, 1]
        (gradient,) = torch.autograd.grad(y.features.sum(), x.features)
        assert not gradient.any()


def test_autocast_and_compile(device):
    x = tensor((5, 7, 6), device=device, dtype=torch.float32)
    net = ours.SparseSequential(
        ours.SubMConv3d(3, 4, 3, indice_key="a"),
        torch.nn.ReLU(),
        ours.SparseConv3d(4, 4, 3, 2, 1),
        ours.SparseMaxPool3d(2),
    ).to(device)
    expected = net(x)
    if device != "cpu":
        with torch.autocast("cuda", torch.float16):
            half = net(x)
        assert half.features.dtype == torch.float16
        torch.testing.assert_close(half.features.float(), expected.features, atol=1e-2, rtol=1e-2)
    compiled = torch.compile(net, backend="aot_eager")
    got = compiled(tensor((5, 7, 6), device=device, dtype=torch.float32))  # nobody keeps the maps
    same(got.features, expected.features, list(net.parameters()))


def test_autocast_on_the_cpu():
    """What torch's layers make 16 bits wide there, roost's compute in float32."""
    x = tensor((5, 7, 6), dtype=torch.float32)
    net = ours.SparseSequential(torch.nn.Linear(3, 4), ours.SubMConv3d(4, 4, 1), ours.SubMConv3d(4, 4, 3))
    with torch.autocast("cpu", torch.bfloat16):
        y = net(x)
    assert y.features.dtype == torch.float32
    torch.testing.assert_close(y.features, net(x).features, atol=5e-2, rtol=5e-2)
    with pytest.raises(TypeError, match="on the CPU"):
        net[2](y.replace_feature(y.features.bfloat16()))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("stride", [None, 1, 2])
def test_states_in_layers_without_its_names(device, size, stride):
    """`load_spconv` against the layers here, also for a kernel of one voxel, whose weights lie otherwise."""
    x = tensor((5, 7, 7), device=device)
    if stride is None:
        size += size == 2  # odd ones
        pair = ours.SubMConv3d(3, 4, size), nn.SubmanifoldConv3d(3, 4, size)
    else:
        pair = ours.SparseConv3d(3, 4, size, stride), nn.SparseConv3d(3, 4, size, stride, padding=0)
    named, plain = (each.to(device, torch.float64) for each in pair)
    nn.load_spconv(plain, named.state_dict())
    y, z = named(x), plain(nn.SparseTensor(x.features, x.indices))
    inside = (z.coordinates[:, 1:] >= 0) & (z.coordinates[:, 1:] < z.coordinates.new_tensor(y.spatial_shape))
    inside = inside.all(1)
    assert len(y) == int(inside.sum())
    torch.testing.assert_close(z.features[inside], at(y.dense(), z.coordinates[inside]))


@pytest.mark.parametrize("of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_what_is_under_their_keys(device, of):
    x = tensor((5, 7, 6), device=device)
    same = ours.SubMConv3d(3, 4, 3, indice_key="s").to(device, torch.float64)
    down = ours.SparseConv3d(4, 4, 3, 2, indice_key="d").to(device, torch.float64)
    reach = ours.SparseConvTranspose3d(4, 4, 2, 2, indice_key="t").to(device, torch.float64)
    wide = ours.SparseInverseConv3d(4, 4, 2, indice_key="t").to(device, torch.float64)
    back = ours.SparseInverseConv3d(4, 3, 3, indice_key="d").to(device, torch.float64)
    with torch.no_grad():
        y = reach(down(same(x)))
        expected, got = back(wide(y)), back(wide(of(y)))
        again = ours.SubMConv3d(3, 4, 3, indice_key="s").to(device, torch.float64)
        assert torch.equal(again(got).indices, x.indices)
    assert torch.equal(got.features, expected.features) and torch.equal(got.indices, x.indices)


@pytest.mark.parametrize("layout", ["KRSC", "RSCK", "RSKC"])
@pytest.mark.parametrize("ins, outs", [(3, 4), (4, 4), (3, 3)])
def test_layouts_of_weights(layout, ins, outs):
    saved = torch.randn(outs, 3, 3, 3, ins)
    order = {"KRSC": (0, 1, 2, 3, 4), "RSCK": (1, 2, 3, 4, 0), "RSKC": (1, 2, 3, 0, 4)}[layout]
    state = {"weight": saved.permute(order).contiguous()}

    def load(chosen=None, native=False, monkey=None):
        conv = ours.SubMConv3d(ins, outs, 3, bias=False, algo=ours.ConvAlgo.Native if native else None)
        with ours.saved_weight_layout(chosen) if chosen else warnings.catch_warnings():
            conv.load_state_dict(state)
        return conv.weight.detach()

    assert torch.equal(load(layout), saved)
    # Which it is without being told: what only one version of spconv may have written.
    alone = {
        (3, 4): {"KRSC", "RSCK"},
        (4, 4): {"KRSC", "RSCK"},
        (3, 3): set(),
    }[ins, outs]
    if layout in alone:
        assert torch.equal(load(), saved)
    elif (layout, ins, outs) != ("RSKC", 4, 4):  # a layer that is not Native never wrote this
        with pytest.raises(RuntimeError, match="saved_weight_layout"):
            load()
    # A layer of algo Native wrote (k..., out, in) until spconv 2.1.
    if (ins, outs) == (3, 4) or (layout, ins) == ("KRSC", 4):
        assert torch.equal(load(native=True), saved)
    else:
        with pytest.raises(RuntimeError, match="saved_weight_layout"):
            load(native=True)


def test_states(monkeypatch):
    conv = ours.SparseConv3d(3, 3, 3, record_voxel_count=True)
    other = ours.SparseConv3d(3, 3, 3, record_voxel_count=True)
    other.load_state_dict(conv.state_dict())  # ours says so itself, also where spconv's would be open
    assert torch.equal(other.weight, conv.weight)
    plain = {name: each.clone() for name, each in conv.state_dict().items() if "max" not in name}
    monkeypatch.setenv("SPCONV_SAVED_WEIGHT_LAYOUT", "KRSC")
    other.load_state_dict(plain)
    with pytest.raises(RuntimeError, match="has shape"):
        other.load_state_dict({**plain, "weight": torch.zeros(3, 3, 3, 3, 4)})
    monkeypatch.delenv("SPCONV_SAVED_WEIGHT_LAYOUT")
    one = ours.SubMConv3d(3, 4, 1, bias=False)
    for shape in ((4, 1, 1, 1, 3), (1, 1, 1, 3, 4), (1, 1, 1, 4, 3)):
        weight = torch.randn(shape)
        one.load_state_dict({"weight": weight})
        assert torch.equal(one.weight.flatten(), weight.flatten())


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda i, f: ours.SparseConvTensor(f, i.long(), [4, 4], 1), "int32"),
        (lambda i, f: ours.SparseConvTensor(f, i.tolist(), [4, 4], 1), "int32"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 4, 4], 1), "spatial_shape"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 4.5], 1), "whole number"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 0], 1), r"from 1 to 2\^31"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 2**31], 1), r"from 1 to 2\^31"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, math.nan], 1), "whole number"),
        (lambda i, f: ours.SparseConvTensor(f, i, 4, 1), "whole number"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 4], 1.0), "batch_size=1.0; give a whole number"),
        (lambda i, f: ours.SparseConvTensor(f.numpy(), i, [4, 4], 1), "ndarray"),
        (lambda i, f: ours.SparseConvTensor(f, i.numpy(), [4, 4], 1), "ndarray"),
        (
            lambda i, f: ours.SparseConvTranspose2d(3, 3, 3, 2)(ours.SparseConvTensor(f, i, [4, 2**30], 1)),
            r"outputs of spatial_shape \[9, 2147483649\]",
        ),
        (lambda i, f: ours.ToDense()(f), "give a SparseConvTensor"),
        (lambda i, f: ours.SparseGlobalMaxPool()(f), "give a SparseConvTensor"),
        (lambda i, f: ours.JoinTable()([f, f]), "give a SparseConvTensor"),
        (lambda i, f: ours.AddTable()([]), "no tensors"),
        (lambda i, f: ours.SparseAvgPool2d(2)(ours.SparseConvTensor(f.int(), i, [4, 4], 1)), "give floats"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 4], 0), "batch_size"),
        (lambda i, f: ours.SparseConvTensor(f[:2], i, [4, 4], 1), "a row of channels"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 4], 1).replace_feature(f[0]), "n x channels"),
        (
            lambda i, f: ours.SubMConv2d(3, 3, 3)(
                ours.SparseConvTensor(f, i, [4, 4], 1).replace_feature(f[:2])
            ),
            "a row of channels",
        ),
        (lambda i, f: changed(ours.SparseConvTensor(f, i, [4, 4], 1), indices=i.long()), "int32"),
        (lambda i, f: changed(ours.SparseConvTensor(f, i, [4, 4], 1), spatial_shape=[4]), "columns"),
        (lambda i, f: changed(ours.SparseConvTensor(f, i, [4, 4], 1), spatial_shape=4), "whole number"),
        (lambda i, f: changed(ours.SparseConvTensor(f, i, [4, 4], 1), batch_size=1.5), "whole number"),
        (lambda i, f: ours.SparseConvTensor(f, i, [4, 3], 1).dense(), "beyond"),
        (lambda i, f: ours.SparseConvTensor(f, i - 1, [4, 4], 1).dense(), "beyond"),
        (lambda i, f: ours.SubMConv2d(3, 3, 3)(ours.SparseConvTensor(f, i + 1, [9, 9], 1)), "beyond"),
        (lambda i, f: ours.SubMConv2d(3, 3, 3)(ours.SparseConvTensor(f, i * 0, [4, 4], 1)), "duplicates"),
        (lambda i, f: ours.SubMConv3d(3, 3, 3)(ours.SparseConvTensor(f, i, [4, 4], 1)), "2 axes"),
        (lambda i, f: ours.SubMConv2d(4, 3, 3)(ours.SparseConvTensor(f, i, [4, 4], 1)), "3 channels"),
        (lambda i, f: ours.SubMConv2d(3, 3, 3)(f), "give a SparseConvTensor"),
        (lambda i, f: ours.SparseConv2d(3, 3, 5)(ours.SparseConvTensor(f, i, [4, 4], 1)), "outputs of"),
        (lambda i, f: ours.SubMConv2d(3, 3, 2), "odd"),
        (lambda i, f: ours.SubMConv2d(3, 3, 7), "1 to 5"),
        (lambda i, f: ours.SubMConv2d(3, 3, (3, 3, 3)), "kernel_size"),
        (lambda i, f: ours.SparseConv2d(3, 3, 3, 0), "stride"),
        (lambda i, f: ours.SparseConv2d(3, 3, 3, 1.5), "stride"),
        (lambda i, f: ours.SparseConv2d(3, 3, 1, padding=1), "takes none"),
        (lambda i, f: ours.SparseConv2d(3, 3, 3, groups=3), "groups"),
        (lambda i, f: ours.SparseInverseConv2d(3, 3, 1, "a"), "more than one voxel"),
        (
            lambda i, f: ours.SparseInverseConv2d(3, 3, 3, "a")(ours.SparseConvTensor(f, i, [4, 4], 1)),
            "not that of an earlier layer",
        ),
        (lambda i, f: ours.saved_weight_layout("KSRC").__enter__(), "KRSC"),
        (lambda i, f: ours.functional.sparse_add(), "SparseConvTensors"),
        (lambda i, f: ours.utils.PointToVoxel([1.0], [0.0], 3, 5, 5), "bounds"),
        (lambda i, f: ours.utils.PointToVoxel([math.nan], [0.0, 1.0], 3, 5, 5), "bounds"),
        (lambda i, f: ours.utils.PointToVoxel([1.0], [0.0, math.inf], 3, 5, 5), "bounds"),
        (lambda i, f: ours.utils.PointToVoxel([1.0], [0.0, 3e9], 3, 5, 5), "at most 2\\^31"),
        (lambda i, f: ours.utils.PointToVoxel([1.0], [0.0, 1.0], 3, -5, 5), "max_num_voxels"),
        (lambda i, f: ours.utils.PointToVoxel([1.0], [0.0, 1.0], 3, 5, 5)(f.numpy()), "ndarray"),
    ],
)
def test_wrong_arguments(call, words):
    indices = torch.tensor([[0, 0, 1], [0, 2, 2], [0, 3, 3]], dtype=torch.int32)
    with pytest.raises((TypeError, ValueError), match=words):
        call(indices, torch.ones(3, 3))


def test_rules_of_indice_keys():
    x = tensor((6, 6), n=20, dtype=torch.float32)
    down = ours.SparseConv2d(3, 3, 3, 2, 1, indice_key="a")
    y = down(x)
    first = ours.SubMConv2d(3, 3, 3, indice_key="s")(x)
    second = ours.SubMConv2d(3, 3, 3, indice_key="s")(y)
    assert first.find_indice_pair("s").is_subm and first.find_indice_pair(None) is None
    assert y.find_indice_pair("a").ksize == [3, 3] and y.find_indice_pair("a").out_spatial_shape == [3, 3]
    for layer, there, words in [
        (down, y, "is there"),
        (ours.SubMConv2d(3, 3, 3, indice_key="a"), y, "is there"),
        (ours.SparseMaxPool2d(2, indice_key="a"), y, "is there"),
        (ours.SubMConv2d(3, 3, 5, indice_key="s"), first, "another indice_key"),
        (ours.SubMConv2d(3, 3, 3, dilation=2, indice_key="s"), first, "another indice_key"),
        (ours.SparseInverseConv2d(3, 3, 3, "s"), first, "of a submanifold one, .*; give the layer to undo"),
        (ours.SparseInverseConv2d(3, 3, 3, "s"), second, r"choose from \['a'\]$"),
        (ours.SparseInverseConv2d(3, 3, 2, "b"), y, "layer with a stride; give the layer to undo"),
        (ours.SparseInverseConv2d(3, 3, 2, "a"), y, "kernel"),
        (
            ours.SparseInverseConv2d(3, 3, 3, "a"),
            y.select_by_index(torch.arange(len(y) - 1)),
            "not that of an earlier layer",
        ),
    ]:
        with pytest.raises(ValueError, match=words):
            layer(there)
    fewer = y.select_by_index(torch.arange(len(y) - 1))
    fewer.indice_dict = y.indice_dict
    with pytest.raises(ValueError, match="other voxels"):
        ours.SparseInverseConv2d(3, 3, 3, "a")(fewer)


def test_what_has_no_effect_says_so_once():
    ours.pytorch.core._noted.clear()
    with pytest.warns(UserWarning, match="algo has no effect"):
        ours.SubMConv3d(3, 3, 3, algo=ours.ConvAlgo.Native)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.SubMConv3d(3, 3, 3, algo=ours.ConvAlgo.MaskImplicitGemm, fp32_accum=True)


def voxels_of_points(points, size, low, extents, most, places):
    """PointToVoxel by a loop."""
    rows, held, ids = {}, [], []
    for point in points:
        at = tuple(np.floor((point[: len(size)] - low) / size)[::-1].tolist())
        inside = all(0 <= n < extent for n, extent in zip(at, extents[::-1]))
        at = tuple(map(int, at)) if inside else at
        if inside and at not in rows and len(rows) < most:
            rows[at] = len(rows)
            held.append([])
        ids.append(rows.get(at, -1) if inside else -1)
        if ids[-1] >= 0 and len(held[ids[-1]]) < places:
            held[ids[-1]].append(point)
    return list(rows), held, ids


@pytest.mark.parametrize("axes, most, places", [(3, 6, 2), (3, 100, 5), (2, 100, 1), (1, 3, 9)])
@pytest.mark.parametrize("mean", [False, True])
def test_point_to_voxel(device, axes, most, places, mean):
    size, low, extents = np.float32([0.5, 1, 2][:axes]), np.float32([-1, 0, 1][:axes]), [6, 4, 3][:axes]
    rng = np.random.default_rng(axes)
    points = (low + (rng.random((200, axes + 1)) * 1.4 - 0.2)[:, :axes] * size * extents).astype(np.float32)
    points = np.concatenate([points, rng.random((200, 1), np.float32)], 1)
    points[7, 0] = np.nan
    bounds = [*low.tolist(), *(low + size * extents).tolist()]
    make = ours.utils.PointToVoxel(size.tolist(), bounds, axes + 1, most, places, device)
    given = torch.from_numpy(points).to(device)
    held, indices, counts, ids = make.generate_voxel_with_id(given, empty_mean=mean)
    expected = voxels_of_points(points, size, low, extents, most, places)
    assert [tuple(each) for each in indices.tolist()] == expected[0] and ids.tolist() == expected[2]
    assert counts.tolist() == [len(each) for each in expected[1]]
    for got, rows in zip(held.cpu().numpy(), expected[1]):
        assert np.array_equal(got[: len(rows)], rows)
        rest = np.mean(rows, 0) if mean else np.zeros(axes + 1)
        assert np.allclose(got[len(rows) :], rest, atol=1e-5)
    of_points = ours.utils.gather_features_by_pc_voxel_id(counts, ids, -1)
    assert of_points.tolist() == [-1 if i < 0 else len(expected[1][i]) for i in ids.tolist()]


BACKBONE = pathlib.Path(__file__).parents[2] / "examples" / "backbone.py"


def backbone(module):
    """The example, with its one import changed."""
    source = BACKBONE.read_text().replace("import roost.spconv.pytorch as", f"import {module} as")
    made = types.ModuleType("backbone")
    exec(compile(source, str(BACKBONE), "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("residual", [False, True])
def test_backbone_of_dense_layers(residual):
    """A grid with all voxels there: sparse layers are dense ones, but for the border of submanifold ones."""
    torch.manual_seed(0)
    shape = (25, 8, 16)
    net = backbone("roost.spconv.pytorch").Backbone(3, shape, residual).double()
    x = tensor(shape, 1, 900)
    got = net(x.features, x.indices, 1)

    def apply(modules, dense, there):
        for module in modules:
            if isinstance(module, ours.SparseSequential):
                dense, there = apply(module, dense, there)
            elif isinstance(module, ours.SparseConvolution):
                step = [1] * 3 if module.subm else module.stride
                padding = [1] * 3 if module.subm else module.padding
                dense = dense_conv(dense, module.weight, step, padding, [1] * 3)
                ones = torch.ones_like(module.weight[:1, ..., :1])
                there = (
                    there if module.subm else (dense_conv(there, ones, step, padding, [1] * 3) > 0).double()
                )
                bias = 0 if module.bias is None else module.bias[:, None, None, None]
                dense = (dense + bias) * there
            elif type(module).__name__ == "Residual":
                first = apply([module.conv1, module.bn1, torch.nn.ReLU()], dense, there)[0]
                dense = torch.relu(apply([module.conv2, module.bn2], first, there)[0] + dense)
            else:
                rows = tuple(there[:, 0].nonzero().unbind(1))
                last = dense.movedim(1, -1)
                result = module(last[rows])
                dense = torch.zeros_like(last).index_put(rows, result).movedim(-1, 1)
        return dense, there

    stages = [net.conv_input, net.conv1, net.conv2, net.conv3, net.conv4, net.conv_out]
    expected = apply(stages, x.dense(), occupied(x))[0].flatten(1, 2)
    same(got, expected, [x.features, *net.parameters()])


# Against spconv itself.


def by_voxel(y):
    """Coordinates and features in one order."""
    order = np.lexsort(y.indices.numpy().T[::-1])
    return y.indices[order], y.features[order]


def as_spconv(theirs, make, shape, n, loss=1.0, batches=2, positive=False):
    """One net of both from the same seed: weights, outputs, and gradients of all."""
    found = []
    for module in (ours, theirs):
        torch.manual_seed(3)
        net = make(module)
        x = tensor(shape, batches, n, dtype=torch.float32, module=module)
        features = x.features.abs() if positive else x.features
        y = net(x.replace_feature(features))
        indices, values = by_voxel(y)
        torch.manual_seed(4)
        (values * torch.randn_like(values)).sum().backward()
        found.append((net, x, y, indices, values))
    (net, x, y, indices, values), (other, x_, y_, indices_, values_) = found
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters()))
    assert list(net.state_dict()) == list(other.state_dict()) and y.spatial_shape == y_.spatial_shape
    assert torch.equal(indices, indices_)
    torch.testing.assert_close(values, values_, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(x.features.grad, x_.features.grad, atol=1e-5, rtol=1e-5)
    for a, b in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)
    return y, y_


@needs_spconv
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("size, dilation", [(1, 1), (3, 1), (3, 2), (5, 1)])
def test_submanifold_as_spconv(theirs, axes, size, dilation):
    def make(module):
        named = {"padding": 1, "dilation": dilation, "indice_key": "a"}
        conv = getattr(module, f"SubMConv{axes}d")
        return module.SparseSequential(conv(3, 4, size, **named), torch.nn.ReLU(), conv(4, 5, size, **named))

    y, y_ = as_spconv(theirs, make, SHAPES[axes], 20)
    assert torch.equal(y.indices, y_.indices)  # in the same order


@needs_spconv
@pytest.mark.parametrize("axes, size, stride, padding, dilation", all_axes(CONVS))
def test_strided_and_inverse_as_spconv(theirs, axes, size, stride, padding, dilation):
    def down(module):
        return getattr(module, f"SparseConv{axes}d")(3, 4, size, stride, padding, dilation, indice_key="a")

    def back(module):
        return module.SparseSequential(
            down(module), getattr(module, f"SparseInverseConv{axes}d")(4, 5, size, indice_key="a")
        )

    as_spconv(theirs, down, SHAPES[axes], 20)
    if size > 1:
        y, y_ = as_spconv(theirs, back, SHAPES[axes], 20)
        assert torch.equal(y.indices, y_.indices)


@needs_spconv
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "size, stride, padding, dilation", [(3, 2, 1, 1), (2, 2, 0, 1), (3, 1, 0, 2), (3, 2, 1, 2), (5, 3, 2, 1)]
)
def test_transposed_as_spconv(theirs, axes, size, stride, padding, dilation):
    def make(module):
        conv = getattr(module, f"SparseConvTranspose{axes}d")
        return conv(3, 4, size, stride, padding, dilation, indice_key="a")

    def back(module):
        return module.SparseSequential(
            make(module), getattr(module, f"SparseInverseConv{axes}d")(4, 2, size, indice_key="a")
        )

    as_spconv(theirs, make, SHAPES[axes], 15)
    as_spconv(theirs, back, SHAPES[axes], 15)


@needs_spconv
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("size, stride, padding, dilation", [(2, None, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2)])
@pytest.mark.parametrize("positive", [False, True])
def test_max_pool_as_spconv(theirs, axes, size, stride, padding, dilation, positive):
    def make(module):
        pool = getattr(module, f"SparseMaxPool{axes}d")(size, stride, padding, dilation, indice_key="p")
        back = getattr(module, f"SparseInverseConv{axes}d")(3, 2, size, indice_key="p")
        # Ties: what a ReLU leaves.
        return module.SparseSequential(torch.nn.Hardtanh(0.0, 0.5), pool, back)

    as_spconv(theirs, make, SHAPES[axes], 20, positive=positive)


@needs_spconv
@pytest.mark.parametrize("seed", range(25))
def test_random_nets_as_spconv(theirs, seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(4, 12 if axes > 1 else 40, axes))
    n = int(rng.integers(1, np.prod(shape) + 1))
    sizes, strides, paddings = (
        tuple(int(k) for k in rng.integers(*of, axes)) for of in ((1, 5), (1, 4), (0, 3))
    )
    dilation = int(rng.integers(1, 3))
    reach = [extent + 2 * p - dilation * (k - 1) for extent, p, k in zip(shape, paddings, sizes)]
    if min(reach) < 1 or max(sizes) == 1:
        sizes, paddings, dilation = (3,) * axes, (1,) * axes, 1

    def make(module):
        def of(name):
            return getattr(module, f"{name}{axes}d")

        return module.SparseSequential(
            of("SubMConv")(3, 4, 3, indice_key="a"),
            torch.nn.ReLU(),
            of("SparseConv")(4, 6, sizes, strides, paddings, dilation, indice_key="b"),
            of("SubMConv")(6, 5, 3, bias=False, indice_key="c"),
            of("SparseInverseConv")(5, 4, sizes, indice_key="b"),
            of("SubMConv")(4, 2, 3, indice_key="a"),
        )

    try:
        y, y_ = as_spconv(theirs, make, shape, n, batches=int(rng.integers(1, 4)))
    except RuntimeError as error:  # no output of the strided layer: spconv's backward has none
        assert "does not require grad" in str(error)
        return
    assert torch.equal(y.indices, y_.indices)


@needs_spconv
@pytest.mark.parametrize("seed", range(3))
def test_sums_as_spconv(theirs, seed):
    found = []
    for module in (ours, theirs):
        tensors = [
            tensor((4, 5, 6), n=30, seed=seed + k, dtype=torch.float32, module=module) for k in range(3)
        ]
        found.append(module.functional.sparse_add(*tensors))
    assert torch.equal(found[0].indices, found[1].indices)
    torch.testing.assert_close(found[0].features, found[1].features)
    dense = torch.randn(2, 3, 4, 5) * (torch.rand(2, 3, 4, 1) > 0.5)
    one, other = (module.SparseConvTensor.from_dense(dense) for module in (ours, theirs))
    assert torch.equal(one.indices, other.indices) and torch.equal(one.features, other.features)
    assert torch.equal(one.dense(), other.dense())


@needs_spconv
@pytest.mark.parametrize("axes, most, places", [(3, 6, 2), (3, 100, 5), (2, 100, 1), (1, 3, 9)])
def test_point_to_voxel_as_spconv(axes, most, places):
    make = importlib.import_module("spconv.pytorch.utils").PointToVoxel
    sizes, bounds = [0.1, 0.25, 0.5][:axes], [-1.0, 0.0, 1.0][:axes] + [1.0, 2.0, 3.0][:axes]
    points = torch.rand(500, axes + 1) * 4 - 1.5
    results = [
        kind(sizes, bounds, axes + 1, most, places, device=torch.device("cpu")).generate_voxel_with_id(points)
        for kind in (ours.utils.PointToVoxel, make)
    ]
    for one, other in zip(*results):
        torch.testing.assert_close(one, other)


@needs_spconv
@pytest.mark.parametrize("residual", [False, True])
def test_backbone_as_spconv(theirs, residual):
    shape = (41, 48, 32)
    found = []
    for name in ("roost.spconv.pytorch", "spconv.pytorch"):
        torch.manual_seed(5)
        made = backbone(name)
        net = made.Backbone(4, shape, residual)
        coordinates = made.scene(shape, 2, 900)
        features = torch.randn(len(coordinates), 4, requires_grad=True)
        picture = net(features, coordinates, 2)
        (picture * torch.randn_like(picture)).sum().backward()
        found.append((picture.detach(), features.grad, net))
    for one, other in zip(found[0][:2], found[1][:2]):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    for (name, one), other in zip(found[0][2].named_parameters(), found[1][2].parameters()):
        torch.testing.assert_close(one.grad, other.grad, atol=2e-3, rtol=2e-3, msg=name)
    # Checkpoints go both ways.
    ours_, theirs_ = found[0][2], found[1][2]
    theirs_.load_state_dict(ours_.state_dict())
    ours_.load_state_dict(theirs_.state_dict())


def test_examples_in_docstrings():
    for module in (ours, ours.pytorch.conv):
        failed, tried = doctest.testmod(module)
        assert tried and not failed
