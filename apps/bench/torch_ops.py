"""The operators of roost.torch on rows and ids beside torch's own.

    python3 apps/bench/torch_ops.py [--quick] [--only NAME] [--json FILE]

Each row of the table is one call, from the call until the GPU is done, the median of several, torch's and
ours in turn on the same tensors. In the rows of CUDA graphs both sides are captured, and a replay is timed;
torch's operators that cannot be captured are called. Values are checked beside torch's in double precision or
exactly. Needs a GPU with 24 GB, torch, and roost's module for GPUs. --device cpu checks the program alone.
"""

import argparse
import json
import statistics
import time

import roost.torch as rt
import torch


class Clock:
    """Times calls on a device."""

    def __init__(self, device, runs):
        self.device, self.runs = device, runs

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def once(self, call):
        self.wait()
        begin = time.perf_counter()
        call()
        self.wait()
        return (time.perf_counter() - begin) * 1e3

    def both(self, ours, theirs):
        """Medians in milliseconds, of calls in turn."""
        for call in (ours, theirs) * 3:
            call()
        times = [(self.once(ours), self.once(theirs)) for _ in range(self.runs)]
        return tuple(statistics.median(side) for side in zip(*times, strict=True))

    def captured(self, call):
        """A call that replays what a call did."""
        if self.device.type != "cuda":
            return call
        for _ in range(3):
            call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph.replay


def uniform(m, n, device):
    return torch.randint(0, n, (m,), device=device)


def skewed(m, n, device):
    return (torch.rand(m, device=device, dtype=torch.float64) ** 8 * n).to(torch.int64)


def near(got, expected, terms):
    """Whether floats are as near as the order of a sum lets them be."""
    scale = torch.finfo(got.dtype).eps * max(float(expected.abs().max()), 1.0)
    worst = float((got.double() - expected).abs().max())
    assert worst <= 4 * scale * terms**0.5, f"{worst} away"


def index_add(clock, log_m, width, log_n, ids, dtype):
    m, n = 1 << log_m, 1 << log_n
    index, source = ids(m, n, clock.device), torch.randn(m, width, device=clock.device).to(dtype)
    zero = torch.zeros(n, width, device=clock.device, dtype=dtype)
    if dtype == torch.float32:
        expected = zero.double().index_add_(0, index, source.double())
        near(rt.index_add(zero, 0, index, source), expected, 32)
        del expected
    first = rt.index_add(zero, 0, index, source)
    assert torch.equal(first, rt.index_add(zero, 0, index, source))
    moved = (m + 2 * n) * width * source.element_size() + 8 * m
    ours = lambda: rt.index_add(zero, 0, index, source)  # noqa: E731
    return *clock.both(ours, lambda: zero.index_add(0, index, source)), moved


def scatter_reduce(clock, log_m, log_n, how):
    m, n = 1 << log_m, 1 << log_n
    index, source = uniform(m, n, clock.device), torch.randn(m, device=clock.device)
    zero = torch.zeros(n, device=clock.device)
    expected = zero.double().scatter_reduce_(0, index, source.double(), how)
    near(rt.scatter_reduce(zero, 0, index, source, how), expected, 32)
    ours = lambda: rt.scatter_reduce(zero, 0, index, source, how)  # noqa: E731
    return *clock.both(ours, lambda: zero.scatter_reduce(0, index, source, how)), 12 * m + 8 * n


def coalesce(clock, log_m):
    m, side = 1 << log_m, 1 << ((log_m + 1) // 2)
    indices = torch.stack([uniform(m, side, clock.device), uniform(m, side, clock.device)])
    values = torch.randn(m, device=clock.device)

    def theirs():
        entries = torch.sparse_coo_tensor(indices, values, (side, side), check_invariants=False)
        return entries.coalesce()

    got, expected = rt.coalesce(indices, values, (side, side)), theirs()
    assert torch.equal(got[0], expected.indices())
    near(got[1], expected.values().double(), 32)
    return *clock.both(lambda: rt.coalesce(indices, values, (side, side)), theirs), 40 * m


def unique(clock, m, different):
    x = torch.randint(0, different, (m,), device=clock.device) * 1_000_003
    expected = torch.unique(x, return_inverse=True, return_counts=True)
    got = rt.unique(x, sorted=True)
    assert all(map(torch.equal, got, expected))
    theirs = lambda: torch.unique(x, return_inverse=True, return_counts=True)  # noqa: E731
    keys, inverse, _ = rt.unique(x)
    assert torch.equal(keys[inverse], x)
    return *clock.both(lambda: rt.unique(x), theirs), 24 * m


def unique_in_a_graph(clock, log_m, by_key):
    m = 1 << log_m
    x = torch.randint(0, m // 2, (m,), device=clock.device) * 1_000_003

    def ours():
        return rt.unique(x, size=m, sorted=by_key, return_counts=False)

    keys, inverse, n = ours()
    assert torch.equal(keys[inverse], x) and n == len(torch.unique(x))
    theirs = lambda: torch.unique(x, return_inverse=True)  # noqa: E731
    return *clock.both(clock.captured(ours), theirs), 24 * m


def relabel(clock, seeds, fanout):
    device = clock.device
    nodes = torch.randperm(10**7, device=device)[:seeds] if device.type == "cuda" else torch.arange(seeds)
    hops = [uniform(seeds * fanout, 10**7, device), uniform(seeds * fanout**2, 10**7, device)]
    everything = torch.cat([nodes, *hops])

    def theirs():  # torch_geometric and others number through a sorted unique
        keys, inverse = torch.unique(everything, return_inverse=True)
        places = torch.arange(len(everything), device=device)
        first = torch.full_like(keys, len(everything)).scatter_reduce_(0, inverse, places, "amin")
        order = first.argsort()
        number = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=device))
        return keys[order], number[inverse]

    size = len(everything)
    got, numbers, n = rt.relabel(nodes, *hops, size=size)
    expected = theirs()
    assert torch.equal(got[:n], expected[0])
    assert torch.equal(torch.cat(numbers), expected[1])
    return *clock.both(lambda: rt.relabel(nodes, *hops, size=size), theirs), 24 * size


