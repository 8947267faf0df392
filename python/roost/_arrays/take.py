"""Arguments as arrays: `take` finds out which library an argument is of, and where it lies."""

import functools
import re
import sys
import warnings

import numpy as np

from .. import _host
from .arrow import array_of
from .exact import (
    NO_TIME_ZONES,
    expect_bare,
    has_mask,
    has_unit,
    is_masked,
    no_nulls,
    of_python,
    plural,
    under_mask,
)
from .frames import decoded
from .libraries import (
    NUMPY,
    Cupy,
    JaxCpu,
    JaxCpuArray,
    JaxCuda,
    TorchCpu,
    TorchCuda,
    UnsignedTensor,
    known,
    library_of,
)


def _numpy(x, what):
    return x, NUMPY


def _subclass(x, what):
    """Operators of others may differ: to those of chararray, trailing spaces are nothing."""
    expect_bare(x, what)
    return np.asarray(x), NUMPY


def _masked(x, what):
    if is_masked(x):
        raise TypeError(f"{what}: an array with masked elements; drop them with x.compressed(), or fill them")
    return take(under_mask(x), what)


def _quantity(x, what):
    if str(x.unit):
        raise TypeError(f"{what}: numbers with the unit {x.unit}, which would be lost; pass x.to_value(unit)")
    return np.asarray(x), NUMPY


def _aligned(address, size, what):
    """Raises a ValueError for an address, or a step, by which elements of a size cannot be read: on a GPU,
    that would end CUDA for the process."""
    if address % min(size, 8):
        raise ValueError(f"{what}: elements that are not aligned to {min(size, 8)} bytes; pass a copy")


def _address(torch, x):
    """Where the memory of a tensor is; 0: it has none."""
    try:
        if type(x) in (torch.Tensor, torch.nn.Parameter):
            return x.data_ptr()
        with warnings.catch_warnings():  # of FakeTensor
            warnings.simplefilter("ignore")
            return x.data_ptr()
    except (RuntimeError, ValueError):  # in torch.func.vmap, or of a lazy module
        return 0


@functools.cache
def _is_storage(dtype):
    """Whether torch itself can do nothing with tensors of a type, but view them as others."""
    return re.match(r"torch\.(u?int[1-7]$|q|bits|float4)", str(dtype)) is not None


def _tensor(x, what):
    torch = sys.modules["torch"]
    if x.layout is not torch.strided or x.is_nested or x.is_quantized:
        raise TypeError(f"{what}: a sparse, nested or quantized tensor; pass its values or indices")
    if _is_storage(x.dtype):
        raise TypeError(f"{what}: a tensor of {x.dtype}, which torch does not copy; view it as integers")
    address = _address(torch, x)
    if not address and (torch.nn.parameter.is_lazy(x) or x.numel()) and not x.is_meta:
        raise TypeError(
            f"{what}: a {type(x).__name__} without memory of its own, which torch traces, shards or has "
            "freed; pass the tensor that it stands for"
        )
    if x.requires_grad:
        x = x.detach()
    if x.is_neg() or x.is_conj():  # views whose memory has other numbers
        x = x.resolve_conj().resolve_neg()
    device = x.device
    if address % 8 and address % x.itemsize:
        if device.type != "cpu" or not x.is_contiguous():
            _aligned(address, x.itemsize, what)
        x = x.view(-1).view(torch.uint8).clone().view(x.dtype).view(x.shape)  # torch's clone(x) may crash
    library = known.get(device)
    if library is None:
        if device.type == "cpu":
            library = library_of(device, TorchCpu, torch, device)
        elif device.type == "cuda":
            library = library_of(device, TorchCuda, torch, device)
        else:
            raise TypeError(f"{what}: a tensor on {device}; roost works on the CPU and on CUDA devices")
    return x, library


def _cupy_array(x, what):
    index = x.device.id
    if not x.dtype.isnative:
        raise TypeError(f"{what}: an array of {x.dtype} on a GPU, which takes its bytes in another order")
    if x.size and (x.data.ptr % 8 or not x.flags.c_contiguous):
        for step in (x.data.ptr, *x.strides):
            _aligned(step, x.itemsize, what)
    return x, library_of(("cupy", index), Cupy, sys.modules["cupy"], index)


