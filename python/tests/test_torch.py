"""What is torch's alone: its types, modules and operators. Skipped where torch is not installed."""

import copy
import doctest
import importlib.util
import io
import itertools

import numpy as np
import pytest
import roost
from conftest import LIBRARIES

if not importlib.util.find_spec("torch"):
    pytest.skip("needs torch", allow_module_level=True)
import roost.torch
import torch

DEVICES = [on.name for on in LIBRARIES if on.name.startswith("torch")]


@pytest.fixture(params=[name.partition("-")[2] or "cpu" for name in DEVICES])
def device(request):
    return request.param


def test_results_lie_beside_the_arguments(device):
    x = torch.arange(10, device=device)
    with torch.device("meta"):  # torch's default for new tensors
        found = [roost.isin(x, x[:3]), roost.Map(x, x).find(x), roost.Map(x, x.new_ones(10, 5)).find(x)]
        found += [roost.unique(x, sorted=True), roost.group_by(x).sum(x), roost.Index(x).get_indexer([3, 77])]
    assert all(f.device == x.device for f in found) and found[1].equal(x)


def test_tables_of_texts_refuse_tensors_in_one_line():
    table = roost.Map(np.array(["a", "b"], object), np.arange(2))
    assert len(table.find(torch.arange(0))) == 0
    with pytest.raises(TypeError, match="strings are never equal to torch.int64; convert one"):
        table.find(torch.arange(3))


def test_types_that_torch_hardly_has(device):
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        x = torch.tensor([3, 40000, 3, 0], device=device).to(dtype)
        values, counts = roost.unique(x, sorted=True, return_counts=True)
        assert values.dtype == dtype and values.tolist() == [0, 3, 40000] and counts.tolist() == [1, 2, 1]
        rows = torch.tensor([[3, 40000], [3, 7], [0, 9], [3, 7]], device=device).to(dtype)
        values, inverse = roost.unique(rows, sorted=True, return_inverse=True)
        assert values.dtype == dtype and values.tolist() == [[0, 9], [3, 7], [3, 40000]]
        assert inverse.tolist() == [2, 1, 0, 1]
    for x in (torch.eye(2, device=device).to_sparse(), torch.tensor([1j], device=device)):
        with pytest.raises(TypeError):
            roost.unique(x)
    with pytest.raises(ValueError, match="single value"):
        roost.Set(torch.tensor(5, device=device))
    assert roost.unique(torch.tensor(5, device=device)).tolist() == [5]


@pytest.mark.parametrize("numpy_has_it_too", [False, True])
def test_bfloat16(device, numpy_has_it_too):
    if numpy_has_it_too:
        pytest.importorskip("ml_dtypes")  # which jax imports
    x = torch.tensor([1.5, -0.0, 0.0, float("nan"), float("nan")], dtype=torch.bfloat16, device=device)
    with pytest.raises(TypeError, match="bfloat16"):
        roost.unique(x)
    keys = torch.arange(1000, device=device)
    for columns in (1, 3, 20):  # in the table, padded; beside it
        table = roost.Map(keys, torch.ones(1000, columns, dtype=torch.bfloat16, device=device))
        found = table.find(keys + 1, missing=0.5)
        assert found.dtype == torch.bfloat16
        assert found[-1].tolist() == [0.5] * columns and found[0].tolist() == [1.0] * columns


def reloaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_map_is_a_module(device):
    keys = torch.randperm(5000, device=device) * 13
    values = torch.rand(5000, 3, device=device)
    table = roost.torch.Map(keys, values)
    asked = torch.cat([keys[::7], keys[:100] + 1])
    expected = torch.cat([values[::7], torch.full((100, 3), -1.0, device=device)])
    assert torch.equal(table(asked, missing=-1), expected) and len(table) == 5000
    assert set(table.state_dict()) == {"keys", "values"} and not list(table.parameters())
    other = roost.torch.Map(torch.zeros(1, dtype=torch.int64, device=device), values[:1])
    other.load_state_dict(reloaded(table.state_dict()))
    for same in (other, copy.deepcopy(table), table.to(device), torch.nn.Sequential(table)[0]):
        assert torch.equal(same(asked, missing=-1), expected)
    assert table.double()(asked).dtype == torch.float64  # builds anew
    with pytest.raises(RuntimeError, match="size mismatch|Missing key"):
        other.load_state_dict({"keys": keys})
    with pytest.raises(ValueError, match="3 keys but 2 values"):
        roost.torch.Map(keys[:3], values[:2])


