"""Memory, threads, signals, forks and the import."""

import doctest
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import tomllib

import numpy as np
import pytest
import roost
import roost.distributed
import roost.sparse
import roost.match
import roost.solids
import roost.stars
from conftest import LIBRARIES


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
                roost.isin(x, ["text"])
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


def test_forks_while_threads_are_inside():
    done = run("""
import multiprocessing, os, signal, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np, roost

x = np.arange(300_000) % 1000
table, small = roost.Map(x[:1000], x[:1000]), np.arange(1000)
changing, resting = roost.ConcurrentMap(), roost.ConcurrentMap()
resting.add(small)
stop = False

def inside():
    while not stop:
        roost.unique(x), table.find(x)

def change():
    while not stop:
        changing.add(x)

def works():
    assert len(roost.unique(x)) == 1000 and roost.info()["threads"] == 1
    assert (table.find(small) == small).all() and roost.group_by(x).count().tolist() == [300] * 1000
    assert resting.add(small) == 0 and resting.valid()
    roost.set_threads(2), roost.set_threads(0), roost.trim()
    try:
        changing.add(small)
    except RuntimeError as error:
        assert "forked while another thread was changing the table" in str(error)

def child(then=lambda: None):
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        try:
            works(), then()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def grandchild():
    # It changes no table: one that is being changed when a process is forked is refused there.
    other = threading.Thread(target=lambda: roost.unique(x))
    other.start()
    assert child() == 0
    other.join()

threads = [threading.Thread(target=f) for f in (inside, inside, change)]
[t.start() for t in threads]
time.sleep(0.1)
results = [child(), child(grandchild)]
with ThreadPoolExecutor(2) as pool:
    results += pool.map(lambda _: child(), range(2))
with multiprocessing.get_context("fork").Pool(2) as pool:
    results += [len(found) - 1000 for found in pool.map(roost.unique, [x, x])]
results.append(subprocess.run([sys.executable, "-c", "import roost; roost.unique([1])"]).returncode)
stop = True
[t.join() for t in threads]
print(results)
""")
    assert done.stdout == "[0, 0, 0, 0, 0, 0, 0]\n", done.stdout + done.stderr


# Each for a few seconds at least, if nobody interrupts it.
LONG_CALLS = {
    "join": "a = np.zeros(20_000, 'i8')\ncall = lambda: roost.join(a, a)",
    "unique": "call = lambda: roost.unique(x, return_inverse=True)",
    "isin": "call = lambda: roost.isin(x, x)",
    "group_by": "call = lambda: roost.group_by(x).first(x)",
    "sums": "g = roost.group_by(x % 99)\ncall = lambda: g.sum(*[x] * 200)",
    "map": "call = lambda: roost.Map(x, x).find(x)",
    "multimap": "call = lambda: roost.MultiMap(x // 4, x).find(x // 4)",
    "concurrent": "table = roost.ConcurrentMap()\ncall = lambda: table.add(x)",
    "store": "x, table = x[:500_000], roost.Store('int64', 'float32', 16)\n"
    "rows = np.ones((len(x), 16), 'f4')\ncall = lambda: table.insert(x, rows)",
}


@pytest.mark.parametrize("name, threads", [*((name, 0) for name in LONG_CALLS), ("unique", 1), ("join", 1)])
def test_ctrl_c_ends_a_long_call(name, threads):
    done = run(f"""
import os, signal, threading, time
import numpy as np, roost
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
roost.set_threads({threads})
x = np.arange(3_000_000)
table = None
{LONG_CALLS[name]}
sent = []
def send():
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
timer = threading.Timer(0.3, send)
timer.start()
try:
    while True:
        call()
except KeyboardInterrupt:
    spent = time.process_time() - sent[0]  # of all threads, whatever else runs here
if table is not None:
    assert table.valid() and len(table) <= len(x)
    table.clear()
    call()
    assert table.valid() and len(table) == len(x)
roost.set_threads(0)
assert len(roost.unique(x)) == len(x)
print(spent < 1, spent)
""")
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_import_is_light():
    # Of the processor, so that what else runs here does not count.
    timed = "import numpy, time; t = time.process_time(); import roost; print(time.process_time() - t)"
    assert min(float(run(timed).stdout) for _ in range(3)) < 0.15
    done = run("import sys, roost; print(sorted({'torch', 'pandas', 'jax', 'pyarrow'} & set(sys.modules)))")
    assert done.stdout == "[]\n"


def test_modules_come_when_they_are_asked_for():
    modules = {"distributed", "match", "pandas", "polars", "solids", "sparse", "spconv", "stars", "torch"}
    assert set(dir(roost)) == {*roost.__all__, *modules, "__doc__", "__version__"}
    code = "import roost, sys; assert 'roost.sparse' not in sys.modules; print(roost.sparse.CoordinateIndex)"
    assert "CoordinateIndex" in subprocess.check_output([sys.executable, "-c", code], text=True)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        roost.nothing  # noqa: B018
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(AttributeError, match="roost.torch cannot be imported"):
            roost.torch  # noqa: B018


