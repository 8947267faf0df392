"""The operators of roost.torch on ids, beside torch's and numpy's. Skipped where torch is not installed."""

import importlib.util
import itertools
import math

import numpy as np
import pytest
import roost
from conftest import LIBRARIES

if not importlib.util.find_spec("torch"):
    pytest.skip("needs torch", allow_module_level=True)
import roost.torch as rt
import torch

DEVICES = [on.name.partition("-")[2] or "cpu" for on in LIBRARIES if on.name.startswith("torch")]
FLOATS = torch.float32, torch.float64, torch.float16, torch.bfloat16
INTEGERS = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64
REDUCTIONS = "sum", "mean", "prod", "amax", "amin"


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def numbers(shape, dtype, seed=0):
    random = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=random).bool()
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype is torch.uint8 else -50, 50, shape, generator=random).to(dtype)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def ids(m, n, seed=0, skew=1, dtype=torch.int64):
    random = torch.Generator().manual_seed(seed)
    return (torch.rand(m, generator=random, dtype=torch.float64) ** skew * n).to(dtype)


def oracle(input, dim, index, source, how, include_self=True):
    """The reduction in float64, or exactly in int64 and rounded down: of index_reduce."""
    input, source = input.cpu(), source.cpu()
    wide = torch.float64 if input.is_floating_point() else torch.int64
    if input.ndim == 0:
        return oracle(input.reshape(1), 0, index, source.reshape(-1), how, include_self).reshape(())
    rows, out = source.to(wide).movedim(dim, 0), input.to(wide).movedim(dim, 0).clone()
    for k in index.unique().tolist():
        mine = rows[(index == k).cpu()]
        if include_self:
            mine = torch.cat([out[k : k + 1], mine])
        if how == "sum":
            out[k] = mine.sum(0)
        elif how == "prod":
            out[k] = mine.prod(0)
        elif how == "mean":
            out[k] = (
                mine.mean(0) if wide.is_floating_point else mine.sum(0).div(len(mine), rounding_mode="floor")
            )
        else:
            out[k] = getattr(mine, how)(0)
    return out.movedim(0, dim)


