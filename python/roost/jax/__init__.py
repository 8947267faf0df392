"""Rows and ids in compiled programs of JAX, with the same bits each time.

`index_add`, `segment_sum` and `unique` are calls of XLA's foreign function interface: `jax.jit` compiles them
into a program, on the CPU and on GPUs, without a way through Python. They are the operators of `roost.torch`,
whose page docs/torch.md has the order of the sums.

The calls are in roost's module if it was built where JAX's headers are: ``pip install --no-build-isolation``
beside an installed JAX.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .. import _host
from .._options import integer

__all__ = ["index_add", "segment_sum", "unique"]


def _register(module, platform):
    for name, call in getattr(module, "xla_calls", {}).items():
        jax.ffi.register_ffi_target(f"roost_{name}", call, platform=platform)
    return hasattr(module, "xla_calls")


@functools.cache
def _ready(platform):
    """Registers the targets of a platform, once."""
    if platform == "cpu":
        return _register(_host, "cpu")
    from .._gpu import module

    return _register(module(), "CUDA")


def _expect_targets(what):
    platform = "cpu" if jax.default_backend() == "cpu" else "gpu"
    if not _ready("cpu") or (platform == "gpu" and not _ready("gpu")):
        raise RuntimeError(
            f"{what}: roost was built without JAX's headers; install it with pip install "
            "--no-build-isolation where jax is installed"
        )


def _ids(x, what, name):
    x = jnp.asarray(x)
    if x.ndim != 1 or x.dtype not in (jnp.int32, jnp.int64):
        raise TypeError(f"{what}: {name} of {x.ndim} dimensions of {x.dtype}; give 1, of int32 or int64")
    return x


def _add_rows(ids, source, input):
    if ids.size == 0 or source.size == 0 or input.size == 0:
        return input
    call = jax.ffi.ffi_call(
        "roost_add_rows",
        jax.ShapeDtypeStruct(input.shape, input.dtype),
        input_output_aliases={2: 0},
        vmap_method="sequential",
    )
    return call(ids, source, input)


@jax.custom_vjp
def _index_add(input, ids, source):
    return _add_rows(ids, source, input)


def _index_add_fwd(input, ids, source):
    return _index_add(input, ids, source), ids


def _index_add_bwd(ids, grad):
    rows = grad.at[ids].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    return grad, np.zeros(ids.shape, jax.dtypes.float0), rows


_index_add.defvjp(_index_add_fwd, _index_add_bwd)


def index_add(input, ids, source):
    """``input.at[ids].add(source)`` with the same bits each time.

    Parameters
    ----------
    input : array of n rows
        float32, float64, float16, bfloat16, int32 or int64.
    ids : array of m ids, int32 or int64
        Those that are not in [0, n) are left out; negative ones do not count from the end.
    source : array of m rows of the shape and type of those of `input`

    Returns
    -------
    array of n rows

    Notes
    -----
    May be compiled, differentiated in reverse mode, and mapped (one after the other). Numbers of 16 bits are
    added as floats and rounded once.

    Raises
    ------
    ValueError, TypeError
        Shapes and types that do not match.
    RuntimeError
        roost was built without JAX's headers.
    """
    what = "roost.jax.index_add()"
    _expect_targets(what)
    input, source, ids = jnp.asarray(input), jnp.asarray(source), _ids(ids, what, "ids")
    if input.ndim == 0 or source.shape != (ids.shape[0], *input.shape[1:]):
        raise ValueError(
            f"{what}: source of {source.shape} for {ids.shape[0]} ids and input of {input.shape}"
        )
    if input.dtype != source.dtype or input.dtype.name not in (
        *("float32", "float64", "float16", "bfloat16"),
        *("int32", "int64"),
    ):
        raise TypeError(
            f"{what}: input of {input.dtype} and source of {source.dtype}; give equal ones: floats, "
            "int32 or int64"
        )
    return _index_add(input, ids, source)


def segment_sum(data, segment_ids, num_segments):
    """`jax.ops.segment_sum` with the same bits each time: ids in any order, those out of range left out.

    Parameters
    ----------
    data : array of m rows
    segment_ids : array of m ids, int32 or int64
    num_segments : int

    Returns
    -------
    array of `num_segments` rows

    See Also
    --------
    index_add : types, errors and gradients are the same.
    """
    data = jnp.asarray(data)
    return index_add(jnp.zeros((num_segments, *data.shape[1:]), data.dtype), segment_ids, data)


def unique(x, size, *, fill_value=0, sorted=False):
    """The distinct ids of an array, for a size that is known: it may be compiled.

    Parameters
    ----------
    x : array of n ids, int32 or int64
    size : int
        How many keys the result has. If there are fewer, `fill_value` follows them; if there are more, the
        last ones are left out.
    fill_value : int
    sorted : bool
        Whether keys ascend; otherwise they come in the order of their first occurrence, which is faster.

    Returns
    -------
    keys : array of `size` ids
    inverse : array of n int32
        The number of each id; not below `size` for one that was left out.
    counts : array of `size` int32
    n : int32 without dimensions
        How many distinct ids there are.
    """
    what = "roost.jax.unique()"
    _expect_targets(what)
    x = _ids(x, what, "x")
    size, fill_value = integer(size, what, "size"), integer(fill_value, what, "fill_value")
    limits = jnp.iinfo(x.dtype)
    if not 0 <= size < 2**31 or x.shape[0] >= 2**31 or not limits.min <= fill_value <= limits.max:
        raise ValueError(
            f"{what}: {x.shape[0]} ids, size={size}, fill_value={fill_value}; give what fits "
            f"int32, and a fill_value of {x.dtype}"
        )
    shapes = ((size,), x.dtype), (x.shape, jnp.int32), ((size,), jnp.int32), ((), jnp.int32)
    call = jax.ffi.ffi_call(
        "roost_unique", [jax.ShapeDtypeStruct(*one) for one in shapes], vmap_method="sequential"
    )
    return tuple(call(x, fill_value=np.int64(fill_value), sorted=bool(sorted)))
