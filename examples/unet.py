"""Learns to tell spheres, boxes and rings in scenes of voxels: a U-Net of sparse
convolutions, with torch.

    python examples/unet.py [--steps 240] [--device cuda] [--plot unet.png]

Scenes are made up: shapes of any size, turned any way, of which only the surface is
there. The net sees where voxels are and nothing else. The picture shows how the loss
falls, and a scene that it has not seen, by what the net says of each voxel. On two
cores it takes about 25 seconds.
"""

import argparse

import numpy as np
import roost.sparse.nn as nn
import torch

SHAPES = "sphere", "box", "ring"


def shape(rng, kind, points=2500):
    """Points on the surface of a shape, about as large as 1."""
    normal = rng.normal(size=(points, 3))
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if kind == 0:
        return unit
    if kind == 1:
        return (
            0.8 * normal.clip(-1, 1) / abs(normal).max(1, keepdims=True).clip(None, 1)
        )
    circle = normal * [1, 1, 0] / np.linalg.norm(normal[:, :2], axis=1, keepdims=True)
    return 0.75 * circle + 0.3 * unit


def scenes(rng, count, device):
    """A batch: a SparseTensor of ones, and the number of each voxel's shape."""
    voxels, kinds = [], []
    for scene in range(count):
        for kind in rng.integers(0, len(SHAPES), 7):
            turned = shape(rng, kind) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
            at = np.floor(turned * rng.uniform(4, 8) + rng.uniform(0, 48, 3))
            voxels.append(np.insert(at.astype(np.int32), 0, scene, axis=1))
            kinds.append(np.full(len(at), kind))
    voxels = torch.from_numpy(np.concatenate(voxels)).to(device)
    kinds = torch.from_numpy(np.concatenate(kinds)).to(device)
    # Copies become one voxel.
    x = nn.SparseTensor(torch.ones(len(voxels), 1, device=device), voxels)
    kind = torch.zeros(len(x), dtype=torch.int64, device=device)
    kind[x.index.rows_of_input()] = kinds
    return x, kind


def block(before, after, layer=nn.SubmanifoldConv3d, *shape):
    return nn.Sequential(
        layer(before, after, *shape, bias=False),
        torch.nn.BatchNorm1d(after),
        torch.nn.ReLU(),
    )


class UNet(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        pairs = list(zip(channels, channels[1:]))
        self.first = block(1, channels[0])
        self.down = torch.nn.ModuleList(
            nn.Sequential(block(a, b, nn.SparseConv3d, 2, 2), block(b, b))
            for a, b in pairs
        )
        self.up = torch.nn.ModuleList(
            nn.SparseConvTranspose3d(b, a, 2, 2) for a, b in pairs
        )
        self.merge = torch.nn.ModuleList(block(2 * a, a) for a, _ in pairs)
        self.last = torch.nn.Linear(channels[0], classes)

    def forward(self, x):
        x, finer = self.first(x), []
        for down in self.down:
            finer.append(x)
            x = down(x)
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            like = finer.pop()
            # At the voxels that were there on the way down.
            x = merge(nn.cat([up(x, like), like]))
        return self.last(x.features)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plot")
    options = parser.parse_args()
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    net = UNet((16, 32, 64), len(SHAPES)).to(options.device)
    optimizer = torch.optim.Adam(net.parameters())
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.01, total_steps=options.steps
    )

    losses = []
    for _ in range(options.steps):
        x, kind = scenes(rng, 2, options.device)
        loss = torch.nn.functional.cross_entropy(net(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
        losses.append(loss.item())

    net.eval()
    x, kind = scenes(rng, 8, options.device)
    with torch.no_grad():
        said = net(x).argmax(1)
    right = (said == kind).float().mean().item()
    print(
        f"{len(x)} voxels of new scenes, {right:.1%} right; "
        f"loss {losses[0]:.3f}, then {losses[-1]:.3f}"
    )
    assert min(losses[-5:]) < 0.9 * losses[0] and (right > 0.8 or options.steps < 200)
    if options.plot:
        draw(
            options.plot, losses, x.coordinates.cpu().numpy(), said.cpu().numpy(), right
        )


def draw(file, losses, voxels, said, right):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(10, 4.5), constrained_layout=True)
    left = figure.add_subplot(1, 2, 1)
    mean = np.convolve(losses, np.full(10, 0.1), "valid")
    left.plot(losses, color="C0", alpha=0.3, label="a step: two new scenes")
    left.plot(range(9, 9 + len(mean)), mean, color="C0", label="mean of ten steps")
    left.legend(frameon=False)
    left.set(
        xlabel="step",
        ylabel="cross entropy of a voxel",
        ylim=(0, None),
        title="training",
    )
    axes = figure.add_subplot(1, 2, 2, projection="3d")
    one = voxels[:, 0] == 0
    for kind, name in enumerate(SHAPES):
        at = voxels[one & (said == kind), 1:]
        axes.scatter(*at.T, s=4, color=f"C{kind}", label=name, linewidth=0)
    axes.set_aspect("equal")
    axes.legend(loc="upper left", frameon=False, markerscale=3)
    axes.set_title(f"a new scene; {right:.0%} of voxels in new scenes are right")
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
