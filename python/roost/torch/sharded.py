"""roost.torch.ShardedTable: a Table whose rows are spread over the ranks of torch.distributed."""

import contextlib
import itertools
import os
import re
import zlib

import torch
import torch.distributed as dist

from .._functions import unique
from .._options import whole_number
from .table import Table, _Batch

_numbers = itertools.count(1)  # of tables


class _Part(Table):
    """The rows of this rank."""

    _what = "roost.torch.ShardedTable"
    _snapshot_id = None  # the same on all ranks, while a snapshot is written
    _in_files = Table._in_files | {"snapshot"}

    def _state(self, entries):
        state = super()._state(entries)
        return state if self._snapshot_id is None else state | {"snapshot": torch.tensor(self._snapshot_id)}

    def about(self, capacity):
        """What must be the same on all ranks, by name."""
        rates = self._rates[0], self._rates[1:3], *self._rates[3:]
        return (
            {"capacity": capacity, "device": self.device.type}
            | {name: getattr(self, name) for name in ("optimizer", "policy", "dtype")}
            | dict(zip(("lr", "betas", "eps", "weight_decay"), rates, strict=True))
            | self._options
        )


class _Ranks:
    """The ranks of a table: how they agree, and how they send each other data."""

    _text = 16  # words of a text

    def __init__(self, group, what):
        if group is None:
            if not dist.is_available() or not dist.is_initialized():
                raise RuntimeError(
                    f"{what}: there is no process group; start processes with torchrun and call "
                    "torch.distributed.init_process_group"
                )
            group = dist.group.WORLD
        self._group, self._what, self._broken = group, what, None
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        if self.rank < 0:
            raise ValueError(f"{what}: this process is not of the group")
        self._backends = dict(each.split(":") for each in dist.get_backend_config(group).split(","))
        # Agreements do not wait for a GPU if CPUs have a transport.
        self._device = "cpu" if "cpu" in self._backends else "cuda"
        self._most = self.size + 24  # numbers per rank in an agreement

    def check(self, device):
        """Raises if the group has no transport for tensors of a device."""
        if device.type not in self._backends:
            raise ValueError(
                f"{self._what}: rows on {device}, and the group has no transport for them; give "
                "init_process_group or new_group a backend that has, such as 'cpu:gloo,cuda:nccl'"
            )

    def together(self, call, work, numbers=None):
        """Calls work() on all ranks. Raises on all if it raises on one, or if they make different calls.
        Returns the result of work(), and the `numbers` of the results of all ranks: a row for each rank."""
        self._check_alive()
        result, error = None, None
        words = torch.zeros(1 + self._text + self._most, dtype=torch.int64)
        words[1 : 1 + self._text] = self._words_of(call, self._text)
        try:
            result = work()
            if numbers is not None:
                said = torch.tensor(numbers(result), dtype=torch.int64)
                words[1 + self._text : 1 + self._text + len(said)] = said
        except Exception as raised:  # noqa: BLE001 (all ranks hear of it)
            error = raised
        words[0] = error is not None
        all = self._gather(words)
        if all[:, 0].any():
            self._raise_failed(all[:, 0], error)
        for r, theirs in enumerate(all[:, 1 : 1 + self._text]):
            if not torch.equal(theirs, words[1 : 1 + self._text]):
                raise ValueError(
                    f"{self._what}: rank {self.rank} calls {call}, rank {r} calls {self._text_of(theirs)}; "
                    "all ranks must do the same"
                )
        return result, all[:, 1 + self._text :]

    def check_same(self, names, numbers):
        """Raises if ranks have different numbers; `names` are the names of these numbers."""
        for r, theirs in enumerate(numbers[:, : len(names)]):
            differ = theirs != numbers[self.rank, : len(names)]
            if differ.any():
                which = ", ".join(name for name, other in zip(names, differ, strict=True) if other)
                raise ValueError(
                    f"{self._what}: ranks {self.rank} and {r} have different {which}; all ranks must do the "
                    "same"
                )

    def exchange(self, out, counts, into, counts_into):
        """Sends the first counts[0] rows of `out` to rank 0, and so on; receives rows of the same bytes."""
        self._check_alive()
        with self._on_the_way():
            dist.all_to_all_single(
                into.view(torch.uint8), out.view(torch.uint8), counts_into, counts, group=self._group
            )

    def _raise_failed(self, failed, error):
        why = "" if error is None else f"{type(error).__name__}: {error}"
        texts = self._gather(self._words_of(why, 64))
        if error is not None:
            raise error
        r = int(failed.nonzero()[0])
        raise RuntimeError(f"{self._what}: rank {r} has failed: {self._text_of(texts[r])}")

    def _gather(self, words):
        mine = words.to(self._device)
        all = mine.new_empty((self.size, len(words)))
        with self._on_the_way():
            dist.all_gather(list(all.unbind()), mine, group=self._group)
        return all.cpu()

    @contextlib.contextmanager
    def _on_the_way(self):
        try:
            yield
        except BaseException as error:
            self._broken = f"{type(error).__name__}: {error}".split("\n")[0]
            raise

    def _check_alive(self):
        if self._broken is not None:
            raise RuntimeError(
                f"{self._what}: rank {self.rank} cannot continue: a call failed while data were in "
                f"transit ({self._broken}); end all ranks"
            )

    @staticmethod
    def _words_of(text, words):
        data = text.encode()[: 8 * words - 1].ljust(8 * words, b"\0")
        return torch.frombuffer(bytearray(data), dtype=torch.int64)

    @staticmethod
    def _text_of(words):
        return words.contiguous().numpy().tobytes().rstrip(b"\0").decode(errors="ignore")


