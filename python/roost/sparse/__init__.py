"""Voxels: rows for coordinates, neighbours of each, and convolution over the occupied ones.

    >>> import numpy as np, roost.sparse
    >>> voxels = np.array([[0, 5, 5, 5], [0, 5, 5, 6], [0, 9, 9, 9]], np.int32)
    >>> index = roost.sparse.CoordinateIndex(voxels)  # batch, x, y, z
    >>> index.find(np.array([[0, 5, 5, 6], [0, 0, 0, 0]], np.int32))
    array([ 1, -1])
    >>> map = roost.sparse.kernel_map(index)  # 3 x 3 x 3
    >>> ones = np.ones((3, 1), np.float32)
    >>> roost.sparse.sparse_conv(map, ones, np.ones((27, 1, 1), np.float32)).ravel()
    array([2., 2., 1.], dtype=float32)

Arrays are those of numpy, torch, CuPy and jax, on the CPU or on a GPU, as everywhere in roost. With torch,
`sparse_conv` has gradients; `roost.sparse.nn` has layers. See docs/sparse.md and docs/python.md.
"""

import itertools
import sys
import types
import weakref

from .._arrays.exact import convert, is_python
from .._arrays.libraries import NUMPY, same_device
from .._arrays.take import take
from .._arrays.types import BOOL, INT32, INT64
from .._options import check_rows, rows_type, whole_number

__all__ = ["CoordinateIndex", "KernelMap", "kernel_map", "sparse_conv"]

_KINDS = ("submanifold", "convolution", "pooling", "generative")
_made_maps = weakref.WeakValueDictionary()  # by number: operators of torch take tensors and numbers
_numbers = itertools.count(1)


def _type_name(dtype):
    return str(dtype).rpartition(".")[2]


def _coordinates(given, axes, what):
    """Coordinates as an array, and its library. `axes`: how many, if that is known."""
    array, library = take(given, what)
    columns = [axes + 1] if axes else [3, 4, 5]
    if array.ndim != 2 or array.shape[1] not in columns:
        raise ValueError(
            f"{what}: coordinates of shape {tuple(array.shape)}; give n x "
            f"{', n x '.join(map(str, columns))}: the batch, and the position on each axis"
        )
    if is_python(given) and array.dtype.kind in "iu":
        array = convert(array, INT32, what)
    if _type_name(array.dtype) != "int32":
        raise TypeError(f"{what}: coordinates of type {array.dtype}; convert them to int32")
    return array, library


def _numbers_of_axes(given, axes, name, what):
    """A number for each axis; -1: unset."""
    if given is None:
        return (-1,) * axes
    if isinstance(given, (tuple, list)):
        if len(given) != axes:
            raise ValueError(f"{what}: {name}={given!r}; give a number, or one for each of {axes} axes")
        return tuple(_number_of_axis(each, name, what) for each in given)
    return (_number_of_axis(given, name, what),) * axes


def _number_of_axis(given, name, what):
    number = whole_number(given, what, name)
    if number >= 2**31:
        raise ValueError(f"{what}: {name}={number}; give less than 2^31, as coordinates are")
    return number


