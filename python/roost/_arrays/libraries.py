"""Where arrays come from, and where results go.

A `Library` is numpy or another library on one device: it tells the C++ module where an array is, and makes
arrays for results. Everything else is done in C++, so that all libraries behave alike.
"""

import atexit
import contextlib
import os
import sys

import numpy as np

from .. import _device, _gpu, _host
from .exact import whole_floats

_HOST_PLACE = _host.Place()
_NOTHING = contextlib.nullcontext()


def _rows(array):
    """How many rows an array has, and the bytes of one."""
    shape = array.shape
    if not shape:
        return 1, array.dtype.itemsize
    row_bytes = array.dtype.itemsize
    for d in shape[1:]:
        row_bytes *= d
    return shape[0], row_bytes


class Library:
    """numpy, and what the others have in common. Results of pandas and Arrow are numpy's."""

    name = "numpy"
    where = "the CPU"
    module = _host

    @staticmethod
    def place():
        """The place of a call: for a device, its current stream in this library."""
        return _HOST_PLACE

    call = _device.call  # of a function for words, through the device that a user chose

    @staticmethod
    def column(array, n=None, row_bytes=None):
        """What C++ takes of an array: contiguous rows. `n`, `row_bytes`: how many, and of how many bytes, if
        that is known."""
        array = np.ascontiguousarray(array)
        dtype = array.dtype
        if not array.flags.aligned:
            array = array.copy()
        if not dtype.isnative:
            array = array.astype(dtype.newbyteorder("="))
        if dtype.kind in "iufb" and dtype.itemsize <= 8 and dtype.isbuiltin != 2:
            return array
        return array.reshape(-1).view(np.uint8).reshape(*array.shape, dtype.itemsize)

    def aligned_column(self, array):
        """The same of an array whose elements may be smaller than what C++ reads at once."""
        column = self.column(array)
        return column if column.__array_interface__["data"][0] % 8 == 0 else column.copy()

    @staticmethod
    def empty(n, dtype, tail=()):
        """An array for results. For a library whose arrays never change, something from which `finish` makes
        one."""
        return np.empty((n, *tail), dtype)

    def output(self, n, dtype, tail=()):
        """What `empty` makes, and what C++ takes of it."""
        array = self.empty(n, dtype, tail)
        row_bytes = dtype.itemsize
        for d in tail:
            row_bytes *= d
        return array, self.column(array, n, row_bytes)

    @staticmethod
    def finish(array, dtype, tail=()):
        """What was empty, as an array of the library."""
        return array

    @staticmethod
    def adopt(result, dtype, tail=()):
        """A result of C++, memory without a type, as an array of the library."""
        array = result.reshape(-1).view(dtype)
        return array.reshape(-1, *tail) if tail else array

    def computed(self, result, dtype):
        """The same of sums and means, which may be rounded."""
        return self.adopt(result, dtype)

    @staticmethod
    def need(dtype):
        """Raises a TypeError if the library has no arrays of a type."""
        if not isinstance(dtype, np.dtype):  # but one of torch
            raise _no_such_type(NUMPY, dtype)

    def has(self, dtype):
        """Whether the library has arrays of a type."""
        try:
            self.need(dtype)
        except TypeError:
            return False
        return True

    @staticmethod
    @whole_floats
    def convert(array, dtype):
        """An array with numbers of another type, exactly."""
        return array.astype(dtype, copy=False)

    @staticmethod
    def of_numpy(array):
        """An array of numpy here."""
        return array

    def readable(self, array):
        """An array of numpy where C++ reads it beside arrays of this library."""
        return self.of_numpy(array)

    @staticmethod
    def to_numpy(array):
        """An array as numpy's, on the CPU."""
        return array

    @staticmethod
    def full(shape, value):
        """Copies of an array: of a number, or of a row."""
        result = np.empty(shape, value.dtype)
        result[...] = value
        return result

    @staticmethod
    def concatenate(one, other):
        """The rows of two arrays, one after the other."""
        return np.concatenate([one, other])

    @staticmethod
    def copy(array):
        """A copy that nobody else changes."""
        return array.copy()

    @staticmethod
    def pickled(array):
        """What pickle stores for an array, so that it comes back where it was."""
        return array

    @staticmethod
    def argsort(keys):
        """The row numbers of keys in ascending order; equal ones stay in order."""
        if keys.dtype.kind == "T":  # numpy compares these up to the first zero
            keys = keys.astype(object)
        if keys.ndim == 1 and keys.dtype.kind in "iu" and keys.itemsize > 2 and len(keys):
            least = keys.min()
            if int(keys.max()) - int(least) < 2**16:  # sorted by digits: 10^5 counts 2.6 -> 0.3 ms
                keys = (keys - least).astype(np.uint16)
        return np.lexsort(keys.T[::-1]) if keys.ndim == 2 else np.argsort(keys, kind="stable")

    def argsort_floats(self, keys, dtype):
        """The same of floats as keys have them, without -0.0 and with one NaN, by their bits: some libraries
        take denormal ones for 0."""
        top = 8 * dtype.itemsize - 1
        bits = self.view(keys, np.dtype(f"i{dtype.itemsize}"))
        return self.argsort(bits ^ ((bits >> top) & (2**top - 1)))

    @staticmethod
    def view(array, dtype):
        """The bytes of an array as another type of their size."""
        return array.view(dtype)

    @staticmethod
    def with_nan(array, missing):
        """An array of floats, which nobody else has, with NaN where `missing` is true."""
        if hasattr(array, "at"):  # of jax, whose arrays never change
            return array.at[missing].set(np.nan)
        array[missing] = np.nan
        return array

    def rows(self, array, rows):
        """array[rows]."""
        if self is NUMPY and (array.dtype.hasobject or not array.dtype.isnative):
            return array[rows]
        tail = tuple(array.shape[1:])
        return self.gather(self.column(array), array.dtype, tail, self.column(rows), len(rows))

    def gather(self, source, dtype, tail, rows, n, missing=(0, 0, 0)):
        """The rows of a column as an array; `missing`, a row in memory of the host, where a number is
        negative: by default zeros."""
        result, target = self.output(n, dtype, tail)
        self.module.gather_rows(self.place(), source, rows, target, missing)
        return self.finish(result, dtype, tail)

    def resized(self, column, n, dtype, tail=()):
        """The n rows of a column with more bytes, or fewer: as `output`, zeros after what was there."""
        result, target = self.output(n, dtype, tail)
        self.module.resize_rows(self.place(), column, target)
        return result, target

    def __str__(self):
        return f"{self.name} on {self.where}"


