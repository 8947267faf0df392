"""Points to voxels, with spconv's names. `roost.sparse.nn.Voxelize` is a layer that has gradients."""

import math
from collections.abc import Sequence

import torch

from ...sparse import CoordinateIndex
from ...sparse.nn import _cells, _described, _extents
from .core import _numbers

__all__ = ["PointToVoxel", "gather_features_by_pc_voxel_id"]


class PointToVoxel:
    """Collects the points of each voxel.

    Parameters
    ----------
    vsize_xyz : sequence of float
        The size of a voxel on each of 1 to 4 axes.
    coors_range_xyz : sequence of float
        The least position on each axis, then the greatest.
    num_point_features : int
        The columns of points.
    max_num_voxels, max_num_points_per_voxel : int
        Voxels are numbered in order of first occurrence, and points beyond these limits are left out: the
        same on every run, on every device (spconv's choice on a GPU is not).
    device : torch.device
        Of the points.
    """

    def __init__(
        self,
        vsize_xyz: Sequence[float],
        coors_range_xyz: Sequence[float],
        num_point_features: int,
        max_num_voxels: int,
        max_num_points_per_voxel: int,
        device: torch.device | str = "cpu",
    ):
        what = "roost.spconv.PointToVoxel"
        self.ndim = len(vsize_xyz)
        low, high = coors_range_xyz[: self.ndim], coors_range_xyz[self.ndim :]
        sizes_are_right = 1 <= self.ndim <= 4 and all(0 < each < math.inf for each in vsize_xyz)
        if not sizes_are_right or len(high) != self.ndim or not all(map(math.isfinite, coors_range_xyz)):
            raise ValueError(
                f"{what}: vsize_xyz={vsize_xyz}, coors_range_xyz={coors_range_xyz}; give sizes above 0 for 1 "
                "to 4 axes, and twice as many bounds"
            )
        self.device = torch.device(device)
        (self.num_point_features,) = _numbers(1, num_point_features, "num_point_features", what, self.ndim)
        (self.max_num_voxels,) = _numbers(1, max_num_voxels, "max_num_voxels", what, 0)
        (most,) = _numbers(1, max_num_points_per_voxel, "max_num_points_per_voxel", what, 0)
        self.max_num_points_per_voxel = most
        extents = _extents(low, high, vsize_xyz, what)
        # The last axis first, as spconv's indices.
        self.vsize, self.grid_size = list(vsize_xyz)[::-1], extents[::-1]
        self.coors_range = [*low[::-1], *high[::-1]]

    def __call__(self, pc: torch.Tensor, clear_voxels: bool = True, empty_mean: bool = False):
        """`generate_voxel_with_id` without the voxels of points."""
        return self.generate_voxel_with_id(pc, clear_voxels, empty_mean)[:3]

    def generate_voxel_with_id(
        self, pc: torch.Tensor, clear_voxels: bool = True, empty_mean: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """The points of each voxel.

        Parameters
        ----------
        pc : tensor of n x num_point_features float32
            Positions x, y, z ... first. Points outside of the range, or not finite, are left out.
        clear_voxels : bool
            Has no effect: results are new.
        empty_mean : bool
            Whether places without a point have the mean of the voxel's points, rather than 0.

        Returns
        -------
        voxels : tensor of m x max_num_points_per_voxel x num_point_features
        indices : tensor of m x axes int32
            Positions z, y, x.
        num_per_voxel : tensor of m int32
        pc_voxel_id : tensor of n int64
            The voxel of each point, also of those that it had no place for; -1 without one.
        """
        what = "roost.spconv.PointToVoxel"
        columns = self.num_point_features
        is_tensor = isinstance(pc, torch.Tensor) and pc.dtype == torch.float32
        if not is_tensor or pc.ndim != 2 or pc.shape[1] != columns:
            raise ValueError(f"{what}: points are {_described(pc)}; give a tensor of n x {columns} float32")
        pc, axes, most = pc.detach(), self.ndim, self.max_num_points_per_voxel
        low, size = self.coors_range[:axes], self.vsize
        at, inside = _cells(pc[:, :axes].flip(1), low, size, [0] * axes, self.grid_size)
        at = torch.nn.functional.pad(at, (1, 1 if axes == 1 else 0))
        index = CoordinateIndex(at, order="input")
        rows = torch.as_tensor(index.rows_of_input())
        m = min(len(index), self.max_num_voxels)
        ids = pc.new_full((len(pc),), -1, dtype=torch.int64)
        ids[inside] = torch.where(rows < m, rows, -1)
        counts = rows.bincount(minlength=len(index))
        order = torch.argsort(rows, stable=True)
        place = torch.arange(len(rows), device=pc.device) - (counts.cumsum(0) - counts)[rows[order]]
        kept = (place < most) & (rows[order] < m)
        voxels = pc.new_zeros(m, most, pc.shape[1])
        voxels[rows[order][kept], place[kept]] = pc[inside[order[kept]]]
        counts = counts[:m].clamp_max(most)
        if empty_mean:
            empty = torch.arange(most, device=pc.device) >= counts[:, None]
            voxels = torch.where(empty[:, :, None], (voxels.sum(1) / counts[:, None])[:, None], voxels)
        indices = torch.as_tensor(index.coordinates)[:m, 1 : axes + 1].contiguous()
        return voxels, indices, counts.int(), ids


def gather_features_by_pc_voxel_id(
    seg_res_features: torch.Tensor, pc_voxel_id: torch.Tensor, invalid_value: float = 0
) -> torch.Tensor:
    """The features of each point's voxel: a tensor of n x ..., with `invalid_value` for points without one.

    Parameters
    ----------
    seg_res_features : tensor of m x ...
    pc_voxel_id : tensor of n int64
        As `PointToVoxel.generate_voxel_with_id` returns it.
    invalid_value : float
    """
    ids = pc_voxel_id.to(seg_res_features.device)
    there = ids != -1
    result = seg_res_features.new_full((len(ids), *seg_res_features.shape[1:]), invalid_value)
    result[there] = seg_res_features[ids[there]]
    return result