def assert_near(got, expected, dtype, terms=1):
    """Whether numbers are as near as a sum of so many terms of size 1 can be, computed in a type."""
    if not dtype.is_floating_point:
        return torch.testing.assert_close(got.cpu(), expected.to(dtype), rtol=0, atol=0)
    eps, own = torch.finfo(torch.float32 if got.element_size() == 2 else dtype).eps, torch.finfo(dtype).eps
    torch.testing.assert_close(
        got.cpu().double(), expected.double(), rtol=2 * own, atol=8 * eps * terms + own, equal_nan=True
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("how", REDUCTIONS)
def test_index_reduce_is_that_of_the_oracle(device, dtype, how):
    if how == "prod" and dtype in (torch.float16, torch.bfloat16):
        spread = 0.02  # products of so many numbers that are not near 1 leave the type
    else:
        spread = 0.2 if how == "prod" else 1
    for m, n, tail, dim, include_self, skew in (
        (1, 1, (), 0, True, 1),
        (37, 5, (), 0, False, 1),
        (500, 7, (3,), 0, True, 4),
        (500, 90, (4, 5), 1, False, 1),
        (200, 60, (2,), -1, True, 8),
        (0, 4, (3,), 0, True, 1),
        (6, 4, (0,), 0, True, 1),
    ):
        index = ids(m, n, m, skew)
        shape = [*tail]
        shape.insert(dim if dim >= 0 else len(tail), 0)
        of = lambda size: [s if i != dim % len(shape) else size for i, s in enumerate(shape)]
        input, source = numbers(of(n), dtype, 1), numbers(of(m), dtype, 2)
        if how == "prod" and dtype.is_floating_point:
            input, source = 1 + spread * input, 1 + spread * source
        expected = oracle(input, dim, index, source, how, include_self)
        given = input.to(device), dim, index.to(device), source.to(device)
        got = rt.index_reduce(*given, how, include_self=include_self)
        assert got.dtype == dtype and got.device == given[0].device and got.shape == input.shape
        if not dtype.is_floating_point or how in ("amax", "amin"):
            assert torch.equal(got.cpu().to(expected.dtype), expected.to(dtype).to(expected.dtype))
        elif how == "prod":
            torch.testing.assert_close(got.cpu().double(), expected, rtol=0.05, atol=1e-3)
        else:
            assert_near(got, expected, dtype, max(m, 1))
        assert torch.equal(given[0].cpu(), input)  # as it was


@pytest.mark.parametrize("how", REDUCTIONS)
def test_scatter_reduce_is_torchs(device, how):
    for shape, of_index, dim in (
        ((7,), (40,), 0),
        ((5, 6), (30, 6), 0),
        ((5, 6), (4, 50), 1),
        ((3, 8, 4), (3, 30, 4), 1),
        ((3, 8, 4), (2, 8, 60), -1),
        ((1,), (0,), 0),
        ((), (), 0),
    ):
        n = shape[dim] if shape else 1
        index = torch.randint(0, n, of_index)
        larger = [s + (2 if s else 0) for s in of_index]
        for dtype, include_self in itertools.product(
            (torch.float64, torch.int64, torch.int32), (True, False)
        ):
            input, src = 1 + numbers(shape, dtype, 3) % 3, 1 + numbers(larger, dtype, 4) % 3
            expected = input.scatter_reduce(dim, index, src, how, include_self=include_self)
            given = input.to(device), dim, index.to(device), src.to(device)
            got = rt.scatter_reduce(*given, how, include_self=include_self)
            torch.testing.assert_close(got.cpu(), expected)


def layouts(x):
    """Tensors with the numbers of x, in other layouts."""
    yield x
    yield x.t().contiguous().t()
    wide = x.new_zeros(x.shape[0], 2 * x.shape[1] + 3)
    wide[:, 1 : 1 + 2 * x.shape[1] : 2] = x
    yield wide[:, 1 : 1 + 2 * x.shape[1] : 2]
    yield torch.cat([x[:1], x])[1:]
    flat = x.new_zeros(x.numel() + 1)
    flat[1:] = x.reshape(-1)
    yield flat[1:].view(x.shape)  # not aligned to 16 bytes


def test_any_layout_gives_the_same_bits(device):
    input, source = numbers((50, 8), torch.float32).to(device), numbers((900, 8), torch.float32, 5).to(device)
    index = ids(900, 50, skew=3).to(device)
    expected = rt.index_add(input, 0, index, source)
    for a, b in itertools.product(layouts(input), layouts(source)):
        for i in (index, index.int(), torch.stack([index, index], 1)[:, 1]):
            assert torch.equal(rt.index_add(a, 0, i, b), expected)
            assert torch.equal(rt.index_add(a.t(), 1, i, b.t()), expected.t())
    rows = index.view(-1, 1).expand(900, 8)
    for i in (rows, rows.contiguous()):
        assert torch.equal(rt.scatter_reduce(input, 0, i, source, "sum"), expected)
    one = source[:1].expand(900, 8)
    torch.testing.assert_close(
        rt.index_add(input, 0, index, one), input.index_add(0, index, one), rtol=1e-5, atol=1e-5
    )
    one = index[:1].expand(900)
    torch.testing.assert_close(
        rt.index_add(input, 0, one, source), input.index_add(0, one, source), rtol=1e-5, atol=1e-4
    )


def summed(rows):
    """The rule of docs/torch.md: pieces of 32, until one row is left."""
    while len(rows) > 1:
        pieces = []
        for i in range(0, len(rows), 32):
            piece = rows[i]
            for row in rows[i + 1 : i + 32]:
                piece = piece + row
            pieces.append(piece)
        rows = pieces
    return rows[0]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_order_of_a_sum_is_the_rule(device, dtype):
    for m, width in ((3000, 1), (3000, 4), (70, 3)):
        source, index = numbers((m, width), dtype), ids(m, 9, skew=6)
        input = numbers((9, width), dtype, 1)
        got = rt.index_add(input.to(device), 0, index.to(device), source.to(device)).cpu()
        wide = torch.float32 if source.element_size() == 2 else dtype
        for k in range(9):
            mine = source[index == k].to(wide)
            expected = input[k].to(wide) + (summed(list(mine)) if len(mine) else 0)
            assert torch.equal(got[k], expected.to(dtype))


def test_the_same_bits_each_time(device):
    source, index = numbers((20_000, 5), torch.float32).to(device), ids(20_000, 300, skew=8).to(device)
    input = numbers((300, 5), torch.float32, 1).to(device)
    flat = index.view(-1, 1).expand(-1, 5).contiguous()
    calls = (
        lambda: rt.index_add(input, 0, index, source),
        lambda: rt.scatter_reduce(input, 0, flat, source, "sum"),
        lambda: rt.scatter(source, index, reduce="mean", dim_size=300),
    )
    for call in calls:
        first = call()
        assert all(torch.equal(call(), first) for _ in range(20))
        try:
            for n in (1, 2):
                roost.set_threads(n)
                assert torch.equal(call(), first)
        finally:
            roost.set_threads(0)


def test_a_row_depends_on_its_own_id_alone(device):
    source, index = numbers((5000, 4), torch.float32).to(device), ids(5000, 20, skew=3).to(device)
    all_rows = rt.index_add(source.new_zeros(20, 4), 0, index, source)
    for k in (0, 3, 19):
        mine = index == k
        alone = rt.index_add(source.new_zeros(20, 4), 0, index[mine], source[mine])
        assert torch.equal(alone[k], all_rows[k])


def test_alpha_and_bools(device):
    input, source, index = (
        torch.ones(3, device=device),
        torch.ones(4, device=device),
        torch.tensor([0, 2, 0, 0]),
    )
    index = index.to(device)
    assert rt.index_add(input, 0, index, source, alpha=-0.5).tolist() == [-0.5, 1, 0.5]
    assert rt.index_add(input.long(), 0, index, source.long(), alpha=2**60).tolist() == [
        3 * 2**60 + 1,
        1,
        2**60 + 1,
    ]
    got = rt.index_add(input.bool() & False, 0, index, source.bool())
    assert got.dtype == torch.bool and got.tolist() == [True, False, True]
    got = rt.index_add(input.long(), 0, index, source.long(), alpha=2.0)
    assert got.dtype == torch.int64 and got.tolist() == [7, 1, 3]
    for given in (input.long(), input.to(torch.int8), input.bool()):  # torch takes 2.5 for 2
        for alpha in (2.5, math.inf, math.nan, 1j):
            with pytest.raises(RuntimeError, match="alpha="):
                rt.index_add(given, 0, index, source.to(given.dtype), alpha=alpha)
    with pytest.raises(RuntimeError, match="alpha=1j for numbers of type torch.float32"):
        rt.index_add(input, 0, index, source, alpha=1j)
    big = torch.tensor([2**62, 2**62, 3], device=device)
    assert rt.index_add(big[:1], 0, index[:1].expand(3), big).item() == 2**62 * 3 + 3 - 2**64


def test_integers_are_exact_and_wrap(device):
    for dtype in INTEGERS:
        limits = torch.iinfo(dtype)
        source = torch.tensor([limits.max, limits.max, limits.min, 7], dtype=dtype, device=device)
        index = torch.zeros(4, dtype=torch.int64, device=device)
        zero = torch.zeros(1, dtype=dtype, device=device)
        for how in ("sum", "prod", "amax", "amin"):
            expected = zero.scatter_reduce(0, index, source, how, include_self=False)
            assert torch.equal(rt.index_reduce(zero, 0, index, source, how, include_self=False), expected)


def test_ids_out_of_range(device):
    input, source = torch.zeros(3, 2, device=device), torch.ones(5, 2, device=device)
    for wrong, value in ((3, 3), (-1, -1), (2**40, 2**40)):
        index = torch.tensor([0, 1, wrong, 2, wrong], device=device)
        if device == "cpu":
            with pytest.raises(IndexError, match=f"index {value} at position 2, for 3 rows"):
                rt.index_add(input, 0, index, source)
            with pytest.raises(IndexError, match=rf"index {value} at \[2, 1\], for 3 rows along dimension 0"):
                wide = torch.stack([index.clamp(0, 2), index], 1)
                rt.scatter_reduce(input, 0, wide, source, "sum")
        else:
            got = rt.index_add(input, 0, index, source)
            assert got.tolist() == [[1, 1]] * 3
            with pytest.raises(IndexError, match="out of range, at position (2|4) "):
                rt.check(device)
            rt.check()
            rt.index_add(input, 0, index, source)
            torch.cuda.synchronize()
            with pytest.raises(IndexError, match="an earlier call"):
                rt.index_add(input, 0, index.clamp(0, 2), source)
            assert rt.index_add(input, 0, index.clamp(0, 2), source).sum() == 10
    empty = torch.zeros(0, 2, device=device)
    with pytest.raises(IndexError):
        rt.index_add(empty, 0, torch.zeros(5, dtype=torch.int64, device=device), source)


def test_errors_are_torchs(device):
    x, i = torch.zeros(3, 2, device=device), torch.zeros(4, dtype=torch.int64, device=device)
    wrong = (
        (x, 0, i, x),
        (x, 5, i, x),
        (x, 0, i.view(2, 2), x),
        (x, 0, i, torch.zeros(4, 3, device=device)),
        (x, 0, i.float(), torch.zeros(4, 2, device=device)),
        (x, 0, i, torch.zeros(4, 2, device=device, dtype=torch.float64)),
        (x, 0, i, torch.zeros(4, device=device)),
    )
    for given in wrong:
        with pytest.raises((IndexError, RuntimeError)) as theirs:
            torch.index_add(*given)
        with pytest.raises(theirs.type):
            rt.index_add(*given)
    for given in (
        (x, 0, i, x, "sum"),
        (x, 0, torch.zeros(4, 2, dtype=torch.int64, device=device), x, "sum"),
        (x, 1, torch.zeros(4, 1, dtype=torch.int64, device=device), torch.zeros(4, 2, device=device), "sum"),
        (x, 0, torch.zeros(1, 1, device=device), x, "sum"),
        (x, 0, torch.zeros(1, 1, dtype=torch.int64, device=device), x.double(), "sum"),
    ):
        with pytest.raises(RuntimeError):
            torch.scatter_reduce(*given)
        with pytest.raises(RuntimeError):
            rt.scatter_reduce(*given)
    with pytest.raises(ValueError, match="reduce='max'; give one of 'sum', 'mean'"):
        rt.scatter_reduce(x, 0, i.view(4, 1)[:1], x, "max")
    with pytest.raises(TypeError, match="complex64"):
        rt.index_add(x.to(torch.complex64), 0, i, torch.zeros(4, 2, device=device, dtype=torch.complex64))


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_gradients(device, how, include_self):
    for zeros in (False, True):
        input, source = (numbers((n, 2), torch.float64, n).to(device) for n in (4, 9))
        if zeros and how == "prod":
            source[1:4] = input[0, 0] = 0
        input.requires_grad_(), source.requires_grad_()
        index = torch.tensor([0, 0, 2, 1, 0, 2, 2, 2, 0], device=device)
        wide = torch.stack([index, index.flip(0)], 1)
        for call in (
            lambda a, b: rt.index_reduce(a, 0, index, b, how, include_self=include_self),
            lambda a, b: rt.scatter_reduce(a, 0, wide, b, how, include_self=include_self),
            lambda a, b: rt.scatter_reduce(a, 0, wide[:7], b, how, include_self=include_self),
        ):
            assert torch.autograd.gradcheck(call, (input, source))
            if how in ("sum", "mean"):
                # The gradients of torch's own index_select and gather add in any order.
                assert torch.autograd.gradgradcheck(call, (input, source), nondet_tol=1e-12)


def test_gradients_of_others(device):
    source = numbers((9, 3), torch.float64).to(device).requires_grad_()
    index = torch.tensor([0, 0, 2, 1, 0, 2, 2, 2, 0], device=device)
    zero = torch.zeros(3, 3, dtype=torch.float64, device=device)
    assert torch.autograd.gradcheck(lambda b: rt.index_add(zero, 0, index, b, alpha=-1.5), source)
    assert torch.autograd.gradcheck(lambda b: rt.index_add(zero.t(), 1, index.int(), b.t()), source)
    for how in ("sum", "mean", "mul", "max"):
        assert torch.autograd.gradcheck(lambda b: rt.scatter(b, index, dim_size=4, reduce=how), source)
    assert torch.autograd.gradcheck(lambda b: rt.scatter_max(b, index, 0)[0], source)
    for how in ("sum", "prod", "max"):
        assert torch.autograd.gradcheck(lambda b: rt.segment_reduce(b, how, ids=index, segments=3), source)
    for dtype in (torch.bfloat16, torch.float16):
        half = torch.randn(1000, 4, device=device).to(dtype).requires_grad_()
        one = torch.zeros(1000, dtype=torch.int64, device=device)
        rt.scatter(half, one, reduce="mean", dim_size=1).sum().backward()
        assert half.grad.dtype == dtype
        torch.testing.assert_close(half.grad, torch.full_like(half, 1e-3))


def test_compiled(device):
    index = ids(500, 20, skew=2).to(device)

    def model(x, source):
        sums = rt.index_add(x, 0, index, source * 2, alpha=0.5)
        most = rt.scatter_reduce(sums, 0, index.view(-1, 1).expand_as(source), source, "amax")
        means = rt.scatter(source, index, dim_size=20, reduce="mean")
        return (most * 3 + rt.segment_reduce(source, "sum", ids=index, segments=20) - means).relu()

    compiled = torch.compile(model, fullgraph=True)
    for seed in range(2):
        x = numbers((20, 6), torch.float32, seed).to(device).requires_grad_()
        source = numbers((500, 6), torch.float32, seed + 5).to(device).requires_grad_()
        results = []
        for run in (model, compiled):
            x.grad = source.grad = None
            result = run(x, source)
            result.square().sum().backward()
            results.append((result, x.grad, source.grad))
        for mine, other in zip(*results, strict=True):
            torch.testing.assert_close(mine, other)
    for op, given in (
        (torch.ops.roost.index_reduce, (x, 0, index, source, "sum", True, 1)),
        (torch.ops.roost.scatter_reduce, (x, 0, index.view(-1, 1).expand(500, 6), source, "mean", False)),
    ):
        torch.library.opcheck(op, given)


def test_scatter_as_in_pyg(device):
    src, index = numbers((60, 5), torch.float32).to(device), ids(60, 9, skew=2).to(device)
    for dim, how in itertools.product((0, 1), ("sum", "add", "mean", "mul", "min", "max")):
        x = src if dim == 0 else src.t()
        got = rt.scatter(x, index, dim, 12, how)
        expected = torch.ones(12, 5) if how == "mul" else torch.zeros(12, 5)
        for k in index.unique().tolist():
            mine = src[index == k]
            of = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}.get(how, how)
            expected[k] = getattr(mine, of)(0)
        torch.testing.assert_close((got if dim == 0 else got.t()).cpu(), expected)
    assert rt.scatter(src, index).shape == (int(index.max()) + 1, 5)
    assert rt.scatter(src[:0], index[:0]).shape == (0, 5)
    wide = torch.randint(0, 7, (60, 5), device=device)
    expected = torch.zeros(7, 5, device=device).scatter_add(0, wide, src)
    torch.testing.assert_close(rt.scatter(src, wide, 0, 7), expected)
    with pytest.raises(ValueError, match="reduce='any'"):
        rt.scatter(src, index, reduce="any")


