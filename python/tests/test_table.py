"""roost.torch.Table against torch's own embeddings and optimizers, and against a model of which keys stay."""

import copy
import errno
import fcntl
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import roost.torch

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
SIZES = [0, 1, 31, 33, 300, 5000]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def ids_of(seed, n, most, device):
    generator = torch.Generator().manual_seed(seed)
    ids = (torch.rand(n, generator=generator) ** 3 * most).long()
    ids[::7] = -(2**62) + ids[::7] % 5
    return ids.to(device)


OPTIMIZERS = {
    "sgd": lambda w: torch.optim.SGD([w], lr=0.05, weight_decay=0.01),
    "adagrad": lambda w: torch.optim.Adagrad([w], lr=0.05, eps=1e-8, weight_decay=0.01),
    "adam": lambda w: torch.optim.Adam([w], lr=0.05, weight_decay=0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dim", [1, 6, 32])
def test_it_learns_as_torch_does(device, optimizer, dim):
    """One batch of all keys a step, so that torch's optimizer, which changes all rows, changes the same."""
    keys = torch.arange(50, device=device) * 10**15 - 3
    table = roost.torch.Table(dim, 1000, optimizer=optimizer, lr=0.05, weight_decay=0.01, device=device)
    before, found = table.find(keys)
    assert not found.any()
    dense = torch.nn.Parameter(before.double().clone())
    other = OPTIMIZERS[optimizer](dense)
    for step in range(20):
        n = [50, 51, 500, 6000][step % 4]
        number = torch.cat([torch.arange(50), torch.randint(50, (n - 50,))])[torch.randperm(n)].to(device)
        weights = torch.randn(n, dim, device=device)
        out = table(keys[number])
        assert out.shape == (n, dim)
        torch.testing.assert_close(out.double(), dense[number], atol=2e-4, rtol=1e-4)
        (out * weights).sum().backward()
        other.zero_grad()
        (dense[number] * weights.double()).sum().backward()
        other.step()
    assert len(table) == 50
    assert table.counts()["updates"] == 20


@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
@pytest.mark.parametrize("n", SIZES)
def test_bags_are_those_of_embedding_bag(device, mode, n):
    ids = ids_of(n, n, 400, device)
    cuts = torch.sort(torch.randint(0, n + 1, (9,))).values
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), cuts]).to(device)
    table = roost.torch.Table(5, 4000, optimizer="sgd", lr=1.0, device=device)
    distinct, inverse = torch.unique(ids, return_inverse=True)
    mine, theirs, kind = {}, {}, "mean" if mode == "mean" else "sum"
    if mode == "weighted":
        numbers = torch.randn(n, device=device)
        mine, theirs = ({"per_sample_weights": numbers.clone().requires_grad_()} for _ in range(2))
    bag = torch.nn.EmbeddingBag(max(len(distinct), 1), 5, mode=kind).to(device)
    if n:
        table.insert(distinct, bag.weight.detach()[: len(distinct)])
    out, expected = table(ids, offsets, mode=kind, **mine), bag(inverse, offsets, **theirs)
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=1e-4)
    weights = torch.randn_like(expected)
    (out * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(
        table.find(distinct)[0],
        (bag.weight - bag.weight.grad).detach()[: len(distinct)],
        atol=1e-3,
        rtol=1e-3,
    )
    for name, given in mine.items():
        torch.testing.assert_close(given.grad, theirs[name].grad, atol=1e-3, rtol=1e-3)
    last = torch.cat([offsets, offsets.new_full((1,), n)])
    with torch.no_grad():
        assert torch.equal(
            table.eval()(ids, last, mode=kind, include_last_offset=True, **mine),
            table(ids, offsets, mode=kind, **mine),
        )


@pytest.mark.parametrize("policy", ["lru", "lfu"])
def test_the_right_keys_lose_their_rows(device, policy):
    table = roost.torch.Table(4, 128, policy=policy, keep_evicted=10**6, seed=3, device=device)
    uses, last, gone = {}, {}, []
    for step in range(200):
        ids = ids_of(step, 60, 250, device)
        before = set(uses)
        table(ids)
        for i in ids.tolist():
            last[i] = step
        counts = {i: ids.tolist().count(i) for i in set(ids.tolist())}
        new = [i for i in counts if i not in before]
        for i in before & set(counts):
            uses[i] += counts[i]
        lost = [i for i in uses if i not in table_keys(table)]
        order = (lambda i: last[i]) if policy == "lru" else (lambda i: uses[i])
        if lost:
            worst = max(map(order, lost))
            kept = [order(i) for i in uses if i not in lost and i not in counts]
            assert not kept or worst <= min(kept)
        for i in lost:
            del uses[i]
        gone += lost
        for i in new:
            uses[i] = counts[i]
        assert len(table) == len(uses) <= 128
    ids, features = table.evicted()
    assert sorted(ids.tolist()) == sorted(gone) and len(gone) > 100
    assert not features.int().any()
    assert table.counts()["evicted"] == len(gone)


def table_keys(table):
    return set(table.state_dict()["ids"].tolist())


def test_scores_say_who_goes(device):
    table = roost.torch.Table(2, 128, policy="score", device=device)
    table(torch.arange(128, device=device), scores=torch.arange(128, device=device))
    table(torch.arange(1000, 1010, device=device), scores=torch.full((10,), 2**32 - 1, device=device))
    assert table_keys(table) == set(range(10, 128)) | set(range(1000, 1010))
    with pytest.raises(TypeError, match="needs scores"):
        table(torch.arange(3, device=device))
    with pytest.raises(OverflowError):
        table(torch.arange(3, device=device), scores=torch.tensor([1, -1, 0], device=device))
    assert table.eval()(torch.arange(3, device=device)).shape == (3, 2)


def test_without_a_policy_it_grows(device):
    table = roost.torch.Table(3, 100, policy=None, optimizer="sgd", lr=1.0, device=device)
    rows = {}
    for step in range(8):
        ids = torch.arange(100 * 3**step // 9 + 1, device=device) * 7
        out = table(ids)
        for i, row in zip(ids.tolist(), out.detach().cpu(), strict=True):
            if i in rows:
                assert torch.equal(rows[i], row)
        out.sum().backward()
        rows = dict(zip(ids.tolist(), (out.detach() - 1).cpu(), strict=True))
        assert len(table) == len(ids)
    assert table.capacity >= len(table) > 20_000
    assert table.counts()["unplaced"] == 0


def test_keys_of_a_pass_that_waits_keep_their_rows(device):
    table = roost.torch.Table(2, 128, optimizer="sgd", lr=1.0, device=device)
    first = torch.arange(100, device=device)
    out = table(first)
    before = out.detach().clone()
    table(torch.arange(1000, 1100, device=device))  # its own pass is dropped at once
    assert table.counts()["unplaced"] == 72
    out.sum().backward()
    assert torch.equal(table.find(first)[0], before - 1)
    table(torch.arange(2000, 2100, device=device))  # nothing waits any longer
    assert table.counts()["unplaced"] == 72
    out = table(first)
    table.erase(first[:1])
    with pytest.raises(RuntimeError, match="erased"):
        out.sum().backward()


def test_features_are_tables_of_their_own(device):
    table = roost.torch.Table(2, 1000, features=True, device=device)
    ids = torch.arange(5, device=device)
    one, other = table(ids, table=1), table(ids, table=2)
    assert len(table) == 10 and not torch.equal(one, other)
    both = table(torch.cat([ids, ids]), table=torch.tensor([1] * 5 + [2] * 5, device=device))
    assert torch.equal(both, torch.cat([one, other]))
    kinds = torch.tensor([1] * 5, dtype=torch.uint8, device=device)
    assert torch.equal(table.eval()(ids, table=kinds), one)
    with pytest.raises(OverflowError):
        table(ids, table=torch.tensor([1, 2, 3, 4, 65536], device=device))
    with pytest.raises(ValueError, match="features=True"):
        roost.torch.Table(2, 10, device=device)(ids, table=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_types_of_rows(device, dtype):
    table = roost.torch.Table(8, 1000, dtype=dtype, optimizer="sgd", lr=0.5, device=device)
    ids = torch.tensor([[5, 6], [6, 7]], device=device)
    out = table(ids)
    assert out.dtype == dtype and out.shape == (2, 2, 8)
    before = table.find(ids)[0].clone()
    (out * torch.ones(2, 2, 8, device=device)).sum().backward()
    step = torch.tensor([[0.5, 1.0], [1.0, 0.5]], device=device)[:, :, None]
    torch.testing.assert_close(table.find(ids)[0], (before.float() - step).to(dtype))


def test_snapshots_go_on_bit_by_bit(device, tmp_path):
    file = tmp_path / "table.pt"
    make = lambda capacity: roost.torch.Table(6, capacity, policy="lfu", seed=4, device=device)
    table = make(700)

    def step(table, i):
        out = table(ids_of(i, 500, 1500, device))
        out.square().sum().backward()
        return out.detach()

    for i in range(10):
        step(table, i)
    table.snapshot(file)
    assert os.listdir(tmp_path) == ["table.pt"]
    same, larger = make(700), make(5000)
    same.load(file)
    larger.load(file)
    others = [same, copy.deepcopy(table), pickle.loads(pickle.dumps(table))]
    ids = torch.tensor(sorted(table_keys(table)), device=device)
    assert torch.equal(larger.find(ids)[0], table.find(ids)[0]) and larger.find(ids)[1].all()
    for i in range(10, 15):
        expected = step(table, i)
        for other in others:
            assert torch.equal(step(other, i), expected)
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 255
    (tmp_path / "damaged.pt").write_bytes(damaged)
    with pytest.raises(RuntimeError):
        roost.torch.Table(6, 700, policy="lru", device=device).load(file)
    with pytest.raises((RuntimeError, ValueError)):
        roost.torch.Table(7, 700, policy="lfu", device=device).load(file)
    with pytest.raises(RuntimeError, match="larger"):
        roost.torch.Table(6, 10, policy="lfu", device=device).load(file)


@pytest.mark.parametrize("hbm_rows", [1, 100, 9000])
@pytest.mark.parametrize("policy", ["lru", "lfu", None])
def test_rows_on_the_host_are_the_same(device, policy, hbm_rows):
    """Steps that overlap, prefetch, what sets and moves rows, and a state that goes to another table."""
    make = lambda rows=None: roost.torch.Table(
        6, 12_000, policy=policy, hbm_rows=rows, seed=4, device=device, dtype=torch.bfloat16
    )
    plain, cached = make(), make(hbm_rows)
    assert plain.nbytes_on_host == 0
    assert cached.nbytes_on_host == cached.capacity * cached._table.row_bytes
    tables, waiting = [plain, cached], []
    batches = [ids_of(i, SIZES[i % len(SIZES)], 25_000, device) for i in range(40)]
    for i, (ids, ahead) in enumerate(zip(batches, batches[1:] + batches[:1], strict=True)):
        outs = [table(ids) for table in tables]
        assert torch.equal(*outs), i
        weights = torch.randn(len(ids), 6, device=device)
        waiting.append([(out * weights).sum() for out in outs])
        if i % 3:
            cached.prefetch(ahead)
        while len(waiting) > i % 4 or (waiting and policy is None):
            for loss in waiting.pop(0):
                loss.backward()
        if i % 10 == 9:
            for losses in waiting:
                for loss in losses:
                    loss.backward()
            waiting.clear()
            for table in tables:
                rows = torch.full((len(ids[:50]), 6), float(i), dtype=torch.bfloat16, device=device)
                table.insert(ids[:50], rows)
                table.erase(ids[20:70])
        if i == 29:
            restored = make(hbm_rows)
            restored.load_state_dict(plain.state_dict())
            tables = [plain, copy.deepcopy(cached)] if hbm_rows == 100 else [plain, restored]
            cached = tables[1]
    for losses in waiting:
        for loss in losses:
            loss.backward()
    every = torch.cat(batches)
    assert torch.equal(plain.find(every)[0], cached.find(every)[0])
    a, b = plain.state_dict(), cached.state_dict()
    for name, tensor in a.items():
        assert torch.equal(tensor.cpu(), b[name].cpu()), name


def test_snapshots_while_training_goes_on(device, tmp_path):
    file = tmp_path / "table.pt"
    table = roost.torch.Table(8, 20_000, hbm_rows=3000, device=device)
    ids = torch.arange(20_000, device=device)
    table(ids).sum().backward()
    before = table.find(ids)
    done = table.snapshot(file, wait=False)
    for _ in range(3):
        table(ids).sum().backward()
    assert done.result(60) is None and os.listdir(tmp_path) == ["table.pt"]
    other = roost.torch.Table(8, 20_000, device=device)
    other.load(file)
    for a, b in zip(other.find(ids), before, strict=True):
        assert torch.equal(a, b)
    # A former process was killed; another one writes; somebody has a file of a like name.
    left, other_file = tmp_path / ".table.pt.0123abcd.part", tmp_path / "table.pt.part"
    left.write_bytes(b"what was left" * 1000)
    other_file.write_text("of somebody else")
    table.snapshot(file)
    assert sorted(os.listdir(tmp_path)) == ["table.pt", "table.pt.part"]
    assert other_file.read_text() == "of somebody else"
    other.load(file)
    assert torch.equal(other.find(ids)[0], table.find(ids)[0])
    with open(left, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another snapshot"):
            table.snapshot(file, wait=False)
    with pytest.raises(FileNotFoundError, match="no_folder/table.pt'"):
        table.snapshot(tmp_path / "no_folder" / "table.pt", wait=False)
    with pytest.raises(TypeError):
        table.snapshot(5)


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    file = tmp_path / "table.pt"
    table = roost.torch.Table(8, 2000)
    table(torch.arange(1000)).sum().backward()
    table.snapshot(file)
    before = file.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(roost.torch.table._Written, "_write", full)
    with pytest.raises(OSError, match="No space left on device: .*table.pt'"):
        table.snapshot(file)
    with pytest.warns(UserWarning, match="not written"):
        done = table.snapshot(file, wait=False)
        with pytest.raises(OSError, match="No space left"):
            done.result(60)
    assert os.listdir(tmp_path) == ["table.pt"] and file.read_bytes() == before


@pytest.mark.parametrize("end", ["", "raise ValueError", "del table"])
def test_a_process_that_ends_writes_its_snapshot(tmp_path, end):
    file = tmp_path / "table.pt"
    program = textwrap.dedent(
        f"""
        import torch, roost.torch
        table = roost.torch.Table(64, 20000)
        table(torch.arange(15000)).sum().backward()
        table.snapshot({str(file)!r}, wait=False)
        {end}
        """
    )
    subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE)
    table = roost.torch.Table(64, 20000)
    table.load(file)
    assert len(table) == 15000 and os.listdir(tmp_path) == ["table.pt"]


def test_a_killed_snapshot_leaves_the_one_before(tmp_path):
    file = tmp_path / "table.pt"
    program = textwrap.dedent(
        f"""
        import torch, roost.torch
        table = roost.torch.Table(64, 20000)
        table(torch.arange(15000)).sum().backward()
        table.snapshot({str(file)!r})
        print("once", flush=True)
        while True:
            table(torch.arange(15000)).sum().backward()
            table.snapshot({str(file)!r})
        """
    )
    for wait in (0.0, 0.05, 0.11):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"once\n"
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        table = roost.torch.Table(64, 20000)
        table.load(file)
        assert len(table) == 15000
        assert table.counts()["updates"] >= 1


def test_deltas_keep_a_copy_the_same(device):
    table = roost.torch.Table(3, 256, keep_evicted=10_000, features=True, device=device)
    served, since = {}, 0
    for step in range(60):
        table(ids_of(step, 40, 600, device), table=step % 2).sum().backward()
        if step % 7 == 3:
            table.erase(ids_of(step, 5, 600, device), table=step % 2)
        if step % 5 == 4:
            delta = table.delta(since)
            since = delta["steps"] + 1
            for key in zip(delta["gone"].tolist(), delta["gone_features"].tolist(), strict=True):
                served.pop(key, None)
            keys = zip(delta["ids"].tolist(), delta["features"].tolist(), strict=True)
            served.update(zip(keys, delta["rows"].cpu().unbind(), strict=True))
            state = table.state_dict()
            keys = list(zip(state["ids"].tolist(), state["features"].tolist(), strict=True))
            assert set(served) == set(keys)
            for f in (0, 1):
                mine = [k for k in keys if k[1] == f]
                rows, found = table.find(torch.tensor([i for i, _ in mine], device=device), table=f)
                assert found.all()
                assert all(torch.equal(served[k], row) for k, row in zip(mine, rows.cpu(), strict=True))
    with pytest.raises(RuntimeError, match="keep_evicted"):
        roost.torch.Table(3, 256, device=device).delta(0)


def test_admission(device):
    table = roost.torch.Table(2, 10_000, admit=3, device=device)
    ids = torch.arange(100, device=device)
    for _ in range(2):
        table(ids).sum().backward()
        assert len(table) == 0
    table(ids)
    assert len(table) == 100
    assert table.counts()["unadmitted"] == 200


def test_numbers_are_kept_or_refused(device):
    make = roost.torch.Table
    for wrong in (
        {"policy": "random"},
        {"optimizer": "lamb"},
        {"dtype": torch.float64},
        {"initializer": ("normal", 1)},
        {"initializer": ("uniform", 2, 1)},
        {"initializer": ("normal", 0, -1)},
        {"initializer": ("constant", 1e300)},
        {"initializer": ("constant", 1e6), "dtype": torch.float16},
        {"initializer": torch.nn.init.zeros_},
        {"lr": float("nan")},
        {"admit": 0},
        {"keep_evicted": -1},
        {"seed": -1},
        {"lr": -1},
        {"betas": (0.9, 1.0)},
        {"betas": 0.9},
        {"eps": 1e300},
        {"admit": 2**32},
        {"admit": 2, "policy": None},
    ):
        with pytest.raises(ValueError):
            make(4, 10, device=device, **wrong)
    for dim, capacity in ((0, 10), (4, 0), (70_000, 10), (4, 2**31), (-1, 10)):
        with pytest.raises(ValueError):
            make(dim, capacity, device=device)
    with pytest.raises(TypeError):
        make(4.5, 10, device=device)
    table = make(4, 10, device=device)
    for wrong in (float("nan"), -1.0, float("inf")):
        with pytest.raises(ValueError):
            table.lr = wrong
    with pytest.raises(TypeError):
        table.to("meta")
    assert table.device.type == device and table.lr == 0.01
    for wrong in (torch.tensor([1.0], device=device), [1, 2], torch.tensor([True], device=device)):
        with pytest.raises(TypeError):
            table(wrong)
    ids = torch.arange(6, device=device)
    with pytest.raises(TypeError):
        table.insert(ids, torch.zeros(6, 4, dtype=torch.float64, device=device))
    with pytest.raises(ValueError):
        table.insert(ids, torch.zeros(6, 5, device=device))
    if device == "cpu":
        for offsets in ([1, 2], [0, 7], [0, 4, 3]):
            with pytest.raises(ValueError, match="offsets"):
                table(ids, torch.tensor(offsets))
            with pytest.raises(ValueError, match="offsets"):
                table(ids, torch.tensor(offsets), per_sample_weights=torch.ones(6))
    else:
        with pytest.raises(ValueError, match="on cpu"):
            table(ids.cpu())
    offsets = torch.tensor([0, 3], device=device)
    for wrong, error in (
        ({"per_sample_weights": torch.ones(6, dtype=torch.int64, device=device)}, TypeError),
        ({"per_sample_weights": [1.0] * 6}, TypeError),
        ({"per_sample_weights": torch.ones(5, device=device)}, ValueError),
        ({"per_sample_weights": torch.ones(6, 1, device=device)}, ValueError),
        ({"per_sample_weights": torch.ones(6, device=device), "mode": "mean"}, ValueError),
    ):
        with pytest.raises(error, match="weights"):
            table(ids, offsets, **wrong)
    with pytest.raises(ValueError, match="weights"):
        table(ids, per_sample_weights=torch.ones(6, device=device))
    assert len(table) == 0 and table.counts()["steps"] == 0


def test_of_several_rows_the_last_one_counts(device):
    table = roost.torch.Table(2, 100_000, device=device)
    ids = ids_of(1, 20_000, 3000, device)
    rows = torch.arange(40_000, dtype=torch.float32, device=device).reshape(-1, 2)
    table.insert(ids, rows)
    last = {i: row for i, row in zip(ids.tolist(), rows.tolist(), strict=True)}
    found = table.find(ids)[0].tolist()
    assert found == [last[i] for i in ids.tolist()]


def test_it_is_the_same_each_time(device):
    def run():
        table = roost.torch.Table(16, 3000, optimizer="rowwise_adagrad", device=device)
        for i in range(10):
            table(ids_of(i, 5000, 6000, device)).square().sum().backward()
        state = table.state_dict()
        return [state[name] for name in ("ids", "slots", "rows", "about")]

    for one, other in zip(run(), run(), strict=True):
        assert torch.equal(one, other)


def test_compiled_code_learns_the_same(device):
    """Two lookups of one table in one function, and one whose result nobody uses."""
    torch._dynamo.reset()
    one, other = (roost.torch.Table(8, 1000, features=True, device=device) for _ in range(2))

    def loss(table, ids):
        table(ids + 10**6, table=3)
        return (table(ids, table=3) * 3).sum() + (table(ids, table=3) * 5).sum() + table(ids, table=4).sum()

    compiled = torch.compile(lambda ids: loss(one, ids) * 2)
    for i in range(3):
        ids = ids_of(i, 300, 900, device)
        mine, expected = compiled(ids), loss(other, ids) * 2
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-3)
        mine.backward()
        expected.backward()
    assert one.counts() == other.counts() and one.counts()["updates"] == 9
    assert all(
        torch.equal(a, b) for a, b in zip(*(t.state_dict().values() for t in (one, other)), strict=True)
    )


def test_a_second_backward_pass_is_refused(device):
    table = roost.torch.Table(2, 128, optimizer="sgd", device=device)
    loss = table(torch.zeros(1, dtype=torch.int64, device=device)).sum()
    loss.backward(retain_graph=True)
    for step in range(1, 30):
        table(torch.arange(step * 10, step * 10 + 10, device=device))
    before = table.state_dict()["rows"]
    with pytest.raises(RuntimeError, match="second backward"):
        loss.backward()
    assert torch.equal(table.state_dict()["rows"], before)


@pytest.mark.parametrize("hbm_rows", [None, 3000])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_ctrl_c_leaves_whole_steps(device, optimizer, hbm_rows):
    """A signal ends calls at any point; rows are those of steps that were done, or not begun."""

    def stop(*_):
        raise KeyboardInterrupt

    options = {"optimizer": optimizer, "lr": 1.0, "initializer": ("constant", 5.0), "hbm_rows": hbm_rows}
    old, new = torch.arange(2**13, device=device), torch.arange(2**20, 2**20 + 15_000, device=device)
    ended = 0
    handler = signal.signal(signal.SIGALRM, stop)
    try:
        for k in range(16):
            table = roost.torch.Table(16, 2**13, device=device, **options)
            out = table(old)
            out.backward(torch.ones_like(out))
            rows, found = table.find(old)
            learned = rows[found][0, 0].item()
            out = table(old[:5000]) if k % 2 else None
            before = table.find(old[:5000])[0]
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.001 * k)
                table(new) if out is None else out.backward(torch.ones_like(out))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                ended += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            rows, found = table.find(old)
            if out is None:
                assert set(rows[found].unique().tolist()) <= {learned}
            else:
                assert len((rows[:5000] != before)[found[:5000]].unique()) == 1
            assert table.find(new)[0].unique().tolist() == [5.0]
            updates = table.counts()["updates"]
            if out is not None and updates == 2:
                with pytest.raises(RuntimeError, match="second"):
                    out.backward(torch.ones_like(out))
                assert table.counts()["updates"] == 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert ended or "cuda" in str(device)  # which does not wait


def test_a_pass_that_waits_for_long_is_told(device):
    table = roost.torch.Table(2, 128, optimizer="sgd", device=device)
    held = table(torch.zeros(1, dtype=torch.int64, device=device))

    def go_on():
        for step in range(1, 110):
            table(torch.arange(step * 3, step * 3 + 3, device=device)).sum().backward()

    with pytest.warns(UserWarning, match="100 steps ago"):
        go_on()
    assert table.counts()["unplaced"] > 0
    del held
    table(torch.arange(5000, 5010, device=device))
    assert table.find(torch.arange(5000, 5010, device=device))[1].all()


def test_damaged_files_and_states_are_refused(device, tmp_path):
    file = tmp_path / "table.pt"
    table = roost.torch.Table(6, 500, device=device, seed=1)
    table(torch.arange(300, device=device)).sum().backward()
    table.snapshot(file)
    data = file.read_bytes()
    other = roost.torch.Table(6, 500, device=device, seed=1)
    other(torch.arange(7, device=device))
    for i in range(60):
        damaged = bytearray(data)
        at = len(data) * i // 60 + i
        damaged[at] ^= 1 << i % 8
        file.write_bytes(damaged)
        try:
            other.load(file)
        except RuntimeError:
            assert len(other) in (7, 300)
        else:  # a bit that says nothing
            for a, b in zip(other.state_dict().values(), table.state_dict().values(), strict=True):
                assert torch.equal(a, b)
    for name, value in (
        ("ids", lambda x: x.double()),
        ("ids", lambda x: torch.cat([x[:1], x[:-1]])),
        ("ids", lambda x: x[1:]),
        ("rows", lambda x: x[:, 1:]),
        ("slots", lambda x: x - 10**6),
        ("steps", lambda x: x + 1000),
        ("steps", lambda x: x - 1000),
        ("about", lambda x: x[:3]),
        ("about", lambda x: -x),
        ("about", lambda x: x.double()),
        ("about", lambda x: x[:9].long()),
        ("about", lambda x: torch.tensor([1, 6, 3, 0, 1, 512, 1, 2**40, 1])),
    ):
        for seed in (1, 2):  # the same slots, or others
            if name == "slots" and seed == 2:
                continue  # which are not looked at
            other = roost.torch.Table(6, 500, device=device, seed=seed)
            other(torch.arange(7, device=device))
            state = table.state_dict()
            state[name] = value(state[name])
            with pytest.raises(RuntimeError):
                other.load_state_dict(state)
            assert len(other) == 7, name
    with pytest.raises(FileNotFoundError):
        other.load(tmp_path / "none.pt")
    with pytest.raises(OSError, match="regular file"):
        other.snapshot(tmp_path)


def about_of(state):
    return json.loads(bytes(state["about"].tolist()))


def with_about(state, **changes):
    text = json.dumps(about_of(state) | changes)
    return state | {"about": torch.tensor(list(text.encode()), dtype=torch.uint8)}


def write_state(file, state):
    checksum = roost.torch.table._checksum(state)
    torch.save({"state": state, "checksum": checksum}, file)


OPTIMIZERS_OF_FORMAT_1 = ["sgd", "adagrad", "rowwise_adagrad", "adam"]
DTYPES_OF_FORMAT_1 = [torch.float32, torch.bfloat16, torch.float16]
POLICIES_OF_FORMAT_1 = [None, "lru", "lfu", "score"]


@pytest.mark.parametrize("optimizer", range(4))
@pytest.mark.parametrize("policy", range(4))
def test_states_have_names_and_those_of_format_1_numbers(device, tmp_path, optimizer, policy):
    for number, dtype in enumerate(DTYPES_OF_FORMAT_1):
        names = {"optimizer": OPTIMIZERS_OF_FORMAT_1[optimizer], "policy": POLICIES_OF_FORMAT_1[policy]}
        make = lambda: roost.torch.Table(6, 500, device=device, seed=7, dtype=dtype, **names)  # noqa: B023
        table, ids = make(), torch.arange(300, device=device)
        scores = ids if names["policy"] == "score" else None
        for _ in range(3):
            table(ids, scores=scores).square().sum().backward()
        state = table.state_dict()
        about = {"dim": 6, "capacity": table.capacity, "seed": 7, "steps": 3, "updates": 3}
        about |= names | {"format": 2, "dtype": str(dtype)[6:]}
        assert about_of(state) == about
        numbers = torch.tensor([1, 6, optimizer, number, policy, table.capacity, 7, 3, 3])
        write_state(tmp_path / "1.pt", state | {"about": numbers})
        table.snapshot(tmp_path / "2.pt")
        table(ids, scores=scores).square().sum().backward()
        for file in (tmp_path / "1.pt", tmp_path / "2.pt"):
            other = make()
            other.load(file)
            for name, part in state.items():
                assert torch.equal(other.state_dict()[name], part), (file, name)
            other(ids, scores=scores).square().sum().backward()
            assert torch.equal(other.state_dict()["rows"], table.state_dict()["rows"])


def test_a_state_with_an_unknown_name_is_refused(device, tmp_path):
    file = tmp_path / "table.pt"
    table = roost.torch.Table(6, 500, device=device)
    table(torch.arange(300, device=device))
    state = table.state_dict()
    numbers = [1, 6, 3, 0, 1, table.capacity, 0, 1, 0]
    unknown = "unknown to this version of roost; load it with the one that saved it"
    for wrong, says in (
        (with_about(state, optimizer="lion"), f"optimizer='lion', {unknown}"),
        (with_about(state, optimizer=3), f"optimizer=3, {unknown}"),
        (with_about(state, policy="arc"), f"policy='arc', {unknown}"),
        (with_about(state, policy="none"), f"policy='none', {unknown}"),
        (with_about(state, dtype="float8_e5m2"), f"dtype='float8_e5m2', {unknown}"),
        (state | {"about": torch.tensor([*numbers[:2], 4, *numbers[3:]])}, f"optimizer=4, {unknown}"),
        (state | {"about": torch.tensor([*numbers[:4], 9, *numbers[5:]])}, f"policy=9, {unknown}"),
        (with_about(state, optimizer="sgd"), "optimizer='sgd'; this one has 'adam'"),
        (with_about(state, dtype="float16"), "dtype='float16'; this one has 'float32'"),
        (with_about(state, policy=None), "policy=None; this one has 'lru'"),
        (with_about(state, dim=7), "dim=7; this one has 6"),
        (with_about(state, format=3), "not what a table of this version of roost has saved"),
        (with_about(state, steps="1"), "not what a table of this version of roost has saved"),
        (with_about(state, more=1), "not what a table of this version of roost has saved"),
    ):
        write_state(file, wrong)
        for load in (lambda t: t.load(file), lambda t: t.load_state_dict(wrong)):  # noqa: B023
            other = roost.torch.Table(6, 500, device=device)
            other(torch.arange(7, device=device))
            with pytest.raises(RuntimeError, match=re.escape(says) + "$") as error:
                load(other)
            assert len(other) == 7
        with pytest.raises(RuntimeError, match=f"^roost.torch.Table: {file}: [^\\n]*$"):
            other.load(file)


def test_a_copy_of_format_1_has_the_number_of_an_initializer():
    table = roost.torch.Table(2, 100, initializer=("uniform", -1, 1), seed=3)
    table(torch.arange(50))
    state = table.__getstate__()
    assert state["_options"]["initializer"] == ("uniform", -1.0, 1.0)
    state["_options"] = table._options | {"initializer": (1, -1.0, 1.0)}
    other = roost.torch.Table.__new__(roost.torch.Table)
    other.__setstate__(state)
    assert torch.equal(other.find(torch.arange(80))[0], table.find(torch.arange(80))[0])


def test_a_file_with_a_wrong_byte_near_its_end_is_damaged(device, tmp_path):
    """Where offsets to the other parts of the file are."""
    table = roost.torch.Table(2, 100, device=device)
    table(torch.arange(50, device=device)).sum().backward()
    table.snapshot(tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    for at in range(1, 120):
        (tmp_path / "one.pt").write_bytes(
            whole[:-at] + bytes([whole[-at] ^ 255]) + whole[len(whole) - at + 1 :]
        )
        other = roost.torch.Table(2, 100, device=device)
        try:
            other.load(tmp_path / "one.pt")
        except RuntimeError as error:
            assert "damaged" in str(error)
        else:
            assert torch.equal(
                other.find(torch.arange(50, device=device))[0], table(torch.arange(50, device=device))
            )


def test_a_copy_does_not_know_who_lost_a_row_before(device):
    table = roost.torch.Table(2, 128, keep_evicted=1000, device=device)
    table(torch.arange(128, device=device))
    table.delta(0)
    table(torch.arange(200, 220, device=device))
    other = copy.deepcopy(table)
    assert len(table.delta(2)["gone"]) == 20
    with pytest.raises(RuntimeError, match="copied"):
        other.delta(2)
    other.delta(2)
    out = table(torch.arange(5, device=device))
    assert table.delta(0)["steps"] == 2  # the third is not finished
    out.sum().backward()
    assert table.delta(3)["steps"] == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_replays_steps():
    one, other = (roost.torch.Table(8, 2000, device="cuda") for _ in range(2))
    ids = ids_of(0, 3000, 5000, "cuda")

    def step(table, ids):
        out = table(ids)
        out.square().sum().backward()
        return out

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step(one, ids)
    torch.cuda.current_stream().wait_stream(side)
    step(other, ids)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(one, ids)
    for i in range(5):
        ids.copy_(ids_of(i, 3000, 5000, "cuda"))
        graph.replay()
        assert torch.equal(out.detach(), step(other, ids).detach())
    assert one.counts() == other.counts()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_it_moves_to_a_gpu_and_back():
    table = roost.torch.Table(8, 500, seed=1)
    table(torch.arange(400)).square().sum().backward()
    rows = table.find(torch.arange(400))[0]
    table.to("cuda")
    assert table.device.type == "cuda"
    assert torch.equal(table.find(torch.arange(400, device="cuda"))[0].cpu(), rows)
    table(torch.arange(400, device="cuda")).sum().backward()
    table.to("cpu")
    assert table.counts()["updates"] == 2


def test_a_module_that_has_a_table_keeps_it(device):
    model = torch.nn.Sequential(roost.torch.Table(4, 100), torch.nn.Linear(4, 1)).to(device)
    model(torch.arange(9, device=device)).sum().backward()
    other = torch.nn.Sequential(roost.torch.Table(4, 100), torch.nn.Linear(4, 1)).to(device)
    other.load_state_dict(model.state_dict())
    model.eval(), other.eval()
    assert torch.equal(model(torch.arange(20, device=device)), other(torch.arange(20, device=device)))
    with pytest.raises(RuntimeError, match="Missing"):
        other.load_state_dict({})
    assert [name for name, _ in model.named_parameters()] == ["1.weight", "1.bias"]
    assert np.isfinite(model[0].nbytes)
