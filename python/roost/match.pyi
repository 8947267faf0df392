from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_Array = Any  # of numpy, or what numpy.asarray takes
_Kind = Literal["similarity", "affine", "perspective"]

__all__ = ["Match", "Reference"]

class Match:
    matched: bool
    reason: str
    kind: _Kind | None
    matrix: NDArray[np.float64] | None
    points: int
    covered: int
    inliers: int
    rms: float
    log10_chance: float
    def to_reference(self, points: _Array) -> NDArray[np.float64]: ...
    def to_query(self, points: _Array) -> NDArray[np.float64]: ...

class Reference:
    shape: tuple[int, int]
    def __init__(
        self,
        image: _Array,
        *,
        white: float | None = None,
        map: Literal["auto"] | _Kind = "auto",
        points: int = 200,
        seed: int = 1,
    ) -> None: ...
    def match(self, query: _Array, *, white: float | None = None) -> Match: ...
