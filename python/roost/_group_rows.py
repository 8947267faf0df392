"""The rows of groups, and results for each of them: running sums, ranks, neighbours. On the CPU."""

import numpy as np

from ._arrays.types import FLOAT64, INT64

RANKS = ("average", "min", "max", "dense", "first")


class GroupRows:
    """The rows of groups: `rows`, group after group, ascending in each; where each group begins in these, and
    how many it has; and for each of `rows`, its group and its place in it, from 0 on.

    What comes of values is in the order of the values. Row numbers that are returned are -1 for none.
    """

    def __init__(self, rows, offsets):
        self.rows, self.starts, self.counts = rows, offsets[:-1], np.diff(offsets)
        self._group = np.repeat(np.arange(len(self.counts)), self.counts)
        self._place = np.arange(len(rows)) - self.starts[self._group]

    def _spread(self, found):
        """What belongs to `rows`, in their ascending order."""
        made = np.empty(len(found), found.dtype)
        made[self.rows] = found
        return made

    def groups(self):
        """The group of each row."""
        return self._spread(self._group)

    def ends(self, n, first):
        """The first n rows of each group, or the last n: ascending."""
        left = self._place if first else self.counts[self._group] - self._place - 1
        return np.sort(self.rows[left < n])

    def nth(self, n):
        """Row n of each group that has so many, or from its end if n is negative: ascending."""
        has = self.counts > n if n >= 0 else self.counts >= -n
        return np.sort(self.rows[(self.starts if n >= 0 else self.starts + self.counts)[has] + n])

    def filled(self, there, forward):
        """The nearest row up to each row in its group that has a value; or from it on."""
        n, there = len(self.rows), there[self.rows]
        if forward:
            at = np.maximum.accumulate(np.where(there, np.arange(n), -1))
            is_row = at >= self.starts[self._group]
        else:
            at = np.minimum.accumulate(np.where(there, np.arange(n), n)[::-1])[::-1]
            is_row = at < (self.starts + self.counts)[self._group]
        return self._spread(np.where(is_row, self.rows[np.where(is_row, at, 0)], -1))

    def running_sums(self, values, there):
        """The sums so far of int64, which wrap around. Values that are not `there` (None: all are) add
        nothing."""
        wanted = values[self.rows]
        if there is not None:
            wanted[~there[self.rows]] = 0
        sums = np.cumsum(wanted)
        before = sums[self.starts] - wanted[self.starts]
        return self._spread(sums - before[self._group])

    def ranks(self, values, there, method, ascending):
        """The rank of each value that is `there` (None: all are) in its group, from 1 on; others have 0.
        `method`: one of RANKS."""
        result = np.zeros(len(values), FLOAT64 if method == "average" else INT64)
        rows = np.arange(len(values)) if there is None else np.flatnonzero(there)
        values, group = values[rows], self.groups()[rows]
        if ascending:
            order = np.argsort(values, kind="stable")
        else:  # equal ones stay in order
            order = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
        order = order[np.argsort(group[order], kind="stable")]
        values, group, at = values[order], group[order], np.arange(len(order))
        opens = np.ones(len(order), np.bool_)
        opens[1:] = group[1:] != group[:-1]
        differs = opens.copy()
        differs[1:] |= values[1:] != values[:-1]
        run, begins = np.cumsum(differs) - 1, np.flatnonzero(differs)
        start = np.maximum.accumulate(np.where(opens, at, 0))
        least = begins[run] - start + 1
        most = np.append(begins[1:], len(order))[run] - start
        found = {
            "average": lambda: (least + most) / 2,
            "min": lambda: least,
            "max": lambda: most,
            "dense": lambda: run - run[start] + 1,
            "first": lambda: at - start + 1,
        }[method]()
        result[rows[order]] = found
        return result
