"""Compares the solids of `roost voxels` with those of manifold3d, voxel by voxel, over random turns.

    compare_manifold.py PATH_OF_ROOST [ROUNDS]

Both get the same corners, in 1/256 of a voxel. Manifold's solids are cut into layers at the centres of
voxels, and each centre is asked whether it is inside. A voxel may differ only if its centre is within 10^-3
of a voxel of the surface: there Manifold says both of points that far around it.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from manifold3d import Manifold, Mesh
from read_voxels import read_binvox

sys.path.append(str(Path(__file__).parents[2] / "apps" / "bench"))
from solids import ball, ring

rng = np.random.default_rng(20)


def box():
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * [1, 0.7, 0.5]
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return corners, np.array([[q[0], q[i], q[i + 1]] for q in quads for i in (1, 2)])


def turn(axis, degrees):
    """Rodrigues' formula."""
    axis = np.array(axis) / np.linalg.norm(axis)
    a = np.radians(degrees)
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(a) * k + (1 - np.cos(a)) * k @ k


def inside(solid, points):
    """Which points [i, 3] with one z are inside: crossings of rays along x with the layer's polygons."""
    result = np.zeros(len(points), bool)
    for polygon in solid.slice(float(points[0, 2])).to_polygons():
        for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, 0)):
            hit = (points[:, 1] >= min(y0, y1)) & (points[:, 1] < max(y0, y1))
            x = x0 + (points[hit, 1] - y0) * (x1 - x0) / (y1 - y0)
            result[hit] ^= x > points[hit, 0]
    return result


def compare(roost, name, meshes, op, side):
    """How many voxels there are, and how many differ."""
    for i, (corners, faces) in enumerate(meshes):
        with open(f"{i}.obj", "w") as file:
            file.writelines("v {:.9g} {:.9g} {:.9g}\n".format(*c) for c in corners)
            file.writelines("f {} {} {}\n".format(*(f + 1)) for f in faces)
    axis, move = rng.normal(size=3).round(3), rng.uniform(-0.3, 0.3, 3).round(3)
    degrees, size = round(rng.uniform(0, 360), 2), round(rng.uniform(0.5, 1.1), 2)
    how = "rotate {} {} {} {} move {} {} {} scale {}".format(*axis, degrees, *move, size)
    done = subprocess.run(
        [
            roost,
            "voxels",
            "0.obj",
            "1.obj",
            "--place-b",
            how,
            "--op",
            op,
            "--grid",
            str(side),
            "--place",
            "host",
            "--reps",
            "1",
            "--format",
            "json",
            "--export",
            "a.binvox",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert all(m["open_edges"] == m["turned_edges"] == 0 for m in told["meshes"]), (name, told)
    ours, where, length = read_binvox(Path("a.binvox"))

    # The same corners in 1/256 voxel.
    corners = [np.float32(c).astype(float) for c, _ in meshes]
    extent = lambda c: (c.min(0), c.max(0))
    low, high = extent(corners[1])
    centre, unit = (low + high) / 2, (np.subtract(*extent(corners[0])[::-1])).max()
    corners[1] = (corners[1] - centre) @ (size * turn(axis, degrees)).T + centre + move * unit
    steps = [np.floor((c - where) / length * side * 256 + 0.5) for c in corners]
    solids = [Manifold(Mesh(s.astype(np.float32), f.astype(np.uint32))) for s, (_, f) in zip(steps, meshes)]
    for solid in solids:
        assert solid.status().name == "NoError" and solid.volume() > 0, (name, solid.status())
    a, b = solids
    result = (
        {"union": a + b, "intersection": a ^ b, "difference": a - b}[op] if op != "xor" else (a - b) + (b - a)
    )

    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    wrong = near = 0
    for z in range(side):
        centres = np.stack([256 * x.ravel() + 128, 256 * y.ravel() + 128, np.full(x.size, 256 * z + 128)], -1)
        differ = np.flatnonzero(inside(result, centres + [0.03, 0.02, 0.05]) != ours[:, :, z].ravel())
        if not len(differ):
            continue
        around = [
            inside(result, centres[differ] + 0.25 * np.array(d))
            for d in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
        ]
        on_surface = np.any(around, 0) & ~np.all(around, 0)
        near += int(on_surface.sum())
        wrong += int((~on_surface).sum())
    print(f"{name:12} {op:12} {side:3}: {int(ours.sum()):7} voxels, {wrong} differ, {near} at the surface")
    return wrong


def main():
    roost, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rough = lambda u, v: 0.2 * (np.sin(3 * u) * np.sin(4 * v) + np.cos(2 * u + 5 * v))
    shapes = {"ball": ball(40, 20, lambda u, v: 0 * u), "rough ball": ball(36, 24, rough)}
    shapes |= {"ring": ring(30, 16, 1, 0.4), "box": box()}
    names = list(shapes)
    wrong = 0
    for k in range(rounds):
        for i, op in enumerate(("union", "intersection", "difference", "xor")):
            pair = names[(i + k) % 4], names[(i * 3 + k + k // 4 + 1) % 4]
            wrong += compare(
                roost,
                "/".join(n.split()[0] for n in pair),
                [shapes[n] for n in pair],
                op,
                int(rng.integers(20, 60)),
            )
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
