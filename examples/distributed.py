"""Tables of several processes: visits to a site, logged by several servers.

    torchrun --nproc-per-node 4 examples/distributed.py
    python examples/distributed.py                       # starts two processes itself

Each process makes its part of the data, on a GPU of its own if there are as many, and
checks what it gets.
"""

import os
import subprocess
import sys

import numpy as np
import roost.distributed


def main():
    import torch
    import torch.distributed as dist

    gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    def visits(of):
        return np.random.default_rng(of).integers(0, 40_000, 100_000)  # ids of visitors

    mine = torch.from_numpy(visits(rank)).to(device)
    # The ids whose place this process knows.
    places = torch.arange(rank, 40_000, size, device=device)
    place_of = roost.distributed.Map(places, (places * 7 % 1000).float())
    found = place_of.find(mine, missing=-1.0)  # from all processes
    distinct = roost.distributed.unique(mine)  # that came here first
    left, right = roost.distributed.join(mine, places)  # rows of all processes

    every = np.concatenate([visits(of) for of in range(size)])
    total = [0] * size
    dist.all_gather_object(total, len(distinct))
    known = np.concatenate([np.arange(r, 40_000, size) for r in range(size)])
    right_answers = (
        torch.equal(found, (mine * 7 % 1000).float())
        and sum(total) == len(np.unique(every))
        and np.array_equal(every[left.cpu()], known[right.cpu()])
        and torch.equal(left.cpu(), torch.arange(len(mine)) + rank * len(mine))
    )
    answer = "right" if right_answers else "wrong"
    print(
        f"rank {rank} of {size} on {device}: {answer}, {len(distinct)} came here first"
    )
    dist.barrier()
    dist.destroy_process_group()
    return 0 if right_answers else 1


if __name__ == "__main__":
    if "RANK" in os.environ:
        sys.exit(main())
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    run = [*launcher, "--nproc-per-node=2", __file__]
    sys.exit(subprocess.run(run).returncode)
