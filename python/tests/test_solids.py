"""Meshes as solids of voxels, against analytic shapes and winding numbers."""

import itertools
import os
import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import roost
from hypothesis import given, settings
from hypothesis import strategies as st
from roost import solids


def box(low=(0, 0, 0), high=(1, 1, 1)):
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))), float)
    faces = [[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5]]
    faces += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    return corners, np.array(faces)


def sphere(radius=1.0, centre=(0, 0, 0), n=24):
    """A closed ball of 2 n (n - 1) triangles."""
    v, u = np.meshgrid(np.arange(1, n) * np.pi / n, np.arange(2 * n) * np.pi / n, indexing="ij")
    ring = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1).reshape(-1, 3)
    at = lambda i, k: i * 2 * n + k % (2 * n)
    top, bottom = len(ring), len(ring) + 1
    faces = [(top, at(0, k), at(0, k + 1)) for k in range(2 * n)]
    faces += [(bottom, at(n - 2, k + 1), at(n - 2, k)) for k in range(2 * n)]
    for i, k in itertools.product(range(n - 2), range(2 * n)):
        faces += [(at(i, k), at(i + 1, k), at(i + 1, k + 1)), (at(i, k), at(i + 1, k + 1), at(i, k + 1))]
    return np.vstack([ring, [0, 0, 1], [0, 0, -1]]) * radius + np.array(centre, float), np.array(faces)


def volume(vertices, faces):
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def winding(mesh, points):
    """How often a surface goes around each point: solid angles (van Oosterom and Strackee 1983)."""
    vertices, faces = mesh
    a, b, c = (vertices[faces[:, k]][None] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    dot = lambda x, y: (x * y).sum(2)
    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return np.arctan2(dot(a, np.cross(b, c)), below).sum(1) / (2 * np.pi)


def expect_closed(faces):
    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    there, n = np.unique(edges[:, 0] << 32 | edges[:, 1], return_counts=True)
    back, m = np.unique(edges[:, 1] << 32 | edges[:, 0], return_counts=True)
    assert (there == back).all() and (n == m).all()
    return len(there) // 2


@pytest.mark.parametrize("grid", [1, 2, 31, 32, 33, 64, 100])
def test_a_box_is_exact(grid):
    solid = solids.voxelize(box((1, 2, 3), (3, 4, 5)), grid)
    assert (solid.count, solid.grid, solid.pitch) == (grid**3, grid, 2 / grid)
    assert solid.origin.tolist() == [1, 2, 3] and solid.matrix.all() and not solid.is_empty
    assert np.isclose(solid.volume, 8) and np.isclose(solid.area, 24)
    assert solid.contains(
        [[1.01, 2.01, 3.01], [2, 3, 4], [0.99, 3, 4], [3.01, 3, 4], [np.inf, 3, 4]]
    ).tolist() == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("grid", [40, 64, 128])
def test_spheres_converge(grid):
    solid = solids.voxelize(sphere(n=60), grid)
    assert abs(solid.volume / (4 / 3 * np.pi) - 1) < 0.4 / grid
    assert abs(solid.area / (4 * np.pi) - 1) < 0.4 / grid
    vertices, faces = solid.mesh()
    assert vertices.dtype == np.float64 and faces.dtype == np.uint32
    edges = expect_closed(faces)
    assert len(vertices) - edges + len(faces) == 2
    assert abs(volume(vertices, faces) / (4 / 3 * np.pi) - 1) < 0.02
    assert abs(np.linalg.norm(vertices, axis=1) - 1).max() < solid.pitch
    stepped, sides = solid.mesh(smooth=False)
    assert np.isclose(volume(stepped, sides), solid.volume)
    expect_closed(sides)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(["union", "intersection", "difference", "xor"]), st.integers(4, 40)
)
def test_voxels_are_those_of_winding_numbers(seed, op, grid):
    draw = np.random.default_rng(seed)
    turn = np.linalg.qr(draw.normal(size=(3, 3)))[0]  # some of them mirror
    place = np.eye(4)
    place[:3, :3] = turn * draw.uniform(0.5, 2)
    place[:3, 3] = draw.uniform(-1, 1, 3)
    a, b = sphere(n=4), box((-0.7, -0.5, -0.3), (0.7, 0.5, 0.3))
    solid = getattr(solids, op)(
        [a, SimpleNamespace(vertices=b[0], faces=b[1])], grid=grid, transforms=[None, place]
    )
    moved = b[0] @ place[:3, :3].T + place[:3, 3], b[1][:, ::-1] if np.linalg.det(turn) < 0 else b[1]
    centres = solid.origin + solid.pitch * (np.indices((grid,) * 3).reshape(3, -1).T + 0.5)
    in_a, in_b = (winding(m, centres) for m in (a, moved))
    sure = (abs(abs(in_a - 0.5) - 0.5) < 0.02) & (abs(abs(in_b - 0.5) - 0.5) < 0.02)
    in_a, in_b = in_a > 0.5, in_b > 0.5
    expected = {
        "union": in_a | in_b,
        "intersection": in_a & in_b,
        "difference": in_a & ~in_b,
        "xor": in_a ^ in_b,
    }[op]
    wrong = (solid.matrix.ravel() != expected) & sure
    # The corners lie in 1/256 of a voxel, so centres that near to a side may differ.
    assert wrong.sum() <= 2 + 0.005 * len(wrong)
    assert (solid.contains(centres) == solid.matrix.ravel()).all()
    assert len(solid.points) == solid.count == solid.matrix.sum()
    expect_closed(solid.mesh()[1])


