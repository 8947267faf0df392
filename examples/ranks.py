"""Learns who clicks on what: rows of users and goods are spread over processes.

    torchrun --nproc-per-node 4 examples/ranks.py
    python examples/ranks.py                             # starts two processes itself

Users and goods have hidden kinds, and a user clicks on goods of the same kind. Each
process sees clicks of its own, on a GPU of its own if there are as many. Halfway all
rows are written to a folder, and new tables go on from there.
"""

import os
import subprocess
import sys
import tempfile

import roost.torch
import torch
import torch.distributed as dist

STEPS, BATCH, KINDS = 80, 512, 3


class Features:
    """Ids of several features: of each, bags of some lengths. (Or TorchRec's.)"""

    def __init__(self, bags):
        self._bags = bags  # by name: ids, and the lengths of bags

    def keys(self):
        return list(self._bags)

    def values(self):
        return torch.cat([ids for ids, _ in self._bags.values()])

    def lengths(self):
        return torch.cat([lengths for _, lengths in self._bags.values()])

    def offsets(self):
        return torch.cat([self.lengths().new_zeros(1), self.lengths().cumsum(0)])


def make_bags(device):
    return roost.torch.EmbeddingBagCollection(
        [
            {
                "name": "users",
                "embedding_dim": 8,
                "num_embeddings": 20_000,
                "feature_names": ["user", "friends"],  # which share rows
                "pooling": "mean",
            },
            {"name": "goods", "embedding_dim": 8, "num_embeddings": 5_000},
        ],
        table=roost.torch.ShardedTable,
        optimizer="adagrad",
        lr=0.3,
        initializer=("normal", 0, 0.3),
        device=device,
    )


def clicks(device):
    """Users, two friends of each, goods; and which were clicked."""
    users = (torch.rand(BATCH, device=device) ** 3 * 3000).long()
    goods = (torch.rand(BATCH, device=device) ** 2 * 600).long() << 40
    friends = users + KINDS * torch.randint(1, 9, (2, BATCH), device=device)
    ones = torch.ones_like(users)
    features = Features(
        {
            "user": (users, ones),
            "friends": (friends.T.reshape(-1), 2 * ones),
            "goods": (goods, ones),
        }
    )
    return features, (users % KINDS == (goods >> 40) % KINDS).float()


def compare(device, rank, size):
    """A step of all processes beside that of one table which sees all batches."""
    table = roost.torch.ShardedTable(8, 10_000, optimizer="adam", device=device)
    ids = torch.arange(100, device=device) * (rank + 1)  # of this process
    table(ids).square().sum().backward()  # all processes at once
    one = roost.torch.Table(8, 10_000, optimizer="adam", device=device)
    all_ids = torch.cat([torch.arange(100) * (r + 1) for r in range(size)]).to(device)
    one(all_ids).square().sum().backward()
    torch.testing.assert_close(table.find(ids)[0], one.find(ids)[0])
    assert len(table) == len(one)


def main():
    gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    compare(device, rank, size)

    folder = [tempfile.mkdtemp() if rank == 0 else ""]
    dist.broadcast_object_list(folder)
    bags = make_bags(device)
    losses = []
    for step in range(STEPS):
        features, clicked = clicks(device)
        rows = bags(features)
        users = rows["user"] + rows["friends"]
        score = (users * rows["goods"]).sum(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, clicked)
        (loss / size).backward()  # gradients of all processes are added up
        losses.append(loss.item())
        if step == STEPS // 2:
            for name, table in bags.embedding_bags.items():
                table.snapshot(os.path.join(folder[0], name))
            bags = make_bags(device)
            for name, table in bags.embedding_bags.items():
                table.load(os.path.join(folder[0], name))

    table = bags.embedding_bags["users"]
    here, everywhere = len(table.local), len(table)
    right = sum(losses[-10:]) < 0.8 * sum(losses[:10])
    right = right and abs(here * size - everywhere) < everywhere / 2
    print(
        f"rank {rank} of {size} on {device}: loss {losses[0]:.3f}, "
        f"then {losses[-1]:.3f}; {here} of {everywhere} users here"
    )
    dist.barrier()
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    if "RANK" in os.environ:
        sys.exit(main())
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    run = [*launcher, "--nproc-per-node=2", __file__]
    sys.exit(subprocess.run(run).returncode)
