"""Tables of several processes, each with a part of the data: a map, distinct keys, joins.

    >>> import numpy as np, roost.distributed
    >>> alone = roost.distributed.Group(
    ...     0, 1, lambda mine, all: np.copyto(all, mine), lambda out, into: None)
    >>> roost.distributed.unique(np.array([30, 10, 30]), group=alone)
    array([30, 10])

Processes are those of a torch.distributed group, which torchrun or another launcher starts, for instance with
`torchrun --nproc-per-node 4 program.py`::

    torch.distributed.init_process_group("gloo")
    prices = roost.distributed.Map(ids, values)    # each process: the rows that it has
    mine = prices.find(wanted)                     # each process: what it asks

Every process of the group must make the same calls in the same order. Each call waits for all processes.
Answers are those of one table with all rows, the rows of rank 0 first. If one process raises, the others
raise a RuntimeError with its rank and message, and the next call works. If a process ends, the others get
torch's exception, within the timeout of the group, and later calls raise RuntimeError.

Arrays are numpy's, torch's, pandas' or Arrow's on the CPU, or torch's or CuPy's on a GPU, one GPU a process.
GPUs exchange data through NCCL, with a communicator that roost creates at the first call. This needs
libnccl.so.2, which torch brings along. Calls on GPUs wait on the host until all data have arrived.
"""

import threading
import weakref

import numpy as np

from . import _host
from ._arrays.libraries import NUMPY
from ._arrays.types import INT64
from ._keys.strings import StringKeys
from ._keys.words import encode, encode_like, encode_two
from ._tables.keyed import Table
from ._tables.values import Values

__all__ = ["Group", "Map", "join", "unique"]


class Group:
    """Processes that exchange bytes by other means than torch.distributed, such as MPI.

    Parameters
    ----------
    rank, size : int
        The number of this process, and the number of processes, at most 64.
    all_gather : callable
        ``all_gather(mine, all)``: fills `all`, of uint8, with the `mine` of rank 0, then that of rank 1, and
        so on; `mine` has the same length on all ranks.
    exchange : callable
        ``exchange(out, into)``: sends the array out[r] to rank r and receives into[r] from it. The arrays are
        of uint8 and may be empty; those of the process itself are empty.
    abort : callable, optional
        ``abort()``: called if this process fails while others wait for its data; makes their calls raise.
    deadline : int
        How many seconds an exchange between GPUs may take. After that, or when NCCL reports an error, the
        call raises RuntimeError and the group cannot be used any more. On the CPU the functions decide.

    Notes
    -----
    Data on GPUs are exchanged through NCCL; then these functions carry a few hundred bytes per call. The
    arrays are roost's memory and must not be used after the call. If one of these functions raises, the call
    of roost raises the same, and the group cannot be used any more. One call at a time.
    """

    def __init__(self, rank, size, all_gather, exchange, abort=None, *, deadline=120):
        if not isinstance(deadline, int) or not 0 < deadline < 2**31:
            raise ValueError(f"roost.distributed.Group: deadline={deadline!r}; give seconds, at least 1")
        for function in (all_gather, exchange, *([] if abort is None else [abort])):
            if not callable(function):
                raise TypeError(f"roost.distributed.Group: {function!r} is not a function")
        self.rank, self.size = rank, size
        self._group = _host.Group(NUMPY.place(), rank, size, all_gather, exchange, abort)
        self._all_gather, self._deadline, self._on_gpus = all_gather, deadline, {}

    def _on(self, library):
        """The group on the device of a library's arrays. All processes call this at the same time."""
        if library.module is _host:
            return self._group
        group = self._on_gpus.get(library)
        if group is None:
            identity = np.zeros(128, np.uint8)
            if self.rank == 0:
                identity[:] = np.frombuffer(library.module.new_nccl_identity(), np.uint8)
            identities = np.empty(self.size * 128, np.uint8)
            self._all_gather(identity, identities)
            identity = identities[:128].tobytes()
            group = library.module.Group(library.place(), self.rank, self.size, identity, self._deadline)
            self._on_gpus[library] = group
        return group

    def _prepare(self, what, prepare):
        """Calls prepare() on all processes, which must return the same text; raises on all if it raises on
        one."""
        try:
            text, result = prepare()
        except Exception as error:
            try:
                self._group.fail(NUMPY.place(), f"{type(error).__name__}: {error}")
            except RuntimeError:  # which all raise
                pass
            raise
        self._group.agree(NUMPY.place(), f"{what} {text}")
        return result


