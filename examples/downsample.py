"""Fewer points of a cloud: the mean of those in each voxel, how many they are, and
the voxel of each. The cloud is a file, .las or .laz (pip install laspy lazrs), or
made up: python downsample.py [FILE SIZE]
"""

import sys

import numpy as np
import roost


def read(file):
    """The points of a file of LAS or LAZ, as doubles."""
    import laspy

    return laspy.read(file).xyz


if len(sys.argv) > 1:
    points, size = read(sys.argv[1]), float(sys.argv[2])
else:
    points, size = np.random.default_rng(1).normal(size=(100_000, 3)), 0.25

# labels[i] is the row of point i in means and counts.
labels, voxels = roost.factorize(np.floor(points / size).astype(np.int64))
by_voxel = roost.group_by(labels)
means, counts = np.empty((len(voxels), 3)), np.empty(len(voxels), int)
for axis in range(3):
    means[by_voxel.keys, axis] = by_voxel.mean(points[:, axis])
counts[by_voxel.keys] = by_voxel.count()

print(f"{len(voxels)} voxels; point 0 is one of {counts[labels[0]]}")
print("around", means[labels[0]].round(3))
