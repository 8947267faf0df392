from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

_Array = Any  # of numpy, or what numpy.asarray takes
_Inside = Literal["winding", "parity", "vote"]

class _HasFaces(Protocol):
    vertices: _Array
    faces: _Array

_Mesh = _HasFaces | tuple[_Array, _Array]

__all__ = ["Solid", "combine", "difference", "intersection", "union", "voxelize", "xor"]

class Solid:
    grid: int
    pitch: float
    origin: NDArray[np.float64]
    count: int
    volume: float
    area: float
    @property
    def is_empty(self) -> bool: ...
    @property
    def matrix(self) -> NDArray[np.bool_]: ...
    @property
    def points(self) -> NDArray[np.float64]: ...
    def contains(self, points: _Array) -> NDArray[np.bool_]: ...
    def mesh(self, smooth: bool = True) -> tuple[NDArray[np.float64], NDArray[np.uint32]]: ...

def combine(
    meshes: Sequence[_Mesh],
    op: Literal["union", "intersection", "difference", "xor"],
    *,
    grid: int = 256,
    transforms: Sequence[_Array | None] | None = None,
    inside: _Inside = "winding",
) -> Solid: ...
def voxelize(
    mesh: _Mesh, grid: int = 256, *, transform: _Array | None = None, inside: _Inside = "winding"
) -> Solid: ...
def union(
    meshes: Sequence[_Mesh],
    *,
    grid: int = 256,
    transforms: Sequence[_Array | None] | None = None,
    inside: _Inside = "winding",
) -> Solid: ...
def intersection(
    meshes: Sequence[_Mesh],
    *,
    grid: int = 256,
    transforms: Sequence[_Array | None] | None = None,
    inside: _Inside = "winding",
) -> Solid: ...
def difference(
    meshes: Sequence[_Mesh],
    *,
    grid: int = 256,
    transforms: Sequence[_Array | None] | None = None,
    inside: _Inside = "winding",
) -> Solid: ...
def xor(
    meshes: Sequence[_Mesh],
    *,
    grid: int = 256,
    transforms: Sequence[_Array | None] | None = None,
    inside: _Inside = "winding",
) -> Solid: ...
