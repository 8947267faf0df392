"""roost.distributed: processes that are threads here, and those of torch where that is installed."""

import importlib.util
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import roost
import roost.distributed as distributed


class Threads:
    """Ranks that are threads: what they exchange is copied. One that ends makes the others raise."""

    def __init__(self, size):
        self.size, self.shown, self.changed = size, [None] * size, threading.Condition()
        self.waiting = self.meetings = 0
        self.gone = False

    def meet(self):
        with self.changed:
            meeting = self.meetings
            self.waiting += 1
            if self.waiting == self.size:
                self.waiting, self.meetings = 0, meeting + 1
                self.changed.notify_all()
            if not self.changed.wait_for(lambda: self.meetings != meeting or self.gone, 60):
                raise TimeoutError("ranks wait for each other")
            if self.meetings == meeting:
                raise ConnectionError("a rank is gone")

    def end(self):
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def group(self, rank):
        def all_gather(mine, all):
            self.shown[rank] = mine
            self.meet()
            for r, part in enumerate(np.split(all, self.size)):
                part[:] = self.shown[r]
            self.meet()

        def exchange(out, into):
            self.shown[rank] = out
            self.meet()
            for r, part in enumerate(into):
                part[:] = self.shown[r][rank]
            self.meet()

        return distributed.Group(rank, self.size, all_gather, exchange, self.end)


def on_ranks(size, f):
    """What f(group) returns or raises on each rank."""
    threads, results = Threads(size), [None] * size

    def run(rank):
        try:
            results[rank] = f(threads.group(rank))
        except Exception as error:
            results[rank] = error
            threads.end()

    all = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in all:
        thread.start()
    for thread in all:
        thread.join()
    return results


