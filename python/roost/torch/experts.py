"""moe_permute and moe_unpermute: the tokens of a mixture of experts, grouped by expert, and back."""

import dataclasses

import torch

from .._options import whole_number
from ._launch import call, column, computed_type, library_of, reduce_grouped_rows, refuse_tangents
from .ids import _group_ids


@dataclasses.dataclass(frozen=True)
class Routes:
    """Where tokens go, as `moe_permute` returns it.

    Attributes
    ----------
    offsets : tensor of int64
        Expert e has tokens ``offsets[e]`` to ``offsets[e + 1] - 1`` of all, in the order of the batch.
    rows : tensor of int64, tokens x k
        The row of each choice of a token; -1 for one that had no room.
    source : tensor of int64
        The token of each row; -1 for a row without a token.
    """

    offsets: torch.Tensor
    rows: torch.Tensor
    source: torch.Tensor


def _permute_now(x: torch.Tensor, source: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    library = library_of(x, "roost.torch.moe_permute", source)
    x, source, m = x.contiguous(), source.contiguous(), len(source)
    width = x.shape[1]
    out = x.new_empty(m, width)
    if m and width:
        columns = column(x, len(x), width), column(source, m), column(out, m, width)
        library.module.gather_rows(library.place(), *columns, (0, 0, 0))
    return out


_permute_op = torch.library.custom_op("roost::moe_permute", _permute_now, mutates_args=())


def _permute(*arguments):
    return call(_permute_op, _permute_now, *arguments)


@_permute_op.register_fake
def _(x, source, rows):
    return x.new_empty(source.shape[0], x.shape[1])


def _unpermute_now(y: torch.Tensor, source: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    what = "roost.torch.moe_unpermute"
    tokens, k = rows.shape
    dtype = computed_type(y.dtype, what)
    if tokens * k >= 2**32 or len(y) >= 2**31:
        raise ValueError(f"{what}: {tokens} tokens of {k} choices and {len(y)} rows; give fewer than 2^31")
    # Choices without a row come last, so that those of a token are together.
    absent = rows < 0
    order = torch.sort(absent.to(torch.uint8), dim=1, stable=True)[1] if k > 1 else None
    sorted_rows = rows if order is None else rows.gather(1, order)
    token = torch.arange(tokens, device=y.device).view(-1, 1)
    token = torch.where(sorted_rows < 0, -1, token)
    pairs = torch.stack([token, sorted_rows], 2).to(torch.int32).view(-1, 2)
    out = y.new_zeros((tokens, y.shape[1]), dtype=dtype)
    reduce_grouped_rows(what, out, pairs, y.to(dtype).contiguous(), "sum")
    return out.to(y.dtype)


_unpermute_op = torch.library.custom_op("roost::moe_unpermute", _unpermute_now, mutates_args=())


def _unpermute(*arguments):
    return call(_unpermute_op, _unpermute_now, *arguments)


@_unpermute_op.register_fake
def _(y, source, rows):
    return y.new_empty(rows.shape[0], y.shape[1])


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[1:])


_permute_op.register_autograd(
    lambda ctx, grad: (_unpermute(grad, *ctx.saved_tensors), None, None), setup_context=_save
)
_unpermute_op.register_autograd(
    lambda ctx, grad: (_permute(grad, *ctx.saved_tensors), None, None), setup_context=_save
)


def _rows_with_room(ids, places, offsets, capacity):
    """The row of each choice if each expert has `capacity` rows; -1 for those that have no room. `places`:
    those of the choices among all, by expert."""
    ids, experts = ids.to(torch.int64), len(offsets) - 1
    place = places - offsets[ids.clamp(0, experts - 1)]
    right = (place < capacity) & (ids >= 0) & (ids < experts)
    return torch.where(right, ids * capacity + place, -1)


def moe_permute(x, expert_ids, experts, *, capacity=None):
    """The tokens of a mixture of experts, grouped by expert, in the order of the batch. Does not wait for a
    GPU.

    Parameters
    ----------
    x : tensor of n tokens, each a row of numbers
    expert_ids : tensor of int64 or int32, n, or n x k
        The experts of each token.
    experts : int
        How many there are.
    capacity : int or None
        How many rows each expert gets: rows that it does not need are 0, and tokens for which it has no room
        are left out. None: as many as it needs.

    Returns
    -------
    permuted : tensor
        With `capacity` experts x capacity rows, otherwise n * k rows, of which expert e has
        ``offsets[e]`` to ``offsets[e + 1] - 1``.
    routes : Routes
        For `moe_unpermute`, with `offsets`, `rows` and `source`.

    Raises
    ------
    IndexError
        An expert that is not below `experts`; on a GPU as for `index_add`.

    Notes
    -----
    Gradients are the sums over the choices of a token, in their order, with the same bits each time.

    Examples
    --------
    >>> import torch, roost.torch
    >>> x = torch.tensor([[1.0], [2.0], [3.0]])
    >>> permuted, routes = roost.torch.moe_permute(x, torch.tensor([1, 0, 1]), 2)
    >>> permuted.flatten(), routes.offsets
    (tensor([2., 1., 3.]), tensor([0, 1, 3]))
    >>> roost.torch.moe_unpermute(permuted, routes).flatten()
    tensor([1., 2., 3.])
    """
    what = "roost.torch.moe_permute"
    if x.ndim != 2 or expert_ids.ndim not in (1, 2) or len(expert_ids) != len(x):
        raise ValueError(
            f"{what}: tokens of shape {list(x.shape)} and experts of {list(expert_ids.shape)}; give n rows "
            "of numbers, and n or n x k experts"
        )
    if expert_ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{what}: experts of type {expert_ids.dtype}; give int64 or int32")
    refuse_tangents(x)
    n = len(x)
    experts = whole_number(experts, what, "experts")
    if experts < 1 or (capacity is not None and whole_number(capacity, what, "capacity") < 1):
        raise ValueError(f"{what}: experts={experts}, capacity={capacity}; give 1 or more")
    ids = expert_ids.reshape(-1)
    m, k = ids.numel(), 1 if expert_ids.ndim == 1 else expert_ids.shape[1]
    order, offsets, rows = _group_ids(ids, experts, True)
    token = order if k == 1 else order // max(k, 1)
    if capacity is None:
        routes = Routes(offsets, rows.view(n, k), token)
        return _permute(x, token, routes.rows), routes
    rows = _rows_with_room(ids, rows, offsets, capacity)
    at = offsets[:-1].view(-1, 1) + torch.arange(capacity, device=x.device)
    taken = at < offsets[1:].view(-1, 1)
    if m == 0:
        source = torch.full_like(at, -1)
    else:
        source = torch.where(taken, token[at.clamp_max(m - 1)], -1)
    routes = Routes(offsets, rows.view(n, k), source.view(-1))
    permuted = _permute(x, routes.source, routes.rows)
    return permuted.view(experts, capacity, x.shape[1]), routes


def moe_unpermute(y, routes, weights=None):
    """The way back of `moe_permute`: for each token the sum of the rows of its choices.

    Parameters
    ----------
    y : tensor
        Rows as of `permuted`, of any width.
    routes : Routes
        What `moe_permute` returned.
    weights : tensor of n x k numbers, or of n, or None
        What rows are multiplied by.

    Returns
    -------
    tensor of n rows
        Sums in the order of the choices, those of 16 bits as floats, rounded once. A choice that had no room
        adds nothing.
    """
    what = "roost.torch.moe_unpermute"
    refuse_tangents(y)
    y = y.reshape(-1, y.shape[-1])
    if len(y) != len(routes.source):
        raise ValueError(f"{what}: {len(y)} rows for routes of {len(routes.source)}")
    if weights is not None:
        weights = weights.reshape(routes.rows.shape)
        # Each row has one choice at most: its weight goes where the choice went.
        absent = routes.rows < 0
        at = torch.where(absent, len(y), routes.rows).reshape(-1)
        of_row = weights.new_zeros(len(y) + 1).scatter(0, at, weights.reshape(-1))[: len(y)]
        y = y * of_row.view(-1, 1).to(y.dtype)
    return _unpermute(y, routes.source, routes.rows)
