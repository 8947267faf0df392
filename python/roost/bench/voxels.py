"""A layer over voxels beside torch's dense convolution, at several shares of voxels that are there."""

import time

import torch

from .. import sparse


def _milliseconds(function, device, repeats):
    """The result of a function, and the shortest time that it took."""
    best = float("inf")
    for _ in range(repeats + 1):  # the first warms up
        result = None
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return result, best * 1e3


def main(device, grid, channels, repeats):
    """A submanifold layer of 3 x 3 x 3 offsets on a grid, checked by the dense one (cuDNN's on a GPU)."""
    dtype = torch.float16 if device == "cuda" else torch.float32
    where = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(
        f"{where}, torch {torch.__version__}: a layer of {channels} to {channels} channels of {dtype} on a"
        f" grid of {grid}^3; milliseconds\n\n"
        "| voxels there | voxels | roost, map cached | roost, index and map made | torch, dense |\n"
        "|---|---|---|---|---|"
    )
    generator = torch.Generator(device).manual_seed(1)
    weight = torch.randn(channels, channels, 3, 3, 3, device=device, generator=generator) / channels
    weight = weight.to(dtype)
    by_offset = weight.permute(2, 3, 4, 1, 0).contiguous()
    order = torch.randperm(grid**3, device=device, generator=generator)
    bad = 0
    for percent in (0.1, 1, 2, 5, 10, 20, 50, 100):
        chosen = order[: max(1, int(grid**3 * percent / 100))]
        places = (chosen // grid**2, chosen // grid % grid, chosen % grid)
        coordinates = torch.stack([torch.zeros_like(chosen), *places], dim=1).to(torch.int32)

        def made(coordinates=coordinates):
            index = sparse.CoordinateIndex(coordinates)
            return index, sparse.kernel_map(index)

        index, map = made()
        rows = index.rows_of_input()
        given = torch.randn(len(chosen), channels, device=device, generator=generator).to(dtype)
        features = torch.empty_like(given)
        features[rows] = given
        volume = torch.zeros(1, channels, grid, grid, grid, dtype=dtype, device=device)
        volume[0][(slice(None), *places)] = given.T

        with torch.no_grad():
            result, cached = _milliseconds(
                lambda: sparse.sparse_conv(map, features, by_offset), device, repeats
            )
            _, rebuilt = _milliseconds(
                lambda: sparse.sparse_conv(made()[1], features, by_offset), device, repeats
            )
            dense, full = _milliseconds(
                lambda: torch.nn.functional.conv3d(volume, weight, padding=1), device, repeats
            )
        expected = dense[0][(slice(None), *places)].T
        tolerance = 2e-2 if dtype == torch.float16 else 1e-4
        wrong = not torch.allclose(result[rows], expected, rtol=tolerance, atol=tolerance)
        bad += wrong
        print(
            f"| {percent} % | {len(chosen)} | {cached:.3f} | {rebuilt:.3f} | {full:.3f}"
            f"{' (another answer!)' if wrong else ''} |",
            flush=True,
        )
    return 1 if bad else 0
