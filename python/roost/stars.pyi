from collections.abc import Sequence
from os import PathLike
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_Array = Any  # of numpy, or what numpy.asarray takes
_Pair = tuple[float, float] | Sequence[float]
_Near = Solution | tuple[float, float, float]

__all__ = ["Database", "Solution", "find_stars"]

def find_stars(image: _Array) -> NDArray[np.float64]: ...

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
    stars: NDArray[np.int64]
    hinted: bool
    limited: bool
    size: tuple[float, float]
    def wcs(self) -> dict[str, int | float | str]: ...
    @overload
    def sky(self, x: float, y: float) -> tuple[np.float64, np.float64]: ...
    @overload
    def sky(self, x: _Array, y: _Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    @overload
    def pixel(self, ra: float, dec: float) -> tuple[np.float64, np.float64]: ...
    @overload
    def pixel(self, ra: _Array, dec: _Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

class Database:
    def __init__(self, file: str | PathLike[str] | None = ..., *, ra: _Array | None = ...,
                 dec: _Array | None = ..., magnitude: _Array | None = ...,
                 names: Sequence[str] | None = ..., fov: _Pair | None = ...,
                 magnitude_most: float | None = ...,
                 units: str | None = ...) -> None: ...
    def save(self, file: str | PathLike[str]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def ra(self) -> NDArray[np.float64]: ...
    @property
    def dec(self) -> NDArray[np.float64]: ...
    @property
    def magnitude(self) -> NDArray[np.float64]: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def fov(self) -> tuple[float, float]: ...
    @property
    def patterns(self) -> int: ...
    @overload
    def solve(self, centroids: np.ndarray[Any, Any], size: _Pair, *, brightness: _Array | None = ...,
              fov: _Pair | None = ..., near: _Near | None = ..., radius: float = ..., limit: int = ...,
              chance: float = ...) -> Solution: ...
    @overload
    def solve(self, centroids: Sequence[np.ndarray[Any, Any]], size: _Pair, *,
              brightness: Sequence[_Array] | None = ..., fov: _Pair | None = ...,
              near: _Near | list[_Near | None] | None = ..., radius: float = ..., limit: int = ...,
              chance: float = ...) -> list[Solution]: ...
    @overload
    def solve(self, centroids: _Array, size: _Pair, *, brightness: _Array | None = ...,
              fov: _Pair | None = ..., near: _Near | list[_Near | None] | None = ..., radius: float = ...,
              limit: int = ..., chance: float = ...) -> Solution | list[Solution]: ...
    def solve_image(self, image: _Array, **options: Any) -> Solution: ...
