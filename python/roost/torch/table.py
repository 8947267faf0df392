"""roost.torch.Table: learned rows by key, in a table of a fixed size."""

import concurrent.futures
import contextlib
import errno
import fcntl
import json
import os
import secrets
import shutil
import threading
import warnings
import weakref
import zlib

import numpy as np
import torch

from .. import _host
from .._arrays.exact import plural
from .._arrays.take import take
from .._options import type_name, whole_number

_DTYPES = torch.float32, torch.bfloat16, torch.float16
_POLICIES = tuple(None if name == "none" else name for name in _host.policies)
_KNOWN = {"policy": _POLICIES, "optimizer": _host.optimizers, "dtype": _DTYPES}
# What numbers stand for in states of format 1; format 2 has names.
_NUMBERED = {
    "optimizer": ("sgd", "adagrad", "rowwise_adagrad", "adam"),
    "dtype": ("float32", "bfloat16", "float16"),
    "policy": (None, "lru", "lfu", "score"),
}
_NONE = (0, 0, 0)  # an empty column
# The parts of a state: the type in the state, whether each element is a row of bytes, and the type here.
_PARTS = {
    "slots": (torch.int32, False, torch.uint32),
    "ids": (torch.int64, False, torch.int64),
    "features": (torch.int16, False, torch.uint16),
    "steps": (torch.int32, False, torch.uint32),
    "scores": (torch.int64, False, torch.uint64),
    "rows": (torch.uint8, True, torch.uint8),
}
_STATE = "about", *_PARTS
_ABOUT = "format", "dim", "optimizer", "dtype", "policy", "capacity", "seed", "steps", "updates"
_PIECE = 64 * 2**20  # bytes of rows copied between a device and the host at a time


class _Step:
    """A forward pass that waits for its backward pass. Until that comes, or can no longer come, its keys keep
    their rows."""

    table, number, waits = None, 0, False

    def __init__(self, table):
        self.table = weakref.ref(table)
        self.number, self.generation = table._step, table._generation
        self.waits = True
        table._running[self.number] = True

    def end(self):
        table = self.table() if self.waits else None
        self.waits = False
        if table is not None:
            table._running.pop(self.number, None)

    __del__ = end


class _Lookup(torch.autograd.Function):
    """A training step. The rows of the table are not a torch tensor; the table learns from their gradient."""

    @staticmethod
    def forward(ctx, anchor, table, batch):
        out, slots = table._look_up(batch)
        ctx.table, ctx.batch, ctx.slots, ctx.step = table, batch, slots, _Step(table)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        ctx.table._learn(ctx.batch, ctx.slots, gradient, ctx.step)
        return torch.zeros_like(ctx.table._anchor), None, None


