"""Calls, and the types of their results: for mypy and pyright, and for test_types.py, which runs them."""

# mypy: disallow-untyped-defs, disallow-untyped-calls

from typing import Any, TypeAlias, assert_type

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import roost
import roost.distributed
import roost.match
import roost.solids
import roost.sparse
import roost.stars
from numpy.typing import NDArray

# Texts, because at run time these have no parameters.
Series: TypeAlias = "pd.Series[Any]"
Bools: TypeAlias = "pd.Series[bool]"
Ints: TypeAlias = "pd.Series[int]"
Floats: TypeAlias = "pd.Series[float]"
Array: TypeAlias = "pa.Array[Any]"
Chunked: TypeAlias = "pa.ChunkedArray[Any]"
Int64: TypeAlias = NDArray[np.int64]
Int32: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]
Real: TypeAlias = NDArray[np.float64]

x: Int64 = np.array([3, 1, 3])
v: Real = np.array([1.0, 2.0, 3.0])
s: Ints = pd.Series([3, 1, 3], name="a")
f = pd.DataFrame({"a": [3, 1, 3], "b": [1.0, 2.0, 3.0]})
ps, pf = pl.Series("a", [3, 1, 3]), pl.DataFrame({"a": [3, 1, 3], "b": [1.0, 2.0, 3.0]})
a = pa.array([3, 1, 3])
c: Chunked = pa.chunked_array([[3, 1, 3]])
t, r = pa.Table.from_pandas(f), pa.RecordBatch.from_pandas(f)
index = pd.Index([3, 1, 3])

# Keys come out as they came in.
assert_type(roost.unique(x), Int64)
assert_type(roost.unique(s), Ints)
assert_type(roost.unique(f), pd.DataFrame)
assert_type(roost.unique(ps), pl.Series)
assert_type(roost.unique(pf), pl.DataFrame)
assert_type(roost.unique(a), pa.Int64Array)
assert_type(roost.unique(c), Chunked)
assert_type(roost.unique(t), pa.Table)
assert_type(roost.unique(r), pa.Table)
assert_type(roost.unique([3, 1]), NDArray[Any])
assert_type(roost.unique((3, 1)), NDArray[Any])
assert_type(roost.isin(("a", "b"), ["a"]), Flags)
assert_type(roost.unique(x, return_counts=True, device="simulated", limit="1GB"), tuple[Int64, Int64])
assert_type(roost.join(s, s, device="cpu"), tuple[Int64, Int64])
assert_type(roost.merge(f, f, on="a", device="simulated", progress=lambda done, all: None), pd.DataFrame)
roost.merge(f, f, on="a", device="simulated", spill="/tmp", host_limit="1GB")
assert_type(roost.Index(x, device="simulated").get_indexer(x), Int64)
with roost.options(device="simulated", limit=2**30, progress=True):
    assert_type(roost.value_counts(ps), tuple[pl.Series, pl.Series])
assert_type(roost.unique(index), Series)
assert_type(roost.unique((x, v)), tuple[Int64, Real])
assert_type(roost.unique(([1], [2])), tuple[Any, ...])
assert_type(roost.drop_duplicates(x), Int64)
assert_type(roost.drop_duplicates(pf, "a", keep="last"), pl.DataFrame)
assert_type(roost.drop_duplicates(r), pa.Table)
assert_type(roost.merge(f, f, on="a"), pd.DataFrame)
assert_type(roost.merge(pf, pf, on="a"), pl.DataFrame)
assert_type(roost.merge(t, t, on="a", how="semi"), pa.Table)
assert_type(roost.merge(r, r, on="a"), pa.Table)
assert_type(roost.merge_asof(f, f, on="a", direction="nearest", tolerance=3), pd.DataFrame)
assert_type(roost.merge_asof(pf, pf, on="a"), pl.DataFrame)
assert_type(roost.merge_asof(t, t, on="a"), pa.Table)
assert_type(roost.merge_asof(v, v, left_on=v, right_on=v), NDArray[Any])
assert_type(roost.interval_join(pf, pf, "a", ("b", "b")), pl.DataFrame)
assert_type(roost.interval_join(v, v, v, (v, v), closed="both"), tuple[NDArray[Any], NDArray[Any]])