@pytest.mark.parametrize("sparse", [True, False])
def test_embedding_learns_like_torchs(device, sparse):
    torch.manual_seed(0)
    ours = roost.torch.Embedding(8, capacity=4, sparse=sparse, device=device)
    vocabulary = torch.randint(-(2**62), 2**62, (60,), device=device)
    ours.reserve(60)
    assert ours.insert(vocabulary) == 60 and ours.insert(vocabulary[:5]) == 0
    theirs = torch.nn.Embedding(60, 8, sparse=sparse, device=device)
    theirs.weight.data.copy_(ours.weight.data)
    optimizers = [torch.optim.Adagrad(m.parameters(), lr=0.1) for m in (ours, theirs)]
    for _ in range(5):
        rows = torch.randint(0, 60, (6, 7), device=device)
        assert torch.equal(ours.rows(vocabulary[rows]), rows)
        asked = vocabulary[rows], rows
        for module, asked, optimizer in zip((ours, theirs), asked, optimizers):
            optimizer.zero_grad()
            module(asked).pow(2).sum().backward()
            assert module.weight.grad.is_sparse == sparse
            optimizer.step()
    assert torch.allclose(ours.weight, theirs.weight)


def test_embedding_grows(device):
    torch.manual_seed(1)
    users = roost.torch.Embedding(4, capacity=2, device=device)
    weight, optimizer = users.weight, torch.optim.SparseAdam(users.parameters(), lr=0.01)
    users.follow(optimizer)
    seen = {}
    for step in range(20):
        keys = torch.randint(0, 40 * (step + 1), (50,), device=device) * 10**15
        for key in keys.tolist():
            seen.setdefault(key, len(seen))
        before = users(keys).detach()  # each key has its row from here on
        optimizer.zero_grad()
        loss = users(keys).sum()  # which stays until the next one is there, as losses do
        loss.backward()
        assert users.weight.grad.shape == users.weight.shape
        optimizer.step()
        assert bool((users(keys).detach() < before).all())
    assert users.weight is weight and len(users) == len(seen) <= len(weight)
    assert users.keys[: len(seen)].tolist() == list(seen)
    assert optimizer.state[weight]["exp_avg"].shape == weight.shape
    users(torch.tensor([1], device=device)).sum().backward()  # a gradient that stays while it grows
    users.reserve(10_000)
    users(torch.tensor([1], device=device)).sum().backward()
    assert users.weight.grad.to_dense()[len(users) - 1].tolist() == [2.0] * 4
    optimizer.step()

    users.eval()
    absent = torch.tensor([[3, 5]], device=device)
    assert users(absent).tolist() == [[[0.0] * 4] * 2] and users.rows(absent).tolist() == [[-1, -1]]
    other = roost.torch.Embedding(4, capacity=3, device=device)
    other.load_state_dict(reloaded(users.state_dict()))
    for same in (other.eval(), copy.deepcopy(users), users.to(device)):
        assert len(same) == len(users) and torch.equal(same(keys), users(keys))
        assert same.insert(absent) == 2 and len(same) == len(users) + (same is not users) * 2


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: roost.torch.Embedding(0), ValueError, "1 or more"),
        (lambda: roost.torch.Embedding(3, 0), ValueError, "1 or more"),
        (lambda: roost.torch.Embedding(3, key_dtype=torch.float32), TypeError, "integers"),
        (lambda: roost.torch.Embedding(3)(torch.tensor([1.5])), TypeError, "convert"),
        (lambda: roost.torch.Map(torch.tensor([1j]), torch.tensor([1])), TypeError, "complex"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operators_compile(device, backend):
    torch.compiler.reset()

    def compiled(function):
        return torch.compile(function, backend=backend, fullgraph=True)

    x, y = torch.arange(100, device=device) % 7, torch.tensor([3, 5], device=device)
    got = compiled(lambda x, y: roost.torch.isin(x.reshape(10, 10), y, invert=True) & (x[0] == 0))(x, y)
    assert torch.equal(got.reshape(-1), ~torch.isin(x, y))

    def doubled(x):
        keys, inverse, counts = roost.torch.unique(x, sorted=True)
        return (keys * 2)[inverse], counts.sum()

    got, total = compiled(doubled)(x)
    assert torch.equal(got, 2 * x) and int(total) == 100

    table = roost.torch.Map(torch.arange(50, device=device), torch.arange(50, device=device) + 2**60)
    got = compiled(lambda keys: table(keys, missing=2**61 + 1) + 1)(x * 10)
    assert torch.equal(got, torch.where(x * 10 < 50, x * 10 + 2**60 + 1, 2**61 + 2))

    users = roost.torch.Embedding(3, capacity=16, device=device)
    step = compiled(lambda keys: users(keys).pow(2).sum())
    step(x * 10**14).backward()
    assert len(users) == 7 and users.weight.grad.is_sparse
    assert torch.allclose(users.weight.grad.to_dense()[:7], 2 * users.weight[:7] * x.bincount()[:, None])
    with pytest.raises(RuntimeError, match="insert"):
        step(torch.arange(100, device=device))
    users.reserve(200)
    step(torch.arange(100, device=device)).backward()
    assert len(users) == 106  # 0 was there
    users.eval()
    asked = torch.tensor([0, 1000], device=device)
    assert torch.equal(compiled(users)(asked), users(asked))
    for name, arguments in [
        ("isin", (x, y, False)),
        ("unique", (x, True)),
        ("find", (x, table.values, table._number, 0)),
        ("rows", (x, users.weight, users._number, False)),
    ]:
        torch.library.opcheck(getattr(torch.ops.roost, name), arguments)


@pytest.mark.parametrize("how", ["conj", "neg", "both", "imag"])
def test_views_whose_memory_has_other_numbers(device, how):
    z = torch.complex(torch.arange(6.0), torch.arange(6.0) - 3).to(device)
    x = z.conj() if how == "conj" else torch._neg_view(z.conj() if how == "both" else z)
    x = z.conj().imag if how == "imag" else x
    keys, wanted, store = torch.arange(6, device=device), x.clone(), roost.Store("i8", x.dtype, like=z)
    store.insert(keys, x)
    groups = roost.group_by(keys)
    found = [groups.first(x), groups.last(x)]
    found = [f[torch.argsort(groups.keys)] for f in found] + [roost.MultiMap(keys, x).find(keys)[1]]
    found += [roost.Map(keys, x).find(keys), store.find(keys), roost.gather(x, keys)]
    assert all(torch.equal(f, wanted) for f in found)


def test_rows_and_gradients_of_such_views(device):
    x, ids = torch._neg_view(torch.arange(12.0, device=device).reshape(3, 4)), torch.arange(3, device=device)
    table = roost.torch.Table(4, 10, optimizer="sgd", lr=1.0, device=device)
    table.insert(ids, x)
    assert torch.equal(table.find(ids)[0], x)
    table(ids).backward(x)
    assert not table.find(ids)[0].any()


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_tensors_without_memory_are_refused(device):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.masked import masked_tensor

    x, freed, keys = (torch.arange(6, device=device) for _ in range(3))
    freed.untyped_storage().resize_(0)
    with FakeTensorMode():
        fake = torch.arange(6, device=device)
    tensors = [fake, freed, masked_tensor(x, x > 2), torch.nn.parameter.UninitializedParameter(device=device)]
    ways = [lambda call, given=given: call(given) for given in tensors]
    ways += [lambda call: torch.func.functionalize(call)(x), lambda call: torch.func.vmap(call)(x[:, None])]
    ways += [lambda call: torch.func.grad(call)(x.float())]
    calls = [roost.unique, roost.Set(keys).contains, roost.torch.Table(2, 10, device=device).find]
    calls += [lambda x: roost.Map(keys, x), lambda x: roost.gather(x, keys), lambda x: roost.gather(keys, x)]
    for way, call in itertools.product(ways[:-1], calls):
        with pytest.raises(
            TypeError, match="without memory of its own.*that it stands for$|of int64 or int32$"
        ):
            way(call)


@pytest.mark.parametrize("name", ["int1", "uint3", "uint7", "bits8", "float4_e2m1fn_x2"])
def test_types_that_torch_does_not_copy(device, name):
    if not hasattr(torch, name):
        pytest.skip("of newer torch")
    keys = torch.arange(3, device=device)
    x = torch.zeros(3, dtype=torch.uint8, device=device).view(getattr(torch, name))
    calls = [roost.unique, lambda x: roost.Map(keys, x), lambda x: roost.MultiMap(keys, x)]
    for call in (*calls, lambda x: roost.group_by(keys).first(x), lambda x: roost.gather(x, keys)):
        with pytest.raises(TypeError, match=name + ", which torch does not copy"):
            call(x)


def test_tensors_that_are_not_aligned():
    x = torch.frombuffer(bytearray(3) + bytes(range(160)), dtype=torch.complex128, offset=3)
    keys = torch.arange(10)
    assert roost.Map(keys, x).find(keys).numpy().tobytes() == bytes(range(160))
    with pytest.raises(ValueError, match="not aligned"):
        roost.Map(keys[::2], x[::2])


@pytest.mark.parametrize("change", [torch.nn.Module.half, lambda module: module.to(torch.float64)])
def test_a_table_keeps_its_type(device, change):
    table = roost.torch.Table(4, 10, device=device)
    for module in (table, torch.nn.Sequential(table)):
        with pytest.raises(TypeError, match="rows of torch.float32, which do not become torch.float"):
            change(module)
    assert table.float() is table.to(device, torch.float32) is table


def test_examples_in_docstrings():
    failed, tried = doctest.testmod(roost.torch)
    assert tried and not failed


def test_conversions_leave_keys_as_they_are(on):
    keys = torch.tensor([2**53, 2**53 + 1])
    for module in (roost.torch.Map(keys, torch.tensor([1.0, 2.0])), roost.torch.Embedding(2)):
        if isinstance(module, roost.torch.Embedding):
            module.insert(keys)
        for converted in (module.half(), module.type(torch.float32)):
            assert converted.keys[:2].tolist() == keys.tolist()
    narrow = roost.torch.Map(torch.tensor([1], dtype=torch.int32), torch.tensor([1], dtype=torch.int8))
    narrow.load_state_dict(roost.torch.Map(keys, torch.tensor([300, 4])).state_dict())
    assert narrow(keys).tolist() == [300, 4]
