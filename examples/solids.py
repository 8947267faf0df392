"""Cuts a ball out of a cube: solids of voxels from meshes.

    python examples/solids.py
"""

import itertools

import numpy as np
import roost.solids

corners = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
faces = [[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5]]
faces += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
cube = (corners, np.array(faces))

# A ball: the sides of the cube, divided and blown up.
ball = roost.solids.voxelize(cube, 24).mesh(smooth=False)
away = ball[0] - 0.5
ball = (away / np.linalg.norm(away, axis=1, keepdims=True), ball[1])
# Half as large, about the corner (1, 1, 1).
place = np.diag([0.5, 0.5, 0.5, 1])
place[:3, 3] = 1

solid = roost.solids.difference([cube, ball], grid=128, transforms=[None, place])
points = [[0.1, 0.1, 0.1], [0.9, 0.9, 0.9]]
inside = solid.contains(points)  # [True False]
vertices, triangles = solid.mesh()  # smooth, closed, looking outwards

expected = 1 - np.pi / 6 / 8  # an eighth of the ball is cut off
assert abs(solid.volume - expected) < 0.003, solid.volume
assert inside.tolist() == [True, False]
a, b, c = (vertices[triangles[:, k]] for k in range(3))
assert abs(np.einsum("ij,ij->", a, np.cross(b, c)) / 6 - expected) < 0.01
print(f"volume {solid.volume:.3f}, {len(triangles)} triangles: correct")
