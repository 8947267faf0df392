"""Rows and numbers that are combined by id: index_add, scatter_reduce, and what is built from them."""

import math

import torch

from .._options import flag
from ._launch import call, computed_type, reduce_rows

_REDUCTIONS = "sum", "mean", "prod", "amax", "amin"
_OTHER_NAMES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _reduction(reduce, what, names):
    how = _OTHER_NAMES.get(reduce, reduce)
    if reduce not in names:
        raise ValueError(f"{what}: reduce={reduce!r}; give one of {', '.join(map(repr, names))}")
    return how


def _axis(dim, ndim):
    """A dimension as a number from 0 on, with torch's error."""
    dims = max(ndim, 1)
    if not -dims <= dim < dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})"
        )
    return dim % dims


def _as_rows(x, dim):
    """A tensor as rows along a dimension: contiguous, of two dimensions."""
    n = x.shape[dim]
    if dim != 0:
        x = x.movedim(dim, 0)
    return x.reshape(n, x.numel() // n if n else 0).contiguous()


def _ready(x, dtype):
    """A tensor as numbers that C++ knows."""
    return x if x.dtype == dtype else x.to(dtype)


def _finish(result, dtype):
    if result.dtype == dtype:
        return result
    return result.ne(0) if dtype == torch.bool else result.to(dtype)


# Each returns a new contiguous tensor; `input` may be of any layout.


def _reduce_index(what, input, dim, index, source, how, include_self, alpha):
    shape, input_dtype, dtype = input.shape, input.dtype, computed_type(input.dtype, what)
    dim = _axis(dim, input.ndim)
    if input.ndim == 0:
        input, source = input.reshape(1), source.reshape(-1)
    if isinstance(alpha, complex) or (not dtype.is_floating_point and alpha != alpha // 1):
        raise RuntimeError(f"{what}: alpha={alpha} for numbers of type {input_dtype}; give a number of them")
    scale = float(alpha) if dtype.is_floating_point else 1.0
    rows = _as_rows(_ready(source, dtype), dim)
    if not dtype.is_floating_point and alpha != 1:
        rows = rows * int(alpha)
    out = _as_rows(_ready(input, dtype), dim)
    if out.data_ptr() == input.data_ptr():
        out = out.clone()
    n, others = input.shape[dim], [*input.shape[:dim], *input.shape[dim + 1 :]]
    if n == 0 and index.numel() and math.prod(others):
        raise IndexError(f"{what}: index {int(index.reshape(-1)[0])} at position 0, for 0 rows")
    reduce_rows(what, out, index.reshape(-1), rows, how, include_self, scale)
    if dim != 0:
        out = out.view(n, *others).movedim(0, dim).contiguous()
    return _finish(out, input_dtype).view(shape)


def _reduce_scatter(what, input, dim, index, src, how, include_self):
    shape, dtype = input.shape, computed_type(input.dtype, what)
    dim = _axis(dim, input.ndim)
    if input.ndim == 0:
        input = input.reshape(1)
    index, src = (x.reshape(1) if x.ndim == 0 else x for x in (index, src))
    src = src[tuple(slice(n) for n in index.shape)]
    out = _ready(input, dtype).clone(memory_format=torch.contiguous_format)
    if index.numel() == 0:
        return _finish(out, input.dtype).reshape(shape)
    n, ids = input.shape[dim], index
    if index.ndim > 1:
        others = [d for d in range(index.ndim) if d != dim]
        if all(index.stride(d) == 0 or index.shape[d] == 1 for d in others) and all(
            index.shape[d] == input.shape[d] for d in others
        ):
            ids = index[tuple(slice(None) if d == dim else 0 for d in range(index.ndim))]
            return _reduce_index(what, input, dim, ids, src, how, include_self, 1).reshape(shape)
        ids = index * out.stride(dim)
        for d in others:
            at = torch.arange(index.shape[d], device=index.device) * out.stride(d)
            ids = ids + at.view([-1 if d == e else 1 for e in range(index.ndim)])
        ids = ids.masked_fill_((index < 0) | (index >= n), -1)

    def about(position):
        at = [int(i) for i in torch.unravel_index(torch.tensor(position), index.shape)]
        where = f"position {position}" if len(at) == 1 else f"{at}"
        return f"{what}: index {int(index[tuple(at)])} at {where}, for {n} rows along dimension {dim}"

    rows = _ready(src, dtype).reshape(-1, 1).contiguous()
    reduce_rows(what, out.view(-1, 1), ids.reshape(-1), rows, how, include_self, about=about)
    return _finish(out, input.dtype).reshape(shape)


def _expect_index(what, input, dim, index, source):
    """What torch checks of the arguments of index_add, with its own words."""
    dims, along = max(input.ndim, 1), _axis(dim, input.ndim)
    if index.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"{what}: Expected dtype int32/int64 for index but got: {index.dtype}")
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{what}: self ({input.dtype}) and source ({source.dtype}) must have the same scalar type"
        )
    if index.ndim > 1:
        raise IndexError(f"{what}: Index is supposed to be a vector, but got dim: {index.ndim}")
    if max(source.ndim, 1) != dims:
        raise RuntimeError(
            f"{what}: source of {source.ndim} dimensions, and self of {input.ndim}; give as many"
        )
    m = source.shape[along] if source.ndim else 1
    if index.numel() != m:
        raise RuntimeError(
            f"{what}: Number of indices ({index.numel()}) should be equal to source.size(dim): ({m}), for "
            f"dim: {along}"
        )
    for d in range(input.ndim):
        if d != along and input.shape[d] != source.shape[d]:
            raise RuntimeError(
                f"{what}: source tensor shape must match self tensor shape, excluding the specified "
                f"dimension. Got self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
            )


