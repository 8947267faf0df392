"""roost.jax: calls that compiled programs of JAX make. Skipped where JAX is not installed, or was not when
roost was built."""

import importlib.util

import numpy as np
import pytest
import roost
from roost import _host

if not importlib.util.find_spec("jax") or not hasattr(_host, "xla_calls"):
    pytest.skip("needs jax, also where roost is built", allow_module_level=True)
import jax
import jax.numpy as jnp
import roost.jax as rj

TYPES = "float32", "float16", "bfloat16", "int32", "float64", "int64"


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def wide(request):
    with jax.enable_x64(request.param):
        yield request.param


def ordered_sum(rows):
    """The rule of docs/torch.md."""
    while len(rows) > 1:
        pieces = []
        for first in range(0, len(rows), 32):
            total = rows[first]
            for row in rows[first + 1 : first + 32]:
                total = total + row
            pieces.append(total)
        rows = pieces
    return rows[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n, width", [(0, 3, 2), (1, 1, 1), (300, 7, 1), (5000, 40, 3), (50, 900, 4)])
def test_rows_are_added_by_the_rule(wide, dtype, m, n, width):
    if "64" in dtype and not wide:
        dtype = dtype.replace("64", "32")
    random = np.random.default_rng(m)
    ids = random.integers(-1, n + 1, m).astype(np.int64 if wide else np.int32)
    source = jnp.asarray(random.normal(0, 100, (m, width))).astype(dtype)
    start = jnp.asarray(random.normal(0, 100, (n, width))).astype(dtype)
    sums = np.asarray(start.astype(jnp.float32) if "16" in dtype else start).copy()
    rows = np.asarray(source.astype(jnp.float32) if "16" in dtype else source)
    for k in range(n):
        if (ids == k).any():
            sums[k] += ordered_sum(list(rows[ids == k]))
    expected = np.asarray(jnp.asarray(sums).astype(dtype))
    for call in (rj.index_add, jax.jit(rj.index_add)):
        got = call(start, ids, source)
        assert got.dtype == start.dtype and np.array_equal(np.asarray(got), expected)
    sums = jax.jit(rj.segment_sum, static_argnums=2)(source, jnp.asarray(ids), n)
    assert np.array_equal(np.asarray(sums), np.asarray(rj.index_add(jnp.zeros_like(start), ids, source)))


def test_gradients_and_maps():
    ids = jnp.array([2, 0, 2, -1, 3])
    start, source = jnp.ones((3, 2)), jnp.arange(10.0).reshape(5, 2)

    def loss(add):
        return lambda a, b: (add(a, b) ** 2).sum()

    def theirs(a, b):
        return a.at[ids].add(b, mode="drop", wrap_negative_indices=False)

    for ours, expected in zip(
        jax.grad(loss(lambda a, b: rj.index_add(a, ids, b)), (0, 1))(start, source),
        jax.grad(loss(theirs), (0, 1))(start, source),
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
    many = jnp.stack([source, 2 * source])
    got = jax.vmap(lambda b: rj.index_add(start, ids, b))(many)
    np.testing.assert_allclose(got, jnp.stack([theirs(start, b) for b in many]))


@pytest.mark.parametrize("by_key", [False, True])
def test_unique(wide, by_key):
    random = np.random.default_rng(3)
    for n, different in ((0, 1), (1, 1), (3000, 50), (3000, 10**9)):
        x = random.integers(-different, different, n).astype(np.int64 if wide else np.int32)
        keys, first, inverse, counts = np.unique(x, True, True, True)
        if not by_key:
            order = np.argsort(first)
            keys, counts, inverse = keys[order], counts[order], np.argsort(order)[inverse]
        for size in {len(keys), len(keys) + 3, max(len(keys) - 1, 0)}:
            call = jax.jit(lambda x: rj.unique(x, size, fill_value=-7, sorted=by_key))  # noqa: B023
            got = [np.asarray(part) for part in call(x)]
            filled = min(size, len(keys))
            assert got[0].dtype == x.dtype and got[3] == len(keys)
            assert np.array_equal(got[0][:filled], keys[:filled]) and (got[0][filled:] == -7).all()
            assert np.array_equal(got[1], inverse)
            assert np.array_equal(got[2][:filled], counts[:filled]) and (got[2][filled:] == 0).all()


def test_errors():
    ids, rows = jnp.array([0, 1]), jnp.ones((2, 3))
    for given, error in (
        ((rows, ids.astype(jnp.float32), rows), TypeError),
        ((rows, ids[:1], rows), ValueError),
        ((rows, ids, rows[:, :2]), ValueError),
        ((rows, ids, rows.astype(jnp.float16)), TypeError),
        ((rows.astype(bool), ids, rows.astype(bool)), TypeError),
    ):
        with pytest.raises(error, match=r"roost.jax.index_add\(\)"):
            rj.index_add(*given)
    with pytest.raises(ValueError, match=r"roost.jax.unique\(\)"):
        rj.unique(ids, 3, fill_value=2**31)
    assert roost.__version__
