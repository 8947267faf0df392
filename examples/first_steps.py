"""roost from Python: the first steps. Run it with `python examples/first_steps.py`."""

import numpy as np
import roost
import roost.sparse

ids = np.array([1005, 1002, 1005, 1009])
grams = np.array([250.0, 900.0, 120.0, 70.0])

# customers: [1002 1005 1009], count: [1 2 1]
customers, count = roost.unique(ids, sorted=True, return_counts=True)
parcels = roost.group_by(ids)
total = parcels.sum(grams)                       # by parcels.keys; for 1005: 370.0
rows = roost.Index(customers).get_indexer(ids)   # ids as rows: [1 0 1 2]
known = roost.isin(np.array([1002, 1003]), ids)  # [True False]
left, right = roost.join(ids, customers)         # ids[left] == customers[right]

assert customers.tolist() == [1002, 1005, 1009] and count.tolist() == [1, 2, 1]
grams_of = dict(zip(parcels.keys.tolist(), total.tolist()))
assert grams_of == {1005: 370.0, 1002: 900.0, 1009: 70.0}
assert rows.tolist() == [1, 0, 1, 2] and known.tolist() == [True, False]
assert ids[left].tolist() == customers[right].tolist() == ids.tolist()

# A map that stays, and one that changes.
weight = roost.Map(parcels.keys, total)
print(weight[1005], weight.find(np.array([1009, 7]), missing=0.0))  # 370.0 [70. 0.]

seen = roost.ConcurrentMap("int64", "int32")
for batch in np.array_split(ids, 2):
    seen.add(batch)         # counts keys as they come
print(seen[1005], len(seen))  # 2 3
assert weight[1005] == 370.0 and seen[1005] == 2 and len(seen) == 3

# Voxels, the neighbours of each, and a convolution over those that are there.
# batch, x, y, z
voxels = np.array([[0, 5, 5, 5], [0, 5, 5, 6], [0, 9, 9, 9]], np.int32)
index = roost.sparse.CoordinateIndex(voxels)
near = roost.sparse.kernel_map(index)  # 3 x 3 x 3
ones, kernel = np.ones((3, 1), np.float32), np.ones((27, 1, 1), np.float32)
# How many voxels are near each: [2. 2. 1.].
print(roost.sparse.sparse_conv(near, ones, kernel).ravel())
assert index.find(voxels[1:2]).tolist() == [1] and near.neighbours().shape == (27, 3)
assert roost.sparse.sparse_conv(near, ones, kernel).ravel().tolist() == [2, 2, 1]