class CoordinateIndex:
    """Numbers the different voxels of a batch of coordinates: rows 0, 1, ... m - 1.

    Parameters
    ----------
    coordinates : array of n x 3, n x 4 or n x 5 int32
        Of each voxel the batch, and its position on 2, 3 or 4 axes; any numbers, negative ones too. Copies of
        a voxel have one row.
    order : "block" or "input"
        How rows are numbered: by batch and then along a space-filling curve, so that neighbours lie close
        together and later steps are fast; or in order of first occurrence.

    Raises
    ------
    TypeError, ValueError
        Another type or shape; a bounding box that is too wide (2^21 voxels on each of three axes do, for 2^12
        batches).
    OverflowError
        More than 2^32 - 2 coordinates.

    Notes
    -----
    Coordinates are compared, not only hashed. Rows are the same on every run, on every device. The index
    never changes, so any number of threads may query it. Takes about 40 bytes per voxel of three axes.

    Examples
    --------
    >>> import numpy, roost.sparse
    >>> coordinates = numpy.array([[0, 3, 4], [0, -1, 4], [0, 3, 4]], numpy.int32)
    >>> index = roost.sparse.CoordinateIndex(coordinates)
    >>> len(index), index.duplicates, index.bounds
    (2, 1, ((0, -1, 4), (0, 3, 4)))
    >>> index.rows_of_input()
    array([1, 0, 1])
    """

    __class_getitem__ = classmethod(types.GenericAlias)  # the stub says of what

    def __init__(self, coordinates, *, order="block"):
        what = "roost.sparse.CoordinateIndex"
        array, library = _coordinates(coordinates, None, what)
        if order not in ("block", "input"):
            raise ValueError(f"{what}: order={order!r}; give 'block' or 'input'")
        check_rows(array.shape[0], INT64, what)
        axes = array.shape[1] - 1
        voxels = getattr(library.module, f"Voxels{axes}")
        place = library.place()
        self._set(voxels.make(place, library.column(array), order == "input"), axes, order, library, place)

    def _set(self, voxels, axes, order, library, home):
        self._voxels, self.axes, self.order, self._library = voxels, axes, order, library
        self._home = home  # whose stream it needs
        # Maps that modules made, and those to other indices. None of them refers to this index.
        self._maps, self._maps_to = {}, weakref.WeakKeyDictionary()
        return self

    def find(self, coordinates, *, index_dtype="int64"):
        """The row of each voxel, -1 for those that are absent.

        Parameters
        ----------
        coordinates : array of k x (axes + 1) int32
        index_dtype : "int64" or "int32"
            The type of the rows. int32 is faster.

        Returns
        -------
        array of k numbers
        """
        what = "roost.sparse.CoordinateIndex.find"
        dtype = rows_type(index_dtype, what)
        array, library = self._queries(coordinates, what)
        rows = library.empty(array.shape[0], dtype)
        self._voxels.find(library.place(), library.column(array), library.column(rows))
        return library.finish(rows, dtype)

    def contains(self, coordinates):
        """For each voxel whether it is there: an array of bool.

        Parameters
        ----------
        coordinates : array of k x (axes + 1) int32
        """
        array, library = self._queries(coordinates, "roost.sparse.CoordinateIndex.contains")
        found = library.empty(array.shape[0], BOOL)
        self._voxels.contains(library.place(), library.column(array), library.column(found))
        return library.finish(found, BOOL)

    def _queries(self, coordinates, what):
        array, library = _coordinates(coordinates, self.axes, what)
        if is_python(coordinates):
            return self._library.of_numpy(array), self._library
        if library.module is not self._library.module or library.where != self._library.where:
            raise ValueError(f"{what}: coordinates of {library}, but the index is of {self._library}")
        return array, library

    @property
    def coordinates(self):
        """The coordinate of each row: a new array of m x (axes + 1) int32."""
        library, tail = self._library, (self.axes + 1,)
        result = library.empty(len(self), INT32, tail)
        self._voxels.coordinates(library.place(), library.column(result))
        return library.finish(result, INT32, tail)

    def rows_of_input(self, *, index_dtype="int64"):
        """The row of each coordinate that the index was made from: ``index.coordinates[rows]`` are these.

        Parameters
        ----------
        index_dtype : "int64" or "int32"

        Returns
        -------
        array of n numbers

        Raises
        ------
        ValueError
            The voxels were made by a kernel map.
        """
        what = "roost.sparse.CoordinateIndex.rows_of_input"
        dtype = rows_type(index_dtype, what)
        library, n = self._library, self._voxels.inputs()
        if n == 0 and len(self) != 0:
            raise ValueError(f"{what}: these voxels were made by a kernel map; there was no input")
        rows = library.empty(n, dtype)
        self._voxels.rows_of_input(library.place(), library.column(rows))
        return library.finish(rows, dtype)

    @property
    def bounds(self):
        """The least and the greatest number of each column, as two tuples; None without voxels."""
        least, greatest = self._voxels.bounds()
        return (tuple(least), tuple(greatest)) if len(self) else None

    @property
    def duplicates(self):
        """How many of the coordinates were copies of one before."""
        return max(self._voxels.inputs() - len(self), 0)

    @property
    def nbytes(self):
        """The memory of the index, in bytes."""
        return self._voxels.bytes()

    def valid(self):
        """Checks what must hold: looks up every voxel. For tests."""
        return self._voxels.valid(self._library.place())

    def __len__(self):
        """The number of different voxels."""
        return self._voxels.size()

    def __reduce__(self):
        return _remade, (self._library.pickled(self.coordinates), self.order)

    def __repr__(self):
        return (
            f"roost.sparse.CoordinateIndex({len(self)} voxels on {self.axes} axes, order={self.order!r}, "
            f"{self._library})"
        )


