"""Memory, threads, signals, forks and the import."""

import doctest
import importlib.util
import os
import pathlib
import subprocess
import sys
import threading
import time
import tomllib

import numpy as np
import pytest
import roost
import roost.distributed
import roost.sparse


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(tmp_path):
    x, rows, texts = np.arange(100) % 7, np.ones((100, 20), "f4"), np.array(["a", "bc", "a"])
    counts, store = roost.ConcurrentMap(), roost.Store("int64", "float32", 20)
    store.insert(x, rows)
    store.save(tmp_path / "file")

    def calls(n):
        for i in range(n // 20):
            roost.unique(x, return_inverse=True, return_counts=True)
            roost.Map(x, x).find(x)
            roost.Map(x, rows).items()
            roost.MultiMap(x, x).find(x)
            roost.group_by(x).sum(x)
            roost.join(x, x[:9])
            roost.factorize(texts)
            roost.Index(texts).get_indexer(texts)
            counts.add(x + i)
            counts.erase(x + i)
            roost.Store("int64", "float32", 20).insert(x, rows)
            store.insert_or_assign(x, rows)
            store.find(x), store.items()
            if i % 10 == 0:
                roost.Store.load(tmp_path / "file", "int64", "float32", 20)
            with pytest.raises(TypeError):
                roost.isin(x, x.astype("f8"))
            with pytest.raises(OSError):
                roost.Store.load(tmp_path)
            with pytest.raises(KeyError):
                store[77]

    n = int(os.environ.get("ROOST_TEST_CALLS", 6000))
    calls(min(n, 3000))
    before, counts_before = resident(), [sys.getrefcount(a) for a in (x, rows, texts)]
    calls(n)
    assert resident() - before < 4 << 20
    assert [sys.getrefcount(a) for a in (x, rows, texts)] == counts_before


def test_arguments_are_given_back():
    x = np.arange(10)
    result = roost.unique(x)
    counts = sys.getrefcount(x)
    table = roost.Set(x)
    del table, result
    assert sys.getrefcount(x) == counts


def test_results_outlive_their_table():
    keys = roost.Set(np.arange(1000)).keys()
    roost.trim()
    assert np.array_equal(np.sort(keys), np.arange(1000))


def test_many_threads_ask_one_map():
    x = np.arange(100_000)
    table = roost.Map(x, x * 2)
    wrong = []

    def ask():
        for _ in range(20):
            if not np.array_equal(table.find(x), x * 2):
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run(code, **kwargs):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **kwargs)


def test_works_after_fork():
    done = run("""
import os, numpy as np, roost
x = np.arange(3_000_000) % 1000
roost.unique(x)
child = os.fork()
if child == 0:
    os._exit(0 if len(roost.unique(x)) == 1000 else 1)
assert os.waitpid(child, 0)[1] == 0
print(len(roost.unique(x)))
""")
    assert done.stdout == "1000\n", done.stderr


def test_ctrl_c_ends_a_long_call():
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            """
import signal
import numpy as np, roost
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = np.arange(30_000_000)
print("begins", flush=True)
while True:
    roost.unique(x, return_inverse=True)
""",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.5)
        child.send_signal(2)
        _, errors = child.communicate(timeout=30)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in errors and child.returncode != 0


def test_import_is_light():
    # Of the processor, so that what else runs here does not count.
    timed = "import numpy, time; t = time.process_time(); import roost; print(time.process_time() - t)"
    assert min(float(run(timed).stdout) for _ in range(3)) < 0.15
    done = run("import sys, roost; print(sorted({'torch', 'pandas', 'jax', 'pyarrow'} & set(sys.modules)))")
    assert done.stdout == "[]\n"


def test_there_is_one_version():
    root = pathlib.Path(__file__).parents[2]
    with open(root / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == roost.__version__
    assert f"project(roost VERSION {roost.__version__} " in (root / "CMakeLists.txt").read_text()


def test_info_and_docstrings():
    info = roost.info()
    assert info["version"] == roost.__version__ and info["threads"] >= 1
    for name in roost.__all__:
        entry = getattr(roost, name)
        assert entry.__doc__, name
        for member, value in vars(entry).items() if isinstance(entry, type) else ():
            if callable(value) and not member.startswith("_"):
                assert value.__doc__, f"{name}.{member}"


@pytest.mark.parametrize("threads", [1, 2, 0])
def test_set_threads(threads):
    roost.set_threads(threads)
    try:
        assert roost.info()["threads"] >= 1
        assert len(roost.unique(np.arange(100_000) % 77)) == 77
    finally:
        roost.set_threads(0)
    with pytest.raises(ValueError, match="threads=-1"):
        roost.set_threads(-1)
    with pytest.raises(TypeError, match="whole number"):
        roost.set_threads("2")


@pytest.mark.parametrize("module", [roost, roost._functions, roost._tables, roost.sparse, roost.distributed])
def test_examples_in_docstrings(module):
    failed, tried = doctest.testmod(module)
    assert tried and not failed


EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))
# The others work without what is not installed.
NEEDS = dict.fromkeys(["coming_from_spconv.py", "distributed.py", "embedding.py", "unet.py"], "torch")
NEEDS["parquet.py"] = "dask"
SMALLER = {"unet.py": ["--steps", "12"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples(example, tmp_path):
    if example.name in NEEDS and not importlib.util.find_spec(NEEDS[example.name]):
        pytest.skip(f"needs {NEEDS[example.name]}")
    plot = "--plot" in example.read_text() and importlib.util.find_spec("matplotlib")
    done = subprocess.run(
        [
            *(sys.executable, str(example), *SMALLER.get(example.name, [])),
            *(["--plot", "picture.png"] if plot else []),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert not plot or (tmp_path / "picture.png").stat().st_size > 5000


def test_bench_compares_answers():
    done = subprocess.run(
        [sys.executable, "-m", "roost.bench", "--rows", "20000", "--repeats", "1"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| sum by key | roost |" in done.stdout