def results_of(size, f):
    results = on_ranks(size, f)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def columns(dtype, n, seed):
    """A column of some type of keys: few different ones, and some that come once."""
    numbers = np.random.default_rng(seed).integers(0, max(1, n // 3), n)
    if dtype == "rows":
        return np.stack([numbers, numbers * 7, numbers % 5], axis=1).astype(np.int32)
    if dtype == "S5":
        return numbers.astype("S5")
    return numbers.astype(dtype)


def parts_of(column, size):
    """Unequal parts; the second one is empty."""
    cuts = [len(column) * r * (r + 1) // (size * (size + 1)) for r in range(1, size)]
    parts = np.split(column, cuts)
    return [parts[0]] + [parts[1][:0]] + [np.concatenate(parts[1:3])] + parts[3:] if size > 2 else parts


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["i4", "u8", "f8", "i2", "S5", "rows"])
def test_answers_are_those_of_one_process(dtype, size):
    keys, asked = columns(dtype, 5000, 1), columns(dtype, 2000, 2)
    values = np.arange(5000, dtype="f4" if dtype == "i4" else "i8")
    all_keys, all_values, all_asked = (parts_of(a, size) for a in (keys, values, asked))

    def f(group):
        rank = group.rank
        table = distributed.Map(all_keys[rank], all_values[rank], group=group)
        assert table.valid()
        return (
            len(table),
            table.find(all_asked[rank], missing=-1),
            table.contains(all_asked[rank]),
            table.items(),
            distributed.unique(all_keys[rank], group=group),
            distributed.join(all_asked[rank], all_keys[rank], group=group),
        )

    length, found, there, items, unique, rows = zip(*results_of(size, f))
    one = roost.Map(keys, values)
    assert set(length) == {len(one)}
    np.testing.assert_array_equal(np.concatenate(found), one.find(asked, missing=-1))
    np.testing.assert_array_equal(np.concatenate(there), one.contains(asked))
    pairs = [np.concatenate(column) for column in zip(*items)]
    assert len(pairs[0]) == len(one)
    np.testing.assert_array_equal(one.find(pairs[0]), pairs[1])
    np.testing.assert_array_equal(np.concatenate(unique), roost.unique(keys, return_index=True)[0])
    for mine, wanted in zip(zip(*rows), roost.join(asked, keys)):
        np.testing.assert_array_equal(np.concatenate(mine), wanted)


@pytest.mark.parametrize("bad", [0, 2])
def test_all_raise_if_one_does(bad):
    def f(group):
        make, unique, join = distributed.Map, distributed.unique, distributed.join
        table = make(np.arange(10), np.arange(10), group=group)
        odd = group.rank == bad
        calls = [
            (lambda: make(np.arange(3), np.arange(2 if odd else 3), group=group), ValueError, "3 keys"),
            (lambda: make(["x"] if odd else [1], [1], group=group), TypeError, "strings"),
            (lambda: table.find([2**70 if odd else 1]), (TypeError, OverflowError), "find"),
            (lambda: table.find([1], missing="x" if odd else 0), TypeError, "missing"),
            (lambda: unique(np.zeros((2, 5), "i8") if odd else [1], group=group), ValueError, "1 to 32"),
            (lambda: unique(np.zeros((2, 4), "i8") if odd else [1], group=group), ValueError, "1 to 16"),
            (lambda: make([1], np.zeros((1, 3)) if odd else [1], group=group), ValueError, "24 bytes"),
            (lambda: join(np.array([1.5 if odd else 1]), np.array([1]), group=group), TypeError, "common"),
        ]
        for call, error, words in calls:
            if odd:
                with pytest.raises(error, match=words):
                    call()
            else:
                with pytest.raises(RuntimeError, match=f"rank {bad} has failed.*{words}"):
                    call()
        assert table.contains([1]).all()  # and goes on to work

    results_of(3, f)


def test_ranks_that_do_something_else():
    def f(group):
        odd = group.rank == 1
        with pytest.raises(ValueError, match="calls unique float64|calls unique int64"):
            distributed.unique(np.zeros(3, "f8" if odd else "i8"), group=group)
        with pytest.raises(ValueError, match="rank . calls Map int64 int64"):
            distributed.unique([1], group=group) if odd else distributed.Map([1], [1], group=group)
        assert distributed.unique([1], group=group).tolist() == ([1] if group.rank == 0 else [])

    results_of(2, f)


def test_a_rank_that_is_gone():
    def f(group):
        table = distributed.Map(np.arange(10), np.arange(10), group=group)
        if group.rank == 1:
            raise KeyError("the end")
        with pytest.raises(ConnectionError, match="is gone"):
            table.find([1])
        with pytest.raises(RuntimeError, match=f"rank {group.rank} cannot go on"):
            table.find([1])
        return "ended"

    gone = on_ranks(3, f)
    assert isinstance(gone[1], KeyError) and gone[0] == gone[2] == "ended"


def test_groups_that_there_are_not():
    with pytest.raises(ValueError, match="rank 3 of 3"):
        distributed.Group(3, 3, print, print)
    with pytest.raises(ValueError, match="65 shards"):
        distributed.Group(0, 65, print, print)
    with pytest.raises(TypeError, match="None is not a function"):
        distributed.Group(0, 1, print, None)
    with pytest.raises(ValueError, match="deadline=0"):
        distributed.Group(0, 1, print, print, deadline=0)
    if importlib.util.find_spec("torch"):
        with pytest.raises(RuntimeError, match="init_process_group"):
            distributed.unique([1])


def test_memory_stays_flat():
    alone = distributed.Group(0, 1, lambda mine, all: np.copyto(all, mine), print)
    keys = np.arange(1000)
    counts = sys.getrefcount(keys), sys.getrefcount(alone)
    for _ in range(300):
        table = distributed.Map(keys, keys, group=alone)
        table.find(keys), table.items(), distributed.unique(keys, group=alone)
    del table
    assert (sys.getrefcount(keys), sys.getrefcount(alone)) == counts


def gpus():
    if not importlib.util.find_spec("torch"):
        return 0
    import torch

    return torch.cuda.device_count()


def torchrun(size, *arguments):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={size}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


# On as many GPUs as there are: each process has one of its own.
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
@pytest.mark.parametrize("size", sorted({2, *range(1, gpus() + 1)}))
def test_processes_of_torch(size):
    done = torchrun(size, pathlib.Path(__file__).parents[2] / "examples" / "distributed.py")
    assert f"of {size} on {'cuda' if size <= gpus() else 'cpu'}" in done.stdout
    assert done.stdout.count(": right") == size


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
def test_bench():
    size = max(2, gpus())
    device = "cuda" if gpus() >= size else "cpu"
    done = torchrun(size, "-m", "roost.bench", "--rows", "1000", "--repeats", "1", "--device", device)
    assert f"{size} processes, 1000 rows of torch.int32 each" in done.stdout
    assert "| join | 0." in done.stdout and "wrong" not in done.stdout