def _jax_array(x, what):
    jax = sys.modules["jax"]
    if isinstance(x, jax.core.Tracer):
        raise TypeError(f"{what}: an array that jax traces has no values yet; call roost outside of jax.jit")
    if x.is_deleted():
        raise TypeError(f"{what}: a jax array that was deleted, or donated; pass one that has values")
    if not isinstance(x.dtype, np.dtype):
        raise TypeError(f"{what}: keys of random numbers; pass jax.random.key_data of them")
    if x.dtype.isbuiltin == 2 and x.dtype.name != "bfloat16":
        raise TypeError(f"{what}: a jax array of {x.dtype}; convert it")
    devices = x.devices()
    if len(devices) != 1:
        raise ValueError(f"{what}: a jax array on {len(devices)} devices; roost works on one")
    (device,) = devices
    library = known.get(device)
    if library is None:
        if device.platform == "cpu":
            library = library_of(device, JaxCpu, jax, device)
        elif device.platform in ("gpu", "cuda"):
            library = library_of(device, JaxCuda, jax, device.local_hardware_id, device)
        else:
            raise TypeError(f"{what}: a jax array on {device}; roost works on the CPU and on CUDA devices")
    return x, library


def _no_nat(array, what):
    """A column without nulls as a numpy array, which must have no NaT: the value was the date -2^63."""
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise OverflowError(
            f"{what}: a date or duration of -2^63, which numpy cannot represent; drop or fill it"
        )
    return array


_SOON_COPIED = 2**24  # bytes that one thread copies in the time that several take to start


def _in_one(chunks):
    """Arrays of numpy one after the other, in one: large ones are copied by several threads."""
    size = sum(map(len, chunks))
    if size * chunks[0].itemsize < _SOON_COPIED or chunks[0].dtype.hasobject or _host.threads() == 1:
        return np.concatenate(chunks)
    from concurrent.futures import ThreadPoolExecutor

    made, pieces, end = np.empty(size, chunks[0].dtype), [], 0
    most = -(-size // (4 * _host.threads()))
    for chunk in chunks:
        for first in range(0, len(chunk), most):
            piece = chunk[first : first + most]
            pieces.append((made[end : end + len(piece)], piece))
            end += len(piece)
    with ThreadPoolExecutor(_host.threads()) as pool:
        list(pool.map(lambda pair: np.copyto(*pair), pieces))
    return made


def _from_arrow(column, what):
    pa = sys.modules["pyarrow"]
    column = decoded(column)
    no_nulls("the Arrow column", column.null_count, what)
    dtype = column.type
    if isinstance(dtype, pa.BaseExtensionType):
        raise TypeError(f"{what}: an Arrow column of type {dtype}; pass its storage")
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        raise TypeError(f"{what}: {NO_TIME_ZONES}")
    if pa.types.is_nested(dtype) or pa.types.is_decimal(dtype) or pa.types.is_time(dtype):
        raise TypeError(f"{what}: an Arrow column of type {dtype}; pass numbers, strings, bytes or dates")
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in getattr(column, "chunks", [column])]
    if not chunks:
        chunks = [column.to_numpy()]
    return _no_nat(chunks[0] if len(chunks) == 1 else _in_one(chunks), what)  # no copy for numbers in one


def _arrow(x, what):
    return _from_arrow(x, what), NUMPY


_POLARS_NUMBERS = ("Float32", "Float64", *(f"{u}Int{bits}" for u in ("", "U") for bits in (8, 16, 32, 64)))
_NOT_FROM_POLARS = ("Decimal", "Int128", "UInt128", "Time", "Struct", "List", "Object")


def _polars(x, what):
    name = x.dtype.base_type().__name__
    if name in _POLARS_NUMBERS and not x.null_count():
        if x.n_chunks() <= 1:
            return x.to_numpy(), NUMPY
        return _in_one([chunk.to_numpy() for chunk in x.get_chunks()]), NUMPY
    if name in _NOT_FROM_POLARS:
        raise TypeError(f"{what}: a polars column of type {x.dtype}; pass numbers, strings, bytes or dates")
    if getattr(x.dtype, "time_zone", None) is not None:
        raise TypeError(f"{what}: {NO_TIME_ZONES}")
    no_nulls("the polars column", x.null_count(), what)
    if name == "Array":
        flat = x.explode()
        if len(x):  # without rows it would make a null
            _polars(flat, what)
    return _no_nat(x.to_numpy(), what), NUMPY


