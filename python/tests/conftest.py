import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

settings.register_profile(
    "roost",
    derandomize="ROOST_EXPLORE" not in os.environ,  # the same examples each time, unless one looks for more
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("roost")

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
NUMBERS = [*INTEGERS, "?", "f2", "f4", "f8"]


@st.composite
def keys(draw, dtypes=NUMBERS, min_size=0, max_size=400):
    """Arrays of keys: few and many distinct ones, edges of their type, in any order."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    n = draw(st.integers(min_size, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(dtype)
    if dtype.kind == "f":
        pool = np.concatenate(
            [rng.normal(size=draw(st.integers(1, 50))), [0.0, -0.0, np.inf, -np.inf, np.nan]]
        )
        return rng.choice(pool, n).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = draw(st.sampled_from([(0, 1), (0, 20), (limits.min, limits.max)]))
    pool = rng.integers(low, high, 300, dtype=dtype, endpoint=True)
    return rng.choice(np.append(pool, np.array([limits.min, limits.max, 0], dtype)), n)


@pytest.fixture(params=["numpy", "torch", "jax"])
def library(request):
    """Turns numpy arrays into ones of a library, if it is installed."""
    if request.param == "numpy":
        return lambda array: array
    module = pytest.importorskip(request.param)
    return module.from_numpy if request.param == "torch" else module.numpy.asarray
