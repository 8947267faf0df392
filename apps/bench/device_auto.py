"""From how many rows on device="cuda" pays for columns in host memory.

    python3 apps/bench/device_auto.py [MOST]     # up to 2^MOST rows; 26 is the default

Milliseconds of the second call, on the CPU and through the GPU, of int64 keys, a quarter of them different;
answers are compared. DEVICE and LIMIT are options of roost.
"""

import os
import sys
import time

import numpy as np
import roost

DEVICE, LIMIT = os.environ.get("DEVICE", "cuda"), os.environ.get("LIMIT", "8GB")
rng = np.random.default_rng(1)


def second(call):
    """The result, and the median of the calls after the first: of five if they are short, else of one."""
    result, times = call(), []
    while len(times) < 5 and sum(times) < 0.5:
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return result, float(np.median(times))


def same(a, b):
    """Whether two results, or tuples of them, are equal."""
    if isinstance(a, tuple):
        return all(map(same, a, b))
    return np.array_equal(a, b)


print(f"{os.cpu_count()} cores, device={DEVICE}, limit={LIMIT}, numpy int64 keys; ms of the second call")
print("| call | rows | cpu | device | cpu / device |\n|---|---|---|---|---|")
crossing, wrong = {}, 0
for power in range(18, int((sys.argv + ["26"])[1]) + 1, 2):
    n = 2**power
    known = rng.integers(-(2**62), 2**62, n // 4)
    keys = known[rng.integers(0, n // 4, n)]
    asked = np.where(rng.random(n) < 0.5, keys, rng.integers(-(2**62), 2**62, n))
    values = rng.integers(0, 1000, n)
    calls = {
        "unique": lambda **d: np.sort(roost.unique(keys, **d)) if checks else roost.unique(keys, **d),
        "isin": lambda **d: roost.isin(asked, known, **d),
        "join": lambda **d: roost.join(asked, known, **d),
        "group_by sum": lambda **d: grouped(roost.group_by(keys, **d)),
    }

    def grouped(groups):
        """Sums; if they are compared, with their keys, in the order of these."""
        if not checks:
            return groups.sum(values)
        order = np.argsort(groups.keys)
        return groups.keys[order], groups.sum(values)[order]

    for name, call in calls.items():
        checks = False
        _, cpu = second(lambda: call(device="cpu"))
        _, gpu = second(lambda: call(device=DEVICE, limit=LIMIT))
        checks = True
        equal = same(call(device="cpu"), call(device=DEVICE, limit=LIMIT))
        wrong += not equal
        print(
            f"| {name} | 2^{power} | {cpu * 1e3:.2f} | {gpu * 1e3:.2f} | {cpu / gpu:.2f} |"
            + ("" if equal else " DIFFERENT"),
            flush=True,
        )
        crossing.setdefault(name, []).append((power, cpu / gpu))
for name, ratios in crossing.items():
    at = next((p for i, (p, r) in enumerate(ratios) if all(s > 1 for _, s in ratios[i:])), None)
    print(f"{name}: the device is faster from 2^{at} on" if at else f"{name}: the device is never faster")
sys.exit(wrong != 0)
