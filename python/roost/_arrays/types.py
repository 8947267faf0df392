"""Types of elements, as numpy has them."""

import functools

import numpy as np

from .. import _host

BOOL, UINT8, UINT32, UINT64 = map(np.dtype, (np.bool_, np.uint8, np.uint32, np.uint64))
INT32, INT64 = map(np.dtype, (np.int32, np.int64))
FLOAT16, FLOAT32, FLOAT64 = map(np.dtype, (np.float16, np.float32, np.float64))
NUMBERS = {np.dtype(name): name for name in _host.number_types}  # those of C++, by name
NANS = {FLOAT16: 0x7E00, FLOAT32: 0x7FC00000, FLOAT64: 0x7FF8000000000000}  # the bits that represent all NaNs


def numpy_dtype(array):
    """numpy's type of an array's elements; None if it has none."""
    dtype = array.dtype
    return dtype if isinstance(dtype, np.dtype) else _of_torch(dtype)


@functools.cache
def _of_torch(dtype):
    try:
        found = np.dtype(str(dtype).split(".")[1])
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None  # jax adds bfloat16 to numpy, which torch does not accept