class _Batch:
    """The ids of a call, checked, and as C++ takes them."""

    _pool = None  # offsets and weights of bags that torch pools

    def __init__(
        self,
        table,
        ids,
        offsets=None,
        feature=0,
        scores=None,
        mean=False,
        include_last=False,
        changes=False,
        weights=None,
    ):
        what, library = table._what, table._library
        if not isinstance(ids, torch.Tensor) or ids.dtype not in (torch.int64, torch.int32, torch.uint8):
            given = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
            raise TypeError(f"{what}: ids of type {given}; pass a tensor of int64 or int32")
        table._same_device(ids, "ids")
        self.shape = ids.shape
        self.ids = take(ids, what)[0].reshape(-1).to(torch.int64).contiguous()
        n = self.ids.shape[0]
        self.offsets = None if offsets is None else self._offsets(table, ids, offsets, include_last)
        if weights is not None:
            self._pool = self.offsets, self._weights(table, weights, mean)
            self.offsets = None
        self.feature, self.features = self._features(table, feature, n)
        self.scores = None
        if scores is not None and changes:
            self.scores = self._numbers(table, scores, n, "scores", torch.uint32, 2**32)
        if changes and (self.scores is not None) != (table.policy == "score"):
            raise TypeError(
                f"{what}: policy {table.policy!r} "
                + ("takes no scores" if scores is not None else "needs scores, a number for each id")
            )
        column = library.column
        self.words = library.module.EmbeddingBatch(
            column(self.ids),
            _NONE if self.features is None else column(self.features),
            _NONE if self.scores is None else column(self.scores),
            _NONE if self.offsets is None else column(self.offsets),
            self.feature,
            mean,
        )

    @property
    def rows(self):
        return len(self.ids) if self.offsets is None else len(self.offsets) - 1

    def out_shape(self, dim):
        return (*self.shape, dim) if self.offsets is None else (self.rows, dim)

    def pooled(self, rows):
        """What a call returns: the rows looked up, or their sums with weights."""
        if self._pool is None:
            return rows
        offsets, weights = self._pool
        if len(rows) == 0:  # zeros with a backward pass
            return (rows.sum(0) + weights.sum().to(rows.dtype)).repeat(len(offsets) - 1, 1)
        sums = torch.nn.functional.embedding_bag(
            torch.arange(len(rows), device=rows.device),
            rows.float(),
            offsets,
            mode="sum",
            per_sample_weights=weights.float(),
            include_last_offset=True,
        )
        return sums.to(rows.dtype)

    def _weights(self, table, weights, mean):
        what = f"{table._what}: per_sample_weights"
        if self.offsets is None or mean:
            raise ValueError(f"{what} need offsets and mode 'sum'")
        if not isinstance(weights, torch.Tensor) or weights.dtype not in _DTYPES:  # others would be rounded
            given = getattr(weights, "dtype", type(weights).__name__)
            raise TypeError(f"{what} of type {given}; pass a tensor of float32, bfloat16 or float16")
        table._same_device(weights, "per_sample_weights")
        if weights.shape != self.shape:
            raise ValueError(
                f"{what} of shape {tuple(weights.shape)} for ids of shape {tuple(self.shape)}; give one "
                "number for each id"
            )
        return weights

    def _offsets(self, table, ids, offsets, include_last):
        what = table._what
        if not isinstance(offsets, torch.Tensor):
            raise TypeError(
                f"{what}: offsets of type {type(offsets).__name__}; pass a tensor of int64 or int32"
            )
        if ids.ndim != 1 or offsets.ndim != 1 or offsets.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"{what}: bags need ids and offsets of one dimension, offsets of int64 or int32")
        table._same_device(offsets, "offsets")
        offsets = take(offsets, what)[0].to(torch.int64)
        n = len(ids)
        if not include_last:
            offsets = torch.cat([offsets, offsets.new_full((1,), n)])
        right = (offsets[:1] == 0).all() & (offsets[-1:] == n).all() & (offsets[1:] >= offsets[:-1]).all()
        if len(offsets) == 0 or (len(offsets) == 1 and n != 0):
            raise ValueError(f"{what}: no bags for {plural(n, 'id')}")
        message = f"{what}: offsets must begin with 0, ascend, and end with the number of ids, {n}"
        if offsets.is_cuda:
            torch._assert_async(right, message)  # without waiting, like torch's checks of indices
        elif not right:
            raise ValueError(message)
        return offsets.contiguous()

    def _features(self, table, feature, n):
        if isinstance(feature, torch.Tensor):
            if not table.features:
                raise ValueError(f"{table._what}: a table of one feature; make it with features=True")
            return 0, self._numbers(table, feature, n, "features", torch.uint16, 2**16)
        feature = whole_number(feature, table._what, "table")
        if not 0 <= feature < 2**16 or (feature != 0 and not table.features):
            raise ValueError(
                f"{table._what}: table={feature}; "
                + ("give a number below 65536" if table.features else "make it with features=True")
            )
        return feature, None

    @staticmethod
    def _numbers(table, given, n, name, dtype, end):
        """One unsigned number for each id. Types that can hold other numbers are checked, which waits for a
        GPU."""
        what = table._what
        if (
            not isinstance(given, torch.Tensor)
            or given.dtype.is_floating_point
            or given.dtype.is_complex
            or given.dtype is torch.bool
        ):
            raise TypeError(
                f"{what}: {name} of type {getattr(given, 'dtype', type(given).__name__)}; "
                "pass a tensor of integers"
            )
        table._same_device(given, name)
        given = take(given, what)[0].reshape(-1)
        if len(given) != n:
            raise ValueError(f"{what}: {plural(len(given), 'number')} as {name} of {plural(n, 'id')}")
        if given.dtype in (dtype, torch.uint8):
            return given.to(dtype).contiguous()
        wide = given.to(torch.int64)
        if n and (wide.min() < 0 or wide.max() >= end):
            raise OverflowError(f"{what}: {name} below 0, or not below {end}")
        return wide.to(dtype).contiguous()