def _native(array):
    """An array of numpy in the byte order of this machine, as the other libraries want it."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


class _Blanks(dict):
    """Tensors without elements, by their type."""

    def __init__(self, library):
        self.library = library

    def __missing__(self, dtype):
        library = self.library
        like = library.torch.empty(0, dtype=library.dtypes.get(dtype, dtype), device=library.device)
        return self.setdefault(dtype, like)


class TorchCpu(Library):
    """Tensors on the CPU: numpy sees them where they lie."""

    name = "torch"

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.dtypes = {np.dtype(str(d).split(".")[1]): d for d in _torch_dtypes(torch)}
        # By type, numpy's or torch's. Creating tensors like these is faster than torch.empty.
        self._like = _Blanks(self)

    @staticmethod
    def column(array, n=None, row_bytes=None):
        if not array.is_contiguous():
            array = array.contiguous()
        if n is None:
            n, row_bytes = _rows(array)
        return (array.data_ptr(), n, row_bytes, array)

    def aligned_column(self, array):
        column = self.column(array)
        return column if column[0] % 8 == 0 else self.column(column[3].clone())

    def empty(self, n, dtype, tail=()):
        return self._like[dtype].new_empty((n, *tail) if tail else n)

    def adopt(self, result, dtype, tail=()):
        if not isinstance(dtype, np.dtype):
            return self.torch.from_numpy(Library.adopt(result, np.uint8)).view(dtype).view(-1, *tail)
        return self.torch.from_numpy(Library.adopt(result, dtype, tail))

    def convert(self, array, dtype):
        return self.of_numpy(Library.convert(array.numpy(), dtype))

    def view(self, array, dtype):
        return array.view(self.dtypes[dtype])

    def need(self, dtype):
        if isinstance(dtype, np.dtype) and dtype not in self.dtypes:
            raise _no_such_type(self, dtype)

    def of_numpy(self, array):
        array = _native(array)
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):  # torch accepts neither
            array = array.copy()
        return self.torch.from_numpy(np.ascontiguousarray(array))

    def to_numpy(self, array):
        return array.numpy()

    def full(self, shape, value):
        return value.expand(shape)

    def concatenate(self, one, other):
        return self.torch.cat([one, other])

    @staticmethod
    def copy(array):
        return array.clone()

    @staticmethod
    def pickled(array):
        return UnsignedTensor(array) if str(array.dtype) in _UNSIGNED else array

    def argsort(self, keys):
        torch, dtype = self.torch, keys.dtype
        if dtype is torch.uint64:  # torch neither sorts nor indexes these types
            keys = keys.view(torch.int64) ^ -(2**63)
        elif dtype is torch.uint16 or dtype is torch.uint32:
            keys = keys.to(torch.int64)
        elif dtype is torch.bool:
            keys = keys.view(torch.uint8)
        if keys.ndim == 1:
            return torch.argsort(keys, stable=True)
        order = torch.argsort(keys[:, -1], stable=True)
        for c in range(keys.shape[1] - 2, -1, -1):
            order = order[torch.argsort(keys[:, c][order], stable=True)]
        return order


_UNSIGNED = {"torch.uint16": "int16", "torch.uint32": "int32", "torch.uint64": "int64"}


class UnsignedTensor:
    """A tensor of a type that torch does not pickle, for pickle."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __reduce__(self):
        import torch

        name = str(self.array.dtype)
        return _unsigned_tensor, (self.array.view(getattr(torch, _UNSIGNED[name])), name)


