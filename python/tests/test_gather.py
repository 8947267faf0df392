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


@pytest.mark.parametrize("device", CUDA)
@pytest.mark.parametrize("width", [1, 3, 32, 64, 400])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_a_gpu_reads_rows_of_the_host(device, width, dtype):
    n = 2**30 // width // torch.empty(0, dtype=dtype).element_size() + 1 if width > 3 else 1000
    rows = torch.empty(n, width, dtype=dtype, pin_memory=True)
    rows[:] = torch.arange(width).to(dtype)
    rows[:, 0] = (torch.arange(n) % 251).to(dtype)
    for m in SIZES:
        ids = torch.randint(n, (m,), device=device)
        expected = rows[ids.cpu()]
        for source in [rows, rows[:1000].to(device)]:
            wanted = ids % 1000 if source is not rows else ids
            got = roost.gather(source, wanted)
            assert got.device.type == "cuda" and got.dtype == dtype
            assert torch.equal(got.cpu(), expected if source is rows else source[wanted].cpu()), m
    with pytest.raises(ValueError, match="pin"):
        roost.gather(torch.empty(4, 4), ids)


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
    with pytest.raises(TypeError):
        roost.gather(rows, torch.tensor([1]))
    with pytest.raises(TypeError):
        roost.gather(torch.zeros(3, 2), np.array([1]))