# Flags.
assert_type(roost.unique(x, return_index=True), tuple[Int64, Int64])
assert_type(roost.unique(v, return_inverse=True, return_counts=True), tuple[Real, Int64, Int64])
assert_type(roost.unique(s, return_index=True, return_counts=True), tuple[Ints, Int64, Ints])
assert_type(roost.unique(f, return_inverse=True), tuple[pd.DataFrame, Ints])
assert_type(roost.unique(ps, return_counts=True), tuple[pl.Series, pl.Series])
assert_type(
    roost.unique(pf, return_index=True, return_inverse=True, return_counts=True),
    tuple[pl.DataFrame, Int64, pl.Series, pl.Series],
)
assert_type(roost.unique(t, return_counts=True), tuple[pa.Table, Chunked])
assert_type(roost.unique(a, return_counts=True), tuple[Any, ...])
assert_type(roost.factorize(x), tuple[Int64, Int64])
assert_type(roost.factorize(v, index_dtype="int32"), tuple[Int32, Real])
assert_type(roost.factorize(f), tuple[Ints, pd.DataFrame])
assert_type(roost.factorize(c), tuple[Chunked, Chunked])
assert_type(roost.value_counts(x), tuple[Int64, Int64])
assert_type(roost.value_counts(x, normalize=True), tuple[Int64, Real])
assert_type(roost.value_counts(s), tuple[Ints, Ints])
assert_type(roost.value_counts(s, normalize=True), tuple[Ints, Floats])
assert_type(roost.value_counts(pf), tuple[pl.DataFrame, pl.Series])
assert_type(roost.value_counts(a), tuple[Array, Array])

# One value for each row.
assert_type(roost.isin(x, [1]), Flags)
assert_type(roost.isin([1], x), Flags)
assert_type(roost.isin(s, x), Bools)
assert_type(roost.isin(f, f), Bools)
assert_type(roost.isin(index, x), Bools)
assert_type(roost.isin(ps, s), pl.Series)
assert_type(roost.isin(pf, pf), pl.Series)
assert_type(roost.isin(a, x), Array)
assert_type(roost.isin(r, r), Array)
assert_type(roost.isin(t, t), Chunked)
assert_type(roost.duplicated((s, x)), Bools)
assert_type(roost.duplicated(pf, keep=False), pl.Series)

# Row numbers.
assert_type(roost.join(x, s), tuple[Int64, Int64])
assert_type(roost.join(pf, pf, "left", index_dtype="int32"), tuple[Int32, Int32])
assert_type(roost.join(s, ps, how="anti"), Int64)
assert_type(roost.join(a, [1], "semi", index_dtype="int32"), Int32)
assert_type(roost.partition(s, 2, index_dtype="int32"), tuple[Int32, Int64])
assert_type(roost.gather(v, x - 1), np.ndarray[Any, np.dtype[np.float64]])
assert_type(roost.nunique(f), int)

# Groups.
of_array = roost.group_by(x)
assert_type(of_array.keys, Int64)
assert_type(of_array.count(), NDArray[Any])
assert_type(of_array.count(v), Int64)
assert_type(of_array.sum(v), NDArray[Any])
assert_type(of_array.var(v, ddof=0), Real)
assert_type(of_array.any(v), Flags)
assert_type(of_array.sum(ps), pl.Series)
assert_type(of_array.mean(c), Chunked)
assert_type(of_array.sum(v, x), tuple[Any, ...])
assert_type(of_array.quantile(s, q=[0.1, 0.9]), NDArray[Any])
assert_type(of_array.corr(v, v), Real)
assert_type(of_array.nlargest(v, 1), tuple[Any, Int64])
assert_type(of_array.cumsum(c), Chunked)
assert_type(of_array.cummax(v), NDArray[Any])
assert_type(of_array.rolling(5, on=v, closed="both").mean(c), Chunked)
assert_type(of_array.sessions(v, 5), NDArray[Any])
assert_type(of_array.rolling(5, on=v).quantile(c, q=0.5, interpolation="lower"), Chunked)
assert_type(of_array.runs(v), Int64)
assert_type(of_array.head(), Int64)
assert_type(of_array.agg(n="count"), dict[str, Any])
of_frame = roost.group_by(f, "a")
assert_type(of_frame.keys, pd.DataFrame)
assert_type(of_frame.agg(n="count"), pd.DataFrame)
assert_type(of_frame.size(), Series)
assert_type(of_frame.max("b"), Series)
assert_type(of_frame.max(v), NDArray[Any])
assert_type(of_frame["b"].median(), Series)
assert_type(of_frame["b"].shift(n=-1), Series)
assert_type(of_frame["b"].transform("sum"), Series)
assert_type(of_frame[["b"]].mean(), pd.DataFrame)
assert_type(of_frame[["b"]].head(1), pd.DataFrame)
assert_type(of_frame.tail(1), pd.DataFrame)
assert_type(of_frame.cumcount(), Series)
for _, rows in roost.group_by(pf, "a"):
    assert_type(rows, pl.DataFrame)