def _unsigned_tensor(array, name):
    import torch

    return array.view(getattr(torch, name.split(".")[1]))


def _no_such_type(library, dtype):
    return TypeError(f"roost: {library.name} has no arrays of {dtype}; pass arrays of another library")


def _torch_dtypes(torch):
    integers = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
    names = ["bool", *integers, "float16", "float32", "float64", "complex64", "complex128"]
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


class _Device(Library):
    """A library on a GPU: the module for CUDA, places by stream, memory from the library."""

    def need(self, dtype):
        if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc" or dtype.isbuiltin == 2:
            raise _no_such_type(self, dtype)

    _most_places = 64  # then streams are forgotten: a program may create and drop many

    def __init__(self, index):
        self.module = _gpu.module()
        self.index = index
        self.where = f"cuda:{index}"
        self.memory = self.module.make_memory(index, self.make_bytes)
        atexit.register(self.memory.close)  # otherwise all of roost, to which it refers, would outlive Python
        self._places = {}

    def _place_on(self, stream):
        place = self._places.get(stream)
        if place is None:
            if len(self._places) >= self._most_places:
                self._places.clear()
            place = self._places[stream] = self.module.Place(self.index, stream, self.memory, False)
        return place


class TorchCuda(_Device, TorchCpu):
    """Tensors on a GPU: its current stream, its caching allocator."""

    def __init__(self, torch, device):
        TorchCpu.__init__(self, torch, device)
        torch.empty(0, device=device)  # initialises torch
        _Device.__init__(self, device.index)
        # Also used by torch.compile: takes a tenth of the time of torch.cuda.current_stream(i).cuda_stream.
        self._stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda i: torch.cuda.current_stream(i).cuda_stream
        )

    need = TorchCpu.need

    def make_bytes(self, n):
        owner = self._like[self.torch.uint8].new_empty(n)
        return owner, owner.data_ptr()

    def place(self):
        stream = self._stream(self.index)
        return self._places.get(stream) or self._place_on(stream)

    def adopt(self, result, dtype, tail=()):
        if result is None:
            return self.empty(0, dtype, tail)
        array = result.view(self.dtypes.get(dtype, dtype))
        return array.view(-1, *tail) if tail else array

    def convert(self, array, dtype):
        return array.to(self.dtypes[dtype])

    def of_numpy(self, array):
        return self.torch.from_numpy(np.array(_native(array))).to(self.device)

    def to_numpy(self, array):
        return array.cpu().numpy()


