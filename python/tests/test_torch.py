"""What is torch's alone: its types, on the CPU and on a GPU. Skipped where torch is not installed."""

import importlib.util

import pytest
import roost
from conftest import LIBRARIES

if not importlib.util.find_spec("torch"):
    pytest.skip("needs torch", allow_module_level=True)
import torch

DEVICES = [on.name for on in LIBRARIES if on.name.startswith("torch")]


@pytest.fixture(params=[name.partition("-")[2] or "cpu" for name in DEVICES])
def device(request):
    return request.param


def test_types_that_torch_hardly_has(device):
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        x = torch.tensor([3, 40000, 3, 0], device=device).to(dtype)
        values, counts = roost.unique(x, sorted=True, return_counts=True)
        assert values.dtype == dtype and values.tolist() == [0, 3, 40000] and counts.tolist() == [1, 2, 1]
        rows = torch.tensor([[3, 40000], [3, 7], [0, 9], [3, 7]], device=device).to(dtype)
        values, inverse = roost.unique(rows, sorted=True, return_inverse=True)
        assert values.dtype == dtype and values.tolist() == [[0, 9], [3, 7], [3, 40000]]
        assert inverse.tolist() == [2, 1, 0, 1]
    for x in (torch.sparse_coo_tensor([[0]], [1.0], (3,), device=device), torch.tensor([1j], device=device)):
        with pytest.raises(TypeError):
            roost.unique(x)
    with pytest.raises(ValueError, match="single number"):
        roost.Set(torch.tensor(5, device=device))
    assert roost.unique(torch.tensor(5, device=device)).tolist() == [5]


@pytest.mark.parametrize("numpy_has_it_too", [False, True])
def test_bfloat16(device, numpy_has_it_too):
    if numpy_has_it_too:
        pytest.importorskip("ml_dtypes")  # which jax imports
    x = torch.tensor([1.5, -0.0, 0.0, float("nan"), float("nan")], dtype=torch.bfloat16, device=device)
    with pytest.raises(TypeError, match="bfloat16"):
        roost.unique(x)
    keys = torch.arange(1000, device=device)
    for columns in (1, 3, 20):  # in the table, padded; beside it
        table = roost.Map(keys, torch.ones(1000, columns, dtype=torch.bfloat16, device=device))
        found = table.find(keys + 1, missing=0.5)
        assert found.dtype == torch.bfloat16
        assert found[-1].tolist() == [0.5] * columns and found[0].tolist() == [1.0] * columns