def _remade(coordinates, order):
    return CoordinateIndex(coordinates, order=order)


class _MadeMap:
    """A map as C++ has it. It refers to no index but the one of voxels that it made."""

    def __init__(self, index, map, shape, has_pairs):
        self.map, self.shape, self.size, self.has_pairs = map, shape, shape[0], has_pairs
        self.library, self.home = index._library, index._library.place()
        self.volume, self.rows = map.volume(), (map.rows(True), map.rows(False))  # of inputs and outputs
        self.made_outputs = None  # if it made some
        self.number = next(_numbers)
        _made_maps[self.number] = self

    def outputs_of(self, index):
        return index if self.made_outputs is None else self.made_outputs


def _make(index, shape, outputs, pairs=False):
    """A _MadeMap, from numbers of each axis, the kind and perhaps the bounds of outputs that are to be made:
    their least and their greatest coordinate."""
    maps = getattr(index._library.module, f"KernelMap{index.axes}")
    target = None if outputs is None else outputs._voxels
    size, stride, dilation, padding, kind, *bounds = shape
    numbers = size, stride, dilation, padding, pairs, target, bounds[0] if bounds else None
    map = maps.make(index._library.place(), index._voxels, kind, *numbers)
    made = _MadeMap(index, map, shape, pairs)
    if kind != "submanifold" and outputs is None:
        made.made_outputs = CoordinateIndex.__new__(CoordinateIndex)._set(
            map.outputs(), index.axes, "block", index._library, made.home
        )
    return made


def _shape(axes, size, stride, dilation, padding, kind, what):
    """A shape as numbers of each axis."""
    if kind not in _KINDS:
        raise ValueError(f"{what}: kind={kind!r}; give one of {', '.join(_KINDS)}")
    given = {"size": size, "stride": stride, "dilation": dilation, "padding": padding}
    shape = {name: _numbers_of_axes(each, axes, name, what) for name, each in given.items()}
    for name in ("size", "stride", "dilation"):
        if 0 in shape[name]:
            raise ValueError(f"{what}: {name}={given[name]}; give 1 or more")
    return (*shape.values(), kind)