class Table(torch.nn.Module):
    """Learned rows by key, in a table of a fixed size: embeddings for more ids than there is room for.

    In training each new key gets a row: a free row of its bucket of 128, or the row of another key, which the
    policy chooses. Keys of unfinished steps keep their rows. The optimizer is part of the table: `backward`
    changes the rows. The same calls give the same rows, bit for bit.

    Parameters
    ----------
    dim : int
        Numbers in a row.
    capacity : int
        Rows; rounded up to buckets of 128.
    optimizer : str
        "adam", "adagrad", "rowwise_adagrad" (one number of state per row), or "sgd".
    lr, betas, eps, weight_decay
        As in `torch.optim`; `weight_decay` is added to gradients. `lr` may be set between steps.
    policy : str or None
        Which key loses its row: "lru", the one looked up least recently; "lfu", the one with the fewest
        lookups, counted exactly; "score", the one with the lowest of your scores; None: no key; the table
        grows (then each training step waits for the GPU).
    hbm_rows : int, optional
        The number of rows in GPU memory; by default all. If it is less than `capacity`, all rows are in
        pinned host memory, and the GPU caches those used last. Results are the same. Rows that are not in
        the cache are read and changed over the link, which is slow: give a multiple of the distinct keys of
        a step. Keys and their metadata (17 to 27 bytes per row) stay in GPU memory.
    admit : int
        How many lookups a key needs before it gets a row. They are counted in a sketch of two counters per
        row, which counts too many if new ids are far more numerous than rows, and halves each counter once
        every 1024 steps. The sketch is not part of a snapshot. Only with a policy.
    initializer : tuple, or the name of a kind with its usual numbers
        ("normal", mean, deviation), ("uniform", least, greatest) or ("constant", number). A new row is a
        function of `seed` and the key: a key that lost its row and returns begins as it did before.
    features : bool
        Whether a key is an id and the number of a feature: the argument `table` of the calls.
    keep_evicted : int
        How many keys that lost their rows are remembered for `evicted` and `delta`; `delta` needs 1 or more.
    seed : int
    device, dtype
        Of the rows: float32, bfloat16 or float16. The optimizer's state is float32.

    Raises
    ------
    TypeError, ValueError, MemoryError

    Notes
    -----
    The lookup of a key without a row returns the row that it would begin with, never zeros. In evaluation
    these are keys that never occurred in training; in training, keys that are not admitted, or whose bucket
    is full of keys of running steps. In training they are counted (`counts`), and their gradients are
    dropped.

    While a forward pass waits for its backward pass, no key that it or a later pass looked up loses its row:
    `detach` results that you keep. Under `torch.compile` a table causes a graph break, so it does not work
    with `fullgraph=True`.

    Rows are not parameters: do not pass the table to an optimizer of torch. Gradients of one backward pass
    are added up by key, in the order of the batch, and applied at once; there is no accumulation over passes,
    and no second backward pass. A table allows 2^32 - 1 steps. Not for several threads at once. `to(device)`
    moves the rows; `half`, `to(dtype)` and the like are refused (TypeError), also for a module that has the
    table.

    The design follows Stadium hashing (Khorasani et al., 2015) and HierarchicalKV (arXiv 2603.17168).

    Examples
    --------
    >>> import torch, roost.torch
    >>> users = roost.torch.Table(16, 1000, optimizer="adam", lr=0.01)
    >>> users(torch.tensor([10**12, 5, -3])).sum().backward()
    >>> len(users)
    3
    """

    _what = "roost.torch.Table"

    def __init__(
        self,
        dim,
        capacity,
        *,
        optimizer="adam",
        lr=0.01,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        policy="lru",
        hbm_rows=None,
        admit=1,
        initializer=("normal", 0.0, 1.0),
        features=False,
        keep_evicted=0,
        seed=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        what = self._what
        dtype = dtype or torch.float32
        for name, value in (("policy", policy), ("optimizer", optimizer), ("dtype", dtype)):
            if value not in _KNOWN[name]:
                known = ", ".join(map(repr, _KNOWN[name]))
                raise ValueError(f"{what}: {name}={value!r}; give one of {known}")
        self.dim, self.policy, self.optimizer, self.dtype = dim, policy, optimizer, dtype
        self._options = {
            "dim": whole_number(dim, what, "dim"),
            "hbm_rows": None if hbm_rows is None else whole_number(hbm_rows, what, "hbm_rows"),
            "admit": whole_number(admit, what, "admit"),
            "features": bool(features),
            "keep_evicted": whole_number(keep_evicted, what, "keep_evicted"),
            "seed": whole_number(seed, what, "seed"),
            "initializer": _initializer(initializer, what),
        }
        if not torch.tensor(self._options["initializer"][1:], dtype=dtype, device="cpu").isfinite().all():
            raise ValueError(f"{what}: initializer={initializer!r}; {dtype} does not hold these numbers")
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"{what}: betas={betas!r}; give two numbers")
        self._rates = [float(lr), *map(float, betas), float(eps), float(weight_decay)]
        self._check_rates(self._rates)
        if self._options["dim"] < 1 or self._options["admit"] < 1 or self._options["keep_evicted"] < 0:
            raise ValueError(f"{what}: dim and admit are at least 1, keep_evicted at least 0")
        if self._options["hbm_rows"] == 0:
            raise ValueError(f"{what}: hbm_rows=0; give 1 or more, or None for all")
        if self._options["admit"] >= 2**32 or (policy is None and self._options["admit"] > 1):
            raise ValueError(
                f"{what}: admit={admit}; give less than 2^32, and 1 where the policy is None: a table that "
                "grows has a row for every key"
            )
        anchor = torch.empty(0, device=device)
        self._make(whole_number(capacity, what, "capacity"), anchor.device)

    def _make(self, capacity, device):
        """A new, empty table on a device."""
        anchor = torch.zeros(0, self.dim, dtype=self.dtype, device=device, requires_grad=True)
        library = take(anchor.detach().float(), self._what)[1]
        table = self._new_table(capacity, library)
        self._anchor, self._library, self._table = anchor, library, table
        self._step, self._running, self._generation = 0, {}, 0
        self._erased = []
        self._fetched = None

    def _place(self):
        """Where a call works, once the last prefetch is over."""
        if self._fetched is not None:
            torch.cuda.current_stream(self.device).wait_event(self._fetched)
            self._fetched = None
        return self._library.place()

    def _new_table(self, capacity, library):
        o = self._options
        if capacity < 1:
            raise ValueError(f"{self._what}: a capacity of {capacity} rows; give 1 or more")
        module = library.module
        return module.make_embeddings(
            library.place(),
            type_name(self.dtype),
            o["dim"],
            capacity,
            o["hbm_rows"] or 0,
            self.policy or "none",
            self.optimizer,
            module.Rates(*self._rates),
            *o["initializer"],
            o["admit"],
            o["features"],
            o["keep_evicted"],
            o["seed"],
        )

    def _check_rates(self, rates):
        with np.errstate(over="ignore"):
            narrow = np.array(rates).astype(np.float32)
        if not np.isfinite(narrow).all() or (narrow < 0).any() or (narrow[1:3] >= 1).any():
            raise ValueError(
                f"{self._what}: lr, betas, eps and weight_decay of {rates}; give finite numbers, "
                "0 or more, betas below 1"
            )

    @property
    def features(self):
        """Whether keys have features."""
        return self._options["features"]

    @property
    def device(self):
        """Where the rows are."""
        return self._anchor.device

    @property
    def lr(self):
        """The learning rate; set it between steps."""
        return self._rates[0]

    @lr.setter
    def lr(self, rate):
        rates = [float(rate), *self._rates[1:]]
        self._check_rates(rates)
        self._rates = rates
        module = self._library.module
        self._table.set_rates(self._place(), module.Rates(*self._rates))

    @torch.compiler.disable  # torch would merge or drop calls, which change rows
    def forward(
        self,
        ids,
        offsets=None,
        *,
        table=0,
        scores=None,
        mode="sum",
        include_last_offset=False,
        per_sample_weights=None,
    ):
        """The rows of ids, or of bags of ids.

        Parameters
        ----------
        ids : tensor of int64 or int32, of any shape
        offsets : tensor, optional
            Where the bags of a one-dimensional `ids` begin, as in `torch.nn.EmbeddingBag`.
        table : int, or tensor with a number for each id
            The feature, below 65,536. Tensors of uint16 and uint8 are taken as they are; others are checked,
            which waits for a GPU.
        scores : tensor with a number for each id
            For policy "score": below 2^32. The greatest score of a key in the batch counts.
        mode : str
            "sum" or "mean" of a bag.
        include_last_offset : bool
            Whether the last offset is the number of ids.
        per_sample_weights : tensor of a float32, bfloat16 or float16 for each id, optional
            With offsets and mode "sum": each row is multiplied by its weight before it is added. Weights get
            gradients. Takes memory for a row of float32 for each id, as bags without weights do not. In
            tables of 16 bits, each product of a gradient and a weight is rounded before they are added up.

        Returns
        -------
        tensor of the shape of `ids` and one more dimension of `dim`, or with a row for each bag
        """
        mean = self._is_mean(mode)
        batch = _Batch(
            self,
            ids,
            offsets,
            table,
            scores,
            mean,
            include_last_offset,
            self.training,
            per_sample_weights,
        )
        if not self.training:
            rows = self._find(batch)[0]
        elif torch.is_grad_enabled():
            rows = _Lookup.apply(self._anchor, self, batch)
        else:
            rows = self._look_up(batch)[0]
        return batch.pooled(rows)

    def _outputs(self, batch):
        out = torch.empty(batch.out_shape(self.dim), dtype=self.dtype, device=self.device)
        return out, torch.empty(batch.ids.shape, dtype=torch.int32, device=self.device)

    def _look_up(self, batch):
        out, slots = self._outputs(batch)
        library = self._library
        while True:
            oldest = self._begin_step()
            self._table.look_up(
                self._place(),
                batch.words,
                library.column(slots),
                library.column(out),
                self._step - oldest,
            )
            if self.policy is not None or not self._lacks_rows():
                return out, slots

    def _begin_step(self):
        """The oldest step whose keys keep their rows."""
        if self._step >= 2**32 - 1:
            raise RuntimeError(f"{self._what}: 2^32 - 1 steps; load a snapshot into a new table to go on")
        self._step += 1
        oldest = min(self._running, default=self._step)
        if self._step - oldest == 100:
            warnings.warn(
                f"{self._what}: a forward pass 100 steps ago still waits for its backward pass, and no key "
                "that was looked up since loses its row; detach() results that you keep",
                stacklevel=4,
            )
        return oldest

    def _lacks_rows(self):
        """Whether the table has grown because keys found no row."""
        unplaced = self._table.counts(self._place())[3]
        if unplaced == self._unplaced:
            return False
        self._unplaced = unplaced
        if self._running:
            raise RuntimeError(
                f"{self._what}: the table must grow, but a former forward pass still waits for its backward "
                "pass; call reserve() before"
            )
        self.reserve(2 * self.capacity)
        return True

    _unplaced = 0

    def _learn(self, batch, slots, gradient, step):
        if not step.waits:
            raise RuntimeError(
                f"{self._what}: a second backward pass, or one that failed before; its rows may belong to "
                "other keys by now; call forward again"
            )
        if step.generation != self._generation:
            raise RuntimeError(
                f"{self._what}: rows were erased, moved or loaded between a forward pass and its backward "
                "pass; call forward again"
            )
        if gradient.dtype != self.dtype:
            gradient = gradient.to(self.dtype)
        column = self._library.column
        gradient = take(gradient, self._what)[0]
        step.end()  # before the update, after which Ctrl-C may end this call: nothing is learned twice
        self._table.update(self._library.place(), batch.words, column(slots), column(gradient))

    def _find(self, batch):
        out, slots = self._outputs(batch)
        column = self._library.column
        self._table.find(self._place(), batch.words, column(slots), column(out))
        return out, slots

    def prefetch(self, ids, *, table=0):
        """Brings the rows of the next step's ids to the GPU (`hbm_rows`). This overlaps with everything that
        the GPU does until the next call of this table other than a backward pass, so call it before
        `backward`. Results do not change. Without `hbm_rows` it does nothing.
        """
        batch = _Batch(self, ids, feature=table)
        running = self._step - min(self._running, default=self._step)
        if self.nbytes_on_host == 0:
            return
        if self.device.type != "cuda":
            self._table.prefetch(self._place(), batch.words, running)
            return
        self._place()
        main = torch.cuda.current_stream(self.device)
        if self._side is None:
            self._side = torch.cuda.Stream(self.device)
        self._side.wait_stream(main)
        with torch.cuda.stream(self._side):
            self._table.prefetch(self._library.place(), batch.words, running)
            self._fetched = self._side.record_event()
        for tensor in (batch.ids, batch.features):
            if tensor is not None:
                tensor.record_stream(self._side)

    _side = None

    def find(self, ids, *, table=0):
        """The rows of ids; changes nothing.

        Returns
        -------
        rows : tensor of the shape of `ids` and one more dimension of `dim`
            For an absent key, the row that it would begin with.
        found : tensor of bool, of the shape of `ids`
        """
        out, slots = self._find(_Batch(self, ids, feature=table))
        return out, (slots >= 0).reshape(ids.shape)

    def insert(self, ids, rows, *, table=0, scores=None):
        """Sets the rows of ids; new keys get rows as in a training step. If a key has several rows, the last
        one counts.

        Parameters
        ----------
        ids : tensor of n ids
        rows : tensor of n rows of `dim` numbers, of the table's type
        table, scores
            As in `forward`.
        """
        batch = _Batch(self, ids, feature=table, scores=scores, changes=True)
        self._check_rows(ids, rows)
        library = self._library
        while True:
            oldest = self._begin_step()
            column = library.column(take(rows, self._what)[0])
            self._table.assign(self._place(), batch.words, column, self._step - oldest)
            if self.policy is not None or not self._lacks_rows():
                return

    def erase(self, ids, *, table=0):
        """Removes the rows of ids. Ids without a row are ignored."""
        batch = _Batch(self, ids, feature=table)
        self._moved()
        self._table.erase(self._place(), batch.words)
        if self._options["keep_evicted"]:
            features = batch.features
            if features is None:
                features = torch.full(batch.ids.shape, batch.feature, dtype=torch.uint16, device=self.device)
            self._erased.append((batch.ids.clone(), features))

    def evicted(self):
        """The keys that lost their rows to others since the last call, at most `keep_evicted`, in no
        particular order. Waits for a GPU.

        Returns
        -------
        ids : tensor of int64, and features : tensor of uint16
        """
        ids, features = self._table.take_evicted(self._place())
        adopt = self._library.adopt
        return adopt(ids, np.dtype(np.int64)), adopt(features, np.dtype(np.uint16))

    def __len__(self):
        """The number of keys that have rows. Waits for a GPU."""
        return self._table.size(self._place())

    @property
    def capacity(self):
        """Rows."""
        return self._table.capacity

    @property
    def nbytes(self):
        """Bytes of memory where the table is."""
        return self._table.bytes

    @property
    def nbytes_on_host(self):
        """Bytes of rows in host memory, with `hbm_rows`."""
        return self._table.host_bytes

    def counts(self):
        """What has been counted since the table was made: a dict of `steps`, `updates`, `evicted`, `unplaced`
        (lookups of keys that found no row), `unadmitted` and `forgotten` (evicted keys for which
        `keep_evicted` was too small). A step for which the table must grow counts once more each time. Waits
        for a GPU."""
        names = "steps", "updates", "evicted", "unplaced", "unadmitted", "forgotten"
        counts = dict(zip(names, self._table.counts(self._place()), strict=True))
        if self.policy is None:
            counts["unplaced"] -= self._unplaced  # they have rows since the table grew
        return counts

    def reserve(self, capacity):
        """Makes room for `capacity` rows by moving all keys to a larger table, which needs memory for both
        tables."""
        capacity = whole_number(capacity, self._what, "capacity")
        if capacity > self.capacity:
            self._moved()
            self._table.reserve(self._place(), capacity)

    def delta(self, since):
        """What has changed since a step, for copies of the rows that are served elsewhere. Waits for a GPU.

        Parameters
        ----------
        since : int
            The first step that counts: `steps` of the last delta, plus 1. The keys in `gone` are those since
            the last call of `delta` or `evicted`.

        Returns
        -------
        dict
            `ids`, `features` and `rows` (weights) of the keys that were looked up in training since then;
            `gone` and `gone_features`, the keys that lost their rows, to be applied before the rows; and
            `steps`.

        Raises
        ------
        RuntimeError
            Some keys that lost their rows are not known: `keep_evicted` was too small, or the table was
            loaded or copied since. Take a snapshot; the next call continues from there.
        """
        since = whole_number(since, self._what, "since")
        if self._options["keep_evicted"] == 0:
            raise RuntimeError(f"{self._what}: delta needs a table with keep_evicted of 1 or more")
        before = self.counts()["forgotten"]
        if before != self._forgotten or self._loaded:
            self._forgotten, self._loaded = before, False
            raise RuntimeError(
                f"{self._what}: keys that lost their rows are not known: keep_evicted is too small, or the "
                "table was loaded or copied since; take a snapshot now"
            )
        gone = [self.evicted(), *self._erased]
        self._erased = []
        state = self._entries(min(since, 2**32 - 1))
        weights = state.pop("rows")[:, : self.dim * self.dtype.itemsize].contiguous().view(self.dtype)
        return {
            "ids": state["ids"],
            "features": state["features"],
            "rows": weights,
            "gone": torch.cat([ids for ids, _ in gone]).to(weights.device),
            "gone_features": torch.cat([f.view(torch.int16) for _, f in gone])
            .view(torch.uint16)
            .to(weights.device),
            # Rows whose backward pass is pending change later.
            "steps": min(self._running, default=self.counts()["steps"] + 1) - 1,
        }

    _forgotten, _loaded = 0, False
    _in_files = frozenset(_STATE)

    def _entries(self, since=0, host=False):
        """All that the table knows of its keys, as tensors; `host`: in host memory."""
        library = self._library
        place = self._place()
        types = np.uint32, np.int64, np.uint16, np.uint32, np.uint64
        slots, ids, features, steps, scores = (
            library.adopt(part, np.dtype(t))
            for part, t in zip(self._table.entries(place, since), types, strict=True)
        )
        named = {"slots": slots, "ids": ids, "features": features, "steps": steps, "scores": scores}
        on_host = host or self.nbytes_on_host != 0  # a GPU may not have room for all rows
        rows = torch.empty(
            (len(ids), self._table.row_bytes), dtype=torch.uint8, device="cpu" if on_host else self.device
        )
        self._read_rows(slots, rows)
        return {name: part.to(rows.device) for name, part in named.items()} | {"rows": rows}

    def _read_rows(self, slots, rows):
        column, piece = self._library.column, max(1, _PIECE // self._table.row_bytes)
        if rows.device == self.device:
            self._table.copy_rows(self._place(), column(slots), column(rows))
            return
        # While a GPU fills one buffer, the host copies the other one.
        there = torch.empty((min(piece, len(rows)), rows.shape[1]), dtype=torch.uint8, device=self.device)
        pinned = [torch.empty(there.shape, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        before = None
        for k, (of_slots, target) in enumerate(zip(slots.split(piece), rows.split(piece), strict=True)):
            buffer = there[: len(target)]
            self._table.copy_rows(self._place(), column(of_slots), column(buffer))
            filled = pinned[k % 2][: len(target)].copy_(buffer, non_blocking=True)
            event = torch.cuda.current_stream(self.device).record_event()
            if before:
                before[0].synchronize()
                before[2].copy_(before[1])
            before = event, filled, target
        if before:
            before[0].synchronize()
            before[2].copy_(before[1])

    def _write_rows(self, table, slots, rows):
        column, piece = self._library.column, max(1, _PIECE // table.row_bytes)
        for of_slots, source in zip(slots.split(piece), rows.split(piece), strict=True):
            table.write_rows(self._place(), column(of_slots), column(source.to(self.device)))

    def _restore(self, state, capacity, seed, steps, updates):
        """Puts entries into a new table, which replaces the present one if all of them found a row."""
        table = self._new_table(
            self.capacity if self.policy is not None else max(self.capacity, capacity), self._library
        )
        library = self._library
        parts = ("slots", "ids", "features", "steps", "scores")
        columns = [library.column(state[part].to(self.device)) for part in parts]
        same = seed == self._options["seed"] and capacity == table.capacity
        place = self._place()
        slots = torch.empty(len(state["ids"]), dtype=torch.int32, device=self.device)
        lost = table.restore(place, *columns, same, library.column(slots))
        if not lost and table.size(place) != len(state["ids"]):
            raise ValueError(f"{self._what}: a duplicate key")
        if lost:
            raise ValueError(
                f"{self._what}: {plural(lost, 'key')} of {len(state['ids'])} found no row in a table of "
                f"{table.capacity}; load into a larger one"
            )
        table.set_steps(place, steps, updates)
        if state["rows"].shape != (len(slots), table.row_bytes):
            raise ValueError(f"{self._what}: rows of {state['rows'].shape[1:]} bytes, not {table.row_bytes}")
        self._write_rows(table, slots, state["rows"])
        self._table, self._step = table, steps
        self._unplaced, self._forgotten, self._loaded = 0, 0, True
        self._erased.clear()
        self._moved()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, tensor in self._state(self._entries()).items():
            destination[prefix + name] = tensor

    def _state(self, entries):
        """Entries as they are saved: tensors of types that every torch has."""
        state = {}
        for name, tensor in entries.items():
            signed = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
            state[name] = tensor.view(signed.get(tensor.dtype, tensor.dtype))
        counts = self.counts()
        about = {"format": 2} | self._kind() | {"capacity": self.capacity, "seed": self._options["seed"]}
        about |= {name: counts[name] for name in ("steps", "updates")}
        state["about"] = torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)
        return state

    def _kind(self):
        """What a table that loads a state must have in common with the one that saved it."""
        dim, dtype = self._options["dim"], type_name(self.dtype)
        return {"dim": dim, "optimizer": self.optimizer, "dtype": dtype, "policy": self.policy}

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        lacking = [prefix + name for name in _STATE if prefix + name not in state]
        if lacking:
            missing.extend(lacking)
            return
        unexpected.extend(
            key for key in state if key.startswith(prefix) and key[len(prefix) :] not in _STATE and strict
        )
        wrong = self._take_state({name: state[prefix + name] for name in _STATE})
        if wrong is not None:
            errors.append(f"{prefix.rstrip('.') or 'Table'}: {wrong}")

    def _take_state(self, state):
        """Loads a state; returns what is wrong with it, or None."""
        about = _read_about(state["about"])
        if about is None:
            return "not what a table of this version of roost has saved"
        known = _KNOWN | {"dtype": [*map(type_name, _DTYPES)], "dim": [about["dim"]]}
        for part, mine in self._kind().items():
            saved = f"of a table with {part}={about[part]!r}"
            if about[part] not in known[part]:
                return f"{saved}, unknown to this version of roost; load it with the one that saved it"
            if about[part] != mine:
                return f"{saved}; this one has {mine!r}"
        capacity, seed, steps, updates = (about[name] for name in _ABOUT[5:])
        n = len(state["ids"]) if isinstance(state["ids"], torch.Tensor) and state["ids"].ndim else 0
        for name, (saved, tail, _) in _PARTS.items():
            part = state[name]
            right = isinstance(part, torch.Tensor) and part.dtype == saved
            rows = 0 if name == "scores" and self.policy not in ("lfu", "score") else n
            tail = (self._table.row_bytes,) if tail else ()
            if not right or part.shape != (rows, *tail):
                return f"{name} of another type or shape than was saved"
        last = state["steps"].view(torch.uint32).to(torch.int64)
        if max(steps, updates) >= 2**32 or (len(last) and last.max() > steps):
            return "keys were looked up after the last step"
        if state["features"].any() and not self.features:
            return "keys with features; make the table with features=True"
        entries = {name: state[name].view(taken) for name, (_, _, taken) in _PARTS.items()}
        try:
            self._restore(entries, capacity, seed, steps, updates)
        except ValueError as error:
            return str(error).removeprefix(f"{self._what}: ")
        return None

    def snapshot(self, file, *, wait=True):
        """Writes all rows and the optimizer's state to a file. An existing file of this name is replaced when
        the new one is complete and on disk, so it survives if the process ends before that.

        Parameters
        ----------
        file : path
        wait : bool
            False: returns when the present rows are copied to host memory, which must have room for them; a
            thread writes them while training continues.

        Returns
        -------
        concurrent.futures.Future or None
            Without `wait`: `result()` waits for the file, and raises the error if there was one (which is
            also a warning).

        Raises
        ------
        OSError
            Also if another snapshot is being written to this file.
        """
        file = os.path.realpath(os.fsdecode(os.fspath(file)))  # a link's target is replaced, not the link
        if os.path.exists(file) and not os.path.isfile(file):
            raise OSError(f"{self._what}: {file} is not a regular file; give the name of one")
        out = _begin_file(file, self._what)
        try:
            state = self._state(self._entries(host=True))
            done = None if wait else concurrent.futures.Future()
            if done is not None:  # a process waits for this thread when it exits
                writer = threading.Thread(target=_write_later, args=(out, file, state, done), daemon=False)
                done.set_running_or_notify_cancel()
                writer.start()
        except BaseException:
            _drop_file(out)
            raise
        if wait:
            _write_state(out, file, state)
        return done

    def load(self, file):
        """Reads a file that `snapshot` wrote into this table, whose own rows are dropped. In a table of the
        same capacity and seed, training continues as before, bit for bit.

        Raises
        ------
        RuntimeError
            The file is damaged, or is of a table with a different dim, optimizer, dtype or policy.
        """
        with open(os.fspath(file), "rb") as data:
            try:
                saved = torch.load(data, map_location="cpu", weights_only=True)
                state = {name: saved["state"][name] for name in self._in_files}
                if len(state) != len(saved["state"]):
                    raise KeyError
                right = saved["checksum"] == _checksum(saved["state"])
            except Exception as error:  # whatever torch's readers say of other bytes
                if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a wrong offset
                    raise
                raise RuntimeError(f"{self._what}: {file} is damaged, or no snapshot of a table") from None
        if not right:
            raise RuntimeError(f"{self._what}: {file} is damaged: its checksum is another one")
        wrong = self._take_state(state)
        if wrong is not None:
            raise RuntimeError(f"{self._what}: {file}: {wrong}")

    def _apply(self, function, *arguments, **named):
        like = function(torch.empty(0, dtype=self.dtype, device=self.device))
        if like.dtype != self.dtype:
            raise TypeError(f"{self._what}: rows of {self.dtype}, which do not become {like.dtype}")
        result = super()._apply(function, *arguments, **named)
        device = like.device
        if device != self.device:
            state, counts = self._entries(), self.counts()
            capacity, seed = self.capacity, self._options["seed"]
            self._make(capacity, device)
            self._restore(state, capacity, seed, counts["steps"], counts["updates"])
        return result

    def _check_rows(self, ids, rows):
        if not isinstance(rows, torch.Tensor) or rows.dtype != self.dtype:
            raise TypeError(f"{self._what}: rows of another type than {self.dtype}; convert them first")
        if rows.shape != (*ids.shape, self.dim):
            raise ValueError(
                f"{self._what}: rows of shape {tuple(rows.shape)} for ids of shape {tuple(ids.shape)}; give "
                f"{self.dim} numbers for each"
            )
        self._same_device(rows, "rows")

    def _is_mean(self, mode):
        if mode not in ("sum", "mean"):
            raise ValueError(f"{self._what}: mode={mode!r}; give 'sum' or 'mean'")
        return mode == "mean"

    def _moved(self):
        """Slots have changed: no earlier forward pass can learn any more."""
        self._generation += 1
        self._running.clear()

    def _same_device(self, tensor, name):
        if tensor.device != self.device:
            raise ValueError(f"{self._what}: {name} on {tensor.device}, the table on {self.device}; move one")

    def __getstate__(self):
        state = self.__dict__.copy()
        for name in ("_table", "_library", "_anchor", "_running", "_erased", "_fetched", "_side"):
            state.pop(name, None)
        return state | {"_state": self.state_dict(), "_capacity": self.capacity, "_device": self.device}

    def __setstate__(self, state):
        kept, capacity, device = state.pop("_state"), state.pop("_capacity"), state.pop("_device")
        super().__setstate__(state)
        kind, *numbers = self._options["initializer"]
        if isinstance(kind, int):  # of format 1
            self._options["initializer"] = (("normal", "uniform", "constant")[kind], *numbers)
        self._make(capacity, device)
        self.load_state_dict(kept)

    def extra_repr(self):
        near = "" if not self.nbytes_on_host else f", hbm_rows={self._options['hbm_rows']}"
        return (
            f"{self.capacity} rows of {self.dim} {self.dtype}, {self.optimizer}, policy={self.policy!r}{near}"
        )


def _read_about(saved):
    """What a state says of its table, by name; None if it says something else."""
    try:
        if saved.dtype == torch.int64:
            about = dict(zip(_ABOUT, saved.tolist(), strict=True))
            for part, names in _NUMBERED.items():
                about[part] = dict(enumerate(names)).get(about[part], about[part])
        else:
            about = json.loads(bytes(saved.tolist()))
        numbers = [about[name] for name in _ABOUT if name not in _NUMBERED]
        right = all(type(x) is int and 0 <= x < 2**63 for x in numbers) and about["format"] in (1, 2)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return about if right and len(about) == len(_ABOUT) else None


def _begin_file(file, what):
    """An empty file beside another one, which it will replace. Files left by processes that ended are
    removed."""
    folder, name = os.path.split(file)
    try:
        for other in os.listdir(folder):
            if other.startswith(f".{name}.") and other.endswith(".part"):
                _remove_if_left(os.path.join(folder, other), file, what)
        while True:
            path = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
            out = open(path, "xb")  # noqa: SIM115 (closed by _write_state or _drop_file)
            fcntl.flock(out, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):  # removed before it was locked
                if os.path.samestat(os.fstat(out.fileno()), os.stat(path)):
                    return out
            out.close()
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise type(error)(error.errno, error.strerror, file) from None


def _remove_if_left(path, file, what):
    try:
        with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.remove(path)
    except BlockingIOError:
        raise OSError(f"{what}: another snapshot is being written to {file}; wait for it") from None
    except OSError:
        pass  # someone else's


def _drop_file(out):
    with contextlib.suppress(FileNotFoundError):
        os.remove(out.name)
    with contextlib.suppress(OSError):
        out.close()


class _Written:
    """A file that remembers why it could not be written, which torch does not report."""

    error = None

    def __init__(self, file):
        self._file = file

    def write(self, data):
        try:
            return self._write(data)
        except OSError as error:
            self.error = error
            raise

    def _write(self, data):
        return self._file.write(data)

    def flush(self):
        self._file.flush()


def _write_state(out, file, state):
    written = _Written(out)
    try:
        torch.save({"state": state, "checksum": _checksum(state)}, written)
        out.flush()
        os.fsync(out.fileno())
        if os.path.exists(file):
            shutil.copymode(file, out.name)
        os.replace(out.name, file)
    except BaseException as raised:
        _drop_file(out)
        error = written.error or raised
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, file) from None
        raise
    out.close()
    folder = os.open(os.path.dirname(file), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_later(out, file, state, done):
    try:
        _write_state(out, file, state)
    except BaseException as error:  # noqa: BLE001 (for whoever waits)
        warnings.warn(f"roost.torch.Table.snapshot: {file} was not written: {error}", stacklevel=1)
        done.set_exception(error)
    else:
        done.set_result(None)


def _checksum(state):
    """Of the names, types, shapes and bytes of tensors."""
    crc = 0
    for name, tensor in sorted(state.items()):
        crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), crc)
        pieces = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).split(_PIECE)
        for of_piece in _checksums(pieces):
            crc = zlib.crc32(of_piece.to_bytes(4, "little"), crc)
    return crc


