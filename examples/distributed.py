"""Tables of several processes: visits to a site, of which each process has those of some servers.

    torchrun --nproc-per-node 4 examples/distributed.py
    python examples/distributed.py                       # starts two processes itself

Each process makes its part of the data, and checks what it gets.
"""

import os
import subprocess
import sys

import numpy as np
import roost.distributed


def main():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    def visits(of):
        return np.random.default_rng(of).integers(0, 40_000, 100_000)  # ids of visitors

    mine = visits(rank)
    places = np.arange(rank, 40_000, size)                             # ids whose place this process knows
    place_of = roost.distributed.Map(places, (places * 7 % 1000).astype("f4"))
    found = place_of.find(mine, missing=-1.0)                          # from all processes
    distinct = roost.distributed.unique(mine)                          # those that came here first
    left, right = roost.distributed.join(mine, places)                 # rows of all processes

    every = np.concatenate([visits(of) for of in range(size)])
    total = [None] * size
    dist.all_gather_object(total, len(distinct))
    known = np.concatenate([np.arange(r, 40_000, size) for r in range(size)])
    right_answers = (
        np.array_equal(found, (mine * 7 % 1000).astype("f4"))
        and sum(total) == len(np.unique(every))
        and np.array_equal(every[left], known[right])
        and np.array_equal(left, np.arange(len(mine)) + rank * len(mine))
    )
    print(f"rank {rank} of {size}: {'right' if right_answers else 'wrong'}, {len(distinct)} came here first")
    dist.barrier()
    dist.destroy_process_group()
    return 0 if right_answers else 1


if __name__ == "__main__":
    if "RANK" in os.environ:
        sys.exit(main())
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", __file__]
    sys.exit(subprocess.run(run).returncode)
