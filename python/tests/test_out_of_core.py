"""Columns in host memory that go through a device: a part of the host's memory stands for that of a GPU.
Results are those of device=None, bit by bit."""

import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
import roost
from columns import of_the_day, pa, pd, pl
from roost import _device, _host

LEAST = 2**21 * (1 + roost.info()["threads"])
LIMITS = [LEAST, LEAST + 2**20]
THROUGH = [{"device": "simulated", "limit": limit} for limit in LIMITS]
THROUGH[1] |= {"spill": tempfile.gettempdir(), "host_limit": 0}
if (roost.info()["devices"] or 0) > 0:
    THROUGH += [{"device": "cuda", "limit": "24MiB"}, {"device": "cuda:0", "limit": "1GiB"}]
N = 40_000  # rows that do not fit at once within these limits
RNG = np.random.default_rng(5)
BIG = 2**53 + RNG.integers(-3, 4, 5000)
KEYS = {
    "empty": np.empty(0, np.int64),
    "one row": np.array([7]),
    "one key": np.full(N, -3),
    "all different": RNG.permutation(N) * 2**40,
    "few": RNG.integers(0, 9, N).astype("i4"),
    "skewed": np.where(RNG.random(N) < 0.7, 5, RNG.integers(-N, N, N)),
    "beyond 2^53": BIG,
    "unsigned": RNG.integers(0, 2**64, 4000, dtype="u8")[RNG.integers(0, 4000, N)],
    "floats": RNG.choice(np.append(RNG.normal(size=300).astype("f4"), [0.0, -0.0, np.nan, np.inf]), N),
    "dates": RNG.integers(0, 999, N).astype("M8[D]"),
    "bytes of 20": RNG.integers(97, 99, (N, 20), dtype="u1").view("S20")[:, 0],
}


def same(got, wanted):
    """Whether two results are equal: types, values, bits, nulls."""
    assert type(got) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted):
            same(one, other)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        same(list(got.values()), list(wanted.values()))
    elif isinstance(wanted, np.ma.MaskedArray):
        same(np.ma.getmaskarray(got), np.ma.getmaskarray(wanted))
        same(got.filled(0), wanted.filled(0))
    elif isinstance(wanted, np.ndarray):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        if got.dtype == object:
            assert got.tolist() == wanted.tolist()
        else:
            assert got.tobytes() == wanted.tobytes()
    elif isinstance(wanted, float):
        assert repr(got) == repr(wanted)
    elif hasattr(wanted, "equals"):
        if isinstance(wanted, pd.Index):
            pd.testing.assert_index_equal(got, wanted)
        elif isinstance(wanted, pd.DataFrame | pd.Series):
            name = "assert_frame_equal" if wanted.ndim == 2 else "assert_series_equal"
            getattr(pd.testing, name)(got, wanted)
        else:
            assert got.equals(wanted)
    elif hasattr(wanted, "numpy"):  # a tensor
        same(got.numpy(), wanted.numpy())
    else:
        assert got == wanted


@pytest.fixture(params=THROUGH, ids=lambda way: f"{way['device']} {way['limit']}")
def way(request):
    return request.param


@pytest.mark.parametrize("name", of_the_day(KEYS))
def test_keys_of_numpy(name, way):
    x = KEYS[name]
    y = x[:3] if name == "one key" else np.append(x[::3], x[:50])
    for order in ({"sorted": True}, {"return_index": True}):
        for wanted in ({}, {"return_inverse": True}, {"return_counts": True, "index_dtype": "int32"}):
            same(roost.unique(x, **order, **wanted, **way), roost.unique(x, **order, **wanted))
    firsts = roost.unique(x, return_index=True, return_counts=True)
    keys, counts = roost.unique(x, return_counts=True, **way)  # in this order
    same((keys, counts), firsts[::2])
    assert roost.nunique(x, **way) == len(keys)
    same(roost.nunique(x, dropna=True, **way), roost.nunique(x, dropna=True))
    for sentinel in (True, False):
        options = {"use_na_sentinel": sentinel}
        same(roost.factorize(x, **options, **way), roost.factorize(x, **options))
    same(roost.isin(x, y, **way), roost.isin(x, y))
    same(roost.isin(y, x, invert=True, **way), roost.isin(y, x, invert=True))
    same(roost.value_counts(x, **way), roost.value_counts(x))
    for keep in ("first", "last", False):
        same(roost.duplicated(x, keep=keep, **way), roost.duplicated(x, keep=keep))
        same(roost.drop_duplicates(x, keep=keep, **way), roost.drop_duplicates(x, keep=keep))


