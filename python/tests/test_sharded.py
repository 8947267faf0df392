"""roost.torch.ShardedTable on processes of gloo, beside a Table that sees the batches of all ranks."""

import copy
import os
import pathlib
import queue
import shutil
import tempfile
import traceback

import pytest

torch = pytest.importorskip("torch")

import roost.torch
import torch.distributed as dist
from roost.torch.sharded import _owners
from test_collections import CONFIGS, WITHOUT_POOLING, features_of

# ------------------------------------------------------------------ processes that do what tests ask them


def work(rank, size, backend, store, inbox, outbox):
    torch.set_num_threads(1)
    if "nccl" in backend:
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size)
    while True:
        function, arguments = inbox.get()
        if function is None:
            return
        try:
            outbox.put((rank, None, function(rank, size, *arguments)))
        except BaseException as error:  # noqa: BLE001 (which the test shows)
            shown = traceback.format_exc()
            outbox.put((rank, f"{type(error).__name__} on rank {rank}\n{shown}", None))


class Pool:
    """Processes of a group; each call runs a function on all ranks."""

    def __init__(self, size, backend="gloo"):
        self.size, self.backend = size, backend
        self._start()

    def _start(self):
        context, size = torch.multiprocessing.get_context("spawn"), self.size
        self.folder = tempfile.mkdtemp()
        self.inboxes, self.outbox = [context.Queue() for _ in range(size)], context.Queue()
        store = os.path.join(self.folder, "store")
        self.processes = [
            context.Process(
                target=work, args=(r, size, self.backend, store, self.inboxes[r], self.outbox), daemon=True
            )
            for r in range(size)
        ]
        for process in self.processes:
            process.start()

    def __call__(self, function, *arguments):
        for inbox in self.inboxes:
            inbox.put((function, arguments))
        results, errors = [None] * self.size, []
        for _ in range(self.size):
            try:
                rank, error, result = self.outbox.get(timeout=10 if errors else 120)
            except queue.Empty:
                errors.append("a rank hangs")
                break
            results[rank] = result
            errors += [error] if error else []
        if errors:  # others may wait for one that has failed
            self.end()
            self._start()
        assert not errors, "\n".join(errors)
        return results

    def end(self):
        for inbox in self.inboxes:
            inbox.put((None, ()))
        for process in self.processes:
            process.join(5)
            process.kill()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module", params=[1, 2, 3])
def ranks(request):
    pool = Pool(request.param)
    yield pool
    pool.end()


@pytest.fixture(scope="module")
def three():
    pool = Pool(3)
    yield pool
    pool.end()


# ------------------------------------------------------------------ data

EXTREME = [-(2**63), 2**63 - 1, -1, 0, 1, 2**32, -(2**31)]