def test_what_the_result_does_not_need_does_not_make_it_coarser():
    ball = sphere(n=30)
    alone = solids.voxelize(ball, 64)
    for far in (3, 100, 10000):
        for axis in range(3):
            other = box((far,) * 3, (far + 1,) * 3)
            other[0][:, axis] *= -1
            other = other[0], other[1][:, ::-1]
            solid = solids.difference([ball, other], grid=64)
            assert (solid.pitch, solid.count, solid.area) == (alone.pitch, alone.count, alone.area)
    half = solids.difference([ball, box((-1e4, -1e4, 0), (1e4, 1e4, 2e4))], grid=66)
    assert abs(half.volume / (alone.volume / 2) - 1) < 0.02
    small = solids.intersection([ball, box((0, 0, 0), (0.1, 0.1, 0.1))], grid=50)
    assert np.isclose(small.volume, 1e-3) and small.pitch < 0.1 / 40


def turned_box(low, high):
    """A box that is turned about two axes."""
    a, b = 0.3, 0.5
    about_z = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    vertices, faces = box(low, high)
    return vertices @ (about_z @ about_x).T, faces


@pytest.mark.parametrize("inside", ["winding", "vote"])
@pytest.mark.parametrize("op", ["difference", "intersection"])
@pytest.mark.parametrize("far", [60.0, 200.0, 1e7, 1e12])
def test_meshes_that_reach_far_out_are_as_near_ones(far, op, inside):
    ball, combine = sphere(n=20), lambda *meshes: solids.combine(meshes, op, grid=50, inside=inside)
    for make in (box, turned_box):
        near, half = (combine(ball, make((-r, -r, -0.3), (r, r, r))) for r in (3.0, far))
        assert (half.pitch, half.origin.tolist()) == (near.pitch, near.origin.tolist())
        # The corners that are cut are rounded, too.
        assert (half.matrix != near.matrix).sum() <= (0 if make is box else 0.002 * near.count)
        assert abs(half.area / near.area - 1) < 1e-3
    vertices, faces = make((-far, -far, -0.3), (far, far, far))
    apart = vertices[faces].reshape(-1, 3), np.arange(36).reshape(-1, 3)
    assert (combine(ball, apart).matrix == half.matrix).all()
    beside = combine(ball, box((far, far, far), (2 * far, 3 * far, 2 * far)))
    assert beside.count == (0 if op == "intersection" else solids.voxelize(ball, 50).count)


@given(seed=st.integers(0, 10**6), reach=st.sampled_from([1e2, 1e5, 1e9]), op=st.sampled_from(["&", "-"]))
@settings(max_examples=20, deadline=None)
def test_far_corners_are_those_of_winding_numbers(seed, reach, op):
    draw = np.random.default_rng(seed)
    ball, (vertices, faces) = sphere(n=4), sphere(n=4)
    spikes = vertices + (draw.random((len(vertices), 1)) < 0.3) * draw.normal(size=vertices.shape) * reach
    solid = (solids.intersection if op == "&" else solids.difference)([ball, (spikes, faces)], grid=20)
    centres = solid.origin + solid.pitch * (np.indices((20,) * 3).reshape(3, -1).T + 0.5)
    in_ball, times = winding(ball, centres), winding((spikes, faces), centres)
    sure = (abs(abs(in_ball - 0.5) - 0.5) < 0.02) & (abs(times - np.rint(times)) < 0.02)
    in_spikes = np.rint(times) != 0
    expected = (in_ball > 0.5) & (in_spikes if op == "&" else ~in_spikes)
    assert ((solid.matrix.ravel() != expected) & sure).sum() <= 40


