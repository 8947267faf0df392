"""patch(): torch's own operators on ids, with the same bits each time."""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ._launch import _COMPUTED_AS, _NAMES, reduce_rows
from .ids import coalesce
from .reductions import _expect_index, _expect_scatter, _reduce_index, _reduce_scatter

_aten = torch.ops.aten
_HOW = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}


def _can(*tensors):
    """Whether tensors are those that roost computes with; torch keeps others, such as complex ones."""
    first = tensors[0]
    return (
        all(
            type(x) in (torch.Tensor, torch.nn.Parameter)
            and x.layout is torch.strided
            and x.device == first.device
            and x.device.type in ("cpu", "cuda")
            for x in tensors
        )
        and _COMPUTED_AS.get(first.dtype, first.dtype) in _NAMES
    )


def _index_add(self, dim, index, source, *, alpha=1):
    if not _can(self, index, source) or not (isinstance(alpha, int) or self.is_floating_point()):
        return NotImplemented
    _expect_index("index_add_()", self, dim, index, source)
    return _reduce_index("index_add_()", self, dim, index, source, "sum", True, alpha)


def _index_reduce(self, dim, index, source, reduce, *, include_self=True):
    if not _can(self, index, source) or reduce not in _HOW:
        return NotImplemented
    _expect_index("index_reduce_()", self, dim, index, source)
    return _reduce_index("index_reduce_()", self, dim, index, source, reduce, include_self, 1)


def _scatter_add(self, dim, index, src):
    return _scatter_reduce(self, dim, index, src, "sum")


def _scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    if not _can(self, index, src) or reduce not in _HOW:
        return NotImplemented
    what = "scatter_add_()" if reduce == "sum" else "scatter_reduce_()"
    _expect_scatter(what, self, dim, index, src)
    return _reduce_scatter(what, self, dim, index.to(torch.int64), src, reduce, include_self)


def _index_put(self, indices, values, accumulate=False, unsafe=False):
    given = [index for index in indices if index is not None]
    if not accumulate or not given or not _can(self, values, *given) or self.dtype != values.dtype:
        return NotImplemented
    # Masks become positions, and numbers below 0 count from the end.
    flat = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            flat += index.nonzero().unbind(1)
        else:
            flat.append(index)
    while flat[-1] is None:
        flat.pop()
    k = len(flat)
    if k > self.ndim or any(index is None for index in flat):
        return _index_put_anywhere(self, flat, values)
    sizes, tail = self.shape[:k], self.shape[k:]
    flat = torch.broadcast_tensors(*(index.to(torch.int64) for index in flat))
    ids = torch.zeros_like(flat[0])
    for index, n in zip(flat, sizes, strict=True):
        wrapped = torch.where(index < 0, index + n, index)
        wrong = (wrapped < 0) | (wrapped >= n)
        ids = torch.where(wrong | (ids < 0), -1, ids * n + wrapped)
    n, width = math.prod(sizes), math.prod(tail)
    dtype = _COMPUTED_AS.get(self.dtype, self.dtype)
    rows = values.expand(*flat[0].shape, *tail).to(dtype).reshape(ids.numel(), width).contiguous()
    out = self.to(dtype).clone(memory_format=torch.contiguous_format).view(n, width)

    def about(position):
        at = [int(i) for i in torch.unravel_index(torch.tensor(position), ids.shape)] if ids.ndim else []
        wanted = [int(index[tuple(at)]) for index in flat]
        return f"index_put_(): index {wanted} at position {position}, for a shape of {list(sizes)}"

    if n == 0 and ids.numel() and width:
        raise IndexError(f"index_put_(): {ids.numel()} positions in a shape of {list(sizes)}")
    reduce_rows("index_put_()", out, ids.reshape(-1), rows, "sum", about=about)
    return out.view(self.shape).to(self.dtype)


def _index_put_anywhere(self, indices, values):
    """Of any dimensions: through the positions of all numbers."""
    positions = torch.arange(self.numel(), device=self.device).view(self.shape)[
        tuple(slice(None) if index is None else index for index in indices)
    ]
    values = values.expand(positions.shape)
    return _reduce_index(
        "index_put_()", self.reshape(-1), 0, positions.reshape(-1), values.reshape(-1), "sum", True, 1
    ).view(self.shape)


def _coalesce(self):
    values, size = self._values(), self.shape[: self.sparse_dim()]
    if not _can(values) or values.dtype == torch.bool or math.prod(size) >= 2**63 or not size:
        return NotImplemented
    indices, sums = coalesce(self._indices(), values, size)
    return torch.sparse_coo_tensor(indices, sums, self.shape, is_coalesced=True, check_invariants=False)


_FUNCTIONS = {
    _aten.index_add.default: _index_add,
    _aten.index_reduce.default: _index_reduce,
    _aten.scatter_add.default: _scatter_add,
    _aten.scatter_reduce.two: _scatter_reduce,
    _aten.index_put.default: _index_put,
    _aten._coalesce.default: _coalesce,
}
_IN_PLACE = {
    _aten.index_add_.default: _index_add,
    _aten.index_reduce_.default: _index_reduce,
    _aten.scatter_add_.default: _scatter_add,
    _aten.scatter_reduce_.two: _scatter_reduce,
    _aten.index_put_.default: _index_put,
    _aten._index_put_impl_.default: _index_put,
}


class patch(TorchDispatchMode):
    """A context in which torch's own operators on ids give the same bits each time: `index_add`,
    `index_reduce`, `scatter_add`, `scatter_reduce`, `index_put` with ``accumulate=True``, all of these also
    in place, and `coalesce` of sparse tensors; also where other operators, or gradients, call them.

    Types that roost does not compute with, such as complex numbers, stay torch's.

    Notes
    -----
    It is a dispatch mode, for the thread that enters it, and its backward passes. It costs some microseconds
    for each operator of torch. `torch.compile` does not see it: call the functions of `roost.torch` there.
    Ids out of range are errors as of `index_add`.

    Examples
    --------
    >>> import torch, roost.torch
    >>> with roost.torch.patch():
    ...     torch.zeros(2).index_add_(0, torch.tensor([1, 1]), torch.tensor([1.0, 2.0]))
    tensor([0., 3.])
    """

    def __init__(self):
        super().__init__()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        in_place = _IN_PLACE.get(function)
        run = in_place or _FUNCTIONS.get(function)
        if run is not None:
            result = run(*arguments, **named)
            if result is not NotImplemented:
                return arguments[0].copy_(result) if in_place else result
        return function(*arguments, **named)