def ids_of(rank, step, most=400):
    """Ids of a rank in a step: many, none, one everywhere, negative and extreme ones."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    n = [300, 1, 57, 2000][(step + rank) % 4]
    ids = (torch.rand(n, generator=generator) ** 3 * most).long()
    kind = step % 6
    if kind == 1 and rank != 0:
        return ids[:0]
    if kind == 2:
        return torch.full((50,), -7)
    if kind == 3:
        return torch.tensor(EXTREME * 3)[torch.randperm(21, generator=generator)]
    if kind == 4:
        return ids[:0]
    return -ids if kind == 5 else ids


def bags_of(rank, step, n):
    generator = torch.Generator().manual_seed(77 * step + rank)
    cuts = torch.sort(torch.randint(0, n + 1, (1 + rank * 3,), generator=generator)).values
    return torch.cat([torch.zeros(1, dtype=torch.int64), cuts])


class Batches:
    """What all ranks look up in a step: of this rank, and all of it."""

    def __init__(self, rank, size, step, features=False, bags=False, most=400, device="cpu"):
        self.ids = [ids_of(r, step, most) for r in range(size)]
        self.offsets = [bags_of(r, step, len(ids)) for r, ids in enumerate(self.ids)]
        generator = torch.Generator().manual_seed(step)
        self.features = [torch.randint(0, 3, (len(ids),), generator=generator) * 32767 for ids in self.ids]
        self.scores = [torch.randint(0, 2**32, (len(ids),), generator=generator) for ids in self.ids]
        starts = torch.tensor([0, *(len(ids) for ids in self.ids)]).cumsum(0)
        self.all_offsets = torch.cat([o + s for o, s in zip(self.offsets, starts, strict=False)])
        rows = [len(o) for o in self.offsets] if bags else [len(ids) for ids in self.ids]
        self.mine = slice(sum(rows[:rank]), sum(rows[: rank + 1]))
        self.weights = torch.randn(sum(rows), 1, generator=generator)
        self.rank, self.has_features, self.bags = rank, features, bags
        for name in ("ids", "offsets", "features", "scores"):
            setattr(self, name, [part.to(device) for part in getattr(self, name)])
        self.all_offsets, self.weights = self.all_offsets.to(device), self.weights.to(device)

    def arguments(self, all, scores=False):
        pick = torch.cat if all else lambda parts: parts[self.rank]
        named = {"table": pick(self.features)} if self.has_features else {}
        if scores:
            named["scores"] = pick(self.scores)
        offsets = (self.all_offsets if all else self.offsets[self.rank]) if self.bags else None
        return (pick(self.ids), offsets), named


def owned(batches, rank, size):
    """The batch of all ranks, but for what others own."""
    ids, features = torch.cat(batches.ids), torch.cat(batches.features)
    mine = _owners(ids, features if batches.has_features else 0, size) == rank
    return ids[mine], features[mine], torch.cat(batches.scores)[mine]


# ------------------------------------------------------------------ what ranks run


def steps_are_those_of_one_table(rank, size, options, mode, device="cpu"):
    options = options | {"device": device}
    dim = 5
    table = roost.torch.ShardedTable(dim, 40_000, seed=3, **options)
    one = roost.torch.Table(dim, 40_000, seed=3, **options)
    dtype = options.get("dtype", torch.float32)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 0.06, "atol": 0.06}
    # Sums of many rows, each of which is rounded.
    near_sums = near
    if mode in ("sum", "weighted"):
        near_sums = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 0.05, "atol": 3}
    scored = options.get("policy") == "score"
    for step in range(9):
        batches = Batches(rank, size, step, one.features, mode is not None, device=device)
        kind = all_kind = {} if mode is None else {"mode": mode}
        (ids, offsets), named = batches.arguments(False, scored)
        (all_ids, all_offsets), all_named = batches.arguments(True, scored)
        if mode == "weighted":
            kind, all_kind = ({"per_sample_weights": torch.cos(x.float())} for x in (ids, all_ids))
        out = table(ids, offsets, **named, **kind)
        expected = one(all_ids, all_offsets, **all_named, **all_kind)
        assert out.dtype == dtype
        torch.testing.assert_close(out, expected[batches.mine], **near_sums)
        (out * batches.weights[batches.mine]).sum().backward()
        (expected * batches.weights).sum().backward()
        named.pop("scores", None), all_named.pop("scores", None)
        rows, found = table.find(ids, **named)
        rows_of_one, found_by_one = one.find(ids, **named)
        torch.testing.assert_close(rows, rows_of_one, **near)
        assert torch.equal(found, found_by_one)
        table.eval(), one.eval()
        again = table(ids, offsets, **named, **kind)
        torch.testing.assert_close(again, one(ids, offsets, **named, **kind), **near_sums)
        assert not again.requires_grad
        table.train(), one.train()
        counts, counts_of_one = table.counts(), one.counts()
        assert counts["steps"] == counts["updates"] == step + 1 == counts_of_one["updates"]
        assert counts["evicted"] == counts["unplaced"] == 0
        assert len(table) == len(one)
    assert len(one) > 300
    mine = table.local.state_dict()
    assert (_owners(mine["ids"], mine["features"].long() & 65535, size) == rank).all()
    if size > 1:
        assert 0.5 < len(table.local) * size / len(one) < 1.5


def the_right_keys_lose_their_rows(rank, size, policy, features, admit, device="cpu"):
    """Beside a Table for each rank which sees what this rank owns of all batches."""
    named = {"policy": policy, "features": features, "admit": admit, "keep_evicted": 10**5, "lr": 0.1}
    named["device"] = device
    table = roost.torch.ShardedTable(2, 256 * size, **named)
    one = roost.torch.Table(2, 256, **named)
    assert table.local.capacity == one.capacity == 256
    for step in range(25):
        batches = Batches(rank, size, step, features, most=3000, device=device)
        (ids, _), named = batches.arguments(False, policy == "score")
        out = table(ids, **named)
        my_ids, my_features, my_scores = owned(batches, rank, size)
        given = {"table": my_features} if features else {}
        if policy == "score":
            given["scores"] = my_scores
        other = one(my_ids, **given)
        if step % 3 != 2:
            out.sum().backward()
            other.sum().backward()
        # else a pass that waits, and another one
        state, expected = table.local.state_dict(), one.state_dict()
        for name in ("slots", "ids", "features", "steps", "scores"):
            assert torch.equal(state[name], expected[name]), (name, step)
        rows, rows_of_one = (s["rows"][:, :8].contiguous().view(torch.float32) for s in (state, expected))
        torch.testing.assert_close(rows, rows_of_one, rtol=1e-3, atol=1e-3)
        theirs = one.counts()
        if policy == "lfu" or admit > 1:
            assert table.local.counts() == theirs
        else:
            assert table.local.counts()["evicted"] == theirs["evicted"]
            assert table.local.counts()["unplaced"] <= theirs["unplaced"]
    lost, lost_by_one = (sorted(t.evicted()[0].tolist()) for t in (table.local, one))
    assert lost == lost_by_one and len(lost) > 100
    total = [None] * size
    dist.all_gather_object(total, len(lost))
    assert table.counts()["evicted"] == sum(total)


def rows_are_set_and_taken(rank, size):
    table = roost.torch.ShardedTable(3, 20_000, features=True, keep_evicted=1000)
    rows = {}
    for step in range(8):
        batches = Batches(rank, size, step, True)
        (ids, _), named = batches.arguments(False)
        given = torch.arange(len(ids) * 3).reshape(-1, 3).float() + 10_000 * rank + step
        table.insert(ids, given, **named)
        for r in range(size):
            number = 3 * torch.arange(len(batches.ids[r]))[:, None] + torch.arange(3)
            values = (number + 10_000 * r + step).tolist()
            keys = zip(batches.ids[r].tolist(), batches.features[r].tolist(), strict=True)
            rows.update(zip(keys, values, strict=True))
        assert len(table) == len(rows)
        gone = [torch.tensor([1, 2, 999]), torch.zeros(0, dtype=torch.int64), torch.tensor([-7])][rank]
        table.erase(gone, table=32767)
        for i in (1, 2, 999, -7)[: 3 if size < 3 else 4]:
            rows.pop((i, 32767), None)
        assert len(table) == len(rows)
        asked = torch.tensor([i for i, _ in rows])[rank::2]
        of = torch.tensor([f for _, f in rows])[rank::2]
        found_rows, found = table.find(asked.reshape(1, -1), table=of)
        assert found.all() and found.shape == (1, len(asked))
        wanted = [rows[key] for key in zip(asked.tolist(), of.tolist(), strict=True)]
        assert found_rows[0].tolist() == wanted
        found_rows, found = table.find(torch.tensor([10**15, 10**15]), table=1)
        assert not found.any() and torch.equal(found_rows[0], found_rows[1])
    table.reserve(100_000)
    assert table.local.capacity >= 100_000 / size
    assert len(table) == len(rows)


def it_grows_without_a_policy(rank, size):
    table = roost.torch.ShardedTable(2, 128, policy=None, optimizer="sgd", lr=1.0)
    ids = torch.arange(4000) * 13 + rank
    out = table(ids)
    first = out.detach()
    out.sum().backward()
    assert len(table) == len({int(i) + r for i in torch.arange(4000) * 13 for r in range(size)})
    assert torch.equal(table.find(ids)[0], first - 1)
    held = table(ids[:5])
    with pytest.raises(RuntimeError, match="must grow"):
        table(torch.arange(50_000) + 10**7)
    assert held.shape == (5, 2)


def it_is_the_same_each_time(rank, size):
    runs = []
    for _ in range(2):
        table = roost.torch.ShardedTable(8, 3000, seed=9, optimizer="rowwise_adagrad")
        for step in range(8):
            table(ids_of(rank, step, 2000)).square().sum().backward()
        runs.append(table.state_dict())
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])
    with torch.no_grad():  # a lookup that learns nothing
        before = table.counts()
        assert not table(ids_of(rank, 0)).requires_grad
        assert table.counts() == before | {"steps": before["steps"] + 1}


def types_of_ids(rank, size):
    table = roost.torch.ShardedTable(4, 1000)
    ids = torch.tensor([[1, 2], [2, -3]])
    out = table(ids)
    assert out.shape == (2, 2, 4)
    assert torch.equal(table.eval()(ids.int()), out)
    assert torch.equal(table(ids[:1].to(torch.uint8)), out[:1])
    assert table(ids[:, :0]).shape == (2, 0, 4)
    for wrong in (ids.float(), ids > 0, ids.to(torch.int16), [1, 2]):
        with pytest.raises(TypeError, match="pass a tensor of int64 or int32"):
            table(wrong)
    with pytest.raises(ValueError, match="features=True"):
        table(ids, table=1)
    with pytest.raises(TypeError, match="scores"):
        table.train()(ids, scores=ids.abs())
    with pytest.raises(TypeError, match="snapshot or state_dict"):
        copy.deepcopy(table)
    assert len(table) == 3


def one_rank_fails(rank, size, bad):
    """All raise, and go on with the next call."""
    odd = rank == bad
    make = roost.torch.ShardedTable
    table = make(4, 1000, policy="score")
    ids, scores = torch.arange(10), torch.arange(10)
    calls = [
        (lambda: table(ids.float() if odd else ids, scores=scores), TypeError, "tensor of int64"),
        (lambda: table(ids, scores=None if odd else scores), TypeError, "needs scores"),
        (lambda: table(ids, scores=scores - int(odd)), OverflowError, "scores below 0"),
        (lambda: table(ids, scores=scores, mode="max" if odd else "sum"), ValueError, "mode='max'"),
        (lambda: table.find(ids, table=1 if odd else 0), ValueError, "features=True"),
        (lambda: table.insert(ids, torch.zeros(10, 5 if odd else 4), scores=scores), ValueError, "rows of"),
        (lambda: table.insert(ids, torch.zeros(10, 4).to(torch.float64 if odd else torch.float32),
                              scores=scores), TypeError, "convert them"),
        (lambda: table.erase("x" if odd else ids), TypeError, "ids of type str"),
        (lambda: table.reserve(1.5 if odd else 1), TypeError, "capacity"),
        (lambda: table.load(5.5 if odd else "/nowhere"), TypeError, "float"),
        (lambda: table.snapshot("/proc/none" if odd else tempfile.gettempdir()), OSError, "proc"),
        (lambda: make(4, 1000, policy="random" if odd else "lru"), ValueError, "policy='random'"),
        (lambda: make(4, 0 if odd else 10), ValueError, "capacity of 0"),
    ]  # fmt: skip
    for call, error, words in calls:
        expected = (error, words) if odd else (RuntimeError, f"rank {bad} has failed: .*{words}")
        with pytest.raises(expected[0], match=expected[1]):
            call()
        assert len(table) == 0
    # In the middle of a call: in the table of a rank, when keys have come, or gradients.
    out = table(ids, scores=scores)
    part = table.local
    for name, call in (
        ("look_up", lambda: table(ids, scores=scores)),
        ("find", lambda: table.find(ids)),
        ("assign", lambda: table.insert(ids, torch.zeros(10, 4), scores=scores)),
        ("update", lambda: out.sum().backward()),
        ("size", lambda: len(table)),
    ):
        if odd:
            part._table, kept = Failing(part._table, name), part._table
        error = MemoryError if odd else RuntimeError
        with pytest.raises(error, match=f"no memory for {name}"):
            call()
        if odd:
            part._table = kept
        assert len(table) == 10
    with pytest.raises(RuntimeError, match="second backward"):
        out.sum().backward()
    table(ids, scores=scores).sum().backward()
    out = table(ids, scores=scores)
    table.erase(ids[:1])
    with pytest.raises(RuntimeError, match="erased"):
        out.sum().backward()


class Failing:
    """A table of which a call fails."""

    def __init__(self, table, name):
        self._table, self._name = table, name

    def __getattr__(self, name):
        if name == self._name:
            raise MemoryError(f"no memory for {name}")
        return getattr(self._table, name)


def ranks_that_do_something_else(rank, size):
    odd = rank == size - 1
    make = roost.torch.ShardedTable
    ids = torch.arange(10)
    for names, other in (
        ("dim", lambda: make(5 if odd else 4, 1000)),
        ("capacity", lambda: make(4, 1001 if odd else 1000)),
        ("lr", lambda: make(4, 1000, lr=0.5 if odd else 0.25)),
        ("betas", lambda: make(4, 1000, betas=(0.9, 0.5 if odd else 0.25))),
        ("eps", lambda: make(4, 1000, eps=0.5 if odd else 0.25)),
        ("weight_decay", lambda: make(4, 1000, weight_decay=0.5 if odd else 0.25)),
        ("seed", lambda: make(4, 1000, seed=int(odd))),
        ("policy", lambda: make(4, 1000, policy="lfu" if odd else "lru")),
        ("optimizer", lambda: make(4, 1000, optimizer="sgd" if odd else "adam")),
        ("dtype", lambda: make(4, 1000, dtype=torch.float16 if odd else torch.float32)),
        ("hbm_rows", lambda: make(4, 1000, hbm_rows=128 if odd else None)),
        ("admit", lambda: make(4, 1000, admit=2 if odd else 1)),
        ("features", lambda: make(4, 1000, features=odd)),
        ("keep_evicted", lambda: make(4, 1000, keep_evicted=int(odd))),
        ("initializer", lambda: make(4, 1000, initializer=("constant", int(odd)))),
        ("lr, seed", lambda: make(4, 1000, seed=int(odd), lr=0.5 if odd else 0.25)),
    ):
        pair = f"ranks {rank} and {0 if odd else size - 1}"
        with pytest.raises(ValueError, match=f"{pair} have different {names}; all ranks must do the same"):
            other()
    one, two = make(4, 1000), make(4, 1000)
    one.train(not odd)
    with pytest.raises(ValueError, match="forward to learn.*forward in evaluation|evaluation.*to learn"):
        one(ids)
    one.train()
    with pytest.raises(ValueError, match="calls len of table .*, rank . calls find|calls find of table"):
        len(one) if odd else one.find(ids)
    with pytest.raises(ValueError, match="of table"):
        (one if odd else two)(ids)
    with pytest.raises(ValueError, match="forward to train"), torch.set_grad_enabled(odd):
        one(ids)
    one.lr = 0.5 if odd else 0.25
    with pytest.raises(ValueError, match="lr=0.5"):
        one(ids)
    one.lr = 0.25
    one(ids).sum().backward()
    assert len(one) == 10 and len(two) == 0 and one.lr == 0.25


def passes_are_told_apart(rank, size):
    """Several passes wait, and ranks call backward of different ones. Rows of one owner, where no other
    check can help: gradients of one pass would go to the rows of another."""
    ids = torch.arange(100)
    p, q = ids[_owners(ids, 0, size) == size - 1][:2].split(1)
    odd = rank == size - 1
    make = lambda: roost.torch.ShardedTable(2, 1000, optimizer="sgd", lr=1.0, initializer=("constant", 0))
    of = lambda table, i: table.find(i)[0].tolist()
    table = make()
    a, b = table(p), table(q)
    first, second = (b, a) if odd else (a, b)
    for out in (first, second):
        with pytest.raises(ValueError, match="backward of pass [12] of .* of pass [12] of .*all ranks must"):
            (out * 3).sum().backward()
    assert of(table, p) == of(table, q) == [[0.0, 0.0]]
    # Nothing was learned, so the same passes go on, in any order that is that of all.
    (b * 10).sum().backward()
    a.sum().backward()
    assert of(table, p) == [[-float(size)] * 2] and of(table, q) == [[-10.0 * size] * 2]
    with pytest.raises(RuntimeError, match="second backward"):
        a.sum().backward()
    # A rank drops a pass that others do not; others may be one step ahead.
    a, b = table(p), table(q)
    if odd:
        del a
    with pytest.raises(ValueError, match="backward of pass 4 .*backward of pass 3|of pass 3 .*of pass 4"):
        (b if odd else a).sum().backward()
    b.sum().backward()
    assert of(table, p) == [[-float(size)] * 2] and of(table, q) == [[-11.0 * size] * 2]
    # Calls that fail, and those that learn nothing, count alike.
    with pytest.raises(ValueError, match="all ranks must do the same"):
        table(p) if odd else table.find(p)
    with pytest.raises(TypeError if odd else RuntimeError, match="int64"):
        table(p.float() if odd else p)
    with torch.no_grad():
        table(p)
    table(q).sum().backward()
    assert of(table, q) == [[-12.0 * size] * 2]
    other = make()
    a, b = table(p), other(p)
    with pytest.raises(ValueError, match="all ranks must do the same"):
        (a if odd else b).sum().backward()


def asked_of(part):
    """What a table is asked to fetch from now on."""
    asked, fetch = [], part.prefetch

    def prefetch(ids, *, table=0):
        asked.append((ids, table))
        fetch(ids, table=table)

    part.prefetch = prefetch
    return asked


def rows_are_fetched_before(rank, size):
    """prefetch asks owners for their rows, each once, and changes no result."""
    for features in (False, True):
        options = {"optimizer": "sgd", "lr": 0.1, "seed": 5, "features": features}
        table = roost.torch.ShardedTable(4, 3000 * size, hbm_rows=256, **options)
        one = roost.torch.ShardedTable(4, 3000 * size, **options)
        asked = asked_of(table.local)
        for step in range(6):
            (ids, _), named = Batches(rank, size, step, features, most=3000).arguments(False)
            out, expected = table(ids, **named), one(ids, **named)
            after = Batches(rank, size, step + 1, features, most=3000)
            (next_ids, _), next_named = after.arguments(False)
            table.prefetch(next_ids, **next_named)
            one.prefetch(next_ids, **next_named)
            keys = []
            for r, each in enumerate(after.ids):
                of = after.features[r] if features else torch.zeros_like(each)
                different = sorted(set(zip(each.tolist(), of.tolist(), strict=True)))
                keys += [(i, f) for i, f in different if int(_owners(torch.tensor([i]), f, size)) == rank]
            got, of = asked.pop()
            of = of.tolist() if features else [0] * len(got)
            assert sorted(zip(got.tolist(), of, strict=True)) == sorted(keys) and not asked
            assert torch.equal(out, expected)
            out.square().sum().backward(), expected.square().sum().backward()
        assert len(table) == len(one) > 100
        state, state_of_one = table.state_dict(), one.state_dict()
        assert all(torch.equal(state[name], state_of_one[name]) for name in state)
    odd = rank == 0
    for each in (table, one):
        with pytest.raises(TypeError if odd else RuntimeError, match="int64"):
            each.prefetch(ids.float() if odd else ids)
        if size > 1:
            with pytest.raises(ValueError, match="calls prefetch|calls len"):
                each.prefetch(ids) if odd else len(each)
    assert table.device == torch.device("cpu") and table.features
    assert table.capacity == size * table.local.capacity >= 3000 * size
    grown = roost.torch.ShardedTable(2, 128 * size, policy=None)
    assert grown.capacity == 128 * size and not grown.features
    ids = torch.arange(30_000)
    grown.insert(ids[_owners(ids, 0, size) == 0][:5000], torch.zeros(5000, 2))
    assert grown.local.capacity == 128 or rank == 0
    total = [None] * size
    dist.all_gather_object(total, grown.local.capacity)
    assert grown.capacity == sum(total) >= 5000


def files_of_runs_are_not_mixed(rank, size, folder):
    folder = pathlib.Path(folder)
    table, other = (roost.torch.ShardedTable(2, 1000, optimizer="sgd") for _ in range(2))
    table(torch.arange(20)).sum().backward()
    other(torch.arange(30)).sum().backward()
    table.snapshot(folder / "a")
    other.snapshot(folder / "b")
    dist.barrier()
    name = f"00000001-{rank}-of-{size}.table"
    assert (folder / "a" / name).exists() and (folder / "b" / name).exists()
    assert "local.snapshot" not in table.state_dict()
    read = roost.torch.ShardedTable(2, 1000, optimizer="sgd")
    read(torch.arange(7))
    last = size - 1
    with pytest.raises(RuntimeError, match=f"different snapshots with number 1: .* ranks 0 and {last};"):
        read.load(folder / ("b" if rank == last else "a"))
    dist.barrier()
    if rank == last:
        shutil.copy(folder / "b" / name, folder / "a" / name)
    dist.barrier()
    with pytest.raises(RuntimeError, match=f"different snapshots with number 1: .* ranks 0 and {last};"):
        read.load(folder / "a")
    assert len(read) == 7
    read.load(folder / "b")
    assert len(read) == 30
    assert torch.equal(read.find(torch.arange(30))[0], other.find(torch.arange(30))[0])


def groups_of_some_ranks(rank, size):
    group = dist.new_group([0, 2])
    if rank == 1:
        with pytest.raises(ValueError, match="not of the group"):
            roost.torch.ShardedTable(4, 1000, group=group)
    else:
        table = roost.torch.ShardedTable(4, 1000, group=group)
        table(torch.arange(100) + rank).sum().backward()
        assert len(table) == 102
    if torch.cuda.is_available():
        with pytest.raises(TypeError, match="meta"):
            roost.torch.ShardedTable(4, 1000, device="meta")
    table = roost.torch.ShardedTable(4, 1000)  # all again: tables have the same numbers
    table(torch.arange(5))
    assert len(table) == 5


def snapshots_go_on(rank, size, folder):
    make = lambda **kw: roost.torch.ShardedTable(3, 1000, policy="lfu", seed=4, **kw)

    def step(table, i):
        out = table(ids_of(rank, i, 3000))
        out.square().sum().backward()
        return out.detach()

    table, same, also = make(), make(), make()
    for i in range(8):
        step(table, i)
        if i in (3, 7):
            table.snapshot(folder)
            dist.barrier()
            assert len(os.listdir(folder)) == size
    same.load(folder)
    also.load_state_dict(table.state_dict())
    for i in range(8, 13):
        expected = step(table, i)
        assert torch.equal(step(same, i), expected) and torch.equal(step(also, i), expected)
    assert table.counts()["steps"] == same.counts()["steps"]
    return len(same)


def snapshots_are_refused(rank, size, folder):
    """`folder` has a snapshot of three ranks, with number 2."""
    table = roost.torch.ShardedTable(3, 1000, policy="lfu", seed=4)
    table(torch.arange(7))
    folder = pathlib.Path(folder)
    files = [folder / f"00000002-{r}-of-3.table" for r in range(3)]
    data = files[rank].read_bytes()
    dist.barrier()

    def refused(words, change):
        if rank == 0:
            change()
        dist.barrier()
        with pytest.raises(RuntimeError, match=words):
            table.load(folder)
        dist.barrier()
        for file in folder.iterdir() if rank == 0 else ():
            file.unlink()
        dist.barrier()
        files[rank].write_bytes(data)
        dist.barrier()
        return len(table)

    assert refused("no complete snapshot of 3 ranks .there is none", files[1].unlink) == 7
    swap = lambda: (files[0].rename(folder / "x"), files[1].rename(files[0]), (folder / "x").rename(files[1]))
    assert refused("rows of another rank", swap) == 7
    assert refused("damaged", lambda: files[2].write_bytes(b"")) == 7
    later = [folder / f"00000003-{r}-of-2.table" for r in range(2)]
    assert refused("the last one is of 2", lambda: [shutil.copy(files[0], f) for f in later]) == 7
    part = bytearray(data)
    part[len(part) * 3 // 4] ^= 255
    refused("damaged", lambda: files[0].write_bytes(part))
    with pytest.raises(RuntimeError, match="there is none"):
        table.load(folder / "none")
    # One that was being written when a rank ended: the one before counts.
    if rank != 2:
        shutil.copy(files[rank], folder / f"00000003-{rank}-of-3.table")
    table.load(folder)
    assert len(table) > 100
    table.snapshot(folder)
    dist.barrier()
    assert sorted(p.name for p in folder.iterdir()) == [f"00000004-{r}-of-3.table" for r in range(3)]

    state = table.state_dict()
    states = [None] * 3
    dist.all_gather_object(states, state)
    for wrong in (
        states[(rank + 1) % 3],
        state | {"ranks": torch.tensor([1, rank, 2])},
        state | {"ranks": torch.tensor([2, rank, 3])},
        {k: v for k, v in state.items() if k != "ranks"},
        states[(rank + 1) % 3] | {"ranks": state["ranks"]},
        state | {"more": state["ranks"]},
        {k: v for k, v in state.items() if k != "local.ids"},
    ):
        with pytest.raises(RuntimeError):
            table.load_state_dict(wrong)
        assert torch.equal(table.state_dict()["local.ids"], state["local.ids"])


def transport_is_checked(rank, size):
    table = roost.torch.ShardedTable(4, 1000)
    with pytest.raises(ValueError, match="no transport for them"):
        table._ranks.check(torch.device("xpu"))


def a_module_has_one(rank, size):
    make = lambda: torch.nn.Sequential(roost.torch.ShardedTable(4, 1000), torch.nn.Linear(4, 1))
    model, other = make(), make()
    model(ids_of(rank, 0)).sum().backward()
    assert len(list(model.parameters())) == 2
    other.load_state_dict(model.state_dict())
    model.eval(), other.eval()
    assert torch.equal(model(ids_of(rank, 1)), other(ids_of(rank, 1)))
    assert model[0].to("cpu") is model[0] and f"rank {rank} of {size}" in repr(model)


def collections_are_those_of_one_rank(rank, size):
    kinds = roost.torch.EmbeddingBagCollection, roost.torch.EmbeddingCollection
    for kind, tables in zip(kinds, ("embedding_bags", "embeddings"), strict=True):
        configs = CONFIGS if kind is kinds[0] else WITHOUT_POOLING
        ours = kind(configs, table=roost.torch.ShardedTable, optimizer="sgd", lr=0.1)
        one = kind(configs, optimizer="sgd", lr=0.1)
        for step in range(4):
            parts = [features_of(5, 10 * step + r, "cpu") for r in range(size)]
            out = ours(parts[rank])
            alone = [one(part) for part in parts]
            values = (
                (lambda o: [o.values()]) if kind is kinds[0] else lambda o: [x.values() for x in o.values()]
            )
            for mine, theirs in zip(values(out), values(alone[rank]), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
            sum(x.square().sum() for x in values(out)).backward()
            sum(x.square().sum() for o in alone for x in values(o)).backward()
        for name, table in getattr(ours, tables).items():
            rows = getattr(one, tables)[name].find(torch.arange(50))[0]
            torch.testing.assert_close(table.find(torch.arange(50))[0], rows, rtol=1e-3, atol=1e-4)
        odd = features_of(5, 0, "cpu", names=["a", "b", "c", "e"] if rank == 0 else ["a", "b", "c", "d"])
        with pytest.raises(KeyError if rank == 0 else RuntimeError, match="no feature 'd'"):
            ours(odd)
        ours(parts[rank])
        with pytest.raises(
            ValueError if rank == 0 else RuntimeError, match="the table 'one': .*policy='mru'"
        ):
            policy = "mru" if rank == 0 else "lru"
            kind([configs[0] | {"policy": policy}], table=roost.torch.ShardedTable)


# ------------------------------------------------------------------ tests

OPTIONS = {
    "adam": {"optimizer": "adam", "lr": 0.05},
    "sgd, lfu": {"optimizer": "sgd", "lr": 0.1, "policy": "lfu"},
    "adagrad, features": {"optimizer": "adagrad", "features": True, "weight_decay": 0.01},
    "rowwise, lfu, features": {"optimizer": "rowwise_adagrad", "features": True, "policy": "lfu"},
    "score, features": {"policy": "score", "features": True, "optimizer": "sgd", "lr": 0.1},
    "bfloat16": {"dtype": torch.bfloat16, "optimizer": "sgd", "lr": 0.01},
    "float16, lfu": {"dtype": torch.float16, "optimizer": "sgd", "lr": 0.01, "policy": "lfu"},
}


@pytest.mark.parametrize(
    "options, mode",
    [*((name, None) for name in OPTIONS)]
    + [
        ("adam", "sum"),
        ("adam", "weighted"),
        ("rowwise, lfu, features", "mean"),
        ("score, features", "sum"),
        ("bfloat16", "sum"),
    ],
)
def test_steps_are_those_of_one_table(ranks, options, mode):
    ranks(steps_are_those_of_one_table, OPTIONS[options], mode)


@pytest.mark.parametrize(
    "policy, admit, features",
    [
        ("lru", 1, False),
        ("lru", 1, True),
        ("lfu", 1, False),
        ("lfu", 3, True),
        ("score", 1, True),
        ("lru", 2, False),
        ("score", 2, False),
        ("score", 3, True),
    ],
)
def test_the_right_keys_lose_their_rows(ranks, policy, features, admit):
    ranks(the_right_keys_lose_their_rows, policy, features, admit)


def test_rows_are_set_and_taken(ranks):
    ranks(rows_are_set_and_taken)


def test_it_grows_without_a_policy(ranks):
    ranks(it_grows_without_a_policy)


def test_it_is_the_same_each_time(ranks):
    ranks(it_is_the_same_each_time)


def test_types_of_ids(ranks):
    ranks(types_of_ids)


def test_a_module_has_one(ranks):
    ranks(a_module_has_one)


def test_collections_are_those_of_one_rank(ranks):
    ranks(collections_are_those_of_one_rank)


def test_snapshots_go_on_bit_by_bit(ranks, tmp_path):
    assert len(set(ranks(snapshots_go_on, str(tmp_path)))) == 1


def test_snapshots_are_refused(three, tmp_path):
    three(snapshots_go_on, str(tmp_path))
    three(snapshots_are_refused, str(tmp_path))


@pytest.mark.parametrize("bad", [0, 2])
def test_all_raise_if_one_does(three, bad):
    three(one_rank_fails, bad)


def test_ranks_that_do_something_else(three):
    three(ranks_that_do_something_else)


def test_passes_are_told_apart(three):
    three(passes_are_told_apart)


def test_passes_of_two_ranks_are_told_apart():
    pool = Pool(2)
    pool(passes_are_told_apart)
    pool.end()


def test_rows_are_fetched_before(ranks):
    ranks(rows_are_fetched_before)


def test_files_of_runs_are_not_mixed(three, tmp_path):
    three(files_of_runs_are_not_mixed, str(tmp_path))


def test_groups_of_some_ranks(three):
    three(groups_of_some_ranks)


def ends_early(rank, size):
    table = roost.torch.ShardedTable(4, 1000)
    out = table(torch.arange(50))
    if rank == 1:
        os._exit(0)
    with pytest.raises(RuntimeError) as raised:
        out.sum().backward()
    assert "has failed" not in str(raised.value)  # it is torch's
    with pytest.raises(RuntimeError, match=f"rank {rank} cannot continue"):
        len(table)
    with pytest.raises(RuntimeError, match=f"rank {rank} cannot continue"):
        table(torch.arange(3))
    return "ended"


def test_a_rank_that_ends():
    pool = Pool(3)
    for inbox in pool.inboxes:
        inbox.put((ends_early, ()))
    results = [pool.outbox.get(timeout=120) for _ in range(2)]
    assert {rank for rank, *_ in results} == {0, 2}
    assert all(error is None and result == "ended" for _, error, result in results), results
    pool.end()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpus():
    """As many ranks as there are GPUs, with NCCL, and with transports for both."""
    for backend in ("cpu:gloo,cuda:nccl", "nccl"):
        pool = Pool(min(torch.cuda.device_count(), 3), backend)
        for name, mode in (("adam", None), ("rowwise, lfu, features", "mean"), ("score, features", "sum")):
            pool(steps_are_those_of_one_table, OPTIONS[name], mode, "cuda")
        pool(steps_are_those_of_one_table, OPTIONS["bfloat16"], None, "cuda")
        pool(the_right_keys_lose_their_rows, "lfu", True, 1, "cuda")
        pool(the_right_keys_lose_their_rows, "lru", False, 2, "cuda")
        pool.end()


def test_groups_without_a_transport_are_refused(three):
    three(transport_is_checked)


def test_groups_that_there_are_not():
    with pytest.raises(RuntimeError, match="init_process_group"):
        roost.torch.ShardedTable(4, 1000)


def test_owners_have_their_share():
    """Also in the buckets of a Table, whose hash is another one."""
    for size in (2, 3, 7, 64, 1000):
        for ids in (torch.arange(50_000), torch.arange(50_000) << 40, -torch.arange(50_000) * 10**12):
            for feature in (0, 1, 65535):
                counts = torch.bincount(_owners(ids, feature, size), minlength=size).float()
                assert len(counts) == size
                mean = 50_000 / size
                assert (counts - mean).abs().max() < 6 * mean**0.5
                features = torch.full((50_000,), feature)
                assert torch.equal(_owners(ids, feature, size), _owners(ids, features, size))
    ids = torch.arange(300_000)
    ids = ids[_owners(ids, 0, 3) == 1][:64_000]
    table = roost.torch.Table(1, 128_000)
    table(ids)
    counts = torch.bincount(table.state_dict()["slots"].long() // 128, minlength=1000).float()
    assert counts.sum() == 64_000 and (counts - 64).abs().max() < 6 * 8
