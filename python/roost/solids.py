"""Meshes as solids of voxels: unions, intersections, differences, volumes, and smooth meshes of the results.

    >>> import numpy as np, roost.solids
    >>> corners = np.array([[x, y, z] for x in (0.0, 1) for y in (0, 1) for z in (0, 1)])
    >>> faces = np.array([[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5],
    ...                   [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]])
    >>> cube = roost.solids.voxelize((corners, faces), grid=32)
    >>> cube.volume, cube.area, cube.count
    (1.0, 6.0, 32768)
    >>> beside = corners + [0.5, 0, 0]
    >>> half = roost.solids.difference([(corners, faces), (beside, faces)], grid=34)
    >>> half.volume
    0.5

A mesh is anything with `vertices` and `faces`, such as one of trimesh, or a tuple of both arrays. Its corners
are taken to 1/256 of a voxel, and a voxel is inside if its centre is: results are those of whole numbers, the
same everywhere. `roost voxels` does the same with files, and docs/voxels.md says how it works. All of it runs
on the CPU, on as many threads as roost.set_threads says, mostly without the GIL. Where you need exact meshes
instead, take manifold3d.
"""

import contextlib
import re

import numpy as np

from . import _apps, _host
from ._arrays.exact import has_mask, of_python, real_numbers, shown
from ._options import whole_number

__all__ = ["Solid", "combine", "difference", "intersection", "union", "voxelize", "xor"]


def _triples(array, what, name):
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{what}: {name} of shape {array.shape}; give (n, 3)")
    return array


def _positions(values, what, name):
    return _triples(real_numbers(values, f"{what}: {name}", finite=False), what, name)