def test_the_functions_of_torch_scatter(device):
    src, index = numbers((4, 30), torch.float32).to(device).round(decimals=1), ids(30, 6, skew=2).to(device)
    index[index == 3] = 4
    for name, how in (("scatter_sum", "sum"), ("scatter_mul", "prod"), ("scatter_mean", "mean")):
        got = getattr(rt, name)(src, index, dim_size=7)
        expected = src.new_full((4, 7), how == "prod").scatter_reduce(
            1, index.expand(4, 30), src, how, include_self=how == "prod"
        )
        torch.testing.assert_close(got, expected)
    for name, how in (("scatter_max", "argmax"), ("scatter_min", "argmin")):
        values, places = getattr(rt, name)(src, index, dim_size=7)
        for k, row in itertools.product(range(7), range(4)):
            mine = (index == k).nonzero()[:, 0]
            if len(mine) == 0:
                assert values[row, k] == 0 and places[row, k] == 30
                continue
            best = (
                mine[int(np.argmax(s) if how == "argmax" else np.argmin(s))]
                if len(s := src[row, mine].cpu().numpy())
                else None
            )
            assert places[row, k] == best and values[row, k] == src[row, best]
    out = torch.ones(4, 7, device=device)
    expected = out.clone().index_add(1, index, src)
    assert rt.scatter_sum(src, index, out=out) is out
    torch.testing.assert_close(out, expected)
    out = torch.ones(4, 7, device=device)
    counts = torch.bincount(index.cpu(), minlength=7).clamp_min(1).to(device)
    torch.testing.assert_close(rt.scatter_mean(src, index, out=out), expected / counts)


