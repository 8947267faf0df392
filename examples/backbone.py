"""The backbones of SECOND and CenterPoint, with the numbers that OpenPCDet configures:
voxels of a scan to a picture from above. For spconv itself one import is another.

    python examples/backbone.py [--full] [--device cuda]
"""

import argparse
import time

# import spconv.pytorch as spconv
import roost.spconv.pytorch as spconv
import torch
from torch import nn


def norm(channels):
    return nn.BatchNorm1d(channels, eps=1e-3, momentum=0.01)


def submanifold(inputs, outputs, key):
    conv = spconv.SubMConv3d(inputs, outputs, 3, padding=1, bias=False, indice_key=key)
    return spconv.SparseSequential(conv, norm(outputs), nn.ReLU())


def down(inputs, outputs, key, size=3, stride=2, padding=1):
    conv = spconv.SparseConv3d(
        inputs, outputs, size, stride, padding, bias=False, indice_key=key
    )
    return spconv.SparseSequential(conv, norm(outputs), nn.ReLU())


class Residual(spconv.SparseModule):
    """Two submanifold layers beside the identity."""

    def __init__(self, channels, key):
        super().__init__()
        self.conv1 = spconv.SubMConv3d(channels, channels, 3, padding=1, indice_key=key)
        self.bn1 = norm(channels)
        self.conv2 = spconv.SubMConv3d(channels, channels, 3, padding=1, indice_key=key)
        self.bn2 = norm(channels)

    def forward(self, x):
        y = self.conv1(x)
        y = y.replace_feature(torch.relu(self.bn1(y.features)))
        y = self.conv2(y)
        return y.replace_feature(torch.relu(self.bn2(y.features) + x.features))


class Backbone(nn.Module):
    """VoxelBackBone8x, or VoxelResBackBone8x if `residual`."""

    def __init__(self, channels=4, spatial_shape=(41, 1600, 1408), residual=False):
        super().__init__()
        self.spatial_shape = list(spatial_shape)
        widths, last = (16, 32, 64, 128 if residual else 64), 128

        def stage(number, count):
            width = widths[number - 1]
            if residual:
                return [Residual(width, f"res{number}") for _ in range(2)]
            return [submanifold(width, width, f"subm{number}") for _ in range(count)]

        self.conv_input = submanifold(channels, widths[0], "subm1")
        self.conv1 = spconv.SparseSequential(*stage(1, 1))
        self.conv2 = spconv.SparseSequential(down(16, 32, "spconv2"), *stage(2, 2))
        self.conv3 = spconv.SparseSequential(down(32, 64, "spconv3"), *stage(3, 2))
        self.conv4 = spconv.SparseSequential(
            down(64, widths[3], "spconv4", padding=(0, 1, 1)), *stage(4, 2)
        )
        self.conv_out = down(widths[3], last, "spconv_down2", (3, 1, 1), (2, 1, 1), 0)

    def forward(self, features, coordinates, batch_size):
        """Voxels (batch, z, y, x) to batch x (channels * heights) x y x x."""
        x = spconv.SparseConvTensor(
            features, coordinates, self.spatial_shape, batch_size
        )
        for layer in (self.conv_input, self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x)
        dense = self.conv_out(x).dense()
        return dense.flatten(1, 2)


def scene(spatial_shape, batch_size, voxels):
    """Voxels near a ground that is not flat, at random."""
    depth, height, width = spatial_shape
    batch = torch.arange(voxels) % batch_size
    y, x = torch.randint(height, (voxels,)), torch.randint(width, (voxels,))
    z = (
        depth / 4 * (1 + torch.sin(x / 40) * torch.cos(y / 30))
    ).long() + torch.randint(3, (voxels,))
    found = torch.stack([batch, z.clamp_max(depth - 1), y, x], 1).unique(dim=0)
    return found[torch.randperm(len(found))].int()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="60,000 voxels")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    shape, voxels = ((41, 1600, 1408), 60000) if args.full else ((41, 80, 64), 2000)

    torch.manual_seed(0)
    coordinates = scene(shape, 2, voxels).to(args.device)
    features = torch.randn(len(coordinates), 4, device=args.device)
    for residual in (False, True):
        net = Backbone(4, shape, residual).to(args.device)
        start = time.perf_counter()
        picture = net(features, coordinates, 2)
        picture.square().mean().backward()
        seconds = time.perf_counter() - start
        assert picture.shape == (2, 256, shape[1] // 8, shape[2] // 8)
        assert all(
            each.grad.isfinite().all() and each.grad.any() for each in net.parameters()
        )
        print(f"{len(coordinates)} voxels, there and back in {seconds:.2f} s")


if __name__ == "__main__":
    main()