@pytest.mark.parametrize("how", of_the_day(["inner", "left", "right", "outer", "semi", "anti"]))
def test_joins(how, way):
    index_dtype = ("int64", "int32")[THROUGH.index(way) % 2]
    for name, x in KEYS.items():
        y = x[::-7][:9] if name in ("one key", "few", "skewed") else np.append(x[::-2], x[:1])
        options = {"how": how, "index_dtype": index_dtype}
        same(roost.join(x, y, **options, **way), roost.join(x, y, **options))
        same(roost.join(y, x[:2], **options, **way), roost.join(y, x[:2], **options))


def frame(n, seed):
    rng = np.random.default_rng(seed)
    names = np.array(["", "pear", "fig", "a longer text than others", "é", None], object)
    return pd.DataFrame(
        {
            "k": pd.array(rng.integers(-9, 9, n), "Int64"),
            "t": names[rng.integers(0, 6, n)],
            "d": rng.integers(0, 5, n).astype("M8[s]"),
            "f": rng.choice([0.5, -0.0, 0.0, np.nan, 1e300], n),
            "v": rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n),
            "w": rng.integers(-(2**62), 2**62, n),
        }
    ).assign(k=lambda f: f["k"].mask(f["w"] % 5 == 0))


FORMS = {"pandas": lambda f: f}
if pl:
    FORMS["polars"] = pl.from_pandas
if pa:
    FORMS["pyarrow"] = lambda f: pa.Table.from_pandas(f, preserve_index=False)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [0, 40, 20_000])