def test_segments_as_in_torch(device):
    lengths = torch.tensor([3, 0, 40, 1, 6])
    data = numbers((50, 3), torch.float32)
    sorted_ids = torch.repeat_interleave(torch.arange(5), lengths)
    order = torch.randperm(50)
    for how in ("sum", "mean", "max", "min", "prod"):
        expected = torch.segment_reduce(data, how, lengths=lengths)
        for by in (torch.arange(50), order):
            got = rt.segment_reduce(data[by].to(device), how, ids=sorted_ids[by].to(device), segments=5)
            torch.testing.assert_close(got.cpu(), expected, equal_nan=True)
    with pytest.raises(TypeError, match="int64"):
        rt.segment_reduce(data.long(), "sum", ids=sorted_ids, segments=5)


def test_nan_is_an_extreme(device):
    source = torch.tensor([1.0, math.nan, 3.0, 2.0], device=device)
    index, zero = torch.tensor([0, 0, 0, 1], device=device), torch.zeros(2, device=device)
    for how in ("amax", "amin"):
        got = rt.index_reduce(zero, 0, index, source, how, include_self=False)
        assert math.isnan(got[0]) and got[1] == 2


def distinct(x, by_key):
    """Distinct numbers, where each occurs first, the number of each element, and counts."""
    keys, index, inverse, counts = np.unique(
        x.cpu().numpy(), return_index=True, return_inverse=True, return_counts=True
    )
    if by_key:
        return keys, index, inverse, counts
    order = np.argsort(index)
    return keys[order], index[order], np.argsort(order)[inverse], counts[order]


@pytest.mark.parametrize("by_key", [False, True])
def test_unique_of_a_size(device, by_key):
    for n, different, dtype in (
        (0, 1, torch.int64),
        (1, 1, torch.int64),
        (2000, 30, torch.int32),
        (2000, 10**9, torch.int64),
        (500, 100, torch.int8),
        (500, 2, torch.bool),
    ):
        x = torch.randint(0, different, (n,)).to(dtype).to(device)
        if dtype is torch.int64 and n > 1:
            x[:3] = torch.tensor([-(2**63), 2**63 - 1, -1])
        keys, index, inverse, counts = distinct(x, by_key)
        for size in (n + 5, len(keys)):
            got = rt.unique(x, size=size, sorted=by_key, fill_value=1, return_index=True)
            assert [len(part) for part in got[:4]] == [size, size, n, size] and got[4].shape == ()
            assert got[0].dtype == dtype and got[4].item() == len(keys)
            for mine, theirs, rest in zip(got, (keys, index, None, counts), (1, n, 0, 0)):
                if theirs is not None:
                    assert np.array_equal(mine[: len(keys)].cpu().numpy(), theirs)
                    assert (mine[len(keys) :] == rest).all()
            assert np.array_equal(got[2].cpu().numpy(), inverse)
            only = rt.unique(x, size=size, sorted=by_key, return_inverse=False, return_counts=False)
            assert len(only) == 2 and torch.equal(only[0][: len(keys)], got[0][: len(keys)])
        if len(keys) < 2:
            continue
        size = len(keys) - 1
        got = rt.unique(x, size=size, sorted=by_key, strict=False)
        assert np.array_equal(got[0].cpu().numpy(), keys[:size]) and got[3].item() == len(keys)
        assert np.array_equal(got[1].cpu().numpy(), inverse)
        if device == "cpu":
            with pytest.raises(ValueError, match=f"more than {size} distinct ids"):
                rt.unique(x, size=size, sorted=by_key)
        else:
            rt.unique(x, size=size, sorted=by_key)
            with pytest.raises(IndexError, match="more distinct ids than its size"):
                rt.check(device)


