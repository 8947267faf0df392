"""roost.gather against indexing."""

import numpy as np
import pytest

import roost

torch = pytest.importorskip("torch")
CUDA = ["cuda"] if torch.cuda.is_available() else []
SIZES = [0, 1, 33, 1000, 2**15 - 1, 2**15, 100_000]


def test_numpy_and_torch_on_the_cpu():
    random = np.random.default_rng(1)
    for tail in [(), (1,), (7,), (2, 3), (0,)]:
        for dtype in ["float32", "int8", "complex128", "M8[s]", "S5"]:
            rows = random.integers(0, 100, (50, *tail)).astype("int64").astype(dtype)
            for ids in [random.integers(0, 50, n) for n in (0, 1, 40)] + [np.array(3), np.array([[1], [0]])]:
                got = roost.gather(rows, ids)
                assert got.shape == ids.shape + tail and got.dtype == rows.dtype
                assert (got == rows[ids]).all()
                if dtype == "float32":
                    other = roost.gather(torch.from_numpy(rows), torch.from_numpy(np.array(ids, "int32")))
                    assert (other.numpy() == got).all()


@pytest.fixture(scope="module")
def pinned():
    """More than from where rows are read in the order of pages."""
    return torch.randint(256, (2**30 + 4096,), dtype=torch.uint8).pin_memory()


@pytest.mark.parametrize("device", CUDA)
@pytest.mark.parametrize("width", [1, 3, 32, 64, 400])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_a_gpu_reads_rows_of_the_host(device, pinned, width, dtype):
    row_bytes = width * dtype.itemsize
    n = len(pinned) // row_bytes
    rows = pinned[: n * row_bytes].view(dtype).view(n, width)
    for m in SIZES:
        ids = torch.randint(n, (m,), device=device)
        for source in [rows, rows[:1000].to(device)]:
            wanted = ids % len(source)
            got = roost.gather(source, wanted)
            assert got.device.type == "cuda" and got.dtype == dtype and got.shape == (m, width)
            expected = source[wanted.to(source.device)].cpu()
            assert torch.equal(got.cpu().view(torch.uint8), expected.view(torch.uint8)), m
    with pytest.raises(ValueError, match="pin"):
        roost.gather(torch.empty(4, 4), ids)  # which has no such rows either, and the device goes on
    with pytest.raises(ValueError, match="contiguous"):
        roost.gather(rows[::2], ids[:0])


@pytest.mark.parametrize("device", CUDA)
def test_cupy_reads_rows_of_the_host(device):
    cupy = pytest.importorskip("cupy")
    memory = cupy.cuda.alloc_pinned_memory(1000 * 12)
    rows = np.frombuffer(memory, np.float32, 3000).reshape(1000, 3)
    rows[:] = np.arange(3000).reshape(1000, 3)
    ids = np.random.default_rng(2).integers(0, 1000, (40, 5))
    for source in (rows, cupy.asarray(rows)):
        assert (roost.gather(source, cupy.asarray(ids)).get() == rows[ids]).all()
    with pytest.raises(IndexError):
        roost.gather(rows, cupy.array([1000]))
    with pytest.raises(ValueError, match="pin"):
        roost.gather(np.zeros((4, 4)), cupy.array([1]))


def test_lists_and_other_byte_orders():
    rows = np.arange(12).reshape(4, 3)
    assert (roost.gather(rows, [3, 0]) == rows[[3, 0]]).all()
    assert roost.gather(rows, []).shape == (0, 3)
    assert (roost.gather(rows, np.array([3, 0], ">i8")) == rows[[3, 0]]).all()
    tensor = torch.from_numpy(rows)
    assert torch.equal(roost.gather(tensor, [3, 0]), tensor[[3, 0]])
    assert roost.gather(tensor, []).shape == (0, 3)


def test_wrong_arguments_are_refused():
    rows = np.zeros((4, 2))
    for ids in ([-1], [4], [2**40]):
        with pytest.raises(IndexError, match="4"):
            roost.gather(rows, np.array(ids))
        with pytest.raises(IndexError, match="4"):
            roost.gather(torch.zeros(4, 2), torch.tensor(ids))
    for ids in (np.array([1.0]), np.array([True]), np.array([1], "u8"), np.array(["a"])):
        with pytest.raises(TypeError):
            roost.gather(rows, ids)
    for wrong in ([[1, 2]], "abc", None, np.array(3.0)):
        with pytest.raises(TypeError):
            roost.gather(wrong, np.array([0]))
    with pytest.raises(TypeError, match="masked"):
        roost.gather(np.ma.array([1, 2], mask=[0, 1]), np.array([0]))
    with pytest.raises(TypeError, match="sparse"):
        roost.gather(torch.eye(3).to_sparse(), torch.tensor([1]))
    with pytest.raises(TypeError):
        roost.gather(rows, torch.tensor([1]))
    with pytest.raises(TypeError):
        roost.gather(torch.zeros(3, 2), np.array([1]))
