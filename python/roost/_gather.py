"""gather: rows by number."""

import sys

import numpy as np

from ._arrays.exact import advice_on, has_mask
from ._arrays.take import take

_WHAT = "roost.gather"


def gather(rows, ids):
    """Rows by number, `rows[ids]`; on a GPU also from host memory.

    Parameters
    ----------
    rows : array of n rows, of any shape and type
        Of numpy, torch or CuPy. If `ids` are on a GPU, the rows may also be in pinned host memory: a tensor
        with `pin_memory()`, or a numpy array in CuPy's pinned memory. So tables that do not fit on a GPU,
        n-gram tables for example, are read over the link.
    ids : array of int64 or int32, of any shape; or a list
        Below n.

    Returns
    -------
    array of the shape of `ids`, followed by the shape of a row, on the device of `ids`

    Raises
    ------
    IndexError
        An id below 0, or not below n. On a GPU torch reports it later, as for its own indices, and CuPy waits
        for the check.
    ValueError
        Rows in host memory that is not pinned, or on another device.

    Notes
    -----
    From 2^15 ids on, narrow rows in host memory are read in the order of their pages. There are no gradients.
    """
    torch = sys.modules.get("torch")
    if isinstance(ids, (list, tuple, range)):
        ids = np.array(ids, None if len(ids) else np.int64)
        if torch is not None and isinstance(rows, torch.Tensor):
            ids = torch.from_numpy(ids).to(rows.device)
    of_torch = torch is not None and isinstance(ids, torch.Tensor)
    ids, library = take(ids, _WHAT)
    if not of_torch and type(ids).__module__.partition(".")[0] not in ("numpy", "cupy"):
        raise TypeError(f"{_WHAT}: ids of {library}; give arrays of numpy, torch or CuPy")
    if (getattr(ids.dtype, "name", None) or str(ids.dtype).rpartition(".")[2]) not in ("int64", "int32"):
        raise TypeError(f"{_WHAT}: ids of type {ids.dtype}; give int64 or int32")
    if not isinstance(rows, torch.Tensor if of_torch else (np.ndarray, type(ids))):
        advice = advice_on(rows, "give arrays of one library")
        raise TypeError(f"{_WHAT}: rows of type {type(rows).__name__} for ids of {library}; {advice}")
    if has_mask(rows):
        raise TypeError(f"{_WHAT}: rows that are masked; pass rows.filled(number), or rows.data")
    rows = take(rows, _WHAT)[0]
    if rows.ndim == 0:
        raise TypeError(f"{_WHAT}: rows without a first dimension")
    message = f"{_WHAT}: a number below 0, or not below {len(rows)}, the number of rows"
    wrong = (ids < 0) | (ids >= len(rows))
    if of_torch and ids.is_cuda:
        _expect_reachable(rows, ids)  # first: after a failed assertion, nothing runs on the device
        torch._assert_async(~wrong.any(), message)
        return _of_torch(torch, library, rows, ids)
    if bool(wrong.any()):
        raise IndexError(message)
    if of_torch and rows.is_cuda:
        raise ValueError(f"{_WHAT}: rows on {rows.device}, ids on {ids.device}; move one")
    if isinstance(ids, np.ndarray):
        return np.asarray(rows[ids], rows.dtype)
    return rows[ids] if of_torch else _of_cupy(library, rows, ids)


def _expect_reachable(rows, ids):
    if rows.device == ids.device:
        return
    if rows.device.type != "cpu" or not rows.is_pinned():
        raise ValueError(f"{_WHAT}: rows on {rows.device}, ids on {ids.device}; pin the rows, or move one")
    if not rows.is_contiguous():
        raise ValueError(
            f"{_WHAT}: rows on the CPU that do not lie one after the other; pin a contiguous copy"
        )


def _of_torch(torch, library, rows, ids):
    rows, wide = rows.contiguous(), ids.reshape(-1).to(torch.int64)
    out = torch.empty((*ids.shape, *rows.shape[1:]), dtype=rows.dtype, device=ids.device)
    row_bytes = rows.element_size() * rows[:1].numel()
    _run(library, (rows.data_ptr(), len(rows), row_bytes, rows), wide, (out.data_ptr(), len(wide), row_bytes))
    return out


def _of_cupy(library, rows, ids):
    plain = isinstance(rows, type(ids)) or (rows.flags.aligned and rows.dtype.isnative)
    if not plain or not rows.flags.c_contiguous or rows.dtype.hasobject:
        raise ValueError(
            f"{_WHAT}: rows that do not lie one after the other, aligned, as the GPU reads them; pass a copy"
        )
    wide, tail = ids.reshape(-1).astype(np.int64, copy=False), rows.shape[1:]
    out = library.empty(len(wide), rows.dtype, tail)
    row_bytes = rows.itemsize * rows[:1].size
    address = rows.ctypes.data if isinstance(rows, np.ndarray) else rows.data.ptr
    _run(library, (address, len(rows), row_bytes, rows), wide, (out.data.ptr, len(wide), row_bytes))
    return out.reshape(*ids.shape, *tail)


def _run(library, rows, ids, out):
    if rows[1] * rows[2] != 0 and len(ids) != 0:
        library.module.gather_rows(library.place(), rows, library.column(ids), out)