class KernelMap:
    """Which input row each offset of a kernel reads, for each output row. `kernel_map` makes it.

    Attributes
    ----------
    inputs, outputs : CoordinateIndex
        Whose rows it maps.
    size : tuple of int
        Of the kernel, on each axis.
    volume : int
        The number of offsets. The last axis is the fastest.

    Notes
    -----
    Never changes, so that any number of threads may use it. Takes 4 bytes per offset and output row, the
    same again on a GPU, and, except for a submanifold map, the same per input row.
    """

    __class_getitem__ = classmethod(types.GenericAlias)  # the stub says of what

    def __init__(self, made, inputs, outputs, is_transposed):
        self._made, self.inputs, self.outputs, self._transposed = made, inputs, outputs, is_transposed
        self.size, self.volume = made.size, made.volume
        # Plain numbers, which torch.compile knows how to take.
        self._number = made.number
        self._rows_in, self._rows_out = made.rows[::-1] if is_transposed else made.rows

    def transposed(self):
        """The same map the other way round, without a copy: inputs and outputs are exchanged."""
        return KernelMap(self._made, self.outputs, self.inputs, not self._transposed)

    def neighbours(self):
        """The input row of each offset and output row, -1 where there is none: a new array of
        volume x len(outputs) int32."""
        library, n = self._made.library, self._rows_out
        result = library.empty(self.volume, INT32, (n,))
        self._made.map.neighbours(library.place(), self._transposed, library.column(result))
        return library.finish(result, INT32, (n,))

    def masks(self):
        """Whether each offset has an input row: a new array of len(outputs) x w int32. Bit k % 32 of word
        k // 32 is offset k's; w words hold all offsets."""
        library, words = self._made.library, (self.volume + 31) // 32
        result = library.empty(self._rows_out, INT32, (words,))
        self._made.map.masks(library.place(), self._transposed, library.column(result))
        return library.finish(result, INT32, (words,))

    def pairs(self):
        """The pairs of rows that belong together, of a map that was made with ``pairs=True``.

        Returns
        -------
        input_rows, output_rows : array of p int32
            Grouped by offset; those of an offset by the output row (of a transposed map, by the input row).
        begins : array of volume + 1 int64
            Those of offset k are ``begins[k]`` to ``begins[k + 1]``.

        Raises
        ------
        ValueError
            The map was made without.
        """
        library, map = self._made.library, self._made.map
        if not self._made.has_pairs:
            raise ValueError(
                "roost.sparse.KernelMap.pairs: the map was made without; give pairs=True to kernel_map"
            )
        types = INT32, INT32, INT64
        arrays = [library.empty(n, t) for n, t in zip((map.pairs(), map.pairs(), self.volume + 1), types)]
        map.copy_pairs(library.place(), self._transposed, *(library.column(each) for each in arrays))
        return tuple(library.finish(each, t) for each, t in zip(arrays, types))

    @property
    def nbytes(self):
        """The memory of the map, in bytes."""
        return self._made.map.bytes()

    def valid(self):
        """Checks what must hold. For tests."""
        return self._made.map.valid(self._made.library.place())

    def __reduce__(self):
        ends = (self.outputs, self.inputs) if self._transposed else (self.inputs, self.outputs)
        made = self._made
        return _remade_map, (*ends, made.shape, made.made_outputs is None, made.has_pairs, self._transposed)

    def __repr__(self):
        return (
            f"roost.sparse.KernelMap({self._rows_in} to {self._rows_out} voxels, size={self.size}, "
            f"{self._made.library})"
        )


def _remade_map(inputs, outputs, shape, given, pairs, transposed):
    made = _make(inputs, shape, outputs if given and shape[4] != "submanifold" else None, pairs)
    if not given:
        made.made_outputs = outputs  # the same rows
    map = KernelMap(made, inputs, outputs, False)
    return map.transposed() if transposed else map