def _pandas(x, what):
    dtype = x.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":  # what else it may be takes longer to ask
        return x.to_numpy(), NUMPY
    if getattr(x, "nlevels", 1) > 1:
        raise TypeError(
            f"{what}: an index of {plural(x.nlevels, 'level')}; pass an array with rows of integers"
        )
    column = getattr(x, "array", x)
    arrow = getattr(column, "_pa_array", None)
    if arrow is not None:
        return _from_arrow(arrow, what), NUMPY
    if isinstance(dtype, np.dtype):
        return x.to_numpy(), NUMPY
    if hasattr(column, "sp_values"):
        return np.asarray(column.to_dense()), NUMPY
    if getattr(dtype, "tz", None) is not None:
        raise TypeError(f"{what}: {NO_TIME_ZONES}")
    no_nulls("the column", int(x.isna().sum()), what)
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return take(categories.take(column.codes), what)
    return x.to_numpy(dtype=getattr(dtype, "numpy_dtype", None)), NUMPY


def _frame(x, what):
    """Rows of a data frame. Its columns must have one type: numpy would choose another for all."""
    if hasattr(x, "iloc"):
        columns = [x.iloc[:, i] for i in range(x.shape[1])]
    else:
        columns = x.get_columns() if hasattr(x, "get_columns") else x.columns
    arrays = [take(column, what)[0] for column in columns]
    types = sorted({str(array.dtype) for array in arrays})
    if len(types) != 1:
        raise TypeError(
            f"{what}: a frame with columns of {' and '.join(types) or 'no type'}; pass one column, or "
            "columns of one type"
        )
    return np.column_stack(arrays), NUMPY


def _other(x, what):
    if hasattr(x, "__arrow_c_device_array__") or hasattr(x, "__arrow_c_device_stream__"):
        return array_of(x, what)
    if hasattr(x, "__cuda_array_interface__"):
        expect_bare(x, what, "__cuda_array_interface__")
        for name in ("cupy", "torch"):
            if name in sys.modules:  # which reads it in place
                module = sys.modules[name]
                return take(module.asarray(x) if name == "cupy" else module.as_tensor(x, device="cuda"), what)
        raise TypeError(f"{what}: a {type(x).__name__} on a GPU; import cupy or torch, for roost's results")
    return of_python(x, what), NUMPY


# The types that represent arrays in pickles also come from copy.copy.
_takers = dict.fromkeys((JaxCpuArray, UnsignedTensor), lambda x, what: take(x.array, what))
_takers |= {np.ndarray: _numpy, np.ma.MaskedArray: _masked, list: _other, tuple: _other, int: _other}
_CLASSES = (
    ("torch", ("Tensor",), _tensor),
    ("cupy", ("ndarray",), _cupy_array),
    ("jax", ("Array",), _jax_array),
    ("pyarrow", ("Array", "ChunkedArray"), _arrow),
    ("pyarrow", ("Table", "RecordBatch"), _frame),
    ("polars", ("Series",), _polars),
    ("polars", ("DataFrame",), _frame),
    ("pandas", ("Series", "Index"), _pandas),
    ("pandas", ("DataFrame",), _frame),
    ("pandas.api.extensions", ("ExtensionArray",), _pandas),
)


def _taker(x):
    """How to take arguments of this type; looks only at libraries that somebody has imported."""
    for module, names, taker in _CLASSES:
        module = sys.modules.get(module)
        classes = tuple(getattr(module, name) for name in names if hasattr(module, name))
        if classes and isinstance(x, classes):
            break
    else:
        quantity = hasattr(x, "to_value") and has_unit(x)
        taker = _quantity if quantity else _masked if has_mask(x) else _subclass
        taker = taker if isinstance(x, np.ndarray) else None
    if taker is None:
        return _other
    _takers[type(x)] = taker
    return taker


_NAMES = {_pandas: "pandas", _polars: "polars", _arrow: "arrow", _other: "other"}


def taker_name(x):
    """ "pandas", "polars" or "arrow" for their columns; "other" for what is of no library that roost knows;
    None for arrays and frames."""
    return _NAMES.get(_takers.get(type(x)) or _taker(x))


def take_values(x, what):
    """The same for values. A set is refused: it has no order that would assign its values to keys."""
    if isinstance(x, (set, frozenset)):
        raise TypeError(f"{what}: a set of values, which has no order; pass a list or an array")
    return take(x, what)


def take(x, what):
    """The array that `x` is, and its Library. `what` names the argument in errors."""
    taker = _takers.get(type(x)) or _taker(x)
    return taker(x, what)


def from_arrow(column):
    """A column of Arrow, pandas or polars as a numpy array, without a copy if possible.

    Parameters
    ----------
    column : pyarrow.Array, pyarrow.ChunkedArray, pandas.Series, pandas.Index or polars.Series
        Numbers without nulls. Several chunks are joined, bits become bools, dates get 8 bytes, and
        dictionaries become the values that they stand for; all of these are copies. Strings become an array
        of objects.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    ValueError
        The column has nulls.
    """
    return take(column, "roost.from_arrow")[0]