def test_corners_that_are_not_known_well_enough_are_refused():
    with pytest.raises(ValueError, match="mesh 1 is so large"):
        solids.intersection([sphere(), turned_box((-1e16, -1e16, 0), (1e16, 1e16, 1e16))], grid=50)


def test_several_from_left_to_right():
    meshes = [box(), box((0, 0, 0), (0.5, 1, 1)), box((0.25, 0, 0), (0.75, 1, 1))]
    assert solids.union(meshes, grid=32).volume == 1
    assert solids.difference(meshes, grid=32).volume == 0.25
    assert solids.xor(meshes, grid=32).volume == 0.5
    assert solids.combine(meshes, "intersection", grid=32).volume == 0.25
    assert solids.combine(meshes[:1], "difference", grid=8).count == 512
    assert solids.intersection([box(), box((5, 5, 5), (6, 6, 6))], grid=8).is_empty
    vertices, faces = solids.difference([box(), box()], grid=8).mesh()
    assert vertices.shape == faces.shape == (0, 3)


def test_large_coordinates_keep_their_digits():
    far = np.array([500000.0, 5400000.0, 100.0])
    solid = solids.voxelize((box()[0] * 0.3 + far, box()[1]), 64)
    assert solid.count == 64**3
    assert np.allclose(solid.mesh(smooth=False)[0].min(0), far, rtol=0, atol=1e-9)


def test_what_is_inside_of_open_and_turned_meshes():
    vertices, faces = sphere(n=20)
    hole, turned = np.delete(faces, 100, 0), faces.copy()
    turned[50] = turned[50][::-1]
    whole = solids.voxelize((vertices, faces), 40)
    for inside in ("winding", "parity"):
        with pytest.raises(ValueError, match="mesh 0 is open at 3 edges"):
            solids.voxelize((vertices, hole), 40, inside=inside)
    assert abs(solids.voxelize((vertices, hole), 40, inside="vote").count - whole.count) < 40
    with pytest.raises(ValueError, match=r"mesh 1 .* different ways, at 3 edges"):
        solids.union([box(), (vertices, turned)])
    assert solids.voxelize((vertices, turned), 40, inside="parity").count == whole.count
    assert solids.voxelize((vertices, faces[:, ::-1]), 40).count == whole.count


def test_threads_do_not_matter():
    before = roost.get_threads() if hasattr(roost, "get_threads") else None
    results = []
    for threads in (1, 2):
        roost.set_threads(threads)
        results.append(solids.difference([sphere(), box()], grid=50).matrix)
    assert (results[0] == results[1]).all()
    roost.set_threads(before or 0)


@pytest.mark.parametrize(
    ("mesh", "error", "words"),
    [
        (3, TypeError, "vertices and faces"),
        ((box()[0][:, :2], box()[1]), ValueError, r"vertices of shape \(8, 2\)"),
        ((box()[0], box()[1][:, :2]), ValueError, r"faces of shape \(12, 2\)"),
        ((box()[0].ravel(), box()[1]), ValueError, "vertices of shape"),
        ((box()[0], box()[1].astype(float)), TypeError, "whole numbers"),
        ((box()[0].astype(complex), box()[1]), TypeError, "complex"),
        ((np.full((8, 3), "a"), box()[1]), TypeError, "vertices: <U1"),
        ((np.ma.masked_equal(box()[0], 1), box()[1]), TypeError, "masked"),
        (SimpleNamespace(vertices=np.ma.masked_equal(box()[0], 1), faces=box()[1]), TypeError, "masked"),
        ((box()[0] * np.nan, box()[1]), ValueError, "NaN or infinity"),
        ((box()[0] + np.inf, box()[1]), ValueError, "NaN or infinity"),
        ((box()[0] * 1e31, box()[1]), ValueError, "1e30"),
        ((box()[0] * 1e-31, box()[1]), ValueError, "less than 1e-30 wide"),
        ((box()[0] * 1e-320, box()[1]), ValueError, "less than 1e-30 wide"),
        (([], []), ValueError, "without faces"),
        ((box()[0], box()[1] + 1), ValueError, "name vertex 8, but there are 8"),
        ((box()[0], box()[1] - 1), ValueError, "name vertex -1"),
        ((box()[0], box()[1][:0]), ValueError, "without faces"),
        ((np.full((8, 3), (1 << 60) + 1), box()[1]), OverflowError, "1152921504606846977"),
    ],
)
def test_what_is_no_mesh_is_refused(mesh, error, words):
    with pytest.raises(error, match=words):
        solids.voxelize(mesh, 8)