def test_frames(form, n, way):
    f, other = frame(n, 1), frame(n // 9, 2)
    x, y = FORMS[form](f), FORMS[form](other)
    for by in (["k"], ["t"], ["k", "t", "d", "f"], ["w", "v", "f", "d", "k"]):
        columns, others = FORMS[form](f[by]), FORMS[form](other[by])
        same(roost.unique(columns, return_index=True, return_inverse=True, return_counts=True, **way),
             roost.unique(columns, return_index=True, return_inverse=True, return_counts=True))  # fmt: skip
        same(roost.value_counts(columns, **way), roost.value_counts(columns))
        same(roost.factorize(columns, **way), roost.factorize(columns))
        for nulls_equal in (False, True):
            same(roost.isin(columns, others, nulls_equal=nulls_equal, **way),
                 roost.isin(columns, others, nulls_equal=nulls_equal))  # fmt: skip
        same(roost.drop_duplicates(x, by, keep="last", **way), roost.drop_duplicates(x, by, keep="last"))
    for how in ("inner", "left", "outer", "semi", "anti"):
        made = [roost.merge(x, y, ["k", "d"], how=how, **with_) for with_ in (way, {})]
        same(*made)
    same(roost.merge(y, y, "w", validate="m:m", indicator=True, **way),
         roost.merge(y, y, "w", validate="m:m", indicator=True))  # fmt: skip
    if n == 40:
        same(roost.merge(y, y, how="cross", **way), roost.merge(y, y, how="cross"))


def by_key(groups, results):
    """Results for groups in the order of the keys' first rows."""
    order = np.argsort(groups.first(np.arange(groups._n)), kind="stable")
    return tuple(result[order] for result in results)


AGGREGATES = "count sum mean min max product any all first last var std median nunique mode".split()
VALUES = {
    "f8": RNG.normal(size=N) * 10.0 ** RNG.integers(-9, 9, N),
    "f4": (RNG.normal(size=N) * 1e3).astype("f4"),
    "f2": RNG.normal(size=N).astype("f2"),
    "i8": RNG.integers(-(2**63), 2**63 - 1, N),
    "u8": RNG.integers(0, 2**64, N, dtype="u8"),
    "i2": RNG.integers(-99, 99, N).astype("i2"),
    "bool": RNG.random(N) < 0.5,
    "NaNs": np.where(RNG.random(N) < 0.1, np.nan, 1.5),
    "nulls": np.ma.MaskedArray(RNG.normal(size=N), RNG.random(N) < 0.3),
}


@pytest.mark.parametrize(
    "name", of_the_day(["one key", "all different", "few", "skewed", "floats", "bytes of 20"])
)
def test_groups(name, way):
    x = KEYS[name]
    here, there = roost.group_by(x), roost.group_by(x, **way)
    len(here)
    same(there.keys, by_key(here, [here.keys])[0])
    same(there.keys, roost.unique(x, return_index=True)[0])
    assert len(there) == len(here)
    same(there.size(), by_key(here, [here.size()])[0])
    for values in list(VALUES.values())[THROUGH.index(way) % 2 :: 2]:
        for how in AGGREGATES:
            if how in ("median", "mode", "std", "nunique") and values is not VALUES["nulls"]:
                continue  # on the CPU: one kind of values is enough
            got, wanted = getattr(there, how)(values), getattr(here, how)(values)
            same(got, by_key(here, [wanted])[0])
    pair = VALUES["f8"], VALUES["i2"]
    same(there.corr(*pair), by_key(here, [here.corr(*pair)])[0])
    same(there.quantile(pair[1], q=[0.1, 0.9]), by_key(here, [here.quantile(pair[1], q=[0.1, 0.9])])[0])
    same(there.transform("sum", pair[0]), here.transform("sum", pair[0]))
    same(there.cumcount(), here.cumcount())
    same(there.rank(pair[1]), here.rank(pair[1]))
    same(there.head(2), here.head(2))


def values_of(table):
    """The values of each key, by the key's bytes."""
    found = {}
    for key, value in zip(*table.items()):
        found.setdefault(np.asarray(key).tobytes(), []).append(np.asarray(value).tobytes())
    return found


@pytest.mark.parametrize("name", of_the_day(KEYS))
def test_tables(name, way):
    x = KEYS[name]
    asked = np.append(x[::-3], np.zeros(3, x.dtype))
    here, there = roost.Index(x), roost.Index(x, **way)
    for queries in (asked, x[:0]):
        for dtype in ("int64", "int32"):
            same(there.get_indexer(queries, index_dtype=dtype), here.get_indexer(queries, index_dtype=dtype))
        same(there.contains(queries), here.contains(queries))
    same((len(there), there.is_unique), (len(here), here.is_unique))
    assert there.valid() and there.nbytes >= 0
    if len(x):
        assert x[0] in there and there[0] == here[0]
    same(pickle.loads(pickle.dumps(there)).get_indexer(asked), here.get_indexer(asked))
    for values in ("f8", "i2") if len(x) % 2 else ("f4", "bytes"):
        values = VALUES[values][: len(x)] if values != "bytes" else np.arange(len(x)).astype("S24")
        here, there = roost.MultiMap(x, values), roost.MultiMap(x, values, **way)
        for queries in (asked[-20:], x[:0]):
            same(there.find(queries), here.find(queries))
            same(there.find_pairs(queries), here.find_pairs(queries))
            same(there.count(queries), here.count(queries))
            same(there.contains(queries), here.contains(queries))
        same((len(there), there.key_count), (len(here), here.key_count))
        assert there.valid() and there.nbytes >= 0
        if len(x):
            same(there[x[-1]], here[x[-1]])
    assert values_of(there) == values_of(here)


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_frames(form, way):
    x, y = FORMS[form](frame(20_000, 1)), FORMS[form](frame(900, 2))
    for by in (["k"], ["t"], ["k", "t", "d", "f"]):
        keys, asked = (f[by] if form != "pyarrow" else f.select(by) for f in (x, y))
        same(roost.Index(keys, **way).get_indexer(asked), roost.Index(keys).get_indexer(asked))
        here, there = roost.MultiMap(keys, x["w"]), roost.MultiMap(keys, x["w"], **way)
        same(there.find(asked), here.find(asked))
        same(there.count(asked), here.count(asked))


WANTED = {"n": "count", "s": ("v", "sum"), "m": ("w", "max"), "p": ("v", "product"), "q": ("v", "median")}
WANTED |= {"first": ("t", "first"), "last": ("d", "last"), "o": ("v", "std")}


@pytest.mark.parametrize("form", FORMS)
def test_groups_of_frames(form, way):
    x = FORMS[form](frame(20_000, 3))
    for by in ("k", "t", ["k", "t", "f"], ["w"]):
        here, there = roost.group_by(x, by, skipna=True), roost.group_by(x, by, skipna=True, **way)
        wanted, got = here.agg(**WANTED), there.agg(**WANTED)
        order = np.argsort(here.first(np.arange(20_000)), kind="stable")
        if form == "pandas":
            wanted = wanted.iloc[order].reset_index(drop=True)
        elif form == "polars":
            wanted = wanted[order]
        else:
            wanted, got = wanted.take(order).combine_chunks(), got.combine_chunks()
        same(got, wanted)
        assert [len(rows) for _, rows in there] == np.asarray(there.size()).tolist()
    one, other = (roost.group_by(x, ["k", "t"], dropna=True, **o) for o in ({}, way))
    order = np.argsort(one.first(np.arange(20_000)), kind="stable")
    same(np.asarray(other["v"].sum()), np.asarray(one["v"].sum())[order])


def test_other_forms(way):
    x = RNG.integers(0, 999, 20_000)
    texts = x.astype(str)
    forms = [x.tolist(), texts, texts.astype(object), x.astype(">i8"), x.reshape(-1, 2), x[::-2]]
    forms += [np.ma.MaskedArray(x, x % 7 == 0), (x, x[::-1]), (texts, x % 3), pd.Series(x, name="a")]
    forms += [pd.Series(x, dtype="category"), pd.Index(x)]
    if pl:
        forms += [pl.concat([pl.Series(x[:7000]), pl.Series(x[7000:])], rechunk=False)]
    if pa:
        forms += [pa.chunked_array([x[:7000], x[7000:]]), pa.array(x), pa.array(x, mask=x % 9 == 0)]
    if importlib.util.find_spec("torch"):
        forms += [importlib.import_module("torch").from_numpy(x)]
    for given in forms:
        others = given if isinstance(given, tuple) else given[:9]
        for call in (
            lambda **o: roost.unique(given, return_index=True, return_counts=True, **o),
            lambda **o: roost.duplicated(given, **o),
            lambda **o: roost.isin(given, others, **o),
        ):
            same(call(**way), call())


CHUNKED = ["int64", "int32", "uint8", "float64", "float32", "bool", "datetime64[us]"]


@pytest.mark.parametrize("dtype", CHUNKED)
def test_many_chunks(dtype, way, monkeypatch):
    """They become one array, in which nothing changes places, whichever thread copies them."""
    from roost._arrays import take

    x = RNG.integers(0, 2**20, 30_000).astype(dtype)
    ends = [0, 0, 1, 7, 9_000, 9_000, 29_999, 30_000, 30_000]
    pieces = [x[a:b] for a, b in zip(ends, ends[1:])]
    forms = [pl.concat([pl.Series(piece) for piece in pieces], rechunk=False)] if pl else []
    forms += [pa.chunked_array(pieces), pa.chunked_array([], pa.from_numpy_dtype(x.dtype))] if pa else []
    for least in (2**24, 0):
        monkeypatch.setattr(take, "_SOON_COPIED", least)
        for given in forms:
            wanted = x[: len(given)]
            same(roost.from_arrow(given), wanted)
            same(np.asarray(roost.isin(given, given[:99], **way)), np.isin(wanted, wanted[:99]))
            same(np.asarray(roost.duplicated(given, **way)), np.asarray(roost.duplicated(wanted)))


@pytest.mark.skipif(pa is None, reason="needs pyarrow")
def test_chunks_are_copied_once():
    """Into the words that go through the device: arrays of numpy take no more than that and a result."""
    import tracemalloc

    n = 3 * 2**20  # 24 MiB, by several threads
    given = pa.chunked_array([np.arange(n // 6) + i * n // 7 for i in range(6)])
    wanted = roost.nunique(given)
    tracemalloc.start()
    try:
        assert roost.nunique(given, device="simulated", limit="64MiB") == wanted
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 8 * n <= peak < 8 * n + 2**21


def test_options():
    x = np.array([30, 10, 30, 20])
    plain = roost.unique(x).tolist()
    with roost.options(device="simulated", limit=LEAST):
        assert roost.unique(x).tolist() == [30, 10, 20]
        assert roost.unique(x, device="cpu").tolist() == plain
        with roost.options():
            assert roost.unique(x).tolist() == plain
        assert roost.unique(x).tolist() == [30, 10, 20]
        with pytest.raises(ValueError, match=r"^roost.unique: limit='1 KB'; give at least \d+ bytes$"):
            roost.unique(x, limit="1 KB")
        found = []
        thread = threading.Thread(target=lambda: found.append(roost.unique(x).tolist()))
        thread.start()
        thread.join()
        assert found == [[30, 10, 20]]
    assert roost.unique(x).tolist() == plain
    roost.options(limit="7MiB" if LEAST < 7 * 2**20 else LEAST)
    try:
        assert roost.unique(x).tolist() == plain
        assert roost.unique(x, device="simulated").tolist() == [30, 10, 20]
    finally:
        roost.options()
    roost.trim()
    assert roost.unique(x, device="auto").tolist() == plain  # few rows


def test_which_way_is_taken(monkeypatch):
    """Through the device: once in each call, and not at all without one."""
    calls = []
    call = _device.Way.call
    monkeypatch.setattr(_device.Way, "call", lambda way, name, *a: calls.append(name) or call(way, name, *a))
    x, f = RNG.integers(0, 99, 999), frame(50, 4)
    way = {"device": "simulated"}
    for function, names in (
        (lambda **o: roost.unique(x, **o), ["unique"]),
        (lambda **o: roost.nunique(x, **o), ["unique"]),
        (lambda **o: roost.factorize(x, **o), ["unique"]),
        (lambda **o: roost.value_counts(x, **o), ["unique"]),
        (lambda **o: roost.isin(x, x, **o), ["isin"]),
        (lambda **o: roost.isin(x.astype(str), ["5"], **o), ["isin"]),
        (lambda **o: roost.join(x, x, **o), ["join"]),
        (lambda **o: roost.join(x, [1], "outer", **o), ["join", "join"]),
        (lambda **o: roost.merge(f, f, "w", **o), ["join"]),
        (lambda **o: roost.duplicated(x, **o), ["duplicated"]),
        (lambda **o: roost.drop_duplicates(f, **o), ["duplicated"]),
        (lambda **o: roost.group_by(x, **o).sum(x), ["unique", "reduce"]),
        (lambda **o: roost.group_by(f, "t", **o).agg(s=("v", "sum"), m=("v", "median")), ["reduce"]),
        (lambda **o: roost.group_by(x, **o).std(x), ["unique"]),
        (lambda **o: roost.Index(x, **o).get_indexer(x), ["unique", "join"]),
        (lambda **o: roost.MultiMap(x, x, **o).find(x), ["join"]),
    ):
        function()
        assert calls == []
        function(**way)
        assert [name for name in calls if name != "unique" or "unique" in names] == names
        calls.clear()


def test_a_gpu_is_chosen_by_rows(monkeypatch):
    """With the host's module in the place of that for GPUs."""
    calls = []
    call = _device.Way.call
    monkeypatch.setattr(_device.Way, "call", lambda way, *a: calls.append(way.device) or call(way, *a))
    assert _device._AUTO_ROWS.keys() == {"roost.isin", "roost.group_by"}
    monkeypatch.setattr(_device, "_AUTO_ROWS", {"roost.isin": 501, "roost.group_by": 502})
    monkeypatch.setattr(_device, "_AUTO_ROWS_OF_OTHERS", 500)
    monkeypatch.setattr(_device._gpu, "module", lambda: _host)
    monkeypatch.setattr(_device, "_stream", lambda index: _host.Place())
    x = RNG.integers(0, 99, 500)
    for there, taken in ((0, []), (1, ["auto"] * 4)):
        monkeypatch.setattr(_device, "_devices", lambda there=there: there)
        roost.trim()
        for few in (x[1:], x):
            same(roost.unique(few, return_index=True, device="auto"), roost.unique(few, return_index=True))
        one_more, two_more = np.append(x, 5), np.append(x, [5, 6])
        for others in (x, one_more):
            roost.isin(x[:9], others, device="auto")
        for keys in (one_more, two_more):
            roost.group_by(keys, device="auto").sum(keys)
        assert calls == taken
    same(roost.nunique(x, device="cuda:0", limit=2**28), roost.nunique(x))
    assert calls.pop() == "cuda:0"
    for device, has in (("cuda:1", "1 GPU;"), ("cuda:20", "1 GPU;")):
        with pytest.raises(NotImplementedError, match=f"device='{device}', but this machine has {has}"):
            roost.unique(x, device=device)
    monkeypatch.setattr(_device, "_devices", lambda: 0)
    with pytest.raises(NotImplementedError, match="has no GPU; give device='auto'"):
        roost.unique(x, device="cuda")
    roost.trim()


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({"device": "gpu"}, ValueError, "device='gpu'; give 'cuda', 'cuda:1'"),
        ({"device": 0}, ValueError, "device='0'; give"),
        ({"device": "cuda:"}, ValueError, "device='cuda:'; give"),
        ({"device": "cuda:99"}, NotImplementedError, "device='cuda:99', but"),
        ({"limit": "1GB"}, ValueError, "limit, progress or spill, but no device; give device='cuda'"),
        ({"spill": "/tmp"}, ValueError, "no device"),
        ({"progress": True}, ValueError, "no device"),
        ({"device": "cpu", "limit": 2**30}, ValueError, "no device"),
        ({"device": "simulated", "limit": "1MB"}, ValueError, rf"limit='1MB'; give at least {LEAST} bytes"),
        ({"device": "simulated", "limit": LEAST - 1}, ValueError, rf"give at least {LEAST} bytes"),
        ({"device": "simulated", "limit": -1}, ValueError, "limit=-1; give bytes, or a text such as '8GB'"),
        ({"device": "simulated", "limit": 2**63}, ValueError, "give bytes"),
        ({"device": "simulated", "limit": 1e9}, TypeError, "limit=1000000000.0; give bytes"),
        ({"device": "simulated", "limit": True}, TypeError, "give bytes"),
        ({"device": "simulated", "progress": 5}, TypeError, "progress=5; give True, False, or a function"),
        ({"device": "simulated", "spill": 5}, TypeError, "spill=5; give the name of a folder"),
        ({"device": "simulated", "spill": ""}, ValueError, "spill=''; give the name of a folder"),
        ({"device": "simulated", "spill": "/tmp/\0"}, ValueError, "give the name of a folder"),
        ({"device": "simulated", "spill": "/proc"}, OSError, "spill='/proc': /proc: no file can be made"),
        ({"device": "simulated", "host_limit": 0}, ValueError, "host_limit, but no spill; give spill='/a/"),
        ({"device": "simulated", "spill": "/tmp", "host_limit": "1G"}, ValueError, "host_limit='1G'; give"),
    ]
    + [({"device": "simulated", "limit": text}, ValueError, "give bytes") for text in
       ("", "GB", "8 GBs", "8gb", "8G", "-1GB", "1e9", "٣GB", "8GB8", "999999999TB")],
)  # fmt: skip
def test_refused(given, error, text):
    for name, call in (("unique", lambda: roost.unique([1], **given)),
                       ("group_by", lambda: roost.group_by([1], **given))):  # fmt: skip
        with pytest.raises(error, match=f"^roost.{name}: .*{text}") as refused:
            call()
        assert "\n" not in str(refused.value)
    if "no device" not in text:
        with pytest.raises(error, match=f"^roost.options: .*{text}"):
            roost.options(**given)
    assert _device._default == (None, None, False, None, None)


def test_units():
    for text, bytes in {"8GB": 8 * 10**9, " 1.5 GiB ": 3 * 2**29, "512MiB": 2**29, "64KB": 64000,
                        "77": 77, "9B": 9, "2TiB": 2**41, "0.5KiB": 512}.items():  # fmt: skip
        assert _device._bytes_of(text, "x") == bytes
    assert _device._bytes_of(np.int64(99), "x") == 99


@pytest.mark.skipif(roost.info()["cuda"], reason="of machines without the module")
def test_without_the_module():
    with pytest.raises(
        NotImplementedError, match="^roost.join: device='cuda', but no module for GPUs is installed"
    ):
        roost.join([1], [1], device="cuda", limit="8GB")


@pytest.mark.skipif(not (roost.info()["devices"] or 0), reason="needs a GPU")
def test_arrays_on_a_gpu():
    torch = pytest.importorskip("torch")
    x = torch.arange(9, device="cuda")
    for call in (lambda **o: roost.unique(x, **o), lambda **o: roost.group_by(x, **o)):
        with pytest.raises(ValueError, match="device='cuda', but the arrays are on cuda:0 already"):
            call(device="cuda")
        with roost.options(device="cuda"):
            call()


def test_progress():
    x = RNG.integers(0, 2**40, N)
    for call in (
        lambda **o: roost.unique(x, return_inverse=True, **o),
        lambda **o: roost.join(x, x[::-1], **o),
        lambda **o: roost.group_by(x, **o).sum(x * 0.5),
    ):
        seen = []
        call(device="simulated", limit=LEAST, progress=lambda done, all: seen.append((done, all)))
        assert len(seen) > 3 and seen[-1][0] == seen[-1][1] > 0
        assert all(0 <= done <= all for done, all in seen)
        ends = [i for i, (done, all) in enumerate(seen) if done == all]
        assert all(b[0] >= a[0] for i, (a, b) in enumerate(zip(seen, seen[1:])) if i not in ends)

    class Stop(Exception):
        pass

    def stop(done, all):
        raise Stop(done)

    for _ in range(2):
        with pytest.raises(Stop):
            roost.unique(x, device="simulated", limit=LEAST, progress=stop)
    same(
        roost.unique(x, return_index=True, device="simulated", limit=LEAST),
        roost.unique(x, return_index=True),
    )

    def nested(done, all):
        inner.append(roost.nunique([1, 2, 1], device="simulated", progress=lambda *_: inner.append("inner")))
        outer.append(done)

    inner, outer = [], []
    roost.unique(x, device="simulated", limit=LEAST, progress=nested)
    assert len(outer) > 3 and inner.count(2) == len(outer) and "inner" in inner


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    x = np.arange(N)
    monkeypatch.setattr(_device._Line, "APART", 0)
    for stream in (_Terminal(), io.StringIO()):
        with contextlib.redirect_stderr(stream):
            roost.isin(x, x, device="simulated", limit=LEAST, progress=True)
        shown = stream.getvalue()
        assert bool(shown) == stream.isatty()
        if shown:
            assert (
                "roost.isin: 1 of 1 MB, 100 %" in shown and shown.endswith("\r\033[K") and "\n" not in shown
            )


def test_threads_share_a_place():
    x = [RNG.integers(0, 5000, 60_000) for _ in range(4)]
    wanted = [roost.unique(each, return_index=True, return_inverse=True) for each in x]
    got = [None] * 4

    def work(i):
        seen = []
        got[i] = roost.unique(x[i], return_index=True, return_inverse=True, device="simulated", limit=LEAST,
                              progress=lambda done, all: seen.append(i))  # fmt: skip
        assert seen

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(got, wanted)


def test_other_threads_run_meanwhile():
    x, seen, ended = RNG.integers(0, 2**40, 1_000_000), [], threading.Event()

    def count():
        while not ended.wait(0.001):
            seen.append(None)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(seen)
    roost.isin(x, x, device="simulated", limit=LEAST)
    meanwhile = len(seen) - before
    ended.set()
    thread.join()
    assert meanwhile > 5


def open_files(folder, process="self"):
    """The files without names that a process has open in a folder, as names that can be opened."""
    found = []
    for name in os.listdir(f"/proc/{process}/fd"):
        file = f"/proc/{process}/fd/{name}"
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(file).startswith(f"{folder}/"):
                found.append(file)
    return found


def large_join(folder, progress=False, seed=0):
    """A join of which no side is read once; all rows match."""
    x = np.random.default_rng(seed).permutation(500_000)
    way = {"device": "simulated", "limit": LEAST, "spill": folder, "host_limit": 0}
    left, right = roost.join(x, x[::-1], progress=progress, **way)
    assert (left == np.arange(len(x))).all() and (right == left[::-1]).all()


def test_what_is_read_from_files_is_checked(tmp_path):
    changed = []

    def change(done, all):
        if done < all // 3 or changed:
            return
        for name in open_files(tmp_path):
            with open(name, "r+b") as file:
                file.seek(123_456)
                byte = file.read(1)[0]
                file.seek(123_456)
                changed.append(file.write(bytes([byte ^ 4])))

    with pytest.raises(OSError, match=f"^{tmp_path}: the file of waiting rows there has changed .*at byte "):
        large_join(tmp_path, change)
    assert changed == [1] and not open_files(tmp_path)
    large_join(tmp_path)


def test_a_disk_that_is_full(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
    try:
        with pytest.raises(
            OSError, match=f"^{tmp_path}: cannot be written: File too large; make room"
        ) as full:
            large_join(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(full.value) and not open_files(tmp_path)
    large_join(tmp_path)


ONE_OF_MANY = """
import sys
import test_out_of_core as test
test.large_join(sys.argv[1], lambda done, all: print(done, all, flush=True), seed=int(sys.argv[2]))
"""


def start(folder, seed):
    command = [sys.executable, "-c", ONE_OF_MANY, str(folder), str(seed)]
    here = os.path.dirname(__file__)
    return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True)


def test_a_process_that_is_killed(tmp_path):
    with start(tmp_path, 1) as killed:
        for line in killed.stdout:
            done, all = map(int, line.split())
            if done > all // 3:
                break
        assert sum(os.path.getsize(file) for file in open_files(tmp_path, killed.pid)) > 2**20
        assert not list(tmp_path.iterdir())  # the file has no name, so that the system removes it
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    large_join(tmp_path)


def test_two_processes_with_one_folder(tmp_path):
    both = [start(tmp_path, seed) for seed in (1, 2)]
    large_join(tmp_path)
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["unique", "join", "sum"])
def test_ctrl_c(name, tmp_path):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    x = RNG.integers(0, 2**40, 3_000_000)
    way = {"device": "simulated", "limit": LEAST, "spill": tmp_path, "host_limit": 0}
    groups = roost.group_by(x % 1000, **way)
    call = {
        "unique": lambda: roost.unique(x, return_inverse=True, **way),
        "join": lambda: roost.join(x, x, **way),
        "sum": lambda: groups.sum(x * 0.5),
    }[name]
    sent, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)

    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            while True:
                call()
        spent = time.process_time() - sent[0]
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert spent < 1, spent  # of all threads
    assert not list(tmp_path.iterdir()) and not open_files(tmp_path)
    assert roost.unique(x[:9], **way).tolist() == list(dict.fromkeys(x[:9].tolist()))


def test_refused_memory(monkeypatch):
    """The words of C++, for people who know this package."""
    texts = {
        "roost::inner_join: 99 bytes of the device are too few for these rows; give more device_bytes":
            "roost.join: 99 bytes of the device are too few for these rows; give a greater limit",
        "roost: no memory for 99 bytes": "roost.join: no memory for 99 bytes; pass fewer rows at once",
        "std::bad_alloc": "roost.join: std::bad_alloc; pass fewer rows at once",
    }  # fmt: skip

    def refuse(text):
        def call(*_):
            raise MemoryError(text)

        return call

    for thrown, shown in texts.items():
        with monkeypatch.context() as patched:
            patched.setattr(_host, "join", refuse(thrown))
            with pytest.raises(MemoryError) as refused:
                roost.join([1], [1], device="simulated")
            assert str(refused.value) == shown


def test_help_names_the_options():
    named = "unique nunique factorize isin join merge value_counts duplicated drop_duplicates group_by"
    for name in f"{named} Index MultiMap".split():
        assert "device, limit, progress" in getattr(roost, name).__doc__, name
    importlib.import_module("roost.pandas")
    s = pd.Series([3, 1, 3])
    assert s.roost.unique(device="simulated").tolist() == [3, 1]
