"""What only devices have: streams, the memory of libraries, graphs, forks. Skipped where there is no GPU."""

import os
import sys
import threading

import numpy as np
import pytest
import roost
from conftest import LIBRARIES

NAMES = {on.name for on in LIBRARIES}
if "torch-cuda" in NAMES:
    import torch
if "cupy" in NAMES:
    import cupy
needs_torch = pytest.mark.skipif("torch-cuda" not in NAMES, reason="needs torch and a GPU")
needs_cupy = pytest.mark.skipif("cupy" not in NAMES, reason="needs CuPy and a GPU")
LATE = 100_000_000  # cycles: some 50 ms


def returns_before_its_stream(call):
    """Whether a call leaves work on its stream behind. Each try gives a slow host more time; a call that
    waits for its stream leaves none in any."""
    for factor in (1, 8, 64):
        torch.cuda.synchronize()
        torch.cuda._sleep(LATE * factor)
        call()
        if not torch.cuda.current_stream().query():
            torch.cuda.synchronize()
            return True
    return False


@needs_torch
def test_large_results_are_torchs():
    """Their memory is torch's from the start, and roost must not give it back, too."""
    x = torch.arange(1 << 20, device="cuda") % (1 << 19)
    for _ in range(10):
        keys, inverse, counts = roost.unique(x, return_inverse=True, return_counts=True)
        torch.cuda.empty_cache()
        assert torch.equal(keys[inverse], x)
        assert counts.unique().tolist() == [2]