_groups = weakref.WeakKeyDictionary()  # of torch's
_lock = threading.Lock()


def _of_torch(group):
    import torch.distributed as dist

    if group is None:
        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                "roost.distributed: there is no process group; start processes with torchrun and call "
                "torch.distributed.init_process_group, or give a roost.distributed.Group"
            )
        group = dist.group.WORLD
    with _lock:
        found = _groups.get(group)
        if found is None:
            found = _groups[group] = _new_group_of_torch(group)
        return found


def _new_group_of_torch(group):
    import torch
    import torch.distributed as dist

    size, me = dist.get_world_size(group), dist.get_rank(group)
    if me < 0:
        raise ValueError("roost.distributed: this process is not of the group")
    ranks = [dist.get_global_rank(group, r) for r in range(size)]
    group = weakref.ref(group)  # which is alive during a call

    def tensor(memory):
        """What torch sends or receives for an array: the array itself, or a copy if the group has only
        GPUs."""
        array = torch.from_numpy(memory)
        return array.cuda() if dist.get_backend(group()) == "nccl" else array

    def all_gather(mine, all):
        arriving = tensor(all)
        dist.all_gather(list(arriving.chunk(size)), tensor(mine), group=group())
        np.copyto(all, arriving.cpu().numpy())

    def exchange(out, into):
        # Each begins with its neighbour, so that they do not all send to the same one.
        others = [(me + i) % size for i in range(1, size)]
        arriving = [(r, tensor(into[r])) for r in others if len(into[r])]
        leaving = [(r, tensor(out[r])) for r in others if len(out[r])]
        work = [dist.P2POp(dist.irecv, array, ranks[r], group()) for r, array in arriving]
        work += [dist.P2POp(dist.isend, array, ranks[r], group()) for r, array in leaving]
        for each in dist.batch_isend_irecv(work) if work else ():
            each.wait()
        for r, array in arriving:
            np.copyto(into[r], array.cpu().numpy())

    return Group(me, size, all_gather, exchange)


def _group(group):
    return group if isinstance(group, Group) else _of_torch(group)


def _checked(keys, what):
    """Keys, if roost.distributed takes them, and a text that must be the same on all processes."""
    if keys.library.name == "jax" and keys.library.module is not _host:
        raise TypeError(f"{what}: a jax array on a GPU; on GPUs, roost.distributed takes torch's and CuPy's")
    if isinstance(keys, StringKeys):
        raise TypeError(
            f"{what}: texts, which have no common numbers across processes; pass numbers or bytes"
        )
    if keys.kind.word_bytes > 16:
        raise ValueError(f"{what}: keys of {keys.kind.key_bytes} bytes; here they may have 1 to 16")
    return keys, str(keys.kind) if keys.library.module is _host else f"{keys.kind} on GPUs"