def test_what_is_no_option_is_refused():
    for grid in (0, 4097):
        with pytest.raises(ValueError, match=f"grid={grid}"):
            solids.voxelize(box(), grid)
    with pytest.raises(TypeError, match="grid"):
        solids.voxelize(box(), 8.5)
    with pytest.raises(ValueError, match="op='minus'"):
        solids.combine([box()], "minus")
    with pytest.raises(ValueError, match="inside='all'"):
        solids.voxelize(box(), inside="all")
    with pytest.raises(ValueError, match="0 meshes"):
        solids.union([])
    with pytest.raises(ValueError, match="27 meshes"):
        solids.union([box()] * 27)
    with pytest.raises(TypeError, match="single mesh"):
        solids.union(SimpleNamespace(vertices=box()[0], faces=box()[1]))
    with pytest.raises(TypeError, match=r"union: meshes of type NoneType; give a list"):
        solids.union(None)
    with pytest.raises(ValueError, match="1 transforms of 2"):
        solids.union([box(), box()], transforms=[None])
    for wrong in (
        np.zeros((4, 4)),
        np.eye(3),
        np.diag([1, 1, 1, 2]),
        np.full((4, 4), np.nan),
        np.diag([1, 1, 0, 1]),
        (1 << 60) * np.eye(4, dtype=int),
    ):
        with pytest.raises(ValueError, match="transform"):
            solids.voxelize(box(), 8, transform=wrong)
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match="beyond 1e30"):
        solids.voxelize(box(), 8, transform=np.diag([1e308, 1e308, 1e308, 1]))
    solid = solids.voxelize(box(), 8)
    with pytest.raises(ValueError, match="read-only"):
        solid.origin += 1
    with pytest.raises(ValueError, match="NaN"):
        solid.contains([[0, 0, np.nan]])
    with pytest.raises(ValueError, match="shape"):
        solid.contains([0.0, 0, 0])
    with pytest.raises(TypeError, match="smooth=2"):
        solid.mesh(2)


def test_small_and_large_sizes():
    for size in (1e-30, 1e-10, 1e10, 1e30):
        assert solids.voxelize((box()[0] * size, box()[1]), 8).volume == pytest.approx(size**3, rel=1e-6)


def test_points_are_the_centres_of_the_matrix():
    solid = solids.voxelize(sphere(n=10), 21)
    centres = solid.origin + solid.pitch * (np.argwhere(solid.matrix) + 0.5)
    assert (solid.points == centres).all()
    assert solids.difference([box(), box()], grid=4).points.shape == (0, 3)


@pytest.mark.parametrize(
    "what", ["solid.matrix", "solid.points", "solid.mesh()", "solids.voxelize(ball, 2500)"]
)
def test_too_little_memory(what):
    program = (
        "import resource, sys\n"
        "from roost import solids\n"
        "from test_solids import sphere\n"
        "ball = sphere(n=40)\n"
        "solid = solids.voxelize(ball, 500)\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "limit = pages * resource.getpagesize() + (20 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "try:\n"
        f"    {what}\n"
        "except MemoryError as error:\n"
        "    print(error)\n"
    )
    tests = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=tests, capture_output=True, text=True
    )
    name = what.split("(")[0].replace("solid.", "Solid.").removeprefix("solids.")
    said = rf"roost\.solids\.{name}: not enough memory for a grid of [0-9]+( \([0-9.]+ [a-zA-Z]+\))?; .*\n"
    if name == "Solid.points":
        said = said.replace("points", "(points|matrix)")
    assert re.fullmatch(said, done.stdout), done


def test_unused_vertices_may_be_anything():
    vertices, faces = box()
    assert solids.voxelize((np.vstack([vertices, [[np.nan, np.inf, 1e300]]]), faces), 8).count == 512