def test_unique_without_a_size_is_what_it_was(device):
    x = ids(1000, 50).to(device)
    keys, inverse, counts = rt.unique(x, sorted=True)
    expected = torch.unique(x, return_inverse=True, return_counts=True)
    assert all(map(torch.equal, (keys, inverse, counts), expected))
    assert torch.equal(rt.unique(x, sorted=True, return_inverse=False, return_counts=False), keys)
    for dtype, beyond in ((torch.int8, 128), (torch.uint8, -1), (torch.int64, 2**63), (torch.bool, 2)):
        narrow = (x % 2).to(dtype)
        for fill in (beyond, -(2**63) - 1):
            with pytest.raises(ValueError, match=f"fill_value={fill}; give"):
                rt.unique(narrow, 3, fill_value=fill)
            with pytest.raises(ValueError, match=f"fill_value={fill}; give"):
                rt.relabel(narrow, size=3, fill_value=fill)
        last = 1 if dtype is torch.bool else torch.iinfo(dtype).max
        assert rt.unique(narrow, 3, fill_value=last)[0][2] == last
    for given, error in (
        ((x.float(), 3), TypeError),
        ((x.view(2, 500), 3), ValueError),
        ((x, -1), ValueError),
        ((x, 2**31), ValueError),
    ):
        with pytest.raises(error):
            rt.unique(*given)


def test_relabel(device):
    seeds = torch.randperm(1000)[:64].to(device) * 10**12
    first, second = (torch.randint(0, 1000, (n, 8), device=device) * 10**12 for n in (64, 512))
    everything = torch.cat([seeds, first.reshape(-1), second.reshape(-1)])
    keys = distinct(everything, False)[0]
    nodes, numbers = rt.relabel(seeds, first, second)
    assert np.array_equal(nodes.cpu().numpy(), keys) and torch.equal(numbers[0].cpu(), torch.arange(64))
    for mine, given in zip(numbers, (seeds, first, second)):
        assert mine.shape == given.shape and torch.equal(nodes[mine], given)
    padded, others, n = rt.relabel(seeds, first, second, size=2000, fill_value=-1)
    assert n == len(keys) and torch.equal(padded[:n], nodes) and (padded[n:] == -1).all()
    assert all(map(torch.equal, numbers, others))
    assert rt.relabel(seeds[:0])[0].shape == (0,)
    with pytest.raises(TypeError, match="of different types"):
        rt.relabel(seeds, first.int())


def test_jagged_unique(device):
    lengths = torch.tensor([0, 5, 300, 0, 1, 60, 0])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    x = torch.randint(-20, 20, (int(offsets[-1]),)) * 10**15
    for dtype in (torch.int64, torch.int32):
        values, starts, inverse = rt.jagged_unique(x.to(device), offsets.to(dtype).to(device))
        assert torch.equal(values[inverse].cpu(), x) and len(values) == len(x)
        for s in range(len(lengths)):
            mine = values[starts[s] : starts[s + 1]].cpu()
            assert torch.equal(mine, x[offsets[s] : offsets[s + 1]].unique())
            places = inverse[offsets[s] : offsets[s + 1]]
            assert ((places >= starts[s]) & (places < starts[s + 1])).all()
        assert (values[starts[-1] :] == 0).all()
    empty = rt.jagged_unique(x[:0].to(device), offsets[:1].to(device))
    assert [len(part) for part in empty] == [0, 1, 0]
    for wrong in ([0, 5], [0, 400, len(x)], [1, len(x)]):
        if device == "cpu":
            with pytest.raises(ValueError, match="offsets must begin with 0"):
                rt.jagged_unique(x, torch.tensor(wrong))
        else:
            with pytest.raises(ValueError, match="had offsets that do not begin with 0"):
                rt.jagged_unique(x.to(device), torch.tensor(wrong, device=device))
                rt.check()
            rt.check()