def _as_float64(array, xp):
    """float32 as float64. CuPy's kernels take denormal numbers for 0, and XLA's if it is told to; not here,
    where they are integers, and then float64."""
    bits = array.view(np.int32)
    size = bits & 0x7FFFFFFF
    small = size.astype(np.float64) * 2.0**-149
    return xp.where(size < 0x800000, xp.where(bits < 0, -small, small), array.astype(np.float64))


def _as_float32(array, xp):
    """float64 as float32. The same kernels make denormal numbers 0: here they are integers."""
    size = abs(array)
    denormal = size < 2.0**-126
    bits = xp.rint(xp.where(denormal, size, 0) * 2.0**149).astype(np.int32)
    small = xp.where(xp.signbit(array), bits | np.int32(-(2**31)), bits)
    return xp.where(denormal, small, array.astype(np.float32).view(np.int32)).view(np.float32)


def _with_denormals(array, dtype, xp):
    """A conversion of CuPy or jax that keeps denormal floats."""
    if array.dtype == np.float32 and dtype == np.float64:
        return _as_float64(array, xp)
    if array.dtype == np.float64 and dtype == np.float32:
        return _as_float32(array, xp)
    return array.astype(dtype, copy=False)


class Cupy(_Device):
    """Arrays of CuPy: its current stream, its memory pool."""

    name = "cupy"

    def __init__(self, cupy, index):
        self.cupy = cupy
        self._current = cupy.cuda.runtime.getDevice
        super().__init__(index)

    def _here(self):
        """Makes the device current."""
        return _NOTHING if self._current() == self.index else self.cupy.cuda.Device(self.index)

    def make_bytes(self, n):
        with self._here():
            owner = self.cupy.empty(n, np.uint8)
        return owner, owner.data.ptr

    def place(self):
        stream = self.cupy.cuda.get_current_stream(self.index)
        place = self._places.get(stream.ptr)
        if place is None:
            place = self._place_on(stream.ptr)
            place.stream = stream  # keeps the stream alive as long as its tables
        return place

    def column(self, array, n=None, row_bytes=None):
        if not array.flags.c_contiguous:
            with self._here():
                array = self.cupy.ascontiguousarray(array)
        if n is None:
            n, row_bytes = _rows(array)
        return (array.data.ptr, n, row_bytes, array)

    def aligned_column(self, array):
        column = self.column(array)
        if column[0] % 8 == 0:
            return column
        with self._here():
            return self.column(column[3].copy())

    def empty(self, n, dtype, tail=()):
        with self._here():
            return self.cupy.empty((n, *tail), dtype)

    def adopt(self, result, dtype, tail=()):
        if result is None:
            return self.empty(0, dtype, tail)
        array = result.view(dtype)
        return array.reshape(-1, *tail) if tail else array

    def convert(self, array, dtype):
        with self._here():
            return _with_denormals(array, dtype, self.cupy)

    def of_numpy(self, array):
        with self._here():
            return self.cupy.asarray(_native(array))

    def to_numpy(self, array):
        return self.cupy.asnumpy(array)

    def full(self, shape, value):
        with self._here():
            return self.cupy.broadcast_to(value, shape)

    def concatenate(self, one, other):
        with self._here():
            return self.cupy.concatenate([one, other])

    def copy(self, array):
        with self._here():
            return array.copy()

    def argsort(self, keys):
        with self._here():
            if keys.ndim == 2:
                return self.cupy.lexsort(self.cupy.ascontiguousarray(keys.T[::-1]))
            return self.cupy.argsort(keys.view(np.uint8) if keys.dtype.kind == "b" else keys)

    def argsort_floats(self, keys, dtype):
        with self._here():
            return super().argsort_floats(keys, dtype)


