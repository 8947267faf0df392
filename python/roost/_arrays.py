"""Where arrays come from, and how results go back there.

Every array is looked at through numpy, without a copy. Results go back to the library that the arguments came
from: `Origin.wrap` does that.
"""

import sys

import numpy as np


class Origin:
    """The library of an argument. `wrap(array)` gives a numpy array back as one of that library."""

    @staticmethod
    def wrap(array):
        return array.view(np.int64) if array.dtype.char == "q" else array  # which prints as int64 does


class _Torch(Origin):
    @staticmethod
    def wrap(array):
        return sys.modules["torch"].from_numpy(array)


class _Jax(Origin):
    @staticmethod
    def wrap(array):
        return sys.modules["jax"].numpy.asarray(array)


def _of(module, *names):
    """The classes of a module, if somebody has imported it."""
    module = sys.modules.get(module)
    return tuple(getattr(module, name) for name in names if hasattr(module, name)) if module else ()


def _from_arrow(column, what):
    if column.null_count:
        raise ValueError(f"{what}: the Arrow column has {column.null_count} nulls; drop or fill them")
    kind = str(column.type)
    if kind in ("string", "large_string", "binary", "large_binary", "string_view", "binary_view"):
        return column.to_numpy(zero_copy_only=False)
    if hasattr(column, "chunks"):
        if column.num_chunks != 1:
            return np.concatenate([_from_arrow(c, what) for c in column.chunks] or [np.empty(0, kind)])
        column = column.chunk(0)
    return column.to_numpy(zero_copy_only=kind != "bool")


def as_numpy(x, what):
    """The array `x` as numpy sees it, and its Origin. `what` names the argument in errors."""
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{what}: masked arrays have no keys where they are masked; pass x.compressed()")
        return x, Origin
    if isinstance(x, _of("torch", "Tensor")):
        if x.device.type != "cpu":
            raise NotImplementedError(
                f"{what}: a tensor on {x.device}, but this build of roost has no CUDA module; pass x.cpu()"
            )
        if x.is_sparse:
            raise TypeError(f"{what}: a sparse tensor; pass its values or indices")
        x = x.detach()
        if str(x.dtype) == "torch.bfloat16":
            raise TypeError(f"{what}: numpy has no bfloat16; pass x.float() or x.view(torch.int16)")
        return x.numpy(), _Torch
    if isinstance(x, _of("jax", "Array")):
        if any(d.platform != "cpu" for d in x.devices()):
            raise NotImplementedError(
                f"{what}: a jax array on a device, but this build of roost has no CUDA "
                "module; pass numpy.asarray(x)"
            )
        return np.asarray(x), _Jax
    if isinstance(x, _of("pyarrow", "Array", "ChunkedArray")):
        return _from_arrow(x, what), Origin
    if isinstance(x, _of("pandas", "Series", "Index")) or isinstance(
        x, _of("pandas.api.extensions", "ExtensionArray")
    ):
        arrow = getattr(x.array, "_pa_array", None) if hasattr(x, "array") else None
        if arrow is not None:
            return _from_arrow(arrow, what), Origin
        if x.dtype.name in (
            "Int8",
            "Int16",
            "Int32",
            "Int64",
            "UInt8",
            "UInt16",
            "UInt32",
            "UInt64",
            "boolean",
            "Float32",
            "Float64",
        ):
            if x.isna().any():
                raise ValueError(f"{what}: the column has nulls; drop or fill them")
            return x.to_numpy(dtype=x.dtype.numpy_dtype), Origin
        return x.to_numpy(), Origin
    if hasattr(x, "__cuda_array_interface__"):
        raise NotImplementedError(
            f"{what}: an array on a GPU, but this build of roost has no CUDA module; copy it to the host"
        )
    return np.asarray(x), Origin


def is_python_numbers(x):
    """Whether numpy chose the type of this argument: a number, or a list of some."""
    return isinstance(x, (bool, int, float, list, tuple, range))


def from_arrow(column):
    """A column of Arrow or pandas as a numpy array, without a copy.

    Parameters
    ----------
    column : pyarrow.Array, pyarrow.ChunkedArray, pandas.Series or pandas.Index
        Numbers without nulls. Several chunks are joined, and bits become bools: those are copies. Strings
        become an array of objects.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    ValueError
        The column has nulls.
    """
    return as_numpy(column, "roost.from_arrow")[0]
