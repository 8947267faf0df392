"""Measures submanifold layers of roost beside FlexGEMM's, as FlexGEMM's own benchmark does.

    python apps/bench/layers.py [--shapes 1024,64,2 512,128,2 ...] [--rounds 20] [--no-training]

Needs torch and a GPU; FlexGEMM (github.com/JeffreyXiang/FlexGEMM) is measured if Python has it. A shape is
the resolution R, channels and layers: the voxels between R / 2 - 1.25 and R / 2 from the middle of a cube of
side R, 3 x 3 x 3 offsets, with a bias, numbers of 16 bits. A round begins with the voxels and ends with the
last output (forward), or with the gradients of all weights and biases (training), so that a map is part of
each. The median of all rounds is printed, in milliseconds, after two that do not count, in which FlexGEMM
tunes its kernels. Outputs of the first layer and gradients of its weights are compared with sums in double
precision before that: at 64 voxels for 64 numbers each, and for 64 weights.
"""

import argparse
import importlib.util
import statistics

import torch
from roost.sparse import nn

SHAPES = [
    "1024,64,2",
    "512,128,2",
    "256,256,2",
    "128,512,2",
    "64,1024,2",
    "32,1024,4",
    "16,1024,8",
    "8,1024,16",
]


def shell(resolution):
    """The coordinates of the voxels, with a batch number, in the order of the cube's cells."""
    axis = torch.arange(resolution, device="cuda")
    middle = resolution / 2 - 0.5
    parts = []
    for x in axis.split(64):
        cells = torch.stack(torch.meshgrid(x, axis, axis, indexing="ij"), -1).reshape(-1, 3)
        distance = ((cells.float() - middle) ** 2).sum(-1).sqrt()
        parts.append(cells[(distance <= resolution / 2) & (distance >= resolution / 2 - 1.25)])
    cells = torch.cat(parts).int()
    return torch.nn.functional.pad(cells, (1, 0)).contiguous()


def with_roost(coordinates, resolution, channels, layers):
    model = nn.Sequential(*(nn.SubmanifoldConv3d(channels, channels, 3) for _ in range(layers)))
    model = model.cuda().half()

    def forward(features):
        return model(nn.SparseTensor(features, coordinates)).features

    def ordered(features):
        x = nn.SparseTensor(features, coordinates)
        return x.features, x.coordinates  # roost numbers voxels by itself

    return forward, list(model.parameters()), model[0].weight, model[0].bias, ordered


def with_flexgemm(coordinates, resolution, channels, layers):
    from flex_gemm.ops import spconv

    spconv.set_algorithm(spconv.Algorithm.MASKED_IMPLICIT_GEMM_SPLITK)
    bound = (27 * channels) ** -0.5
    shape = torch.Size([1, channels, *[resolution] * 3])

    def parameter(*size):
        values = torch.empty(size, device="cuda").uniform_(-bound, bound)
        return torch.nn.Parameter(values.half())

    weights = [parameter(channels, 3, 3, 3, channels) for _ in range(layers)]
    biases = [parameter(channels) for _ in range(layers)]

    def forward(features):
        cache = None
        for weight, bias in zip(weights, biases):
            features, cache = spconv.sparse_submanifold_conv3d(
                features, coordinates, shape, weight, bias, cache
            )
        return features

    # its weights are (out, k, k, k, in)
    weight = weights[0].permute(1, 2, 3, 4, 0)
    return forward, weights + biases, weight, biases[0], lambda features: (features, coordinates)


def neighbours_of(rows, resolution):
    """27 rows for each row; -1: there is none."""
    side = resolution + 2
    keys = ((rows[:, 1].long() + 1) * side + rows[:, 2] + 1) * side + rows[:, 3] + 1
    sorted_keys, order = keys.sort()
    result = []
    for k in range(27):
        asked = keys + ((k // 9 - 1) * side + k // 3 % 3 - 1) * side + k % 3 - 1
        at = torch.searchsorted(sorted_keys, asked).clamp(max=len(keys) - 1)
        result.append(torch.where(sorted_keys[at] == asked, order[at], -1))
    return torch.stack(result)


def check(name, measured, features, resolution):
    """Compares a layer with sums in double precision."""
    forward, parameters, weight, bias, ordered = measured
    channels = features.shape[1]
    in_order, rows = ordered(features)
    neighbours = neighbours_of(rows, resolution)
    draw = torch.Generator("cuda").manual_seed(1)
    voxels = torch.randint(len(rows), (64,), device="cuda", generator=draw)
    columns = torch.randint(channels, (64,), device="cuda", generator=draw)
    wide = torch.cat([in_order, features.new_zeros(1, channels)])  # at last, row -1
    taken = wide[neighbours[:, voxels]].double()
    by = weight.detach().reshape(27, channels, channels)[:, :, columns].double()
    right = torch.einsum("kvi,kic->vc", taken, by) + bias.detach()[columns].double()
    difference = (forward(features)[voxels][:, columns].double() - right).norm() / right.norm()
    assert difference < 2e-3, f"{name}: outputs of one layer are wrong by {difference}"
    forward(features).backward(torch.ones_like(features))  # of one layer: ones for all outputs
    (gradient,) = (p.grad for p in parameters if p.dim() > 1)
    if gradient.shape[1:4] == (3, 3, 3):  # (out, k, k, k, in)
        gradient = gradient.permute(1, 2, 3, 4, 0)
    gradient = gradient.reshape(27, channels, channels)[:, columns, :1].double()
    chosen = wide[:, columns]
    sums = torch.stack([chosen[row].double().sum(0) for row in neighbours])
    difference = (gradient[..., 0] - sums).norm() / sums.norm()
    assert difference < 2e-3, f"{name}: gradients of weights are wrong by {difference}"


def train(forward, features, parameters):
    for each in parameters:
        each.grad = None
    forward(features).backward(torch.ones_like(features))


def milliseconds(rounds, run, *arguments):
    for _ in range(2):
        run(*arguments)
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run(*arguments)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="R,C,L")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-training", action="store_true")
    options = parser.parse_args()
    libraries = {"roost": with_roost}
    if importlib.util.find_spec("flex_gemm"):
        libraries["FlexGEMM"] = with_flexgemm
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for shape in options.shapes:
        resolution, channels, layers = map(int, shape.split(","))
        coordinates = shell(resolution)
        features = torch.randn(len(coordinates), channels, device="cuda", dtype=torch.half)
        line = [f"{shape:12} {len(coordinates):8} voxels"]
        for name, make in libraries.items():
            check(name, make(coordinates, resolution, channels, 1), features, resolution)
            forward, parameters, *_ = make(coordinates, resolution, channels, layers)
            with torch.no_grad():
                line.append(f"{name}: forward {milliseconds(options.rounds, forward, features):.3f}")
            if not options.no_training:
                line.append(
                    f"training {milliseconds(options.rounds, train, forward, features, parameters):.3f}"
                )
        print(*line, sep="  ", flush=True)


if __name__ == "__main__":
    main()