_JAX_64 = "which jax has after jax.config.update('jax_enable_x64', True)"


@whole_floats
def _to_jax(library, array, rounds=False):
    """A jax array. Without 64-bit numbers, jax makes 32-bit ones; then each number must be representable.
    `rounds`: floats that were computed may be rounded to the nearest ones."""
    array = _native(array)
    result, dtype = library.jax.device_put(array, library.device), array.dtype
    if result.dtype != dtype:
        kept = np.asarray(result)
        if rounds and dtype.kind == "f":
            array, kept = np.isinf(array), np.isinf(kept)
        if not np.array_equal(kept, array, equal_nan=array.dtype.kind in "fc"):
            raise OverflowError(f"roost: numbers that need {dtype}, {_JAX_64}")
    return result


class JaxCpu(Library):
    """Arrays of JAX on the CPU: numpy sees them where they lie."""

    name = "jax"

    def __init__(self, jax, device):
        self.jax, self.device = jax, device

    def adopt(self, result, dtype, tail=()):
        return self.of_numpy(Library.adopt(result, dtype, tail))

    def computed(self, result, dtype):
        return _to_jax(self, Library.adopt(result, dtype), True)

    def finish(self, array, dtype, tail=()):
        return self.of_numpy(array)

    @staticmethod
    def column(array, n=None, row_bytes=None):
        return Library.column(np.asarray(array))

    def convert(self, array, dtype):
        return Library.convert(np.asarray(array), dtype)

    def of_numpy(self, array):
        return _to_jax(self, array)

    def concatenate(self, one, other):
        return self.of_numpy(Library.concatenate(one, other))

    need = _Device.need

    @staticmethod
    def readable(array):
        return array

    def to_numpy(self, array):
        return np.asarray(array)

    @staticmethod
    def pickled(array):
        return JaxCpuArray(array)

    def argsort(self, keys):
        return Library.argsort(np.asarray(keys))