class _Trip:
    """Keys of a call, in the order of the ranks that own them, and the way back."""

    rows = None  # of the keys received here, with the graph of the local table
    done = False  # whether there was a backward pass
    number = 0  # of the forward pass, the same on all ranks

    def __init__(self, table, batch, mean, once):
        """`once`: whether each key is sent once, however often it occurs."""
        self.batch, self.mean, self.size = batch, mean, table._ranks.size
        ids, features, inverse, times = batch.ids, batch.features, None, None
        if once and features is None:
            ids, inverse, times = unique(ids, return_inverse=True, return_counts=True)
        elif once:
            (ids, features), inverse, times = unique((ids, features), return_inverse=True, return_counts=True)
        second = batch.feature if features is None else features.to(torch.int64)
        owners = _owners(ids, second, self.size)
        self.order = torch.sort(owners, stable=True).indices
        counts = owners.new_zeros(self.size).scatter_add_(0, owners, torch.ones_like(owners))
        words = [ids]
        if table._width > 1:
            second = ids.new_full((len(ids),), second) if features is None else second
            scores = None if batch.scores is None else batch.scores.to(torch.int64)
            if scores is not None and once:
                scores = ids.new_zeros(len(ids)).scatter_reduce_(0, inverse, scores, "amax")
            numbers = times if scores is None else scores
            words.append(second if numbers is None else second | numbers << 16)
        if table._width > 2:
            words.append(torch.ones_like(ids) if times is None else times)
        self.words = torch.stack(words, 1)[self.order]
        if once:
            place = torch.empty_like(self.order)
            place[self.order] = torch.arange(len(ids), device=ids.device)
            self.inverse = place[inverse]
        self.out = counts.tolist()

    def spread(self, rows):
        """The rows of the call's ids or bags, from the rows of keys."""
        offsets, dim = self.batch.offsets, rows.shape[1]
        if offsets is None:
            return rows[self.inverse].reshape(self.batch.out_shape(dim))
        if len(rows) == 0:
            return rows.new_zeros(self.batch.out_shape(dim))
        mode = "mean" if self.mean else "sum"
        sums = torch.nn.functional.embedding_bag(
            self.inverse, rows.float(), offsets, mode=mode, include_last_offset=True
        )
        return sums.to(rows.dtype)

    def sums(self, gradient, dtype):
        """The gradient of each key: those of its ids, added up in the order of the batch."""
        gradient = gradient.reshape(-1, gradient.shape[-1]).float()
        if self.batch.offsets is not None:
            lengths = self.batch.offsets.diff()
            if self.mean:
                gradient = gradient * (1 / lengths.clamp_min(1).float())[:, None]
            gradient = gradient.repeat_interleave(lengths, 0, output_size=len(self.inverse))
        if len(self.inverse) == 0:
            return gradient.new_zeros((0, gradient.shape[1]), dtype=dtype)
        # Sorts by key, so that the result is deterministic; index_add on a GPU is not.
        sums = torch.ops.aten.embedding_dense_backward(gradient, self.inverse, len(self.order), -1, False)
        return sums.to(dtype)