def _checksums(pieces):
    """The checksum of each piece, by several threads. Threads of the standard library's pools cannot start
    while a process ends, but these are needed then."""
    crcs, step = [0] * len(pieces), max(1, min(8, os.cpu_count() or 1, len(pieces)))

    def work(first):
        for k in range(first, len(pieces), step):
            crcs[k] = zlib.crc32(pieces[k].numpy())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, step)]
    alone = []
    for k, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:  # the process is exiting
            alone = list(range(k + 1, step))
            threads = threads[:k]
            break
    for first in [0, *alone]:
        work(first)
    for thread in threads:
        thread.join()
    return crcs


def _initializer(given, what):
    kind, *numbers = given if isinstance(given, (tuple, list)) and given else (given,)
    wanted = {"normal": 2, "uniform": 2, "constant": 1}.get(kind if isinstance(kind, str) else None)
    if wanted is None or len(numbers) not in (0, wanted):
        raise ValueError(
            f"{what}: initializer={given!r}; give ('normal', mean, deviation), ('uniform', least, "
            "greatest) or ('constant', number)"
        )
    numbers = [float(x) for x in numbers] or {"normal": [0.0, 1.0], "uniform": [0.0, 1.0], "constant": [0.0]}[
        kind
    ]
    with np.errstate(over="ignore"):
        narrow = np.isfinite(np.array(numbers).astype(np.float32)).all()
    if not narrow or (kind == "uniform" and numbers[0] > numbers[1]) or (kind == "normal" and numbers[1] < 0):
        raise ValueError(
            f"{what}: initializer={given!r}; give finite numbers of float32, the least first, "
            "no deviation below 0"
        )
    return kind, numbers[0], numbers[1] if len(numbers) > 1 else 0.0
