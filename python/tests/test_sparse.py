"""roost.sparse against dicts and loops."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import roost.sparse
from roost.sparse import CoordinateIndex, KernelMap, kernel_map, sparse_conv


def voxels_of(axes, n=150, seed=0, low=-4, high=5):
    """Coordinates of two batches close together, each about twice."""
    rng = np.random.default_rng(seed)
    one = rng.integers(low, high, (n, axes + 1), dtype=np.int32)
    one[:, 0] = rng.integers(0, 2, n)
    return np.concatenate([one, one[::3]])


def rows_by_voxel(coordinates):
    return {tuple(voxel): row for row, voxel in enumerate(coordinates.tolist())}


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("order", ["block", "input"])
def test_index(on, axes, order):
    voxels = voxels_of(axes)
    index = CoordinateIndex(on(voxels), order=order)
    firsts = list(dict.fromkeys(map(tuple, voxels.tolist())))
    coordinates = on.back(index.coordinates)
    assert len(index) == len(firsts) and index.duplicates == len(voxels) - len(firsts) and index.valid()
    assert coordinates.dtype == np.int32 and sorted(map(tuple, coordinates.tolist())) == sorted(firsts)
    if order == "input":
        assert coordinates.tolist() == [list(voxel) for voxel in firsts]
    rows = on.back(index.rows_of_input())
    assert rows.dtype == np.int64 and np.array_equal(coordinates[rows], voxels)
    assert index.bounds == (tuple(voxels.min(0)), tuple(voxels.max(0))) and index.nbytes > 0

    asked = np.array(list(itertools.product([0, 1, 7], *[range(-6, 7, 2)] * axes)), np.int32)[1:]
    known = rows_by_voxel(coordinates)
    expected = np.array([known.get(tuple(voxel), -1) for voxel in asked.tolist()])
    for dtype in ("int64", "int32"):
        found = on.back(index.find(on(asked), index_dtype=dtype))
        assert found.dtype == dtype and np.array_equal(found, expected)
        assert np.array_equal(on.back(index.rows_of_input(index_dtype=dtype)), rows)
    assert np.array_equal(on.back(index.contains(on(asked))), expected >= 0)
    assert on.back(index.find([firsts[3]])).tolist() == [known[firsts[3]]]
    for same in (copy.deepcopy(index), *([pickle.loads(pickle.dumps(index))] if on.is_numpy else [])):
        assert np.array_equal(on.back(same.coordinates), coordinates) and same.order == order


def copies_of(map, on):
    """Checks that copies and pickles of a map are the same, also in how it refers to its indices."""
    for same in (copy.deepcopy(map), *([pickle.loads(pickle.dumps(map))] if on.is_numpy else [])):
        assert (same.inputs is same.outputs) == (map.inputs is map.outputs) and same.valid()
        for of in (KernelMap.neighbours, KernelMap.masks, lambda m: m.inputs.coordinates):
            assert np.array_equal(on.back(of(same)), on.back(of(map)))
        assert np.array_equal(on.back(same.outputs.coordinates), on.back(map.outputs.coordinates))


MAPS = [  # size, stride, dilation, padding, kind
    (3, None, 1, None, "submanifold"),
    (2, None, 3, None, "submanifold"),
    (5, None, 1, (1, 2), "submanifold"),
    (3, 2, 1, None, "convolution"),
    ((2, 3), (1, 3), (2, 1), 1, "convolution"),
    (2, None, 1, None, "pooling"),
    (3, 2, 1, 0, "generative"),
]


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("shape", MAPS, ids=str)
def test_kernel_map(on, axes, shape):
    size, stride, dilation, padding, kind = (
        (*each, *each[-1:] * 2)[:axes] if isinstance(each, tuple) else each for each in shape
    )
    index = CoordinateIndex(on(voxels_of(axes)))
    map = kernel_map(index, size, stride, dilation, padding, kind, pairs=True)
    size, dilation = np.broadcast_to(size, axes), np.broadcast_to(dilation, axes)
    stride = np.broadcast_to(stride or (size if kind == "pooling" else 1), axes)
    same = 0 if kind == "pooling" else dilation * (size - 1) // 2
    padding = np.broadcast_to(same if padding is None else padding, axes)

    inputs, made = on.back(index.coordinates), on.back(map.outputs.coordinates)
    offsets = [np.array(k) for k in np.ndindex(*size)]
    assert map.size == tuple(size) and map.volume == len(offsets) and map.inputs is index and map.valid()
    copies_of(map, on)
    copies_of(map.transposed(), on)

    # Who reads whom, from the rule alone: the input i = o * stride - padding + k * dilation, or turned round.
    reached = {}
    for row, voxel in enumerate(inputs):
        for k, offset in enumerate(offsets):
            if kind == "generative":
                other = voxel[1:] * stride - padding + offset * dilation
            else:
                at = voxel[1:] + padding - offset * dilation
                if (at % stride).any():
                    continue
                other = at // stride
            reached[(int(voxel[0]), *other.tolist()), k] = row
    outputs = rows_by_voxel(made)
    if kind == "submanifold":
        assert map.outputs is index
    else:
        assert set(outputs) == {voxel for voxel, _ in reached}
    expected = np.full((len(offsets), len(made)), -1)
    back = np.full((len(offsets), len(inputs)), -1)
    for (voxel, k), row in reached.items():
        if voxel in outputs:
            expected[k, outputs[voxel]] = row
            back[k, row] = outputs[voxel]
    for map, expected, by in ((map, expected, 1), (map.transposed(), back, 0)):
        neighbours, masks = on.back(map.neighbours()), on.back(map.masks())
        assert neighbours.dtype == masks.dtype == np.int32 and np.array_equal(neighbours, expected)
        bits = [masks.view(np.uint32)[:, k // 32] >> k % 32 & 1 for k in range(map.volume)]
        assert np.array_equal(np.array(bits), expected >= 0)
        assert len(map.outputs) == expected.shape[1]
        sources, targets, begins = (on.back(each) for each in map.pairs())
        assert sources.dtype == targets.dtype == np.int32 and begins.dtype == np.int64
        offsets, rows = np.nonzero(expected >= 0)
        assert np.array_equal(begins, np.searchsorted(offsets, np.arange(map.volume + 1)))
        found = np.lexsort((targets, np.repeat(np.arange(map.volume), np.diff(begins))))
        assert np.array_equal(targets[found], rows)
        assert np.array_equal(sources[found], expected[offsets, rows])
        ordered = (sources, targets)[by]
        assert all((np.diff(ordered[a:b]) > 0).all() for a, b in zip(begins, begins[1:]))


def test_outputs_that_are_there(on):
    fine = CoordinateIndex(on(voxels_of(3)))
    coarse = kernel_map(fine, 2, kind="pooling").outputs
    map = kernel_map(fine, 2, 2, kind="convolution", outputs=coarse)
    assert map.outputs is coarse
    same = kernel_map(fine, 2, kind="pooling")
    assert np.array_equal(on.back(map.neighbours()), on.back(same.neighbours()))
    copies_of(map, on)
    copies_of(kernel_map(fine, 2, kind="convolution", outputs=fine), on)
    with pytest.raises(ValueError, match="no input"):
        coarse.rows_of_input()
    del map, fine
    assert coarse.valid()  # though its map is no longer referred to


def test_outputs_that_are_none(on):
    odd = CoordinateIndex(on(np.array([[0, 1, 1], [0, 3, 5]], np.int32)))
    map = kernel_map(odd, 1, 2, kind="convolution")
    assert len(map.outputs) == 0 and map.outputs is not odd and len(map.transposed().inputs) == 0
    none = CoordinateIndex(on(np.zeros((0, 3), np.int32)))
    map = kernel_map(odd, 3, 2, kind="convolution", outputs=none, pairs=True)
    assert map.outputs is none and on.back(map.neighbours()).shape == (9, 0) and len(map.pairs()[0]) == 0
    assert on.back(sparse_conv(map, on(np.ones((2, 3))), on(np.ones((9, 3, 4))))).shape == (0, 4)


def convolved(neighbours, features, weights, bias):
    weights = weights.reshape(-1, *weights.shape[-2:])
    result = np.zeros((neighbours.shape[1], weights.shape[-1])) + bias
    for rows, weight in zip(neighbours, weights):
        result[rows >= 0] += features[rows[rows >= 0]].astype(np.float64) @ weight
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("axes", [2, 3, 4])
def test_sparse_conv(on, axes, dtype):
    rng = np.random.default_rng(1)
    index = CoordinateIndex(on(voxels_of(axes)))
    for map in (kernel_map(index), kernel_map(index, 2, 2, kind="convolution").transposed()):
        features = rng.integers(-8, 9, (len(map.inputs), 5)).astype(dtype)
        weights = rng.integers(-8, 9, (*map.size, 5, 7)).astype(dtype)
        bias = rng.integers(-8, 9, 7).astype(dtype)
        if dtype == np.float16 and not on.gpu:
            with pytest.raises(TypeError, match="float16 on the CPU; give float32 or float64"):
                sparse_conv(map, on(features), on(weights))
            continue
        expected = convolved(on.back(map.neighbours()), features, weights, bias).astype(dtype)
        got = on.back(sparse_conv(map, on(features), on(weights), on(bias)))
        assert got.dtype == dtype and np.array_equal(got, expected)
        flat = sparse_conv(map, on(features), on(weights.reshape(-1, 5, 7)))
        assert np.array_equal(on.back(flat), expected - bias)


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("n", [0, 1])
def test_no_voxels_and_one(on, axes, n):
    index = CoordinateIndex(on(np.full((n, axes + 1), -7, np.int32)))
    assert len(index) == n and index.valid() and repr(index)
    assert index.bounds == (((-7,) * (axes + 1),) * 2 if n else None)
    assert on.back(index.contains(on(np.full((2, axes + 1), -7, np.int32)))).tolist() == [n == 1] * 2
    for kind in ("submanifold", "convolution", "pooling", "generative"):
        map = kernel_map(index, 2, kind=kind, pairs=True)
        for map in (map, map.transposed()):
            weights = on(np.ones((map.volume, 2, 3)))
            result = on.back(sparse_conv(map, on(np.ones((len(map.inputs), 2))), weights))
            sources, targets, begins = map.pairs()
            there = (on.back(map.neighbours()) >= 0).sum()
            assert len(sources) == len(targets) == on.back(begins)[-1] == there
            assert result.shape == (len(map.outputs), 3) and np.isin(result, [2, 2 * map.volume]).all()


INDEX = CoordinateIndex(voxels_of(3))
MAP = kernel_map(INDEX)
ONES = np.ones((len(INDEX), 2), np.float32)
WEIGHTS = np.ones((27, 2, 3), np.float32)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: CoordinateIndex(np.zeros((5, 2), np.int32)), ValueError, "n x 3, n x 4, n x 5"),
        (lambda: CoordinateIndex(np.zeros(4, np.int32)), ValueError, "n x 3, n x 4, n x 5"),
        (lambda: CoordinateIndex(np.zeros((5, 4))), TypeError, "float64; convert them to int32"),
        (lambda: CoordinateIndex(np.zeros((5, 4), np.int64)), TypeError, "int64; convert them to int32"),
        (lambda: CoordinateIndex([[0, 2**31, 0]]), OverflowError, "int32"),
        (lambda: CoordinateIndex(voxels_of(2), order="morton"), ValueError, "'block' or 'input'"),
        (
            lambda: CoordinateIndex(np.array([[-(2**31)] * 4, [2**31 - 1] * 4], np.int32)),
            ValueError,
            "box",
        ),
        (lambda: INDEX.find(np.zeros((5, 3), np.int32)), ValueError, "give n x 4"),
        (lambda: kernel_map(np.zeros((5, 3))), TypeError, "CoordinateIndex"),
        (lambda: kernel_map(INDEX, 6), ValueError, "size 6"),
        (lambda: kernel_map(INDEX, (3, 3)), ValueError, "each of 3 axes"),
        (lambda: kernel_map(INDEX, 2.5), TypeError, "whole number"),
        (lambda: kernel_map(INDEX, 3, -1), ValueError, "stride=-1"),
        (lambda: kernel_map(INDEX, 3, 2), ValueError, "stride of 2"),
        (lambda: kernel_map(INDEX, kind="dense"), ValueError, "submanifold, convolution"),
        (lambda: MAP.pairs(), ValueError, "give pairs=True"),
        (lambda: kernel_map(INDEX, outputs=INDEX), ValueError, "only 'convolution'"),
        (lambda: sparse_conv(INDEX, ONES, WEIGHTS), TypeError, "KernelMap"),
        (lambda: sparse_conv(MAP, ONES[1:], WEIGHTS), ValueError, f"the map has {len(INDEX)} rows"),
        (lambda: sparse_conv(MAP, ONES, WEIGHTS[1:]), ValueError, "27 x in x out"),
        (lambda: sparse_conv(MAP, ONES[:, :1], WEIGHTS), ValueError, "1 channels, but weights for 2"),
        (lambda: sparse_conv(MAP, ONES[:, :0], WEIGHTS[:, :0]), ValueError, "0 channels"),
        (lambda: sparse_conv(MAP, ONES, WEIGHTS.astype(np.float64)), TypeError, "convert one"),
        (lambda: sparse_conv(MAP, ONES.astype(int), WEIGHTS), TypeError, "int64; give float32 or float64"),
        (lambda: sparse_conv(MAP, ONES, WEIGHTS, ONES), ValueError, "give 3 numbers of type float32"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).count("\n") == 0 and str(caught.value).startswith("roost")


def test_other_devices_are_refused(on):
    if not on.gpu:
        pytest.skip("needs a GPU")
    with pytest.raises(ValueError, match="but the index is of"):
        INDEX.find(on(voxels_of(3)))
    with pytest.raises(ValueError, match="but the map is on"):
        sparse_conv(MAP, on(ONES), on(WEIGHTS))


def test_nan_reaches_its_neighbourhood_only(on):
    features = ONES.astype(np.float64)
    features[7] = np.nan
    index = CoordinateIndex(on(voxels_of(3)))
    map = kernel_map(index)
    result = on.back(sparse_conv(map, on(features), on(WEIGHTS.astype(np.float64))))
    assert np.array_equal(np.isnan(result).any(1), (on.back(map.neighbours()) == 7).any(0))