def _expect_scatter(what, input, dim, index, src):
    along = _axis(dim, input.ndim)
    if index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"{what}: Expected dtype int32/int64 for index")
    if input.dtype != src.dtype:
        raise RuntimeError(f"{what}: Expected self.dtype to be equal to src.dtype")
    if not max(index.ndim, 1) == max(src.ndim, 1) == max(input.ndim, 1):
        raise RuntimeError(f"{what}: Index tensor must have the same number of dimensions as self and src")
    if index.numel() == 0:
        return
    for d in range(index.ndim):
        rows = input.shape[d] if input.ndim else 1
        numbers = src.shape[d] if src.ndim else 1
        if index.shape[d] > numbers or (d != along and index.shape[d] > rows):
            raise RuntimeError(
                f"{what}: Expected index {list(index.shape)} to be no larger than self {list(input.shape)} "
                f"apart from dimension {along} and to be no larger than src {list(src.shape)}"
            )


def _index_reduce_now(
    input: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    include_self: bool,
    alpha: torch.types.Number,
) -> torch.Tensor:
    what = "roost.torch.index_add()" if reduce == "sum" else "roost.torch.index_reduce()"
    return _reduce_index(what, input, dim, index, source, reduce, include_self, alpha)


def _scatter_reduce_now(
    input: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    return _reduce_scatter("roost.torch.scatter_reduce()", input, dim, index, src, reduce, include_self)


_index_reduce_op = torch.library.custom_op("roost::index_reduce", _index_reduce_now, mutates_args=())
_scatter_reduce_op = torch.library.custom_op("roost::scatter_reduce", _scatter_reduce_now, mutates_args=())


def _index_reduce(*arguments):
    return call(_index_reduce_op, _index_reduce_now, *arguments)


def _scatter_reduce(*arguments):
    return call(_scatter_reduce_op, _scatter_reduce_now, *arguments)


@_index_reduce_op.register_fake
def _(input, dim, index, source, reduce, include_self, alpha):
    return input.new_empty(input.shape)


@_scatter_reduce_op.register_fake
def _(input, dim, index, src, reduce, include_self):
    return input.new_empty(input.shape)


class _Rows:
    """How the gradients of index_reduce reach rows: `pick` takes a row for each id, `put` adds rows by id,
    `clear` makes rows that have an id 0."""

    def __init__(self, dim, index):
        self.dim, self.index = dim, index

    def pick(self, x):
        return x.index_select(self.dim, self.index) if x.ndim else x.expand(self.index.numel())

    def put(self, x, rows):
        return _index_reduce(x, self.dim, self.index, rows, "sum", True, 1)

    def clear(self, x):
        return x.index_fill(self.dim, self.index.to(torch.int64), 0)

    def reduce(self, x, rows, how, include_self):
        return _index_reduce(x, self.dim, self.index, rows, how, include_self, 1)


class _Elements(_Rows):
    """The same of scatter_reduce."""

    def pick(self, x):
        return x.gather(self.dim, self.index)

    def put(self, x, rows):
        return _scatter_reduce(x, self.dim, self.index, rows, "sum", True)

    def clear(self, x):
        return x.scatter(self.dim, self.index, 0)

    def reduce(self, x, rows, how, include_self):
        return _scatter_reduce(x, self.dim, self.index, rows, how, include_self)


def _save(ctx, inputs, output):
    input, dim, index, source, reduce, include_self, *alpha = inputs
    ctx.kind, ctx.dim, ctx.how, ctx.include_self = _Rows if alpha else _Elements, dim, reduce, include_self
    ctx.alpha = alpha[0] if alpha else 1
    ctx.source_shape = source.shape
    by_value = reduce in ("prod", "amax", "amin")
    ctx.save_for_backward(index, *((input, source, output) if by_value else (None, None, None)))


def _wide(x):
    """Numbers of 16 bits as floats, for gradients."""
    return x.float() if x is not None and x.is_floating_point() and x.element_size() == 2 else x


def _backward(ctx, grad):
    """The gradients of the input and of the source."""
    index, input, source, result = ctx.saved_tensors
    by, how, include_self, dtype = ctx.kind(ctx.dim, index), ctx.how, ctx.include_self, grad.dtype
    grad, input, source, result = map(_wide, (grad, input, source, result))
    ones = grad.new_ones(ctx.source_shape)
    if how == "sum":
        for_input, for_source = grad, by.pick(grad)
        if ctx.alpha != 1:
            for_source = for_source * ctx.alpha
    elif how == "mean":
        count = by.put(torch.ones_like(grad) if include_self else torch.zeros_like(grad), ones)
        for_input = grad / count.clamp_min(1)
        for_source = by.pick(for_input)
    elif how == "prod":
        for_input, for_source = _gradients_of_product(by, input, source, grad, include_self)
    else:
        takes_part = torch.ones_like(grad) if include_self else by.clear(torch.ones_like(grad))
        is_input = (input == result).to(grad.dtype) * takes_part
        is_source = (source == by.pick(result).reshape(source.shape)).to(grad.dtype)
        share = grad / by.put(is_input, is_source).clamp_min(1)  # equal ones share it
        for_input, for_source = is_input * share, is_source * by.pick(share).reshape(source.shape)
    if not include_self:
        for_input = by.clear(for_input)
    return for_input.to(dtype), for_source.reshape(ctx.source_shape).to(dtype)


def _gradients_of_product(by, input, source, grad, include_self):
    """Each number gets the product of the others, also where one of them is 0."""

    def not_zero(x):
        return x.masked_fill(x == 0, 1)

    def gradient(x, without, zeros):
        # `without`: the product of all numbers that are not 0; `zeros`: how many are.
        of_zero = without.masked_fill(zeros != 1, 0)
        return torch.where(x == 0, of_zero, (without / not_zero(x)).masked_fill(zeros != 0, 0))

    zeros = (input == 0).to(input.dtype) if include_self else torch.zeros_like(input)
    zeros = by.put(zeros, (source == 0).to(input.dtype))
    without = by.reduce(not_zero(input), not_zero(source), "prod", include_self)
    of_input = gradient(input, without, zeros) if include_self else torch.ones_like(input)
    picked = [by.pick(x).reshape(source.shape) for x in (without, zeros, grad)]
    return grad * of_input, picked[2] * gradient(source, *picked[:2])


def _index_backward(ctx, grad):
    for_input, for_source = _backward(ctx, grad)
    return for_input, None, None, for_source, None, None, None


def _scatter_backward(ctx, grad):
    for_input, for_source = _backward(ctx, grad)
    return for_input, None, None, for_source, None, None


_index_reduce_op.register_autograd(_index_backward, setup_context=_save)
_scatter_reduce_op.register_autograd(_scatter_backward, setup_context=_save)


def index_add(input, dim, index, source, *, alpha=1):
    """`torch.index_add` with the same bits each time: adds the rows of `source` to those of `input`.

    Parameters
    ----------
    input : tensor
        Floating-point numbers of at most 64 bits, integers but unsigned ones of 16 bits and more, or bools.
    dim : int
        The dimension along which rows lie.
    index : tensor of m ids of int64 or int32
        Numbers of rows of `input`.
    source : tensor
        m rows, of the type of `input`.
    alpha : number
        What the sum of the rows of an id is multiplied by, before it is added.

    Returns
    -------
    tensor of the shape of `input`

    Raises
    ------
    IndexError
        An id that is not the number of a row. On the CPU the error has its position and value; on a GPU the
        row is left out, and the next call there, or `check`, raises the error.
    RuntimeError, TypeError
        Shapes and types, mostly in the words of torch.

    Notes
    -----
    docs/torch.md has the order of the sum, which depends on nothing but the rows of an id. Numbers of 16 bits
    are added as floats and rounded once. It does not wait for a GPU, may be captured in CUDA graphs, is the
    operator ``torch.ops.roost.index_reduce`` for `torch.compile`, and has gradients. Any threads may call it.

    Examples
    --------
    >>> import torch, roost.torch
    >>> roost.torch.index_add(torch.zeros(3), 0, torch.tensor([2, 0, 2]), torch.ones(3))
    tensor([1., 0., 2.])
    """
    _expect_index("roost.torch.index_add()", input, dim, index, source)
    return _index_reduce(input, dim, index, source, "sum", True, alpha)


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """`torch.index_reduce` with the same bits each time, also for sums.

    Parameters
    ----------
    input, dim, index, source : as for `index_add`
    reduce : str
        "sum", "mean", "prod", "amax" or "amin". Means of integers are rounded down.
    include_self : bool
        Whether the rows of `input` take part; if not, those that have an id are replaced.

    Returns
    -------
    tensor of the shape of `input`

    See Also
    --------
    index_add : errors, order, cost and threads are the same.
    """
    what = "roost.torch.index_reduce()"
    how = _reduction(reduce, what, _REDUCTIONS)
    include_self = flag(include_self, what, "include_self")
    _expect_index(what, input, dim, index, source)
    return _index_reduce(input, dim, index, source, how, include_self, 1)


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """`torch.scatter_reduce` with the same bits each time.

    Parameters
    ----------
    input, src : tensors of one type
        Types as for `index_add`.
    dim : int
    index : tensor of int64 or int32, of as many dimensions, nowhere larger than `src`
        Of each number of `src`, where it goes along `dim`. If it is a vector that was expanded, whole rows
        are moved, which is much faster.
    reduce : str
        "sum", "mean", "prod", "amax" or "amin".
    include_self : bool
        Whether the numbers of `input` take part; if not, those that an index names are replaced.

    Returns
    -------
    tensor of the shape of `input`

    See Also
    --------
    index_add : errors, order, cost and threads are the same.
    """
    what = "roost.torch.scatter_reduce()"
    how = _reduction(reduce, what, _REDUCTIONS)
    include_self = flag(include_self, what, "include_self")
    _expect_scatter(what, input, dim, index, src)
    if src.ndim and src.shape != index.shape:
        src = src[tuple(slice(n) for n in index.shape)] if index.numel() else src.new_empty(index.shape)
    return _scatter_reduce(input, dim, index.to(torch.int64), src, how, include_self)


def _number_of_groups(index, given, what):
    if given is None:
        return int(index.max()) + 1 if index.numel() else 0
    return given


def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
    """`torch_geometric.utils.scatter` with the same bits each time: reduces the rows of each id.

    Parameters
    ----------
    src : tensor
    index : tensor of ids
        A vector with an id for each row of `src` along `dim`, or a tensor of the shape of `src`.
    dim : int
        As PyG's, 0 by default; torch_scatter has -1.
    dim_size : int or None
        The number of rows of the result. None: the largest id and 1, for which a GPU is waited for.
    reduce : str
        "sum" or "add", "mean", "mul", "min" or "max".

    Returns
    -------
    tensor
        Rows without an id are 0, those of "mul" 1.

    See Also
    --------
    index_add : errors, order, cost and threads are the same.
    """
    what = "roost.torch.scatter()"
    how = _reduction(reduce, what, ("sum", "add", "mean", "mul", "min", "max"))
    dim = _axis(dim, src.ndim)
    n = _number_of_groups(index, dim_size, what)
    shape = [*src.shape[:dim], n, *src.shape[dim + 1 :]]
    start = src.new_ones(shape) if how == "prod" else src.new_zeros(shape)
    include_self = how in ("sum", "prod")
    if index.ndim == 1 and index.numel() == src.shape[dim]:
        _expect_index(what, start, dim, index, src)
        return _index_reduce(start, dim, index, src, how, include_self, 1)
    _expect_scatter(what, start, dim, index, src)
    return _scatter_reduce(start, dim, index.to(torch.int64), src, how, include_self)


def _scatter_at(src, index, dim, out, dim_size, how, what):
    """What the functions of torch_scatter have in common: the result, and the index in the shape of src."""
    dim = _axis(dim, src.ndim)
    if index.ndim == 1:
        index = index.view([-1 if d == dim else 1 for d in range(src.ndim)])
    index = index.to(torch.int64).expand_as(src)
    if out is None:
        shape = [*src.shape[:dim], _number_of_groups(index, dim_size, what), *src.shape[dim + 1 :]]
        start, include_self = src.new_full(shape, how == "prod"), how in ("sum", "prod")
    else:
        start, include_self = out, True
    _expect_scatter(what, start, dim, index, src)
    result = _scatter_reduce(start, dim, index, src, how, include_self)
    return result if out is None else out.copy_(result), index, dim


def scatter_sum(src, index, dim=-1, out=None, dim_size=None):
    """`torch_scatter.scatter_sum` with the same bits each time; see `scatter`, whose `dim` is another.

    Parameters
    ----------
    src : tensor
    index : tensor of int64
        A vector with an id for each row of `src` along `dim`, or a tensor of any shape that expands to that
        of `src`.
    dim : int
    out : tensor or None
        What the sums are added to, in place.
    dim_size : int or None
        The number of rows of the result. None: the largest id and 1, for which a GPU is waited for.

    Returns
    -------
    tensor
    """
    return _scatter_at(src, index, dim, out, dim_size, "sum", "roost.torch.scatter_sum()")[0]


def scatter_mul(src, index, dim=-1, out=None, dim_size=None):
    """`torch_scatter.scatter_mul`: products. Parameters and result as for `scatter_sum`."""
    return _scatter_at(src, index, dim, out, dim_size, "prod", "roost.torch.scatter_mul()")[0]


def scatter_mean(src, index, dim=-1, out=None, dim_size=None):
    """`torch_scatter.scatter_mean`: means, of integers rounded down. Parameters and result as for
    `scatter_sum`; numbers of `out` are added, but do not count."""
    what = "roost.torch.scatter_mean()"
    if out is None:
        return _scatter_at(src, index, dim, None, dim_size, "mean", what)[0]
    result, index, dim = _scatter_at(src, index, dim, out, dim_size, "sum", what)
    counts = _scatter_reduce(torch.zeros_like(out), dim, index, torch.ones_like(src), "sum", True)
    return result.div_(counts.clamp_min_(1), rounding_mode=None if out.is_floating_point() else "floor")


def _extremes(src, index, dim, out, dim_size, how, what):
    result, index, dim = _scatter_at(src, index, dim, out, dim_size, how, what)
    m = src.shape[dim]
    places = torch.arange(m, device=src.device).view([-1 if d == dim else 1 for d in range(src.ndim)])
    found = src.detach() == result.detach().gather(dim, index)
    places = torch.where(found, places, m)
    start = torch.full(result.shape, m, dtype=torch.int64, device=src.device)
    return result, _scatter_reduce(start, dim, index, places, "amin", True)


def scatter_max(src, index, dim=-1, out=None, dim_size=None):
    """`torch_scatter.scatter_max`: the greatest number of each id, and where it is along `dim`: the first
    place of several, and the size of `src` for an id without numbers, whose result is 0.

    Parameters as for `scatter_sum`.

    Returns
    -------
    values, places : tensors of the same shape, the latter int64
    """
    return _extremes(src, index, dim, out, dim_size, "amax", "roost.torch.scatter_max()")


def scatter_min(src, index, dim=-1, out=None, dim_size=None):
    """`torch_scatter.scatter_min`: as `scatter_max`, the least numbers."""
    return _extremes(src, index, dim, out, dim_size, "amin", "roost.torch.scatter_min()")


def segment_reduce(data, reduce, *, ids, segments):
    """`torch.segment_reduce` by the segment of each row: rows of a segment need not be together.

    Parameters
    ----------
    data : tensor of m rows of floating-point numbers
    reduce : str
        "sum", "mean", "prod", "max" or "min".
    ids : tensor of m segments, int64 or int32
    segments : int
        How many there are.

    Returns
    -------
    tensor of `segments` rows
        A segment without rows has 0, NaN, 1, -infinity or infinity, as torch's.

    See Also
    --------
    index_add : errors, order, cost and threads are the same.
    """
    what = "roost.torch.segment_reduce()"
    how = _reduction(reduce, what, ("sum", "mean", "prod", "max", "min"))
    if not data.is_floating_point():
        raise TypeError(f"{what}: numbers of type {data.dtype}; give floating-point numbers")
    empty = {"sum": 0, "mean": math.nan, "prod": 1, "amax": -math.inf, "amin": math.inf}[how]
    start = data.new_full((segments, *data.shape[1:]), empty)
    _expect_index(what, start, 0, ids, data)
    return _index_reduce(start, 0, ids, data, how, False, 1)