@needs_torch
@pytest.mark.parametrize("n", [1000, 3_000_000])
def test_keys_that_come_late_on_a_side_stream(n):
    expected = torch.arange(n, device="cuda") % (n // 3)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        keys = torch.zeros_like(expected)
        torch.cuda._sleep(LATE)
        keys.copy_(expected)
        values, inverse = roost.unique(keys, return_inverse=True)
        again = values[inverse]  # at once
        sums = roost.group_by(keys).sum(torch.ones_like(keys))
        table = roost.Map(keys, keys * 2)
        torch.cuda._sleep(LATE)
        asked = keys + 0
        found = table.find(asked) + 0
        there = roost.isin(keys, values)
    side.synchronize()
    assert torch.equal(again, expected) and int(sums.sum()) == n
    assert torch.equal(found, 2 * expected) and bool(there.all())


@needs_torch
def test_a_map_changes_on_its_own_stream():
    x = torch.arange(200_000, device="cuda")
    counts = roost.ConcurrentMap("int64", "int64", like=x)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for i in range(12):
        with torch.cuda.stream(streams[i % 3]):
            torch.cuda._sleep(LATE // 20)
            keys = x[i * 1000 :] + 0
            counts.add(keys)
            found = counts.find(keys) + 0
            del keys
            filler = torch.full((200_000,), -1, device="cuda")  # which takes the memory of the keys
            assert int(found.min()) >= 1 and int(filler[0]) == -1
    assert len(counts) == 200_000
    expected = torch.minimum(x // 1000 + 1, torch.tensor(12, device="cuda"))
    assert torch.equal(counts.find(x), expected)


@needs_torch
def test_lookups_do_not_synchronise():
    x = torch.arange(1 << 16, device="cuda")
    index, table, members = roost.Index(x), roost.Map(x, x), roost.Set(x)
    y = x % 7
    pairs = roost.Index((x, y))
    torch.cuda.synchronize()
    for call in (
        lambda: index.get_indexer(x),
        lambda: table.find(x),
        lambda: members.contains(x),
        lambda: pairs.get_indexer((x, y)),
    ):
        assert returns_before_its_stream(call)
    assert not returns_before_its_stream(lambda: roost.unique(x))  # somebody must know how many there are


@needs_torch
def test_lookups_in_a_graph():
    x = torch.arange(1 << 20, device="cuda") * 7
    table, index = roost.Map(x, x.float()), roost.Index(x)
    queries = torch.zeros(1 << 20, dtype=torch.int64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        table.find(queries), index.get_indexer(queries)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, rows = table.find(queries, missing=-1), index.get_indexer(queries)
    for step in (1, 7):
        queries.copy_(torch.arange(1 << 20, device="cuda") * step)
        graph.replay()
        there = queries % 7 == 0
        there &= queries < 7 << 20
        assert torch.equal(values, torch.where(there, queries.float(), -1.0))
        assert torch.equal(rows, torch.where(there, queries // 7, -1))


@needs_torch
def test_results_are_of_torchs_memory():
    x = torch.arange(1 << 22, device="cuda")
    roost.unique(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    result = roost.unique(x)
    assert torch.cuda.memory_allocated() - before == result.nbytes
    table = roost.Map(x, x)
    assert torch.cuda.memory_allocated() - before > result.nbytes + table.nbytes // 2
    del result, table
    assert torch.cuda.memory_allocated() == before


@needs_cupy
def test_results_are_of_cupys_memory():
    x, pool = cupy.arange(1 << 22), cupy.get_default_memory_pool()
    roost.unique(x)
    before = pool.used_bytes()
    result = roost.unique(x)
    assert pool.used_bytes() - before == result.nbytes
    del result
    assert pool.used_bytes() == before


@needs_torch
def test_memory_stays_flat():
    x, odd = torch.arange(100, device="cuda") % 7, torch.arange(300_000, device="cuda") % 1001

    def calls(n):
        for _ in range(n):
            roost.unique(x, return_inverse=True, return_counts=True)
            roost.Map(x, x).find(x)
        for _ in range(n // 20):
            roost.unique(odd, return_inverse=True, sorted=True)
            roost.Map(odd, odd).find(odd)
            roost.group_by(odd).sum(odd)

    def free():
        torch.cuda.synchronize()
        return torch.cuda.mem_get_info()[0]

    calls(300)
    device, of_torch, references = free(), torch.cuda.memory_allocated(), sys.getrefcount(x)
    calls(2000)
    assert torch.cuda.memory_allocated() == of_torch and sys.getrefcount(x) == references
    assert device - free() < 64 << 20


@needs_torch
def test_a_store_that_is_larger_than_its_budget(tmp_path):
    n, budget = 400_000, 4 << 20
    keys = torch.randperm(n, device="cuda") * 17
    rows = (keys[:, None] * torch.arange(1, 17, device="cuda")).float()
    store = roost.Store("int64", "float32", 16, budget=budget, like=keys)
    for some, theirs in zip(keys.chunk(5), rows.chunk(5)):  # which grows
        assert store.insert(some, theirs) == len(some)
    assert store.memory["cpu"] > 4 * budget and store.memory["device"] < 2 * budget and store.valid()
    asked = torch.cat([keys.flip(0), keys[:1000] + 1])
    expected = torch.cat([rows.flip(0), torch.full((1000, 16), -1.0, device="cuda")])
    assert torch.equal(store.find(asked, missing=-1), expected)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        late = torch.zeros_like(keys)
        torch.cuda._sleep(LATE)
        late.copy_(keys)
        assert torch.equal(store.find(late) + 0, rows)
        assert store.erase(late[: n // 2]) == n // 2
    store.save(tmp_path / "store")
    for like in (keys, None):
        copy = roost.Store.load(tmp_path / "store", "int64", "float32", 16, budget=budget, like=like)
        assert len(copy) == n - n // 2 and copy.valid()
        rest = copy.find(keys[n // 2 :] if like is not None else keys[n // 2 :].cpu())
        assert torch.equal(rest.cpu(), rows[n // 2 :].cpu())


@needs_torch
def test_too_little_memory_is_a_memory_error():
    x = torch.arange(1 << 24, device="cuda")
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (100 << 20)) / total)
    try:
        with pytest.raises(MemoryError, match="no memory for") as caught:
            roost.unique(x, return_inverse=True)
        assert "\n" not in str(caught.value)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert len(roost.unique(x)) == len(x)


@needs_torch
@needs_cupy
def test_cupys_streams_and_a_table_of_torch():
    x = torch.arange(100_000, device="cuda")
    table = roost.Map(x, x * 3)
    torch.cuda.synchronize()
    y = cupy.arange(100_000)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.wait_event(cupy.cuda.get_current_stream().record())
        keys = (y + 5) % 100_000
        found = table.find(keys) - 3 * keys
        assert isinstance(found, cupy.ndarray)
        unique = roost.unique(keys, sorted=True)
        stream.synchronize()
    assert int(abs(found).max()) == 0 and bool((unique == y).all())
    with pytest.raises(ValueError, match="one library"):
        roost.isin(x, y)


@needs_cupy
@pytest.mark.parametrize("dtype", ["i2", "f8", "c16"])
def test_views_that_are_not_aligned_are_refused(dtype):
    """A kernel that read them would end CUDA for the process."""
    bytes, keys, size = cupy.zeros(1000, np.uint8), cupy.arange(20), np.dtype(dtype).itemsize
    shifted, aligned = (bytes[i : i + 20 * size].view(dtype) for i in (1, 8))

    class View:
        __cuda_array_interface__ = shifted.__cuda_array_interface__

    class Masked:
        __cuda_array_interface__ = {**aligned.__cuda_array_interface__, "mask": keys}

    strided = cupy.ndarray((20,), dtype, bytes.data, strides=(size + 1,))
    for x in (shifted, strided, View(), shifted[::-1]):
        for call in (roost.Map, roost.MultiMap, lambda keys, x: roost.group_by(keys).first(x)):
            with pytest.raises(ValueError, match="not aligned"):
                call(keys, x)
    with pytest.raises(ValueError, match="not aligned"):
        roost.gather(shifted, keys)
    with pytest.raises(TypeError, match="with a mask"):
        roost.Map(keys, Masked())

    class Swapped:
        __cuda_array_interface__ = {**aligned.__cuda_array_interface__, "typestr": ">" + dtype}

    with pytest.raises((TypeError, ValueError)):
        roost.Map(keys, Swapped())
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(1000), np.uint8)
    for rows in (pinned[1 : 1 + 20 * size].view(dtype), pinned[: 20 * size].view(">" + dtype)):
        with pytest.raises(ValueError, match="aligned"):
            roost.gather(rows, keys)
    assert not roost.Map(keys, aligned).find(keys).any()  # CUDA still works


@needs_torch
def test_threads_with_streams_of_their_own():
    x = torch.arange(500_000, device="cuda")
    table, wrong = roost.Map(x, x * 2), []
    torch.cuda.synchronize()

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(20):
                keys = (x * (seed + 1) + i) % 77_777
                if not torch.equal(table.find(keys), 2 * keys):
                    wrong.append("find")
                values, inverse = roost.unique(keys, return_inverse=True)
                if not torch.equal(values[inverse], keys):
                    wrong.append("unique")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_torch
def test_more_than_2_to_the_31_elements():
    if torch.cuda.mem_get_info()[0] < 60 << 30:
        pytest.skip("needs 60 GiB")
    n = (1 << 31) + 5
    x = torch.zeros(n, dtype=torch.int8, device="cuda")
    x[-1] = 3
    assert roost.unique(x, sorted=True).tolist() == [0, 3]
    found = roost.isin(x, torch.tensor([3], dtype=torch.int8, device="cuda"))
    assert int(found.sum()) == 1 and bool(found[-1])
    with pytest.raises(OverflowError, match="index_dtype"):
        roost.unique(x, return_inverse=True, index_dtype="int32")
    del found, x
    torch.cuda.empty_cache()
    roost.trim()


@needs_torch
def test_a_forked_child_is_told():
    x = torch.arange(10, device="cuda")
    roost.unique(x)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            roost.unique(x)
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(read, 1000)


def test_info_counts_devices():
    info = roost.info()
    assert info["devices"] == 0 or info["cuda"]
    if {"torch-cuda", "cupy"} & NAMES:
        assert info["devices"] >= 1


def test_numpy_is_not_for_gpus():
    class OnGpu:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (0, False), "version": 3}

    if not {"torch", "torch-cuda", "cupy"} & NAMES:
        with pytest.raises(TypeError, match="import cupy or torch"):
            roost.unique(OnGpu())
    assert np.array_equal(roost.unique(np.array([2, 1]), sorted=True), [1, 2])


@needs_torch
def test_bench(tmp_path, capsys):
    """roost.bench --device cuda ends, finds all answers right, and writes what scripts/plot draws."""
    from roost import bench

    file = tmp_path / "rates.csv"
    options = ["--device", "cuda", "--rows", "1000", "3000", "--repeats", "1", "--csv", str(file)]
    assert bench.main(options) == 0
    assert "another" not in capsys.readouterr().out
    lines = file.read_text().splitlines()
    assert len(lines) > 50 and {line.split(",")[-2] for line in lines[1:]} == {"ok"}
