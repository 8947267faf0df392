"""A training step of a table of embeddings, as NVIDIA's recsys-examples (corelib/dynamicemb) measures it.

    python3 apps/bench/embeddings.py [--ids 16777216] [--optimizer adam] [--json FILE]
    python3 apps/bench/embeddings.py --ids 268435456 --rows 41943040 --cache 1.0

Ten features, 104,857 ids each a step from a power law of exponent 1.05 (seed 42), rows of 128 floats, the
optimizer in the backward pass. After a pass over 100 batches to warm up, the same batches are timed by CUDA
events: forward, backward, and forward in evaluation; torch and Python included, a wait after each step. The
table is filled with other keys first. Rows are verified: those of the first step in double precision, those
of the last one against a lookup. Needs a GPU of 28 GB, torch, and roost's module for GPUs.

With --cache, rows lie in pinned memory of the host, and the GPU has room for a share of those that the 100
batches look up. --prefetch brings the rows of the next batch beside the backward pass. --snapshot FILE times
steps while a thread writes the table to a file.

    python3 apps/bench/embeddings.py --insert 8 --rows 134217728

This is HierarchicalKV's test instead: batches of 2^20 different ids with rows of 8 floats, 60 % of them of
the batch before, into a table that is full, so that the others take rows of other ids (LRU; the ids that lose
theirs are remembered). The rows of each batch are then looked up and verified.
"""

import argparse
import itertools
import json
import os
import time

import roost.torch
import torch

TABLES, BATCH, EXPONENT, DIM = 10, 1_048_576 // 10, 1.05, 128


def batches(rows, count):
    """Ids of each step: `count` tensors, feature after feature."""
    torch.cuda.manual_seed(42)
    n, g = rows // TABLES, 1 - EXPONENT
    parts = []
    for _ in range(TABLES):
        x = torch.rand(count * BATCH, dtype=torch.float64, device="cuda")
        ids = (((float(n) ** g - 1) * x + 1) ** (1 / g)).to(torch.int64)
        parts.append(ids.clamp_(max=n - 1).reshape(count, BATCH))
    return list(torch.stack(parts, 1).reshape(count, TABLES * BATCH))


def first_change(optimizer, g):
    """By how much the first step changes rows, over the learning rate: no row has a state before."""
    if optimizer == "sgd":
        return g
    size = g.square().mean(1, keepdim=True).sqrt() if optimizer == "rowwise_adagrad" else g.abs()
    return g / (size + 1e-8)


def verify_first_step(make, ids, features, gradient):
    """One step of a new table against the same in double precision."""
    table = make()
    before = table.find(ids, table=features)[0]
    out = table(ids, table=features)
    assert torch.equal(out.detach(), before), "a forward pass gives other rows than a lookup"
    out.backward(gradient)
    _, number = torch.unique(ids * 16 + features.long(), return_inverse=True)
    sums = torch.zeros(int(number.max()) + 1, DIM, dtype=torch.float64, device="cuda")
    sums.index_add_(0, number, gradient.double())
    change = first_change(table.optimizer, sums[number])
    after = table.find(ids, table=features)[0]
    worst = (after.double() - (before.double() - table.lr * change)).abs().max().item()
    assert worst < 2e-3 * table.lr * max(1.0, change.abs().max().item()), f"rows differ by {worst}"
    return len(sums)


def timed(steps):
    """Milliseconds of each part of each step, mean."""
    total = None
    for step in steps:
        events = step()
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) for a, b in itertools.pairwise(events)]
        total = times if total is None else [t + u for t, u in zip(total, times, strict=True)]
    return [t / len(steps) for t in total]


def write_beside(table, steps, file):
    """How fast a snapshot is written, and milliseconds a step until then, all of it counted."""
    start, count = time.perf_counter(), 0
    written = table.snapshot(file, wait=False)
    copied = time.perf_counter() - start
    while not written.done():
        steps[count % len(steps)]()
        torch.cuda.synchronize()
        count += 1
    written.result()
    seconds = time.perf_counter() - start
    size = os.path.getsize(file)
    os.remove(file)
    return {
        "snapshot_gb": round(size / 1e9, 2),
        "snapshot_gb_a_second": round(size / seconds / 1e9, 2),
        "copied_after_seconds": round(copied, 2),
        "step_ms_beside": round(1000 * seconds / count, 3),
    }