def kernel_map(
    index, size=3, stride=None, dilation=1, padding=None, kind="submanifold", *, outputs=None, pairs=False
):
    """The neighbourhoods that sparse convolution and pooling go through.

    Offset k of output o reads the input voxel ``o * stride - padding + k * dilation``, on each axis, as
    `torch.nn.functional.conv3d` does.

    Parameters
    ----------
    index : CoordinateIndex
        The input's voxels.
    size, stride, dilation, padding : int, or a tuple of one int for each axis
        Sizes are 1 to 5. The stride is 1 if None, for pooling the size. The padding is
        ``dilation * (size - 1) // 2`` if None, for pooling 0.
    kind : "submanifold", "convolution", "pooling" or "generative"
        Which voxels the outputs are: the inputs (and the stride 1); all voxels whose window contains an
        input; the same, for pooling; or all that the windows of a transposed convolution reach.
    outputs : CoordinateIndex, for "convolution"
        Outputs that exist already.
    pairs : bool
        Whether to list pairs of rows, too: `KernelMap.pairs`. Takes 8 bytes a pair. Convolution needs none.

    Returns
    -------
    KernelMap

    Raises
    ------
    TypeError, ValueError
        An invalid shape, outputs that need more than 32 bits, an index on another device.
    MemoryError

    Notes
    -----
    The same on every run. On a GPU a submanifold map without pairs does not wait for its work; the others do,
    because the host must know how many voxels or pairs they make. Make a map once for all layers with the
    same voxels and shape.

    Examples
    --------
    >>> import numpy, roost.sparse
    >>> coordinates = numpy.array([[0, 4, 4], [0, 5, 4], [0, -1, 0]], numpy.int32)
    >>> index = roost.sparse.CoordinateIndex(coordinates)
    >>> down = roost.sparse.kernel_map(index, 2, stride=2, kind="convolution")
    >>> down.outputs.coordinates
    array([[ 0, -1,  0],
           [ 0,  2,  2]], dtype=int32)
    >>> down.neighbours()  # 4 offsets
    array([[-1,  1],
           [-1, -1],
           [ 0,  2],
           [-1, -1]], dtype=int32)
    """
    what = "roost.sparse.kernel_map"
    for name, given in (("index", index), ("outputs", outputs)):
        if not isinstance(given, CoordinateIndex) and not (name == "outputs" and given is None):
            raise TypeError(f"{what}: {name} is a {type(given).__name__}; give a CoordinateIndex")
    shape = _shape(index.axes, size, stride, dilation, padding, kind, what)
    if outputs is not None:
        if kind != "convolution":
            raise ValueError(f"{what}: outputs, but kind={kind!r}; only 'convolution' takes outputs")
        if outputs.axes != index.axes:
            raise ValueError(f"{what}: an index on {index.axes} axes and outputs on {outputs.axes}")
        same_device(index._library, outputs._library, what)
    made = _make(index, shape, outputs, bool(pairs))
    return KernelMap(made, index, made.outputs_of(index) if outputs is None else outputs, False)