class JaxCpuArray:
    """An array of JAX for pickle, which itself would bring it back on a GPU if there is one then."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __reduce__(self):
        return _jax_cpu_array, (np.asarray(self.array),)


def _jax_cpu_array(array):
    import jax

    result = jax.device_put(array, jax.local_devices(backend="cpu")[0])
    if result.dtype != array.dtype:
        raise TypeError(f"roost: a pickled table needs {array.dtype}, {_JAX_64}")
    return result


class _Empty:
    """Memory for a result, of n rows."""

    __slots__ = ("memory", "column")

    def __init__(self, memory, n, bytes):
        self.memory = memory
        self.column = (memory.address if memory else 0, n, bytes, memory)

    def __len__(self):
        return self.column[1]


_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class JaxCuda(_Device):
    """Arrays of JAX on a GPU. JAX has no current stream and provides no memory, so roost works on its own
    stream, with its own memory, and each call returns when its work is done."""

    name = "jax"

    def __init__(self, jax, index, device):
        self.jax, self.index, self.device, self.module = jax, index, device, _gpu.module()
        self.where = f"cuda:{index}"
        self._place = self.module.place_with_own_stream(index)

    def place(self):
        return self._place

    def column(self, array, n=None, row_bytes=None):
        if isinstance(array, _Empty):
            return array.column
        array = self._in_rows(array).block_until_ready()
        return (array.unsafe_buffer_pointer() if array.size else 0, *_rows(array), array)

    aligned_column = column

    def _in_rows(self, array):
        """An array whose rows lie one after the other: jax lets a user choose another layout."""
        form = getattr(array, "format", None) if array.ndim > 1 else None  # since jax 0.7
        order = tuple(range(array.ndim))
        if form is None or form.layout is None or tuple(form.layout.major_to_minor) == order:
            return array
        return self.jax.device_put(array, type(form)(type(form.layout)(order), form.sharding))

    def empty(self, n, dtype, tail=()):
        bytes = dtype.itemsize
        for d in tail:
            bytes *= d
        return _Empty(self.module.empty(self._place, n * bytes), n, bytes)

    def finish(self, array, dtype, tail=()):
        if array.memory is None:  # rows of 0 bytes
            return self.jax.numpy.empty((len(array), *tail), dtype, device=self.device)
        return self.adopt(array.memory, dtype, tail)

    def adopt(self, result, dtype, tail=(), rounds=False):
        if result is None:
            return self.jax.numpy.empty((0, *tail), dtype, device=self.device)
        if self.jax.dtypes.canonicalize_dtype(dtype) != dtype:  # from_dlpack would cut off bytes
            return self._narrow(result.view(1, 32, (*tail, dtype.itemsize // 4)), dtype, rounds)
        code = 4 if dtype.name == "bfloat16" else _DLPACK_CODES[dtype.kind]
        view = result.view(code, dtype.itemsize * 8, tail)
        return self.jax.dlpack.from_dlpack(view)

    def _narrow(self, view, dtype, rounds):
        """Numbers of more than 32 bits, in pieces of these, for jax without 64 bits."""
        pieces = self.jax.dlpack.from_dlpack(view)
        if dtype.kind in "iu":
            low, high = (pieces[..., i].view(f"{dtype.kind}4") for i in (0, 1))
            if bool((high == (low >> 31 if dtype.kind == "i" else 0)).all()):
                return low.block_until_ready()  # before the pieces are freed
        return _to_jax(self, np.asarray(pieces).view(dtype)[..., 0], rounds)

    def computed(self, result, dtype):
        return self.adopt(result, dtype, (), True)

    def convert(self, array, dtype):
        array = _with_denormals(array, dtype, self.jax.numpy)
        if array.dtype != dtype:
            raise TypeError(f"roost: this needs {dtype}, {_JAX_64}")
        return array

    def of_numpy(self, array):
        return _to_jax(self, array)

    def to_numpy(self, array):
        return np.asarray(array)

    def full(self, shape, value):
        return self.jax.numpy.broadcast_to(value, shape)

    def concatenate(self, one, other):
        return self.jax.numpy.concatenate([one, other])

    @staticmethod
    def copy(array):
        return array  # which never changes

    def argsort(self, keys):
        jnp = self.jax.numpy
        return jnp.lexsort(keys.T[::-1]) if keys.ndim == 2 else jnp.argsort(keys, stable=True)


NUMPY = Library()
known = {}  # by device, or by name and number of a device


def _forked():
    raise RuntimeError("roost: CUDA does not work in a child of fork; start processes by spawn or forkserver")


def _after_fork():
    for library in known.values():
        if isinstance(library, _Device):
            library.place = _forked


os.register_at_fork(after_in_child=_after_fork)


def library_of(key, make, *arguments):
    library = known.get(key)
    if library is None:
        try:
            library = make(*arguments)
        except ImportError as error:
            raise NotImplementedError(
                f"roost: an array on a GPU, but {error}, or copy the array to the CPU"
            ) from None
        library = known.setdefault(key, library)
    return library


def library_of_gpu(index, what):
    """The Library for results on a GPU if the arguments are of no library: CuPy's if it is imported, or
    torch's."""
    if cupy := sys.modules.get("cupy"):
        return library_of(("cupy", index), Cupy, cupy, index)
    if torch := sys.modules.get("torch"):
        device = torch.device("cuda", index)
        return library_of(device, TorchCuda, torch, device)
    raise TypeError(f"roost: {what} on a GPU; import cupy or torch, for roost's results")


def same_device(library, other, what):
    """Raises a ValueError if arguments lie on different devices, or need one another's stream."""
    if library is not other and (library.module is not _host or other.module is not _host):
        raise ValueError(
            f"{what}: arrays of {library} and of {other}; make them of one library, on one device"
        )


def need_custom_operators(torch, what):
    """Raises an ImportError if torch cannot register operators of others."""
    if not hasattr(torch.library, "custom_op"):
        raise ImportError(f"{what} needs torch 2.4 or newer, and this is torch {torch.__version__}")