assert_type(roost.group_by(pf, "a")["b"].sum(), pl.Series)
assert_type(roost.group_by(t, "a")[["b"]].rank(), pa.Table)
assert_type(roost.group_by(t, "a").transform("sum", "b"), Chunked)
assert_type(roost.group_by(t, "a").corr("b", "b"), Chunked)
assert_type(roost.group_by(r, "a").agg(n="count"), pa.Table)
assert_type(roost.group_by(s).size(), Series)
assert_type(roost.group_by(s).sum(v), NDArray[Any])
assert_type(roost.group_by(s).cumcount(), Int64)
assert_type(roost.group_by(ps).agg(n="count"), dict[str, Any])

# Tables.
rows_of = roost.Index(x)
assert_type(rows_of.get_indexer(x), Int64)
assert_type(rows_of.get_indexer(x, index_dtype="int32"), Int32)
assert_type(rows_of.get_indexer(s), Ints)
assert_type(rows_of.get_indexer([1, 5]), NDArray[Any])
assert_type(rows_of.contains(x), Flags)
assert_type(rows_of.contains(keys=c), Chunked)
assert_type(roost.Set(s).keys(), Ints)
assert_type(roost.Set(pf).keys(), pl.DataFrame)
assert_type(roost.Set(pf).contains(f), Series)
assert_type(roost.Map(x, v).find(x), NDArray[Any])
assert_type(roost.Map(x, v).find(ps, missing=-1), pl.Series)
assert_type(roost.Map(x, v).find([1], -1.0), NDArray[Any])
assert_type(roost.Map({1: 2}).items(), tuple[NDArray[Any], NDArray[Any]])
assert_type(roost.Map(s).items(), tuple[Series, Series])
assert_type(roost.Map(f, v).items(), tuple[pd.DataFrame, Series])
assert_type(roost.Map(pf).items(), tuple[pl.Series, pl.Series])
assert_type(roost.Map(t, v).values(), Chunked)
several = roost.MultiMap(s, v)
assert_type(several.find(x), tuple[Int64, NDArray[Any]])
assert_type(several.find_pairs(ps), tuple[Int64, pl.Series])
assert_type(several.count(x), Int64)
assert_type(several[3], NDArray[Any])
assert_type(several.items(), tuple[Ints, Series])
seen: roost.ConcurrentMap[NDArray[Any]] = roost.ConcurrentMap("int64", "float64")
assert_type(seen.add(x), int)
assert_type(seen.keys(), NDArray[Any])
assert_type(roost.Store("int64", "float32").find(s), Series)

# Other modules.
alone = roost.distributed.Group(0, 1, lambda mine, every: np.copyto(every, mine), lambda out, into: None)
assert_type(roost.distributed.unique(x, group=alone), Int64)
assert_type(roost.distributed.join(x, x, group=alone), tuple[Int64, Int64])
assert_type(roost.distributed.Map(x, v, group=alone).find(s), NDArray[Any])
voxels = roost.sparse.CoordinateIndex(np.array([[0, 1, 2, 3], [0, 1, 2, 4]], np.int32))
assert_type(voxels.find(voxels.coordinates, index_dtype="int32"), Int32)
assert_type(voxels.coordinates, NDArray[Any])
assert_type(roost.sparse.kernel_map(voxels, 3).neighbours(), NDArray[Any])
corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
solid = roost.solids.voxelize((corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]), 16)
assert_type(solid.contains(corners), Flags)
assert_type(solid.mesh(), tuple[Real, NDArray[np.uint32]])
assert_type(solid.matrix, Flags)
shades = np.random.default_rng(0).integers(0, 255, (300, 300), np.uint8)
match = roost.match.Reference(shades).match(shades)
assert_type(match.to_query([[1, 2]]), Real)
ra, height = np.random.default_rng(1).uniform(-1, 1, (2, 3000))
dec = np.degrees(np.arcsin(height))
sky = roost.stars.Database(ra=180 * ra + 180, dec=dec, magnitude=abs(ra), fov=(10, 20))
assert_type(sky.ra, Real)
assert_type(sky.solve(np.zeros((0, 2)), (100, 100)), roost.stars.Solution)
assert_type(sky.solve([np.zeros((0, 2))], (100, 100)), list[roost.stars.Solution])
assert_type(sky.solve(np.zeros((0, 2)), (100, 100)).stars, Int64)