def test_coalesce_is_that_of_sparse_tensors(device):
    for size, m, tail in (((40,), 300, ()), ((7, 9), 500, (3,)), ((5, 1, 2**40), 60, ()), ((4, 4), 0, (2,))):
        at = torch.stack([torch.randint(0, min(n, 50), (m,)) * (n // 50 if n > 50 else 1) for n in size])
        for dtype in (torch.float64, torch.int64, torch.float32):
            values = numbers((m, *tail), dtype, m)
            expected = torch.sparse_coo_tensor(at, values, (*size, *tail)).coalesce()
            indices, sums = rt.coalesce(at.to(device), values.to(device), size)
            assert torch.equal(indices.cpu(), expected.indices()) and sums.dtype == dtype
            torch.testing.assert_close(sums.cpu(), expected.values())
    values = numbers((500, 3), torch.float64).to(device).requires_grad_()
    at = torch.stack([ids(500, 5), ids(500, 4, 1)]).to(device)
    for how in ("sum", "mean"):
        assert torch.autograd.gradcheck(lambda v, how=how: rt.coalesce(at, v, (5, 4), how)[1], values)
    means = rt.coalesce(at, values, (5, 4), "mean")[1]
    flat = at[0] * 4 + at[1]
    torch.testing.assert_close(means, rt.scatter(values, flat, reduce="mean")[flat.unique()])
    at[1, 77] = 4
    with pytest.raises(IndexError, match=r"index 4 at \[1, 77\], for a size of 4"):
        rt.coalesce(at, values, (5, 4))
    for given, error in (
        ((at.int(), values, (5, 5)), TypeError),
        ((at, values, (5,)), ValueError),
        ((at, values[:9], (5, 5)), ValueError),
        ((at, values, (2**40, 2**40)), ValueError),
        ((at, values, (5, 5), "max"), ValueError),
    ):
        with pytest.raises(error):
            rt.coalesce(*given)


def test_groups_and_counts(device):
    for m, n in ((0, 3), (1, 1), (3000, 70), (500, 9000)):
        x = ids(m, n, m, 3).to(device)
        for given in (x, x.int()):
            offsets, order = rt.to_csr(given, n)
            assert torch.equal(order, torch.argsort(x, stable=True))
            assert torch.equal(offsets.diff(), torch.bincount(x.cpu(), minlength=n).to(device))
        assert torch.equal(rt.bincount(x).cpu(), torch.bincount(x.cpu()))
        assert torch.equal(rt.bincount(x, minlength=n + 3).cpu(), torch.bincount(x.cpu(), minlength=n + 3))
        weights = numbers((m,), torch.float64, 1)
        expected = torch.bincount(x.cpu(), weights, minlength=n).double()  # of no ids torch's are int64
        torch.testing.assert_close(rt.bincount(x, weights.to(device), size=n).cpu(), expected)
        spread = x * 10**15 - 3
        keys, order, offsets = rt.group_ids(spread)
        assert torch.equal(keys, spread.unique()) and torch.equal(order, torch.argsort(x, stable=True))
        assert torch.equal(spread[order], torch.repeat_interleave(keys, offsets.diff()))
    if device == "cpu":
        with pytest.raises(IndexError, match="id 5 at position 1, for 5 rows"):
            rt.to_csr(torch.tensor([0, 5]), 5)
        with pytest.raises(IndexError, match="id -1 at position 0"):
            rt.bincount(torch.tensor([-1, 5]), size=9)


def test_positions_of_ids(device):
    keys = torch.randint(-(2**60), 2**60, (2000,), device=device)
    keys[1500:] = keys[:500]
    asked = torch.cat([keys.flip(0), keys[:50] + 1]).view(41, 50)
    got = rt.index_of(keys, asked, missing=-7)
    first = {}
    for i, key in enumerate(keys.tolist()):
        first.setdefault(key, i)
    assert got.reshape(-1).tolist() == [first.get(key, -7) for key in asked.reshape(-1).tolist()]
    assert rt.index_of(keys[:0], asked).eq(-1).all() and rt.index_of(keys, asked[:0]).shape == (0, 50)
    for missing in (2**63 - 1, -(2**63)):
        assert rt.index_of(keys[:0], asked, missing=missing).eq(missing).all()
    for missing in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match=f"missing={missing}; give"):
            rt.index_of(keys, asked, missing=missing)


def test_ids_compiled(device):
    x, rows = ids(300, 40, skew=3).to(device), ids(300, 20, 1).to(device)

    def model(x, rows):
        keys, inverse, counts, n = rt.unique(x, size=64)
        nodes, numbers, m = rt.relabel(x, rows, size=64)
        offsets, order = rt.to_csr(rows, 20)
        values, starts, _ = rt.jagged_unique(x, offsets)
        return keys + 1, inverse, counts * n, nodes, numbers, m, order, values, starts, rt.index_of(x, rows)

    expected, got = model(x, rows), torch.compile(model, fullgraph=True)(x, rows)
    torch.testing.assert_close(got, expected)
    for op, given in (
        (torch.ops.roost.unique_ids, (x, 50, 0, True, True, True, True)),
        (torch.ops.roost.unique_ids, (x, 50, 0, False, False, False, True)),
        (torch.ops.roost.group_ids, (rows, 20)),
        (torch.ops.roost.find_ids, (x, rows, -1)),
        (torch.ops.roost.group_keys, (x,)),
        (torch.ops.roost.coalesce, (x.view(1, -1), x.float(), [40], "sum", True)),
    ):
        torch.library.opcheck(op, given)

    def sparse(x, values):
        indices, sums = rt.coalesce(x.view(1, -1), values, (40,))
        return indices, sums * 2

    values = numbers((300,), torch.float32).to(device)
    torch.testing.assert_close(
        torch.compile(sparse, fullgraph=True, dynamic=True)(x, values), sparse(x, values)
    )


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
def test_graphs_replay_with_other_data():
    def step(x, source):
        keys, inverse, counts, n = rt.unique(x, size=512)
        sums = rt.index_add(source.new_zeros(512, 4), 0, inverse, source)
        offsets, order = rt.to_csr(inverse, 512)
        return (
            keys,
            inverse,
            counts,
            n,
            sums,
            offsets,
            order,
            rt.index_of(keys, x),
            rt.unique(x, 512, sorted=True)[0],
        )

    given = ids(4096, 300, skew=4).cuda() * 10**12, numbers((4096, 4), torch.float32).cuda()
    step(*given)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(*given)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        results = step(*given)
    for seed in range(1, 4):
        given[0].copy_(ids(4096, 100 * seed, seed, 3).cuda() * 10**12)
        given[1].copy_(numbers((4096, 4), torch.float32, seed).cuda())
        graph.replay()
        assert all(map(torch.equal, results, step(*given)))


def moe_oracle(x, experts_of, experts, capacity):
    """For each expert, the (token, choice) that it gets."""
    taken = [[] for _ in range(experts)]
    for token, row in enumerate(experts_of.tolist()):
        for j, e in enumerate(row):
            if capacity is None or len(taken[e]) < capacity:
                taken[e].append((token, j))
    return taken


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("capacity", [None, 1, 20, 500])
def test_moe(device, dtype, capacity):
    for n, k, experts, width in ((150, 2, 7, 16), (40, 1, 3, 5), (10, 3, 1, 8), (0, 2, 3, 4)):
        x = numbers((n, width), dtype, n)
        of = torch.stack([ids(n, experts, j, 2) for j in range(k)], 1)
        taken = moe_oracle(x, of, experts, capacity)
        given = of.to(device) if k > 1 else of[:, 0].int().to(device)
        permuted, routes = rt.moe_permute(x.to(device), given, experts, capacity=capacity)
        counts = torch.bincount(of.reshape(-1), minlength=experts)
        assert torch.equal(routes.offsets.diff().cpu(), counts) and permuted.dtype == dtype
        weights = torch.rand(n, k, dtype=torch.float64).to(dtype)
        expected, weighted = torch.zeros(n, width).double(), torch.zeros(n, width).double()
        rows = permuted.reshape(-1, width).cpu()
        for e, mine in enumerate(taken):
            first = int(routes.offsets[e]) if capacity is None else e * capacity
            for place, (token, j) in enumerate(mine):
                assert torch.equal(rows[first + place], x[token]) and routes.rows[token, j] == first + place
                expected[token] += x[token].double()
                weighted[token] += (x[token] * weights[token, j]).double()
            if capacity is not None:
                assert (rows[first + len(mine) : first + capacity] == 0).all()
        assert int((routes.rows >= 0).sum()) == sum(map(len, taken))
        back = rt.moe_unpermute(permuted, routes)
        tolerance = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 1e-6}
        torch.testing.assert_close(back.cpu().double(), expected, **tolerance)
        back = rt.moe_unpermute(permuted, routes, weights.to(device))
        torch.testing.assert_close(back.cpu().double(), weighted, **tolerance)
    for given, error in (
        ((x, of.float(), 3), TypeError),
        ((x, of[:, :1].expand(0, 0, 0), 3), ValueError),
        ((x[0] if len(x) else x.view(-1), of, 3), ValueError),
        ((x, of, 0), ValueError),
    ):
        with pytest.raises(error):
            rt.moe_permute(*given)
    with pytest.raises(ValueError, match="rows for routes of"):
        rt.moe_unpermute(torch.zeros(77, 4, device=device), routes)
    if device == "cpu":
        with pytest.raises(IndexError, match="id 3 at position 1, for 3 rows"):
            rt.moe_permute(torch.zeros(2, 4), torch.tensor([0, 3]), 3)


def test_rows_of_experts_have_64_bits(device):
    """Of many experts with room for many rows, without the memory that the rows take."""
    rows_with_room = importlib.import_module("roost.torch.experts")._rows_with_room
    ids = torch.tensor([7, 0, 7, 6], dtype=torch.int32, device=device)
    order = torch.argsort(ids, stable=True)
    places, offsets = torch.argsort(order), torch.searchsorted(ids[order].long(), torch.arange(9).to(device))
    got = rows_with_room(ids, places, offsets, 2**29)
    assert got.tolist() == [7 * 2**29, 0, 7 * 2**29 + 1, 6 * 2**29]
    assert rows_with_room(ids, places, offsets, 1).tolist() == [7, 0, -1, 6]


@pytest.mark.parametrize("capacity", [None, 3])
def test_moe_learns_and_compiles(device, capacity):
    of = torch.tensor([[0, 2], [1, 2], [0, 0], [2, 1], [2, 0]], device=device)
    x = numbers((5, 3), torch.float64).to(device).requires_grad_()
    weights = numbers((5, 2), torch.float64, 1).to(device).requires_grad_()

    def layer(x, weights):
        permuted, routes = rt.moe_permute(x, of, 3, capacity=capacity)
        return rt.moe_unpermute(permuted.square(), routes, weights)

    assert torch.autograd.gradcheck(layer, (x, weights))
    assert torch.autograd.gradgradcheck(layer, (x, weights), nondet_tol=1e-12)
    compiled = torch.compile(layer, fullgraph=True)(x, weights)
    torch.testing.assert_close(compiled, layer(x, weights))
    routes = rt.moe_permute(x, of, 3, capacity=capacity)[1]
    torch.library.opcheck(torch.ops.roost.moe_permute, (x, routes.source, routes.rows))
    y = x.detach()[routes.source.clamp_min(0)].requires_grad_()
    torch.library.opcheck(torch.ops.roost.moe_unpermute, (y, routes.source, routes.rows))


def samples(name, device, dtype):
    """What torch's own tests call an operator with."""
    internal = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    for op in internal.op_db:
        if f"{op.name}.{op.variant_test_name}".rstrip(".") == name and dtype in op.supported_dtypes(device):
            yield from ((op, sample) for sample in op.sample_inputs(device, dtype, requires_grad=False))


PATCHED = (
    *("index_add", "index_reduce.prod", "index_reduce.mean", "index_reduce.amax", "index_reduce.amin"),
    *("scatter_add", "scatter_reduce.sum", "scatter_reduce.prod", "scatter_reduce.mean"),
    *("scatter_reduce.amax", "scatter_reduce.amin", "index_put"),
)


@pytest.mark.parametrize("name", PATCHED)
def test_torchs_samples_under_patch(device, name):
    tried = 0
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        for op, sample in samples(name, device, dtype):
            given = [sample.input, *sample.args]
            try:
                expected = op(*given, **sample.kwargs)
            except RuntimeError:  # of types that torch has on some devices only
                continue
            if name == "index_put" and not (sample.args[2:] or sample.kwargs.get("accumulate")):
                continue
            with rt.patch():
                got = op(*given, **sample.kwargs)
            loose = {"rtol": 0.03, "atol": 0.03} if dtype is torch.bfloat16 else {}
            torch.testing.assert_close(got, expected, equal_nan=True, **loose)
            if op.inplace_variant is not None and dtype is not torch.bool:
                mine = sample.input.clone()
                with rt.patch():
                    assert op.inplace_variant(mine, *sample.args, **sample.kwargs) is mine
                torch.testing.assert_close(mine, expected, equal_nan=True, **loose)
            tried += 1
    assert tried > 10


def test_torchs_errors_under_patch(device):
    """Errors of torch's types, or IndexError for ids out of range, which torch's scatter has no type for."""
    infos = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    names = {name.partition(".")[0] for name in PATCHED}
    wrong = [
        (op, error)
        for op in infos.op_db
        if op.name in names and op.error_inputs_func is not None
        for error in op.error_inputs(device)
    ]
    assert len(wrong) >= 4
    for op, error in wrong:
        sample = error.sample_input
        with pytest.raises((error.error_type, IndexError)), rt.patch():
            op(sample.input, *sample.args, **sample.kwargs)
            rt.check()


def test_patch_is_used(device):
    """Sums whose last bits depend on the order: those of roost's rule."""
    source, index = numbers((3000, 4), torch.float32).to(device), ids(3000, 5, skew=3).to(device)
    zero = torch.zeros(5, 4, device=device)
    expected = rt.index_add(zero, 0, index, source)
    rows = index.view(-1, 1).expand_as(source)
    table = torch.zeros(5, 4, device=device, requires_grad=True)
    with rt.patch():
        results = [
            zero.index_add(0, index, source),
            zero.clone().index_add_(0, index, source),
            zero.t().index_add(1, index, source.t()).t(),
            zero.scatter_add(0, rows, source),
            zero.clone().scatter_add_(0, rows.contiguous(), source),
            zero.scatter_reduce(0, rows, source, "sum"),
            zero.index_put((index,), source, accumulate=True),
            zero.clone().index_put_((index - 5,), source, accumulate=True),
            torch.sparse_coo_tensor(index.view(1, -1), source, (5, 4)).coalesce().to_dense(),
            zero.index_put((index.view(-1, 1), torch.arange(4, device=device)), source, accumulate=True),
            zero.t().index_put((torch.arange(4, device=device).view(-1, 1), index), source.t(), True).t(),
        ]
        strided = torch.zeros(5, 8, device=device)[:, ::2]
        results.append(strided.index_add_(0, index, source))
        table.index_select(0, index).mul(source).sum().backward()
        results.append(table.grad)
        assert torch.equal(zero.index_add(0, index, source, alpha=2), 2 * expected)
        imaginary = torch.zeros(5, dtype=torch.complex64, device=device)
        assert imaginary.index_add(0, index, imaginary.new_ones(3000)).sum() == 3000  # torch's
        with pytest.raises(RuntimeError, match="same scalar type"):
            zero.index_add(0, index, source.double())
        if device == "cpu":
            for wrong in (5, -6):
                with pytest.raises(IndexError, match=rf"index \[{wrong}\] at position 0"):
                    zero.index_put((torch.tensor([wrong]),), source[:1], accumulate=True)
    assert all(torch.equal(result, expected) for result in results)
    mask = torch.tensor([True, False, True, True, False], device=device)
    cube, at = numbers((4, 5, 6), torch.float64).to(device), torch.tensor([5, 5, 0], device=device)
    puts = (
        ((None, mask), cube.new_ones(4, 3, 6)),
        ((at[:2] - 4, None, at[:2]), cube.new_ones(2, 5)),
        ((None, None, at), cube.new_ones(())),
        ((at[:2] - 3,), cube.new_ones(6)),
        ((at[2:], mask), cube.new_ones(3, 6)),
        ((torch.rand(4, 5, 6, device=device) < 0.5,), cube.new_ones(())),
    )
    theirs = [torch.ops.aten.index_put(cube, *put, True) for put in puts]
    with rt.patch():
        mine = [torch.ops.aten.index_put(cube, *put, True) for put in puts]
    torch.testing.assert_close(mine, theirs)


def test_pyg_with_another_import(device, monkeypatch):
    pyg = pytest.importorskip("torch_geometric")
    src, index = numbers((60, 5), torch.float64).to(device), ids(60, 9, skew=2).to(device)
    for dim, how in itertools.product((0, -1), ("sum", "add", "mean", "mul", "min", "max")):
        given = (src if dim == 0 else src.t()), index, dim, 12, how
        torch.testing.assert_close(rt.scatter(*given), pyg.utils.scatter(*given))
    edges = torch.stack([index, index.flip(0)])
    theirs = pyg.utils.coalesce(edges, src, num_nodes=9, reduce="sum")
    torch.testing.assert_close(rt.coalesce(edges, src, (9, 9)), theirs)
    aggregation = pytest.importorskip("torch_geometric.nn.aggr.base")
    torch.manual_seed(0)
    layers = [
        pyg.nn.SAGEConv(5, 4, aggr=aggr).double().to(device) for aggr in ("mean", "max", "min", "mul", "sum")
    ]
    layers += [pyg.nn.GINConv(torch.nn.Identity()).to(device), pyg.nn.GCNConv(5, 3).double().to(device)]

    def outputs():
        x = src[:9].clone().requires_grad_()
        all_outputs = [layer(x, edges) for layer in layers]
        return [*all_outputs, torch.autograd.grad(sum(y.sum() for y in all_outputs), x)[0]]

    expected, calls = outputs(), []
    for module in (aggregation, pytest.importorskip("torch_geometric.utils")):
        monkeypatch.setattr(module, "scatter", lambda *a, **n: calls.append(1) or rt.scatter(*a, **n))
    torch.testing.assert_close(outputs(), expected)
    assert len(calls) >= 5
    monkeypatch.undo()
    with rt.patch():
        torch.testing.assert_close(outputs(), expected)


def test_what_torch_traces(device):
    x, index = torch.zeros(3, 2, device=device), torch.tensor([0, 2, 2], device=device)
    source = numbers((3, 2), torch.float32).to(device)
    expected = rt.index_add(x, 0, index, source)
    traced = torch.jit.trace(lambda b: rt.index_add(x, 0, index, b), source)
    torch.testing.assert_close(traced(2 * source), 2 * expected)
    meta = rt.index_add(x.to("meta"), 0, index.to("meta"), source.to("meta"))
    assert meta.is_meta and meta.shape == x.shape

    class Model(torch.nn.Module):
        def forward(self, b):
            return rt.index_add(x, 0, index, b), rt.unique(index, size=3)[0]

    exported = torch.export.export(Model(), (source,)).module()
    assert torch.equal(exported(source)[0], expected) and torch.equal(
        exported(source)[1], rt.unique(index, 3)[0]
    )
    # Refused, not silently wrong:
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda b: rt.index_add(x, 0, index, b), (source,), (source,))
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda b: rt.coalesce(index.view(1, 3), b, (3,))[1], (source,), (source,))
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda b: rt.moe_permute(b, index, 3)[0], (source,), (source,))
    with pytest.raises((TypeError, RuntimeError)):
        torch.vmap(lambda b: rt.index_add(x, 0, index, b))(source.expand(4, 3, 2))
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda b: rt.index_add(x, 0, index, b).sum())(source)
