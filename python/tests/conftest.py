import importlib.util
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

os.environ.setdefault(
    "XLA_PYTHON_CLIENT_PREALLOCATE", "false"
)  # or jax leaves nothing of a GPU to the others

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

settings.register_profile(
    "roost",
    derandomize="ROOST_EXPLORE" not in os.environ,  # the same examples each time, unless one looks for more
    max_examples=int(os.environ.get("ROOST_TEST_EXAMPLES", 60)),
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


class On:
    """A library and a device: turns arrays of numpy into its own, and back."""

    def __init__(self, name):
        self.name = name
        self.gpu = name == "cupy" or name.endswith("cuda")
        self.is_numpy = name == "numpy"

    def __call__(self, array):
        return _MAKERS[self.name](array)

    def back(self, result):
        """Results as numpy's: of the same library and device as the arguments were."""
        if isinstance(result, tuple):
            return tuple(self.back(r) for r in result)
        return _READERS[self.name](result)

    def __str__(self):
        return self.name


def _torch(device):
    def make(array):
        array = torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))))
        return array.to(device)

    def read(result):
        assert isinstance(result, torch.Tensor) and result.device.type == device
        return result.cpu().numpy()

    return make, read


def _jax(platform):
    device = jax.devices(platform)[0]

    def read(result):
        assert isinstance(result, jax.Array) and result.devices() == {device}
        return np.asarray(result)

    return (lambda array: jax.device_put(array, device)), read


def _numpy_read(result):
    assert isinstance(result, np.ndarray)
    return result


_MAKERS, _READERS = {"numpy": lambda array: array}, {"numpy": _numpy_read}
# ROOST_TEST_ON: which of them, by default all that are there.
_wanted = os.environ.get("ROOST_TEST_ON", "numpy,torch,jax,torch-cuda,cupy,jax-cuda").split(",")
if {"torch", "torch-cuda"} & set(_wanted) and importlib.util.find_spec("torch"):
    import torch

    _MAKERS["torch"], _READERS["torch"] = _torch("cpu")
    if torch.cuda.is_available():
        _MAKERS["torch-cuda"], _READERS["torch-cuda"] = _torch("cuda")
if {"jax", "jax-cuda"} & set(_wanted) and importlib.util.find_spec("jax"):
    import jax

    jax.config.update("jax_enable_x64", True)
    _MAKERS["jax"], _READERS["jax"] = _jax("cpu")
    if jax.default_backend() == "gpu":
        _MAKERS["jax-cuda"], _READERS["jax-cuda"] = _jax("gpu")
if "cupy" in _wanted and importlib.util.find_spec("cupy"):
    import cupy

    if cupy.cuda.is_available():

        def _cupy_read(result):
            assert isinstance(result, cupy.ndarray)
            return cupy.asnumpy(result)

        _MAKERS["cupy"], _READERS["cupy"] = cupy.asarray, _cupy_read

LIBRARIES = [On(name) for name in _wanted if name in _MAKERS]


@pytest.fixture(scope="session", params=LIBRARIES, ids=str)
def on(request):
    """A library that is installed, on a device that is there."""
    return request.param