def _mesh(mesh, transform, what):
    """Vertices where they are placed, float64, and faces, uint32; both contiguous."""
    if isinstance(mesh, (tuple, list)) and len(mesh) == 2:
        vertices, faces = mesh
    elif hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        vertices, faces = mesh.vertices, mesh.faces
    else:
        raise TypeError(
            f"{what}: a mesh of {type(mesh).__name__}; give vertices and faces, as attributes or a tuple"
        )
    corners = of_python(faces, what)
    if corners.shape in ((0,), (0, 3)):
        raise ValueError(f"{what}: a mesh without faces has no inside; give one with a surface")
    if has_mask(faces) or corners.dtype.kind not in "iu":
        raise TypeError(f"{what}: faces of {corners.dtype}; give whole numbers")
    _triples(corners, what, "faces")
    at = _positions(vertices, what, "vertices")
    least, most = int(corners.min()), int(corners.max())
    if least < 0 or most >= len(at):
        wrong = least if least < 0 else most
        raise ValueError(f"{what}: faces name vertex {wrong}, but there are {len(at)}")
    if len(at) >= 1 << 32 or len(corners) >= 1 << 30:
        raise ValueError(
            f"{what}: a mesh of {len(at)} vertices and {len(corners)} faces; give fewer than 2^30"
        )
    if transform is not None:
        matrix = real_numbers(transform, f"{what}: a transform")
        if matrix.shape != (4, 4) or (matrix[3] != (0, 0, 0, 1)).any():
            raise ValueError(
                f"{what}: a transform of shape {matrix.shape}; give a matrix (4, 4) whose last row is 0 0 0 1"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            turn = np.linalg.det(matrix[:3, :3])
            if turn == 0:
                raise ValueError(f"{what}: a transform that leaves no volume; its determinant is 0")
            at = at @ matrix[:3, :3].T + matrix[:3, 3]
        if turn < 0:
            corners = corners[:, ::-1]  # faces still look outwards
    used = at[corners.ravel()]
    if not np.isfinite(used).all():
        raise ValueError(f"{what}: vertices with NaN or infinity; repair the mesh")
    if np.abs(used).max() > 1e30:
        raise ValueError(f"{what}: vertices beyond 1e30; give smaller ones")
    at = np.clip(np.where(np.isnan(at), 0.0, at), -1e30, 1e30)  # of vertices that no face has
    return np.ascontiguousarray(at).ravel(), np.ascontiguousarray(corners, np.uint32).ravel()


@contextlib.contextmanager
def _room(what, grid):
    """Says what there is not enough memory for."""
    try:
        yield
    except MemoryError as error:
        much = re.search(r"[0-9.]+ (bytes|[KMGT]iB)", str(error))
        much = f" ({much[0]})" if much else ""
        raise MemoryError(
            f"{what}: not enough memory for a grid of {grid}{much}; give a smaller one"
        ) from None


class Solid:
    """A solid of voxels in a cube of `grid` voxels a side. Made by voxelize() and combine().

    Attributes
    ----------
    grid : int
        Voxels along each axis.
    pitch : float
        The width of a voxel, in the unit of the vertices.
    origin : numpy.ndarray of shape (3,)
        The corner of the cube with the least coordinates; read-only. Voxel (i, j, k) has its centre at
        origin + pitch * (i + 0.5, j + 0.5, k + 0.5).
    count : int
        Voxels whose centre is inside.
    volume : float
        count * pitch ** 3.
    area : float
        Of the surface, from the triangles; exact for what fills the grid along its axes. Else it converges
        as the grid gets finer: within about 1 % where nothing is thinner than some voxels, while thin parts
        and sharp edges lose more.

    Does not change, and may be used by several threads.
    """

    def __repr__(self):
        return (
            f"Solid(grid={self.grid}, pitch={self.pitch:.6g}, count={self.count}, volume={self.volume:.6g})"
        )

    @property
    def is_empty(self):
        """Whether no voxel is inside."""
        return self.count == 0

    @property
    def matrix(self):
        """A bool for each voxel, of shape (grid, grid, grid); a new array, of a byte a voxel."""
        with _room("roost.solids.Solid.matrix", self.grid):
            return self._made.matrix().view(np.bool_).reshape(self.grid, self.grid, self.grid)

    @property
    def points(self):
        """The centres of the voxels inside, of shape (count, 3)."""
        matrix, done = self.matrix, 0
        with _room("roost.solids.Solid.points", self.grid):
            points = np.empty((self.count, 3))
            for x in range(self.grid):  # so few at once that Ctrl-C is heard
                y, z = np.nonzero(matrix[x])
                here = points[done : done + len(y)]
                here[:, 0], here[:, 1], here[:, 2] = x, y, z
                here += 0.5
                here *= self.pitch
                here += self.origin
                done += len(y)
        return points

    def contains(self, points):
        """Whether the voxel of each point, of shape (n, 3), is inside: a bool for each.

        The centre of that voxel decides, so the answer is the mesh's own for points further than pitch * 0.88
        from its surface. Points outside of the grid are outside. NaN raises ValueError.
        """
        what = "roost.solids.Solid.contains"
        array = _positions(points, what, "points")
        if np.isnan(array).any():
            raise ValueError(f"{what}: points with NaN; leave them out")
        return self._made.contains(np.ascontiguousarray(array).ravel()).view(np.bool_)

    def mesh(self, smooth=True):
        """The surface: vertices, float64 of shape (n, 3), and faces, uint32 of shape (m, 3).

        It is closed, and faces look outwards. smooth: without steps, each corner within a voxel of the
        surface; else the sides of voxels. Voxels that touch at an edge or a corner only have vertices of
        their own there. A solid without voxels has none. `trimesh.Trimesh(*solid.mesh(), process=False)`
        takes it.
        """
        if not isinstance(smooth, (bool, np.bool_)):
            raise TypeError(f"roost.solids.Solid.mesh: smooth={shown(smooth)}; give True or False")
        with _room("roost.solids.Solid.mesh", self.grid):
            vertices, faces = self._made.surface(bool(smooth))
        return vertices.reshape(-1, 3), faces.reshape(-1, 3)


def _solid(made, grid):
    solid = object.__new__(Solid)
    solid._made = made
    solid.grid = grid
    solid.pitch = made.pitch
    solid.origin = np.array(made.low)
    solid.origin.flags.writeable = False
    solid.count = made.count
    solid.volume = made.count * made.pitch**3
    solid.area = made.sides * made.pitch**2
    return solid


def combine(meshes, op, *, grid=256, transforms=None, inside="winding"):
    """What an operation makes of meshes, from left to right: a Solid.

    Parameters
    ----------
    meshes : sequence
        Meshes: objects with `vertices` (n, 3) and `faces` (m, 3), or tuples of these arrays; 1 to 26.
    op : str
        "union", "intersection", "difference" or "xor".
    grid : int
        Voxels along the longest side of what the result can need: the box of all meshes, of the first one for
        a difference, or what all boxes share for an intersection. 1 to 4096.
    transforms : sequence of arrays of shape (4, 4), or None for each
        Where meshes are placed.
    inside : str
        Which points are inside of a mesh. "winding": those that its surface goes around; it must be closed,
        and its faces must be oriented consistently. "parity": those below an odd number of crossings; it must
        be closed. "vote": what two of three axes say, for open meshes.

    Raises ValueError for meshes that `inside` does not suit, for NaN, infinity, meshes less than 1e-30 wide
    and indices that are not there, TypeError for arrays of other types, and MemoryError. Takes milliseconds
    for 100,000 triangles and a grid of 128.
    """
    return _combine("combine", meshes, op, grid, transforms, inside)


def _combine(name, meshes, op, grid, transforms, inside):
    what = f"roost.solids.{name}"
    if not isinstance(op, str) or op not in _apps.operations:
        raise ValueError(f"{what}: op={shown(op)}; give {', '.join(_apps.operations)}")
    if not isinstance(inside, str) or inside not in _apps.inside_rules:
        raise ValueError(f"{what}: inside={shown(inside)}; give {', '.join(_apps.inside_rules)}")
    side = whole_number(grid, what, "grid")
    if not 1 <= side <= 4096:
        raise ValueError(f"{what}: grid={side}; give 1 to 4096")
    if hasattr(meshes, "vertices"):
        raise TypeError(f"{what}: a single mesh; give a list of meshes")
    if not hasattr(meshes, "__iter__"):
        raise TypeError(f"{what}: meshes of type {type(meshes).__name__}; give a list of meshes")
    every = list(meshes)
    if not 1 <= len(every) <= 26:
        raise ValueError(f"{what}: {len(every)} meshes; give 1 to 26")
    places = [None] * len(every) if transforms is None else list(transforms)
    if len(places) != len(every):
        raise ValueError(f"{what}: {len(places)} transforms of {len(every)} meshes; give one for each")
    if _apps.threads() != _host.threads():
        _apps.set_threads(_host.threads())
    ready = [_mesh(mesh, place, what) for mesh, place in zip(every, places, strict=True)]
    with _room(what, side):
        return _solid(_apps.combine_solids(ready, op, inside, side), side)


def voxelize(mesh, grid=256, *, transform=None, inside="winding"):
    """The solid of one mesh. See combine() for what the arguments are."""
    return _combine("voxelize", [mesh], "union", grid, [transform], inside)


def union(meshes, *, grid=256, transforms=None, inside="winding"):
    """The union: everything inside any mesh. See combine()."""
    return _combine("union", meshes, "union", grid, transforms, inside)


def intersection(meshes, *, grid=256, transforms=None, inside="winding"):
    """The intersection: everything inside all meshes. See combine()."""
    return _combine("intersection", meshes, "intersection", grid, transforms, inside)


def difference(meshes, *, grid=256, transforms=None, inside="winding"):
    """The difference: everything inside the first mesh and no other. See combine()."""
    return _combine("difference", meshes, "difference", grid, transforms, inside)


def xor(meshes, *, grid=256, transforms=None, inside="winding"):
    """The symmetric difference: everything inside an odd number of meshes. See combine()."""
    return _combine("xor", meshes, "xor", grid, transforms, inside)