def measure_inserts(dim, rows, calls=20):
    """Inserts into a full table, and lookups, in 2^30 ids a second: of the calls' median times."""
    count, kept = 2**20, 6 * 2**20 // 10
    table = roost.torch.Table(dim, rows, optimizer="sgd", keep_evicted=count, device="cuda")
    table.eval()
    mixed = torch.arange(count, device="cuda") * 0x9E3779B1 % count

    def rows_of(ids):
        return (ids % 2**20).float()[:, None] + torch.arange(dim, device="cuda")

    first = 0
    while first < 1.5 * rows:
        ids = torch.arange(first, first + count, device="cuda")
        table.insert(ids, rows_of(ids))
        first += count
    inserts, finds, evicted = [], [], 0
    for call in range(calls):
        new = torch.arange(first, first + count - kept, device="cuda")
        ids = torch.cat([ids[:kept], new])[(mixed + call) % count]
        given = rows_of(ids)
        table.evicted()
        torch.cuda.synchronize()
        a = event()
        table.insert(ids, given)
        b = event()
        found_rows, found = table.find(ids)
        c = event()
        torch.cuda.synchronize()
        inserts.append(a.elapsed_time(b))
        finds.append(b.elapsed_time(c))
        assert found.all() and torch.equal(found_rows, given), "rows are not those that were inserted"
        evicted += len(table.evicted()[0])
        first += count - kept
    rate = [count / sorted(times)[calls // 2] / 1e-3 / 2**30 for times in (inserts, finds)]
    return {
        "device": torch.cuda.get_device_name(),
        "dim": dim,
        "rows": table.capacity,
        "load": round(len(table) / table.capacity, 5),
        "evicted_a_call": evicted // calls,
        "insert_2^30_a_second": round(rate[0], 3),
        "find_with_rows_2^30_a_second": round(rate[1], 3),
    }


def event():
    made = torch.cuda.Event(enable_timing=True)
    made.record()
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ids", type=int, default=16 * 2**20, help="ids there are")
    parser.add_argument("--rows", type=int, help="of the table; as many as ids")
    parser.add_argument("--cache", type=float, help="rows in the GPU's memory for each id of the batches")
    parser.add_argument("--prefetch", action="store_true")
    parser.add_argument("--optimizer", default="adam", help="one of roost.torch.Table's")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--snapshot", metavar="FILE", help="written while steps go on")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--insert", type=int, metavar="DIM", help="measure inserts into a full table instead")
    wanted = parser.parse_args()
    if wanted.insert:
        print(json.dumps(measure_inserts(wanted.insert, wanted.rows or wanted.ids), indent=1))
        return

    all_ids = batches(wanted.ids, wanted.steps)
    hbm_rows = None
    if wanted.cache is not None:
        every = torch.stack(all_ids).reshape(wanted.steps, TABLES, BATCH).transpose(0, 1)
        hbm_rows = int(wanted.cache * sum(len(torch.unique(of_table)) for of_table in every))

    def make(rows, hbm_rows):
        return roost.torch.Table(
            DIM, rows, optimizer=wanted.optimizer, lr=0.1, features=True, device="cuda", hbm_rows=hbm_rows
        )

    features = torch.arange(TABLES, device="cuda").repeat_interleave(BATCH).to(torch.uint16)
    gradient = torch.randn(TABLES * BATCH, DIM, device="cuda")
    distinct = verify_first_step(lambda: make(2**21, hbm_rows and 2**18), all_ids[0], features, gradient)
    table = make(wanted.rows or wanted.ids, hbm_rows)
    generator = torch.Generator("cuda").manual_seed(1)
    while len(table) < 0.999 * table.capacity:
        with torch.no_grad():
            other = torch.randint(-(2**62), -1, (TABLES * BATCH,), device="cuda", generator=generator)
            table(other, table=features)

    def train(ids, ahead):
        def step():
            a = event()
            out = table(ids, table=features)
            b = event()
            if wanted.prefetch:
                table.prefetch(ahead, table=features)
            out.backward(gradient)
            return a, b, event()

        return step

    def evaluate(ids):
        def step():
            a = event()
            table(ids, table=features)
            return a, event()

        return step

    steps = [train(*ids) for ids in zip(all_ids, all_ids[1:] + all_ids[:1], strict=True)]
    timed(steps)
    forward, backward = timed(steps)
    table.eval()
    (evaluation,) = timed([evaluate(ids) for ids in all_ids])
    rows, found = table.find(all_ids[-1], table=features)
    assert found.all() and torch.equal(table(all_ids[-1], table=features), rows)
    counts = table.counts()
    result = {
        "device": torch.cuda.get_device_name(),
        "optimizer": wanted.optimizer,
        "ids": wanted.ids,
        "rows": table.capacity,
        "hbm_rows": hbm_rows,
        "prefetch": wanted.prefetch,
        "distinct_ids_of_the_first_step": distinct,
        "forward_ms": round(forward, 3),
        "backward_ms": round(backward, 3),
        "step_ms": round(forward + backward, 3),
        "evaluation_ms": round(evaluation, 3),
        "unplaced": counts["unplaced"],
    }
    print(json.dumps(result, indent=1))
    if wanted.snapshot:
        table.train()
        start = time.perf_counter()
        for step in steps:
            step()
            torch.cuda.synchronize()
        print("ms a step:", round(1000 * (time.perf_counter() - start) / len(steps), 3))
        print(json.dumps(write_beside(table, steps, wanted.snapshot), indent=1))
    if wanted.json:
        with open(wanted.json, "w") as out:
            json.dump(result, out)


if __name__ == "__main__":
    main()
