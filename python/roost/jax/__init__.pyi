import jax
from jax.typing import ArrayLike

__all__ = ["index_add", "segment_sum", "unique"]

def index_add(input: ArrayLike, ids: ArrayLike, source: ArrayLike) -> jax.Array: ...
def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> jax.Array: ...
def unique(
    x: ArrayLike, size: int, *, fill_value: int = 0, sorted: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...
