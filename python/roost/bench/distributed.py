"""What roost.bench measures under torchrun: roost.distributed."""

import os
import time

import torch
import torch.distributed as dist

import roost
import roost.distributed


class _Meter:
    """Times calls that all processes make together, and prints a row of the table for each."""

    def __init__(self, device, rows, repeats):
        self.device, self.rows, self.repeats, self.bad = device, rows, repeats, 0

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        dist.barrier()

    def __call__(self, operation, function, right):
        best = float("inf")
        for _ in range(self.repeats + 1):  # the first makes the communicator, and takes memory
            result = None  # which need not be there twice
            self.wait()
            start = time.perf_counter()
            result = function()
            self.wait()
            best = min(best, time.perf_counter() - start)
        wrong = torch.tensor([0 if right(result) else 1], device=self.device)
        dist.all_reduce(wrong)
        self.bad += int(wrong)
        if dist.get_rank() == 0:
            rate = self.rows * dist.get_world_size() / best / 1e9
            print(f"| {operation} | {rate:.3f}{' (wrong!)' if int(wrong) else ''} |", flush=True)
        return result


def main(rows, dtype, repeats, on_gpus):
    """`rows` of each process. All answers are checked."""
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    else:
        roost.set_threads(max(1, os.cpu_count() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))))
    dist.init_process_group("nccl" if on_gpus else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    dtype = getattr(torch, dtype)
    if rank == 0:
        where = torch.cuda.get_device_name(device) if on_gpus else "CPU"
        print(f"{size} processes, {rows} rows of {dtype} each, {where}, torch {torch.__version__};")
        print("billions of rows a second, of all together\n\n| operation | rate |\n|---|---|")

    generator = torch.Generator(device).manual_seed(1)  # the same on all
    bits = 31 if dtype is torch.int32 else 62

    def key(number):
        """Different numbers below 2^bits have different keys."""
        return (number * 0x2545F4914F6CDD1D & ((1 << bits) - 1)).to(dtype)

    numbers = torch.randperm(rows * size, generator=generator, device=device)
    mine = torch.arange(rank, rows * size, size, device=device)
    keys, values = key(mine), mine.to(dtype)
    asked = numbers[rank * rows : (rank + 1) * rows].clone()
    del numbers
    queries, absent = key(asked), key(asked + rows * size)
    answers = asked.to(dtype)

    measure = _Meter(device, rows, repeats)
    distributed = roost.distributed
    table = measure("Map", lambda: distributed.Map(keys, values), lambda t: len(t) == rows * size)
    measure("Map.find, present", lambda: table.find(queries), lambda got: torch.equal(got, answers))
    measure("Map.find, absent", lambda: table.find(absent, -1), lambda got: bool((got == -1).all()))
    measure("Map.contains", lambda: table.contains(queries), lambda got: bool(got.all()))
    del table
    measure("unique", lambda: distributed.unique(queries), lambda got: torch.equal(got, queries))

    def joined(got):
        left, right = got
        row = asked[left - rank * rows]  # its number; the row of the right side on its process
        return len(left) == rows and torch.equal(right, row % size * rows + row // size)

    measure("join", lambda: distributed.join(queries, keys), joined)
    dist.destroy_process_group()
    return 1 if measure.bad else 0
