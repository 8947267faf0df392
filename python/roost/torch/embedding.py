"""isin, and what unique calls, as torch operators; Map and Embedding: modules with arbitrary keys."""

import itertools
import weakref

import torch

from .. import _functions, _tables

_numbers = itertools.count(1)
_modules = weakref.WeakValueDictionary()  # by number: operators take tensors and numbers


@torch.library.custom_op("roost::isin", mutates_args=())
def _isin(x: torch.Tensor, y: torch.Tensor, invert: bool) -> torch.Tensor:
    found = _functions.isin(x.reshape(-1), y.reshape(-1), invert=invert)
    return found.reshape(x.shape)


@_isin.register_fake
def _(x, y, invert):
    return x.new_empty(x.shape, dtype=torch.bool)


@torch.library.custom_op("roost::unique", mutates_args=())
def _unique(x: torch.Tensor, sorted: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return _functions.unique(x, sorted=sorted, return_inverse=True, return_counts=True)


@_unique.register_fake
def _(x, sorted):
    n = torch.library.get_ctx().new_dynamic_size()
    return (
        x.new_empty((n, *x.shape[1:])),
        x.new_empty(x.shape[:1], dtype=torch.int64),
        x.new_empty((n,), dtype=torch.int64),
    )


@torch.library.custom_op("roost::find", mutates_args=())
def _find(keys: torch.Tensor, values: torch.Tensor, module: int, missing: torch.types.Number) -> torch.Tensor:
    return _modules[module]._map().find(keys, missing)


@_find.register_fake
def _(keys, values, module, missing):
    return values.new_empty((keys.shape[0], *values.shape[1:]))


@torch.library.custom_op("roost::rows", mutates_args=())
def _rows(keys: torch.Tensor, weight: torch.Tensor, module: int, add: bool) -> torch.Tensor:
    return _modules[module]._rows_of(keys, add, False)


@_rows.register_fake
def _(keys, weight, module, add):
    return keys.new_empty(keys.shape, dtype=torch.int64)


def isin(x, y, *, invert=False):
    """Whether each element of `x` is in `y`, as an operator that `torch.compile` takes.

    Parameters
    ----------
    x, y : tensors of keys, of any shape
        As for `roost.isin`.
    invert : bool
        Whether to return which elements are not in `y`.

    Returns
    -------
    tensor of bool, of the shape of `x`

    See Also
    --------
    roost.isin : cost, errors and threads are the same.
    """
    return _isin(x, y, invert)


class _Module(torch.nn.Module):
    """A module that operators find by a number. What is derived from its tensors is not part of its state."""

    def __init__(self):
        super().__init__()
        self._enroll()

    def _enroll(self):
        self._number = next(_numbers)
        self._table = None  # created when needed, on the device of the tensors
        _modules[self._number] = self

    def _apply(self, function, *arguments, **named):
        keys = self.keys
        result = super()._apply(function, *arguments, **named)
        if self.keys.dtype != keys.dtype:  # half() and type() are for weights; they would merge keys
            self.keys = keys.to(self.keys.device)
        self._table = None
        return result

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["_table"], state["_number"]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self._enroll()


class Map(_Module):
    """A `roost.Map` as a module: keys and values are buffers, so that `state_dict` keeps them and `to` moves
    them.

    Parameters
    ----------
    keys : tensor of n keys
        As for `roost.Map`. If a key occurs more than once, its first value counts.
    values : tensor of n values, or of n rows of any shape

    Notes
    -----
    The table is built at the first lookup after the buffers were made, loaded or moved, and takes memory in
    addition to theirs. `load_state_dict` accepts any number and type of keys. `half`, `type` and the like do
    not change the type of the keys. Values get no gradients.

    Examples
    --------
    >>> import torch, roost.torch
    >>> prices = roost.torch.Map(torch.tensor([7, 8]), torch.tensor([1.5, 2.5]))
    >>> prices(torch.tensor([8, 9]), missing=-1)
    tensor([ 2.5000, -1.0000])
    """

    def __init__(self, keys, values):
        super().__init__()
        self.register_buffer("keys", keys.detach())
        self.register_buffer("values", values.detach())
        self._map()  # raises an error that says what is wrong

    def forward(self, keys, missing=0):
        """The value of each key, `missing` (a number) for those that are absent.

        Parameters
        ----------
        keys : tensor of m keys
        missing : number

        Returns
        -------
        tensor of m values
        """
        if torch.compiler.is_compiling():
            return _find(keys, self.values, self._number, missing)
        return self._map().find(keys, missing)

    def __len__(self):
        """The number of distinct keys."""
        return len(self._map())

    def _map(self):
        if self._table is None:
            self._table = _tables.Map(self.keys, self.values)
        return self._table

    def _load_from_state_dict(self, state, prefix, *arguments):
        for name in ("keys", "values"):
            given = state.get(prefix + name)
            if given is not None:
                here = getattr(self, name)
                setattr(self, name, given.new_empty(given.shape, device=here.device))
        super()._load_from_state_dict(state, prefix, *arguments)
        self._table = None

    def extra_repr(self):
        return f"{len(self.keys)} keys of {self.keys.dtype}, values {tuple(self.values.shape[1:])}"


class Embedding(_Module):
    """Learned rows by arbitrary keys: `torch.nn.Embedding` without a vocabulary.

    In training, a key that occurs for the first time gets the next row; the table of keys and the rows grow.
    In evaluation, a key without a row gives zeros.

    Parameters
    ----------
    dim : int
        Numbers in a row.
    capacity : int
        How many rows there is room for; it doubles when they are used up.
    key_dtype : torch.dtype
        Integers.
    sparse : bool
        Whether gradients have only the rows of the batch, for `torch.optim.SparseAdam`, `SGD` and `Adagrad`.
    init : callable
        Fills a tensor of new rows; `torch.nn.init.normal_` by default.
    device, dtype
        Of the rows.

    Attributes
    ----------
    weight : Parameter of capacity x dim numbers
    keys : buffer of capacity keys, of which the first ``len(embedding)`` are in use: ``keys[i]`` has row i

    Notes
    -----
    To grow, the parameter gets larger data; it stays the same object. `follow(optimizer)` makes the
    optimizer's state for each row grow, too. Do not let the embedding grow between a forward pass and its
    backward pass, whose gradients would have the old shape (a RuntimeError). If a step has several forward
    passes, first call `insert` with all keys, or `reserve`. For the same reason compiled code never grows it.

    On a GPU, a forward pass in training waits until it knows whether there are new keys. `state_dict` has the
    keys and the number of keys in use. In training, only one thread at a time may use it.

    Examples
    --------
    >>> import torch, roost.torch
    >>> users = roost.torch.Embedding(16)
    >>> optimizer = torch.optim.SparseAdam(users.parameters())
    >>> users.follow(optimizer)
    >>> users(torch.tensor([[10**12, 5], [5, 77]])).sum().backward()
    >>> optimizer.step()
    >>> len(users), users.weight.grad.is_sparse
    (3, True)
    """

    def __init__(
        self,
        dim,
        capacity=1024,
        *,
        key_dtype=torch.int64,
        sparse=True,
        init=torch.nn.init.normal_,
        device=None,
        dtype=None,
    ):
        super().__init__()
        what = "roost.torch.Embedding"
        if dim < 1 or capacity < 1:
            raise ValueError(f"{what}: {capacity} rows of {dim} numbers; give 1 or more")
        if key_dtype.is_floating_point or key_dtype.is_complex or key_dtype is torch.bool:
            raise TypeError(f"{what}: keys of type {key_dtype}; give a type of integers")
        self.dim, self.sparse, self.init = dim, sparse, init
        self._n = 0
        self._optimizers = []
        self.weight = torch.nn.Parameter(self._new_rows(capacity, torch.empty(0, device=device, dtype=dtype)))
        self.register_buffer("keys", torch.zeros(capacity, dtype=key_dtype, device=device))

    def forward(self, keys):
        """The rows of keys: a tensor of the shape of `keys` and one more dimension of `dim`."""
        if torch.compiler.is_compiling():
            rows = _rows(keys, self.weight, self._number, self.training)
        else:
            rows = self._rows_of(keys, self.training, True)
        if self.training:
            return torch.nn.functional.embedding(rows, self.weight, sparse=self.sparse)
        found = torch.nn.functional.embedding(rows.clamp_min(0), self.weight, sparse=self.sparse)
        return found.masked_fill((rows < 0).unsqueeze(-1), 0)

    def rows(self, keys):
        """The row number of each key, -1 for keys without a row: int64, of the shape of `keys`."""
        return self._rows_of(keys, False, False)

    def insert(self, keys):
        """Gives rows to the keys that have none; returns how many got one."""
        before = self._n
        self._rows_of(keys, True, True)
        return self._n - before

    def reserve(self, n):
        """Makes room for n keys in total, including the present ones."""
        if n > len(self.keys):
            self._grow(n)

    def follow(self, optimizer):
        """Lets the optimizer's state for the rows grow with them."""
        self._optimizers.append(weakref.ref(optimizer))

    def __len__(self):
        """The number of keys that have rows."""
        return self._n

    def _new_rows(self, n, like):
        rows = like.new_empty(n, self.dim)
        self.init(rows)
        return rows

    def _map(self):
        if self._table is None:
            self._table = table = _tables.ConcurrentMap(self.keys.dtype, "int64", self._n, like=self.keys)
            used = self.keys[: self._n]
            table.insert(used, torch.arange(self._n, device=used.device))
        return self._table

    def _rows_of(self, keys, add, may_grow):
        table, flat = self._map(), keys.detach().reshape(-1)
        rows = table.find(flat, -1)
        if add:
            absent = rows < 0
            new = flat[absent]
            if len(new):
                new, _ = _functions.unique(new, return_index=True)  # in the order of the batch
                n = self._n + len(new)
                if n > len(self.keys):
                    if not may_grow:
                        raise RuntimeError(
                            f"roost.torch.Embedding: {n} keys and room for {len(self.keys)}; compiled code "
                            "does not grow it: call insert() with the keys of a step, or reserve(), before"
                        )
                    self._grow(max(n, 2 * len(self.keys)))
                self.keys[self._n : n] = new
                table.insert(self.keys[self._n : n], torch.arange(self._n, n, device=new.device))
                self._n = n
                rows = table.find(flat, -1)
        return rows.reshape(keys.shape)

    def _set_rows(self, rows):
        self.weight.data = rows
        # Compiled code rechecks shapes if the dictionary has changed.
        self._parameters["weight"] = self._parameters.pop("weight")

    @torch.no_grad()
    def _grow(self, n):
        old, weight = len(self.keys), self.weight
        grad, weight.grad = weight.grad, None
        rows = torch.cat([weight.data, self._new_rows(n - old, weight.data)])
        # A different type in between makes torch forget the shape of gradients; otherwise it would keep the
        # old one as long as an earlier loss exists.
        weight.data = rows.new_empty(0, dtype=torch.float64 if rows.dtype != torch.float64 else torch.float32)
        self._set_rows(rows)
        self.keys = torch.cat([self.keys, self.keys.new_zeros(n - old)])
        if grad is not None:
            if grad.is_sparse:
                grad = torch.sparse_coo_tensor(grad._indices(), grad._values(), weight.shape)
            else:
                grad = torch.cat([grad, grad.new_zeros(n - old, self.dim)])
            weight.grad = grad
        for optimizer in filter(None, (kept() for kept in self._optimizers)):
            start = next(
                (
                    group.get("initial_accumulator_value", 0)
                    for group in optimizer.param_groups
                    if any(p is weight for p in group["params"])
                ),
                0,
            )
            kept = optimizer.state.get(weight, {})
            for name, rows in kept.items():
                if isinstance(rows, torch.Tensor) and rows.shape == (old, self.dim):
                    kept[name] = torch.cat([rows, rows.new_full((n - old, self.dim), start)])

    def get_extra_state(self):
        """How many rows are in use."""
        return {"used": self._n}

    def set_extra_state(self, state):
        """How many rows are in use, as returned by `get_extra_state`."""
        self._n = state["used"]
        self._table = None

    def _load_from_state_dict(self, state, prefix, *arguments):
        keys, weight = state.get(prefix + "keys"), state.get(prefix + "weight")
        if keys is not None and weight is not None and weight.shape == (len(keys), self.dim):
            self.keys = keys.new_zeros(keys.shape, device=self.keys.device)
            self._set_rows(self.weight.data.new_empty(weight.shape))
            self.weight.grad = None
        super()._load_from_state_dict(state, prefix, *arguments)
        self._table = None

    def __getstate__(self):
        return super().__getstate__() | {"_optimizers": []}

    def extra_repr(self):
        return f"{self._n} keys of {self.keys.dtype}, dim={self.dim}, sparse={self.sparse}"
