"""differential.py for 60 seconds, and what it rests on."""

import datetime
import decimal
import os
import pathlib
import subprocess
import sys

import columns
import numpy as np
import pytest
import roost
from columns import Source, codes, exact_list, same_value
from differential import Run

SECONDS = float(os.environ.get("ROOST_DIFFERENTIAL_SECONDS", 15))


def test_whole_package():
    """Two processes, with the same steps each time unless one looks for more."""
    first = int.from_bytes(os.urandom(3)) if "ROOST_EXPLORE" in os.environ else 35
    command = [sys.executable, "-W", "ignore", "-m", "differential", "--seconds", str(SECONDS), "--seed"]
    paths = [str(pathlib.Path(path).resolve()) for path in (pathlib.Path(__file__).parent, *sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    runs = [
        subprocess.Popen([*command, str(first + i)], env=environment, stdout=subprocess.PIPE, text=True)
        for i in (0, 1)
    ]
    texts = [run.communicate(timeout=SECONDS + 200)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(texts)


@pytest.mark.parametrize("name", ["functions", "groups", "pairs", "tables", "changing", "voxels"])
def test_notices_wrong_answers(name, monkeypatch):
    """One wrong row among all, or one that is left out."""

    def spoil(owner, method):
        right = getattr(owner, method)

        def wrong(*arguments, **named):
            got = right(*arguments, **named)
            first = got[0] if isinstance(got, tuple) else got
            first[-1:] = first[:1] if len(first) > 1 else first
            return got

        monkeypatch.setattr(owner, method, wrong)

    for owner, method in (
        (roost, "unique"), (roost, "factorize"), (roost, "join"), (roost.GroupBy, "count"),
        (roost.Index, "get_indexer"), (roost.Map, "items"), (roost.Set, "keys"), (roost.MultiMap, "count"),
        (roost.ConcurrentMap, "items"), (roost.Store, "items"), (roost.sparse.CoordinateIndex, "find"),
    ):  # fmt: skip
        spoil(owner, method)
    run = Run(1, only=name, most=3000)
    run.run(20, failures=1)
    assert run.failures and f"--only {name}" in run.failures[0]


def test_steps_are_the_same_each_time():
    made = []
    for _ in range(2):
        rng = np.random.default_rng([3, 4])
        made.append(Source(rng, "i4")(columns.draw_codes(rng, 100)))
    assert np.array_equal(*made)


def test_sizes_lie_on_both_sides_of_each_threshold():
    rng = np.random.default_rng(0)
    sizes = {columns.draw_size(rng) for _ in range(60000)}
    near = [t for t in columns.THRESHOLDS if {t - 1, t, t + 1} <= sizes]
    assert {1024, 4096, 32768, 65536, 131072, 262144} <= set(columns.THRESHOLDS)
    assert len(near) > 0.9 * len(columns.THRESHOLDS)


def test_same_value():
    equal = [
        [5, 5.0, np.uint8(5), np.float16(5), decimal.Decimal(5), True + 4],
        [2**53 + 1, np.uint64(2**53 + 1)],
        [float("nan"), np.float32("nan")],
        [0.0, -0.0, 0],
        [0.1, np.float64(0.1)],
        [np.float32(0.1)],
        [np.datetime64("2024-05"), np.datetime64("2024-05-01T00"), datetime.date(2024, 5, 1)],
        [np.datetime64("2024-05-01T01", "ns"), datetime.datetime(2024, 5, 1, 1)],
        [np.timedelta64(1, "D"), datetime.timedelta(1)],
        ["1"], [b"1"], ["1\0"], ["\u00e9"], ["e\u0301"], [(1, 2), np.array([1.0, 2.0])], [(1, 2, 0)],
    ]  # fmt: skip
    for i, some in enumerate(equal):
        for j, others in enumerate(equal):
            assert all(same_value(a, b) == (i == j) for a in some for b in others), (some, others)


@pytest.mark.parametrize("type", ["i1", "u8", "f2", "f8", "M8[ns]", "S5", "V9", "rows i2 3", "text"])
def test_codes_agree_with_a_dict(type):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        column = Source(rng, type)(columns.draw_codes(rng, 50))
        seen = {}
        assert codes(column)[0].tolist() == [seen.setdefault(v, len(seen)) for v in exact_list(column)]
