"""Keys of several columns, and columns with nulls, in frames of pandas.

    python examples/columns.py
"""

import numpy as np
import pandas
import roost

sales = pandas.DataFrame(
    {
        "shop": ["Bath", "York", None, "Bath", "York", "Bath"],
        "day": pandas.array([1, 1, 1, 2, None, 1], dtype="Int8"),
        "sold": [3, 5, 2, 4, 1, 6],
    }
)
stock = pandas.DataFrame({"shop": ["Bath", "York"], "day": [1, 1], "stock": [20, 30]})

distinct = roost.unique(sales[["shop", "day"]], sorted=True)  # five rows, nulls last
sold = roost.group_by(sales, ["shop", "day"]).agg(n="count", total=("sold", "sum"))
left = roost.merge(sales, stock, on=["shop", "day"], how="left")
rows = roost.join(sales[["shop", "day"]], stock[["shop", "day"]], how="semi")
arrays = np.array([1, 1, 2]), np.array([0.5, 0.5, 0.5])  # of numpy, torch, CuPy or jax
first, second = roost.unique(arrays)             # [1 2] and [0.5 0.5]
stocked = roost.Map(stock[["shop", "day"]], stock["stock"])
found = stocked.find(sales[["shop", "day"]], missing=-1)  # [20 30 -1 -1 -1 20]
print(stocked["York", 1], ("Bath", None) in stocked)  # 30 False
trip = roost.Map(pandas.Series(["to sea", None], index=[1, 2], name="trip"))
trips = trip.find(sales["day"])                  # a Series of four texts, and nulls
print(trip[1], trip[2], trip.get(9, "?"))        # to sea None ?

print(distinct, sold, left, sep="\n")
assert len(distinct) == len(sold) == 5 and list(distinct["day"][:2]) == [1, 2]
assert sorted(zip(sold["shop"].fillna("?"), sold["n"], sold["total"])) == [
    ("?", 1, 2), ("Bath", 1, 4), ("Bath", 2, 9), ("York", 1, 1), ("York", 1, 5)
]
assert left["stock"].isna().sum() == 3 and rows.tolist() == [0, 1, 5]
assert len(roost.group_by(sales, ["shop", "day"], dropna=True)) == 3
assert sorted(first.tolist()) == [1, 2] and second.tolist() == [0.5, 0.5]
assert found.tolist() == [20, 30, -1, -1, -1, 20]
assert trip[1] == "to sea" and trip[2] is None and trip.get(9, "?") == "?"
assert trips.isna().tolist() == [False] * 3 + [True, True, False]
assert trip.find([2, 9], missing="?").isna().tolist() == [True, False]