class Map(Table):
    """A map that several processes build and query together; each has a part of the pairs.

    Parameters
    ----------
    keys : array of n keys
        Of this process: integers, bools, floats, dates, fixed-size bytes of at most 16, or rows of integers
        of at most 16 bytes. All processes give the same type; n may differ, and may be 0. If a key occurs
        more than once, its first value counts, that of rank 0 before that of rank 1.
    values : array of n values
        Numbers or rows of at most 8 bytes, of the same type everywhere.
    group : Group or process group of torch, optional
        By default torch's.

    Raises
    ------
    TypeError, ValueError
        Keys or values whose types cannot be used, or differ from those of another process.
    MemoryError
    RuntimeError
        Another process has raised, or ended.

    Notes
    -----
    The hash of a key determines the process that has its pair; all processes have about the same number of
    pairs. The build sends each pair once, and needs memory for about three times this process's pairs.
    """

    def __init__(self, keys, values, *, group=None):
        what = "roost.distributed.Map"
        self._all = _group(group)

        def prepare():
            encoded, text = _checked(encode(keys, what), what)
            given = Values(values, encoded, what)
            if given.bytes not in (4, 8):
                raise ValueError(f"{what}: values of {given.size} bytes; they may have 1, 2, 4 or 8")
            return f"{text} {given.dtype}{list(given.tail) or ''}", (encoded, given)

        encoded, self._values = self._all._prepare("Map", prepare)
        self._kind, self._library = encoded.kind, encoded.library
        self._table = self._library.module.make_shared_map(
            self._library.place(),
            self._all._on(self._library),
            encoded.words,
            self._values.take_words(),
        )

    def _queries(self, keys, name, missing=None):
        what = f"roost.distributed.Map.{name}"

        def prepare():
            encoded = encode_like(keys, self._kind, self._library, what)
            return f"{self._kind}", (encoded, missing and missing(what))

        return self._all._prepare(name, prepare)

    def find(self, keys, missing=0):
        """The value of each key of this process, `missing` for keys that no process has given.

        Parameters
        ----------
        keys : array of m keys
        missing : a value, by default 0

        Returns
        -------
        array of m values
        """
        return self._find(*self._queries(keys, "find", lambda what: self._values.one(missing, what)))

    def contains(self, keys):
        """Whether any process has given each key of this process: an array of bool."""
        return self._contains(self._queries(keys, "contains")[0])

    def items(self):
        """The keys that this process has, in no particular order, and their values. Does not wait for
        others."""
        return self._items()

    def __len__(self):
        """The number of distinct keys of all processes. Does not wait for others."""
        return super().__len__()

    @property
    def nbytes(self):
        """The memory of the map on all processes, in bytes."""
        return super().nbytes

    def valid(self):
        """Checks the map's invariants on all processes: looks up every key. For tests."""
        return super().valid()

    def __repr__(self):
        return (
            f"roost.distributed.Map({len(self)} keys of type {self._kind.dtype}, "
            f"rank {self._all.rank} of {self._all.size})"
        )


def unique(x, *, group=None):
    """The distinct keys of all processes, each on the process where it first occurs.

    Parameters
    ----------
    x : array of n keys
        Of this process, as for `Map`.
    group : Group or process group of torch, optional

    Returns
    -------
    array
        In order of first occurrence. The arrays of all processes, one after the other, are ``roost.unique``
        of all `x` in that order. Errors are those of `Map`.
    """
    what = "roost.distributed.unique"
    all = _group(group)

    def prepare():
        keys, text = _checked(encode(x, what), what)
        return text, keys

    keys = all._prepare("unique", prepare)
    library = keys.library
    found = library.module.shared_unique(library.place(), all._on(library), keys.words)
    return keys.kind.decode(found, library)


def join(left, right, *, group=None):
    """The rows with equal keys in two columns that are spread over processes.

    Parameters
    ----------
    left, right : arrays of keys
        Of this process, as for `Map`; of one type, or of two types if one can hold all values of the other.
    group : Group or process group of torch, optional

    Returns
    -------
    (int64 array, int64 array)
        Pairs of row numbers, for the rows of `left` that this process has. Rows are numbered over all
        processes, those of rank 0 first. The arrays of all processes, one after the other, are ``roost.join``
        of the whole columns. Errors are those of `Map`.
    """
    what = "roost.distributed.join"
    all = _group(group)

    def prepare():
        two = encode_two(left, right, what)
        _checked(two[1], what)
        return _checked(two[0], what)[1], two

    a, b = all._prepare("join", prepare)
    library = a.library
    rows = library.module.shared_join(library.place(), all._on(library), a.words, b.words)
    return tuple(library.adopt(side, INT64) for side in rows)
