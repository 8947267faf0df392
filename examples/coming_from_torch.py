"""What torch does, and the same with roost: python examples/coming_from_torch.py."""

import roost
import torch

batch = torch.tensor([7, 3, 7, 5, 9])
weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
known = torch.tensor([9, 3, 5])

# Distinct ids in order, the position of each row among them, and how often they occur.
ids, inverse, counts = torch.unique(batch, return_inverse=True, return_counts=True)

found = roost.unique(batch, sorted=True, return_inverse=True, return_counts=True)

assert all(torch.equal(a, b.to(a.dtype)) for a, b in zip((ids, inverse, counts), found))

# A sum for each id, in the order of first occurrence of the ids.
sums = torch.zeros(len(ids)).index_add_(0, inverse, weights)

groups = roost.group_by(batch)
roost_sums = groups.sum(weights)  # of groups.keys

order = groups.keys.argsort()
assert torch.equal(groups.keys[order], ids) and torch.equal(roost_sums[order], sums)

# Ids that are known, and where each is in the list of those known.
is_known = torch.isin(batch, known)
at = torch.where(is_known, (batch[:, None] == known).int().argmax(1), -1)

roost_known = roost.isin(batch, known)
roost_at = roost.Index(known).get_indexer(batch)  # -1 for the others

assert torch.equal(is_known, roost_known) and torch.equal(at, roost_at)
print("coming_from_torch: right")
