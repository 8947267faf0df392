"""Layers of a graph network and of a mixture of experts, with roost.torch.

python3 examples/irregular.py [--device cuda]
"""

import argparse

import roost.torch
import torch


def sample(device):
    """Seeds, and two neighbours of each, by ids of the whole graph."""
    seeds = torch.tensor([7_000_000_000, 12, 500], device=device)
    neighbours = torch.tensor([[12, 90], [500, 90], [90, 31]], device=device)
    return seeds, neighbours


def graph_layer(device):
    """Sums of the features of neighbours, by the numbers of a sample."""
    seeds, neighbours = sample(device)
    nodes, (to, hop) = roost.torch.relabel(seeds, neighbours)
    x = torch.ones(len(nodes), 4, device=device) * torch.arange(
        len(nodes), device=device
    ).view(-1, 1)
    edges = hop.reshape(-1), to.repeat_interleave(2)
    zeros = torch.zeros(len(nodes), 4, device=device)
    sums = roost.torch.index_add(zeros, 0, edges[1], x[edges[0]])
    means = roost.torch.scatter(
        x[edges[0]], edges[1], dim_size=len(nodes), reduce="mean"
    )
    assert nodes.tolist() == [7_000_000_000, 12, 500, 90, 31]
    assert sums[:3, 0].tolist() == [4.0, 5.0, 7.0] and means[2, 0].item() == 3.5
    return sums


def in_a_graph(device):
    """The distinct ids of a batch, in memory of a fixed size."""
    ids = torch.randint(0, 100, (4096,), device=device)
    keys, inverse, counts, n = roost.torch.unique(ids, size=128, fill_value=-1)
    assert torch.equal(keys[inverse], ids) and (keys[n:] == -1).all()
    roost.torch.check()  # waits, and raises an error if a batch had more than 128
    assert counts.sum() == 4096
    return keys, n


def experts(device):
    """Two of four experts for each token."""
    x = torch.randn(100, 16, device=device, requires_grad=True)
    weights, chosen = torch.randn(100, 4, device=device).softmax(1).topk(2)
    rows, routes = roost.torch.moe_permute(x, chosen, 4, capacity=80)
    rows = torch.einsum("erc,ecd->erd", rows, torch.randn(4, 16, 16, device=device))
    y = roost.torch.moe_unpermute(rows, routes, weights)
    y.square().mean().backward()
    assert y.shape == x.shape == x.grad.shape
    return y


def patched(device):
    """The same bits from torch's own operators, and from others that call these."""
    index = torch.randint(0, 10, (10_000,), device=device)
    rows = torch.randn(10_000, 8, device=device)
    with roost.torch.patch():
        sums = torch.zeros(10, 8, device=device).index_add_(0, index, rows)
    assert torch.equal(
        sums, roost.torch.index_add(torch.zeros_like(sums), 0, index, rows)
    )
    return sums


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    device = torch.device(parser.parse_args().device)
    torch.manual_seed(0)
    for run in (graph_layer, in_a_graph, experts, patched):
        run(device)
        print(f"{run.__name__}: right")


if __name__ == "__main__":
    main()
