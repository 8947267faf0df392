"""Distinct ids, their numbers and their order, without waiting for a GPU where the sizes are given."""

import math

import torch

from .._options import flag, integer, whole_number
from ._launch import (
    call,
    column,
    computed_type,
    library_of,
    note_wrong_offsets,
    reduce_grouped_rows,
    refuse_tangents,
    with_too_many,
    with_wrong_word,
)
from .embedding import _unique
from .reductions import _index_reduce

_NONE = (0, 0, 0)  # an empty column
_LAST = 2**63 - 1
_INTEGERS = (
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def _as_ids(x, what, name="ids", ndim=1):
    """A tensor of ids as contiguous int64."""
    if not isinstance(x, torch.Tensor) or x.dtype not in _INTEGERS:
        given = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{what}: {name} of type {given}; pass a tensor of int64 or narrower integers")
    if ndim is not None and x.ndim != ndim:
        raise ValueError(f"{what}: {name} of {x.ndim} dimensions; give {ndim}")
    return x.to(torch.int64).contiguous()


def _one(x, wanted):
    return column(x, len(x)) if wanted else _NONE


# A call of C++ for ids of one dimension, int64 and contiguous.


def _distinct(what, ids, size, fill, by_key, index, inverse, counts, strict, bits=64, grouped=False):
    """Distinct ids: keys, index, inverse, counts, their number, and what groups rows. Those that are not
    wanted are empty."""
    library, new = library_of(ids, what), ids.new_empty
    n = len(ids)
    if n >= 2**31:
        raise ValueError(f"{what}: {n} ids; give fewer than 2^31")
    wanted = index, inverse, counts
    keys, count, order = new(size), new(1), new((n if grouped else 0, 2), dtype=torch.int32)
    found, numbers, sums = (new(size if k != 1 else n) if w else new(0) for k, w in enumerate(wanted))

    def run(too_many):
        rest = (
            column(keys, size),
            fill,
            column(count, 1),
            too_many,
            _one(numbers, inverse),
            _one(found, index),
            _one(sums, counts),
        )
        if by_key:
            rows = column(order, n, 2) if grouped else _NONE
            library.module.group_keys(library.place(), column(ids, n), *rest, rows, bits)
        else:
            library.module.unique_ids(library.place(), column(ids, n), *rest)

    with_too_many(run, ids, what, size, strict)
    return keys, found, numbers, sums, count.reshape(()), order


def _unique_ids_now(
    x: torch.Tensor, size: int, fill: int, by_key: bool, index: bool, counts: bool, strict: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return _distinct("roost.torch.unique", x, size, fill, by_key, index, True, counts, strict)[:5]


_unique_ids_op = torch.library.custom_op("roost::unique_ids", _unique_ids_now, mutates_args=())


def _unique_ids(*arguments):
    return call(_unique_ids_op, _unique_ids_now, *arguments)


@_unique_ids_op.register_fake
def _(x, size, fill, by_key, index, counts, strict):
    new = x.new_empty
    return new(size), new(size if index else 0), new(x.shape), new(size if counts else 0), new(())


def unique(
    x,
    size=None,
    *,
    fill_value=0,
    sorted=False,
    strict=True,
    return_index=False,
    return_inverse=True,
    return_counts=True,
):
    """The distinct keys of a tensor, as an operator that `torch.compile` takes, and with `size` one that does
    not wait for a GPU.

    Parameters
    ----------
    x : tensor of n keys
        As for `roost.unique`: one dimension, or two, with rows of integers as keys. With `size`: one
        dimension of int64 or narrower integers.
    size : int or None
        How many keys the result has. If there are fewer, `fill_value` follows them.
    fill_value : int
        For `size`.
    sorted : bool
        Whether the keys come in ascending order. Otherwise they are, with `size`, in the order of their first
        occurrence, which is faster.
    strict : bool
        What happens if there are more than `size` keys: an error (on a GPU at the next call on the device, or
        at `check`), or without `strict` a result that lacks the last ones. In the inverse they have numbers
        that are not below `size`.
    return_index, return_inverse, return_counts : bool
        Which of the next results are returned.

    Returns
    -------
    keys : tensor
    index : tensor of int64
        Where each key occurs first; n for those that are only filled in.
    inverse : tensor of int64
        The number of each key of `x`: ``keys[inverse]`` is `x`.
    counts : tensor of int64
        How often each key occurs.
    n : tensor of int64 without dimensions
        With `size`: how many keys there are.

    Raises
    ------
    ValueError
        More than `size` keys, on the CPU; on a GPU IndexError, later.

    See Also
    --------
    roost.unique : cost, other errors and threads without `size`.

    Examples
    --------
    >>> import torch, roost.torch
    >>> keys, inverse, counts, n = roost.torch.unique(torch.tensor([7, 9, 7]), size=4)
    >>> keys, n
    (tensor([7, 9, 0, 0]), tensor(2))
    """
    what = "roost.torch.unique"
    if size is None:
        if return_index:
            raise ValueError(f"{what}: return_index without size; give size, or call roost.unique")
        keys, inverse, counts = _unique(x, sorted)
        results = [keys, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
        return results[0] if len(results) == 1 else tuple(results)
    ids, size = _as_ids(x, what, "keys"), _size(size, what)
    index, inverse = flag(return_index, what, "return_index"), flag(return_inverse, what, "return_inverse")
    counts = flag(return_counts, what, "return_counts")
    sorted, strict = flag(sorted, what, "sorted"), flag(strict, what, "strict")
    keys, *rest, n = _unique_ids(
        ids, size, _number(fill_value, x.dtype, what, "fill_value"), sorted, index, counts, strict
    )
    wanted = zip(rest, (index, inverse, counts), strict=True)
    return (keys.to(x.dtype), *(result for result, w in wanted if w), n)


def _number(x, dtype, what, name):
    """An integer that a type of tensors holds."""
    x = integer(x, what, name)
    least, most = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not least <= x <= most:
        raise ValueError(f"{what}: {name}={x}; give {least} to {most}, as {dtype} has")
    return x


def _size(size, what, name="size"):
    size = whole_number(size, what, name)
    if not 0 <= size < 2**31:
        raise ValueError(f"{what}: {name}={size}; give 0 to 2^31 - 1")
    return size


def relabel(seeds, *neighbours, size=None, fill_value=0):
    """New numbers for the nodes of a sample, in the order of first occurrence, seeds first: what PyG, DGL and
    cuGraph do between two hops.

    Parameters
    ----------
    seeds : tensor of ids, of any shape
    *neighbours : tensors of ids
    size : int or None
        How many nodes the result has; then no GPU is waited for. More nodes are an error as of `unique`.
    fill_value : int
        What follows the nodes then.

    Returns
    -------
    nodes : tensor
        The id of each number.
    numbers : tuple of tensors of int64
        The numbers of seeds and of neighbours, each of the shape of its ids.
    n : tensor of int64 without dimensions
        With `size`: how many nodes there are.

    Examples
    --------
    >>> import torch, roost.torch
    >>> seeds, neighbours = torch.tensor([30, 10]), torch.tensor([[10, 50], [30, 50]])
    >>> nodes, (seeds, hop) = roost.torch.relabel(seeds, neighbours)
    >>> nodes, hop.tolist()
    (tensor([30, 10, 50]), [[1, 2], [0, 2]])
    """
    what = "roost.torch.relabel"
    each = [_as_ids(x, what, ndim=None) for x in (seeds, *neighbours)]
    if any(x.dtype != seeds.dtype or x.device != seeds.device for x in neighbours):
        raise TypeError(f"{what}: seeds and neighbours of different types or devices; convert them")
    ids = torch.cat([x.reshape(-1) for x in each])
    room = len(ids) if size is None else _size(size, what)
    nodes, _, numbers, _, n = _unique_ids(
        ids, room, _number(fill_value, seeds.dtype, what, "fill_value"), False, False, False, True
    )
    parts = numbers.split([x.numel() for x in each])
    parts = tuple(part.view(x.shape) for part, x in zip(parts, each, strict=True))
    if size is None:
        return nodes[: int(n)].to(seeds.dtype), parts
    return nodes.to(seeds.dtype), parts, n


@torch.library.custom_op("roost::checked_offsets", mutates_args=())
def _checked_offsets(offsets: torch.Tensor, m: int) -> torch.Tensor:
    right = (offsets[:1] == 0).all() & (offsets[-1:] == m).all() & (offsets[1:] >= offsets[:-1]).all()
    if offsets.is_cuda:
        library_of(offsets, "roost.torch.jagged_unique")
        note_wrong_offsets(~right, offsets.device)
    elif not right:
        raise ValueError(
            "roost.torch.jagged_unique: offsets must begin with 0, ascend, and end with the number of ids, "
            f"{m}"
        )
    return offsets.clone()


@_checked_offsets.register_fake
def _(offsets, m):
    return torch.empty_like(offsets)


def jagged_unique(ids, offsets):
    """The distinct ids of each segment of a jagged tensor, ascending; for the segments of features what
    FBGEMM's `jagged_unique_indices` does. It does not wait for a GPU.

    Parameters
    ----------
    ids : tensor of m ids
    offsets : tensor of int64 or int32
        Segment s has ids ``offsets[s]`` to ``offsets[s + 1] - 1``. They begin with 0, ascend, and end with m.

    Returns
    -------
    values : tensor of m ids
        Those of segment s are ``values[starts[s]:starts[s + 1]]``; 0 after the last one.
    starts : tensor of int64
        One for each segment, and the end.
    inverse : tensor of int64
        For each id, where it is in `values`.

    Examples
    --------
    >>> import torch, roost.torch
    >>> ids, offsets = torch.tensor([5, 3, 5, 3]), torch.tensor([0, 3, 4])
    >>> values, starts, inverse = roost.torch.jagged_unique(ids, offsets)
    >>> values, starts
    (tensor([3, 5, 3, 0]), tensor([0, 2, 3]))
    """
    what = "roost.torch.jagged_unique"
    given, m = _as_ids(ids, what), len(ids)
    offsets = _as_ids(offsets, what, "offsets")
    segments = len(offsets) - 1
    if segments < 0 or (segments == 0 and m):
        raise ValueError(
            f"{what}: {m} ids and no segments; offsets begin with 0, and end with the number of ids"
        )
    if segments * m >= 2**63:
        raise ValueError(f"{what}: {segments} segments of {m} ids; their product must be below 2^63")
    offsets = _checked_offsets(offsets, m)
    keys, _, numbers, _, _ = _unique_ids(given, m, 0, True, False, False, True)
    places = torch.arange(m, device=given.device)
    segment = torch.searchsorted(offsets, places, right=True) - 1
    pairs, _, inverse, _, n = _unique_ids(segment * m + numbers, m, _LAST, True, False, False, True)
    firsts = torch.arange(segments + 1, device=given.device) * m
    real = places < n
    values = torch.where(real, keys[torch.where(real, pairs, 0) % max(m, 1)], 0)
    return values.to(ids.dtype), torch.searchsorted(pairs, firsts), inverse


def group_ids(x):
    """Groups equal ids. Waits for a GPU, once.

    Parameters
    ----------
    x : tensor of n ids

    Returns
    -------
    keys : tensor
        The distinct ids, ascending.
    order : tensor of n positions, int64
        Those of ``keys[k]`` are ``order[offsets[k]:offsets[k + 1]]``, ascending.
    offsets : tensor of int64

    Examples
    --------
    >>> import torch, roost.torch
    >>> roost.torch.group_ids(torch.tensor([7, 2, 7]))
    (tensor([2, 7]), tensor([1, 0, 2]), tensor([0, 1, 3]))
    """
    what = "roost.torch.group_ids"
    keys, order, offsets = _group_keys(_as_ids(x, what))
    return keys.to(x.dtype), order, offsets


@torch.library.custom_op("roost::group_keys", mutates_args=())
def _group_keys(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    keys, _, _, counts, n, order = _distinct(
        "roost.torch.group_ids", x, len(x), 0, True, False, False, True, False, grouped=True
    )
    n = int(n)
    offsets = torch.cat([x.new_zeros(1), counts[:n].cumsum(0)])
    return keys[:n].clone(), order[:, 1].to(torch.int64), offsets


@_group_keys.register_fake
def _(x):
    n = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(n), x.new_empty(x.shape), x.new_empty(n + 1)


def _group_ids_now(
    x: torch.Tensor, groups: int, inverse: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    what = "roost.torch.to_csr"
    library, x, m = library_of(x, what), x.contiguous(), len(x)
    order, offsets = x.new_empty(m, dtype=torch.int64), x.new_empty(groups + 1, dtype=torch.int64)
    places = x.new_empty(m if inverse else 0, dtype=torch.int64)

    def run(address):
        library.module.group_ids(
            library.place(),
            column(x, m),
            column(order, m),
            column(offsets, groups + 1),
            address,
            _one(places, inverse),
        )

    with_wrong_word(run, x, lambda i: f"{what}: id {int(x[i])} at position {i}, for {groups} rows")
    return order, offsets, places


_group_ids_op = torch.library.custom_op("roost::group_ids", _group_ids_now, mutates_args=())


def _group_ids(*arguments):
    return call(_group_ids_op, _group_ids_now, *arguments)


@_group_ids_op.register_fake
def _(x, groups, inverse=False):
    new = x.new_empty
    shapes = x.shape, (groups + 1,), (x.shape[0] if inverse else 0,)
    return tuple(new(shape, dtype=torch.int64) for shape in shapes)


def to_csr(rows, n):
    """Groups the entries of a matrix, or the edges of a graph, by row, stably. It does not wait for a GPU.

    Parameters
    ----------
    rows : tensor of m rows, int64 or int32
    n : int
        How many rows there are.

    Returns
    -------
    offsets : tensor of n + 1 numbers, int64
        Also called crow_indices, indptr or rowptr.
    order : tensor of m positions, int64
        Of the entries of row r, in their order: ``order[offsets[r]:offsets[r + 1]]``; so ``cols[order]`` are
        the columns.

    Raises
    ------
    IndexError
        A row that is not below n; on a GPU as for `index_add`. Its entries come last in `order`.

    Examples
    --------
    >>> import torch, roost.torch
    >>> roost.torch.to_csr(torch.tensor([1, 0, 1]), 3)
    (tensor([0, 1, 3, 3]), tensor([1, 0, 2]))
    """
    what = "roost.torch.to_csr"
    if not isinstance(rows, torch.Tensor) or rows.dtype != torch.int32:
        rows = _as_ids(rows, what, "rows")
    elif rows.ndim != 1:
        raise ValueError(f"{what}: rows of {rows.ndim} dimensions; give 1")
    order, offsets, _ = _group_ids(rows, _size(n, what, "n"))
    return offsets, order


def bincount(x, weights=None, minlength=0, *, size=None):
    """`torch.bincount` with the same bits each time: how often each id occurs, or the sum of its weights.

    Parameters
    ----------
    x : tensor of ids, int64 or narrower
    weights : tensor of as many numbers, or None
        Sums of float32 and float64 have that type, those of others float64.
    minlength : int
        The least size of the result.
    size : int or None
        The size of the result. Then no GPU is waited for, and other ids are an IndexError as of `index_add`.

    Returns
    -------
    tensor
    """
    what = "roost.torch.bincount"
    ids = _as_ids(x, what)
    if size is None:
        size = max(_size(minlength, what, "minlength"), int(ids.max()) + 1 if len(ids) else 0)
    size = _size(size, what)
    if weights is None:
        return _group_ids(ids, size)[1].diff()
    if weights.shape != ids.shape:
        raise RuntimeError(f"{what}: weights of shape {list(weights.shape)} for ids of {list(ids.shape)}")
    if weights.dtype not in (torch.float32, torch.float64):
        weights = weights.double()
    return _index_reduce(weights.new_zeros(size), 0, ids, weights, "sum", True, 1)


def _find_ids_now(keys: torch.Tensor, x: torch.Tensor, missing: int) -> torch.Tensor:
    what = "roost.torch.index_of"
    library = library_of(keys, what, x)
    n, m, out = len(keys), x.numel(), torch.empty_like(x)
    if n >= 2**31:
        raise ValueError(f"{what}: {n} keys; give fewer than 2^31")
    library.module.find_ids(library.place(), column(keys, n), column(x, m), column(out, m), missing)
    return out


_find_ids_op = torch.library.custom_op("roost::find_ids", _find_ids_now, mutates_args=())


def _find_ids(*arguments):
    return call(_find_ids_op, _find_ids_now, *arguments)


@_find_ids_op.register_fake
def _(keys, x, missing):
    return torch.empty_like(x)


def index_of(keys, x, missing=-1):
    """Where ids are among keys that need not be sorted: what `torch.searchsorted` is used for, without
    sorting. It does not wait for a GPU. `Map` keeps its table for further calls.

    Parameters
    ----------
    keys : tensor of keys, int64 or narrower
    x : tensor of ids, of any shape
    missing : int
        For ids that are not among the keys.

    Returns
    -------
    tensor of int64, of the shape of `x`
        The first position of each id.

    Examples
    --------
    >>> import torch, roost.torch
    >>> roost.torch.index_of(torch.tensor([30, 10]), torch.tensor([[10], [50]]))
    tensor([[ 1],
            [-1]])
    """
    what = "roost.torch.index_of"
    return _find_ids(
        _as_ids(keys, what, "keys"),
        _as_ids(x, what, ndim=None),
        _number(missing, torch.int64, what, "missing"),
    )


def _coalesce_now(
    indices: torch.Tensor, values: torch.Tensor, size: list[int], reduce: str, inverse: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    what = "roost.torch.coalesce"
    library, indices = library_of(indices, what, values), indices.contiguous()
    d, m = indices.shape
    cells, wrong = indices.new_empty(m), indices.new_zeros(1)
    if m:
        library.module.number_cells(
            library.place(), column(indices, d * m), size, column(cells, m), column(wrong, 1)
        )
    bits = max(math.prod(size) - 1, 1).bit_length()
    keys, _, numbers, _, n, order = _distinct(
        what, cells, m, 0, True, False, inverse, False, False, bits, True
    )
    n, wrong = torch.cat([n.view(1), wrong]).tolist()  # waits
    if wrong:
        limits = torch.tensor(size, dtype=torch.int64, device=indices.device).view(-1, 1)
        where = ((indices < 0) | (indices >= limits)).nonzero()[0].tolist()
        raise IndexError(
            f"{what}: index {int(indices[tuple(where)])} at {where}, for a size of {size[where[0]]} there"
        )
    dtype = computed_type(values.dtype, what)
    tail = values.shape[1:]
    rows = values.to(dtype).reshape(m, values.numel() // m if m else 0).contiguous()
    out = rows.new_zeros(n, rows.shape[1])
    reduce_grouped_rows(what, out, order, rows, reduce, ascending=True)
    result = indices.new_empty(d, n)
    if n:
        library.module.split_cells(library.place(), column(keys, n), size, column(result, d * n))
    out = out.ne(0) if values.dtype == torch.bool else out.to(values.dtype)
    return result, out.reshape(n, *tail), numbers


_coalesce_op = torch.library.custom_op("roost::coalesce", _coalesce_now, mutates_args=())


def _coalesce(*arguments):
    return call(_coalesce_op, _coalesce_now, *arguments)


@_coalesce_op.register_fake
def _(indices, values, size, reduce, inverse):
    n = torch.library.get_ctx().new_dynamic_size()
    return (
        indices.new_empty((indices.shape[0], n)),
        values.new_empty((n, *values.shape[1:])),
        indices.new_empty(indices.shape[1] if inverse else 0, dtype=torch.int64),
    )


def _save_coalesce(ctx, inputs, output):
    ctx.reduce, ctx.shape = inputs[3], inputs[1].shape
    ctx.save_for_backward(output[2])


def _coalesce_backward(ctx, _, grad, __):
    (inverse,) = ctx.saved_tensors
    if ctx.reduce == "mean":
        wide = grad.float() if grad.element_size() == 2 else grad
        counts = _index_reduce(
            wide.new_zeros(len(grad)), 0, inverse, wide.new_ones(len(inverse)), "sum", True, 1
        )
        grad = (wide / counts.view(-1, *[1] * (grad.ndim - 1))).to(grad.dtype)
    return None, grad.index_select(0, inverse).reshape(ctx.shape), None, None, None


_coalesce_op.register_autograd(_coalesce_backward, setup_context=_save_coalesce)


def coalesce(indices, values, size, reduce="sum"):
    """Combines the values of equal indices, as `torch.sparse_coo_tensor(...).coalesce()` does, with the same
    bits each time. Waits for a GPU, once.

    Parameters
    ----------
    indices : tensor of d rows of m indices, int64
    values : tensor of m numbers, or of m rows of any shape
    size : sequence of d ints
        Their product must be below 2^63.
    reduce : str
        "sum" or "mean".

    Returns
    -------
    indices, values : tensors
        Distinct indices in lexicographic order, and their values, with gradients.

    Raises
    ------
    IndexError
        An index that is not below the size, also on a GPU.

    Examples
    --------
    >>> import torch, roost.torch
    >>> at = torch.tensor([[1, 0, 1], [2, 0, 2]])
    >>> roost.torch.coalesce(at, torch.tensor([1.0, 2.0, 3.0]), (2, 3))
    (tensor([[0, 1],
            [0, 2]]), tensor([2., 4.]))
    """
    what = "roost.torch.coalesce"
    size = [_size_of_dimension(n, what) for n in size]
    if indices.dtype != torch.int64 or indices.ndim != 2:
        raise TypeError(f"{what}: indices of {indices.ndim} dimensions of {indices.dtype}; give 2, of int64")
    if len(size) != len(indices) or len(size) == 0:
        raise ValueError(f"{what}: {len(indices)} rows of indices for a size of {len(size)} dimensions")
    if values.ndim == 0 or len(values) != indices.shape[1]:
        raise ValueError(
            f"{what}: values of shape {list(values.shape)} for {indices.shape[1]} columns of indices"
        )
    cells = math.prod(size)
    if cells >= 2**63:
        raise ValueError(f"{what}: a size of {cells} cells; give fewer than 2^63")
    if reduce not in ("sum", "mean"):
        raise ValueError(f"{what}: reduce={reduce!r}; give 'sum' or 'mean'")
    refuse_tangents(values)
    return _coalesce(indices, values, size, reduce, values.requires_grad)[:2]


def _size_of_dimension(n, what):
    n = whole_number(n, what, "size")
    if not 0 <= n < 2**63:
        raise ValueError(f"{what}: a size of {n}; give 0 or more")
    return n
