"""A net of spconv with roost.sparse.nn; spconv's side is in docs/coming-from.md."""

import torch
from roost.sparse import nn

# batch, x, y, z
coordinates = torch.tensor(
    [[0, 1, 1, 1], [0, 1, 1, 2], [0, 4, 4, 4]], dtype=torch.int32
)
features = torch.randn(3, 16)

x = nn.SparseTensor(features, coordinates)
net = nn.Sequential(
    nn.SubmanifoldConv3d(16, 32, 3),
    torch.nn.BatchNorm1d(32),
    torch.nn.ReLU(),
    nn.SparseConv3d(32, 64, 3, stride=2, padding=1),
)
y = net(x)
dense = y.dense()

assert y.features.shape[1] == 64 and len(y.features) == len(y.coordinates)
assert dense.shape[1] == 64
print("coming_from_spconv: right")
