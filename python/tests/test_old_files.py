"""Files and pickles of earlier versions, which this one reads.

ROOST_WRITE_TEST_FILES=1 writes those of this version.
"""

import os
import pathlib
import pickle

import numpy as np
import pytest
import roost.sparse

FILES = pathlib.Path(__file__).parents[2] / "tests" / "files"
VERSIONS = ["0.2.0"]
KEYS = np.arange(200, dtype="int64") ** 3 - 10**6
TIMES = KEYS.astype("M8[us]")
TEXTS = [f"key {k}" for k in KEYS]
VOXELS = np.stack([KEYS % 2, KEYS // 9, -KEYS // 7], 1).astype("int32")
VALUES = KEYS * 0.5


def tables():
    """One of each kind that pickles, with its keys."""
    changing = roost.ConcurrentMap("int64", "float64", capacity=400)
    changing.insert(KEYS, VALUES)
    return {
        "Map": (roost.Map(KEYS, VALUES), KEYS),
        "Map of texts": (roost.Map(TEXTS, VALUES), TEXTS),
        "Map of times": (roost.Map(TIMES, VALUES), TIMES),
        "Map of columns": (roost.Map((KEYS, TEXTS), VALUES), (KEYS, TEXTS)),
        "Set": (roost.Set(KEYS.astype("float32")), KEYS.astype("float32")),
        "MultiMap": (roost.MultiMap(np.repeat(KEYS, 2), np.repeat(VALUES, 2)), KEYS),
        "Index": (roost.Index(KEYS), KEYS),
        "Index of texts": (roost.Index(TEXTS), TEXTS),
        "ConcurrentMap": (changing, KEYS),
        "CoordinateIndex": (roost.sparse.CoordinateIndex(VOXELS, order="input"), VOXELS),
    }


def store():
    table = roost.Store("int64", "float32", 3)
    table.insert(KEYS, np.stack([VALUES, VALUES, VALUES], 1).astype("float32"))
    return table


if os.environ.get("ROOST_WRITE_TEST_FILES"):
    here = FILES / roost.__version__
    (here / "tables.pickle").write_bytes(pickle.dumps(tables(), protocol=4))
    store().save(here / "table.store")


@pytest.mark.parametrize("version", VERSIONS)
def test_pickles(version):
    old = pickle.loads((FILES / version / "tables.pickle").read_bytes())
    assert old.keys() == tables().keys()
    for name, (table, keys) in old.items():
        kind = name.split()[0]
        assert type(table).__name__ == kind and len(table) in (200, 400)
        if kind in ("Map", "ConcurrentMap"):
            assert np.array_equal(table.find(keys), VALUES), name
        elif kind == "Set":
            assert table.contains(keys).all(), name
        elif kind == "MultiMap":
            assert (table.count(keys) == 2).all(), name
        else:
            find = table.get_indexer if kind == "Index" else table.find
            assert np.array_equal(find(keys), np.arange(200)), name


@pytest.mark.parametrize("version", VERSIONS)
def test_stores(version):
    table = roost.Store.load(FILES / version / "table.store", "int64", "float32", 3)
    assert len(table) == 200 and np.array_equal(table.find(KEYS)[:, 1], VALUES.astype("float32"))


def snapshot(torch):
    """A table of rows that are learned, its rows, and what they are after another step."""
    ids = torch.from_numpy(KEYS)
    table = roost.torch.Table(4, 512, optimizer="adagrad", lr=0.5, seed=3, device="cpu")
    table(ids).sum().backward()
    saved = {"state": table.state_dict(), "rows": table.find(ids)[0]}
    saved["state"] = {name: part.clone() for name, part in saved["state"].items()}
    table(ids).square().sum().backward()
    return saved | {"after": table.find(ids)[0]}


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshots(version):
    torch = pytest.importorskip("torch")
    import roost.torch

    file, ids = FILES / version / "table.pt", torch.from_numpy(KEYS)
    if os.environ.get("ROOST_WRITE_TEST_FILES"):
        torch.save(snapshot(torch), file)
    saved = torch.load(file, weights_only=True)
    table = roost.torch.Table(4, 512, optimizer="adagrad", lr=0.5, seed=3, device="cpu")
    table.load_state_dict(saved["state"])
    assert torch.equal(table.find(ids)[0], saved["rows"])
    table(ids).square().sum().backward()
    assert torch.equal(table.find(ids)[0], saved["after"])