def test_jax_without_64_bits():
    """Numbers of 8 bytes are no numbers there: each is one of 4 bytes, or refused."""
    pytest.importorskip("jax")
    done = run("""
import jax, numpy as np, roost
keys = jax.device_put(np.array([3, 1], "i4"), jax.local_devices(backend="cpu")[0])
def refused(call):
    try:
        print("silent", call())
    except OverflowError as error:
        assert str(error).startswith("roost") and "jax_enable_x64" in str(error)
others = ("i8", 5, 2**40), ("u8", 5, 2**63), ("c16", 2j, 0.1j)
for dtype, fits, not_there in (("f8", 0.5, 0.1), ("f8", -1, 1e300), *others):
    for tail in ((), (3,)):
        good, bad = (np.full((2, *tail), value, dtype) for value in (fits, not_there))
        store = roost.Store("i8", dtype, tail)
        store.insert(keys, good)
        assert (store.find(np.array([3, 1])) == good).all() and (np.asarray(store.find(keys)) == good).all()
        assert (np.asarray(roost.Map(keys, good).find(keys)) == good).all()
        assert (np.asarray(roost.group_by(keys).first(good)) == good).all()
        store.insert_or_assign(keys, bad)
        assert (store.find(np.array([3, 1])) == bad).all()
        refused(lambda: store.find(keys))
        refused(lambda: roost.Map(keys, bad).find(keys))
        refused(lambda: roost.MultiMap(keys, bad).find(keys))
        refused(lambda: roost.group_by(keys).first(bad))
        if dtype in ("f8", "i8") and not tail:
            changing = roost.ConcurrentMap("i8", dtype, like=keys)
            changing.insert([3, 2**40], fits)
            assert changing[3] == fits and 2**40 in changing
            refused(changing.keys)
assert abs(float(roost.group_by(keys).mean(np.array([0.1, 0.2])).sum()) - 0.3) < 1e-6
refused(lambda: roost.group_by(keys).sum(np.array([1e300, 0.2])))
refused(lambda: roost.group_by(keys).max(np.array([0.1, 0.2])))
print("done")
""")
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_jax_without_64_bits_on_a_gpu():
    if "jax-cuda" not in {on.name for on in LIBRARIES}:
        pytest.skip("needs jax and a GPU")
    done = run("""
import jax, numpy as np, roost
def array(values, dtype="i4"):
    return jax.numpy.asarray(np.array(values, dtype))
def refused(call):
    try:
        print("silent", call())
    except OverflowError as error:
        assert str(error).startswith("roost") and "jax_enable_x64" in str(error)
for dtype, most, least in (("i4", 2**31 - 1, -2**31), ("u4", 2**32 - 1, 0)):
    keys, x = array([5, 6, 5, 6]), array([most, least, 0, 0], dtype)
    groups = roost.group_by(keys)
    order = np.argsort(np.asarray(groups.keys))
    assert np.asarray(groups.sum(x))[order].tolist() == [most, least]
    assert np.allclose(np.asarray(groups.mean(x))[order], [most / 2, least / 2])
    refused(lambda: groups.sum(array([most, 0, 1, 0], dtype)))
    refused(lambda: groups.product(array([most, 1, 2, 1], dtype)))
    if least:
        refused(lambda: groups.sum(array([least, 0, -1, 0], dtype)))
    values, inverse = roost.unique(x, return_inverse=True)
    assert (np.asarray(values)[np.asarray(inverse)] == np.asarray(x)).all()
print("done")
""")
    assert done.stdout == "done\n", done.stdout + done.stderr


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
    for wrong in ("2", 2.5, True, None):
        with pytest.raises(TypeError, match="whole number"):
            roost.set_threads(wrong)
    for wrong in (10**6, 2**31, 2**70):
        with pytest.raises(ValueError, match=f"threads={wrong}"):
            roost.set_threads(wrong)


@pytest.mark.parametrize(
    "module",
    [roost, roost._device, roost._functions, roost._group_by, roost._tables.index, roost._tables.maps]
    + [roost._tables.changing, roost.sparse, roost.distributed, roost.match, roost.solids, roost.stars],
)
def test_examples_in_docstrings(module):
    failed, tried = doctest.testmod(module)
    assert tried and not failed


EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))
# The others work without what is not installed.
NEEDS = dict.fromkeys(["backbone.py", "coming_from_spconv.py", "coming_from_torch.py"], "torch")
NEEDS |= dict.fromkeys(["clicks.py", "distributed.py", "embedding.py", "goes_on.py"], "torch")
NEEDS |= dict.fromkeys(["irregular.py", "ranks.py", "unet.py"], "torch")
NEEDS["larger_than_memory.py"] = "pyarrow"
NEEDS |= {"parquet.py": "dask", "columns.py": "pandas", "frames.py": "polars"}
SMALLER = {"clicks.py": ["--steps", "40"], "unet.py": ["--steps", "12"]}


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


def test_jax_stays_on_the_cpu_in_pickles():
    """Its own pickles would bring arrays back on a GPU, where there is one."""
    jax = pytest.importorskip("jax")
    x = jax.device_put(np.arange(6, dtype="i4").reshape(2, 3), jax.local_devices(backend="cpu")[0])
    changing = roost.ConcurrentMap("i4", "i4", like=x)
    tables = [roost.Index(x), roost.Set(x), roost.Map(x, x), roost.MultiMap(x, x), changing]
    for table in (*tables, roost.sparse.CoordinateIndex(x)):
        assert not any(isinstance(part, jax.Array) for part in table.__reduce__()[1])
        assert pickle.loads(pickle.dumps(table)).valid()
