"""Measures roost.solids beside manifold3d and trueform, which compute exact meshes: one solid minus another.

    python apps/bench/solids.py [--sizes 1000 10000 100000 1000000] [--grids 128 256 512] [--runs 5]

Packages that are not there are left out. Both meshes, a bumpy ball and a ring that goes through it, have
about as many triangles as the size says. A run goes from arrays of corners and triangles to the volume of the
result, and `mesh` to the arrays of its mesh as well; the programs take turns, and the least time is printed:
milliseconds from begin to end, and in brackets of the processors. `off` is how far the volume is from that of
the first exact one. The exact programs must agree to 10^-6, and voxels to a voxel around the surface.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import sys
import time

import numpy as np


def grid_mesh(points, wraps):
    """Triangles of rings of points [u, v]: closed along u, and along v or open there."""
    n, m, _ = points.shape
    at = np.arange(n * m).reshape(n, m)
    quads = np.stack([at, np.roll(at, -1, 0), np.roll(np.roll(at, -1, 0), -1, 1), np.roll(at, -1, 1)], -1)
    quads = (quads if wraps else quads[:, :-1]).reshape(-1, 4)
    return points.reshape(-1, 3), np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def ball(n, m, bumps):
    """A sphere of n times m corners, of radius 1 + bumps(u, v), with one vertex for each pole."""
    u, v = np.meshgrid(np.arange(n) * 2 * np.pi / n, np.arange(1, m) * np.pi / m, indexing="ij")
    at = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1)
    corners, faces = grid_mesh((1 + bumps(u, v))[..., None] * at, False)
    first, last = np.arange(n) * (m - 1), np.arange(n) * (m - 1) + m - 2
    top, bottom = len(corners), len(corners) + 1
    caps = [
        np.stack([np.full(n, top), first, np.roll(first, -1)], -1),
        np.stack([np.full(n, bottom), np.roll(last, -1), last], -1),
    ]
    return np.concatenate([corners, [[0, 0, 1], [0, 0, -1]]]), np.concatenate([faces[:, ::-1], *caps])


def ring(n, m, radius, tube):
    """A torus of n times m corners around the z axis."""
    u, v = np.meshgrid(np.arange(n) * 2 * np.pi / n, np.arange(m) * 2 * np.pi / m, indexing="ij")
    far = radius + tube * np.cos(v)
    return grid_mesh(np.stack([far * np.cos(u), far * np.sin(u), tube * np.sin(v)], -1), True)


def bumpy_ball(triangles):
    n = max(8, round(triangles**0.5))
    return ball(n, max(4, n // 2), lambda u, v: 0.1 * np.sin(3 * u) * np.sin(4 * v) * np.sin(v))


def turned_ring(triangles):
    """No face lies along an axis."""
    n = max(8, round((1.5 * triangles) ** 0.5))
    corners, faces = ring(n, max(6, n // 3), 0.8, 0.35)
    a, b = np.radians(20), np.radians(35)
    x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    return corners @ (x @ y).T + [0.31, 0.17, 0.23], faces


def with_roost(grid):
    import roost.solids

    def run(meshes, wants_mesh):
        solid = roost.solids.difference(meshes, grid=grid)
        if wants_mesh:
            solid.mesh()
        return solid.volume

    return run


def with_manifold():
    from manifold3d import Manifold, Mesh64

    def run(meshes, wants_mesh):
        a, b = (Manifold(Mesh64(at, faces.astype(np.uint64))) for at, faces in meshes)
        result = a - b
        volume = result.volume()
        if wants_mesh:
            made = result.to_mesh64()
            np.asarray(made.vert_properties), np.asarray(made.tri_verts)
        return volume

    return run


def with_trueform():
    import trueform

    def run(meshes, wants_mesh):
        a, b = (trueform.Mesh(faces.astype(np.int32), at) for at, faces in meshes)
        (faces, points), *_ = trueform.boolean_difference(a, b)
        return float(trueform.signed_volume((faces, points)))  # its result is a mesh in any case

    return run


def measure(run, meshes, wants_mesh):
    begin, cpu = time.perf_counter(), time.process_time()
    volume = run(meshes, wants_mesh)
    return 1e3 * (time.perf_counter() - begin), 1e3 * (time.process_time() - cpu), volume


def compare(triangles, programs, exact, options):
    meshes = [bumpy_ball(triangles), turned_ring(triangles)]
    counts = " and ".join(str(len(faces)) for _, faces in meshes)
    runs = {(name, mesh): [] for name in programs for mesh in (False, True)}
    for _ in range(options.runs):
        for (name, mesh), found in runs.items():
            found.append(measure(programs[name], meshes, mesh))
    volumes = {name: runs[name, False][0][2] for name in programs}
    right = next((volumes[name] for name in exact), None)
    for name in programs:
        cells = []
        for mesh in (False, True):
            elapsed, cpu, _ = map(min, zip(*runs[name, mesh]))
            cells.append(f"{elapsed:.1f} ({cpu:.1f})")
        off = abs(volumes[name] / right - 1) if right else 0
        if off > (1e-6 if name in exact else 6 / options.grids[0]):
            sys.exit(f"{name}: the volume is {volumes[name]}, and {right} was expected")
        print(f"| {counts} | {name} | {cells[0]} | {cells[1]} | {off:.0e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--grids", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    there = [name for name in ("roost", "manifold3d", "trueform") if importlib.util.find_spec(name)]
    programs = {}
    if "roost" in there:
        programs |= {f"roost, {grid}^3": with_roost(grid) for grid in options.grids}
    exact = {
        name: make()
        for name, make in (("manifold3d", with_manifold), ("trueform", with_trueform))
        if name in there
    }
    programs |= exact
    print(f"{os.cpu_count()} threads;", ", ".join(f"{n} {importlib.metadata.version(n)}" for n in there))
    print("| triangles | | volume | volume and mesh | off |\n|---|---|---|---|---|")
    for triangles in options.sizes:
        compare(triangles, programs, exact, options)


if __name__ == "__main__":
    main()
