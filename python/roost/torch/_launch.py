"""How the operators on ids call C++, and how wrong ids are reported."""

import ctypes

import numpy as np
import torch
from torch.autograd import forward_ad

from .._arrays.take import take

_NAMES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int32: "int32",
    torch.int64: "int64",
}
# Types that are computed as others, which wrap around to the same numbers.
_COMPUTED_AS = {
    torch.bool: torch.int32,
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
}
_flags = {}  # by device
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)


def refuse_tangents(x):
    """Raises a NotImplementedError for forward-mode gradients: torch would take those of operators for 0."""
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None:
        raise NotImplementedError("roost.torch: forward-mode gradients; use backward()")


def call(operator, function, *arguments):
    """Calls an operator; or the function that it is made of, where no gradients, compiler or mode need the
    operator: that saves 50 us."""
    if torch.compiler.is_compiling() or _modes() or torch.jit.is_tracing():
        return operator(*arguments)
    gradients = torch.is_grad_enabled()
    for x in arguments:
        if not isinstance(x, torch.Tensor):
            continue
        refuse_tangents(x)
        if type(x) is not torch.Tensor or x.is_meta or (gradients and x.requires_grad):
            return operator(*arguments)
    return function(*arguments)


class _Flag:
    """Three words of pinned memory that kernels of a GPU write to: if an id is wrong; if there are more
    distinct ids than a result has room for; and how many calls had wrong offsets so far."""

    def __init__(self, device):
        with torch.inference_mode(False):  # others may change these later
            self.memory = torch.zeros(3, dtype=torch.int64, device="cpu").pin_memory()
            self.calls = torch.zeros(1, dtype=torch.int64, device=device)
        self.wrong = self.memory.data_ptr()
        self.too_many = self.wrong + 8
        self._words = (ctypes.c_uint64 * 3).from_address(self.wrong)
        self._seen = 0

    def raise_if_set(self, device):
        wrong, too_many, calls = self._words
        if wrong == 0 and too_many == 0 and calls == self._seen:
            return
        self._words[:2] = 0, 0
        self._seen, before = calls, self._seen
        if calls != before:
            raise ValueError(
                f"roost.torch: an earlier call of jagged_unique on {device} had offsets that do not begin "
                "with 0, ascend, and end with the number of ids"
            )
        if wrong == 0:
            raise IndexError(
                f"roost.torch: an earlier call on {device} found more distinct ids than its size; give more"
            )
        raise IndexError(
            f"roost.torch: an earlier call on {device} had an id that is out of range, at position "
            f"{wrong ^ (2**64 - 1)} of its ids; its row was left out"
        )


def _flag_of(device):
    flag = _flags.get(device)
    if flag is None:
        flag = _flags[device] = _Flag(device)
    return flag


def check(device=None):
    """Waits for a GPU, and raises an error if a call of roost.torch on it had ids that are out of range.

    Calls on a GPU do not wait to see whether all ids are right. They leave out rows of wrong ids, and the
    next call on the device, or `check`, raises the error. On the CPU a call raises its own errors.

    Parameters
    ----------
    device : torch.device, str or None
        None: all devices that have been used.

    Raises
    ------
    IndexError
        With the position of a wrong id, or for more distinct ids than a size. The device works on, and the
        error is reported once.
    ValueError
        Wrong offsets of `jagged_unique`.
    """
    for index, flag in list(_flags.items()):
        if device is None or torch.device(device) in (index, torch.device(index.type)):
            torch.cuda.synchronize(index)
            flag.raise_if_set(index)


def library_of(tensor, what, *others):
    """The library of a tensor, and of others, which must lie beside it."""
    library = take(tensor, what)[1]
    for other in others:
        if other.device != tensor.device:
            raise RuntimeError(
                f"{what}: tensors on {tensor.device} and {other.device}; move them to one device"
            )
        take(other, what)
    if tensor.is_cuda and tensor.device in _flags:
        _flags[tensor.device].raise_if_set(tensor.device)
    return library


def column(tensor, rows, row_numbers=1):
    """What C++ takes of a contiguous tensor: so many rows of numbers."""
    return (tensor.data_ptr(), rows, row_numbers * tensor.element_size(), tensor)


def with_wrong_word(call, tensor, about):
    """call(address of a word for the position of a wrong id). On the CPU, raises the IndexError
    about(position) if there is one."""
    if tensor.is_cuda:
        return call(_flag_of(tensor.device).wrong)
    word = np.zeros(1, np.uint64)
    call(word.ctypes.data)
    if word[0]:
        raise IndexError(about(int(~word[0])))


def note_wrong_offsets(wrong, device):
    """Counts a call on a GPU if its offsets are wrong, a bool of the device."""
    flag = _flag_of(device)
    flag.calls += wrong
    flag.memory[2:].copy_(flag.calls, non_blocking=True)


def with_too_many(call, tensor, what, size, strict):
    """The same for a word that is set if there are more than `size` distinct ids; 0 if not `strict`."""
    if not strict:
        return call(0)
    if tensor.is_cuda:
        return call(_flag_of(tensor.device).too_many)
    word = np.zeros(1, np.uint64)
    call(word.ctypes.data)
    if word[0]:
        raise ValueError(f"{what}: more than {size} distinct ids; give a larger size, or strict=False")


def computed_type(dtype, what):
    """The type in which rows of a type are computed."""
    computed = _COMPUTED_AS.get(dtype, dtype)
    if computed not in _NAMES:
        raise TypeError(
            f"{what}: numbers of type {dtype}; give floats of at most 64 bits, or signed integers"
        )
    return computed


def reduce_rows(what, out, ids, rows, how, with_output=True, scale=1.0, about=None):
    """Reduces rows into those of `out` in place. `ids`: one dimension, int32 or int64; `rows`, `out`: of two
    dimensions, of one type that C++ knows, contiguous. `about`: the message for a wrong id's position."""
    library = library_of(out, what, ids, rows)
    m, width = rows.shape
    if m == 0 or width == 0:
        return
    n = out.shape[0]
    if m >= 2**32 or n >= 2**32 - 1:
        raise ValueError(f"{what}: {m} rows into {n}; give fewer than 2^32 - 1")
    ids = ids.contiguous()

    def call(address):
        library.module.reduce_rows(
            library.place(),
            column(ids, m),
            column(rows, m, width),
            column(out, n, width),
            _NAMES[rows.dtype],
            how,
            with_output,
            scale,
            address,
        )

    def message(position):
        return f"{what}: index {int(ids[position])} at position {position}, for {n} rows"

    with_wrong_word(call, out, about or message)


def reduce_grouped_rows(what, out, order, rows, how, ascending=False):
    """The same for rows that group_keys of C++ has ordered; rows of `out` that have none stay as they are.
    `ascending`: whether the numbers of groups ascend."""
    library = library_of(out, what, order, rows)
    m, width = len(order), rows.shape[1]
    if m and width:
        library.module.reduce_grouped_rows(
            library.place(),
            column(order, m, 2),
            column(rows, len(rows), width),
            column(out, out.shape[0], width),
            _NAMES[rows.dtype],
            how,
            ascending,
        )