def moe(clock, log_m, width, experts):
    m = 1 << log_m
    x = torch.randn(m, width, device=clock.device).to(torch.bfloat16)
    chosen = torch.rand(m, experts, device=clock.device).topk(2)[1]

    def theirs():
        order = chosen.flatten().argsort(stable=True)
        return x.index_select(0, order // 2)

    rows, routes = rt.moe_permute(x, chosen, experts)
    assert torch.equal(rows, theirs())
    near(rt.moe_unpermute(rows, routes).float(), 2 * x.double(), 1 << 16)
    return *clock.both(lambda: rt.moe_permute(x, chosen, experts), theirs), 2 * 2 * rows.numel()


def moe_back(clock, log_m, width, experts):
    m = 1 << log_m
    x = torch.randn(m, width, device=clock.device).to(torch.bfloat16)
    chosen = torch.rand(m, experts, device=clock.device).topk(2)[1]
    rows, routes = rt.moe_permute(x, chosen, experts)
    theirs = lambda: rows[routes.rows].sum(1)  # noqa: E731
    return *clock.both(lambda: rt.moe_unpermute(rows, routes), theirs), 2 * (rows.numel() + x.numel())


def rows(quick):
    """What is measured: a name, and a call that takes a Clock."""
    less = 8 if quick else 0
    for dtype in (torch.float32, torch.bfloat16):
        for log_m, width in ((22, 64), (20, 128)):
            for log_n in (16, 20):
                for ids in (uniform, skewed):
                    name = f"index_add 2^{log_m} x {width} into 2^{log_n}, {ids.__name__}, {str(dtype)[6:]}"
                    given = log_m - less, width, log_n - less, ids, dtype
                    yield name, lambda clock, given=given: index_add(clock, *given)
    for how in ("sum", "amax", "mean"):
        yield (
            f"scatter_reduce 2^24 into 2^20, {how}",
            lambda clock, how=how: scatter_reduce(clock, 24 - less, 20 - less, how),
        )
    for log_m in (24, 20):
        yield f"coalesce 2^{log_m}", lambda clock, log_m=log_m: coalesce(clock, log_m - less)
    yield "unique of 23 M, 10^6 different", lambda clock: unique(clock, 23_000_000 >> less, 10**6 >> less)
    for log_m in (12, 16, 20):
        for by_key in (False, True):
            name = f"unique(size=) 2^{log_m}{', sorted' if by_key else ''}, graph"
            given = max(log_m - less, 6), by_key
            yield name, lambda clock, given=given: unique_in_a_graph(clock, *given)
    yield "relabel of 8,192 x 16 x 16", lambda clock: relabel(clock, 8192 >> less, 16)
    yield "moe_permute 2^17 x 4096 bfloat16, 2 of 64", lambda clock: moe(clock, 17 - less, 4096 >> less, 64)
    yield "moe_unpermute", lambda clock: moe_back(clock, 17 - less, 4096 >> less, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to check the program")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(0)
    clock, figures = Clock(device, options.runs), []
    where = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU"
    less = ", sizes divided by 256" if options.quick else ""
    print(f"roost, torch {torch.__version__}, {where}: ms, call to done, median of {options.runs}{less}\n")
    torch.sparse.check_sparse_tensor_invariants.disable()
    print("| | roost ms | torch ms | ratio | GB/s of roost |\n|---|---|---|---|---|")
    for name, measure in rows(options.quick):
        if options.only not in name:
            continue
        ours, theirs, moved = measure(clock)
        rt.check()
        figures.append({"name": name, "roost_ms": ours, "torch_ms": theirs, "bytes": moved})
        print(
            f"| {name} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.2f} | {moved / ours / 1e6:.0f} |",
            flush=True,
        )
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