def sparse_conv(map, features, weights, bias=None):
    """Convolution over the voxels of a map, a cross-correlation as in `torch.nn.functional.conv3d`:

    ``result[o] = bias + sum over k of features[neighbours[k, o]] @ weights[k]``

    for each output row o, where offsets without a neighbour add nothing.

    Parameters
    ----------
    map : KernelMap
        Or one that is `transposed()`: the transposed convolution.
    features : array of len(map.inputs) x c
        Of float32 or float64, on a GPU also float16 or bfloat16.
    weights : array of (volume, c, d), or of (\\*map.size, c, d)
        Of the type of the features. torch's (d, c, k0, k1, k2) permuted to (k0, k1, k2, c, d).
    bias : array of d numbers, or None

    Returns
    -------
    array of len(map.outputs) x d

    Raises
    ------
    TypeError, ValueError
        Types, shapes or devices that do not go together; less than 1 or more than 65536 channels.
    MemoryError

    Notes
    -----
    The same bits each time, with any number of threads. Sums of 16-bit floats are float32. For tensors of
    torch it is an operator (`torch.ops.roost.sparse_conv`) with gradients of features, weights and bias,
    which `torch.compile` takes; on a GPU its products of float32 are those of TF32 where torch's own are
    (`torch.backends.cudnn`).
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(features, torch.Tensor):
        from . import nn

        return nn._sparse_conv(map, features, weights, bias)
    if not isinstance(map, KernelMap):
        raise _no_map(map)
    return _convolve(map._made, map._transposed, features, weights, bias)


def _no_map(map):
    return TypeError(
        f"roost.sparse.sparse_conv: map is a {type(map).__name__}; give a roost.sparse.KernelMap"
    )


_DTYPES = {"float32": "", "float64": "", "float16": " on the CPU", "bfloat16": " on the CPU"}


def _wants_tf32(cudnn):
    conv = getattr(cudnn, "conv", None)  # since torch 2.9, which no longer tells `allow_tf32` of all
    return cudnn.allow_tf32 if conv is None else conv.fp32_precision == "tf32"


class _Conv:
    """The arguments of a convolution, checked."""

    def __init__(self, made, transposed, features, weights, rows, what="roost.sparse.sparse_conv"):
        self.made, self.transposed = made, transposed
        features, library = take(features, what)
        weights, other = take(weights, what)
        same_device(library, other, what)
        if made.library.module is not library.module or made.library.where != library.where:
            raise ValueError(f"{what}: features of {library}, but the map is on {made.library.where}")
        name = _type_name(features.dtype)
        on_cpu = library.where == NUMPY.where
        if name not in _DTYPES or (on_cpu and _DTYPES[name]):
            raise TypeError(
                f"{what}: features of type {features.dtype}{_DTYPES.get(name, '')}; give float32 or float64"
                + ("" if on_cpu else ", float16 or bfloat16")
            )
        if weights.dtype != features.dtype:
            raise TypeError(
                f"{what}: features of type {features.dtype} and weights of type {weights.dtype}; convert one"
            )
        if features.ndim != 2 or features.shape[0] != rows:
            raise ValueError(
                f"{what}: features of shape {tuple(features.shape)}; the map has {rows} rows: give {rows} x "
                "channels"
            )
        offsets = tuple(weights.shape[:-2])
        if offsets not in ((made.volume,), tuple(made.size)):
            raise ValueError(
                f"{what}: weights of shape {tuple(weights.shape)}; give {made.volume} x in x out, or "
                f"{' x '.join(map(str, made.size))} x in x out"
            )
        self.features, self.weights, self.library, self.name = features, weights, library, name
        self.inputs, self.outputs = weights.shape[-2:]
        self.tf32 = not on_cpu and name == "float32" and library.name == "torch"
        self.tf32 = self.tf32 and _wants_tf32(library.torch.backends.cudnn)

    def __call__(self, function, *arrays):
        """Calls a function of C++."""
        library = self.library
        columns = [None if each is None else library.column(each) for each in arrays]
        function(
            library.place(),
            self.made.map,
            self.transposed,
            self.name,
            self.inputs,
            self.outputs,
            self.tf32,
            *columns,
        )


def _convolve(made, transposed, features, weights, bias):
    what = "roost.sparse.sparse_conv"
    conv = _Conv(made, transposed, features, weights, made.rows[transposed])
    library, dtype = conv.library, conv.features.dtype
    if conv.features.shape[1] != conv.inputs:
        raise ValueError(
            f"{what}: features with {conv.features.shape[1]} channels, but weights for {conv.inputs}"
        )
    if bias is not None:
        bias, other = take(bias, what)
        same_device(library, other, what)
        if tuple(bias.shape) != (conv.outputs,) or bias.dtype != dtype:
            raise ValueError(
                f"{what}: a bias of shape {tuple(bias.shape)} and type {bias.dtype}; give {conv.outputs} "
                f"numbers of type {dtype}"
            )
    result = library.empty(made.rows[not transposed], dtype, (conv.outputs,))
    conv(library.module.convolve, conv.features, conv.weights, bias, result)
    return library.finish(result, dtype, (conv.outputs,))


def _input_gradient(made, transposed, gradient, weights):
    conv = _Conv(made, transposed, gradient, weights, made.rows[not transposed])
    library, dtype = conv.library, conv.features.dtype
    result = library.empty(made.rows[transposed], dtype, (conv.inputs,))
    conv(library.module.convolve_input_gradient, conv.features, conv.weights, result)
    return result


def _weight_gradient(made, transposed, features, gradient, weights):
    conv = _Conv(made, transposed, features, weights, made.rows[transposed])
    library, dtype = conv.library, conv.features.dtype
    result = library.empty(made.volume, dtype, (conv.inputs, conv.outputs))
    conv(library.module.convolve_weight_gradient, conv.features, gradient, result)
    return result
