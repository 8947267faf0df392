from collections.abc import Sequence
from os import PathLike
from typing import Any

_Array = Any  # of numpy, or what numpy.asarray takes
_Pair = tuple[float, float] | Sequence[float]
_Near = Solution | tuple[float, float, float]

__all__ = ["Database", "Solution", "find_stars"]

def find_stars(image: _Array) -> _Array: ...

class Solution:
    solved: bool
    reason: str
    ra: float
    dec: float
    roll: float
    fov: float
    scale: float
    mirrored: bool
    matched: int
    rms: float
    log10_chance: float
    stars: _Array
    hinted: bool
    limited: bool
    size: tuple[float, float]
    def wcs(self) -> dict[str, int | float | str]: ...
    def sky(self, x: _Array, y: _Array) -> tuple[_Array, _Array]: ...
    def pixel(self, ra: _Array, dec: _Array) -> tuple[_Array, _Array]: ...

class Database:
    def __init__(self, file: str | PathLike[str] | None = ..., *, ra: _Array | None = ...,
                 dec: _Array | None = ..., magnitude: _Array | None = ...,
                 names: Sequence[str] | None = ..., fov: _Pair | None = ...,
                 magnitude_most: float | None = ...,
                 units: str | None = ...) -> None: ...
    def save(self, file: str | PathLike[str]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def ra(self) -> _Array: ...
    @property
    def dec(self) -> _Array: ...
    @property
    def magnitude(self) -> _Array: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def fov(self) -> tuple[float, float]: ...
    @property
    def patterns(self) -> int: ...
    def solve(self, centroids: _Array | Sequence[_Array], size: _Pair, *,
              brightness: _Array | Sequence[_Array] | None = ..., fov: _Pair | None = ...,
              near: _Near | list[_Near | None] | None = ..., radius: float = ..., limit: int = ...,
              chance: float = ...) -> Solution | list[Solution]: ...
    def solve_image(self, image: _Array, **options: Any) -> Solution: ...