class _Learning(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, table, trip, rows):
        ctx.table, ctx.trip = table, trip
        return trip.spread(rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        ctx.table._learn(ctx.trip, gradient)
        return None, None, None, None


class ShardedTable(torch.nn.Module):
    """A `Table` whose rows are spread over the ranks of a group of torch.distributed.

    The hash of a key determines the rank that owns it. Each rank has a `Table` with its share of the rows. A
    forward pass sends each distinct key of this rank's batch to its owner, and receives its row. A backward
    pass adds up the gradients of each key on this rank, and sends the sums to the owners, which add the sums
    of rank 0 first, and change each row once. So a step does what one table would do that saw the batches of
    all ranks, one after the other, except for the order in which floats are added up, and for which keys
    share a bucket.

    Parameters
    ----------
    dim : int
        Numbers in a row.
    capacity : int
        Rows of all ranks together.
    group : process group of torch, optional
        By default torch's. If it has a transport for CPUs beside that for GPUs (``init_process_group()``, or
        "cpu:gloo,cuda:nccl"), calls wait for the GPU less often.
    **options
        Those of `Table`, the same on all ranks except for the number of the `device`. Options that count
        rows, such as `keep_evicted`, apply to each rank.

    Attributes
    ----------
    local : Table
        The rows of this rank, for `evicted`, `delta` and `capacity`, for instance. Do not change its rows.

    Raises
    ------
    TypeError, ValueError, MemoryError
    RuntimeError
        Another rank has raised, or ended.

    Notes
    -----
    Every rank makes the same calls in the same order, including `backward` and ``len()``, even if it has no
    ids; each call waits for all ranks. If one rank raises, the others raise a RuntimeError with its rank and
    message, and the next call works. If ranks make different calls, all raise ValueError, and the next call
    works. This happens, for instance, if several forward passes wait and ranks call `backward` of different
    ones, or if ranks have different `lr`. After an error in the middle of a call, some ranks may have done
    their part of it: counted a lookup, or learned. If a process ends, the others get torch's exception,
    within the timeout of the group, and later calls raise RuntimeError.

    Gradients of all ranks are added up. If you want their mean, as DistributedDataParallel takes it for
    parameters, divide the loss by the number of ranks.

    For policy "lfu", and for `admit` with any policy, lookups are counted exactly: ranks tell the owners how
    often each key occurs. The greatest score of a key on all ranks counts. Everything else is counted once
    per step for each key and rank (``counts()["unplaced"]``). If rows have 16 bits, the sum of a rank's
    gradients is rounded to their type before it is sent.

    A step needs memory for the distinct keys of the batch and their rows, for those that other ranks ask for,
    and in the backward pass for a float32 gradient for each id. A sharded table cannot be copied or pickled;
    use `snapshot` or `state_dict`.

    Examples
    --------
    >>> import os, torch, roost.torch
    >>> os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> users = roost.torch.ShardedTable(16, 1000, optimizer="adam", lr=0.01)
    >>> users(torch.tensor([10**12, 5, -3])).sum().backward()
    >>> len(users)
    3
    >>> torch.distributed.destroy_process_group()
    """

    _what = "roost.torch.ShardedTable"

    def __init__(self, dim, capacity, *, group=None, **options):
        super().__init__()
        self._ranks = ranks = _Ranks(group, self._what)
        self._number = next(_numbers)

        def make():
            rows = -(-whole_number(capacity, self._what, "capacity") // ranks.size)
            part = _Part(dim, rows, **options)
            ranks.check(part.device)
            return part

        def say(part):
            about = part.about(int(capacity)).values()
            return [self._number, *(zlib.crc32(repr(value).encode()) for value in about)]

        self.local, numbers = ranks.together("ShardedTable()", make, say)
        part = self.local
        ranks.check_same(part.about(int(capacity)), numbers[:, 1:])
        self._number, self._passes = int(numbers[:, 0].max()), 0
        # Whether owners must know how often an id occurs, and how many words are sent for it.
        self._counts_lookups = part.policy == "lfu" or part._options["admit"] > 1
        scored = part.policy == "score"
        self._width = 3 if scored and self._counts_lookups else 2
        if not (part.features or scored or self._counts_lookups):
            self._width = 1
        self._inbox = None

    @property
    def lr(self):
        """The learning rate; set it between steps, on all ranks."""
        return self.local.lr

    @lr.setter
    def lr(self, rate):
        self.local.lr = rate

    @property
    def device(self):
        """Where the rows of this rank are."""
        return self.local.device

    @property
    def features(self):
        """Whether keys have features."""
        return self.local.features

    @property
    def capacity(self):
        """Rows of all ranks together. All ranks call it, like ``len()``: some may have grown."""
        return self._sum("capacity", lambda: self.local.capacity)

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
        """The rows of this rank's ids, or bags of ids.

        Parameters
        ----------
        ids, offsets, table, scores, mode, include_last_offset, per_sample_weights
            As `Table` takes them.

        Returns
        -------
        tensor of the shape of `ids` and one more dimension of `dim`, or with a row for each bag
        """
        training, learns = self.training, self.training and torch.is_grad_enabled()

        def begin():
            mean = self.local._is_mean(mode)
            batch = _Batch(
                self.local,
                ids,
                offsets,
                table,
                scores,
                mean,
                include_last_offset,
                training,
                per_sample_weights,
            )
            return _Trip(self, batch, mean, once=True)

        if not training:
            trip, rows = self._find("forward in evaluation", begin)
            return trip.batch.pooled(trip.spread(rows[0]))
        kind = f"forward to {'learn' if learns else 'train'}, lr={self.lr}"
        trip = self._send(kind, begin)
        self._passes += 1  # all ranks have made this call
        trip.number = self._passes

        def look_up():
            self.local.train()
            trip.rows = self._rows_of(trip)
            out = trip.rows.detach()[: sum(trip.into)].contiguous()
            return out, out.new_empty((len(trip.order), out.shape[1]))

        (out, rows), _ = self._ranks.together(self._call("the lookup of forward"), look_up)
        self._ranks.exchange(out, trip.into, rows, trip.out)
        if not learns:
            return trip.batch.pooled(trip.spread(rows))
        anchor = torch.empty(0, device=rows.device, requires_grad=True)
        return trip.batch.pooled(_Learning.apply(anchor, self, trip, rows))

    def prefetch(self, ids, *, table=0):
        """Brings the rows of this rank's next ids to the GPUs that own them, as `Table.prefetch` does: call
        it before `backward`. Sends each distinct id once. Without `hbm_rows` it does nothing.

        Parameters
        ----------
        ids, table
            As `Table` takes them, of this rank.
        """
        if self.local._options["hbm_rows"] is None:
            self._ranks.together(self._call("prefetch"), lambda: _Batch(self.local, ids, feature=table))
            return
        trip = self._send("prefetch", lambda: self._trip_of(ids, table, once=True))

        def fetch():
            ids, features, *_ = self._keys_of(trip)
            self.local.prefetch(ids, table=features)

        self._ranks.together(self._call("the end of prefetch"), fetch)

    def find(self, ids, *, table=0):
        """The rows of ids; changes nothing.

        Returns
        -------
        rows : tensor of the shape of `ids` and one more dimension of `dim`
            For an absent key, the row that it would begin with.
        found : tensor of bool, of the shape of `ids`
        """
        trip, (rows, found) = self._find("find", lambda: self._trip_of(ids, table, once=True))
        return trip.spread(rows), found[trip.inverse].reshape(ids.shape)

    def insert(self, ids, rows, *, table=0, scores=None):
        """Sets the rows of ids; new keys get rows as in a training step. If a key has several rows, the last
        one of the last rank counts.

        Parameters
        ----------
        ids, rows, table, scores
            As `Table.insert` takes them, of this rank.
        """
        part = self.local

        def begin():
            batch = _Batch(part, ids, feature=table, scores=scores, changes=True)
            part._check_rows(ids, rows)
            trip = _Trip(self, batch, False, once=False)
            trip.given = rows.detach().reshape(-1, part.dim)[trip.order]
            return trip

        def make_room(trip):
            trip.rows = torch.empty((sum(trip.into), part.dim), dtype=part.dtype, device=part.device)

        trip = self._send("insert", begin, make_room)
        self._ranks.exchange(trip.given, trip.out, trip.rows, trip.into)

        def set_rows():
            ids, features, scores, _ = self._keys_of(trip)
            part.insert(ids, trip.rows, table=features, scores=scores)

        self._ranks.together(self._call("the end of insert"), set_rows)

    def erase(self, ids, *, table=0):
        """Removes the rows of ids. Ids without a row are ignored."""
        trip = self._send("erase", lambda: self._trip_of(ids, table, once=False))

        def erase():
            ids, features, *_ = self._keys_of(trip)
            self.local.erase(ids, table=features)

        self._ranks.together(self._call("the end of erase"), erase)

    def __len__(self):
        """The number of keys of all ranks that have rows. All ranks call it; waits for a GPU."""
        return self._sum("len", lambda: len(self.local))

    def _sum(self, name, number):
        return int(self._ranks.together(self._call(name), number, lambda n: [n])[1][:, 0].sum())

    def counts(self):
        """The counts of `Table.counts`, added up over all ranks; `steps` and `updates` are the greatest of
        any rank. All ranks call it; waits for a GPU."""
        mine, all = self._ranks.together(
            self._call("counts"), self.local.counts, lambda counts: list(counts.values())
        )
        columns = dict(zip(mine, all.T[: len(mine)], strict=True))
        return {
            name: int(column.max() if name in ("steps", "updates") else column.sum())
            for name, column in columns.items()
        }

    def reserve(self, capacity):
        """Makes room for `capacity` rows on all ranks together, as `Table.reserve` does."""

        def grow():
            self.local.reserve(-(-whole_number(capacity, self._what, "capacity") // self._ranks.size))

        self._ranks.together(self._call(f"reserve({capacity})"), grow)

    def snapshot(self, folder):
        """Writes all rows and the optimizer's state to a folder, a file for each rank. Older files there are
        removed when the files of all ranks are complete and on disk, so there is always a whole snapshot,
        however the processes end. It waits for the files; there is no ``wait=False`` as in `Table.snapshot`.

        Parameters
        ----------
        folder : path
            The same on all ranks; created if it does not exist. Disks need not be shared.
        """
        ranks = self._ranks

        def look():
            path = os.path.realpath(os.fsdecode(folder))
            os.makedirs(path, exist_ok=True)
            return path, _files_in(path)

        def say(found):
            last = max((number for number, *_ in found[1]), default=0)
            return [last, int.from_bytes(os.urandom(8), "little") >> 1]

        (path, files), numbers = ranks.together(self._call("snapshot"), look, say)
        number = int(numbers[:, 0].max()) + 1
        name = os.path.join(path, _name(number, ranks.rank, ranks.size))

        def write():
            # Random, from rank 0: files of another run may have the same name.
            self.local._snapshot_id = int(numbers[0, 1])
            try:
                self.local.snapshot(name)
            finally:
                self.local._snapshot_id = None

        ranks.together(self._call("the end of snapshot"), write)
        for _, _, _, former in files:
            with contextlib.suppress(OSError):  # another rank may have removed it
                os.remove(os.path.join(path, former))

    def load(self, folder):
        """Reads a snapshot that the same number of ranks wrote into this table, whose own rows are dropped.

        Raises
        ------
        RuntimeError
            There is no complete snapshot of this number of ranks; files are of different snapshots; a file is
            damaged, or is of a table with a different dim, optimizer, dtype or policy. If a file is damaged
            or too large on some rank, other ranks may already have loaded theirs: load again before you
            continue.
        """
        ranks = self._ranks

        def look():
            path = os.path.realpath(os.fsdecode(folder))
            files = _files_in(path)
            mine = sorted((n for n, rank, size, _ in files if (rank, size) == (ranks.rank, ranks.size)))[-4:]
            others = max(((n, size) for n, _, size, _ in files if size != ranks.size), default=(0, 0))
            return path, [*others, *mine]

        (path, _), all = ranks.together(self._call("load"), look, lambda found: found[1])
        number = max(set.intersection(*({n for n in row[2:].tolist() if n > 0} for row in all)), default=0)
        later, size = max(tuple(row[:2].tolist()) for row in all)
        if number < max(later, 1):
            there = f"the last one is of {size}" if size else "there is none"
            raise RuntimeError(
                f"{self._what}: {path} has no complete snapshot of {ranks.size} ranks ({there}); load it on "
                "as many as wrote it"
            )
        file = os.path.join(path, _name(number, ranks.rank, ranks.size))
        _, ids = ranks.together(
            self._call("the check of load"), lambda: self._check_file(file), lambda n: [n]
        )
        if (ids[:, 0] != ids[0, 0]).any():
            others = ", ".join(map(str, (ids[:, 0] != ids[0, 0]).nonzero()[:, 0].tolist()))
            raise RuntimeError(
                f"{self._what}: {path} has files of different snapshots with number {number}: those of ranks "
                f"0 and {others}; give all ranks the files of one"
            )
        ranks.together(self._call("the end of load"), lambda: self.local.load(file))

    def _check_file(self, file):
        """The random number of the snapshot."""
        try:
            state = torch.load(file, map_location="cpu", weights_only=True, mmap=True)["state"]
            right, number = self._owns(state["ids"], state["features"]), int(state["snapshot"])
        except OSError:
            raise
        except Exception:  # noqa: BLE001 (whatever torch's readers say of other bytes)
            raise RuntimeError(f"{self._what}: {file} is damaged, or no snapshot") from None
        if not right:
            raise RuntimeError(f"{self._what}: {file} has rows of another rank; give files their names back")
        return number

    def _owns(self, ids, features):
        second = features.to(torch.int64) & 0xFFFF
        return bool((_owners(ids, second, self._ranks.size) == self._ranks.rank).all())

    def _call(self, name):
        """What all ranks must call at a time."""
        return f"{name} of table {self._number}"

    def _trip_of(self, ids, table, once):
        return _Trip(self, _Batch(self.local, ids, feature=table), False, once)

    def _send(self, call, begin, make_room=None):
        """The trip that begin() returns, after its keys have arrived at their owners. make_room(trip)
        allocates memory for what arrives beside keys."""
        ranks, device = self._ranks, self.local.device
        width = self._width
        if self._inbox is None or self._inbox.device != device:
            self._inbox = torch.empty((0, width), dtype=torch.int64, device=device)
        room = len(self._inbox)

        def start():
            ranks.check(device)
            return begin()

        trip, all = ranks.together(self._call(call), start, lambda trip: [room, *trip.out])
        matrix = all[:, 1 : 1 + ranks.size]
        trip.into = matrix[:, ranks.rank].tolist()

        def grow():
            if sum(trip.into) > room:
                self._inbox = self._inbox.new_empty((0, width))
                self._inbox = self._inbox.new_empty((sum(trip.into) * 5 // 4, width))
            if make_room is not None:
                make_room(trip)

        # All ranks know whether one of them allocates memory, which may fail.
        if make_room is not None or (matrix.sum(0) > all[:, 0]).any():
            ranks.together(self._call(f"the memory of {call}"), grow)
        ranks.exchange(trip.words, trip.out, self._inbox[: sum(trip.into)], trip.into)
        return trip

    def _keys_of(self, trip):
        """The ids, features (a tensor, or 0), scores and numbers of lookups that arrived here, as separate
        tensors; None for what this table does not have."""
        words = self._inbox[: sum(trip.into)].unbind(1)
        ids, features, scores, times = words[0].clone(), 0, None, None
        if self.local.features:
            features = (words[1] & 0xFFFF).to(torch.uint16)
        if self.local.policy == "score":
            scores = (words[1] >> 16).to(torch.uint32)
        if self._counts_lookups:
            times = words[2].clone() if scores is not None else words[1] >> 16
        return ids, features, scores, times

    def _rows_of(self, trip):
        """The rows of the keys that arrived here, a training step; possibly followed by more rows."""
        ids, features, scores, times = self._keys_of(trip)
        if self._counts_lookups:
            n = len(ids)
            again = torch.repeat_interleave(torch.arange(n, device=ids.device), times - 1)
            if len(again):
                # Further lookups of these keys come after them, in unused bags.
                end = n + len(again)
                offsets = torch.cat([torch.arange(n), torch.arange(n, end, 32), torch.tensor([end])])
                if self.local.features:
                    features = torch.cat([features, features.to(torch.int64)[again].to(torch.uint16)])
                if scores is not None:
                    scores = torch.cat([scores, scores.to(torch.int64)[again].to(torch.uint32)])
                ids, offsets = torch.cat([ids, ids[again]]), offsets.to(ids.device)
                return self.local(ids, offsets, table=features, scores=scores, include_last_offset=True)
        return self.local(ids, table=features, scores=scores)

    def _find(self, call, begin):
        """A trip, the rows of its keys, and whether the keys have rows."""
        trip = self._send(call, begin)

        def look_up():
            ids, features, *_ = self._keys_of(trip)
            rows, found = self.local.find(ids, table=features)
            both = torch.cat([rows.view(torch.uint8), found.view(torch.uint8)[:, None]], 1)
            return both, both.new_empty((len(trip.order), both.shape[1]))

        (out, both), _ = self._ranks.together(self._call(f"the lookup of {call}"), look_up)
        self._ranks.exchange(out, trip.into, both, trip.out)
        rows = torch.empty((len(both), self.local.dim), dtype=self.local.dtype, device=both.device)
        rows.view(torch.uint8).copy_(both[:, :-1])
        return trip, (rows, both[:, -1].bool())

    def _learn(self, trip, gradient):
        """A backward pass."""

        def add_up():
            if trip.done:
                raise RuntimeError(
                    f"{self._what}: a second backward pass, or one that failed before; call forward again"
                )
            sums = trip.sums(gradient, self.local.dtype)
            return sums, torch.zeros_like(trip.rows)

        # The number, because ranks may have several pending passes.
        call = f"backward of pass {trip.number}"
        (sums, into), _ = self._ranks.together(self._call(call), add_up)
        trip.done = True  # on all ranks, or on none
        self._ranks.exchange(sums, trip.out, into[: sum(trip.into)], trip.into)

        def update():
            rows, trip.rows = trip.rows, None
            rows.backward(into)

        self._ranks.together(self._call(f"the end of {call}"), update)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "ranks"] = torch.tensor([1, self._ranks.rank, self._ranks.size])

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        ranks, mine = state.get(prefix + "ranks"), (self._ranks.rank, self._ranks.size)
        here = [key for key in state if key.startswith(prefix)]
        unexpected.extend(
            key
            for key in here
            if strict and key != prefix + "ranks" and not key[len(prefix) :].startswith("local.")
        )
        wrong = None
        if ranks is None:
            missing.append(prefix + "ranks")
        elif ranks.shape != (3,) or ranks.dtype != torch.int64 or ranks[0] != 1:
            wrong = "not what a table of this version of roost has saved"
        elif tuple(ranks[1:].tolist()) != mine:
            wrong = "rows of rank {} of {}, and this is rank {} of {}".format(*ranks[1:].tolist(), *mine)
        else:
            try:
                right = self._owns(state[prefix + "local.ids"], state[prefix + "local.features"])
                wrong = None if right else "keys that another rank owns"
            except (KeyError, RuntimeError, TypeError, AttributeError):
                pass  # the table that loads them reports it
        if wrong is not None:
            errors.append(f"{prefix}: {wrong}")
        if wrong is not None or ranks is None:
            for key in here:  # so that the local rows stay
                del state[key]

    def __getstate__(self):
        raise TypeError(f"{self._what}: it is neither copied nor pickled; use snapshot or state_dict")

    def extra_repr(self):
        return f"rank {self._ranks.rank} of {self._ranks.size}"


def _owners(ids, features, size):
    """The rank that owns each key. This hash differs from the one that says where a key lies on its rank."""
    salt = features * 0x2545F4914F6CDD1D
    x = ids ^ (salt if isinstance(salt, torch.Tensor) else (salt + 2**63) % 2**64 - 2**63)
    for multiplier, shift in ((0x3C79AC492BA7B653, 33), (0x1C69B3F74AC4AE35, 27)):
        x = (x ^ (x >> shift & (1 << 64 - shift) - 1)) * multiplier
    x = x ^ (x >> 32)
    return (x & 0x7FFFFFFF) * size >> 31


def _name(number, rank, size):
    return f"{number:08}-{rank}-of-{size}.table"


def _files_in(path):
    """(number, rank, size, name) of the files of snapshots in a folder."""
    names = os.listdir(path) if os.path.isdir(path) else []
    matches = (re.fullmatch(r"(\d+)-(\d+)-of-(\d+)\.table", name) for name in names)
    return [(*map(int, m.groups()), m[0]) for m in matches if m]
